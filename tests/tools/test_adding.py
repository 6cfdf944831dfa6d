from __future__ import annotations

import pytest

from obsidian_agent.errors import ObsidianAgentError, ToolError
from obsidian_agent.tools.adding import ADD_LINES, INSERT_BESIDE


@pytest.mark.parametrize(
    ("note", "content", "after"),
    [
        ("* a\n* b\n", "- c", "* a\n* b\n* c\n"),
        ("+ a\n  + deep\n\nend\n", "- c", "+ a\n  + deep\n\nend\n+ c\n"),
        ("1. a\n2. b", "- c", "1. a\n2. b\n3. c\n"),
        ("1) a\n\t- deep\n", "- c\n- d", "1) a\n\t- deep\n2) c\n3) d\n"),
        ("  - a\n", "- [ ] c\n  - d", "  - a\n  - [ ] c\n    - d\n"),
        ("- [ ] a\n\n", "- [ ] c", "- [ ] a\n- [ ] c\n\n"),
        ("text\n", "- c", "text\n- c\n"),
        ("- a\n", "text", "- a\ntext\n"),
        ("", "- c", "- c\n"),
        ("- a\r\n", "- c", "- a\r\n- c\r\n"),
        ("> - a\n", "- c", "> - a\n- c\n"),
        ("```\n- a\n```\n", "- c", "```\n- a\n```\n- c\n"),
    ],
)
def test_items_take_the_marker_of_the_list_that_they_join(bench, note, content, after):
    vault = bench({"a.md": note})
    vault.run(ADD_LINES, path="a.md", content=content)
    assert vault.text("a.md") == after


def test_in_a_section_at_its_end_or_start(bench):
    vault = bench({"a.md": "# A\n\n1. x\n2. y\n\n# B\n\n- z\n"})
    assert vault.run(ADD_LINES, path="a.md", heading="A", content="- new")["line"] == 5
    vault.run(ADD_LINES, path="a.md", heading="A", content="- first", at="start")
    vault.run(ADD_LINES, path="a.md", heading="B", content="[[z]]", asItem=True)
    assert vault.text("a.md") == "# A\n\n1. first\n2. x\n3. y\n4. new\n\n# B\n\n- z\n- [[z]]\n"


def test_at_the_start_of_a_note_below_its_properties(bench):
    vault = bench({"a.md": "---\nx: 1\n---\n- a\n", "b.md": "---\nx: 1\n---\ntext\n"})
    vault.run(ADD_LINES, path="a.md", content="- b", at="start")
    vault.run(ADD_LINES, path="b.md", content="b", at="start", asItem=True)
    assert vault.text("a.md") == "---\nx: 1\n---\n- b\n- a\n"
    assert vault.text("b.md") == "---\nx: 1\n---\nb\ntext\n"


LIST = "# Trips\n\n- Peru\n\t- Lima\n\t- [[Cusco]]\n- Texas\n\n1. one\n2. two\n\nPlain line.\n\n# Later\n"


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        ({"text": "peru", "side": "after"}, LIST.replace("- Texas", "- new\n- Texas")),
        ({"text": "Lima", "side": "before"}, LIST.replace("\t- Lima", "\t- new\n\t- Lima")),
        ({"linkTo": "Cusco.md", "side": "after"}, LIST.replace("[[Cusco]]\n", "[[Cusco]]\n\t- new\n")),
        ({"text": "one", "side": "after"}, LIST.replace("2. two", "2. new\n3. two")),
        ({"text": "one", "side": "before"}, LIST.replace("1. one\n2. two", "1. new\n2. one\n3. two")),
        ({"text": "line plain", "side": "after"}, LIST.replace("line.\n", "line.\nnew\n")),
        ({"heading": "Later", "side": "before"}, LIST.replace("# Later", "new\n\n# Later")),
        ({"heading": "Later", "side": "after"}, LIST + "new\n"),
        ({"text": "Texas", "heading": "Trips", "side": "before"}, LIST.replace("- Texas", "- new\n- Texas")),
    ],
)
def test_beside_a_line_or_heading(bench, args, expected):
    vault = bench({"a.md": LIST, "Cusco.md": ""})
    vault.run(INSERT_BESIDE, path="a.md", content="new", **args)
    assert vault.text("a.md") == expected


def test_beside_a_task_comes_an_open_task(bench):
    vault = bench({"a.md": "* [x] done\n"})
    vault.run(INSERT_BESIDE, path="a.md", content="next", text="done", side="after")
    assert vault.text("a.md") == "* [x] done\n* [ ] next\n"


@pytest.mark.parametrize(
    ("args", "code"),
    [({"text": "nowhere"}, "MARKER_NOT_FOUND"), ({"text": "a"}, "COUNT_MISMATCH"), ({"heading": "No"}, "MARKER_NOT_FOUND")],
)
def test_a_place_that_is_not_one_is_an_error(bench, args, code):
    with pytest.raises(ToolError) as caught:
        bench({"a.md": "- a\n- a\n"}).run(INSERT_BESIDE, path="a.md", content="new", side="after", **args)
    assert caught.value.code == code


def test_a_missing_note_is_an_error(bench):
    with pytest.raises(ObsidianAgentError):
        bench({}).run(ADD_LINES, path="a.md", content="x")


@pytest.mark.parametrize(
    ("note", "args", "after"),
    [
        ("---\nx: 1\n---\n# Pack\n\n* [ ] a\n* [x] b\n", {}, "---\nx: 1\n---\n# Pack\n\n* [ ] a\n* [x] b\n* [ ] new\n"),
        ("# L\n\n1. a\n   - deep\n", {}, "# L\n\n1. a\n   - deep\n2. new\n"),
        ("# L\n\nintro\n\n- a\n", {}, "# L\n\nintro\n\n- a\nnew\n"),
        ("# L\n\nintro\n\n## H\n\n- a\n\n## Z\n", {"heading": "H"}, "# L\n\nintro\n\n## H\n\n- a\n- new\n\n## Z\n"),
        ("", {}, "new\n"),
        ("# L\n", {}, "# L\nnew\n"),
        ("---\nx: 1\n---\n", {}, "---\nx: 1\n---\nnew\n"),
    ],
)
def test_text_becomes_an_item_where_all_is_one_list(bench, note, args, after):
    vault = bench({"a.md": note})
    vault.run(ADD_LINES, path="a.md", content="new", asItem="pure", **args)
    assert vault.text("a.md") == after


def test_beside_a_row_only_rows_can_stand(bench):
    vault = bench({"a.md": "| a |\n|---|\n| b |\n"})
    with pytest.raises(ToolError):
        vault.run(INSERT_BESIDE, path="a.md", content="x", text="b", side="before")
    vault.run(INSERT_BESIDE, path="a.md", content="| x |", text="b", side="before")
    assert vault.text("a.md") == "| a |\n|---|\n| x |\n| b |\n"
