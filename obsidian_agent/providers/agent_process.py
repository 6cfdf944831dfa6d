"""Another agent as a child process, with limited output.

Its whole process group ends with this process, even if this process is killed.
"""

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

from msgspec import Struct

from obsidian_agent.child_process import ProcessLog, end_group, runnable
from obsidian_agent.errors import ProviderError
from obsidian_agent.providers.errors import redact
from obsidian_agent.state_files import make_private

LONGEST_LINE: Final = 4 << 20
"""Bytes of one message."""
MOST_BYTES: Final = 8 << 20
"""Bytes in one turn; an agent that sends more is ended."""
LAST_WORDS: Final = 2_000
"""Last bytes of standard error that are stored to report why it ended."""
GRACE: Final = 1.0
"""Seconds between the request to end and the kill."""

# Reads until this process is gone, however it ended, and then ends the group.
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
    """The streams of a process, with an event for its exit even if its pipes stay open."""

    def __init__(self) -> None:
        super().__init__(LONGEST_LINE, asyncio.get_running_loop())
        self.exited = asyncio.Event()

    def process_exited(self) -> None:
        super().process_exited()
        self.exited.set()


class AgentProcess(Struct, kw_only=True):
    """A running agent that exchanges lines of JSON: a `Transport` of the package `acp`."""

    transport: asyncio.SubprocessTransport
    protocol: _Streams
    guard: asyncio.subprocess.Process
    log: ProcessLog
    owner: asyncio.Task[None] | None = None
    received: int = 0
    """Bytes received in this turn."""
    flooded: bool = False
    errors: bytes = b""

    @classmethod
    async def start(
        cls, command: Sequence[str], folder: Path, environment: Mapping[str, str], log: ProcessLog
    ) -> AgentProcess:
        """Start a command in an empty folder of its own.

        The task that owns it ends it with the event loop. Its standard error goes to the log. Raise
        `ProviderError` (AGENT_NOT_STARTED).
        """
        await asyncio.to_thread(log.begin, f"starting {' '.join(command)}\n")
        try:
            await asyncio.to_thread(_empty_folder, folder)
            transport, protocol = await asyncio.get_running_loop().subprocess_exec(
                _Streams,
                *runnable(command),
                cwd=folder,
                env=dict(environment),
                start_new_session=True,
            )
            guard = (sys.executable, "-I", "-S", "-c", _GUARD, str(transport.get_pid()))
            try:
                guard_process = await asyncio.create_subprocess_exec(
                    *guard, stdin=subprocess.PIPE, start_new_session=True
                )
                agent = cls(transport=transport, protocol=protocol, guard=guard_process, log=log)
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
        agent.owner = asyncio.create_task(agent._own(), name="agent")
        return agent

    @property
    def alive(self) -> bool:
        """True while the process runs and has not exceeded the limits."""
        return self.transport.get_returncode() is None and not self.flooded

    def last_words(self) -> str:
        """Return why it ended. The text comes from the agent and is not trusted."""
        lines = self.errors.decode("utf-8", "replace").strip().splitlines()
        code = self.transport.get_returncode()
        if code is None:
            return "it closed the connection"
        return f"exit code {code}" + (f": {lines[-1][:300]}" if lines else "")

    async def end(self) -> None:
        """End the whole group: terminate it, then kill it."""
        if self.owner is not None:
            self.owner.cancel()
            await asyncio.wait([self.owner])

    async def _own(self) -> None:
        errors = asyncio.create_task(self._read_errors())
        group = self.transport.get_pid()
        try:
            await self.protocol.exited.wait()
        finally:
            try:
                for force in (False, True):
                    end_group(group, force=force)
                    with contextlib.suppress(TimeoutError):
                        async with asyncio.timeout(GRACE):
                            await self.protocol.exited.wait()
                            await errors
            finally:  # the end of the program may cancel the wait
                self.log.write(f"ended, exit code {self.transport.get_returncode()}\n")
            with contextlib.suppress(ProcessLookupError):
                self.guard.kill()
            await self.guard.wait()
            if self.guard.stdin is not None:
                self.guard.stdin.close()
            self.transport.close()
            # Pipes are closed in the loop's next round, which may be its last.
            await asyncio.sleep(0)

    async def _read_errors(self) -> None:
        assert self.protocol.stderr is not None
        while piece := await self.protocol.stderr.read(1 << 16):
            self.errors = (self.errors + piece)[-LAST_WORDS:]
            self.log.write(redact(piece.decode("utf-8", "replace")))

    async def send(self, message: dict[str, Any]) -> None:
        """Write a message. Raise `ConnectionError` if the agent has ended."""
        assert self.protocol.stdin is not None
        self.protocol.stdin.write(json.dumps(message).encode("ascii") + b"\n")
        await self.protocol.stdin.drain()

    async def receive(self) -> dict[str, Any] | None:
        """Return the next message, or None at the end or if a limit is exceeded.

        Lines that are not messages are ignored.
        """
        assert self.protocol.stdout is not None
        while True:
            await asyncio.sleep(0)  # A flood must not block the event loop.
            try:
                line = await self.protocol.stdout.readuntil(b"\n")
            except asyncio.LimitOverrunError:
                self.flooded = True
                return None
            except (asyncio.IncompleteReadError, OSError):
                return None
            self.received += len(line)
            if self.received > MOST_BYTES:
                self.flooded = True
                return None
            with contextlib.suppress(ValueError, RecursionError):
                message = json.loads(line)
                if isinstance(message, dict):
                    return message

    async def close(self) -> None:
        """Do nothing: the owner ends the process."""


def _empty_folder(folder: Path) -> None:
    """Create an empty private folder: files of an earlier agent could instruct the next one."""
    shutil.rmtree(folder, ignore_errors=True)
    make_private(folder)
