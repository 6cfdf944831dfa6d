"""The way of a proposed plan from `mcp serve` to a program that shows it to the person: a Unix socket in the state folder.

One line of JSON goes in, `{"client": NAME, "plan": PLAN}`; one comes back when the person has decided, `{"status": …, "message": …, "runId": …}`.
Both sides check that the other one is a process of the same user. Who proposes and goes away before the plan was shown takes it back.
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

from obsidian_agent.dataclass import asdict, dataclass
from obsidian_agent.journal.state_folder import wait_for_lock
from obsidian_agent.state_files import make_private

SOCKET_VARIABLE: Final = "OBSIDIAN_AGENT_SOCKET"
"""The environment variable that names the socket which `mcp serve` proposes to; without it that of the open app."""
CLIENT_VARIABLE: Final = "OBSIDIAN_AGENT_CLIENT"
"""The environment variable that says whose `mcp serve` this is; without it a client's own word counts."""
APP_SOCKET: Final = "app.sock"
"""The open app's, in the vault's folder of the state."""
LONGEST: Final = 4 << 20
"""Bytes of one proposal, and of an answer."""
READ_SECONDS: Final = 10.0
"""Until a proposal must have come whole."""
LOOK_AGAIN_SECONDS: Final = 3.0
"""So often a program that waits for its turn looks whether the one that listens is gone."""
_ADDRESS: Final = 100
"""Bytes of a path that fit into a socket's address on every system: macOS has room for 103, Linux for 107."""


@dataclass(frozen=True, slots=True)
class ClientProposal:
    """A valid plan, and the name that its client gave itself."""

    client: str
    plan: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of it. "shown": the person sees it, and nobody waits for what they decide; "busy": too many wait already."""

    status: Literal["applied", "failed", "refused", "shown", "busy"]
    message: str = ""
    run_id: str | None = None


Handler = Callable[[ClientProposal], Awaitable[Outcome]]
"""Shows a plan and waits for the person; cancelled when the client goes away."""


@contextlib.asynccontextmanager
async def proposal_socket(
    place: Path, handler: Handler, listed: Callable[[], object] = lambda: None
) -> AsyncIterator[bool]:
    """Accept proposals at a socket. False: another program does already, or this system has no such sockets.

    `listed` is called when a server reports that its client has its tools.
    """

    answering: set[asyncio.Task[None]] = set()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # A task of its own: one that asyncio made for the connection may not be cancelled before Python 3.12.
        task = asyncio.ensure_future(_answer(reader, writer, handler, listed))
        answering.add(task)
        await asyncio.gather(task, return_exceptions=True)
        answering.discard(task)
        writer.close()

    bound = await asyncio.to_thread(_bind, place) if hasattr(socket, "AF_UNIX") else None
    if bound is None:
        yield False
        return
    mine = os.stat(place).st_ino
    try:
        async with await asyncio.start_unix_server(connected, sock=bound, limit=LONGEST):
            try:
                yield True
            finally:
                for task in answering:
                    task.cancel()
    finally:
        with contextlib.suppress(OSError):
            if os.stat(place).st_ino == mine:
                os.unlink(place)


async def receive_proposals(place: Path, handler: Handler) -> None:
    """Take proposals at a socket until cancelled; while another program does, wait for its end."""
    while hasattr(socket, "AF_UNIX"):
        async with proposal_socket(place, handler) as there:
            if there:
                await asyncio.Event().wait()
        await asyncio.sleep(LOOK_AGAIN_SECONDS)


async def propose(place: Path, proposal: ClientProposal) -> Outcome | None:
    """Hand a plan over and wait for what comes of it; None where nobody listens, or whoever did goes away."""
    try:
        answer = json.loads(await _said(place, asdict(proposal)))
        return Outcome(answer["status"], str(answer["message"]), answer["runId"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


async def report_listed(place: Path) -> None:
    """Report that a client has the tools of this server. Without a listener nothing happens."""
    with contextlib.suppress(OSError, ValueError):
        await _said(place, {"listed": True})


async def _said(place: Path, message: Mapping[str, Any]) -> bytes:
    """Send a message, and return the line that answers it. Raise OSError where no program of this user listens."""
    if not hasattr(socket, "AF_UNIX"):
        raise ConnectionRefusedError
    with _address(place) as address:
        reader, writer = await asyncio.open_unix_connection(address, limit=LONGEST)
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
    listed: Callable[[], object],
) -> None:
    if not _is_own(writer):
        return
    try:
        asked = json.loads(await asyncio.wait_for(reader.readline(), READ_SECONDS))
    except (OSError, ValueError, TimeoutError):
        return
    if asked == {"listed": True}:
        listed()
        return
    if (
        not isinstance(asked, dict)
        or not isinstance(asked.get("client"), str)
        or not isinstance(asked.get("plan"), dict)
    ):
        return
    deciding = asyncio.ensure_future(handler(ClientProposal(asked["client"], asked["plan"])))
    gone = asyncio.ensure_future(reader.read(1))
    try:
        await asyncio.wait((deciding, gone), return_when=asyncio.FIRST_COMPLETED)
        if deciding.done():
            outcome = deciding.result()
            document = {
                "status": outcome.status,
                "message": outcome.message,
                "runId": outcome.run_id,
            }
            writer.write(json.dumps(document).encode("ascii") + b"\n")
            await writer.drain()
    finally:
        deciding.cancel()
        gone.cancel()


def _bind(place: Path) -> socket.socket | None:
    """A socket that listens at a place nobody listens at; one that a program left behind there is taken away. None: somebody does, or cannot."""
    try:
        make_private(place.parent)
        with _address(place) as address, open(place.with_name("sockets.lock"), "ab") as lock:
            wait_for_lock(
                lock.fileno()
            )  # or two that wait would both take away what a third left behind
            bound = socket.socket(socket.AF_UNIX)
            try:
                if _is_left_over(address):
                    os.unlink(place)
                bound.bind(address)
                os.chmod(place, 0o600)
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
def _address(place: Path) -> Iterator[str]:
    """Yield a path to the socket that fits into an address, for as long as that is bound or connected.

    A long one leads through a link to its folder, in a private folder of its own.
    """
    if len(os.fsencode(place)) <= _ADDRESS:
        yield str(place)
        return
    usual = tempfile.gettempdir()
    base = usual if len(os.fsencode(usual)) <= _ADDRESS // 2 else "/tmp"
    with tempfile.TemporaryDirectory(prefix="oa-", dir=base) as folder:
        link = Path(folder, "s")
        link.symlink_to(place.parent.absolute())
        yield str(link / place.name)


def _is_own(writer: asyncio.StreamWriter) -> bool:
    """Whether the process at the other end is this user's, as the system says."""
    connection = writer.get_extra_info("socket")
    if sys.platform == "linux":
        uid = struct.unpack(
            "3i",
            connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i")),
        )[1]
    else:  # BSD and macOS: LOCAL_PEERCRED of level 0 is a struct xucred, version and uid first
        uid = struct.unpack("2I", connection.getsockopt(0, 1, 8))[1]
    return bool(uid == os.geteuid())
