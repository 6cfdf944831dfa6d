"""The settings, each with what it does, where its value comes from, and its default."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from textual import work
from textual.app import ComposeResult
from textual.content import Content
from textual.widgets import Static

from obsidian_agent import terminal_text
from obsidian_agent.services.fields import Field
from obsidian_agent.tui.bindings import binding, bindings
from obsidian_agent.tui.commands import Command
from obsidian_agent.tui.screens.dialogs import Modal
from obsidian_agent.tui.screens.values_form import ValuesForm
from obsidian_agent.tui.screens.workspace import Workspace
from obsidian_agent.tui.widgets.row_list import VirtualList

if TYPE_CHECKING:
    from textual.signal import Signal

    from obsidian_agent.config.live import LiveSettings, SettingRow

    Row = SettingRow | str

TITLE_WIDTH = 30


class SettingsList(VirtualList["Row"]):
    """Groups and their settings, a line each."""

    DEFAULT_CSS = "SettingsList { height: auto; min-height: 3; max-height: 60vh; }"
    BINDINGS = [binding("list.choose", "Change")]

    def can_stop(self, row: Row) -> bool:
        return not isinstance(row, str)

    def draw_row(self, row: Row, width: int) -> Content:
        if isinstance(row, str):
            return Content.styled(row, "bold $primary")
        changed = row.value != row.default
        told = {
            "vault": "  for this vault",
            "environment": f"  from {row.variable}",
            "option": "  from the command line",
        }
        return Content.assemble(
            (f" {terminal_text.line(row.title):<{TITLE_WIDTH}} ", "$foreground"),
            (
                terminal_text.shortened(format_value(row.value), 200),
                "bold" if changed else "$quiet",
            ),
            (told.get(row.source, ""), "$warning"),
        )


class SettingsScreen(Modal[None]):
    """A change is checked and saved at once."""

    BINDINGS = bindings("settings")

    def __init__(self, settings: LiveSettings, changed: Signal[str]) -> None:
        super().__init__(
            "Settings",
            "Values in bold are not the default. Keys and passwords are never kept here.",
        )
        self._settings = settings
        self._changed = changed

    def body(self) -> ComposeResult:
        yield SettingsList()
        yield Static("", id="setting", markup=False)

    def on_mount(self) -> None:
        self.query_one(SettingsList).focus()
        self.run_flow("settings", self._reload)

    async def _reload(self) -> None:
        rows = await asyncio.to_thread(self._settings.rows)
        if self.is_attached:
            listing = self.query_one(SettingsList)
            listing.set_rows(group_rows(rows), listing.cursor if listing.rows else 0)

    @property
    def _current(self) -> SettingRow | None:
        row = self.query_one(SettingsList).current
        return None if isinstance(row, str) else row

    def on_virtual_list_highlighted(self, event: SettingsList.Highlighted) -> None:
        row = self._current
        if row is not None:
            text = f"{terminal_text.block(row.description)}\nDefault: {terminal_text.shortened(format_value(row.default), 200)} · {row.name} in the settings file"
            self.query_one("#setting", Static).update(Content.styled(text, "$quiet"))

    # --- changing -------------------------------------------------------------------------------------------------------------

    def on_virtual_list_chosen(self, event: SettingsList.Chosen) -> None:
        row = self._current
        if row is None:
            return
        match row.kind:
            case "switch":
                self._change(row, not row.value)
            case "choice":
                self._change(
                    row, row.choices[(row.choices.index(str(row.value)) + 1) % len(row.choices)]
                )
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
        await asyncio.shield(self._set(row.name, value))
        if row.override:
            self.show_problem(row.override)
        await self._reload()

    async def _set(self, name: str, value: Any) -> None:
        """Whoever leaves the settings meanwhile does not keep the others from being told."""
        await asyncio.to_thread(self._settings.set, name, value)
        self._changed.publish(name)


class SettingActions(Workspace):
    """Settings are shown and changed, and take effect at once."""

    SLASH: ClassVar[tuple[Command, ...]] = (
        Command("settings", "Settings", "With their defaults", "settings"),
        Command(
            "set",
            "Change a setting",
            "Without a value: back to its default",
            "change_setting",
            "NAME [VALUE]",
            requires_argument=True,
        ),
    )

    def action_settings(self) -> None:
        """The settings, to be changed."""
        self.app.push_screen(SettingsScreen(self.settings, self.signals.setting_changed))

    @work(group="settings", exit_on_error=False)
    async def action_change_setting(self, rest: str) -> None:
        """A setting by its name, to what follows it, or back to its default."""
        name, _, value = rest.partition(" ")
        now = await asyncio.to_thread(self.settings.set, name, value.strip() or None)
        self.add_entry(
            "note",
            f"{terminal_text.line(name)} is {terminal_text.shortened(format_value(getattr(now, name)), 200)} now.",
        )
        self.signals.setting_changed.publish(name)

    def apply_setting(self, name: str) -> None:
        """A setting has changed: what of it the session and the screen show."""
        self.session.settings_changed()
        self.session.warm_up()

    def refresh_keys(self) -> None:
        """Say the keys that are in force now."""
        self.panes.chat.refresh_welcome()
        self.panes.note.refresh_keys()
        self.panes.work.refresh_keys()


def group_rows(rows: Sequence[SettingRow]) -> list[Row]:
    """The settings under the headings of their groups."""
    found: list[Row] = []
    for group in dict.fromkeys(row.group for row in rows):
        found += [group, *(row for row in rows if row.group == group)]
    return found


def format_value(value: Any) -> str:
    """A value for people."""
    match value:
        case None | "" | ():
            return "–"
        case True:
            return "on"
        case False:
            return "off"
        case list() | tuple():
            return "; ".join(str(each) for each in value)
        case dict():
            return ", ".join(f"{name}: {each}" for name, each in value.items()) or "–"
        case _:
            return str(value)


def input_text(value: Any) -> str:
    """A value as it is typed."""
    match value:
        case None:
            return ""
        case dict():
            return json.dumps(value, ensure_ascii=False)
        case list() | tuple():
            return "; ".join(str(each) for each in value)
        case _:
            return str(value)
