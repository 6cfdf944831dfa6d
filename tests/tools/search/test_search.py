from __future__ import annotations

import pytest

from obsidian_agent.errors import ToolError
from obsidian_agent.tools.search.search import SearchRequest, preview, search
from obsidian_agent.vault.filesystem.store import VaultStore
from obsidian_agent.vault.index.keeper import IndexKeeper

VAULT = {
    "b.md": "one\ntwo Cat\n",
    "A/a.md": "cat\r\ncat cat\r\n",
    "A/x.txt": "cat",
    "bad.md": b"cat\xff",
    "empty.md": "",
}


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
    assert places(vault.run("vault.searchText", query=r"^\s*- \[ \] .*#task", regex=True)) == [
        ("t.md", 3),
        ("t.md", 4),
    ]


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
    ("args", "code"),
    [
        ({"query": "(", "regex": True}, "ARGUMENT_INVALID"),
        ({"query": "x", "folder": "b.md"}, "NOT_A_FOLDER"),
    ],
)
def test_search_refuses(bench, args, code):
    assert bench(VAULT).refusal("vault.searchText", **args) == code


NOTES = {
    "Garden.md": "# Plan\n\nRoses and tulips.\n",
    "Tulips.md": "tulip tulips tulips\n",
    "Long.md": "roses " + "word " * 400 + "tulips\n",
    "Else.md": "Nothing about flowers. #garden/bed\n",
    "bad.md": b"tulips \xff\n",
}


@pytest.fixture
def ask(bench):
    index = bench(NOTES).overlay.index

    def asked(query, **args):
        return search(index, SearchRequest(query, **args))

    return asked


def paths(page):
    return [item.path for item in page.items]


def test_words_are_ranked(ask):
    assert paths(ask("tulips", mode="content")) == ["Tulips.md", "bad.md", "Garden.md", "Long.md"]
    assert paths(ask("roses tulips", mode="content")) == [
        "Garden.md",
        "Long.md",
        "Tulips.md",
        "bad.md",
    ]
    assert paths(ask("daffodil tulips", mode="content"))[0] == "Tulips.md"
    scores = [item.score for item in ask("tulips", mode="content").items]
    assert scores == sorted(scores, reverse=True)


DIARY = "on the way to the office what a day of rain the boiler man the pressure " * 80
QUESTIONS = {
    "Diary.md": f"# Diary\n\n{DIARY} should be at home\n",
    "Boiler.md": "---\npressure:\n---\n# Boiler\n\nBought here.\n\nThe pressure is 1.5 bar.\n",
    "Physio.md": "Do this exercise for the knee twice a day.\n",
    "Vera.md": "---\naliases: [Verochka]\n---\nAllergic to walnuts.\n",
    "Garten.md": "Gegen Braunfäule hilft ein Dach, außen.\n",
    "Дом.md": "Давление котла: 1,5 бар.\n",
    "茶.md": "泡绿茶的水温不要超过八十度。\n",
    "Or.md": "to be or not to be\n",
}


@pytest.mark.parametrize(
    ("question", "path", "line"),
    [
        ("What should the pressure of the boiler be?", "Boiler.md", 8),
        ("how often do I do the exercises for my knees", "Physio.md", 1),
        ("what is Verochka allergic to", "Vera.md", 4),
        ("Was hilft gegen Braunfäule?", "Garten.md", 1),
        ("какое давление котлов", "Дом.md", 1),
        ("绿茶的水温是多少", "茶.md", 1),
        ("to be or not", "Or.md", 1),
    ],
)
@pytest.mark.parametrize("stored", [False, True])
def test_a_question_finds_the_note_that_answers_it(bench, tmp_path, question, path, line, stored):
    vault = bench(QUESTIONS)
    index = vault.overlay.index
    if stored:
        keeper = IndexKeeper(VaultStore.open(vault.folder), tmp_path / "state")
        keeper.refresh()
        index = keeper.refresh()
    first = search(index, SearchRequest(question, mode="content")).items[0]
    assert (first.path, first.line) == (path, line)


