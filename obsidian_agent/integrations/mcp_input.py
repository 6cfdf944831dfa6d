"""The requests that a client of the MCP server sends on standard input.

The SDK drops a line that it cannot parse, so the client would wait for an answer forever. Here such
a line becomes a request that the server refuses.
"""

from __future__ import annotations

import io
import json
import re
from typing import IO, Any, Final

from mcp import MCPError
from mcp.server.context import CallNext, ServerRequestContext
from pydantic_core import from_json

MAX_REQUEST: Final = 64 * 2**20
"""Bytes of one request."""

_REFUSED: Final = "obsidian-agent/refused"
_ID = rb'"id"\s*:\s*(-?\d{1,18}|"(?:[^"\\]|\\.){0,200}")\s*'
_FIRST_ID: Final = re.compile(_ID + rb",")
_LAST_ID: Final = re.compile(_ID + rb"\}\s*$")
_END: Final = 2_000
"""Bytes at either end of a request in which its id is looked for."""
_INVALID: Final = -32600
"""JSON-RPC's code for a request that is not valid."""


class Requests(io.RawIOBase):
    """The lines of `source`. One that cannot be parsed is replaced, if its id can be found."""

    def __init__(self, source: IO[bytes]) -> None:
        super().__init__()
        self._source = source
        self._rest = b""

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: Any, /) -> int:
        """Read a line, or the rest of one."""
        if not self._rest:
            self._rest = self._line()
        target = memoryview(buffer).cast("B")
        count = min(len(target), len(self._rest))
        target[:count] = self._rest[:count]
        self._rest = self._rest[count:]
        return count

    def _line(self) -> bytes:
        line = self._source.readline(MAX_REQUEST)
        if len(line) == MAX_REQUEST and not line.endswith(b"\n"):
            last = line
            while not last.endswith(b"\n") and (more := self._source.readline(MAX_REQUEST)):
                last = last[-_END:] + more
            reason = f"The request is longer than {MAX_REQUEST // 2**20} MiB."
            return _refused(line, last, reason) or b"\n"
        try:
            from_json(line)
        except ValueError as error:
            return _refused(line, line, f"The request is not valid JSON: {error}.") or line
        return line


def _refused(first: bytes, last: bytes, reason: str) -> bytes | None:
    """Return a request that `refuse` answers, with the id of an invalid request.

    The id is searched at its start and its end. Return None if there is none.
    """
    start = first[:_END].partition(b'"params"')[0]
    id_match = _FIRST_ID.search(start) or _LAST_ID.search(last[-_END:])
    if id_match is None:
        return None
    request = {"jsonrpc": "2.0", "method": _REFUSED, "params": {"reason": reason}}
    return b'{"id":' + id_match[1] + b"," + json.dumps(request).encode()[1:] + b"\n"


async def refuse(ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> Any:
    """Answer a replaced request with the reason."""
    if ctx.method == _REFUSED:
        raise MCPError(_INVALID, str((ctx.params or {}).get("reason", "")))
    return await call_next(ctx)
