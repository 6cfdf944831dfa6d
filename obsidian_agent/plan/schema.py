"""The contract as JSON Schema (draft 2020-12), for prompts, editors and other programs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from obsidian_agent.plan.model import ActionPlan
from obsidian_agent.tools.base import Tool, ToolModel

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"


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


def _model_schema(model: type[ToolModel], mode: Any) -> dict[str, Any]:
    return model.model_json_schema(by_alias=True, mode=mode)
