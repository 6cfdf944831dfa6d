"""Descriptions of notes: terms that all apply, as a condition of `vault.find` or as text.

The text is like a search in Obsidian, where `*` means every note:
`tag:#done folder:Projects [rating>=4] changed:<2026-01-01 -folder:Projects/Old`. The name of a note
or folder, or a tag with `#`, is a description too.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from typing import Any, Final, Literal

from msgspec import Struct

from obsidian_agent.errors import ObsidianAgentError, PlanError
from obsidian_agent.expression import unicode_expression
from obsidian_agent.offline.names import Surroundings
from obsidian_agent.offline.recipe import Kind
from obsidian_agent.tools.core.tool import ToolContext
from obsidian_agent.tools.registry import TOOLS

ACTIVE: Final = "${activeFile}"
"""The value that means the note that is open when the plan runs."""

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
    "words",
    "links",
    "backlinks",
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
"""The values of `is:`, each with its condition and its wording."""

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
"""Fields of a description in examples (`{notes.tag}`) and answers of models, each with its kind.

`value` belongs to the property before it; `outside` is negated.
"""

KEYS: Final[Mapping[Key, tuple[Kind, str, str]]] = {
    "note": ("note", "paths", "{name}"),
    "folder": ("folder", "folder", "in {value}"),
    "in": ("folder", "folder", "right in {value}"),
    "tag": ("tag", "tag", "tagged #{value}"),
    "name": ("text", "name", "named like “{value}”"),
    "text": ("text", "text", "that hold “{value}”"),
    "changed": ("date", "modified", "changed {when}{value}"),
    "created": ("date", "created", "made {when}{value}"),
    "dated": ("date", "dated", "dated {when}{value}"),
    "links-to": ("note", "linksTo", "that link to {name}"),
    "linked-from": ("note", "linkedFrom", "linked from {name}"),
    "is": ("choice", "", ""),
    "tasks": ("choice", "tasks", ""),
    "words": ("number", "words", "with {count} words"),
    "links": ("number", "links", "with {count} links"),
    "backlinks": ("number", "backlinks", "with {count} backlinks"),
}
"""The keys before a colon: kind of value, argument of `vault.find`, wording after "notes".

Properties are written in brackets instead. A wording that depends on the value is empty.
"""

_COMPARED: Final[Mapping[str, str]] = {">=": "atLeast", "<=": "atMost", ">": "above", "<": "below"}
COUNTS: Final[Mapping[Op, str]] = {
    ">": "more than ",
    "<": "fewer than ",
    ">=": "at least ",
    "<=": "at most ",
}
"""The wording of comparisons with a number of words, links or backlinks."""
TASKS: Final = ("open", "done", "any", "none")
_SINGULAR: Final = {"that are": "that is", "that hold": "that holds", "that link": "that links"}
_PLURAL: Final = unicode_expression(rf"\A(?:{'|'.join(_SINGULAR)})\b")
"""The start of a wording that agrees with the number of notes."""
_PLAIN: Final = unicode_expression(r'[^\s"\[<>=]\S*')
"""A value that needs no quotes."""
_PLAIN_NAME: Final = unicode_expression(r'[^\]"<>:=\s][^\]"<>:=]*')
_NUMBER: Final = unicode_expression(r"-?\d{1,15}(?:\.\d{1,10})?")


class InvalidValue(PlanError):
    """A text that is not a valid value of its kind. The message names the problem and a remedy."""

    default_code = "ARGUMENT_INVALID"


class Term(Struct, frozen=True):
    """One condition on notes. `property` is the property's name if the key is `property`."""

    key: Key
    value: Any = None
    op: Op = ":"
    property: str | None = None
    negated: bool = False


class NoteSet(Struct, frozen=True):
    """A description of notes: all terms apply, but several `note` terms mean any of these notes.

    Without terms it means every note.
    """

    terms: tuple[Term, ...] = ()

    def condition(self) -> dict[str, Any]:
        """Return the condition for `vault.find`."""
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
        """Return the wording after a verb, for example "notes tagged #done in Projects"."""
        named = [term for term in self.terms if term.key == "note" and not term.negated]
        rest = _term_texts([term for term in self.terms if term not in named])
        if not named:
            return " ".join(["notes", *rest]) if rest else "all notes"
        names = [note_name(term.value) for term in named]
        rest = _in_singular(rest) if len(names) == 1 else rest
        return " ".join([" and ".join(filter(None, [", ".join(names[:-1]), names[-1]])), *rest])

    def counted(self, count: int) -> str:
        """Return the wording with the number of matching notes, but named notes as they are."""
        if any(term.key == "note" and not term.negated for term in self.terms):
            return self.text()
        if not self.terms:
            return f"all {count:,} notes"
        terms = _term_texts(self.terms)
        if count == 1:
            terms = _in_singular(terms)
        return " ".join([f"{count:,} note{'' if count == 1 else 's'}", *terms])

    def query(self) -> str:
        """Return the description as it is typed, for `values.read_set`."""
        return " ".join(map(_term_query, self.terms)) or "*"

    def paths(self, around: Surroundings, kind: str = "notes") -> tuple[str, ...]:
        """Return the matching notes, or files of a kind of `vault.find`. May block.

        Raise `ObsidianAgentError` if a note or folder of the description does not exist.
        """
        where = json.loads(json.dumps(self.condition()).replace(ACTIVE, around.active_file or ""))
        proposal = TOOLS["vault.find"].propose(
            TOOLS["vault.find"].input.model_validate({"where": where, "kind": kind}),
            ToolContext(around.view, around.view, around.context),
        )
        return tuple(
            file["path"] for file in proposal.output.model_dump(mode="json", by_alias=True)["files"]
        )


