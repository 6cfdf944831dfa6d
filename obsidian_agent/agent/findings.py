"""What a plan that only reads has found, in words: the outputs of the steps that no other step goes on with."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from obsidian_agent.plan.result import Preview
from obsidian_agent.tools.base import Risk

MOST_LINES = 200
"""Of one step; how many more there are is told."""


def findings(approved: Preview, outputs: Mapping[str, Any]) -> list[tuple[str, list[str]]]:
    """For each such step what it does and the lines of its output; none for a plan that changes something.

    The texts come from notes and models: front ends make them safe to show.
    """
    if approved.risk is not Risk.READ_ONLY:
        return []
    used = {name for instance in approved.instances for name in instance.depends_on}
    return [
        (step.preview or step.tool, _cut(list(_lines(outputs[step.id]))))
        for step in approved.plan.steps
        if step.id not in used and outputs.get(step.id) is not None
    ]


def _cut(lines: list[str]) -> list[str]:
    more = len(lines) - MOST_LINES
    return lines if more <= 0 else [*lines[:MOST_LINES], f"… and {more:,} more lines."]


def _lines(value: Any, indent: str = "") -> Iterator[str]:
    """Lists as items, objects as their fields, texts of several lines below their name."""
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
            for name, each in value.items():
                lines = list(_lines(each, ""))
                if len(lines) == 1 and not (isinstance(each, list | Mapping) and each):
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
