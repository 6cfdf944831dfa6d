from __future__ import annotations

import pytest
from pydantic import ValidationError

from obsidian_agent.errors import ObsidianAgentError

NOTE = "---\ntitle: A # t\ntags: [x]\nold: 1\n---\nBody\n"


def test_sets_removes_and_tags_in_one_step(bench):
    vault = bench({"n.md": NOTE})
    output = vault.run(
        "vault.setFrontmatter",
        path="n.md",
        set={"title": "B", "due": "2026-01-02"},
        remove=["old"],
        addTags=["#z"],
        removeTags=["X"],
    )
    assert output == {"path": "n.md", "changed": True}
    assert vault.text("n.md") == "---\ntitle: B # t\ntags: [z]\ndue: 2026-01-02\n---\nBody\n"
    assert vault.changes() == [("modify", "n.md")]
    assert vault.on_disk() == {"n.md": NOTE.encode()}


@pytest.mark.parametrize(
    "args",
    [
        {},
        {"set": {"title": "A", "tags": ["x"]}},
        {"remove": ["none"]},
        {"addTags": ["X"]},
        {"removeTags": ["y"]},
        {"set": {"old": 1.0}},
    ],
)
def test_an_unchanged_note_is_not_written(bench, args):
    vault = bench({"n.md": NOTE})
    assert vault.run("vault.setFrontmatter", path="n.md", **args) == {
        "path": "n.md",
        "changed": False,
    }
    assert vault.changes() == []


def test_bytes_outside_the_properties_stay(bench):
    note = b"\xef\xbb\xbf---\r\na: 1\r\n---\r\nx\x00y\r\r\n  \xe2\x80\xa8\n"
    vault = bench({"n.md": note})
    vault.run("vault.setFrontmatter", path="n.md", set={"a": 2, "b": None})
    assert vault.text("n.md").encode() == note.replace(b"a: 1\r\n", b"a: 2\r\nb:\r\n")


def test_a_later_step_sees_what_an_earlier_one_set(bench):
    vault = bench({"n.md": "Body"})
    vault.run("vault.setFrontmatter", path="n.md", set={"a": [1]})
    vault.run("vault.setFrontmatter", path="n.md", set={"a": [1, "no"]})
    assert vault.text("n.md") == '---\na:\n  - 1\n  - "no"\n---\nBody'


@pytest.mark.parametrize(
    ("path", "args", "code"),
    [
        ("n.md", {"set": {"a": 1}, "remove": ["a"]}, "ARGUMENT_INVALID"),
        ("n.md", {"addTags": ["a b"]}, "ARGUMENT_INVALID"),
        ("broken.md", {"set": {"a": 1}}, "FRONTMATTER_INVALID"),
        ("latin.md", {"set": {"a": 1}}, "NOT_TEXT"),
        ("none.md", {"set": {"a": 1}}, "FILE_NOT_FOUND"),
        ("data.json", {"set": {"a": 1}}, "ARGUMENT_INVALID"),
        ("folder", {"set": {"a": 1}}, "NOT_TEXT"),
        ("../n.md", {"set": {"a": 1}}, "PATH_OUTSIDE_VAULT"),
        (".obsidian/n.md", {"set": {"a": 1}}, "PATH_NOT_ALLOWED"),
    ],
)
def test_refusals_name_the_file_and_change_nothing(bench, path, args, code):
    vault = bench(
        {
            "n.md": NOTE,
            "broken.md": "---\na: [\n---\n",
            "latin.md": b"caf\xe9",
            "data.json": "{}",
            "folder/": "",
        }
    )
    with pytest.raises(ObsidianAgentError) as caught:
        vault.run("vault.setFrontmatter", path=path, **args)
    assert caught.value.code == code
    assert caught.value.path == path or code.startswith("PATH_")
    assert vault.changes() == []


@pytest.mark.parametrize("args", [{"set": [1]}, {"remove": "a"}, {"tags": ["x"]}, {"addTags": [1]}])
def test_arguments_of_the_wrong_type(bench, args):
    with pytest.raises(ValidationError):
        bench({"n.md": NOTE}).run("vault.setFrontmatter", path="n.md", **args)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("x\n", "---\naliases:\n  - AL\n---\nx\n"),
        ("---\naliases: []\n---\n", None),
        ("---\naliases: Ada\n---\n", None),
        ("---\naliases:\n  - Ada\n---\n", "---\naliases:\n  - Ada\n  - AL\n---\n"),
    ],
)
def test_what_is_there_stays(bench, before, after):
    vault = bench({"n.md": before})
    answer = vault.run("vault.addValues", path="n.md", property="aliases", values=["AL", "AL"])
    assert answer["values"] == ([] if "Ada" not in before else ["Ada"]) + ["AL"]
    assert after is None or vault.text("n.md") == after


