from __future__ import annotations

import pytest

from obsidian_agent.errors import ObsidianAgentError


def retag(vault, old, new, **more):
    return vault.run("vault.renameTag", **{"from": old, "to": new, **more})


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("#old", "#new"),
        ("a #old. (#OLD/sub/x) #old/", "a #new. (#new/sub/x) #new/"),
        ("#older #old-er #x/old a#old `#old` [[#old]] <b title='#old'>\n```\n#old\n```", None),
        ("See [above][top].\n\n[top]: #old\n", None),
        ("---\ntags: [Old, x]\n---\n", "---\ntags: [new, x]\n---\n"),
        (
            "---\ntags:\n  - old/sub # c\n  - 'x'\n---\n",
            "---\ntags:\n  - new/sub # c\n  - 'x'\n---\n",
        ),
        ('---\ntags: ["#old"]\n---\n', '---\ntags: ["#new"]\n---\n'),
        ("---\ntags: old\n---\n#old", "---\ntags: new\n---\n#new"),
        (
            "---\nTags: old\ntag: old\nother: old #old\n---\n",
            "---\nTags: new\ntag: old\nother: old #old\n---\n",
        ),
        (
            "\ufeff---\r\ntags:\r\n- old\r\n---\r\n#old\r\n",
            "\ufeff---\r\ntags:\r\n- new\r\n---\r\n#new\r\n",
        ),
    ],
)
def test_a_tag_is_renamed_where_it_is_one(bench, old, new):
    vault = bench({"n.md": old})
    done = retag(vault, "#old", "new")
    assert vault.text("n.md") == (new or old)
    assert (done["total"] > 0) == (new is not None)
    assert vault.changes() == ([("modify", "n.md")] if new else [])


def test_counts_by_file(bench):
    vault = bench(
        {"a.md": "---\ntags: [old]\n---\n#old #old/x", "F/b.md": "#old", "c.md": "#other"}
    )
    assert retag(vault, "old", "new") == {
        "files": [{"path": "F/b.md", "count": 1}, {"path": "a.md", "count": 3}],
        "total": 4,
    }


@pytest.mark.parametrize("scope", [{"folder": "F"}, {"path": "F/b.md"}, {"files": ["F/b.md"]}])
def test_only_in_some_notes(bench, scope):
    vault = bench({"a.md": "#old", "F/b.md": "#old"})
    assert retag(vault, "old", "new", **scope)["files"] == [{"path": "F/b.md", "count": 1}]
    assert vault.text("a.md") == "#old"


@pytest.mark.parametrize(
    ("old", "new", "before", "after"),
    [
        ("a", "a/b", "#a #a/c", "#a/b #a/b/c"),
        ("a/b", "a", "#a/b #a #a/b/c", "#a #a #a/c"),
        ("tag", "Tag", "#tag #Tag/x", "#Tag #Tag/x"),
        ("straße", "weg", "#STRASSE #Straße", "#STRASSE #weg"),
        ("x", "日本", "#x", "#日本"),
    ],
)
def test_nesting_and_letters(bench, old, new, before, after):
    vault = bench({"n.md": before})
    retag(vault, old, new)
    assert vault.text("n.md") == after


def test_a_list_that_has_both_names_keeps_one(bench):
    vault = bench({"n.md": "---\ntags:\n  - old\n  - New\n  - x\n---\n#old #new"})
    assert retag(vault, "old", "new")["total"] == 2
    assert vault.text("n.md") == "---\ntags:\n  - New\n  - x\n---\n#new #new"


@pytest.mark.parametrize(
    ("new", "written"), [("null", '"null"'), ("1e5", '"1e5"'), ("true", '"true"'), ("x1", "x1")]
)
def test_what_yaml_would_read_as_something_else_is_quoted(bench, new, written):
    vault = bench({"n.md": "---\ntags:\n  - old\n---\n", "list.md": "---\ntags: [old]\n---\n"})
    retag(vault, "old", new)
    assert vault.text("n.md") == f"---\ntags:\n  - {written}\n---\n"
    assert vault.text("list.md") == f"---\ntags: [{written}]\n---\n"


@pytest.mark.parametrize(
    "wrong", ["", "#", "1984", "a b", "a,b", "a#b", "a.b", "/a", "a//b", "2024-01"]
)
def test_what_is_no_tag_is_refused(bench, wrong):
    vault = bench({"n.md": "#old"})
    for old, new in ((wrong, "new"), ("old", wrong)):
        with pytest.raises((ObsidianAgentError, ValueError)):
            retag(vault, old, new)
    assert vault.changes() == []


