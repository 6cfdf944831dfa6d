from __future__ import annotations

import pytest
from pydantic import ValidationError

from obsidian_agent.errors import ObsidianAgentError, ToolError

VAULT = {
    "a.md": "- [ ] #task/home call Ann 📅 2026-03-20\n- [x] #task paid\n- [ ] plain\n\n## Later\n\n- [-] #task dropped\n- [/] #task half [due:: 2026-03-01]\n",
    "b.md": "> - [ ] quoted #tasks\n\n```\n- [ ] code\n```\n",
    "sub/c.md": "- [ ] c (due:: 2026-04-01)\n",
}


def texts(bench, **args):
    return [item["text"] for item in bench(VAULT).run("vault.listTasks", **args)["items"]]


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        (
            {"path": "a.md"},
            ["#task/home call Ann 📅 2026-03-20", "plain", "#task half [due:: 2026-03-01]"],
        ),
        (
            {"path": "a.md", "tag": "#task"},
            ["#task/home call Ann 📅 2026-03-20", "#task half [due:: 2026-03-01]"],
        ),
        ({"path": "a.md", "status": "done"}, ["#task paid"]),
        (
            {"path": "a.md", "heading": "Later", "status": "all"},
            ["#task dropped", "#task half [due:: 2026-03-01]"],
        ),
        ({"text": "ann"}, ["#task/home call Ann 📅 2026-03-20"]),
        ({"folder": "sub"}, ["c (due:: 2026-04-01)"]),
        ({"dueBefore": "2026-03-20"}, ["#task half [due:: 2026-03-01]"]),
        ({"dueAfter": "2026-03-20"}, ["#task/home call Ann 📅 2026-03-20", "c (due:: 2026-04-01)"]),
        (
            {"files": [{"path": "sub/c.md"}, None, "b.md"]},
            ["c (due:: 2026-04-01)", "quoted #tasks"],
        ),
        ({"heading": "Later"}, ["#task half [due:: 2026-03-01]"]),
    ],
)
def test_which_tasks(bench, args, expected):
    assert texts(bench, **args) == expected


def test_what_is_told_of_a_task(bench):
    assert bench(VAULT).run("vault.listTasks", path="a.md")["items"][0] == {
        "path": "a.md",
        "name": "a",
        "text": "#task/home call Ann 📅 2026-03-20",
        "status": " ",
        "line": 1,
        "tags": ["task/home"],
        "due": "2026-03-20",
    }


def test_two_places_are_an_error(bench):
    with pytest.raises(ValueError, match="only one"):
        texts(bench, path="a.md", folder="sub")


def test_a_missing_heading_of_one_note_is_an_error(bench):
    with pytest.raises(ObsidianAgentError, match="no heading"):
        texts(bench, path="a.md", heading="Never")


NOTE = """---
status: open
---
# Day
- [ ] first
\t- [x] nested done
\t  more of it
- [x] ready
## Later
Some text
  - [ ] second

```
- [ ] code
```
> - [ ] quoted
"""


def test_mark_tasks_ticks_the_open_ones_and_nothing_else(bench):
    vault = bench({"n.md": NOTE})
    assert vault.run("vault.markTasks", path="n.md") == {"path": "n.md", "count": 3}
    expected = (
        NOTE.replace("- [ ] first", "- [x] first")
        .replace("- [ ] second", "- [x] second")
        .replace("- [ ] quoted", "- [x] quoted")
    )
    assert vault.text("n.md") == expected


def test_a_task_in_progress_is_open(bench):
    vault = bench({"n.md": "- [/] half\n- [>] forwarded\n- [-] dropped\n- [ ] a\n"})
    assert vault.run("vault.takeTasks", path="n.md")["text"] == "- [/] half\n- [ ] a"
    assert vault.text("n.md") == "- [>] forwarded\n- [-] dropped\n"
    vault = bench({"n.md": "- [/] half\n- [-] dropped\n- [ ] a\n"})
    assert vault.run("vault.markTasks", path="n.md")["count"] == 2
    assert vault.text("n.md") == "- [x] half\n- [-] dropped\n- [x] a\n"
    vault = bench({"n.md": "- [/] half\n- [ ] a\n"})
    assert vault.run("vault.markTasks", path="n.md", status="/")["count"] == 1


