"""Arguments in, exit code out."""

from __future__ import annotations

import argparse
import gc
import io
import os
import sys
from collections.abc import Callable, Sequence
from importlib import import_module

from obsidian_agent.cli.interrupts import end_politely
from obsidian_agent.cli.parser import UsageError, build_parser
from obsidian_agent.errors import AnswerNotWritten, ObsidianAgentError, PlanError, Problem

COMMANDS = {
    "preview": "obsidian_agent.cli.plans:preview_command",
    "run": "obsidian_agent.cli.plans:run_command",
    "plan": "obsidian_agent.cli.plans:plan_command",
    "do": "obsidian_agent.cli.plans:do_command",
    "ask": "obsidian_agent.cli.ask:ask_command",
    "rename": "obsidian_agent.cli.plans:rename_command",
    "history": "obsidian_agent.cli.history:history_command",
    "undo": "obsidian_agent.cli.history:undo_command",
    "redo": "obsidian_agent.cli.history:redo_command",
    "recover": "obsidian_agent.cli.history:recover_command",
    "macro": "obsidian_agent.cli.macros:macro_command",
    "recipe": "obsidian_agent.cli.recipes:recipe_command",
    "plugins": "obsidian_agent.cli.plugins:plugins_command",
    "links": "obsidian_agent.cli.links:links_command",
    "search": "obsidian_agent.cli.search:search_command",
    "index": "obsidian_agent.cli.search:index_command",
    "model": "obsidian_agent.cli.model:model_command",
    "threads": "obsidian_agent.cli.threads:threads_command",
    "audit": "obsidian_agent.cli.audit:audit_command",
    "config": "obsidian_agent.cli.config:config_command",
    "tools": "obsidian_agent.cli.doctor:tools_command",
    "schema": "obsidian_agent.cli.doctor:schema_command",
    "doctor": "obsidian_agent.cli.doctor:doctor_command",
    "app": "obsidian_agent.cli.app:app_command",
}
"""Each sub-command and where it lives; a command's modules are imported when it is called."""

VALUED = frozenset({"--vault", "--state-dir", "--config"})
"""Options before a command that have a value behind them."""

RUNNING = frozenset({"run", "do", "rename"})
"""Commands that answer a run's result, also when it never came to a run."""


ANY_BYTES = frozenset({"vault", "state_dir", "config", "plan", "file", "selection_file", "parse"})
"""Options that name places outside the vault."""


def main(argv: Sequence[str]) -> int:
    """Run one command line. Without a sub-command the terminal app opens."""
    arguments = list(argv)
    _speak_utf8()
    end_politely()
    command = _command(arguments)
    if command is None:
        command, arguments = "app", ["app", *arguments]
    as_json = "--json" in arguments
    report = _report_run if command in RUNNING or _runs_saved(command, arguments) else _report
    try:
        options = build_parser().parse_args(arguments)
        _refuse_broken_text(options)
        return _dispatch(options)
    except AnswerNotWritten as error:
        _forget_output()
        if sys.stderr is not None:
            sys.stderr.write(f"{error}\n")
        return 1
    except UsageError as error:
        return report(error.problem(), as_json, 2)
    except PlanError as error:
        from obsidian_agent.cli.exits import of_problems

        return report(error.problem(), as_json, of_problems(error.problems), error.problems)
    except ObsidianAgentError as error:
        return report(error.problem(), as_json, _exit_code(error))
    except KeyboardInterrupt:
        return report(Problem("CANCELLED", "Interrupted; nothing more is done."), as_json, 130)
    except EOFError:
        return report(Problem("NOT_APPROVED", "The question was not answered; nothing is done."), as_json, 3)
    except BrokenPipeError:
        # Whoever read has seen enough.
        _forget_output()
        return 0
    except Exception as error:
        if os.environ.get("OBSIDIAN_AGENT_DEBUG"):
            raise
        told = f"An unexpected error occurred ({type(error).__name__}: {error}). `obsidian-agent history` tells what was done."
        return report(Problem("INTERNAL_ERROR", told), as_json, 1)


