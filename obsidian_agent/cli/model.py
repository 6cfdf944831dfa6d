"""`model`: which services for models run on this machine, choosing one (`model use NAME`), and trying it (`model test`)."""

from __future__ import annotations

import argparse
import asyncio
import shutil

from obsidian_agent.agent.local_models import LocalModels, look_around, use
from obsidian_agent.agent.model_trial import Score, answers_at_all, play, sample_vault
from obsidian_agent.agent.session import Session
from obsidian_agent.bootstrap import build_session
from obsidian_agent.cli.exits import Exit
from obsidian_agent.cli.output import Output
from obsidian_agent.cli.session_factory import wiring_of
from obsidian_agent.config.directories import directories
from obsidian_agent.config.live import LiveSettings
from obsidian_agent.errors import ConfigError
from obsidian_agent.journal.journal import vault_key


def model_command(options: argparse.Namespace, out: Output) -> Exit:
    """List, choose or try models. Needs no vault; nothing but this machine is asked, but for what `test` asks the model itself."""
    if options.action == "test":
        return _test(options, out)
    settings = LiveSettings.load(directories(options.state_dir, options.config).config)
    found = asyncio.run(look_around(settings))
    if options.action == "use":
        for remark in use(settings, options.name, found.services):
            out.note(remark)
        found = LocalModels(found.services, settings.chosen)
    _listed(found, out)
    return Exit.DONE


def _listed(found: LocalModels, out: Output) -> None:
    models = [(service, name) for service in found.services for name in service.models]
    if out.as_json:
        listed = [{"name": name, "service": service.place.vendor, "url": service.place.url} for service, name in models]
        out.document({"found": listed, "using": found.using})
    for service in found.services:
        out.line(f"{service.place.title} at {service.place.url}{'' if service.models else ': no model yet'}")
        for name in service.models:
            out.line(f"  {name}{'  (in use)' if service.spec(name) == found.using else ''}")
    if not found.services:
        out.line("No service for models answers on this machine (looked for Ollama, LM Studio, llama.cpp and Jan).")
    out.line(f"In use: {found.using}" if found.using else "In use: no model, the menu alone")


def _test(options: argparse.Namespace, out: Output) -> Exit:
    """Play the sentences on the sample vault, with the model of the options or the settings."""
    with sample_vault() as folder:
        options.vault = str(folder)
        wiring = wiring_of(options)
        try:
            score = asyncio.run(_played(build_session(wiring), out))
        finally:
            wiring.store.close()
            shutil.rmtree(wiring.state / "vaults" / vault_key(wiring.store.real_path), ignore_errors=True)
    counts = {mark: score.marks.get(mark, 0) for mark in ("right", "asked", "wrong")}
    if out.as_json:
        out.document({**counts, "seconds": round(score.seconds, 1)})
    told = ", ".join(f"{mark} {count}" for mark, count in counts.items())
    out.line(f"{told}; not found {score.marks.get('open', 0)}; {score.seconds:.0f} seconds.")
    return Exit.DONE


async def _played(session: Session, out: Output) -> Score:
    if session.models is None:
        raise ConfigError("There is no model to try.", code="NO_MODEL", hint="Choose one with model use NAME, or with --model.")
    await answers_at_all(session.models.provider)
    score = Score({}, 0.0)
    async for each in play(session):
        match each:
            case Score():
                score = each
            case task, mark:
                out.line(f"{mark if mark != 'open' else 'not found':9}  {task.sentence}")
    return score
