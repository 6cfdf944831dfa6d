"""Proposed plans from `mcp serve` to the program that displays them: a Unix socket.

The socket is in the state folder. A request is one line of JSON, `{"client": NAME, "plan": PLAN}`.
The answer is one line, `{"status": …, "message": …, "runId": …}`, sent when the user has decided.
Both sides check that the other one is a process of the same user. A client that disconnects before
its plan was displayed withdraws it.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
import struct
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, Literal

from msgspec import Struct
from msgspec.structs import asdict

from obsidian_agent.state_files import file_lock, make_private

SOCKET_VARIABLE: Final = "OBSIDIAN_AGENT_SOCKET"
"""The environment variable with the socket that `mcp serve` proposes to, by default the app's."""
CLIENT_VARIABLE: Final = "OBSIDIAN_AGENT_CLIENT"
"""The environment variable with the client of `mcp serve`, by default the name it gives itself."""
APP_SOCKET: Final = "app.sock"
"""The name of the app's socket in the vault's state folder."""
MAX_LINE: Final = 4 << 20
"""Bytes of a proposal or an answer."""
READ_SECONDS: Final = 10.0
"""Seconds in which a proposal must arrive."""
RETRY_SECONDS: Final = 3.0
"""Seconds between attempts to bind a socket that another program uses."""
_MAX_ADDRESS: Final = 100
"""Bytes of a socket's path on every system: macOS has room for 103, Linux for 107."""


class ClientProposal(Struct, frozen=True):
    """A valid plan and the name of its client."""

    client: str
    plan: Mapping[str, Any]


class Outcome(Struct, frozen=True):
    """The result of a proposal.

    "shown": it is displayed, and the decision is not awaited. "busy": too many are waiting.
    """

    status: Literal["applied", "failed", "refused", "shown", "busy"]
    message: str = ""
    run_id: str | None = None


Handler = Callable[[ClientProposal], Awaitable[Outcome]]
"""Displays a plan and waits for the decision; cancelled when the client disconnects."""


@contextlib.asynccontextmanager
async def proposal_socket(
    path: Path, handler: Handler, on_tools_listed: Callable[[], object] = lambda: None
) -> AsyncIterator[bool]:
    """Accept proposals at a socket inside the `with` block.

    The value is false if another program already does, or if the system has no Unix sockets.
    `on_tools_listed` is called when an `mcp serve` reports that its client has requested the tools.
    """
    tasks: set[asyncio.Task[None]] = set()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # The task that asyncio makes for a connection cannot be cancelled before Python 3.12.
        task = asyncio.ensure_future(_answer(reader, writer, handler, on_tools_listed))
        tasks.add(task)
        await asyncio.gather(task, return_exceptions=True)
        tasks.discard(task)
        writer.close()

    bound = await asyncio.to_thread(_bind, path) if hasattr(socket, "AF_UNIX") else None
    if bound is None:
        yield False
        return
    inode = os.stat(path).st_ino
    try:
        async with await asyncio.start_unix_server(connected, sock=bound, limit=MAX_LINE):
            try:
                yield True
            finally:
                for task in tasks:
                    task.cancel()
    finally:
        with contextlib.suppress(OSError):
            if os.stat(path).st_ino == inode:
                os.unlink(path)


async def receive_proposals(path: Path, handler: Handler) -> None:
    """Accept proposals at a socket until cancelled; wait while another program does."""
    while hasattr(socket, "AF_UNIX"):
        async with proposal_socket(path, handler) as is_bound:
            if is_bound:
                await asyncio.Event().wait()
        await asyncio.sleep(RETRY_SECONDS)


