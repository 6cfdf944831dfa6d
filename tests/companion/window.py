"""A window of the stand-in for Obsidian (rig/): a real Chromium, real editors and our plugin."""

from __future__ import annotations

import base64
import hashlib
import json
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

REPOSITORY: Final = Path(__file__).resolve().parents[2]
PLUGIN: Final = REPOSITORY / "obsidian_agent" / "obsidian" / "companion"
ID: Final = "0123456789abcdef"
"""The vault's id in Obsidian's list of vaults."""

_BROWSERS: Final = ("chromium", "chromium-browser", "google-chrome")


def missing() -> str | None:
    """Return the requirements of browser tests that this machine lacks."""
    if shutil.which("node") is None:
        return "node is not here"
    if browser() is None:
        return "chromium is not here"
    if not (PLUGIN / "node_modules" / "playwright-core").is_dir():
        return "the npm packages are not here"
    return None


def browser() -> str | None:
    """Return the path of the browser."""
    return next((found for name in _BROWSERS if (found := shutil.which(name))), None)


def eventually(told: Callable[[], bool], seconds: float = 20.0) -> bool:
    """Return True once a condition holds."""
    end = time.monotonic() + seconds
    while not told() and time.monotonic() < end:
        time.sleep(0.02)
    return told()


def sha256(text: str) -> str:
    """As the plugin tells it."""
    return hashlib.sha256(text.encode()).hexdigest()


class Refused(Exception):
    """The plugin's answer when it does not do what was asked."""

    def __init__(self, reply: Mapping[str, Any]) -> None:
        super().__init__(f"{reply['code']}: {reply['message']}")
        self.code = reply["code"]


class Rig:
    """The process with the browser, and our hand in it."""

    def __init__(self) -> None:
        program = browser()
        assert program is not None
        command = ["node", str(Path(__file__).with_name("rig") / "main.mjs"), program]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self._read()

    def do(self, what: str, **fields: Any) -> Any:
        """Have one thing done; what it gave."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"do": what, **fields}) + "\n")
        self._process.stdin.flush()
        answer = self._read()
        assert "error" not in answer, answer["error"]
        return answer["result"]

    def _read(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, "the stand-in for Obsidian ended"
        return json.loads(line)

    def close(self) -> None:
        """End it."""
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):
            self._process.stdin.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()


class Window:
    """A vault open in the stand-in. `ask` is for obsidian-agent, the rest the user's keyboard."""

    def __init__(self, rig: Rig, folder: Path, socket_path: Path) -> None:
        self.folder = folder
        self.socket = socket_path
        self._rig = rig
        rig.do("open", base=str(folder), id=ID, socket=str(socket_path))

    def ask(self, action: str, **fields: Any) -> dict[str, Any]:
        """Send a request to the plugin. Return its reply; raise `Refused`."""
        reply = self.answer({"protocol": 1, "vault": str(self.folder), "action": action, **fields})
        if not reply["ok"]:
            raise Refused(reply)
        return reply

    def answer(self, request: Any) -> dict[str, Any]:
        """Return the reply to any request."""
        packed = base64.urlsafe_b64encode(json.dumps(request).encode()).decode().rstrip("=")
        text = self.call(f"vault={ID}", "agent-companion", f"req={packed}")
        line = next(line for line in reversed(text.splitlines()) if line.startswith("OA1 "))
        assert line.isascii()
        reply: dict[str, Any] = json.loads(line[4:])
        return reply

    def call(self, *argv: str) -> str:
        """Return the output of Obsidian's command line."""
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(30)
            connection.connect(str(self.socket))
            connection.sendall(
                json.dumps({"argv": argv, "tty": False, "cwd": "/"}).encode() + b"\n"
            )
            return b"".join(iter(lambda: connection.recv(1 << 16), b"")).decode()

    def js(self, code: str) -> Any:
        """Evaluate an expression in the page."""
        return self._rig.do("js", code=code)

    def press(self, *keys: str) -> None:
        """Press real keys, one after the other: `Control+z`."""
        for key in keys:
            self._rig.do("press", key=key)

    def type(self, text: str) -> None:
        """Type text."""
        self._rig.do("type", text=text)

    def open(self, path: str, *, new_pane: bool = False) -> None:
        """Open a note as by a click in the list of files, the cursor at its start."""
        self.js(f"show({json.dumps(path)}, {json.dumps(new_pane)})")

    def at(self, line: int, ch: int = 0) -> None:
        """Click there."""
        self.js(f"app.workspace.active.view.editor.setSelection({{line: {line}, ch: {ch}}})")

    def text(self) -> str:
        """Return the text that the active editor displays."""
        shown: str = self.js("app.workspace.active.view.editor.getValue()")
        return shown

    def disk(self, path: str) -> str:
        """Return the text of a file with its line ends."""
        return (self.folder / path).read_bytes().decode()

    def depths(self) -> tuple[int, int]:
        """Return the numbers of steps that the active editor can undo and redo."""
        depths = self.js("app.depths()")
        return depths["undo"], depths["redo"]

    def notices(self) -> list[str]:
        """Return the app's notices: notes that changed under unsaved text."""
        shown: list[str] = self.js("app.notices")
        return shown

    def fault(self, name: str | None) -> None:
        """Let the command line fail.

        Faults: off, hang, half, flood (60 MB), not open (the vault), old (protocol), serial (one
        call at a time), edit unheard, edit unanswered.
        """
        self._rig.do("fault", name=name)

    def calls(self) -> list[list[str]]:
        """Return the requests to the command line since the last call."""
        asked: list[list[str]] = self._rig.do("calls")
        return asked

    def actions(self) -> list[str | None]:
        """Return the requests to the plugin since the last call; None for an invalid one."""
        asked: list[str | None] = self._rig.do("actions")
        return asked

    def errors(self) -> list[str]:
        """Return the errors in the page since the last call."""
        found: list[str] = self._rig.do("errors")
        return found
