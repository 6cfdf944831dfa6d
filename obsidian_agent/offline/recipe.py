"""Recipes: parameterised plans with a few example sentences, one JSON file each in `recipes/`.

A recipe is a plan with inputs, like a macro, with a subject for the menu, example sentences, and a
kind for each input. Macros are converted to recipes, so that both share the form, the reader of
values and `recipe_plan.fill`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache
from importlib import resources
from typing import Annotated, Any, Final, Literal, get_args

from pydantic import BaseModel, Field, StringConstraints, field_validator, model_validator

from obsidian_agent.plan.model import ParameterType

_Named = Literal[
    "note",
    "entry",
    "folder",
    "newNote",
    "newName",
    "template",
    "tag",
    "tags",
    "property",
    "properties",
    "value",
    "heading",
    "names",
    "day",
]
Kind = Literal[ParameterType, _Named, "choice", "notes", "field", "pairs"]
"""The kind of an input's value, unless it is a type of the plan language.

`entry` is an existing note, folder or other file; `newNote` the path of a note to create; `newName`
a new path, by name, for the entry in the input `of`; `names` new names, or a series such as months;
`day` a day as its distance from today; `value` the value of a property; `heading` a heading of the
note in the input `of`; `notes` a description of notes (`note_set.py`); `field` a field to sort or
group notes by; `pairs` properties with their values.
"""

Subject = Literal[
    "Notes", "Text", "Lists", "Tasks", "Links", "Tags & properties", "Daily notes", "Find", "Macros"
]
"""The section of a recipe in the menu; macros are in `Macros`."""

QuestionKind = Literal[
    "notes",
    "newest",
    "words",
    "backlinks",
    "links",
    "values",
    "tasks",
    "tags",
    "headings",
    "properties",
    "health",
]
"""The subjects of questions; `question.of_form` makes them queries."""

SUBJECTS: Final[tuple[Subject, ...]] = get_args(Subject)
MAX_EXAMPLES: Final = 6
"""Examples of one recipe, so that a user can read them all."""

MAX_SUGGESTIONS: Final = 3
"""The number of recipes among which the user chooses."""

ITEMS: Final = "items"
"""The input that makes an item of each line of a text."""

SLOT: Final = re.compile(r"\{([A-Za-z][A-Za-z0-9_]*)(?:\.([A-Za-z]+))?\}")
"""A slot of an example: `{name}` is an input, `{notes.tag}` a field of a description of notes."""

_LISTS: Final = ("list", "names", "tags", "properties")
_DAY_NAMES: Final = {-1: "yesterday", 0: "today", 1: "tomorrow"}
_PATHS: Final = ("path", "note", "entry", "folder", "newNote", "newName", "template")


class Input(BaseModel, extra="forbid", frozen=True):
    """One input of a recipe or macro.

    `default` is used if there is no value (`${activeFile}` is the open note). Arguments and steps
    that depend on an `optional` input are omitted if it has no value. `of` is the input that a
    heading, a value or a new name belongs to, and beside whose note a folder is. `options` are the
    values of a choice, with labels.
    """

    name: str
    kind: Kind = "text"
    description: str = ""
    default: Any = None
    optional: bool = False
    of: str | None = None
    options: Mapping[str, str] = Field(default_factory=dict)

    @property
    def needed(self) -> bool:
        """True if the user must enter a value."""
        return self.default is None and not self.optional

    @property
    def type(self) -> ParameterType:
        """The type of the plan's parameter for this input."""
        if self.kind in ("number", "boolean", "date"):
            return self.kind
        if self.kind == "day":
            return "number"
        if self.kind in _LISTS:
            return "list"
        return "path" if self.kind in _PATHS else "text"

    def worded(self, value: Any) -> Any:
        """Return a value as sentences say it: a choice by its label, a day by its name."""
        if self.kind == "day" and isinstance(value, int):
            return _DAY_NAMES.get(value) or (
                f"in {value} days" if value > 0 else f"{-value} days ago"
            )
        return self.options.get(str(value), value)


class Recipe(BaseModel, extra="forbid", frozen=True):
    """An action that needs no model. With `answer` it is a question, without steps.

    `needs` lists the conditions for its use: a selection, an open note. `uses` are the tools that
    the plan of a model takes for the same question.
    """

    name: Annotated[str, StringConstraints(min_length=1)]
    title: str
    subject: Subject
    description: str
    examples: tuple[str, ...] = ()
    one_of: tuple[str, ...] = ()
    """Inputs of which at least one needs a value other than its default, or nothing changes."""
    needs: tuple[Literal["selection", "activeFile"], ...] = ()
    answer: QuestionKind | None = None
    uses: tuple[str, ...] = ()
    inputs: Mapping[str, Input] = Field(default_factory=dict)
    """The inputs by name, in the order of the form."""
    phrases: Mapping[str, tuple[str, ...]] = Field(default_factory=dict)
    """Words in any language that give the first input a value, by this value.

    A sentence may have them in any order, and with the fillers of `reader` around them.
    """
    plan: dict[str, Any]
    """A plan without parameters, which refers to the inputs. Of a question it has only the goal."""

    @field_validator("inputs", mode="before")
    @classmethod
    def _named(cls, inputs: Mapping[str, Any]) -> Mapping[str, Any]:
        return {
            name: {"name": name, **fields} if isinstance(fields, Mapping) else fields
            for name, fields in inputs.items()
        }

    @model_validator(mode="before")
    @classmethod
    def _completed(cls, fields: Any) -> Any:
        plan = {"version": "1.0", "riskLevel": "writes", "steps": [], **fields["plan"]}
        return {**fields, "plan": plan}

    @property
    def defaults(self) -> dict[str, Any]:
        """The default values by name."""
        return {
            name: spec.default for name, spec in self.inputs.items() if spec.default is not None
        }

    def missing(self, values: Mapping[str, Any]) -> tuple[str, ...]:
        """Return the names of the inputs that still need a value."""
        return tuple(
            name for name, spec in self.inputs.items() if spec.needed and values.get(name) is None
        )

    def gaps(self, values: Mapping[str, Any]) -> tuple[str, ...]:
        """Return the missing inputs, and the first of `one_of` if none of them has a value."""
        defaults = self.defaults
        is_idle = all(values.get(name) in (None, "", defaults.get(name)) for name in self.one_of)
        return (*self.missing(values), *(self.one_of[:1] if is_idle else ()))

    @property
    def tools(self) -> tuple[str, ...]:
        """The tools of its steps, or of such a question, without repetitions."""
        steps = (str(step["tool"]) for step in self.plan["steps"])
        return tuple(dict.fromkeys((*self.uses, *steps)))


@cache
def packaged() -> tuple[Recipe, ...]:
    """Return the built-in recipes by name; read and validated at the first call."""
    folder = resources.files("obsidian_agent.offline").joinpath("recipes")
    files = sorted(
        (file for file in folder.iterdir() if file.name.endswith(".json")),
        key=lambda file: file.name,
    )
    return tuple(Recipe.model_validate_json(file.read_bytes()) for file in files)


def recipe_named(name: str, recipes: Iterable[Recipe]) -> Recipe | None:
    """Return the recipe with a name or title, ignoring case."""
    key = name.strip().casefold()
    return next(
        (recipe for recipe in recipes if key in (recipe.name.casefold(), recipe.title.casefold())),
        None,
    )
