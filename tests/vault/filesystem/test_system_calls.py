from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest

from obsidian_agent.vault.filesystem.system_calls import boot_id, rename_as_recovered, started_since


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


def test_a_name_beside_a_long_one_is_shortened(tmp_path: Path) -> None:
    folder = os.open(tmp_path, os.O_RDONLY)
    try:
        for content, mark in (("first", " (recovered)"), ("second", " (recovered 2)")):
            (tmp_path / ".temporary").write_text(content)
            beside = rename_as_recovered(folder, ".temporary", f"{'n' * 252}.md")
            assert beside == f"{'n' * (252 - len(mark))}{mark}.md"
            assert (tmp_path / beside).read_text() == content
    finally:
        os.close(folder)
