"""The run's context: what is open and selected, frozen when a preview starts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from obsidian_agent.errors import ToolError, VaultError
from obsidian_agent.tools.core.tool import NoteSettings, Position, RunContext, Selection
from obsidian_agent.tools.editor import offset_of
from obsidian_agent.vault.filesystem.store import VaultStore
from obsidian_agent.vault.links.link_text import link_style
from obsidian_agent.vault.paths.path import PathUse, VaultPath, parse
from obsidian_agent.vault.text import decode
from obsidian_agent.vault.views.view import VaultView


@dataclass(frozen=True, slots=True)
class Focus:
    """What the person looks at: the open note (vault path as text), the selection, the cursor."""

    active_file: str | None = None
    selection: Selection | None = None
    cursor: Position | None = None
    has_screen: bool = False
    """Whether an app shows this, and can open notes."""


def run_context(
    store: VaultStore, view: VaultView, focus: Focus, now: datetime, params: Mapping[str, Any], *, runs_commands: bool = False
) -> RunContext:
    """Freeze the focus for a run. A note that is no longer there counts as no note."""
    active = _existing(view, focus.active_file)
    recent = tuple(path for path in (_existing(view, name) for name in _recent(store)) if path is not None)
    return RunContext(
        vault_name=store.name,
        now=now,
        active_file=active,
        selection=focus.selection if active is not None or (focus.selection and focus.selection.start is None) else None,
        cursor=focus.cursor if active is not None else None,
        open_files=(active,) if active is not None else (),
        recent_files=recent,
        has_screen=focus.has_screen,
        runs_commands=runs_commands,
        params=params,
        link_style=link_style(store),
        notes=note_settings(store.obsidian_config),
    )


def note_settings(config: Callable[[Any], object | None]) -> NoteSettings:
    """From Obsidian's `daily-notes.json` and `templates.json`, whose keys differ between versions; else as Obsidian has it by default."""
    daily, templates = _texts(config("daily-notes")), _texts(config("templates"))
    own = NoteSettings()
    return NoteSettings(
        daily_folder=daily.get("folder", "").strip("/"),
        daily_format=daily.get("format") or own.daily_format,
        daily_template=daily.get("template") or None,
        templates=templates.get("folder", "").strip("/"),
        date_format=templates.get("dateFormat") or templates.get("date_format") or own.date_format,
        time_format=templates.get("timeFormat") or templates.get("time_format") or own.time_format,
    )


def _texts(document: object) -> dict[str, str]:
    return {key: value.strip() for key, value in document.items() if isinstance(value, str)} if isinstance(document, dict) else {}


def selection_in(view: VaultView, active_file: str, start: Position, end: Position) -> Selection:
    """The text between two places of a note. Raises ToolError when a place lies outside of it."""
    path = parse(active_file, PathUse.UPDATE)
    entry = view.locate(path)
    if entry is None:
        raise VaultError(f"The active file {path} does not exist in the vault.", code="FILE_NOT_FOUND", path=path.text)
    text = decode(view.read(entry.path), path.text)
    first, last = offset_of(text, start), offset_of(text, end)
    if first is None or last is None:
        raise ToolError("The selection lies outside of the note.", code="ARGUMENT_INVALID", path=path.text)
    if last < first:
        raise ToolError("The selection ends before it starts.", code="ARGUMENT_INVALID", path=path.text)
    return Selection(text[first:last], start, end)


def _existing(view: VaultView, name: str | None) -> VaultPath | None:
    if name is None:
        return None
    try:
        entry = view.locate(parse(name, PathUse.READ))
    except VaultError:
        return None
    return entry.path if entry is not None and entry.kind == "file" else None


def _recent(store: VaultStore) -> list[str]:
    """Obsidian's own list of recently opened files, from its workspace file."""
    workspace = store.obsidian_config("workspace")
    files = workspace.get("lastOpenFiles") if isinstance(workspace, dict) else None
    return [name for name in files if isinstance(name, str)] if isinstance(files, list) else []


__all__ = ["Focus", "note_settings", "run_context", "selection_in"]
