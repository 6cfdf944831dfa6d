from __future__ import annotations

import pytest

from obsidian_agent.errors import ObsidianAgentError
from obsidian_agent.tools.search.search import preview

VAULT = {"b.md": "one\ntwo Cat\n", "A/a.md": "cat\r\ncat cat\r\n", "A/x.txt": "cat", "bad.md": b"cat\xff", "empty.md": ""}


def places(output):
    return [(match["path"], match["line"]) for match in output["matches"]]


def test_search_tells_lines_sorted_by_path(bench):
    vault = bench(VAULT)
    output = vault.run("vault.searchText", query="CAT")
    assert places(output) == [("A/a.md", 1), ("A/a.md", 2), ("b.md", 2)]
    assert (output["total"], output["hasMore"], output["scanned"]) == (3, False, 3)
    assert output["matches"][1]["preview"] == "cat cat"
    assert vault.warnings == ["NOT_TEXT"]


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        ({"query": "Cat", "caseSensitive": True}, [("b.md", 2)]),
        ({"query": "cat", "folder": "A"}, [("A/a.md", 1), ("A/a.md", 2)]),
        ({"query": "^c.t$", "regex": True}, [("A/a.md", 1)]),
        ({"query": "c.t", "regex": False}, []),
        ({"query": "^$", "regex": True}, []),
        ({"query": "[[cat]]"}, []),
        ({"query": "cat", "limit": 1, "offset": 1}, [("A/a.md", 2)]),
    ],
)
def test_search_narrowed(bench, args, expected):
    assert places(bench(VAULT).run("vault.searchText", **args)) == expected


def test_pages_know_the_total(bench):
    output = bench(VAULT).run("vault.searchText", query="cat", limit=2)
    assert (len(output["matches"]), output["total"], output["hasMore"]) == (2, 3, True)


def test_open_tasks_are_found_line_by_line(bench):
    vault = bench({"t.md": "# T\n\n- [ ] a #task\n  - [ ] b #task\n- [x] c #task\n- [ ] d\n"})
    assert places(vault.run("vault.searchText", query=r"^\s*- \[ \] .*#task", regex=True)) == [("t.md", 3), ("t.md", 4)]


def test_case_is_folded_wholly(bench):
    output = bench({"a.md": "eine lange Straße hier"}).run("vault.searchText", query="STRASSE")
    assert output["matches"][0]["preview"] == "eine lange Straße hier"


def test_previews_are_cut_on_both_sides():
    line = "a" * 300 + "HIT" + "b" * 101
    assert preview(line, (300, 303)) == "…" + "a" * 100 + "HIT" + "b" * 100 + "…"
    assert preview("a" * 100 + "HIT" + "b" * 100, (100, 103)) == "a" * 100 + "HIT" + "b" * 100
    assert preview("x" * 500, (0, 500)) == "x" * 200 + "…"


def test_a_folded_hit_is_shown_at_its_place(bench):
    line = "ß" * 150 + "needle" + "x" * 150
    shown = bench({"a.md": line}).run("vault.searchText", query="NEEDLE")["matches"][0]["preview"]
    assert shown == "…" + "ß" * 100 + "needle" + "x" * 100 + "…"


@pytest.mark.parametrize(
    ("args", "code"), [({"query": "(", "regex": True}, "ARGUMENT_INVALID"), ({"query": "x", "folder": "b.md"}, "NOT_A_FOLDER")]
)
def test_search_refuses(bench, args, code):
    with pytest.raises(ObsidianAgentError) as caught:
        bench(VAULT).run("vault.searchText", **args)
    assert caught.value.code == code
