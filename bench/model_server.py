"""A model service for measurements, which sends tokens at a fixed rate after a fixed delay.

`python -m bench.model_server DELAY TOKENS PER_SECOND` prints its port and serves OpenAI's wire
format until it is killed.
"""

from __future__ import annotations

import asyncio
import json
import sys


async def _serve(delay: float, tokens: int, per_second: float) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                await _request(reader)
                await _stream(writer, delay, tokens, per_second)
        except (ConnectionError, asyncio.IncompleteReadError):
            writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    async with server:
        await server.serve_forever()


async def _request(reader: asyncio.StreamReader) -> None:
    head = await reader.readuntil(b"\r\n\r\n")
    length = next(
        int(line.split(b":")[1])
        for line in head.lower().split(b"\r\n")
        if line.startswith(b"content-length")
    )
    await reader.readexactly(length)


async def _stream(
    writer: asyncio.StreamWriter, delay: float, tokens: int, per_second: float
) -> None:
    loop = asyncio.get_running_loop()
    writer.write(
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
    )
    begun = loop.time() + delay
    for number in range(tokens):
        wait = begun + number / per_second - loop.time()
        if wait > 0:
            await writer.drain()
            await asyncio.sleep(wait)
        _event(writer, {"content": f"word{number} "}, None)
    _event(writer, {}, "stop")
    _chunk(writer, b"data: [DONE]\n\n")
    writer.write(b"0\r\n\r\n")
    await writer.drain()


def _event(writer: asyncio.StreamWriter, delta: dict[str, str], reason: str | None) -> None:
    choice = {"index": 0, "delta": delta, "finish_reason": reason}
    document = {
        "id": "c",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "m",
        "choices": [choice],
    }
    _chunk(writer, b"data: " + json.dumps(document).encode() + b"\n\n")


def _chunk(writer: asyncio.StreamWriter, data: bytes) -> None:
    writer.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")


if __name__ == "__main__":
    asyncio.run(_serve(float(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])))
