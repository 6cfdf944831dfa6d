"""From a call that a model made to a read that can be carried out, or to the error that the model gets.

Names come back from the wire, aliases that other agents' tools have are understood, and so are the usual other spellings of arguments.
Nothing here looks at the vault, and nobody is asked anything before a call has got through here. Small models on one's own machine write
calls down instead of making them, in the shapes that they were trained on: an answer that is nothing but calls is understood too.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from typing import Any, Final

from obsidian_agent.agent.mcp_tools import Offered
from obsidian_agent.agent.turn.model_tools import (
    DESCRIBE_TOOLS,
    PROPOSE_PLAN,
    READ_TOOLS,
    Limits,
    ReadTool,
    describe,
    limits_of,
    signature,
)
from obsidian_agent.dataclass import dataclass, replace
from obsidian_agent.errors import Problem, ToolError, nearest
from obsidian_agent.plan import arguments as plan_arguments
from obsidian_agent.plan.arguments import parse_input
from obsidian_agent.providers.base import ToolCall
from obsidian_agent.tools.core.tool import Risk, Tool
from obsidian_agent.tools.registry import from_wire, wire_name

MAX_ARGUMENTS: Final = 4 * 1024 * 1024
"""Characters of one call's arguments."""

_OTHER_NAMES: Final[Mapping[str, tuple[str, ...]]] = {
    "path": ("filePath", "file", "fileName", "filename", "notePath", "note", "name"),
    "filePaths": ("paths", "files", "notes", "path", "filePath"),
    "query": ("text", "q", "search", "searchTerm", "term", "keyword", "pattern", "tag", "name"),
    "folder": ("path", "dir", "directory", "folderPath"),
    "limit": ("maxResults", "max", "topK", "count"),
    "offset": ("start", "skip"),
    "extension": ("ext", "fileType"),
}
"""An argument, and what models call it that were brought up on other tools."""


@dataclass(frozen=True, slots=True)
class ReadCall:
    """A call that is understood. `args` are the tool's own arguments; `rows` and `offset` page its list, `why` is the model's reason."""

    id: str
    called: str
    tool: Tool
    read: ReadTool
    args: Mapping[str, Any]
    limits: Limits
    rows: int
    offset: int = 0
    why: str = ""
    changed: bool = False
    """Whether the arguments are the person's instead of the model's."""

    @property
    def key(self) -> str:
        """Equal for two calls that ask the same."""
        return json.dumps(
            [self.tool.name, self.args, self.rows, self.offset], sort_keys=True, default=str
        )


@dataclass(frozen=True, slots=True)
class ProposalCall:
    """A call of `propose_plan` with the document that is to be a plan."""

    id: str
    document: Any


@dataclass(frozen=True, slots=True)
class BadCall:
    """A call that cannot be carried out, and why."""

    id: str
    called: str
    problem: Problem


@dataclass(frozen=True, slots=True)
class HelpCall:
    """A call of `describe_tools`: `names` of those that it asks for, and the answer, which holds nothing of the vault."""

    id: str
    names: tuple[str, ...]
    answer: str


@dataclass(frozen=True, slots=True)
class ServerCall:
    """A call of a tool of an MCP server, whose arguments only that server understands."""

    id: str
    tool: Offered
    args: Mapping[str, Any]

    @property
    def key(self) -> str:
        """Equal for two calls that ask the same."""
        return json.dumps([self.tool.offer.name, self.args], sort_keys=True, default=str)


Understood = ReadCall | ServerCall | ProposalCall | HelpCall | BadCall


def with_arguments(call: ReadCall, args: Mapping[str, Any]) -> ReadCall:
    """The same call with other arguments of the person's. Raises `ToolError` where they are not the tool's."""
    if (found := plan_arguments.find_flaw(dict(args))) is not None:
        raise ToolError(found.message, advice=f"(at {found.pointer or '/'})")
    given = dict(args)
    rows, offset = (
        _page(given, call.limits) if call.read.rows is not None else (call.rows, call.offset)
    )
    fields = {info.alias or name for name, info in call.tool.input.model_fields.items()}
    given |= {
        name: value
        for name, value in (("limit", rows), ("offset", offset))
        if name in fields and call.read.rows is not None
    }
    parse_input(call.tool, given)
    return replace(call, args=given, rows=rows, offset=offset, changed=True)


def read_call(name: str, tools: Mapping[str, Tool]) -> ReadCall:
    """A call of a read tool without arguments: what `with_arguments` checks others against. Raises `ToolError` for any other tool."""
    limits = limits_of(name)
    return ReadCall(
        "",
        name,
        _readable(name, tools, propose=False),
        READ_TOOLS[name],
        {},
        limits,
        limits.usual_rows,
    )


