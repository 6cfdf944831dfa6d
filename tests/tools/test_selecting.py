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
        ({"property": {"status": ["done", "open"]}}, ["Books/Dune.md", "Books/Emma.md", "People/Ann.md"]),
        ({"property": {"status": None}, "folder": "Books"}, ["Books/Old/Iliad.md"]),
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
        ({"linked": False, "linking": False}, ["2026-03-10 Visit.md", "Books/Old/Iliad.md", "talk.md"]),
        ({"empty": True}, ["2026-03-10 Visit.md", "People/Ann.md"]),
        ({"properties": False}, ["2026-03-10 Visit.md", "Sub/Books.md"]),
        ({"createdBefore": "2001-01-01"}, []),
        ({"tasks": "open"}, ["Books/Emma.md"]),
        ({"tasks": "done"}, ["Books/Old/Iliad.md"]),
        ({"folder": "Books", "tasks": "none"}, ["Books/Dune.md"]),
        ({"paths": ["Books/Emma.md", "talk.md"], "not": {"tag": "novel"}}, ["talk.md"]),
        ({"any": [{"tag": "novel"}, {"name": "dune"}]}, ["Books/Dune.md", "Books/Emma.md"]),
        ({"all": [{"folder": "Books"}, {"not": {"any": [{"tag": "novel"}, {"name": "dune"}]}}]}, ["Books/Old/Iliad.md"]),
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
    after = [file["path"] for file in vault.run("vault.find", where={"modifiedAfter": "2026-03-05"}, kind="files")["files"]]
    assert after == names[4:]
    before = [
        file["path"] for file in vault.run("vault.find", where={"modifiedBefore": "2026-03-05"}, kind="files", sort="-modified")["files"]
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
    assert ([file["name"] for file in answer["files"]], answer["count"], answer["hasMore"]) == (["Dune"], 1, True)


@pytest.mark.parametrize(
    "args", [{"where": {"tag": "#"}}, {"where": {"datedBefore": "soon"}}, {"sort": "luck"}, {"where": {"folder": "No"}}]
)
def test_what_makes_no_sense_is_an_error(bench, args):
    with pytest.raises(ObsidianAgentError):
        bench(VAULT).run("vault.find", **args)


def test_a_note_that_is_no_text_is_a_warning(bench):
    vault = bench({"a.md": "spice", "b.md": b"\xff spice"})
    assert [file["path"] for file in vault.run("vault.find", where={"text": "spice"})["files"]] == ["a.md"]
    assert vault.warnings == ["NOT_TEXT"]


def test_a_later_step_sees_what_an_earlier_one_did(bench):
    vault = bench(VAULT)
    vault.run("vault.setFrontmatter", path="talk.md", addTags=["novel"])
    assert [file["path"] for file in vault.run("vault.find", where={"tag": "novel"})["files"]] == ["Books/Emma.md", "talk.md"]


def test_the_property_created_counts_before_the_time_of_the_file(bench):
    vault = bench({"a.md": "---\ncreated: 1999-05-01T10:00\n---\n", "b.md": "---\ncreated: long ago\n---\n"})
    assert [file["path"] for file in vault.run("vault.find", where={"createdBefore": "2000-01-01"})["files"]] == ["a.md"]
