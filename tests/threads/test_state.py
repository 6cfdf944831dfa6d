"""Reading a thread back from its records."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from agents import check_pairs
from obsidian_agent.agent.conversation import CUT_MARK
from obsidian_agent.agent.events import TokensUsed
from obsidian_agent.agent.privacy.consent import Level, SharedPart
from obsidian_agent.agent.usage import total
from obsidian_agent.bootstrap import Wiring, build_session
from obsidian_agent.providers.base import ChatMessage, ToolCall
from obsidian_agent.threads.log_store import pruned
from obsidian_agent.threads.state import (
    CRASH_MARK,
    ThreadState,
    export_plan,
    line_of,
    message_in,
    message_record,
    note_of,
    records_in,
    thread_of,
    usage_record,
)
from support import MakeVault

HEAD = {
    "k": "thread",
    "format": 1,
    "id": "00112233aabbccdd",
    "created": "2026-03-14T09:30:00.000+00:00",
}


def user(text: str) -> dict[str, Any]:
    return {"k": "message", "role": "user", "text": text, "time": "t"}


def model(text: str, *calls: str) -> dict[str, Any]:
    made = [{"id": each, "name": "vault__readFile", "arguments": "{}"} for each in calls]
    return {
        "k": "message",
        "role": "assistant",
        "text": text,
        "time": "t",
        **({"calls": made} if made else {}),
    }


def asked(text: str) -> dict[str, Any]:
    return {"k": "asked", "text": text, "time": "t"}


def stream(text: str) -> dict[str, Any]:
    return {"k": "stream", "text": text}


def version(number: int) -> dict[str, Any]:
    return {"k": "version", "n": number, "time": "t"}


def read(*records: dict[str, Any]) -> ThreadState:
    state = thread_of([HEAD, *records])
    assert state is not None
    check_pairs(state.messages)
    return state


def told(state: ThreadState) -> list[tuple[str, str, str]]:
    return [(said.role, said.text, said.state) for said in state.entries]


def test_a_turn_reads_back_as_it_was() -> None:
    look = {
        "k": "said",
        "role": "look",
        "text": "Read a file",
        "time": "t",
        "data": {"tool": "vault.readFile"},
    }
    result = {"k": "message", "role": "tool", "text": "…", "callId": "a", "time": "t"}
    state = read(
        asked("Hi"),
        user("# Request\nHi"),
        model("", "a"),
        look,
        result,
        stream("Hel"),
        model("Hello"),
        version(1),
    )
    assert told(state) == [
        ("person", "Hi", "whole"),
        ("look", "Read a file", "whole"),
        ("model", "Hello", "whole"),
    ]
    assert [message.role for message in state.messages] == [
        "user",
        "assistant",
        "tool",
        "assistant",
    ]
    assert state.count == 2


def test_a_stream_without_an_end_is_a_cut_answer() -> None:
    state = read(asked("Hi"), user("Hi"), stream("Hel"), stream("lo wor"))
    assert told(state)[-1] == ("model", f"Hello wor{CRASH_MARK}", "cut")
    assert state.messages[-1].text.startswith("Hello wor")


def test_what_was_cut_stays_cut_when_the_conversation_goes_on() -> None:
    state = read(
        asked("Hi"),
        user("Hi"),
        stream("Hel"),
        asked("Again"),
        user("Again"),
        model("Hello"),
        version(1),
    )
    assert [state for _, _, state in told(state)] == ["whole", "cut", "whole", "whole"]


def test_a_message_that_no_model_was_asked_is_kept_and_marked() -> None:
    state = read(asked("Hi"))
    assert told(state) == [("person", "Hi", "unsent")]
    assert not state.messages


def test_calls_that_a_crash_left_open_are_answered() -> None:
    state = read(
        asked("Hi"),
        user("Hi"),
        model("", "a", "b"),
        {"k": "message", "role": "tool", "text": "x", "callId": "a"},
    )
    assert [message.role for message in state.messages] == ["user", "assistant", "tool", "tool"]
    assert "CANCELLED" in state.messages[-1].text


def test_an_answer_that_the_person_stopped_is_cut() -> None:
    assert told(read(asked("Hi"), user("Hi"), model(f"Hel{CUT_MARK}"), version(1)))[-1][2] == "cut"


def test_the_last_twenty_versions_can_be_come_back_to() -> None:
    turns = [
        record
        for n in range(1, 31)
        for record in (asked(f"q{n}"), user(f"q{n}"), model(f"a{n}"), version(n))
    ]
    assert [each.number for each in read(*turns).versions] == list(range(11, 31))
    back = read(*turns, {"k": "rewound", "n": 12})
    assert back.entries[-1].text == "a12"
    assert len(back.messages) == 24
    assert read(*turns, {"k": "rewound", "n": 3}).entries[-1].text == "a30", "too old"


def test_the_turns_that_were_left_can_be_come_back_to_by_their_questions() -> None:
    turns = [
        record
        for n in range(1, 4)
        for record in (asked(f"q{n}"), user(f"q{n}"), model(f"a{n}"), version(n))
    ]
    back = read(*turns, {"k": "rewound", "n": 1})
    assert [one.question for one in back.versions] == ["q1", "q2", "q3"]
    assert back.version == 1
    assert read(*turns, asked("q4")).version is None


def test_a_plan_that_ran_is_not_offered_again_when_its_turn_is_come_back_to() -> None:
    plan = {"k": "said", "role": "plan", "text": "Tidy", "data": {"plan": {}}}
    run = {"k": "said", "role": "run", "text": "Tidy", "data": {"runId": "r1"}}
    turns = [asked("q1"), user("q1"), plan, version(1), run, asked("q2"), user("q2"), version(2)]
    back = read(*turns, {"k": "rewound", "n": 1})
    assert [said.role for said in back.entries] == ["person", "plan", "run"]


def test_a_compacted_history_is_short_for_the_model_and_whole_for_people() -> None:
    state = read(
        user("one"),
        model("1"),
        user("two"),
        model("2"),
        {"k": "compacted", "upTo": 2, "summary": "They counted."},
    )
    assert [message.text.splitlines()[-1] for message in state.messages] == [
        "They counted.",
        "two",
        "2",
    ]
    assert [said.text for said in state.entries] == ["1", "2"]


def test_what_is_in_the_messages_and_where_they_went_is_remembered() -> None:
    record = {
        "k": "shared",
        "shared": {"Garden.md": [3, 40], "x": [9, 1], "y": "z"},
        "told": "openai https://x",
        "plain": ["m"],
    }
    conversation = read(user("a"), model("", "id1"), record).conversation()
    assert conversation.shared == {"Garden.md": SharedPart("Garden.md", Level.TEXT, 40)}
    assert (conversation.recipient, conversation.plain) == ("openai https://x", {"m"})
    assert conversation.with_unique_id(ToolCall("id1", "x", "{}")).id != "id1", (
        "an id is never used twice"
    )


def test_titles_models_ticks_and_usage() -> None:
    usage = TokensUsed(
        "openai/x", 100, 20, requests=2, cached=64, cost=0.25, seconds=1.5, first=0.2, tools=0.1
    )
    state = read(
        {"k": "set", "title": "T", "titledBy": "person", "model": "openai/x"},
        {"k": "done", "index": "3", "on": True},
        dict(usage_record(usage)),
    )
    assert (state.title, state.titled_by, state.model, state.done) == (
        "T",
        "person",
        "openai/x",
        {"3": True},
    )
    assert state.usage == [usage]
    summed = total([usage, TokensUsed("y", 1, 1)])
    assert (summed.prompt, summed.requests, summed.cost) == (101, 3, 0.25)


def test_whatever_stands_in_a_line_nothing_breaks() -> None:
    odd: list[dict[str, Any]] = [
        {"k": "message", "role": "king", "text": "x"},
        {"k": "message", "role": "user"},
        {"k": "message", "role": "assistant", "text": "x", "calls": [{"id": 1}, "y"]},
        {"k": "said", "role": "nobody", "text": "x"},
        {"k": "usage", "model": 3},
        {"k": "shared", "shared": []},
        {"k": "compacted", "upTo": 99, "summary": "s"},
        {"k": "rewound", "n": 7},
        {"k": "later", "what": "ever"},
    ]
    read(user("a"), *odd, model("b"))
    assert thread_of([]) is None
    assert thread_of([user("a")]) is None


def test_lines_are_json_and_damaged_ones_are_counted() -> None:
    message = ChatMessage("assistant", "Größe \ud800\n📏", (ToolCall("a", "n", '{"x": 1}'),))
    data = (
        line_of(HEAD)
        + b"\x00\x00garbage\n"
        + line_of(message_record(message, "t"))
        + b'{"k":"asked","te'
    )
    records, damaged = records_in(data)
    assert damaged == 1
    assert [record["k"] for record in records] == ["thread", "message"]
    back = message_in(records[1])
    assert back is not None
    assert (back.calls, back.text[:5]) == (message.calls, "Größe")


def test_pruning_keeps_everything_that_reading_needs() -> None:
    turns: list[dict[str, Any]] = []
    for n in range(1, 41):
        pieces = [stream(f"{n}.{part} ") for part in range(5)]
        ending = [] if n == 35 else [model(f"a{n}")]  # a crash in turn 35
        turns += [
            asked(f"q{n}"),
            user(f"q{n}"),
            *pieces,
            *ending,
            *([version(n)] if n != 35 else []),
        ]
    before = [HEAD, *turns]
    after = pruned(before)
    assert after is not None
    assert len(after) < len(before) - 150
    one, other = thread_of(before), thread_of(after)
    assert one is not None
    assert one == other
    assert any(said.state == "cut" for said in one.entries)
    assert pruned(after) is None


# --- conversations as notes ---

TIME = "2026-03-14T09:31:00.000+00:00"
TEXT = "# Beds\n\nUse ${selection} and $${x} and `code`.\n```\n# no heading in code is lost\n```"


def thread() -> ThreadState:
    state = thread_of(
        [
            HEAD,
            {"k": "set", "title": 'Beds: ${a/b} "soil"', "titledBy": "person"},
            {"k": "asked", "text": "What about ${date}?", "time": TIME},
            {"k": "message", "role": "user", "text": "x", "time": TIME},
            {"k": "said", "role": "look", "text": "Read a file", "time": TIME},
            {"k": "message", "role": "assistant", "text": TEXT, "time": TIME},
            {"k": "sources", "paths": ["Garden.md"]},
            {
                "k": "said",
                "role": "run",
                "text": "Make beds",
                "time": TIME,
                "data": {"status": "done"},
            },
        ]
    )
    assert state is not None
    return state


def test_the_note_has_both_sides_with_their_headings() -> None:
    note = note_of(thread())
    assert note.startswith(
        "---\ncreated: '2026-03-14T09:30:00'\n---\n\n# Beds: ${a/b} \"soil\"\n\n## You, 2026-03-14 09:31\n\nWhat about ${date}?"
    )
    assert "## Agent, 2026-03-14 09:31\n\n### Beds" in note
    assert "Sources: [[Garden]]" in note
    assert "> Make beds" in note
    assert "Read a file" not in note


def test_the_plan_previews_to_exactly_that_note(make_vault: MakeVault, tmp_path: Path) -> None:
    session = build_session(Wiring(make_vault({"A.md": ""}), tmp_path / "state"))
    preview = session.plans.dry_run(export_plan(thread()))
    assert preview.valid, preview.errors
    *_, change = preview.change_set.changes
    assert change.content == note_of(thread()).encode()
    assert change.path.text.startswith("Conversations/Beds")
    assert not session.plans.dry_run(export_plan(thread(), "A.md")).valid, (
        "what is there is never replaced"
    )
