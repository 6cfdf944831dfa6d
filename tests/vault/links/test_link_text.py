"""The text of links: new ones, the forms of old ones, and their bytes in a file."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from obsidian_agent.vault.links.graph import links_of
from obsidian_agent.vault.links.link_text import (
    DEFAULT_STYLE,
    LinkFormat,
    LinkStyle,
    Shape,
    is_plain,
    link_style,
    link_target,
    relative_path,
    shape_of,
    target_edit,
)
from obsidian_agent.vault.links.resolve import LinkResolver
from obsidian_agent.vault.markdown.inline import decoded
from obsidian_agent.vault.markdown.note import links_in, scan_lossy
from obsidian_agent.vault.text import apply
from previews import vault_path
from support import MakeVault

FILES = [
    "Note.md",
    "a/Note.md",
    "a/Only Here.md",
    "a/b/pic.png",
    "b/pic.png",
    "b/x.md",
    "x",
    "100%.md",
    "c/50%20.md",
]


@pytest.mark.parametrize(
    ("style", "target", "source", "text"),
    [
        (LinkStyle(), "a/Only Here.md", "src.md", "Only Here"),
        (LinkStyle(), "Note.md", "a/src.md", "Note"),
        (LinkStyle(), "a/Note.md", "a/src.md", "a/Note"),
        (LinkStyle(), "b/pic.png", "src.md", "b/pic.png"),
        (LinkStyle(), "b/x.md", "src.md", "b/x.md"),
        (LinkStyle("absolute"), "a/Only Here.md", "a/src.md", "a/Only Here"),
        (LinkStyle("relative"), "a/Only Here.md", "a/src.md", "Only Here"),
        (LinkStyle("relative"), "a/Only Here.md", "b/c/src.md", "../../a/Only Here"),
        (LinkStyle("relative"), "a/b/pic.png", "a/src.md", "./b/pic.png"),
        (LinkStyle("relative"), "a/Note.md", "a/src.md", "./Note"),
        (LinkStyle("shortest", markdown=True), "a/Only Here.md", "src.md", "Only%20Here.md"),
        (LinkStyle("relative", markdown=True), "a/Only Here.md", "b/src.md", "../a/Only%20Here.md"),
        (LinkStyle("absolute", markdown=True), "100%.md", "src.md", "100%25.md"),
        (LinkStyle(markdown=True), "c/50%20.md", "src.md", "50%2520.md"),
    ],
)
def test_each_form(style: LinkStyle, target: str, source: str, text: str) -> None:
    resolver = LinkResolver(map(vault_path, FILES))
    assert link_target(resolver, vault_path(target), vault_path(source), style) == text


_FOLDERS = st.sampled_from(["", "a/", "b/", "a/b/", "A/"])
_NAMES = st.sampled_from(["n.md", "N.md", "n", "n.md.md", "x y.md", "p.png", "%20.md"])
_FILES = st.lists(
    st.builds(lambda folder, name: folder + name, _FOLDERS, _NAMES),
    min_size=1,
    max_size=10,
    unique_by=str.lower,
)


@given(_FILES, _FOLDERS, st.sampled_from(["shortest", "relative", "absolute"]), st.booleans())
def test_it_means_the_file_whatever_the_form(
    files: list[str], folder: str, form: LinkFormat, markdown: bool
) -> None:
    resolver = LinkResolver(map(vault_path, files))
    source = vault_path(folder + "src.md")
    for file in files:
        text = link_target(resolver, vault_path(file), source, LinkStyle(form, markdown))
        assert resolver.resolve(decoded(text.encode()) if markdown else text, source) == vault_path(
            file
        )
        assert " " not in text or not markdown


@pytest.mark.parametrize(
    ("settings", "style"),
    [
        (None, DEFAULT_STYLE),
        ("{}", DEFAULT_STYLE),
        ("no json", DEFAULT_STYLE),
        ("[]", DEFAULT_STYLE),
        (
            json.dumps({"newLinkFormat": "relative", "useMarkdownLinks": True}),
            LinkStyle("relative", True),
        ),
        (
            json.dumps({"newLinkFormat": "absolute", "useMarkdownLinks": "yes"}),
            LinkStyle("absolute", False),
        ),
        (json.dumps({"newLinkFormat": "other"}), DEFAULT_STYLE),
    ],
)
def test_the_settings_of_a_vault(
    make_vault: MakeVault, settings: str | None, style: LinkStyle
) -> None:
    store = make_vault({"a.md": ""} if settings is None else {".obsidian/app.json": settings})
    assert link_style(store) == style


FILE, SOURCE = vault_path("A/B/Note.md"), vault_path("A/from.md")


@pytest.mark.parametrize(
    ("target", "shape"),
    [
        ("Note", Shape("name", extension=False)),
        ("note.MD", Shape("name", extension=True)),
        ("A/B/Note", Shape("absolute", extension=False)),
        ("/A/B/Note.md", Shape("rooted", extension=True)),
        ("B/Note", Shape("tail", extension=False, depth=2)),
        ("./B/Note", Shape("relative", extension=False, dotted=True, depth=0)),
        ("../A/B/Note", Shape("relative", extension=False, dotted=True)),
    ],
)
def test_the_form_of_a_target(target, shape):
    assert shape_of(target, FILE, SOURCE, LinkStyle()) == shape


def test_the_setting_tells_forms_apart_that_look_alike():
    assert shape_of("B/Note", FILE, SOURCE, LinkStyle("relative")).form == "relative"
    assert shape_of("B/Note", FILE, SOURCE, LinkStyle("absolute")).form == "tail"
    root = vault_path("Note.md")
    assert [
        shape_of("Note", root, root, LinkStyle(format_)).form
        for format_ in ("shortest", "relative", "absolute")
    ] == [
        "name",
        "relative",
        "absolute",
    ]


@pytest.mark.parametrize(
    ("path", "source", "relative"),
    [
        ("x", "from.md", "x"),
        ("A/x", "A/from.md", "x"),
        ("A/B/x", "A/from.md", "B/x"),
        ("x", "A/B/from.md", "../../x"),
        ("C/x", "A/from.md", "../C/x"),
        ("A", "A/from.md", "../A"),
    ],
)
def test_relative_paths(path, source, relative):
    assert relative_path(path, vault_path(source)) == relative


NOTE, CANVAS = vault_path("n.md"), vault_path("b.canvas")


def written(text: str, target: str) -> str | None:
    """Replace the target of a note's only link."""
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


# --- laws ---

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
names = st.text("abcXYZ019 ._-/+,äß日", min_size=1, max_size=12).filter(
    lambda name: name.strip() == name and "//" not in name
)


@given(texts)
def test_links_alone_are_the_links_of_a_scan(text):
    for data in (
        text.encode(),
        b"\xef\xbb\xbf---\n" + text.encode(),
        text.replace("\n", "\r\n").encode() + b"\xff",
    ):
        assert links_in(data) == scan_lossy(data).links


@given(texts, names, names)
def test_exchanging_plain_names_changes_no_structure(text, old, new):
    """The property on which `relink` relies when it does not scan the new bytes again."""

    def filled(name: str) -> bytes:
        return text.replace("L", name).replace("M", name.replace(" ", "%20")).encode()

    def shape(data: bytes, name: str) -> list[tuple[object, ...]]:
        return [
            (link.kind, link.target == name, link.subpath, link.display, link.line, link.form)
            for link in links_in(data)
        ]

    assert is_plain(old.encode())
    assert shape(filled(old), old) == shape(filled(new), new)
