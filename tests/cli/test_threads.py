"""threads from the command line."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from cli.conftest import CommandsOn
from obsidian_agent.journal.state_folder import vault_key
from obsidian_agent.threads.log_store import ThreadStore
from support import MakeVault

Call = Callable[..., tuple[int, Any]]


@pytest.fixture
def vault(make_vault: MakeVault) -> str:
    return make_vault({"a.md": "one\n"}).real_path


@pytest.fixture
def store(tmp_path: Path, vault: str) -> ThreadStore:
    return ThreadStore(
        tmp_path / "state" / "vaults" / vault_key(vault) / "threads",
        lambda: datetime(2026, 3, 14, 9, 30, tzinfo=UTC),
    )


@pytest.fixture
def call(commands_on: CommandsOn, vault: str) -> Call:
    """Run a command with `--json`; the exit code and the document."""
    return commands_on(vault).json


def test_threads_are_listed_found_renamed_and_deleted(call: Call, store: ThreadStore) -> None:
    assert call("threads") == (0, {"threads": []})
    first, second = store.create("openai/gpt-5"), store.create()
    store.file(first.id).add({"k": "asked", "text": "Where is the cheese?", "time": store.now()})
    assert {each["id"] for each in call("threads", "list")[1]["threads"]} == {first.id, second.id}
    (found,) = call("threads", "--search", "cheese")[1]["threads"]
    assert (found["id"], found["model"], found["lines"]) == (
        first.id,
        "openai/gpt-5",
        ["Where is the cheese?"],
    )
    assert call("threads", "rename", second.id, "Plans\nfor spring") == (
        0,
        {"id": second.id, "title": "Plans for spring"},
    )
    told = call("threads", "show", first.id)[1]
    assert [(each["role"], each["text"]) for each in told["said"]] == [
        ("person", "Where is the cheese?")
    ]
    assert call("threads", "delete", first.id)[0] == 3
    assert call("threads", "delete", first.id, "--yes") == (0, {"id": first.id, "deleted": True})
    assert [each["id"] for each in call("threads")[1]["threads"]] == [second.id]
    assert call("threads", "show", "../../etc")[1]["errors"][0]["code"] == "THREAD_NOT_FOUND"


def test_with_json_nobody_is_asked_even_at_a_terminal(
    call: Call, store: ThreadStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    thread = store.create()
    terminal, inside = os.openpty()
    os.write(terminal, b"yes\n")
    with open(inside, encoding="utf-8") as stdin:
        monkeypatch.setattr("sys.stdin", stdin)
        code, document = call("threads", "delete", thread.id)
    os.close(terminal)
    assert (code, document["outcome"], document["errors"][0]["code"]) == (
        3,
        "refused",
        "NOT_APPROVED",
    )
    assert [each["id"] for each in call("threads")[1]["threads"]] == [thread.id]
