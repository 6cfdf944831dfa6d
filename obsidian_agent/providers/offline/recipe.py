"""Recipes: parameterised plans with example phrases, one JSON file each in `recipes/`.

A recipe is shaped like a macro: its plan refers to its parameters as `${name}`. Where the plan language resolves no references (keys of
`set`, arguments of filters) `<<name>>` stands for the value's text. A recipe may hold several plans (`variants`, the first whose
`requires` are met is taken), or a refusal instead of a plan.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

from obsidian_agent.providers.offline import phrases

NameKind = Literal["note", "folder", "entry", "path", "newName", "newLabel", "destination", "template", "macro"]
WordKind = Literal[
    "text",
    "line",
    "affix",
    "label",
    "heading",
    "newHeading",
    "tag",
    "property",
    "knownProperty",
    "value",
    "number",
    "level",
    "date",
    "otherDay",
    "before",
    "choice",
    "spotted",
    "row",
    "listValue",
]
QueryKind = Literal["tags", "knownProperties", "names", "span", "due", "sort", "group", "status"]
SetKind = Literal["notes", "anyNotes", "files", "exempt", "within"]
SlotKind = NameKind | WordKind | QueryKind | SetKind
"""What a slot takes. `entry`: a note, folder or other file; `path`: the name of a new note; `newName` and `destination`: the new path of
another slot's entry, by its name or its folder; `newLabel`: a name for anything; `newHeading`: a heading that may be missing; `level`: of
headings, by default the highest that the note has several of; `otherDay`: not today; `before`: a day, from "older than a month"; `affix`:
text with its blanks; `label`: a word that only says again what sort of note it is; `knownProperty`: one that notes have. `tags`,
`knownProperties` and `names` (of new notes) are lists; `span`, `due`: conditions, from "last week"; `sort`: an order of `vault.find`,
`group`: a field of what it finds, `status`: of tasks. `notes`: a description of notes, `anyNotes`: that or one note, `files`: other files
too, `exempt`: what the description `of` leaves out; `within`: where else it must lie. `line`: a text
that may be called a bullet, and then becomes one; `choice`: one of the parameter's `options`; `spotted`: words
by which a line is found;
`row`: cells of a table; `listValue`: a value but no
number, which is rather added up.
"""

SET_KINDS: frozenset[str] = frozenset(("notes", "anyNotes", "files"))
"""Slots whose values are conditions of `vault.find`."""

Need = Literal["selection", "activeFile", "dailyTemplate", "weeklyTemplate", "newHeading", "noteTitle", "archiveFolder"]
"""What must hold for a recipe or a variant. `newHeading`: the note does not have the heading yet;
`noteTitle`: it begins with its only heading of the first level; `archiveFolder`: there is one folder for an archive."""


_LEFT_OUT = (
    "[but|and|only|.|,] {} (stay|stays|remain|remains|must stay|should stay|have to stay|can stay) (where! (they are|it is)|put!|in place!|there!|untouched!)"
    "|[but|and] leave! {} (alone|where (they are|it is)|in place|untouched|unchanged|out|there|as (they are|it is))"
    "|[but|and] {} (should|can|may|must|shall) keep! (it|them|theirs|their own|its own|that)"
    "|[but] (except!|excepting!|excluding!|apart! from|but not!) [for] {}"
    "|[but] (unless!|if! not) (it|they) {}"
    "|[but|and] (leave!|keep!) (it|them|that) (in|on|for|at|under) {}"
    "|[but|and] (skip|ignore|exclude|omit|leave out) {}"
    "|[but|and] {} (do not|don't|should not|must not) [be] (count|counted|included|listed|meant|moved|touched|changed)"
)
"""The clause that leaves something out of a description of notes: "Board games stay where they are", "skip the drafts"."""


_CLAUSES: Mapping[SlotKind, str] = {"exempt": _LEFT_OUT, "within": "(in!|inside!|within!|under!|from!) {} [,|:]"}


class RecipeModel(BaseModel):
    """Base of a recipe's parts: unknown fields refused, immutable."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)


class RecipeParameter(RecipeModel):
    """An input. `of` names the parameter that gives a heading its note, a new name its old one, or a new note its folder."""

    kind: SlotKind
    description: str
    default: Any = None
    optional: bool = False
    existing: bool = False
    """For folders: only one that exists will do."""
    of: str | None = None
    options: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    """Of a choice: the ways to say each value, in lower case."""

    @property
    def needed(self) -> bool:
        """Whether it must be asked for when the instruction does not give it."""
        return not self.optional and self.default is None


class Variant(RecipeModel):
    """A plan for one situation. `given` names optional parameters that must have a value."""

    requires: tuple[Need, ...] = ()
    given: tuple[str, ...] = ()
    plan: dict[str, Any]


class Refusal(RecipeModel):
    """What this program does not do, said plainly. `code` is one of the plan language."""

    code: str
    message: str


class Answer(RecipeModel):
    """How the outputs of a plan that only reads become an answer in words.

    `items` names a list among the outputs ("find.files"); the texts may hold `{count}` (its length, or the number that `count` names) and
    the parameters as `${name}`. `item` is one line of the list, as in `util.formatList`; `sources` the field that holds a
    note's path, or the parameter that is one.
    """

    items: str
    none: str
    one: str | None = None
    some: str
    item: str | None = None
    count: str | None = None
    sources: str | None = None


