"""Findings about a vault: one small vault for each kind, and what must not be reported."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

import pytest

from obsidian_agent.health.finding import KINDS, FindingKind, HealthFinding
from obsidian_agent.health.report import examine
from obsidian_agent.health.survey import HealthSettings, PropertyRule
from obsidian_agent.offline.days import parse_day
from obsidian_agent.vault.links.link_text import LinkStyle
from obsidian_agent.vault.views.disk import DiskView
from support import MakeVault

NOW = datetime(2026, 11, 23, 12, 0, tzinfo=UTC)
PROSE = "One sentence that is long enough to mean something.\n"

Examine = Callable[..., list[HealthFinding]]


@pytest.fixture
def found(make_vault: MakeVault) -> Examine:
    def run(files: dict[str, str], *kinds: FindingKind, **settings: Any) -> list[HealthFinding]:
        view = DiskView(make_vault(files))
        report = examine(view, HealthSettings(now=NOW, **settings), only=kinds or KINDS)
        return list(report.findings)

    return run


def repairs(finding: HealthFinding) -> tuple[bool, list[str]]:
    assert finding.repair is not None
    return finding.repair.preselected, [choice.title for choice in finding.repair.choices]


EVIDENCE = {
    "case and punctuation": ({"Kick-off notes.md": ""}, "kick off notes", "Kick-off notes"),
    "an alias": (
        {"Ada Lovelace.md": "---\naliases: [Ada L]\n---\n"},
        "Ada L",
        "Ada Lovelace|Ada L",
    ),
    "the title": ({"n1.md": "# Orange cake\n"}, "Orange cake", "n1|Orange cake"),
    "a title with the name": ({"Cake.md": "# Orange cake\n"}, "Orange cake", "Cake|Orange cake"),
}


@pytest.mark.parametrize("case", EVIDENCE)
def test_a_missing_name_with_evidence_for_one_note_has_a_repair(found: Examine, case: str) -> None:
    files, name, target = EVIDENCE[case]
    (finding,) = found({"A.md": f"x\n[[{name}]]\n", **files}, "unresolved-link")
    assert (finding.path, finding.line, bool(finding.evidence)) == ("A.md", 2, True)
    preselected, titles = repairs(finding)
    assert (preselected, titles[0]) == (True, f"[[{name}]] → [[{target}]]")


@pytest.mark.parametrize(
    ("name", "note"),
    [
        ("week1", "week7"),
        ("unsupervised learning", "supervised learning"),
        ("2025-03-01", "2025-03-02"),
        ("OR", "XOR"),
        ("v1.2", "v12"),
        ("not done", "done"),
    ],
)
def test_a_similar_name_is_never_preselected(found: Examine, name: str, note: str) -> None:
    (finding,) = found({"A.md": f"[[{name}]]", f"{note}.md": "x"}, "unresolved-link")
    assert repairs(finding)[0] is False


@pytest.mark.parametrize(
    ("name", "note", "preselected"),
    [
        ("Flights/Overview", "Hotels/n1", False),
        ("Flights/Overview", "Trips/Flights/n1", True),
        ("/Overview", "Hotels/n1", False),
        ("./Overview", "Trips/n1", True),
        ("../Overview", "Trips/n1", False),
        ("Flights/Ada L", "People/Ada", False),
        ("Flights/kick off", "Work/Kick-off", False),
    ],
)
def test_a_folder_in_a_link_has_to_fit(
    found: Examine, name: str, note: str, preselected: bool
) -> None:
    text = "---\naliases: [Ada L]\n---\n# Overview\n"
    files = {"Trips/A.md": f"[a](<{name}.md>)", f"{note}.md": text}
    (finding,) = found(files, "unresolved-link")
    assert finding.evidence
    assert repairs(finding)[0] is preselected


UNCERTAIN = {
    "Re-sign": {"Resign.md": ""},
    "AB": {"A & B.md": ""},
    ".NET": {"Net.md": ""},
    "Notes": {"Call Tom.md": "# Notes\n"},
    "Projects/Gamma/Log": {"Projects/Alpha/Log.md": ""},
    "A/B test": {"Other/B test.md": ""},
    "Re-creation": {"Recreation.md": ""},
    "Not able": {"Notable.md": ""},
    "Log": {"🍌 Log.md": ""},
    "Busse": {"Buße.md": ""},
    "Trinken in Massen": {"Trinken in Maßen.md": ""},
    "apple": {"Apple Inc.md": "---\naliases: [Apple]\n---\n"},
    "Meeting notes": {"2026-05-04 Anna.md": "# Meeting notes\n"},
    "Yearly plan": {"2026-05-04.md": "# Yearly plan\n"},
    "To do": {"202610041200.md": "# To do\n"},
    "Data plan": {"Data-plan.md": "", "Budget.md": "---\naliases: [Data plan]\n---\n"},
    "Old name": {"P.md": "---\naliases: [Old name]\n---\n", "n1.md": "# Old name\n"},
    "Lucia": {"L. Mar.md": "---\naliases: [Lucía]\n---\n"},
    "kickoff notes": {"Kick-off notes.md": ""},
    "Temp -10 log": {"Temp 10 log.md": ""},
    "Sharp notes": {"Sharp# notes.md": ""},
    "AI": {"Machines.md": "---\naliases: [AI]\n---\n"},
    "Big Sur": {"Big Sur (film).md": "---\naliases: [Big Sur]\n---\n"},
    "Budget 2025": {"Budget.md": "# Budget 2025\n"},
    "Plan 10.11": {"Plan 10-11.md": ""},
    "E major": {"E♭ major.md": ""},
    "Limit C": {"Limit °C.md": ""},
    "Power 102": {"Power 10².md": ""},
    "Side A′": {"Side A.md": ""},
    "Garden bed": {"🌱 Garden bed.md": ""},
    "Grade A-": {"Grade A.md": ""},
    "A* search": {"A search.md": ""},
    "§ 12 BGB": {"12 BGB.md": ""},
    "What now!": {"What now?.md": ""},
    "Course A-/Intro page": {"Course A/Intro page.md": ""},
}


@pytest.mark.parametrize("name", UNCERTAIN)
def test_a_name_that_may_be_another_is_a_question(found: Examine, name: str) -> None:
    (finding,) = found({"A.md": f"[[{name}]]", **UNCERTAIN[name]}, "unresolved-link")
    preselected, titles = repairs(finding)
    assert preselected is False
    assert len([title for title in titles if "→" in title]) == len(UNCERTAIN[name])


@pytest.mark.parametrize(
    ("name", "text", "offered"),
    [
        ("five species", "# Rules\n## Five Species\n", True),
        ("相性の悪い組み合わせ", "# 菜\n## 相性の悪い組み合わせ\n", True),
        ("See also", "# Rules\n## See also\n# Other rules\n## See also\n", False),
        ("Summary", "# Rules\n## Summary\n", False),
        ("Five species", "# Rules\n```\n## Five species\n```\n", False),
        ("Five species#One", "# Rules\n## Five species\n", False),
    ],
)
def test_a_heading_of_the_vault_alone_is_offered(
    found: Examine, name: str, text: str, offered: bool
) -> None:
    (finding,) = found({"A.md": f"[[{name}]]", "n1.md": text}, "unresolved-link")
    preselected, titles = repairs(finding)
    heading = text.rpartition("# ")[2].strip()
    assert preselected is False
    assert (titles[0] == f"[[{name}]] → [[n1#{heading}|{name}]]") is offered


OTHERS = {
    "Ideas 🔥": "Ideas 💡",
    "🇫🇷 Trip": "🇩🇪 Trip",
    "C++ basics": "C basics",
    "A+ grades": "A grades",
    "New person": "Templates/Person",
}


@pytest.mark.parametrize("name", OTHERS)
def test_another_name_is_not_offered(found: Examine, name: str) -> None:
    alias = f"---\naliases: [{name}]\n---\n" if "/" in OTHERS[name] else ""
    files = {"A.md": f"[[{name}]]", f"{OTHERS[name]}.md": alias}
    (finding,) = found(files, "unresolved-link", templates="Templates")
    assert not any("→" in title for title in repairs(finding)[1])


@pytest.mark.parametrize("text", ["---\naliases: [Big Sur]\n---\n", "# Big Sur\n"])
def test_an_alias_or_title_that_longer_names_begin_with_is_a_question(
    found: Examine, text: str
) -> None:
    files = {"A.md": "[[Big Sur]]", "n1.md": text, "Big Sur (film).md": ""}
    (finding,) = found(files, "unresolved-link")
    assert repairs(finding)[0] is False


def test_a_name_with_other_numbers_is_not_offered(found: Examine) -> None:
    files = {"A.md": "[[Chapter 1-2]] [[2026-1-1]]", "Chapter 12.md": "", "2026-11.md": ""}
    for finding in found(files, "unresolved-link"):
        assert not any("→" in title for title in repairs(finding)[1])


@pytest.mark.parametrize(
    ("name", "notes", "offered"),
    [
        ("Yves Guen", ["Yves Guen (1895-1961)", "Yves Guen (1925)"], 2),
        ("Resi", ["Resi Huber", "Anna Resi"], 1),
        ("Henrik Lund", ["Dr Henrik Lund"], 1),
        ("Łzawiec", ["Lzawiec"], 1),
        ("Brew 44", ["Brew 044", "Brew 45"], 1),
        ("bean", ["Beans"], 1),
        ("Warfarine", ["Warfarin", "Software"], 1),
        ("Rust", ["Trust"], 0),
        ("gone", ["One"], 0),
        ("Marta", ["Maria"], 0),
        ("Faust III", ["Faust II", "Faust I"], 0),
        ("Plan", [f"Plan {letter * 5}" for letter in "abcdef"], 0),
    ],
)
def test_longer_and_similar_names_are_offered(
    found: Examine, name: str, notes: list[str], offered: int
) -> None:
    files = dict.fromkeys((f"{note}.md" for note in notes), "x")
    (finding,) = found({"A.md": f"[[{name}]]", **files}, "unresolved-link")
    preselected, titles = repairs(finding)
    assert (preselected, sum("→" in title for title in titles)) == (False, offered)


def test_a_tie_is_a_question(found: Examine) -> None:
    files = {"A.md": "[[kick off]]", "Kick-off.md": "", "B/Kick_off.md": ""}
    (finding,) = found(files, "unresolved-link")
    preselected, titles = repairs(finding)
    assert preselected is False
    assert titles == [
        "[[kick off]] → [[Kick_off]]",
        "[[kick off]] → [[Kick-off]]",
        "Create kick off.md",
        "Turn the link into plain text",
    ]


def test_a_repair_that_writes_a_path_keeps_the_text_and_says_so(found: Examine) -> None:
    files = {"A/a.md": "[[kick off]]", "B/Kick-off.md": ""}
    (finding,) = found(files, "unresolved-link", link_style=LinkStyle("relative"))
    assert finding.repair is not None
    choice = finding.repair.choices[0]
    assert choice.title == "Link “kick off” to B/Kick-off.md"
    assert choice.steps[0].args["keepText"] is True


def test_a_rename_is_followed_to_the_present_path_and_offered(found: Examine) -> None:
    renames = [("B/Second.md", "C/Third.md"), ("First.md", "B/Second.md"), ("Z.md", "First.md")]
    files = {"A.md": "[[First]]", "C/Third.md": ""}
    (finding,) = found(files, "unresolved-link", renames=lambda: renames)
    assert repairs(finding) == (
        False,
        ["[[First]] → [[Third|First]]", "Create First.md", "Turn the link into plain text"],
    )


def test_the_note_of_a_day_is_created_where_daily_notes_are(found: Examine) -> None:
    files = {"X/A.md": "[[2026-12-24]]"}
    (finding,) = found(files, "unresolved-link", daily_notes="Daily", new_notes="Inbox")
    assert repairs(finding)[1][0] == "Create Daily/2026-12-24.md"


def test_a_link_is_no_spelling_of_another_one(found: Examine) -> None:
    files = {f"{number}.md": "---\nx: '[[Lucia]]'\n---\n" for number in range(3)}
    assert not found(files | {"x.md": "---\nx: '[[Lucía]]'\n---\n"}, "property-value")


def test_placeholders_and_templates_are_no_damage(found: Examine) -> None:
    template = "---\naliases: [New day]\n---\n[[nowhere]]\n"
    files = {"A.md": "[[{{title}}]]", "T/Day.md": template, "B.md": "[[A]] [[New day]]"}
    (finding,) = found(files, templates="T")
    assert (finding.path, finding.evidence) == ("B.md", "")


@pytest.mark.parametrize(
    "files",
    [
        {"T/Day.md": "---\naliases: [New day]\n---\nx"},
        {"Meta/Plantillas/P/Day.md": "---\naliases: [New day]\n---\n{{fecha}}"},
        {"Templates/Day.md": "---\naliases: [New day]\n---\nx", "Templates/x.md": "<% a %>"},
        {"Day.md": "---\naliases: [New day]\ndate: <% date %>\n---\nx"},
    ],
)
def test_templates_are_known_by_their_folders_and_their_placeholders(
    found: Examine, files: dict[str, str]
) -> None:
    (finding,) = found({"B.md": "[[A]] [[New day]]", "A.md": "x", **files}, templates="T")
    assert (finding.path, finding.evidence) == ("B.md", "")


@pytest.mark.parametrize("name", ["Plan (Conflicted copy Mac 202608021200)", "Plan 2"])
def test_a_conflict_copy_is_no_note_of_its_own(found: Examine, name: str) -> None:
    text = f"---\naliases: [Big plan]\n---\nGarden work. {PROSE}[[x]]\n- [ ] Ask 📅 2026-11-01\n"
    files = {"Plan.md": text, f"{name}.md": text + "More.\n", "A.md": "[[Big plan]] [[B]]"}
    files |= {"Garden work.md": PROSE, "B.md": "[[Plan]]"}
    lost, other, unlinked, copy, task = found(files)
    assert repairs(lost)[0]
    assert [one.path for one in (lost, other, task)] == ["A.md", "Plan.md", "Plan.md"]
    assert (copy.kind, copy.path) == ("conflict-copy", f"{name}.md")
    assert repairs(unlinked)[1] == ["Link “Garden work” in Plan.md to Garden work.md"]


def test_a_missing_picture_is_found_by_its_file_name(found: Examine) -> None:
    files = {"A.md": "![[old/cat.png]]\n![[dog.png]]", "img/cat.png": "x", "B.md": "[[A]]"}
    cat, dog = found(files, "missing-attachment")
    assert repairs(cat) == (False, ["[[old/cat.png]] → [[cat.png]]"])
    assert dog.repair is None


def test_a_picture_with_another_spelling_is_offered_and_not_deleted(found: Examine) -> None:
    files = {"A.md": "![[Gel-3.png]] ![[gel 4.jpeg]]", "x/gel 3.png": "x", "gel 4.jpg": "x"}
    files |= {"B.md": "![[Prices.tiff]]", "Prices (2).tif": "x"}
    first, second, third = found(files, "missing-attachment", "unused-attachment")
    assert repairs(third) == (False, ["[[Prices.tiff]] → [[Prices (2).tif|Prices.tiff]]"])
    assert repairs(first) == (False, ["[[Gel-3.png]] → [[gel 3.png]]"])
    assert repairs(second) == (False, ["[[gel 4.jpeg]] → [[gel 4.jpg|gel 4.jpeg]]"])


def test_files_of_one_name_are_told_apart_by_their_paths(found: Examine) -> None:
    files = {"A.md": "![[img/logo.png]]", "a/logo.png": "x", "b/logo.png": "x"}
    (finding,) = found(files, "missing-attachment")
    assert repairs(finding)[1] == [
        "Link “img/logo.png” to a/logo.png",
        "Link “img/logo.png” to b/logo.png",
    ]


def test_a_link_that_a_table_cuts_off_gets_a_backslash(found: Examine) -> None:
    table = "| a | b |\n|---|---|\n"
    rows = "| ![[B|x]] | [[B]] |\n| [[B\\|ü]] | ü [[B|y]] `[[B|x]]` |\n\n[[B|z]]\n"
    code = f"```\n{table}{rows}```\n"
    files = {"A.md": table + rows, "B.md": code + "[[A]]", "C.md": f"[[A]]\n{table}| [[B]] | x |"}
    (finding,) = found(files, "unresolved-link")
    assert (finding.path, finding.line) == ("A.md", 3)
    assert finding.repair is not None
    content = finding.repair.choices[0].steps[0].args["content"]
    assert content == table + rows.replace("[[B|x]] |", "[[B\\|x]] |").replace("B|y", "B\\|y")


def test_a_name_is_clear_in_its_own_folder_and_for_a_note_of_the_root(found: Examine) -> None:
    files = {
        "X/Index.md": "",
        "Y/Index.md": "",
        "X/a.md": "[[Index]]",
        "Z/a.md": "[[Index]] [[index]]",
        "Read.md": "",
        "X/Read.md": "",
        "Y/b.md": "[[Read]]",
    }
    assert [finding.path for finding in found(files, "ambiguous-link")] == ["Z/a.md"]


def test_a_name_that_two_notes_have_is_ambiguous(found: Examine) -> None:
    files = {"A.md": "[[Plan]]", "B.md": "[[Plan]] [[X/Plan]]", "X/Plan.md": "", "Long/Plan.md": ""}
    first, second = found(files, "ambiguous-link")
    titles = ["Link to X/Plan.md by its path", "Link to Long/Plan.md instead"]
    assert repairs(first) == (False, titles)
    assert first.repair is not None
    assert all(choice.steps[0].args["keepText"] for choice in first.repair.choices)
    assert second.repair is None  # the link by a path would follow
    assert first.text.endswith("Obsidian opens X/Plan.md.")


def test_of_notes_with_one_name_that_are_equally_near_obsidian_may_open_each(
    found: Examine,
) -> None:
    files = {"A.md": "[[Plan]]", "X/Plan.md": "", "Y/Plan.md": ""}
    (finding,) = found(files, "ambiguous-link")
    assert "Obsidian opens X/Plan.md or Y/Plan.md" in finding.text


def test_a_name_behind_an_id_is_a_name_too(found: Examine) -> None:
    files = {
        "A.md": f"{PROSE} On the salt road.",
        "202401020132 Salt road.md": "# Salt road",
        "B.md": "[[202401020132 Salt road]]",
    }
    unlinked, empty = found(files)
    assert (empty.kind, empty.path) == ("empty-note", "202401020132 Salt road.md")
    assert unlinked.evidence == "mentions 202401020132 Salt road.md"


def test_unlinked_notes_come_with_the_mentions_of_their_names(found: Examine) -> None:
    files = {
        "Graph theory.md": PROSE,
        "Meeting.md": PROSE,
        "A.md": "About graph theory and a Meeting. [[B]]",
        "B.md": f"{PROSE} The meeting.",
        "Picture.md": "![[cat.png]]",
        "cat.png": "x",
    }
    by_path = {finding.path: finding for finding in found(files, "unlinked-note")}
    assert set(by_path) == {"Graph theory.md", "Meeting.md", "Picture.md"}
    assert repairs(by_path["Graph theory.md"]) == (
        False,
        ["Link “graph theory” in A.md to Graph theory.md"],
    )
    assert by_path["Meeting.md"].repair is None


def test_unlinked_notes_come_with_the_names_of_other_notes_in_them(found: Examine) -> None:
    files = {
        "Log.md": "Met Ada Lovelace and saw “Orange cake” in Lisbon. Garden work, see my_note.",
        "Ada Lovelace.md": "[[n1]]",
        "n1.md": "# Orange cake\n[[Lisbon]]",
        "Lisbon.md": "[[my_note]]",
        "my_note.md": "[[Garden]] #lisbon",
        "Garden.md": "[[n1]] The garden.",
        "Orange cake.md": "# Other\nx",
    }
    by_path = {finding.path: finding for finding in found(files, "unlinked-note")}
    assert by_path["Log.md"].evidence == (
        "mentions Ada Lovelace.md, Orange cake.md, my_note.md, Lisbon.md"
    )


def test_a_single_word_is_a_mention_within_a_sentence_or_if_it_is_long(found: Examine) -> None:
    names = ("Warfarin", "Rose", "Amara", "Status", "Reading")
    files = dict.fromkeys((f"{name}.md" for name in names), PROSE)
    text = "Warfarin helps. Rose came with Amara Diallo. Reading it, I sat reading.\nStatus: good"
    (finding,) = [one for one in found({"A.md": text, **files}, "unlinked-note") if one.evidence][
        1:
    ]
    assert (finding.path, finding.evidence) == ("Warfarin.md", "mentioned in A.md")


def test_mentions_that_are_not_listed_are_counted(found: Examine) -> None:
    files = {f"{n}.md": f"About graph theory. [[{n + 1}]]" for n in range(8)}
    (finding,) = found({"Graph theory.md": PROSE, "8.md": "x", **files}, "unlinked-note")
    assert finding.evidence == "mentioned in 0.md, 1.md, 2.md, 3.md, 4.md and 3 more"


def test_periodic_notes_templates_and_conflict_copies_need_no_links(found: Examine) -> None:
    files = {
        "2026-01-05.md": PROSE,
        "2026-W02.md": PROSE + "W02",
        "2026-KW03.md": PROSE + "KW03",
        "KW 04 2026.md": PROSE + "KW04",
        "2026-Q3.md": PROSE + "Q3",
        "04.10.2026.md": PROSE + "day first",
        "Journal/2026-11-03 mardi.md": PROSE + "a weekday",
        "2026-01-06.md": "Read the Other note.",
        "Book.md": "---\nauthor: <% author %>\n---\nx",
        "Other note.md": PROSE,
        "Other note.sync-conflict-20240101-120000-ABCDEF7.md": PROSE,
    }
    paths = [finding.path for finding in found(files, "unlinked-note", daily_folder="Journal")]
    assert paths == ["2026-01-06.md", "Other note.md"]


def test_the_text_of_a_mention_is_linked_and_no_other(found: Examine) -> None:
    files = {
        "Plan.md": "---\naliases: [Great garden plan]\n---\nx",
        "A.md": "No plan but the great garden plan.",
    }
    by_path = {finding.path: finding for finding in found(files, "unlinked-note")}
    repair = by_path["Plan.md"].repair
    assert repair is not None
    assert repair.choices[0].steps[0].args["text"] == "great garden plan"


def test_a_name_of_several_notes_is_no_mention_of_one_of_them(found: Examine) -> None:
    files = {"A.md": "See Graph theory.", "X/Graph theory.md": "one", "Y/graph theory.md": "two"}
    assert [finding.repair for finding in found(files, "unlinked-note")] == [None, None, None]


def test_a_mention_that_cannot_become_a_link_is_not_proposed(found: Examine) -> None:
    files = {
        "Graph theory.md": PROSE,
        "A.md": "# Graph theory\n`graph theory`\n[graph theory](https://example.org)\n[[B]]",
        "Modern graph theory.md": "About modern graph theory. [[B]]",
        "B.md": PROSE,
    }
    (finding,) = found(files, "unlinked-note")
    assert finding.repair is None


def test_empty_notes_have_neither_text_nor_properties(found: Examine) -> None:
    files = {"A.md": "", "B.md": " \r\n", "C.md": "---\nx: 1\n---\n", "D.md": "[[A]]"}
    files |= {"No.md": "---\nx: [1\n---\n", "Yes.md": "# Maybe\n", "Or.md": "# Or\n## Else\n"}
    linked, unlinked = found(files, "empty-note")
    assert (linked.path, linked.evidence, linked.repair) == ("A.md", "1 note links to it", None)
    assert (unlinked.path, repairs(unlinked)) == ("B.md", (False, ["Delete B.md"]))


@pytest.mark.parametrize("text", ["# \n", "#\n", "---\n---\n## 🌱 my plan #\r\n", "---\n---\n"])
def test_a_note_with_its_name_only_is_empty(found: Examine, text: str) -> None:
    (finding,) = found({"My plan.md": text}, "empty-note", "unlinked-note")
    assert (finding.kind, repairs(finding)) == ("empty-note", (False, ["Delete My plan.md"]))


def test_a_note_with_names_of_properties_only_may_be_a_template(found: Examine) -> None:
    (finding,) = found({"P.md": "---\ntags: []\nd:\n---\n"}, "empty-note", "unlinked-note")
    assert (finding.kind, finding.repair) == ("empty-note", None)


@pytest.mark.parametrize(
    ("new_notes", "paths"),
    [
        ("", {"Wish.md", "Sub/Old.md"}),
        ("Inbox", {"Inbox/Wish.md", "Sub/Old.md"}),
        (None, {"X/Wish.md", "Sub/Old.md"}),
    ],
)
def test_a_missing_note_is_created_once_where_obsidian_would(
    found: Examine, new_notes: str | None, paths: set[str]
) -> None:
    files = {"X/A.md": "[[Wish]]", "X/Y/B.md": "[[wish]] [[Sub/Old]]", "X/C.md": "[[Wish]]"}
    choices = [
        choice.steps[0].args["path"]
        for finding in found(files, "unresolved-link", new_notes=new_notes)
        if finding.repair is not None
        for choice in finding.repair.choices
        if choice.title.startswith("Create ")
    ]
    assert len(choices) == 4
    assert {path.replace("wish", "Wish") for path in choices} == paths


def test_notes_with_the_same_text_are_merged_into_the_best_linked_one(found: Examine) -> None:
    files = {
        "Baking.md": f"---\nrating: 5\n---\n{PROSE}",
        "Cake.md": PROSE,
        "A.md": "[[Cake]] [[Baking]]",
        "B.md": "[[Cake]]",
        "Heads.md": "# Notes\n- [ ] \n",
        "Other heads.md": "# Notes\n- [ ] \n",
    }
    (finding,) = found(files, "duplicate-note")
    assert (finding.path, finding.subject) == ("Cake.md", "Baking.md")
    assert finding.repair is not None
    steps = [(step.tool, step.args.get("path")) for step in finding.repair.choices[0].steps]
    assert steps == [
        ("vault.setFrontmatter", "Cake.md"),
        ("vault.addValues", "Cake.md"),
        ("vault.retargetLinks", None),
        ("vault.delete", "Baking.md"),
    ]


@pytest.mark.parametrize(
    ("link", "kept", "reason", "steps"),
    [
        ("[[Fort]]", "World/Places/Fort.md", "beside more notes with its tags", 1),
        ("[[In/Fort]]", "In/Fort.md", "has more links to it", 2),
    ],
)
def test_links_by_a_bare_name_decide_nothing_between_copies_and_stay(
    found: Examine, link: str, kept: str, reason: str, steps: int
) -> None:
    place = f"---\ntags: [place]\n---\n{PROSE}"
    files = {"In/Fort.md": place, "World/Places/Fort.md": place, "World/Places/Mill.md": "#place"}
    (finding,) = found(files | {"A.md": link}, "duplicate-note")
    assert (finding.path, reason in finding.evidence) == (kept, True)
    assert finding.repair is not None
    assert [len(choice.steps) for choice in finding.repair.choices] == [1, steps]


def test_notes_whose_properties_contradict_each_other_are_no_duplicates(found: Examine) -> None:
    prices = {"Wine/Chablis": 12, "Wine/Muscadet": 9, "Lake": 14, "Lake (copy)": 13, "Pond": 14}
    files = {f"{name}.md": f"---\nprice: {price}\n---\n{PROSE}" for name, price in prices.items()}
    (finding,) = found(files, "duplicate-note")
    assert (finding.path, finding.subject) == ("Lake.md", "Pond.md")


def test_a_duplicate_with_another_value_says_that_it_is_lost(found: Examine) -> None:
    prices = {"Lake": 14, "Lake (copy)": 13}
    files = {f"{name}.md": f"---\nprice: {price}\n---\n{PROSE}" for name, price in prices.items()}
    (finding,) = found(files, "duplicate-note")
    assert finding.repair is not None
    assert [choice.title for choice in finding.repair.choices] == [
        "Keep Lake.md and delete Lake (copy).md, with the other values of price",
        "Keep Lake (copy).md and delete Lake.md, with the other values of price",
    ]


def test_the_note_with_more_properties_is_kept(found: Examine) -> None:
    files = {"A.md": PROSE, "Better.md": f"---\naliases: [A. B.]\n---\n{PROSE}"}
    (finding,) = found(files, "duplicate-note")
    assert finding.path == "Better.md"


def test_the_names_of_copies_are_no_aliases(found: Examine) -> None:
    names = ("Kafka", "Kafka 1", "Kafka (old)", "Kafka - Copy", "Kopie von Kafka", "Broker")
    text = "".join(f"Line {number} says something of its own here.\n" for number in range(12))
    files = {f"{name}.md": PROSE for name in names}
    files |= {"Plan.md": text, "Plan (new).md": text.replace("Line 3", "Row 3")}
    duplicates, similar = found(files, "duplicate-note", "similar-note")
    assert duplicates.repair is not None
    steps = [step for choice in duplicates.repair.choices for step in choice.steps]
    added = [step.args["values"] for step in steps if step.tool == "vault.addValues"]
    assert added == [["Broker"], ["Kafka"], *[["Kafka", "Broker"]] * 3]
    assert similar.repair is not None
    contents = [choice.steps[0].args.get("content", "") for choice in similar.repair.choices]
    assert len(contents) == 3
    assert not any("aliases" in content for content in contents)


def test_notes_of_other_days_and_weeks_with_the_same_text_were_not_filled_in(
    found: Examine,
) -> None:
    names = ("Week 2026-W10", "Week 2026-W11", "2026-03-05 Thu", "2026-03-06 Fri")
    one_day = dict.fromkeys(("2026-03-05 A.md", "2026-03-05 B.md"), PROSE + "More.\n")
    files = {f"{name}.md": PROSE for name in names} | one_day
    assert [finding.path for finding in found(files, "duplicate-note")] == ["2026-03-05 A.md"]


@pytest.mark.parametrize("name", ["My plan", "Work in the shed"])
def test_nearly_the_same_text_is_reported_as_similar(found: Examine, name: str) -> None:
    text = "".join(
        f"Line {number} says something that no other line says.\n" for number in range(12)
    )
    more = text + "One more line at the end.\n"
    files = {
        "Plan.md": text,
        f"{name}.md": more,
        "C.md": PROSE,
        "Form.md": more.replace("Line 1", "Row 1"),
    }
    (finding,) = found(files, "similar-note")
    assert {finding.path, finding.subject} == {"Plan.md", f"{name}.md"}


SHORT = "- passport\n- book\n- charger\n- jacket\n- plugs\n- snacks\n" * 3


@pytest.mark.parametrize("name", ["Pruning (old)", "Pruning copia"])
def test_of_a_very_short_copy_a_word_or_two_may_differ(found: Examine, name: str) -> None:
    text = "February, La Paloma, in the rose garden. Bring gloves{}. Andrew leads."
    files = {"Pruning.md": text.format(""), f"{name}.md": text.format(", saws")}
    (finding,) = found(files, "similar-note")
    assert {finding.path, finding.subject} == {"Pruning.md", f"{name}.md"}


@pytest.mark.parametrize("name", ["Packing (old)", "Packing - Copy", "Copy of Packing", "Pack ing"])
def test_a_short_copy_of_a_note_is_known_by_its_name(found: Examine, name: str) -> None:
    files = {"Packing.md": SHORT, f"{name}.md": SHORT + "- mask\n", f"X/{name}.md": SHORT + "- y\n"}
    (finding,) = found(files, "similar-note")
    assert {finding.path, finding.subject} == {"Packing.md", f"{name}.md"}


@pytest.mark.parametrize("name", ["Packing winter", "Packing-12", "Unpacking"])
def test_a_note_named_like_another_may_have_a_subject_of_its_own(found: Examine, name: str) -> None:
    files = {"Packing.md": SHORT, f"{name}.md": SHORT + "- winter\n"}
    assert not found(files, "similar-note")


def test_notes_about_other_things_in_the_same_words_are_not_similar(found: Examine) -> None:
    countries, weeks, days = (
        "".join(f"Line {number} is the same in all {name}.\n" for number in range(12))
        for name in ("countries", "weeks", "days")
    )
    files = {f"{name}.md": f"# {name}\n{countries}" for name in ("France", "Italy")}
    files |= {f"Week {number}.md": weeks + "x\n" * number for number in range(2)}
    files |= {f"2026-01-0{number}.md": days for number in range(1, 4)}
    assert not found(files, "similar-note", "duplicate-note")


def test_similar_notes_are_merged_with_both_texts_and_the_other_name(found: Examine) -> None:
    text = "".join(f"Line {number} says something of its own here.\n" for number in range(12))
    files = {"In/Bee plan.md": text, "Plan for bees.md": text.replace("Line 3", "Row 3")}
    (finding,) = found(files, "similar-note")
    assert finding.repair is not None
    assert not finding.repair.preselected
    write, delete = finding.repair.choices[0].steps
    assert "aliases" in write.args["content"]
    assert "Plan for bees" in write.args["content"]
    assert "Line 3 says" in write.args["content"]
    assert "Row 3 says" in write.args["content"]
    assert delete.args == {"path": "Plan for bees.md"}


def test_similar_notes_of_one_name_are_named_by_their_paths(found: Examine) -> None:
    text = "".join(f"Line {number} says something of its own here.\n" for number in range(12))
    files = {"A/Plan.md": text, "B/Plan.md": text.replace("Line 3", "Row 3")}
    (finding,) = found(files, "similar-note")
    assert repairs(finding)[1][1] == "Keep A/Plan.md and delete B/Plan.md"
    assert finding.repair is not None
    assert "aliases" not in finding.repair.choices[0].steps[0].args["content"]


@pytest.mark.parametrize(
    ("one", "other", "count"),
    [
        ("Faust I", "Faust II", 0),
        ("Letter to Anna", "Letter to Ben", 0),
        ("Brioche", "Brioche vegan", 0),
        ("Brioche", "Brioche old", 1),
        ("Bee notes", "Bee notez", 1),
        ("202401020132 Literacy", "202507070707 Literacy", 1),
        ("Projects/A/Log", "Projects/B/Log", 0),
        ("A/Log", "B/Log", 1),
    ],
)
def test_notes_of_a_series_and_of_a_kind_that_the_vault_knows_are_two(
    found: Examine, one: str, other: str, count: int
) -> None:
    text = "".join(f"Line {number} says something of its own here.\n" for number in range(40))
    files = {f"{one}.md": text, f"{other}.md": f"{text}One more.", "Tart.md": "#diet/vegan"}
    assert len(found(files, "similar-note")) == count


def test_of_nested_tags_the_parent_that_differs_is_reported(found: Examine) -> None:
    files = {f"{number}.md": "#project/home" for number in range(3)}
    files |= {"P/x.md": "#Projects/garden", "P/y.md": "#project/Home #📚book"}
    subjects = [finding.subject for finding in found(files, "tag-spelling")]
    assert subjects == ["Projects project", "project/Home project/home"]


def test_tags_that_differ_in_case_get_the_usual_spelling(found: Examine) -> None:
    files = {f"{number}.md": "#Book" for number in range(3)} | {"x.md": "#book"}
    (case,) = found(files, "tag-spelling")
    assert repairs(case) == (True, ["#book → #Book", "#Book → #book"])


def test_of_two_equally_frequent_tags_the_one_in_lower_case_comes_first(found: Examine) -> None:
    (finding,) = found({"a.md": "#Book", "b.md": "#book"}, "tag-spelling")
    assert repairs(finding)[1][0] == "#Book → #book"


def test_a_note_may_have_both_spellings_of_a_tag(found: Examine) -> None:
    (finding,) = found({"A.md": "#mood #Mood", "B.md": "#Mood"}, "tag-spelling")
    assert repairs(finding) == (False, ["#mood → #Mood", "#Mood → #mood"])


@pytest.mark.parametrize(
    ("usual", "other", "evidence", "renames"),
    [
        (
            "arc/moor",
            "Arc/Moor",
            "they differ in case only",
            ["Arc → arc", "arc/moor → arc/moor"],
        ),
        ("café", "cafe\u0301", "they look the same, but", ["cafe\u0301 → café"]),
    ],
)
def test_tags_above_others_and_in_another_unicode_form(
    found: Examine, usual: str, other: str, evidence: str, renames: list[str]
) -> None:
    files = {f"{number}.md": f"#{usual}" for number in range(3)} | {"x.md": f"#{other}"}
    (finding,) = found(files, "tag-spelling")
    assert finding.evidence.startswith(evidence)
    assert finding.repair is not None
    assert finding.repair.preselected
    steps = finding.repair.choices[0].steps
    assert [f"{step.args['from']} → {step.args['to']}" for step in steps] == renames


def test_several_spellings_are_one_finding_with_a_choice_of_each(found: Examine) -> None:
    spellings = ["sci-fi", "sci-fi", "SciFi", "sci_fi"]
    files = {f"{n}.md": f"---\ng: {text}\n---\n#{text}" for n, text in enumerate(spellings)}
    tag, value = found(files, "tag-spelling", "property-value")
    assert repairs(tag) == (
        False,
        ["#sci_fi, #SciFi → #sci-fi", "#sci-fi, #SciFi → #sci_fi", "#sci-fi, #sci_fi → #SciFi"],
    )
    assert repairs(value)[1][0] == "g: “sci_fi”, “SciFi” → “sci-fi”"
    assert value.repair is not None
    (step,) = value.repair.choices[0].steps
    assert step.args["from"] == ["sci_fi", "SciFi"]


RELATED_TAGS = ["book books", "glass glasses", "bus buses", "analysis analyses", "hobby hobbies"]
RELATED_TAGS += [
    "Rezept Rezepte",
    "Sitzung Sitzungen",
    "Woche Wochen",
    "Beet Beete",
    "café cafe",
    "cafés cafe",
    "büro buero",
    "büros büro",
]
CONTEXTS = {
    "in A": {"A/x.md": "#{one}", "A/y.md": "#{other}", "1.md": "#{one}", "2.md": "#{one}"},
    "with #p": {"A/x.md": "#{one} #p", "y.md": "#{other} #p", "1.md": "#{one}", "2.md": "#{one}"},
    "below #top": {
        "A/x.md": "#top/{one}",
        "y.md": "#top/{other}",
        "1.md": "#top/{one}",
        "2.md": "#top/{one}",
    },
}
NO_CONTEXTS = (
    {"A/x.md": "#{one} #p", "B/y.md": "#{other} #q", "z.md": "#{one} #{other}"},
    {"Daily/2026-01-01.md": "#{one}", "Daily/2026-01-02.md": "#{other}"},
    {"A/x.md": "#{one} #p", **{f"A/{number}.md": "#{other} #p" for number in range(9)}},
    {f"A/{number}.md": ("#{one}", "#{other}")[number % 2] for number in range(5)},
)


@pytest.mark.parametrize("tags", RELATED_TAGS)
@pytest.mark.parametrize("context", CONTEXTS)
def test_other_forms_of_a_tag_in_the_same_context_are_a_question(
    found: Examine, tags: str, context: str
) -> None:
    one, other = tags.split()
    files = {path: text.format(one=one, other=other) for path, text in CONTEXTS[context].items()}
    (finding,) = found(files | dict.fromkeys(["b.md", "c.md", "d.md"], "text"), "tag-spelling")
    assert finding.evidence.endswith(context)
    assert repairs(finding)[0] is False


@pytest.mark.parametrize("tags", ["news new", "means mean", "glasses glass", "resumé resume"])
@pytest.mark.parametrize("files", NO_CONTEXTS)
def test_tags_that_only_look_like_forms_of_each_other_are_not_reported(
    found: Examine, tags: str, files: dict[str, str]
) -> None:
    one, other = tags.split()
    files = {path: text.format(one=one, other=other) for path, text in files.items()}
    assert not found(files | dict.fromkeys(["b.md", "c.md", "d.md"], "text"), "tag-spelling")


@pytest.mark.parametrize(
    ("tags", "count"),
    [("x1 x-1", 0), ("v1-2 v12", 0), ("week1 week-1", 1), ("to-do ToDo", 1), ("not note", 0)],
)
def test_hyphens_of_tags_count_beside_numbers(found: Examine, tags: str, count: int) -> None:
    one, other = tags.split()
    files = {"A/x.md": f"#{one}", "A/y.md": f"#{other}"} | dict.fromkeys(
        ["b.md", "c.md", "d.md"], "text"
    )
    assert len(found(files, "tag-spelling")) == count


def test_values_of_another_type_than_obsidian_declares(found: Examine) -> None:
    files = {"A.md": '---\nrating: "5"\n---\n', "B.md": "---\nrating: good\n---\n"}
    first, second = found(files, "property-type", property_types={"rating": "number"})
    assert repairs(first) == (False, ["rating: “5” → 5"])
    assert second.repair is None


DATES = {
    "2026/4/9": ["2026-04-09"],
    "24.12.2026": ["2026-12-24"],
    "13/04/2026": ["2026-04-13"],
    "3/4/2026": ["2026-04-03", "2026-03-04"],
    "20260409": ["2026-04-09"],
    "4.3.26": ["2026-03-04"],
    "3 March 2026": ["2026-03-03"],
    "12. März 2026": ["2026-03-12"],
    "3 March": [],
    "March 2026": [],
    "2026-13-01": [],
    "tomorrow": [],
}


@pytest.mark.parametrize("text", DATES)
def test_a_date_in_another_form_is_offered_in_each_way_to_read_it(
    found: Examine, text: str
) -> None:
    files = {"A.md": f"---\ndue: {text}\n---\n", "B.md": "---\ndue: {{date}}\n---\n"}
    (finding,) = found(
        files,
        "property-type",
        property_types={"due": "date"},
        read_day=lambda words: parse_day(words, NOW.date()),
    )
    titles = repairs(finding)[1] if finding.repair is not None else []
    assert [title.rpartition(" → ")[2] for title in titles] == [f"“{day}”" for day in DATES[text]]


@pytest.mark.parametrize(
    ("usual", "text", "readings"),
    [
        (range(18200, 88200, 10000), "12.500", [12500, 12.5]),
        (range(18200, 88200, 10000), "1,280", [1280, 1.28]),
        ([0.1, 0.2, 0.3, 0.5, 0.6, 0.7], "1.250", [1.25, 1250]),
        ([0.1, 0.2, 0.3, 0.5, 0.6, 0.7], "0.125", [0.125]),
        (range(1, 9), "1,200", [1200, 1.2]),
    ],
)
def test_a_number_with_a_point_is_offered_in_each_way_to_read_it(
    found: Examine, usual: Sequence[float], text: str, readings: list[float]
) -> None:
    (finding,) = found(notes_with("x", *usual, f"'{text}'"), "property-type")
    assert repairs(finding) == (False, [f"x: “{text}” → {number}" for number in readings])


def test_a_list_is_no_text(found: Examine) -> None:
    files = {"A.md": "---\ncourse: [x]\n---\n", "B.md": "---\ncourse: [x, y]\n---\n"}
    one, several = found(files, "property-type", property_types={"course": "text"})
    assert repairs(one) == (False, ['course: ["x"] → “x”'])
    assert several.repair is None


@pytest.mark.parametrize("comma", [", ", "、", "，"])
def test_a_list_in_one_text_is_offered_in_each_way_to_read_it(found: Examine, comma: str) -> None:
    text = f"Lea{comma}Tom"
    (finding,) = found(notes_with("x", "[a]", "[b, c]", "[d]", f"'{text}'"), "property-type")
    titles = [f'x: “{text}” → ["Lea", "Tom"]', f'x: “{text}” → ["{text}"]']
    assert repairs(finding) == (False, titles)


BARE_LINKS = {
    "[[Ada]]": "[[Ada]]",
    "[[Ada#Life|A]]": "[[Ada#Life|A]]",
    "\n  - [[Ada]]\n  - '[[Bob]]'": ["[[Ada]]", "[[Bob]]"],
}


@pytest.mark.parametrize("written", BARE_LINKS)
def test_a_link_without_quotes_is_no_link(found: Examine, written: str) -> None:
    files = {"A.md": f"---\nrelated: {written}\n---\n", "Ada.md": "x"}
    (finding,) = found(files, "property-type", property_types={"related": "text"})
    assert finding.repair is not None
    (step,) = finding.repair.choices[0].steps
    assert step.args["set"] == {"related": BARE_LINKS[written]}


def test_lists_in_a_list_are_no_links(found: Examine) -> None:
    assert not found(notes_with("x", "[[1, 2], [3, 4]]", "[[a, b]]", "[[a], [b]]"), "property-type")


def test_a_folder_may_use_a_property_in_its_own_way(found: Examine) -> None:
    files = {f"Essays/{n}.md": "---\ncourse: x\n---\n" for n in range(9)}
    books = {f"Books/{n}.md": "---\ncourse: [x]\n---\n" for n in range(3)}
    slip = {"Essays/x.md": "---\ncourse: [x]\n---\n"}
    (finding,) = found(files | books | slip, "property-type")
    assert finding.path == "Essays/x.md"


def test_types_and_values_are_those_of_a_folder_or_tag(found: Examine) -> None:
    files = {f"Books/{n}.md": f"---\nrating: {n}\n---\n#read" for n in range(20)}
    files |= {f"Films/{n}.md": f"---\nrating: good {n}\n---\n" for n in range(20)}
    (finding,) = found(files | {"Books/x.md": "---\nrating: '5'\n---\n"}, "property-type")
    assert finding.path == "Books/x.md"
    assert finding.evidence == "number according to most other notes in Books"


def notes_with(name: str, *values: object) -> dict[str, str]:
    return {f"{n}.md": f"---\n{name}: {value}\n---\n" for n, value in enumerate(values)}


@pytest.mark.parametrize(
    ("values", "other"),
    [
        ([5, 6, 7, 8, 9, 10], ["'9'", "'12000'"]),
        (["2026-01-01", "2026-01-02", "2026-01-03", "2026-01-04"], ["07.02.2026", "1/2/2026"]),
        (["true", "false"], ["'yes'", "'no'"]),
        (["true", "false", "true"], ["maybe"]),
        ([1980, 1990, 2000], ["ca. 1970"]),
        ([7.5, 8], ["'6,5'", "50 min"]),
        (range(10), ["50 min", "ca. 70"]),
    ],
)
def test_values_that_should_have_the_type_of_most_are_all_reported(
    found: Examine, values: list[object], other: list[str]
) -> None:
    usual = [*values, *values]
    findings = found(notes_with("x", *usual, *other), "property-type")
    assert [one.path for one in findings] == [f"{len(usual) + n}.md" for n in range(len(other))]


@pytest.mark.parametrize(
    "values",
    [
        ["{author: A}"] * 12,  # maps are none of Obsidian's types
        [*range(9780140449000, 9780140449012), "'0140390448'"],  # identifiers
        [1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.7, 1.8, 1.9, "'1.10'"],
        [*range(100000, 100012), "'014118776X'"],
        [*(number / 10 for number in range(12)), "1.2.3"],
        ["1", "2", "3", "'4'", "'5'", "'6'"],  # no usual type
        [*range(1, 13), "good", "bad", "fair", "so so"],
        [*range(1, 6), "Appendix"],
        ["true", "false", "true", "maybe"],
        [*range(1, 4), "3b"],
    ],
)
def test_values_without_a_usual_type_are_not_reported(found: Examine, values: list[object]) -> None:
    assert not found(notes_with("x", *values), "property-type")


def test_values_that_cannot_be_read_do_not_hide_those_that_can(found: Examine) -> None:
    values = [*(f"2026-01-0{day}" for day in range(1, 6)), "ca. May 2026", "01.05.2026"]
    (finding,) = found(notes_with("x", *values), "property-type")
    assert repairs(finding) == (False, ["x: “01.05.2026” → “2026-05-01”"])


LIKELY = {
    "a date with the month first": (["03/04/2026", "03/14/2026"], "“2026-03-04”"),
    "a date with the day first": (["03/04/2026", "14/03/2026"], "“2026-04-03”"),
    "a list of names": (["'Rousseau, J.'", "['Alberts, B.']"], '["Rousseau, J."]'),
}


@pytest.mark.parametrize("case", LIKELY)
def test_the_reading_that_fits_the_other_values_comes_first(found: Examine, case: str) -> None:
    values, first = LIKELY[case]
    kind = "list" if "list" in case else "date"
    finding = found(notes_with("x", *values), "property-type", property_types={"x": kind})[0]
    assert repairs(finding)[1][0].endswith(f"→ {first}")


def test_the_day_of_a_note_says_how_its_date_is_read(found: Examine) -> None:
    files = {"Lesson 2026-02-10.md": "---\nx: 02/10/2026\n---\n"}
    (finding,) = found(files, "property-type", property_types={"x": "date"})
    assert repairs(finding)[1][0] == "x: “02/10/2026” → “2026-02-10”"


@pytest.mark.parametrize(
    ("text", "checked"), [("Ja", ["true"]), ("sí", ["true"]), ("нет", ["false"]), ("quizás", [])]
)
def test_yes_and_no_are_read_in_several_languages(
    found: Examine, text: str, checked: list[str]
) -> None:
    (finding,) = found(notes_with("x", text), "property-type", property_types={"x": "checkbox"})
    titles = repairs(finding)[1] if finding.repair is not None else []
    assert titles == [f"x: “{text}” → {value}" for value in checked]


def test_a_rule_of_the_vault_says_which_values_are_allowed(found: Examine) -> None:
    rules = (
        PropertyRule(property="status", folder="P", values=("active", "done")),
        PropertyRule(property="rating", tag="#book", type="number"),
    )
    files = {
        "P/A.md": "---\nStatus: Done\n---\n",
        "P/B.md": "---\nstatus: [active, paused]\n---\n",
        "C.md": "---\nstatus: paused\nrating: x\n---\n",
        "D.md": "---\nrating: x\n---\n#book/old",
    }
    rating, done, paused = found(files, "property-type", "property-value", property_rules=rules)
    assert repairs(done) == (False, ["Status: “Done” → “done”", "Status: “Done” → “active”"])
    assert paused.text == "status: “paused” is not allowed in P."
    assert paused.repair is not None
    (step,) = paused.repair.choices[0].steps
    assert step.args["set"] == {"status": ["active"]}
    assert (rating.path, "tagged #book" in rating.evidence) == ("D.md", True)


OTHER_VALUES = {
    f"{name}{number}.md": f"---\nx: {name}\nstatus: {name}\n---\n"
    for name in ("Open", "Lost")
    for number in range(2)
}


def test_values_that_differ_in_case_get_the_usual_spelling(found: Examine) -> None:
    files = {f"{number}.md": "---\nstatus: Done\n---\n" for number in range(3)}
    files["x.md"] = "---\nstatus: done\n---\n"
    (finding,) = found(files | OTHER_VALUES, "property-value")
    titles = ["status: “done” → “Done”", "status: “Done” → “done”"]
    assert (finding.path, repairs(finding)) == ("x.md", (True, titles))
    assert finding.repair is not None
    (step,) = finding.repair.choices[0].steps
    assert step.tool == "vault.renameValue"  # queries follow


@pytest.mark.parametrize(
    ("usual", "other", "preselected"),
    [
        ("Thomas Mann", "Thomas  Mann", False),
        ("on hold", "on-hold", False),
        ("Sci-Fi", "SciFi", False),
        ("back log", "backlog", False),
        ("René", "Rene", False),
        ("In Progress", "in progress", True),
        ("De Vries", "de vries", True),
        ("Kgm", "kgm", False),
        ("IPhone", "iPhone", False),
        ("Dr. Who", "dr. who", False),
        ("On_hold", "on_hold", False),
    ],
)
def test_values_that_differ_in_more_than_case_are_a_question(
    found: Examine, usual: str, other: str, preselected: bool
) -> None:
    files = {f"{number}.md": f"---\nx: {usual}\n---\n" for number in range(3)}
    files |= OTHER_VALUES | {"x.md": f"---\nx: {other}\n---\n"}
    (finding,) = found(files, "property-value")
    titles = [f"x: “{other}” → “{usual}”", f"x: “{usual}” → “{other}”"]
    # No value is given two blanks.
    assert repairs(finding) == (preselected, titles[: 1 + ("  " not in other)])


@pytest.mark.parametrize(
    ("values", "first"),
    [
        (["Vus", "vus", "fini", "rangé"], "x: “Vus” → “vus”"),
        (["Non-lus", "non lus", "non lus"], "x: “Non-lus” → “non lus”"),
    ],
)
def test_of_two_equally_frequent_values_the_likelier_one_comes_first(
    found: Examine, values: list[str], first: str
) -> None:
    (finding,) = found(notes_with("x", *values), "property-value")
    assert repairs(finding)[1][0] == first


@pytest.mark.parametrize(
    ("others", "preselected"),
    [
        (["open", "open", "lost", "lost"], True),
        ([], False),
        (["Open", "Open", "lost", "lost"], False),
        (["a3", "b7", "c9", "d1"], False),
    ],
)
def test_case_is_unified_where_the_other_values_are_a_vocabulary_in_one_case(
    found: Examine, others: list[str], preselected: bool
) -> None:
    (finding,) = found(notes_with("x", *["done"] * 9, "Done", *others), "property-value")
    assert repairs(finding)[0] is preselected


def test_values_that_look_the_same_say_so(found: Examine) -> None:
    (finding,) = found(notes_with("x", "café", "café", "cafe\u0301"), "property-value")
    assert finding.evidence.startswith("they look the same")


def test_the_value_without_odd_spaces_comes_first(found: Examine) -> None:
    files = {f"{number}.md": "---\nx: Thomas  Mann\n---\n" for number in range(3)}
    (finding,) = found(files | {"x.md": "---\nx: Thomas Mann\n---\n"}, "property-value")
    assert repairs(finding)[1][0] == "x: “Thomas  Mann” → “Thomas Mann”"


def test_short_values_and_scripts_whose_marks_make_letters_differ(found: Examine) -> None:
    values = ["かき", "かぎ", "мои", "мой", "A B", "AB", "MW", "mW", "IT", "it", "5 mV", "5 MV"]
    values += [
        "Es",
        "es",
        "MIT",
        "mit",
        "Mit",
        "avó",
        "pero",
        "però",
        "avô",
        "C",
        "c",
        "Mb",
        "MB",
        "SHH",
        "Shh",
        "D minor",
        "d minor",
        "Maße",
        "Masse",
    ]
    values += ["readme.md", "README.md", "https://x.org/A", "https://x.org/a", "a3f0", "A3F0"]
    files = {f"{n}.md": f"---\nx: {value}\n---\n" for n, value in enumerate(values)}
    assert not found(files, "property-value")


def test_attachments_that_no_file_names_are_unused(found: Examine) -> None:
    files = {
        "A.md": "![[a.png]] ![b](img/b%20c.png) <img src='d.png'>",
        "B.canvas": '{"nodes":[{"id":"1","type":"file","file":"e.pdf"}]}',
        "C.base": "filters: 'cover == \"f.jpg\"'",
        **dict.fromkeys(("a.png", "img/b c.png", "d.png", "e.pdf", "f.jpg", "g.png"), "x"),
    }
    assert [finding.path for finding in found(files, "unused-attachment")] == ["g.png"]


WRITTEN = {
    "a & b.png": ("A.md", "<img src='x/a &amp; b.png'>"),
    "it's.png": ("A.md", '<img src="it&#39;s.png">'),
    "my_fig.png": ("A.md", r"![x](my\_fig.png)"),
    "ü 1.png": (
        "B.canvas",
        r'{"nodes":[{"id":"1","type":"text","text":"<img src=\u00fc 1.png>"}]}',
    ),
    "Photo.PNG": ("A.md", "<img src='photo.png'>"),
    "dot.png": ("A.md", "<img src='dot%2Epng'>"),
    "all.mp4": ("A.md", "<video src='all.%6D%70%34'>"),
    "a b.png": ("A.md", "<img src='a%20b.png'>"),
    "Café.png": ("A.md", "<img src='Cafe\u0301.png'>"),
    "trip/1.jpg": ("A.md", "```gallery\npath: trip\n```\n"),
    "base/1.jpg": ("A.base", 'filters:\n  and:\n    - file.inFolder("base")\n'),
    "Map.excalidraw.svg": ("D/Map.excalidraw.md", "x"),
}


@pytest.mark.parametrize("name", WRITTEN)
def test_an_attachment_is_in_use_however_a_text_writes_its_name(found: Examine, name: str) -> None:
    path, text = WRITTEN[name]
    files = {path: text, name: "x", "other/1.jpg": "x"}
    findings = found(files, "unused-attachment")
    assert [finding.path for finding in findings] == ["other/1.jpg"]


def test_properties_that_are_no_yaml_are_reported(found: Examine) -> None:
    files = {
        "A.md": "---\na: [1\n---\n",
        "B.md": "---\na: {{x}}\n---\n",
        "C.md": "---\nb: 1\n---\n",
    }
    assert [finding.path for finding in found(files, "invalid-properties")] == ["A.md"]


CONFLICT_COPIES = {
    "Plan.sync-conflict-20240101-120000-ABCDEF7.md": "Syncthing",
    "Plan (Conflicted copy iPhone 202401011200).md": "Obsidian Sync",
    "Plan (conflicted copy 2024-01-01 120000).md": "Nextcloud",
    "Plan (conflicted copy ada 2024-01-01 120000).md": "Nextcloud",
    "Plan (Ada's conflicted copy 2024-01-01).md": "Dropbox",
    "Plan (Copie en conflit de Ada 2024-01-01).md": "Dropbox",
    "Plan (Ada の競合コピー 2024-01-01).md": "Dropbox",
    "Plan (Case Conflict 1).md": "Dropbox",
    "Plan_nas_Jan-02-101112-2024_Conflict.md": "Synology Drive",
    "Plan (SFConflict ada@example.org 2024-01-02-10-11-12).md": "Seafile",
}
NO_COPIES = (
    "Plan (conflict 1914-1918).md",
    "Plan for a role conflict.md",
    "PLAN_BASE_101.md",
    "Plan-draft.md",
    "Plan-USA.md",
    "Plan~.md",
)


@pytest.mark.parametrize("name", CONFLICT_COPIES)
def test_conflict_copies_are_known_by_their_names(found: Examine, name: str) -> None:
    (finding,) = found({"Plan.md": "a", name: "b"}, "conflict-copy")
    assert (finding.path, finding.subject) == (name, "Plan.md")
    assert CONFLICT_COPIES[name] in finding.evidence


@pytest.mark.parametrize("name", NO_COPIES)
def test_other_names_are_those_of_no_conflict_copies(found: Examine, name: str) -> None:
    assert not found({"Plan.md": PROSE, name: PROSE}, "conflict-copy")


VAGUE_NAMES = (
    "Plan 2",
    "Plan~feature-x",
    "Plan (1)",
    "Plan-DESKTOP-4F2K1QP",
    "Plan-MacBook Pro de Ada-2",
)


def test_numbered_notes_are_a_series_and_no_copies(found: Examine) -> None:
    names = {"Session.md": "April", "Session 2.md": "June", "Session 3.md": "July"}
    files = {name: f"Agenda: budget, roof and hall. Next in {names[name]}." for name in names}
    assert not found(files, "conflict-copy", "similar-note")


@pytest.mark.parametrize("name", VAGUE_NAMES)
def test_vague_names_need_nearly_the_same_text_and_are_reported_once(
    found: Examine, name: str
) -> None:
    text = "".join(f"Line {number} says something of its own here.\n" for number in range(5))
    files = {"Plan.md": text, f"{name}.md": text + "An addition.\n"}
    files |= {"Sub/Plan.md": text, f"Sub/{name}.md": "Quite another text.\n" * 5}
    (finding,) = found(files, "conflict-copy", "similar-note")
    assert (finding.kind, finding.path) == ("conflict-copy", f"{name}.md")
    assert finding.repair is not None
    assert not finding.repair.preselected


def test_a_copy_with_the_same_text_is_deleted(found: Examine) -> None:
    files = {"Plan.md": PROSE, "Plan.sync-conflict-20240101-120000-ABCDEF7.md": PROSE}
    (finding,) = found(files, "conflict-copy")
    assert repairs(finding) == (True, [f"Delete {finding.path}, the text is the same"])


MARKS = "a\n<<<<<<< HEAD\nmine\n=======\ntheirs\n>>>>>>> other\nz\n"


def test_conflict_marks_are_no_example_in_code(found: Examine) -> None:
    files = {
        "A.md": MARKS,
        "B.md": MARKS.replace("\n", "\r\n"),
        "C.md": f"---\n{MARKS}---\n",
        "D.md": f"```\n{MARKS}```\n",
        "E.md": MARKS.replace(">>>>>>>", ">>"),
    }
    findings = found(files, "conflict-copy")
    assert [finding.path for finding in findings] == ["A.md", "B.md", "C.md"]
    repair = findings[0].repair
    assert repair is not None
    assert not repair.preselected
    contents = [choice.steps[0].args["content"] for choice in repair.choices]
    assert contents == ["a\nmine\ntheirs\nz\n", "a\nmine\nz\n", "a\ntheirs\nz\n"]


def test_a_number_behind_a_name_is_a_copy_only_with_the_same_text(found: Examine) -> None:
    files = {"Plan.md": PROSE, "Plan 2.md": PROSE, "Week.md": PROSE * 2, "Week 2.md": "Other."}
    assert [finding.path for finding in found(files, "conflict-copy")] == ["Plan 2.md"]


def test_notes_that_were_not_changed_for_long(make_vault: MakeVault) -> None:
    files = {"Old.md": "x", "Used.md": "x", "2020-05-17.md": "x", "New.md": "[[Used]]"}
    store = make_vault(files)
    old = datetime(2020, 5, 17, tzinfo=UTC).timestamp()
    for name in ("Old", "Used", "2020-05-17"):
        os.utime(f"{store.real_path}/{name}.md", (old, old))
    only: list[FindingKind] = ["stale-note"]
    report = examine(DiskView(store), HealthSettings(now=NOW), only=only)
    assert [(one.path, one.text) for one in report.findings] == [
        ("Old.md", "The note was last changed on 2020-05-17.")
    ]


def test_open_tasks_past_their_day_are_overdue(found: Examine) -> None:
    text = """\
