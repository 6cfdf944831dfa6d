"""An OpenCode server (HTTP, Basic auth, server-sent events) that obeys its prompt's last line.

It is a process of its own: `opencode_stand_in.py LOG serve --hostname HOST --port PORT`. Routes and
events are those of `opencode serve` 1.18.
"""

from __future__ import annotations

import base64
import json
import os
import queue
import subprocess
import sys
import threading
import time
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

LOG = Path(sys.argv[1])
PASSWORD = os.environ.get("OPENCODE_SERVER_PASSWORD", "")
VERSION = os.environ.get("STAND_IN_VERSION", "1.18.33")
LISTENERS: list[queue.Queue[dict[str, Any] | None]] = []
MESSAGES: dict[str, list[dict[str, Any]]] = {}
PERMISSIONS: dict[str, dict[str, Any]] = {}
ANSWERED: queue.Queue[str] = queue.Queue()
ABORTED = threading.Event()


def tell(kind: str, **properties: Any) -> None:
    for each in LISTENERS:
        each.put({"type": kind, "properties": properties})


def cut() -> None:
    for each in LISTENERS:
        each.put(None)
    while LISTENERS:
        time.sleep(0.01)


class Reply:
    """An answer of a session, as its parts come."""

    def __init__(self, session: str) -> None:
        self.session, self.number = session, len(MESSAGES[session])
        tokens: dict[str, Any] = {
            "input": 90,
            "output": 8,
            "reasoning": 1,
            "cache": {"read": 10, "write": 0},
        }
        info: dict[str, Any] = {
            "id": f"msg_{self.number}",
            "sessionID": session,
            "role": "assistant",
            "finish": "stop",
            "tokens": tokens,
        }
        self.message: dict[str, Any] = {"info": info, "parts": []}
        MESSAGES[session].append(self.message)
        tell("message.updated", info=info)

    def part(self, kind: str, **more: Any) -> dict[str, Any]:
        ids = {
            "id": f"prt_{self.number}_{len(self.message['parts'])}",
            "messageID": f"msg_{self.number}",
            "sessionID": self.session,
        }
        part = {**ids, "type": kind, **more}
        self.message["parts"].append(part)
        tell("message.part.updated", part=dict(part))
        return part

    def say(self, text: str, kind: str = "text") -> dict[str, Any]:
        part = self.part(kind, text="")
        for word in text.split(" "):
            piece = f"{' ' if part['text'] else ''}{word}"
            part["text"] += piece
            self.delta(part, piece)
        tell("message.part.updated", part=part)
        return part

    def delta(self, part: dict[str, Any], piece: str) -> None:
        tell(
            "message.part.delta",
            field="text",
            delta=piece,
            sessionID=self.session,
            messageID=part["messageID"],
            partID=part["id"],
        )

    def tool(self, name: str, status: str, **args: Any) -> None:
        self.part("tool", tool=name, callID="c", state={"status": status, "input": args})

    def ask(self, name: str, **metadata: Any) -> str:
        asked: dict[str, Any] = {
            "id": f"per_{len(PERMISSIONS)}",
            "sessionID": self.session,
            "permission": name,
            "patterns": ["*"],
            "metadata": metadata,
        }
        PERMISSIONS[asked["id"]] = asked
        tell("permission.asked", **asked)
        return ANSWERED.get(timeout=60)


