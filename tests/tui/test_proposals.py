"""Plans of other programs: displayed by the open app, decided by its keys, reported back."""

from __future__ import annotations

import asyncio
import contextlib
import os
import stat
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from obsidian_agent.bootstrap import Wiring, app_socket
from obsidian_agent.config.live import LiveSettings
from obsidian_agent.config.settings import Settings
from obsidian_agent.integrations import proposals
from obsidian_agent.integrations.proposals import (
    ClientProposal,
    Outcome,
    proposal_socket,
    propose,
    receive_proposals,
)
from obsidian_agent.vault.filesystem.store import VaultStore
from tui.driving import Driver, driving_real


def plan(note: str, tool: str = "vault.createFile", **args: Any) -> dict[str, Any]:
    step = {
        "id": "one",
        "tool": tool,
        "args": {"path": note, "content": "from elsewhere\n", **args},
    }
    return {"version": "1.0", "goal": f"Make {note}", "riskLevel": "writes", "steps": [step]}


@asynccontextmanager
async def app(tmp_path: Path, **settings: Any) -> AsyncIterator[tuple[Driver, Path, Path]]:
    """Open the app on an empty vault. Return it with the vault and its socket."""
    vault = tmp_path / "vault"
    vault.mkdir()
    with VaultStore.open(vault) as store:
        wiring = Wiring(
            store,
            tmp_path / "state",
            policy=None,
            settings=LiveSettings(current=Settings(**settings)),
        )
        async with driving_real(wiring) as driver:
            place = app_socket(wiring)
            await driver.until(place.exists)
            yield driver, vault, place


def asked(place: Path, note: str, client: str = "Claude [bold]") -> asyncio.Task[Outcome | None]:
    return asyncio.ensure_future(propose(place, ClientProposal(client, plan(note))))


async def shown(driver: Driver, note: str) -> None:
    await driver.until(
        lambda: (
            driver.stage == "plan"
            and f"Make {note}" in driver.plan_head()
            and driver.main.turn.pending is not None
        )
    )
    await driver.settle()
    driver.wait_out_grace()
    driver.panes.go("work")


@pytest.mark.parametrize("settings", [{}, {"confirm_writes": False}])
async def test_a_proposed_plan_is_shown_as_any_and_applied_by_the_key_alone(
    tmp_path: Path, settings: dict[str, Any]
) -> None:
    async with app(tmp_path, **settings) as (driver, vault, place):
        answer = asked(place, "A.md")
        await shown(driver, "A.md")
        assert "“Claude [bold]” proposes a plan" in driver.transcript()
        assert not (vault / "A.md").exists(), "also where plans of models need no question"
        await driver.press("a")
        outcome = await asyncio.wait_for(answer, 60)
        assert outcome is not None
        assert (outcome.status, bool(outcome.run_id)) == ("applied", True)
        assert (vault / "A.md").read_text() == "from elsewhere\n"


async def test_plans_come_one_after_the_other_and_each_client_hears_of_its_own(
    tmp_path: Path,
) -> None:
    async with app(tmp_path) as (driver, vault, place):
        first = asked(place, "A.md")
        await shown(driver, "A.md")
        second, withdrawn, third = (asked(place, name) for name in ("B.md", "C.md", "D.md"))
        await driver.until(lambda: len(driver.main._proposals._waiting) == 3)
        withdrawn.cancel()
        await driver.until(lambda: len(driver.main._proposals._waiting) == 2)
        await driver.until(lambda: "Make A.md" in driver.plan_head())
        await driver.press("r")
        await shown(driver, "B.md")
        assert (await first) == Outcome(
            "refused", "The user rejected the plan. Nothing was changed."
        )
        await driver.press("a")
        assert (done := await second) is not None
        assert done.status == "applied"
        await shown(driver, "D.md")
        await driver.press("r")
        assert (refused := await third) is not None
        assert refused.status == "refused"
    assert [each.name for each in vault.glob("*.md")] == ["B.md"]
    assert not place.exists()


