"""Laws of scans, on notes made of everything that can hide a link or break one."""

from __future__ import annotations

from hypothesis import example, given, settings
from hypothesis import strategies as st

from obsidian_agent.vault.markdown.model import ScannedNote
from obsidian_agent.vault.markdown.note import (
    links_in,
    links_to,
    links_where,
    names_in,
    names_of,
    scan,
    scan_by_blocks,
    scan_lossy,
)

_LINKS = (
    "[[a]]",
    "![[i.png|100]]",
    "[[b#h|c]]",
    "[[a\\|b]]",
    "[[Sq]x]]",
    "[[#h]]",
    "[[|]]",
    "[[ ]]",
    "[t](n.md)",
    "![p](q%20r.png)",
)
_MORE_LINKS = (
    "[x](<a\u00a0b.md>)",
    "[a [[b]] c](d.md)",
    "[![i](j.png)](k.md)",
    "[e]()",
    "[s](https://a.b)",
    '[q](a(b)c.md "ti")',
    "[",
    "]",
    "](",
)
_HIDING = (
    "`",
    "``",
    "`[[c]]`",
    "$",
    "$$",
    "$[[m]]$",
    "$5",
    "<!-- ",
    "-->",
    "<br>",
    "<div>",
    "</div>",
    '<b x="[[y]]">',
    "<https://x.y>",
    "%%",
)
_TEXT = (
    "\\",
    "\\[[e]]",
    "\\`",
    "[[",
    "]]",
    "|",
    "\\|",
    "text",
    "more words",
    "#tag",
    "(#t2)",
    "**",
    "(",
    ")",
    '"',
    "^blk",
    "é",
    "日本",
    "\u00a0",
)
_INLINE = (*_LINKS, *_MORE_LINKS, *_HIDING, *_TEXT)
_STARTS = (
    *([""] * 6),
    *(
        "# ",
        "## ",
        "- ",
        "* ",
        "1. ",
        "2. ",
        "  - ",
        "    - ",
        "\t- ",
        "    ",
        "\t",
        "   ",
        "> ",
        ">> ",
        "> - ",
        "- > ",
        "- [ ] ",
        "1) [x] ",
        "```",
    ),
    *(
        "~~~",
        "  ```",
        "- ```",
        "> ```",
        "| ",
        "<div>",
        "<!--",
        "$$",
        "%%",
        "---",
        "===",
        "|---|",
        "| - | - |",
        "-->",
        "<p>",
        "<script>",
        "- - ",
    ),
    *("      ", ">     ", "-     ", "[[z]] | "),
)
_LINE = st.builds(
    lambda start, pieces: start + "".join(pieces),
    st.sampled_from(_STARTS),
    st.lists(st.sampled_from([*_INLINE, " "]), max_size=5),
)
_NOTE = st.builds(
    lambda lines, newline, front: front + newline.join(lines),
    st.lists(st.one_of(st.just(""), st.just(">"), _LINE), max_size=8),
    st.sampled_from(["\n", "\n", "\r\n"]),
    st.sampled_from(["", "", "\ufeff", "---\ntags: [a]\nup: '[[b]]'\n---\n"]),
)


@example("- - - \t\t- - \t[[c]]")  # four marks, and a tab or two that make code of what follows
@example("- \t      [[c]]")
@example("- ---\n\t\t[[c]]")  # a rule is no paragraph that goes on
@example("- - x\n\t~~~\n[[c]]")  # a fence that ends with its item
@example("- [[]")  # no task
@given(_NOTE)
@settings(max_examples=400, deadline=None)
def test_a_note_says_the_same_by_way_of_its_blocks(text: str) -> None:
    assert scan(text.encode()) == scan_by_blocks(text.encode())


@given(_NOTE)
@settings(max_examples=200, deadline=None)
def test_the_links_alone_are_the_same_links(text: str) -> None:
    assert links_in(text.encode()) == scan_lossy(text.encode()).links