async def propose(path: Path, proposal: ClientProposal) -> Outcome | None:
    """Propose a plan and wait for the outcome, `None` without a listener or if it disconnects."""
    try:
        answer = json.loads(await _request(path, asdict(proposal)))
        return Outcome(answer["status"], str(answer["message"]), answer["runId"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


async def report_listed(path: Path) -> None:
    """Report that the client has requested the tools of this server, if there is a listener."""
    with contextlib.suppress(OSError, ValueError):
        await _request(path, {"listed": True})


async def _request(path: Path, message: Mapping[str, Any]) -> bytes:
    """Send a message and return the answer line. Raise `OSError` without this user's listener."""
    if not hasattr(socket, "AF_UNIX"):
        raise ConnectionRefusedError
    with _address(path) as address:
        reader, writer = await asyncio.open_unix_connection(address, limit=MAX_LINE)
    try:
        if not _is_own(writer):
            raise PermissionError
        writer.write(json.dumps(message).encode("ascii") + b"\n")
        await writer.drain()
        return await reader.readline()
    finally:
        writer.close()


async def _answer(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    handler: Handler,
    on_tools_listed: Callable[[], object],
) -> None:
    if not _is_own(writer):
        return
    try:
        request = json.loads(await asyncio.wait_for(reader.readline(), READ_SECONDS))
    except (OSError, ValueError, TimeoutError):
        return
    match request:
        case {"listed": True} if len(request) == 1:
            on_tools_listed()
            return
        case {"client": str(client), "plan": dict(plan)}:
            decision = asyncio.ensure_future(handler(ClientProposal(client, plan)))
        case _:
            return
    disconnection = asyncio.ensure_future(reader.read(1))
    try:
        await asyncio.wait((decision, disconnection), return_when=asyncio.FIRST_COMPLETED)
        if decision.done():
            outcome = decision.result()
            document = {
                "status": outcome.status,
                "message": outcome.message,
                "runId": outcome.run_id,
            }
            writer.write(json.dumps(document).encode("ascii") + b"\n")
            await writer.drain()
    finally:
        decision.cancel()
        disconnection.cancel()


def _bind(path: Path) -> socket.socket | None:
    """Bind and listen at a path, and replace a socket that a dead program left there.

    Return `None` if another program listens, or if binding fails.
    """
    try:
        make_private(path.parent)
        # Without the lock two programs could both remove a third one's leftover socket.
        with _address(path) as address, file_lock(path.with_name("sockets.lock")):
            bound = socket.socket(socket.AF_UNIX)
            try:
                if _is_left_over(address):
                    os.unlink(path)
                bound.bind(address)
                os.chmod(path, 0o600)
                bound.listen(8)
            except OSError:
                bound.close()
                return None
    except OSError:
        return None
    return bound


def _is_left_over(address: str) -> bool:
    with socket.socket(socket.AF_UNIX) as probe:
        try:
            probe.connect(address)
        except ConnectionRefusedError:
            return True
        except OSError:
            return False
        return False


@contextlib.contextmanager
def _address(path: Path) -> Iterator[str]:
    """Yield a path to the socket that is short enough for an address.

    A path that is too long goes through a link to its folder, in a private temporary folder.
    """
    if len(os.fsencode(path)) <= _MAX_ADDRESS:
        yield str(path)
        return
    base = tempfile.gettempdir()
    if len(os.fsencode(base)) > _MAX_ADDRESS // 2:
        base = "/tmp"
    with tempfile.TemporaryDirectory(prefix="oa-", dir=base) as folder:
        link = Path(folder, "s")
        link.symlink_to(path.parent.absolute())
        yield str(link / path.name)


def _is_own(writer: asyncio.StreamWriter) -> bool:
    """Return whether the process at the other end belongs to this user."""
    connection = writer.get_extra_info("socket")
    if sys.platform == "linux":
        uid = struct.unpack(
            "3i",
            connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i")),
        )[1]
    else:  # BSD and macOS: LOCAL_PEERCRED of level 0 is a struct xucred, version and uid first
        uid = struct.unpack("2I", connection.getsockopt(0, 1, 8))[1]
    return bool(uid == os.geteuid())
