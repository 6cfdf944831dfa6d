"""The stored index equals a complete scan, after any changes of the vault."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from obsidian_agent.errors import VaultError
from obsidian_agent.vault.filesystem.store import VaultStore
from obsidian_agent.vault.index import keeper as index_keeper
from obsidian_agent.vault.index.index import VaultIndex, tag_key
from obsidian_agent.vault.index.keeper import SNAPSHOT_NAME, IndexKeeper
from obsidian_agent.vault.index.stamps import walk_stamps
from obsidian_agent.vault.index.stored import StoredIndex
from obsidian_agent.vault.index.text_search import folded_needle
from obsidian_agent.vault.links.graph import link_graph
from obsidian_agent.vault.links.resolve import file_name, name_key, target_name
from obsidian_agent.vault.paths.path import ROOT, PathUse, parse
from obsidian_agent.vault.views.disk import DiskView
from obsidian_agent.vault.views.scan_index import ScanIndex

NAMES = [
    "a.md",
    "b.md",
    "A.md",
    "a.md.md",
    "Sub/a.md",
    "Sub/b.md",
    "Sub/Deep/c.md",
    "Sub2/b.md",
    "café.md",
    "o.md",
    "pic.png",
    "x.canvas",
]
TARGETS = [
    "a",
    "A.md",
    "b",
    "Sub/a",
    "./b",
    "../a",
    "Deep/c",
    "/a",
    "café",
    "pic.png",
    "nowhere",
    "Sub/nowhere",
    ".",
    "..",
]
TARGETS += ["a.md.md", "c|d", "#part", "#"]
QUERIES = ["DONE", "status: open\n---\n", "Ümlaut", "x/y", "strasse", "k", "absent", "\u65e5"]
TAGS = ["x", "x/y", "X/Z", "x-1", "xy", "ümlaut"]


def note(links: list[str], tags: list[str], own: list[str], status: str) -> bytes:
    """Return a note with these links, tags in its text and in its properties, and status."""
    words = (
        [f"[[{link}]]" for link in links]
        + [f"#{tag}" for tag in tags]
        + (["Stra\u00dfe \u212a \u65e5"] if "x" in own else [])
    )
    aliases = f"aliases: [also {own[0]}, {len(links)}]\n" if own else ""
    reference = f"\n\n[r]: {tags[0]}.md\n" if "xy" in tags else ""
    return f"---\ntags: [{', '.join(own)}]\n{aliases}status: {status}\n---\n{' '.join(words)}{reference}".encode()


notes = st.builds(
    note,
    st.lists(st.sampled_from(TARGETS), max_size=4),
    st.lists(st.sampled_from(TAGS), max_size=3),
    st.lists(st.sampled_from(TAGS), max_size=2),
    st.sampled_from(["done", "open"]),
)
vaults = st.dictionaries(st.sampled_from(NAMES), notes, max_size=len(NAMES))


def put(folder: Path, files: dict[str, bytes], age: float = 100.0) -> None:
    """Make the folder hold exactly these files, changed `age` seconds ago."""
    for path in folder.rglob("*"):
        if path.is_file() and path.relative_to(folder).as_posix() not in files:
            path.unlink()
    for name, content in files.items():
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if target.exists() and target.read_bytes() == content:
            continue
        target.write_bytes(content)
        os.utime(target, (time.time() - age, time.time() - age))


def said(index: VaultIndex) -> dict[str, Any]:
    """Everything that an index can be asked."""
    files = list(index.files())
    folders = [ROOT, *{path.parent for path in files}]
    names = {file_name(path) for path in files} | {
        target_name(target) for path in files for target in index.facts(path).targets
    }
    return {
        "files": [path.text for path in files],
        "aliases": sorted((alias, path.text) for alias, path in index.aliases()),
        "names": {
            query: index.names().search(query)
            for query in ("a", "b", "also", "caf\u00e9", "sub c", "pic")
        },
        "text": {path.text: index.text(path) for path in files},
        "notes": {folder.text: [path.text for path in index.notes(folder)] for folder in folders},
        "counts": [index.note_count(folder) for folder in folders],
        "facts": {path.text: index.facts(path) for path in files},
        "tagged": {
            (tag, folder.text): [path.text for path in index.tagged(tag, folder)]
            for tag in TAGS
            for folder in folders
        },
        "naming": {name: [path.text for path in index.files_linking_name(name)] for name in names},
        "referring": [path.text for path in index.notes_with_references()],
        "named": {name: [path.text for path in index.files_named(name)] for name in names},
        "links": {path.text: index.links(path) for path in files},
        "linking": {path.text: [source.text for source in index.backlinks(path)] for path in files},
        "texts": {
            (query, folder.text): [
                path.text
                for path, data in index.texts(
                    folder, folded_needle(query), folded_needle(query[:2])
                )
                if isinstance(data, bytes) and query.casefold() in data.decode().casefold()
            ]
            for query in QUERIES
            for folder in folders
        },
        "resolved": {
            (path.text, target): found.text if (found := index.resolve(target, path)) else None
            for path in files
            for target in index.facts(path).targets
        },
    }


@pytest.fixture
def settled(monkeypatch):
    """Count the times of files at once, so that tests need not wait for clocks."""
    monkeypatch.setattr("obsidian_agent.vault.index.stamps.STABLE_NS", 0)


LAW = settings(
    max_examples=25,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


def assert_true(stored: StoredIndex, store: VaultStore) -> None:
    """Assert that the index answers and counts like a complete scan."""
    scanned = ScanIndex(DiskView(store))
    assert said(stored) == said(scanned)
    files = list(scanned.files())
    graph = link_graph(files, DiskView(store).read)
    assert [stored.links(path) for path in files] == [graph.of(path) for path in files]
    links = [(target, path) for path in files for target in scanned.facts(path).targets]
    lost = sum(1 for target, path in links if scanned.resolve(target, path) is None)
    tags = {tag_key(tag) for path in files for tag in scanned.facts(path).tags}
    assert stored.counts() == (
        sum(path.is_note for path in files),
        len(files),
        len(links),
        lost,
        len(tags),
    )


@pytest.mark.usefixtures("settled")
@pytest.mark.parametrize("saved_after", [0, index_keeper.SAVED_AFTER])
@LAW
@given(vaults, vaults, vaults)
def test_the_stored_index_says_what_reading_everything_says(
    tmp_path, saved_after, first, second, third
):
    folder, state = tmp_path / "vault", tmp_path / "state"
    for place in (folder, state):
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir()
    with pytest.MonkeyPatch.context() as patch, VaultStore.open(folder) as store:
        patch.setattr(index_keeper, "SAVED_AFTER", saved_after)
        keeper = IndexKeeper(store, state)
        for files in (first, second):
            put(folder, files)
            assert_true(keeper.refresh(), store)
        put(folder, third)
        again = IndexKeeper(store, state).refresh()
        assert_true(again, store)
        for path in list(again.files()):
            os.unlink(folder / path.text)
            keeper.update_paths([path])
        assert_true(keeper.refresh(), store)


def keeper_of(tmp_path: Path, files: dict[str, bytes]) -> tuple[IndexKeeper, Path]:
    folder = tmp_path / "vault"
    folder.mkdir(exist_ok=True)
    put(folder, files)
    return IndexKeeper(VaultStore.open(folder), tmp_path / "state"), folder


VAULT = {"a.md": b"[[b]] #x", "b.md": b"", "Sub/c.md": b"[[a]]"}


def linking(index: VaultIndex, path: str) -> list[str]:
    return [source.text for source in index.backlinks(parse(path, PathUse.READ))]


def test_an_edit_that_leaves_size_and_times_of_change_is_seen(tmp_path):
    keeper, folder = keeper_of(tmp_path, VAULT)
    keeper.refresh()
    before = os.stat(folder / "a.md")
    (folder / "a.md").write_bytes(b"[[c]] #x")
    os.utime(folder / "a.md", ns=(before.st_atime_ns, before.st_mtime_ns))
    index = keeper.refresh()
    assert (linking(index, "b.md"), linking(index, "Sub/c.md")) == ([], ["a.md"])


def test_one_changed_file_is_looked_at_alone(tmp_path):
    keeper, folder = keeper_of(tmp_path, VAULT)
    keeper.refresh()
    (folder / "new.md").write_bytes(b"[[a]]")
    (folder / "b.md").unlink()
    unseen = keeper.update_paths([parse("new.md", PathUse.READ)])
    assert unseen is not None
    assert linking(unseen, "a.md") == ["Sub/c.md", "new.md"]
    assert "b.md" in [path.text for path in unseen.files()]
    seen = keeper.update_paths([parse("b.md", PathUse.READ)])
    assert seen is not None
    assert "b.md" not in [path.text for path in seen.files()]
    assert linking(unseen, "a.md") == ["Sub/c.md", "new.md"], "a state in use does not change"


@pytest.mark.parametrize("harm", ["cut", "flip", "empty", "gone", "no packs", "other version"])
def test_a_damaged_index_is_built_again(tmp_path, harm):
    keeper, _ = keeper_of(tmp_path, VAULT)
    whole = said(keeper.refresh())
    file = tmp_path / "state" / SNAPSHOT_NAME
    data = file.read_bytes()
    match harm:
        case "cut":
            file.write_bytes(data[: len(data) // 2])
        case "flip":
            file.write_bytes(data.replace(b"b.md", b"d.md", 1))
        case "empty":
            file.write_bytes(b"")
        case "gone":
            file.unlink()
        case "no packs":
            for pack in (tmp_path / "state").glob("*.pack"):
                pack.unlink()
        case _:
            file.write_bytes(data.replace(b"index 3", b"index 0", 1))
    fresh, _ = keeper_of(tmp_path, VAULT)
    assert said(fresh.refresh()) == whole


def test_a_start_reads_no_note_that_is_as_it_was(tmp_path, monkeypatch):
    monkeypatch.setattr("obsidian_agent.vault.index.stamps.STABLE_NS", 0)
    keeper, _ = keeper_of(tmp_path, VAULT)
    whole = said(keeper.refresh())
    again, _ = keeper_of(tmp_path, VAULT)
    read: list[str] = []
    monkeypatch.setattr(VaultStore, "read", lambda _, path, limit=0: read.append(path.text))
    assert said(again.refresh()) == whole
    assert read == []
    assert (again.status.reused, again.status.read) == (3, 0)
    assert (keeper.status.reused, keeper.status.read) == (0, 3)


def test_without_a_place_for_it_the_index_lives_in_memory(tmp_path):
    (tmp_path / "state").write_bytes(b"a file is in the way")
    keeper, folder = keeper_of(tmp_path, VAULT)
    assert linking(keeper.refresh(), "a.md") == ["Sub/c.md"]
    (folder / "Sub/c.md").unlink()
    assert linking(keeper.refresh(), "a.md") == []


def test_what_the_state_keeps_is_private_and_the_vault_is_left_alone(tmp_path):
    keeper, folder = keeper_of(tmp_path, VAULT)
    keeper.refresh()
    assert {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    } == VAULT
    assert (tmp_path / "state").stat().st_mode & 0o077 == 0
    assert all(path.stat().st_mode & 0o077 == 0 for path in (tmp_path / "state").iterdir())


def test_the_walk_sees_what_views_see(tmp_path):
    odd = {
        ".obsidian/app.json": b"",
        ".trash/t.md": b"",
        "1. odd ~name%.md": b"",
        "opencode.json": b"",
    }
    _, folder = keeper_of(tmp_path, VAULT | odd)
    (folder / "link.md").symlink_to("a.md")
    (folder / "out.md").symlink_to("/etc/hostname")
    (folder / "Other").symlink_to("Sub")
    os.mkfifo(folder / "fifo.md")
    with VaultStore.open(folder) as store:
        shown = {
            entry.path.text: os.stat(folder / entry.path.text).st_size
            for entry in DiskView(store).walk(ROOT)
            if entry.kind == "file"
        }
        assert {text: stamp.size for text, stamp in walk_stamps(store)} == shown
    assert "link.md" in shown


def test_keys():
    assert {tag_key(text) for text in ("#X/y", "x/Y/", " x/y")} == {"x/y"}
    assert {name_key(text) for text in ("S/A.md", "a", "x/a.MD.md", "/a")} == {"a"}
    assert target_name("../b/Cafe\u0301.md") == name_key("Caf\u00e9.md")


def test_a_large_vault_is_scanned_by_processes_and_here_where_they_fail(tmp_path, monkeypatch):
    monkeypatch.setattr("obsidian_agent.vault.index.scan.PARALLEL_FROM", 1)
    keeper, folder = keeper_of(tmp_path, VAULT)
    (folder / "json.py").write_bytes(b"raise SystemExit('a vault is never imported from')")
    monkeypatch.chdir(folder)
    whole = said(keeper.refresh())
    assert len(list((tmp_path / "state").glob("*.pack"))) == 2
    monkeypatch.setattr("obsidian_agent.vault.index.worker.sys.executable", "/bin/false")
    assert said(keeper.rebuild()) == whole == said(ScanIndex(DiskView(VaultStore.open(folder))))


BUILDER = """
import sys
from pathlib import Path
from obsidian_agent.vault.index.keeper import IndexKeeper
from obsidian_agent.vault.filesystem.store import VaultStore
while True:
    IndexKeeper(VaultStore.open(sys.argv[1]), Path(sys.argv[2])).rebuild()
    print("built", flush=True)
