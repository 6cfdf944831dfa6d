"""Prompts: system prompts, the user's message with its context, corrections, whole requests.

A system prompt has the same bytes for the same tools, so that services can cache it, and contains
nothing from the vault, so that no note can pretend to be part of it. Small models get a short form,
a third of the full one, with the dozen tools that most plans use. The message of such a model names
further tools: those in the plans of recipes that are similar to the message.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from importlib.resources import files
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from obsidian_agent.agent.context import beginning
from obsidian_agent.agent.privacy.untrusted_text import fence, neutral, visible
from obsidian_agent.agent.replies import Sampling
from obsidian_agent.agent.token_budget import (
    estimate,
    estimate_messages,
    estimate_offers,
)
from obsidian_agent.agent.turn.model_tools import Detail, envelope, offers, signatures
from obsidian_agent.errors import Problem
from obsidian_agent.offline.search import packaged_menu
from obsidian_agent.plan.model import ActionPlan
from obsidian_agent.plan.policy import Policy
from obsidian_agent.providers.base import ChatMessage, ChatRequest, Provider, ToolOffer
from obsidian_agent.tools.core.tool import AppCommand, RunContext, Selection, Tool

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
"""Fields of a plan that no prompt mentions, because models don't need them."""
_OMITTED_IN_SHORT: Final = _RARE | {
    "parameters",
    "assumptions",
    "when",
    "dependsOn",
    "onError",
    "preview",
}
MAX_SELECTION: Final = 500
"""Characters of the selection that a model sees; steps get all of it through `${selection}`."""
MAX_VALUE: Final = 200
MAX_FILES: Final = 10
MAX_COMMANDS: Final = 60
MAX_PROBLEMS: Final = 20
MAX_BAD_ANSWER: Final = 20_000
"""Characters of an invalid answer that are sent back to the model."""
MAX_SUGGESTED: Final = 6
SMALL_WINDOW: Final = 16_384
"""Tokens of the largest window for which the short form is used."""
_SIMILAR_RECIPES: Final = 4
_SIMILAR_SCORE: Final = 0.75
"""The share of the best recipe's score from which a recipe counts as similar, too."""


def in_detail(tools: Iterable[Tool], detail: Detail) -> tuple[Tool, ...]:
    """Return the tools that a prompt describes, in an order that does not depend on `tools`."""
    known = {tool.name: tool for tool in tools}
    names = sorted(known) if detail == "full" else CORE
    return tuple(known[name] for name in names if name in known)


@lru_cache(maxsize=8)
def filled_prompt(
    tools: tuple[Tool, ...], template: str, detail: Detail, *, changes_only: bool = False
) -> str:
    """Return a prompt of `prompts/` with the plan language in it.

    With `changes_only`, examples that only read are omitted.
    """
    rules = prompt_text("rules", detail).replace("{{tools}}", signatures(tools, detail))
    plan = envelope(ActionPlan, _RARE if detail == "full" else _OMITTED_IN_SHORT)
    text = prompt_text(template, detail).replace("{{envelope}}", plan).replace("{{rules}}", rules)
    examples = _examples({tool.name for tool in tools}, detail, changes_only)
    return f"{text}\n\n# Examples\n\n{examples}\n"


def prompt_text(name: str, detail: Detail = "full") -> str:
    """Return a file of `prompts/`, without its final newline."""
    file = f"{name}.md" if detail == "full" else f"{name}_short.md"
    return (
        files("obsidian_agent.agent")
        .joinpath("prompts", file)
        .read_text(encoding="utf-8")
        .replace("\r\n", "\n")
        .rstrip("\n")
    )


