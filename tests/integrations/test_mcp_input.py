"""Requests that cannot be parsed are answered, and the server goes on."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from obsidian_agent.integrations import mcp_input
from obsidian_agent.integrations.mcp_input import Requests

DEEP = "[" * 5_000 + "]" * 5_000
HELLO = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "test", "version": "1"},
}


def call(number: int | str, argument: str, *, id_last: bool) -> str:
    first = {"jsonrpc": "2.0", "id": number, "method": "tools/call"}
    if id_last:
        del first["id"]
    params = f'{{"name": "read_note", "arguments": {{"id": 99, "path": {argument}}}}}'
    end = f', "id": {json.dumps(number)}}}' if id_last else "}"
    return f'{json.dumps(first)[:-1]}, "params": {params}{end}'


@pytest.mark.parametrize("id_last", [False, True])
@pytest.mark.parametrize("argument", ["[" * 250 + "]" * 250, DEEP, '{"a": ', "NaN1", '"\x01"'])
def test_a_request_that_is_no_json_is_refused_by_its_id(argument: str, *, id_last: bool) -> None:
    lines = [call("a", '"A.md"', id_last=id_last), call(7, argument, id_last=id_last), '{"x": 1}']
    text = "".join(f"{line}\n" for line in lines).encode()
    first, refused, last = io.BufferedReader(Requests(io.BytesIO(text))).read().splitlines()
    assert [first.decode(), last.decode()] == [lines[0], lines[2]]
    request = json.loads(refused)
    assert request["id"] == 7
    assert "not valid JSON" in request["params"]["reason"]


@pytest.mark.parametrize("id_last", [False, True])
def test_a_request_that_is_too_long_is_refused_and_the_next_one_is_read(*, id_last: bool) -> None:
    long = call(7, json.dumps("x" * 5_000), id_last=id_last)
    text = f"{long}\n{call(8, '1', id_last=id_last)}\n".encode()
    with patch.object(mcp_input, "MAX_REQUEST", 700):
        refused, following = io.BufferedReader(Requests(io.BytesIO(text))).read().splitlines()
    assert (json.loads(refused)["id"], json.loads(following)["id"]) == (7, 8)


def test_what_has_no_id_stays_as_it_is() -> None:
    text = b"hello\n{\n"
    assert io.BufferedReader(Requests(io.BytesIO(text))).read() == text


def test_the_server_answers_a_request_that_is_nested_too_deep(tmp_path: Path) -> None:
    (tmp_path / "Vault").mkdir()
    command = [sys.executable, "-m", "obsidian_agent", "mcp", "serve"]
    command += ["--vault", str(tmp_path / "Vault"), "--state-dir", str(tmp_path / "state")]
    command += ["--config", str(tmp_path / "none.toml")]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None

        def answer(line: str) -> Any:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(f"{line}\n")
            process.stdin.flush()
            return json.loads(process.stdout.readline())

        request = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HELLO}
        assert "result" in answer(json.dumps(request))
        for number, depth in enumerate((250, 1_000, 50_000), start=2):
            refused = answer(call(number, "[" * depth + "]" * depth, id_last=False))
            assert refused["id"] == number
            assert "not valid JSON: recursion limit exceeded" in refused["error"]["message"]
        listed = answer('{"jsonrpc": "2.0", "id": "last", "method": "tools/list"}')
        assert listed["id"] == "last"
        assert listed["result"]["tools"]
        process.stdin.close()
        assert process.wait(60) == 0
