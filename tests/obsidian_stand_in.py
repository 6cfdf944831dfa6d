"""A stand-in for a running Obsidian: a socket that speaks its command line.

With or without the companion, it does what a real editor does not do on request: hang, lie, break off. The browser tests have the
real editor.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

VAULT_ID = "0123456789abcdef"
Command = tuple[str, str]
Cli = Callable[..., dict[str, Any]]
"""Runs a command of this program; its document, with the exit code."""


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


@dataclass
class Note:
    """An open note: the editor's text, and the text that was last loaded or saved."""

    text: str
    mode: str = "source"
    saved: str = ""
    undo: list[str] = field(default_factory=list)


class Refused(Exception):
    def __init__(self, code: str, message: str = "no") -> None:
        super().__init__(message)
        self.code = code


@dataclass
class StandIn:
    """The open notes and the received requests. Tests change them as a user would."""

    folder: Path
    place: Path
    companion: bool = True
    protocol: int = 1
    vault: str = ""
    version: int = 1
    active: str | None = None
    selections: list[dict[str, dict[str, int]]] = field(default_factory=list)
    selected: str = ""
    notes: dict[str, Note] = field(default_factory=dict)
    commands: list[Command] = field(
        default_factory=lambda: [
            ("editor:toggle-bold", "Toggle bold"),
            ("app:delete-file", "Delete file"),
        ]
    )
    ran: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    opened: list[tuple[str, int | None, bool]] = field(default_factory=list)
    raw: Callable[[list[str]], bytes | None] | None = None
    """Answers in the place of everything else, where a test says how; None breaks off."""
    before_edit: Callable[[], None] = lambda: None
    unsaved: bool = False
    """An edit stays in the editor."""
    on_command: Callable[[str], None] = lambda id: None
    changed: threading.Condition = field(default_factory=threading.Condition)

    def open_note(self, path: str, mode: str = "source") -> Note:
        text = self._disk(path)
        note = self.notes[path] = Note(text, mode, text)
        self.active = path
        return note

    def _disk(self, path: str) -> str:
        return (self.folder / path).read_bytes().decode("utf-8-sig").replace("\r\n", "\n")

    def _save(self, path: str, note: Note) -> None:
        (self.folder / path).write_bytes(note.text.encode())
        note.saved = note.text

    def _watch_files(self) -> None:
        """Load again what changed on the disk, and close what is gone."""
        for path, note in list(self.notes.items()):
            if not (self.folder / path).exists():
                del self.notes[path]
            elif note.text == note.saved:
                note.text = note.saved = self._disk(path)

    def select(self, path: str, start: tuple[int, int], end: tuple[int, int], text: str) -> None:
        self.active = path
        self.selected = text
        self.selections = [
            {"anchor": {"line": start[0], "ch": start[1]}, "head": {"line": end[0], "ch": end[1]}}
        ]
        self.bump()

    def bump(self) -> None:
        with self.changed:
            self.version += 1
            self.changed.notify_all()

    # --- the socket ---

    def serve(self, listener: socket.socket) -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=self._talk, args=(connection,), daemon=True).start()

    def _talk(self, connection: socket.socket) -> None:
        with connection, connection.makefile("rb") as lines:
            try:
                request = json.loads(lines.readline())
                answer = (
                    self.raw(request["argv"]) if self.raw else self.answer(request["argv"]).encode()
                )
                if answer:
                    connection.sendall(answer)
            except (OSError, ValueError):
                return

    def answer(self, argv: list[str]) -> str:
        if argv[0] != f"vault={VAULT_ID}":
            return "Vault not found."
        command, values = argv[1], dict(value.partition("=")[::2] for value in argv[2:])
        match command:
            case "agent-companion" if self.companion:
                return "noise of another plugin\n" + self._reply(values["req"])
            case "vault":
                return self.vault or str(self.folder)
            case "file":
                return f"path\t{self.active}\nname\tx" if self.active else "Error: No active file."
            case "open":
                self.opened.append((values["path"], None, "newtab" in values))
                return f"Opened: {values['path']}"
            case "commands":
                return "\n".join(id for id, _ in self.commands)
            case "command" if any(id == values["id"] for id, _ in self.commands):
                self._run(values["id"])
                return f"Executed: {values['id']}"
            case _:
                return f'Command "{command}" not found. It may require a plugin to be enabled.'

    # --- the companion ---

    def _reply(self, packed: str) -> str:
        request = json.loads(base64.urlsafe_b64decode(packed + "=" * (-len(packed) % 4)))
        self.asked.append(request["action"])
        head = {"protocol": self.protocol, "vault": self.vault or str(self.folder)}
        try:
            if request["protocol"] != self.protocol:
                raise Refused("PROTOCOL")
            if request["vault"] != head["vault"]:
                raise Refused("OTHER_VAULT")
            body: dict[str, Any] = {"ok": True, **self._do(request)}
        except Refused as refused:
            body = {"ok": False, "code": refused.code, "message": str(refused)}
        return "OA1 " + json.dumps({**head, "version": self.version, **body})

    def _do(self, request: dict[str, Any]) -> dict[str, Any]:
        self._watch_files()
        match request["action"]:
            case "watch":
                with self.changed:
                    self.changed.wait_for(
                        lambda: self.version != request["since"], request["wait"] / 1000
                    )
                return self._context()
            case "context":
                return self._context()
            case "settle":
                return {"files": [self._settled(path) for path in request["paths"]]}
            case "edit":
                return self._edit(
                    **{key: request[key] for key in ("path", "before", "after", "changes")}
                )
            case "open":
                self.opened.append((request["path"], request.get("line"), request["newPane"]))
                return {"opened": True}
            case "commands":
                return {
                    "commands": [
                        {"id": id, "name": name, "source": id.partition(":")[0]}
                        for id, name in self.commands
                    ]
                }
            case "run":
                names = dict(self.commands)
                if request["id"] not in names:
                    raise Refused("COMMAND_NOT_FOUND")
                if names[request["id"]] != request["name"]:
                    raise Refused("STALE")
                self._run(request["id"])
                return {"executed": not request["id"].startswith("unready:")}
            case action:
                raise Refused("UNKNOWN_ACTION", action)

    def _run(self, id: str) -> None:
        if not id.startswith("unready:"):
            self.ran.append(id)
            self.on_command(id)

    def _context(self) -> dict[str, Any]:
        note = self.notes.get(self.active or "")
        base: dict[str, Any] = {
            "active": self.active,
            "open": list(self.notes),
            "mode": None,
            "hash": None,
            "length": 0,
        }
        if note is not None:
            units = len(note.text.encode("utf-16-le")) // 2
            base |= {"mode": note.mode, "hash": sha256(note.text), "length": units}
            base |= {"selections": self.selections, "selected": self.selected}
        return base

    def _settled(self, path: str) -> dict[str, Any]:
        note = self.notes.get(path)
        if note is None:
            return {
                "path": path,
                "open": False,
                "mode": None,
                "hash": None,
                "saved": False,
                "dirty": False,
            }
        if note.text != note.saved:
            self._save(path, note)
        return {
            "path": path,
            "open": True,
            "mode": note.mode,
            "hash": sha256(note.text),
            "saved": True,
            "dirty": False,
        }

    def _edit(
        self, path: str, before: str, after: str, changes: list[tuple[int, int, str]]
    ) -> dict[str, Any]:
        self.before_edit()
        note = self.notes.get(path)
        if note is None:
            raise Refused("NOT_OPEN")
        if note.mode != "source":
            raise Refused("NOT_SOURCE")
        if sha256(note.text) != before:
            raise Refused("STALE")
        units = note.text.encode("utf-16-le")
        for start, end, text in reversed(changes):
            units = units[: 2 * start] + text.encode("utf-16-le") + units[2 * end :]
        result = units.decode("utf-16-le")
        if sha256(result) != after:
            raise Refused("DIFFERENT")
        note.undo.append(note.text)
        note.text = result
        if self.unsaved:
            raise Refused("UNSAVED")
        self._save(path, note)
        self.bump()
        return {"saved": True, "hash": after}


@contextmanager
def stand_in(folder: Path, home: Path) -> Iterator[StandIn]:
    """Run a stand-in for the vault in `folder`, known to Obsidian.

    `home` holds the socket and the registry; XDG_RUNTIME_DIR and XDG_CONFIG_HOME point to it.
    """
    registry = home / "obsidian" / "obsidian.json"
    registry.parent.mkdir(parents=True, exist_ok=True)
    registry.write_text(json.dumps({"vaults": {VAULT_ID: {"path": str(folder), "ts": 1}}}))
    running = StandIn(Path(os.path.realpath(folder)), home / ".obsidian-cli.sock")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(running.place))
        listener.listen(64)
        threading.Thread(target=running.serve, args=(listener,), daemon=True).start()
        try:
            yield running
        finally:
            with suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)
            running.place.unlink(missing_ok=True)
