"""Rules that propose: at a time, or when the result would be new, a recipe or macro becomes a plan.

What a rule comes to is a plan that waits for the user. Only a rule that may run alone writes, and
only where the policy asks no question. A time that was missed, because the machine was off, is
caught up once; a clock that goes back proposes nothing twice.
"""

from __future__ import annotations

import contextlib
import json
import re
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta, tzinfo
from itertools import takewhile
from pathlib import Path
from typing import Any, Final

from msgspec import Struct, ValidationError, convert
from msgspec.structs import asdict, replace

from obsidian_agent.agent.events import Answer, ExecutionResult, PlanReady
from obsidian_agent.errors import ConfigError, ObsidianAgentError, PlanError, Problem
from obsidian_agent.offline.recipe import packaged, recipe_named
from obsidian_agent.plan.parameters import MissingInput
from obsidian_agent.plan.result import Preview
from obsidian_agent.services.plan_review import contains, document_with_values, result_of
from obsidian_agent.services.plans import PreviewOptions
from obsidian_agent.services.session import Session
from obsidian_agent.services.waiting_plans import WaitingPlan, WaitingPlans
from obsidian_agent.state_files import append_json, file_lock, make_private, replace_file

_FILE: Final = "rules.json"
_LOG: Final = "rules.log"
_NO_PLAN: Final = "NO_PLAN"
"""Code of the reason that no note matches."""
_NAME: Final = re.compile(r"[^\x00-\x1f\x7f]{1,80}")
MAX_RULES: Final = 100
MAX_TRIALS: Final = 100
"""Times at which a rule is tried."""
MAX_BACK: Final = timedelta(days=2)
"""A clock that goes back further was wrong before: times count from the new one."""
LOG_LINES: Final = 1_000
"""Entries of the log that are read."""


class StartedRun(Struct, frozen=True):
    """A run that a rule starts without approval, stored before it starts.

    `after` is the last run before it, "" without any. `checked` is the rule's earlier one.
    """

    after: str
    goal: str
    checked: str


class Rule(Struct, frozen=True, kw_only=True):
    """A rule of one vault.

    `cron` are the five fields of a time, "" for a rule that looks at its notes whenever the vault
    changed. `notes` is the set of notes as recipes take it. `recipe` or `macro` is its name, the
    other is "". `checked` is when it was last looked at (ISO 8601), `proposed` the hash of the plan
    that it proposed last. A rule that may run `alone` applies its plan where the policy allows that
    without a question and nothing is deleted. `staged` is the id of the plan that it published
    last, or would have if its process had not been killed.
    """

    name: str
    cron: str = ""
    notes: str = ""
    recipe: str = ""
    macro: str = ""
    params: Mapping[str, str]
    alone: bool = False
    checked: str = ""
    proposed: str = ""
    staged: str = ""
    started: StartedRun | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the rule as `rule list --json` prints it."""
        when = {"at": self.cron} if self.cron else {"notes": self.notes}
        then = {"recipe": self.recipe} if self.recipe else {"macro": self.macro}
        return {
            "name": self.name,
            "when": when,
            "then": then | {"params": dict(self.params)},
            "last": self.checked or None,
            **({"alone": True} if self.alone else {}),
        }

    @property
    def source(self) -> str:
        """The name of the rule among those who propose plans."""
        return f"rule “{self.name}”"

    def values(self) -> dict[str, str]:
        """Return the values of the recipe, with the rule's notes unless it names others."""
        values = dict(self.params)
        if self.notes:
            values.setdefault("notes", self.notes)
        return values


class RuleOutcome(Struct, frozen=True):
    """The outcome of a rule: a plan that waits, a run, or the reason why there is none."""

    rule: str
    plan: WaitingPlan | None = None
    reason: str = ""
    run_id: str | None = None

    @property
    def text(self) -> str:
        """The goal of the plan and the plans that it replaces, or the reason."""
        if self.plan is None:
            return self.reason
        if not self.plan.replaces:
            return self.plan.goal
        return f"{self.plan.goal}. {self.plan.replacement}"


