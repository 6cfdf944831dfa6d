"""Questions of a conversation without a model: what is answered, and what stays a choice."""

from __future__ import annotations

import asyncio
import re

import pytest

from obsidian_agent.agent.events import (
    AgentEvent,
    Answer,
    NeedsInput,
    PlanningResult,
    TurnFailed,
    unlisted,
)
from obsidian_agent.services.offline_answer import (
    AnsweringPlanner,
    answer,
    is_question,
    suggestions,
)
from offline_desk import Desk
from support import MakeVault

FILES = {
    "Boiler.md": "---\npressure:\n---\n# Boiler\n\n## Service\n\nThe pressure is 1.5 bar.\n",
    "Inbox.md": "- [ ] call the bank\n- [ ] \n- [>] forwarded\n",
    "Plan.md": "Ask [[Wifi]].\n",
    "Wifi.md": "---\nrouter: old\n---\n# Wifi\n\nGuest network:\n\n- name: sunflower\n- key: yellow\n",
}


@pytest.fixture
def desk(make_vault: MakeVault) -> Desk:
    return Desk(make_vault(FILES))


def planned(desk: Desk, message: str) -> PlanningResult:
    async def ignore(_: AgentEvent) -> None:
        pass

    return asyncio.run(AnsweringPlanner(desk.planner).plan(desk.request(message), ignore))


def test_a_question_is_answered_with_note_heading_and_line(desk: Desk) -> None:
    assert planned(desk, "What is the pressure of the boiler?") == Answer(
        "Notes with most of the words “pressure boiler”: 1\n"
        "1. [[Boiler]] › Service, line 8: The pressure is 1.5 bar.",
        ("Boiler.md",),
    )


def test_the_lines_behind_a_passage_and_the_properties_of_a_note_are_shown(desk: Desk) -> None:
    assert planned(desk, "What was that guest network?") == Answer(
        "Notes with most of the words “guest network”: 1\n"
        "1. [[Wifi]], line 6: Guest network:\n   - name: sunflower\n   - key: yellow",
        ("Wifi.md",),
    )
    answer = planned(desk, "How about the wifi?")
    assert isinstance(answer, Answer)
    assert answer.text.splitlines()[1:3] == ["1. [[Wifi]], line 4", "   router: old"]


@pytest.mark.parametrize(
    ("message", "title"),
    [
        ("tidy up the boiler", ""),
        ("Could you move the boiler to Archive?", "Move Boiler to Archive"),
        ("Kannst du Boiler nach Archiv verschieben?", "Move Boiler to Archiv"),
        ("Peux-tu renommer Boiler en Chaudron ?", "Rename Boiler to Chaudron"),
    ],
)
def test_what_may_be_an_instruction_is_not_answered(desk: Desk, message: str, title: str) -> None:
    verdict = planned(desk, message)
    assert isinstance(verdict, NeedsInput)
    assert not title or verdict.candidates[0].title == title


def test_a_polite_question_is_answered(desk: Desk) -> None:
    assert isinstance(planned(desk, "Could you show me all notes without tags?"), Answer)


def test_a_question_never_ends_in_a_choice(desk: Desk) -> None:
    nothing = planned(desk, "Why is the sky blue?")
    assert isinstance(nothing, Answer)
    assert nothing.text.startswith("No note holds most of these words.")


@pytest.mark.parametrize(
    ("message", "expected"),
    [("which notes", True), ("京都?", True), ("wann war das", True), ("delete Inbox", False)],
)
def test_questions_are_recognized(message: str, expected: bool) -> None:
    assert is_question(message) is expected


def test_a_question_is_answered_although_a_word_has_no_part_in_it(desk: Desk) -> None:
    answer = planned(desk, "show all notes without tags, honestly?")
    assert isinstance(answer, Answer)
    assert answer.sources == ("Boiler.md", "Inbox.md", "Plan.md", "Wifi.md")
    assert answer.text.splitlines()[0] == "4 notes without tags (not used: “honestly”):"


