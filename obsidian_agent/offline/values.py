"""Readers of values, one per kind.

Forms, example sentences, answers of models, macros and the command line share them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import date
from typing import Any, Final
from unicodedata import numeric

from obsidian_agent.errors import PlanError, Problem, VaultError
from obsidian_agent.expression import expression, unicode_expression
from obsidian_agent.offline import note_set
from obsidian_agent.offline.names import NameKind, Surroundings, VaultNames, folder_exists, key_of
from obsidian_agent.offline.note_set import (
    ACTIVE,
    EVERYTHING,
    KEYS,
    STATES,
    TASKS,
    THIS_NOTE,
    InvalidValue,
    NoteSet,
    Op,
    Term,
    plain,
)
from obsidian_agent.offline.recipe import Input
from obsidian_agent.offline.words import NEAR, tokens
from obsidian_agent.plan.parameters import coerce_value
from obsidian_agent.vault.markdown import edits
from obsidian_agent.vault.paths.path import PathUse, parse
from obsidian_agent.vault.text import decode

PATH_KINDS: Final = frozenset({"path", "folder", "newNote", "newName"})
"""Kinds whose value is a path in the vault, possibly a new one."""
FIELDS_OF_NOTES: Final = frozenset(
    {"name", "path", "folder", "tags", "modified", "created", "day", "size"}
)
"""Fields to sort or group notes by, in addition to properties."""
BLANK_VALUES: Final = frozenset({"text", "folder"})
"""Kinds for which a blank is a value: empty text, or the root of the vault."""

_CHOICES: Final = {
    "is": {state: state for state in STATES},
    "tasks": {state: state for state in TASKS},
}
_TERM: Final = unicode_expression(
    r"(?P<not>-)?(?:"
    r"(?P<key>[a-z]+(?:-[a-z]+)?):(?P<op>>=|<=|>|<)?"
    r"(?:\"(?P<quoted>(?:[^\"\\]|\\.)*)\"|(?P<bare>[^\s\"\[]\S*))"
    r"|\[(?P<property>(?:[^\]\"<>:=]|\"(?:[^\"\\]|\\.)*\")+?)"
    r"(?:(?P<compared>:?(?:>=|<=|>|<)|:)"
    r"(?:\"(?P<value>(?:[^\"\\]|\\.)*)\"|(?P<plain>(?![<>=/])[^\]\"]*)))?\]"
    r"|(?P<tag>#[^\s]+))(?:\s+|$)"
)
_NUMBERED: Final = unicode_expression(
    r"(?P<name>.*?)(?P<first>\d{1,6})\s*"
    r"(?:to|bis|à|a|al|až|до|-|–|—|…|\.\.)\s*(?P=name)?(?P<last>\d{1,6})"
)
_LAST_AND: Final = unicode_expression(r",?\s+(?:and|und|et|y|e|a|и)\s+(?=[^,]*$)")
MAX_SERIES: Final = 400
"""Names of a series that is counted."""
_NO_NOTE: Final = "No note is open. Enter the name of a note."
_WITH_UNIT: Final = unicode_expression(
    r"(?:(?P<digits>\d+(?:\.\d+)?)\s?|(?P<han>[一二三四五六七八九十百千]+))\p{L}+"
)
_LINK: Final = expression(r"\[\[([^\[\]|#]+)\]\]")
_ESCAPED: Final = expression(r"\\(.)")
_DATE: Final = expression(r"(?:\[\[)?\d{4}-\d{2}-\d{2}")


def read(
    spec: Input,
    value: Any,
    around: Surroundings,
    others: Mapping[str, Any] | None = None,
    *,
    known: bool = False,
) -> Any:
    """Return the value of an input from a text, or from a value that has the right type already.

    `others` are the values read before it, by name. With `known`, the text must be a name of the
    vault, as for words of a sentence without quotes. Raise `InvalidValue` if it cannot be read.
    """
    if isinstance(value, NoteSet) and spec.kind == "notes":
        return value
    if isinstance(value, dict) and spec.kind == "pairs":
        return value
    if isinstance(value, NoteSet | dict):
        raise InvalidValue(f"{spec.description}: text is required.")
    value = form_text(spec, value)
    text = value.strip() if spec.kind not in ("text", "value", "choice") else value
    if is_blank(spec, text) and spec.kind not in BLANK_VALUES:
        raise InvalidValue(f"{spec.description}: a value is required.")
    if spec.kind in ("text", "path", "list", "names") and known:
        raise InvalidValue("Free text is certain only in quotes.")
    return _read(spec, text, around, (others or {}).get(spec.of or ""), known)


def _read(spec: Input, text: str, around: Surroundings, of: Any, known: bool) -> Any:
    match spec.kind:
        case "notes":
            return read_set(text, around, known=known)
        case "note" | "template" | "entry":
            kinds: tuple[NameKind, ...] = (
                ("note", "alias", "folder", "file") if spec.kind == "entry" else ("note", "alias")
            )
            below = (
                (around.context.notes.templates or "Templates") if spec.kind == "template" else ""
            )
            return _one(text, around, *kinds, below=below)
        case "folder":
            return _folder(text, around, known=known)
        case "tag" | "tags" | "property" | "properties":
            one = _tag if spec.kind.startswith("tag") else _property
            if spec.kind in ("tag", "property"):
                return one(text, around, known)
            # Items are separated by commas; tags with their sign also by spaces.
            parts = [
                part
                for piece in text.split(",")
                for part in (piece.split() if "#" in text else [piece.strip()])
                if part
            ]
            return list(dict.fromkeys(one(part, around, known) for part in parts))
        case "field":
            return _field(text, around)
        case "heading":
            return _heading(text, of, around, known)
        case "newNote":
            return _free(text, known)
        case "newName":
            return _beside(_free(text, known, ending=""), of, around)
        case "choice":
            return _choice(text, spec)
        case "date" | "day":
            return _date(spec, text, around)
        case "value":
            return _value(text, of, around, known)
        case "pairs":
            return _pairs(spec, text, around)
        case _:
            try:
                return coerce_value(names_of(text) if spec.kind == "names" else text, spec.type)
            except PlanError as error:
                raise InvalidValue(f"{spec.description}: {error.message}") from error


def names_of(text: str) -> str | list[str]:
    """Return the names of a series: months, weekdays, or numbers as in “Week 1 to 10”.

    Of any other text, the names are separated by commas, the last one perhaps by “and”.
    """
    if match := _NUMBERED.fullmatch(text.strip()):
        first, last = int(match["first"]), int(match["last"])
        width = len(match["first"])
        numbers = range(first, min(last, first + MAX_SERIES - 1) + 1)
        return [f"{match['name']}{number:0{width}}" for number in numbers]
    from obsidian_agent.offline.days import MONTHS, WEEKDAYS

    senses = frozenset().union(*(token.senses for token in tokens(text)))
    days = [day.capitalize() for day in WEEKDAYS]
    series = {"weekday": days, "month": [month.capitalize() for month in MONTHS]}
    others = senses - {*series, "each", "every", "all", "day", "week", "of", "year", "the"}
    named = [names for name, names in series.items() if name in senses and not others]
    if named:
        return named[0]
    return _LAST_AND.sub(",", text) if "," in text else text


def without_unit(text: str, name: str | None, names: VaultNames) -> str:
    """Return a number without the unit behind it, if a property has only numbers: “4 people”."""
    values = names.properties.get(name or "", {}).values()
    are_numbers = all(isinstance(value, int | float) for value in values)
    match = _WITH_UNIT.fullmatch(text.strip())
    if not values or not are_numbers or any(isinstance(value, bool) for value in values):
        return text
    if match is None:
        return text
    return match["digits"] or str(_han_number(match["han"]))


def _han_number(text: str) -> int:
    """Return the number in Chinese numerals: 三百五."""
    total, digit = 0, 0
    for value in (int(numeric(character)) for character in text):
        if value < 10:
            digit = value
        else:
            total, digit = total + (digit or 1) * value, 0
    return total + digit


def _date(spec: Input, text: str, around: Surroundings) -> Any:
    """Return a date as YYYY-MM-DD, or a day as its distance from today."""
    day = _day(text, around)
    if day is None and spec.kind == "day" and isinstance(plain(text), int):
        return plain(text)
    if day is None:
        raise InvalidValue(f"“{text}” is not a date.", hint="Write it like 2026-03-14.")
    return day.isoformat() if spec.kind == "date" else (day - around.context.now.date()).days


def _day(text: str, around: Surroundings) -> date | None:
    # Lazy: most values are not days.
    from obsidian_agent.offline.days import parse_day

    return parse_day(text, around.context.now.date())


def is_blank(spec: Input, text: Any) -> bool:
    """Return True for blank text, unless it is one of the options."""
    return isinstance(text, str) and not text.strip() and text not in spec.options


def may_be_blank(spec: Input) -> bool:
    """Return True if an input is optional, or if a blank is one of its values."""
    return spec.optional or (spec.default is not None and spec.kind in BLANK_VALUES)


def form_text(spec: Input, value: Any) -> str:
    """Return a value as text for forms and `--param`, which `read` reads again."""
    match value:
        case NoteSet():
            return value.query()
        case None:
            return ""
        case dict():
            pairs = (f"{name}: {note_set.property_text(one)}" for name, one in value.items())
            return "; ".join(pairs)
        case list():
            if any("," in str(item) for item in value):
                return json.dumps(value, ensure_ascii=False)
            return ", ".join(map(str, value))
        case _:
            return note_set.property_text(value)


def phrase(value: Any) -> str:
    """Return the wording of a value in a goal."""
    match value:
        case NoteSet():
            return value.text()
        case list():
            return ", ".join(map(phrase, value))
        case dict():
            return ", ".join(f"{name}: {phrase(one)}" for name, one in value.items())
        case _:
            return "this note" if value == ACTIVE else note_set.property_text(value)


def headings(note: str, around: Surroundings) -> list[str]:
    """Return the texts of a note's headings in order, or [] if the note cannot be read."""
    path = around.active_file if note == ACTIVE else note
    try:
        location = parse(path or "", PathUse.READ)
        return [
            heading.text
            for heading in edits.headings(decode(around.view.read(location), location.text))
        ]
    except VaultError:
        return []


