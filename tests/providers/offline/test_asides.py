"""Asides are told from the instruction, and what they want kept from what they only remark."""

from __future__ import annotations

import pytest

from obsidian_agent.providers.offline.asides import Apart, Kept, apart, kept


@pytest.mark.parametrize(
    ("message", "core", "asides"),
    [
        ("Rename the tag a to b. Don't touch code or any other tags.", "Rename the tag a to b.", ("Don't touch code or any other tags.",)),
        ("Take the tag x off every note but keep their other tags", "Take the tag x off every note", ("keep their other tags",)),
        ("Copy A to B. The original stays. Leave C as it is.", "Copy A to B.", ("The original stays.", "Leave C as it is.")),
        ("Replace 'a but leave b' by 'c'. Values stay.", "Replace 'a but leave b' by 'c'.", ("Values stay.",)),
    ],
)
def test_an_instruction_and_what_stands_beside_it(message: str, core: str, asides: tuple[str, ...]) -> None:
    assert apart(message) == Apart(core, asides)


@pytest.mark.parametrize("message", ["Move a to B", "Move a to B and leave a link to it", "Which notes are there? The old ones."])
def test_nothing_stands_beside_these(message: str) -> None:
    assert apart(message) is None


@pytest.mark.parametrize(
    ("aside", "wanted"),
    [
        ("Don't touch code or any other tags.", ()),
        ("Don't break any links, the canvas uses it too.", ()),
        ("Values stay.", ()),
        ("My meeting notes can stay as they are.", (Kept("My meeting notes"),)),
        ("Leave 'Tomaten Balkon' itself as it is.", (Kept("'Tomaten Balkon'"),)),
        ("The other recipes keep their butter!", (Kept("recipes", others=True),)),
        ("The soups stay here.", (Kept("The soups"),)),
        ("code samples stay as they are", ()),
        ("Keep the rest of their notes as it is.", ()),
        ("The tags they already have stay.", ()),
        ("Links that point to that heading should go on working.", ()),
        ("Links to them have to survive, and this year's minutes stay put.", (Kept("this year's minutes"),)),
        ("I'll keep the original too.", ()),
        ("October was really the gym, so don't touch that.", None),
        ("It was a long day.", None),
        ("The canvas uses it too.", ()),
        ("The aliases too.", None),
        ("No.", None),
        ("Also the tags.", None),
    ],
)
def test_what_an_aside_wants_kept(aside: str, wanted: tuple[Kept, ...] | None) -> None:
    assert kept(aside) == wanted
