"""A system timer that runs a vault's rules: systemd, launchd or cron.

Sources: systemd.timer(5) and systemd.service(5); launchd.plist(5); crontab(5).
"""

from __future__ import annotations

import hashlib
import os
import plistlib
import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final, Literal

from msgspec import Struct

from obsidian_agent.errors import ConfigError
from obsidian_agent.state_files import replace_file

TimerKind = Literal["systemd", "launchd", "cron"]

_SECONDS: Final = 20.0


class Timer(Struct, frozen=True, kw_only=True):
    """A timer for one vault: the files it consists of, or its line in the crontab.

    `start` and `stop` are the commands that enable and disable it.
    """

    kind: TimerKind
    files: tuple[tuple[Path, str], ...] = ()
    line: str = ""
    start: tuple[tuple[str, ...], ...] = ()
    stop: tuple[tuple[str, ...], ...] = ()

    @property
    def text(self) -> str:
        """The timer as it is shown before it is installed."""
        parts = [f"# {path}\n{content}" for path, content in self.files]
        return "\n".join(parts) if parts else f"# crontab\n{self.line}\n"


def timer(
    vault: str,
    options: Sequence[str],
    minutes: int,
    *,
    platform: str = sys.platform,
    home: Path | None = None,
    has_systemd: bool | None = None,
) -> Timer:
    """Return a timer that runs the rules of a vault every `minutes`.

    `options` are further command line options. Raise `ConfigError` on Windows, and for a path that
    does not fit in a line.
    """
    if not vault.isprintable():
        raise ConfigError("The path of this vault has characters that cannot stand in a timer.")
    home = home or Path.home()
    command = [sys.executable, "-m", "obsidian_agent", "rule", "run", "--vault", vault, *options]
    name = f"obsidian-agent-{hashlib.sha256(vault.encode()).hexdigest()[:8]}"
    if platform == "darwin":
        return _launchd(name, command, minutes, home)
    if platform == "win32":
        raise ConfigError(
            "Timers are not installed on Windows.",
            hint=f"Let the task scheduler run: {subprocess.list2cmdline(command)}",
        )
    if has_systemd is None:
        has_systemd = Path("/run/systemd/system").is_dir()  # as sd_booted(3)
    return _systemd(name, command, minutes, home) if has_systemd else _cron(name, command, minutes)


def _systemd(name: str, command: Sequence[str], minutes: int, home: Path) -> Timer:
    folder = home / ".config" / "systemd" / "user"
    line = " ".join(_unit_word(word) for word in command)
    service = (
        "[Unit]\nDescription=Rules of obsidian-agent\n\n"
        f"[Service]\nType=oneshot\nExecStart={line}\n"
    )
    schedule = (
        "[Unit]\nDescription=Rules of obsidian-agent\n\n"
        f"[Timer]\nOnCalendar=*:0/{minutes}\nPersistent=true\n\n"
        "[Install]\nWantedBy=timers.target\n"
    )
    control = ("systemctl", "--user")
    return Timer(
        kind="systemd",
        files=((folder / f"{name}.service", service), (folder / f"{name}.timer", schedule)),
        start=((*control, "daemon-reload"), (*control, "enable", "--now", f"{name}.timer")),
        stop=((*control, "disable", "--now", f"{name}.timer"),),
    )


def _unit_word(word: str) -> str:
    """Quote a word for ExecStart, where `%` and `$` have a meaning of their own."""
    escaped = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("$", "$$")
    return f'"{escaped}"'


def _launchd(name: str, command: Sequence[str], minutes: int, home: Path) -> Timer:
    file = home / "Library" / "LaunchAgents" / f"md.obsidian-agent.{name}.plist"
    document = {
        "Label": f"md.obsidian-agent.{name}",
        "ProgramArguments": list(command),
        "StartInterval": minutes * 60,
        "ProcessType": "Background",
    }
    return Timer(
        kind="launchd",
        files=((file, plistlib.dumps(document).decode()),),
        start=(("launchctl", "load", str(file)),),
        stop=(("launchctl", "unload", str(file)),),
    )


def _cron(name: str, command: Sequence[str], minutes: int) -> Timer:
    line = shlex.join(command).replace("%", "\\%")
    return Timer(kind="cron", line=f"*/{minutes} * * * * {line} >/dev/null 2>&1 # {name}")


def is_installed(timer: Timer) -> bool:
    """Return whether the timer is installed. May block."""
    if timer.kind == "cron":
        lines = _crontab()
        return len(_other_lines(timer, lines)) < len(lines)
    return all(path.exists() for path, _ in timer.files)


def install(timer: Timer) -> None:
    """Write the timer and start it. Raise OSError, or `ConfigError` if the system refuses it."""
    if timer.kind == "cron":
        _write_crontab([*_other_lines(timer, _crontab()), timer.line])
        return
    try:
        for path, content in timer.files:
            replace_file(path, content.encode())
        for command in timer.start:
            _run(command)
    except (ConfigError, OSError):
        _remove_files(timer)
        raise


def remove(timer: Timer) -> None:
    """Stop and remove the timer, if it is installed. Raise the same errors as `install`."""
    if timer.kind == "cron":
        if is_installed(timer):
            _write_crontab(_other_lines(timer, _crontab()))
        return
    if not is_installed(timer):
        return
    for command in timer.stop:
        _run(command)
    _remove_files(timer)


def _remove_files(timer: Timer) -> None:
    for path, _ in timer.files:
        path.unlink(missing_ok=True)


def _crontab() -> list[str]:
    """Return the lines of the crontab. Raise `ConfigError` if it cannot be read.

    What cannot be read must not be replaced. The words are those of vixie-cron, cronie and busybox.
    """
    try:
        return _run(("crontab", "-l")).splitlines()
    except ConfigError as error:
        if "no crontab for" in error.message or "No such file" in error.message:
            return []
        raise


def _other_lines(timer: Timer, lines: Sequence[str]) -> list[str]:
    mark = timer.line.rpartition("# ")[2]
    return [line for line in lines if not line.endswith(f"# {mark}")]


def _write_crontab(lines: Sequence[str]) -> None:
    _run(("crontab", "-"), "".join(f"{line}\n" for line in lines))


def _run(command: Sequence[str], text: str = "") -> str:
    try:
        return subprocess.run(
            command,
            input=text,
            capture_output=True,
            encoding="utf-8",
            errors="surrogateescape",
            timeout=_SECONDS,
            check=True,
            env={**os.environ, "LC_ALL": "C"},
        ).stdout
    except subprocess.CalledProcessError as error:
        reason = error.stderr.strip() or f"exit status {error.returncode}"
        raise ConfigError(f"{shlex.join(command)} failed: {reason[:300]}") from error
    except (OSError, subprocess.SubprocessError) as error:
        raise ConfigError(f"{command[0]} cannot be run: {error}") from error