def _one(text: str, around: Surroundings, *kinds: NameKind, below: str = "") -> str:
    """Return the only entry that a text names, by path, name, alias or link.

    Of several, those `below` a folder are preferred.
    """
    if "note" in kinds and text.casefold() in THIS_NOTE | {ACTIVE.casefold()}:
        if around.active_file is None:
            raise InvalidValue(_NO_NOTE)
        return ACTIVE
    bare = (
        text[2:-2].partition("|")[0] if text.startswith("[[") and text.endswith("]]") else text
    ).rstrip("/")
    paths = list(dict.fromkeys(str(name.value) for name in around.names.find(bare, *kinds)))
    if len(paths) > 1:
        paths = [path for path in paths if below and path.startswith(f"{below}/")] or paths
    whole = [path for path in paths if path == bare]
    whole = whole or [
        path
        for path in paths
        if key_of(path.removesuffix(".md")) == key_of(bare.removesuffix(".md"))
    ]
    if len(whole) == 1 or len(paths) == 1:
        return (whole or paths)[0]
    if paths:
        raise InvalidValue(f"“{bare}” is ambiguous: {', '.join(paths[:4])}.")
    noun = {1: kinds[0], 2: "note"}.get(len(kinds), "note, folder or file")
    raise InvalidValue(f"There is no {noun} called “{bare}”.")


