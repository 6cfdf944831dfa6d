"""A simulated month of rules: nothing is missed, doubled, or written without approval.

Notes are edited, looked at by rules and sometimes approved, while the clock runs, jumps forward
and back, changes for daylight saving, and the program that looks is killed.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from datetime import time as clock_time
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from obsidian_agent.bootstrap import Wiring, build_session, proposals_folder
from obsidian_agent.services.plan_review import apply_reviewed, review
from obsidian_agent.services.rules import Rule, RuleRunner, RuleStore
from obsidian_agent.services.waiting_plans import WaitingPlan, WaitingPlans
from obsidian_agent.vault.filesystem.store import VaultStore
from support import MakeVault

sys.path.insert(0, str(Path(__file__).resolve().parent))

from sweep import Tell

BERLIN = ZoneInfo("Europe/Berlin")
NOTES = 150
TIMES = {"Night": clock_time(2, 30), "Morning": clock_time(7, 0)}
"""The rules of times: one lies in the hour that daylight saving skips or repeats."""


def moments(at: clock_time, first: date, days: int) -> list[datetime]:
    """Return the moments of a daily time: once a day, also where the clock changes."""
    found = []
    for number in range(days):
        local = datetime.combine(first + timedelta(days=number), at, BERLIN)
        moment = local.astimezone(UTC)
        if moment.astimezone(BERLIN).time() != at:  # skipped: at the moment of the change
            moment = datetime.combine(local.date(), clock_time(3, 0), BERLIN).astimezone(UTC)
        found.append(moment)
    return found


class Month:
    """The vault, what it must hold, and the rules at work on it."""

    def __init__(self, store: VaultStore, folder: Path, start: datetime, seed: int) -> None:
        self.random = random.Random(seed)
        self.root = Path(store.real_path)
        self.now = start
        self.edits = self.looks = self.kills = self.approved = self.fired = 0
        self.files: dict[str, bytes] = self.read()
        self.seen = dict.fromkeys(TIMES, start)
        """The latest moment up to which each rule of times was looked at."""
        self.due: Mapping[str, list[datetime]] = {
            name: moments(at, start.date() - timedelta(days=1), 50) for name, at in TIMES.items()
        }
        wiring = Wiring(store=store, state=folder / "state")
        self.session = build_session(wiring)
        self.waiting = WaitingPlans(proposals_folder(wiring))
        self.rules = RuleStore(proposals_folder(wiring).parent)
        self.runner = RuleRunner(self.rules, self.waiting, self.session, lambda: self.now)
        self.rules.put(
            Rule(
                name="Done",
                notes="tag:#done",
                recipe="replace-text",
                params={"find": "#done", "replace": "#filed"},
            )
        )
        for name, at in TIMES.items():
            params = {"text": f"{name} entry", "notes": f"{name} log"}
            cron = f"{at.minute} {at.hour} * * *"
            checked = start.isoformat(timespec="seconds")
            rule = Rule(name=name, cron=cron, recipe="add-text", params=params, checked=checked)
            self.rules.put(rule)

    def read(self) -> dict[str, bytes]:
        """Return the notes of the vault."""
        return {
            path.relative_to(self.root).as_posix(): path.read_bytes()
            for path in self.root.rglob("*.md")
        }

    def plan_of(self, rule: str) -> WaitingPlan | None:
        """Return the plan of a rule that waits; more than one is a violation."""
        plans = [plan for plan in self.waiting.all() if plan.source == f"rule “{rule}”"]
        assert len(plans) <= 1, f"doubled: {len(plans)} plans of {rule} at {self.now}"
        return plans[0] if plans else None

    def edit(self) -> None:
        """Change a note as its user does: tag it, untag it, or write a line."""
        name = self.random.choice([name for name in self.files if "log" not in name])
        text = self.files[name]
        match self.random.randrange(3):
            case 0:
                text = text if b"#done" in text else text + b"#done\n"
            case 1:
                text = text.replace(b"#done\n", b"")
            case _:
                text += b"A line.\n" if len(text) < 2_000 else b""
        self.files[name] = text
        (self.root / name).write_bytes(text)
        self.edits += 1

    def pass_time(self) -> None:
        """Let the clock run: mostly minutes, sometimes a sleep, an hour back, a wrong jump."""
        kind = self.random.random()
        if kind < 0.9:
            self.now += timedelta(minutes=self.random.randint(1, 70))
        elif kind < 0.95:
            self.now += timedelta(hours=self.random.randint(1, 7))
        else:
            self.now -= timedelta(minutes=self.random.randint(1, 90))
        self.now = self.now.astimezone(UTC).astimezone(BERLIN)

    def look(self) -> None:
        """Look at the rules, and compare with what must wait now."""
        before = {plan.id for plan in self.waiting.all()}
        outcomes = {outcome.rule: outcome for outcome in self.runner.run()}
        self.looks += 1
        for name, due in self.due.items():
            is_due = any(self.seen[name] < moment <= self.now for moment in due)
            assert (name in outcomes) == is_due, f"{name} at {self.now}, seen {self.seen[name]}"
            self.seen[name] = max(self.seen[name], self.now)
            if is_due:
                self.fired += 1
                assert self.plan_of(name) is not None, f"missed: {name} at {self.now}"
            elif (plan := self.plan_of(name)) is not None:
                assert plan.id in before, f"doubled: {name} at {self.now}"
        expected = {name for name, text in self.files.items() if b"#done" in text}
        plan = self.plan_of("Done")
        proposed = set()
        if plan is not None and (preview := review(plan, self.session.plans).preview) is not None:
            proposed = {change.path.text for change in preview.change_set.changes}
        assert expected <= proposed, f"missed: {expected - proposed} at {self.now}"

    def look_and_die(self) -> None:
        """Look at the rules in a process that is killed meanwhile."""
        child = os.fork()
        if child == 0:
            self.runner.run()
            os._exit(0)
        time.sleep(self.random.random() * 0.1)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        self.kills += 1
        for rule in self.rules.all():
            if rule.name in self.seen:
                checked = datetime.fromisoformat(rule.checked)
                if checked > self.seen[rule.name]:
                    self.seen[rule.name] = checked

    def approve(self) -> None:
        """Approve a plan that waits, as its user does, and expect its preview."""
        for plan in self.waiting.all():
            row = review(plan, self.session.plans)
            if row.preview is None or row.problem is not None:
                self.waiting.drop(plan.id)
                continue
            assert apply_reviewed(row, self.waiting, self.session.plans) is None
            self.approved += 1
            for change in row.preview.change_set.changes:
                if change.folder:
                    continue
                text = self.files.pop(change.path.text, b"")
                target = (change.new_path or change.path).text
                self.files[target] = text if change.content is None else change.content

    def check(self) -> None:
        """Compare the vault with the user's edits and the approved previews."""
        assert self.read() == self.files, "something was written without approval"

    def live(self, edits: int) -> None:
        while self.edits < edits:
            for _ in range(self.random.randint(1, 20)):
                self.edit()
            self.pass_time()
            if self.random.random() < 0.05:
                self.look_and_die()
            self.look()
            self.check()
            if self.random.random() < 0.05:
                self.approve()
                self.check()


