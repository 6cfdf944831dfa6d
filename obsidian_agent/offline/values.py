"""One reader for each kind of value: for forms, example sentences, models' answers, macros and the command line."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from obsidian_agent.errors import PlanError, Problem, VaultError
from obsidian_agent.offline import dates, note_set
from obsidian_agent.offline.names import NameKind, folder_exists, key_of
from obsidian_agent.offline.note_set import ACTIVE, NoteSet, Unread, read_set
from obsidian_agent.offline.recipe import Input
from obsidian_agent.offline.surroundings import Surroundings
from obsidian_agent.plan.parameters import fitted
from obsidian_agent.vault.markdown import edits
from obsidian_agent.vault.paths.path import PathUse, parse
from obsidian_agent.vault.text import decode

PLACES: Final = frozenset({"path", "folder", "newNote", "newName"})
"""Kinds that are a place in the vault, perhaps a new one."""

FIELDS_OF_NOTES: Final = frozenset({"name", "path", "folder", "tags", "modified", "created", "day", "size"})
"""What notes can be sorted or grouped by, besides their properties."""


def read(wanted: Input, given: Any, around: Surroundings, others: Mapping[str, Any] | None = None, *, known: bool = False) -> Any:
    """The value of a text for an input; `others` are values read before it, by name. What is no text must fit already.

    `known`: only what the vault knows will do, as for words of a sentence that are not in quotes. Raises `Unread`.
    """
    if not isinstance(given, str):
        return _fit(wanted, given)
    text = given.strip() if wanted.kind not in ("text", "value") else given
    if not text.strip() and wanted.kind not in ("text", "folder"):
        raise Unread(f"{wanted.description}: a value is needed.")
    if wanted.kind in ("text", "path", "list") and known:
        raise Unread("Free text is certain only in quotes.")
    return _read(wanted, text, around, (others or {}).get(wanted.of or ""), known)


def _read(wanted: Input, text: str, around: Surroundings, of: Any, known: bool) -> Any:
    match wanted.kind:
        case "notes":
            return read_set(text, around, known=known)
        case "note" | "template" | "entry":
            return _one(text, wanted, around)
        case "folder":
            return _folder(text, around, known=known)
        case "tag" | "tags" | "property" | "properties":
            one = _tag if wanted.kind.startswith("tag") else _property
            many = wanted.kind in ("tags", "properties")
            return list(dict.fromkeys(one(part, around, known) for part in _parts(text))) if many else one(text, around, known)
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
            return note_set.day(text, around)
        case "value":
            return _value(text, of, around, known)
        case _:
            return _typed(wanted, text)


def shown(wanted: Input, value: Any) -> str:
    """A value as a form shows it, and as `--param` takes it: `read` reads it again."""
    match value:
        case NoteSet():
            return value.query()
        case None:
            return ""
        case list():
            return ", ".join(map(str, value)) if not any("," in str(each) for each in value) else json.dumps(value, ensure_ascii=False)
        case _:
            return note_set.shown(value)


def said(value: Any) -> str:
    """A value as it reads in a goal."""
    match value:
        case NoteSet():
            return value.text()
        case list():
            return ", ".join(map(said, value))
        case _:
            return "this note" if value == ACTIVE else note_set.shown(value)


def headings(note: str, around: Surroundings) -> list[str]:
    """The texts of a note's headings, in order; none when it cannot be read."""
    path = around.active_file if note == ACTIVE else note
    try:
        where = parse(path or "", PathUse.READ)
        return [heading.text for heading in edits.headings(decode(around.view.read(where), where.text))]
    except VaultError:
        return []


def _fit(wanted: Input, value: Any) -> Any:
    if wanted.kind == "notes":
        if isinstance(value, NoteSet):
            return value
        raise Unread(f"{wanted.description}: describe the notes in a text.")
    if wanted.kind == "value" and isinstance(value, str | int | float | bool | list):
        return value
    return _typed(wanted, value)


def _typed(wanted: Input, value: Any) -> Any:
    try:
        return fitted(value, wanted.type)
    except PlanError as error:
        raise Unread(f"{wanted.description}: {error.message}") from error


