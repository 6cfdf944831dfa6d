from __future__ import annotations

import json

import pytest
from msgspec.structs import replace

from obsidian_agent.errors import ObsidianAgentError
from obsidian_agent.tools.registry import TOOLS
from obsidian_agent.vault.links.link_text import LinkStyle

# --- vault.rename ---


def test_rename_a_file(bench):
    vault = bench({"a.md": "text"})
    assert vault.run("vault.rename", **{"from": "a.md", "to": "New/b.md"}) == {
        "from": "a.md",
        "to": "New/b.md",
        "path": "New/b.md",
        "linksUpdated": 0,
    }
    assert vault.changes() == [("mkdir", "New"), ("rename", "a.md")]
    assert vault.text("New/b.md") == "text"


def test_rename_a_folder(bench):
    vault = bench({"Old/x/a.md": "text"})
    vault.run("vault.rename", **{"from": "Old/", "to": "New.things/"})
    assert vault.changes() == [("rename", "Old")]
    assert vault.text("New.things/x/a.md") == "text"


@pytest.mark.parametrize(("old", "new"), [("note.md", "Note.md"), ("dir", "DIR")])
def test_rename_of_case_alone(bench, old, new):
    vault = bench({"note.md": "1", "dir/a.md": "2"})
    vault.run("vault.rename", **{"from": old, "to": new})
    assert (vault.exists(old), vault.exists(new)) == (False, True)


def test_rename_to_its_own_path_changes_nothing(bench):
    vault = bench({"a.md": ""})
    vault.run("vault.rename", **{"from": "a.md", "to": "./a.md"})
    assert vault.changes() == []


def test_rename_over_a_file_needs_overwrite(bench):
    vault = bench({"a.md": "a", "b.md": "b"})
    assert vault.refusal("vault.rename", **{"from": "a.md", "to": "B.md"}) == "FILE_EXISTS"
    vault.run("vault.rename", **{"from": "a.md", "to": "b.md", "overwrite": True})
    assert vault.text("b.md") == "a"
    assert vault.changes() == [("rename", "a.md"), ("delete", "b.md")]


@pytest.mark.parametrize(
    ("old", "new"), [("D/a.md", "way/a.md"), ("one.md", "D/a.md"), ("D/a.md", "one.md")]
)
def test_a_file_is_not_in_its_own_way(bench, old, new):
    vault = bench({"D/a.md": "a"})
    (vault.folder / "way").symlink_to("D")
    (vault.folder / "one.md").symlink_to("D/a.md")
    assert (
        vault.refusal("vault.rename", **{"from": old, "to": new, "overwrite": True})
        == "FILE_EXISTS"
    )
    assert vault.refusal("vault.rename", **{"from": "D", "to": "way/in"}) == "ARGUMENT_INVALID"
    assert vault.changes() == []


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ("no.md", "b.md", "FILE_NOT_FOUND"),
        ("a.md", "D", "FILE_EXISTS"),
        ("D", "D/sub", "ARGUMENT_INVALID"),
        ("D", "a.md", "FILE_EXISTS"),
        ("D", "E", "FILE_EXISTS"),
        ("a.md", "../a.md", "PATH_OUTSIDE_VAULT"),
        ("a.md", ".trash/a.md", "PATH_NOT_ALLOWED"),
        ("a.md", "a.exe", "PATH_NOT_ALLOWED"),
        ("a.md", "b/", "PATH_INVALID"),
    ],
)
def test_rename_refuses(bench, old, new, code):
    vault = bench({"a.md": "", "D/x.md": "", "E/": ""})
    assert vault.refusal("vault.rename", **{"from": old, "to": new, "overwrite": True}) == code
    assert vault.changes() == []


def test_a_folder_to_move_into_is_explained(bench):
    with pytest.raises(ObsidianAgentError) as caught:
        bench({"a.md": "", "D/x.md": ""}).run("vault.rename", **{"from": "a.md", "to": "D"})
    assert "'D/a.md'" in caught.value.problem().message


# --- vault.delete ---


