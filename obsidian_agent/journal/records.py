"""The contents of the journal as values: records, the effects of a run, and its undo points.

A file that several steps write is written once, with the content of the last of these steps. A run
cannot be undone to a point between them: what the file would have held there was never on disk.
"""

from __future__ import annotations

import json
import zlib
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import asdict

from obsidian_agent.errors import JournalError
from obsidian_agent.vault.transaction.actions import Action

Kind = Literal["run", "undo", "redo"]
"""A plan that was executed, the undo of a run, or the undo of an undo."""

Status = Literal["applying", "done", "failed", "stopped", "cancelled", "conflict", "recovered"]
"""`applying` from the commit of the record to its end.

A record that is still `applying` while no process holds the lock was interrupted.
"""

CurrentStatus = Status | Literal["undone", "partly undone"]
"""The status of a run, or that it was undone since."""

StepState = Literal[
    "applied", "partly applied", "not applied", "undone", "no changes", "interrupted"
]
"""`no changes`: the step has nothing to apply. `interrupted`: recovery decides its outcome."""


class NewRecord(Struct, frozen=True, kw_only=True):
    """A record before its actions are added.

    `source` is the record that an undo or redo reverses, `run` the run that it belongs to.
    """

    kind: Kind
    goal: str
    plan: Mapping[str, Any] | None = None
    plan_hash: str | None = None
    source: int | None = None
    run: int | None = None


class Record(Struct, frozen=True, kw_only=True):
    """One row of the journal.

    Records are ordered by `seq`, not by `time` (ISO 8601, UTC), because clocks can be set back.
    """

    seq: int
    run_id: str
    kind: Kind
    time: str
    goal: str
    plan_hash: str | None
    status: Status
    token: str
    source: int | None
    run: int | None
    count: int
    """The number of its actions."""
    applied: frozenset[int] | None
    """Numbers of the actions that were carried out; None while applying."""
    reversed: frozenset[int]
    """Numbers of those that were undone since."""
    undone: bool
    """True if none of it is in effect any more; for an undo, if all of it was redone."""
    has_images: bool
    """True if the contents are still stored. Without them there is no undo."""
    boot: str | None
    """Id of the system start during which it ran (`boot_id`); None if unknown."""

    @property
    def in_effect(self) -> frozenset[int]:
        """The numbers of the actions that could be undone."""
        return (self.applied or frozenset()) - self.reversed


class StoredAction(Struct, frozen=True):
    """An action of a record.

    `origin` is the number of the run's action that an undo or redo reverses or restores; in a run
    it is the action's own number.
    """

    number: int
    origin: int
    action: Action


class HistoryEntry(Struct, frozen=True, kw_only=True):
    """A run in the history.

    `undone` is True if none of its file changes is in effect. Commands cannot be undone.
    """

    run_id: str
    time: str
    goal: str
    status: Status
    effects: Effects
    undone: bool
    undoable: bool
    partly_undone: bool = False
    """True if some of the applied actions are undone and others are in effect."""

    @property
    def current_status(self) -> CurrentStatus:
        """The status of the run, or that it was undone since."""
        undone = not self.effects.is_empty and (self.undone or self.partly_undone)
        return current_status(self.status, undone=undone, in_effect=self.partly_undone)


def current_status(status: Status, *, undone: bool, in_effect: bool) -> CurrentStatus:
    """Return the status of a run that is partly `undone` or still partly `in_effect`."""
    if not undone:
        return status
    return "partly undone" if in_effect else "undone"


