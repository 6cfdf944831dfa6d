"""The agent of editors, driven by the official client through the installed command."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any, cast

import pytest
from acp import RequestError, spawn_agent_process, text_block
from acp import schema as acp
from acp.client.connection import ClientSideConnection
from acp.helpers import audio_block, image_block, resource_link_block
from acp.interfaces import Client

from obsidian_agent.integrations.acp_server import message_text
from obsidian_agent.integrations.acp_updates import StreamedText, safe_line
from support import MakeVault

NOTES = {
    "Inbox.md": "# Inbox\n",
    "A.md": "---\ntags: [done]\n---\nA\n",
    "B.md": "---\ntags: [done]\n---\nB\n",
    "Ideas.md": "A kite\n",
}
APPEND = "append 'Call Ada' to Inbox"
APPENDED = "# Inbox\nCall Ada\n"
AWAY = "put the done notes away"


def tree(folder: Path) -> dict[str, bytes]:
    """Return every file below `folder` with its content."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != "vault.json"  # the id of the vault
    }


Choose = Callable[[acp.ToolCallUpdate, list[str]], str | None]


def first(call: acp.ToolCallUpdate, options: list[str]) -> str:
    """Allow everything."""
    return options[0]


class Editor:
    """A client: what it received, and how its user answers."""

    def __init__(self, vault: Path, folder: Path) -> None:
        self.vault, self.folder = vault, folder
        self.choose: Choose = first
        self.updates: list[dict[str, Any]] = []
        self.requests: list[acp.ToolCallUpdate] = []
        self.form: dict[str, Any] | None = None
        self.forms: list[dict[str, Any]] = []
        self.connection: ClientSideConnection
        self.process: Any
        self.session = ""
        self.leave: Callable[[], object] | None = None
        self.cancel_at: int | None = None
        self.messages = 0

    # what the agent calls

    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
        self.updates.append(update.model_dump(mode="json", by_alias=True, exclude_none=True))
        await self.count()
        if self.leave is not None and any("in_progress" in states for states in self.steps()):
            leave, self.leave = self.leave, None
            leave()

    async def request_permission(
        self, session_id: str, tool_call: acp.ToolCallUpdate, options: list[Any], **_: Any
    ) -> acp.RequestPermissionResponse:
        self.requests.append(tool_call)
        chosen: str | None = None
        if not await self.count():
            chosen = self.choose(tool_call, [option.option_id for option in options])
        if chosen is None:
            return acp.RequestPermissionResponse(outcome=acp.DeniedOutcome(outcome="cancelled"))
        return acp.RequestPermissionResponse(
            outcome=acp.AllowedOutcome(outcome="selected", option_id=chosen)
        )

    async def create_elicitation(self, message: str, mode: Any, **_: Any) -> Any:
        self.forms.append(mode.requested_schema.model_dump(by_alias=True, exclude_none=True))
        if self.form is None:
            return acp.DeclineElicitationResponse(action="decline")
        names = self.forms[-1]["properties"]
        answers = {name: self.form[name] for name in names}
        return acp.AcceptElicitationResponse(action="accept", content=answers)

    def on_connect(self, connection: Any) -> None:
        pass

    def cancel(self) -> None:
        self.sending = asyncio.ensure_future(self.connection.cancel(session_id=self.session))

    async def count(self) -> bool:
        """Count a message. Cancel the turn if this is the one; return whether it was."""
        self.messages += 1
        if self.messages != self.cancel_at:
            return False
        await self.connection.cancel(session_id=self.session)
        return True

    # what a test does

    async def say(self, *blocks: Any) -> str:
        self.updates.clear()
        self.requests.clear()
        self.messages = 0
        prompt = [text_block(block) if isinstance(block, str) else block for block in blocks]
        answer = await asyncio.wait_for(
            self.connection.prompt(prompt=prompt, session_id=self.session), 60
        )
        return answer.stop_reason

    @property
    def text(self) -> str:
        return "".join(
            update["content"]["text"]
            for update in self.updates
            if update["sessionUpdate"] == "agent_message_chunk"
        )

    def steps(self) -> list[list[str]]:
        """Return the states of the steps, as each plan update showed them."""
        return [
            [entry["status"] for entry in update["entries"]]
            for update in self.updates
            if update["sessionUpdate"] == "plan"
        ]

    @property
    def places(self) -> list[str]:
        state, config = self.folder / "state", self.folder / "config.toml"
        return ["--vault", str(self.vault), "--state-dir", str(state), "--config", str(config)]

    def waiting(self) -> list[dict[str, Any]]:
        """Return the waiting plans, as files."""
        files = (self.folder / "state").glob("**/proposals/*.json")
        return [json.loads(file.read_text()) for file in files]


