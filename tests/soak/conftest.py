"""The long tests: only when they are asked for (`make soak`, `pytest -m soak`), and with a reason given when they cannot run."""

from __future__ import annotations

from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave the long tests out of a plain run."""
    if "soak" in str(config.getoption("-m")):
        return
    long = [item for item in items if HERE in item.path.parents and item.get_closest_marker("soak") is not None]
    config.hook.pytest_deselected(items=long)
    items[:] = [item for item in items if item not in long]
