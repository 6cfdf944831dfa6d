"""Slots that hold words and values: texts, headings, tags, properties, numbers and days."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

import regex

from obsidian_agent.providers.offline import dates, doubts
from obsidian_agent.providers.offline.lexicon import CALLED, DETERMINERS, NEGATIONS, NOTE_NOUNS, PREPOSITIONS, word_set
from obsidian_agent.providers.offline.readings import Reading, Surroundings
from obsidian_agent.providers.offline.stretch import Stretch

_SELECTED = regex.compile(
    r"(?:the |my |this )?(?:selection|(?:currently )?(?:selected|highlighted|marked) "
    r"(?:text|lines?|bullets?|items?|paragraphs?|passages?|part|list)|text (?:i|i've|i have) selected)"
)
_TEXT_NOUNS = word_set(
    "the a an this following text line words word sentence phrase string bullet item occurrences occurrence of every each all"
)
_NEW_ONE = word_set("a an the another one new following this")
_LIST_MARK = regex.compile(r"\s*(?:[-*+]|\d{1,9}[.)])\s")
_WORN = word_set(
    "name tag tags text task tasks todos note notes file folder heading headings section sections link links backlinks content word words "
    "line template copy"
)
"""Nouns that are seldom meant as the name of a property."""

_HEADING_NOUNS = word_set("heading header section headline list")
_PROPERTY_NOUNS = word_set("property field key attribute frontmatter metadata")
_LEADING_ON = PREPOSITIONS - {"and", "of"} | {"all", "every", "each"}
"""Words that in a bare value rather begin what it is set on."""

_OTHER_PARTS = word_set("tag tags hashtag hashtags property properties field fields link links alias aliases heading section")
"""Nouns that begin what is no value of a property, but such a part with its name."""

_TASK_AS_LINE = 0.25
"""The doubt about adding a task as a mere line: what knows of tasks goes before."""

_DANGLING = word_set("of from with the a an my this that these those")
"""Words that no heading ends with."""

_RELATIVE = regex.compile(r"(?:next|last|this|in|the day) .+|.+ (?:ago|from (?:now|today))$")
_PRONOUNS = word_set("it them this that these those him her")
_ALL = frozenset(("all", "every", "each", "any", "no", "both"))
_ORDINALS = {"first": 1, "second": 2, "third": 3, "fourth": 4, "fifth": 5, "sixth": 6, "top": 1}
_TAG_NAME = regex.compile(r"[\p{L}\p{N}\p{So}_/\-]*[^\d\s][\p{L}\p{N}\p{So}_/\-]*")
_LEVEL = regex.compile(r"(?:level |h)?(\d{1,6})(?:st|nd|rd|th)?(?:[ -]level)?")


_OF_SELECTION = regex.compile(
    r"(?i)\b(?:(?:my|the|this|current) selection|(?:selected|highlighted|marked) (?:text|words?|lines?|bullets?|items?|paragraphs?|passages?|part|list|ideas?|sentences?|tasks?|names?)"
    r"|(?:i|i['’]ve|i have|have) (?:just )?(?:selected|highlighted|marked))\b"
)


def speaks_of_selection(message: str) -> bool:
    """Whether a message is about selected text."""
    return _OF_SELECTION.search(message) is not None


def text(words: Stretch, *, free: bool) -> Reading | None:
    """A text as it stands there, or the selection."""
    if _SELECTED.fullmatch(words.spoken):
        return Reading(0.0, "${selection}", words.raw, reference="selection")
    inner = words.trimmed(_TEXT_NOUNS)
    if len(inner) == 1 and inner.first.kind == "quoted":
        return Reading(0.0, inner.raw[1:-1], inner.raw[1:-1])
    return Reading(doubts.as_text(words, free=free), words.raw, words.raw)


def spotted(words: Stretch) -> Reading | None:
    """Words by which a line is found: "the library books"."""
    inner = words.trimmed(DETERMINERS)
    if inner.quoted is not None and inner.first.kind == "quoted":
        return Reading(0.0, inner.raw[1:-1], inner.raw[1:-1])
    if len(inner) > 12 or any(token.kind == "quoted" for token in inner):
        return None
    said = inner.lowers
    doubt = 0.5 * sum(word in NEGATIONS for word in said) + (
        0.6 if said[-1] in DETERMINERS | PREPOSITIONS or said[0] in PREPOSITIONS else 0.0
    )
    return Reading(0.05 + 0.03 * len(inner) + doubt + doubts.another_order(inner), inner.raw, inner.raw)


def row(words: Stretch) -> Reading | None:
    """The cells of a row, as they stand there."""
    inner = words.trimmed(("the", "following", "cells", "values", "with", ":"))
    doubt = (0.3 if len(inner) == 1 and inner.quoted is None else 0.0) + sum(word in ("table", "row", "column") for word in inner.lowers)
    return Reading(0.1 + doubt, inner.quoted or inner.raw, inner.raw)


def line(words: Stretch, *, free: bool) -> Reading | None:
    """A text to be added; one that is called a bullet ("the bullet X", "X as a list item") gets the mark of a list item."""
    inner, mark = _bulleted(words), "- "
    if inner is None:
        inner, mark = _tasked(words), "- [ ] "
    if inner is None:
        return text(words, free=free)
    found = text(inner, free=free)
    if found is None or _LIST_MARK.match(found.value):
        return found
    several = found.reference is not None or "\n" in found.value
    doubt = (0.5 if several else 0.0) + (_TASK_AS_LINE if mark.endswith("] ") else 0.0)
    return replace(found, value=f"{mark}{found.value}", text=f"{mark}{found.text}", cost=found.cost + doubt)


def _tasked(words: Stretch) -> Stretch | None:
    """What is behind the words that call it an open task; None when nothing does."""
    said = words.lowers
    at = 0
    while at < len(said) and said[at] in _NEW_ONE | {"open"}:
        at += 1
    if not 0 < at < len(said) - 1 or said[at] not in ("task", "todo", "to-do", "checkbox"):
        return None
    at += 1
    while at < len(said) and (said[at] in ("saying", "reading", "called") or words.tokens[words.start + at].text == ":"):
        at += 1
    return words.part(words.start + at, words.end) if at < len(said) else None


def _bulleted(words: Stretch) -> Stretch | None:
    """What is between the words that call it a bullet; None when it is not called one."""
    said = words.lowers
    end = len(said)
    at = 0
    while at < end and said[at] in _NEW_ONE:
        at += 1
    if end > at and (size := _bullet_noun(said[at:])):
        at += size
        while at < end and (said[at] in ("saying", "reading") or words.tokens[words.start + at].text == ":"):
            at += 1
        return words.part(words.start + at, words.end) if at < end else None
    joint = max((at for at, word in enumerate(said) if word == "as"), default=0)
    behind = said[joint + 1 :]
    while behind and behind[0] in _NEW_ONE:
        behind = behind[1:]
    if joint == 0 or not behind or _bullet_noun(behind) != len(behind):
        return None
    return words.part(words.start, words.start + joint)


def _bullet_noun(said: list[str]) -> int:
    """How many words at the beginning are a noun for one bullet."""
    if said[0] == "bullet":
        return 2 if said[1:2] and said[1] in ("point", "item") else 0 if said[1:2] and said[1] in ("list", "points", "journal") else 1
    return 2 if said[0] == "list" and said[1:2] and said[1] in ("item", "entry") else 0


def affix(words: Stretch) -> Reading | None:
    """A text in quotes with the blanks at its ends, to be put before or behind a name."""
    inner = words.trimmed(_TEXT_NOUNS | {"prefix", "suffix"})
    if inner.quoted is None or inner.first.kind != "quoted":
        return None
    return Reading(0.0, inner.raw[1:-1], inner.raw[1:-1])


def label(words: Stretch) -> Reading | None:
    """What sort of note is made, where that changes nothing: "a meeting note"."""
    if not words.plain or any(token.lower in PREPOSITIONS | DETERMINERS | NOTE_NOUNS | CALLED for token in words):
        return None
    return Reading(0.05 * len(words), words.raw, words.raw)


def heading(words: Stretch) -> Reading | None:
    """The text of a heading."""
    inner = words.trimmed(DETERMINERS | _HEADING_NOUNS | CALLED, _HEADING_NOUNS)
    if (name := inner.quoted) is not None:
        return Reading(0.0, name, name)
    if len(inner) > 8 or any(token.kind != "word" for token in inner) or inner.lowers[-1] in _DANGLING:
        return None
    return Reading(0.05 + 0.03 * len(inner) + doubts.as_heading(inner), inner.raw, inner.raw)


def tag(words: Stretch, *, free: bool) -> Reading | None:
    """A tag, without its #."""
    said = free or bool({"tag", "hashtag"}.intersection(words.lowers))
    inner = words.trimmed(DETERMINERS | CALLED | {"tag", "hashtag"}, {"tag"})
    if len(inner) != 1:
        return None
    token = inner.first
    if token.kind == "tag":
        return Reading(0.0, token.text, token.text)
    name = token.text.removeprefix("#")
    if token.lower in PREPOSITIONS | DETERMINERS | _ALL:
        return None
    if token.kind in ("word", "quoted") and _TAG_NAME.fullmatch(name):
        doubt = (0.05 if said else 0.7) + (0.6 if name.endswith("ly") else 0.0) + doubts.picking(inner)
        return Reading(doubt, name, name)
    return None


