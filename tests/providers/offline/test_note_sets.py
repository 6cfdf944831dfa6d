"""Descriptions of notes, read against a small vault: each says the notes that it means, or is not sure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest

from obsidian_agent.agent.set_checks import meant
from obsidian_agent.agent.vault_names import DailySettings, ViewNames
from obsidian_agent.providers.offline.names import NameIndex
from obsidian_agent.providers.offline.readings import Surroundings
from obsidian_agent.providers.offline.recipe import RecipeParameter
from obsidian_agent.providers.offline.resolve import settled
from obsidian_agent.providers.offline.slots import SlotReader
from obsidian_agent.providers.offline.tokens import tokenise
from obsidian_agent.tools.base import RunContext
from obsidian_agent.tools.registry import TOOLS
from obsidian_agent.vault.disk import DiskView
from obsidian_agent.vault.store import VaultStore

PARAMETER = RecipeParameter(kind="anyNotes", description="")
NOW = datetime(2026, 11, 22, 9, 15, tzinfo=UTC)


def note(body: str = "", **properties: str) -> str:
    """A note with properties, each written as YAML."""
    front = "".join(f"{name}: {value}\n" for name, value in properties.items())
    return f"---\n{front}---\n{body}\n"


FILES = {
    "Projects/Sea wall.md": note(status="active", client='"[[Harbour Board]]"', lead='"[[Ada Stone]]"', due="2026-12-10", priority="high", tags="[build]"),
    "Projects/Ferry app.md": note(status="done", client='"[[Harbour Board]]"', lead='"[[Ben Ito]]"', due="2026-03-01", priority="low", tags="[web]"),
    "Projects/Tide clock.md": note(status="cancelled", client='"[[Lighthouse Trust]]"', lead='"[[Ada Stone]]"', due="2027-02-01", tags="[web, urgent]"),
    "Projects/Buoy map.md": note(status="active", client='"[[Lighthouse Trust]]"', lead='"[[Cleo Park]]"', due="2027-05-01", priority="medium", tags="[web]"),
    "Clients/Harbour Board.md": note(city="Oslo", status="active"),
    "Clients/Lighthouse Trust.md": note(city="Bergen", status="former", aliases="[LT]"),
    "People/Ada Stone.md": note(role="engineer"),
    "People/Ben Ito.md": note(role="designer", aliases="[Benji]"),
    "People/Cleo Park.md": note(role="engineer"),
    "Meetings/2026-09-07 Kickoff.md": note(date="2026-09-07", attendees='["[[Ada Stone]]", "[[Ben Ito]]"]', project='"[[Sea wall]]"'),
    "Meetings/2026-09-21 Weekly round.md": note(date="2026-09-21", attendees='["[[Ben Ito]]", "[[Cleo Park]]"]'),
    "Meetings/2026-10-05 Weekly round.md": note(date="2026-10-05", attendees='["[[Ada Stone]]", "[[Cleo Park]]"]'),
    "Meetings/2025-12-01 Review.md": note(date="2025-12-01", attendees='["[[Ada Stone]]"]', project='"[[Ferry app]]"'),
    "Literature/Amin 2019 - Salt and steel.md": note(authors='["Amin, F.", "Voss, K."]', year="2019", status="read", rating="5", journal="Corrosion", tags="[literature, method/lab]"),
    "Literature/Berg 2021 - Slow tides.md": note(authors='["Berg, L."]', year="2021", status="unread", journal="Ocean Letters", tags="[literature, tides]"),
    "Literature/Cole 2025 - Kelp.md": note(authors='"Cole, R.; Voss, K."', year="2025", status="unread", rating="3", journal="Nature", tags="[literature, method/field]"),
    "Literature/Dahl 2017 - Old piers.md": note(authors='["Dahl, M."]', year="2017", status="reading", rating="4", journal="Corrosion", tags="[literature]"),
    "Rezepte/Fischsuppe.md": note(art="Suppe", dauer="40", portionen="4", tags="[fisch]"),
    "Rezepte/Erbsensuppe.md": note(art="Suppe", dauer="25", portionen="2", saison="Winter", tags="[vegetarisch]"),
    "Rezepte/Apfelkuchen.md": note(art="Kuchen", dauer="80", portionen="12", tags="[vegetarisch]"),
    "Invoices/INV-1.md": note(client='"[[Harbour Board]]"', amount="4800", paid="true", due="2026-01-31"),
    "Invoices/INV-2.md": note(client='"[[Harbour Board]]"', amount="5200", paid="false", due="2026-02-28"),
    "Invoices/INV-3.md": note(client='"[[Lighthouse Trust]]"', amount="900", paid="false", due="2026-03-10"),
    "Zettel/202303041210 Slack water.md": note(status="seed", tags="[attention/drift]"),
    "Zettel/202401151030 Ropes remember.md": note(status="evergreen", tags="[memory]", aliases="[knots]"),
    "Zettel/202405051111 Anchors.md": note(status="seed", tags="[attention]"),
    "Inbox/2026-11-01 gulls.md": "#fleeting\n",
    "Inbox/2026-11-08 radio.md": "#fleeting #keep\n",
    "Inbox/2026-11-19 call.md": "#todo\n",
    "Chapters/1 Shore.md": note(status="draft", words="2400"),
    "Chapters/2 Deep water.md": note(status="outline", words="300"),
    "Daily/2026-10-02.md": note(mood="5", run="true"),
    "Daily/2026-10-03.md": note(mood="8", run="false"),
    "Daily/2026-11-20.md": note(mood="8", run="true", weather="rain"),
    "Books/Kelp and kin.md": note(author="Maja Lund", status="reading"),
    "Books/Harbour nights.md": note(author="Ola Moe", status="finished", rating="4"),
    "Templates/Project.md": note(status="planned"),
    ".obsidian/templates.json": '{"folder": "Templates"}',
    ".obsidian/daily-notes.json": '{"folder": "Daily"}',
}  # fmt: skip


@dataclass
class Reader:
    """Reads descriptions in one vault."""

    store: VaultStore

    def __post_init__(self) -> None:
        self.view = DiskView(self.store)
        self.index = NameIndex(ViewNames(self.view, DailySettings.read(self.store.obsidian_config), self.found, "Templates"))

    def found(self, described: Mapping[str, Any]) -> Sequence[str]:
        paths = meant(described, self.view, RunContext(vault_name="vault", now=NOW), TOOLS)
        assert paths is not None, described
        return [path for path in paths if not path.startswith("Templates/")]

    def meanings(self, said: str, active: str | None = None) -> list[list[str]]:
        """What a description may mean; several where it is doubted, none where it cannot be read."""
        tokens = tokenise(said)
        around = Surroundings(NOW, active)
        reading = SlotReader(said, tokens, self.index, around).read(PARAMETER, "name", 0, len(tokens))
        if reading is None or reading.issue in ("unknown", "inactive"):
            return []
        ways = settled(PARAMETER, reading, self.index)
        values = [way.value for way in ways] if ways[0].doubt is None else [*(way.value for way in ways), None]
        return [
            [] if value is None else [value] if isinstance(value, str) else sorted(self.found({**value, "kind": "notes"}))
            for value in values
        ]


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Reader:
    root = tmp_path_factory.mktemp("vault")
    for name, content in FILES.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return Reader(VaultStore.open(root))


LITERATURE = ["Amin 2019 - Salt and steel", "Berg 2021 - Slow tides", "Cole 2025 - Kelp", "Dahl 2017 - Old piers"]
SAID: list[tuple[str, str, list[str]]] = [
    # states, and one of several
    ("all active projects", "Projects", ["Buoy map", "Sea wall"]),
    ("the projects that are done or cancelled", "Projects", ["Ferry app", "Tide clock"]),
    ("every project that is not active", "Projects", ["Ferry app", "Tide clock"]),
    ("clients that are neither active nor planned", "Clients", ["Lighthouse Trust"]),
    ("high-priority projects", "Projects", ["Sea wall"]),
    ("low and medium priority projects", "Projects", ["Buoy map", "Ferry app"]),
    ("projects with no priority", "Projects", ["Tide clock"]),
    ("urgent web projects", "Projects", ["Tide clock"]),
    ("the draft chapters", "Chapters", ["1 Shore"]),
    # people and places by properties
    ("projects led by Ada Stone", "Projects", ["Sea wall", "Tide clock"]),
    ("projects whose lead is Benji", "Projects", ["Ferry app"]),
    ("projects Cleo leads", "Projects", ["Buoy map"]),
    ("every project where Ben Ito is the lead", "Projects", ["Ferry app"]),
    ("projects for Harbour Board that are active", "Projects", ["Sea wall"]),
    ("the projects of client Lighthouse Trust", "Projects", ["Buoy map", "Tide clock"]),
    ("projects of LT", "Projects", ["Buoy map", "Tide clock"]),
    ("meetings with Cleo Park", "Meetings", ["2026-09-21 Weekly round", "2026-10-05 Weekly round"]),
    ("the meetings that Ada Stone attended in September 2026", "Meetings", ["2026-09-07 Kickoff"]),
    ("meetings did Ada Stone attend in 2025", "Meetings", ["2025-12-01 Review"]),
    ("meetings that Cleo Park did not attend", "Meetings", ["2025-12-01 Review", "2026-09-07 Kickoff"]),
    ("meetings where both Ada Stone and Cleo Park were present", "Meetings", ["2026-10-05 Weekly round"]),
    ("meetings without Ada Stone", "Meetings", ["2026-09-21 Weekly round"]),
    ("meetings with Ada Stone but without Cleo Park", "Meetings", ["2025-12-01 Review", "2026-09-07 Kickoff"]),
    ("meetings about the Sea wall", "Meetings", ["2026-09-07 Kickoff"]),
    ("meetings without a project", "Meetings", ["2026-09-21 Weekly round", "2026-10-05 Weekly round"]),
    ("meetings that belong to no project", "Meetings", ["2026-09-21 Weekly round", "2026-10-05 Weekly round"]),
    ("clients in Oslo or Bergen", "Clients", ["Harbour Board", "Lighthouse Trust"]),
    ("clients that are not in Oslo", "Clients", ["Lighthouse Trust"]),
    ("all the engineers", "People", ["Ada Stone", "Cleo Park"]),
    ("people other than the engineers", "People", ["Ben Ito"]),
    ("literature by Voss", "Literature", [LITERATURE[0], LITERATURE[2]]),
    ("literature in the journal Corrosion", "Literature", [LITERATURE[0], LITERATURE[3]]),
    # amounts, days and years
    ("literature rated 4 or more", "Literature", [LITERATURE[0], LITERATURE[3]]),
    ("literature rated 3 or 4", "Literature", [LITERATURE[2], LITERATURE[3]]),
    ("the literature notes without a rating", "Literature", [LITERATURE[1]]),
    ("literature from before 2018", "Literature", [LITERATURE[3]]),
    ("literature published between 2019 and 2021", "Literature", LITERATURE[:2]),
    ("literature from 2019 or 2025", "Literature", [LITERATURE[0], LITERATURE[2]]),
    ("unread literature from 2024 or later", "Literature", [LITERATURE[2]]),
    ("the unread literature notes, except the ones from 2025", "Literature", [LITERATURE[1]]),
    ("Rezepte with a dauer of less than 30 minutes", "Rezepte", ["Erbsensuppe"]),
    ("every Kuchen that takes more than 75 minutes (dauer)", "Rezepte", ["Apfelkuchen"]),
    ("Rezepte with dauer under 60 and portionen 4", "Rezepte", ["Fischsuppe"]),
    ("chapters with fewer than 1000 words", "Chapters", ["2 Deep water"]),
    ("chapters over 2000 words", "Chapters", ["1 Shore"]),
    ("projects due before 2027", "Projects", ["Ferry app", "Sea wall"]),
    ("projects due by the end of 2026", "Projects", ["Ferry app", "Sea wall"]),
    ("invoices due between February 15 and March 15, 2026", "Invoices", ["INV-2", "INV-3"]),
    ("meetings in September and October", "Meetings", ["2026-09-07 Kickoff", "2026-09-21 Weekly round", "2026-10-05 Weekly round"]),
    ("the daily notes of 2 and 3 October", "Daily", ["2026-10-02", "2026-10-03"]),
    ("meetings on or after 21 September 2026", "Meetings", ["2026-09-21 Weekly round", "2026-10-05 Weekly round"]),
    ("zettel from 2024", "Zettel", ["202401151030 Ropes remember", "202405051111 Anchors"]),
    # checkboxes
    ("invoices that haven't been paid", "Invoices", ["INV-2", "INV-3"]),
    ("unpaid invoices with an amount over 5000", "Invoices", ["INV-2"]),
    ("the daily notes in which run is true", "Daily", ["2026-10-02", "2026-11-20"]),
    ("the days on which I ran", "Daily", ["2026-10-02", "2026-11-20"]),
    # tags
    ("zettel tagged attention (subtags count as well)", "Zettel", ["202303041210 Slack water", "202405051111 Anchors"]),
    ("literature with a tag under method", "Literature", [LITERATURE[0], LITERATURE[2]]),
    ("everything in the inbox that's tagged #fleeting, unless it is also tagged #keep", "Inbox", ["2026-11-01 gulls"]),
    ("Rezepte tagged vegetarisch but not Kuchen", "Rezepte", ["Erbsensuppe"]),
    ("inbox notes without the fleeting tag", "Inbox", ["2026-11-19 call"]),
    # kinds, parts of names, single notes
    ("all my soups (art: Suppe)", "Rezepte", ["Erbsensuppe", "Fischsuppe"]),
    ("the Suppen", "Rezepte", ["Erbsensuppe", "Fischsuppe"]),
    ("all the weekly rounds", "Meetings", ["2026-09-21 Weekly round", "2026-10-05 Weekly round"]),
    ("whatever is in the inbox", "Inbox", ["2026-11-01 gulls", "2026-11-08 radio", "2026-11-19 call"]),
    ("all daily notes but the ones from November", "Daily", ["2026-10-02", "2026-10-03"]),
    ("the book I am reading", "Books", ["Kelp and kin"]),
    ("the designer", "People", ["Ben Ito"]),
    ("chapter 2", "Chapters", ["2 Deep water"]),
    ("the Anchors zettel", "Zettel", ["202405051111 Anchors"]),
]


@pytest.mark.parametrize(("said", "folder", "names"), SAID, ids=[said for said, _, _ in SAID])
def test_a_description_means_its_notes(reader: Reader, said: str, folder: str, names: list[str]) -> None:
    found = reader.meanings(said)
    if names:
        assert found == [[f"{folder}/{name}.md" for name in names]]
    else:
        assert len(found) != 1 or found == [[]]


def test_one_note_may_be_described_where_one_is_named(reader: Reader) -> None:
    said = "the book I am reading"
    tokens = tokenise(said)
    slots = SlotReader(said, tokens, reader.index, Surroundings(NOW))
    found = slots.read(RecipeParameter(kind="note", description=""), "name", 0, len(tokens))
    assert found is not None
    assert found.value == "Books/Kelp and kin.md"
    assert slots.read(RecipeParameter(kind="notes", description=""), "name", 0, len(tokens)) is None


def test_a_template_is_hardly_meant_by_the_kind_that_it_makes(reader: Reader) -> None:
    assert len(reader.meanings("the project")) != 1
    assert reader.meanings("the project template") == [["Templates/Project.md"]]


def test_the_open_note_is_told_by_its_kind(reader: Reader) -> None:
    assert reader.meanings("this project", active="Projects/Sea wall.md") == [["Projects/Sea wall.md"]]
    assert len(reader.meanings("this meeting", active="Projects/Sea wall.md")) != 1


@pytest.mark.parametrize(
    "said",
    [
        "projects rejected by Ada Stone",
        "meetings that Ada Stone enjoyed",
        "literature cited more than 4 times",
        "the invoices that Benji forgot",
        "projects that are nearly done",
        "the engineer",
        "clients far from Oslo",
    ],
)
def test_what_cannot_be_expressed_is_not_dropped(reader: Reader, said: str) -> None:
    assert len(reader.meanings(said)) != 1


def test_what_may_mean_two_sets_is_a_choice(reader: Reader) -> None:
    found = reader.meanings("literature I have not read")
    assert [f"Literature/{name}.md" for name in LITERATURE[1:3]] in found
    assert [f"Literature/{name}.md" for name in LITERATURE[1:]] in found