def test_a_number_chooses_another_reading_of_the_question_before(desk: Desk) -> None:
    planner = AnsweringPlanner(desk.planner)
    answers = [
        planner._plan(desk.request(message))
        for message in ("Is there a note that gladly would link to Wifi?", "2", "9")
    ]
    assert isinstance(answers[0], Answer), answers[0]
    assert "Or did you mean: 2. " in answers[0].text, answers[0].text
    assert isinstance(answers[1], Answer), answers[1]
    assert isinstance(answers[2], TurnFailed)


def test_a_word_that_limits_is_not_passed_over(desk: Desk) -> None:
    answer = planned(desk, "show all notes without tags, but not honest?")
    assert isinstance(answer, Answer)
    assert answer.text.splitlines()[0] == "4 notes without tags (not used: “but not honest”):"


TASKS = {
    "Jobs.md": "- [ ] call\n- [ ] \n- [>] sent on\n- [-] given up\n- [ ] wait 📅 2026-03-18\n",
    "Kit/Trip.md": "---\nattendees: '[[Ada]]'\nplaces: Japan\n---\nA trip.\n",
    "Forms/Daily.md": "- [ ] fill in\n",
    ".obsidian/templates.json": '{"folder": "Forms"}',
}


@pytest.mark.parametrize(
    ("question", "lines"),
    [
        ("what do I still have to do?", ["2 open tasks in all notes:", "- [[Jobs]]: call"]),
        (
            "what do I still have to do before Christmas?",
            ["1 open task in all notes due before 2026-12-25:"],
        ),
        (
            "was muss ich vor Weihnachten noch erledigen",
            ["1 open task in all notes due before 2026-12-25:"],
        ),
        ("where did I go in Japan?", ["1 note with places Japan:", "- [[Trip]]"]),
        ("who was at the Trip?", ["Trip:", "- [[Trip]]: attendees: Ada; places: Japan"]),
        ("which notes are tagged green?", ["No notes tagged #green."]),
        (
            "where is Ada linked from?",
            ["1 note that links to Ada:", "- [[Trip]]"],
        ),
    ],
)
def test_an_answer_reads_like_a_sentence_and_lists_each_note_once(
    question: str, lines: list[str], make_vault: MakeVault
) -> None:
    desk = Desk(make_vault({**TASKS, "Ada.md": ""}))
    answered = planned(desk, question)
    assert isinstance(answered, Answer), answered
    assert answered.text.splitlines()[: len(lines)] == lines
    assert unlisted(answered.text, answered.sources) == ()


def test_what_is_suggested_first_is_what_is_answered(make_vault: MakeVault) -> None:
    desk = Desk(make_vault(TASKS))
    for question, title in (
        ("where did I go in Japan?", "Find notes: 1 note with places Japan"),
        ("what do I still have to do?", "Find tasks: open tasks in all notes"),
    ):
        assert suggestions(desk.planner, desk.request(question))[0].title == title


BAND = {
    "Songs/Harbour.md": "---\nbpm: 96\nstatus: ready\nwriter: '[[Nina Castro]]'\n---\nTwo eggs.\n",
    "Songs/Tin Roof.md": "---\nbpm: 132\nstatus: in review\n---\n- [ ] record it 📅 2026-03-18\n",
    "Songs/Lantern.md": "---\nbpm: 120\nstatus: draft\n---\n- [ ] write it 📅 2026-03-10\n",
    "Gigs/2026-02-07 Anchor.md": "---\nfee: 250\n---\nPlayed [[Tin Roof]] with Claire.\n",
    "Gigs/2026-05-09 Fair.md": "---\nfee: 600\n---\nPlay [[Tin Roof]].\n",
    "People/Nina Castro.md": "---\nbirthday: 1991-02-18\nrole: singer\n---\n",
    "People/Owen Pratt.md": "---\nbirthday: 1986-07-03\n---\n",
    "Wine/Rioja.md": "---\nprice: 24\nyear: 2018\nbottles: 1\n---\n",
    "Wine/Barolo.md": "---\nprice: 68\nyear: 2016\nbottles: 2\n---\n",
    "Devices/Oven.md": "---\nbrand: Bosch\nwarranty_until:\n---\n",
    "Devices/Kettle.md": "---\nbrand: Miele\nwarranty_until: 2029-02-11\n---\n",
    "Plans/Kitchen.md": "---\nstatus: active\n---\nAfter [[Tin Roof]].\n",
    "Plans/Shed.md": "---\nstatus: finished\n---\n",
    "Rollen/Erika.md": "---\neintritt: 2015-04-01\n---\n",
    "Jobs.md": "- [ ] call #band\n- [ ] wait\n- [x] sleep #band\n",
    "Money/Costs.md": "## Costs\n\n| Item | Price | Ordered |\n|---|---:|---|\n"
    "| Worktop | 1,200 | no |\n| Tap | 140 | yes |\n",
    "书/围城.md": "---\n状态: 未读\n---\n",
    "书/活着.md": "---\n状态: 已读\n---\n",
    "映画/羅生門.md": "---\n監督: 黒澤明\n---\n",
    "映画/東京物語.md": "---\n監督: 小津安二郎\n評価: 4\n---\n",
}

