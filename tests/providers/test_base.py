from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator

import pytest

from obsidian_agent.providers.base import in_own_loop


async def test_items_and_their_order() -> None:
    async def count() -> AsyncGenerator[int, None]:
        for number in range(100):
            yield number

    assert [item async for item in in_own_loop(count)] == list(range(100))


async def test_it_runs_in_another_thread_and_loop() -> None:
    async def where() -> AsyncGenerator[tuple[int, int], None]:
        yield threading.get_ident(), id(asyncio.get_running_loop())

    ((thread, loop),) = [item async for item in in_own_loop(where)]
    assert thread != threading.get_ident()
    assert loop != id(asyncio.get_running_loop())


async def test_its_exception_comes_after_its_items() -> None:
    async def fail() -> AsyncGenerator[int, None]:
        yield 1
        raise ValueError("broken")

    items = in_own_loop(fail)
    assert await anext(items) == 1
    with pytest.raises(ValueError, match="broken"):
        await anext(items)


async def test_a_blocking_generator_does_not_block_the_consumer() -> None:
    gate = threading.Event()

    async def block() -> AsyncGenerator[int, None]:
        yield 1
        gate.wait(60)
        yield 2

    items = in_own_loop(block)
    assert await anext(items) == 1
    await asyncio.sleep(0)  # would not come back if the wait were ours
    gate.set()
    assert await anext(items) == 2
    await items.aclose()


@pytest.mark.parametrize("started", [True, False])
async def test_closing_cancels_and_cleans_up(started: bool) -> None:
    cleaned = threading.Event()

    async def stall() -> AsyncGenerator[int, None]:
        try:
            if started:
                yield 1
            await asyncio.sleep(60)
            yield 2
        finally:
            await asyncio.sleep(0)
            cleaned.set()

    items = in_own_loop(stall)
    if started:
        await anext(items)
        await items.aclose()
    else:
        task = asyncio.ensure_future(anext(items))
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert await asyncio.to_thread(cleaned.wait, 60)
