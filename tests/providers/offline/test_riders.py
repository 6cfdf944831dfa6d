from __future__ import annotations

import pytest

from obsidian_agent.providers.offline.riders import without_riders


@pytest.mark.parametrize(
    "rider",
    [
        "and keep every link to it working, also the ones in properties.",
        "Nothing may break.",
        "Leave everything else in them alone.",
        "Code and other tags must stay as they are.",
        "The links on the dashboard must keep working.",
        "without breaking any links",
        "and update the links",
        "make sure that all links still work",
        "Don't touch anything else!",
        "I don't need it any more.",
        "if it doesn't exist yet",
        "thanks a lot",
        "Everything else must stay unchanged.",
    ],
)
def test_what_every_plan_gives_is_taken_out(rider):
    text = without_riders(f"Rename A to B {rider}")
    assert text.rstrip(" .,!") == "Rename A to B"
    assert len(text) == len(f"Rename A to B {rider}")


@pytest.mark.parametrize(
    "limit",
    [
        "except the drafts",
        "but not the links",
        "and delete everything else",
        "only if it exists",
        "and change the links to point to C",
        "Board games stay where they are.",
        "and keep a copy",
    ],
)
def test_what_limits_a_plan_stays(limit):
    assert without_riders(f"Rename A to B {limit}") == f"Rename A to B {limit}"
