"""A vault keeps its history when it is renamed or moved, and shares it with no other vault."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from obsidian_agent.cli.main import main
from obsidian_agent.errors import JournalError
from obsidian_agent.journal import adoption, state_folder
from obsidian_agent.journal.undo import undo
from obsidian_agent.journal.writer import Journal
from obsidian_agent.services.runs import Runs
from obsidian_agent.vault.filesystem.store import VaultStore
from previews import create, picture, previewed, run

Call = Callable[..., tuple[int, Any]]


@pytest.fixture
def call(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Call:
    def ask(vault: str, *arguments: str) -> tuple[int, Any]:
        code = main(
            [
                *arguments,
                "--json",
                "--vault",
                str(tmp_path / vault),
                "--state-dir",
                str(tmp_path / "state"),
            ]
        )
        return code, json.loads(capsys.readouterr().out)

    return ask


@pytest.fixture
def work(tmp_path: Path) -> Callable[[str, str], None]:
    """Make a note in a vault by a run."""

    def make(vault: str, name: str) -> None:
        (tmp_path / vault).mkdir(exist_ok=True)
        with (
            VaultStore.open(tmp_path / vault) as store,
            Journal.open(tmp_path / "state", store) as journal,
        ):
            result = run(previewed(create(name, b"x"), goal=f"Make {name}"), store, journal)
            Runs(store, tmp_path / "state").note("run", runId=result.run_id)
            if result.errors:
                raise JournalError(result.errors[0].message, code=result.errors[0].code)

    return make


Work = Callable[[str, str], None]


def goals(call: Call, vault: str) -> list[str]:
    return [one["goal"] for one in call(vault, "history")[1]["runs"]]


def identity(folder: Path) -> str:
    return str(json.loads((folder / ".obsidian-agent/vault.json").read_text())["id"])


def test_the_id_is_made_with_the_first_run_that_changes_something(
    work: Work, call: Call, tmp_path: Path
) -> None:
    (tmp_path / "a").mkdir()
    call("a", "history")
    call("a", "search", "x")
    call("a", "doctor")
    assert picture(tmp_path / "a") == {}
    assert not (tmp_path / "a/.obsidian-agent").exists()
    work("a", "one.md")
    made = identity(tmp_path / "a")
    work("a", "two.md")
    assert identity(tmp_path / "a") == made


def test_a_moved_vault_is_told_and_takes_its_history_along(
    work: Work, call: Call, tmp_path: Path
) -> None:
    work("a", "one.md")
    work("a", "two.md")
    (tmp_path / "a").rename(tmp_path / "b")
    for command in (["history"], ["undo", "--yes"], ["redo", "--yes"], ["recover"]):
        code, told = call("b", *command)
        assert (code, told["errors"][0]["code"]) == (1, "VAULT_MOVED"), command
        assert f"This vault was moved from {tmp_path / 'a'}" in told["errors"][0]["message"]
        assert "doctor --adopt" in told["errors"][0]["message"]
    code, told = call("b", "doctor")
    assert code == 1
    assert "was moved from" in next(
        check["detail"] for check in told["checks"] if check["name"] == "journal"
    )
    with pytest.raises(JournalError, match="belongs to that path"):
        work("b", "three.md")
    assert not (tmp_path / "b/three.md").exists()
    assert call("b", "doctor", "--adopt")[1] == {"movedFrom": str(tmp_path / "a"), "adopted": True}
    assert goals(call, "b") == ["Make two.md", "Make one.md"]
    assert call("b", "undo", "--yes")[1]["restored"] == ["two.md"]
    work("b", "three.md")
    assert goals(call, "b") == ["Make three.md", "Make two.md", "Make one.md"]
    assert call("b", "doctor")[0] == 0
    assert call("b", "doctor", "--adopt")[0] == 2


def test_the_record_goes_along_and_goes_on_with_what_was_noted_at_the_new_place(
    work: Work, call: Call, tmp_path: Path
) -> None:
    work("a", "one.md")
    (tmp_path / "a").rename(tmp_path / "b")
    code, _ = call("b", "rename", "one.md", "two.md", "--yes")
    assert code == 1, "the vault was moved"
    assert call("b", "doctor", "--adopt")[0] == 0
    assert call("b", "audit", "--verify") == (0, {"ok": True, "entries": 2})
    kinds = [each["kind"] for each in call("b", "audit")[1]["entries"]]
    assert sorted(kinds) == ["approval", "run"]


def test_threads_go_along_and_what_was_begun_at_the_new_place_stays(
    work: Work, call: Call, tmp_path: Path
) -> None:
    work("a", "one.md")
    (old,) = (tmp_path / "state/vaults").iterdir()
    (old / "threads").mkdir()
    (old / "threads/first.jsonl").write_text("first")
    (old / "macro-usage.json").write_text("{}")
    (tmp_path / "a").rename(tmp_path / "b")
    with VaultStore.open(tmp_path / "b") as store:
        new = state_folder.find(tmp_path / "state", store)
        (new / "threads").mkdir(parents=True)
        (new / "threads/second.jsonl").write_text("second")
        adoption.adopt(tmp_path / "state", store)
    assert sorted(path.name for path in (new / "threads").iterdir()) == [
        "first.jsonl",
        "second.jsonl",
    ]
    assert (new / "macro-usage.json").exists()


def test_adopting_that_is_cut_off_is_offered_again(
    work: Work, call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work("a", "one.md")
    (tmp_path / "a").rename(tmp_path / "b")
    real = Path.rename

    def rename(self: Path, target: Path) -> Path:
        if self.name == "journal.db":
            raise KeyboardInterrupt
        return real(self, target)

    with VaultStore.open(tmp_path / "b") as store:
        monkeypatch.setattr(Path, "rename", rename)
        with pytest.raises(KeyboardInterrupt):
            adoption.adopt(tmp_path / "state", store)
        monkeypatch.undo()
    assert call("b", "history")[1]["errors"][0]["code"] == "VAULT_MOVED"
    assert call("b", "doctor", "--adopt")[0] == 0
    assert goals(call, "b") == ["Make one.md"]
    assert call("b", "doctor")[0] == 0


def test_starting_anew_leaves_the_history_and_asks_no_more(
    work: Work, call: Call, tmp_path: Path
) -> None:
    work("a", "one.md")
    (tmp_path / "a").rename(tmp_path / "b")
    assert call("b", "doctor", "--start-anew")[1] == {
        "movedFrom": str(tmp_path / "a"),
        "adopted": False,
    }
    assert goals(call, "b") == []
    work("b", "two.md")
    assert goals(call, "b") == ["Make two.md"]
    (tmp_path / "b").rename(tmp_path / "c")
    assert call("c", "doctor", "--adopt")[1]["movedFrom"] == str(tmp_path / "b")


def test_a_copy_has_no_part_in_the_history_and_gets_an_id_of_its_own(
    work: Work, call: Call, tmp_path: Path
) -> None:
    work("a", "one.md")
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    assert goals(call, "b") == []
    work("b", "two.md")
    assert identity(tmp_path / "a") != identity(tmp_path / "b")
    assert (goals(call, "a"), goals(call, "b")) == (["Make one.md"], ["Make two.md"])
    shutil.rmtree(tmp_path / "a")
    assert goals(call, "b") == ["Make two.md"]


def test_another_vault_at_the_old_place_does_not_get_the_history(
    work: Work, call: Call, tmp_path: Path
) -> None:
    work("a", "one.md")
    work("x", "other.md")
    (tmp_path / "a").rename(tmp_path / "b")
    (tmp_path / "x").rename(tmp_path / "a")
    assert call("a", "history")[1]["errors"][0]["code"] == "VAULT_MOVED"
    assert call("a", "doctor", "--adopt")[1]["movedFrom"] == str(tmp_path / "x")
    assert call("b", "doctor", "--adopt")[1]["movedFrom"] == str(tmp_path / "a")
    assert (goals(call, "a"), goals(call, "b")) == (["Make other.md"], ["Make one.md"])
    for vault in "ab":
        assert call(vault, "undo", "--yes")[0] == 0
        assert call(vault, "doctor")[0] == 0


def test_an_id_that_a_sync_has_replaced_changes_nothing(
    work: Work, call: Call, tmp_path: Path
) -> None:
    work("a", "one.md")
    (tmp_path / "a/.obsidian-agent/vault.json").write_text(
        '{"id": "00112233445566778899aabbccddeeff"}'
    )
    assert goals(call, "a") == ["Make one.md"]
    work("a", "two.md")
    assert goals(call, "a") == ["Make two.md", "Make one.md"]
    (tmp_path / "a").rename(tmp_path / "b")
    assert call("b", "doctor", "--adopt")[0] == 0
    assert goals(call, "b") == ["Make two.md", "Make one.md"]


@pytest.mark.parametrize(
    "content", [b"", b"{", b'{"id": 7}', b'{"id": "../../etc"}', b"[]", bytes(5000)]
)
def test_an_id_that_cannot_be_read_is_none(
    work: Work, call: Call, tmp_path: Path, content: bytes
) -> None:
    work("a", "one.md")
    (tmp_path / "a/.obsidian-agent/vault.json").write_bytes(content)
    assert goals(call, "a") == ["Make one.md"]
    work("a", "two.md")
    assert len(identity(tmp_path / "a")) == 32


def test_where_no_id_can_be_made_the_run_goes_on(work: Work, call: Call, tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "a/.obsidian-agent").symlink_to(tmp_path / "elsewhere")
    work("a", "one.md")
    assert goals(call, "a") == ["Make one.md"]
    assert os.listdir(tmp_path / "elsewhere") == []


def test_undo_in_the_old_place_still_works_when_nothing_moved(work: Work, tmp_path: Path) -> None:
    work("a", "one.md")
    with (
        VaultStore.open(tmp_path / "a") as store,
        Journal.open(tmp_path / "state", store) as journal,
    ):
        undo(journal, store)
    assert picture(tmp_path / "a") == {}
