from __future__ import annotations

import pytest
from msgspec.structs import replace

from obsidian_agent.errors import ObsidianAgentError
from obsidian_agent.vault.links.link_text import LinkStyle
from obsidian_agent.vault.markdown.note import links_in

FILES = {
    "Home.md": "",
    "Sub/Old note.md": "",
    "Twin.md": "",
    "Sub/Twin.md": "",
    "Pics/a (1).png": b"x",
}


def converted(bench, text, to, path="Sub/n.md"):
    vault = bench({**FILES, path: text})
    count = vault.run("vault.convertLinks", path=path, to=to)["count"]
    return vault.text(path), count


@pytest.mark.parametrize(
    ("wiki", "markdown"),
    [
        ("[[Old note]]", "[Old note](Old%20note.md)"),
        ("[[Home|start]]", "[start](../Home.md)"),
        ("[[Old note#A b]]", "[Old note > A b](Old%20note.md#A%20b)"),
        ("[[#Here]]", "[Here](#Here)"),
        ("![[a (1).png]]", "![a (1).png](../Pics/a%20%281%29.png)"),
        ("[[Never seen]]", "[Never seen](Never%20seen.md)"),
    ],
)
def test_there_and_back(bench, wiki, markdown):
    assert converted(bench, f"x {wiki} y\n", "markdown") == (f"x {markdown} y\n", 1)
    assert converted(bench, f"x {markdown} y\n", "wikilinks") == (f"x {wiki} y\n", 1)


def test_a_name_of_two_files_is_a_path_in_a_wikilink(bench):
    assert converted(bench, "[t](../Twin.md)", "wikilinks")[0] == "[[Twin|t]]"
    assert converted(bench, "[t](./Twin.md)", "wikilinks")[0] == "[[Sub/Twin|t]]"


def test_what_is_no_link_stays(bench):
    text = "`[[Home]]` [web](https://example.org) [[Home]]\n\n```\n[[Home]]\n```\n"
    assert converted(bench, text, "markdown")[0] == text.replace(
        " [[Home]]\n\n", " [Home](../Home.md)\n\n"
    )


def test_properties_and_tables_stay(bench):
    text = "---\nby: '[[Home]]'\n---\n| a |\n| - |\n| [[Home\\|x]] |\n"
    vault = bench({**FILES, "n.md": text})
    assert vault.run("vault.convertLinks", path="n.md", to="markdown")["count"] == 0
    assert vault.warnings == ["LINKS_LEFT"]
    assert vault.changes() == []


def test_a_wikilink_in_a_table_keeps_its_cell(bench):
    text = "| a | b |\n| - | - |\n| [x](Home.md) | ![y](Home.md) |\n\n[x](Home.md)\n"
    assert converted(bench, text, "wikilinks", "n.md") == (
        "| a | b |\n| - | - |\n| [[Home\\|x]] | ![[Home\\|y]] |\n\n[[Home|x]]\n",
        3,
    )


LIST = "Features:\n\n- [x] Color schemes\n\t* [ ] E-ink mode ^id1\n> 2) a - a\n\nend"


def test_only_the_texts_of_the_items_become_links(bench):
    vault = bench(
        {"F/Color schemes.md": "", "F/E-ink mode.md": "", "F/a - a.md": "", "a - a.md": ""}
    )
    output = vault.run(
        "util.linkBullets",
        text=LIST,
        notes=[
            {"path": "F/Color schemes.md"},
            "F/E-ink mode.md",
            {"path": "F/a - a.md", "created": True},
        ],
    )
    assert output == {
        "text": "Features:\n\n- [x] [[Color schemes]]\n\t* [ ] [[E-ink mode]] ^id1\n> 2) [[F/a - a]]\n\nend",
        "count": 3,
    }


def test_null_leaves_an_item_as_it_is(bench):
    assert bench().run("util.linkBullets", text="- a\r\n- a\r\n", notes=[None, "x.md"]) == {
        "text": "- a\r\n- [[x.md]]\r\n",
        "count": 1,
    }


def test_the_number_of_notes_must_fit(bench):
    assert bench().refusal("util.linkBullets", text="- a\n- b", notes=["x.md"]) == "COUNT_MISMATCH"


