"""The table of commands, and the options that several of them share.

A command's own arguments are in its module, in a function `arguments` that adds the parsers of the module's commands. Only the module of the
command that was called is imported, and it imports at its top nothing but what parsing needs, so that help comes at once.
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
"""What a command does with its options."""


class Command(NamedTuple):
    """A command's module in this package, and what it does."""

    module: str
    summary: str


COMMANDS: Final = {
    "preview": Command("plan", "validate and dry-run a plan; writes nothing"),
    "run": Command("plan", "preview a plan, ask, execute"),
    "plan": Command("plan", "make a plan, don't run it"),
    "do": Command("plan", "plan, preview, ask, run"),
    "ask": Command("ask", "answer a question about the vault; changes nothing"),
    "rename": Command("plan", "rename or move a note or folder; links keep working"),
    "history": Command("history", "runs, newest first"),
    "undo": Command("history", "undo the last run, or a named one"),
    "redo": Command("history", "redo what was undone last"),
    "recover": Command("history", "what a crash left half done"),
    "audit": Command("history", "what was done to the vault, and what of it was sent to models"),
    "macro": Command("macro", "saved plans: list, run, save, show, …"),
    "recipe": Command(
        "recipe", "what can be done without a model and without a sentence: parameterised plans"
    ),
    "search": Command("search", "find notes by name, content or tag"),
    "links": Command("search", "what notes link to, what leads nowhere, who links back"),
    "index": Command("search", "build or refresh the index of the vault, with figures"),
    "plugins": Command("plugins", "community plugins that may help; nothing is installed"),
    "companion": Command("companion", "the plugin beside Obsidian: install, status, remove"),
    "threads": Command("threads", "conversations: list, show, rename, delete"),
    "config": Command("config", "settings, with where each value comes from"),
    "key": Command("config", "keys of services for models: save, forget, list; never shown"),
    "model": Command(
        "model", "models on this machine: which run, choose one, try it; nothing is downloaded"
    ),
    "tools": Command("doctor", "what a plan can do"),
    "schema": Command("doctor", "JSON Schemas"),
    "doctor": Command("doctor", "check the vault, the state folder and the journal"),
    "log": Command("doctor", "what went wrong in the program itself"),
    "completion": Command("doctor", "a script that lets your shell complete commands and options"),
    "policy": Command("policy", "what would happen to a file, and by which rule"),
    "mcp": Command("mcp", "the vault for other agents, by the Model Context Protocol"),
    "app": Command("app", "open the terminal app"),
}

DESCRIPTION = """Say what should change in your Obsidian vault, see every byte of it, approve it with one key, undo it any time.

obsidian-agent [VAULT] opens the terminal app: VAULT is a folder or the name of a vault that Obsidian knows.
obsidian-agent COMMAND --help tells about one command."""

EXAMPLES = (
    "~/Notes",
    "do \"append 'Call Ada' to Inbox\" --vault ~/Notes",
    "preview plan.json --vault ~/Notes",
    "undo --vault ~/Notes",
)


class UsageError(ConfigError):
    """The command line cannot be understood."""

    default_code = "USAGE"


class Parser(argparse.ArgumentParser):
    """A parser whose errors are ours, and whose options are never guessed from their beginnings."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(
            *args,
            **(
                options
                | {"allow_abbrev": False, "formatter_class": argparse.RawDescriptionHelpFormatter}
            ),
        )

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message[:1].upper()}{message[1:]}.", hint=f"See {self.prog} --help.")


MOST: Final = 1_000_000_000
"""Largest number that an option takes."""


def whole_number(text: str) -> int:
    """Parse the value of an option that counts. Raises `argparse.ArgumentTypeError`."""
    if not (text.isascii() and text.isdigit() and len(text) <= len(str(MOST))) or int(text) > MOST:
        shown = text if len(text) <= 40 else f"{text[:40]}…"
        raise argparse.ArgumentTypeError(f"{shown!r} is not a whole number from 0 to {MOST:,}")
    return int(text)


class Commands:
    """Takes the parsers of a module's commands, or of a command's actions."""

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
        """A parser for a command of the table, or with a `summary` for an action; `examples` are written without the program's name."""
        told = summary or COMMANDS[name].summary
        parser: Parser = self._subparsers.add_parser(
            name,
            help=told,
            description=f"{told[:1].upper()}{told[1:]}.",
            epilog=_epilog(examples),
            parents=[everywhere(again=True), *parents],
        )
        if run is not None:
            parser.set_defaults(call=run)
        return parser


