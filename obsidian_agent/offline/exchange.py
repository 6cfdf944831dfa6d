"""The new value that a sentence gives for an old one: of a property, or in one line of a note."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from obsidian_agent.expression import unicode_expression
from obsidian_agent.offline.lines import NamedLine, find_line
from obsidian_agent.offline.names import display_text, key_of
from obsidian_agent.offline.words import JOINED, Stretch, Word, stem

_NUMBER: Final = unicode_expression(
    r"(?<![\p{L}\p{N}.,:-])\d+(?:[.,:]\d+)*(?![\p{L}\p{N}-]|[.,:]\d)"
)
_BESIDE: Final = 3
"""Words of a value beside the word that exchanges it."""
_OTHER_VERBS: Final = frozenset({"add", "creat", "new", "move", "delet", "remov", "find", "list"})
_SETTING: Final = frozenset({"set", "chang", "replac", "fix"})
_NO_TEXT: Final = (_OTHER_VERBS - _SETTING) | {
    *("heading", "section", "tag", "property", "link", "alias", "folder", "renam", "merg", "copy")
}
"""Senses of words in a sentence that does not exchange two texts of a note."""
_TO: Final = frozenset({"to", "into", "with"})


class ValueExchange(Struct, frozen=True):
    """A value of a note's property, or a text of the note, that another one replaces."""

    note: str
    new: str
    old: str
    property: str | None
    parts: tuple[Stretch, ...]


def quoted_exchange(
    note: str,
    properties: Mapping[str, Any],
    text: str,
    spoken: Sequence[Word],
    quotes: Sequence[Stretch],
) -> ValueExchange | None:
    """Return the exchange of two quoted texts, of which the note has the one that is replaced.

    The verb need not be known. A sentence about headings, tags or the like means something else.
    """
    senses = frozenset[str]().union(*(word.senses for word in spoken))
    if len(quotes) != 2 or not senses.isdisjoint(_NO_TEXT):
        return None
    for old, new in (quotes, tuple(reversed(quotes))):
        owners = [name for name, value in properties.items() if display_text(value) == old.text]
        if owners or old.text in text:
            owner = owners[0] if len(owners) == 1 else None
            return ValueExchange(note, new.text, old.text, owner, tuple(quotes))
    return None


def find_exchange(
    note: str,
    properties: Mapping[str, Any],
    lines: Sequence[str],
    spoken: Sequence[Word],
    bare: str,
) -> ValueExchange | None:
    """Return the exchange in a note, whose lines are given; `spoken` are the words beside its name.

    An old value that is not given is the only one of a named property or line, for a verb of
    setting.
    """
    verb = next((word.senses for word in spoken if not word.is_small), frozenset())
    if not verb.isdisjoint(_OTHER_VERBS - verb & _SETTING):
        return None
    own = {
        name: text
        for name, value in properties.items()
        if (text := display_text(value)) is not None
    }
    numbers = [
        Stretch(match.start(), match.end(), match[0])
        for match in _NUMBER.finditer(bare)
        if any(word.start == match.start() for word in spoken)
    ]
    if numbers:
        is_set = any(word.senses & _SETTING for word in spoken)
        return _of_numbers(note, own, lines, spoken, numbers, is_set=is_set)
    for old, new in _sides(spoken, bare):
        text, replacement = bare[old.start : old.end], bare[new.start : new.end]
        name = next((name for name, value in own.items() if key_of(value) == key_of(text)), None)
        held = [line for line in lines if f" {text} " in f" {' '.join(_words(line))} "]
        is_name = len(old.text.split()) > 1 or text[:1].isupper()
        if name is not None or len(held) == 1 or (held and is_name):
            return ValueExchange(note, replacement, text, name, (old, new))
    return None


