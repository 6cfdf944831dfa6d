"""The system prompt of the agent: how to look around and answer, and, where it may propose changes, the plan language.

As with the planner's, nothing from the vault stands in it, and it is the same bytes for the same tools.
"""

from __future__ import annotations

from collections.abc import Iterable

from obsidian_agent.agent.plan_language import in_detail, prompt_text, told
from obsidian_agent.agent.signatures import Detail
from obsidian_agent.tools.base import Tool


def agent_prompt(tools: Iterable[Tool], *, propose: bool, detail: Detail = "full") -> str:
    """Role, looking around, answering; with `propose` also the plan language as the planner knows it."""
    proposing = told(in_detail(tools, detail), "proposing", detail, changes_only=True) if propose else ""
    text = prompt_text("agent", detail).replace("{{data}}", prompt_text("data"))
    return text.replace("{{proposing}}", proposing) + "\n"
