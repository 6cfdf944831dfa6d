"""The registry of model services: from names such as `openai/gpt-5` to a `Provider`.

A service is one row of `VENDORS`; `custom:NAME` is another one like `custom` at an address from the
settings. Importing this module imports no client library. `ProviderManager` creates each provider
once and shares it. The list of a service's models is cached for half a minute, and requested at
most once in two seconds.
"""

from __future__ import annotations

import asyncio
import ipaddress
import json
import os
import re
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import SplitResult, urlsplit

from msgspec import Struct, field
from msgspec.structs import replace
from pydantic import SecretStr

from obsidian_agent.errors import ConfigError, ProviderError
from obsidian_agent.providers import errors
from obsidian_agent.providers.base import Provider, value_in_own_loop
from obsidian_agent.providers.errors import Service
from obsidian_agent.providers.litellm_client import Dialect, Endpoint, LiteLLMProvider, warm_up
from obsidian_agent.providers.middleware import LimitedProvider, RateLimits, RetryingProvider
from obsidian_agent.providers.other_agent import ACP
from obsidian_agent.providers.scripted import ScriptedProvider

SCRIPTED = "scripted"
OLLAMA_CONTEXT = 16_384
"""Tokens. Ollama's own default is smaller than a prompt, which it truncates silently."""
LOCAL_SILENCE: Final = 300.0
"""Seconds of silence for a model on this machine, which may have to be loaded first."""
LIST_SECONDS: Final = 30.0
"""Seconds for which a list of models is cached."""
SHORTEST: Final = 2.0
"""Minimal seconds between two requests for a list, also when the user refreshes it."""
TIMEOUT: Final = 10.0
"""Seconds in which a service must answer with its list of models."""
MOST_MODELS: Final = 5_000
"""Models that are read from a list."""

Fetch = Callable[[Endpoint, SecretStr | None], Awaitable[tuple[str, ...]]]


class Vendor(Struct, frozen=True, kw_only=True):
    """A model service.

    Keys are read from the first of `key_variables` that is set. Without a `base_url` the user has
    to set one.
    """

    name: str
    title: str
    dialect: Dialect = "openai"
    base_url: str | None
    key_variables: tuple[str, ...] = ()
    base_url_variables: tuple[str, ...] = ()
    needs_key: bool = True
    json_mode: bool = True
    extra: tuple[tuple[str, Any], ...] = ()


VENDORS = (
    Vendor(
        name="openai",
        title="OpenAI",
        base_url="https://api.openai.com/v1",
        key_variables=("OPENAI_API_KEY",),
        base_url_variables=("OPENAI_BASE_URL", "OPENAI_API_BASE"),
    ),
    Vendor(
        name="anthropic",
        title="Anthropic",
        dialect="anthropic",
        base_url="https://api.anthropic.com",
        key_variables=("ANTHROPIC_API_KEY",),
        base_url_variables=("ANTHROPIC_BASE_URL",),
        json_mode=False,
    ),
    Vendor(
        name="gemini",
        title="Gemini",
        base_url="https://generativelanguage.googleapis.com/v1beta/openai",
        key_variables=("GEMINI_API_KEY", "GOOGLE_API_KEY"),
    ),
    Vendor(
        name="openrouter",
        title="OpenRouter",
        base_url="https://openrouter.ai/api/v1",
        key_variables=("OPENROUTER_API_KEY",),
    ),
    Vendor(
        name="zenmux",
        title="ZenMux",
        base_url="https://zenmux.ai/api/v1",
        key_variables=("ZENMUX_API_KEY",),
    ),
    Vendor(
        name="ollama",
        title="Ollama",
        dialect="ollama_chat",
        base_url="http://localhost:11434",
        key_variables=("OLLAMA_API_KEY",),
        base_url_variables=("OLLAMA_HOST",),
        needs_key=False,
        extra=(("num_ctx", OLLAMA_CONTEXT),),
    ),
    Vendor(
        name="lm_studio",
        title="LM Studio",
        base_url="http://localhost:1234/v1",
        key_variables=("LM_STUDIO_API_KEY",),
        needs_key=False,
    ),
    Vendor(
        name="custom",
        title="The custom service",
        base_url=None,
        key_variables=("OBSIDIAN_AGENT_API_KEY",),
        base_url_variables=("OBSIDIAN_AGENT_BASE_URL",),
        needs_key=False,
    ),
)

