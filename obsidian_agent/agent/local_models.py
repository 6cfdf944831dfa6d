"""Models on this machine for front ends: what runs here, what the settings use, and choosing one.

Only loopback is asked (`providers.local_services`); choosing writes two settings, the model and the address that it is asked at.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from obsidian_agent.config.live import LiveSettings
from obsidian_agent.config.settings import NO_MODEL
from obsidian_agent.errors import ConfigError
from obsidian_agent.providers.local_services import USUAL, LocalService, find_services, places
from obsidian_agent.providers.registry import SCRIPTED, find_vendor


@dataclass(frozen=True, slots=True)
class LocalModels:
    """The services that run on this machine, and the model of the settings (None: the menu alone)."""

    services: tuple[LocalService, ...]
    using: str | None

    @property
    def offer(self) -> Offer | None:
        """The model to suggest to somebody who has not chosen yet; None when nothing that answers runs here."""
        return next((Offer(each, each.suggestion) for each in self.services if each.suggestion is not None), None)


@dataclass(frozen=True, slots=True)
class Offer:
    """A model that could be used at once: "Ollama with qwen3:4b runs here"."""

    service: LocalService
    model: str

    @property
    def title(self) -> str:
        """The program that has it, as people call it."""
        return self.service.place.title

    @property
    def spec(self) -> str:
        """What the setting `model` becomes."""
        return self.service.spec(self.model)


async def look_around(settings: LiveSettings) -> LocalModels:
    """What runs here now. Takes a third of a second, and more the first time; blocks no loop."""
    return LocalModels(await find_services(places(settings.chosen, settings.current.base_url)), settings.chosen)


async def first_offer(settings: LiveSettings) -> LocalModels | None:
    """For a first start: what runs here, or None when somebody has chosen already, a model or none. As `look_around` otherwise."""
    rows = await asyncio.to_thread(settings.rows)
    chosen = next(row.source for row in rows if row.name == "model") != "default"
    return None if chosen else await look_around(settings)


def use(settings: LiveSettings, name: str, found: Sequence[LocalService]) -> tuple[str, ...]:
    """Choose a model for all conversations; answers what the person should know besides. May block.

    `name`: as a service on this machine names it, `PROVIDER/NAME` for any other, or "none" for the menu alone. Raises `ConfigError`.
    """
    wanted = name.strip()
    here = [(service, model) for service in found for model in service.models if wanted in (model, service.spec(model))]
    specs = dict.fromkeys(service.spec(model) for service, model in here)
    if len(specs) > 1:
        raise ConfigError(f"Several services here have {wanted}.", code="MODEL_AMBIGUOUS", hint=f"Say which: {', '.join(specs)}.")
    before = settings.current
    if wanted == NO_MODEL:
        settings.change({"model": NO_MODEL})
    elif here:
        service, model = here[0]
        settings.change({"model": service.spec(model), "base_url": service.place.url})
    else:
        settings.change({"model": _elsewhere(wanted, found), "base_url": None})
    return _remarks(settings, before.base_url)


def _elsewhere(wanted: str, found: Sequence[LocalService]) -> str:
    """A model of a service that did not answer here. Raises `ConfigError` when it should have."""
    vendor, _, model = wanted.partition("/")
    names = [service.spec(each) for service in found for each in service.models]
    listed = f"Here are: {', '.join(names)}." if names else "No service for models answers on this machine."
    local = {place.vendor for place in USUAL}
    if not model or vendor in local or vendor == SCRIPTED:
        raise ConfigError(f"There is no model {wanted} on this machine.", code="MODEL_NOT_FOUND", hint=listed)
    return f"{find_vendor(vendor).name}/{model}"


def _remarks(settings: LiveSettings, base_url: str | None) -> tuple[str, ...]:
    remarks = [
        f"{row.variable} is set, and stronger than the settings file: {row.value} stays in use."
        for row in settings.rows()
        if row.name in ("model", "base_url") and row.source == "environment"
    ]
    if base_url and settings.current.base_url != base_url:
        remarks.append(f"The base URL was {base_url}.")
    return tuple(remarks)
