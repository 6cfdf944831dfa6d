"""A recipe or macro as a form: its fields, what is said about what was typed into them, and names of the vault that it may become.

`offline.values` decides what a text means, here as everywhere. Nothing in here writes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from itertools import islice
from typing import Any, Final

from obsidian_agent.dataclass import dataclass
from obsidian_agent.errors import ObsidianAgentError
from obsidian_agent.expression import unicode_expression
from obsidian_agent.offline.names import Surroundings
from obsidian_agent.offline.note_set import ACTIVE, InvalidValue, NoteSet, Term
from obsidian_agent.offline.recipe import Input, Recipe
from obsidian_agent.offline.values import (
    FIELDS_OF_NOTES,
    form_text,
    headings,
    is_blank,
    may_be_blank,
    read,
)
from obsidian_agent.services.fields import NEEDED, Completion, Field, FieldMessage
from obsidian_agent.vault.index.name_search import NameSearch
from obsidian_agent.vault.paths.path import ROOT

MOST: Final = 6
"""Names that are offered at once."""

THIS_NOTE: Final = "this note"
_LAST: Final = unicode_expression(
    r"^(?P<before>.*[\s,])?(?P<sign>-?)(?:(?P<key>folder|in|tag|note):\"?|(?P<tag>#)|(?P<property>\[))(?P<typed>[^\s\"\]]*)$"
)
"""The end of a description of notes that is being typed."""


_HINTS: Final[Mapping[str, str]] = {
    "notes": "a note, a folder, a #tag, or tag:#done folder:Projects [rating>=4]",
    "date": "YYYY-MM-DD, today, tomorrow",
    "number": "a number",
    "list": "values with commas between them",
    "tags": "tags with commas between them",
    "properties": "properties with commas between them",
    "folder": "a folder; / is the vault itself",
    "newNote": "the path of the new note",
}
_NAMED: Final = frozenset(
    {
        "notes",
        "note",
        "template",
        "entry",
        "folder",
        "tag",
        "tags",
        "property",
        "properties",
        "field",
        "value",
        "heading",
    }
)
_NEW: Final = frozenset({"folder", "tag", "tags", "property", "properties", "value", "heading"})
_TRUTH: Final[Mapping[str, str]] = {"true": "yes", "false": "no"}


@dataclass(frozen=True)
class Form:
    """Over a vault at one moment. `unmet`: what must be there before it can be filled in. Methods may block."""

    recipe: Recipe
    around: Surroundings
    unmet: str | None = None

    @property
    def title(self) -> str:
        return self.recipe.title

    def fields(self, values: Mapping[str, str]) -> tuple[Field, ...]:
        """All fields; `values` stand in them where there are some, else the defaults."""
        return tuple(
            self._field(wanted, values.get(name)) for name, wanted in self.recipe.inputs.items()
        )

    def judge(self, texts: Mapping[str, str]) -> dict[str, FieldMessage]:
        """What is to be said about the texts of the fields, by field. A text that is missing is wrong."""
        found: dict[str, FieldMessage] = {}
        known: dict[str, Any] = {}
        for name, wanted in sorted(self.recipe.inputs.items(), key=lambda item: bool(item[1].of)):
            text = texts.get(name, "")
            if is_blank(wanted, text):
                if not may_be_blank(wanted):
                    found[name] = FieldMessage(NEEDED, wrong=True)
                continue
            try:
                known[name] = value = read(wanted, text, self.around, known)
                if (told := self._told(wanted, value, text)) is not None:
                    found[name] = FieldMessage(told)
            except ObsidianAgentError as error:
                found[name] = FieldMessage(error.problem().message, wrong=True)
        return found

    def complete(self, name: str, text: str, texts: Mapping[str, str]) -> tuple[Completion, ...]:
        """The names of the vault that the text of a field may become, best first; none when it is one already."""
        wanted = self.recipe.inputs[name]
        if wanted.kind == "notes":
            found = self._descriptions(text)
        elif wanted.kind in ("tags", "properties"):
            before, comma, last = text.rpartition(",")
            head = f"{before}, " if comma else ""
            found = [
                Completion(head + each.text, each.what)
                for each in self._names(wanted, last.strip(), texts)
            ]
        else:
            found = self._names(wanted, text.strip(), texts)
        return () if any(each.text == text for each in found) else tuple(found[:MOST])

    def _field(self, wanted: Input, given: str | None) -> Field:
        text = given if given is not None else form_text(wanted, wanted.default)
        if text == ACTIVE and wanted.kind in _NAMED:
            text = THIS_NOTE if self.around.active_file is not None else ""
        options = (
            dict(wanted.options)
            if wanted.kind == "choice"
            else dict(_TRUTH)
            if wanted.kind == "boolean"
            else None
        )
        if options and text not in options:
            text = next(
                (key for key, label in options.items() if label.casefold() == text.casefold()), ""
            )
        return Field(
            wanted.name,
            wanted.description,
            text,
            optional=may_be_blank(wanted),
            options=options,
            named=wanted.kind in _NAMED,
            new=wanted.kind in _NEW,
            hint=_HINTS.get(wanted.kind, ""),
        )

    def _told(self, wanted: Input, value: Any, text: str) -> str | None:
        match value:
            case NoteSet():
                count = len(value.paths(self.around))
                return f"{count:,} note{'' if count == 1 else 's'}: {value.text()}"
            case str() if value == ACTIVE:
                return self.around.active_file
            case str() if (
                wanted.kind == "folder" and value and value not in self.around.names.folders
            ):
                return "a new folder"
            case str() if wanted.kind in _NAMED or wanted.kind in ("date", "newNote", "newName"):
                return value if value not in (text, f"{text}.md") else None
            case _:
                return None

    # --- names ----------------------------------------------------------------------------------------------------------------

    @cached_property
    def _notes(self) -> NameSearch:
        return NameSearch([path.text for path in self.around.names.index.notes(ROOT)])

    def _names(self, wanted: Input, typed: str, texts: Mapping[str, str]) -> list[Completion]:
        names = self.around.names
        of = texts.get(wanted.of or "", "")
        match wanted.kind:
            case "folder":
                return _beginning(typed, filter(None, names.folders), "folder")
            case "note" | "template":
                return self._found_notes(typed)
            case "entry":
                return [
                    *self._found_notes(typed)[: MOST // 2],
                    *_beginning(typed, filter(None, names.folders), "folder"),
                ]
            case "tag" | "tags":
                return _beginning(typed.removeprefix("#"), names.tags, "tag")
            case "property" | "properties":
                return _beginning(typed, names.properties, "property")
            case "field":
                return _beginning(typed, [*sorted(FIELDS_OF_NOTES), *names.properties], "")
            case "value":
                return _beginning(typed, names.properties.get(of, {}), f"a value of {of}")
            case "heading":
                return _beginning(typed, headings(self._note(wanted, of), self.around), "heading")
            case _:
                return []

    def _note(self, wanted: Input, text: str) -> str:
        """The note whose headings are meant, as `headings` takes it; "" when it is not clear."""
        of = self.recipe.inputs.get(wanted.of or "")
        if of is None or not text.strip():
            return ""
        try:
            value = read(of, text, self.around)
        except InvalidValue:
            return ""
        if isinstance(value, NoteSet):
            value = (
                value.terms[0].value
                if len(value.terms) == 1 and value.terms[0].key == "note"
                else ""
            )
        return value if isinstance(value, str) else ""

    def _found_notes(self, typed: str) -> list[Completion]:
        if typed:
            return [
                Completion(hit.path.removesuffix(".md"), "note")
                for hit in self._notes.search(typed, MOST).hits
            ]
        return [
            Completion(path.text.removesuffix(".md"), "note")
            for path in islice(self.around.names.index.notes(ROOT), MOST)
        ]

    def _descriptions(self, text: str) -> list[Completion]:
        """What the end of a description may become: names in the place of the word that is being typed."""
        names = self.around.names
        if (found := _LAST.match(text)) is None:
            folders = [
                Completion(_described("folder", each.text), "folder")
                for each in _beginning(text.strip(), filter(None, names.folders), "")
            ]
            tags = [
                Completion(_described("tag", each.text), "tag")
                for each in _beginning(text.strip().removeprefix("#"), names.tags, "")
            ]
            notes = [
                Completion(_described("note", f"{each.text}.md"), "note")
                for each in self._found_notes(text.strip())
            ]
            return [*folders[:2], *tags[:2], *notes] if text.strip() else [*folders[:3], *tags[:3]]
        head, typed = (found["before"] or "") + found["sign"], found["typed"]
        if found["property"]:
            terms = [
                (NoteSet((Term("property", None, "has", each.text),)).query(), "property")
                for each in _beginning(typed, names.properties, "")
            ]
        elif found["tag"] or found["key"] == "tag":
            terms = [
                (_described("tag", each.text), "tag")
                for each in _beginning(typed.removeprefix("#"), names.tags, "")
            ]
        elif found["key"] == "note":
            terms = [
                (_described("note", f"{each.text}.md"), "note") for each in self._found_notes(typed)
            ]
        else:
            terms = [
                (_described(found["key"], each.text), "folder")
                for each in _beginning(typed, filter(None, names.folders), "")
            ]
        return [Completion(head + term, what) for term, what in terms]


def _described(key: Any, value: str) -> str:
    return NoteSet((Term(key, value),)).query()


def _beginning(typed: str, names: Iterable[Any], what: str) -> list[Completion]:
    """The names that hold what was typed, those that begin with it first."""
    wanted = typed.casefold()
    holding = [str(name) for name in names if wanted in str(name).casefold()]
    holding.sort(key=lambda name: not name.casefold().startswith(wanted))
    return [Completion(name, what) for name in holding[:MOST]]
