from __future__ import annotations

import pytest

from obsidian_agent.errors import ToolError
from obsidian_agent.tools.text.items import number_of


def note(name, **properties):
    return {"path": f"{name}.md", "frontmatter": properties}


INVOICES = [note("a", amount=5200, no=1), note("b", amount=7350.5, no=2), note("c", amount="1,250.00 €"), note("d", status="open"), None]


def test_sum_and_the_like(bench):
    answer = bench().run("util.summarize", items=INVOICES, by="frontmatter.amount")
    assert (answer["sum"], answer["average"], answer["count"]) == (13800.5, 4600.17, 3)
    assert [each["of"]["path"] for each in answer["least"]] == ["c.md"]
    assert (answer["smallest"], answer["largest"]) == (1250, 7350.5)
    assert [each["path"] for each in answer["missing"]] == ["d.md"]


def test_the_field_that_is_meant(bench):
    vault = bench()
    assert vault.run("util.summarize", items=INVOICES)["by"] == "amount"
    assert vault.run("util.summarize", items=[note("a", pages=3), note("b", pages=4)])["sum"] == 7
    with pytest.raises(ToolError, match="height, pages"):
        vault.run("util.summarize", items=[note("a", pages=3, height=4)])
    with pytest.raises(ToolError, match="None of the properties"):
        vault.run("util.summarize", items=[note("a", pages="x")])


def test_nothing_adds_up_to_nothing(bench):
    answer = bench().run("util.summarize", items=[], by="x")
    assert (answer["sum"], answer["count"], answer["most"]) == (0, 0, [])


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("12", "12"),
        ("1.250,50", "1250.50"),
        ("1,250", "1250"),
        ("1.5", "1.5"),
        ("€ 9", "9"),
        ("3 kg", "3"),
        ("1'000'000", "1000000"),
        ("-4", "-4"),
    ],
)
def test_numbers_in_texts(text, number):
    assert str(number_of(text)) == number


@pytest.mark.parametrize("value", [True, None, "two", "2026-03-14", "a 3 b 4", "chapter 3", [1]])
def test_what_is_no_number(value):
    assert number_of(value) is None
