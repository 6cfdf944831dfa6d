"""Threads on disk."""

from __future__ import annotations

import os
import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from obsidian_agent.errors import ConfigError
from obsidian_agent.threads.log_store import TAIL, ThreadStore, summary_of, version_record
from obsidian_agent.threads.state import records_in


class Clock:
    """A minute passes with every look."""

    def __init__(self) -> None:
        self.now = datetime(2026, 3, 14, 9, 30, tzinfo=UTC)

    def __call__(self) -> datetime:
        self.now += timedelta(minutes=1)
        return self.now


@pytest.fixture
def store(tmp_path: Path) -> ThreadStore:
    return ThreadStore(tmp_path / "state" / "threads", Clock())


def exchange(store: ThreadStore, thread_id: str, question: str, answer: str) -> None:
    """Record a whole turn."""
    file = store.file(thread_id)
    file.add({"k": "asked", "text": question, "time": store.now()})
    file.add({"k": "message", "role": "user", "text": question, "time": store.now()})
    file.add({"k": "message", "role": "assistant", "text": answer, "time": store.now()})
    state = store.load(thread_id)
    file.add(version_record(len(state.versions) + 1, store.now(), summary_of(state)), durable=True)


def test_a_thread_is_made_listed_renamed_and_deleted(store: ThreadStore) -> None:
    assert store.summaries() == []
    one = store.create()
    assert one.title == "Conversation 2026-03-14 09:32"
    two = store.create("openai/x")
    exchange(store, one.id, "What grows?", "Tomatoes.")
    assert [each.id for each in store.summaries()] == [one.id, two.id]
    assert store.summaries()[1].model == "openai/x"
    assert (store.summaries()[0].preview, store.summaries()[0].count) == ("Tomatoes.", 2)
    assert store.rename(one.id, "  The\ngarden  ") == "The garden"
    assert store.load(one.id).title == "The garden"
    assert store.delete(two.id)
    assert not store.delete(two.id)
    assert [each.title for each in store.summaries()] == ["The garden"]


def test_files_are_nobody_elses(store: ThreadStore) -> None:
    path = store.file(store.create().id).path
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_long_threads_are_listed_from_their_ends(store: ThreadStore) -> None:
    thread = store.create()
    exchange(store, thread.id, "Long?", "x" * (2 * TAIL))
    exchange(store, thread.id, "Short?", "Yes.")
    exchange(store, thread.id, "And?", "y" * TAIL)
    store.rename(thread.id, "Much")
    (found,) = store.summaries()
    assert found == summary_of(store.load(thread.id))
    store.file(thread.id).add({"k": "asked", "text": "New?", "time": store.now()})
    assert store.summaries()[0].preview == "New?"


@pytest.mark.parametrize(
    "bad", ["", "../../etc/passwd", "0011", "00112233AABBCCDD", "00112233aabbccdd/x"]
)
def test_only_ids_are_ids(bad: str, store: ThreadStore) -> None:
    for act in (store.load, store.delete, lambda each: store.rename(each, "x")):
        with pytest.raises(ConfigError) as caught:
            act(bad)
        assert caught.value.code == "THREAD_NOT_FOUND"


def test_search_finds_titles_and_words(store: ThreadStore) -> None:
    one, two = store.create(), store.create()
    exchange(store, one.id, "What about the GARDEN beds?", "First line.\nThe beds need soil.")
    exchange(store, two.id, "Nothing", "Empty")
    store.rename(two.id, "Garden party")
    found = store.search("garden")
    assert {hit.thread.id for hit in found} == {one.id, two.id}
    (hit,) = store.search("beds soil")
    assert hit.lines == ("What about the GARDEN beds?", "The beds need soil.")
    assert store.search("") == []
    assert store.search("zebra") == []


