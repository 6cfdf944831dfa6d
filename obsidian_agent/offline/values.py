"""One reader for each kind of value: for forms, example sentences, models' answers, macros and the command line."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from obsidian_agent.errors import PlanError, Problem, VaultError
from obsidian_agent.expression import expression, unicode_expression
from obsidian_agent.offline import note_set, sentence
from obsidian_agent.offline.names import NameKind, Surroundings, folder_exists, key_of
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
from obsidian_agent.plan.parameters import coerce_value
from obsidian_agent.vault.markdown import edits
from obsidian_agent.vault.paths.path import PathUse, parse
from obsidian_agent.vault.text import decode

PATH_KINDS: Final = frozenset(
    {"path", "folder", "newNote", "newName"}
)  # kinds that are a place in the vault, perhaps a new one
# What notes can be sorted or grouped by, besides their properties.
FIELDS_OF_NOTES: Final = frozenset(
    {"name", "path", "folder", "tags", "modified", "created", "day", "size"}
)
BLANK_VALUES: Final = frozenset({"text", "folder"})
"""Kinds of which a blank text is a value: no text, the root of the vault."""

_CHOICES: Final = {
    "is": {state: state for state in STATES},
    "tasks": {state: state for state in TASKS},
}
_TERM: Final = unicode_expression(
    r"(?P<not>-)?(?:(?P<key>[a-z]+(?:-[a-z]+)?):(?P<op>>=|<=|>|<)?(?:\"(?P<quoted>(?:[^\"\\]|\\.)*)\"|(?P<bare>[^\s\"\[]\S*))"
    r"|\[(?P<property>(?:[^\]\"<>:=]|\"(?:[^\"\\]|\\.)*\")+?)(?:(?P<compared>:?(?:>=|<=|>|<)|:)(?:\"(?P<value>(?:[^\"\\]|\\.)*)\"|(?P<plain>(?![<>=/])[^\]\"]*)))?\]"
    r"|(?P<tag>#[^\s]+))(?:\s+|$)"
)
_LINK: Final = expression(r"\[\[([^\[\]|#]+)\]\]")
_ESCAPED: Final = expression(r"\\(.)")
_DATE: Final = expression(r"(?:\[\[)?\d{4}-\d{2}-\d{2}")


def read(
    wanted: Input,
    given: Any,
    around: Surroundings,
    others: Mapping[str, Any] | None = None,
    *,
    known: bool = False,
) -> Any:
    """The value of a text for an input; `others` are values read before it, by name. What is no text must fit already.

    `known`: only what the vault knows will do, as for words of a sentence that are not in quotes. Raises `InvalidValue`.
    """
    if isinstance(given, NoteSet) and wanted.kind == "notes":
        return given
    if isinstance(given, NoteSet | dict):
        raise InvalidValue(f"{wanted.description}: a text is needed.")
    given = form_text(wanted, given)
    text = given.strip() if wanted.kind not in ("text", "value", "choice") else given
    if is_blank(wanted, text) and wanted.kind not in BLANK_VALUES:
        raise InvalidValue(f"{wanted.description}: a value is needed.")
    if wanted.kind in ("text", "path", "list") and known:
        raise InvalidValue("Free text is certain only in quotes.")
    return _read(wanted, text, around, (others or {}).get(wanted.of or ""), known)


def _read(wanted: Input, text: str, around: Surroundings, of: Any, known: bool) -> Any:
    match wanted.kind:
        case "notes":
            return read_set(text, around, known=known)
        case "note" | "template" | "entry":
            kinds: tuple[NameKind, ...] = (
                ("note", "alias", "folder", "file") if wanted.kind == "entry" else ("note", "alias")
            )
            below = (
                (around.context.notes.templates or "Templates") if wanted.kind == "template" else ""
            )
            return _one(text, around, *kinds, below=below)
        case "folder":
            return _folder(text, around, known=known)
        case "tag" | "tags" | "property" | "properties":
            one = _tag if wanted.kind.startswith("tag") else _property
            if wanted.kind in ("tag", "property"):
                return one(text, around, known)
            # Between commas, and tags with their sign also between blanks.
            parts = [
                part
                for each in text.split(",")
                for part in (each.split() if "#" in text else [each.strip()])
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
            return _choice(text, wanted)
        case "date":
            day = sentence.parse_day(text, around.context.now.date())
            if day is None:
                raise InvalidValue(f"“{text}” is no day.", hint="Write it like 2026-03-14.")
            return day.isoformat()
        case "value":
            return _value(text, of, around, known)
        case _:
            try:
                return coerce_value(text, wanted.type)
            except PlanError as error:
                raise InvalidValue(f"{wanted.description}: {error.message}") from error


def is_blank(wanted: Input, text: Any) -> bool:
    """Return whether a text holds no value. A blank that is one of the options is a value."""
    return isinstance(text, str) and not text.strip() and text not in wanted.options


def may_be_blank(wanted: Input) -> bool:
    """Return whether an input may be displayed blank: it is optional, or blank is a value of it."""
    return wanted.optional or (wanted.default is not None and wanted.kind in BLANK_VALUES)


def form_text(wanted: Input, value: Any) -> str:
    """A value as a form shows it, and as `--param` takes it: `read` reads it again."""
    match value:
        case NoteSet():
            return value.query()
        case None:
            return ""
        case list():
            return (
                ", ".join(map(str, value))
                if not any("," in str(each) for each in value)
                else json.dumps(value, ensure_ascii=False)
            )
        case _:
            return note_set.property_text(value)


def phrase(value: Any) -> str:
    """A value as it reads in a goal."""
    match value:
        case NoteSet():
            return value.text()
        case list():
            return ", ".join(map(phrase, value))
        case _:
            return "this note" if value == ACTIVE else note_set.property_text(value)


def headings(note: str, around: Surroundings) -> list[str]:
    """The texts of a note's headings, in order; none when it cannot be read."""
    path = around.active_file if note == ACTIVE else note
    try:
        where = parse(path or "", PathUse.READ)
        return [
            heading.text for heading in edits.headings(decode(around.view.read(where), where.text))
        ]
    except VaultError:
        return []


