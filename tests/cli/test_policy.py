"""One policy by settings, tool and path, the same for `policy explain` and every kind of run."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pytest
from mcp import Client
from msgspec.structs import replace

from agents import call, calls, propose, yes
from obsidian_agent.agent.events import AgentEvent, PreviewReady, TurnFailed
from obsidian_agent.agent.privacy.consent import REFUSED
from obsidian_agent.agent.turn.tool_round import Scrubber
from obsidian_agent.bootstrap import (
    Wiring,
    build_session,
    build_shared_vault,
    build_vault_agents,
    open_ledger,
)
from obsidian_agent.cli.main import main
from obsidian_agent.config.live import LiveSettings
from obsidian_agent.errors import ObsidianAgentError, PlanError, Problem
from obsidian_agent.integrations import other_agents
from obsidian_agent.integrations.mcp_server import Calls, server
from obsidian_agent.integrations.proposals import CLIENT_VARIABLE, SOCKET_VARIABLE
from obsidian_agent.integrations.shared_vault import SharedVault
from obsidian_agent.plan.policy import NOT_PERMITTED
from obsidian_agent.plan.result import Preview
from obsidian_agent.providers.acp import AcpAgent
from obsidian_agent.providers.base import Finished, TextChunk
from obsidian_agent.providers.other_agent import Turn
from obsidian_agent.services.macro import read_macro
from obsidian_agent.services.plans import PreviewOptions
from obsidian_agent.services.session import Session
from obsidian_agent.tools.core.tool import Risk
from obsidian_agent.tools.registry import TOOLS
from obsidian_agent.vault.filesystem.store import VaultStore
from support import MakeVault

NOTES = {
    "Open/a.md": "See [[b]] and [[secret]]\n",
    "Open/b.md": "---\ntags: [x]\n---\n",
    "Open/Deep/Private/c.md": "",
    "Open/style.css": "",
    "Private/secret.md": "[[a]]\n",
    "key.key.md": "",
}
RULES = (
    'write_deny = ["Private", "*.key.md"]\nshare_deny = ["Private"]\nshare_allow = ["Open/**"]\n'
)
SCOPED = 'level = "scoped-write"\nwrite_allow = ["Open/**"]\n'
COMMANDS = "allow_commands = true\n"
READ, WRITE, CREATE, DELETE, RENAME = (
    "vault.readFile",
    "vault.writeFile",
    "vault.createFile",
    "vault.delete",
    "vault.rename",
)

ASK, ALLOW, DENY = "ask", "allow", "deny"
CONFIRM = "confirm_writes is on"

Row = tuple[str, str, str, str, str]
"""Settings, tool, path (or a command's id), decision, rule."""
TABLE: Sequence[Row] = [
    # paths
    (RULES, WRITE, "Open/a.md", ASK, CONFIRM),
    (RULES, CREATE, "Open/new.md", ASK, CONFIRM),
    (RULES, WRITE, "Private/secret.md", DENY, "write_deny Private"),
    (RULES, CREATE, "Open/PRIVATE/new.md", DENY, "write_deny Private"),
    (RULES, WRITE, "Open/Deep/Private/c.md", DENY, "write_deny Private"),
    (RULES, WRITE, "key.key.md", DENY, "write_deny *.key.md"),
    (RULES, WRITE, "door.md", DENY, "write_deny Private"),
    ('write_extensions = ["md"]', WRITE, "Open/a.md", ASK, CONFIRM),
    ('write_extensions = [".MD"]', WRITE, "Open/style.css", DENY, "write_extensions, without css"),
    # levels
    ('level = "read-only"', WRITE, "Open/a.md", DENY, "level read-only"),
    ('level = "read-only"\nshare_allow = ["**"]', READ, "Open/a.md", ALLOW, "share_allow **"),
    (SCOPED, WRITE, "Open/a.md", ASK, CONFIRM),
    (
        SCOPED,
        CREATE,
        "Other/new.md",
        DENY,
        "level scoped-write, and no pattern of write_allow covers it",
    ),
    ('level = "full-write"', CREATE, "Other/new.md", ASK, CONFIRM),
    # deletes
    ("", DELETE, "Open/a.md", DENY, "allow_deletes is off"),
    (
        "allow_deletes = true\nconfirm_writes = false",
        DELETE,
        "Open/a.md",
        ASK,
        "deletes always need approval",
    ),
    (f"allow_deletes = true\n{RULES}", DELETE, "Private/secret.md", DENY, "write_deny Private"),
    # tools
    ('tools_deny = ["vault.write*"]', WRITE, "Open/a.md", DENY, "tools_deny vault.write*"),
    ('tools_deny = ["vault.write*"]', CREATE, "Open/new.md", ASK, CONFIRM),
    (
        'tools_deny = ["vault.readFile"]\nshare_allow = ["**"]',
        READ,
        "Open/a.md",
        DENY,
        "tools_deny vault.readFile",
    ),
    (
        'tools_allow = ["vault.CREATEFILE"]',
        CREATE,
        "Open/new.md",
        ALLOW,
        "tools_allow vault.CREATEFILE",
    ),
    (
        'tools_allow = ["*"]\ntools_deny = ["vault.createFile"]',
        CREATE,
        "Open/new.md",
        DENY,
        "tools_deny vault.createFile",
    ),
    ("confirm_writes = false", WRITE, "Open/a.md", ALLOW, "confirm_writes is off"),
    (f"confirm_writes = false\n{RULES}", WRITE, "Private/secret.md", DENY, "write_deny Private"),
    # reading, by a model
    (RULES, READ, "Open/a.md", ALLOW, "share_allow Open/**"),
    (RULES, READ, "key.key.md", ASK, "no pattern of share_allow covers it"),
    (RULES, READ, "Private/secret.md", DENY, "share_deny Private"),
    (RULES, READ, "door.md", DENY, "share_deny Private"),
    # commands
    ("", "commands.run", "app:reload", DENY, "allow_commands is off"),
    (
        COMMANDS,
        "commands.run",
        "app:reload",
        ASK,
        "allow_commands is on, and no pattern of commands_allow names it",
    ),
    (
        COMMANDS + 'commands_allow = ["app:*"]',
        "commands.run",
        "app:reload",
        ALLOW,
        "commands_allow app:*",
    ),
    (
        COMMANDS + 'commands_deny = ["app:*"]\ncommands_allow = ["*"]',
        "commands.run",
        "app:reload",
        DENY,
        "commands_deny app:*",
    ),
    (COMMANDS + 'level = "read-only"', "commands.run", "app:reload", DENY, "level read-only"),
    (
        'commands_allow = ["app:reload"]',
        "commands.run",
        "app:reload",
        DENY,
        "allow_commands is off",
    ),
    # what the path gate says
    ("", WRITE, "../x.md", DENY, "PATH_OUTSIDE_VAULT"),
    ("", WRITE, ".obsidian/app.json", DENY, "PATH_NOT_ALLOWED"),
]


class Command:
    """One that a stand-in for Obsidian has."""

    id, name, source = "app:reload", "Reload", "app"


@dataclass
class Desk:
    """A vault under some settings."""

    store: VaultStore
    folder: Path
    capsys: pytest.CaptureFixture[str]

    def settings(self, text: str) -> None:
        (self.folder / "config.toml").write_text(text)

    def explain(self, path: str, *more: str) -> dict[str, Any]:
        places = [
            "--vault",
            self.store.real_path,
            "--state-dir",
            str(self.folder / "s"),
            "--config",
            str(self.folder / "config.toml"),
        ]
        self.capsys.readouterr()
        assert main(["policy", "explain", path, *more, "--json", *places]) == 0
        told: dict[str, Any] = json.loads(self.capsys.readouterr().out)
        return told

    def wiring(self, *answers: Mapping[str, Any]) -> Wiring:
        """As the app has it, with a model that gives these answers."""
        script = self.folder / "script.jsonl"
        script.write_text("\n".join(json.dumps(answer) for answer in (*answers, {"text": "Done."})))
        live = LiveSettings.load(
            self.folder / "config.toml", {"OBSIDIAN_AGENT_MODEL": f"scripted/{script}"}
        )
        return Wiring(self.store, self.folder / "s", policy=None, settings=live)

    @contextmanager
    def session(self, *answers: Mapping[str, Any], model: str | None = None) -> Iterator[Session]:
        wiring = self.wiring(*answers)
        if model is not None:
            live = LiveSettings.load(self.folder / "config.toml", {"OBSIDIAN_AGENT_MODEL": model})
            wiring = replace(wiring, settings=live)
        session = build_session(wiring)
        session.vault.commands = lambda: lambda: [Command()]  # type: ignore[method-assign]
        session.vault.run_command = lambda id, name: None  # type: ignore[method-assign]
        yield session

    def contents(self) -> dict[str, bytes]:
        root = Path(self.store.real_path)
        return {
            str(path): path.read_bytes()
            for path in root.rglob("*")
            if path.is_file() and ".obsidian-agent" not in path.parts
        }


@pytest.fixture
def desk(make_vault: MakeVault, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Desk:
    made = Desk(make_vault(NOTES), tmp_path, capsys)
    (Path(made.store.real_path) / "door.md").symlink_to("Private/secret.md")
    made.settings("")
    return made


def plan_of(tool: str, path: str) -> dict[str, Any]:
    more: dict[str, dict[str, Any]] = {
        WRITE: {"content": "x"},
        CREATE: {"content": "x"},
        RENAME: {"updateLinks": False},
    }
    args = {"id": path} if tool == "commands.run" else {"path": path, **more.get(tool, {})}
    return {
        "version": "1.0",
        "goal": "g",
        "riskLevel": "commands",
        "steps": [{"id": "s", "tool": tool, "args": args}],
    }


async def last_of(events: AsyncIterator[AgentEvent]) -> AgentEvent:
    return [event async for event in events][-1]


def decided(event: AgentEvent | Preview | PlanError) -> str:
    """Summarize a preview, or the reason why there is none."""
    if isinstance(event, PreviewReady):
        event = event.preview
    if isinstance(event, Preview):
        return event.approval.decision if event.valid else refused(event.errors)
    assert isinstance(event, TurnFailed | PlanError), event
    return refused(event.problems)


def refused(problems: Sequence[Problem]) -> str:
    codes = {problem.code for problem in problems}
    assert codes & (NOT_PERMITTED | {"PATH_OUTSIDE_VAULT", "PATH_NOT_ALLOWED"}), problems
    return DENY


def by_preview(desk: Desk, plan: dict[str, Any]) -> str:
    with desk.session() as session:
        try:
            return decided(session.plans.dry_run(plan))
        except PlanError as error:
            return decided(error)


def by_run(desk: Desk, plan: dict[str, Any]) -> str:
    """Run a preview under these settings that was made without restrictions."""
    with desk.session() as session:
        rules = session.plans.make_policy
        free = replace(rules(""), limits=(), allow_deletes=True, allow_commands=True)
        try:
            approved = replace(session.plans, make_policy=lambda agent: free).dry_run(plan)
        except PlanError as error:
            return decided(error)
        before = desk.contents()
        result = session.plans.apply(approved, lambda event: None, threading.Event())
        if result.success:
            if result.undo_available:
                session.runs.undo(result.run_id)
            return rules("").approval(approved.change_set, approved.instances, TOOLS).decision
        assert (result.run_id, desk.contents()) == (None, before)
        return refused(result.errors)


def by_macro(desk: Desk, plan: dict[str, Any]) -> str:
    with desk.session() as session:
        try:
            session.saved.put(read_macro({"name": "m", "plan": plan}, TOOLS).macro, replacing=True)
        except PlanError as error:
            return decided(error)
        return decided(asyncio.run(last_of(session.run_macro("m", {}))))


def by_model(desk: Desk, plan: dict[str, Any]) -> str:
    """Let a model propose it: the preview shows forbidden steps, and cannot be approved."""

    async def approve(request: Any) -> Any:
        return yes(request)

    with desk.session(propose(plan), propose(plan), propose(plan)) as session:
        return decided(asyncio.run(last_of(session.answer("g", approve))))


def by_other_agent(desk: Desk, plan: dict[str, Any]) -> str:
    """Let an MCP client propose it, and run the waiting plan."""
    shared = served(desk)
    try:
        shared.propose(plan)
    except PlanError as error:
        return decided(error)
    with desk.session() as session:
        return decided(session.plans.dry_run(plan, options=PreviewOptions(agent="client")))


class InProcess(AcpAgent):
    """An agent that calls a tool of our MCP server, which runs in this process."""

    shared: ClassVar[Callable[[], SharedVault]]
    told: ClassVar[str] = ""
    alive = True
    lists_tools = False
    wanted: str = ""

    async def _connect(self) -> None:
        pass

    async def _begin(self) -> str:
        return "session"

    async def _prompt(self, session: str, pieces: Sequence[str], turn: Turn) -> Finished:
        given = {each["name"]: each["value"] for each in self.server["env"]}
        shared = replace(
            type(self).shared(), app=Path(given[SOCKET_VARIABLE]), client=given[CLIENT_VARIABLE]
        )
        self.wanted = (
            self.wanted or pieces[-1].strip().splitlines()[-1]
        )  # and the same once more when its plan comes back
        tool, _, arguments = self.wanted.partition(" ")
        scrubber = Scrubber.of(shared.vault.store.real_path)
        async with Client(server(shared, scrubber, Calls())) as client:
            result = await client.call_tool(tool, json.loads(arguments))
        type(self).told = "".join(part.text for part in result.content if part.type == "text")
        turn.deltas.put_nowait(TextChunk("That was it."))
        return Finished("stop")


def asked_over_acp(
    desk: Desk, tool: str, arguments: Mapping[str, Any], assistant: str | None = None
) -> AgentEvent:
    """Return the last event of a turn of an agent that calls one of our tools.

    `InProcess.told` is the answer of the tool.
    """

    async def refuse(request: Any) -> Any:
        return REFUSED

    InProcess.shared = lambda: build_shared_vault(desk.wiring())
    with pytest.MonkeyPatch.context() as patch, desk.session(model="acp/opencode") as session:
        patch.setattr(other_agents, "AcpAgent", InProcess)
        return asyncio.run(
            last_of(session.answer(f"{tool} {json.dumps(arguments)}", refuse, assistant=assistant))
        )


def by_acp(desk: Desk, plan: dict[str, Any], assistant: str | None = None) -> str:
    event = asked_over_acp(desk, "propose_plan", {"plan": plan}, assistant)
    if not isinstance(event, PreviewReady | TurnFailed):
        assert any(
            code in InProcess.told
            for code in (*NOT_PERMITTED, "PATH_OUTSIDE_VAULT", "PATH_NOT_ALLOWED")
        ), InProcess.told
        return DENY
    return decided(event)


def read_over_acp(desk: Desk, path: str) -> str:
    asked_over_acp(desk, "read_note", {"path": path})
    return ALLOW if '"path"' in InProcess.told and "code" not in InProcess.told else DENY


def served(desk: Desk, client: str = "client") -> SharedVault:
    return replace(build_shared_vault(desk.wiring()), client=client)


WAYS: Sequence[Callable[[Desk, dict[str, Any]], str]] = [
    by_preview,
    by_run,
    by_macro,
    by_model,
    by_other_agent,
]


@pytest.mark.parametrize(
    ("tool", "path", "named"),
    [
        ("commands.run", "daily-notes", "ignores allow_commands and commands_allow"),
        ("vault.delete", "Open/a.md", "ignores allow_deletes"),
        (CREATE, "Open/new.md", ""),
    ],
)
def test_settings_that_do_not_hold_on_the_command_line_are_named(
    desk: Desk, tool: str, path: str, named: str
) -> None:
    desk.settings(
        'allow_commands = true\ncommands_allow = ["daily-*"]\nallow_deletes = true\n'
        f'[vaults."{desk.store.real_path}"]\n'
    )
    places = ["--vault", desk.store.real_path, "--state-dir", str(desk.folder / "s")]
    places += ["--config", str(desk.folder / "config.toml")]
    desk.capsys.readouterr()
    assert main(["policy", "explain", path, "--tool", tool, *places]) == 0
    told = desk.capsys.readouterr()
    assert named in told.err
    assert bool(told.err) == bool(named)


@pytest.mark.parametrize(("settings", "tool", "path", "decision", "rule"), TABLE)
def test_every_way_gives_the_same_answer(
    desk: Desk, settings: str, tool: str, path: str, decision: str, rule: str
) -> None:
    desk.settings(settings)
    told = desk.explain(path, "--tool", tool)
    assert (told["decision"], told["rule"]) == (decision, rule)
    assert told["source"] in ("file", "default", "the path itself", "settings")
    before = desk.contents()
    if TOOLS[tool].risk is Risk.READ_ONLY:
        unasked = ALLOW if decision == ALLOW else DENY
        assert (
            read_by_model(desk, path),
            read_by_client(desk, path),
            read_over_acp(desk, path),
        ) == (decision, unasked, unasked)
    else:
        assert {way.__name__: way(desk, plan_of(tool, path)) for way in WAYS} == {
            way.__name__: decision for way in WAYS
        }
        assert by_acp(desk, plan_of(tool, path)) == (ASK if decision == ALLOW else decision), (
            "another program is not the user's model"
        )
    assert desk.contents() == before


def read_by_model(desk: Desk, path: str) -> str:
    asked: list[Any] = []

    async def approve(request: Any) -> Any:
        asked.append(request)
        return yes(request)

    with desk.session(calls(call("vault__readFile", path=path))) as session:
        asyncio.run(last_of(session.answer("g", approve)))
    sent = [entry for entry in open_ledger(desk.wiring()).entries() if path in str(entry)]
    if asked:
        return ASK
    return ALLOW if sent else DENY


def read_by_client(desk: Desk, path: str) -> str:
    try:
        served(desk).read("vault.readFile", {"path": path})
    except ObsidianAgentError:
        return DENY
    return ALLOW


@pytest.mark.parametrize(
    ("tool", "args", "codes"),
    [
        ("vault.rename", {"from": "Open/b.md", "to": "Private/b.md"}, {"PERMISSION_DENIED"}),
        ("vault.rename", {"from": "Open", "to": "Closed"}, {"PERMISSION_DENIED"}),
        ("vault.delete", {"path": "Open", "recursive": True}, {"PERMISSION_DENIED"}),
        ("vault.rename", {"from": "Open/a.md", "to": "Open/z.md"}, {"PERMISSION_DENIED"}),
        ("vault.renameTag", {"from": "x", "to": "y"}, set()),
        ("vault.writeFile", {"path": "Open/a.md", "content": "123456"}, {"PERMISSION_DENIED"}),
        ("vault.writeFile", {"path": "Open/a.md", "content": "12345"}, set()),
        (
            "vault.updateFile",
            {"path": "Open/a.md", "mode": "append", "content": "1"},
            {"PERMISSION_DENIED"},
        ),
        (
            "vault.rename",
            {"from": "Open/b.md", "to": "Open/style.css", "overwrite": True},
            {"DELETE_DISABLED"},
        ),
    ],
)
def test_what_counts_is_what_a_call_comes_to(
    desk: Desk, tool: str, args: Mapping[str, Any], codes: set[str]
) -> None:
    size = "write_largest = 5\n" if "content" in args else ""
    desk.settings(f"{RULES}{size}allow_deletes = {'false' if args.get('overwrite') else 'true'}\n")
    plan = {
        "version": "1.0",
        "goal": "g",
        "riskLevel": "writes",
        "steps": [{"id": "s", "tool": tool, "args": dict(args)}],
    }
    with desk.session() as session:
        assert {error.code for error in session.plans.dry_run(plan).errors} == codes


def vault_says(desk: Desk, rules: object) -> None:
    file = Path(desk.store.real_path) / ".obsidian-agent" / "policy.json"
    file.parent.mkdir(exist_ok=True)
    file.write_text(rules if isinstance(rules, str) else json.dumps(rules))


@pytest.mark.parametrize(
    ("rules", "tool", "path", "decision", "rule"),
    [
        ({"level": "read-only"}, WRITE, "Open/a.md", DENY, "level read-only"),
        (
            {"level": "scoped-write", "write_allow": ["Open"]},
            CREATE,
            "Else/new.md",
            DENY,
            "level scoped-write, and no pattern of write_allow covers it",
        ),
        ({"write_deny": ["Open"]}, WRITE, "Open/a.md", DENY, "write_deny Open"),
        ({"tools_deny": ["vault.*"]}, WRITE, "Open/a.md", DENY, "tools_deny vault.*"),
        ({"allow_deletes": False}, DELETE, "Open/a.md", DENY, "allow_deletes is off"),
        ("{broken", WRITE, "Open/a.md", DENY, "level read-only"),
        ({"level": "none at all"}, WRITE, "Open/a.md", DENY, "level read-only"),
    ],
)
def test_a_vault_may_take_away(
    desk: Desk, rules: object, tool: str, path: str, decision: str, rule: str
) -> None:
    desk.settings("allow_deletes = true\n")
    vault_says(desk, rules)
    assert desk.explain(path, "--tool", tool) == {
        "decision": decision,
        "rule": rule,
        "source": ".obsidian-agent/policy.json",
    }
    assert {way(desk, plan_of(tool, path)) for way in WAYS} == {decision}


def test_what_a_vault_does_not_share_is_not_read(desk: Desk) -> None:
    desk.settings('share_allow = ["**"]\n')
    vault_says(desk, {"share_deny": ["Open"]})
    assert desk.explain("Open/a.md", "--tool", READ)["source"] == ".obsidian-agent/policy.json"
    assert (read_by_model(desk, "Open/a.md"), read_by_client(desk, "Open/a.md")) == (DENY, DENY)


def test_a_vault_that_gives_permissions_is_not_heard_and_that_is_told(desk: Desk) -> None:
    desk.settings(f'{SCOPED}share_deny = ["Private"]\n')
    wide = {
        "level": "full-write",
        "write_allow": ["**"],
        "allow_deletes": True,
        "allow_commands": True,
        "confirm_writes": False,
        "tools_allow": ["*"],
        "commands_allow": ["*"],
        "share_allow": ["**"],
        "agent_levels": {"*": "full-write"},
    }
    rows = [
        (CREATE, "Other/new.md"),
        (WRITE, "Open/a.md"),
        (DELETE, "Open/a.md"),
        ("commands.run", "app:reload"),
        (READ, "Open/a.md"),
    ]
    before = [desk.explain(path, "--tool", tool) for tool, path in rows]
    vault_says(desk, wide)
    assert [desk.explain(path, "--tool", tool) for tool, path in rows] == before
    with desk.session() as session:
        told = {
            warning.message.split(":")[1].split()[0]
            for warning in session.plans.dry_run(plan_of(WRITE, "Open/a.md")).warnings
        }
    assert told == wide.keys() - {"write_allow"}, (
        "which patterns a level is about is not more than the level"
    )


@pytest.mark.parametrize(
    ("settings", "decision"),
    [
        ("confirm_writes = false", ASK),
        ('tools_allow = ["*"]', ASK),
        ('confirm_writes = false\ntools_allow = ["acp/*"]', ASK),
        ('confirm_writes = false\ntools_allow = ["acp/opencode"]', ALLOW),
        ('tools_allow = ["acp/opencode"]', ASK),
    ],
)
def test_a_program_that_plans_is_asked_about_unless_a_rule_names_it(
    desk: Desk, settings: str, decision: str
) -> None:
    desk.settings(settings)
    assert by_acp(desk, plan_of(CREATE, "Open/new.md")) == decision
    assert (
        desk.explain("Open/new.md", "--tool", CREATE, "--agent", "opencode")["decision"] == decision
    )


@pytest.mark.parametrize(
    ("level", "decision"),
    [("poet", DENY), ("OpenCode", DENY), ("opencode/*", DENY), ("op", ALLOW), ("gemini", ALLOW)],
)
def test_an_agent_of_the_vault_in_another_program_is_held_to_what_either_is_held_to(
    desk: Desk, level: str, decision: str
) -> None:
    desk.settings(
        f'confirm_writes = false\ntools_allow = ["acp/opencode"]\n[agent_levels]\n"{level}" = "read-only"\n'
    )
    agents = Path(desk.store.real_path, ".obsidian-agent", "agents")
    agents.mkdir(parents=True)
    (agents / "poet.md").write_text("---\ndescription: d\n---\nRhyme.\n")
    library = build_vault_agents(desk.wiring())
    for file in library.library().untrusted:
        library.trust(file.path, file.sha256)
    assert by_acp(desk, plan_of(CREATE, "Open/new.md"), "poet") == decision
    assert desk.explain("Open/new.md", "--agent", "opencode/poet")["decision"] == decision


def test_a_kept_plan_is_judged_as_its_proposer_when_it_is_run(desk: Desk) -> None:
    _, told = served(desk, "claude").propose(plan_of(CREATE, "Open/new.md"))
    desk.settings('[agent_levels]\n"claude*" = "read-only"\n')
    places = [
        "--vault",
        desk.store.real_path,
        "--state-dir",
        str(desk.folder / "s"),
        "--config",
        str(desk.folder / "config.toml"),
    ]
    assert main(["run", "--plan", told["planId"], "--yes", *places]) == 3
    desk.settings("")
    assert main(["run", "--plan", told["planId"], "--yes", *places]) == 0


def test_another_agent_may_be_held_to_less_than_the_person(desk: Desk) -> None:
    desk.settings('confirm_writes = false\n[agent_levels]\n"claude*" = "read-only"\n')
    plan = plan_of(WRITE, "Open/a.md")
    with desk.session() as session:
        decisions = [
            decided(session.plans.dry_run(plan, options=PreviewOptions(agent=name)))
            for name in ("", "opencode", "Claude-Code")
        ]
    assert decisions == [ALLOW, ASK, DENY]
    assert desk.explain("Open/a.md", "--agent", "claude") == {
        "decision": DENY,
        "rule": "level read-only",
        "source": "agent_levels",
    }
    _, told = served(desk, "claude").propose(plan)
    assert told["preview"]["errors"][0]["code"] == "PERMISSION_DENIED"
    desk.settings('write_allow = ["Open/**"]\n[agent_levels]\n"claude*" = "scoped-write"\n')
    assert desk.explain("Open/a.md", "--agent", "claude")["decision"] == ASK
    assert desk.explain("Other/a.md", "--agent", "claude")["decision"] == DENY


SPELLINGS = ["./Private", "{vault}/Private", "~/vault/Private", "Private//", "Private\\", "A[b]"]
MEANINGLESS = ["!Private", "~/Private", "[", "{Private,Open}"]


@pytest.fixture
def guarded(
    commands: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[str, str], Any]:
    """Create a vault with one rule in the settings: the name of the setting, and a pattern."""
    monkeypatch.setenv("HOME", str(tmp_path))
    made = commands({"Private/p.md": "secret\n", "A[b]/p.md": "secret\n", "Open/a.md": "a\n"})

    def write(setting: str, pattern: str) -> Any:
        text = pattern.format(vault=made.vault) if "{vault}" in pattern else pattern
        made.config.write_text(f"{setting} = {json.dumps([text])}\n")
        return made

    return write


@pytest.mark.parametrize("pattern", SPELLINGS)
def test_every_spelling_of_a_rule_protects(
    guarded: Callable[[str, str], Any], pattern: str
) -> None:
    path = "A[b]/p.md" if pattern == "A[b]" else "Private/p.md"
    here = guarded("write_deny", pattern)
    step = {"id": "s", "tool": WRITE, "args": {"path": path, "content": "lost"}}
    code, document = here.json("run", here.plan(step), "--yes")
    assert (code, document["errors"][0]["code"]) == (3, "PERMISSION_DENIED")
    assert (here.vault / path).read_text() == "secret\n"
    here = guarded("share_deny", pattern)
    verdict = here.json("policy", "explain", path, "--tool", READ)[1]
    assert verdict["decision"] == "deny"


@pytest.mark.parametrize("setting", ["write_deny", "share_deny", "write_allow", "share_allow"])
@pytest.mark.parametrize("pattern", MEANINGLESS)
def test_a_rule_without_a_meaning_is_refused(
    guarded: Callable[[str, str], Any], setting: str, pattern: str
) -> None:
    here = guarded(setting, pattern)
    step = {"id": "s", "tool": WRITE, "args": {"path": "Private/p.md", "content": "lost"}}
    said = here.say("run", here.plan(step), "--yes")
    assert said.code == 2
    assert pattern in said.err
    assert (here.vault / "Private/p.md").read_text() == "secret\n"
    assert here.say("config", "set", setting, pattern).code == 2


def test_a_vault_whose_own_rules_cannot_be_read_shares_nothing(desk: Desk) -> None:
    vault_says(desk, {"share_deny": ["!x"]})
    assert desk.explain("Open/a.md", "--tool", READ)["decision"] == DENY