def test_a_text_that_holds_its_own_item_as_part_of_another_line(bench):
    output = bench().run("util.linkBullets", text="x - a\n- a", notes=["y.md"])
    assert output["text"] == "x - a\n- [[y.md]]"


MENTIONS = {
    "People/Ann Lee.md": "---\naliases: [Annie]\n---\nAnn Lee\n",
    "a.md": "---\nby: Ann Lee\n---\n# Ann Lee\n\nann lee met Annie, Ann Leeds, [[Ann Lee]] and `Ann Lee`.\n\n```\nAnn Lee\n```\n\n| who |\n|---|\n| annie |\n",
    "b.md": "Ann Lee and Ann Lee (https://x.org/Ann Lee #Ann Lee)\n",
}


def test_mentions_in_texts_become_links(bench):
    vault = bench(MENTIONS)
    answer = vault.run("vault.linkMentions", to="People/Ann Lee.md", path="a.md")
    assert answer == {"files": [{"path": "a.md", "count": 3}], "total": 3}
    assert vault.text("a.md") == MENTIONS["a.md"].replace(
        "ann lee met Annie,", "[[Ann Lee|ann lee]] met [[Ann Lee|Annie]],"
    ).replace("| annie |", "| [[Ann Lee\\|annie]] |")


def test_only_the_first_one_and_never_in_the_note_itself(bench):
    vault = bench(MENTIONS)
    answer = vault.run(
        "vault.linkMentions", to="People/Ann Lee.md", occurrences="first", aliases=False
    )
    assert [file["path"] for file in answer["files"]] == ["a.md", "b.md"]
    assert vault.text("b.md").startswith("[[Ann Lee]] and Ann Lee (")


def test_only_a_text_as_it_is_written_becomes_a_link(bench):
    vault = bench({"Ann Lee.md": "---\naliases: [Annie]\n---\n", "a.md": "Ann Lee, annie, Annie\n"})
    vault.run("vault.linkMentions", to="Ann Lee.md", text="Annie")
    assert vault.text("a.md") == "Ann Lee, annie, [[Ann Lee|Annie]]\n"


def test_mentions_become_links_in_the_form_of_the_vault(bench):
    vault = bench({"P/Ann Lee.md": "", "n/a.md": "met ann lee\n"})
    vault.run_context = replace(vault.run_context, link_style=LinkStyle("relative", markdown=True))
    vault.run("vault.linkMentions", to="P/Ann Lee.md")
    assert vault.text("n/a.md") == "met [ann lee](../P/Ann%20Lee.md)\n"


def test_code_over_several_lines_stays(bench):
    vault = bench({"Ann Lee.md": "", "a.md": "`one\nAnn Lee two` Ann Lee\n"})
    vault.run("vault.linkMentions", to="Ann Lee.md")
    assert vault.text("a.md") == "`one\nAnn Lee two` [[Ann Lee]]\n"


def test_nothing_mentioned_is_a_warning(bench):
    vault = bench({"Ann Lee.md": "", "a.md": "x"})
    vault.run("vault.linkMentions", to="Ann Lee.md")
    assert vault.warnings == ["TEXT_NOT_FOUND"]


LINKED = {
    "a.md": '---\nlead: "[[Sam]]"\n---\n[[Sam]] [[Sam#Work|him]] [[Team/Sam|Sam]] [Sam](Team/Sam.md) ![[Sam]] [[gone]] [[Dev]] `[[Sam]]`\n',
    "sub/b.md": "see [[Sam]] and [Sam](../Team/Sam.md)\n",
    "Team/Sam.md": "me: [[Sam]]\n",
    "Team/Dev.md": "",
    "board.canvas": '{"nodes":[{"id":"1","type":"file","file":"Team/Sam.md","x":0,"y":0,"width":1,"height":1}],"edges":[]}',
}


