"""The closed list of tools that plans can use, their aliases, and their names for models."""

from __future__ import annotations

import pkgutil
from collections.abc import Iterator, Mapping
from functools import cache, cached_property
from importlib import import_module
from typing import Final

from obsidian_agent import tools as package
from obsidian_agent.tools.core.tool import Tool

_MODULES: Final[Mapping[str, str]] = {
    "vault.ensureFolder": "files.create",
    "vault.createFile": "files.create",
    "vault.readFile": "files.read",
    "vault.readFiles": "files.read",
    "vault.writeFile": "files.create",
    "vault.updateFile": "text.update",
    "vault.addLines": "text.lines",
    "vault.takeLines": "text.lines",
    "vault.arrangeLists": "text.lists",
    "util.arrangeList": "text.lists",
    "vault.replaceText": "text.update",
    "vault.rename": "files.move",
    "vault.delete": "files.move",
    "vault.setFrontmatter": "properties",
    "vault.renameTag": "tags",
    "vault.searchText": "search.hits",
    "vault.searchName": "search.hits",
    "vault.searchTag": "search.hits",
    "vault.query": "search.find",
    "vault.listFiles": "files.read",
    "vault.getMetadata": "files.read",
    "vault.getBacklinks": "links.links",
    "vault.getOutgoingLinks": "links.links",
    "vault.getUnresolvedLinks": "links.links",
    "editor.getSelection": "editor",
    "editor.replaceSelection": "editor",
    "editor.insertAtCursor": "editor",
    "editor.linkSelection": "editor",
    "editor.getActiveFilePath": "editor",
    "workspace.openFile": "workspace",
    "workspace.getContext": "workspace",
    "commands.list": "commands",
    "commands.run": "commands",
    "util.parseMarkdownBullets": "text.lists",
    "util.parseHeadings": "text.sections",
    "util.parseTasks": "text.tasks",
    "util.formatList": "items",
    "util.slugifyTitle": "files.names",
    "util.linkBullets": "links.rewrite",
    "util.noteBody": "text.sections",
    "vault.markTasks": "text.tasks",
    "vault.takeTasks": "text.tasks",
    "vault.addTask": "text.tasks",
    "vault.setTaskDue": "text.tasks",
    "vault.postponeTasks": "text.tasks",
    "vault.find": "search.find",
    "vault.listTasks": "text.tasks",
    "vault.listTags": "tags",
    "vault.listUnresolved": "links.links",
    "vault.suggestLinks": "links.links",
    "vault.retargetLinks": "links.rewrite",
    "vault.removeLinks": "links.rewrite",
    "vault.linkMentions": "links.rewrite",
    "vault.findDuplicates": "search.duplicates",
    "vault.convertLinks": "links.rewrite",
    "vault.inlineToProperties": "properties",
    "vault.renameProperty": "properties",
    "vault.renameValue": "properties",
    "vault.addValues": "properties",
    "vault.takeProperties": "properties",
    "vault.propertyFromHeading": "properties",
    "vault.removeValues": "properties",
    "vault.removeTags": "tags",
    "vault.takeSection": "text.sections",
    "vault.changeHeading": "text.sections",
    "vault.shiftHeadings": "text.sections",
    "util.outline": "text.sections",
    "util.parseTable": "text.tables",
    "util.formatTable": "text.tables",
    "util.newNames": "files.names",
    "vault.addTableRow": "text.tables",
    "vault.countWords": "files.read",
    "util.summarize": "items",
    "util.sortItems": "items",
    "util.fieldValues": "items",
    "util.groupItems": "items",
    "template.render": "files.templates",
    "util.periodNote": "files.periodic",
    "util.periodNotes": "files.periodic",
}
"""The module of each tool, in the order in which tools are listed.

A tool that is missing here is discovered too, but only by importing all modules.
"""


class _Tools(Mapping[str, Tool]):
    """The tools by name.

    The module of a tool is imported on access, all modules when the tools are listed.
    """

    def __getitem__(self, name: str) -> Tool:
        return _defined(_MODULES[name])[name] if name in _MODULES else self._all[name]

    def __contains__(self, name: object) -> bool:
        return name in _MODULES or name in self._all

    def __iter__(self) -> Iterator[str]:
        return iter(self._all)

    def __len__(self) -> int:
        return len(self._all)

    @cached_property
    def _all(self) -> Mapping[str, Tool]:
        defined = {tool.name: tool for tool in defined_tools()}
        return {
            name: defined[name] for name in (*_MODULES, *sorted(defined.keys() - _MODULES.keys()))
        }


TOOLS: Final[Mapping[str, Tool]] = _Tools()
"""All tools by name."""


def defined_tools() -> Iterator[Tool]:
    """Yield the tools that the modules of this package define."""
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        yield from _defined(module.name.removeprefix(f"{package.__name__}.")).values()


@cache
def _defined(module: str) -> Mapping[str, Tool]:
    members = vars(import_module(f"{package.__name__}.{module}")).values()
    return {member.name: member for member in members if isinstance(member, Tool)}


@cache
def aliases() -> Mapping[str, str]:
    """Return the tool name of each alias. Aliases are for calls of models; plans must use names."""
    return {alias: tool.name for tool in TOOLS.values() for alias in tool.aliases}


def wire_name(name: str) -> str:
    """Return the name of a tool for models, which allow no dot: `vault__createFile`."""
    return name.replace(".", "__")


def from_wire(name: str) -> str:
    """Return the tool name for the name in a call of a model.

    Aliases and names with a dot are understood; unknown names stay unchanged.
    """
    dotted = name.replace("__", ".")
    return dotted if dotted in TOOLS else aliases().get(name) or aliases().get(dotted) or name
