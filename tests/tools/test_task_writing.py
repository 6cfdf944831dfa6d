from __future__ import annotations

import pytest
from pydantic import ValidationError

from obsidian_agent.errors import ToolError


@pytest.mark.parametrize(
    ("note", "args", "after"),
    [
        ("* [ ] a\n", {}, "* [ ] a\n* [ ] new\n"),
        ("- [ ] a\n", {"due": "2026-03-20", "priority": "high"}, "- [ ] a\n- [ ] new ⏫ 📅 2026-03-20\n"),
        ("- [ ] a [due:: 2026-01-01]\n", {"due": "2026-03-20"}, "- [ ] a [due:: 2026-01-01]\n- [ ] new [due:: 2026-03-20]\n"),
        ("- [ ] a\n", {"at": "start"}, "- [ ] new\n- [ ] a\n"),
        ("# A\n\n- [ ] a\n\n# B\n\nend\n", {}, "# A\n\n- [ ] a\n- [ ] new\n\n# B\n\nend\n"),
        ("# A\n\n- [ ] a\n\n# B\n\n- [ ] b\n\nend\n", {}, "# A\n\n- [ ] a\n\n# B\n\n- [ ] b\n\nend\n- [ ] new\n"),
    ],
)
def test_a_task_is_written_as_those_around(bench, note, args, after):
    vault = bench({"a.md": note})
    vault.run("vault.addTask", path="a.md", text="new", **args)
    assert vault.text("a.md") == after


def test_the_folder_tells_where_the_note_does_not(bench):
    vault = bench({"x/a.md": "", "x/b.md": "- [ ] b [due:: 2026-01-01]\n"})
    vault.run("vault.addTask", path="x/a.md", text="new", due="2026-03-20")
    assert vault.text("x/a.md") == "- [ ] new [due:: 2026-03-20]\n"


def test_a_due_date_is_changed_or_added(bench):
    vault = bench({"a.md": "- [ ] one 📅 2026-01-01 🔁 every week\n- [ ] two ^id\n- [ ] two three\n"})
    vault.run("vault.setTaskDue", path="a.md", text="one", due="2026-03-20")
    vault.run("vault.setTaskDue", path="a.md", text="three", due="2026-03-21")
    assert vault.text("a.md") == "- [ ] one 📅 2026-03-20 🔁 every week\n- [ ] two ^id\n- [ ] two three 📅 2026-03-21\n"
    with pytest.raises(ToolError):
        vault.run("vault.setTaskDue", path="a.md", text="two", due="2026-03-21")
    with pytest.raises(ToolError):
        vault.run("vault.setTaskDue", path="a.md", text="four", due="2026-03-21")
    with pytest.raises(ValidationError):
        vault.run("vault.setTaskDue", path="a.md", text="three", due="soon")


@pytest.mark.parametrize(
    ("note", "after"),
    [
        ("- [ ] a\n- [x] b\n", "- [x] a\n- [x] b\n"),
        ("- [ ] a ^id\n- [x] b ✅ 2026-01-01\n", "- [x] a ✅ 2026-03-14 ^id\n- [x] b ✅ 2026-01-01\n"),
        ("- [ ] a 📅 2026-03-15\n", "- [x] a 📅 2026-03-15 ✅ 2026-03-14\n"),
        ("- [ ] a\n- [x] b [completion:: 2026-01-01]\n", "- [x] a [completion:: 2026-03-14]\n- [x] b [completion:: 2026-01-01]\n"),
    ],
)
def test_done_tasks_get_the_day_where_others_have_it(bench, note, after):
    vault = bench({"x/a.md": note, "x/b.md": "- [x] other 📅 2026-01-01 ✅ 2026-01-01\n"})
    vault.run("vault.markTasks", path="x/a.md")
    assert vault.text("x/a.md") == after


def test_a_reopened_task_loses_the_day_and_recurring_ones_are_told(bench):
    vault = bench({"a.md": "- [x] a 📅 2026-01-01 ✅ 2026-01-02\n- [ ] b 🔁 every day\n"})
    vault.run("vault.markTasks", path="a.md", status=" ", only="x")
    assert vault.text("a.md").startswith("- [ ] a 📅 2026-01-01\n")
    vault.run("vault.markTasks", path="a.md", text="b", doneDate="never")
    assert vault.warnings == ["RECURRING_TASK"]
    assert vault.text("a.md").endswith("- [x] b 🔁 every day\n")


def test_a_task_is_found_by_its_words_where_the_text_stands_nowhere(bench):
    vault = bench({"a.md": "- [x] water the plants\n- [ ] water all the plants\n- [ ] plants\n"})
    vault.run("vault.markTasks", path="a.md", text="the plants to water", expectCount=1)
    assert vault.text("a.md") == "- [x] water the plants\n- [x] water all the plants\n- [ ] plants\n"
