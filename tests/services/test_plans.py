"""Plans over a vault, as front ends ask for them."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest
from msgspec.structs import replace

from obsidian_agent.agent.events import AgentEvent, TurnFailed
from obsidian_agent.bootstrap import Wiring, build_session
from obsidian_agent.services.plans import PreviewOptions
from obsidian_agent.tools.search import search
from support import MakeVault


async def test_a_preview_ends_when_its_turn_is_cancelled(
    make_vault: MakeVault, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, seen = threading.Event(), list[AgentEvent]()
    compiled = search.compile_pattern

    def compile_pattern(source: str, *, literal: bool, case_sensitive: bool) -> search.TimedPattern:
        begun.set()
        pattern = compiled(source, literal=literal, case_sensitive=case_sensitive)
        return replace(pattern, seconds_left=0.05)

    async def emit(event: AgentEvent) -> None:
        seen.append(event)

    monkeypatch.setattr(search, "compile_pattern", compile_pattern)
    step = {
        "id": "slow",
        "tool": "vault.searchText",
        "foreach": {"from": list(range(10_000)), "itemName": "round"},
        "onError": "skip",
        "args": {"query": "(a|aa)+$", "regex": True},
    }
    plan = {"version": "1.0", "goal": "Wait", "riskLevel": "read-only", "steps": [step]}
    session = build_session(Wiring(make_vault({"a.md": "a" * 40 + "b"}), tmp_path / "state"))
    turn = asyncio.create_task(session.plans.preview(plan, {}, PreviewOptions(), emit))
    assert await asyncio.to_thread(begun.wait, 60)
    turn.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(turn, 60)
    assert not [event for event in seen if not isinstance(event, TurnFailed)]