def actions(command: Parser, *, required: bool = True) -> Commands:
    """What takes the actions of a command. Options of every command may stand before the action too."""
    return Commands(
        command.add_subparsers(
            dest="action", metavar="ACTION", required=required, parser_class=Parser
        )
    )


def build_parser(called: str | None) -> Parser:
    """The parser of a command line that calls this command. Of no command: with the names of all. None: with all of them, whole."""
    parser = Parser(
        prog="obsidian-agent",
        description=DESCRIPTION,
        epilog=_epilog(EXAMPLES),
        parents=[everywhere()],
    )
    parser.add_argument(
        "--version", "-V", action="version", version=f"obsidian-agent {__version__}"
    )
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND", parser_class=Parser)
    if called is None:
        wanted = dict.fromkeys(command.module for command in COMMANDS.values())
    else:
        wanted = dict.fromkeys([COMMANDS[called].module] if called in COMMANDS else [])
        for name, command in COMMANDS.items() if not wanted else ():
            subparsers.add_parser(name, help=command.summary)
    for module in wanted:
        import_module(f"obsidian_agent.cli.{module}").arguments(Commands(subparsers))
    return parser


def _epilog(examples: Iterable[str]) -> str:
    shown = [f"  obsidian-agent {example}" for example in examples]
    return "\n".join(
        [*(["examples:", *shown, ""] if shown else []), "exit codes:", f"  {EXIT_CODES}"]
    )


def everywhere(*, again: bool = False) -> Parser:
    """The options of every command. `again`: for a command or action, where what was given before it holds unless it is given again."""
    parser = Parser(add_help=False)
    group = parser.add_argument_group("everywhere")
    group.add_argument(
        "--vault", metavar="VAULT", help="folder, or name of a vault that Obsidian knows"
    )
    group.add_argument("--json", action="store_true", help="one JSON document on standard output")
    group.add_argument(
        "--state-dir",
        metavar="DIR",
        help="where the journal lies (default: the user's state folder)",
    )
    group.add_argument("--config", metavar="FILE", help="settings file")
    group.add_argument("--verbose", action="store_true", help="tell more on standard error")
    group.add_argument("--no-color", action="store_true", help="no colours")
    if again:
        for option in parser._actions:
            option.default = argparse.SUPPRESS
    return parser


def context() -> Parser:
    """The options that say what is open, what is selected and what a run may do."""
    parser = Parser(add_help=False)
    group = parser.add_argument_group("what the plan knows")
    group.add_argument("--active-file", metavar="PATH", help="the open note")
    group.add_argument(
        "--selection-range",
        metavar="L:C-L:C",
        help="selected range in it: 0-based lines, UTF-16 columns",
    )
    group.add_argument("--selection-file", metavar="FILE", help="selected text, from a file")
    group.add_argument("--selection", metavar="TEXT", help="selected text")
    group.add_argument(
        "--param", metavar="K=V", action="append", default=[], help="value of a parameter (repeat)"
    )
    group.add_argument("--now", metavar="ISO", help="the run's clock")
    group.add_argument(
        "--allow-deletes", action="store_true", help="this run may move notes to .trash"
    )
    group.add_argument(
        "--allow-commands", action="store_true", help="this run may run Obsidian commands"
    )
    return parser


def planner() -> Parser:
    """The options that say who plans or answers."""
    parser = Parser(add_help=False)
    group = parser.add_argument_group("who plans")
    group.add_argument(
        "--offline", action="store_true", help="the built-in planner: no model, no network"
    )
    group.add_argument(
        "--model", metavar="PROVIDER/NAME", help="a model; scripted/FILE plays answers from a file"
    )
    group.add_argument(
        "--backend",
        choices=("acp", "opencode"),
        help="another agent plans; opencode is acp with --agent opencode",
    )
    group.add_argument(
        "--agent",
        metavar="NAME",
        help="which one: opencode, claude, gemini, or a name under agents in the settings",
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


def approval(parser: argparse._ActionsContainer, help_text: str = "approve without asking") -> None:
    """The option of commands that ask."""
    parser.add_argument("--yes", action="store_true", help=help_text)
