"""A filter for all keys that separates typed text from answers to a dialog or pane.

Text that the user is typing must never answer a question that has just appeared. A key therefore
answers only after the question has been on the screen for a moment without any key: for a short one
if it is the plan that the last key asked for, so that nothing is being typed. Until then,
letters continue the text that is being typed; without such a text, a key that would answer is
ignored with a notice. This applies to every screen and pane that appears by itself, without code of
their own. A screen that a key has opened directly (F3, the history) is not such a question.

A letter that is the key of a pane waits for a moment: if another one follows, both begin a message.
Otherwise “actually, …” would approve a plan. If it has opened a screen already and text follows at
the speed of typing, the screen closes and all of it begins a message.

Other keys than letters answer a screen that only leads to a preview (`ONLY_PREVIEWS`) at once.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

from textual import events
from textual.widgets import Input, TextArea

from obsidian_agent.tui.bindings import current_keys, format_keys
from obsidian_agent.tui.widgets.panes import Panes
from obsidian_agent.tui.widgets.prompt import Prompt

if TYPE_CHECKING:
    from textual.app import App
    from textual.screen import Screen

PAUSE = 0.7
"""Seconds without a key after which keys may answer and a question may appear."""

READING = 0.3
"""Seconds for a plan that the last key asked for. No one reads and reacts faster."""

AWAITED_SECONDS = 2.0
"""Seconds after that key in which the user still waits for it."""

SAME_KEY_SECONDS = 0.25
"""Seconds after a key in which a new screen counts as opened by it."""

HOLD = 0.5
"""Seconds for which the letter of a pane waits for another one, the time of slow typing.

