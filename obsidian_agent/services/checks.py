"""The vault compared with a preview: before a run, when what passes is written to the journal in the same go, and after it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Final

from obsidian_agent.agent.privacy.untrusted_text import neutral
from obsidian_agent.dataclass import dataclass, replace
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

_NAMED: Final = 3
"""Entries of a folder that a conflict names."""


@dataclass(frozen=True, slots=True)
class Work:
    """One action of an instance: its number in the journal, and the new content of its file."""

    number: int
    action: Action
    content: bytes = b""


class Precheck:
    """Checks operations in the order of execution against the disk as it is, and adds them to a record."""

    def __init__(
        self,
        handles: FolderHandles,
        writer: RecordWriter,
        instances: Sequence[Instance],
        editing: OpenFiles | None = None,
    ) -> None:
        self._survey = Survey(handles)
        self._view = DiskView(handles.store)
        self._bound: set[VaultPath] = set()
        self._writer = writer
        self._editing = editing
        self._instances = instances
        self.work: list[list[Work]] = [[] for _ in instances]
        """What each instance does."""
        self.problems: list[Problem] = []
        """Why the run must not start."""

    def check(self, operations: Sequence[OwnedOperation]) -> None:
        """Go through all operations; every stale file becomes a problem, not just the first."""
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
            self._report(owned, _conflict(action.path, finding))
            return
        content = operation.content if isinstance(operation, WriteFile) else b""
        self._add(
            owned.instance, mark_held(self._editing, _as_found(action, finding)), content, finding
        )

    def _check_inside(self, owned: OwnedOperation, inventory: Inventory) -> None:
        """Whether a folder holds what the preview saw in it; asked once of each folder, however often it, or one in it, is moved."""
        above = inventory.path
        while not above.is_root:
            if above in self._bound:
                return
            above = above.parent
        self._bound.add(inventory.path)
        found = list(islice(self._view.differences(inventory), _NAMED + 1))
        if found:
            named = ", ".join(f"{path} {what}" for path, what in found[:_NAMED]) + (
                ", and more" if len(found) > _NAMED else ""
            )
            message = f"{inventory.path.text} is no longer what the preview read: {named}. Preview the plan again."
            self._report(owned, Problem("CONFLICT", message, path=found[0][0]))

    def _make_trash(self, owned: OwnedOperation) -> None:
        action = PutFolder(trash_path(), created=True)
        finding = self._survey.check(action)
        if finding.state is State.READY:
            self._add(owned.instance, action, b"", finding)
        elif finding.state is not State.DONE:
            raise VaultError(
                "The vault's .trash is not a folder of its own, so nothing is moved into it.",
                code="PATH_NOT_ALLOWED",
                path=action.path.text,
                hint="Replace the link or file by a folder.",
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


def _as_found(action: Action, finding: Finding) -> Action:
    """The action with what only the disk knows: the inode of what moves, the stamp of what is replaced, and where a link leads."""
    if isinstance(action, MoveEntry) and finding.status is not None:
        return replace(action, inode=(finding.status.st_dev, finding.status.st_ino))
    if isinstance(action, PutFile) and finding.content is not None:
        was = metadata_of(finding.content.status)
        return PutFile(
            finding.real or action.path,
            action.before,
            action.after,
            action.mode,
            was,
            action.becomes,
            action.held,
        )
    return action


def _conflict(path: VaultPath, finding: Finding) -> Problem:
    reason = finding.reason or "it is not as it was"
    return Problem(
        "CONFLICT",
        f"{path.text} is no longer what the preview read: {reason}. Preview the plan again.",
        path=path.text,
    )


def verify(approved: Preview, view: VaultView) -> tuple[Problem, ...]:
    """What is not as it was previewed; nothing when all is. `view` is the vault as it is now."""
    changes = approved.change_set.changes
    filled = frozenset(
        change.new_path or change.path for change in changes if change.kind != "delete"
    )
    return tuple(
        problem for change in changes if (problem := _compared(change, view, filled)) is not None
    )


def repair_request(problems: Sequence[Problem]) -> str:
    """What the person would ask a model for, so that it is repaired; names of files come from the plan that they approved."""
    listed = "\n".join(f"- {neutral(problem.message)}" for problem in problems[:20])
    return f"The plan ran, but not everything came out as previewed:\n{listed}\nLook at these files and propose what repairs it."


def _compared(change: NetChange, view: VaultView, filled: frozenset[VaultPath]) -> Problem | None:
    """`filled`: where something is to be afterwards, so that what left such a place cannot be told from what came there."""

    def there(path: VaultPath) -> bool:
        return (entry := view.locate(path)) is not None and entry.path == path

    gone = change.kind == "delete"
    left = change.path not in filled
    where = change.path if gone else change.new_path or change.path
    try:
        if gone:
            return _problem(change.path, "is still there") if left and there(where) else None
        if not there(where):
            return _problem(where, "is not there")
        if change.new_path is not None and left and there(change.path):
            return _problem(change.path, "is still at its old place")
        if change.content is not None and view.read(where) != change.content:
            return _problem(where, "has another content")
    except VaultError as error:
        return _problem(where, f"cannot be read ({error.code})")
    return None


def _problem(path: VaultPath, what: str) -> Problem:
    return Problem("NOT_AS_PREVIEWED", f"{path} {what}.", path=path.text)
