"""The tools that plans are judged by."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from obsidian_agent.tools.core.tool import Tool
from obsidian_agent.tools.registry import TOOLS


@pytest.fixture(scope="session")
def tools() -> Mapping[str, Tool]:
    """Return the product's own tools, by name."""
    return TOOLS
