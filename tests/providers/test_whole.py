"""Answers in one piece."""

from __future__ import annotations

import pytest

from agents import call, scripted
from obsidian_agent.errors import ProviderError
from obsidian_agent.providers.base import ChatMessage, ChatRequest, Finished, TextChunk
from obsidian_agent.providers.middleware import WholeProvider

REQUEST = ChatRequest((ChatMessage("user", "Hi"),))


async def test_text_and_thinking_come_when_they_are_complete() -> None:
    inner = scripted({"text": "word " * 50, "thinking": "hm " * 50, "calls": [call("a"), call("b")], "usage": [1, 2]})
    whole = WholeProvider(inner)
    deltas = [delta async for delta in whole.stream(REQUEST)]
    assert deltas[:2] == [TextChunk("hm " * 50, thinking=True), TextChunk("word " * 50)]
    assert isinstance(deltas[-1], Finished)
    again = scripted({"text": "word " * 50, "thinking": "hm " * 50, "calls": [call("a"), call("b")], "usage": [1, 2]})
    streamed = [delta async for delta in again.stream(REQUEST)]
    assert [delta for delta in streamed if not isinstance(delta, TextChunk)] == deltas[2:]
    assert (whole.name, whole.address, whole.local) == (inner.name, inner.address, inner.local)


async def test_what_had_come_before_a_failure_is_not_lost() -> None:
    whole = WholeProvider(scripted({"text": "half an ans", "error": {"message": "no"}}))
    seen = []

    async def listen() -> None:
        async for delta in whole.stream(REQUEST):
            seen.append(delta)

    with pytest.raises(ProviderError):
        await listen()
    assert seen == [TextChunk("half an ans")]
