"""Asking the command line of a running Obsidian: over its socket, else by its own program `obsidian-cli`.

One line of ASCII JSON goes in, `{"argv": [...], "tty": false, "cwd": "..."}`; raw text comes back, then the connection is closed. The socket is
`.obsidian-cli.sock` in `$XDG_RUNTIME_DIR` (Linux, else in the home folder, as on macOS) or, for Flatpak, below it; on Windows it is a named pipe.
The exit code of the program says nothing: failures are printed as answers are.

Sources: Obsidian help, "Obsidian CLI"; what the app was seen to do, docs/companion.md.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, Protocol

from obsidian_agent.dataclass import dataclass
from obsidian_agent.errors import ObsidianError

CONNECT_SECONDS: Final = 1.0
ANSWER_SECONDS: Final = 10.0
MAX_ANSWER: Final = 8 << 20
"""Bytes of an answer that are read."""

_SOCKET: Final = ".obsidian-cli.sock"
_FLATPAK: Final = Path(".flatpak", "md.obsidian.Obsidian", "xdg-run")
_TURNED_OFF: Final = "Command line interface is not enabled"
_NO_VAULT: Final = "Vault not found"
_NOT_RUNNING: Final = "unable to find Obsidian"


class Unreachable(ObsidianError):
    """Obsidian cannot be asked at all. `sent`: it may have read the request, so nobody knows whether it does what was asked."""

    def __init__(self, message: str, *, hint: str | None = None, sent: bool = False) -> None:
        super().__init__(message, hint=hint)
        self.sent = sent


class Transport(Protocol):
    """A way to Obsidian's command line."""

    @property
    def name(self) -> str:
        """What people are told of it."""

    def ask(self, argv: Sequence[str], wait: float = 0.0) -> str:
        """What Obsidian prints; `wait` is how many seconds the request asks it to wait. Raises `Unreachable`."""


def find_transport(timeout: float = ANSWER_SECONDS) -> Transport:
    """The socket, else the program; `patience` is how many seconds an answer may take. Raises `Unreachable` when neither is here. Touches no socket."""
    place = socket_path()
    if place is not None:
        return SocketTransport(place, timeout)
    program = shutil.which("obsidian-cli")
    if program is not None:
        return ProgramTransport(program, timeout)
    raise Unreachable(
        "Obsidian is not running, or it is too old to have a command line.",
        hint="Start Obsidian 1.12.7 or newer.",
    )


def socket_path() -> str | None:
    """Where the socket of this user's Obsidian lies, if there is one."""
    if sys.platform == "win32":
        import getpass

        pipe = rf"\\.\pipe\obsidian-cli-{getpass.getuser()}"
        return pipe if os.path.exists(pipe) else None
    return next((str(place) for place in _socket_places() if _is_own_socket(place)), None)


def _socket_places() -> Iterator[Path]:
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    if runtime and sys.platform != "darwin":
        yield Path(runtime) / _SOCKET
        yield Path(runtime) / _FLATPAK / _SOCKET
    yield Path.home() / _SOCKET


def _is_own_socket(place: Path) -> bool:
    try:
        found = os.stat(place)
    except OSError:
        return False
    return stat.S_ISSOCK(found.st_mode) and found.st_uid == os.geteuid()


@dataclass(frozen=True, slots=True)
class SocketTransport:
    """The socket, or on Windows the pipe, at `place`."""

    place: str
    timeout: float = ANSWER_SECONDS

    @property
    def name(self) -> str:
        """What people are told of it."""
        return f"the socket {self.place}"

    def ask(self, argv: Sequence[str], wait: float = 0.0) -> str:
        """What Obsidian prints. Raises `Unreachable`."""
        request = (
            json.dumps({"argv": list(argv), "tty": False, "cwd": os.path.expanduser("~")}).encode(
                "ascii"
            )
            + b"\n"
        )
        talk = _ask_pipe if sys.platform == "win32" else _ask_socket
        return _understood(talk(self.place, request, self.timeout + wait))


def _ask_socket(place: str, request: bytes, seconds: float) -> bytes:
    end = time.monotonic() + seconds
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(CONNECT_SECONDS)
        try:
            connection.connect(place)
        except OSError as error:
            raise _not_running() from error
        try:
            connection.settimeout(seconds)
            connection.sendall(request)
            answer = bytearray()
            while True:
                connection.settimeout(max(end - time.monotonic(), 0.001))
                chunk = connection.recv(1 << 16)
                if not chunk:
                    return bytes(answer)
                answer += chunk
                if len(answer) > MAX_ANSWER:
                    raise _too_long()
                if time.monotonic() > end:
                    raise TimeoutError
        except TimeoutError as error:
            raise _hangs(seconds) from error
        except OSError as error:
            raise Unreachable(
                f"Obsidian broke off while it was asked ({error.strerror or error}).", sent=True
            ) from error


def _ask_pipe(place: str, request: bytes, seconds: float) -> bytes:
    """A pipe has no time limits of its own, so it is read in a thread that is left behind when it takes too long."""
    answer: list[bytes | Exception] = []

    def talk() -> None:
        try:
            with open(place, "r+b", buffering=0) as pipe:
                pipe.write(request)
                data = bytearray()
                while (chunk := pipe.read(1 << 16)) and len(data) <= MAX_ANSWER:
                    data += chunk
                answer.append(bytes(data))
        except OSError as error:
            answer.append(error)

    thread = threading.Thread(target=talk, daemon=True, name="obsidian-pipe")
    thread.start()
    thread.join(seconds)
    if not answer:
        raise _hangs(seconds)
    found = answer[0]
    if isinstance(found, Exception):
        raise _not_running() from found
    if len(found) > MAX_ANSWER:
        raise _too_long()
    return found


@dataclass(frozen=True, slots=True)
class ProgramTransport:
    """The program `obsidian-cli`, which talks to the socket itself."""

    program: str
    timeout: float = ANSWER_SECONDS

    @property
    def name(self) -> str:
        """What people are told of it."""
        return f"the program {self.program}"

    def ask(self, argv: Sequence[str], wait: float = 0.0) -> str:
        """What Obsidian prints. Raises `Unreachable`."""
        import tempfile

        with tempfile.TemporaryFile() as output:
            try:
                child = subprocess.Popen(
                    [self.program, *argv],
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                )
            except OSError as error:
                raise _not_running() from error
            try:
                child.wait(self.timeout + wait)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()
                raise _hangs(self.timeout + wait) from None
            if os.fstat(output.fileno()).st_size > MAX_ANSWER:
                raise _too_long()
            output.seek(0)
            return _understood(output.read(MAX_ANSWER))


def _understood(answer: bytes) -> str:
    text = answer.decode("utf-8", "replace").strip()
    first = text[:200]
    if _TURNED_OFF in first:
        raise Unreachable(
            "Obsidian's command line is off.",
            hint="Turn it on in Settings > General > Command line interface.",
        )
    if first.startswith(_NO_VAULT):
        raise Unreachable("Obsidian does not have this vault open.", hint="Open it there once.")
    if _NOT_RUNNING in first:
        raise _not_running()
    return text


def _not_running() -> Unreachable:
    return Unreachable("Obsidian is not running.", hint="Start it.")


def _hangs(seconds: float) -> Unreachable:
    return Unreachable(
        f"Obsidian did not answer within {seconds:g} seconds.",
        hint="A dialog may be open in it.",
        sent=True,
    )


def _too_long() -> Unreachable:
    return Unreachable(
        f"Obsidian's answer is longer than {MAX_ANSWER >> 20} MB, so it was not read.", sent=True
    )
