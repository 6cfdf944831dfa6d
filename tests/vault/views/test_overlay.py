"""The overlay sees what earlier changes did, and its change set leads from the vault on disk to what it shows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from obsidian_agent.errors import ObsidianAgentError
from obsidian_agent.vault.paths.path import ROOT, PathUse, VaultPath, parse
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

Fold = Callable[..., tuple[OverlayVault, ChangeSet]]


def path(text: str) -> VaultPath:
    return parse(text, PathUse.READ)


@pytest.fixture
def fold(make_vault: MakeVault) -> Fold:
    """Fold changes, each as its own instance, over a vault of files."""

    def run(files: dict[str, str], *changes: FileChange) -> tuple[OverlayVault, ChangeSet]:
        overlay = OverlayVault(DiskView(make_vault(files)), 0.0)
        for number, change in enumerate(changes):
            overlay.apply([change], number)
        return overlay, overlay.change_set()

    return run


def told(changes: ChangeSet) -> list[str]:
    """The net changes in short: kind, path, new path, whether there is new content."""
    return [f"{c.kind} {c.path}{f' -> {c.new_path}' if c.new_path else ''}{' *' if c.content is not None else ''}" for c in changes.changes]


def steps(changes: ChangeSet) -> list[str]:
    """The operations in short."""
    found = []
    for owned in changes.operations:
        match owned.operation:
            case MakeDir(where):
                found.append(f"{owned.instance} mkdir {where}")
            case Move():
                move = owned.operation
                found.append(f"{owned.instance} {'trash' if move.trash else 'move'} {move.path} -> {move.new_path}")
            case WriteFile():
                found.append(f"{owned.instance} write {owned.operation.path} {owned.operation.content.decode()}")
    return found


def files_of(overlay: OverlayVault) -> dict[str, str]:
    return {e.path.text: overlay.read(e.path).decode() for e in overlay.walk(ROOT) if e.kind == "file"}


def test_a_created_note_makes_its_folders_and_is_seen(fold: Fold) -> None:
    overlay, changes = fold({"a.md": "a"}, CreateFile(path("X/Y/n.md"), b"n"))
    assert files_of(overlay) == {"a.md": "a", "X/Y/n.md": "n"}
    assert told(changes) == ["mkdir X", "mkdir X/Y", "create X/Y/n.md *"]
    assert steps(changes) == ["0 mkdir X", "0 mkdir X/Y", "0 write X/Y/n.md n"]
    assert [e.path.text for e in overlay.children(path("X"))] == ["X/Y"]


def test_a_file_is_written_once_by_the_last_step_that_touched_it(fold: Fold) -> None:
    _, changes = fold({"a.md": "a"}, ModifyFile(path("a.md"), b"b"), MakeFolder(path("F")), ModifyFile(path("a.md"), b"c"))
    assert steps(changes) == ["1 mkdir F", "2 write a.md c"]


def test_an_edit_that_is_taken_back_writes_nothing(fold: Fold) -> None:
    _, changes = fold({"a.md": "a"}, ModifyFile(path("a.md"), b"b"), ModifyFile(path("a.md"), b"a"))
    assert changes == ChangeSet()


def test_a_renamed_and_edited_note_is_one_rename(fold: Fold) -> None:
    overlay, changes = fold({"a.md": "a"}, ModifyFile(path("a.md"), b"b"), RenameEntry(path("a.md"), path("N/c.md")))
    assert told(changes) == ["mkdir N", "rename a.md -> N/c.md *"]
    assert steps(changes) == ["1 mkdir N", "1 move a.md -> N/c.md", "1 write N/c.md b"]
    assert overlay.current(path("a.md")) == path("N/c.md")
    assert overlay.origin(path("N/c.md")) == path("a.md")


def test_a_folder_moves_with_all_that_is_in_it(fold: Fold) -> None:
    overlay, changes = fold(
        {"P/a.md": "a", "P/S/b.md": "b", "c.md": "c"},
        ModifyFile(path("P/a.md"), b"A"),
        RenameEntry(path("P"), path("Q/R")),
        ModifyFile(path("Q/R/S/b.md"), b"B"),
    )
    assert files_of(overlay) == {"Q/R/a.md": "A", "Q/R/S/b.md": "B", "c.md": "c"}
    assert told(changes) == ["rename P -> Q/R", "rename P/S/b.md -> Q/R/S/b.md *", "rename P/a.md -> Q/R/a.md *", "mkdir Q"]
    assert steps(changes) == ["1 mkdir Q", "1 move P -> Q/R", "1 write Q/R/a.md A", "2 write Q/R/S/b.md B"]
    assert overlay.locate(path("P")) is None


def test_two_notes_swap_their_names(fold: Fold) -> None:
    overlay, changes = fold(
        {"a.md": "a", "b.md": "b"},
        RenameEntry(path("a.md"), path("t.md")),
        RenameEntry(path("b.md"), path("a.md")),
        RenameEntry(path("t.md"), path("b.md")),
    )
    assert files_of(overlay) == {"a.md": "b", "b.md": "a"}
    assert told(changes) == ["rename a.md -> b.md", "rename b.md -> a.md"]
    assert len(steps(changes)) == 3


def test_a_rename_is_told_also_where_a_new_note_takes_the_old_name(fold: Fold) -> None:
    _, changes = fold({"a.md": "a"}, RenameEntry(path("a.md"), path("b.md")), CreateFile(path("a.md"), b"new"))
    assert told(changes) == ["rename a.md -> b.md", "create a.md *"]


@pytest.mark.parametrize(("change", "first"), [(RenameEntry(path("F"), path("G")), "rename F -> G"), (DeleteEntry(path("F")), "delete F")])
def test_a_new_folder_is_told_also_where_another_was(fold: Fold, change: FileChange, first: str) -> None:
    _, changes = fold({"F/a.md": "a"}, change, CreateFile(path("F/b.md"), b"new"))
    assert told(changes) == [first, "mkdir F", "create F/b.md *"]


def test_renaming_there_and_back_changes_nothing(fold: Fold) -> None:
    _, changes = fold({"a.md": "a"}, RenameEntry(path("a.md"), path("b.md")), RenameEntry(path("b.md"), path("a.md")))
    assert changes.changes == ()


def test_a_rename_that_only_changes_case(fold: Fold) -> None:
    overlay, changes = fold({"note.md": "a"}, RenameEntry(path("note.md"), path("Note.md")))
    assert told(changes) == ["rename note.md -> Note.md"]
    assert files_of(overlay) == {"Note.md": "a"}


def test_a_deleted_note_goes_to_a_free_name_in_the_trash(fold: Fold) -> None:
    overlay, changes = fold({"a/n.md": "1", "b/n.md": "2"}, DeleteEntry(path("a/n.md")), DeleteEntry(path("b/n.md")))
    assert told(changes) == ["delete a/n.md", "delete b/n.md"]
    assert steps(changes) == ["0 trash a/n.md -> .trash/n.md", "1 trash b/n.md -> .trash/n 2.md"]
    assert files_of(overlay) == {}


def test_the_trash_as_it_is_on_disk_is_respected(make_vault: MakeVault) -> None:
    overlay = OverlayVault(DiskView(make_vault({"n.md": "1", ".trash/n.md": "old"})), 0.0)
    overlay.apply([DeleteEntry(path("n.md"))], 0)
    assert steps(overlay.change_set()) == ["0 trash n.md -> .trash/n 2.md"]


def test_a_note_made_and_deleted_by_the_same_plan_never_was(fold: Fold) -> None:
    _, changes = fold({}, CreateFile(path("n.md"), b"n"), DeleteEntry(path("n.md")))
    assert changes == ChangeSet()


def test_a_folder_made_and_deleted_by_the_same_plan_never_was(fold: Fold) -> None:
    _, changes = fold({}, CreateFile(path("F/n.md"), b"n"), DeleteEntry(path("F")))
    assert changes == ChangeSet()


def test_a_note_deleted_and_made_again_is_a_modification(fold: Fold) -> None:
    _, changes = fold({"n.md": "old"}, DeleteEntry(path("n.md")), CreateFile(path("n.md"), b"new"))
    assert told(changes) == ["modify n.md *"]
    assert steps(changes) == ["0 trash n.md -> .trash/n.md", "1 write n.md new"]


def test_what_was_moved_within_or_into_a_deleted_folder_goes_with_it(fold: Fold) -> None:
    _, changes = fold(
        {"A/B/one.md": "1", "x.md": "x", "keep.md": "k", "A/out.md": "o"},
        RenameEntry(path("A/B"), path("A/C")),
        RenameEntry(path("x.md"), path("A/x.md")),
        RenameEntry(path("A/out.md"), path("out.md")),
        DeleteEntry(path("A")),
    )
    assert told(changes) == ["delete A", "rename A/out.md -> out.md", "delete x.md"]


def test_overwriting_by_rename_puts_the_old_note_into_the_trash(fold: Fold) -> None:
    overlay, changes = fold({"a.md": "a", "b.md": "b"}, RenameEntry(path("a.md"), path("b.md"), overwrite=True))
    assert told(changes) == ["rename a.md -> b.md", "delete b.md"]
    assert files_of(overlay) == {"b.md": "a"}


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (CreateFile(path("A.MD"), b""), "FILE_EXISTS"),
        (CreateFile(path("a.md/x.md"), b""), "NOT_A_FOLDER"),
        (ModifyFile(path("gone.md"), b""), "FILE_NOT_FOUND"),
        (ModifyFile(path("F"), b""), "NOT_TEXT"),
        (RenameEntry(path("a.md"), path("F/b.md")), "FILE_EXISTS"),
        (RenameEntry(path("F"), path("F/G/F")), "ARGUMENT_INVALID"),
        (RenameEntry(path("gone.md"), path("x.md")), "FILE_NOT_FOUND"),
        (DeleteEntry(path("gone.md")), "FILE_NOT_FOUND"),
        (MakeFolder(path("a.md")), "NOT_A_FOLDER"),
        (MakeFolder(path("f")), "FILE_EXISTS"),
    ],
)
def test_what_cannot_be_is_refused(make_vault: MakeVault, change: FileChange, code: str) -> None:
    overlay = OverlayVault(DiskView(make_vault({"a.md": "a", "F/b.md": "b"})), 0.0)
    with pytest.raises(ObsidianAgentError) as refused:
        overlay.apply([change], 0)
    assert refused.value.code == code
    assert overlay.change_set() == ChangeSet()


def test_names_on_disk_keep_their_spelling(make_vault: MakeVault) -> None:
    overlay = OverlayVault(DiskView(make_vault({"Cafe\u0301/n.md": "n"})), 0.0)
    overlay.apply([CreateFile(path("Caf\u00e9/new.md"), b"x")], 0)
    overlay.apply([ModifyFile(path("Caf\u00e9/n.md"), b"y")], 1)
    assert steps(overlay.change_set()) == ["0 write Cafe\u0301/new.md x", "1 write Cafe\u0301/n.md y"]


@pytest.mark.parametrize(
    "change",
    [
        DeleteEntry(path("link.md")),
        RenameEntry(path("link.md"), path("Folder/link.md")),
        RenameEntry(path("one.md"), path("link.md"), overwrite=True),
    ],
    ids=["deleted", "moved", "replaced"],
)
def test_a_link_to_a_note_stays_in_its_folder_as_it_would_lead_elsewhere_from_another(make_vault: MakeVault, change: FileChange) -> None:
    store = make_vault({"one.md": "1", "note.md": "2", "Folder/": ""})
    (Path(store.real_path) / "link.md").symlink_to("note.md")
    overlay = OverlayVault(DiskView(store), 0.0)
    with pytest.raises(ObsidianAgentError) as caught:
        overlay.apply([change], 0)
    assert (caught.value.code, str(caught.value).split(" is a link")[0]) == ("PATH_NOT_ALLOWED", "link.md")
    assert overlay.change_set().operations == ()


def test_a_link_to_a_note_gets_another_name_in_its_folder(make_vault: MakeVault) -> None:
    store = make_vault({"Folder/note.md": "2"})
    (Path(store.real_path) / "Folder/link.md").symlink_to("note.md")
    overlay = OverlayVault(DiskView(store), 0.0)
    overlay.apply([RenameEntry(path("Folder"), path("Moved"))], 0)
    overlay.apply([RenameEntry(path("Moved/link.md"), path("Moved/other.md"))], 1)
    assert steps(overlay.change_set()) == ["0 move Folder -> Moved", "1 move Moved/link.md -> Moved/other.md"]
