"""From the readings of a phrase to values: slots that depend on others, names to choose from, and what is still missing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice, product
from typing import Any

import regex

from obsidian_agent.providers.offline.lexicon import stem
from obsidian_agent.providers.offline.name_slots import BELOW_IT
from obsidian_agent.providers.offline.names import Closeness, NameIndex, NameSort, names_out_of_bounds
from obsidian_agent.providers.offline.readings import Reading
from obsidian_agent.providers.offline.recipe import SET_KINDS, Recipe, RecipeParameter
from obsidian_agent.providers.offline.set_modifiers import both
from obsidian_agent.providers.offline.type_nouns import kinds, told

MAX_CHOICES = 3
_NO_SUCH_LINE = 1.5
"""The doubt about words being those of a line that is not there: rather they say something else."""
_NUMBER = regex.compile(r"\d[\d.:-]{3,}[ _.:-]+(?=\p{L})")
_ILLEGAL = regex.compile(r'[\\:*?"<>|\x00-\x1f\x7f]+')
_HEADING = regex.compile(r" {0,3}#{1,6}\s")
_SORTS: Mapping[str, tuple[NameSort, ...]] = {
    "note": ("note",),
    "template": ("note",),
    "folder": ("folder",),
    "destination": ("folder",),
    "entry": ("note", "folder", "file"),
    "anyNotes": ("note",),
}


@dataclass(frozen=True, slots=True)
class Resolved:
    """One way to fill a recipe. `references` name context values that stand for parameters; `doubts` say what a person should confirm."""

    values: Mapping[str, Any] = field(default_factory=dict)
    references: Mapping[str, str] = field(default_factory=dict)
    missing: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()
    cost: float = 0.0
    remarks: tuple[str, ...] = ()
    """What tells this way from the others, where the values alone don't show it."""


def resolve(
    recipe: Recipe, readings: Mapping[str, Reading], given: Mapping[str, Any], index: NameIndex, active: str | None = None
) -> list[Resolved]:
    """Every way to fill the recipe's parameters, at most `MAX_CHOICES`. `given` values win over what was read; `active`: the open note."""
    choices: list[list[tuple[str, Reading]]] = []
    for name, parameter in recipe.parameters.items():
        if name in given:
            choices.append([(name, Reading(0.0, given[name], str(given[name])))])
        elif name in readings:
            choices.append([(name, each) for each in settled(parameter, readings[name], index)])
    ways = islice(product(*choices), MAX_CHOICES)
    return [_fill(recipe, dict(way), frozenset(given), index, active) for way in ways]


def settled(parameter: RecipeParameter, reading: Reading, index: NameIndex) -> Sequence[Reading]:
    """The readings that one reading stands for: itself, or one for each entry that it may mean."""
    sorts = _SORTS.get(parameter.kind, ())
    if reading.otherwise and all(index.meant(way) == frozenset() for way in reading.choices or (reading.value,)):
        reading = replace(reading, choices=reading.otherwise, issue="ambiguous", otherwise=())
    if reading.issue == "ambiguous" and isinstance(reading.choices[0], Mapping):
        return _meanings(reading, index)
    if reading.issue == "ambiguous":
        return [replace(reading, value=path, issue="ambiguous", choices=()) for path in reading.choices[:MAX_CHOICES]]
    if reading.issue == "unknown" and sorts and reading.doubt is None:
        nearest = index.nearest(reading.text, sorts, MAX_CHOICES)
        return [replace(reading, value=path, issue="near", cost=reading.cost + 0.3) for path in nearest] or [reading]
    return [reading]


def _meanings(reading: Reading, index: NameIndex) -> Sequence[Reading]:
    """Readings of a description that may mean several things: each that some notes fit, once; a single one is what is meant."""
    fitting: dict[frozenset[str] | int, Any] = {}
    for number, choice in enumerate(reading.choices):
        meant = index.meant(choice)
        if meant is None or meant:
            fitting.setdefault(number if meant is None else meant, choice)
    if all(isinstance(meant, int) for meant in fitting):
        fitting = dict(list(fitting.items())[:1])  # nobody can tell what they mean; the first is the likeliest
    ways = _leaving_out(fitting, index) or list(reading.choices[:1])
    if len(ways) == 1:
        return [replace(reading, value=ways[0], issue="near" if reading.doubt else None, choices=())]
    return [
        replace(reading, value=way, choices=(), doubt=f"“{reading.text}” may be the notes {told(way['where'])}")
        for way in ways[:MAX_CHOICES]
    ]


