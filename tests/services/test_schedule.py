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
    assert not is_installed(one)


def test_a_path_of_two_lines_is_refused() -> None:
    with pytest.raises(ConfigError, match="cannot stand in a timer"):
        timer("/home/ada/Notes\n* * * * * true", [], 10, platform="linux")


def crontab(folder: Path, monkeypatch: pytest.MonkeyPatch, listing: str) -> Path:
    """Put a `crontab` on the path that lists as given and stores what it is handed."""
    (folder / "bin").mkdir()
    program, table = folder / "bin" / "crontab", folder / "table"
    program.write_text(f'#!/bin/sh\nif [ "$1" = - ]; then cat > "{table}"; else {listing}; fi\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder / 'bin'}:/usr/bin:/bin")
    return table


@pytest.mark.parametrize(
    "no_table",
    ["echo no crontab for ada", "echo \"crontab: can't open 'ada': No such file or directory\""],
)
def test_cron_gets_a_line_and_loses_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, no_table: str
) -> None:
    table = tmp_path / "table"
    crontab(tmp_path, monkeypatch, f'[ -e "{table}" ] && cat "{table}" || ({no_table} >&2; exit 1)')
    one = timer(VAULT, [], 15, platform="linux", has_systemd=False)
    install(one)
    table.write_text("0 5 * * * mine\n" + table.read_text())
    install(one)
    assert (is_installed(one), len(table.read_text().splitlines())) == (True, 2)
    remove(one)
    assert (is_installed(one), table.read_text()) == (False, "0 5 * * * mine\n")


def test_a_crontab_that_cannot_be_read_is_not_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = crontab(tmp_path, monkeypatch, "echo you are not allowed >&2; exit 1")
    one = timer(VAULT, [], 15, platform="linux", has_systemd=False)
    with pytest.raises(ConfigError, match="not allowed"):
        install(one)
    assert not table.exists()
