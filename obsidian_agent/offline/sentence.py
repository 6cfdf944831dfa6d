"""A sentence about a vault, in any language: its words, quoted texts, names, days and conditions.

A condition is a state (“without tags”), or a comparison with a day or a number (“changed before
May”, “with more than 3 links”). The words beside a name decide what it is.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime
from functools import cache, cached_property
from itertools import filterfalse, pairwise, product, starmap
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from obsidian_agent.errors import VaultError
from obsidian_agent.expression import unicode_expression
from obsidian_agent.offline.days import NUMBERS, Period, days, periods, shift
from obsidian_agent.offline.exchange import ValueExchange, find_exchange, quoted_exchange
from obsidian_agent.offline.lines import NamedLine, find_line, lines_of, lines_with
from obsidian_agent.offline.names import Name, NameKind, Surroundings, VaultNames, key_of
from obsidian_agent.offline.note_set import STATES, Key, Op, Term
from obsidian_agent.offline.words import (
    ELIDED,
    END,
    FUNCTION_WORDS,
    JOINED,
    MAX_READ,
    QUESTION_MARKS,
    QUOTED_CHARACTER,
    SCRIPTS,
    URL,
    Stretch,
    Word,
    corrected,
    is_article,
    meanings,
    quotes,
    stem,
    tokens,
    without_quotes,
    words,
)
from obsidian_agent.tools.core.moment import format_moment
from obsidian_agent.vault.paths.path import PathUse, parse
from obsidian_agent.vault.text import decode

if TYPE_CHECKING:
    from obsidian_agent.offline.assignments import Assignment

_MAX_NAME_WORDS: Final = 12
_MAX_PART_WORDS: Final = 4
_MAX_GAP: Final = 4
"""Words before a day among which one means a daily note."""
_DIARY: Final = frozenset({"note", "daily"})
_LIKE: Final[Mapping[str, str]] = {"start": "{}*", "end": "*{}", "mention": "*{}*"}
"""The patterns of names, by the stems of verbs: “starts with X”."""
_TITLES: Final = frozenset({"name", "title"})
NO_NOTES: Final = frozenset(
    words("week month year day folder tag task section heading line list table vault property")
)
"""The senses of what “this” may stand before, other than the open note."""
_NOT_THIS: Final = ("está", "estas", "este")
_ARROW: Final = unicode_expression("[-=]>|[→⇒]")
_TO: Final = frozenset({"to", "into", "onto"})
_YEAR: Final = unicode_expression(r"(?:19|20)\d\d")
_BLANK: Final = unicode_expression(r"\s")
_VERBS: Final = (
    "add change copy create delete find insert list make mark merge move put remove rename replace "
    "set show split tick"
)
_ORDERS: Final = frozenset(words(_VERBS))
"""The stems of verbs that begin an order."""
_OF_TASKS: Final = frozenset(words("task done mark due overdue tick untick check postpone"))
"""The stems of words in a sentence that may name a task."""
_TASK_WORDS: Final = _OF_TASKS | _ORDERS
_TAKING: Final = frozenset(words("remove delete move"))
_MAKING: Final = frozenset(words("add new create insert"))
_OF_LINES: Final = frozenset(words("line bullet row task item"))
_PARTS: Final = frozenset(words("tag property link heading section folder value alias notes file"))
"""The stems of words for what is taken out, or away, other than a line."""
_RELATIVE: Final = frozenset({"that", "which", "who", "qui", "que", "che", "die"})
"""The words before the verb of a clause that describes something: “notes that should …”."""
_ASKING: Final = frozenset({"which", "what", "count"})
"""The senses of the first word of a question."""
_MIN_INFLECTED: Final = 5
"""Characters of a word that can be another form of a name."""
_MAX_VALUE_WORDS: Final = 4

_NAME_WORD: Final = unicode_expression(
    rf"(?V1)#?[[\p{{L}}\p{{N}}\p{{M}}_]--[{SCRIPTS}]]+(?:['’]\p{{L}}+)?"
)
_PLAIN_WORD: Final = unicode_expression(rf"(?V1)[\p{{L}}--[{SCRIPTS}]]++(?![\p{{N}}_/-])")
# A sign that joins two words to one name: `travel/dk` is not `travel`.
_JOINT: Final = unicode_expression("[/-]")
_GOES_ON: Final = unicode_expression(r"(?<=[\p{L}\p{N}])[/-](?=[\p{L}\p{N}])")
# Names may end with punctuation: `(draft)`, `C++`, `What?`.
_CLOSING: Final = unicode_expression(r"(?<=[\p{L}\p{N}\p{M}_])[)\]!?+%*.]+")
_POSSESSIVE: Final = unicode_expression(r"(?<=\p{L})['’]s(?!\p{L})")
_TAG: Final = unicode_expression(r"(?<!\S)#([\p{L}\p{N}_/-]*[\p{L}_][\p{L}\p{N}_/-]*)")
_TOKEN: Final = unicode_expression(rf"(?<![\w#/-])\w+(?:[/-]\w+)+(?![/-]?\w)(?<![{SCRIPTS}])")
_NUMBERED: Final = unicode_expression(
    rf"(?V1)(?<![[\w#/-]--[{SCRIPTS}]])[\p{{L}}--[{SCRIPTS}]]{{2,}}[-_]?\p{{N}}+"
    rf"(?![[\w/-]--[{SCRIPTS}]])"
)
_STOP: Final = unicode_expression(f"[,;.!?()\n{QUOTED_CHARACTER}]")
_SENTENCE_END: Final = unicode_expression(r"[;!?.](?=\s|$)|\n|[。；！？]")
_DATE: Final = unicode_expression(r"\d{4}-\d{2}-\d{2}")
_SIGN: Final = unicode_expression(r"\s*([<>]=?)\s*")

_COPULAS: Final = frozenset({"is", "are", "of", "as", "be"})
_FOLLOWING: Final = unicode_expression(r"[\p{Hiragana}\p{Hangul}]")
_ARTICLES: Final = frozenset({"the", "a", "an", "my", "our", "your"})
_AND: Final = frozenset({"and", "or", "nor", "und", "oder", "et", "ou", "y", "o", "e", "a", "и"})
_INNER: Final = "tag folder note file property name call have in keep leav contain mention other"
_BETWEEN: Final = frozenset(_INNER.split())
"""Senses of words allowed between an excluding word and the name: "not tagged #done"."""
NOUNS: Final[Mapping[str, tuple[NameKind, ...]]] = {
    "tag": ("tag",),
    "folder": ("folder",),
    "property": ("property",),
    "note": ("note", "alias"),
}
"""The kinds of names beside these words."""
_OF_NOTES: Final[tuple[NameKind, ...]] = ("tag", "folder", "value")
"""The kinds of a name before the word "notes", if it is one of these."""
_INSIDE: Final = frozenset({"in", "on", "for"})
"""Senses of prepositions before the notes that a sentence is about."""
_PLACED: Final = frozenset({*NOUNS, "templat", "section", "heading"})
"""The nouns before which the name of a property is that of another thing."""
_HOLDING: Final[tuple[NameKind, ...]] = ("folder", "note", "alias", "file")
"""The kinds of a name behind "in": notes are in a folder or in a list, not in a tag or a value."""
OPERATORS: Final[Mapping[str, Op]] = {
    "befor": "<",
    "sinc": ">=",
    "more": ">",
    "fewer": "<",
    "under": "<",
    "least": ">=",
    "most": "<=",
}
"""The comparisons, by the stems of words that mean them."""
_INCLUSIVE: Final[Mapping[Op, Op]] = {">": ">=", ">=": ">=", "<": "<=", "<=": "<="}
"""The comparisons in “7 or more”, “May or earlier”."""
_UP: Final = frozenset({"up", "upwards", "better", "besser", "mejor", "mieux", "meglio"})
"""Further words that mean “more” behind a number and “or”."""
_THIS_OR: Final = ("以上", "以下", "이상", "이하")
"""The words that mean “or more” and “or less” by themselves."""
OPPOSITE: Final[Mapping[Op, Op]] = {"<": ">=", "<=": ">", ">": "<=", ">=": "<"}
_COUNTED: Final[Mapping[str, Key]] = {"word": "words", "link": "links", "backlink": "backlinks"}
"""The numbers of a note, by the stems of the words for them."""
_UNITS: Final = ("day", "week", "month", "year")
_PAST: Final = frozenset({"changed", "created", "dated"})
"""The keys of days that are over."""
MEASURED: Final = frozenset({"pric", "rate", "duration", "page"})
"""The senses of the words for a property that is measured: “price”, “cheap”, “best”."""
_PADDING: Final = frozenset({"other", "have"})
"""The senses of words within the words for a state: “does not have any tag”."""
_NO_LINK: Final = ["without", "link"]


_KEEPS: Final = unicode_expression(
    r"(?i)\b(?:keep|leav|alone|stay|remain|preserv|intact|untouch|unchang|work"
    r"|behalt|bleib|lass|lässt|erhalt|unverändert|funktion|gard|laiss|rest|conserv|inchang"
    r"|fonction|mant|dej|qued|funcion|lasci|funzion|zachov|nech|zůst|fung"
    r"|сохран|остав|остан|работ)|保持|保留|不变|不動|そのまま|維持|그대로|유지"
)
"""The beginnings of words for what stays as it is, in the languages of the vocabulary."""
_CHANGES: Final = unicode_expression(
    r"(?i)\b(?:chang|touch|break|broke|lose|änder|kaputt|modif|cass|cambi|romp|zmen|измен|лома)"
    r"|更改|変更|壊|변경|깨"
)
"""Those for what must not happen to it."""
_SELECTING: Final = frozenset({"note", "that", "which"})
_WHOLE: Final = "link backlink other nothing noth all everyth everything else may must"
_UNCHANGED: Final = frozenset(_WHOLE.split())
"""Senses of what no plan changes in addition to what it is for."""


class NameMatch(Stretch, frozen=True):
    """A part of a sentence that is a name of the vault, with all its meanings."""

    names: tuple[Name, ...]
    negated: str = ""
    """The excluding word and the name: “except Thesis”."""

    bound: bool = False
    """True for a property followed by one of its values; the name is the value."""

    near: bool = False
    """True for a name that the sentence spells otherwise: “cafe” for “Café”."""

    new: bool = False
    """True for a new name below an existing one: `travel/dk` if there is a tag `travel`."""

    def of_kinds(self, *kinds: NameKind) -> tuple[Name, ...]:
        """Return the meanings of these kinds."""
        return tuple(name for name in self.names if name.kind in kinds)


class NoteCondition(Stretch, frozen=True):
    """A part of a sentence that is a condition on notes."""

    term: Term


class Comparison(Stretch, frozen=True):
    """A comparison with a day, a period or a number, and the words before it."""

    op: Op | None
    before: tuple[Word, ...]


def comparing(
    key: Key | None, op: Op | None, value: Stretch, amount: str | int, name: str | None = None
) -> Iterator[Term]:
    """Yield the terms that compare a property, a day or a number of notes with a value.

    Without an operator, a period means its days.
    """
    if key is None:
        return
    if isinstance(value, Period) and op in (None, ">", "<="):
        if op != "<=":
            amount = value.until if op else value.text
            yield Term(key, amount, ">=", name)
        if op != ">":
            yield Term(key, value.until, "<", name)
    elif key in ("changed", "created", "dated"):
        yield Term(key, amount, "<" if op in ("<", "<=") else ">=")
    elif op is not None:
        yield Term(key, amount, op, name)


def is_within(part: Stretch, parts: Collection[Stretch]) -> bool:
    """Return True if a part begins within one of `parts`."""
    return any(other.start <= part.start < other.end for other in parts)


class Sentence(Struct, frozen=True, dict=True):
    """A sentence about a vault.

    Words in `common` (in lower case) are names only if they are capitalized like the name. Other
    words may be misspelled ones of these.
    """

    text: str
    around: Surroundings
    common: frozenset[str] = frozenset()

    @cached_property
    def quotes(self) -> tuple[Stretch, ...]:
        """The texts in quotes, in order."""
        return quotes(self.text)

    @cached_property
    def bare(self) -> str:
        """The sentence with a placeholder for each character of quoted texts; positions stay."""
        return without_quotes(self.text)

    @cached_property
    def tokens(self) -> tuple[Word, ...]:
        """The words outside quotes; those that are not names may be misspelled.

        “New” at the beginning is a verb of making, except in a question, and “get rid of” one
        of removing.
        """
        spoken = [
            word if is_within(word, self._matches) else corrected(word, self.common)
            for word in tokens(self.bare[:MAX_READ])
        ]
        if spoken and "new" in spoken[0].senses and not self._is_marked:
            spoken[0] = replace(spoken[0], senses=spoken[0].senses - {"recently"} | {"creat"})
        if [word.text for word in spoken[:2]] == ["get", "rid"]:
            spoken[0] = replace(spoken[0], senses=spoken[1].senses)
        return tuple(spoken)

    @cached_property
    def asks(self) -> bool:
        """True for a question; “could you …” begins an order."""
        first = frozenset[str]().union(*(word.senses for word in self.tokens[:1]))
        return "could" not in first and (self._is_marked or bool(first & _ASKING))

    @property
    def _is_marked(self) -> bool:
        return self.text.rstrip().endswith(QUESTION_MARKS)

    @cached_property
    def days(self) -> tuple[Stretch, ...]:
        """The days in the sentence, also within names."""
        return tuple(days(self.bare[:MAX_READ], self.around.context.now.date()))

    @cached_property
    def periods(self) -> tuple[Period, ...]:
        """The months, years and the like that are no part of a day or a name."""
        matches = periods(self.tokens, self.bare, self.around.context.now.date())
        return tuple(one for one in matches if not is_within(one, (*self.days, *self._matches)))

    @cached_property
    def _matches(self) -> tuple[NameMatch, ...]:
        """The names of the vault in order, quoted or not, without overlaps."""
        names = self.around.names
        matches = [
            NameMatch(quote.start, quote.end, quote.text, known)
            for quote in self.quotes
            if (known := names.find(quote.text))
        ]
        matches += (
            match
            for match in names_in(self.bare, names, self.common)
            if not ((match.text.isdecimal() and self._or_more(match)) or self._is_unit(match))
        )
        others = (*_new(self.bare, names), *self._daily_notes(), *self._labelled())
        for match in (*others, *_numbered(self.bare, names)):
            if not any(match.start < other.end and other.start < match.end for other in matches):
                matches.append(match)
        for match in filterfalse(self._is_unit, list(self._misspelled(matches))):
            matches = [one for one in matches if not is_within(one, [match])] + [match]
        matches += self._partial(matches)
        return tuple(sorted(matches, key=lambda match: match.start))

    def _is_unit(self, match: NameMatch) -> bool:
        """Return True for “year” in “this year”, also if notes have such a property."""
        if stem(match.text) not in _UNITS or match.of_kinds("note", "folder"):
            return False
        before = [word for word in tokens(self.bare[:MAX_READ]) if word.end <= match.start][-1:]
        is_beside = bool(before) and self.bare[before[0].end : match.start].isspace()
        return is_beside and bool(before[0].senses & {"thi", "next", "recently"})

    def _misspelled(self, known: Sequence[NameMatch]) -> Iterator[NameMatch]:
        """Yield the words that are like only one name: “Kitchen renovtion”, longest first."""
        spoken = list(tokens(self.bare[:MAX_READ]))
        others, reached = (*known, *self.days), 0
        for number, first in enumerate(spoken):
            for size in range(_MAX_PART_WORDS, 0, -1):
                run = spoken[number : number + size]
                last = run[-1]
                is_known = all(
                    len(one.senses) > 1
                    or one.is_small
                    or one.text in self.common
                    or is_within(one, others)
                    for one in run
                )
                text = self.bare[first.start : last.end]
                is_joined = any(JOINED.match(one.text) for one in run)
                is_verb = not number and self.bare[last.end : last.end + 1] == " "
                if first.start < reached or is_known or is_joined or is_verb or END.search(text):
                    continue
                if near := self.around.names.near(text):
                    reached = last.end
                    yield NameMatch(first.start, last.end, str(near[0].value), near, near=True)
                    break

    def _partial(self, known: Sequence[NameMatch]) -> Iterator[NameMatch]:
        """Yield words by which only one note, or a numbered folder, is meant, longest first.

        One word is enough behind an article or a preposition, if no other note is named. A name
        that is new is no part of another.
        """
        spoken, names = list(tokens(self.bare[:MAX_READ])), self.around.names
        senses = frozenset[str]().union(*(word.senses for word in spoken))
        others, reached = (*known, *self.days, *self.assurances), 0
        is_named = any(match.of_kinds("note") for match in known)
        for number, first in enumerate(spoken):
            before = spoken[number - 1] if number else None
            if first.is_small or before is None or first.start < reached:
                continue
            for size in range(_MAX_PART_WORDS, 0, -1):
                run = spoken[number : number + size]
                text = self.bare[first.start : run[-1].end]
                content = [word for word in run if not word.is_small]
                is_free = not any(is_within(word, others) for word in run)
                if not is_free or run[-1].is_small or END.search(text) or JOINED.search(text):
                    continue
                rare = [
                    word
                    for word in content
                    if len(word.senses) == 1 and word.text not in self.common
                ]
                is_single = len(run) == 1
                is_code = not is_single and " " not in text  # “EXP-03”
                is_cued = before.is_small and len(first.text) >= _MIN_INFLECTED and not is_named
                is_noun = text[:1].isupper() or names.count_with(text) == 1
                is_cued = is_cued and is_noun and before.text not in _AND
                is_menu = is_single and first.text in self.common
                is_place = before.is_small or "folder" in before.senses
                meant = names.unnumbered(text) if is_place and not is_menu else ()
                is_new = senses & {"creat", "call"} or (before.senses & _TO and "renam" in senses)
                if not (meant or is_new or is_code) and rare and (not is_single or is_cued):
                    meant = names.holding([word.text for word in content])
                if meant:
                    reached = run[-1].end
                    yield NameMatch(first.start, reached, str(meant[0].value), meant, near=True)
                    break

    def _daily_notes(self) -> Iterator[NameMatch]:
        """Yield the days that mean their daily notes: “the note of 2 May”, “yesterday's note”."""
        settings, spoken = self.around.context.notes, tokens(self.bare[:MAX_READ])
        for day in self.days:
            before = [word for word in spoken if word.end <= day.start][-_MAX_GAP:]
            after = [word for word in spoken if word.start >= day.end][:2]
            if any(word.senses & _DIARY for word in (*before, *after)):
                moment = datetime.fromisoformat(day.text)
                path = f"{settings.daily_folder}/{format_moment(moment, settings.daily_format)}"
                if known := self.around.names.find(path.strip("/"), "note"):
                    yield NameMatch(day.start, day.end, str(known[0].value), known)

    def _labelled(self) -> Iterator[NameMatch]:
        """Yield the words before “note” that are in the name of only one: “the zelda note”."""
        for word, noun in pairwise(tokens(self.bare[:MAX_READ])):
            is_label = "note" in noun.senses and noun.text != "notes"
            is_label = is_label and len(word.senses) == 1 and word.text not in self.common
            known = self.around.names.partly(word.text) if is_label else ()
            if known and not word.is_small:
                yield NameMatch(word.start, word.end, str(known[0].value), known)

    @cached_property
    def predicate(self) -> Word | None:
        """The verb of a statement: “the drafts should be in Old”, “X gets the tag Y”.

        What it is about is said before the verb, what is to become of it behind the verb.
        """
        if self._is_marked:
            return None
        if arrow := _ARROW.search(self.bare):
            return Word(arrow.start(), arrow.end(), arrow[0], frozenset({"get"}))
        first = next((word for word in self.tokens if not word.is_small), None)
        is_order = first is not None and not is_within(first, self._matches)
        order = first.senses & _ORDERS if first is not None and is_order else frozenset()
        for word in self.tokens:
            before = self.between(0, word.start)
            is_verb = "should" in word.senses and order.isdisjoint({"find", "list", "show"})
            is_verb = is_verb or (bool(word.senses & {"get", "belong"}) and not order)
            if is_verb and before and not is_within(word, (*self._matches, *self.assurances)):
                is_about = any(not other.is_small for other in before)
                if before[-1].text not in _RELATIVE:
                    return word if is_about else None
        return None

    @cached_property
    def line(self) -> NamedLine | None:
        """The line that the sentence names by its own words, in a named or the open note first.

        It is a task if the sentence is about tasks, and any line if one is to be taken out.
        """
        senses = frozenset[str]().union(*(word.senses for word in self.tokens))
        first = next((word.senses for word in self.tokens if not word.is_small), frozenset())
        is_task = bool(self.days) or not senses.isdisjoint(_OF_TASKS)
        is_line = not (senses.isdisjoint(_TAKING) or first & _MAKING)
        is_labelled = is_line and not senses.isdisjoint(_OF_LINES)
        is_line = is_line and (is_labelled or senses.isdisjoint(_PARTS))
        if not (is_task or is_line):
            return None
        spoken = [
            replace(one, start=quote.start, end=quote.end)
            for quote in self.quotes
            for one in tokens(quote.text)
        ]
        spoken = spoken or list(self.tokens)
        notes = [match for match in self._matches if match.of_kinds("note")]
        names = [word for word in spoken if is_within(word, notes)]
        own = [word for word in spoken if not (word.is_small or word.senses & _TASK_WORDS)]
        own.sort(key=lambda word: (word in names, -len(word.text)))
        lines = list(lines_with([word.text for word in own], self.around.names.index))
        lines = [line for line in lines if line.status or is_line]
        first_line = find_line(spoken, lines)
        by = first_line.words if first_line is not None else ()
        holders = [match for match in notes if not is_within(match, by)]
        within = {str(name.value) for match in holders for name in match.of_kinds("note")}
        within = within or {self.around.active_file or ""}
        beside = [word for word in spoken if is_within(word, holders)]
        inside = find_line(spoken, [line for line in lines if line.note in within], beside)
        anywhere = find_line(spoken, lines, names) if not holders else None
        is_anywhere = anywhere is not None and bool(anywhere.status or is_labelled)
        return inside or (anywhere if is_anywhere else None)

    @cached_property
    def template(self) -> Stretch | None:
        """The word before “note” in a template's name, as its path: “a new meeting note”."""
        folder = f"{self.around.context.notes.templates or 'Templates'}/"
        for word, noun in pairwise(self.tokens):
            is_label = "note" in noun.senses and noun.text != "notes" and not word.is_small
            if not is_label or word.senses & {"new", "daily"}:
                continue
            notes = (path for path in self.around.names.index.files() if path.is_note)
            paths = [
                path.text
                for path in notes
                if path.text.startswith(folder) and word.text in key_of(path.stem).split()
            ]
            if len(paths) == 1:
                return Stretch(word.start, word.end, paths[0])
        return None

    @cached_property
    def exchange(self) -> ValueExchange | None:
        """The new value for an old one in the only named note, or the open one."""
        named = (match for match in self._matches if not is_within(match, self.quotes))
        notes = [match for match in named if match.of_kinds("note")]
        paths = {str(name.value) for match in notes for name in match.of_kinds("note")}
        note = paths.pop() if len(paths) == 1 else None
        note = self.around.active_file if not notes else note
        if note is None or self.asks:
            return None
        try:
            path = parse(note, PathUse.READ)
            content = decode(self.around.view.read(path), note)
        except VaultError:
            return None
        beside = [word for word in self.tokens if not is_within(word, notes)]
        properties = self.around.names.index.facts(path).properties
        if self.quotes:
            return quoted_exchange(note, properties, content, beside, self.quotes)
        lines = [line.text for line in lines_of(note, content)]
        return find_exchange(note, properties, lines, beside, self.bare)

    @cached_property
    def _in_context(self) -> tuple[NameMatch, ...]:
        """The names, of which a property with its value is one; excluded names are marked."""
        result: list[NameMatch] = []
        for match in self._matches:
            before = result[-1] if result else None
            start = before.end if before else 0
            between, gap = self.between(start, match.start), self.bare[start : match.start]
            owners = () if before is None or before.bound else before.of_kinds("property")
            values = tuple(
                value
                for value in match.of_kinds("value")
                if value.property in {owner.value for owner in owners}
            )
            is_beside = all(
                word.negates or _is_copula(word.text) or "mention" in word.senses
                for word in between
            )
            if before and values and is_beside and not _STOP.search(gap):
                whole = self.text[before.start : match.end]
                negated = before.negated or any(word.negates for word in between)
                result[-1] = NameMatch(
                    before.start, match.end, whole, values, whole if negated else "", bound=True
                )
                continue
            excluded = self._excluded(start, match)
            is_another = before is not None and before.negated and not excluded
            if is_another and all(word.text in _AND for word in between):
                excluded = "" if _STOP.search(gap.replace(",", "")) else match.text
            result.append(replace(match, negated=excluded))
        return tuple(result)

    def _excluded(self, start: int, match: NameMatch) -> str:
        """Return the text from an excluding word to the end of a name; "" without one.

        In Japanese and Korean that word follows the name.
        """
        for word in reversed(self.between(start, match.start)):
            if _STOP.search(self.bare, word.end, match.start):
                break
            if word.negates and _FOLLOWING.match(word.text):
                break  # it belongs to the name before it: “評価のない映画”
            if word.negates:
                # The word may belong to a condition: “without tags in Projects”.
                return "" if is_within(word, self._states) else self.text[word.start : match.end]
            if not word.is_small and word.senses.isdisjoint(_BETWEEN):
                break
        for word in self.between(match.end, len(self.bare)):
            if word.negates and _FOLLOWING.match(word.text):
                return self.text[match.start : word.end]
            if not JOINED.match(word.text) or not (word.is_small or word.senses & _BETWEEN):
                break
        return ""

    @cached_property
    def empty_properties(self) -> tuple[Stretch, ...]:
        """The properties without a value of the only note, if the sentence speaks of such."""
        spoken = [word for word in self.tokens if not word.is_small]
        pairs = [pair for pair in pairwise(spoken) if _are_empty_properties(*pair)]
        if not pairs:
            return ()
        start, end = pairs[0][0].start, pairs[0][1].end
        paths = {str(one.value) for match in self._matches for one in match.of_kinds("note")}
        note = (paths or {self.around.active_file or ""}).pop() if len(paths) < 2 else ""
        if not note:
            return ()
        properties = self.around.names.index.facts(parse(note, PathUse.READ)).properties
        return tuple(
            Stretch(start, end, name)
            for name, value in properties.items()
            if value in (None, "", [], {})
        )

    @cached_property
    def conditions(self) -> tuple[NoteCondition, ...]:
        """The states and names of notes, and the comparisons with a day or a number."""
        return (*self._states, *self._comparisons(), *self._likenesses())

    @cached_property
    def names(self) -> tuple[NameMatch, ...]:
        """The names that are in no condition, with the meanings that the words beside allow."""
        narrowed = (
            self._narrowed(match)
            for match in self._in_context
            if not is_within(match, (*self.conditions, *self._shadows()))
        )
        return tuple(
            self._with_rest(self._with_value(match)) for match in narrowed if match is not None
        )

    @cached_property
    def assignments(self) -> Sequence[Sequence[Assignment]]:
        """The groups of properties that the sentence gives values."""
        # Lazy: exact examples do not need it.
        from obsidian_agent.offline.assignments import assignments

        owners: list[tuple[Stretch, str]] = [
            (match, str(match.of_kinds("property")[0].value))
            for match in self._matches
            if match.of_kinds("property") and not is_within(match, self.quotes)
            if (after := self.after(match.end)) is None or after.senses.isdisjoint(_PLACED)
        ]
        # A common word is a property before “to”: “rating to 9 and last to today”.
        owners += [
            (word, str(known[0].value))
            for word, after in pairwise(self.tokens)
            if after.senses & _TO and not is_within(word, self._matches)
            if (known := self.around.names.find(word.text, "property"))
        ]
        owners.sort(key=lambda owner: owner[0].start)
        named = [match for match in self._matches if match.of_kinds("note", "alias", "folder")]
        cues = [self.cue(match.start) for match in named]
        stops = [cue.start for cue in cues if cue is not None and cue.senses & _INSIDE]
        return list(assignments(self.text, self.bare, self.tokens, owners, stops))

    @cached_property
    def texts(self) -> tuple[Stretch, ...]:
        """The quoted texts that may be written: those in no condition."""
        owned = [match for match in self._in_context if match.bound or match.negated]
        return tuple(quote for quote in self.quotes if not is_within(quote, owned))

    @cached_property
    def end(self) -> int:
        """The end of the first sentence with a name; those after it say what else holds."""
        start = min((match.end for match in self.names), default=0)
        match = _SENTENCE_END.search(self.bare, start)
        return match.start() if match else len(self.bare)

    @cached_property
    def assurances(self) -> tuple[Stretch, ...]:
        """The later clauses about what stays as it is: “other tags must stay as they are”."""
        return tuple(_assurances(self.bare))

    @property
    def only_note(self) -> str:
        """The only note that the sentence names, or else the open one; "" if there is none."""
        paths = {str(name.value) for match in self.names for name in match.of_kinds("note")}
        return (paths or {self.around.active_file or ""}).pop() if len(paths) < 2 else ""

    @property
    def daily_note(self) -> str:
        """The note of today, or else the template for it; "" if there is neither."""
        settings, now = self.around.context.notes, self.around.context.now
        path = f"{settings.daily_folder}/{format_moment(now, settings.daily_format)}".strip("/")
        known = self.around.names.find(path, "note")
        return str(known[0].value) if known else settings.daily_template or ""

    # --- the words around a part ---

    def between(self, start: int, end: int) -> Sequence[Word]:
        """Return the words between two positions."""
        return [word for word in self.tokens if start <= word.start and word.end <= end]

    def after(self, position: int) -> Word | None:
        """Return the first word after a position."""
        return next((word for word in self.tokens if word.start >= position), None)

    def cue(self, position: int) -> Word | None:
        """Return the word before a name, like "to" in "to the folder Archive".

        Return None at the beginning of a clause. In Japanese and Korean it follows the name, unless
        the noun before it tells its kind.
        """
        before = cue_before(self.bare, self.tokens, position)
        is_label = before is not None and any(noun in before.senses for noun in NOUNS)
        return before if is_label else self._particle_behind(position) or before

    def _particle_behind(self, position: int) -> Word | None:
        """Return the particle or noun behind a Japanese or Korean name: “に”, “のタグ”."""
        parts = (*self._matches, *self.quotes, *self.days) if self._has_particles else ()
        end = next((part.end for part in parts if part.start == position), len(self.bare))
        for word in self.tokens:
            if word.start < end or is_article(word.text):
                continue
            is_beside = not END.search(self.bare, end, word.start) and JOINED.match(word.text)
            is_name = any(part.start <= word.start < part.end for part in parts)
            return word if is_beside and not is_name else None
        return None

    @cached_property
    def _has_particles(self) -> bool:
        return bool(_FOLLOWING.search(self.bare))

    def _stretch(self, start: int, end: int) -> Stretch:
        return Stretch(start, end, self.text[start:end])

    def is_link_target(self, match: NameMatch) -> bool:
        """Return True for a name in “that link to X”, unless that is what to do."""
        spoken = self.between(0, match.start)
        before, others = spoken[-2:], spoken[:-2]
        article = bool(others) and (others[-1].text in _ARTICLES or is_article(others[-1].text))
        is_thing = article and not (len(others) > 1 and "with" in others[-2].senses)
        return (
            len(before) == 2
            and not is_thing
            and before[0] != self.tokens[0]
            and "link" in before[0].senses
            and "to" in before[1].senses
            and self.bare[before[1].end : match.start].isspace()
        )

    def labelled_by(self, word: Word) -> Iterator[NameMatch]:
        """Yield the names beside which a word tells the kind: “folder” in “the folder Archive”."""
        kinds = _kinds_beside(word)
        for match in self.names if kinds else ():
            gap = self.bare[min(word.end, match.end) : max(word.start, match.start)]
            if not gap.strip() and match.of_kinds(*kinds):
                yield match

    # --- conditions ---

    @cached_property
    def _states(self) -> tuple[NoteCondition, ...]:
        """The states by which the sentence describes notes."""
        return tuple(self._stated())

    def _without_value(self, content: Sequence[Word]) -> Iterator[NoteCondition]:
        """Yield the condition that the only property is empty: “where it is empty”."""
        owners = {str(name.value) for one in self._matches for name in one.of_kinds("property")}
        for number, word in enumerate(content):
            beside = content[max(number - 1, 0) : number + 2]
            free = [other for other in beside if not is_within(other, self._matches)]
            is_of_notes = any("note" in other.senses for other in free)
            is_whole = any(starmap(_are_empty_properties, pairwise(beside)))
            is_state = "empty" in word.senses and not is_within(word, self._matches)
            if is_state and number and len(owners) == 1 and not (is_of_notes or is_whole):
                term = Term("property", None, "lacks", min(owners))
                yield NoteCondition(word.start, word.end, word.text, term)

    def _stated(self) -> Iterator[NoteCondition]:
        content = [word for word in self.tokens if not (word.is_small or word.senses & _PADDING)]
        yield from self._without_value(content)
        for state, needed in _state_words():
            for number, first in enumerate(content):
                run = content[number : number + len(needed)]
                if len(run) == len(needed) and JOINED.match(first.text) and _denies(run[-1]):
                    run.reverse()  # in Japanese and Korean the negation follows the noun
                if stem(state) in first.senses:
                    run = [first]
                elif len(run) < len(needed) or any(
                    sense not in word.senses and not (sense == "without" and _denies(word))
                    for word, sense in zip(run, needed, strict=True)
                ):
                    continue
                start, end = first.start, max(word.end for word in run)
                if number and content[number - 1].negates:  # “no tienen ninguna etiqueta”
                    start = content[number - 1].start
                following = self.after(end)
                # “Empty X” is an order, “to Empty” a name, and “without tag X” excludes a name.
                is_name = (
                    is_within(first, self._matches)
                    if len(run) == 1
                    else any(self.bare[end : match.start].isspace() for match in self._matches)
                )
                # “Without links” means links in the notes, “no links to them” links to the notes.
                is_outgoing = needed == _NO_LINK and (following is None or following.text != "to")
                is_order = first is self.tokens[0] and len(run) == 1
                beside = content[max(number - 1, 0) : number + 2]
                is_order = is_order or any(starmap(_are_empty_properties, pairwise(beside)))
                is_property = state == "empty" and any(self._without_value(content))
                if is_order or is_name or is_outgoing or is_property:
                    continue
                yield NoteCondition(start, end, self.text[start:end], Term("is", state))
                break

    def _comparisons(self) -> Iterator[NoteCondition]:
        """Yield the comparisons of notes, or of a property, with a day or a number."""
        for day in self.days:
            own = (match for match in self._matches if is_within(day, [match]))
            if all((match.start, match.end) == (day.start, day.end) for match in own):
                yield from self._compared(day, day.text)
        for period in self.periods:
            yield from self._compared(period, period.text)
        for word in self.tokens:
            if not word.text.isdecimal() or is_within(word, (*self._matches, *self.days)):
                continue
            unit = self.after(word.end) or word
            name = next((name for name in _UNITS if name in unit.senses), None)
            if name is None:
                compared = list(self._compared(word, int(word.text)))
                yield from compared or self._of_year(word)
            else:
                ago = shift(self.around.context.now.date(), -int(word.text[:4]), name)
                yield from self._compared(Stretch(word.start, unit.end, ""), ago.isoformat())

    def comparison(self, value: Stretch) -> Comparison:
        """Return the word or sign that compares with a day, a period or a number."""
        before = list(self.between(0, value.start))
        while before and before[-1].is_small and before[-1].senses.isdisjoint(OPERATORS):
            before.pop()
        start, end = value.start, value.end
        last = before[-1].end if before else 0
        op: Op | None = None
        if sign := _SIGN.fullmatch(self.bare, last, start):
            op = sign[1]
            start = sign.start(1)
        elif before and not END.search(self.bare, last, start):
            cue = before[-1]
            op = next((op for word, op in OPERATORS.items() if word in cue.senses), None)
            op = ">" if cue.text == "after" else op
            if op is not None:
                start = before.pop().start
            if op is not None and before and before[-1].negates:
                op, start = OPPOSITE[op], before.pop().start
        if op is None and (inclusive := self._or_more(value)) is not None:
            op, end = inclusive
        after = self.after(end)
        if op is None and after is not None and after.start == end and JOINED.match(after.text):
            op = next((op for word, op in OPERATORS.items() if word in after.senses), None)
            end = after.end if op is not None else end
        return Comparison(start, end, self.text[start:end], op, tuple(before))

    def _or_more(self, value: Stretch) -> tuple[Op, int] | None:
        """Return the comparison behind a value, and its end: “7 or more”, “3 links or more”.

        “Set X to 7 and later …” goes on with another action.
        """
        spoken, start = tokens(self.bare[:MAX_READ]), value.end
        behind = [one for one in spoken if one.start >= start][:3]
        before = [one.senses for one in spoken if one.end <= value.start][-1:]
        if any(senses & _TO and "in" not in senses for senses in before):
            return None
        for number, word in enumerate(behind):
            if END.search(self.bare, start, word.start):
                return None
            is_joined = number and behind[number - 1].text in _AND
            if is_joined or (word.start == start and word.text in _THIS_OR):
                senses = word.senses | ({"more"} if word.text in _UP else set())
                op = next((op for sense, op in OPERATORS.items() if sense in senses), None)
                return (_INCLUSIVE[op], word.end) if op is not None else None
        return None

    def _compared(self, value: Stretch, amount: str | int) -> Iterator[NoteCondition]:
        """Yield the conditions by which a word or sign before a day or a number compares."""
        compared = self.comparison(value)
        op, start, end, before = compared.op, compared.start, compared.end, compared.before
        if op is None and not isinstance(value, Period):
            return
        owners = (self._owner(match, start, end) for match in self._in_context)
        owner = next(filter(None, owners), None)
        noun, verb = self.after(end), before[-1] if before else None
        key: Key | None = "property"
        if owner is not None:
            start, end = min(start, owner[0].start), max(end, owner[0].end)
        elif isinstance(amount, int):
            beside = [one for one in (noun, self.after(value.end)) if one is not None]
            noun = next((one for one in beside if one.senses & _COUNTED.keys()), None)
            key = next(
                (key for word, key in _COUNTED.items() if noun and word in noun.senses), None
            )
            end = max(end, noun.end) if noun else end
        else:
            spoken = frozenset().union(*(word.senses for word in before[-2:]))
            times = _change_words().items()
            if op is None and verb is not None and "note" in verb.senses:
                verb = None  # “a note for next month”
            key = next((key for word, key in times if verb and word in verb.senses), None)
            if key is None and op is None and noun is not None:  # “letzte Woche geändert”
                key = next((key for word, key in times if word in noun.senses - {"note"}), None)
                verb, end = noun, noun.end if key else end
            key = "dated" if key == "changed" and "daily" in spoken else key
            if key is None and self._is_of_notes(start):
                key, verb = "dated", None
            if verb is not None and verb.start < start and "note" not in verb.senses:
                start = verb.start
        name = owner[1] if owner is not None else None
        today = self.around.context.now.date().isoformat()
        if key in _PAST and isinstance(value, Period) and value.text > today and not value.is_fixed:
            value = value.of_last_year
            amount = value.text
        if isinstance(amount, int) and name is not None and self._is_date(name):
            value = Period(value.start, value.end, f"{amount}-01-01", f"{amount + 1}-01-01")
            amount = value.text
        for term in comparing(key, op, value, amount, name):
            yield NoteCondition(start, end, self.text[start:end], term)

    def _is_date(self, name: str) -> bool:
        """Return True for a property whose values are days, which a year is compared with."""
        values = self.around.names.properties.get(name, {}).values()
        return bool(values) and all(_DATE.match(str(value)) for value in values)

    def _of_year(self, word: Word) -> Iterator[NoteCondition]:
        """Yield the condition of notes about a year: “gigs before 2025”."""
        if _YEAR.fullmatch(word.text):
            first, until = f"{word.text}-01-01", f"{int(word.text) + 1}-01-01"
            yield from self._compared(Period(word.start, word.end, first, until), first)

    def _is_of_notes(self, position: int) -> bool:
        """Return True behind some notes, if it is not about tasks: “gigs from June”."""
        if any("task" in word.senses for word in self.tokens):
            return False
        *others, last = [None, *(one for one in self._in_context if one.end <= position)]
        start = last.end if last is not None else 0
        between = [word for word in self.between(start, position) if not word.is_small]
        is_noun = bool(between) and "note" in between[-1].senses and between[-1].text != "note"
        if END.search(self.bare, between[-1].end if between else start, position):
            return False
        if is_noun:
            return True
        if between or last is None or not last.of_kinds("folder", "tag", "value"):
            return False
        cue = self.cue(last.start)
        is_destination = cue is not None and bool(cue.senses & _TO) and "in" not in cue.senses
        return not (is_destination and any(others))

    def _owner(self, match: NameMatch, start: int, end: int) -> tuple[NameMatch, str] | None:
        """Return a name and its property, if it is beside a comparison: “rating above 4”."""
        name = next((str(name.value) for name in match.of_kinds("property")), None)
        if name is None or match.negated or match.start < end < match.end:
            return None
        gap = (match.end, start) if match.end <= start else (end, match.start)
        is_beside = all(word.is_small for word in self.between(*gap))
        return (match, name) if is_beside and not END.search(self.bare, *gap) else None

    def _likenesses(self) -> Iterator[NoteCondition]:
        """Yield the conditions on names: “whose name starts with X”, “the two X notes”."""
        for number, verb in enumerate(self.tokens):
            pattern = next((one for sense, one in _LIKE.items() if sense in verb.senses), None)
            before = self.tokens[max(number - _MAX_GAP, 0) : number]
            noun = next((word for word in before if word.senses & _TITLES), None)
            after = self.after(verb.end)
            is_cued = after is not None and _introduces(before, after)
            if pattern is None or (noun is None and not is_cued):
                continue
            between = self.between(noun.end, verb.start) if noun is not None else ()
            inner = [word for word in between if not word.is_small]
            value = self._stretch(inner[0].start, inner[-1].end) if inner else None
            value = value or self._value_behind(verb)
            if value is not None:
                start, end = (noun or verb).start, max(verb.end, value.end)
                term = Term("name", pattern.format(value.text.strip("“”\"'")))
                yield NoteCondition(start, end, self.text[start:end], term)
        for word, noun in pairwise(self.tokens):
            is_plural = "note" in noun.senses and noun.text != "note" and len(word.senses) == 1
            kinds = {
                name.kind for one in self._matches if is_within(word, [one]) for name in one.names
            }
            is_part = is_plural and not word.is_small and kinds <= {"note", "file"}
            with_it = self.around.names.count_with(word.text) if is_part else 0
            if with_it > 1:
                count = self.between(0, word.start)[-1:]
                is_count = bool(count) and NUMBERS.get(count[0].text) == with_it
                start = count[0].start if is_count else word.start
                term = Term("name", word.text)
                yield NoteCondition(start, word.end, self.text[start : word.end], term)

    def _value_behind(self, verb: Word) -> Stretch | None:
        """Return the quoted text or the word behind “starts with”."""
        after = self.after(verb.end)
        if after is not None and after.is_small:
            verb, after = after, self.after(after.end)
        quote = next((one for one in self.quotes if one.start >= verb.end), None)
        if quote is not None and (after is None or quote.start < after.start):
            return quote
        if after is None:
            return None
        end = _BLANK.search(self.bare, after.start)
        last = end.start() if end else len(self.bare)
        return Stretch(after.start, last, self.text[after.start : last].rstrip(".,;:!"))

    def _shadows(self) -> Iterator[Stretch]:
        """Yield the new names of several words: “a folder called Former suppliers”."""
        for number, cue in enumerate(self.tokens):
            before = self.tokens[max(number - 2, 0) : number]
            is_new = any("new" in word.senses for word in before) and cue.senses & set(NOUNS)
            if not (is_new or "call" in cue.senses):
                continue
            run: list[Word] = []
            for word in self.tokens[number + 1 :]:
                gap = self.bare[(run[-1] if run else cue).end : word.start]
                if gap != " " or word.is_small or word.senses & set(NOUNS):
                    break
                run.append(word)
            whole = Stretch(run[0].start, run[-1].end, "") if len(run) > 1 else None
            if whole is not None and not any(
                one.start <= whole.start and whole.end <= one.end for one in self._matches
            ):
                yield whole

    @cached_property
    def here(self) -> Stretch | None:
        """The words that mean the open note: “here”, “this note”, “this recipe”."""
        for word in self.tokens if self.around.active_file else ():
            after = self.after(word.end)
            if "here" in word.senses:
                return word
            if "thi" not in word.senses or word.text in _NOT_THIS:
                continue
            is_alone = (
                after is None or after.is_small or END.search(self.bare, word.end, after.start)
            )
            if is_alone or after is None:
                if word.text == "this":
                    return word
            elif not after.senses & NO_NOTES:
                return Stretch(word.start, after.end, self.text[word.start : after.end])
        return None

    # --- the meaning of a name ---

    def _narrowed(self, match: NameMatch) -> NameMatch | None:
        """Return a name with the meanings that the words beside it allow, or None.

        “The folder X” is no note X; if there is no folder X, it is a new name. “The X notes” are
        those with the tag or in the folder X.
        """
        if match.bound or match.new:
            return match
        before, after = list(self.between(0, match.start)), self.after(match.end)
        called = len(before) > 1 and "call" in before[-1].senses
        if called:
            before.pop()
        kinds: tuple[NameKind, ...] = ()
        noun = before[-1] if before else None
        owned = tuple(
            name
            for name in match.of_kinds("value")
            if noun is not None and stem(name.property or "") in noun.senses
        )
        if noun is not None and owned and noun.end + 1 == match.start:
            # “The category X” is a value of the property “categories”.
            text = self.text[noun.start : match.end]
            return replace(match, start=noun.start, text=text, names=owned, bound=True)
        if noun is not None and not END.search(self.bare, noun.end, match.start):
            # “Tag X” and “please tag X” are orders, “the tag X” is a name.
            article = before[-2].text if len(before) > 1 else "to"
            is_order = noun.text == "tag" and article in ("you", "please", "to", "i", "me")
            kinds = () if is_order and not called else _kinds_beside(noun)
        if kinds and kinds != NOUNS["note"] and not match.of_kinds(*kinds):
            return None
        is_beside = after is not None and not self.bare[match.end : after.start].strip()
        if not kinds and after is not None and is_beside:
            is_plural = "note" in after.senses and after.text != "note"
            kinds = _OF_NOTES if is_plural else _kinds_beside(after)
        joined = is_beside and after is not None and JOINED.match(after.text)
        position = (
            after.senses if joined and after else frozenset(word.text for word in before[-1:])
        )
        if not kinds and "in" in position:
            kinds = _HOLDING
        fitting = match.of_kinds(*kinds)
        bound = bool(fitting) and all(name.kind == "value" for name in fitting)
        return replace(match, names=fitting, bound=bound) if fitting else match

    def _with_value(self, match: NameMatch) -> NameMatch:
        """Return a property with the value after it, if these are the first words of only one."""
        owners = [str(name.value) for name in match.of_kinds("property")]
        after = list(self.between(match.end, len(self.bare)))
        while after and after[0].text in ("is", "of", "as"):
            after.pop(0)
        if not owners or match.bound or not after or is_within(after[0], self._in_context):
            return match
        if END.search(self.bare, match.end, after[0].start) or after[0].is_small:
            return match
        for last in reversed(after[:_MAX_VALUE_WORDS]):
            text = key_of(self.bare[after[0].start : last.end])
            values = [
                Name("value", value, owner)
                for owner in owners
                for label, value in self.around.names.properties.get(owner, {}).items()
                if key_of(label).startswith(f"{text} ")
            ]
            if len(values) == 1:
                whole = self.text[match.start : last.end]
                return replace(match, end=last.end, text=whole, names=tuple(values), bound=True)
        return match

    def _with_rest(self, match: NameMatch) -> NameMatch:
        """Return a new path with the words after it that mean nothing: “to Projects/Rye bread”."""
        end = match.end
        for word in self.between(end, len(self.bare)) if match.new and "/" in match.text else ():
            is_next = self.bare[end : word.start] == " " and len(word.senses) == 1
            if not is_next or word.is_small or is_within(word, (*self._in_context, *self.days)):
                break
            end = word.end
        is_longer = end > match.end
        return replace(match, end=end, text=self.text[match.start : end]) if is_longer else match


