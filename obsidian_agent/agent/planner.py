"""From a message of the person to a plan: what every planner works on, and how it is asked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

from obsidian_agent.dataclass import dataclass, field
from obsidian_agent.tools.core.tool import RunContext

if TYPE_CHECKING:
    from obsidian_agent.agent.events import Emit, Verdict


@dataclass(frozen=True, slots=True)
class PlanRequest:
    """What a planner works on. `params` are values that a plan may use by name. `pick`: the person chose this candidate, from 1."""

    message: str
    context: RunContext
    params: Mapping[str, Any] = field(default_factory=dict)
    pick: int | None = None


class Planner(Protocol):
    """A maker of plans."""

    @property
    def name(self) -> str:
        """How it is shown: the model's name, or what else plans."""
        ...

    async def plan(self, request: PlanRequest, emit: Emit) -> Verdict:
        """What the message comes to; everything that happens until then is emitted. Cancelling it ends the turn."""
        ...


@dataclass(frozen=True, slots=True)
class Sampling:
    """How a model is asked. `max_tokens` None leaves the room for an answer to the service; `timeout` is seconds of silence."""

    temperature: float = 0.2
    max_tokens: int | None = None
    timeout: float = 60.0
