"""The parts of a sentence in any language: words, quoted texts, names of the vault, days.

Days are ISO dates, numbers, and English words if they are certain. Ranges of days are not read;
forms have a field for each end.
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

from msgspec import Struct
from msgspec.structs import replace

from obsidian_agent.expression import expression, unicode_expression
from obsidian_agent.offline.names import Name, Surroundings, VaultNames

_SCRIPTS: Final = r"\p{Han}\p{Hiragana}\p{Katakana}ー\p{Hangul}\p{Thai}"
"""Scripts without spaces between words, or between words and particles.

Each character is a word of its own.
"""

JOINED: Final = unicode_expression(f"[{_SCRIPTS}]")
_MAX_JOINED: Final = 5
"""Characters of an entry of the vocabulary in such a script."""
_MAX_ENTRY: Final = 40
"""Characters of any entry of the vocabulary."""
WORD: Final = unicode_expression(
    rf"(?V1)[[\p{{L}}\p{{N}}\p{{M}}]--[{_SCRIPTS}]]+(?:['’]\p{{L}}+)?|[{_SCRIPTS}]"
)

_FUNCTION: Final = (
    "a an the of in on at to for from by with and or into onto as it its is are be that which this "
    "these those them they there i me my you your please can could would so do does"
)
FUNCTION_WORDS: Final = frozenset(_FUNCTION.split())
"""Words that a plan need not use, in English only.

The list is short on purpose: without a word a plan becomes a question, with a word too many a wrong
plan may pass.
"""

_NEGATIONS: Final = (
    "not no except excepting excluding exclude without but "
    "besides"
    " unless nor isn't aren't don't doesn't hasn't haven't cannot never outside nicht ohne ausser "
    "sans sauf excepté sin excepto salvo senza tranne eccetto bez kromě не без кроме "
    "kein keine keinen keinem keiner keines aucun aucune ningún ninguna ninguno nessun nessuna "
    "nessuno pas ni non nunca jamás jamais mai nie никогда nur solo only jen только "
    "žádný žádná žádné žádnou нет никакой никаких 没有 無い ない 없는"
)
NEGATIONS: Final = frozenset(_NEGATIONS.split())
"""Words that exclude the name after them, in several languages.

