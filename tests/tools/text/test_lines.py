from __future__ import annotations

import pytest

from obsidian_agent.errors import ObsidianAgentError


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
    vault.run("vault.addLines", path="a.md", content=content)
    assert vault.text("a.md") == after


def test_in_a_section_at_its_end_or_start(bench):
    vault = bench({"a.md": "# A\n\n1. x\n2. y\n\n# B\n\n- z\n"})
    assert vault.run("vault.addLines", path="a.md", heading="A", content="- new")["line"] == 5
    vault.run("vault.addLines", path="a.md", heading="A", content="- first", at="start")
    vault.run("vault.addLines", path="a.md", heading="B", content="[[z]]", asItem=True)
    assert vault.text("a.md") == "# A\n\n1. first\n2. x\n3. y\n4. new\n\n# B\n\n- z\n- [[z]]\n"


def test_at_the_start_of_a_note_below_its_properties(bench):
    vault = bench({"a.md": "---\nx: 1\n---\n- a\n", "b.md": "---\nx: 1\n---\ntext\n"})
    vault.run("vault.addLines", path="a.md", content="- b", at="start")
    vault.run("vault.addLines", path="b.md", content="b", at="start", asItem=True)
    assert vault.text("a.md") == "---\nx: 1\n---\n- b\n- a\n"
    assert vault.text("b.md") == "---\nx: 1\n---\nb\ntext\n"


def test_a_missing_note_is_an_error(bench):
    with pytest.raises(ObsidianAgentError):
        bench({}).run("vault.addLines", path="a.md", content="x")


@pytest.mark.parametrize(
    ("note", "args", "after"),
    [
        (
            "---\nx: 1\n---\n# Pack\n\n* [ ] a\n* [x] b\n",
            {},
            "---\nx: 1\n---\n# Pack\n\n* [ ] a\n* [x] b\n* [ ] new\n",
        ),
        ("# L\n\n1. a\n   - deep\n", {}, "# L\n\n1. a\n   - deep\n2. new\n"),
        ("# L\n\nintro\n\n- a\n", {}, "# L\n\nintro\n\n- a\nnew\n"),
        (
            "# L\n\nintro\n\n## H\n\n- a\n\n## Z\n",
            {"heading": "H"},
            "# L\n\nintro\n\n## H\n\n- a\n- new\n\n## Z\n",
        ),
        ("", {}, "new\n"),
        ("# L\n", {}, "# L\nnew\n"),
        ("---\nx: 1\n---\n", {}, "---\nx: 1\n---\nnew\n"),
    ],
)
def test_text_becomes_an_item_where_all_is_one_list(bench, note, args, after):
    vault = bench({"a.md": note})
    vault.run("vault.addLines", path="a.md", content="new", asItem="pure", **args)
    assert vault.text("a.md") == after


@pytest.mark.parametrize(
    ("note", "after"),
    [
        ("- a\n", "- a\n- x\n- y\n"),
        ("- [ ] a\n- [x] b\n", "- [ ] a\n- [x] b\n- [ ] x\n- [ ] y\n"),
        ("1. a\n", "1. a\n2. x\n3. y\n"),
        ("text\n", "text\n- x\n- y\n"),
    ],
)
def test_each_line_becomes_an_item(bench, note, after):
    vault = bench({"a.md": note})
    vault.run("vault.addLines", path="a.md", content="x\ny", asItem="lines")
    assert vault.text("a.md") == after


NOTE = (
    "---\nbooks: 1\n---\n# Inbox about books\n\nReturn the books.\n\n- [ ] library books #errand\n\t- by Friday\n- call\n\n"
    "1. a\n2. b\n3. c\n\n| Herb | Sow |\n|---|---|\n| Basil | April |\n| Mint | any |\n\n```\nbooks\n```\n"
)


@pytest.mark.parametrize(
    ("args", "after", "taken"),
    [
        (
            {"text": "library books"},
            NOTE.replace("- [ ] library books #errand\n\t- by Friday\n", ""),
            "- [ ] library books #errand\n\t- by Friday",
        ),
        (
            {"text": "books of the library"},
            NOTE.replace("- [ ] library books #errand\n\t- by Friday\n", ""),
            None,
        ),
        ({"text": "return"}, NOTE.replace("Return the books.\n\n", ""), "Return the books."),
        ({"text": "by friday"}, NOTE.replace("\t- by Friday\n", ""), "- by Friday"),
        ({"text": "b", "kind": "item"}, NOTE.replace("2. b\n3. c", "2. c"), "2. b"),
        ({"text": "a", "kind": "item"}, NOTE.replace("1. a\n2. b\n3. c", "1. b\n2. c"), "1. a"),
        ({"text": "mint", "kind": "row"}, NOTE.replace("| Mint | any |\n", ""), "| Mint | any |"),
        ({"line": 6}, NOTE.replace("Return the books.\n\n", ""), "Return the books."),
    ],
)
def test_a_line_is_taken_with_what_is_nested_in_it(bench, args, after, taken):
    vault = bench({"a.md": NOTE})
    answer = vault.run("vault.takeLines", path="a.md", expectCount=1, **args)
    assert vault.text("a.md") == after
    assert taken is None or answer["text"] == taken


@pytest.mark.parametrize(
    ("args", "after"),
    [
        (
            {"text": "library books", "replacement": "return them"},
            NOTE.replace("library books #errand", "return them"),
        ),
        (
            {"text": "library books", "replacement": "* return them"},
            NOTE.replace("- [ ] library books #errand", "* return them"),
        ),
        ({"text": "Return", "replacement": "Read."}, NOTE.replace("Return the books.", "Read.")),
        (
            {"text": "Basil", "replacement": "| Dill | May |"},
            NOTE.replace("| Basil | April |", "| Dill | May |"),
        ),
    ],
)
def test_a_line_is_replaced_and_keeps_its_marker(bench, args, after):
    vault = bench({"a.md": NOTE})
    vault.run("vault.takeLines", path="a.md", expectCount=1, **args)
    assert vault.text("a.md") == after


@pytest.mark.parametrize(
    ("args", "code"),
    [
        ({"text": "books", "expectCount": 1}, "COUNT_MISMATCH"),
        ({"text": "nowhere", "expectCount": 1}, "MARKER_NOT_FOUND"),
        ({"text": "books", "heading": "None"}, "MARKER_NOT_FOUND"),
        ({"line": 2}, "MARKER_NOT_FOUND"),
        ({"line": 99}, "MARKER_NOT_FOUND"),
        ({"text": "call", "kind": "row", "expectCount": 1}, "MARKER_NOT_FOUND"),
    ],
)
def test_what_is_not_there_is_an_error(bench, args, code):
    assert bench({"a.md": NOTE}).refusal("vault.takeLines", path="a.md", **args) == code


def test_several_lines_at_the_end_of_a_note_without_a_line_end(bench):
    vault = bench({"a.md": "x\n- a1 z\n- a2 z"})
    assert vault.run("vault.takeLines", path="a.md", text="z")["count"] == 2
    assert vault.text("a.md") == "x"
    assert vault.run("vault.takeLines", path="a.md", text="z")["count"] == 0
    assert vault.warnings == ["TEXT_NOT_FOUND"]