def test_delete_moves_to_the_trash_under_a_free_name(bench):
    vault = bench({"A/x.md": "1", "B/x.md": "2"})
    assert vault.run("vault.delete", path="A/x.md") == {
        "path": "A/x.md",
        "deleted": True,
        "trashPath": ".trash/x.md",
    }
    assert vault.run("vault.delete", path="B/x.md")["trashPath"] == ".trash/x 2.md"
    assert not vault.exists("A/x.md")


def test_delete_of_a_folder(bench):
    vault = bench({"Full/x.md": "1", "Empty/": ""})
    assert vault.run("vault.delete", path="Empty")["deleted"] is True
    assert vault.refusal("vault.delete", path="Full") == "FOLDER_NOT_EMPTY"
    vault.run("vault.delete", path="Full", recursive=True)
    assert not vault.exists("Full/x.md")


@pytest.mark.parametrize(
    ("path", "code"),
    [("no.md", "FILE_NOT_FOUND"), (".", "PATH_INVALID"), (".obsidian", "PATH_NOT_ALLOWED")],
)
def test_delete_refuses(bench, path, code):
    assert (
        bench({".obsidian/app.json": ""}).refusal("vault.delete", path=path, recursive=True) == code
    )


def test_delete_is_marked_and_sees_earlier_steps(bench):
    vault = bench()
    vault.run("vault.createFile", path="new.md", content="")
    vault.run("vault.delete", path="new.md")
    assert TOOLS["vault.delete"].deletes
    assert vault.changes() == []


def rename(vault, old, new, **more):
    return vault.run("vault.rename", **{"from": old, "to": new, **more})


# --- one link, each way of writing it ---


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("[[Old]]", "[[New]]"),
        ("[[old]]", "[[New]]"),
        ("[[Old.md]]", "[[New.md]]"),
        ("[[Old#Head]] [[Old#^b1]]", "[[New#Head]] [[New#^b1]]"),
        ("[[Old|text]]", "[[New|text]]"),
        ("[[Old|Old]]", "[[New|New]]"),
        ("[[Old|Old.md]]", "[[New|New.md]]"),
        ("[[Old#Head|Old]]", "[[New#Head|New]]"),
        ("[[ Old | Old ]]", "[[ New | New ]]"),
        ("[[Old|old]]", "[[New|old]]"),
        ("![[Old]]", "![[New]]"),
        ("![[Old|Old]]", "![[New|Old]]"),
        ("[[/F/Old]]", "[[/F/New]]"),
        ("[[F/Old]] [[./F/Old]]", "[[F/New]] [[./F/New]]"),
        ("[Old](Old.md)", "[New](New.md)"),
        ("[text](F/Old.md 'Old')", "[text](F/New.md 'Old')"),
        ("[text](./F/Old.md#Head)", "[text](./F/New.md#Head)"),
        ("[text](<F/Old.md>)", "[text](<F/New.md>)"),
        ("![Old](Old.md)", "![Old](New.md)"),
        ("[text](Old)", "[text](New)"),
        ("| a |\n| - |\n| [[Old\\|Old]] |", "| a |\n| - |\n| [[New\\|New]] |"),
        (
            "---\nup: \"[[Old]]\"\nl:\n  - '[[F/Old|Old]]'\n---\n",
            "---\nup: \"[[New]]\"\nl:\n  - '[[F/New|New]]'\n---\n",
        ),
        ("`[[Old]]` \\[[Old]] $[[Old]]$\n```\n[[Old]]\n```\n%%\n[[Old]]\n%%", None),
        ("[[Older]] [[Old stuff]] [[G/Old]] [x](https://x.org/Old.md) [[missing|Old]]", None),
    ],
)
def test_a_link_keeps_its_way_of_writing(bench, old, new):
    vault = bench({"F/Old.md": "", "from.md": old})
    done = rename(vault, "F/Old.md", "F/New.md")
    assert vault.text("from.md") == (new or old)
    assert (done["linksUpdated"] > 0) == (new is not None)
    assert vault.warnings == []


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("a b.md", "[x](Old.md)", "[x](a%20b.md)"),
        ("a b.md", "[x](<Old.md>)", "[x](<a b.md>)"),
        ("50% off.md", "[x](Old.md) [[Old]]", "[x](50%25%20off.md) [[50% off]]"),
        ("a (b).md", "[x](Old.md)", "[x](a%20(b).md)"),
        ("a (b.md", "[x](Old.md)", "[x](a%20%28b.md)"),
        ("Größe.md", "[x](Old.md)", "[x](Größe.md)"),
        ("Größe.md", "[x](F/%4Fld.md) [x](%46/Old.md)", "[x](F/Größe.md) [x](F/Größe.md)"),
        (
            "Dad's.md",
            "---\na: '[[Old]]'\nb: \"[[Old]]\"\n---\n",
            "---\na: '[[Dad''s]]'\nb: \"[[Dad's]]\"\n---\n",
        ),
        ("a`b.md", "[[Old]] `", "[[a`b]] `"),
    ],
)
def test_names_are_escaped_as_the_link_needs_it(bench, name, old, new):
    vault = bench({"F/Old.md": "", "from.md": old})
    rename(vault, "F/Old.md", f"F/{name}")
    assert vault.text("from.md") == new


