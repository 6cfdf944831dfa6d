"""Undo and redo: the actions of a record are reversed in the opposite order.

Only files that are still as the record left them are restored. Files that changed since are skipped
and reported, unless the user forces them; then the overwritten contents are stored in the journal
first. An undo is a record like a run, so it survives a crash, and a redo is the undo of an undo.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import suppress
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from obsidian_agent.errors import JournalError, PathRefused, Problem, VaultError
from obsidian_agent.journal.blobs import ImageSource
from obsidian_agent.journal.reader import run_not_found
from obsidian_agent.journal.records import (
    Kind,
    NewRecord,
    Record,
    Status,
    StoredAction,
    undo_point_after,
)
from obsidian_agent.journal.recovery import resolve_interrupted
from obsidian_agent.journal.writer import Journal
from obsidian_agent.vault.filesystem.dirhandles import FolderHandles
from obsidian_agent.vault.filesystem.store import OpenFiles, VaultStore
from obsidian_agent.vault.paths.path import VaultPath, is_trash
from obsidian_agent.vault.transaction.actions import (
    Action,
    MoveEntry,
    PutFile,
    PutFolder,
    Siblings,
    after_move,
    mark_held,
    metadata_of,
    reverse,
    save_open_files,
    siblings_among,
)
from obsidian_agent.vault.transaction.apply import Applier, HalfDone
from obsidian_agent.vault.transaction.precheck import Finding, State, Survey

_NOT_STORED: Final = "its old content is no longer stored"


class UndoConflict(Struct, frozen=True):
    """Reason a file was skipped by undo, and whether `--force` could restore it."""

    path: str
    reason: str
    forcible: bool = True


class UndoResult(Struct, frozen=True, kw_only=True):
    """The result of an undo or redo.

    `restored` are the present paths of the files and folders that were restored, moved back or
    removed.
    """

    run_id: str
    """The run that was undone or redone."""
    restored: tuple[str, ...] = ()
    folders: frozenset[str] = frozenset()
    """The paths in `restored` of folders that were created or removed."""
    moved: tuple[tuple[str, str], ...] = ()
    """The earlier and present paths of the files and folders in `restored` that were moved."""
    removed: frozenset[str] = frozenset()
    """The paths in `restored` of files that were removed."""
    skipped: tuple[str, ...] = ()
    """Skipped on request, or because there was nothing to do: the entry had the desired state
    already, or a folder had other entries."""
    conflicts: tuple[UndoConflict, ...] = ()
    errors: tuple[Problem, ...] = ()
    warnings: tuple[Problem, ...] = ()
    """Metadata that could not be restored, and files that another program wrote meanwhile."""

    @property
    def files(self) -> int:
        """The number of restored files, and of folders that were moved back."""
        return len(self.restored) - len(self.folders)


class _Task(Struct):
    """An action to apply, with the content that it overwrites if no run wrote it."""

    action: Action
    origin: int
    overwritten: tuple[str, bytes] | None = None


class _Request(Struct, frozen=True, kw_only=True):
    """The paths to force and to skip, and the number of the first action to reverse."""

    force: Collection[str] = ()
    skip: Collection[str] = ()
    first: int = 0


class _Reversal(Struct):
    """The state of one undo: actions are planned first and applied afterwards."""

    images: ImageSource
    force: Collection[str] = ()
    skip: Collection[str] = ()
    editing: OpenFiles | None = None
    tasks: list[_Task] = field(default_factory=list)
    resolved: set[int] = field(default_factory=set)
    """Numbers of the run's actions that this undo cancels, or that need no undo."""
    restored: dict[str, bool] = field(default_factory=dict)
    """Paths, each with True if a folder was created or removed there."""
    moved: dict[str, str] = field(default_factory=dict)
    """The earlier paths of moved files and folders, by their present ones."""
    removed: set[str] = field(default_factory=set)
    skipped: dict[str, None] = field(default_factory=dict)
    conflicts: dict[str, UndoConflict] = field(default_factory=dict)
    errors: list[Problem] = field(default_factory=list)
    unchanged: set[str] = field(default_factory=set)
    """Paths of entries that are not reversed."""
    missing: set[str] = field(default_factory=set)
    """Destinations of entries that are not reversed."""
    reserved: set[str] = field(default_factory=set)
    """The paths of `missing` that a later undo will fill, because only the disk failed.

    No other entry may be moved there before.
    """
    siblings: Siblings = field(default_factory=dict)
    """Groups of files that were one file before the record, at their present paths."""

    def accept(self, handles: FolderHandles, action: Action, origin: int) -> None:
        """Accept an action without a check. Applying it will show whether it is possible."""
        mode: int | None = None
        if isinstance(action, PutFile) and action.after is None:
            # An unreachable folder is reported when the action is applied.
            with suppress(PathRefused):
                status = handles.status(action.path)
                mode = status.st_mode & 0o7777 if status else None
        tasks = self._ready(action, origin, mode)
        if tasks is None:
            self._conflict(UndoConflict(action.path.text, _NOT_STORED, forcible=False))
            self._leave_unchanged(action)
        else:
            self.tasks += tasks

    def decide(self, survey: Survey, action: Action, origin: int, names: set[str]) -> None:
        """Check one action against the disk, and accept or skip it.

        `names` are the paths by which the user may force or skip the entry.
        """
        if isinstance(action, PutFolder) and self._has_unchanged_entries(action):
            return
        if self._is_unreachable(action):
            self._leave_unchanged(action)
            return
        if not names.isdisjoint(self.skip):
            self.skipped[action.path.text] = None
            self._leave_unchanged(action)
            return
        finding = survey.check(action)
        if finding.state is State.DONE:
            self._skip_done(action, origin)
            return
        tasks = self._ready(action, origin, _mode(finding)) if finding.possible else None
        if tasks is None:
            forced = self._forced(survey, action, origin, finding)
            tasks = None if names.isdisjoint(self.force) else forced
            if tasks is None:
                reason = finding.reason or _NOT_STORED
                self._conflict(UndoConflict(action.path.text, reason, forced is not None))
                self._leave_unchanged(action)
                return
        for task in tasks:
            survey.assume(task.action)
        self.tasks += tasks

    def _conflict(self, conflict: UndoConflict) -> None:
        self.conflicts.setdefault(conflict.path, conflict)

    def _leave_unchanged(self, action: Action) -> None:
        self.unchanged.add(action.path.text)
        if isinstance(action, MoveEntry):
            self.missing.add(action.new_path.text)
        elif isinstance(action, PutFolder) and action.created:
            self.missing.add(action.path.text)

    def _is_unreachable(self, action: Action) -> bool:
        """Return True if the entry, its folder or its destination depends on a skipped action.

        That is an entry that is unchanged already, one in a folder that was not restored, or one
        whose destination is reserved.
        """
        if action.path.text in self.unchanged or _at_or_below(action.path, self.missing):
            return True
        return isinstance(action, MoveEntry) and _at_or_below(action.new_path, self.reserved)

    def _has_unchanged_entries(self, action: PutFolder) -> bool:
        """Return True if a folder must not be removed because it has entries that stay."""
        below = action.path.text + "/"
        return not action.created and any(path.startswith(below) for path in self.unchanged)

    def _skip_done(self, action: Action, origin: int) -> None:
        self.resolved.add(origin)
        if not isinstance(action, PutFolder):
            self.skipped[action.path.text] = None

    def _ready(self, action: Action, origin: int, mode: int | None) -> list[_Task] | None:
        """Return the task for an action, or None if its content is no longer stored.

        `mode` is that of a file to be removed.
        """
        if isinstance(action, PutFile):
            if action.after is None:
                action = replace(action, mode=mode)
            elif not self.images.has(action.after):
                return None
        return [_Task(mark_held(self.editing, action), origin)]

    def _forced(
        self, survey: Survey, action: Action, origin: int, finding: Finding
    ) -> list[_Task] | None:
        """Return the tasks that overwrite the present state, or None if that is impossible too.

        It is impossible if a folder is in the way or the content is no longer stored.
        """
        match action:
            case PutFile():
                return self._forced_write(survey, action, origin, finding)
            case MoveEntry() if finding.state is State.FOREIGN and finding.actual is not None:
                return [_Task(replace(action, hash=finding.actual), origin)]
            case MoveEntry() if finding.state is State.BLOCKED:
                obstacle = survey.check(PutFile(action.new_path, None, None))
                if obstacle.content is None:
                    return None
                content = obstacle.content
                mode = content.status.st_mode & 0o7777
                removal = PutFile(action.new_path, content.hash, None, mode)
                return [
                    _Task(removal, origin, (content.hash, content.data)),
                    _Task(action, origin),
                ]
            case _:
                return None

    def _forced_write(
        self, survey: Survey, action: PutFile, origin: int, finding: Finding
    ) -> list[_Task] | None:
        if finding.state is State.MISSING and action.after is not None:
            tasks = self._ready(replace(action, before=None), origin, None)
            if tasks is None:
                return None
            return [*self._folders(survey, action.path.parent, origin), *tasks]
        if finding.content is None:
            return None
        content = finding.content
        overwrite = replace(action, before=content.hash, was=metadata_of(content.status))
        tasks = self._ready(overwrite, origin, _mode(finding))
        if tasks is not None:
            tasks[0].overwritten = (content.hash, content.data)
        return tasks

    def _folders(self, survey: Survey, folder: VaultPath, origin: int) -> list[_Task]:
        """Return the tasks that create a missing folder and its missing parents."""
        action = PutFolder(folder, created=True)
        if folder.is_root or survey.check(action).state not in (State.READY, State.MISSING):
            return []
        return [*self._folders(survey, folder.parent, origin), _Task(action, origin)]

    def apply(self, applier: Applier, handles: FolderHandles) -> tuple[set[int], set[int]]:
        """Apply the inverse actions.

        Return the numbers of those applied and of the original actions they cancel.
        """
        applied, failed = set[int](), set[int]()
        for number, task in enumerate(self.tasks):
            action = task.action
            if self._is_unreachable(action) or task.origin in failed:
                self._leave_unchanged(action)
                failed.add(task.origin)
                continue
            if isinstance(action, PutFolder) and self._has_unchanged_entries(action):
                failed.add(task.origin)
                continue
            try:
                done = applier.carry_out(action, number, self.images.for_action(action))
            except HalfDone:
                raise
            except (VaultError, JournalError) as error:
                if not self._resolve_failure(task, error, handles):
                    failed.add(task.origin)
                continue
            self.resolved.add(task.origin)
            if done:
                applied.add(number)
                self.count_restored(action)
                if isinstance(action, MoveEntry):
                    self.unchanged = {_moved(path, action) for path in self.unchanged}
            elif not is_trash(action.path):
                self.skipped[action.path.text] = None
        return applied, self.resolved - failed

    def _resolve_failure(
        self, task: _Task, error: VaultError | JournalError, handles: FolderHandles
    ) -> bool:
        """Record why an action failed. Return True if it was not needed."""
        action = task.action
        if error.code != "CONFLICT":
            self.add_error(action, error)
            return False
        try:
            survey = Survey(handles)
            finding = survey.check(action)
            forced = self._forced(survey, action, task.origin, finding)
        except VaultError as unreadable:
            self.add_error(action, unreadable)
            return False
        if finding.state is State.DONE:
            self._skip_done(action, task.origin)
            return True
        self._leave_unchanged(action)
        self._conflict(
            UndoConflict(action.path.text, finding.reason or error.message, forced is not None)
        )
        return False

    def add_error(self, action: Action, error: VaultError | JournalError) -> None:
        """Leave an entry unchanged because of an error of the disk or the journal."""
        self._leave_unchanged(action)
        if isinstance(action, MoveEntry):
            self.reserved.add(action.new_path.text)
        self.errors.append(error.problem())

    def count_restored(self, action: Action) -> None:
        """Add the path of an applied action to the restored ones."""
        if isinstance(action, MoveEntry):
            moved = {_moved(path, action): folder for path, folder in self.restored.items()}
            self.restored = moved | {action.new_path.text: False}
            if not is_trash(action.path):
                self.moved[action.new_path.text] = self.moved.pop(
                    action.path.text, action.path.text
                )
        elif not is_trash(action.path):
            self.restored[action.path.text] = isinstance(action, PutFolder)
            if isinstance(action, PutFile) and action.after is None:
                self.removed.add(action.path.text)

    def result(self, run_id: str) -> UndoResult:
        """Return the result for the run with this id."""
        conflicts = tuple(self.conflicts[path] for path in sorted(self.conflicts))
        return UndoResult(
            run_id=run_id,
            restored=tuple(sorted(self.restored)),
            folders=frozenset(path for path, folder in self.restored.items() if folder),
            moved=tuple(sorted((old, new) for new, old in self.moved.items())),
            removed=frozenset(self.removed),
            skipped=tuple(sorted(self.skipped)),
            conflicts=conflicts,
            errors=tuple(self.errors),
        )


