"""What the journal holds, as values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from obsidian_agent.journal.effects import Effects
from obsidian_agent.vault.transaction.actions import Action

Kind = Literal["run", "undo", "redo"]
"""A plan that was executed; a record that took back what a run did; a record that took back an undo."""

Status = Literal["applying", "done", "failed", "stopped", "cancelled", "conflict", "recovered"]
"""`applying` from the commit of the images to the end; a record that still says so without a process at work was interrupted."""


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
    """A run as listed. `undone`: nothing of it is left in effect, as of a run that changed nothing."""

    run_id: str
    time: str
    goal: str
    status: Status
    effects: Effects
    undone: bool
    undoable: bool


def bits(numbers: Iterable[int], count: int) -> bytes:
    """A set of numbers below `count` as a bitmap."""
    field = bytearray((count + 7) // 8)
    for number in numbers:
        field[number >> 3] |= 1 << (number & 7)
    return bytes(field)


def numbers(field: bytes) -> frozenset[int]:
    """The set of numbers that a bitmap stands for."""
    return frozenset(at * 8 + bit for at, byte in enumerate(field) if byte for bit in range(8) if byte >> bit & 1)
