from __future__ import annotations

from typing import Any

import pytest
import yaml

from obsidian_agent.errors import VaultError
from obsidian_agent.vault.frontmatter import yaml_nodes
from obsidian_agent.vault.frontmatter.properties import edit_properties
from obsidian_agent.vault.frontmatter.yaml_nodes import parse

BLOCKS = (
    "a: 1\nb: 'x' # c\n\"c d\": [1, {e: f}] # g\n",
    "a:\n- 1\n-\n- - x\n  - y\n# c\nb:\n    - m: 1\n      n: 2\n",
    "a: |\n  one\n\n  two  \n\n# c\nb: >+\n  x\n\n\nc: |2-\n    y\n",
    "a: &x\n  - 1\nb: *x\nc: !t\n  d: &y 1\ne: !!str 12\n",
    'a: one\n  two\nb:\n  three\nc: "four\n  five"\nd:\ne: # c\n',
    "😀 k: é\nnext: 1\n",
    '{"a": [1, 2], b: , c}\n',
)


def texts(block: str) -> list[tuple[Any, str, Any, str]]:
    parsed = parse(block)
    assert parsed is not None
    return [(entry.key, block[entry.node.start : entry.node.end], entry.node.value, entry.node.style) for entry in parsed.entries]


def test_spans_of_values() -> None:
    assert texts(BLOCKS[0]) == [("a", "1", 1, "plain"), ("b", "'x'", "x", "'"), ("c d", "[1, {e: f}]", [1, {"e": "f"}], "flow")]
    assert [text for _, text, _, _ in texts(BLOCKS[1])] == ["- 1\n-\n- - x\n  - y", "- m: 1\n      n: 2"]
    assert [text for _, text, _, _ in texts(BLOCKS[2])] == ["|\n  one\n\n  two  ", ">+\n  x\n\n", "|2-\n    y"]
    assert [text for _, text, _, _ in texts(BLOCKS[3])] == ["&x\n  - 1", "*x", "!t\n  d: &y 1", "!!str 12"]
    assert [text for _, text, _, _ in texts(BLOCKS[4])] == ["one\n  two", "three", '"four\n  five"', "", ""]


@pytest.mark.parametrize("block", BLOCKS)
def test_line_ends_of_windows_give_the_same_values_and_spans(block: str) -> None:
    found = texts(block.replace("\n", "\r\n"))
    assert [(key, text.replace("\r\n", "\n"), value, style) for key, text, value, style in found] == texts(block)


@pytest.mark.parametrize("block", BLOCKS)
def test_without_libyaml_the_answer_is_the_same(block: str, monkeypatch: pytest.MonkeyPatch) -> None:
    fast = texts(block)
    monkeypatch.setattr(yaml_nodes, "_LOADER", yaml.SafeLoader)
    assert texts(block) == fast


@pytest.mark.parametrize("block", BLOCKS)
@pytest.mark.parametrize("value", ["new", ["x"], None])
def test_without_libyaml_edits_are_the_same(block: str, value: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def edited() -> str:
        try:
            return edit_properties(f"---\n{block}---\n", set={"a": value})
        except VaultError as error:
            return error.code

    fast = edited()
    monkeypatch.setattr(yaml_nodes, "_LOADER", yaml.SafeLoader)
    assert edited() == fast


def test_items_have_spans() -> None:
    parsed = parse("a: [x, 'y', [z]]\nb:\n  - one\n  -\n  - two three # c\n")
    assert parsed is not None
    block = "a: [x, 'y', [z]]\nb:\n  - one\n  -\n  - two three # c\n"
    assert [[block[item.start : item.end] for item in entry.node.items or ()] for entry in parsed.entries] == [
        ["x", "'y'", "[z]"],
        ["one", "", "two three"],
    ]


def test_what_holds_no_mapping() -> None:
    assert parse("just text\n") is None
    assert parse("- a\n") is None
    empty = parse("# only a comment\n")
    assert empty is not None
    assert empty.entries == ()


@pytest.mark.parametrize("block", ["a: 1\n---\nb: 2\n", "a: 1\n...\n", "%YAML 1.1\n---\na: 1\n", "a: \x07\n", "a: \ufdd0\u2028\n"])
def test_what_is_refused(block: str) -> None:
    with pytest.raises(VaultError) as caught:
        parse(block)
    assert caught.value.code == "FRONTMATTER_INVALID"