def _leaving_out(fitting: Mapping[frozenset[str] | int, Any], index: NameIndex) -> list[Any]:
    """The meanings, but of those that differ in what they leave out none that leaves out nothing: "meetings without Ada"."""
    ways = list(fitting.items())
    if len(ways) < 2 or not all("not" in way["where"] and isinstance(meant, frozenset) for meant, way in ways):
        return [way for _, way in ways]
    rests = [{key: value for key, value in way["where"].items() if key != "not"} for _, way in ways]
    if any(rest != rests[0] for rest in rests):
        return [way for _, way in ways]  # they differ in what they are, too
    whole = index.meant({**ways[0][1], "where": rests[0]})
    telling = [way for meant, way in ways if meant != whole]
    return telling or [way for _, way in ways]


def _fill(recipe: Recipe, readings: dict[str, Reading], given: frozenset[str], index: NameIndex, active: str | None) -> Resolved:
    values: dict[str, Any] = {}
    references: dict[str, str] = {}
    doubts: list[str] = []
    cost = 0.0
    for name, reading in readings.items():
        if reading.issue in ("unknown", "inactive") or reading.value is None:
            doubts.append(_doubt(recipe.parameters[name], reading))
            continue
        if reading.issue is not None:
            doubts.append(_doubt(recipe.parameters[name], reading))
        values[name] = reading.value
        if reading.reference is not None:
            references[name] = reading.reference
    cost -= _stand_on(recipe, readings, values, references, index, active)
    for name in [name for name, value in values.items() if isinstance(value, str) and value.startswith(BELOW_IT)]:
        above = {folder for other, value in values.items() if other != name for folder in _folders_of(recipe.parameters[other], value)}
        if len(above) == 1:
            values[name] = joined(above.pop(), values[name].removeprefix(BELOW_IT))
        else:
            doubts.append(f"it is not clear in which folder {values[name].removeprefix(BELOW_IT)} is to be")
            values[name] = values[name].removeprefix(BELOW_IT)
    _settle_kind(recipe, values, index)
    for name, parameter in recipe.parameters.items():
        if name in values and name not in given:
            values[name], doubt = _dependent(parameter, values[name], values, index)
            if doubt is not None:
                doubts.append(doubt)
                cost += _NO_SUCH_LINE if parameter.kind == "spotted" else 0.5
    kept = _keep_numbers(recipe, readings, values)
    doubts.extend(kept)
    cost += 0.3 * len(kept)
    for name, parameter in recipe.parameters.items():
        note = values.get(parameter.of) if parameter.kind == "level" and parameter.of is not None else None
        if name not in values and isinstance(note, str):
            values[name] = _dividing_level(index.names.levels(note))
    cost -= min(_named_alike(values), sum(readings[name].cost for name in ("note", "path") if name in readings))
    _settle_sets(recipe, values, references)
    notes = [values[name] for name, parameter in recipe.parameters.items() if parameter.kind == "note" and values.get(name)]
    if len(set(notes)) < len(notes):
        doubts.append("both are the same note")
    missing = tuple(name for name, parameter in recipe.parameters.items() if values.get(name) is None and parameter.needed)
    for name in missing:
        values.pop(name, None)
    defaults = {name: parameter.default for name, parameter in recipe.parameters.items() if parameter.default is not None}
    remarks = tuple(
        told(reading.value["where"]) for reading in readings.values() if reading.issue == "ambiguous" and isinstance(reading.value, Mapping)
    )
    return Resolved(defaults | values, references, missing, tuple(doubts), cost, remarks)


def _named_alike(values: Mapping[str, Any]) -> float:
    """The doubt that falls away where a new note has the name of the one that it comes from, and more: "copy Habits to Habits 2027"."""
    note, path = values.get("note"), values.get("path")
    if not isinstance(note, str) or not isinstance(path, str):
        return 0.0
    old, new = (each.rpartition("/")[2].removesuffix(".md").casefold() for each in (note, path))
    return 0.5 if new.startswith(f"{old} ") else 0.0