def test_a_damaged_line_costs_no_more_than_itself(store: ThreadStore) -> None:
    thread = store.create()
    exchange(store, thread.id, "One?", "1")
    exchange(store, thread.id, "Two?", "2")
    path = store.file(thread.id).path
    lines = path.read_bytes().split(b"\n")
    lines[4] = lines[4][: len(lines[4]) // 2]
    path.write_bytes(b"\n".join(lines))
    state = store.load(thread.id)
    assert state.damaged == 1
    assert [said.text for said in state.entries if said.role == "model"] == ["2"]


@pytest.mark.parametrize("cut", [1, 10, 40])
def test_a_line_that_was_cut_off_does_not_swallow_the_next(cut: int, store: ThreadStore) -> None:
    thread = store.create()
    exchange(store, thread.id, "One?", "1")
    path = store.file(thread.id).path
    os.truncate(path, path.stat().st_size - cut)
    exchange(store, thread.id, "Two?", "2")
    assert [said.text for said in store.load(thread.id).entries] == ["One?", "1", "Two?", "2"]


def test_at_every_byte_the_file_can_be_read(store: ThreadStore) -> None:
    thread = store.create()
    exchange(store, thread.id, "Größe?", "Ja")
    path = store.file(thread.id).path
    whole = path.read_bytes()
    first = whole.index(b"\n") + 1
    for length in range(first, len(whole) + 1):
        path.write_bytes(whole[:length])
        state = store.load(thread.id)
        assert state.damaged == 0
        assert [said.text for said in state.entries] == ["Größe?", "Ja"][: len(state.entries)]


def test_files_of_a_later_format_are_left_alone(store: ThreadStore) -> None:
    thread = store.create()
    path = store.file(thread.id).path
    path.write_bytes(path.read_bytes().replace(b'"format":1', b'"format":7'))
    with pytest.raises(ConfigError) as caught:
        store.load(thread.id)
    assert caught.value.code == "THREAD_TOO_NEW"
    path.write_bytes(b"nothing\n")
    with pytest.raises(ConfigError) as caught:
        store.load(thread.id)
    assert caught.value.code == "THREAD_DAMAGED"
    assert store.summaries() == []


def test_old_pieces_go_when_a_thread_is_read(store: ThreadStore) -> None:
    thread = store.create()
    file = store.file(thread.id)
    file.add(*({"k": "stream", "text": f"{n} "} for n in range(100)))
    exchange(store, thread.id, "q", "a")
    before = store.load(thread.id)
    file.add(
        *({"k": "stream", "text": f"{n} "} for n in range(100)),
        {"k": "message", "role": "assistant", "text": "b", "time": "t"},
    )
    state = store.load(thread.id)
    assert [said.text for said in state.entries] == [*(said.text for said in before.entries), "b"]
    records, _ = records_in(file.path.read_bytes())
    assert sum(record["k"] == "stream" for record in records) == 100, (
        "those of the answer that broke off are all that there is of it"
    )
    assert not list(file.path.parent.glob(".*"))


def test_going_back(store: ThreadStore) -> None:
    thread = store.create()
    exchange(store, thread.id, "One?", "1")
    exchange(store, thread.id, "Two?", "2")
    assert [said.text for said in store.rewind(thread.id, 1).entries] == ["One?", "1"]
    with pytest.raises(ConfigError) as caught:
        store.rewind(thread.id, 9)
    assert caught.value.code == "NO_VERSION"


def test_a_disk_that_does_not_take_it_is_an_error_that_says_so(store: ThreadStore) -> None:
    thread = store.create()
    path = store.file(thread.id).path
    path.unlink()
    path.mkdir()
    with pytest.raises(ConfigError) as caught:
        store.file(thread.id).add({"k": "asked", "text": "x"})
    assert caught.value.code == "THREAD_NOT_SAVED"


def test_a_thread_that_was_deleted_meanwhile_does_not_come_back(store: ThreadStore) -> None:
    thread = store.create()
    file = store.file(thread.id)
    store.delete(thread.id)
    with pytest.raises(ConfigError) as caught:
        file.add({"k": "asked", "text": "x"})
    assert caught.value.code == "THREAD_NOT_SAVED"
    assert store.summaries() == []


@pytest.mark.skipif(os.name == "nt", reason="locks of files")
def test_only_one_program_works_in_a_thread(store: ThreadStore) -> None:
    thread = store.create()
    with store.file(thread.id).locked():
        with pytest.raises(ConfigError) as caught, store.file(thread.id).locked():
            pass
        assert caught.value.code == "THREAD_BUSY"
    with store.file(thread.id).locked():
        pass


@pytest.mark.skipif(os.name == "nt", reason="locks of files")
def test_a_thread_that_is_worked_in_is_not_made_smaller(store: ThreadStore) -> None:
    thread = store.create()
    file = store.file(thread.id)
    file.add(
        *({"k": "stream", "text": f"{n} "} for n in range(100)),
        {"k": "message", "role": "assistant", "text": "b", "time": "t"},
    )
    size = file.path.stat().st_size
    with file.locked():
        store.load(thread.id)
        assert file.path.stat().st_size == size
    store.load(thread.id)
    assert file.path.stat().st_size < size
