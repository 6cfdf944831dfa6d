"""What one turn uses: tokens, money, time."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from obsidian_agent.agent.events import ShareDecided, ShareRequested, TextDelta, TokensUsed, TurnEvent
from obsidian_agent.providers.base import Usage
from obsidian_agent.providers.prices import Price


@dataclass(slots=True)
class Meter:
    """Adds up a turn. `price` None: what it costs is not known."""

    model: str
    price: Price | None
    clock: Callable[[], float] = time.monotonic
    prompt: int = 0
    completion: int = 0
    cached: int = 0
    requests: int = 0
    tools: float = 0.0
    first: float | None = None
    _began: float | None = None
    _looking: float | None = None

    def asking(self) -> None:
        """A request goes out."""
        self._began = self.clock() if self._began is None else self._began
        self.requests += 1

    def hear(self, event: TurnEvent) -> None:
        """Something came."""
        if isinstance(event, TextDelta) and self.first is None and self._began is not None:
            self.first = self.clock() - self._began

    def answered(self, usage: Usage | None) -> None:
        """An answer is complete."""
        if usage is None:
            return
        self.prompt += usage.prompt_tokens
        self.completion += usage.completion_tokens
        self.cached += usage.cached_tokens

    def look(self, event: TurnEvent | None = None, *, over: bool = False) -> None:
        """Looking begins, goes on, or is over; the person's own time is not counted."""
        now = self.clock()
        if self._looking is not None:
            self.tools += now - self._looking
        waits = isinstance(event, ShareRequested)
        self._looking = None if over or waits else now
        if isinstance(event, ShareDecided):
            self._looking = now

    def total(self) -> TokensUsed:
        """Everything so far."""
        cost = None if self.price is None else self.price.of(Usage(self.prompt, self.completion, self.cached))
        seconds = self.clock() - self._began if self._began is not None else 0.0
        return TokensUsed(self.prompt, self.completion, self.requests, self.cached, cost, self.model, seconds, self.first, self.tools)
