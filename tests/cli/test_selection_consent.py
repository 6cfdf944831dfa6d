"""The selection is in no request to a model before the user consents, in any command."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from llm_server import KEY, Call, LlmServer, Reply
from obsidian_agent.agent.events import PlanReady
from obsidian_agent.agent.privacy.consent import ShareDecision, ShareRequest
from obsidian_agent.bootstrap import Wiring, build_session, open_record
from obsidian_agent.services.focus import Focus, selection_in
from obsidian_agent.services.model_turns import preview_request
from obsidian_agent.tools.core.tool import EditorPosition, Selection
from obsidian_stand_in import StandIn, stand_in
from support import MakeVault, settings_with

WORDS = ("Quetzalcoatl", "hippopotamus", "7731-XK")
TEXT = "Quetzalcoatl's hippopotamus\nhas 7731-XK"
NOTE = f"# Day\n{TEXT}\nend\n"
RANGE = ("--active-file", "Day.md", "--selection-range", "1:0-2:11")
PLAN = {
    "version": "1.0",
    "goal": "Store the selection",
    "riskLevel": "writes",
    "steps": [
        {
            "id": "note",
            "tool": "vault.createFile",
            "args": {"path": "Made.md", "content": "${selection}"},
        }
    ],
}
COMMANDS = {
    "plan": ("plan", "store the selection in Made"),
    "do": ("do", "store the selection in Made", "--yes"),
    "ask": ("ask", "What does the selection say?"),
}


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Iterator[LlmServer]:
    """Start a service that records every request and answers with a plan."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with LlmServer([Reply(json.dumps(PLAN))], ["qwen3:8b"]) as server:
        yield server


@pytest.fixture(params=["openai", "ollama"])
def model(request: pytest.FixtureRequest, service: LlmServer) -> tuple[str, ...]:
    """Return the options for a model that writes plans, and for one that picks from the menu."""
    if request.param == "openai":
        return ("--model", "openai/gpt-5", "--base-url", service.openai_url)
    return ("--model", "ollama/qwen3:8b", "--base-url", service.url)


@pytest.fixture
def here(commands: Callable[..., Any]) -> Any:
    """Commands on a vault with one note."""
    return commands({"Day.md": NOTE})


@pytest.fixture
def obsidian(home: Path, here: Any) -> Iterator[StandIn]:
    """Start an Obsidian that has the vault open."""
    with stand_in(here.vault, home) as started:
        yield started


def sent(server: LlmServer) -> str:
    """Everything that the service received."""
    assert any(request.body for request in server.requests), "the model was not asked"
    return "\n".join(
        f"{each.path} {each.headers} {json.dumps(each.body, ensure_ascii=False)}"
        for each in server.requests
    )


def leaked(server: LlmServer) -> list[str]:
    """Return the words of the selection in any request."""
    text = sent(server)
    return [word for word in WORDS if word in text]


def recorded(here: Any) -> list[tuple[str, Any]]:
    """Return the kind and the reason of each entry about the selection."""
    entries = here.json("audit")[1]["entries"]
    found: list[tuple[str, Any]] = []
    for entry in entries:
        if entry["kind"] in ("grant", "refusal", "denial"):
            found.append((entry["kind"], entry.get("scope")))
        for file in entry.get("files", ()):
            if file["shared"] != "name":
                found.append(("sent", file["allowedBy"]))
    return found


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize("source", ["range", "file", "obsidian", "several in obsidian"])
def test_no_byte_of_a_selection_goes_out_unasked(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    here: Any,
    service: LlmServer,
    model: tuple[str, ...],
    name: str,
    source: str,
) -> None:
    options: tuple[str, ...] = RANGE
    if source == "file":
        (tmp_path / "selected.txt").write_text(TEXT)
        options = ("--selection-file", str(tmp_path / "selected.txt"))
    if "obsidian" in source:
        running: StandIn = request.getfixturevalue("obsidian")
        running.open_note("Day.md")
        running.select("Day.md", (1, 0), (2, 11), TEXT)
        options = ()
        if source != "obsidian":
            running.selections.append(running.selections[0])
    said = here.say(*COMMANDS[name], *options, *model)
    assert leaked(service) == []
    assert "selected" in sent(service), "the model learns that there is a selection"
    assert "the selection" in said.err
    assert "--share" in said.err
    kinds = recorded(here)
    assert ("denial", None) in kinds
    assert {kind for kind, _ in kinds} == {"denial"}