def understand(
    call: ToolCall,
    tools: Mapping[str, Tool],
    *,
    propose: bool,
    others: Mapping[str, Offered] | None = None,
) -> Understood:
    """What a call asks for; `others` are the tools of MCP servers. Never raises."""
    try:
        arguments = _arguments(call.arguments)
        if others and call.name in others:
            return ServerCall(call.id, others[call.name], arguments)
        if call.name == PROPOSE_PLAN and propose:
            return ProposalCall(call.id, _plan(arguments))
        if call.name == DESCRIBE_TOOLS:
            return _help(call.id, arguments, tools)
        tool = _readable(call.name, tools, propose)
    except ToolError as error:
        return BadCall(call.id, call.name, error.problem())
    try:
        return _read(call, arguments, tool)
    except ToolError as error:
        problem = error.problem()
        return BadCall(
            call.id,
            call.name,
            replace(
                problem,
                message=f"{problem.message} Use {signature(tool)}.",
                plain=problem.plain or problem.message,
            ),
        )


def _help(call_id: str, arguments: dict[str, Any], tools: Mapping[str, Tool]) -> HelpCall:
    """The description of the named tools; the names of all when none is named that there is."""
    asked: Any = next((value for value in arguments.values() if value), [])
    names = tuple(
        from_wire(str(name)) for name in (asked if isinstance(asked, list) else _list(str(asked)))
    )
    known = [tools[name] for name in dict.fromkeys(names) if name in tools]
    unknown = [name[:60] for name in names if name not in tools]
    missing = [f"There is no tool {name}." for name in unknown[:5]]
    others = [f"There are {', '.join(tools)}."] if unknown or not names else []
    return HelpCall(
        call_id,
        names,
        "\n\n".join([describe(known), *missing, *others] if known else [*missing, *others]),
    )


def _arguments(text: str) -> dict[str, Any]:
    if len(text) > MAX_ARGUMENTS:
        raise ToolError(f"The arguments are longer than {MAX_ARGUMENTS:,} characters.")
    try:
        document = json.loads(text) if text.strip() else {}
    except ValueError as error:
        reason = error.msg if isinstance(error, json.JSONDecodeError) else "a number is too large"
        raise ToolError(
            f"The arguments are not JSON: {reason}.",
            hint="Call again with one complete JSON object.",
        ) from error
    except RecursionError as error:
        raise ToolError("The arguments are nested too deeply.") from error
    if isinstance(document, str) and document.strip().startswith("{"):
        return _arguments(document)
    if document is None:
        return {}
    if not isinstance(document, dict):
        raise ToolError("The arguments must be one JSON object.")
    if (found := plan_arguments.find_flaw(document)) is not None:
        raise ToolError(found.message, advice=f"(at {found.pointer or '/'})")
    return document


def _plan(arguments: dict[str, Any]) -> Any:
    """The plan's document, wrapped as asked for, or bare."""
    if "plan" not in arguments:
        return arguments
    plan = arguments["plan"]
    return _arguments(plan) if isinstance(plan, str) else plan


def _readable(called: str, tools: Mapping[str, Tool], propose: bool) -> Tool:
    name = from_wire(called)
    tool = tools.get(name)
    if tool is not None and name in READ_TOOLS:
        return tool
    shown = called[:60]
    if tool is not None and tool.risk is not Risk.READ_ONLY:
        hint = (
            f"Propose it as a step of a plan with {PROPOSE_PLAN}."
            if propose
            else "Tell the person what you would do."
        )
        raise ToolError(
            f"{tool.name} cannot be called: nothing is changed while you look around.",
            code="PERMISSION_DENIED",
            hint=hint,
        )
    offered = [*(wire_name(each) for each in READ_TOOLS if each in tools), DESCRIBE_TOOLS]
    found = nearest(shown, [*offered, PROPOSE_PLAN] if propose else offered, parts=True)
    hint = f"Did you mean {found}?" if found else f"There are {', '.join(offered)}."
    raise ToolError(f"Unknown tool: {shown}.", code="TOOL_NOT_FOUND", hint=hint)