class RuleStore:
    """The rules of one vault, in a file of the state folder, and their log.

    `configured` are those of the settings: the file holds only what they did last.
    """

    def __init__(self, folder: Path, configured: Sequence[Rule] = ()) -> None:
        self._folder = folder
        self._file = folder / _FILE
        self._log = folder / _LOG
        self._configured = {rule.name: rule for rule in configured}

    def all(self) -> list[Rule]:
        """Return the rules in the order of their names.

        Damaged entries are left out. Raises `ConfigError` for one of the settings.
        """
        rules = self._stored()
        for name, rule in self._configured.items():
            check(rule)
            known = rules.get(name, rule)
            rules[name] = _with_state(rule, known)
        return sorted(rules.values(), key=lambda rule: rule.name)

    def _stored(self) -> dict[str, Rule]:
        try:
            document = json.loads(self._file.read_bytes())
        except (OSError, ValueError):
            return {}
        entries = document.get("rules") if isinstance(document, dict) else None
        rules = [_rule(entry) for entry in entries or () if isinstance(entry, dict)]
        return {rule.name: rule for rule in rules if rule is not None}

    def get(self, name: str) -> Rule:
        """Return a rule. Raises `ConfigError` RULE_NOT_FOUND."""
        rule = next((rule for rule in self.all() if rule.name == name), None)
        if rule is None:
            raise ConfigError(
                f"There is no rule “{name[:80]}”.",
                code="RULE_NOT_FOUND",
                hint="See: obsidian-agent rule list.",
            )
        return rule

    def put(self, rule: Rule) -> None:
        """Add or replace a rule. Raises `ConfigError` for one that cannot work, OSError."""
        check(rule)
        self._check_stored(rule.name)
        with self._locked():
            rules = {**self._stored(), rule.name: rule}
            if len(rules) > MAX_RULES:
                raise ConfigError(f"A vault has at most {MAX_RULES} rules.")
            self._write(rules)

    def record(self, rule: Rule) -> None:
        """Store what a rule did, unless it was removed meanwhile. Raises OSError."""
        with self._locked():
            rules = self._stored()
            known = rules.get(rule.name) or self._configured.get(rule.name)
            if known is not None:
                rules[rule.name] = _with_state(known, rule)
                self._write(rules)

    def remove(self, name: str) -> None:
        """Remove a rule. Raises `ConfigError` RULE_NOT_FOUND, OSError."""
        self.get(name)
        self._check_stored(name)
        with self._locked():
            self._write({key: rule for key, rule in self._stored().items() if key != name})

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """Hold the rules for the block: of two programs that run them one waits. Raises OSError."""
        make_private(self._folder)
        with file_lock(self._folder / "rules-run.lock", seconds=60.0):
            yield

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        make_private(self._folder)
        with file_lock(self._folder / "rules.lock"):
            yield

    def _check_stored(self, name: str) -> None:
        if name in self._configured:
            raise ConfigError(
                f"The rule “{name}” is in the settings file.", hint="Change it in config.toml."
            )

    def entries(self, rule: str | None = None) -> list[Mapping[str, Any]]:
        """Return the last entries of the log, the newest first."""
        entries: list[Mapping[str, Any]] = []
        with contextlib.suppress(OSError):
            for line in self._log.read_bytes().splitlines()[-LOG_LINES:]:
                with contextlib.suppress(ValueError):
                    entry = json.loads(line)
                    if isinstance(entry, dict) and rule in (None, entry.get("rule")):
                        entries.append(entry)
        return entries[::-1]

    def log(self, now: datetime, rule: Rule, outcome: RuleOutcome) -> None:
        """Log the outcome of a rule. Write errors are ignored.

        A rule of notes is looked at whenever they change: a reason is logged once, not repeated.
        """
        is_reason = outcome.plan is None and outcome.run_id is None
        if is_reason and not rule.cron:
            last = next(iter(self.entries(rule.name)), None)
            if last is not None and last.get("text") == outcome.text:
                return
        entry = {
            "time": now.isoformat(timespec="seconds"),
            "rule": outcome.rule,
            "plan": outcome.plan.id if outcome.plan is not None else None,
            "run": outcome.run_id,
            "text": outcome.text,
        }
        with contextlib.suppress(OSError):
            append_json(self._log, [entry])

    def _write(self, rules: Mapping[str, Rule]) -> None:
        entries = [
            {
                "name": rule.name,
                "cron": rule.cron,
                "notes": rule.notes,
                "recipe": rule.recipe,
                "macro": rule.macro,
                "params": dict(rule.params),
                "alone": rule.alone,
                "checked": rule.checked,
                "proposed": rule.proposed,
                "staged": rule.staged,
                "started": None if rule.started is None else asdict(rule.started),
            }
            for rule in rules.values()
        ]
        text = json.dumps({"version": 1, "rules": entries}, ensure_ascii=False, indent=1)
        replace_file(self._file, text.encode("utf-8", "surrogatepass"))


