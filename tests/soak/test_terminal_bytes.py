"""The app in a real terminal over hostile text: every byte in the terminal is Textual's own."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import sys
import termios
import time
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import pytest

from agent.test_injection import CASES
from obsidian_agent.cli.main import main
from obsidian_agent.log import file_in as log_file
from obsidian_agent.state_files import directories
from obsidian_agent.threads.log_store import ThreadStore

sys.path.insert(0, str(Path(__file__).resolve().parent))

from sweep import Tell

pytestmark = [pytest.mark.soak, pytest.mark.timeout(600)]

TERMINAL = "E\x1b[8877mb\x1b]52;c;RVZJTA==\x07\x9b8877mx\x9d0;EVIL\x9c\u202egpj\u2066\u200b\x08\x7f\x0e[/x][@click=app.quit]W[/]"

OWN = re.compile(
    rb"\x1b\[(?!8877)[0-9;]*m|\x1b\]22;[a-z]+\x07|\x1b\[\d*(?:;\d*)?[HABCDJK]|\x1b\[\?\d+(?:\$p|[hl])|\x1b\[[<>=]\d*u|\x1b\[\?u|\x1b\[>\d+;?\d*[mq]|\x1b\[\d+ q|\x1b\[c"
)
"""The output of Textual: colours, the cursor, the pointer, modes, and queries of the terminal."""
FOREIGN = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u202a-\u202e\u2066-\u2069]"
)


def _lay_out(place: Path) -> None:
    """Create a vault of hostile notes, macros, agents and conversations, with a run and a log."""
    vault, state = place / "vault", place / "state"
    step = {
        "id": "c",
        "tool": "vault.updateFile",
        "args": {"path": "plain.md", "mode": "append", "content": TERMINAL},
        "preview": TERMINAL,
    }
    plan = {
        "version": "1.0",
        "goal": f"Goal {TERMINAL}",
        "riskLevel": "writes",
        "assumptions": [TERMINAL],
        "steps": [step],
    }
    files = {
        "plain.md": f"# {TERMINAL}\n\n- [ ] {TERMINAL}\n\n{TERMINAL}\n",
        "every.md": "\n\n".join(case["content"] for case in CASES),
        "Na\u202emd[x]\u200b.md": f"needle {TERMINAL}\n",
        "Nb[/x][@click=app.quit]W.md": "needle\n",
        f"Nc{TERMINAL.replace('/', '-')}.md": "needle\n",
        "AGENTS.md": TERMINAL,
        ".obsidian-agent/agents/evil.md": f"---\ndescription: '{TERMINAL}'\n---\n{TERMINAL}",
        ".obsidian-agent/macros/Evil.json": json.dumps(
            {"name": "Evil", "description": TERMINAL, "plan": plan}
        ),
    }
    for name, text in files.items():
        (vault / name).parent.mkdir(parents=True, exist_ok=True)
        (vault / name).write_bytes(text.encode("utf-8", "surrogatepass"))
    (place / "plan.json").write_text(json.dumps(plan))
    options = [
        "--vault",
        str(vault),
        "--state-dir",
        str(state),
        "--config",
        str(place / "config.toml"),
    ]
    assert main(["run", str(place / "plan.json"), "--yes", *options]) == 0
    (folder,) = (state / "vaults").iterdir()
    threads = ThreadStore(folder / "threads", lambda: datetime(2026, 1, 2, tzinfo=UTC))
    thread = threads.file(threads.create().id)
    thread.add(
        {"k": "set", "title": TERMINAL, "titledBy": "person"}, {"k": "asked", "text": TERMINAL}
    )
    log = log_file(directories(str(state), str(place / "config.toml")).log)
    log.parent.mkdir(parents=True, exist_ok=True)
    log.write_text(TERMINAL)


class _Terminal:
    """The app in a terminal of 120 by 40 that answers nothing."""

    def __init__(self, place: Path) -> None:
        argv = [sys.executable, "-m", "obsidian_agent", str(place / "vault"), "--offline"]
        argv += ["--state-dir", str(place / "state"), "--config", str(place / "config.toml")]
        self.pid, self.fd = pty.fork()
        if not self.pid:  # pragma: no cover
            os.execve(
                sys.executable,
                argv,
                {**os.environ, "TERM": "xterm-256color", "COLUMNS": "120", "LINES": "40"},
            )
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))

    def after(self, keys: str, *, quiet: float = 0.4, most: float = 3.0) -> bytes:
        """All that is written from these keys on until it is quiet."""
        os.write(self.fd, keys.encode())
        drawn, end = b"", time.monotonic() + most
        while (left := end - time.monotonic()) > 0 and select.select(
            [self.fd], [], [], quiet if drawn else left
        )[0]:
            try:
                drawn += os.read(self.fd, 1 << 16)
            except OSError:
                break
        return drawn

    def end(self) -> None:
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self.fd)


ESCAPE, DOWN, PAGE_DOWN, CTRL_O, CTRL_P = "\x1b", "\x1b[B", "\x1b[6~", "\x0f", "\x10"
F1, F2, F3, F4, F5, F8 = "\x1bOP", "\x1bOQ", "\x1bOR", "\x1bOS", "\x1b[15~", "\x1b[19~"
REPORTS = ("record", "log", "sent", "files", "trust", "context", "stats", "agent", "model")
SCREENS: dict[str, tuple[list[str], bool]] = {
    "the start": ([], False),
    "help": ([F1], False),
    "an action and its document": ([F2, "Evil", DOWN, "e"], True),
    "the history and the steps of a run": ([F3, "b"], True),
    "the palette": ([CTRL_P, "evil"], False),
    "a note": ([CTRL_O, "plain", "\r"], True),
    "a note with every case": ([CTRL_O, "every", "\r", *[PAGE_DOWN] * 5], False),
    "a note whose name is hostile": ([CTRL_O, "N", DOWN, "\r"], False),
    "a search": (["Find notes that contain 'needle'\r"], False),
    "a plan, its differences, its run and its undo": (
        ["Append 'x' to \"plain\"\r", DOWN, "\r", ESCAPE, "a", "u"],
        True,
    ),
    "a message": ([f"\x1b[200~{TERMINAL}\x1b[201~", "\r"], True),
    **{f"/{name}": ([f"/{name}\r"], name in ("record", "log")) for name in REPORTS},
    "the tasks": ([F8], False),
    "the settings": ([F5], False),
    "the conversations and one of them": ([F4, DOWN, "\r"], True),
}
"""The keys to each screen; True if foreign text is certainly drawn on the way."""


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere such names cannot be")
def test_no_byte_of_notes_names_actions_or_conversations_rules_the_terminal(
    tmp_path: Path, tell: Tell
) -> None:
    _lay_out(tmp_path)
    terminal = _Terminal(tmp_path)
    violations = []
    try:
        for name, (keys, shows) in SCREENS.items():
            data = (
                b"".join(map(terminal.after, keys))
                if keys
                else terminal.after("", quiet=1.5, most=30)
            )
            data += b"".join(terminal.after(ESCAPE, most=0.5) for _ in range(3))
            text = OWN.sub(b"", data).decode()
            if not text:
                violations.append(f"{name}: nothing was drawn")
            if shows and "8877" not in text:
                violations.append(f"{name}: no text of strangers was drawn")
            violations += [
                f"{name}: {text[max(0, found.start() - 20) : found.end() + 20]!r}"
                for found in FOREIGN.finditer(text)
            ]
    finally:
        terminal.end()
    tell("screens with hostile text, bytes of the terminal", len(SCREENS), violations)
