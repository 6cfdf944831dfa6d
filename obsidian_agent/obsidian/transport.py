"""Requests to the command line of a running Obsidian.

They use its socket, or its program `obsidian-cli`. A request is one line of ASCII JSON, `{"argv":
[...], "tty": false, "cwd": "..."}`. The reply is raw text, after which Obsidian closes the
connection. The socket is `.obsidian-cli.sock` in `$XDG_RUNTIME_DIR` or, for Flatpak, below it;
without that variable and on macOS it is in the home folder. On Windows it is a named pipe. The
program's exit code is meaningless: failures are printed like replies.

Sources: Obsidian help, "Obsidian CLI"; observed behavior of the app, docs/companion.md.
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
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, Protocol

from msgspec import Struct

from obsidian_agent.errors import ObsidianError

CONNECT_SECONDS: Final = 1.0
ANSWER_SECONDS: Final = 10.0
SILENT_SECONDS: Final = 30.0
"""Seconds for which an Obsidian that did not answer is not asked again."""
MAX_ANSWER: Final = 8 << 20
"""Length of the longest reply that is read, in bytes."""

MAX_PROGRAM: Final = 32 << 20
"""Bytes of the largest file that is accepted as the program; Obsidian itself is larger."""

_PROGRAMS: Final[Mapping[str, tuple[str, ...]]] = defaultdict(
    tuple,
    darwin=(
        "/Applications/Obsidian.app/Contents/MacOS/obsidian-cli",
        "~/Applications/Obsidian.app/Contents/MacOS/obsidian-cli",
    ),
    linux=("~/.local/bin/obsidian",),
    win32=(r"%LOCALAPPDATA%\Programs\Obsidian\Obsidian.com",),
)
"""The locations of the program by system (Obsidian help, "Obsidian CLI", Troubleshooting)."""
_MAGIC: Final = frozenset({b"\x7fELF", b"\xcf\xfa\xed\xfe", b"\xca\xfe\xba\xbe", b"MZ\x90\x00"})
"""The first bytes of programs: ELF, Mach-O, universal Mach-O, and Windows."""
_SOCKET: Final = ".obsidian-cli.sock"
_FLATPAK: Final = Path(".flatpak", "md.obsidian.Obsidian", "xdg-run")
_TURNED_OFF: Final = "Command line interface is not enabled"
_NO_VAULT: Final = "Vault not found"
_NOT_RUNNING: Final = "unable to find Obsidian"


_silent_until: Final[dict[str, float]] = {}
"""For each socket or program that did not answer, the time until which it is not asked again."""


class Unreachable(ObsidianError):
    """A failure to reach Obsidian.

    `sent` is True if Obsidian may have read the request, and it is unknown whether it executes it.
    """

    def __init__(self, message: str, *, hint: str | None = None, sent: bool = False) -> None:
        super().__init__(message, hint=hint)
        self.sent = sent


class NoAnswer(Unreachable):
    """A timeout: Obsidian, or its program, did not answer."""


class Transport(Protocol):
    """A connection to Obsidian's command line."""

    @property
    def name(self) -> str:
        """The name for messages."""

    def request(self, argv: Sequence[str], wait: float = 0.0) -> str:
        """Send a request and return the reply. Raises `Unreachable`.

        `wait` is the time in seconds that the request makes Obsidian wait.
        """


def find_transport(timeout: float = ANSWER_SECONDS) -> Transport:
    """Return the socket, or else the program, without connecting to it.

    `timeout` is the time limit for a reply in seconds. Raises `Unreachable` if neither exists.
    """
    path = socket_path()
    if path is not None:
        return SocketTransport(path, timeout)
    program = find_program()
    if program is not None:
        return ProgramTransport(program, timeout)
    raise Unreachable(
        "Obsidian is not running, or it is too old to have a command line.",
        hint="Start Obsidian 1.12.7 or newer.",
    )


def find_program() -> str | None:
    """Return Obsidian's program for the command line, or None.

    It is `obsidian-cli`, or a copy that Obsidian has registered as `obsidian`. A program of that
    name may also be Obsidian itself, or start it, so only the copy is accepted.
    """
    program = shutil.which("obsidian-cli")
    if program is not None:
        return program
    paths = (os.path.expandvars(os.path.expanduser(path)) for path in _PROGRAMS[sys.platform])
    return next((path for path in paths if _is_program(path)), None)


def _is_program(path: str) -> bool:
    try:
        status = os.lstat(path)
        if not stat.S_ISREG(status.st_mode) or status.st_size > MAX_PROGRAM:
            return False
        with open(path, "rb") as file:
            return os.access(path, os.X_OK) and file.read(4) in _MAGIC
    except OSError:
        return False


def socket_path() -> str | None:
    """Return the path of the socket of this user's Obsidian, or None."""
    if sys.platform == "win32":
        import getpass

        pipe = rf"\\.\pipe\obsidian-cli-{getpass.getuser()}"
        return pipe if os.path.exists(pipe) else None
    return next((str(path) for path in _socket_paths() if _is_own_socket(path)), None)


def _socket_paths() -> Iterator[Path]:
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    if runtime and sys.platform != "darwin":
        yield Path(runtime) / _SOCKET
        yield Path(runtime) / _FLATPAK / _SOCKET
    yield Path.home() / _SOCKET