def undo(
    journal: Journal,
    store: VaultStore,
    run_id: str | None = None,
    *,
    force: Collection[str] = (),
    skip: Collection[str] = (),
    to_step: str | None = None,
) -> UndoResult:
    """Undo a run file by file; with `run_id` None the last one that has an action in effect.

    With `to_step` only the actions after that step are undone. A file that changed since the run is
    a conflict and skipped, unless its path before or after the run is in `force`; `redo` can
    restore the contents overwritten then.

    Raise JournalError: RUN_NOT_FOUND, NOTHING_TO_UNDO, VAULT_BUSY, RECOVERY_NEEDED, STEP_NOT_FOUND,
    NOT_SEPARABLE (two steps wrote the same file, and only its last content is stored), or an
    unusable journal.
    """
    with journal.lock():
        resolve_interrupted(journal, store)
        record = _undoable(journal, run_id)
        request = _Request(force=force, skip=skip, first=_first_action(journal, record, to_step))
        return _reverse(journal, store, record, "undo", request)


def redo(
    journal: Journal, store: VaultStore, *, force: Collection[str] = (), skip: Collection[str] = ()
) -> UndoResult:
    """Redo the last undo, or the rest of it, if no later run changed the vault.

    Raise JournalError as `undo` does, with NOTHING_TO_REDO for NOTHING_TO_UNDO.
    """
    with journal.lock():
        resolve_interrupted(journal, store)
        record = _redoable(journal)
        return _reverse(journal, store, record, "redo", _Request(force=force, skip=skip))


