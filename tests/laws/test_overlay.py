"""A proposal is folded whole or not at all: a failed one leaves the overlay unchanged."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import event, example, given, settings
from hypothesis import strategies as st

from obsidian_agent.errors import ObsidianAgentError
from obsidian_agent.vault.filesystem.store import VaultStore
from obsidian_agent.vault.paths.path import ROOT, PathUse, VaultPath, parse
from obsidian_agent.vault.views.changes import (
    CreateFile,
    CursorMark,
    DeleteEntry,
    FileChange,
    MakeFolder,
    ModifyFile,
    RenameEntry,
)
from obsidian_agent.vault.views.disk import DiskView
from obsidian_agent.vault.views.overlay import OverlayVault

# Names in several spellings, and names that are files in one vault and folders in another.
NAMES = [
    "a.md",
    "A.md",
    "n.md",
    "F",
    "f",
    "F/a.md",
    "F/A.md",
    "f/b.md",
    "F/S",
    "F/S/a.md",
    "F/s/c.md",
    "É/x.md",
    "E\u0301/x.md",
    "E\u0301",
    "\u00fc\u0323.md",
    "u\u0308\u0323.md",
    "\u1ee5\u0308.md",
    "G/H/i.md",
]
PATHS = [parse(name, PathUse.READ) for name in NAMES]
FILES = {
    "a.md": b"[[n]] #t",
    "n.md": b"[[a]]",
    "F/a.md": b"1",
    "F/S/a.md": b"[[a]]",
    "\u00c9/x.md": b"x",
}
TWINS = FILES | {
    "A.md": b"other",
    "E\u0301/x.md": b"y",
    "\u00fc\u0323.md": b"1",
    "u\u0308\u0323.md": b"2",
    "F/A.md": b"3",
    "f/b.md": b"4",
}

paths = st.sampled_from(PATHS)
contents = st.sampled_from([b"", b"new [[n]]", b"#t other"])
changes: st.SearchStrategy[FileChange] = st.one_of(
    st.builds(CreateFile, paths, contents),
    st.builds(ModifyFile, paths, contents, st.sampled_from([None, CursorMark(0, replaced=False)])),
    st.builds(RenameEntry, paths, paths, st.booleans()),
    st.builds(DeleteEntry, paths),
    st.builds(MakeFolder, paths),
)
proposals = st.lists(changes, min_size=1, max_size=4)


def state(overlay: OverlayVault) -> dict[str, Any]:
    """Everything that can be asked of an overlay."""
    index = overlay.index
    entries = {entry.path.text: entry.kind for entry in overlay.walk(ROOT)}
    files = [entry.path for entry in overlay.walk(ROOT) if entry.kind == "file"]
    return {
        "entries": entries,
        "bytes": {path.text: overlay.read(path) for path in files},
        "stats": {path.text: overlay.stat(path) for path in files},
        "children": {
            text: overlay.children(parse(text, PathUse.READ))
            for text, kind in entries.items()
            if kind == "folder"
        },
        "asked": {path.text: _asked(overlay, path) for path in PATHS},
        "changes": overlay.change_set(),
        "joined": overlay.change_set().joined,
        "touched": list(overlay._entries.touched),
        "links": {path.text: index.backlinks(path) for path in files},
        "tagged": index.tagged("t", ROOT),
        "files": list(index.files()),
    }


def _asked(overlay: OverlayVault, path: VaultPath) -> tuple[object, ...]:
    return (
        overlay.locate(path),
        overlay.twin(path),
        overlay.origin(path),
        overlay.current(path),
        overlay.was_created_here(path),
        overlay.cursor_mark(path),
        overlay.trash_target(path),
    )


@settings(max_examples=150)
@given(story=st.lists(proposals, min_size=1, max_size=5))
@example(story=[[RenameEntry(PATHS[0], parse("f/S/n.md", PathUse.READ), overwrite=True)]])
@example(story=[[DeleteEntry(PATHS[0]), ModifyFile(PATHS[0], b"")]])
@example(story=[[ModifyFile(PATHS[0], b"x"), MakeFolder(PATHS[0])], [CreateFile(PATHS[1], b"")]])
def test_a_proposal_that_cannot_be_done_leaves_nothing(story: list[list[FileChange]]) -> None:
    with TemporaryDirectory() as place:
        for name, content in FILES.items():
            (Path(place) / name).parent.mkdir(parents=True, exist_ok=True)
            (Path(place) / name).write_bytes(content)
        with VaultStore.open(place) as store:
            asked, spared = OverlayVault(DiskView(store), 0.0), OverlayVault(DiskView(store), 0.0)
            for number, proposal in enumerate(story):
                before = state(asked)
                try:
                    asked.apply(proposal, number)
                except ObsidianAgentError:
                    event("raises")
                    assert state(asked) == before
                else:
                    spared.apply(proposal, number)
                assert state(asked) == state(spared)


def answers(view: DiskView | OverlayVault) -> dict[str, Any]:
    """Return the answers of a view for every path in every spelling, as far as a disk has them."""
    files = [entry.path for entry in view.walk(ROOT) if entry.kind == "file"]
    index = view.index
    return {
        "entries": list(view.walk(ROOT)),
        "asked": {
            path.text: (view.locate(path), view.twin(path), view.twins(path)) for path in PATHS
        },
        "bytes": {
            path.text: view.read(path)
            for path in PATHS
            if (entry := view.locate(path)) and entry.kind == "file"
        },
        "children": {
            path.text: view.children(path)
            for path in PATHS
            if (entry := view.locate(path)) and entry.kind == "folder"
        },
        "links": {
            path.text: (index.backlinks(path), index.resolve("n", path), index.resolve("a", path))
            for path in files
        },
        "files": list(index.files()),
    }


@settings(max_examples=150)
@given(files=st.sampled_from([FILES, TWINS]), story=st.lists(proposals, min_size=1, max_size=5))
@example(files={"\u1ee5\u0308.md": b""}, story=[[RenameEntry(PATHS[-2], PATHS[-3])]])
@example(files=TWINS, story=[[DeleteEntry(parse("\u00fc\u0323.md", PathUse.READ))]])
def test_an_overlay_answers_as_the_disk_would_if_it_were_written(
    files: dict[str, bytes], story: list[list[FileChange]]
) -> None:
    with TemporaryDirectory() as place, TemporaryDirectory() as other:
        for name, content in files.items():
            (Path(place) / name).parent.mkdir(parents=True, exist_ok=True)
            (Path(place) / name).write_bytes(content)
        with VaultStore.open(place) as store, VaultStore.open(other) as written:
            overlay = OverlayVault(DiskView(store), 0.0)
            for number, proposal in enumerate(story):
                with suppress(ObsidianAgentError):
                    overlay.apply(proposal, number)
                for path in [
                    Path(other) / entry.path.text
                    for entry in reversed(list(DiskView(written).walk(ROOT)))
                ]:
                    path.rmdir() if path.is_dir() else path.unlink()
                for entry in overlay.walk(ROOT):
                    path = Path(other) / entry.path.text
                    path.mkdir() if entry.kind == "folder" else path.write_bytes(
                        overlay.read(entry.path)
                    )
                assert answers(overlay) == answers(DiskView(written))
