"""The footer with the keys that are in force."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.binding import Binding
from textual.screen import Screen
from textual.widgets import Footer
from textual.widgets._footer import FooterKey


class KeyFooter(Footer):
    """A footer that is composed again only if its keys have changed.

    Textual's does so after each key and each change of the focus, and styles each key three times.
    """

    _keys: tuple[tuple[Binding, bool, str], ...] | None = None
    """The keys that it shows, with whether they are enabled and their tooltips."""

    def compose(self) -> ComposeResult:
        self._keys = self._current_keys() if self._bindings_ready else None
        for widget in super().compose():
            if isinstance(widget, FooterKey) and not widget.has_class("-command-palette"):
                # Else it would be styled as compact first.
                widget.set_reactive(FooterKey.compact, self.compact)
            yield widget

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
