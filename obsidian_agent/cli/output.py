"""What goes to standard output and standard error: one JSON document, or lines for people with foreign text made harmless."""

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

from obsidian_agent.dataclass import dataclass
from obsidian_agent.errors import AnswerNotWritten, Problem
from obsidian_agent.terminal_text import block, line

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

# JSON leaves these as they are, and a terminal would obey them; escaped they are the same document.
_CONTROL = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


NOT_ASKED: Final = "Not done: add --yes, or run it in a terminal to be asked."


_PIECES: Final = 4096
"""Words and marks of a JSON document that are written at once."""


class Stream(list[Any]):
    """A list in a JSON document of which the encoder never holds more than one item; there must be one."""

    def __init__(self, items: Iterable[Any]) -> None:
        super().__init__((None,))  # an empty list would not be asked for its items
        self._items = items

    def __iter__(self) -> Iterator[Any]:
        return iter(self._items)


@dataclass(frozen=True, slots=True)
class Output:
    """Where a command's answer goes; with `as_json` nothing but one document reaches standard output."""

    as_json: bool
    verbose: bool = False
    by_author: bool = False
    """Whether the user wrote the plan: problems then name its steps, fields and references."""

    def document(self, document: Any) -> None:
        """The command's JSON document. The items of a `Stream` in an object are written as they come."""
        encoder = json.JSONEncoder(
            ensure_ascii=False, indent=2 if sys.stdout is not None and sys.stdout.isatty() else None
        )
        streams = isinstance(document, dict) and any(
            isinstance(value, Stream) for value in document.values()
        )
        pieces = encoder.iterencode(document) if streams else iter([encoder.encode(document)])
        while text := "".join(islice(pieces, _PIECES)):
            _write(_CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", text))
        _write("\n")

    def line(self, text: str = "") -> None:
        """One line for people, whatever is in it; nothing in JSON mode. What a terminal would break goes on indented."""
        if not self.as_json:
            _write(_one_line(text, sys.stdout) + "\n")

    def text(self, text: str, indent: str = "    ") -> None:
        """Foreign text of many lines, indented: none of them can be taken for a line of the program. Nothing in JSON mode."""
        if not self.as_json:
            for line_ in block(text).split("\n"):
                _write(_wrapped(indent + line_, f"{indent}    ", sys.stdout) + "\n")

    def diff(self, diff: str) -> None:
        """A unified diff, indented as foreign text is; coloured where people look at it and want colours. Nothing in JSON mode."""
        if self.as_json:
            return
        colours = _colours()
        for number, line_ in enumerate(block(diff).split("\n")):
            shown = _wrapped(line_, "        ", sys.stdout, room_taken=4)
            paint = 1 if number < _HEADER_LINES else _PAINT.get(line_[:1])
            _write(
                "    "
                + (f"\x1b[{paint}m{shown}\x1b[0m" if colours and paint is not None else shown)
                + "\n"
            )

    def answer(self, text: str) -> None:
        """An answer: as it is for a program that reads it, indented on a terminal. Nothing in JSON mode."""
        if on_terminal(sys.stdout):
            self.text(text, "  ")
        elif not self.as_json:
            _write(block(text) + "\n")

    def source(self, text: str) -> None:
        """A program's text, such as a shell script, as it is. Nothing in JSON mode."""
        if not self.as_json:
            _write(text if text.endswith("\n") else f"{text}\n")

    def note(self, text: str) -> None:
        """A remark of one line on standard error."""
        if sys.stderr is not None:
            print(_one_line(text, sys.stderr), file=sys.stderr)

    def agreed(self, question: str) -> bool:
        """Ask on the terminal; only a yes that is typed after the question is one."""
        return ask(question).strip().lower() in ("y", "yes")

    def problems(self, problems: Iterable[Problem]) -> None:
        """Print problems, one a line; with step, pointer and code where the user wrote the plan."""
        for problem in problems:
            if self.as_json or self.by_author:
                text = problem.message
                step = problem.instance or problem.step_id
                place = ", ".join(part for part in (step, problem.path, problem.code) if part)
            else:
                text, place = problem.sentence, problem.file or ""
            self.note(f"{text} ({place})" if place and place not in text else text)

    def confirmed(self, question: str, yes: bool, refusal: str = NOT_ASKED) -> bool:
        """Whether somebody agreed: by `--yes`, or now on the terminal. Without one `refusal` is the answer."""
        if yes:
            return True
        if self.as_json or not on_terminal(sys.stdin):
            if self.as_json:
                self.document(
                    {
                        "outcome": "refused",
                        "message": refusal,
                        "errors": [{"code": "NOT_APPROVED", "message": refusal}],
                    }
                )
            self.note(refusal)
            return False
        self.line(question)
        return self.agreed("Type yes: ")


def ask(question: str) -> str:
    """A line from the terminal. What was typed before the question was there is thrown away. EOFError at its end."""
    with contextlib.suppress(
        ImportError, OSError, ValueError
    ):  # no terminal, or none that can do it
        import termios

        sys.stdout.flush()
        termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)
    return input(line(question))


_PAINT = {"-": 31, "+": 32, "@": 36}
"""Colours of the terminal's own theme, by the sign of a diff's line."""

_HEADER_LINES = 2


def _colours() -> bool:
    """Whether standard output is a terminal whose owner wants colours (no-color.org)."""
    return (
        on_terminal(sys.stdout)
        and not os.environ.get("NO_COLOR")
        and os.environ.get("TERM") != "dumb"
    )


def on_terminal(stream: TextIO | None) -> bool:
    """Whether people look at it."""
    return stream is not None and not stream.closed and stream.isatty()


def _one_line(text: str, stream: TextIO | None) -> str:
    return _wrapped(line(text), "    ", stream)


def _wrapped(text: str, indent: str, stream: TextIO | None, *, room_taken: int = 0) -> str:
    """On a terminal broken before its edge, with what follows indented: else a text could begin a line by its length alone."""
    if not on_terminal(stream):
        return text
    room = shutil.get_terminal_size().columns - 1 - room_taken
    if not text.isascii():
        room //= 2  # wide characters take two columns
    if len(text) <= room:
        return text
    step = max(room - len(indent), 10)
    return f"\n{indent}".join(
        [text[:room], *(text[at : at + step] for at in range(room, len(text), step))]
    )


def _write(text: str) -> None:
    """Write to standard output at once, so that a full disk or a closed pipe is noticed while somebody can still be told."""
    try:
        if sys.stdout is None:
            raise OSError(errno.EBADF, "standard output is closed")
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        told = f"The answer could not be written ({error.strerror or error}). What was done stays done: see obsidian-agent history."
        raise AnswerNotWritten(told) from error


PATIENCE: Final = 0.3
"""Seconds before a bar is worth showing, and rich worth importing."""


@contextlib.contextmanager
def progress(what: str, out: Output) -> Iterator[Callable[[int, int], None]]:
    """A bar on standard error while the block runs, where that is a terminal and the work takes its time; call it with done and total."""
    bar: Progress | None = None
    task: TaskID | None = None
    begun = time.monotonic()

    def show(done: int, total: int) -> None:
        nonlocal bar, task
        if bar is None:
            if (
                not total
                or out.verbose
                or not on_terminal(sys.stderr)
                or time.monotonic() - begun < PATIENCE
            ):
                return
            bar, task = _bar(what, total)
        if task is not None:
            bar.update(task, completed=done, total=total)

    try:
        yield show
    finally:
        if bar is not None:
            bar.stop()


def _bar(what: str, total: int) -> tuple[Progress, TaskID]:
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
    task = bar.add_task(what, total=total)
    bar.start()
    return bar, task
