"""Obsidian's note templates as text with references: `{{title}}`, `{{date}}`, `{{time}}`, with a format behind a colon."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from obsidian_agent.agent.recipe_plan import escaped
from obsidian_agent.tools.moment import format_moment, parse_moment

_DATE = "YYYY-MM-DD"
_TIME = "HH:mm"
_VARIABLE = re.compile(r"\{\{\s*(title|date|time)\s*(?::([^{}\n]*))?\}\}", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class TemplateFormats:
    """How `{{date}}` and `{{time}}` look when the template does not say, in Moment tokens."""

    date: str = _DATE
    time: str = _TIME

    @classmethod
    def read(cls, config: Callable[[Any], object | None]) -> TemplateFormats:
        """From Obsidian's `templates.json`, whose keys differ between versions."""
        document = config("templates")
        settings = {key: value for key, value in document.items() if isinstance(value, str) and value} if isinstance(document, dict) else {}
        return cls(
            settings.get("dateFormat") or settings.get("date_format") or _DATE,
            settings.get("timeFormat") or settings.get("time_format") or _TIME,
        )


def with_references(template: str, title: str, formats: TemplateFormats, now: datetime) -> str:
    """The template's text for `content` of a plan. `title` is text with references; dates are written when the plan runs.

    All else is literal. A format that a filter cannot carry (`|`, `}`) is written now.
    """
    made: list[str] = []
    end = 0
    for found in _VARIABLE.finditer(template):
        made += escaped(template[end : found.start()]), _value(found, title, formats, now)
        end = found.end()
    return "".join([*made, escaped(template[end:])])


def moment_reference(pattern: str, now: datetime) -> str:
    """The run's time in this format: a reference, or the text itself when the format cannot stand in one."""
    return escaped(format_moment(now, pattern)) if re.search(r"[|}{\n]", pattern) else f"${{now|date:{pattern}}}"


def day_reference(pattern: str, day: str | None, now: datetime) -> str:
    """A day in this format, as a reference to the parameter `day`; the text itself when the format cannot stand in one."""
    if not re.search(r"[|}{\n]", pattern):
        return f"${{day|date:{pattern}}}"
    moment = parse_moment(day, now) if day is not None else None
    return escaped(format_moment(moment or now, pattern))


def _value(found: re.Match[str], title: str, formats: TemplateFormats, now: datetime) -> str:
    name = found[1].lower()
    if name == "title":
        return title
    return moment_reference(found[2] or (formats.date if name == "date" else formats.time), now)
