"""Faults during a run, an undo or a recovery: the process ends, or the disk refuses."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from unittest.mock import patch

import pytest

from obsidian_agent.errors import ObsidianAgentError, VaultError
from obsidian_agent.vault.transaction.actions import Action
from obsidian_agent.vault.transaction.apply import Applier


class PowerCut(BaseException):
    """The process ends here."""


@contextmanager
def _before_each_action(happens: Callable[[Action, int], None]) -> Iterator[None]:
    real = Applier.carry_out

    def carry_out(self: Applier, action: Action, number: int, content: bytes = b"") -> bool:
        happens(action, number)
        return real(self, action, number, content)

    with patch.object(Applier, "carry_out", carry_out):
        yield


@contextmanager
def power_cut(after: int) -> Iterator[None]:
    """End the process after so many actions."""
    left = iter([None] * after)

    def end(_: Action, __: int) -> None:
        if next(left, "none") == "none":
            raise PowerCut

    with _before_each_action(end), suppress(PowerCut):
        yield


@contextmanager
def power_cut_before_the_end() -> Iterator[None]:
    """End the process when all actions are done, and nothing is durable yet."""
    with patch.object(Applier, "complete", side_effect=PowerCut), suppress(PowerCut):
        yield


@dataclass
class Held:
    """A run that waits before an action."""

    reached: threading.Event = field(default_factory=threading.Event)
    go: threading.Event = field(default_factory=threading.Event)


@contextmanager
def held_before(path: str = "") -> Iterator[Held]:
    """Hold every run before its action on a path, or before its first action."""
    held = Held()

    def wait(action: Action, number: int) -> None:
        if path in ("", action.path.text):
            held.reached.set()
            assert held.go.wait(60)

    with _before_each_action(wait):
        try:
            yield held
        finally:
            held.go.set()


@contextmanager
def disk_failing_at(
    *places: str | int, message: str = "", times: int | None = None
) -> Iterator[None]:
    """Refuse actions on these paths, or with these numbers; every time, or so many times."""
    left = times

    def refuse(action: Action, number: int) -> None:
        nonlocal left
        if left != 0 and (action.path.text in places or number in places):
            left = None if left is None else left - 1
            raise VaultError(
                message or f"{action.path} could not be written.",
                code="IO_ERROR",
                path=action.path.text,
                retryable=times is not None,
            )

    with _before_each_action(refuse):
        yield


@contextmanager
def refused(code: str, match: str | None = None) -> Iterator[None]:
    """Assert that the block raises the program's own error with this code."""
    with pytest.raises(ObsidianAgentError, match=match) as raised:
        yield
    assert raised.value.code == code
