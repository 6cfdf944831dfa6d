"""What the person allows plans to do; nothing in a plan or a vault can widen it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from obsidian_agent.errors import Problem
from obsidian_agent.plan.result import Instance
from obsidian_agent.vault.changes import ChangeSet, Move

NOT_PERMITTED: Final = frozenset({"DELETE_DISABLED", "COMMANDS_DISABLED", "PERMISSION_DENIED"})
"""Codes of problems that the person's settings make: only the person can do something about them."""


@dataclass(frozen=True, slots=True)
class Policy:
    """What validation enforces for every call that can do nothing else, and the preview for what the calls come to.

    Without `allow_writes` a plan may only read (PERMISSION_DENIED).
    """

    allow_deletes: bool = False
    allow_commands: bool = False
    allow_writes: bool = True


def refusals(policy: Policy, change_set: ChangeSet, instances: Sequence[Instance]) -> Iterator[Problem]:
    """What a change set does that is not allowed: whichever call leads there, something of the vault that goes to the trash is a delete
    (DELETE_DISABLED). A file that the plan made itself does not go there."""
    if policy.allow_deletes:
        return
    for owned in change_set.operations:
        if isinstance(owned.operation, Move) and owned.operation.trash:
            path, instance = owned.operation.path, instances[owned.instance]
            message = f"{path} would go to .trash, and deletes are off. Allow them in the settings or with --allow-deletes."
            yield Problem("DELETE_DISABLED", message, path=path.text).at(instance.step_id, instance.name)