"""


def test_killed_while_it_writes_the_next_start_builds_anew(tmp_path):
    files = {f"n{number}.md": b"[[a]] #x\n" * 50 for number in range(200)} | VAULT
    keeper, folder = keeper_of(tmp_path, files)
    whole = said(ScanIndex(DiskView(VaultStore.open(folder))))
    for wait in (0.0, 0.011, 0.023, 0.037, 0.051):
        command = [sys.executable, "-c", BUILDER, str(folder), str(tmp_path / "state")]
        process = subprocess.Popen(command, stdout=subprocess.PIPE)
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(wait)
        process.kill()
        process.stdout.close()
        process.wait()
        again, _ = keeper_of(tmp_path, files)
        assert linking(again.refresh(), "a.md") == whole["linking"]["a.md"]
    assert {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()} == {
        name: content for name, content in files.items() if "/" not in name
    }


def test_an_index_is_whole_where_another_process_found_less_worth_writing(tmp_path, monkeypatch):
    keeper, folder = keeper_of(tmp_path, VAULT)
    keeper.refresh()
    monkeypatch.setattr(index_keeper, "PROCESS_AFTER", 2)
    monkeypatch.setattr(index_keeper, "SAVED_AFTER", 1)
    keeper.use_process(lambda done, total: None)
    for name in "uvwxyz":
        (folder / f"{name}.md").write_text("[[a]]")
    assert_true(keeper.refresh(), VaultStore.open(folder))


@pytest.mark.usefixtures("settled")
def test_a_program_with_a_screen_leaves_scanning_to_another_process(tmp_path, monkeypatch):
    monkeypatch.setattr(index_keeper, "PROCESS_AFTER", 3)
    keeper, folder = keeper_of(tmp_path, VAULT)
    told: list[tuple[int, int]] = []
    keeper.use_process(lambda done, total: told.append((done, total)))
    whole = said(ScanIndex(DiskView(VaultStore.open(folder))))
    assert said(keeper.refresh()) == whole
    assert told == [(0, 3), (0, 0)]
    assert (keeper.status.read, keeper.status.total) == (0, 0), "the notes were read elsewhere"
    (folder / "a.md").write_bytes(b"")
    assert linking(keeper.refresh(), "b.md") == []
    with pytest.raises(VaultError) as cancelled:
        IndexKeeper(VaultStore.open(folder), tmp_path / "other").refresh(lambda: True)
    assert cancelled.value.code == "CANCELLED"
