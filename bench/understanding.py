"""A score, not a test, of the sentences that the planner without a model understands.

right: the action was certain. asked: it is among the three to pick from. open: it is not. wrong:
another one was certain. Each line of `understanding.jsonl` holds `say`, the `recipe` that is meant,
and perhaps its `language`; the vault is the sample vault. No rule is added for one sentence.
"""

from __future__ import annotations

import json
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from bench.table import Row
from obsidian_agent.agent.events import NeedsInput
from obsidian_agent.agent.planner import PlanRequest
from obsidian_agent.offline.names import Surroundings
from obsidian_agent.offline.reader import match_examples
from obsidian_agent.services.focus import Focus
from obsidian_agent.services.offline_planner import OfflinePlanner
from obsidian_agent.services.run_context import run_context
from obsidian_agent.tools.registry import TOOLS
from obsidian_agent.vault.filesystem.store import VaultStore
from obsidian_agent.vault.views.disk import DiskView

SAMPLE = Path(__file__).parents[1] / "fixtures" / "vault"
NOW = datetime(2025, 12, 17, 10, tzinfo=UTC)

Outcome = Literal["right", "asked", "open", "wrong"]


def score() -> list[tuple[str, str, Outcome]]:
    """Each sentence with the recipe that is meant and what came of it."""
    lines = Path(__file__).with_suffix(".jsonl").read_text(encoding="utf-8").splitlines()
    with VaultStore.open(SAMPLE) as store:
        view = DiskView(store)
        planner = OfflinePlanner(lambda: view, TOOLS)
        context = run_context(store, view, Focus("Inbox.md"), NOW, {})
        found: list[tuple[str, str, Outcome]] = []
        for case in map(json.loads, lines):
            event = planner.decide(PlanRequest(case["say"], context))
            read = match_examples(case["say"], planner.recipes(), Surroundings(view, context))
            if len(read) == 1:
                outcome: Outcome = "right" if read[0].recipe.name == case["recipe"] else "wrong"
            else:
                offered = (
                    [each.recipe for each in event.candidates]
                    if isinstance(event, NeedsInput)
                    else []
                )
                outcome = "asked" if case["recipe"] in offered else "open"
            found.append((case["say"], case["recipe"], outcome))
    return found


def measure() -> list[Row]:
    """One row."""
    counted = Counter(outcome for _, _, outcome in score())
    told = ", ".join(f"{name} {counted[name]}" for name in ("right", "asked", "open", "wrong"))
    return [
        Row(
            "understanding",
            f"of {counted.total()} sentences, without a model",
            told,
            "",
            "",
            None,
            "wrong 0",
        )
    ]


if __name__ == "__main__":
    for said, recipe, outcome in score():
        print(f"{outcome:6} {recipe:20} {said}")
    print(measure()[0].ours)
