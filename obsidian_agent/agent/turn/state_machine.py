"""A turn as one state machine, from the person's words to a checked run. It moves on events alone, and refuses what cannot follow."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType
from typing import Final

from obsidian_agent.agent.events import (
    AgentEvent,
    Answer,
    NeedsInput,
    PreviewReady,
    RoundsUsedUp,
    RunFinished,
    RunStarted,
    TurnFailed,
    TurnStarted,
)
from obsidian_agent.dataclass import dataclass
from obsidian_agent.errors import Problem

REPAIRS: Final = 2
"""Rounds in which a run that did not come out as previewed may be repaired."""


class TurnState(Enum):
    """Where a turn is."""

    IDLE = "idle"
    PLANNING = "planning"
    AWAITING_APPROVAL = "awaiting approval"
    EXECUTING = "executing"
    VALIDATING = "validating"
    RETRYING = "retrying"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


_S = TurnState
_BEGIN: Final = frozenset({_S.PLANNING, _S.AWAITING_APPROVAL})
FOLLOWING: Final[Mapping[TurnState, frozenset[TurnState]]] = MappingProxyType(
    {
        _S.IDLE: _BEGIN,
        _S.PLANNING: frozenset({_S.AWAITING_APPROVAL, _S.COMPLETED, _S.FAILED, _S.CANCELLED}),
        _S.AWAITING_APPROVAL: frozenset({_S.EXECUTING, _S.PLANNING, _S.AWAITING_APPROVAL, _S.FAILED, _S.CANCELLED}),
        _S.EXECUTING: frozenset({_S.VALIDATING, _S.FAILED, _S.CANCELLED}),
        _S.VALIDATING: frozenset({_S.COMPLETED, _S.RETRYING, _S.FAILED}),
        _S.RETRYING: frozenset({_S.PLANNING, _S.AWAITING_APPROVAL, _S.FAILED, _S.CANCELLED}),
        _S.COMPLETED: _BEGIN,
        _S.FAILED: _BEGIN,
        _S.CANCELLED: _BEGIN,
    }
)
"""What may follow what."""

ENDS: Final = frozenset({_S.COMPLETED, _S.FAILED, _S.CANCELLED})


class IllegalStep(RuntimeError):
    """A state cannot follow another: a mistake in the program."""


@dataclass(slots=True)
class TurnMachine:
    """One turn at a time. `repairs` counts the rounds of repair of this turn."""

    state: TurnState = TurnState.IDLE
    repairs: int = 0

    def to(self, state: TurnState) -> TurnState:
        """Go on to a state. Raises `IllegalStep`."""
        if state not in FOLLOWING[self.state]:
            raise IllegalStep(f"{state.value!r} cannot follow {self.state.value!r}.")
        if self.state in ENDS or self.state is TurnState.IDLE:
            self.repairs = 0
        if state is TurnState.RETRYING:
            self.repairs += 1
        self.state = state
        return state

    def hear(self, event: AgentEvent) -> TurnState:
        """Go on as an event says; events that decide nothing leave everything as it is."""
        match event:
            case TurnStarted():
                return self.to(TurnState.PLANNING)
            case PreviewReady(preview):
                return self.to(TurnState.AWAITING_APPROVAL if preview.valid else TurnState.FAILED)
            case NeedsInput():
                return self.to(TurnState.AWAITING_APPROVAL)
            case Answer() | RoundsUsedUp():
                return self.to(TurnState.COMPLETED)
            case TurnFailed():
                return self.to(TurnState.FAILED)
            case RunStarted():
                return self.to(TurnState.EXECUTING)
            case RunFinished(result):
                if result.status == "cancelled":
                    return self.to(TurnState.CANCELLED)
                if self.state is TurnState.AWAITING_APPROVAL:
                    return self.to(TurnState.FAILED)  # it was refused before anything happened
                return self.to(TurnState.VALIDATING if result.status == "done" else TurnState.FAILED)
            case _:
                return self.state

    def checked(self, problems: tuple[Problem, ...]) -> TurnState:
        """What a comparison of vault and preview found: done, one more round of repair, or failed after so many."""
        if not problems:
            return self.to(TurnState.COMPLETED)
        return self.to(TurnState.RETRYING if self.repairs < REPAIRS else TurnState.FAILED)
