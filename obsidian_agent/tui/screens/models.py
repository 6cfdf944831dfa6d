"""The choice of model, key and agent, and the question of a first start."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, ClassVar

from textual import work
from textual.app import ComposeResult

from obsidian_agent import terminal_text
from obsidian_agent.errors import ObsidianAgentError
from obsidian_agent.tui.bindings import bindings, key_label
from obsidian_agent.tui.commands import Command
from obsidian_agent.tui.screens.dialogs import ChoiceScreen, Pick, Secret
from obsidian_agent.tui.screens.reports import ReportActions
from obsidian_agent.tui.screens.settings import SettingActions
from obsidian_agent.tui.screens.trust import Trust
from obsidian_agent.tui.widgets.row_list import Choice, ChoiceList

if TYPE_CHECKING:
    from collections.abc import Sequence

    from obsidian_agent.providers.local_models import LocalService, Offer

DEFAULT = "default"
NO_AGENT = "none"
USE, MENU, SERVICE = "use", "menu", "service"

KEYS_HINT = (
    "Keys are stored in the system keyring, or without one in a file that only you can read. "
    "They are never stored in a vault."
)


class ModelActions(ReportActions, SettingActions):
    """Actions that choose models, keys and agents."""

    SLASH: ClassVar[tuple[Command, ...]] = (
        Command(
            "model",
            "Choose a model",
            "For this conversation",
            "choose_model",
            "[PROVIDER/NAME or offline]",
        ),
        Command(
            "key",
            "Set an API key",
            "For a service; stored outside the vault, never logged",
            "set_key",
            "[PROVIDER]",
        ),
        Command(
            "trust",
            "Agents, skills and instructions",
            "Review the ones in this vault and trust them, or don't",
            "trust",
        ),
        Command(
            "agent",
            "Choose an agent",
            "One of the vault, or a program such as opencode",
            "choose_agent",
            "[NAME or none]",
        ),
    )

    @work(group="choice", exclusive=True, exit_on_error=False)
    async def action_choose_model(self, name: str = "") -> None:
        """Choose a model for this conversation. Without a `name` the user picks one."""
        if not name:
            rows = [
                (DEFAULT, "the model of the settings"),
                *await asyncio.to_thread(self.services.known_models),
            ]
            hint = (
                "PROVIDER/NAME, such as openai/gpt-5 or ollama/qwen3. "
                "Takes effect with the next message of this conversation."
            )
            picked = await self.app.push_screen_wait(
                Pick("Choose a model", rows, hint=hint, free=True)
            )
            name = picked or ""
            if name.endswith("/"):
                name = await self._pick_model_of(name)
        if not name:
            return
        chosen = None if name == DEFAULT else name
        await asyncio.to_thread(self.services.choose_model, self.thread.id, chosen)
        self.thread.model = chosen
        model = await asyncio.to_thread(self.services.model_of, self.thread.id)
        self.add_entry("note", f"The next message goes to {terminal_text.shortened(model, 120)}.")
        self.show_usage()

    async def _pick_model_of(self, vendor: str) -> str:
        """Let the user pick a model of one service, from the service's own list if it has one."""
        self.show_hint(f"Loading the models of {vendor.rstrip('/')}…")
        try:
            names = await self.services.service_models(vendor.rstrip("/"))
            rows, hint = [(name, "") for name in names], "If a model is not listed, type its name."
        except ObsidianAgentError as error:
            rows, hint = [], f"{error.problem().message} Type the name of a model."
        finally:
            self.show_hint("")
        hint = terminal_text.folded(hint, 3)
        picked = await self.app.push_screen_wait(
            Pick("Choose a model", rows, hint=hint, free=True, typed=vendor)
        )
        if not picked or picked.endswith("/"):
            return ""
        return picked

    # --- keys -------------------------------------------------------------------------------------

    @work(group="choice", exclusive=True, exit_on_error=False)
    async def action_set_key(self, vendor: str = "") -> None:
        """Store the API key of a service in the system keyring, or else in a private file."""
        service = vendor or await self._pick_service("Set the key of which service?")
        if service:
            await self._set_key(service)

    async def _pick_service(self, title: str) -> str | None:
        rows = await asyncio.to_thread(self.services.key_sources)
        return await self.app.push_screen_wait(Pick(title, rows, hint=KEYS_HINT))

    async def _set_key(self, vendor: str) -> None:
        title = f"API key for {terminal_text.shortened(vendor, 60)}"
        hint = "Leave it empty to delete the stored key."
        secret = await self.app.push_screen_wait(Secret(title, hint))
        if secret is not None:
            self.add_entry("note", await asyncio.to_thread(self.services.save_key, vendor, secret))

    # --- agents of the vault ----------------------------------------------------------------------

    def action_trust(self) -> None:
        """Show the vault's agents, skills and instructions, to review and trust them."""
        self.app.push_screen(Trust(self.services.vault_agents))

    @work(group="choice", exclusive=True, exit_on_error=False)
    async def action_choose_agent(self, name: str = "") -> None:
        """Choose an agent of the vault, or another program, for this conversation.

        Without a `name` the user picks one.
        """
        agents = (await asyncio.to_thread(self.services.vault_agents.library)).agents
        others = self.services.other_agents()
        if not name:
            rows = [
                (NO_AGENT, "no agent, the default model"),
                *((key, agent.head.description) for key, agent in agents.items()),
                *others.items(),
            ]
            hint = "Only agents of the vault that you trust are listed. /trust shows all of them."
            picked = await self.app.push_screen_wait(Pick("Choose an agent", rows, hint=hint))
            name = picked or ""
        if not name:
            return
        if name in others and name not in agents:
            self.action_choose_model(f"acp/{name}")
        elif name != NO_AGENT and name not in agents:
            self.show_hint(
                f"No agent “{name}” is trusted or configured. /trust shows the agents of the vault."
            )
        elif self.thread.id is None:
            self.show_hint("Send a message first. An agent is chosen for one conversation.")
        else:
            agent_name = None if name == NO_AGENT else name
            await asyncio.to_thread(self.threads.choose_assistant, self.thread.id, agent_name)
            who = "The default model"
            if agent_name is not None:
                who = terminal_text.shortened(agent_name, 80)
            self.add_entry("note", f"{who} answers from the next message on.")
            self.show_usage()

    # --- first start ------------------------------------------------------------------------------

    async def offer_model(self) -> None:
        """Offer the model that runs on this machine, unless one is chosen already.

        If there is none, explain how to work without a model.
        """
        from obsidian_agent.providers.local_models import first_offer

        first_start = await first_offer(self.settings)
        if first_start is None:
            return
        if first_start.offer is None:
            self.panes.chat.set_model_notice(
                "No model is chosen: your words are matched with the built-in actions "
                f"({self.key('main.saved')}). To use a model, type /key, then /model."
            )
            return
        match await self.app.push_screen_wait(FirstStart(first_start.offer)):
            case "use":
                await self._use(first_start.offer.spec, first_start.services)
            case "menu":
                await self._use("none", first_start.services)
            case "service":
                await self._use_service()

    async def _use(self, name: str, services: Sequence[LocalService]) -> None:
        """Choose a model for all conversations, and report it."""
        from obsidian_agent.providers.local_models import use

        remarks = await asyncio.to_thread(use, self.settings, name, services)
        chosen = self.settings.model
        if chosen:
            used = f"{terminal_text.shortened(chosen, 120)} is used from now on."
        else:
            used = f"No model is used. {self.key('main.saved')} shows all actions."
        change = f"Change it with /model or in the settings ({self.key('main.settings')})."
        self.add_entry("note", "\n".join([f"{used} {change}", *remarks]))
        self.signals.setting_changed.publish("model")

    async def _use_service(self) -> None:
        """Let the user pick a service, enter its key and pick its model, for all conversations."""
        vendor = await self._pick_service("Which service?")
        if vendor:
            await self._set_key(vendor)
            model = await self._pick_model_of(f"{vendor}/")
            if model:
                await self._use(model, ())


class FirstStart(ChoiceScreen):
    """The question which model to use. Dismisses with the answer; None asks again next time."""

    BINDINGS = bindings("card")

    def __init__(self, offer: Offer) -> None:
        service = terminal_text.shortened(offer.title, 40)
        model = terminal_text.shortened(offer.model, 80)
        rows = [
            Choice(USE, "Use it", "it chooses among the actions, in any language", "1"),
            Choice(MENU, "No model", "your words are matched with the built-in actions", "2"),
            Choice(SERVICE, "Use a service", "OpenAI, Anthropic, Gemini and others", "3"),
        ]
        super().__init__(f"{service} runs on this computer with {model}. Use it?", rows)

    def body(self) -> ComposeResult:
        settings, close = key_label(self, "main.settings"), key_label(self, "dialog.close")
        self.hint = (
            "Nothing is downloaded. You can change this at any time with /model or in the "
            f"settings ({settings}). {close}: ask again at the next start."
        )
        yield from super().body()

    def action_pick(self, index: int) -> None:
        self.dismiss(self.query_one(ChoiceList).entries[index].key)
