from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from obsidian_agent.vault.links.graph import links_of
from obsidian_agent.vault.links.link_text import Edit, apply, display_edit, is_plain, target_edit
from obsidian_agent.vault.markdown.note import links_in, scan_lossy
from previews import vault_path

NOTE, CANVAS = vault_path("n.md"), vault_path("b.canvas")


def written(text: str, target: str) -> str | None:
    """A note with one link whose target is exchanged."""
    data = text.encode()
    edit = target_edit(data, links_in(data)[0], target, canvas=False)
    return None if edit is None else apply(data, [edit]).decode()


@pytest.mark.parametrize(
    ("text", "target", "expected"),
    [
        ("[[a]]", "x y", "[[x y]]"),
        ("[[a|b]]", "x'y", "[[x'y|b]]"),
        ("[a](a.md)", "x (1) y.md", "[a](x%20(1)%20y.md)"),
        ("[a](a.md)", "x) y.md", "[a](x%29%20y.md)"),
        ("[a](a.md)", "50%.md", "[a](50%25.md)"),
        ("[a](a.md)", "a:b.md", "[a](a%3Ab.md)"),
        ("[a](%C3%A4.md)", "ö ü.md", "[a](%C3%B6%20%C3%BC.md)"),
        ("[a](<a.md>)", "50% (x.md", "[a](<50%25 (x.md>)"),
        ('---\na: "[[a]]"\n---\n', 'x"\\y', '---\na: "[[x\\"\\\\y]]"\n---\n'),
        ("---\na: '[[a]]'\n---\n", "x'y", "---\na: '[[x''y]]'\n---\n"),
    ],
)
def test_a_target_is_written_as_its_link_needs_it(text, target, expected):
    assert written(text, target) == expected
    assert links_in(expected.encode())[0].target == target


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("[[a]]", "C# x"),
        ("[[a]]", "x|y"),
        ("[[a]]", "x]]y"),
        ("[[a]]", "[[x"),
        ("[[a]]", "x]"),
        ("[a](a.md)", "C#.md"),
        ("[a](<a.md>)", "x>y.md"),
    ],
)
def test_what_a_link_cannot_hold(text, target):
    assert written(text, target) is None


def test_a_card_of_a_canvas():
    data = b'{"nodes":[{"id":"1","type":"file","file":"a.md"}]}'
    (link,) = links_of(CANVAS, data)
    edit = target_edit(data, link, 'C# "x"\\y.md', canvas=True)
    assert edit is not None
    assert links_of(CANVAS, apply(data, [edit]))[0].target == 'C# "x"\\y.md'


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[[old|old]]", "[[old|new]]"),
        ("[[old|old.md]]", "[[old|new.md]]"),
        ("[[old| old ]]", "[[old| new ]]"),
        ("[old](old.md)", "[new](old.md)"),
        ("[[old#H|old]]", "[[old#H|new]]"),
        ("[[old|Old]]", None),
        ("[[old|the old]]", None),
        ("[[old]]", None),
        ("![[old|old]]", None),
        ("![old](old.md)", None),
    ],
)
def test_a_display_text_that_is_the_old_name_follows(text, expected):
    data = text.encode()
    edit = display_edit(data, links_in(data)[0], vault_path("A/old.md"), vault_path("new.md"), canvas=False)
    assert (None if edit is None else apply(data, [edit]).decode()) == expected


def test_edits_are_made_at_their_places():
    assert apply(b"0123456789", [Edit(5, 6, b"five"), Edit(0, 0, b"<"), Edit(9, 10, b"")]) == b"<01234five678"


# --- laws -----------------------------------------------------------------------------------------------------------------------

PIECES = [
    *(
        "[[L]]",
        "![[L|x]]",
        "[t](M)",
        "![t](M 'x')",
        "[[L#h|y]]",
        '"[[L]]"',
        "'[[L|z]]'",
        "[a",
        "]",
        "](",
        "`",
        "``",
        "$",
        "$$",
        "%%",
        "<b>",
        "<!--",
    ),
    *(
        "-->",
        "|",
        "\n",
        "\n\n",
        "\n---\n",
        "---\n",
        "a: ",
        "- ",
        "    ",
        "\t",
        "> ",
        "# ",
        "\n```\n",
        "| - | - |",
        "~~~",
        "word ",
        "é",
        "\\",
        "=\n",
    ),
]
texts = st.lists(st.sampled_from(PIECES), max_size=25).map("".join)
names = st.text("abcXYZ019 ._-/+,äß日", min_size=1, max_size=12).filter(lambda name: name.strip() == name and "//" not in name)


@given(texts)
def test_links_alone_are_the_links_of_a_scan(text):
    for data in (text.encode(), b"\xef\xbb\xbf---\n" + text.encode(), text.replace("\n", "\r\n").encode() + b"\xff"):
        assert links_in(data) == scan_lossy(data).links


@given(texts, names, names)
def test_exchanging_plain_names_changes_no_structure(text, old, new):
    """What `relink` relies on when it does not scan the new bytes again."""

    def filled(name: str) -> bytes:
        return text.replace("L", name).replace("M", name.replace(" ", "%20")).encode()

    def shape(data: bytes, name: str) -> list[tuple[object, ...]]:
        return [(link.kind, link.target == name, link.subpath, link.display, link.line, link.form) for link in links_in(data)]

    assert is_plain(old.encode())
    assert shape(filled(old), old) == shape(filled(new), new)
