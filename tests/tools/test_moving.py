from __future__ import annotations

import pytest

from obsidian_agent.errors import ObsidianAgentError
from obsidian_agent.tools.registry import TOOLS

# --- vault.rename -------------------------------------------------------------------------------------------------------------


def test_rename_a_file(bench):
    vault = bench({"a.md": "text"})
    assert vault.run("vault.rename", **{"from": "a.md", "to": "New/b.md"}) == {
        "from": "a.md",
        "to": "New/b.md",
        "path": "New/b.md",
        "linksUpdated": 0,
    }
    assert vault.changes() == [("mkdir", "New"), ("rename", "a.md")]
    assert vault.text("New/b.md") == "text"


def test_rename_a_folder(bench):
    vault = bench({"Old/x/a.md": "text"})
    vault.run("vault.rename", **{"from": "Old/", "to": "New.things/"})
    assert vault.changes() == [("rename", "Old")]
    assert vault.text("New.things/x/a.md") == "text"


@pytest.mark.parametrize(("old", "new"), [("note.md", "Note.md"), ("dir", "DIR")])
def test_rename_of_case_alone(bench, old, new):
    vault = bench({"note.md": "1", "dir/a.md": "2"})
    vault.run("vault.rename", **{"from": old, "to": new})
    assert (vault.exists(old), vault.exists(new)) == (False, True)


def test_rename_to_its_own_path_changes_nothing(bench):
    vault = bench({"a.md": ""})
    vault.run("vault.rename", **{"from": "a.md", "to": "./a.md"})
    assert vault.changes() == []


def test_rename_over_a_file_needs_overwrite(bench):
    vault = bench({"a.md": "a", "b.md": "b"})
    with pytest.raises(ObsidianAgentError) as caught:
        vault.run("vault.rename", **{"from": "a.md", "to": "B.md"})
    assert caught.value.code == "FILE_EXISTS"
    vault.run("vault.rename", **{"from": "a.md", "to": "b.md", "overwrite": True})
    assert vault.text("b.md") == "a"
    assert vault.changes() == [("rename", "a.md"), ("delete", "b.md")]


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ("no.md", "b.md", "FILE_NOT_FOUND"),
        ("a.md", "D", "FILE_EXISTS"),
        ("D", "D/sub", "ARGUMENT_INVALID"),
        ("D", "a.md", "FILE_EXISTS"),
        ("D", "E", "FILE_EXISTS"),
        ("a.md", "../a.md", "PATH_OUTSIDE_VAULT"),
        ("a.md", ".trash/a.md", "PATH_NOT_ALLOWED"),
        ("a.md", "a.exe", "PATH_NOT_ALLOWED"),
        ("a.md", "b/", "PATH_INVALID"),
    ],
)
def test_rename_refuses(bench, old, new, code):
    vault = bench({"a.md": "", "D/x.md": "", "E/": ""})
    with pytest.raises(ObsidianAgentError) as caught:
        vault.run("vault.rename", **{"from": old, "to": new, "overwrite": True})
    assert caught.value.code == code
    assert vault.changes() == []


def test_a_folder_to_move_into_is_explained(bench):
    with pytest.raises(ObsidianAgentError) as caught:
        bench({"a.md": "", "D/x.md": ""}).run("vault.rename", **{"from": "a.md", "to": "D"})
    assert "'D/a.md'" in caught.value.problem().message


# --- vault.delete -------------------------------------------------------------------------------------------------------------


def test_delete_moves_to_the_trash_under_a_free_name(bench):
    vault = bench({"A/x.md": "1", "B/x.md": "2"})
    assert vault.run("vault.delete", path="A/x.md") == {"path": "A/x.md", "deleted": True, "trashPath": ".trash/x.md"}
    assert vault.run("vault.delete", path="B/x.md")["trashPath"] == ".trash/x 2.md"
    assert not vault.exists("A/x.md")


def test_delete_of_a_folder(bench):
    vault = bench({"Full/x.md": "1", "Empty/": ""})
    assert vault.run("vault.delete", path="Empty")["deleted"] is True
    with pytest.raises(ObsidianAgentError) as caught:
        vault.run("vault.delete", path="Full")
    assert caught.value.code == "FOLDER_NOT_EMPTY"
    vault.run("vault.delete", path="Full", recursive=True)
    assert not vault.exists("Full/x.md")


@pytest.mark.parametrize(("path", "code"), [("no.md", "FILE_NOT_FOUND"), (".", "PATH_INVALID"), (".obsidian", "PATH_NOT_ALLOWED")])
def test_delete_refuses(bench, path, code):
    with pytest.raises(ObsidianAgentError) as caught:
        bench({".obsidian/app.json": ""}).run("vault.delete", path=path, recursive=True)
    assert caught.value.code == code


def test_delete_is_marked_and_sees_earlier_steps(bench):
    vault = bench()
    vault.run("vault.createFile", path="new.md", content="")
    vault.run("vault.delete", path="new.md")
    assert TOOLS["vault.delete"].deletes
    assert vault.changes() == []