def bits(numbers: Iterable[int], count: int) -> bytes:
    """Return a bitmap of numbers below `count`."""
    field = bytearray((count + 7) // 8)
    for number in numbers:
        field[number >> 3] |= 1 << (number & 7)
    return bytes(field)


def numbers(field: bytes) -> frozenset[int]:
    """Return the numbers in a bitmap."""
    return frozenset(
        position * 8 + bit
        for position, byte in enumerate(field)
        if byte
        for bit in range(8)
        if byte >> bit & 1
    )


class Effects(Struct, frozen=True, kw_only=True):
    """The changes of a run to the vault. Vault paths as text, sorted; renames as (from, to)."""

    created: tuple[str, ...] = ()
    modified: tuple[str, ...] = ()
    deleted: tuple[str, ...] = ()
    renamed: tuple[tuple[str, str], ...] = ()
    folders: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        """True if nothing changed and no command ran."""
        return self == Effects()

    @property
    def files(self) -> int:
        """The number of files that were created, modified, deleted or renamed."""
        return sum(map(len, (self.created, self.modified, self.deleted, self.renamed)))


def pack_effects(effects: Effects) -> bytes:
    """Serialize effects for the database."""
    return zlib.compress(json.dumps(asdict(effects), ensure_ascii=False).encode(), 1)


def unpack_effects(blob: bytes) -> Effects:
    """Deserialize effects. Return empty ones if the blob is damaged."""
    try:
        fields = {name: tuple(value) for name, value in json.loads(zlib.decompress(blob)).items()}
        renamed = tuple((old, new) for old, new in fields.pop("renamed"))
        return Effects(renamed=renamed, **fields)
    except (zlib.error, ValueError, TypeError, KeyError, AttributeError):
        return Effects()


class UndoPoint(Struct, frozen=True, kw_only=True):
    """The end of a step, to which a run may be undone.

    `actions` is the number of the run's actions up to here. The run can be undone to this point
    only if it is `clean`: no later step writes a file again that this or an earlier step wrote.
    """

    step: str
    actions: int
    clean: bool
    numbers: frozenset[int] | None = None
    """Numbers of the actions that write the step's changes to disk, which may belong to later
    steps. None in journals of older versions."""
    commands: tuple[str, ...] = ()
    """Ids of the Obsidian commands that the step runs."""


class StepOutcome(Struct, frozen=True, kw_only=True):
    """The outcome of one step of a run.

    Of its `changes`, `in_effect` are in the vault now, and `undone` were there before an undo.
    `text` says what the step does.
    """

    step: str
    state: StepState
    in_effect: int = 0
    undone: int = 0
    changes: int = 0
    text: str = ""


class StoredPlan(Struct, frozen=True):
    """The plan of a run as its JSON document, and the undo points of the run in step order.

    When the contents of a run are deleted, only the outline of its plan is kept; `is_complete` is
    False then.
    """

    document: dict[str, Any]
    undo_points: list[UndoPoint]
    is_complete: bool
    left_out: tuple[str, ...] = ()
    """The changes of the plan that the user left out, as texts."""


class StepShare(Struct, frozen=True):
    """The part of a step that one of its instances contributes: action numbers and commands."""

    step: str
    numbers: range
    commands: tuple[str, ...] = ()
    writes: frozenset[int] = frozenset()
    """Numbers of the actions that write a file."""


def undo_points_between(
    shares: Sequence[StepShare], joined: Iterable[tuple[int, int]]
) -> list[UndoPoint]:
    """Return the undo points of a run, given the share of each instance in execution order.

    `joined` are pairs of instances: changes of the first reach the disk only with the actions of
    the second.
    """
    order = {
        step: index for index, step in enumerate(dict.fromkeys(share.step for share in shares))
    }
    numbers: dict[str, set[int]] = {step: set() for step in order}
    commands: dict[str, list[str]] = {step: [] for step in order}
    ends = dict.fromkeys(order, 0)
    for share in shares:
        numbers[share.step].update(share.numbers)
        commands[share.step] += share.commands
        ends[share.step] += len(share.numbers)
    unclean: set[int] = set()
    for first, second in joined:
        earlier, later = shares[first].step, shares[second].step
        # Changes before a delete never reach the disk: the delete stands for them.
        numbers[earlier].update(shares[second].writes or shares[second].numbers)
        unclean.update(range(order[earlier], order[later]))
    points: list[UndoPoint] = []
    total = 0
    for step, at in order.items():
        total += ends[step]
        points.append(
            UndoPoint(
                step=step,
                actions=total,
                clean=at not in unclean,
                numbers=frozenset(numbers[step]),
                commands=tuple(commands[step]),
            )
        )
    return points


def step_outcomes(
    undo_points: Sequence[UndoPoint],
    applied: Collection[int] | None,
    undone: Collection[int] = (),
    commands: Iterable[str] = (),
    texts: Mapping[str, str] | None = None,
) -> list[StepOutcome]:
    """Return the outcome of each step.

    `applied` are the numbers of the actions that were applied (None: the run was interrupted),
    `undone` those that were undone since, `commands` the ids of the commands that ran. `texts`
    describe the steps, by step id.
    """
    ran = Counter(commands)
    texts = texts or {}
    outcomes: list[StepOutcome] = []
    for index, point in enumerate(undo_points):
        numbers = (
            _numbers_until_clean(undo_points, index) if point.numbers is None else point.numbers
        )
        changes = len(numbers) + len(point.commands)
        done = numbers.intersection(applied or ())
        own = Counter(point.commands) & ran
        ran -= own
        undone_changes = len(done.intersection(undone))
        in_effect = len(done) - undone_changes + own.total()
        state = _step_state(in_effect, changes, was_undone=bool(undone_changes))
        if applied is None and changes:
            state = "interrupted"
        outcomes.append(
            StepOutcome(
                step=point.step,
                state=state,
                in_effect=in_effect,
                undone=undone_changes,
                changes=changes,
                text=texts.get(point.step, point.step),
            )
        )
    return outcomes


def _step_state(in_effect: int, changes: int, *, was_undone: bool) -> StepState:
    if not changes:
        return "no changes"
    if in_effect == changes:
        return "applied"
    if in_effect:
        return "partly applied"
    return "undone" if was_undone else "not applied"


def _numbers_until_clean(undo_points: Sequence[UndoPoint], at: int) -> frozenset[int]:
    """Return the actions of a step in a journal that does not store them.

    These are its own actions and those of the following steps up to a clean undo point.
    """
    start = undo_points[at - 1].actions if at else 0
    if undo_points[at].actions == start and undo_points[at].clean:
        return frozenset()
    end = next(
        (point.actions for point in undo_points[at:] if point.clean), undo_points[-1].actions
    )
    return frozenset(range(start, end))


def pack_undo_points(undo_points: Sequence[UndoPoint]) -> bytes | None:
    """Serialize for the database; an empty sequence becomes NULL."""
    rows = [
        [point.step, point.actions, point.clean, _ranges(point.numbers or ()), point.commands]
        for point in undo_points
    ]
    return json.dumps(rows).encode() if rows else None


def _ranges(numbers: Iterable[int]) -> list[tuple[int, int]]:
    """Return numbers as half-open ranges."""
    ranges: list[tuple[int, int]] = []
    for number in sorted(numbers):
        if ranges and ranges[-1][1] == number:
            ranges[-1] = (ranges[-1][0], number + 1)
        else:
            ranges.append((number, number + 1))
    return ranges


def unpack_undo_points(stored: bytes | None) -> list[UndoPoint]:
    """Deserialize undo points. Raise ValueError or TypeError if they are damaged."""
    points: list[UndoPoint] = []
    for step, actions, clean, *rest in json.loads(stored or b"[]"):
        numbers = None
        commands: tuple[str, ...] = ()
        if rest:
            ranges, ids = rest
            numbers = frozenset(number for start, end in ranges for number in range(start, end))
            commands = tuple(map(str, ids))
        points.append(
            UndoPoint(
                step=str(step),
                actions=int(actions),
                clean=bool(clean),
                numbers=numbers,
                commands=commands,
            )
        )
    return points


def undo_point_after(undo_points: Sequence[UndoPoint], step: str, run_id: str) -> UndoPoint:
    """Return the undo point after a step.

    Raise JournalError if there is none; its hint names the steps that do have one.
    """
    point = next((point for point in undo_points if point.step == step), None)
    others = [point.step for point in undo_points[:-1] if point.clean]
    hint = "The whole run can be undone."
    if others:
        hint = f"The run can be undone to the end of {' or '.join(others)}, or as a whole."
    if point is None:
        raise JournalError(f"Run {run_id} has no step {step!r}.", code="STEP_NOT_FOUND", hint=hint)
    if not point.clean:
        raise JournalError(
            f"Run {run_id} cannot be undone to the end of step {step}: later steps wrote the same "
            "files again, and the contents in between were not stored.",
            code="NOT_SEPARABLE",
            hint=hint,
        )
    return point
