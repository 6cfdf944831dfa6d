"""`template.render`: the text of a note template with its variables filled in.

The template of one item of a list: `- {path|link}`, `{index}: {item}`.

`{name}`, `{name.part}` and `{name|filter|filter:argument}` are filled in; braces around anything else, and doubled braces as in Obsidian's
own `{{date}}`, stay as they are written. What was filled in is never looked at again.
"""

from __future__ import annotations

import re
from typing import Any, Final

from pydantic import Field

from obsidian_agent.errors import Problem
from obsidian_agent.tools.core.filters import text_of
from obsidian_agent.tools.core.lookup import find_file, read_text
from obsidian_agent.tools.core.moment import format_moment, parse_moment
from obsidian_agent.tools.core.tool import PathText, Proposal, Risk, ToolContext, ToolModel, tool

_VARIABLE: Final = re.compile(r"\{\{[ \t]*(?P<name>[^\W\d][\w -]*?)[ \t]*(?::(?P<format>[^{}\n]*))?\}\}")
_TEMPLATER: Final = re.compile(
    r"<%[-_]?\s*tp\.(?:file\.(?P<title>title)|date\.(?P<day>now|today|tomorrow|yesterday)"
    r"\((?:\s*(?P<quote>[\"'])(?P<format>[^\"'\n]*)(?P=quote)\s*)?\))\s*[-_]?%>"
)
_FOREIGN: Final = re.compile(r"<%[\s\S]*?%>")
_DAY_MS: Final = 86_400_000


class RenderInput(ToolModel):
    path: PathText = Field(min_length=1, description="The template.")
    title: str = Field(default="", description="What {{title}} stands for: the new note's name.")
    when: str | None = Field(default=None, description="The moment of {{date}} and {{time}}, ISO; that of the run when absent.")
    values: dict[str, Any] = Field(default={}, description="What other variables stand for, by name.")
    date_format: str | None = Field(
        default=None, min_length=1, description="How {{date}} looks, in Moment's tokens; as Obsidian's settings say when absent."
    )
    time_format: str | None = Field(default=None, min_length=1)


class RenderOutput(ToolModel):
    path: str
    title: str
    text: str
    unknown: list[str] = Field(description="Variables that stay as they are, because nothing says what they stand for.")


@tool("template.render", Risk.READ_ONLY)
def render(args: RenderInput, ctx: ToolContext) -> Proposal[RenderOutput]:
    """The text of a note template with {{title}}, {{date}}, {{time}}, {{date:FORMAT}} and named values filled in."""
    path = find_file(ctx.view, args.path)
    rendering = _Rendering(args, ctx)
    text = _TEMPLATER.sub(rendering.templater, _VARIABLE.sub(rendering.variable, read_text(ctx.view, path)))
    warnings: tuple[Problem, ...] = ()
    if left := _FOREIGN.search(text):
        message = f"{path} holds commands of the plugin Templater that only Obsidian can run, such as {left[0][:60]}; they stay as text."
        warnings = (Problem("TEMPLATE_COMMANDS", message, path=path.text),)
    return Proposal(RenderOutput(path=path.text, title=args.title, text=text, unknown=list(rendering.unknown)), warnings=warnings)


class _Rendering:
    """What variables stand for in one call."""

    def __init__(self, args: RenderInput, ctx: ToolContext) -> None:
        self._args = args
        self._now = ctx.run.now
        self._settings = ctx.run.notes
        self._when = ctx.run.now if args.when is None else parse_moment(args.when, ctx.run.now) or ctx.run.now
        self._values = {name.casefold(): text_of(value) for name, value in args.values.items()}
        self.unknown: dict[str, None] = {}

    def variable(self, found: re.Match[str]) -> str:
        """A variable of Obsidian's own templates, or a named value; any other stays."""
        name = found["name"].casefold()
        if name in self._values:
            return self._values[name]
        match name:
            case "title":
                return self._args.title
            case "date":
                return format_moment(self._when, found["format"] or self._args.date_format or self._settings.date_format)
            case "time":
                return format_moment(self._when, found["format"] or self._args.time_format or self._settings.time_format)
            case _:
                self.unknown[found["name"]] = None
                return found[0]

    def templater(self, found: re.Match[str]) -> str:
        """The title and dates of the plugin Templater; a date with an offset or anything else stays."""
        if found["title"]:
            return self._args.title
        days = {"tomorrow": 1, "yesterday": -1}.get(found["day"], 0)
        moment = parse_moment(self._when.timestamp() * 1000 + days * _DAY_MS, self._now) or self._when
        return format_moment(moment, found["format"] or "YYYY-MM-DD")
