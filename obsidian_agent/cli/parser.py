"""The arguments of every command. Options may stand anywhere; those that every command has before it, too."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any, NoReturn

from obsidian_agent import __version__
from obsidian_agent.errors import ConfigError

DESCRIPTION = """Say what should change in your Obsidian vault, see every byte of it, approve it with one key, undo it any time.

obsidian-agent [VAULT] opens the terminal app: VAULT is a folder or the name of a vault that Obsidian knows.
obsidian-agent COMMAND --help tells about one command."""


AddCommand = Callable[..., argparse.ArgumentParser]


class UsageError(ConfigError):
    """The command line cannot be understood."""

    default_code = "USAGE"


class _Parser(argparse.ArgumentParser):
    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **(options | {"allow_abbrev": False}))

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message[:1].upper()}{message[1:]}.", hint=f"See {self.prog} --help.")


def _shared() -> _Parser:
    parser = _Parser(add_help=False)
    group = parser.add_argument_group("everywhere")
    group.add_argument("--vault", metavar="VAULT", help="folder, or name of a vault that Obsidian knows")
    group.add_argument("--json", action="store_true", help="one JSON document on standard output")
    group.add_argument("--state-dir", metavar="DIR", help="where the journal lies (default: the user's state folder)")
    group.add_argument("--config", metavar="FILE", help="settings file")
    group.add_argument("--verbose", action="store_true", help="tell more on standard error")
    group.add_argument("--no-color", action="store_true", help="no colours")
    return parser


def _shared_again() -> _Parser:
    """The same for a command or an action: what was given before it holds unless it is given again."""
    parser = _shared()
    for option in parser._actions:
        option.default = argparse.SUPPRESS
    return parser


def _context() -> _Parser:
    parser = _Parser(add_help=False)
    group = parser.add_argument_group("what the plan knows")
    group.add_argument("--active-file", metavar="PATH", help="the open note")
    group.add_argument("--selection-range", metavar="L:C-L:C", help="selected range in it: 0-based lines, UTF-16 columns")
    group.add_argument("--selection-file", metavar="FILE", help="selected text, from a file")
    group.add_argument("--selection", metavar="TEXT", help="selected text")
    group.add_argument("--param", metavar="K=V", action="append", default=[], help="value of a parameter (repeat)")
    group.add_argument("--now", metavar="ISO", help="the run's clock")
    group.add_argument("--allow-deletes", action="store_true", help="this run may move notes to .trash")
    group.add_argument("--allow-commands", action="store_true", help="this run may run Obsidian commands")
    return parser


def _planner() -> _Parser:
    parser = _Parser(add_help=False)
    group = parser.add_argument_group("who plans")
    group.add_argument("--offline", action="store_true", help="the built-in planner: no model, no network")
    group.add_argument("--model", metavar="PROVIDER/NAME", help="a model; scripted/FILE plays answers from a file")
    group.add_argument("--base-url", metavar="URL", help="address of an OpenAI-compatible service")
    group.add_argument(
        "--share", metavar="PATH", action="append", default=[], help="a note or folder that the model may read without asking (repeat)"
    )
    group.add_argument("--backend", type=_backend, default="local", metavar="NAME", help="who works on it: local, the only one yet")
    return parser


_MISSING_BACKENDS = {"acp": "ACP to agents", "opencode": "to an opencode server"}


def _backend(name: str) -> str:
    if name == "local":
        return name
    missing = _MISSING_BACKENDS.get(name)
    why = f"{name} is not part of this version: it cannot speak {missing}" if missing else f"there is no backend {name!r}"
    raise argparse.ArgumentTypeError(f"{why}. Leave it out or say --backend local")


def build_parser() -> argparse.ArgumentParser:
    """The parser of all sub-commands; `command` (and `action` for groups) say which one was given."""
    shared, context, planner = _shared_again(), _context(), _planner()
    parser = _Parser(
        prog="obsidian-agent", description=DESCRIPTION, formatter_class=argparse.RawDescriptionHelpFormatter, parents=[_shared()]
    )
    parser.add_argument("--version", "-V", action="version", version=f"obsidian-agent {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", parser_class=_Parser)

    def add(name: str, help_text: str, *parents: _Parser) -> argparse.ArgumentParser:
        return commands.add_parser(name, help=help_text, description=help_text, parents=[shared, *parents])

    command = add("preview", "validate and dry-run a plan; writes nothing", context)
    command.add_argument("plan", metavar="PLAN.json", help="a file, or - for standard input")
    command = add("run", "preview a plan, ask, execute", context)
    command.add_argument("plan", metavar="PLAN.json", help="a file, or - for standard input")
    command.add_argument("--yes", action="store_true", help="approve without asking")
    command.add_argument("--expect-hash", metavar="H", help="only if the fresh planHash is this one")
    command = add("plan", "make a plan, don't run it", context, planner)
    command.add_argument("instruction", nargs="?", metavar="INSTRUCTION")
    command.add_argument("--parse", metavar="FILE", help="read a model's raw answer from a file or -")
    command = add("do", "plan, preview, ask, run", context, planner)
    command.add_argument("instruction", metavar="INSTRUCTION")
    command.add_argument("--pick", type=int, metavar="N", help="take the Nth candidate of the same instruction; values by --param")
    command.add_argument("--yes", action="store_true", help="approve without asking")
    command = add("ask", "answer a question about the vault; changes nothing", context, planner)
    command.add_argument("question", metavar="QUESTION")
    command.add_argument("--pick", type=int, metavar="N", help="take the Nth candidate of the same question; values by --param")
    command = add("rename", "rename or move a note or folder; links keep working", context)
    command.add_argument("old", metavar="FROM")
    command.add_argument("new", metavar="TO", help="the full new path")
    command.add_argument("--yes", action="store_true", help="approve without asking")
    command = add("history", "runs, newest first")
    command.add_argument("--limit", type=int, metavar="N", help="the newest N (default: 50 on a screen, all with --json)")
    _undo_commands(add)
    _macro_commands(add, context)
    _recipe_commands(add, context)
    _search_commands(add)
    _plugin_commands(add)
    command = add("links", "what notes link to, what leads nowhere, who links back")
    command.add_argument("path", nargs="?", metavar="PATH", help="a note; without it: every note")
    _thread_commands(add)
    command = add("audit", "what was done to the vault, and what of it was sent to models")
    command.add_argument("--tail", type=int, metavar="N", help="the newest N")
    _config_commands(add)
    _model_commands(add, planner)
    add("tools", "what a plan can do")
    command = add("schema", "JSON Schemas")
    command.add_argument("what", choices=["plan", "tools"])
    command = add("doctor", "check the vault, the state folder and the journal")
    moved = command.add_mutually_exclusive_group()
    moved.add_argument("--adopt", action="store_true", help="the vault was renamed or moved: take its history along")
    moved.add_argument("--start-anew", action="store_true", help="the vault was renamed or moved: leave its history, start a new one")
    command = add("app", "open the terminal app", planner)
    command.add_argument("name", nargs="?", metavar="VAULT")
    return parser


def _recipe_commands(add: AddCommand, context: _Parser) -> None:
    action = _actions(add("recipe", "what can be done without a model and without a sentence: parameterised plans"))
    action("list", "all of them, by subject")
    action("show", "one as JSON, with its inputs").add_argument("name", metavar="NAME")
    command = action("run", "preview, ask, execute; or answer, if it is a question", context)
    command.add_argument("name", metavar="NAME")
    command.add_argument("--yes", action="store_true", help="approve without asking")
    command.add_argument("--dry-run", action="store_true", help="only the preview")


def _plugin_commands(add: AddCommand) -> None:
    action = _actions(add("plugins", "community plugins that may help; nothing is installed"))
    command = action("search", "search Obsidian's list of community plugins; it is fetched at most once a day")
    command.add_argument("query", metavar="QUERY")
    command.add_argument("--limit", type=int, default=10, metavar="N", help="plugins at most (default 10)")
    command.add_argument("--refresh", action="store_true", help="fetch the list anew")


def _search_commands(add: AddCommand) -> None:
    command = add("search", "find notes by name, content or tag")
    command.add_argument("query", metavar="QUERY")
    command.add_argument("--mode", choices=["name", "content", "tag"], help="default: names first, then contents")
    command.add_argument("--limit", type=int, default=50, metavar="N", help="hits at most (default 50, no more than 1000)")
    command.add_argument("--offset", type=int, default=0, metavar="N", help="leave out the first N hits")
    command.add_argument("--regex", action="store_true", help="QUERY is a regular expression for lines")
    command.add_argument("--literal", action="store_true", help="look for QUERY as it is, not for its words")
    command.add_argument("--case-sensitive", action="store_true", help="with --regex and --literal")
    command = add("index", "build or refresh the index of the vault, with figures")
    command.add_argument("--rebuild", action="store_true", help="build it anew")


def _thread_commands(add: AddCommand) -> None:
    command = add("threads", "conversations: list, show, rename, delete")
    command.add_argument("--search", metavar="WORDS", help="only those whose title or words hold all of these")
    action = _actions(command, required=False)
    action("list", "all of them")
    action("show", "what was said").add_argument("id")
    command = action("rename", "give it another title")
    command.add_argument("id")
    command.add_argument("title")
    command = action("delete", "remove it for good")
    command.add_argument("id")
    command.add_argument("--yes", action="store_true", help="don't ask")


def _config_commands(add: AddCommand) -> None:
    action = _actions(add("config", "settings, with where each value comes from"), required=False)
    action("list", "all of them")
    action("get", "one setting").add_argument("name")
    command = action("set", "change one in the settings file")
    command.add_argument("name")
    command.add_argument("value")
    action("unset", "back to its default").add_argument("name")


def _model_commands(add_command: AddCommand, planner: _Parser) -> None:
    command = add_command("model", "models on this machine: which run, choose one, try it; nothing is downloaded")
    add = _actions(command, required=False)
    add("list", "the services for models that answer on this machine, and what is in use")
    command = add("use", "choose the model of the settings")
    command.add_argument("name", metavar="NAME", help="as listed, PROVIDER/NAME, or none for the menu alone")
    add("test", "play 20 sentences on a small vault of its own: right, asked, wrong, seconds", planner)


def _actions(group: argparse.ArgumentParser, *, required: bool = True) -> AddCommand:
    """What adds actions to a command. Options of every command may stand before the action too."""
    shared = _shared_again()
    actions = group.add_subparsers(dest="action", metavar="ACTION", required=required, parser_class=_Parser)

    def add(name: str, help_text: str, *parents: _Parser) -> argparse.ArgumentParser:
        return actions.add_parser(name, help=help_text, description=help_text, parents=[shared, *parents])

    return add


def _undo_commands(add: AddCommand) -> None:
    command = add("undo", "undo the last run, or a named one")
    command.add_argument("run", nargs="?", metavar="RUN")
    command.add_argument("--yes", action="store_true", help="don't ask")
    command.add_argument("--force", action="append", default=[], metavar="PATH", help="restore this file over a later edit")
    command.add_argument("--skip", action="append", default=[], metavar="PATH", help="leave this file as it is")
    command.add_argument("--to-step", metavar="ID", help="keep what the run did up to the end of this step")
    command = add("redo", "redo what was undone last")
    command.add_argument("--yes", action="store_true", help="don't ask")
    command = add("recover", "what a crash left half done")
    which = command.add_mutually_exclusive_group()
    which.add_argument("--finish", action="store_true", help="complete it")
    which.add_argument("--roll-back", action="store_true", help="bring every file back")


def _macro_commands(add_command: AddCommand, context: _Parser) -> None:
    add = _actions(add_command("macro", "saved plans: list, run, save, show, …"))
    add("list", "saved macros")
    command = add("save", "save a run as a macro")
    command.add_argument("name")
    command.add_argument("--run", required=True, metavar="RUN")
    command.add_argument("--description", metavar="TEXT")
    command.add_argument(
        "--parameter", metavar="NAME=LITERAL", action="append", default=[], help="make a literal of the plan an input of this name (repeat)"
    )
    command.add_argument("--replace", action="store_true", help="a macro of that name is replaced")
    command = add("run", "run a macro: no model", context)
    command.add_argument("name")
    mode = command.add_mutually_exclusive_group()
    mode.add_argument("--dry-run", action="store_true", help="preview only")
    mode.add_argument("--yes", action="store_true", help="approve without asking")
    command = add("show", "the macro's document")
    command.add_argument("name")
    command = add("trust", "accept a macro that came with the vault, or changed by a sync: it is shown, then asked")
    which = command.add_mutually_exclusive_group(required=True)
    which.add_argument("name", nargs="?")
    which.add_argument("--all", action="store_true", help="all that wait: each is shown, one question")
    command.add_argument("--hash", metavar="SHA256", help="accept it unasked if its file has this hash, as list --json tells it")
    command = add("edit", "put a changed document in its place")
    command.add_argument("name")
    command.add_argument("file", metavar="FILE", help="JSON as show prints it")
    command = add("rename", "give it another name")
    command.add_argument("name")
    command.add_argument("new_name")
    command = add("delete", "remove it")
    command.add_argument("name")
    command.add_argument("--yes", action="store_true", help="don't ask")
    command = add("export", "its document on standard output, or into a file")
    command.add_argument("name")
    command.add_argument("file", nargs="?", metavar="FILE")
    command = add("import", "read one from a file; it is shown, and inert until accepted")
    command.add_argument("file", metavar="FILE")
    command.add_argument("--replace", action="store_true", help="a macro of that name is replaced")
    command.add_argument("--yes", action="store_true", help="don't ask")
