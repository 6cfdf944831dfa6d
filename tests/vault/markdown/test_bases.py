"""The files that a base names, and their positions."""

from __future__ import annotations

from obsidian_agent.vault.markdown.bases import base_links


def test_a_base_names_files() -> None:
    data = (
        b'filters:\n  and:\n    - categories.contains(link("Books"))\n    - \'file.hasLink("a/b.md#H")\'\n'
        b'    - "note.up == link(\\"My Note\\")"\n    # link("no")\n    - file.hasLink(this)\nformulas:\n  x: \'"[[Wiki|w]]"\'\n'
    )
    links = base_links(data)
    assert [(link.kind, link.target, link.subpath, link.line) for link in links] == [
        ("base", "Books", "", 3),
        ("base", "a/b.md", "#H", 4),
        ("base", "My Note", "", 5),
        ("base", "Wiki", "", 9),
    ]
    assert [data[link.target_start : link.target_end] for link in links] == [
        b"Books",
        b"a/b.md",
        b"My Note",
        b"Wiki",
    ]
