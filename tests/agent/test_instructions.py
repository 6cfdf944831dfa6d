"""What becomes of instructions as people write them, on the sample vault (in full) and on real ones (by path).

Each line of the two files holds `say`, perhaps `active` and `lines` (the open note and its selected lines), and one outcome: `changes`,
`answer` with `sources`, `asks` (what is offered), or `refuses` (a code). `vault` names a real vault; a path stands for its new one with
"-> ", or for what is done with it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from obsidian_agent.agent.events import Answer, NeedsInput, PlanReady, TurnFailed
from obsidian_agent.providers.offline.recipe import packaged
from obsidian_agent.vault.disk import DiskView
from obsidian_agent.vault.store import VaultStore
from offline_desk import Desk, effect, lines

HERE = Path(__file__).parent
SAMPLE = Path(__file__).parents[2] / "fixtures" / "vault"
NOW = datetime(2025, 12, 17, 10, tzinfo=UTC)


def cases(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (HERE / name).read_text(encoding="utf-8").splitlines()]


@cache
def desk(vault: Path) -> Desk:
    store = VaultStore.open(vault)
    return Desk(store, now=NOW, kept=DiskView(store))


def outcome(vault: Path, case: Mapping[str, Any], *, full: bool) -> dict[str, Any]:
    """What comes of an instruction, as the files say it."""
    chosen = case.get("lines")
    active = case.get("active")
    selected = lines((vault / active).read_text(encoding="utf-8"), *chosen) if chosen and active else None
    event = desk(vault).decide(case["say"], active=active, selected=selected)
    match event:
        case PlanReady():
            done = desk(vault).dry_run(event.plan)
            if done.errors:
                return {"refuses": done.errors[0].code}
            changes = effect(done)
            return {"changes": changes if full else brief(done.change_set.changes)}
        case Answer():
            told = {"answer": event.text} if full else {"answer": event.text.split("\n")[0]}
            return told | {"sources": list(event.sources)}
        case NeedsInput():
            return {"asks": [candidate.title for candidate in event.candidates]}
        case TurnFailed():
            return {"refuses": event.problem.code}
        case _:
            raise AssertionError(event)


def brief(changes: Any) -> dict[str, str]:
    """Paths with what becomes of them; texts are left out."""
    return {change.path.text: f"-> {change.new_path.text}" if change.new_path is not None else change.kind for change in changes}


@pytest.mark.parametrize("case", cases("recipes.jsonl"), ids=lambda case: case["say"][:60])
def test_on_the_sample_vault(case: dict[str, Any]) -> None:
    expected = {key: case[key] for key in ("changes", "answer", "sources", "asks", "refuses") if key in case}
    assert outcome(SAMPLE, case, full=True) == expected


@pytest.mark.parametrize("case", cases("instructions.jsonl"), ids=lambda case: f"{case['vault']}: {case['say'][:60]}")
def test_on_real_vaults(case: dict[str, Any], shared: Path) -> None:
    vault = SAMPLE if case["vault"] == "sample" else shared / "data" / "vaults" / case["vault"]
    expected = {key: case[key] for key in ("changes", "answer", "sources", "asks", "refuses") if key in case}
    assert outcome(vault, case, full=False) == expected


def test_every_recipe_has_a_golden_case() -> None:
    told = {case["recipe"] for case in cases("recipes.jsonl")}
    assert {recipe.name for recipe in packaged()} - told == {"run-macro", "when-changed", "when-created"}  # test_offline.py, test_when.py