def undo_preview(
    journal: Journal,
    store: VaultStore,
    run_id: str | None = None,
    *,
    redoing: bool = False,
    skip: Collection[str] = (),
    to_step: str | None = None,
) -> UndoResult:
    """Return what `undo` (or `redo`) would restore and skip now. Changes nothing."""
    record = _redoable(journal) if redoing else _undoable(journal, run_id)
    with FolderHandles(store) as handles:
        request = _Request(skip=skip, first=_first_action(journal, record, to_step))
        reversal = _plan(journal, handles, record, request, check=True)
    for task in reversal.tasks:
        reversal.count_restored(task.action)
    return reversal.result(_run_of(journal, record).run_id)


def _undoable(journal: Journal, run_id: str | None) -> Record:
    record = journal.last_undoable() if run_id is None else journal.run(run_id)
    if run_id is not None and (record is None or record.kind != "run"):
        raise run_not_found(run_id)
    if record is None and journal.unfinished():
        raise _interrupted(journal)
    if record is None or not record.in_effect:
        message = (
            "There is no run to undo."
            if run_id is None
            else f"Run {run_id} has nothing left to undo."
        )
        raise JournalError(message, code="NOTHING_TO_UNDO")
    if not record.has_images:
        raise JournalError(
            f"Run {record.run_id} is too old to undo: its contents are no longer stored.",
            code="NOTHING_TO_UNDO",
        )
    return record


