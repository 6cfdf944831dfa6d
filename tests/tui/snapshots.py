"""Pictures of screens as readable text: characters, and each cell's style by names of the theme.

Ours, not pytest-textual-snapshot: its SVG of one screen in one theme has 60 to 150 kB, names
colors by class numbers that all change when one cell does, and cannot be read in a diff. Here a
file holds one screen at all sizes: the text, which is the same in all modes, and below each row the
runs of its styles. A style is a letter; the legend says what it is in each mode: "error on surface"
in the themes, "red" in the colors of the terminal, "bold" without colors.
"""

from __future__ import annotations

import os
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from difflib import unified_diff
from functools import lru_cache
from itertools import chain, groupby, product, takewhile
from pathlib import Path
from string import ascii_letters
from typing import Any, NamedTuple
from unittest.mock import patch

from rich.color import Color as RichColor
from rich.color import ColorType
from rich.style import Style
from textual._color_constants import ANSI_COLORS
from textual._compositor import LayoutUpdate
from textual.color import Color
from textual.css.styles import Styles
from textual.geometry import Size
from textual.screen import Screen
from textual.strip import Strip
from textual.widgets import Input, TextArea

from obsidian_agent.tui.screens.main import WARM_UP_SECONDS
from obsidian_agent.tui.themes import ANSI, DARK, HIGH_CONTRAST, LIGHT, terminal_style
from tui.driving import Driver

FOLDER = Path(__file__).parent / "snapshots"
UPDATE = "UPDATE_SNAPSHOTS" in os.environ
"""Set it to rewrite the files; then read what has changed."""

SIZES = ((80, 24), (120, 40), (200, 50), (60, 20))
THEMES = (DARK, LIGHT, ANSI)
"""The themes of pictures. That of high contrast is judged, at the first size."""
NO_COLOR = "NO_COLOR"
"""The last mode of a picture, whose styles are those of `ANSI` without its colors."""
MODES = (*THEMES, NO_COLOR)

LOOKS = 3
TRIES = 12
BETWEEN_TRIES = 0.3
"""Seconds."""

READABLE = 4.5
"""Contrast that text needs (WCAG 2.2, AA)."""
ENHANCED = 7.0
"""Contrast that text needs in the theme of high contrast (WCAG 2.2, AAA)."""
RECOGNIZABLE = 3.0
"""Contrast that a sign needs beside a word that says the same, and a key without effect."""

_CLOCK = re.compile(r"(?<!\d)\d\d:\d\d(?!\d)")
_DRAWN = re.compile(r"[\s\u2500-\u259f·•⠀-⣿]")
"""Lines, blocks and dots: what is drawn, not read."""
_SIGNS = ("✓", "✗", "▲", "↷", "⟳")
_BARS = str.maketrans("━╺╸", "   ")
_FLAGS = ("bold", "dim", "italic", "underline", "strike", "reverse")
_names: dict[str, dict[str, set[str]]] = {}
"""The names of the colors of each theme."""

Show = Callable[[Driver], Awaitable[object]]
"""Opens a screen."""
Cell = tuple[str, Style]
Look = tuple[Style, ...]
"""The styles of a cell in all modes."""


class Shot(NamedTuple):
    """The screen at one size: its cells in the dark theme, and their styles in all modes."""

    size: Size
    rows: list[list[Cell]]
    looks: list[list[Look]]


def cells(app: Driver) -> list[list[Cell]]:
    """Draw the screen, and return its cells row by row."""
    textual = app.app
    with textual.screen._context():
        update = textual.screen._compositor.render_update(
            full=True, screen_stack=textual._background_screens
        )
    assert isinstance(update, LayoutUpdate)
    return [
        [(char, segment.style or Style()) for segment in Strip.join(row) for char in segment.text]
        for row in update.strips
    ]


