from __future__ import annotations

import hashlib
import os

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from obsidian_agent.errors import ObsidianAgentError
from obsidian_agent.vault.views.changes import content_hash

# --- vault.readFile ---


def test_read_file_answers_the_bytes_as_they_are(bench):
    data = b"\xef\xbb\xbf# A\r\nline\r"
    output = bench({"a.md": data}).run("vault.readFile", path="a.md")
    assert output.pop("mtimeMs") > 0
    assert output == {
        "path": "a.md",
        "content": "\ufeff# A\r\nline\r",
        "hash": content_hash(data),
        "truncated": False,
    }


def test_read_file_answers_the_spelling_of_the_disk(bench):
    assert (
        bench({"Cafe\u0301.md": ""}).run("vault.readFile", path="Caf\u00e9.md")["path"]
        == "Cafe\u0301.md"
    )


def test_pages_are_cut_between_characters(bench):
    vault = bench({"a.md": "aé😀b"})
    first = vault.run("vault.readFile", path="a.md", maxBytes=2)
    assert (first["content"], first["truncated"], first["nextOffset"]) == ("a", True, 1)
    second = vault.run("vault.readFile", path="a.md", maxBytes=1, offset=1)
    assert (second["content"], second["nextOffset"]) == ("é", 3)
    last = vault.run("vault.readFile", path="a.md", maxBytes=50.0, offset=3)
    assert (last["content"], last["truncated"], "nextOffset" in last) == ("😀b", False, False)
    assert vault.run("vault.readFile", path="a.md", offset=999)["content"] == ""
    assert vault.run("vault.readFile", path="a.md", offset=2)["content"] == "😀b"


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60, deadline=None
)
@given(text=st.text(st.characters(codec="utf-8"), max_size=60), size=st.integers(1, 9))
def test_pages_put_together_are_the_file(bench, text, size):
    vault = bench({"a.md": text})
    parts, offset = [], 0
    while True:
        output = vault.run("vault.readFile", path="a.md", maxBytes=size, offset=offset)
        parts.append(output["content"])
        if not output["truncated"]:
            break
        assert output["nextOffset"] > offset
        offset = output["nextOffset"]
    assert "".join(parts) == text


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("b.md", "FILE_NOT_FOUND"),
        ("bad.md", "NOT_TEXT"),
        ("sub", "NOT_TEXT"),
        ("../a.md", "PATH_OUTSIDE_VAULT"),
    ],
)
def test_read_file_fails_by_name(bench, path, code):
    assert bench({"bad.md": b"a\xff", "sub/": ""}).refusal("vault.readFile", path=path) == code


def test_another_spelling_is_suggested(bench):
    with pytest.raises(ObsidianAgentError) as caught:
        bench({"Note.md": ""}).run("vault.readFile", path="note.md")
    assert "Note.md" in caught.value.problem().message


def test_arguments_are_strict(bench):
    for wrong in (
        {"maxBytes": "5"},
        {"maxBytes": 0},
        {"offset": -1},
        {"max": 1},
        {"maxBytes": 1.5},
        {"maxBytes": True},
    ):
        with pytest.raises(ValidationError):
            bench({"a.md": ""}).run("vault.readFile", path="a.md", **wrong)


# --- vault.readFiles ---


def test_read_files_tells_errors_one_by_one(bench):
    files = bench({"a.md": "é", "bad.md": b"\xff"}).run(
        "vault.readFiles", filePaths=["a.md", "no.md", "bad.md", "../x"]
    )["files"]
    assert files[0] == {"path": "a.md", "content": "é", "size": 2}
    assert [(file["path"], sorted(file), file["error"].split(":")[0]) for file in files[1:]] == [
        ("no.md", ["error", "path"], "FILE_NOT_FOUND"),
        ("bad.md", ["error", "path"], "NOT_TEXT"),
        ("../x", ["error", "path"], "PATH_OUTSIDE_VAULT"),
    ]


def test_read_files_of_nothing(bench):
    assert bench().run("vault.readFiles", filePaths=[]) == {"files": []}


# --- vault.listFiles ---

VAULT = {
    "b.md": "12",
    "A/c.md": "",
    "A/B/d.MD": "",
    "A/e.png": b"\x89",
    "Z/": "",
    ".obsidian/app.json": "{}",
    ".hidden.md": "",
}