def property_name(words: Stretch, *, free: bool) -> Reading | None:
    """The name of a property: one word, two at most, or quoted. What other questions are about is a doubtful name."""
    said = free or bool(_PROPERTY_NOUNS.intersection(words.lowers))
    inner = words.trimmed(DETERMINERS | _PROPERTY_NOUNS | CALLED, _PROPERTY_NOUNS)
    token = inner.first
    if token.kind == "word" and token.lower in ("empty", "blank") and len(words) < 4:
        return None  # how the value is: "an empty aliases list"
    if len(inner) == 1 and token.kind in ("quoted", "word") and not token.text.isdigit():
        if token.lower in PREPOSITIONS | DETERMINERS | NOTE_NOUNS:
            return None
        doubt = 0.0 if said else 0.3 if token.kind == "quoted" else 0.05
        return Reading(doubt + (0.7 if not said and token.kind == "word" and token.lower in _WORN else 0.0), token.text, token.text)
    if len(inner) == 2 and inner.plain and PREPOSITIONS.isdisjoint(inner.lowers):
        return Reading(0.1 if said else 0.5, inner.raw, inner.raw)
    return None


def value(words: Stretch, around: Surroundings) -> Reading | None:
    """The value of a property; a bare one is typed as Obsidian would type it."""
    inner = words.trimmed(("the", "value", "a"))
    token = inner.first
    if len(inner) == 1:
        if token.kind == "quoted":
            return Reading(0.0, token.text, inner.raw)
        if token.kind == "link":
            return Reading(0.0, inner.raw, inner.raw)
        return Reading(0.8 if token.lower in _PRONOUNS else 0.02, _typed(inner.raw, around), inner.raw)
    if any(each.kind == "quoted" for each in inner) or (token.lower in PREPOSITIONS and token.lower != "in"):
        return None
    if token.lower == "in" and _typed(inner.raw, around) == inner.raw:
        return None
    doubt = 0.05 + 0.05 * len(inner) + doubts.picking(inner) + 0.5 * sum(each.lower in NEGATIONS for each in inner)
    typed = _typed(inner.raw, around)
    if typed != inner.raw:
        return Reading(0.02, typed, inner.raw)
    doubt += 0.5 * sum(each.lower in _LEADING_ON for each in list(inner)[1:])
    doubt += 0.5 if token.lower in _OTHER_PARTS else 0.0
    return Reading(doubt, _typed(inner.raw, around), inner.raw)