def _keep_numbers(recipe: Recipe, readings: Mapping[str, Reading], values: dict[str, Any]) -> list[str]:
    """Put the number in front of an old name in front of the new one too, and say so."""
    doubts = []
    for name, parameter in recipe.parameters.items():
        of = parameter.of or ""
        number = _number_before(values.get(of), readings.get(of), readings.get(name)) if parameter.kind == "newName" else None
        if number is not None and isinstance(values.get(name), str):
            folder, _, new = values[name].rpartition("/")
            values[name] = joined(folder, number + new)
            doubts.append(f"“{number.strip()}” in front of the name stays")
    return doubts


def _number_before(old: Any, said: Reading | None, new: Reading | None) -> str | None:
    """The number in front of a note's name that neither its name as said nor its new one has: "202404211920 " of a zettel."""
    number = _NUMBER.match(old.rpartition("/")[2]) if isinstance(old, str) else None
    if number is None or said is None or new is None or said.reference is not None:
        return None
    return None if any("/" in each.text or each.text.strip("[ '\"")[:1].isdigit() for each in (said, new)) else number[0]


def _settle_kind(recipe: Recipe, values: dict[str, Any], index: NameIndex) -> None:
    """A note of a kind goes where the notes of its kind are, when they are all in one folder and no other was named."""
    kind, path, folder = values.get("kind"), values.get("path"), recipe.parameters.get("folder")
    if folder is None or values.get("folder") is not None or not isinstance(kind, str) or not isinstance(path, str) or "/" in path:
        return
    for meaning in kinds(kind, index):
        meant = (index.names.meant({"where": meaning, "kind": "notes"}) or frozenset()) - {values.get("template")}
        places = {note.rpartition("/")[0] for note in meant}
        if len(meant) > 1 and len(places) == 1:
            values["folder"] = places.pop()
            return


def _folders_of(parameter: RecipeParameter, value: Any) -> Iterator[str]:
    """The folders that a value speaks of: those of a description, a folder itself, or where a note is."""
    if isinstance(value, Mapping):
        where = value.get("where", {})
        for each in (where, *where.get("all", ())):
            if isinstance(each.get("folder"), str):
                yield each["folder"]
        yield from (path.rpartition("/")[0] for path in where.get("paths", ()))
    elif isinstance(value, str) and parameter.kind in _SORTS:
        yield value if parameter.kind == "folder" else value.rpartition("/")[0]


def _stand_on(
    recipe: Recipe,
    readings: Mapping[str, Reading],
    values: dict[str, Any],
    references: dict[str, str],
    index: NameIndex,
    active: str | None,
) -> float:
    """Where only a heading is named, and the open note has it, the open note is meant. Answers the doubt that this takes away."""
    for name, parameter in recipe.parameters.items():
        note = parameter.of
        if parameter.kind != "heading" or note is None or active is None or note in readings or not isinstance(values.get(name), str):
            continue
        if _heading(values[name], active, index)[1] is None:
            values[note], references[note] = active, "activeFile"
            return 0.5
    return 0.0


def _settle_sets(recipe: Recipe, values: dict[str, Any], references: Mapping[str, str]) -> None:
    """Descriptions of notes as `vault.find` takes them: one note is a set of one, and what is left out is left out."""
    for name, parameter in recipe.parameters.items():
        if parameter.kind not in SET_KINDS or name not in values:
            continue
        found = values[name]
        if isinstance(found, str):
            found = {"where": {"paths": ["${activeFile}" if references.get(name) == "activeFile" else found]}, "kind": "notes"}
        kind = found["kind"] if found["kind"] != "any" else "files" if parameter.kind == "files" else "notes"
        values[name] = {"where": found["where"], "kind": kind}
    for name, parameter in recipe.parameters.items():
        clause = values.get(name) if parameter.kind in ("exempt", "within") and parameter.of is not None else None
        if clause is None:
            continue
        whole = values.get(str(parameter.of)) or {"where": {}, "kind": "notes"}
        del values[name]
        limit = {"not": clause["where"]} if parameter.kind == "exempt" else clause["where"]
        values[str(parameter.of)] = {**whole, "where": both(whole["where"], limit)}


