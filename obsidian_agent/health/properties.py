"""Findings about properties whose types or values disagree."""

from __future__ import annotations

import contextlib
import json
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date
from functools import cached_property
from itertools import chain
from typing import Any, Final, NamedTuple

from msgspec.structs import replace

from obsidian_agent.health.finding import (
    HealthFinding,
    Repair,
    RepairChoice,
    RepairStep,
    excerpt,
    note_count,
)
from obsidian_agent.health.names import accents, is_day, without_accents
from obsidian_agent.health.survey import RULES_FILE, PropertyRule, ReadDay, VaultSurvey
from obsidian_agent.vault.index.index import tag_key, tag_within
from obsidian_agent.vault.paths.path import VaultPath

_DAY: Final = re.compile(r"\d{4}-\d{2}-\d{2}")
_MOMENT: Final = re.compile(
    r"\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:Z|[+-]\d{2}:?\d{2})?"
)
_YEAR_FIRST: Final = re.compile(r"(\d{4})[-/.](\d{1,2})[-/.](\d{1,2})")
_YEAR_LAST: Final = re.compile(r"(\d{1,2})([/.-])(\d{1,2})\2(\d{4})")
_DAY_IN_DIGITS: Final = re.compile(r"((?:19|20)\d{2})(\d{2})(\d{2})")
_SHORT_YEAR: Final = re.compile(r"(\d{1,2})\.(\d{1,2})\.(\d{2})")
_YEAR: Final = re.compile(r"(?<!\d)\d{4}(?!\d)")
_NUMBER: Final = re.compile(r"-?(?:0|[1-9]\d{0,14})(?:\.\d{1,10})?")
_BETWEEN_WORDS: Final = re.compile(r"(?<=[^\W\d])[-_\s]+(?=[^\W\d])")
_CHECKED: Final = frozenset(
    ("true", "yes", "y", "on", "ja", "oui", "si", "sim", "tak", "ano", "да", "はい", "是", "네")
)
_UNCHECKED: Final = frozenset(
    (
        "false",
        "no",
        "n",
        "off",
        "nein",
        "non",
        "nee",
        "nao",
        "nie",
        "ne",
        "нет",
        "いいえ",
        "否",
        "아니요",
    )
)
"""Yes and no, without accents, in the languages of the product."""
_OWN: Final = frozenset(("tags", "tag", "aliases", "alias", "cssclasses", "cssclass", "publish"))

_IDENTIFIER: Final = re.compile(r"0\d+|\d{6,}[A-Za-z]?|\d+(?:[-.:/ ]\d+){2,}|\d+\.[1-9]0")
"""Digits that name something, such as an ISBN or a version: as a number they would lose a part."""

_THOUSANDS: Final = re.compile(r"-?[1-9]\d{0,2}[.,]\d{3}")
"""A number with one separator, which may be that of thousands or of decimals."""

_COMMA: Final = re.compile("[,，、]")
_DECIMAL_COMMA: Final = re.compile(r"(-?(?:0|[1-9]\d{0,14})),(\d{1,2})")
_ONE_NUMBER: Final = re.compile(r"\D*?(?<![^\W\d_])\d+(?:[.,]\d+)?(?![^\W\d_](?:[\W\d_]|$))\D*")
"""A number with a unit or a word, such as `50 min`; not `3b`, which is a name."""

_MIN_NOTES: Final = 8
"""Notes that must have a type before values that cannot be read as it are reported."""
_MIN_READABLE: Final = 3
"""Notes that must have a type if all other values can be read as it."""
_UNREADABLE: Final = 6
"""Of so many values, one at most cannot be read as the usual type."""
_MAX_VALUES: Final = 40
"""Different values above which a property is free text."""
_MAX_LISTED: Final = 12
"""Different values up to which they are a rule that can be shown, or choices."""
_CLEAR_MAJORITY: Final = 3
_RARE: Final = 10
"""In a vocabulary, one of so many notes at most has a value of its own."""
_MONTHS: Final = 12
_OTHER_NOTES: Final = "most other notes"
_CODE: Final = re.compile(r"[\d/\\:@#]|\.\w")
_MIN_WORD: Final = 4
"""Letters of a word that is no unit or symbol."""
_MIN_ACCENTED: Final = 6
"""Letters of a word, no name, that is hardly another word without its accents."""
_MAX_SYMBOL: Final = 2
"""Letters of a value that may be a symbol, so that its case counts: "Es" and "es", "5 Mb"."""


