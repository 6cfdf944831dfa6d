"""Discovery of model services on this machine, and choosing one of their models for the settings.

The usual ports of Ollama, LM Studio, llama.cpp's server and Jan are asked, and addresses from the
settings if they are loopback addresses. No proxy, redirect or name lookup is used. Nothing is
started or downloaded.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Iterable, Sequence
from typing import Final
from urllib.parse import urlsplit

from obsidian_agent.config.live import LiveSettings
from obsidian_agent.config.settings import NO_MODEL
from obsidian_agent.dataclass import dataclass
from obsidian_agent.errors import ConfigError
from obsidian_agent.providers.base import value_in_own_loop
from obsidian_agent.providers.registry import (
    SCRIPTED,
    endpoint_of,
    find_vendor,
    is_loopback,
    list_models,
)

PATIENCE: Final = 0.3
"""Seconds that all of them together have for their answers."""
_NO_CHAT: Final = ("embed", "rerank", "whisper", "bge-", "minilm")
"""In names of models that answer nothing."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a service may listen. `vendor` is the provider that models there are asked through, `title` how people call the program."""

    vendor: str
    title: str
    url: str


@dataclass(frozen=True, slots=True)
class LocalService:
    """A service that answered, and the models it has, as it names them."""

    place: Place
    models: tuple[str, ...]

    def spec(self, model: str) -> str:
        """A model of it as the setting `model` has it."""
        return f"{self.place.vendor}/{model}"

    @property
    def suggestion(self) -> str | None:
        """The first of its models that can hold a conversation, by its name."""
        return next(
            (name for name in self.models if not any(sign in name.lower() for sign in _NO_CHAT)),
            None,
        )


USUAL: Final = (
    Place("ollama", "Ollama", "http://127.0.0.1:11434"),
    Place("lm_studio", "LM Studio", "http://127.0.0.1:1234/v1"),
    Place("custom", "llama.cpp", "http://127.0.0.1:8080/v1"),
    Place("custom", "Jan", "http://127.0.0.1:1337/v1"),
)


def places(model: str | None = None, base_url: str | None = None) -> tuple[Place, ...]:
    """Where to look: the usual ports, Ollama's where OLLAMA_HOST says, and the address of the settings' model if it is on this machine."""
    found = list(USUAL)
    host = os.environ.get("OLLAMA_HOST", "").strip()
    port = _port(host if "://" in host else f"http://{host}") if host else None
    if port is not None:
        found[0] = Place("ollama", "Ollama", f"http://127.0.0.1:{port}")
    vendor = (model or "").partition("/")[0].lower()
    if (
        vendor
        and base_url
        and is_loopback(base_url)
        and all(base_url.rstrip("/") != place.url for place in found)
    ):
        with contextlib.suppress(ConfigError):
            found.insert(0, Place(vendor, find_vendor(vendor).title, base_url.rstrip("/")))
    return tuple(found)


def _port(address: str) -> int | None:
    """The port of an address on this machine (a server may be told to listen everywhere); None for any other."""
    try:
        parts = urlsplit(address)
        everywhere = parts.hostname in ("0.0.0.0", "::")  # noqa: S104  read, not listened on
        return (parts.port or 11434) if everywhere or is_loopback(address) else None
    except ValueError:
        return None


async def find_services(where: Sequence[Place] = USUAL) -> tuple[LocalService, ...]:
    """The services that answer, in the order of `where`. Takes `PATIENCE` at most, besides what loading the client takes the first time."""
    return await value_in_own_loop(lambda: _asked(where))


async def _asked(where: Iterable[Place]) -> tuple[LocalService, ...]:
    from obsidian_agent.providers import http_guard

    http_guard.prepare()
    found = await asyncio.gather(*(_service(place) for place in where if is_loopback(place.url)))
    return tuple(service for service in found if service is not None)


async def _service(place: Place) -> LocalService | None:
    """What answers there. Without a key: one that stands in the environment is nothing for whoever happens to listen on a port."""
    endpoint, _ = endpoint_of(
        find_vendor(place.vendor), "", base_url=place.url, find_key=lambda vendor: None
    )
    found = await list_models(endpoint, None, PATIENCE)
    return LocalService(place, found) if isinstance(found, tuple) else None


@dataclass(frozen=True, slots=True)
class LocalModels:
    """The services that run on this machine, and the model of the settings (None: the menu alone)."""

    services: tuple[LocalService, ...]
    using: str | None

    @property
    def offer(self) -> Offer | None:
        """The model to suggest to somebody who has not chosen yet; None when nothing that answers runs here."""
        return next(
            (Offer(each, each.suggestion) for each in self.services if each.suggestion is not None),
            None,
        )


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
        return self.service.spec(self.model)


async def look_around(settings: LiveSettings) -> LocalModels:
    """What runs here now. Takes a third of a second, and more the first time; blocks no loop."""
    return LocalModels(
        await find_services(places(settings.model, settings.current.base_url)), settings.model
    )


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
    here = [
        (service, model)
        for service in found
        for model in service.models
        if wanted in (model, service.spec(model))
    ]
    specs = dict.fromkeys(service.spec(model) for service, model in here)
    if len(specs) > 1:
        raise ConfigError(
            f"Several services here have {wanted}.",
            code="MODEL_AMBIGUOUS",
            hint=f"Say which: {', '.join(specs)}.",
        )
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
    listed = (
        f"Here are: {', '.join(names)}."
        if names
        else "No service for models answers on this machine."
    )
    local = {place.vendor for place in USUAL}
    if not model or vendor in local or vendor == SCRIPTED:
        raise ConfigError(
            f"There is no model {wanted} on this machine.", code="MODEL_NOT_FOUND", hint=listed
        )
    return f"{find_vendor(vendor).name}/{model}"


def _remarks(settings: LiveSettings, base_url: str | None) -> tuple[str, ...]:
    remarks = [
        f"{row.override.rstrip('.')}: {row.value} stays in use."
        for row in settings.rows()
        if row.name in ("model", "base_url") and row.override
    ]
    if base_url and settings.current.base_url != base_url:
        remarks.append(f"The base URL was {base_url}.")
    return tuple(remarks)
