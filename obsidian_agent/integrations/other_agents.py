"""External agents on a vault: their MCP server, their plans, and changes while they worked."""

from __future__ import annotations

import hashlib
import os
import re
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from obsidian_agent.agent.privacy.record import AuditRecord
from obsidian_agent.child_process import ProcessLog
from obsidian_agent.config.layers import ENVIRONMENT_PREFIX
from obsidian_agent.config.live import LiveSettings
from obsidian_agent.errors import Problem
from obsidian_agent.integrations.proposals import (
    CLIENT_VARIABLE,
    SOCKET_VARIABLE,
    ClientProposal,
    Outcome,
    proposal_socket,
)
from obsidian_agent.journal import state_folder
from obsidian_agent.journal.records import Effects
from obsidian_agent.providers.acp import AcpAgent
from obsidian_agent.providers.base import ChatDelta, OwnCall, Remark
from obsidian_agent.providers.opencode_server import OpenCodeServer, speaks_http
from obsidian_agent.providers.other_agent import (
    ACP,
    OUR_TOOL,
    SERVER,
    AcceptPlan,
    AgentState,
    OtherAgent,
    agent_command,
)
from obsidian_agent.services.runs import Runs
from obsidian_agent.vault.filesystem.inventory import file_stamps
from obsidian_agent.vault.filesystem.store import VaultStore

MAX_NAMED: Final = 10
"""Number of changed files that a message names."""
MAX_TOOL_NAME: Final = 80
"""Characters of a tool's name in the audit record, which must not hold text of notes."""
_WORKSPACE: Final = re.compile(r"\.obsidian/workspace[^/]*\.json")
"""Files that Obsidian writes whenever another note is opened."""


def open_agent(
    name: str,
    store: VaultStore,
    state: Path,
    settings: LiveSettings,
    record: AuditRecord,
    report: Callable[[AgentState], object],
) -> OtherAgent:
    """Return the agent `name` for a vault without starting it. Raise `ConfigError`.

    `report` receives its state.
    """
    command = agent_command(name, settings.current.agents)
    vault_state = state_folder.find(state, store)
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()
    socket = vault_state / f"agent-{os.getpid()}-{digest[:8]}.sock"  # short for every name
    config = ["--config", str(settings.file)] if settings.file is not None else []
    environment = {SOCKET_VARIABLE: str(socket), CLIENT_VARIABLE: name}
    if settings.options.get("share_allow"):
        environment[f"{ENVIRONMENT_PREFIX}SHARE_ALLOW"] = ";".join(settings.current.share_allow)
    server = {
        "name": SERVER,
        "command": sys.executable,
        "args": [
            "-m",
            "obsidian_agent",
            "mcp",
            "serve",
            "--vault",
            store.real_path,
            "--state-dir",
            str(state),
            *config,
        ],
        "env": [{"name": key, "value": value} for key, value in environment.items()],
    }

    @asynccontextmanager
    async def proposals(accept: AcceptPlan, listed: Callable[[], object]) -> AsyncIterator[bool]:
        async def handle(proposal: ClientProposal) -> Outcome:
            return Outcome("shown", accept(proposal.plan))

        async with proposal_socket(socket, handle, listed) as is_bound:
            yield is_bound

    def note(delta: ChatDelta) -> None:
        match delta:
            case Remark(problem, alarm=True):
                record.note("alarm", agent=name, message=problem.message)
            case Remark(problem, tool=tool):
                record.note(
                    "call",
                    agent=name,
                    tool=tool[:MAX_TOOL_NAME],
                    decision="deny",
                    rule=problem.code,
                )
            case OwnCall(_, tool, ended=True, problem=problem) if not OUR_TOOL.fullmatch(tool):
                failed = {"rule": problem.code} if problem is not None else {}
                record.note("call", agent=name, tool=tool[:MAX_TOOL_NAME], decision="own", **failed)
            case _:
                pass  # calls of our server are noted by the server

    folder = state / "agents" / f"{vault_state.name}-{name}"
    kind = OpenCodeServer if speaks_http(command) else AcpAgent
    return kind(
        name=f"{ACP}/{name}",
        command=command,
        folder=folder,
        log=ProcessLog(state / "log" / f"agent-{name}.log"),
        server=server,
        proposals=proposals,
        watch=lambda: _watch(name, store, Runs(store, state)),
        report=report,
        note=note,
    )


def _watch(name: str, store: VaultStore, runs: Runs) -> Callable[[], Problem | None]:
    """Record the state of the vault. Return a function that reports changes by no run.

    Both block.
    """
    known, before = {entry.run_id for entry in runs.history()}, file_stamps(store)

    def changed() -> Problem | None:
        after = file_stamps(store)
        effects = [entry.effects for entry in runs.history() if entry.run_id not in known]
        own = {path for effect in effects for path in _paths(effect)}
        below = tuple(f"{path}/" for path in own)
        paths = sorted(
            path for path in before.keys() | after.keys() if before.get(path) != after.get(path)
        )
        foreign = [
            path
            for path in paths
            if path not in own and not path.startswith(below) and not _WORKSPACE.fullmatch(path)
        ]
        return _unplanned(name, foreign)

    return changed


def _paths(effects: Effects) -> Iterator[str]:
    yield from (*effects.created, *effects.modified, *effects.deleted, *effects.folders)
    for pair in effects.renamed:
        yield from pair


def _unplanned(name: str, paths: Sequence[str]) -> Problem | None:
    if not paths:
        return None
    files = ", ".join(paths[:MAX_NAMED])
    if len(paths) > MAX_NAMED:
        files += f" and {len(paths) - MAX_NAMED} more"
    message = (
        f"While {name} worked, this changed in the vault, and no plan did it: {files}. If neither "
        "you nor another program changed it, the agent did so without approval, and it cannot be "
        "undone from the history."
    )
    return Problem("CHANGED_BEHIND", message)