def wear(app: Driver, theme: str) -> None:
    """Give all screens a theme at once.

    Textual would mark all widgets below one again for each of its colors, and forgets its palette.
    """
    textual = app.app
    needs_layout = False

    def refresh(styles: Styles, *, layout: bool = False, **which: bool) -> None:
        nonlocal needs_layout
        needs_layout = needs_layout or layout

    with patch.object(textual, "refresh_css", lambda animate: None):
        textual.theme = theme
    with textual.screen._context(), patch.object(Styles, "refresh", refresh):
        textual.stylesheet.set_variables(textual.get_css_variables())
        textual.stylesheet.reparse()
        textual.stylesheet.update_nodes([textual])
        for screen in textual.screen_stack:
            textual.stylesheet.update(screen)
            for widget in screen.walk_children(with_self=True):
                widget.refresh(layout=needs_layout)
    if needs_layout:
        for screen in textual.screen_stack:
            with screen._context():
                screen._refresh_layout()
    if theme not in _names:
        names = _names[theme] = {}
        for name, value in textual.theme_variables.items():
            if value.startswith("#") and len(value) == 7:
                names.setdefault(value.lower(), set()).add(name)


async def looks(app: Driver, *names: str, **dialogs: Show) -> None:
    """Compare the screen on top with its picture, as it follows the terminal through all sizes.

    `dialogs` are opened over it at each size, by their names with _ for -. `UPDATE_SNAPSHOTS` writes
    the pictures. A screen that is drawn in several steps is read again; a wrong one fails after
    some seconds.
    """
    problems: list[str] = []
    if UPDATE:
        await app.pilot.pause(2 * WARM_UP_SECONDS)
    with patch.object(Screen, "_compositor_refresh", _draw_later):
        for _ in range(1 if UPDATE else LOOKS):
            problems = []
            shots: dict[str, list[Shot]] = {}
            for size in SIZES:
                if app.app.size != size:
                    await app.resize(*size)
                for name in names:
                    shots.setdefault(name, []).append(await _shot(app, name, problems))
                for dialog, show in dialogs.items():
                    name = dialog.replace("_", "-")
                    await show(app)
                    shots.setdefault(name, []).append(await _shot(app, name, problems))
                    await _close(app)
            wear(app, DARK)
            for name, taken in shots.items():
                problems += _differences(name, _written(taken))
            if not problems:
                return
    raise AssertionError("\n".join(problems))


def _draw_later(screen: Screen[Any]) -> None:
    """Leave the drawing to `cells`."""
    screen._dirty_widgets.clear()
    screen._compositor._dirty_regions.clear()


async def _close(app: Driver) -> None:
    """Close all dialogs, and forget what was typed."""
    while len(app.app.screen_stack) > 1:
        app.app.screen.dismiss(None)
        await app.settle()
    app.prompt.text = ""
    await app.settle()


def _picture(name: str) -> Path:
    return FOLDER / f"{name}.txt"


def _differences(name: str, now: str) -> Iterator[str]:
    """Yield the lines in which a screen differs from its picture, or write the picture."""
    file = _picture(name)
    if UPDATE:
        file.write_text(now, encoding="utf-8")
        return
    before = file.read_text(encoding="utf-8")
    if now != before:
        yield from unified_diff(
            before.splitlines(), now.splitlines(), file.name, "the screen", lineterm="", n=1
        )


async def _shot(app: Driver, name: str, problems: list[str]) -> Shot:
    """Draw the screen in all modes, once its text is the expected one, and judge its colors."""
    size = app.app.size
    expected = None
    if not UPDATE:
        expected = _without_bars(_texts_of(_picture(name).read_text(encoding="utf-8"), size))
    for _ in range(TRIES):
        app.app.clear_notifications()
        for screen in app.app.screen_stack:
            for field in screen.query("Input, TextArea").results():
                assert isinstance(field, Input | TextArea)
                field.cursor_blink = False
                field.notify_style_update()  # lines drawn while the cursor was not are forgotten
                field.refresh()
        await app.settle()
        await _finish_below(app)
        drawn = {app.app.theme: cells(app)}
        texts = _without_bars(_texts(drawn[app.app.theme]))
        if texts == expected:
            break
        if UPDATE:
            expected = texts
        await app.pilot.pause(BETWEEN_TRIES)
    themes = [DARK, LIGHT, *([HIGH_CONTRAST] if size == SIZES[0] else []), ANSI]
    # A change of themes takes longest, so the first one is that of the shot before.
    for theme in themes if app.app.theme == DARK else reversed(themes):
        if theme not in drawn:
            wear(app, theme)
            drawn[theme] = cells(app)
    drawn[NO_COLOR] = [
        [(char, terminal_style(style, color=False)) for char, style in row] for row in drawn[ANSI]
    ]
    where = f"{name} {size.width}x{size.height}"
    same = _without_bars(_texts(drawn[DARK]))
    problems += (
        f"{where}: another text in {mode}"
        for mode, rows in drawn.items()
        if _without_bars(_texts(rows)) != same
    )
    problems += (f"{where} {problem}" for problem in _unreadable(app, drawn))
    looks = [
        [tuple(style for _, style in cell) for cell in zip(*rows, strict=True)]
        for rows in zip(*(drawn[mode] for mode in MODES), strict=True)
    ]
    return Shot(size, drawn[DARK], looks)