def without_assurances(text: str) -> str:
    """Return a sentence with blanks for its clauses that ask to change nothing else.

    “Leave everything else alone” and “all links must keep working” hold for every plan, except
    that links to what is deleted break. The first clause says what to do.
    """
    bare = without_quotes(text)
    if any("delet" in word.senses for word in tokens(bare[:MAX_READ])):
        return text
    for clause in _assurances(bare):
        senses = frozenset[str]().union(*(word.senses for word in clause.words))
        is_plain = not {"#", QUOTED_CHARACTER} & set(bare[clause.start : clause.end])
        # Notes that shall stay are a condition: “leave other drafts in Inbox”.
        is_whole = all(word.senses & _UNCHANGED for word in clause.words)
        is_of_links = "link" in senses and senses.isdisjoint(_SELECTING)
        if is_plain and clause.words and (is_whole or is_of_links):
            blanks = " " * (clause.end - clause.start)
            text = f"{text[: clause.start]}{blanks}{text[clause.end :]}"
    return text


class _Assurance(Stretch, frozen=True):
    """A later clause about what stays as it is, and its other content words."""

    words: tuple[Word, ...]


def _assurances(bare: str) -> Iterator[_Assurance]:
    """Yield the clauses behind the first one that say what stays as it is."""
    spoken = tokens(bare[:MAX_READ])
    stops = [match.end() for match in END.finditer(bare)]
    joints = [
        word.start
        for word, after in pairwise(spoken)
        if word.text in _AND and _KEEPS.match(bare, after.start)
    ]
    for start in sorted({*stops, *joints}):
        end = next((stop for stop in stops if stop > start), len(bare))
        clause = [word for word in spoken if start <= word.start < end]
        is_denied = any(_denies(word) for word in clause)
        keeps = [
            word
            for word in clause
            if _KEEPS.match(bare, word.start) or (is_denied and _CHANGES.match(bare, word.start))
        ]
        content = tuple(word for word in clause if word not in keeps)
        if keeps and not any(word.senses & _ORDERS for word in content):
            others = tuple(word for word in content if not word.is_small)
            yield _Assurance(start, end, bare[start:end], others)


