"""Discovery of model services on this machine, and the choice of one of their models.

The usual ports of Ollama, LM Studio, llama.cpp's server, Jan, vLLM, KoboldCpp and GPT4All are
probed, and the address in the settings if it is a loopback address. No proxy, redirect or name
lookup is used. Nothing is started or downloaded.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Iterable, Sequence
from typing import Final
from urllib.parse import urlsplit

from msgspec import Struct

from obsidian_agent.config.live import LiveSettings
from obsidian_agent.config.settings import NO_MODEL
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
"""Seconds in which all services must accept a connection, and then answer."""
_NO_CHAT: Final = ("embed", "rerank", "whisper", "bge-", "minilm")
"""Parts of the names of models that cannot chat."""


class ServiceLocation(Struct, frozen=True):
    """An address at which a service may listen.

    `vendor` is the provider for its models, `title` the name of the program.
    """

    vendor: str
    title: str
    url: str


class LocalService(Struct, frozen=True):
    """A service that answered, and the names of its models."""

    location: ServiceLocation
    models: tuple[str, ...]

    def spec(self, model: str) -> str:
        """Return a model of it as a value of the setting `model`."""
        return f"{self.location.vendor}/{model}"

    @property
    def suggestion(self) -> str | None:
        """The first of its models that can chat, judged by its name."""
        return next(
            (name for name in self.models if not any(sign in name.lower() for sign in _NO_CHAT)),
            None,
        )


USUAL: Final = (
    ServiceLocation("ollama", "Ollama", "http://127.0.0.1:11434"),
    ServiceLocation("lm_studio", "LM Studio", "http://127.0.0.1:1234/v1"),
    ServiceLocation("custom", "llama.cpp", "http://127.0.0.1:8080/v1"),
    ServiceLocation("custom", "Jan", "http://127.0.0.1:1337/v1"),
    ServiceLocation("custom", "vLLM", "http://127.0.0.1:8000/v1"),
    ServiceLocation("custom", "KoboldCpp", "http://127.0.0.1:5001/v1"),
    ServiceLocation("custom", "GPT4All", "http://127.0.0.1:4891/v1"),
)


def locations(model: str | None = None, base_url: str | None = None) -> tuple[ServiceLocation, ...]:
    """Return the locations to probe.

    These are the usual ports, for Ollama the port of OLLAMA_HOST, and the address in the settings
    if it is on this machine, whether a model is chosen or not.
    """
    addresses = list(USUAL)
    host = os.environ.get("OLLAMA_HOST", "").strip()
    port = _port(host if "://" in host else f"http://{host}") if host else None
    if port is not None:
        addresses[0] = ServiceLocation("ollama", "Ollama", f"http://127.0.0.1:{port}")
    vendor = (model or "").partition("/")[0].lower()
    if model in (None, NO_MODEL):
        vendor = "custom"
    if (
        base_url
        and is_loopback(base_url)
        and all(base_url.rstrip("/") != location.url for location in addresses)
    ):
        with contextlib.suppress(ConfigError):
            title = find_vendor(vendor).title
            addresses.insert(0, ServiceLocation(vendor, title, base_url.rstrip("/")))
    return tuple(addresses)


def _port(address: str) -> int | None:
    """Return the port of an address on this machine, or None for other addresses.

    A server may listen on all addresses.
    """
    try:
        parts = urlsplit(address)
        everywhere = parts.hostname in ("0.0.0.0", "::")
        return (parts.port or 11434) if everywhere or is_loopback(address) else None
    except ValueError:
        return None


async def find_services(where: Sequence[ServiceLocation] = USUAL) -> tuple[LocalService, ...]:
    """Return the services that answer, in the order of `where`.

    Takes at most twice `PATIENCE`, and longer the first time, when the client is loaded.
    """
    return await value_in_own_loop(lambda: _probe(where))


async def _probe(where: Iterable[ServiceLocation]) -> tuple[LocalService, ...]:
    candidates = [location for location in where if is_loopback(location.url)]
    answers = await asyncio.gather(*(_accepts_connections(location) for location in candidates))
    listening = [location for location, answer in zip(candidates, answers, strict=True) if answer]
    if not listening:
        return ()  # Without a service, the HTTP client and its 10 MB are not loaded.

    from obsidian_agent.providers import http_guard

    http_guard.prepare()
    services = await asyncio.gather(*(_service(location) for location in listening))
    return tuple(service for service in services if service is not None)


async def _accepts_connections(location: ServiceLocation) -> bool:
    """Return True if a program accepts connections at a location."""
    parts = urlsplit(location.url)
    try:
        port = parts.port or (443 if parts.scheme == "https" else 80)
        async with asyncio.timeout(PATIENCE):
            _, writer = await asyncio.open_connection(parts.hostname, port)
    except (OSError, ValueError):  # no answer, in time or at all; a port that cannot be one
        return False
    writer.close()
    return True


async def _service(location: ServiceLocation) -> LocalService | None:
    """Return the service at a location. No key is sent: any program may listen on the port."""
    endpoint, _ = endpoint_of(
        find_vendor(location.vendor), "", base_url=location.url, find_key=lambda vendor: None
    )
    models = await list_models(endpoint, None, PATIENCE)
    return LocalService(location, models) if isinstance(models, tuple) else None


class LocalModels(Struct, frozen=True):
    """The services on this machine, and the model in the settings (None: only the menu)."""

    services: tuple[LocalService, ...]
    using: str | None

    @property
    def offer(self) -> Offer | None:
        """The model to suggest on the first start; None if no service has one."""
        return next(
            (
                Offer(service, service.suggestion)
                for service in self.services
                if service.suggestion is not None
            ),
            None,
        )


class Offer(Struct, frozen=True):
    """A model that could be used at once: "Ollama with qwen3:4b runs here"."""

    service: LocalService
    model: str

    @property
    def title(self) -> str:
        """The name of the program."""
        return self.service.location.title

    @property
    def spec(self) -> str:
        """The value of the setting `model`."""
        return self.service.spec(self.model)


async def look_around(settings: LiveSettings) -> LocalModels:
    """Return the services that run now. Takes a third of a second, and more the first time."""
    services = await find_services(locations(settings.model, settings.current.base_url))
    return LocalModels(services, settings.model)


async def first_offer(settings: LiveSettings) -> LocalModels | None:
    """Return the services as `look_around` does, or None if the user has already chosen a model."""
    rows = await asyncio.to_thread(settings.rows)
    chosen = next(row.source for row in rows if row.name == "model") != "default"
    return None if chosen else await look_around(settings)


def use(settings: LiveSettings, name: str, services: Sequence[LocalService]) -> tuple[str, ...]:
    """Choose a model for all conversations. Return remarks for the user. May block.

    `name` is the name of a model on this machine, `PROVIDER/NAME` for any other, or "none" for the
    menu alone. Raise `ConfigError`.
    """
    name = name.strip()
    matches = [
        (service, model)
        for service in services
        for model in service.models
        if name in (model, service.spec(model))
    ]
    specs = dict.fromkeys(service.spec(model) for service, model in matches)
    if len(specs) > 1:
        raise ConfigError(
            f"Several services on this machine have {name}.",
            code="MODEL_AMBIGUOUS",
            hint=f"Choose one: {', '.join(specs)}.",
        )
    before = settings.current
    if name == NO_MODEL:
        settings.change({"model": NO_MODEL})
    elif matches:
        service, model = matches[0]
        settings.change({"model": service.spec(model), "base_url": service.location.url})
    else:
        settings.change({"model": _remote_model(name, services), "base_url": None})
    return _remarks(settings, before.base_url)


def _remote_model(name: str, services: Sequence[LocalService]) -> str:
    """Return a model that is not on this machine. Raise `ConfigError` if it should be."""
    vendor, _, model = name.partition("/")
    specs = [service.spec(model) for service in services for model in service.models]
    hint = "No model service answers on this machine."
    if specs:
        hint = f"Models on this machine: {', '.join(specs)}."
    local = {location.vendor for location in USUAL}
    if not model or vendor in local or vendor == SCRIPTED:
        raise ConfigError(
            f"There is no model {name} on this machine.", code="MODEL_NOT_FOUND", hint=hint
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
