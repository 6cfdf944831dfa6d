from __future__ import annotations

import pytest

from obsidian_agent.errors import Conflict, ObsidianAgentError
from obsidian_agent.vault.views.changes import content_hash

NOW_MS = 1773480600000.0


def test_ensure_folder_makes_it_with_its_parents(bench):
    vault = bench()
    assert vault.run("vault.ensureFolder", path="Work/Archive/2022/") == {
        "path": "Work/Archive/2022",
        "created": True,
    }
    assert vault.changes() == [
        ("mkdir", "Work"),
        ("mkdir", "Work/Archive"),
        ("mkdir", "Work/Archive/2022"),
    ]


@pytest.mark.parametrize(("asked", "found"), [("Work", "Work"), ("work", "Work"), ("", "")])
def test_ensure_folder_leaves_an_existing_one_and_answers_its_spelling(bench, asked, found):
    vault = bench({"Work/": ""})
    assert vault.run("vault.ensureFolder", path=asked) == {"path": found, "created": False}
    assert vault.changes() == []


def test_ensure_folder_takes_an_existing_folder_whose_name_could_not_be_made(bench):
    assert bench({"C# notes/": ""}).run("vault.ensureFolder", path="C# notes")["created"] is False


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("note.md", "NOT_A_FOLDER"),
        ("C# notes", "PATH_INVALID"),
        ("../x", "PATH_OUTSIDE_VAULT"),
        (".git/x", "PATH_NOT_ALLOWED"),
    ],
)
def test_ensure_folder_refuses(bench, path, code):
    assert bench({"note.md": ""}).refusal("vault.ensureFolder", path=path) == code


def test_a_file_among_the_parents_is_no_folder(bench):
    assert (
        bench({"note.md": ""}).refusal("vault.ensureFolder", path="note.md/sub") == "NOT_A_FOLDER"
    )


def test_create_file_makes_file_and_parents(bench):
    vault = bench()
    output = vault.run("vault.createFile", path="Projects/Plan.md", content="# Plan\n")
    assert output == {
        "path": "Projects/Plan.md",
        "created": True,
        "hash": content_hash(b"# Plan\n"),
        "mtimeMs": NOW_MS,
    }
    assert vault.text("Projects/Plan.md") == "# Plan\n"
    assert vault.changes() == [("mkdir", "Projects"), ("create", "Projects/Plan.md")]
    assert vault.on_disk() == {}


def test_create_file_adds_no_extension(bench):
    vault = bench()
    assert vault.run("vault.createFile", path="Plan", content="")["path"] == "Plan"
    assert vault.changes() == [("create", "Plan")]


@pytest.mark.parametrize("path", ["Note.md", "note.MD", "./Note.md"])
def test_create_file_leaves_an_existing_file_alone_and_says_so(bench, path):
    vault = bench({"Note.md": "old"})
    output = vault.run("vault.createFile", path=path, content="new")
    assert (output["path"], output["created"], output["hash"]) == (
        "Note.md",
        False,
        content_hash(b"old"),
    )
    assert vault.warnings == ["FILE_EXISTS"]
    assert vault.changes() == []


def test_create_file_finds_a_twin_in_another_normal_form(bench):
    vault = bench({"Caf\u00e9.md": "old"})
    assert vault.run("vault.createFile", path="Cafe\u0301.md", content="new")["created"] is False


def test_create_file_fails_on_an_existing_file_when_told_so(bench):
    vault = bench({"Note.md": "old"})
    with pytest.raises(ObsidianAgentError) as caught:
        vault.run("vault.createFile", path="Note.md", content="new", ifNotExists=False)
    assert (caught.value.code, caught.value.path) == ("FILE_EXISTS", "Note.md")


def test_create_file_over_a_folder_is_an_error_either_way(bench):
    assert (
        bench({"Notes/": ""}).refusal("vault.createFile", path="Notes", content="") == "FILE_EXISTS"
    )


def test_two_steps_that_make_one_path_are_an_error(bench):
    vault = bench()
    vault.run("vault.createFile", path="A/Idea.md", content="1")
    assert vault.refusal("vault.createFile", path="A/idea.md", content="2") == "DUPLICATE_PATH"
    assert vault.text("A/Idea.md") == "1"


def test_suffixes_avoid_names_of_the_plan_and_of_the_disk(bench):
    vault = bench({"Idea 2.md": "disk", "idea 4.md": "disk"})
    made = [
        vault.run("vault.createFile", path="Idea.md", content=str(n), onConflict="suffix")["path"]
        for n in range(3)
    ]
    assert made == ["Idea.md", "Idea 3.md", "Idea 5.md"]
    assert [vault.text(path) for path in made] == ["0", "1", "2"]