async def test_an_app_that_ends_leaves_the_plan_to_the_client(tmp_path: Path) -> None:
    async with app(tmp_path) as (driver, _, place):
        answer = asked(place, "A.md")
        await shown(driver, "A.md")
    assert await asyncio.wait_for(answer, 60) is None
    assert await propose(place, ClientProposal("late", plan("B.md"))) is None


async def test_a_plan_that_cannot_be_done_is_shown_all_the_same_and_only_refused(
    tmp_path: Path,
) -> None:
    async with app(tmp_path) as (driver, vault, place):
        answer = asyncio.ensure_future(
            propose(place, ClientProposal("x", plan("A.md", "vault.updateFile", mode="append")))
        )
        await shown(driver, "A.md")
        await driver.press("a")
        assert not answer.done()
        await driver.press("r")
        assert (outcome := await answer) is not None
        assert (outcome.status, list(vault.glob("*.md"))) == ("refused", [])


# --- the socket itself ---


async def _takes(proposal: ClientProposal) -> Outcome:
    return Outcome("shown", proposal.client)


async def test_the_socket_is_private_and_only_one_listens(tmp_path: Path) -> None:
    place = tmp_path / ("deep" * 30) / "app.sock"
    async with proposal_socket(place, _takes) as open, proposal_socket(place, _takes) as second:
        assert (open, second) == (True, False)
        assert (
            stat.S_IMODE(os.stat(place).st_mode),
            stat.S_IMODE(os.stat(place.parent).st_mode),
        ) == (0o600, 0o700)
        assert await propose(place, ClientProposal("me", {})) == Outcome("shown", "me")
    assert os.listdir(place.parent) == ["sockets.lock"], (
        "one for all that this process and others ever listen at"
    )


async def test_who_waits_listens_when_the_one_before_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(proposals, "RETRY_SECONDS", 0.05)
    place, apps = tmp_path / "app.sock", {}

    def app_called(name: str) -> asyncio.Task[None]:
        async def takes(proposal: ClientProposal) -> Outcome:
            return Outcome("shown", name)

        return asyncio.create_task(receive_proposals(place, takes))

    for name in ("first", "second", "third"):
        apps[name] = app_called(name)
    while apps:
        for _ in range(200):
            if (outcome := await propose(place, ClientProposal("me", {}))) is not None:
                break
            await asyncio.sleep(0.05)
        assert outcome is not None
        gone = apps.pop(outcome.message)
        gone.cancel()
        await asyncio.wait([gone])
    assert not place.exists()


async def test_what_a_killed_program_left_behind_is_taken_over(tmp_path: Path) -> None:
    place = tmp_path / "app.sock"
    left = proposals._bind(place)
    assert left is not None
    left.close()
    assert place.exists()
    assert await propose(place, ClientProposal("me", {})) is None
    async with proposal_socket(place, _takes) as open:
        assert open
        assert await propose(place, ClientProposal("me", {})) == Outcome("shown", "me")


async def test_another_user_is_not_talked_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "app.sock"
    async with proposal_socket(place, _takes):
        uid = os.geteuid()
        monkeypatch.setattr(os, "geteuid", lambda: uid + 1)
        assert await propose(place, ClientProposal("me", {})) is None


@pytest.mark.parametrize(
    "line",
    [b"\n", b"[]\n", b'{"client": 1, "plan": {}}\n', b"\xff" * 100 + b"\n", b"x" * (5 << 20)],
)
async def test_what_is_no_proposal_is_dropped(tmp_path: Path, line: bytes) -> None:
    place = tmp_path / "app.sock"
    async with proposal_socket(place, _takes):
        reader, writer = await asyncio.open_unix_connection(place)
        writer.write(line)
        with contextlib.suppress(ConnectionError):
            assert await reader.read() == b""
        writer.close()
        assert await propose(place, ClientProposal("me", {})) == Outcome("shown", "me")
