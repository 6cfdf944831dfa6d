from __future__ import annotations

import json
import logging
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from obsidian_agent import log
from obsidian_agent.cli.main import main
from obsidian_agent.log import redacted, report


@pytest.fixture(autouse=True)
def logger() -> Iterator[logging.Logger]:
    """Return the program's logger, with the handlers that it had afterwards."""
    logger = logging.getLogger("obsidian_agent")
    before = logger.handlers[:]
    yield logger
    for handler in logger.handlers[:]:
        if handler not in before:
            logger.removeHandler(handler)
            handler.close()


def test_the_log_is_private_redacted_and_rotated(
    tmp_path: Path, logger: logging.Logger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log, "MAX_BYTES", 2000)
    folder = tmp_path / "state" / "log"
    log.start(folder)
    log.start(folder)
    assert not folder.exists(), "nothing is made before something went wrong"
    for number in range(100):
        logger.getChild("tui").warning(
            "no %s: cannot open '/home/me/Vault/Secret.md' \x1b[8m with sk-abcdefghijkl", number
        )
    lines = log.lines(log.file_in(folder))
    numbers = [int(line.partition(" no ")[2].partition(":")[0]) for line in lines]
    assert numbers == list(range(numbers[0], 100)), "the newest, each once, in order"
    assert numbers[0] > 0
    everything = "".join(file.read_text() for file in folder.iterdir())
    assert not any(part in everything for part in ("Secret", "home", "sk-abc", "\x1b"))
    assert {stat.S_IMODE(os.stat(file).st_mode) for file in folder.iterdir()} == {0o600}
    assert all(file.stat().st_size <= 2000 for file in folder.iterdir())
    assert len(list(folder.iterdir())) == 1 + log.BACKUPS


def test_a_command_that_fails_unexpectedly_says_where_in_the_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(options: object) -> None:
        raise ZeroDivisionError("in /home/me/Vault/Secret.md")

    place = ["--state-dir", str(tmp_path / "s"), "--config", str(tmp_path / "none"), "--json"]
    monkeypatch.setattr("obsidian_agent.cli.history.open_session", broken)
    assert main(["history", *place]) == 1
    assert (
        "obsidian-agent history` for what was done and `obsidian-agent log` for its cause"
        in capsys.readouterr().out
    )
    assert main(["log", *place]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["file"] == str(tmp_path / "s" / "log" / "obsidian-agent.log")
    assert any("test_log.py" in line and "in broken" in line for line in found["lines"])
    assert "Secret" not in json.dumps(found)


def test_a_log_that_cannot_be_written_is_nobodys_business(
    tmp_path: Path, logger: logging.Logger, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("not a folder")
    log.start(tmp_path / "file")
    logger.error("lost")
    assert capsys.readouterr().err == ""


def test_paths_quotes_and_keys_are_left_out() -> None:
    text = redacted(
        "cannot read /home/me/Vault/Diary.md or C:\\Users\\me\\x with 'secret words' and sk-abcdefgh12 Bearer abc.def"
    )
    for part in ("home", "Diary", "Users", "secret words", "sk-abc", "abc.def"):
        assert part not in text


def test_the_report_names_the_places_in_the_code_and_the_cause() -> None:
    try:
        try:
            raise ValueError("inner 'text'")
        except ValueError as inner:
            raise RuntimeError("outer") from inner
    except RuntimeError as error:
        text = report(error)
    assert "builtins.RuntimeError: outer" in text
    assert "builtins.ValueError: inner <text>" in text
    assert "test_log.py" in text
    assert str(__file__).rpartition("/")[0] not in text