def test_the_task_whose_text_it_is_comes_before_those_that_hold_it(bench):
    vault = bench({"n.md": "- [ ] pay rent\n- [ ] Pay\n- [ ] pay Ada\n"})
    assert vault.run("vault.markTasks", path="n.md", text="pay")["count"] == 1
    assert vault.text("n.md") == "- [ ] pay rent\n- [x] Pay\n- [ ] pay Ada\n"
    assert vault.run("vault.setTaskDue", path="n.md", text="Pay", due="2026-01-02")["line"] == 2
    assert vault.run("vault.markTasks", path="n.md", text="pay")["count"] == 2


def test_mark_tasks_stays_in_the_section(bench):
    vault = bench({"n.md": NOTE.replace("\n", "\r\n")})
    vault.run("vault.markTasks", path="n.md", heading="Later", status="-")
    assert vault.text("n.md").count("[-]") == 2
    assert "- [ ] first\r\n" in vault.text("n.md")


def test_mark_tasks_without_open_tasks_changes_nothing(bench):
    vault = bench({"n.md": "- [x] a\n"})
    assert vault.run("vault.markTasks", path="n.md")["count"] == 0
    assert vault.changes() == []


def test_a_missing_heading_is_an_error(bench):
    assert (
        bench({"n.md": NOTE}).refusal("vault.markTasks", path="n.md", heading="Never")
        == "MARKER_NOT_FOUND"
    )


def test_take_tasks_takes_what_is_nested_and_leaves_the_rest(bench):
    vault = bench({"n.md": NOTE})
    output = vault.run("vault.takeTasks", path="n.md")
    assert output["text"] == "- [ ] first\n\t- [x] nested done\n\t  more of it\n- [ ] second"
    assert [item["text"] for item in output["items"]] == ["first", "second"]
    assert vault.text("n.md") == (
        "---\nstatus: open\n---\n# Day\n- [x] ready\n## Later\nSome text\n\n```\n- [ ] code\n```\n> - [ ] quoted\n"
    )


def test_take_tasks_keeps_the_line_ends_of_what_stays(bench):
    vault = bench({"n.md": "a\r\n- [ ] t\r\nb\r\n"})
    assert vault.run("vault.takeTasks", path="n.md")["text"] == "- [ ] t"
    assert vault.text("n.md") == "a\r\nb\r\n"


def test_one_task_by_its_text(bench):
    vault = bench({"n.md": NOTE})
    assert vault.run("vault.markTasks", path="n.md", text="Second", expectCount=1)["count"] == 1
    assert "- [x] second" in vault.text("n.md")
    assert (
        vault.refusal("vault.markTasks", path="n.md", text="sec", expectCount=1) == "COUNT_MISMATCH"
    )


@pytest.mark.parametrize(
    ("leave", "rest"),
    [
        ("nothing", "# Mon\n"),
        ("mark", "# Mon\n- [>] a\n* [>] b\n"),
        ("link", "# Mon\n- [>] a [[into]]\n* [>] b [[into]]\n"),
    ],
)
def test_take_tasks_leaves_what_is_asked_for(bench, leave, rest):
    vault = bench({"n.md": "# Mon\n- [ ] a ^id\n\t- more\n* [/] b\n", "into.md": ""})
    vault.run("vault.takeTasks", path="n.md", into="into.md", leave=leave)
    assert vault.text("n.md") == rest


def test_a_task_that_a_template_has_given_the_other_note_is_not_taken_twice(bench):
    vault = bench({"n.md": "- [ ] water\n- [ ] call\n- [ ] tidy\n", "into.md": "- [ ] water\n"})
    template = "- [ ] water\n- [ ] tidy\n"
    output = vault.run("vault.takeTasks", path="n.md", into="into.md", known=template)
    assert [item["text"] for item in output["items"]] == ["call", "tidy"]
    assert vault.text("n.md") == ""


def test_overdue_tasks_are_postponed_and_nothing_else(bench):
    note = "- [ ] a 📅 2026-03-13\n- [x] b 📅 2026-03-13\n- [/] c [due:: 2026-01-01]\n- [ ] d\n"
    vault = bench(
        {"n.md": note, "o.md": "- [ ] e 📅 2026-03-14\n```\n- [ ] f 📅 2020-01-01\n```\n"}
    )
    output = vault.run("vault.postponeTasks", due="2026-03-20")
    assert output == {"files": [{"path": "n.md", "count": 2}], "total": 2}
    assert vault.text("n.md") == (
        "- [ ] a 📅 2026-03-20\n- [x] b 📅 2026-03-13\n- [/] c [due:: 2026-03-20]\n- [ ] d\n"
    )
    vault.run("vault.postponeTasks", path="n.md", due="2026-03-21", every=True)
    assert vault.text("n.md").count("2026-03-21") == 3


