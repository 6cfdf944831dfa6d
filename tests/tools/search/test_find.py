from __future__ import annotations

import os
from datetime import UTC, datetime

import pytest

from obsidian_agent.errors import ObsidianAgentError

VAULT = {
    "Books/Dune.md": '---\ncategories: ["[[Books]]"]\nstatus: done\nrating: 5\ntags: [sf/space]\n---\nSpice, see [[Ann]].\n',
    "Books/Emma.md": "---\ncategories:\n  - '[[Sub/Books|my books]]'\nstatus: open\nrating: 4\n---\nA #novel of manners.\n- [ ] finish\n",
    "Books/Old/Iliad.md": "---\nstatus:\n---\n- [x] read\n",
    "Sub/Books.md": "Index.\n",
    "People/Ann.md": "---\nstatus: done\n---\n",
    "2026-03-10 Visit.md": "",
    "talk.md": "---\ndate: 2026-03-11T09:00\n---\nspiced up\n",
    "picture.png": b"\x89PNG",
    "board.canvas": "{}",
}


def found(bench, where, **args):
    return [file["path"] for file in bench(VAULT).run("vault.find", where=where, **args)["files"]]


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ({"folder": "Books"}, ["Books/Dune.md", "Books/Emma.md", "Books/Old/Iliad.md"]),
        ({"folder": "Books", "directly": True}, ["Books/Dune.md", "Books/Emma.md"]),
        ({"folder": "", "directly": True}, ["2026-03-10 Visit.md", "talk.md"]),
        ({"tag": ["#novel", "SF"]}, ["Books/Dune.md", "Books/Emma.md"]),
        ({"tagged": True}, ["Books/Dune.md", "Books/Emma.md"]),
        ({"property": {"categories": "Books"}}, ["Books/Dune.md", "Books/Emma.md"]),
        (
            {"property": {"status": ["done", "open"]}},
            ["Books/Dune.md", "Books/Emma.md", "People/Ann.md"],
        ),
        ({"property": {"status": None}, "folder": "Books"}, ["Books/Old/Iliad.md"]),
        ({"moreThan": {"words": 0}, "fewerThan": {"words": 2}, "folder": "Sub"}, ["Sub/Books.md"]),
        ({"moreThan": {"backlinks": 0}}, ["People/Ann.md", "Sub/Books.md"]),
        ({"fewerThan": {"links": 1}, "folder": "Sub"}, ["Sub/Books.md"]),
        ({"atLeast": {"rating": 4}}, ["Books/Dune.md", "Books/Emma.md"]),
        ({"above": {"rating": 4}}, ["Books/Dune.md"]),
        ({"atMost": {"rating": "4"}}, ["Books/Emma.md"]),
        ({"below": {"rating": 4}}, []),
        ({"atLeast": {"date": "2026-03-11"}, "below": {"date": "2026-03-12"}}, ["talk.md"]),
        ({"atLeast": {"status": 1}}, []),
        ({"has": ["Status"], "folder": "Books/Old"}, ["Books/Old/Iliad.md"]),
        ({"name": ["dun*", "EMM"]}, ["Books/Dune.md", "Books/Emma.md"]),
        ({"text": "spice"}, ["Books/Dune.md"]),
        ({"text": "of  manners"}, ["Books/Emma.md"]),
        ({"datedAfter": "2026-03-10", "datedBefore": "2026-03-11"}, ["2026-03-10 Visit.md"]),
        ({"datedAfter": "2026-03-11"}, ["talk.md"]),
        ({"linksTo": "People/Ann.md"}, ["Books/Dune.md"]),
        ({"linkedFrom": "Books/Emma.md"}, ["Sub/Books.md"]),
        (
            {"linked": False, "linking": False},
            ["2026-03-10 Visit.md", "Books/Old/Iliad.md", "talk.md"],
        ),
        ({"empty": True}, ["2026-03-10 Visit.md", "People/Ann.md"]),
        ({"properties": False}, ["2026-03-10 Visit.md", "Sub/Books.md"]),
        ({"createdBefore": "2001-01-01"}, []),
        ({"tasks": "open"}, ["Books/Emma.md"]),
        ({"tasks": "done"}, ["Books/Old/Iliad.md"]),
        ({"folder": "Books", "tasks": "none"}, ["Books/Dune.md"]),
        ({"paths": ["Books/Emma.md", "talk.md"], "not": {"tag": "novel"}}, ["talk.md"]),
        ({"any": [{"tag": "novel"}, {"name": "dune"}]}, ["Books/Dune.md", "Books/Emma.md"]),
        (
            {"all": [{"folder": "Books"}, {"not": {"any": [{"tag": "novel"}, {"name": "dune"}]}}]},
            ["Books/Old/Iliad.md"],
        ),
    ],
)
def test_every_condition(bench, where, expected):
    assert found(bench, where) == expected


