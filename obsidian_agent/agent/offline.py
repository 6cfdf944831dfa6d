"""The planner that needs no model: recipes and the person's macros, matched to the instruction.

Sure readings become plans, unsure ones candidates to pick from with their values filled in, and where nothing fits it says so. What it
makes goes the way of every plan: validated, previewed, approved.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from obsidian_agent.agent.answers import Asking, answer
from obsidian_agent.agent.events import Candidate, NeedsInput, PlanReady, TurnEvent, TurnFailed
from obsidian_agent.agent.kept_notes import keeps, notes_of
from obsidian_agent.agent.macro_recipes import MacroLike, macro_match, recipe_of
from obsidian_agent.agent.note_template import TemplateFormats, day_reference, moment_reference, with_references
from obsidian_agent.agent.planner import PlanRequest
from obsidian_agent.agent.recipe_plan import Facts, escaped, plan_of
from obsidian_agent.agent.set_checks import effect_of, meant, names_folder, sets_in, templates_folder, tried, without_folder
from obsidian_agent.agent.several import several
from obsidian_agent.agent.vault_names import WEEKLY_FORMAT, DailySettings, ViewNames, WeeklyHabits
from obsidian_agent.errors import Problem
from obsidian_agent.plan.model import ActionPlan
from obsidian_agent.providers.offline.asides import apart, kept
from obsidian_agent.providers.offline.clauses import clauses
from obsidian_agent.providers.offline.known_plugins import helpful
from obsidian_agent.providers.offline.matcher import ASIDE_COST, LIKELY_COST, MARGIN, MAX_CANDIDATES, SURE_COST, Match, beside, match
from obsidian_agent.providers.offline.names import NameIndex, names_out_of_bounds
from obsidian_agent.providers.offline.readings import Surroundings
from obsidian_agent.providers.offline.recipe import Recipe, packaged
from obsidian_agent.providers.offline.resolve import joined
from obsidian_agent.providers.offline.tokens import tokenise
from obsidian_agent.providers.offline.vault_idioms import named_in_place
from obsidian_agent.providers.offline.word_slots import speaks_of_selection
from obsidian_agent.providers.offline.wordings import wordings
from obsidian_agent.tools.base import Tool
from obsidian_agent.vault.view import VaultView

NO_SELECTION = "Selection is empty. Please select text first: this works on the selected text, for example on a list of bullets."
_CLEARLY = 0.3
"""How much less doubt the best reading must leave than the next, so that only its missing values are asked for."""

_HARDLY = 1.0
"""The doubt from which on a reading that cannot be followed here is not worth telling."""

_OUT_OF_BOUNDS = "Plans touch nothing outside of the vault, and nothing in folders that begin with a dot, such as .obsidian and .trash."
NO_ACTIVE_FILE = "No note is open: open one, or name the note."


@dataclass(frozen=True, slots=True)
class OfflinePlanner:
    """A planner over recipes and macros.

    `view` gives the vault as it is now, `config` the parsed JSON of one of Obsidian's config files, `macros` the saved macros, `tools` the
    tools there are: a recipe that wants another one is left out.
    """

    view: Callable[[], VaultView]
    config: Callable[[Any], object | None]
    tools: Mapping[str, Tool]
    macros: Callable[[], Sequence[MacroLike]] = tuple

    @property
    def name(self) -> str:
        """How it is shown."""
        return "offline"

    async def plan(self, request: PlanRequest) -> AsyncIterator[TurnEvent]:
        """One event: the plan, what is asked back, or why not."""
        yield await asyncio.to_thread(self.decide, request)

    def decide(self, request: PlanRequest) -> TurnEvent:
        """The same without waiting for a thread. Reads the vault."""
        return _Turn(self, request).verdict()

    def ask(self, request: PlanRequest) -> TurnEvent:
        """The answer to a question, or what is asked back. Never a plan. Reads the vault."""
        return _Turn(self, request, questions=True).verdict()


class _Turn:
    """One instruction against one vault at one moment."""

    def __init__(self, planner: OfflinePlanner, request: PlanRequest, *, questions: bool = False) -> None:
        self._planner = planner
        self._request = request
        self._config = planner.config
        self._tools = planner.tools
        self._questions = questions
        self._view = planner.view()
        self._daily = DailySettings.read(planner.config)
        self._names = ViewNames(self._view, self._daily, self._meant, templates_folder(planner.config))
        self._macros = {} if questions else {macro.name: macro for macro in planner.macros()}
        context = request.context
        self._params = dict(request.params) | dict(context.params)
        self._sure: dict[str, list[Match] | None] = {}
        self._around = Surroundings(
            now=context.now,
            active_file=context.active_file.text if context.active_file is not None else None,
            has_selection=bool(context.selection and context.selection.text.strip()),
            macros=tuple(self._macros),
        )
        own = tuple(recipe for recipe in packaged() if _tools(recipe) <= planner.tools.keys() and (recipe.answer or not questions))
        self._recipes = (*own, *(recipe_of(macro) for macro in self._macros.values()))

    def verdict(self) -> TurnEvent:
        """What the planner answers. What is not understood but names a place out of bounds is refused rather than asked about."""
        compound = self._several() if self._hastily(self._request.message, self._params) is None else None
        if isinstance(compound, PlanReady):
            return compound
        event = self._verdict()
        if not isinstance(event, NeedsInput):
            return event
        if not self._around.has_selection and not self._questions and speaks_of_selection(self._request.message):
            return NeedsInput(NO_SELECTION)
        if compound is not None:
            return _together(compound, event)
        named = (token.text for token in tokenise(self._request.message) if token.kind in ("word", "quoted", "link"))
        code = next(filter(None, map(names_out_of_bounds, named)), None)
        return event if code is None else TurnFailed(Problem(code, _OUT_OF_BOUNDS))

    def _several(self) -> TurnEvent | None:
        """What becomes of a message that holds several instructions; the later ones see what the earlier make."""
        if self._questions or self._request.params:
            return None
        known = {name.casefold() for name in self._names.properties}
        said = clauses(self._request.message, lambda name: name.casefold() in known)
        if len(said) < 2:
            return None
        context, tools = self._request.context, self._tools
        return several(
            said, self._view, self._part, lambda plan, view: tried(plan, view, context, tools), self._around.now.timestamp() * 1000
        )

    def _part(self, message: str, view: VaultView) -> TurnEvent:
        """What becomes of a part of the message, on the vault as the parts before it would leave it."""
        return _Turn(replace(self._planner, view=lambda: view), replace(self._request, message=message)).verdict()

    def _verdict(self) -> TurnEvent:
        matches = self._readings(self._params)
        if not matches or matches[0].cost > LIKELY_COST:
            return self._nothing(matches)
        first = matches[0]
        if not first.sure:
            return self._unsure(matches)
        if first.recipe.refusal is not None:
            return TurnFailed(Problem(first.recipe.refusal.code, first.recipe.refusal.message))
        if first.recipe.name == "run-macro":
            return self._macro(first)
        unmet = self._unmet(first.recipe)
        if unmet is not None:
            return NeedsInput(unmet)
        plan = self._plan(first)
        if plan is None:
            return NeedsInput(self._dead_end(first))
        if first.recipe.answer is not None:
            return answer(plan, first.recipe.answer, Asking(self._view, self._request.context, self._tools, self._shown(first)))
        return self._doubted(first) or PlanReady(plan)

    def _readings(self, params: Mapping[str, Any]) -> list[Match]:
        """Readings of the message, or of its instruction alone where something stands beside it that changes nothing of it."""
        best = self._worded(self._request.message, params)
        whole = apart(self._request.message) if not best or not best[0].sure else None
        if whole is None:
            return best
        found = self._worded(whole.core, params)
        if not found or (best and best[0].cost < found[0].cost + ASIDE_COST):
            return best
        open_asides = tuple(aside for aside in whole.asides if not self._kept_anyway(aside, found[0]))
        return found if not open_asides else [beside(each, open_asides) for each in found]

    def _hastily(self, text: str, params: Mapping[str, Any]) -> list[Match] | None:
        """The readings of the first wording of a text that is sure; None when none is. What was found is kept."""
        if text not in self._sure:
            index = NameIndex(self._names)
            message = named_in_place(text, index)
            looks = (match(each, self._recipes, index, self._around, params, hasty=True) for each in (message, *wordings(message, index)))
            self._sure[text] = next((found for found in looks if found and found[0].sure), None)
        return self._sure[text]

    def _worded(self, text: str, params: Mapping[str, Any]) -> list[Match]:
        """Readings of a text, or of another wording of it when that is sure where the text itself is not, or doubted much less."""
        index = NameIndex(self._names)
        message = named_in_place(text, index)
        sure = self._hastily(text, params)
        if sure is not None:
            return sure
        best: list[Match] = []
        for wording in (message, *wordings(message, index)):
            found = match(wording, self._recipes, index, self._around, params)
            if found and (not best or found[0].cost < best[0].cost):
                best = found
        return best

    def _kept_anyway(self, aside: str, found: Match) -> bool:
        """Whether an aside only asks to keep what the plan of a reading keeps."""
        nouns = kept(aside)
        if nouns is None:
            return False
        if not nouns:
            return True
        plan = self._plan(found) if found.sure else None
        context, tools = self._request.context, self._tools
        done = tried(plan, self._view, context, tools) if plan is not None else None
        if done is None:
            return False
        changes, index = done.change_set.changes, NameIndex(self._names)
        return all(
            keeps(changes, noun, notes_of(noun.noun, index, self._around, lambda where: meant(where, self._view, context, tools)))
            for noun in nouns
        )

    def _meant(self, described: Mapping[str, Any]) -> list[str] | None:
        """What a description means, without templates: they are rarely meant, and make no difference between two readings."""
        folder = templates_folder(self._config)
        found = meant(described, self._view, self._request.context, self._tools)
        if found is None or folder is None:
            return found
        return [path for path in found if not path.startswith(f"{folder}/")] or found

    def _doubted(self, found: Match) -> NeedsInput | None:
        """What to ask before notes that were only described are changed: there are none, or templates are among them."""
        for name, described in sets_in(found.recipe, found.resolved).items():
            paths = meant(described, self._view, self._request.context, self._tools)
            if paths is None:
                continue
            if not paths:
                return NeedsInput(f"There is nothing to do: no note fits “{found.texts.get(name, name)}”.")
            folder = templates_folder(self._config)
            if folder is None or names_folder(described, folder):
                continue
            templates = [path for path in paths if path.startswith(f"{folder}/")]
            if templates and len(templates) < len(paths):
                others = replace(found, resolved=without_folder(found.resolved, name, folder))
                if self._same_effect([found, others]):
                    continue
                without = self._candidate(others, f", but not in {folder}")
                message = f"{len(templates)} of the {len(paths)} notes that are meant are templates in {folder}. Which of these is it?"
                return NeedsInput(message, (without, self._candidate(found, f", also the templates in {folder}")))
        return None

    def _same_effect(self, ways: Sequence[Match]) -> bool:
        """Whether plans come to the same: then nobody needs to choose."""
        effects = [effect_of(plan, self._view, self._request.context, self._tools) for way in ways if (plan := self._plan(way)) is not None]
        return len(effects) == len(ways) and effects[0] is not None and all(effect == effects[0] for effect in effects)

    # --- plans ----------------------------------------------------------------------------------------------------------------

    def _plan(self, found: Match) -> ActionPlan | None:
        if found.recipe.name in self._macro_names():
            return macro_match(self._macros[found.recipe.title], found.resolved.values)
        return plan_of(found.recipe, found.resolved, self._facts(found))

    def _macro_names(self) -> frozenset[str]:
        return frozenset(recipe.name for recipe in self._recipes if recipe.name.startswith("macro-"))

    def _facts(self, found: Match) -> Facts:
        """What the plan of this match may need from the vault's settings and templates."""
        values, references, now = found.resolved.values, found.resolved.references, self._around.now
        texts: dict[str, str] = {}
        met = {name for name, there in (("selection", self._around.has_selection), ("activeFile", self._around.active_file)) if there}
        formats = TemplateFormats.read(self._config)
        target, heading = values.get("target"), values.get("heading")
        if isinstance(target, str) and isinstance(heading, str) and heading not in self._names.headings(target):
            met.add("newHeading")
        if isinstance(note := values.get("note"), str):
            texts["besideNote"] = (
                "${activeFolder}/" if references.get("note") == "activeFile" else escaped(joined(note.rpartition("/")[0], ""))
            )
        if isinstance(template := values.get("template"), str):
            title = "${path|basename}"
            texts["templateContent"] = with_references(self._names.text(template) or "", title, formats, now)
        if isinstance(note, str) and (heading_above := self._names.title(note)) is not None:
            met.add("noteTitle")
            texts["noteTitle"] = escaped(heading_above)
        if (archive := self._names.archive) is not None:
            met.add("archiveFolder")
            texts["archiveFolder"] = escaped(archive)
        texts |= {"dateFormat": escaped(formats.date), "timeFormat": escaped(formats.time)}
        if found.recipe.name in ("daily-note-of-day", "weekly-note"):
            self._add_period(found, texts, met)
        if found.recipe.name == "daily-note":
            folder = f"{escaped(self._daily.folder)}/" if self._daily.folder else ""
            texts["dailyPath"] = f"{folder}{moment_reference(self._daily.format, now)}.md"
            template_text = self._daily_template()
            if template_text is not None:
                met.add("dailyTemplate")
                title = moment_reference(self._daily.format.rpartition("/")[2], now)
                texts["dailyContent"] = with_references(template_text, title, formats, now)
        return Facts(frozenset(met), texts, self._shown(found))

    def _add_period(self, found: Match, texts: dict[str, str], met: set[str]) -> None:
        """Path, title and template of the note of a day or of this week."""
        now, daily = self._around.now, self._daily
        if found.recipe.name == "weekly-note":
            weekly = WeeklyHabits.seen_in(self._names, daily)
            texts["weeklyTitle"] = moment_reference(WEEKLY_FORMAT, now)
            texts["weeklyPath"] = f"{escaped(weekly.folder)}/{texts['weeklyTitle']}.md" if weekly.folder else f"{texts['weeklyTitle']}.md"
            if weekly.template is not None:
                met.add("weeklyTemplate")
                texts["weeklyTemplatePath"] = escaped(weekly.template)
            return
        day = found.resolved.values.get("day")
        name = day_reference(daily.format, day, now)
        texts["dayTitle"] = day_reference(daily.format.rpartition("/")[2], day, now)
        texts["dayPath"] = f"{escaped(daily.folder)}/{name}.md" if daily.folder else f"{name}.md"
        path = self._daily_template_path()
        if path is not None:
            met.add("dailyTemplate")
            texts["dailyTemplatePath"] = escaped(path)

    def _shown(self, found: Match) -> dict[str, str]:
        """How values read in titles and answers: as the instruction says them where they are no plain texts."""
        values = {name: str(value) for name, value in found.resolved.values.items() if isinstance(value, str | int | float)}
        described = {name: text for name, text in found.texts.items() if name not in values}
        return values | described | {"date": self._around.now.strftime("%Y-%m-%d"), "activeFile": self._around.active_file or ""}

    def _daily_template(self) -> str | None:
        """The text of the template that Obsidian's daily notes name; None when they name none that is there."""
        path = self._daily_template_path()
        return self._names.text(path) if path is not None else None

    def _daily_template_path(self) -> str | None:
        """Where that template is, named by path or by bare name."""
        if self._daily.template is None:
            return None
        path = self._daily.template.removesuffix(".md").strip("/")
        found = NameIndex(self._names).find(path, ("note",))
        return found.paths[0] if found is not None and len(found.paths) == 1 else None

    def _macro(self, found: Match) -> TurnEvent:
        """Run a macro by its name; text behind "for" goes to the one parameter that needs a value."""
        macro = self._macros[found.resolved.values["macro"]]
        text = found.resolved.values.get("text")
        values = {name: value for name, value in self._request.params.items() if name in macro.plan.parameters}
        plan = macro_match(macro, values, text if isinstance(text, str) else None)
        if plan is None:
            return NeedsInput(f"“{text}” does not say which input of the macro “{macro.name}” it is: {', '.join(macro.plan.parameters)}.")
        return PlanReady(plan)

    # --- questions back -------------------------------------------------------------------------------------------------------

    def _unmet(self, recipe: Recipe) -> str | None:
        if "selection" in recipe.requires and not self._around.has_selection:
            return NO_SELECTION
        if "activeFile" in recipe.requires and self._around.active_file is None:
            return NO_ACTIVE_FILE
        return None

    def _only_told_apart(self, ways: Sequence[Match]) -> bool:
        """Whether readings are sure but for what a noun of the vault means."""
        names = {way.recipe.name for way in ways}
        told = all(way.resolved.remarks and not way.resolved.missing and not way.left_out and way.cost <= SURE_COST for way in ways)
        return len(ways) > 1 and len(names) == 1 and told and ways[0].recipe.answer is None

    def _all_the_same(self, ways: Sequence[Match]) -> bool:
        """Whether the first reading would be sure but for rivals that come to the same."""
        if len(ways) < 2 or ways[0].cost > SURE_COST or ways[0].recipe.answer is not None or ways[0].recipe.destructive:
            return False
        first, *others = ways
        if first.left_out or first.resolved.missing or first.resolved.doubts:
            return False
        rivals = [each for each in others if each.cost - first.cost < MARGIN]
        return all(not each.left_out and not each.resolved.missing and each.recipe.answer is None for each in rivals) and self._same_effect(
            [first, *rivals]
        )

    def _unsure(self, matches: Sequence[Match]) -> TurnEvent:
        refusal = matches[0].recipe.refusal
        if refusal is not None and matches[0].cost <= _HARDLY and all(each.cost - matches[0].cost >= _CLEARLY for each in matches[1:]):
            return TurnFailed(Problem(refusal.code, refusal.message))
        usable = [found for found in matches if found.recipe.refusal is None and self._unmet(found.recipe) is None]
        if usable and not usable[0].resolved.missing:
            usable = [found for found in usable if not found.resolved.missing]
        if self._only_told_apart(usable) and self._same_effect(usable):
            plan = self._plan(usable[0])
            assert plan is not None
            return PlanReady(plan)
        if self._all_the_same(usable):
            plan = self._plan(usable[0])
            assert plan is not None
            return self._doubted(usable[0]) or PlanReady(plan)
        candidates = tuple(self._candidate(found) for found in usable)
        if not usable and matches[0].cost > _HARDLY:
            return self._nothing(matches)
        if not usable:
            refusal = matches[0].recipe.refusal
            if refusal is not None:
                return TurnFailed(Problem(refusal.code, refusal.message))
            return NeedsInput(self._unmet(matches[0].recipe) or "")
        first = usable[0]
        alone = len(usable) == 1 or usable[1].cost - first.cost >= _CLEARLY
        if alone and first.resolved.missing:
            return NeedsInput(_asking(first), candidates[:1], first.resolved.missing)
        return NeedsInput(_choosing(first, len(candidates)), candidates)

    def _candidate(self, found: Match, remark: str = "") -> Candidate:
        plan = self._plan(found) if found.recipe.name != "run-macro" else None
        remark += "".join(f" ({told})" for told in found.resolved.remarks)
        title = (plan.goal if plan is not None else found.recipe.title) + remark
        declared = plan.parameters if plan is not None else {}
        values = (
            {name: value for name, value in found.resolved.values.items() if name in declared}
            if plan is not None
            else found.resolved.values
        )
        return Candidate(title, plan, values, found.resolved.missing, found.score)

    def _dead_end(self, found: Match) -> str:
        return f"“{found.recipe.title}” cannot be done here: {'; '.join(found.resolved.doubts) or 'something it needs is missing'}."

    def _nothing(self, matches: Sequence[Match]) -> NeedsInput:
        near = f" The nearest thing I can do without a model: {matches[0].recipe.title.lower()}." if matches else ""
        if self._questions:
            near = near.replace("I can do", "I can answer")
            return NeedsInput(
                f"I cannot answer that without a language model.{near} Choose a model (--model or the settings), or ask otherwise."
            )
        return NeedsInput(
            f"I don't know how to do that without a language model.{near} Choose a model (--model or the settings), or say it otherwise."
            f"{self._plugin()}"
        )

    def _plugin(self) -> str:
        """A word about the community plugin that does what is asked for, if one is known."""
        plugin = helpful(self._request.message)
        if plugin is None:
            return ""
        listed = self._config("community-plugins")
        there = isinstance(listed, list) and plugin.id in listed
        has = "is switched on in this vault" if there else f"can be found with /plugins {plugin.name.lower()}"
        return f" The community plugin {plugin.name} does {plugin.does}; it {has}."