def _of_numbers(
    note: str,
    own: Mapping[str, str],
    lines: Sequence[str],
    spoken: Sequence[Word],
    numbers: Sequence[Stretch],
    *,
    is_set: bool,
) -> ValueExchange | None:
    amounts = {number.text for number in numbers}
    stems = {sense for word in spoken for sense in word.senses}
    named = [name for name, value in own.items() if stem(name) in stems and _NUMBER.search(value)]
    named = named or [name for name, value in own.items() if value in amounts]
    for name in named if len(named) == 1 else ():
        new = amounts - {own[name]}
        if len(new) == 1 and (is_set or own[name] in amounts):
            return ValueExchange(note, new.pop(), own[name], name, tuple(numbers))
    line = find_line(
        [word for word in spoken if not word.text.isdecimal()],
        [NamedLine(note, "", line) for line in lines if _NUMBER.search(line)],
    )
    if line is None:
        return None
    held = list(_NUMBER.finditer(line.text))
    olds = [match for match in held if match[0] in amounts] or _in_column(line.text, lines, stems)
    olds = olds or held
    news = amounts - {match[0] for match in held}
    if len(olds) != 1 or len(news) != 1 or not (is_set or olds[0][0] in amounts):
        return None
    # The words that name the line are replaced with it, so that the number is the right one.
    starts = [line.text.casefold().find(word.text) for word in line.words]
    begin = min([olds[0].start(), *(start for start in starts if start >= 0)])
    ends = [start + len(word.text) for start, word in zip(starts, line.words, strict=True)]
    end = max([olds[0].end(), *ends])
    before, after = line.text[begin : olds[0].start()], line.text[olds[0].end() : end]
    new_text = f"{before}{news.pop()}{after}"
    return ValueExchange(note, new_text, line.text[begin:end], None, (*numbers, *line.words))


def _in_column(row: str, lines: Sequence[str], stems: set[str]) -> list[Any]:
    """Return the number of a table's row in the column whose heading is among the words."""
    header = next((line for line in lines if line.startswith("|")), "")
    columns = [
        number
        for number, cell in enumerate(header.split("|"))
        if any(stem(word) in stems for word in _words(cell))
    ]
    cells = row.split("|")
    if not row.startswith("|") or len(columns) != 1 or columns[0] >= len(cells):
        return []
    start = len("|".join(cells[: columns[0]])) + 1
    return list(_NUMBER.finditer(row, start, start + len(cells[columns[0]])))


def _words(text: str) -> list[str]:
    return [word.strip(".,;:!?()") for word in text.split()]


def _sides(spoken: Sequence[Word], bare: str) -> Iterator[tuple[Stretch, Stretch]]:
    """Yield the words on the two sides of one that exchanges: the old value, then the new one.

    “B instead of A”, and in scripts without spaces “A instead of B”; “change A to B”.
    """
    is_set = any(word.senses & _SETTING for word in spoken)
    for number, cue in enumerate(spoken):
        is_instead = "instead" in cue.senses
        if not is_instead and not (is_set and cue.senses & _TO):
            continue
        before, after = (
            _run(list(reversed(spoken[:number])), bare),
            _run(spoken[number + 1 :], bare),
        )
        is_reversed = is_instead and not JOINED.match(cue.text)
        old, new = (after, before[::-1]) if is_reversed else (before, after)
        for size in range(len(old), 0, -1) if new else ():
            part = sorted(old[:size], key=lambda word: word.start)
            yield (
                Stretch(part[0].start, part[-1].end, ""),
                Stretch(new[0].start, new[-1].end, ""),
            )


def _run(spoken: Sequence[Word], bare: str) -> list[Word]:
    """Return the words of a value, of which the first is the nearest to the word beside it."""
    run: list[Word] = []
    for word in spoken:
        ends = sorted((word.start, word.end, *((run[-1].start, run[-1].end) if run else ())))
        is_apart = bool(run) and bool(bare[ends[1] : ends[2]].strip())
        is_small = word.is_small and not (run and bare[word.start].isupper())
        if (is_small and run) or word.senses & _SETTING or is_apart or len(run) == _BESIDE:
            break
        run += [] if is_small else [word]
    return run