def test_times_of_files_count_from_the_beginning_of_a_day(bench):
    vault = bench(VAULT)
    for number, path in enumerate(sorted(VAULT)):
        when = datetime(2026, 3, 1 + number, tzinfo=UTC).timestamp()
        os.utime(vault.folder / path, (when, when))
    names = sorted(VAULT)
    after = [
        file["path"]
        for file in vault.run("vault.find", where={"modifiedAfter": "2026-03-05"}, kind="files")[
            "files"
        ]
    ]
    assert after == names[4:]
    before = [
        file["path"]
        for file in vault.run(
            "vault.find", where={"modifiedBefore": "2026-03-05"}, kind="files", sort="-modified"
        )["files"]
    ]
    assert before == names[:4][::-1]


def test_kinds_of_files(bench):
    assert found(bench, {}, kind="attachments") == ["picture.png"]
    assert "board.canvas" in found(bench, {}, kind="files")
    assert found(bench, {"extension": ["PNG"]}, kind="files") == ["picture.png"]


@pytest.mark.parametrize(
    ("sort", "first"),
    [
        ("name", "2026-03-10 Visit.md"),
        ("-name", "talk.md"),
        ("frontmatter.rating", "Books/Emma.md"),
        ("-frontmatter.rating", "Books/Dune.md"),
    ],
)
def test_orders(bench, sort, first):
    assert found(bench, {}, sort=sort)[0] == first


@pytest.mark.parametrize("sort", ["frontmatter.rating", "-frontmatter.rating"])
def test_notes_without_the_value_come_last_both_ways(bench, sort):
    assert found(bench, {"folder": "Books"}, sort=sort)[-1] == "Books/Old/Iliad.md"


def test_a_limit_says_that_there_is_more(bench):
    answer = bench(VAULT).run("vault.find", where={"folder": "Books"}, sort="name", limit=1)
    assert ([file["name"] for file in answer["files"]], answer["count"], answer["hasMore"]) == (
        ["Dune"],
        1,
        True,
    )


@pytest.mark.parametrize(
    "args",
    [
        {"where": {"tag": "#"}},
        {"where": {"datedBefore": "soon"}},
        {"sort": "luck"},
        {"where": {"folder": "No"}},
    ],
)
def test_what_makes_no_sense_is_an_error(bench, args):
    with pytest.raises(ObsidianAgentError):
        bench(VAULT).run("vault.find", **args)


def test_a_note_that_is_no_text_is_a_warning(bench):
    vault = bench({"a.md": "spice", "b.md": b"\xff spice"})
    assert [file["path"] for file in vault.run("vault.find", where={"text": "spice"})["files"]] == [
        "a.md"
    ]
    assert vault.warnings == ["NOT_TEXT"]


def test_a_later_step_sees_what_an_earlier_one_did(bench):
    vault = bench(VAULT)
    vault.run("vault.setFrontmatter", path="talk.md", addTags=["novel"])
    assert [file["path"] for file in vault.run("vault.find", where={"tag": "novel"})["files"]] == [
        "Books/Emma.md",
        "talk.md",
    ]


def test_the_property_created_counts_before_the_time_of_the_file(bench):
    vault = bench(
        {"a.md": "---\ncreated: 1999-05-01T10:00\n---\n", "b.md": "---\ncreated: long ago\n---\n"}
    )
    assert [
        file["path"]
        for file in vault.run("vault.find", where={"createdBefore": "2000-01-01"})["files"]
    ] == ["a.md"]


