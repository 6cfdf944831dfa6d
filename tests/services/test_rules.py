"""Rules: due once for each time, over clocks that jump; their plans wait and are not repeated."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from obsidian_agent.bootstrap import Wiring, build_session, open_inbox, open_rules
from obsidian_agent.cli.main import main
from obsidian_agent.errors import ConfigError
from obsidian_agent.plan.policy import Policy
from obsidian_agent.services.plan_review import apply_reviewed, review
from obsidian_agent.services.plans import Plans
from obsidian_agent.services.rules import Rule, RuleRunner, RuleStore, is_due, times
from obsidian_agent.services.waiting_plans import WaitingPlans
from obsidian_agent.vault.paths.path import PathUse, parse
from support import MakeVault

BERLIN = ZoneInfo("Europe/Berlin")


def rule(**changes: Any) -> Rule:
    values: dict[str, Any] = {
        "name": "R",
        "cron": "0 7 * * *",
        "recipe": "move",
        "params": {"notes": "tag:#done", "folder": "Archive"},
    }
    return Rule(**(values | changes))


def test_daylight_saving_neither_loses_nor_doubles_a_day() -> None:
    for begin in (datetime(2026, 3, 27, tzinfo=BERLIN), datetime(2026, 10, 23, tzinfo=BERLIN)):
        for cron in ("0 7 * * *", "30 2 * * *"):
            moments = []
            for moment in times(cron, begin):
                if moment >= begin + timedelta(days=5):
                    break
                moments.append(moment.date())
            assert len(moments) == len(set(moments)) == 5


def test_a_missed_time_is_caught_up_once_and_a_clock_that_goes_back_repeats_nothing() -> None:
    checked = "2026-11-20T08:00:00+00:00"
    now = datetime(2026, 11, 23, 12, 0, tzinfo=UTC)
    assert is_due(rule(checked=checked), now)
    assert not is_due(rule(checked=now.isoformat()), now + timedelta(hours=1))
    assert not is_due(rule(checked=now.isoformat()), now - timedelta(days=2))


@given(st.lists(st.integers(min_value=1, max_value=60 * 30), min_size=1, max_size=60))
def test_every_day_is_seen_once_however_often_one_looks(minutes: list[int]) -> None:
    """A day with several looks is due at one of them; days without a look are caught up at once."""
    now = datetime(2026, 1, 1, tzinfo=UTC)
    looked = rule(checked=now.isoformat())
    for wait in minutes:
        before, now = now, now + timedelta(minutes=wait)
        passed = any(
            before < day <= now
            for day in (
                before.replace(hour=7, minute=0) + timedelta(days=offset)
                for offset in range((now - before).days + 2)
            )
        )
        assert is_due(looked, now) == passed
        looked = rule(checked=now.isoformat())


@pytest.mark.parametrize(
    "changes",
    [
        {"name": ""},
        {"name": " a"},
        {"name": "a\nb"},
        {"recipe": "no such recipe"},
        {"macro": "both"},
        {"recipe": ""},
        {"notes": "tag:#a"},
        {"cron": ""},
        {"cron": "every day"},
        {"cron": "61 * * * *"},
        {"recipe": "find-notes", "params": {"notes": "tag:#done"}},
        {"params": {"notes": "tag:#done"}},
        {"params": {"notes": "tag:#done", "foldr": "Archive"}},
        {"cron": "", "notes": "tag:#done", "recipe": "roll-over-tasks", "params": {}},
    ],
)
def test_a_rule_that_cannot_work_is_refused(changes: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(ConfigError):
        RuleStore(tmp_path).put(rule(**changes))
    assert RuleStore(tmp_path).all() == []


def test_rules_are_read_back_and_damaged_ones_left_out(tmp_path: Path) -> None:
    store = RuleStore(tmp_path)
    store.put(rule(name="B"))
    store.put(rule(name="A", cron="", notes="tag:#x"))
    assert [one.name for one in RuleStore(tmp_path).all()] == ["A", "B"]
    file = tmp_path / "rules.json"
    document = json.loads(file.read_text())
    document["rules"][0]["cron"] = "no time"
    file.write_text(json.dumps(document))
    assert [one.name for one in store.all()] == ["A"]
    file.write_text("[")
    assert store.all() == []


Call = Callable[..., tuple[int, Any]]


@pytest.fixture
def call(tmp_path: Path, make_vault: MakeVault, capsys: pytest.CaptureFixture[str]) -> Call:
    files = {"A.md": "#done\n", "Archive/Old.md": "x", "B.md": "x"}
    places = ["--vault", make_vault(files).real_path, "--state-dir", str(tmp_path / "state")]

    def run(*arguments: str) -> tuple[int, Any]:
        config = ["--config", str(tmp_path / "none.toml")]
        code = main([*arguments, "--json", *places, *config])
        return code, json.loads(capsys.readouterr().out)

    return run


def test_a_rule_of_notes_proposes_what_is_new_and_nothing_twice(call: Call, tmp_path: Path) -> None:
    move = ("--recipe", "move", "--param", "folder=Archive")
    code, added = call("rule", "add", "Done", "--notes", "tag:#done", *move)
    assert code == 0
    assert added["then"] == {"recipe": "move", "params": {"folder": "Archive"}}
    (row,) = call("rule", "test", "Done")[1]["proposals"]
    assert row["changes"] == 1
    (first,) = call("rule", "run")[1]["proposals"]
    assert (first["from"], first["changes"]) == ("rule “Done”", 1)
    assert call("rule", "run")[1] == {"proposals": []}
    assert (tmp_path / "vault" / "A.md").exists()
    (tmp_path / "vault" / "B.md").write_text("#done\n")
    (second,) = call("rule", "run")[1]["proposals"]
    waiting = call("plans", "list")[1]["plans"]
    assert [plan["id"] for plan in waiting] == [second["id"]]
    assert call("rule", "log")[1]["entries"][0]["text"].endswith(
        ". Replaces 1 earlier plan, which it contains"
    )
    call("plans", "drop", second["id"])
    for _ in range(2):
        assert call("rule", "run")[1] == {"proposals": []}
    reasons = [entry["text"] for entry in call("rule", "log")[1]["entries"][:2]]
    assert reasons[0] == "You dropped this plan." != reasons[1], "a reason is logged once"
    texts = {name: (tmp_path / "vault" / name).read_text() for name in ("A.md", "B.md")}
    for name in texts:
        (tmp_path / "vault" / name).write_text("x")
    assert call("rule", "run")[1] == {"proposals": []}
    reason = call("rule", "log")[1]["entries"][0]["text"]
    assert reason == "No note matches: notes tagged #done. Nothing was changed."
    for name, text in texts.items():
        (tmp_path / "vault" / name).write_text(text)
    assert len(call("rule", "run")[1]["proposals"]) == 1, "they were tagged again"
    assert call("rule", "list")[1]["rules"][0].keys() == {"name", "when", "then", "last"}
    assert call("rule", "remove", "Done", "--yes")[0] == 0
    assert call("rule", "run", "Done")[1]["errors"][0]["code"] == "RULE_NOT_FOUND"


def test_a_plan_that_the_newer_one_does_not_contain_waits_beside_it(
    call: Call, tmp_path: Path
) -> None:
    rule = ("rule", "add", "Done", "--notes", "tag:#done", "--recipe", "move")
    call(*rule, "--param", "folder=Archive")
    (first,) = call("rule", "run")[1]["proposals"]
    call(*rule, "--param", "folder=Old")
    (second,) = call("rule", "run")[1]["proposals"]
    (tmp_path / "vault" / "B.md").write_text("#done\n")
    (third,) = call("rule", "run")[1]["proposals"]
    waiting = [plan["id"] for plan in call("plans", "list")[1]["plans"]]
    assert set(waiting) == {first["id"], third["id"]}, "only the second is contained"
    texts = [entry["text"] for entry in call("rule", "log")[1]["entries"]]
    assert [text.count("Replaces 1 earlier plan") for text in texts] == [1, 0, 0]
    assert second["id"] not in waiting


class Killed(BaseException):
    """The end of a process, at a point that a test chooses."""


@pytest.mark.parametrize("alone", [False, True])
def test_a_rule_that_is_killed_at_any_point_loses_and_doubles_nothing(
    alone: bool, make_vault: MakeVault, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = make_vault({"Log.md": "# Log\n"})
    policy = Policy(confirm_writes=not alone, auto_approve_read_only=alone)
    wiring = Wiring(store, tmp_path / "state", policy)
    session, waiting, rules = build_session(wiring), open_inbox(wiring), open_rules(wiring)
    start = datetime(2026, 1, 1, tzinfo=UTC)
    rules.put(
        Rule(
            name="Daily",
            cron="0 7 * * *",
            recipe="add-text",
            params={"notes": "Log", "text": "tick"},
            alone=alone,
            checked=start.isoformat(),
        )
    )
    points_left = [0]

    def point() -> None:
        points_left[0] -= 1
        if points_left[0] == 0:
            raise Killed

    for owner, name in (
        (RuleStore, "record"),
        (WaitingPlans, "add"),
        (WaitingPlans, "publish"),
        (WaitingPlans, "drop"),
        (Plans, "apply"),
    ):
        call = getattr(owner, name)

        def with_points(*args: Any, _call: Any = call, **kwargs: Any) -> Any:
            point()
            result = _call(*args, **kwargs)
            point()
            return result

        monkeypatch.setattr(owner, name, with_points)

    def approve() -> None:
        for plan in waiting.all():
            assert apply_reviewed(review(plan, session.plans), waiting, session.plans) is None

    def look(now: datetime) -> None:
        RuleRunner(rules, waiting, session, lambda: now).run()

    was_killed = True
    days = 0
    while was_killed:
        days, points_left[0] = days + 1, days + 1
        due = start + timedelta(days=days - 1, hours=7, minutes=5)
        try:
            look(due)
            was_killed = False
        except Killed:
            pass
        points_left[0] = 0
        approve()
        look(due + timedelta(minutes=10))
        approve()
        assert store.read(parse("Log.md", PathUse.READ)).count(b"tick") == days
    assert days > 6


def test_a_rule_of_times_waits_for_its_time(call: Call) -> None:
    move = ("--recipe", "move", "--param", "folder=Archive", "--param", "notes=tag:#done")
    now = "2026-11-20T08:00:00+00:00"
    call("rule", "add", "Morning", "--at", "0 7 * * *", *move, "--now", now)
    assert call("rule", "run", "--now", "2026-11-20T23:00:00+00:00")[1] == {"proposals": []}
    later = call("rule", "run", "--now", "2026-11-23T09:00:00+00:00")[1]["proposals"]
    assert len(later) == 1
    assert call("rule", "run", "--now", "2026-11-23T10:00:00+00:00")[1] == {"proposals": []}
    tried = call("rule", "test", "Morning", "--now", "2026-11-23T09:00:00+00:00")[1]
    assert len(tried["proposals"]) == 30


def test_a_rule_is_tried_as_of_its_times(call: Call) -> None:
    date = ("--recipe", "set-property", "--param", "property=seen", "--param", "value=today")
    call("rule", "add", "R", "--at", "0 * * * *", *date, "--param", "notes=A")
    tried = call("rule", "test", "R", "--now", "2026-11-23T09:00:00+00:00")[1]["proposals"]
    assert (len(tried), tried[-1]["time"]) == (100, "2026-11-23T09:00:00+00:00")
    assert [tried[0]["goal"], tried[-1]["goal"]] == [
        "Set seen to 2026-11-19 on A",
        "Set seen to 2026-11-23 on A",
    ]


def test_a_rule_never_deletes(call: Call, tmp_path: Path) -> None:
    call("rule", "add", "Clean", "--notes", "tag:#done", "--recipe", "delete")
    assert call("rule", "run")[1] == {"proposals": []}
    assert call("plans", "list")[1] == {"plans": []}
    assert (tmp_path / "vault" / "A.md").exists()


def test_a_rule_runs_alone_only_where_the_settings_allow_it(call: Call, tmp_path: Path) -> None:
    move = ("--recipe", "move", "--param", "folder=Archive")
    call("rule", "add", "Done", "--notes", "tag:#done", *move, "--alone")
    (waiting,) = call("rule", "run")[1]["proposals"]
    assert (tmp_path / "vault" / "A.md").exists()
    call("plans", "drop", waiting["id"])
    (tmp_path / "none.toml").write_text(
        "confirm_writes = false\nauto_approve_read_only = true\nallow_deletes = true\n"
    )
    call("rule", "run")
    assert (tmp_path / "vault" / "Archive" / "A.md").exists()
    entry = call("rule", "log")[1]["entries"][0]
    assert call("undo", entry["run"], "--yes")[1]["restored"]
    assert (tmp_path / "vault" / "A.md").exists()

    call("rule", "remove", "Done", "--yes")
    call("rule", "add", "Clean", "--notes", "tag:#done", "--recipe", "delete", "--alone")
    (waiting,) = call("rule", "run")[1]["proposals"]
    assert waiting["from"] == "rule “Clean”"
    assert (tmp_path / "vault" / "A.md").exists()


def test_rules_of_the_settings_run_and_are_changed_only_there(call: Call, tmp_path: Path) -> None:
    (tmp_path / "none.toml").write_text(
        '[[rules]]\nname = "Done"\nnotes = "tag:#done"\nrecipe = "move"\n'
        'params = { folder = "Archive" }\n'
    )
    (row,) = call("rule", "list")[1]["rules"]
    assert (row["name"], row["when"]) == ("Done", {"notes": "tag:#done"})
    (plan,) = call("rule", "run")[1]["proposals"]
    assert call("rule", "run")[1] == {"proposals": []}
    assert call("rule", "remove", "Done", "--yes")[0] == 2
    texts = [entry["text"] for entry in call("rule", "log", "Done")[1]["entries"]]
    assert texts[0] == "The same plan waits already."
    assert [entry["plan"] for entry in call("rule", "log", "Done")[1]["entries"]][1] == plan["id"]


def test_a_clock_that_goes_back_after_a_proposal_repeats_nothing(call: Call) -> None:
    move = ("--recipe", "move", "--param", "folder=Archive", "--param", "notes=tag:#done")
    call("rule", "add", "M", "--at", "0 7 * * *", *move, "--now", "2026-11-20T08:00:00+00:00")
    (first,) = call("rule", "run", "--now", "2026-11-21T07:05:00+00:00")[1]["proposals"]
    call("plans", "drop", first["id"])
    for now in ("2026-11-21T06:00:00+00:00", "2026-11-21T07:30:00+00:00"):
        assert call("rule", "run", "--now", now)[1] == {"proposals": []}
    (second,) = call("rule", "run", "--now", "2026-11-22T07:30:00+00:00")[1]["proposals"]
    assert second["goal"] == first["goal"]  # dropped yesterday, and due again today
