"""The interface of planners."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

from msgspec import Struct, field

from obsidian_agent.agent.events import (
    Emit,
)
from obsidian_agent.tools.core.tool import RunContext

if TYPE_CHECKING:
    from obsidian_agent.agent.events import PlanningResult


class PlanRequest(Struct, frozen=True):
    """The input of a planner.

    `params` are values that a plan may use by name; `pick` is the number of the candidate that the
    user chose, from 1.
    """

    message: str
    context: RunContext
    params: Mapping[str, Any] = field(default_factory=dict)
    pick: int | None = None


class Planner(Protocol):
    """A model or another source of plans."""

    @property
    def name(self) -> str:
        """The displayed name, such as that of the model."""
        ...

    async def plan(self, request: PlanRequest, emit: Emit) -> PlanningResult:
        """Emit the events of a turn and return its result. Cancelling it ends the turn."""
        ...
