"""Which services for models run on this machine: asked on loopback, all at once, for a moment.

The usual ports of Ollama, LM Studio, llama.cpp's server and Jan, and places that the person named, if they are on this machine. Nothing
else is asked: no proxy of the environment, no redirect, no name that would have to be looked up. Nothing is started or downloaded.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncGenerator, Iterable, Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from obsidian_agent.errors import ConfigError
from obsidian_agent.providers.catalogue import list_models
from obsidian_agent.providers.registry import endpoint_of, find_vendor, is_loopback
from obsidian_agent.providers.streams import in_own_loop

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
        return next((name for name in self.models if not any(sign in name.lower() for sign in _NO_CHAT)), None)


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
    if vendor and base_url and is_loopback(base_url) and all(base_url.rstrip("/") != place.url for place in found):
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
    found: tuple[LocalService, ...] = ()
    async with contextlib.aclosing(in_own_loop(lambda: _asked(where))) as answers:
        async for answer in answers:
            found = answer
    return found


async def _asked(where: Iterable[Place]) -> AsyncGenerator[tuple[LocalService, ...], None]:
    from obsidian_agent.providers import http_guard

    http_guard.prepare()
    found = await asyncio.gather(*(_service(place) for place in where if is_loopback(place.url)))
    yield tuple(service for service in found if service is not None)


async def _service(place: Place) -> LocalService | None:
    """What answers there. Without a key: one that stands in the environment is nothing for whoever happens to listen on a port."""
    endpoint, _ = endpoint_of(find_vendor(place.vendor), "", base_url=place.url, find_key=lambda vendor: None)
    found = await list_models(endpoint, None, PATIENCE)
    return LocalService(place, found) if isinstance(found, tuple) else None