A missing word would select the very notes that the user excludes, while a word too many only
excludes notes, which the plan states. So the list is generous.
"""

_BETWEEN: Final = (
    "tag folder note file property have has name call in dans en im in der den dem le la el los "
    "v во в keep leav"
)
BETWEEN: Final = frozenset(_BETWEEN.split())
"""Stems of words allowed between such a word and the name: "not tagged #done"."""

_MAX_READ: Final = 2_000
"""Characters of a sentence without its quoted texts; a longer one is pasted text."""
_MAX_MESSAGE: Final = 10_000
"""Characters of a sentence with its quoted texts."""
_MAX_NAME_WORDS: Final = 12
_MAX_BEFORE: Final = 100
"""Characters between a name and the word that tells its role."""
_MAX_DAY_WORDS: Final = 4
_MIN_INFLECTED: Final = 5
"""Characters of a word that can be another form of a name."""

# A text in quotes. An apostrophe within a word does not end it.
_QUOTED: Final = expression(
    r"'((?:[^']|(?<=[^\W\d_])'(?=[^\W\d_]))*)'(?![^\W\d_])|\"([^\"]*)\"|“([^”]*)”"
    r"|‘([^’]*)’(?![^\W\d_])|«([^»]*)»|「([^」]*)」|『([^』]*)』|„([^“”]*)[“”]"
)
QUOTED_CHARACTER: Final = "\ue000"
"""Replaces each character of a quoted text; it is in no word and no name."""
_ELIDED: Final = unicode_expression(r"(\p{L}{1,4})['’](?=\p{L}{4})")
"""A French or Italian article or preposition without its vowel: "l'étiquette"."""
_NAME_WORD: Final = unicode_expression(
    rf"(?V1)#?[[\p{{L}}\p{{N}}\p{{M}}_]--[{_SCRIPTS}]]+(?:['’]\p{{L}}+)?"
)
_PLAIN_WORD: Final = unicode_expression(rf"(?V1)[\p{{L}}--[{_SCRIPTS}]]++(?![\p{{N}}_/-])")
# A sign that joins two words to one name: `travel/dk` is not `travel`.
_JOINT: Final = unicode_expression("[/-]")
_GOES_ON: Final = unicode_expression(r"(?<=[\p{L}\p{N}])[/-](?=[\p{L}\p{N}])")
# Names may end with punctuation: `(draft)`, `C++`, `What?`.
_CLOSING: Final = unicode_expression(r"(?<=[\p{L}\p{N}\p{M}_])[)\]!?+%*.]+")
_TAG: Final = unicode_expression(r"(?<!\S)#([\p{L}\p{N}_/-]*[\p{L}_][\p{L}\p{N}_/-]*)")
_TOKEN: Final = unicode_expression(rf"(?<![\w#/-])\w+(?:[/-]\w+)+(?![/-]?\w)(?<![{_SCRIPTS}])")
_PATH_TEXT: Final = unicode_expression(
    rf"[^\s{QUOTED_CHARACTER}]*[/\\][^\s{QUOTED_CHARACTER}]*[^\s{QUOTED_CHARACTER}.,;:!?]"
)
_STOP: Final = unicode_expression(f"[,;.!?()\n{QUOTED_CHARACTER}]")
_COPULAS: Final = frozenset({"is", "are", "of", "as", "be"})
_AND: Final = frozenset({"and", "or", "nor"})

_NOT_A_ROLE: Final = frozenset({"the", "a", "an", "my", "our", "your", "folder"})
_OTHER_ARTICLES: Final = frozenset({"of"})
"""The meaning in the vocabulary of the articles and pronouns of other languages."""

_YEAR: Final = (
    "january february march april may june july august september october november december"
)
MONTHS: Final = _YEAR.split()
WEEKDAYS: Final = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]
_NAMED: Final = {
    "today": 0,
    "now": 0,
    "yesterday": -1,
    "tomorrow": 1,
    "day before yesterday": -2,
    "day after tomorrow": 2,
}
NEAR: Final = frozenset({"today", "yesterday", "tomorrow"})
"""Words that always mean a day."""
_NUMBERS: Final = {"a": 1, "an": 1} | {
    word: count
    for count, word in enumerate(
        ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"], 1
    )
}

_MONTH: Final = "|".join(f"{name[:3]}(?:{name[3:]})?" if len(name) > 3 else name for name in MONTHS)
_COUNT: Final = r"\d{1,4}|" + "|".join(_NUMBERS)
_UNIT: Final = "day|week|month|year"
_ISO: Final = unicode_expression(r"(\d{4})-(\d{1,2})-(\d{1,2})")
_DAY: Final = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?"
_CALENDAR: Final = unicode_expression(
    rf"{_DAY}\.? (?:of )?(?P<month>{_MONTH})\.?,?(?: (?P<year>\d{{4}}))?"
    rf"|(?P<month>{_MONTH})\.? {_DAY}(?:,? (?P<year>\d{{4}}))?"
)
_AWAY: Final = unicode_expression(
    rf"(?P<in>in )?(?P<count>{_COUNT}) (?P<unit>{_UNIT})s?(?(in)| ago)"
)
_WEEKDAY: Final = unicode_expression(rf"(?:(last|next|this|on) )?({'|'.join(WEEKDAYS)})")


def is_pasted(message: str) -> bool:
    """Return True if a message is too long for a sentence.

    Then only its beginning is read, and no result is certain.
    """
    if len(message) > _MAX_MESSAGE:
        return True
    return len(message) - sum(quote.end - quote.start for quote in quotes(message)) > _MAX_READ


def beginning(message: str) -> str:
    """Return the part of a message that is read."""
    return message[:_MAX_READ] if is_pasted(message) else message


def words(text: str) -> list[str]:
    """Return the stems of the words of a text, in lower case."""
    return [stem(match[0]) for match in WORD.finditer(text)]


def stem(word: str) -> str:
    """Return a word in lower case without common English endings: tasks, tagged, linking."""
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
    """Return the stems of the menu's words that a word of the vocabulary means.

    These are the words of the longest entry that the word begins with.
    """
    plain, known = folded(word), vocabulary()
    for part in (plain, stem(plain)):
        if part in known:
            return known[part]
    # Entries of up to three characters, and function words, must be equal to the word.
    for length in range(min(len(plain), _MAX_ENTRY), 3, -1):
        heads = known.get(plain[:length], frozenset()) - FUNCTION_WORDS
        if heads:
            return heads
    return frozenset()


@lru_cache(maxsize=512)
def _senses(word: str) -> frozenset[str]:
    return meanings(word) | {stem(word)}


@lru_cache(maxsize=512)
def is_function_word(word: str) -> bool:
    """Return True for articles, prepositions and the like in any language of the vocabulary."""
    from obsidian_agent.vault.index.stop_words import STOP_WORDS

    heads, folded_case = meanings(word), word.casefold()
    if heads:
        return heads <= FUNCTION_WORDS or folded_case in FUNCTION_WORDS
    return folded_case in FUNCTION_WORDS or folded_case in STOP_WORDS - NEGATIONS


def _is_copula(word: str) -> bool:
    """Return True for a word between a property and its value: “status is done”."""
    return word in _COPULAS or _is_article(word)


def _is_article(word: str) -> bool:
    """Return True for an article, a pronoun or the like of another language."""
    return word not in FUNCTION_WORDS and meanings(word) == _OTHER_ARTICLES


def tokens(text: str) -> list[SentenceWord]:
    """Return the words of a text in lower case.

    In scripts without spaces these are words of the vocabulary, longest first from the left, and
    the single characters between them.
    """
    result: list[SentenceWord] = []
    for match in WORD.finditer(text):
        start, end = match.span()
        if not JOINED.match(match[0]):
            if elided := _ELIDED.match(match[0]):
                result.append(SentenceWord(start, start + elided.end(), elided[1].casefold()))
                start += elided.end()
        elif result and start < result[-1].end:
            continue
        else:
            longest = folded(text[start : start + _MAX_JOINED])
            lengths = range(len(longest), 1, -1) if len(longest) <= _MAX_JOINED else ()
            end = start + next((size for size in lengths if longest[:size] in vocabulary()), 1)
        result.append(SentenceWord(start, end, text[start:end].casefold()))
    return result


def folded(word: str) -> str:
    """Return a word in lower case without accents."""
    plain = (
        char
        for char in unicodedata.normalize("NFKD", word.casefold())
        if not unicodedata.combining(char)
    )
    return unicodedata.normalize("NFC", "".join(plain))


@cache
def vocabulary() -> dict[str, frozenset[str]]:
    """Return the menu's words by the synonyms in `vocabulary.json`."""
    listed: dict[str, str] = json.loads(
        resources.files("obsidian_agent.offline")
        .joinpath("vocabulary.json")
        .read_text(encoding="utf-8")
    )
    known: dict[str, set[str]] = {}
    for head, others in listed.items():
        for other in others.split():
            known.setdefault(folded(other), set()).add(stem(head))
    return {word: frozenset(heads) for word, heads in known.items()}


