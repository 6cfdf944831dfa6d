"""The source reads as CONTRIBUTING.md asks."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.reading import CHECKS, PACKAGE, locations


def test_the_source_reads_well() -> None:
    paths = [path for path in PACKAGE.rglob("*.py") if "node_modules" not in path.parts]
    assert [str(at) for at in locations(paths) if at.kind in CHECKS] == []


SAMPLES = {
    "docstring": ['def f():\n    """Whether it works."""', '"""Found lines."""', '"""None."""', 'A = 1\n"""Where."""'],
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
