"""What the person allows plans to do; nothing in a plan or a vault can widen it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Policy:
    """The settings that validation enforces. Without `allow_writes` a plan may only read (PERMISSION_DENIED)."""

    allow_deletes: bool = False
    allow_commands: bool = False
    allow_writes: bool = True
