"""What values are read against: the vault's names, the day, the open note. Made once for a sentence."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from obsidian_agent.offline.names import Names
from obsidian_agent.tools.core.tool import RunContext, ToolContext
from obsidian_agent.vault.views.view import VaultView


@dataclass(frozen=True)
class Surroundings:
    """A vault at one moment, and the run's context."""

    view: VaultView
    context: RunContext
    known: Names | None = None
    """Names that were read before: they hold as long as the index is the same."""

    @cached_property
    def names(self) -> Names:
        """The names of the vault, from its index. May block."""
        names = Names.of(self.view)
        return self.known if self.known is not None and self.known.index is names.index else names

    @property
    def active_file(self) -> str | None:
        """The path of the open note."""
        return self.context.active_file.text if self.context.active_file is not None else None

    @property
    def has_selection(self) -> bool:
        """Whether any text is selected."""
        return bool(self.context.selection and self.context.selection.text.strip())

    @property
    def tools(self) -> ToolContext:
        """The context of a tool that reads this vault."""
        return ToolContext(self.view, self.view, self.context)
