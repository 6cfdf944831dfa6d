"""What models are told: the system prompts, the message with its context, corrections, and requests as they go out.

A system prompt is the same bytes for the same tools, so that services can keep it ready, and nothing from the vault stands in it, so that no
note can pretend to be part of it. It comes in full, or short for small models: a third of it, with the dozen tools that most plans are made
of. Which tools those are told of besides follows from the words of the message: a recipe that is asked for in such words shows which tools
its kind of plan is made of, and the words of a tool's own line count as well, those of other languages as in the search
(`offline/words.py`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from importlib.resources import files
from typing import Any, Final

from obsidian_agent.agent.context import beginning
from obsidian_agent.agent.planner import Sampling
from obsidian_agent.agent.privacy.untrusted_text import fence, neutral, visible
from obsidian_agent.agent.token_budget import (
    estimate,
    estimate_messages,
    estimate_offers,
)
from obsidian_agent.agent.turn.model_tools import Detail, envelope, offers, signatures
from obsidian_agent.dataclass import dataclass, replace
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
"""Fields that a model has no use for; what it may write is a part of what may be written."""
_RARER: Final = _RARE | {"parameters", "assumptions", "when", "dependsOn", "onError", "preview"}


def in_detail(tools: Iterable[Tool], detail: Detail) -> tuple[Tool, ...]:
    """The tools that the language names, in an order that does not depend on the given one."""
    known = {tool.name: tool for tool in tools}
    return tuple(
        known[name] for name in (sorted(known) if detail == "full" else CORE) if name in known
    )


@lru_cache(maxsize=8)
def told(
    tools: tuple[Tool, ...], template: str, detail: Detail, *, changes_only: bool = False
) -> str:
    """A prompt of `prompts/` with the language in it. `changes_only`: no examples that only read."""
    rules = prompt_text("rules", detail).replace("{{tools}}", signatures(tools, detail))
    shown = envelope(ActionPlan, _RARE if detail == "full" else _RARER)
    text = prompt_text(template, detail).replace("{{envelope}}", shown).replace("{{rules}}", rules)
    examples = _examples({tool.name for tool in tools}, detail, changes_only)
    return f"{text}\n\n# Examples\n\n{examples}\n"


def prompt_text(name: str, detail: Detail = "full") -> str:
    """A file of `prompts/`, without the line end at its end."""
    file = f"{name}.md" if detail == "full" else f"{name}_short.md"
    return (
        files("obsidian_agent.agent")
        .joinpath("prompts", file)
        .read_text(encoding="utf-8")
        .replace("\r\n", "\n")
        .rstrip("\n")
    )


def _examples(names: set[str], detail: Detail, changes_only: bool) -> str:
    """The examples, each a request and its plan, that use only these tools: an example must not invent any."""
    blocks = prompt_text("examples", detail).strip().split("\n\n")
    plans = [
        (asked, plan, json.loads(plan))
        for asked, plan in zip(blocks[::2], blocks[1::2], strict=True)
    ]
    possible = [
        f"{asked}\n\n{plan}"
        for asked, plan, document in plans
        if {step["tool"] for step in document["steps"]} <= names
        and not (changes_only and document["riskLevel"] == "read-only")
    ]
    # Whoever looks around in a small window besides has room for one.
    return "\n\n".join(possible[:1] if detail == "short" and changes_only else possible)


SELECTION_SHOWN = 500
"""Characters of the selection that a model sees; steps get all of it through `${selection}`."""
VALUE_SHOWN = 200
FILES_SHOWN = 10
COMMANDS_SHOWN = 60
PROBLEMS_SHOWN = 20
ANSWER_SHOWN = 20_000
"""Characters of a bad answer that go back to the model."""


def system_prompt(tools: Iterable[Tool], detail: Detail = "full") -> str:
    """Role, contract, form of a plan, tools, rules, examples: a function of the tools alone."""
    return told(in_detail(tools, detail), "planner", detail).replace(
        "{{data}}", prompt_text("data")
    )


def request_message(
    message: str,
    context: RunContext,
    params: Mapping[str, Any],
    policy: Policy,
    mark: str,
    *,
    show_selection: bool = True,
    extra: str = "",
    tools: str = "",
    commands: Sequence[AppCommand] = (),
) -> ChatMessage:
    """The context as data, then what the person asks. Without `show_selection` only the length of the selected text is told.

    `extra` is what goes along, fenced already; `tools` are those that the system prompt does not name; `commands` are those of Obsidian.
    """
    parts = [
        "# Context",
        _circumstances(context, policy),
        fence("names in the vault", _names(context), mark),
    ]
    if params:
        shown = {name: _shortened(value) for name, value in params.items()}
        parts.append(fence("parameters, to be used as ${name}", _lines(shown), mark))
    parts.append(
        _selection(context.selection, mark)
        if show_selection
        else _unseen_selection(context.selection)
    )
    parts += [each for each in (extra, tools) if each]
    if commands:
        parts.append(_commands(commands, message, mark))
    parts += ["# Request", visible(message)]
    return ChatMessage("user", "\n\n".join(parts))


def correction(problems: tuple[Problem, ...], usage: Sequence[str] = ()) -> ChatMessage:
    """What was wrong with an answer, and what to do about it; `usage` are the signatures of the tools that were used wrongly."""
    lines = [f"- {_located(problem)}" for problem in problems[:PROBLEMS_SHOWN]]
    if len(problems) > PROBLEMS_SHOWN:
        lines.append(f"- and {len(problems) - PROBLEMS_SHOWN} more")
    if usage:
        lines += ["", "These are used so:", *usage]
    listed = "\n".join(lines)
    text = f"That answer is not a valid ActionPlan:\n\n{listed}\n\nCorrect all of this. Output ONLY valid JSON: the whole plan as one object."
    return ChatMessage("user", text)


def bad_answer(text: str) -> ChatMessage:
    """An answer as it goes back to the model that gave it; services refuse empty messages."""
    if len(text) > ANSWER_SHOWN:
        text = f"{text[:ANSWER_SHOWN]}\n[cut]"
    return ChatMessage("assistant", text if text.strip() else "(empty)")


def _circumstances(context: RunContext, policy: Policy) -> str:
    allowed = [
        ("Writing", policy.allow_writes),
        ("Deleting", policy.allow_deletes),
        ("Running commands", policy.allow_commands and context.runs_commands),
    ]
    permissions = "; ".join(
        f"{what} is {'allowed' if on else 'switched off'}" for what, on in allowed
    )
    return f"It is {context.now:%A}, {context.now:%Y-%m-%d %H:%M}. {permissions}."


def _commands(commands: Sequence[AppCommand], message: str, mark: str) -> str:
    """Obsidian's commands for commands.run, those first whose names have a word of the message."""
    words = set(re.findall(r"\w{3,}", message.casefold()))
    shown = sorted(
        commands, key=lambda each: words.isdisjoint(re.findall(r"\w{3,}", each.name.casefold()))
    )[:COMMANDS_SHOWN]
    more = (
        f"; {len(commands) - len(shown)} more: commands.list" if len(commands) > len(shown) else ""
    )
    rows = "\n".join(
        json.dumps([each.id, each.name, each.source], ensure_ascii=False) for each in shown
    )
    return fence(f"commands of Obsidian, for commands.run: id, name, source{more}", rows, mark)