def test_canvas_cards_and_their_text_follow(bench):
    canvas = (
        '{"nodes":[\n\t{"id":"1","type":"file","file":"F\\/Old.md","subpath":"#H"},\n'
        '\t{"id":"2","type":"text","text":"\\u00e4 \\"[[Old|Old]]\\"\\n[[Other]]"},\n\t{"id":"3","type":"text","text":"Old"}\n],"edges":[]}'
    )
    vault = bench({"F/Old.md": "", "Other.md": "", "board.canvas": canvas})
    assert rename(vault, "F/Old.md", 'Néw "x".md'.replace('"', "'"))["linksUpdated"] == 2
    changed = vault.text("board.canvas")
    assert changed == canvas.replace("F\\/Old.md", "Néw 'x'.md").replace(
        "[[Old|Old]]", "[[Néw 'x'|Néw 'x']]"
    )
    json.loads(changed)


def test_a_card_has_the_exact_path_even_where_a_link_would_do_without(bench):
    vault = bench(
        {
            "note.md": "",
            "from.md": "[[note]]",
            "board.canvas": '{"nodes":[{"id":"1","type":"file","file":"note.md"}]}',
        }
    )
    assert rename(vault, "note.md", "F/Note.md")["linksUpdated"] == 1
    assert '"F/Note.md"' in vault.text("board.canvas")
    assert vault.text("from.md") == "[[note]]"


# --- where things are ---