def word_before(text: str, position: int) -> str:
    """Return the word before a name at `position`, like "to" in "to the folder Archive".

    Return "" at the beginning of a clause.
    """
    nearest = WORD.finditer(text, max(0, position - _MAX_BEFORE), position)
    for word in reversed(list(nearest)):
        if _STOP.search(text, word.end(), position):
            return ""
        text = str(word[0]).casefold()
        if text not in _NOT_A_ROLE and not _is_article(text) and "folder" not in meanings(text):
            return text
    return ""


class Stretch(Struct, frozen=True):
    """A part of a sentence, with its text: that of a quote, or a day as YYYY-MM-DD."""

    start: int
    end: int
    text: str


class SentenceWord(Stretch, frozen=True):
    """A word of a sentence in lower case."""

    @property
    def senses(self) -> frozenset[str]:
        """Its stem, and those of the menu's words that it may mean."""
        return _senses(self.text)

    @property
    def is_small(self) -> bool:
        """True for a function word."""
        return is_function_word(self.text)


class NameMatch(Stretch, frozen=True):
    """A part of a sentence that is a name of the vault, with all its meanings."""

    names: tuple[Name, ...]
    negated: str = ""
    """The excluding word and the name: “except Thesis”."""

    bound: bool = False
    """True for a property followed by one of its values; the name is the value."""

    new: bool = False
    """True for a new name below an existing one: `travel/dk` if there is a tag `travel`."""