def _with_state(rule: Rule, state: Rule) -> Rule:
    """Return a rule with what another version of it did."""
    return replace(
        rule,
        checked=state.checked,
        proposed=state.proposed,
        staged=state.staged,
        started=state.started,
    )


def _rule(entry: Mapping[str, Any]) -> Rule | None:
    texts = {
        name: str(entry.get(name) or "")
        for name in ("name", "cron", "notes", "recipe", "macro", "checked", "proposed", "staged")
    }
    params = entry.get("params")
    values = params if isinstance(params, dict) else {}
    rule = Rule(
        **texts,
        params={str(key): str(value) for key, value in values.items()},
        alone=entry.get("alone") is True,
        started=_started(entry.get("started")),
    )
    try:
        check(rule)
    except ConfigError:
        return None
    return rule


def _started(entry: object) -> StartedRun | None:
    try:
        return convert(entry, StartedRun | None)
    except ValidationError:
        return None


def check(rule: Rule) -> None:
    """Raise `ConfigError` for a rule that cannot work."""
    if _NAME.fullmatch(rule.name) is None or rule.name != rule.name.strip():
        raise ConfigError("A rule needs a name of one line, at most 80 characters.")
    if bool(rule.recipe) == bool(rule.macro):
        raise ConfigError("A rule needs a recipe or a macro: --recipe NAME or --macro NAME.")
    if bool(rule.cron) == bool(rule.notes):
        raise ConfigError("A rule needs a time or notes: --at CRON or --notes QUERY.")
    if rule.recipe:
        _check_recipe(rule)
    if rule.cron:
        next(times(rule.cron, datetime(2026, 1, 1).astimezone()), None)


def _check_recipe(rule: Rule) -> None:
    recipe = recipe_named(rule.recipe, packaged())
    if recipe is None:
        raise ConfigError(
            f"There is no recipe “{rule.recipe}”.", hint="See: obsidian-agent recipe list."
        )
    if recipe.answer is not None:
        raise ConfigError(f"“{recipe.title}” answers a question and changes nothing.")
    values = rule.values()
    if unknown := sorted(values.keys() - recipe.inputs.keys()):
        raise ConfigError(
            f"“{recipe.title}” has no input “{unknown[0]}”; it has {', '.join(recipe.inputs)}.",
            hint="Let it run at a time." if unknown == ["notes"] else None,
        )
    if missing := recipe.missing(values):
        raise ConfigError(
            f"“{recipe.title}” needs a value for {missing[0]}.",
            hint=f"On the command line: --param {missing[0]}=VALUE.",
        )


def times(cron: str, after: datetime) -> Iterator[datetime]:
    """Yield the times of cron fields after a moment, in the moment's time zone.

    As in Debian's cron, a time that daylight saving skips fires right after the change, and one
    that it repeats fires once. Raises `ConfigError` for invalid fields.
    """
    from cronsim import CronSim, CronSimError

    try:
        yield from CronSim(cron, after)
    except CronSimError as error:
        raise ConfigError(
            f"“{cron[:40]}” is not a time: {error}.",
            hint="Five fields: minute hour day month weekday, as in 0 7 * * mon-fri.",
        ) from error


def local_zone() -> tzinfo:
    """Return the time zone of this machine, with its daylight saving."""
    from tzlocal import get_localzone

    return get_localzone()


