"""The indexing of a note of one repeated mark, against prose of the same size, and its growth."""

from __future__ import annotations

import time

from bench.table import Row
from obsidian_agent.vault.markdown.note import names_in

OPENERS = (
    *(
        "[",
        "[[",
        "[[a",
        "[a](",
        "![[",
        "[^",
        "<!--",
        "a <!--\n",
        "<a ",
        "`",
        "a `b\n",
        "```\n",
        "~~~\n",
        "$",
        "$a ",
        "$$",
        "%%",
        "==",
    ),
    *("***", "> ", "- ", "- a\n", "#", "#a/", "# a\n", "^a ", "\t", "|", "\n"),
)
PROSE = (
    "The quick brown fox jumps over the lazy dog, and then some [[Note]] with a #tag in it.\n"
    "Another line of prose.\n\n"
)
CLOSERS = "\n\nx$ ` --> %% ]] ](b)\n```\n~~~\n"
SIZES = 10_000, 100_000, 1_000_000


def measure(rounds: int) -> list[Row]:
    """Return a row per mark: the largest note against prose, and two growths by ten times."""
    prose = _seconds(PROSE, SIZES[-1], rounds)
    rows = []
    for opener in OPENERS:
        small, middle, large = (_seconds(opener, size, rounds) for size in SIZES)
        what = f"1 MB of {opener!r}".replace("|", "\\|")
        figure = f"growth {middle / small:.0f}x, {large / middle:.0f}x"
        rows.append(
            Row(
                what,
                figure,
                f"{large * 1000:.0f} ms",
                "prose",
                f"{prose * 1000:.0f} ms",
                large / prose,
                "<= 5, growth about 10x",
            )
        )
    return rows


def _seconds(unit: str, size: int, rounds: int) -> float:
    """Processor time of the least of some rounds."""
    data = (unit * (size // len(unit)) + CLOSERS).encode()
    times = []
    for _ in range(rounds):
        started = time.process_time()
        names_in(data)
        times.append(time.process_time() - started)
    return min(times)