def _examples(names: set[str], detail: Detail, changes_only: bool) -> str:
    """Return the examples (a request and its plan) that use only these tools."""
    blocks = prompt_text("examples", detail).strip().split("\n\n")
    examples: list[str] = []
    for request, plan in zip(blocks[::2], blocks[1::2], strict=True):
        document = json.loads(plan)
        if changes_only and document["riskLevel"] == "read-only":
            continue
        if {step["tool"] for step in document["steps"]} <= names:
            examples.append(f"{request}\n\n{plan}")
    if detail == "short" and changes_only:
        examples = examples[:1]  # a small window also needs space for the results of calls
    return "\n\n".join(examples)


class MessageParts(Struct, frozen=True):
    """Optional parts of a message: its context, already fenced, further tools, Obsidian's commands.

    Without `show_selection` the message states only the length of the selected text.
    """

    show_selection: bool = True
    extra: str = ""
    tools: str = ""
    commands: Sequence[AppCommand] = ()


def system_prompt(tools: Iterable[Tool], detail: Detail = "full") -> str:
    """Return the prompt of a planner: role, plan language, tools, rules, examples.

    It depends on the tools alone.
    """
    prompt = filled_prompt(in_detail(tools, detail), "planner", detail)
    return prompt.replace("{{data}}", prompt_text("data"))


def request_message(
    message: str,
    context: RunContext,
    params: Mapping[str, Any],
    policy: Policy,
    mark: str,
    *,
    parts: MessageParts | None = None,
) -> ChatMessage:
    """Return the user's message, after its context as data."""
    parts = parts or MessageParts()
    blocks = [
        "# Context",
        _circumstances(context, policy),
        fence("names in the vault", _names(context), mark),
    ]
    if params:
        values = {name: _shortened(value) for name, value in params.items()}
        blocks.append(fence("parameters, to be used as ${name}", _lines(values), mark))
    if parts.show_selection:
        blocks.append(_selection(context.selection, mark))
    else:
        blocks.append(_hidden_selection(context.selection))
    blocks += [text for text in (parts.extra, parts.tools) if text]
    if parts.commands:
        blocks.append(_commands(parts.commands, message, mark))
    blocks += ["# Request", visible(message)]
    return ChatMessage("user", "\n\n".join(blocks))


def correction(problems: tuple[Problem, ...], usage: Sequence[str] = ()) -> ChatMessage:
    """Return a message with the problems of an answer.

    `usage` are the signatures of the tools that it uses wrongly.
    """
    lines = [f"- {_located(problem)}" for problem in problems[:MAX_PROBLEMS]]
    if len(problems) > MAX_PROBLEMS:
        lines.append(f"- and {len(problems) - MAX_PROBLEMS} more")
    if usage:
        lines += ["", "Correct usage:", *usage]
    listed = "\n".join(lines)
    text = (
        f"That answer is not a valid ActionPlan:\n\n{listed}\n\n"
        "Correct all of this. Output ONLY valid JSON: the whole plan as one object."
    )
    return ChatMessage("user", text)


def bad_answer(text: str) -> ChatMessage:
    """Return an invalid answer as a message for the model. Services refuse empty messages."""
    if len(text) > MAX_BAD_ANSWER:
        text = f"{text[:MAX_BAD_ANSWER]}\n[truncated]"
    return ChatMessage("assistant", text if text.strip() else "(empty)")


def _circumstances(context: RunContext, policy: Policy) -> str:
    allowed = [
        ("Writing", policy.allow_writes),
        ("Deleting", policy.allow_deletes),
        ("Running commands", policy.allow_commands and context.runs_commands),
    ]
    permissions = "; ".join(
        f"{action} is {'allowed' if is_on else 'switched off'}" for action, is_on in allowed
    )
    return f"It is {context.now:%A}, {context.now:%Y-%m-%d %H:%M}. {permissions}."


