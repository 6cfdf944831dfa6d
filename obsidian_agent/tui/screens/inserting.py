"""An answer into the open note: a plan like any other."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from obsidian_agent.config.live import LiveSettings
    from obsidian_agent.tui.screens.desk import Desk

Preview = Callable[[Mapping[str, Any], frozenset[str], Mapping[str, Any]], None]


class Inserting:
    """`preview` shows a plan; the settings say where an answer goes."""

    def __init__(self, desk: Desk, preview: Preview, settings: LiveSettings | None) -> None:
        self._desk = desk
        self._preview = preview
        self._settings = settings

    def insert(self) -> None:
        """The last answer into the open note: a plan like any other."""
        answer, path = self._desk.panes.chat.transcript.last_answer, self._desk.panes.note.path
        if not answer or path is None:
            self._desk.panes.chat.hint("Open the note first (Ctrl+O)." if answer else "There is no answer to insert yet.")
            return
        at_cursor = self._settings is not None and self._settings.current.insert_at_cursor
        self._desk.freeze_focus()
        self._preview(insertion(answer, path, at_cursor=at_cursor), frozenset(), {})


def insertion(answer: str, path: str, *, at_cursor: bool) -> dict[str, Any]:
    """A plan that puts a text into a note: at the cursor, or at its end."""
    text = answer.replace("${", "$${")
    if at_cursor:
        step = {"id": "insert", "tool": "editor.insertAtCursor", "args": {"text": text}, "preview": "Insert the answer at the cursor"}
    else:
        args = {"path": path.replace("${", "$${"), "mode": "append", "content": f"\n{text}\n"}
        step = {"id": "insert", "tool": "vault.updateFile", "args": args, "preview": "Add the answer at the end of the note"}
    return {"version": "1.0", "goal": "Insert the answer into the open note", "riskLevel": "writes", "steps": [step]}
