"""Words in any language: their stems, and the words of the menu that they mean.

The meanings are those of `vocabulary.json`: an entry of it is the beginning of words, or one whole
word if it ends with a full stop. A word also means what its parts mean: “Begriffsnotiz” is a note,
“leg … an” is “anlegen”, and “ponlo” is “pon”. A word that is not another one may be a misspelled
one.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from importlib import resources
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from obsidian_agent.expression import expression, unicode_expression

SCRIPTS: Final = r"\p{Han}\p{Hiragana}\p{Katakana}ー\p{Hangul}\p{Thai}"
"""Scripts without spaces between words, or between words and particles.

Each character is a word of its own.
"""
JOINED: Final = unicode_expression(f"[{SCRIPTS}]")
WORD: Final = unicode_expression(
    rf"(?V1)[[\p{{L}}\p{{N}}\p{{M}}]--[{SCRIPTS}]]+(?:['’]\p{{L}}+)?|[{SCRIPTS}]"
)
QUOTED_CHARACTER: Final = "\ue000"
"""Replaces each character of a quoted text; it is in no word and no name."""
END: Final = unicode_expression(r"[,;:!?.](?=\s|$)|[\n\ue000]|[。，；！？]")
"""The end of a phrase."""
ELIDED: Final = unicode_expression(r"(\p{L}{1,4})['’](?=\p{L}{3})")
"""A French or Italian article or preposition without its vowel: "l'étiquette"."""

QUESTION_MARKS: Final = ("?", "？", "؟")
URL: Final = unicode_expression(r"\b\p{L}[\p{L}\p{N}+.-]*://[^\s\ue000]*[^\s\ue000.,;:!?)\]>}'\"]")

_FUNCTION: Final = (
    "a an the of in on at to for from by with and or into onto as it its is are be that which this "
    "thi these those them they there i me my you your please can could would should so do does"
)
FUNCTION_WORDS: Final = frozenset(_FUNCTION.split())
"""Words that a plan need not use, in English only.

The list is short on purpose: without a word a plan becomes a question, with a word too many a wrong
plan may pass.
"""
NEAR: Final = frozenset({"today", "yesterday", "tomorrow"})
"""Words that always mean a day."""
NOT: Final = "not"
"""The meaning of words that exclude the name after them.