- [ ] Call Ada 📅 2026-11-22
- [x] Done 📅 2026-11-01
- [ ] Later [due:: 2026-11-23]
  - [/] Half done [due:: 2026-10-01]
- [ ] No day 📅 2026-02-30
"""
    files = {"A.md": text, "B.md": f"```\n{text}```\n", "C.md": f"%%\n{text}\n%%\n```\n```\n{text}"}
    findings = found(files, "overdue-task")
    assert [(one.path, one.line) for one in findings] == [
        ("A.md", 1),
        ("A.md", 4),
        ("C.md", 11),
        ("C.md", 14),
    ]


def test_notes_with_other_line_ends_and_marks_have_the_same_text(found: Examine) -> None:
    prose = PROSE + "A second line.\n"
    files = {
        "A.md": prose,
        "B.md": "\ufeff---\nx: ü\n---\n\n" + prose.replace("\n", "\r\n"),
        "C.md": "--- no fence\n" + prose,
    }
    (finding,) = found(files, "duplicate-note")
    assert {finding.path, finding.subject} == {"A.md", "B.md"}


def test_equal_overdue_tasks_have_ids_and_repairs_of_their_own(found: Examine) -> None:
    task = "- [ ] Call Ada 📅 2026-11-22\n"
    findings = found({"A.md": f"{task}\n{task}"}, "overdue-task")
    assert len({finding.id for finding in findings}) == 2
    assert [
        finding.repair.choices[1].steps[0].args["line"] for finding in findings if finding.repair
    ] == [1, 3]


def test_ignored_findings_are_listed_apart(make_vault: MakeVault) -> None:
    view = DiskView(make_vault({"A.md": "[[x]]", "B.md": "[[A]] [[y]]"}))
    settings = HealthSettings(now=NOW)
    first, second = examine(view, settings).findings
    report = examine(view, settings, ignored={first.id})
    assert (report.findings, report.ignored) == ((second,), (first,))


def test_a_sound_vault_has_no_findings(found: Examine) -> None:
    files = {"A.md": f"[[B]]\n{PROSE}", "B.md": "[[A]] ![[c.png]] #tag", "c.png": "x"}
    assert found(files) == []
