from __future__ import annotations

from typing import Any

import pytest

from obsidian_agent.agent.events import Candidate, NeedsInput, PlanReady, TurnFailed
from obsidian_agent.offline.clauses import divisions
from obsidian_agent.offline.names import Surroundings
from obsidian_agent.offline.sentence import Sentence
from obsidian_agent.vault.views.disk import DiskView
from offline_desk import Desk, effect
from support import MakeVault

FILES: dict[str, str | bytes] = {
    "Inbox.md": "# Inbox\n",
    "Shopping.md": "- [ ] milk\n- [ ] eggs\n",
    "House/Boiler.md": "---\nstatus: open\n---\nHot.\n",
    "House/Roof.md": "---\nstatus: open\ntags:\n  - todo\n  - x\n---\nTiles.\n",
    "Search and Rescue.md": "Dogs.\n",
    "Archive/Old.md": "Old.\n",
}
BOILER, ROOF = "House/Boiler.md", "House/Roof.md"
DONE = "---\nstatus: done\n---\nHot.\n"


@pytest.fixture
def desk(make_vault: MakeVault) -> Desk:
    return Desk(make_vault(FILES))


def first(desk: Desk, message: str, **around: Any) -> Candidate:
    event = desk.decide(message, **around)
    assert isinstance(event, NeedsInput), event
    return event.candidates[0]


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (
            "tick off milk in Shopping and move Roof to Archive",
            {"Shopping.md": "- [x] milk\n- [ ] eggs\n", ROOF: "-> Archive/Roof.md"},
        ),
        (
            "in Roof remove the tag todo and set status to done",
            {ROOF: "---\nstatus: done\ntags:\n  - x\n---\nTiles.\n"},
        ),
        (
            "create a note Zoe in House and add a link to it at the end of Inbox",
            {"House/Zoe.md": "", "Inbox.md": "# Inbox\n[[Zoe]]\n"},
        ),
        (
            "rename Boiler to Heating. Then move it to Archive.",
            {BOILER: "-> Archive/Heating.md"},
        ),
        (
            "move Boiler and Roof to Archive and delete Old, then set status of Boiler to done",
            {
                "Archive/Old.md": "delete",
                BOILER: "-> Archive/Boiler.md",
                ROOF: "-> Archive/Roof.md",
            },
        ),
        (
            "Setz den Status von Boiler auf done und verschieb ihn nach Archive",
            {BOILER: "-> Archive/Boiler.md"},
        ),
        ("Cambia status de Boiler a done y muévelo a Archive", {BOILER: "-> Archive/Boiler.md"}),
        ("把Boiler的status改成done，然后把它移到Archive", {BOILER: "-> Archive/Boiler.md"}),
    ],
)
def test_two_orders_are_one_plan(desk: Desk, message: str, expected: dict[str, str]) -> None:
    joined = first(desk, message)
    assert (joined.recipe, joined.missing, joined.unused) == ("", (), ())
    assert joined.plan is not None
    assert "; " in joined.title
    assert effect(desk.dry_run(joined.plan)) == expected
    picked = desk.decide(message, pick=1)
    assert isinstance(picked, PlanReady)
    assert picked.plan == joined.plan
    refused = desk.decide(message, pick=1, folder="House")
    assert isinstance(refused, TurnFailed)
    assert "has no inputs" in refused.problem.message


def test_a_number_stands_for_as_many_notes_of_the_order_before(desk: Desk) -> None:
    joined = first(desk, "merge Boiler and Roof into House/All and delete the two")
    assert joined.plan is not None
    assert joined.deletes
    done = effect(desk.dry_run(joined.plan))
    assert done.keys() == {"House/All.md", BOILER, ROOF}
    assert first(desk, "merge Boiler and Roof into House/All and delete the three").recipe


def test_a_later_order_is_about_the_notes_of_the_one_before_not_about_the_open_one(
    desk: Desk,
) -> None:
    joined = first(desk, "move Boiler to Archive and set status to done", active=ROOF)
    assert joined.plan is not None
    assert effect(desk.dry_run(joined.plan)).keys() == {BOILER}
    follows = first(desk, "set status to done and move it to Archive", active=ROOF)
    assert follows.plan is not None
    assert "House" not in str(follows.plan.to_json())


@pytest.mark.parametrize(
    "message",
    [
        "add the text buy milk and call mum to Inbox",
        "add the text buy milk and move the sofa to Inbox",
        "add a task to Shopping: move the sofa and delete old photos",
        "rename Search and Rescue to 'Find and Replace'",
        "append 'rename the cat and set the table' to Inbox",
        "replace Tiles with Set and add in Roof",
        "create notes Copy, Move and Delete in House",
        "rename the tag todo to later and the tag x to y",
        "add buy paint and set the table to Inbox",
        "move Boiler to Archive and don't delete Old",
        "move Boiler to Archive and frobnicate Old",
        "add hot to Boiler and delete Boiler",
    ],
)
def test_verbs_within_a_value_begin_no_order(desk: Desk, message: str) -> None:
    event = desk.decide(message)
    candidates = event.candidates if isinstance(event, NeedsInput) else ()
    assert all(candidate.recipe for candidate in candidates)


def test_an_order_begins_with_a_verb_outside_names_and_before_a_colon(desk: Desk) -> None:
    around = Surroundings(DiskView(desk.store), desk.request("").context)

    def divided(text: str) -> list[list[str]]:
        parts = divisions(Sentence(text, around))
        return [[clause.text for clause in clauses] for clauses in parts]

    assert divided("move A to B, delete C and rename D to E") == [
        ["move A to B", "delete C", "rename D to E"],
        ["move A to B", "delete C and rename D to E"],
        ["move A to B, delete C", "rename D to E"],
    ]
    assert divided("Verschiebe A nach B und dann C löschen") == [
        ["Verschiebe A nach B", "C löschen"]
    ]
    assert divided("add to A: move B and delete C") == []
    assert divided("add 'x and delete y' to A and B") == []
