"""The tools as models see them: one-line signatures in the prompt, and functions for reading.

`vault.updateFile*(path, mode: append|prepend, content, line?: int) -> path. Append, prepend or …`

`*` marks tools that change notes, `?` optional arguments, `[]` lists, `{}` objects; arguments
without a type are text. Status outputs and explanations are omitted; `describe_tools` gives them.

The functions are a closed list: a tool that is not in it is never offered, even if it only reads.
Tools that only transform text are not in it, because a model needs no help with that.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from enum import Enum
from functools import lru_cache
from typing import Any, Final, Literal

from msgspec import Struct
from pydantic import BaseModel

from obsidian_agent.errors import Problem
from obsidian_agent.providers.base import ToolOffer
from obsidian_agent.tools.core.tool import Risk, Tool
from obsidian_agent.tools.registry import wire_name

Detail = Literal["full", "short"]
"""The length of prompts and descriptions: everything, or what small models can process."""

_NEVER_OMITTED: Final[Mapping[str, frozenset[str]]] = {
    "vault.updateFile": frozenset({"line"}),
    "workspace.openFile": frozenset({"line"}),
    "util.parseHeadings": frozenset({"level"}),
    "vault.find": frozenset({"limit", "kind"}),
}
_ARGUMENT_ERRORS: Final = frozenset({"ARGUMENT_INVALID"})
_REFERENCE_ERRORS: Final = frozenset({"UNKNOWN_REFERENCE", "REFERENCE_ERROR"})
_STEP: Final = re.compile(r"\bsteps\.([A-Za-z]\w*)")
_DID_YOU_MEAN: Final = re.compile(r"Did you mean '([\w.]+)'")
_MAX_USAGES: Final = 5
_TYPES: Final[Mapping[str, str]] = {
    "string": "",
    "integer": ": int",
    "number": ": number",
    "boolean": ": bool",
    "object": "{}",
}
_CLAUSE: Final = re.compile(r"(?:\([^)]*\)|.)+?(?=[.:;](?:\s|$)|$)")
_MIN_CLAUSE: Final = 27
"""Characters after which a clause ends at the next comma."""

PROPOSE_PLAN: Final = "propose_plan"
DESCRIBE_TOOLS: Final = "describe_tools"
DEFAULT_ROWS: Final = 50
MAX_ROWS: Final = 1000
DEFAULT_PAGE: Final = 16_000
"""Characters of a file in one result, unless the model requests fewer."""

_SHORT: Final[Mapping[str, tuple[str, ...]]] = {
    "vault.searchText": ("query", "folder"),
    "vault.query": ("folder", "tag", "name"),
    "vault.readFile": ("path",),
}
"""The read tools offered to small models, with their main arguments; all others are accepted."""
_DESCRIPTION: Final = ToolOffer(
    DESCRIBE_TOOLS,
    "Explain tools: all their arguments and outputs.",
    {
        "type": "object",
        "properties": {"names": {"type": "array", "items": {"type": "string"}}},
        "required": ["names"],
    },
)
_PROPOSAL: Final = ToolOffer(
    PROPOSE_PLAN,
    "Propose changes as one ActionPlan.",
    {"type": "object", "properties": {"plan": {"type": "object"}}, "required": ["plan"]},
)


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


_BOOKKEEPING: Final = _names("""
    hash mtimeMs size score scanned bytes created changed deleted trashPath opened via executed
    errorMessage insertedChars linksUpdated range position hasMore total count nextOffset truncated
    isEmpty filePath unknown sources slug raw kind level line depth offset maxBytes limit ifMatch
""")
"""Fields that plans hardly ever use. Paging is among them, because lists in plans are complete."""
_ADVANCED: Final = _names("""
    ifNotExists updateLinks overwrite recursive expectCount regex caseSensitive create marker line
    paths removeTags createdBefore separator modifiedBefore aliases checked error directly atLeast
    atMost has datedBefore datedAfter properties extension kind any file moreThan
    fewerThan
