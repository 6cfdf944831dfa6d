"""The terminal app. Its first frame is drawn before the vault is open."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, cast

from msgspec import Struct
from textual import events, on, work
from textual.app import App, SystemCommand
from textual.command import DiscoveryHit, Hit, Hits, Provider
from textual.constants import TEXTUAL_ANIMATIONS
from textual.content import Content
from textual.fuzzy import Matcher
from textual.screen import Screen
from textual.signal import Signal
from textual.widgets import Input, TextArea
from textual.worker import Worker, WorkerState

from obsidian_agent import terminal_text
from obsidian_agent.errors import ObsidianAgentError
from obsidian_agent.tui.action_search import Action, ranked
from obsidian_agent.tui.bindings import bindings, unknown_ids_message
from obsidian_agent.tui.driver import with_hangup_detection
from obsidian_agent.tui.keyboard import Keyboard
from obsidian_agent.tui.presence import Presence
from obsidian_agent.tui.screens.main import MainScreen
from obsidian_agent.tui.screens.workspace import Signals
from obsidian_agent.tui.themes import ANSI, DARK, SHORT_NAMES, THEMES, TerminalColors
from obsidian_agent.tui.widgets.diff import LinkChoiceRequested
from obsidian_agent.tui.widgets.note import LinkRequested, OutsideRequested

if TYPE_CHECKING:
    from textual.dom import DOMNode
    from textual.driver import Driver
    from textual.filter import LineFilter

    from obsidian_agent.agent.privacy.consent import ShareDecision, ShareRequest
    from obsidian_agent.tui.backend import Backend

log = logging.getLogger(__name__)

INTERRUPTED: Final = 130
"""Return code after a hangup or a request of the system to end."""

CURSOR_SECONDS: Final = 10.0
"""Seconds without input after which the cursor stops blinking, as in GTK.

