from __future__ import annotations

import json
import os
import threading
from datetime import UTC, datetime
from pathlib import Path
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from obsidian_agent.agent.privacy import record as module
from obsidian_agent.agent.privacy.record import Record, Verified

NOW = datetime(2026, 3, 1, tzinfo=UTC)


def record(folder: Path) -> Record:
    return Record(folder, lambda: NOW)


@pytest.fixture
def rotated(tmp_path: Path) -> Record:
    """A record in two files, the older with lines 1 to 4, the newer with 5 to 7."""
    made = record(tmp_path)
    for number in range(1, 8):
        with patch.object(module, "LARGEST", 0 if number == 5 else 10_000):
            made.append([{"kind": "run", "goal": f"Tëst {number}"}])
    assert [file.name for file in sorted(tmp_path.glob("audit*.jsonl"))] == ["audit-000000001.jsonl", "audit.jsonl"]
    assert made.verify() == Verified(7)
    return made


def test_what_was_appended_is_read_in_order(rotated: Record) -> None:
    assert [(entry["n"], entry["goal"]) for entry in rotated.entries()] == [(number, f"Tëst {number}") for number in range(1, 8)]
    assert os.stat(rotated.file).st_mode & 0o777 == 0o600


def test_each_byte_that_is_changed_is_found_and_its_line_named(rotated: Record) -> None:
    number = 0
    for file in sorted(rotated.folder.glob("audit*.jsonl")):
        data = file.read_bytes()
        first = number
        for at in range(len(data)):
            file.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
            assert rotated.verify().first_bad == first + 1 + data[:at].count(b"\n"), (file.name, at)
        file.write_bytes(data)
        number += data.count(b"\n")


@pytest.mark.parametrize(("gone", "named"), [(0, 1), (1, 2), (3, 4), (4, 5), (6, 7)])
def test_a_line_that_is_taken_away_is_named(rotated: Record, gone: int, named: int) -> None:
    file, at = (rotated.folder / "audit-000000001.jsonl", gone) if gone < 4 else (rotated.file, gone - 4)
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join(lines[:at] + lines[at + 1 :]))
    assert rotated.verify().first_bad == named


def test_a_cut_is_found_wherever_it_is(rotated: Record) -> None:
    data = rotated.file.read_bytes()
    for length in range(len(data)):
        rotated.file.write_bytes(data[:length])
        assert rotated.verify().first_bad == 5 + data[:length].count(b"\n")
    rotated.file.unlink()
    assert rotated.verify().first_bad == 5


def test_an_older_file_or_the_head_that_is_gone_is_found(rotated: Record) -> None:
    (rotated.folder / "audit-000000001.jsonl").rename(rotated.folder / "elsewhere")
    assert rotated.verify().first_bad == 1
    (rotated.folder / "elsewhere").rename(rotated.folder / "audit-000000001.jsonl")
    rotated.head.unlink()
    assert rotated.verify().first_bad == 7


def test_a_line_of_ones_own_making_is_found(rotated: Record) -> None:
    lines = rotated.file.read_bytes().splitlines(keepends=True)
    forged = json.loads(lines[-1]) | {"n": 8}
    rotated.file.write_bytes(b"".join(lines) + json.dumps(forged).encode() + b"\n")
    assert rotated.verify().first_bad == 8


@given(st.integers(0, 200), st.booleans())
def test_a_crash_at_any_point_leaves_a_record_that_goes_on(length: int, head: bool) -> None:
    """The bytes of a line reach the disk in part, or whole without the head; what is only there in part never counted."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        made = record(Path(folder))
        made.append([{"kind": "run"}])
        before, old_head = made.file.read_bytes(), made.head.read_bytes()
        made.append([{"kind": "sent"}])
        after = made.file.read_bytes()
        if not head:
            made.file.write_bytes(after[: len(before) + length])
            made.head.write_bytes(old_head)
        made.append([{"kind": "undo"}])
        assert made.verify().first_bad is None
        assert [entry["kind"] for entry in made.entries()] in (["run", "undo"], ["run", "sent", "undo"])


def test_several_writers_make_one_chain(tmp_path: Path) -> None:
    def write() -> None:
        for _ in range(20):
            record(tmp_path).append([{"kind": "run"}])

    writers = [threading.Thread(target=write) for _ in range(4)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert record(tmp_path).verify() == Verified(80)


def test_a_record_that_is_not_there_is_whole(tmp_path: Path) -> None:
    assert record(tmp_path / "none").verify() == Verified(0)
    assert record(tmp_path / "none").entries() == []