def number(words: Stretch) -> Reading | None:
    """A count, or the level of a heading: "level 2", "second", "H2"."""
    if match := _LEVEL.fullmatch(words.spoken):
        return Reading(0.0, int(match[1]), words.raw)
    word = words.spoken.removesuffix(" level").removesuffix("-level")
    return Reading(0.0, _ORDINALS[word], words.raw) if word in _ORDINALS else None


def day(words: Stretch, around: Surroundings) -> Reading | None:
    """One day, as YYYY-MM-DD."""
    span = dates.parse(words.raw, around.today)
    return Reading(0.0, span.day.isoformat(), words.raw) if span is not None and span.day is not None else None


def before(words: Stretch, around: Surroundings) -> Reading | None:
    """The day before which something lies, as YYYY-MM-DD: "older than 90 days"."""
    cutoff = dates.parse_cutoff(words.raw, around.today)
    return Reading(0.0, cutoff.isoformat(), words.raw) if cutoff is not None else None


def choice(words: Stretch, options: Mapping[str, Collection[str]]) -> Reading | None:
    """One of several values, by the ways to say it; a number where it looks like one."""
    said = words.raw.casefold().strip()
    value = next((value for value, ways in options.items() if said in ways), None)
    return None if value is None else Reading(0.0, int(value) if regex.fullmatch(r"-?\d+", value) else value, words.raw)


def _typed(raw: str, around: Surroundings) -> Any:
    """A checkbox, a number, a day, else text. Digits with leading zeros are text."""
    folded = raw.casefold()
    if folded in ("true", "false"):
        return folded == "true"
    if regex.fullmatch(r"-?\d{1,15}", raw) and not regex.match(r"-?0\d", raw):
        return int(raw)
    if regex.fullmatch(r"-?\d{1,15}\.\d{1,10}", raw):
        return float(raw)
    if folded in ("today", "yesterday", "tomorrow", "today's date"):
        span = dates.parse(folded.removesuffix("'s date"), around.today)
        return span.day.isoformat() if span is not None and span.day is not None else raw
    if _RELATIVE.match(folded):
        span = dates.parse(folded, around.today)
        return span.day.isoformat() if span is not None and span.day is not None else raw
    return raw
