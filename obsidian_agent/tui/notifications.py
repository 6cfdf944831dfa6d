"""Desktop notifications through the terminal.

OSC 9 is understood by iTerm2, kitty, WezTerm, Ghostty and Windows Terminal, OSC 777 by urxvt and
foot. Other terminals ignore both.
"""

from __future__ import annotations

import os
from typing import Any

from textual.app import App

from obsidian_agent import terminal_text

MAX_CHARACTERS = 200


def announce(app: App[Any], text: str) -> None:
    """Report something that came by itself; on the desktop too if the app has no focus."""
    app.notify(text, markup=False)
    if not app.app_focus and app._driver is not None:
        app._driver.write(desktop_notification(text, os.environ.get("TERM", "")))


def desktop_notification(text: str, terminal: str) -> str:
    """Return the sequence that shows a notification in a terminal, named as in `$TERM`."""
    safe = terminal_text.shortened(text, MAX_CHARACTERS).replace(";", ",")
    if terminal.startswith(("rxvt", "foot")):
        return f"\x1b]777;notify;Obsidian Agent;{safe}\x07"
    return f"\x1b]9;{safe}\x07"
