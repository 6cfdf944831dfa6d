"""`recipe …`: parameterised plans that ship with the program, without a sentence and without a model. What scripts and cron should use."""

from __future__ import annotations

import argparse

from obsidian_agent.agent.events import Answer, NeedsInput, PlanReady, TurnFailed
from obsidian_agent.cli.exits import Exit, of_problems
from obsidian_agent.cli.output import Output
from obsidian_agent.cli.plans import answered, needs_input, refuse, reject, run_document, show_preview
from obsidian_agent.cli.session_factory import open_session, parameters
from obsidian_agent.errors import ConfigError, PlanError
from obsidian_agent.offline.recipe import SUBJECTS, Recipe, packaged, recipe_named
from obsidian_agent.plan.nearest import did_you_mean


def recipe_command(options: argparse.Namespace, out: Output) -> Exit:
    """Dispatch to one action."""
    match options.action:
        case "list":
            return _list(out)
        case "show":
            out.document(_named(options.name).model_dump(mode="json", exclude_defaults=True))
            return Exit.DONE
        case _:
            return _run(options, out)


def _list(out: Output) -> Exit:
    recipes = sorted(packaged(), key=lambda each: SUBJECTS.index(each.subject))
    if out.as_json:
        out.document({"recipes": [_told(each) for each in recipes]})
    for subject in dict.fromkeys(each.subject for each in recipes):
        out.line()
        out.line(subject)
        for each in recipes:
            if each.subject == subject:
                inputs = ", ".join(f"{name}{'' if wanted.needed else '?'}" for name, wanted in each.inputs.items())
                out.line(f"  {each.name:28} {each.title}  ({inputs})")
    return Exit.DONE


def _told(recipe: Recipe) -> dict[str, object]:
    inputs = {
        name: {"kind": wanted.kind, "description": wanted.description, "needed": wanted.needed} for name, wanted in recipe.inputs.items()
    }
    told = {"name": recipe.name, "title": recipe.title, "subject": recipe.subject, "description": recipe.description}
    return told | {"inputs": inputs, "examples": list(recipe.examples), "changes": recipe.answer is None}


def _named(name: str) -> Recipe:
    found = recipe_named(name, packaged())
    if found is None:
        near = did_you_mean(name, [each.name for each in packaged()])
        raise ConfigError(f"There is no recipe “{name}”.{near}", code="RECIPE_NOT_FOUND", hint="See: obsidian-agent recipe list.")
    return found


def _run(options: argparse.Namespace, out: Output) -> Exit:
    recipe = _named(options.name)
    session = open_session(options)
    event = session.offline.propose(session.request(""), recipe, parameters(options))
    match event:
        case PlanReady(plan=plan) if options.dry_run:
            try:
                ready = session.plans.dry_run(plan.to_json())
            except PlanError as error:
                return reject(error, out)
            show_preview(session, ready, out)
            return Exit.DONE if ready.valid else of_problems(ready.errors)
        case PlanReady(plan=plan):
            return run_document(session, plan.to_json(), {}, options.yes, out)
        case Answer():
            return answered(event, out)
        case NeedsInput(message=message, missing=missing):
            return needs_input(message, out, missing=missing)
        case TurnFailed(problem=problem, problems=problems):
            return refuse(problems or (problem,), out)
        case _:
            raise TypeError(f"nothing that comes of a recipe: {event!r}")
