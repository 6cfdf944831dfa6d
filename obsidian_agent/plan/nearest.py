"""The known name that somebody probably meant."""

from __future__ import annotations

from collections.abc import Iterable

LEAST_LIKENESS = 60
"""Of 100: with less, “did you mean” would be a guess."""


def nearest(name: str, known: Iterable[str], *, parts: bool = False) -> str | None:
    """The known name most like `name`, or None when none is near. With `parts`, a part of a name counts for much."""
    # Imported here: only wrong names need it, and it is a tenth of the time that a headless run takes to start.
    from rapidfuzz import fuzz, process

    found = process.extractOne(
        name, list(known), scorer=fuzz.WRatio if parts else fuzz.ratio, score_cutoff=LEAST_LIKENESS, processor=str.lower
    )
    return found[0] if found else None


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A sentence that offers the nearest known name, or ""."""
    found = nearest(name, known)
    return f" Did you mean '{found}'?" if found else ""
