"""What a sentence holds, whatever its language: words, and what is none: quoted texts, names of the vault, days; and where they stand.

Days: ISO dates and numbers always, English words where they are certain. Spans of days are no value; forms have a field for each end.
"""

from __future__ import annotations

import json
import unicodedata
from calendar import monthrange
from collections.abc import Collection, Iterator, Sequence
from datetime import date, timedelta
from functools import cache, cached_property, lru_cache
from importlib import resources
from typing import Final

from obsidian_agent.dataclass import dataclass, replace
from obsidian_agent.expression import expression, unicode_expression
from obsidian_agent.offline.names import Name, Surroundings, VaultNames

_SCRIPTS: Final = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}\p{Thai}"
"""Scripts that write words, or words and their particles, without blanks: each character is looked at alone."""

JOINED: Final = unicode_expression(f"[{_SCRIPTS}]")
_STRETCH: Final = unicode_expression(f"[{_SCRIPTS}]+")
_LONGEST_JOINED: Final = 5
_LONGEST_ENTRY: Final = 40
"""Characters of an entry of the vocabulary."""
WORD: Final = unicode_expression(
    rf"(?V1)[[\p{{L}}\p{{N}}\p{{M}}]--[{_SCRIPTS}]]+(?:['’]\p{{L}}+)?|[{_SCRIPTS}]"
)

_FUNCTION: Final = (
    "a an the of in on at to for from by with and or into onto as it its is are be that which this these those them they there i me my you your "
    "please can could would so do does"
)
FUNCTION_WORDS: Final = frozenset(_FUNCTION.split())
"""Words that carry no wish of their own, so that nothing needs to cover them. English only, and short on purpose: a word that is missing
here makes a plan a question, one too many lets a wrong plan pass."""

_NEGATIONS: Final = (
    "not no except excepting excluding exclude without but besides unless nor isn't aren't don't doesn't hasn't haven't cannot never outside "
    "nicht ohne ausser sans sauf excepté sin excepto salvo senza tranne eccetto bez kromě не без кроме"
)
NEGATIONS: Final = frozenset(_NEGATIONS.split())
"""Words that turn round the name right behind them. Here a language that is missing, or a word too few, makes of what is to be left alone the
very thing that is meant; a word too many only leaves something out and says so. So the short ones of other languages are among them."""

_BETWEEN: Final = "tag folder note file property have has name call in dans en im in der den dem le la el los v во в"
BETWEEN: Final = frozenset(_BETWEEN.split())
"""Stems of words that may stand between such a word and the name: not tagged #done, outside the folder Projects."""


_LOOKED_AT: Final = 2_000
"""Characters of a sentence, quoted texts not counted: what is longer is a pasted text."""
_LONGEST_MESSAGE: Final = 10_000
"""Characters of a sentence with its quoted texts."""
_LONGEST: Final = 12  # words of a name, at most
_LONGEST_DAY: Final = 4  # words of a day, at most

# A text in quotes. An apostrophe within a word ends none.
_QUOTED: Final = expression(
    r"'((?:[^']|(?<=[^\W\d_])'(?=[^\W\d_]))*)'(?![^\W\d_])|\"([^\"]*)\"|“([^”]*)”|‘([^’]*)’(?![^\W\d_])|«([^»]*)»|「([^」]*)」|『([^』]*)』|„([^“”]*)[“”]"
)
QUOTED_CHARACTER: Final = (
    "\ue000"  # stands for each character of a quoted text: no word, and no name
)
_NAME_WORD: Final = unicode_expression(
    rf"(?V1)#?[[\p{{L}}\p{{N}}\p{{M}}_]--[{_SCRIPTS}]]+(?:['’]\p{{L}}+)?"
)
# A sign that joins what is before and behind it to one name: `travel/dk` is no `travel`.
_JOINT: Final = unicode_expression("[/-]")
_GOES_ON: Final = unicode_expression(r"(?<=[\p{L}\p{N}])[/-](?=[\p{L}\p{N}])")
# Names may end with signs: `(draft)`, `C++`, `What?`.
_CLOSING: Final = unicode_expression(r"(?<=[\p{L}\p{N}\p{M}_])[)\]!?+%*.]+")
_TAG: Final = unicode_expression(r"(?<!\S)#([\p{L}\p{N}_/-]*[\p{L}_][\p{L}\p{N}_/-]*)")
_TOKEN: Final = unicode_expression(rf"(?<![\w#/-])\w+(?:[/-]\w+)+(?![/-]?\w)(?<![{_SCRIPTS}])")
_PLACE: Final = unicode_expression(
    rf"[^\s{QUOTED_CHARACTER}]*[/\\][^\s{QUOTED_CHARACTER}]*[^\s{QUOTED_CHARACTER}.,;:!?]"
)
_STOP: Final = unicode_expression(f"[,;.!?()\n{QUOTED_CHARACTER}]")
_IS: Final = frozenset({"is", "are", "of", "as", "be"})
_AND: Final = frozenset({"and", "or", "nor"})

