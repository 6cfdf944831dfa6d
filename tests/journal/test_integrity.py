from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from obsidian_agent.errors import JournalError
from obsidian_agent.journal.integrity import REGISTER_FILE, Register, RegisterEntry
from obsidian_agent.journal.undo import redo, undo
from previews import create, previewed, run

if TYPE_CHECKING:
    from tests.journal.conftest import Home


def entry(seq: int) -> RegisterEntry:
    return RegisterEntry(seq, f"20260102-030405-{seq:06x}", "run", bytes([seq]) * 32)


@pytest.fixture
def register(tmp_path: Path) -> Register:
    found = Register(tmp_path)
    found.write([entry(2), entry(1)])
    return found


def test_what_is_written_is_read(register: Register) -> None:
    register.add([entry(3)])
    listed = register.read()
    assert (listed.entries, listed.is_complete, listed.last) == (
        {seq: entry(seq) for seq in (1, 2, 3)},
        True,
        3,
    )
    assert register.file.stat().st_mode & 0o077 == 0


def test_a_line_that_was_damaged_is_left_out_and_told(register: Register) -> None:
    text = register.file.read_bytes()
    for at in range(len(text)):
        register.file.write_bytes(text[:at] + bytes([text[at] ^ 1]) + text[at + 1 :])
        listed = register.read()
        assert not listed.is_complete
        assert all(found == entry(seq) for seq, found in listed.entries.items())
        assert len(listed.entries) >= 1 or at in (text.find(b"\n", 30),)


def test_a_line_is_complete_when_the_disk_takes_a_few_bytes_at_a_time(
    register: Register, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = os.write
    with monkeypatch.context() as patched:
        patched.setattr(os, "write", lambda fd, data: write(fd, bytes(data[:7])))
        register.add([entry(3)])
    assert register.read().last == 3
    assert register.read().is_complete


def test_a_line_that_could_not_be_flushed_is_not_there(
    register: Register, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(fd: int) -> None:
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", fail)
        with pytest.raises(OSError, match="Input/output"):
            register.add([entry(3)])
    assert register.read().last == 2
    assert register.read().is_complete


@pytest.mark.parametrize("call", ["add", "write"])
def test_a_line_that_is_flushed_stays_when_what_follows_fails(
    register: Register, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    """A record that the register lists must not be withdrawn: it would be told as lost."""
    really = os.close
    lines = {"add": [entry(3)], "write": [entry(1), entry(2), entry(3)]}[call]

    def failing(fd: int) -> None:
        named = os.readlink(f"/proc/self/fd/{fd}") if os.path.exists(f"/proc/self/fd/{fd}") else ""
        really(fd)
        if not named.endswith(".new"):
            raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "close", failing)
    getattr(register, call)(lines)
    monkeypatch.undo()
    assert register.read().last == 3


def test_every_record_is_in_it_before_the_vault_is_touched(home: Home) -> None:
    home.run(create("n.md", b"x"))
    undo(home.journal, home.store)
    redo(home.journal, home.store)
    assert [one.kind for one in Register(home.journal.folder).read().entries.values()] == [
        "run",
        "undo",
        "redo",
    ]


def test_one_that_is_damaged_is_written_anew_with_the_next_run(home: Home) -> None:
    home.run(create("n.md", b"x"))
    (home.journal.folder / REGISTER_FILE).write_bytes(b"nonsense")
    (told,) = home.journal.examine()
    assert "damaged or missing" in told.message
    home.run(create("m.md", b"x"))
    assert home.journal.examine() == []
    assert Register(home.journal.folder).read().last == 2


def test_a_run_that_is_lost_stays_told_when_others_follow(home: Home) -> None:
    ids = [home.run(create(f"n{number}.md", b"x")).run_id for number in range(3)]
    home.journal.close()
    saved = home.journal.file.read_bytes()
    lost = home.run(create("lost.md", b"x")).run_id
    home.journal.close()
    home.journal.file.write_bytes(saved)
    with home.reopened().journal as journal:
        (told,) = journal.examine()
        assert (told.code, str(lost) in told.message) == ("RUN_MISSING", True)
        with pytest.raises(JournalError, match=f"{lost} is missing"):
            undo(journal, home.store)
        with pytest.raises(JournalError, match="is missing from the journal"):
            undo(journal, home.store, lost)
        assert undo(journal, home.store, ids[1]).restored == ("n1.md",)
        after = run(previewed(create("after.md", b"x")), home.store, journal)
        assert after.success
        (again,) = journal.examine(contents=True)
        assert again.message == told.message
        assert undo(journal, home.store).run_id == after.run_id
        with pytest.raises(JournalError, match=f"{lost} is missing"):
            undo(journal, home.store)


def test_a_journal_whose_database_is_gone_names_what_it_held(home: Home) -> None:
    ids = [home.run(create(f"n{number}.md", b"x")).run_id for number in range(2)]
    home.journal.close()
    for name in ("journal.db", "journal.db-wal", "journal.db-shm"):
        (home.journal.folder / name).unlink()
    with home.reopened().journal as journal:
        assert journal.history() == []
        assert [
            str(run_id) in told.message for run_id, told in zip(ids, journal.examine(), strict=True)
        ] == [True, True]
        assert run(previewed(create("after.md", b"x")), home.store, journal).success
        assert len(journal.examine()) == 2
