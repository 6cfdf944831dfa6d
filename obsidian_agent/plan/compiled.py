"""A step with its references found: what validation judges and the dry run resolves."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from obsidian_agent.errors import ToolError
from obsidian_agent.plan.grammar import Malformed, Reference
from obsidian_agent.plan.marks import NO_MARKS, ArgMarks
from obsidian_agent.plan.model import Step
from obsidian_agent.plan.references import Scope, Template, compile_value

_BARE_STEPS = re.compile(r"steps\.[\w.\[\]|:-]+")


@dataclass(frozen=True, slots=True)
class CompiledStep:
    """The three places of a step where references stand: `source` is `foreach.from`, None without a foreach."""

    step: Step
    args: Template
    when: Template
    source: Template | None = None

    def templates(self) -> Iterator[tuple[str, Template]]:
        """Each template with the path of its field inside the step."""
        if self.source is not None:
            yield "foreach/from", self.source
        yield "when", self.when
        yield "args", self.args

    @property
    def references(self) -> tuple[Reference, ...]:
        """Every reference of the step."""
        return tuple(each for _, template in self.templates() for each in template.references)

    @property
    def malformed(self) -> tuple[Malformed, ...]:
        """Everything that only looks like a reference."""
        return tuple(each for _, template in self.templates() for each in template.malformed)

    def items(self, scope: Scope) -> list[Any]:
        """The list that the foreach runs over. ToolError REFERENCE_ERROR when it is none, TRUNCATED_LIST when it was cut short."""
        assert self.source is not None
        assert self.step.foreach is not None
        found = self.source.resolve(scope)
        written = self.step.foreach.from_
        if not isinstance(found, list):
            raise ToolError(f"foreach.from is not an array: {written}", code="REFERENCE_ERROR")
        reference = self.source.single
        if reference is not None and any(isinstance(each, dict) and each.get("hasMore") is True for each in scope.containers(reference)):
            raise ToolError(
                f"{written} was cut short (hasMore): the plan would run over a part of the list.",
                code="TRUNCATED_LIST",
                hint="Leave out limit and offset of that step.",
            )
        return found


def compile_step(step: Step, marks: ArgMarks = NO_MARKS) -> CompiledStep:
    """The step with its templates; `marks` are those of its tool's input."""
    source = None
    if step.foreach is not None:
        written = step.foreach.from_
        bare = isinstance(written, str) and _BARE_STEPS.fullmatch(written)
        source = compile_value(f"${written}" if bare else written)
    return CompiledStep(step, compile_value(step.args, marks), compile_value(step.when), source)
