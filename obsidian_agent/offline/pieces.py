"""The pieces of a sentence: names, conditions, quoted texts, days, and the words between them.

Prepositions, verbs and nouns for what follows belong to no piece; they introduce one: “to the
folder called X”.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Final

from obsidian_agent.expression import unicode_expression
from obsidian_agent.offline.days import NUMBERS
from obsidian_agent.offline.sentence import AND, ORDERS, NameMatch, Sentence, is_within
from obsidian_agent.offline.words import (
    END,
    JOINED,
    Stretch,
    Word,
    is_article,
    words,
)

LABELS: Final = frozenset(words("tag folder property alias heading section"))
"""The stems of nouns before a name of their kind."""
NAMING: Final = LABELS | frozenset(words("word called value"))
"""The stems of words before a name, which may be any word: “the property words”."""
NOUNS: Final = NAMING | frozenset(
    words("note template task line list row bullet item new all text table vault name file")
)
"""The stems of words that say what others are, and are no text alone."""
PREPOSITIONS: Final = frozenset(words("under before since with without not instead that"))
"""The stems of the menu's words that work like prepositions, though a plan must use them."""
ARTICLES: Final = frozenset({"the", "a", "an", "my", "our", "your"})
_EDGES: Final = frozenset({"end", "start", "top", "bottom"})
_VERBAL: Final = ORDERS | frozenset(words("get have should called"))
_VERBS: Final = ORDERS | {"go"}
_OF_DAYS: Final = frozenset(words("due before on until by"))
_BEHIND_COLON: Final = unicode_expression(r"(?s)(?:：|:(?=\s|[^\x00-\x7f]))\s*(\S.*?)\s*$")
_JOINTS: Final = ("-", "/", "_")
_MAX_PIECES: Final = 24


class SentencePiece(Stretch, frozen=True):
    """A piece of a sentence; `known` is a name, a condition, a quoted text or a day."""

    known: Stretch | None
    before: tuple[Word, ...]
    """The words before it in its clause, which belong to no piece."""
    after: Word | None
    """The noun behind it that says what it is, or a particle directly behind it."""
    weight: int
    """The number of its words that a reading must explain."""
    is_apart: bool
    """True behind a comma or the like."""

    @property
    def match(self) -> NameMatch | None:
        """The name of the vault that it is."""
        return self.known if isinstance(self.known, NameMatch) else None

    @property
    def is_existing(self) -> bool:
        """True for a name that the sentence does not exclude."""
        return self.match is not None and not (self.match.new or self.match.negated)

    @property
    def preposition(self) -> Word | None:
        """The preposition before it."""
        return next((one for one in self.introducing if one.is_small and not is_filler(one)), None)

    @property
    def introducing(self) -> list[Word]:
        """The words that say what the piece is, the nearest first, up to a preposition."""
        chain: list[Word] = []
        if self.after is not None and JOINED.match(self.after.text):
            if self.after.is_small or self.after.senses & LABELS:
                return [self.after]
        elif self.after is not None:
            chain.append(self.after)
        is_behind = False
        for word in reversed(self.before):
            is_place = word.is_small or not word.senses.isdisjoint(PREPOSITIONS)
            if is_behind and not is_place:
                break
            chain.append(word)
            is_behind = is_behind or (is_place and not is_filler(word))
        return chain

    @property
    def is_listed(self) -> bool:
        """True for one that goes on with a list: behind a comma or “and” alone."""
        spoken = [word for word in self.before if not is_filler(word)]
        return all(word.text in AND for word in spoken) and bool(spoken or self.is_apart)


def is_filler(word: Word) -> bool:
    """Return True for an article or a pronoun."""
    return word.text in ARTICLES or is_article(word.text)


def colon_of(parsed: Sentence) -> int:
    """Return the start of the text behind a colon, or the end of the sentence."""
    colon = _BEHIND_COLON.search(parsed.bare)
    return colon.start(1) if colon is not None else len(parsed.bare)


def pieces_of(
    parsed: Sentence,
    known: Collection[Stretch],
    in_use: Sequence[Stretch],
    cues: frozenset[str],
    colon: int,
) -> list[SentencePiece]:
    """Return the pieces: those `known`, and the other words.

    `cues` are the stems of words that introduce pieces; `in_use` are parts that have a use already.
    All words behind the `colon` belong to pieces.
    """
    division = _Division(parsed, known, in_use, cues | NOUNS | PREPOSITIONS | _EDGES, colon)
    return [piece for piece, _ in zip(division.pieces(), range(_MAX_PIECES), strict=False)]


