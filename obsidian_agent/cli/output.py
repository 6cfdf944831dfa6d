"""Output of the commands: one JSON document, or lines for the terminal with sanitized text."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, TextIO

import msgspec
from msgspec import Struct

from obsidian_agent.errors import AnswerNotWritten, Problem
from obsidian_agent.terminal_text import block, line

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

# JSON does not escape these, and a terminal would obey them. Escaped, the document is the same.
_CONTROL = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")

NOT_ASKED: Final = "Not done: add --yes, or run it in a terminal to be asked."

_PIECES: Final = 4096
"""Tokens of a JSON document that are written at once."""

_COLORS = {"-": 31, "+": 32, "@": 36}
"""Colors of the terminal's own theme, by the first character of a diff line."""
_HEADER_LINES = 2

PATIENCE: Final = 0.3
"""Seconds before a progress bar is displayed, which imports rich."""


class Stream(list[Any]):
    """A non-empty list in a JSON document whose items are encoded one at a time."""

    def __init__(self, items: Iterable[Any]) -> None:
        super().__init__((None,))  # the encoder does not iterate over an empty list
        self._items = items

    def __iter__(self) -> Iterator[Any]:
        return iter(self._items)


def _pieces(document: dict[str, Any], encoder: json.JSONEncoder) -> Iterator[str]:
    """Yield a document as JSON. Whole items are encoded much faster than `iterencode` does it."""
    separator = "{"
    for name, value in document.items():
        yield f"{separator}{encoder.encode(name)}: "
        separator = ", "
        if not isinstance(value, Stream):
            yield encoder.encode(value)
            continue
        for position, item in enumerate(value):
            yield f"{', ' if position else '['}{_encoded(item, encoder)}"
        yield "]"
    yield "}" if document else "{}"


def _encoded(item: Any, encoder: json.JSONEncoder) -> str:
    """Return an item as JSON. msgspec takes a tenth of the time, but refuses lone surrogates."""
    try:
        return msgspec.json.format(msgspec.json.encode(item), indent=0).decode()
    except (UnicodeEncodeError, OverflowError):
        return encoder.encode(item)


class Output(Struct, frozen=True):
    """The output of a command. With `as_json` standard output gets a single document only."""

    as_json: bool
    verbose: bool = False
    by_author: bool = False
    """True if the user wrote the plan: problems then name its steps, fields and references."""

    def document(self, document: Any) -> None:
        """Write the command's JSON document, and the items of a `Stream` in it one at a time."""
        on_screen = sys.stdout is not None and sys.stdout.isatty()
        encoder = json.JSONEncoder(ensure_ascii=False, indent=2 if on_screen else None)
        is_plain = isinstance(document, dict) and not on_screen
        pieces = _pieces(document, encoder) if is_plain else encoder.iterencode(document)
        while text := "".join(islice(pieces, _PIECES)):
            _write(_CONTROL.sub(lambda match: f"\\u{ord(match[0]):04x}", text))
        _write("\n")

    def line(self, text: str = "") -> None:
        """Write a sanitized line, wrapped with an indent. Nothing in JSON mode."""
        if not self.as_json:
            _write(_one_line(text, sys.stdout) + "\n")

    def text(self, text: str, indent: str = "    ") -> None:
        """Write foreign text, indented to distinguish it from the program's own lines.

        Nothing in JSON mode.
        """
        if not self.as_json:
            for line_ in block(text).split("\n"):
                _write(_wrapped(indent + line_, f"{indent}    ", sys.stdout) + "\n")

    def diff(self, diff: str) -> None:
        """Write a unified diff, indented, and colored on a terminal. Nothing in JSON mode."""
        if self.as_json:
            return
        has_colors = _has_colors()
        for number, line_ in enumerate(block(diff).split("\n")):
            text = _wrapped(line_, "        ", sys.stdout, margin=4)
            color = 1 if number < _HEADER_LINES else _COLORS.get(line_[:1])
            if has_colors and color is not None:
                text = f"\x1b[{color}m{text}\x1b[0m"
            _write(f"    {text}\n")

    def answer(self, text: str) -> None:
        """Write an answer, indented on a terminal and unchanged elsewhere. Nothing in JSON mode."""
        if on_terminal(sys.stdout):
            self.text(text, "  ")
        elif not self.as_json:
            _write(block(text) + "\n")

    def source(self, text: str) -> None:
        """Write source code, such as a shell script, unchanged. Nothing in JSON mode."""
        if not self.as_json:
            _write(text if text.endswith("\n") else f"{text}\n")

    def note(self, text: str) -> None:
        """Write a line to standard error."""
        if sys.stderr is not None:
            print(_one_line(text, sys.stderr), file=sys.stderr)

    def agreed(self, question: str) -> bool:
        """Ask on the terminal. Only a yes that is typed after the question counts."""
        return ask(question).strip().lower() in ("y", "yes")

    def problems(self, problems: Iterable[Problem]) -> None:
        """Write problems to standard error, one per line. Equal lines are written once.

        The author of a plan also gets the step, the pointer and the code of each problem.
        """
        texts: dict[str, None] = {}
        for problem in problems:
            if self.as_json or self.by_author:
                text = problem.message
                step = problem.instance or problem.step_id
                location = ", ".join(part for part in (step, problem.path, problem.code) if part)
            else:
                text, location = problem.sentence, problem.file or ""
            texts[f"{text} ({location})" if location and location not in text else text] = None
        for text in texts:
            self.note(text)

    def confirmed(self, question: str, yes: bool, refusal: str = NOT_ASKED) -> bool:
        """Return True if the user approves, by `--yes` or on the terminal.

        Without a terminal, report `refusal`.
        """
        if yes:
            return True
        if self.as_json or not on_terminal(sys.stdin):
            if self.as_json:
                errors = [{"code": "NOT_APPROVED", "message": refusal}]
                self.document({"outcome": "refused", "message": refusal, "errors": errors})
            self.note(refusal)
            return False
        self.line(question)
        return self.agreed("Type yes: ")


