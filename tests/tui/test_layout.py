"""Everything can be reached at every size."""

from __future__ import annotations

import subprocess
import sys

import pytest
from textual.widgets import Footer

from obsidian_agent.agent.events import PlanReady, PreviewReady
from obsidian_agent.tui.app import ObsidianAgentApp
from obsidian_agent.tui.themes import DARK, LIGHT
from obsidian_agent.tui.widgets.plan_list import PlanList
from tui.driving import SIZES, driving
from tui.fakes import FakeSession, Macro, change, history_entries, plan_of, preview_of, sample_answer


@pytest.mark.parametrize("size", [*SIZES, (60, 20)])
async def test_every_pane_can_be_reached_by_key_and_lies_on_the_screen(size: tuple[int, int]) -> None:
    session = FakeSession()
    async with driving(session, size=size) as app:
        await app.press("ctrl+o", "enter")
        await app.planned()
        fronts = set()
        for _ in range(3):
            await app.press("f6")
            front = app.panes.front
            fronts.add(front)
            region = app.panes.query_one(f"#{front}").region
            assert region.width >= 30
            assert region.bottom <= size[1] - 1
            assert region.right <= size[0]
            assert app.app.focused is not None
            assert app.app.focused.region.width > 0
        assert fronts == {"chat", "note", "work"}


@pytest.mark.parametrize(("width", "count"), [(80, 1), (99, 1), (100, 2), (149, 2), (150, 3), (200, 3)])
async def test_as_many_panes_as_fit(width: int, count: int) -> None:
    async with driving(size=(width, 40)) as app:
        assert sum(bool(pane.display and pane.region.width) for pane in app.panes.children) == count


async def test_panes_follow_when_the_terminal_is_resized() -> None:
    async with driving(size=(200, 50)) as app:
        await app.planned()
        await app.pilot.resize_terminal(80, 24)
        await app.settle()
        assert [pane.id for pane in app.panes.children if pane.region.width] == ["work"]
        assert "Ready" in app.screen()
        await app.press("a")
        assert len(app.session.called("execute")) == 1


@pytest.mark.parametrize("size", SIZES)
async def test_the_footer_shows_the_deciding_keys_of_the_pane_in_front(size: tuple[int, int]) -> None:
    async with driving(size=size) as app:
        await app.planned()
        footer = app.main.query_one(Footer)
        line = app.screen().split("\n")[footer.region.y]
        for words in ("a Approve", "r Reject", "e Edit", "space Step", "f1 Help", "^p Menu"):
            assert words in line
        await app.press("a")
        line = app.screen().split("\n")[footer.region.y]
        for words in ("u Undo", "m Save", "esc Close", "f1 Help", "^p Menu"):
            assert words in line


@pytest.mark.parametrize("theme", [DARK, LIGHT, "textual-dark", "textual-light", "nord", "ansi-dark"])
async def test_every_theme_draws_every_screen(theme: str) -> None:
    session = FakeSession(script=[sample_answer()])
    session.saved.macros = [Macro("One", plan_of())]
    session.runs.entries = history_entries()
    async with driving(session, size=(80, 24)) as app:
        app.app.theme = theme
        await app.send("Hello")
        for key in ("f1", "f2", "f3", "ctrl+o", "ctrl+p"):
            await app.pilot.press(key)
            await app.pilot.pause()
            await app.pilot.press("escape")
        await app.planned()
        assert "Ready" in app.screen()


async def test_an_unknown_theme_falls_back() -> None:
    app = ObsidianAgentApp(FakeSession(), theme="no such theme")
    async with app.run_test():
        assert app.theme == DARK


async def test_keys_can_be_rebound() -> None:
    session = FakeSession()
    app = ObsidianAgentApp(session, keymap={"plan.approve": "f8"})
    async with app.run_test(size=(120, 40)) as pilot:
        from tui.driving import Driver

        driver = Driver(app, session, pilot)
        await driver.planned()
        await driver.press("a")
        assert session.called("execute") == []
        await driver.press("f8")
        assert len(session.called("execute")) == 1


async def test_ten_thousand_files_are_drawn_by_the_screenful() -> None:
    plan = plan_of()
    changes = [change("create", f"Folder/Note {number:05}.md", content=b"text\n") for number in range(10_000)]
    session = FakeSession(script=[[PlanReady(plan), PreviewReady(preview_of(plan, changes))]])
    drawn = 0
    original = PlanList.draw_row

    def counting(self: PlanList, row: object, width: int) -> object:
        nonlocal drawn
        drawn += 1
        return original(self, row, width)  # type: ignore[arg-type]

    PlanList.draw_row = counting  # type: ignore[assignment,method-assign]
    try:
        async with driving(session) as app:
            await app.planned()
            listing = app.main.query_one(PlanList)
            assert len(listing.rows) > 10_000
            await app.press("end")
            assert listing.current.change.path.text == "Folder/Note 09999.md"  # type: ignore[union-attr]
            assert "Note 09999.md" in app.screen()
            assert drawn < 500
            assert len(session.called("diff")) <= 4
    finally:
        PlanList.draw_row = original  # type: ignore[method-assign]


def test_the_app_is_imported_without_anything_slow() -> None:
    slow = ["litellm", "openai", "httpx", "pydantic", "rapidfuzz", "yaml", "sqlite3", "numpy", "markdown_it"]
    code = f"import sys, obsidian_agent.tui.app; print([name for name in {slow} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "[]", done.stderr


async def test_letters_typed_where_nothing_takes_them_go_to_the_message() -> None:
    async with driving(size=(80, 24)) as app:
        await app.press("f6", "f6")
        assert app.panes.front == "work"
        await app.press("h", "i")
        assert app.prompt.text == "hi"
        assert app.app.focused is app.prompt
