"""The rules of the vault: a list, a form for a new one, and what a rule does and did."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from textual.app import ComposeResult
from textual.content import Content

from obsidian_agent import terminal_text
from obsidian_agent.services.fields import Field
from obsidian_agent.terminal_text import counted
from obsidian_agent.tui.bindings import binding, bindings
from obsidian_agent.tui.screens.dialogs import Confirm, ListScreen, Pick, Report
from obsidian_agent.tui.screens.values_form import ValuesForm
from obsidian_agent.tui.widgets.row_list import VirtualList

if TYPE_CHECKING:
    from collections.abc import Mapping

    from obsidian_agent.services.rules import Rule, RuleRunner
    from obsidian_agent.services.session import Session
    from obsidian_agent.tui.report_lines import Line

MACRO = "macro:"
MAX_LINES = 30
"""Lines of the log that a report shows."""

WHEN = (
    Field("name", "Name of the rule"),
    Field("notes", "When these notes change", optional=True, hint="tag:#done"),
    Field("time", "Or at these times, as cron fields", optional=True, hint="0 7 * * mon-fri"),
)


class RuleList(VirtualList["Rule"]):
    """One line a rule."""

    BINDINGS = [binding("list.choose", "Open")]
    DEFAULT_CSS = "RuleList { height: auto; min-height: 3; max-height: 60vh; }"

    def draw_row(self, row: Rule, width: int) -> Content:
        when = f"at {row.cron}" if row.cron else f"when notes change: {row.notes}"
        action = row.recipe or f"macro {row.macro}"
        return Content.assemble(
            (f" {terminal_text.shortened(row.name, 80)}", "$foreground"),
            (f"  {terminal_text.shortened(when, 60)}", "$quiet"),
            (f"  {terminal_text.line(action)}", "$quiet"),
            ("  runs without approval where allowed" if row.alone else "", "$warning"),
        )


class RulesScreen(ListScreen["Rule", None]):
    """The rules. A new one is made from the form of its action."""

    BINDINGS = bindings("rules")

    def __init__(self, make_runner: Callable[[], RuleRunner], session: Session) -> None:
        super().__init__(
            "Rules",
            "When notes change or at set times, a rule makes a plan that waits for your approval.",
        )
        self._make_runner = make_runner
        self._session = session
        self._runner: RuleRunner | None = None

    def body(self) -> ComposeResult:
        yield RuleList(empty=" No rules yet.")

    def load(self) -> Sequence[Rule]:
        if self._runner is None:
            self._runner = self._make_runner()
        return self._runner.store.all()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action == "remove":
            rows = self.query(RuleList)
            return bool(rows and rows.first().rows)
        return True

    def on_virtual_list_chosen(self, event: RuleList.Chosen) -> None:
        self.run_flow("look", partial(self._look_at, event.row))

    async def _look_at(self, rule: Rule) -> None:
        lines = await asyncio.to_thread(self._lines, rule)
        await self.app.push_screen_wait(Report(f"Rule “{rule.name}”", lines))

    def _lines(self, rule: Rule) -> list[Line]:
        from obsidian_agent.errors import Problem

        assert self._runner is not None
        lines: list[Line] = [("In the last 30 days it would have proposed:", "$primary")]
        for moment, preview in self._runner.trial(rule)[-MAX_LINES:]:
            if isinstance(preview, Problem):
                text = preview.sentence
            else:
                count = counted(len(preview.change_set.changes), "change")
                text = f"{preview.plan.goal} ({count})"
            lines.append((f"  {moment:%Y-%m-%d %H:%M}  {terminal_text.shortened(text, 200)}", ""))
        lines.append(("What it did:", "$primary"))
        for entry in self._runner.store.entries(rule.name)[:MAX_LINES]:
            text = terminal_text.shortened(str(entry.get("text")), 200)
            time = terminal_text.line(str(entry.get("time"))[:16].replace("T", " "))
            lines.append((f"  {time}  {text}", ""))
        return lines

    def action_new(self) -> None:
        self.run_flow("new", self._new, exclusive=True)

    async def _new(self) -> None:
        """Ask when, for which action, and for its values."""
        when = await self.app.push_screen_wait(ValuesForm("New rule", WHEN))
        if when is None:
            return
        notes = when["notes"].strip()
        recipes = await asyncio.to_thread(self._session.recipes)
        rows = [
            (recipe.name, recipe.title)
            for recipe in recipes
            if recipe.answer is None
            and (not notes or recipe.name.startswith(MACRO) or "notes" in recipe.inputs)
        ]
        name = await self.app.push_screen_wait(Pick("Which action?", rows))
        if name is None:
            return
        form = await asyncio.to_thread(self._session.form, name)
        fields = await asyncio.to_thread(form.fields, {"notes": notes} if notes else {})
        values: Mapping[str, str] | None = {}
        if fields:
            values = await self.app.push_screen_wait(ValuesForm(form.title, fields, form))
        if values is None:
            return
        await asyncio.to_thread(self._add, name, when, values)
        await self.reload()

    def _add(self, action: str, when: Mapping[str, str], values: Mapping[str, str]) -> None:
        from datetime import datetime

        from obsidian_agent.services.rules import Rule

        assert self._runner is not None
        is_macro = action.startswith(MACRO)
        self._runner.store.put(
            Rule(
                name=when["name"].strip(),
                cron=when["time"].strip(),
                notes=when["notes"].strip(),
                recipe="" if is_macro else action,
                macro=action.removeprefix(MACRO) if is_macro else "",
                params={key: value for key, value in values.items() if value.strip()},
                checked=datetime.now().astimezone().isoformat(timespec="seconds"),
            )
        )

    def action_remove(self) -> None:
        if self.row is not None:
            self.run_flow("remove", partial(self._remove, self.row), exclusive=True)

    async def _remove(self, rule: Rule) -> None:
        question = Confirm("Remove this rule?", rule.name, "Remove")
        if await self.app.push_screen_wait(question):
            assert self._runner is not None
            await asyncio.to_thread(self._runner.store.remove, rule.name)
            await self.reload()
