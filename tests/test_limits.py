"""docs/limits.md prints the numbers that the program uses."""

from __future__ import annotations

import re
from pathlib import Path

from obsidian_agent.agent import context
from obsidian_agent.agent.turn.loop import MAX_ROUNDS
from obsidian_agent.agent.turn.proposals import MAX_CORRECTIONS
from obsidian_agent.budget import MAX_TEXT
from obsidian_agent.cli.session_factory import MAX_SELECTION_BYTES
from obsidian_agent.config.settings import Settings
from obsidian_agent.integrations.mcp_server import DECISION_SECONDS
from obsidian_agent.integrations.shared_vault import CALL_SECONDS
from obsidian_agent.journal.writer import KEEP_BYTES, KEEP_RUNS, KEEP_SECONDS
from obsidian_agent.obsidian import editing
from obsidian_agent.plan.active_content import MAX_PARSED
from obsidian_agent.plan.json_text import MAX_FILE_BYTES
from obsidian_agent.plan.model import MAX_INSTANCES, MAX_STEPS
from obsidian_agent.plan.preview import PREVIEW_SECONDS
from obsidian_agent.providers.base import SILENCE
from obsidian_agent.providers.registry import LOCAL_SILENCE
from obsidian_agent.services import hooks
from obsidian_agent.services.waiting_plans import MAX_WAITING
from obsidian_agent.tools.core.patterns import TIME_LIMIT
from obsidian_agent.vault.filesystem.inventory import HASHED_FILE
from obsidian_agent.vault.filesystem.store import READ_LIMIT
from obsidian_agent.vault.links import references
from obsidian_agent.vault.paths.path import MAX_DEPTH, MAX_PATH_BYTES
from obsidian_agent.vault.paths.rules import MAX_NAME_BYTES
from obsidian_agent.vault.views.diff import DIFFLIB_LIMIT

PAGE = Path(__file__).parents[1] / "docs" / "limits.md"
MEGABYTE = 1024 * 1024
DAY = 86_400

LIMITS = [
    f"{READ_LIMIT // MEGABYTE} MB",
    f"{MAX_NAME_BYTES} bytes",
    f"{MAX_PATH_BYTES:,} bytes",
    f"{MAX_DEPTH}",
    f"{HASHED_FILE // MEGABYTE} MB",
    f"{DIFFLIB_LIMIT:,}",
    f"{references.MAX_PARSED:,} characters",
    f"{MAX_PARSED:,} characters",
    f"{editing.LARGEST:,} bytes",
    f"{MAX_STEPS}",
    f"{MAX_INSTANCES:,}",
    f"{PREVIEW_SECONDS:.0f} seconds; {CALL_SECONDS:.0f} for another program (MCP)",
    f"{MAX_TEXT:,} characters",
    f"{TIME_LIMIT:.0f} seconds",
    f"{MAX_FILE_BYTES // MEGABYTE} MB",
    f"{MAX_SELECTION_BYTES // MEGABYTE} MB",
    f"the last {KEEP_RUNS}, and all of the last {KEEP_SECONDS / DAY:.0f} days "
    f"up to {KEEP_BYTES // (1024 * MEGABYTE)} GB",
    f"{context.MAX_NOTES}",
    f"{context.MAX_CHARACTERS:,} characters",
    f"{MAX_ROUNDS}",
    f"{MAX_CORRECTIONS}",
    f"{Settings().requests_per_minute} (`requests_per_minute`)",
    f"{SILENCE:.0f} seconds, {LOCAL_SILENCE:.0f} on this machine (`timeout`)",
    f"{MAX_WAITING}",
    f"{DECISION_SECONDS:.0f} seconds",
    f"{hooks.TIMEOUT:.0f} seconds",
]
"""The second column of the page, row by row."""


def test_the_page_prints_the_limits_that_are_in_force() -> None:
    rows = re.findall(r"^\| .*? \| (.*?) \| .* \|$", PAGE.read_text("utf-8"), re.MULTILINE)
    assert rows[1:] == LIMITS
