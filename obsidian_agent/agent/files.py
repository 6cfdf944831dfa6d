"""The files at a place of a vault that a person wrote down, in whatever case."""

from __future__ import annotations

from collections.abc import Iterator

from obsidian_agent.errors import VaultError
from obsidian_agent.vault.paths import ROOT, PathUse, VaultPath, parse
from obsidian_agent.vault.view import VaultView


def files_below(view: VaultView, start: str) -> Iterator[VaultPath]:
    """The files below a folder ("": all of the vault), or the file itself; none where there is no such place."""
    try:
        place = parse(start, PathUse.READ) if start else ROOT
        there = view.locate(place) if start else None
        if start and there is None and (twin := view.twin(place)) is not None:
            there = view.locate(twin)
        if start and there is None:
            return
        if there is not None and there.kind == "file":
            yield there.path
            return
        yield from (entry.path for entry in view.walk(there.path if there is not None else ROOT) if entry.kind == "file")
    except VaultError:
        return