QUERIED = {
    "Books/Dune.md": '---\ncategories: ["[[Books]]"]\nstatus: done\nrating: 5\nread: true\ntags: [sf, Classic]\n---\nSpice.\n',
    "Books/Emma.md": "---\ncategories:\n  - '[[Sub/Books|my books]]'\nstatus: open\nrating: 4\n---\nA #novel/classic of manners.\n",
    "Sub/Books.md": "Index.\n",
    "People/Ann.md": "---\nstatus: done\nTags: sf\n---\n",
    "plain.md": "Nothing. `#sf`\n",
    "picture.png": b"\x89PNG",
}


def queried(bench, **args):
    return [file["path"] for file in bench(QUERIED).run("vault.query", **args)["files"]]


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        ({}, ["Books/Dune.md", "Books/Emma.md", "People/Ann.md", "Sub/Books.md", "plain.md"]),
        ({"folder": "Books"}, ["Books/Dune.md", "Books/Emma.md"]),
        ({"tag": "#SF"}, ["Books/Dune.md", "People/Ann.md"]),
        ({"tag": "sf", "folder": "People"}, ["People/Ann.md"]),
        ({"tag": "novel"}, ["Books/Emma.md"]),
        ({"tag": "nov"}, []),
        ({"frontmatter": {"status": "done"}}, ["Books/Dune.md", "People/Ann.md"]),
        ({"frontmatter": {"status": "Done"}}, []),
        ({"frontmatter": {"STATUS": "done"}}, ["Books/Dune.md", "People/Ann.md"]),
        ({"frontmatter": {"status": "done", "rating": 5}}, ["Books/Dune.md"]),
        ({"frontmatter": {"rating": "5"}}, ["Books/Dune.md"]),
        ({"frontmatter": {"rating": True}}, []),
        ({"frontmatter": {"read": True}}, ["Books/Dune.md"]),
        ({"frontmatter": {"read": 1}}, []),
        ({"frontmatter": {"tags": "Classic"}}, ["Books/Dune.md"]),
        ({"frontmatter": {"rating": None}}, ["People/Ann.md", "Sub/Books.md", "plain.md"]),
        ({"name": "ook"}, ["Sub/Books.md"]),
        ({"name": "?m*a"}, ["Books/Emma.md"]),
        ({"name": "DUNE.md"}, ["Books/Dune.md"]),
        ({"text": "SPICE"}, ["Books/Dune.md"]),
        ({"sort": "-name", "folder": "Books"}, ["Books/Emma.md", "Books/Dune.md"]),
        (
            {"sort": "frontmatter.rating"},
            ["Books/Emma.md", "Books/Dune.md", "People/Ann.md", "Sub/Books.md", "plain.md"],
        ),
        ({"sort": "-frontmatter.rating", "limit": 1}, ["Books/Dune.md"]),
        ({"sort": "-size", "limit": 1}, ["Books/Emma.md"]),
    ],
)
def test_conditions(bench, args, expected):
    assert queried(bench, **args) == expected


@pytest.mark.parametrize(
    "wanted",
    [
        "[[Books]]",
        "Books",
        "books",
        "[[Sub/Books]]",
        "Sub/Books",
        "Sub/Books.md",
        "[[Books|other text]]",
    ],
)
def test_a_link_in_a_property_matches_by_its_target(bench, wanted):
    assert queried(bench, frontmatter={"categories": wanted}) == ["Books/Dune.md", "Books/Emma.md"]


def test_a_link_to_another_file_of_the_same_name_does_not_match(bench):
    files = {"A/Books.md": "", "B/Books.md": "", "n.md": '---\nof: "[[A/Books]]"\n---\n'}
    assert bench(files).run("vault.query", frontmatter={"of": "[[B/Books]]"})["files"] == []
    assert bench(files).run("vault.query", frontmatter={"of": "[[A/Books.md]]"})["count"] == 1


def test_what_is_told_of_a_note(bench):
    vault = bench(QUERIED)
    [file] = vault.run("vault.query", name="dune")["files"]
    stat = os.stat(vault.folder / "Books/Dune.md")
    assert file == {
        "path": "Books/Dune.md",
        "name": "Dune",
        "folder": "Books",
        "frontmatter": {
            "categories": ["[[Books]]"],
            "status": "done",
            "rating": 5,
            "read": True,
            "tags": ["sf", "Classic"],
        },
        "tags": ["sf", "Classic"],
        "mtimeMs": stat.st_mtime_ns / 1e6,
        "size": stat.st_size,
    }


