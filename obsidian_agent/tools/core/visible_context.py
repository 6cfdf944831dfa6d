"""The surroundings of a run as a view without hidden files has them."""

from __future__ import annotations

from datetime import datetime

from msgspec.structs import replace

from obsidian_agent.errors import PathRefused
from obsidian_agent.tools.core.moment import format_moment
from obsidian_agent.tools.core.tool import NoteSettings, RunContext, Selection
from obsidian_agent.vault.paths.path import PathUse, parse
from obsidian_agent.vault.views.filtered import FilteredView, TextlessView
from obsidian_agent.vault.views.view import VaultView


def visible_context(context: RunContext, view: VaultView) -> RunContext:
    """Return the context without open notes, selected text and settings that `view` hides."""
    if not isinstance(view, FilteredView):
        return context
    is_active_hidden = context.active_file is not None and view.is_hidden(context.active_file)
    if isinstance(view, TextlessView):
        selection = context.selection
        if is_active_hidden and selection is not None:
            selection = Selection("", selection.start, selection.end)
        return replace(context, selection=selection)
    if is_active_hidden:
        context = replace(context, active_file=None, selection=None, cursor=None, active_hash=None)
    return replace(
        context,
        open_files=tuple(path for path in context.open_files if not view.is_hidden(path)),
        recent_files=tuple(path for path in context.recent_files if not view.is_hidden(path)),
        notes=_visible_settings(context.notes, view, context.now),
    )


def _visible_settings(settings: NoteSettings, view: FilteredView, now: datetime) -> NoteSettings:
    """Replace settings that name something hidden in `view` by Obsidian's defaults."""
    default = NoteSettings()
    note = format_moment(now, settings.daily_format)
    if _hides(view, f"{settings.daily_folder}/{note}.md"):
        settings = replace(
            settings, daily_folder=default.daily_folder, daily_format=default.daily_format
        )
    if settings.daily_template is not None and _hides(view, settings.daily_template):
        settings = replace(settings, daily_template=None)
    if not settings.templates or _hides(view, settings.templates):
        settings = replace(
            settings,
            templates=default.templates,
            date_format=default.date_format,
            time_format=default.time_format,
        )
    return settings


def _hides(view: FilteredView, name: str) -> bool:
    """Return whether a path of Obsidian's settings is hidden in `view` or not allowed."""
    try:
        return view.is_hidden(parse(name.strip("/"), PathUse.FOLDER))
    except PathRefused:
        return True