""")
"""Further fields that are omitted for small models."""


def signatures(tools: Iterable[Tool], detail: Detail = "full") -> str:
    """Return one line for each tool, in order."""
    return "\n".join(signature(tool, detail) for tool in tools)


@lru_cache(maxsize=256)
def signature(tool: Tool, detail: Detail = "full") -> str:
    """Return a tool's name, inputs, outputs and purpose on one line."""
    omitted = _BOOKKEEPING - _NEVER_OMITTED.get(tool.name, frozenset())
    if detail == "short":
        omitted |= _ADVANCED
    return f"{_head(tool, omitted)}. {clause(tool.summary)}"


def describe(tools: Iterable[Tool]) -> str:
    """Return the complete description of each tool: its fields and what its arguments mean."""
    return "\n\n".join(_describe(tool) for tool in tools)


def usage_of(
    problems: Iterable[Problem], document: Any, tools: Mapping[str, Tool]
) -> tuple[str, ...]:
    """Return signatures of tools that a plan uses wrongly, or that its problems recommend."""
    steps = document.get("steps") if isinstance(document, Mapping) else None
    listed = steps if isinstance(steps, list) else ()
    used = {
        str(step.get("id")): str(step.get("tool")) for step in listed if isinstance(step, Mapping)
    }
    names: list[str] = []
    for problem in problems:
        if problem.code in _ARGUMENT_ERRORS and problem.step_id is not None:
            names.append(used.get(problem.step_id, ""))
        if problem.code in _REFERENCE_ERRORS:
            names += [used.get(step, "") for step in _STEP.findall(problem.message)]
        names += _DID_YOU_MEAN.findall(problem.message)
    known = [name for name in dict.fromkeys(names) if name in tools]
    return tuple(_head(tools[name], frozenset()) for name in known[:_MAX_USAGES])


def envelope(model: type[BaseModel], omitted: frozenset[str] = frozenset()) -> str:
    """Return the shape of a model's JSON, with types in place of values.

    For example `{"version": "1.0", "goal": text, "assumptions"?: [text]}`.
    """
    schema = model.model_json_schema(by_alias=True)
    return _Envelope(schema.get("$defs", {}), omitted).of(schema)


def _describe(tool: Tool) -> str:
    fields = tool.input.model_json_schema(by_alias=True).get("properties", {})
    notes = [
        f"- {name}: {field['description']}"
        for name, field in fields.items()
        if field.get("description")
    ]
    return "\n".join([f"{_head(tool, frozenset())}. {tool.summary}", *notes])


def clause(summary: str) -> str:
    """Return the first clause of a summary, which says what a tool does."""
    match = _CLAUSE.match(summary)
    first = match[0] if match is not None else summary
    comma = first.find(", ", _MIN_CLAUSE)
    return first if comma < 0 else first[:comma]


def _head(tool: Tool, omitted: frozenset[str]) -> str:
    inputs = _Fields(tool.input.model_json_schema(by_alias=True), omitted).all()
    outputs = _Fields(tool.output.model_json_schema(by_alias=True), omitted, bare=True).all()
    mark = "" if tool.risk is Risk.READ_ONLY else "*"
    head = f"{tool.name}{mark}({', '.join(inputs)})"
    return f"{head} -> {', '.join(outputs)}" if outputs else head