def answer(session: str, word: str, rest: str) -> dict[str, Any]:
    reply = Reply(session)
    reply.say("Let me see.", "reasoning")
    match word:
        case "shell":
            reply.say(reply.ask("bash", command="rm -rf ~"))
        case "ours":
            reply.say(reply.ask("obsidian-agent_read_note"))
        case "pretend":
            reply.say(reply.ask("read_note", command="cat /etc/passwd"))
        case "call":
            reply.tool("obsidian-agent_search_notes", "completed", query="launch")
        case "cut":  # text that no client receives is in the messages later
            before = reply.say("Before.")
            cut()
            answered = reply.ask("bash")
            reply.delta(before, "Before.")  # which is in what was read meanwhile
            reply.say(f"{answered}, and after.")
        case "theirs":  # the user works in another session meanwhile
            theirs: dict[str, Any] = {"id": "msg_t", "sessionID": "ses_t", "role": "assistant"}
            tell("message.updated", info=theirs)
            tell(
                "message.part.updated",
                part={
                    "id": "prt_t",
                    "messageID": "msg_t",
                    "sessionID": "ses_t",
                    "type": "text",
                    "text": "Secret.",
                },
            )
            PERMISSIONS["per_t"] = {
                "id": "per_t",
                "sessionID": "ses_t",
                "permission": "bash",
                "patterns": ["*"],
            }
            tell("permission.asked", **PERMISSIONS["per_t"])
            reply.say(f"{reply.ask('bash')} {sorted(PERMISSIONS)}")
        case "die":
            subprocess.Popen(["sleep", "600"])
            sys.stderr.write("out of memory\n")
            sys.stderr.flush()
            os._exit(3)
        case "hang":
            ABORTED.wait(20)
            ABORTED.clear()
        case "stubborn":
            time.sleep(600)
        case "flood":
            for _ in range(600):
                reply.say("x" * 100_000)
        case "fail":
            reply.message["info"]["error"] = {
                "name": "ProviderAuthError",
                "data": {"message": "no key"},
            }
        case _:
            reply.say(
                f"{sum(each['info']['role'] == 'user' for each in MESSAGES[session])} {word} {rest}".strip()
            )
    return reply.message


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: Any) -> None:
        """Suppress the log."""

    def answer(self, document: Any, status: int = 200) -> None:
        data = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def events(self) -> None:
        heard: queue.Queue[dict[str, Any] | None] = queue.Queue()
        LISTENERS.append(heard)
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        self.close_connection = True
        event: dict[str, Any] | None = {"type": "server.connected", "properties": {}}
        with suppress(OSError):  # who listened is gone
            while event is not None:
                self.wfile.write(f"data: {json.dumps(event)}\n\n".encode())
                event = heard.get()
        LISTENERS.remove(heard)

    def do_GET(self) -> None:
        self.handle_request(None)

    def do_POST(self) -> None:
        self.handle_request(
            json.loads(self.rfile.read(int(self.headers.get("content-length") or 0)) or b"null")
        )

    def handle_request(self, body: Any) -> None:
        given = base64.b64encode(f"opencode:{PASSWORD}".encode()).decode()
        if PASSWORD and self.headers.get("authorization") != f"Basic {given}":
            self.answer({"error": "who are you"}, 401)
            return
        path = self.path.partition("?")[0]
        with LOG.open("a") as log:
            log.write(
                json.dumps({"pid": os.getpid(), "path": path, "body": body, "inside": os.listdir()})
                + "\n"
            )
        match [self.command, *path.strip("/").split("/")]:
            case ["GET", "global", "health"]:
                self.answer({"healthy": True, "version": VERSION})
            case ["GET", "event"]:
                self.events()
            case ["POST", "session"]:
                session = f"ses_{os.getpid()}_{len(MESSAGES)}"
                MESSAGES[session] = []
                self.answer({"id": session})
            case ["GET", "session", session] if session in MESSAGES:
                self.answer({"id": session})
            case ["GET", "session", session, "message"]:
                self.answer(MESSAGES[session])
            case ["POST", "session", session, "message"]:
                number = len(MESSAGES[session])
                MESSAGES[session].append(
                    {
                        "info": {"id": f"msg_{number}", "sessionID": session, "role": "user"},
                        "parts": body["parts"],
                    }
                )
                word, _, rest = body["parts"][-1]["text"].strip().splitlines()[-1].partition(" ")
                self.answer(answer(session, word, rest))
            case ["POST", "session", _, "abort"]:
                ABORTED.set()
                self.answer(True)
            case ["GET", "permission"]:
                self.answer(list(PERMISSIONS.values()))
            case ["POST", "permission", asked, "reply"]:
                if PERMISSIONS.pop(asked, None) is not None:
                    ANSWERED.put(body["reply"])
                self.answer(True)
            case ["POST", "mcp"]:
                self.answer({body["name"]: {"status": "connected"}})
            case _:
                self.answer({"error": "no such thing"}, 404)


server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
server.daemon_threads = True
sys.stdout.write(f"opencode server listening on http://127.0.0.1:{server.server_port}\n")
sys.stdout.flush()
server.serve_forever()