def test_list_files_sorts_and_hides(bench):
    output = bench(VAULT).run("vault.listFiles")
    assert [file["path"] for file in output["files"]] == ["A/B/d.MD", "A/c.md", "A/e.png", "b.md"]
    assert (output["folders"], output["count"], output["hasMore"]) == (["A", "A/B", "Z"], 4, False)
    last = output["files"][-1]
    assert (last["name"], last["size"], last["mtimeMs"] > 0) == ("b", 2, True)


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        ({"folder": "A"}, ["A/B/d.MD", "A/c.md", "A/e.png"]),
        ({"folder": ""}, ["A/B/d.MD", "A/c.md", "A/e.png", "b.md"]),
        ({"folder": "A", "recursive": False}, ["A/c.md", "A/e.png"]),
        ({"extension": "md"}, ["A/B/d.MD", "A/c.md", "b.md"]),
        ({"extension": ".md", "recursive": False}, ["b.md"]),
    ],
)
def test_list_files_narrowed(bench, args, expected):
    assert [
        file["path"] for file in bench(VAULT).run("vault.listFiles", **args)["files"]
    ] == expected


@pytest.mark.parametrize(
    ("limit", "offset", "expected", "more"),
    [
        (2, 0, ["A/B/d.MD", "A/c.md"], True),
        (2, 2, ["A/e.png", "b.md"], False),
        (0, 0, [], True),
        (9, 9, [], False),
        (None, 3, ["b.md"], False),
    ],
)
def test_list_files_by_pages(bench, limit, offset, expected, more):
    output = bench(VAULT).run("vault.listFiles", limit=limit, offset=offset)
    assert ([file["path"] for file in output["files"]], output["count"], output["hasMore"]) == (
        expected,
        len(expected),
        more,
    )


@pytest.mark.parametrize(
    ("folder", "code"),
    [("b.md", "NOT_A_FOLDER"), ("no", "FILE_NOT_FOUND"), (".obsidian", "PATH_NOT_ALLOWED")],
)
def test_list_files_needs_a_folder(bench, folder, code):
    assert bench(VAULT).refusal("vault.listFiles", folder=folder) == code


def test_list_files_sees_what_earlier_steps_made(bench):
    vault = bench({"a.md": ""})
    vault.run("vault.createFile", path="sub/new.md", content="12345")
    new = vault.run("vault.listFiles", folder="sub")["files"][0]
    assert (new["path"], new["size"], new["mtimeMs"]) == ("sub/new.md", 5, 1773480600000.0)


FRONT = "---\naliases: [Nickname]\ntags: [a/b]\nn: 1\n---\n"
NOTE = (
    FRONT + "# One #inline\n\n- [x] done [[Other#^id|shown]]\n- [ ] open\n\n## Two\n![[pic.png]]\n"
)


def test_everything_of_a_note(bench):
    vault = bench({"N.md": NOTE, "Other.md": ""})
    output = vault.run("vault.getMetadata", path="N.md")
    assert output["frontmatter"] == {"aliases": ["Nickname"], "tags": ["a/b"], "n": 1}
    assert (output["tags"], output["aliases"]) == (["a/b", "inline"], ["Nickname"])
    headings = [
        (heading["text"], heading["level"], heading["line"]) for heading in output["headings"]
    ]
    assert headings == [("One #inline", 1, 6), ("Two", 2, 11)]
    assert output["links"][0] == {
        "target": "Other", "subpath": "#^id", "text": "shown", "kind": "wikilink", "line": 8, "path": "Other.md",
    }  # fmt: skip
    assert "path" not in output["links"][1]
    assert [(task["status"], task["line"]) for task in output["tasks"]] == [("x", 8), (" ", 9)]
    assert (output["size"], output["hash"]) == (
        len(NOTE),
        hashlib.sha256(NOTE.encode()).hexdigest(),
    )
    assert output["mtimeMs"] == os.stat(vault.folder / "N.md").st_mtime_ns / 1e6


def test_other_files_and_broken_notes(bench):
    canvas = '{"nodes":[{"id":"1","type":"file","file":"p.png"}]}'
    vault = bench(
        {
            "p.png": b"\x89",
            "bad.md": "---\na: [\n---\n#tag\n",
            "b.md": b"#caf\xe9\n",
            "c.canvas": canvas,
        }
    )
    assert vault.run("vault.getMetadata", path="p.png")["links"] == []
    assert vault.run("vault.getMetadata", path="c.canvas")["links"][0]["path"] == "p.png"
    assert vault.run("vault.getMetadata", path="bad.md")["tags"] == ["tag"]
    assert vault.warnings == ["FRONTMATTER_INVALID"]
    vault.run("vault.getMetadata", path="b.md")
    assert vault.warnings == ["NOT_TEXT"]


def test_words_without_properties(bench):
    vault = bench(
        {
            "a.md": "---\nx: one two\n---\nIt's a well-known 3.5 fact, über [[alles]].\n",
            "sub/b.md": "日本 ok\n",
        }
    )
    answer = vault.run("vault.countWords")
    assert [(file["path"], file["words"]) for file in answer["files"]] == [
        ("a.md", 7),
        ("sub/b.md", 3),
    ]
    assert (answer["words"], answer["count"]) == (10, 2)
    assert vault.run("vault.countWords", path="sub/b.md")["characters"] == 6
