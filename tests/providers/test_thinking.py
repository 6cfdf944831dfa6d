"""Thinking inside the content of an answer, however the service cuts it into chunks."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from obsidian_agent.errors import ProviderError
from obsidian_agent.providers.base import ChatDelta, Finished, TextChunk
from obsidian_agent.providers.thinking import thinking_apart

CASES = [
    ("<think>Let me see.</think>\n\nIn May.", "In May.", "Let me see."),
    ("<thinking>\nHm.\n</thinking>In May.", "In May.", "\nHm.\n"),
    ("\n <think>a < b </thin</think> So: <b", "\nSo: <b", "a < b </thin"),
    ("First.\n<think>And?</think>Then.", "First.\nThen.", "And?"),
    ("<think>one</think>\n<think>two</think>\nDone.", "Done.", "onetwo"),
    ("<think>never closed", "", "never closed"),
    ("<think>", "", ""),
    ("<think></think>Yes.", "Yes.", ""),
    ("The tag <think> is for thinking.", "The tag <think> is for thinking.", ""),
    ("```html\n<think>\n```\n<think>x</think>End", "```html\n<think>\n```\nEnd", "x"),
    ("~~~\n```\n<think>\n~~~\n", "~~~\n```\n<think>\n~~~\n", ""),
    ("<thin", "<thin", ""),
    ("  - a\n\n  `b`\n", "  - a\n\n  `b`\n", ""),
    ('{"goal": "<think>"}', '{"goal": "<think>"}', ""),
    ("", "", ""),
]


async def split(chunks: Sequence[str], failure: ProviderError | None = None) -> tuple[str, str]:
    """Return the answer and the thinking of a text in these chunks."""

    async def streamed() -> AsyncGenerator[ChatDelta, None]:
        for chunk in chunks:
            yield TextChunk(chunk)
        if failure is not None:
            raise failure
        yield Finished("stop")

    deltas: list[ChatDelta] = []
    try:
        async for delta in thinking_apart(streamed()):
            deltas.append(delta)
        assert deltas[-1] == Finished("stop")
    except ProviderError as error:
        assert error is failure
    texts = [delta for delta in deltas if isinstance(delta, TextChunk)]
    answer = "".join(each.text for each in texts if not each.thinking)
    return answer, "".join(each.text for each in texts if each.thinking)


@pytest.mark.parametrize(("text", "answer", "thinking"), CASES)
async def test_thinking_in_the_content_is_no_answer(text: str, answer: str, thinking: str) -> None:
    assert await split([text]) == (answer, thinking)
    assert await split(list(text)) == (answer, thinking)
    cut = ProviderError("cut", code="API_STREAM_CUT")
    assert await split(list(text), cut) == (answer, thinking), "also where the stream breaks off"


@given(st.sampled_from(CASES), st.lists(st.integers(0, 60)))
async def test_it_does_not_matter_where_chunks_begin(
    case: tuple[str, str, str], cuts: list[int]
) -> None:
    text, answer, thinking = case
    places = [0, *sorted(cuts), len(text)]
    chunks = [text[start:end] for start, end in zip(places, places[1:], strict=False)]
    assert await split(chunks) == (answer, thinking)


async def test_thinking_that_comes_apart_is_passed_on() -> None:
    async def streamed() -> AsyncGenerator[ChatDelta, None]:
        yield TextChunk("<think>", thinking=True)
        yield TextChunk("\n\nYes.")
        yield TextChunk("Or?", thinking=True)
        yield TextChunk(" Yes.")
        yield Finished("stop")

    assert [delta async for delta in thinking_apart(streamed())] == [
        TextChunk("<think>", thinking=True),
        TextChunk("Yes."),
        TextChunk("Or?", thinking=True),
        TextChunk(" Yes."),
        Finished("stop"),
    ]
