"""Slots of questions and lists: spans of days, orders, groups, states of tasks."""

from __future__ import annotations

from typing import Any

import regex

from obsidian_agent.providers.offline import dates
from obsidian_agent.providers.offline.dates import Span
from obsidian_agent.providers.offline.lexicon import DETERMINERS
from obsidian_agent.providers.offline.names import NameIndex
from obsidian_agent.providers.offline.readings import Reading, Surroundings
from obsidian_agent.providers.offline.set_modifiers import days
from obsidian_agent.providers.offline.stretch import Stretch

_ORDERS = tuple(
    (regex.compile(pattern), value)
    for pattern, value in (
        (r"(?:(?:the )?alphabet(?:ical(?:ly)?)?(?: order)?|(?:by )?(?:name|title)s?(?: alphabetically)?|a to z|a-z)", "name"),
        (r"(?:reverse alphabetical(?:ly)?(?: order)?|z to a|(?:by )?(?:name|title) descending)", "-name"),
        (r"(?:(?:the )?newest(?: ones)? first|latest first|most recent(?: ones)? first|(?:by )?date,? newest first)", "-day"),
        (r"(?:(?:by )?(?:date|day)|chronological(?:ly)?(?: order)?|(?:the )?oldest(?: ones)? first|(?:by )?date,? oldest first)", "day"),
        (r"(?:by )?(?:last )?(?:modified|modification(?: date| time)?|modified date|changed|edited|last change|change date)", "-modified"),
        (r"(?:by )?(?:created|creation(?: date| time)?|created date)", "created"),
        (r"(?:by )?size|largest first|biggest first", "-size"),
    )
)
_BY = regex.compile(r"by (?:the |their |its )?(?:property )?(.+?)( descending|,? highest first|,? newest first| in descending order)?")
_SORTED = regex.compile(r"(?:(?:sorted|ordered|sort|order)(?: them| it)? )?(?:in )?(?:an )?(.+)")
_IN_ORDER_OF = regex.compile(r"^(?:in (?:the )?)?order of ")
_GROUPS = {"tag": "tags", "tags": "tags", "folder": "folder", "folders": "folder", "type of file": "extension"}
_OPEN = regex.compile(
    r"(?:still )?(?:open|unfinished|incomplete|undone|unchecked|pending|outstanding|remaining|unticked|uncompleted|not (?:yet )?(?:done|finished)"
    r"|left(?: to do)?|to do|not done yet)(?: still)?"
)
_DONE = regex.compile(r"(?:already )?(?:done|completed?|finished|checked(?: off)?|ticked(?: off)?|closed)")
_DUE = regex.compile(r"(?:that (?:are|is) |which (?:are|is) )?(?:due|with a due date)(?: (?:on|in|by|for|until))? (.+)")
_OVERDUE = regex.compile(r"(?:that (?:are|is) |which (?:are|is) )?(?:overdue|past due|late)")


def span(words: Stretch, around: Surroundings) -> Reading | None:
    """Some days, as the condition that a note was made or changed in them, or is about one of them."""
    found = dates.parse(words.raw, around.today)
    if found is None:
        return None
    times = (("modifiedAfter", "modifiedBefore"), ("createdAfter", "createdBefore"), ("datedAfter", "datedBefore"))
    return Reading(0.0, {"any": [days(found, after, before) for after, before in times]}, words.raw)


def due(words: Stretch, around: Surroundings) -> Reading | None:
    """When tasks are due, as limits of `vault.listTasks`; those that are done are not due any more."""
    if _OVERDUE.fullmatch(words.spoken):
        return Reading(0.0, {"dueBefore": around.today.isoformat(), "status": "open"}, words.raw)
    match = _DUE.fullmatch(words.spoken)
    found = dates.parse(match[1], around.today) if match else None
    return Reading(0.0, {**_limits(found), "status": "open"}, words.raw) if found is not None else None


def order(words: Stretch, index: NameIndex) -> Reading | None:
    """An order of `vault.find`: "newest first", "by rating"."""
    match = _SORTED.fullmatch(_IN_ORDER_OF.sub("by ", words.spoken))
    if match is None:
        return None
    for pattern, value in _ORDERS:
        if pattern.fullmatch(match[1]):
            return Reading(0.0, value, words.raw)
    by = _BY.fullmatch(match[1])
    name = index.property(by[1]) if by else None
    return Reading(0.05, f"{'-' if by and by[2] else ''}frontmatter.{name}", words.raw) if name is not None else None


def group(words: Stretch, index: NameIndex) -> Reading | None:
    """What items are grouped by: their tags, their folder or a property, as a field of `vault.find`."""
    nouns = ("property", "field", "value", "respective")
    inner = words.trimmed((*DETERMINERS, *nouns, "their", "its", "of"), nouns)
    if (field := _GROUPS.get(inner.spoken)) is not None:
        return Reading(0.0, field, inner.raw)
    name = index.property(inner.quoted or inner.raw)
    return Reading(0.0, f"frontmatter.{name}", inner.raw) if name is not None else None


def status(words: Stretch) -> Reading | None:
    """The state of tasks: open or done."""
    if _OPEN.fullmatch(words.spoken):
        return Reading(0.0, "open", words.raw)
    return Reading(0.0, "done", words.raw) if _DONE.fullmatch(words.spoken) else None


def _limits(found: Span) -> dict[str, Any]:
    return days(found, "dueAfter", "dueBefore")
