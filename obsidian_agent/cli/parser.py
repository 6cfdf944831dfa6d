"""The table of commands, and the options that several commands share.

A command's own arguments are in its module, in a function `arguments` that adds the parsers of the
module's commands. Only the module of the invoked command is imported, and at its top it imports
only what parsing needs, so that help is fast.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, NamedTuple, NoReturn

from obsidian_agent import __version__
from obsidian_agent.cli.exits import EXIT_CODES, Exit
from obsidian_agent.errors import ConfigError

if TYPE_CHECKING:
    from obsidian_agent.cli.output import Output

Run = Callable[[argparse.Namespace, "Output"], Exit]
"""The function of a command, called with its options."""

MAX_NUMBER: Final = 1_000_000_000
"""The largest number that an option accepts."""


DESCRIPTION = """\
Say what should change in your Obsidian vault, see every line that will change, approve
it with one key, and undo it at any time.

obsidian-agent [VAULT] opens the terminal app. VAULT is a folder, or the name of a vault that
Obsidian knows. See obsidian-agent COMMAND --help for the options of a command."""

EXAMPLES = (
    "~/Notes",
    "do \"append 'Call Ada' to Inbox\" --vault ~/Notes",
    "preview plan.json --vault ~/Notes",
    "undo --vault ~/Notes",
)


class Subcommand(NamedTuple):
    """A command: its module in this package, and a summary."""

    module: str
    summary: str


COMMANDS: Final = {
    "preview": Subcommand("plan", "show what a plan from a file would change; writes nothing"),
    "run": Subcommand("plan", "preview a plan from a file, ask, run it"),
    "plan": Subcommand("plan", "make a plan without running it"),
    "do": Subcommand("plan", "make a plan, preview it, ask, run it"),
    "plans": Subcommand("plans", "plans that wait for approval: list, show, run, drop"),
    "ask": Subcommand("ask", "answer a question about the vault; changes nothing"),
    "rename": Subcommand("plan", "rename or move a note or folder; links keep working"),
    "history": Subcommand("history", "list runs, newest first"),
    "show": Subcommand("show", "show what a run changed, with diffs"),
    "undo": Subcommand("undo", "undo the last run, or the one you name"),
    "redo": Subcommand("redo", "redo the last undone run"),
    "recover": Subcommand("recover", "finish or roll back a run that a crash interrupted"),
    "audit": Subcommand("audit", "list changes to the vault and everything sent to models"),
    "macro": Subcommand("macro", "saved plans: list, run, save, show, …"),
    "rule": Subcommand("rule", "rules that propose plans: add, list, test, run, remove"),
    "schedule": Subcommand("schedule", "a timer for the rules: install, status, remove"),
    "recipe": Subcommand(
        "recipe", "built-in plans with parameters, without a model: list, show, run"
    ),
    "search": Subcommand("search", "find notes by name, content or tag"),
    "links": Subcommand("links", "list outgoing links, unresolved links and backlinks"),
    "index": Subcommand("index", "build or refresh the index of the vault"),
    "health": Subcommand("health", "find broken links, duplicates and the like, and repair them"),
    "plugins": Subcommand("plugins", "suggest community plugins; installs nothing"),
    "companion": Subcommand("companion", "the plugin for Obsidian: install, status, remove"),
    "threads": Subcommand("threads", "conversations: list, show, rename, delete"),
    "config": Subcommand("config", "settings and the source of each value: list, set, unset"),
    "key": Subcommand("key", "API keys of model services: save, forget, list; never displayed"),
    "model": Subcommand("model", "models on this machine: list, choose, test; downloads nothing"),
    "tools": Subcommand("tools", "list the tools that plans can use"),
    "schema": Subcommand("schema", "print JSON Schemas"),
    "doctor": Subcommand("doctor", "check the vault, the state folder and the journal"),
    "log": Subcommand("log", "show internal errors of the program"),
    "completion": Subcommand("completion", "print a script for shell completion"),
    "policy": Subcommand("policy", "explain what is allowed for a file, and by which rule"),
    "mcp": Subcommand("mcp", "serve the vault to other agents over the Model Context Protocol"),
    "acp": Subcommand("acp", "serve as an agent in editors over the Agent Client Protocol"),
    "app": Subcommand("app", "open the terminal app"),
}


class UsageError(ConfigError):
    """An invalid command line."""

    default_code = "USAGE"


class Parser(argparse.ArgumentParser):
    """An argument parser that raises `UsageError` and accepts no abbreviated options."""

    def __init__(self, *args: Any, **options: Any) -> None:
        options["allow_abbrev"] = False
        options["formatter_class"] = argparse.RawDescriptionHelpFormatter
        super().__init__(*args, **options)

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message[:1].upper()}{message[1:]}.", hint=f"See {self.prog} --help.")


def whole_number(text: str) -> int:
    """Parse the value of an option that counts. Raises `argparse.ArgumentTypeError`."""
    is_number = text.isascii() and text.isdigit() and len(text) <= len(str(MAX_NUMBER))
    if not is_number or int(text) > MAX_NUMBER:
        excerpt = text if len(text) <= 40 else f"{text[:40]}…"
        raise argparse.ArgumentTypeError(
            f"{excerpt!r} is not a whole number from 0 to {MAX_NUMBER:,}"
        )
    return int(text)


class Commands:
    """The parsers of a module's commands, or of a command's actions."""

    def __init__(self, subparsers: Any) -> None:
        self._subparsers = subparsers

    def add(
        self,
        name: str,
        run: Run | None,
        *parents: argparse.ArgumentParser,
        summary: str = "",
        examples: Iterable[str] = (),
    ) -> Parser:
        """Add a parser for a command of the table, or for an action with its own `summary`.

        `examples` omit the program's name.
        """
        summary = summary or COMMANDS[name].summary
        parser: Parser = self._subparsers.add_parser(
            name,
            help=summary,
            description=f"{summary[:1].upper()}{summary[1:]}.",
            epilog=_epilog(examples),
            parents=[global_options(again=True), *parents],
        )
        if run is not None:
            parser.set_defaults(call=run)
        return parser


def add_actions(command: Parser, *, required: bool = True) -> Commands:
    """Add the subparsers for a command's actions. Global options may precede the action, too."""
    return Commands(
        command.add_subparsers(
            dest="action", metavar="ACTION", required=required, parser_class=Parser
        )
    )


