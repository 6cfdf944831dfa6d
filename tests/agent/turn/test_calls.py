"""The user changes the arguments of a call before any of its result is sent."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents import NOTES, Desk, call, calls, check_pairs, results, scripted
from obsidian_agent.agent.events import Answer
from obsidian_agent.agent.privacy.consent import ShareDecision, ShareRequest
from obsidian_agent.agent.turn.calls import (
    BadCall,
    HelpCall,
    ProposalCall,
    ReadCall,
    understand,
    written_calls,
)
from obsidian_agent.agent.turn.model_tools import READ_TOOLS, offers
from obsidian_agent.plan.policy import SharingRules
from obsidian_agent.providers.base import ToolCall
from obsidian_agent.tools.core.tool import Risk
from obsidian_agent.tools.registry import TOOLS, aliases, from_wire, wire_name
from support import MakeVault


def read(name: str, arguments: Any) -> ReadCall:
    found = understand(ToolCall("id", name, json.dumps(arguments)), TOOLS, propose=True)
    assert isinstance(found, ReadCall), found
    return found


@pytest.mark.parametrize(
    ("name", "arguments", "tool", "args"),
    [
        (
            "vault__searchText",
            {"query": "x"},
            "vault.searchText",
            {"query": "x", "limit": 50, "offset": 0},
        ),
        (
            "vault.searchText",
            {"query": "x", "limit": 7},
            "vault.searchText",
            {"query": "x", "limit": 7, "offset": 0},
        ),
        (
            "vault_search",
            {"query": "x"},
            "vault.searchText",
            {"query": "x", "limit": 10, "offset": 0},
        ),
        (
            "vault_search",
            {"query": "x", "limit": 500},
            "vault.searchText",
            {"query": "x", "limit": 50, "offset": 0},
        ),
        (
            "search_vault_by_content",
            {"query": "x", "limit": 0},
            "vault.searchText",
            {"query": "x", "limit": 1, "offset": 0},
        ),
        (
            "search_vault_by_content",
            {"query": "x", "limit": 99999},
            "vault.searchText",
            {"query": "x", "limit": 1000, "offset": 0},
        ),
        (
            "search_vault_by_tag",
            {"tag": "#a"},
            "vault.searchTag",
            {"query": "#a", "limit": 50, "offset": 0},
        ),
        (
            "search_vault_by_name",
            {"name": "Plan", "max_results": "5"},
            "vault.searchName",
            {"query": "Plan", "limit": 5, "offset": 0},
        ),
        (
            "obsidian.search_vault",
            {"query": "x", "case_sensitive": "true"},
            "vault.searchText",
            {"query": "x", "caseSensitive": True},
        ),
        ("file_read", {"filePaths": ["a.md"]}, "vault.readFiles", {"filePaths": ["a.md"]}),
        (
            "file_read",
            {"file_paths": '["a.md", "b.md"]'},
            "vault.readFiles",
            {"filePaths": ["a.md", "b.md"]},
        ),
        ("file_read", {"path": "a.md"}, "vault.readFiles", {"filePaths": ["a.md"]}),
        ("read_vault_file", {"file_path": "a.md"}, "vault.readFile", {"path": "a.md"}),
        (
            "read_vault_file",
            {"path": "a.md", "offset": 4000},
            "vault.readFile",
            {"path": "a.md", "offset": 4000},
        ),
        ("obsidian.read_note", {"note_path": "a.md"}, "vault.readFile", {"path": "a.md"}),
        ("obsidian__read_note", {"filename": "a.md"}, "vault.readFile", {"path": "a.md"}),
        (
            "list_vault_files",
            {"path": "Projects", "ext": "md"},
            "vault.listFiles",
            {"folder": "Projects", "extension": "md"},
        ),
        ("get_file_metadata", {"filePath": "a.md"}, "vault.getMetadata", {"path": "a.md"}),
        (
            "get_file_backlinks",
            {"file": "a.md", "limit": 3},
            "vault.getBacklinks",
            {"path": "a.md"},
        ),
        (
            "vault__query",
            {"tag": "x", "name": "y", "folder": None},
            "vault.query",
            {"tag": "x", "name": "y"},
        ),
        ("vault__listFiles", {}, "vault.listFiles", {"limit": 50, "offset": 0}),
    ],
)
def test_names_and_arguments_are_understood(
    name: str, arguments: Any, tool: str, args: dict[str, Any]
) -> None:
    found = read(name, arguments)
    assert found.tool.name == tool
    assert dict(found.args) | args == found.args


def test_every_alias_of_a_read_tool_is_understood() -> None:
    for alias, name in aliases().items():
        found = understand(
            ToolCall("id", wire_name(alias), json.dumps({"path": "a.md", "query": "x"})),
            TOOLS,
            propose=True,
        )
        assert not isinstance(found, BadCall) or found.problem.code in (
            "ARGUMENT_INVALID",
            "PERMISSION_DENIED",
        )
        if TOOLS[name].risk is not Risk.READ_ONLY:
            assert isinstance(found, BadCall)
            assert found.problem.code == "PERMISSION_DENIED"


def test_the_limits_of_names() -> None:
    assert read("read_vault_file", {"path": "a.md"}).limits.page == 4_000
    assert read("vault_search", {"query": "x"}).limits.preview == 200
    assert read("vault__readFile", {"path": "a.md"}).limits.page > 4_000


def test_tools_that_do_not_page_are_paged_here() -> None:
    found = read("get_file_backlinks", {"path": "a.md", "limit": 3, "offset": 6})
    assert (found.rows, found.offset, dict(found.args)) == (3, 6, {"path": "a.md"})


def test_the_reason_is_not_an_argument() -> None:
    found = read("vault__readFile", {"path": "a.md", "why": "To see."})
    assert (found.why, dict(found.args)) == ("To see.", {"path": "a.md"})
    assert read("vault__readFile", {"path": "a.md", "why": 7}).why == ""


def test_two_calls_that_ask_the_same_have_one_key() -> None:
    one = read("vault__readFile", {"path": "a.md", "why": "first"})
    assert one.key == read("read_vault_file", {"file": "a.md"}).key
    assert one.key != read("vault__readFile", {"path": "b.md"}).key


def test_what_is_offered_can_be_called_and_only_reads() -> None:
    offered = offers(TOOLS, propose=True)
    assert len({offer.name for offer in offered}) == len(offered) == len(READ_TOOLS) + 2
    for offer in offered[:-2]:
        tool = TOOLS[from_wire(offer.name)]
        assert tool.risk is Risk.READ_ONLY
        assert "why" in offer.parameters["properties"]
        assert json.loads(json.dumps(offer.parameters))["type"] == "object"
        assert ("offset" in offer.parameters["properties"]) >= (
            READ_TOOLS[tool.name].rows is not None
        )
    assert [offer.name for offer in offers(TOOLS, propose=False)] == [
        offer.name for offer in offered[:-1]
    ]
    assert offers(TOOLS, propose=True) == offered


def test_a_proposal_only_where_it_is_offered() -> None:
    made = ToolCall("id", "propose_plan", '{"plan": {"version": "1.0"}}')
    assert understand(made, TOOLS, propose=True) == ProposalCall("id", {"version": "1.0"})
    assert isinstance(understand(made, TOOLS, propose=False), BadCall)


@pytest.mark.parametrize(
    "arguments",
    [
        "[" * 100_000,
        '{"a":' * 5_000 + "1" + "}" * 5_000,
        '{"query": NaN}',
        '{"query": "\\ud800"}',
        '{"query": "x", "limit": 1e400}',
        '{"query": "x", "limit": ' + "9" * 5000 + "}",
        '"' + "{" * 50 + '"',
        "\x00",
        "null null",
    ],
)
def test_hostile_arguments_are_errors(arguments: str) -> None:
    found = understand(ToolCall("id", "vault__searchText", arguments), TOOLS, propose=True)
    assert isinstance(found, BadCall)
    assert found.problem.code == "ARGUMENT_INVALID"
    assert len(found.problem.message) < 500


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=8,
)
ARGUMENTS = st.dictionaries(
    st.sampled_from(
        ["path", "query", "limit", "offset", "filePaths", "folder", "why", "plan", "x"]
    ),
    JSON,
    max_size=4,
)


@given(
    st.sampled_from([*map(wire_name, TOOLS), *aliases(), "propose_plan", "nope", ""]),
    ARGUMENTS | JSON,
)
def test_any_call_is_understood_or_refused(name: str, arguments: Any) -> None:
    found = understand(ToolCall("id", name, json.dumps(arguments)), TOOLS, propose=True)
    assert found.id == "id"
    if isinstance(found, ReadCall):
        assert found.tool.risk is Risk.READ_ONLY
        assert 1 <= found.rows <= 1000


def test_the_short_offer_is_a_part_of_the_whole() -> None:
    whole = {offer.name: offer for offer in offers(TOOLS, propose=True)}
    short = offers(TOOLS, propose=True, detail="short")
    assert {offer.name for offer in short} < set(whole)
    for offer in short:
        assert set(offer.parameters["properties"]) <= set(
            whole[offer.name].parameters["properties"]
        )


@pytest.mark.parametrize("names", [["vault.find", "vault__query"], "vault.find", '["vault.find"]'])
def test_tools_are_described_in_full(names: Any) -> None:
    call = understand(
        ToolCall("1", "describe_tools", json.dumps({"names": names})), TOOLS, propose=True
    )
    assert isinstance(call, HelpCall)
    assert "vault.find(" in call.answer
    assert "atLeast?" in call.answer
    assert "path (default), name, modified" in call.answer
    assert ("vault.query(" in call.answer) == (len(names) == 2)


def test_who_asks_for_no_tool_or_one_that_is_not_there_hears_the_names() -> None:
    for arguments in ("{}", '{"names": []}', '{"names": ["vault.nope"]}'):
        call = understand(ToolCall("1", "describe_tools", arguments), TOOLS, propose=False)
        assert isinstance(call, HelpCall)
        assert all(name in call.answer for name in TOOLS)
        assert ("vault.nope" in call.answer) == ("nope" in arguments)


def test_a_bad_call_is_told_the_signature() -> None:
    call = understand(
        ToolCall("1", "vault__searchText", '{"folder": "A", "queri": "x"}'), TOOLS, propose=True
    )
    assert isinstance(call, BadCall)
    assert "vault.searchText(query, folder?" in call.problem.message


LOOK = (calls(call("vault__searchText", query="secret")), {"text": "Done."})


def changing(desk: Desk, *decisions: ShareDecision) -> None:
    """Answer questions in this order, the last answer for all further ones."""
    left = list(decisions)

    def decide(request: ShareRequest) -> ShareDecision:
        return left.pop(0) if len(left) > 1 else left[0]

    desk.person.decide = decide


async def test_the_tool_looks_again_and_the_person_is_asked_again(
    make_vault: MakeVault, tmp_path: Path
) -> None:
    desk, model = Desk(make_vault(NOTES), tmp_path), scripted(*LOOK)
    changing(desk, ShareDecision("no", args={"query": "soil"}), ShareDecision("once"))
    await desk.turn(model)
    assert [request.args["query"] for request in desk.person.asked] == ["secret", "soil"]
    result = model.requests[1].messages[-1].text
    assert "garden soil" in result
    assert "XK4711Q" not in result
    assert '"argumentsByTheUser": {"query": "soil"' in result


async def test_arguments_that_the_tool_does_not_take_send_nothing(
    make_vault: MakeVault, tmp_path: Path
) -> None:
    desk, model = Desk(make_vault(NOTES), tmp_path), scripted(*LOOK)
    changing(desk, ShareDecision("no", args={"quer": "soil"}), ShareDecision("once"))
    await desk.turn(model)
    assert len(desk.person.asked) == 1
    result = model.requests[1].messages[-1].text
    assert "Unknown field" in result
    assert "soil" not in result.replace("'quer'", "")


async def test_changing_for_ever_ends_in_nothing(make_vault: MakeVault, tmp_path: Path) -> None:
    desk, model = Desk(make_vault(NOTES), tmp_path), scripted(*LOOK)
    changing(desk, ShareDecision("no", args={"query": "secret"}))
    await desk.turn(model)
    assert "XK4711Q" not in model.requests[1].messages[-1].text


async def test_what_is_denied_stays_so_whatever_the_arguments(
    make_vault: MakeVault, tmp_path: Path
) -> None:
    desk, model = (
        Desk(make_vault(NOTES), tmp_path, rules=SharingRules.of(deny=["Finance"])),
        scripted(*LOOK),
    )
    changing(desk, ShareDecision("no", args={"query": "number"}), ShareDecision("once"))
    await desk.turn(model)
    assert "XK4711Q" not in model.requests[1].messages[-1].text


NAMES = ("vault__readFile", "vault__query", "propose_plan")
CALL = {"name": "vault__readFile", "arguments": {"path": "Garden.md"}}
TEXT = json.dumps(CALL)


@pytest.mark.parametrize(
    "text",
    [
        TEXT,
        f"```json\n{TEXT}\n```",
        f"```\n{TEXT}\n```\n",
        f"<tool_call>\n{TEXT}\n</tool_call>",
        f"<tool_call>{TEXT}",
        json.dumps([CALL]),
        json.dumps({"function": CALL, "type": "function"}),
        json.dumps({"name": "vault__readFile", "parameters": {"path": "Garden.md"}}),
        json.dumps({"name": "vault__readFile", "arguments": '{"path": "Garden.md"}'}),
    ],
)
def test_the_shapes_in_use_are_understood(text: str) -> None:
    (call,) = written_calls(text, NAMES)
    assert (call.name, json.loads(call.arguments)) == ("vault__readFile", {"path": "Garden.md"})


def test_several_at_once() -> None:
    text = "".join(
        f"<tool_call>{json.dumps({'name': name, 'arguments': {}})}</tool_call>\n" for name in NAMES
    )
    assert [call.name for call in written_calls(text, NAMES)] == list(NAMES)


@pytest.mark.parametrize(
    "text",
    [
        "Hello.",
        f"I would call {TEXT}",
        f"{TEXT}\nDone.",
        f"<tool_call>{TEXT}</tool_call> and so on",
        json.dumps({"name": "rm", "arguments": {}}),
        json.dumps({"name": "Ada", "age": 3}),
        json.dumps([CALL, 3]),
        '{"version": "1.0", "goal": "x", "steps": []}',
        "[" * 100_000,
        "{",
        "",
    ],
    ids=lambda text: str(text)[:15],
)
def test_everything_else_is_words(text: str) -> None:
    assert written_calls(text, NAMES) == ()


@pytest.mark.parametrize("wrapped", ["{}", "```json\n{}\n```"])
async def test_a_written_call_is_carried_out_like_any_other(wrapped: str, desk: Desk) -> None:
    written: dict[str, Any] = {"text": wrapped.replace("{}", TEXT)}
    model = scripted(written, {"text": "Water."})
    events = await desk.turn(model)
    assert desk.person.paths() == [["Garden.md"]], "the user was asked"
    assert events[-1] == Answer("Water.", ("Garden.md",))
    assert "Tomatoes need water" in results(model.requests[1].messages)[0]
    check_pairs(desk.conversation.messages)
