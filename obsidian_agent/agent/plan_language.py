"""The plan language as models are told it: the plan's form, the rules, a line for each tool, examples. In full, or short for small models.

Short is a third of it: a dozen tools that most plans are made of. What a message needs besides goes along with it (`tool_choice`), so that
the beginning of every request stays the same bytes, which services and local models remember.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import lru_cache
from importlib.resources import files
from typing import Final

from obsidian_agent.agent.signatures import Detail, envelope, signatures
from obsidian_agent.plan.model import ActionPlan
from obsidian_agent.tools.base import Tool

CORE: Final = (
    "vault.createFile",
    "vault.updateFile",
    "vault.replaceText",
    "vault.rename",
    "vault.delete",
    "vault.setFrontmatter",
    "vault.query",
    "vault.searchText",
    "vault.readFile",
    "util.parseMarkdownBullets",
    "util.formatList",
    "editor.replaceSelection",
)
"""The tools of the short form."""

_RARE: Final = frozenset(("defaults", "retry", "captureAs", "indexName"))
"""Fields that a model has no use for; what it may write is a part of what may be written."""
_RARER: Final = _RARE | {"parameters", "assumptions", "when", "dependsOn", "onError", "preview"}


def in_detail(tools: Iterable[Tool], detail: Detail) -> tuple[Tool, ...]:
    """The tools that the language names, in an order that does not depend on the given one."""
    known = {tool.name: tool for tool in tools}
    return tuple(known[name] for name in (sorted(known) if detail == "full" else CORE) if name in known)


@lru_cache(maxsize=8)
def told(tools: tuple[Tool, ...], template: str, detail: Detail, *, changes_only: bool = False) -> str:
    """A prompt of `prompts/` with the language in it. `changes_only`: no examples that only read."""
    rules = prompt_text("rules", detail).replace("{{tools}}", signatures(tools, detail))
    shown = envelope(ActionPlan, _RARE if detail == "full" else _RARER)
    text = prompt_text(template, detail).replace("{{envelope}}", shown).replace("{{rules}}", rules)
    examples = _examples({tool.name for tool in tools}, detail, changes_only)
    return f"{text}\n\n# Examples\n\n{examples}\n"


def prompt_text(name: str, detail: Detail = "full") -> str:
    """A file of `prompts/`, without the line end at its end."""
    file = f"{name}.md" if detail == "full" else f"{name}_short.md"
    return files("obsidian_agent.agent").joinpath("prompts", file).read_text(encoding="utf-8").replace("\r\n", "\n").rstrip("\n")


def _examples(names: set[str], detail: Detail, changes_only: bool) -> str:
    """The examples, each a request and its plan, that use only these tools: an example must not invent any."""
    blocks = prompt_text("examples", detail).strip().split("\n\n")
    plans = [(asked, plan, json.loads(plan)) for asked, plan in zip(blocks[::2], blocks[1::2], strict=True)]
    possible = [
        f"{asked}\n\n{plan}"
        for asked, plan, document in plans
        if {step["tool"] for step in document["steps"]} <= names and not (changes_only and document["riskLevel"] == "read-only")
    ]
    # Whoever looks around in a small window besides has room for one.
    return "\n\n".join(possible[:1] if detail == "short" and changes_only else possible)
