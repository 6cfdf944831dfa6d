"""The index follows the vault while the app is open."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from obsidian_agent.bootstrap import Wiring, build_session
from obsidian_agent.services import index_follower
from obsidian_agent.services.session import Session
from obsidian_agent.vault.filesystem.store import VaultStore
from obsidian_agent.vault.index import keeper as index_keeper
from obsidian_agent.vault.index.keeper import IndexStatus


class Followed:
    """A session that follows its vault, and what it told."""

    def __init__(self, store: VaultStore, state: Path) -> None:
        self.folder = Path(store.real_path)
        self.session: Session = build_session(Wiring(store, state))
        self._told = threading.Condition()
        self.told: list[IndexStatus] = []
        self.session.vault.follow(self._tell)
        self.wait(
            lambda: self.session.vault.keeper is not None and self.session.vault.keeper.status.ready
        )

    def _tell(self, status: IndexStatus) -> None:
        self.told.append(status)
        with self._told:
            self._told.notify_all()

    def wait(self, condition: Callable[[], bool]) -> None:
        """Until the condition holds, looked at whenever something is told."""
        with self._told:
            assert self._told.wait_for(condition, timeout=60)

    def files(self) -> set[str]:
        """Return the index's state without a refresh."""
        keeper = self.session.vault.keeper
        return (
            set()
            if keeper is None or keeper.latest is None
            else {path.text for path in keeper.latest.files()}
        )


@pytest.fixture
def followed(make_vault, tmp_path) -> Iterator[Followed]:
    made = Followed(make_vault({"a.md": "[[b]]", "b.md": ""}), tmp_path / "state")
    yield made
    made.session.vault.unfollow()


def test_a_run_of_our_own_is_known_when_it_has_ended(followed):
    session = followed.session
    step = {"id": "s", "tool": "vault.rename", "args": {"from": "b.md", "to": "c.md"}}
    ready = session.plans.dry_run(
        {"version": "1.0", "goal": "g", "riskLevel": "writes", "steps": [step]}
    )
    assert session.plans.apply(ready, lambda _: None, threading.Event()).success
    assert followed.files() == {"a.md", "c.md"}
    session.runs.undo(None)
    session.vault.refresh_soon()
    followed.wait(lambda: followed.files() == {"a.md", "b.md"})


def test_another_look_finds_what_no_event_told(followed):
    (followed.folder / "new.md").write_text("[[a]]")
    followed.session.vault.refresh_soon()
    followed.wait(lambda: "new.md" in followed.files())


def test_whoever_has_the_files_scanned_its_end_is_told(followed, monkeypatch):
    monkeypatch.setattr(index_keeper, "PROCESS_AFTER", 2)
    monkeypatch.setattr(index_follower, "PROGRESS_SECONDS", 0)
    followed.session.vault.unfollow()
    followed.told.clear()
    followed.session.vault.keeper.rebuild()
    assert [(status.done, status.total) for status in followed.told] == [(0, 2), (0, 0)]


def test_a_session_that_ends_at_once_follows_nothing(make_vault, tmp_path):
    session = build_session(Wiring(make_vault({"a.md": ""}), tmp_path / "state"))
    session.vault.refresh_soon()
    session.vault.unfollow()
    session.vault.follow(lambda _: None)
    session.vault.unfollow()
    session.vault.refresh_soon()