QUESTIONS = [
    ("when is Nina Castro's birthday?", "Birthday of Nina Castro: 1991-02-18"),
    ("what role has Nina?", "Role of Nina Castro: singer"),
    ("東京物語の監督は誰？", "監督 of 東京物語: 小津安二郎"),
    ("Wann ist Erika eingetreten?", "Eintritt of Erika: 2015-04-01"),
    ("total fee of the gigs", "Total fee of notes in Gigs: 850"),
    ("which gig paid the most?", "Highest fee of notes in Gigs: 600 (not used: “paid”)"),
    ("average bpm in Songs?", "Average bpm of notes in Songs: 116"),
    ("songs with bpm over 100", "2 notes in Songs with bpm > 100:"),
    ("songs with bpm of 120 and up", "2 notes in Songs with bpm >= 120:"),
    ("which songs have a bpm of 120 or better?", "2 notes in Songs with bpm >= 120:"),
    ("Songs mit bpm 120 oder weniger?", "2 notes in Songs with bpm <= 120:"),
    ("Songs con bpm 120 o más", "2 notes in Songs with bpm >= 120:"),
    ("Songs avec bpm 120 ou plus", "2 notes in Songs with bpm >= 120:"),
    ("bpm 120以上のSongs", "2 notes in Songs with bpm >= 120:"),
    ("which gigs have 1 link or more?", "2 notes in Gigs with at least 1 link:"),
    ("Which songs are in review?", "1 note in Songs with status in review:"),
    ("which people have no role?", "1 note in People without role:"),
    ("評価のない映画は？", "1 note without 評価 in 映画:"),
    ("which songs with eggs are there?", "1 note in Songs that holds “eggs”:"),
    ("notes with status done", "No notes with status done."),
    ("is there a song by Nina Castro?", "Yes: 1 note with writer [[Nina Castro]] in Songs:"),
    ("which wine is the cheapest?", "Lowest price of notes in Wine: 24"),
    ("which wine is the oldest?", "Lowest year of notes in Wine: 2016"),
    ("Welcher Wine unter 50 Euro?", "1 note in Wine with price < 50:"),
    ("Which notes in Wine have colour red?", "No notes in Wine with colour red."),
    (
        "when did I perform Tin Roof?",
        "Latest date of notes that link to Tin Roof: 2026-02-07 (not used: “perform”)",
    ),
    ("does Harbour link to Lantern?", "No: Harbour that links to Lantern: nothing found."),
    (
        "Welche Songs kommen in keinem Gig vor?",
        "2 notes in Songs not linked from 2026-02-07 Anchor not linked from 2026-05-09 Fair:",
    ),
    ("which devices have no warranty date?", "1 note in Devices without warranty_until:"),
    ("which plans are not finished?", "1 note in Plans not with status finished:"),
    ("welche Plans sind nicht abgeschlossen?", "1 note in Plans not with status finished:"),
    ("哪些 Plans 还没有完成？", "1 note in Plans not with status finished:"),
    ("哪些书还没读？", "1 note in 书 with 状态 未读:"),
    ("哪些书已经读完了？", "1 note in 书 with 状态 已读:"),
    ("which devices haven't got a warranty_until?", "1 note in Devices without warranty_until:"),
    ("what is the fee total?", "Total fee of all notes: 850"),
    (
        "which tasks are due in 2026?",
        "2 open tasks in all notes due from 2026-01-01 due before 2027-01-01:",
    ),
    ("which items are not ordered yet?", "Rows of the table in Costs with not Ordered: 1"),
    ("what does the worktop cost?", "Rows of the table in Costs with Item worktop: 1,200"),
    ("what do the items cost in total?", "Total Price of rows of the table in Costs: 1340"),
    ("what is the most expensive item?", "Highest Price of rows of the table in Costs: 1200"),
    ("which notes are mentioned in Kitchen?", "1 note linked from Kitchen:"),
    ("which notes mention Tin Roof?", "3 notes that link to Tin Roof:"),
    ("who wrote Harbour?", "Writer of Harbour: Nina Castro"),
    ("when is Nina's birthday?", "Birthday of Nina Castro: 1991-02-18"),
    ("which wines are under 50?", "1 note in Wine with price < 50:"),
    ("how much did I pay for the Rioja?", "Price of Rioja: 24"),
    ("wines from before 2017", "1 note in Wine with year < 2017:"),
    ("list my wines sorted by price", "Price of 2 notes in Wine:"),
    ("when is the next gig?", "Next date of notes in Gigs: 2026-05-09"),
    ("which songs need eggs?", "1 note in Songs that holds “eggs” (not used: “need”):"),
    ("which songs have open tasks?", "2 notes in Songs with open tasks:"),
    ("how many open #band tasks?", "1 open task in notes tagged #band:"),
    ("whats overdue", "1 open task in all notes due before 2026-03-14:"),
    (
        "was ist nächste Woche fällig?",
        "1 open task in all notes due from 2026-03-16 due before 2026-03-23:",
    ),
    (
        "how many unchecked items are there, due before April?",
        "2 open tasks in all notes due before 2026-04-01 (not used: “items”):",
    ),
    (
        "que faut-il faire avant avril ? tâches",
        "2 open tasks in all notes due before 2026-04-01 (not used: “faire”):",
    ),
    (
        "when did we last play Tin Roof?",
        "Latest date of notes that link to Tin Roof: 2026-02-07 (not used: “play”)",
    ),
    (
        "quand ai-je vu Claire la dernière fois ?",
        "Latest date of notes that hold “Claire”: 2026-02-07 (not used: “vu” and “fois”)",
    ),
    (
        "which gigs are in May?",
        "1 note in Gigs dated from 2026-05-01 to 2026-05-31:",
    ),
]


