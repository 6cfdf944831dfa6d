"""One line for each fault: at how many points it was tried, and what was violated."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest


@pytest.fixture
def tell(request: pytest.FixtureRequest) -> Callable[[str, int, Sequence[str]], None]:
    """Takes a fault, at how many points it was tried, and the violations (`sweep.Tell`); prints a line, and fails when there are some."""

    def take_down(fault: str, points: int, violations: Sequence[str]) -> None:
        plugins = request.config.pluginmanager
        reporter, capture = plugins.getplugin("terminalreporter"), plugins.getplugin("capturemanager")
        with capture.global_and_fixture_disabled():
            reporter.ensure_newline()
            reporter.write_line(f"{fault:76} {points:6,} points {len(violations):3} violations")
        assert points, "the fault never struck"
        assert not violations, "\n".join(violations[:10])

    return take_down
