from __future__ import annotations

import pytest

TEXT = """Books

| Title | By | |
|:------|----|--:|
| Dune \\| one | [[Herbert|Frank]] | 5 |
| `a|b` |
|  |  |  |
| Emma | Austen | 4 | more |

| Other | table |
| --- | --- |
| no | no |
"""


def test_rows_have_their_cells_by_column(bench):
    answer = bench().run("util.parseTable", text=TEXT)
    assert answer["columns"] == ["Title", "By", ""]
    assert [(item["first"], item["cells"]) for item in answer["items"]] == [
        ("Dune | one", {"Title": "Dune | one", "By": "[[Herbert|Frank]]", "column3": "5"}),
        ("`a|b`", {"Title": "`a|b`", "By": "", "column3": ""}),
        ("Emma", {"Title": "Emma", "By": "Austen", "column3": "4"}),
    ]
    assert [item["line"] for item in answer["items"]] == [5, 6, 8]


def test_a_text_without_a_table_has_no_rows(bench):
    assert bench().run("util.parseTable", text="a | b\n\n---\n```\n|a|\n|-|\n|x|\n```\n") == {
        "items": [],
        "columns": [],
        "count": 0,
    }


TABLE = "# T\n\n| No | Client | Amount | Paid |\n| --- | --- | ---: | --- |\n| 1 | [[A\\|a]] | 12 | yes |\n\nend\n"


@pytest.mark.parametrize(
    ("args", "row"),
    [
        ({"cells": {"client": "[[B|b]]", "Paid": "no"}}, "|  | [[B\\|b]] |  | no |"),
        ({"text": "number 2, client [[B|b]], amount 42, paid no"}, "| 2 | [[B\\|b]] | 42 | no |"),
        ({"text": "2, [[B]], 42, no"}, "| 2 | [[B]] | 42 | no |"),
        ({"text": "Client: [[B]]; Paid = no"}, "|  | [[B]] |  | no |"),
        ({"text": "2 | '[[B]], ltd.' | 42 | \"no\""}, "| 2 | [[B]], ltd. | 42 | no |"),
    ],
)
def test_a_row_at_the_end(bench, args, row):
    vault = bench({"a.md": TABLE})
    answer = vault.run("vault.addTableRow", path="a.md", **args)
    assert (answer["row"], answer["line"]) == (row, 6)
    assert vault.text("a.md") == TABLE.replace("yes |\n", f"yes |\n{row}\n")


def test_padded_tables_and_tables_without_outer_bars_stay_so(bench):
    vault = bench(
        {
            "a.md": "| Name  | Age |\n|-------|-----|\n| Ann   | 3   |",
            "b.md": "Name | Age\n--- | ---\nAnn | 3\n",
        }
    )
    vault.run("vault.addTableRow", path="a.md", text="Bo, 14")
    vault.run("vault.addTableRow", path="b.md", text="Bo, 14", at="start")
    assert vault.text("a.md").endswith("| Ann   | 3   |\n| Bo    | 14  |\n")
    assert vault.text("b.md") == "Name | Age\n--- | ---\nBo | 14\nAnn | 3\n"


def test_a_table_below_a_heading(bench):
    vault = bench({"a.md": TABLE + "\n## Two\n\n| X |\n|---|\n| 1 |\n"})
    vault.run("vault.addTableRow", path="a.md", text="2", heading="Two")
    assert vault.text("a.md").endswith("| 1 |\n| 2 |\n")


@pytest.mark.parametrize(
    "args",
    [{"cells": {"Colour": "red"}}, {"text": "1, 2, 3, 4, 5"}, {"text": "2, Paid no, Client x"}],
)
def test_cells_without_a_column_are_an_error(bench, args):
    assert (
        bench({"a.md": TABLE}).refusal("vault.addTableRow", path="a.md", **args)
        == "ARGUMENT_INVALID"
    )


def test_a_note_without_a_table_is_an_error(bench):
    assert (
        bench({"a.md": "text"}).refusal("vault.addTableRow", path="a.md", text="1")
        == "MARKER_NOT_FOUND"
    )


def test_a_table_of_notes_with_their_properties(bench):
    items = [
        {"path": "a.md", "frontmatter": {"Tags": ["x", "y"], "note": "1 | 2"}},
        {"path": "Gone.md", "frontmatter": {}},
    ]
    assert bench({"a.md": ""}).run("util.formatTable", items=items, columns=["tags", "note"]) == {
        "text": "| Note | tags | note |\n| --- | --- | --- |\n| [[a]] | x, y | 1 \\| 2 |\n| [[Gone.md]] |  |  |",
        "count": 2,
    }
