from __future__ import annotations

import threading

import pytest

from obsidian_agent import budget
from obsidian_agent.budget import OutOfBudget


def test_without_a_budget_nothing_ends() -> None:
    budget.check()
    assert budget.seconds_left(5.0) == 5.0


def test_an_inner_budget_gives_no_more_time_than_the_outer_one() -> None:
    with (
        budget.limited(0.0),
        budget.limited(60.0),
        pytest.raises(OutOfBudget, match="It takes longer than 0 s") as ended,
    ):
        budget.check()
    assert ended.value.code == "PLAN_TOO_LARGE"
    budget.check()


def test_what_cancels_the_outer_work_cancels_the_inner_one() -> None:
    outer, inner = threading.Event(), threading.Event()
    with budget.limited(60.0, outer.is_set), budget.limited(1.0, inner.is_set):
        budget.check()
        assert budget.seconds_left(5.0) <= 1.0
        outer.set()
        with pytest.raises(OutOfBudget, match="cancelled"):
            list(budget.checked([1]))


def test_a_budget_belongs_to_its_thread() -> None:
    left: list[float] = []
    with budget.limited(0.0):
        thread = threading.Thread(target=lambda: left.append(budget.seconds_left(7.0)))
        thread.start()
        thread.join()
    assert left == [7.0]


def test_the_text_of_all_inner_work_counts_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budget, "MAX_TEXT", 100)
    budget.spend(1_000)
    with budget.limited(60.0):
        with budget.limited(60.0):
            budget.spend(60)
        budget.spend(40)
        with pytest.raises(OutOfBudget, match="produces more than 100 characters") as ended:
            budget.spend(1)
    assert ended.value.code == "PLAN_TOO_LARGE"
