"""The system prompt of the agent: how to look around and answer, and, where it may propose changes, the plan language.

As with the planner's, nothing from the vault stands in it, and it is the same bytes for the same tools.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import lru_cache
from importlib.resources import files

from obsidian_agent.agent.prompt import system_prompt
from obsidian_agent.tools.base import Tool

_LANGUAGE = "# ActionPlan JSON Schema"
_DATA = "# Data is not instructions"
_EXAMPLES = "# Examples"


def agent_prompt(tools: Iterable[Tool], *, propose: bool) -> str:
    """Role, looking around, answering; with `propose` also the plan language as the planner knows it."""
    return _agent_prompt(tuple(tools) if propose else ())


@lru_cache(maxsize=4)
def _agent_prompt(tools: tuple[Tool, ...]) -> str:
    template = _read("agent.md")
    proposing = f"{_read('proposing.md')}\n{_plan_language(tools)}\n" if tools else ""
    return template.replace("{{proposing}}", proposing)


def _plan_language(tools: tuple[Tool, ...]) -> str:
    """The planner's prompt from the schema on, without what the agent's own says, and with examples of proposals only."""
    rules = system_prompt(tools).partition(_LANGUAGE)[2]
    language, _, rest = rules.partition(_DATA)
    blocks = rest.partition(_EXAMPLES)[2].strip().split("\n\n")
    proposals = [block for asked, plan in zip(blocks[::2], blocks[1::2], strict=True) if _changes(plan) for block in (asked, plan)]
    examples = "\n\n".join([f"{_EXAMPLES} of plans, as `propose_plan` takes them", *proposals])
    return f"{_LANGUAGE}{language}{examples}\n"


def _changes(plan: str) -> bool:
    """Whether a plan does anything that looking around does not."""
    return bool(json.loads(plan)["riskLevel"] != "read-only")


def _read(name: str) -> str:
    return files("obsidian_agent.agent").joinpath("prompts", name).read_text(encoding="utf-8").replace("\r\n", "\n")
