"""All paths of a file."""

from __future__ import annotations

import os
from pathlib import Path

from obsidian_agent.vault.index.file_names import FileNames
from obsidian_agent.vault.paths.path import PathUse, parse
from support import MakeVault


def test_a_file_is_known_by_its_links_and_hard_links(make_vault: MakeVault, tmp_path: Path) -> None:
    store = make_vault({"a.md": "a", "Deep/b.md": "b", "c.md": "c"})
    root = Path(store.real_path)
    os.link(root / "a.md", root / "Deep/hard.md")
    os.link(root / "c.md", tmp_path / "outside.md")
    os.symlink("Deep/hard.md", root / "way.md")
    os.symlink("../outside.md", root / "out.md")
    names = FileNames(store)

    def names_of(text: str) -> tuple[str, set[str]]:
        first, *others = (name.text for name in names(parse(text, PathUse.READ)))
        return first, set(others)

    assert names_of("a.md") == ("a.md", {"Deep/hard.md"})
    assert names_of("way.md") == ("way.md", {"Deep/hard.md", "a.md"})
    for text in ("Deep/b.md", "Deep", "c.md", "out.md", "nothing.md", "No/nothing.md"):
        assert names_of(text) == (text, set())
