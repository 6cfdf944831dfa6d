"""What the program can tell of itself: what was sent, what would be sent, what it cost, what is kept ready. Changes nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

from obsidian_agent.agent.conversation import Conversation
from obsidian_agent.agent.events import TokensUsed
from obsidian_agent.agent.privacy.record import Ledger
from obsidian_agent.dataclass import dataclass
from obsidian_agent.errors import ConfigError
from obsidian_agent.terminal_text import counted
from obsidian_agent.threads.manager import ThreadManager

if TYPE_CHECKING:
    from obsidian_agent.agent.context import Mentionable
    from obsidian_agent.integrations.community_plugins import PluginMatches
    from obsidian_agent.providers.keys import KeyStore
    from obsidian_agent.providers.registry import Vendor
    from obsidian_agent.services.model_turns import RequestPreview
    from obsidian_agent.services.session import Session
    from obsidian_agent.services.vault_agents.library import VaultAgents


@dataclass(frozen=True, slots=True)
class CacheInfo:
    """Something that is kept ready so that it need not be done again: `what`, how much of it, and where (None: in memory)."""

    what: str
    amount: str
    where: str | None = None


@dataclass(frozen=True, slots=True)
class AppServices:
    """Over a session and its threads. `plugins` searches Obsidian's community plugins."""

    session: Session
    threads: ThreadManager
    ledger: Ledger
    plugins: Callable[[str], Awaitable[PluginMatches]]
    vault_agents: VaultAgents
    keys: KeyStore

    async def preview_request(self, thread_id: str | None, draft: str) -> RequestPreview | None:
        """What a message would send in a conversation (None: a new one); None without a model. Raises `ConfigError`."""
        from obsidian_agent.services.model_turns import preview_request

        thread = (
            await asyncio.to_thread(self.threads.open, thread_id) if thread_id is not None else None
        )
        turns = await asyncio.to_thread(lambda: self.session.model_turns)
        if turns is None:
            return None
        conversation = thread.conversation if thread is not None else Conversation()
        model, assistant = (
            (thread.state.model, thread.state.assistant) if thread is not None else (None, None)
        )
        return await preview_request(turns, conversation, draft, model=model, assistant=assistant)

    def usage(self, thread_id: str | None) -> tuple[Sequence[TokensUsed], Sequence[TokensUsed]]:
        """What the turns of a conversation used, and those of all conversations in memory. May block."""
        here = self.threads.open(thread_id).state.usage if thread_id is not None else []
        everywhere = [
            each for key in self.threads.in_memory for each in self.threads.open(key).state.usage
        ]
        return list(here), everywhere

    def caches(self) -> list[CacheInfo]:
        """Everything that is kept ready. May block."""
        found = [CacheInfo("Conversations in memory", f"{len(self.threads.in_memory):,}")]
        keeper = self.session.vault.keeper
        if keeper is not None:
            status = keeper.status
            used = f"{status.reused:,} records were still right, {status.read:,} were made"
            words = (
                f"{counted(status.files, 'file')}, looked at in {status.seconds:.2f} s; {used}"
                if status.ready
                else "not read yet"
            )
            found.append(CacheInfo("Index of the vault", words, str(keeper.folder)))
        return found

    def model_of(self, thread_id: str | None) -> str:
        """The model that a conversation asks (None: a new one); "" for the offline planner. May block."""
        models = self.session.models
        if models is None:
            return ""
        chosen = self.threads.open(thread_id).state.model if thread_id is not None else None
        return chosen or models.spec

    def known_models(self) -> list[tuple[str, str]]:
        """Names to choose from, with a word on each: models that conversations used, and the services (they end with `/`). May block."""
        models = self.session.models
        used = [thread.model for thread in self.threads.store.summaries() if thread.model]
        found = dict.fromkeys(used, "used before")
        if models is not None:
            found = {models.spec: "the one of the settings"} | found
        return [*found.items(), *((f"{vendor.name}/", vendor.title) for vendor in self._vendors())]

    def _vendors(self) -> Sequence[Vendor]:
        from obsidian_agent.providers.registry import known_vendors

        return known_vendors(self.session.settings.current.services)

    def other_agents(self) -> dict[str, str]:
        """The agents that are programs of their own, by name, each with its command."""
        from obsidian_agent.providers.other_agent import COMMANDS

        return {**COMMANDS, **self.session.settings.current.agents}

    def key_sources(self) -> list[tuple[str, str]]:
        """The services that take a key, each with where it comes from. Raises `ConfigError`. May block."""
        where = {
            "environment": "from the environment",
            "keyring": "in the keyring",
            "file": "in your key file",
            None: "no key",
        }
        return [
            (vendor.name, f"{vendor.title}, {where[self.keys.source(vendor)]}")
            for vendor in self._vendors()
            if vendor.key_variables
        ]

    def save_key(self, name: str, secret: str) -> str:
        """Keep the key of a service, or with an empty one forget it; says what was done. Raises `ConfigError`. May block."""
        from pydantic import SecretStr

        from obsidian_agent.providers.registry import find_vendor

        vendor = find_vendor(name)
        if secret:
            place = self.keys.save(vendor, SecretStr(secret))
            where = (
                "the system's keyring now"
                if place == "keyring"
                else "your key file now; there is no keyring that takes it"
            )
            told = f"The key for {vendor.title} is in {where}."
        else:
            self.keys.forget(vendor)
            told = f"No key for {vendor.title} is kept any more."
        self.session.settings_changed()
        if self.keys.source(vendor) == "environment":
            told += f" The one in {vendor.key_variables[0]} counts before it."
        return told

    async def service_models(self, vendor: str) -> tuple[str, ...]:
        """The models of a service, asked of it. Raises `ConfigError` and `ProviderError`."""
        from obsidian_agent.providers.registry import ProviderManager

        models = await asyncio.to_thread(lambda: self.session.models)
        known = (
            models.providers
            if models is not None
            else ProviderManager(self.session.settings.current.services, find_key=self.keys.find)
        )
        return await known.models(vendor)

    def choose_model(self, thread_id: str | None, model: str | None) -> None:
        """Let a conversation use another model from its next message on (None: the one of the settings).

        Where there is no model at all yet, it becomes the one of the settings. Raises `ConfigError`, also for a name that cannot be opened.
        May block.
        """
        session = self.session
        if session.models is None and model is not None:
            session.settings.set("model", model)
            session.settings_changed()
            if session.models is None:
                raise ConfigError(
                    "The program was started with --offline.",
                    code="NO_MODEL",
                    hint="Start it without, to use a model.",
                )
        elif model is not None and session.models is not None:
            session.models.providers.get(model)
        if thread_id is not None:
            self.threads.choose_model(thread_id, model)

    def mentionable(self) -> Mentionable:
        """Everything that can be mentioned in a message. May block."""
        from obsidian_agent.agent.context import Mentionable

        return Mentionable(self.session.vault.view())
