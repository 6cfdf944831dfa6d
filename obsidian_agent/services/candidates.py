"""A candidate in words: the sentence of what it does, and names that are new or unknown."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from obsidian_agent.agent.events import Phrase, UnknownName
from obsidian_agent.offline.names import VaultNames, key_of
from obsidian_agent.offline.note_set import ACTIVE, NoteSet, note_name
from obsidian_agent.offline.recipe import SLOT, Input, Recipe
from obsidian_agent.offline.recipe_plan import text_parts
from obsidian_agent.offline.values import phrase
from obsidian_agent.vault.paths.path import ROOT

MAX_NEAREST: Final = 3
"""Similar names of an unknown one."""
_SIMILARITY: Final = 72
"""The similarity, in percent, from which a name may be meant."""
_MIN_LETTERS: Final = 4
"""Letters of a word that may be a misspelled name."""
_MAX_VALUE: Final = 60
"""Characters of a value in a sentence."""

_NAMED: Final[Mapping[str, str]] = {
    "note": "note",
    "entry": "note",
    "notes": "note",
    "template": "note",
    "folder": "folder",
    "tag": "tag",
    "tags": "tag",
    "property": "property",
    "properties": "property",
}
"""The kinds of inputs whose values are names, each with the kind of name."""


def sentence_of(
    recipe: Recipe,
    values: Mapping[str, Any],
    missing: Collection[str],
    count: Callable[[NoteSet], int | None],
) -> tuple[Phrase, ...]:
    """Return the sentence of a recipe with values, with a gap for each missing one."""
    known = recipe.defaults | dict(values)
    words = {
        name: _words(recipe.inputs[name], value, known, count) for name, value in known.items()
    }
    words |= dict.fromkeys(missing, "…")
    goal = text_parts(recipe.plan["goal"], words)
    parts = [("" if name in missing else text, name) for text, name in goal]
    if recipe.answer is not None and recipe.plan["goal"] != recipe.title:
        parts.insert(0, (f"{recipe.title}: ", ""))
    named = {name for _, name in parts}
    for name, spec in recipe.inputs.items():
        is_own = name in values and values[name] != spec.default and words[name]
        if name not in named and (is_own or (spec.needed and name not in known)):
            label = spec.description[:1].lower() + spec.description[1:]
            parts += [(f", {label}: ", ""), (phrase(words.get(name) or ""), name)]
    return tuple(Phrase(SLOT.sub("…", text), name) for text, name in parts)


def title_of(sentence: Iterable[Phrase]) -> str:
    """Return a sentence as one text, with “…” for its gaps."""
    return "".join(part.text or "…" for part in sentence)


def _words(
    spec: Input, value: Any, known: Mapping[str, Any], count: Callable[[NoteSet], int | None]
) -> Any:
    """Return the wording of a value: notes with their number, and names without extension."""
    match value:
        case NoteSet():
            number = count(value)
            return value.text() if number is None else value.counted(number)
        case _ if spec.options or spec.kind == "day":
            return spec.worded(value)
        case str() if value == ACTIVE or "${" in value:
            return value
        case str() if spec.kind in ("note", "template", "entry"):
            return note_name(value) if value.endswith(".md") else value
        case str() if spec.kind == "newName":
            folder = str(known.get(spec.of or "", "")).rpartition("/")[0]
            is_beside = value.rpartition("/")[0] == folder
            return note_name(value) if is_beside else value.removesuffix(".md")
        case str() if spec.kind == "newNote":
            return value.removesuffix(".md")
        case str():
            text = ", ".join(filter(None, value.splitlines()))
            return text if len(text) <= _MAX_VALUE else f"{text[: _MAX_VALUE - 1]}…"
        case _:
            return value


def new_names(
    recipe: Recipe, values: Mapping[str, Any], names: VaultNames
) -> Iterator[tuple[str, str, str]]:
    """Yield the names among values that the vault does not have: input, kind, name."""
    for name, value in values.items():
        kind = _NAMED.get(recipe.inputs[name].kind)
        if kind is None or kind == "note":
            continue
        known = {key_of(existing) for existing in _existing(kind, names)}
        for text in value if isinstance(value, list) else [value]:
            if isinstance(text, str) and text and key_of(text) not in known:
                yield name, kind, text


def unknown_names(
    recipe: Recipe,
    values: Mapping[str, Any],
    unused: Sequence[str],
    names: VaultNames,
) -> Iterator[UnknownName]:
    """Yield the texts that inputs read as names, where the vault has only similar ones.

    A text is a new name, or a part of the message that an input without a value may mean.
    """
    seen: set[str] = set()
    for name, kind, text in new_names(recipe, values, names):
        if nearest := _nearest(text, kind, names):
            yield UnknownName(text, kind, name, nearest)
    for name, spec in recipe.inputs.items():
        is_open = name not in values and (spec.needed or spec.default == ACTIVE)
        if not is_open or spec.kind not in _NAMED:
            continue
        kind = _NAMED[spec.kind]
        texts = [word for text in unused for word in (text.strip("\"'“”"), *text.split())]
        for text in (text for text in texts if text not in seen and not names.find(text)):
            if nearest := _nearest(text, kind, names):
                seen.add(text)
                yield UnknownName(text, kind, name, nearest)
                break


def _existing(kind: str, names: VaultNames) -> Iterable[str]:
    match kind:
        case "note":
            return [path.stem for path in names.index.notes(ROOT)]
        case "folder":
            return names.folders
        case "tag":
            return names.tags
        case _:
            return names.properties


def _nearest(text: str, kind: str, names: VaultNames) -> tuple[str, ...]:
    """Return the existing names that are most similar to a text, best first."""
    from rapidfuzz import fuzz, process

    if len(text) < _MIN_LETTERS:
        return ()
    matches = process.extract(
        text,
        list(dict.fromkeys(_existing(kind, names))),
        scorer=fuzz.ratio,
        processor=key_of,
        score_cutoff=_SIMILARITY,
        limit=MAX_NEAREST,
    )
    return tuple(str(match[0]) for match in matches)
