"""Dates and priorities in the lines of tasks, as the plugin Tasks writes them (📅 2026-03-14) or Dataview ([due:: 2026-03-14])."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Final, Literal

from obsidian_agent.errors import VaultError
from obsidian_agent.tools.base import ToolContext
from obsidian_agent.tools.notes import read_text
from obsidian_agent.vault import markdown
from obsidian_agent.vault.paths import VaultPath

Style = Literal["emoji", "field"]
Priority = Literal["highest", "high", "medium", "low", "lowest"]

DUE: Final = re.compile(r"(?:📅|📆|🗓)\ufe0f?\s*(\d{4}-\d{2}-\d{2})|[\[(]due::\s*(\d{4}-\d{2}-\d{2})\s*[\])]|@due\((\d{4}-\d{2}-\d{2})\)")
_DONE: Final = re.compile(r"\s*(?:✅\ufe0f?\s*\d{4}-\d{2}-\d{2}|[\[(]completion::\s*\d{4}-\d{2}-\d{2}\s*[\])])")
_EMOJI: Final = re.compile(r"[📅📆🗓⏳⌛🛫➕✅🔁🔺⏫🔼🔽⏬]")
_FIELD: Final = re.compile(r"[\[(](?:due|completion|scheduled|start|created|priority|repeat)::")
_RECURRING: Final = re.compile(r"🔁|[\[(]repeat::")
_BLOCK_ID: Final = re.compile(r"[ \t]+\^[A-Za-z0-9-]+$")
_PRIORITIES: Final[Mapping[str, str]] = {"highest": "🔺", "high": "⏫", "medium": "🔼", "low": "🔽", "lowest": "⏬"}
_NEIGHBOURS: Final = 50
"""Notes of the same folder that are looked at where a note itself tells nothing."""


def recurs(line: str) -> bool:
    """Whether a task comes again when it is done."""
    return _RECURRING.search(line) is not None


def with_done(line: str, day: str, style: Style) -> str:
    """The line of a task (without line end) with the day on which it was done; one that is there stays."""
    return line if _DONE.search(line) else _added(line, f"✅ {day}" if style == "emoji" else f"[completion:: {day}]")


def without_done(line: str) -> str:
    """The line without the day on which it was done."""
    return _DONE.sub("", line)


def with_due(line: str, day: str, style: Style) -> str:
    """The line of a task with this due date, in the place and form of the one that is there."""
    found = DUE.search(line)
    if found is None:
        return _added(line, f"📅 {day}" if style == "emoji" else f"[due:: {day}]")
    number = next(number for number, group in enumerate(found.groups(), 1) if group)
    return line[: found.start(number)] + day + line[found.end(number) :]


def dressed(text: str, style: Style, *, priority: Priority | None = None, due: str | None = None) -> str:
    """The text of a new task with its priority and due date."""
    if priority is not None:
        text = _added(text, _PRIORITIES[priority] if style == "emoji" else f"[priority:: {priority}]")
    return text if due is None else with_due(text, due, style)


def style_of(text: str, path: VaultPath, ctx: ToolContext) -> Style:
    """How a note's tasks have their dates: most of its own, else those of its folder; as the plugin Tasks has them where nothing tells."""
    for each in _around(text, path, ctx):
        lines = [task.text for task in markdown.tasks(each)]
        emoji, field = (sum(pattern.search(line) is not None for line in lines) for pattern in (_EMOJI, _FIELD))
        if emoji != field:
            return "emoji" if emoji > field else "field"
    return "emoji"


def tells_when_done(text: str, path: VaultPath, ctx: ToolContext) -> bool:
    """Whether done tasks have the day on which they were done: most of the note's own, else, where it has dates at all, of its folder."""
    dated = any(_EMOJI.search(task.text) or _FIELD.search(task.text) for task in markdown.tasks(text))
    for each in _around(text, path, ctx) if dated else (text,):
        done = [task.text for task in markdown.tasks(each) if task.status in "xX"]
        if done:
            return sum(_DONE.search(line) is not None for line in done) * 2 >= len(done)
    return False


def _around(text: str, path: VaultPath, ctx: ToolContext) -> Iterator[str]:
    yield text
    others = (entry.path for entry in ctx.view.children(path.parent) if entry.kind == "file" and entry.path.is_note and entry.path != path)
    for other in islice(others, _NEIGHBOURS):
        try:
            yield read_text(ctx.view, other)
        except VaultError:
            continue


def _added(line: str, mark: str) -> str:
    """The line with a mark at its end, before a block's name."""
    found = _BLOCK_ID.search(line)
    at = found.start() if found is not None else len(line.rstrip())
    return f"{line[:at].rstrip()} {mark}{line[at:]}" if line[:at].strip() else f"{mark}{line[at:]}"
