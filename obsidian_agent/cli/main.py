"""The entry point of the command line: from arguments to an exit code."""

from __future__ import annotations

import argparse
import gc
import io
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from obsidian_agent.cli.exits import handle_signals, of_error
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
"""Global options with a value."""

FLAGS = frozenset({"--json", "--verbose", "--no-color"})
"""Global options without a value."""

RUNNING = frozenset({"run", "do", "rename"})
"""Commands whose JSON document is the result of a run, even if it failed before the run."""

_LONG_LIVED = frozenset({"app", "acp", "mcp", "rule"})
"""Commands that stay open, so that their garbage is collected."""

ANY_BYTES = frozenset({"vault", "state_dir", "config", "plan", "file", "selection_file", "parse"})
"""Options that name files outside the vault, whose paths may hold any bytes."""


def main(argv: Sequence[str]) -> int:
    """Run one command line and return its exit code. Without a command the terminal app opens."""
    arguments = list(argv)
    _configure_streams()
    handle_signals()
    command, vault = _command(arguments)
    if command is None:
        command, arguments = "app", ["app", *arguments]
    as_json = "--json" in arguments
    runs = command in RUNNING or _runs_saved(command, arguments)

    options: argparse.Namespace | None = None

    def report(problem: Problem, code: int, problems: Sequence[Problem] = ()) -> int:
        from obsidian_agent.cli.output import Output

        out = Output(as_json, by_author=_wrote_the_plan(options))
        return _report(problem, out, runs, code, problems)

    try:
        if vault is not None:
            _check_vault(vault)
        options = build_parser(command).parse_args(arguments)
        _refuse_invalid_text(options)
        return _dispatch(options)
    except AnswerNotWritten as error:
        _discard_output()
        if sys.stderr is not None:
            sys.stderr.write(f"{error}\n")
        return 1
    except ObsidianAgentError as error:
        problems = error.problems if isinstance(error, PlanError) else ()
        return report(error.problem(), of_error(error), problems)
    except KeyboardInterrupt:
        return report(Problem("CANCELLED", "Interrupted. Nothing more will be changed."), 130)
    except EOFError:
        return report(Problem("NOT_APPROVED", "No answer was given, so nothing was done."), 3)
    except BrokenPipeError:
        # The reader has closed the pipe, as `head` does.
        _discard_output()
        return 0
    except Exception as error:
        if os.environ.get("OBSIDIAN_AGENT_DEBUG"):
            raise
        message = (
            f"An unexpected error occurred ({type(error).__name__}: {error}). See "
            "`obsidian-agent history` for what was done and `obsidian-agent log` for its cause."
        )
        _log(options, error)
        return report(Problem("INTERNAL_ERROR", message), 1)


def _log(options: argparse.Namespace | None, error: Exception) -> None:
    import logging

    from obsidian_agent import log
    from obsidian_agent.state_files import directories

    log.start(directories(*((options.state_dir, options.config) if options else ())).log)
    logging.getLogger(__name__).error("A command failed", exc_info=error)


def _configure_streams() -> None:
    """Write UTF-8, or to a terminal its own encoding with other characters escaped."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            utf8 = not stream.isatty() or (stream.encoding or "").lower().replace("-", "") == "utf8"
            stream.reconfigure(encoding="utf-8" if utf8 else None, errors="backslashreplace")


def _discard_output() -> None:
    """Discard buffered output, which would fail again when Python closes the stream."""
    if sys.stdout is not None:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, sys.stdout.fileno())
        os.close(null)


def _refuse_invalid_text(options: argparse.Namespace) -> None:
    """Raise `UsageError` for arguments that are not UTF-8, which can name nothing in a vault."""
    for name, value in vars(options).items():
        if (
            isinstance(value, str)
            and name not in ANY_BYTES
            and not value.isascii()
            and any("\ud800" <= char <= "\udfff" for char in value)
        ):
            raise UsageError(
                f"{name.replace('_', ' ')} is not valid UTF-8.",
                hint="Check the terminal's encoding.",
            )


def _runs_saved(command: str, arguments: Sequence[str]) -> bool:
    """Return True for `macro run` and `recipe run`."""
    if command not in ("macro", "recipe") or command not in arguments:
        return False
    actions = ("list", "save", "run", "show", "rename", "delete", "export", "import")
    words = arguments[arguments.index(command) + 1 :]
    return next((word for word in words if word in actions), "") == "run"


def _command(arguments: Sequence[str]) -> tuple[str | None, str | None]:
    """Return the command, or None and the vault to open if its word is certain."""
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
    """Raise `UsageError` for a first word that is not a vault but may be a misspelled command."""
    from obsidian_agent.cli.session_factory import find_vault
    from obsidian_agent.errors import did_you_mean

    try:
        find_vault(word)
    except ConfigError as error:
        if error.code != "VAULT_NOT_FOUND" or "/" in word or os.sep in word:
            raise
        suggestion = did_you_mean(word, COMMANDS).strip()
        raise UsageError(
            f"{word!r} is neither a command nor a vault.",
            code="USAGE" if suggestion else error.code,
            hint=suggestion or "See obsidian-agent --help.",
        ) from error


def _dispatch(options: argparse.Namespace) -> int:
    from obsidian_agent.cli.output import Output

    if options.no_color:
        os.environ["NO_COLOR"] = "1"
    # Most commands live for one plan and free little memory: collecting cycles only costs time.
    if options.command in _LONG_LIVED:
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
    """Report an error that ended the command, in JSON mode as one document on standard output.

    `runs` means that the document is the result of a run, which never started.
    """
    refused = code in (2, 3)
    if out.as_json and runs:
        from obsidian_agent.agent.event_documents import result_document
        from obsidian_agent.agent.events import ExecutionResult, RunStatus

        statuses: dict[int, RunStatus] = {
            2: "refused",
            3: "refused",
            4: "conflict",
            130: "cancelled",
        }
        status = statuses.get(code, "failed")
        result = ExecutionResult(
            run_id=None,
            status=status,
            success=False,
            outcome="refused" if refused else "error",
            errors=tuple(problems) or (problem,),
        )
        out.document(result_document(result) | {"message": problem.message})
    elif out.as_json:
        document = {
            "outcome": "refused" if refused else "error",
            "message": problem.message,
            "errors": [error.to_json() for error in problems or [problem]],
        }
        out.document(document)
    if runs and problems:
        out.problems(problems)
    else:
        others = (other for other in problems if other.message != problem.message)
        out.problems([problem, *others])
    return code
