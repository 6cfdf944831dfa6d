"""Writes a journal as the code that is checked out makes it: `make_journal_dump.py FILE.sql`.

Its output for version 1 of the journal is kept as `journal_version_1.sql`, so that later code can be asked to open it. The place of the
vault stands in it as {vault}. `vault()` is the vault as it is after these runs.
"""

from __future__ import annotations

import sqlite3
import sys
import tempfile
from pathlib import Path

BEFORE = {"one.md": b"one\n", "two.md": b"two\r\n", "Folder/inner.md": b"inner\n" * 100}
AFTER = {
    "one.md": b"ONE\n",
    "Folder/two.md": b"two\r\n",
    "Folder/inner.md": b"inner\n" * 100,
    "new.md": b"New, and more.\n",
}


def lay_out(vault: Path, files: dict[str, bytes]) -> None:
    """Write the files of a vault."""
    for name, content in files.items():
        (vault / name).parent.mkdir(parents=True, exist_ok=True)
        (vault / name).write_bytes(content)


def main(target: Path) -> None:
    """Three runs, the second of them taken back; then one of two steps."""
    from obsidian_agent.journal.undo import undo
    from obsidian_agent.journal.writer import Journal
    from obsidian_agent.vault.filesystem.store import VaultStore
    from previews import create, modify, move, previewed, run

    with tempfile.TemporaryDirectory() as base:
        lay_out(Path(base, "vault"), BEFORE)
        with (
            VaultStore.open(Path(base, "vault")) as store,
            Journal.open(Path(base, "state"), store) as journal,
        ):
            assert run(
                previewed(modify("one.md", b"one\n", b"ONE\n"), goal="Shout"), store, journal
            ).success
            assert run(previewed(create("wrong.md", b"wrong")), store, journal).success
            undo(journal, store)
            move_it, make_it = (
                move("two.md", "Folder/two.md", b"two\r\n"),
                create("new.md", b"New, and more.\n"),
            )
            assert run(previewed(move_it, make_it, goal="Two steps"), store, journal).success
            journal.close()
            with sqlite3.connect(journal.file) as connection:
                text = "\n".join(connection.iterdump()).replace(store.real_path, "{vault}")
                marks = [
                    connection.execute(f"PRAGMA {name}").fetchone()[0]
                    for name in ("application_id", "user_version")
                ]
    target.write_text(
        f"PRAGMA application_id={marks[0]};\nPRAGMA user_version={marks[1]};\n{text}\n",
        encoding="utf-8",
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]))
