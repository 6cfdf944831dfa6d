"""The plan language, version 1.0: models of an ActionPlan and its JSON schema.

An ActionPlan is the one document that models, saved macros, text editors and the executor exchange.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, Field, StringConstraints

from obsidian_agent.plan.step_title import step_title
from obsidian_agent.tools.core.models import WHOLE, ToolModel
from obsidian_agent.tools.core.tool import Tool

MAX_STEPS = 100
"""The maximum number of steps: more than a user reads before approving."""
MAX_INSTANCES = 10_000
"""The maximum number of calls of a plan, which a preview holds in memory."""
DEFAULT_RETRY_ATTEMPTS = 3
"""Attempts of a step with `onError: retry` and no retry policy."""
DEFAULT_BACKOFF_MS = 250
"""Milliseconds before the second attempt."""
MAX_BACKOFF_MS = 30_000
"""The longest pause between two attempts, in milliseconds."""

Identifier = Annotated[str, StringConstraints(pattern=r"^[A-Za-z][A-Za-z0-9_]*$")]
OnError = Literal["stop", "skip", "retry"]
RiskLevel = Literal["read-only", "writes", "commands"]
ParameterType = Literal["text", "number", "boolean", "date", "path", "list"]


DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"


class Retry(ToolModel):
    """A retry policy for retryable errors.

    The delay doubles from `backoffMs` up to 30 s, with jitter.
    """

    max_attempts: Annotated[int, Field(ge=1, le=5), WHOLE] = 1
    backoff_ms: Annotated[int, Field(ge=0, le=MAX_BACKOFF_MS), WHOLE] = DEFAULT_BACKOFF_MS


class Defaults(ToolModel):
    """The settings of steps that have none of their own."""

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
    """A call of one tool."""

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
        """The preview line, else the tool and its main argument in words; “…” for references."""
        return step_title(self.tool, self.args, self.preview)


class ActionPlan(ToolModel):
    """A whole plan."""

    version: Literal["1.0"]
    goal: str
    assumptions: list[str] = Field(default_factory=list)
    risk_level: RiskLevel
    defaults: Defaults = Field(default_factory=Defaults)
    parameters: dict[str, Parameter] = Field(default_factory=dict)
    steps: Annotated[list[Step], Field(max_length=MAX_STEPS)]

    def on_error(self, step: Step) -> OnError:
        """Return the error policy of a step: its own, else that of `defaults`, else `stop`."""
        return step.on_error or self.defaults.on_error or "stop"

    def retry(self, step: Step) -> Retry:
        """Return the retry policy of a step; `onError: retry` alone means three attempts."""
        policy = step.retry or self.defaults.retry
        if policy is not None:
            return policy
        return Retry(max_attempts=DEFAULT_RETRY_ATTEMPTS if self.on_error(step) == "retry" else 1)

    def to_json(self) -> dict[str, Any]:
        """Return the plan as a JSON document without fields that hold their default."""
        return self.model_dump(mode="json", by_alias=True, exclude_defaults=True) | {
            "version": self.version
        }


def plan_schema() -> dict[str, Any]:
    """Return the JSON schema of an ActionPlan."""
    return {"$schema": DIALECT, **ActionPlan.model_json_schema(by_alias=True)}


def tools_schema(tools: Iterable[Tool]) -> dict[str, Any]:
    """Return the name, summary, risk, input schema and output schema of every tool."""
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
