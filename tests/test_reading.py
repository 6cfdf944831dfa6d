"""How the source reads: a package whose language pass is done stays as CONTRIBUTING.md asks."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.reading import CHECKS, PACKAGE, Location, locations

PENDING = {
    "providers",
}
"""Packages, and modules at the top, whose language pass is not done. Delete a line to check it."""


def parts() -> dict[str, list[Path]]:
    """Return the modules of every package and of every module at the top."""
    files: dict[str, list[Path]] = {}
    for path in PACKAGE.rglob("*.py"):
        if "node_modules" not in path.parts:
            files.setdefault(Location("", path, 0, "").part, []).append(path)
    return files


def test_packages_whose_pass_is_done_read_well() -> None:
    finished = [path for part, paths in parts().items() if part not in PENDING for path in paths]
    assert [str(at) for at in locations(finished) if at.kind in CHECKS] == []


def test_pending_packages_exist() -> None:
    assert set(parts()) >= PENDING


SAMPLES = {
    "docstring": ['def f():\n    """Whether it works."""', '"""Found lines."""', '"""None."""'],
    "name": ["found = 1", "def f(places): ...", "class Told: ...", "a.settle_open = 1", "MOST_TOLD = 2"],
    "phrase": ["a = 1  # nobody sees it", 'a = "The plan is left alone."', '"""Build it anew."""'],
    "nested": ["a = 1 if b else 2 if c else 3"],
    "constant": ["def f(): ...\nLIMIT = 3", "class C: ...\n_A: int = 3"],
    "typing": [
        "if TYPE_CHECKING:\n    import a\nif TYPE_CHECKING:\n    import b",
        "if typing.TYPE_CHECKING:\n    pass",
    ],
    "class": ["class Row: ...\nclass Row: ..."],
}  # fmt: skip


@pytest.mark.parametrize("kind", CHECKS)
def test_every_check_catches_its_samples(kind: str, tmp_path: Path) -> None:
    for sample in SAMPLES[kind]:
        module = tmp_path / "module.py"
        module.write_text(sample, "utf-8")
        assert kind in {at.kind for at in locations([module])}, sample


@pytest.mark.parametrize(
    "sample",
    [
        'def f():\n    """Return the matches."""',
        "in_place = left = 1",
        "class Row: ...\nROWS: list[Row] = [Row()]\nFIRST = ROWS[0]",
        "if TYPE_CHECKING:\n    import a",
        "class _Row: ...\nclass _Row: ...",
        "a = f(1 if b else 2)",
    ],
)
def test_good_samples_pass(sample: str, tmp_path: Path) -> None:
    module = tmp_path / "module.py"
    module.write_text(sample, "utf-8")
    assert [at for at in locations([module]) if at.kind in CHECKS] == []
