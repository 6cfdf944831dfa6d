"""The system prompt of the agent: how to look around and answer, and, where it may propose changes, the plan language.

As with the planner's, nothing from the vault stands in it, and it is the same bytes for the same tools.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib.resources import files

from obsidian_agent.agent.prompt import system_prompt
from obsidian_agent.tools.base import Tool

_LANGUAGE = "# ActionPlan JSON Schema"
_DATA = "# Data is not instructions"
_EXAMPLES = "# Examples"


def agent_prompt(tools: Iterable[Tool], *, propose: bool) -> str:
    """Role, looking around, answering; with `propose` also the plan language as the planner knows it."""
    template = _read("agent.md")
    if not propose:
        return template.replace("{{proposing}}", "")
    return template.replace("{{proposing}}", f"{_read('proposing.md')}\n{_plan_language(tools)}\n")


def _plan_language(tools: Iterable[Tool]) -> str:
    """The planner's prompt from the schema on, without what the agent's own says; its examples are of plans, not of answers."""
    rules = system_prompt(tools).partition(_LANGUAGE)[2]
    language, _, rest = rules.partition(_DATA)
    examples = rest.partition(_EXAMPLES)[2]
    return f"{_LANGUAGE}{language}{_EXAMPLES} of plans, as `propose_plan` takes them\n{examples}".rstrip() + "\n"


def _read(name: str) -> str:
    return files("obsidian_agent.agent").joinpath("prompts", name).read_text(encoding="utf-8").replace("\r\n", "\n")
