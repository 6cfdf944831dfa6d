"""Several conversations in one app: parallel streams, search, and their state after a restart."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from pathlib import Path

from obsidian_agent.agent.events import PlanReady
from obsidian_agent.bootstrap import Wiring, build_session, build_threads
from obsidian_agent.providers.base import (
    ChatDelta,
    ChatRequest,
    Finished,
    TextChunk,
    ToolCallChunk,
)
from obsidian_agent.tui.screens.threads import ThreadList, Threads
from obsidian_agent.tui.screens.threads import Turns as TurnList
from obsidian_agent.tui.widgets.row_list import ChoiceList
from obsidian_agent.tui.widgets.transcript import PAGE, AnswerEntry, Earlier, EntryWidget
from tui.driving import Driver, Model, driving, driving_real, wired
from tui.samples import PROJECTS, plan_of


class Turns(Model):
    """Answers by what was asked: `slow` streams until `go`, `plan` proposes, others end at once."""

    def __init__(self) -> None:
        super().__init__()
        self.go = asyncio.Event()

    async def stream(self, request: ChatRequest) -> AsyncGenerator[ChatDelta, None]:
        text = request.messages[-1].text.rstrip().rpartition("\n")[2]
        if text.startswith("slow"):
            yield TextChunk(f"First of {text}. ")
            await self.go.wait()
            yield TextChunk(f"Rest of {text}.")
        elif text.startswith("plan"):
            yield TextChunk("Here. ")
            await self.go.wait()
            yield ToolCallChunk(0, json.dumps({"plan": PROJECTS}), "c1", "propose_plan")
        else:
            yield TextChunk(f"Answer to {text}.")
        yield Finished("stop", None)


async def said(app: Driver, words: str) -> None:
    await app.until(lambda: words in app.transcript())


async def titled(app: Driver, title: str) -> None:
    await app.until(lambda: title in app.screen())
    app.wait_out_grace()


async def test_conversations_stream_at_once_and_never_mix() -> None:
    turns = Turns()
    async with driving(model=turns) as driver:
        app, pilot = driver.app, driver.pilot

        async def say(text: str) -> None:
            driver.prompt.text = text
            await pilot.press("enter")
            await pilot.pause()

        await pilot.pause()
        await say("slow one")
        await said(driver, "First of slow one.")
        await pilot.press("ctrl+n")
        await pilot.pause()
        assert "First of slow one." not in driver.transcript()
        assert driver.main.turn.phase == "idle"
        await say("plan two")
        await said(driver, "Here.")
        await pilot.press("ctrl+n")
        await say("three")
        await said(driver, "Answer to three.")
        assert "slow" not in driver.transcript()
        driver.prompt.text = "a draft"

        await pilot.press("f4")
        await titled(driver, "⋯ working")
        turns.go.set()
        await driver.until(lambda: driver.main.waiting and not driver.main.threads.running)
        await pilot.press("escape")
        assert "slow" not in driver.transcript()
        assert driver.stage == "idle"

        await pilot.press("f4")
        await titled(driver, "● plan")
        screen = app.screen
        assert isinstance(screen, Threads)
        listing = screen.query_one(ThreadList)
        assert {row.thread.title for row in listing.entries} == {"Slow one", "Plan two", "Three"}
        listing.cursor = next(at for at, row in enumerate(listing.entries) if row.state == "● plan")
        await pilot.press("enter")
        await driver.settle()
        assert driver.stage == "plan"
        assert driver.plan.complete
        assert not driver.prompt.text, "the draft stays in its conversation"
        assert "Plan: Make a project note" in driver.transcript()

        await _find_rename_delete(driver)


async def _find_rename_delete(driver: Driver) -> None:
    pilot, app = driver.pilot, driver.app
    await pilot.press("f4")
    await titled(driver, "3 conversations")
    await pilot.press("slash", *"garden rest slow")
    await titled(driver, "No matching conversations")
    for _ in "garden ":
        await pilot.press("home", "delete")
    await titled(driver, "1 conversation")
    await pilot.press("enter", "enter")
    await driver.settle()
    assert driver.stage == "idle", "the plan stays with its conversation"
    assert "First of slow one. Rest of slow one." in driver.transcript()
    driver.prompt.text = "/rename Beans"
    await pilot.press("enter")
    await titled(driver, "Beans")

    await pilot.press("f4")
    await titled(driver, "3 conversations")
    listing = app.screen.query_one(ThreadList)
    listing.cursor = next(
        at for at, row in enumerate(listing.entries) if row.thread.title == "Beans"
    )
    await pilot.press("d")
    await titled(driver, "Delete this conversation?")
    await pilot.press("n")
    await titled(driver, "3 conversations")
    await pilot.press("d")
    await titled(driver, "Delete this conversation?")
    await pilot.press("y")
    await titled(driver, "2 conversations")
    assert len(listing.rows) == 2
    await pilot.press("escape")
    await pilot.pause()
    assert "Rest of slow one." not in driver.transcript()
    await _drafts(driver)


async def _drafts(driver: Driver) -> None:
    driver.prompt.text = "an idea"
    await driver.press("ctrl+n")
    assert not driver.prompt.text
    await driver.press("up")
    assert driver.prompt.text == "an idea"
    await driver.press("f4")
    await titled(driver, "2 conversations")
    listing = driver.app.screen.query_one(ThreadList)
    listing.cursor = next(
        at for at, row in enumerate(listing.entries) if row.thread.title == "Three"
    )
    await driver.press("enter")
    assert driver.prompt.text == "a draft"


async def test_a_conversation_is_resumed_after_a_kill(tmp_path: Path) -> None:
    with wired(tmp_path, Turns()) as wiring:
        await _resumed(wiring)


async def _resumed(wiring: Wiring) -> None:
    before = build_threads(wiring, build_session(wiring))
    long, cut, planned = before.create(), before.create(), before.create()
    for number in range(PAGE + 10):
        long.recorder.add_entry("notice", f"Remark {number}.")
    long.recorder.add_entry("model", "Next:\n\n- [ ] Water [/x]\n- [x] Dig\n")
    before.rename(long.id, "Long")
    before.rename(cut.id, "Cut")
    before.start(cut.id, "slow", lambda thread_id, request: None)  # type: ignore[arg-type,return-value]
    for _ in range(1000):
        if cut.partial:
            break
        await asyncio.sleep(0.01)
    before.rename(planned.id, "Planned")
    planned.recorder.begin("Do it")
    planned.recorder.handle(PlanReady(plan_of()))
    assert cut.task is not None
    cut.recorder._flush()

    # Another program on the same folder, as after a kill: nothing of the first one is closed.
    async with driving_real(wiring) as driver:
        app, pilot = driver.app, driver.pilot

        async def go(title: str) -> None:
            await pilot.press("f4")
            await titled(driver, title)
            listing = app.screen.query_one(ThreadList)
            listing.cursor = next(
                at for at, row in enumerate(listing.entries) if row.thread.title == title
            )
            await pilot.press("enter")
            await driver.settle()

        await go("Cut")
        assert "First of slow." in driver.transcript()
        assert "The program ended here" in driver.transcript()
        await go("Planned")
        assert driver.stage == "plan", "a plan that waited is previewed again"
        preview = driver.plan.preview
        await pilot.press("f8")
        await titled(driver, "Plans (1)")
        assert "0/3" in driver.screen()
        await pilot.press("enter")
        await driver.settle()
        assert driver.plan.preview is not preview
        await go("Long")
        await pilot.press("f8")
        await titled(driver, "Tasks (1 of 2 done)")
        await pilot.press("space")
        await titled(driver, "Tasks (2 of 2 done)")
        assert "Water [/x]" in driver.screen()
        await pilot.press("escape")
        await _look_back(driver)
    cut.task.cancel()
    await asyncio.gather(cut.task, return_exceptions=True)


async def _look_back(driver: Driver) -> None:
    transcript = driver.panes.chat.transcript
    entries = [*transcript.query(EntryWidget), *transcript.query(AnswerEntry)]
    assert len(entries) == PAGE
    assert "Remark 9." not in driver.transcript()
    assert "Remark 49." in driver.transcript()
    transcript.query_one(Earlier).action_open()
    await driver.settle()
    assert "Remark 0." in driver.transcript()
    assert not transcript.query(Earlier)


async def test_a_conversation_goes_back_to_an_earlier_turn_and_forward_again() -> None:
    async with driving(model=Turns()) as driver:
        await driver.send("/rewind")
        assert "This conversation has no earlier message yet." in driver.hint()
        for question in ("one", "two", "three"):
            await driver.send(question)
            await said(driver, f"Answer to {question}.")
        await driver.press("f9")
        await driver.on_top(TurnList)
        listing = driver.app.screen.query_one(ChoiceList)
        rows = [(row.text, row.word.strip()) for row in listing.entries]
        assert rows == [("three", "▸"), ("two", ""), ("one", "")]
        await driver.press("end", "enter")
        assert "Answer to one." in driver.transcript()
        assert "two" not in driver.transcript()
        await driver.send("four")
        await said(driver, "Answer to four.")
        await driver.send("/rewind")
        await driver.on_top(TurnList)
        listing = driver.app.screen.query_one(ChoiceList)
        assert [row.text for row in listing.entries] == ["four", "three", "two", "one"]
        await driver.press("down", "enter")
        assert "Answer to three." in driver.transcript()
        assert "four" not in driver.transcript()


async def test_a_plan_of_a_later_turn_does_not_stay_on_the_screen() -> None:
    turns = Turns()
    turns.go.set()
    async with driving(model=turns) as driver:
        await driver.send("one")
        await said(driver, "Answer to one.")
        await driver.send("plan two")
        await driver.until(lambda: driver.stage == "plan")
        await driver.settle()
        await driver.press("f9")
        await driver.press("end", "enter")
        assert driver.stage == "idle"
        assert driver.main.turn.pending is None
        assert driver.main.waiting == {}