After 0.3 s the first letter of a sentence approved a plan, at 34 words a minute.
"""

TYPING = 0.6
"""Seconds between two letters of a word; the first one may be the key of a pane, too."""

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
"""Keys that never answer: they move, or close without an answer."""

_MOVING_LETTERS = ("list.", "diff.", "note.next", "note.previous")
"""The beginnings of the ids of letters that only move, often quickly. They never wait."""

_LEAVES_OUT = "plan.toggle"
"""The id of the key that leaves a part out of a plan, several times in a row."""

_EDITING = frozenset({"backspace", "delete", "ctrl+j", "shift+enter"})

NOTICE_SECONDS = 2.0
"""Seconds for which a notice about an ignored key stays; meanwhile no other appears."""

Activity = Literal["typing", "deciding", "waiting"]
Field = TextArea | Input


def _text(field: Field) -> str:
    return field.text if isinstance(field, TextArea) else field.value


def age(event: events.Event) -> float:
    """Return the seconds that an event has waited to be handled."""
    return max(0.0, time.monotonic() - event.time)


class Keyboard:
    """Tracks what the user does with keys: types, runs commands, or waits for a response."""

    def __init__(self, app: App[None], *, clock: Callable[[], float] = time.monotonic) -> None:
        self._app = app
        self.clock, self.age = clock, age
        self.hold = HOLD
        self._activity: Activity = "waiting"
        self._last = -PAUSE
        """The time of the last key."""
        self._quiet_until = 0.0
        """The time from which keys answer the question that is on the screen."""
        self._has_asked = False
        """True if the last key was a command: neither text, nor ignored, nor one that moves."""
        self._noticed = -NOTICE_SECONDS
        """The time of the last notice about an ignored key."""
        self._field: Field | None = None
        """The field that was typed into last."""
        self._letter: events.Key | None = None
        """The last key, if it was a letter that a pane has used: it may begin a message."""
        self._held: events.Key | None = None
        """The letter that waits for another one."""
        self._held_times = 0
        self._released: events.Key | None = None
        """The letter that has waited, on its way to its pane."""
        self._begun: list[events.Key] = []
        """The letter of a pane that may have opened a screen, and those typed since."""
        self._begun_until = 0.0
        """The time until which text that follows goes with them into the message."""

    # --- events of the screen ---------------------------------------------------------------------

    def mark_appeared(self) -> None:
        """Note that something which keys can answer has appeared by itself."""
        self._quiet_until = self.clock() + PAUSE

    def mark_work_appeared(self) -> None:
        """Note that a plan or result has appeared."""
        waited = self.clock() - self._last
        is_plan = self._panes.work.stage == "plan"
        is_awaited = is_plan and self._has_asked and waited < AWAITED_SECONDS
        self._quiet_until = self.clock() + (READING if is_awaited else PAUSE)

    def screen_changed(self) -> None:
        """Note that another screen is on top, unless the last key has opened or closed it."""
        if not self.has_just_acted:
            self.mark_appeared()

    def mark_sent(self) -> None:
        """Note that the last key sent a message, so the next screen appears by itself."""
        if self._activity == "deciding":
            self._activity = "waiting"

    def mark_action(self) -> None:
        """Note that the last key ran a command, so a screen that opens now was requested."""
        self._activity, self._last = "deciding", self.clock()

    async def pause(self) -> None:
        """Wait until the user stops typing and a question may appear."""
        while self._activity != "waiting" and (rest := self._pause_left()) > 0:  # noqa: ASYNC110
            await asyncio.sleep(rest)

    def _pause_left(self) -> float:
        return PAUSE - (self.clock() - self._last)

    @property
    def has_just_acted(self) -> bool:
        """True if a screen that opens now was requested by the last key."""
        return self._activity == "deciding" and self.clock() - self._last < SAME_KEY_SECONDS

    # --- keys -------------------------------------------------------------------------------------

    def intercept(self, event: events.Key | events.Paste) -> bool:
        """Handle a key or pasted text that must not reach its target.

        Return True if it was ignored, or added to the text that the user is typing.
        """
        is_released = event is self._released
        if self._held is not None and not is_released:
            self._continue_held(self._held, event)
            return True
        now = self.clock() - (0.0 if is_released else self.age(event))
        field = self._focused_field()
        on_main = self._app.screen is self._app.screen_stack[0]
        is_still_typing = field is None and self._activity == "typing" and now - self._last < PAUSE
        is_new_question = now < self._quiet_until and not (on_main and field is not None)
        if is_new_question and self._only_previews(event):
            is_new_question = False
        if self._continues_begun(event, now, field):
            return True
        if isinstance(event, events.Paste):
            if field is None or is_new_question:
                self._write(event)
                return True
            return False
        if field is not None and on_main and self._is_too_early(event, now):
            self._ignore(event, now)
            return True
        if (is_still_typing or is_new_question) and self._answers(event):
            if self._is_text(event, is_still_typing=is_still_typing):
                self._write(event)
                self._last = now
                self._quiet_until = now + PAUSE
            else:
                self._ignore(event, now)
            return True
        if on_main and field is None and not is_released and self._may_begin_message(event):
            self._hold_back(event)
            self._begun_until = now + PAUSE
            return True
        self._released = None
        if on_main and field is None and event.is_printable:
            letter, self._letter = self._letter, event
            if not self._is_bound(event):
                if letter is not None and now - self._last < TYPING:
                    self._write(letter)
                self._letter = None
                self._write(event)
                self._last = now
                return True
        else:
            self._letter = None
        if field is not None and (event.is_printable or event.key in _EDITING):
            self._activity, self._field = "typing", field
            self._has_asked = False
        else:
            self._activity = "deciding"
            self._has_asked = event.key not in _MOVING
        self._last = now
        if is_released:
            self._begun = [event]
        return False

    def _only_previews(self, event: events.Key | events.Paste) -> bool:
        """Return True for a key that is no text, in a screen that the last key asked for.

        So does the key that leaves a part out of a plan.
        """
        bound = self._app.screen.active_bindings.get(getattr(event, "key", ""))
        if bound is not None and bound.binding.id == _LEAVES_OUT:
            return True
        return (
            self._has_asked
            and isinstance(event, events.Key)
            and not (event.character or "").isalpha()
            and self._is_bound(event)
            and bool(getattr(self._app.screen, "ONLY_PREVIEWS", False))
        )

    def _continues_begun(
        self, event: events.Key | events.Paste, now: float, field: Field | None
    ) -> bool:
        """Begin a message with the letter that opened a screen, and close that, if text follows.

        Letters that are keys of the screen may act before it is clear that they are text.
        """
        begun, self._begun = self._begun, []
        if not begun or not isinstance(event, events.Key) or not event.is_printable:
            return False
        if now >= self._begun_until:
            return False
        screen, is_key = self._app.screen, field is None and self._is_bound(event)
        if is_key or (self._is_on_main and (len(begun) == 1 or field is not None)):
            self._begun = [] if self._is_on_main else [*begun, event]
            self._begun_until = now + PAUSE
            return False
        self._activity, self._field = "typing", None
        for letter in (*begun, event):
            self._write(letter, quietly=True)
        if screen is not self._main:
            self._panes.go("chat")
            self._app.call_later(self._app.run_action, "close", screen)
        self._last, self._quiet_until = now, now + PAUSE
        return True

    def _may_begin_message(self, event: events.Key) -> bool:
        """Return True for a letter that does more in its pane than to move."""
        bound = self._app.screen.active_bindings.get(event.key)
        if not self.hold or bound is None or not (event.character or "").isalpha():
            return False
        return not (bound.binding.id or "").startswith(_MOVING_LETTERS)

    def _hold_back(self, event: events.Key) -> None:
        self._held, self._held_times = event, 1
        self._app.set_timer(self.hold, lambda: self._release(event))

    def _release(self, event: events.Key) -> None:
        """Let a letter act that no other has followed."""
        if event is self._held:
            self._held, self._released = None, event
            self._app.post_message(event)

    def _continue_held(self, held: events.Key, event: events.Key | events.Paste) -> None:
        """Begin a message with the letter that waits, or let it act before another key."""
        if isinstance(event, events.Key) and event.key == held.key:
            self._held_times += 1  # pressed twice, or for long; “aardvark” is rare
        elif isinstance(event, events.Paste) or event.is_printable or event.key == "backspace":
            self._held = None
            for _ in range(self._held_times):
                self._write(held)
            self._write(event)
            self._last = self.clock()
        else:
            self._release(held)
            self._app.post_message(event)

    def _focused_field(self) -> Field | None:
        focused = self._app.focused
        if isinstance(focused, Input) or (isinstance(focused, TextArea) and not focused.read_only):
            return focused
        return None

    def _is_bound(self, event: events.Key) -> bool:
        return event.key in self._app.screen.active_bindings

    def _answers(self, event: events.Key) -> bool:
        """Return True if the key may answer; those of the app and the main screen only navigate."""
        bound = self._app.screen.active_bindings.get(event.key)
        if event.key == "escape" and bound is not None and self._app.screen is self._main:
            return self._panes.closes_with_escape(bound.node)
        if event.key in _MOVING:
            return False
        if bound is not None:
            return bound.node is not self._app and bound.node is not self._app.screen_stack[0]
        return event.is_printable or event.key in ("enter", "backspace", "delete")

    def _is_too_early(self, event: events.Key, now: float) -> bool:
        """Return True if a key in an empty message was meant for a plan or result too new to judge.

        Either it has just appeared, or its preview is incomplete.
        """
        panes = self._panes
        return (
            event.is_printable
            and panes.work.binds(event.key)
            and not (self._activity == "typing" and now - self._last < PAUSE)
            and (now < self._quiet_until or panes.work.plan.is_growing)
            and not self._main.query_one(Prompt).text
        )

    def _is_text(self, event: events.Key, *, is_still_typing: bool) -> bool:
        """Return True if a key that may not answer yet belongs to a text."""
        if self._sends(event):
            # Typed right after letters, before the message has the focus.
            return is_still_typing and isinstance(self._target(), Prompt) and self._is_on_main
        if not self._is_bound(event):
            return event.is_printable or event.key == "backspace"
        return self._activity != "deciding" and (is_still_typing or bool(_text(self._target())))

    def _sends(self, event: events.Key) -> bool:
        return event.key in current_keys(self._app, "prompt.send").split(",")

    def _ignore(self, event: events.Key, now: float) -> None:
        self._last = now
        self._quiet_until = now + PAUSE
        self._has_asked = False
        if now - self._noticed >= NOTICE_SECONDS and not self._has_errors:
            self._noticed = now
            key = format_keys(event.key)
            self._app.notify(
                f"“{key}” came too soon and was ignored. Read first, then press {key} again.",
                timeout=NOTICE_SECONDS,
                markup=False,
            )

    @property
    def _has_errors(self) -> bool:
        """True if the plan on the screen cannot be approved anyway; a notice would cover why."""
        preview = self._panes.work.plan.preview
        is_shown = self._is_on_main and self._panes.work.stage == "plan"
        return is_shown and preview is not None and not preview.valid

    @property
    def _is_on_main(self) -> bool:
        return self._app.screen is self._main

    @property
    def _main(self) -> Screen[Any]:
        return self._app.screen_stack[0]

    @property
    def _panes(self) -> Panes:
        return self._main.query_one(Panes)

    # --- the message ------------------------------------------------------------------------------

    def _target(self) -> Field:
        """Return the field that was typed into last, by default the message.

        After a key that was a command, no text is being typed that letters could continue. Then
        they belong to the field of the screen, such as a form that was slow to open.
        """
        focused = self._focused_field()
        if focused is not None and self._activity == "deciding":
            return focused
        field = self._field
        if field is None or not field.is_attached or field.screen not in self._app.screen_stack:
            return self._main.query_one(Prompt)
        return field

    def _write(self, event: events.Key | events.Paste, *, quietly: bool = False) -> None:
        """Append to the target field, after the keys that are still queued for it."""
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
            case events.Key() if self._sends(event) and isinstance(field, Prompt):
                field.call_next(field.action_send)
            case _:
                return
        self._activity, self._field, self._has_asked = "typing", field, False
        if self._app.screen is main:
            main.query_one(Panes).go("chat")
        elif field.screen is not self._app.screen and not quietly:
            self._app.notify(
                "Your typing went into the message. Pause a moment, then answer.",
                timeout=2,
                markup=False,
            )
