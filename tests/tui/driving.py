"""Drivers of the app for tests, which press keys and read the screen."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

from msgspec.structs import replace
from textual import app as app_module
from textual import pilot as pilot_module
from textual import screen
from textual.css import stylesheet
from textual.css.model import RuleSet
from textual.css.parse import parse
from textual.css.tokenize import tokenize_values
from textual.dom import DOMNode
from textual.message_pump import MessagePump
from textual.pilot import Pilot
from textual.screen import Screen
from textual.widgets import Static

from agents import propose, scripted
from obsidian_agent.bootstrap import Wiring
from obsidian_agent.cli.app import opened
from obsidian_agent.config.live import LiveSettings
from obsidian_agent.providers.base import ChatDelta, ChatRequest
from obsidian_agent.providers.keys import KeyStore
from obsidian_agent.providers.scripted import ScriptedProvider
from obsidian_agent.tui.app import ObsidianAgentApp
from obsidian_agent.tui.backend import Backend, BackendParts
from obsidian_agent.tui.keyboard import age
from obsidian_agent.tui.screens.main import MainScreen
from obsidian_agent.tui.widgets.panes import Panes
from obsidian_agent.tui.widgets.plan import PlanPane
from obsidian_agent.tui.widgets.prompt import Prompt
from obsidian_agent.vault.filesystem.store import VaultStore
from support import settings_with
from tui.samples import PROJECTS, plan_document

if TYPE_CHECKING:
    from obsidian_agent.agent.events import AgentEvent
    from obsidian_agent.journal.records import HistoryEntry

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
"""Workers that wait for the user, or for ever."""

SIZES = [(80, 24), (120, 40), (200, 50)]

MODEL = "scripted/model"
"""The model of `driving`."""

NOTES: Mapping[str, str] = {
    "Daily/2025-12-16.md": "# Tuesday\n\n- Garden\n- Kitchen\n- Roof\n",
    "Ideas.md": "One\n",
}

WRITING_THREADS = {"opening", "rules", "vault-following", "vault-compare", "vault-watcher"}
"""Threads of the app that may still write into its state folder just after it ended."""

LATE = 60.0
"""Seconds that no machine takes to handle a key."""

FRAME = 0.5
"""Seconds between two frames, if the driver does not draw one before."""

RESIZED = 0.01
"""Seconds after which Textual has followed another size (1/120)."""

LOOK = 0.004
"""Seconds between two looks at the app."""

PATIENCE = 60.0
"""Seconds after which a test gives up; only a very busy machine needs more than one."""


async def all_wait(*_: object) -> bool:
    """Wait until each task of the event loop waits for a timer, a thread or a connection."""
    ready = asyncio.get_running_loop()._ready  # type: ignore[attr-defined]
    for _look in range(2):
        while ready:  # noqa: ASYNC110
            await asyncio.sleep(0)
        await asyncio.sleep(0)
    return True


assert all("wait_for_idle" in vars(module) for module in (app_module, pilot_module)), (
    "Textual waits by other names now: every key would take ten times as long"
)
app_module.wait_for_idle = pilot_module.wait_for_idle = all_wait  # type: ignore[assignment]
Pilot._wait_for_screen = all_wait  # type: ignore[assignment, method-assign]
# Textual's pilot waits for 20 ms of an idle process, two or three times per key, and up to a second
# while other work runs. Then it sends a message to each widget and waits for them all.

screen.UPDATE_PERIOD = FRAME  # type: ignore[misc]
# Textual lays out and draws sixty times a second what has changed, and a busy machine draws most
# changes alone. The driver lays out when all messages are handled, and draws what has settled.

draw = Screen._compositor_refresh


def _draw_later(top: Screen[Any]) -> None:
    """Leave the changed regions of a screen to `settle`."""
    if top is not top.app.screen:
        draw(top)
        return
    top._dirty_widgets.clear()
    top.app._update_mouse_over(top)


Screen._compositor_refresh = _draw_later  # type: ignore[assignment, method-assign]


_variables: dict[object, dict[str, Any]] = {}
_rules: dict[object, list[Any]] = {}


def _tokenize_once(variables: dict[str, str]) -> dict[str, Any]:
    key = tuple(variables.items())
    if key not in _variables:
        _variables[key] = tokenize_values(variables)
    return _variables[key]


def _parse_once(*source: Any, **options: Any) -> list[Any]:
    variables, *others = options.values()
    key = (source, id(variables), *others)
    if key not in _rules:
        _rules[key] = list(parse(*source, **options))
    return _rules[key]


assert {"tokenize_values", "parse"} <= vars(stylesheet).keys()
vars(stylesheet).update(tokenize_values=_tokenize_once, parse=_parse_once)
# Textual parses its styles and ours for each app, theme and dialog, and never changes the rules.

RuleSet.__hash__ = object.__hash__  # type: ignore[method-assign]
# The same, the address, without a call of Python for each of a thousand rules and each widget.


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


@asynccontextmanager
async def ended_threads() -> AsyncIterator[Threads]:
    """Give `asyncio.to_thread` its own threads, and wait for those that write at the end.

    The app does not wait for them when it quits, but a test then deletes their folders.
    """
    known = set(threading.enumerate())
    loop = asyncio.get_running_loop()
    loop.set_default_executor(threads := Threads())
    try:
        yield threads
    finally:
        # Not on the event loop, as a thread may wait for the loop before it ends.
        loop.set_default_executor(Threads())
        await asyncio.to_thread(threads.shutdown)
        for thread in set(threading.enumerate()) - known:
            if thread.name in WRITING_THREADS:
                await asyncio.to_thread(thread.join)


class Driver:
    """A running app, a clock that the test moves, and shortcuts."""

    vault: Path
    """The folder of the vault."""
    model: Model

    def __init__(self, app: ObsidianAgentApp, pilot: Pilot[None], threads: Threads) -> None:
        self.app, self.session, self.pilot = app, app.backend.parts.session, pilot
        self._threads = threads
        self.now = time.monotonic() + 1.0
        app.keyboard.clock = lambda: self.now
        # A key is handled without delay on any machine, unless a test makes the key seconds old.
        app.keyboard.age = lambda event: waited if (waited := age(event)) > LATE else 0.0
        app.keyboard.hold = 0.0

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
        """Return the content of the work pane: idle, plan, run or result."""
        return self.panes.work.stage

    @property
    def prompt(self) -> Prompt:
        return self.main.query_one(Prompt)

    async def opened(self) -> None:
        """Wait until the first line names the planner, or a dialog is open over it."""
        await self.settle()
        await self.until(
            lambda: (
                len(self.app.screen_stack) > 1 or self.main.query_one("#planner").region.width > 2
            )
        )

    async def settle(self, *held: str) -> None:
        """Wait until all messages are handled and drawn, and no worker or thread is at work.

        `held`: groups of workers that the test itself blocks. Over a dialog only its own workers
        count.
        """
        while True:
            await self.until(lambda: self._quiet(held))
            if not self._lay_out():
                break
        top = self.app.screen
        with top._context():
            draw(top)

    def _lay_out(self) -> bool:
        """Lay out what has changed, as soon as no message waits. Return whether there was any."""
        if any(pump.message_queue_size for pump in self._pumps()):
            return True
        top = self.app.screen
        if not (
            top._layout_required
            or top._scroll_required
            or top._repaint_required
            or top._recompose_required
            or top._dirty_widgets
            or top._callbacks
        ):
            return False
        with top._context():
            top._on_timer_update()
        return True

    def _pumps(self) -> Iterator[MessagePump]:
        yield self.app
        for screen_ in self.app.screen_stack:
            yield from screen_.walk_children(with_self=True)

    def _quiet(self, held: tuple[str, ...]) -> bool:
        return (
            not self._threads.busy
            and not any(pump.message_queue_size for pump in self._pumps())
            and all(
                worker.group in (*ASKING, *held)
                for worker in self.app.workers
                if self._counts(worker.node)
            )
        )

    def _counts(self, node: DOMNode) -> bool:
        """Return True if work of this node ends by itself; work below a dialog may wait for it."""
        return len(self.app.screen_stack) == 1 or (
            node is not self.app and node.screen is self.app.screen
        )

    async def until(self, true: Callable[[], object]) -> None:
        """Wait until `true()` holds, and still holds after everything under way was handled."""
        end = time.monotonic() + PATIENCE
        while True:
            if true():
                await all_wait()
                while self._lay_out():
                    await all_wait()
                if true():
                    return
            if time.monotonic() > end:
                at_work = [f"{worker.group}: {worker.description}" for worker in self.app.workers]
                raise AssertionError(
                    f"It did not come in {PATIENCE:.0f} s. Workers: {at_work}. The screen:\n{self.screen()}"
                )
            self._lay_out()
            await asyncio.sleep(LOOK)

    async def finished(self) -> None:
        """Wait until the result of a run is shown, with the keys that it offers."""
        await self.until(lambda: self.stage == "result")
        await self.settle()

    async def on_top(self, screen: type[Screen[Any]]) -> None:
        """Wait until a screen of this kind is on top and has been readable for a while."""
        await self.until(lambda: isinstance(self.app.screen, screen))
        await self.settle()
        self.wait_out_grace()

    async def gone(self) -> None:
        """Until the app has ended by itself."""
        end = time.monotonic() + PATIENCE
        while self.app.return_code is None:
            assert time.monotonic() < end, "The app goes on."
            await asyncio.sleep(0.02)

    async def resize(self, width: int, height: int) -> None:
        """Give the terminal another size, and wait until the app has followed it."""
        await self.pilot.resize_terminal(width, height)
        await asyncio.sleep(RESIZED)
        await self.settle()

    async def send(self, text: str) -> None:
        """Type a message at once and send it."""
        self.prompt.focus()
        await self.pilot.pause()
        self.prompt.text = text
        await self.pilot.press("enter")
        await self.settle()

    async def press(self, *keys: str) -> None:
        """Look for a second, then press keys; those to a screen that opens come when it is there.

        The effect of a key without a letter is laid out first; a text is typed at once.
        """
        self.now += 1.0
        for key in keys[:-1]:
            before = self.app.screen_stack[:]
            await self.pilot.press(key)
            if self.app.screen_stack != before:
                await self.settle()
            while len(key) > 1 and self._lay_out():  # noqa: ASYNC110
                await asyncio.sleep(0)
        await self.pilot.press(keys[-1])
        await self.settle()

    def wait_out_grace(self) -> None:
        """Half a second and more goes by."""
        self.now += 1.0

    async def planned(self, text: str = "Make notes") -> None:
        """Wait until a plan is on the screen and the grace period is over."""
        await self.send(text)
        self.wait_out_grace()

    async def preview(self, *steps: Mapping[str, Any], **fields: Any) -> None:
        """Preview a plan of these steps that no model made, until the grace period is over."""
        self.main.turn.preview(plan_document(steps, **fields), frozenset(), {})
        await self.settle()
        self.panes.go("work")
        await self.settle()
        self.wait_out_grace()

    async def play(self, *events: AgentEvent) -> None:
        """Show the events of a turn that neither a vault nor a model comes to at will."""

        async def stream() -> AsyncIterator[AgentEvent]:
            for event in events:
                yield event

        self.main.turn.forget_plan()
        self.main.turn.start(stream(), "Working")
        await self.settle()
        self.wait_out_grace()

    @property
    def files(self) -> dict[str, str]:
        """The visible files of the vault."""
        return {
            path.relative_to(self.vault).as_posix(): path.read_text()
            for path in sorted(self.vault.rglob("*"))
            if path.is_file() and not path.relative_to(self.vault).parts[0].startswith(".")
        }

    @property
    def runs(self) -> list[HistoryEntry]:
        """The runs of the vault, newest first."""
        return self.session.runs.history()

    @property
    def messages(self) -> list[str]:
        """The messages of the user in the conversation on the screen."""
        chat = self.main.thread.chat
        entries = chat.state.entries if chat is not None else ()
        return [entry.text for entry in entries if entry.role == "person"]

    def screen(self) -> str:
        """Return the text of the screen on top, line by line."""
        return "\n".join(strip.text for strip in self.app.screen._compositor.render_strips())

    def hint(self) -> str:
        """Return the remark above the message box, or ""."""
        hint = self.main.query_one("#hint")
        return str(hint.render()) if hint.display else ""

    def plan_head(self) -> str:
        """Goal, risk and counts."""
        return str(self.main.query_one("#plan-head").render())

    def transcript(self) -> str:
        """Everything in the conversation."""
        return "\n".join(str(entry.render()) for entry in self.panes.chat.transcript.query(Static))


class Model:
    """A scripted model. It waits for `gate`; after its script it proposes `PROJECTS`."""

    name = MODEL
    address = ""
    local = False

    def __init__(self, *answers: Mapping[str, Any]) -> None:
        self._answers = [scripted(answer) for answer in answers]
        self.gate = asyncio.Event()
        self.gate.set()

    async def stream(self, request: ChatRequest) -> AsyncGenerator[ChatDelta, None]:
        answer = self._answers.pop(0) if self._answers else scripted(propose(PROJECTS))
        async for delta in answer.stream(request):
            await self.gate.wait()
            yield delta


@contextmanager
def wired(
    folder: Path,
    model: Model,
    files: Mapping[str, str] = NOTES,
    settings: LiveSettings | None = None,
    name: str = "Vault",
) -> Iterator[Wiring]:
    """Open a new vault of `files` in a folder, with the state of the app beside it."""
    vault = folder / name
    vault.mkdir()
    for path, text in files.items():
        (vault / path).parent.mkdir(parents=True, exist_ok=True)
        (vault / path).write_bytes(text.encode())
    with (
        VaultStore.open(vault) as store,
        patch.object(ScriptedProvider, "load", lambda path: model),
    ):
        settings = settings or settings_with(model=MODEL)
        yield Wiring(store, folder / "state", policy=None, settings=settings)


@asynccontextmanager
async def driving(
    *answers: Mapping[str, Any],
    files: Mapping[str, str] = NOTES,
    size: tuple[int, int] = (120, 40),
    settings: LiveSettings | None = None,
    theme: str | None = None,
    model: Model | None = None,
    name: str = "Vault",
    before: Callable[[Wiring], object] = lambda wiring: None,
) -> AsyncIterator[Driver]:
    """Run the app as the command line builds it, over a new vault of `files`.

    Its model has a script of `answers`, or is `model`. `before` prepares the vault, its history or
    its macros.
    """
    model = model or Model(*answers)
    with (
        TemporaryDirectory(prefix="oa-") as folder,
        wired(Path(folder), model, files, settings, name) as wiring,
    ):
        before(wiring)
        async with driving_real(wiring, size, theme=theme) as driver:
            driver.model = model
            yield driver


@asynccontextmanager
async def driving_real(
    wiring: Wiring,
    size: tuple[int, int] = (120, 40),
    *,
    first_start: bool = False,
    theme: str | None = None,
) -> AsyncIterator[Driver]:
    """Run the app of the command line over a vault on disk, without the system's keyring."""

    def opening() -> BackendParts:
        parts = opened(wiring)
        return replace(
            parts,
            services=replace(
                parts.services, keys=KeyStore(wiring.state / "keys.toml", lambda: None)
            ),
        )

    backend = Backend(wiring.store.name, opening)
    app = ObsidianAgentApp(backend, theme=theme, first_start=first_start)
    async with (
        ended_threads() as threads,
        app.run_test(size=size, notifications=True) as pilot,
    ):
        driver = Driver(app, pilot, threads)
        driver.vault = Path(wiring.store.real_path)
        await driver.opened()
        yield driver
