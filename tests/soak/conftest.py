"""A folder for each test, and one line for each fault: at how many points it was tried, and what was violated."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from tempfile import mkdtemp

import pytest


@pytest.fixture
def base() -> Iterator[Path]:
    """Return a fresh folder, in memory if the system has such a disk."""
    memory = Path("/dev/shm")
    is_usable = memory.is_dir() and os.access(memory, os.W_OK)
    folder = Path(mkdtemp(prefix="soak-", dir=memory if is_usable else None))
    yield folder / "base"
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def tell(request: pytest.FixtureRequest) -> Callable[[str, int, Sequence[str]], None]:
    """Print a fault, the number of points tried and the violations (`sweep.Tell`); fail on any."""

    def record(fault: str, points: int, violations: Sequence[str]) -> None:
        request.node.user_properties.append(
            ("fault", f"{fault:76} {points:6,} points {len(violations):3} violations")
        )
        assert points, "the fault never struck"
        assert not violations, "\n".join(violations[:10])

    return record


class FaultLines:
    """Prints the lines as the reports come in, those of pytest-xdist's workers too."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" and (
            lines := [line for name, line in report.user_properties if name == "fault"]
        ):
            reporter = self.config.pluginmanager.getplugin("terminalreporter")
            reporter.ensure_newline()
            for line in lines:
                reporter.write_line(str(line))


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(FaultLines(config))
