"""Tools as a model reads them: one line for what goes in, one for what comes out, in a notation far shorter than JSON Schema."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from obsidian_agent.plan.marks import ArgMarks, marks_of
from obsidian_agent.tools.base import Tool


def describe_tools(tools: Iterable[Tool]) -> str:
    """All tools, in the given order."""
    return "\n\n".join(_describe(tool) for tool in tools)


def _describe(tool: Tool) -> str:
    inputs = tool.input.model_json_schema(by_alias=True)
    outputs = tool.output.model_json_schema(by_alias=True)
    marks = "deletes" if tool.deletes else tool.risk.value
    lines = [f"{tool.name} [{marks}] {tool.summary}"]
    lines.append(f"  in: {_Notation(inputs).object(inputs, marks_of(tool.input))}")
    lines.append(f"  out: {_Notation(outputs).object(outputs, ArgMarks())}")
    lines += [f"  - {name}: {field['description']}" for name, field in inputs.get("properties", {}).items() if field.get("description")]
    return "\n".join(lines)


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


class _Notation:
    """Writes a schema as `{name: type, other?: type = default}`."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self._definitions: Mapping[str, Any] = schema.get("$defs", {})
        self._open: list[str] = []

    def object(self, schema: Mapping[str, Any], marks: ArgMarks) -> str:
        required = set(schema.get("required", ()))
        fields = [self._field(name, field, name in required, marks.field(name)) for name, field in schema.get("properties", {}).items()]
        return f"{{{', '.join(fields)}}}"

    def _field(self, name: str, schema: Mapping[str, Any], required: bool, marks: ArgMarks) -> str:
        default = schema.get("default")
        shown = "" if default is None else f" = {json.dumps(default, ensure_ascii=False)}"
        return f"{name}{'' if required else '?'}: {self._type(schema, marks)}{shown}"

    def _type(self, schema: Mapping[str, Any], marks: ArgMarks) -> str:
        match schema:
            case {"$ref": str(reference)}:
                return self._named(reference.rpartition("/")[2], marks)
            case {"const": value}:
                return json.dumps(value, ensure_ascii=False)
            case {"enum": list(values)}:
                return " | ".join(json.dumps(value, ensure_ascii=False) for value in values)
            case {"anyOf": list(options)} | {"oneOf": list(options)}:
                kinds = dict.fromkeys(self._type(option, marks) for option in options if option.get("type") != "null")
                return " | ".join(kinds)
            case {"type": "array", "items": dict(items)}:
                inner = self._type(items, marks.item())
                return f"({inner})[]" if " | " in inner else f"{inner}[]"
            case {"type": "object", "properties": dict()}:
                return self.object(schema, marks)
            case {"type": "string"}:
                return "path" if marks.path else "string"
            case {"type": str(kind)}:
                return kind
            case _:
                return "any"

    def _named(self, name: str, marks: ArgMarks) -> str:
        """A model by its fields; inside itself by its name."""
        if name in self._open:
            return name
        self._open.append(name)
        shown = self._type(self._definitions[name], marks)
        self._open.pop()
        return shown
