"""Undo and redo: a record taken back, action by action, in reverse, wherever the disk still is as the record left it.

What somebody changed since is left alone and reported, unless it is forced; then the overwritten bytes go into the journal first. An undo
is a record like a run, so it survives a crash, and redo is nothing but the undo of an undo.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import suppress
from typing import Final

from obsidian_agent.dataclass import dataclass, field, replace
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


@dataclass(frozen=True, slots=True)
class UndoConflict:
    """Why a file was, or would be, left alone, and whether it could be restored over what is there now."""

    path: str
    reason: str
    forcible: bool = True


_NOT_KEPT: Final = "its old content is no longer kept"


@dataclass(frozen=True, slots=True, kw_only=True)
class UndoResult:
    """What an undo or redo did. `restored` are paths as they are afterwards, of what was put back, moved back or removed again."""

    run_id: str
    """The run that was taken back or brought back."""
    restored: tuple[str, ...] = ()
    folders: frozenset[str] = frozenset()
    """The paths in `restored` of folders that were made or removed again."""
    skipped: tuple[str, ...] = ()
    """Left alone on request, or because there was nothing to do: as wanted already, or a folder with other things in it."""
    conflicts: tuple[UndoConflict, ...] = ()
    errors: tuple[Problem, ...] = ()
    warnings: tuple[Problem, ...] = ()
    """What could not be given back to a file besides its content, and what another program wrote meanwhile."""

    @property
    def files(self) -> int:
        """The number of restored files, and of folders that were moved back."""
        return len(self.restored) - len(self.folders)


@dataclass(slots=True)
class _Task:
    """An action to carry out, with the content that it overwrites if that is nobody's but the person's."""

    action: Action
    origin: int
    overwritten: tuple[str, bytes] | None = None


@dataclass(slots=True)
class _Reversal:
    """The work of one undo: planned first, carried out afterwards."""

    images: ImageSource
    force: Collection[str] = ()
    skip: Collection[str] = ()
    editing: OpenFiles | None = None
    tasks: list[_Task] = field(default_factory=list)
    settled: set[int] = field(default_factory=set)
    restored: dict[str, bool] = field(default_factory=dict)
    """Paths, each with whether a folder was made or removed there."""
    skipped: dict[str, None] = field(default_factory=dict)
    conflicts: dict[str, UndoConflict] = field(default_factory=dict)
    errors: list[Problem] = field(default_factory=list)
    left: set[str] = field(default_factory=set)
    """Paths of what is left alone."""
    missing: set[str] = field(default_factory=set)
    """Paths where something that is left alone was to come to."""
    awaited: set[str] = field(default_factory=set)
    """Those of them where it comes to at the next try, because only the disk failed: nothing else may take its place before."""
    siblings: Siblings = field(default_factory=dict)
    """The files of the record that were one file before it, at their present paths."""

    # --- deciding --------------------------------------------------------------------------------------------------------------

    def take_up(self, handles: FolderHandles, action: Action, origin: int) -> None:
        """Take an action up unseen, where nobody has to be asked: carrying it out shows whether it is possible."""
        mode: int | None = None
        if isinstance(action, PutFile) and action.after is None:
            # A folder that cannot be reached is told of when the action is tried.
            with suppress(PathRefused):
                status = handles.status(action.path)
                mode = status.st_mode & 0o7777 if status else None
        tasks = self._ready(action, origin, mode)
        if tasks is None:
            self._conflict(UndoConflict(action.path.text, _NOT_KEPT, forcible=False))
            self._leave(action)
        else:
            self.tasks += tasks

    def decide(self, survey: Survey, action: Action, origin: int, names: set[str]) -> None:
        """Look at one action, and take it up as a task, or not; `names` are those that its entry is known by."""
        if isinstance(action, PutFolder) and self._holds_what_is_left(action):
            return
        left = self._is_left(action)
        if left or not names.isdisjoint(self.skip):
            if not left:
                self.skipped[action.path.text] = None
            self._leave(action)
            return
        finding = survey.check(action)
        if finding.state is State.DONE:
            self._as_wanted(action, origin)
            return
        tasks = self._ready(action, origin, _mode(finding)) if finding.possible else None
        if tasks is None:
            forced = self._forced(survey, action, origin, finding)
            tasks = None if names.isdisjoint(self.force) else forced
            if tasks is None:
                self._conflict(
                    UndoConflict(action.path.text, finding.reason or _NOT_KEPT, forced is not None)
                )
                self._leave(action)
                return
        for task in tasks:
            survey.assume(task.action)
        self.tasks += tasks

    def _conflict(self, conflict: UndoConflict) -> None:
        self.conflicts.setdefault(conflict.path, conflict)

    def _leave(self, action: Action) -> None:
        self.left.add(action.path.text)
        if isinstance(action, MoveEntry):
            self.missing.add(action.new_path.text)
        elif isinstance(action, PutFolder) and action.created:
            self.missing.add(action.path.text)

    def _is_left(self, action: Action) -> bool:
        """Whether the entry was left alone already, is in a folder that did not come to its place, or would take an awaited place."""
        if action.path.text in self.left or _at_or_below(action.path, self.missing):
            return True
        return isinstance(action, MoveEntry) and _at_or_below(action.new_path, self.awaited)

    def _holds_what_is_left(self, action: PutFolder) -> bool:
        """Whether a folder that is to go must stay in effect, because something of the same run stays in it."""
        below = action.path.text + "/"
        return not action.created and any(path.startswith(below) for path in self.left)

    def _as_wanted(self, action: Action, origin: int) -> None:
        self.settled.add(origin)
        if not isinstance(action, PutFolder):
            self.skipped[action.path.text] = None

    def _ready(self, action: Action, origin: int, mode: int | None) -> list[_Task] | None:
        """The task for an action; `mode` is that of a file about to be removed. None when its content is no longer kept."""
        if isinstance(action, PutFile):
            if action.after is None:
                action = replace(action, mode=mode)
            elif not self.images.has(action.after):
                return None
        return [_Task(mark_held(self.editing, action), origin)]

    def _forced(
        self, survey: Survey, action: Action, origin: int, finding: Finding
    ) -> list[_Task] | None:
        """The same against what is there now; None where even that cannot be done (a folder in the way, the content not kept)."""
        match action:
            case PutFile(after=after):
                if finding.state is State.MISSING and after is not None:
                    tasks = self._ready(replace(action, before=None), origin, None)
                    return (
                        None
                        if tasks is None
                        else [*self._folders(survey, action.path.parent, origin), *tasks]
                    )
                if finding.content is None:
                    return None
                there = finding.content
                tasks = self._ready(
                    replace(action, before=there.hash, was=metadata_of(there.status)),
                    origin,
                    _mode(finding),
                )
                if tasks is not None:
                    tasks[0].overwritten = (there.hash, there.data)
                return tasks
            case MoveEntry() if finding.state is State.FOREIGN and finding.actual is not None:
                return [_Task(replace(action, hash=finding.actual), origin)]
            case MoveEntry() if finding.state is State.BLOCKED:
                way = survey.check(PutFile(action.new_path, None, None))
                if way.content is None:
                    return None
                clear = PutFile(
                    action.new_path, way.content.hash, None, way.content.status.st_mode & 0o7777
                )
                return [
                    _Task(clear, origin, (way.content.hash, way.content.data)),
                    _Task(action, origin),
                ]
            case _:
                return None

    def _folders(self, survey: Survey, folder: VaultPath, origin: int) -> list[_Task]:
        """The tasks that make a folder that is gone, and those above it that are."""
        action = PutFolder(folder, created=True)
        if folder.is_root or survey.check(action).state not in (State.READY, State.MISSING):
            return []
        return [*self._folders(survey, folder.parent, origin), _Task(action, origin)]

    # --- doing -----------------------------------------------------------------------------------------------------------------

    def carry_out(self, applier: Applier, handles: FolderHandles) -> tuple[set[int], set[int]]:
        """Do the tasks; the numbers of those that are in effect, and the origins that are settled by them."""
        applied, failed = set[int](), set[int]()
        for number, task in enumerate(self.tasks):
            action = task.action
            if self._is_left(action) or task.origin in failed:
                self._leave(action)
                failed.add(task.origin)
                continue
            if isinstance(action, PutFolder) and self._holds_what_is_left(action):
                failed.add(task.origin)
                continue
            try:
                done = applier.carry_out(action, number, self.images.for_action(action))
            except HalfDone:
                raise
            except (VaultError, JournalError) as error:
                if not self._failed(task, error, handles):
                    failed.add(task.origin)
                continue
            self.settled.add(task.origin)
            if done:
                applied.add(number)
                self.note(action)
                if isinstance(action, MoveEntry):
                    self.left = {_moved(path, action) for path in self.left}
            elif not is_trash(action.path):
                self.skipped[action.path.text] = None
        return applied, self.settled - failed

    def _failed(
        self, task: _Task, error: VaultError | JournalError, handles: FolderHandles
    ) -> bool:
        """Say why an action was not possible; True when that is because it was not needed."""
        action = task.action
        if error.code != "CONFLICT":
            self.fail(action, error)
            return False
        try:
            survey = Survey(handles)
            finding = survey.check(action)
            forced = self._forced(survey, action, task.origin, finding)
        except VaultError as unreadable:
            self.fail(action, unreadable)
            return False
        if finding.state is State.DONE:
            self._as_wanted(action, task.origin)
            return True
        self._leave(action)
        self._conflict(
            UndoConflict(action.path.text, finding.reason or error.message, forced is not None)
        )
        return False

    def fail(self, action: Action, error: VaultError | JournalError) -> None:
        """Leave a place alone because the disk or the journal fails at it."""
        self._leave(action)
        if isinstance(action, MoveEntry):
            self.awaited.add(action.new_path.text)
        self.errors.append(error.problem())

    def note(self, action: Action) -> None:
        """Count an action as restored."""
        if isinstance(action, MoveEntry):
            moved = {_moved(path, action): folder for path, folder in self.restored.items()}
            self.restored = moved | {action.new_path.text: False}
        elif not is_trash(action.path):
            self.restored[action.path.text] = isinstance(action, PutFolder)

    def result(self, run_id: str) -> UndoResult:
        """What came of it, for the run with this id."""
        conflicts = tuple(self.conflicts[path] for path in sorted(self.conflicts))
        return UndoResult(
            run_id=run_id,
            restored=tuple(sorted(self.restored)),
            folders=frozenset(path for path, folder in self.restored.items() if folder),
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
    """Take back a run (None: the last one with anything in effect), file by file. With `to_step` only what was done after that step.

    A file that is no longer as the run left it is a conflict and left alone, unless its path (before or after the run) is in `force`;
    the bytes overwritten then can be brought back by `redo`. JournalError: RUN_NOT_FOUND, NOTHING_TO_UNDO, VAULT_BUSY,
    RECOVERY_NEEDED, STEP_NOT_FOUND, NOT_SEPARABLE (two steps wrote the same file, and only its last content is kept), or a journal that
    cannot be used.
    """
    with journal.lock():
        resolve_interrupted(journal, store)
        record = _undoable(journal, run_id)
        return _take_back(
            journal, store, record, "undo", force, skip, _kept(journal, record, to_step)
        )


def redo(
    journal: Journal, store: VaultStore, *, force: Collection[str] = (), skip: Collection[str] = ()
) -> UndoResult:
    """Take back the last undo, or the rest of it, as long as no later run has changed the vault. Otherwise as `undo` (NOTHING_TO_REDO)."""
    with journal.lock():
        resolve_interrupted(journal, store)
        record = _redoable(journal)
        return _take_back(journal, store, record, "redo", force, skip)


def undo_preview(
    journal: Journal,
    store: VaultStore,
    run_id: str | None = None,
    *,
    redoing: bool = False,
    skip: Collection[str] = (),
    to_step: str | None = None,
) -> UndoResult:
    """What `undo` (or `redo`) would restore, skip and leave as conflicts just now. Changes nothing."""
    record = _redoable(journal) if redoing else _undoable(journal, run_id)
    with FolderHandles(store) as handles:
        reversal = _planned(
            journal, handles, record, (), skip, _kept(journal, record, to_step), seen=True
        )
    for task in reversal.tasks:
        reversal.note(task.action)
    return reversal.result(_behind(journal, record).run_id)


def _undoable(journal: Journal, run_id: str | None) -> Record:
    record = journal.last_undoable() if run_id is None else journal.run(run_id)
    if run_id is not None and (record is None or record.kind != "run"):
        raise run_not_found(run_id)
    if record is None and journal.unfinished():
        raise _half_done(journal)
    if record is None or not record.in_effect:
        message = (
            "There is no run to undo."
            if run_id is None
            else f"Run {run_id} has nothing left to undo."
        )
        raise JournalError(message, code="NOTHING_TO_UNDO")
    if not record.has_images:
        raise JournalError(
            f"Run {record.run_id} is too old to undo: its contents are no longer kept.",
            code="NOTHING_TO_UNDO",
        )
    return record


def _half_done(journal: Journal) -> JournalError:
    """Why the only run there is cannot be undone: it is at work, or a crash cut it short."""
    if journal.locked:
        return JournalError(
            "A run is at work just now.", code="VAULT_BUSY", hint="Wait until it has finished."
        )
    hint = "obsidian-agent recover finishes it or rolls it back."
    return JournalError("The last run was cut short.", code="RECOVERY_NEEDED", hint=hint)


def _redoable(journal: Journal) -> Record:
    record = journal.last_redoable()
    if record is None:
        raise JournalError("There is nothing to redo.", code="NOTHING_TO_REDO")
    return record


def _behind(journal: Journal, record: Record) -> Record:
    """The run that a record is about."""
    run = record if record.run is None else journal.record(record.run)
    return run or record


def _kept(journal: Journal, record: Record, to_step: str | None) -> int:
    """How many of a run's actions stay in effect."""
    return (
        0
        if to_step is None
        else undo_point_after(
            journal.plan_of(record.run_id).undo_points, to_step, record.run_id
        ).actions
    )


