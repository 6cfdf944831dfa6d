"""An agent that looks around by itself, put beside a vault: its MCP server, the way of its plans, and what changed while it worked."""

from __future__ import annotations

import hashlib
import os
import re
import sys
from collections.abc import AsyncIterator, Callable, Sequence
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
from obsidian_agent.providers.acp import AcpAgent
from obsidian_agent.providers.base import ChatDelta, OwnCall, Remark
from obsidian_agent.providers.opencode_server import OpenCodeServer, speaks_http
from obsidian_agent.providers.other_agent import (
    ACP,
    OURS,
    SERVER,
    AgentState,
    OtherAgent,
    Take,
    agent_command,
)
from obsidian_agent.services.runs import Runs
from obsidian_agent.vault.filesystem.inventory import file_stamps
from obsidian_agent.vault.filesystem.store import VaultStore

MOST_NAMED: Final = 10
"""Changed files that are told by name."""
LONGEST_NAME: Final = 80
"""Characters of what an agent calls its own call, in the record: there is no text of notes in it."""
_WORKSPACE: Final = re.compile(r"\.obsidian/workspace[^/]*\.json")
"""What Obsidian writes whenever somebody looks at something else."""


def open_agent(
    name: str,
    store: VaultStore,
    state: Path,
    settings: LiveSettings,
    record: AuditRecord,
    tell: Callable[[AgentState], object],
) -> OtherAgent:
    """The agent called `name` for a vault; nothing is started yet. Raises `ConfigError`."""
    command = agent_command(name, settings.current.agents)
    place = state_folder.find(state, store)
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()
    socket = place / f"agent-{os.getpid()}-{digest[:8]}.sock"  # short, whatever the name holds
    config = ["--config", str(settings.file)] if settings.file is not None else []
    told = {SOCKET_VARIABLE: str(socket), CLIENT_VARIABLE: name}
    if settings.options.get("share_allow"):
        told[f"{ENVIRONMENT_PREFIX}SHARE_ALLOW"] = ";".join(settings.current.share_allow)
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
        "env": [{"name": key, "value": value} for key, value in told.items()],
    }

    @asynccontextmanager
    async def proposals(take: Take, listed: Callable[[], object]) -> AsyncIterator[bool]:
        async def handed(proposal: ClientProposal) -> Outcome:
            return Outcome("shown", take(proposal.plan))

        async with proposal_socket(socket, handed, listed) as there:
            yield there

    def note(delta: ChatDelta) -> None:
        match delta:
            case Remark(problem, alarm=True):
                record.note("alarm", agent=name, message=problem.message)
            case Remark(problem, tool=tool):
                record.note(
                    "call", agent=name, tool=tool[:LONGEST_NAME], decision="deny", rule=problem.code
                )
            case OwnCall(_, tool, ended=True, problem=problem) if not OURS.fullmatch(tool):
                failed = {"rule": problem.code} if problem is not None else {}
                record.note("call", agent=name, tool=tool[:LONGEST_NAME], decision="own", **failed)
            case _:
                pass  # what our server was asked is written by it

    folder = state / "agents" / f"{place.name}-{name}"
    kind = OpenCodeServer if speaks_http(command) else AcpAgent
    return kind(
        name=f"{ACP}/{name}",
        command=command,
        folder=folder,
        log=ProcessLog(state / "log" / f"agent-{name}.log"),
        server=server,
        proposals=proposals,
        watch=lambda: _watch(name, store, Runs(store, state)),
        tell=tell,
        note=note,
    )


def _watch(name: str, store: VaultStore, runs: Runs) -> Callable[[], Problem | None]:
    """Look at the vault; what looks again, and says what changed that no run did. Both block."""
    known, before = {entry.run_id for entry in runs.history()}, file_stamps(store)

    def changed() -> Problem | None:
        after = file_stamps(store)
        done = [entry.effects for entry in runs.history() if entry.run_id not in known]
        own = {
            path
            for each in done
            for path in (
                *each.created,
                *each.modified,
                *each.deleted,
                *each.folders,
                *sum(each.renamed, ()),
            )
        }
        below = tuple(f"{path}/" for path in own)
        paths = sorted(
            path for path in before.keys() | after.keys() if before.get(path) != after.get(path)
        )
        return _behind(
            name,
            [
                each
                for each in paths
                if each not in own and not each.startswith(below) and not _WORKSPACE.fullmatch(each)
            ],
        )

    return changed


def _behind(name: str, paths: Sequence[str]) -> Problem | None:
    if not paths:
        return None
    more = f" and {len(paths) - MOST_NAMED} more" if len(paths) > MOST_NAMED else ""
    message = (
        f"While {name} worked, this changed in the vault, and no plan did it: {', '.join(paths[:MOST_NAMED])}{more}. "
        "If it was neither you nor another program of yours, the agent did it behind your back, and the history cannot take it back."
    )
    return Problem("CHANGED_BEHIND", message)