def _folder(text: str, around: Surroundings, *, known: bool) -> str:
    """Return the path of a folder by path or name, or of a new folder unless `known`."""
    bare = text.strip("/")
    if not bare or folder_exists(around.view, bare):
        return bare
    if known or around.names.find(bare, "folder"):
        return _one(bare, around, "folder")
    return _legal(text.rstrip("/"))


def _free(text: str, known: bool, ending: str = ".md") -> str:
    """Return the path of a new file."""
    if known:
        raise InvalidValue("A new name is certain only in quotes.")
    bare = text[2:-2] if text.startswith("[[") and text.endswith("]]") else text
    return _legal(bare if not ending or bare.lower().endswith(ending) else f"{bare}{ending}")


def _legal(path: str) -> str:
    try:
        return parse(path, PathUse.CREATE).text
    except VaultError as error:
        raise InvalidValue(error.message, code=error.code, hint=error.hint) from error


def forbidden_path(text: str) -> Problem | None:
    """Return the problem of a path that plans may not use: outside the vault or protected.

    Return None for any other text, even if it is not a valid path.
    """
    try:
        parse(text, PathUse.CREATE)
    except VaultError as error:
        return error.problem() if error.code in ("PATH_OUTSIDE_VAULT", "PATH_NOT_ALLOWED") else None
    return None


