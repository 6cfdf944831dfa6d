"""The one card of a first start: a model runs on this machine, and nobody has said yet whether it shall be used."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.app import ComposeResult

from obsidian_agent import terminal_text
from obsidian_agent.tui.keys import bindings
from obsidian_agent.tui.screens.choices import Choice, ChoiceList
from obsidian_agent.tui.screens.modal import Modal

if TYPE_CHECKING:
    from obsidian_agent.agent.local_models import Offer

USE, MENU, SERVICE = "use", "menu", "service"

NO_MODEL = "No model is chosen: what you say is looked for among the actions, and F2 has them all. /key and /model use a service."
"""Said where nothing runs on this machine that could be offered."""


class FirstStart(Modal[str]):
    """Dismisses with the answer; Escape is none, and the next start asks again."""

    BINDINGS = bindings("card")

    def __init__(self, offer: Offer) -> None:
        title = f"{terminal_text.shortened(offer.title, 40)} with {terminal_text.shortened(offer.model, 80)} runs here. Use it?"
        super().__init__(
            title, "Nothing is downloaded. /model and the settings (F5) change it at any time. Esc: asked again at the next start."
        )

    def body(self) -> ComposeResult:
        yield ChoiceList(
            [
                Choice(USE, "Use it", "it picks from the actions, in any language", "1"),
                Choice(MENU, "Only the menu", "what is certain at once, forms for the rest", "2"),
                Choice(SERVICE, "A service with a key", "OpenAI, Anthropic, Gemini and others", "3"),
            ]
        )

    def on_mount(self) -> None:
        self.query_one(ChoiceList).focus()

    def on_virtual_list_chosen(self, event: ChoiceList.Chosen) -> None:
        self.dismiss(event.list.rows[event.index].key)

    def action_pick(self, index: int) -> None:
        self.dismiss(self.query_one(ChoiceList).rows[index].key)