_NOT_A_ROLE: Final = frozenset({"the", "a", "an", "my", "our", "your", "folder"})

_MONTHS: Final = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
]
_WEEKDAYS: Final = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]
_NAMED: Final = {
    "today": 0,
    "now": 0,
    "yesterday": -1,
    "tomorrow": 1,
    "day before yesterday": -2,
    "day after tomorrow": 2,
}
NEAR: Final = frozenset(
    {"today", "yesterday", "tomorrow"}
)  # words that can be nothing else than a day
_NUMBERS: Final = {"a": 1, "an": 1} | {
    word: count
    for count, word in enumerate(
        ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"], 1
    )
}

_MONTH: Final = "|".join(
    f"{name[:3]}(?:{name[3:]})?" if len(name) > 3 else name for name in _MONTHS
)
_COUNT: Final = r"\d{1,4}|" + "|".join(_NUMBERS)
_UNIT: Final = "day|week|month|year"
_ISO: Final = unicode_expression(r"(\d{4})-(\d{1,2})-(\d{1,2})")
_DAY: Final = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?"
_CALENDAR: Final = unicode_expression(
    rf"{_DAY}\.? (?:of )?(?P<month>{_MONTH})\.?,?(?: (?P<year>\d{{4}}))?|(?P<month>{_MONTH})\.? {_DAY}(?:,? (?P<year>\d{{4}}))?"
)
_AWAY: Final = unicode_expression(
    rf"(?P<in>in )?(?P<count>{_COUNT}) (?P<unit>{_UNIT})s?(?(in)| ago)"
)
_WEEKDAY: Final = unicode_expression(rf"(?:(last|next|this|on) )?({'|'.join(_WEEKDAYS)})")


def is_pasted(message: str) -> bool:
    """Return whether a message is too long to be a sentence: only its beginning is read then, and no reading of it is certain."""
    if len(message) > _LONGEST_MESSAGE:
        return True
    return len(message) - sum(each.end - each.start for each in quotes(message)) > _LOOKED_AT


def beginning(message: str) -> str:
    """Return as much of a message as is read."""
    return message[:_LOOKED_AT] if is_pasted(message) else message


def words(text: str) -> list[str]:
    """The words of a text, in lower case, as stems."""
    return [stem(found[0]) for found in WORD.finditer(text)]


def stem(word: str) -> str:
    """A word without the endings that English puts to most: tasks, tagged, linking. Other words come back as they are, in lower case."""
    bare = word.casefold().replace("’", "'").removesuffix("'s")
    if not bare.isascii() or len(bare) < 4:
        return bare
    if bare.endswith("ies") and len(bare) > 4:
        return bare[:-3] + "y"
    for ending in ("ing", "ed"):
        if bare.endswith(ending) and len(bare) - len(ending) >= 3:
            bare = bare[: -len(ending)]
            if bare[-1] == bare[-2]:
                return bare[:-1] if len(bare) > 3 and bare[-1] not in "sl" else bare
            return bare + "e" if len(bare) == 3 else bare
    if bare.endswith("s") and not bare.endswith("ss"):
        bare = bare[:-1]
    return bare.removesuffix("e") if len(bare) > 4 else bare


