"""Consent to send files, over whole turns with a user whose answers are known."""

from __future__ import annotations

import json
import os
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents import Desk, Person, call, calls, everything_sent, no, only, results, scripted, yes
from obsidian_agent.agent.events import Answer, Notice, ShareRequested, ToolCallFinished
from obsidian_agent.agent.privacy.consent import (
    Gate,
    Grants,
    Level,
    ShareDecision,
    ShareItem,
    ShareRequest,
    common_folder,
)
from obsidian_agent.errors import ConfigError
from obsidian_agent.plan.policy import SharingRules
from obsidian_agent.services.focus import Focus
from obsidian_agent.tools.core.tool import EditorPosition, Selection
from obsidian_agent.vault.paths.path import PathUse, VaultPath, parse
from obsidian_agent.vault.paths.patterns import PathRules
from support import symbolic_link

READ_TWO = calls(
    call("vault__readFiles", filePaths=["Garden.md", "Finance/bank.md"], why="To compare.")
)
DONE = {"text": "Done."}
SECRETS = ("XK4711Q", "secretly", "Tomatoes", "garden soil")


def leaked(text: str) -> list[str]:
    return [secret for secret in SECRETS if secret in text]


# --- files ---


async def test_files_are_asked_for_by_a_checklist(desk: Desk) -> None:
    await desk.turn(scripted(READ_TWO, DONE))
    (request,) = desk.person.asked
    assert (request.kind, request.tool, request.purpose, request.provider) == (
        "files",
        "vault.readFiles",
        "Read files",
        "scripted/test",
    )
    assert request.args == {"filePaths": ["Garden.md", "Finance/bank.md"]}
    first, second = request.items
    assert (first.path.text, first.name, first.why, first.level) == (
        "Garden.md",
        "Garden.md",
        "To compare.",
        Level.TEXT,
    )
    assert first.size == len(desk.files()["Garden.md"])
    assert first.tokens == -(-first.size // 4)
    assert (second.name, request.tokens) == ("bank.md", first.tokens + second.tokens)
    assert request.folder == ""


async def test_only_the_chosen_files_are_sent(desk: Desk) -> None:
    desk.person.decide = only("Garden.md", "Private/diary.md")
    provider = scripted(READ_TWO, DONE)
    events = await desk.turn(provider)
    sent = everything_sent(provider)
    assert leaked(sent) == ["Tomatoes"]
    (result,) = results(provider.requests[1].messages)
    assert "NOT_SHARED" in result
    (finished,) = [event for event in events if isinstance(event, ToolCallFinished)]
    assert (finished.paths, finished.complete, finished.problem) == (("Garden.md",), False, None)
    assert events[-1] == Answer("Done.", ("Garden.md",))


@pytest.mark.parametrize(
    "decide",
    [no, only(), only("Projects/Log.md"), lambda request: ShareDecision("thread", frozenset())],
)
async def test_no_files_is_an_answer_that_the_model_is_told(
    decide: Callable[[ShareRequest], ShareDecision], desk: Desk
) -> None:
    desk.person.decide = decide
    provider = scripted(READ_TWO, calls(call("vault__readFile", path="Projects/Plan.md")), DONE)
    events = await desk.turn(provider)
    assert leaked(everything_sent(provider)) == []
    several, single = results(provider.requests[-1].messages)
    assert "The user shared no files" in several
    assert "did not share this" in single
    assert [event.problem for event in events if isinstance(event, ToolCallFinished)] == [
        None,
        None,
    ]
    assert events[-1] == Answer("Done.")


async def test_a_missing_file_does_not_keep_the_others(desk: Desk) -> None:
    provider = scripted(
        calls(call("file_read", filePaths=["Nope.md", "Garden.md", "../x", "Projects"])), DONE
    )
    await desk.turn(provider)
    assert desk.person.paths() == [["Garden.md"]]
    (result,) = results(provider.requests[1].messages)
    assert "Tomatoes" in result
    document = json.loads(result.split("\n")[1])
    assert [entry.get("error", "").partition(":")[0] for entry in document["files"]] == [
        "FILE_NOT_FOUND",
        "",
        "PATH_OUTSIDE_VAULT",
        "NOT_TEXT",
    ]


async def test_who_was_refused_and_asks_the_same_again_is_not_asked_about(desk: Desk) -> None:
    desk.person.decide = no
    again = calls(call("vault__readFile", path="Finance/bank.md", why="Please!"))
    provider = scripted(*[again] * 5, DONE)
    await desk.turn(provider)
    assert len(desk.person.asked) == 1
    assert leaked(everything_sent(provider)) == []
    await desk.turn(scripted(again, DONE))
    assert len(desk.person.asked) == 2, "a new message of the user asks again"


async def test_a_question_that_fails_is_a_no(desk: Desk) -> None:
    def broken(request: ShareRequest) -> ShareDecision:
        raise RuntimeError("no screen")

    desk.person.decide = broken
    provider = scripted(READ_TWO, DONE)
    await desk.turn(provider)
    assert leaked(everything_sent(provider)) == []


# --- results ---


async def test_a_search_shows_what_it_would_send(desk: Desk) -> None:
    provider = scripted(calls(call("vault__searchText", query="garden")), DONE)
    await desk.turn(provider)
    (request,) = desk.person.asked
    assert request.kind == "results"
    assert {item.path.text: item.previews for item in request.items} == {
        "Garden.md": ("1: # Garden",),
        "Private/diary.md": ("3: I love my garden, secretly.",),
        "Projects/Plan.md": ("7: Buy garden soil.",),
    }
    sent = results(provider.requests[1].messages)[0]
    assert all(
        preview.partition(": ")[2] in sent for item in request.items for preview in item.previews
    )


async def test_of_a_search_only_what_was_chosen_is_sent(desk: Desk) -> None:
    desk.person.decide = only("Projects/Plan.md")
    provider = scripted(calls(call("vault__searchText", query="garden")), DONE)
    await desk.turn(provider)
    sent = everything_sent(provider)
    assert leaked(sent) == ["garden soil"]
    assert "diary" not in sent
    assert '"total"' not in sent, "how much there is elsewhere is not told"
    assert "only a part" in sent


async def test_a_refused_search_tells_not_even_how_much_there_is(desk: Desk) -> None:
    desk.person.decide = no
    provider = scripted(calls(call("vault__searchText", query="XK4711Q")), DONE)
    await desk.turn(provider)
    assert results(provider.requests[1].messages) == [
        '{"note": "The user did not share this. Continue without it, or ask the user."}'
    ]


async def test_a_search_without_a_hit_asks_nobody(desk: Desk) -> None:
    provider = scripted(calls(call("vault__searchText", query="zebra")), DONE)
    await desk.turn(provider)
    assert desk.person.asked == []
    assert '"total": 0' in results(provider.requests[1].messages)[0]


async def test_names_are_asked_for_too(desk: Desk) -> None:
    desk.person.decide = only("Projects", "Projects/Plan.md")
    provider = scripted(calls(call("list_vault_files")), DONE)
    await desk.turn(provider)
    (request,) = desk.person.asked
    assert {item.level for item in request.items} == {Level.NAME}
    assert {"Finance", "Projects", "Garden.md"} <= {item.path.text for item in request.items}
    sent = everything_sent(provider)
    assert "Plan.md" in sent
    assert "bank" not in sent
    assert "Finance" not in sent


async def test_properties_are_more_than_a_name(desk: Desk) -> None:
    await desk.turn(scripted(calls(call("vault__query", folder="Projects")), DONE))
    (request,) = desk.person.asked
    assert {item.path.text: item.level for item in request.items} == {
        "Projects/Log.md": Level.NAME,
        "Projects/Plan.md": Level.PREVIEW,
    }
    assert "status" in request.items[1].previews[0]


async def test_backlinks_belong_to_the_notes_that_link(desk: Desk) -> None:
    await desk.turn(scripted(calls(call("get_file_backlinks", path="Projects/Plan.md")), DONE))
    assert desk.person.paths() == [["Garden.md"]]


async def test_metadata_and_links_belong_to_the_note_that_is_read(desk: Desk) -> None:
    for name in (
        "get_file_metadata",
        "get_outgoing_links",
        "vault__getUnresolvedLinks",
        "util__parseHeadings",
        "util__parseTasks",
    ):
        await desk.turn(scripted(calls(call(name, path="Garden.md")), DONE))
    assert desk.person.paths() == [["Garden.md"]] * 5
    assert {item.level for request in desk.person.asked for item in request.items} == {Level.TEXT}


async def test_pages_are_short_and_tell_where_the_next_begins(
    make_desk: Callable[..., Desk],
) -> None:
    text = "ä" * 5_000 + "END"
    desk = make_desk({"Long.md": text})
    provider = scripted(
        calls(call("read_vault_file", path="Long.md")),
        calls(call("read_vault_file", path="Long.md", offset=8_000)),
        calls(call("file_read", filePaths=["Long.md"])),
        DONE,
    )
    await desk.turn(provider)
    first, second, whole = results(provider.requests[-1].messages)
    assert first.count("ä") == 4_000
    assert '"nextOffset": 8000' in first
    assert second.count("ä") == 1_000
    assert "END" in second
    assert '"truncated": false' in second
    assert whole.count("ä") == 5_000


async def test_vault_search_shows_short_previews(make_desk: Callable[..., Desk]) -> None:
    desk = make_desk({"Wide.md": "x" * 90 + "needle" * 30 + "y" * 90})
    provider = scripted(calls(call("vault_search", query="needle" * 30)), DONE)
    await desk.turn(provider)
    (preview,) = desk.person.asked[0].items[0].previews
    assert len(preview.partition(": ")[2]) == 200


async def test_lists_are_paged(make_desk: Callable[..., Desk]) -> None:
    desk = make_desk(
        {f"Many/{number:03}.md": "[[Garden]]\n" for number in range(120)},
        rules=SharingRules.of(allow=["**"]),
    )
    made: list[tuple[str, dict[str, Any]]] = [
        ("vault__listFiles", {"folder": "Many"}),
        ("get_file_backlinks", {"path": "Garden.md", "limit": 7, "offset": 3}),
    ]
    provider = scripted(calls(*(call(name, **arguments) for name, arguments in made)), DONE)
    await desk.turn(provider)
    listed, linking = (
        json.loads(text.split("\n")[1]) for text in results(provider.requests[1].messages)
    )
    assert (len(listed["files"]), listed["hasMore"]) == (50, True)
    assert [item["path"] for item in linking["items"]] == [
        f"Many/{number:03}.md" for number in range(3, 10)
    ]
    assert linking["hasMore"] is True


# --- the scopes of an answer ---

READ_BANK = calls(call("vault__readFile", path="Finance/bank.md"))


async def test_once_is_once(desk: Desk) -> None:
    await desk.turn(scripted(READ_BANK, READ_BANK, DONE))
    assert len(desk.person.asked) == 2


async def test_for_this_thread_is_for_these_files_at_this_level(desk: Desk) -> None:
    desk.person.decide = lambda request: ShareDecision("thread", frozenset({"Garden.md"}))
    await desk.turn(
        scripted(READ_TWO, calls(call("vault__readFile", path="Garden.md")), READ_BANK, DONE)
    )
    await desk.turn(scripted(calls(call("get_file_metadata", path="Garden.md")), DONE))
    assert desk.person.paths() == [["Garden.md", "Finance/bank.md"], ["Finance/bank.md"]]


async def test_lines_for_this_thread_are_not_the_note(desk: Desk) -> None:
    desk.person.decide = lambda request: ShareDecision("thread")
    await desk.turn(
        scripted(
            calls(call("vault__searchText", query="garden")),
            calls(call("vault__readFile", path="Private/diary.md")),
            DONE,
        )
    )
    assert [request.kind for request in desk.person.asked] == ["results", "files"]


async def test_for_this_folder_is_for_everything_in_it_but_what_was_left_out(desk: Desk) -> None:
    desk.person.decide = lambda request: ShareDecision("folder", frozenset({"Projects/Plan.md"}))
    both = calls(call("vault__readFiles", filePaths=["Projects/Plan.md", "Projects/Log.md"]))
    await desk.turn(
        scripted(both, calls(call("vault__readFile", path="Projects/Log.md")), READ_BANK, DONE)
    )
    assert desk.person.asked[0].folder == "Projects"
    assert desk.person.paths() == [
        ["Projects/Plan.md", "Projects/Log.md"],
        ["Projects/Log.md"],
        ["Finance/bank.md"],
    ]
    (Path(desk.store.real_path) / "Projects/New.md").write_text("new")
    await desk.turn(scripted(calls(call("vault__readFile", path="Projects/New.md")), DONE))
    assert len(desk.person.asked) == 3


async def test_this_folder_is_the_one_of_what_is_asked_for(desk: Desk) -> None:
    """Earlier decisions do not enlarge it."""
    desk.rules = SharingRules.of(allow=["Garden.md"])
    desk.person.decide = lambda request: ShareDecision("folder")
    await desk.turn(
        scripted(READ_TWO, calls(call("vault__readFile", path="Projects/Plan.md")), DONE)
    )
    assert [
        (request.folder, paths)
        for request, paths in zip(desk.person.asked, desk.person.paths(), strict=True)
    ] == [
        ("Finance", ["Finance/bank.md"]),
        ("Projects", ["Projects/Plan.md"]),
    ]


async def test_a_new_conversation_knows_nothing_of_that(desk: Desk) -> None:
    desk.person.decide = lambda request: ShareDecision("folder")
    await desk.turn(scripted(READ_BANK, DONE))
    desk.conversation = type(desk.conversation)()
    await desk.turn(scripted(READ_BANK, DONE))
    assert len(desk.person.asked) == 2


# --- rules ---


async def test_a_rule_allows_without_asking(desk: Desk) -> None:
    desk.rules = SharingRules.of(allow=["Projects"])
    provider = scripted(
        calls(call("vault__readFiles", filePaths=["Projects/Plan.md", "Finance/bank.md"])), DONE
    )
    await desk.turn(provider)
    assert desk.person.paths() == [["Finance/bank.md"]]
    assert "garden soil" in everything_sent(provider)


async def test_what_is_denied_does_not_exist(desk: Desk) -> None:
    """Omit denied files from lists, searches, links, hints, errors, dry runs and questions."""
    desk.rules = SharingRules.of(allow=["**"], deny=["Private", "bank.md"])
    (Path(desk.store.real_path) / "Garden.md").write_text("# Garden\n[[diary]] [[Finance/bank]]\n")
    (Path(desk.store.real_path) / "Finance" / "ok.md").write_text("[[Private/diary]]")
    plan = {
        "version": "1.0",
        "goal": "Move",
        "riskLevel": "writes",
        "steps": [
            {
                "id": "m",
                "tool": "vault.rename",
                "args": {"from": "private/Diary.md", "to": "Finance/bank.md"},
            }
        ],
    }
    provider = scripted(
        calls(
            call("vault__listFiles"),
            call("vault__listFiles", folder="Private"),
            call("vault__searchText", query="secret"),
            call("vault__searchName", query="diary"),
            call("vault__readFile", path="Private/diary.md"),
            call("vault__readFile", path="private/Diary.md"),
            call("vault__readFile", path="Nope/diary.md"),
            call("vault__readFiles", filePaths=["Finance/bank.md", "Private/diary.md"]),
            call("get_file_backlinks", path="Private/diary.md"),
            call("vault__getOutgoingLinks", path="Finance/ok.md"),
            call("get_file_metadata", path="Finance/ok.md"),
        ),
        calls(call("propose_plan", plan=plan)),
        DONE,
    )
    events = await desk.turn(provider)
    found = [text.lower() for text in results(provider.requests[-1].messages)]
    listed, folder, text, name, read, spelled, missing, several, back, out, about, dry = found
    assert "private" not in listed
    assert "bank" not in listed
    assert '"error"' in folder
    assert "file_not_found" in folder
    assert '"total": 0' in text
    assert '"total": 0' in name
    assert read.replace("private/diary", "x") == missing.replace("nope/diary", "x")
    assert spelled.replace("private/diary", "x") == missing.replace("nope/diary", "x"), (
        "no hint at another spelling"
    )
    assert several.count("file_not_found") == 2
    assert "file_not_found" in back
    assert '"count": 0' in out
    assert '"path": null' in about
    assert "file_not_found" in dry
    assert leaked(everything_sent(provider)) == []
    assert not [event for event in events if isinstance(event, ShareRequested)]


@pytest.mark.parametrize("link", [symbolic_link, os.link])
async def test_a_link_is_no_way_to_what_is_denied(
    desk: Desk, link: Callable[[Path, Path], None]
) -> None:
    root = Path(desk.store.real_path)
    link(root / "Private/diary.md", root / "alias.md")
    (root / "Open").symlink_to("Private")
    desk.rules = SharingRules.of(allow=["**"], deny=["Private"])
    provider = scripted(
        calls(
            call("vault__readFiles", filePaths=["alias.md", "Open/diary.md"]),
            call("vault__searchText", query="secretly"),
            call("vault__listFiles", folder="Open"),
            call("vault__listFiles"),
            call("vault__query"),
        ),
        DONE,
    )
    await desk.turn(provider)
    assert leaked(everything_sent(provider)) == []
    answers = results(provider.requests[1].messages)
    assert "diary" not in answers[2]
    for answer in answers[3:]:
        assert "Garden.md" in answer
        assert "alias" not in answer
        assert "Open" not in answer


@pytest.mark.parametrize("link", [symbolic_link, os.link])
async def test_an_allowed_folder_does_not_allow_what_its_links_lead_to(
    desk: Desk, link: Callable[[Path, Path], None]
) -> None:
    root = Path(desk.store.real_path)
    link(root / "Finance/bank.md", root / "Projects/alias.md")
    desk.rules = SharingRules.of(allow=["Projects"])
    desk.person.decide = no
    provider = scripted(calls(call("vault__readFile", path="Projects/alias.md")), DONE)
    await desk.turn(provider)
    assert desk.person.paths() == [["Projects/alias.md"]]
    assert leaked(everything_sent(provider)) == []


async def test_models_on_this_machine_may_get_everything_that_is_not_denied(desk: Desk) -> None:
    desk.rules = SharingRules.of(deny=["Private"], local=True)
    desk.person.decide = no
    local, elsewhere = scripted(READ_TWO, DONE), scripted(READ_TWO, DONE)
    local.local = True
    await desk.turn(local)
    assert desk.person.asked == []
    assert "XK4711Q" in everything_sent(local)
    desk.conversation = type(desk.conversation)()
    await desk.turn(elsewhere)
    assert len(desk.person.asked) == 1
    assert leaked(everything_sent(elsewhere)) == []


async def test_a_model_on_this_machine_is_asked_about_unless_the_rules_say_so(desk: Desk) -> None:
    desk.person.decide = no
    provider = scripted(READ_TWO, DONE)
    provider.local = True
    await desk.turn(provider)
    assert len(desk.person.asked) == 1


def test_bad_patterns_are_told() -> None:
    with pytest.raises(ConfigError):
        SharingRules.of(deny=["../x"])


# --- what is open and selected ---

SELECTED = Selection("The secret number is XK4711Q.", EditorPosition(2, 0), EditorPosition(2, 29))


async def test_the_selection_is_asked_for(make_desk: Callable[..., Desk]) -> None:
    desk = make_desk(focus=Focus("Finance/bank.md", SELECTED), person=Person(yes))
    provider = scripted(DONE)
    await desk.turn(provider)
    (request,) = desk.person.asked
    assert (request.kind, request.items[0].path.text, request.items[0].previews) == (
        "selection",
        "Finance/bank.md",
        (SELECTED.text,),
    )
    assert "XK4711Q" in everything_sent(provider)


async def test_a_selection_that_is_not_shared_can_still_be_used(
    make_desk: Callable[..., Desk],
) -> None:
    desk = make_desk(focus=Focus("Finance/bank.md", SELECTED), person=Person(no))
    provider = scripted(calls(call("editor__getSelection")), DONE)
    await desk.turn(provider)
    sent = everything_sent(provider)
    assert leaked(sent) == []
    assert "Text of 29 characters is selected" in sent
    assert len(desk.person.asked) == 2


async def test_a_selection_of_the_command_line_needs_no_question(
    make_desk: Callable[..., Desk],
) -> None:
    selection = Selection("- one\n- two", from_argument=True)
    desk = make_desk(focus=Focus(None, selection), person=Person(no))
    provider = scripted(DONE)
    await desk.turn(provider)
    assert desk.person.asked == []
    assert "- one" in everything_sent(provider)


async def test_a_denied_note_is_not_open_either(make_desk: Callable[..., Desk]) -> None:
    recent = json.dumps({"lastOpenFiles": ["Finance/bank.md", "Garden.md"]})
    desk = make_desk(
        {".obsidian/workspace.json": recent},
        focus=Focus("Finance/bank.md", SELECTED),
        rules=SharingRules.of(deny=["Finance"]),
    )
    provider = scripted(calls(call("editor__getSelection")), DONE)
    await desk.turn(provider)
    sent = everything_sent(provider)
    assert "bank" not in sent
    assert leaked(sent) == []
    assert "Garden.md" in sent
    assert desk.person.asked == []


# --- another provider ---


@pytest.mark.parametrize("decide", [yes, no])
async def test_another_provider_sees_what_was_said_only_when_the_person_says_so(
    decide: Callable[[ShareRequest], ShareDecision], desk: Desk
) -> None:
    desk.person.decide = lambda request: ShareDecision("thread")
    await desk.turn(scripted(READ_BANK, {"text": "It is XK4711Q."}))
    desk.person = Person(decide)
    other = scripted(READ_BANK, DONE)
    other.name, other.address = "other/model", "https://other.example"
    events = await desk.turn(other)
    history, again = desk.person.asked
    assert (history.kind, history.provider, history.address) == (
        "history",
        "other/model",
        "https://other.example",
    )
    assert history.items[0].path.text == "Finance/bank.md"
    assert again.kind == "files", "what was allowed for the other provider counts no more"
    assert ("XK4711Q" in other.requests[0].messages[-2].text) == (decide is yes)
    assert bool([event for event in events if isinstance(event, Notice)]) == (decide is no)
    if decide is no:
        assert leaked(everything_sent(other)) == []
        assert len(other.requests[0].messages) == 2


async def test_another_provider_is_nothing_to_ask_about_when_nothing_was_shared(desk: Desk) -> None:
    await desk.turn(scripted({"text": "Hello."}))
    other = scripted(DONE)
    other.name = "other/model"
    await desk.turn(other)
    assert desk.person.asked == []
    assert "Hello." in everything_sent(other)


# --- grants, by themselves ---

PATHS = [
    parse(text, PathUse.READ)
    for text in ("a.md", "A/a.md", "A/b.md", "A/B/c.md", "AB/d.md", "C/e.md")
]
LEVELS = st.sampled_from(list(Level))


@st.composite
def answered(draw: st.DrawFn) -> tuple[ShareRequest, ShareDecision]:
    chosen = draw(st.lists(st.sampled_from(PATHS), min_size=1, unique_by=lambda path: path.text))
    items = tuple(ShareItem(path=path, level=draw(LEVELS), size=1, tokens=1) for path in chosen)
    request = ShareRequest(
        call_id="id",
        kind="files",
        tool="tool",
        purpose="purpose",
        args={},
        items=items,
        provider="p",
        address="",
    )
    paths = draw(st.none() | st.frozensets(st.sampled_from([path.text for path in PATHS])))
    return request, ShareDecision(draw(st.sampled_from(["once", "thread", "folder", "no"])), paths)


@given(st.lists(answered(), max_size=6))
def test_nothing_is_granted_that_no_screen_named(
    history: list[tuple[ShareRequest, ShareDecision]],
) -> None:
    """A grant rests on a lasting answer for this file at this level, or for a folder above it."""
    grants = Grants()
    for request, decision in history:
        grants.record(request, decision)
    gate = Gate(SharingRules(), grants, False, lambda path: (path,))
    for path in PATHS:
        for level in Level:
            if gate.allowed(path, level):
                assert any(
                    _explains(request, decision, path, level) for request, decision in history
                )


def _explains(
    request: ShareRequest, decision: ShareDecision, path: VaultPath, level: Level
) -> bool:
    chosen = [item for item in request.items if item.path.text in decision.chosen(request)]
    if decision.scope == "thread":
        return any(item.path == path and item.level >= level for item in chosen)
    inside = not request.folder or path.text.startswith(f"{request.folder}/")
    return decision.scope == "folder" and inside and any(item.level >= level for item in chosen)


@given(st.lists(answered(), max_size=6), st.sampled_from(PATHS), LEVELS)
def test_more_includes_less(
    history: list[tuple[ShareRequest, ShareDecision]], path: VaultPath, level: Level
) -> None:
    grants = Grants()
    for request, decision in history:
        grants.record(request, decision)
    if grants.cover(path, level):
        assert all(grants.cover(path, less) for less in Level if less <= level)


def path(text: str) -> VaultPath:
    return parse(text, PathUse.FOLDER)


@pytest.mark.parametrize(
    ("pattern", "inside", "outside"),
    [
        (
            "Private",
            ["Private", "Private/a.md", "Private/b/c.md", "PRIVATE/a.md"],
            ["Privately/a.md", "a/Private", "xPrivate"],
        ),
        ("Private/", ["Private", "Private/a.md"], ["Private.md"]),
        (
            "Private/**",
            ["Private", "Private/a.md", "Private/b/c.md"],
            ["Private.md", "Public/a.md"],
        ),
        ("/Private", ["Private/a.md"], ["a/Private/b.md"]),
        (
            "Journal/2025*",
            ["Journal/2025.md", "Journal/2025-01/a.md"],
            ["Journal/2024.md", "Journal/x/2025.md"],
        ),
        (
            "**/secret.md",
            ["secret.md", "a/secret.md", "a/b/secret.md"],
            ["a/secret.md.txt", "nosecret.md"],
        ),
        ("**", ["a.md", "a/b.md", ""], []),
        ("*", ["a.md", "a/b.md"], []),
        ("a?c.md", ["abc.md", "äöc.md".replace("äö", "aö")], ["a/c.md", "ac.md"]),
        ("a[bc].md", ["ab.md", "ac.md", "a[bc].md"], ["ad.md"]),
        ("a[!b].md", ["ac.md"], ["ab.md"]),
        ("a[]b].md", ["a].md", "ab.md"], ["ac.md"]),
        ("a[!].md", ["a!.md"], ["ab.md"]),
        (
            "Projects/Plan.md",
            ["Projects/Plan.md", "projects/plan.MD"],
            ["Projects/Plan.md2", "Plan.md"],
        ),
        ("a.b", ["a.b"], ["aXb"]),
        ("Straße", ["STRASSE/x.md"], ["Stra"]),
        ("Private\\sub", ["Private/sub/x.md"], ["Private/x.md"]),
    ],
)
def test_what_a_pattern_covers(pattern: str, inside: list[str], outside: list[str]) -> None:
    rules = PathRules((pattern,))
    assert [text for text in inside if not rules.cover(path(text))] == []
    assert [text for text in outside if rules.cover(path(text))] == []


@pytest.mark.parametrize(
    ("pattern", "inside", "outside"),
    [
        (
            "Private",
            ["Private/a.md", "x/Private/a.md", "x/y/private"],
            ["Privately.md", "xPrivate/a.md"],
        ),
        ("*.key", ["a.key", "x/y/b.KEY"], ["a.keys", "key"]),
        ("/Private", ["Private/a.md"], ["x/Private/a.md"]),
        ("Work/Private", ["Work/Private/a.md"], ["x/Work/Private/a.md"]),
    ],
)
def test_a_bare_name_may_match_at_any_depth(
    pattern: str, inside: list[str], outside: list[str]
) -> None:
    rules = PathRules((pattern,), anywhere=True)
    assert [text for text in inside if not rules.cover(path(text))] == []
    assert [text for text in outside if rules.cover(path(text))] == []


@pytest.mark.parametrize(
    "pattern",
    ["", "  ", "/", ".", "./", "../x", "a/../b", "[z-a]", "[", "a[", "a[]", "!x", "{a,b}"],
)
def test_patterns_that_name_nothing_are_refused(pattern: str) -> None:
    with pytest.raises(ConfigError):
        PathRules((pattern,))


NAMES = st.text("abÄäßé .-[]*?!", min_size=1, max_size=6).map(lambda text: f"x{text}x")
TREE = st.lists(NAMES, min_size=1, max_size=4)


@given(TREE, st.sampled_from(["NFC", "NFD"]), st.booleans())
def test_another_spelling_is_no_way_round_a_rule(parts: list[str], form: str, upper: bool) -> None:
    text = "/".join(parts)
    literal = "".join(f"[{character}]" if character in "[*?" else character for character in text)
    spelled = unicodedata.normalize(form, text.upper() if upper else text)  # type: ignore[arg-type]
    assert PathRules((literal,)).cover(path(spelled))
    assert PathRules((literal,)).cover(path(f"{spelled}/below.md"))
    assert not PathRules((literal,)).cover(path(f"{spelled}y"))


@given(st.text("abc*?[]!/^\\.-&|~", max_size=12), st.text("abc/.", min_size=1, max_size=12))
def test_any_pattern_is_answered_or_refused(pattern: str, text: str) -> None:
    try:
        rules = PathRules((pattern,))
        where = path(text)
    except Exception as error:
        assert type(error).__name__ in ("ConfigError", "PathRefused")
        return
    assert rules.cover(where) in (True, False)


@pytest.mark.parametrize(
    ("paths", "folder"),
    [
        ([], ""),
        (["a.md"], ""),
        (["A/a.md"], "A"),
        (["A/a.md", "A/b.md"], "A"),
        (["A/B/a.md", "A/C/b.md"], "A"),
        (["A/B/a.md", "AB/b.md"], ""),
        (["A/B/a.md", "A/B/C/b.md"], "A/B"),
    ],
)
def test_the_common_folder(paths: list[str], folder: str) -> None:
    assert common_folder(map(path, paths)) == folder