def test_dates_count_from_the_beginning_of_the_day(bench):
    vault = bench(QUERIED)
    for name, day in {"Books/Dune.md": 9, "Books/Emma.md": 10, "plain.md": 11}.items():
        moment = datetime(2026, 3, day, tzinfo=UTC).timestamp()
        os.utime(vault.folder / name, (moment, moment))
    paths = [
        file["path"] for file in vault.run("vault.query", modifiedBefore="2026-03-10")["files"]
    ]
    assert paths == ["Books/Dune.md"]
    paths = [
        file["path"]
        for file in vault.run(
            "vault.query", modifiedAfter="2026-03-10", modifiedBefore="2026-03-11T00:00:01"
        )["files"]
    ]
    assert paths == ["Books/Emma.md", "plain.md"]
    assert vault.run("vault.query", createdBefore="2001-01-01")["files"] == []
    newest = vault.run("vault.query", folder="Books", sort="-modified")["files"]
    assert [file["path"] for file in newest] == ["Books/Emma.md", "Books/Dune.md"]


DATED = {
    "a.md": "---\ncreated: 1999-05-01T10:00\n---\n",
    "b.md": "---\ncreated: long ago\n---\n",
    "c.md": "---\nCreated: 2035-01-01\n---\n",
    "d.md": "",
    "e.md": "---\ncreated: 2001-02-03\n---\n",
}
MOMENTS = [
    "1999-05-01",
    "1999-05-01T10:00",
    "2001-02-03",
    "2020-01-01",
    "2026-03-10T12:00",
    "2035-01-01",
    "2036-01-01",
]


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize(
    "condition", ["createdBefore", "createdAfter", "modifiedBefore", "modifiedAfter"]
)
def test_a_time_means_the_same_here_and_in_find(bench, condition, moment):
    vault = bench(DATED)
    for day, name in enumerate(DATED, 9):
        when = datetime(2026, 3, day, 12, tzinfo=UTC).timestamp()
        os.utime(vault.folder / name, (when, when))
    for sort in ("path", "created", "-created", "-modified", "size"):
        queried = [
            file["path"]
            for file in vault.run("vault.query", **{condition: moment}, sort=sort)["files"]
        ]
        assert queried == [
            file["path"]
            for file in vault.run("vault.find", where={condition: moment}, sort=sort)["files"]
        ]


def test_the_property_created_counts_before_the_time_of_the_file_in_queries(bench):
    vault = bench(DATED)
    assert [
        file["path"] for file in vault.run("vault.query", createdBefore="2002-01-01")["files"]
    ] == ["a.md", "e.md"]
    assert [
        file["path"] for file in vault.run("vault.query", createdAfter="2034-01-01")["files"]
    ] == ["c.md"]
    sort_files = [file["path"] for file in vault.run("vault.query", sort="created")["files"]]
    assert (sort_files[:2], sort_files[-1]) == (["a.md", "e.md"], "c.md")


def test_pages(bench):
    output = bench(QUERIED).run("vault.query", limit=2, offset=2)
    assert [file["path"] for file in output["files"]] == ["People/Ann.md", "Sub/Books.md"]
    assert (output["count"], output["hasMore"]) == (2, True)
    assert bench(QUERIED).run("vault.query", limit=5)["hasMore"] is False


def test_later_steps_see_what_earlier_ones_did(bench):
    vault = bench(QUERIED)
    assert vault.run("vault.query", tag="sf")["count"] == 2
    vault.run("vault.createFile", path="New/note.md", content="#sf\n")
    vault.run("vault.setFrontmatter", path="plain.md", addTags=["sf/hard"], set={"status": "new"})
    vault.run("vault.setFrontmatter", path="People/Ann.md", remove=["Tags"])
    vault.run("vault.rename", **{"from": "Books", "to": "Shelf"})
    assert [file["path"] for file in vault.run("vault.query", tag="sf")["files"]] == [
        "New/note.md",
        "Shelf/Dune.md",
        "plain.md",
    ]
    assert [file["path"] for file in vault.run("vault.query", folder="Shelf")["files"]] == [
        "Shelf/Dune.md",
        "Shelf/Emma.md",
    ]
    assert [
        file["path"] for file in vault.run("vault.query", frontmatter={"status": "new"})["files"]
    ] == ["plain.md"]
    vault.run("vault.updateFile", path="New/note.md", mode="replace", content="no tag\n")
    vault.run("vault.delete", path="Shelf/Dune.md")
    assert [file["path"] for file in vault.run("vault.query", tag="sf")["files"]] == ["plain.md"]


