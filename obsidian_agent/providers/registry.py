"""From a model's name on the command line or in the settings (`openai/gpt-5`, `ollama/qwen3`, `scripted/answers.jsonl`) to a `Provider`.

A row of `VENDORS` is all there is to a service; `custom:NAME` is one more like `custom`, under an address of the person's settings. Importing
this module imports no client library. `ProviderManager` is where the program gets providers from: each is made once, and shared by everything that
asks the same model. Which models a service has is asked of it, remembered for half a minute, and never asked twice within two seconds.
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

from pydantic import SecretStr

from obsidian_agent.dataclass import dataclass, field, replace
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
"""Tokens. Ollama's own default is smaller than a prompt, which it cuts without a word."""
LOCAL_SILENCE: Final = 300.0
"""Seconds of silence for a model on this machine, which may have to be loaded first."""


@dataclass(frozen=True, slots=True)
class Vendor:
    """A service that models can be asked at. Keys are looked for under `key_variables`, in order. No `base_url`: the person gives one."""

    name: str
    title: str
    dialect: Dialect
    base_url: str | None
    key_variables: tuple[str, ...] = ()
    base_url_variables: tuple[str, ...] = ()
    needs_key: bool = True
    json_mode: bool = True
    extra: tuple[tuple[str, Any], ...] = ()


VENDORS = (
    Vendor(
        "openai",
        "OpenAI",
        "openai",
        "https://api.openai.com/v1",
        ("OPENAI_API_KEY",),
        ("OPENAI_BASE_URL", "OPENAI_API_BASE"),
    ),
    Vendor(
        "anthropic",
        "Anthropic",
        "anthropic",
        "https://api.anthropic.com",
        ("ANTHROPIC_API_KEY",),
        ("ANTHROPIC_BASE_URL",),
        json_mode=False,
    ),
    Vendor(
        "gemini",
        "Gemini",
        "openai",
        "https://generativelanguage.googleapis.com/v1beta/openai",
        ("GEMINI_API_KEY", "GOOGLE_API_KEY"),
    ),
    Vendor(
        "openrouter",
        "OpenRouter",
        "openai",
        "https://openrouter.ai/api/v1",
        ("OPENROUTER_API_KEY",),
    ),
    Vendor("zenmux", "ZenMux", "openai", "https://zenmux.ai/api/v1", ("ZENMUX_API_KEY",)),
    Vendor(
        "ollama",
        "Ollama",
        "ollama_chat",
        "http://localhost:11434",
        ("OLLAMA_API_KEY",),
        ("OLLAMA_HOST",),
        needs_key=False,
        extra=(("num_ctx", OLLAMA_CONTEXT),),
    ),
    Vendor(
        "lm_studio",
        "LM Studio",
        "openai",
        "http://localhost:1234/v1",
        ("LM_STUDIO_API_KEY",),
        needs_key=False,
    ),
    Vendor(
        "custom",
        "The model service",
        "openai",
        None,
        ("OBSIDIAN_AGENT_API_KEY",),
        ("OBSIDIAN_AGENT_BASE_URL",),
        needs_key=False,
    ),
)

KeyFinder = Callable[[Vendor], SecretStr | None]
"""Where keys come from: the environment alone, or also the keyring or a file (`keys.KeyStore.find`)."""


def environment_key(vendor: Vendor) -> SecretStr | None:
    found = next(
        (key for name in vendor.key_variables if (key := os.environ.get(name, "").strip())), None
    )
    return SecretStr(found) if found is not None else None


def find_vendor(name: str) -> Vendor:
    """The vendor called `name`. Raises `ConfigError`."""
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
    hint = f"Known are: {known}. For another OpenAI-compatible service use custom:NAME/MODEL, with its address in the setting services."
    raise ConfigError(f"There is no provider {name!r}.", hint=hint)