def _interrupted(journal: Journal) -> JournalError:
    """Return the error for a run that is still running or was interrupted."""
    if journal.locked:
        return JournalError(
            "A run is in progress.", code="VAULT_BUSY", hint="Wait until it has finished."
        )
    hint = "`obsidian-agent recover` finishes it or rolls it back."
    return JournalError("The last run was interrupted.", code="RECOVERY_NEEDED", hint=hint)


def _redoable(journal: Journal) -> Record:
    record = journal.last_redoable()
    if record is None:
        raise JournalError("There is nothing to redo.", code="NOTHING_TO_REDO")
    return record


def _run_of(journal: Journal, record: Record) -> Record:
    """Return the run that a record belongs to."""
    run = record if record.run is None else journal.record(record.run)
    return run or record


def _first_action(journal: Journal, record: Record, to_step: str | None) -> int:
    """Return the number of the first action to undo; those before it stay in effect."""
    if to_step is None:
        return 0
    undo_points = journal.plan_of(record.run_id).undo_points
    return undo_point_after(undo_points, to_step, record.run_id).actions


def _plan(
    journal: Journal,
    handles: FolderHandles,
    record: Record,
    request: _Request,
    *,
    check: bool,
) -> _Reversal:
    """Plan the reversal of a record; with `check` each action is checked against the disk."""
    actions, images = journal.load(record)
    editing = save_open_files(handles.store, [stored.action for stored in actions])
    reversal = _Reversal(images, request.force, request.skip, editing)
    survey = Survey(handles)
    in_effect = record.in_effect
    if record.kind == "undo":
        # An undo is in effect for the actions that no redo has restored.
        reversed_actions = _run_of(journal, record).reversed
        in_effect = frozenset(
            stored.number
            for stored in actions
            if stored.number in in_effect and stored.origin in reversed_actions
        )
    # Entries that an earlier undo skipped have moved with the folders that it moved back.
    moved = [
        (stored.number, reverse(stored.action))
        for stored in actions
        if stored.number not in in_effect and isinstance(stored.action, MoveEntry)
    ]
    present: list[Action] = []
    for stored in reversed(actions):
        action = first = reverse(stored.action)
        for number, move in reversed(moved):
            if number < stored.number and isinstance(move, MoveEntry):
                action = after_move(action, move)
        present.append(action)
        if stored.number in in_effect and stored.number >= request.first:
            try:
                if check:
                    reversal.decide(survey, action, stored.origin, _names(first) | _names(action))
                else:
                    reversal.accept(handles, action, stored.origin)
            except VaultError as error:
                reversal.add_error(action, error)
    reversal.siblings = siblings_among(present)
    return reversal


