from __future__ import annotations

import pytest

from obsidian_agent.errors import ObsidianAgentError

VAULT = {
    "a.md": "---\nby: '[[Ann Lee]]'\n---\n[[Ann Lea]] [[ann lea#Work|her]] [text](Ann%20Lea.md) [[missing]] ![[gone.png]] [[b]] `[[code]]`\n",
    "sub/b.md": "[[Missing.md]] [[Nowhere/else]]\n",
    "People/Ann Lee.md": "",
    "board.canvas": "{}",
}


def test_each_name_once_and_no_pictures(bench):
    answer = bench(VAULT).run("vault.listUnresolved")
    assert [(item["name"], item["count"], item["sources"]) for item in answer["items"]] == [
        ("Ann Lea", 3, ["a.md"]),
        ("missing", 2, ["a.md", "sub/b.md"]),
        ("Nowhere/else", 1, ["sub/b.md"]),
    ]


def test_files_too_and_one_folder(bench):
    vault = bench(VAULT)
    assert [item["name"] for item in vault.run("vault.listUnresolved", path="a.md", filesToo=True)["items"]] == [
        "Ann Lea",
        "gone.png",
        "missing",
    ]
    assert [item["name"] for item in vault.run("vault.listUnresolved", folder="sub")["items"]] == ["Missing", "Nowhere/else"]


def test_suggestions_are_names_that_look_alike(bench):
    items = bench(VAULT).run("vault.suggestLinks")["items"]
    assert [(item["name"], item["path"]) for item in items] == [("Ann Lea", "People/Ann Lee.md")]
    assert items[0]["score"] > 80


def test_retargeting_keeps_headings_and_texts(bench):
    vault = bench(VAULT)
    answer = vault.run("vault.retargetLinks", name="Ann Lea", to="People/Ann Lee.md")
    assert answer == {"files": [{"path": "a.md", "count": 3}], "total": 3}
    assert vault.text("a.md") == VAULT["a.md"].replace("[[Ann Lea]]", "[[Ann Lee]]").replace("[[ann lea#", "[[Ann Lee#").replace(
        "Ann%20Lea.md", "Ann%20Lee.md"
    )
    assert vault.run("vault.listUnresolved", path="a.md")["count"] == 1


def test_a_name_of_two_files_becomes_a_path(bench):
    vault = bench(VAULT | {"Old/Ann Lee.md": ""})
    vault.run("vault.retargetLinks", path="a.md", name="missing", to="Old/Ann Lee.md")
    assert "[[Old/Ann Lee]]" in vault.text("a.md")


def test_nothing_to_retarget_is_a_warning(bench):
    vault = bench(VAULT)
    assert vault.run("vault.retargetLinks", path="a.md", name="b", to="sub/b.md")["total"] == 0
    assert vault.warnings == ["TEXT_NOT_FOUND"]
    assert vault.changes() == []


def test_a_missing_target_is_an_error(bench):
    with pytest.raises(ObsidianAgentError):
        bench(VAULT).run("vault.retargetLinks", name="missing", to="No.md")