@pytest.mark.parametrize(
    ("files", "old", "new", "updated", "after"),
    [
        pytest.param({"Ärger.md": "", "from.md": "[x](%C3%84rger.md)"}, "Ärger.md", "Öl (1).md", 1, {"from.md": "[x](%C3%96l%20(1).md)"}, id="letters stay encoded where they were"),
        pytest.param(
            {"Old.md": "", "from.md": b"\xef\xbb\xbf---\r\na: 1 \t# [[Old]]\r\n---\r\n\r\n [[Old]] \t\r\n\x0c[[Old]]"}, "Old.md", "New.md", 2,
            {"from.md": "\ufeff---\r\na: 1 \t# [[Old]]\r\n---\r\n\r\n [[New]] \t\r\n\x0c[[New]]"}, id="bytes around the links stay",
        ),
        pytest.param(
            {"A/x.md": "", "from.md": "[[x]] [[A/x]] [x](A/x.md) [[A/x.md#H]]"}, "A/x.md", "B/C/x.md", 3,
            {"from.md": "[[x]] [[B/C/x]] [x](B/C/x.md) [[B/C/x.md#H]]"}, id="bare names stay and paths change",
        ),
        pytest.param({"A/x.md": "", "B/y.md": "", "from.md": "[[x]]"}, "A/x.md", "A/y.md", 1, {"from.md": "[[A/y]]"}, id="a name that is taken elsewhere needs its path"),
        pytest.param(
            {"a.md": "", "Sub/b.md": "", "from.md": "[[b]] [[Sub/b]] [b](b.md)", "Sub/near.md": "[[b]]"}, "a.md", "b.md", 3,
            {"from.md": "[[Sub/b]] [[Sub/b]] [b](Sub/b.md)", "Sub/near.md": "[[Sub/b]]"}, id="a new name takes no link from another file",
        ),
        pytest.param({"x.md": "", "Sub/x.md": "", "from.md": "[[x]] [[Sub/x]]"}, "x.md", "new.md", 1, {"from.md": "[[new]] [[Sub/x]]"}, id="a name set free gives no link to another file"),
        pytest.param(
            {
                "A/n.md": "[[./x]] [[../top]] [[x]] [[n#H]] [[#H]] [y](y.md) ![p](img/p.png)",
                **dict.fromkeys(["A/x.md", "0/x.md", "A/y.md", "top.md", "A/img/p.png"], ""),
            },
            "A/n.md", "C/D/m.md", 4,
            {"C/D/m.md": "[[../../A/x]] [[../../top]] [[A/x]] [[m#H]] [[#H]] [y](y.md) ![p](img/p.png)"}, id="links in a note that moves",
        ),
        pytest.param(
            {"A/x.md": "", "A/from.md": "[[./x]] [](./x.md)", "B/from.md": "[[../A/x]] [](../A/x.md)"}, "A/x.md", "B/y.md", 4,
            {"A/from.md": "[[../B/y]] [](../B/y.md)", "B/from.md": "[[y]] [](y.md)"}, id="relative links stay relative",
        ),
        pytest.param(
            {"img/p.png": b"\x89", "from.md": "![[p.png|100]] ![p](img/p.png) [[p.png|p]] [[P.PNG|p.png]]"}, "img/p.png", "img/q r.png", 4,
            {"from.md": "![[q r.png|100]] ![p](img/q%20r.png) [[q r.png|q r]] [[q r.png|q r.png]]"}, id="an attachment",
        ),
        pytest.param({"note.md": "", "from.md": "[[note]] [[Note|note]]"}, "note.md", "Note.md", 0, {"from.md": "[[note]] [[Note|note]]"}, id="case alone changes no link"),
        pytest.param(
            {"A/a.md": "[[b]]", "B/b.md": "", "from.md": "[[a]] [[b]] [[B/b]]"}, "A/a.md", "B/b.md", 1,
            {"from.md": "[[b]] [[b]] [[B/b]]", "B/b.md": "[[b]]"}, id="a file that is replaced passes its links on",
        ),
    ],
)  # fmt: skip
def test_links_follow_what_moves(bench, files, old, new, updated, after):
    vault = bench(files)
    assert rename(vault, old, new, overwrite=new in files)["linksUpdated"] == updated
    assert {name: vault.text(name) for name in after} == after


def test_dangling_links_are_left_alone(bench):
    vault = bench({"a.md": "", "from.md": "[[b]] [[c|a]]"})
    assert rename(vault, "a.md", "b.md")["linksUpdated"] == 0
    assert vault.changes() == [("rename", "a.md")]


def test_a_link_does_not_come_to_depend_on_a_tie(bench):
    vault = bench({"A/x.md": "", "B/x.md": "", "A/n.md": "[[x]]", "tie.md": "[[x]]"})
    rename(vault, "A/n.md", "C/n.md")
    rename(vault, "tie.md", "C/tie.md")
    assert (vault.text("C/n.md"), vault.text("C/tie.md")) == ("[[A/x]]", "[[x]]")


