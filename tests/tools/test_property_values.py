from __future__ import annotations

import pytest

from obsidian_agent.tools.property_values import ADD_VALUES


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("x\n", "---\naliases:\n  - AL\n---\nx\n"),
        ("---\naliases: []\n---\n", None),
        ("---\naliases: Ada\n---\n", None),
        ("---\naliases:\n  - Ada\n---\n", "---\naliases:\n  - Ada\n  - AL\n---\n"),
    ],
)
def test_what_is_there_stays(bench, before, after):
    vault = bench({"n.md": before})
    answer = vault.run(ADD_VALUES, path="n.md", property="aliases", values=["AL", "AL"])
    assert answer["values"] == ([] if "Ada" not in before else ["Ada"]) + ["AL"]
    assert after is None or vault.text("n.md") == after


def test_nothing_new_changes_nothing(bench):
    vault = bench({"n.md": "---\naliases: [AL]\n---\n"})
    assert vault.run(ADD_VALUES, path="n.md", property="aliases", values=["AL"])["changed"] is False
    assert vault.changes() == []
