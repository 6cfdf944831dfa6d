from __future__ import annotations

import json
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from obsidian_agent.errors import JournalError
from obsidian_agent.journal.blobs import ImageSource, Part, PartBuilder, StoredPart, stored_path
from obsidian_agent.vault.paths import path
from obsidian_agent.vault.transaction.actions import Action, MoveEntry, PutFile, PutFolder
from obsidian_agent.vault.views.changes import content_hash
from previews import vault_path

PATHS = (
    st.lists(
        st.text("abü .日#", min_size=1, max_size=5).map(lambda text: f"n{text}"),
        min_size=1,
        max_size=3,
    )
    .map("/".join)
    .map(vault_path)
)
HASHES = st.none() | st.binary().map(content_hash)
ACTIONS: st.SearchStrategy[Action] = st.one_of(
    st.builds(PutFile, PATHS, HASHES, HASHES, st.none() | st.integers(0, 0o7777)),
    st.builds(PutFolder, PATHS, st.booleans()),
    st.builds(
        MoveEntry,
        path=PATHS,
        new_path=PATHS,
        folder=st.booleans(),
        hash=HASHES,
        inode=st.none() | st.tuples(st.integers(0), st.integers(0)),
    ),
)


def packed(actions: list[tuple[Action, int, list[bytes]]]) -> Part:
    builder = PartBuilder()
    for action, origin, contents in actions:
        builder.add(action, origin, [(content_hash(data), data) for data in contents])
    return builder.pack()


def source(part: Part) -> ImageSource:
    images = ImageSource(lambda _: (part.actions, part.images, part.checksum))
    images.add(1, StoredPart(part.actions))
    return images


@given(
    st.lists(
        st.tuples(ACTIONS, st.integers(0, 10_000), st.lists(st.binary(max_size=50), max_size=2)),
        max_size=8,
    ),
    st.integers(0, 100),
)
def test_what_goes_in_comes_out(actions: list[tuple[Action, int, list[bytes]]], first: int) -> None:
    part = packed(actions)
    found = StoredPart(part.actions).actions(first)
    assert [(one.action, one.origin) for one in found] == [
        (action, origin) for action, origin, _ in actions
    ]
    assert [one.number for one in found] == list(range(first, first + len(actions)))
    images = source(part)
    for _, _, contents in actions:
        for data in contents:
            assert images.get(content_hash(data)) == data


def test_equal_contents_are_kept_once() -> None:
    action = PutFolder(vault_path("a"), created=True)
    part = packed([(action, 0, [b"same" * 1000])] * 50)
    assert len(zlib.decompress(part.images)) == 4000


def test_the_second_of_two_similar_contents_costs_little() -> None:
    text = "".join(f"line {number * number % 977}\n" for number in range(400)).encode()
    alone = packed([(PutFolder(vault_path("a"), created=True), 0, [text])])
    both = packed(
        [
            (
                PutFolder(vault_path("a"), created=True),
                0,
                [text, text.replace(b"line 16\n", b"line sixteen\n")],
            )
        ]
    )
    assert len(both.images) < 1.25 * len(alone.images)


def test_a_content_that_is_not_kept() -> None:
    images = source(packed([]))
    assert images.find("0" * 64) is None
    with pytest.raises(JournalError, match="damaged"):
        images.get("0" * 64)


@pytest.mark.parametrize("spoil", ["checksum", "bytes"])
def test_damaged_contents_are_never_given_out(spoil: str) -> None:
    part = packed([(PutFolder(vault_path("a"), created=True), 0, [b"content"])])
    other = zlib.compress(b"CONTENT")
    part = (
        replace(part, checksum=1)
        if spoil == "checksum"
        else replace(part, images=other, checksum=zlib.crc32(other, zlib.crc32(part.actions)))
    )
    assert source(part).find(content_hash(b"content")) is None


@pytest.mark.parametrize(
    "document",
    [
        b"",
        b"[]",
        b"{}",
        b'{"actions": [[0, "file"]], "images": []}',
        b'{"actions": [[0, "folder", "../x", true]], "images": []}',
        b"\xff",
    ],
)
def test_damaged_actions_are_an_error(document: bytes) -> None:
    with pytest.raises(JournalError, match="damaged"):
        StoredPart(zlib.compress(document)).actions(0)


@pytest.mark.parametrize(
    "bad", ["", "..", "a/../b", "/a", "a//b", ".git/config", ".trash/../x", ".obsidian/app.json"]
)
def test_stored_paths_are_judged_again(bad: str) -> None:
    row = json.dumps({"actions": [[0, "folder", bad, True]], "images": []}).encode()
    with pytest.raises(JournalError):
        StoredPart(zlib.compress(row)).actions(0)


@pytest.mark.parametrize("text", ["a.md", "A b/ü/c: d?.md", "100%2e.md"])
def test_odd_names_that_exist_are_kept_as_they_are(text: str) -> None:
    assert stored_path(text).text == text


def test_the_trash() -> None:
    assert stored_path(".trash") == path.trash_path()
    assert stored_path(".trash/a b.md") == path.trash_path("a b.md")
