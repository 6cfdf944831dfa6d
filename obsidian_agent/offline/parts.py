"""The typed parts of a sentence: names, quoted texts, days, and conditions on notes.

A condition is a state (“without tags”), or a comparison with a day or a number (“changed before
May”, “with more than 3 links”). The words beside a name decide what it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from obsidian_agent.expression import unicode_expression
from obsidian_agent.offline.names import Name, NameKind, key_of
from obsidian_agent.offline.note_set import STATES, Key, Op, Term
from obsidian_agent.offline.sentence import (
    FUNCTION_WORDS,
    JOINED,
    NEGATIONS,
    NameMatch,
    Sentence,
    SentenceWord,
    Stretch,
    shift,
    stem,
    tokens,
    words,
)

NOUNS: Final[Mapping[str, tuple[NameKind, ...]]] = {
    "tag": ("tag",),
    "folder": ("folder",),
    "property": ("property",),
    "note": ("note", "alias"),
}
"""The kinds of names beside these words."""
END: Final = unicode_expression(r"[,;:!?.](?=\s|$)|[\n\ue000]|[。，；！？]")
"""The end of a phrase."""
_SENTENCE_END: Final = unicode_expression(r"[;!?.](?=\s|$)|\n|[。；！？]")
_BESIDE: Final[tuple[NameKind, ...]] = ("tag", "folder", "value")
"""The kinds of a name before the word "notes", if it is one of these."""
_OPERATORS: Final[Mapping[str, Op]] = {
    "befor": "<",
    "sinc": ">=",
    "more": ">",
    "fewer": "<",
    "least": ">=",
    "most": "<=",
}
"""The comparisons, by the stems of words that mean them."""
_COUNTED: Final[Mapping[str, Key]] = {"word": "words", "link": "links", "backlink": "backlinks"}
"""The numbers of a note, by the stems of the words for them."""
_SIGN: Final = unicode_expression(r"\s*([<>]=?)\s*")
_MAX_VALUE_WORDS: Final = 4
_UNITS: Final = ("day", "week", "month", "year")
_PADDING: Final = frozenset({"other", "have"})
"""The senses of words within the words for a state: “does not have any tag”."""
_NO_LINK: Final = ["without", "link"]
_OPPOSITE: Final[Mapping[Op, Op]] = {"<": ">=", "<=": ">", ">": "<=", ">=": "<"}


class NoteCondition(Stretch, frozen=True):
    """A part of a sentence that is a condition on notes."""

    term: Term


class Parts(Struct, frozen=True, kw_only=True):
    """The parts of a sentence, for any recipe."""

    parsed: Sentence
    tokens: Sequence[SentenceWord]
    names: Sequence[NameMatch]
    texts: Sequence[Stretch]
    days: Sequence[Stretch]
    conditions: Sequence[NoteCondition]

    @property
    def end(self) -> int:
        """The end of the first sentence with a name; those after it say what else holds."""
        start = min((match.end for match in self.names), default=0)
        match = _SENTENCE_END.search(self.parsed.bare, start)
        return match.start() if match else len(self.parsed.bare)

    def is_link_target(self, match: NameMatch) -> bool:
        """Return True for a name in “that link to X”, unless that is what to do."""
        before = [token for token in self.tokens if token.end <= match.start][-2:]
        return (
            len(before) == 2
            and before[0] != self.tokens[0]
            and "link" in before[0].senses
            and "to" in before[1].senses
            and self.parsed.bare[before[1].end : match.start].isspace()
        )

    def labelled_by(self, token: SentenceWord) -> Iterator[NameMatch]:
        """Yield the names beside which a word tells the kind: “folder” in “the folder Archive”."""
        kinds = _kinds_beside(token)
        for match in self.names if kinds else ():
            if token.end <= match.start:
                gap = self.parsed.bare[token.end : match.start]
            else:
                gap = self.parsed.bare[match.end : token.start]
            if gap.isspace() and _of_kinds(match, kinds):
                yield match

    @classmethod
    def of(cls, parsed: Sentence) -> Parts:
        """Divide a sentence."""
        spoken = tokens(parsed.bare)
        conditions = [*_states(parsed, spoken), *_comparisons(parsed, spoken)]
        narrowed = [
            _beside(_not_negated_by(conditions, match), parsed, spoken)
            for match in parsed.names
            if not is_within(match, conditions)
        ]
        # A quoted text in a condition is no text to write, and a day within a name is no day.
        owned = [match for match in parsed.names if match.bound or match.negated]
        return cls(
            parsed=parsed,
            tokens=spoken,
            names=[
                _with_rest(_with_value(match, parsed, spoken), parsed, spoken)
                for match in narrowed
                if match is not None
            ],
            texts=[quote for quote in parsed.quotes if not is_within(quote, owned)],
            days=[day for day in parsed.days if not is_within(day, parsed.names)],
            conditions=conditions,
        )


def is_within(part: Stretch, parts: Sequence[Stretch]) -> bool:
    """Return True if a part begins within one of `parts`."""
    return any(other.start <= part.start < other.end for other in parts)


# Lazy: a sentence written like an example does not load the engine of these expressions.
@cache
def _state_words() -> Sequence[tuple[str, Sequence[str]]]:
    """Return the states of notes that a sentence may mention, with the words for each."""
    states = ("untagged", "unlinked", "empty", "bare")
    wordings = [(state, STATES[state][1]) for state in states]
    others = ("without backlink", "without note link", "without note backlink", " ".join(_NO_LINK))
    return [
        (state, [word for word in words(wording) if word not in FUNCTION_WORDS])
        for state, wording in (*wordings, *(("unlinked", other) for other in others))
    ]


def _states(parsed: Sentence, spoken: Sequence[SentenceWord]) -> Iterator[NoteCondition]:
    """Yield the states by which a sentence describes notes."""
    content = [token for token in spoken if not (token.is_small or token.senses & _PADDING)]
    for state, needed in _state_words():
        for number, first in enumerate(content):
            run = content[number : number + len(needed)]
            if len(run) == len(needed) and JOINED.match(first.text):
                run.reverse()  # the negation follows the noun
            if stem(state) in first.senses:
                run = [first]
            elif len(run) < len(needed) or any(
                word not in token.senses and not (word == "without" and _negates(token))
                for token, word in zip(run, needed, strict=True)
            ):
                continue
            end = max(token.end for token in run)
            following = next((token.text for token in spoken if token.start >= end), "")
            # “Empty X” is an order, “to Empty” a name, and “without tag X” excludes a name.
            is_name = (
                is_within(first, parsed.names)
                if len(run) == 1
                else any(parsed.bare[end : match.start].isspace() for match in parsed.names)
            )
            # “Without links” means links in the notes, “no links to them” links to the notes.
            if first is spoken[0] or is_name or (needed == _NO_LINK and following != "to"):
                continue
            yield NoteCondition(first.start, end, parsed.text[first.start : end], Term("is", state))
            break


def _negates(token: SentenceWord) -> bool:
    return token.text in NEGATIONS or "nothing" in token.senses


def _comparisons(parsed: Sentence, spoken: Sequence[SentenceWord]) -> Iterator[NoteCondition]:
    """Yield the comparisons of notes, or of a property, with a day or a number."""
    for day in parsed.days:
        if not is_within(day, parsed.names):
            yield from _compared(parsed, spoken, day, day.text)
    for token in spoken:
        if token.text.isdecimal() and not is_within(token, (*parsed.names, *parsed.days)):
            unit = next((other for other in spoken if other.start >= token.end), token)
            name = next((name for name in _UNITS if name in unit.senses), None)
            if name is None:
                yield from _compared(parsed, spoken, token, int(token.text))
            else:
                ago = shift(parsed.around.context.now.date(), -int(token.text[:4]), name)
                span = Stretch(token.start, unit.end, token.text)
                yield from _compared(parsed, spoken, span, ago.isoformat())


def _compared(
    parsed: Sentence, spoken: Sequence[SentenceWord], value: Stretch, amount: str | int
) -> Iterator[NoteCondition]:
    """Yield the condition that compares with a day or a number, if a word before it compares."""
    before = [token for token in spoken if token.end <= value.start]
    while before and before[-1].is_small and before[-1].text != "do":
        before.pop()
    start, end = value.start, value.end
    last = before[-1].end if before else 0
    op: Op | None = None
    if sign := _SIGN.fullmatch(parsed.bare, last, start):
        op = sign[1]
        start = sign.start(1)
    elif before and not END.search(parsed.bare, last, start):
        cue = before.pop()
        op = next((op for word, op in _OPERATORS.items() if word in cue.senses), None)
        op = ">" if cue.text == "after" else op
        start = cue.start
        if op is not None and before and before[-1].text in NEGATIONS:
            op, start = _OPPOSITE[op], before.pop().start
    if op is None:
        return
    owner = next(
        filter(None, (_owner(match, parsed, spoken, start, end) for match in parsed.names)), None
    )
    if owner is not None:
        term = Term("property", amount, op, owner[1])
        start, end = min(start, owner[0].start), max(end, owner[0].end)
    elif isinstance(amount, int):
        noun = next((token for token in spoken if token.start >= end), None)
        key = next((key for word, key in _COUNTED.items() if noun and word in noun.senses), None)
        if key is None or noun is None:
            return
        term, end = Term(key, amount, op), noun.end
    else:
        key = next(
            (key for word, key in _change_words().items() if before and word in before[-1].senses),
            None,
        )
        if key is None:
            return
        term = Term(key, amount, "<" if op in ("<", "<=") else ">=")
        start = start if "note" in before[-1].senses else before[-1].start
    yield NoteCondition(start, end, parsed.text[start:end], term)


def _owner(
    match: NameMatch, parsed: Sentence, spoken: Sequence[SentenceWord], start: int, end: int
) -> tuple[NameMatch, str] | None:
    """Return a name and its property, if it is beside a comparison: “rating above 4”."""
    gap = parsed.bare[match.end : start] if match.end <= start else parsed.bare[end : match.start]
    name = next((str(name.value) for name in match.names if name.kind == "property"), None)
    if name is None or match.negated or match.start < end < match.end:
        return None
    is_beside = all(token.is_small for token in tokens(gap)) and not END.search(gap)
    return (match, name) if is_beside else None


@cache
def _change_words() -> Mapping[str, Key]:
    """Return the days of a note that a word before “since” or “before” means."""
    return {
        **dict.fromkeys(words("change edit update modify note"), "changed"),
        **dict.fromkeys(words("create write"), "created"),
    }


def _not_negated_by(conditions: Sequence[NoteCondition], match: NameMatch) -> NameMatch:
    """Return a name, which is not excluded by the “without” of a condition before it."""
    start = match.end - len(match.negated)
    is_own = any(part.start <= start < part.end for part in conditions)
    return replace(match, negated="") if match.negated and is_own else match


def _beside(match: NameMatch, parsed: Sentence, spoken: Sequence[SentenceWord]) -> NameMatch | None:
    """Return a name with the meanings that the words beside it allow, or None.

    “The folder X” is no note X; if there is no folder X, it is a new name. “The X notes” are those
    with the tag or in the folder X.
    """
    if match.bound or match.new:
        return match
    before = [token for token in spoken if token.end <= match.start]
    after = next((token for token in spoken if token.start >= match.end), None)
    called = len(before) > 1 and "call" in before[-1].senses
    if called:
        before.pop()
    kinds: tuple[NameKind, ...] = ()
    noun = stem(before[-1].text) if before and not called else ""
    values = tuple(name for name in match.names if name.property and stem(name.property) == noun)
    if values and before[-1].end + 1 == match.start:
        # “The category X” is a value of the property “categories”.
        start, text = before[-1].start, parsed.text[before[-1].start : match.end]
        return replace(match, start=start, text=text, names=values, bound=True)
    if before and not END.search(parsed.bare, before[-1].end, match.start):
        # “Tag X” and “please tag X” are orders, “the tag X” is a name.
        article = before[-2].text if len(before) > 1 else "to"
        is_order = before[-1].text == "tag" and article in ("you", "please", "to", "i", "me")
        if called or not is_order:
            kinds = _kinds_beside(before[-1])
    if kinds and kinds != NOUNS["note"] and not _of_kinds(match, kinds):
        return None
    if not kinds and after is not None and parsed.bare[match.end : after.start].isspace():
        is_plural = "note" in after.senses and after.text != "note"
        kinds = _BESIDE if is_plural else _kinds_beside(after)
    where = after.senses if after is not None and JOINED.match(after.text) else frozenset()
    if not kinds and "in" in (where or frozenset(token.text for token in before[-1:])):
        # Notes are in a folder or in a list, not in a tag or a value.
        kinds = ("folder", "note", "alias", "file")
    fitting = _of_kinds(match, kinds)
    bound = bool(fitting) and all(name.kind == "value" for name in fitting)
    return replace(match, names=fitting, bound=bound) if fitting else match


def _with_value(match: NameMatch, parsed: Sentence, spoken: Sequence[SentenceWord]) -> NameMatch:
    """Return a property with the value after it, if these are the first words of only one value."""
    owners = [str(name.value) for name in match.names if name.kind == "property"]
    after = [token for token in spoken if token.start >= match.end]
    while after and after[0].text in ("is", "of", "as"):
        after.pop(0)
    if not owners or match.bound or not after or is_within(after[0], parsed.names):
        return match
    if END.search(parsed.bare, match.end, after[0].start) or after[0].is_small:
        return match
    for last in reversed(after[:_MAX_VALUE_WORDS]):
        text = key_of(parsed.bare[after[0].start : last.end])
        values = [
            Name("value", value, owner)
            for owner in owners
            for label, value in parsed.around.names.properties.get(owner, {}).items()
            if key_of(label).startswith(f"{text} ")
        ]
        if len(values) == 1:
            whole = parsed.text[match.start : last.end]
            return replace(match, end=last.end, text=whole, names=tuple(values), bound=True)
    return match


def _with_rest(match: NameMatch, parsed: Sentence, spoken: Sequence[SentenceWord]) -> NameMatch:
    """Return a new path with the words after it that mean nothing: “to Projects/Rye bread”."""
    if not match.new or "/" not in match.text or match.text.startswith("#"):
        return match
    end = match.end
    for token in spoken:
        if token.start == end + 1 and parsed.bare[end] == " " and len(token.senses) == 1:
            if token.is_small or is_within(token, (*parsed.names, *parsed.days)):
                break
            end = token.end
    return replace(match, end=end, text=parsed.text[match.start : end])


def _kinds_beside(token: SentenceWord) -> tuple[NameKind, ...]:
    return next((kinds for noun, kinds in NOUNS.items() if noun in token.senses), ())


def _of_kinds(match: NameMatch, kinds: Sequence[NameKind]) -> tuple[Name, ...]:
    return tuple(name for name in match.names if name.kind in kinds)