def _names(context: RunContext) -> str:
    active = context.active_file
    names: dict[str, Any] = {
        "vaultName": context.vault_name,
        "activeFile": active.text if active is not None else None,
        "activeFolder": active.text.rpartition("/")[0] if active is not None else None,
    }
    for key, paths in (("openFiles", context.open_files), ("recentFiles", context.recent_files)):
        if paths:
            names[key] = [path.text for path in paths[:FILES_SHOWN]]
    return _lines(names)


def _selection(selection: Selection | None, mark: str) -> str:
    if selection is None or not selection.text:
        return "Nothing is selected: ${selection} cannot be used."
    text = selection.text
    length = f"{len(text)} characters, {text.count(chr(10)) + 1} lines"
    if len(text) > SELECTION_SHOWN:
        length += f", CUT: the first {SELECTION_SHOWN} characters are shown"
    return fence(f"selection ({length})", text[:SELECTION_SHOWN], mark)


def _unseen_selection(selection: Selection | None) -> str:
    length = len(selection.text) if selection is not None else 0
    return f"Text of {length} characters is selected. The person did not share it with you; a plan can use ${{selection}} all the same."


def _lines(values: Mapping[str, Any]) -> str:
    """One JSON value a line: a name cannot bring a line of its own."""
    return "\n".join(
        f"{name}: {json.dumps(value, ensure_ascii=False, default=str)}"
        for name, value in values.items()
    )


def _shortened(value: Any) -> Any:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return value if len(text) <= VALUE_SHOWN else f"{text[:VALUE_SHOWN]}…"


def _located(problem: Problem) -> str:
    where = ", ".join(
        part
        for part in (f"step {problem.step_id}" if problem.step_id else "", problem.path or "")
        if part
    )
    return neutral(
        f"{problem.code}{f' ({where})' if where else ''}: {problem.message}".replace("\n", " ")
    )


def agent_prompt(
    tools: Iterable[Tool], *, propose: bool, detail: Detail = "full", template: str = "agent"
) -> str:
    """Role, looking around, answering; with `propose` also the plan language as the planner knows it."""
    proposing = (
        told(in_detail(tools, detail), "proposing", detail, changes_only=True) if propose else ""
    )
    text = prompt_text(template, detail if template == "agent" else "full").replace(
        "{{data}}", prompt_text("data")
    )
    return text.replace("{{proposing}}", proposing) + "\n"


