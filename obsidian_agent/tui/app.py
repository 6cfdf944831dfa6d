"""The terminal app. Its first frame is drawn from the screen alone; what it shows is opened behind it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, Final, cast

from textual import events, on, work
from textual.app import App, SystemCommand
from textual.command import DiscoveryHit, Hit, Hits, Provider
from textual.content import Content
from textual.fuzzy import Matcher
from textual.screen import Screen
from textual.signal import Signal
from textual.worker import Worker, WorkerState

from obsidian_agent import terminal_text
from obsidian_agent.dataclass import dataclass
from obsidian_agent.errors import ObsidianAgentError
from obsidian_agent.tui.bindings import bindings, unknown_ids_message
from obsidian_agent.tui.driver import with_hangup_detection
from obsidian_agent.tui.keyboard import Keyboard
from obsidian_agent.tui.screens.main import MainScreen
from obsidian_agent.tui.screens.workspace import Signals
from obsidian_agent.tui.themes import DARK, LIGHT, SHORT, THEMES
from obsidian_agent.tui.widgets.note import OutsideRequested

if TYPE_CHECKING:
    from textual.dom import DOMNode
    from textual.driver import Driver

    from obsidian_agent.agent.privacy.consent import ShareDecision, ShareRequest
    from obsidian_agent.tui.backend import Backend

log = logging.getLogger(__name__)

INTERRUPTED: Final = 130
"""What the app ends with when somebody else ends it."""


@dataclass(frozen=True, slots=True)
class PaletteEntry:
    """A name, a word of explanation, and what it does."""

    name: str
    help: str
    run: Callable[[], object]


class Palette(Provider):
    """Commands of the main screen. Names of saved actions are foreign text: shown as they are, never as markup."""

    async def startup(self) -> None:
        self._commands = list(self._own())
        screen = cast(MainScreen, self.screen)
        for macro in await asyncio.to_thread(screen.session.saved.list):
            what = (
                "Saved action"
                if macro.standing == "trusted"
                else "Saved action, not trusted: shown first"
            )
            self._commands.append(
                PaletteEntry(
                    f"Run Saved Action: {terminal_text.shortened(macro.name, 200)}",
                    what,
                    partial(screen.run_macro, macro.name),
                )
            )

    def _own(self) -> Iterator[PaletteEntry]:
        screen = cast(MainScreen, self.screen)
        app = self.app
        for command in screen.commands():
            if not command.requires_argument:
                yield PaletteEntry(
                    command.title,
                    f"{command.help} · /{command.name}",
                    partial(screen.run_command, command),
                )
        yield PaletteEntry("Theme: dark", "", lambda: setattr(app, "theme", DARK))
        yield PaletteEntry("Theme: light", "", lambda: setattr(app, "theme", LIGHT))
        yield PaletteEntry("Theme: choose…", "All themes", app.action_change_theme)

    async def discover(self) -> Hits:
        for command in self._commands:
            yield DiscoveryHit(
                _shown(Content(command.name), command.help), command.run, command.name
            )

    async def search(self, query: str) -> Hits:
        matcher = self.matcher(query)
        for command in self._commands:
            score = matcher.match(command.name)
            if score > 0:
                yield Hit(
                    score,
                    _shown(_highlighted(matcher, command.name), command.help),
                    command.run,
                    command.name,
                )


def _highlighted(matcher: Matcher, name: str) -> Content:
    """The name with what matched in it. `Matcher.highlight` would read the name as markup."""
    content = Content(name)
    for offset in matcher.fuzzy_search.match(matcher.query, name)[1]:
        content = content.stylize(matcher.match_style, offset, offset + 1)
    return content


def _shown(name: Content, help_text: str) -> Content:
    return Content.assemble(name, (f"  {help_text}" if help_text else "", "$quiet"))


class ObsidianAgentApp(App[None]):
    """One window, one vault."""

    TITLE = "obsidian-agent"
    CSS_PATH = "styles/app.tcss"
    BINDINGS = bindings("app")
    COMMANDS = {Palette}
    COMMAND_PALETTE_DISPLAY = "^p"
    NOTIFICATION_TIMEOUT = 4
    PAUSE_GC_ON_SCROLL = True

    def __init__(
        self, backend: Backend, *, theme: str | None = None, first_start: bool = False
    ) -> None:
        """`theme`: that of the first frame, before the settings are read. `first_start`: who has not chosen a model yet is asked."""
        super().__init__()
        for own in THEMES:
            self.register_theme(own)
        self.backend = backend
        self._signals = Signals(Signal(self, "setting_changed"), Signal(self, "thread_deleted"))
        self._first_start = first_start
        self._asking = asyncio.Lock()
        self.keyboard = Keyboard(self)
        self.open_error: BaseException | None = None
        """Why there was nothing to show; the app has ended then."""
        wanted = _full_name(theme)
        self.theme = wanted if wanted in self.available_themes else DARK

    @property
    def main(self) -> MainScreen:
        """The screen below all others."""
        screen = self.screen_stack[0]
        assert isinstance(screen, MainScreen)
        return screen

    def get_driver_class(self) -> type[Driver]:
        return with_hangup_detection(
            super().get_driver_class(), lambda: self.call_later(self.hang_up)
        )

    def get_default_screen(self) -> Screen[None]:
        return MainScreen(
            self.backend,
            self._signals,
            self.keyboard,
            self.approve_share,
            first_start=self._first_start,
        )

    def on_mount(self) -> None:
        self.screen_change_signal.subscribe(
            self, lambda screen: self.keyboard.screen_changed(), immediate=True
        )
        self._signals.setting_changed.subscribe(self, self._setting_changed)
        self.call_after_refresh(self._open)

    @work(group="opening", exit_on_error=False)
    async def _open(self) -> None:
        """Open what the app shows, and take up the settings."""
        await self.main.panes.complete()
        try:
            await self.backend.open()
        except Exception as error:
            self.open_error = error
            self.exit(return_code=1)
            return
        self._setting_changed("keymap")
        if self.backend.parts.settings.current.theme is not None:
            self._setting_changed("theme")
        self.main.opened()

    def _setting_changed(self, name: str) -> None:
        """What of a setting concerns the whole app."""
        current = self.backend.parts.settings.current
        if name == "theme":
            wanted = _full_name(current.theme)
            if wanted in self.available_themes:
                self.theme = wanted
            else:
                self.notify(
                    "The theme in the settings does not exist; the dark one is used.",
                    severity="warning",
                    markup=False,
                )
        elif name == "keymap":
            self.set_keymap(current.keymap)
            self.main.refresh_keys()
            if problem := unknown_ids_message(current.keymap):
                self.main.say("bad", problem)

    async def on_event(self, event: events.Event) -> None:
        """Keys are looked at before a screen, a pane or a binding gets them."""
        if (
            isinstance(event, events.Key | events.Paste)
            and not event.is_forwarded
            and self.screen_stack
            and self.keyboard.intercept(event)
        ):
            return
        await super().on_event(event)

    async def push_screen_wait(self, screen: Screen[Any] | str, *, mode: str | None = None) -> Any:
        """As Textual's, but never while somebody is typing."""
        if not self.keyboard.has_just_acted:
            await self.keyboard.pause()
        return await super().push_screen_wait(screen, mode=mode)

    def on_app_focus(self) -> None:
        """The window is looked at again: somebody may have worked in the vault with another program."""
        self._looked_at(True)

    def on_app_blur(self) -> None:
        """The person looks elsewhere: what happens in Obsidian is asked when they come back."""
        self._looked_at(False)

    def _looked_at(self, looking: bool) -> None:
        if self.backend.is_open:
            vault = self.backend.parts.session.vault
            vault.set_app_focused(looking)
            if looking:
                vault.refresh_soon()

    def get_theme_variable_defaults(self) -> dict[str, str]:
        """Themes that are not ours lack `quiet`."""
        return {"quiet": "#9c9ca8" if self.current_theme.dark else "#5f5f6b"}

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        """None: `Palette` has all that is offered, and nothing that writes files (Textual's screenshot) or opens a way around a pane."""
        return ()

    async def _broker_event(
        self, event_name: str, event: events.Event, default_namespace: DOMNode
    ) -> bool:
        """Never run an action out of a text's style: text on the screen can come from anywhere."""
        return False

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        """The one place where an error nobody expected becomes visible."""
        if event.state is WorkerState.ERROR and event.worker.error is not None:
            from obsidian_agent.tui.screens.unexpected import Unexpected

            log.error("A worker failed", exc_info=event.worker.error)
            self.push_screen(Unexpected(event.worker.error))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """The palette's commands belong to the main screen."""
        return isinstance(self.screen, MainScreen) if action == "command_palette" else True

    async def approve_share(self, request: ShareRequest, about: str = "") -> ShareDecision:
        """Ask the person whether something may be sent to a model: what an agent loop awaits before it sends anything.

        `about` names the conversation when it is not the one on the screen. Questions are put one after the other.
        """
        from obsidian_agent.tui.screens.share import ask

        async with self._asking:
            await self.keyboard.pause()
            return await ask(self, request, self.backend.parts.session.check_call, about)

    @on(OutsideRequested)
    @work(group="outside", exit_on_error=False)
    async def _outside_requested(self, message: OutsideRequested) -> None:
        """Show a note in Obsidian, where there is one or a desktop that starts it."""
        try:
            await asyncio.to_thread(
                self.backend.parts.session.vault.open_in_obsidian, message.path, message.line
            )
        except ObsidianAgentError as error:
            if self.screen is self.main:
                self.main.hint(
                    f"{error.message} {self.main.key('conversation.open')} shows the note in this app."
                )
            else:
                self.notify(error.message, severity="warning", markup=False)

    def action_help(self) -> None:
        from obsidian_agent.tui.screens.help import Help

        if not isinstance(self.screen, Help):
            self.push_screen(Help())

    def action_copy_or_interrupt(self) -> None:
        self.main.action_cancel()

    async def action_quit(self) -> None:
        if not self.main.stream.is_writing:
            await self._exit_when_written()
            return

        from obsidian_agent.tui.screens.dialogs import Confirm

        text = "A plan is being applied. The run stops after the current file and can be undone; quit then."

        def answered(yes: bool | None) -> None:
            if yes:
                self.main.turn.cancel()
                self.run_worker(self._exit_when_written(), group="quit")

        self.push_screen(Confirm("Quit now?", text, "Stop and quit", "Go on"), answered)

    def hang_up(self) -> None:
        """The terminal is gone, or the system asks for the end; one end may be told three times. A run stops after the current file and can be
        undone; quit then."""
        if self.backend.is_open:
            self.main.turn.cancel()
            self.run_worker(self._exit_when_written(INTERRUPTED), group="quit")
        else:
            self.exit(return_code=INTERRUPTED)

    async def _exit_when_written(self, code: int = 0) -> None:
        """Let the current file and every thread be written, then end."""
        await self.main.stream.wait_until_written()
        if self.backend.is_open:
            await self.backend.parts.threads.close()
        self.exit(return_code=code)


def _full_name(theme: str | None) -> str:
    """The name of a theme that people may write shorter; the dark one for none."""
    return SHORT.get(theme.lower(), theme) if theme else DARK
