"""A key that a service repeats in an error is neither displayed nor written."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
from pydantic import SecretStr

from agents import NOTES, ask
from llm_server import KEY, Behaviour, Call, Failure, LlmServer, Raw, Reply
from obsidian_agent.bootstrap import Wiring, build_keys, build_session, build_threads
from obsidian_agent.config.live import LiveSettings
from obsidian_agent.errors import ObsidianAgentError
from obsidian_agent.providers.registry import find_vendor
from support import MakeVault

ECHO = f"Authorization: Bearer {KEY}; x-api-key: {KEY}; {KEY}"
FAILURES: list[Behaviour] = [
    Failure(401, f"Incorrect API key provided: {KEY}"),
    Failure(403, ECHO),
    Failure(400, f"prompt is too long, said {KEY}"),
    Failure(404, ECHO),
    Failure(418, ECHO, headers=(("x-echo", KEY),)),
    Raw(ECHO.encode(), "text/html"),
    Raw(f"data: {ECHO}\n\n".encode()),
    Raw(f'data: {{"error": {{"message": "{KEY}"}}}}\n\n'.encode()),
    Reply("Half an answer", ending="error-event", cut_after=1),
    Reply("Half an answer", ending="reset", cut_after=1),
]


def files_below(folder: Path) -> set[Path]:
    return {path for path in folder.rglob("*") if path.is_file()}


def holds_key(path: Path) -> bool:
    return KEY.encode() in path.read_bytes()


@pytest.mark.parametrize("vendor", ["openai", "anthropic"])
async def test_forced_errors_leave_no_key_behind(
    vendor: str,
    llm_server: LlmServer,
    make_vault: MakeVault,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    caplog.set_level(logging.DEBUG)
    settings = LiveSettings.load(tmp_path / "config" / "config.toml", {})
    settings.set("model", f"{vendor}/test-model")
    settings.set("base_url", llm_server.openai_url if vendor == "openai" else llm_server.url)
    settings.set("tracing", True)
    settings.set("share_allow", "Garden.md")
    wiring = Wiring(
        make_vault(NOTES), tmp_path / "state", settings=settings, config=tmp_path / "config"
    )
    keys = build_keys(wiring)
    assert keys.save(find_vendor(vendor), SecretStr(KEY)) == "file"
    session = build_session(wiring)
    chats = build_threads(wiring, session)
    shown: list[str] = []
    for behaviour in FAILURES:
        llm_server.play(Reply(calls=(Call("vault__readFile", '{"path": "Garden.md"}'),)), behaviour)
        thread = chats.create().id
        async for event in ask(chats, thread, "What about the garden?"):
            shown.append(repr(event))
    llm_server.play(FAILURES[0])
    models = session.open_models()
    assert models is not None
    try:
        await models.providers.models(vendor)
    except ObsidianAgentError as error:
        shown.append(repr(error) + str(error.problem()))
    assert KEY in str([request.headers for request in llm_server.requests]), "it was sent"
    assert KEY not in "".join(shown)
    assert KEY not in caplog.text
    printed = capfd.readouterr()
    assert KEY not in printed.out + printed.err
    written = files_below(tmp_path) - {keys.file}
    assert len(written) > len(FAILURES)
    assert [path for path in written if holds_key(path)] == []
    assert KEY not in repr(models) + repr(models.provider) + repr(keys)
