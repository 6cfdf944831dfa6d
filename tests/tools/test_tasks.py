from __future__ import annotations

import pytest

from obsidian_agent.errors import ObsidianAgentError

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
    expected = NOTE.replace("- [ ] first", "- [x] first").replace("- [ ] second", "- [x] second").replace("- [ ] quoted", "- [x] quoted")
    assert vault.text("n.md") == expected


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
    with pytest.raises(ObsidianAgentError) as caught:
        bench({"n.md": NOTE}).run("vault.markTasks", path="n.md", heading="Never")
    assert caught.value.code == "MARKER_NOT_FOUND"


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
    with pytest.raises(ObsidianAgentError) as caught:
        vault.run("vault.markTasks", path="n.md", text="sec", expectCount=1)
    assert caught.value.code == "COUNT_MISMATCH"


def test_tasks_are_told_by_the_heading_that_both_notes_have(bench):
    note = "# Mon\n\n- [ ] first\n\n## Tasks\n\n- [ ] a\n\t- more\n- [x] old\n\n### Late\n\n- [ ] b\n\n## Only here\n\n- [ ] c\n"
    vault = bench({"from.md": note, "into.md": "# Tue\n\n## Tasks\n\n## Ideas\n"})
    groups = vault.run("vault.takeTasks", path="from.md", into="into.md")["groups"]
    assert groups == [
        {"heading": "", "text": "- [ ] first\n- [ ] c"},
        {"heading": "Tasks", "text": "- [ ] a\n\t- more\n- [ ] b"},
    ]