def _read(call: ToolCall, arguments: dict[str, Any], tool: Tool) -> ReadCall:
    limits = limits_of(call.name)
    fields = {info.alias or name: info.annotation for name, info in tool.input.model_fields.items()}
    given = {_camel(name): value for name, value in arguments.items() if value is not None}
    why = given.pop("why", "")
    paged = READ_TOOLS[tool.name].rows is not None
    args = _renamed(given, {*fields, "limit", "offset"} if paged else set(fields))
    rows, offset = _page(args, limits) if paged else (limits.usual_rows, 0)
    if "filePaths" in fields and isinstance(args.get("filePaths"), str):
        args["filePaths"] = _list(args["filePaths"])
    args = {name: _plain(value, fields.get(name)) for name, value in args.items()}
    if paged:
        args |= {
            name: value for name, value in (("limit", rows), ("offset", offset)) if name in fields
        }
    parse_input(tool, args)
    return ReadCall(
        call.id,
        call.name,
        tool,
        READ_TOOLS[tool.name],
        args,
        limits,
        rows,
        offset,
        why if isinstance(why, str) else "",
    )


def _renamed(given: dict[str, Any], known: set[str]) -> dict[str, Any]:
    """The arguments under their own names; what is not known under any stays, and is refused with the others' names."""
    args = {name: value for name, value in given.items() if name in known}
    others = {name: value for name, value in given.items() if name not in known}
    for name, spellings in _OTHER_NAMES.items():
        if name in known and name not in args:
            found = next((spelling for spelling in spellings if spelling in others), None)
            if found is not None:
                args[name] = others.pop(found)
    return args | others


def _page(args: dict[str, Any], limits: Limits) -> tuple[int, int]:
    """Takes the page out of the arguments: at least one row, and no more than there may be."""
    rows = _whole("limit", args.pop("limit", limits.usual_rows))
    offset = _whole("offset", args.pop("offset", 0))
    return min(max(rows, 1), limits.most_rows), max(offset, 0)


def _whole(name: str, value: Any) -> int:
    if isinstance(value, str) and re.fullmatch(r"\s*\d{1,9}\s*", value):
        return int(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or value != int(value):
        raise ToolError(f"'{name}' must be a whole number. (at /{name})")
    return int(value)


def _plain(value: Any, annotation: Any) -> Any:
    """Numbers and booleans that a model wrote as text, where nothing else is wanted."""
    if not isinstance(value, str) or annotation is None or "str" in str(annotation):
        return value
    text = value.strip().lower()
    if text in ("true", "false") and "bool" in str(annotation):
        return text == "true"
    return int(text) if "int" in str(annotation) and re.fullmatch(r"\d{1,18}", text) else value


def _list(text: str) -> list[Any]:
    """A list that came as text: JSON, or a single path."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return [text]
    return document if isinstance(document, list) else [text]


def _camel(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(part[:1].upper() + part[1:] for part in rest)


LONGEST: Final = 200_000
MOST: Final = 16
"""Characters of an answer in which calls written as text are looked for, and how many of them count."""
_TAGGED: Final = re.compile(r"<(tool_call|function_call)>\s*(.*?)\s*(?:</\1>|\Z)", re.DOTALL)
_FENCED: Final = re.compile(
    r"\A(?:```|~~~)(?:json|tool_call|tool)?[ \t]*\n(.*?)\n?(?:```|~~~)\Z", re.DOTALL
)


def written_calls(text: str, names: Collection[str]) -> tuple[ToolCall, ...]:
    """The calls that a text consists of; () when it is anything else. `names` are the functions on offer."""
    text = text.strip()
    if len(text) > LONGEST or not text.startswith(("<", "`", "~", "{", "[")):
        return ()
    tagged = [match.group(2) for match in _TAGGED.finditer(text)]
    if tagged:
        pieces = tagged if not _TAGGED.sub("", text).strip() else []
    else:
        fenced = _FENCED.match(text)
        pieces = [fenced.group(1) if fenced is not None else text]
    found = [
        call
        for piece in pieces
        for document in _documents(piece)
        if (call := _call(document, names)) is not None
    ]
    complete = sum(len(_documents(piece)) for piece in pieces) == len(found)
    return tuple(found[:MOST]) if complete else ()


def _documents(piece: str) -> list[Any]:
    try:
        document = json.loads(piece)
    except (ValueError, RecursionError):
        return [None]
    return document if isinstance(document, list) and document else [document]


def _call(document: Any, names: Collection[str]) -> ToolCall | None:
    if not isinstance(document, dict):
        return None
    inner = document.get("function")
    called = inner if isinstance(inner, dict) else document
    name = called.get("name", called.get("tool"))
    arguments: Any = next(
        (called[key] for key in ("arguments", "parameters", "args") if key in called), {}
    )
    if not isinstance(name, str) or name not in names or not isinstance(arguments, dict | str):
        return None
    return ToolCall(
        "",
        name,
        arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False),
    )
