"""What goes wrong while a run, an undo or a recovery is at work: the process ends, or the disk refuses."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
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
    """The process ends after so many actions."""
    left = iter([None] * after)

    def end(_: Action, __: int) -> None:
        if next(left, "none") == "none":
            raise PowerCut

    with _before_each_action(end), suppress(PowerCut):
        yield


@contextmanager
def power_cut_before_the_end() -> Iterator[None]:
    """The process ends when everything is done, and nothing has reached the disk for sure."""
    with patch.object(Applier, "complete", side_effect=PowerCut), suppress(PowerCut):
        yield


@contextmanager
def disk_failing_at(*places: str | int) -> Iterator[None]:
    """The disk refuses every action on these paths, or with these numbers."""

    def refuse(action: Action, number: int) -> None:
        if action.path.text in places or number in places:
            raise VaultError(
                f"{action.path} could not be written.", code="IO_ERROR", path=action.path.text
            )

    with _before_each_action(refuse):
        yield


@contextmanager
def refused(code: str, match: str | None = None) -> Iterator[None]:
    """The block ends with the program's own error of this code."""
    with pytest.raises(ObsidianAgentError, match=match) as raised:
        yield
    assert raised.value.code == code
