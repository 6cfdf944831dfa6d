"""Journals of older and newer versions of the program."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from journal.make_journal_dump import AFTER, BEFORE, lay_out
from obsidian_agent.errors import JournalError
from obsidian_agent.journal import db, integrity, state_folder
from obsidian_agent.journal.records import UndoPoint
from obsidian_agent.journal.undo import redo, undo
from obsidian_agent.journal.writer import Journal
from obsidian_agent.vault.filesystem.store import VaultStore
from previews import create, modify, previewed, run

if TYPE_CHECKING:
    from tests.journal.conftest import Home

VERSION_1 = Path(__file__).with_name("journal_version_1.sql")


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """A vault after three runs of the first version of the journal; its state beside it."""
    lay_out(tmp_path / "vault", AFTER)
    folder = tmp_path / "state/vaults" / state_folder.vault_key(str((tmp_path / "vault").resolve()))
    folder.mkdir(parents=True)
    with closing(sqlite3.connect(folder / "journal.db")) as connection:
        connection.executescript(
            VERSION_1.read_text().replace("{vault}", str((tmp_path / "vault").resolve()))
        )
        connection.execute("PRAGMA journal_mode=WAL")
    assert not (folder / integrity.REGISTER_FILE).exists()
    return tmp_path


def test_a_journal_of_the_first_version_is_read_and_can_be_undone(old: Path) -> None:
    with VaultStore.open(old / "vault") as store, Journal.open(old / "state", store) as journal:
        last, wrong, first = journal.history()
        assert [one.goal for one in (last, wrong, first)] == ["Two steps", "Test", "Shout"]
        assert (last.undoable, wrong.undone, first.undoable) == (True, True, True)
        assert journal.examine(contents=True) == []
        assert journal.plan_of(last.run_id).undo_points == [
            UndoPoint(step="s0", actions=1, clean=True),
            UndoPoint(step="s1", actions=2, clean=True),
        ]
        states = [step.state for step in journal.step_outcomes(last.run_id)]
        assert states == ["applied", "applied"]
        assert journal.plan_of(last.run_id).document.keys() == {
            "version",
            "goal",
            "riskLevel",
            "steps",
        }
        assert undo(journal, store, to_step="s0").restored == ("new.md",)
        redo(journal, store)
        undo(journal, store)
        undo(journal, store, first.run_id)
        assert {name: (old / "vault" / name).read_bytes() for name in BEFORE} == BEFORE
        assert not (old / "vault/new.md").exists()
        assert journal.examine(contents=True) == []


def test_a_run_is_recorded_behind_those_of_the_first_version(old: Path) -> None:
    with VaultStore.open(old / "vault") as store, Journal.open(old / "state", store) as journal:
        assert run(previewed(create("more.md", b"x")), store, journal).success
        assert len(journal.history()) == 4
        assert journal.examine(contents=True) == []


def test_two_programs_may_bring_it_up_to_date_at_once(old: Path) -> None:
    (file,) = old.glob("state/vaults/*/journal.db")
    vault = str((old / "vault").resolve())
    with closing(db.open_writer(file, vault)) as one, closing(db.open_writer(file, vault)) as other:
        assert db.is_older(one)
        assert db.is_older(other)
        db.migrate(one)
        db.migrate(other)
    with VaultStore.open(old / "vault") as store, Journal.open(old / "state", store) as journal:
        assert len(journal.history()) == 3


def test_a_migration_that_is_broken_off_leaves_the_journal_as_it_was(
    old: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(connection: sqlite3.Connection) -> None:
        connection.execute("DROP TABLE part")
        raise OSError(28, "No space left on device")

    (file,) = old.glob("state/vaults/*/journal.db")
    with monkeypatch.context() as patched:
        patched.setattr(db, "_MIGRATIONS", (fail,))
        with (
            VaultStore.open(old / "vault") as store,
            Journal.open(old / "state", store) as journal,
            pytest.raises(JournalError),
        ):
            journal.history()
    with closing(sqlite3.connect(file)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone()[0] == 1
    with VaultStore.open(old / "vault") as store, Journal.open(old / "state", store) as journal:
        assert len(journal.history()) == 3


def test_a_run_of_an_older_program_that_was_open_all_the_while_is_taken_in(home: Home) -> None:
    home.run(modify("one.md", b"one\n", b"ONE\n"))
    home.run(modify("one.md", b"ONE\n", b"One\n"))
    home.journal.close()
    with closing(sqlite3.connect(home.journal.file)) as connection, connection:
        connection.execute(
            "UPDATE record SET previous = NULL, hash = NULL, seal = NULL WHERE seq = 2"
        )
    listed = integrity.Register(home.journal.folder)
    listed.write(entry for entry in listed.read().entries.values() if entry.seq == 1)
    with home.reopened().journal as journal:
        assert journal.examine() == []
        assert run(previewed(create("more.md", b"x")), home.store, journal).success
        assert journal.examine(contents=True) == []
        assert sorted(listed.read().entries) == [1, 2, 3]


def test_a_column_more_is_no_damage(home: Home) -> None:
    home.run(create("n.md", b"x"))
    home.journal.close()
    with closing(sqlite3.connect(home.journal.file)) as connection:
        connection.execute("ALTER TABLE record ADD COLUMN remark TEXT")
    with home.reopened().journal as journal:
        assert len(journal.history()) == 1
        assert undo(journal, home.store).restored == ("n.md",)


def test_a_newer_journal_is_refused_in_a_sentence(home: Home) -> None:
    home.run(create("n.md", b"x"))
    home.journal.close()
    with closing(sqlite3.connect(home.journal.file)) as connection:
        connection.execute(f"PRAGMA user_version = {db.VERSION + 1}")
    with home.reopened().journal as journal, pytest.raises(JournalError) as raised:
        journal.history()
    assert "was written by a newer version of obsidian-agent" in raised.value.message
    assert "Update obsidian-agent" in (raised.value.hint or "")


def test_what_a_new_journal_has_is_what_an_old_one_is_brought_to(old: Path) -> None:
    def layout(file: Path) -> list[tuple[str, ...]]:
        with closing(sqlite3.connect(file)) as connection:
            return connection.execute(
                "SELECT type, name, sql FROM sqlite_schema ORDER BY type, name"
            ).fetchall()

    with VaultStore.open(old / "vault") as store, Journal.open(old / "state", store) as journal:
        journal.history()
    db.create(old / "new.db", "vault")
    (file,) = old.glob("state/vaults/*/journal.db")
    assert layout(file) == layout(old / "new.db")