def cue_before(bare: str, spoken: Sequence[Word], position: int) -> Word | None:
    """Return the word before a position that is not an article and does not mean “folder”."""
    for word in reversed([word for word in spoken if word.end <= position]):
        if _STOP.search(bare, word.end, position):
            return None
        is_filler = word.text in _ARTICLES or is_article(word.text)
        if not is_filler and "folder" not in word.senses:
            return word
    return None


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


@cache
def _change_words() -> Mapping[str, Key]:
    """Return the days of a note that a word before “since” or “before” means."""
    return {
        **dict.fromkeys(words("change edit update modify note"), "changed"),
        **dict.fromkeys(words("create write"), "created"),
    }


def _introduces(before: Sequence[Word], after: Word) -> bool:
    """Return True for the words around “starting” in “notes starting with”."""
    return bool(before) and "note" in before[-1].senses and bool(after.senses & {"with", "in"})


def _denies(word: Word) -> bool:
    return word.negates or bool(word.senses & {"nothing", stem("nothing")})


def _are_empty_properties(one: Word, other: Word) -> bool:
    """Return True for “empty properties”, in either order."""
    return any(
        "empty" in first.senses and "property" in second.senses
        for first, second in ((one, other), (other, one))
    )


def _is_copula(word: str) -> bool:
    """Return True for a word between a property and its value: “status is done”."""
    return word in _COPULAS or is_article(word)