class _Use(NamedTuple):
    """A property of a note, by its name as written."""

    note: VaultPath
    name: str
    value: Any
    type: str


def property_types(survey: VaultSurvey) -> Iterator[HealthFinding]:
    """Yield values that do not have the type of their property.

    The type is that of a rule of the vault, Obsidian's (types.json), or the one that most notes
    use, at least those of a folder or with a tag.
    """
    uses = _uses_by_key(survey)
    reported: set[tuple[VaultPath, str]] = set()
    for use in chain.from_iterable(uses.values()):
        if _has_bare_links(use.value):
            reported.add((use.note, use.name))
            yield _bare_links(use)
    for source, rules in (
        (RULES_FILE, survey.settings.property_rules),
        ("Obsidian's property types", _obsidian_rules(survey)),
        (_OTHER_NOTES, inferred_rules(survey, uses)),
    ):
        for rule in rules:
            covered = list(_covered(survey, rule, uses)) if rule.type in _CHECKS else []
            usage = _Usage(covered)
            is_usual = source != _OTHER_NOTES or _is_usual(rule.type, covered)
            for use in covered:
                if (use.note, use.name) in reported:
                    continue
                reported.add((use.note, use.name))
                if _CHECKS[rule.type](use.value):
                    continue
                if source == _OTHER_NOTES and usage.is_custom_of_folder(use):
                    continue
                if is_usual or _reads_as(use.value, rule.type, survey.settings.read_day):
                    readings = _converted(use.value, rule.type, survey.settings.read_day)
                    if len(readings) > 1:
                        usage.sort(readings, use)
                    yield _type_finding(use, rule.type, f"{source}{_scope(rule)}", readings)


def property_rules(survey: VaultSurvey) -> list[PropertyRule]:
    """Return the rules that apply: those of the vault, Obsidian's types, and inferred ones."""
    inferred = inferred_rules(survey, _uses_by_key(survey))
    return [*survey.settings.property_rules, *_obsidian_rules(survey), *inferred]


def inferred_rules(survey: VaultSurvey, uses: Mapping[str, list[_Use]]) -> Iterator[PropertyRule]:
    """Yield the rules that most notes follow, in the whole vault or in a folder or tag."""
    declared = survey.settings.property_types
    for key, all_uses in uses.items():
        if key in declared:
            continue
        rule = PropertyRule(property=all_uses[0].name)
        if usual := _usual_type(all_uses, survey.settings.read_day):
            yield replace(rule, type=usual, values=_few_values(all_uses))
            continue
        scopes: dict[tuple[str, str], list[_Use]] = defaultdict(list)
        for use in all_uses:
            if not use.note.parent.is_root:
                scopes[use.note.parent.text, ""].append(use)
            for tag in survey.facts[use.note].tags:
                scopes["", tag].append(use)
        for (folder, tag), members in scopes.items():
            if usual := _usual_type(members, survey.settings.read_day):
                values = _few_values(members)
                yield replace(rule, folder=folder, tag=tag, type=usual, values=values)


def _uses_by_key(survey: VaultSurvey) -> dict[str, list[_Use]]:
    """Return the values of each property by its lower-case name, without empty ones."""
    uses: dict[str, list[_Use]] = defaultdict(list)
    for note in survey.notes:
        for name, value in survey.facts[note].properties.items():
            if name.lower() not in _OWN and value not in (None, "", []):
                uses[name.lower()].append(_Use(note, name, value, _type_of(value)))
    return uses


def _obsidian_rules(survey: VaultSurvey) -> list[PropertyRule]:
    types = survey.settings.property_types
    return [PropertyRule(property=name, type=kind) for name, kind in types.items()]


def _covered(
    survey: VaultSurvey, rule: PropertyRule, uses: Mapping[str, list[_Use]]
) -> Iterator[_Use]:
    """Yield the uses of a property that a rule is about."""
    folder, tag = rule.folder.strip("/"), tag_key(rule.tag.removeprefix("#"))
    for use in uses.get(rule.property.lower(), ()):
        if folder and not use.note.text.startswith(f"{folder}/"):
            continue
        tags = survey.facts[use.note].tags if tag else ()
        if not tag or any(tag_within(tag_key(own), tag) for own in tags):
            yield use


def _scope(rule: PropertyRule) -> str:
    folder = f" in {rule.folder}" if rule.folder else ""
    return folder + (f" tagged #{rule.tag.removeprefix('#')}" if rule.tag else "")


