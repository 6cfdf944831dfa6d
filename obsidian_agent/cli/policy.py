"""`policy explain`: what would happen to a file of the vault, and which rule says so."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Literal, NamedTuple

from obsidian_agent.cli.exits import Exit
from obsidian_agent.cli.output import Output
from obsidian_agent.cli.parser import Commands, UsageError, actions

if TYPE_CHECKING:
    from obsidian_agent.bootstrap import Wiring
    from obsidian_agent.tools.core.tool import Tool
    from obsidian_agent.vault.paths.path import VaultPath


class Verdict(NamedTuple):
    """What would happen, the rule that says so as it stands in the settings, and where that comes from."""

    decision: Literal["allow", "ask", "deny"]
    rule: str
    source: str


def arguments(commands: Commands) -> None:
    """Add the parser of this command and of its action."""
    examples = ["policy explain Projects/Plan.md --vault ~/Notes", "policy explain Private --tool vault.readFile --json"]
    command = actions(commands.add("policy", None, examples=examples)).add(
        "explain", _explain, summary="whether a plan may change a file, or a model read it, and by which rule", examples=examples
    )
    command.add_argument("path", metavar="PATH", help="a file or folder of the vault, there or not")
    command.add_argument("--tool", metavar="T", help="a tool of plans (obsidian-agent tools lists them); without it: changing the file")


def _explain(options: argparse.Namespace, out: Output) -> Exit:
    from obsidian_agent.cli.session_factory import wiring_of
    from obsidian_agent.tools.registry import TOOLS

    if options.tool is not None and options.tool not in TOOLS:
        raise UsageError(f"There is no tool {options.tool}.", hint="obsidian-agent tools lists them.")
    verdict = explain(wiring_of(options, app=True), options.path, TOOLS[options.tool] if options.tool else None)
    if out.as_json:
        out.document(verdict._asdict())
    out.line(f"{verdict.decision}: {verdict.rule} ({verdict.source})")
    return Exit.DONE


def explain(wiring: Wiring, text: str, tool: Tool | None) -> Verdict:
    """What would happen if a plan called a tool (None: one that changes notes) on a path, or a model asked to read it."""
    from obsidian_agent.bootstrap import build_session
    from obsidian_agent.errors import PathRefused
    from obsidian_agent.tools.core.tool import Risk
    from obsidian_agent.vault.paths.path import PathUse, parse

    reads = tool is not None and tool.risk is Risk.READ_ONLY
    try:
        path = parse(text, PathUse.READ if reads else PathUse.UPDATE)
        paths = [path, build_session(wiring).vault.resolve(path)]
    except PathRefused as refusal:
        return Verdict("deny", refusal.code, "the path itself")
    return _read(wiring, paths) if reads else _change(wiring, paths, tool)


def _change(wiring: Wiring, paths: list[VaultPath], tool: Tool | None) -> Verdict:
    from obsidian_agent.bootstrap import policy_of
    from obsidian_agent.tools.core.tool import Risk

    policy, settings = policy_of(wiring), wiring.settings.current
    for path in paths:
        if (rule := policy.writing.against(path)) is not None:
            return Verdict("deny", rule, _source(wiring, rule.split()[0]))
    if tool is not None and tool.deletes and not policy.allow_deletes:
        return Verdict("deny", "allow_deletes is off", _source(wiring, "allow_deletes"))
    if tool is not None and tool.risk is Risk.COMMANDS:
        on = policy.allow_commands
        return Verdict("ask" if on else "deny", f"allow_commands is {'on' if on else 'off'}", _source(wiring, "allow_commands"))
    asks = settings.confirm_writes
    return Verdict("ask" if asks else "allow", f"confirm_writes is {'on' if asks else 'off'}", _source(wiring, "confirm_writes"))


def _read(wiring: Wiring, paths: list[VaultPath]) -> Verdict:
    from obsidian_agent.bootstrap import sharing_of

    rules = sharing_of(wiring)
    for path in paths:
        if (pattern := rules.deny.covering(path)) is not None:
            return Verdict("deny", f"share_deny {pattern}", _source(wiring, "share_deny"))
    patterns = [rules.allow.covering(path) for path in paths]
    if all(patterns):
        return Verdict("allow", f"share_allow {patterns[0]}", _source(wiring, "share_allow"))
    return Verdict("ask", "no pattern of share_allow names it", _source(wiring, "share_allow"))


def _source(wiring: Wiring, name: str) -> str:
    return next(row.source for row in wiring.settings.rows() if row.name == name)