def _planned(
    journal: Journal,
    handles: FolderHandles,
    record: Record,
    force: Collection[str],
    skip: Collection[str],
    kept: int,
    *,
    seen: bool,
) -> _Reversal:
    """The actions that take a record back, but for the first `kept`; with `seen` each is looked at first."""
    actions, images = journal.load(record)
    reversal = _Reversal(
        images, force, skip, save_open_files(handles.store, [stored.action for stored in actions])
    )
    survey = Survey(handles)
    in_effect = record.in_effect
    if record.kind == "undo":
        # An undo is in effect where no redo has brought back what it took back.
        standing = _behind(journal, record).reversed
        in_effect = frozenset(
            one.number for one in actions if one.number in in_effect and one.origin in standing
        )
    # What is left of an earlier try has moved with the folders that were moved back meanwhile.
    moved = [
        (one.number, reverse(one.action))
        for one in actions
        if one.number not in in_effect and isinstance(one.action, MoveEntry)
    ]
    present: list[Action] = []
    for stored in reversed(actions):
        action = first = reverse(stored.action)
        for number, move in reversed(moved):
            if number < stored.number and isinstance(move, MoveEntry):
                action = after_move(action, move)
        present.append(action)
        if stored.number in in_effect and stored.number >= kept:
            try:
                if seen:
                    reversal.decide(survey, action, stored.origin, _names(first) | _names(action))
                else:
                    reversal.take_up(handles, action, stored.origin)
            except VaultError as error:
                reversal.fail(action, error)
    reversal.siblings = siblings_among(present)
    return reversal


