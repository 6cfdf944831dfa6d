"""`recipe …`: built-in plans with parameters, which scripts can run without a model."""

from __future__ import annotations

import argparse
from itertools import groupby
from typing import TYPE_CHECKING

from obsidian_agent.cli.exits import Exit
from obsidian_agent.cli.output import Output
from obsidian_agent.cli.parser import Commands, add_actions, add_approval, context_options
from obsidian_agent.cli.session_factory import open_session, parameters
from obsidian_agent.errors import ConfigError

if TYPE_CHECKING:
    from obsidian_agent.offline.recipe import Recipe


def arguments(commands: Commands) -> None:
    """Add the parser of this command and of its actions."""
    example = (
        "recipe run move --param 'notes=tag:#done -folder:Projects' --param folder=Archive "
        "--vault ~/Notes --yes"
    )
    action = add_actions(
        commands.add("recipe", None, examples=["recipe list", "recipe show move", example])
    )
    action.add("list", _list, summary="list all recipes by subject; inputs with ? are optional")
    action.add("show", _show, summary="print a recipe and its inputs as JSON").add_argument(
        "name", metavar="NAME"
    )
    command = action.add(
        "run",
        _run,
        context_options(),
        summary="preview a recipe, ask, run it; or print its answer",
        examples=[example],
    )
    command.add_argument("name", metavar="NAME")
    add_approval(command)
    command.add_argument("--dry-run", action="store_true", help="preview only")


def _list(options: argparse.Namespace, out: Output) -> Exit:
    from obsidian_agent.offline.recipe import SUBJECTS, packaged

    recipes = sorted(packaged(), key=lambda recipe: SUBJECTS.index(recipe.subject))
    if out.as_json:
        out.document({"recipes": [_document(recipe) for recipe in recipes]})
    for subject, group in groupby(recipes, key=lambda recipe: recipe.subject):
        out.line()
        out.line(subject)
        for recipe in group:
            inputs = ", ".join(
                f"{name}{'' if value.needed else '?'}" for name, value in recipe.inputs.items()
            )
            out.line(f"  {recipe.name:28} {recipe.title}  ({inputs})")
    return Exit.DONE


def _document(recipe: Recipe) -> dict[str, object]:
    inputs = {
        name: {"kind": value.kind, "description": value.description, "needed": value.needed}
        for name, value in recipe.inputs.items()
    }
    return {
        "name": recipe.name,
        "title": recipe.title,
        "subject": recipe.subject,
        "description": recipe.description,
        "inputs": inputs,
        "examples": list(recipe.examples),
        "changes": recipe.answer is None,
    }


def _show(options: argparse.Namespace, out: Output) -> Exit:
    out.document(_find_recipe(options.name).model_dump(mode="json", exclude_defaults=True))
    return Exit.DONE


def _find_recipe(name: str) -> Recipe:
    from obsidian_agent.errors import did_you_mean
    from obsidian_agent.offline.recipe import packaged, recipe_named

    recipe = recipe_named(name, packaged())
    if recipe is None:
        suggestion = did_you_mean(name, [known.name for known in packaged()])
        raise ConfigError(
            f"There is no recipe “{name}”.{suggestion}",
            code="RECIPE_NOT_FOUND",
            hint="See: obsidian-agent recipe list.",
        )
    return recipe


def _run(options: argparse.Namespace, out: Output) -> Exit:
    from obsidian_agent.agent.events import Answer, NeedsInput, PlanReady, TurnFailed
    from obsidian_agent.cli.health import with_findings
    from obsidian_agent.cli.report import (
        RunRequest,
        answered,
        dry_run,
        needs_input,
        refuse,
        run_plan,
    )

    recipe = _find_recipe(options.name)
    session = open_session(options)
    event = session.offline.turn(session.request("")).propose(recipe, parameters(options))
    match event:
        case PlanReady(plan=plan) if options.dry_run:
            return dry_run(session, plan.to_json(), {}, out)
        case PlanReady(plan=plan):
            request = RunRequest(document=plan.to_json(), values={}, yes=options.yes)
            return run_plan(session, request, out)
        case Answer():
            return answered(with_findings(event, session, options), out)
        case NeedsInput(message=message, missing=missing):
            return needs_input(message, out, missing=missing)
        case TurnFailed(problem=problem, problems=problems):
            return refuse(problems or (problem,), out)
        case _:
            raise TypeError(f"unexpected result of a recipe: {event!r}")
