"""What an answer rests on."""

from __future__ import annotations

from obsidian_agent.agent.privacy.consent import Level, Part
from obsidian_agent.agent.turn.loop import Credit, Shown


def shown() -> Shown:
    found = Shown()
    found.add([Part("Garden.md", Level.TEXT, 10), Part("", Level.PREVIEW, 5), Part("Open.md", Level.NAME, 7)], wanted=("Garden.md",))
    found.add([Part("Along.md", Level.TEXT, 10)], wanted=())
    found.add([Part("Projects/Log.md", Level.TEXT, 10), Part("A.md", Level.PREVIEW, 3)])
    return found


def test_what_the_answer_names_is_its_source() -> None:
    assert shown().credit("See [[Projects/Log]] for it.") == Credit(("Projects/Log.md",), ("Garden.md", "Along.md", "A.md"))
    assert shown().credit("GARDEN says so, and along too.").sources == ("Garden.md", "Along.md")


def test_a_name_inside_of_a_word_is_none() -> None:
    assert shown().credit("A gardener logs everything along-side.").sources == ("Along.md", "A.md")
    assert "Garden.md" not in shown().credit("Gardening is a pastime, see Log.").sources


def test_where_none_is_named_those_count_that_somebody_wanted() -> None:
    assert shown().credit("Water them.") == Credit(("Garden.md", "Projects/Log.md"), ("Along.md", "A.md"))


def test_a_name_alone_is_neither_source_nor_sent() -> None:
    credit = shown().credit("Open is open.")
    assert "Open.md" not in credit.sources + credit.besides
    assert Shown().credit("Nothing was read.") == Credit()