def _kinds_beside(word: Word) -> tuple[NameKind, ...]:
    return next((kinds for noun, kinds in NOUNS.items() if noun in word.senses), ())


def names_in(sentence: str, names: VaultNames, common: Collection[str] = ()) -> Iterator[NameMatch]:
    """Yield the longest names from the left without overlaps. `common` is as in `Sentence`."""
    starts, ends = _edges(sentence[:MAX_READ])
    before: NameMatch | None = None
    for number, start in enumerate(starts):
        if before and start < before.end:
            continue
        is_tag = sentence[start - 1 : start] == "#"
        for end in reversed([end for end in ends if end > start][:_MAX_NAME_WORDS]):
            text = sentence[start:end]
            known = names.find(text, "tag") if is_tag else names.find(text)
            if known and (
                _is_name(text, common, first=number == 0)
                or _is_owned(known, before, sentence[before.end if before else 0 : start])
            ):
                before = _longer(sentence, start, end, ends, names, common) or NameMatch(
                    start, end, text, known
                )
                yield before
                break
        else:
            word = None if is_tag else _PLAIN_WORD.match(sentence, start)
            known = _inflected(word[0], names, common, first=number == 0) if word else ()
            match = _longer(sentence, start, start, ends, names, common)
            if match is None and word and known:
                match = NameMatch(start, word.end(), word[0], known)
            if match is not None:
                before = match
                yield before