def _together(compound: TurnEvent, whole: NeedsInput) -> TurnEvent:
    """What to say of a message with several instructions: their plan, or the ways to read them before those of the whole."""
    if not isinstance(compound, NeedsInput):
        return compound
    candidates = (*compound.candidates, *(each for each in whole.candidates if not each.missing))[:MAX_CANDIDATES]
    return replace(compound, candidates=candidates)


def _tools(recipe: Recipe) -> frozenset[str]:
    plans = [recipe.plan] if recipe.plan is not None else [variant.plan for variant in recipe.variants]
    return frozenset(step["tool"] for plan in plans for step in plan.get("steps", []))


def _asking(found: Match) -> str:
    missing = ", ".join(found.recipe.parameters[name].description.lower() for name in found.resolved.missing)
    doubts = f" ({'; '.join(found.resolved.doubts)})" if found.resolved.doubts else ""
    return f"{found.recipe.title}: what is missing is {missing}{doubts}."


def _choosing(first: Match, count: int) -> str:
    doubts = list(first.resolved.doubts)
    if first.left_out:
        doubts.append("nothing covers " + ", ".join(f"“{text}”" for text in first.left_out))
    why = f" ({'; '.join(doubts)})" if doubts else ""
    return f"I am not sure what you mean{why}. {'Is it this?' if count == 1 else 'Which of these is it?'}"