def test_a_note_takes_the_properties_of_another(bench):
    own = "---\nstatus: open\ntags: [a]\n---\nx\n"
    other = "---\nStatus: done\ntags: [a, b]\ndue: 2026-01-01\naliases: O\n---\n"
    vault = bench({"n.md": own, "Sub/Other.md": other})
    result = vault.run("vault.takeProperties", **{"path": "n.md", "from": "Sub/Other.md"})
    assert result["properties"] == ["tags", "due", "aliases"]
    assert vault.text("n.md") == (
        "---\nstatus: open\ntags: [a, b]\ndue: 2026-01-01\naliases: O\n---\nx\n"
    )


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("text\n## First\n# Second\n", "---\ntitle: First\n---\ntext\n## First\n# Second\n"),
        ("x\n", "x\n"),
    ],
)
def test_a_property_is_set_to_the_first_heading(bench, before, after):
    vault = bench({"n.md": before})
    vault.run("vault.propertyFromHeading", path="n.md", property="title")
    assert vault.text("n.md") == after


def test_nothing_new_changes_nothing(bench):
    vault = bench({"n.md": "---\naliases: [AL]\n---\n"})
    assert (
        vault.run("vault.addValues", path="n.md", property="aliases", values=["AL"])["changed"]
        is False
    )
    assert vault.changes() == []


def test_values_are_taken_out_and_the_others_stay(bench):
    vault = bench({"a.md": '---\nby: ["[[Ann Lee|Ann]]", Bo, Cy]\none: x\n---\n'})
    assert vault.run("vault.removeValues", path="a.md", property="by", values=["ann lee", "CY"])[
        "values"
    ] == ["Bo"]
    assert vault.text("a.md") == "---\nby: [Bo]\none: x\n---\n"
    vault.run("vault.removeValues", path="a.md", property="by", values=["Bo"])
    vault.run("vault.removeValues", path="a.md", property="one", values=["x"])
    assert vault.text("a.md") == "---\nby: []\none:\n---\n"
    assert (
        vault.run("vault.removeValues", path="a.md", property="by", values=["Bo"])["changed"]
        is False
    )
    assert vault.warnings == ["TEXT_NOT_FOUND"]


VAULT = {
    "a.md": '---\n# kept\nx: 1\nauthor:  "[[Ann]]" # who\nlist:\n  - b\n---\nauthor: text\n',
    "b.md": "---\r\n'author': Bob\r\n---\r\n",
    "both.md": "---\nauthor: a\nwriter: b\n---\n",
    "sub/c.md": '---\n{"author": "C"}\n---\n',
    "none.md": "author: x\n",
}


def test_value_place_and_comments_stay(bench):
    vault = bench(VAULT)
    assert vault.run("vault.renameProperty", **{"from": "author", "to": "writer"}) == {
        "files": ["a.md", "b.md", "sub/c.md"],
        "total": 3,
    }
    assert vault.text("a.md") == VAULT["a.md"].replace("author:  ", "writer:  ")
    assert vault.text("b.md") == "---\r\nwriter: Bob\r\n---\r\n"
    assert vault.text("sub/c.md") == '---\n{"writer": "C"}\n---\n'
    assert vault.warnings == ["PROPERTY_EXISTS"]


def test_a_name_that_needs_quotes_gets_them(bench):
    vault = bench(VAULT)
    vault.run("vault.renameProperty", path="b.md", **{"from": "author", "to": "# who"})
    assert vault.text("b.md") == '---\r\n"# who": Bob\r\n---\r\n'


def test_one_folder_only(bench):
    vault = bench(VAULT)
    assert vault.run("vault.renameProperty", folder="sub", **{"from": "author", "to": "by"})[
        "files"
    ] == ["sub/c.md"]


def test_nothing_to_rename_is_a_warning(bench):
    vault = bench(VAULT)
    assert vault.run("vault.renameProperty", **{"from": "never", "to": "x"})["total"] == 0
    assert vault.warnings == ["TEXT_NOT_FOUND"]


def test_a_name_that_none_can_have_is_an_error(bench):
    with pytest.raises(ObsidianAgentError):
        bench(VAULT).run("vault.renameProperty", **{"from": "author", "to": " "})


FIELDS = """---
status: open
---
# Book
author:: [[Ann Lee]], [[Bob]]
Rating:: 4.5
- pages:: 300
read:: true
genre:: essay
genre:: history
status:: closed
isbn:: 0123
empty::
A sentence with [inline:: value] stays.

```
code:: stays
```
"""


