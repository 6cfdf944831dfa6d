"""What a session gives an agent besides its tools: the person's instructions, what goes along with messages, and limits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from obsidian_agent.agent.context.gathering import Gathering
from obsidian_agent.agent.context.items import FUSIONS, Fusion
from obsidian_agent.agent.privacy.trace import Trace
from obsidian_agent.agent.turn.signatures import Detail
from obsidian_agent.errors import Problem
from obsidian_agent.providers.prices import ModelFacts, facts_of


@dataclass(frozen=True, slots=True)
class Brief:
    """`instructions` stand in the system prompt, so only what the person wrote or trusted may be in them; `sources` are the vault's files
    whose text that is. `notices` are told at the beginning of a turn.

    `window` is the person's own figure for the model's window, in tokens; without it the list's counts. `tools` off: the model may not look
    around. `only`: it may look around with these tools alone (None: with all read tools). `temperature`: another one than the settings'.
    """

    instructions: str = ""
    gathering: Gathering = Gathering()
    fusion: Fusion = FUSIONS["structured"]
    window: int | None = None
    tools: bool = True
    only: frozenset[str] | None = None
    temperature: float | None = None
    model: str | None = None
    """The model that the vault's agent wishes for."""
    sources: tuple[str, ...] = ()
    notices: tuple[Problem, ...] = ()
    trace: Trace | None = None
    facts: Callable[[str], ModelFacts] = facts_of
    detail: Detail | None = None
    """How much the model is told of tools and plans; None: as fits it."""
