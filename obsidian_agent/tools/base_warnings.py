"""Warnings about bases (`.base`) that name what is renamed or deleted: they are read as text and never changed."""

from __future__ import annotations

import re
from collections.abc import Iterator

from obsidian_agent.errors import VaultError
from obsidian_agent.vault.base_file import base_links
from obsidian_agent.vault.index import VaultIndex
from obsidian_agent.vault.paths import VaultPath
from obsidian_agent.vault.relink_shift import Shift, ShiftedLinks
from obsidian_agent.vault.view import Entry, VaultView


def bases_that_break(view: VaultView, index: VaultIndex, shift: Shift, entry: Entry) -> Iterator[VaultPath]:
    """The bases with a link whose meaning the shift changes, or that ask for the folder `entry` by its path."""
    after = ShiftedLinks(index, shift)
    folder = re.compile(rb"inFolder\([\"'\\]*+%s[/\"'\\]" % re.escape(entry.path.text.encode())) if entry.kind == "folder" else None
    for base in index.bases():
        path = shift.after(base)
        if path is None:
            continue
        try:
            data = view.read(base)
        except VaultError:
            continue
        if (folder is not None and folder.search(data)) or any(
            _breaks(link.target, base, path, index, shift, after) for link in base_links(data)
        ):
            yield path


def _breaks(target: str, base: VaultPath, path: VaultPath, index: VaultIndex, shift: Shift, after: ShiftedLinks) -> bool:
    before = index.resolve(target, base) if target else None
    return before is not None and (shift.after(before) is None or after.resolve(target, path) != shift.after(before))
