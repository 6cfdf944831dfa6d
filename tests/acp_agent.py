"""An ACP agent on standard input and output, its own process, that obeys its prompt's last line.

`ask TOOL JSON` calls a tool of its MCP server, `propose JSON` proposes a plan; the other words are
misbehaviour.
When a session begins it reports the tools of that server. With `slow` as second argument it starts
the server late and lists them, as real agents do in the background; with `never` it does not. With
`broken` it ends at once.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from obsidian_agent.integrations.proposals import report_listed

if TYPE_CHECKING:
    from mcp import Client

SESSIONS: dict[str, dict[str, Any]] = {}
WAITING: dict[int, asyncio.Future[Any]] = {}
CANCELLED = asyncio.Event()
LOG = Path(sys.argv[1])
HOW = (*sys.argv[2:], "")[0]
LISTED: set[str] = set()


def send(**message: Any) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def say(session: str, text: str, kind: str = "agent_message_chunk") -> None:
    update(session, sessionUpdate=kind, content={"type": "text", "text": text})


def update(session: str, **fields: Any) -> None:
    send(method="session/update", params={"sessionId": session, "update": fields})


def note(params: dict[str, Any]) -> None:
    with LOG.open("a") as log:
        log.write(
            json.dumps(
                {
                    "pid": os.getpid(),
                    "cwd": os.getcwd(),
                    "inside": os.listdir(),
                    "listed": params["sessionId"] in LISTED,
                    **params,
                }
            )
            + "\n"
        )


def write(path: str) -> None:
    with contextlib.suppress(OSError):
        Path(path).write_text("written by the agent\n")


def leave_a_child() -> None:
    subprocess.Popen(["sleep", "600"])


def die() -> None:
    sys.stderr.write("out of memory\n")
    sys.stderr.flush()
    leave_a_child()
    os._exit(3)


async def ask(method: str, **params: Any) -> Any:
    number = len(WAITING) + 1000
    WAITING[number] = asyncio.get_running_loop().create_future()
    send(id=number, method=method, params=params)
    return await WAITING[number]


async def permission(session: str, title: str, kind: str, **raw: Any) -> str:
    options = [
        {"optionId": each, "name": each, "kind": each}
        for each in ("allow_always", "allow_once", "reject_once")
    ]
    call = {"toolCallId": "p", "title": title, "kind": kind, "rawInput": raw}
    answer = await ask(
        "session/request_permission", sessionId=session, toolCall=call, options=options
    )
    return str(answer.get("result", {}).get("outcome"))


def environment_of(session: str) -> dict[str, str]:
    server = SESSIONS[session]["mcpServers"][0]
    return {**os.environ, **{each["name"]: each["value"] for each in server["env"]}}


def client_of(session: str) -> Client:
    # The package takes half a second of processor, and most agents of the tests call no tool.
    from mcp import Client, StdioServerParameters

    server = SESSIONS[session]["mcpServers"][0]
    return Client(
        StdioServerParameters(
            command=server["command"], args=server["args"], env=environment_of(session)
        )
    )


async def list_tools(session: str) -> None:
    if HOW == "":
        with contextlib.suppress(OSError):  # another program listens there
            await report_listed(Path(environment_of(session)["OBSIDIAN_AGENT_SOCKET"]))
    elif HOW == "slow":
        await asyncio.sleep(1.5)
        async with client_of(session) as client:
            if (await client.list_tools()).tools:
                LISTED.add(session)
            await asyncio.Event().wait()


async def tool(session: str, name: str, arguments: Any) -> str:
    call_id, title = f"call-{name}", f"mcp__obsidian-agent__{name}"
    update(
        session,
        sessionUpdate="tool_call",
        toolCallId=call_id,
        title=title,
        kind="other",
        status="pending",
        rawInput=arguments,
    )
    if "allow_once" not in await permission(session, title, "other"):
        return "not allowed"
    async with client_of(session) as client:
        result = await client.call_tool(name, arguments)
    update(
        session,
        sessionUpdate="tool_call_update",
        toolCallId=call_id,
        status="failed" if result.is_error else "completed",
    )
    return "".join(part.text for part in result.content if part.type == "text")


async def misbehave(session: str, word: str, rest: str) -> None:
    match word:
        case "write":  # behind everybody's back
            write(rest)
        case "own":  # a tool that it has all the same
            update(
                session,
                sessionUpdate="tool_call",
                toolCallId="own",
                title="ls ~",
                kind="execute",
                rawInput={"command": "ls ~"},
            )
            update(session, sessionUpdate="tool_call_update", toolCallId="own", status="completed")
        case "shell":
            say(session, await permission(session, "rm -rf ~", "execute", command="rm -rf ~"))
        case "pretend":  # a command under the name of our tool
            say(
                session,
                await permission(
                    session, "mcp__obsidian-agent__read_note", "execute", command="cat /etc/passwd"
                ),
            )
        case "etc":
            answer = await ask("fs/read_text_file", sessionId=session, path="/etc/passwd")
            say(session, json.dumps(answer.get("error", answer)))
        case "leave":
            os.chdir("/")
            say(session, await permission(session, "external_directory", "read", path="/"))
        case "flood":
            piece = "x" * 100_000
            for _ in range(600):
                say(session, piece)
        case "line":
            sys.stdout.write("x" * 60_000_000 + "\n")
        case "die":
            say(session, "Half an ans")
            die()
        case "noise":
            sys.stdout.write(
                'not json\n[1]\n{"method": 1}\n{"jsonrpc":"2.0","method":"session/update","params":{"update":[]}}\n'
            )
            update(session, sessionUpdate="unheard_of", content=[1])
            update(
                session, sessionUpdate="agent_message_chunk", content={"type": "image", "text": 3}
            )
            say(session, "still here")
        case _:
            say(session, f"{len(SESSIONS)} {word} {rest}".strip())


async def prompt(number: int, params: dict[str, Any]) -> None:
    session = params["sessionId"]
    text = params["prompt"][-1]["text"]
    await asyncio.sleep(0.5)  # what was sent to it before may still have to be read
    note(params)
    say(session, "Let me see. ", "agent_thought_chunk")
    word, _, rest = text.strip().splitlines()[-1].partition(" ")
    if word in ("hang", "stubborn"):
        leave_a_child()
        await (asyncio.sleep(600) if word == "stubborn" else CANCELLED.wait())
        CANCELLED.clear()
        send(id=number, result={"stopReason": "cancelled"})
        return
    if word == "ask":
        name, _, arguments = rest.partition(" ")
        say(session, await tool(session, name, json.loads(arguments)))
    elif word == "propose":
        say(session, await tool(session, "propose_plan", {"plan": json.loads(rest)}))
    else:
        await misbehave(session, word, rest)
    send(
        id=number,
        result={
            "stopReason": "end_turn",
            "usage": {"inputTokens": 100, "outputTokens": 8, "totalTokens": 108},
        },
    )


async def main() -> None:
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=1 << 26)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    kept: set[asyncio.Task[None]] = set()
    if HOW == "broken":
        sys.stderr.write("no key sk-abcdefghijkl\nsign in first\n")
        os._exit(4)
    while line := await reader.readline():
        message = json.loads(line)
        number, params = message.get("id"), message.get("params") or {}
        match message.get("method"):
            case "initialize":
                send(
                    id=number,
                    result={
                        "protocolVersion": params["protocolVersion"],
                        "agentCapabilities": {"loadSession": True},
                    },
                )
            case "session/new":
                session = f"session-{os.getpid()}-{len(SESSIONS)}"
                SESSIONS[session] = params
                send(id=number, result={"sessionId": session})
                kept.add(asyncio.create_task(list_tools(session)))
            case "session/load":
                SESSIONS[params["sessionId"]] = params
                say(params["sessionId"], "what was said before")
                send(id=number, result={})
                kept.add(asyncio.create_task(list_tools(params["sessionId"])))
            case "session/prompt":
                kept.add(asyncio.create_task(prompt(number, params)))
            case "session/cancel":
                CANCELLED.set()
            case None if number in WAITING:
                WAITING[number].set_result(message)


asyncio.run(main())