class Recipe(RecipeModel):
    """One thing that can be asked for without a model. With `answer` it is a question: its plan changes nothing."""

    name: Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9-]*$")]
    title: str
    description: str
    example: str = ""
    """A sentence that asks for it, in a vault that has the names."""
    phrases: Annotated[tuple[str, ...], Field(min_length=1)]
    parameters: dict[str, RecipeParameter] = Field(default_factory=dict)
    requires: tuple[Need, ...] = ()
    destructive: bool = False
    plan: dict[str, Any] | None = None
    variants: tuple[Variant, ...] = ()
    refusal: Refusal | None = None
    answer: Answer | None = None

    @property
    def spoken(self) -> tuple[str, ...]:
        """The phrases as they are matched: clauses may say where the notes of a description lie, and what it leaves out."""
        clauses = ""
        for name, parameter in self.parameters.items():
            clause = _CLAUSES.get(parameter.kind)
            clauses += f" / [{clause.replace('{}', f'{{{name}}}')}]" if clause is not None else ""
        return tuple(phrase + clauses for phrase in self.phrases)

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if sum((self.plan is not None, bool(self.variants), self.refusal is not None)) != 1:
            raise ValueError(f"recipe {self.name}: exactly one of plan, variants and refusal")
        for text in self.phrases:
            unknown = phrases.parse(text).slots - self.parameters.keys()
            if unknown:
                raise ValueError(f"recipe {self.name}: phrase {text!r} has undeclared slots {sorted(unknown)}")
        for name, parameter in self.parameters.items():
            if parameter.of is not None and parameter.of not in self.parameters:
                raise ValueError(f"recipe {self.name}: {name} refers to the unknown parameter {parameter.of}")
        return self

    def plan_for(self, met: frozenset[str], given: frozenset[str]) -> dict[str, Any] | None:
        """The plan of the first variant whose needs are met, or None."""
        if self.plan is not None:
            return self.plan
        return next((each.plan for each in self.variants if met.issuperset(each.requires) and given.issuperset(each.given)), None)


RECIPE_NAMES: tuple[str, ...] = (
    "add-alias",
    "add-aliases",
    "add-item",
    "add-link",
    "add-table-row",
    "add-tags",
    "add-task",
    "add-value",
    "append-to-note",
    "append-to-notes",
    "append-under-heading",
    "append-under-heading-of-notes",
    "archive-notes",
    "average-of-notes",
    "bullet-list",
    "bullets-to-tasks",
    "clear-section",
    "collect-tasks",
    "complete-task",
    "complete-tasks",
    "convert-selection",
    "copy-note",
    "copy-section",
    "count-notes",
    "count-tasks",
    "count-words",
    "create-missing-notes",
    "create-missing-of-notes",
    "daily-note",
    "daily-note-of-day",
    "delete",
    "delete-notes",
    "find-broken-links",
    "find-duplicates",
    "find-notes",
    "find-same-names",
    "find-tasks",
    "fix-links",
    "format-selection",
    "grouped-index",
    "heading-level",
    "heading-levels",
    "headings-of-note",
    "index-notes",
    "insert-at-cursor",
    "insert-beside-heading",
    "insert-beside-line",
    "insert-beside-link",
    "least-of-notes",
    "link-at-top",
    "link-beside-link",
    "link-first-mention",
    "link-mentions",
    "link-selection",
    "links-to-markdown",
    "links-to-wikilinks",
    "list-backlinks",
    "list-duplicates",
    "list-missing-notes",
    "list-tags",
    "merge-notes",
    "merge-several",
    "most-of-notes",
    "move",
    "move-line",
    "move-notes",
    "move-section",
    "move-tasks",
    "new-folder",
    "new-note",
    "new-notes",
    "note-from-template",
    "notes-from-bullets",
    "notes-from-bullets-only",
    "notes-from-table",
    "number-list",
    "obsidian-settings",
    "open-note",
    "other-week-note",
    "outgoing-links",
    "outside-vault",
    "period-note",
    "prefix-names",
    "prepend-task",
    "prepend-to-note",
    "prepend-to-notes",
    "prepend-under-heading",
    "properties-from-fields",
    "properties-of-note",
    "property-of-note",
    "remove-all-links",
    "remove-all-tags",
    "remove-links",
    "remove-properties",
    "remove-tags",
    "remove-value",
    "rename",
    "rename-heading",
    "rename-heading-of-notes",
    "rename-property",
    "rename-tag",
    "reopen-tasks",
    "replace-line",
    "replace-pattern",
    "replace-section",
    "replace-selection",
    "replace-text",
    "replace-text-in-note",
    "replace-text-in-notes",
    "retarget-links",
    "run-macro",
    "section-to-note",
    "selection-to-note",
    "selection-to-tasks",
    "set-property",
    "set-property-of-notes",
    "set-task-due",
    "shift-headings",
    "sort-into-folders",
    "sort-list",
    "sort-selection",
    "split-by-heading",
    "sum-of-notes",
    "table-of-contents",
    "tags-of-note",
    "take-line",
    "take-lines",
    "take-section",
    "tasks-from-list",
    "tasks-to-bullets",
    "tasks-to-new-note",
    "unique-list",
    "weekly-note",
    "when-changed",
    "when-created",
    "where-is-note",
    "written-in",
)
"""The recipes that ship, by file name."""


@cache
def packaged() -> tuple[Recipe, ...]:
    """The recipes that ship, read and checked at the first call."""
    folder = resources.files("obsidian_agent.providers.offline").joinpath("recipes")
    return tuple(Recipe.model_validate_json(folder.joinpath(f"{name}.json").read_bytes()) for name in RECIPE_NAMES)