async def _finish_below(app: Driver) -> None:
    """Lay out and draw the screens below a dialog, which Textual leaves as they were."""
    for screen in app.app.screen_stack[:-1]:
        screen._layout_required = True
        while screen._layout_required:
            screen._layout_required = False
            with screen._context():
                screen._refresh_layout()
            await app.settle()
    app.app.screen.refresh()


def _without_bars(texts: list[str]) -> list[str]:
    """Return the rows without progress bars, whose rest the colors of a terminal leave out."""
    return [text.translate(_BARS).rstrip() for text in texts]


def _texts(rows: list[list[Cell]]) -> list[str]:
    return [_CLOCK.sub("09:30", "".join(char for char, _ in row)).rstrip() for row in rows]


def _texts_of(picture: str, size: Size) -> list[str]:
    """Return the rows of a written picture at one size."""
    _, _, part = picture.partition(f"{size.width}x{size.height}\n")
    rows = takewhile(lambda line: line[:1] in ("|", "~"), part.splitlines())
    return [line[1:] for line in rows if line.startswith("|")]


def _written(shots: Sequence[Shot]) -> str:
    """Return the file of a screen: rows, the runs of their styles, and the legend."""
    letters = chain(ascii_letters, map("".join, product(ascii_letters, repeat=2)))
    legend: dict[str, str] = {}
    lines: list[str] = []
    for shot in shots:
        lines.append(f"{shot.size.width}x{shot.size.height}")
        for text, row, looks in zip(_texts(shot.rows), shot.rows, shot.looks, strict=True):
            runs = []
            for entry, run in groupby(_entries(row, looks)):
                if entry not in legend:
                    legend[entry] = next(letters)
                runs.append(f"{legend[entry]}{len(list(run))}")
            lines += [f"|{text}", f"~{' '.join(runs)}"]
        lines.append("")
    return "\n".join([*lines, *(f"{letter} = {entry}" for entry, letter in legend.items()), ""])


def _entries(row: list[Cell], looks: list[Look]) -> Iterator[str]:
    """Yield the entry of each cell; a blank of which only the ground is seen joins its neighbor."""
    last: Look | None = None
    for (char, _), look in zip(row, looks, strict=True):
        if char.isspace() and (blank := _blank(look)):
            if last is None or _blank(last) != blank:
                last = blank
        else:
            last = look
        yield _entry(last)


@lru_cache(4096)
def _blank(look: Look) -> Look:
    """Return the styles without what a blank does not show; none if it shows more than a ground."""
    if any(style.underline or style.strike or style.reverse for style in look):
        return ()
    return tuple(Style(bgcolor=style.bgcolor) for style in look)


@lru_cache(4096)
def _entry(look: Look) -> str:
    """Return the line of the legend for the styles of a cell.

    First by the names of the colors of all themes, or by those of each theme if they have no name
    in common; then in the colors of the terminal, then with NO_COLOR.
    """
    *themed, ansi, bare = look
    styles = list(zip(themed, (DARK, LIGHT), strict=True))
    inks = _named([(style.color, theme) for style, theme in styles])
    grounds = _named([(style.bgcolor, theme) for style, theme in styles])
    return " | ".join(
        [
            _said(inks, grounds, themed[0]),
            _said(_of_terminal(ansi.color), _of_terminal(ansi.bgcolor), ansi),
            _said(_of_terminal(bare.color), _of_terminal(bare.bgcolor), bare),
        ]
    )


