"""A stretch of an instruction that a slot may take, and the ways to look at it."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from obsidian_agent.providers.offline.tokens import Token

_IN_NAMES = "-–—&+'’()"


@dataclass(frozen=True, slots=True)
class Stretch:
    """Tokens `start` to `end` (exclusive) of an instruction; never empty."""

    text: str
    tokens: tuple[Token, ...]
    start: int
    end: int

    def __len__(self) -> int:
        return self.end - self.start

    def __iter__(self) -> Iterator[Token]:
        return iter(self.tokens[self.start : self.end])

    @property
    def first(self) -> Token:
        """The first token."""
        return self.tokens[self.start]

    @property
    def last(self) -> Token:
        """The last token."""
        return self.tokens[self.end - 1]

    @property
    def raw(self) -> str:
        """What the instruction says there."""
        return self.text[self.first.start : self.last.end]

    @property
    def lowers(self) -> list[str]:
        """The words without case; "" for names in quotes and marks."""
        return [token.lower for token in self]

    @property
    def spoken(self) -> str:
        """The words without case, one blank between them."""
        return " ".join(self.lowers)

    @property
    def quoted(self) -> str | None:
        """The text of the quoted name or wikilink that the stretch consists of."""
        return self.first.text if len(self) == 1 and self.first.kind in ("quoted", "link") else None

    @property
    def plain(self) -> bool:
        """Whether there are only words, and the marks that names hold."""
        return all(token.kind == "word" or (token.kind == "mark" and token.text in _IN_NAMES) for token in self)

    @property
    def described(self) -> bool:
        """Whether there are only words and commas: a description, no name."""
        return all(token.kind == "word" or token.text == "," for token in self)

    @property
    def exact(self) -> bool:
        """Whether it is a name in quotes, a wikilink or a path, no bare words."""
        return len(self) == 1 and (
            self.quoted is not None or self.first.kind == "tag" or "/" in self.first.text or self.first.text.endswith(".md")
        )

    @property
    def ragged(self) -> bool:
        """Whether it begins with a mark or ends with one of punctuation: then it is no value."""
        return self.first.kind == "mark" or (self.last.kind == "mark" and self.last.text in ",.;:!?")

    def part(self, start: int, end: int) -> Stretch:
        """Another stretch of the same instruction."""
        return Stretch(self.text, self.tokens, start, end)

    def trimmed(self, before: Collection[str], after: Collection[str] = ()) -> Stretch:
        """Without leading and trailing words of these sets; at least one token stays."""
        start, end = self.start, self.end
        while start < end - 1 and self.tokens[start].lower in before:
            start += 1
        while start < end - 1 and self.tokens[end - 1].lower in after:
            end -= 1
        return self.part(start, end)

    def names(self, inner: Stretch) -> list[str]:
        """What a name may be, from all the words to the `inner` ones that are left without articles and nouns: "the New project note"."""
        if (single := inner.quoted) is not None:
            return [single]
        return [
            self.part(begin, finish).raw for begin in range(self.start, inner.start + 1) for finish in range(self.end, inner.end - 1, -1)
        ]
