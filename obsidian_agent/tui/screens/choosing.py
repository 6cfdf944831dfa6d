"""Who answers and how: the model, the agent of the vault, keys, settings, and what of the vault is trusted."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from obsidian_agent import terminal_text
from obsidian_agent.errors import ObsidianAgentError
from obsidian_agent.tui.themes import SHORT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from obsidian_agent.agent.app_services import AppServices
    from obsidian_agent.config.live import LiveSettings
    from obsidian_agent.providers.local_services import LocalService
    from obsidian_agent.tui.screens.desk import Desk
    from obsidian_agent.tui.screens.informed import Informed
    from obsidian_agent.tui.screens.room import Room
    from obsidian_agent.tui.talk import Talk

DEFAULT = "default"
NOBODY = "none"


class Choosing:
    """`settings` may be missing."""

    def __init__(self, desk: Desk, talk: Talk, room: Room, informed: Informed, settings: LiveSettings | None) -> None:
        self._desk = desk
        self._talk = talk
        self._room = room
        self._informed = informed
        self._settings = settings

    def settings(self) -> None:
        """The settings, to be changed."""
        from obsidian_agent.tui.screens.settings import SettingsScreen

        if self._settings is None:
            self._desk.panes.chat.hint("There are no settings here.")
        else:
            self._desk.app.push_screen(SettingsScreen(self._desk.bridge, self._settings))

    def set(self, rest: str) -> None:
        """A setting by its name, to what follows it, or back to its default."""
        if self._settings is None:
            self._desk.panes.chat.hint("There are no settings here.")
        else:
            name, _, value = rest.partition(" ")
            self._desk.run(partial(self._set, self._settings, name, value.strip()), "settings")

    async def _set(self, settings: LiveSettings, name: str, value: str) -> None:
        from obsidian_agent.tui.messages import SettingChanged
        from obsidian_agent.tui.screens.settings import shown

        now = await self._desk.bridge.call(settings.set, name, value or None)
        self._desk.say("note", f"{terminal_text.line(name)} is {terminal_text.shortened(shown(getattr(now, name)), 200)} now.")
        self._desk.screen.post_message(SettingChanged(name))

    def model(self, name: str) -> None:
        """Another model for this conversation; without a name the person picks one."""
        self._informed.run(partial(self._model, name))

    async def _model(self, name: str, insight: AppServices) -> None:
        from obsidian_agent.tui.screens.pick import Pick

        call = self._desk.bridge.call
        wanted = name
        if not wanted:
            rows = [(DEFAULT, "the one of the settings again"), *await call(insight.known_models)]
            hint = "PROVIDER/NAME, such as openai/gpt-5 or ollama/qwen3. It takes effect with the next message of this conversation."
            picked: str | None = await self._desk.app.push_screen_wait(Pick("Choose a model", rows, hint=hint, free=True))
            wanted = picked or ""
            if wanted.endswith("/"):
                wanted = await self._of_service(wanted, insight)
        if not wanted:
            return
        chosen = None if wanted == DEFAULT else wanted
        await call(insight.choose_model, self._talk.current, chosen)
        self._talk.model = chosen
        self._desk.say(
            "note", f"The next message goes to {terminal_text.shortened(await call(insight.model_of, self._talk.current), 120)}."
        )
        await self._room.refresh()

    async def _of_service(self, vendor: str, insight: AppServices) -> str:
        """A model of one service, from its own list where it gives one."""
        from obsidian_agent.tui.screens.pick import Pick

        self._desk.panes.chat.hint(f"Asking {vendor.rstrip('/')} for its models…")
        try:
            rows, hint = [(name, "") for name in await insight.service_models(vendor.rstrip("/"))], "Type another name if it is not listed."
        except ObsidianAgentError as error:
            rows, hint = [], f"{error.problem().message} Type the name."
        finally:
            self._desk.panes.chat.hint("")
        picked: str | None = await self._desk.app.push_screen_wait(
            Pick("Choose a model", rows, hint=terminal_text.folded(hint, 3), free=True, typed=vendor)
        )
        return picked if picked and not picked.endswith("/") else ""

    async def first(self) -> None:
        """At a first start, when nobody has chosen: offer the model that runs on this machine, or say how it is without one."""
        from obsidian_agent.agent.local_models import first_offer
        from obsidian_agent.tui.screens.first_start import MENU, NO_MODEL, USE, FirstStart

        settings = self._settings
        found = await first_offer(settings) if settings is not None else None
        if settings is None or found is None:
            return
        offer = found.offer
        if offer is None:
            self._desk.panes.chat.tell_without_model(NO_MODEL)
            return
        match await self._desk.app.push_screen_wait(FirstStart(offer)):
            case str(answer) if answer == USE:
                await self._use(settings, offer.spec, found.services)
            case str(answer) if answer == MENU:
                await self._use(settings, "none", found.services)
            case None:
                pass
            case _:
                self._informed.run(partial(self._service, settings))

    async def _use(self, settings: LiveSettings, name: str, found: Sequence[LocalService]) -> None:
        """Choose a model for all conversations, and say so."""
        from obsidian_agent.agent.local_models import use
        from obsidian_agent.tui.messages import SettingChanged

        remarks = await self._desk.bridge.call(use, settings, name, found)
        chosen = settings.chosen
        told = f"{terminal_text.shortened(chosen, 120)} is used from now on." if chosen else "No model is used: F2 has all actions."
        self._desk.say("note", "\n".join([f"{told} /model and the settings (F5) change it.", *remarks]))
        self._desk.screen.post_message(SettingChanged("model"))

    async def _service(self, settings: LiveSettings, insight: AppServices) -> None:
        """A service, its key, and one of its models, for all conversations."""
        from obsidian_agent.tui.screens.pick import Pick

        hint = "Keys are kept in the system's keyring, or where there is none in a file that only you can read; never in a vault."
        rows = await self._desk.bridge.call(insight.key_sources)
        vendor: str | None = await self._desk.app.push_screen_wait(Pick("Which service?", rows, hint=hint))
        if vendor:
            await self._key(vendor, insight)
            model = await self._of_service(f"{vendor}/", insight)
            if model:
                await self._use(settings, model, ())

    def key(self, vendor: str) -> None:
        """The key for a service: into the system's keyring, or where there is none into a file for the person alone."""
        self._informed.run(partial(self._key, vendor))

    async def _key(self, vendor: str, insight: AppServices) -> None:
        from obsidian_agent.tui.screens.pick import Pick
        from obsidian_agent.tui.screens.secret import Secret

        call = self._desk.bridge.call
        wanted: str | None = vendor
        if not wanted:
            hint = "Keys are kept in the system's keyring, or where there is none in a file that only you can read; never in a vault."
            wanted = await self._desk.app.push_screen_wait(Pick("The key of which service?", await call(insight.key_sources), hint=hint))
        if not wanted:
            return
        title = f"The key for {terminal_text.shortened(wanted, 60)}"
        secret = await self._desk.app.push_screen_wait(Secret(title, "Empty forgets the one that is kept."))
        if secret is not None:
            self._desk.say("note", await call(insight.keep_key, wanted, secret))

    def trust(self) -> None:
        """What in the vault wants to tell the agent something."""
        self._informed.run(self._trust)

    async def _trust(self, insight: AppServices) -> None:
        from obsidian_agent.tui.screens.trust import Trust

        self._desk.app.push_screen(Trust(self._desk.bridge, insight.customs))

    def agent(self, name: str) -> None:
        """An agent of the vault for this conversation; without a name the person picks one."""
        self._informed.run(partial(self._agent, name))

    async def _agent(self, name: str, insight: AppServices) -> None:
        from obsidian_agent.tui.screens.pick import Pick

        call, current = self._desk.bridge.call, self._talk.current
        agents = (await call(insight.customs.library)).agents
        wanted: str | None = name
        if not wanted:
            rows = [(NOBODY, "nobody in particular"), *((key, agent.head.description) for key, agent in agents.items())]
            hint = "Only agents that you trust are here; /trust shows all."
            wanted = await self._desk.app.push_screen_wait(Pick("Choose an agent", rows, hint=hint))
        if not wanted:
            return
        if wanted != NOBODY and wanted not in agents:
            self._desk.panes.chat.hint(f"There is no agent {wanted} that you trust. /trust shows what the vault has.")
        elif current is None or self._talk.chats is None:
            self._desk.panes.chat.hint("Say something first: an agent is chosen for a conversation.")
        else:
            await call(self._talk.chats.choose_assistant, current, None if wanted == NOBODY else wanted)
            who = "Nobody in particular answers" if wanted == NOBODY else f"{terminal_text.shortened(wanted, 80)} answers"
            self._desk.say("note", f"{who} from the next message on.")
            await self._room.refresh()

    def apply(self, name: str) -> None:
        """A setting has changed: what of it the screen shows."""
        if self._settings is None:
            return
        current = self._settings.current
        if name == "theme":
            theme = SHORT.get((current.theme or "dark").lower(), current.theme or "")
            if theme in self._desk.app.available_themes:
                self._desk.app.theme = theme
        elif name == "keymap":
            self._desk.app.set_keymap(current.keymap)
        self._room.look()
