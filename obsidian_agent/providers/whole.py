"""Answers in one piece, for people who don't want to watch them come."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass

from obsidian_agent.providers.base import AroundProvider, ChatDelta, ChatRequest, TextChunk, Waiting
from obsidian_agent.providers.retry import closing


@dataclass(frozen=True, slots=True)
class WholeProvider(AroundProvider):
    """A provider whose text comes when all of it is there. The connection is a stream all the same, so that silence can be noticed."""

    async def stream(self, request: ChatRequest) -> AsyncIterator[ChatDelta]:
        """As the inner provider's, with at most one piece of thinking and one of text; what had come when it failed comes first."""
        texts: dict[bool, list[str]] = {True: [], False: []}
        held: list[ChatDelta] = []
        try:
            async with contextlib.aclosing(closing(self.inner.stream(request))) as deltas:
                async for delta in deltas:
                    match delta:
                        case TextChunk(text, thinking):
                            texts[thinking].append(text)
                        case Waiting():
                            yield delta
                        case _:
                            held.append(delta)
        except Exception:
            for chunk in _joined(texts):
                yield chunk
            raise
        for chunk in _joined(texts):
            yield chunk
        for delta in held:
            yield delta


def _joined(texts: dict[bool, list[str]]) -> list[TextChunk]:
    return [TextChunk("".join(pieces), thinking) for thinking, pieces in texts.items() if pieces]
