from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

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
        (
            {"mode": "append", "content": "x", "heading": "One"},
            NOTE.replace("first\n", "first\nx\n"),
        ),
        ({"mode": "prepend", "content": "x"}, NOTE.replace("# One", "x\n# One")),
        (
            {"mode": "prepend", "content": "x", "heading": "Two"},
            NOTE.replace("# Two\n", "# Two\nx\n"),
        ),
        ({"mode": "insert", "content": "x", "line": 4}, NOTE.replace("# One", "x\n# One")),
        ({"mode": "insert", "content": "x", "line": 9.0}, NOTE + "\nx\n"),
        (
            {"mode": "insert", "content": "x", "marker": "first  "},
            NOTE.replace("first\n", "first\nx\n"),
        ),
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
    assert (
        vault.run("vault.updateFile", path="a.md", mode="replace", content="x")["changed"] is False
    )
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
        (
            {"mode": "append", "content": "x", "heading": "No", "path": "new.md", "create": True},
            "MARKER_NOT_FOUND",
        ),
        ({"mode": "insert", "content": "x", "marker": "No"}, "MARKER_NOT_FOUND"),
        ({"mode": "insert", "content": "x", "marker": "twice"}, "COUNT_MISMATCH"),
        ({"mode": "insert", "content": "x", "line": 99}, "ARGUMENT_INVALID"),
    ],
)
def test_update_refuses(bench, args, code):
    vault = bench({"a.md": NOTE + "\ntwice\ntwice\n", "D/": "", "bad.md": b"\xff", "CLAUDE.md": ""})
    assert vault.refusal("vault.updateFile", **{"path": "a.md", **args}) == code
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


def test_replace_in_one_note(bench):
    vault = bench({"a.md": "cat Cat cat\n", "b.md": "cat"})
    assert vault.run("vault.replaceText", path="a.md", find="cat", replace="dog") == {
        "files": [{"path": "a.md", "count": 2}],
        "total": 2,
    }
    assert (vault.text("a.md"), vault.text("b.md")) == ("dog Cat dog\n", "cat")


def test_replace_in_the_vault_a_folder_or_named_notes(bench):
    files = {"a.md": "x", "D/b.md": "x x", "D/c.txt": "x", "e.md": "-"}
    assert bench(files).run("vault.replaceText", find="x", replace="y")["files"] == [
        {"path": "D/b.md", "count": 2},
        {"path": "a.md", "count": 1},
    ]
    assert bench(files).run("vault.replaceText", folder="D", find="x", replace="y")["total"] == 2
    vault = bench(files)
    assert (
        vault.run("vault.replaceText", paths=["a.md", "D/b.md", "./a.md"], find="x", replace="y")[
            "total"
        ]
        == 3
    )
    assert vault.changes() == [("modify", "D/b.md"), ("modify", "a.md")]


def test_only_one_kind_of_place(bench):
    with pytest.raises(ValidationError):
        bench().run("vault.replaceText", path="a.md", folder="", find="x", replace="y")


def test_without_regex_nothing_is_special(bench):
    vault = bench({"a.md": r"a.c $1 \1"})
    vault.run("vault.replaceText", path="a.md", find="a.c", replace=r"$1\1$$")
    assert vault.text("a.md") == r"$1\1$$ $1 \1"


def test_case_can_be_ignored(bench):
    vault = bench({"a.md": "Cat CAT c.t"})
    assert (
        vault.run("vault.replaceText", path="a.md", find="cat", replace="$1", caseSensitive=False)[
            "total"
        ]
        == 2
    )
    assert vault.text("a.md") == "$1 $1 c.t"


def test_regular_expressions_with_groups(bench):
    vault = bench({"a.md": "2024-01-02\n  2024-03-04\n"})
    assert (
        vault.run(
            "vault.replaceText",
            path="a.md",
            find=r"^(\d+)-(\d+)-(\d+)$",
            replace="$3.$2.$1 $$",
            regex=True,
        )["total"]
        == 1
    )
    assert vault.text("a.md") == "02.01.2024 $\n  2024-03-04\n"


def test_line_ends_in_find_and_replace_are_those_of_the_file(bench):
    vault = bench({"lf.md": "a\nb\nc\n", "crlf.md": "a\r\nb\r\nc\r\n", "mixed.md": "a\r\nb\nc\r\n"})
    for name, expected in {
        "lf.md": "1\n2\nc\n",
        "crlf.md": "1\r\n2\r\nc\r\n",
        "mixed.md": "1\r\n2\nc\r\n",
    }.items():
        vault.run("vault.replaceText", path=name, find="a\r\nb", replace="1\n2", expectCount=1)
        assert vault.text(name) == expected
    assert vault.text("mixed.md") == "1\r\n2\nc\r\n"