KeyFinder = Callable[[Vendor], SecretStr | None]
"""A source of keys: only the environment, or `keys.KeyStore.find`."""


def environment_key(vendor: Vendor) -> SecretStr | None:
    """Return the key of a service from the environment, or None."""
    keys = (os.environ.get(name, "").strip() for name in vendor.key_variables)
    key = next(filter(None, keys), None)
    return SecretStr(key) if key is not None else None


def find_vendor(name: str) -> Vendor:
    """Return the vendor called `name`. Raise `ConfigError` if there is none."""
    name = name.lower()
    for vendor in VENDORS:
        if vendor.name == name:
            return vendor
    kind, _, own = name.partition(":")
    if kind == "custom" and re.fullmatch("[a-z0-9][a-z0-9_-]*", own):
        variables = tuple(
            f"{variable}_{own.upper().replace('-', '_')}"
            for variable in ("OBSIDIAN_AGENT_API_KEY", "OBSIDIAN_AGENT_BASE_URL")
        )
        return replace(
            find_vendor(kind),
            name=name,
            title=own,
            key_variables=variables[:1],
            base_url_variables=variables[1:],
        )
    known = ", ".join([vendor.name for vendor in VENDORS] + [SCRIPTED])
    hint = (
        f"Providers: {known}. For another OpenAI-compatible service use custom:NAME/MODEL, with "
        "its address in the setting services."
    )
    raise ConfigError(f"There is no provider {name!r}.", hint=hint)


def known_vendors(addresses: Iterable[str] = ()) -> tuple[Vendor, ...]:
    """Return all services, including those with an address in the settings.

    Raise `ConfigError` if the name of an address is invalid.
    """
    return tuple(
        {vendor.name: vendor for vendor in (*VENDORS, *map(find_vendor, addresses))}.values()
    )


def open_provider(
    spec: str,
    *,
    base_url: str | None = None,
    find_key: KeyFinder = environment_key,
    limits: RateLimits | None = None,
    streaming: bool = True,
) -> Provider:
    """Return the provider that `spec` (`VENDOR/MODEL` or `scripted/FILE`) names.

    It repeats requests after temporary failures. A service that is not on this machine is
    rate-limited by its bucket in `limits` (None: a bucket of its own). Without `streaming` answers
    are requested in one piece. Nothing is imported or sent before the first request, which also
    reports a missing key (`API_KEY_MISSING`).

    Raise `ConfigError` for an invalid name, an address that is neither https nor on this machine,
    or an unreadable script.
    """
    name, _, model = spec.strip().partition("/")
    if not model:
        raise ConfigError(
            f"{spec!r} does not name a model.",
            hint="Write PROVIDER/MODEL, such as openai/gpt-5 or ollama/qwen3.",
        )
    if name == SCRIPTED:
        return ScriptedProvider.load(Path(model))
    vendor = find_vendor(name)
    endpoint, key = endpoint_of(vendor, model, base_url=base_url, find_key=find_key)
    provider = LiteLLMProvider(
        name=f"{vendor.name}/{model}", endpoint=endpoint, api_key=key, streaming=streaming
    )
    service = endpoint.service
    if service.local:
        return RetryingProvider(provider, silence=LOCAL_SILENCE)
    bucket = (limits or RateLimits()).bucket(f"{vendor.name} {service.address}")
    return RetryingProvider(LimitedProvider(provider, bucket))


