"""Separation of thinking that a model writes into its answer, between `<think>` and `</think>`.

Some services have a field for reasoning. Many models behind other services write it into the
content, so the tags are recognised in the text of every provider.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterable, Iterator, Mapping
from typing import Final

from msgspec import Struct

from obsidian_agent.errors import ProviderError
from obsidian_agent.providers.base import ChatDelta, Finished, TextChunk

TAGS: Final[Mapping[str, str]] = {"<think>": "</think>", "<thinking>": "</thinking>"}
"""Closing tags by opening tags, which count at the start of a line outside fenced code."""
_FENCES: Final = ("```", "~~~")
_LINE_STARTS: Final = (*TAGS, *_FENCES)


async def thinking_apart(deltas: AsyncIterable[ChatDelta]) -> AsyncGenerator[ChatDelta, None]:
    """Yield the deltas of an answer with the thinking in its text marked as such."""
    splitter = _Splitter()
    try:
        async for delta in deltas:
            if isinstance(delta, TextChunk) and not delta.thinking:
                for chunk in splitter.feed(delta.text):
                    yield chunk
                continue
            if isinstance(delta, TextChunk):
                splitter.thought()
            if isinstance(delta, Finished):
                for chunk in splitter.end():
                    yield chunk
            yield delta
    except ProviderError:
        for chunk in splitter.end():
            yield chunk
        raise


class _Splitter(Struct):
    """A splitter of streamed text into answer and thinking. Chunks may split a tag."""

    _held: str = ""
    """Text that may be the beginning of a tag or a fence."""
    _closing: str = ""
    """The tag that ends the thinking; "" in the answer."""
    _at_line_start: bool = True
    _after_thinking: bool = False
    """True while white space between thinking and answer is dropped."""
    _answered: bool = False
    _fence: str = ""

    def thought(self) -> None:
        """Note thinking that the service sent separately."""
        self._after_thinking = self._after_thinking or not self._answered

    def feed(self, chunk: str) -> Iterator[TextChunk]:
        """Yield the pieces that are certain by now."""
        text, self._held = self._held + chunk, ""
        while text:
            if self._closing:
                thought, text = self._thought(text)
                if thought:
                    yield TextChunk(thought, thinking=True)
                continue
            if self._after_thinking:
                text = text.lstrip()
                self._after_thinking = not text
            if self._at_line_start:
                text = self._line_start(text)
            if text and not self._closing:
                end = text.find("\n") + 1 or len(text)
                self._at_line_start, self._answered = text[end - 1] == "\n", True
                yield TextChunk(text[:end])
                text = text[end:]

    def end(self) -> Iterator[TextChunk]:
        """Yield the text that was held back when the stream ended."""
        if self._held:
            yield TextChunk(self._held, thinking=bool(self._closing))
        self._held = ""

    def _thought(self, text: str) -> tuple[str, str]:
        """Return the thinking at the beginning of `text`, and the text after its end."""
        thought, end, rest = text.partition(self._closing)
        if end:
            self._closing, self._at_line_start, self._after_thinking = "", True, True
            return thought, rest
        first = max(0, len(text) - len(self._closing) + 1)
        end_of_text = next(
            at for at in range(first, len(text) + 1) if self._closing.startswith(text[at:])
        )
        self._held = text[end_of_text:]
        return text[:end_of_text], ""

    def _line_start(self, text: str) -> str:
        """Look for a tag or a fence at the start of `text`.

        Return the text after a tag, all of it if there is none, and "" while that is uncertain.
        """
        line = text.lstrip(" \t")
        opening = next((tag for tag in TAGS if line.startswith(tag)), None)
        if opening is not None and not self._fence:
            self._closing = TAGS[opening]
            return line.removeprefix(opening)
        fence = next((sign for sign in _FENCES if line.startswith(sign)), "")
        if not fence and any(start.startswith(line) for start in _LINE_STARTS):
            self._held = text
            return ""
        if fence and self._fence in ("", fence):
            self._fence = "" if self._fence else fence
        return text
