"""The tools as models know them: a signature on one line for the prompt, functions to call for those that only read.

`vault.updateFile*(path, mode: append|prepend, content, line?: int) -> path. Append, prepend or insert text in a note`

`*` changes notes, `?` may be left out, `[]` is a list, `{}` an object; what has no type is text. Outputs that only say how it went are left
out, and so are explanations: whoever needs them asks for the whole description.

What may be called is a closed list: a tool that is not in it is not offered, however harmless it calls itself. Tools that only work on text
which the caller has already are left out: a model needs no help with those.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from enum import Enum
from functools import lru_cache
from typing import Any, Final, Literal

from pydantic import BaseModel

from obsidian_agent.dataclass import dataclass
from obsidian_agent.errors import Problem
from obsidian_agent.providers.base import ToolOffer
from obsidian_agent.tools.core.tool import Risk, Tool
from obsidian_agent.tools.registry import wire_name

Detail = Literal["full", "short"]
"""How much a model is told: everything, or what a small one can hold."""


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


_BOOKKEEPING: Final = _names(
    "hash mtimeMs size score scanned bytes created changed deleted trashPath opened via executed errorMessage insertedChars "
    "linksUpdated range position hasMore total count nextOffset truncated isEmpty filePath unknown sources slug raw kind "
    "level line depth offset maxBytes limit ifMatch"
)
"""What a plan hardly ever writes or refers to; pages, because lists in plans are whole."""

_ADVANCED: Final = _names(
    "ifNotExists updateLinks overwrite recursive expectCount regex caseSensitive create marker line paths removeTags "
    "createdBefore separator modifiedBefore aliases checked error directly atLeast atMost has datedBefore datedAfter "
    "properties extension kind any file"
)
"""What small models are not told of besides."""

_SHOWN_ALL_THE_SAME: Final[Mapping[str, frozenset[str]]] = {
    "vault.updateFile": frozenset({"line"}),
    "workspace.openFile": frozenset({"line"}),
    "util.parseHeadings": frozenset({"level"}),
    "vault.find": frozenset({"limit", "kind"}),
}
_MISUSES: Final = frozenset({"ARGUMENT_INVALID"})
_MISREADINGS: Final = frozenset({"UNKNOWN_REFERENCE", "REFERENCE_ERROR"})
_STEP: Final = re.compile(r"\bsteps\.([A-Za-z]\w*)")
_DID_YOU_MEAN: Final = re.compile(r"Did you mean '([\w.]+)'")
_MOST_USAGES: Final = 5
_TYPES: Final[Mapping[str, str]] = {
    "string": "",
    "integer": ": int",
    "number": ": number",
    "boolean": ": bool",
    "object": "{}",
}
_CLAUSE: Final = re.compile(r"(?:\([^)]*\)|.)+?(?=[.:;](?:\s|$)|$)")
_ENOUGH: Final = 27
"""Characters of a clause, behind which it ends at the next comma."""


def signatures(tools: Iterable[Tool], detail: Detail = "full") -> str:
    """A line for each tool, in the given order."""
    return "\n".join(signature(tool, detail) for tool in tools)


@lru_cache(maxsize=256)
def signature(tool: Tool, detail: Detail = "full") -> str:
    """A tool on one line: its name, what goes in, what comes out, and a clause on what it does."""
    left_out = _BOOKKEEPING - _SHOWN_ALL_THE_SAME.get(tool.name, frozenset()) | (
        _ADVANCED if detail == "short" else frozenset()
    )
    return f"{_head(tool, left_out)}. {clause(tool.summary)}"


def describe(tools: Iterable[Tool]) -> str:
    """All of each tool: every field, what it does, and what its arguments mean."""
    return "\n\n".join(_describe(tool) for tool in tools)


def usage_of(
    problems: Iterable[Problem], document: Any, tools: Mapping[str, Tool]
) -> tuple[str, ...]:
    """The signatures of the tools that a plan's document uses wrongly, and of those that its problems recommend."""
    steps = document.get("steps") if isinstance(document, Mapping) else None
    listed = steps if isinstance(steps, list) else ()
    used = {
        str(step.get("id")): str(step.get("tool")) for step in listed if isinstance(step, Mapping)
    }
    found: list[str] = []
    for problem in problems:
        if problem.code in _MISUSES and problem.step_id is not None:
            found.append(used.get(problem.step_id, ""))
        if problem.code in _MISREADINGS:
            found += [used.get(step, "") for step in _STEP.findall(problem.message)]
        found += _DID_YOU_MEAN.findall(problem.message)
    return tuple(_head(tools[name], frozenset()) for name in dict.fromkeys(found) if name in tools)[
        :_MOST_USAGES
    ]


