"""Hooks receive events, before_run may stop a run, and nothing else of them has an effect."""

from __future__ import annotations

import asyncio
import json
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agents import NOTES
from obsidian_agent.agent.events import ExecutionResult, PlanningResult
from obsidian_agent.bootstrap import Wiring, build_session, open_record
from obsidian_agent.cli.main import main
from obsidian_agent.config.settings import HookEvent, Settings
from obsidian_agent.services import hooks
from obsidian_agent.services.session import Session
from obsidian_agent.services.vault_agents.documents import config_in
from support import MakeVault, settings_with

EVENTS = (
    "before_prompt",
    "after_prompt",
    "before_plan",
    "after_plan",
    "before_run",
    "after_run",
    "error",
)
HEAR = "import sys; open(sys.argv[1], 'a').write(sys.stdin.read() + '\\n'); open(sys.argv[1] + '.env', 'w').write(str(__import__('os').environ))"
NO = "print('not today'); raise SystemExit(3)"
CHILD = "import subprocess, sys, time; subprocess.Popen(['sleep', '61.5']); time.sleep(60)"


@pytest.fixture
def wiring(make_vault: MakeVault, tmp_path: Path) -> Callable[..., Wiring]:
    return lambda **commands: Wiring(
        make_vault(NOTES), tmp_path / "state", settings=settings_with(hooks=commands)
    )


def python(program: str, *arguments: str) -> list[str]:
    return [sys.executable, "-c", program, *arguments]


def plan(path: str = "New.md") -> dict[str, Any]:
    step = {"id": "new", "tool": "vault.createFile", "args": {"path": path, "content": "x"}}
    return {"version": "1.0", "goal": "Make a note", "riskLevel": "writes", "steps": [step]}


def run(session: Session) -> ExecutionResult:
    return session.plans.apply(session.plans.dry_run(plan()), lambda event: None, threading.Event())


