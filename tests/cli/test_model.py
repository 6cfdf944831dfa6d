"""`model` on the command line, with a stand-in for Ollama on loopback."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from llm_server import LlmServer, Reply
from obsidian_agent.cli.main import main

Call = Callable[..., tuple[int, Any]]


@pytest.fixture
def ollama(monkeypatch: pytest.MonkeyPatch) -> Iterator[LlmServer]:
    with LlmServer([Reply("ok")], ["nomic-embed-text:latest", "qwen3:4b"]) as server:
        monkeypatch.setenv("OLLAMA_HOST", server.url.removeprefix("http://"))
        yield server


@pytest.fixture
def model(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Call:
    """`model` with `--json`; the exit code and the document."""

    def run(*words: str) -> tuple[int, Any]:
        code = main(
            [
                "model",
                *words,
                "--json",
                "--config",
                str(tmp_path / "config.toml"),
                "--state-dir",
                str(tmp_path / "state"),
            ]
        )
        return code, json.loads(capsys.readouterr().out)

    return run


def ours(document: Any, server: LlmServer) -> list[dict[str, str]]:
    return [row for row in document["found"] if row["url"] == server.url]


def test_what_runs_here_is_listed_and_nothing_is_written(
    ollama: LlmServer, model: Call, tmp_path: Path
) -> None:
    code, document = model()
    assert (code, document["using"]) == (0, None)
    assert ours(document, ollama) == [
        {"name": "nomic-embed-text:latest", "service": "ollama", "url": ollama.url},
        {"name": "qwen3:4b", "service": "ollama", "url": ollama.url},
    ]
    assert not (tmp_path / "config.toml").exists()


@pytest.mark.parametrize("name", ["qwen3:4b", "ollama/qwen3:4b"])
def test_using_a_model_writes_it_and_its_address_and_keeps_the_rest(
    name: str, ollama: LlmServer, model: Call, tmp_path: Path
) -> None:
    file = tmp_path / "config.toml"
    file.write_text('# mine\nbase_url = "https://models.test/v1"\nmax_tokens = 100\n')
    code, document = model("use", name)
    assert (code, document["using"]) == (0, "ollama/qwen3:4b")
    assert (
        file.read_text()
        == f'# mine\nbase_url = "{ollama.url}"\nmax_tokens = 100\nmodel = "ollama/qwen3:4b"\n'
    )
    assert model()[1]["using"] == "ollama/qwen3:4b"


def test_a_model_that_is_not_here_changes_nothing(
    ollama: LlmServer, model: Call, tmp_path: Path
) -> None:
    for name in ("qwen9", "ollama/qwen9", "custom/qwen3:4b", "nobody/qwen3:4b"):
        code, document = model("use", name)
        assert (code, document["outcome"]) == (2, "refused")
    assert "qwen3:4b" in model("use", "qwen9")[1]["message"]
    assert not (tmp_path / "config.toml").exists()


def test_a_service_elsewhere_is_named_with_its_provider_and_gets_no_address_of_this_machine(
    ollama: LlmServer, model: Call, tmp_path: Path
) -> None:
    model("use", "qwen3:4b")
    assert model("use", "openai/gpt-5")[1]["using"] == "openai/gpt-5"
    assert (tmp_path / "config.toml").read_text() == 'model = "openai/gpt-5"\n'


def test_the_menu_alone_can_be_chosen(ollama: LlmServer, model: Call, tmp_path: Path) -> None:
    assert model("use", "none")[1]["using"] is None
    assert (tmp_path / "config.toml").read_text() == 'model = "none"\n'


def test_a_variable_that_is_stronger_is_told(
    ollama: LlmServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("OBSIDIAN_AGENT_MODEL", "openai/gpt-5")
    assert main(["model", "use", "qwen3:4b", "--config", str(tmp_path / "config.toml")]) == 0
    captured = capsys.readouterr()
    assert "OBSIDIAN_AGENT_MODEL is set" in captured.err
    assert "In use: openai/gpt-5" in captured.out


def test_people_read_which_program_has_which_model(
    ollama: LlmServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["model", "use", "qwen3:4b", "--config", str(tmp_path / "config.toml")])
    out = capsys.readouterr().out
    assert f"Ollama at {ollama.url}\n  nomic-embed-text:latest\n  qwen3:4b  (in use)\n" in out
    assert "In use: ollama/qwen3:4b" in out


def answers(*documents: Any) -> list[Reply]:
    return [Reply("ok"), *(Reply(json.dumps({"actions": actions})) for actions in documents)]


def test_trying_a_model_plays_twenty_sentences_and_leaves_nothing_behind(
    ollama: LlmServer, model: Call, tmp_path: Path
) -> None:
    """Count sentences that were right, asked (with a doubt or in the form) and wrong."""
    model("use", "qwen3:4b")
    ollama.play(
        *answers(
            [{"action": "move", "notes": {"note": ["Kitchen"]}, "folder": "Archive"}],
            [{"action": "delete", "notes": {"tag": "classic"}}],
            [{"action": "other"}],
        )
    )
    code, document = model("test")
    assert code == 0
    assert document.keys() == {"right", "asked", "wrong", "seconds"}
    assert document["right"] + document["asked"] >= 1
    assert document["wrong"] == 0, "deleting was not said"
    sentences = {
        request.body["messages"][-1]["content"].splitlines()[-1]
        for request in ollama.requests
        if request.path == "/api/chat"
    }
    assert len(sentences) >= 15, "the menu reads the others without the model"
    assert not list((tmp_path / "state" / "vaults").glob("*"))


def test_trying_a_model_that_does_not_answer_fails_as_a_service_does(
    model: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    code, document = model("test", "--model", "custom/m", "--base-url", "http://127.0.0.1:9/v1")
    assert (code, document["errors"][0]["code"]) == (5, "API_NETWORK")


def test_there_must_be_a_model_to_try(model: Call) -> None:
    code, document = model("test")
    assert (code, document["errors"][0]["code"]) == (2, "NO_MODEL")
