"""Waiting plans in the app: reported at the start, looked at like any plan, applied together."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from obsidian_agent.bootstrap import Wiring, build_session, open_rules, proposals_folder
from obsidian_agent.services.rules import Rule
from obsidian_agent.services.waiting_plans import ProposedResult, WaitingPlans
from obsidian_agent.tui.screens.waiting import WaitingList, WaitingScreen
from support import MakeVault
from tui.driving import Driver, driving_real
from tui.snapshots import looks

NOW = datetime(2026, 11, 23, 8, 0, tzinfo=UTC)


def plan(path: str, text: str) -> dict[str, Any]:
    step = {"id": "add", "tool": "vault.addLines", "args": {"path": path, "content": text}}
    return {
        "version": "1.0",
        "goal": f"Add {text}",
        "riskLevel": "writes",
        "steps": [step | {"preview": "Add it"}],
    }


def wiring_with(make_vault: MakeVault, folder: Path, *plans: dict[str, Any]) -> Wiring:
    store = make_vault({"Inbox.md": "# Inbox\n", "Home.md": "# Home\n"})
    wiring = Wiring(store=store, state=folder / "state", config=folder / "config")
    waiting = WaitingPlans(proposals_folder(wiring))
    session = build_session(wiring)
    for number, document in enumerate(plans):
        preview = session.plans.dry_run(document)
        now = NOW + timedelta(minutes=number)
        waiting.add(document, source="Claude", now=now, result=ProposedResult(preview.plan_hash, 1))
    return wiring


async def test_a_waiting_plan_is_approved_like_any_other_and_waits_no_longer(
    make_vault: MakeVault, tmp_path: Path
) -> None:
    wiring = wiring_with(make_vault, tmp_path, plan("Inbox.md", "one"))
    async with driving_real(wiring) as app:
        await app.until(lambda: "1 plan from Claude  /plans" in app.screen())
        await open_first_waiting(app)
        app.wait_out_grace()
        await app.press("a")
        inbox = Path(wiring.store.real_path) / "Inbox.md"
        await app.until(lambda: "one" in inbox.read_text())
        await app.until(lambda: not WaitingPlans(proposals_folder(wiring)).all())


async def test_esc_closes_a_waiting_plan_that_waits_on_and_reject_drops_it(
    make_vault: MakeVault, tmp_path: Path
) -> None:
    wiring = wiring_with(make_vault, tmp_path, plan("Inbox.md", "one"))
    waiting = WaitingPlans(proposals_folder(wiring))
    async with driving_real(wiring) as app:
        await open_first_waiting(app)
        await app.press("escape")
        await app.until(lambda: "It still waits" in app.screen())
        assert app.main.turn.pending is None
        assert len(waiting.all()) == 1
        await open_first_waiting(app)
        await app.press("r")
        await app.until(lambda: not waiting.all())


async def open_first_waiting(app: Driver) -> None:
    """Open the first waiting plan from its list, and wait for its preview."""
    await app.send("/plans")
    await app.on_top(WaitingScreen)
    await app.until(lambda: "Add one  Claude" in app.screen())
    await app.press("enter")
    await app.until(lambda: app.main.turn.pending is not None)


async def test_all_unchanged_plans_are_applied_with_one_key(
    make_vault: MakeVault, tmp_path: Path
) -> None:
    plans = [plan("Inbox.md", "one"), plan("Home.md", "two"), plan("Inbox.md", "three")]
    wiring = wiring_with(make_vault, tmp_path, *plans)
    root = Path(wiring.store.real_path)
    async with driving_real(wiring) as app:
        await app.send("/plans")
        await app.on_top(WaitingScreen)
        await app.until(lambda: app.app.screen.query_one(WaitingList).rows)
        await app.press("A")
        await app.until(lambda: "2 plans applied. 1 plan needs your review." in app.screen())
        assert "two" in (root / "Home.md").read_text()
        assert "! the vault changed since" in app.screen()
        await app.press("d")
        await app.until(lambda: "No plans are waiting." in app.screen())


async def test_plans_are_judged_with_one_key_each(make_vault: MakeVault, tmp_path: Path) -> None:
    plans = [plan("Inbox.md", "one"), plan("Home.md", "two")]
    wiring = wiring_with(make_vault, tmp_path, *plans)
    root = Path(wiring.store.real_path)
    async with driving_real(wiring) as app:
        await app.until(lambda: "2 plans waiting" in app.screen())
        await app.send("/plans")
        await app.on_top(WaitingScreen)
        await app.until(lambda: "Change Home.md" in app.screen() and "two" in app.screen())
        await looks(app, "waiting")
        app.wait_out_grace()
        await app.press("a")
        await app.until(lambda: "Change Inbox.md" in app.screen())
        assert (root / "Home.md").read_text() == "# Home\ntwo\n"
        await app.press("d")
        await app.until(lambda: "No plans are waiting." in app.screen())
        assert (root / "Inbox.md").read_text() == "# Inbox\n"


async def test_a_plan_whose_result_differs_is_looked_at_first(
    make_vault: MakeVault, tmp_path: Path
) -> None:
    wiring = wiring_with(make_vault, tmp_path, plan("Inbox.md", "one"))
    inbox = Path(wiring.store.real_path) / "Inbox.md"
    inbox.write_text("# Changed\n" + "line\n" * 9)
    async with driving_real(wiring, size=(80, 24)) as app:
        await app.send("/plans")
        await app.on_top(WaitingScreen)
        await app.until(lambda: "! The vault changed since the plan was proposed." in app.screen())
        app.wait_out_grace()
        await app.press("a")
        await app.until(lambda: app.main.turn.pending is not None)
        await app.until(lambda: "The vault changed since the plan was proposed." in app.screen())
        assert "one" not in inbox.read_text()


async def test_a_rule_proposes_while_the_app_is_open(make_vault: MakeVault, tmp_path: Path) -> None:
    wiring = wiring_with(make_vault, tmp_path)
    rule = Rule(
        name="Done", notes="tag:#done", recipe="move", params={"folder": "Archive"}, checked=""
    )
    open_rules(wiring).put(rule)
    root = Path(wiring.store.real_path)
    async with driving_real(wiring) as app:
        await app.until(lambda: not app.app.query_one("#inbox").display)
        (root / "Inbox.md").write_text("# Inbox #done\n")
        await app.until(lambda: "1 plan waiting" in app.screen())
        assert (root / "Inbox.md").exists()
