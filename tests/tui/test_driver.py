"""The app ends with its terminal, and when the system asks for it, in a process and a terminal of its own."""

from __future__ import annotations

import os
import pty
import select
import signal
import sys
import time
from pathlib import Path

import pytest

from support import MakeVault


@pytest.mark.parametrize("ending", ["terminal gone", "nothing to draw", signal.SIGTERM, signal.SIGHUP])
def test_the_app_ends_with_its_terminal_whatever_it_hears_of_it(
    tmp_path: Path, make_vault: MakeVault, ending: str | signal.Signals
) -> None:
    vault = make_vault({"A.md": "one\n"}).real_path
    process, terminal = pty.fork()
    if not process:
        signal.signal(signal.SIGHUP, signal.SIG_IGN if not isinstance(ending, signal.Signals) else signal.SIG_DFL)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        command = [
            sys.executable,
            "-m",
            "obsidian_agent",
            "app",
            os.fspath(vault),
            "--offline",
            "--state-dir",
            os.fspath(tmp_path / "state"),
        ]
        os.execve(sys.executable, command, os.environ | {"TERM": "xterm-256color", "HOME": os.fspath(tmp_path)})
    drawn, deadline = b"", time.monotonic() + 60
    while b"New line" not in drawn and time.monotonic() < deadline:
        if select.select([terminal], [], [], 0.1)[0]:
            drawn += os.read(terminal, 1 << 16)
    if ending == "nothing to draw":
        os.write(terminal, b"\x1bOQ")  # F2: a list, without a cursor that blinks
        time.sleep(1.0)
        while select.select([terminal], [], [], 0.1)[0]:
            os.read(terminal, 1 << 16)
    else:
        os.write(terminal, b"words that are still to be drawn")
    if isinstance(ending, signal.Signals):
        os.kill(process, ending)
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
    assert os.waitstatus_to_exitcode(status) in (130, 1)
