"""How a command ends: its exit code, and what Ctrl+C, SIGTERM and a closed terminal do.

Before a run they are an answer and 130; in a run a stop after the current file, the second one at once.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from enum import IntEnum
from types import FrameType
from typing import TYPE_CHECKING, Final

from obsidian_agent.errors import (
    Conflict,
    JournalError,
    ObsidianAgentError,
    PlanError,
    Problem,
    ProviderError,
)

if TYPE_CHECKING:
    from obsidian_agent.agent.events import ExecutionResult


class Exit(IntEnum):
    """The contract's codes."""

    DONE = 0
    FAILED = 1
    INVALID = 2
    NOT_APPROVED = 3
    CONFLICT = 4
    SERVICE = 5
    INTERRUPTED = 130


EXIT_CODES: Final = (
    "0 done, 1 failed or stopped, 2 wrong use or an invalid plan, 3 not approved or needs input, 4 conflict,\n"
    "  5 the model or another service failed, 130 interrupted"
)

PERMISSION_CODES = frozenset(
    {
        "DELETE_DISABLED",
        "COMMANDS_DISABLED",
        "PERMISSION_DENIED",
        "HOOK_REFUSED",
        "NOT_APPROVED",
        "MACRO_UNTRUSTED",
    }
)


def of_problems(problems: Sequence[Problem]) -> Exit:
    """An invalid plan: 3 when only permissions are missing, else 2."""
    codes = {problem.code for problem in problems}
    return Exit.NOT_APPROVED if codes and codes <= PERMISSION_CODES else Exit.INVALID


def of_error(error: ObsidianAgentError) -> Exit:
    """An error that ended a command."""
    match error:
        case PlanError():
            return of_problems(error.problems)
        case Conflict():
            return Exit.CONFLICT
        case ProviderError():
            return Exit.SERVICE
        case JournalError():
            return Exit.FAILED
        case _:
            return Exit.INVALID


def of_result(result: ExecutionResult) -> Exit:
    """How a run ended."""
    match result.status:
        case "done" | "recovered":
            return Exit.DONE
        case "conflict":
            return Exit.CONFLICT
        case "cancelled":
            return Exit.INTERRUPTED
        case "refused":
            return (
                Exit.NOT_APPROVED
                if result.outcome == "needs-input" or not result.errors
                else of_problems(result.errors)
            )
        case "failed" | "stopped":
            return Exit.FAILED


def ending_signals() -> list[signal.Signals]:
    """The signals that ask a program to end; those that are ignored (nohup) stay ignored."""
    names = ("SIGINT", "SIGTERM", "SIGHUP")
    known = [signal.Signals[name] for name in names if name in signal.Signals.__members__]
    return [number for number in known if signal.getsignal(number) != signal.SIG_IGN]


def end_politely() -> None:
    """Let every such signal end a command as Ctrl+C does: files closed, the terminal as it was, an answer."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    if threading.current_thread() is threading.main_thread():
        for number in ending_signals():
            if number != signal.SIGINT:
                signal.signal(number, stop)


@contextmanager
def interruptible() -> Iterator[threading.Event]:
    """An event that those signals set while the block runs."""
    cancel = threading.Event()

    def stop(number: int, frame: FrameType | None) -> None:
        if cancel.is_set():
            raise KeyboardInterrupt
        cancel.set()

    before = {number: signal.signal(number, stop) for number in ending_signals()}
    try:
        yield cancel
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
