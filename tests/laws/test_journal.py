"""The laws of the journal over random change sets.

Undo inverts a run, redo inverts undo, and recovery leads to one of the two.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from faults import disk_failing_at, power_cut, power_cut_before_the_end
from obsidian_agent.errors import JournalError, ObsidianAgentError
from obsidian_agent.journal.recovery import interrupted, recover
from obsidian_agent.journal.undo import UndoResult, redo, undo
from obsidian_agent.journal.writer import Journal
from obsidian_agent.vault.filesystem.store import VaultStore
from obsidian_agent.vault.paths.path import ROOT
from obsidian_agent.vault.transaction.actions import Action, PutFile
from obsidian_agent.vault.views.changes import (
    CreateFile,
    DeleteEntry,
    FileChange,
    MakeFolder,
    ModifyFile,
    Operation,
    RenameEntry,
)
from obsidian_agent.vault.views.disk import DiskView
from obsidian_agent.vault.views.overlay import OverlayVault
from previews import Picture, picture, previewed, restarted, run, vault_path

NAMES = ["a", "A", "b", "c", "d.md", "D.md", "e.md", "ü.md"]
CONTENTS = [b"", b"one\n", b"two\n" * 400, b"\xef\xbb\xbfthree\r\n", b"\0\xff", b"four\n" * 3000]
LAYOUT = {"a/d.md": 1, "a/b/e.md": 2, "b/d.md": 1, "d.md": 1, "e.md": 3, "c/": 0, "a/c/d.md": 4}
RELAXED = settings(max_examples=80)

places = st.lists(st.sampled_from(NAMES), min_size=1, max_size=3).map(
    lambda names: vault_path("/".join(names))
)
contents = st.sampled_from(CONTENTS)
changes: st.SearchStrategy[FileChange] = st.one_of(
    st.builds(CreateFile, places, contents),
    st.builds(ModifyFile, places, contents),
    st.builds(RenameEntry, places, places, st.booleans()),
    st.builds(DeleteEntry, places),
    st.builds(MakeFolder, places),
)
stories = st.lists(changes, min_size=1, max_size=14)


class House:
    """A vault with a state folder, in a place of its own."""

    def __init__(self, base: Path) -> None:
        self.vault, self.state = base / "vault", base / "state"
        self.vault.mkdir()
        for name, number in LAYOUT.items():
            path = self.vault / name
            path.parent.mkdir(parents=True, exist_ok=True)
            if name.endswith("/"):
                path.mkdir()
            else:
                path.write_bytes(CONTENTS[number])
                path.chmod(0o640 if number == 1 else 0o604)
        self.store = VaultStore.open(self.vault)

    @contextmanager
    def journal(self) -> Iterator[Journal]:
        with Journal.open(self.state, self.store) as journal:
            yield journal

    def told(self, story: list[FileChange]) -> OverlayVault:
        """Return the story as an overlay, without the changes that cannot be made."""
        overlay = OverlayVault(DiskView(self.store), 0)
        for number, change in enumerate(story):
            before = overlay.change_set()
            try:
                overlay.apply([change], number)
            except ObsidianAgentError:
                assert overlay.change_set() == before
        return overlay

    def seen(self) -> Picture:
        return picture(self.vault)


@contextmanager
def house() -> Iterator[House]:
    with tempfile.TemporaryDirectory() as folder:
        built = House(Path(folder))
        try:
            yield built
        finally:
            built.store.close()


def contents_of(overlay: OverlayVault) -> dict[str, bytes]:
    """Every path that the overlay shows, with the bytes of files."""
    return {
        entry.path.text: overlay.read(entry.path) if entry.kind == "file" else b""
        for entry in overlay.walk(ROOT)
    }


def operations(overlay: OverlayVault) -> list[Operation]:
    return [owned.operation for owned in overlay.change_set().operations]


@RELAXED
@given(stories, st.integers(0, 20), st.booleans(), st.integers(0, 20))
def test_a_run_that_was_cut_off_is_finished_or_rolled_back(
    story: list[FileChange], cut: int, finish: bool, second: int
) -> None:
    with house() as home:
        overlay = home.told(story)
        todo = operations(overlay)
        wanted = contents_of(overlay)
        before = home.seen()
        with home.journal() as journal, power_cut(cut):
            run(previewed(*todo), home.store, journal)
        with home.journal() as journal:
            broken = bool(interrupted(journal, home.store))
            event(f"broken: {broken}")
            if broken:
                with power_cut(second):
                    recover(journal, home.store, finish=finish)
                for one in recover(journal, home.store, finish=finish):
                    assert one.problems == ()
            assert interrupted(journal, home.store) == []
            if finish or not broken:
                assert {
                    path: entry[2]
                    for path, entry in home.seen().items()
                    if not path.startswith(".trash")
                } == wanted
                if journal.last_undoable() is not None:
                    assert undo(journal, home.store).conflicts == ()
            assert home.seen() == before


@RELAXED
@given(stories, st.integers(0, 20), st.booleans(), st.booleans())
def test_an_undo_or_redo_that_was_cut_off_is_finished_or_rolled_back(
    story: list[FileChange], cut: int, finish: bool, redoing: bool
) -> None:
    with house() as home:
        todo = operations(home.told(story))
        if not todo:
            return
        before = home.seen()
        with home.journal() as journal:
            assert run(previewed(*todo), home.store, journal).success
            after = home.seen()
            if redoing:
                undo(journal, home.store)
            with power_cut(cut):
                (redo if redoing else undo)(journal, home.store)
        with home.journal() as journal:
            broken = interrupted(journal, home.store)
            for one in recover(journal, home.store, finish=finish):
                assert one.problems == ()
            forward = finish or not broken
            assert home.seen() == (after if forward == redoing else before)
            if forward == redoing:
                assert undo(journal, home.store).conflicts == ()
                assert home.seen() == before
            else:
                assert redo(journal, home.store).conflicts == ()
                assert home.seen() == after


def damage(home: House, action: Action, kind: str, before: bytes | None) -> None:
    """Return the contents that a power loss may leave of a written file."""
    path = home.vault / action.path.text
    written = path.read_bytes()
    match kind:
        case "empty":
            path.write_bytes(b"")
        case "cut":
            path.write_bytes(written[: len(written) // 2])
        case "zeros":
            path.write_bytes(bytes(len(written)))
        case "lost" if before is None:
            path.unlink()
        case "lost" if before is not None:
            path.write_bytes(before)
        case _:
            pass
    if path.exists():
        os.utime(path, (1, 1))


@RELAXED
@given(stories, st.data(), st.booleans())
def test_a_run_whose_bytes_were_lost_is_finished_or_rolled_back(
    story: list[FileChange], data: st.DataObject, finish: bool
) -> None:
    with house() as home:
        todo = operations(home.told(story))
        before = home.seen()
        with home.journal() as journal, power_cut_before_the_end():
            run(previewed(*todo), home.store, journal)
        after = home.seen()
        with home.journal() as journal:
            if todo:
                restarted(journal)
            for record in journal.unfinished():
                actions, images = journal.load(record)
                for stored in actions:
                    if isinstance(stored.action, PutFile):
                        kind = data.draw(st.sampled_from(["", "empty", "cut", "zeros", "lost"]))
                        damage(
                            home,
                            stored.action,
                            kind,
                            None
                            if stored.action.before is None
                            else images.get(stored.action.before),
                        )
            for one in recover(journal, home.store, finish=finish):
                assert one.problems == ()
        assert home.seen() == (after if finish or not todo else before)


@pytest.mark.parametrize("finish", [True, False])
def test_a_folder_that_came_and_went_within_a_run_is_known_to_have_gone(finish: bool) -> None:
    """Its end looks like the state before it was made; only the place that it went to tells."""
    path = vault_path("a")
    story: list[FileChange] = [
        CreateFile(path, b""),
        DeleteEntry(path),
        MakeFolder(path),
        DeleteEntry(path),
    ]
    with house() as home:
        todo = operations(home.told(story))
        before = home.seen()
        with home.journal() as journal, power_cut_before_the_end():
            run(previewed(*todo), home.store, journal)
        after = home.seen()
        with home.journal() as journal:
            restarted(journal)
            assert [one.problems for one in recover(journal, home.store, finish=finish)] == [()]
        assert home.seen() == (after if finish else before)


def all_of_it(
    take_back: Callable[[Journal, VaultStore], UndoResult], journal: Journal, store: VaultStore
) -> None:
    """Go on until there is nothing left."""
    for _ in range(50):
        try:
            result = take_back(journal, store)
        except JournalError as error:
            assert error.code in ("NOTHING_TO_UNDO", "NOTHING_TO_REDO")
            return
        assert (result.conflicts, result.errors) == ((), ())
    raise AssertionError("it never ends")


def test_what_the_disk_refused_keeps_its_place_until_the_next_undo() -> None:
    """Two folders were at one path: the first returns last, even if the other was delayed."""
    path = vault_path("a")
    story: list[FileChange] = [DeleteEntry(path), MakeFolder(path), DeleteEntry(path)]
    with house() as home:
        todo = operations(home.told(story))
        before = home.seen()
        with home.journal() as journal:
            assert run(previewed(*todo), home.store, journal).success
            with disk_failing_at(0):
                assert [problem.path for problem in undo(journal, home.store).errors] == [
                    ".trash/a 2"
                ]
            all_of_it(undo, journal, home.store)
        assert home.seen() == before


@RELAXED
@given(stories, st.lists(st.frozensets(st.integers(0, 12), max_size=4), max_size=3), st.data())
def test_undo_and_redo_in_pieces_lead_to_the_same(
    story: list[FileChange], failures: list[frozenset[int]], data: st.DataObject
) -> None:
    with house() as home:
        todo = operations(home.told(story))
        before = home.seen()
        with home.journal() as journal:
            assert run(previewed(*todo), home.store, journal).success
            after = home.seen()
            if after == before:
                return
            for numbers in failures:
                with disk_failing_at(*numbers), suppress(JournalError):
                    # A file that was trashed from a temporary place stays in the trash for good.
                    skip = data.draw(
                        st.lists(
                            st.sampled_from(
                                [path for path in after if not path.startswith(".trash")]
                            ),
                            max_size=2,
                        )
                    )
                    undo(journal, home.store, skip=skip)
            all_of_it(undo, journal, home.store)
            assert home.seen() == before
            for numbers in failures:
                with disk_failing_at(*numbers), suppress(JournalError):
                    redo(journal, home.store)
            all_of_it(redo, journal, home.store)
            assert home.seen() == after
            all_of_it(undo, journal, home.store)
            assert home.seen() == before