def _longer(
    sentence: str,
    start: int,
    end: int,
    ends: Sequence[int],
    names: VaultNames,
    common: Collection[str],
) -> NameMatch | None:
    """Return the words from `start` beyond `end` that are in the name of only one note."""
    for last in reversed([other for other in ends if other > end][:_MAX_PART_WORDS]):
        text = sentence[start:last]
        spoken = tokens(text)
        if len(spoken) > 1 and not (spoken[0].is_small or spoken[-1].is_small or END.search(text)):
            is_menu = all(word.text in common or len(word.senses) > 1 for word in spoken)
            if " " in text and not is_menu and (known := names.partly(text)):
                return NameMatch(start, last, str(known[0].value), known)
    return None


def _inflected(
    word: str, names: VaultNames, common: Collection[str], *, first: bool
) -> tuple[Name, ...]:
    """Return the names of which a word is another form, unless it is a word of the menu.

    A word of the vocabulary, if it is not the verb at the beginning, can only be a value.
    """
    if len(word) < _MIN_INFLECTED or word.casefold() in common:
        return ()
    known = names.inflected(word)
    if not meanings(word):
        return known
    kinds = ("value", "property") if meanings(word) <= MEASURED else ("value",)
    return tuple(name for name in known if name.kind in kinds and not first)


