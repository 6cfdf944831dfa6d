"""A program that is killed while threads stream, and started again."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

from agents import check_pairs
from obsidian_agent.agent.conversation import CUT_MARK
from obsidian_agent.bootstrap import Wiring, build_session, build_threads
from obsidian_agent.threads.log_store import ThreadStore
from obsidian_agent.threads.state import CRASH_MARK
from support import MakeVault, settings_with

PIECES = [f"word{n} " for n in range(2000)]
PROGRAM = textwrap.dedent("""
    import asyncio, sys
    from pathlib import Path
    from obsidian_agent.agent.events import TextDelta
    from obsidian_agent.agent.privacy.consent import refuse_all
    from obsidian_agent.threads.manager import ThreadTurnEnded, ThreadTurnEvent
    from obsidian_agent.bootstrap import Wiring, build_threads, build_session
    from obsidian_agent.config.live import LiveSettings
    from obsidian_agent.config.settings import Settings
    from obsidian_agent.vault.filesystem.store import VaultStore

    vault, state, model, short = sys.argv[1:]
    settings = LiveSettings(current=Settings(model=model))
    wiring = Wiring(VaultStore.open(vault), Path(state), settings=settings)
    chats = build_threads(wiring, build_session(wiring))

    async def no(thread_id, request):
        return await refuse_all(request)

    async def main():
        threads = [chats.create().id, chats.create(short).id, chats.create().id]
        for thread in threads:
            chats.start(thread, f"Question of {thread}?", no)
        ended = set()
        with chats.bus.subscribe() as happenings:
            async for each in happenings:
                if each.thread_id == threads[0] and isinstance(each, ThreadTurnEvent) and len(chats.open(threads[0]).partial) > 300:
                    chats.cancel(threads[0])
                if isinstance(each, ThreadTurnEnded):
                    ended.add(each.thread_id)
                if ended == set(threads[:2]):
                    break
        print(*threads, flush=True)
        while True:
            await asyncio.sleep(0.01)
            print(len(chats.open(threads[2]).partial), flush=True)

    asyncio.run(main())
""")


def test_after_a_kill_every_thread_is_as_it_was(make_vault: MakeVault, tmp_path: Path) -> None:
    store = make_vault({"A.md": "a"})
    for name, pieces in (("long", PIECES), ("short", PIECES[:5])):
        (tmp_path / f"{name}.jsonl").write_text(
            2 * (json.dumps({"chunks": pieces, "delayMs": 2}) + "\n"), encoding="utf-8"
        )
    model, short = (f"scripted/{tmp_path}/{name}.jsonl" for name in ("long", "short"))
    arguments = [
        sys.executable,
        "-c",
        PROGRAM,
        store.real_path,
        str(tmp_path / "state"),
        model,
        short,
    ]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True) as program:
        assert program.stdout is not None
        cancelled, finished, streaming = program.stdout.readline().split()
        shown = [(time.monotonic(), int(program.stdout.readline())) for _ in range(120)]
        program.send_signal(signal.SIGKILL)
    wiring = Wiring(store, tmp_path / "state", settings=settings_with(model=model))
    chats = build_threads(wiring, build_session(wiring))
    assert {each.id for each in chats.store.summaries()} == {cancelled, finished, streaming}
    texts = {
        thread: chats.open(thread).state.entries[-1] for thread in (cancelled, finished, streaming)
    }
    whole = "".join(PIECES)
    assert texts[finished].text == "".join(PIECES[:5])
    assert (texts[finished].state, texts[cancelled].state, texts[streaming].state) == (
        "whole",
        "cut",
        "cut",
    )
    assert texts[cancelled].text.endswith(CUT_MARK)
    assert whole.startswith(texts[cancelled].text.removesuffix(CUT_MARK))
    kept = texts[streaming].text.removesuffix(CRASH_MARK)
    assert whole.startswith(kept)
    second_ago = max((length for at, length in shown if at <= shown[-1][0] - 1.0), default=0)
    assert len(kept) >= second_ago > 0, "at most the last second is lost"
    for thread in texts:
        state = chats.open(thread).state
        assert state.entries[0].text == f"Question of {thread}?"
        check_pairs(state.messages)
    assert (
        ThreadStore(chats.store.folder, chats.store.clock).load(streaming)
        == chats.open(streaming).state
    )
