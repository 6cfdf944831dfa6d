"""A chat app and command line that changes an Obsidian vault by plans you approve and can undo."""

from __future__ import annotations

__version__ = "0.1.0"
