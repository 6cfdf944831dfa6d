"""A session prepares for its model, and for nothing else."""

from __future__ import annotations

import sys
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from agents import NOTES
from obsidian_agent.bootstrap import Wiring, build_session
from obsidian_agent.plan.flags import Policy
from support import MakeVault


@pytest.mark.parametrize("model", [None, "scripted/nothing.jsonl", "nonsense"])
def test_without_a_service_nothing_is_imported_and_nothing_fails(make_vault: MakeVault, tmp_path: Path, model: str | None) -> None:
    before = set(sys.modules)
    session = build_session(Wiring(make_vault(NOTES), tmp_path / "state", model=model, offline=model is None))
    session.warm_up()
    for thread in threading.enumerate():
        if thread.name == "warming-up":
            thread.join()
    if "litellm" not in before and model != "nonsense":
        assert "litellm" not in sys.modules


def test_what_can_run_commands_is_asked_to_once_they_are_approved(make_vault: MakeVault, tmp_path: Path) -> None:
    session = build_session(Wiring(make_vault(NOTES), tmp_path / "state", Policy(allow_commands=True)))
    step = {"id": "c", "tool": "commands.run", "args": {"id": "app:reload"}}
    document = {"version": "1.0", "goal": "g", "riskLevel": "commands", "steps": [step]}
    assert [error.code for error in session.plans.dry_run(document).errors] == ["COMMANDS_UNAVAILABLE"]
    asked: list[str] = []

    def run_command(command: str) -> dict[str, object]:
        asked.append(command)
        return {"id": command, "executed": True}

    plans = replace(session.plans, run_command=run_command)
    ready = plans.dry_run(document)
    assert (ready.valid, [flag.kind for flag in ready.flags], asked) == (True, ["opaque"], [])
    assert plans.apply(ready, lambda _: None, threading.Event()).effects.commands == ("app:reload",)
    assert asked == ["app:reload"]
