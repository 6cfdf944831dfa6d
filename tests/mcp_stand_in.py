"""An MCP server for tests: a scripted process without the SDK, with every kind of misbehaviour.

`python mcp_stand_in.py SCRIPT`; SCRIPT is read at every request:
`{"tools": [...], "answers": {tool: BEHAVIOUR}}`, and for a server with more than tools also
`"resources"` and `"prompts"`, lists whose entries are answered under their `uri` or `name`. A behaviour is a text to answer, or
`{"error": text}`, `{"hang": true}`, `{"die": true}`, `{"flood": bytes}`, `{"child": file}` (starts
a process that outlives it and writes its id there), `{"rubbish": true}`, `{"ask": method}` (asks
the client back first), `{"environment": true}`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any


def main(script: Path) -> None:
    """Answer until the end of the input."""
    script.with_suffix(".pid").write_text(str(os.getpid()))
    sys.stderr.write("\x1b[31mstand-in here, api_key=sk-abcdefghijklmnopqrstuvwxyz123456\n")
    for line in sys.stdin:
        message = json.loads(line)
        if "id" in message and "method" in message:
            answer(
                message["id"],
                message["method"],
                message.get("params", {}),
                json.loads(script.read_text()),
            )


def answer(
    number: Any,
    method: str,
    params: dict[str, Any],
    script: dict[str, Any],
    write: Callable[[dict[str, Any]], None] | None = None,
) -> None:
    """Answer one request through `write`."""
    say = partial(_say, write or _write)
    match method:
        case "initialize":
            about = {"name": "stand-in", "version": "1"}
            say(
                number,
                {
                    "protocolVersion": params["protocolVersion"],
                    "capabilities": {
                        kind: {} for kind in ("tools", "resources", "prompts") if kind in script
                    },
                    "serverInfo": about,
                },
            )
        case "tools/list":
            say(number, {"tools": script["tools"]})
        case "resources/list":
            say(number, {"resources": script["resources"]})
        case "prompts/list":
            say(number, {"prompts": script["prompts"]})
        case "tools/call":
            behave(
                partial(say, number), script["answers"][params["name"]], params.get("arguments", {})
            )
        case "resources/read" if params["uri"] in script["answers"]:

            def read(result: dict[str, Any]) -> None:
                say(number, {"contents": [{"uri": params["uri"], **result["content"][0]}]})

            behave(read, script["answers"][params["uri"]], {})
        case "prompts/get" if params["name"] in script["answers"]:

            def prompted(result: dict[str, Any]) -> None:
                messages = [{"role": "user", "content": part} for part in result["content"]]
                say(number, {"messages": messages})

            behave(prompted, script["answers"][params["name"]], params.get("arguments", {}))
        case _:
            (write or _write)(
                {"jsonrpc": "2.0", "id": number, "error": {"code": -32601, "message": "unknown"}}
            )


def behave(
    say: Callable[[dict[str, Any]], None], behaviour: Any, arguments: dict[str, Any]
) -> None:
    match behaviour:
        case str():
            say(
                {
                    "content": [
                        {
                            "type": "text",
                            "text": behaviour.replace("ARGUMENTS", json.dumps(arguments)),
                        }
                    ]
                }
            )
        case {"error": text}:
            say({"content": [{"type": "text", "text": text}], "isError": True})
        case {"hang": _}:
            time.sleep(3600)
        case {"die": _}:
            os._exit(3)
        case {"flood": size}:
            sys.stdout.write("x" * size)
            sys.stdout.flush()
            time.sleep(3600)
        case {"child": file}:
            child = subprocess.Popen(
                [
                    sys.executable,
                    "-c",
                    "import signal, time; signal.signal(15, signal.SIG_IGN); time.sleep(3600)",
                ]
            )
            Path(file).write_text(str(child.pid))
            say({"content": []})
        case {"rubbish": _}:
            sys.stdout.write('no json\n{"jsonrpc": "2.0"}\n[]\n')
            say({"content": [{"type": "text", "text": "after rubbish"}]})
        case {"ask": asked}:
            _write(
                {
                    "jsonrpc": "2.0",
                    "id": "back",
                    "method": asked,
                    "params": {"messages": [], "maxTokens": 5},
                }
            )
            say({"content": [{"type": "text", "text": sys.stdin.readline()}]})
        case {"environment": _}:
            say({"content": [{"type": "text", "text": json.dumps(dict(os.environ))}]})


def _say(write: Callable[[dict[str, Any]], None], number: Any, result: dict[str, Any]) -> None:
    write({"jsonrpc": "2.0", "id": number, "result": result})


def _write(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