class Sentence(Struct, frozen=True, dict=True):
    """A sentence about a vault.

    Words in `common` (in lower case) are names only if they are capitalized like the name.
    """

    text: str
    around: Surroundings
    common: Collection[str] = ()

    @cached_property
    def quotes(self) -> tuple[Stretch, ...]:
        """The texts in quotes, in order."""
        return quotes(self.text)

    @cached_property
    def bare(self) -> str:
        """The sentence with a placeholder for each character of quoted texts; positions stay."""
        text = self.text.replace(QUOTED_CHARACTER, " ")
        pieces: list[str] = []
        position = 0
        for quote in self.quotes:
            pieces += (text[position : quote.start], QUOTED_CHARACTER * (quote.end - quote.start))
            position = quote.end
        return "".join((*pieces, text[position:]))

    @cached_property
    def names(self) -> tuple[NameMatch, ...]:
        """The names of the vault in order, quoted or not, without overlaps.

        A property with its value is one name; excluded names are marked.
        """
        names = self.around.names
        matches = [
            NameMatch(quote.start, quote.end, quote.text, known)
            for quote in self.quotes
            if (known := names.find(quote.text))
        ]
        matches += names_in(self.bare, names, self.common)
        covered = {position for match in matches for position in range(match.start, match.end)}
        matches += (
            match
            for match in _new(self.bare, names)
            if covered.isdisjoint(range(match.start, match.end))
        )
        return self._in_context(sorted(matches, key=lambda match: match.start))

    @cached_property
    def days(self) -> tuple[Stretch, ...]:
        """The days in the sentence, longest phrases first from the left, also within names."""
        words = list(WORD.finditer(self.bare[:_MAX_READ]))
        today = self.around.context.now.date()
        days: list[Stretch] = []
        for number, first in enumerate(words):
            for last in reversed(
                words[number : number + _MAX_DAY_WORDS]
                if not days or first.start() >= days[-1].end
                else []
            ):
                day = parse_day(self.bare[first.start() : last.end()], today)
                if day is not None:
                    days.append(Stretch(first.start(), last.end(), day.isoformat()))
                    break
        return tuple(days)

    @property
    def paths(self) -> Iterator[str]:
        """Possible paths: quoted texts, and words with a slash."""
        yield from (quote.text for quote in self.quotes)
        yield from _PATH_TEXT.findall(self.bare)

    def _in_context(self, matches: Sequence[NameMatch]) -> tuple[NameMatch, ...]:
        result: list[NameMatch] = []
        for match in matches:
            before = result[-1] if result else None
            start = before.end if before else 0
            gap = self.bare[start : match.start]
            between = [word[0].casefold().replace("’", "'") for word in WORD.finditer(gap)]
            owners = (
                {name.value for name in before.names if name.kind == "property"}
                if before and not before.bound
                else set()
            )
            values = tuple(
                name for name in match.names if name.kind == "value" and name.property in owners
            )
            if (
                before
                and values
                and not _STOP.search(gap)
                and all(word in NEGATIONS or _is_copula(word) for word in between)
            ):
                whole = self.text[before.start : match.end]
                negated = before.negated or (whole if NEGATIONS.intersection(between) else "")
                result[-1] = NameMatch(before.start, match.end, whole, values, negated, bound=True)
                continue
            negated = self._negation(start, match)
            if (
                not negated
                and before
                and before.negated
                and _AND.issuperset(between)
                and not _STOP.search(gap.replace(",", ""))
            ):
                negated = match.text
            result.append(replace(match, negated=negated))
        return tuple(result)

    def _negation(self, start: int, match: NameMatch) -> str:
        """Return the text from an excluding word to the end of a name; "" without one."""
        for word in reversed(list(WORD.finditer(self.bare, start, match.start))):
            token = word[0].casefold().replace("’", "'")
            if _STOP.search(self.bare, word.end(), match.start):
                return ""
            if token in NEGATIONS:
                return self.text[word.start() : match.end]
            if token not in FUNCTION_WORDS and stem(token) not in BETWEEN:
                return ""
        return ""


@lru_cache(maxsize=16)
def quotes(sentence: str) -> tuple[Stretch, ...]:
    """Return the texts in quotes in order; their spans include the quotation marks."""
    return tuple(_quotes(sentence))


def _quotes(sentence: str) -> Iterator[Stretch]:
    for match in _QUOTED.finditer(sentence):
        if match[0][0] not in "'\"‘" or not sentence[max(match.start() - 1, 0)].isalnum():
            text = str(next(group for group in match.groups() if group is not None))
            yield Stretch(
                match.start(), match.end(), text.strip() if match[0].startswith("«") else text
            )


