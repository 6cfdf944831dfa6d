"""What is wrong with a journal: records that are lost or damaged, found by the chain of records and by the register."""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Collection, Mapping

from obsidian_agent.errors import JournalError, Problem
from obsidian_agent.journal import seals
from obsidian_agent.journal.images import StoredPart
from obsidian_agent.journal.register import Entry, Listed

MISSING, DAMAGED = "RUN_MISSING", "JOURNAL_DAMAGED"


def examine(connection: sqlite3.Connection | None, listed: Listed, *, contents: bool) -> list[Problem]:
    """What is wrong, in the order of the records. With `contents` what is kept of the files is read too. sqlite3.Error."""
    chain = seals.chain(connection, listed.last) if connection is not None else []
    there = {seq for seq, *_ in chain}
    found = {seq: _missing(seq, listed.entries) for seq in lost(there, listed.entries)}
    hashes = {seq: entry.hash for seq, entry in listed.entries.items()}
    hashes[0] = seals.START
    for seq, run_id, previous, hash, whole in chain:
        linked = hash is None or previous == hashes.get(seq - 1, previous)
        if not (whole and linked and hash in (None, hashes.get(seq, hash))):
            found[seq] = _damaged(run_id, "it is not as it was written")
        elif hash is not None:
            hashes[seq] = hash
    if contents and connection is not None:
        for seq, run_id, count in connection.execute("SELECT seq, run_id, count FROM record ORDER BY seq").fetchall():
            if seq not in found and (wrong := _wrong_with_parts(connection, seq, count)):
                found[seq] = _damaged(run_id, wrong)
    problems = [problem for _, problem in sorted(found.items())]
    if contents and connection is not None and not problems:
        flaws = [text for (text,) in connection.execute("PRAGMA integrity_check(1)") if text != "ok"]
        problems += [Problem(DAMAGED, f"The journal's database is damaged: {text}.") for text in flaws]
    if chain and not listed.whole:
        told = "The list of runs beside the journal is damaged or gone, so runs that are missing at its end may not be noticed."
        problems.append(Problem(DAMAGED, f"{told} The next run writes it anew."))
    return problems


def lost(there: Collection[int], listed: Mapping[int, Entry]) -> list[int]:
    """The numbers of records that were made and are no longer there, in order. Numbers are given without a gap."""
    return sorted(set(range(1, max([0, *there, *listed]) + 1)) - set(there))


def named(seq: int, listed: Mapping[int, Entry]) -> str:
    """A record that is lost, in words."""
    entry = listed.get(seq)
    if entry is None:
        return f"Record {seq}"
    return f"Run {entry.run_id}" if entry.kind == "run" else f"The {entry.kind} {entry.run_id}"


def _missing(seq: int, listed: Mapping[int, Entry]) -> Problem:
    entry = listed.get(seq)
    after = "what it changed can no longer be undone" if entry is None or entry.kind == "run" else "it cannot be taken back"
    return Problem(MISSING, f"{named(seq, listed)} is missing from the journal: {after}.")


def _damaged(run_id: str, why: str) -> Problem:
    return Problem(DAMAGED, f"Run {run_id} is damaged in the journal ({why}), so it cannot be undone.")


def _wrong_with_parts(connection: sqlite3.Connection, seq: int, count: object) -> str | None:
    """What is wrong with the actions and contents kept with a record."""
    numbers: list[int] = []
    for first, actions, images, checksum in connection.execute(
        "SELECT first, actions, images, checksum FROM part WHERE record = ? ORDER BY number", (seq,)
    ):
        try:
            numbers += [action.number for action in StoredPart(actions).actions(first)]
        except JournalError:
            return "its list of changes cannot be read"
        if images is not None and zlib.crc32(images, zlib.crc32(actions)) != checksum:
            return "contents that it keeps are not as they were"
    return None if numbers == list(range(len(numbers))) and count == len(numbers) else "changes are missing from its list"
