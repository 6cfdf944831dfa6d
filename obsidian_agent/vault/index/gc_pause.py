"""Pause of the cyclic garbage collector while many objects are created."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

MANY_OBJECTS: Final = 50_000
"""Objects that a pass visits in some 20 ms."""


@contextmanager
def gc_paused() -> Iterator[None]:
    """Disable the garbage collector in a block that creates very many objects.

    Every collection would visit all of them, which takes a third of the time. Where many are still
    alive, the first one afterwards does not visit them either: it would hold Python's lock for up
    to a second, while keys wait. A full pass does.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            if gc.get_count()[0] > MANY_OBJECTS:
                # All objects move to the oldest generation, without a look at them.
                gc.freeze()
                gc.unfreeze()
            gc.enable()
