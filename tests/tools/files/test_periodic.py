from __future__ import annotations

import pytest

from obsidian_agent.errors import ObsidianAgentError


@pytest.mark.parametrize(
    ("files", "args", "path"),
    [
        ([], {"period": "month"}, "2026-03.md"),
        ([], {"period": "quarter", "offset": 1}, "2026-Q2.md"),
        ([], {"period": "year", "offset": -1}, "2025.md"),
        ([], {"period": "week"}, "2026-W11.md"),
        (
            ["Journal/Monthly/2026-01.md", "Journal/Monthly/2026-02.md", "x/2020-01.md"],
            {"period": "month"},
            "Journal/Monthly/2026-03.md",
        ),
        (
            ["Log/2025/2025-12.md", "Log/2026/2026-01.md"],
            {"period": "month", "offset": 10},
            "Log/2027/2027-01.md",
        ),
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


def test_the_last_daily_note_that_exists(bench):
    vault = bench(dict.fromkeys(["2026-02-27.md", "2026-03-01.md", "2026-03-20.md"], ""))
    (last,) = vault.run("util.periodNotes", period="day")["files"]
    assert last["path"] == "2026-03-01.md"
    assert vault.warnings == ["FILE_NOT_FOUND"]
    assert vault.run("util.periodNote", period="day", offset=-1)["path"] == "2026-03-13.md"
    with pytest.raises(ObsidianAgentError, match="neither does an earlier"):
        bench({"2026-03-20.md": ""}).run("util.periodNotes", period="day")


def test_the_notes_of_the_last_periods_that_exist(bench):
    days = dict.fromkeys(["2026-03-07.md", "2026-03-08.md", "2026-03-12.md", "2026-03-14.md"], "")
    files = bench(days).run("util.periodNotes", period="day", count=6)["files"]
    assert [file["path"] for file in files] == ["2026-03-08.md", "2026-03-12.md"]
    months = dict.fromkeys(["M/2025-11.md", "M/2026-02.md", "M/2026-03.md"], "")
    files = bench(months).run("util.periodNotes", period="month", count=12)["files"]
    assert [file["path"] for file in files] == ["M/2025-11.md", "M/2026-02.md"]


def test_the_one_template_that_is_named_after_it(bench):
    vault = bench(
        {"Templates/Monthly review.md": "", "Templates/Daily.md": "", "Monthly ideas.md": ""}
    )
    answer = vault.run("util.periodNote", period="month")
    assert (answer["template"], answer["bare"], answer["day"]) == (
        "Templates/Monthly review.md",
        False,
        "2026-03-01",
    )
    assert (
        bench({"Templates/Monthly.md": "", "Templates/Month.md": ""}).run(
            "util.periodNote", period="month"
        )["bare"]
        is True
    )
