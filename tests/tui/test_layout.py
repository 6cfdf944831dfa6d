"""Everything can be reached at every size."""

from __future__ import annotations

import subprocess
import sys

from textual import events
from textual.widgets import Footer

from obsidian_agent.tui.screens.actions import Actions
from obsidian_agent.tui.themes import DARK
from obsidian_agent.tui.widgets.panes import TopBar
from obsidian_agent.tui.widgets.plan_list import PlanList
from support import settings_with
from tui.driving import MODEL, SIZES, Driver, driving
from tui.samples import create


def footer(app: Driver) -> str:
    return app.screen().split("\n")[app.main.query_one(Footer).region.y]


async def test_every_pane_and_its_deciding_keys_are_there_at_every_size() -> None:
    async with driving(size=(200, 50)) as app:
        await app.press("ctrl+o", "enter")
        await app.press("f6")
        assert app.panes.front == "chat", "the plan pane, which is empty, is skipped"
        await app.planned()
        for size in (*SIZES, (60, 20)):
            await app.resize(*size)
            fronts = set()
            for _ in range(3):
                await app.press("f6")
                await app.until(lambda: app.app.focused is not None)
                front = app.panes.front
                fronts.add(front)
                region = app.panes.query_one(f"#{front}").region
                assert region.width >= 30
                assert region.bottom <= size[1] - 1
                assert region.right <= size[0]
                assert app.app.focused is not None
                assert app.app.focused.region.width > 0
            assert fronts == {"chat", "note", "work"}
            assert app.panes.front == "work"
            for words in (
                ("a Approve", "r Reject", "space Omit", "c Change", "f1 Help", "^p Menu")
                if size in SIZES
                else ()
            ):
                assert words in footer(app)
        await app.resize(80, 24)
        await app.press("a")
        assert len(app.runs) == 1
        for size in SIZES:
            await app.resize(*size)
            for words in ("u Undo", "m Save", "esc Close", "f1 Help", "^p Menu"):
                assert words in footer(app)


async def test_as_many_panes_as_fit() -> None:
    async with driving(size=(80, 40)) as app:
        await app.press("ctrl+o", "enter")
        await app.planned()
        for width, count in ((80, 1), (99, 1), (100, 2), (149, 2), (150, 3), (200, 3)):
            await app.resize(width, 40)
            assert (
                sum(bool(pane.display and pane.region.width) for pane in app.panes.children)
                == count
            )


async def test_the_top_bar_grows_even_if_a_layout_runs_between_two_updates() -> None:
    async with driving() as app:
        bar = app.main.query_one(TopBar)
        bar.show_planner("a")
        bar._clear_arrangement_cache()  # as another widget of the bar does that changes meanwhile
        app.main._refresh_layout()
        bar.show_planner("the offline planner")
        await app.settle()
        assert "the offline planner" in app.screen().split("\n")[0]


async def test_themes_of_textual_draw_a_plan() -> None:
    async with driving(size=(80, 24)) as app:
        await app.planned()
        for theme in ("textual-dark", "textual-light", "nord", "ansi-dark"):
            app.app.theme = theme
            await app.settle()
            assert "Ready" in app.screen()


async def test_an_unknown_theme_falls_back() -> None:
    async with driving(theme="no such theme") as app:
        assert app.app.theme == DARK


async def test_keys_can_be_rebound() -> None:
    settings = settings_with(model=MODEL, keymap={"plan.approve": "f8"})
    async with driving(settings=settings) as driver:
        await driver.planned()
        await driver.press("a")
        assert driver.runs == []
        assert driver.prompt.text == "a", "a letter that is no key is said"
        driver.panes.go("work")
        await driver.settle()
        driver.wait_out_grace()
        await driver.press("f8")
        assert len(driver.runs) == 1


async def test_ten_thousand_files_are_drawn_by_the_screenful() -> None:
    numbers = [f"{number:05}" for number in range(10_000)]
    foreach = {"from": numbers, "itemName": "number"}
    step = create("new", "Folder/Note ${number}.md", "text\n", foreach=foreach)
    drawn = 0
    original = PlanList.draw_row

    def counting(self: PlanList, row: object, width: int) -> object:
        nonlocal drawn
        drawn += 1
        return original(self, row, width)  # type: ignore[arg-type]

    PlanList.draw_row = counting  # type: ignore[assignment,method-assign]
    try:
        async with driving(files={"Folder/Old.md": "x\n"}) as app:
            await app.preview(step)
            listing = app.main.query_one(PlanList)
            await app.press("down", "down", "right")
            assert len(listing.rows) > 10_000
            await app.press("end")
            assert listing.current.change.path.text == "Folder/Note 09999.md"  # type: ignore[union-attr]
            assert "Note 09999.md" in app.screen()
            assert drawn < 500
    finally:
        PlanList.draw_row = original  # type: ignore[method-assign]


def test_the_app_is_imported_without_anything_slow() -> None:
    slow = [
        "litellm",
        "openai",
        "httpx",
        "pydantic",
        "rapidfuzz",
        "yaml",
        "sqlite3",
        "numpy",
        "markdown_it",
    ]
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
        app.panes.chat.transcript.focus()
        await app.press("j")
        assert (app.prompt.text, app.app.focused) == ("hij", app.prompt)


async def test_a_command_typed_at_once_is_not_taken_for_what_its_first_letters_suggest() -> None:
    async with driving(size=(80, 24)) as app:
        for key, letter in (
            ("slash", "/"),
            *((letter, letter) for letter in "actions"),
            ("enter", "\r"),
        ):
            app.app.post_message(events.Key(key, letter))
        await app.settle()
        assert isinstance(app.app.screen, Actions), app.screen()


async def test_words_typed_at_once_beside_a_result_are_a_message_not_its_keys() -> None:
    async with driving() as app:
        await app.preview(create("new", "A.md"))
        await app.press("a")
        assert app.stage == "result"
        for letter in "Tum":
            app.app.post_message(events.Key(letter, letter))
        await app.settle()
        assert (app.prompt.text, app.app.focused) == ("Tum", app.prompt)
        assert app.stage == "result"
        assert "A.md" in app.files