@contextlib.asynccontextmanager
async def editing(
    make_vault: MakeVault, folder: Path, *options: str, forms: bool = False
) -> AsyncIterator[Editor]:
    """Start the agent over a new vault and open a session."""
    if not (folder / "vault").exists():
        make_vault(NOTES)
    editor = Editor(folder / "vault", folder)
    command = [sys.executable, "-m", "obsidian_agent", "acp", *editor.places, *options]
    elicitation = acp.ElicitationCapabilities(form=acp.ElicitationFormCapabilities())
    side = cast(Client, editor)
    async with spawn_agent_process(side, *command, use_unstable_protocol=True) as (
        client,
        process,
    ):
        editor.connection, editor.process = client, process
        answer = await client.initialize(
            protocol_version=1,
            client_capabilities=acp.ClientCapabilities(elicitation=elicitation if forms else None),
            client_info=acp.Implementation(name="an-editor", title="Editor", version="1"),
        )
        assert answer.protocol_version == 1
        session = await client.new_session(cwd="/", mcp_servers=[])
        editor.session = session.session_id
        assert session.modes is not None
        assert [mode.id for mode in session.modes.available_modes] == ["plan", "ask"]
        yield editor


async def test_a_plan_has_one_permission_and_can_be_undone(
    make_vault: MakeVault, tmp_path: Path
) -> None:
    async with editing(make_vault, tmp_path) as editor:
        before = tree(editor.vault)
        seen: list[dict[str, bytes]] = []

        def look(call: acp.ToolCallUpdate, options: list[str]) -> str:
            seen.append(tree(editor.vault))
            return options[0]

        editor.choose = look
        assert await editor.say(APPEND) == "end_turn"
        assert (editor.vault / "Inbox.md").read_text() == APPENDED
        assert seen == [before]  # nothing was written before the permission
        (request,) = editor.requests
        assert request.content is not None
        title, diff = request.content
        assert isinstance(title, acp.ContentToolCallContent)
        assert isinstance(title.content, acp.TextContentBlock)
        assert title.content.text == "Changed file: Inbox.md"
        assert isinstance(diff, acp.FileEditToolCallContent)
        assert diff.path == str(editor.vault / "Inbox.md")
        assert (diff.old_text, diff.new_text) == ("# Inbox\n", APPENDED)
        assert editor.steps()[0] == ["pending", "pending"]
        assert editor.steps()[-1] == ["completed", "completed"]
        assert editor.waiting() == []
        assert "Modified 1 file." in editor.text

        assert await editor.say("/undo") == "end_turn"
        assert tree(editor.vault) == before
        (request,) = editor.requests
        assert [part.type for part in request.content or ()] == ["content", "diff"]
        assert await editor.say("/redo") == "end_turn"
        assert (editor.vault / "Inbox.md").read_text() == APPENDED
        assert await editor.say("/und") == "end_turn"
        assert editor.text == (
            "There is no command /und. There are /undo, /redo, /plans, /drop.\n\n"
        )


async def test_a_plan_that_is_not_permitted_waits_in_the_inbox(
    make_vault: MakeVault, tmp_path: Path
) -> None:
    async with editing(make_vault, tmp_path) as editor:
        before = tree(editor.vault)
        editor.choose = lambda call, options: "later"
        await editor.say(APPEND)
        assert tree(editor.vault) == before
        assert editor.steps() == [["pending", "pending"], []]
        (waiting,) = editor.waiting()
        assert waiting["client"] == "Editor"
        assert waiting["changes"] == 1

        await editor.say("/plans")
        assert "Add “Call Ada” to Inbox" in editor.text
        plan_id = editor.text.split("`")[1]
        editor.choose = lambda call, options: "later"
        await editor.say(f"/plans {plan_id}")
        assert editor.text.endswith(
            f"Nothing was changed.\n\nThe plan waits: `/plans {plan_id}`\n\n"
        )
        (editor.vault / "Inbox.md").write_text("# Other\n")
        editor.choose = first
        await editor.say(f"/plans {plan_id}")
        assert editor.text.startswith("The plan now has another result for Inbox.md.")
        assert (editor.vault / "Inbox.md").read_text() == "# Other\nCall Ada\n"
        assert editor.waiting() == []

        editor.choose = lambda call, options: "drop"
        await editor.say("append 'Call Bob' to Inbox")
        assert editor.waiting() == []
        assert (editor.vault / "Inbox.md").read_text() == "# Other\nCall Ada\n"