def test_notes_that_cannot_be_changed_are_left_with_a_warning(bench):
    vault = bench({"bad.md": b"\xff #old", "CLAUDE.md": "#old", "good.md": "#old"})
    assert retag(vault, "old", "new")["total"] == 1
    assert sorted(vault.warnings) == ["NOT_TEXT", "PATH_NOT_ALLOWED"]


def test_a_tag_that_nobody_has_is_a_warning(bench):
    vault = bench({"n.md": "#other"})
    assert retag(vault, "old", "new") == {"files": [], "total": 0}
    assert vault.warnings == ["TEXT_NOT_FOUND"]


def test_later_steps_see_the_new_names(bench):
    vault = bench({"n.md": "#a"})
    retag(vault, "a", "b")
    assert retag(vault, "b", "c")["total"] == 1
    assert vault.text("n.md") == "#c"


def test_tags_are_counted_by_note_whatever_their_case(bench):
    vault = bench({"a.md": "#b #B #c/d\n", "sub/x.md": "---\ntags: [B]\n---\n`#code`\n"})
    assert vault.run("vault.listTags")["items"] == [
        {"tag": "b", "count": 2},
        {"tag": "c/d", "count": 1},
    ]
    assert vault.run("vault.listTags", folder="sub")["items"] == [{"tag": "B", "count": 1}]
    assert vault.run("vault.listTags", files=["a.md"])["count"] == 2


TAGGED = "---\ntags: [a, b/c]\n---\n#a\nText #a and #a/b, `#a` stays.\n- [ ] #A do\nend #b/c #a\n"


@pytest.mark.parametrize(
    ("tags", "after", "count"),
    [
        (["a"], "---\ntags: [b/c]\n---\nText and #a/b, `#a` stays.\n- [ ] do\nend #b/c\n", 5),
        (
            ["#b/c"],
            "---\ntags: [a]\n---\n#a\nText #a and #a/b, `#a` stays.\n- [ ] #A do\nend #a\n",
            2,
        ),
        (None, "---\ntags: []\n---\nText and, `#a` stays.\n- [ ] do\nend\n", 8),
        (["x"], TAGGED, 0),
    ],
)
def test_tags_go_from_properties_and_text(bench, tags, after, count):
    vault = bench({"n.md": TAGGED})
    answer = vault.run("vault.removeTags", path="n.md", tags=tags)
    assert vault.text("n.md") == after
    assert (answer["count"], answer["changed"]) == (count, count > 0)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("#a #b text\n", "text\n"),
        ("#a", ""),
        ("#a\r\n\r\nx\r\n", "\r\nx\r\n"),
        ("x\n#a #b\ny\n", "x\ny\n"),
        ("## Head #a\n", "## Head\n"),
        ("- x\n\t#a\ny", "- x\ny"),
        ("a#a is no tag, (#a) is one\n", "a#a is no tag, () is one\n"),
        ("| #a | b |\n", "| | b |\n"),
    ],
)
def test_what_stands_around_a_tag(bench, before, after):
    vault = bench({"n.md": before})
    vault.run("vault.removeTags", path="n.md")
    assert vault.text("n.md") == after


QUERIES = {
    "a.md": "---\nrating: 3\n---\n#book\n",
    "q.md": "```dataview\nTABLE rating FROM #book WHERE like = \"book\"\n```\n`$= dv.pages('#book').rating`\n",
    "b.base": 'filters: file.hasTag("book") && rating > 2\n',
}


def test_queries_follow_a_tag(bench):
    vault = bench(QUERIES)
    assert vault.run("vault.renameTag", **{"from": "book", "to": "novel"}) == {
        "files": [
            {"path": "a.md", "count": 1},
            {"path": "b.base", "count": 1},
            {"path": "q.md", "count": 1},
        ],
        "total": 3,
    }
    assert vault.text("b.base") == QUERIES["b.base"].replace("book", "novel")
    assert vault.text("q.md") == QUERIES["q.md"].replace("FROM #book", "FROM #novel")
    # A line that is changed may still have another name in doubt.
    assert [problem.message[:20] for problem in vault.last.warnings] == [
        "Line 2 of q.md: this",
        "Line 4 of q.md: this",
    ]
