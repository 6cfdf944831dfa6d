"""One line for each fault at the end: at how many points it was tried, and what was violated."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

_LINES = pytest.StashKey[list[tuple[str, int, int]]]()


@pytest.fixture
def tell(request: pytest.FixtureRequest) -> Callable[[str, int, Sequence[str]], None]:
    """Takes a fault, at how many points it was tried, and the violations (`sweep.Tell`); fails when there are some."""

    def take_down(fault: str, points: int, violations: Sequence[str]) -> None:
        request.config.stash.setdefault(_LINES, []).append((fault, points, len(violations)))
        assert points, "the fault never struck"
        assert not violations, "\n".join(violations[:10])

    return take_down


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print the lines."""
    lines = config.stash.get(_LINES, [])
    if lines:
        terminalreporter.section("faults: points, violations")
    for fault, points, violations in lines:
        terminalreporter.write_line(f"{fault:76} {points:6,} {violations:3}")
