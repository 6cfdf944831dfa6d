"""What may go along with a message."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from agents import NOTES, NOW, Desk
from obsidian_agent.agent.context import MOST_NOTES, Gathered, Gatherer, Mentionable, Why, being_typed, mentions_in, written
from obsidian_agent.agent.open_vault import Focus, run_context
from obsidian_agent.vault.filesystem.store import VaultStore
from obsidian_agent.vault.views.disk import DiskView
from obsidian_agent.vault.views.filtered import FilteredView
from support import MakeVault


def gather(store: VaultStore, message: str, gathering: Gatherer | None = None, focus: Focus | None = None) -> Gathered:
    view = DiskView(store)
    return (gathering or Gatherer()).gather(message, run_context(store, view, focus or Focus(), NOW, {}), view)


def named(found: Gathered) -> list[tuple[str, Why]]:
    return [(item.path.text, item.why) for item in found.items]


def test_mentions_are_found_by_path_name_folder_and_tag(make_vault: MakeVault) -> None:
    store = make_vault({**NOTES, "Soil.md": "#garden/soil"})
    assert named(gather(store, "@garden and @[[Projects/Plan]]")) == [("Garden.md", Why.MENTIONED), ("Projects/Plan.md", Why.MENTIONED)]
    assert named(gather(store, "@Projects/")) == [("Projects/Log.md", Why.IN_FOLDER), ("Projects/Plan.md", Why.IN_FOLDER)]
    assert named(gather(store, "@#garden")) == [("Soil.md", Why.WITH_TAG)]
    assert named(gather(store, "@bank @Projects")) == [
        ("Finance/bank.md", Why.MENTIONED),
        ("Projects/Log.md", Why.IN_FOLDER),
        ("Projects/Plan.md", Why.IN_FOLDER),
    ]
    assert gather(store, "@garden").items[0].text == NOTES["Garden.md"]


def test_a_mention_that_means_nothing_is_told_with_what_is_near(make_vault: MakeVault) -> None:
    (missed,) = gather(make_vault(NOTES), "What about @Gardn?").missed
    assert (missed.text, missed.nearest) == ("Gardn", "Garden.md")


def test_paths_out_of_the_vault_mean_nothing(make_vault: MakeVault) -> None:
    store = make_vault({**NOTES, ".obsidian/app.json": "{}"})
    found = gather(store, "@../../etc/passwd @/etc/passwd @.obsidian/app.json @.obsidian/")
    assert not found.items
    assert len(found.missed) == 4


def test_the_open_note_and_what_fits_the_words(make_vault: MakeVault) -> None:
    store = make_vault(NOTES)
    assert named(gather(store, "What about tomatoes and the soil?")) == []
    found = gather(store, "tell me about the soil, please", Gatherer(active=True, found=2), Focus("Projects/Log.md"))
    assert named(found) == [("Projects/Log.md", Why.OPEN), ("Projects/Plan.md", Why.FOUND)]
    assert named(gather(store, "is the and of", Gatherer(found=3))) == []
    both = gather(store, "@Plan soil", Gatherer(found=3))
    assert named(both) == [("Projects/Plan.md", Why.MENTIONED)]


def test_there_are_never_too_many(make_vault: MakeVault) -> None:
    store = make_vault({f"Many/{n:03}.md": f"note {n}" for n in range(MOST_NOTES + 7)})
    found = gather(store, "@Many/")
    assert (len(found.items), found.more) == (MOST_NOTES, 7)


def test_what_is_hidden_is_not_there(make_desk: Callable[..., Desk]) -> None:
    desk = make_desk()
    view = FilteredView(DiskView(desk.store), lambda path: path.text.startswith("Private"), lambda path: path)
    context = run_context(desk.store, DiskView(desk.store), Focus(), NOW, {})
    found = Gatherer(found=5).gather("@diary @Private/ my garden love", context, view)
    assert "Private/diary.md" not in [item.path.text for item in found.items]
    assert [missed.nearest for missed in found.missed if missed.nearest == "Private/diary.md"] == []


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
