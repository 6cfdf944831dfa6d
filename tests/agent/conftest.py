"""A desk: a small vault, a person who says yes, and room for models."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agents import NOTES, Desk
from support import MakeVault


@pytest.fixture
def make_desk(make_vault: MakeVault, tmp_path: Path) -> Callable[..., Desk]:
    """Make a desk; `files` are added to the usual notes."""

    def make(files: dict[str, str | bytes] | None = None, **fields: Any) -> Desk:
        return Desk(make_vault({**NOTES, **(files or {})}), tmp_path / "state", **fields)

    return make


@pytest.fixture
def desk(make_desk: Callable[..., Desk]) -> Desk:
    """The usual one."""
    return make_desk()
