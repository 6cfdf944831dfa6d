from __future__ import annotations

import hashlib
import json
import os
import stat
import threading
from collections.abc import AsyncGenerator, Callable
from datetime import UTC, datetime
from pathlib import Path
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents import NOW as DESK_NOW
from agents import Desk, call, calls, only, played, results, scripted
from obsidian_agent.agent.events import TurnFailed
from obsidian_agent.agent.privacy import record as module
from obsidian_agent.agent.privacy.consent import Level, ShareDecision, SharedPart
from obsidian_agent.agent.privacy.ledger import Ledger, Sending
from obsidian_agent.agent.privacy.record import AuditRecord, Verified
from obsidian_agent.errors import ConfigError
from obsidian_agent.plan.policy import SharingRules
from obsidian_agent.providers.base import ChatDelta, ChatRequest
from obsidian_agent.services.focus import Focus

NOW = datetime(2026, 3, 1, tzinfo=UTC)


def record(folder: Path) -> AuditRecord:
    return AuditRecord(folder, lambda: NOW)


@pytest.fixture
def rotated(tmp_path: Path) -> AuditRecord:
    """Create a record in two files, the older with lines 1 to 4, the newer with 5 to 7."""
    made = record(tmp_path)
    for number in range(1, 8):
        with patch.object(module, "MAX_BYTES", 0 if number == 5 else 10_000):
            made.append([{"kind": "run", "goal": f"Tëst {number}"}])
    assert [file.name for file in sorted(tmp_path.glob("audit*.jsonl"))] == [
        "audit-000000001.jsonl",
        "audit.jsonl",
    ]
    assert made.verify() == Verified(7)
    return made


def test_what_was_appended_is_read_in_order(rotated: AuditRecord) -> None:
    assert [(entry["n"], entry["goal"]) for entry in rotated.entries()] == [
        (number, f"Tëst {number}") for number in range(1, 8)
    ]
    assert os.stat(rotated.file).st_mode & 0o777 == 0o600


def test_each_byte_that_is_changed_is_found_and_its_line_named(rotated: AuditRecord) -> None:
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
def test_a_line_that_is_taken_away_is_named(rotated: AuditRecord, gone: int, named: int) -> None:
    file, at = (
        (rotated.folder / "audit-000000001.jsonl", gone) if gone < 4 else (rotated.file, gone - 4)
    )
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join(lines[:at] + lines[at + 1 :]))
    assert rotated.verify().first_bad == named


def test_a_cut_is_found_wherever_it_is(rotated: AuditRecord) -> None:
    data = rotated.file.read_bytes()
    for length in range(len(data)):
        rotated.file.write_bytes(data[:length])
        assert rotated.verify().first_bad == 5 + data[:length].count(b"\n")
    rotated.file.unlink()
    assert rotated.verify().first_bad == 5


def test_an_older_file_or_the_head_that_is_gone_is_found(rotated: AuditRecord) -> None:
    (rotated.folder / "audit-000000001.jsonl").rename(rotated.folder / "elsewhere")
    assert rotated.verify().first_bad == 1
    (rotated.folder / "elsewhere").rename(rotated.folder / "audit-000000001.jsonl")
    rotated.head.unlink()
    assert rotated.verify().first_bad == 7


def test_a_line_of_ones_own_making_is_found(rotated: AuditRecord) -> None:
    lines = rotated.file.read_bytes().splitlines(keepends=True)
    forged = json.loads(lines[-1]) | {"n": 8}
    rotated.file.write_bytes(b"".join(lines) + json.dumps(forged).encode() + b"\n")
    assert rotated.verify().first_bad == 8


@given(st.integers(0, 200), st.booleans())
def test_a_crash_at_any_point_leaves_a_record_that_goes_on(length: int, head: bool) -> None:
    """A line that reached the disk in part, or without the head, does not count."""
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
        assert [entry["kind"] for entry in made.entries()] in (
            ["run", "undo"],
            ["run", "sent", "undo"],
        )