async def test_a_question_is_answered_by_a_number_and_then_a_value(
    make_vault: MakeVault, tmp_path: Path
) -> None:
    async with editing(make_vault, tmp_path) as editor:
        await editor.say(AWAY)
        match = re.search(r"(\d)\. Move 2 notes tagged #done to …", editor.text)
        assert match is not None
        assert "Answer with a number from 1 to 3." in editor.text
        await editor.say("9")
        assert "Answer with a number from 1 to 3." in editor.text
        await editor.say(match.group(1))
        assert "folder?" in editor.text
        await editor.say("Archive")
        assert (editor.vault / "Archive" / "A.md").exists()
        assert len(editor.requests) == 1

        await editor.say(AWAY)  # another message drops the question
        await editor.say(APPEND)
        assert (editor.vault / "Inbox.md").read_text() == APPENDED


async def test_a_client_with_forms_gets_the_question_as_a_form(
    make_vault: MakeVault, tmp_path: Path
) -> None:
    async with editing(make_vault, tmp_path, forms=True) as editor:
        await editor.say(AWAY)
        assert "Nothing was changed." in editor.text
        options = editor.forms[-1]["properties"]["choice"]["oneOf"]
        (choice,) = (option["const"] for option in options if "Move 2 notes" in option["title"])
        editor.form = {"choice": choice, "folder": "Archive"}
        await editor.say(AWAY)
        assert (editor.vault / "Archive" / "A.md").exists()
        assert [list(form["properties"]) for form in editor.forms[-2:]] == [["choice"], ["folder"]]


async def test_cancelling_at_every_message_leaves_the_vault_whole(
    make_vault: MakeVault, tmp_path: Path
) -> None:
    async with editing(make_vault, tmp_path) as editor:
        expected = "# Inbox\n"
        for number in range(1, 30):
            editor.cancel_at = number
            line = f"Line {number}"
            stopped = await editor.say(f"append '{line}' to Inbox")
            text = (editor.vault / "Inbox.md").read_text()
            assert text in (expected, f"{expected}{line}\n")
            expected = text
            if editor.messages < number:  # the turn ended before this message
                assert (stopped, text.endswith(f"{line}\n")) == ("end_turn", True)
                break
            # A turn that is done when the message arrives is not cancelled any more.
            assert stopped == "cancelled" or text.endswith(f"{line}\n")
        else:
            pytest.fail("The turn did not end.")
        assert number > 6
        plans = editor.waiting()
        assert all(plan["plan"]["goal"].startswith("Add “Line ") for plan in plans)
        editor.cancel_at = None
        assert await editor.say("which notes have the tag #done?") == "end_turn"
        assert "[[A]]" in editor.text


async def test_a_run_that_is_left_is_applied_whole_or_not_at_all(
    make_vault: MakeVault, tmp_path: Path
) -> None:
    notes = {f"Note {number}.md": "---\ntags: [done]\n---\n" for number in range(30)}
    make_vault(notes | {"Archive/Old.md": ""})
    before, move = tree(tmp_path / "vault"), "Move all notes tagged #done to Archive"

    async def check(editor: Editor) -> int:
        """Return the number of notes that were moved, and undo that."""
        assert await editor.say("which notes have the tag #done?") == "end_turn"
        moved = sum(path.startswith("Archive/Note") for path in tree(editor.vault))
        assert moved in (0, 30)
        if moved:
            await editor.say("/undo")
        assert tree(editor.vault) == before
        return moved

    async with editing(make_vault, tmp_path) as editor:
        editor.leave = lambda: editor.cancel()
        await editor.say(move)
        assert "`/undo " in editor.text or "`/plans " in editor.text
        waiting = 0 if await check(editor) else 1
        assert len(editor.waiting()) == waiting, "it waits unless it was applied"
        editor.leave = lambda: editor.process.stdin.close()
        with contextlib.suppress(RequestError, ConnectionError):
            await editor.say(move)
        await editor.process.wait()
    async with editing(make_vault, tmp_path) as editor:
        waiting += 0 if await check(editor) else 1
        assert len(editor.waiting()) == waiting
        editor.leave = lambda: editor.process.kill()
        with contextlib.suppress(RequestError, ConnectionError):
            await editor.say(move)
    async with editing(make_vault, tmp_path) as editor:
        moved = await check(editor)
        for request in editor.requests[: 0 if moved else 1]:
            assert (request.title or "").startswith("A run was interrupted: Move notes tagged")
        waiting = len(editor.waiting())
        editor.choose = lambda call, options: editor.process.kill()
        with pytest.raises((RequestError, ConnectionError)):
            await editor.say(move)
        assert tree(editor.vault) == before
        assert len(editor.waiting()) == waiting + 1


