from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from obsidian_agent.errors import JournalError
from obsidian_agent.journal.lock import is_locked, vault_lock
from obsidian_agent.journal.writer import Journal
from support import MakeVault

_HOLDER = """
import sys
from pathlib import Path
from obsidian_agent.journal.lock import vault_lock
import os
with vault_lock(Path(sys.argv[1]), os.open(sys.argv[2], os.O_RDONLY)):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def vault(make_vault: MakeVault) -> int:
    return make_vault({}).root_fd


def holder(file: Path, vault: Path) -> subprocess.Popen[str]:
    """Another process that holds the lock until it is told or killed."""
    process = subprocess.Popen(
        [sys.executable, "-c", _HOLDER, file, vault],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def test_the_other_process_is_named_and_its_death_frees_the_lock(
    tmp_path: Path, vault: int
) -> None:
    file = tmp_path / "lock"
    with holder(file, tmp_path / "vault") as other:
        assert is_locked(file)
        with (
            pytest.raises(JournalError, match=f"process {other.pid}") as raised,
            vault_lock(file, vault),
        ):
            pass
        assert (raised.value.code, raised.value.retryable) == ("VAULT_BUSY", True)
        other.kill()
        other.wait()
        assert not is_locked(file)
        with vault_lock(file, vault):
            assert is_locked(file)


def test_two_threads_or_screens_of_one_process_exclude_each_other(
    tmp_path: Path, vault: int
) -> None:
    with (
        vault_lock(tmp_path / "lock", vault),
        pytest.raises(JournalError, match=f"process {os.getpid()}"),
        vault_lock(tmp_path / "lock", vault),
    ):
        pass
    assert not is_locked(tmp_path / "lock")


def test_different_state_folders_exclude_each_other_too(tmp_path: Path, vault: int) -> None:
    with holder(tmp_path / "one", tmp_path / "vault") as other:
        with (
            pytest.raises(JournalError, match="another process"),
            vault_lock(tmp_path / "two", vault),
        ):
            pass
        other.kill()


def test_nothing_is_written_to_the_vault(tmp_path: Path, vault: int) -> None:
    with vault_lock(tmp_path / "lock", vault):
        assert os.listdir(tmp_path / "vault") == []


def test_a_state_folder_that_cannot_be_made(make_vault: MakeVault, tmp_path: Path) -> None:
    (tmp_path / "state").write_bytes(b"a file")
    with (
        Journal.open(tmp_path / "state", make_vault({})) as journal,
        pytest.raises(JournalError, match="cannot be used"),
        journal.lock(),
    ):
        pass


def test_a_disk_that_fails_when_the_lock_is_let_go_is_nobodys_business(
    tmp_path: Path, vault: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Work under the lock is complete; the lock ends with its handle."""
    real, file = os.close, tmp_path / "lock"

    def close(fd: int) -> None:
        real(fd)
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    with vault_lock(file, vault):
        monkeypatch.setattr(os, "close", close)
        assert is_locked(file)
    monkeypatch.undo()
    assert not is_locked(file)
