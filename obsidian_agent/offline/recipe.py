"""Recipes: parameterised plans with a few example sentences, one JSON file each in `recipes/`.

A recipe is what a macro is, a plan with inputs, and a little more: a subject for the menu, example sentences, and what sort of value each
input takes. Macros are seen as recipes, so that one form, one reader of values and one way to a plan (`recipe_plan.fill`) serve both.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache
from importlib import resources
from typing import Annotated, Any, Final, Literal, get_args

from pydantic import BaseModel, Field, StringConstraints, field_validator

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
]
Kind = Literal[ParameterType, _Named, "choice", "notes", "field"]
"""What a parameter takes. `entry`: a note, folder or other file that exists; `newNote`: the path of a note to be made; `newName`: another
path for the entry `of` names, given by its name; `value`: what a property is set to; `heading`: one of the note `of` names; `notes`: a
description of notes (`note_set.py`); `field`: what notes are sorted or grouped by. The others are types of the plan language,
or plain."""

Subject = Literal[
    "Notes", "Text", "Lists", "Tasks", "Links", "Tags & properties", "Daily notes", "Find", "Saved"
]
"""Where a recipe stands in the menu; `Saved` are the macros."""

SUBJECTS: Final[tuple[Subject, ...]] = get_args(Subject)
MAX_EXAMPLES: Final = 6
"""Of one recipe: the menu is read, not searched."""

SLOT: Final = re.compile(r"\{([A-Za-z][A-Za-z0-9_]*)(?:\.([A-Za-z]+))?\}")
"""A slot of an example: `{name}` is a parameter, `{notes.tag}` one field of a description of notes."""

_LISTS: Final = ("list", "tags", "properties")
_PATHS: Final = ("path", "note", "entry", "folder", "newNote", "newName", "template")


class Input(BaseModel, extra="forbid", frozen=True):
    """One input of a recipe or macro, as forms, readers and models see it.

    `default`: the value that holds when none is given (`${activeFile}` is the open note). `optional`: arguments and steps that hang on it
    are left out when it is not given. `of`: the input that a heading, a value or a new name belongs to. `options`: of a choice, value -> how
    it is shown.
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
        """Whether it must be asked for when it is not given."""
        return self.default is None and not self.optional

    @property
    def type(self) -> ParameterType:
        """What it is as a parameter of a plan."""
        if self.kind in ("number", "boolean", "date"):
            return self.kind
        return "list" if self.kind in _LISTS else "path" if self.kind in _PATHS else "text"


class AnswerFrom(BaseModel, extra="forbid", frozen=True):
    """How the outputs of a plan that only reads become an answer. Places are like `find.files`.

    The answer's first line is the plan's goal (what was looked for) with a number: `count`, or the length of the list at `items`. `item`
    is one line of the list, as in `util.formatList`; `sources` the field of an item that holds a note's path, or `${name}` of a parameter.
    """

    items: str
    item: str | None = None
    count: str | None = None
    sources: str | None = None


class Recipe(BaseModel, extra="forbid", frozen=True):
    """One thing that can be done without a model. With `answer` it is a question: its plan changes nothing.

    `needs`: what must be there: a selection, an open note.
    """

    name: Annotated[str, StringConstraints(min_length=1)]
    title: str
    subject: Subject
    description: str
    examples: tuple[str, ...] = ()
    needs: tuple[Literal["selection", "activeFile"], ...] = ()
    unfold: str | None = None
    """A step that is done for each of a list and becomes a step for each, so that a person can leave one out."""
    doubt: str = ""
    """Why its plan is always a question, also for a sentence that is one of its examples."""
    answer: AnswerFrom | None = None
    inputs: Mapping[str, Input] = Field(default_factory=dict)
    """By name, in the order in which they are asked for."""
    plan: dict[str, Any]
    """A plan without parameters; it refers to the inputs instead."""

    @field_validator("inputs", mode="before")
    @classmethod
    def _named(cls, inputs: Mapping[str, Any]) -> Mapping[str, Any]:
        return {
            name: {"name": name, **each} if isinstance(each, Mapping) else each
            for name, each in inputs.items()
        }

    @property
    def defaults(self) -> dict[str, Any]:
        """The values that hold when none are given."""
        return {
            name: wanted.default
            for name, wanted in self.inputs.items()
            if wanted.default is not None
        }

    def missing(self, values: Mapping[str, Any]) -> tuple[str, ...]:
        """The inputs that still need a value."""
        return tuple(
            name
            for name, wanted in self.inputs.items()
            if wanted.needed and values.get(name) is None
        )

    @property
    def tools(self) -> tuple[str, ...]:
        """The tools of its steps, each once."""
        return tuple(dict.fromkeys(str(step["tool"]) for step in self.plan["steps"]))


@cache
def packaged() -> tuple[Recipe, ...]:
    """The recipes that ship, by name; read and checked at the first call."""
    folder = resources.files("obsidian_agent.offline").joinpath("recipes")
    files = sorted(
        (file for file in folder.iterdir() if file.name.endswith(".json")),
        key=lambda file: file.name,
    )
    return tuple(Recipe.model_validate_json(file.read_bytes()) for file in files)


def recipe_named(name: str, recipes: Iterable[Recipe]) -> Recipe | None:
    """The recipe of a name or title, case ignored."""
    wanted = name.strip().casefold()
    return next(
        (each for each in recipes if wanted in (each.name.casefold(), each.title.casefold())), None
    )