def meanings(word: str) -> frozenset[str]:
    """The words of the menu, as stems, that a word of the vocabulary stands for: those of its longest entry that the word begins with."""
    plain, known = _plain(word), vocabulary()
    # A short entry is the whole word; where words are written without blanks, it may stand anywhere.
    begins = (plain[:length] for length in range(min(len(plain), _LONGEST_ENTRY), 3, -1))
    return next(
        (known[part] for part in (plain, stem(plain), *begins) if part in known), frozenset()
    )


def joined_words(text: str) -> list[str]:
    """The words of the vocabulary in a text that is written without blanks, the longest from the left."""
    found: list[str] = []
    for stretch in _STRETCH.findall(_plain(text)):
        place = 0
        while place < len(stretch):
            word = next(
                (
                    stretch[place:end]
                    for end in range(place + _LONGEST_JOINED, place, -1)
                    if stretch[place:end] in vocabulary()
                ),
                "",
            )
            found += [word] if word else []
            place += len(word) or 1
    return found


def _plain(word: str) -> str:
    """Without case and accents."""
    return "".join(
        char
        for char in unicodedata.normalize("NFKD", word.casefold())
        if not unicodedata.combining(char)
    )


@cache
def vocabulary() -> dict[str, frozenset[str]]:
    """What the words of `vocabulary.json` stand for: it lists, by a word of the menu, how else people call the same thing."""
    listed: dict[str, str] = json.loads(
        resources.files("obsidian_agent.offline")
        .joinpath("vocabulary.json")
        .read_text(encoding="utf-8")
    )
    known: dict[str, set[str]] = {}
    for head, others in listed.items():
        for other in others.split():
            known.setdefault(_plain(other), set()).add(stem(head))
    return {word: frozenset(heads) for word, heads in known.items()}


def word_before(text: str, place: int) -> str:
    """Return the word that says the role of a name at `place`: “to” before “the folder Archive”.

    Return "" at the beginning of a clause.
    """
    for word in reversed(list(WORD.finditer(text, 0, place))):
        if _STOP.search(text, word.end(), place):
            return ""
        if word[0].casefold() not in _NOT_A_ROLE:
            return str(word[0]).casefold()
    return ""


@dataclass(frozen=True, slots=True)
class Stretch:
    """A part of a sentence, and what it says: the inside of a quoted text, or a day as YYYY-MM-DD."""

    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class NameMatch(Stretch):
    """A stretch of a sentence that is a name of the vault, and all that it may name."""

    names: tuple[Name, ...]
    negated: str = ""
    """What turns it round, with the name: “except Thesis”."""

    bound: bool = False
    """A property and a value of it that stands behind it; the name is the value."""

    new: bool = False
    """Nothing yet, but below a name: `travel/dk` where there is a tag `travel`."""


