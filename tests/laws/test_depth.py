"""Undo and redo at any depth: every picture of the vault on the way down is met again on the way up."""

from __future__ import annotations

import threading
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from laws.test_runs import picture, plan_of, steps, vaults
from obsidian_agent.bootstrap import Wiring, build_session
from obsidian_agent.errors import PlanError
from obsidian_agent.plan.policy import Policy
from obsidian_agent.vault.store import VaultStore


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(files=vaults, runs=st.lists(st.lists(steps, min_size=1, max_size=3), min_size=2, max_size=5))
def test_undo_and_redo_go_all_the_way(files: dict[str, tuple[str, int]], runs: list[list[tuple[str, dict[str, Any]]]]) -> None:
    with TemporaryDirectory() as place:
        root = Path(place) / "vault"
        root.mkdir()
        for name, (content, mode) in files.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_bytes(content.encode())
            (root / name).chmod(mode)
        with VaultStore.open(root) as store:
            wiring = Wiring(store, Path(place) / "state", Policy(allow_deletes=True), now=datetime(2026, 3, 14, tzinfo=UTC))
            session = build_session(wiring)
            pictures = [picture(root)]
            for found in runs:
                try:
                    ready = session.dry_run(plan_of(found))
                except PlanError:
                    continue
                if not ready.change_set.operations:
                    continue
                assert session.apply(ready, lambda _: None, threading.Event()).status == "done"
                pictures.append(picture(root))
            for _ in range(2):
                for earlier in reversed(pictures[:-1]):
                    assert not build_session(wiring).runs.undo(None).conflicts
                    assert picture(root) == earlier
                for later in pictures[1:]:
                    assert not build_session(wiring).runs.redo().conflicts
                    assert picture(root) == later