def known_vendors(addresses: Iterable[str] = ()) -> tuple[Vendor, ...]:
    """Every service, with those of the person's own that have an address. Raises `ConfigError` for an address of none."""
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
    """The provider that `spec` (`VENDOR/MODEL` or `scripted/FILE`) names; it asks again after passing failures. Not `streaming`: for whole answers.

    A service that is not on this machine is asked no more often than its bucket in `limits` allows; None: a bucket of its own.
    Nothing is imported or sent before its first request, and a missing key is reported there (`API_KEY_MISSING`).
    Raises `ConfigError` for a bad name, an address that is neither https nor on this machine, and an unreadable script.
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
    provider = LiteLLMProvider(f"{vendor.name}/{model}", endpoint, key, streaming)
    service = endpoint.service
    if service.local:
        return RetryingProvider(provider, silence=LOCAL_SILENCE)
    return RetryingProvider(
        LimitedProvider(
            provider, (limits or RateLimits()).bucket(f"{vendor.name} {service.address}")
        )
    )


def endpoint_of(
    vendor: Vendor,
    model: str,
    *,
    base_url: str | None = None,
    find_key: KeyFinder = environment_key,
) -> tuple[Endpoint, SecretStr | None]:
    """Where a vendor's model is asked, and with which key. Raises `ConfigError` for an address that must not be used."""
    address = base_url or _from_environment(vendor) or vendor.base_url
    if address is None:
        raise ConfigError(
            f"{vendor.name}/{model} needs a base URL.",
            hint=f"Give --base-url, or set {vendor.base_url_variables[0]} or services.",
        )
    parts = _checked(address)
    local = _is_loopback(parts)
    key = find_key(vendor)
    service = Service(
        name=vendor.title,
        model=model,
        address=f"{parts.scheme}://{parts.netloc}",
        key_hint=f"Set {' or '.join(vendor.key_variables)}, or save a key for {vendor.name} in the settings.",
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
    found = next(
        (
            value
            for name in vendor.base_url_variables
            if (value := os.environ.get(name, "").strip())
        ),
        None,
    )
    if found and "://" not in found:
        return f"http://{found}"  # OLLAMA_HOST is host:port
    return found


def _checked(address: str) -> SplitResult:
    """The address in parts, if keys and notes may go there."""
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
        hint = "Leave out user, password, ? and #."
        raise ConfigError(
            f"The base URL for {host} carries more than an address.",
            code="BASE_URL_REFUSED",
            hint=hint,
        )
    if parts.scheme == "http" and not _is_loopback(parts):
        hint = "Use https; http is for this machine only."
        raise ConfigError(
            f"http://{host} would carry key and notes in the open.",
            code="BASE_URL_REFUSED",
            hint=hint,
        )
    return parts


def is_loopback(address: str) -> bool:
    """Whether an address is on this machine, by what it says: no name is looked up."""
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

    async def models(
        self, endpoint: Endpoint, key: SecretStr | None, *, fresh: bool = False
    ) -> tuple[str, ...]:
        """The names of a service's models, sorted. Raises `ProviderError`; that is remembered for two seconds too."""
        name = endpoint.base_url
        known = self._known.get(name)
        age = self.clock() - known.at if known is not None else REMEMBERED
        if known is not None and age < (
            SHORTEST if fresh or known.failure is not None else REMEMBERED
        ):
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


async def list_models(
    endpoint: Endpoint, key: SecretStr | None, seconds: float
) -> tuple[str, ...] | ProviderError:
    """The names of a service's models, sorted, or why there are none: as a value, since what hangs on to an exception would hold headers.

    Imports httpx, and works in the loop it is called in. `seconds` are for all of it.
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
    """The names in `{data: [{id}]}` or `{models: [{name}]}`."""
    rows = document.get("data", document.get("models")) if isinstance(document, dict) else document
    for row in rows if isinstance(rows, list) else ():
        name = row.get("id") or row.get("name") if isinstance(row, dict) else row
        if isinstance(name, str) and name.strip() and name.isprintable() and len(name) <= 200:
            yield name.removeprefix("models/")


@dataclass(slots=True)
class ProviderManager:
    """Providers by `VENDOR/MODEL`. `addresses` are those of services, by their names, that are not the usual ones.

    Buckets of requests belong to services, so switching models back and forth asks a service no more often.
    """

    addresses: Mapping[str, str] = field(default_factory=dict)
    find_key: KeyFinder = environment_key
    limits: RateLimits = field(default_factory=RateLimits)
    streaming: bool = True
    """Off: services are asked for answers in one piece."""
    wrap: Callable[[Provider], Provider] = lambda provider: provider
    """What every provider is put into."""
    open_agent: Callable[[str], Provider] | None = None
    """Opens an agent that looks around by itself, `acp/NAME`. Raises `ConfigError`."""
    catalogue: Catalogue = field(default_factory=Catalogue)
    _made: dict[str, Provider] = field(default_factory=dict)

    def get(self, spec: str) -> Provider:
        """The provider that a name stands for; the same one every time. Raises `ConfigError`."""
        spec = spec.strip()
        if spec not in self._made:
            vendor, _, model = spec.partition("/")
            if vendor.lower() == ACP and self.open_agent is not None:
                self._made[spec] = self.wrap(self.open_agent(model))
                return self._made[spec]
            base_url = self.addresses.get(vendor.lower())
            how: dict[str, Any] = {
                "find_key": self.find_key,
                "limits": self.limits,
                "streaming": self.streaming,
            }
            self._made[spec] = self.wrap(open_provider(spec, base_url=base_url, **how))
        return self._made[spec]

    def warm_up(self, spec: str) -> None:
        """Prepare for the first request to a model, which takes seconds; nothing is sent. Blocks: call it in a thread that may be left."""
        if not spec.startswith((f"{SCRIPTED}/", f"{ACP}/")):
            warm_up()

    async def models(self, vendor: str, *, fresh: bool = False) -> tuple[str, ...]:
        """The models of a service as `VENDOR/MODEL`, sorted. Raises `ConfigError` and `ProviderError`."""
        found = find_vendor(vendor)
        base_url = self.addresses.get(found.name)
        endpoint, key = await asyncio.to_thread(
            lambda: endpoint_of(found, "", base_url=base_url, find_key=self.find_key)
        )
        names = await self.catalogue.models(endpoint, key, fresh=fresh)
        return tuple(f"{found.name}/{name}" for name in names)

    def forget(self) -> None:
        """Make every provider anew when it is asked for: after a key or an address has changed."""
        self._made.clear()
