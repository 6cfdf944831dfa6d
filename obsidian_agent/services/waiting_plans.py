"""The plans of clients, rules and `do --later` that wait for the approval of the user.

They are files of the state folder, one for each plan, so a plan that was proposed while the app was
closed is there when it opens.
"""

from __future__ import annotations

import contextlib
import json
import re
import secrets
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from obsidian_agent.errors import ConfigError
from obsidian_agent.state_files import replace_file
from obsidian_agent.terminal_text import counted

MAX_WAITING: Final = 100
"""Plans that wait at once; the oldest are dropped."""

KEPT_DAYS: Final = 30
"""Days that a plan waits; then it is dropped."""

_STAGED: Final = ".staged"
_ID: Final = re.compile(r"[0-9a-f]{12}")
_MAX_BYTES: Final = 8 << 20


class ProposedResult(Struct, frozen=True):
    """The result of a plan in the preview when it was proposed.

    `plan_hash` and `changes`, the number of changed paths, are None without a preview. `effects`
    describe each of its changes, for a comparison with a later preview.
    """

    plan_hash: str | None = None
    changes: int | None = None
    effects: tuple[str, ...] = ()


UNKNOWN_RESULT: Final = ProposedResult()


class WaitingPlan(Struct, frozen=True, kw_only=True):
    """A valid plan that waits.

    `source` says who proposed it ("" for the user), `created` is ISO 8601. `plan_hash`, `changes`
    and `effects` are those of its `ProposedResult`.
    `replaces` is the number of earlier plans that it took the place of, because it contains them.
    """

    id: str
    source: str
    goal: str
    created: str
    plan: Mapping[str, Any]
    plan_hash: str | None = None
    changes: int | None = None
    effects: tuple[str, ...] = ()
    replaces: int = 0

    @property
    def replacement(self) -> str:
        """The sentence about the plans that it replaces, "" without any."""
        if not self.replaces:
            return ""
        return f"Replaces {counted(self.replaces, 'earlier plan')}, which it contains"


class WaitingPlans:
    """The waiting plans of one vault. `on_add` is called with each new one."""

    def __init__(
        self, folder: Path, on_add: Callable[[WaitingPlan], object] = lambda plan: None
    ) -> None:
        self._folder = folder
        self._on_add = on_add

    def add(
        self,
        plan: Mapping[str, Any],
        *,
        source: str,
        now: datetime,
        result: ProposedResult = UNKNOWN_RESULT,
        replaces: int = 0,
        staged: bool = False,
    ) -> WaitingPlan:
        """Store a valid plan. A `staged` one waits once it is published. Raises OSError."""
        waiting = WaitingPlan(
            id=secrets.token_hex(6),
            source=source,
            goal=str(plan.get("goal", "")),
            created=now.isoformat(timespec="seconds"),
            plan=plan,
            plan_hash=result.plan_hash,
            changes=result.changes,
            effects=result.effects,
            replaces=replaces,
        )
        document = {
            "client": source,
            "created": waiting.created,
            "planHash": result.plan_hash,
            "changes": result.changes,
            "effects": result.effects,
            "replaces": replaces,
            "plan": plan,
        }
        file = self._staged(waiting.id) if staged else self._file(waiting.id)
        replace_file(file, json.dumps(document).encode("ascii"))
        if not staged:
            self._announce(waiting)
        return waiting

    def publish(self, plan_id: str) -> None:
        """Let a staged plan wait; one that waits already is fine. Raises OSError."""
        if _ID.fullmatch(plan_id) is None:
            return
        try:
            self._staged(plan_id).replace(self._file(plan_id))
        except FileNotFoundError:
            return
        waiting = self.find(plan_id)
        if waiting is not None:
            self._announce(waiting)

    def _announce(self, waiting: WaitingPlan) -> None:
        for old in self.all()[MAX_WAITING:]:
            self.drop(old.id)
        self._on_add(waiting)

    def discard_staged(self) -> None:
        """Remove the staged plans that were not published. Raises OSError."""
        for file in self._folder.glob(f"*{_STAGED}"):
            file.unlink(missing_ok=True)

    def expire(self, now: datetime) -> None:
        """Drop the plans that have waited for `KEPT_DAYS`. Raises OSError."""
        for plan in self.all():
            with contextlib.suppress(ValueError):
                created = datetime.fromisoformat(plan.created).astimezone(now.tzinfo)
                if now - created > timedelta(days=KEPT_DAYS):
                    self.drop(plan.id)

    @property
    def stamp(self) -> int:
        """A number that is another one after a plan came or went."""
        try:
            return self._folder.stat().st_mtime_ns
        except OSError:
            return 0

    def all(self) -> list[WaitingPlan]:
        """Return the waiting plans, the newest first. Damaged files are left out."""
        # Those of one second are in the order in which their files were written.
        files = sorted(self._folder.glob("*.json"), key=_time_written, reverse=True)
        plans = [self.find(file.stem) for file in files]
        known = [plan for plan in plans if plan is not None]
        return sorted(known, key=lambda plan: plan.created, reverse=True)

    def find(self, plan_id: str) -> WaitingPlan | None:
        """Return a waiting plan, or None."""
        if _ID.fullmatch(plan_id) is None:
            return None
        file = self._file(plan_id)
        try:
            if file.stat().st_size > _MAX_BYTES:
                return None
            document = json.loads(file.read_bytes())
            plan = document["plan"]
            plan_hash, changes = document.get("planHash"), document.get("changes")
            effects = document.get("effects") or ()
            replaces = document.get("replaces")
            return WaitingPlan(
                id=plan_id,
                source=str(document.get("client", "")),
                goal=str(plan.get("goal", "")),
                created=str(document.get("created") or _written(file)),
                plan=plan,
                plan_hash=plan_hash if isinstance(plan_hash, str) else None,
                changes=changes if isinstance(changes, int) else None,
                effects=tuple(str(effect) for effect in effects),
                replaces=replaces if isinstance(replaces, int) else 0,
            )
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return None

    def get(self, plan_id: str) -> WaitingPlan:
        """Return a waiting plan. Raises `ConfigError` PLAN_NOT_FOUND."""
        plan = self.find(plan_id)
        if plan is None:
            raise ConfigError(
                f"There is no waiting plan {plan_id[:40]} for this vault.",
                code="PLAN_NOT_FOUND",
                hint="See: obsidian-agent plans list.",
            )
        return plan

    def drop(self, plan_id: str) -> None:
        """Remove a plan; one that is gone already is fine. Raises OSError."""
        if _ID.fullmatch(plan_id) is not None:
            with contextlib.suppress(FileNotFoundError):
                self._file(plan_id).unlink()

    def _file(self, plan_id: str) -> Path:
        return self._folder / f"{plan_id}.json"

    def _staged(self, plan_id: str) -> Path:
        return self._folder / f"{plan_id}{_STAGED}"


def _time_written(file: Path) -> int:
    try:
        return file.stat().st_mtime_ns
    except OSError:
        return 0  # dropped meanwhile


def _written(file: Path) -> str:
    return datetime.fromtimestamp(file.stat().st_mtime).astimezone().isoformat(timespec="seconds")
