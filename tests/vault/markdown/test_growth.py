"""A note takes time in proportion to its size, also one that was made to be hard."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable

import pytest

from obsidian_agent.vault.links.references import references_in
from obsidian_agent.vault.markdown.bases import base_links
from obsidian_agent.vault.markdown.canvas import scan_canvas
from obsidian_agent.vault.markdown.edits import headings
from obsidian_agent.vault.markdown.lines import bullets
from obsidian_agent.vault.markdown.note import links_where, names_in, scan
from obsidian_agent.vault.markdown.targets import targets_and_tags

SIZES = 1_000, 16_000
"""Bytes of the smaller and the larger note: quadratic growth takes 256 times as long, not 16."""

MOST = 80
"""Wide enough for a machine that does much else meanwhile."""

CLOSERS = "\n\nx$ $$ ` `` ``` --> %% ]] ](b) > \"' ]]> </script>\n```\n~~~\n%%\n$$ b)"

OPENERS = [
    *(
        "[",
        "[[",
        "[[a",
        "[\n\n",
        "](",
        "[a](",
        "[a](<",
        '[a](b "',
        "[a](b (",
        "![[",
        "[![a](",
        "[^",
        "[a [b`c`](d) ](e) ",
        "[]\n",
    ),
    *(
        "<",
        "<!--",
        "a <!--\n",
        "<a ",
        "<a b='",
        "<div>\n",
        "a <a\n",
        "<script>",
        "<?",
        "&amp;",
        '<img src="',
    ),
    *(
        "`",
        "a `b\n",
        "```\n",
        "````\n```\n",
        "~~~\n",
        " ".join("`" * run for run in range(1, 40)),
        "`a\n\n",
    ),
    *("$", "$a ", "$$", "$$\n", "$a\n\n", "%%", "%%\n", "a %%\n", "==", "***", "*a **a ", "~~"),
    *(
        "> ",
        ">",
        "- ",
        "- a\n",
        "1. ",
        "- [ ] ",
        "> - ",
        "> ```\n",
        "".join(" " * depth + "- a\n" for depth in range(40)),
    ),
    *(
        "#",
        "#a/",
        "#a ",
        "# a #",
        "# a\n",
        "^a ",
        "a\n===\n\n",
        "-\n",
        "\t",
        "    a\n",
        "- a ^\t",
        "\n",
        "\\",
    ),
    *(
        "|a|\n|-|\n[[a\\|b]]\n\n",
        "|",
        "|-",
        "[a]: b\n",
        "[^1]: a\n",
        "[^a[^",
        '[a]: b "',
        "\u00e9[[",
        "\u00a0#a",
    ),
]


def _seconds(read: Callable[[str], object], text: str) -> float:
    """Processor time."""
    started = time.process_time()
    read(text)
    return time.process_time() - started


def _assert_grows_evenly(
    read: Callable[[str], object], unit: str, before: str = "", behind: str = ""
) -> None:
    small, large = (before + unit * (size // len(unit)) + behind for size in SIZES)
    allowed = MOST * max(0.0003, *(_seconds(read, small) for _ in range(3)))
    assert any(_seconds(read, large) < allowed for _ in range(3))


def _read_everything(text: str) -> None:
    data = text.encode()
    scan(data)
    names_in(data)
    links_where(data, lambda target: True)
    headings(text)
    bullets(text)


def test_prose_without_links_and_tags_costs_what_a_look_for_their_first_characters_costs() -> None:
    prose = "Words, and (more) words: all of them plain; nothing else! " * 4_000
    signs = re.compile(r"[\\\[#`$<~%]")
    allowed = 4 * min(_seconds(signs.findall, prose) for _ in range(5))
    assert any(_seconds(lambda text: targets_and_tags(text, 0), prose) < allowed for _ in range(5))


@pytest.mark.parametrize("opener", OPENERS)
def test_a_note_of_one_thing_over_and_over_takes_time_in_proportion_to_its_size(
    opener: str,
) -> None:
    _assert_grows_evenly(_read_everything, opener, behind="x" + CLOSERS)
    _assert_grows_evenly(lambda text: references_in(text.encode()), opener)


@pytest.mark.parametrize(
    ("before", "unit", "behind"),
    [
        ("# a", " ", "x"),
        ("# ", " ", "x"),
        ("- a", " ", "^ b"),
        ("- ", "> ", "x"),
        ("- ", "- ", "x"),
        ("> " * 500, "%%", ""),
    ],
)
def test_one_long_line_takes_time_in_proportion_to_its_length(
    before: str, unit: str, behind: str
) -> None:
    _assert_grows_evenly(_read_everything, unit, before, behind)


@pytest.mark.parametrize("entry", ["a{}: '[[b]]'\n", "# '[[b]]'\n", "a{}: |\n  x: '[[b]]'\n"])
def test_properties_with_many_links_take_time_in_proportion_to_their_size(entry: str) -> None:
    def read(text: str) -> object:
        return scan(
            "---\n{}---\n".format(
                "".join(entry.format(number) for number in range(len(text) // 20))
            ).encode()
        )

    _assert_grows_evenly(read, "x")


@pytest.mark.parametrize("text", ["[[\u00e9]] b", "\u00e9"])
def test_a_canvas_takes_time_in_proportion_to_its_cards(text: str) -> None:
    cards = [
        {"id": "a", "type": "text", "text": text},
        {"id": "b", "type": "file", "file": "\u00e9.md"},
    ]
    _assert_grows_evenly(
        lambda many: scan_canvas(
            json.dumps({"nodes": cards * (len(many) // 50)}, indent=1).encode()
        ),
        "x",
    )


@pytest.mark.parametrize("unit", ["[[a|b]]", 'link("a")', "# [[a]]\n"])
def test_a_base_takes_time_in_proportion_to_its_size(unit: str) -> None:
    _assert_grows_evenly(lambda text: base_links(text.encode()), unit)
