"""The app ends with its terminal, and when the system asks, in a process of its own."""

from __future__ import annotations

import asyncio
import fcntl
import os
import pty
import select
import signal
import sys
import termios
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, cast

import pytest

from obsidian_agent.cli.app import _run
from obsidian_agent.tui.app import ObsidianAgentApp
from obsidian_agent.tui.driver import with_hangup_detection
from support import MakeVault

SILENT = b"\t"
"""The key that leaves the message box: without a blinking cursor nothing is drawn any more."""


def _hears_hang_up() -> None:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


def _is_under_nohup() -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)


def _has_no_controlling_terminal() -> None:
    """As by `su -c` or `setsid`: no signal tells of its end."""
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    fcntl.ioctl(0, termios.TIOCNOTTY)


def _app_over(vault: str, place: Path) -> list[str]:
    """Return the command line of the app, with its state under `place`."""
    words = [sys.executable, "-m", "obsidian_agent", "app", vault, "--offline"]
    return [*words, "--state-dir", os.fspath(place / "state")]


def _end(terminal: int) -> bytes:
    """Read what is drawn until the drawing ends."""
    drawn = b""
    with suppress(OSError):
        while select.select([terminal], [], [], 30)[0] and (more := os.read(terminal, 1 << 16)):
            drawn += more
    return drawn


@pytest.mark.parametrize(
    ("prepare", "keys", "asked"),
    [
        (_hears_hang_up, b"words that are still to be drawn", None),
        (_is_under_nohup, b"words that are still to be drawn", None),
        (_has_no_controlling_terminal, SILENT, None),
        (_hears_hang_up, b"words", signal.SIGTERM),
    ],
)
def test_the_app_ends_with_its_terminal_or_when_it_is_asked_to(
    tmp_path: Path,
    make_vault: MakeVault,
    prepare: Callable[[], None],
    keys: bytes,
    asked: signal.Signals | None,
) -> None:
    vault = make_vault({"A.md": "one\n"}).real_path
    process, terminal = pty.fork()
    if not process:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        prepare()
        os.execve(
            sys.executable,
            _app_over(vault, tmp_path),
            os.environ | {"TERM": "xterm-256color", "HOME": os.fspath(tmp_path)},
        )
    drawn, deadline = b"", time.monotonic() + 60
    while b"New line" not in drawn and time.monotonic() < deadline:
        if select.select([terminal], [], [], 0.1)[0]:
            drawn += os.read(terminal, 1 << 16)
    os.write(terminal, keys)
    while keys == SILENT and select.select([terminal], [], [], 1.0)[0]:
        os.read(terminal, 1 << 16)
    if asked is not None:
        os.kill(process, asked)
        assert b"\x1b[?1049l" in _end(terminal), "the terminal is left as it was"
    os.close(terminal)
    ended, status = 0, 0
    while not ended and time.monotonic() < deadline:
        ended, status = os.waitpid(process, os.WNOHANG)
        time.sleep(0.05)
    if not ended:
        os.kill(process, signal.SIGKILL)
        os.waitpid(process, 0)
    # 1: the thread that reads keys may be the first that hears of it.
    assert ended, "it waits for a terminal that is gone"
    assert os.waitstatus_to_exitcode(status) in ((130,) if asked else (130, 1))


def test_keys_before_the_first_frame_do_not_end_the_app(
    tmp_path: Path, make_vault: MakeVault
) -> None:
    vault = make_vault({"A.md": "one\n"}).real_path
    process, terminal = pty.fork()
    if not process:
        os.execve(
            sys.executable,
            _app_over(vault, tmp_path),
            os.environ | {"TERM": "xterm-256color", "HOME": os.fspath(tmp_path)},
        )
    drawn, deadline = b"", time.monotonic() + 60
    with suppress(OSError):  # the app has ended
        while b"New line" not in drawn and time.monotonic() < deadline:
            os.write(terminal, b"x")
            if select.select([terminal], [], [], 0.01)[0]:
                drawn += os.read(terminal, 1 << 16)
    os.kill(process, signal.SIGTERM)
    _end(terminal)
    os.waitpid(process, 0)
    os.close(terminal)
    assert b"New line" in drawn


def test_the_screen_stays_on_the_terminal_when_standard_error_is_a_log(
    tmp_path: Path, make_vault: MakeVault
) -> None:
    vault, log = make_vault({"A.md": "one\n"}).real_path, tmp_path / "log"
    process, terminal = pty.fork()
    if not process:
        os.dup2(os.open(log, os.O_WRONLY | os.O_CREAT), 2)
        os.execve(
            sys.executable,
            _app_over(vault, tmp_path),
            os.environ | {"TERM": "xterm-256color", "HOME": os.fspath(tmp_path)},
        )
    drawn, deadline = b"", time.monotonic() + 60
    while b"New line" not in drawn and time.monotonic() < deadline:
        if select.select([terminal], [], [], 0.1)[0]:
            drawn += os.read(terminal, 1 << 16)
    os.kill(process, signal.SIGTERM)
    _end(terminal)
    os.waitpid(process, 0)
    os.close(terminal)
    assert b"New line" in drawn
    assert b"\x1b" not in log.read_bytes()


async def test_a_signal_is_for_the_app_to_answer() -> None:
    asked = asyncio.Event()

    class App:
        hang_up = staticmethod(asked.set)

        async def run_async(self) -> None:
            signal.raise_signal(signal.SIGTERM)
            async with asyncio.timeout(10):
                await asked.wait()

    before = signal.signal(signal.SIGTERM, lambda number, frame: None)
    await _run(cast("ObsidianAgentApp", App()))
    signal.signal(signal.SIGTERM, before)


def test_what_is_drawn_after_the_end_leads_nowhere_and_fails_nobody() -> None:
    ours, its = pty.openpty()
    told: list[None] = []

    class Driver:
        def __init__(self) -> None:
            self._file: IO[str] = os.fdopen(its, "w")

    driver = cast("Any", with_hangup_detection)(Driver, lambda: told.append(None))()
    os.close(ours)
    for _ in range(2):
        driver._file.write("words")
        driver._file.flush()
    assert told
    assert os.fstat(its).st_rdev == os.stat(os.devnull).st_rdev
    driver._file.close()
