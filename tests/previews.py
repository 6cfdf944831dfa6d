"""Change sets and previews made by hand, and states of a vault for comparison."""

from __future__ import annotations

import os
import sqlite3
import stat
import threading
from collections.abc import Iterable, Sequence
from contextlib import closing
from datetime import datetime
from functools import reduce
from pathlib import Path
from typing import Any

from obsidian_agent.agent.events import ExecutionResult, RunEvent
from obsidian_agent.journal import integrity
from obsidian_agent.journal.writer import Journal
from obsidian_agent.plan.model import ActionPlan
from obsidian_agent.plan.result import Instance, Preview
from obsidian_agent.services.executor import RunCommand, execute
from obsidian_agent.tools.core.tool import Risk, RunContext
from obsidian_agent.vault.filesystem.store import VaultStore
from obsidian_agent.vault.paths import path as paths
from obsidian_agent.vault.paths.path import VaultPath
from obsidian_agent.vault.views.changes import (
    ChangeSet,
    MakeDir,
    Move,
    Operation,
    OwnedOperation,
    WriteFile,
    content_hash,
)

Picture = dict[str, tuple[str, int, bytes]]
"""Path to kind, mode and bytes (a link's target for a link) of everything below a folder."""


def vault_path(text: str) -> VaultPath:
    """Return a path as in a listing of the disk, also one in the trash."""
    if text.startswith(".trash/"):
        return paths.trash_path(text.removeprefix(".trash/"))
    return reduce(paths.from_disk, text.split("/"), paths.ROOT)


def make(path: str) -> MakeDir:
    return MakeDir(vault_path(path))


def create(path: str, content: bytes) -> WriteFile:
    return WriteFile(vault_path(path), None, content_hash(content), content)


def modify(path: str, before: bytes, after: bytes) -> WriteFile:
    return WriteFile(vault_path(path), content_hash(before), content_hash(after), after)


def move(path: str, new_path: str, content: bytes | None = None) -> Move:
    """Of a file with this content, or of a folder."""
    return Move(
        path=vault_path(path),
        new_path=vault_path(new_path),
        folder=content is None,
        before_hash=None if content is None else content_hash(content),
    )


def trash(path: str, content: bytes | None = None) -> Move:
    """Into the trash under its own name."""
    name = path.rpartition("/")[2]
    hash = None if content is None else content_hash(content)
    return Move(
        path=vault_path(path),
        new_path=paths.trash_path(name),
        folder=content is None,
        before_hash=hash,
        trash=True,
    )


def step(id: str, **fields: Any) -> dict[str, Any]:
    """Return a step of a plan, as JSON."""
    return {"id": id, "tool": "vault.writeFile", "args": {}, **fields}


def previewed(
    *operations: Operation | Sequence[Operation],
    steps: Iterable[dict[str, Any]] | None = None,
    goal: str = "Test",
) -> Preview:
    """Return a preview with one step and one instance for each operation, or group of them."""
    groups = [list(group) if isinstance(group, Sequence) else [group] for group in operations]
    documents = (
        list(steps) if steps is not None else [step(f"s{number}") for number in range(len(groups))]
    )
    plan = ActionPlan.model_validate(
        {"version": "1.0", "goal": goal, "riskLevel": "writes", "steps": documents}
    )
    instances = tuple(
        Instance(
            name=one.id,
            step_id=one.id,
            index=None,
            tool=one.tool,
            args=one.args,
            state="ready",
            output={"of": one.id},
            depends_on=frozenset(one.depends_on),
        )
        for one in plan.steps
    )
    owned = tuple(
        OwnedOperation(operation, number)
        for number, group in enumerate(groups)
        for operation in group
    )
    outputs = {one.step_id: one.output for one in instances}
    context = RunContext("vault", datetime(2026, 1, 2, 3, 4, 5))
    return Preview(
        plan=plan,
        context=context,
        risk=Risk.WRITES,
        instances=instances,
        outputs=outputs,
        change_set=ChangeSet(owned),
        plan_hash="hash",
    )


def run(
    preview: Preview,
    store: VaultStore,
    journal: Journal,
    events: list[RunEvent] | None = None,
    cancel: threading.Event | None = None,
    run_command: RunCommand | None = None,
) -> ExecutionResult:
    """Execute a preview."""
    heard: list[RunEvent] = [] if events is None else events
    return execute(
        preview,
        store,
        journal,
        emit=heard.append,
        cancel=cancel or threading.Event(),
        run_command=run_command,
    )


def restarted(journal: Journal) -> None:
    """Let the machine have been started since the interrupted records of a journal began."""
    with closing(sqlite3.connect(journal.file, isolation_level=None)) as connection:
        interrupted = [
            seq for (seq,) in connection.execute("SELECT seq FROM record WHERE status = 'applying'")
        ]
        connection.execute("UPDATE record SET boot = 'an earlier start' WHERE status = 'applying'")
        integrity.seal(connection, interrupted)


def picture(folder: Path) -> Picture:
    """Everything below a folder, as it is, but for the id that the first run gives a vault."""
    found: Picture = {}
    for root, folders, files in os.walk(folder):
        for name in [*folders, *files]:
            path = Path(root, name)
            mode = path.lstat().st_mode
            if path.is_symlink():
                entry = ("link", 0, os.fsencode(path.readlink()))
            elif path.is_dir():
                entry = ("folder", stat.S_IMODE(mode), b"")
            elif path.is_file():
                entry = ("file", stat.S_IMODE(mode), path.read_bytes())
            else:
                entry = ("special", stat.S_IMODE(mode), b"")
            found[str(path.relative_to(folder))] = entry
    return without_id(found)


def without_id(found: dict[str, Any]) -> dict[str, Any]:
    """Return a vault by path, without its id, also if its creation was interrupted."""
    id_files = (f"{paths.APP_FOLDER}/vault.json", f"{paths.APP_FOLDER}/.oa-")
    left = {path: entry for path, entry in found.items() if not path.startswith(id_files)}
    if not any(path.startswith(f"{paths.APP_FOLDER}/") for path in left):
        left.pop(paths.APP_FOLDER, None)
    return left
