"""The user's state on disk: private, and written whole or not at all."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from obsidian_agent.state_files import append_json, json_lines, replace_file


@pytest.mark.skipif(os.name != "posix", reason="modes are POSIX's")
@pytest.mark.parametrize(
    "write", [lambda file: replace_file(file, b"{}\n"), lambda file: append_json(file, [{}])]
)
def test_nobody_else_may_read_it(tmp_path: Path, write: Callable[[Path], None]) -> None:
    file = tmp_path / "state" / "deep" / "file"
    write(file)
    assert file.read_bytes() == b"{}\n"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700


def test_a_file_that_cannot_be_replaced_stays_as_it_was_and_nothing_is_left_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "file"
    replace_file(file, b"old")

    def fail(*_: object) -> None:
        raise OSError("no")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="no"):
        replace_file(file, b"new")
    assert file.read_bytes() == b"old"
    assert [each.name for each in tmp_path.iterdir()] == ["file"]


def test_lines_come_back_in_order_without_the_one_that_was_cut_off(tmp_path: Path) -> None:
    file = tmp_path / "lines"
    assert json_lines(file) == []
    append_json(file, [{"a": "ä\ud800"}, {"b": 2}], durable=True)
    with file.open("ab") as stream:
        stream.write(b'{"c": ')
    assert json_lines(file) == [{"a": "ä\ud800"}, {"b": 2}], "half a character goes through too"


def test_an_entry_after_a_truncated_line_is_read(tmp_path: Path) -> None:
    file = tmp_path / "lines"
    file.write_bytes(b'{"a": 1}\n{"b": ')
    append_json(file, [{"c": 3}])
    assert json_lines(file) == [{"a": 1}, {"c": 3}]


def test_what_is_added_does_not_follow_a_link(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="[Ss]ymbolic|loop|levels"):
        append_json(tmp_path / "link", [{}])
    assert not (tmp_path / "elsewhere").exists()
