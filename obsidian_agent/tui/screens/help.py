"""All keys and commands on one screen, those of the focused part first."""

from __future__ import annotations

import textwrap
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widgets import Input, Static, TextArea

from obsidian_agent.tui import bindings, commands
from obsidian_agent.tui.bindings import CONTEXTS, KEYS, current_keys, format_keys
from obsidian_agent.tui.screens.dialogs import Modal
from obsidian_agent.tui.widgets.prompt import LineEntry

if TYPE_CHECKING:
    from textual.dom import DOMNode

KEYS_WIDTH = 24
"""Columns of the keys and commands, left of their descriptions, if that leaves two thirds."""


class Help(Modal[None]):
    """The tables of all keys and all commands, with a search.

    `focused_keys` are the ids of the keys that work where the focus was, by context. They come
    first.
    """

    BINDINGS = bindings.bindings("find", without=("find.choose",))
    AUTO_FOCUS = "LineEntry"

    def __init__(self, focused_keys: Mapping[str, Collection[str]] | None = None) -> None:
        super().__init__("Keys and commands")
        self._focused_keys = focused_keys or {}
        self._query = ""

    def body(self) -> ComposeResult:
        yield LineEntry(placeholder="Find a key or command", compact=False)
        with VerticalScroll(can_focus=False):
            yield Static("", id="keys", markup=False)

    def on_resize(self) -> None:
        self.call_after_refresh(self._draw)

    def on_input_changed(self, event: Input.Changed) -> None:
        self._query = event.value
        self._draw()
        self.query_one(VerticalScroll).scroll_home(animate=False)

    def action_move(self, step: int) -> None:
        self.query_one(VerticalScroll).scroll_relative(y=step, animate=False)

    def action_page(self, direction: int) -> None:
        scroll = self.query_one(VerticalScroll)
        scroll.scroll_relative(y=direction * max(1, scroll.size.height - 1), animate=False)

    def _draw(self) -> None:
        self.query_one("#keys", Static).update(
            self._table(self.query_one(VerticalScroll).scrollable_content_region.width)
        )

    def _table(self, width: int) -> Content:
        intro = (
            "You see every changed file and line first. "
            "Nothing is written until you approve it, and every run can be undone."
        )
        words = self._query.casefold().split()
        parts: list[tuple[str, str]] = [] if words else [(f"{intro}\n", "$quiet")]
        keys_width = min(KEYS_WIDTH, width // 3)
        widths = keys_width, max(width - keys_width - 1, 16)
        for context in dict.fromkeys([*self._focused_keys, *CONTEXTS]):
            title = CONTEXTS[context]
            keys = [key for key in KEYS if key.context == context]
            if context in self._focused_keys:
                title = f"Here: {title}"
                keys = [key for key in keys if key.id in self._focused_keys[context]]
            rows = [(format_keys(current_keys(self, key.id)), key.help) for key in keys]
            parts += _section(title, rows, words, widths)
        rows = [
            (f"/{command.name} {command.hint}".rstrip(), f"{command.title}: {command.help}")
            for command in _commands()
        ]
        parts += _section("Commands, written as a message", rows, words, widths)
        if not parts:
            parts.append(("No key or command has these words.", "$quiet"))
        return Content.assemble(*parts).rstrip()


def focused_keys(node: DOMNode | None) -> Mapping[str, Collection[str]]:
    """Return the ids of the keys that a widget and those around it bind, inner contexts first.

    Letters and digits that a field takes as text are none.
    """
    keys: dict[str, set[str]] = {}
    takes_text = isinstance(node, Input | TextArea)
    for parent in node.ancestors_with_self if node is not None else ():
        for bound in parent._bindings.key_to_bindings.values():  # Textual has no public getter
            for binding in bound:
                id = binding.id or ""
                context = id.partition(".")[0]
                if context in CONTEXTS and context not in ("app", "main"):
                    keys.setdefault(context, set()).add(id)
    for key in KEYS:
        if key.context in keys:
            # A key without an action is one of the widget itself.
            works = not key.action or key.id in keys[key.context]
            is_text = takes_text and all(len(name) == 1 for name in key.keys.split(","))
            if works and not is_text:
                keys[key.context].add(key.id)
            else:
                keys[key.context].discard(key.id)
    return keys


def _section(
    title: str, rows: Sequence[tuple[str, str]], words: Sequence[str], widths: tuple[int, int]
) -> list[tuple[str, str]]:
    """Return the rows that have every word, below their title; nothing without rows."""
    matches = [
        row
        for row in rows
        if all(word in f"{title} {row[0]} {row[1]}".casefold() for word in words)
    ]
    if not matches:
        return []
    return [(f"\n{title}\n", "bold"), *(part for row in matches for part in _row(*row, *widths))]


def _row(left: str, right: str, width: int, room: int) -> list[tuple[str, str]]:
    """Return a row of a table: keys or a command on the left, its wrapped description beside it."""
    lines = textwrap.wrap(right, room)
    if len(left) >= width:
        lines = ["", *lines]
    first, *rest = lines
    return [
        (f"{left:<{width}}", "$primary"),
        (f"{first}\n", "$foreground"),
        *((f"{'':<{width}}{line}\n", "$foreground") for line in rest),
    ]


def _commands() -> list[commands.Command]:
    from obsidian_agent.tui.screens.main import MainScreen

    return MainScreen.commands()


def keys_page() -> str:
    """Return the text of docs/keys.md: all keys and commands."""
    return bindings.markdown() + commands.markdown(_commands())
