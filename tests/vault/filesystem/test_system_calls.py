from __future__ import annotations

import sys
import time

import pytest

from obsidian_agent.vault.filesystem.system_calls import boot_id, started_since


@pytest.mark.skipif(
    not sys.platform.startswith(("linux", "darwin")), reason="no name of the machine's start here"
)
def test_only_another_start_than_this_counts() -> None:
    assert boot_id() == boot_id()
    assert started_since(boot_id()) is None
    assert started_since(None) is None
    started = started_since("an earlier start")
    assert started is not None
    assert 0 < started < time.time_ns()
