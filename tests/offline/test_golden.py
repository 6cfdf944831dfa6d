"""Every recipe once, from a sentence to the exact effect, on the sample vault or a few files."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from obsidian_agent.agent.events import Answer
from obsidian_agent.offline.recipe import packaged
from offline.golden import desk, outcome
from offline_desk import NOW, Desk, effect
from support import MakeVault

CASES: list[dict[str, Any]] = [
    json.loads(line)
    for line in (Path(__file__).parent / "recipes.jsonl").read_text(encoding="utf-8").splitlines()
]

SMALL: dict[str, tuple[str, dict[str, str | bytes], Any]] = {
    "create-missing-notes": (
        'Create the missing notes that A links to in "New"',
        {"A.md": "[[Gone]]"},
        {"New": "mkdir", "New/Gone.md": ""},
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
        "All notes, last changed first: A (2026-01-01 01:00)\n- [[A]]: 2026-01-01 01:00",
    ),
    "postpone-tasks": (
        "Postpone everything overdue",
        {"A.md": "- [ ] a 📅 2020-01-01\n- [x] b 📅 2020-01-01\n- [ ] c 📅 2099-01-01\n"},
        {"A.md": "- [ ] a 📅 2026-03-14\n- [x] b 📅 2020-01-01\n- [ ] c 📅 2099-01-01\n"},
    ),
    "due-of-open-tasks": (
        "Set the due date of all open tasks in A to 2026-04-01",
        {"A.md": "- [ ] a 📅 2099-01-01\n- [x] b 📅 2020-01-01\n- [ ] c\n", "B.md": "- [ ] d\n"},
        {"A.md": "- [ ] a 📅 2026-04-01\n- [x] b 📅 2020-01-01\n- [ ] c 📅 2026-04-01\n"},
    ),
    "remove-ticked-tasks": (
        "Remove the ticked tasks from A",
        {"A.md": "- [x] a\n\t- why\n- [ ] b\n- [x] c\n\t- [ ] d\n\t- [X] e\n"},
        {"A.md": "- [ ] b\n- [x] c\n\t- [ ] d\n"},
    ),
    "rename-value": (
        'Rename the value "todo" of status to "next"',
        {"A.md": "---\nstatus: todo\n---\n", "B.md": '`= this.status = "todo"`'},
        {"A.md": "---\nstatus: next\n---\n", "B.md": '`= this.status = "next"`'},
    ),
    "unique-list": (
        "Remove duplicate bullets from A",
        {"A.md": "- x\n- y\n- x\n"},
        {"A.md": "- x\n- y\n"},
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
        assert [line.partition("20")[0] for line in lines] == [
            line.partition("20")[0] for line in expected.splitlines()
        ]
    else:
        assert effect(desk.preview(said)) == expected


def test_every_recipe_has_a_golden_case() -> None:
    assert {recipe.name for recipe in packaged()} == {
        case["recipe"] for case in CASES
    } | SMALL.keys()


def test_words_beside_a_finding_ask_first(make_vault: MakeVault) -> None:
    case = Desk(make_vault({"Projects/A.md": "[[Gone]]"}), now=NOW)
    for sentence in ("Fix the broken links in Projects", "Remove duplicate bullets from A"):
        event = case.decide(sentence)
        assert not isinstance(event, Answer)


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
