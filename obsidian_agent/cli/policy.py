"""`policy explain`: what would happen to a file of the vault, and which rule says so."""

from __future__ import annotations

import argparse
import re
from typing import TYPE_CHECKING

from obsidian_agent.cli.exits import Exit
from obsidian_agent.cli.output import Output
from obsidian_agent.cli.parser import Commands, UsageError, actions

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
    command = actions(commands.add("policy", None, examples=examples)).add(
        "explain",
        _explain,
        summary="whether a plan may change a file, or a model read it, and by which rule",
        examples=examples,
    )
    command.add_argument(
        "path",
        metavar="PATH",
        help="a file or folder of the vault, there or not (a note may go without .md); for commands.run the command's id",
    )
    command.add_argument(
        "--tool",
        metavar="T",
        help="a tool of plans (obsidian-agent tools lists them); without it: changing the file",
    )
    command.add_argument(
        "--agent",
        metavar="A",
        default="",
        help="another agent that plans (agent_levels); without it: you",
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
        verdict = verdict._replace(
            source=next(
                (sources[word] for word in re.findall(r"\w+", verdict.rule) if word in sources),
                SETTINGS,
            )
        )
    if out.as_json:
        out.document(verdict._asdict())
    out.line(f"{verdict.decision}: {verdict.rule} ({verdict.source})")
    if tool is not None and (note := _on_command_line(tool)):
        out.note(note)
    return Exit.DONE


def _on_command_line(tool: Tool) -> str:
    """Return the settings that do not hold on the command line, and what replaces them; "" if all do."""
    from obsidian_agent.tools.core.tool import Risk

    if tool.risk is Risk.COMMANDS:
        return (
            "This holds in the app. On the command line allow_commands and commands_allow do not: "
            "a plan that runs commands needs --allow-commands, and your answer or --yes."
        )
    if tool.deletes:
        return (
            "This holds in the app. On the command line allow_deletes does not: "
            "a plan that deletes needs --allow-deletes, and your answer or --yes."
        )
    return ""


def explain(wiring: Wiring, text: str, tool: Tool | None, agent: str = "") -> Verdict:
    """What would happen if a plan called a tool (None: one that changes notes) on a path, or a model asked to read it. For a tool that runs
    commands the text is the command's id."""
    from obsidian_agent.bootstrap import build_session, policy_of
    from obsidian_agent.errors import PathRefused
    from obsidian_agent.plan.result import Verdict
    from obsidian_agent.tools.core.tool import Risk
    from obsidian_agent.vault.paths.path import PathUse, parse

    policy = policy_of(wiring, agent)
    if tool is not None and tool.risk is Risk.COMMANDS:
        called = policy.on_call(tool.name)
        return called if called.decision == "deny" else policy.on_command(text)

    reads = tool is not None and tool.risk is Risk.READ_ONLY
    try:
        return policy.verdict(
            tool,
            parse(text, PathUse.READ if reads else PathUse.UPDATE),
            build_session(wiring).vault.resolve,
        )
    except PathRefused as refusal:
        return Verdict("deny", refusal.code, "the path itself")