def _commands(commands: Sequence[AppCommand], message: str, mark: str) -> str:
    """Return Obsidian's commands, first those whose names share a word with the message."""
    words = set(re.findall(r"\w{3,}", message.casefold()))

    def is_unrelated(command: AppCommand) -> bool:
        return words.isdisjoint(re.findall(r"\w{3,}", command.name.casefold()))

    listed = sorted(commands, key=is_unrelated)[:MAX_COMMANDS]
    label = "commands of Obsidian, for commands.run: id, name, source"
    if len(commands) > len(listed):
        label += f"; {len(commands) - len(listed)} more: commands.list"
    rows = "\n".join(
        json.dumps([command.id, command.name, command.source], ensure_ascii=False)
        for command in listed
    )
    return fence(label, rows, mark)


def _names(context: RunContext) -> str:
    active = context.active_file
    names: dict[str, Any] = {
        "vaultName": context.vault_name,
        "activeFile": active.text if active is not None else None,
        "activeFolder": active.text.rpartition("/")[0] if active is not None else None,
    }
    for key, paths in (("openFiles", context.open_files), ("recentFiles", context.recent_files)):
        if paths:
            names[key] = [path.text for path in paths[:MAX_FILES]]
    return _lines(names)


def _selection(selection: Selection | None, mark: str) -> str:
    if selection is None or not selection.text:
        return "Nothing is selected: ${selection} cannot be used."
    text = selection.text
    length = f"{len(text)} characters, {text.count(chr(10)) + 1} lines"
    if len(text) > MAX_SELECTION:
        length += f", TRUNCATED: these are the first {MAX_SELECTION} characters"
    return fence(f"selection ({length})", text[:MAX_SELECTION], mark)


def _hidden_selection(selection: Selection | None) -> str:
    length = len(selection.text) if selection is not None else 0
    return (
        f"Text of {length} characters is selected. The user did not share it with you; "
        "a plan can still use ${selection}."
    )


def _lines(values: Mapping[str, Any]) -> str:
    """Return one JSON value per line, so that no name can add a line."""
    return "\n".join(
        f"{name}: {json.dumps(value, ensure_ascii=False, default=str)}"
        for name, value in values.items()
    )


def _shortened(value: Any) -> Any:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return value if len(text) <= MAX_VALUE else f"{text[:MAX_VALUE]}…"


def _located(problem: Problem) -> str:
    step = f"step {problem.step_id}" if problem.step_id else ""
    location = ", ".join(part for part in (step, problem.path) if part)
    label = f"{problem.code} ({location})" if location else problem.code
    return neutral(f"{label}: {problem.message}".replace("\n", " "))


def agent_prompt(
    tools: Iterable[Tool], *, propose: bool, detail: Detail = "full", template: str = "agent"
) -> str:
    """Return the prompt of a model that reads notes by calls: role, reading, answering.

    With `propose` it contains the plan language.
    """
    proposing = ""
    if propose:
        described = in_detail(tools, detail)
        proposing = filled_prompt(described, "proposing", detail, changes_only=True)
    text = prompt_text(template, detail if template == "agent" else "full")
    text = text.replace("{{data}}", prompt_text("data"))
    return text.replace("{{proposing}}", proposing) + "\n"


def detail_for(setting: Detail | None, provider: Provider, window: int | None) -> Detail:
    """Return the length of the prompt: the setting, or short for local models and small windows."""
    if setting is not None:
        return setting
    is_small = window is not None and window <= SMALL_WINDOW
    return "short" if provider.local or is_small else "full"


def hint(message: str, tools: Iterable[Tool], detail: Detail) -> str:
    """Return signatures of tools that the message may need and the system prompt omits."""
    if detail == "full":
        return ""
    further = suggested(message, tools, CORE)
    return f"# More tools\n\n{signatures(further, detail)}" if further else ""


def suggested(
    message: str, tools: Iterable[Tool], known: Collection[str], limit: int = MAX_SUGGESTED
) -> tuple[Tool, ...]:
    """Return tools that plans for such a message use, best first, without the `known` ones."""
    ranked = packaged_menu().ranked(message)
    threshold = _SIMILAR_SCORE * ranked[0][0]
    similar = [
        recipe for score, recipe in ranked[:_SIMILAR_RECIPES] if score > 0 and score >= threshold
    ]
    available = {tool.name: tool for tool in tools}
    names = dict.fromkeys(name for recipe in similar for name in recipe.tools)
    further = [available[name] for name in names if name in available and name not in known]
    return tuple(further[:limit])


