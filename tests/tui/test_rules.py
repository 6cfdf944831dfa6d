"""Rules in the app: made in a form, looked at, removed."""

from __future__ import annotations

from pathlib import Path

from obsidian_agent.bootstrap import Wiring, open_rules
from obsidian_agent.tui.screens.dialogs import Confirm, Pick, Report
from obsidian_agent.tui.screens.rules import RulesScreen
from obsidian_agent.tui.screens.values_form import ValuesForm
from obsidian_agent.tui.widgets.row_list import ChoiceList
from support import MakeVault
from tui.driving import driving_real


async def test_a_rule_is_made_in_a_form_looked_at_and_removed(
    make_vault: MakeVault, tmp_path: Path
) -> None:
    store = make_vault({"A.md": "#done\n", "Archive/Old.md": "x"})
    wiring = Wiring(store=store, state=tmp_path / "state", config=tmp_path / "config")
    async with driving_real(wiring) as app:
        await app.send("/rules")
        await app.on_top(RulesScreen)
        await app.until(lambda: "No rules yet." in app.screen())
        await app.press("ctrl+n")
        await app.on_top(ValuesForm)
        await app.press(*"Done", "tab", *"tag:#done", "tab", "enter")
        await app.on_top(Pick)
        for unfit in ("roll over", "find notes"):  # takes no notes; changes nothing
            await app.press(*unfit)
            await app.until(lambda: app.app.screen.query_one(ChoiceList).current is None)
            await app.press(*["backspace"] * len(unfit))
        await app.press(*"move notes", "enter")
        await app.on_top(ValuesForm)
        await app.until(lambda: "tag:#done" in app.screen())
        await app.press(*"Archive", "enter")
        await app.on_top(RulesScreen)
        await app.until(lambda: "when notes change: tag:#done" in app.screen())
        (rule,) = open_rules(wiring).all()
        assert (rule.name, rule.notes, rule.recipe) == ("Done", "tag:#done", "move")
        assert rule.params["folder"] == "Archive"
        await app.press("enter")
        await app.on_top(Report)
        await app.until(lambda: "Move notes tagged #done to Archive (1 change)" in app.screen())
        await app.press("escape", "escape")
        await app.until(lambda: "1 plan waiting" in app.screen())
        await app.send("/rules")
        await app.on_top(RulesScreen)
        await app.until(lambda: "when notes change: tag:#done" in app.screen())
        await app.press("d")
        await app.on_top(Confirm)
        app.wait_out_grace()
        await app.press("y")
        await app.until(lambda: open_rules(wiring).all() == [])
