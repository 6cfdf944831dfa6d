"""Every tool a plan can use, by name: the closed list, its aliases, and the names that models' function calls can have."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final

from obsidian_agent.errors import ConfigError
from obsidian_agent.tools import (
    adding,
    arranging,
    bodies,
    bullet_links,
    commands,
    counting,
    duplicates,
    editor,
    edits,
    files,
    finding,
    headings,
    inline_fields,
    link_forms,
    link_selection,
    links,
    lists,
    mentions,
    metadata,
    moving,
    new_names,
    periods,
    properties,
    property_names,
    property_values,
    queries,
    reading,
    rendering,
    replacing,
    retargeting,
    search,
    sections,
    selecting,
    statistics,
    table_rows,
    tables,
    tag_lists,
    tags,
    taking,
    task_lists,
    task_writing,
    tasks,
    unresolved,
    untagging,
    util,
    workspace,
)
from obsidian_agent.tools.base import Tool

BUILTIN_TOOLS: Final[tuple[Tool, ...]] = (
    files.ENSURE_FOLDER,
    files.CREATE_FILE,
    reading.READ_FILE,
    reading.READ_FILES,
    files.WRITE_FILE,
    edits.UPDATE_FILE,
    adding.ADD_LINES,
    taking.TAKE_LINES,
    arranging.ARRANGE_LISTS,
    arranging.ARRANGE_LIST,
    replacing.REPLACE_TEXT,
    moving.RENAME,
    moving.DELETE,
    properties.SET_FRONTMATTER,
    tags.RENAME_TAG,
    search.SEARCH_TEXT,
    finding.SEARCH_NAME,
    finding.SEARCH_TAG,
    queries.QUERY,
    reading.LIST_FILES,
    metadata.GET_METADATA,
    links.GET_BACKLINKS,
    links.GET_OUTGOING_LINKS,
    links.GET_UNRESOLVED_LINKS,
    editor.GET_SELECTION,
    editor.REPLACE_SELECTION,
    editor.INSERT_AT_CURSOR,
    link_selection.LINK_SELECTION,
    editor.GET_ACTIVE_FILE_PATH,
    workspace.OPEN_FILE,
    workspace.GET_CONTEXT,
    commands.LIST_COMMANDS,
    commands.RUN_COMMAND,
    util.PARSE_BULLETS,
    util.PARSE_HEADINGS,
    util.PARSE_TASKS,
    util.FORMAT_LIST,
    util.SLUGIFY_TITLE,
    bullet_links.LINK_BULLETS,
    bodies.NOTE_BODY,
    tasks.MARK_TASKS,
    tasks.TAKE_TASKS,
    task_writing.ADD_TASK,
    task_writing.SET_TASK_DUE,
    selecting.FIND,
    task_lists.LIST_TASKS,
    tag_lists.LIST_TAGS,
    unresolved.LIST_UNRESOLVED,
    unresolved.SUGGEST_LINKS,
    retargeting.RETARGET_LINKS,
    retargeting.REMOVE_LINKS,
    mentions.LINK_MENTIONS,
    duplicates.FIND_DUPLICATES,
    link_forms.CONVERT_LINKS,
    inline_fields.INLINE_TO_PROPERTIES,
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
    rendering.RENDER,
    periods.PERIOD_NOTE,
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
