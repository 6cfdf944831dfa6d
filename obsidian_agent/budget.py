"""A budget of time and text for work that others ask for, checked by whatever may take long.

`limited` sets the budget of the current thread or task. `check` raises `OutOfBudget` when the time
is used up or the work was cancelled, and `spend` also when the work produces too much text. That
exception is not an `ObsidianAgentError`: code that tolerates
the errors of a single step must not go on after it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple, TypeVar

Item = TypeVar("Item")


MAX_TEXT = 256 * 1024 * 1024
"""Characters that the work within a budget may produce."""


class OutOfBudget(Exception):
    """The work was cancelled, takes too long, or produces too much text."""

    def __init__(self, message: str, *, code: str = "PLAN_TOO_LARGE") -> None:
        super().__init__(message)
        self.code = code


class _Amount:
    """A count of characters."""

    def __init__(self) -> None:
        self.characters = 0


class _Budget(NamedTuple):
    seconds: float
    deadline: float
    cancelled: Callable[[], bool]
    text: _Amount


_current: ContextVar[_Budget | None] = ContextVar("budget", default=None)


@contextmanager
def limited(seconds: float, cancelled: Callable[[], bool] | None = None) -> Iterator[None]:
    """Let the block take `seconds` at most, or what an outer budget has left, until `cancelled`."""
    deadline = time.monotonic() + seconds
    outer = _current.get()
    if outer is not None and outer.deadline < deadline:
        seconds, deadline = outer.seconds, outer.deadline
    signals = [signal for signal in (cancelled, outer and outer.cancelled) if signal is not None]
    text = _Amount() if outer is None else outer.text
    budget = _Budget(seconds, deadline, lambda: any(signal() for signal in signals), text)
    token = _current.set(budget)
    try:
        yield
    finally:
        _current.reset(token)


def check() -> None:
    """Raise `OutOfBudget` when the current work is to end. Without a budget nothing happens."""
    budget = _current.get()
    if budget is None:
        return
    if budget.cancelled():
        raise OutOfBudget("It was cancelled.", code="CANCELLED")
    if time.monotonic() >= budget.deadline:
        raise OutOfBudget(f"It takes longer than {budget.seconds:g} s.")


def spend(characters: int) -> None:
    """Count text that is about to be produced, and check the time.

    Raise `OutOfBudget` if the work has produced more than `MAX_TEXT` characters.
    """
    budget = _current.get()
    if budget is None:
        return
    budget.text.characters += characters
    if budget.text.characters > MAX_TEXT:
        raise OutOfBudget(f"It produces more than {MAX_TEXT:,} characters.")
    check()


def checked(items: Iterable[Item]) -> Iterator[Item]:
    """Yield `items`, with a check before each."""
    for item in items:
        check()
        yield item


def seconds_left(most: float) -> float:
    """Return the seconds that a call which cannot check may take: `most`, or less."""
    budget = _current.get()
    return most if budget is None else max(min(most, budget.deadline - time.monotonic()), 1e-6)