def test_lines_become_properties(bench):
    vault = bench({"n.md": FIELDS})
    answer = vault.run("vault.inlineToProperties", path="n.md")
    assert answer["properties"] == {
        "author": ["[[Ann Lee]]", "[[Bob]]"],
        "Rating": 4.5,
        "pages": 300,
        "read": True,
        "genre": ["essay", "history"],
        "isbn": "0123",
    } | {"empty": None}
    assert vault.warnings == ["PROPERTY_EXISTS"]
    text = vault.text("n.md")
    assert text.endswith(
        "---\n# Book\nstatus:: closed\nA sentence with [inline:: value] stays.\n\n```\ncode:: stays\n```\n"
    )
    assert "status: open\n" in text


def test_lines_can_stay(bench):
    vault = bench({"n.md": "a:: 1\r\nb:: 2\r\n"})
    assert vault.run("vault.inlineToProperties", path="n.md", fields=["A"], keep=True)["count"] == 1
    assert vault.text("n.md") == "---\r\na: 1\r\n---\r\na:: 1\r\nb:: 2\r\n"


def test_a_note_without_fields_is_not_touched(bench):
    vault = bench({"n.md": "std::vector is C++\nhttp://x::y\n"})
    assert vault.run("vault.inlineToProperties", path="n.md")["count"] == 0
    assert vault.changes() == []


QUERIES = {
    "a.md": "---\nrating: 3\n---\n#book\n",
    "q.md": "```dataview\nTABLE rating FROM #book\n```\n`$= dv.pages('#book').rating`\n",
    "b.base": 'filters: file.hasTag("book") && rating > 2\n',
}


def test_queries_follow_a_property(bench):
    vault = bench(QUERIES)
    document = vault.run("vault.renameProperty", **{"from": "rating", "to": "score"})
    assert document == {"files": ["a.md", "b.base", "q.md"], "total": 3}
    assert vault.text("b.base") == QUERIES["b.base"].replace("rating", "score")
    assert vault.text("q.md") == QUERIES["q.md"].replace("TABLE rating", "TABLE score")
    assert vault.warnings == ["QUERY_MAY_CHANGE"]


def test_queries_are_only_reported_when_the_old_name_stays_in_use(bench):
    vault = bench(QUERIES)
    vault.run("vault.renameProperty", **{"from": "rating", "to": "score"}, path="a.md")
    assert vault.changes() == [("modify", "a.md")]
    assert vault.warnings == ["QUERY_MAY_CHANGE"] * 3


def test_a_value_is_renamed_in_texts_and_lists_and_queries(bench):
    vault = bench(
        {
            "A.md": "---\nstatus: todo # soon\nother: todo\n---\ntodo\n",
            "B.md": '---\nStatus: [open, "todo", x, next]\n---\n',
            "Q.base": "filters: 'status == \"todo\"'\n",
        }
    )
    output = vault.run(
        "vault.renameValue", **{"property": "status", "from": ["todo", "open"]}, to="next"
    )
    assert output["files"] == ["A.md", "B.md", "Q.base"]
    assert vault.text("A.md") == "---\nstatus: next # soon\nother: todo\n---\ntodo\n"
    assert vault.text("B.md") == "---\nStatus: [x, next]\n---\n"
    assert vault.text("Q.base") == "filters: 'status == \"next\"'\n"


def test_renaming_a_value_in_some_notes_lists_the_queries(bench):
    vault = bench({"A.md": "---\ns: a\n---\n", "Q.md": '`= this.s = "a"`'})
    vault.run("vault.renameValue", **{"property": "s", "from": ["a"]}, to="b", path="A.md")
    assert (vault.text("Q.md"), vault.warnings) == ('`= this.s = "a"`', ["QUERY_MAY_CHANGE"])


def test_a_value_that_no_note_has_and_tags_are_refused(bench):
    vault = bench({"A.md": "---\ns: 1\ntags: [a]\n---\n"})
    vault.run("vault.renameValue", **{"property": "s", "from": ["1"]}, to="b")
    assert vault.warnings == ["TEXT_NOT_FOUND"]
    call = {"property": "tags", "from": ["a"], "to": "b"}
    assert vault.refusal("vault.renameValue", **call) == "ARGUMENT_INVALID"


def test_a_note_with_a_property_twice_does_not_stop_the_renaming_of_a_value(bench):
    vault = bench({"A.md": "---\ns: a\n---\n", "B.md": "---\ns: x\ns: a\n---\n"})
    done = vault.run("vault.renameValue", **{"property": "s", "from": ["a"]}, to="b")
    assert (done["files"], vault.warnings) == (["A.md"], ["FRONTMATTER_INVALID"])
