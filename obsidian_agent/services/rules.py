"""Rules that propose: at a time, or when the result would be new, a recipe or macro becomes a plan.

A rule never writes. What it comes to is a plan that waits for the user. A time that was missed,
because the machine was off, is caught up once; a clock that goes back proposes nothing twice.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime, timedelta, tzinfo
from pathlib import Path
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from obsidian_agent.agent.events import PlanReady
from obsidian_agent.errors import ConfigError, ObsidianAgentError, PlanError, Problem
from obsidian_agent.offline.recipe import packaged, recipe_named
from obsidian_agent.plan.parameters import MissingInput
from obsidian_agent.plan.result import Preview
from obsidian_agent.services.plans import PreviewOptions
from obsidian_agent.services.session import Session
from obsidian_agent.services.waiting_plans import WaitingPlan, WaitingPlans
from obsidian_agent.state_files import append_json, replace_file

_FILE: Final = "rules.json"
_LOG: Final = "rules.log"
_NAME: Final = re.compile(r"[^\x00-\x1f\x7f]{1,80}")
MAX_RULES: Final = 100


class Rule(Struct, frozen=True, kw_only=True):
    """A rule of one vault.

    `cron` are the five fields of a time, "" for a rule that looks at its notes whenever the vault
    changed. `notes` is the set of notes as recipes take it. `recipe` or `macro` is its name, the
    other is "". `checked` is when it was last looked at (ISO 8601), `proposed` the hash of the plan
    that it proposed last.
    """

    name: str
    cron: str = ""
    notes: str = ""
    recipe: str = ""
    macro: str = ""
    params: Mapping[str, str]
    checked: str = ""
    proposed: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return the rule as `rule list --json` prints it."""
        when = {"at": self.cron} if self.cron else {"notes": self.notes}
        then = {"recipe": self.recipe} if self.recipe else {"macro": self.macro}
        return {
            "name": self.name,
            "when": when,
            "then": then | {"params": dict(self.params)},
            "last": self.checked or None,
        }

    def values(self) -> dict[str, str]:
        """Return the values of the recipe, with the rule's notes unless it names others."""
        values = dict(self.params)
        if self.notes:
            values.setdefault("notes", self.notes)
        return values


class RuleOutcome(Struct, frozen=True):
    """The outcome of a rule: a plan that waits, or the reason why there is none."""

    rule: str
    plan: WaitingPlan | None = None
    reason: str = ""


