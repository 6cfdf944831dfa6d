from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from obsidian_agent.errors import VaultError
from obsidian_agent.vault.frontmatter import yaml_nodes, yaml_scalars
from obsidian_agent.vault.frontmatter.properties import edit_properties
from obsidian_agent.vault.frontmatter.yaml_nodes import Block, parse

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
    return [
        (entry.key, block[entry.node.start : entry.node.end], entry.node.value, entry.node.style)
        for entry in parsed.entries
    ]


@pytest.mark.parametrize("block", BLOCKS)
def test_line_ends_of_windows_give_the_same_values_and_spans(block: str) -> None:
    found = texts(block.replace("\n", "\r\n"))
    assert [
        (key, text.replace("\r\n", "\n"), value, style) for key, text, value, style in found
    ] == texts(block)


@pytest.mark.parametrize("block", BLOCKS)
def test_without_libyaml_the_answer_is_the_same(
    block: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fast = texts(block)
    monkeypatch.setattr(yaml_nodes, "_LOADER", yaml.SafeLoader)
    assert texts(block) == fast


@pytest.mark.parametrize("block", BLOCKS)
@pytest.mark.parametrize("value", ["new", ["x"], None])
def test_without_libyaml_edits_are_the_same(
    block: str, value: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def edited() -> str:
        try:
            return edit_properties(f"---\n{block}---\n", set={"a": value})
        except VaultError as error:
            return error.code

    fast = edited()
    monkeypatch.setattr(yaml_nodes, "_LOADER", yaml.SafeLoader)
    assert edited() == fast


# --- blocks of simple lines ---

LAW = settings(deadline=None)
LINES = st.lists(
    st.sampled_from(
        (
            *(
                "k: plain",
                "k: 'q'",
                'k2: "q: #"',
                "k:",
                "k: ",
                "k:  # c",
                "k : x",
                "two words: a b",
                "k: [a, 'b', \"c\"]",
                "k: []",
                "k: [a,]",
            ),
            *(
                "- a",
                "  - a",
                "  - 'b' # c",
                "    - x",
                "  -",
                "- a: b",
                "- - a",
                "- [a]",
                "# c",
                "  # c",
                "",
                "   ",
                "  text",
                "\ttab",
                "k: |",
                "k: >-",
            ),
            *(
                "k: a: b",
                "k: a #c",
                "k: a#c",
                "k: a :b",
                "k: - a",
                "k: *a",
                "k: &a b",
                "k: !t b",
                "k: {a: b}",
                "k: 'a''b'",
                'k: "\\n"',
                'k: "a',
                "? k",
                ": v",
            ),
            *(
                "k: a\u2028b",
                "k: a\x85",
                "k: \u00a0",
                "'k': v",
                "<<: x",
                "-k: v",
                "k-: v",
                "k#: v",
                "k: [a: b]",
                "k: [a ? b]",
                "k: [a #b]",
                "k: v\r",
                "...",
                "%a",
            ),
        )
    ),
    max_size=8,
)


@pytest.mark.parametrize(
    ("block", "values"),
    [
        ("", {}),
        ("\n# c\n\n", {}),
        (
            "a: x y # c\nb:\n  - 1\n  - 'two'\nc: [true, \"no\"]\r\nd:\n",
            {"a": "x y", "b": [1, "two"], "c": [True, "no"], "d": None},
        ),
        ("a:\n- x\n- y\nb: http://a.b/c#d\n", {"a": ["x", "y"], "b": "http://a.b/c#d"}),
    ],
)
def test_simple_blocks_are_read(block: str, values: dict[str, Any]) -> None:
    assert yaml_scalars.read(block) == values


@pytest.mark.parametrize(
    "block",
    [
        "a: |\n  x\n",
        "a: {b: 1}\n",
        "a: x\n  y\n",
        "a: &b x\n",
        "a: b: c\n",
        "a: 'x''y'\n",
        "- a\n",
        "a:\n  - b\n   - c\n",
        "a: \tx\n",
        "{}\n",
        "a: x",
    ],
)
def test_what_is_not_simple_is_left_to_the_parser(block: str) -> None:
    assert yaml_scalars.read(block) is None


def parsed(block: str) -> Block | None:
    try:
        return parse(block)
    except VaultError:
        return None


@LAW
@given(LINES, st.sampled_from(("\n", "\r\n")))
def test_law_a_simple_block_means_what_the_parser_says(lines: list[str], newline: str) -> None:
    block = "".join(line + newline for line in lines)
    simple = yaml_scalars.read(block)
    if simple is None:
        return
    whole = parsed(block)
    assert whole is not None
    assert repr(simple) == repr({entry.key: entry.node.value for entry in whole.entries})


@LAW
@given(st.text("ak-:#'\"[]{}&*!|>%@? \n\t,x1.\u2028\x85\u00a0é"))
def test_law_no_text_is_simple_that_the_parser_reads_otherwise(block: str) -> None:
    simple = yaml_scalars.read(block)
    if simple is not None:
        whole = parsed(block)
        assert whole is not None
        assert repr(simple) == repr({entry.key: entry.node.value for entry in whole.entries})
