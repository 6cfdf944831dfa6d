"""Who answers: the model and its key, the agent of the vault, and the one card of a first start."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, ClassVar

from textual import work
from textual.app import ComposeResult

from obsidian_agent import terminal_text
from obsidian_agent.errors import ObsidianAgentError
from obsidian_agent.tui.bindings import bindings, key_label
from obsidian_agent.tui.commands import Command
from obsidian_agent.tui.screens.dialogs import Modal, Pick, Secret
from obsidian_agent.tui.screens.reports import ReportActions
from obsidian_agent.tui.screens.settings import SettingActions
from obsidian_agent.tui.screens.trust import Trust
from obsidian_agent.tui.widgets.row_list import Choice, ChoiceList

if TYPE_CHECKING:
    from collections.abc import Sequence

    from obsidian_agent.providers.local_models import LocalService, Offer

DEFAULT = "default"
NOBODY = "none"
USE, MENU, SERVICE = "use", "menu", "service"

KEYS_HINT = "Keys are kept in the system's keyring, or where there is none in a file that only you can read; never in a vault."


class ModelActions(ReportActions, SettingActions):
    """Models, keys and agents are chosen."""

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
            "Keep a key",
            "For a service, where no vault and no log sees it",
            "set_key",
            "[PROVIDER]",
        ),
        Command(
            "trust",
            "Agents, skills and instructions",
            "Of this vault: trust them, or don't",
            "trust",
        ),
        Command(
            "agent",
            "Choose an agent",
            "Of the vault, or a program such as opencode",
            "choose_agent",
            "[NAME or none]",
        ),
    )

    @work(group="choice", exclusive=True, exit_on_error=False)
    async def action_choose_model(self, name: str = "") -> None:
        """Another model for this conversation; without a name the person picks one."""
        wanted = name
        if not wanted:
            rows = [
                (DEFAULT, "the one of the settings again"),
                *await asyncio.to_thread(self.services.known_models),
            ]
            hint = "PROVIDER/NAME, such as openai/gpt-5 or ollama/qwen3. It takes effect with the next message of this conversation."
            picked = await self.app.push_screen_wait(
                Pick("Choose a model", rows, hint=hint, free=True)
            )
            wanted = picked or ""
            if wanted.endswith("/"):
                wanted = await self._model_of_service(wanted)
        if not wanted:
            return
        chosen = None if wanted == DEFAULT else wanted
        await asyncio.to_thread(self.services.choose_model, self.thread.id, chosen)
        self.thread.model = chosen
        model = await asyncio.to_thread(self.services.model_of, self.thread.id)
        self.add_entry("note", f"The next message goes to {terminal_text.shortened(model, 120)}.")
        self.show_usage()

    async def _model_of_service(self, vendor: str) -> str:
        """A model of one service, from its own list where it gives one."""
        self.show_hint(f"Asking {vendor.rstrip('/')} for its models…")
        try:
            found = await self.services.service_models(vendor.rstrip("/"))
            rows, hint = [(name, "") for name in found], "Type another name if it is not listed."
        except ObsidianAgentError as error:
            rows, hint = [], f"{error.problem().message} Type the name."
        finally:
            self.show_hint("")
        picked = await self.app.push_screen_wait(
            Pick(
                "Choose a model", rows, hint=terminal_text.folded(hint, 3), free=True, typed=vendor
            )
        )
        return picked if picked and not picked.endswith("/") else ""

    # --- keys -------------------------------------------------------------------------------------------------------------------

    @work(group="choice", exclusive=True, exit_on_error=False)
    async def action_set_key(self, vendor: str = "") -> None:
        """The key for a service: into the system's keyring, or where there is none into a file for the person alone."""
        wanted = vendor or await self._pick_service("The key of which service?")
        if wanted:
            await self._keep_key(wanted)

    async def _pick_service(self, title: str) -> str | None:
        rows = await asyncio.to_thread(self.services.key_sources)
        return await self.app.push_screen_wait(Pick(title, rows, hint=KEYS_HINT))

    async def _keep_key(self, vendor: str) -> None:
        title = f"The key for {terminal_text.shortened(vendor, 60)}"
        secret = await self.app.push_screen_wait(
            Secret(title, "Empty forgets the one that is kept.")
        )
        if secret is not None:
            self.add_entry("note", await asyncio.to_thread(self.services.save_key, vendor, secret))

    # --- agents of the vault ----------------------------------------------------------------------------------------------------

    def action_trust(self) -> None:
        """What in the vault wants to tell the agent something."""
        self.app.push_screen(Trust(self.services.vault_agents))

    @work(group="choice", exclusive=True, exit_on_error=False)
    async def action_choose_agent(self, name: str = "") -> None:
        """Who answers in this conversation: an agent of the vault, or another program. Without a name the person picks one."""
        agents = (await asyncio.to_thread(self.services.vault_agents.library)).agents
        others = self.services.other_agents()
        wanted = name
        if not wanted:
            rows = [
                (NOBODY, "nobody in particular"),
                *((key, agent.head.description) for key, agent in agents.items()),
                *others.items(),
            ]
            hint = "Of the vault's agents only those that you trust are here; /trust shows all."
            picked = await self.app.push_screen_wait(Pick("Choose an agent", rows, hint=hint))
            wanted = picked or ""
        if not wanted:
            return
        if wanted in others and wanted not in agents:
            self.action_choose_model(f"acp/{wanted}")
        elif wanted != NOBODY and wanted not in agents:
            self.show_hint(
                f"There is no agent {wanted} that you trust or have a command for. /trust shows what the vault has."
            )
        elif self.thread.id is None:
            self.show_hint("Say something first: an agent is chosen for a conversation.")
        else:
            await asyncio.to_thread(
                self.threads.choose_assistant, self.thread.id, None if wanted == NOBODY else wanted
            )
            who = (
                "Nobody in particular answers"
                if wanted == NOBODY
                else f"{terminal_text.shortened(wanted, 80)} answers"
            )
            self.add_entry("note", f"{who} from the next message on.")
            self.show_usage()

    # --- at a first start -------------------------------------------------------------------------------------------------------

    async def offer_model(self) -> None:
        """When nobody has chosen: offer the model that runs on this machine, or say how it is without one."""
        from obsidian_agent.providers.local_models import first_offer

        found = await first_offer(self.settings)
        if found is None:
            return
        if found.offer is None:
            actions = f"what you say is looked for among the actions, and {self.key('main.saved')} has them all"
            self.panes.chat.set_model_notice(
                f"No model is chosen: {actions}. /key and /model use a service."
            )
            return
        match await self.app.push_screen_wait(FirstStart(found.offer)):
            case "use":
                await self._use(found.offer.spec, found.services)
            case "menu":
                await self._use("none", found.services)
            case "service":
                await self._use_service()

    async def _use(self, name: str, services: Sequence[LocalService]) -> None:
        """Choose a model for all conversations, and say so."""
        from obsidian_agent.providers.local_models import use

        remarks = await asyncio.to_thread(use, self.settings, name, services)
        chosen = self.settings.model
        used = (
            f"{terminal_text.shortened(chosen, 120)} is used from now on."
            if chosen
            else f"No model is used: {self.key('main.saved')} has all actions."
        )
        self.add_entry(
            "note",
            "\n".join(
                [
                    f"{used} /model and the settings ({self.key('main.settings')}) change it.",
                    *remarks,
                ]
            ),
        )
        self.signals.setting_changed.publish("model")

    async def _use_service(self) -> None:
        """A service, its key, and one of its models, for all conversations."""
        vendor = await self._pick_service("Which service?")
        if vendor:
            await self._keep_key(vendor)
            model = await self._model_of_service(f"{vendor}/")
            if model:
                await self._use(model, ())


