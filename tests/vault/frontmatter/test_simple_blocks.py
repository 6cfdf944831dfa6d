from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from obsidian_agent.errors import VaultError
from obsidian_agent.vault.frontmatter import yaml_scalars
from obsidian_agent.vault.frontmatter.yaml_nodes import Block, parse

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
        ("a: x y # c\nb:\n  - 1\n  - 'two'\nc: [true, \"no\"]\r\nd:\n", {"a": "x y", "b": [1, "two"], "c": [True, "no"], "d": None}),
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