def test_notes_that_cannot_be_read_are_named(bench):
    vault = bench({"a.md": "#x\n", "b.md": "#x\n"})
    (vault.folder / "b.md").chmod(0)
    if os.access(vault.folder / "b.md", os.R_OK):
        pytest.skip("this user may read everything")
    output = vault.run("vault.query", tag="x")
    assert [file["path"] for file in output["files"]] == ["a.md"]
    assert vault.warnings == ["IO_ERROR"]


@pytest.mark.parametrize(
    ("args", "code"),
    [
        ({"folder": "missing"}, "FILE_NOT_FOUND"),
        ({"folder": "plain.md"}, "NOT_A_FOLDER"),
        ({"modifiedBefore": "last week"}, "ARGUMENT_INVALID"),
        ({"sort": "mood"}, "ARGUMENT_INVALID"),
        ({"tag": "#"}, "ARGUMENT_INVALID"),
    ],
)
def test_refusals(bench, args, code):
    assert bench(QUERIED).refusal("vault.query", **args) == code


ALIKE = {
    "a.md": "---\nx: 1\n---\nsame\n",
    "sub/A.md": "\r\nsame",
    "b.md": "other",
    "e1.md": "",
    "e2.md": "---\nx: 1\n---\n",
}


def test_same_text_below_other_properties(bench):
    answer = bench(ALIKE).run("vault.findDuplicates")
    assert [[item["path"] for item in group["items"]] for group in answer["groups"]] == [
        ["a.md", "sub/A.md"]
    ]
    assert (answer["count"], answer["notes"]) == (1, 2)


def test_same_name_in_any_case(bench):
    answer = bench(ALIKE).run("vault.findDuplicates", by="name")
    assert [group["key"] for group in answer["groups"]] == ["a"]


def test_one_folder(bench):
    assert bench(ALIKE).run("vault.findDuplicates", folder="sub")["count"] == 0


@pytest.mark.parametrize(
    ("tool", "inside", "vault_wide"),
    [
        ("vault.find", {"where": {"folder": "A", "tagged": True}}, {"where": {"tagged": True}}),
        ("vault.find", {"where": {"paths": ["A/a.md"], "has": ["x"]}}, {"where": {"has": ["x"]}}),
        ("vault.find", {"where": {"folder": "A", "text": "spice"}}, {"where": {"text": "spice"}}),
        ("vault.query", {"folder": "A", "tag": "old"}, {"tag": "old"}),
        ("vault.listTags", {"folder": "A"}, {}),
        ("vault.listTags", {"files": ["A/a.md"]}, {"folder": ""}),
        (
            "vault.renameTag",
            {"folder": "A", "from": "old", "to": "new"},
            {"from": "old", "to": "new"},
        ),
        ("vault.searchText", {"folder": "A", "query": "spice"}, {"query": "spice"}),
    ],
)
def test_a_note_that_cannot_be_read_is_told_only_where_it_could_be_in_the_answer(
    bench, tool, inside, vault_wide
):
    vault = bench({"A/a.md": "#old spice", "B/bad.md": "#old spice"})
    os.truncate(vault.folder / "B/bad.md", 1 << 30)
    assert [each.path for each in vault.propose(tool, **vault_wide).warnings] == ["B/bad.md"]
    assert vault.propose(tool, **inside).warnings == ()


def test_a_task_in_progress_is_open(bench):
    vault = bench({"a.md": "- [/] half\n", "b.md": "- [-] dropped\n- [x] done\n"})
    assert [file["path"] for file in vault.run("vault.find", where={"tasks": "open"})["files"]] == [
        "a.md"
    ]
