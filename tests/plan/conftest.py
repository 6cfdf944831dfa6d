"""Tools for plans: stand-ins whose fields the tests of the language know, and the product's own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import pytest
from pydantic import Field

from obsidian_agent.tools.core.tool import LongText, PathMark, PathText, Proposal, Risk, Tool, ToolContext, ToolModel, Whole


class Path(ToolModel):
    path: PathText


class Content(ToolModel):
    path: PathText
    content: str


class ReadFile(ToolModel):
    path: PathText
    max_bytes: Whole | None = None


class ReadFiles(ToolModel):
    file_paths: list[PathText]


class CreateFile(ToolModel):
    path: PathText
    content: LongText
    if_not_exists: bool = True
    frontmatter: dict[str, Any] | None = None


class WriteFile(ToolModel):
    path: PathText
    content: LongText


class UpdateFile(ToolModel):
    path: PathText
    mode: str
    content: LongText
    line: Whole | None = None
    marker: str | None = None


class Rename(ToolModel):
    from_: Annotated[str, PathMark()] = Field(alias="from")
    to: PathText


class Folder(ToolModel):
    folder: PathText | None = None


class Query(ToolModel):
    query: str


class Text(ToolModel):
    text: LongText


class Command(ToolModel):
    id: str


def _never(args: object, context: ToolContext) -> Proposal:
    raise AssertionError("validation calls no tool")


def _tool(name: str, risk: Risk, model: type[ToolModel], *aliases: str, deletes: bool = False) -> Tool:
    return Tool(name, name, risk, model, Content, _never, deletes=deletes, aliases=aliases)


STAND_INS = (
    _tool("vault.readFile", Risk.READ_ONLY, ReadFile, "read_vault_file"),
    _tool("vault.readFiles", Risk.READ_ONLY, ReadFiles),
    _tool("vault.listFiles", Risk.READ_ONLY, Folder),
    _tool("vault.searchText", Risk.READ_ONLY, Query),
    _tool("vault.createFile", Risk.WRITES, CreateFile),
    _tool("vault.writeFile", Risk.WRITES, WriteFile),
    _tool("vault.updateFile", Risk.WRITES, UpdateFile),
    _tool("vault.rename", Risk.WRITES, Rename),
    _tool("vault.delete", Risk.WRITES, Path, deletes=True),
    _tool("util.parseMarkdownBullets", Risk.READ_ONLY, Text),
    _tool("commands.run", Risk.COMMANDS, Command),
)


@pytest.fixture(scope="session")
def tools() -> Mapping[str, Tool]:
    """Tools by name, stand-ins whose fields the tests know."""
    return {tool.name: tool for tool in STAND_INS}


@pytest.fixture(scope="session")
def real_tools(tools: Mapping[str, Tool]) -> Mapping[str, Tool]:
    """The product's own tools."""
    from obsidian_agent.tools.registry import TOOLS

    return TOOLS
