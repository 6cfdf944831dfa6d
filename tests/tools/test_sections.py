from __future__ import annotations

import pytest

from obsidian_agent.errors import ObsidianAgentError

NOTE = "# Top\n\nintro\n\n## Log\n\n- a\n\n### Deep\n\ntext\n\n## Rest\n\nend\n"


def test_a_section_goes_with_what_is_below_it(bench):
    vault = bench({"n.md": NOTE})
    answer = vault.run("vault.takeSection", path="n.md", heading="Log")
    assert (answer["text"], answer["content"], answer["level"]) == ("## Log\n\n- a\n\n### Deep\n\ntext", "- a\n\n### Deep\n\ntext", 2)
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
    assert bench().run("util.outline", text=NOTE, minLevel=2, maxLevel=2, links=False)["text"] == "- Log\n- Rest"


def test_headings_that_a_link_cannot_hold(bench):
    text = "# A [[b]] | c\n"
    assert bench().run("util.outline", text=text)["text"] == "- [[#A b c|A b - c]]"


def test_the_title_can_be_left_out(bench):
    assert bench().run("util.outline", text=NOTE, skipTitle=True)["text"] == "- [[#Log]]\n    - [[#Deep]]\n- [[#Rest]]"
    assert bench().run("util.outline", text="# A\n# B\n", skipTitle=True)["count"] == 2
