"""Clauses that ask for what every plan keeps are blanked out; others stay."""

from __future__ import annotations

import pytest

from obsidian_agent.providers.offline.riders import without_riders


@pytest.mark.parametrize(
    "said",
    [
        "and make sure nothing that links to it breaks, lists included",
        ". Links, embeds and the canvas have to keep working.",
        "? The week plan and the others that point to it must still work afterwards.",
        ", but without breaking embeds or the canvas",
        "- all links must follow, of course",
        "so that every link keeps working",
        "and check that no links get lost",
        ". Nothing should be tagged twice.",
        "; nothing else should change",
        ". Please see to it that references to it stay intact.",
    ],
)
def test_promises_go(said: str) -> None:
    message = f"Rename A to B{said}" if said[0] in ".?;,-" else f"Rename A to B {said}"
    text = without_riders(message)
    assert text.rstrip(" .,!;?") == "Rename A to B"
    assert len(text) == len(message)


@pytest.mark.parametrize(
    "said",
    [
        ". The links in Archive should be removed.",
        " and change the links to point to C",
        ", except the ones that link to C",
        ". Links to C should become plain text.",
        " and delete every link that breaks",
    ],
)
def test_other_wishes_stay(said: str) -> None:
    assert without_riders(f"Rename A to B{said}") == f"Rename A to B{said}"


@pytest.mark.parametrize(
    ("message", "rest"),
    [
        ("Move a to B, except c, those stay where they are.", "Move a to B, except c"),
        ("Move the tasks of A to B. They should be gone from A.", "Move the tasks of A to B"),
        ("Rename #a to #b, everywhere it is used", "Rename #a to #b, everywhere"),
        ("Rename #a to #b but only in C", "Rename #a to #b in C"),
        (
            "Move the section A into a note B and leave a link to the new note in its place",
            "Move the section A into a note B and leave a link",
        ),
    ],
)
def test_what_is_said_once_more_goes(message: str, rest: str) -> None:
    assert " ".join(without_riders(message).split()).rstrip(" .") == rest
