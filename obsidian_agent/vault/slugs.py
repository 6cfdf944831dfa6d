"""Slugs: short names made from titles, for files and links."""

from __future__ import annotations

import re
import unicodedata

import regex

from obsidian_agent.errors import ToolError

MOST_BYTES = 240
"""Bytes of UTF-8: what file systems take for a name, with room for an extension and a number."""

# Compiled (and kept by `regex`) when first used: that takes longer than all the rest of this module.
_APOSTROPHES = r"(?<=\p{L})['\u2019\u02bc](?=\p{L})"
_KEPT = r"\p{L}\p{M}\p{N}_\p{ExtPict}\p{RI}\p{EMod}"
_NO_WORD = rf"(?:[^{_KEPT}\u200d]|(?!\ufe0f)[\p{{M}}\p{{L}}&&\p{{DI}}]|(?<![\u0590-\U0010ffff])\u200d)+"
_DEVICE = re.compile(r"(?:con|prn|aux|nul|com[0-9]|lpt[0-9])")
_EMPTY = "untitled"


def slug(title: str, separator: str = "-", max_length: int | None = None) -> str:
    """A title in lower case, its words joined by `separator`: "Plan: Q3/Q4 (draft)" becomes "plan-q3-q4-draft".

    Letters and digits of all scripts, ``_`` and emoji stay, everything else separates words. At most `max_length` characters and
    `MOST_BYTES` bytes, cut between words where there are any; "untitled" when nothing is left. The name of a Windows device gets a ``_``.
    Raises `ToolError` ARGUMENT_INVALID for a separator that is no part of a file's name, or a length below 1.
    """
    if len(separator) > 5 or not all(character in "-_.~+ " for character in separator):
        raise ToolError(f"“{separator}” cannot separate the words of a slug.", hint="Use -, _, ., ~, + or a blank.")
    if max_length is not None and max_length < 1:
        raise ToolError(f"A slug of {max_length} characters is not possible.", hint="maxLength is 1 or more.")
    folded = unicodedata.normalize("NFC", regex.sub(_APOSTROPHES, "", title).lower())
    words = [word for part in regex.split(_NO_WORD, folded, flags=regex.V1) if (word := part.strip("\u200d").lstrip("\ufe0f\u200d"))]
    return _no_device(_joined(words, separator, max_length) or _EMPTY[:max_length], max_length)


def _joined(words: list[str], separator: str, most: int | None) -> str:
    kept = ""
    for word in words:
        longer = f"{kept}{separator}{word}" if kept else word
        if not _fits(longer, most):
            return kept or _cut(word, most)
        kept = longer
    return kept


def _no_device(name: str, most: int | None) -> str:
    head, dot, tail = name.partition(".")
    if not _DEVICE.fullmatch(head):
        return name
    return f"{head if _fits(name + '_', most) else head[:-1]}_{dot}{tail}"


def _cut(word: str, most: int | None) -> str:
    kept = ""
    for cluster in regex.findall(r"\X", word):
        if not _fits(kept + cluster, most):
            break
        kept += cluster
    return kept


def _fits(text: str, most: int | None) -> bool:
    return (most is None or len(text) <= most) and len(text.encode("utf-8", "surrogatepass")) <= MOST_BYTES
