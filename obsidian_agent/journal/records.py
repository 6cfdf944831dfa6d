"""What the journal holds, as values: records, what a run did in the end, and where it can be cut in two.

A file that several steps touch is written once, with what the last of them made of it. Between two such steps there is no cut: what the file
held then was never on the disk, and is not kept.
"""

from __future__ import annotations

import json
import zlib
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Literal, assert_never

from obsidian_agent.dataclass import asdict, dataclass
from obsidian_agent.errors import JournalError
from obsidian_agent.vault.paths.path import is_trash
from obsidian_agent.vault.transaction.actions import Action, MoveEntry, PutFile, PutFolder

Kind = Literal["run", "undo", "redo"]
"""A plan that was executed; a record that took back what a run did; a record that took back an undo."""

Status = Literal["applying", "done", "failed", "stopped", "cancelled", "conflict", "recovered"]
"""`applying` from the commit of the images to the end; a record that still says so without a process at work was interrupted."""

CurrentStatus = Status | Literal["undone", "partly undone"]
"""The status of a run, or that it was undone since."""


@dataclass(frozen=True, slots=True)
class NewRecord:
    """What is known of a record before anything happens.

    `source` is the record that an undo or redo takes back, `run` the run behind it.
    """

    kind: Kind
    goal: str
    plan: Mapping[str, Any] | None = None
    plan_hash: str | None = None
    source: int | None = None
    run: int | None = None


@dataclass(frozen=True, slots=True)
class Record:
    """One row of the journal. Records are ordered by `seq`, never by `time` (ISO 8601, UTC), which clocks may bend."""

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
    """How many actions it has."""
    applied: frozenset[int] | None
    """Numbers of the actions that were carried out; None while applying."""
    reversed: frozenset[int]
    """Numbers of those that an undo has taken back since."""
    undone: bool
    """Whether nothing of it is left in effect (of an undo: whether all of it was redone)."""
    has_images: bool
    """Whether the contents are still kept; without them there is no undo."""
    boot: str | None
    """The start of the machine since which it was at work (`boot.boot_id`); None where that is not known."""

    @property
    def in_effect(self) -> frozenset[int]:
        """Numbers of the actions that could be taken back."""
        return (self.applied or frozenset()) - self.reversed


@dataclass(frozen=True, slots=True)
class StoredAction:
    """An action of a record; `origin` is the number of the run's action that an undo or redo is about (its own number in a run)."""

    number: int
    origin: int
    action: Action


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    """A run as listed. `undone`: nothing of it is in effect. A command that ran cannot be taken back."""

    run_id: str
    time: str
    goal: str
    status: Status
    effects: Effects
    undone: bool
    undoable: bool
    partly_undone: bool = False
    """Whether a part of what was applied is undone, and another part is in effect."""

    @property
    def current_status(self) -> CurrentStatus:
        """The status of the run, or that it was undone since."""
        undone = self.effects.anything and (self.undone or self.partly_undone)
        return current_status(self.status, undone=undone, in_effect=self.partly_undone)


def current_status(status: Status, *, undone: bool, in_effect: bool) -> CurrentStatus:
    """Return the status of a run of which something is `undone` or still `in_effect`."""
    if not undone:
        return status
    return "partly undone" if in_effect else "undone"


