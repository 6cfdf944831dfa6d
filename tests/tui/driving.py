"""How tests drive the app and read its screen."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, cast

from textual import _wait
from textual.dom import DOMNode
from textual.pilot import Pilot
from textual.screen import Screen
from textual.widgets import Static

from obsidian_agent.bootstrap import Wiring, build_app_services, build_threads
from obsidian_agent.cli.app import opened
from obsidian_agent.config.live import LiveSettings
from obsidian_agent.providers.keys import KeyStore
from obsidian_agent.tui.app import ObsidianAgentApp
from obsidian_agent.tui.backend import Backend, BackendParts
from obsidian_agent.tui.keyboard import age
from obsidian_agent.tui.screens.main import MainScreen
from obsidian_agent.tui.widgets.panes import Panes
from obsidian_agent.tui.widgets.plan import PlanPane
from obsidian_agent.tui.widgets.prompt import Prompt
from obsidian_agent.vault.filesystem.store import VaultStore
from tui.fakes import FakeSession

if TYPE_CHECKING:
    from obsidian_agent.services.session import Session
    from obsidian_agent.threads.manager import ThreadManager

ASKING = (
    "ask",
    "choice",
    "undo",
    "saved",
    "save",
    "parameter",
    "recovery",
    "thread",
    "elsewhere",
    "proposals",
)
"""Workers that wait for the person, or for ever."""

SIZES = [(80, 24), (120, 40), (200, 50)]


LATE = 60.0
"""Seconds that no machine takes to handle a key."""

FRAME = 0.02
"""Seconds after which Textual has drawn what changed (it waits a 60th) and heeded another size (a 120th)."""

PATIENCE = 60.0
"""Seconds after which a test gives up on something that has to come. Only a machine that is very busy needs more than one of them."""

assert vars(_wait).keys() >= {"SLEEP_GRANULARITY", "SLEEP_IDLE"}, (
    "Textual waits by other names now: every key would take ten times as long"
)
_wait.SLEEP_GRANULARITY, _wait.SLEEP_IDLE = 0.002, 0.001
# Textual's pilot takes the app for idle once the process did nearly nothing for 20 ms, two or three times a key, and while anything else
# is at work for a second; nothing public says otherwise. Whether it is idle `settle` asks the app itself.


class Threads(ThreadPoolExecutor):
    """The threads of `asyncio.to_thread`, which know whether any is at work."""

    def __init__(self) -> None:
        super().__init__(4)
        self._calls: set[Future[Any]] = set()

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        call = super().submit(fn, *args, **kwargs)
        self._calls.add(call)
        return call

    @property
    def busy(self) -> bool:
        self._calls = {call for call in self._calls if not call.done()}
        return bool(self._calls)


class Driver:
    """A running app with a fake session, a clock that the test moves, and shortcuts."""

    def __init__(self, app: ObsidianAgentApp, session: FakeSession, pilot: Pilot[None]) -> None:
        self.app, self.session, self.pilot = app, session, pilot
        self.now = time.monotonic() + 1.0
        app.keyboard.clock = lambda: self.now
        # Between a key and its handling no time goes by, as slow as the machine may be, unless a test makes the key seconds old.
        app.keyboard.age = lambda event: waited if (waited := age(event)) > LATE else 0.0
        self._threads = Threads()
        asyncio.get_running_loop().set_default_executor(self._threads)

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

    async def opened(self) -> None:
        """Until what the app shows is open, and the first line says who plans or a dialog is asked at once: below one nothing new is drawn."""
        await self.settle()
        await self.until(
            lambda: (
                len(self.app.screen_stack) > 1 or self.main.query_one("#planner").region.width > 2
            )
        )

    async def settle(self, *held: str) -> None:
        """Until every message was handled and drawn and neither a worker nor a thread is at work, however busy the machine is.

        `held`: groups of workers that the test itself holds up. Over a dialog only its own workers count.
        """
        while True:
            await self.until(lambda: self._quiet(held))
            await asyncio.sleep(FRAME)
            if self._quiet(held):
                return

    def _quiet(self, held: tuple[str, ...]) -> bool:
        pumps = [
            self.app,
            *(
                widget
                for screen in self.app.screen_stack
                for widget in screen.walk_children(with_self=True)
            ),
        ]
        return (
            not self._threads.busy
            and not any(pump.message_queue_size for pump in pumps)
            and all(
                worker.group in (*ASKING, *held)
                for worker in self.app.workers
                if self._counts(worker.node)
            )
        )

    def _counts(self, node: DOMNode) -> bool:
        """Whether work of this node has an end of its own: over a dialog the work of the screens below may wait for the answer."""
        return len(self.app.screen_stack) == 1 or (
            node is not self.app and node.screen is self.app.screen
        )

    async def until(self, true: Callable[[], object]) -> None:
        """Until something is so, and is still so after what is ready to run has run."""
        end = time.monotonic() + PATIENCE
        while True:
            await self.pilot.pause()
            if true():
                for _ in range(20):
                    await asyncio.sleep(0)
                if true():
                    return
            if time.monotonic() > end:
                at_work = [f"{worker.group}: {worker.description}" for worker in self.app.workers]
                raise AssertionError(
                    f"It did not come in {PATIENCE:.0f} s. Workers: {at_work}. The screen:\n{self.screen()}"
                )

    async def on_top(self, screen: type[Screen[Any]]) -> None:
        """Until a screen of this kind is on top, can be read, and has been looked at for a while."""
        await self.until(lambda: isinstance(self.app.screen, screen))
        await self.settle()
        self.wait_out_grace()

    async def gone(self) -> None:
        """Until the app has ended by itself."""
        end = time.monotonic() + PATIENCE
        while self.app.return_code is None:  # noqa: ASYNC110
            assert time.monotonic() < end, "The app goes on."
            await asyncio.sleep(0.02)

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


def build_fake_app(
    session: FakeSession,
    store: VaultStore,
    place: Path,
    *,
    threads: ThreadManager | None = None,
    settings: LiveSettings | None = None,
    theme: str | None = None,
) -> ObsidianAgentApp:
    """The app as it ships, with threads, services and settings under `place`; only the session is a fake one."""
    wiring = Wiring(store, place / "state", settings=settings or LiveSettings())
    real = cast("Session", session)
    threads = threads or build_threads(wiring, real)
    services = replace(
        build_app_services(wiring, real, threads), keys=KeyStore(place / "keys.toml", lambda: None)
    )
    return ObsidianAgentApp(
        Backend(session.name, lambda: BackendParts(real, threads, services, wiring.settings)),
        theme=theme,
    )


@contextmanager
def fake_app(session: FakeSession, **parts: Any) -> Iterator[ObsidianAgentApp]:
    """`build_fake_app` over an empty vault that is gone afterwards."""
    with TemporaryDirectory() as place:
        (Path(place) / "Vault").mkdir()
        with VaultStore.open(Path(place) / "Vault") as store:
            yield build_fake_app(session, store, Path(place), **parts)


@asynccontextmanager
async def driving(
    session: FakeSession | None = None, size: tuple[int, int] = (120, 40), **parts: Any
) -> AsyncIterator[Driver]:
    """Run the app with a fake session; `parts` as in `build_fake_app`."""
    session = session or FakeSession()
    with fake_app(session, **parts) as app:
        async with app.run_test(size=size, notifications=True) as pilot:
            driver = Driver(app, session, pilot)
            await driver.opened()
            yield driver


@asynccontextmanager
async def driving_real(
    wiring: Wiring, size: tuple[int, int] = (120, 40), *, first_start: bool = False
) -> AsyncIterator[Driver]:
    """Run the app as the command line builds it, over a vault on disk. Never with the keyring of whoever runs this."""

    def opening() -> BackendParts:
        parts = opened(wiring)
        return replace(
            parts,
            services=replace(
                parts.services, keys=KeyStore(wiring.state / "keys.toml", lambda: None)
            ),
        )

    app = ObsidianAgentApp(Backend(wiring.store.name, opening), first_start=first_start)
    async with app.run_test(size=size, notifications=True) as pilot:
        driver = Driver(app, cast("FakeSession", app.backend.parts.session), pilot)
        await driver.opened()
        yield driver
