"""`policy explain`: what would happen to a file of the vault, and by which rule."""

from __future__ import annotations

import argparse
import re
from typing import TYPE_CHECKING

from obsidian_agent.cli.exits import Exit
from obsidian_agent.cli.output import Output
from obsidian_agent.cli.parser import Commands, UsageError, add_actions

if TYPE_CHECKING:
    from obsidian_agent.bootstrap import Wiring
    from obsidian_agent.plan.result import Verdict
    from obsidian_agent.tools.core.tool import Tool


def arguments(commands: Commands) -> None:
    """Add the parser of this command and of its action."""
    examples = [
        "policy explain Projects/Plan.md --vault ~/Notes",
        "policy explain Private --tool vault.readFile --json",
    ]
    command = add_actions(commands.add("policy", None, examples=examples)).add(
        "explain",
        _explain,
        summary="explain whether a plan may change a file, or a model read it, and by which rule",
        examples=examples,
    )
    command.add_argument(
        "path",
        metavar="PATH",
        help="a file or folder of the vault, which need not exist; .md is optional for a note; "
        "for commands.run the id of a command",
    )
    command.add_argument(
        "--tool",
        metavar="T",
        help="a tool that obsidian-agent tools lists (default: changing the file)",
    )
    command.add_argument(
        "--agent",
        metavar="A",
        default="",
        help="the agent that made the plan, as in agent_levels (default: you)",
    )


def _explain(options: argparse.Namespace, out: Output) -> Exit:
    from obsidian_agent.cli.session_factory import note_path, wiring_of
    from obsidian_agent.plan.result import SETTINGS
    from obsidian_agent.tools.registry import TOOLS

    if options.tool is not None and options.tool not in TOOLS:
        raise UsageError(
            f"There is no tool {options.tool}.", hint="obsidian-agent tools lists them."
        )
    tool = TOOLS[options.tool] if options.tool else None
    wiring = wiring_of(options, app=True)
    verdict = explain(wiring, note_path(wiring.store, options.path), tool, options.agent)
    if verdict.source == SETTINGS:
        sources = {row.name: row.source for row in wiring.settings.rows()}
        names = (word for word in re.findall(r"\w+", verdict.rule) if word in sources)
        name = next(names, None)
        if name is not None:
            verdict = verdict._replace(source=sources[name])
    if out.as_json:
        out.document(verdict._asdict())
    out.line(f"{verdict.decision}: {verdict.rule} ({verdict.source})")
    if tool is not None and (note := _on_command_line(tool)):
        out.note(note)
    return Exit.DONE


def _on_command_line(tool: Tool) -> str:
    """Return a note about settings that apply only in the app; "" if all of them apply."""
    from obsidian_agent.tools.core.tool import Risk

    if tool.risk is Risk.COMMANDS:
        return (
            "This applies in the app. The command line ignores allow_commands and commands_allow: "
            "a plan that runs commands needs --allow-commands, and your approval or --yes."
        )
    if tool.deletes:
        return (
            "This applies in the app. The command line ignores allow_deletes: "
            "a plan that deletes needs --allow-deletes, and your approval or --yes."
        )
    return ""


def explain(wiring: Wiring, text: str, tool: Tool | None, agent: str = "") -> Verdict:
    """Return the verdict on a plan that calls a tool on a path, or on a model that reads it.

    Without a tool the plan changes the file. For a tool that runs commands `text` is the id of a
    command.
    """
    from obsidian_agent.bootstrap import build_session, policy_of
    from obsidian_agent.errors import PathRefused
    from obsidian_agent.plan.result import Verdict
    from obsidian_agent.tools.core.tool import Risk
    from obsidian_agent.vault.paths.path import PathUse, parse

    policy = policy_of(wiring, agent)
    if tool is not None and tool.risk is Risk.COMMANDS:
        verdict = policy.on_call(tool.name)
        return verdict if verdict.decision == "deny" else policy.on_command(text)

    reads = tool is not None and tool.risk is Risk.READ_ONLY
    try:
        return policy.verdict(
            tool,
            parse(text, PathUse.READ if reads else PathUse.UPDATE),
            build_session(wiring).vault.view(),
        )
    except PathRefused as refusal:
        return Verdict("deny", refusal.code, "the path itself")
