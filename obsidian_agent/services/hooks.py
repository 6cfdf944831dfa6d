"""Hooks: commands or functions that are called on events. A hook for `before_run` can stop the run.

A hook is a command in the user's settings (never in a vault), or a function of an embedding
program. It receives one JSON object, on standard input or as its argument, with `event`, `vault`
and the fields below. It cannot change anything. The output of a command goes to the log.

| event | fields |
|---|---|
| before_prompt, after_prompt | message; then `outcome`: answer, plan, question, failed |
| before_plan, after_plan | plan; then planHash, valid, `summary` as in `preview --json` |
| before_run, after_run | planHash, plan, summary; then runId, status, effects, errors |
| plan_waiting | planId, source (who proposed it), goal, changes |
| error | code, message and path of the problem |

`before_run` must agree to the run: a command by exiting with 0, a function by returning. An error,
a missing command or a timeout stops the run. On other events failures have no effect but a report.
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

from msgspec import Struct, field

from obsidian_agent.config.settings import HookEvent
from obsidian_agent.errors import Problem

TIMEOUT: Final = 30.0
"""Seconds that a command may take, because the user waits; then its process group is killed."""
MAX_LINES: Final = 20
"""Lines of a command's output that are logged."""

Listener = Callable[[Mapping[str, Any]], object]

log = logging.getLogger(__name__)
log.setLevel(logging.INFO)
log.addHandler(logging.NullHandler())  # never to the screen


class Hooks(Struct, frozen=True):
    """The hooks of a vault. `commands` returns those of the current settings. Methods may block."""

    vault: str
    commands: Callable[[], Mapping[HookEvent, Sequence[str]]]
    listeners: list[tuple[HookEvent, Listener]] = field(default_factory=list)
    reporters: list[Callable[[Problem], object]] = field(default_factory=list)
    """Called with failures of hooks that cannot stop anything."""

    def on(self, event: HookEvent, listener: Listener) -> None:
        """Register a function for an event."""
        self.listeners.append((event, listener))

    def fire(self, event: HookEvent, **fields: Any) -> tuple[Problem, ...]:
        """Run the hooks of an event. Return the refusals of `before_run`; report other failures."""
        command = self.commands().get(event)
        listeners = [listener for name, listener in self.listeners if name == event]
        if not command and not listeners:
            return ()
        text = json.dumps(
            {"event": event, "vault": self.vault, **fields}, ensure_ascii=False, default=str
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
                Problem("HOOK_REFUSED", f"Your {event} hook refused the run: {reason}")
                for reason in failures
            )
        for reason in failures:
            for report in self.reporters:
                report(Problem("HOOK_FAILED", f"Your {event} hook failed: {reason}"))
        return ()

    def failed(self, problem: Problem) -> None:
        """Fire the `error` event."""
        self.fire("error", code=problem.code, message=problem.message, path=problem.path)

    def _run(self, command: Sequence[str], text: str) -> str | None:
        """Run a command. Return why it failed, or `None`.

        Its streams are files, because a pipe could be kept open by a process that it started.
        """
        from obsidian_agent.child_process import end_group, runnable

        program = command[0]
        environment = {name: value for name, value in os.environ.items() if "API_KEY" not in name}
        with tempfile.TemporaryFile() as stdin, tempfile.TemporaryFile() as output:
            stdin.write(text.encode("utf-8", "backslashreplace"))
            stdin.seek(0)
            try:
                # The user's own command, without a shell.
                process = subprocess.Popen(
                    runnable(command),
                    stdin=stdin,
                    stdout=output,
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
            output.seek(0)
            lines = output.read(MAX_LINES * 1000).decode("utf-8", "replace").splitlines()
        lines = lines[:MAX_LINES]
        end = f"exited with {code}" if code is not None else f"was killed after {TIMEOUT:.0f} s"
        for line in (f"the hook {program} {end}", *lines):
            log.log(logging.INFO if code == 0 else logging.WARNING, "%s", line)
        if code == 0:
            return None
        return f"{program} {end}: {lines[-1][:200]}" if lines else f"{program} {end}."
