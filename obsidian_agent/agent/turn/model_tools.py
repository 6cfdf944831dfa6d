"""The read tools as models may call them: a closed list, with what each shows, and functions in the shape that services want.

A tool that is not listed here is not offered, however harmless it calls itself. Tools that only work on text which the caller has already
are left out: a model needs no help with those.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from typing import Any, Final

from obsidian_agent.agent.turn.signatures import Detail, clause, compact_schema
from obsidian_agent.providers.base import ToolOffer
from obsidian_agent.tools.core.tool import Tool
from obsidian_agent.tools.registry import wire_name

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
    ReadTool("vault.getMetadata", "Read a file's properties, headings, links and tasks", Reveals.FILES),
    ReadTool("vault.getOutgoingLinks", "Read a note's links", Reveals.FILES, "items"),
    ReadTool("vault.getUnresolvedLinks", "Read a note's links that lead nowhere", Reveals.FILES, "items"),
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


def offers(tools: Mapping[str, Tool], *, propose: bool, detail: Detail = "full") -> tuple[ToolOffer, ...]:
    """The functions on offer, always in the same order: services remember a beginning that does not change."""
    named = [name for name in READ_TOOLS if name in tools and (detail == "full" or name in _SHORT)]
    found = tuple(_offer(tools[name], detail) for name in named)
    return (*found, DESCRIPTION, _PROPOSAL) if propose else (*found, DESCRIPTION)


@lru_cache(maxsize=64)
def _offer(tool: Tool, detail: Detail) -> ToolOffer:
    """A function as small as it can be: `describe_tools` explains what its arguments mean."""
    schema: dict[str, Any] = compact_schema(tool.input.model_json_schema(by_alias=True))
    fields = schema.get("properties", {})
    told = _SHORT[tool.name] if detail == "short" else [name for name in fields if name not in ("limit", "maxBytes")]
    properties = {name: {key: fields[name][key] for key in ("type", "items", "enum") if key in fields[name]} for name in told}
    if detail == "full" and READ_TOOLS[tool.name].rows is not None:
        properties["offset"] = {"type": "integer"}
    required = {"required": schema["required"]} if schema.get("required") else {}
    parameters = {"type": "object", "properties": properties | {"why": {"type": "string"}}, **required}
    return ToolOffer(wire_name(tool.name), clause(tool.summary), parameters)


DESCRIPTION: Final = ToolOffer(
    DESCRIBE_TOOLS,
    "Explain tools: all their arguments and outputs.",
    {"type": "object", "properties": {"names": {"type": "array", "items": {"type": "string"}}}, "required": ["names"]},
)
_PROPOSAL = ToolOffer(
    PROPOSE_PLAN,
    "Propose changes as one ActionPlan.",
    {"type": "object", "properties": {"plan": {"type": "object"}}, "required": ["plan"]},
)