def _speak_utf8() -> None:
    """Names of notes are Unicode whatever the terminal's encoding; what it cannot show is escaped, never an error after a run."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            utf8 = not stream.isatty() or (stream.encoding or "").lower().replace("-", "") == "utf8"
            stream.reconfigure(encoding="utf-8" if utf8 else None, errors="backslashreplace")


def _forget_output() -> None:
    """Let what is still buffered go nowhere, or writing it would fail again when Python closes the stream."""
    if sys.stdout is not None:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


def _refuse_broken_text(options: argparse.Namespace) -> None:
    """Words that are not UTF-8 name nothing in a vault; only places outside it may hold any bytes."""
    for name, value in vars(options).items():
        if isinstance(value, str) and name not in ANY_BYTES and not value.isascii() and any("\ud800" <= sign <= "\udfff" for sign in value):
            raise UsageError(f"{name.replace('_', ' ')} is not valid UTF-8.", hint="Check the terminal's encoding.")


def _runs_saved(command: str, arguments: Sequence[str]) -> bool:
    actions = ("list", "save", "run", "show", "rename", "delete", "export", "import")
    behind = arguments[arguments.index(command) + 1 :] if command in arguments else ()
    return command in ("macro", "recipe") and next((word for word in behind if word in actions), "") == "run"


def _command(arguments: Sequence[str]) -> str | None:
    """The command that is named, options before it passed over; None when the first word is none, and so a vault to open."""
    words = iter(arguments)
    for word in words:
        if word in VALUED:
            next(words, None)
        elif word in COMMANDS or word in ("-h", "--help", "--version", "-V"):
            return word
        elif not word.startswith("-"):
            return None
    return None


def _dispatch(options: argparse.Namespace) -> int:
    from obsidian_agent.cli.output import Output

    module, _, name = COMMANDS[options.command].partition(":")
    command: Callable[[argparse.Namespace, Output], int] = getattr(import_module(module), name)
    if options.no_color:
        os.environ["NO_COLOR"] = "1"
    # A headless command lives for one plan: what it allocates it keeps, and collecting cycles would only cost time. The app lives long.
    if options.command == "app":
        gc.freeze()
        gc.enable()
    else:
        gc.disable()
    return int(command(options, Output(options.json, options.verbose)))


def _exit_code(error: ObsidianAgentError) -> int:
    from obsidian_agent.errors import Conflict, JournalError, ProviderError

    match error:
        case Conflict():
            return 4
        case ProviderError():
            return 5
        case JournalError():
            return 1
        case _:
            return 2


def _report(problem: Problem, as_json: bool, code: int, problems: Sequence[Problem] = ()) -> int:
    """An error that ended the command: in JSON mode still one document on standard output."""
    from obsidian_agent.cli.output import Output

    out = Output(as_json)
    if as_json:
        outcome = "refused" if code in (2, 3) else "error"
        out.document({"outcome": outcome, "message": problem.message, "errors": [each.to_json() for each in problems or [problem]]})
    out.problems([problem, *(each for each in problems if each.message != problem.message)])
    return code


def _report_run(problem: Problem, as_json: bool, code: int, problems: Sequence[Problem] = ()) -> int:
    """The same as the result of a run that never started."""
    from obsidian_agent.agent.document import result_document
    from obsidian_agent.agent.events import ExecutionResult, RunStatus
    from obsidian_agent.cli.output import Output

    out = Output(as_json)
    if as_json:
        refused = code in (2, 3)
        statuses: dict[int, RunStatus] = {2: "refused", 3: "refused", 4: "conflict", 130: "cancelled"}
        status = statuses.get(code, "failed")
        result = ExecutionResult(None, status, False, "refused" if refused else "error", errors=tuple(problems) or (problem,))
        out.document(result_document(result) | {"message": problem.message})
    out.problems(problems or [problem])
    return code
