"""The texts of notes as an index hands them out to be searched."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from obsidian_agent.errors import Problem, VaultError
from obsidian_agent.vault.paths.path import VaultPath


class NoteText(NamedTuple):
    """A note and its bytes, or why it cannot be read."""

    path: VaultPath
    data: bytes | Problem


class Reader(Protocol):
    """A view or a store."""

    def read(self, path: VaultPath, /) -> bytes: ...


def read_note(reader: Reader, path: VaultPath) -> bytes | Problem:
    """The bytes of a note, or why it cannot be read."""
    try:
        return reader.read(path)
    except VaultError as error:
        return error.problem()