def envelope(model: type[BaseModel], left_out: frozenset[str] = frozenset()) -> str:
    """A model as JSON is written for it: `{"version": "1.0", "goal": text, "assumptions"?: [text]}`."""
    schema = model.model_json_schema(by_alias=True)
    return _Envelope(schema.get("$defs", {}), left_out).of(schema)


def _describe(tool: Tool) -> str:
    fields = tool.input.model_json_schema(by_alias=True).get("properties", {})
    notes = [
        f"- {name}: {field['description']}"
        for name, field in fields.items()
        if field.get("description")
    ]
    return "\n".join([f"{_head(tool, frozenset())}. {tool.summary}", *notes])


def clause(summary: str) -> str:
    """The beginning of a summary that says what a tool does."""
    found = _CLAUSE.match(summary)
    first = found[0] if found is not None else summary
    comma = first.find(", ", _ENOUGH)
    return first if comma < 0 else first[:comma]


def _head(tool: Tool, left_out: frozenset[str]) -> str:
    inputs = _Fields(tool.input.model_json_schema(by_alias=True), left_out).all()
    outputs = _Fields(tool.output.model_json_schema(by_alias=True), left_out, bare=True).all()
    mark = "" if tool.risk is Risk.READ_ONLY else "*"
    return f"{tool.name}{mark}({', '.join(inputs)})" + (
        f" -> {', '.join(outputs)}" if outputs else ""
    )


class _Fields:
    """Writes the fields of a schema; `bare`: by their names, since nobody writes outputs."""

    def __init__(
        self, schema: Mapping[str, Any], left_out: frozenset[str], *, bare: bool = False
    ) -> None:
        self._schema = schema
        self._definitions: Mapping[str, Any] = schema.get("$defs", {})
        self._left_out = left_out
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
            if name not in self._left_out
        ]

    def _field(self, name: str, schema: Mapping[str, Any], required: bool) -> str:
        optional = "" if required or self._bare else "?"
        default = schema.get("default")
        telling = (
            default is True
            or (isinstance(default, int) and default > 0)
            or (isinstance(default, str) and len(default.strip()) == 1)
        )
        shown = f"={json.dumps(default)}" if telling else ""
        return f"{name}{optional}{self._type(schema)}{'' if self._bare else shown}"

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
        """A model by its fields; inside itself by its name."""
        if name in self._open:
            return f": {name}"
        self._open.append(name)
        shown = self._type(self._definitions[name])
        self._open.pop()
        return shown


class _Envelope:
    """Writes a schema as JSON with types in the places of values."""

    def __init__(self, definitions: Mapping[str, Any], left_out: frozenset[str]) -> None:
        self._definitions = definitions
        self._left_out = left_out

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
                shown = (
                    f'"{name}"{"" if name in required else "?"}: {self.of(field)}'
                    for name, field in fields.items()
                    if name not in self._left_out
                )
                return f"{{{', '.join(shown)}}}"
            case {"type": "object", "additionalProperties": dict(values)} if values:
                return f"{{NAME: {self.of(values)}}}"
            case {"type": "string", "pattern": str()}:
                return "NAME"
            case {"type": str(kind)}:
                return {"string": "text", "integer": "int", "boolean": "bool"}.get(kind, kind)
            case _:
                return "any"


PROPOSE_PLAN: Final = "propose_plan"
DESCRIBE_TOOLS: Final = "describe_tools"
USUAL_ROWS: Final = 50
MOST_ROWS: Final = 1000
USUAL_PAGE: Final = 16_000
"""Characters of a file in one result, unless the model asks for less."""


class Reveals(Enum):
    """Whose text is in a tool's output."""

    FILES = "files"
    """Text of the files that its path arguments name."""
    ROWS = "rows"
    """In each row of its list, something of the file that the row's `path` names."""
    SELECTION = "selection"
    """What the person has selected."""


@dataclass(frozen=True, slots=True)
class ReadTool:
    """A tool for models. `rows` is the list in its output that is paged; `purpose` says to the person what it does."""

    name: str
    purpose: str
    reveals: Reveals
    rows: str | None = None