def _new(sentence: str, names: VaultNames) -> Iterator[NameMatch]:
    """Yield new tags with `#`, and new folders or tags below existing ones."""
    for tag in _TAG.finditer(sentence):
        yield NameMatch(tag.start(), tag.end(), tag[0], (Name("tag", tag[1]),))
    starts, _ = _edges(sentence[:MAX_READ])
    for token in _TOKEN.finditer(sentence):
        begins = [start for start in starts if start <= token.start()][-_MAX_PART_WORDS:]
        for start, sign in product(begins, reversed(list(_JOINT.finditer(token[0])))):
            border = token.start() + sign.start()
            known = [
                name
                for name in names.find(sentence[start:border], "tag", "folder")
                if name.kind == "tag" or sign[0] == "/"
            ]
            if known:
                rest, text = sentence[border : token.end()], sentence[start : token.end()]
                new_names = tuple(replace(name, value=f"{name.value}{rest}") for name in known)
                yield NameMatch(start, token.end(), text, new_names, new=True)
                break


def _numbered(sentence: str, names: VaultNames) -> Iterator[NameMatch]:
    """Yield letters with a number that only one note's name begins with: “EXP-02”."""
    for token in _NUMBERED.finditer(sentence):
        known = names.partly(token[0])
        if known and str(known[0].value).rpartition("/")[2].casefold().startswith(
            token[0].casefold()
        ):
            yield NameMatch(token.start(), token.end(), str(known[0].value), known)


