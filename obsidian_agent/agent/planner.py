"""The interface of planners."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol

from msgspec import Struct, field

from obsidian_agent.agent.events import (
    Emit,
)
from obsidian_agent.tools.core.tool import RunContext

if TYPE_CHECKING:
    from obsidian_agent.agent.events import PlanningResult


_REVISION: Final = (
    "\n\nThis is about the following plan, which was not applied. Propose a corrected "
    "plan.\n\n```json\n"
)


def revision(comment: str, plan: Mapping[str, Any], left_out: Sequence[str]) -> str:
    """Return a user's comment on a plan as a message to a model that writes plans."""
    text = f"{comment}{_REVISION}{json.dumps(plan, ensure_ascii=False)}\n```"
    return f"{text}\n\nI left these changes out of it: {', '.join(left_out)}" if left_out else text


def is_revision(message: str) -> bool:
    """Return whether a message is a comment on a plan."""
    return _REVISION in message


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
