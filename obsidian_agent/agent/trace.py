"""The trace of requests and events: a local file of JSON lines, written only if it is turned on.

It holds names, numbers and codes, but no key, message, text or name of a note. A write error ends
the trace and nothing else.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from msgspec import Struct, field

from obsidian_agent.agent.events import (
    AgentEvent,
    Answer,
    NeedsInput,
    Notice,
    PlanningRetry,
    PlanReady,
    RoundsUsedUp,
    ShareDecided,
    TextDelta,
    TokensUsed,
    ToolCallFinished,
    ToolCallStarted,
    TurnFailed,
    TurnStarted,
)
from obsidian_agent.errors import Problem
from obsidian_agent.state_files import append_json

MAX_BYTES: Final = 10 * 2**20
"""Bytes after which a new file is started. One earlier file is kept as `NAME.1`."""


class Trace(Struct, kw_only=True):
    """A writer for the events of turns. `degraded` is set once writing has failed."""

    file: Path
    now: Callable[[], datetime]
    clock: Callable[[], float] = time.monotonic
    degraded: Problem | None = None
    _calls: dict[str, float] = field(default_factory=dict)

    def record(self, event: AgentEvent, conversation: str, model: str) -> Problem | None:
        """Write an event. Return the problem if this write is the first to fail. Never raises."""
        fields = self._fields(event)
        if fields is None or self.degraded is not None:
            return None
        try:
            self._write(
                {
                    "time": self.now().isoformat(timespec="milliseconds"),
                    "conversation": conversation,
                    "model": model,
                    **fields,
                }
            )
        except Exception as error:
            self.degraded = Problem(
                "DEGRADED",
                f"The trace cannot be written ({type(error).__name__}). "
                "Everything else works without it.",
            )
            return self.degraded
        return None

    def _fields(self, event: AgentEvent) -> dict[str, Any] | None:
        match event:
            case TurnStarted():
                self._calls.clear()
                return {"event": "turn", "characters": len(event.message)}
            case TextDelta():
                return None
            case ToolCallStarted():
                self._calls[event.call_id] = self.clock()
                return None
            case ToolCallFinished():
                seconds = self.clock() - self._calls.pop(event.call_id, self.clock())
                code = event.problem.code if event.problem is not None else None
                counts = {
                    "files": len(event.paths),
                    "characters": event.characters,
                    "complete": event.complete,
                }
                return {
                    "event": "tool",
                    "tool": event.tool[:60],
                    "seconds": round(seconds, 4),
                    "problem": code,
                    **counts,
                }
            case ShareDecided(request, decision):
                return {
                    "event": "share",
                    "kind": request.kind,
                    "items": len(request.items),
                    "answer": decision.scope,
                }
            case TokensUsed():
                numbers = {
                    "prompt": event.prompt,
                    "completion": event.completion,
                    "cached": event.cached,
                }
                times = {
                    "seconds": round(event.seconds, 4),
                    "first": event.first and round(event.first, 4),
                    "cost": event.cost,
                }
                return {"event": "usage", "requests": event.requests, **numbers, **times}
            case Notice(problem) | TurnFailed(problem):
                return {
                    "event": "failed" if isinstance(event, TurnFailed) else "notice",
                    "problem": problem.code,
                }
            case PlanningRetry():
                return {"event": "retry", "attempt": event.attempt}
            case PlanReady(plan):
                return {"event": "plan", "steps": len(plan.steps)}
            case Answer(text, sources):
                return {"event": "answer", "characters": len(text), "sources": len(sources)}
            case NeedsInput() | RoundsUsedUp():
                return {"event": type(event).__name__}
            case _:
                return None

    def _write(self, entry: dict[str, Any]) -> None:
        if self.file.exists() and self.file.stat().st_size > MAX_BYTES:
            os.replace(self.file, self.file.with_name(f"{self.file.name}.1"))
        append_json(self.file, [entry])
