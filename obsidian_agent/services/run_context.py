"""The surroundings of a run, frozen when its preview starts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from obsidian_agent.errors import VaultError
from obsidian_agent.obsidian.registry import recent_files
from obsidian_agent.services.focus import Focus
from obsidian_agent.tools.core.tool import AppCommand, NoteSettings, RunContext
from obsidian_agent.tools.core.visible_context import visible_context
from obsidian_agent.vault.filesystem.store import VaultStore
from obsidian_agent.vault.links.link_text import link_style
from obsidian_agent.vault.paths.path import PathUse, VaultPath, parse
from obsidian_agent.vault.views.view import VaultView


def run_context(
    store: VaultStore,
    view: VaultView,
    focus: Focus,
    now: datetime,
    params: Mapping[str, Any],
    commands: Callable[[], Sequence[AppCommand]] | None = None,
) -> RunContext:
    """Freeze the focus for a run. Notes that no longer exist are left out.

    `commands` asks Obsidian for its commands; `None` if no Obsidian can run any.
    """
    active = _existing_file(view, focus.active_file)
    selection = focus.selection
    if active is None and selection is not None and selection.start is not None:
        selection = None
    open_files = _existing_files(view, focus.open_files)
    if active is not None:
        open_files = [active, *open_files]
    context = RunContext(
        vault_name=store.name,
        now=now,
        active_file=active,
        selection=selection,
        cursor=focus.cursor if active is not None else None,
        active_hash=focus.file_hash if active is not None else None,
        open_files=tuple(dict.fromkeys(open_files)),
        recent_files=tuple(_existing_files(view, recent_files(store.obsidian_config("workspace")))),
        has_screen=focus.has_screen,
        runs_commands=commands is not None,
        commands=commands or tuple,
        has_desktop=_has_desktop,
        params=params,
        link_style=link_style(store),
        notes=note_settings(store.obsidian_config),
    )
    return visible_context(context, view)


def note_settings(config: Callable[[Any], object | None]) -> NoteSettings:
    """Return Obsidian's settings for daily notes and templates, with Obsidian's defaults.

    They are in `daily-notes.json` and `templates.json`, whose keys differ between versions.
    """
    daily, templates = _texts(config("daily-notes")), _texts(config("templates"))
    default = NoteSettings()
    date_format = templates.get("dateFormat") or templates.get("date_format")
    time_format = templates.get("timeFormat") or templates.get("time_format")
    return NoteSettings(
        daily_folder=daily.get("folder", "").strip("/"),
        daily_format=daily.get("format") or default.daily_format,
        daily_template=daily.get("template") or None,
        templates=templates.get("folder", "").strip("/"),
        date_format=date_format or default.date_format,
        time_format=time_format or default.time_format,
    )


def _texts(document: object) -> dict[str, str]:
    if not isinstance(document, dict):
        return {}
    return {key: value.strip() for key, value in document.items() if isinstance(value, str)}


def _existing_files(view: VaultView, names: Iterable[str]) -> list[VaultPath]:
    return [path for name in names if (path := _existing_file(view, name)) is not None]


def _existing_file(view: VaultView, name: str | None) -> VaultPath | None:
    if name is None:
        return None
    try:
        entry = view.locate(parse(name, PathUse.READ))
    except VaultError:
        return None
    return entry.path if entry is not None and entry.kind == "file" else None


def _has_desktop() -> bool:
    from obsidian_agent.obsidian.live import opener

    return opener() is not None