@pytest.mark.parametrize("name", COMMANDS)
def test_the_selection_of_the_command_line_itself_is_consent(
    here: Any, service: LlmServer, model: tuple[str, ...], name: str
) -> None:
    here.say(*COMMANDS[name], "--selection", TEXT, *model)
    if name == "ask" or "openai/gpt-5" in model:
        assert leaked(service) == list(WORDS)
    assert {kind for kind, _ in recorded(here)} <= {"sent"}
    assert {reason for _, reason in recorded(here)} <= {"context"}


@pytest.mark.parametrize("name", COMMANDS)
def test_share_allows_the_selection_of_a_note(here: Any, service: LlmServer, name: str) -> None:
    model = ("--model", "openai/gpt-5", "--base-url", service.openai_url)
    here.say(*COMMANDS[name], *RANGE, *model, "--share", "Day.md")
    assert leaked(service) == list(WORDS)
    assert recorded(here)[0] == ("sent", "rule")


def test_a_plan_uses_the_selection_that_the_model_did_not_see(
    here: Any, service: LlmServer
) -> None:
    model = ("--model", "openai/gpt-5", "--base-url", service.openai_url)
    code, document = here.json("do", "store the selection in Made", "--yes", *RANGE, *model)
    assert (code, document["success"]) == (0, True)
    assert (here.vault / "Made.md").read_text() == TEXT
    assert leaked(service) == []


def test_a_call_for_the_selection_gets_no_byte_of_it(here: Any, service: LlmServer) -> None:
    service.play(
        Reply(
            calls=(
                Call("editor__getSelection", '{"why": "w"}', "a"),
                Call("vault__readFile", '{"path": "Day.md"}', "b"),
            )
        ),
        Reply("I may not see it."),
    )
    model = ("--model", "openai/gpt-5", "--base-url", service.openai_url)
    here.say(*COMMANDS["ask"], *RANGE, *model)
    assert len(service.requests) == 2
    assert leaked(service) == []


async def test_looking_ahead_writes_nothing_down(
    make_vault: MakeVault, tmp_path: Path, service: LlmServer
) -> None:
    settings = settings_with(model="openai/gpt-5", base_url=service.openai_url)
    wiring = Wiring(make_vault({"Day.md": NOTE}), tmp_path / "state", settings=settings)
    session = build_session(wiring)
    session.vault.focus = Focus(
        "Day.md", Selection(TEXT, EditorPosition(1, 0), EditorPosition(2, 11))
    )
    turns = session.open_model_turns()
    assert turns is not None
    ahead = await preview_request(turns, session.conversation, "store it")
    assert [request.kind for request in ahead.questions] == ["selection"]
    assert open_record(wiring).entries() == []
    assert service.requests == []


@pytest.mark.parametrize("answer", ["once", "no"])
async def test_who_can_be_asked_is_asked_for_the_plan_too(
    make_vault: MakeVault, tmp_path: Path, service: LlmServer, answer: Any
) -> None:
    store = make_vault({"Day.md": NOTE})
    settings = settings_with(model="openai/gpt-5", base_url=service.openai_url)
    session = build_session(Wiring(store, tmp_path / "state", settings=settings))
    selection = selection_in(
        session.vault.view(), "Day.md", EditorPosition(1, 0), EditorPosition(2, 11)
    )
    session.vault.focus = Focus("Day.md", selection)
    questions: list[ShareRequest] = []

    async def approve(request: ShareRequest) -> ShareDecision:
        questions.append(request)
        return ShareDecision(answer)

    async def ignore(event: object) -> None:
        """Events are not looked at."""

    verdict = await session.plan("store the selection", {}, None, ignore, approve)
    assert isinstance(verdict, PlanReady)
    assert [request.kind for request in questions] == ["selection"]
    assert questions[0].items[0].previews == (TEXT,)
    assert leaked(service) == (list(WORDS) if answer == "once" else [])


@pytest.mark.parametrize("name", ["do", "plan", "ask"])
def test_another_agent_gets_no_byte_either(here: Any, tmp_path: Path, name: str) -> None:
    agent = Path(__file__).parent.parent / "acp_agent.py"
    prompts = tmp_path / "prompts"
    here.config.write_text(f'[agents]\nscript = "{sys.executable} {agent} {prompts}"\n')
    said = here.say(*COMMANDS[name], *RANGE, "--backend", "acp", "--agent", "script")
    assert "the selection in Day.md" in said.err
    assert "is selected" in prompts.read_text()
    assert [word for word in WORDS if word in prompts.read_text()] == []
