"""Another program as a child whose whole process group ends with ours, however ours ends, and whose output is read no further than a limit."""

from __future__ import annotations

import asyncio
import contextlib
import json
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from obsidian_agent.child_process import ProcessLog, end_group, runnable
from obsidian_agent.dataclass import dataclass
from obsidian_agent.errors import ProviderError
from obsidian_agent.providers.errors import redact
from obsidian_agent.state_files import make_private

LONGEST_LINE: Final = 4 << 20
"""Bytes of one message."""
MOST_BYTES: Final = 8 << 20
"""Bytes in one turn; what says more is ended."""
LAST_WORDS: Final = 2_000
"""Bytes of what it wrote to standard error last that are kept, to say why it ended."""
GRACE: Final = 1.0
"""Seconds from being asked to end to being killed."""

# Reads until our end of the pipe is gone, by whatever death, and ends the group.
_GUARD: Final = """
import os, signal, subprocess, sys, time
sys.stdin.buffer.read()
if os.name == "nt":
    subprocess.run(["taskkill", "/F", "/T", "/PID", sys.argv[1]])
else:
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(int(sys.argv[1]), number)
        except OSError:
            break
        time.sleep(1)
"""


class _Streams(asyncio.subprocess.SubprocessStreamProtocol):
    """Tells when the process is over, whoever may still hold its pipes open."""

    def __init__(self) -> None:
        super().__init__(LONGEST_LINE, asyncio.get_running_loop())
        self.exited = asyncio.Event()

    def process_exited(self) -> None:
        super().process_exited()
        self.exited.set()


@dataclass(slots=True)
class AgentProcess:
    """A running agent, spoken to in lines of JSON; it is a `Transport` of the package `acp`."""

    transport: asyncio.SubprocessTransport
    protocol: _Streams
    guard: asyncio.subprocess.Process
    log: ProcessLog
    owner: asyncio.Task[None] | None = None
    said: int = 0
    """Bytes of this turn."""
    flooded: bool = False
    errors: bytes = b""

    @classmethod
    async def start(
        cls, command: Sequence[str], folder: Path, environment: Mapping[str, str], log: ProcessLog
    ) -> AgentProcess:
        """Start a command in an empty folder of its own. Raises `ProviderError` AGENT_NOT_STARTED.

        The task that owns it ends it when the event loop ends. Its errors go to the log.
        """
        await asyncio.to_thread(log.begin, f"starting {' '.join(command)}\n")
        try:
            await asyncio.to_thread(_emptied, folder)
            transport, protocol = await asyncio.get_running_loop().subprocess_exec(
                _Streams,
                *runnable(command),
                cwd=folder,
                env=dict(environment),
                start_new_session=True,
            )
            guard = (sys.executable, "-I", "-S", "-c", _GUARD, str(transport.get_pid()))
            try:
                made = cls(
                    transport,
                    protocol,
                    await asyncio.create_subprocess_exec(
                        *guard, stdin=subprocess.PIPE, start_new_session=True
                    ),
                    log,
                )
            except BaseException:
                end_group(transport.get_pid(), force=True)
                raise
        except OSError as error:
            log.write(f"cannot be started: {error.strerror or error}\n")
            raise ProviderError(
                f"{command[0]} cannot be started: {error.strerror or error}.",
                code="AGENT_NOT_STARTED",
                hint="Install it, or name its command under agents in the settings.",
            ) from error
        made.owner = asyncio.create_task(made._own(), name="agent")
        return made

    @property
    def alive(self) -> bool:
        return self.transport.get_returncode() is None and not self.flooded

    def last_words(self) -> str:
        """Why it ended, as far as it said so: foreign text."""
        lines = self.errors.decode("utf-8", "replace").strip().splitlines()
        code = self.transport.get_returncode()
        return (
            f"exit code {code}" + (f": {lines[-1][:300]}" if lines else "")
            if code is not None
            else "it closed the connection"
        )

    async def end(self) -> None:
        """End the whole group, first asking."""
        if self.owner is not None:
            self.owner.cancel()
            await asyncio.wait([self.owner])

    async def _own(self) -> None:
        errors = asyncio.create_task(self._hear_errors())
        group = self.transport.get_pid()
        try:
            await self.protocol.exited.wait()
        finally:
            for force in (False, True):
                end_group(group, force=force)
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(GRACE):
                        await self.protocol.exited.wait()
                        await errors
            self.log.write(f"ended, exit code {self.transport.get_returncode()}\n")
            with contextlib.suppress(ProcessLookupError):
                self.guard.kill()
            await self.guard.wait()
            if self.guard.stdin is not None:
                self.guard.stdin.close()
            self.transport.close()
            await asyncio.sleep(
                0
            )  # pipes are closed in the loop's next round, which may be its last

    async def _hear_errors(self) -> None:
        assert self.protocol.stderr is not None
        while piece := await self.protocol.stderr.read(1 << 16):
            self.errors = (self.errors + piece)[-LAST_WORDS:]
            self.log.write(redact(piece.decode("utf-8", "replace")))

    # --- a transport of `acp` --------------------------------------------------------------------------------------------------------

    async def send(self, message: dict[str, Any]) -> None:
        """Write a message. Raises `ConnectionError` when it is gone."""
        assert self.protocol.stdin is not None
        self.protocol.stdin.write(json.dumps(message).encode("ascii") + b"\n")
        await self.protocol.stdin.drain()

    async def receive(self) -> dict[str, Any] | None:
        """The next message; None at the end, which too much is as well. Lines that are no message are left out."""
        assert self.protocol.stdout is not None
        while True:
            await asyncio.sleep(0)  # who floods must not have the event loop for itself
            try:
                line = await self.protocol.stdout.readuntil(b"\n")
            except asyncio.LimitOverrunError:
                self.flooded = True
                return None
            except (asyncio.IncompleteReadError, OSError):
                return None
            self.said += len(line)
            if self.said > MOST_BYTES:
                self.flooded = True
                return None
            with contextlib.suppress(ValueError, RecursionError):
                message = json.loads(line)
                if isinstance(message, dict):
                    return message

    async def close(self) -> None:
        """Nothing: the owner ends it."""


def _emptied(folder: Path) -> None:
    """A private folder with nothing in it: what an agent left there would be instructions to the next one."""
    shutil.rmtree(folder, ignore_errors=True)
    make_private(folder)
