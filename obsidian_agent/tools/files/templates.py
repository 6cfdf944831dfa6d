"""Note templates, filled in with a title, dates and named values."""

from __future__ import annotations

import re
from typing import Any, Final

from pydantic import Field

from obsidian_agent import budget
from obsidian_agent.errors import Problem
from obsidian_agent.tools.core.filters import text_of
from obsidian_agent.tools.core.lookup import find_file, read_text
from obsidian_agent.tools.core.models import ToolModel
from obsidian_agent.tools.core.moment import format_moment, parse_moment
from obsidian_agent.tools.core.tool import PathText, Proposal, Risk, ToolContext, tool

_VARIABLE: Final = re.compile(
    r"\{\{[ \t]*(?P<name>[^\W\d][\w -]*?)[ \t]*(?::(?P<format>[^{}\n]*))?\}\}"
)

_TEMPLATER: Final = re.compile(
    r"<%[-_]?\s*tp\.(?:file\.(?P<title>title)|date\.(?P<day>now|today|tomorrow|yesterday)"
    r"\((?:\s*(?P<quote>[\"'])(?P<format>[^\"'\n]*)(?P=quote)\s*)?\))\s*[-_]?%>"
)
_TEMPLATER_COMMAND: Final = re.compile(r"<%[\s\S]*?%>")
_DAY_MS: Final = 86_400_000


class RenderInput(ToolModel):
    path: PathText = Field(min_length=1, description="The template.")
    title: str = Field(default="", description="The value of {{title}}: the new note's name.")
    when: str | None = Field(
        default=None,
        description="The ISO date and time of {{date}} and {{time}}; by default that of the run.",
    )
    values: dict[str, Any] = Field(default={}, description="The values of other variables by name.")
    date_format: str | None = Field(
        default=None,
        min_length=1,
        description="The format of {{date}} in Moment.js tokens; "
        "by default from Obsidian's settings.",
    )
    time_format: str | None = Field(default=None, min_length=1)


class RenderOutput(ToolModel):
    path: str
    title: str
    text: str
    unknown: list[str] = Field(description="Variables without a value, which stay unchanged.")


@tool("template.render", Risk.READ_ONLY)
def render(args: RenderInput, ctx: ToolContext) -> Proposal[RenderOutput]:
    """Fill in a note template: {{title}}, {{date}}, {{time}}, {{date:FORMAT}} and named values."""
    path = find_file(ctx.view, args.path)
    rendering = _Rendering(args, ctx)
    text = _TEMPLATER.sub(
        rendering.templater, _VARIABLE.sub(rendering.variable, read_text(ctx.view, path))
    )
    warnings: tuple[Problem, ...] = ()
    if left := _TEMPLATER_COMMAND.search(text):
        message = (
            f"{path} contains commands of the plugin Templater that only Obsidian can run, "
            f"such as {left[0][:60]}; they stay as text."
        )
        warnings = (Problem("TEMPLATE_COMMANDS", message, path=path.text),)
    return Proposal(
        RenderOutput(path=path.text, title=args.title, text=text, unknown=list(rendering.unknown)),
        warnings=warnings,
    )


class _Rendering:
    """The values of variables in one call."""

    def __init__(self, args: RenderInput, ctx: ToolContext) -> None:
        self._args = args
        self._now = ctx.run.now
        self._settings = ctx.run.notes
        self._when = (
            ctx.run.now
            if args.when is None
            else parse_moment(args.when, ctx.run.now) or ctx.run.now
        )
        self._values = {name.casefold(): text_of(value) for name, value in args.values.items()}
        self.unknown: dict[str, None] = {}

    def variable(self, match: re.Match[str]) -> str:
        """Replace a variable of Obsidian's own templates or a named value; any other stays."""
        name = match["name"].casefold()
        if name in self._values:
            budget.spend(len(self._values[name]))
            return self._values[name]
        match name:
            case "title":
                budget.spend(len(self._args.title))
                return self._args.title
            case "date":
                return format_moment(
                    self._when,
                    match["format"] or self._args.date_format or self._settings.date_format,
                )
            case "time":
                return format_moment(
                    self._when,
                    match["format"] or self._args.time_format or self._settings.time_format,
                )
            case _:
                self.unknown[match["name"]] = None
                return match[0]

    def templater(self, match: re.Match[str]) -> str:
        """Replace the title and dates of the plugin Templater; a date with an offset stays."""
        if match["title"]:
            budget.spend(len(self._args.title))
            return self._args.title
        days = {"tomorrow": 1, "yesterday": -1}.get(match["day"], 0)
        moment = (
            parse_moment(self._when.timestamp() * 1000 + days * _DAY_MS, self._now) or self._when
        )
        return format_moment(moment, match["format"] or "YYYY-MM-DD")
