"""The contract of a tool: it reads a view of the vault and proposes; it never writes, asks or waits.

A tool is a function with the decorator `tool`, anywhere in this package: the registry finds it. Inputs and outputs are
`ToolModel`s (models.py); fields that hold vault paths are annotated `PathText` (or `list[PathText]`), fields in which
an unknown `${head}` stays literal are annotated `LongText`. The plan package finds them by these annotations.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from inspect import get_annotations
from typing import TYPE_CHECKING, Annotated, Any, Generic, Protocol, Self, TypeVar, get_args

from obsidian_agent.dataclass import dataclass, field
from obsidian_agent.errors import Problem
from obsidian_agent.vault.links.link_text import DEFAULT_STYLE, LinkStyle
from obsidian_agent.vault.paths.path import VaultPath
from obsidian_agent.vault.text import BOM
from obsidian_agent.vault.views.changes import FileChange
from obsidian_agent.vault.views.view import VaultView

if TYPE_CHECKING:
    from pydantic import BaseModel


class Risk(StrEnum):
    """What a tool can do at worst, in rising order."""

    READ_ONLY = "read-only"
    WRITES = "writes"
    COMMANDS = "commands"


class PathMark:
    """Annotation mark of an argument that is a vault path.

    `moved_from`: the argument with the old path of what is moved, which keeps its own name.
    """

    def __init__(self, moved_from: str = "") -> None:
        self.moved_from = moved_from


class LongTextMark:
    """Annotation mark of an argument that is prose or code, where an unknown `${head}` is left as it is."""


PathText = Annotated[str, PathMark()]
LongText = Annotated[str, LongTextMark()]


@dataclass(frozen=True, slots=True)
class EditorPosition:
    """A place in a document as Obsidian's editor counts: 0-based line, column in UTF-16 code units; a byte order mark is not shown."""

    line: int
    ch: int

    @classmethod
    def at(cls, text: str, offset: int) -> Self:
        """The place of an index in a text."""
        start = text.rfind("\n", 0, offset) + 1
        if start == 0 and text.startswith(BOM) and offset:
            start = 1
        return cls(text.count("\n", 0, offset), utf16_length(text[start:offset]))

    def offset_in(self, text: str) -> int | None:
        """The index in a text of this place; None when the text has no such place."""
        start = 0
        for _ in range(self.line):
            start = text.find("\n", start) + 1
            if not start:
                return None
        if self.line == 0 and text.startswith(BOM):
            start = 1
        end = text.find("\n", start)
        line = text[start : len(text) if end < 0 else end].removesuffix("\r")
        column = _column_index(line, self.ch)
        return None if column is None else start + column


def utf16_length(text: str) -> int:
    """The number of UTF-16 code units, which is how Obsidian counts characters."""
    return len(text) if text.isascii() else len(text) + sum(char > "\uffff" for char in text)


def _column_index(line: str, units: int) -> int | None:
    if units < 0:
        return None
    if line.isascii():
        return units if units <= len(line) else None
    seen = 0
    for index, char in enumerate(line):
        if seen >= units:
            return index if seen == units else None
        seen += 2 if char > "\uffff" else 1
    return len(line) if seen == units else None


class AppCommand(Protocol):
    """A command of Obsidian; `source` is the plugin it belongs to."""

    @property
    def id(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def source(self) -> str: ...


@dataclass(frozen=True, slots=True)
class Selection:
    """Selected text; `start` and `end` are its place in the active file, None for text without a place.

    `from_argument`: the user wrote the text into the command, which allows a model to see it.
    """

    text: str
    start: EditorPosition | None = None
    end: EditorPosition | None = None
    from_argument: bool = False


@dataclass(frozen=True, slots=True)
class NoteSettings:
    """How Obsidian's own settings want daily notes and templates: folders ("" is the root), Moment tokens, the path of a template."""

    daily_folder: str = ""
    daily_format: str = "YYYY-MM-DD"
    daily_template: str | None = None
    templates: str = ""
    """The folder of templates; "" when none is set."""
    date_format: str = "YYYY-MM-DD"
    time_format: str = "HH:mm"


@dataclass(frozen=True, slots=True)
class RunContext:
    """What a run knows of its surroundings, frozen when the preview starts."""

    vault_name: str
    now: datetime
    active_file: VaultPath | None = None
    selection: Selection | None = None
    cursor: EditorPosition | None = None
    active_hash: str | None = None
    """SHA-256 of the active note's text when the selection was taken from another program; None where it was not."""
    open_files: tuple[VaultPath, ...] = ()
    recent_files: tuple[VaultPath, ...] = ()
    has_screen: bool = False
    """Whether a person sees an app that can open notes."""
    runs_commands: bool = False
    """Whether an Obsidian is there that runs commands."""
    commands: Callable[[], Sequence[AppCommand]] = field(default=tuple, compare=False)
    """Asks it for its commands, once a run. Raises `ObsidianError`."""
    has_desktop: Callable[[], bool] = field(default=bool, compare=False)
    """Whether a desktop can open a note in an Obsidian that does not run yet."""
    params: Mapping[str, Any] = field(default_factory=dict)
    """Bound parameters, by name; they shadow the context's own names."""
    link_style: LinkStyle = DEFAULT_STYLE
    """The vault's settings for links."""
    notes: NoteSettings = NoteSettings()


@dataclass(frozen=True, slots=True)
class ToolContext:
    """All a tool gets besides its arguments: the vault as earlier steps left it, the vault at the start, and the run's context."""

    view: VaultView
    base: VaultView
    run: RunContext
    show: Callable[[Sequence[FileChange]], None] = lambda changes: None
    """For a tool that changes many files: shows the first of them while it goes on. To be called with all so far at each more."""


Input = TypeVar("Input", bound="BaseModel")
Output = TypeVar("Output", bound="BaseModel")


@dataclass(frozen=True, slots=True)
class Proposal(Generic[Output]):
    """What a tool answers: its output, the changes it wants, and warnings for the person."""

    output: Output
    changes: tuple[FileChange, ...] = ()
    warnings: tuple[Problem, ...] = ()


@dataclass(frozen=True, slots=True)
class Tool:
    """One thing a plan can do. `opaque` tools (commands, other programs) cannot be known in advance and are never previewed."""

    name: str
    summary: str
    risk: Risk
    input: type[BaseModel]
    output: type[BaseModel]
    propose: Callable[[Any, ToolContext], Proposal[Any]]
    deletes: bool = False
    opaque: bool = False
    aliases: tuple[str, ...] = ()


def tool(
    name: str,
    risk: Risk,
    *,
    deletes: bool = False,
    opaque: bool = False,
    aliases: tuple[str, ...] = (),
) -> Callable[[Callable[[Input, ToolContext], Proposal[Output]]], Tool]:
    """Makes a tool of a function `(args: Input, ctx: ToolContext) -> Proposal[Output]`: input and output are the models that its types
    name, its docstring is the summary that people and models read."""

    def made(propose: Callable[[Input, ToolContext], Proposal[Output]]) -> Tool:
        hints = get_annotations(propose, eval_str=True)
        (output,) = get_args(hints["return"])
        return Tool(
            name,
            " ".join((propose.__doc__ or "").split()),
            risk,
            hints["args"],
            output,
            propose,
            deletes,
            opaque,
            aliases,
        )

    return made