def _in_singular(texts: Sequence[str]) -> list[str]:
    return [_PLURAL.sub(lambda match: _SINGULAR[match[0]], text) for text in texts]


def with_field(described: NoteSet, field: str, value: Any) -> NoteSet:
    """Return the description with one more field of `SLOTS`.

    Raise `InvalidValue` for a value without a property.
    """
    key, op, _ = SLOTS[field]
    if field == "property":
        return NoteSet((*described.terms, Term(key, None, op, str(value))))
    if field != "value":
        return NoteSet((*described.terms, Term(key, value, op, negated=field == "outside")))
    if not described.terms or described.terms[-1].key != "property":
        raise InvalidValue("A value must follow its property.")
    return NoteSet((*described.terms[:-1], Term(key, value, op, described.terms[-1].property)))


def without_templates(described: NoteSet, around: Surroundings) -> NoteSet:
    """Exclude templates from a description by tag, property or folder.

    Users hardly ever mean templates; the wording of the description mentions the exclusion.
    """
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
    """Return a note's name without folder and extension, or "this note" for the open one."""
    return "this note" if path == ACTIVE else path.rpartition("/")[2].removesuffix(".md")


def plain(value: str) -> Any:
    """Return the value of a property from text: a number, true or false, or the text itself."""
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
        case "words" | "links" | "backlinks":
            more = {">": 0, ">=": -1, ":": -1}.get(term.op)
            fewer = {"<": 0, "<=": 1, ":": 1}.get(term.op)
            limits = {"moreThan": more, "fewerThan": fewer}
            return {
                name: {term.key: int(term.value) + distance}
                for name, distance in limits.items()
                if distance is not None
            }
        case _:
            return {KEYS[term.key][1]: term.value}


def _term_texts(terms: Sequence[Term]) -> list[str]:
    """Return the wordings of terms; two that are the limits of a period have one."""
    texts: list[str] = []
    rest = list(terms)
    while rest:
        term, *rest = rest
        days = _days(term, rest[0]) if rest else ""
        if days:
            texts.append(KEYS[term.key][2].format(when="", value=days))
            rest.pop(0)
        else:
            texts.append(_term_text(term))
    return texts


def _days(first: Term, until: Term) -> str:
    """Return the days from one term to before another as text; "" if these are no such limits."""
    is_period = first.key == until.key and KEYS.get(first.key, ("",))[0] == "date"
    if not is_period or first.negated or until.negated or (first.op, until.op) != (">=", "<"):
        return ""
    try:
        last = (date.fromisoformat(until.value) - timedelta(days=1)).isoformat()
    except ValueError:  # a value of the run: “${since}”
        return ""
    return first.value if first.value == last else f"from {first.value} to {last}"


def _term_text(term: Term) -> str:
    match term.key:
        case "property" if term.op in ("has", "lacks"):
            words = f"{'with' if term.op == 'has' else 'without'} {term.property}"
        case "property":
            operator = "" if term.op == ":" else f"{term.op} "
            words = f"with {term.property} {operator}{property_text(term.value)}"
        case "is":
            words = STATES[term.value][1]
        case "tasks":
            words = {"none": "without tasks", "any": "with tasks"}.get(
                term.value, f"with {term.value} tasks"
            )
        case "folder" | "in" if not term.value:
            words = "in the vault" if term.key == "folder" else "right in the vault's root"
        case _:
            when = "before " if term.op in ("<", "<=") else "since "
            words = KEYS[term.key][2].format(
                value=term.value,
                name=note_name(str(term.value)),
                when=when,
                count=f"{COUNTS.get(term.op, '')}{property_text(term.value)}",
            )
            if term.key in ("words", "links", "backlinks") and term.value == 1:
                words = words.removesuffix("s")
    return f"{'not ' if term.negated else ''}{words}"


def property_text(value: Any) -> str:
    """Return the value of a property as a user writes it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def _term_query(term: Term) -> str:
    sign = "-" if term.negated else ""
    if term.key == "property":
        name = term.property or ""
        if not _PLAIN_NAME.fullmatch(name):
            name = _quoted(name)
        if term.op == "has":
            return f"{sign}[{name}]"
        if term.op == "lacks":
            return f"{sign}[{name}:]"
        is_text = isinstance(term.value, str)
        value = _quoted(term.value) if is_text else property_text(term.value)
        return f"{sign}[{name}{term.op}{value}]"
    value = f"#{term.value}" if term.key == "tag" else str(term.value)
    op = "" if term.op == ":" else term.op
    return f"{sign}{term.key}:{op}{value if _PLAIN.fullmatch(value) else _quoted(value)}"


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
