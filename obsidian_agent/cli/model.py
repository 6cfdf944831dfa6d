"""`model`: services for models on this machine: list them, choose a model, test it.

Needs no vault. Only this machine is queried, except for the model that `test` calls.
"""

from __future__ import annotations

import argparse
import shutil
from typing import TYPE_CHECKING

from obsidian_agent.cli.exits import Exit
from obsidian_agent.cli.output import Output
from obsidian_agent.cli.parser import Commands, add_actions, planner_options
from obsidian_agent.cli.session_factory import settings_of, wiring_of
from obsidian_agent.errors import ConfigError

if TYPE_CHECKING:
    from obsidian_agent.providers.local_models import LocalModels
    from obsidian_agent.services.model_trial import Score
    from obsidian_agent.services.session import Session


def arguments(commands: Commands) -> None:
    """Add the parser of this command and of its actions."""
    command = commands.add(
        "model", _list, examples=["model", "model use qwen3:4b", "model test --model openai/gpt-5"]
    )
    action = add_actions(command, required=False)
    action.add(
        "list",
        _list,
        summary="list the models on this machine, and the one in use",
    )
    command = action.add(
        "use",
        _use,
        summary="set the model in the settings",
        examples=["model use ollama/qwen3:4b", "model use none"],
    )
    command.add_argument(
        "name", metavar="NAME", help="a listed name, PROVIDER/NAME, or none for the offline planner"
    )
    action.add(
        "test",
        _test,
        planner_options(),
        summary="test it with 20 sentences on a sample vault: right, asked, wrong, seconds",
    )


def _list(options: argparse.Namespace, out: Output) -> Exit:
    import asyncio

    from obsidian_agent.providers.local_models import look_around

    return _print(asyncio.run(look_around(settings_of(options))), out)


def _use(options: argparse.Namespace, out: Output) -> Exit:
    import asyncio

    from obsidian_agent.providers.local_models import LocalModels, look_around, use

    settings = settings_of(options)
    local = asyncio.run(look_around(settings))
    for remark in use(settings, options.name, local.services):
        out.note(remark)
    return _print(LocalModels(local.services, settings.model), out)


def _print(local: LocalModels, out: Output) -> Exit:
    if out.as_json:
        models = [
            {"name": name, "service": service.location.vendor, "url": service.location.url}
            for service in local.services
            for name in service.models
        ]
        out.document({"found": models, "using": local.using})
    for service in local.services:
        suffix = "" if service.models else ": no model yet"
        out.line(f"{service.location.title} at {service.location.url}{suffix}")
        for name in service.models:
            out.line(f"  {name}{'  (in use)' if service.spec(name) == local.using else ''}")
    if not local.services:
        out.line(
            "No model service is running on this machine "
            "(searched for Ollama, LM Studio, llama.cpp, Jan, vLLM, KoboldCpp and GPT4All)."
        )
    out.line(f"In use: {local.using}" if local.using else "In use: no model, the offline planner")
    return Exit.DONE


def _test(options: argparse.Namespace, out: Output) -> Exit:
    """Run the sentences on the sample vault with the model of the options or settings."""
    import asyncio

    from obsidian_agent.bootstrap import build_session
    from obsidian_agent.journal.state_folder import vault_key
    from obsidian_agent.services.model_trial import sample_vault

    with sample_vault() as folder:
        options.vault = str(folder)
        wiring = wiring_of(options)
        try:
            score = asyncio.run(_score(build_session(wiring), out))
        finally:
            wiring.store.close()
            shutil.rmtree(
                wiring.state / "vaults" / vault_key(wiring.store.real_path), ignore_errors=True
            )
    counts = {mark: score.marks.get(mark, 0) for mark in ("right", "asked", "wrong")}
    if out.as_json:
        out.document({**counts, "seconds": round(score.seconds, 1)})
    results = ", ".join(f"{mark} {count}" for mark, count in counts.items())
    out.line(f"{results}; not found {score.marks.get('open', 0)}; {score.seconds:.0f} seconds.")
    return Exit.DONE


async def _score(session: Session, out: Output) -> Score:
    from obsidian_agent.services.model_trial import Score, answers_at_all, play

    models = session.open_models()
    if models is None:
        raise ConfigError(
            "There is no model to test.",
            code="NO_MODEL",
            hint="Choose one with model use NAME, or with --model.",
        )
    await answers_at_all(models.provider)
    score = Score({}, 0.0)
    async for item in play(session):
        match item:
            case Score():
                score = item
            case task, mark:
                out.line(f"{mark if mark != 'open' else 'not found':9}  {task.sentence}")
    return score
