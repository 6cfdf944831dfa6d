"""Where a run can be cut in two: after which steps, and with how many of its actions before the cut.

A file that several steps touch is written once, with what the last of them made of it. Between two such steps there is no cut: what the file
held then was never on the disk, and is not kept.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from obsidian_agent.errors import JournalError


@dataclass(frozen=True, slots=True)
class Cut:
    """The end of a step: `actions` of the run belong to it and to those before it. `clean`: the run can be taken back to here."""

    step: str
    actions: int
    clean: bool


def cuts_between(steps: Sequence[str], actions: Sequence[int], joined: Iterable[tuple[int, int]]) -> list[Cut]:
    """The cuts of a run whose instances belong to `steps` and have so many `actions` each, in the order of execution.

    `joined` are pairs of instances, the second of which changed further what the first had written.
    """
    order = list(dict.fromkeys(steps))
    place = {step: number for number, step in enumerate(order)}
    ends = dict.fromkeys(order, 0)
    for step, count in zip(steps, actions, strict=True):
        ends[step] += count
    spans = {(place[steps[first]], place[steps[second]]) for first, second in joined}
    unclean = {between for first, second in spans for between in range(first, second)}
    cuts: list[Cut] = []
    total = 0
    for number, step in enumerate(order):
        total += ends[step]
        cuts.append(Cut(step, total, number not in unclean))
    return cuts


def pack_cuts(cuts: Sequence[Cut]) -> bytes | None:
    """The stored form; None for none."""
    return json.dumps([[cut.step, cut.actions, cut.clean] for cut in cuts]).encode() if cuts else None


def unpack_cuts(stored: bytes | None) -> list[Cut]:
    """The cuts out of their stored form. ValueError, TypeError when it is damaged."""
    return [Cut(str(step), int(actions), bool(clean)) for step, actions, clean in json.loads(stored or b"[]")]


def cut_after(cuts: Sequence[Cut], step: str, run_id: str) -> Cut:
    """The cut after a step. JournalError says why there is none, and where there are others."""
    found = next((cut for cut in cuts if cut.step == step), None)
    others = [cut.step for cut in cuts[:-1] if cut.clean]
    hint = f"It can be taken back to the end of {' or '.join(others)}, or as a whole." if others else "It can be taken back as a whole."
    if found is None:
        raise JournalError(f"Run {run_id} has no step {step!r}.", code="STEP_NOT_FOUND", hint=hint)
    if not found.clean:
        message = f"Later steps changed files further that {step} or one before it had written; what they held between is not kept."
        raise JournalError(message, code="NOT_SEPARABLE", hint=hint)
    return found
