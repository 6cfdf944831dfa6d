"""Tools as a model reads them: a signature on one line, far shorter than JSON Schema.

`vault.updateFile*(path, mode: append|prepend, content, line?: int) -> path. Append, prepend or insert text in a note`

`*` changes notes, `?` may be left out, `[]` is a list, `{}` an object; what has no type is text. Outputs that only say how it went are left
out, and so are explanations: whoever needs them asks for the whole description.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, Final, Literal

from pydantic import BaseModel

from obsidian_agent.errors import Problem
from obsidian_agent.tools.core.tool import Risk, Tool

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
_TYPES: Final[Mapping[str, str]] = {"string": "", "integer": ": int", "number": ": number", "boolean": ": bool", "object": "{}"}
_CLAUSE: Final = re.compile(r"(?:\([^)]*\)|.)+?(?=[.:;](?:\s|$)|$)")
_ENOUGH: Final = 27
"""Characters of a clause, behind which it ends at the next comma."""


def signatures(tools: Iterable[Tool], detail: Detail = "full") -> str:
    """A line for each tool, in the given order."""
    return "\n".join(signature(tool, detail) for tool in tools)


@lru_cache(maxsize=256)
def signature(tool: Tool, detail: Detail = "full") -> str:
    """A tool on one line: its name, what goes in, what comes out, and a clause on what it does."""
    left_out = _BOOKKEEPING - _SHOWN_ALL_THE_SAME.get(tool.name, frozenset()) | (_ADVANCED if detail == "short" else frozenset())
    return f"{_head(tool, left_out)}. {clause(tool.summary)}"


def describe(tools: Iterable[Tool]) -> str:
    """All of each tool: every field, what it does, and what its arguments mean."""
    return "\n\n".join(_describe(tool) for tool in tools)


def usage_of(problems: Iterable[Problem], document: Any, tools: Mapping[str, Tool]) -> tuple[str, ...]:
    """The signatures of the tools that a plan's document uses wrongly, and of those that its problems recommend."""
    steps = document.get("steps") if isinstance(document, Mapping) else None
    listed = steps if isinstance(steps, list) else ()
    used = {str(step.get("id")): str(step.get("tool")) for step in listed if isinstance(step, Mapping)}
    found: list[str] = []
    for problem in problems:
        if problem.code in _MISUSES and problem.step_id is not None:
            found.append(used.get(problem.step_id, ""))
        if problem.code in _MISREADINGS:
            found += [used.get(step, "") for step in _STEP.findall(problem.message)]
        found += _DID_YOU_MEAN.findall(problem.message)
    return tuple(_head(tools[name], frozenset()) for name in dict.fromkeys(found) if name in tools)[:_MOST_USAGES]


def envelope(model: type[BaseModel], left_out: frozenset[str] = frozenset()) -> str:
    """A model as JSON is written for it: `{"version": "1.0", "goal": text, "assumptions"?: [text]}`."""
    schema = model.model_json_schema(by_alias=True)
    return _Envelope(schema.get("$defs", {}), left_out).of(schema)


def _describe(tool: Tool) -> str:
    fields = tool.input.model_json_schema(by_alias=True).get("properties", {})
    notes = [f"- {name}: {field['description']}" for name, field in fields.items() if field.get("description")]
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
    return f"{tool.name}{mark}({', '.join(inputs)})" + (f" -> {', '.join(outputs)}" if outputs else "")


class _Fields:
    """Writes the fields of a schema; `bare`: by their names, since nobody writes outputs."""

    def __init__(self, schema: Mapping[str, Any], left_out: frozenset[str], *, bare: bool = False) -> None:
        self._schema = schema
        self._definitions: Mapping[str, Any] = schema.get("$defs", {})
        self._left_out = left_out
        self._bare = bare
        self._open: list[str] = []

    def all(self) -> list[str]:
        """Each field, as it is written."""
        return self._object(self._schema)

    def _object(self, schema: Mapping[str, Any]) -> list[str]:
        required = set(schema.get("required", ()))
        fields = schema.get("properties", {}).items()
        return [self._field(name, field, name in required) for name, field in fields if name not in self._left_out]

    def _field(self, name: str, schema: Mapping[str, Any], required: bool) -> str:
        optional = "" if required or self._bare else "?"
        default = schema.get("default")
        telling = default is True or (isinstance(default, int) and default > 0) or (isinstance(default, str) and len(default.strip()) == 1)
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
                kinds = dict.fromkeys(self._type(option) for option in options if option.get("type") != "null")
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
                return "|".join(dict.fromkeys(self.of(option) for option in options if option.get("type") != "null"))
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


def compact_schema(schema: Any) -> Any:
    """A JSON Schema without titles, and without the null that optional fields may be set to."""
    match schema:
        case {"anyOf": [only, {"type": "null"}], **rest}:
            return compact_schema({**{key: value for key, value in rest.items() if key != "default"}, **only})
        case dict():
            found = {}
            for key, value in schema.items():
                if key == "properties":
                    found[key] = {name: compact_schema(field) for name, field in value.items()}
                elif key != "title" and (key, value) != ("default", None):
                    found[key] = compact_schema(value)
            return found
        case list():
            return [compact_schema(item) for item in schema]
        case _:
            return schema
