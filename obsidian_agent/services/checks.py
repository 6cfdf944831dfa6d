"""Comparison of the vault with a preview, before a run and after it.

The check before a run adds the operations that pass to the run's record in the journal.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from obsidian_agent.agent.privacy.untrusted_text import neutral
from obsidian_agent.errors import Problem, VaultError
from obsidian_agent.journal.writer import RecordWriter
from obsidian_agent.plan.result import Instance, Preview
from obsidian_agent.vault.filesystem.dirhandles import FolderHandles
from obsidian_agent.vault.filesystem.inventory import Inventory
from obsidian_agent.vault.filesystem.store import OpenFiles
from obsidian_agent.vault.paths.path import VaultPath, is_trash, trash_path
from obsidian_agent.vault.transaction.actions import (
    Action,
    MoveEntry,
    PutFile,
    PutFolder,
    action_of,
    mark_held,
    metadata_of,
)
from obsidian_agent.vault.transaction.precheck import Finding, State, Survey
from obsidian_agent.vault.views.changes import Move, NetChange, OwnedOperation, WriteFile
from obsidian_agent.vault.views.disk import DiskView
from obsidian_agent.vault.views.view import VaultView

_MAX_NAMED: Final = 3
"""Number of a folder's entries that a conflict names."""


class Work(Struct, frozen=True):
    """An action of an instance: its number in the journal, and the new content of its file."""

    number: int
    action: Action
    content: bytes = b""


class Precheck:
    """Compares operations with the disk in execution order, and adds them to a record."""

    def __init__(
        self,
        handles: FolderHandles,
        writer: RecordWriter,
        instances: Sequence[Instance],
        editing: OpenFiles | None = None,
    ) -> None:
        self._survey = Survey(handles)
        self._view = DiskView(handles.store)
        self._compared: set[VaultPath] = set()
        self._writer = writer
        self._editing = editing
        self._instances = instances
        self.work: list[list[Work]] = [[] for _ in instances]
        """The work of each instance."""
        self.problems: list[Problem] = []
        """The reasons why the run must not start."""

    def check(self, operations: Sequence[OwnedOperation]) -> None:
        """Check all operations, and report every stale file rather than just the first."""
        for owned in sorted(operations, key=lambda owned: owned.instance):
            try:
                self._check_one(owned)
            except VaultError as error:
                self._report(owned, error.problem())

    def _check_one(self, owned: OwnedOperation) -> None:
        operation = owned.operation
        if isinstance(operation, Move) and operation.inventory is not None:
            self._check_inside(owned, operation.inventory)
        if isinstance(operation, Move) and is_trash(operation.new_path):
            self._make_trash(owned)
        action = action_of(operation)
        finding = self._survey.check(action)
        if finding.state is State.DONE and isinstance(action, PutFolder):
            return
        if finding.state is not State.READY:
            reason = finding.reason or "its content is different"
            self._report(owned, _conflict(action.path, reason, path=action.path.text))
            return
        content = operation.content if isinstance(operation, WriteFile) else b""
        action = mark_held(self._editing, _with_disk_state(action, finding))
        self._add(owned.instance, action, content, finding)

    def _check_inside(self, owned: OwnedOperation, inventory: Inventory) -> None:
        """Compare the content of a folder that moves with what the preview saw.

        A folder is compared once, even if it or a folder in it moves several times.
        """
        ancestor = inventory.path
        while not ancestor.is_root:
            if ancestor in self._compared:
                return
            ancestor = ancestor.parent
        self._compared.add(inventory.path)
        differences = list(islice(self._view.differences(inventory), _MAX_NAMED + 1))
        if not differences:
            return
        reason = ", ".join(f"{path} {change}" for path, change in differences[:_MAX_NAMED])
        if len(differences) > _MAX_NAMED:
            reason += ", and more"
        self._report(owned, _conflict(inventory.path, reason, path=differences[0][0]))

    def _make_trash(self, owned: OwnedOperation) -> None:
        action = PutFolder(trash_path(), created=True)
        finding = self._survey.check(action)
        if finding.state is State.READY:
            self._add(owned.instance, action, b"", finding)
        elif finding.state is not State.DONE:
            raise VaultError(
                "The vault's .trash is a link or a file, so nothing can be moved into it.",
                code="PATH_NOT_ALLOWED",
                path=action.path.text,
                hint="Replace it with a folder.",
            )

    def _add(self, instance: int, action: Action, content: bytes, finding: Finding) -> None:
        self._survey.assume(action)
        images: list[tuple[str, bytes]] = []
        if isinstance(action, PutFile):
            if action.before is not None and finding.content is not None:
                images.append((action.before, finding.content.data))
            if action.after is not None:
                images.append((action.after, content))
        number = self._writer.add(action, images)
        self.work[instance].append(Work(number, action, content))

    def _report(self, owned: OwnedOperation, problem: Problem) -> None:
        instance = self._instances[owned.instance]
        self.problems.append(problem.at(instance.step_id, instance.name))


def _with_disk_state(action: Action, finding: Finding) -> Action:
    """Add what only the disk knows: a moved entry's inode, a file's metadata and real path."""
    if isinstance(action, MoveEntry) and finding.status is not None:
        return replace(action, inode=(finding.status.st_dev, finding.status.st_ino))
    if isinstance(action, PutFile) and finding.content is not None:
        return replace(
            action, path=finding.real or action.path, was=metadata_of(finding.content.status)
        )
    return action


def _conflict(subject: VaultPath, reason: str, *, path: str) -> Problem:
    message = f"{subject.text} has changed since the preview: {reason}. Preview the plan again."
    return Problem("CONFLICT", message, path=path)


def verify(approved: Preview, view: VaultView) -> tuple[Problem, ...]:
    """Return a problem for each change of an executed plan that is not in `view`, the vault."""
    changes = approved.change_set.changes
    occupied = frozenset(
        change.new_path or change.path for change in changes if change.kind != "delete"
    )
    problems = (_difference(change, view, occupied) for change in changes)
    return tuple(problem for problem in problems if problem is not None)


def repair_request(problems: Sequence[Problem]) -> str:
    """Return a message that asks a model to repair what did not come out as previewed.

    The file names in it come from the plan that the user approved.
    """
    lines = [f"- {neutral(problem.message)}" for problem in problems[:20]]
    return "\n".join(
        (
            "The plan ran, but some results differ from the preview:",
            *lines,
            "Look at these files and propose a plan that repairs them.",
        )
    )


def _difference(
    change: NetChange, view: VaultView, occupied: frozenset[VaultPath]
) -> Problem | None:
    """Return how the vault differs from a change.

    At a path in `occupied` another change puts an entry, so that an entry there proves nothing.
    """

    def exists(path: VaultPath) -> bool:
        return (entry := view.locate(path)) is not None and entry.path == path

    is_deleted = change.kind == "delete"
    must_be_gone = change.path not in occupied
    path = change.path if is_deleted else change.new_path or change.path
    try:
        if is_deleted:
            if must_be_gone and exists(path):
                return _unexpected(path, "still exists")
            return None
        if not exists(path):
            return _unexpected(path, "does not exist")
        if change.new_path is not None and must_be_gone and exists(change.path):
            return _unexpected(change.path, "still exists at its old path")
        if change.content is not None and view.read(path) != change.content:
            return _unexpected(path, "has different content")
    except VaultError as error:
        return _unexpected(path, f"cannot be read ({error.code})")
    return None


def _unexpected(path: VaultPath, description: str) -> Problem:
    return Problem("NOT_AS_PREVIEWED", f"{path} {description}.", path=path.text)