def test_a_folder_in_one_pass(bench):
    vault = bench(
        {
            "Old/a.md": "[[./b]] [[Old/b]] [[b]] [[../out]] ![[p.png]]",
            "Old/sub/b.md": "[a](../a.md)",
            "Old/b.md": "",
            "Old/p.png": b"\x89",
            "out.md": "[[Old/a]] [[a]] ![[Old/p.png]] [[Old/sub/b|b]]",
            "board.canvas": '{"nodes":[{"id":"1","type":"file","file":"Old/a.md"},{"id":"2","type":"file","file":"Old/p.png"}]}',
        }
    )
    assert rename(vault, "Old", "New/Place")["linksUpdated"] == 7
    assert vault.text("New/Place/a.md") == "[[./b]] [[New/Place/b]] [[b]] [[../../out]] ![[p.png]]"
    assert vault.text("New/Place/sub/b.md") == "[a](../a.md)"
    assert (
        vault.text("out.md") == "[[New/Place/a]] [[a]] ![[New/Place/p.png]] [[New/Place/sub/b|b]]"
    )
    assert vault.text("board.canvas").count("New/Place/") == 2
    assert vault.changes() == [
        ("mkdir", "New"),
        ("rename", "Old"),
        ("rename", "Old/a.md"),
        ("modify", "board.canvas"),
        ("modify", "out.md"),
    ]


def test_later_steps_see_the_links_of_earlier_ones(bench):
    vault = bench({"a.md": "[[b]]", "b.md": "[[a]]", "from.md": "[[a]] [[b]]"})
    for number in range(3):
        rename(vault, f"a{number or ''}.md".replace("a0", "a"), f"a{number + 1}.md")
        rename(vault, f"b{number or ''}.md".replace("b0", "b"), f"b{number + 1}.md")
    assert [vault.text(name) for name in ("a3.md", "b3.md", "from.md")] == [
        "[[b3]]",
        "[[a3]]",
        "[[a3]] [[b3]]",
    ]
    vault.run("vault.createFile", path="new.md", content="[[a3|a3]]")
    assert rename(vault, "a3.md", "end.md")["linksUpdated"] == 3
    assert vault.text("new.md") == "[[end|end]]"
    assert vault.changes() == [
        ("rename", "a.md"),
        ("rename", "b.md"),
        ("modify", "from.md"),
        ("create", "new.md"),
    ]


# --- the vault's settings ---


@pytest.mark.parametrize(
    ("format_", "old", "new"),
    [
        ("shortest", "[[x]]", "[[B/y]]"),
        ("relative", "[[x]]", "[[../B/y]]"),
        ("absolute", "[[x]]", "[[B/y]]"),
        ("relative", "[[A/x]]", "[[B/y]]"),
        ("relative", "[](x.md)", "[](../B/y.md)"),
    ],
)
def test_the_setting_decides_where_the_form_of_a_link_does_not(bench, format_, old, new):
    vault = bench({"A/x.md": "", "C/y.md": "", "A/from.md": old})
    vault.run_context = replace(vault.run_context, link_style=LinkStyle(format_))
    rename(vault, "A/x.md", "B/y.md")
    assert vault.text("A/from.md") == new


def test_in_the_root_a_bare_name_is_a_path_where_paths_are_wanted(bench):
    vault = bench({"x.md": "", "from.md": "[[x]]"})
    vault.run_context = replace(vault.run_context, link_style=LinkStyle("absolute"))
    rename(vault, "x.md", "B/y.md")
    assert vault.text("from.md") == "[[B/y]]"


# --- what cannot be done ---


def test_a_name_that_would_hide_a_link_is_refused(bench):
    vault = bench({"Old.md": "", "from.md": "costs $5 [[Old]]"})
    with pytest.raises(ObsidianAgentError) as caught:
        rename(vault, "Old.md", "a$b.md")
    assert (caught.value.code, caught.value.path) == ("ARGUMENT_INVALID", "from.md")
    assert "line 1" in caught.value.message
    assert vault.changes() == []


def test_a_folder_whose_name_links_cannot_hold(bench):
    vault = bench({"x.md": "", "C# notes/y.md": "", "from.md": "[[x]]", "path.md": "[[./x]]"})
    rename(vault, "x.md", "C# notes/z.md")
    assert vault.text("from.md") == "[[z]]"
    assert vault.text("path.md") == "[[z]]"
    rename(vault, "C# notes/y.md", "y.md")
    with pytest.raises(ObsidianAgentError) as caught:
        rename(vault, "C# notes/z.md", "C# notes/y.md")
    assert caught.value.code == "ARGUMENT_INVALID"


