"""Every tool a plan can use, by name: the closed list, its aliases, and the names that models' function calls can have."""

from __future__ import annotations

import pkgutil
from collections.abc import Iterable, Iterator, Mapping
from importlib import import_module
from types import MappingProxyType
from typing import Final

from obsidian_agent import tools as package
from obsidian_agent.errors import ConfigError
from obsidian_agent.tools.core.tool import Tool

_LISTED: Final = (
    "vault.ensureFolder", "vault.createFile", "vault.readFile", "vault.readFiles", "vault.writeFile", "vault.updateFile",
    "vault.addLines", "vault.takeLines", "vault.arrangeLists", "util.arrangeList", "vault.replaceText", "vault.rename", "vault.delete",
    "vault.setFrontmatter", "vault.renameTag", "vault.searchText", "vault.searchName", "vault.searchTag", "vault.query",
    "vault.listFiles", "vault.getMetadata", "vault.getBacklinks", "vault.getOutgoingLinks", "vault.getUnresolvedLinks",
    "editor.getSelection", "editor.replaceSelection", "editor.insertAtCursor", "editor.linkSelection", "editor.getActiveFilePath",
    "workspace.openFile", "workspace.getContext", "commands.list", "commands.run", "util.parseMarkdownBullets", "util.parseHeadings",
    "util.parseTasks", "util.formatList", "util.slugifyTitle", "util.linkBullets", "util.noteBody", "vault.markTasks", "vault.takeTasks",
    "vault.addTask", "vault.setTaskDue", "vault.find", "vault.listTasks", "vault.listTags", "vault.listUnresolved", "vault.suggestLinks",
    "vault.retargetLinks", "vault.removeLinks", "vault.linkMentions", "vault.findDuplicates", "vault.convertLinks",
    "vault.inlineToProperties", "vault.renameProperty", "vault.addValues", "vault.removeValues", "vault.removeTags", "vault.takeSection",
    "vault.changeHeading", "vault.shiftHeadings", "util.outline", "util.parseTable", "util.formatTable", "util.newNames",
    "vault.addTableRow", "vault.countWords", "util.summarize", "util.sortItems", "util.fieldValues", "util.groupItems",
    "template.render", "util.periodNote",
)  # fmt: skip
"""The order in which tools are listed, wherever they are defined; others come behind, by name."""


def _found() -> Iterator[Tool]:
    """The tools that the modules of this package define."""
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        if module.name != __name__:
            yield from (each for each in vars(import_module(module.name)).values() if isinstance(each, Tool))


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


_PLACES: Final = {name: place for place, name in enumerate(_LISTED)}

TOOLS: Final[Mapping[str, Tool]] = by_name(sorted(set(_found()), key=lambda tool: (_PLACES.get(tool.name, len(_PLACES)), tool.name)))
"""All tools by name."""

_ALIASES: Final[Mapping[str, str]] = MappingProxyType({alias: tool.name for tool in TOOLS.values() for alias in tool.aliases})
