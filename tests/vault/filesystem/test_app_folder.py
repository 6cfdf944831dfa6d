"""The program's own folder in the vault: small JSON files, reached without following links."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from faults import refused
from obsidian_agent.errors import PathRefused
from obsidian_agent.vault.filesystem.app_folder import FILE_LIMIT, AppFolder
from obsidian_agent.vault.filesystem.store import VaultStore

Build = Callable[[Sequence[Sequence[str]]], None]


@pytest.fixture
def macros(store: VaultStore) -> AppFolder:
    return AppFolder(store, "macros")


def test_documents_come_back(macros: AppFolder, vault: Path) -> None:
    assert macros.list() == []
    document = {"name": "Daily ☀", "plan": {"steps": [1, 2.5, None, True, "é\n"]}}
    path = macros.write("Daily: note", document).path
    assert path.text == ".obsidian-agent/macros/Daily - note.json"
    assert macros.read("Daily: note").value == document
    assert json.loads((vault / path.text).read_text("utf-8")) == document
    assert (vault / path.text).read_text("utf-8").endswith("}\n")
    assert macros.list() == ["Daily - note"]


def test_writing_again_replaces(macros: AppFolder, vault: Path) -> None:
    macros.write("a", 1)
    macros.write("a", 2)
    assert macros.read("a").value == 2
    assert os.listdir(vault / ".obsidian-agent/macros") == ["a.json"]


def test_delete_says_whether_there_was_one(macros: AppFolder) -> None:
    macros.write("a", 1)
    assert macros.delete("a") is True
    assert macros.delete("a") is False
    assert macros.list() == []


def test_a_missing_document(macros: AppFolder) -> None:
    with refused("FILE_NOT_FOUND"):
        macros.read("nope")


@pytest.mark.parametrize("content", [b"{ broken", b"\xff\xfe\x00", b"[" * 100_000, b""])
def test_what_is_no_json_is_named(macros: AppFolder, vault: Path, content: bytes) -> None:
    macros.write("a", 1)
    (vault / ".obsidian-agent/macros/a.json").write_bytes(content)
    with refused("NOT_TEXT", r"macros/a\.json is not valid JSON"):
        macros.read("a")


def test_a_huge_document_is_refused(macros: AppFolder, vault: Path) -> None:
    macros.write("a", 1)
    (vault / ".obsidian-agent/macros/a.json").write_bytes(b" " * (FILE_LIMIT + 1))
    with refused("FILE_TOO_LARGE"):
        macros.read("a")


@settings(
    max_examples=60,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    st.one_of(
        st.text(),
        st.sampled_from(
            ["../../x", "..", "/etc/passwd", "C:\\x", ".hidden", "CON", "a/b", "x" * 500]
        ),
    )
)
def test_no_name_leaves_the_folder(macros: AppFolder, vault: Path, name: str) -> None:
    path = macros.write(name, name.encode("utf-8", "replace").decode()).path
    assert path.text.startswith(".obsidian-agent/macros/")
    assert len(path.parts) == 3
    assert (vault / path.text).is_file()
    assert macros.list() == [path.name.removesuffix(".json")]
    assert macros.delete(name)


def test_only_files_made_here_are_listed(macros: AppFolder, vault: Path, build: Build) -> None:
    macros.write("mine", 1)
    build(
        [
            ["file", ".obsidian-agent/macros/.hidden.json"],
            ["file", ".obsidian-agent/macros/readme.txt"],
            ["folder", ".obsidian-agent/macros/d.json"],
        ]
    )
    build([["file", "x.json"], ["link", ".obsidian-agent/macros/link.json", "../../x.json"]])
    assert macros.list() == ["mine"]


@pytest.mark.parametrize(
    ("link", "target"),
    [
        (".obsidian-agent", "../OUT"),
        (".obsidian-agent", "Notes"),
        (".obsidian-agent/macros", "../../OUT"),
        (".obsidian-agent/macros", "../Notes"),
    ],
)
def test_links_on_the_way_are_refused(
    macros: AppFolder,
    build: Build,
    snapshot: Callable[[], dict[str, object]],
    link: str,
    target: str,
) -> None:
    build(
        [
            ["file", "../OUT/a.json"],
            ["file", "../OUT/macros/a.json"],
            ["file", "Notes/a.json"],
            ["file", "Notes/macros/a.json"],
            ["link", link, target],
        ]
    )
    before = snapshot()
    for attempt in (
        macros.list,
        lambda: macros.read("a"),
        lambda: macros.write("a", 1),
        lambda: macros.delete("a"),
    ):
        with pytest.raises(PathRefused):
            attempt()
    assert snapshot() == before


def test_a_linked_file_is_neither_read_nor_written_through(
    macros: AppFolder, vault: Path, build: Build
) -> None:
    build(
        [
            ["file", "../OUT/a.json"],
            ["folder", ".obsidian-agent/macros"],
            ["link", ".obsidian-agent/macros/a.json", "../../../OUT/a.json"],
        ]
    )
    with pytest.raises(PathRefused):
        macros.read("a")
    with pytest.raises(PathRefused):
        macros.write("a", 1)
    assert macros.delete("a") is True
    assert (vault.parent / "OUT/a.json").read_bytes() == b"content of ../OUT/a.json\n"
