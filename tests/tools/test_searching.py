from __future__ import annotations

import pytest

from obsidian_agent.errors import ToolError
from obsidian_agent.tools.search.search import SearchRequest, search

VAULT = {
    "Garden.md": "# Plan\n\nRoses and tulips.\n",
    "Tulips.md": "tulip tulips tulips\n",
    "Long.md": "roses " + "word " * 400 + "tulips\n",
    "Else.md": "Nothing about flowers. #garden/bed\n",
    "bad.md": b"tulips \xff\n",
}


@pytest.fixture
def ask(bench):
    index = bench(VAULT).overlay.index

    def asked(query, **args):
        return search(index, SearchRequest(query, **args))

    return asked


def paths(page):
    return [item.path for item in page.items]


def test_words_are_ranked(ask):
    assert paths(ask("tulips", mode="content")) == ["Tulips.md", "bad.md", "Garden.md", "Long.md"]
    assert paths(ask("roses tulips", mode="content")) == ["Garden.md", "Long.md"]
    assert paths(ask("daffodil tulips", mode="content"))[0] == "Tulips.md"
    scores = [item.score for item in ask("tulips", mode="content").items]
    assert scores == sorted(scores, reverse=True)


def test_a_hit_in_content_shows_its_line(ask):
    item = next(item for item in ask("tulips", mode="content").items if item.path == "Garden.md")
    assert (item.line, item.preview) == (3, "Roses and tulips.")
    long = next(item for item in ask("tulips", mode="content").items if item.path == "Long.md")
    assert long.preview is not None
    assert long.preview.startswith("…")
    assert long.preview.endswith("tulips")


def test_names_come_before_contents_and_no_file_twice(ask):
    assert paths(ask("garden")) == ["Garden.md", "Else.md"]
    assert paths(ask("garden", mode="name")) == ["Garden.md"]


def test_lines(ask):
    page = ask("^R.*s", mode="content", regex=True)
    assert [(item.path, item.line) for item in page.items] == [("Garden.md", 3), ("Long.md", 1)]
    assert [problem.code for problem in page.warnings] == ["NOT_TEXT"]
    assert paths(ask("Roses and", mode="content", literal=True)) == ["Garden.md"]
    assert paths(ask("roses and", mode="content", literal=True, case_sensitive=True)) == []


def test_tags(ask):
    assert paths(ask("#Garden", mode="tag")) == ["Else.md"]


@pytest.mark.parametrize(("limit", "offset", "shown", "more"), [(0, 0, 0, True), (1, 0, 1, True), (50, 1, 3, False), (1000, 9, 0, False)])
def test_pages(ask, limit, offset, shown, more):
    page = ask("tulips", mode="content", limit=limit, offset=offset)
    assert (len(page.items), page.total, page.has_more) == (shown, 4, more)


BAD = [{"limit": 1001}, {"limit": -1}, {"offset": -1}, {"query": "(", "regex": True}, {"query": "#", "mode": "tag"}]


@pytest.mark.parametrize("args", BAD)
def test_refusals(ask, args):
    with pytest.raises(ToolError):
        ask(**({"query": "x"} | args))


def test_a_cancelled_search_ends(bench):
    index = bench(VAULT).overlay.index
    assert search(index, SearchRequest("tulips", mode="content"), lambda: True).total == 0
