"""Sentences that are certain: word for word an example of a recipe, with quoted text or names of the vault in its slots.

There is no partial reading, and no word for another: what is not an example is looked for by `search`. Case, blanks, and the sign at the end
do not count.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import islice, product
from typing import Any, Final

from obsidian_agent.dataclass import dataclass
from obsidian_agent.expression import expression
from obsidian_agent.offline.names import Surroundings, key_of
from obsidian_agent.offline.note_set import (
    SLOTS,
    InvalidValue,
    NoteSet,
    with_field,
    without_templates,
)
from obsidian_agent.offline.recipe import SLOT, Input, Recipe
from obsidian_agent.offline.sentence import QUOTED_CHARACTER, is_pasted, quotes
from obsidian_agent.offline.values import headings, read

MAX_FOLDERS: Final = 12
"""Combinations of folders of one name that are read: a question offers a few."""

_Slot = tuple[str, str | None]
_BLANK: Final = expression(r"\s+")


@dataclass(frozen=True, slots=True)
class ExampleMatch:
    """A recipe and its values, as the whole of a sentence says them."""

    recipe: Recipe
    values: Mapping[str, Any]


def match_examples(
    sentence: str, recipes: Iterable[Recipe], around: Surroundings
) -> list[ExampleMatch]:
    """All that a sentence is an example of, each once. One is certain; none is no reading at all. A question changes nothing."""
    if is_pasted(sentence):
        return []
    asked = sentence.rstrip().endswith(("?", "？"))
    quoted = quotes(sentence)
    plain = sentence.replace(QUOTED_CHARACTER, " ")
    for each in reversed(quoted):
        plain = f"{plain[: each.start]}{QUOTED_CHARACTER}{plain[each.end :]}"
    plain = _BLANK.sub(" ", plain.strip()).rstrip(".!?。！？ ")
    folded = plain.casefold()
    if len(folded) != len(plain):
        plain = folded
    found: list[ExampleMatch] = []
    for recipe in recipes:
        for example in recipe.examples if recipe.answer is not None or not asked else ():
            parts, slots = _parts(example)
            first, *rest = parts
            if not folded.startswith(first) or not all(part in folded for part in rest):
                continue
            for spans in (
                _spans(folded, len(first), rest) if rest else [()] if folded == first else ()
            ):
                said = [
                    (plain[start:end].strip(), plain.count(QUOTED_CHARACTER, 0, start))
                    for start, end in spans
                ]
                texts = [
                    (quoted[number].text, False) if text == QUOTED_CHARACTER else (text, True)
                    for text, number in said
                ]
                if any(QUOTED_CHARACTER in text and known for text, known in texts):
                    continue
                for alternative in _alternatives(recipe, slots, texts, around):
                    values = _values(recipe, slots, alternative, parts, around)
                    if (
                        values is not None
                        and (reading := ExampleMatch(recipe, values)) not in found
                    ):
                        found.append(reading)
    return found


def _alternatives(
    recipe: Recipe,
    slots: Sequence[_Slot],
    texts: Sequence[tuple[str, bool]],
    around: Surroundings,
) -> Iterator[Sequence[tuple[str, bool]]]:
    """Yield the texts with the path of each folder that a name in the slot of a folder may mean."""
    choices = [
        [(path, known) for path in _folders_called(text, around)]
        if (SLOTS[field][2] if field else recipe.inputs[name].kind) == "folder"
        else [(text, known)]
        for (name, field), (text, known) in zip(slots, texts, strict=True)
    ]
    yield from islice(product(*choices), MAX_FOLDERS)


def _folders_called(text: str, around: Surroundings) -> Sequence[str]:
    """Return the folders of a name, or the text itself where it is a path or no name of several."""
    paths = [str(name.value) for name in around.names.find(text.strip("/"), "folder")]
    whole = [path for path in paths if key_of(path) == key_of(text.strip("/"))]
    return paths if len(paths) > 1 and len(whole) != 1 else [text]


@lru_cache(maxsize=1024)
def _parts(example: str) -> tuple[tuple[str, ...], tuple[tuple[str, str | None], ...]]:
    """The words between the slots of an example, folded, and the slots. There is one part more than slots."""
    slots = tuple((found[1], found[2]) for found in SLOT.finditer(example))
    pieces = SLOT.split(_BLANK.sub(" ", example.strip().rstrip(".!?")))[::3]
    return tuple(piece.casefold() for piece in pieces), slots


def _spans(text: str, place: int, parts: Sequence[str]) -> Iterator[tuple[tuple[int, int], ...]]:
    """What stands before each of the parts, from a place on, in each way to find them in their order up to the end; none is empty."""
    part, *rest = parts
    if not rest and text.endswith(part) and len(text) - len(part) > place:
        yield ((place, len(text) - len(part)),)
    at = text.find(part, place + 1) if rest else -1
    while at != -1:
        for more in _spans(text, at + len(part), rest):
            yield ((place, at), *more)
        at = text.find(part, at + 1)


def _values(
    recipe: Recipe,
    slots: Sequence[tuple[str, str | None]],
    texts: Sequence[tuple[str, bool]],
    parts: Sequence[str],
    around: Surroundings,
) -> dict[str, Any] | None:
    """The values of the slots, those that others depend on first; each text with whether it must be known, and the part of the example that
    it stands behind. None when one cannot be read.
    """
    values: dict[str, Any] = {}
    said = zip(slots, texts, parts[:-1], strict=True)
    try:
        for (name, field), (text, known), before in sorted(
            said, key=lambda each: bool(recipe.inputs[each[0][0]].of)
        ):
            wanted = recipe.inputs[name]
            if wanted.kind == "entry":
                wanted = _entry(wanted, text, before, around)
            if field is None:
                values[name] = read(wanted, text, around, values, known=known)
                if wanted.kind == "heading" and _is_one_of_many(
                    values[name], values.get(wanted.of or ""), around
                ):
                    raise InvalidValue(f"There is more than one heading “{text}”.")
                continue
            described = values.get(name, NoteSet())
            of = described.terms[-1].property if described.terms else None
            slot = Input(
                name=field, kind=SLOTS[field][2], description=wanted.description, of="property"
            )
            value = read(slot, text, around, {"property": of}, known=known or slot.kind == "folder")
            values[name] = with_field(described, field, value)
    except InvalidValue:
        return None
    return {
        name: without_templates(value, around) if isinstance(value, NoteSet) else value
        for name, value in values.items()
    }


def _entry(wanted: Input, text: str, before: str, around: Surroundings) -> Input:
    """The input as the word before it says: the note, the folder. Raises `InvalidValue` where it says neither, and both are called so."""
    for kind in ("note", "folder"):
        if before.endswith(f" {kind} "):
            return wanted.model_copy(update={"kind": kind})
    if around.names.find(text, "folder") and around.names.find(text, "note", "alias"):
        raise InvalidValue(f"“{text}” is a folder and a note.")
    return wanted


def _is_one_of_many(heading: str, note: Any, around: Surroundings) -> bool:
    return (
        isinstance(note, str)
        and sum(key_of(each) == key_of(heading) for each in headings(note, around)) > 1
    )