def month(make_vault: MakeVault, folder: Path, start: datetime, edits: int, seed: int) -> Month:
    notes = {f"Note {number}.md": "# Note\n" for number in range(NOTES)}
    logs = {f"{name} log.md": "# Log\n" for name in TIMES}
    lived = Month(make_vault({**notes, **logs}), folder, start, seed)
    try:
        lived.live(edits)
    except AssertionError as error:
        error.add_note(f"seed {seed}")
        raise
    return lived


@pytest.mark.soak
@pytest.mark.skipif(sys.platform == "win32", reason="fork")
@pytest.mark.timeout(3600)
@pytest.mark.parametrize(
    "start", [datetime(2026, 3, 25, tzinfo=BERLIN), datetime(2026, 10, 20, tzinfo=BERLIN)]
)
def test_a_month_of_ten_thousand_edits(
    make_vault: MakeVault, tmp_path: Path, start: datetime, tell: Tell
) -> None:
    lived = month(make_vault, tmp_path, start, 10_000, random.randrange(1_000_000))
    tell(
        f"a month of rules from {start.date()}: {lived.edits:,} edits, {lived.fired} times due, "
        f"{lived.kills} kills, {lived.approved} approved",
        lived.looks,
        [],
    )


@pytest.mark.skipif(sys.platform == "win32", reason="fork")
def test_some_days_around_the_change_of_the_clock(make_vault: MakeVault, tmp_path: Path) -> None:
    lived = month(make_vault, tmp_path, datetime(2026, 10, 24, 20, tzinfo=BERLIN), 400, 400)
    assert lived.fired