def _said(ink: str, ground: str, style: Style) -> str:
    flags = [flag for flag in _FLAGS if getattr(style, flag)]
    return " ".join(filter(None, [ink, ground and f"on {ground}", *flags])) or "plain"


def _of_terminal(color: RichColor | None) -> str:
    """Return the name of a color of the terminal, "" for its default."""
    if color is None or color.is_default:
        return ""
    return ANSI_COLORS[color.number] if color.number is not None else color.name


def _named(colors: list[tuple[RichColor | None, str]]) -> str:
    """Return the shortest name that the colors have in their themes, or "" if the ink is unseen."""
    if any(color is None or color.triplet is None for color, _ in colors):
        return ""
    named = [
        _names_of(color.triplet.hex, theme) for color, theme in colors if color and color.triplet
    ]
    common = set[str].intersection(*named)
    if common:
        return min(common, key=lambda name: (len(name), name))
    return "/".join(min(names, key=lambda name: (len(name), name)) for names in named)


@lru_cache(4096)
def _names_of(color: str, theme: str) -> set[str]:
    """Return the names of a color; one that was mixed may differ from that of the theme by one."""
    value = Color.parse(color).rgb
    names = {
        name
        for known, names in _names[theme].items()
        if all(
            abs(one - other) <= 1 for one, other in zip(value, Color.parse(known).rgb, strict=True)
        )
        for name in names
    }
    return names or {color}


def _unreadable(app: Driver, drawn: Mapping[str, list[list[Cell]]]) -> Iterator[str]:
    """Return the words on the topmost screen that lack contrast, without those that it dims."""
    screen = app.app.screen
    boxes = screen.query("#box, CommandPalette > Vertical")
    top = (boxes.first() if boxes else screen).region
    disabled = [key.region for key in screen.query("FooterKey.-disabled")]
    for mode, rows in drawn.items():
        for y, row in enumerate(rows[top.y : top.bottom], top.y):
            inside = [
                (style, any(key.contains(x, y) for key in disabled), char)
                for x, (char, style) in enumerate(row[top.x : top.right], top.x)
            ]
            for (style, is_disabled), run in groupby(inside, key=lambda cell: cell[:2]):
                text = _DRAWN.sub("", "".join(char for *_, char in run))
                is_sign = is_disabled or text in _SIGNS
                if text and (problem := _problem(mode, style, is_sign=is_sign)):
                    yield f"row {y}, {mode}: {text!r} {problem}"


@lru_cache(4096)
def _problem(mode: str, style: Style, *, is_sign: bool) -> str:
    """Return the reason why a style of a mode cannot be read, or ""."""
    ink, ground = style.color or RichColor.default(), style.bgcolor or RichColor.default()
    if mode in (ANSI, NO_COLOR):
        known = ColorType.DEFAULT if mode == NO_COLOR else ColorType.STANDARD
        if ink.type <= known and ground.is_default:
            return ""
        return f"depends on more than the terminal shows ({style})"
    if ink.triplet is None or ground.triplet is None:
        return f"depends on the terminal ({style})"
    needed = ENHANCED if mode == HIGH_CONTRAST else READABLE
    found = contrast(ink.triplet.hex, ground.triplet.hex)
    if found >= (RECOGNIZABLE if is_sign else needed):
        return ""
    return f"has a contrast of {found:.1f} ({style})"


def contrast(first: str, second: str) -> float:
    """Return the contrast of two colours, from 1 to 21 (WCAG 2.2)."""
    bright, dull = sorted((_luminance(first), _luminance(second)), reverse=True)
    return (bright + 0.05) / (dull + 0.05)


@lru_cache(4096)
def _luminance(color: str) -> float:
    """Relative luminance as WCAG defines it."""
    linear = [
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4
        for part in Color.parse(color).normalized
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
