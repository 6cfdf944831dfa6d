"""A program beside this one that holds files of the vault open, with words in it that the disk may not have yet.

It is given from above (`VaultStore.editor`), and it changes the files that it holds itself: so what the person sees, the disk and the undo of
that program stay one. Paths are vault paths as text.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from obsidian_agent.errors import Problem


class Editing(Protocol):
    """The files that were open when they were settled."""

    @property
    def warnings(self) -> Sequence[Problem]:
        """What people should know of files that are open and were changed on the disk all the same."""

    def holds(self, path: str) -> bool:
        """Whether the file is open."""

    def put(self, path: str, before: bytes, after: bytes) -> bool:
        """Have an open file changed; False when that has to be done on the disk.

        Raises Conflict when the person has typed in it meanwhile, VaultError when the program cannot do it, and ObsidianError when nobody
        knows whether it did.
        """


class Editor(Protocol):
    """What can be asked of the program."""

    def settle(self, paths: Iterable[str] | None, *, surely: bool = False) -> Editing | None:
        """Have what is typed in these files, and in those below these folders (None: everywhere), written to the disk. None: nothing is open.

        Raises Conflict for words that cannot be saved. A program that runs and does not answer is an ObsidianError with `surely`, else as if
        nothing were open, with a warning.
        """