A missing word would select the very notes that the user excludes, while a word too many only
excludes notes, which the plan states. So their list in the vocabulary is generous.
"""
_FRENCH: Final = frozenset({"le", "la", "les", "l", "du", "des", "un", "une", "est", "quelles"})
_ARTICLE: Final = frozenset({"of"})
"""The meaning of articles and pronouns in the vocabulary."""

MAX_READ: Final = 2_000
"""Characters of a sentence without its quoted texts; a longer one is pasted text."""
_MAX_MESSAGE: Final = 10_000
"""Characters of a sentence with its quoted texts."""
_PATH_TEXT: Final = unicode_expression(
    rf"[^\s{QUOTED_CHARACTER}]*[/\\][^\s{QUOTED_CHARACTER}]*[^\s{QUOTED_CHARACTER}.,;:!?]"
)
# A text in quotes. An apostrophe within a word does not end it.
_QUOTED: Final = expression(
    r"'((?:[^']|(?<=[^\W\d_])'(?=[^\W\d_]))*)'(?![^\W\d_])|\"([^\"]*)\"|“([^”]*)”"
    r"|‘([^’]*)’(?![^\W\d_])|«([^»]*)»|「([^」]*)」|『([^』]*)』|„([^“”]*)[“”]"
)
# A quotation mark behind such a letter is an apostrophe; in other scripts words need no space.
_IN_WORD: Final = expression(r"[^\W_\u0e00-\u0e7f\u1100-\u11ff\u3040-\u9fff\uac00-\ud7af]")
_MAX_JOINED: Final = 5
"""Characters of an entry of the vocabulary in a script without spaces."""
_MAX_ENTRY: Final = 40
"""Characters of any entry of the vocabulary."""
_MIN_PREFIX: Final = 4
"""Characters of an entry that may be the beginning of a word."""
_MIN_HEAD: Final = 5
"""Characters of an entry that may be the end of a compound."""
_WHOLE: Final = "."
"""The end of an entry that is a whole word: “rest.” is no beginning of “restaurant”."""
_ACTION: Final = (
    "add chang copy creat delet find insert list make mark merg move new postpon put remov renam "
    "replac set show sort split turn"
)
_ACTIONS: Final = frozenset(_ACTION.split())
"""The stems of verbs that an order begins with."""
_ACCENT: Final = expression("[\u0300-\u036f\u0483-\u0487\u3099\u309a]")
"""An accent, also one of kana, behind its letter."""
_UNDECOMPOSED: Final = str.maketrans("łøđ", "lod")
"""The letters with a stroke, which Unicode does not decompose."""
_PRONOUN: Final = expression(r"(?:[mts]e|l[aeo]s?|n?os|[mtcvs]i|l[ih]|gli|ne|lhes?)\Z")
"""A Spanish, Italian or Portuguese pronoun at the end of a verb: “ponlo”, “mettilo”."""
_MAX_PRONOUNS: Final = 2
_MAX_PARTICLE: Final = 5
"""Characters of a particle at the end of a clause that belongs to its verb."""
_SIMILARITY: Final = 80
"""The similarity, in percent, of a misspelled word to one of the menu or the vocabulary."""


class Stretch(Struct, frozen=True):
    """A part of a sentence, with its text."""

    start: int
    end: int
    text: str


class Word(Stretch, frozen=True):
    """A word of a sentence in lower case.

    Its senses are its stem, and those of the menu's words that it may mean.
    """

    senses: frozenset[str]

    @property
    def is_small(self) -> bool:
        """True for a function word."""
        return is_function_word(self.text) and not self.negates

    @property
    def negates(self) -> bool:
        """True for a word that excludes what follows."""
        return NOT in self.senses


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


def words(text: str) -> list[str]:
    """Return the stems of the words of a text, in lower case."""
    return [stem(match[0]) for match in WORD.finditer(text)]


def folded(word: str) -> str:
    """Return a word in lower case without accents."""
    decomposed = unicodedata.normalize("NFKD", word.casefold().replace("’", "'"))
    return unicodedata.normalize("NFC", _ACCENT.sub("", decomposed)).translate(_UNDECOMPOSED)


@cache
def vocabulary() -> dict[str, frozenset[str]]:
    """Return the menu's words by the synonyms in `vocabulary.json`."""
    return _entries(whole=True)


@cache
def _beginnings() -> dict[str, frozenset[str]]:
    """Return the menu's words by the synonyms that are also beginnings of words."""
    return _entries(whole=False)


def _entries(*, whole: bool) -> dict[str, frozenset[str]]:
    known: dict[str, frozenset[str]] = {}
    for head, others in _listed().items():
        heads = frozenset({head})
        for other in others:
            if whole or not other.endswith(_WHOLE):
                word = other.removesuffix(_WHOLE)
                known[word] = known.get(word, heads) | heads
    return known


@cache
def _listed() -> dict[str, list[str]]:
    """Return the entries of `vocabulary.json` by the stem of the menu's word."""
    file = resources.files("obsidian_agent.offline").joinpath("vocabulary.json")
    listed: dict[str, str] = json.loads(file.read_text(encoding="utf-8"))
    return {stem(head): folded(others).split() for head, others in listed.items()}