def test_files_that_differ_in_case_alone_cannot_be_told_apart(bench):
    vault = bench({"A/x.md": "", "a/x.md": "", "a/from.md": "[[x]]"})
    rename(vault, "a/from.md", "B/from.md")
    assert vault.warnings == ["LINK_AMBIGUOUS"]
    assert vault.text("B/from.md") == "[[x]]"


def test_a_note_that_is_not_utf8_is_left_alone(bench):
    vault = bench(
        {
            "Old.md": "",
            "bad.md": b"\xff [[Old]]",
            "other.md": b"\xff [[nothing]]",
            "good.md": "[[Old]]",
        }
    )
    assert rename(vault, "Old.md", "New.md")["linksUpdated"] == 1
    assert vault.warnings == ["NOT_TEXT"]
    assert vault.last.warnings[0].path == "bad.md"


def test_instructions_of_other_agents_are_not_written(bench):
    vault = bench({"Old.md": "", "CLAUDE.md": "[[Old]]", "sub/Agents.md": "[[Old]]"})
    rename(vault, "Old.md", "New.md")
    assert vault.warnings == ["PATH_NOT_ALLOWED", "PATH_NOT_ALLOWED"]
    assert vault.text("CLAUDE.md") == "[[Old]]"
    assert vault.text("sub/Agents.md") == "[[Old]]"


# --- warnings ---


def test_without_updates_a_warning_says_what_breaks(bench):
    vault = bench(
        {"a.md": "[[a]]", "Sub/b.md": "", "x.md": "[[a]]", "y.md": "[[a]] [[b]]", "z.md": "[[b]]"}
    )
    assert rename(vault, "a.md", "b.md", updateLinks=False)["linksUpdated"] == 0
    assert [(problem.code, problem.message) for problem in vault.last.warnings] == [
        ("LINKS_UNRESOLVED", "Links in 3 files (b.md, x.md, y.md) will lead nowhere."),
        ("LINKS_REDIRECTED", "Links in 2 files (y.md, z.md) will lead to another file."),
    ]
    assert vault.changes() == [("rename", "a.md")]


def test_delete_warns_of_links_that_will_dangle(bench):
    files = {f"{number:02}.md": "[[Folder/x]]" for number in range(12)}
    vault = bench(
        {
            **files,
            "Folder/x.md": "[[y]]",
            "Folder/y.md": "[[x]]",
            "Folder/z.md": "",
            "other.md": "[[z]]",
            "Long folder/z.md": "",
        }
    )
    vault.run("vault.delete", path="Folder", recursive=True)
    lost, elsewhere = vault.last.warnings
    assert (lost.code, lost.path) == ("LINKS_UNRESOLVED", "Folder")
    assert lost.message.startswith("Links in 12 files (00.md, ")
    assert lost.message.endswith(" and 2 more) will lead nowhere.")
    assert (elsewhere.code, elsewhere.message) == (
        "LINKS_REDIRECTED",
        "Links in other.md will lead to another file.",
    )


def test_delete_of_what_nobody_links_to_warns_of_nothing(bench):
    vault = bench({"a.md": "[[b]]", "b.md": ""})
    vault.run("vault.delete", path="a.md")
    assert vault.warnings == []


def test_a_new_file_that_catches_links_is_warned_of(bench):
    vault = bench({"Sub/x.md": "", "from.md": "[[x]]", "path.md": "[[Sub/x]]"})
    vault.run("vault.createFile", path="y.md", content="[[x]]")
    assert vault.warnings == []
    vault.run("vault.createFile", path="x.md", content="")
    assert [(problem.code, problem.message) for problem in vault.last.warnings] == [
        ("LINKS_REDIRECTED", "Links in 2 files (from.md, y.md) will lead to another file.")
    ]
    assert vault.text("from.md") == "[[x]]"


def test_a_new_file_that_catches_no_link_is_not_warned_of(bench):
    vault = bench({"Sub/x.md": "", "from.md": "[[Sub/x]]", "Sub/near.md": "[[x]]"})
    vault.run("vault.writeFile", path="Other/x.md", content="")
    vault.run("vault.createFile", path="Third/x.md", content="")
    assert vault.warnings == []


