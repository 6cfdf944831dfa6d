from __future__ import annotations

import pytest


@pytest.mark.parametrize(
    ("files", "args", "path"),
    [
        ([], {"period": "month"}, "2026-03.md"),
        ([], {"period": "quarter", "offset": 1}, "2026-Q2.md"),
        ([], {"period": "year", "offset": -1}, "2025.md"),
        ([], {"period": "week"}, "2026-W11.md"),
        (["Journal/Monthly/2026-01.md", "Journal/Monthly/2026-02.md", "x/2020-01.md"], {"period": "month"}, "Journal/Monthly/2026-03.md"),
        (["Log/2025/2025-12.md", "Log/2026/2026-01.md"], {"period": "month", "offset": 10}, "Log/2027/2027-01.md"),
        (["M/January 2026.md"], {"period": "month", "offset": -1}, "M/February 2026.md"),
        (["Reviews/Quarterly/"], {"period": "quarter"}, "Reviews/Quarterly/2026-Q1.md"),
        (["W/2026W10.md"], {"period": "week", "offset": -1}, "W/2026W10.md"),
        (["Templates/2026-01.md"], {"period": "month"}, "2026-03.md"),
    ],
)
def test_beside_the_others_and_named_like_them(bench, files, args, path):
    answer = bench(dict.fromkeys(files, "")).run("util.periodNote", **args)
    assert answer["path"] == path
    assert answer["title"] == path.rpartition("/")[2].removesuffix(".md")


def test_the_one_template_that_is_named_after_it(bench):
    vault = bench({"Templates/Monthly review.md": "", "Templates/Daily.md": "", "Monthly ideas.md": ""})
    answer = vault.run("util.periodNote", period="month")
    assert (answer["template"], answer["bare"], answer["day"]) == ("Templates/Monthly review.md", False, "2026-03-01")
    assert bench({"Templates/Monthly.md": "", "Templates/Month.md": ""}).run("util.periodNote", period="month")["bare"] is True
