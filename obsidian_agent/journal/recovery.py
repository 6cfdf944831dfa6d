"""What an interrupted run has done so far, and how to end it: all of it, or none of it.

Nothing is noted per action while a run is at work, so the disk alone is asked. Recovery only repeats or reverses actions that say what they
expect, so it can be killed and run again at any point. Temporary files that are left in the vault are thrown away when they are ours, and put
back when they are somebody's.

Actions are carried out in order, so there is a point up to which they are done. Most places say at once on which side of it they are. Where
names were used twice (a file moved away, another put in its place) a place alone may mislead; then the points that fit their neighbours
are tried, each by a survey backwards and one forwards from it, and the one that explains most is taken. After a power loss single actions
may be missing or torn on either side, which the surveys find as well.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import accumulate
from typing import Final, Literal

from obsidian_agent.dataclass import dataclass, replace
from obsidian_agent.errors import JournalError, Problem, VaultError
from obsidian_agent.journal.blobs import ImageSource
from obsidian_agent.journal.reader import run_not_found
from obsidian_agent.journal.records import Effects, Kind, Record, StoredAction, effects_of
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
"""How a place is found: as before the run, as after it, half written by it, or changed by somebody else."""

_CANDIDATES: Final = 4


@dataclass(frozen=True, slots=True)
class Judged:
    """An action and what became of it. `actual` is the hash of a torn file."""

    stored: StoredAction
    state: PathState
    reason: str = ""
    actual: str | None = None

    @property
    def path(self) -> str:
        """The path to name to people: where the entry was, or is, before the run."""
        return self.stored.action.path.text

    @property
    def forward(self) -> Action:
        """The action, against a torn file as it is."""
        return self._against_torn(self.stored.action)

    @property
    def backward(self) -> Action:
        """Its reverse, against a torn file as it is."""
        return self._against_torn(reverse(self.stored.action))

    def _against_torn(self, action: Action) -> Action:
        return (
            replace(action, before=self.actual)
            if self.state == "torn" and isinstance(action, PutFile)
            else action
        )


def judge(
    handles: FolderHandles, record: Record, actions: Sequence[StoredAction], images: Images
) -> list[Judged]:
    """The state of every action of a record. Reads the disk, changes nothing."""
    survey = partial(Survey, handles, images, torn_before=started_since(record.boot))
    check = survey().check
    alone = [_forwards(stored, check(stored.action)) for stored in actions]
    states = [one.state for one in alone]
    done = next((at for at, state in enumerate(states) if state == "before"), len(states))
    if "foreign" not in states and all(state == "before" for state in states[done:]):
        return alone
    tried = [_judged_from(survey, actions, point) for point in _points(states)]
    return min(tried, key=lambda found: found[0])[1]


def _points(states: Sequence[PathState]) -> list[int]:
    """Likely numbers of done actions, the likeliest first: the action before is done, the one behind is not."""
    behind = list(accumulate((state in ("after", "torn") for state in states), initial=0))
    ahead = list(accumulate((state == "before" for state in reversed(states)), initial=0))[::-1]
    count = len(states)
    by_score = sorted(range(count + 1), key=lambda point: -(behind[point] + ahead[point]))
    fitting = [
        point
        for point in by_score
        if (point == count or states[point] == "before")
        and (point == 0 or states[point - 1] in ("after", "torn"))
    ]
    return list(dict.fromkeys([*fitting[:_CANDIDATES], by_score[0], 0, count]))


def _judged_from(
    survey: Callable[[], Survey], actions: Sequence[StoredAction], point: int
) -> tuple[int, list[Judged]]:
    """The states if `point` actions were done, and how many of them speak against it."""
    behind, ahead = survey(), survey()
    judged: list[Judged] = []
    for stored in reversed(actions[:point]):
        action = reverse(stored.action)
        finding = behind.check(action)
        if finding.possible:
            behind.assume(action)
        judged.append(_backwards(stored, finding))
    judged.reverse()
    for stored in actions[point:]:
        finding = ahead.check(stored.action)
        if finding.possible:
            ahead.assume(stored.action)
        judged.append(_forwards(stored, finding))
    misfits = sum(one.state != "after" for one in judged[:point]) + sum(
        one.state != "before" for one in judged[point:]
    )
    return misfits, judged


def _forwards(stored: StoredAction, finding: Finding) -> Judged:
    return _judged(stored, finding, "before", "after")


def _backwards(stored: StoredAction, finding: Finding) -> Judged:
    return _judged(stored, finding, "after", "before")


def _judged(stored: StoredAction, finding: Finding, ready: PathState, done: PathState) -> Judged:
    match finding.state:
        case State.READY:
            return Judged(stored, ready)
        case State.DONE:
            return Judged(stored, done)
        case State.TORN:
            return Judged(stored, "torn", finding.reason, finding.actual)
        case _:
            return Judged(stored, "foreign", finding.reason)


@dataclass(frozen=True, slots=True)
class InterruptedPath:
    """The state of one path that an interrupted run is about."""

    path: str
    state: PathState
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class InterruptedRun:
    """A run, undo or redo that was cut off, with the state of everything that it is about, in the order of its actions."""

    run_id: str
    kind: Kind
    time: str
    goal: str
    paths: tuple[InterruptedPath, ...]
    leftovers: int
    """Temporary files in the vault."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoveryResult:
    """How an interrupted run was ended. `problems` name what was left alone, with the reason; `warnings` as for an undo."""

    run_id: str
    kind: Kind
    finished: bool
    effects: Effects = Effects()
    problems: tuple[Problem, ...] = ()
    undo_available: bool = False
    warnings: tuple[Problem, ...] = ()


