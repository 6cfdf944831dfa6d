"""`ask` with a model: the document, the exit codes, and services that fail."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agents import NOTES, call, calls, propose
from llm_server import KEY, Behaviour, LlmServer, Reply, Silence
from obsidian_agent.cli.exits import Exit
from obsidian_agent.cli.main import main
from support import MakeVault, options_for

READ = calls(
    call("vault__readFiles", filePaths=["Garden.md", "Finance/bank.md"]), text="Let me look."
)


@pytest.fixture
def ask(make_vault: MakeVault, tmp_path: Path) -> Any:
    vault = make_vault(NOTES).real_path

    def ask(*answers: dict[str, Any], as_json: bool = True, share: Sequence[str] = ()) -> int:
        script = tmp_path / "answers.jsonl"
        script.write_text("\n".join(json.dumps(answer) for answer in answers), encoding="utf-8")
        options = [
            *options_for(vault, tmp_path),
        ]
        shared = [word for path in share for word in ("--share", path)]
        model = ["--model", f"scripted/{script}", *(["--json"] if as_json else [])]
        return main(["ask", "What about the garden?", *model, *shared, *options])

    return ask


def test_the_document(ask: Any, capsys: pytest.CaptureFixture[str]) -> None:
    code = ask(READ, {"text": "Water \x1b[8mthem.", "usage": [70, 5]}, share=("Garden.md",))
    output = capsys.readouterr()
    assert code == Exit.DONE
    assert json.loads(output.out) == {
        "answer": "Water \x1b[8mthem.",
        "sources": ["Garden.md"],
        "usage": {"promptTokens": 70, "completionTokens": 5},
        "outcome": "done",
    }
    assert "Not shared with scripted/" in output.err
    assert "Finance/bank.md" in output.err


def test_on_a_terminal_the_answer_is_streamed_and_harmless(
    ask: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    code = ask(READ, {"text": "Water \x1b[8mthem."}, as_json=False, share=("**",))
    output = capsys.readouterr()
    assert code == Exit.DONE
    assert output.out.splitlines()[0] == "Let me look."
    assert "Water" in output.out
    assert "\x1b" not in output.out
    sources = next(line for line in output.err.splitlines() if line.startswith("From "))
    assert {"Garden.md", "Finance/bank.md"} <= set(sources.removeprefix("From ").split(", "))
    assert "Read files" in output.err


def test_no_plan_is_made(ask: Any, capsys: pytest.CaptureFixture[str]) -> None:
    plan = {"version": "1.0", "goal": "x", "riskLevel": "writes", "steps": []}
    assert ask(propose(plan), {"text": "I cannot."}) == Exit.DONE
    assert json.loads(capsys.readouterr().out)["answer"] == "I cannot."


def test_a_model_without_tools_answers_with_what_a_reading_plan_finds(
    ask: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    refused = {"error": {"code": "API_TOOLS_UNSUPPORTED", "message": "No tools."}}
    step = {"id": "find", "tool": "vault.searchText", "args": {"query": "soil"}}
    reading = {"version": "1.0", "goal": "Find it", "riskLevel": "read-only", "steps": [step]}
    assert ask(refused, {"plan": reading}) == Exit.DONE
    document = json.loads(capsys.readouterr().out)
    assert "Buy garden soil." in document["answer"]
    assert document["outcome"] == "done"


@pytest.mark.parametrize(
    ("answers", "code", "outcome", "problem"),
    [
        (
            [{"error": {"code": "API_KEY_INVALID", "message": "No."}}],
            Exit.SERVICE,
            "error",
            "API_KEY_INVALID",
        ),
        (
            [calls(call("vault__listFiles"))] * 30,
            Exit.NOT_APPROVED,
            "needs-input",
            "ROUNDS_USED_UP",
        ),
        ([{"text": " "}], Exit.SERVICE, "error", "EMPTY_ANSWER"),
    ],
)
def test_failures(
    answers: list[dict[str, Any]],
    code: Exit,
    outcome: str,
    problem: str,
    ask: Any,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert ask(*answers, share=("**",)) == code
    document = json.loads(capsys.readouterr().out)
    assert (document["outcome"], document["errors"][0]["code"]) == (outcome, problem)


@pytest.fixture
def ask_service(
    make_vault: MakeVault,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Any:
    """Ask a model of a service with `--json`; the exit code, the document and the requests.

    `alone` starts the program as a process of its own.
    """
    vault = make_vault(NOTES).real_path
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.setenv(name, KEY)

    def run(
        vendor: str, behaviour: Behaviour, *settings: str, alone: bool = False
    ) -> tuple[int, Any, int]:
        (tmp_path / "config.toml").write_text('planning = "plan"\n' + "\n".join(settings))
        with LlmServer([behaviour]) as server:
            url = server.openai_url if vendor in ("openai", "custom") else server.url
            command = ["ask", "When is the launch?", "--json", "--vault", vault]
            command += ["--model", f"{vendor}/m", "--base-url", url]
            command += ["--state-dir", str(tmp_path / "state")]
            command += ["--config", str(tmp_path / "config.toml")]
            if not alone:
                code = main(command)
                return code, json.loads(capsys.readouterr().out), len(server.requests)
            done = subprocess.run(
                [sys.executable, "-m", "obsidian_agent", *command],
                capture_output=True,
                timeout=100,
                check=False,
            )
            return done.returncode, json.loads(done.stdout), len(server.requests)

    return run


@pytest.mark.parametrize("vendor", ["openai", "anthropic", "ollama"])
@pytest.mark.parametrize("piece", [1, 7, 1000])
def test_thinking_inside_the_content_is_no_answer(
    vendor: str, piece: int, ask_service: Any
) -> None:
    reply = Reply("<think>\nMay or June?\n</think>\n\nIn May.", piece=piece)
    code, document, _ = ask_service(vendor, reply)
    assert (code, document["answer"]) == (Exit.DONE, "In May.")
    reply = replace(reply, text="<think>May?</think>\n\nIn May.")
    code, document, _ = ask_service(vendor, reply, "streaming = false")
    assert (code, document["answer"]) == (Exit.DONE, "In May."), "also in one piece"


@pytest.mark.parametrize("vendor", ["openai", "anthropic", "ollama"])
@pytest.mark.parametrize(
    ("behaviour", "answer"),
    [
        (Silence(), ""),
        (Reply("In May, or later.", piece=2, cut_after=3, ending="stall"), "In May"),
        (Reply("never", keepalives=3, cut_after=0, ending="stall"), ""),
    ],
    ids=["silent", "stalled", "keep-alives"],
)
def test_a_service_is_given_up_after_the_timeout_and_no_later(
    vendor: str, behaviour: Behaviour, answer: str, ask_service: Any
) -> None:
    code, document, requests = ask_service(vendor, behaviour, "timeout = 2")
    assert (code, document["answer"]) == (Exit.SERVICE, answer)
    assert document["errors"][0]["code"] == "API_TIMEOUT"
    assert requests == 1, "the silence lasts as long as the timeout, not that for each attempt"


def test_a_program_whose_service_is_silent_ends_after_the_timeout(ask_service: Any) -> None:
    code, document, requests = ask_service("openai", Silence(), "timeout = 4", alone=True)
    assert (code, document["errors"][0]["code"]) == (Exit.SERVICE, "API_TIMEOUT")
    assert requests == 1


@pytest.mark.parametrize("ending", ["clean-cut", "error-event"])
def test_an_answer_that_breaks_off_keeps_its_text(ending: Any, ask_service: Any) -> None:
    reply = Reply("The launch is in May.", piece=5, cut_after=3, ending=ending)
    code, document, _ = ask_service("openai", reply)
    assert (code, document["answer"], document["outcome"]) == (
        Exit.SERVICE,
        "The launch is i",
        "error",
    )
    assert document["errors"]