def is_due(rule: Rule, now: datetime) -> bool:
    """Return whether a rule is to be looked at.

    A rule of notes always is; a rule of times, if one has passed since it was last looked at.
    """
    if not rule.cron:
        return True
    if not rule.checked:
        return False
    checked = datetime.fromisoformat(rule.checked).astimezone(now.tzinfo)
    following = next(times(rule.cron, checked), None)
    return following is not None and following <= now


class RuleRunner:
    """The rules of one vault at work. Every method may block."""

    def __init__(
        self, store: RuleStore, plans: WaitingPlans, session: Session, clock: Callable[[], datetime]
    ) -> None:
        self._store = store
        self._plans = plans
        self._session = session
        self._clock = clock

    @property
    def store(self) -> RuleStore:
        """The rules."""
        return self._store

    def run(self, name: str | None = None, *, notes: bool = True) -> list[RuleOutcome]:
        """Look at the rules that are due, or at the given one, and let their plans wait.

        Without `notes` only those of times are looked at, because the vault has not changed.
        """
        outcomes: list[RuleOutcome] = []
        with self._store.running():
            rules = self._after_kill()
            for rule in rules:
                now = self._clock()
                if name is None and not rule.cron and not notes:
                    continue
                if name is None and not is_due(rule, now):
                    if _counts_from_now(rule, now):
                        checked = now.isoformat(timespec="seconds")
                        self._store.record(replace(rule, checked=checked))
                elif name in (None, rule.name):
                    outcome, proposed = self._propose(rule, now)
                    plan_id = "" if outcome.plan is None else outcome.plan.id
                    checked = _looked_at(rule, now)
                    self._store.record(
                        replace(rule, checked=checked, proposed=proposed, staged=plan_id)
                    )
                    self._plans.publish(plan_id)
                    outcomes.append(outcome)
                    self._store.log(now, rule, outcome)
        return outcomes

    def _after_kill(self) -> list[Rule]:
        """Finish what a killed process left, and return the rules.

        A plan that was recorded waits now; another one is proposed again. A run that did not start,
        or that was rolled back, is due again.
        """
        rules = self._store.all()
        for rule in rules:
            self._plans.publish(rule.staged)
            if rule.started is not None:
                has_run = self._has_run(rule.started)
                checked = rule.checked if has_run else rule.started.checked
                self._store.record(replace(rule, checked=checked, started=None))
        self._plans.discard_staged()
        return self._store.all()

    def _has_run(self, started: StartedRun) -> bool:
        later = takewhile(
            lambda entry: entry.run_id != started.after, self._session.runs.history(LOG_LINES)
        )
        return any(
            entry.goal == started.goal
            and (entry.status == "applying" or not entry.effects.is_empty)
            for entry in later
        )

    def _run_alone(self, rule: Rule, preview: Preview, now: datetime) -> ExecutionResult:
        """Run a plan without approval, recorded before and after: it never runs twice."""
        last = next(iter(self._session.runs.history(1)), None)
        started = StartedRun(
            after="" if last is None else last.run_id,
            goal=preview.plan.goal,
            checked=rule.checked,
        )
        self._store.record(replace(rule, checked=_looked_at(rule, now), started=started))
        return self._session.plans.apply(preview, lambda event: None, threading.Event(), "settings")

    def trial(self, rule: Rule, days: int = 30) -> list[tuple[datetime, Preview | Problem]]:
        """Return what a rule would have proposed in the last days, for the vault as it is now.

        A rule of notes proposes once, now. Of a rule of times the last `MAX_TRIALS` are tried.
        """
        now = self._clock()
        if not rule.cron:
            return [(now, self._preview(rule, now))]
        due = takewhile(lambda moment: moment <= now, times(rule.cron, now - timedelta(days=days)))
        moments = deque(due, maxlen=MAX_TRIALS)
        return [(moment, self._preview(rule, moment)) for moment in moments]

    def _propose(self, rule: Rule, now: datetime) -> tuple[RuleOutcome, str]:
        """Return the outcome of a rule, and the hash of the plan that it proposed last."""
        preview = self._preview(rule, now)
        if isinstance(preview, Problem):
            proposed = "" if preview.code == _NO_PLAN else rule.proposed
            return RuleOutcome(rule.name, reason=preview.sentence), proposed
        if not preview.change_set.changes:
            return RuleOutcome(rule.name, reason="Nothing would change."), ""
        if rule.alone and _may_run_alone(preview):
            result = self._run_alone(rule, preview, now)
            if result.success:
                reason = f"{preview.plan.goal}: done without asking."
                return RuleOutcome(rule.name, reason=reason, run_id=result.run_id), ""
        plan_hash = preview.plan_hash or ""
        earlier = [plan for plan in self._plans.all() if plan.source == rule.source]
        others = [plan for plan in earlier if plan.plan_hash != plan_hash]
        contained = [plan for plan in others if contains(preview, plan, self._session.plans)]
        if len(others) < len(earlier):
            return RuleOutcome(rule.name, reason="The same plan waits already."), plan_hash
        if rule.proposed == plan_hash and not rule.cron:
            return RuleOutcome(rule.name, reason="You dropped this plan."), rule.proposed
        waiting = self._plans.add(
            document_with_values(preview),
            source=rule.source,
            now=now,
            result=result_of(preview),
            replaces=sum(1 + plan.replaces for plan in contained),
            staged=True,
        )
        for plan in contained:
            self._plans.drop(plan.id)
        return RuleOutcome(rule.name, waiting), plan_hash

    def _preview(self, rule: Rule, now: datetime) -> Preview | Problem:
        try:
            document = self._document(rule, now)
            if isinstance(document, Problem):
                return document
            preview = self._session.plans.dry_run(
                document, options=PreviewOptions(now=now, agent=rule.source)
            )
        except PlanError as error:
            return error.problems[0] if error.problems else error.problem()
        except MissingInput as error:
            return Problem("NEEDS_INPUT", error.message)
        except ObsidianAgentError as error:
            return error.problem()
        return preview.errors[0] if preview.errors else preview

    def _document(self, rule: Rule, now: datetime) -> Mapping[str, Any] | Problem:
        """Return the plan of a rule, with its values bound as of `now`, or why there is none."""
        if rule.macro:
            macro = self._session.saved.get(rule.macro)
            if not macro.trusted:
                return Problem("MACRO_UNTRUSTED", f"The macro {rule.macro} is not trusted.")
            document: dict[str, Any] = dict(macro.for_values(rule.params))
            parameters = {key: dict(value) for key, value in document.get("parameters", {}).items()}
            for name, value in rule.params.items():
                parameters.setdefault(name, {})["default"] = value
            return document | {"parameters": parameters}
        recipe = recipe_named(rule.recipe, packaged())
        if recipe is None:
            return Problem("RECIPE_NOT_FOUND", f"There is no recipe “{rule.recipe}”.")
        request = self._session.request("")
        request = replace(request, context=replace(request.context, now=now))
        verdict = self._session.offline.turn(request).propose(recipe, rule.values())
        if isinstance(verdict, PlanReady):
            return verdict.plan.to_json()
        if isinstance(verdict, Answer):
            return Problem(_NO_PLAN, verdict.text)
        message = getattr(verdict, "message", "")
        problem = getattr(verdict, "problem", None)
        return problem if isinstance(problem, Problem) else Problem("NEEDS_INPUT", message)


def _may_run_alone(preview: Preview) -> bool:
    """Return whether the policy lets a plan run without a question, and it deletes nothing."""
    return (
        preview.approval.decision == "allow"
        and not preview.deferred
        and not preview.discloses
        and all(change.kind != "delete" for change in preview.change_set.changes)
    )


def _counts_from_now(rule: Rule, now: datetime) -> bool:
    """Return whether the times of a rule count from now: it is new, or the clock was wrong."""
    return not rule.checked or datetime.fromisoformat(rule.checked) > now + MAX_BACK


def _looked_at(rule: Rule, now: datetime) -> str:
    """Return the time after which the next one of a rule counts.

    It does not go back with the clock, so that no time counts twice.
    """
    if not _counts_from_now(rule, now) and datetime.fromisoformat(rule.checked) > now:
        return rule.checked
    return now.isoformat(timespec="seconds")
