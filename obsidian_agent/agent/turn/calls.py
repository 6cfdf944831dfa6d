"""Parsing of a model's calls, into reads that can be carried out or errors for the model.

Wire names, aliases from other agents' tools and common misspellings of arguments are accepted.
Nothing here reads the vault; questions to the user come after this. Small local models write calls
as text, in the formats that they were trained on; an answer that consists of calls is accepted too.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from obsidian_agent.agent.mcp_tools import OfferedTool
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
from obsidian_agent.errors import Problem, ToolError, nearest
from obsidian_agent.plan import arguments as plan_arguments
from obsidian_agent.plan.arguments import parse_input
from obsidian_agent.providers.base import ToolCall
from obsidian_agent.tools.core.tool import Risk, Tool
from obsidian_agent.tools.registry import from_wire, wire_name

MAX_ARGUMENTS: Final = 4 * 1024 * 1024
"""Characters of one call's arguments."""
MAX_WRITTEN: Final = 200_000
"""Characters of an answer that is searched for calls written as text."""
MAX_WRITTEN_CALLS: Final = 16

_ALTERNATIVE_NAMES: Final[Mapping[str, tuple[str, ...]]] = {
    "path": ("filePath", "file", "fileName", "filename", "notePath", "note", "name"),
    "filePaths": ("paths", "files", "notes", "path", "filePath"),
    "query": ("text", "q", "search", "searchTerm", "term", "keyword", "pattern", "tag", "name"),
    "folder": ("path", "dir", "directory", "folderPath"),
    "limit": ("maxResults", "max", "topK", "count"),
    "offset": ("start", "skip"),
    "extension": ("ext", "fileType"),
}
"""Names that models trained on other tools use for an argument."""
_TAGGED: Final = re.compile(r"<(tool_call|function_call)>\s*(.*?)\s*(?:</\1>|\Z)", re.DOTALL)
_FENCED: Final = re.compile(
    r"\A(?:```|~~~)(?:json|tool_call|tool)?[ \t]*\n(.*?)\n?(?:```|~~~)\Z", re.DOTALL
)


class ReadCall(Struct, frozen=True, kw_only=True):
    """A valid call of a read tool.

    `called` is the name that the model used; `args` are named as in the tool's input; `rows` and
    `offset` select a page of its list; `why` is the model's reason.
    """

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
    """True if the user has changed the arguments."""

    @property
    def key(self) -> str:
        """A key that is equal for equal calls."""
        return json.dumps(
            [self.tool.name, self.args, self.rows, self.offset], sort_keys=True, default=str
        )


class ProposalCall(Struct, frozen=True):
    """A call of `propose_plan` with the document of the plan."""

    id: str
    document: Any


class BadCall(Struct, frozen=True):
    """A call that cannot be carried out, with the reason."""

    id: str
    called: str
    problem: Problem


class HelpCall(Struct, frozen=True):
    """A call of `describe_tools` for `names`. The answer reveals nothing of the vault."""

    id: str
    names: tuple[str, ...]
    answer: str


class ServerCall(Struct, frozen=True):
    """A call of a tool of an MCP server, whose arguments only that server understands."""

    id: str
    tool: OfferedTool
    args: Mapping[str, Any]

    @property
    def key(self) -> str:
        """A key that is equal for equal calls."""
        return json.dumps([self.tool.offer.name, self.args], sort_keys=True, default=str)


ParsedCall = ReadCall | ServerCall | ProposalCall | HelpCall | BadCall


def with_arguments(call: ReadCall, args: Mapping[str, Any]) -> ReadCall:
    """Return the call with the user's arguments. Raise `ToolError` if they are not valid."""
    arguments = dict(args)
    _check_flaws(arguments)
    rows, offset = call.rows, call.offset
    if call.read.rows is not None:
        rows, offset = _pop_page(arguments, call.limits)
        fields = {info.alias or name for name, info in call.tool.input.model_fields.items()}
        page = {"limit": rows, "offset": offset}
        arguments |= {name: value for name, value in page.items() if name in fields}
    parse_input(call.tool, arguments)
    return replace(call, args=arguments, rows=rows, offset=offset, changed=True)


