from __future__ import annotations

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
    assert bench().run("util.parseTable", text="a | b\n\n---\n```\n|a|\n|-|\n|x|\n```\n") == {"items": [], "columns": [], "count": 0}
