"""Arguments in, exit code out."""

from __future__ import annotations

import argparse
import gc
import io
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from obsidian_agent.cli.exits import end_politely, of_error
from obsidian_agent.cli.parser import COMMANDS, UsageError, build_parser
from obsidian_agent.errors import (
    AnswerNotWritten,
    ConfigError,
    ObsidianAgentError,
    PlanError,
    Problem,
)

if TYPE_CHECKING:
    from obsidian_agent.cli.output import Output

VALUED = frozenset({"--vault", "--state-dir", "--config"})
"""Options before a command that have a value behind them."""

FLAGS = frozenset({"--json", "--verbose", "--no-color"})
"""Options before a command that have no value."""

RUNNING = frozenset({"run", "do", "rename"})
"""Commands that answer a run's result, also when it never came to a run; and `run` as an action of a command does."""

ANY_BYTES = frozenset({"vault", "state_dir", "config", "plan", "file", "selection_file", "parse"})
"""Options that name places outside the vault."""


def main(argv: Sequence[str]) -> int:
    """Run one command line. Without a sub-command the terminal app opens."""
    arguments = list(argv)
    _speak_utf8()
    end_politely()
    called, vault = _called(arguments)
    if called is None:
        called, arguments = "app", ["app", *arguments]
    as_json, runs = "--json" in arguments, called in RUNNING or _runs_saved(called, arguments)

    options: argparse.Namespace | None = None

    def report(problem: Problem, code: int, problems: Sequence[Problem] = ()) -> int:
        from obsidian_agent.cli.output import Output

        out = Output(as_json, by_author=_wrote_the_plan(options))
        return _report(problem, out, runs, code, problems)

    try:
        if vault is not None:
            _check_vault(vault)
        options = build_parser(called).parse_args(arguments)
        _refuse_broken_text(options)
        return _dispatch(options)
    except AnswerNotWritten as error:
        _forget_output()
        if sys.stderr is not None:
            sys.stderr.write(f"{error}\n")
        return 1
    except ObsidianAgentError as error:
        return report(
            error.problem(), of_error(error), error.problems if isinstance(error, PlanError) else ()
        )
    except KeyboardInterrupt:
        return report(Problem("CANCELLED", "Interrupted; nothing more is done."), 130)
    except EOFError:
        return report(Problem("NOT_APPROVED", "The question was not answered; nothing is done."), 3)
    except BrokenPipeError:
        # Whoever read has seen enough.
        _forget_output()
        return 0
    except Exception as error:
        if os.environ.get("OBSIDIAN_AGENT_DEBUG"):
            raise
        told = f"An unexpected error occurred ({type(error).__name__}: {error}). `obsidian-agent history` tells what was done, `log` where it was."
        _log(options, error)
        return report(Problem("INTERNAL_ERROR", told), 1)


def _log(options: argparse.Namespace | None, error: Exception) -> None:
    import logging

    from obsidian_agent import log
    from obsidian_agent.state_files import directories

    log.start(directories(*((options.state_dir, options.config) if options else ())).log)
    logging.getLogger(__name__).error("A command failed", exc_info=error)


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
        if (
            isinstance(value, str)
            and name not in ANY_BYTES
            and not value.isascii()
            and any("\ud800" <= sign <= "\udfff" for sign in value)
        ):
            raise UsageError(
                f"{name.replace('_', ' ')} is not valid UTF-8.",
                hint="Check the terminal's encoding.",
            )


def _runs_saved(called: str, arguments: Sequence[str]) -> bool:
    actions = ("list", "save", "run", "show", "rename", "delete", "export", "import")
    behind = arguments[arguments.index(called) + 1 :] if called in arguments else ()
    return (
        called in ("macro", "recipe")
        and next((word for word in behind if word in actions), "") == "run"
    )


def _called(arguments: Sequence[str]) -> tuple[str | None, str | None]:
    """Return the command, or None and the vault to open where it is certain which word names it."""
    words = iter(arguments)
    certain = True
    for word in words:
        if word in VALUED:
            next(words, None)
        elif word in COMMANDS or word in ("-h", "--help", "--version", "-V"):
            return word, None
        elif not word.startswith("-"):
            return None, word if certain else None
        elif word not in FLAGS and word.partition("=")[0] not in VALUED:
            certain = False
    return None, None


def _check_vault(word: str) -> None:
    """Raise `UsageError` for a first word that is no vault and may be a misspelled command."""
    from obsidian_agent.cli.session_factory import find_vault
    from obsidian_agent.errors import did_you_mean

    try:
        find_vault(word)
    except ConfigError as error:
        if error.code != "VAULT_NOT_FOUND" or "/" in word or os.sep in word:
            raise
        near = did_you_mean(word, COMMANDS).strip()
        raise UsageError(
            f"{word!r} is neither a command nor a vault.",
            code="USAGE" if near else error.code,
            hint=near or "See obsidian-agent --help.",
        ) from error


def _dispatch(options: argparse.Namespace) -> int:
    from obsidian_agent.cli.output import Output

    if options.no_color:
        os.environ["NO_COLOR"] = "1"
    # A headless command lives for one plan: what it allocates it keeps, and collecting cycles would only cost time. The app lives long.
    if options.command == "app":
        gc.freeze()
        gc.enable()
    else:
        gc.disable()
    out = Output(options.json, options.verbose, _wrote_the_plan(options))
    return int(options.call(options, out))


def _wrote_the_plan(options: argparse.Namespace | None) -> bool:
    """Return True for commands that read a document of the user's in the plan language."""
    return getattr(options, "by_author", False) or getattr(options, "parse", None) is not None


def _report(
    problem: Problem, out: Output, runs: bool, code: int, problems: Sequence[Problem]
) -> int:
    """An error that ended the command: in JSON mode still one document on standard output. `runs`: as the result of a run that never began."""
    refused = code in (2, 3)
    if out.as_json and runs:
        from obsidian_agent.agent.events import ExecutionResult, RunStatus, result_document

        statuses: dict[int, RunStatus] = {
            2: "refused",
            3: "refused",
            4: "conflict",
            130: "cancelled",
        }
        status = statuses.get(code, "failed")
        result = ExecutionResult(
            None,
            status,
            False,
            "refused" if refused else "error",
            errors=tuple(problems) or (problem,),
        )
        out.document(result_document(result) | {"message": problem.message})
    elif out.as_json:
        errors = [each.to_json() for each in problems or [problem]]
        out.document(
            {
                "outcome": "refused" if refused else "error",
                "message": problem.message,
                "errors": errors,
            }
        )
    out.problems(
        problems
        if runs and problems
        else [problem, *(each for each in problems if each.message != problem.message)]
    )
    return code