class FirstStart(Modal[str]):
    """Dismisses with the answer; Escape is none, and the next start asks again."""

    BINDINGS = bindings("card")

    def __init__(self, offer: Offer) -> None:
        title = f"{terminal_text.shortened(offer.title, 40)} with {terminal_text.shortened(offer.model, 80)} runs here. Use it?"
        super().__init__(title)

    def body(self) -> ComposeResult:
        settings, close = key_label(self, "main.settings"), key_label(self, "dialog.close")
        self.hint = f"Nothing is downloaded. /model and the settings ({settings}) change it at any time. {close}: asked again at the next start."
        yield ChoiceList(
            [
                Choice(USE, "Use it", "it picks from the actions, in any language", "1"),
                Choice(MENU, "Only the menu", "what is certain at once, forms for the rest", "2"),
                Choice(
                    SERVICE, "A service with a key", "OpenAI, Anthropic, Gemini and others", "3"
                ),
            ]
        )

    def on_mount(self) -> None:
        self.query_one(ChoiceList).focus()

    def on_virtual_list_chosen(self, event: ChoiceList.Chosen) -> None:
        self.dismiss(event.list.rows[event.index].key)

    def action_pick(self, index: int) -> None:
        self.dismiss(self.query_one(ChoiceList).rows[index].key)