A cursor that blinks takes more processor time than everything else in an idle app.
"""


class PaletteEntry(Struct, frozen=True):
    """A command of the palette with an explanation."""

    name: str
    help: str
    run: Callable[[], object]
    is_own: bool = False

    def action(self, key: str) -> Action:
        """Return what the ranking of actions compares."""
        deletes = self.name.startswith("Delete")
        return Action(key, self.name, "", self.help, deletes=deletes, own=self.is_own)


class Palette(Provider):
    """The commands of the main screen and the macros.

    Names of macros are untrusted text and never parsed as markup.
    """

    async def startup(self) -> None:
        self._commands = list(self._builtin_commands())
        screen = cast(MainScreen, self.screen)
        for macro in await asyncio.to_thread(screen.session.saved.list):
            description = "Macro"
            if macro.standing != "trusted":
                description = "Macro, not trusted: you see it before it runs"
            self._commands.append(
                PaletteEntry(
                    f"Run Macro: {terminal_text.shortened(macro.name, 200)}",
                    description,
                    partial(screen.run_macro, macro.name),
                    is_own=True,
                )
            )

    def _builtin_commands(self) -> Iterator[PaletteEntry]:
        screen = cast(MainScreen, self.screen)
        app = self.app
        for command in screen.commands():
            if not command.requires_argument:
                yield PaletteEntry(
                    command.title,
                    f"{command.help} · /{command.name}",
                    partial(screen.run_command, command),
                )
        for name, theme in SHORT_NAMES.items():
            yield PaletteEntry(f"Theme: {name}", "", partial(setattr, app, "theme", theme))
        yield PaletteEntry("Theme: choose…", "All themes", app.action_change_theme)

    async def discover(self) -> Hits:
        for command in self._commands:
            yield DiscoveryHit(
                _with_help(Content(command.name), command.help), command.run, command.name
            )

    async def search(self, query: str) -> Hits:
        """Yield the commands with the words of the query, then those with its letters in order."""
        matcher = self.matcher(query)
        actions = [command.action(str(index)) for index, command in enumerate(self._commands)]
        order = [int(action.key) for action in ranked(query, actions)]
        for index, command in enumerate(self._commands):
            score = min(matcher.match(command.name), 1.0) if index not in order else 0.0
            if index in order:
                score = 2.0 - order.index(index) / len(order)
            if score > 0:
                yield Hit(
                    score,
                    _with_help(_highlighted(matcher, command.name), command.help),
                    command.run,
                    command.name,
                )


def _highlighted(matcher: Matcher, name: str) -> Content:
    """Highlight the matches in a name; `Matcher.highlight` would parse the name as markup."""
    content = Content(name)
    for offset in matcher.fuzzy_search.match(matcher.query, name)[1]:
        content = content.stylize(matcher.match_style, offset, offset + 1)
    return content


def _with_help(name: Content, help_text: str) -> Content:
    if not help_text:
        return name
    return Content.assemble(name, (f"  {help_text}", "$quiet"))


class ObsidianAgentApp(App[None]):
    """The app over one vault."""

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
        """Create the app.

        `theme` is that of the first frame, before the settings are read. With `first_start`, a user
        without a model is asked to choose one.
        """
        super().__init__()
        for builtin in THEMES:
            self.register_theme(builtin)
        self._terminal_colors = TerminalColors(color=not self.no_color)
        self.backend = backend
        self._signals = Signals(Signal(self, "setting_changed"), Signal(self, "thread_deleted"))
        self._first_start = first_start
        self._share_lock = asyncio.Lock()
        self.keyboard = Keyboard(self)
        self.presence = Presence(backend.vault, self._write_to_terminal, self.bell, os.environ)
        self._steady_fields: list[TextArea | Input] = []
        """The fields whose cursor no longer blinks."""
        self._early: list[events.Key | events.Paste] | None = []
        """The keys and pasted texts that came before the first frame; None from then on."""
        self.open_error: BaseException | None = None
        """The reason why the vault could not be opened; the app has ended then."""
        name = _full_theme_name(theme)
        self.theme = name if name in self.available_themes else DARK

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
        self.screen_change_signal.subscribe(self, self._screen_changed, immediate=True)
        self.app_resume_signal.subscribe(self, lambda app: self.presence.start())
        self.app_suspend_signal.subscribe(self, lambda app: self.presence.stop(), immediate=True)
        self.presence.start()
        self._signals.setting_changed.subscribe(self, self._setting_changed)
        self._cursor_timer = self.set_interval(CURSOR_SECONDS, self._stop_blinking)
        self.call_after_refresh(self._open)

    def _screen_changed(self, screen: Screen[Any]) -> None:
        if screen is not self.main and not self.keyboard.has_just_acted:
            self.presence.report("A question waits for you")
        self.keyboard.screen_changed()

    def _write_to_terminal(self, sequence: str) -> None:
        if sequence and self._driver is not None and not self.is_headless:
            self._driver.write(sequence)

    def on_unmount(self) -> None:
        self.presence.stop()

    @work(group="opening", exit_on_error=False)
    async def _open(self) -> None:
        """Open the vault and apply the settings."""
        await self.main.panes.complete()
        early, self._early = self._early or [], None
        for event in early:
            self.post_message(event)
        try:
            await self.backend.open()
        except Exception as error:
            self.open_error = error
            self.exit(return_code=1)
            return
        self._setting_changed("keymap")
        self._setting_changed("animations")
        if self.backend.parts.settings.current.theme is not None:
            self._setting_changed("theme")
        self.main.opened()

    def _setting_changed(self, name: str) -> None:
        """Apply a changed setting that affects the whole app."""
        current = self.backend.parts.settings.current
        if name == "theme":
            theme = _full_theme_name(current.theme)
            if theme in self.available_themes:
                self.theme = theme
            else:
                self.notify(
                    "The theme in the settings does not exist, so the dark theme is used.",
                    severity="warning",
                    markup=False,
                )
        elif name == "animations":
            self.animation_level = TEXTUAL_ANIMATIONS if current.animations else "none"
        elif name == "keymap":
            self.set_keymap(current.keymap)
            self.main.refresh_keys()
            if problem := unknown_ids_message(current.keymap):
                self.main.add_entry("bad", problem)

    async def on_event(self, event: events.Event) -> None:
        """Pass keys and pasted text through `Keyboard` before any screen or widget."""
        if self._early is None and isinstance(event, events.InputEvent | events.Paste):
            self._blink()
        if isinstance(event, events.Key | events.Paste) and not event.is_forwarded:
            if self._early is not None:
                self._early.append(event)
                return
            if self.screen_stack and self.keyboard.intercept(event):
                return
        await super().on_event(event)

    def _stop_blinking(self) -> None:
        field = self.focused if self.screen_stack else None
        if isinstance(field, TextArea | Input) and field.cursor_blink:
            field.cursor_blink = False
            self._steady_fields.append(field)

    def _blink(self) -> None:
        """Let the cursor blink, until there was no input for some time."""
        self._cursor_timer.reset()
        while self._steady_fields:
            self._steady_fields.pop().cursor_blink = True

    async def push_screen_wait(self, screen: Screen[Any] | str, *, mode: str | None = None) -> Any:
        """Push a screen and wait for its result, but not while the user is typing."""
        if not self.keyboard.has_just_acted:
            await self.keyboard.pause()
        return await super().push_screen_wait(screen, mode=mode)

    def on_app_focus(self) -> None:
        """Look for changes that other programs have made in the vault meanwhile."""
        self._set_app_focus(True)

    def on_app_blur(self) -> None:
        """Stop asking Obsidian for its focus until the app has the focus again."""
        self._set_app_focus(False)

    def _set_app_focus(self, has_focus: bool) -> None:
        self.presence.set_focus(has_focus)
        if self.backend.is_open:
            vault = self.backend.parts.session.vault
            vault.set_app_focused(has_focus)
            if has_focus:
                vault.refresh_soon()

    def get_theme_variable_defaults(self) -> dict[str, str]:
        """Return `quiet`, which only the themes of this app define."""
        theme = self.current_theme
        if theme.ansi:
            return {"quiet": "ansi_bright_black"}
        return {"quiet": "#9c9ca8" if theme.dark else "#5f5f6b"}

    def validate_theme(self, theme: str) -> str:
        """Return the theme, or with NO_COLOR the one that can do without colors."""
        return ANSI if self.no_color else theme

    def get_line_filters(self) -> Sequence[LineFilter]:
        if self.current_theme.ansi:
            return [self._terminal_colors]
        return super().get_line_filters()

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        """Return no commands.

        `Palette` has all of them. Those of Textual would write files (screenshot) or bypass a pane.
        """
        return ()

    async def _broker_event(
        self, event_name: str, event: events.Event, default_namespace: DOMNode
    ) -> bool:
        """Run no action from the style of a text, as text on the screen may be untrusted."""
        return False

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        """Show the report of an unexpected error in a worker."""
        if event.state is WorkerState.ERROR and event.worker.error is not None:
            from obsidian_agent.tui.screens.unexpected import Unexpected

            log.error("A worker failed", exc_info=event.worker.error)
            self.push_screen(Unexpected(event.worker.error))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Enable the command palette on the main screen only."""
        return isinstance(self.screen, MainScreen) if action == "command_palette" else True

    async def approve_share(self, request: ShareRequest, about: str = "") -> ShareDecision:
        """Ask the user whether notes may be sent to a model.

        Agent loops await this before they send anything. `about` names the conversation when it is
        not the one on the screen. Only one question is on the screen at a time.
        """
        from obsidian_agent.tui.screens.share import ask

        async with self._share_lock:
            await self.keyboard.pause()
            return await ask(self, request, self.backend.parts.session.check_call, about)

    @on(MainScreen.Waiting)
    def _waiting(self, message: MainScreen.Waiting) -> None:
        self.presence.report(message.text)

    @on(LinkRequested)
    def _link_requested(self, message: LinkRequested) -> None:
        """Follow a link of the main screen, or of a diff over it, which is closed."""
        if self.screen is not self.main:
            self.screen.dismiss(None)
        self.main.follow_link(message)

    @on(LinkChoiceRequested)
    def _link_choice_requested(self, message: LinkChoiceRequested) -> None:
        from obsidian_agent.tui.screens.dialogs import Pick

        def chosen(target: str | None) -> None:
            if target is not None:
                self._link_requested(LinkRequested(target))

        rows = [(target, "") for target in message.targets]
        self.push_screen(Pick("Links of this diff", rows), chosen)

    @on(OutsideRequested)
    @work(group="outside", exit_on_error=False)
    async def _outside_requested(self, message: OutsideRequested) -> None:
        """Open a note in a running Obsidian, or start Obsidian with it."""
        try:
            await asyncio.to_thread(
                self.backend.parts.session.vault.open_in_obsidian, message.path, message.line
            )
        except ObsidianAgentError as error:
            if self.screen is self.main:
                self.main.show_hint(
                    f"{error.message} "
                    f"{self.main.key('conversation.open')} shows the note in this app."
                )
            else:
                self.notify(error.message, severity="warning", markup=False)

    def action_help(self) -> None:
        from obsidian_agent.tui.screens.help import Help, focused_keys

        if not isinstance(self.screen, Help):
            self.push_screen(Help(focused_keys(self.focused or self.screen)))

    def action_copy_or_interrupt(self) -> None:
        self.main.action_cancel()

    async def action_quit(self) -> None:
        if not self.main.stream.is_writing:
            await self._exit_when_written()
            return

        from obsidian_agent.tui.screens.dialogs import Confirm

        text = (
            "A plan is being applied. The run stops after the current file, "
            "and you can undo it later."
        )

        def on_answer(yes: bool | None) -> None:
            if yes:
                self.main.turn.cancel()
                self._exit_soon()

        self.push_screen(Confirm("Quit now?", text, "Stop and quit", "Keep running"), on_answer)

    def hang_up(self) -> None:
        """Quit because the terminal is gone or the system asks for it; may be called repeatedly.

        A run stops after the current file and can be undone.
        """
        if self.backend.is_open:
            self.main.turn.cancel()
            self._exit_soon(INTERRUPTED)
        else:
            self.exit(return_code=INTERRUPTED)

    def _exit_soon(self, code: int = 0) -> None:
        exit_when_written = partial(self._exit_when_written, code)
        _: Worker[None] = self.run_worker(exit_when_written, group="quit")

    async def _exit_when_written(self, code: int = 0) -> None:
        """Quit once the current file and all conversations are written."""
        await self.main.stream.wait_until_written()
        if self.backend.is_open:
            await self.backend.parts.threads.close()
        self.exit(return_code=code)


def _full_theme_name(theme: str | None) -> str:
    """Return the registered name of a theme from the settings, the dark theme by default."""
    if not theme:
        return DARK
    return SHORT_NAMES.get(theme.lower(), theme)