def _beside(name: str, old: Any, around: Surroundings) -> str:
    """Return the path of an entry with a new name; a name with a slash is the whole path."""
    path = around.active_file if old == ACTIVE else old
    if not isinstance(path, str):
        raise InvalidValue("Choose the note or folder to rename first.")
    folder, _, file = path.rpartition("/")
    ending = (
        file[file.rfind(".") :]
        if "." in file.lstrip(".") and not folder_exists(around.view, path)
        else ""
    )
    new_name = name if not ending or name.lower().endswith(ending.lower()) else f"{name}{ending}"
    return new_name if "/" in new_name or not folder else f"{folder}/{new_name}"


def _tag(text: str, around: Surroundings, known: bool) -> str:
    bare = text.lstrip("#").rstrip("/")
    matches = around.names.find(bare, "tag")
    if matches:
        return str(matches[0].value)
    if (
        not bare
        or any(char.isspace() for char in bare)
        or bare.isdigit()
        or (known and not text.startswith("#"))
    ):
        raise InvalidValue(
            f"No note has a tag “{text}”." if known else f"“{text}” is not a valid tag."
        )
    return bare


def _property(text: str, around: Surroundings, known: bool) -> str:
    matches = around.names.find(text, "property")
    if matches:
        return str(matches[0].value)
    if known:
        raise InvalidValue(f"No note has a property “{text}”.")
    return text.strip()


def _field(text: str, around: Surroundings) -> str:
    if text.casefold().lstrip("-") in FIELDS_OF_NOTES or text.lstrip("-").startswith(
        "frontmatter."
    ):
        return text.lower() if not text.lstrip("-").startswith("frontmatter.") else text
    return f"frontmatter.{_property(text, around, known=True)}"


def _heading(text: str, note: Any, around: Surroundings, known: bool) -> str:
    bare = text.lstrip("#").strip()
    if note == ACTIVE and around.active_file is None:
        raise InvalidValue(_NO_NOTE)
    if isinstance(note, str):
        existing = headings(note, around)
        matches = [heading for heading in existing if key_of(heading) == key_of(bare)]
        if matches:
            return matches[0]
        raise InvalidValue(
            f"The note has no heading “{bare}”.",
            hint=f"It has {', '.join(existing[:6])}." if existing else "It has no headings.",
        )
    if known:
        raise InvalidValue("A heading is certain only in quotes.")
    return bare


def _choice(text: str, spec: Input) -> Any:
    for value, label in spec.options.items():
        if text == value or text.strip().casefold() in (value.casefold(), label.casefold()):
            return plain(value)
    raise InvalidValue(f"{spec.description}: {', '.join(spec.options.values())}; not “{text}”.")


def _value(
    text: str, name: Any, around: Surroundings, known: bool = False, *, quoted: bool = False
) -> Any:
    """Return the value of a property.

    A value that another note has keeps its type. Otherwise numbers, true and false are converted,
    and days if other notes have dates. With `known`, other text is invalid; `quoted` text is not
    converted.
    """
    values = around.names.properties.get(name, {}) if isinstance(name, str) else {}
    known_value = next(
        (value for label, value in values.items() if key_of(label) == key_of(text)), None
    )
    if known_value is not None or quoted:
        return text if known_value is None else known_value
    value = plain(text.strip())
    day = _day(text, around) if isinstance(value, str) else None
    if known and day is None and isinstance(value, str):
        raise InvalidValue(f"No note has the value “{text}”.")
    dated = any(isinstance(stored, str) and _DATE.match(stored) for stored in values.values()) or (
        not values and key_of(text) in NEAR
    )
    return day.isoformat() if day is not None and dated else value