def test_dollar_ends_a_line_in_every_file(bench):
    vault = bench({"crlf.md": "a\r\na\r\n"})
    vault.run(
        "vault.replaceText", path="crlf.md", find="a$", replace="b\n", regex=True, expectCount=2
    )
    assert vault.text("crlf.md") == "b\r\n\r\nb\r\n\r\n"


def test_empty_matches_insert(bench):
    vault = bench({"crlf.md": "a\r\nb\r\n"})
    vault.run("vault.replaceText", path="crlf.md", find="^(?=.)", replace="- ", regex=True)
    assert vault.text("crlf.md") == "- a\r\n- b\r\n"


def test_a_wrong_count_stops(bench):
    vault = bench({"a.md": "x x"})
    assert (
        vault.refusal("vault.replaceText", path="a.md", find="x", replace="y", expectCount=1)
        == "COUNT_MISMATCH"
    )
    assert (
        vault.run("vault.replaceText", path="a.md", find="z", replace="y", expectCount=0)["total"]
        == 0
    )


def test_nothing_found_is_a_warning(bench):
    vault = bench({"a.md": "x"})
    assert vault.run("vault.replaceText", find="nowhere", replace="y") == {"files": [], "total": 0}
    assert vault.warnings == ["TEXT_NOT_FOUND"]


def test_replacing_a_text_with_itself_changes_nothing(bench):
    vault = bench({"a.md": "x x"})
    assert vault.run("vault.replaceText", path="a.md", find="x", replace="x")["total"] == 2
    assert vault.last.changes == ()


def test_notes_that_are_no_text_are_left_alone_in_a_scan(bench):
    vault = bench({"a.md": "x", "bad.md": b"x\xff"})
    assert vault.run("vault.replaceText", find="x", replace="y")["total"] == 1
    assert vault.warnings == ["NOT_TEXT"]
    assert vault.refusal("vault.replaceText", path="bad.md", find="x", replace="y") == "NOT_TEXT"


def test_instructions_for_other_agents_are_left_alone_in_a_scan(bench):
    vault = bench({"a.md": "x", "CLAUDE.md": "x", "sub/CLAUDE.md": "x"})
    assert vault.run("vault.replaceText", find="x", replace="y")["files"] == [
        {"path": "a.md", "count": 1},
    ]
    assert vault.warnings == ["PATH_NOT_ALLOWED", "PATH_NOT_ALLOWED"]


@pytest.mark.parametrize(
    ("args", "code"),
    [
        ({"path": "no.md"}, "FILE_NOT_FOUND"),
        ({"path": "a.txt"}, "NOT_TEXT"),
        ({"folder": "no"}, "FILE_NOT_FOUND"),
        ({"path": "CLAUDE.md"}, "PATH_NOT_ALLOWED"),
        ({"find": "(", "regex": True}, "ARGUMENT_INVALID"),
        ({"find": "(x)", "replace": "$2", "regex": True}, "ARGUMENT_INVALID"),
    ],
)
def test_replace_refuses(bench, args, code):
    assert (
        bench({"a.md": "x", "a.txt": "x", "CLAUDE.md": "x"}).refusal(
            "vault.replaceText", **{"find": "x", "replace": "y", **args}
        )
        == code
    )


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=80, deadline=None
)
@given(text=st.text("ab\n\r", max_size=20), find=st.sampled_from(["a", "b\n", "\n", "ab", "a\nb"]))
def test_what_no_match_covers_stays_byte_for_byte(bench, text, find):
    vault = bench({"a.md": text})
    count = vault.run("vault.replaceText", path="a.md", find=find, replace="<>")["total"]
    flat = text.replace("\r\n", "\n")
    assert count == flat.count(find)
    assert vault.text("a.md").replace("\r\n", "\n") == flat.replace(find, "<>")
    changed, place = vault.text("a.md"), 0
    for piece in changed.split("<>"):
        assert piece in text[place:]
        place = text.index(piece, place) + len(piece)
    assert count or changed == text


def test_links_that_a_replacement_breaks_are_reported(bench):
    vault = bench({"Plan.md": "", "a.md": "[[Plan]] and [[Gone]]", "b.md": "Plan"})
    vault.run("vault.replaceText", find="Plan", replace="Idea")
    assert [(problem.code, problem.message) for problem in vault.last.warnings] == [
        ("LINKS_UNRESOLVED", "Links will lead nowhere, because no file is called “Idea”.")
    ]
    assert vault.last.warnings[0].path == "a.md"


def test_links_that_a_replacement_repairs_or_leaves_dead_are_no_warning(bench):
    vault = bench({"Plan.md": "", "a.md": "[[Gone]] [[Lost]]"})
    vault.run("vault.replaceText", find="Gone", replace="Plan")
    assert vault.warnings == []
    vault.run("vault.replaceText", find="Lost", replace="Missing")
    assert vault.warnings == []
