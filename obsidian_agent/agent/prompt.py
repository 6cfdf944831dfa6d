"""The messages of a planning request: a system prompt that is the same bytes for the same tools, then the context, then the request.

Nothing from the vault stands in the system prompt; services can cache it, and no note can pretend to be part of it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from obsidian_agent.agent.foreign import fence, neutral, visible
from obsidian_agent.agent.plan_language import in_detail, prompt_text, told
from obsidian_agent.agent.signatures import Detail
from obsidian_agent.errors import Problem
from obsidian_agent.plan.policy import Policy
from obsidian_agent.providers.base import ChatMessage
from obsidian_agent.tools.base import RunContext, Selection, Tool

SELECTION_SHOWN = 500
"""Characters of the selection that a model sees; steps get all of it through `${selection}`."""
VALUE_SHOWN = 200
FILES_SHOWN = 10
PROBLEMS_SHOWN = 20
ANSWER_SHOWN = 20_000
"""Characters of a bad answer that go back to the model."""


def system_prompt(tools: Iterable[Tool], detail: Detail = "full") -> str:
    """Role, contract, form of a plan, tools, rules, examples: a function of the tools alone."""
    return told(in_detail(tools, detail), "planner", detail).replace("{{data}}", prompt_text("data"))


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
) -> ChatMessage:
    """The context as data, then what the person asks. Without `show_selection` only the length of the selected text is told.

    `extra` is what goes along, fenced already; `tools` are those that the system prompt does not name.
    """
    parts = ["# Context", _circumstances(context, policy), fence("names in the vault", _names(context), mark)]
    if params:
        shown = {name: _shortened(value) for name, value in params.items()}
        parts.append(fence("parameters, to be used as ${name}", _lines(shown), mark))
    parts.append(_selection(context.selection, mark) if show_selection else _unseen_selection(context.selection))
    parts += [each for each in (extra, tools) if each]
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
    text = (
        f"That answer is not a valid ActionPlan:\n\n{listed}\n\nCorrect all of this. Output ONLY valid JSON: the whole plan as one object."
    )
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
    permissions = "; ".join(f"{what} is {'allowed' if on else 'switched off'}" for what, on in allowed)
    return f"It is {context.now:%A}, {context.now:%Y-%m-%d %H:%M}. {permissions}."


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
    return "\n".join(f"{name}: {json.dumps(value, ensure_ascii=False, default=str)}" for name, value in values.items())


def _shortened(value: Any) -> Any:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return value if len(text) <= VALUE_SHOWN else f"{text[:VALUE_SHOWN]}…"


def _located(problem: Problem) -> str:
    where = ", ".join(part for part in (f"step {problem.step_id}" if problem.step_id else "", problem.path or "") if part)
    return neutral(f"{problem.code}{f' ({where})' if where else ''}: {problem.message}".replace("\n", " "))
