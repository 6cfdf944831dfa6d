"""After a run: whether the vault is as the preview said it would be. May block."""

from __future__ import annotations

from collections.abc import Sequence

from obsidian_agent.agent.privacy.untrusted_text import neutral
from obsidian_agent.errors import Problem, VaultError
from obsidian_agent.plan.result import Preview
from obsidian_agent.vault.paths.path import VaultPath
from obsidian_agent.vault.views.changes import NetChange
from obsidian_agent.vault.views.view import VaultView


def verify(approved: Preview, view: VaultView) -> tuple[Problem, ...]:
    """What is not as it was previewed; nothing when all is. `view` is the vault as it is now."""
    changes = approved.change_set.changes
    filled = frozenset(change.new_path or change.path for change in changes if change.kind != "delete")
    return tuple(problem for change in changes if (problem := _compared(change, view, filled)) is not None)


def repair_request(problems: Sequence[Problem]) -> str:
    """What the person would ask a model for, so that it is repaired; names of files come from the plan that they approved."""
    listed = "\n".join(f"- {neutral(problem.message)}" for problem in problems[:20])
    return f"The plan ran, but not everything came out as previewed:\n{listed}\nLook at these files and propose what repairs it."


def _compared(change: NetChange, view: VaultView, filled: frozenset[VaultPath]) -> Problem | None:
    """`filled`: where something is to be afterwards, so that what left such a place cannot be told from what came there."""

    def there(path: VaultPath) -> bool:
        return (entry := view.locate(path)) is not None and entry.path == path

    gone = change.kind == "delete"
    left = change.path not in filled
    where = change.path if gone else change.new_path or change.path
    try:
        if gone:
            return _problem(change.path, "is still there") if left and there(where) else None
        if not there(where):
            return _problem(where, "is not there")
        if change.new_path is not None and left and there(change.path):
            return _problem(change.path, "is still at its old place")
        if change.content is not None and view.read(where) != change.content:
            return _problem(where, "has another content")
    except VaultError as error:
        return _problem(where, f"cannot be read ({error.code})")
    return None


def _problem(path: VaultPath, what: str) -> Problem:
    return Problem("NOT_AS_PREVIEWED", f"{path} {what}.", path=path.text)
