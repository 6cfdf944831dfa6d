"""The contract of a tool: it reads a view of the vault and returns a proposal.

A tool never writes, prompts or waits. It is a function with the decorator `tool` anywhere in this
package; the registry discovers it. Inputs and outputs are `ToolModel`s (models.py). Fields with
vault paths are annotated `PathText` (or `list[PathText]`), fields in which an unknown `${head}`
stays literal are annotated `LongText`. The plan package relies on these annotations.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from inspect import get_annotations
from typing import TYPE_CHECKING, Annotated, Any, Generic, Protocol, Self, TypeVar, get_args

from msgspec import Struct, field

from obsidian_agent.errors import Problem
from obsidian_agent.vault.links.link_text import DEFAULT_STYLE, LinkStyle
from obsidian_agent.vault.paths.path import VaultPath
from obsidian_agent.vault.text import BOM
from obsidian_agent.vault.views.changes import FileChange
from obsidian_agent.vault.views.view import VaultView

if TYPE_CHECKING:
    from pydantic import BaseModel


Input = TypeVar("Input", bound="BaseModel")

Output = TypeVar("Output", bound="BaseModel")


class Risk(StrEnum):
    """The worst effect that a tool can have, in rising order."""

    READ_ONLY = "read-only"
    WRITES = "writes"
    COMMANDS = "commands"


class PathMark:
    """The annotation of an argument that is a vault path.

    `moved_from` is the argument with the old path of an entry that moves, which keeps its own name.
    """

    def __init__(self, moved_from: str = "") -> None:
        self.moved_from = moved_from


class LongTextMark:
    """The annotation of prose or code, in which an unknown `${head}` stays unchanged."""


PathText = Annotated[str, PathMark()]
LongText = Annotated[str, LongTextMark()]


class EditorPosition(Struct, frozen=True):
    """A position in a document as Obsidian's editor counts it.

    Lines count from 0, columns in UTF-16 code units; a byte order mark does not count.
    """

    line: int
    ch: int

    @classmethod
    def at(cls, text: str, offset: int) -> Self:
        """Return the position of an index in a text."""
        start = text.rfind("\n", 0, offset) + 1
        if start == 0 and text.startswith(BOM) and offset:
            start = 1
        return cls(text.count("\n", 0, offset), utf16_length(text[start:offset]))

    def offset_in(self, text: str) -> int | None:
        """Return the index of this position in a text, or `None` if there is no such position."""
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
    """Return the number of UTF-16 code units, which is how Obsidian counts characters."""
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
    """A command of Obsidian; `source` is the plugin that it belongs to."""

    @property
    def id(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def source(self) -> str: ...


class Selection(Struct, frozen=True):
    """Selected text.

    `start` and `end` are its position in the active file, `None` for text without a position.
    `from_argument`: the user wrote the text into the command, which allows sending it to a model.
    """

    text: str
    start: EditorPosition | None = None
    end: EditorPosition | None = None
    from_argument: bool = False


class NoteSettings(Struct, frozen=True, kw_only=True):
    """Obsidian's settings for daily notes and templates.

    They are folders ("" is the root), formats in Moment.js tokens, and the path of a template.
    """

    daily_folder: str = ""
    daily_format: str = "YYYY-MM-DD"
    daily_template: str | None = None
    templates: str = ""
    """The folder of templates; "" if none is set."""
    date_format: str = "YYYY-MM-DD"
    time_format: str = "HH:mm"


class RunContext(Struct, frozen=True):
    """The surroundings of a run, frozen when the preview starts."""

    vault_name: str
    now: datetime
    active_file: VaultPath | None = None
    selection: Selection | None = None
    cursor: EditorPosition | None = None
    active_hash: str | None = None
    """SHA-256 of the active note's text if another program provided the selection, else `None`."""
    open_files: tuple[VaultPath, ...] = ()
    recent_files: tuple[VaultPath, ...] = ()
    has_screen: bool = False
    """True if the app is on screen and can open notes."""
    runs_commands: bool = False
    """True if a connected Obsidian can run commands."""
    commands: Callable[[], Sequence[AppCommand]] = tuple
    """Asks Obsidian for its commands, once per run. Raises `ObsidianError`."""
    has_desktop: Callable[[], bool] = bool
    """Returns True if a desktop can open a note in an Obsidian that is not running yet."""
    params: Mapping[str, Any] = field(default_factory=dict)
    """Bound parameters by name; they shadow the names of the context."""
    link_style: LinkStyle = DEFAULT_STYLE
    """The vault's settings for links."""
    notes: NoteSettings = NoteSettings()


class ToolContext(Struct, frozen=True):
    """The input of a tool in addition to its arguments.

    `view` is the vault as earlier steps left it, `base` the vault at the start.
    """

    view: VaultView
    base: VaultView
    run: RunContext
    show: Callable[[Sequence[FileChange]], None] = lambda changes: None
    """Displays progress of a tool that changes many files; call it with all changes so far."""


class Proposal(Struct, Generic[Output], frozen=True):
    """The result of a tool: its output, the changes it proposes, and warnings for the user."""

    output: Output
    changes: tuple[FileChange, ...] = ()
    warnings: tuple[Problem, ...] = ()


class Tool(Struct, frozen=True, kw_only=True):
    """An operation that plans can use.

    `opaque` tools (commands, other programs) have unpredictable effects and are never previewed.
    """

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
    """Make a tool of a function `(args: Input, ctx: ToolContext) -> Proposal[Output]`.

    Input and output are the models in its annotations. Its docstring is the summary that users and
    models read.
    """

    def decorate(propose: Callable[[Input, ToolContext], Proposal[Output]]) -> Tool:
        hints = get_annotations(propose, eval_str=True)
        (output,) = get_args(hints["return"])
        return Tool(
            name=name,
            summary=" ".join((propose.__doc__ or "").split()),
            risk=risk,
            input=hints["args"],
            output=output,
            propose=propose,
            deletes=deletes,
            opaque=opaque,
            aliases=aliases,
        )

    return decorate
