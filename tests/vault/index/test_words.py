"""Stored words answer a search as reading the notes does."""

from __future__ import annotations

from array import array
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from obsidian_agent.vault.filesystem.store import VaultStore
from obsidian_agent.vault.index import keeper as index_keeper
from obsidian_agent.vault.index.columns import LONG_TYPE
from obsidian_agent.vault.index.keeper import IndexKeeper
from obsidian_agent.vault.index.packs import WORDS_SUFFIX
from obsidian_agent.vault.index.stored import StoredIndex
from obsidian_agent.vault.index.word_query import WordQuery
from obsidian_agent.vault.index.word_search import rank_notes
from obsidian_agent.vault.index.words import PackedNotes, PackWords, write_words
from obsidian_agent.vault.paths.path import ROOT, PathUse, parse
from obsidian_agent.vault.views.changes import ModifyFile
from obsidian_agent.vault.views.disk import DiskView
from obsidian_agent.vault.views.filtered import FilteredView
from obsidian_agent.vault.views.overlay import OverlayVault

PIECES = st.sampled_from(
    ["budget", "budgets", "Budgeting", "Straße", "strasse", "exercise", "Exercises", "日本語", "日"]
    + ["회의록", "회의", "e2e", "a_b", "März", "ﬁle", "задача", "задачи", "x"]
)
TEXTS = st.lists(st.lists(PIECES).map(", ".join), min_size=1, max_size=4)
QUERIES = [
    "budget",
    "bud",
    "exercises",
    "strasse",
    "日本",
    "語",
    "회의",
    "задачи",
    "file",
    "märz",
    "e2e a_b",
]


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(TEXTS)
def test_stored_words_are_counted_as_those_of_the_text(tmp_path, texts):
    pack = tmp_path / "a.pack"
    encoded = [text.encode() for text in texts]
    starts = [sum(len(data) + 1 for data in encoded[:at]) for at in range(len(encoded))]
    pack.write_bytes(b"".join(data + b"\n" for data in encoded))
    write_words(PackedNotes(str(pack), numbers(starts), numbers(map(len, encoded))))
    stored = PackWords(Path(f"{pack}{WORDS_SUFFIX}"))
    for query in QUERIES:
        for word in WordQuery(query).words:
            counts = stored.counts(word)
            for start, text in zip(starts, texts, strict=True):
                expected = word.count(text.casefold())
                actual = counts[start].occurrences if start in counts else 0
                assert actual == pytest.approx(expected), (word.text, text)


def numbers(values) -> bytes:
    return array(LONG_TYPE, values).tobytes()


NOTES = {
    "Budget.md": "The budget of March.",
    "Plan.md": "# Budget\nWhat the budgets of March and April are.",
    "Private/Plan.md": "The secret budget.",
    "Long.md": "budget " + "of nothing in particular " * 50,
    "日記.md": "今日は会議録を書いた。",
}
QUESTIONS = [
    "budget",
    "budget march",
    "what are the budgets of march",
    "会議録",
    "of",
    '"of March"',
]


@pytest.fixture
def keeper(tmp_path, monkeypatch):
    """Yield the keeper of a vault whose words are stored, in a worker process as in the program."""
    monkeypatch.setattr(index_keeper, "PROCESS_AFTER", 0)
    monkeypatch.setattr("obsidian_agent.vault.index.stamps.STABLE_NS", 0)
    folder = tmp_path / "vault"
    for name, text in NOTES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    with VaultStore.open(folder) as store:
        keeper = IndexKeeper(store, tmp_path / "state")
        keeper.refresh()
        assert keeper.prepare_words()
        yield keeper


def results(index, question):
    return [
        (note.path.text, pytest.approx(note.score))
        for note in rank_notes(index, ROOT, question).notes
    ]


class Wordless(StoredIndex):
    def word_counts(self, word):
        return None


def without_words(index) -> StoredIndex:
    return Wordless(index.snapshot, index.changed, index._store, index.packs)


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_search_with_stored_words_ranks_as_one_without(keeper, question):
    index = keeper.refresh()
    assert index.word_counts(WordQuery("budget").words[0]) is not None
    assert results(index, question) == results(without_words(index), question) != []


def test_ranking_by_stored_words_reads_only_the_best_notes(keeper, monkeypatch):
    monkeypatch.setattr("obsidian_agent.vault.index.word_search.MAX_FIELDS", 1)
    index, read = keeper.refresh(), []
    whole_read = StoredIndex.text
    monkeypatch.setattr(
        StoredIndex, "text", lambda self, path: read.append(path.text) or whole_read(self, path)
    )
    assert len(rank_notes(index, ROOT, "budget").notes) == 4
    assert len(read) == 1


def test_notes_that_changed_since_are_read(keeper):
    folder = Path(keeper.store.real_path)
    (folder / "Plan.md").write_text("Nothing left.")
    (folder / "New.md").write_text("A budget.")
    (folder / "Long.md").unlink()
    index = keeper.refresh()
    found = [path for path, _ in results(index, "budget")]
    assert found == [path for path, _ in results(without_words(index), "budget")]
    assert sorted(found) == ["Budget.md", "New.md", "Private/Plan.md"]


def test_a_plan_over_stored_words(keeper):
    view = DiskView(keeper.store, keeper.refresh)
    overlay = OverlayVault(view, 0.0)
    overlay.apply([ModifyFile(parse("Plan.md", PathUse.READ), b"Gone.")], 0)
    assert [path for path, _ in results(overlay.index, "budget")] == [
        "Budget.md",
        "Private/Plan.md",
        "Long.md",
    ]


def test_a_filter_over_stored_words(keeper):
    view = DiskView(keeper.store, keeper.refresh)
    shared = FilteredView(view, lambda path: path.text.startswith("Private"))
    assert shared.index.word_counts(WordQuery("secret").words[0]) == {}
    assert {path for path, _ in results(shared.index, "budget")} == {
        "Budget.md",
        "Plan.md",
        "Long.md",
    }


def test_words_go_with_their_pack(keeper):
    old = set(words_files(keeper))
    assert keeper.prepare_words()
    assert set(words_files(keeper)) == old
    keeper.rebuild()
    assert not old & set(words_files(keeper))
    assert keeper.prepare_words()


def words_files(keeper):
    return [file.name for file in keeper.folder.iterdir() if file.name.endswith(WORDS_SUFFIX)]


@pytest.mark.parametrize("data", [b"", b"nonsense"])
def test_damaged_words_are_not_used(keeper, data):
    for name in words_files(keeper):
        (keeper.folder / name).write_bytes(data)
    fresh = IndexKeeper(keeper.store, keeper.folder).refresh()
    assert fresh.word_counts(WordQuery("budget").words[0]) is None
    assert results(fresh, "budget") == results(without_words(fresh), "budget")