def test_a_name_without_room_for_a_suffix_is_shortened(bench):
    name = f"{'n' * 252}.md"
    vault = bench({f"F/{name}": "disk"})
    made = vault.run("vault.createFile", path=f"F/{name}", content="new", onConflict="suffix")
    assert made["path"] == f"F/{'n' * 250} 2.md"


def test_many_suffixes_are_in_order(bench):
    vault = bench({"N 30.md": "", "N 31.md": ""})
    made = [
        vault.run("vault.createFile", path="N.md", content="", onConflict="suffix")["path"]
        for _ in range(150)
    ]
    assert made == ["N.md", *(f"N {n}.md" for n in [*range(2, 30), *range(32, 153)])]


@pytest.mark.parametrize(
    ("path", "second"),
    [("a.tar.gz", "a.tar 2.gz"), ("README", "README 2"), ("D.x/1. Intro", "D.x/1. Intro 2")],
)
def test_a_suffix_goes_before_the_extension(bench, path, second):
    vault = bench({path: ""})
    assert (
        vault.run("vault.createFile", path=path, content="", onConflict="suffix")["path"] == second
    )


def test_properties_are_merged_safely(bench):
    vault = bench()
    vault.run(
        "vault.createFile",
        path="a.md",
        content="---\nkeep: 1\n---\nbody\n",
        frontmatter={"title": "a: b", "tags": ["x"]},
    )
    text = vault.text("a.md")
    assert text == '---\nkeep: 1\ntitle: "a: b"\ntags:\n  - x\n---\nbody\n'


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("../x.md", "PATH_OUTSIDE_VAULT"),
        (".obsidian/app.json", "PATH_NOT_ALLOWED"),
        ("a/CON.md", "PATH_INVALID"),
        ("x.desktop", "PATH_NOT_ALLOWED"),
        ("C# tips.md", "PATH_INVALID"),
    ],
)
def test_create_file_passes_the_gate(bench, path, code):
    assert bench().refusal("vault.createFile", path=path, content="") == code


def test_content_that_no_file_can_hold(bench):
    assert bench().refusal("vault.createFile", path="a.md", content="\ud800") == "ARGUMENT_INVALID"


def test_write_file_keeps_nothing(bench):
    vault = bench({"a.md": "old\r\nlines\r\n"})
    output = vault.run("vault.writeFile", path="a.md", content="new\n")
    assert output == {
        "path": "a.md",
        "created": False,
        "bytes": 4,
        "hash": content_hash(b"new\n"),
        "mtimeMs": NOW_MS,
    }
    assert vault.changes() == [("modify", "a.md")]


def test_write_file_makes_a_missing_file(bench):
    vault = bench()
    assert vault.run("vault.writeFile", path="x/é.md", content="é")["created"] is True
    assert vault.changes() == [("mkdir", "x"), ("create", "x/é.md")]


def test_write_file_with_the_same_bytes_changes_nothing(bench):
    vault = bench({"a.md": "same"})
    vault.run("vault.writeFile", path="a.md", content="same")
    assert vault.last.changes == ()


def test_if_match_guards_the_write(bench):
    vault = bench({"a.md": "old"})
    with pytest.raises(Conflict):
        vault.run("vault.writeFile", path="a.md", content="new", ifMatch=content_hash(b"other"))
    with pytest.raises(Conflict):
        vault.run("vault.writeFile", path="b.md", content="new", ifMatch=content_hash(b"old"))
    assert (
        vault.run(
            "vault.writeFile", path="a.md", content="new", ifMatch=content_hash(b"old").upper()
        )["created"]
        is False
    )


@pytest.mark.parametrize(
    ("path", "data"), [("pic.png", b"\x89PNG\r\n\x1a\n\0"), ("old.md", "für".encode("latin-1"))]
)
@pytest.mark.parametrize("guard", [{}, {"ifMatch": "x" * 64}])
def test_write_file_replaces_no_picture_and_no_note_in_another_encoding(bench, path, data, guard):
    with pytest.raises(ObsidianAgentError) as caught:
        bench({path: data}).run("vault.writeFile", path=path, content="new", **guard)
    assert (caught.value.code, caught.value.problem().path) == ("NOT_TEXT", path)


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("A.md", "FILE_EXISTS"),
        ("AGENTS.md", "PATH_NOT_ALLOWED"),
        ("run.sh", "PATH_NOT_ALLOWED"),
        ("folder", "NOT_TEXT"),
    ],
)
def test_write_file_refuses(bench, path, code):
    assert (
        bench({"a.md": "", "folder/": ""}).refusal("vault.writeFile", path=path, content="x")
        == code
    )
