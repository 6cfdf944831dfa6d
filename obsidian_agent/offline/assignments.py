"""Properties with the values that a sentence gives them: “status paid, paid_on 24 november”.

A form shows them as “status: paid; paid_on: 2026-11-24”.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

from obsidian_agent.expression import unicode_expression
from obsidian_agent.offline.words import END, Stretch, Word

_SIGN: Final = unicode_expression(r"\s*[:=]\s*")
_JOINT: Final = unicode_expression(
    r"(?:\s*[,;，；、]\s*(?:(?:and|und|et|y|e|и|en|i)\s+)?|\s+(?:and|und|et|y|e|и|en|i)\s+|[和と]\s*)$"
)
"""The words between a value and the next property."""
_PAIR: Final = unicode_expression(r"\s*([^:;]+?)\s*:\s*(.*?)\s*")
_INITIAL: Final = unicode_expression(r"(?<!\p{L})\p{Lu}$")
"""The letter before a full stop that ends no sentence: “Ursula K. Le Guin”."""
_MAX_COPULAS: Final = 2
"""Function words between a property and its value: “set to”."""


class Assignment(Stretch, frozen=True):
    """A property of the vault and the value behind it, which is the text."""

    property: str


def pairs_of(text: str) -> list[tuple[str, str]] | None:
    """Return the names and values of a text like “status: paid; rating: 5”; None of any other."""
    pairs = [_PAIR.fullmatch(part) for part in text.split(";") if part.strip()]
    return [(pair[1], pair[2]) for pair in pairs if pair] if pairs and all(pairs) else None


def assignments(
    text: str,
    bare: str,
    spoken: Sequence[Word],
    properties: Sequence[tuple[Stretch, str]],
    stops: Sequence[int],
) -> Iterator[list[Assignment]]:
    """Yield the groups of properties with values that are joined by commas or “and”.

    `properties` are the parts of the sentence that are names of properties, in order, and `stops`
    the positions of prepositions before names of notes, at which a value ends.
    """
    group: list[Assignment] = []
    for (part, name), (after, _) in pairwise([*properties, (Stretch(len(bare), 0, ""), "")]):
        start = _behind_sign(bare, spoken, part.end)
        limit = min([after.start, *(stop for stop in stops if stop > start)])
        gap = bare[start:limit]
        joint = _JOINT.search(gap) if after.end and limit == after.start else None
        borders = END.finditer(gap, 0, joint.start() if joint else len(gap))
        border = next((one for one in borders if not _INITIAL.search(gap[: one.start()])), None)
        end = border or joint
        value = gap[: end.start()] if end else gap
        is_last = limit < after.start or not after.end
        if value.strip() and (end is not None or is_last):
            stretch = text[start : start + len(value)].strip()
            group.append(Assignment(part.start, start + len(value), stretch, name))
        if group and (joint is None or border is not None):
            yield group
            group = []
    if group:
        yield group


def _behind_sign(bare: str, spoken: Sequence[Word], position: int) -> int:
    """Return where the value of a property begins, behind a sign or words such as “to”."""
    if sign := _SIGN.match(bare, position):
        return int(sign.end())
    for word in [word for word in spoken if word.start >= position][:_MAX_COPULAS]:
        if not word.is_small or bare[position : word.start].strip():
            break
        position = word.end
    return position
