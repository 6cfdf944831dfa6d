"""Which actions of an interrupted record are done, judged by the disk alone.

Actions are carried out in order, so there is a point up to which they are done. Most places say at once on which side of it they are. Where
names were used twice (a file moved away, another put in its place) a place alone may mislead; then the points that fit their neighbours
are tried, each by a survey backwards and one forwards from it, and the one that explains most is taken. After a power loss single actions
may be missing or torn on either side, which the surveys find as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Final, Literal

from obsidian_agent.journal.boot import started_since
from obsidian_agent.journal.records import Record, StoredAction
from obsidian_agent.vault.actions import Action, PutFile, reverse
from obsidian_agent.vault.handles import FolderHandles
from obsidian_agent.vault.survey import Finding, Images, State, Survey

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
    def forward(self) -> Action:
        """The action, against a torn file as it is."""
        return self._against_torn(self.stored.action)

    @property
    def backward(self) -> Action:
        """Its reverse, against a torn file as it is."""
        return self._against_torn(reverse(self.stored.action))

    def _against_torn(self, action: Action) -> Action:
        return replace(action, before=self.actual) if self.state == "torn" and isinstance(action, PutFile) else action


@dataclass(frozen=True, slots=True)
class _Look:
    """What every survey of one interrupted record starts from."""

    handles: FolderHandles
    images: Images
    torn_before: int | None

    def survey(self) -> Survey:
        return Survey(self.handles, self.images, torn_before=self.torn_before)


def judge(handles: FolderHandles, record: Record, actions: Sequence[StoredAction], images: Images) -> list[Judged]:
    """The state of every action of a record. Reads the disk, changes nothing."""
    look = _Look(handles, images, started_since(record.boot))
    survey = look.survey()
    alone = [_forwards(stored, survey.look(stored.action)) for stored in actions]
    states = [one.state for one in alone]
    done = next((at for at, state in enumerate(states) if state == "before"), len(states))
    if "foreign" not in states and all(state == "before" for state in states[done:]):
        return alone
    tried = [_judged_from(look, actions, point) for point in _points(states)]
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
        if (point == count or states[point] == "before") and (point == 0 or states[point - 1] in ("after", "torn"))
    ]
    return list(dict.fromkeys([*fitting[:_CANDIDATES], by_score[0], 0, count]))


def _judged_from(look: _Look, actions: Sequence[StoredAction], point: int) -> tuple[int, list[Judged]]:
    """The states if `point` actions were done, and how many of them speak against it."""
    behind, ahead = look.survey(), look.survey()
    judged: list[Judged] = []
    for stored in reversed(actions[:point]):
        action = reverse(stored.action)
        finding = behind.look(action)
        if finding.possible:
            behind.assume(action)
        judged.append(_backwards(stored, finding))
    judged.reverse()
    for stored in actions[point:]:
        finding = ahead.look(stored.action)
        if finding.possible:
            ahead.assume(stored.action)
        judged.append(_forwards(stored, finding))
    misfits = sum(one.state != "after" for one in judged[:point]) + sum(one.state != "before" for one in judged[point:])
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


def shown(one: Judged) -> str:
    """The path to name to people: where the entry was, or is, before the run."""
    return one.stored.action.path.text