def _few_values(uses: Sequence[_Use]) -> tuple[str, ...]:
    """Return the texts of a property if they are few and each is in several notes."""
    counts = Counter(text for use in uses for text in _texts(use.value))
    is_list = 0 < len(counts) <= _MAX_LISTED and min(counts.values()) > 1
    return tuple(sorted(counts)) if is_list else ()


def _is_moment(value: Any) -> bool:
    if not isinstance(value, str) or not (_DAY.fullmatch(value) or _MOMENT.fullmatch(value)):
        return False
    return is_day(value[:10])


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


_CHECKS: Final[Mapping[str, Callable[[Any], bool]]] = {
    "number": _is_number,
    "checkbox": lambda value: isinstance(value, bool),
    "date": _is_moment,
    "datetime": _is_moment,
    "multitext": lambda value: not isinstance(value, dict),
    "list": lambda value: isinstance(value, list),
    "text": lambda value: not isinstance(value, list | dict),
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
    return "map" if isinstance(value, dict) else "text"


def _is_bare_link(value: Any) -> bool:
    """Return whether a value is what YAML reads in `[[Name]]`: a list in a list."""
    match value:
        case [[str(name)]]:
            return "[" not in name and "]" not in name
        case _:
            return False


def _has_bare_links(value: Any) -> bool:
    return _is_bare_link(value) or (isinstance(value, list) and any(map(_is_bare_link, value)))


def _with_quotes(value: Any) -> Any:
    return f"[[{value[0][0]}]]" if _is_bare_link(value) else value


def _bare_links(use: _Use) -> HealthFinding:
    value = use.value
    quoted = _with_quotes(value) if _is_bare_link(value) else [*map(_with_quotes, value)]
    step = RepairStep("vault.setFrontmatter", {"path": use.note.text, "set": {use.name: quoted}})
    return HealthFinding(
        kind="property-type",
        path=use.note.text,
        subject=use.name,
        text=f"{use.name}: {_formatted(use.value)} is a list in a list, not a link.",
        evidence="Obsidian reads [[links]] in properties in quotes only",
        repair=Repair((RepairChoice(f"{use.name}: {_formatted(quoted)}", (step,)),)),
    )


def _usual_type(uses: Sequence[_Use], read_day: ReadDay) -> str | None:
    """Return the type of most values, if nearly all others can be read as it.

    Maps are none of Obsidian's types, and identifiers no numbers.
    """
    ((usual, count),) = Counter(use.type for use in uses).most_common(1)
    if count < _MIN_READABLE or usual == "map":
        return None
    others = [use.value for use in uses if use.type != usual]
    if usual == "number" and any(_is_identifier(value, read_day) for value in others):
        return None
    unreadable = sum(not _reads_as(value, usual, read_day) for value in others)
    if unreadable * _UNREADABLE > len(uses):
        return None
    return usual if count > len(others) - unreadable else None


def _is_usual(expected: str, uses: Sequence[_Use]) -> bool:
    """Return whether values that cannot be read as the usual type are worth reporting."""
    if expected == "checkbox":
        # It has two values, and no text is meant to be a third one.
        return True
    return sum(_CHECKS[expected](use.value) for use in uses) >= _MIN_NOTES


def _reads_as(value: Any, usual: str, read_day: ReadDay) -> bool:
    """Return whether a value of another type is one of the usual type in another form."""
    if _converted(value, usual, read_day):
        return True
    is_number = usual == "number" and isinstance(value, str)
    return is_number and _ONE_NUMBER.fullmatch(value) is not None


def _is_identifier(value: Any, read_day: ReadDay) -> bool:
    if not isinstance(value, str) or _days(value.strip(), read_day):
        return False
    return _IDENTIFIER.fullmatch(value.strip()) is not None


def _type_finding(use: _Use, expected: str, source: str, readings: Sequence[Any]) -> HealthFinding:
    note, name, value, _ = use
    choices = tuple(
        RepairChoice(
            f"{name}: {_formatted(value)} → {_formatted(converted)}",
            (RepairStep("vault.setFrontmatter", {"path": note.text, "set": {name: converted}}),),
        )
        for converted in readings
    )
    kind = {"multitext": "list", "datetime": "date and time"}.get(expected, expected)
    return HealthFinding(
        kind="property-type",
        path=note.text,
        subject=name,
        text=f"{name}: {_formatted(value)} is not of the type {kind}.",
        evidence=f"{kind} according to {source}",
        repair=Repair(choices) if choices else None,
    )


def _converted(value: Any, expected: str, read_day: ReadDay) -> list[Any]:
    """Return a value as another type, in each way it can be read; empty if something is lost."""
    if expected == "date" and isinstance(value, int) and _DAY_IN_DIGITS.fullmatch(str(value)):
        value = str(value)
    if expected == "text" and isinstance(value, list) and len(value) == 1:
        return [value[0]] if isinstance(value[0], str) else []
    if expected == "list" and isinstance(value, str):
        items = [item.strip() for item in _COMMA.split(value)]
        return [items, [value]] if len(items) > 1 and all(items) else [[value]]
    if not isinstance(value, str):
        return []
    text = value.strip()
    if expected == "number" and _THOUSANDS.fullmatch(text):
        return [float(text.replace(",", ".")), int(re.sub("[.,]", "", text))]
    if expected == "number" and _NUMBER.fullmatch(text):
        return [float(text) if "." in text else int(text)]
    if expected == "number" and (match := _DECIMAL_COMMA.fullmatch(text)):
        return [float(f"{match[1]}.{match[2]}")]
    if expected == "checkbox":
        word = without_accents(_letters(text))
        return [word in _CHECKED] if word in _CHECKED | _UNCHECKED else []
    return _days(text, read_day) if expected == "date" else []


class _Usage:
    """The values of a property, as far as they say how another one is read."""

    def __init__(self, uses: Sequence[_Use]) -> None:
        self._values = [use.value for use in uses]
        self._types: dict[VaultPath, Counter[str]] = defaultdict(Counter)
        for use in uses:
            self._types[use.note.parent][use.type] += 1

    def is_custom_of_folder(self, use: _Use) -> bool:
        """Return whether all notes of a folder, and not a few, have the type of a value."""
        types = self._types[use.note.parent]
        return len(types) == 1 and types[use.type] >= _MIN_READABLE

    def sort(self, readings: list[Any], use: _Use) -> None:
        """Sort the readings of a value, the likeliest first."""
        if isinstance(readings[0], list):
            if self._has_commas_in_items:
                readings.sort(key=len)
        elif isinstance(readings[0], str):
            if self._is_month_first:
                readings.reverse()
            readings.sort(key=lambda day: day not in use.note.stem)
        elif self._numbers:
            usual = self._numbers[len(self._numbers) // 2]
            is_whole = all(isinstance(number, int) for number in self._numbers)
            readings.sort(key=lambda number: (is_whole and number % 1 != 0, abs(number - usual)))

    @cached_property
    def _numbers(self) -> list[float]:
        return sorted(filter(_is_number, self._values))

    @cached_property
    def _has_commas_in_items(self) -> bool:
        lists = (value for value in self._values if isinstance(value, list))
        return any("," in item for item in chain.from_iterable(map(_texts, lists)))

    @cached_property
    def _is_month_first(self) -> bool:
        texts = (value.strip() for value in self._values if isinstance(value, str))
        dates = list(filter(None, map(_YEAR_LAST.fullmatch, texts)))
        is_day_first = any(int(match[1]) > _MONTHS for match in dates)
        return not is_day_first and any(int(match[3]) > _MONTHS for match in dates)


def _days(text: str, read_day: ReadDay) -> list[str]:
    """Return the days that a date in another form can mean, such as 3/4/2024."""
    if match := _YEAR_FIRST.fullmatch(text):
        readings = [(match[1], match[2], match[3])]
    elif match := _YEAR_LAST.fullmatch(text):
        readings = [(match[4], match[3], match[1]), (match[4], match[1], match[3])]
        # With dots the day is always first.
        readings = readings[:1] if match[2] == "." else readings
    elif match := _DAY_IN_DIGITS.fullmatch(text):
        readings = [(match[1], match[2], match[3])]
    elif match := _SHORT_YEAR.fullmatch(text):
        readings = [(f"20{match[3]}", match[2], match[1])]
    else:
        in_words = read_day(text) if _YEAR.search(text) else None
        return [in_words.isoformat()] if in_words is not None else []
    days: list[str] = []
    for year, month, day in readings:
        with contextlib.suppress(ValueError):
            days.append(date(int(year), int(month), int(day)).isoformat())
    return list(dict.fromkeys(days))


def _formatted(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return str(value)
    if isinstance(value, list | dict):
        return excerpt(json.dumps(value, ensure_ascii=False))
    return f"“{excerpt(value)}”"


def property_values(survey: VaultSurvey) -> Iterator[HealthFinding]:
    """Yield values that a rule does not allow, or that differ in the way they are written only."""
    yield from _not_allowed(survey)
    ruled = {rule.property.lower() for rule in survey.settings.property_rules if rule.values}
    uses: dict[str, dict[str, list[VaultPath]]] = defaultdict(dict)
    names: dict[str, str] = {}
    for note in survey.notes:
        for name, value in survey.facts[note].properties.items():
            if name.lower() in _OWN or name.lower() in ruled:
                continue
            names.setdefault(name.lower(), name)
            # A link is right if it leads somewhere, however others are spelled.
            texts = {text for text in _texts(value) if 0 < len(text) <= 60}
            for text in (text for text in texts if not text.startswith("[[")):
                uses[name.lower()].setdefault(text, []).append(note)
    for key, values in uses.items():
        if len(values) <= _MAX_VALUES:
            yield from _value_findings(names[key], values)


def _not_allowed(survey: VaultSurvey) -> Iterator[HealthFinding]:
    """Yield values that are not among those of a rule of the vault."""
    rules = [rule for rule in survey.settings.property_rules if rule.values]
    uses = _uses_by_key(survey) if rules else {}
    for rule in rules:
        for use in _covered(survey, rule, uses):
            for text in _texts(use.value):
                if text in rule.values:
                    continue
                choices = [
                    RepairChoice(
                        f"{use.name}: “{text}” → “{value}”",
                        (_replacing(use.note, use.name, use.value, text, value),),
                    )
                    for value in sorted(
                        rule.values, key=lambda value: _spelling(value) != _spelling(text)
                    )
                ]
                yield HealthFinding(
                    kind="property-value",
                    path=use.note.text,
                    subject=f"{use.name}\n{text}",
                    text=f"{use.name}: “{text}” is not allowed{_scope(rule)}.",
                    evidence=f"{RULES_FILE} allows {', '.join(rule.values)}",
                    repair=Repair(tuple(choices[:_MAX_LISTED])),
                )


def _spelling(text: str) -> str:
    """Return a text without blanks, accents, separators of words, and the case of words."""
    words = text.split()
    if max(map(len, words), default=0) <= _MAX_SYMBOL:
        spelled = unicodedata.normalize("NFC", " ".join(words))
    elif text.isupper() and len(words) > 1:
        spelled = _letters(text)
    else:
        spelled = " ".join(map(_word, words))
    plain = without_accents(spelled)
    joined = _BETWEEN_WORDS.sub("", plain)
    return joined if len(joined) >= _MIN_WORD else _BETWEEN_WORDS.sub(" ", plain)


def _word(text: str) -> str:
    """Return a word without case. That of symbols, letters and codes counts: "mW", "C", "a3F"."""
    is_word = _CODE.search(text) is None and (len(text) >= _MIN_WORD or text[1:].islower())
    return _letters(text) if is_word else unicodedata.normalize("NFC", text)


def _letters(text: str) -> str:
    """Return a text without case and its Unicode form."""
    return unicodedata.normalize("NFC", text).lower()


def _has_odd_blanks(text: str) -> bool:
    return text != " ".join(text.split())


def _replacing(note: VaultPath, key: str, value: Any, text: str, new: str) -> RepairStep:
    """Return the step that writes another text in the place of one, in a list only once."""
    replaced: Any = new
    if isinstance(value, list):
        others = [item for item in value if item not in (text, new)]
        position = next(index for index, item in enumerate(value) if item in (text, new))
        replaced = [*others[:position], new, *others[position:]]
    return RepairStep("vault.setFrontmatter", {"path": note.text, "set": {key: replaced}})


def _texts(value: Any) -> list[str]:
    items = value if isinstance(value, list) else [value]
    return [item for item in items if isinstance(item, str)]


def _value_findings(name: str, values: Mapping[str, list[VaultPath]]) -> Iterator[HealthFinding]:
    """Yield the spellings of values that have a more frequent one, once for all their notes."""
    groups: dict[str, list[str]] = defaultdict(list)
    lower: Counter[bool] = Counter()
    for text, notes in values.items():
        groups[_spelling(text)].append(text)
        lower[text[0].islower()] += len(notes)
    letters = Counter(map(_letters, groups))

    for key, spellings in groups.items():
        if letters[_letters(key)] > 1:
            continue  # a code such as "MIT" beside "mit": the case counts
        most = max(len(values[text]) for text in spellings)

        def rank(text: str, most: int = most) -> tuple[bool, bool, int, int, bool, str]:
            """Of about equally frequent spellings, prefer accents and the case of the others."""
            count = len(values[text])
            is_rare = count * _CLEAR_MAJORITY <= most
            has_other_case = lower[text[0].islower()] < lower[not text[0].islower()]
            odd = _has_odd_blanks(text)
            return (odd, is_rare, -accents(text), -count, has_other_case, text)

        spellings.sort(key=rank)
        usual, *others = spellings
        spellings = [usual, *(text for text in others if _is_same_word(text, usual, values))]
        if len(spellings) > 1:
            other_values = {
                texts[0]: sum(len(values[text]) for text in texts)
                for other, texts in groups.items()
                if other != key
            }
            yield _value_finding(name, spellings, values, other_values)


def _is_same_word(text: str, usual: str, values: Mapping[str, list[VaultPath]]) -> bool:
    """Return whether two spellings have the same accents, or one is rare and no short word.

    Otherwise they may be two words: "pero" and "però".
    """
    own, other = ("".join(filter(str.isalnum, _letters(spelling))) for spelling in (text, usual))
    if own == other:
        return True
    is_short_word = len(own) < _MIN_ACCENTED and text[0].islower()
    return not is_short_word and len(values[text]) * _CLEAR_MAJORITY <= len(values[usual])


def _follows_convention(text: str, others: Mapping[str, int]) -> bool:
    """Return whether the other values, by their notes, are a vocabulary that begins in one case.

    In a free text the case may count: "Apple" and "apple" are two topics, and passwords differ.
    """
    repeated = [count for count in others.values() if count > 1]
    is_vocabulary = len(repeated) > 1 and len(others) - len(repeated) <= sum(repeated) / _RARE
    return is_vocabulary and {own[0].isupper() for own in others if own[0].isalpha()} == {
        text[0].isupper()
    }


def _value_finding(
    name: str,
    spellings: Sequence[str],
    values: Mapping[str, list[VaultPath]],
    other_values: Mapping[str, int],
) -> HealthFinding:
    """Return the finding about spellings of one value, the usual one first."""
    usual, *others = spellings
    same_letters = len(set(map(_letters, spellings))) == 1
    difference = "they differ in case, spaces, hyphens, underscores or accents only"
    if same_letters:
        difference = "they differ in case only"
    if len({unicodedata.normalize("NFC", text) for text in spellings}) == 1:
        difference = "they look the same, but their accented letters are stored differently"
    notes = [note for text in others for note in values[text]]
    is_clear = (
        same_letters
        and len(values[usual]) >= _CLEAR_MAJORITY * len(notes)
        and all(_differ_as_words(text, usual) for text in others)
        and _follows_convention(usual, other_values)
    )
    convention = "; the other values begin in the same case" if is_clear else ""
    verb = "is" if len(others) == 1 else "are"
    return HealthFinding(
        kind="property-value",
        path=notes[0].text,
        subject=" ".join((name, *others)),
        text=f"{name}: {_listed(others)} {verb} written “{usual}” elsewhere.",
        evidence=(
            f"{difference}, {note_count(len(notes))} and "
            f"{note_count(len(values[usual]))}{convention}"
        ),
        repair=Repair(
            tuple(
                _renaming(name, spellings, text)
                for text in spellings
                if text == usual or not _has_odd_blanks(text)
            ),
            preselected=is_clear,
        ),
    )


def _listed(texts: Sequence[str]) -> str:
    return ", ".join(f"“{text}”" for text in texts)


def _differ_as_words(text: str, other: str) -> bool:
    """Return whether two spellings differ only in whether their words begin with a capital.

    The case of names, units, codes, addresses and names of files counts: “De Vries”, “de Vries”.
    """
    pairs = zip(text.split(), other.split(), strict=True)
    changed = [(word, own) for word, own in pairs if word != own]
    lengths = [len(word) for word, _ in changed]
    return (
        "_" not in text
        and (text.islower() or other.islower())
        and max(lengths) >= _MIN_WORD
        and min(lengths) > 1
        and all(word[1:] == own[1:] for word, own in changed)
    )


def _renaming(name: str, spellings: Sequence[str], new: str) -> RepairChoice:
    old = [text for text in spellings if text != new]
    step = RepairStep("vault.renameValue", {"property": name, "from": old, "to": new})
    return RepairChoice(f"{name}: {_listed(old)} → “{new}”", (step,))
