"""Changes that the user leaves out of a plan: files, and edits inside files.

They are left out while the plan is dry-run, where a call proposes them. So later steps see the
vault without them, and the preview stays exactly what is executed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from obsidian_agent.errors import Problem
from obsidian_agent.terminal_text import counted
from obsidian_agent.vault.paths.path import VaultPath
from obsidian_agent.vault.views.changes import (
    ChangeSet,
    CreateFile,
    FileChange,
    MakeFolder,
    ModifyFile,
    NetChange,
)
from obsidian_agent.vault.views.diff import TextEdit, text_edits, without_edits
from obsidian_agent.vault.views.hashed_base import HashedBase
from obsidian_agent.vault.views.overlay import OverlayVault


class LeftOut(Struct, frozen=True):
    """The changes that are left out.

    Files have the path of their net change, which is the one before the plan, or of a new file.
    """

    files: frozenset[str] = frozenset()
    edits: frozenset[tuple[str, TextEdit]] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.files or self.edits)

    def with_files_toggled(self, paths: frozenset[str]) -> LeftOut:
        """Return this with files left out; if all of them are already, without them."""
        if paths <= self.files:
            return LeftOut(self.files - paths, self.edits)
        edits = frozenset((path, edit) for path, edit in self.edits if path not in paths)
        return LeftOut(self.files | paths, edits)

    def with_edit_toggled(self, path: str, edit: TextEdit) -> LeftOut:
        """Return this with one edit of a file left out, or no longer."""
        return LeftOut(self.files - {path}, self.edits ^ {(path, edit)})

    def edits_in(self, path: str) -> frozenset[TextEdit]:
        """Return the edits of a file that are left out."""
        return frozenset(edit for file, edit in self.edits if file == path)

    def remaining(
        self, changes: Sequence[FileChange], overlay: OverlayVault
    ) -> tuple[FileChange, ...] | None:
        """Return what remains of the changes that a call proposes.

        Return None if it creates, renames or deletes something that is left out: then nothing of
        the call remains, such as the links that would follow a renamed file.
        """
        if not self:
            return tuple(changes)
        remaining: list[FileChange] = []
        for change in changes:
            path = _original_path(change, overlay)
            if path.text not in self.files:
                if isinstance(change, ModifyFile):
                    change = self._edited(change, path, overlay)
                remaining.append(change)
            elif not isinstance(change, ModifyFile):
                return None
        return tuple(remaining)

    def _edited(self, change: ModifyFile, path: VaultPath, overlay: OverlayVault) -> ModifyFile:
        edits = self.edits_in(path.text)
        if not edits or overlay.origin(change.path) is None:
            return change
        content = without_edits(overlay.before.read(path), change.content, edits)
        return replace(change, content=content)

    def problems(self, change_set: ChangeSet, before: HashedBase) -> Iterator[Problem]:
        """Yield an error for each change that is still part of the plan."""
        for change in change_set.changes:
            path = change.path.text
            if path in self.files:
                yield _still_changed(path, "it is changed in another way, too")
            elif not self.edits_in(path).isdisjoint(edits_of(change, before)):
                yield _still_changed(path, "a step makes this change together with others")

    def summary(self) -> list[str]:
        """Return the left-out changes as texts, such as “A.md” and “B.md: 2 changes”."""
        numbers: dict[str, int] = {}
        for path, _ in self.edits:
            numbers[path] = numbers.get(path, 0) + 1
        partly = [f"{path}: {counted(number, 'change')}" for path, number in numbers.items()]
        return sorted([*self.files, *partly])


def edits_of(change: NetChange, before: HashedBase) -> list[TextEdit]:
    """Return the edits of a file that was there before; none for other changes."""
    if change.before is None or change.content is None:
        return []
    return text_edits(before.read(change.before), change.content)


def _still_changed(path: str, reason: str) -> Problem:
    return Problem("ARGUMENT_INVALID", f"{path} cannot be left out: {reason}.", path=path)


def _original_path(change: FileChange, overlay: OverlayVault) -> VaultPath:
    if isinstance(change, CreateFile | MakeFolder):
        return change.path
    return overlay.origin(change.path) or change.path
