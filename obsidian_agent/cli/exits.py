"""Exit codes, and which one a result or a set of problems earns."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum

from obsidian_agent.agent.events import ExecutionResult
from obsidian_agent.errors import Problem


class Exit(IntEnum):
    """The contract's codes."""

    DONE = 0
    FAILED = 1
    INVALID = 2
    NOT_APPROVED = 3
    CONFLICT = 4
    SERVICE = 5
    INTERRUPTED = 130


PERMISSION_CODES = frozenset({"DELETE_DISABLED", "COMMANDS_DISABLED", "PERMISSION_DENIED", "NOT_APPROVED", "MACRO_UNTRUSTED"})


def of_problems(problems: Sequence[Problem]) -> Exit:
    """An invalid plan: 3 when only permissions are missing, else 2."""
    codes = {problem.code for problem in problems}
    return Exit.NOT_APPROVED if codes and codes <= PERMISSION_CODES else Exit.INVALID


def of_result(result: ExecutionResult) -> Exit:
    """How a run ended, as an exit code."""
    match result.status:
        case "done" | "recovered":
            return Exit.DONE
        case "conflict":
            return Exit.CONFLICT
        case "cancelled":
            return Exit.INTERRUPTED
        case "refused":
            return Exit.NOT_APPROVED if result.outcome == "needs-input" or not result.errors else of_problems(result.errors)
        case "failed" | "stopped":
            return Exit.FAILED
