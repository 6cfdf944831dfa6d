"""Messages about an invalid plan are in plain words, not in the language of plans."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from obsidian_agent.bootstrap import Wiring
from obsidian_agent.tui.widgets.run import RunLog
from obsidian_agent.vault.filesystem.store import VaultStore
from tui.driving import driving_real

FIND = {"id": "find", "tool": "vault.find", "args": {"limit": 1}}


@pytest.mark.parametrize(
    ("steps", "sentence"),
    [
        (
            [
                FIND,
                {
                    "id": "add",
                    "tool": "vault.updateFile",
                    "foreach": {"from": "$steps.find.files", "itemName": "note"},
                    "args": {"path": "${note.path}", "mode": "append", "content": "x"},
                },
            ],
            "only a part of what it found",
        ),
        (
            [FIND, {"id": "stop", "tool": "vault.readFile", "args": {"path": "${note.path}"}}],
            "uses a value that nothing provides",
        ),
        (
            [
                {
                    "id": "make",
                    "tool": "vault.createFile",
                    "args": {"path": "A.md", "content": "x", "ifNotExists": False},
                }
            ],
            "A.md already exists. Choose another name.",
        ),
    ],
)
async def test_a_plan_that_cannot_run_is_explained_without_its_language(
    tmp_path: Path, steps: list[dict[str, Any]], sentence: str
) -> None:
    vault = tmp_path / "Vault"
    vault.mkdir()
    (vault / "A.md").write_text("a\n")
    (vault / "B.md").write_text("b\n")
    document = {"version": "1.0", "goal": "Change", "riskLevel": "writes", "steps": steps}
    with VaultStore.open(vault) as store:
        async with driving_real(Wiring(store, tmp_path / "state"), (200, 50)) as app:
            app.main.preview_plan(document)
            await app.settle()
            shown = app.screen() + app.transcript()
            assert sentence in shown
            for word in (
                "$steps",
                "${",
                "/steps",
                "TRUNCATED",
                "REFERENCE",
                "EXISTS",
                "edit it with",
            ):
                assert word not in shown


async def test_a_run_and_its_result_name_steps_by_their_lines(tmp_path: Path) -> None:
    vault = tmp_path / "Vault"
    vault.mkdir()
    (vault / "A.md").write_text("a\n")
    steps: list[dict[str, Any]] = [
        {
            "id": "read",
            "tool": "vault.readFile",
            "foreach": {"from": ["A.md", "A.md"], "itemName": "note"},
            "args": {"path": "${note}"},
            "preview": "Read ${note} first",
        },
        {
            "id": "add",
            "tool": "vault.updateFile",
            "args": {"path": "A.md", "mode": "append", "content": "x"},
        },
    ]
    document = {"version": "1.0", "goal": "Change", "riskLevel": "writes", "steps": steps}
    with VaultStore.open(vault) as store:
        async with driving_real(Wiring(store, tmp_path / "state"), (200, 50)) as app:
            app.main.preview_plan(document)
            await app.settle()
            assert "Read … first" in app.screen()
            await app.press("a")
            assert app.stage == "result", app.screen()
            log = [row.text for row in app.panes.work.progress.query_one(RunLog).entries]
            assert log == ["Read … first (1)", "Read … first (2)", "A.md"]
            assert "read_0" not in app.screen() + app.transcript()
