"""Dates and times in arguments of tools."""

from __future__ import annotations

from datetime import datetime

from obsidian_agent.errors import ToolError


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
