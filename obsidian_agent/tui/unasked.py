"""Whether the person's settings let a plan run without a question. Deletes and commands are always asked about."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from obsidian_agent.config.settings import Settings
    from obsidian_agent.plan.result import Preview


def unasked(preview: Preview, settings: Settings) -> bool:
    """Whether a complete preview may be applied without a question."""
    if not preview.valid or not preview.instances or any(flag.kind == "opaque" for flag in preview.flags):
        return False
    if any(change.kind == "delete" for change in preview.change_set.changes):
        return False
    match preview.risk.value:
        case "read-only":
            return settings.auto_approve_read_only and not preview.change_set.changes
        case "writes":
            return not settings.confirm_writes
        case _:
            return False
