"""Names in messages, and completing them."""

from __future__ import annotations

import pytest

from agents import NOTES
from obsidian_agent.agent.context import Mentionable, being_typed, mentions_in, written
from obsidian_agent.vault.views.disk import DiskView
from support import MakeVault


@pytest.mark.parametrize(
    ("message", "named"),
    [
        ("What about @Garden?", ["Garden"]),
        ("@[[Projects/Plan|the plan]] and @[[Log#Heading]].", ["Projects/Plan", "Log"]),
        ('@"Big plan" @Projects/ @#work/later, (@Log)', ["Big plan", "Projects/", "#work/later", "Log"]),
        ("Write to ada@example.org or @@nobody", []),
        ("@Garden @Garden", ["Garden"]),
        ("@", []),
        ("Größe: @日本/Größe 📏", ["日本/Größe"]),
    ],
)
def test_what_a_message_mentions(message: str, named: list[str]) -> None:
    assert [mention.text for mention in mentions_in(message)] == named


def test_what_a_mention_names() -> None:
    assert [mention.kind for mention in mentions_in("@a/ @#b @c")] == ["folder", "tag", "note"]


@pytest.mark.parametrize(
    ("before", "typed"),
    [("Ask @Ga", "Ga"), ("@", ""), ("@[[Pro", "Pro"), ('@"Big pl', "Big pl"), ("mail a@b", None), ("@Garden is", None), ("@#wo", "#wo")],
)
def test_what_is_being_typed(before: str, typed: str | None) -> None:
    assert being_typed(before) == typed


@pytest.mark.parametrize("name", ["Garden", "Projects/Plan", "Big plan", "Ends.", "日本/Größe"])
def test_what_is_written_is_what_is_read(name: str) -> None:
    assert [mention.text for mention in mentions_in(f"x {written(name)} y")] == [name]


def test_completion_finds_notes_folders_and_tags(make_vault: MakeVault) -> None:
    store = make_vault({**NOTES, "Tagged.md": "#project/soil #projector", "Big plan.md": ""})
    names = Mentionable(DiskView(store))
    assert [each.insert for each in names.complete("gard")] == ["@Garden"]
    assert '@"Big plan"' in [each.insert for each in names.complete("plan")]
    assert "@Projects/" in [each.insert for each in names.complete("proj")]
    assert [each.insert for each in names.complete("#proj")] == ["@#project", "@#project/soil", "@#projector"]
    assert [each.label for each in names.complete("#soil")] == ["#project/soil"]
    assert names.complete("")
    assert len(names.complete("a", 2)) == 2
    assert names.nearest("Gardn") == "Garden.md"