def _doubt(parameter: RecipeParameter, reading: Reading) -> str:
    if reading.doubt is not None:
        return reading.doubt
    match reading.issue:
        case "inactive":
            return "no note is active"
        case "near":
            return f"there is no {_noun(parameter)} “{reading.text}”; {reading.value} is near"
        case "ambiguous":
            return f"“{reading.text}” may be {reading.value}"
        case _:
            return f"there is no {_noun(parameter)} “{reading.text}”"


def _noun(parameter: RecipeParameter) -> str:
    return {"entry": "note or folder", "destination": "folder", "anyNotes": "note"}.get(parameter.kind, parameter.kind)


def _dependent(parameter: RecipeParameter, value: Any, values: Mapping[str, Any], index: NameIndex) -> tuple[Any, str | None]:
    """The value of a slot that depends on another one, and a doubt about it. The value is None while the other is open."""
    other = values.get(parameter.of) if parameter.of is not None else None
    match parameter.kind:
        case "path":
            path = _new_path(value, other)
            there = index.find(path, ("note",))
            if there is not None and there.closeness == Closeness.EXACT and (path in there.paths or "/" not in path):
                return path, f"{', '.join(there.paths[:2])} exists already"
            return path, None
        case "folder" if other:
            return (value if "/" in value else joined(other, value)), None
        case "newName":
            return (None if other is None else _renamed(value, other)), None
        case "destination":
            return (None if other is None else joined(value, other.rpartition("/")[2])), None
        case "heading" | "newHeading" if other is not None:
            heading, doubt = _heading(value, other, index)
            return heading, doubt if parameter.kind == "heading" else None
        case "spotted" if other is not None:
            return value, _line(value, other, index)
        case _:
            return value, None


def joined(folder: str, name: str) -> str:
    """`name` in `folder`; the root is ""."""
    return f"{folder}/{name}" if folder else name


def _new_path(name: str, folder: str | None) -> str:
    """The path of a new note: in `folder` unless the name brings its own, with characters that no platform minds, and `.md`."""
    path = _legal(name)
    whole = joined(folder, path) if folder and "/" not in path else path
    return whole if whole.lower().endswith(".md") else f"{whole}.md"


def _legal(name: str) -> str:
    """A name with `-` for what some platform minds; a path that the gate refuses stays as it is, so that it is refused."""
    return name if names_out_of_bounds(name) else _ILLEGAL.sub("-", name.strip()).strip()


def _renamed(name: str, old: str) -> str:
    """The full new path of `old`: beside it unless the name is a path, with the old extension."""
    new = _legal(name)
    folder, _, last = old.rpartition("/")
    stem_text, dot, extension = last.rpartition(".")
    if dot and stem_text and not new.lower().endswith(f".{extension.lower()}"):
        new = f"{new}.{extension}"
    return new if "/" in new else joined(folder, new)


def _heading(said: str, note: str, index: NameIndex) -> tuple[str, str | None]:
    headings = index.names.headings(note)
    wanted = said.strip().casefold()
    for heading in headings:
        if heading.strip().casefold() == wanted:
            return heading, None
    stems = _heading_words(said)
    close = [heading for heading in headings if _heading_words(heading) == stems]
    if len(close) == 1:
        return close[0], None
    known = ", ".join(headings[:5]) or "none"
    return said, f"{note} has no heading “{said}” (its headings: {known})"


def _line(said: str, note: str, index: NameIndex) -> str | None:
    """The doubt that no line of the note, headings apart, holds these words."""
    lines = index.names.lines(note)
    lines = [line for line in lines if not _HEADING.match(line)] if lines is not None else None
    phrase = regex.compile(rf"(?<!\w){regex.escape(said.strip())}(?!\w)", regex.IGNORECASE)
    words = set(_heading_words(said))
    if lines is None or any(phrase.search(each) or (len(words) > 1 and words <= set(_heading_words(each))) for each in lines):
        return None
    return f"{note} has no line with “{said}”"


def _dividing_level(levels: Sequence[int]) -> int:
    """The highest level with several headings: a single heading above them is the title. Else the highest there is."""
    several = [level for level in sorted(set(levels)) if levels.count(level) > 1]
    return several[0] if several else min(levels, default=1)


def _heading_words(text: str) -> tuple[str, ...]:
    return tuple(stem(word) for word in regex.findall(r"[\p{L}\p{N}]+", text.casefold()))
