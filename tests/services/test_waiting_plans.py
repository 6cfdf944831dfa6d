"""The store of waiting plans: what was written is read, damaged files and odd ids do no harm."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from obsidian_agent.errors import ConfigError
from obsidian_agent.services.waiting_plans import (
    KEPT_DAYS,
    MAX_WAITING,
    ProposedResult,
    WaitingPlans,
)

NOW = datetime(2026, 11, 23, 8, 30, tzinfo=UTC)
PLAN = {"version": "1.0", "goal": "Tidy up", "riskLevel": "writes", "steps": []}


def test_plans_wait_in_files_newest_first(tmp_path: Path) -> None:
    plans = WaitingPlans(tmp_path)
    first = plans.add(PLAN, source="Claude", now=NOW, result=ProposedResult("h", 3))
    second = plans.add(PLAN, source="", now=NOW + timedelta(hours=1))
    assert WaitingPlans(tmp_path).all() == [second, first]
    assert (first.goal, first.created) == ("Tidy up", "2026-11-23T08:30:00+00:00")
    plans.drop(first.id)
    plans.drop(first.id)
    assert plans.all() == [second]
    with pytest.raises(ConfigError, match="no waiting plan"):
        plans.get(first.id)


def test_plans_of_one_second_are_in_the_order_of_their_files(tmp_path: Path) -> None:
    plans = WaitingPlans(tmp_path)
    added = [plans.add(PLAN, source="", now=NOW) for _ in range(4)]
    for second, plan in enumerate(added):
        os.utime(tmp_path / f"{plan.id}.json", (second, second))
    assert plans.all() == added[::-1]


def test_damaged_files_and_paths_as_ids_are_no_plans(tmp_path: Path) -> None:
    plans = WaitingPlans(tmp_path / "plans")
    for name, content in (("0" * 12, "["), ("1" * 12, '{"plan": 3}'), ("2" * 12, "{}")):
        (tmp_path / "plans").mkdir(exist_ok=True)
        (tmp_path / "plans" / f"{name}.json").write_text(content)
    (tmp_path / "secret.json").write_text('{"plan": {}}')
    assert plans.all() == []
    assert plans.find("../secret") is None
    plans.drop("../secret")
    assert (tmp_path / "secret.json").exists()


def test_the_oldest_plans_are_dropped(tmp_path: Path) -> None:
    plans = WaitingPlans(tmp_path)
    for minute in range(MAX_WAITING + 2):
        plans.add(PLAN, source="", now=NOW + timedelta(minutes=minute))
    assert len(plans.all()) == MAX_WAITING
    assert plans.all()[-1].created == "2026-11-23T08:32:00+00:00"


def test_a_plan_expires(tmp_path: Path) -> None:
    plans = WaitingPlans(tmp_path)
    plans.add(PLAN, source="", now=NOW)
    second = plans.add(PLAN, source="", now=NOW + timedelta(days=2))
    plans.expire(NOW + timedelta(days=KEPT_DAYS, hours=1))
    assert plans.all() == [second]


def test_an_inbox_reports_what_is_added_and_when_it_changed(tmp_path: Path) -> None:
    added: list[str] = []
    plans = WaitingPlans(tmp_path / "plans", lambda plan: added.append(plan.id))
    before = plans.stamp
    plan = plans.add(PLAN, source="", now=NOW)
    assert added == [plan.id]
    assert plans.stamp != before