def test_what_happens_is_told_in_order_and_without_keys(
    wiring: Callable[..., Wiring], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    heard = tmp_path / "heard"
    session = build_session(wiring(**{event: python(HEAR, str(heard)) for event in EVENTS}))
    instruction = "append 'Call Ada' to Inbox"

    async def ask() -> PlanningResult:
        async def emit(event: object) -> None: ...

        return await session.plan(instruction, {}, None, emit)

    asyncio.run(ask())
    result = run(session)
    told = [json.loads(line) for line in heard.read_text().splitlines()]
    assert [each.pop("event") for each in told] == [
        "before_prompt",
        "after_prompt",
        "before_plan",
        "after_plan",
        "before_run",
        "after_run",
    ]
    assert {each.pop("vault") for each in told} == {session.vault.store.real_path}
    asked, answered, planned, previewed, approved, done = told
    assert (asked, answered["message"]) == ({"message": instruction}, instruction)
    assert planned["plan"] == plan()
    assert previewed["summary"]["filesCreated"] == approved["summary"]["filesCreated"] == ["New.md"]
    assert previewed["planHash"] == approved["planHash"]
    assert (done["runId"], done["status"], done["effects"]["created"]) == (
        result.run_id,
        "done",
        ["New.md"],
    )
    assert "sk-secret" not in Path(f"{heard}.env").read_text()


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        (python(NO), "exited with 3: not today"),
        (["/not/there"], "cannot be started"),
        (python(CHILD), "was killed after 2 s"),
        (python("print('y' * 5_000_000); raise SystemExit(1)"), "exited with 1"),
    ],
)
def test_a_run_that_its_hook_does_not_agree_to_does_not_happen(
    wiring: Callable[..., Wiring],
    command: list[str],
    reason: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    if CHILD in command:
        monkeypatch.setattr(hooks, "TIMEOUT", 2.0)
    parts = wiring(before_run=command, before_plan=command)
    session = build_session(parts)
    started = time.monotonic()
    result = run(session)
    assert (result.status, result.outcome, [each.code for each in result.errors]) == (
        "refused",
        "refused",
        ["HOOK_REFUSED"],
    )
    assert reason in result.errors[0].message
    assert reason.partition(":")[0] in caplog.text
    assert time.monotonic() - started < 60, "the child would sleep for a minute"
    assert not (Path(parts.store.real_path) / "New.md").exists()
    assert session.runs.history() == []
    assert [each["kind"] for each in open_record(parts).entries()] == ["approval", "denial"]
    end = time.monotonic() + 20
    while "61.5" in _processes() and time.monotonic() < end:
        time.sleep(0.05)  # a killed process ends soon, not at once
    assert "61.5" not in _processes(), "what a hook has started is ended with it"


def _processes() -> str:
    if not Path("/proc/self/cmdline").exists():
        return ""
    found = []
    for each in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found.append(each.read_bytes().replace(b"\0", b" ").decode("utf-8", "replace"))
        except OSError:
            continue
    return "\n".join(line for line in found if line.startswith("sleep"))


def test_functions_of_an_embedding_program_may_stop_a_run_and_change_nothing(
    wiring: Callable[..., Wiring],
) -> None:
    session = build_session(wiring(after_run=python(NO)))
    heard: list[str] = []

    def spoil(told: Any) -> None:
        heard.append(told["event"])
        told["plan"]["steps"].clear()

    def fail(told: Any) -> None:
        raise ValueError("not while I work")

    ours = session.plans.hooks
    spoiled: list[HookEvent] = ["before_plan", "before_run"]
    failing: list[HookEvent] = ["before_plan", "after_plan", "after_run"]
    for event in spoiled:
        ours.on(event, spoil)
    for event in failing:
        ours.on(event, fail)
    assert run(session).success, "only before_run may stop anything"
    assert heard == ["before_plan", "before_run"]
    ours.on("before_run", fail)
    refused = session.plans.apply(
        session.plans.dry_run(plan("Other.md")), lambda event: None, threading.Event()
    )
    assert [each.message for each in refused.errors] == [
        "Your before_run hook refused the run: not while I work"
    ]


def test_on_the_command_line_output_goes_to_the_log_and_failures_are_reported(
    make_vault: MakeVault,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    vault, config = make_vault(NOTES).real_path, tmp_path / "config.toml"
    places = ["--vault", vault, "--state-dir", str(tmp_path / "state"), "--config", str(config)]
    assert main(["do", "append 'Call Ada' to Garden", "--yes", *places]) == 0
    log = tmp_path / "state" / "log" / "obsidian-agent.log"
    assert not log.exists(), "without hooks nothing is logged"
    talkative = json.dumps(python("print('three notes counted')"))
    failing = json.dumps(python("print('disk full'); raise SystemExit(3)"))
    config.write_text(
        f"[hooks]\nbefore_run = {talkative}\nafter_run = {failing}\n"
        f'before_plan = ["/not/there"]\nafter_plan = {talkative}\nerror = {failing}\n'
    )
    capsys.readouterr()
    assert main(["do", "append 'Ask Ben' to Garden", "--yes", *places, "--json"]) == 0

    told = capsys.readouterr()
    json.loads(told.out)
    reported = [line for line in told.err.splitlines() if line.endswith("(HOOK_FAILED)")]
    written = log.read_text()
    assert len(reported) == 2
    assert "before_plan hook failed: /not/there cannot be started" in reported[0]
    assert "after_run hook failed" in reported[1]
    assert "exited with 3: disk full" in reported[1]
    for line in ("three notes counted", "disk full", "cannot be started", "exited with 3"):
        assert line in written


def test_errors_are_told(wiring: Callable[..., Wiring]) -> None:
    session = build_session(wiring())
    told: list[Any] = []
    session.plans.hooks.on("error", told.append)
    ready = session.plans.dry_run(plan())
    Path(session.vault.store.real_path, "New.md").write_text("mine", encoding="utf-8")
    assert not session.plans.apply(ready, lambda event: None, threading.Event()).success
    assert [each["code"] for each in told] == ["CONFLICT"]


def test_a_vault_sets_no_hooks() -> None:
    _, problems = config_in(
        ".opencode/opencode.json", b'{"hooks": {"before_run": ["rm", "-rf", "/"]}}'
    )
    assert [problem.code for problem in problems] == ["CONFIG_IGNORED"]
    with pytest.raises(ValueError, match="before_breakfast"):
        Settings(hooks={"before_breakfast": ("x",)})  # type: ignore[dict-item]