def test_links_to_a_file_mean_another_one_and_names_that_they_show_follow(bench):
    vault = bench(LINKED)
    answer = vault.run(
        "vault.retargetLinks", **{"from": "Team/Sam.md", "to": "Team/Dev.md", "folder": ""}
    )
    assert vault.text("a.md") == (
        '---\nlead: "[[Dev]]"\n---\n[[Dev]] [[Dev#Work|him]] [[Team/Dev|Dev]] [Dev](Team/Dev.md) ![[Dev]] [[gone]] [[Dev]] `[[Sam]]`\n'
    )
    assert vault.text("sub/b.md") == "see [[Dev]] and [Dev](../Team/Dev.md)\n"
    assert '"file":"Team/Dev.md"' in vault.text("board.canvas")
    assert answer["total"] == 10
    assert vault.warnings == ["LINK_PLACE", "LINK_TEXT"]


def test_only_in_a_folder_or_a_note(bench):
    vault = bench(LINKED)
    assert vault.run(
        "vault.retargetLinks", **{"from": "Team/Sam.md", "to": "Team/Dev.md", "folder": "sub"}
    )["files"] == [{"path": "sub/b.md", "count": 2}]
    assert (
        vault.run(
            "vault.retargetLinks",
            **{"from": "Team/Sam.md", "to": "Team/Dev.md", "path": "Team/Sam.md"},
        )["total"]
        == 1
    )


def test_a_link_to_what_it_means_already_is_an_error(bench):
    with pytest.raises(ObsidianAgentError):
        bench(LINKED).run("vault.retargetLinks", **{"from": "Team/Sam.md", "to": "Team/Sam.md"})


def test_a_link_by_a_name_of_several_files_can_get_the_path(bench):
    files = {"A.md": "[[Plan]] [x](Plan.md) ![[Plan]]", "X/Plan.md": "", "Y/Plan.md": ""}
    vault = bench(files)
    arguments = {"from": "X/Plan.md", "to": "X/Plan.md", "byPath": True, "keepText": True}
    vault.run("vault.retargetLinks", **arguments)
    assert vault.text("A.md") == "[[X/Plan|Plan]] [x](X/Plan.md) ![[X/Plan]]"


def test_links_become_the_text_that_they_show(bench):
    vault = bench(LINKED)
    assert vault.run("vault.removeLinks", to="Team/Sam.md", path="a.md")["total"] == 5
    assert (
        vault.text("a.md")
        == '---\nlead: "Sam"\n---\nSam him Sam Sam ![[Sam]] [[gone]] [[Dev]] `[[Sam]]`\n'
    )
    assert vault.warnings == ["LINKS_LEFT"]


def test_all_links_of_a_note_and_those_that_lead_nowhere(bench):
    vault = bench(LINKED)
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
    vault = bench(
        {"old.png": b"1", "A/p.png": b"2", "B/p.png": b"3", "n.md": "![[old.png]] [x](old.png)"}
    )
    vault.run("vault.retargetLinks", **{"from": "old.png", "to": "A/p.png"})
    assert vault.text("n.md") == "![[A/p.png]] [x](A/p.png)"


@pytest.mark.parametrize(
    "text",
    ["| a | b |\n| - | - |\n| {} | x |\n", "a | b\n- | -\n{} | x\n", "see {} | x\n"],
)
def test_a_kept_text_does_not_end_the_cell_of_a_table(bench, text):
    vault = bench({"A.md": text.format("[[ATP]]"), "Adenosine.md": ""})
    vault.run("vault.retargetLinks", name="ATP", to="Adenosine.md", keepText=True)
    (link,) = links_in(vault.text("A.md").encode())
    assert (link.target, link.display) == ("Adenosine", "ATP")


def test_unresolved_links_can_lead_to_a_heading(bench):
    links = "[[Step 1: go]] [[Step 1: go|x]] [[Step 1: go#A]] [y](Step%201:%20go.md)"
    vault = bench({"A.md": links, "Guide.md": "# Step 1: go\n"})
    arguments = {"name": "Step 1: go", "to": "Guide.md", "heading": "Step 1: go"}
    vault.run("vault.retargetLinks", **arguments, keepText=True)
    assert vault.text("A.md") == (
        "[[Guide#Step 1 go|Step 1: go]] [[Guide#Step 1 go|x]] [[Guide#A]] [y](Guide.md#Step%201%20go)"
    )