def read_call(name: str, tools: Mapping[str, Tool]) -> ReadCall:
    """Return a call of a read tool without arguments, for `with_arguments`.

    Raise `ToolError` if the tool may not be called.
    """
    limits = limits_of(name)
    return ReadCall(
        id="",
        called=name,
        tool=_find_read_tool(name, tools, propose=False),
        read=READ_TOOLS[name],
        args={},
        limits=limits,
        rows=limits.default_rows,
    )


def understand(
    call: ToolCall,
    tools: Mapping[str, Tool],
    *,
    propose: bool,
    server_tools: Mapping[str, OfferedTool] | None = None,
) -> ParsedCall:
    """Parse a call. `server_tools` are the tools of MCP servers. A bad call is returned as such."""
    try:
        arguments = _parse_arguments(call.arguments)
        if server_tools and call.name in server_tools:
            return ServerCall(call.id, server_tools[call.name], arguments)
        if call.name == PROPOSE_PLAN and propose:
            return ProposalCall(call.id, _plan_document(arguments))
        if call.name == DESCRIBE_TOOLS:
            return _describe_tools(call.id, arguments, tools)
        tool = _find_read_tool(call.name, tools, propose)
    except ToolError as error:
        return BadCall(call.id, call.name, error.problem())
    try:
        return _parse_read(call, arguments, tool)
    except ToolError as error:
        problem = error.problem()
        problem = replace(
            problem,
            message=f"{problem.message} Use {signature(tool)}.",
            plain=problem.plain or problem.message,
        )
        return BadCall(call.id, call.name, problem)


def _describe_tools(call_id: str, arguments: dict[str, Any], tools: Mapping[str, Tool]) -> HelpCall:
    """Describe the requested tools; list all names if one is unknown or none is requested."""
    requested: Any = next((value for value in arguments.values() if value), [])
    if not isinstance(requested, list):
        requested = _parse_list(str(requested))
    names = tuple(from_wire(str(name)) for name in requested)
    known = [tools[name] for name in dict.fromkeys(names) if name in tools]
    unknown = [name[:60] for name in names if name not in tools]
    parts = [describe(known)] if known else []
    parts += [f"There is no tool {name}." for name in unknown[:5]]
    if unknown or not names:
        parts.append(f"There are {', '.join(tools)}.")
    return HelpCall(call_id, names, "\n\n".join(parts))


def _check_flaws(arguments: dict[str, Any]) -> None:
    if (flaw := plan_arguments.find_flaw(arguments)) is not None:
        raise ToolError(flaw.message, advice=f"(at {flaw.pointer or '/'})")


def _parse_arguments(text: str) -> dict[str, Any]:
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
        return _parse_arguments(document)
    if document is None:
        return {}
    if not isinstance(document, dict):
        raise ToolError("The arguments must be one JSON object.")
    _check_flaws(document)
    return document


def _plan_document(arguments: dict[str, Any]) -> Any:
    """Return the plan, which models put under `plan` as asked, or at the top."""
    if "plan" not in arguments:
        return arguments
    plan = arguments["plan"]
    return _parse_arguments(plan) if isinstance(plan, str) else plan


def _find_read_tool(called: str, tools: Mapping[str, Tool], propose: bool) -> Tool:
    name = from_wire(called)
    tool = tools.get(name)
    if tool is not None and name in READ_TOOLS:
        return tool
    short = called[:60]
    if tool is not None and tool.risk is not Risk.READ_ONLY:
        hint = "Tell the user what you would do."
        if propose:
            hint = f"Propose it as a step of a plan with {PROPOSE_PLAN}."
        raise ToolError(
            f"{tool.name} cannot be called: calls only read.",
            code="PERMISSION_DENIED",
            hint=hint,
        )
    offered = [*(wire_name(read) for read in READ_TOOLS if read in tools), DESCRIBE_TOOLS]
    similar = nearest(short, [*offered, PROPOSE_PLAN] if propose else offered, parts=True)
    hint = f"Did you mean {similar}?" if similar else f"There are {', '.join(offered)}."
    raise ToolError(f"Unknown tool: {short}.", code="TOOL_NOT_FOUND", hint=hint)


