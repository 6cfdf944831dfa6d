"""The English that the matcher knows: classes of words that mean the same in an instruction, fillers, and what limits a reading."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache


def word_set(text: str) -> frozenset[str]:
    """A set of words written as one text."""
    return frozenset(text.split())


CLASSES: Mapping[str, frozenset[str]] = {
    head: frozenset(members.split()) | {head}
    for head, members in {
        "create": "make add generate produce start build begin write need want like",
        "new": "empty blank fresh separate own extra another",
        "note": "page file document entry",
        "folder": "directory subfolder subdirectory dir",
        "each": "every all any both",
        "bullet": "item point line entry bulletpoint idea topic thing",
        "selected": "highlighted marked selection",
        "called": "named titled entitled call name",
        "rename": "retitle",
        "move": "put transfer shift relocate",
        "delete": "erase trash bin",
        "merge": "combine join unite fuse consolidate",
        "split": "break divide separate cut",
        "heading": "header section chapter headline subheading",
        "replace": "change exchange",
        "append": "add put write insert attach jot enter place",
        "under": "below beneath underneath",
        "property": "field frontmatter key attribute metadata",
        "set": "assign update",
        "tag": "hashtag label",
        "task": "todo to-do checkbox",
        "open": "unfinished incomplete undone unchecked pending outstanding remaining unticked uncompleted",
        "copy": "duplicate clone",
        "link": "wikilink",
        "list": "collect gather",
        "end": "bottom",
        "top": "beginning start",
        "into": "in to inside within under",
        "in": "inside within",
        "of": "in from",
        "with": "by",
        "template": "boilerplate",
        "today": "todays",
        "everywhere": "throughout",
        "run": "execute start use launch play",
        "macro": "action",
    }.items()
}
"""Words by the head under which phrases name them; a head stands for all its members."""

FILLERS = word_set(
    "a an the my our your their please kindly can could would will you i i'd i'll we me us for just now then so that it's let lets like "
    "here need want should to be them there these those some and this which over up out away its it existing obsidian vault both"
)
"""Words that may stand in an instruction without changing what it asks for."""

PREPOSITIONS = word_set("in to of from with by as at on into under for and up out")
"""Words of a phrase that people leave out or exchange; missing one costs little."""

QUESTION_OPENERS = word_set(
    "how what what's whats why which when where who whose whom should shall did do does is are was were am has have had may might"
)
NEGATIONS = word_set("not don't dont never no without except unless neither nor cannot can't stop avoid but instead only if rather")
"""Words that limit or turn an instruction around: an instruction with one that no phrase explains is never sure."""

DETERMINERS = word_set("the my a an this our that these those your any some new existing whole entire")
CALLED = word_set("called named titled")
NOTE_NOUNS = word_set("note page file document notes files pages")
FOLDER_NOUNS = word_set("folder directory subfolder folders directories")


IMPERATIVES = word_set(
    "add append archive assign attach call capitalize change check clean clear close collect combine complete convert copy correct create cross "
    "cut delete draw drop duplicate empty erase extract file fill find fix gather generate get give group index insert join jot keep label link "
    "list log make mark merge move normalise normalize note number open pin place prefix prepend pull put relabel relocate remove rename "
    "reopen reorder replace roll save set shift sort split start strip swap switch tag take throw tick tidy transfer trash turn uncheck "
    "unlink untag untick update use wipe write reset organise organize reorganise reorganize bring send store restore retarget redirect point "
    "retitle tidy sum count show sum undo join"
)
"""Verbs with which instructions begin."""


@cache
def stem(word: str) -> str:
    """A word without case, possessive and plural, for comparing."""
    text = word.casefold().replace("’", "'")
    for ending in ("'s", "s'", "'"):
        if text.endswith(ending) and len(text) > len(ending) + 1:
            text = text[: -len(ending)]
            break
    if len(text) > 4 and text.endswith("ies"):
        return text[:-3] + "y"
    if len(text) > 4 and text.endswith(("ches", "shes", "xes", "sses")):
        return text[:-2]
    if len(text) > 3 and text.endswith("s") and not text.endswith(("ss", "us", "is")):
        return text[:-1]
    return text


@cache
def members(head: str) -> frozenset[str]:
    """The stems that a word of a phrase stands for: those of its class when it is a head, else its own."""
    return frozenset(stem(word) for word in CLASSES.get(head) or CLASSES.get(stem(head)) or (head,))
