"""The timer for rules on each system: what is written, and that it comes off again."""

from __future__ import annotations

import plistlib
import shlex
from pathlib import Path

import pytest

from obsidian_agent.errors import ConfigError
from obsidian_agent.services.schedule import Timer, install, is_installed, remove, timer

VAULT = '/home/ada/My "notes" 100% $HOME'


def test_systemd_quotes_the_path_and_catches_up(tmp_path: Path) -> None:
    one = timer(VAULT, ["--config", "/c"], 10, platform="linux", home=tmp_path, has_systemd=True)
    (service, text), (_, schedule) = one.files
    assert service.parent == tmp_path / ".config/systemd/user"
    assert '"/home/ada/My \\"notes\\" 100%% $$HOME" "--config" "/c"' in text
    assert "Persistent=true" in schedule
    assert "OnCalendar=*:0/10" in schedule


def test_launchd_gets_the_words_unchanged(tmp_path: Path) -> None:
    one = timer(VAULT, [], 5, platform="darwin", home=tmp_path)
    document = plistlib.loads(one.files[0][1].encode())
    assert document["ProgramArguments"][-1] == VAULT
    assert document["StartInterval"] == 300


def test_cron_escapes_percent_signs(tmp_path: Path) -> None:
    one = timer(VAULT, [], 15, platform="linux", home=tmp_path, has_systemd=False)
    assert one.line.startswith("*/15 * * * * ")
    command = one.line.removeprefix("*/15 * * * * ").partition(" >/dev/null")[0]
    assert shlex.split(command.replace("\\%", "%"))[-1] == VAULT


def test_windows_is_told_what_to_run() -> None:
    with pytest.raises(ConfigError) as error:
        timer("C:\\Notes", [], 10, platform="win32")
    assert "rule run" in str(error.value.hint)


def test_files_are_written_and_removed(tmp_path: Path) -> None:
    file = tmp_path / "units" / "x.timer"
    one = Timer(kind="systemd", files=((file, "text"),), start=(("true",),), stop=(("true",),))
    assert not is_installed(one)
    install(one)
    assert (is_installed(one), file.read_text()) == (True, "text")
    remove(one)
    remove(one)
    assert not is_installed(one)


def test_a_system_that_refuses_is_an_error(tmp_path: Path) -> None:
    one = Timer(kind="systemd", files=((tmp_path / "x", ""),), start=(("false",),))
    with pytest.raises(ConfigError, match="exit status 1"):
        install(one)