def names_in(sentence: str, names: VaultNames, common: Collection[str] = ()) -> Iterator[NameMatch]:
    """Yield the longest names from the left without overlaps. `common` is as in `Sentence`."""
    starts, ends = _edges(sentence[:_MAX_READ])
    before: NameMatch | None = None
    for number, start in enumerate(starts):
        if before and start < before.end:
            continue
        for end in reversed([end for end in ends if end > start][:_MAX_NAME_WORDS]):
            text = sentence[start:end]
            is_tag = sentence[start - 1 : start] == "#"
            known = names.find(text, "tag") if is_tag else names.find(text)
            if known and (
                _is_name(text, common, first=number == 0)
                or _is_owned(known, before, sentence[before.end if before else 0 : start])
            ):
                before = NameMatch(start, end, text, known)
                yield before
                break
        else:
            word = (
                None if sentence[start - 1 : start] == "#" else _PLAIN_WORD.match(sentence, start)
            )
            known = _inflected(word[0], names, common) if word else ()
            if word and known:
                before = NameMatch(start, word.end(), word[0], known)
                yield before


def _inflected(word: str, names: VaultNames, common: Collection[str]) -> tuple[Name, ...]:
    """Return the names of which a word is another form, unless it is a word of the menu."""
    if len(word) < _MIN_INFLECTED or word.casefold() in common or meanings(word):
        return ()
    return names.inflected(word)


def _new(sentence: str, names: VaultNames) -> Iterator[NameMatch]:
    """Yield new tags with `#`, and new folders or tags below existing ones."""
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
                new_names = tuple(
                    replace(name, value=f"{name.value}{token[0][sign.start() :]}") for name in known
                )
                yield NameMatch(token.start(), token.end(), token[0], new_names, new=True)
                break


def _edges(sentence: str) -> tuple[list[int], list[int]]:
    """Return the positions where names may begin and where they may end.

    These are the edges of words, of closing punctuation, and of each character of scripts without
    spaces.
    """
    words = list(_NAME_WORD.finditer(sentence))
    joined = [match.start() for match in JOINED.finditer(sentence)]
    starts = (
        {match.start() for match in words}
        | {match.start() + 1 for match in words if match[0].startswith("#")}
        | {elided.end() for elided in _ELIDED.finditer(sentence)}
        | set(joined)
    )
    ends = {match.end() for match in words} | {position + 1 for position in joined}
    ends |= {
        end for run in _CLOSING.finditer(sentence) for end in range(run.start() + 1, run.end() + 1)
    }
    within = {match.start() for match in _GOES_ON.finditer(sentence)}
    return sorted(start for start in starts if start - 1 not in within), sorted(ends - within)


def _is_owned(names: Sequence[Name], before: NameMatch | None, gap: str) -> bool:
    """Return True for a value directly after its property, where numbers are names too."""
    if before is None or gap.strip(" :="):
        return False
    owners = {name.value for name in before.names if name.kind == "property"}
    return any(name.kind == "value" and name.property in owners for name in names)


def _is_name(text: str, common: Collection[str], *, first: bool) -> bool:
    """Return False for numbers, single letters, and common words in lower case."""
    bare = text.strip()
    if (len(bare) < 2 and not JOINED.match(bare)) or bare.replace(".", "").isdigit():
        return False
    return bare.casefold() not in common or (not first and bare != bare.lower())


def parse_day(text: str, today: date) -> date | None:
    """Return the day that a phrase means, or None.

    A weekday means the next one; a date without a year is in this year.
    """
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
                for number, name in enumerate(MONTHS, 1)
                if name.startswith(match["month"][:3])
            )
            return date(int(match["year"] or today.year), month, int(match["day"]))
        if match := _AWAY.fullmatch(phrase):
            count = int(match["count"]) if match["count"].isdigit() else _NUMBERS[match["count"]]
            return shift(today, count if match["in"] else -count, match["unit"])
        if match := _WEEKDAY.fullmatch(phrase):
            ahead = (WEEKDAYS.index(match[2]) - today.weekday()) % 7
            if match[1] == "last":
                ahead -= 7
            elif match[1] == "next" and not ahead:
                ahead = 7
            return today + timedelta(days=ahead)
    except (ValueError, OverflowError):
        pass
    return None


def shift(day: date, count: int, unit: str) -> date:
    """Return a day moved by calendar units, at most to the last day of the month."""
    if unit in ("day", "week"):
        return day + timedelta(days=count * (7 if unit == "week" else 1))
    months = day.year * 12 + day.month - 1 + count * (12 if unit == "year" else 1)
    year, month = divmod(months, 12)
    return date(year, month + 1, min(day.day, monthrange(year, month + 1)[1]))