def _pairs(spec: Input, text: str, around: Surroundings) -> dict[str, Any]:
    # Lazy: few forms have such a field.
    from obsidian_agent.offline.assignments import pairs_of

    pairs = pairs_of(text)
    if pairs is None:
        raise InvalidValue(
            f"{spec.description}: “{text}” is no list of properties with values.",
            hint="Write it like status: paid; rating: 5.",
        )
    names = {name: _property(name, around, known=False) for name, _ in pairs}
    return {names[name]: _value(value, names[name], around) for name, value in pairs}


def read_set(text: str, around: Surroundings, *, known: bool = False) -> NoteSet:
    """Return the description of notes that a text means.

    With `known` it must be the name of one note, or a tag. Raise `InvalidValue` if it is neither.
    """
    description = text.strip()
    if not known and description.casefold() in EVERYTHING:
        return NoteSet()
    named = _named(description, around)
    if known and (
        named is None or named.key == "folder" or around.names.find(description, "folder")
    ):
        raise InvalidValue(f"There is no single note called “{description}”.")
    if named is not None:
        return NoteSet((named,))
    parts = description.split(",")
    notes = [
        term
        for part in parts
        if (term := _named(part.strip(), around)) is not None and term.key == "note"
    ]
    if len(notes) == len(parts):
        return NoteSet(tuple(notes))
    terms: list[Term] = []
    position = 0
    while position < len(description):
        match = _TERM.match(description, position)
        if match is None or match.end() == position:
            raise InvalidValue(
                f"“{description[position:]}” is not a search for notes.",
                hint=(
                    "Enter a note, a folder or a #tag, or for example: "
                    "tag:#done folder:Projects [rating>=4]."
                ),
            )
        terms.append(_term(match, around))
        position = match.end()
    if not terms:
        raise InvalidValue("Which notes? Enter a note, a folder or a #tag.")
    return NoteSet(tuple(terms))


def _named(text: str, around: Surroundings) -> Term | None:
    """Return the term for a tag with `#`, a note or a folder; None if there is not exactly one."""
    if text.casefold() in THIS_NOTE and around.active_file is not None:
        return Term("note", ACTIVE)
    link = _LINK.fullmatch(text)
    bare = link[1] if link else text
    if text.startswith("#"):
        tags = around.names.find(text, "tag")
        return Term("tag", tags[0].value) if tags else None
    notes = {name.value for name in around.names.find(bare, "note", "alias")}
    if len(notes) == 1:
        return Term("note", notes.pop())
    folders = {name.value for name in around.names.find(bare.rstrip("/"), "folder")}
    return Term("folder", folders.pop()) if len(folders) == 1 and not notes else None


def _term(match: Any, around: Surroundings) -> Term:
    negated = match["not"] is not None
    if match["tag"]:
        return Term("tag", match["tag"].lstrip("#"), negated=negated)
    if match["property"]:
        name = match["property"].strip()
        name = _property(
            _unquoted(name[1:-1]) if name.startswith('"') else name, around, known=False
        )
        if match["compared"] is None:
            return Term("property", None, "has", name, negated)
        op: Op = match["compared"].lstrip(":") or ":"
        if match["plain"] is None:
            return Term(
                "property",
                _value(_unquoted(match["value"]), name, around, quoted=True),
                op,
                name,
                negated,
            )
        value = match["plain"].strip()
        if op == ":" and value in ("", "null", "*"):
            return Term("property", None, "has" if value == "*" else "lacks", name, negated)
        if not value or " OR " in value:
            raise InvalidValue(
                f"“{match[0].strip()}” is not a condition for notes.",
                hint="Compare with one value, for example [rating:>=4] or [due:<today].",
            )
        return Term("property", _value(value, name, around), op, name, negated)
    key, value = (
        match["key"],
        match["bare"] if match["bare"] is not None else _unquoted(match["quoted"]),
    )
    if key not in KEYS:
        raise InvalidValue(
            f"“{key}:” is not a field of notes.", hint=f"The fields are {', '.join(KEYS)}."
        )
    kind = KEYS[key][0]
    spec = Input(name=key, kind=kind, description=f"{key}:", options=_CHOICES.get(key, {}))
    op = match["op"] or (">=" if kind == "date" else ":")
    return Term(key, _read(spec, value, around, None, known=kind == "folder"), op, negated=negated)


def _unquoted(text: str) -> str:
    return str(_ESCAPED.sub(r"\1", text))
