from __future__ import annotations

from bench import limits
from bench.pages import DOCS


def test_no_limit_moves_unseen_and_each_has_its_reason() -> None:
    assert [f"{module} {name}" for module, name, _, reason in limits.limits() if not reason] == []
    assert (DOCS / "limits.md").read_text(encoding="utf-8") == limits.page(), "run: make docs"
