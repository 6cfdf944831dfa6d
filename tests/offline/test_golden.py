"""Each recipe once, from a sentence to the exact effect: on the sample vault, or on the few files that a case needs."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from obsidian_agent.agent.events import NeedsInput
from obsidian_agent.offline.recipe import packaged, recipe_named
from offline.golden import desk, outcome
from offline_desk import NOW, Desk, effect
from support import MakeVault

CASES: list[dict[str, Any]] = [
    json.loads(line)
    for line in (Path(__file__).parent / "recipes.jsonl").read_text(encoding="utf-8").splitlines()
]

SMALL: dict[str, tuple[str, dict[str, str | bytes], Any]] = {
    "broken-links": (
        "Which links are broken?",
        {"A.md": "[[B]] [[Gone]]", "B.md": ""},
        "broken links in all notes: 1\n- Gone (in A.md)",
    ),
    "create-missing-notes": (
        'Create the missing notes that A links to in "New"',
        {"A.md": "[[Gone]]"},
        {"New": "mkdir", "New/Gone.md": ""},
    ),
    "find-duplicates": (
        "Do I have duplicate notes?",
        {"A.md": "same", "B.md": "same"},
        "notes with the same text in the vault: 2\n- A.md\n- B.md",
    ),
    "fix-links": (
        "Fix broken links",
        {"A.md": "[[sour-dough]] and [[Zettel kasten]]", "Sourdough.md": "", "Zettelkasten.md": ""},
        {"A.md": "[[Sourdough]] and [[Zettelkasten]]"},
    ),
    "link-mentions": (
        "Link all mentions of Bob Stone",
        {"A.md": "bob stone said", "Bob Stone.md": ""},
        {"A.md": "[[Bob Stone|bob stone]] said"},
    ),
    "properties-from-fields": (
        "Turn the inline fields of A into properties",
        {"A.md": "area:: home\n"},
        {"A.md": "---\narea: home\n---\n"},
    ),
    "recent-notes": (
        "Which notes did I change last?",
        {"A.md": ""},
        "recently changed: all notes: 1\n- A.md (2026-01-01 01:00)",
    ),
    "unique-list": (
        "Remove duplicate bullets from A",
        {"A.md": "- x\n- y\n- x\n"},
        {"A.md": "- x\n- y\n"},
    ),
    "unused-attachments": (
        "Which attachments are unused?",
        {"A.md": "![[a.png]]", "a.png": b"1", "b.png": b"2"},
        "attachments that nothing links to: 1\n- b.png",
    ),
}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["recipe"])
def test_on_the_sample_vault(case: dict[str, Any]) -> None:
    expected = {
        key: case[key]
        for key in ("changes", "answer", "sources", "asks", "refuses", "doubt")
        if key in case
    }
    assert outcome(case) == expected


@pytest.mark.parametrize("recipe", SMALL)
def test_on_a_few_files(recipe: str, make_vault: MakeVault) -> None:
    said, files, expected = SMALL[recipe]
    desk = Desk(make_vault(files))
    if isinstance(expected, str):
        lines = desk.ask(said).text.splitlines()
        assert [line.partition(" (20")[0] for line in lines] == [
            line.partition(" (20")[0] for line in expected.splitlines()
        ]
    else:
        found = recipe_named(recipe, packaged())
        assert found is not None
        assert effect(desk.preview(said, pick=1 if found.doubt else None)) == expected


def test_every_recipe_has_a_golden_case() -> None:
    assert {recipe.name for recipe in packaged()} == {
        case["recipe"] for case in CASES
    } | SMALL.keys()


def test_each_link_to_fix_is_a_step_that_can_be_left_out(make_vault: MakeVault) -> None:
    files: dict[str, str | bytes] = {
        "A.md": "[[Sour-dough]] and [[zettel kasten]] and [[OR]]",
        "Sourdough.md": "",
        "Zettelkasten.md": "",
        "XOR.md": "",
    }
    plan = Desk(make_vault(files), now=NOW).plan("Fix broken links", pick=1)
    assert [step.preview for step in plan.steps[2:]] == [
        "Change Sour-dough to Sourdough.md",
        "Change zettel kasten to Zettelkasten.md",
    ]


def test_links_are_never_fixed_unasked(make_vault: MakeVault) -> None:
    desk = Desk(make_vault({"A.md": "[[Sour-dough]]", "Sourdough.md": ""}), now=NOW)
    for values in ({}, {"notes": "A"}):
        event = desk.decide("Fix broken links", **values)
        assert isinstance(event, NeedsInput)
        assert event.candidates[0].recipe == "fix-links"
        assert "spelling" in event.candidates[0].doubt


@pytest.mark.parametrize(
    ("today", "source"),
    [
        ("2025-12-13", "2025-12-12"),
        ("2025-12-16", "2025-12-15"),
        ("2025-12-17", "2025-12-16"),
        ("2025-12-18", "2025-12-17"),
        ("2025-12-22", "2025-12-17"),
        ("2026-11-23", "2025-12-17"),
        ("2028-02-29", "2025-12-17"),
        ("2031-01-01", "2025-12-17"),
    ],
)
def test_tasks_roll_over_on_the_sample_vault_on_any_day(today: str, source: str) -> None:
    day = replace(desk(), now=datetime.fromisoformat(f"{today}T09:00:00+00:00"))
    preview = day.preview("Roll over the open tasks of yesterday's daily note into today's")
    assert not preview.errors
    changed = {change.path.text for change in preview.change_set.changes}
    assert changed == {f"Daily/{source}.md", f"Daily/{today}.md"}
