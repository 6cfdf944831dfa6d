from __future__ import annotations

import pytest

from obsidian_agent.errors import ToolError

VAULT = {
    "a.md": "# Top\n\n## Old: one ##\n\n### Deep\n\n## Next\n\nSee [[#Old one]].\n",
    "b.md": '---\nat: "[[a#Old one]]"\n---\n[[a#Old: one|x]] [[a#Top#Old one#Deep]] [y](a.md#Old%20one) [[a#Next]] [[a#^block]]\n',
}


def test_links_follow_the_words_of_a_heading(bench):
    vault = bench(VAULT)
    answer = vault.run("vault.changeHeading", path="a.md", heading="Old: one", to="New #1")
    assert answer == {"path": "a.md", "heading": "New #1", "level": 2, "linksUpdated": 5}
    assert vault.text("a.md") == VAULT["a.md"].replace("Old: one", "New #1").replace("#Old one]]", "#New 1]]")
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