def interrupted(journal: Journal, store: VaultStore) -> list[InterruptedRun]:
    """The runs that a crash left half done, oldest first. [] while another process is at work. Changes nothing."""
    records = journal.unfinished()
    if not records or journal.locked:
        return []
    # One that ended between the two questions is no longer unfinished.
    still = {record.seq for record in journal.unfinished()}
    records = [record for record in records if record.seq in still]
    found = []
    with FolderHandles(store) as handles:
        for record in records:
            actions, images = journal.load(record)
            judged = judge(handles, record, actions, images.find)
            left = sum(1 for _ in _leftovers(handles, record, actions))
            paths = tuple(InterruptedPath(one.path, one.state, one.reason) for one in judged)
            found.append(
                InterruptedRun(
                    run_id=record.run_id,
                    kind=record.kind,
                    time=record.time,
                    goal=record.goal,
                    paths=paths,
                    leftovers=left,
                )
            )
    return found


def recover(
    journal: Journal, store: VaultStore, *, finish: bool, run_id: str | None = None
) -> list[RecoveryResult]:
    """End what a crash left half done (one run, or all): carry it out to its end, or take back what it did. JournalError, VaultError.

    Foreign content is left alone and reported. When this is interrupted too, or the disk fails, it is simply done again.
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
    """Before anything new: end records of which the disk shows that nothing, or everything, was done. The lock must be held.

    JournalError (RECOVERY_NEEDED) for one that is half done.
    """
    for record in journal.unfinished():
        with FolderHandles(store) as handles:
            actions, images = journal.load(record)
            _save_open_files(store, actions)
            states = {one.state for one in judge(handles, record, actions, images.find)}
        if len(states) > 1 or not states <= {"before", "after"}:
            raise JournalError(
                f"Run {record.run_id} was interrupted and is half done.",
                code="RECOVERY_NEEDED",
                hint="Decide first: `obsidian-agent recover --finish` or `--roll-back`.",
            )
        _end(journal, store, record, finish="after" in states)


def _save_open_files(store: VaultStore, actions: Sequence[StoredAction]) -> OpenFiles | None:
    """Have an editor save what it holds, so that the disk says what was done. It has to answer if it was to change files of the record itself."""
    every = [stored.action for stored in actions]
    return save_open_files(
        store,
        every,
        require_answer=any(isinstance(action, PutFile) and action.held for action in every),
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
                one.action if finish else reverse(one.action) for one in actions
            ),
        ) as applier,
    ):
        for leftover in list(_leftovers(handles, record, actions)):
            told = _clear(handles, leftover, images.find, started_since(record.boot))
            if told is not None:
                problems.append(
                    Problem(
                        "CONFLICT",
                        told,
                        path=leftover.action.path.text if leftover.action else None,
                    )
                )
        in_effect = set[int]()
        judged = judge(handles, record, actions, images.find)
        for one in judged if finish else reversed(judged):
            if _carried(applier, editing, one, images, finish, problems):
                in_effect.add(one.stored.number)
        applier.complete()
        warnings = tuple(applier.warnings)
    origins = [one.origin for one in actions if one.number in in_effect] if finish else None
    effects = effects_of(one.action for one in actions if one.number in in_effect)
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


def _carried(
    applier: Applier,
    editing: OpenFiles | None,
    one: Judged,
    images: ImageSource,
    finish: bool,
    problems: list[Problem],
) -> bool:
    """Bring one action to the end it should have; whether it is in effect afterwards."""
    stored = one.stored
    if one.state == "foreign":
        problems.append(
            Problem("CONFLICT", f"{one.path} was left alone: {one.reason}.", path=one.path)
        )
        return False
    if one.state == ("after" if finish else "before"):
        return finish
    action = mark_held(editing, one.forward if finish else one.backward)
    try:
        done = applier.carry_out(action, stored.number, images.for_action(action))
    except HalfDone:
        raise
    except (VaultError, JournalError) as error:
        if error.code == "IO_ERROR":
            # Going on would leave holes that nobody could judge when it is done again.
            error.hint = error.hint or "Recover again when the disk works."
            raise
        problems.append(error.problem())
        return False
    return done if finish else False


# --- temporary files ---------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Leftover:
    """A temporary entry: the folder it lies in, its name, and the action it was made for (None: not known)."""

    folder: VaultPath
    name: str
    action: PutFile | MoveEntry | None


def _leftovers(
    handles: FolderHandles, record: Record, actions: Sequence[StoredAction]
) -> Iterator[_Leftover]:
    """Every temporary entry of a record, wherever in the vault its folder is by now."""
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
    """Deal with one leftover. Under a temporary name lies either what the run was writing, or what it had displaced. Its mode tells the first
    while it is not whole; and as long as the note still is what the run expected, nothing was displaced.

    Answers what to tell people when it holds something that is not of the run.

    `torn_before`: as for a survey.
    """
    folder, name = handles.get(leftover.folder), leftover.name
    action = leftover.action
    try:
        status = os.stat(name, dir_fd=folder, follow_symlinks=False)
        if isinstance(action, MoveEntry):
            return _put_back(folder, name, leftover.folder, action.path.name)
        if action is None or not stat.S_ISREG(status.st_mode):
            return _keep_beside(
                folder, name, leftover.folder, action.path.name if action else "note.md"
            )
        if stat.S_IMODE(status.st_mode) == INCOMPLETE_MODE:
            os.unlink(name, dir_fd=folder)
            return None
        content = content_of(folder, name)
        if content is None:
            return None
        there = content_of(folder, action.path.name)
        if not _ours(content, there, action, images, torn_before):
            return _give_back(folder, leftover, there, action, images, torn_before)
        if there is None and content.hash == action.before and action.after is None:
            return _put_back(folder, name, leftover.folder, action.path.name)
        os.unlink(name, dir_fd=folder)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise io_error(error, leftover.folder) from error
    return None


def _ours(
    content: Content,
    there: Content | None,
    action: PutFile,
    images: Images,
    torn_before: int | None,
) -> bool:
    """Whether content under a temporary name is the run's own, with `there` at the place of the action."""
    if content.hash in (action.before, action.after) or is_torn_of(
        content, action, images, torn_before
    ):
        return True
    displaced_nothing = action.before == (there.hash if there else None)
    image = images(action.after) if action.after is not None and displaced_nothing else None
    return image is not None and image.startswith(content.data)


def _give_back(
    folder: int,
    leftover: _Leftover,
    there: Content | None,
    action: PutFile,
    images: Images,
    torn_before: int | None,
) -> str | None:
    """Somebody else's content was displaced: it gets its place back if we hold it, else a visible name of its own."""
    target = action.path.name
    if there is not None and (
        there.hash == action.after or is_torn_of(there, action, images, torn_before)
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
        return _keep_beside(folder, name, parent, target)
    return None


def _keep_beside(folder: int, name: str, parent: VaultPath, target: str) -> str:
    beside = rename_as_recovered(folder, name, target)
    return f"What was there before is now {parent.text + '/' if parent.text else ''}{beside}."
