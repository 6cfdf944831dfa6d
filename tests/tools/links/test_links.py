"""A rename updates or reports definitions and HTML, and the graph equals Obsidian's."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from obsidian_agent.errors import ObsidianAgentError
from obsidian_agent.vault.links.link_text import LinkStyle
from obsidian_agent.vault.links.references import MAX_PARSED

VAULT = {
    "Hub.md": "[[#Top]] [[Hub]]\n# Top\n",
    "a.md": '---\nup: "[[Hub]]"\n---\n[[hub|the hub]] and [[Missing#x]]\n![[Hub#Top]]\n`[[Hub]]`\n',
    "Sub/b.md": "[md](../Hub.md) [web](https://example.org) [gone](nowhere%20here.md)\n[[c]]\n",
    "Sub/c.md": "",
    "X/c.md": "[[../Hub]]\n",
    "board.canvas": '{"nodes": [{"id": "1", "type": "file", "file": "Hub.md"}]}',
}


def items(output):
    return [(item["path"], item["line"], item["kind"], item["text"]) for item in output["items"]]


def test_backlinks_of_every_kind_without_those_of_the_note_itself(bench):
    output = bench(VAULT).run("vault.getBacklinks", path="Hub.md")
    assert items(output) == [
        ("Sub/b.md", 1, "markdown", "md"),
        ("X/c.md", 1, "wikilink", "../Hub"),
        ("a.md", 2, "property", "Hub"),
        ("a.md", 4, "wikilink", "the hub"),
        ("a.md", 5, "embed", "Hub > Top"),
        ("board.canvas", 1, "canvas", "Hub.md"),
    ]
    assert output["count"] == 6


def test_the_file_in_the_own_folder_is_meant(bench):
    assert items(bench(VAULT).run("vault.getBacklinks", path="X/c.md")) == []
    assert items(bench(VAULT).run("vault.getBacklinks", path="Sub/c.md")) == [
        ("Sub/b.md", 2, "wikilink", "c")
    ]


def test_outgoing_and_unresolved(bench):
    vault = bench(VAULT)
    assert items(vault.run("vault.getOutgoingLinks", path="Hub.md")) == [
        ("Hub.md", 1, "wikilink", "Top"),
        ("Hub.md", 1, "wikilink", "Hub"),
    ]
    assert items(vault.run("vault.getOutgoingLinks", path="Sub/b.md")) == [
        ("Hub.md", 1, "markdown", "md"),
        ("Sub/c.md", 2, "wikilink", "c"),
    ]
    assert items(vault.run("vault.getUnresolvedLinks", path="Sub/b.md")) == [
        ("nowhere here", 1, "markdown", "gone")
    ]
    assert items(vault.run("vault.getUnresolvedLinks", path="a.md")) == [
        ("Missing", 4, "wikilink", "Missing > x")
    ]


def test_links_as_earlier_steps_left_them(bench):
    vault = bench(VAULT)
    assert vault.run("vault.getUnresolvedLinks", path="a.md")["count"] == 1
    vault.run("vault.createFile", path="New/Missing.md", content="to [[Hub]]\n")
    assert vault.run("vault.getUnresolvedLinks", path="a.md")["count"] == 0
    assert items(vault.run("vault.getBacklinks", path="New/Missing.md")) == [
        ("a.md", 4, "wikilink", "Missing > x")
    ]
    assert "New/Missing.md" in [
        item["path"] for item in vault.run("vault.getBacklinks", path="Hub.md")["items"]
    ]
    vault.run("vault.updateFile", path="a.md", mode="replace", content="no more\n")
    vault.run("vault.delete", path="Sub/c.md")
    assert items(vault.run("vault.getBacklinks", path="New/Missing.md")) == []
    assert items(vault.run("vault.getBacklinks", path="X/c.md")) == [
        ("Sub/b.md", 2, "wikilink", "c")
    ]


def test_a_missing_note_is_an_error(bench):
    assert bench(VAULT).refusal("vault.getBacklinks", path="Missing.md") == "FILE_NOT_FOUND"


LOST = {
    "a.md": "---\nby: '[[Ann Lee]]'\n---\n[[Ann Lea]] [[ann lea#Work|her]] [text](Ann%20Lea.md) [[missing]] ![[gone.png]] [[b]] `[[code]]`\n",
    "sub/b.md": "[[Missing.md]] [[Nowhere/else]]\n",
    "People/Ann Lee.md": "",
    "board.canvas": "{}",
}


def test_each_name_once_and_no_pictures(bench):
    answer = bench(LOST).run("vault.listUnresolved")
    assert [(item["name"], item["count"], item["sources"]) for item in answer["items"]] == [
        ("Ann Lea", 3, ["a.md"]),
        ("missing", 2, ["a.md", "sub/b.md"]),
        ("Nowhere/else", 1, ["sub/b.md"]),
    ]


def test_files_too_and_one_folder(bench):
    vault = bench(LOST)
    assert [
        item["name"]
        for item in vault.run("vault.listUnresolved", path="a.md", filesToo=True)["items"]
    ] == [
        "Ann Lea",
        "gone.png",
        "missing",
    ]
    assert [item["name"] for item in vault.run("vault.listUnresolved", folder="sub")["items"]] == [
        "Missing",
        "Nowhere/else",
    ]


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("ann-lee", "People/Ann Lee.md"),
        ("AnnLee", "People/Ann Lee.md"),
        ("Old/Ann Lee", None),
        ("people/Ann Lee", "People/Ann_Lee!.md"),
        ("Week 7", "week7.md"),
        ("ﬁle", "File.md"),
        ("Cafe\u0301 Notes", "Café, notes.md"),
        ("STRASSE", "Straße.md"),
        ("2026.03.14", "2026-03-14.md"),
        ("Ann Lea", None),
        ("OR", None),
        ("week1", None),
        ("v1.2", None),
        ("C", None),
        ("...", None),
    ],
)
def test_a_suggestion_is_the_same_name_spelled_otherwise(bench, name, file):
    near = ["People/Ann Lie.md", "XOR.md", "week17.md", "v12.md", "C++.md", "!!!.md"]
    files = dict.fromkeys([*near, *([file] if file else [])], "") | {"a.md": f"[[{name}]]\n"}
    items = bench(files).run("vault.suggestLinks", path="a.md")["items"]
    assert [item["path"] for item in items] == ([file] if file else [])


def test_a_folder_in_a_link_has_to_fit(bench):
    files = {"a.md": "[[Work/Ann-Lee]] [[People/Bob-Ray]]", "People/Ann Lee.md": ""}
    files["People/Bob Ray.md"] = ""
    items = bench(files).run("vault.suggestLinks")["items"]
    assert [item["path"] for item in items] == ["People/Bob Ray.md"]


def test_a_tie_is_no_suggestion(bench):
    files = {"a.md": "[[Ann-Lee]] ![[photo 1.png]]\n", "People/Ann Lee.md": "", "Photo1.PNG": b""}
    items = bench(files).run("vault.suggestLinks")["items"]
    assert [item["path"] for item in items] == ["People/Ann Lee.md", "Photo1.PNG"]
    tied = files | {"Old/AnnLee.md": "", "photo-1.png": b""}
    assert bench(tied).run("vault.suggestLinks")["items"] == []


def test_retargeting_keeps_headings_and_texts(bench):
    vault = bench(LOST)
    answer = vault.run("vault.retargetLinks", name="Ann Lea", to="People/Ann Lee.md")
    assert answer == {"files": [{"path": "a.md", "count": 3}], "total": 3}
    assert vault.text("a.md") == LOST["a.md"].replace("[[Ann Lea]]", "[[Ann Lee]]").replace(
        "[[ann lea#", "[[Ann Lee#"
    ).replace("Ann%20Lea.md", "Ann%20Lee.md")
    assert vault.run("vault.listUnresolved", path="a.md")["count"] == 1


def test_a_name_of_two_files_becomes_a_path(bench):
    vault = bench(LOST | {"Old/Ann Lee.md": ""})
    vault.run("vault.retargetLinks", path="a.md", name="missing", to="Old/Ann Lee.md")
    assert "[[Old/Ann Lee]]" in vault.text("a.md")


def test_a_lost_link_gets_the_form_of_new_links(bench):
    vault = bench({"n/a.md": "[[lost]] [x](sub/l%20o.png)\n", "n/sub/b.md": "", "n/sub/l.png": b""})
    vault.run_context = replace(vault.run_context, link_style=LinkStyle("relative"))
    vault.run("vault.retargetLinks", name="lost", to="n/sub/b.md")
    vault.run("vault.retargetLinks", name="sub/l o.png", to="n/sub/l.png")
    assert vault.text("n/a.md") == "[[sub/b]] [x](sub/l.png)\n"


def test_nothing_to_retarget_is_a_warning(bench):
    vault = bench(LOST)
    assert vault.run("vault.retargetLinks", path="a.md", name="b", to="sub/b.md")["total"] == 0
    assert vault.warnings == ["TEXT_NOT_FOUND"]
    assert vault.changes() == []


def test_a_missing_target_is_an_error(bench):
    with pytest.raises(ObsidianAgentError):
        bench(LOST).run("vault.retargetLinks", name="missing", to="No.md")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[ref]: Old.md", "[ref]: A/New%20(1).md"),
        (
            "See [Old].\n\n[Old]: <Old.md#H> 'Old.md'\n",
            "See [Old].\n\n[Old]: <A/New (1).md#H> 'Old.md'\n",
        ),
        (
            "[t][r] `[r]: Old.md`\r\n\r\n> [r]: ./Old.md\r\n",
            "[t][r] `[r]: Old.md`\r\n\r\n> [r]: ./A/New%20(1).md\r\n",
        ),
        ('<a href="Old.md#H">Old</a>', '<a href="A/New%20(1).md#H">Old</a>'),
        ("<a href=Old.md>Old</a> [[Old]]", "<a href=A/New%20(1).md>Old</a> [[New (1)]]"),
        ("<div>\n<a href='old.md'>\n</div>\n", "<div>\n<a href='A/New%20(1).md'>\n</div>\n"),
        (
            "```\n[ref]: Old.md\n```\n<!-- <a href='Old.md'> -->",
            "```\n[ref]: Old.md\n```\n<!-- <a href='Old.md'> -->",
        ),
        ("text\n[no]: Old.md", "text\n[no]: Old.md"),
    ],
)
def test_a_reference_follows_a_rename(bench, text, expected):
    vault = bench({"Old.md": "", "n.md": text})
    before = vault.run("vault.getBacklinks", path="Old.md")["items"]
    output = vault.run("vault.rename", **{"from": "Old.md", "to": "A/New (1).md"})
    assert vault.text("n.md") == expected
    assert output["linksUpdated"] == expected.count("New")
    assert vault.warnings == []
    assert len(before) == text.count("[[Old]]"), "a reference is no link of the graph"


def test_a_reference_of_a_note_that_moves_still_leads_there(bench):
    vault = bench(
        {
            "A/n.md": "[r]: ../p.png\n\n<img src='../p.png'> <a href='./b.md'>",
            "p.png": b"\x89",
            "A/b.md": "[x]: n.md",
        }
    )
    vault.run("vault.rename", **{"from": "A/n.md", "to": "C/D/m.md"})
    assert (
        vault.text("C/D/m.md")
        == "[r]: ../../p.png\n\n<img src='../../p.png'> <a href='../../A/b.md'>"
    )
    assert vault.text("A/b.md") == "[x]: ../C/D/m.md"


def test_a_relative_path_stays_one_also_where_obsidian_would_find_the_name(bench):
    vault = bench(
        {
            "Old.md": "",
            "n.md": "[r]: Old.md\n\n<a href='./Old.md'> [[Old]] [t](Old.md)\n",
            "B/m.md": "[r]: Old.md",
        }
    )
    vault.run("vault.rename", **{"from": "Old.md", "to": "A/Old.md"})
    assert vault.text("n.md") == "[r]: A/Old.md\n\n<a href='./A/Old.md'> [[Old]] [t](Old.md)\n"
    assert vault.text("B/m.md") == "[r]: Old.md"
    vault.run("vault.rename", **{"from": "n.md", "to": "B/C/n.md"})
    assert vault.text("B/C/n.md").startswith(
        "[r]: ../../A/Old.md\n\n<a href='../../A/Old.md'> [[Old]]"
    )


def test_a_folder_that_moves_takes_its_references_along(bench):
    vault = bench(
        {"A/n.md": "[r]: b.md\n\n[s]: /A/b.md", "A/b.md": "", "x.md": "<a href='A/b.md'>"}
    )
    vault.run("vault.rename", **{"from": "A", "to": "B & C"})
    assert vault.text("x.md") == "<a href='B%20&amp;%20C/b.md'>"
    assert vault.text("B & C/n.md") == "[r]: b.md\n\n[s]: /B%20&%20C/b.md"


def test_later_steps_see_new_references(bench):
    vault = bench({"Old.md": "", "n.md": "x\n"})
    vault.run("vault.updateFile", path="n.md", mode="append", content="\n[r]: Old.md\n")
    vault.run("vault.rename", **{"from": "Old.md", "to": "New.md"})
    vault.run("vault.rename", **{"from": "New.md", "to": "Newer.md"})
    assert vault.text("n.md") == "x\n\n[r]: Newer.md\n"


def test_what_is_left_or_lost_is_told(bench):
    files = {"Old.md": "", "n.md": "[r]: Old.md", "h.md": "<a href='Old.md'>"}
    vault = bench(files)
    vault.run("vault.rename", **{"from": "Old.md", "to": "New.md"}, updateLinks=False)
    assert vault.warnings == ["LINKS_UNRESOLVED"]
    vault = bench(files)
    vault.run("vault.delete", path="Old.md")
    (problem,) = vault.last.warnings
    assert "h.md" in problem.message
    assert "n.md" in problem.message


def test_a_note_too_long_for_it_is_told_with_its_lines(bench):
    vault = bench(
        {
            "Old.md": "",
            "n.md": "x" * MAX_PARSED + "\n\n[r]: Old.md\n",
            "m.md": "x" * MAX_PARSED + "\n\n[r]: Other.md\n",
        }
    )
    output = vault.run("vault.rename", **{"from": "Old.md", "to": "New.md"})
    (problem,) = vault.last.warnings
    assert (problem.code, problem.path, output["linksUpdated"]) == (
        "REFERENCE_NOT_UPDATED",
        "n.md",
        0,
    )
    assert "line 3" in problem.message


# --- links to headings and blocks ---

ANCHORED = {
    "Deep/a.md": (
        "# A\n\nSee [[#Log]] and [[#^one]].\n\n## Log\n\n[pic](x.png) [[x.png]] [[#A]] [[#Log]] [[Log note]] ![[../Other/b]]\nLine ^one\n\n"
        "- [ ] [task](x.png) ^two\n"
    ),
    "Deep/x.png": b"png",
    "Deep/Log note.md": "",
    "Other/b.md": "[[a#Log]] [[a#A]] [[a#^one|block]] [l](../Deep/a.md#Log)\n",
    "Other/Log note.md": "",
    "Other/x.png": b"other",
    "c.md": "[[a#^two]]\n",
}


def test_a_section_takes_its_links_along(bench):
    vault = bench(ANCHORED)
    text = vault.run("vault.takeSection", path="Deep/a.md", heading="Log", into="Other/New.md")[
        "text"
    ]
    assert (
        text.split("\n")[2]
        == "[pic](Deep/x.png) [[Deep/x.png]] [[a#A]] [[#Log]] [[Deep/Log note]] ![[../Other/b]]"
    )
    assert vault.text("Deep/a.md") == "# A\n\nSee [[New#Log]] and [[New#^one]].\n\n"
    assert vault.text("Other/b.md") == "[[New#Log]] [[a#A]] [[New#^one|block]] [l](New.md#Log)\n"
    assert vault.text("c.md") == "[[New#^two]]\n"


def test_headings_over_a_section_do_not_go_along(bench):
    note = (
        "# A\n\n## Log\n\n[[#A#Log]] [[#Log#More]] [[#A]]\n\n### More\n\n## Rest\n\n[[#A#Rest]]\n"
    )
    vault = bench(
        {
            "a.md": note,
            "b.md": "",
            "l.md": "[[a#A#Log]] [[a#A#Log#More|m]] [m](a.md#A#Log) [[a#Log]] [[a#A#Rest]]\n",
        }
    )
    text = vault.run("vault.takeSection", path="a.md", heading="Log", into="b.md")["text"]
    assert text.split("\n")[2] == "[[#Log]] [[#Log#More]] [[a#A]]"
    assert vault.text("l.md") == "[[b#Log]] [[b#Log#More|m]] [m](b.md#Log) [[b#Log]] [[a#A#Rest]]\n"
    assert vault.text("a.md").endswith("[[#A#Rest]]\n")


def test_links_to_a_section_that_becomes_a_note_lead_to_the_note(bench):
    vault = bench(ANCHORED)
    vault.run(
        "vault.takeSection", path="Deep/a.md", heading="Log", into="Other/New.md", asNote=True
    )
    assert vault.text("Other/b.md") == "[[New]] [[a#A]] [[New#^one|block]] [l](New.md)\n"


def test_without_a_goal_nothing_is_written_anew(bench):
    vault = bench(ANCHORED)
    assert "[pic](x.png)" in vault.run("vault.takeSection", path="Deep/a.md", heading="Log")["text"]
    assert vault.changes() == [("modify", "Deep/a.md")]


def test_a_copied_body_leaves_other_notes_alone(bench):
    vault = bench(ANCHORED)
    body = vault.run("util.noteBody", path="Deep/a.md", into="c.md")["body"]
    assert (
        "[pic](x.png) [[x.png]] [[#A]] [[#Log]] [[Log note]] ![[Other/b]]" in body
    )  # the nearest names from there
    assert vault.changes() == []


def test_tasks_and_lines_take_their_links_along(bench):
    vault = bench(ANCHORED)
    assert (
        vault.run("vault.takeTasks", path="Deep/a.md", into="c.md")["text"]
        == "- [ ] [task](x.png) ^two"
    )
    assert vault.text("c.md") == "[[c#^two]]\n"
    vault = bench(ANCHORED)
    assert (
        vault.run("vault.takeLines", path="Deep/a.md", text="task", into="c.md")["text"]
        == "- [ ] [task](x.png) ^two"
    )


# --- addresses of Obsidian ---

OPEN = "obsidian://open?vault=vault0&file="


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (f"[x]({OPEN}Old)", f"[x]({OPEN}New%20one)"),
        ("obsidian://open?file=Old.md", "obsidian://open?file=New%20one.md"),
        (f"<{OPEN}Old%23Head&append>", f"<{OPEN}New%20one%23Head&append>"),
        (f"<{OPEN}Old#Head>", f"<{OPEN}New%20one#Head>"),
        (
            "<a href='obsidian://open?vault=vault0&amp;file=Old'>x</a>",
            "<a href='obsidian://open?vault=vault0&amp;file=New%20one'>x</a>",
        ),
        (f"---\nuri: {OPEN}Old\n---\n", f"---\nuri: {OPEN}New%20one\n---\n"),
        (f"[r]: {OPEN}Old\n", f"[r]: {OPEN}New%20one\n"),
        ("obsidian://adv-uri?filepath=Old.md&line=3, x", "obsidian://adv-uri?filepath=New%20one.md&line=3, x"),
        (f"See {OPEN}Old.", f"See {OPEN}New%20one."),
        ("OBSIDIAN://OPEN?FILE=old", "OBSIDIAN://OPEN?FILE=New%20one"),
        (f"| a |\n|---|\n| {OPEN}Old |\n", f"| a |\n|---|\n| {OPEN}New%20one |\n"),
        (f"ü [[Old]] `code` {OPEN}Old", f"ü [[New one]] `code` {OPEN}New%20one"),
    ],
)  # fmt: skip
def test_an_address_of_a_renamed_note_follows(bench, before, after):
    vault = bench({"Old.md": "# Head", "Folder/n.md": before})
    vault.run("vault.rename", **{"from": "Old.md", "to": "New one.md"})
    assert vault.text("Folder/n.md") == after
    assert vault.warnings == []


@pytest.mark.parametrize(
    "text",
    [
        "obsidian://open?vault=Other&file=Old",
        f"`{OPEN}Old`",
        f"```\n{OPEN}Old\n```",
        f"{OPEN}Older",
        "obsidian://search?query=Old",
        "obsidian://open?path=/home/Old.md",
        f"{OPEN}%ff%00Old",
    ],
)
def test_an_address_of_something_else_stays(bench, text):
    vault = bench({"Old.md": "", "Folder/n.md": text})
    vault.run("vault.rename", **{"from": "Old.md", "to": "New one.md"})
    assert vault.text("Folder/n.md") == text


def test_an_address_with_a_folder_follows_a_move_and_a_name_alone_stays(bench):
    vault = bench({"A/Old.md": "", "n.md": f"{OPEN}A%2FOld {OPEN}A/Old {OPEN}Old"})
    vault.run("vault.rename", **{"from": "A", "to": "B & (c)"})
    encoded = "B%20%26%20%28c%29"
    assert vault.text("n.md") == f"{OPEN}{encoded}%2FOld {OPEN}{encoded}/Old {OPEN}Old"


def test_an_address_is_looked_up_from_the_root(bench):
    """A note in the folder of the address is not nearer to it."""
    vault = bench({"Old.md": "", "Folder/Old.md": "", "Folder/n.md": f"{OPEN}Old [[Folder/Old]]"})
    vault.run("vault.rename", **{"from": "Folder/Old.md", "to": "Folder/New.md"})
    assert vault.text("Folder/n.md") == f"{OPEN}Old [[Folder/New]]"


def test_a_deletion_counts_addresses(bench):
    vault = bench({"Old.md": "", "n.md": f"{OPEN}Old"})
    vault.run("vault.delete", path="Old.md")
    assert vault.warnings == ["LINKS_UNRESOLVED"]


def test_an_address_in_a_note_too_long_to_be_read_is_mentioned(bench):
    vault = bench({"Old.md": "", "n.md": "x" * MAX_PARSED + f"\n{OPEN}Old\n"})
    vault.run("vault.rename", **{"from": "Old.md", "to": "New.md"})
    assert vault.warnings == ["REFERENCE_NOT_UPDATED"]
