"""Pictures of screens as readable text: characters, and each cell's style by names of the theme.

Ours, not pytest-textual-snapshot: its SVG of one screen in one theme has 60 to 150 kB, names
colours by class numbers that all change when one cell does, and cannot be read in a diff. Here both
themes share one text, and "error on surface" is a style.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from difflib import unified_diff
from itertools import groupby
from pathlib import Path

from rich.color import ColorType
from rich.style import Style
from textual.color import Color

from obsidian_agent.tui.themes import DARK, LIGHT
from tui.driving import Driver

FOLDER = Path(__file__).parent / "snapshots"
UPDATE = "UPDATE_SNAPSHOTS" in os.environ
"""Set it to rewrite the files; then read what has changed."""

SIZES = ((80, 24), (120, 40))
"""The sizes of pictures with the colours of the dark and the light theme."""
MORE_SIZES = ((60, 20), (200, 50))
"""The sizes of pictures in the dark theme alone, which are about layout."""

TRIES = 12
BETWEEN_TRIES = 0.3
"""Seconds."""

READABLE = 4.5
"""Contrast that text needs (WCAG 2.2, AA)."""
RECOGNIZABLE = 3.0
"""Contrast that a sign needs beside a word that says the same."""

_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
_CLOCK = re.compile(r"(?<!\d)\d\d:\d\d(?!\d)")
_DRAWN = re.compile(r"[\s\u2500-\u259f·•⠀-⣿]")
"""Lines, blocks and dots: what is drawn, not read."""
_SIGNS = ("✓", "✗", "▲", "↷", "⟳")

Cell = tuple[str, Style]


def cells(app: Driver) -> list[list[Cell]]:
    """Return the cells of the screen, row by row."""
    rows = app.app.screen._compositor.render_strips()
    return [
        [(char, segment.style or Style()) for segment in row for char in segment.text]
        for row in rows
    ]


async def picture(app: Driver, themes: Sequence[str]) -> str:
    """Return the screen in some themes: rows, the runs of their styles, and the legend.

    Unreadable text fails at once.
    """
    for screen in app.app.screen_stack:
        for field in screen.query("Input, TextArea").results():
            field.cursor_blink = False  # type: ignore[attr-defined]
    seen: dict[str, list[list[Cell]]] = {}
    names: dict[str, dict[str, str]] = {}
    for theme in themes:
        app.app.theme = theme
        await app.settle()
        for (
            screen
        ) in app.app.screen_stack:  # what a dialog dims is as it was when the dialog was drawn last
            screen.refresh()
            await app.settle()
        seen[theme] = cells(app)
        names[theme] = _names(app)
        hidden = list(unreadable(app))
        assert not hidden, f"{theme}: {hidden}"
    first, last = seen[themes[0]], seen[themes[-1]]
    texts = _texts(last)
    assert texts == _texts(first), "the themes differ in more than colours"
    said = {
        (d, other): _pair(_said(d, names[themes[-1]]), _said(other, names[themes[0]]))
        for d, other in {
            (d, other)
            for dark, light in zip(last, first, strict=True)
            for (_, d), (_, other) in zip(dark, light, strict=True)
        }
    }
    legend: dict[str, str] = {}
    lines: list[str] = []
    for text, dark, light in zip(texts, last, first, strict=True):
        styles = [said[d, other] for (_, d), (_, other) in zip(dark, light, strict=True)]
        runs = [
            (legend.setdefault(style, _LETTERS[len(legend)]), len(list(run)))
            for style, run in groupby(styles)
        ]
        lines += [f"|{text}", f"~{' '.join(f'{letter}{count}' for letter, count in runs)}"]
    return "\n".join([*lines, *(f"{letter} = {style}" for style, letter in legend.items()), ""])


def _texts(rows: list[list[Cell]]) -> list[str]:
    return [_CLOCK.sub("09:30", "".join(char for char, _ in row)).rstrip() for row in rows]


def unreadable(app: Driver) -> Iterator[str]:
    """Return the words on the topmost screen that have no contrast, without dimmed parts."""
    screen = app.app.screen
    top = screen.region if len(app.app.screen_stack) == 1 else screen.children[0].region
    without_effect = [key.region for key in screen.query("FooterKey.-disabled")]
    for y, row in enumerate(cells(app)):
        inside = [
            cell
            for x, cell in enumerate(row)
            if top.contains(x, y) and not any(key.contains(x, y) for key in without_effect)
        ]
        for style, run in groupby(inside, key=lambda cell: cell[1]):
            text = _DRAWN.sub("", "".join(char for char, _ in run))
            if _is_of_terminal(style):
                continue
            fore, ground = _hex(style, back=False), _hex(style, back=True)
            needed = RECOGNIZABLE if text in _SIGNS else READABLE
            if text and contrast(fore, ground) < needed:
                yield f"{text!r} in row {y}: {contrast(fore, ground):.1f} ({fore} on {ground})"


async def looks(name: str, app: Driver, themes: Sequence[str] = (LIGHT, DARK)) -> None:
    """Compare the screen on top with its picture at this size; `UPDATE_SNAPSHOTS` writes it.

    With two themes, one picture has the colours of both.

    A screen that is drawn in several steps is read again, its text first, which costs less than
    both themes; a wrong one fails after some seconds.
    """
    width, height = app.app.size
    file = FOLDER / f"{name}-{width}x{height}.txt"
    if UPDATE:
        file.write_text(await _stable_picture(app, themes), encoding="utf-8")
        return
    before = file.read_text(encoding="utf-8").splitlines()
    expected = [line[1:] for line in before if line.startswith("|")]
    for _ in range(TRIES):
        await app.settle()
        if _texts(cells(app)) == expected:
            break
        await app.pilot.pause(BETWEEN_TRIES)
    for left in reversed(range(TRIES)):
        try:
            now = (await _settled_picture(app, themes)).splitlines()
            assert now == before, "\n".join(
                unified_diff(before, now, file.name, "the screen", lineterm="", n=1)
            )
            return
        except AssertionError:
            if not left:
                raise
            await app.pilot.pause(BETWEEN_TRIES)


async def looks_at_sizes(name: str, app: Driver) -> None:
    """Compare the screen on top with its pictures, as it follows the terminal through all sizes."""
    for size in (*SIZES, *MORE_SIZES):
        await app.resize(*size)
        await looks(name, app, (LIGHT, DARK) if size in SIZES else (DARK,))


async def _settled_picture(app: Driver, themes: Sequence[str]) -> str:
    await app.settle()
    app.app.clear_notifications()
    return await picture(app, themes)


async def _stable_picture(app: Driver, themes: Sequence[str]) -> str:
    """Return the first picture that is the same when it is taken a second time."""
    last = ""
    for left in reversed(range(TRIES)):
        try:
            current = await _settled_picture(app, themes)
        except AssertionError:
            if not left:
                raise
            current = ""
        if current and current == last:
            return current
        last = current
        await app.pilot.pause(BETWEEN_TRIES)
    raise AssertionError("the screen keeps changing")


def _names(app: Driver) -> dict[str, str]:
    """Colours to the shortest of their names in the theme."""
    found: dict[str, str] = {}
    for name, value in sorted(
        app.app.theme_variables.items(), key=lambda each: (len(each[0]), each[0])
    ):
        if value.startswith("#") and len(value) == 7:
            found.setdefault(value.lower(), name)
    return found


def _is_of_terminal(style: Style) -> bool:
    """Return True if the terminal decides about one of the colours."""
    return any(
        color is not None and color.type is not ColorType.TRUECOLOR
        for color in (style.color, style.bgcolor)
    )


def _hex(style: Style, *, back: bool) -> str:
    """Return a colour as hex, or its name if the terminal decides about it."""
    fore, ground = (style.bgcolor, style.color) if style.reverse else (style.color, style.bgcolor)
    color = ground if back else fore
    if color is None:
        return ""
    return color.name if color.triplet is None else color.triplet.hex.lower()


def _named(color: str, names: dict[str, str]) -> str:
    """Colours that were mixed differ from those of the theme by a rounding."""
    if color in names or not color.startswith("#"):
        return names.get(color, "")
    for known, name in names.items():
        if all(
            abs(int(color[at : at + 2], 16) - int(known[at : at + 2], 16)) <= 1 for at in (1, 3, 5)
        ):
            return name
    return color


def _said(style: Style, names: dict[str, str]) -> str:
    fore, ground = (_named(_hex(style, back=back), names) for back in (False, True))
    flags = [
        flag for flag in ("bold", "dim", "italic", "underline", "strike") if getattr(style, flag)
    ]
    return " ".join([fore, "on", ground, *flags])


def _pair(dark: str, light: str) -> str:
    return dark if dark == light else f"{dark} / {light}"


def contrast(first: str, second: str) -> float:
    """Return the contrast of two colours, from 1 to 21 (WCAG 2.2)."""
    bright, dull = sorted((_luminance(first), _luminance(second)), reverse=True)
    return (bright + 0.05) / (dull + 0.05)


def _luminance(color: str) -> float:
    """Relative luminance as WCAG defines it."""
    linear = [
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4
        for part in Color.parse(color).normalized
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
