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

from obsidian_agent.agent.signatures import compact_schema
from obsidian_agent.providers.base import ToolOffer
from obsidian_agent.tools.base import Tool
from obsidian_agent.tools.registry import wire_name

PROPOSE_PLAN: Final = "propose_plan"
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


def offers(tools: Mapping[str, Tool], *, propose: bool) -> tuple[ToolOffer, ...]:
    """The functions on offer, always in the same order: services remember a beginning that does not change."""
    found = tuple(_offer(tools[name]) for name in READ_TOOLS if name in tools)
    return (*found, _PROPOSAL) if propose else found


_WHY = {"type": "string", "description": "For the person who is asked: in one short sentence, what this is needed for."}
_LIMIT = {"type": "integer", "description": f"At most so many; {USUAL_ROWS} when absent, {MOST_ROWS} at most."}
_OFFSET = {"type": "integer", "description": "Leave out so many from the beginning: the next page."}


@lru_cache(maxsize=64)
def _offer(tool: Tool) -> ToolOffer:
    schema: dict[str, Any] = compact_schema(tool.input.model_json_schema(by_alias=True))
    properties = dict(schema.get("properties", {}))
    if READ_TOOLS[tool.name].rows is not None:
        properties |= {"limit": _LIMIT, "offset": _OFFSET}
    parameters = {**schema, "type": "object", "properties": properties | {"why": _WHY}}
    return ToolOffer(wire_name(tool.name), tool.summary, parameters)


_PROPOSAL = ToolOffer(
    PROPOSE_PLAN,
    "Propose changes to the vault as one ActionPlan. It is checked and dry-run; the person sees every change before anything happens.",
    {
        "type": "object",
        "properties": {"plan": {"type": "object", "description": "An ActionPlan, as the system prompt describes it."}},
        "required": ["plan"],
    },
)