@pytest.mark.parametrize(("question", "first"), QUESTIONS)
def test_the_first_line_states_the_query_and_the_result(
    question: str, first: str, make_vault: MakeVault
) -> None:
    desk = Desk(make_vault(BAND))
    answered = answer(desk.planner, desk.request(question))
    assert isinstance(answered, Answer), answered
    assert answered.text.splitlines()[0] == first


YARD = {
    "Boats/Heron.md": "---\nowner: '[[Ines]]'\nbuilt: 1978\nlength_m: 9\n---\n",
    "Boats/Puffin.md": "---\nowner: '[[Tom]]'\nbuilt: 1991\nlength_m: 6\n---\n",
    "Jobs/Deck.md": "---\nboat: '[[Heron]]'\ndue_on: 2026-04-02\nfee: 700\nby: Marta\n---\n",
    "Jobs/Mast.md": "---\nboat: '[[Heron]]'\ndue_on: 2026-02-20\nfee: 90\nby: Lewis\n---\n",
    "Owners/Ines.md": "---\nemail: ines@example.org\n---\n",
    "Owners/Tom.md": "---\nemail:\n---\n",
    "Stores.md": "| Part | Qty |\n|---|---|\n| Nail | 350 |\n| Anode | 9 |\n",
    "Ideas.md": "",
}