def _take_back(
    journal: Journal,
    store: VaultStore,
    record: Record,
    kind: Kind,
    force: Collection[str],
    skip: Collection[str],
    kept: int = 0,
) -> UndoResult:
    run = _behind(journal, record)
    with FolderHandles(store) as handles:
        reversal = _planned(journal, handles, record, force, skip, kept, seen=bool(force or skip))
        if not reversal.tasks and not reversal.settled:
            return reversal.result(run.run_id)
        first = not journal.has_reversals()  # the system's limits are reported once per vault
        new_record = NewRecord(kind=kind, goal=run.goal, source=record.seq, run=run.seq)
        with journal.begin(new_record) as writer:
            for task in reversal.tasks:
                writer.add(task.action, [task.overwritten] if task.overwritten else (), task.origin)
            new = writer.commit()
        with Applier(
            handles,
            new.token,
            reversal.editing,
            report_creation=first,
            siblings=reversal.siblings,
        ) as applier:
            applied, origins = reversal.carry_out(applier, handles)
            applier.complete()
            warnings = tuple(applier.warnings)
        status: Status = (
            "conflict" if reversal.conflicts else "failed" if reversal.errors else "done"
        )
        journal.finish(new, status, applied, origins=origins or None)
    return replace(reversal.result(run.run_id), warnings=warnings)