def build_parser(command: str | None) -> Parser:
    """Return the parser for a command line with this command.

    For an unknown command it has the names of all commands, for None also their options.
    """
    parser = Parser(
        prog="obsidian-agent",
        description=DESCRIPTION,
        epilog=_epilog(EXAMPLES),
        parents=[global_options()],
    )
    parser.add_argument(
        "--version", "-V", action="version", version=f"obsidian-agent {__version__}"
    )
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND", parser_class=Parser)
    if command is None:
        modules = dict.fromkeys(subcommand.module for subcommand in COMMANDS.values())
    elif command in COMMANDS:
        modules = {COMMANDS[command].module: None}
    else:
        modules = {}
        for name, subcommand in COMMANDS.items():
            subparsers.add_parser(name, help=subcommand.summary)
    for module in modules:
        import_module(f"obsidian_agent.cli.{module}").arguments(Commands(subparsers))
    return parser


def _epilog(examples: Iterable[str]) -> str:
    lines = [f"  obsidian-agent {example}" for example in examples]
    if lines:
        lines = ["examples:", *lines, ""]
    return "\n".join([*lines, "exit codes:", f"  {EXIT_CODES}"])


def global_options(*, again: bool = False) -> Parser:
    """Return the global options.

    With `again` they are repeated after a command or action, and keep the values given before it.
    """
    parser = Parser(add_help=False)
    group = parser.add_argument_group("global options")
    group.add_argument(
        "--vault", metavar="VAULT", help="folder, or name of a vault that Obsidian knows"
    )
    group.add_argument("--json", action="store_true", help="one JSON document on standard output")
    group.add_argument(
        "--state-dir",
        metavar="DIR",
        help="folder of the journal (default: the user's state folder)",
    )
    group.add_argument("--config", metavar="FILE", help="settings file")
    group.add_argument("--verbose", action="store_true", help="print details on standard error")
    group.add_argument("--no-color", action="store_true", help="no colors")
    if again:
        for option in parser._actions:
            option.default = argparse.SUPPRESS
    return parser


def context_options() -> Parser:
    """Return the options for the open note, the selection and the permissions of a run."""
    parser = Parser(add_help=False)
    group = parser.add_argument_group("context of the plan")
    group.add_argument("--active-file", metavar="PATH", help="the open note")
    group.add_argument(
        "--selection-range",
        metavar="L:C-L:C",
        help="selected range of the open note: 0-based lines, UTF-16 columns",
    )
    group.add_argument("--selection-file", metavar="FILE", help="selected text, from a file")
    group.add_argument("--selection", metavar="TEXT", help="selected text")
    group.add_argument(
        "--param", metavar="K=V", action="append", default=[], help="value of a parameter (repeat)"
    )
    group.add_argument("--now", metavar="ISO", help="date and time of the run, instead of now")
    group.add_argument(
        "--allow-deletes", action="store_true", help="this run may move notes to .trash"
    )
    group.add_argument(
        "--allow-commands", action="store_true", help="this run may run Obsidian commands"
    )
    return parser


def planner_options() -> Parser:
    """Return the options for the planner or model."""
    parser = Parser(add_help=False)
    group = parser.add_argument_group("planner")
    group.add_argument(
        "--offline", action="store_true", help="the offline planner: no model, no network"
    )
    group.add_argument(
        "--model",
        metavar="PROVIDER/NAME",
        help="a model; scripted/FILE replays answers from a file",
    )
    group.add_argument(
        "--backend",
        choices=("acp", "opencode"),
        help="let another agent plan; opencode is acp with --agent opencode",
    )
    group.add_argument(
        "--agent",
        metavar="NAME",
        help="the agent: opencode, claude, gemini, or a name under agents in the settings",
    )
    group.add_argument("--base-url", metavar="URL", help="address of an OpenAI-compatible service")
    group.add_argument(
        "--share",
        metavar="PATH",
        action="append",
        default=[],
        help="a note or folder that the model may read without asking (repeat)",
    )
    return parser


def add_approval(
    parser: argparse._ActionsContainer, help_text: str = "approve without asking"
) -> None:
    """Add the option that approves without a question."""
    parser.add_argument("--yes", action="store_true", help=help_text)
