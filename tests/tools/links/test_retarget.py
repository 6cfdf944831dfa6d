from __future__ import annotations

import pytest

from obsidian_agent.errors import ObsidianAgentError

VAULT = {
    "a.md": '---\nlead: "[[Sam]]"\n---\n[[Sam]] [[Sam#Work|him]] [[Team/Sam|Sam]] [Sam](Team/Sam.md) ![[Sam]] [[gone]] [[Dev]] `[[Sam]]`\n',
    "sub/b.md": "see [[Sam]] and [Sam](../Team/Sam.md)\n",
    "Team/Sam.md": "me: [[Sam]]\n",
    "Team/Dev.md": "",
    "board.canvas": '{"nodes":[{"id":"1","type":"file","file":"Team/Sam.md","x":0,"y":0,"width":1,"height":1}],"edges":[]}',
}


def test_links_to_a_file_mean_another_one_and_names_that_they_show_follow(bench):
    vault = bench(VAULT)
    answer = vault.run("vault.retargetLinks", **{"from": "Team/Sam.md", "to": "Team/Dev.md", "folder": ""})
    assert vault.text("a.md") == (
        '---\nlead: "[[Dev]]"\n---\n[[Dev]] [[Dev#Work|him]] [[Team/Dev|Dev]] [Dev](Team/Dev.md) ![[Dev]] [[gone]] [[Dev]] `[[Sam]]`\n'
    )
    assert vault.text("sub/b.md") == "see [[Dev]] and [Dev](../Team/Dev.md)\n"
    assert '"file":"Team/Dev.md"' in vault.text("board.canvas")
    assert answer["total"] == 10
    assert vault.warnings == ["LINK_PLACE", "LINK_TEXT"]


def test_only_in_a_folder_or_a_note(bench):
    vault = bench(VAULT)
    assert vault.run("vault.retargetLinks", **{"from": "Team/Sam.md", "to": "Team/Dev.md", "folder": "sub"})["files"] == [
        {"path": "sub/b.md", "count": 2}
    ]
    assert vault.run("vault.retargetLinks", **{"from": "Team/Sam.md", "to": "Team/Dev.md", "path": "Team/Sam.md"})["total"] == 1


def test_a_link_to_what_it_means_already_is_an_error(bench):
    with pytest.raises(ObsidianAgentError):
        bench(VAULT).run("vault.retargetLinks", **{"from": "Team/Sam.md", "to": "Team/Sam.md"})


def test_links_become_the_text_that_they_show(bench):
    vault = bench(VAULT)
    assert vault.run("vault.removeLinks", to="Team/Sam.md", path="a.md")["total"] == 5
    assert vault.text("a.md") == '---\nlead: "Sam"\n---\nSam him Sam Sam ![[Sam]] [[gone]] [[Dev]] `[[Sam]]`\n'
    assert vault.warnings == ["LINKS_LEFT"]


def test_all_links_of_a_note_and_those_that_lead_nowhere(bench):
    vault = bench(VAULT)
    assert vault.run("vault.removeLinks", name="gone")["files"] == [{"path": "a.md", "count": 1}]
    vault.run("vault.removeLinks", path="sub/b.md")
    assert vault.text("sub/b.md") == "see Sam and Sam\n"
    assert vault.run("vault.removeLinks", path="sub/b.md")["total"] == 0
    assert vault.warnings == ["TEXT_NOT_FOUND"]


def test_a_heading_is_shown_as_obsidian_shows_it(bench):
    vault = bench({"a.md": "[[b#One]]\n", "b.md": "# One\n"})
    vault.run("vault.removeLinks", path="a.md")
    assert vault.text("a.md") == "b > One\n"


def test_a_picture_whose_name_is_there_twice_gets_its_path(bench):
    vault = bench({"old.png": b"1", "A/p.png": b"2", "B/p.png": b"3", "n.md": "![[old.png]] [x](old.png)"})
    vault.run("vault.retargetLinks", **{"from": "old.png", "to": "A/p.png"})
    assert vault.text("n.md") == "![[A/p.png]] [x](A/p.png)"
