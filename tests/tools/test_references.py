"""A rename keeps what definitions and HTML refer to, tells what it cannot keep, and the graph stays Obsidian's."""

from __future__ import annotations

import pytest

from obsidian_agent.vault.links.references import LONGEST


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[ref]: Old.md", "[ref]: A/New%20(1).md"),
        ("See [Old].\n\n[Old]: <Old.md#H> 'Old.md'\n", "See [Old].\n\n[Old]: <A/New (1).md#H> 'Old.md'\n"),
        ("[t][r] `[r]: Old.md`\r\n\r\n> [r]: ./Old.md\r\n", "[t][r] `[r]: Old.md`\r\n\r\n> [r]: ./A/New%20(1).md\r\n"),
        ('<a href="Old.md#H">Old</a>', '<a href="A/New%20(1).md#H">Old</a>'),
        ("<a href=Old.md>Old</a> [[Old]]", "<a href=A/New%20(1).md>Old</a> [[New (1)]]"),
        ("<div>\n<a href='old.md'>\n</div>\n", "<div>\n<a href='A/New%20(1).md'>\n</div>\n"),
        ("```\n[ref]: Old.md\n```\n<!-- <a href='Old.md'> -->", "```\n[ref]: Old.md\n```\n<!-- <a href='Old.md'> -->"),
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
    vault = bench({"A/n.md": "[r]: ../p.png\n\n<img src='../p.png'> <a href='./b.md'>", "p.png": b"\x89", "A/b.md": "[x]: n.md"})
    vault.run("vault.rename", **{"from": "A/n.md", "to": "C/D/m.md"})
    assert vault.text("C/D/m.md") == "[r]: ../../p.png\n\n<img src='../../p.png'> <a href='../../A/b.md'>"
    assert vault.text("A/b.md") == "[x]: ../C/D/m.md"


def test_a_relative_path_stays_one_also_where_obsidian_would_find_the_name(bench):
    vault = bench({"Old.md": "", "n.md": "[r]: Old.md\n\n<a href='./Old.md'> [[Old]] [t](Old.md)\n", "B/m.md": "[r]: Old.md"})
    vault.run("vault.rename", **{"from": "Old.md", "to": "A/Old.md"})
    assert vault.text("n.md") == "[r]: A/Old.md\n\n<a href='./A/Old.md'> [[Old]] [t](Old.md)\n"
    assert vault.text("B/m.md") == "[r]: Old.md"
    vault.run("vault.rename", **{"from": "n.md", "to": "B/C/n.md"})
    assert vault.text("B/C/n.md").startswith("[r]: ../../A/Old.md\n\n<a href='../../A/Old.md'> [[Old]]")


def test_a_folder_that_moves_takes_its_references_along(bench):
    vault = bench({"A/n.md": "[r]: b.md\n\n[s]: /A/b.md", "A/b.md": "", "x.md": "<a href='A/b.md'>"})
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
    vault = bench({"Old.md": "", "n.md": "x" * LONGEST + "\n\n[r]: Old.md\n", "m.md": "x" * LONGEST + "\n\n[r]: Other.md\n"})
    output = vault.run("vault.rename", **{"from": "Old.md", "to": "New.md"})
    (problem,) = vault.last.warnings
    assert (problem.code, problem.path, output["linksUpdated"]) == ("REFERENCE_NOT_UPDATED", "n.md", 0)
    assert "line 3" in problem.message