MOST: Final = 6
SMALL_WINDOW: Final = 16_384
"""Tokens; models that hold no more are told the short form."""
_RECIPES: Final = 4
"""So many recipes are looked at, if they fit nearly as well as the best one."""
_NEAR: Final = 0.75


def detail_for(wanted: Detail | None, provider: Provider, window: int | None) -> Detail:
    """How much a model is told (`wanted` None: as fits it): models on this machine are slow, small windows soon full."""
    if wanted is not None:
        return wanted
    return "short" if provider.local or (window is not None and window <= SMALL_WINDOW) else "full"


def hint(message: str, tools: Iterable[Tool], detail: Detail) -> str:
    """What goes along with a message about tools that the system prompt does not name; "" when there is nothing to add."""
    found = suggested(message, tools, CORE) if detail == "short" else ()
    return f"# More tools\n\n{signatures(found, detail)}" if found else ""


def suggested(
    message: str, tools: Iterable[Tool], known: Collection[str], most: int = MOST
) -> tuple[Tool, ...]:
    """Tools that plans for such a message are made of, likeliest first, without those that are `known`."""
    ranked = packaged_menu().ranked(message)
    best = ranked[0][0]
    near = [recipe for score, recipe in ranked[:_RECIPES] if score > 0 and score >= _NEAR * best]
    there = {tool.name: tool for tool in tools}
    found = dict.fromkeys(name for recipe in near for name in recipe.tools)
    return tuple(there[name] for name in found if name in there and name not in known)[:most]


@dataclass(frozen=True, slots=True)
class RequestPrefix:
    """The system prompt, the functions on offer, and what both take; `instructions` are the person's own part of the prompt.

    `more` says which tools are named along with a message.
    """

    system: str
    offers: tuple[ToolOffer, ...]
    instructions: str = ""
    more: Callable[[str], str] = lambda message: ""

    @property
    def tokens(self) -> int:
        """About how many tokens it takes, without the instructions."""
        return estimate_messages([ChatMessage("system", self.system)]) + estimate_offers(
            self.offers
        )

    @property
    def instruction_tokens(self) -> int:
        """About how many tokens the instructions take."""
        return estimate(self.instructions)

    def within(self, tokens: int) -> RequestPrefix:
        """The frame with as much of the instructions as fits into so many tokens; itself when they do."""
        if self.instruction_tokens <= tokens:
            return self
        return replace(self, instructions=f"{beginning(self.instructions, tokens)}\n[cut]")

    def request(
        self, messages: Sequence[ChatMessage], sampling: Sampling, *, json_only: bool = False
    ) -> ChatRequest:
        """A request with these messages. `json_only`: nothing but a JSON document is wanted."""
        text = f"{self.system}\n{self.instructions}" if self.instructions else self.system
        told = (ChatMessage("system", text), *messages)
        return ChatRequest(
            told,
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
    """The frame for these tools; the same bytes every time. `only` these are on offer for looking around. Slow the first time."""
    readable = (
        tools if only is None else {name: tool for name, tool in tools.items() if name in only}
    )
    system = agent_prompt(tools.values(), propose=propose, detail=detail)

    def more(message: str) -> str:
        return hint(message, tools.values(), detail) if propose else ""

    return RequestPrefix(
        system, offers(readable, propose=propose, detail=detail), instructions, more
    )


def other_agent_prefix(
    tools: Mapping[str, Tool], *, propose: bool, instructions: str, detail: Detail
) -> RequestPrefix:
    """The frame for an agent that looks around by itself, through our MCP server."""
    system = agent_prompt(tools.values(), propose=propose, detail=detail, template="other_agent")
    return RequestPrefix(
        system,
        (),
        instructions,
        lambda message: hint(message, tools.values(), detail) if propose else "",
    )


def planner_prefix(tools: Mapping[str, Tool], instructions: str, detail: Detail) -> RequestPrefix:
    """The frame for a model that does not look around: the planner's prompt, and no functions."""
    return RequestPrefix(
        system_prompt(tools.values(), detail),
        (),
        instructions,
        lambda message: hint(message, tools.values(), detail),
    )


def exact_text(request: ChatRequest) -> str:
    """A request as people read it: every message in full, and each function on offer."""
    parts = []
    for message in request.messages:
        calls = "".join(
            f"\n[calls {call.name} {call.arguments} ({call.id})]" for call in message.calls
        )
        answers = f" (result of {message.call_id})" if message.call_id else ""
        parts.append(f"=== {message.role}{answers}\n{message.text}{calls}")
    for offer in request.tools:
        parts.append(
            f"=== function {offer.name}\n{offer.description}\n{json.dumps(dict(offer.parameters), ensure_ascii=False)}"
        )
    return "\n\n".join(parts) + "\n"
