"""Questions to the person about sharing, put one at a time, and remembered as far as they said."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from obsidian_agent.agent.event_stream import Emit
from obsidian_agent.agent.events import ShareDecided, ShareRequested
from obsidian_agent.agent.privacy.consent import REFUSED, AllowedBy, ApproveShare, Gate, ShareDecision, ShareRequest


@dataclass(frozen=True, slots=True)
class Permission:
    """What may be sent of the items of one request, and why: by path."""

    allowed: Mapping[str, AllowedBy] = field(default_factory=dict)
    args: Mapping[str, Any] | None = None
    """Other arguments that the person gave the call: nothing is allowed before it looked again."""

    @property
    def paths(self) -> frozenset[str]:
        """The paths of everything that may be sent."""
        return frozenset(self.allowed)


@dataclass(frozen=True, slots=True)
class Asker:
    """Puts questions to the person where no rule and no earlier answer settles the matter."""

    gate: Gate
    approve: ApproveShare

    def settled(self, request: ShareRequest) -> dict[str, AllowedBy]:
        """What of a request needs no question."""
        found = ((item.path.text, self.gate.allowed(item.path, item.level)) for item in request.items)
        return {path: reason for path, reason in found if reason is not None}

    def open_question(self, request: ShareRequest) -> bool:
        """Whether the person has to be asked."""
        return len(self.settled(request)) < len({item.path.text for item in request.items})

    async def ask(self, request: ShareRequest, emit: Emit) -> Permission:
        """Ask for what is not settled; everything that may be sent. A question that fails counts as no."""
        allowed = self.settled(request)
        left = tuple(item for item in request.items if item.path.text not in allowed and not self.gate.denied(item.path))
        if not left:
            return Permission(allowed)
        question = replace(request, items=left)
        await emit(ShareRequested(question))
        decision = await self._decide(question)
        self.gate.grants.record(question, decision)
        for path in decision.chosen(question):
            assert decision.scope != "no", "then nothing is chosen"
            allowed[path] = decision.scope
        await emit(ShareDecided(question, decision))
        return Permission(allowed, decision.args if decision.scope == "no" and question.args else None)

    async def _decide(self, question: ShareRequest) -> ShareDecision:
        try:
            return await self.approve(question)
        except Exception:
            return REFUSED