class RequestPrefix(Struct, frozen=True):
    """The beginning of every request: the system prompt and the functions on offer.

    `instructions` are the user's own part of the prompt; `more` returns the further tools to name
    with a message.
    """

    system: str
    offers: tuple[ToolOffer, ...]
    instructions: str = ""
    more: Callable[[str], str] = lambda message: ""

    @property
    def tokens(self) -> int:
        """The estimated tokens, without those of the instructions."""
        return estimate_messages([ChatMessage("system", self.system)]) + estimate_offers(
            self.offers
        )

    @property
    def instruction_tokens(self) -> int:
        """The estimated tokens of the instructions."""
        return estimate(self.instructions)

    def within(self, tokens: int) -> RequestPrefix:
        """Return the prefix with its instructions truncated to `tokens`; itself if they fit."""
        if self.instruction_tokens <= tokens:
            return self
        return replace(self, instructions=f"{beginning(self.instructions, tokens)}\n[truncated]")

    def request(
        self, messages: Sequence[ChatMessage], sampling: Sampling, *, json_only: bool = False
    ) -> ChatRequest:
        """Return a request. With `json_only` the answer must be a JSON document."""
        text = f"{self.system}\n{self.instructions}" if self.instructions else self.system
        return ChatRequest(
            (ChatMessage("system", text), *messages),
            sampling.temperature,
            sampling.max_tokens,
            json_only=json_only,
            timeout=sampling.timeout,
            tools=self.offers,
        )


def agent_prefix(
    tools: Mapping[str, Tool],
    *,
    propose: bool,
    instructions: str = "",
    only: frozenset[str] | None = None,
    detail: Detail = "full",
) -> RequestPrefix:
    """Return the prefix for a model that reads by calls, of `only` these tools if not None.

    It has the same bytes each time. Slow at the first call.
    """
    readable = tools
    if only is not None:
        readable = {name: tool for name, tool in tools.items() if name in only}
    system = agent_prompt(tools.values(), propose=propose, detail=detail)

    def more(message: str) -> str:
        return hint(message, tools.values(), detail) if propose else ""

    return RequestPrefix(
        system, offers(readable, propose=propose, detail=detail), instructions, more
    )


def other_agent_prefix(
    tools: Mapping[str, Tool], *, propose: bool, instructions: str, detail: Detail
) -> RequestPrefix:
    """Return the prefix for another agent, which reads through our MCP server."""
    system = agent_prompt(tools.values(), propose=propose, detail=detail, template="other_agent")
    return RequestPrefix(
        system,
        (),
        instructions,
        lambda message: hint(message, tools.values(), detail) if propose else "",
    )


def planner_prefix(tools: Mapping[str, Tool], instructions: str, detail: Detail) -> RequestPrefix:
    """Return the prefix for a model without calls, which answers with a plan."""
    return RequestPrefix(
        system_prompt(tools.values(), detail),
        (),
        instructions,
        lambda message: hint(message, tools.values(), detail),
    )


def exact_text(request: ChatRequest) -> str:
    """Format a request for the user: every message in full, and each function on offer."""
    parts = []
    for message in request.messages:
        calls = "".join(
            f"\n[calls {call.name} {call.arguments} ({call.id})]" for call in message.calls
        )
        answers = f" (result of {message.call_id})" if message.call_id else ""
        parts.append(f"=== {message.role}{answers}\n{message.text}{calls}")
    for offer in request.tools:
        parameters = json.dumps(dict(offer.parameters), ensure_ascii=False)
        parts.append(f"=== function {offer.name}\n{offer.description}\n{parameters}")
    return "\n\n".join(parts) + "\n"
