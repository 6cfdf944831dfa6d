"""Taking a run back to the end of a step leaves the vault as a run of the steps up to there would have."""

from __future__ import annotations

import threading
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, event, example, given, settings
from hypothesis import strategies as st

from laws.test_runs import picture, plan_of, steps, vaults
from obsidian_agent.agent.session import Session
from obsidian_agent.bootstrap import Wiring, build_session
from obsidian_agent.errors import JournalError, PlanError
from obsidian_agent.plan.policy import Policy
from obsidian_agent.vault.store import VaultStore

Found = list[tuple[str, dict[str, Any]]]
Files = dict[str, tuple[str, int]]


def fill(root: Path, files: Files) -> None:
    root.mkdir()
    for name, (content, mode) in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(content.encode())
        (root / name).chmod(mode)


def session_on(store: VaultStore, state: Path) -> Session:
    return build_session(Wiring(store, state, Policy(allow_deletes=True), now=datetime(2026, 3, 14, tzinfo=UTC)))


def after_running(place: Path, files: Files, found: Found) -> dict[str, tuple[str, int, bytes]]:
    """The vault after these steps alone."""
    root = place / "vault"
    place.mkdir()
    fill(root, files)
    with VaultStore.open(root) as store:
        session = session_on(store, place / "state")
        session.apply(session.dry_run(plan_of(found)), lambda _: None, threading.Event())
        return picture(root)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(files=vaults, found=st.lists(steps, min_size=2, max_size=5))
@example(
    {"one.md": ("old", 0o644), "two.md": ("b", 0o600)},
    [
        ("vault.rename", {"from": "one.md", "to": "A/one.md"}),
        ("vault.createFile", {"path": "one.md", "content": "new"}),
        ("vault.delete", {"path": "two.md"}),
    ],
)
@example({}, [("vault.createFile", {"path": "one.md", "content": "new"}), ("vault.rename", {"from": "one.md", "to": "two.md"})])
@example({}, [("vault.ensureFolder", {"path": "A/new"}), ("vault.delete", {"path": "A", "recursive": True})])
def test_back_to_a_step_is_the_vault_after_that_step(files: Files, found: Found) -> None:
    with TemporaryDirectory() as name:
        place = Path(name)
        root = place / "vault"
        fill(root, files)
        before = picture(root)
        with VaultStore.open(root) as store:
            session = session_on(store, place / "state")
            try:
                ready = session.dry_run(plan_of(found))
            except PlanError:
                return
            result = session.apply(ready, lambda _: None, threading.Event())
            if result.run_id is None or not result.undo_available:
                return
            after = picture(root)
            for number, cut in enumerate(session.runs.cuts(result.run_id)):
                if not cut.clean:
                    event("not separable")
                    with pytest.raises(JournalError, match="not kept"):
                        session.runs.undo(result.run_id, to_step=cut.step)
                    assert picture(root) == after
                    continue
                event("separable")
                expected = after_running(place / f"only-{number}", files, found[: int(cut.step[1:]) + 1])
                done = session.runs.undo(result.run_id, to_step=cut.step)
                assert not done.conflicts
                assert picture(root) == expected
                if picture(root) != after:
                    assert not session.runs.redo().conflicts
                    assert picture(root) == after
            cut = session.runs.cuts(result.run_id)[0]
            if cut.clean:
                session.runs.undo(result.run_id, to_step=cut.step)
            if cut.actions or not cut.clean:
                session.runs.undo(result.run_id)
            assert picture(root) == before


def test_what_changed_since_is_left_alone_and_only_where_it_is_in_the_way(tmp_path: Path) -> None:
    root = tmp_path / "vault"
    fill(root, {})
    found: Found = [("vault.createFile", {"path": f"{name}.md", "content": name}) for name in ("one", "two", "three")]
    with VaultStore.open(root) as store:
        session = session_on(store, tmp_path / "state")
        run = session.apply(session.dry_run(plan_of(found)), lambda _: None, threading.Event()).run_id
        assert run is not None
        (root / "one.md").write_text("mine")
        (root / "three.md").write_text("mine too")
        planned = session.runs.undo_preview(run, to_step="s0")
        assert (planned.restored, [each.path for each in planned.conflicts]) == (("two.md",), ["three.md"])
        done = session.runs.undo(run, to_step="s0")
        assert (done.restored, [each.path for each in done.conflicts]) == (("two.md",), ["three.md"])
        assert sorted(path.name for path in root.glob("*.md")) == ["one.md", "three.md"]
        forced = session.runs.undo(run, ["three.md"], to_step="s0")
        assert forced.restored == ("three.md",)
        assert (root / "one.md").read_text() == "mine"


def test_a_step_that_there_is_not_and_the_ones_that_there_are(tmp_path: Path) -> None:
    root = tmp_path / "vault"
    fill(root, {})
    found: Found = [("vault.createFile", {"path": f"{name}.md", "content": name}) for name in ("one", "two")]
    with VaultStore.open(root) as store:
        session = session_on(store, tmp_path / "state")
        run = session.apply(session.dry_run(plan_of(found)), lambda _: None, threading.Event()).run_id
        assert run is not None
        with pytest.raises(JournalError, match="no step 'nine'") as caught:
            session.runs.undo(run, to_step="nine")
        assert caught.value.code == "STEP_NOT_FOUND"
        assert "s0" in str(caught.value.hint)
        assert session.runs.plan_of(run).to_json() == plan_of(found)
