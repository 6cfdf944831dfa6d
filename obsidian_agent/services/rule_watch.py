"""The rules of a vault at work while its notes change, for a program that stays open."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Final

from obsidian_agent.services.rules import RuleOutcome, RuleRunner

LOOK_SECONDS: Final = 20.0
"""Seconds between two looks at the rules of times."""
QUIET_SECONDS: Final = 1.0
"""Seconds without a change after which the rules of notes are looked at."""
MAX_WAIT_SECONDS: Final = 2.0
"""Seconds after which they are looked at even while notes go on to change."""


def watch(
    runner: RuleRunner,
    changed: threading.Event,
    stop: threading.Event,
    poll: float = LOOK_SECONDS,
) -> Iterator[RuleOutcome]:
    """Yield the outcomes of the rules until `stop`.

    Those of notes are looked at whenever `changed` is set, those of times regularly. `stop` has an
    effect after `poll` seconds, or once `changed` is set too.
    """
    while not stop.is_set():
        has_changed = _wait(changed, stop, poll)
        if not stop.is_set():
            yield from runner.run(notes=has_changed)


def _wait(changed: threading.Event, stop: threading.Event, poll: float) -> bool:
    """Wait for a change and then for quiet. Return False if `LOOK_SECONDS` passed without one."""
    end = time.monotonic() + LOOK_SECONDS
    while not changed.wait(poll):
        if stop.is_set() or time.monotonic() >= end:
            return False
    end = time.monotonic() + MAX_WAIT_SECONDS
    while changed.is_set() and time.monotonic() < end and not stop.is_set():
        changed.clear()
        changed.wait(QUIET_SECONDS)
    changed.clear()
    return True
