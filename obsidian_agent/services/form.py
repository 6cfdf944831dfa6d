"""A recipe or macro as a form: its fields, messages about their texts, and completions.

`offline.values` decides what a text means, as everywhere. Nothing in this module writes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from itertools import islice
from typing import Any, Final

from msgspec import Struct

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

MAX_COMPLETIONS: Final = 6

THIS_NOTE: Final = "this note"
_LAST_TERM: Final = unicode_expression(
    r"^(?P<before>.*[\s,])?(?P<sign>-?)"
    r"(?:(?P<key>folder|in|tag|note):\"?|(?P<tag>#)|(?P<property>\[))"
    r"(?P<typed>[^\s\"\]]*)$"
)
"""The last term of a note query, which is being typed."""

_HINTS: Final[Mapping[str, str]] = {
    "notes": "a note, a folder, a #tag, or tag:#done folder:Projects [rating>=4]",
    "date": "YYYY-MM-DD, today, tomorrow",
    "number": "a number",
    "list": "values, separated by commas",
    "tags": "tags, separated by commas",
    "properties": "properties, separated by commas",
    "folder": "a folder; / is the vault",
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
_BOOLEANS: Final[Mapping[str, str]] = {"true": "yes", "false": "no"}


class Form(Struct, frozen=True, dict=True):
    """The form of a recipe over a vault at one moment. Methods may block.

    `unmet` states what the recipe requires and the vault or the app does not have now.
    """

    recipe: Recipe
    around: Surroundings
    unmet: str | None = None

    @property
    def title(self) -> str:
        return self.recipe.title

    def fields(self, values: Mapping[str, str]) -> tuple[Field, ...]:
        """Return all fields, filled with `values` or the defaults."""
        return tuple(
            self._field(input, values.get(name)) for name, input in self.recipe.inputs.items()
        )

    def judge(self, texts: Mapping[str, str]) -> dict[str, FieldMessage]:
        """Return the messages about the texts of the fields, by field.

        A required text that is missing is wrong.
        """
        messages: dict[str, FieldMessage] = {}
        values: dict[str, Any] = {}
        for name, input in sorted(self.recipe.inputs.items(), key=lambda item: bool(item[1].of)):
            text = texts.get(name, "")
            if is_blank(input, text):
                if not may_be_blank(input):
                    messages[name] = FieldMessage(NEEDED, wrong=True)
                continue
            try:
                values[name] = value = read(input, text, self.around, values)
                if (meaning := self._meaning(input, value, text)) is not None:
                    messages[name] = FieldMessage(meaning)
            except ObsidianAgentError as error:
                messages[name] = FieldMessage(error.problem().message, wrong=True)
        return messages

    def complete(self, name: str, text: str, texts: Mapping[str, str]) -> tuple[Completion, ...]:
        """Return completions for the text of a field, best first.

        There are none if the text already is one of them.
        """
        input = self.recipe.inputs[name]
        if input.kind == "notes":
            completions = self._query_completions(text)
        elif input.kind in ("tags", "properties"):
            before, comma, last = text.rpartition(",")
            head = f"{before}, " if comma else ""
            completions = [
                Completion(head + name.text, name.what)
                for name in self._names(input, last.strip(), texts)
            ]
        else:
            completions = self._names(input, text.strip(), texts)
        if any(completion.text == text for completion in completions):
            return ()
        return tuple(completions[:MAX_COMPLETIONS])

    def _field(self, input: Input, value: str | None) -> Field:
        text = value if value is not None else form_text(input, input.default)
        if text == ACTIVE and input.kind in _NAMED:
            text = THIS_NOTE if self.around.active_file is not None else ""
        options: dict[str, str] | None = None
        if input.kind == "choice":
            options = dict(input.options)
        elif input.kind == "boolean":
            options = dict(_BOOLEANS)
        if options and text not in options:
            keys = (key for key, label in options.items() if label.casefold() == text.casefold())
            text = next(keys, "")
        return Field(
            input.name,
            value=text,
            optional=may_be_blank(input),
            options=options,
            named=input.kind in _NAMED,
            new=input.kind in _NEW,
            hint=_HINTS.get(input.kind, ""),
            label=input.description,
        )

    def _meaning(self, input: Input, value: Any, text: str) -> str | None:
        match value:
            case NoteSet():
                count = len(value.paths(self.around))
                return f"{count:,} note{'' if count == 1 else 's'}: {value.text()}"
            case str() if value == ACTIVE:
                return self.around.active_file
            case str() if (
                input.kind == "folder" and value and value not in self.around.names.folders
            ):
                return "a new folder"
            case str() if input.kind in _NAMED or input.kind in ("date", "newNote", "newName"):
                return value if value not in (text, f"{text}.md") else None
            case _:
                return None

    # --- names -------------------------------------------------------------------------

    @cached_property
    def _notes(self) -> NameSearch:
        return NameSearch([path.text for path in self.around.names.index.notes(ROOT)])

    def _names(self, input: Input, typed: str, texts: Mapping[str, str]) -> list[Completion]:
        names = self.around.names
        of = texts.get(input.of or "", "")
        match input.kind:
            case "folder":
                return _matching(typed, filter(None, names.folders), "folder")
            case "note" | "template":
                return self._matching_notes(typed)
            case "entry":
                return [
                    *self._matching_notes(typed)[: MAX_COMPLETIONS // 2],
                    *_matching(typed, filter(None, names.folders), "folder"),
                ]
            case "tag" | "tags":
                return _matching(typed.removeprefix("#"), names.tags, "tag")
            case "property" | "properties":
                return _matching(typed, names.properties, "property")
            case "field":
                return _matching(typed, [*sorted(FIELDS_OF_NOTES), *names.properties], "")
            case "value":
                return _matching(typed, names.properties.get(of, {}), f"a value of {of}")
            case "heading":
                return _matching(typed, headings(self._note(input, of), self.around), "heading")
            case _:
                return []

    def _note(self, input: Input, text: str) -> str:
        """Return the note whose headings are meant, as `headings` expects it; "" if unknown."""
        of = self.recipe.inputs.get(input.of or "")
        if of is None or not text.strip():
            return ""
        try:
            value = read(of, text, self.around)
        except InvalidValue:
            return ""
        if isinstance(value, NoteSet):
            is_note = len(value.terms) == 1 and value.terms[0].key == "note"
            value = value.terms[0].value if is_note else ""
        return value if isinstance(value, str) else ""

    def _matching_notes(self, typed: str) -> list[Completion]:
        if typed:
            return [
                Completion(hit.path.removesuffix(".md"), "note")
                for hit in self._notes.search(typed, MAX_COMPLETIONS).hits
            ]
        return [
            Completion(path.text.removesuffix(".md"), "note")
            for path in islice(self.around.names.index.notes(ROOT), MAX_COMPLETIONS)
        ]

    def _query_completions(self, text: str) -> list[Completion]:
        """Return note queries whose last word is completed to a name of the vault."""
        names = self.around.names
        folders = list(filter(None, names.folders))
        last = _LAST_TERM.match(text)
        if last is None:
            return self._first_terms(text.strip())
        head, typed = (last["before"] or "") + last["sign"], last["typed"]
        kind = "folder"
        if last["property"]:
            kind = "property"
            terms = [
                NoteSet((Term("property", None, "has", name.text),)).query()
                for name in _matching(typed, names.properties, "")
            ]
        elif last["tag"] or last["key"] == "tag":
            kind = "tag"
            tags = _matching(typed.removeprefix("#"), names.tags, "")
            terms = [_term("tag", name.text) for name in tags]
        elif last["key"] == "note":
            kind = "note"
            terms = [_term("note", f"{name.text}.md") for name in self._matching_notes(typed)]
        else:
            terms = [_term(last["key"], name.text) for name in _matching(typed, folders, "")]
        return [Completion(head + term, kind) for term in terms]

    def _first_terms(self, typed: str) -> list[Completion]:
        names = self.around.names
        folders = [
            Completion(_term("folder", name.text), "folder")
            for name in _matching(typed, filter(None, names.folders), "")
        ]
        tags = [
            Completion(_term("tag", name.text), "tag")
            for name in _matching(typed.removeprefix("#"), names.tags, "")
        ]
        if not typed:
            return [*folders[:3], *tags[:3]]
        notes = [
            Completion(_term("note", f"{name.text}.md"), "note")
            for name in self._matching_notes(typed)
        ]
        return [*folders[:2], *tags[:2], *notes]


def _term(key: Any, value: str) -> str:
    return NoteSet((Term(key, value),)).query()


def _matching(typed: str, names: Iterable[Any], what: str) -> list[Completion]:
    """Return the names that contain `typed`, first those that start with it."""
    folded = typed.casefold()
    matches = [str(name) for name in names if folded in str(name).casefold()]
    matches.sort(key=lambda name: not name.casefold().startswith(folded))
    return [Completion(name, what) for name in matches[:MAX_COMPLETIONS]]
