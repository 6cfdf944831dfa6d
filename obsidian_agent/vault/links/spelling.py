"""Names of notes compared as their authors meant them."""

from __future__ import annotations

import posixpath
import re
import unicodedata
from typing import Final

from obsidian_agent.expression import unicode_expression
from obsidian_agent.vault.links.resolve import is_relative
from obsidian_agent.vault.paths.path import VaultPath

_SEPARATORS: Final = unicode_expression(r"[\s\p{P}\p{Z}\p{So}\p{Sk}\p{Cf}\ufe0f]+")
_BETWEEN_DIGITS: Final = unicode_expression(r"(?<=\p{N})[\s\p{P}\p{Z}]+(?=\p{N})")
_ASCII_SEPARATORS: Final = "\t\n\v\f\r !\"#%&'()*,-./:;?@[\\]_{}"
_NO_ASCII_SEPARATORS: Final = str.maketrans("", "", _ASCII_SEPARATORS + "^`")
_BETWEEN_ASCII_DIGITS: Final = re.compile(rf"(?<=\d)[{re.escape(_ASCII_SEPARATORS)}]+(?=\d)")
"""The same for ASCII, in a tenth of the time."""

_INVISIBLE: Final = re.compile("[\u00ad\u200b-\u200f\u2060\ufe0f\ufeff]")
_ENCLOSED: Final = re.compile(
    r"(?<!\S)[(\[\"'“”„‘‚«»]+((?=\w)[^()\[\]\"“”„«»]+(?<=\w))[)\]\"'“”’«»]+(?!\S)"
)
_ENDING: Final = re.compile(r"(?<=\w)(?:[.,;:](?=\s|\Z)|\?+\Z)")
_BETWEEN_WORDS: Final = re.compile(
    r"\s+[-–—]\s+|(?<=[^\W\d_])[-‐‑–—_](?=[^\W_])|(?<=[^\W_])[-‐‑–—_](?=[^\W\d_])|\s+"
)
"""Blanks, dashes between them, and hyphens between words, but not between numbers."""


def spelling_key(name: str) -> str:
    """Return a name without case, blanks, punctuation, emoji and Unicode form.

    Between digits a separator counts: `1.2` is not `12`. Empty if nothing is left.
    """
    if name.isascii():
        lower = name.lower()
        if lower.isalpha():
            return lower
        return _BETWEEN_ASCII_DIGITS.sub("\0", lower).translate(_NO_ASCII_SEPARATORS)
    return folded_key(name)


def folded_key(name: str) -> str:
    """Return the `spelling_key` of a name with any characters."""
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())
    return str(_SEPARATORS.sub("", _BETWEEN_DIGITS.sub("\0", folded)))


def is_same_name(name: str, other: str) -> bool:
    """Return whether names with one `spelling_key` have the same words, separated differently.

    All that is not known to separate words has a meaning: "A-" is not "A", nor "E♭" "E".
    A name of one word has no separators.
    """
    words = _words_and_signs(name)
    is_one_word = " " not in words
    return words == _words_and_signs(other) and (not is_one_word or _lower(name) == _lower(other))


def _words_and_signs(name: str) -> str:
    """Return a name with single blanks for what separates words, without case."""
    text = _INVISIBLE.sub("", _lower(name).replace("’", "'")).strip()
    text = _ENDING.sub("", _ENCLOSED.sub(r"\1", text))
    return _BETWEEN_WORDS.sub(" ", text)


def _lower(text: str) -> str:
    return unicodedata.normalize("NFC", text).lower()


def folder_fits(target: str, source: VaultPath, file: VaultPath) -> bool:
    """Return whether a link in `source` that may also name a folder can mean a file.

    Of "Flights/Overview" and a note "Overview", only the folder says whether they are the same.
    """
    if "/" not in target:
        return True
    folder = posixpath.dirname(target)
    if is_relative(target):
        folder = posixpath.normpath(posixpath.join(source.parent.text, folder))
    named = [name for name in folder.split("/") if name not in ("", ".")]
    actual = file.parent.parts
    if not named or len(named) > len(actual):
        return not named and not actual
    return all(map(is_same_name, named, actual[-len(named) :]))