CLASSES = [
    ("which jobs are due before May?", "2 notes in Jobs with due_on < 2026-05-01:"),
    ("which jobs are overdue?", "1 note in Jobs with due_on < 2026-03-14:"),
    ("jobs older than three weeks", "1 note in Jobs with due_on < 2026-02-21:"),
    ("what do we have from Ines?", "1 note with owner [[Ines]]:"),
    ("which notes have Ines as owner?", "1 note with owner [[Ines]]:"),
    ("how many boats does Tom own?", "1 note in Boats with owner [[Tom]]:"),
    ("what is the fee of Deck and when is its due_on?", "Fee and due_on of Deck:"),
    ("which customers have no email?", "1 note without email in Owners (not used: “customers”):"),
    ("Welche Boats haben built 1978 oder älter?", "1 note in Boats with built <= 1978:"),
    (
        "¿A qué notas de Boats no enlaza ninguna otra nota?",
        "1 note in Boats that nothing links to:",
    ),
    ("which notes are completely empty?", "1 note that is empty without properties:"),
    ("how much do the jobs cost?", "Total fee of notes in Jobs: 790"),
    ("list the 2 longest boats", "Highest length_m of notes in Boats: 9"),
    ("which boat is the oldest?", "Lowest built of notes in Boats: 1978"),
    ("what is the next job?", "Next date of notes in Jobs: 2026-04-02"),
]


@pytest.mark.parametrize(("question", "first"), CLASSES)
def test_each_kind_of_condition_is_read_from_the_names_of_the_vault(
    question: str, first: str, make_vault: MakeVault
) -> None:
    desk = Desk(make_vault(YARD))
    answered = answer(desk.planner, desk.request(question))
    assert isinstance(answered, Answer), answered
    assert answered.text.splitlines()[0] == first


DENIED = [
    "which songs dont have a writer yet",
    "which songs havent got a writer",
    "which songs still lack a writer",
    "which songs are missing a writer",
    "which songs never had a writer?",
    "welche songs haben noch keinen writer?",
    "welchen songs fehlt noch writer?",
    "quelles songs n'ont pas encore de writer ?",
    "¿qué songs todavía no tienen writer?",
    "¿a qué songs les falta writer?",
    "quali songs non hanno mai avuto writer?",
    "quais songs ainda não têm writer?",
    "quais songs estão sem writer?",
    "у каких songs ещё нет writer?",
    "哪些 songs 还没有 writer?",
    "writer のない songs は?",
    "which songs dont link to Tin Roof",
    "which songs never mention Tin Roof",
    "which songs dont have open tasks",
    "which tasks dont have a date yet",
    "which tasks arent done",
    "which songs dont exceed bpm 120",
]


@pytest.mark.parametrize("question", DENIED)
def test_a_negation_is_in_the_answer_or_named_as_not_used(
    question: str, make_vault: MakeVault
) -> None:
    desk = Desk(make_vault(BAND))
    answered = answer(desk.planner, desk.request(question))
    assert isinstance(answered, Answer), answered
    assert re.search(r"\b(?:without|not|open)\b|<=|Not used", answered.text), answered.text


def test_the_french_dont_denies_nothing(make_vault: MakeVault) -> None:
    desk = Desk(make_vault(BAND))
    answered = answer(desk.planner, desk.request("quelles songs dont le status est draft ?"))
    assert isinstance(answered, Answer)
    assert answered.sources == ("Songs/Lantern.md",)


@pytest.mark.parametrize(
    "question",
    [
        "which songs exceed bpm 120",
        "welche songs übersteigen bpm 120?",
        "quelles songs dépassent un bpm de 120 ?",
        "¿qué songs superan los 120 bpm?",
        "quali songs superano un bpm di 120?",
        "quais songs ultrapassam o bpm 120?",
        "какие songs превышают bpm 120?",
        "哪些 songs 的 bpm 超过 120?",
        "bpm が 120 を上回る songs",
    ],
)
def test_verbs_compare_with_a_number(question: str, make_vault: MakeVault) -> None:
    desk = Desk(make_vault(BAND))
    answered = answer(desk.planner, desk.request(question))
    assert isinstance(answered, Answer), answered
    assert answered.sources == ("Songs/Tin Roof.md",), answered.text


@pytest.mark.parametrize("message", ["whats overdue", "songs with bpm over 100"])
def test_a_query_needs_no_question_mark(message: str, make_vault: MakeVault) -> None:
    assert isinstance(planned(Desk(make_vault(BAND)), message), Answer)


@pytest.mark.parametrize(
    "message", ["Link Harbour", "open Songs", "tag Songs", "Finish all tasks", "new note Songs"]
)
def test_an_order_of_known_words_is_not_answered(message: str, make_vault: MakeVault) -> None:
    assert not isinstance(planned(Desk(make_vault(BAND)), message), Answer)
