"""The planner without a model: recipes and the user's macros.

A sentence that is, word for word, an example of one recipe becomes its plan or answer. Any other
sentence leads to a choice of the most likely recipes, with the values that it contains filled in.
The plans are validated, previewed and approved like any plan. A question has no plan: its form is a
query, and the first line of the answer states that.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import combinations
from typing import TYPE_CHECKING, Any, Final, Literal

from msgspec import Struct, field
from msgspec.structs import replace

from obsidian_agent.agent.events import (
    Answer,
    Candidate,
    Emit,
    NeedsInput,
    PlanningResult,
    PlanReady,
    TurnFailed,
)
from obsidian_agent.errors import ObsidianAgentError, PlanError, Problem
from obsidian_agent.offline.check import PASTED, doubts, value_doubts
from obsidian_agent.offline.names import Surroundings, VaultNames
from obsidian_agent.offline.note_set import ACTIVE, InvalidValue, NoteSet, Term
from obsidian_agent.offline.reader import ExampleMatch, match_examples
from obsidian_agent.offline.recipe import ITEMS, MAX_SUGGESTIONS, SLOT, Input, Recipe, packaged
from obsidian_agent.offline.recipe_plan import fill
from obsidian_agent.offline.values import (
    BLANK_VALUES,
    PATH_KINDS,
    forbidden_path,
    form_text,
    is_blank,
    read,
)
from obsidian_agent.offline.words import (
    END,
    WORD,
    beginning,
    is_pasted,
    paths_in,
    senses_of,
    tokens,
    without_quotes,
    words,
)
from obsidian_agent.plan.model import ActionPlan, Parameter
from obsidian_agent.plan.policy import UNRESTRICTED, Policy
from obsidian_agent.plan.preview import dry_run
from obsidian_agent.plan.references import CONTEXT_NAMES
from obsidian_agent.plan.result import Preview
from obsidian_agent.tools.core.tool import Tool
from obsidian_agent.vault.paths.path import ROOT
from obsidian_agent.vault.views.view import VaultView

if TYPE_CHECKING:
    from obsidian_agent.agent.planner import PlanRequest
    from obsidian_agent.offline.question import Question
    from obsidian_agent.offline.search import Menu, RecipeSuggestion
    from obsidian_agent.services.macro import Macro

MAX_TRIED: Final = 1_000
"""Notes of a set, or of the vault, up to which a candidate is tried before it is offered."""
MAX_CONDITIONS: Final = 8
"""Conditions of a set of notes without a note, up to which it is tried without some of them."""

_OTHER_KINDS: Final[Mapping[str, Literal["tag", "folder"]]] = {"tag": "folder", "folder": "tag"}
_KIND_WORDS: Final = frozenset({"tag", "folder", "in", "from", "insid"})
"""The stems of words that decide whether a name is a tag or a folder."""

ALL_FINDINGS: Final = "all"
"""The value of an input for kinds of findings that means every kind."""
NO_SELECTION: Final = "Nothing is selected: select text first, for example a list of bullets."
NO_ACTIVE_FILE: Final = "No note is open: open one, or name a note."
NO_CHANGE: Final = "It would change nothing."
WHICH: Final = "Your message may mean:"
NEAREST: Final = "No action matches these words. The closest ones, by the names in your message:"
NEEDS_MODEL: Final = (
    "That takes a model, which reads and writes text: /model chooses one, "
    "and `obsidian-agent model list` shows those on this computer."
)
_WRITING: Final = frozenset({"rewrit"})
"""The senses of verbs that no recipe does: “summarise”, “translate”."""
NOTHING: Final = (
    "No action matches these words. The menu lists all actions; "
    "a sentence can be like “Move all notes tagged #done to Archive”. Some to start with:"
)


class OfflinePlanner(Struct, frozen=True):
    """A planner over recipes and macros.

    `view` returns the vault as it is now, `macros` the trusted macros, `policy` the current policy.
    """

    view: Callable[[], VaultView]
    tools: Mapping[str, Tool]
    macros: Callable[[], Sequence[Macro]] = tuple
    policy: Callable[[], Policy] = lambda: UNRESTRICTED
    name: str = "offline"
    asked_last: list[str] = field(default_factory=list)
    """The message before, if a number chooses another reading of it."""
    _known: list[VaultNames] = field(default_factory=list)
    _menus: list[Menu] = field(default_factory=list)
    """Names and menu of the last turn, which rarely change while a message is typed."""

    async def plan(self, request: PlanRequest, emit: Emit) -> PlanningResult:
        """Plan a request in a thread. No events are emitted."""
        return await asyncio.to_thread(self.decide, request)

    def recipes(self, *, questions: bool = False) -> tuple[Recipe, ...]:
        """Return the packaged recipes and the macros, or only the questions. May block."""
        usable = [
            recipe for recipe in packaged() if all(tool in self.tools for tool in recipe.tools)
        ]
        if questions:
            return tuple(recipe for recipe in usable if recipe.answer is not None)
        return (*usable, *(from_macro(macro, self.tools) for macro in self.macros()))

    def decide(self, request: PlanRequest, *, questions: bool = False) -> PlanningResult:
        """Plan a request. With `questions` there are only answers, never plans. May block."""
        return self.apply_pick(request, self.turn(request, questions=questions).verdict())

    def apply_pick(self, request: PlanRequest, verdict: PlanningResult) -> PlanningResult:
        """Apply `request.pick` and the request's values to the candidates of a question.

        Without `request.pick` the verdict is returned unchanged.
        """
        if request.pick is None or isinstance(verdict, TurnFailed):
            return verdict
        candidates = verdict.candidates if isinstance(verdict, NeedsInput) else (None,)
        if candidates and not 1 <= request.pick <= len(candidates):
            message = f"There is no candidate {request.pick}; there are {len(candidates)}."
            return TurnFailed(Problem("ARGUMENT_INVALID", message))
        chosen = candidates[request.pick - 1] if candidates else None
        if chosen is None:
            return verdict
        recipe = next((recipe for recipe in self.recipes() if recipe.name == chosen.recipe), None)
        if recipe is not None:
            return self.turn(request).propose(recipe, {**chosen.values, **request.params})
        if chosen.plan is None:
            return verdict
        if request.params:
            message = f"“{chosen.title}” has no inputs: say its values in the message."
            return TurnFailed(Problem("ARGUMENT_INVALID", message))
        return PlanReady(chosen.plan, agent=chosen.agent)

    def turn(self, request: PlanRequest, *, questions: bool = False) -> OfflineTurn:
        """Return the turn of a sentence over the vault as it is now. May block."""
        around = Surroundings(self.view(), request.context, self._known[0] if self._known else None)
        self._known[:] = [around.names]
        return OfflineTurn(self, request, around, questions)

    def over(self, view: VaultView) -> OfflinePlanner:
        """Return the planner over another state of the vault."""
        return replace(self, view=lambda: view, _known=[])

    def menu(self, recipes: Sequence[Recipe]) -> Menu:
        """Return the search menu over recipes, which is cached until they change."""
        if not self._menus or self._menus[0].recipes != recipes:
            from obsidian_agent.offline.search import Menu

            self._menus[:] = [Menu(recipes)]
        return self._menus[0]


def from_macro(macro: Macro, tools: Mapping[str, Tool]) -> Recipe:
    """Convert a macro to a recipe of the subject `Macros`.

    An input of which one of the `tools` allows only some words is a choice among these.
    Its examples are its name (followed by “for” and its input, if there is only one) and phrases.
    """
    # A parameter that the context of the run binds need not be asked for.
    inputs = {
        name: _input(name, parameter, macro.plan, tools)
        for name, parameter in macro.plan.parameters.items()
        if name not in CONTEXT_NAMES or parameter.default is not None
    }
    required = [name for name, input in inputs.items() if input.needed]
    examples = [macro.name, f"Run {macro.name}"]
    if len(required) == 1:
        examples.append(f"{macro.name} for {{{required[0]}}}")
    examples += macro.phrases
    usable = [
        example
        for example in examples
        if {slot for slot, _ in SLOT.findall(example)} <= inputs.keys()
    ]
    return Recipe(
        name=f"macro:{macro.name}",
        title=macro.name,
        subject="Macros",
        description=macro.description or macro.plan.goal,
        examples=tuple(dict.fromkeys(usable)),
        inputs=inputs,
        plan=macro.plan.to_json(),
    )


def _input(name: str, parameter: Parameter, plan: ActionPlan, tools: Mapping[str, Tool]) -> Input:
    from obsidian_agent.services.macro import choices_of

    words: list[str] = []
    for step in plan.steps:
        for argument, value in step.args.items():
            if value == f"${{{name}}}":
                words += choices_of(tools.get(step.tool), argument)
    is_choice = parameter.default in words
    return Input(
        name=name,
        kind="choice" if is_choice else parameter.type,
        description=parameter.description or name,
        default=parameter.default,
        options={word: word for word in words} if is_choice else {},
    )


class OfflineTurn(Struct, frozen=True, dict=True):
    """A sentence over a vault at one moment. Methods may block.

    With `questions` only recipes that answer are used.
    """

    planner: OfflinePlanner
    request: PlanRequest
    around: Surroundings
    questions: bool = False

    @cached_property
    def recipes(self) -> Sequence[Recipe]:
        """The recipes of this turn."""
        return self.planner.recipes(questions=self.questions)

    def verdict(self) -> PlanningResult:
        """Return the plan or answer of the only reading, or a question with candidates."""
        if len(self._readings) != 1:
            refusal = self._forbidden_path() or self._forbidden_delete()
            if refusal is not None:
                return TurnFailed(refusal)
            return NeedsInput(self._question(), self.candidates)
        reading = self._readings[0]
        if self.request.params:
            texts = {
                name: form_text(reading.recipe.inputs[name], value)
                for name, value in reading.values.items()
            }
            return self.propose(reading.recipe, {**texts, **self.request.params}, certain=True)
        return self._resolve(reading.recipe, reading.values, certain=True)

    @cached_property
    def question(self) -> Question | None:
        """The question about names of the vault that the message asks, if it is one."""
        # Lazy: instructions and exact examples do not need them.
        from obsidian_agent.offline.question import read_question
        from obsidian_agent.offline.sentence import Sentence

        return read_question(
            Sentence(beginning(self.request.message), self.around, self._menu.common)
        )

    @property
    def of_question(self) -> Candidate | None:
        """The form that asks the question of the message, or None."""
        from obsidian_agent.offline.question import LIKELY, form_of

        if self.question is None or self.question.coverage < LIKELY:
            return None
        name, values = form_of(self.question)
        recipe = next(recipe for recipe in self.recipes if recipe.name == name)
        candidate = self.candidate(recipe, values)
        return None if candidate.missing else candidate

    @property
    def _takes_model(self) -> bool:
        """True if the first verb asks for text that only a model can write."""
        spoken = tokens(beginning(self.request.message))
        first = next((word for word in spoken if not word.is_small), None)
        return first is not None and not _WRITING.isdisjoint(first.senses)

    def _question(self) -> str:
        if not self._readings and self._takes_model:
            return NEEDS_MODEL
        if self._readings or any(suggestion.worded for suggestion in self._nearest):
            return WHICH
        if any(suggestion.score for suggestion in self._nearest):
            return NEAREST
        return NOTHING

    def values(self, recipe: Recipe, texts: Mapping[str, Any]) -> dict[str, Any]:
        """Return the values of texts. Raise `InvalidValue`, whose path is the input's name.

        A blank text is not a default: it is a value of the kinds in `BLANK_VALUES`, leaves an
        optional or required input without one, and is refused where a default would hold.
        """
        values: dict[str, Any] = {}
        for name, input in sorted(recipe.inputs.items(), key=lambda item: bool(item[1].of)):
            text = texts.get(name)
            if text is None:
                continue
            no_value = input.optional or input.kind not in BLANK_VALUES
            if is_blank(input, text) and input.default is None and no_value:
                continue
            try:
                values[name] = read(input, text, self.around, recipe.defaults | values)
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
    ) -> PlanningResult:
        """Return the verdict on a recipe with values as users, models or scripts write them.

        It is a plan, an answer, a question for missing values, or `TurnFailed` with
        ARGUMENT_INVALID for an invalid value. `doubted`: recipe and values were chosen by a model
        or by similarity, so they are compared with the message, and a doubt makes the plan a
        question. `certain`: the message is an example of the recipe, so only the effect is checked.
        """
        unknown = texts.keys() - recipe.inputs.keys()
        if unknown:
            known = ", ".join(recipe.inputs) or "none"
            message = f"“{recipe.title}” has no input “{sorted(unknown)[0]}”; it has {known}."
            return TurnFailed(Problem("ARGUMENT_INVALID", message))
        try:
            values = self.values(recipe, texts)
            return self._resolve(recipe, values, certain=certain, doubted=doubted)
        except InvalidValue as error:
            return TurnFailed(error.problem())

    def texts_for(self, name: str) -> dict[str, str]:
        """Return the values that a recipe, by name, takes from the message, as texts."""
        suggestions = self._menu.nearest(self.request.message, self.around, len(self.recipes))
        return {
            key: form_text(suggestion.recipe.inputs[key], value)
            for suggestion in suggestions
            if suggestion.recipe.name == name
            for key, value in suggestion.values.items()
        }

    @property
    def candidates(self) -> tuple[Candidate, ...]:
        """The readings of the message, or else the most likely recipes."""
        return tuple(candidate for candidate, _ in self.ranked)

    @cached_property
    def ranked(self) -> Sequence[tuple[Candidate, RecipeSuggestion | None]]:
        """The candidates, each with the suggestion behind it.

        It is `None` for a reading, and for a plan of several orders, which has no recipe either.
        """
        if self._readings or self.questions:
            return self.single
        # Lazy: a sentence written like an example is one action.
        from obsidian_agent.services.joined import with_joined

        return with_joined(self, self._menu.common)[:MAX_SUGGESTIONS]

    @cached_property
    def single(self) -> Sequence[tuple[Candidate, RecipeSuggestion | None]]:
        """The candidates that are one action."""
        if self._readings:
            readings = self._readings[:MAX_SUGGESTIONS]
            return [(self.candidate(one.recipe, one.values), None) for one in readings]
        ranked: list[tuple[Candidate, RecipeSuggestion | None]] = []
        titles: set[str] = set()
        for suggestion in self._menu.likely(self._nearest):
            candidate = self.candidate(suggestion.recipe, suggestion.values, suggestion)
            if candidate.title in titles and not candidate.missing:
                continue
            titles.add(candidate.title)
            ranked.append((candidate, suggestion))
            if not ranked[1:]:
                ranked += ((other, suggestion) for other in self._with_other_kind(suggestion))
                ranked += ((other, suggestion) for other in self._with_every_note(suggestion))
                ranked += ((other, suggestion) for other in self._with_one_text(suggestion))
            if not candidate.missing and not self._deletes(suggestion.recipe):
                ranked += ((other, suggestion) for other in self._with_fewer_terms(suggestion))
        # Such a word may say what else is meant: “delete the empty lines of this note”.
        ranked = [one for one in ranked if one[0].missing or not self._is_guessed_delete(one[0])]
        ranked.sort(key=lambda one: self._is_guessed_delete(one[0]))
        possible = [reading for reading in ranked if not self._unmet(reading[0])] or ranked
        offered = [one for one in possible if not self._is_off(one[0], possible)]
        useful = sorted(offered, key=lambda reading: _is_outdone(reading[0], offered))
        if any(_explains_all(one) for one, _ in useful[:MAX_SUGGESTIONS]):
            is_first = _explains_all(useful[0][0])
            useful.sort(key=lambda one: bool(one[0].missing and one[0].unused))
            useful = [one for one in useful if not (is_first and one[0].missing and one[0].unused)]
        if self._takes_model:
            useful = [(one, by) for one, by in useful if not (one.missing or one.doubt)]
        return useful[:MAX_SUGGESTIONS]

    def _is_off(
        self, candidate: Candidate, others: Sequence[tuple[Candidate, RecipeSuggestion | None]]
    ) -> bool:
        """Return True for one that deletes where that is off, if another needs no further value.

        One that the message names completely stays, to say so.
        """
        if not candidate.deletes or self.planner.policy().allow_deletes:
            return False
        is_named = _names_verb(self.request.message, candidate) and not candidate.missing
        return not is_named and any(not (one.deletes or one.missing) for one, _ in others)

    def _is_guessed_delete(self, candidate: Candidate) -> bool:
        """Return True for one that deletes notes though words of its clause are not used."""
        if not (candidate.deletes and words(candidate.title)[:1] == ["delet"]):
            return False
        clause = END.split(without_quotes(self.request.message), maxsplit=1)[0]
        return bool(candidate.unknown) or any(text in clause for text in candidate.unused)

    def _unmet(self, candidate: Candidate) -> bool:
        return any(doubt in (NO_SELECTION, NO_ACTIVE_FILE) for doubt in candidate.doubts)

    def _with_other_kind(self, suggestion: RecipeSuggestion) -> Iterator[Candidate]:
        """Yield the candidate of a suggestion whose tag is read as a folder, or the opposite.

        Words for either kind, and prepositions, decide it.
        """
        spoken = WORD.findall(self.request.message)
        decided = frozenset[str]().union(*map(senses_of, spoken))
        if "#" in self.request.message or decided & _KIND_WORDS:
            return
        for name, described in suggestion.values.items():
            if not isinstance(described, NoteSet):
                continue
            for term in described.terms:
                kind = _OTHER_KINDS.get(term.key)
                if kind is None or term.negated:
                    continue
                for other in self.around.names.find(str(term.value).rpartition("/")[2], kind):
                    new = Term(kind, other.value)
                    terms = tuple(new if one is term else one for one in described.terms)
                    values = {**suggestion.values, name: NoteSet(terms)}
                    yield self.candidate(suggestion.recipe, values, suggestion)

    def _with_one_text(self, suggestion: RecipeSuggestion) -> Iterator[Candidate]:
        """Yield the candidate with the whole text of one whose text is read as several items."""
        if suggestion.values.get(ITEMS) == "lines" and "text" in suggestion.guesses:
            values = {key: value for key, value in suggestion.values.items() if key != ITEMS}
            values["text"] = suggestion.guesses["text"]
            yield self.candidate(suggestion.recipe, values, suggestion)

    def _with_every_note(self, suggestion: RecipeSuggestion) -> Iterator[Candidate]:
        """Yield the candidate for all notes of one that takes the open note without a word."""
        name = suggestion.assumed or ""
        if name and suggestion.recipe.inputs[name].optional:
            values = {key: value for key, value in suggestion.values.items() if key != name}
            yield self.candidate(suggestion.recipe, values, suggestion)

    def _with_fewer_terms(self, suggestion: RecipeSuggestion) -> Iterator[Candidate]:
        """Yield the candidate of a suggestion without the conditions that no note meets."""
        for name, described in suggestion.values.items():
            if not isinstance(described, NoteSet) or self._count(described) != 0:
                continue
            fewer = self._largest_met(described)
            if fewer is not None:
                values = {**suggestion.values, name: fewer}
                other = self.candidate(suggestion.recipe, values, suggestion)
                count = self._count(fewer)
                doubt = f"No note matches: {described.text()}. {count} match: {fewer.text()}."
                yield replace(other, doubts=(doubt, *other.doubts))

    def _largest_met(self, described: NoteSet) -> NoteSet | None:
        """Return the description without one condition, or without two, that fewest notes match."""
        affirmed = [term for term in described.terms if not (term.negated or term.op == "lacks")]
        if len(affirmed) > MAX_CONDITIONS:
            return None
        for dropped in (1, 2):
            smaller = [
                NoteSet(tuple(term for term in described.terms if term not in without))
                for without in combinations(affirmed, dropped)
                if len(affirmed) > dropped
            ]
            counts = [(self._count(fewer) or 0, fewer) for fewer in smaller]
            met = [(count, fewer) for count, fewer in counts if count]
            if met:
                return min(met, key=lambda pair: pair[0])[1]
        return None

    def _deletes(self, recipe: Recipe) -> bool:
        return any(self.planner.tools[tool].deletes for tool in recipe.tools)

    def _count(self, described: NoteSet) -> int | None:
        """Return the number of matching notes, or `None` if that cannot be determined."""
        if described not in self._counts:
            try:
                self._counts[described] = len(described.paths(self.around))
            except ObsidianAgentError:
                self._counts[described] = None
        return self._counts[described]

    @cached_property
    def _counts(self) -> dict[NoteSet, int | None]:
        return {}

    @cached_property
    def _nearest(self) -> list[RecipeSuggestion]:
        return self._menu.nearest(self.request.message, self.around)

    @property
    def _menu(self) -> Menu:
        return self.planner.menu(self.recipes)

    def _forbidden_path(self) -> Problem | None:
        """Return why no action can use the path that the sentence names, unless it is a text."""
        if self._readings or not self._nearest or not self._nearest[0].worded:
            return None
        first = self._nearest[0]
        needs_path = any(first.recipe.inputs[name].kind in PATH_KINDS for name in first.missing)
        texts = " ".join(str(value) for one in self._nearest for value in one.values.values())
        # A URL, or a path from the root, may also be a part of a text.
        paths = (
            path
            for path in paths_in(self.request.message)
            if needs_path or (path.startswith(".") and path not in texts)
        )
        return next(filter(None, map(forbidden_path, paths)), None)

    def _forbidden_delete(self) -> Problem | None:
        """Return why nothing can be deleted, if the sentence begins with that verb."""
        if self._readings or not self._nearest:
            return None
        recipe = self._nearest[0].recipe
        spoken, title = words(self.request.message), words(recipe.title)
        return next(self._delete_problems(recipe), None) if spoken[:1] == title[:1] else None

    @cached_property
    def _readings(self) -> list[ExampleMatch]:
        return match_examples(self.request.message, self.recipes, self.around)

    def _resolve(
        self,
        recipe: Recipe,
        values: Mapping[str, Any],
        *,
        certain: bool = False,
        doubted: bool = False,
    ) -> PlanningResult:
        unmet = self.unmet(recipe)
        if unmet is not None:
            return NeedsInput(unmet)
        if missing := recipe.missing(values):
            names = ", ".join(recipe.inputs[name].description.lower() for name in missing)
            return NeedsInput(
                f"{recipe.title}: missing {names}.",
                (self.candidate(recipe, values),),
                missing,
            )
        if self.around.active_file is None and ACTIVE in (recipe.defaults | dict(values)).values():
            return NeedsInput(NO_ACTIVE_FILE, (self.candidate(recipe, values),))
        if recipe.answer is None and not (doubted or certain):
            for described in values.values():
                if isinstance(described, NoteSet) and self._count(described) == 0:
                    return Answer(f"No note matches: {described.text()}. Nothing was changed.")
        is_question = recipe.answer is not None
        plan = None if is_question else fill(recipe, values)
        preview = None
        if doubted or (certain and not is_question):
            preview = self.tried(plan, self.planner.policy()) if plan is not None else None
            sentences = doubts(
                self.request.message,
                self.around,
                (recipe, values),
                preview=preview,
                certain=not doubted,
            )
            if sentences:
                candidate = replace(self.candidate(recipe, values), doubts=sentences)
                return NeedsInput(f"Is this what you mean? {candidate.doubt}", (candidate,))
        if plan is not None:
            return PlanReady(plan, preview=preview)
        return self._answer(recipe, recipe.defaults | dict(values))

    def _answer(self, recipe: Recipe, values: Mapping[str, Any]) -> Answer | TurnFailed:
        if recipe.answer == "health":
            spec = next(iter(recipe.inputs.values()))
            return _health_answer(recipe.title, str(values[spec.name]), spec.options)
        # Lazy: instructions do not need them.
        from obsidian_agent.offline.question import of_form
        from obsidian_agent.services.question_answer import answer_question

        try:
            return answer_question(of_form(recipe.answer, values), self.around)
        except ObsidianAgentError as error:
            return TurnFailed(error.problem())

    def candidate(
        self,
        recipe: Recipe,
        values: Mapping[str, Any],
        suggestion: RecipeSuggestion | None = None,
    ) -> Candidate:
        """Return a candidate, with the doubts about the suggestion behind it."""
        # This import is not needed for a certain sentence.
        from obsidian_agent.services.candidates import (
            new_names,
            sentence_of,
            title_of,
            unknown_names,
        )

        missing, names = self._missing(recipe, values), self.around.names
        plan = fill(recipe, values) if not missing and recipe.answer is None else None
        unused = tuple(suggestion.unused) if suggestion is not None else ()
        guesses = suggestion.guesses if suggestion is not None else {}
        unknown = tuple(unknown_names(recipe, values, unused, names))
        named = {name.text for name in unknown}
        sentence = sentence_of(recipe, values, missing, self._count)
        failure = self._failure(recipe, values, plan) if suggestion is not None else None
        return Candidate(
            title=title_of(sentence),
            plan=plan,
            values={name: form_text(recipe.inputs[name], value) for name, value in values.items()},
            missing=missing,
            recipe=recipe.name,
            doubts=tuple(filter(None, (failure, *self._doubts(recipe, suggestion)))),
            sentence=sentence,
            guesses=tuple(
                f"{recipe.inputs[name].description.lower()} “{text}”"
                for name, text in guesses.items()
            ),
            unused=tuple(text for text in unused if text not in named),
            unknown=unknown,
            news=tuple(
                f"{kind} {text} is new" for _, kind, text in new_names(recipe, values, names)
            ),
            deletes=self._deletes(recipe),
            fails=failure is not None,
        )

    def _missing(self, recipe: Recipe, values: Mapping[str, Any]) -> tuple[str, ...]:
        """Return the inputs without a value, among them the open note if none is open."""
        known = recipe.defaults | dict(values)
        lacking = [name for name, value in known.items() if value == ACTIVE]
        return (*recipe.gaps(values), *(lacking if self.around.active_file is None else ()))

    def _failure(
        self, recipe: Recipe, values: Mapping[str, Any], plan: ActionPlan | None
    ) -> str | None:
        """Return why a plan would change nothing, or None if it would, or is not tried."""
        sets = [value for value in values.values() if isinstance(value, NoteSet)]
        is_small = self.around.names.index.note_count(ROOT) <= MAX_TRIED
        is_quick = is_small or any((self._count(one) or MAX_TRIED) < MAX_TRIED for one in sets)
        writes = any(self.planner.tools[tool].risk == "writes" for tool in recipe.tools)
        preview = self.tried(plan) if plan is not None and writes and is_quick else None
        if preview is None or preview.change_set.changes:
            return None
        return preview.errors[0].message if preview.errors else NO_CHANGE

    def _doubts(self, recipe: Recipe, suggestion: RecipeSuggestion | None) -> Iterator[str]:
        if unmet := self.unmet(recipe):
            yield unmet
        if suggestion is not None:
            if is_pasted(self.request.message):
                yield PASTED
            chosen = [(recipe.inputs[name], value) for name, value in suggestion.values.items()]
            yield from value_doubts(beginning(self.request.message), self.around, chosen)
        if self._deletes(recipe):
            yield from (problem.message for problem in self._delete_problems(recipe))

    def _delete_problems(self, recipe: Recipe) -> Iterator[Problem]:
        """Yield why the policy does not allow a recipe that deletes."""
        policy = self.planner.policy()
        for tool in (self.planner.tools[name] for name in recipe.tools):
            if tool.deletes:
                yield from policy.step_problems(tool)

    def unmet(self, recipe: Recipe) -> str | None:
        """Return what a recipe requires and the context does not have."""
        selection = self.request.context.selection
        if "selection" in recipe.needs and not (selection and selection.text.strip()):
            return NO_SELECTION
        if "activeFile" in recipe.needs and self.around.active_file is None:
            return NO_ACTIVE_FILE
        return None

    def tried(self, plan: ActionPlan, policy: Policy = UNRESTRICTED) -> Preview | None:
        """Return the dry run of a plan, `None` for an invalid plan."""
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


def _names_verb(message: str, candidate: Candidate) -> bool:
    verb = words(candidate.title)[0]
    return any(verb in word.senses for word in tokens(message))


def _explains_all(candidate: Candidate) -> bool:
    """Return True for one that could run at once, without a doubt or an unused word."""
    is_partial = candidate.missing or candidate.unused or candidate.unknown
    return not (is_partial or candidate.doubts or candidate.fails)


def _is_outdone(
    candidate: Candidate, others: Sequence[tuple[Candidate, RecipeSuggestion | None]]
) -> bool:
    """Return True for one that cannot run, or changes nothing where another explains as much.

    “Drop the tag X” is no other action because the tag is gone already.
    """
    if not candidate.fails or NO_CHANGE not in candidate.doubts:
        return candidate.fails
    left = len(candidate.unused) + len(candidate.guesses)
    rivals = (one for one, _ in others if not (one.fails or one.missing or one.deletes))
    return any(len(one.unused) + len(one.guesses) <= left for one in rivals)


def _health_answer(title: str, value: str, labels: Mapping[str, str]) -> Answer:
    """Return the answer that asks the front end for a health report."""
    kinds = () if value == ALL_FINDINGS else tuple(value.split())
    options = "".join(f" --only {kind}" for kind in kinds)
    text = (
        f"{title}: {labels.get(value, value)}. In the app /health shows the findings, "
        f"on the command line `obsidian-agent health{options}`."
    )
    return Answer(text, health=kinds)
