from __future__ import annotations

import pytest

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
    assert converted(bench, text, "markdown")[0] == text.replace(" [[Home]]\n\n", " [Home](../Home.md)\n\n")


def test_properties_and_tables_stay(bench):
    text = "---\nby: '[[Home]]'\n---\n| a |\n| - |\n| [[Home\\|x]] |\n"
    vault = bench({**FILES, "n.md": text})
    assert vault.run("vault.convertLinks", path="n.md", to="markdown")["count"] == 0
    assert vault.warnings == ["LINKS_LEFT"]
    assert vault.changes() == []
