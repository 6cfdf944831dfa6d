"""Certain sentences: exact examples of a recipe, with quoted text or names of the vault in slots.

There are no partial matches and no synonyms; other sentences are handled by `search`. Case, white
space and final punctuation are ignored. Only recipes with `phrases`, which change nothing, are also
matched by a few words in any order and language.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import islice, product
from typing import Any, Final

from msgspec import Struct

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
from obsidian_agent.offline.values import headings, read
from obsidian_agent.offline.words import (
    QUESTION_MARKS,
    QUOTED_CHARACTER,
    folded,
    is_pasted,
    quotes,
    stem,
    tokens,
    words,
)

MAX_FOLDERS: Final = 12
"""Combinations of folders with the same name that are tried; a question offers a few."""

_MIN_NAME: Final = 4
"""Letters of a filler that may also be a name."""
_FILLERS: Final = "find list show which note fix all vault in to with from of"
"""Words that add nothing to a phrase, in any language."""

_Slot = tuple[str, str | None]
_BLANK: Final = expression(r"\s+")


class ExampleMatch(Struct, frozen=True):
    """A recipe and its values, from a sentence that matches one of its examples."""

    recipe: Recipe
    values: Mapping[str, Any]


def match_examples(
    sentence: str, recipes: Iterable[Recipe], around: Surroundings
) -> list[ExampleMatch]:
    """Return the matches of a sentence without repetitions. A single match is certain.

    A sentence with a question mark only matches recipes that answer questions.
    """
    if is_pasted(sentence):
        return []
    is_question = sentence.rstrip().endswith(QUESTION_MARKS)
    quoted = quotes(sentence)
    plain = sentence.replace(QUOTED_CHARACTER, " ")
    for quote in reversed(quoted):
        plain = f"{plain[: quote.start]}{QUOTED_CHARACTER}{plain[quote.end :]}"
    plain = _BLANK.sub(" ", plain.strip()).rstrip(".!?。！？ ")
    lowered = plain.casefold()
    if len(lowered) != len(plain):
        plain = lowered
    matches: list[ExampleMatch] = []
    for recipe in recipes:
        by_phrase = [] if quoted else list(_match_phrases(recipe, sentence))
        if by_phrase:
            matches += by_phrase
            continue
        for example in recipe.examples if recipe.answer is not None or not is_question else ():
            parts, slots = _parts(example)
            first, *rest = parts
            if not lowered.startswith(first) or not all(part in lowered for part in rest):
                continue
            if not rest and lowered != first:
                continue
            for spans in _spans(lowered, len(first), rest) if rest else [()]:
                texts: list[tuple[str, bool]] = []
                for start, end in spans:
                    text, number = plain[start:end].strip(), plain.count(QUOTED_CHARACTER, 0, start)
                    is_quote = text == QUOTED_CHARACTER
                    texts.append((quoted[number].text, False) if is_quote else (text, True))
                if any(QUOTED_CHARACTER in text and known for text, known in texts):
                    continue
                for alternative in _alternatives(recipe, slots, texts, around):
                    values = _values(recipe, slots, alternative, parts, around)
                    if (
                        values is not None
                        and (reading := ExampleMatch(recipe, values)) not in matches
                    ):
                        matches.append(reading)
    return matches


def _match_phrases(recipe: Recipe, sentence: str) -> Iterator[ExampleMatch]:
    if not recipe.phrases:
        return
    name = next(iter(recipe.inputs))
    words = _content_words(sentence)
    for value, phrases in recipe.phrases.items():
        if any(words == _content_words(phrase) for phrase in phrases):
            yield ExampleMatch(recipe, {name: value})


@lru_cache(maxsize=2048)
def _content_words(text: str) -> frozenset[str]:
    """Return the stems of the words that are no fillers; the fillers if there are no others.

    A filler that occurs twice is a name the second time, as in "the orphan notes in Notes".
    """
    # Lazy: few sentences are compared with a phrase.
    from obsidian_agent.vault.index.stop_words import STOP_WORDS

    spoken, fillers = tokens(text), frozenset(words(_FILLERS))
    stems = [stem(folded(token.text)) for token in spoken]
    content = (
        own
        for own, token in zip(stems, spoken, strict=True)
        if token.negates
        or not (token.text in STOP_WORDS or token.senses & fillers)
        or (len(own) >= _MIN_NAME and stems.count(own) > 1)
    )
    return frozenset(content) or frozenset(stems)


def _alternatives(
    recipe: Recipe,
    slots: Sequence[_Slot],
    texts: Sequence[tuple[str, bool]],
    around: Surroundings,
) -> Iterator[Sequence[tuple[str, bool]]]:
    """Yield the texts, with each possible path in place of an ambiguous folder name."""
    choices = [
        [(path, known) for path in _folders_called(text, around)]
        if (SLOTS[field][2] if field else recipe.inputs[name].kind) == "folder"
        else [(text, known)]
        for (name, field), (text, known) in zip(slots, texts, strict=True)
    ]
    yield from islice(product(*choices), MAX_FOLDERS)


def _folders_called(text: str, around: Surroundings) -> Sequence[str]:
    """Return the paths of folders with a name, or the text itself if it is not ambiguous."""
    paths = [str(name.value) for name in around.names.find(text.strip("/"), "folder")]
    whole = [path for path in paths if key_of(path) == key_of(text.strip("/"))]
    return paths if len(paths) > 1 and len(whole) != 1 else [text]


@lru_cache(maxsize=1024)
def _parts(example: str) -> tuple[tuple[str, ...], tuple[tuple[str, str | None], ...]]:
    """Return the folded text around the slots of an example, and the slots.

    There is one more part than slots.
    """
    slots = tuple((slot[1], slot[2]) for slot in SLOT.finditer(example))
    pieces = SLOT.split(_BLANK.sub(" ", example.strip().rstrip(".!?")))[::3]
    return tuple(piece.casefold() for piece in pieces), slots


def _spans(text: str, start: int, parts: Sequence[str]) -> Iterator[tuple[tuple[int, int], ...]]:
    """Yield the spans before each of the parts, for every way to find the parts in order.

    Spans begin at `start`, are not empty, and the last part is at the end of the text.
    """
    part, *rest = parts
    if not rest and text.endswith(part) and len(text) - len(part) > start:
        yield ((start, len(text) - len(part)),)
    at = text.find(part, start + 1) if rest else -1
    while at != -1:
        for more in _spans(text, at + len(part), rest):
            yield ((start, at), *more)
        at = text.find(part, at + 1)


def _values(
    recipe: Recipe,
    slots: Sequence[tuple[str, str | None]],
    texts: Sequence[tuple[str, bool]],
    parts: Sequence[str],
    around: Surroundings,
) -> dict[str, Any] | None:
    """Return the values of the slots, or None if one cannot be read.

    `texts` are the texts of the slots, each with True if it must be a name of the vault; `parts`
    are the parts of the example before them. Slots that others depend on are read first.
    """
    values: dict[str, Any] = {}
    slot_texts = zip(slots, texts, parts[:-1], strict=True)
    try:
        for (name, field), (text, known), before in sorted(
            slot_texts, key=lambda item: bool(recipe.inputs[item[0][0]].of)
        ):
            spec = recipe.inputs[name]
            if spec.kind == "entry":
                spec = _entry(spec, text, before, around)
            if field is None:
                values[name] = read(spec, text, around, values, known=known)
                if spec.kind == "heading" and _is_one_of_many(
                    values[name], values.get(spec.of or ""), around
                ):
                    raise InvalidValue(f"There is more than one heading “{text}”.")
                continue
            described = values.get(name, NoteSet())
            of = described.terms[-1].property if described.terms else None
            slot = Input(
                name=field, kind=SLOTS[field][2], description=spec.description, of="property"
            )
            value = read(slot, text, around, {"property": of}, known=known or slot.kind == "folder")
            values[name] = with_field(described, field, value)
    except InvalidValue:
        return None
    return {
        name: without_templates(value, around) if isinstance(value, NoteSet) else value
        for name, value in values.items()
    }


def _entry(spec: Input, text: str, before: str, around: Surroundings) -> Input:
    """Return the input with the kind named before it, as in "the note" or "the folder".

    Raise `InvalidValue` if no kind is named, and a note and a folder have this name.
    """
    for kind in ("note", "folder"):
        if before.endswith(f" {kind} "):
            return spec.model_copy(update={"kind": kind})
    if around.names.find(text, "folder") and around.names.find(text, "note", "alias"):
        raise InvalidValue(f"“{text}” is a folder and a note.")
    return spec


def _is_one_of_many(heading: str, note: Any, around: Surroundings) -> bool:
    return (
        isinstance(note, str)
        and sum(key_of(other) == key_of(heading) for other in headings(note, around)) > 1
    )
