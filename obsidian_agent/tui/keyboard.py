"""Whether a key is a letter of what somebody is typing or an answer to what is on the screen. Every key comes by here first.

What a person types is never an answer. So a key answers a question only when it was on the screen for a moment in which no key came.
Until then letters go on to the text that is being typed; where none is, a key that would answer is ignored, and a notice says so. It
holds for every screen and pane, without their doing: whatever comes onto the screen by itself is such a question. What a key opened at
once (F3, the history) is none.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

from textual import events
from textual.widgets import Input, TextArea

from obsidian_agent.tui.bindings import format_keys
from obsidian_agent.tui.widgets.panes import Panes
from obsidian_agent.tui.widgets.prompt import Prompt

if TYPE_CHECKING:
    from textual.app import App
    from textual.screen import Screen

PAUSE = 0.7
"""Seconds without a key after which a key may be an answer, and a question may come onto the screen."""

AT_ONCE = 0.25
"""Seconds after a key in which a screen that opens was opened by it."""

_MOVING = frozenset(
    {
        "escape",
        "up",
        "down",
        "left",
        "right",
        "pageup",
        "pagedown",
        "home",
        "end",
        "tab",
        "shift+tab",
    }
)
"""Keys that answer nothing: they move, or leave without an answer."""

_EDITING = frozenset({"backspace", "delete", "ctrl+j", "shift+enter"})

NOTICE_SECONDS = 2.0
"""Seconds for which a notice about a key stays; no second one comes meanwhile."""

Doing = Literal["typing", "deciding", "waiting"]
Field = TextArea | Input


def _text(field: Field) -> str:
    return field.text if isinstance(field, TextArea) else field.value


def age(event: events.Event) -> float:
    """Seconds for which an event has waited to be handled."""
    return max(0.0, time.monotonic() - event.time)


class Keyboard:
    """What the person does with the keys: types text, uses keys that do something, or waits for what a message brings."""

    def __init__(self, app: App[None], *, clock: Callable[[], float] = time.monotonic) -> None:
        self._app = app
        self.clock, self.age = clock, age
        self._doing: Doing = "waiting"
        self._last = -PAUSE
        """When the last key came."""
        self._quiet_from = -PAUSE
        """When a question appeared last, or a key was ignored because of one."""
        self._noticed = -NOTICE_SECONDS
        """When a notice about an ignored key was shown last."""
        self._field: Field | None = None
        """Where was typed last."""

    # --- what happens on the screen -------------------------------------------------------------------------------------------

    def mark_appeared(self) -> None:
        """Something that keys answer came onto the screen, by itself."""
        self._quiet_from = self.clock()

    def screen_changed(self) -> None:
        """Another screen is on top; what a key opened or closed just now counts as asked for."""
        if not self.has_just_acted:
            self.mark_appeared()

    def mark_sent(self) -> None:
        """The last key sent a message: nobody is typing, and what comes next comes by itself."""
        if self._doing == "deciding":
            self._doing = "waiting"

    def mark_action(self) -> None:
        """The last key did something: what opens now is what it asked for."""
        self._doing, self._last = "deciding", self.clock()

    async def pause(self) -> None:
        """Wait until no keys are coming: then a question may come onto the screen."""
        while self._doing != "waiting" and (rest := PAUSE - (self.clock() - self._last)) > 0:  # noqa: ASYNC110
            await asyncio.sleep(rest)

    @property
    def has_just_acted(self) -> bool:
        """Whether a screen that opens now was asked for by the last key."""
        return self._doing == "deciding" and self.clock() - self._last < AT_ONCE

    # --- keys -----------------------------------------------------------------------------------------------------------------

    def intercept(self, event: events.Key | events.Paste) -> bool:
        """Look at what was typed before anybody gets it. True: it was typed on, or its letters went to the message; nobody else gets it."""
        now = self.clock() - self.age(event)
        field = self._focused_field()
        on_main = self._app.screen is self._app.screen_stack[0]
        typing_on = field is None and self._doing == "typing" and now - self._last < PAUSE
        asked = now - self._quiet_from < PAUSE and not (on_main and field is not None)
        if isinstance(event, events.Paste):
            if field is None or asked:
                self._write(event)
                return True
            return False
        if field is not None and on_main and self._is_too_early(event, now):
            self._ignore(event, now)
            return True
        if (typing_on or asked) and self._answers(event):
            if self._is_text(event, typing_on=typing_on):
                self._write(event)
                self._quiet_from = self._last = now
            else:
                self._ignore(event, now)
            return True
        if on_main and field is None and event.is_printable and not self._is_bound(event):
            self._write(event)
            self._last = now
            return True
        if field is not None and (event.is_printable or event.key in _EDITING):
            self._doing, self._field = "typing", field
        else:
            self._doing = "deciding"
        self._last = now
        return False

    def _focused_field(self) -> Field | None:
        focused = self._app.focused
        if isinstance(focused, Input) or (isinstance(focused, TextArea) and not focused.read_only):
            return focused
        return None

    def _is_bound(self, event: events.Key) -> bool:
        return event.key in self._app.screen.active_bindings

    def _answers(self, event: events.Key) -> bool:
        """Whether the key may do something to what is on the screen. Keys of the app and the main screen only go elsewhere."""
        bound = self._app.screen.active_bindings.get(event.key)
        if event.key == "escape" and bound is not None and self._app.screen is self._main:
            return self._panes.closes_with_escape(bound.node)
        if event.key in _MOVING:
            return False
        if bound is not None:
            return bound.node is not self._app and bound.node is not self._app.screen_stack[0]
        return event.is_printable or event.key in ("enter", "backspace", "delete")

    def _is_too_early(self, event: events.Key, now: float) -> bool:
        """Return True if a key in an empty message means the plan or result that has just appeared, or is incomplete."""
        panes = self._panes
        return (
            event.is_printable
            and panes.work.binds(event.key)
            and not (self._doing == "typing" and now - self._last < PAUSE)
            and (now - self._quiet_from < PAUSE or panes.work.plan.is_growing)
            and not self._main.query_one(Prompt).text
        )

    def _is_text(self, event: events.Key, *, typing_on: bool) -> bool:
        """Return True if a key that answers nothing yet belongs to a text."""
        if not self._is_bound(event):
            return event.is_printable or event.key == "backspace"
        return self._doing != "deciding" and (typing_on or bool(_text(self._target())))

    def _ignore(self, event: events.Key, now: float) -> None:
        self._quiet_from = self._last = now
        if now - self._noticed >= NOTICE_SECONDS:
            self._noticed = now
            key = format_keys(event.key).replace("Escape", "Esc")
            self._app.notify(
                f"“{key}” came too early and did nothing. Look first, then press {key} again.",
                timeout=NOTICE_SECONDS,
                markup=False,
            )

    @property
    def _main(self) -> Screen[Any]:
        return self._app.screen_stack[0]

    @property
    def _panes(self) -> Panes:
        return self._main.query_one(Panes)

    # --- the message ----------------------------------------------------------------------------------------------------------

    def _target(self) -> Field:
        """The field that was typed into last, else the message."""
        field = self._field
        if field is None or not field.is_attached or field.screen not in self._app.screen_stack:
            return self._main.query_one(Prompt)
        return field

    def _write(self, event: events.Key | events.Paste) -> None:
        """Append to the field that was typed into last, else to the message, behind the keys still on their way there."""
        main, field = self._main, self._target()
        match event:
            case events.Paste():
                field._forward_event(event)
            case events.Key(character=str(character)) if event.is_printable:
                field.call_next(
                    field.insert if isinstance(field, TextArea) else field.insert_text_at_cursor,
                    character,
                )
            case events.Key(key="backspace"):
                field.call_next(field.action_delete_left)
            case _:
                return
        self._doing, self._field = "typing", field
        if self._app.screen is main:
            main.query_one(Panes).go("chat")
        elif field.screen is not self._app.screen:
            self._app.notify(
                "That was typed into the message. Pause a moment, then answer.",
                timeout=2,
                markup=False,
            )