def _one(text: str, around: Surroundings, *kinds: NameKind, below: str = "") -> str:
    """The one entry of these kinds that a text names, by path, name, alias or link; of several, those `below` a folder count."""
    if "note" in kinds and text.casefold() in THIS_NOTE | {ACTIVE.casefold()}:
        if around.active_file is None:
            raise InvalidValue("No note is open: name one.")
        return ACTIVE
    bare = (
        text[2:-2].partition("|")[0] if text.startswith("[[") and text.endswith("]]") else text
    ).rstrip("/")
    found = list(dict.fromkeys(str(name.value) for name in around.names.find(bare, *kinds)))
    if len(found) > 1:
        found = [path for path in found if below and path.startswith(f"{below}/")] or found
    whole = [path for path in found if path == bare]
    whole = whole or [
        path
        for path in found
        if key_of(path.removesuffix(".md")) == key_of(bare.removesuffix(".md"))
    ]
    if len(whole) == 1 or len(found) == 1:
        return (whole or found)[0]
    if found:
        raise InvalidValue(f"Several are called “{bare}”: {', '.join(found[:4])}.")
    what = {1: kinds[0], 2: "note"}.get(len(kinds), "note, folder or file")
    raise InvalidValue(f"There is no {what} called “{bare}”.")


def _folder(text: str, around: Surroundings, *, known: bool) -> str:
    """A folder that exists, by path or name; else, when it need not be known, a new one."""
    bare = text.strip("/")
    if not bare or folder_exists(around.view, bare):
        return bare
    if known or around.names.find(bare, "folder"):
        return _one(bare, around, "folder")
    return _legal(text.rstrip("/"))


def _free(text: str, known: bool, ending: str = ".md") -> str:
    """The path of something new."""
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
    """Why a text can be no place that a plan may touch; None for any other text, also one that is wrong for less."""
    try:
        parse(text, PathUse.CREATE)
    except VaultError as error:
        return error.problem() if error.code in ("PATH_OUTSIDE_VAULT", "PATH_NOT_ALLOWED") else None
    return None


def _beside(name: str, old: Any, around: Surroundings) -> str:
    """The path of an entry with another name; a name with a slash is the whole new path."""
    path = around.active_file if old == ACTIVE else old
    if not isinstance(path, str):
        raise InvalidValue("Name first what gets another name.")
    folder, _, file = path.rpartition("/")
    ending = (
        file[file.rfind(".") :]
        if "." in file.lstrip(".") and not folder_exists(around.view, path)
        else ""
    )
    made = name if not ending or name.lower().endswith(ending.lower()) else f"{name}{ending}"
    return made if "/" in made or not folder else f"{folder}/{made}"


def _tag(text: str, around: Surroundings, known: bool) -> str:
    bare = text.lstrip("#").rstrip("/")
    found = around.names.find(bare, "tag")
    if found:
        return str(found[0].value)
    if (
        not bare
        or any(char.isspace() for char in bare)
        or bare.isdigit()
        or (known and not text.startswith("#"))
    ):
        raise InvalidValue(f"“{text}” is no tag." if not known else f"No note has a tag “{text}”.")
    return bare


def _property(text: str, around: Surroundings, known: bool) -> str:
    found = around.names.find(text, "property")
    if found:
        return str(found[0].value)
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
    if isinstance(note, str):
        there = headings(note, around)
        found = [each for each in there if key_of(each) == key_of(bare)]
        if found:
            return found[0]
        raise InvalidValue(
            f"There is no heading “{bare}” in it.",
            hint=f"It has {', '.join(there[:6])}." if there else "It has no headings.",
        )
    if known:
        raise InvalidValue("A heading is certain only in quotes.")
    return bare


