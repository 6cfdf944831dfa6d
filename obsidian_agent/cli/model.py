"""`model`: which services for models run on this machine, choosing one (`model use NAME`), and trying it (`model test`).

Needs no vault; nothing but this machine is asked, but for what `test` asks the model itself.
"""

from __future__ import annotations

import argparse
import shutil
from typing import TYPE_CHECKING

from obsidian_agent.cli.exits import Exit
from obsidian_agent.cli.output import Output
from obsidian_agent.cli.parser import Commands, actions, planner
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
    action = actions(command, required=False)
    action.add(
        "list",
        _list,
        summary="the services for models that answer on this machine, and what is in use",
    )
    command = action.add(
        "use",
        _use,
        summary="choose the model of the settings",
        examples=["model use ollama/qwen3:4b", "model use none"],
    )
    command.add_argument(
        "name", metavar="NAME", help="as listed, PROVIDER/NAME, or none for the menu alone"
    )
    action.add(
        "test",
        _test,
        planner(),
        summary="play 20 sentences on a small vault of its own: right, asked, wrong, seconds",
    )


def _list(options: argparse.Namespace, out: Output) -> Exit:
    import asyncio

    from obsidian_agent.providers.local_models import look_around

    return _listed(asyncio.run(look_around(settings_of(options))), out)


def _use(options: argparse.Namespace, out: Output) -> Exit:
    import asyncio

    from obsidian_agent.providers.local_models import LocalModels, look_around, use

    settings = settings_of(options)
    found = asyncio.run(look_around(settings))
    for remark in use(settings, options.name, found.services):
        out.note(remark)
    return _listed(LocalModels(found.services, settings.model), out)


def _listed(found: LocalModels, out: Output) -> Exit:
    models = [(service, name) for service in found.services for name in service.models]
    if out.as_json:
        listed = [
            {"name": name, "service": service.place.vendor, "url": service.place.url}
            for service, name in models
        ]
        out.document({"found": listed, "using": found.using})
    for service in found.services:
        out.line(
            f"{service.place.title} at {service.place.url}{'' if service.models else ': no model yet'}"
        )
        for name in service.models:
            out.line(f"  {name}{'  (in use)' if service.spec(name) == found.using else ''}")
    if not found.services:
        out.line(
            "No service for models answers on this machine (looked for Ollama, LM Studio, llama.cpp and Jan)."
        )
    out.line(f"In use: {found.using}" if found.using else "In use: no model, the menu alone")
    return Exit.DONE


def _test(options: argparse.Namespace, out: Output) -> Exit:
    """Play the sentences on the sample vault, with the model of the options or the settings."""
    import asyncio

    from obsidian_agent.bootstrap import build_session
    from obsidian_agent.journal.state_folder import vault_key
    from obsidian_agent.services.model_trial import sample_vault

    with sample_vault() as folder:
        options.vault = str(folder)
        wiring = wiring_of(options)
        try:
            score = asyncio.run(_played(build_session(wiring), out))
        finally:
            wiring.store.close()
            shutil.rmtree(
                wiring.state / "vaults" / vault_key(wiring.store.real_path), ignore_errors=True
            )
    counts = {mark: score.marks.get(mark, 0) for mark in ("right", "asked", "wrong")}
    if out.as_json:
        out.document({**counts, "seconds": round(score.seconds, 1)})
    told = ", ".join(f"{mark} {count}" for mark, count in counts.items())
    out.line(f"{told}; not found {score.marks.get('open', 0)}; {score.seconds:.0f} seconds.")
    return Exit.DONE


async def _played(session: Session, out: Output) -> Score:
    from obsidian_agent.services.model_trial import Score, answers_at_all, play

    if session.models is None:
        raise ConfigError(
            "There is no model to try.",
            code="NO_MODEL",
            hint="Choose one with model use NAME, or with --model.",
        )
    await answers_at_all(session.models.provider)
    score = Score({}, 0.0)
    async for each in play(session):
        match each:
            case Score():
                score = each
            case task, mark:
                out.line(f"{mark if mark != 'open' else 'not found':9}  {task.sentence}")
    return score
