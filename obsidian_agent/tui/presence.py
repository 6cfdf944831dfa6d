"""The title of the terminal's window, and signals to a user who looks at another window."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from obsidian_agent import terminal_text

_OSC_9: Final = ("iTerm.app", "WezTerm", "ghostty")
"""Values of TERM_PROGRAM in terminals that show a notification for OSC 9."""
_OSC_777: Final = ("foot", "rxvt")
"""Prefixes of TERM in terminals that show a notification for OSC 777."""

SAVE_TITLE: Final = "\x1b[22;2t"
RESTORE_TITLE: Final = "\x1b[23;2t"
"""The sequences of xterm; others ignore them."""

MAX_TITLE: Final = 120


class Presence:
    """The window title, the bell and notifications, for a user who looks at another window."""

    def __init__(
        self,
        name: str,
        write: Callable[[str], object],
        bell: Callable[[], object],
        environment: Mapping[str, str],
    ) -> None:
        self._name = terminal_text.shortened(name, 60)
        self._write = write
        self._bell = bell
        self._environment = environment
        self._has_focus = True
        self._waiting = ""

    def start(self) -> None:
        """Set the title of the window."""
        self._write(SAVE_TITLE)
        self._set_title()

    def stop(self) -> None:
        """Restore the title of the window."""
        self._write(RESTORE_TITLE)

    def set_focus(self, has_focus: bool) -> None:
        """Record whether the window has the focus. When it gets it, the title is reset."""
        self._has_focus = has_focus
        if has_focus and self._waiting:
            self._waiting = ""
            self._set_title()

    def report(self, text: str) -> None:
        """Ring the bell, change the title and notify, unless the window has the focus."""
        if self._has_focus or text == self._waiting:
            return
        self._waiting = text
        self._bell()
        self._set_title()
        self._write(notification(self._name, text, self._environment))

    def _set_title(self) -> None:
        title = f"{self._name} – obsidian-agent"
        if self._waiting:
            title = f"● {self._waiting} – {self._name}"
        self._write(f"\x1b]2;{terminal_text.shortened(title, MAX_TITLE)}\x07")


def notification(title: str, text: str, environment: Mapping[str, str]) -> str:
    """Return the sequence that shows a notification, or "" for a terminal that has none.

    Inside tmux and screen there is none, as they swallow or print it.
    """
    title, text = terminal_text.line(title), terminal_text.line(text)
    term = environment.get("TERM", "")
    if "TMUX" in environment or term.startswith("screen"):
        return ""
    if environment.get("TERM_PROGRAM") in _OSC_9 or "KITTY_WINDOW_ID" in environment:
        return f"\x1b]9;{title}: {text}\x07"
    if term.startswith(_OSC_777):
        return f"\x1b]777;notify;{title.replace(';', ',')};{text.replace(';', ',')}\x07"
    return ""
