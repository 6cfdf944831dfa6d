"""Journals of other versions of the program."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from obsidian_agent.errors import JournalError
from obsidian_agent.journal import db
from obsidian_agent.journal.undo import undo
from previews import create

if TYPE_CHECKING:
    from tests.journal.conftest import Home


def test_a_column_more_is_no_damage(home: Home) -> None:
    home.run(create("n.md", b"x"))
    home.journal.close()
    with closing(sqlite3.connect(home.journal.file)) as connection:
        connection.execute("ALTER TABLE record ADD COLUMN remark TEXT")
    with home.reopened().journal as journal:
        assert len(journal.history()) == 1
        assert undo(journal, home.store).restored == ("n.md",)


@pytest.mark.parametrize(
    ("version", "age", "hint"),
    [(db.VERSION + 1, "newer", "Update obsidian-agent"), (1, "test", "Move the file away")],
)
def test_a_journal_of_another_format_is_refused_in_a_sentence(
    home: Home, version: int, age: str, hint: str
) -> None:
    home.run(create("n.md", b"x"))
    home.journal.close()
    with closing(sqlite3.connect(home.journal.file)) as connection:
        connection.execute(f"PRAGMA user_version = {version}")
    with home.reopened().journal as journal, pytest.raises(JournalError) as raised:
        journal.history()
    assert f"was written by a {age} version of obsidian-agent" in raised.value.message
    assert hint in (raised.value.hint or "")
