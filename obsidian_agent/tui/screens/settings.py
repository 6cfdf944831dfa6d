"""The settings, each with its description, the source of its value, and its default."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from textual import work
from textual.app import ComposeResult
from textual.content import Content
from textual.widgets import Input, Static

from obsidian_agent import terminal_text
from obsidian_agent.services.fields import Field
from obsidian_agent.tui.action_search import Action, ranked
from obsidian_agent.tui.bindings import bindings
from obsidian_agent.tui.commands import Command
from obsidian_agent.tui.screens.dialogs import ListScreen
from obsidian_agent.tui.screens.values_form import ValuesForm
from obsidian_agent.tui.screens.workspace import Workspace
from obsidian_agent.tui.widgets.prompt import LineEntry
from obsidian_agent.tui.widgets.row_list import VirtualList

if TYPE_CHECKING:
    from textual.signal import Signal

    from obsidian_agent.config.live import LiveSettings, SettingRow

TITLE_WIDTH = 30


class SettingsList(VirtualList["SettingRow"]):
    """Groups and their settings, a line each."""

    def draw_row(self, row: SettingRow, width: int) -> Content:
        changed = row.value != row.default
        return Content.assemble(
            (f" {terminal_text.line(row.title):<{TITLE_WIDTH}} ", "$foreground"),
            (
                terminal_text.shortened(format_value(row.value), 200),
                "bold" if changed else "$quiet",
            ),
            (f"  {_source(row)}" if row.source != "default" else "", "$quiet"),
        )


class SettingsScreen(ListScreen["SettingRow", None]):
    """The list of settings, which typing filters. A change is checked and saved immediately."""

    BINDINGS = [*bindings("find"), *bindings("settings")]
    AUTO_FOCUS = "LineEntry"

    def __init__(
        self, settings: LiveSettings, changed: Signal[str], first: str | None = None
    ) -> None:
        """Create the list with the cursor on the setting `first`, by default on the first one."""
        super().__init__(
            "Settings",
            "Bold values differ from the default. API keys are not stored here.",
        )
        self._settings = settings
        self._changed = changed
        self._query = ""
        self._first = first

    def body(self) -> ComposeResult:
        yield LineEntry(placeholder="Find a setting", compact=False, id="setting-filter")
        yield SettingsList(empty="No setting has these words.")
        yield Static("", id="setting", markup=False)

    def on_mount(self) -> None:
        self.listing.can_focus = False
        self.run_flow("rows", self._begin)

    async def _begin(self) -> None:
        await self.reload()
        if not self.is_attached:
            return
        for index, row in enumerate(self.listing.rows):
            if not isinstance(row, str) and row.name == self._first:
                self.listing.cursor = index

    def load(self) -> Sequence[SettingRow | str]:
        rows = self._settings.rows()
        if not self._query.strip():
            return group_rows(rows)
        by_name = {row.name: row for row in rows}
        return [by_name[match.key] for match in ranked(self._query, list(map(_searchable, rows)))]

    def action_back(self) -> None:
        """Empty the search, or close the settings."""
        entry = self.query_one(LineEntry)
        if entry.value:
            entry.value = ""
        else:
            self.dismiss(None)

    def action_move(self, step: int) -> None:
        self.listing.action_cursor(step)

    def action_page(self, direction: int) -> None:
        self.listing.action_page(direction)

    def action_change(self) -> None:
        self.listing.action_choose()

    async def on_input_changed(self, event: Input.Changed) -> None:
        self._query = event.value
        self.run_flow("rows", self._search, exclusive=True)

    async def _search(self) -> None:
        self.listing.cursor = 0
        await self.reload()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        # Delete belongs to the search while there is text after its cursor.
        if action != "default":
            return True
        entry = self.query_one(LineEntry)
        return entry.cursor_position >= len(entry.value)

    @property
    def _current(self) -> SettingRow | None:
        return None if isinstance(self.row, str) else self.row

    def on_virtual_list_highlighted(self, event: SettingsList.Highlighted) -> None:
        row = self._current
        if row is not None:
            default = terminal_text.shortened(format_value(row.default), 200)
            text = (
                f"{terminal_text.block(row.description)}\n"
                f"Default: {default} · {row.name} in the settings file"
            )
            self.query_one("#setting", Static).update(Content.styled(text, "$quiet"))

    # --- changes ----------------------------------------------------------------------------------

    def on_virtual_list_chosen(self, event: SettingsList.Chosen) -> None:
        row = self._current
        if row is None:
            return
        match row.kind:
            case "switch":
                self._change(row, not row.value)
            case "choice":
                index = row.choices.index(str(row.value)) + 1
                self._change(row, row.choices[index % len(row.choices)])
            case "number" | "text" | "list" | "table":
                self.run_flow("setting", partial(self._ask, row))

    def action_default(self) -> None:
        row = self._current
        if row is not None:
            self._change(row, None)

    def _change(self, row: SettingRow, value: Any) -> None:
        self.show_problem("")
        self.run_flow("settings", partial(self._save, row, value))

    async def _ask(self, row: SettingRow) -> None:
        field = Field(
            row.name, description=row.description, value=input_text(row.value), empty=True
        )
        values = await self.app.push_screen_wait(ValuesForm(row.title, [field]))
        if values is not None:
            self.show_problem("")
            await self._save(row, values[row.name])

    async def _save(self, row: SettingRow, value: Any) -> None:
        # Shielded: leaving the settings meanwhile must not skip the signal to the other screens.
        await asyncio.shield(self._set(row.name, value))
        if row.override:
            self.show_problem(row.override)
        await self.reload()

    async def _set(self, name: str, value: Any) -> None:
        await asyncio.to_thread(self._settings.set, name, value)
        self._changed.publish(name)


class SettingActions(Workspace):
    """Actions that show and change settings, which take effect immediately."""

    SLASH: ClassVar[tuple[Command, ...]] = (
        Command("settings", "Settings", "Show and change them", "settings"),
        Command(
            "set",
            "Change a setting",
            "Without a value: reset it to its default",
            "change_setting",
            "NAME [VALUE]",
            requires_argument=True,
        ),
    )

    def action_settings(self) -> None:
        """Show the settings, at first the one that refused the last message."""
        screen = SettingsScreen(self.settings, self.signals.setting_changed, self.refused_by)
        self.app.push_screen(screen)

    @work(group="settings", exit_on_error=False)
    async def action_change_setting(self, rest: str) -> None:
        """Change a setting: `rest` is its name and the new value. Without a value, reset it."""
        name, _, value = rest.partition(" ")
        settings = await asyncio.to_thread(self.settings.set, name, value.strip() or None)
        new_value = terminal_text.shortened(format_value(getattr(settings, name)), 200)
        self.add_entry("note", f"{terminal_text.line(name)} is now {new_value}.")
        self.signals.setting_changed.publish(name)

    def apply_setting(self, name: str) -> None:
        """Apply a changed setting to the session."""
        self.session.settings_changed()
        self.session.warm_up()

    def refresh_keys(self) -> None:
        """Update the keys that texts on the screen mention."""
        self.panes.chat.refresh_welcome()
        self.panes.note.refresh_keys()
        self.panes.work.refresh_keys()


def _source(row: SettingRow) -> str:
    """Return where the value of a setting comes from."""
    match row.source:
        case "vault":
            return "for this vault"
        case "environment":
            return f"from {row.variable}"
        case "option":
            return "from the command line"
        case "file":
            return "from the settings file"
        case _:
            return "the default"


def _searchable(row: SettingRow) -> Action:
    return Action(
        key=row.name,
        title=row.title,
        subject=row.group,
        description=f"{row.description} {format_value(row.value)}",
        examples=(row.name,),
    )


def group_rows(rows: Sequence[SettingRow]) -> list[SettingRow | str]:
    """Return the settings under the headings of their groups."""
    grouped: list[SettingRow | str] = []
    for group in dict.fromkeys(row.group for row in rows):
        grouped += [group, *(row for row in rows if row.group == group)]
    return grouped


def format_value(value: Any) -> str:
    """Return a value as it is displayed."""
    match value:
        case None | "" | ():
            return "–"
        case True:
            return "on"
        case False:
            return "off"
        case list() | tuple():
            return "; ".join(str(item) for item in value)
        case dict():
            return ", ".join(f"{name}: {item}" for name, item in value.items()) or "–"
        case _:
            return str(value)


def input_text(value: Any) -> str:
    """Return a value as the user types it."""
    match value:
        case None:
            return ""
        case dict():
            return json.dumps(value, ensure_ascii=False)
        case list() | tuple():
            return "; ".join(str(item) for item in value)
        case _:
            return str(value)
