"""Dates and times in arguments of tools."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from obsidian_agent.errors import ToolError
from obsidian_agent.tools.base import ToolContext
from obsidian_agent.tools.moment import parse_moment
from obsidian_agent.tools.properties_match import value_of
from obsidian_agent.vault.paths import VaultPath


def moment_ms(text: str | None, now: datetime, argument: str) -> float | None:
    """An ISO date (its beginning) or date and time, in milliseconds since the epoch; without a zone that of `now`. None for None.

    ARGUMENT_INVALID, naming `argument`, for any other text.
    """
    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError as error:
        raise ToolError(f"{argument} {text!r} is no ISO date.", hint="Write it like 2026-03-14 or 2026-03-14T09:30.") from error
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=now.tzinfo) if now.tzinfo is not None else moment.astimezone()
    return moment.timestamp() * 1000


def made_ms(path: VaultPath, properties: Mapping[str, Any], ctx: ToolContext) -> float:
    """When a file was made, in milliseconds since the epoch: what a note's property created says, else the file's own time."""
    told = value_of(properties, "created") if path.is_note else None
    moment = parse_moment(told, ctx.run.now) if isinstance(told, str) else None
    return ctx.view.stat(path).created_ms if moment is None else moment.timestamp() * 1000