class _Fields:
    """The fields of a schema as text; `bare` without types and defaults, for outputs."""

    def __init__(
        self, schema: Mapping[str, Any], omitted: frozenset[str], *, bare: bool = False
    ) -> None:
        self._schema = schema
        self._definitions: Mapping[str, Any] = schema.get("$defs", {})
        self._omitted = omitted
        self._bare = bare
        self._open: list[str] = []

    def all(self) -> list[str]:
        return self._object(self._schema)

    def _object(self, schema: Mapping[str, Any]) -> list[str]:
        required = set(schema.get("required", ()))
        fields = schema.get("properties", {}).items()
        return [
            self._field(name, field, name in required)
            for name, field in fields
            if name not in self._omitted
        ]

    def _field(self, name: str, schema: Mapping[str, Any], required: bool) -> str:
        if self._bare:
            return f"{name}{self._type(schema)}"
        default = schema.get("default")
        informative = (
            default is True
            or (isinstance(default, int) and default > 0)
            or (isinstance(default, str) and len(default.strip()) == 1)
        )
        optional = "" if required else "?"
        suffix = f"={json.dumps(default)}" if informative else ""
        return f"{name}{optional}{self._type(schema)}{suffix}"

    def _type(self, schema: Mapping[str, Any]) -> str:
        match schema:
            case {"$ref": str(reference)}:
                return self._named(reference.rpartition("/")[2])
            case {"const": value}:
                return "" if self._bare else f": {value}"
            case {"enum": list(values)}:
                return "" if self._bare else f": {'|'.join(map(str, values))}"
            case {"anyOf": list(options)} | {"oneOf": list(options)}:
                kinds = dict.fromkeys(
                    self._type(option) for option in options if option.get("type") != "null"
                )
                return next(iter(kinds)) if len(kinds) == 1 else ""
            case {"type": "array", "items": dict(items)}:
                inner = self._type(items)
                return f"[{inner[1:-1]}]" if inner.startswith("{") and inner != "{}" else "[]"
            case {"type": "object", "properties": dict()}:
                return f"{{{', '.join(self._object(schema))}}}"
            case {"type": str(kind)}:
                return "" if self._bare and kind != "object" else _TYPES.get(kind, "")
            case _:
                return ""

    def _named(self, name: str) -> str:
        """Return the fields of a nested model, or its name inside itself."""
        if name in self._open:
            return f": {name}"
        self._open.append(name)
        text = self._type(self._definitions[name])
        self._open.pop()
        return text


class _Envelope:
    """A schema as JSON with types in place of values."""

    def __init__(self, definitions: Mapping[str, Any], omitted: frozenset[str]) -> None:
        self._definitions = definitions
        self._omitted = omitted

    def of(self, schema: Mapping[str, Any]) -> str:
        match schema:
            case {"$ref": str(reference)}:
                return self.of(self._definitions[reference.rpartition("/")[2]])
            case {"const": value}:
                return json.dumps(value)
            case {"enum": list(values)}:
                return "|".join(json.dumps(value) for value in values)
            case {"anyOf": list(options)}:
                return "|".join(
                    dict.fromkeys(
                        self.of(option) for option in options if option.get("type") != "null"
                    )
                )
            case {"type": "array", "items": dict(items)}:
                return f"[{self.of(items)}]" if items else "list"
            case {"type": "object", "properties": dict(fields)}:
                required = set(schema.get("required", ()))
                members = (
                    f'"{name}"{"" if name in required else "?"}: {self.of(field)}'
                    for name, field in fields.items()
                    if name not in self._omitted
                )
                return f"{{{', '.join(members)}}}"
            case {"type": "object", "additionalProperties": dict(values)} if values:
                return f"{{NAME: {self.of(values)}}}"
            case {"type": "string", "pattern": str()}:
                return "NAME"
            case {"type": str(kind)}:
                return {"string": "text", "integer": "int", "boolean": "bool"}.get(kind, kind)
            case _:
                return "any"


class TextSource(Enum):
    """The source of the text in a tool's output."""

    FILES = "files"
    """The files that its path arguments name."""
    ROWS = "rows"
    """For each row of its list, the file at the row's `path`."""
    SELECTION = "selection"
    """The text that the user has selected."""


class ReadTool(Struct, frozen=True):
    """A tool that models may call.

    `rows` is the list in its output that is paged; `purpose` describes the call to the user.
    """

    name: str
    purpose: str
    source: TextSource
    rows: str | None = None