def endpoint_of(
    vendor: Vendor,
    model: str,
    *,
    base_url: str | None = None,
    find_key: KeyFinder = environment_key,
) -> tuple[Endpoint, SecretStr | None]:
    """Return the endpoint of a model and its key. Raise `ConfigError` for an unsafe address."""
    address = base_url or _from_environment(vendor) or vendor.base_url
    if address is None:
        raise ConfigError(
            f"{vendor.name}/{model} needs a base URL.",
            hint=f"Use --base-url, or set {vendor.base_url_variables[0]} or services.",
        )
    parts = _parse_address(address)
    local = _is_loopback(parts)
    key = find_key(vendor)
    service = Service(
        name=vendor.title,
        model=model,
        address=f"{parts.scheme}://{parts.netloc}",
        key_hint=(
            f"Set {' or '.join(vendor.key_variables)}, or save a key: /key in the app, or "
            f"obsidian-agent key save {vendor.name}."
        ),
        local=local,
        secrets=(key.get_secret_value(),) if key is not None else (),
    )
    endpoint = Endpoint(
        dialect=vendor.dialect,
        model=model,
        base_url=address.rstrip("/"),
        service=service,
        needs_key=vendor.needs_key and not local,
        json_mode=vendor.json_mode,
        direct=local,
        extra=vendor.extra,
    )
    return endpoint, key


def _from_environment(vendor: Vendor) -> str | None:
    values = (os.environ.get(name, "").strip() for name in vendor.base_url_variables)
    address = next(filter(None, values), None)
    if address and "://" not in address:
        return f"http://{address}"  # OLLAMA_HOST is host:port
    return address


def _parse_address(address: str) -> SplitResult:
    """Split an address. Raise `ConfigError` if keys and notes must not be sent to it."""
    try:
        parts = urlsplit(address.strip())
        host, _ = parts.hostname, parts.port
    except ValueError:
        host, parts = None, SplitResult("", "", "", "", "")
    if parts.scheme not in ("http", "https") or not host:
        raise ConfigError(
            "The base URL is not an address.",
            code="BASE_URL_REFUSED",
            hint="Write it like https://host/v1.",
        )
    if parts.username or parts.password or parts.query or parts.fragment:
        hint = "Remove user, password, ? and #."
        raise ConfigError(
            f"The base URL for {host} contains more than an address.",
            code="BASE_URL_REFUSED",
            hint=hint,
        )
    if parts.scheme == "http" and not _is_loopback(parts):
        hint = "Use https; http is for this machine only."
        raise ConfigError(
            f"http://{host} would send key and notes without encryption.",
            code="BASE_URL_REFUSED",
            hint=hint,
        )
    return parts


def is_loopback(address: str) -> bool:
    """Return True if an address is on this machine. No name is looked up."""
    try:
        return _is_loopback(urlsplit(address.strip()))
    except ValueError:
        return False


def _is_loopback(parts: SplitResult) -> bool:
    host = parts.hostname or ""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class _CachedList(Struct):
    at: float
    models: tuple[str, ...]
    failure: ProviderError | None = None


class Catalogue(Struct):
    """The cached model lists of all services."""

    fetch: Fetch = lambda endpoint, key: fetch_models(endpoint, key)
    clock: Callable[[], float] = time.monotonic
    _cached: dict[str, _CachedList] = field(default_factory=dict)
    _requests: dict[str, asyncio.Task[tuple[str, ...]]] = field(default_factory=dict)

    async def models(
        self, endpoint: Endpoint, key: SecretStr | None, *, fresh: bool = False
    ) -> tuple[str, ...]:
        """Return the names of a service's models, sorted.

        Raise `ProviderError`, which is cached for two seconds too.
        """
        name = endpoint.base_url
        cached = self._cached.get(name)
        if cached is not None:
            is_short = fresh or cached.failure is not None
            if self.clock() - cached.at < (SHORTEST if is_short else LIST_SECONDS):
                if cached.failure is not None:
                    raise cached.failure
                return cached.models
        task = self._requests.get(name)
        if task is None:
            task = self._requests[name] = asyncio.ensure_future(self.fetch(endpoint, key))
        try:
            models = await asyncio.shield(task)
            self._cached[name] = _CachedList(self.clock(), models)
        except ProviderError as error:
            self._cached[name] = _CachedList(self.clock(), (), error)
            raise
        finally:
            if task.done():
                self._requests.pop(name, None)
        return models


