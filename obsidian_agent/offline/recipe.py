"""Recipes: parameterised plans with a few example sentences, one JSON file each in `recipes/`.

A recipe is what a macro is, a plan whose inputs are `plan.parameters`, and a little more: a subject for the menu, example sentences, and
for each parameter what sort of value it takes (`kinds`) where its type alone does not say. Macros are seen as recipes (`from_macro`), so
that one form, one reader of values and one way to a plan (`recipe_plan.fill`) serve both.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from importlib import resources
from typing import Annotated, Any, Final, Literal, Protocol, Self, get_args

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

from obsidian_agent.plan.model import ActionPlan, ParameterType
from obsidian_agent.plan.scope import CONTEXT_NAMES

Kind = Literal[
    "text",
    "number",
    "boolean",
    "date",
    "list",
    "path",
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
    "choice",
    "notes",
    "field",
]
"""What a parameter takes. `entry`: a note, folder or other file that exists; `newNote`: the path of a note to be made; `newName`: another
path for the entry `of` names, given by its name; `value`: what a property is set to; `heading`: one of the note `of` names; `notes`: a
description of notes (`note_set.py`); `field`: what notes are sorted or grouped by. The others are types of the plan language, or plain."""

Subject = Literal["Notes", "Text", "Lists", "Tasks", "Links", "Tags & properties", "Daily notes", "Find", "Saved"]
"""Where a recipe stands in the menu; `Saved` are the macros."""

SUBJECTS: Final[tuple[Subject, ...]] = get_args(Subject)
MOST_EXAMPLES: Final = 6

SLOT: Final = re.compile(r"\{([A-Za-z][A-Za-z0-9_]*)(?:\.([A-Za-z]+))?\}")
"""A slot of an example: `{name}` is a parameter, `{notes.tag}` one field of a description of notes."""

_TYPES: Final[Mapping[str, ParameterType]] = {
    "number": "number",
    "boolean": "boolean",
    "date": "date",
    **dict.fromkeys(("list", "tags", "properties"), "list"),
    **dict.fromkeys(("path", "note", "entry", "folder", "newNote", "newName", "template"), "path"),
}


class RecipeModel(BaseModel):
    """Base of a recipe's parts: unknown fields refused, immutable."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class KindOf(RecipeModel):
    """What sort of value a parameter takes, beyond its type in the plan.

    `of`: the parameter that a heading or a new name belongs to. `options`: of a choice, value -> how it is shown. `optional`: arguments and
    steps that hang on it are left out when it is not given.
    """

    kind: Kind
    of: str | None = None
    options: Mapping[str, str] = Field(default_factory=dict)
    optional: bool = False


class AnswerFrom(RecipeModel):
    """How the outputs of a plan that only reads become an answer. Places are like `find.files`.

    The answer's first line is the plan's goal (what was looked for) with a number: `count`, or the length of the list at `items`. `item`
    is one line of the list, as in `util.formatList`; `sources` the field of an item that holds a note's path, or `${name}` of a parameter.
    """

    items: str
    item: str | None = None
    count: str | None = None
    sources: str | None = None


@dataclass(frozen=True, slots=True)
class Input:
    """One input of a recipe or macro, as forms, readers and models see it.

    `type` is what the plan declares; `default` the value that holds when none is given (`${activeFile}` is the open note).
    """

    name: str
    kind: Kind
    type: ParameterType
    description: str
    default: Any = None
    optional: bool = False
    of: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)

    @property
    def needed(self) -> bool:
        """Whether it must be asked for when it is not given."""
        return self.default is None and not self.optional


class Recipe(RecipeModel):
    """One thing that can be done without a model. With `answer` it is a question: its plan changes nothing.

    `needs`: what must be there: a selection, an open note.
    """

    name: Annotated[str, StringConstraints(min_length=1)]
    title: str
    subject: Subject
    description: str
    examples: tuple[str, ...] = ()
    kinds: Mapping[str, KindOf] = Field(default_factory=dict)
    needs: tuple[Literal["selection", "activeFile"], ...] = ()
    unfold: str | None = None
    """A step that is done for each of a list and becomes a step for each, so that a person can leave one out."""
    answer: AnswerFrom | None = None
    plan: dict[str, Any]

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        declared = self.plan.get("parameters", {})
        unknown = {slot for example in self.examples for slot, _ in SLOT.findall(example)} | self.kinds.keys()
        if unknown - declared.keys():
            raise ValueError(f"recipe {self.name}: no such parameter: {sorted(unknown - declared.keys())}")
        return self

    @cached_property
    def inputs(self) -> Mapping[str, Input]:
        """The inputs by name, in the order of the plan's parameters."""
        return {name: _input(name, declared, self.kinds.get(name)) for name, declared in self.plan.get("parameters", {}).items()}

    @property
    def tools(self) -> tuple[str, ...]:
        """The tools of its steps, each once."""
        return tuple(dict.fromkeys(str(step["tool"]) for step in self.plan["steps"]))


class MacroLike(Protocol):
    """What is needed of a saved macro."""

    @property
    def name(self) -> str: ...
    @property
    def description(self) -> str | None: ...
    @property
    def phrases(self) -> Sequence[str]: ...
    @property
    def plan(self) -> ActionPlan: ...


def from_macro(macro: MacroLike) -> Recipe:
    """A macro as a recipe of the subject `Saved`: its name (with “for” before its one input) and its phrases are its examples."""
    document = macro.plan.to_json()
    declared = document.get("parameters", {})
    # What the run's own context binds by itself need not be asked for.
    declared = {name: each for name, each in declared.items() if name not in CONTEXT_NAMES or each.get("default") is not None}
    document["parameters"] = declared
    lacking = [name for name, each in declared.items() if each.get("default") is None]
    said = [macro.name, f"Run {macro.name}", *([f"{macro.name} for {{{lacking[0]}}}"] if len(lacking) == 1 else []), *macro.phrases]
    examples = [each for each in said if {slot for slot, _ in SLOT.findall(each)} <= declared.keys()]
    return Recipe(
        name=f"macro:{macro.name}",
        title=macro.name,
        subject="Saved",
        description=macro.description or macro.plan.goal,
        examples=tuple(dict.fromkeys(examples)),
        plan=document,
    )


@cache
def packaged() -> tuple[Recipe, ...]:
    """The recipes that ship, by name; read and checked at the first call."""
    folder = resources.files("obsidian_agent.offline").joinpath("recipes")
    files = sorted((file for file in folder.iterdir() if file.name.endswith(".json")), key=lambda file: file.name)
    return tuple(Recipe.model_validate_json(file.read_bytes()) for file in files)


def recipe_named(name: str, recipes: Iterable[Recipe]) -> Recipe | None:
    """The recipe of a name or title, case ignored."""
    wanted = name.strip().casefold()
    return next((each for each in recipes if wanted in (each.name.casefold(), each.title.casefold())), None)


def _input(name: str, declared: Mapping[str, Any], kind: KindOf | None) -> Input:
    type_: ParameterType = declared.get("type", "text")
    told = kind or KindOf(kind=type_)
    return Input(
        name=name,
        kind=told.kind,
        type=_TYPES.get(told.kind, type_),
        description=declared.get("description") or name,
        default=declared.get("default"),
        optional=told.optional,
        of=told.of,
        options=told.options,
    )
