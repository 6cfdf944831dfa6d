"""Descriptions of notes: terms that hold together, as form fields, as a condition of `vault.find`, as words, and as text to type.

As text a description is written like a search in Obsidian: `tag:#done folder:Projects [rating>=4] changed:<2026-01-01 -folder:Projects/Old`;
`*` is every note. A name of the vault alone is a description too: a note, a folder, a tag with its `#`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final, Literal

from obsidian_agent.dataclass import dataclass
from obsidian_agent.errors import ObsidianAgentError, PlanError
from obsidian_agent.expression import unicode_expression
from obsidian_agent.offline.names import Surroundings
from obsidian_agent.offline.recipe import Kind
from obsidian_agent.tools.core.tool import ToolContext
from obsidian_agent.tools.registry import TOOLS

ACTIVE: Final = "${activeFile}"
"""The value of a note that means the one that is open, whichever that is when the plan runs."""

THIS_NOTE: Final = frozenset({"this note", "the open note", "the current note"})
EVERYTHING: Final = frozenset({"*", "all", "all notes"})

Key = Literal[
    "note",
    "folder",
    "in",
    "tag",
    "property",
    "name",
    "text",
    "changed",
    "created",
    "dated",
    "links-to",
    "linked-from",
    "is",
    "tasks",
]
Op = Literal[":", ">=", "<=", ">", "<", "has", "lacks"]

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

KEYS: Final[Mapping[Key, tuple[Kind, str, str]]] = {
    "note": ("note", "paths", "{name}"),
    "folder": ("folder", "folder", "in {value}"),
    "in": ("folder", "folder", "right in {value}"),
    "tag": ("tag", "tag", "tagged #{value}"),
    "name": ("text", "name", "named like “{value}”"),
    "text": ("text", "text", "that hold “{value}”"),
    "changed": ("date", "modified", "changed {when} {value}"),
    "created": ("date", "created", "made {when} {value}"),
    "dated": ("date", "dated", "about a day {when} {value}"),
    "links-to": ("note", "linksTo", "that link to {name}"),
    "linked-from": ("note", "linkedFrom", "linked from {name}"),
    "is": ("choice", "", ""),
    "tasks": ("choice", "tasks", ""),
}
"""What may stand before a colon (properties stand in brackets): the kind of its value, its argument of `vault.find`, and how it reads behind
“notes”, where that is the same for every value."""

_COMPARED: Final[Mapping[str, str]] = {">=": "atLeast", "<=": "atMost", ">": "above", "<": "below"}
TASKS: Final = ("open", "done", "any", "none")
_PLAIN: Final = unicode_expression(
    r'[^\s"\[<>=]\S*'
)  # values that need no quotes, and names of properties
_PLAIN_NAME: Final = unicode_expression(r'[^\]"<>:=\s][^\]"<>:=]*')
_NUMBER: Final = unicode_expression(r"-?\d{1,15}(?:\.\d{1,10})?")


class InvalidValue(PlanError):
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
        others = [term for term in self.terms if term.key != "note" or term.negated]
        parts += (
            {"not": _condition(term)} if term.negated else _condition(term) for term in others
        )
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
        names = [note_name(term.value) for term in named]
        return " ".join([" and ".join(filter(None, [", ".join(names[:-1]), names[-1]])), *rest])

    def query(self) -> str:
        """As it is typed; `read_set` reads it again."""
        return " ".join(map(_typed, self.terms)) or "*"

    def paths(self, around: Surroundings) -> tuple[str, ...]:
        """The notes that are meant now. Raises `ObsidianAgentError` for a note or folder that is gone. May block."""
        where = json.loads(json.dumps(self.condition()).replace(ACTIVE, around.active_file or ""))
        found = TOOLS["vault.find"].propose(
            TOOLS["vault.find"].input.model_validate({"where": where}),
            ToolContext(around.view, around.view, around.context),
        )
        return tuple(
            file["path"] for file in found.output.model_dump(mode="json", by_alias=True)["files"]
        )


def with_field(described: NoteSet, field: str, value: Any) -> NoteSet:
    """The description with one more field (see `SLOTS`). Raises `InvalidValue` for a value without a property."""
    key, op, _ = SLOTS[field]
    if field == "property":
        return NoteSet((*described.terms, Term(key, None, op, str(value))))
    if field != "value":
        return NoteSet((*described.terms, Term(key, value, op, negated=field == "outside")))
    if not described.terms or described.terms[-1].key != "property":
        raise InvalidValue("A value stands behind its property.")
    return NoteSet((*described.terms[:-1], Term(key, value, op, described.terms[-1].property)))


def without_templates(described: NoteSet, around: Surroundings) -> NoteSet:
    """What a sentence describes by a tag, a property or a folder, without templates: they are hardly ever meant, and the words say so."""
    folder = around.context.notes.templates
    named = any(
        term.key in ("note", "links-to", "linked-from") or term.value == folder
        for term in described.terms
    )
    if not folder or not described.terms or named:
        return described
    within = NoteSet((*described.terms, Term("folder", folder)))
    try:
        meant = within.paths(around)
    except ObsidianAgentError:
        return described
    return NoteSet((*described.terms, Term("folder", folder, negated=True))) if meant else described


def note_name(path: str) -> str:
    """The name of a note without folder and ending; the open one is “this note”."""
    return "this note" if path == ACTIVE else path.rpartition("/")[2].removesuffix(".md")


def plain(value: str) -> Any:
    """The value of a property as it is written: a number, true or false, else the text."""
    if _NUMBER.fullmatch(value):
        return float(value) if "." in value else int(value)
    return {"true": True, "false": False}.get(value.casefold(), value)


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
            return {
                f"{KEYS[term.key][1]}{'Before' if term.op in ('<', '<=') else 'After'}": term.value
            }
        case "is":
            return dict(STATES[term.value][0])
        case _:
            return {KEYS[term.key][1]: term.value}


def _said(term: Term) -> str:
    match term.key:
        case "property" if term.op in ("has", "lacks"):
            words = f"{'with' if term.op == 'has' else 'without'} {term.property}"
        case "property":
            words = f"with {term.property} {'' if term.op == ':' else term.op + ' '}{property_text(term.value)}"
        case "is":
            words = STATES[term.value][1]
        case "tasks":
            words = {"none": "without tasks", "any": "with tasks"}.get(
                term.value, f"with {term.value} tasks"
            )
        case "folder" | "in" if not term.value:
            words = "in the vault" if term.key == "folder" else "right in the vault's root"
        case _:
            when = "before" if term.op in ("<", "<=") else "since"
            words = KEYS[term.key][2].format(
                value=term.value, name=note_name(str(term.value)), when=when
            )
    return f"{'not ' if term.negated else ''}{words}"


def property_text(value: Any) -> str:
    """A value of a property as people write it."""
    return ("true" if value else "false") if isinstance(value, bool) else str(value)


def _typed(term: Term) -> str:
    sign = "-" if term.negated else ""
    if term.key == "property":
        name = (
            term.property
            if _PLAIN_NAME.fullmatch(term.property or "")
            else _quoted(term.property or "")
        )
        compared = f"{term.op}{_quoted(term.value) if isinstance(term.value, str) else property_text(term.value)}"
        return (
            f"{sign}[{name}{'' if term.op == 'has' else ':' if term.op == 'lacks' else compared}]"
        )
    value = f"#{term.value}" if term.key == "tag" else str(term.value)
    op = "" if term.op == ":" else term.op
    return f"{sign}{term.key}:{op}{value if _PLAIN.fullmatch(value) else _quoted(value)}"


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
