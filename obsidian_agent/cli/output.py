"""What goes to standard output and standard error: one JSON document, or lines for people with foreign text made harmless."""

from __future__ import annotations

import errno
import json
import re
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from obsidian_agent.agent.events import ExecutionResult
from obsidian_agent.errors import AnswerNotWritten, Problem
from obsidian_agent.plan.result import Preview
from obsidian_agent.tui.sanitize import block

# JSON leaves these as they are, and a terminal would obey them; escaped they are the same document.
_CONTROL = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


@dataclass(frozen=True, slots=True)
class Output:
    """Where a command's answer goes; with `as_json` nothing but one document reaches standard output."""

    as_json: bool
    verbose: bool = False

    def document(self, document: Any) -> None:
        """The command's JSON document."""
        text = json.dumps(document, ensure_ascii=False, indent=2 if sys.stdout is not None and sys.stdout.isatty() else None)
        _write(_CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", text) + "\n")

    def line(self, text: str = "") -> None:
        """A line for people; nothing in JSON mode."""
        if not self.as_json:
            _write(block(text) + "\n")

    def note(self, text: str) -> None:
        """A remark on standard error."""
        if sys.stderr is not None:
            print(block(text), file=sys.stderr)

    def problems(self, problems: Iterable[Problem]) -> None:
        """Problems for people, one a line, with their place."""
        for problem in problems:
            place = " ".join(part for part in (problem.instance or problem.step_id, problem.path) if part)
            self.note(f"{problem.code}{f' ({place})' if place else ''}: {problem.message}")


def _write(text: str) -> None:
    """Write to standard output at once, so that a full disk or a closed pipe is noticed while somebody can still be told."""
    try:
        if sys.stdout is None:
            raise OSError(errno.EBADF, "standard output is closed")
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        told = f"The answer could not be written ({error.strerror or error}). What was done stays done: see obsidian-agent history."
        raise AnswerNotWritten(told) from error


SIGNS = {"create": "+", "modify": "~", "delete": "-", "rename": ">", "mkdir": "+"}
WORDS = {"create": "create", "modify": "modify", "delete": "delete", "rename": "rename", "mkdir": "new folder"}


def preview_lines(preview: Preview, diffs: Sequence[str]) -> list[str]:
    """A preview for people: goal, risk, flags, every change and its diff."""
    lines = [f"Goal: {preview.plan.goal}", f"Risk: {preview.risk.value}"]
    lines.extend(f"Assumes: {text}" for text in preview.plan.assumptions)
    lines.extend(f"Note: {flag.path + ': ' if flag.path else ''}{flag.detail}" for flag in preview.flags)
    lines.append("")
    for change, diff in zip(preview.change_set.changes, diffs, strict=True):
        target = f" -> {change.new_path}" if change.new_path is not None else ""
        folder = "/" if change.folder else ""
        lines.append(f"{SIGNS[change.kind]} {WORDS[change.kind]} {change.path}{folder}{target}")
        if diff:
            lines.append(diff.rstrip("\n"))
    if not preview.change_set.changes:
        lines.append("Nothing would change.")
    return lines


def result_lines(result: ExecutionResult) -> list[str]:
    """How a run ended, for people."""
    effects = result.effects
    counts = [
        (len(effects.created), "created"),
        (len(effects.modified), "modified"),
        (len(effects.deleted), "moved to .trash"),
        (len(effects.renamed), "renamed"),
        (len(effects.folders), "new folders"),
        (len(effects.commands), "commands run"),
    ]
    told = ", ".join(f"{count} {word}" for count, word in counts if count) or "nothing changed"
    lines = [f"{result.status}: {result.completed_steps} of {result.total_steps} steps, {told}."]
    if result.undo_available:
        lines.append(f"Undo with: obsidian-agent undo {result.run_id}")
    return lines