@lru_cache(maxsize=2048)
def meanings(word: str) -> frozenset[str]:
    """Return the stems of the menu's words that a word of the vocabulary means.

    These are the words of the longest entry that the word begins with, and of one that it ends
    with. Short entries, and function words, must be equal to the word, or to a verb without the
    pronouns behind it.
    """
    plain, known = folded(word), vocabulary()
    for part in (plain, stem(plain)):
        if part in known:
            return known[part]
    first, size = _heads(plain, _MIN_PREFIX)
    for start in range(max(size, 3), len(plain) - _MIN_HEAD + 1):
        last, length = _heads(plain[start:], _MIN_HEAD)
        if len(plain) - start - length < 3:
            return first | last
    return first or _without_pronouns(plain)


def _without_pronouns(plain: str) -> frozenset[str]:
    """Return the actions that a verb means without the pronouns behind it: “ponles”."""
    for _ in range(_MAX_PRONOUNS):
        plain, count = _PRONOUN.subn("", plain)
        if not count:
            break
        if heads := vocabulary().get(plain, frozenset()) & _ACTIONS:
            return heads
    return frozenset()


def _heads(plain: str, shortest: int) -> tuple[frozenset[str], int]:
    """Return the meaning of the longest entry that a word begins with, and its length."""
    known = _beginnings()
    shortest -= not plain[:1].isascii()  # such entries are stems: “тег”
    for size in range(min(len(plain), _MAX_ENTRY), shortest - 1, -1):
        if heads := known.get(plain[:size], frozenset()) - FUNCTION_WORDS:
            return heads, size
    return frozenset(), 0


@lru_cache(maxsize=2048)
def senses_of(word: str) -> frozenset[str]:
    """Return the senses of a word."""
    return meanings(word) | {stem(word)}


@lru_cache(maxsize=2048)
def is_function_word(word: str) -> bool:
    """Return True for articles, prepositions and the like in any language of the vocabulary."""
    from obsidian_agent.vault.index.stop_words import STOP_WORDS

    heads, plain = meanings(word), word.casefold()
    if others := heads - {NOT}:
        return others <= FUNCTION_WORDS or plain in FUNCTION_WORDS
    if heads:
        return False
    return plain in FUNCTION_WORDS or plain in STOP_WORDS


def is_article(word: str) -> bool:
    """Return True for an article, a pronoun or the like of another language."""
    return word not in FUNCTION_WORDS and meanings(word) == _ARTICLE


def tokens(text: str) -> list[Word]:
    """Return the words of a text in lower case.

    “Dont” excludes nothing in French.
    """
    spoken = _with_particles(text, list(_split(text)))
    if not any(word.text in _FRENCH for word in spoken):
        return spoken
    return [
        replace(word, senses=word.senses - {NOT}) if word.text == "dont" else word
        for word in spoken
    ]


def corrected(word: Word, common: frozenset[str]) -> Word:
    """Return a word, which may be a misspelled one of the menu or the vocabulary.

    `common` are the words of the menu. Function words, and those with a meaning, are correct.
    """
    is_known = len(word.senses) > 1 or word.is_small or word.text in common
    if is_known or not word.text.isalpha() or JOINED.match(word.text):
        return word
    return replace(word, senses=word.senses | _similar(word.text, common))


def _split(text: str) -> Iterator[Word]:
    """Yield the words of a text.

    A URL is one word. In scripts without spaces these are words of the vocabulary, longest first
    from the left, and the single characters between them.
    """
    known, reached = vocabulary(), 0
    for match in WORD.finditer(text):
        start, end = match.span()
        if start < reached:
            continue
        if url := URL.match(text, start):
            reached, word = url.end(), url[0]
            yield Word(start, reached, word, frozenset({word}))
            continue
        if JOINED.match(match[0]):
            longest = folded(text[start : start + _MAX_JOINED])
            lengths = range(len(longest), 1, -1) if len(longest) <= _MAX_JOINED else ()
            end = start + next((size for size in lengths if longest[:size] in known), 1)
        elif elided := ELIDED.match(match[0]):
            article = elided[1].casefold()
            yield Word(start, start + elided.end(), article, senses_of(article))
            start += elided.end()
        reached, word = end, text[start:end].casefold()
        yield Word(start, end, word, senses_of(word))


