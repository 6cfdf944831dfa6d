"""How tests drive the app and read its screen."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from textual.pilot import Pilot
from textual.widgets import Static

from obsidian_agent.tui.app import ObsidianAgentApp
from obsidian_agent.tui.screens.main import MainScreen
from obsidian_agent.tui.widgets.panes import Panes
from obsidian_agent.tui.widgets.plan import PlanPane
from obsidian_agent.tui.widgets.prompt import Prompt
from tui.fakes import FakeSession

ASKING = ("ask", "undo", "saved", "save", "parameter", "recovery", "thread", "elsewhere")
"""Workers that wait for the person, or for ever."""

SIZES = [(80, 24), (120, 40), (200, 50)]


class Driver:
    """A running app with a fake session, a clock that the test moves, and shortcuts."""

    def __init__(self, app: ObsidianAgentApp, session: FakeSession, pilot: Pilot[None]) -> None:
        self.app, self.session, self.pilot = app, session, pilot
        self.now = time.monotonic() + 1.0
        app.keyboard.clock = lambda: self.now

    @property
    def main(self) -> MainScreen:
        screen = self.app.screen_stack[0]
        assert isinstance(screen, MainScreen)
        return screen

    @property
    def panes(self) -> Panes:
        return self.main.panes

    @property
    def plan(self) -> PlanPane:
        return self.main.query_one(PlanPane)

    @property
    def stage(self) -> str:
        """What the work pane shows: idle, plan, run or result."""
        return self.panes.work.stage

    @property
    def prompt(self) -> Prompt:
        return self.main.query_one(Prompt)

    async def settle(self) -> None:
        """Until no worker is at work and every message was handled."""
        for _ in range(5):
            await self.pilot.pause()
            waiting = [worker for worker in self.app.workers if worker.group not in ASKING]
            if not waiting:
                break
            await self.app.workers.wait_for_complete(waiting)

    async def send(self, text: str) -> None:
        """Type a message at once and send it."""
        self.prompt.focus()
        await self.pilot.pause()
        self.prompt.text = text
        await self.pilot.press("enter")
        await self.settle()

    async def press(self, *keys: str) -> None:
        """Look for a second, then press keys one right after the other."""
        self.now += 1.0
        await self.pilot.press(*keys)
        await self.settle()

    def wait_out_grace(self) -> None:
        """Half a second and more goes by."""
        self.now += 1.0

    async def planned(self, text: str = "Make notes") -> None:
        """A plan is on the screen and the grace period is over."""
        await self.send(text)
        self.wait_out_grace()

    def screen(self) -> str:
        """The text of the screen on top, line by line."""
        return "\n".join(strip.text for strip in self.app.screen._compositor.render_strips())

    def hint(self) -> str:
        """The remark above the message box; "" when there is none."""
        hint = self.main.query_one("#hint")
        return str(hint.render()) if hint.display else ""

    def plan_head(self) -> str:
        """Goal, risk and counts."""
        return str(self.main.query_one("#plan-head").render())

    def transcript(self) -> str:
        """Everything in the conversation."""
        return "\n".join(str(entry.render()) for entry in self.panes.chat.transcript.query(Static))


@asynccontextmanager
async def driving(session: FakeSession | None = None, size: tuple[int, int] = (120, 40)) -> AsyncIterator[Driver]:
    """Run the app."""
    session = session or FakeSession()
    app = ObsidianAgentApp(session)
    async with app.run_test(size=size, notifications=True) as pilot:
        driver = Driver(app, session, pilot)
        await driver.settle()
        yield driver
