"""Damage to the journal's files: `history` and `doctor` report lost runs, also as JSON."""

from __future__ import annotations

import json
import os
import random
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from obsidian_agent.cli.main import main
from obsidian_agent.errors import JournalError
from obsidian_agent.journal.undo import redo, undo
from obsidian_agent.journal.writer import Journal
from obsidian_agent.vault.filesystem.store import VaultStore
from previews import create, modify, move, previewed, run

FILES = ("journal.db", "journal.db-wal", "journal.register")
Call = Callable[..., tuple[int, Any]]


@dataclass
class Scene:
    """A vault, its state, and copies of both to start from again."""

    base: Path
    call: Call
    runs: dict[str, Any]
    """The runs in the undamaged history."""
    kept: dict[str, object]
    """The readable contents of each run."""

    @property
    def folder(self) -> Path:
        (found,) = (self.base / "state/vaults").iterdir()
        return found

    def start_again(self) -> None:
        for name in ("vault", "state"):
            shutil.rmtree(self.base / name)
            shutil.copytree(self.base / "saved" / name, self.base / name)

    def read_back(self) -> dict[str, object]:
        found: dict[str, object] = {}
        with (
            VaultStore.open(self.base / "vault") as store,
            Journal.open(self.base / "state", store) as journal,
        ):
            for run_id in self.runs:
                try:
                    record = journal.run(run_id)
                    assert record is not None
                    actions, images = journal.load(record)
                    contents = {
                        hash
                        for one in actions
                        for hash in (
                            getattr(one.action, "before", None),
                            getattr(one.action, "after", None),
                        )
                    }
                    found[run_id] = (
                        record,
                        actions,
                        {hash: images.get(hash) for hash in contents if hash},
                        journal.plan_of(run_id),
                    )
                except (JournalError, AssertionError):
                    found[run_id] = None
        return found


@pytest.fixture
def call(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Call:
    def ask(*arguments: str) -> tuple[int, Any]:
        code = main(
            [
                *arguments,
                "--json",
                "--vault",
                str(tmp_path / "vault"),
                "--state-dir",
                str(tmp_path / "state"),
            ]
        )
        return code, json.loads(capsys.readouterr().out)

    return ask


@pytest.fixture(params=["ended", "cut short"])
def scene(tmp_path: Path, call: Call, request: pytest.FixtureRequest) -> Scene:
    """Create eight runs, one undone, one undone and redone; the last perhaps without its end."""
    (tmp_path / "vault").mkdir()
    with (
        VaultStore.open(tmp_path / "vault") as store,
        Journal.open(tmp_path / "state", store) as journal,
    ):
        for number in range(3):
            assert run(
                previewed(
                    create(f"n{number}.md", b"text %d\n" % number * 400), goal=f"Make {number}"
                ),
                store,
                journal,
            ).success
        assert run(
            previewed(modify("n0.md", b"text 0\n" * 400, b"other\n")), store, journal
        ).success
        undo(journal, store)
        assert run(previewed(move("n1.md", "m1.md", b"text 1\n" * 400)), store, journal).success
        undo(journal, store)
        redo(journal, store)
        assert run(
            previewed(create("big.bin", random.Random(1).randbytes(40_000))), store, journal
        ).success
        assert run(previewed(create("seven.md", b"7")), store, journal).success
        if request.param == "ended":
            assert run(previewed(create("last.md", b"8")), store, journal).success
        else:
            with (
                patch.object(Journal, "finish", side_effect=KeyboardInterrupt),
                pytest.raises(KeyboardInterrupt),
            ):
                run(previewed(create("last.md", b"8")), store, journal)
    for name in ("vault", "state"):
        shutil.copytree(tmp_path / name, tmp_path / "saved" / name)
    code, told = call("history")
    assert (code, len(told["runs"]), "errors" in told) == (0, 8, False)
    scene = Scene(tmp_path, call, {one["runId"]: one for one in told["runs"]}, {})
    scene.kept = scene.read_back()
    assert None not in scene.kept.values()
    # The runs of this scene are not in the audit record, which is another check.
    checks = [check for check in call("doctor")[1]["checks"] if "record" not in check["name"]]
    assert all(check["ok"] for check in checks) == (request.param == "ended")
    return scene


def harm(file: Path, chance: random.Random) -> str:
    """Damage a file in some way; what was done, or "" when there was nothing to damage."""
    size = file.stat().st_size if file.exists() else 0
    if not size:
        return ""
    kind = chance.choice(["bit", "bit", "bit", "bytes", "page", "cut", "cut"])
    at = chance.randrange(size)
    if kind == "cut":
        os.truncate(file, at)
        return f"cut at {at} of {size}"
    data = bytearray(file.read_bytes())
    match kind:
        case "bit":
            data[at] ^= 1 << chance.randrange(8)
        case "bytes":
            for _ in range(20):
                data[chance.randrange(size)] = chance.randrange(256)
        case _:
            data[at : at + 4096] = bytes(len(data[at : at + 4096]))
    file.write_bytes(data)
    return f"{kind} at {at} of {size}"


def untold(scene: Scene, rounds: int, seed: int) -> list[str]:
    """Damages after which something was lost and not everybody was told."""
    found = []
    chance = random.Random(seed)
    counts = {"lost": 0, "harmless": 0}
    for number in range(rounds):
        scene.start_again()
        name = chance.choice(FILES)
        done = harm(scene.folder / name, chance)
        code, told = scene.call("history")
        examined = scene.call("doctor")[1]
        assert "checks" in examined, (number, name, done, examined)
        checks = {check["name"]: check for check in examined["checks"]}
        listed = {one["runId"]: one for one in told.get("runs", ())}
        lost = [run_id for run_id, one in scene.runs.items() if listed.get(run_id) != one]
        spoilt = [run_id for run_id, one in scene.read_back().items() if one != scene.kept[run_id]]
        if lost and not (code and told["errors"]):
            found.append(f"{number}: {name} {done}: history lost {lost} and said nothing")
        if (lost or spoilt) and checks["journal"]["ok"]:
            found.append(
                f"{number}: {name} {done}: the doctor sees nothing, lost {lost}, spoilt {spoilt}"
            )
        if (
            spoilt
            and not lost
            and not any(run_id in checks["journal"]["detail"] for run_id in spoilt)
            and "damaged" not in checks["journal"]["detail"]
        ):
            found.append(f"{number}: {name} {done}: the doctor does not name {spoilt}")
        counts["lost" if lost or spoilt else "harmless"] += 1
    assert counts["lost"] > rounds // 20, counts
    return found


def test_a_run_that_is_lost_is_told(scene: Scene) -> None:
    assert untold(scene, 40, seed=5) == []


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(4))
def test_every_run_that_is_lost_is_told(scene: Scene, seed: int) -> None:
    assert untold(scene, 300, seed=100 + seed) == []
