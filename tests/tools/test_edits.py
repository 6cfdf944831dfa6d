from __future__ import annotations

import pytest
from pydantic import ValidationError

from obsidian_agent.errors import ObsidianAgentError
from obsidian_agent.vault.views.changes import content_hash

NOTE = "---\ntags: [a]\n---\n# One\nfirst\n\n# Two\nsecond"


def edited(bench, note, **args):
    vault = bench({"a.md": note})
    output = vault.run("vault.updateFile", path="a.md", **args)
    text = vault.text("a.md")
    assert output == {"path": "a.md", "changed": text != note, "hash": content_hash(text.encode())}
    return text


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        ({"mode": "append", "content": "x"}, NOTE + "\nx\n"),
        ({"mode": "append", "content": "x", "heading": "One"}, NOTE.replace("first\n", "first\nx\n")),
        ({"mode": "prepend", "content": "x"}, NOTE.replace("# One", "x\n# One")),
        ({"mode": "prepend", "content": "x", "heading": "Two"}, NOTE.replace("# Two\n", "# Two\nx\n")),
        ({"mode": "insert", "content": "x", "line": 4}, NOTE.replace("# One", "x\n# One")),
        ({"mode": "insert", "content": "x", "line": 9.0}, NOTE + "\nx\n"),
        ({"mode": "insert", "content": "x", "marker": "first  "}, NOTE.replace("first\n", "first\nx\n")),
        ({"mode": "replace", "content": "x", "heading": "One"}, NOTE.replace("first\n", "x\n")),
        ({"mode": "replace", "content": "x"}, "x\n"),
        ({"mode": "append", "content": ""}, NOTE),
    ],
)
def test_modes(bench, args, expected):
    assert edited(bench, NOTE, **args) == expected
    windows = NOTE.replace("\n", "\r\n")
    assert edited(bench, windows, **args) == expected.replace("\n", "\r\n")


def test_an_edit_that_changes_nothing_proposes_nothing(bench):
    vault = bench({"a.md": "x\n"})
    assert vault.run("vault.updateFile", path="a.md", mode="replace", content="x")["changed"] is False
    assert vault.last.changes == ()


@pytest.mark.parametrize("mode", ["append", "prepend", "replace"])
def test_create_makes_the_file(bench, mode):
    vault = bench()
    output = vault.run("vault.updateFile", path="Log/a.md", mode=mode, content="- x", create=True)
    assert output == {"path": "Log/a.md", "changed": True, "hash": content_hash(b"- x\n")}
    assert vault.changes() == [("mkdir", "Log"), ("create", "Log/a.md")]
    vault.run("vault.updateFile", path="Log/a.md", mode="append", content="- y", create=True)
    assert vault.text("Log/a.md") == "- x\n- y\n"


@pytest.mark.parametrize(
    ("args", "code"),
    [
        ({"mode": "append", "content": "x", "path": "no.md"}, "FILE_NOT_FOUND"),
        ({"mode": "append", "content": "x", "path": "A.md", "create": True}, "FILE_EXISTS"),
        ({"mode": "append", "content": "x", "path": "D"}, "NOT_TEXT"),
        ({"mode": "append", "content": "x", "path": "bad.md"}, "NOT_TEXT"),
        ({"mode": "append", "content": "x", "path": "CLAUDE.md"}, "PATH_NOT_ALLOWED"),
        ({"mode": "append", "content": "x", "path": "new.exe", "create": True}, "PATH_NOT_ALLOWED"),
        ({"mode": "append", "content": "x", "heading": "No"}, "MARKER_NOT_FOUND"),
        ({"mode": "append", "content": "x", "heading": "No", "path": "new.md", "create": True}, "MARKER_NOT_FOUND"),
        ({"mode": "insert", "content": "x", "marker": "No"}, "MARKER_NOT_FOUND"),
        ({"mode": "insert", "content": "x", "marker": "twice"}, "COUNT_MISMATCH"),
        ({"mode": "insert", "content": "x", "line": 99}, "ARGUMENT_INVALID"),
    ],
)
def test_update_refuses(bench, args, code):
    vault = bench({"a.md": NOTE + "\ntwice\ntwice\n", "D/": "", "bad.md": b"\xff", "CLAUDE.md": ""})
    with pytest.raises(ObsidianAgentError) as caught:
        vault.run("vault.updateFile", **{"path": "a.md", **args})
    assert caught.value.code == code
    assert vault.changes() == []


@pytest.mark.parametrize(
    "args",
    [
        {"mode": "insert"},
        {"mode": "insert", "line": 1, "marker": "x"},
        {"mode": "insert", "line": 0},
        {"mode": "insert", "line": 1, "heading": "One"},
        {"mode": "append", "line": 1},
        {"mode": "replace", "marker": "x"},
        {"mode": "patch"},
    ],
)
def test_arguments_that_do_not_go_together(bench, args):
    with pytest.raises(ValidationError):
        bench({"a.md": NOTE}).run("vault.updateFile", path="a.md", content="x", **args)