class _Division:
    def __init__(
        self,
        parsed: Sentence,
        known: Collection[Stretch],
        in_use: Sequence[Stretch],
        cues: frozenset[str],
        colon: int,
    ) -> None:
        self.parsed, self.in_use, self.cues, self.colon = parsed, in_use, cues, colon
        self.spans: list[Stretch] = []
        for part in sorted(known, key=lambda part: (part.start, -part.end)):
            reached = self.spans[-1].end if self.spans else 0
            is_free = part.start >= reached and not is_within(part, in_use)
            if is_free and not self._is_label(part):
                self.spans.append(part)
        self.before: list[Word] = []
        self.run: list[Word] = []
        self.end = 0

    def pieces(self) -> Iterator[SentencePiece]:
        """Yield the pieces from the left."""
        parsed, spans = self.parsed, list(reversed(self.spans))
        for number, word in enumerate(parsed.tokens):
            while spans and spans[-1].start <= word.start:
                span = spans.pop()
                if self.run and self._is_joined(span.start):
                    continue  # “check-date” is one name
                yield from self._flush()
                yield self._piece(span.start, span.end, span)
            if word.start < self.end:
                continue
            previous = parsed.tokens[number - 1] if number else None
            begins = previous is None or bool(END.search(parsed.bare, previous.end, word.start))
            if self.run and begins:
                yield from self._flush()
            if self.run and self._is_joined(word.start):
                self.run.append(word)
            elif self._introduces(number, previous, begins):
                yield from self._flush()
                self.before.append(word)
                following = parsed.after(word.end)
                is_next = following is None or bool(spans and spans[-1].start <= following.start)
                if self._stands_alone(following) and not (spans and is_next):
                    self.before.pop()
                    yield self._piece(word.start, word.end, None, weight=0)
            else:
                self.run.append(word)
        yield from self._flush()
        for span in reversed(spans):
            yield self._piece(span.start, span.end, span)

    def _flush(self) -> Iterator[SentencePiece]:
        if self.run:
            yield self._piece(self.run[0].start, self.run[-1].end, None)
            self.run = []

    def _piece(
        self, start: int, end: int, known: Stretch | None, weight: int = -1
    ) -> SentencePiece:
        parsed = self.parsed
        near: list[Word] = []
        position = start
        for word in reversed(self.before):
            gap = parsed.bare[word.end : position]
            if END.search(gap) and ":" not in gap and "：" not in gap:
                break
            near.insert(0, word)
            position = word.start
        after = parsed.after(end)
        is_beside = after is not None and len(parsed.bare[end : after.start]) < 2
        is_label = is_beside and after is not None and bool(after.senses & LABELS)
        is_particle = is_label or (is_beside and after is not None and after.start == end)
        inside = [word for word in parsed.between(start, end) if self._counts(word)]
        days = sum(word.text.isdecimal() for word in inside) if known is not None else 0
        is_plain = known is None and bool(near) and parsed.text[start].islower()
        if is_plain and inside and near[-1].is_small and not JOINED.match(inside[-1].text):
            is_placed = any(word.is_small and not is_filler(word) for word in near)
            weight = 0 if is_placed and inside[-1].senses & NOUNS else weight
        piece = SentencePiece(
            start=start,
            end=end,
            text=parsed.text[start:end],
            known=known,
            before=tuple(near),
            after=after if is_particle else None,
            weight=weight
            if weight >= 0
            else max(len(inside) - max(days - 1, 0), known is not None),
            is_apart=bool(self.end and END.search(parsed.bare, self.end, start)),
        )
        self.before, self.end = [], end
        return piece

    def _counts(self, word: Word) -> bool:
        return not word.is_small or (word.start > 0 and self.parsed.text[word.start].isupper())

    def _introduces(self, number: int, previous: Word | None, begins: bool) -> bool:
        """Return True for a word that introduces a piece and belongs to none."""
        word = self.parsed.tokens[number]
        following = self.parsed.after(word.end)
        if word.start >= self.colon:
            is_day = following is not None and any(
                day.start == following.start for day in self.parsed.days
            )
            return is_day and bool(word.senses & _OF_DAYS)
        is_capital = bool(number) and self.parsed.text[word.start].isupper()
        if word == self.parsed.predicate or is_within(word, self.in_use):
            return True
        if word.is_small:
            return not is_capital or begins
        if is_capital:  # a noun, or a part of a name
            labels = NOUNS - {"new", "all", "vault", "call"}
            is_labelled = previous is not None and bool(previous.senses & labels)
            return bool(word.senses & labels) and not is_labelled
        is_last = following is None or following.is_small
        is_last = is_last or bool(following and self._is_end(word.end, following.start))
        is_object = word.senses & (NOUNS - LABELS - {"all", "call", "new"})
        if self.run and is_last and is_object and not JOINED.match(word.text):
            return False  # “take notes”
        is_beside = previous is not None and previous.senses & NAMING and not begins
        if is_beside and is_last and not JOINED.match(word.text):
            return False
        if following is not None and word.text in NUMBERS and following.senses & NOUNS:
            return True
        is_first = begins or number < 2 or bool(previous is not None and previous.text in AND)
        is_verb = is_first or bool(JOINED.match(word.text))
        return bool(word.senses & self.cues) or (is_verb and bool(word.senses & _VERBS))

    def _stands_alone(self, following: Word | None) -> bool:
        """Return True if nothing follows a word that introduces pieces elsewhere: “to finished”."""
        *others, word = self.before
        if word.is_small or word == self.parsed.predicate or word.senses & _VERBAL:
            return False
        is_placed = bool(others) and others[-1].is_small and not is_article(others[-1].text)
        return is_placed and (
            following is None or following.is_small or self._is_end(word.end, following.start)
        )

    def _is_end(self, start: int, end: int) -> bool:
        return bool(END.search(self.parsed.bare, start, end))

    def _is_joined(self, position: int) -> bool:
        return self.parsed.bare[self.run[-1].end : position] in _JOINTS

    def _is_label(self, part: Stretch) -> bool:
        """Return True for a name that only says what the next one is: “na pasta Techniques”."""
        after, inside = self.parsed.after(part.end), self.parsed.between(part.start, part.end)
        is_noun = isinstance(part, NameMatch) and len(inside) == 1 and part.text.islower()
        is_before = after is not None and self.parsed.text[after.start].isupper()
        return is_noun and is_before and bool(inside[0].senses & LABELS)
