"""Edits of properties: golden cases, every style of value, refusals, and laws for all edits."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from faults import refused
from obsidian_agent.errors import ObsidianAgentError, VaultError
from obsidian_agent.vault import text
from obsidian_agent.vault.frontmatter.properties import (
    edit_properties,
    find_frontmatter,
    read_properties,
)

CASES = [
    json.loads(line)
    for line in (Path(__file__).parent / "frontmatter_cases.jsonl").read_text("utf-8").splitlines()
]


class Yaml12(yaml.SafeLoader):
    """PyYAML with the implicit types of the YAML 1.2 core schema: a second opinion on blocks."""

    yaml_implicit_resolvers: dict[str, list[tuple[str, Any]]] = {}


for _tag, _pattern, _first in (
    ("null", r"^(?:~|null|Null|NULL|)$", ["~", "n", "N", ""]),
    ("bool", r"^(?:true|True|TRUE|false|False|FALSE)$", list("tTfF")),
    ("int", r"^(?:[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+)$", list("-+0123456789")),
    (
        "float",
        r"^[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?$",
        list("-+.0123456789"),
    ),
    ("float", r"^[-+]?\.(?:inf|Inf|INF)$|^\.(?:nan|NaN|NAN)$", list("-+.")),
):
    Yaml12.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(_pattern), _first)


def block_of(note: str) -> str:
    front = find_frontmatter(note)
    assert front is not None
    return note[front.content_start : front.content_end]


def properties(note: str, loader: type[yaml.SafeLoader] = Yaml12) -> dict[str, Any]:
    """Return the properties as PyYAML reads them, without resolving their names."""
    root = yaml.compose(block_of(note), loader)
    if root is None:
        return {}
    assert isinstance(root, yaml.MappingNode)
    return {name.value: loader("").construct_object(value, deep=True) for name, value in root.value}


def note_of(*lines: str, newline: str = "\n") -> str:
    return newline.join(("---", *lines, "---", "Body", ""))


# --- golden cases ---


@pytest.mark.parametrize("case", CASES, ids=[f"{case['id']} {case['name']}" for case in CASES])
def test_golden_case(case: dict[str, Any]) -> None:
    data = case["note"].encode("utf-8", "surrogateescape")
    key, value = case["set"]["key"], case["set"]["value"]
    if case["expect"] == "refuse":
        with pytest.raises(ObsidianAgentError) as caught:
            edit_properties(text.decode(data, "n.md"), set={key: value})
        assert caught.value.code in {"FRONTMATTER_INVALID", "NOT_TEXT", "ARGUMENT_INVALID"}
        return
    result = edit_properties(text.decode(data, "n.md"), set={key: value})
    assert result.startswith(case["prefix"])
    assert result.endswith(case["suffix"])
    assert len(result) >= len(case["prefix"]) + len(case["suffix"])
    assert read_properties(result)[key] == value
    readable = result.replace("!!python/object/apply:os.system ", "").replace("\t\n", "\n")
    modern, old = properties(readable)[key], properties(readable, yaml.SafeLoader)[key]
    assert modern == value
    assert type(modern) is type(value)
    assert old == value or (case["id"] == "F024" and str(old) == value)


# --- where the block is ---


@pytest.mark.parametrize(
    ("note", "block", "body"),
    [
        ("---\na: 1\n---\nBody", "a: 1\n", "Body"),
        ("\ufeff---\na: 1\n---\nBody", "a: 1\n", "Body"),
        ("---\r\na: 1\r\n---\r\nBody", "a: 1\r\n", "Body"),
        ("--- \na: 1\n---\t", "a: 1\n", ""),
        ("---\n---\n", "", ""),
        ("---\na: 1\n----\n---\nx", "a: 1\n----\n", "x"),
        ("---\na: 1\n--- x\n ---\n---\nx", "a: 1\n--- x\n ---\n", "x"),
    ],
)
def test_the_block_is_between_the_first_two_fences(note: str, block: str, body: str) -> None:
    front = find_frontmatter(note)
    assert front is not None
    assert (note[front.content_start : front.content_end], note[front.body_start :]) == (
        block,
        body,
    )
    assert note.startswith("---", front.start)


@pytest.mark.parametrize(
    "note",
    [
        "",
        "Body",
        "\n---\na: 1\n---\n",
        " ---\na: 1\n---\n",
        "----\na: 1\n----\n",
        "---\na: 1\n",
        "---",
        "---\ra: 1\r---\r",
    ],
)
def test_no_block(note: str) -> None:
    assert find_frontmatter(note) is None
    assert read_properties(note) == {}


# --- reading ---


def test_values_are_read_as_obsidian_reads_them() -> None:
    note = note_of(
        "text: plain",
        "old: yes",
        "time: 12:30",
        "date: 2026-01-02",
        "stamp: 2026-01-02T10:00:00",
        "number: 4",
        "decimal: 2.5",
        "octal: 0o17",
        "done: true",
        "nothing:",
        "tilde: ~",
        "'quoted': 'it''s'",
        'escaped: "a\\tb"',
        "infinite: .inf",
        "list: [a, 1, null]",
        "map: {a: {b: [1]}}",
        "<<: {merged: 1}",
    )
    assert read_properties(note) == {
        "text": "plain",
        "old": "yes",
        "time": "12:30",
        "date": "2026-01-02",
        "stamp": "2026-01-02T10:00:00",
        "number": 4,
        "decimal": 2.5,
        "octal": 15,
        "done": True,
        "nothing": None,
        "tilde": None,
        "quoted": "it's",
        "escaped": "a\tb",
        "infinite": ".inf",
        "list": ["a", 1, None],
        "map": {"a": {"b": [1]}},
        "<<": {"merged": 1},
    }


def test_what_is_read_is_json() -> None:
    odd = (
        "a: .nan",
        "b: 1e999",
        f"c: {'9' * 5000}",
        "d: !!binary aGk=",
        "e: !!python/name:os.system x",
        "f: {{title}}",
        "? [x, y]\n: z",
    )
    note = note_of(*odd)
    assert json.loads(json.dumps(read_properties(note), allow_nan=False)) == read_properties(note)


def test_text_between_rules_has_no_properties() -> None:
    assert read_properties("---\njust text\n---\n") == {}


def test_aliases_are_followed_within_limits() -> None:
    assert read_properties(note_of("a: &x [1, 2]", "b: *x"))["b"] == [1, 2]
    bomb = [
        f"k0: &k0 [{', '.join('x' * 9)}]",
        *(f"k{n}: &k{n} [{', '.join([f'*k{n - 1}'] * 9)}]" for n in range(1, 9)),
    ]
    with refused("FRONTMATTER_INVALID", "more than"):
        read_properties(note_of(*bomb))


@pytest.mark.parametrize(
    "lines",
    [
        ("a: &x [*x]",),
        ("a: *nowhere",),
        (f"a: {'[' * 500}{']' * 500}",),
        ("a: [",),
        ("a: 1", "  b: 2"),
        ("a: b: c",),
        ("\ta: 1",),
    ],
)
def test_what_is_no_yaml_is_an_error(lines: tuple[str, ...]) -> None:
    with refused("FRONTMATTER_INVALID"):
        read_properties(note_of(*lines))


def test_an_error_names_the_line_of_the_note() -> None:
    with pytest.raises(VaultError, match="in line 3 of the note"):
        edit_properties("---\na: 1\nb: ]\n---\n", set={"a": 2})


# --- setting, style by style ---


@pytest.mark.parametrize(
    ("before", "value", "after"),
    [
        ("k: old # c", "new", "k: new # c"),
        ("k:   old  ", "new", "k:   new  "),
        ("k: old # c", None, "k: # c"),
        ("k: old", None, "k:"),
        ("k:", "new", "k: new"),
        ("k: ", "new", "k: new"),
        ("k:  # c", "new", "k: new  # c"),
        ("k: 'old'", "new", "k: 'new'"),
        ('k: "old"', "new", 'k: "new"'),
        ('k: "yes"', "new", "k: new"),
        ("k: 'old'", "a\nb", 'k: "a\\nb"'),
        ("k:\n  old", "new", "k:\n  new"),
        ("k: old\n  more # c", "new", "k: new # c"),
        ("k: |- # c\n  a\n\n  b\n", "new", "k: new # c\n"),
        ("k: >+\n  a\n\n", "new", "k: new"),
        ("k: &a old", "new", "k: new"),
        ("k: !!str 12", 13, "k: 13"),
        ("k: 2025-01-01", "2026-02-03", "k: 2026-02-03"),
        ("k: old", "2026-02-03", 'k: "2026-02-03"'),
        ("k: 2025-01-01", "2026-13-45", 'k: "2026-13-45"'),
        ("k: 1", 2.0, "k: 2.0"),
        ("k: 1", 1e20, "k: 1.0e+20"),
        ("k: old # c", ["a", "b"], "k: # c\n  - a\n  - b"),
        ("k: old", [], "k: []"),
        ("k:", ["a"], "k:\n  - a"),
        ("k: # c", ["a"], "k: # c\n  - a"),
        ("k: |\n  text", ["a"], "k:\n  - a"),
        ("k: old", {"a": 1, "b": ["x", "y: z"]}, 'k:\n  a: 1\n  b: [x, "y: z"]'),
        ("k: {a: 1}", {"a": 2}, "k: {a: 2}"),
        ("k:\n    a: 1", {"a": 2, "b": None}, "k:\n    a: 2\n    b:"),
        ("k:\n  a: 1\n  b: 2 # c", "new", "k: new # c"),
        ("k: {a: 1} # c", "new", "k: new # c"),
        ("k:\n  - a\n  - b # c", "new", "k: new # c"),
        ("k: [a, b] # c", "new", "k: new # c"),
        ("k: {}", {}, "k: {}"),
    ],
)
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_set_keeps_what_stands_around_the_value(
    before: str, value: Any, after: str, newline: str
) -> None:
    def note(line: str) -> str:
        return f"---\na: 1\n{line}\nz: [9] # z\n---\nBody\n".replace("\n", newline)

    result = edit_properties(note(before), set={"k": value})
    assert result == note(after)
    assert read_properties(result)["k"] == value


@pytest.mark.parametrize(
    ("before", "value", "after"),
    [
        ("k:\n- a\n- b # c", ["a", "x"], "k:\n- a\n- x # c"),
        (
            "k: # k\n    - a # 1\n    # 2\n    - b\n    - c # 3",
            ["a", "c"],
            "k: # k\n    - a # 1\n    # 2\n    - c # 3",
        ),
        ("k:\n  - a\n  - b", ["o", "a", "b", "m"], "k:\n  - o\n  - a\n  - b\n  - m"),
        ("k:\n  - 'a'\n  - 'b'", ["a", "b", "c"], "k:\n  - 'a'\n  - 'b'\n  - 'c'"),
        ("k:\n  - a # 1\n  # 2\n  - b", [], "k: []\n  # 2"),
        (
            "k:\n  - a: 1\n    b: 2\n  - |\n    text\n\n  - last",
            ["x", "last"],
            "k:\n  - x\n\n  - last",
        ),
        ("k:\n- - a\n  - b\n-\n  - c\n- d", [["a", "b"], "d"], "k:\n- - a\n  - b\n- d"),
        ("k:\n- - a\n  - b\n- d", ["x", "d"], "k:\n- x\n- d"),
        ("k:\n  -\n  - b", ["a", "b"], "k:\n  - a\n  - b"),
        (
            "k:\n  - a",
            [None, 1, True, ["x"], {"m": 1}],
            "k:\n  - null\n  - 1\n  - true\n  - [x]\n  - {m: 1}",
        ),
        ("k: &a # c\n  - x", ["z"], "k: &a # c\n  - z"),
        ("k: &a # c\n  - x", [], "k: [] # c"),
        ("k: [a, b , c] # c", ["a", "c"], "k: [a , c] # c"),
        ("k: [a, b]", ["b"], "k: [b]"),
        ("k: [ a, b ]", ["a"], "k: [ a ]"),
        ("k: [a, 'b, c']", ["'", "a", "b, c"], "k: [\"'\", a, 'b, c']"),
        ("k: [a]", [], "k: []"),
        ("k: [a,]", [], "k: []"),
        ("k: []", ["no", "[[L]]"], 'k: ["no", "[[L]]"]'),
        ("k: [\n  a, # 1\n  b\n]", ["a", "b", "c"], "k: [\n  a, # 1\n  b, c\n]"),
        ("k: ['a', 'b']", ["a", "b", "c"], "k: ['a', 'b', 'c']"),
        ("k: [2025-01-01]", ["2025-01-01", "2025-01-02"], "k: [2025-01-01, 2025-01-02]"),
    ],
)
def test_lists_are_edited_item_by_item(before: str, value: list[Any], after: str) -> None:
    result = edit_properties(note_of("a: 1", before, "z: 9"), set={"k": value})
    assert result == note_of("a: 1", after, "z: 9")
    assert read_properties(result)["k"] == value


def test_new_properties_go_last_in_the_order_they_are_given() -> None:
    values = {"z": ["x", "no"], "b": "2026-01-02", "m": {"k": 1}, "o": None, "e": [], "yes": 1}
    result = edit_properties(note_of("a: 1", "", "# end"), set=values)
    assert result == note_of(
        "a: 1",
        "",
        "# end",
        "z:",
        "  - x",
        '  - "no"',
        "b: 2026-01-02",
        "m:",
        "  k: 1",
        "o:",
        "e: []",
        '"yes": 1',
    )


def test_a_new_property_is_indented_as_the_others() -> None:
    assert (
        edit_properties("---\n  a: 1\n---\n", set={"b": ["x"]})
        == "---\n  a: 1\n  b:\n    - x\n---\n"
    )


def test_a_new_block_takes_the_line_ends_of_the_note() -> None:
    assert (
        edit_properties("x\r\ny\r\n", set={"a": ["b"]}) == "---\r\na:\r\n  - b\r\n---\r\nx\r\ny\r\n"
    )


def test_a_property_in_an_odd_spelling_is_found_by_its_value() -> None:
    assert edit_properties(note_of('"x: y": 1'), set={"x: y": 2}) == note_of('"x: y": 2')


def test_numbers_that_are_equal_are_unchanged() -> None:
    note = note_of("a: 1", "b: 2.0", "c: 0x1F", "d: ~", "e: TRUE", "f: 'x'", "g: {b: 1, a: [2]}")
    assert (
        edit_properties(
            note,
            set={
                "a": 1.0,
                "b": 2,
                "c": 31,
                "d": None,
                "e": True,
                "f": "x",
                "g": {"a": [2], "b": 1},
            },
        )
        == note
    )


def test_true_is_not_one() -> None:
    assert edit_properties(note_of("a: 1"), set={"a": True}) == note_of("a: true")


@pytest.mark.parametrize(
    "value",
    [
        "a\u2028b",
        "a\x85b",
        "\ufeff",
        "\x00\x07\x7f",
        "😀",
        "\uffff",
        "é",
        "\u00a0x",
        "a" * 5000,
        "a b " * 2000 + "c",
    ],
)
def test_odd_characters_survive(value: str) -> None:
    for before in ("k: old", "k: [old]", "other: 1"):
        result = edit_properties(note_of(before), set={"k": value})
        assert read_properties(result)["k"] == value
        assert properties(result, yaml.SafeLoader)["k"] == value


def test_other_properties_may_hold_odd_line_ends() -> None:
    assert edit_properties(note_of("a: x\u2028y", "b: \x85", "k: 1"), set={"k": 2}) == note_of(
        "a: x\u2028y", "b: \x85", "k: 2"
    )


# --- JSON in braces ---


@pytest.mark.parametrize(
    ("before", "change", "after"),
    [
        ('{"a": 1, "b": [1, 2]}', {"set": {"b": [1, 2, "x"]}}, '{"a": 1, "b": [1, 2, "x"]}'),
        (
            '{"a": 1}',
            {"set": {"c": {"d": None, "e": "no"}}},
            '{"a": 1, "c": {"d": null, "e": "no"}}',
        ),
        (
            '{\n  "a": 1,\n  "b": 2\n}',
            {"set": {"c": "x"}},
            '{\n  "a": 1,\n  "b": 2,\n  "c": "x"\n}',
        ),
        ("{}", {"set": {"a": "x"}}, '{"a": "x"}'),
        ('{"a": 1, "b": 2, "c": 3}', {"remove": ["b", "c"]}, '{"a": 1}'),
        (
            '{"a": 1, "b": 2, "c": 3}',
            {"remove": ["a", "c"], "set": {"b": 4, "d": 5}},
            '{"b": 4, "d": 5}',
        ),
        ('{"a": 1}', {"remove": ["a"]}, "{}"),
        ('{"tags": ["x"]}', {"add_tags": ["y"], "remove_tags": ["X"]}, '{"tags": ["y"]}'),
        ("{a: , b}", {"set": {"a": 1, "b": 2}}, "{a: 1, b: 2}"),
    ],
)
def test_a_block_in_braces(before: str, change: dict[str, Any], after: str) -> None:
    assert edit_properties(note_of(before), **change) == note_of(after)


# --- removing ---


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (("a: 1", "k: x # c", "# own", "z: 9"), ("a: 1", "# own", "z: 9")),
        (("k:", "- a", "- b", "", "z: 9"), ("", "z: 9")),
        (("k: |", "  text", "", "z: 9"), ("", "z: 9")),
        (("a: |+", "  text", "k: 1", "", "# x", "z: 9"), ("a: |+", "  text", "# x", "z: 9")),
        (("a: |", "  text", "k: 1", "  # would be text", "z: 9"), ("a: |", "  text", "z: 9")),
        (("k: 1",), ()),
        (("a: 1", "k:"), ("a: 1",)),
        (("'k':", "  m: 1", "  n: 2"), ()),
    ],
)
def test_remove_takes_the_lines_of_the_property(
    before: tuple[str, ...], after: tuple[str, ...]
) -> None:
    assert edit_properties(note_of(*before), remove=["k", "not there"]) == note_of(*after)


def test_remove_without_a_block_changes_nothing() -> None:
    assert edit_properties("Body", remove=["k"], remove_tags=["x"]) == "Body"


def test_what_others_refer_to_is_not_removed() -> None:
    with refused("FRONTMATTER_INVALID"):
        edit_properties(note_of("k: &x 1", "b: *x"), remove=["k"])


# --- tags ---


@pytest.mark.parametrize(
    ("before", "add", "drop", "after"),
    [
        (("tags:", "  - a"), ["#b"], [], ("tags:", "  - a", "  - b")),
        (("tags:", "- a"), ["b", "B", "c/d"], [], ("tags:", "- a", "- b", "- c/d")),
        (("tags: [a, 'B']",), ["b", "A"], [], ("tags: [a, 'B']",)),
        (("tags: [a]",), ["b"], ["#A"], ("tags: [b]",)),
        (("tags: a # c",), ["b"], [], ("tags: # c", "  - a", "  - b")),
        (("tags: a, b",), [], ["a"], ("tags:", "  - b")),
        (("tags: a",), ["a"], ["b"], ("tags: a",)),
        (("tags: a",), [], ["A"], ("tags: []",)),
        (("tags:", "  - a # c"), [], ["a"], ("tags: []",)),
        (("tags: [a]",), [], ["a"], ("tags: []",)),
        (("tags:",), ["a"], [], ("tags:", "  - a")),
        (("tags: []",), ["a"], [], ("tags: [a]",)),
        (('tags: ["#a", 2024]',), ["b"], ["a", "2024"], ("tags: [b]",)),
        (("tags: [a, a/b]",), [], ["a"], ("tags: [a/b]",)),
        (("tag: a", "TAGS: [b]"), ["a"], [], ("tag: a", "TAGS: [b]", "tags:", "  - a")),
        (("x: 1",), [], ["a"], ("x: 1",)),
    ],
)
def test_tags(
    before: tuple[str, ...], add: list[str], drop: list[str], after: tuple[str, ...]
) -> None:
    result = edit_properties(note_of(*before), add_tags=add, remove_tags=drop)
    assert result == note_of(*after)
    assert edit_properties(result, add_tags=add, remove_tags=drop) == result


def test_tags_are_added_to_what_is_set() -> None:
    assert edit_properties(
        note_of("tags: [a, b]"), set={"tags": ["c"]}, add_tags=["d"], remove_tags=["c"]
    ) == note_of("tags: [d]")


# --- refusals ---


@pytest.mark.parametrize(
    "change",
    [
        {"set": {"k": 1}, "remove": ["k"]},
        {"remove": ["tags"], "add_tags": ["x"]},
        {"add_tags": ["x"], "remove_tags": ["#X"]},
        {"add_tags": ["a b"]},
        {"add_tags": ["#"]},
        {"add_tags": ["2024"]},
        {"set": {"": 1}},
        {"set": {"x: y": 1}},
        {"set": {"x:": 1}},
        {"set": {" x": 1}},
        {"set": {"x\ny": 1}},
        {"set": {"x\x85y": 1}},
        {"set": {"x" * 201: 1}},
        {"set": {"x": float("nan")}},
        {"set": {"x": "\ud800"}},
        {"set": {"x": object()}},
        {"set": {"x": {1: 2}}},
    ],
)
def test_arguments_that_make_no_sense(change: dict[str, Any]) -> None:
    with refused("ARGUMENT_INVALID"):
        edit_properties(note_of("a: 1"), **change)


@pytest.mark.parametrize(
    "note",
    [
        "---\na: 1\nno end\n",
        "---",
        "---\ra: 1\r---\rBody",
        "---\n- a\n---\n",
        "---\nk: 1\nk: 2\n---\n",
        "---\n'k': 1\nk: |\n  2\n---\n",
        "---\n? k\n: 1\n---\n",
        "---\nk: 1\n...\nb: 2\n---\n",
        "---\n%YAML 1.2\nk: 1\n---\n",
        "---\nb: &x 1\nk: 1\n--- x\n---\n",
        "---\nk: \x07\n---\n",
        "---\nk: \ufdd0\u2028\n---\n",
        "---\nk: 1\n...\n---\n",
        "---\njust text\n---\n",
        "---\n" + "a: b\n" * 300_000 + "---\n",
    ],
)
def test_blocks_that_are_left_alone(note: str) -> None:
    with refused("FRONTMATTER_INVALID"):
        edit_properties(note, set={"k": "new"})


def test_a_duplicate_that_is_not_meant_stays() -> None:
    assert edit_properties(note_of("a: 1", "a: 2", "k: 1"), set={"k": 2}) == note_of(
        "a: 1", "a: 2", "k: 2"
    )
    assert read_properties(note_of("a: 1", "a: 2")) == {"a": 2}


def test_nothing_asked_is_nothing_read() -> None:
    assert edit_properties("---\na: [\n---\n") == "---\na: [\n---\n"


# --- new notes ---


def test_properties_of_a_new_note() -> None:
    assert edit_properties("# T\n", set={}) == "# T\n"
    assert (
        edit_properties("# T\n", set={"a": "x: y", "tags": ["t"]})
        == '---\na: "x: y"\ntags:\n  - t\n---\n# T\n'
    )
    assert (
        edit_properties("---\na: 1 # c\n---\n# T\n", set={"a": 2, "b": 3})
        == "---\na: 2 # c\nb: 3\n---\n# T\n"
    )


# --- laws ---

LAW = settings(deadline=None)
KEYS = ("a", "b", "my key", "tags", "été", "1", "yes")
SCALARS = (
    "plain",
    "two words",
    "12",
    "true",
    "yes",
    "2024-01-01",
    '"dq"',
    "'it''s'",
    "~",
    "http://a.b/c#d",
    "[[x]]",
    "",
    "x\u00a0y",
    '"\\""',
)
ENTRIES = st.one_of(
    st.sampled_from(SCALARS).map(lambda scalar: f" {scalar}"),
    st.sampled_from(SCALARS).map(lambda scalar: f"   {scalar} # c"),
    st.lists(st.sampled_from(SCALARS), min_size=1, max_size=4).map(
        lambda items: "".join(f"\n  - {item}" for item in items)
    ),
    st.lists(st.sampled_from(SCALARS), min_size=1, max_size=3).map(
        lambda items: " # c" + "".join(f"\n- {item} # i" for item in items)
    ),
    st.sampled_from((" [a, 'b, c', 1]", " []", " [a, # c\n  b]", " {x: 1, y: [2]}", " one\n  two")),
    st.sampled_from((" |\n  one\n\n  two", " >-\n  one\n", " |+\n  one\n\n")),
    st.sampled_from(
        (
            "\n  m: 1\n  n:\n    - z",
            "\n  next line",
            "\n  - m: 1\n    n: 2\n  - z",
            "\n  - a\n\n  # between\n  - b",
        )
    ),
)
FILLERS = st.sampled_from(("", "", "", "# comment\n", "\n", "  # indented\n"))
TEXTS = st.text(st.characters(exclude_categories=["Cs"])) | st.sampled_from(
    ("no", "1e3", "012", "12:30", "- a", "a: b", "x #y", "2024-01-01", "=", "0o7", "1_0")
)
NUMBERS = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
JSON = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXTS,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text("ab: 'no1é", min_size=1, max_size=4), inner, max_size=3)
    ),
    max_leaves=6,
)


@st.composite
def notes(draw: st.DrawFn) -> str:
    keys = draw(st.lists(st.sampled_from(KEYS), unique=True, max_size=5))
    block = "".join(f"{key}:{draw(ENTRIES)}\n{draw(FILLERS)}" for key in keys)
    note = (
        draw(st.sampled_from(("", "\ufeff")))
        + f"---\n{block}---\n"
        + draw(st.sampled_from(("", "Body\n---\nmore", "\n\n# T\n")))
    )
    return note.replace("\n", draw(st.sampled_from(("\n", "\r\n"))))


def outside(note: str) -> tuple[str, str]:
    front = find_frontmatter(note)
    assert front is not None
    return note[: front.content_start], note[front.content_end :]


def without(values: dict[str, Any], key: str) -> dict[str, Any]:
    return {name: value for name, value in values.items() if name != key}


@LAW
@given(note=notes(), key=st.sampled_from((*KEYS, "new")), value=JSON)
def test_law_set_changes_one_property_and_nothing_else(note: str, key: str, value: Any) -> None:
    result = edit_properties(note, set={key: value})
    assert outside(result) == outside(note)
    before, after = properties(note), properties(result)
    assert without(after, key) == without(before, key)
    assert list(after) == list(before) + ([] if key in before else [key])
    assert read_properties(result)[key] == value
    assert edit_properties(result, set={key: value}) == result
    if "\r\n" in note:
        assert result.count("\n") == result.count("\r\n")
    else:
        assert "\r" not in result


@LAW
@given(note=notes(), value=JSON)
def test_law_what_was_written_reads_back_under_both_yaml_versions(note: str, value: Any) -> None:
    assume("2024-01-01" not in json.dumps(value))
    result = edit_properties(note, set={"new": value})
    assert properties(result)["new"] == properties(result, yaml.SafeLoader)["new"] == value


@LAW
@given(note=notes())
def test_law_the_value_there_is_changes_nothing(note: str) -> None:
    there = read_properties(note)
    assert edit_properties(note, set=there) == note


@LAW
@given(note=notes(), key=st.sampled_from(KEYS))
def test_law_remove_removes_one_property(note: str, key: str) -> None:
    result = edit_properties(note, remove=[key])
    assert outside(result) == outside(note)
    assert properties(result) == without(properties(note), key)
    if key not in read_properties(note):
        assert result == note


@LAW
@given(note=notes(), values=st.dictionaries(st.sampled_from(("n1", "n2", "n 3")), JSON, max_size=3))
def test_law_adding_and_removing_restores_the_bytes(note: str, values: dict[str, Any]) -> None:
    assert edit_properties(edit_properties(note, set=values), remove=list(values)) == note


@LAW
@given(
    first=TEXTS.filter(lambda text: text != "2024-01-01")
    | st.integers()
    | st.booleans()
    | st.none(),
    second=TEXTS | st.integers() | st.none(),
    shape=st.sampled_from(("a: 1\nk: x # c\nz: 1\n", "k: x\n", "k:\n  - i\n", "k: [i]\n")),
)
@example(first="A", second="0[", shape="k: [i]\n")
@example(first="A", second="a, b", shape="k: [i]\n")
def test_law_back_and_forth_restores_a_canonical_value(first: Any, second: Any, shape: str) -> None:
    listed = "i" in shape
    canonical = edit_properties(f"---\n{shape}---\n", set={"k": [first] if listed else first})
    there = edit_properties(canonical, set={"k": [second] if listed else second})
    assert edit_properties(there, set={"k": [first] if listed else first}) == canonical


@LAW
@given(note=notes(), tags=st.lists(st.sampled_from(("new", "plain", "Dq", "x/y")), unique=True))
def test_law_added_tags_are_there_once_and_can_be_taken_back(note: str, tags: list[str]) -> None:
    if isinstance(read_properties(note).get("tags"), dict):
        return
    result = edit_properties(note, add_tags=tags)
    if not tags:
        assert result == note
        return
    found = read_properties(result)["tags"]
    names = [str(tag).casefold() for tag in (found if isinstance(found, list) else [found])]
    assert {tag.casefold() for tag in tags} <= set(names)
    assert edit_properties(result, add_tags=[tag.upper() for tag in tags]) == result
    left = read_properties(edit_properties(result, remove_tags=tags))["tags"]
    assert isinstance(left, list)
    assert not {str(tag).casefold() for tag in left} & {tag.casefold() for tag in tags}


@LAW
@given(
    before=st.text("ak-:#'\"[]{}&*!|>%@? \n\t,x1\u2028\x85", max_size=40),
    value=st.sampled_from(("new", ["x"], None, {"m": 1})),
)
def test_law_no_text_makes_an_edit_that_is_wrong(before: str, value: Any) -> None:
    note = f"---\n{before}\n---\nBody"
    try:
        result = edit_properties(note, set={"k": value})
    except VaultError as error:
        refused: VaultError | None = error
    else:
        refused = None
        assert read_properties(result)["k"] == value
        assert without(read_properties(result), "k") == without(read_properties(note), "k")
        assert outside(result) == outside(note)
    assert refused is None or refused.code == "FRONTMATTER_INVALID"