def undo_content(
    journal: Journal, run_id: str | None, path: str, *, redoing: bool = False
) -> tuple[str, bytes | None]:
    """Return the path of a file as the run (None: the last one) left it, and its content after undoing that, or after redoing.

    `path` is the one that the run left it at, or the one it comes back to. The content is None where the file would be removed.
    JournalError (RUN_NOT_FOUND, NOTHING_TO_UNDO) also when the run did not write that file.
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
    """Return the path of a file once these moves are taken back too."""
    path = action.path.text
    for move in reversed(moves):
        back = reverse(move.action)
        if isinstance(back, MoveEntry):
            path = _moved(path, back)
    return path


def _names(action: Action) -> set[str]:
    return (
        {action.path.text, action.new_path.text}
        if isinstance(action, MoveEntry)
        else {action.path.text}
    )


def _at_or_below(path: VaultPath, places: Collection[str]) -> bool:
    while places and not path.is_root:
        if path.text in places:
            return True
        path = path.parent
    return False


def _moved(path: str, action: MoveEntry) -> str:
    """Where something is after a move: elsewhere if it was what moved, or in it."""
    old, new = action.path.text, action.new_path.text
    return new + path[len(old) :] if path == old or path.startswith(old + "/") else path


def _mode(finding: Finding) -> int | None:
    return finding.status.st_mode & 0o7777 if finding.status else None
