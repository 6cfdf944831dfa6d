"""The planner that needs no model: recipes and the person's macros.

A sentence that is an example of one recipe, word for word, becomes its plan or its answer. Any other gets the likeliest recipes with what the
sentence holds filled in, to pick from. What it makes goes the way of every plan: validated, previewed, approved.
A question is a plan that only reads: its dry run is put into words, of which the first line says what was looked for.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Final

from obsidian_agent.agent.events import (
    Answer,
    Candidate,
    Emit,
    NeedsInput,
    PlanReady,
    TurnFailed,
    Verdict,
)
from obsidian_agent.agent.planner import PlanRequest
from obsidian_agent.dataclass import dataclass, field, replace
from obsidian_agent.errors import PlanError, Problem
from obsidian_agent.offline.check import doubts
from obsidian_agent.offline.names import Surroundings, VaultNames
from obsidian_agent.offline.note_set import ACTIVE, InvalidValue
from obsidian_agent.offline.reader import ExampleMatch, match_examples
from obsidian_agent.offline.recipe import SLOT, AnswerFrom, Input, Recipe, packaged
from obsidian_agent.offline.recipe_plan import escape, fill, map_texts
from obsidian_agent.offline.search import MAX_SUGGESTIONS, Menu, RecipeSuggestion
from obsidian_agent.offline.sentence import Sentence, beginning
from obsidian_agent.offline.values import (
    BLANK_VALUES,
    PATH_KINDS,
    forbidden_path,
    form_text,
    is_blank,
    read,
)
from obsidian_agent.plan.model import MAX_STEPS, ActionPlan
from obsidian_agent.plan.policy import UNRESTRICTED, Policy
from obsidian_agent.plan.preview import dry_run
from obsidian_agent.plan.references import CONTEXT_NAMES
from obsidian_agent.plan.result import Preview
from obsidian_agent.tools.core.filters import FilterContext, LinkWriter, ListTemplate, text_of
from obsidian_agent.tools.core.tool import Tool
from obsidian_agent.vault.views.view import VaultView

if TYPE_CHECKING:
    from obsidian_agent.services.macro import Macro

MOST_LINES: Final = 200
"""Of a list in an answer; of what is more, the number is told."""
NO_SELECTION: Final = "Nothing is selected: select text first, for example a list of bullets."
NO_ACTIVE_FILE: Final = "No note is open: open one, or name the note."
WHICH: Final = "Which of these is it?"
NEAREST: Final = "No action here fits these words; these are the nearest by the names in them."
NOTHING: Final = (
    "No action here fits these words. All that can be done is in the menu; "
    "a sentence can be like “Move all notes tagged #done to Archive”. To start with:"
)


@dataclass(frozen=True)
class OfflinePlanner:
    """A planner over recipes and macros. `view` gives the vault as it is now; `macros` those that this person trusts; `policy` what plans may do."""

    view: Callable[[], VaultView]
    tools: Mapping[str, Tool]
    macros: Callable[[], Sequence[Macro]] = tuple
    policy: Callable[[], Policy] = lambda: UNRESTRICTED
    name: str = "offline"
    _known: list[VaultNames] = field(default_factory=list, repr=False)
    _menus: list[Menu] = field(default_factory=list, repr=False)
    """The names and the menu of the last turn: while a message is typed, the vault and the macros mostly stay as they are."""

    async def plan(self, request: PlanRequest, emit: Emit) -> Verdict:
        """The plan, the answer, what is asked back, or why not; nothing happens on the way."""
        return await asyncio.to_thread(self.decide, request)

    def recipes(self, *, questions: bool = False) -> tuple[Recipe, ...]:
        """What there is to choose from: the recipes that ship, and the macros; or questions only. May block."""
        usable = (each for each in packaged() if all(tool in self.tools for tool in each.tools))
        return (
            tuple(each for each in usable if each.answer is not None)
            if questions
            else (*usable, *map(from_macro, self.macros()))
        )

    def decide(self, request: PlanRequest, *, questions: bool = False) -> Verdict:
        """The same as `plan` without waiting for a thread. `questions`: answers only, never a plan."""
        return self.picked(request, self.turn(request, questions=questions).verdict())

    def picked(self, request: PlanRequest, verdict: Verdict) -> Verdict:
        """The chosen candidate of a question, with the values that are given besides; without `request.pick` the verdict as it is."""
        if request.pick is None or isinstance(verdict, TurnFailed):
            return verdict
        candidates = verdict.candidates if isinstance(verdict, NeedsInput) else (None,)
        if candidates and not 1 <= request.pick <= len(candidates):
            return TurnFailed(
                Problem(
                    "ARGUMENT_INVALID",
                    f"There is no candidate {request.pick}; there are {len(candidates)}.",
                )
            )
        chosen = candidates[request.pick - 1] if candidates else None
        if chosen is None:
            return verdict
        recipe = next((each for each in self.recipes() if each.name == chosen.recipe), None)
        if recipe is not None:
            return self.turn(request).propose(recipe, {**chosen.values, **request.params})
        return PlanReady(chosen.plan, agent=chosen.agent) if chosen.plan is not None else verdict

    def turn(self, request: PlanRequest, *, questions: bool = False) -> OfflineTurn:
        """A sentence over the vault as it is now; its names hold as long as its index is the same. May block."""
        around = Surroundings(self.view(), request.context, self._known[0] if self._known else None)
        self._known[:] = [around.names]
        return OfflineTurn(self, request, around, questions)

    def menu(self, recipes: Sequence[Recipe]) -> Menu:
        """The recipes to search in; made anew when there are others."""
        if not self._menus or self._menus[0].recipes != recipes:
            self._menus[:] = [Menu(recipes)]
        return self._menus[0]


def from_macro(macro: Macro) -> Recipe:
    """A macro as a recipe of the subject `Saved`: its name (with “for” before its one input) and its phrases are its examples."""
    # What the run's own context binds by itself need not be asked for.
    inputs = {
        name: Input(
            name=name, kind=each.type, description=each.description or name, default=each.default
        )
        for name, each in macro.plan.parameters.items()
        if name not in CONTEXT_NAMES or each.default is not None
    }
    lacking = [name for name, each in inputs.items() if each.needed]
    said = [
        macro.name,
        f"Run {macro.name}",
        *([f"{macro.name} for {{{lacking[0]}}}"] if len(lacking) == 1 else []),
        *macro.phrases,
    ]
    return Recipe(
        name=f"macro:{macro.name}",
        title=macro.name,
        subject="Saved",
        description=macro.description or macro.plan.goal,
        examples=tuple(
            dict.fromkeys(
                each for each in said if {slot for slot, _ in SLOT.findall(each)} <= inputs.keys()
            )
        ),
        inputs=inputs,
        plan=macro.plan.to_json(),
    )


@dataclass(frozen=True)
class OfflineTurn:
    """One sentence against one vault at one moment. `questions`: only those. Methods may block."""

    planner: OfflinePlanner
    request: PlanRequest
    around: Surroundings
    questions: bool = False

    @cached_property
    def recipes(self) -> Sequence[Recipe]:
        """What there is to choose from."""
        return self.planner.recipes(questions=self.questions)

    def verdict(self) -> Verdict:
        """A sure reading, or what to pick from."""
        if len(self._readings) != 1:
            if (refused := self._out_of_bounds()) is not None:
                return TurnFailed(refused)
            worded = self._readings or any(each.worded for each in self._nearest)
            return NeedsInput(
                WHICH
                if worded
                else NEAREST
                if any(each.score for each in self._nearest)
                else NOTHING,
                self.candidates,
            )
        reading = self._readings[0]
        if self.request.params:
            texts = {
                name: form_text(reading.recipe.inputs[name], value)
                for name, value in reading.values.items()
            }
            return self.propose(reading.recipe, {**texts, **self.request.params}, certain=True)
        return self._settled(reading.recipe, reading.values, certain=True)

    def values(self, recipe: Recipe, texts: Mapping[str, Any]) -> dict[str, Any]:
        """Return the values of texts. Raise `InvalidValue`, whose path is the input's name.

        A blank text is not a default: it is a value of the kinds in `BLANK_VALUES`, leaves an
        optional or required input without one, and is refused where a default would hold.
        """
        values: dict[str, Any] = {}
        for name, wanted in sorted(recipe.inputs.items(), key=lambda item: bool(item[1].of)):
            text = texts.get(name)
            if text is None:
                continue
            no_value = wanted.optional or wanted.kind not in BLANK_VALUES
            if is_blank(wanted, text) and wanted.default is None and no_value:
                continue
            try:
                values[name] = read(wanted, text, self.around, recipe.defaults | values)
            except InvalidValue as error:
                error.path, error.message = name, f"{name}: {error.message}"
                raise
        return values

    def propose(
        self,
        recipe: Recipe,
        texts: Mapping[str, Any],
        *,
        certain: bool = False,
        doubted: bool = False,
    ) -> Verdict:
        """What becomes of a recipe with values as a person, a model or a script gives them, mostly as text.

        A plan or an answer, what is missing, or `TurnFailed` with ARGUMENT_INVALID for a value that is none. `doubted`: somebody else chose
        recipe and values for the request's message, so they are compared with it; a doubt makes the plan a question. `certain`: the message
        is an example of the recipe, so that only the effect is looked at.
        """
        unknown = texts.keys() - recipe.inputs.keys()
        if unknown:
            known = ", ".join(recipe.inputs) or "none"
            return TurnFailed(
                Problem(
                    "ARGUMENT_INVALID",
                    f"“{recipe.title}” has no input “{sorted(unknown)[0]}”; it has {known}.",
                )
            )
        try:
            values = self.values(recipe, texts)
            return self._settled(recipe, values, certain=certain, doubted=doubted)
        except InvalidValue as error:
            return TurnFailed(error.problem())

    @cached_property
    def candidates(self) -> tuple[Candidate, ...]:
        """What may be meant: several readings, else the likeliest recipes."""
        if self._readings:
            return tuple(
                self._candidate(each.recipe, each.values)
                for each in self._readings[:MAX_SUGGESTIONS]
            )
        return tuple(
            self._candidate(each.recipe, each.values, doubted=True) for each in self._nearest
        )

    @cached_property
    def _nearest(self) -> list[RecipeSuggestion]:
        return self.planner.menu(self.recipes).nearest(self.request.message, self.around)

    def _out_of_bounds(self) -> Problem | None:
        """Why the place that the likeliest action wants cannot be the one that the sentence names; None where that is not so."""
        first = [] if self._readings else self._nearest[:1]
        if not any(
            each.worded and each.recipe.inputs[name].kind in PATH_KINDS
            for each in first
            for name in each.missing
        ):
            return None
        return next(
            filter(
                None,
                map(forbidden_path, Sentence(beginning(self.request.message), self.around).paths),
            ),
            None,
        )

    @cached_property
    def _readings(self) -> list[ExampleMatch]:
        return match_examples(self.request.message, self.recipes, self.around)

    def _settled(
        self,
        recipe: Recipe,
        values: Mapping[str, Any],
        *,
        certain: bool = False,
        doubted: bool = False,
    ) -> Verdict:
        unmet = self.unmet(recipe)
        if unmet is not None:
            return NeedsInput(unmet)
        if missing := recipe.missing(values):
            wanted = ", ".join(recipe.inputs[name].description.lower() for name in missing)
            return NeedsInput(
                f"{recipe.title}: what is missing is {wanted}.",
                (self._candidate(recipe, values),),
                missing,
            )
        if self.around.active_file is None and ACTIVE in (recipe.defaults | dict(values)).values():
            return NeedsInput(NO_ACTIVE_FILE, (self._candidate(recipe, values),))
        plan = fill(recipe, values)
        if recipe.unfold:
            plan = self._unfolded(plan, recipe.unfold)
        preview = None
        if doubted or (certain and recipe.answer is None):
            preview = self.tried(plan, self.planner.policy())
            found = doubts(
                self.request.message,
                self.around,
                (recipe, values),
                preview=preview,
                certain=not doubted,
            )
            if found:
                return NeedsInput(
                    f"Is it this? {' '.join(found)}",
                    (replace(self._candidate(recipe, values), doubt=" ".join(found)),),
                )
        if recipe.answer is None:
            return PlanReady(plan, preview=preview)
        texts = {
            name: form_text(recipe.inputs[name], value)
            for name, value in (recipe.defaults | dict(values)).items()
        }
        return self._answer(
            plan,
            recipe.answer,
            {
                name: self.around.active_file or "" if text == ACTIVE else text
                for name, text in texts.items()
            },
        )

    def _answer(
        self, plan: ActionPlan, wording: AnswerFrom, texts: Mapping[str, str]
    ) -> Answer | TurnFailed:
        """The answer to a question, with the notes that it rests on. Such a plan may change nothing."""
        try:
            done = dry_run(
                plan.to_json(),
                self.planner.tools,
                Policy(allow_writes=False),
                self.around.view,
                self.request.context,
            )
        except PlanError as error:
            return TurnFailed(error.problems[0], error.problems)
        if done.errors:
            return TurnFailed(done.errors[0], done.errors)
        listed = _at(done.outputs, wording.items, texts)
        if isinstance(listed, dict):
            listed = [{"key": key, "value": each} for key, each in listed.items()]
        items = listed if isinstance(listed, list) else [] if listed in (None, "") else [listed]
        count = _at(done.outputs, wording.count, texts) if wording.count else len(items)
        if not items and not count:
            return Answer(f"{plan.goal}: nothing found.")
        lines = [f"{plan.goal}: {text_of(count)}"]
        if wording.item:
            line = ListTemplate(
                wording.item, FilterContext(LinkWriter(self.around.view), self.around.context.now)
            )
            lines += [line.fill(each, index) for index, each in enumerate(items[:MOST_LINES])]
            lines += [f"… and {len(items) - MOST_LINES} more."] if len(items) > MOST_LINES else []
        return Answer(
            "\n".join(lines), _sources(items, wording.sources, texts) if wording.sources else ()
        )

    def _candidate(
        self, recipe: Recipe, values: Mapping[str, Any], *, doubted: bool = False
    ) -> Candidate:
        missing = recipe.missing(values)
        plan = fill(recipe, values) if not missing else None
        found = (
            doubts(self.request.message, self.around, (recipe, values), live=False)
            if doubted
            else ()
        )
        doubt = " ".join(filter(None, (self.unmet(recipe), *found)))
        title = (
            SLOT.sub("…", plan.goal)
            if plan is not None and recipe.inputs and recipe.answer is None
            else recipe.title
        )
        texts = {name: form_text(recipe.inputs[name], value) for name, value in values.items()}
        runs = plan if recipe.answer is None and not recipe.unfold else None
        return Candidate(title, runs, texts, missing, recipe.name, doubt)

    def unmet(self, recipe: Recipe) -> str | None:
        """What must be there first."""
        selection = self.request.context.selection
        if "selection" in recipe.needs and not (selection and selection.text.strip()):
            return NO_SELECTION
        if "activeFile" in recipe.needs and self.around.active_file is None:
            return NO_ACTIVE_FILE
        return None

    def tried(self, plan: ActionPlan, policy: Policy = UNRESTRICTED) -> Preview | None:
        """The dry run of a plan; None when it is not valid."""
        try:
            return dry_run(
                plan.to_json(),
                self.planner.tools,
                policy,
                self.around.view,
                self.request.context,
                instruction=self.request.message or None,
            )
        except PlanError:
            return None

    def _unfolded(self, plan: ActionPlan, wanted: str) -> ActionPlan:
        """The plan with a step for each of those that one step would do, so that each can be left out."""
        others = plan.model_copy(
            update={"steps": [each for each in plan.steps if each.id != wanted]}
        )
        step, done = next(each for each in plan.steps if each.id == wanted), self.tried(others)
        assert step.foreach is not None
        found = (
            _at(done.outputs, str(step.foreach.from_).removeprefix("$steps."), {})
            if done is not None
            else None
        )
        document = step.model_dump(by_alias=True, exclude={"foreach"}, exclude_defaults=True)
        made = []
        for number, item in enumerate((found or [])[: MAX_STEPS - len(plan.steps)], 1):
            told = map_texts(document, partial(_with_item, step.foreach.item_name, item))
            made.append(type(step).model_validate(told | {"id": f"{wanted}{number}"}))
        return plan.model_copy(update={"steps": [*others.steps, *made]})


def _with_item(name: str, item: Mapping[str, Any], text: str) -> str:
    """A text with the fields of one item in place of references to them."""
    for field_, each in item.items():
        text = text.replace(f"${{{name}.{field_}}}", escape(str(each)))
    return text


def _sources(items: list[Any], field: str, texts: Mapping[str, str]) -> tuple[str, ...]:
    """The paths of the notes, each once; `${name}` is the note of a parameter."""
    if field.startswith("${"):
        return (texts[field[2:-1]],)
    values = (item.get(field) for item in items if isinstance(item, dict))
    notes = (note for value in values for note in (value if isinstance(value, list) else [value]))
    paths = (note.get("path") if isinstance(note, dict) else note for note in notes)
    return tuple(dict.fromkeys(path for path in paths if isinstance(path, str)))


def _at(outputs: Mapping[str, Any], place: str, texts: Mapping[str, str]) -> Any:
    """The value at a place such as `find.files`, where `${name}` is the value of a parameter; None when there is none."""
    value: Any = outputs
    for part in place.split("."):
        key = texts.get(part[2:-1], part) if part.startswith("${") else part
        value = value.get(key) if isinstance(value, Mapping) else None
    return value