@dataclass(frozen=True)
class Sentence:
    """A sentence over a vault. Words in `common` (lower case) are names only where they are written as the name is, with a capital."""

    text: str
    around: Surroundings
    common: Collection[str] = ()

    @cached_property
    def quotes(self) -> tuple[Stretch, ...]:
        """The texts in quotes, in order."""
        return quotes(self.text)

    @cached_property
    def bare(self) -> str:
        """The sentence with signs that mean nothing in place of quoted texts; places in it are places in the text."""
        text = self.text.replace(QUOTED_CHARACTER, " ")
        pieces: list[str] = []
        place = 0
        for each in self.quotes:
            pieces += (text[place : each.start], QUOTED_CHARACTER * (each.end - each.start))
            place = each.end
        return "".join((*pieces, text[place:]))

    @cached_property
    def names(self) -> tuple[NameMatch, ...]:
        """The names of the vault, quoted or not, none within another: a property with its value as one, and what is negated."""
        names = self.around.names
        found = [
            NameMatch(each.start, each.end, each.text, known)
            for each in self.quotes
            if (known := names.find(each.text))
        ]
        found += names_in(self.bare, names, self.common)
        taken = {place for each in found for place in range(each.start, each.end)}
        found += (
            each for each in _new(self.bare, names) if taken.isdisjoint(range(each.start, each.end))
        )
        return self._in_context(sorted(found, key=lambda each: each.start))

    @cached_property
    def days(self) -> tuple[Stretch, ...]:
        """The days that it says, the longest phrases from the left, also within names."""
        words = list(WORD.finditer(self.bare[:_LOOKED_AT]))
        today = self.around.context.now.date()
        found: list[Stretch] = []
        for number, first in enumerate(words):
            for last in reversed(
                words[number : number + _LONGEST_DAY]
                if not found or first.start() >= found[-1].end
                else []
            ):
                day = parse_day(self.bare[first.start() : last.end()], today)
                if day is not None:
                    found.append(Stretch(first.start(), last.end(), day.isoformat()))
                    break
        return tuple(found)

    @property
    def paths(self) -> Iterator[str]:
        """What may be the path of something: the texts in quotes, and what has a slash in it."""
        yield from (each.text for each in self.quotes)
        yield from _PLACE.findall(self.bare)

    def _in_context(self, found: Sequence[NameMatch]) -> tuple[NameMatch, ...]:
        made: list[NameMatch] = []
        for each in found:
            before = made[-1] if made else None
            start = before.end if before else 0
            gap = self.bare[start : each.start]
            between = [word[0].casefold().replace("’", "'") for word in WORD.finditer(gap)]
            owners = (
                {name.value for name in before.names if name.kind == "property"}
                if before and not before.bound
                else set()
            )
            values = tuple(
                name for name in each.names if name.kind == "value" and name.property in owners
            )
            if (
                before
                and values
                and not _STOP.search(gap)
                and NEGATIONS.union(_IS).issuperset(between)
            ):
                whole = self.text[before.start : each.end]
                turned = before.negated or (whole if NEGATIONS.intersection(between) else "")
                made[-1] = NameMatch(before.start, each.end, whole, values, turned, bound=True)
                continue
            turned = self._turned(start, each)
            if (
                not turned
                and before
                and before.negated
                and _AND.issuperset(between)
                and not _STOP.search(gap.replace(",", ""))
            ):
                turned = each.text
            made.append(replace(each, negated=turned))
        return tuple(made)

    def _turned(self, start: int, found: NameMatch) -> str:
        """From the negating word right before a name to the name's end, where there is one."""
        for word in reversed(list(WORD.finditer(self.bare, start, found.start))):
            said = word[0].casefold().replace("’", "'")
            if _STOP.search(self.bare, word.end(), found.start):
                return ""
            if said in NEGATIONS:
                return self.text[word.start() : found.end]
            if said not in FUNCTION_WORDS and stem(said) not in BETWEEN:
                return ""
        return ""


@lru_cache(maxsize=16)
def quotes(sentence: str) -> tuple[Stretch, ...]:
    """Return the texts in quotes, in order, each from its first sign to its last."""
    return tuple(_quotes(sentence))


def _quotes(sentence: str) -> Iterator[Stretch]:
    for found in _QUOTED.finditer(sentence):
        if found[0][0] not in "'\"‘" or not sentence[max(found.start() - 1, 0)].isalnum():
            text = str(next(group for group in found.groups() if group is not None))
            yield Stretch(
                found.start(), found.end(), text.strip() if found[0].startswith("«") else text
            )


def names_in(sentence: str, names: VaultNames, common: Collection[str] = ()) -> Iterator[NameMatch]:
    """The longest names in a sentence, from the left, none within another. `common` as for `Sentence`."""
    starts, ends = _edges(sentence[:_LOOKED_AT])
    before: NameMatch | None = None
    for number, start in enumerate(starts):
        if before and start < before.end:
            continue
        for end in reversed([end for end in ends if end > start][:_LONGEST]):
            text = sentence[start:end]
            known = names.find(text)
            if known and (
                _is_told(text, common, first=number == 0)
                or _is_owned(known, before, sentence[before.end if before else 0 : start])
            ):
                before = NameMatch(start, end, text, known)
                yield before
                break


