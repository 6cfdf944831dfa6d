"""Findings about properties whose types or values disagree."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from obsidian_agent.health.finding import HealthFinding, Repair, RepairChoice, RepairStep
from obsidian_agent.health.survey import VaultSurvey
from obsidian_agent.vault.paths.path import VaultPath

_DAY: Final = re.compile(r"\d{4}-\d{2}-\d{2}")
_MOMENT: Final = re.compile(
    r"\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:Z|[+-]\d{2}:?\d{2})?"
)
_NUMBER: Final = re.compile(r"-?(?:0|[1-9]\d{0,14})(?:\.\d{1,10})?")
_OWN: Final = frozenset(("tags", "tag", "aliases", "alias", "cssclasses", "cssclass", "publish"))

_MIN_NOTES: Final = 10
"""Notes that must have a property before its usual type counts."""
_USUAL: Final = 0.9
"""Share of the notes that makes a type the usual one."""
_MAX_VALUES: Final = 40
"""Different values above which a property is free text."""
_CLEAR_MAJORITY: Final = 3


def property_types(survey: VaultSurvey) -> Iterator[HealthFinding]:
    """Yield values that do not have the type of their property.

    The type is Obsidian's (types.json), otherwise the one that nearly all notes use.
    """
    values: dict[str, list[tuple[VaultPath, str, Any]]] = defaultdict(list)
    for note in survey.notes:
        for name, value in survey.facts[note].properties.items():
            if name.lower() not in _OWN and value is not None and value != "":
                values[name.lower()].append((note, name, value))
    declared = survey.settings.property_types
    for key, uses in values.items():
        expected = declared.get(key) or _usual_type(uses)
        if expected is None or expected not in _CHECKS:
            continue
        source = "Obsidian's property types" if key in declared else "nearly all other notes"
        for note, name, value in uses:
            if not _CHECKS[expected](value):
                yield _type_finding(note, name, value, expected, source)


def _is_date(value: Any) -> bool:
    return isinstance(value, str) and _DAY.fullmatch(value) is not None


def _is_moment(value: Any) -> bool:
    return _is_date(value) or (isinstance(value, str) and _MOMENT.fullmatch(value) is not None)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


_CHECKS: Final[Mapping[str, Callable[[Any], bool]]] = {
    "number": _is_number,
    "checkbox": lambda value: isinstance(value, bool),
    "date": _is_moment,
    "datetime": _is_moment,
    "multitext": lambda value: isinstance(value, list | str),
    "list": lambda value: isinstance(value, list),
}


def _type_of(value: Any) -> str:
    if isinstance(value, bool):
        return "checkbox"
    if _is_number(value):
        return "number"
    if _is_moment(value):
        return "date"
    if isinstance(value, list):
        return "list"
    return "text"


def _usual_type(uses: list[tuple[VaultPath, str, Any]]) -> str | None:
    if len(uses) < _MIN_NOTES:
        return None
    ((usual, count),) = Counter(_type_of(value) for *_, value in uses).most_common(1)
    return usual if count >= _USUAL * len(uses) else None


def _type_finding(
    note: VaultPath, name: str, value: Any, expected: str, source: str
) -> HealthFinding:
    converted = _converted(value, expected)
    choices: tuple[RepairChoice, ...] = ()
    if converted is not None:
        step = RepairStep("vault.setFrontmatter", {"path": note.text, "set": {name: converted}})
        choices = (RepairChoice(f"{name}: {_formatted(value)} → {_formatted(converted)}", (step,)),)
    kind = {"multitext": "list", "datetime": "date and time"}.get(expected, expected)
    return HealthFinding(
        kind="property-type",
        path=note.text,
        subject=name,
        text=f"{name}: {_formatted(value)} is no {kind}.",
        evidence=f"{kind} according to {source}",
        repair=Repair(choices) if choices else None,
    )


def _converted(value: Any, expected: str) -> Any:
    """Return a value as another type if nothing is lost, else None."""
    if expected == "list" and isinstance(value, str):
        return [value]
    if not isinstance(value, str):
        return None
    text = value.strip()
    if expected == "number" and _NUMBER.fullmatch(text):
        return float(text) if "." in text else int(text)
    if expected == "checkbox" and text.lower() in ("true", "false"):
        return text.lower() == "true"
    return None


def _formatted(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return str(value)
    text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
    return f"“{text[:60]}”"


def property_values(survey: VaultSurvey) -> Iterator[HealthFinding]:
    """Yield property values that differ from a more frequent one in case or spaces only."""
    uses: dict[str, dict[str, list[VaultPath]]] = defaultdict(dict)
    names: dict[str, str] = {}
    for note in survey.notes:
        for name, value in survey.facts[note].properties.items():
            if name.lower() in _OWN:
                continue
            names.setdefault(name.lower(), name)
            for text in {text for text in _texts(value) if 0 < len(text) <= 60}:
                uses[name.lower()].setdefault(text, []).append(note)
    for key, values in uses.items():
        if len(values) <= _MAX_VALUES:
            yield from _value_findings(survey, names[key], values)


def _texts(value: Any) -> list[str]:
    items = value if isinstance(value, list) else [value]
    return [item for item in items if isinstance(item, str)]


def _value_findings(
    survey: VaultSurvey, name: str, values: Mapping[str, list[VaultPath]]
) -> Iterator[HealthFinding]:
    groups: dict[str, list[str]] = defaultdict(list)
    for text in values:
        groups[" ".join(text.split()).casefold()].append(text)
    for spellings in groups.values():
        usual, *others = sorted(spellings, key=lambda text: (-len(values[text]), text))
        for text in others:
            clear = len(values[usual]) >= _CLEAR_MAJORITY * len(values[text])
            for note in values[text]:
                yield _value_finding(survey, note, name, text, usual, clear=clear)


def _value_finding(
    survey: VaultSurvey, note: VaultPath, name: str, text: str, usual: str, *, clear: bool
) -> HealthFinding:
    written = {key.lower(): key for key in survey.facts[note].properties}
    key = written[name.lower()]
    value = survey.facts[note].properties[key]
    replaced: Any = usual
    if isinstance(value, list):
        others = [item for item in value if item not in (text, usual)]
        position = next(at for at, item in enumerate(value) if item in (text, usual))
        replaced = [*others[:position], usual, *others[position:]]
    step = RepairStep("vault.setFrontmatter", {"path": note.text, "set": {key: replaced}})
    return HealthFinding(
        kind="property-value",
        path=note.text,
        subject=f"{key} {text}",
        text=f"{key}: “{text}” is written “{usual}” elsewhere.",
        evidence="they differ in case or spaces only",
        repair=Repair((RepairChoice(f"{key}: “{text}” → “{usual}”", (step,)),), preselected=clear),
    )