def _reverse(
    journal: Journal, store: VaultStore, record: Record, kind: Kind, request: _Request
) -> UndoResult:
    run = _run_of(journal, record)
    with FolderHandles(store) as handles:
        reversal = _plan(
            journal, handles, record, request, check=bool(request.force or request.skip)
        )
        if not reversal.tasks and not reversal.resolved:
            return reversal.result(run.run_id)
        # Limits of the system are reported once per vault.
        is_first = not journal.has_reversals()
        new_record = NewRecord(kind=kind, goal=run.goal, source=record.seq, run=run.seq)
        with journal.begin(new_record) as writer:
            for task in reversal.tasks:
                writer.add(task.action, [task.overwritten] if task.overwritten else (), task.origin)
            new = writer.commit()
        with Applier(
            handles,
            new.token,
            reversal.editing,
            report_creation=is_first,
            siblings=reversal.siblings,
        ) as applier:
            applied, origins = reversal.apply(applier, handles)
            applier.complete()
            warnings = tuple(applier.warnings)
        status: Status = "done"
        if reversal.conflicts:
            status = "conflict"
        elif reversal.errors:
            status = "failed"
        journal.finish(new, status, applied, origins=origins or None)
    return replace(reversal.result(run.run_id), warnings=warnings)


def undo_content(
    journal: Journal, run_id: str | None, path: str, *, redoing: bool = False
) -> tuple[str, bytes | None]:
    """Return the path of a file after a run (None: the last one), and its content after the undo.

    With `redoing` it is the content after the redo. `path` is the path after the run or after the
    undo. The content is None if the file would be removed. Raise JournalError (RUN_NOT_FOUND,
    NOTHING_TO_UNDO), also if the run did not write that file.
    """
    record = _redoable(journal) if redoing else _undoable(journal, run_id)
    actions, images = journal.load(record)
    moves = [stored for stored in actions if isinstance(stored.action, MoveEntry)]
    for stored in actions:
        action = stored.action
        if isinstance(action, PutFile) and path in (
            action.path.text,
            _restored_at(action, [move for move in moves if move.number < stored.number]),
        ):
            content = images.get(action.before) if action.before is not None else None
            return action.path.text, content
    raise JournalError(
        f"Run {record.run_id} did not change the text of {path}.",
        code="NOTHING_TO_UNDO",
        path=path,
    )


def _restored_at(action: PutFile, moves: Sequence[StoredAction]) -> str:
    """Return the path of a file after these moves are undone too."""
    path = action.path.text
    for move in reversed(moves):
        back = reverse(move.action)
        if isinstance(back, MoveEntry):
            path = _moved(path, back)
    return path


def _names(action: Action) -> set[str]:
    if isinstance(action, MoveEntry):
        return {action.path.text, action.new_path.text}
    return {action.path.text}


def _at_or_below(path: VaultPath, folders: Collection[str]) -> bool:
    while folders and not path.is_root:
        if path.text in folders:
            return True
        path = path.parent
    return False


def _moved(path: str, action: MoveEntry) -> str:
    """Return a path after a move, which changes it if it is the moved entry or inside it."""
    old, new = action.path.text, action.new_path.text
    return new + path[len(old) :] if path == old or path.startswith(old + "/") else path


def _mode(finding: Finding) -> int | None:
    return finding.status.st_mode & 0o7777 if finding.status else None
