"""Drives the demo through its states and exports a picture of each."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

from textual.pilot import Pilot

from obsidian_agent.tui.themes import DARK, LIGHT
from tui.driving import fake_app
from tui.fakes import FakeSession, mixed_run, sample_answer, sample_candidates

Shot = Callable[..., Coroutine[Any, Any, None]]
SIZES = ((80, 24), (120, 40), (200, 50))


async def take_all(folder: Path, make: Callable[[float], FakeSession]) -> None:
    """All states at all sizes in both themes."""
    for theme in (DARK, LIGHT):
        for size in SIZES:
            await _tour(folder, f"{'dark' if theme == DARK else 'light'}-{size[0]}", make(0.0), theme, size)


async def _tour(folder: Path, name: str, session: FakeSession, theme: str, size: tuple[int, int]) -> None:
    with fake_app(session, theme=theme) as app:
        async with app.run_test(size=size, notifications=True) as pilot:

            async def shot(state: str, *, settled: bool = True) -> None:
                if settled:
                    await settle(pilot)
                (folder / f"{name}-{state}.svg").write_text(app.export_screenshot(simplify=True))

            await shot("1-start")
            await _reading(pilot, session, shot)
            await _deciding(pilot, session, shot)
            await _screens(pilot, session, shot)


async def _reading(pilot: Pilot[None], session: FakeSession, shot: Shot) -> None:
    session.script = [sample_answer()]
    await say(pilot, "Which projects are open?")
    await pilot.press("ctrl+o", *"2025")
    await shot("2-open")
    await pilot.press("enter")
    await settle(pilot)
    await pilot.press(*["down"] * 9, *["x"] * 5)
    await shot("3-note")


async def _deciding(pilot: Pilot[None], session: FakeSession, shot: Shot) -> None:
    await say(pilot, "Make a note for each bullet in the selection, please")
    await pilot.pause(0.6)
    await shot("4-plan")
    await pilot.press("p", "down")
    await shot("5-step")
    await pilot.press("space")
    await pilot.pause(0.6)
    await shot("6-step-off")
    await pilot.press("space")
    await pilot.pause(0.6)
    await pilot.press("e")
    await shot("7-edit")
    await pilot.press("escape", "n", "enter")
    await shot("8-diff")
    await pilot.press("escape")
    session.pace = 0.05
    await pilot.press("a")
    await pilot.pause(0.7)
    await shot("9-run", settled=False)
    session.pace = 0.0
    await pilot.pause(1.5)
    await shot("a-result")


async def _screens(pilot: Pilot[None], session: FakeSession, shot: Shot) -> None:
    for key, state in (("m", "b-save"), ("f2", "c-saved"), ("f3", "d-history"), ("f1", "e-help"), ("ctrl+p", "f-palette")):
        await pilot.press(key)
        await shot(state)
        await pilot.press("escape")
    session.script = [sample_candidates()]
    await say(pilot, "todo to task")
    await shot("g-candidates")
    await pilot.press("2")
    await shot("h-form")
    await pilot.press("escape")
    session.run_script = mixed_run()
    await say(pilot, "Once more")
    await pilot.pause(0.6)
    await pilot.press("a")
    await shot("i-conflict")


async def settle(pilot: Pilot[None]) -> None:
    """Until nothing is in flight."""
    await pilot.pause()
    await pilot.pause(0.15)
    await pilot.pause()


async def say(pilot: Pilot[None], text: str) -> None:
    """Type and send."""
    prompt = pilot.app.query_one("#prompt")
    prompt.focus()
    await pilot.pause()
    if text:
        prompt.insert(text)  # type: ignore[attr-defined]
    await pilot.press("enter")
    await settle(pilot)
