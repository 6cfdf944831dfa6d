from __future__ import annotations

import pytest


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
    answer = vault.run("vault.addValues", path="n.md", property="aliases", values=["AL", "AL"])
    assert answer["values"] == ([] if "Ada" not in before else ["Ada"]) + ["AL"]
    assert after is None or vault.text("n.md") == after


def test_nothing_new_changes_nothing(bench):
    vault = bench({"n.md": "---\naliases: [AL]\n---\n"})
    assert vault.run("vault.addValues", path="n.md", property="aliases", values=["AL"])["changed"] is False
    assert vault.changes() == []


def test_values_are_taken_out_and_the_others_stay(bench):
    vault = bench({"a.md": '---\nby: ["[[Ann Lee|Ann]]", Bo, Cy]\none: x\n---\n'})
    assert vault.run("vault.removeValues", path="a.md", property="by", values=["ann lee", "CY"])["values"] == ["Bo"]
    assert vault.text("a.md") == "---\nby: [Bo]\none: x\n---\n"
    vault.run("vault.removeValues", path="a.md", property="by", values=["Bo"])
    vault.run("vault.removeValues", path="a.md", property="one", values=["x"])
    assert vault.text("a.md") == "---\nby: []\none:\n---\n"
    assert vault.run("vault.removeValues", path="a.md", property="by", values=["Bo"])["changed"] is False
    assert vault.warnings == ["TEXT_NOT_FOUND"]