def _parse_read(call: ToolCall, arguments: dict[str, Any], tool: Tool) -> ReadCall:
    limits = limits_of(call.name)
    fields = {info.alias or name: info.annotation for name, info in tool.input.model_fields.items()}
    original = {_camel(name): value for name, value in arguments.items() if value is not None}
    why = original.pop("why", "")
    paged = READ_TOOLS[tool.name].rows is not None
    args = _rename_arguments(original, {*fields, "limit", "offset"} if paged else set(fields))
    rows, offset = _pop_page(args, limits) if paged else (limits.default_rows, 0)
    if "filePaths" in fields and isinstance(args.get("filePaths"), str):
        args["filePaths"] = _parse_list(args["filePaths"])
    args = {name: _convert(value, fields.get(name)) for name, value in args.items()}
    if paged:
        page = {"limit": rows, "offset": offset}
        args |= {name: value for name, value in page.items() if name in fields}
    parse_input(tool, args)
    return ReadCall(
        id=call.id,
        called=call.name,
        tool=tool,
        read=READ_TOOLS[tool.name],
        args=args,
        limits=limits,
        rows=rows,
        offset=offset,
        why=why if isinstance(why, str) else "",
    )


def _rename_arguments(original: dict[str, Any], known: set[str]) -> dict[str, Any]:
    """Rename alternative names to the tool's. Unknown names stay, so that they are refused."""
    args = {name: value for name, value in original.items() if name in known}
    others = {name: value for name, value in original.items() if name not in known}
    for name, alternatives in _ALTERNATIVE_NAMES.items():
        if name in known and name not in args:
            used = next((other for other in alternatives if other in others), None)
            if used is not None:
                args[name] = others.pop(used)
    return args | others


def _pop_page(args: dict[str, Any], limits: Limits) -> tuple[int, int]:
    """Remove `limit` and `offset` from the arguments and return them within the limits."""
    rows = _whole("limit", args.pop("limit", limits.default_rows))
    offset = _whole("offset", args.pop("offset", 0))
    return min(max(rows, 1), limits.max_rows), max(offset, 0)


def _whole(name: str, value: Any) -> int:
    if isinstance(value, str) and re.fullmatch(r"\s*\d{1,9}\s*", value):
        return int(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or value != int(value):
        raise ToolError(f"'{name}' must be a whole number. (at /{name})")
    return int(value)


def _convert(value: Any, annotation: Any) -> Any:
    """Convert a number or boolean that was written as text, if the field accepts no text."""
    if not isinstance(value, str) or annotation is None or "str" in str(annotation):
        return value
    text = value.strip().lower()
    if text in ("true", "false") and "bool" in str(annotation):
        return text == "true"
    if "int" in str(annotation) and re.fullmatch(r"\d{1,18}", text):
        return int(text)
    return value


def _parse_list(text: str) -> list[Any]:
    """Return a list that was written as text: as JSON, or a single path."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return [text]
    return document if isinstance(document, list) else [text]


def _camel(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(part[:1].upper() + part[1:] for part in rest)


def written_calls(text: str, names: Collection[str]) -> tuple[ToolCall, ...]:
    """Return the calls that a text consists of; () if it contains anything else.

    `names` are the functions on offer.
    """
    text = text.strip()
    if len(text) > MAX_WRITTEN or not text.startswith(("<", "`", "~", "{", "[")):
        return ()
    tagged = [match.group(2) for match in _TAGGED.finditer(text)]
    if tagged:
        pieces = tagged if not _TAGGED.sub("", text).strip() else []
    else:
        fenced = _FENCED.match(text)
        pieces = [fenced.group(1) if fenced is not None else text]
    calls: list[ToolCall] = []
    for document in (document for piece in pieces for document in _documents(piece)):
        call = _call(document, names)
        if call is None:
            return ()
        calls.append(call)
    return tuple(calls[:MAX_WRITTEN_CALLS])


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
    if isinstance(arguments, dict):
        arguments = json.dumps(arguments, ensure_ascii=False)
    return ToolCall("", name, arguments)
