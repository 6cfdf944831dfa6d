"""The law of forms: a plan is computed from exactly the displayed values, wherever they come from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import pytest

from obsidian_agent.agent.events import NeedsInput, PlanReady, TurnFailed
from obsidian_agent.offline.names import Surroundings
from obsidian_agent.offline.note_set import ACTIVE
from obsidian_agent.offline.recipe import Input, Recipe, packaged, recipe_named
from obsidian_agent.offline.recipe_plan import fill
from obsidian_agent.offline.values import headings, is_blank, read
from obsidian_agent.plan.model import ActionPlan
from obsidian_agent.plan.parameters import bind
from obsidian_agent.services.fields import NEEDED
from obsidian_agent.services.form import THIS_NOTE, Form
from obsidian_agent.services.macro import Macro, chosen_words, literals
from obsidian_agent.services.offline_planner import OfflineTurn, from_macro
from obsidian_agent.tools.registry import TOOLS
from offline_desk import FILES, IDEAS, Desk
from support import MakeVault

SITUATIONS: Final[Mapping[str, tuple[str | None, str | None]]] = {
    "open note": ("Inbox.md", None),
    "no open note": (None, None),
    "sentence names another note": ("Inbox.md", "Groceries.md"),
    "sentence names a note, none is open": (None, "Groceries.md"),
}
"""The open note, and the note that the sentence names."""

SAMPLES: Final[Mapping[str, str]] = {
    "note": "Projects/Website.md",
    "entry": "Projects/Website.md",
    "template": "Templates/Day.md",
    "notes": "Projects/Website.md",
    "folder": "Projects",
    "newNote": "New.md",
    "newName": "Other",
    "tag": "done",
    "tags": "done, x",
    "property": "status",
    "properties": "status",
    "pairs": "status: open; rating: 3",
    "value": "open",
    "field": "name",
    "date": "2026-03-01",
    "number": "2",
    "boolean": "true",
    "list": "one, two",
    "names": "one, two",
    "path": "Ideas.md",
    "text": "some text",
}


class World:
    """A vault, its open note, and turns without a sentence."""

    def __init__(self, make_vault: MakeVault, active: str | None = "Inbox.md") -> None:
        desk = Desk(make_vault(FILES))
        request = desk.request("", active=active, selected=IDEAS if active else None)
        self.turn: OfflineTurn = desk.planner.turn(request)
        self.around: Surroundings = self.turn.around

    def sample(self, spec: Input, displayed: Mapping[str, str]) -> str:
        """Return a text that the field accepts beside the displayed ones."""
        if spec.kind == "heading":
            note = displayed.get(spec.of or "") or "Projects/Website.md"
            return headings(ACTIVE if note == THIS_NOTE else note, self.around)[0]
        if spec.kind == "choice":
            return next(iter(spec.options))
        return SAMPLES[spec.kind]

    def plan(self, recipe: Recipe, texts: Mapping[str, Any]) -> dict[str, Any]:
        verdict = self.turn.propose(plain(recipe), texts)
        assert isinstance(verdict, PlanReady), verdict
        return verdict.plan.to_json()


def plain(recipe: Recipe) -> Recipe:
    """Return the recipe as a plan, also where it answers a question."""
    return recipe.model_copy(update={"answer": None, "needs": ()})


def displayed_plan(recipe: Recipe, texts: Mapping[str, str], around: Surroundings) -> Any:
    """Return the plan of the displayed texts and of nothing else: no default holds in it."""
    values: dict[str, Any] = {}
    bare = recipe.model_copy(
        update={
            "inputs": {
                name: spec.model_copy(update={"default": None, "optional": True})
                for name, spec in recipe.inputs.items()
            }
        }
    )
    for name, spec in sorted(recipe.inputs.items(), key=lambda item: bool(item[1].of)):
        if not is_blank(spec, texts[name]) or spec.default is not None:
            values[name] = read(spec, texts[name], around, values)
    return fill(bare, values).to_json()


def named_in(recipe: Recipe, note: str | None) -> dict[str, str]:
    """Return the values of a sentence that names this note, wherever the recipe takes one."""
    kinds = ("note", "entry", "notes")
    return {
        name: note
        for name, spec in recipe.inputs.items()
        if note is not None and spec.kind in kinds
    }


@pytest.fixture(params=SITUATIONS)
def situation(request: pytest.FixtureRequest) -> tuple[str | None, str | None]:
    return SITUATIONS[request.param]


def test_the_plan_is_computed_from_exactly_the_displayed_values(
    make_vault: MakeVault, situation: tuple[str | None, str | None]
) -> None:
    active, note = situation
    world = World(make_vault, active)
    assert len(packaged()) > 70
    for recipe in packaged():
        spoken = named_in(recipe, note)
        form = Form(recipe, world.around)
        fields = form.fields(spoken)
        displayed = {field.name: field.value for field in fields}
        for field in fields:
            if not displayed[field.name].strip() and not field.optional:
                spec = recipe.inputs[field.name]
                displayed[field.name] = world.sample(spec, displayed)
        wrong = {name: check for name, check in form.judge(displayed).items() if check.wrong}
        assert not wrong, (recipe.name, displayed, wrong)
        plan = world.plan(recipe, displayed)
        assert plan == displayed_plan(recipe, displayed, world.around), recipe.name
        # The command line and a picked candidate give only what the sentence says, or what is missing.
        texts = {
            name: text
            for name, text in displayed.items()
            if name in spoken or recipe.inputs[name].needed
        }
        if active is not None or all(text != ACTIVE for text in recipe.defaults.values()):
            assert world.plan(recipe, texts) == plan, recipe.name
        if recipe.answer is None:
            is_open_note = ACTIVE in str(plan["steps"])
            assert is_open_note == (THIS_NOTE in displayed.values()), recipe.name


def test_each_option_and_each_optional_value_holds_as_it_is_displayed(
    make_vault: MakeVault,
) -> None:
    world = World(make_vault)
    for recipe in packaged():
        form = Form(recipe, world.around)
        full = {field.name: field.value for field in form.fields({})}
        for name, spec in recipe.inputs.items():
            if not full[name].strip():
                full[name] = world.sample(spec, full)
        for name, spec in recipe.inputs.items():
            for text in spec.options or (full[name],):
                displayed = {**full, name: text}
                assert not any(check.wrong for check in form.judge(displayed).values())
                expected = displayed_plan(recipe, displayed, world.around)
                assert world.plan(recipe, displayed) == expected, (recipe.name, name, text)


def test_a_cleared_field_is_either_no_value_or_refused_and_never_the_default(
    make_vault: MakeVault,
) -> None:
    world = World(make_vault)
    for recipe in packaged():
        form = Form(recipe, world.around)
        full = {field.name: field.value for field in form.fields({})}
        for name, spec in recipe.inputs.items():
            if not full[name].strip() and spec.needed:
                full[name] = world.sample(spec, full)
        for name in recipe.inputs:
            cleared = {**full, name: ""}
            verdict = world.turn.propose(plain(recipe), cleared)
            if form.judge(cleared).get(name) is None:
                assert isinstance(verdict, PlanReady), (recipe.name, name, verdict)
                expected = displayed_plan(recipe, cleared, world.around)
                assert verdict.plan.to_json() == expected, (recipe.name, name)
            elif recipe.inputs[name].default is not None:
                assert form.judge(cleared)[name].text == NEEDED
                assert isinstance(verdict, TurnFailed), (recipe.name, name)


def test_the_form_of_a_saved_action_runs_with_exactly_the_displayed_values(
    make_vault: MakeVault,
) -> None:
    world = World(make_vault)
    for recipe in packaged():
        full = {field.name: field.value for field in Form(recipe, world.around).fields({})}
        for name, spec in recipe.inputs.items():
            if not full[name].strip():
                full[name] = world.sample(spec, full)
        macro = Macro("mine", ActionPlan.model_validate(world.plan(recipe, full)))
        fields = Form(from_macro(macro, TOOLS), world.around).fields({})
        displayed = {field.name: field.value for field in fields}
        bound, stored = bind(macro.plan, displayed), bind(macro.plan, {})
        assert not bound.problems, (recipe.name, bound.problems)
        assert bound.values == stored.values, recipe.name


def test_the_form_of_a_macro_has_the_labels_and_choices_of_its_action(
    make_vault: MakeVault,
) -> None:
    world = World(make_vault)
    recipe = recipe_named("add-text", packaged())
    assert recipe is not None
    plan = ActionPlan.model_validate(world.plan(recipe, {"text": "Buy stamps", "notes": "Ideas"}))
    fields = Form(from_macro(Macro("stamps", plan), TOOLS), world.around).fields({})
    assert [(field.label, field.value) for field in fields] == [
        ("Text", "Buy stamps"),
        ("Where", "end"),
        ("Add as", "pure"),
    ]
    assert list(fields[1].options or ()) == ["end", "start"]
    daily = recipe_named("add-to-daily-note", packaged())
    assert daily is not None
    plan = ActionPlan.model_validate(world.plan(daily, {"text": "Buy stamps"}))
    assert "pure" in literals(plan)
    assert chosen_words(plan, TOOLS) >= {"pure"}


def test_without_an_open_note_its_field_is_blank_and_required(make_vault: MakeVault) -> None:
    world = World(make_vault, None)
    recipe = recipe_named("remove-section", packaged())
    assert recipe is not None
    form = Form(recipe, world.around)
    note = form.fields({})[0]
    assert (note.value, note.optional) == ("", False)
    remarks = form.judge({"note": "", "heading": "Fruit"})
    assert remarks["note"].text == NEEDED
    assert not isinstance(world.turn.propose(recipe, {"heading": "Fruit"}), PlanReady)


def test_a_macro_default_that_only_looks_like_the_open_note_is_displayed_as_it_is(
    make_vault: MakeVault,
) -> None:
    world = World(make_vault)
    document = {
        "version": "1.0",
        "goal": "x",
        "riskLevel": "read-only",
        "parameters": {"words": {"type": "text", "default": ACTIVE}},
        "steps": [{"id": "a", "tool": "vault.readFile", "args": {"path": "${words}"}}],
    }
    macro = Macro("mine", ActionPlan.model_validate(document))
    (field,) = Form(from_macro(macro, TOOLS), world.around).fields({})
    assert field.value == ACTIVE


def test_no_open_note_is_a_question_on_the_command_line_too(make_vault: MakeVault) -> None:
    world = World(make_vault, None)
    recipe = recipe_named("rename", packaged())
    assert recipe is not None
    assert isinstance(world.turn.propose(recipe, {"from": "Ideas", "to": "Old"}), PlanReady)
    assert isinstance(world.turn.propose(recipe, {}), NeedsInput)
