"""The person changes the arguments of a call before anything of its result is sent."""

from __future__ import annotations

from pathlib import Path

from agents import NOTES, Desk, call, calls, scripted
from obsidian_agent.agent.privacy.consent import ShareDecision, ShareRequest, SharingRules
from support import MakeVault

LOOK = (calls(call("vault__searchText", query="secret")), {"text": "Done."})


def changing(desk: Desk, *decisions: ShareDecision) -> None:
    """The person decides in this order, the last one for ever after."""
    left = list(decisions)

    def decide(request: ShareRequest) -> ShareDecision:
        return left.pop(0) if len(left) > 1 else left[0]

    desk.person.decide = decide


async def test_the_tool_looks_again_and_the_person_is_asked_again(make_vault: MakeVault, tmp_path: Path) -> None:
    desk, model = Desk(make_vault(NOTES), tmp_path), scripted(*LOOK)
    changing(desk, ShareDecision("no", args={"query": "soil"}), ShareDecision("once"))
    await desk.turn(model)
    assert [request.args["query"] for request in desk.person.asked] == ["secret", "soil"]
    result = model.requests[1].messages[-1].text
    assert "garden soil" in result
    assert "XK4711Q" not in result
    assert '"argumentsByThePerson": {"query": "soil"' in result


async def test_arguments_that_the_tool_does_not_take_send_nothing(make_vault: MakeVault, tmp_path: Path) -> None:
    desk, model = Desk(make_vault(NOTES), tmp_path), scripted(*LOOK)
    changing(desk, ShareDecision("no", args={"quer": "soil"}), ShareDecision("once"))
    await desk.turn(model)
    assert len(desk.person.asked) == 1
    result = model.requests[1].messages[-1].text
    assert "Unknown field" in result
    assert "soil" not in result.replace("'quer'", "")


async def test_changing_for_ever_ends_in_nothing(make_vault: MakeVault, tmp_path: Path) -> None:
    desk, model = Desk(make_vault(NOTES), tmp_path), scripted(*LOOK)
    changing(desk, ShareDecision("no", args={"query": "secret"}))
    await desk.turn(model)
    assert "XK4711Q" not in model.requests[1].messages[-1].text


async def test_what_is_denied_stays_so_whatever_the_arguments(make_vault: MakeVault, tmp_path: Path) -> None:
    desk, model = Desk(make_vault(NOTES), tmp_path, rules=SharingRules.of(deny=["Finance"])), scripted(*LOOK)
    changing(desk, ShareDecision("no", args={"query": "number"}), ShareDecision("once"))
    await desk.turn(model)
    assert "XK4711Q" not in model.requests[1].messages[-1].text