@pytest.mark.parametrize(
    ("tool", "args"),
    [
        ("vault.writeFile", {}),
        ("vault.updateFile", {"mode": "append", "create": True}),
        ("vault.createFile", {"onConflict": "suffix"}),
    ],
)
def test_every_tool_that_makes_a_file_warns(bench, tool, args):
    vault = bench({"Sub/x.md": "", "from.md": "[[x]]"})
    vault.run(tool, path="x.md", content="", **args)
    assert vault.warnings == ["LINKS_REDIRECTED"]
    vault.run("vault.writeFile", path="x.md", content="more")
    assert vault.warnings == []


# --- bases ---

BASES = {
    "F/Books.md": "",
    "by link.base": 'filters:\n  and:\n    - categories.contains(link("Books"))\n',
    "Views/by path.base": "filters: 'file.hasLink(link(\"F/Books.md\"))'\n",
    "by folder.base": 'filters: file.inFolder("F")\n',
    "other.base": 'filters: file.inFolder("Fine") && link("Booking")\n# link("Books")\n',
}


@pytest.mark.parametrize("tool", ["leave", "delete"])
def test_bases_that_name_a_file_are_reported_where_links_stay(bench, tool):
    vault = bench(BASES)
    if tool == "delete":
        vault.run("vault.delete", path="F/Books.md")
    else:
        rename(vault, "F/Books.md", "F/Read.md", updateLinks=False)
    assert [(problem.code, problem.message) for problem in vault.last.warnings] == [
        (
            "BASE_NOT_UPDATED",
            "Links in 2 files (Views/by path.base, by link.base) will lead elsewhere or nowhere: bases are not changed.",
        )
    ]


def test_bases_follow_a_renamed_file(bench):
    vault = bench(BASES)
    assert rename(vault, "F/Books.md", "F/Read.md")["linksUpdated"] == 2
    assert vault.warnings == []
    assert vault.text("by link.base") == BASES["by link.base"].replace("Books", "Read")
    assert vault.text("Views/by path.base") == BASES["Views/by path.base"].replace("Books", "Read")
    assert vault.text("other.base") == BASES["other.base"]


def test_bases_follow_a_renamed_folder(bench):
    vault = bench(BASES)
    rename(vault, "F", "G")
    assert vault.warnings == []
    assert vault.text("by folder.base") == 'filters: file.inFolder("G")\n'
    assert vault.text("Views/by path.base") == BASES["Views/by path.base"].replace("F/", "G/")
    assert vault.text("by link.base") == BASES["by link.base"]


def test_queries_in_notes_follow_a_renamed_folder(bench):
    note = (
        '[[Old/a]]\n```dataview\nLIST FROM "Old" AND -"Old/Sub" AND [[Old/a]]\nWHERE file.folder = "Old"\n```\n'
        "```tasks\npath includes Old/\nfolder includes Older\n```\n"
        '```query\npath:"Old/"\n```\n'
        "```dataviewjs\ndv.pages('\"Old\"')\n```\n"
    )
    vault = bench({"Old/a.md": "", "Old/Sub/b.md": "", "Older/c.md": "", "q.md": note})
    rename(vault, "Old", "New")
    assert vault.text("q.md") == note.replace("Old/", "New/").replace('"Old"', '"New"').replace(
        "dv.pages('\"New\"')", "dv.pages('\"Old\"')"
    )
    assert [(problem.code, problem.message[:7]) for problem in vault.last.warnings] == [
        ("QUERY_MAY_CHANGE", "Line 14")
    ]


def test_a_filter_by_a_part_of_the_path_is_reported(bench):
    note = "```tasks\npath includes ld\npath includes Old\n```\n"
    vault = bench({"Old/a.md": "", "Older/c.md": "", "q.md": note})
    rename(vault, "Old", "New")
    assert vault.text("q.md") == note
    assert vault.warnings == ["QUERY_MAY_CHANGE"]