def _one(text: str, wanted: Input, around: Surroundings) -> str:
    kinds: tuple[NameKind, ...] = ("note", "alias", "folder", "file") if wanted.kind == "entry" else ("note", "alias")
    below = (around.context.notes.templates or "Templates") if wanted.kind == "template" else ""
    return note_set.named(text, around, *kinds, below=below)


def _folder(text: str, around: Surroundings, *, known: bool) -> str:
    """A folder that exists, by path or name; else, when it need not be known, a new one."""
    bare = text.strip("/")
    if not bare or folder_exists(around.view, bare):
        return bare
    if known or around.names.find(bare, "folder"):
        return note_set.one(bare, around, "folder")
    return _legal(text.rstrip("/"))


def _free(text: str, known: bool, ending: str = ".md") -> str:
    """The path of something new."""
    if known:
        raise Unread("A new name is certain only in quotes.")
    bare = text[2:-2] if text.startswith("[[") and text.endswith("]]") else text
    return _legal(bare if not ending or bare.lower().endswith(ending) else f"{bare}{ending}")


def _legal(path: str) -> str:
    try:
        return parse(path, PathUse.CREATE).text
    except VaultError as error:
        raise Unread(error.message, code=error.code, hint=error.hint) from error


def out_of_bounds(text: str) -> Problem | None:
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
        raise Unread("Name first what gets another name.")
    folder, _, file = path.rpartition("/")
    ending = file[file.rfind(".") :] if "." in file.lstrip(".") and not folder_exists(around.view, path) else ""
    made = name if not ending or name.lower().endswith(ending.lower()) else f"{name}{ending}"
    return made if "/" in made or not folder else f"{folder}/{made}"


def _tag(text: str, around: Surroundings, known: bool) -> str:
    bare = text.lstrip("#").rstrip("/")
    found = around.names.find(bare, "tag")
    if found:
        return str(found[0].value)
    if not bare or any(char.isspace() for char in bare) or bare.isdigit() or (known and not text.startswith("#")):
        raise Unread(f"“{text}” is no tag." if not known else f"No note has a tag “{text}”.")
    return bare


def _property(text: str, around: Surroundings, known: bool) -> str:
    found = around.names.find(text, "property")
    if found:
        return str(found[0].value)
    if known:
        raise Unread(f"No note has a property “{text}”.")
    return text.strip()


def _field(text: str, around: Surroundings) -> str:
    if text.casefold().lstrip("-") in FIELDS_OF_NOTES or text.lstrip("-").startswith("frontmatter."):
        return text.lower() if not text.lstrip("-").startswith("frontmatter.") else text
    return f"frontmatter.{_property(text, around, known=True)}"


def _heading(text: str, note: Any, around: Surroundings, known: bool) -> str:
    bare = text.lstrip("#").strip()
    if isinstance(note, str):
        there = headings(note, around)
        found = [each for each in there if key_of(each) == key_of(bare)]
        if found:
            return found[0]
        raise Unread(f"There is no heading “{bare}” in it.", hint=f"It has {', '.join(there[:6])}." if there else "It has no headings.")
    if known:
        raise Unread("A heading is certain only in quotes.")
    return bare


def _choice(text: str, wanted: Input) -> Any:
    for value, label in wanted.options.items():
        if text.casefold() in (value.casefold(), label.casefold()):
            return note_set.plain(value)
    raise Unread(f"{wanted.description}: {', '.join(wanted.options.values())}; not “{text}”.")


def _value(text: str, name: Any, around: Surroundings, known: bool) -> Any:
    """What a property is set to: see `note_set.value_of`. What must be `known` is a value it has, or no plain text."""
    value = note_set.value_of(text, name if isinstance(name, str) else "", around)
    there = around.names.properties.get(name, {}) if isinstance(name, str) else {}
    if known and value == text.strip() and key_of(text) not in map(key_of, there) and dates.parse(text, around.context.now.date()) is None:
        raise Unread(f"No note has the value “{text}”.")
    return value


def _parts(text: str) -> list[str]:
    """What stands between commas, of tags with their sign also between blanks."""
    return [part for each in text.split(",") for part in (each.split() if "#" in text else [each.strip()]) if part]