_PLAIN_PIECES = (
    *(
        "[[a]]",
        "[[a|b]]",
        "[[a\\|b]]",
        "![[i.png]]",
        "[t](n.md)",
        "[t](<n m.md>)",
        "[u](https://x.y/z)",
        "[^1]",
        "[ ]",
        "[x]",
        "[n]",
        "[d]:",
    ),
    *(
        "#tag",
        "#a/b",
        "#1",
        "(#t)",
        "a#b",
        "x/#f",
        "]#z",
        "`#u",
        "\\#v",
        "é#w",
        ">#y",
        "\u00a0#nb",
        "#日本",
        "#a’b",
        "![",
        "[",
        "](",
        ")",
    ),
    *(
        "`c`",
        "`[[c]]`",
        "`a|b`",
        "``",
        "$5",
        "$x$",
        "$x",
        "\\-",
        "<br>",
        "a<br>",
        "<https://x.y>",
        "<",
        "< b",
        "~~",
        "~~~",
        "a%%",
        "%%",
        "\\[[e]]",
        "|",
    ),
    *("text", "more words.", "^id", "é"),
)
_PLAIN_STARTS = (
    *([""] * 8),
    *(
        "- ",
        "- [ ] ",
        "  - ",
        "    - ",
        "\t- ",
        "\t",
        "    ",
        "> ",
        "# ",
        "1. ",
        "2. [ ] ",
        "| ",
        "|---|",
        "---",
        "```",
        "````",
        "  ```",
        "%%",
        "$$",
        "~~~",
    ),
    *("a | b", "- | -", "%% x", "y %%", "```py", "===", "<div>"),
)
_PLAIN_NOTE = st.builds(
    lambda front, lines: front + "\n".join(lines),
    st.sampled_from(
        [
            "",
            "",
            "---\ntags: [a, b/c]\nup: '[[b]]'\naliases: x\n---\n",
            "---\nTags: [q]\na: [\n---\n",
            '---\n"tags": x\n---\n',
            "---\n",
        ]
    ),
    st.lists(
        st.one_of(
            st.just(""),
            st.builds(
                lambda start, pieces, glue: start + glue.join(pieces),
                st.sampled_from(_PLAIN_STARTS),
                st.lists(st.sampled_from(_PLAIN_PIECES), max_size=4),
                st.sampled_from([" ", " ", ""]),
            ),
        ),
        max_size=9,
    ),
)


@example("a $HOME [[a]] \\* b")  # an escape closes no mathematics
@example("\\![[a]]")  # an escape before a link, which is no embed then
@example("[x](%61)\n\n`[[a]]`")  # a link beside code that looks like one
@example("[x](y) [x](a%2520b)\n\n`[[a%20b]]`")
@given(st.one_of(_PLAIN_NOTE, _NOTE))
@settings(max_examples=600, deadline=None)
def test_the_names_alone_are_the_same_names(text: str) -> None:
    data = text.encode()
    assert names_in(data) == names_of(scan_lossy(data))
    for wanted in ({"a", "n.md"}, {"i.png", "b"}, {"n m.md"}, {"a%20b"}):
        assert links_where(data, wanted.__contains__) == tuple(
            link for link in links_in(data) if link.target in wanted
        )
        known = wanted & {link.target for link in links_in(data)}
        assert links_to(data, known) == links_where(data, known.__contains__)


def _quotes(data: bytes, note: ScannedNote) -> None:
    for link in note.links:
        whole, target = (
            data[link.start : link.end].decode(),
            data[link.target_start : link.target_end].decode(),
        )
        assert link.start <= link.target_start <= link.target_end <= link.end
        assert whole.startswith(
            {"wikilink": "[[", "embed": "![[", "markdown": "[", "markdown-embed": "!["}.get(
                link.kind, "'"
            )
        )
        assert target == link.target or link.is_markdown
        assert link.line == data.count(b"\n", 0, link.start) + 1
    for tag in note.tags:
        assert data[tag.start : tag.end].decode() == ("" if tag.in_properties else "#") + tag.name
        assert tag.line == data.count(b"\n", 0, tag.start) + 1
    for heading in note.headings:
        assert heading.text in data[heading.start : heading.end].decode()
        assert heading.line == data.count(b"\n", 0, heading.start) + 1
    for block in note.blocks:
        assert data[block.start : block.end].decode() == f"^{block.name}"


@given(_NOTE)
@settings(max_examples=300, deadline=None)
def test_places_are_those_of_the_bytes(text: str) -> None:
    _quotes(text.encode(), scan(text.encode()))


@given(_NOTE)
@settings(max_examples=200, deadline=None)
def test_another_target_in_the_place_of_one_changes_no_other_link(text: str) -> None:
    data = text.encode()
    before = scan(data).links
    for index, link in enumerate(before):
        if set(link.target) & set("[]|`$\\<(") or not link.target:
            continue  # they may open or close something
        changed = scan(data[: link.target_start] + b"Other" + data[link.target_end :]).links
        expected = [each.target + each.subpath for each in before]
        expected[index] = "Other" + link.subpath
        assert [each.target + each.subpath for each in changed] == expected


@given(st.binary(max_size=300))
def test_any_bytes_are_read(data: bytes) -> None:
    note = scan_lossy(data)
    assert note.lossy or scan(data) == note
    assert links_in(data) == note.links
    assert names_in(data) == names_of(note)
