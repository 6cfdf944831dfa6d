"""Hooks: what the person, or a program this one is part of, wants to hear of, and may stop before it happens.

A hook is a command of the person's own settings (never of a vault), or a function. It gets one JSON object, on standard input or as its
argument, with `event`, `vault` and what is told below; it changes nothing, and what it writes goes to the log.

| event | told besides |
|---|---|
| before_prompt, after_prompt | message; then `outcome`: answer, plan, question, failed |
| before_plan, after_plan | plan, as it is about to be previewed; then planHash, valid, `summary` as `preview --json` has it |
| before_run, after_run | planHash, plan, summary; then runId, status, effects, errors |
| error | code, message, path of what went wrong |

`before_run` has to agree: a command by ending with 0, a function by returning. Whatever else happens (an error, a command that is not there or
takes too long) stops the run, and stops nothing anywhere else.
"""

from __future__ import annotations

import json
import logging
import os
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from obsidian_agent.config.settings import HookEvent
from obsidian_agent.dataclass import dataclass, field
from obsidian_agent.errors import Problem

TIMEOUT: Final = 30.0
"""Seconds that a command has; then it is ended, with what it started. A person waits for it."""
MOST_LINES: Final = 20
"""Lines of a command's output that go to the log: it is for what went wrong."""

Listener = Callable[[Mapping[str, Any]], object]

log = logging.getLogger(__name__)
log.setLevel(logging.INFO)
log.addHandler(logging.NullHandler())  # never to the screen


@dataclass(frozen=True, slots=True)
class Hooks:
    """The hooks of one vault. `commands` are those of the settings as they are now. Methods may block."""

    vault: str
    commands: Callable[[], Mapping[HookEvent, Sequence[str]]]
    listeners: list[tuple[HookEvent, Listener]] = field(default_factory=list)
    reporters: list[Callable[[Problem], object]] = field(default_factory=list)
    """Called with the failure of a hook that stops nothing."""

    def on(self, event: HookEvent, listener: Listener) -> None:
        """Have a function of this program called."""
        self.listeners.append((event, listener))

    def fire(self, event: HookEvent, **told: Any) -> tuple[Problem, ...]:
        """Run the hooks of an event. Return the objections, which only `before_run` has; other failures are reported."""
        command, listeners = (
            self.commands().get(event),
            [each for name, each in self.listeners if name == event],
        )
        if not command and not listeners:
            return ()
        text = json.dumps(
            {"event": event, "vault": self.vault, **told}, ensure_ascii=False, default=str
        )
        reasons = [self._run(command, text)] if command else []
        for listener in listeners:
            try:
                listener(json.loads(text))
                reasons.append(None)
            except Exception as error:
                log.warning("a function for %s failed", event, exc_info=True)
                reasons.append(str(error) or type(error).__name__)
        failures = [reason for reason in reasons if reason is not None]
        if event == "before_run":
            return tuple(
                Problem("HOOK_REFUSED", f"Your hook {event} did not agree: {reason}")
                for reason in failures
            )
        for reason in failures:
            for report in self.reporters:
                report(Problem("HOOK_FAILED", f"Your hook {event} failed: {reason}"))
        return ()

    def failed(self, problem: Problem) -> None:
        """Tell that something went wrong."""
        self.fire("error", code=problem.code, message=problem.message, path=problem.path)

    def _run(self, command: Sequence[str], text: str) -> str | None:
        """Why a command did not agree; None when it did. Files instead of pipes: nobody is waited for who keeps one open."""
        from obsidian_agent.child_process import end_group, runnable

        program = command[0]
        environment = {name: value for name, value in os.environ.items() if "API_KEY" not in name}
        with tempfile.TemporaryFile() as told, tempfile.TemporaryFile() as said:
            told.write(text.encode("utf-8", "backslashreplace"))
            told.seek(0)
            try:
                process = subprocess.Popen(  # noqa: S603  the person's own command, without a shell
                    runnable(command),
                    stdin=told,
                    stdout=said,
                    stderr=subprocess.STDOUT,
                    cwd=Path(self.vault).anchor,
                    env=environment,
                    start_new_session=True,
                )
            except OSError as error:
                log.warning("the hook %s cannot be started: %s", program, error)
                return f"{program} cannot be started ({error.strerror or type(error).__name__})."
            code: int | None = None
            try:
                code = process.wait(TIMEOUT)
            except subprocess.TimeoutExpired:
                pass
            finally:
                if code is None:
                    end_group(process.pid, force=True)
                    process.wait()
            said.seek(0)
            lines = (
                said.read(MOST_LINES * 1000).decode("utf-8", "replace").splitlines()[:MOST_LINES]
            )
        ended = f"ended with {code}" if code is not None else f"was ended after {TIMEOUT:.0f} s"
        for line in (f"the hook {program} {ended}", *lines):
            log.log(logging.INFO if code == 0 else logging.WARNING, "%s", line)
        return None if code == 0 else f"{program} {ended}{f': {lines[-1][:200]}' if lines else '.'}"