def ask(question: str) -> str:
    """Read a line from the terminal, discarding earlier input. Raises EOFError at its end."""
    # Without a terminal, or on Windows, there is nothing to discard.
    with contextlib.suppress(ImportError, OSError, ValueError):
        import termios

        sys.stdout.flush()
        termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)
    return input(line(question))


def _has_colors() -> bool:
    """Return True if standard output is a terminal with colors enabled (no-color.org)."""
    return (
        on_terminal(sys.stdout)
        and not os.environ.get("NO_COLOR")
        and os.environ.get("TERM") != "dumb"
    )


def on_terminal(stream: TextIO | None) -> bool:
    """Return True if a stream is open and connected to a terminal."""
    return stream is not None and not stream.closed and stream.isatty()


def _one_line(text: str, stream: TextIO | None) -> str:
    return _wrapped(line(text), "    ", stream)


def _wrapped(text: str, indent: str, stream: TextIO | None, *, margin: int = 0) -> str:
    """Wrap text on a terminal with an indent, so that foreign text cannot start a line."""
    if not on_terminal(stream):
        return text
    room = shutil.get_terminal_size().columns - 1 - margin
    if not text.isascii():
        room //= 2  # wide characters take two columns
    if len(text) <= room:
        return text
    step = max(room - len(indent), 10)
    return f"\n{indent}".join(
        [text[:room], *(text[at : at + step] for at in range(room, len(text), step))]
    )


def _write(text: str) -> None:
    """Write to standard output and flush it, so that a full disk can still be reported."""
    try:
        if sys.stdout is None:
            raise OSError(errno.EBADF, "standard output is closed")
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        reason = error.strerror or error
        raise AnswerNotWritten(
            f"The output could not be written ({reason}). Changes that were made remain: "
            "see obsidian-agent history."
        ) from error


@contextlib.contextmanager
def progress(title: str, out: Output) -> Iterator[Callable[[int, int], None]]:
    """Return a function that updates a progress bar on standard error with done and total.

    The bar is displayed on a terminal only, and once the block runs for `PATIENCE` seconds.
    """
    bar: Progress | None = None
    task: TaskID | None = None
    start = time.monotonic()

    def update(done: int, total: int) -> None:
        nonlocal bar, task
        if bar is None:
            is_early = time.monotonic() - start < PATIENCE
            if not total or out.verbose or is_early or not on_terminal(sys.stderr):
                return
            bar, task = _bar(title, total)
        if task is not None:
            bar.update(task, completed=done, total=total)

    try:
        yield update
    finally:
        if bar is not None:
            bar.stop()


def _bar(title: str, total: int) -> tuple[Progress, TaskID]:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    bar = Progress(*columns, console=Console(stderr=True), transient=True)
    task = bar.add_task(title, total=total)
    bar.start()
    return bar, task
