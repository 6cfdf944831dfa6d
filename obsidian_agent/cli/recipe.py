"""`recipe …`: parameterised plans that ship with the program, without a sentence and without a model. What scripts and cron should use."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from obsidian_agent.cli.exits import Exit
from obsidian_agent.cli.output import Output
from obsidian_agent.cli.parser import Commands, actions, approval, context
from obsidian_agent.cli.session_factory import open_session, parameters
from obsidian_agent.errors import ConfigError

if TYPE_CHECKING:
    from obsidian_agent.offline.recipe import Recipe


def arguments(commands: Commands) -> None:
    """Add the parser of this command and of its actions."""
    example = "recipe run move --param 'notes=tag:#done -folder:Projects' --param folder=Archive --vault ~/Notes --yes"
    action = actions(
        commands.add("recipe", None, examples=["recipe list", "recipe show move", example])
    )
    action.add("list", _list, summary="all of them, by subject")
    action.add("show", _show, summary="one as JSON, with its inputs").add_argument(
        "name", metavar="NAME"
    )
    command = action.add(
        "run",
        _run,
        context(),
        summary="preview, ask, execute; or answer, if it is a question",
        examples=[example],
    )
    command.add_argument("name", metavar="NAME")
    approval(command)
    command.add_argument("--dry-run", action="store_true", help="only the preview")


def _list(options: argparse.Namespace, out: Output) -> Exit:
    from obsidian_agent.offline.recipe import SUBJECTS, packaged

    recipes = sorted(packaged(), key=lambda each: SUBJECTS.index(each.subject))
    if out.as_json:
        out.document({"recipes": [_told(each) for each in recipes]})
    for subject in dict.fromkeys(each.subject for each in recipes):
        out.line()
        out.line(subject)
        for each in recipes:
            if each.subject == subject:
                inputs = ", ".join(
                    f"{name}{'' if wanted.needed else '?'}" for name, wanted in each.inputs.items()
                )
                out.line(f"  {each.name:28} {each.title}  ({inputs})")
    return Exit.DONE


def _told(recipe: Recipe) -> dict[str, object]:
    inputs = {
        name: {"kind": wanted.kind, "description": wanted.description, "needed": wanted.needed}
        for name, wanted in recipe.inputs.items()
    }
    told = {
        "name": recipe.name,
        "title": recipe.title,
        "subject": recipe.subject,
        "description": recipe.description,
    }
    return told | {
        "inputs": inputs,
        "examples": list(recipe.examples),
        "changes": recipe.answer is None,
    }


def _show(options: argparse.Namespace, out: Output) -> Exit:
    out.document(_named(options.name).model_dump(mode="json", exclude_defaults=True))
    return Exit.DONE


def _named(name: str) -> Recipe:
    from obsidian_agent.errors import did_you_mean
    from obsidian_agent.offline.recipe import packaged, recipe_named

    found = recipe_named(name, packaged())
    if found is None:
        near = did_you_mean(name, [each.name for each in packaged()])
        raise ConfigError(
            f"There is no recipe “{name}”.{near}",
            code="RECIPE_NOT_FOUND",
            hint="See: obsidian-agent recipe list.",
        )
    return found


def _run(options: argparse.Namespace, out: Output) -> Exit:
    from obsidian_agent.agent.events import Answer, NeedsInput, PlanReady, TurnFailed
    from obsidian_agent.cli.report import answered, dry_run, needs_input, refuse, run_document

    recipe = _named(options.name)
    session = open_session(options)
    event = session.offline.turn(session.request("")).propose(recipe, parameters(options))
    match event:
        case PlanReady(plan=plan) if options.dry_run:
            return dry_run(session, plan.to_json(), {}, out)
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