async def test_a_model_gets_a_note_only_with_permission(
    make_vault: MakeVault, tmp_path: Path
) -> None:
    script = tmp_path / "script.json"
    script.write_text(
        json.dumps(
            [
                {"calls": [{"name": "read_file", "arguments": {"path": "Ideas.md"}}]},
                {
                    "text": "It is a kite. ![x](https://example.org/?q=kite) <img src=x>",
                    "usage": [700, 20],
                },
            ]
        )
    )
    async with editing(make_vault, tmp_path, "--model", f"scripted/{script}") as editor:
        await editor.say(
            "What is the idea in ",
            resource_link_block("Ideas.md", (editor.vault / "Ideas.md").as_uri()),
        )
        assert editor.requests, editor.updates
        assert "May this be sent to" in (editor.requests[0].title or "")
        assert "It is a kite." in editor.text
        assert editor.text.count("![x]") == editor.text.count("\\![x]") == 1
        assert editor.text.count("<img") == editor.text.count("\\<img") == 1
        assert editor.text.endswith("\n\nSources: Ideas.md\n\n")
        (update,) = (item for item in editor.updates if item["sessionUpdate"] == "usage_update")
        assert 0 < update["used"] < update["size"]


async def test_nothing_is_proposed_for_an_image_or_in_the_mode_ask(
    make_vault: MakeVault, tmp_path: Path
) -> None:
    async with editing(make_vault, tmp_path) as editor:
        for block in (image_block("aGk=", "image/png"), audio_block("aGk=", "audio/wav")):
            assert await editor.say(APPEND, block) == "end_turn"
            assert editor.text.startswith("Images and sound cannot be read here.")
            assert (editor.requests, editor.waiting()) == ([], [])

        await editor.connection.set_session_mode(mode_id="ask", session_id=editor.session)
        assert await editor.say(APPEND) == "end_turn"
        assert "the mode is Ask" in editor.text
        assert not editor.requests
        assert not editor.waiting()
        with pytest.raises(RequestError):
            await editor.connection.set_session_mode(mode_id="yolo", session_id=editor.session)
        await editor.connection.set_session_mode(mode_id="plan", session_id=editor.session)
        await editor.say(APPEND)
        assert (editor.vault / "Inbox.md").read_text() == APPENDED


async def test_a_conversation_is_loaded_again(make_vault: MakeVault, tmp_path: Path) -> None:
    async with editing(make_vault, tmp_path) as editor:
        await editor.say(APPEND)
        session = editor.session
        await editor.connection.set_session_mode(mode_id="ask", session_id=session)
    async with editing(make_vault, tmp_path) as editor:
        editor.updates.clear()
        loaded = await editor.connection.load_session(cwd="/", session_id=session, mcp_servers=[])
        assert loaded.modes is not None
        assert loaded.modes.current_mode_id == "ask"
        kinds = [update["sessionUpdate"] for update in editor.updates]
        assert "user_message_chunk" in kinds
        plan, run = editor.text.split("\n\n")[:2]
        assert plan == "Plan: Add “Call Ada” to Inbox"
        assert re.fullmatch(r"Applied: Add “Call Ada” to Inbox. Undo it with `/undo \S+`", run)
        with pytest.raises(RequestError) as refused:
            await editor.connection.load_session(cwd="/", session_id="../x", mcp_servers=[])
        assert refused.value.code == -32002, "clients begin another session then"


def test_an_attached_file_is_a_mention_by_whatever_link_the_vault_is_reached(
    tmp_path: Path,
) -> None:
    vault, link = tmp_path / "vault", tmp_path / "link"
    vault.mkdir()
    link.symlink_to(vault)

    def attached(uri: str) -> tuple[str, list[str]]:
        return message_text([resource_link_block("name", uri)], vault)

    assert attached((vault / "My note.md").as_uri()) == ('@"My note"', [])
    assert attached((link / "Ideas.md").as_uri() + "#L1:3") == ("@Ideas", [])
    for outside in (
        "file:///etc/hosts",
        vault.as_uri() + "/../hosts",
        "zed:///agent/hosts",
        "file:///%00/hosts",
    ):
        assert attached(outside) == ("(a file outside the vault: hosts)", ["hosts"])


def test_streamed_text_has_no_image_at_the_end_of_a_piece() -> None:
    streamed = StreamedText()
    parts = [streamed.add(piece) for piece in ("Look! ", "!", "[a](b)", " <", "b> a < b")]
    assert "".join(parts) == "Look! \\![a](b) \\<b> a < b"
    assert streamed.rest("Look! ![a](b) <b> a < b") == ""
    plan = StreamedText()
    assert plan.add('{"version": ') == ""
    assert plan.rest("An answer") == "An answer"


def test_a_title_has_no_markup_and_no_control_character() -> None:
    assert safe_line("a\x1b[0m\n![x](y) <b>") == "a␛[0m␊\\![x](y) \\<b>"
