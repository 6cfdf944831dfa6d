from __future__ import annotations

import logging
import shutil
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from obsidian_agent.vault.filesystem.store import VaultStore
from obsidian_agent.vault.index import watcher
from obsidian_agent.vault.index.keeper import IndexKeeper
from obsidian_agent.vault.index.watcher import VaultWatcher


class Watched:
    """A vault under a watcher."""

    def __init__(self, tmp_path: Path, *, polling: bool) -> None:
        self.folder = tmp_path / "vault"
        (self.folder / "Sub").mkdir(parents=True)
        (self.folder / "a.md").write_bytes(b"[[b]]")
        self.store = VaultStore.open(self.folder)
        self.keeper = IndexKeeper(self.store, tmp_path / "state")
        self._changed = threading.Condition()
        self.watcher = VaultWatcher(
            self.store.real_path, self.keeper, self._notify, polling=polling
        )
        self.watcher.start()
        self.wait(lambda: self.keeper.latest is not None)

    def _notify(self) -> None:
        with self._changed:
            self._changed.notify_all()

    def wait(self, condition: Callable[[], bool]) -> None:
        """Until the condition holds; fails when it never does."""
        with self._changed:
            assert self._changed.wait_for(condition, timeout=60)

    def files(self) -> set[str]:
        """Return the files in the index."""
        latest = self.keeper.latest
        return set() if latest is None else {path.text for path in latest.files()}


@pytest.fixture(params=["events", "polling"])
def watched(request, tmp_path, monkeypatch):
    monkeypatch.setattr(watcher, "POLL_SECONDS", 0.05)
    made = Watched(tmp_path, polling=request.param == "polling")
    yield made
    made.watcher.stop()
    made.store.close()


def test_changes_of_others_are_seen(watched):
    (watched.folder / "Sub/b.md").write_bytes(b"#tag")
    watched.wait(lambda: "Sub/b.md" in watched.files())
    (watched.folder / "a.md").rename(watched.folder / "c.md")
    watched.wait(lambda: watched.files() == {"Sub/b.md", "c.md"})


def test_a_folder_that_comes_or_goes_brings_and_takes_its_notes(watched, tmp_path):
    shutil.copytree(watched.folder, tmp_path / "other")
    (tmp_path / "other").rename(watched.folder / "New")
    watched.wait(lambda: "New/a.md" in watched.files())
    shutil.move(watched.folder / "New", tmp_path / "away")
    watched.wait(lambda: watched.files() == {"a.md"})


@pytest.mark.parametrize("many", [3_000, pytest.param(30_000, marks=pytest.mark.soak)])
def test_nothing_of_a_burst_is_lost(watched, many):
    for number in range(many):
        (watched.folder / "Sub" / f"{number}.md").write_bytes(b"[[a]]")
    watched.wait(lambda: len(watched.files()) == many + 1)


def test_without_events_the_watcher_polls(tmp_path, monkeypatch):
    def no_watches(*_: object, **__: object) -> None:
        raise OSError(28, "inotify watch limit reached")

    from watchdog.observers import Observer

    monkeypatch.setattr(watcher, "POLL_SECONDS", 0.05)
    monkeypatch.setattr(Observer, "start", no_watches)
    made = Watched(tmp_path, polling=False)
    (made.folder / "b.md").write_bytes(b"")
    made.wait(lambda: "b.md" in made.files())
    assert made.watcher.polling
    made.watcher.stop()


def test_what_no_event_told_of_is_found_when_it_has_been_quiet(tmp_path, monkeypatch):
    monkeypatch.setattr(watcher, "RECHECK_SECONDS", 0.05)
    monkeypatch.setattr(VaultWatcher, "_on_event", lambda *_: None)
    made = Watched(tmp_path, polling=False)
    (made.folder / "b.md").write_bytes(b"")
    made.wait(lambda: "b.md" in made.files())
    assert not made.watcher.polling
    made.watcher.stop()
    made.store.close()


def test_an_overflow_of_the_systems_queue_prints_nothing_over_the_screen(tmp_path, capfd):
    made = Watched(tmp_path, polling=False)
    logging.getLogger("watchdog.observers.inotify_c").warning("Inotify queue overflowed")
    made.watcher.stop()
    made.store.close()
    assert capfd.readouterr().err == ""
