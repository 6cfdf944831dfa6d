"""Every tool a plan can use, by name: the closed list, its aliases, and the names that models' function calls can have."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final

from obsidian_agent.errors import ConfigError
from obsidian_agent.tools.core import new_names
from obsidian_agent.tools.core.tool import Tool
from obsidian_agent.tools.editor import selection, workspace
from obsidian_agent.tools.editor import selection as link_selection
from obsidian_agent.tools.editor import workspace as commands
from obsidian_agent.tools.files import create, duplicates, move, periodic, read, templates
from obsidian_agent.tools.files import read as reading
from obsidian_agent.tools.links import convert, links, mentions, retarget
from obsidian_agent.tools.links import convert as link_forms
from obsidian_agent.tools.links import links as unresolved
from obsidian_agent.tools.properties import rename, tags
from obsidian_agent.tools.properties import rename as property_names
from obsidian_agent.tools.properties import set as properties
from obsidian_agent.tools.properties import set as property_values
from obsidian_agent.tools.properties import tags as tag_lists
from obsidian_agent.tools.properties import tags as untagging
from obsidian_agent.tools.search import find, names, query, text
from obsidian_agent.tools.text import arrange, lines, lists, parse, sections, statistics, tables, task_lists, tasks, update
from obsidian_agent.tools.text import lines as taking
from obsidian_agent.tools.text import sections as headings
from obsidian_agent.tools.text import statistics as counting
from obsidian_agent.tools.text import tables as table_rows
from obsidian_agent.tools.text import task_lists as task_writing
from obsidian_agent.tools.text import update as edits
from obsidian_agent.tools.text import update as replacing

BUILTIN_TOOLS: Final[tuple[Tool, ...]] = (
    create.ENSURE_FOLDER,
    create.CREATE_FILE,
    reading.READ_FILE,
    reading.READ_FILES,
    create.WRITE_FILE,
    edits.UPDATE_FILE,
    lines.ADD_LINES,
    taking.TAKE_LINES,
    arrange.ARRANGE_LISTS,
    arrange.ARRANGE_LIST,
    replacing.REPLACE_TEXT,
    move.RENAME,
    move.DELETE,
    properties.SET_FRONTMATTER,
    tags.RENAME_TAG,
    text.SEARCH_TEXT,
    names.SEARCH_NAME,
    names.SEARCH_TAG,
    query.QUERY,
    reading.LIST_FILES,
    read.GET_METADATA,
    links.GET_BACKLINKS,
    links.GET_OUTGOING_LINKS,
    links.GET_UNRESOLVED_LINKS,
    selection.GET_SELECTION,
    selection.REPLACE_SELECTION,
    selection.INSERT_AT_CURSOR,
    link_selection.LINK_SELECTION,
    selection.GET_ACTIVE_FILE_PATH,
    workspace.OPEN_FILE,
    workspace.GET_CONTEXT,
    commands.LIST_COMMANDS,
    commands.RUN_COMMAND,
    parse.PARSE_BULLETS,
    parse.PARSE_HEADINGS,
    parse.PARSE_TASKS,
    parse.FORMAT_LIST,
    parse.SLUGIFY_TITLE,
    convert.LINK_BULLETS,
    update.NOTE_BODY,
    tasks.MARK_TASKS,
    tasks.TAKE_TASKS,
    task_writing.ADD_TASK,
    task_writing.SET_TASK_DUE,
    find.FIND,
    task_lists.LIST_TASKS,
    tag_lists.LIST_TAGS,
    unresolved.LIST_UNRESOLVED,
    unresolved.SUGGEST_LINKS,
    retarget.RETARGET_LINKS,
    retarget.REMOVE_LINKS,
    mentions.LINK_MENTIONS,
    duplicates.FIND_DUPLICATES,
    link_forms.CONVERT_LINKS,
    rename.INLINE_TO_PROPERTIES,
    property_names.RENAME_PROPERTY,
    property_values.ADD_VALUES,
    property_values.REMOVE_VALUES,
    untagging.REMOVE_TAGS,
    sections.TAKE_SECTION,
    headings.CHANGE_HEADING,
    headings.SHIFT_HEADINGS,
    sections.OUTLINE,
    tables.PARSE_TABLE,
    tables.FORMAT_TABLE,
    new_names.NEW_NAMES,
    table_rows.ADD_TABLE_ROW,
    counting.COUNT_WORDS,
    statistics.SUMMARIZE,
    lists.SORT_ITEMS,
    lists.FIELD_VALUES,
    lists.GROUP_ITEMS,
    templates.RENDER,
    periodic.PERIOD_NOTE,
)


def by_name(tools: Iterable[Tool]) -> Mapping[str, Tool]:
    """The tools by their names, in the given order. ConfigError when two share a name, an alias or its spelling in models' calls."""
    table: dict[str, Tool] = {}
    taken: set[str] = set()
    for tool in tools:
        for name in (tool.name, *tool.aliases):
            for spelling in {name, wire_name(name)}:
                if spelling in taken:
                    raise ConfigError(f"Two tools have the name {spelling!r}.")
                taken.add(spelling)
        table[tool.name] = tool
    return MappingProxyType(table)


def aliases() -> Mapping[str, str]:
    """The name of the tool that each alias stands for. Aliases are for models' calls; a plan must use names."""
    return _ALIASES


def wire_name(name: str) -> str:
    """A tool's name as models may call it, where a dot is not allowed: `vault.createFile` is `vault__createFile`."""
    return name.replace(".", "__")


def from_wire(name: str) -> str:
    """The tool's name behind the name in a model's call; aliases and names with a dot are understood, unknown names stay as they are."""
    dotted = name.replace("__", ".")
    return dotted if dotted in TOOLS else _ALIASES.get(name) or _ALIASES.get(dotted) or name


TOOLS: Final[Mapping[str, Tool]] = by_name(BUILTIN_TOOLS)
"""All tools by name."""

_ALIASES: Final[Mapping[str, str]] = MappingProxyType({alias: tool.name for tool in BUILTIN_TOOLS for alias in tool.aliases})
