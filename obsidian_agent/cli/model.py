"""`model`: which services for models run on this machine, choosing one (`model use NAME`), and trying it (`model test`)."""

from __future__ import annotations

import argparse
import asyncio

from obsidian_agent.agent.local_models import LocalModels, look_around, use
from obsidian_agent.cli.exits import Exit
from obsidian_agent.cli.output import Output
from obsidian_agent.config.directories import directories
from obsidian_agent.config.live import LiveSettings


def model_command(options: argparse.Namespace, out: Output) -> Exit:
    """List, choose or try models. Needs no vault; nothing but this machine is asked, but for what `test` asks the model itself."""
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