_READ_TOOLS = (
    ReadTool("vault.searchText", "Search the text of notes", TextSource.ROWS, "matches"),
    ReadTool("vault.searchName", "Search the names of files", TextSource.ROWS, "items"),
    ReadTool("vault.searchTag", "Find the notes with a tag", TextSource.ROWS, "items"),
    ReadTool("vault.query", "Find notes by their properties", TextSource.ROWS, "files"),
    ReadTool("vault.listFiles", "List files and folders", TextSource.ROWS, "files"),
    ReadTool("vault.getBacklinks", "Find the notes that link to a file", TextSource.ROWS, "items"),
    ReadTool("vault.readFile", "Read a file", TextSource.FILES),
    ReadTool("vault.readFiles", "Read files", TextSource.FILES),
    ReadTool(
        "vault.getMetadata", "Read a file's properties, headings, links and tasks", TextSource.FILES
    ),
    ReadTool("vault.getOutgoingLinks", "Read a note's links", TextSource.FILES, "items"),
    ReadTool(
        "vault.getUnresolvedLinks",
        "Read a note's links that lead nowhere",
        TextSource.FILES,
        "items",
    ),
    ReadTool("util.parseHeadings", "Read a note's sections", TextSource.FILES, "items"),
    ReadTool("util.parseTasks", "Read a note's tasks", TextSource.FILES, "items"),
    ReadTool("editor.getSelection", "Read the selected text", TextSource.SELECTION),
)
READ_TOOLS: Final[Mapping[str, ReadTool]] = {tool.name: tool for tool in _READ_TOOLS}
"""By the tool's name."""


class Limits(Struct, frozen=True):
    """The limits of a result: rows of a list, characters of a preview, characters of a file."""

    default_rows: int = DEFAULT_ROWS
    max_rows: int = MAX_ROWS
    preview: int | None = None
    page: int = DEFAULT_PAGE


_ALIAS_LIMITS: Final[Mapping[str, Limits]] = {
    "vault_search": Limits(default_rows=10, max_rows=50, preview=200),
    "read_vault_file": Limits(page=4_000),
}


def limits_of(name: str) -> Limits:
    """Return the limits for a tool by the name or alias that a model called."""
    return _ALIAS_LIMITS.get(name, Limits())


def offers(
    tools: Mapping[str, Tool], *, propose: bool, detail: Detail = "full"
) -> tuple[ToolOffer, ...]:
    """Return the functions on offer. Their order is stable, because services cache prompts."""
    names = [name for name in READ_TOOLS if name in tools and (detail == "full" or name in _SHORT)]
    reading = tuple(_offer(tools[name], detail) for name in names)
    return (*reading, _DESCRIPTION, _PROPOSAL) if propose else (*reading, _DESCRIPTION)


@lru_cache(maxsize=64)
def _offer(tool: Tool, detail: Detail) -> ToolOffer:
    """Return a function without explanations, which `describe_tools` gives on request."""
    schema = tool.input.model_json_schema(by_alias=True)
    fields = schema.get("properties", {})
    if detail == "short":
        names = _SHORT[tool.name]
    else:
        names = tuple(name for name in fields if name not in ("limit", "maxBytes"))
    properties = {name: _value_schema(fields[name]) for name in names}
    if detail == "full" and READ_TOOLS[tool.name].rows is not None:
        properties["offset"] = {"type": "integer"}
    required = {"required": schema["required"]} if schema.get("required") else {}
    parameters = {
        "type": "object",
        "properties": properties | {"why": {"type": "string"}},
        **required,
    }
    return ToolOffer(wire_name(tool.name), clause(tool.summary), parameters)


def _value_schema(field: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of a field without title, description and null."""
    options = [option for option in field.get("anyOf", ()) if option != {"type": "null"}]
    schema = options[0] if len(options) == 1 else field
    return {key: schema[key] for key in ("type", "items", "enum") if key in schema}
