"""Which models a service has: asked of the service, remembered for half a minute, and never asked twice within two seconds."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, Final

from pydantic import SecretStr

from obsidian_agent.dataclass import dataclass, field
from obsidian_agent.errors import ProviderError
from obsidian_agent.providers import errors
from obsidian_agent.providers.litellm_client import Endpoint
from obsidian_agent.providers.streams import value_in_own_loop

REMEMBERED: Final = 30.0
"""Seconds that a list is good for."""
SHORTEST: Final = 2.0
"""Seconds between two questions to one service, also when the person wants a fresh list."""
TIMEOUT: Final = 10.0
MOST_MODELS: Final = 5_000
"""Seconds that a service has for its list of models, and how many of it are kept."""

Fetch = Callable[[Endpoint, SecretStr | None], Awaitable[tuple[str, ...]]]


@dataclass(slots=True)
class _Known:
    at: float
    models: tuple[str, ...]
    failure: ProviderError | None = None


@dataclass(slots=True)
class Catalogue:
    """The lists of models of all services."""

    fetch: Fetch = lambda endpoint, key: fetch_models(endpoint, key)
    clock: Callable[[], float] = time.monotonic
    _known: dict[str, _Known] = field(default_factory=dict)
    _asking: dict[str, asyncio.Task[tuple[str, ...]]] = field(default_factory=dict)

    async def models(self, endpoint: Endpoint, key: SecretStr | None, *, fresh: bool = False) -> tuple[str, ...]:
        """The names of a service's models, sorted. Raises `ProviderError`; that is remembered for two seconds too."""
        name = endpoint.base_url
        known = self._known.get(name)
        age = self.clock() - known.at if known is not None else REMEMBERED
        if known is not None and age < (SHORTEST if fresh or known.failure is not None else REMEMBERED):
            if known.failure is not None:
                raise known.failure
            return known.models
        task = self._asking.get(name)
        if task is None:
            task = self._asking[name] = asyncio.ensure_future(self.fetch(endpoint, key))
        try:
            found = await asyncio.shield(task)
            self._known[name] = _Known(self.clock(), found)
        except ProviderError as error:
            self._known[name] = _Known(self.clock(), (), error)
            raise
        finally:
            if task.done():
                self._asking.pop(name, None)
        return found


async def fetch_models(endpoint: Endpoint, key: SecretStr | None) -> tuple[str, ...]:
    """Ask a service for its models. Raises `ProviderError`."""
    if endpoint.needs_key and key is None:
        raise errors.key_missing(endpoint.service)
    found = await value_in_own_loop(lambda: list_models(endpoint, key, 2 * TIMEOUT))
    if isinstance(found, ProviderError):
        raise found
    return found


async def list_models(endpoint: Endpoint, key: SecretStr | None, seconds: float) -> tuple[str, ...] | ProviderError:
    """The names of a service's models, sorted, or why there are none: as a value, since what hangs on to an exception would hold headers.

    Imports httpx, and works in the loop it is called in. `seconds` are for all of it.
    """
    from obsidian_agent.providers.http_guard import GuardedClient

    client = GuardedClient(origin=endpoint.base_url, timeout=min(TIMEOUT, seconds), direct=endpoint.direct)
    failure: ProviderError | None = None
    names: tuple[str, ...] = ()
    try:
        async with asyncio.timeout(seconds):
            response = await client.get(_address(endpoint), headers=_headers(endpoint, key))
        if client.exchange.status is not None and client.exchange.status >= 300:
            failure = errors.from_status(endpoint.service, client.exchange.status, client.exchange.headers, client.exchange.error_body)
        else:
            names = tuple(sorted(dict.fromkeys(_names(json.loads(response.content)))))[:MOST_MODELS]
    except Exception as error:
        failure = errors.from_exception(endpoint.service, client.exchange.failure or error)
    finally:
        await client.aclose()
    return failure if failure is not None else names


def _address(endpoint: Endpoint) -> str:
    match endpoint.dialect:
        case "ollama_chat":
            return f"{endpoint.base_url}/api/tags"
        case "anthropic":
            return f"{endpoint.base_url.removesuffix('/v1')}/v1/models?limit=1000"
        case "openai":
            return f"{endpoint.base_url}/models"


def _headers(endpoint: Endpoint, key: SecretStr | None) -> dict[str, str]:
    if key is None:
        return {}
    secret = key.get_secret_value()
    if endpoint.dialect == "anthropic":
        return {"x-api-key": secret, "anthropic-version": "2023-06-01"}
    return {"authorization": f"Bearer {secret}"}


def _names(document: Any) -> Iterator[str]:
    """The names in `{data: [{id}]}` or `{models: [{name}]}`."""
    rows = document.get("data", document.get("models")) if isinstance(document, dict) else document
    for row in rows if isinstance(rows, list) else ():
        name = row.get("id") or row.get("name") if isinstance(row, dict) else row
        if isinstance(name, str) and name.strip() and name.isprintable() and len(name) <= 200:
            yield name.removeprefix("models/")