_READ_TOOLS = (
    ReadTool("vault.searchText", "Search the text of notes", Reveals.ROWS, "matches"),
    ReadTool("vault.searchName", "Search the names of files", Reveals.ROWS, "items"),
    ReadTool("vault.searchTag", "Find the notes with a tag", Reveals.ROWS, "items"),
    ReadTool("vault.query", "Find notes by their properties", Reveals.ROWS, "files"),
    ReadTool("vault.listFiles", "List files and folders", Reveals.ROWS, "files"),
    ReadTool("vault.getBacklinks", "Find the notes that link to a file", Reveals.ROWS, "items"),
    ReadTool("vault.readFile", "Read a file", Reveals.FILES),
    ReadTool("vault.readFiles", "Read files", Reveals.FILES),
    ReadTool(
        "vault.getMetadata", "Read a file's properties, headings, links and tasks", Reveals.FILES
    ),
    ReadTool("vault.getOutgoingLinks", "Read a note's links", Reveals.FILES, "items"),
    ReadTool(
        "vault.getUnresolvedLinks", "Read a note's links that lead nowhere", Reveals.FILES, "items"
    ),
    ReadTool("util.parseHeadings", "Read a note's sections", Reveals.FILES, "items"),
    ReadTool("util.parseTasks", "Read a note's tasks", Reveals.FILES, "items"),
    ReadTool("editor.getSelection", "Read the selected text", Reveals.SELECTION),
)
READ_TOOLS: Final[Mapping[str, ReadTool]] = {tool.name: tool for tool in _READ_TOOLS}
"""By the tool's name."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What one name of a tool answers at most: rows of a list, characters of a preview, characters of a file."""

    usual_rows: int = USUAL_ROWS
    most_rows: int = MOST_ROWS
    preview: int | None = None
    page: int = USUAL_PAGE


_ALIAS_LIMITS: Final[Mapping[str, Limits]] = {
    "vault_search": Limits(usual_rows=10, most_rows=50, preview=200),
    "read_vault_file": Limits(page=4_000),
}


def limits_of(name: str) -> Limits:
    """The limits under the name that a model called."""
    return _ALIAS_LIMITS.get(name, Limits())


_SHORT: Final[Mapping[str, tuple[str, ...]]] = {
    "vault.searchText": ("query", "folder"),
    "vault.query": ("folder", "tag", "name"),
    "vault.readFile": ("path",),
}
"""The read tools that small models are offered, with the arguments that they are told of; all others are understood all the same."""


def offers(
    tools: Mapping[str, Tool], *, propose: bool, detail: Detail = "full"
) -> tuple[ToolOffer, ...]:
    """The functions on offer, always in the same order: services remember a beginning that does not change."""
    named = [name for name in READ_TOOLS if name in tools and (detail == "full" or name in _SHORT)]
    found = tuple(_offer(tools[name], detail) for name in named)
    return (*found, DESCRIPTION, _PROPOSAL) if propose else (*found, DESCRIPTION)


@lru_cache(maxsize=64)
def _offer(tool: Tool, detail: Detail) -> ToolOffer:
    """A function as small as it can be: `describe_tools` explains what its arguments mean."""
    schema = tool.input.model_json_schema(by_alias=True)
    fields = schema.get("properties", {})
    told = (
        _SHORT[tool.name]
        if detail == "short"
        else [name for name in fields if name not in ("limit", "maxBytes")]
    )
    properties = {name: _kind_of(fields[name]) for name in told}
    if detail == "full" and READ_TOOLS[tool.name].rows is not None:
        properties["offset"] = {"type": "integer"}
    required = {"required": schema["required"]} if schema.get("required") else {}
    parameters = {
        "type": "object",
        "properties": properties | {"why": {"type": "string"}},
        **required,
    }
    return ToolOffer(wire_name(tool.name), clause(tool.summary), parameters)


def _kind_of(field: Mapping[str, Any]) -> dict[str, Any]:
    """What kind of value a field takes, without its title, its explanation, and the null that it may be set to."""
    options = [option for option in field.get("anyOf", ()) if option != {"type": "null"}]
    only = options[0] if len(options) == 1 else field
    return {key: only[key] for key in ("type", "items", "enum") if key in only}


DESCRIPTION: Final = ToolOffer(
    DESCRIBE_TOOLS,
    "Explain tools: all their arguments and outputs.",
    {
        "type": "object",
        "properties": {"names": {"type": "array", "items": {"type": "string"}}},
        "required": ["names"],
    },
)
_PROPOSAL = ToolOffer(
    PROPOSE_PLAN,
    "Propose changes as one ActionPlan.",
    {"type": "object", "properties": {"plan": {"type": "object"}}, "required": ["plan"]},
)