def _with_particles(text: str, spoken: list[Word]) -> list[Word]:
    """Return the words, of which a particle at the end of a clause belongs to its verb.

    “Leg … an” has the meaning of “anlegen”.
    """
    first = 0
    for number, particle in enumerate(spoken):
        following = spoken[number + 1 : number + 2]
        gap = text[particle.end : following[0].start] if following else ","
        if not END.search(gap) or gap.strip() == ".":  # “Prof. Weber”
            continue
        for other in range(first, number if len(particle.text) <= _MAX_PARTICLE else first):
            verb = spoken[other]
            heads, size = _heads(folded(particle.text + verb.text), len(particle.text) + 3)
            if size and not JOINED.match(verb.text):
                spoken[other] = replace(verb, senses=verb.senses | heads)
                spoken[number] = replace(particle, senses=particle.senses | heads)
                break
        first = number + 1
    return spoken


@lru_cache(maxsize=1024)
def _similar(word: str, common: frozenset[str]) -> frozenset[str]:
    """Return the menu's words of the most similar spelling, in any language of the vocabulary."""
    from rapidfuzz import fuzz, process

    own = stem(word)
    terms = sorted(term for term in map(stem, common) if len(term) >= _MIN_PREFIX)
    # Of short words only two letters may be exchanged: “opne”.
    swapped = [term for term in terms if term[0] == own[0] and sorted(term) == sorted(own)]
    if len(own) < _MIN_PREFIX or swapped:
        return frozenset(swapped[:1])
    if best := process.extractOne(own, terms, scorer=fuzz.ratio, score_cutoff=_SIMILARITY):
        return frozenset({str(best[0])})
    if len(word) <= _MIN_PREFIX:
        return frozenset()  # “bank” is not “blank”
    best = process.extractOne(
        folded(word), _guessable(), scorer=fuzz.ratio, score_cutoff=_SIMILARITY + 5
    )
    return meanings(str(best[0])) - FUNCTION_WORDS if best else frozenset()


@cache
def _guessable() -> Sequence[str]:
    """Return the entries that a misspelled word may be.

    A word that excludes is never guessed: “want” is not “wasn't”.
    """
    return [
        entry
        for entry, senses in _beginnings().items()
        if len(entry) > _MIN_PREFIX and NOT not in senses
    ]


def is_pasted(message: str) -> bool:
    """Return True if a message is too long for a sentence.

    Then only its beginning is read, and no result is certain.
    """
    if len(message) > _MAX_MESSAGE:
        return True
    return len(message) - sum(quote.end - quote.start for quote in quotes(message)) > MAX_READ


def beginning(message: str) -> str:
    """Return the part of a message that is read."""
    return message[:MAX_READ] if is_pasted(message) else message


@lru_cache(maxsize=16)
def quotes(sentence: str) -> tuple[Stretch, ...]:
    """Return the texts in quotes in order; their spans include the quotation marks."""
    return tuple(
        Stretch(match.start(), match.end(), text.strip() if match[0][0] == "«" else text)
        for match in _QUOTED.finditer(sentence)
        if match[0][0] not in "'\"‘" or not _IN_WORD.match(sentence, max(match.start() - 1, 0))
        for text in [str(next(group for group in match.groups() if group is not None))]
    )


def paths_in(message: str) -> Iterator[str]:
    """Yield the possible paths in a message: quoted texts, and words with a slash."""
    text = beginning(message)
    yield from (quote.text for quote in quotes(text))
    yield from _PATH_TEXT.findall(without_quotes(text))


def without_quotes(text: str) -> str:
    """Return a text with a placeholder for each character in quotes; positions stay."""
    bare = text.replace(QUOTED_CHARACTER, " ")
    for quote in quotes(text):
        covered = QUOTED_CHARACTER * (quote.end - quote.start)
        bare = f"{bare[: quote.start]}{covered}{bare[quote.end :]}"
    return bare
