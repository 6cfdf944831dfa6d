"""Other programs as children, on every system: `platform` says which, the rest is real."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from obsidian_agent.child_process import (
    LARGEST_LOG,
    ProcessLog,
    end_group,
    runnable,
    split_command,
)


@pytest.mark.parametrize(
    ("line", "platform", "words"),
    [
        (r"C:\npm\claude-agent-acp.cmd --a", "win32", (r"C:\npm\claude-agent-acp.cmd", "--a")),
        (r'"C:\My Tools\oc.exe" acp', "win32", (r"C:\My Tools\oc.exe", "acp")),
        (r"/opt/my\ agent 'a b' \"", "linux", None),
        (r"/opt/my\ agent 'a b' #c", "darwin", ("/opt/my agent", "a b", "#c")),
        ("", "linux", ()),
    ],
)
def test_a_command_line_is_read_as_its_system_writes_it(
    line: str, platform: str, words: tuple[str, ...] | None
) -> None:
    if words is None:
        assert split_command(line, platform)[-1] == '"'
    else:
        assert split_command(line, platform) == words


def test_windows_finds_the_programs_that_npm_installs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("agent.cmd", "both.exe", "both.cmd"):
        (tmp_path / name).touch(mode=0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("PATHEXT", os.pathsep.join([".EXE", ".CMD"]))
    assert runnable(("agent", "acp"), "win32") == (str(tmp_path / "agent.cmd"), "acp")
    assert runnable(("both",), "win32") == (str(tmp_path / "both.exe"),)
    for command in (("agent.cmd", "x"), ("missing",)):
        assert runnable(command, "win32") == command
    assert runnable(("agent", "acp"), "linux") == ("agent", "acp")
    assert runnable(("~/bin/check",), "linux") == (os.path.expanduser("~/bin/check"),)


def test_windows_ends_what_a_process_started_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = tmp_path / "arguments"
    stand_in = tmp_path / "taskkill"
    stand_in.write_text(f'#!/bin/sh\necho "$@" >> {arguments}\n')
    stand_in.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    end_group(4711, force=False, platform="win32")
    assert not arguments.exists(), "there is no way to ask it"
    end_group(4711, force=True, platform="win32")
    assert arguments.read_text() == "/F /T /PID 4711\n"
    monkeypatch.setenv("PATH", str(tmp_path / "nowhere"))
    end_group(4711, force=True, platform="win32")


@pytest.mark.skipif(sys.platform == "win32", reason="process groups")
def test_elsewhere_the_group_is_ended() -> None:
    program = "import subprocess; subprocess.Popen(['sleep', '600'])\nwhile True: pass"
    for force, code in ((False, -15), (True, -9)):
        process = subprocess.Popen([sys.executable, "-c", program], start_new_session=True)
        end_group(process.pid, force=force)
        assert process.wait(20) == code
        end_group(process.pid, force=True)


def test_a_log_is_private_and_limited(tmp_path: Path) -> None:
    log = ProcessLog(tmp_path / "log" / "agent.log")
    log.begin("starting\n")
    log.write("x" * LARGEST_LOG)
    log.write("dropped")
    assert log.file.stat().st_size == LARGEST_LOG
    assert log.file.stat().st_mode & 0o077 == 0
    log.begin("again\n")
    assert log.file.read_text() == "again\n"
    assert log.file.with_name("agent.log.1").read_text().startswith("starting\n")
