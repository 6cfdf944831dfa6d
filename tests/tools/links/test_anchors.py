from __future__ import annotations

VAULT = {
    "Deep/a.md": (
        "# A\n\nSee [[#Log]] and [[#^one]].\n\n## Log\n\n[pic](x.png) [[x.png]] [[#A]] [[#Log]] [[Log note]] ![[../Other/b]]\nLine ^one\n\n"
        "- [ ] [task](x.png) ^two\n"
    ),
    "Deep/x.png": b"png",
    "Deep/Log note.md": "",
    "Other/b.md": "[[a#Log]] [[a#A]] [[a#^one|block]] [l](../Deep/a.md#Log)\n",
    "Other/Log note.md": "",
    "Other/x.png": b"other",
    "c.md": "[[a#^two]]\n",
}


def test_a_section_takes_its_links_along(bench):
    vault = bench(VAULT)
    text = vault.run("vault.takeSection", path="Deep/a.md", heading="Log", into="Other/New.md")["text"]
    assert text.split("\n")[2] == "[pic](Deep/x.png) [[Deep/x.png]] [[a#A]] [[#Log]] [[Deep/Log note]] ![[../Other/b]]"
    assert vault.text("Deep/a.md") == "# A\n\nSee [[New#Log]] and [[New#^one]].\n\n"
    assert vault.text("Other/b.md") == "[[New#Log]] [[a#A]] [[New#^one|block]] [l](New.md#Log)\n"
    assert vault.text("c.md") == "[[New#^two]]\n"


def test_links_to_a_section_that_becomes_a_note_lead_to_the_note(bench):
    vault = bench(VAULT)
    vault.run("vault.takeSection", path="Deep/a.md", heading="Log", into="Other/New.md", asNote=True)
    assert vault.text("Other/b.md") == "[[New]] [[a#A]] [[New#^one|block]] [l](New.md)\n"


def test_without_a_goal_nothing_is_written_anew(bench):
    vault = bench(VAULT)
    assert "[pic](x.png)" in vault.run("vault.takeSection", path="Deep/a.md", heading="Log")["text"]
    assert vault.changes() == [("modify", "Deep/a.md")]


def test_a_copied_body_leaves_other_notes_alone(bench):
    vault = bench(VAULT)
    body = vault.run("util.noteBody", path="Deep/a.md", into="c.md")["body"]
    assert "[pic](x.png) [[x.png]] [[#A]] [[#Log]] [[Log note]] ![[Other/b]]" in body  # the nearest names from there
    assert vault.changes() == []


def test_tasks_and_lines_take_their_links_along(bench):
    vault = bench(VAULT)
    assert vault.run("vault.takeTasks", path="Deep/a.md", into="c.md")["text"] == "- [ ] [task](x.png) ^two"
    assert vault.text("c.md") == "[[c#^two]]\n"
    vault = bench(VAULT)
    assert vault.run("vault.takeLines", path="Deep/a.md", text="task", into="c.md")["text"] == "- [ ] [task](x.png) ^two"