def test_a_line_costs_one_flush(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A reply to another agent waits for it."""
    flushed: list[int] = []
    made = record(tmp_path)
    made.append([{"kind": "run"}])
    monkeypatch.setattr(os, "fsync", flushed.append)
    made.append([{"kind": "run"}, {"kind": "sent"}])
    assert len(flushed) == 1
    assert made.verify() == Verified(3)


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


# --- what was sent ---

TWO = calls(
    call("vault__readFiles", filePaths=["Garden.md", "Finance/bank.md"]),
    call("vault__searchText", query="soil"),
)
DONE = {"text": "Done."}


def files(desk: Desk) -> list[tuple[str, str, str, str]]:
    """(tool, path, how much, why) of everything that was sent."""
    return [
        (entry["tool"], each["path"], each["shared"], each["allowedBy"])
        for entry in desk.ledger.entries()
        for each in entry["files"]
    ]


async def test_exactly_what_was_sent_is_written_down(desk: Desk) -> None:
    desk.person.decide = only("Garden.md", "Projects/Plan.md")
    provider = scripted(TWO, DONE)
    provider.address = "https://models.example"
    await desk.turn(provider)
    assert files(desk) == [
        ("vault.readFiles", "Garden.md", "text", "once"),
        ("vault.searchText", "Projects/Plan.md", "preview", "once"),
    ]
    first, second = desk.ledger.entries()
    assert (first["provider"], first["address"], first["conversation"]) == (
        "scripted/test",
        "https://models.example",
        desk.conversation.id,
    )
    assert (first["time"], first["callId"]) == (
        DESK_NOW.isoformat(timespec="milliseconds"),
        "call_1_0",
    )
    for entry, text in zip((first, second), results(provider.requests[1].messages), strict=True):
        assert (entry["sha256"], entry["characters"]) == (
            hashlib.sha256(text.encode()).hexdigest(),
            len(text),
        )


async def test_why_it_was_allowed_is_written_down(desk: Desk) -> None:
    desk.rules = SharingRules.of(allow=["Garden.md"])
    desk.person.decide = lambda request: ShareDecision("folder")
    await desk.turn(scripted(TWO, calls(call("vault__readFile", path="Finance/bank.md")), DONE))
    assert [(path, why) for _, path, _, why in files(desk)] == [
        ("Garden.md", "rule"),
        ("Finance/bank.md", "folder"),
        ("Projects/Plan.md", "folder"),
        ("Finance/bank.md", "granted"),
    ]


async def test_open_notes_are_written_down_by_name(make_desk: Callable[..., Desk]) -> None:
    desk = make_desk(focus=Focus("Garden.md"))
    await desk.turn(scripted(DONE))
    assert files(desk) == [("context", "Garden.md", "name", "context")]


async def test_it_is_written_before_it_is_sent(desk: Desk) -> None:
    seen: list[int] = []

    class Watching:
        name, address, local = "watching", "", False
        inner = scripted(TWO, DONE)

        def stream(self, request: ChatRequest) -> AsyncGenerator[ChatDelta, None]:
            seen.append(len(desk.ledger.entries()))
            return self.inner.stream(request)

    assert [event async for event in played(desk.agent(Watching()), desk.request())]
    assert seen == [0, 2]


async def test_what_cannot_be_written_down_is_not_sent(desk: Desk) -> None:
    desk.state.write_text("a file where the folder should be")
    provider = scripted(TWO, DONE)
    events = await desk.turn(provider)
    assert isinstance(events[-1], TurnFailed)
    assert events[-1].problem.code == "LEDGER_ERROR"
    assert len(provider.requests) == 1


async def test_nothing_of_the_text_is_repeated(desk: Desk) -> None:
    await desk.turn(scripted(TWO, DONE))
    text = desk.ledger.record.file.read_text(encoding="utf-8")
    assert "Tomatoes" not in text
    assert "XK4711Q" not in text


def sending(path: str = "a.md") -> Sending:
    return Sending("tool", "id", "text", ((SharedPart(path, Level.TEXT, 4), "once"),))


def test_it_only_grows_and_nobody_else_reads_it(tmp_path: Path) -> None:
    ledger = Ledger(AuditRecord(tmp_path / "deep", lambda: DESK_NOW))
    assert ledger.entries() == []
    ledger.write([sending()], provider="p", address="a", conversation="c")
    before = ledger.record.file.read_bytes()
    ledger.write(
        [sending("b.md"), Sending("tool", "id", "nothing of a note", ())],
        provider="p",
        address="a",
        conversation="c",
    )
    assert ledger.record.file.read_bytes().startswith(before)
    assert [entry["files"][0]["path"] for entry in ledger.entries()] == ["a.md", "b.md"]
    if os.name == "posix":
        assert stat.S_IMODE(ledger.record.file.stat().st_mode) == 0o600


def test_a_line_that_broke_off_is_left_out(tmp_path: Path) -> None:
    ledger = Ledger(AuditRecord(tmp_path, lambda: DESK_NOW))
    ledger.write([sending()], provider="p", address="a", conversation="c")
    with ledger.record.file.open("ab") as file:
        file.write(b'{"tool": "half')
    assert len(ledger.entries()) == 1


@pytest.mark.parametrize(
    "name", ["lone \ud800 surrogate.md", "line\nbreak.md", 'quote".md', "日本.md"]
)
def test_one_line_an_entry_whatever_the_name(name: str, tmp_path: Path) -> None:
    ledger = Ledger(AuditRecord(tmp_path, lambda: DESK_NOW))
    ledger.write([sending(name)], provider="p", address="a", conversation="c")
    (line,) = ledger.record.file.read_text(encoding="utf-8").splitlines()
    assert json.loads(line)["tool"] == "tool"


@pytest.mark.skipif(os.name != "posix", reason="links need no rights there only")
def test_a_link_in_its_place_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "audit.jsonl").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ConfigError):
        Ledger(AuditRecord(tmp_path, lambda: DESK_NOW)).write(
            [sending()], provider="p", address="a", conversation="c"
        )
    assert not (tmp_path / "elsewhere").exists()


async def test_the_files_of_a_conversation_are_told_apart_by_how_much_went(desk: Desk) -> None:
    desk.person.decide = only("Garden.md", "Projects/Plan.md")
    await desk.turn(scripted(TWO, calls(call("vault__readFile", path="Projects/Plan.md")), DONE))
    found = desk.ledger.files_read(desk.conversation.id)
    assert [(each.path, each.shared, each.times) for each in found] == [
        ("Garden.md", "text", 1),
        ("Projects/Plan.md", "text", 2),
    ]
    assert found[0].providers == ("scripted/test",)
    assert desk.ledger.files_read("another") == []
