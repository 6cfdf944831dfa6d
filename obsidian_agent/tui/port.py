"""What the terminal app needs of a session: one protocol and the data it hands over. The app knows nothing else of the core."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from datetime import datetime

    from obsidian_agent.agent.events import AgentEvent, Candidate, Effects
    from obsidian_agent.plan.model import Parameter
    from obsidian_agent.plan.result import Preview
    from obsidian_agent.tools.base import Position, Selection
    from obsidian_agent.vault.changes import NetChange


class HistoryEntry(Protocol):
    """A run of the past."""

    @property
    def run_id(self) -> str: ...
    @property
    def time(self) -> datetime: ...
    @property
    def goal(self) -> str: ...
    @property
    def status(self) -> str: ...
    @property
    def undone(self) -> bool: ...
    @property
    def effects(self) -> Effects: ...


class UndoConflict(Protocol):
    """A file that is no longer as the run left it."""

    @property
    def path(self) -> str: ...
    @property
    def reason(self) -> str: ...


class UndoReport(Protocol):
    """What an undo or redo did. With conflicts, the files named there were left as they are."""

    @property
    def restored(self) -> Sequence[str]: ...
    @property
    def skipped(self) -> Sequence[str]: ...
    @property
    def conflicts(self) -> Sequence[UndoConflict]: ...


class InterruptedRun(Protocol):
    """A run that a crash left half done."""

    @property
    def run_id(self) -> str: ...
    @property
    def time(self) -> datetime: ...
    @property
    def goal(self) -> str: ...
    @property
    def completed(self) -> int: ...
    @property
    def total(self) -> int: ...


class MacroInfo(Protocol):
    """A saved action."""

    @property
    def name(self) -> str: ...
    @property
    def description(self) -> str | None: ...
    @property
    def parameters(self) -> Mapping[str, Parameter]: ...


class Session(Protocol):
    """One vault and one planner. Methods that are no async iterators may block: the bridge calls them in a thread."""

    @property
    def vault_name(self) -> str: ...
    @property
    def planner_name(self) -> str: ...

    def notes(self) -> Sequence[str]:
        """Paths of all notes, sorted."""
        ...

    def read_note(self, path: str) -> str:
        """The text of a note, line ends as they are."""
        ...

    def set_focus(self, active_file: str | None, selection: Selection | None, cursor: Position | None) -> None:
        """What the person looks at; frozen into the next turn."""
        ...

    def turn(self, message: str) -> AsyncIterator[AgentEvent]:
        """Events of one message; ends with Answer, NeedsInput, PreviewReady or TurnFailed."""
        ...

    def fill(self, candidate: Candidate | None, values: Mapping[str, Any]) -> AsyncIterator[AgentEvent]:
        """Go on after NeedsInput with values for what was missing, for the chosen candidate if there were any."""
        ...

    def preview_plan(
        self, document: Mapping[str, Any], disabled: frozenset[str] = frozenset(), values: Mapping[str, Any] | None = None
    ) -> AsyncIterator[AgentEvent]:
        """Preview a plan: an edited one, one with steps left out, a candidate. `values` are those of its parameters."""
        ...

    def execute(self, preview: Preview, cancel: threading.Event) -> AsyncIterator[AgentEvent]:
        """Apply exactly this preview; ends with RunFinished. `cancel` stops it after the current file."""
        ...

    def diff(self, preview: Preview, change: NetChange) -> str:
        """Unified diff of one change, "" for binary content."""
        ...

    def history(self) -> Sequence[HistoryEntry]:
        """Runs, newest first."""
        ...

    def undo(self, run_id: str | None, force: frozenset[str] = frozenset(), skip: frozenset[str] = frozenset()) -> UndoReport:
        """Undo a run (None: the last one not undone). Nothing is overwritten that changed since, except the paths in `force`."""
        ...

    def conflict_diff(self, run_id: str | None, path: str) -> str:
        """Unified diff from the file as it is now to what undoing the run would put there."""
        ...

    def redo(self) -> UndoReport:
        """Redo what was undone last."""
        ...

    def interrupted(self) -> Sequence[InterruptedRun]:
        """Runs that a crash left half done."""
        ...

    def recover(self, run_id: str, finish: bool) -> object:
        """Finish or roll back an interrupted run."""
        ...

    def macros(self) -> Sequence[MacroInfo]:
        """Saved actions, sorted by name."""
        ...

    def save_macro(self, run_id: str, name: str, description: str | None, parameters: Mapping[str, str]) -> None:
        """Save the plan of a run. `parameters`: name of a new parameter -> the literal text of the plan that it replaces."""
        ...

    def run_macro(self, name: str, values: Mapping[str, Any]) -> AsyncIterator[AgentEvent]:
        """Preview a saved action; NeedsInput when values are missing."""
        ...

    def rename_macro(self, name: str, new_name: str) -> None: ...

    def delete_macro(self, name: str) -> None: ...

    def export_macro(self, name: str, path: str) -> None:
        """Write the action to a file outside or inside the vault, a path of the operating system."""
        ...

    def import_macro(self, path: str) -> str:
        """Read an action from a file; returns its name."""
        ...