async def fetch_models(endpoint: Endpoint, key: SecretStr | None) -> tuple[str, ...]:
    """Request the models of a service. Raise `ProviderError`."""
    if endpoint.needs_key and key is None:
        raise errors.key_missing(endpoint.service)
    models = await value_in_own_loop(lambda: list_models(endpoint, key, 2 * TIMEOUT))
    if isinstance(models, ProviderError):
        raise models
    return models


async def list_models(
    endpoint: Endpoint, key: SecretStr | None, seconds: float
) -> tuple[str, ...] | ProviderError:
    """Return the names of a service's models, sorted, or the error.

    The error is a value because the context of a raised exception could contain headers with keys.
    Imports httpx and runs in the calling loop. `seconds` is the time for the whole request.
    """
    from obsidian_agent.providers.http_guard import GuardedClient

    client = GuardedClient(
        origin=endpoint.base_url, timeout=min(TIMEOUT, seconds), direct=endpoint.direct
    )
    failure: ProviderError | None = None
    names: tuple[str, ...] = ()
    try:
        async with asyncio.timeout(seconds):
            response = await client.get(_address(endpoint), headers=_headers(endpoint, key))
        if client.exchange.status is not None and client.exchange.status >= 300:
            failure = errors.from_status(
                endpoint.service,
                client.exchange.status,
                client.exchange.headers,
                client.exchange.error_body,
            )
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
    """Yield the names in `{data: [{id}]}` or `{models: [{name}]}`."""
    rows = document.get("data", document.get("models")) if isinstance(document, dict) else document
    for row in rows if isinstance(rows, list) else ():
        name = row.get("id") or row.get("name") if isinstance(row, dict) else row
        if isinstance(name, str) and name.strip() and name.isprintable() and len(name) <= 200:
            yield name.removeprefix("models/")


class ProviderManager(Struct):
    """The providers by `VENDOR/MODEL`.

    `addresses` are the addresses of services from the settings, by service name. Rate limits belong
    to services, so that switching between models does not raise them.
    """

    addresses: Mapping[str, str] = field(default_factory=dict)
    find_key: KeyFinder = environment_key
    limits: RateLimits = field(default_factory=RateLimits)
    streaming: bool = True
    """False: answers are requested in one piece."""
    wrap: Callable[[Provider], Provider] = lambda provider: provider
    """Wrapper of every provider."""
    open_agent: Callable[[str], Provider] | None = None
    """Opens another agent, `acp/NAME`. Raises `ConfigError`."""
    catalogue: Catalogue = field(default_factory=Catalogue)
    _providers: dict[str, Provider] = field(default_factory=dict)

    def get(self, spec: str) -> Provider:
        """Return the provider with a name, always the same one. Raise `ConfigError`."""
        spec = spec.strip()
        if spec not in self._providers:
            vendor, _, model = spec.partition("/")
            if vendor.lower() == ACP and self.open_agent is not None:
                self._providers[spec] = self.wrap(self.open_agent(model))
                return self._providers[spec]
            base_url = self.addresses.get(vendor.lower())
            provider = open_provider(
                spec,
                base_url=base_url,
                find_key=self.find_key,
                limits=self.limits,
                streaming=self.streaming,
            )
            self._providers[spec] = self.wrap(provider)
        return self._providers[spec]

    def warm_up(self, spec: str) -> None:
        """Prepare for the first request to a model, without sending anything.

        Blocks for seconds: call it in a thread that may be abandoned.
        """
        if not spec.startswith((f"{SCRIPTED}/", f"{ACP}/")):
            warm_up()

    async def models(self, vendor: str, *, fresh: bool = False) -> tuple[str, ...]:
        """Return the models of a service as `VENDOR/MODEL`, sorted.

        Raise `ConfigError` or `ProviderError`.
        """
        service = find_vendor(vendor)
        base_url = self.addresses.get(service.name)
        endpoint, key = await asyncio.to_thread(
            lambda: endpoint_of(service, "", base_url=base_url, find_key=self.find_key)
        )
        names = await self.catalogue.models(endpoint, key, fresh=fresh)
        return tuple(f"{service.name}/{name}" for name in names)

    def forget(self) -> None:
        """Drop all providers, because a key or an address has changed."""
        self._providers.clear()
