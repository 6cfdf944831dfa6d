"""Descriptions of notes: terms that hold together, as form fields, as a condition of `vault.find`, as words, and as text to type.

As text a description is written like a search in Obsidian: `tag:#done folder:Projects [rating>=4] changed:<2026-01-01 -folder:Projects/Old`;
`*` is every note. A name of the vault alone is a description too: a note, a folder, a tag with its `#`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, get_args

import regex

from obsidian_agent.errors import ObsidianAgentError, PlanError
from obsidian_agent.offline import dates
from obsidian_agent.offline.names import NameKind, key_of
from obsidian_agent.offline.recipe import Kind
from obsidian_agent.offline.surroundings import Surroundings
from obsidian_agent.tools.registry import TOOLS

ACTIVE: Final = "${activeFile}"
"""The value of a note that means the one that is open, whichever that is when the plan runs."""

THIS_NOTE: Final = frozenset({"this note", "the open note", "the current note"})
EVERYTHING: Final = frozenset({"*", "all", "all notes"})

Key = Literal[
    "note", "folder", "in", "tag", "property", "name", "text", "changed", "created", "dated", "links-to", "linked-from", "is", "tasks"
]
Op = Literal[":", ">=", "<=", ">", "<", "has", "lacks"]

FIELDS: Final[tuple[Key, ...]] = tuple(key for key in get_args(Key) if key != "property")
"""What may stand before a colon; properties stand in brackets."""

STATES: Final[Mapping[str, tuple[dict[str, Any], str]]] = {
    "tagged": ({"tagged": True}, "with tags"),
    "untagged": ({"tagged": False}, "without tags"),
    "linked": ({"linked": True}, "that others link to"),
    "unlinked": ({"linked": False}, "that nothing links to"),
    "linking": ({"linking": True}, "that link to others"),
    "unlinking": ({"linking": False}, "that link to nothing"),
    "empty": ({"empty": True}, "that are empty"),
    "bare": ({"properties": False}, "without properties"),
}
"""What `is:` takes: the condition, and how it reads."""

SLOTS: Final[Mapping[str, tuple[Key, Op, Kind]]] = {
    "note": ("note", ":", "note"),
    "folder": ("folder", ":", "folder"),
    "outside": ("folder", ":", "folder"),
    "tag": ("tag", ":", "tag"),
    "property": ("property", "has", "property"),
    "value": ("property", ":", "value"),
    "name": ("name", ":", "text"),
    "text": ("text", ":", "text"),
    "before": ("changed", "<", "date"),
    "since": ("changed", ">=", "date"),
    "linksTo": ("links-to", ":", "note"),
    "is": ("is", ":", "choice"),
    "tasks": ("tasks", ":", "choice"),
}
"""The fields by which examples (`{notes.tag}`) and models describe notes: what each adds to a description, and the kind of its value. `value`
is that of the property before; `outside` is negated."""

_COMPARED: Final[Mapping[str, str]] = {">=": "atLeast", "<=": "atMost", ">": "above", "<": "below"}
_TIMES: Final[Mapping[str, str]] = {"changed": "modified", "created": "created", "dated": "dated"}
_LINKED: Final[Mapping[str, str]] = {"links-to": "linksTo", "linked-from": "linkedFrom"}
_WORDS: Final[Mapping[str, str]] = {
    "note": "{name}",
    "folder": "in {value}",
    "in": "right in {value}",
    "tag": "tagged #{value}",
    "name": "named like “{value}”",
    "text": "that hold “{value}”",
    "changed": "changed {when} {value}",
    "created": "made {when} {value}",
    "dated": "about a day {when} {value}",
    "links-to": "that link to {name}",
    "linked-from": "linked from {name}",
}
"""How a term reads behind “notes”, where that is the same for every value."""

TASKS: Final = ("open", "done", "any", "none")
_TERM: Final = regex.compile(
    r"(?P<not>-)?(?:(?P<key>[a-z]+(?:-[a-z]+)?):(?P<op>>=|<=|>|<)?(?:\"(?P<quoted>(?:[^\"\\]|\\.)*)\"|(?P<bare>[^\s\"\[]\S*))"
    r"|\[(?P<property>(?:[^\]\"<>:=]|\"(?:[^\"\\]|\\.)*\")+?)(?:(?P<compared>:?(?:>=|<=|>|<)|:)(?:\"(?P<value>(?:[^\"\\]|\\.)*)\"|(?P<plain>(?![<>=/])[^\]\"]*)))?\]"
    r"|(?P<tag>#[^\s]+))(?:\s+|$)"
)
_PLAIN: Final = regex.compile(r'[^\s"\[<>=]\S*')
_PLAIN_NAME: Final = regex.compile(r'[^\]"<>:=\s][^\]"<>:=]*')
"""Values and names of properties that need no quotes."""

_NUMBER: Final = regex.compile(r"-?\d{1,15}(?:\.\d{1,10})?")
_DATE: Final = regex.compile(r"(?:\[\[)?\d{4}-\d{2}-\d{2}")


class Unread(PlanError):
    """A text is no value of the kind that is wanted. The message says what is wrong and what would do."""

    default_code = "ARGUMENT_INVALID"


@dataclass(frozen=True, slots=True)
class Term:
    """One thing that holds of the notes, or with `negated` does not. `property` is set where the key is `property`."""

    key: Key
    value: Any = None
    op: Op = ":"
    property: str | None = None
    negated: bool = False


@dataclass(frozen=True, slots=True)
class NoteSet:
    """A description of notes. Terms hold together; several `note` terms mean any of those notes. No terms: every note."""

    terms: tuple[Term, ...] = ()

    def condition(self) -> dict[str, Any]:
        """The condition of `vault.find`."""
        named = [term.value for term in self.terms if term.key == "note" and not term.negated]
        parts: list[dict[str, Any]] = [{"paths": named}] if named else []
        for term in self.terms:
            if term.key != "note" or term.negated:
                part = _condition(term)
                parts.append({"not": part} if term.negated else part)
        keys = [key for part in parts for key in part]
        if len(keys) == len(set(keys)):
            return {key: value for part in parts for key, value in part.items()}
        return {"all": parts}

    def text(self) -> str:
        """In words, to stand behind a verb: "notes tagged #done in Projects"."""
        named = [term for term in self.terms if term.key == "note" and not term.negated]
        rest = [_said(term) for term in self.terms if term not in named]
        if not named:
            return " ".join(["notes", *rest]) if rest else "all notes"
        names = [_called(term.value) for term in named]
        return " ".join([" and ".join(filter(None, [", ".join(names[:-1]), names[-1]])), *rest])

    def query(self) -> str:
        """As it is typed; `read_set` reads it again."""
        return " ".join(map(_typed, self.terms)) or "*"

    def paths(self, around: Surroundings) -> tuple[str, ...]:
        """The notes that are meant now. Raises `ObsidianAgentError` for a note or folder that is gone. May block."""
        where = json.loads(json.dumps(self.condition()).replace(ACTIVE, around.active_file or ""))
        found = TOOLS["vault.find"].propose(TOOLS["vault.find"].input.model_validate({"where": where}), around.tools)
        return tuple(file["path"] for file in found.output.model_dump(mode="json", by_alias=True)["files"])


def of_notes(*paths: str) -> NoteSet:
    """These notes."""
    return NoteSet(tuple(Term("note", path) for path in paths))


def with_field(described: NoteSet, field: str, value: Any) -> NoteSet:
    """The description with one more field (see `SLOTS`). Raises `Unread` for a value without a property."""
    key, op, _ = SLOTS[field]
    if field == "property":
        return NoteSet((*described.terms, Term(key, None, op, str(value))))
    if field != "value":
        return NoteSet((*described.terms, Term(key, value, op, negated=field == "outside")))
    if not described.terms or described.terms[-1].key != "property":
        raise Unread("A value stands behind its property.")
    return NoteSet((*described.terms[:-1], Term(key, value, op, described.terms[-1].property)))


def without_templates(described: NoteSet, around: Surroundings) -> NoteSet:
    """What a sentence describes by a tag, a property or a folder, without templates: they are hardly ever meant, and the words say so."""
    folder = around.context.notes.templates
    named = any(term.key in ("note", "links-to", "linked-from") or term.value == folder for term in described.terms)
    if not folder or not described.terms or named:
        return described
    within = NoteSet((*described.terms, Term("folder", folder)))
    try:
        meant = within.paths(around)
    except ObsidianAgentError:
        return described
    return NoteSet((*described.terms, Term("folder", folder, negated=True))) if meant else described


def read_set(text: str, around: Surroundings, *, known: bool = False) -> NoteSet:
    """The description that a text is. `known`: only the name of one note, or a tag, will do. Raises `Unread`."""
    wanted = text.strip()
    if not known and wanted.casefold() in EVERYTHING:
        return NoteSet()
    named = _named(wanted, around)
    if known and (named is None or named.terms[0].key == "folder" or around.names.find(wanted, "folder")):
        raise Unread(f"No note alone is called “{wanted}”.")
    if named is not None:
        return named
    parts = [_named(part.strip(), around) for part in wanted.split(",")]
    if len(parts) > 1 and all(part is not None and part.terms[0].key == "note" for part in parts):
        return NoteSet(tuple(term for part in parts if part is not None for term in part.terms))
    terms: list[Term] = []
    place = 0
    while place < len(wanted):
        found = _TERM.match(wanted, place)
        if found is None or found.end() == place:
            raise Unread(
                f"“{wanted[place:]}” describes no notes.",
                hint="Name a note, a folder or a #tag, or write for example: tag:#done folder:Projects [rating>=4].",
            )
        terms.append(_term(found, around))
        place = found.end()
    if not terms:
        raise Unread("Which notes? Name a note, a folder or a #tag.")
    return NoteSet(tuple(terms))


def stem(path: str) -> str:
    """The name of a note without folder and ending."""
    return path.rpartition("/")[2].removesuffix(".md")


def plain(value: str) -> Any:
    """The value of a property as it is written: a number, true or false, else the text."""
    if _NUMBER.fullmatch(value):
        return float(value) if "." in value else int(value)
    return {"true": True, "false": False}.get(value.casefold(), value)


def value_of(text: str, name: str, around: Surroundings, *, as_text: bool = False) -> Any:
    """A value that the property has elsewhere keeps its type; numbers, true and false are what they look like; a day where it has days.

    `as_text`: any other value is a text.
    """
    there = around.names.properties.get(name, {})
    found = next((value for each, value in there.items() if key_of(each) == key_of(text)), None)
    if found is not None or as_text:
        return text if found is None else found
    value = plain(text.strip())
    dated = any(isinstance(each, str) and _DATE.match(each) for each in there.values()) or (not there and key_of(text) in dates.NEAR)
    when = dates.parse(text, around.context.now.date()) if isinstance(value, str) and dated else None
    return when.isoformat() if when is not None else value


def _named(text: str, around: Surroundings) -> NoteSet | None:
    """The description that a name alone is: a tag with its `#`, a note, or else a folder. None when it is none, or several."""
    if text.casefold() in THIS_NOTE and around.active_file is not None:
        return of_notes(ACTIVE)
    link = regex.fullmatch(r"\[\[([^\[\]|#]+)\]\]", text)
    bare = link[1] if link else text
    if text.startswith("#"):
        found = around.names.find(text, "tag")
        return NoteSet((Term("tag", found[0].value),)) if found else None
    notes = {name.value for name in around.names.find(bare, "note", "alias")}
    if len(notes) == 1:
        return of_notes(notes.pop())
    folders = {name.value for name in around.names.find(bare.rstrip("/"), "folder")}
    return NoteSet((Term("folder", folders.pop()),)) if len(folders) == 1 and not notes else None


def _term(found: Any, around: Surroundings) -> Term:
    negated = found["not"] is not None
    if found["tag"]:
        return Term("tag", found["tag"].lstrip("#"), negated=negated)
    if found["property"]:
        name = _plain(found["property"][1:-1]) if found["property"].startswith('"') else found["property"].strip()
        known = around.names.find(name, "property")
        name = known[0].value if known else name
        if found["compared"] is None:
            return Term("property", None, "has", name, negated)
        op: Op = found["compared"].lstrip(":") or ":"
        if found["plain"] is None:
            return Term("property", value_of(_plain(found["value"]), name, around, as_text=True), op, name, negated)
        value = found["plain"].strip()
        if op == ":" and value in ("", "null"):
            return Term("property", None, "lacks", name, negated)
        if op == ":" and value == "*":
            return Term("property", None, "has", name, negated)
        if not value or " OR " in value:
            raise Unread(
                f"“{found[0].strip()}” describes no notes.", hint="Compare with one value, for example [rating:>=4] or [due:<today]."
            )
        return Term("property", value_of(value, name, around), op, name, negated)
    key, value = found["key"], found["bare"] if found["bare"] is not None else _plain(found["quoted"])
    if key not in FIELDS:
        raise Unread(f"“{key}:” is no field of a description.", hint=f"There are {', '.join(FIELDS)}.")
    return Term(key, _value(key, value, around), found["op"] or (">=" if key in _TIMES else ":"), negated=negated)


def _value(key: Key, value: str, around: Surroundings) -> Any:
    match key:
        case "tag":
            return value.lstrip("#")
        case "note" | "links-to" | "linked-from":
            return named(value, around, "note", "alias")
        case "folder" | "in":
            return one(value.strip("/"), around, "folder")
        case "changed" | "created" | "dated":
            return day(value, around)
        case "is" | "tasks":
            known = STATES if key == "is" else TASKS
            if value not in known:
                raise Unread(f"{'Notes' if key == 'is' else 'Tasks'} can be {', '.join(known)}; not “{value}”.")
            return value
        case _:
            return value


def named(text: str, around: Surroundings, *kinds: NameKind, below: str = "") -> str:
    """As `one`, for a text that may also be a link, or mean the open note."""
    if text.casefold() in THIS_NOTE | {ACTIVE.casefold()}:
        if around.active_file is None:
            raise Unread("No note is open: name one.")
        return ACTIVE
    bare = text[2:-2].partition("|")[0] if text.startswith("[[") and text.endswith("]]") else text
    return one(bare.rstrip("/"), around, *kinds, below=below)


def one(text: str, around: Surroundings, *kinds: NameKind, below: str = "") -> str:
    """The path of the one note, folder or file of these kinds that a text names; of several, those `below` a folder count. Raises `Unread`."""
    found = list(dict.fromkeys(name.value for name in around.names.find(text, *kinds)))
    if len(found) > 1:
        found = [path for path in found if below and path.startswith(f"{below}/")] or found
    whole = [path for path in found if path == text] or [
        path for path in found if key_of(path.removesuffix(".md")) == key_of(text.removesuffix(".md"))
    ]
    if len(whole) == 1 or len(found) == 1:
        return str((whole or found)[0])
    if found:
        raise Unread(f"Several are called “{text}”: {', '.join(map(str, found[:4]))}.")
    what = {1: kinds[0], 2: "note"}.get(len(kinds), "note, folder or file")
    raise Unread(f"There is no {what} called “{text}”.")


def day(text: str, around: Surroundings) -> str:
    """The day that a text names, as YYYY-MM-DD. Raises `Unread`."""
    found = dates.parse(text, around.context.now.date())
    if found is None:
        raise Unread(f"“{text}” is no day.", hint="Write it like 2026-03-14.")
    return found.isoformat()


def _condition(term: Term) -> dict[str, Any]:
    match term.key:
        case "note":
            return {"paths": [term.value]}
        case "in":
            return {"folder": term.value, "directly": True}
        case "property" if term.op == "has":
            return {"has": [term.property]}
        case "property":
            return {_COMPARED.get(term.op, "property"): {term.property: term.value}}
        case "changed" | "created" | "dated":
            return {f"{_TIMES[term.key]}{'Before' if term.op in ('<', '<=') else 'After'}": term.value}
        case "is":
            return dict(STATES[term.value][0])
        case _:
            return {_LINKED.get(term.key, term.key): term.value}


def _said(term: Term) -> str:
    match term.key:
        case "property" if term.op in ("has", "lacks"):
            words = f"{'with' if term.op == 'has' else 'without'} {term.property}"
        case "property":
            words = f"with {term.property} {'' if term.op == ':' else term.op + ' '}{shown(term.value)}"
        case "is":
            words = STATES[term.value][1]
        case "tasks":
            words = {"none": "without tasks", "any": "with tasks"}.get(term.value, f"with {term.value} tasks")
        case "folder" | "in" if not term.value:
            words = "in the vault" if term.key == "folder" else "right in the vault's root"
        case _:
            when = "before" if term.op in ("<", "<=") else "since"
            words = _WORDS[term.key].format(value=term.value, name=_called(term.value), when=when)
    return f"{'not ' if term.negated else ''}{words}"


def _called(note: str) -> str:
    return "this note" if note == ACTIVE else stem(note)


def shown(value: Any) -> str:
    """A value of a property as people write it."""
    return ("true" if value else "false") if isinstance(value, bool) else str(value)


def _typed(term: Term) -> str:
    sign = "-" if term.negated else ""
    if term.key == "property":
        name = term.property if _PLAIN_NAME.fullmatch(term.property or "") else _quoted(term.property or "")
        match term.op:
            case "has":
                return f"{sign}[{name}]"
            case "lacks":
                return f"{sign}[{name}:]"
            case _:
                return f"{sign}[{name}{term.op}{_quoted(term.value) if isinstance(term.value, str) else shown(term.value)}]"
    value = f"#{term.value}" if term.key == "tag" else str(term.value)
    op = "" if term.op == ":" else term.op
    return f"{sign}{term.key}:{op}{value if _PLAIN.fullmatch(value) else _quoted(value)}"


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _plain(text: str) -> str:
    return str(regex.sub(r"\\(.)", r"\1", text))
