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
