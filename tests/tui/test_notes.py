"""Reading notes as in Obsidian: rendered, with links, find, outline, backlinks and history."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any
from unittest.mock import patch

from obsidian_agent.tui.markdown_lines import MarkdownLine, note_lines
from obsidian_agent.tui.screens.dialogs import Confirm
from obsidian_agent.tui.screens.notes import last_code
from obsidian_agent.tui.screens.open_note import LinePicker, NoteRow, OpenNote
from obsidian_agent.tui.widgets import note as note_widgets
from tui.driving import Driver, driving
from tui.snapshots import SIZES, looks

GARDEN = """---
tags: [garden, spring]
related: "[[Soup]]"
---
# Garden

Water the ==beans==, see [[Soup#Salt|the soup]] and [[Nowhere]].
A tag #garden and https://example.org/page.

> [!warning] Frost
> Cover the beans.

- [ ] sow
- [x] dig

| what | when |
|---|---|
| beans | May |

![[Soup#Salt]]

![[photo.png]]
"""
SOUP = "---\naliases: [Broth]\n---\n# Soup\n\nBoil water.\n\n## Salt\n\nA spoon of salt. Needs [[Garden]].\n"
CANVAS = (
    '{"nodes":[{"id":"b","type":"text","text":"Plant **beans**","x":0,"y":50,"width":9,"height":9},'
    '{"id":"a","type":"file","file":"Soup.md","x":0,"y":0,"width":9,"height":9}],"edges":[]}'
)
FILES = {
    "Garden.md": GARDEN,
    "Soup.md": SOUP,
    "Board.canvas": CANVAS,
    "photo.png": "x" * 2048,
    "Other.md": "Nothing about it\n",
}


def note_rows(app: Driver) -> str:
    """Return the text of the reading view."""
    view = app.panes.note.reading
    return "\n".join(
        f"{line.first.plain}{line.body.plain}".rstrip() for line in view._lines if line.body.plain
    )


async def opened(app: Driver, letters: str) -> None:
    await app.press("ctrl+o", *letters, "enter")


async def test_a_note_reads_as_in_obsidian() -> None:
    async with driving(files=FILES) as app:
        await opened(app, "garden")
        text = note_rows(app)
        assert text.startswith("2 properties  tags, related\nGarden\nWater the beans, see the soup")
        for part in (
            "▎ Frost\n▎ Cover the beans.",
            "☐ sow\n☑ dig",
            "what   when\nbeans  May",
            "⧉ Soup > Salt\n▎ Salt\n▎ A spoon of salt. Needs Garden.",
            "▣ photo.png (2 kB)",
        ):
            assert part in text, text
        await app.press("home", "enter")
        assert "tags     garden, spring\n  related  Soup" in note_rows(app)
        await app.press("s")
        assert app.app.focused is app.panes.note.area
        assert "tags: [garden, spring]" in app.screen()


async def test_a_note_looks_as_before_and_can_be_read() -> None:
    async with driving(files=FILES, size=SIZES[0]) as app:
        await opened(app, "garden")
        await app.press("tab")
        await looks(app, "note")


async def test_a_long_note_is_rendered_while_keys_are_handled() -> None:
    long = "".join(f"## Part {number}\n\nWords of **it**.\n\n" for number in range(4_000))
    async with driving(files=FILES | {"Long.md": long}) as app:
        held, release = threading.Event(), threading.Event()

        def waiting(*args: Any) -> Sequence[MarkdownLine]:
            held.set()
            assert release.wait(60)
            return note_lines(*args)

        with patch.object(note_widgets, "note_lines", waiting):
            await app.press("ctrl+o", *"long")
            await app.pilot.press("enter")
            await app.until(held.is_set)
            app.prompt.focus()
            await app.pilot.press(*"abc")
            await app.until(lambda: app.prompt.text == "abc")
            release.set()
            await app.settle()
        note = app.panes.note
        assert note.view is note.reading
        assert "Part 0" in app.screen()
        note.view.focus()
        await app.press("end")
        assert "Part 3999" in app.screen()


async def test_links_open_with_enter_and_the_way_goes_back_and_forward() -> None:
    async with driving(files=FILES) as app:
        await opened(app, "garden")
        await app.press("tab", "enter")
        note = app.panes.note
        assert (note.path, note.cursor().line) == ("Soup.md", 7)  # type: ignore[union-attr]
        assert app.app.focused is note.reading
        await app.press("end", "enter")
        assert note.path == "Garden.md"
        await app.press("backspace")
        assert (note.path, note.reading.line) == ("Soup.md", 9)
        await app.press("backspace")
        assert (note.path, note.reading.line) == ("Garden.md", 6)
        await app.press("alt+right", "alt+right")
        assert note.path == "Garden.md"


async def test_a_missing_note_an_address_and_a_tag() -> None:
    async with driving(files=FILES) as app:
        asked: list[str] = []
        app.app.open_url = lambda url, **options: asked.append(url)  # type: ignore[method-assign]
        await opened(app, "garden")
        await app.press("tab", "tab", "enter")
        assert app.panes.note.path == "Garden.md"
        assert "“Nowhere” does not exist yet" in [str(n.message) for n in app.app._notifications][0]
        await app.press("tab", "tab", "enter")
        await app.on_top(Confirm)
        assert "https://example.org/page" in app.screen()
        assert asked == []
        await app.press("y")
        assert asked == ["https://example.org/page"]
        await app.press("left", "enter")
        await app.on_top(OpenNote)
        assert app.app.screen.query_one("LineEntry").value == "#garden"  # type: ignore[attr-defined]
        assert "Garden" in app.screen()


async def test_a_click_follows_a_link() -> None:
    async with driving(files=FILES) as app:
        await opened(app, "garden")
        rows = app.screen().split("\n")
        y = next(number for number, row in enumerate(rows) if "the soup" in row)
        await app.pilot.click(offset=(rows[y].index("the soup") + 2, y))
        await app.settle()
        assert app.panes.note.path == "Soup.md"


async def test_find_goes_from_match_to_match_and_opens_folds() -> None:
    async with driving(files=FILES) as app:
        await opened(app, "garden")
        await app.press("slash", *"beans")
        note = app.panes.note
        assert note.reading.line == 6
        assert "line 1 of 3 with a match" in app.screen()
        await app.press("enter", "n")
        assert note.reading.line == 10
        await app.press("N", "N")
        assert note.reading.line == 17
        await app.press("escape", "slash", *"related", "enter")
        assert "related  Soup" in note_rows(app)
        await app.press("escape")
        assert app.app.focused is note.reading
        await app.press("escape")
        assert app.app.focused is app.prompt


async def test_outline_and_backlinks_lead_to_their_lines() -> None:
    async with driving(files=FILES) as app:
        await opened(app, "soup")
        await app.press("t")
        await app.on_top(LinePicker)
        await app.press(*"salt", "enter")
        assert app.panes.note.reading.line == 7
        await app.press("b")
        await app.on_top(LinePicker)
        assert "Water the ==beans==, see" in app.screen()
        await looks(app, "backlinks")
        await app.press("down", "enter")
        assert (app.panes.note.path, app.panes.note.reading.line) == ("Garden.md", 2)


async def test_notes_are_found_by_alias_heading_and_text_and_recent_ones_come_first() -> None:
    async with driving(files=FILES) as app:
        await opened(app, "broth")
        assert app.panes.note.path == "Soup.md"
        await app.press("ctrl+o", *"salt")
        rows = list(app.app.screen.query_one("NoteList").rows)  # type: ignore[attr-defined]
        assert rows[:2] == ["Headings", NoteRow("Soup.md", "Salt", "Soup", 8)]
        assert rows[2] == "Text"
        await app.press("enter")
        assert app.panes.note.reading.line == 7
        await app.press("ctrl+o", *"other", "enter", "ctrl+o")
        rows = list(app.app.screen.query_one("NoteList").rows)  # type: ignore[attr-defined]
        assert rows[0] == "Recent"
        assert rows[1].path == "Soup.md"


async def test_a_canvas_is_a_list_of_its_cards_from_the_top() -> None:
    async with driving(files=FILES) as app:
        await opened(app, "board")
        assert note_rows(app) == "2 cards\n▣ Soup.md\n▎ Plant beans"
        await app.press("tab", "enter")
        assert app.panes.note.path == "Soup.md"


async def test_lines_are_selected_in_the_rendered_note() -> None:
    async with driving(files=FILES) as app:
        await opened(app, "soup")
        await app.press("down", "down", "down", "down", "shift+down")
        selection = app.panes.note.selection()
        assert selection is not None
        assert selection.text.startswith("Boil water.\n")
        assert "sel 1 line" in str(app.panes.chat.chip.render())


async def test_hostile_notes_stay_text() -> None:
    text = "[red]x[/] [[a\x1b[2J]] ==[@click=app.quit]b== `\x07`\n\n> [!x[/]] \u202etitle\n\n[z](javascript:1)\n"
    async with driving(files={"Bad.md": text, "A.md": "x\n"}) as app:
        await opened(app, "bad")
        shown = app.screen()
        assert "\x1b" not in shown
        assert "[red]x[/]" in shown
        assert "[@click=app.quit]b" in shown
        assert "\u202e" not in shown
        await app.press("end", "enter")
        assert app.panes.note.path == "Bad.md"


ANSWER = "See [[Soup#Salt]].\n\n```py\nprint(1)\n```\n"


async def test_links_in_an_answer_open_and_its_code_can_be_copied() -> None:
    async with driving({"text": ANSWER}, files=FILES) as app:
        await app.send("What is in the soup?")
        copied: list[str] = []
        app.app.copy_to_clipboard = copied.append  # type: ignore[method-assign, assignment]
        answer = app.main.query("AnswerText").first()
        answer.focus()
        await app.press("k", "c")
        assert copied == ["print(1)\n", ANSWER.strip()] or copied == ["print(1)\n", ANSWER]
        await app.press("enter")
        assert (app.panes.note.path, app.panes.note.reading.line) == ("Soup.md", 7)
        await app.send("/copy code")
        assert copied[-1] == "print(1)\n"


async def test_an_answer_goes_into_the_named_the_open_or_a_chosen_note() -> None:
    async with driving({"text": ANSWER}, files=FILES) as app:
        await app.send("What is in the soup?")
        assert "/insert" in str(app.prompt.placeholder)
        await app.press("f6", "i")
        await app.on_top(OpenNote)
        await app.press("escape", "f6")
        assert app.app.focused is app.prompt
        await app.send("/insert Other")
        await app.until(lambda: "Insert the answer into Other" in app.plan_head())
        await app.send("/insert")
        await app.on_top(OpenNote)
        await app.press(*"garden", "enter")
        await app.until(lambda: "Insert the answer into Garden" in app.plan_head())
        await opened(app, "soup")
        await app.send("/insert")
        await app.until(lambda: "Insert the answer into Soup" in app.plan_head())


def test_the_last_block_of_code() -> None:
    assert last_code("a\n\n```\none\n```\n\n~~~py\ntwo\n~~~\n") == "two\n"
    assert last_code("none") == ""