def bits(numbers: Iterable[int], count: int) -> bytes:
    """A set of numbers below `count` as a bitmap."""
    field = bytearray((count + 7) // 8)
    for number in numbers:
        field[number >> 3] |= 1 << (number & 7)
    return bytes(field)


def numbers(field: bytes) -> frozenset[int]:
    """The set of numbers that a bitmap stands for."""
    return frozenset(
        at * 8 + bit for at, byte in enumerate(field) if byte for bit in range(8) if byte >> bit & 1
    )


@dataclass(frozen=True, slots=True)
class Effects:
    """What a run did to the vault, from the journal. Vault paths as text, sorted; renames as (from, to)."""

    created: tuple[str, ...] = ()
    modified: tuple[str, ...] = ()
    deleted: tuple[str, ...] = ()
    renamed: tuple[tuple[str, str], ...] = ()
    folders: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()

    @property
    def anything(self) -> bool:
        """Whether there was any effect."""
        return self != Effects()

    @property
    def files(self) -> int:
        """Number of files that are created, modified, deleted or renamed."""
        return sum(map(len, (self.created, self.modified, self.deleted, self.renamed)))


@dataclass(slots=True)
class _Trace:
    """An entry that some action touched. `origin` is where it was at the start, None when it is new."""

    origin: str | None
    folder: bool
    changed: bool = False


def pack_effects(effects: Effects) -> bytes:
    """The stored form."""
    return zlib.compress(json.dumps(asdict(effects), ensure_ascii=False).encode(), 1)


def unpack_effects(blob: bytes) -> Effects:
    """The effects as stored; none for a blob that is damaged."""
    try:
        fields = {name: tuple(value) for name, value in json.loads(zlib.decompress(blob)).items()}
        renamed = tuple((old, new) for old, new in fields.pop("renamed"))
        return Effects(renamed=renamed, **fields)
    except (zlib.error, ValueError, TypeError, KeyError, AttributeError):
        return Effects()


def effects_of(actions: Iterable[Action], commands: tuple[str, ...] = ()) -> Effects:
    """The net effect of actions that were carried out in this order. A renamed and edited file is a rename."""
    now: dict[str, _Trace] = {}
    deleted: set[str] = set()
    for action in actions:
        match action:
            case PutFile(path, before, after):
                trace = now.setdefault(
                    path.text, _Trace(None if before is None else path.text, folder=False)
                )
                trace.changed = True
                if after is None:
                    _forget(now, path.text, deleted)
            case PutFolder(path, made):
                if made and not is_trash(path):
                    now[path.text] = _Trace(None, folder=True)
                elif not made:
                    now.pop(path.text, None)
            case MoveEntry():
                _follow(now, action, deleted)
            case _:
                assert_never(action)
    return _collected(now, deleted, commands)


def _forget(now: dict[str, _Trace], path: str, deleted: set[str]) -> None:
    trace = now.pop(path)
    if trace.origin is not None:
        deleted.add(trace.origin)


def _follow(now: dict[str, _Trace], action: MoveEntry, deleted: set[str]) -> None:
    old, new = action.path.text, action.new_path.text
    trace = now.pop(old, None) or _Trace(old, action.folder)
    below = [text for text in now if text.startswith(old + "/")] if action.folder else []
    if is_trash(action.new_path):
        if trace.origin is not None:
            deleted.add(trace.origin)
        for text in below:
            inner = now.pop(text)
            if inner.origin is not None and inner.origin != text:
                deleted.add(inner.origin)
        return
    now[new] = trace
    for text in below:
        now[new + text[len(old) :]] = now.pop(text)


def _collected(now: dict[str, _Trace], deleted: set[str], commands: tuple[str, ...]) -> Effects:
    created, modified, renamed, folders = set[str](), set[str](), set[tuple[str, str]](), set[str]()
    for path, trace in now.items():
        if trace.origin is None:
            (folders if trace.folder else created).add(path)
        elif trace.origin != path:
            renamed.add((trace.origin, path))
        elif trace.changed:
            modified.add(path)
    replaced = created & deleted
    return Effects(
        created=tuple(sorted(created - replaced)),
        modified=tuple(sorted(modified | replaced)),
        deleted=tuple(sorted(deleted - replaced)),
        renamed=tuple(sorted(renamed)),
        folders=tuple(sorted(folders)),
        commands=commands,
    )


@dataclass(frozen=True, slots=True)
class Cut:
    """The end of a step: `actions` of the run belong to it and to those before it. `clean`: the run can be taken back to here."""

    step: str
    actions: int
    clean: bool
    numbers: frozenset[int] | None = None
    """Numbers of the actions that its changes reach the disk with, also those of later steps; None in journals of older versions."""
    commands: tuple[str, ...] = ()
    """Commands of Obsidian that it runs, by id."""


StepState = Literal[
    "applied", "partly applied", "not applied", "undone", "no changes", "interrupted"
]
"""`no changes`: the step has nothing to apply. `interrupted`: recovery decides what becomes of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepOutcome:
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


@dataclass(frozen=True, slots=True)
class StoredPlan:
    """The plan of a run as its JSON document, and where the run can be cut, in the order of its steps.

    `whole`: as it was run; after a while only its outline is kept.
    """

    document: dict[str, Any]
    cuts: list[Cut]
    whole: bool


@dataclass(frozen=True, slots=True)
class StepShare:
    """Part of an instance in its step: the numbers of its actions, and the commands it runs."""

    step: str
    numbers: range
    commands: tuple[str, ...] = ()
    writes: frozenset[int] = frozenset()
    """Those of the actions that write a file."""


def cuts_between(shares: Sequence[StepShare], joined: Iterable[tuple[int, int]]) -> list[Cut]:
    """Return the cuts of a run, given the share of each instance in the order of execution.

    `joined` are pairs of instances: changes of the first reach the disk only with the actions of the second.
    """
    order = {step: at for at, step in enumerate(dict.fromkeys(share.step for share in shares))}
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
        # What was changed before a delete never reaches the disk: it goes with the delete.
        numbers[earlier].update(shares[second].writes or shares[second].numbers)
        unclean.update(range(order[earlier], order[later]))
    cuts: list[Cut] = []
    total = 0
    for step, at in order.items():
        total += ends[step]
        carried = frozenset(numbers[step])
        cuts.append(Cut(step, total, at not in unclean, carried, tuple(commands[step])))
    return cuts


def step_outcomes(
    cuts: Sequence[Cut],
    applied: Collection[int] | None,
    undone: Collection[int] = (),
    commands: Iterable[str] = (),
    texts: Mapping[str, str] | None = None,
) -> list[StepOutcome]:
    """Return the outcome of each step, from the actions that were `applied` (None: interrupted) and `undone` since.

    `commands` are the ids of the commands that ran, `texts` say what the steps do, by their ids.
    """
    ran = Counter(commands)
    texts = texts or {}
    outcomes: list[StepOutcome] = []
    for at, cut in enumerate(cuts):
        numbers = _numbers_until_clean(cuts, at) if cut.numbers is None else cut.numbers
        changes = len(numbers) + len(cut.commands)
        done = numbers.intersection(applied or ())
        own = Counter(cut.commands) & ran
        ran -= own
        undone_changes = len(done.intersection(undone))
        in_effect = len(done) - undone_changes + own.total()
        state = _step_state(in_effect, changes, was_undone=bool(undone_changes))
        if applied is None and changes:
            state = "interrupted"
        text = texts.get(cut.step, cut.step)
        outcomes.append(
            StepOutcome(
                step=cut.step,
                state=state,
                in_effect=in_effect,
                undone=undone_changes,
                changes=changes,
                text=text,
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


def _numbers_until_clean(cuts: Sequence[Cut], at: int) -> frozenset[int]:
    """Return the actions of a step in a journal that does not hold them: its own, and those of all steps up to a clean cut."""
    start = cuts[at - 1].actions if at else 0
    if cuts[at].actions == start and cuts[at].clean:
        return frozenset()
    end = next((cut.actions for cut in cuts[at:] if cut.clean), cuts[-1].actions)
    return frozenset(range(start, end))


def pack_cuts(cuts: Sequence[Cut]) -> bytes | None:
    """The stored form; None for none."""
    rows = [
        [cut.step, cut.actions, cut.clean, _ranges(cut.numbers or ()), cut.commands] for cut in cuts
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


def unpack_cuts(stored: bytes | None) -> list[Cut]:
    """The cuts out of their stored form. ValueError, TypeError when it is damaged."""
    cuts: list[Cut] = []
    for step, actions, clean, *rest in json.loads(stored or b"[]"):
        numbers = None
        commands: tuple[str, ...] = ()
        if rest:
            ranges, ids = rest
            numbers = frozenset(number for start, end in ranges for number in range(start, end))
            commands = tuple(map(str, ids))
        cuts.append(Cut(str(step), int(actions), bool(clean), numbers, commands))
    return cuts


def cut_after(cuts: Sequence[Cut], step: str, run_id: str) -> Cut:
    """The cut after a step. JournalError says why there is none, and where there are others."""
    found = next((cut for cut in cuts if cut.step == step), None)
    others = [cut.step for cut in cuts[:-1] if cut.clean]
    hint = (
        f"It can be taken back to the end of {' or '.join(others)}, or as a whole."
        if others
        else "It can be taken back as a whole."
    )
    if found is None:
        raise JournalError(f"Run {run_id} has no step {step!r}.", code="STEP_NOT_FOUND", hint=hint)
    if not found.clean:
        message = f"Later steps changed files further that {step} or one before it had written; what they held between is not kept."
        raise JournalError(message, code="NOT_SEPARABLE", hint=hint)
    return found
