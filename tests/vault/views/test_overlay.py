"""The overlay reflects earlier changes, and its change set leads from the disk to its content."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from faults import refused
from obsidian_agent.vault.paths.path import ROOT, PathUse, VaultPath, parse
from obsidian_agent.vault.refactor.queries import files_with_queries
from obsidian_agent.vault.views.changes import (
    ChangeSet,
    CreateFile,
    DeleteEntry,
    FileChange,
    MakeDir,
    MakeFolder,
    ModifyFile,
    Move,
    RenameEntry,
    WriteFile,
)
from obsidian_agent.vault.views.disk import DiskView
from obsidian_agent.vault.views.overlay import OverlayVault
from support import MakeVault


def path(text: str) -> VaultPath:
    return parse(text, PathUse.READ)


def told(changes: ChangeSet) -> list[str]:
    """Return the net changes in short: kind, path, new path, `*` for new content."""
    return [
        f"{c.kind} {c.path}{f' -> {c.new_path}' if c.new_path else ''}{' *' if c.content is not None else ''}"
        for c in changes.changes
    ]


def steps(changes: ChangeSet) -> list[str]:
    """Return the operations in short."""
    found = []
    for owned in changes.operations:
        match owned.operation:
            case MakeDir(where):
                found.append(f"{owned.instance} mkdir {where}")
            case Move():
                move = owned.operation
                found.append(
                    f"{owned.instance} {'trash' if move.trash else 'move'} {move.path} -> {move.new_path}"
                )
            case WriteFile():
                found.append(
                    f"{owned.instance} write {owned.operation.path} {owned.operation.content.decode()}"
                )
    return found


def files_of(overlay: OverlayVault) -> dict[str, str]:
    return {
        e.path.text: overlay.read(e.path).decode() for e in overlay.walk(ROOT) if e.kind == "file"
    }


def change(text: str) -> FileChange:
    """Fold changes in a short notation.

    `create PATH = CONTENT`, `modify PATH = CONTENT`, `rename PATH > PATH` (`>>` overwrites),
    `delete PATH` and `mkdir PATH`.
    """
    verb, _, rest = text.partition(" ")
    first, _, second = (part.strip() for part in re.split(r"( =| >>?)", rest + " =")[:3])
    match verb:
        case "create":
            return CreateFile(path(first), second.encode())
        case "modify":
            return ModifyFile(path(first), second.encode())
        case "rename":
            return RenameEntry(path(first), path(second), overwrite=">>" in rest)
        case "delete":
            return DeleteEntry(path(first))
        case _:
            return MakeFolder(path(first))


Story = tuple[dict[str, str], list[str], list[str], list[str] | None, dict[str, str] | None]
STORIES: dict[str, Story] = {
    "a new note makes its folders": (
        {"a.md": "a"},
        ["create X/Y/n.md = n"],
        ["mkdir X", "mkdir X/Y", "create X/Y/n.md *"],
        ["0 mkdir X", "0 mkdir X/Y", "0 write X/Y/n.md n"],
        {"a.md": "a", "X/Y/n.md": "n"},
    ),
    "a file is written once, by the last step that touched it": (
        {"a.md": "a"},
        ["modify a.md = b", "mkdir F", "modify a.md = c"],
        ["mkdir F", "modify a.md *"],
        ["1 mkdir F", "2 write a.md c"],
        None,
    ),
    "an edit that is taken back writes nothing": (
        {"a.md": "a"},
        ["modify a.md = b", "modify a.md = a"],
        [],
        [],
        None,
    ),
    "a renamed and edited note is one rename": (
        {"a.md": "a"},
        ["modify a.md = b", "rename a.md > N/c.md"],
        ["mkdir N", "rename a.md -> N/c.md *"],
        ["1 mkdir N", "1 move a.md -> N/c.md", "1 write N/c.md b"],
        {"N/c.md": "b"},
    ),
    "a folder moves with all that is in it": (
        {"P/a.md": "a", "P/S/b.md": "b", "c.md": "c"},
        ["modify P/a.md = A", "rename P > Q/R", "modify Q/R/S/b.md = B"],
        [
            "rename P -> Q/R",
            "rename P/S/b.md -> Q/R/S/b.md *",
            "rename P/a.md -> Q/R/a.md *",
            "mkdir Q",
        ],
        ["1 mkdir Q", "1 move P -> Q/R", "1 write Q/R/a.md A", "2 write Q/R/S/b.md B"],
        {"Q/R/a.md": "A", "Q/R/S/b.md": "B", "c.md": "c"},
    ),
    "two notes swap their names": (
        {"a.md": "a", "b.md": "b"},
        ["rename a.md > t.md", "rename b.md > a.md", "rename t.md > b.md"],
        ["rename a.md -> b.md", "rename b.md -> a.md"],
        ["0 move a.md -> t.md", "1 move b.md -> a.md", "2 move t.md -> b.md"],
        {"a.md": "b", "b.md": "a"},
    ),
    "a rename is told also where a new note takes the old name": (
        {"a.md": "a"},
        ["rename a.md > b.md", "create a.md = new"],
        ["rename a.md -> b.md", "create a.md *"],
        None,
        None,
    ),
    "a new folder is told where another was that moved": (
        {"F/a.md": "a"},
        ["rename F > G", "create F/b.md = new"],
        ["rename F -> G", "mkdir F", "create F/b.md *"],
        None,
        None,
    ),
    "a new folder is told where another was that went": (
        {"F/a.md": "a"},
        ["delete F", "create F/b.md = new"],
        ["delete F", "mkdir F", "create F/b.md *"],
        None,
        None,
    ),
    "there and back is no change": (
        {"a.md": "a"},
        ["rename a.md > b.md", "rename b.md > a.md"],
        [],
        None,
        None,
    ),
    "only the case of a name changes": (
        {"note.md": "a"},
        ["rename note.md > Note.md"],
        ["rename note.md -> Note.md"],
        None,
        {"Note.md": "a"},
    ),
    "the trash has free names": (
        {"a/n.md": "1", "b/n.md": "2"},
        ["delete a/n.md", "delete b/n.md"],
        ["delete a/n.md", "delete b/n.md"],
        ["0 trash a/n.md -> .trash/n.md", "1 trash b/n.md -> .trash/n 2.md"],
        {},
    ),
    "the trash as it is on disk": (
        {"n.md": "1", ".trash/n.md": "old"},
        ["delete n.md"],
        ["delete n.md"],
        ["0 trash n.md -> .trash/n 2.md"],
        None,
    ),
    "a name without room for a number is shortened in the trash": (
        {f"{'é' * 126}.md": "1", f".trash/{'é' * 126}.md": "old"},
        [f"delete {'é' * 126}.md"],
        [f"delete {'é' * 126}.md"],
        [f"0 trash {'é' * 126}.md -> .trash/{'é' * 125} 2.md"],
        None,
    ),
    "a note made and deleted never was": ({}, ["create n.md = n", "delete n.md"], [], [], {}),
    "a folder made and deleted never was": ({}, ["create F/n.md = n", "delete F"], [], [], {}),
    "a note deleted and made again is a modification": (
        {"n.md": "old"},
        ["delete n.md", "create n.md = new"],
        ["modify n.md *"],
        ["0 trash n.md -> .trash/n.md", "1 write n.md new"],
        None,
    ),
    "what was moved within or into a deleted folder goes with it": (
        {"A/B/one.md": "1", "x.md": "x", "keep.md": "k", "A/out.md": "o"},
        ["rename A/B > A/C", "rename x.md > A/x.md", "rename A/out.md > out.md", "delete A"],
        ["delete A", "rename A/out.md -> out.md", "delete x.md"],
        None,
        {"keep.md": "k", "out.md": "o"},
    ),
    "overwriting by a rename puts the old note into the trash": (
        {"a.md": "a", "b.md": "b"},
        ["rename a.md >> b.md"],
        ["rename a.md -> b.md", "delete b.md"],
        None,
        {"b.md": "a"},
    ),
    "names on disk keep their spelling": (
        {"Cafe\u0301/n.md": "n"},
        ["create Caf\u00e9/new.md = x", "modify Caf\u00e9/n.md = y"],
        ["modify Cafe\u0301/n.md *", "create Cafe\u0301/new.md *"],
        ["0 write Cafe\u0301/new.md x", "1 write Cafe\u0301/n.md y"],
        None,
    ),
}


@pytest.mark.parametrize("story", STORIES.values(), ids=STORIES)
def test_what_a_plan_does_to_a_vault(make_vault: MakeVault, story: Story) -> None:
    files, plan, net, operations, after = story
    overlay = OverlayVault(DiskView(make_vault(files)), 0.0)
    for number, text in enumerate(plan):
        overlay.apply([change(text)], number)
    changes = overlay.change_set()
    assert told(changes) == net
    assert operations is None or steps(changes) == operations
    assert after is None or files_of(overlay) == after


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("create A.MD", "FILE_EXISTS"),
        ("create a.md/x.md", "NOT_A_FOLDER"),
        ("modify gone.md", "FILE_NOT_FOUND"),
        ("modify F", "NOT_TEXT"),
        ("rename a.md > F/b.md", "FILE_EXISTS"),
        ("rename F > F/G/F", "ARGUMENT_INVALID"),
        ("rename gone.md > x.md", "FILE_NOT_FOUND"),
        ("delete gone.md", "FILE_NOT_FOUND"),
        ("mkdir a.md", "NOT_A_FOLDER"),
        ("mkdir f", "FILE_EXISTS"),
        ("delete link.md", "PATH_NOT_ALLOWED"),
        ("rename link.md > F/link.md", "PATH_NOT_ALLOWED"),
        ("rename a.md >> link.md", "PATH_NOT_ALLOWED"),
    ],
)
def test_what_cannot_be_is_refused(make_vault: MakeVault, text: str, code: str) -> None:
    """A link to a note is not moved, as it would lead elsewhere from another folder."""
    store = make_vault({"a.md": "a", "F/b.md": "b", "note.md": "n"})
    (Path(store.real_path) / "link.md").symlink_to("note.md")
    overlay = OverlayVault(DiskView(store), 0.0)
    with refused(code):
        overlay.apply([change(text)], 0)
    assert overlay.change_set() == ChangeSet()


def test_a_link_to_a_note_gets_another_name_in_its_folder(make_vault: MakeVault) -> None:
    store = make_vault({"Folder/note.md": "2"})
    (Path(store.real_path) / "Folder/link.md").symlink_to("note.md")
    overlay = OverlayVault(DiskView(store), 0.0)
    overlay.apply([change("rename Folder > Moved")], 0)
    overlay.apply([change("rename Moved/link.md > Moved/other.md")], 1)
    assert steps(overlay.change_set()) == [
        "0 move Folder -> Moved",
        "1 move Moved/link.md -> Moved/other.md",
    ]


def test_files_with_queries_follow_the_changes_and_the_base_is_searched_once(
    make_vault: MakeVault, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = "```dataview\nLIST FROM #a\n```\n"
    disk = DiskView(make_vault({"a.md": query, "b.md": "text\n", "c.md": "dataview is a word\n"}))
    searches = []
    search = disk.index.notes_with
    monkeypatch.setattr(
        disk.index, "notes_with", lambda test: searches.append(test) or search(test)
    )
    overlay = OverlayVault(disk, 0.0)
    stages = [
        ("mkdir F", ["a.md"]),
        (f"modify b.md = {query}", ["a.md", "b.md"]),
        ("rename a.md > F/a.md", ["F/a.md", "b.md"]),
        ("modify F/a.md = text", ["b.md"]),
        (f"modify F/a.md = {query}", ["F/a.md", "b.md"]),
        ("delete b.md", ["F/a.md"]),
        ("create G.base = filters:", ["F/a.md", "G.base"]),
    ]
    for number, (text, expected) in enumerate(stages):
        overlay.apply([change(text)], number)
        assert [file.text for file in files_with_queries(overlay.index)] == expected
    assert len(searches) == 1
