"""ActionPlan, version 1.0: the one document between a model, a saved macro, a person with an editor, and the executor; with its schema."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, Field, StringConstraints

from obsidian_agent.tools.core.models import WHOLE, ToolModel
from obsidian_agent.tools.core.tool import Tool

MAX_STEPS = 100
"""Steps of a plan: more than a person reads before approving."""
MAX_INSTANCES = 10_000
"""Rounds of all steps together: what a person can still look through by groups, and a preview holds in memory."""
DEFAULT_RETRY_ATTEMPTS = 3
DEFAULT_BACKOFF_MS = 250
MAX_BACKOFF_MS = 30_000
"""Tries of a step with `onError: retry`, milliseconds before the first of them again, and the longest pause."""

_REFERENCE = re.compile(r"\$\{[^{}]*\}|\$(?:steps|vars)\.[\w.]+")

Identifier = Annotated[str, StringConstraints(pattern=r"^[A-Za-z][A-Za-z0-9_]*$")]
OnError = Literal["stop", "skip", "retry"]
RiskLevel = Literal["read-only", "writes", "commands"]
ParameterType = Literal["text", "number", "boolean", "date", "path", "list"]


DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"


class Retry(ToolModel):
    """How often a step is tried when its error is retryable; the delay doubles from `backoffMs` up to 30 s, with jitter."""

    max_attempts: Annotated[int, Field(ge=1, le=5), WHOLE] = 1
    backoff_ms: Annotated[int, Field(ge=0, le=MAX_BACKOFF_MS), WHOLE] = DEFAULT_BACKOFF_MS


class Defaults(ToolModel):
    """What holds for steps that don't say."""

    on_error: OnError | None = None
    retry: Retry | None = None


class Parameter(ToolModel):
    """A declared input of a plan."""

    description: str | None = None
    type: ParameterType = "text"
    default: Any = None


class Foreach(ToolModel):
    """Run the step once for each item of a list: a reference, or the list itself."""

    from_: Annotated[str | list[Any], Field(alias="from")]
    item_name: Identifier
    index_name: Identifier = "index"


class Step(ToolModel):
    """One call of one tool."""

    id: Identifier
    tool: str
    args: dict[str, Any]
    preview: str | None = None
    foreach: Foreach | None = None
    when: Any = True
    depends_on: list[str] = Field(default_factory=list)
    on_error: OnError | None = None
    retry: Retry | None = None
    capture_as: Identifier | None = None

    @property
    def title(self) -> str:
        """The preview line with “…” for each reference, else the name of the tool."""
        return _REFERENCE.sub("…", self.preview or "") or self.tool


class ActionPlan(ToolModel):
    """The whole document."""

    version: Literal["1.0"]
    goal: str
    assumptions: list[str] = Field(default_factory=list)
    risk_level: RiskLevel
    defaults: Defaults = Field(default_factory=Defaults)
    parameters: dict[str, Parameter] = Field(default_factory=dict)
    steps: Annotated[list[Step], Field(max_length=MAX_STEPS)]

    def on_error(self, step: Step) -> OnError:
        """Precedence: step, defaults, stop."""
        return step.on_error or self.defaults.on_error or "stop"

    def retry(self, step: Step) -> Retry:
        """The retry policy of a step; `onError: retry` without one means three attempts."""
        given = step.retry or self.defaults.retry
        if given is not None:
            return given
        return Retry(max_attempts=DEFAULT_RETRY_ATTEMPTS if self.on_error(step) == "retry" else 1)

    def to_json(self) -> dict[str, Any]:
        """The plan as a JSON document, without fields that say nothing."""
        return self.model_dump(mode="json", by_alias=True, exclude_defaults=True) | {
            "version": self.version
        }


def plan_schema() -> dict[str, Any]:
    """The schema of an ActionPlan."""
    return {"$schema": DIALECT, **ActionPlan.model_json_schema(by_alias=True)}


def tools_schema(tools: Iterable[Tool]) -> dict[str, Any]:
    """Every tool: name, summary, risk, whether it deletes, and the schemas of its input and output."""
    return {"$schema": DIALECT, "tools": [_tool_schema(tool) for tool in tools]}


def _tool_schema(tool: Tool) -> dict[str, Any]:
    return {
        "name": tool.name,
        "description": tool.summary,
        "riskLevel": tool.risk.value,
        "deletes": tool.deletes,
        "inputSchema": _model_schema(tool.input, "validation"),
        "outputSchema": _model_schema(tool.output, "serialization"),
    }


def _model_schema(model: type[BaseModel], mode: Any) -> dict[str, Any]:
    return model.model_json_schema(by_alias=True, mode=mode)
