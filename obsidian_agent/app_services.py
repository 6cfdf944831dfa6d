"""The services of screens beside a session: usage, caches, models, keys, request previews."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from obsidian_agent.agent.conversation import Conversation
from obsidian_agent.agent.events import TokensUsed
from obsidian_agent.agent.privacy.ledger import Ledger
from obsidian_agent.errors import ConfigError
from obsidian_agent.terminal_text import counted
from obsidian_agent.threads.manager import ThreadManager

if TYPE_CHECKING:
    from obsidian_agent.agent.context import Mentionable
    from obsidian_agent.agent.mcp_resources import McpResources
    from obsidian_agent.integrations.community_plugins import PluginMatches
    from obsidian_agent.providers.keys import KeyStore
    from obsidian_agent.providers.registry import Vendor
    from obsidian_agent.services.health import VaultHealth
    from obsidian_agent.services.model_turns import RequestPreview
    from obsidian_agent.services.rules import RuleRunner
    from obsidian_agent.services.session import Session
    from obsidian_agent.services.vault_agents.library import VaultAgents
    from obsidian_agent.services.waiting_plans import WaitingPlans


class CacheInfo(Struct, frozen=True):
    """A cache: `what` it holds, its amount, and its location (`None`: in memory)."""

    what: str
    amount: str
    where: str | None = None


class AppServices(Struct, frozen=True, kw_only=True):
    """Services over a session and its threads.

    `plugins` searches Obsidian's community plugins, `rules` opens the vault's rules; it may block.
    """

    session: Session
    threads: ThreadManager
    ledger: Ledger
    plugins: Callable[[str], Awaitable[PluginMatches]]
    vault_agents: VaultAgents
    keys: KeyStore
    waiting: WaitingPlans
    rules: Callable[[], RuleRunner]
    health: VaultHealth

    async def preview_request(self, thread_id: str | None, draft: str) -> RequestPreview | None:
        """Return the request that a message would send in a conversation (`None`: a new one).

        Return `None` without a model. Raise `ConfigError`.
        """
        from obsidian_agent.services.model_turns import preview_request

        conversation, model, assistant = Conversation(), None, None
        if thread_id is not None:
            thread = await asyncio.to_thread(self.threads.open, thread_id)
            conversation = thread.conversation
            model, assistant = thread.state.model, thread.state.assistant
        turns = await asyncio.to_thread(self.session.open_model_turns)
        if turns is None:
            return None
        return await preview_request(turns, conversation, draft, model=model, assistant=assistant)

    def usage(self, thread_id: str | None) -> tuple[Sequence[TokensUsed], Sequence[TokensUsed]]:
        """Return the tokens of a conversation's turns, and of all in memory. May block."""
        here = self.threads.open(thread_id).state.usage if thread_id is not None else []
        everywhere = [
            tokens
            for key in self.threads.in_memory
            for tokens in self.threads.open(key).state.usage
        ]
        return list(here), everywhere

    def caches(self) -> list[CacheInfo]:
        """Return the caches of the program. May block."""
        caches = [CacheInfo("Conversations in memory", f"{len(self.threads.in_memory):,}")]
        keeper = self.session.vault.keeper
        if keeper is not None:
            status = keeper.status
            amount = "not read yet"
            if status.ready:
                amount = (
                    f"{counted(status.files, 'file')}, checked in {status.seconds:.2f} s; "
                    f"{status.reused:,} records reused, {status.read:,} created"
                )
            caches.append(CacheInfo("Index of the vault", amount, str(keeper.folder)))
        return caches

    def model_of(self, thread_id: str | None) -> str:
        """Return the model of a conversation (`None`: a new one), "" without a model. May block."""
        models = self.session.open_models()
        if models is None:
            return ""
        chosen = self.threads.open(thread_id).state.model if thread_id is not None else None
        return chosen or models.spec

    def known_models(self) -> list[tuple[str, str]]:
        """Return names to choose from, each with a remark. May block.

        They are models that conversations used, and services, which end with `/`.
        """
        models = self.session.open_models()
        used = [thread.model for thread in self.threads.store.summaries() if thread.model]
        remarks = dict.fromkeys(used, "used before")
        if models is not None:
            remarks = {models.spec: "the default"} | remarks
        services = [(f"{vendor.name}/", vendor.title) for vendor in self._vendors()]
        return [*remarks.items(), *services]

    def _vendors(self) -> Sequence[Vendor]:
        from obsidian_agent.providers.registry import known_vendors

        return known_vendors(self.session.settings.current.services)

    def other_agents(self) -> dict[str, str]:
        """Return the commands of external agents by name."""
        from obsidian_agent.providers.other_agent import COMMANDS

        return {**COMMANDS, **self.session.settings.current.agents}

    def key_sources(self) -> list[tuple[str, str]]:
        """Return the services with keys, each with the source of its key. May block.

        Raise `ConfigError`.
        """
        sources = {
            "environment": "from the environment",
            "keyring": "in the keyring",
            "file": "in your key file",
            None: "no key",
        }
        return [
            (vendor.name, f"{vendor.title}, {sources[self.keys.source(vendor)]}")
            for vendor in self._vendors()
            if vendor.key_variables
        ]

    def save_key(self, name: str, secret: str) -> str:
        """Save the key of a service, or delete it if `secret` is empty. Return a message.

        Raise `ConfigError`. May block.
        """
        from pydantic import SecretStr

        from obsidian_agent.providers.registry import find_vendor

        vendor = find_vendor(name)
        if secret:
            if self.keys.save(vendor, SecretStr(secret)) == "keyring":
                location = "the system's keyring"
            else:
                location = "your key file, because no keyring is available"
            message = f"The key for {vendor.title} is now in {location}."
        else:
            self.keys.forget(vendor)
            message = f"The stored key for {vendor.title} was deleted."
        self.session.settings_changed()
        if self.keys.source(vendor) == "environment":
            message += f" The environment variable {vendor.key_variables[0]} takes precedence."
        return message

    async def service_models(self, vendor: str) -> tuple[str, ...]:
        """Ask a service for its models. Raise `ConfigError` or `ProviderError`."""
        from obsidian_agent.providers.registry import ProviderManager

        models = await asyncio.to_thread(self.session.open_models)
        if models is not None:
            return await models.providers.models(vendor)
        services = self.session.settings.current.services
        return await ProviderManager(services, find_key=self.keys.find).models(vendor)

    def choose_model(self, thread_id: str | None, model: str | None) -> None:
        """Set the model of a conversation from its next message on (`None`: the default).

        Without any model yet, it becomes the default in the settings. Raise `ConfigError`, also for
        a model that cannot be opened. May block.
        """
        session = self.session
        if not session.has_model and model is not None:
            session.settings.set("model", model)
            session.settings_changed()
            if not session.has_model:
                raise ConfigError(
                    "The program was started with --offline.",
                    code="NO_MODEL",
                    hint="Start it without this option to use a model.",
                )
        elif model is not None and (models := session.open_models()) is not None:
            models.providers.get(model)
        if thread_id is not None:
            self.threads.choose_model(thread_id, model)

    def mentionable(self) -> Mentionable:
        """Return what can be mentioned in a message. May block."""
        from obsidian_agent.agent.context import Mentionable

        return Mentionable(self.session.vault.view())

    def server_resources(self) -> McpResources | None:
        """Return the resources and prompts of MCP servers, `None` without a model. May block."""
        models = self.session.open_models()
        return None if models is None else models.servers
