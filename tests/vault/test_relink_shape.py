from __future__ import annotations

import pytest

from obsidian_agent.vault.links.link_text import LinkStyle, Shape, relative_path, shape_of, spellings
from previews import vault_path

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
    assert [shape_of("Note", root, root, LinkStyle(format_)).form for format_ in ("shortest", "relative", "absolute")] == [
        "name",
        "relative",
        "absolute",
    ]


@pytest.mark.parametrize(
    ("shape", "first"),
    [
        (Shape("name", extension=False), ["new"]),
        (Shape("name", extension=True), ["new.md"]),
        (Shape("absolute", extension=False), ["A/C/new"]),
        (Shape("rooted", extension=True), ["/A/C/new.md"]),
        (Shape("tail", extension=False, depth=2), ["C/new"]),
        (Shape("relative", extension=False, dotted=True, depth=0), ["./C/new"]),
        (Shape("relative", extension=False, dotted=True), ["C/new", "./C/new"]),
    ],
)
def test_the_own_form_comes_first(shape, first):
    found = [spelling.text for spelling in spellings(shape, vault_path("A/C/new.md"), SOURCE, LinkStyle())]
    assert found[: len(first)] == first
    assert {"A/C/new.md", "/A/C/new.md", "./C/new.md", "new.md"} <= set(found)


def test_other_files_always_have_their_extension():
    found = [spelling.text for spelling in spellings(Shape("name", extension=False), vault_path("p.png"), SOURCE, LinkStyle())]
    assert found
    assert all(text.endswith(".png") for text in found)


def test_names_and_tails_must_be_unique_and_whole_paths_need_not():
    unique = {spelling.text: spelling.unique for spelling in spellings(Shape("tail", False, depth=2), FILE, SOURCE, LinkStyle())}
    assert unique["B/Note"]
    assert not unique["A/B/Note"]


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
