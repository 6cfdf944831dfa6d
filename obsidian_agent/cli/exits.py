"""Exit codes, and the handling of Ctrl+C, SIGTERM and a closed terminal.

Before a run a signal ends the command with a message and code 130. During a run the first signal
stops it after the current file, the second one at once.
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


EXIT_CODES: Final = (
    "0 done, 1 failed or stopped, or `health` has findings, 2 wrong usage or an invalid plan,\n"
    "  3 not approved or needs input, 4 conflict, 5 the model or another service failed, "
    "130 interrupted"
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


class Exit(IntEnum):
    """The exit codes of the contract."""

    DONE = 0
    FAILED = 1
    INVALID = 2
    NOT_APPROVED = 3
    CONFLICT = 4
    SERVICE = 5
    INTERRUPTED = 130


def of_problems(problems: Sequence[Problem]) -> Exit:
    """Return the code for an invalid plan: 3 if only permissions are missing, else 2."""
    codes = {problem.code for problem in problems}
    return Exit.NOT_APPROVED if codes and codes <= PERMISSION_CODES else Exit.INVALID


def of_error(error: ObsidianAgentError) -> Exit:
    """Return the code for an error that ended a command."""
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
    """Return the code for the result of a run."""
    match result.status:
        case "done" | "recovered":
            return Exit.DONE
        case "conflict":
            return Exit.CONFLICT
        case "cancelled":
            return Exit.INTERRUPTED
        case "refused":
            if result.outcome == "needs-input" or not result.errors:
                return Exit.NOT_APPROVED
            return of_problems(result.errors)
        case "failed" | "stopped":
            return Exit.FAILED


def ending_signals() -> list[signal.Signals]:
    """Return the signals that request an end. Ignored ones (nohup) stay ignored."""
    names = ("SIGINT", "SIGTERM", "SIGHUP")
    known = [signal.Signals[name] for name in names if name in signal.Signals.__members__]
    return [number for number in known if signal.getsignal(number) != signal.SIG_IGN]


def handle_signals() -> None:
    """Let every ending signal act as Ctrl+C does, with open files closed and a message."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    if threading.current_thread() is threading.main_thread():
        for number in ending_signals():
            if number != signal.SIGINT:
                signal.signal(number, stop)


@contextmanager
def interruptible() -> Iterator[threading.Event]:
    """Return an event that ending signals set while the block runs. The second one interrupts."""
    cancel = threading.Event()

    def stop(number: int, frame: FrameType | None) -> None:
        if cancel.is_set():
            raise KeyboardInterrupt
        cancel.set()

    previous = {number: signal.signal(number, stop) for number in ending_signals()}
    try:
        yield cancel
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
