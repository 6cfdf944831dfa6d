"""Without a vault on the command line, the app asks for one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from obsidian_agent import state_files
from obsidian_agent.cli import app
from obsidian_agent.cli.parser import UsageError


@pytest.fixture
def answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Set what the user answers, in a terminal outside of any vault."""
    answers = {"text": ""}
    monkeypatch.setattr(app, "on_terminal", lambda stream: True)
    monkeypatch.setattr(app, "ask", lambda question: answers["text"])
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.chdir(tmp_path)
    return answers


def register(tmp_path: Path) -> Path:
    """Let Obsidian know a vault."""
    vault = tmp_path / "Garden"
    vault.mkdir()
    known = tmp_path / "config" / "obsidian" / "obsidian.json"
    known.parent.mkdir(parents=True)
    known.write_text(json.dumps({"vaults": {"a" * 16: {"path": str(vault), "ts": 1}}}))
    return vault


def test_a_vault_of_obsidian_by_its_number(
    tmp_path: Path, answer: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    vault = register(tmp_path)
    answer["text"] = "1"
    assert app._choose() == str(vault)
    assert "1  Garden" in capsys.readouterr().out


def test_any_folder_with_and_without_vaults_of_obsidian(
    tmp_path: Path, answer: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "Own notes").mkdir()
    answer["text"] = "~/Own notes"
    assert app._choose() == "~/Own notes"
    assert "Obsidian has no vault on this computer" in capsys.readouterr().out
    register(tmp_path)
    assert app._choose() == "~/Own notes"


@pytest.mark.parametrize("text", ["", "2", "Nowhere"])
def test_anything_else_is_no_vault(text: str, tmp_path: Path, answer: dict[str, str]) -> None:
    register(tmp_path)
    answer["text"] = text
    with pytest.raises(UsageError, match="No vault was chosen"):
        app._choose()


def test_the_folder_of_a_vault_is_that_vault(tmp_path: Path, answer: dict[str, str]) -> None:
    register(tmp_path)
    (tmp_path / ".obsidian").mkdir()
    assert app._choose() is None


def test_the_sample_vault_is_created_once(
    tmp_path: Path,
    answer: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(state_files, "sample_vault_folder", lambda: tmp_path / "Sample vault")
    answer["text"] = "s"
    chosen = Path(app._choose() or "")
    assert (chosen / "Projects" / "Garden.md").is_file()
    assert f"Created in {chosen}" in capsys.readouterr().out
    (chosen / "Home.md").unlink()
    register(tmp_path)
    assert app._choose() == str(chosen)
    assert "Created" not in capsys.readouterr().out
    assert not (chosen / "Home.md").exists()
