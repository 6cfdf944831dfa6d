"""The result of a run in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from obsidian_agent.terminal_text import counted

if TYPE_CHECKING:
    from obsidian_agent.agent.events import ExecutionResult


def describe_result(result: ExecutionResult) -> str:
    """Describe the changes of a run: `Created 10 files, modified 1 file.`."""
    effects = result.effects
    parts = [
        f"{verb} {counted(len(items), noun)}"
        for verb, items, noun in (
            ("created", effects.created, "file"),
            ("modified", effects.modified, "file"),
            ("renamed", effects.renamed, "file"),
            ("deleted", effects.deleted, "file"),
            ("created", effects.folders, "folder"),
            ("ran", effects.commands, "command"),
        )
        if items
    ]
    done = ", ".join(parts).capitalize() if parts else "No file was changed"
    sentences = [f"{done}."]
    if result.status not in ("done", "recovered"):
        sentences.append(f"{result.completed_steps:,} of {result.total_steps:,} steps are applied.")
    if remaining := result.remaining.files:
        sentences.append(f"Remaining: {counted(remaining, 'file')}.")
    return " ".join(sentences)