def _new(sentence: str, names: VaultNames) -> Iterator[NameMatch]:
    """Tags that no note has yet, which say that they are some, and what begins with a name: a folder or tag to be made below it."""
    for tag in _TAG.finditer(sentence):
        yield NameMatch(tag.start(), tag.end(), tag[0], (Name("tag", tag[1]),))
    for token in _TOKEN.finditer(sentence):
        for sign in reversed(list(_JOINT.finditer(token[0]))):
            known = [
                name
                for name in names.find(token[0][: sign.start()], "tag", "folder")
                if name.kind == "tag" or sign[0] == "/"
            ]
            if known:
                made = tuple(
                    replace(name, value=f"{name.value}{token[0][sign.start() :]}") for name in known
                )
                yield NameMatch(token.start(), token.end(), token[0], made, new=True)
                break


def _edges(sentence: str) -> tuple[list[int], list[int]]:
    """Where names may begin and end: at words, at signs behind them, and at each character of scripts that write without blanks."""
    words = list(_NAME_WORD.finditer(sentence))
    joined = [match.start() for match in JOINED.finditer(sentence)]
    starts = (
        {match.start() for match in words}
        | {match.start() + 1 for match in words if match[0].startswith("#")}
        | set(joined)
    )
    ends = {match.end() for match in words} | {place + 1 for place in joined}
    ends |= {
        end for run in _CLOSING.finditer(sentence) for end in range(run.start() + 1, run.end() + 1)
    }
    within = {match.start() for match in _GOES_ON.finditer(sentence)}
    return sorted(start for start in starts if start - 1 not in within), sorted(ends - within)


def _is_owned(names: Sequence[Name], before: NameMatch | None, gap: str) -> bool:
    """Whether it is a value right behind its property: there a number counts too."""
    if before is None or gap.strip(" :="):
        return False
    owners = {name.value for name in before.names if name.kind == "property"}
    return any(name.kind == "value" and name.property in owners for name in names)


def _is_told(text: str, common: Collection[str], *, first: bool) -> bool:
    """Whether a stretch of a sentence is meant as a name: numbers alone and letters alone are not, nor common words as they come."""
    bare = text.strip()
    if (len(bare) < 2 and not JOINED.match(bare)) or bare.replace(".", "").isdigit():
        return False
    return bare.casefold() not in common or (not first and bare != bare.lower())


def parse_day(text: str, today: date) -> date | None:
    """The day that a whole phrase names, or None when it is none. A weekday alone is the next one; a day without a year lies in this one."""
    phrase = " ".join(text.casefold().replace("’", "'").removesuffix("'s").split()).removeprefix(
        "the "
    )
    if phrase in _NAMED:
        return today + timedelta(days=_NAMED[phrase])
    try:
        if match := _ISO.fullmatch(phrase):
            return date(int(match[1]), int(match[2]), int(match[3]))
        if match := _CALENDAR.fullmatch(phrase):
            month = next(
                number
                for number, name in enumerate(_MONTHS, 1)
                if name.startswith(match["month"][:3])
            )
            return date(int(match["year"] or today.year), month, int(match["day"]))
        if match := _AWAY.fullmatch(phrase):
            count = int(match["count"]) if match["count"].isdigit() else _NUMBERS[match["count"]]
            return shift(today, count if match["in"] else -count, match["unit"])
        if match := _WEEKDAY.fullmatch(phrase):
            ahead = (_WEEKDAYS.index(match[2]) - today.weekday()) % 7
            return today + timedelta(
                days=ahead - 7 if match[1] == "last" else ahead or (7 if match[1] == "next" else 0)
            )
    except (ValueError, OverflowError):
        pass
    return None


def shift(day: date, count: int, unit: str) -> date:
    """`day` moved by calendar units; a day that the month lacks becomes its last."""
    if unit in ("day", "week"):
        return day + timedelta(days=count * (7 if unit == "week" else 1))
    months = day.year * 12 + day.month - 1 + count * (12 if unit == "year" else 1)
    year, month = divmod(months, 12)
    return date(year, month + 1, min(day.day, monthrange(year, month + 1)[1]))