def _is_own_socket(path: Path) -> bool:
    try:
        status = os.stat(path)
    except OSError:
        return False
    return stat.S_ISSOCK(status.st_mode) and status.st_uid == os.geteuid()


class SocketTransport(Struct, frozen=True):
    """A connection over the socket or, on Windows, the pipe."""

    path: str
    timeout: float = ANSWER_SECONDS

    @property
    def name(self) -> str:
        """The name for messages."""
        return f"the socket {self.path}"

    def request(self, argv: Sequence[str], wait: float = 0.0) -> str:
        """Send a request and return the reply. Raises `Unreachable`."""
        document = {"argv": list(argv), "tty": False, "cwd": os.path.expanduser("~")}
        data = json.dumps(document).encode("ascii") + b"\n"
        send = _send_to_pipe if sys.platform == "win32" else _send_to_socket
        timeout = self.timeout + wait
        return _parse_reply(_ask_once(self.path, timeout, lambda: send(self.path, data, timeout)))


def _ask_once(name: str, timeout: float, ask: Callable[[], bytes]) -> bytes:
    """Ask Obsidian, so that one that hangs costs a single timeout and not one for each request."""
    if time.monotonic() < _silent_until.get(name, 0.0):
        raise _timed_out(timeout)
    try:
        reply = ask()
    except NoAnswer:
        _silent_until[name] = time.monotonic() + SILENT_SECONDS
        raise
    _silent_until.pop(name, None)
    return reply


def _send_to_socket(path: str, request: bytes, timeout: float) -> bytes:
    end = time.monotonic() + timeout
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(CONNECT_SECONDS)
        try:
            connection.connect(path)
        except OSError as error:
            raise _not_running() from error
        try:
            connection.settimeout(timeout)
            connection.sendall(request)
            reply = bytearray()
            while True:
                connection.settimeout(max(end - time.monotonic(), 0.001))
                chunk = connection.recv(1 << 16)
                if not chunk:
                    return bytes(reply)
                reply += chunk
                if len(reply) > MAX_ANSWER:
                    raise _too_long()
                if time.monotonic() > end:
                    raise TimeoutError
        except TimeoutError as error:
            raise _timed_out(timeout) from error
        except OSError as error:
            raise Unreachable(
                f"Obsidian closed the connection ({error.strerror or error}).", sent=True
            ) from error


def _send_to_pipe(path: str, request: bytes, timeout: float) -> bytes:
    """Send a request to a pipe.

    A pipe has no timeouts, so it is read in a thread, which is abandoned after the time limit.
    """
    result: list[bytes | Exception] = []

    def communicate() -> None:
        try:
            with open(path, "r+b", buffering=0) as pipe:
                pipe.write(request)
                data = bytearray()
                while (chunk := pipe.read(1 << 16)) and len(data) <= MAX_ANSWER:
                    data += chunk
                result.append(bytes(data))
        except OSError as error:
            result.append(error)

    thread = threading.Thread(target=communicate, daemon=True, name="obsidian-pipe")
    thread.start()
    thread.join(timeout)
    if not result:
        raise _timed_out(timeout)
    reply = result[0]
    if isinstance(reply, Exception):
        raise _not_running() from reply
    if len(reply) > MAX_ANSWER:
        raise _too_long()
    return reply


class ProgramTransport(Struct, frozen=True):
    """A connection through the program `obsidian-cli`, which uses the socket itself."""

    program: str
    timeout: float = ANSWER_SECONDS

    @property
    def name(self) -> str:
        """The name for messages."""
        return f"the program {self.program}"

    def request(self, argv: Sequence[str], wait: float = 0.0) -> str:
        """Send a request and return the reply. Raises `Unreachable`."""
        timeout = self.timeout + wait
        return _parse_reply(_ask_once(self.program, timeout, lambda: self._run(argv, timeout)))

    def _run(self, argv: Sequence[str], timeout: float) -> bytes:
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
                child.wait(timeout)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()
                raise _timed_out(timeout) from None
            if os.fstat(output.fileno()).st_size > MAX_ANSWER:
                raise _too_long()
            output.seek(0)
            return output.read(MAX_ANSWER)


def _parse_reply(reply: bytes) -> str:
    text = reply.decode("utf-8", "replace").strip()
    start = text[:200]
    if _TURNED_OFF in start:
        raise Unreachable(
            "Obsidian's command line is off.",
            hint="Turn it on in Settings > General > Command line interface.",
        )
    if start.startswith(_NO_VAULT):
        raise Unreachable("Obsidian does not have this vault open.", hint="Open it there once.")
    if _NOT_RUNNING in start:
        raise _not_running()
    return text


def _not_running() -> Unreachable:
    return Unreachable("Obsidian is not running.", hint="Start it.")


def _timed_out(seconds: float) -> NoAnswer:
    return NoAnswer(
        f"Obsidian did not answer within {seconds:g} seconds.",
        hint="A dialog may be open in it.",
        sent=True,
    )


def _too_long() -> Unreachable:
    return Unreachable(
        f"Obsidian's answer is longer than {MAX_ANSWER >> 20} MB, so it was not read.", sent=True
    )
