"""Recovery: inspect an interrupted run on disk, then finish it or roll it back.

A run does not log its progress per action, so its progress is determined from the disk alone.
Recovery only repeats or reverses actions that state what they expect, so it can be killed and run
again at any point. Temporary files in the vault are deleted if the run wrote them, and moved back
if another program did.

Actions are applied in order, so the applied ones form a prefix. For most paths the disk shows on
which side of its end they are. Where a name was used twice (a file moved away, another one moved to
its path), a single path may mislead. Then the ends that agree with the neighbouring actions are
tried, each with one survey backwards and one forwards from it, and the one with the fewest
contradictions wins. After a power loss single actions on either side may be missing or torn; the
surveys detect these too.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import accumulate
from typing import Final, Literal

from msgspec import Struct
from msgspec.structs import replace

from obsidian_agent.errors import JournalError, Problem, VaultError
from obsidian_agent.journal.blobs import ImageSource
from obsidian_agent.journal.changes import effects_of
from obsidian_agent.journal.reader import run_not_found
from obsidian_agent.journal.records import Effects, Kind, Record, StoredAction
from obsidian_agent.journal.writer import Journal
from obsidian_agent.vault.filesystem.dirhandles import Content, FolderHandles, content_of
from obsidian_agent.vault.filesystem.store import OpenFiles, VaultStore, io_error
from obsidian_agent.vault.filesystem.system_calls import (
    exchange,
    rename_as_recovered,
    rename_to_free,
    started_since,
)
from obsidian_agent.vault.paths.path import VaultPath
from obsidian_agent.vault.transaction.actions import (
    Action,
    MoveEntry,
    PutFile,
    mark_held,
    reverse,
    save_open_files,
    siblings_among,
)
from obsidian_agent.vault.transaction.apply import INCOMPLETE_MODE, Applier, HalfDone
from obsidian_agent.vault.transaction.precheck import Finding, Images, State, Survey, is_torn_of

PathState = Literal["before", "after", "torn", "foreign"]
"""The state of a path: as before the action, as after it, half written, or changed by another
program."""

_CANDIDATES: Final = 4
"""Likely ends of the applied prefix that are tried."""


class InspectedAction(Struct, frozen=True):
    """An action and its state on disk. `actual` is the hash of a torn file."""

    stored: StoredAction
    state: PathState
    reason: str = ""
    actual: str | None = None

    @property
    def path(self) -> str:
        """The path for messages: that of the entry before the run."""
        return self.stored.action.path.text

    @property
    def forward(self) -> Action:
        """The action, which expects a torn file as it is on disk."""
        return self._against_torn(self.stored.action)

    @property
    def backward(self) -> Action:
        """The inverse action, which expects a torn file as it is on disk."""
        return self._against_torn(reverse(self.stored.action))

    def _against_torn(self, action: Action) -> Action:
        if self.state == "torn" and isinstance(action, PutFile):
            return replace(action, before=self.actual)
        return action


def inspect_actions(
    handles: FolderHandles, record: Record, actions: Sequence[StoredAction], images: Images
) -> list[InspectedAction]:
    """Return the state of every action of a record. Reads the disk, changes nothing."""
    survey = partial(Survey, handles, images, torn_before=started_since(record.boot))
    check = survey().check
    inspected = [_forwards(stored, check(stored.action)) for stored in actions]
    states = [action.state for action in inspected]
    done = next((index for index, state in enumerate(states) if state == "before"), len(states))
    if "foreign" not in states and all(state == "before" for state in states[done:]):
        return inspected
    attempts = [_inspect_from(survey, actions, point) for point in _points(states)]
    return min(attempts, key=lambda attempt: attempt[0])[1]


def _points(states: Sequence[PathState]) -> list[int]:
    """Return likely numbers of applied actions, the likeliest first.

    At a likely end the previous action is applied and the next one is not.
    """
    behind = list(accumulate((state in ("after", "torn") for state in states), initial=0))
    ahead = list(accumulate((state == "before" for state in reversed(states)), initial=0))[::-1]
    count = len(states)
    by_score = sorted(range(count + 1), key=lambda point: -(behind[point] + ahead[point]))
    plausible = [
        point
        for point in by_score
        if (point == count or states[point] == "before")
        and (point == 0 or states[point - 1] in ("after", "torn"))
    ]
    return list(dict.fromkeys([*plausible[:_CANDIDATES], by_score[0], 0, count]))


def _inspect_from(
    survey: Callable[[], Survey], actions: Sequence[StoredAction], point: int
) -> tuple[int, list[InspectedAction]]:
    """Return the states if `point` actions were applied, and the number of contradictions first."""
    behind, ahead = survey(), survey()
    inspected: list[InspectedAction] = []
    for stored in reversed(actions[:point]):
        action = reverse(stored.action)
        finding = behind.check(action)
        if finding.possible:
            behind.assume(action)
        inspected.append(_backwards(stored, finding))
    inspected.reverse()
    for stored in actions[point:]:
        finding = ahead.check(stored.action)
        if finding.possible:
            ahead.assume(stored.action)
        inspected.append(_forwards(stored, finding))
    contradictions = sum(action.state != "after" for action in inspected[:point])
    contradictions += sum(action.state != "before" for action in inspected[point:])
    return contradictions, inspected


def _forwards(stored: StoredAction, finding: Finding) -> InspectedAction:
    return _inspected(stored, finding, "before", "after")


def _backwards(stored: StoredAction, finding: Finding) -> InspectedAction:
    return _inspected(stored, finding, "after", "before")


def _inspected(
    stored: StoredAction, finding: Finding, ready: PathState, done: PathState
) -> InspectedAction:
    match finding.state:
        case State.READY:
            return InspectedAction(stored, ready)
        case State.DONE:
            return InspectedAction(stored, done)
        case State.TORN:
            return InspectedAction(stored, "torn", finding.reason, finding.actual)
        case _:
            return InspectedAction(stored, "foreign", finding.reason)


class InterruptedPath(Struct, frozen=True):
    """The state of one path of an interrupted run."""

    path: str
    state: PathState
    reason: str = ""


class InterruptedRun(Struct, frozen=True, kw_only=True):
    """An interrupted run, undo or redo, with the state of its paths in the order of its actions."""

    run_id: str
    kind: Kind
    time: str
    goal: str
    paths: tuple[InterruptedPath, ...]
    leftovers: int
    """The number of its temporary files in the vault."""


class RecoveryResult(Struct, frozen=True, kw_only=True):
    """The result of recovering an interrupted run.

    `problems` are the skipped paths with the reasons; `warnings` as for an undo.
    """

    run_id: str
    kind: Kind
    finished: bool
    effects: Effects = Effects()
    problems: tuple[Problem, ...] = ()
    undo_available: bool = False
    warnings: tuple[Problem, ...] = ()


def interrupted(journal: Journal, store: VaultStore) -> list[InterruptedRun]:
    """Return the interrupted runs, oldest first. Changes nothing.

    Return [] while another process is writing.
    """
    records = journal.unfinished()
    if not records or journal.locked:
        return []
    # A run may have ended before the lock was checked.
    unfinished = {record.seq for record in journal.unfinished()}
    records = [record for record in records if record.seq in unfinished]
    runs = []
    with FolderHandles(store) as handles:
        for record in records:
            actions, images = journal.load(record)
            inspected = inspect_actions(handles, record, actions, images.find)
            leftovers = sum(1 for _ in _leftovers(handles, record, actions))
            paths = tuple(
                InterruptedPath(action.path, action.state, action.reason) for action in inspected
            )
            runs.append(
                InterruptedRun(
                    run_id=record.run_id,
                    kind=record.kind,
                    time=record.time,
                    goal=record.goal,
                    paths=paths,
                    leftovers=leftovers,
                )
            )
    return runs


def recover(
    journal: Journal, store: VaultStore, *, finish: bool, run_id: str | None = None
) -> list[RecoveryResult]:
    """Finish or roll back interrupted runs: one, or all of them. Raise JournalError or VaultError.

    Content of other programs is skipped and reported. If recovery is interrupted or the disk fails,
    it can be repeated.
    """
    with journal.lock():
        records = journal.unfinished()
        if run_id is not None:
            records = [record for record in records if record.run_id == run_id]
            if not records:
                raise run_not_found(run_id)
        return [
            _end(journal, store, record, finish=finish)
            for record in (records if finish else reversed(records))
        ]


def resolve_interrupted(journal: Journal, store: VaultStore) -> None:
    """End interrupted records that were applied completely or not at all.

    Called before a new record, under the lock. Raise JournalError (RECOVERY_NEEDED) if one was
    applied in part.
    """
    for record in journal.unfinished():
        with FolderHandles(store) as handles:
            actions, images = journal.load(record)
            _save_open_files(store, actions)
            inspected = inspect_actions(handles, record, actions, images.find)
        states = {action.state for action in inspected}
        if len(states) > 1 or not states <= {"before", "after"}:
            raise JournalError(
                f"Run {record.run_id} was interrupted, and only a part of it was applied.",
                code="RECOVERY_NEEDED",
                hint="First run `obsidian-agent recover` with `--finish` or `--roll-back`.",
            )
        _end(journal, store, record, finish="after" in states)


def _save_open_files(store: VaultStore, actions: Sequence[StoredAction]) -> OpenFiles | None:
    """Have an editor save its open files, so that the disk shows the true state.

    It has to answer if it was to write files of the record itself.
    """
    record_actions = [stored.action for stored in actions]
    return save_open_files(
        store,
        record_actions,
        require_answer=any(
            isinstance(action, PutFile) and action.held for action in record_actions
        ),
    )


def _end(journal: Journal, store: VaultStore, record: Record, *, finish: bool) -> RecoveryResult:
    journal.make_durable()
    actions, images = journal.load(record)
    problems: list[Problem] = []
    editing = _save_open_files(store, actions)
    with (
        FolderHandles(store) as handles,
        Applier(
            handles,
            record.token,
            editing,
            recovering=True,
            siblings=siblings_among(
                stored.action if finish else reverse(stored.action) for stored in actions
            ),
        ) as applier,
    ):
        for leftover in list(_leftovers(handles, record, actions)):
            message = _clear(handles, leftover, images.find, started_since(record.boot))
            if message is not None:
                path = leftover.action.path.text if leftover.action else None
                problems.append(Problem("CONFLICT", message, path=path))
        in_effect = set[int]()
        inspected = inspect_actions(handles, record, actions, images.find)
        ending = _Ending(
            applier=applier, editing=editing, images=images, finish=finish, problems=problems
        )
        for action in inspected if finish else reversed(inspected):
            if ending.apply(action):
                in_effect.add(action.stored.number)
        applier.complete()
        warnings = tuple(applier.warnings)
    applied = [stored for stored in actions if stored.number in in_effect]
    origins = [stored.origin for stored in applied] if finish else None
    effects = effects_of(stored.action for stored in applied)
    journal.finish(record, "recovered", in_effect, effects=effects, origins=origins)
    return RecoveryResult(
        run_id=record.run_id,
        kind=record.kind,
        finished=finish,
        effects=effects,
        problems=tuple(problems),
        undo_available=record.kind == "run" and bool(in_effect),
        warnings=warnings,
    )


class _Ending(Struct, kw_only=True):
    """The actions of one record being finished or rolled back."""

    applier: Applier
    editing: OpenFiles | None
    images: ImageSource
    finish: bool
    problems: list[Problem]

    def apply(self, inspected: InspectedAction) -> bool:
        """Finish or roll back one action. Return True if it is in effect afterwards."""
        if inspected.state == "foreign":
            message = f"{inspected.path} was skipped: {inspected.reason}."
            self.problems.append(Problem("CONFLICT", message, path=inspected.path))
            return False
        if inspected.state == ("after" if self.finish else "before"):
            return self.finish
        action = mark_held(self.editing, inspected.forward if self.finish else inspected.backward)
        try:
            content = self.images.for_action(action)
            done = self.applier.carry_out(action, inspected.stored.number, content)
        except HalfDone:
            raise
        except (VaultError, JournalError) as error:
            if error.code == "IO_ERROR":
                # Later actions would leave gaps that the next recovery could not interpret.
                error.hint = error.hint or "Recover again when the disk works."
                raise
            self.problems.append(error.problem())
            return False
        return done if self.finish else False


class _Leftover(Struct, frozen=True):
    """A temporary entry: its folder, its name, and the action that created it (None: unknown)."""

    folder: VaultPath
    name: str
    action: PutFile | MoveEntry | None


def _leftovers(
    handles: FolderHandles, record: Record, actions: Sequence[StoredAction]
) -> Iterator[_Leftover]:
    """Yield the temporary entries of a record in the whole vault: their folders may have moved."""
    pattern = re.compile(rf"\.{re.escape(record.token)}\.(\d+)\.[0-9a-f]+")
    for folder, entry in handles.entries():
        match = pattern.fullmatch(entry.name)
        if match is not None:
            number = int(match[1])
            action = actions[number].action if number < len(actions) else None
            yield _Leftover(
                folder, entry.name, action if isinstance(action, PutFile | MoveEntry) else None
            )


def _clear(
    handles: FolderHandles, leftover: _Leftover, images: Images, torn_before: int | None = None
) -> str | None:
    """Remove one temporary entry, or move it back. Return a message if another program wrote it.

    A temporary entry holds either what the run was writing or what it displaced. The former has a
    special mode until it is complete; and while the note is as the run expected it, nothing was
    displaced. `torn_before` is passed to `is_torn_of`.
    """
    folder, name = handles.get(leftover.folder), leftover.name
    action = leftover.action
    try:
        status = os.stat(name, dir_fd=folder, follow_symlinks=False)
        if isinstance(action, MoveEntry):
            return _put_back(folder, name, leftover.folder, action.path.name)
        if action is None or not stat.S_ISREG(status.st_mode):
            target = action.path.name if action else "note.md"
            return _rename_as_recovered(folder, name, leftover.folder, target)
        if stat.S_IMODE(status.st_mode) == INCOMPLETE_MODE:
            os.unlink(name, dir_fd=folder)
            return None
        content = content_of(folder, name)
        if content is None:
            return None
        current = content_of(folder, action.path.name)
        if not _is_ours(content, current, action, images, torn_before):
            return _give_back(
                folder, leftover, current, action, images=images, torn_before=torn_before
            )
        if current is None and content.hash == action.before and action.after is None:
            return _put_back(folder, name, leftover.folder, action.path.name)
        os.unlink(name, dir_fd=folder)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise io_error(error, leftover.folder) from error
    return None


def _is_ours(
    content: Content,
    current: Content | None,
    action: PutFile,
    images: Images,
    torn_before: int | None,
) -> bool:
    """Return True if the run wrote the content of a temporary file.

    `current` is the content at the path of the action.
    """
    if content.hash in (action.before, action.after) or is_torn_of(
        content, action, images, torn_before
    ):
        return True
    displaced_nothing = action.before == (current.hash if current else None)
    image = images(action.after) if action.after is not None and displaced_nothing else None
    return image is not None and image.startswith(content.data)


def _give_back(
    folder: int,
    leftover: _Leftover,
    current: Content | None,
    action: PutFile,
    *,
    images: Images,
    torn_before: int | None,
) -> str | None:
    """Move displaced content of another program back.

    If its path is not free and not ours, it gets a visible name of its own.
    """
    target = action.path.name
    if current is not None and (
        current.hash == action.after or is_torn_of(current, action, images, torn_before)
    ):
        if exchange(folder, leftover.name, target):
            os.unlink(leftover.name, dir_fd=folder)
        else:
            os.replace(leftover.name, target, src_dir_fd=folder, dst_dir_fd=folder)
        return None
    return _put_back(folder, leftover.name, leftover.folder, target)


def _put_back(folder: int, name: str, parent: VaultPath, target: str) -> str | None:
    try:
        rename_to_free(folder, name, folder, target)
    except FileExistsError:
        return _rename_as_recovered(folder, name, parent, target)
    return None


def _rename_as_recovered(folder: int, name: str, parent: VaultPath, target: str) -> str:
    new_name = rename_as_recovered(folder, name, target)
    path = f"{parent.text}/{new_name}" if parent.text else new_name
    return f"The previous entry was renamed to {path}."
