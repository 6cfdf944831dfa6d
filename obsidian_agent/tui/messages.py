"""Messages that travel between the parts of the app, named by what happened."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from textual.message import Message

if TYPE_CHECKING:
    from obsidian_agent.agent.events import AgentEvent
    from obsidian_agent.vault.index.keeper import IndexStatus


class EventsArrived(Message):
    """A batch of events of the turn or run that is going on, in order. `dropped`: how often the bridge had left something behind."""

    def __init__(self, events: Sequence[AgentEvent], dropped: int) -> None:
        super().__init__()
        self.events = tuple(events)
        self.dropped = dropped


class WorkEnded(Message):
    """A turn, preview or run is over. `token` says which; `cancelled` when it was stopped before it came to an end."""

    def __init__(self, token: int, *, cancelled: bool) -> None:
        super().__init__()
        self.token = token
        self.cancelled = cancelled


class IndexTold(Message):
    """How far the index of the vault is, or that it has taken in changes."""

    def __init__(self, status: IndexStatus) -> None:
        super().__init__()
        self.status = status


class ThreadDeleted(Message):
    """A conversation is gone for good."""

    def __init__(self, thread_id: str) -> None:
        super().__init__()
        self.thread_id = thread_id


class SettingChanged(Message):
    """A setting has another value."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name


class OutsideRequested(Message):
    """A note is to be opened in Obsidian."""

    def __init__(self, path: str) -> None:
        super().__init__()
        self.path = path


class NoteRequested(Message):
    """A note is to be shown in the note pane."""

    def __init__(self, path: str) -> None:
        super().__init__()
        self.path = path