class RuleStore:
    """The rules of one vault, in a file of the state folder, and their log."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / _FILE
        self._log = folder / _LOG

    def all(self) -> list[Rule]:
        """Return the rules in the order of their names. Damaged entries are left out."""
        try:
            document = json.loads(self._file.read_bytes())
        except (OSError, ValueError):
            return []
        entries = document.get("rules") if isinstance(document, dict) else None
        rules = [_rule(entry) for entry in entries or () if isinstance(entry, dict)]
        return sorted(filter(None, rules), key=lambda rule: rule.name)

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
        rules = [other for other in self.all() if other.name != rule.name]
        if len(rules) >= MAX_RULES:
            raise ConfigError(f"A vault has at most {MAX_RULES} rules.")
        self._write([*rules, rule])

    def remove(self, name: str) -> None:
        """Remove a rule. Raises `ConfigError` RULE_NOT_FOUND, OSError."""
        rule = self.get(name)
        self._write([other for other in self.all() if other.name != rule.name])

    def log(self, now: datetime, outcome: RuleOutcome) -> None:
        """Log the outcome of a rule. Write errors are ignored."""
        entry = {
            "time": now.isoformat(timespec="seconds"),
            "rule": outcome.rule,
            "plan": outcome.plan.id if outcome.plan is not None else None,
            "text": outcome.plan.goal if outcome.plan is not None else outcome.reason,
        }
        with contextlib.suppress(OSError):
            append_json(self._log, [entry])

    def _write(self, rules: list[Rule]) -> None:
        entries = [
            {
                "name": rule.name,
                "cron": rule.cron,
                "notes": rule.notes,
                "recipe": rule.recipe,
                "macro": rule.macro,
                "params": dict(rule.params),
                "checked": rule.checked,
                "proposed": rule.proposed,
            }
            for rule in rules
        ]
        text = json.dumps({"version": 1, "rules": entries}, ensure_ascii=False, indent=1)
        replace_file(self._file, text.encode("utf-8", "surrogatepass"))


def _rule(entry: Mapping[str, Any]) -> Rule | None:
    texts = {
        name: str(entry.get(name) or "")
        for name in ("name", "cron", "notes", "recipe", "macro", "checked", "proposed")
    }
    params = entry.get("params")
    values = params if isinstance(params, dict) else {}
    rule = Rule(**texts, params={str(key): str(value) for key, value in values.items()})
    try:
        check(rule)
    except ConfigError:
        return None
    return rule


def check(rule: Rule) -> None:
    """Raise `ConfigError` for a rule that cannot work."""
    if _NAME.fullmatch(rule.name) is None or rule.name != rule.name.strip():
        raise ConfigError("A rule needs a name of one line, at most 80 characters.")
    if bool(rule.recipe) == bool(rule.macro):
        raise ConfigError("A rule needs a recipe or a macro: --recipe NAME or --macro NAME.")
    if bool(rule.cron) == bool(rule.notes):
        raise ConfigError("A rule needs a time or notes: --at CRON or --notes QUERY.")
    if rule.recipe and recipe_named(rule.recipe, packaged()) is None:
        raise ConfigError(
            f"There is no recipe “{rule.recipe}”.", hint="See: obsidian-agent recipe list."
        )
    if rule.cron:
        next(times(rule.cron, datetime(2026, 1, 1).astimezone()), None)


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

    def run(self, name: str | None = None) -> list[RuleOutcome]:
        """Look at the rules that are due, or at the given one, and let their plans wait."""
        now = self._clock()
        outcomes: list[RuleOutcome] = []
        for rule in self._store.all():
            if name is None and not is_due(rule, now):
                self._store.put(replace(rule, checked=_moment(now)))
                continue
            if name in (None, rule.name):
                outcome, proposed = self._propose(rule, now)
                self._store.put(replace(rule, checked=_moment(now), proposed=proposed))
                outcomes.append(outcome)
                self._store.log(now, outcome)
        return outcomes

    def trial(self, rule: Rule, days: int = 30) -> list[tuple[datetime, Preview | Problem]]:
        """Return what a rule would have proposed in the last days, for the vault as it is now.

        A rule of notes proposes once, now.
        """
        now = self._clock()
        if not rule.cron:
            return [(now, self._preview(rule, now))]
        moments: list[datetime] = []
        for moment in times(rule.cron, now - timedelta(days=days)):
            if moment > now or len(moments) >= MAX_RULES:
                break
            moments.append(moment)
        return [(moment, self._preview(rule, moment)) for moment in moments]

    def _propose(self, rule: Rule, now: datetime) -> tuple[RuleOutcome, str]:
        """Return the outcome of a rule, and the hash of the plan that it proposed last."""
        preview = self._preview(rule, now)
        if isinstance(preview, Problem):
            return RuleOutcome(rule.name, reason=preview.message), rule.proposed
        if not preview.change_set.changes:
            return RuleOutcome(rule.name, reason="Nothing would change."), ""
        source = f"rule “{rule.name}”"
        plan_hash = preview.plan_hash or ""
        earlier = [plan for plan in self._plans.all() if plan.source == source]
        if any(plan.plan_hash == plan_hash for plan in earlier):
            return RuleOutcome(rule.name, reason="The same plan waits already."), plan_hash
        if rule.proposed == plan_hash:
            return RuleOutcome(rule.name, reason="You dropped this plan."), rule.proposed
        waiting = self._plans.add(
            preview.approved_plan.to_json(),
            source=source,
            now=now,
            plan_hash=plan_hash,
            changes=len(preview.change_set.changes),
        )
        for plan in earlier:
            self._plans.drop(plan.id)
        return RuleOutcome(rule.name, waiting), plan_hash

    def _preview(self, rule: Rule, now: datetime) -> Preview | Problem:
        try:
            document = self._document(rule)
            if isinstance(document, Problem):
                return document
            preview = self._session.plans.dry_run(document, options=PreviewOptions(now=now))
        except PlanError as error:
            return error.problems[0] if error.problems else error.problem()
        except MissingInput as error:
            return Problem("NEEDS_INPUT", error.message)
        except ObsidianAgentError as error:
            return error.problem()
        return preview.errors[0] if preview.errors else preview

    def _document(self, rule: Rule) -> Mapping[str, Any] | Problem:
        """Return the plan of a rule, with its values bound, or why there is none."""
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
        offline = self._session.offline
        verdict = offline.turn(self._session.request("")).propose(recipe, rule.values())
        if isinstance(verdict, PlanReady):
            return verdict.plan.to_json()
        message = getattr(verdict, "message", "") or "The recipe answers and changes nothing."
        problem = getattr(verdict, "problem", None)
        return problem if isinstance(problem, Problem) else Problem("NO_PLAN", message)


def _moment(now: datetime) -> str:
    return now.isoformat(timespec="seconds")
