from __future__ import annotations

import pytest

from obsidian_agent.errors import ToolError

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
        ({"text": "books of the library"}, NOTE.replace("- [ ] library books #errand\n\t- by Friday\n", ""), None),
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
        ({"text": "library books", "replacement": "return them"}, NOTE.replace("library books #errand", "return them")),
        ({"text": "library books", "replacement": "* return them"}, NOTE.replace("- [ ] library books #errand", "* return them")),
        ({"text": "Return", "replacement": "Read."}, NOTE.replace("Return the books.", "Read.")),
        ({"text": "Basil", "replacement": "| Dill | May |"}, NOTE.replace("| Basil | April |", "| Dill | May |")),
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
    with pytest.raises(ToolError) as caught:
        bench({"a.md": NOTE}).run("vault.takeLines", path="a.md", **args)
    assert caught.value.code == code


def test_several_lines_at_the_end_of_a_note_without_a_line_end(bench):
    vault = bench({"a.md": "x\n- a1 z\n- a2 z"})
    assert vault.run("vault.takeLines", path="a.md", text="z")["count"] == 2
    assert vault.text("a.md") == "x"
    assert vault.run("vault.takeLines", path="a.md", text="z")["count"] == 0
    assert vault.warnings == ["TEXT_NOT_FOUND"]