def _choice(text: str, wanted: Input) -> Any:
    for value, label in wanted.options.items():
        if text == value or text.strip().casefold() in (value.casefold(), label.casefold()):
            return plain(value)
    raise InvalidValue(f"{wanted.description}: {', '.join(wanted.options.values())}; not “{text}”.")


def _value(
    text: str, name: Any, around: Surroundings, known: bool = False, *, quoted: bool = False
) -> Any:
    """A value that the property has elsewhere keeps its type; numbers, true and false are what they look like; a day where it has days.

    What must be `known` is a value it has, or no plain text; in quotes it is one that it has, or a text.
    """
    there = around.names.properties.get(name, {}) if isinstance(name, str) else {}
    found = next((value for each, value in there.items() if key_of(each) == key_of(text)), None)
    if found is not None or quoted:
        return text if found is None else found
    value = plain(text.strip())
    day = sentence.parse_day(text, around.context.now.date()) if isinstance(value, str) else None
    if known and day is None and isinstance(value, str):
        raise InvalidValue(f"No note has the value “{text}”.")
    dated = any(isinstance(each, str) and _DATE.match(each) for each in there.values()) or (
        not there and key_of(text) in sentence.NEAR
    )
    return day.isoformat() if day is not None and dated else value


def read_set(text: str, around: Surroundings, *, known: bool = False) -> NoteSet:
    """The description that a text is. `known`: only the name of one note, or a tag, will do. Raises `InvalidValue`."""
    wanted = text.strip()
    if not known and wanted.casefold() in EVERYTHING:
        return NoteSet()
    named = _named(wanted, around)
    if known and (named is None or named.key == "folder" or around.names.find(wanted, "folder")):
        raise InvalidValue(f"No note alone is called “{wanted}”.")
    if named is not None:
        return NoteSet((named,))
    parts = wanted.split(",")
    notes = [
        term
        for part in parts
        if (term := _named(part.strip(), around)) is not None and term.key == "note"
    ]
    if len(notes) == len(parts):
        return NoteSet(tuple(notes))
    terms: list[Term] = []
    place = 0
    while place < len(wanted):
        found = _TERM.match(wanted, place)
        if found is None or found.end() == place:
            raise InvalidValue(
                f"“{wanted[place:]}” describes no notes.",
                hint="Name a note, a folder or a #tag, or write for example: tag:#done folder:Projects [rating>=4].",
            )
        terms.append(_term(found, around))
        place = found.end()
    if not terms:
        raise InvalidValue("Which notes? Name a note, a folder or a #tag.")
    return NoteSet(tuple(terms))


def _named(text: str, around: Surroundings) -> Term | None:
    """The description that a name alone is: a tag with its `#`, a note, or else a folder. None when it is none, or several."""
    if text.casefold() in THIS_NOTE and around.active_file is not None:
        return Term("note", ACTIVE)
    link = _LINK.fullmatch(text)
    bare = link[1] if link else text
    if text.startswith("#"):
        found = around.names.find(text, "tag")
        return Term("tag", found[0].value) if found else None
    notes = {name.value for name in around.names.find(bare, "note", "alias")}
    if len(notes) == 1:
        return Term("note", notes.pop())
    folders = {name.value for name in around.names.find(bare.rstrip("/"), "folder")}
    return Term("folder", folders.pop()) if len(folders) == 1 and not notes else None


def _term(found: Any, around: Surroundings) -> Term:
    negated = found["not"] is not None
    if found["tag"]:
        return Term("tag", found["tag"].lstrip("#"), negated=negated)
    if found["property"]:
        name = found["property"].strip()
        name = _property(
            _unquoted(name[1:-1]) if name.startswith('"') else name, around, known=False
        )
        if found["compared"] is None:
            return Term("property", None, "has", name, negated)
        op: Op = found["compared"].lstrip(":") or ":"
        if found["plain"] is None:
            return Term(
                "property",
                _value(_unquoted(found["value"]), name, around, quoted=True),
                op,
                name,
                negated,
            )
        value = found["plain"].strip()
        if op == ":" and value in ("", "null", "*"):
            return Term("property", None, "has" if value == "*" else "lacks", name, negated)
        if not value or " OR " in value:
            raise InvalidValue(
                f"“{found[0].strip()}” describes no notes.",
                hint="Compare with one value, for example [rating:>=4] or [due:<today].",
            )
        return Term("property", _value(value, name, around), op, name, negated)
    key, value = (
        found["key"],
        found["bare"] if found["bare"] is not None else _unquoted(found["quoted"]),
    )
    if key not in KEYS:
        raise InvalidValue(
            f"“{key}:” is no field of a description.", hint=f"There are {', '.join(KEYS)}."
        )
    kind = KEYS[key][0]
    wanted = Input(name=key, kind=kind, description=f"{key}:", options=_CHOICES.get(key, {}))
    op = found["op"] or (">=" if kind == "date" else ":")
    return Term(
        key, _read(wanted, value, around, None, known=kind == "folder"), op, negated=negated
    )


def _unquoted(text: str) -> str:
    return str(_ESCAPED.sub(r"\1", text))