def test_of_equal_tasks_the_one_nearest_to_a_line(bench):
    task = "- [ ] call 📅 2026-03-01\n"
    vault = bench({"n.md": f"{task}{task}- [x] call 📅 2026-03-01\n"})
    call = {"path": "n.md", "text": "call 📅 2026-03-01"}
    assert vault.run("vault.setTaskDue", line=2, due="2026-03-14", **call)["line"] == 2
    assert vault.run("vault.markTasks", line=9, **call)["count"] == 1
    assert vault.text("n.md").splitlines()[0] == "- [x] call 📅 2026-03-01"


def test_tasks_are_told_by_the_heading_that_both_notes_have(bench):
    note = "# Mon\n\n- [ ] first\n\n## Tasks\n\n- [ ] a\n\t- more\n- [x] old\n\n### Late\n\n- [ ] b\n\n## Only here\n\n- [ ] c\n"
    vault = bench({"from.md": note, "into.md": "# Tue\n\n## Tasks\n\n## Ideas\n"})
    groups = vault.run("vault.takeTasks", path="from.md", into="into.md")["groups"]
    assert groups == [
        {"heading": "", "text": "- [ ] first\n- [ ] c"},
        {"heading": "Tasks", "text": "- [ ] a\n\t- more\n- [ ] b"},
    ]


@pytest.mark.parametrize(
    ("note", "args", "after"),
    [
        ("* [ ] a\n", {}, "* [ ] a\n* [ ] new\n"),
        (
            "- [ ] a\n",
            {"due": "2026-03-20", "priority": "high"},
            "- [ ] a\n- [ ] new ⏫ 📅 2026-03-20\n",
        ),
        (
            "- [ ] a [due:: 2026-01-01]\n",
            {"due": "2026-03-20"},
            "- [ ] a [due:: 2026-01-01]\n- [ ] new [due:: 2026-03-20]\n",
        ),
        ("- [ ] a\n", {"at": "start"}, "- [ ] new\n- [ ] a\n"),
        ("# A\n\n- [ ] a\n\n# B\n\nend\n", {}, "# A\n\n- [ ] a\n- [ ] new\n\n# B\n\nend\n"),
        (
            "# A\n\n- [ ] a\n\n# B\n\n- [ ] b\n\nend\n",
            {},
            "# A\n\n- [ ] a\n\n# B\n\n- [ ] b\n\nend\n- [ ] new\n",
        ),
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
    vault = bench(
        {"a.md": "- [ ] one 📅 2026-01-01 🔁 every week\n- [ ] two b ^id\n- [ ] two three\n"}
    )
    vault.run("vault.setTaskDue", path="a.md", text="one", due="2026-03-20")
    vault.run("vault.setTaskDue", path="a.md", text="three", due="2026-03-21")
    assert (
        vault.text("a.md")
        == "- [ ] one 📅 2026-03-20 🔁 every week\n- [ ] two b ^id\n- [ ] two three 📅 2026-03-21\n"
    )
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
        (
            "- [ ] a ^id\n- [x] b ✅ 2026-01-01\n",
            "- [x] a ✅ 2026-03-14 ^id\n- [x] b ✅ 2026-01-01\n",
        ),
        ("- [ ] a 📅 2026-03-15\n", "- [x] a 📅 2026-03-15 ✅ 2026-03-14\n"),
        (
            "- [ ] a\n- [x] b [completion:: 2026-01-01]\n",
            "- [x] a [completion:: 2026-03-14]\n- [x] b [completion:: 2026-01-01]\n",
        ),
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
    assert (
        vault.text("a.md") == "- [x] water the plants\n- [x] water all the plants\n- [ ] plants\n"
    )


def test_tasks(bench):
    output = bench({"a.md": "- [ ] a\n- b\n  * [x] c\n"}).run("util.parseTasks", path="a.md")
    assert output == {
        "items": [{"text": "a", "status": " ", "line": 1}, {"text": "c", "status": "x", "line": 3}],
        "count": 2,
    }