def _edges(sentence: str) -> tuple[list[int], list[int]]:
    """Return the positions where names may begin and where they may end.

    These are the edges of words, of closing punctuation, and of each character of scripts without
    spaces.
    """
    spans = list(_NAME_WORD.finditer(sentence))
    joined = [match.start() for match in JOINED.finditer(sentence)]
    starts = (
        {match.start() for match in spans}
        | {match.start() + 1 for match in spans if match[0].startswith("#")}
        | {elided.end() for elided in ELIDED.finditer(sentence)}
        | set(joined)
    )
    ends = {match.end() for match in spans} | {position + 1 for position in joined}
    ends |= {
        end for run in _CLOSING.finditer(sentence) for end in range(run.start() + 1, run.end() + 1)
    }
    ends |= {match.start() for match in _POSSESSIVE.finditer(sentence)}
    within = {match.start() for match in _GOES_ON.finditer(sentence)}
    for url in URL.finditer(sentence):
        starts -= set(range(url.start(), url.end()))
    return sorted(start for start in starts if start - 1 not in within), sorted(ends - within)


def _is_owned(names: Sequence[Name], before: NameMatch | None, gap: str) -> bool:
    """Return True for a value directly after its property, where numbers are names too."""
    if before is None or gap.strip(" :=がは"):
        return False
    owners = {name.value for name in before.names if name.kind == "property"}
    return any(name.kind == "value" and name.property in owners for name in names)


def _is_name(text: str, common: Collection[str], *, first: bool) -> bool:
    """Return False for numbers, single letters, and common words in lower case."""
    bare = text.strip()
    if (len(bare) < 2 and not JOINED.match(bare)) or bare.replace(".", "").isdigit():
        return False
    return bare.casefold() not in common or (not first and bare != bare.lower())
