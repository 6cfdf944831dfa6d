"""The planner that lets a model pick from the menu: what is certain needs none, what no action fits is planned as a whole.

Only the sentence goes to the model, with the kinds of the names of the vault that it says; no note, no selection, no path that was not
said. What it picks goes the way of a filled form: read, checked, previewed. Where it fails, the likeliest actions are offered, as without
a model.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal, cast

from obsidian_agent.agent.conversation import new_id
from obsidian_agent.agent.events import Answer, Candidate, NeedsInput, PlanReady, TextDelta, TurnEvent, TurnFailed
from obsidian_agent.agent.foreign import neutral
from obsidian_agent.agent.ledger import Ledger, Sending
from obsidian_agent.agent.metering import Meter
from obsidian_agent.agent.offline import OfflinePlanner
from obsidian_agent.agent.planner import Planner, PlanRequest, Sampling
from obsidian_agent.agent.replies import Reply, listen
from obsidian_agent.agent.sharing import Level, Part, SharingRules
from obsidian_agent.errors import ConfigError, Problem, ProviderError
from obsidian_agent.offline.chooser import Chooser, Chosen, NotChosen, request
from obsidian_agent.offline.names import Found
from obsidian_agent.offline.recipe import packaged
from obsidian_agent.offline.surroundings import Surroundings
from obsidian_agent.providers.base import ChatMessage, ChatRequest, Provider
from obsidian_agent.providers.prices import facts_of
from obsidian_agent.vault.hiding import HidingView
from obsidian_agent.vault.paths import PathUse, VaultPath, parse

Planning = Literal["auto", "menu", "plan"]

ROOM: Final = 400
"""Tokens of an answer at most: three actions with their values."""
_LOCAL: Final = ("ollama/", "lm_studio/", "custom/")


def picks(planning: Planning, provider: Provider) -> bool:
    """Whether a model picks from the menu first: where the setting says so, and by itself where the model runs on this machine."""
    return planning == "menu" or (planning == "auto" and provider.local and provider.name.startswith(_LOCAL))


@dataclass(frozen=True, slots=True)
class MenuPlanner:
    """A `Planner`. `make` opens the model and says whether it picks from the menu; `otherwise` plans what no action fits.

    `questions`: nothing may be changed, and only actions that answer are on the menu. `checked`: plans of `otherwise` are doubted too.
    """

    name: str
    make: Callable[[], Provider | None]
    offline: OfflinePlanner
    otherwise: Planner
    rules: SharingRules
    real: Callable[[VaultPath], VaultPath]
    ledger: Ledger
    sampling: Sampling = Sampling()
    questions: bool = False
    checked: bool = False
    conversation: Callable[[], str] = new_id

    async def plan(self, request: PlanRequest) -> AsyncIterator[TurnEvent]:
        """The turn's events; see `Planner.plan`."""
        try:
            provider = await asyncio.to_thread(self.make)
        except ConfigError as error:
            yield TurnFailed(error.problem())
            return
        if provider is None:
            async for event in self._otherwise(request):
                yield event
            return
        known = await asyncio.to_thread(self._without_model, request)
        if not isinstance(known, NeedsInput):
            yield known
            return
        turn = _Turn(self, provider, request, known)
        async with contextlib.aclosing(turn.run()) as events:
            async for event in events:
                yield event
        if turn.verdict is not None:
            yield turn.verdict
            return
        async for event in self._otherwise(request):
            yield event
