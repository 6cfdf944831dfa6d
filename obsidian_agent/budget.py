"""A time budget for work that others ask for, checked by whatever may take long.

`limited` sets the budget of the current thread or task, `check` raises `OutOfBudget` when it is
used up or the work was cancelled. That exception is no `ObsidianAgentError`: code that tolerates
the errors of a single step must not go on after it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple, TypeVar

Item = TypeVar("Item")


class OutOfBudget(Exception):
    """The work was cancelled, or has taken longer than `seconds`."""

    def __init__(self, seconds: float, *, cancelled: bool) -> None:
        super().__init__(
            "It was cancelled." if cancelled else f"It takes longer than {seconds:g} s."
        )
        self.code = "CANCELLED" if cancelled else "PLAN_TOO_LARGE"


class _Budget(NamedTuple):
    seconds: float
    deadline: float
    cancelled: Callable[[], bool]


_current: ContextVar[_Budget | None] = ContextVar("budget", default=None)


@contextmanager
def limited(seconds: float, cancelled: Callable[[], bool] | None = None) -> Iterator[None]:
    """Let the block take `seconds` at most, or what an outer budget has left, until `cancelled`."""
    deadline = time.monotonic() + seconds
    outer = _current.get()
    if outer is not None and outer.deadline < deadline:
        seconds, deadline = outer.seconds, outer.deadline
    signals = [signal for signal in (cancelled, outer and outer.cancelled) if signal is not None]
    token = _current.set(_Budget(seconds, deadline, lambda: any(signal() for signal in signals)))
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
        raise OutOfBudget(budget.seconds, cancelled=True)
    if time.monotonic() >= budget.deadline:
        raise OutOfBudget(budget.seconds, cancelled=False)


def checked(items: Iterable[Item]) -> Iterator[Item]:
    """Yield `items`, with a check before each."""
    for item in items:
        check()
        yield item


def seconds_left(most: float) -> float:
    """Return the seconds that a call which cannot check may take: `most`, or less."""
    budget = _current.get()
    return most if budget is None else max(min(most, budget.deadline - time.monotonic()), 1e-6)
