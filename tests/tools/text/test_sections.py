from __future__ import annotations

import pytest
from pydantic import ValidationError

from obsidian_agent.errors import ObsidianAgentError, ToolError

VAULT = {
    "a.md": "# Top\n\n## Old: one ##\n\n### Deep\n\n## Next\n\nSee [[#Old one]].\n",
    "b.md": '---\nat: "[[a#Old one]]"\n---\n[[a#Old: one|x]] [[a#Top#Old one#Deep]] [y](a.md#Old%20one) [[a#Next]] [[a#^block]]\n',
}


def test_links_follow_the_words_of_a_heading(bench):
    vault = bench(VAULT)
    answer = vault.run("vault.changeHeading", path="a.md", heading="Old: one", to="New #1")
    assert answer == {"path": "a.md", "heading": "New #1", "level": 2, "linksUpdated": 5}
    assert vault.text("a.md") == VAULT["a.md"].replace("Old: one", "New #1").replace(
        "#Old one]]", "#New 1]]"
    )
    assert vault.text("b.md") == (
        '---\nat: "[[a#New 1]]"\n---\n[[a#New 1|x]] [[a#Top#New 1#Deep]] [y](a.md#New%201) [[a#Next]] [[a#^block]]\n'
    )


def test_a_level_takes_the_section_along(bench):
    vault = bench(VAULT)
    vault.run("vault.changeHeading", path="a.md", heading="Old: one", level=1)
    assert vault.text("a.md").startswith("# Top\n\n# Old: one ##\n\n## Deep\n\n## Next\n")
    assert vault.changes() == [("modify", "a.md")]


def test_underlined_headings_get_marks(bench):
    vault = bench({"a.md": "Title\n=====\n\nText\n"})
    vault.run("vault.changeHeading", path="a.md", heading="Title", level=2)
    assert vault.text("a.md") == "## Title\n\nText\n"


def test_links_stay_where_another_heading_of_the_name_is_left(bench):
    vault = bench({"a.md": "# X\n# X\n", "b.md": "[[a#X]]\n"})
    assert vault.run("vault.changeHeading", path="a.md", heading="X", to="Y")["linksUpdated"] == 0


def test_all_levels_or_one(bench):
    vault = bench(VAULT)
    assert vault.run("vault.shiftHeadings", path="a.md", by=1)["count"] == 4
    assert vault.text("a.md").startswith("## Top\n\n### Old: one ##\n\n#### Deep\n\n### Next\n")
    vault.run("vault.shiftHeadings", path="a.md", fromLevel=3, toLevel=1)
    assert vault.text("a.md").startswith("## Top\n\n# Old: one ##\n\n#### Deep\n\n# Next\n")


def test_there_are_six_levels(bench):
    with pytest.raises(ToolError):
        bench(VAULT).run("vault.shiftHeadings", path="a.md", by=-1)
    with pytest.raises(ToolError):
        bench(VAULT).run("vault.changeHeading", path="a.md", heading="No", to="x")


NOTE = "# Top\n\nintro\n\n## Log\n\n- a\n\n### Deep\n\ntext\n\n## Rest\n\nend\n"


def test_a_section_goes_with_what_is_below_it(bench):
    vault = bench({"n.md": NOTE})
    answer = vault.run("vault.takeSection", path="n.md", heading="Log")
    assert (answer["text"], answer["content"], answer["level"]) == (
        "## Log\n\n- a\n\n### Deep\n\ntext",
        "- a\n\n### Deep\n\ntext",
        2,
    )
    assert vault.text("n.md") == "# Top\n\nintro\n\n## Rest\n\nend\n"


def test_the_last_section_of_a_note_with_windows_line_ends(bench):
    vault = bench({"n.md": NOTE.replace("\n", "\r\n")})
    assert vault.run("vault.takeSection", path="n.md", heading="Rest")["text"] == "## Rest\n\nend"
    assert vault.text("n.md").endswith("text\r\n\r\n")


def test_something_may_take_its_place(bench):
    vault = bench({"n.md": NOTE})
    vault.run("vault.takeSection", path="n.md", heading="Log", replacement="[[Log]]")
    assert vault.text("n.md") == "# Top\n\nintro\n\n[[Log]]\n\n## Rest\n\nend\n"


def test_a_missing_section_is_an_error(bench):
    with pytest.raises(ObsidianAgentError, match="Never"):
        bench({"n.md": NOTE}).run("vault.takeSection", path="n.md", heading="Never")


def test_outline_is_indented_below_its_highest_level(bench):
    assert bench({"n.md": NOTE}).run("util.outline", path="n.md", skip=["rest"]) == {
        "text": "- [[#Top]]\n    - [[#Log]]\n        - [[#Deep]]",
        "count": 3,
        "title": "Top",
        "bare": False,
    }


def test_outline_of_some_levels_as_text(bench):
    assert (
        bench().run("util.outline", text=NOTE, minLevel=2, maxLevel=2, links=False)["text"]
        == "- Log\n- Rest"
    )


def test_headings_that_a_link_cannot_hold(bench):
    text = "# A [[b]] | c\n"
    assert bench().run("util.outline", text=text)["text"] == "- [[#A b c|A b - c]]"


def test_the_title_can_be_left_out(bench):
    assert (
        bench().run("util.outline", text=NOTE, skipTitle=True)["text"]
        == "- [[#Log]]\n    - [[#Deep]]\n- [[#Rest]]"
    )
    assert bench().run("util.outline", text="# A\n# B\n", skipTitle=True)["count"] == 2


@pytest.mark.parametrize(
    ("text", "body"),
    [
        ("---\na: 1\n---\n\n# T\n\ntext\n", "# T\n\ntext"),
        ("# T\n", "# T"),
        ("---\nnot closed\n", "---\nnot closed"),
        ("---\r\na: 1\r\n---\r\n  x\r\n", "  x"),
        ("", ""),
    ],
)
def test_the_body_is_what_stands_below_the_properties(bench, text, body):
    assert bench({"n.md": text}).run("util.noteBody", path="n.md") == {"path": "n.md", "body": body}


HEADINGS = "# One\n\nfirst\n\n## Sub part\r\nsecond\n\n# Two\n"


def test_headings(bench):
    output = bench().run("util.parseHeadings", text=HEADINGS)
    assert output["count"] == 3
    assert output["items"][0] == {
        "text": "One",
        "level": 1,
        "slug": "one",
        "content": "first\n\n## Sub part\r\nsecond",
        "line": 1,
    }
    assert [(item["text"], item["content"], item["line"]) for item in output["items"][1:]] == [
        ("Sub part", "second", 5),
        ("Two", "", 8),
    ]


def test_headings_of_one_level_in_a_file(bench):
    output = bench({"a.md": HEADINGS}).run("util.parseHeadings", path="a.md", level=2)
    assert [item["text"] for item in output["items"]] == ["Sub part"]


@pytest.mark.parametrize("tool", ["util.parseHeadings", "util.parseTasks"])
def test_text_or_path(bench, tool):
    for wrong in ({}, {"text": "x", "path": "a.md"}):
        with pytest.raises(ValidationError):
            bench().run(tool, **wrong)
    assert bench().refusal(tool, path="no.md") == "FILE_NOT_FOUND"
