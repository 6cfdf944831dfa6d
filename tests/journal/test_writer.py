from __future__ import annotations

import os
import random
import shutil
import sqlite3
import zlib
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from obsidian_agent.errors import JournalError
from obsidian_agent.journal import db, integrity, writer
from obsidian_agent.journal import integrity as seals
from obsidian_agent.journal.recovery import interrupted
from obsidian_agent.journal.state_folder import vault_key
from obsidian_agent.journal.undo import undo
from obsidian_agent.journal.writer import Journal
from obsidian_agent.services.runs import Runs
from obsidian_agent.vault.filesystem.store import VaultStore
from previews import create, modify, step

if TYPE_CHECKING:
    from tests.journal.conftest import Home


def numbered(home: Home, count: int) -> list[str]:
    """Create runs that each make a note. Return their ids."""
    return [
        home.run(create(f"n{number}.md", b"x" * number), goal=f"Run {number}").run_id or ""
        for number in range(count)
    ]


def test_opening_and_reading_make_nothing(home: Home) -> None:
    assert home.journal.history() == []
    assert home.journal.last_undoable() is None
    assert home.journal.last_redoable() is None
    assert interrupted(home.journal, home.store) == []
    assert not home.state.exists()


def test_history_is_newest_first_whatever_the_clock_says(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = numbered(home, 3)
    with sqlite3.connect(home.journal.file) as connection:
        connection.execute(
            "UPDATE record SET time = '2031-01-01', unix = 1924992000 WHERE run_id = ?", (ids[0],)
        )
    assert [entry.run_id for entry in home.journal.history()] == ids[::-1]
    assert [entry.goal for entry in home.journal.history(2)] == ["Run 2", "Run 1"]
    assert home.journal.last_undoable() == home.journal.run(ids[2])


def test_undone_is_shown_and_effects_stay(home: Home) -> None:
    numbered(home, 2)
    undo(home.journal, home.store)
    last, first = home.journal.history()
    assert (last.undone, last.undoable, last.effects.created) == (True, False, ("n1.md",))
    assert (first.undone, first.undoable) == (False, True)


def test_the_plan_of_a_run(home: Home) -> None:
    (run_id,) = numbered(home, 1)
    assert home.journal.plan_of(run_id).document["goal"] == "Run 0"
    with pytest.raises(JournalError, match="no run"):
        home.journal.plan_of("x")


def test_only_the_owner_may_read_it(home: Home) -> None:
    numbered(home, 1)
    assert home.journal.folder.stat().st_mode & 0o077 == 0
    assert all(path.stat().st_mode & 0o077 == 0 for path in home.journal.folder.iterdir())


def test_each_vault_has_its_own(tmp_path: Path) -> None:
    assert vault_key("/a/Notes") != vault_key("/b/Notes")
    assert vault_key("/a/Notes").endswith("-Notes")
    assert len(os.fsencode(vault_key("/" + "ü" * 300))) < 255


def test_readers_see_what_another_connection_wrote(home: Home) -> None:
    with home.reopened().journal as other:
        assert other.history() == []
        numbered(home, 1)
        assert len(other.history()) == 1


def test_closing_neither_flushes_nor_loses(home: Home) -> None:
    numbered(home, 1)
    size = home.journal.file.stat().st_size
    home.journal.close()
    assert home.journal.file.stat().st_size == size
    assert len(home.reopened().journal.history()) == 1


def test_a_run_that_ended_lies_in_the_database_and_no_longer_in_the_log(home: Home) -> None:
    numbered(home, 2)
    assert (home.journal.folder / "journal.db-wal").stat().st_size == 0
    home.journal.close()
    assert len(home.reopened().journal.history()) == 2


def test_a_reader_does_not_hold_up_a_run(home: Home) -> None:
    numbered(home, 1)
    with sqlite3.connect(home.journal.file) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM record").fetchall()
        assert home.run(create("other.md", b"x")).success


class TestRetention:
    def kept(self, home: Home) -> list[bool]:
        with sqlite3.connect(home.journal.file) as connection:
            return [
                bool(size)
                for (size,) in connection.execute("SELECT bytes FROM record ORDER BY seq")
            ]

    def age(self, home: Home, days: int) -> None:
        with sqlite3.connect(home.journal.file) as connection:
            connection.execute("UPDATE record SET unix = unix - ?", (days * 86_400,))
            previous = seals.START
            for (seq,) in connection.execute("SELECT seq FROM record ORDER BY seq").fetchall():
                seals.append_to_chain(connection, seq, previous)
                (previous,) = connection.execute(
                    "SELECT hash FROM record WHERE seq = ?", (seq,)
                ).fetchone()
            integrity.Register(home.journal.folder).file.unlink()

    def test_the_last_runs_are_kept_however_old(self, home: Home) -> None:
        ids = numbered(home, 24)
        self.age(home, 91)
        numbered_last = home.run(create("last.md", b"x")).run_id
        assert self.kept(home) == [False] * 4 + [True] * 21
        entries = home.journal.history()
        assert [entry.undoable for entry in entries] == [True] * 21 + [False] * 4
        assert entries[-1].effects.created == ("n0.md",)
        assert home.journal.plan_of(ids[0]).document["goal"] == "Run 0"
        assert entries[0].run_id == numbered_last
        with pytest.raises(JournalError, match="no longer stored"):
            undo(home.journal, home.store, ids[0])

    def test_the_texts_of_old_plans_go_with_the_contents(self, home: Home) -> None:
        secret = "what no other user may read"
        steps = [
            step(
                "s0",
                args={"path": "n.md", "content": secret},
                preview=secret,
                when=f"{secret} == 1",
            )
        ]
        old = home.run(create("n.md", secret.encode()), steps=steps, goal="Old run").run_id or ""
        looked = home.run(steps=[step("s0", args={"find": secret})], goal="Looked").run_id or ""
        assert home.journal.plan_of(old).document["steps"][0]["args"]["content"] == secret
        numbered(home, 21)
        self.age(home, 91)
        home.run(create("last.md", b"x"))
        for run_id in (old, looked):
            assert not home.journal.plan_of(run_id).is_complete
            assert home.journal.plan_of(run_id).document["steps"] == [
                {"id": "s0", "tool": "vault.writeFile", "args": {}}
            ]
        assert home.journal.history()[-1].goal == "Old run"
        assert home.journal.plan_of(home.journal.history()[1].run_id).is_complete
        with pytest.raises(JournalError, match="no longer stored"):
            Runs(home.store, home.state).plan_of(old)
        home.journal.close()
        for file in home.journal.folder.iterdir():
            for part in secret.encode(), zlib.compress(secret.encode(), 1)[2:-4]:
                assert part not in file.read_bytes(), file
        with home.reopened().journal as journal:
            assert journal.examine(contents=True) == []

    def test_young_runs_are_kept(self, home: Home) -> None:
        numbered(home, 24)
        self.age(home, 89)
        home.run(create("last.md", b"x"))
        assert all(self.kept(home))

    def test_size_ends_it_too(self, home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(writer, "KEEP_BYTES", 1)
        numbered(home, 23)
        assert self.kept(home) == [False] * 2 + [True] * 21


class TestDamage:
    """Damaged files give an error with advice, or whole records, and are never written."""

    def usable(self, home: Home) -> str:
        """Return the state of the journal: "error", or "works" if it reads and a run works."""
        with home.reopened().journal as journal:
            before = home.seen()
            entries, error = None, None
            try:
                entries = journal.history()
                interrupted(journal, home.store)
            except JournalError as raised:
                error = raised
            assert error is None or error.hint
            result = type(home)(home.store, journal, home.state).run(create("probe.md", b"x"))
            if not result.success:
                assert result.errors[0].code.startswith(("JOURNAL", "RECOVERY"))
                assert home.seen() == before
                return "error"
            assert entries is not None, error
            for entry in entries:
                if entry.undoable:
                    try:
                        undo(journal, home.store, entry.run_id)
                    except JournalError as raised:
                        assert raised.code == "JOURNAL_DAMAGED"
            assert (home.root / "one.md").read_bytes() in (b"one\n", b"ONE\n")
            return "works"

    @pytest.fixture
    def files(self, home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        """Return a fresh copy of vault and journal after some runs, with an unmerged log."""
        monkeypatch.setattr(db, "checkpoint", lambda connection: False)
        numbered(home, 2)
        home.run(modify("one.md", b"one\n", b"ONE\n"))
        home.journal.close()
        copy = tmp_path / "copy"
        shutil.copytree(home.root, copy / "vault")
        shutil.copytree(home.journal.folder, copy / "journal")
        return copy

    def start_again(self, home: Home, files: Path) -> None:
        for source, target in (
            (files / "vault", home.root),
            (files / "journal", home.journal.folder),
        ):
            for path in target.iterdir():
                path.unlink() if path.is_file() else shutil.rmtree(path)
            shutil.copytree(source, target, dirs_exist_ok=True)

    @pytest.mark.parametrize("name", ["journal.db", "journal.db-wal"])
    def test_cut_off_anywhere(self, home: Home, files: Path, name: str) -> None:
        size = (files / "journal" / name).stat().st_size
        chosen = sorted({*range(0, 130, 13), *range(0, size, 997), size - 1})
        seen = set()
        for length in chosen:
            self.start_again(home, files)
            os.truncate(home.journal.folder / name, length)
            seen.add(self.usable(home))
        assert "error" in seen if name == "journal.db" else seen == {"works"}

    @pytest.mark.parametrize("name", ["journal.db", "journal.db-wal", "journal.db-shm", "lock"])
    def test_bytes_that_flipped(self, home: Home, files: Path, name: str) -> None:
        size = (files / "journal" / name).stat().st_size
        chance = random.Random(name)
        for _ in range(40):
            self.start_again(home, files)
            with (home.journal.folder / name).open("r+b") as file:
                for _ in range(chance.choice([1, 1, 20])):
                    file.seek(chance.randrange(size))
                    file.write(bytes([chance.randrange(256)]))
            self.usable(home)

    @pytest.mark.parametrize(
        "content", [b"", b"x", b"garbage" * 4000, bytes(40_000), b"SQLite format 3\0" + bytes(5000)]
    )
    def test_something_else_in_its_place(self, home: Home, files: Path, content: bytes) -> None:
        for keep_log in (True, False):
            self.start_again(home, files)
            home.journal.file.write_bytes(content)
            if not keep_log:
                (home.journal.folder / "journal.db-wal").unlink()
            assert self.usable(home) == "error"
            assert home.journal.file.read_bytes() == content

    def test_a_database_that_is_gone_while_its_log_is_there(self, home: Home, files: Path) -> None:
        home.journal.file.unlink()
        assert self.usable(home) == "error"

    def test_everything_gone_is_a_new_beginning(self, home: Home, files: Path) -> None:
        shutil.rmtree(home.journal.folder)
        assert self.usable(home) == "works"

    def test_a_folder_in_its_place(self, home: Home, files: Path) -> None:
        home.journal.file.unlink()
        home.journal.file.mkdir()
        assert self.usable(home) == "error"

    def test_another_vaults_journal(self, home: Home, files: Path, tmp_path: Path) -> None:
        (tmp_path / "other").mkdir()
        with (
            VaultStore.open(tmp_path / "other") as other,
            Journal.open(home.state, other) as journal,
        ):
            shutil.copytree(home.journal.folder, journal.folder)
            with pytest.raises(JournalError, match="another vault"):
                journal.history()

    def test_one_damaged_record_spoils_no_other(self, home: Home, files: Path) -> None:
        with sqlite3.connect(home.journal.file) as connection:
            connection.execute("UPDATE part SET actions = x'00' WHERE record = 2")
            connection.execute("UPDATE part SET images = x'00' WHERE record = 3")
        with home.reopened().journal as journal:
            third, second, first = journal.history()
            assert first.undoable
            with pytest.raises(JournalError, match="damaged"):
                undo(journal, home.store, second.run_id)
            result = undo(journal, home.store, third.run_id)
            assert [one.reason for one in result.conflicts] == [
                "its old content is no longer stored"
            ]
            assert undo(journal, home.store, first.run_id).restored == ("n0.md",)


def test_a_vault_that_was_moved_away(home: Home, tmp_path: Path) -> None:
    home.root.rename(tmp_path / "elsewhere")
    result = home.run(create("n.md", b"x"))
    assert (result.status, result.errors[0].code) == ("failed", "VAULT_MOVED")
    home.root.mkdir()
    assert home.run(create("n.md", b"x")).errors[0].code == "VAULT_MOVED"
    assert not (tmp_path / "elsewhere/n.md").exists()


def test_a_disk_without_room_for_the_journal(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    numbered(home, 1)
    before = home.seen()
    connection = home.journal._write_connection()
    pages = connection.execute("PRAGMA page_count").fetchone()[0]
    connection.execute(f"PRAGMA max_page_count = {pages}")
    result = home.run(create("big.md", os.urandom(200_000)))
    assert (result.status, result.run_id, result.errors[0].code) == (
        "failed",
        None,
        "JOURNAL_ERROR",
    )
    assert home.seen() == before
    assert len(home.journal.history()) == 1
