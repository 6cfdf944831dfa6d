"""Findings: the output of a plan that only reads, as lines of text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from obsidian_agent.plan.result import Preview
from obsidian_agent.tools.core.tool import Risk

MAX_LINES = 200
"""Maximum number of displayed lines of one step's output. A last line counts the others."""


def findings(approved: Preview, outputs: Mapping[str, Any]) -> list[tuple[str, list[str]]]:
    """Return the preview line and output lines of each step whose output no other step uses.

    A plan that changes files has no findings. The texts come from notes and models: front ends
    must make them safe to display.
    """
    if approved.risk is not Risk.READ_ONLY:
        return []
    used = {name for instance in approved.instances for name in instance.depends_on}
    return [
        (step.preview or step.tool, _truncated(list(_lines(outputs[step.id]))))
        for step in approved.plan.steps
        if step.id not in used and outputs.get(step.id) is not None
    ]


def _truncated(lines: list[str]) -> list[str]:
    more = len(lines) - MAX_LINES
    if more <= 0:
        return lines
    return [*lines[:MAX_LINES], f"… and {more:,} more lines."]


def _lines(value: Any, indent: str = "") -> Iterator[str]:
    """Yield the lines of a value: list items with `-`, fields as `name: value`."""
    match value:
        case list() if not value:
            yield f"{indent}nothing"
        case list():
            for item in value:
                first, *rest = _lines(item, "")
                yield f"{indent}- {first}"
                yield from (f"{indent}  {line}" for line in rest)
        case Mapping() if not value:
            yield f"{indent}nothing"
        case Mapping():
            for name, item in value.items():
                lines = list(_lines(item, ""))
                if len(lines) == 1 and not (isinstance(item, list | Mapping) and item):
                    yield f"{indent}{name}: {lines[0]}"
                else:
                    yield f"{indent}{name}:"
                    yield from (f"{indent}  {line}" for line in lines)
        case bool():
            yield f"{indent}{'yes' if value else 'no'}"
        case None:
            yield f"{indent}nothing"
        case _:
            yield from (f"{indent}{line}" for line in str(value).split("\n"))
