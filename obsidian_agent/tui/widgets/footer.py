"""The footer with the keys that are in force, as far as they fit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.cells import cell_len
from textual.app import ComposeResult
from textual.binding import Binding
from textual.screen import Screen
from textual.widgets import Footer
from textual.widgets._footer import FooterKey

_ELSEWHERE = frozenset(("next_pane", "open_note", "zoom"))
"""Actions of the main screen that lead to another pane."""


class KeyFooter(Footer):
    """A footer that is composed again only if its keys have changed.

    Textual's does so after each key and each change of the focus, and styles each key three times.
    """

    _keys: tuple[tuple[Binding, bool, str], ...] | None = None
    """The keys that it shows, with whether they are enabled and their tooltips."""

    def compose(self) -> ComposeResult:
        self._keys = self._current_keys() if self._bindings_ready else None
        widgets = list(super().compose())
        keys = [widget for widget in widgets if isinstance(widget, FooterKey)]
        for key in keys:
            if not _is_palette(key):
                # Else it would be styled as compact first.
                key.set_reactive(FooterKey.compact, self.compact)
        self._hide_excess(keys)
        yield from widgets

    def on_resize(self) -> None:
        self._hide_excess(list(self.query(FooterKey)))

    def _hide_excess(self, keys: Sequence[FooterKey]) -> None:
        """Hide keys that don't fit. F1 lists all."""
        excess = sum(map(_width, keys)) - (self.size.width or self.app.size.width)
        for key in keys:
            key.display = True
        for key in _dispensable(keys):
            if excess <= 0:
                break
            key.display = False
            excess -= _width(key)

    def bindings_changed(self, screen: Screen[object]) -> None:
        if not self.is_attached or self._keys != self._current_keys():
            super().bindings_changed(screen)

    def _current_keys(self) -> tuple[tuple[Binding, bool, str], ...]:
        palette = self.app.COMMAND_PALETTE_BINDING
        return tuple(
            (binding, enabled, tooltip)
            for key, (_, binding, enabled, tooltip) in self.screen.active_bindings.items()
            if binding.show or key == palette
        )


def _is_palette(key: FooterKey) -> bool:
    return key.has_class("-command-palette")


def _width(key: FooterKey) -> int:
    blanks = 5 if _is_palette(key) else 3
    return cell_len(key.key_display) + cell_len(key.description) + blanks


def _dispensable(keys: Sequence[FooterKey]) -> Iterator[FooterKey]:
    """Yield the keys that can be hidden, the least needed first.

    These are the keys that only go elsewhere, the menu, Esc that closes, and the others from the
    last on. Help stays, which names them all.
    """
    elsewhere = [key for key in reversed(keys) if key.action in _ELSEWHERE]
    menu = [key for key in keys if _is_palette(key)]
    closing = [key for key in keys if key.key == "escape" and key.description == "Close"]
    first = [*elsewhere, *menu, *closing]
    yield from first
    yield from (key for key in reversed(keys) if key not in first and key.action != "help")
