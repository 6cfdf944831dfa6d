"""What Obsidian's command line can do by itself, without the companion: name the active file, show a file, list and run commands.

It knows no selection, and no names of commands. Values lose their backslashes (`\\n` becomes a line end), so what holds one, or a control
character, is not handed over. Before each call the window is asked which folder it has open: the id alone does not say who answers.

Source: Obsidian help, "Obsidian CLI".
"""

from __future__ import annotations

import os
import re
from typing import Final

from obsidian_agent.dataclass import dataclass
from obsidian_agent.errors import ObsidianError
from obsidian_agent.obsidian.companion_client import ObsidianCommand
from obsidian_agent.obsidian.transport import Transport

_FAILED: Final = re.compile(r'Error\b|Command ".*" not found|Missing required parameter|Vault not found', re.DOTALL)
_PATH_ROW: Final = re.compile(r"^path[:\t ]+(.+)$", re.MULTILINE)
_UNSAFE: Final = re.compile(r"[\\\x00-\x1f\x7f]")


@dataclass(frozen=True, slots=True)
class CoreCommands:
    """The command line of the Obsidian that has the vault in `folder` (a real path) open. Methods block, and raise `ObsidianError`."""

    transport: Transport
    folder: str
    vault_id: str

    def check(self) -> None:
        """Whether this vault is what answers."""
        found = self._call("vault", "info=path")
        if os.path.realpath(found) != self.folder:
            raise ObsidianError("The Obsidian that answers has another vault open.", hint="Open this vault in Obsidian.")

    def active_file(self) -> str | None:
        """The vault path of the active file; None when there is none."""
        self.check()
        try:
            row = _PATH_ROW.search(self._call("file"))
        except ObsidianError:
            return None
        return row[1].strip() if row else None

    def open(self, path: str, *, new_pane: bool = False) -> None:
        """Show a file."""
        self.check()
        self._call("open", f"path={_safe(path)}", *(["newtab"] if new_pane else []))

    def commands(self) -> tuple[ObsidianCommand, ...]:
        """All commands. The ids stand for the names, which this way does not know."""
        self.check()
        ids = (line.split("\t")[0].strip() for line in self._call("commands").splitlines())
        return tuple(ObsidianCommand(id=id, name=id, source=source_of(id)) for id in ids if id)

    def run(self, id: str) -> None:
        """Run a command."""
        self.check()
        self._call("command", f"id={_safe(id)}")

    def _call(self, *argv: str) -> str:
        answer = self.transport.ask([f"vault={self.vault_id}", *argv])
        if _FAILED.match(answer):
            raise ObsidianError(f"Obsidian says: {answer.splitlines()[0][:200]}", code="FAILED")
        return answer


def source_of(id: str) -> str:
    """The plugin that a command belongs to, which is what stands before the colon."""
    return id.partition(":")[0]


def _safe(value: str) -> str:
    if _UNSAFE.search(value):
        raise ObsidianError("Obsidian's command line cannot take a backslash or a control character.", code="BAD_REQUEST")
    return value
