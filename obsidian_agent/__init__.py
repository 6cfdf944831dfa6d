"""obsidian-agent: say what should change in an Obsidian vault, see every byte of it, approve it with one key, undo it."""

from __future__ import annotations

__version__ = "0.1.0"