def test_a_long_note_with_all_words_hides_no_other(ask_questions):
    assert {*paths(ask_questions("the boiler pressure on a day"))} == {
        "Boiler.md",
        "Diary.md",
        "Physio.md",
    }


def test_quoted_words_come_first(ask_questions):
    assert paths(ask_questions('boiler "the way to the office"'))[0] == "Diary.md"


def test_a_preview_is_not_the_name_of_a_property(ask_questions):
    item = next(item for item in ask_questions("pressure").items if item.path == "Boiler.md")
    assert (item.line, item.preview) == (8, "The pressure is 1.5 bar.")


@pytest.fixture
def ask_questions(bench):
    index = bench(QUESTIONS).overlay.index
    return lambda query: search(index, SearchRequest(query, mode="content"))


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


@pytest.mark.parametrize(
    ("limit", "offset", "shown", "more"),
    [(0, 0, 0, True), (1, 0, 1, True), (50, 1, 3, False), (1000, 9, 0, False)],
)
def test_pages(ask, limit, offset, shown, more):
    page = ask("tulips", mode="content", limit=limit, offset=offset)
    assert (len(page.items), page.total, page.has_more) == (shown, 4, more)


BAD = [
    {"limit": 1001},
    {"limit": -1},
    {"offset": -1},
    {"query": "(", "regex": True},
    {"query": "#", "mode": "tag"},
]


@pytest.mark.parametrize("args", BAD)
def test_refusals(ask, args):
    with pytest.raises(ToolError):
        ask(**({"query": "x"} | args))


def test_a_cancelled_search_ends(bench):
    index = bench(NOTES).overlay.index
    assert search(index, SearchRequest("tulips", mode="content"), lambda: True).total == 0


NAMES = {
    "Work/Budget 2022.md": "#money\n",
    "Budget.md": "---\ntags: [Money/In]\n---\n",
    "Notes/Bud.md": "#moneybag\n",
    "logo.png": b"",
}


def test_names_best_first(bench):
    output = bench(NAMES).run("vault.searchName", query="budget")
    assert [(item["path"], item["name"]) for item in output["items"]] == [
        ("Budget.md", "Budget"),
        ("Work/Budget 2022.md", "Budget 2022"),
    ]
    assert output["items"][0]["score"] == 100 > output["items"][1]["score"]
    assert (output["total"], output["hasMore"]) == (2, False)


def test_pages_of_names(bench):
    output = bench(NAMES).run("vault.searchName", query="bud", limit=1, offset=1)
    assert (len(output["items"]), output["total"], output["hasMore"]) == (1, 3, True)
    assert bench(NAMES).run("vault.searchName", query="bud", offset=3)["items"] == []


def test_names_as_earlier_steps_left_them(bench):
    vault = bench(NAMES)
    vault.run("vault.rename", **{"from": "logo.png", "to": "Art/emblem.png"})
    assert vault.run("vault.searchName", query="logo")["items"] == []
    assert [item["path"] for item in vault.run("vault.searchName", query="emblem")["items"]] == [
        "Art/emblem.png"
    ]


@pytest.mark.parametrize("query", ["money", "#money", "#MONEY/"])
def test_a_tag_includes_its_nested_ones(bench, query):
    output = bench(NAMES).run("vault.searchTag", query=query)
    assert [item["path"] for item in output["items"]] == ["Budget.md", "Work/Budget 2022.md"]
    assert "score" not in output["items"][0]
    assert bench(NAMES).run("vault.searchTag", query=query, limit=1) | {"items": []} == {
        "items": [],
        "total": 2,
        "hasMore": True,
    }


def test_no_tag(bench):
    assert bench(NAMES).refusal("vault.searchTag", query=" # ") == "ARGUMENT_INVALID"
