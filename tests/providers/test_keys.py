"""Keys: where they come from, where they are kept, and that they are never displayed."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from obsidian_agent.errors import ConfigError
from obsidian_agent.providers.keys import KEY_FILE, KeyStore, system_ring
from obsidian_agent.providers.registry import find_vendor

KEY = 'sk-verysecretkey"x\\y'
OPENAI = find_vendor("openai")


class Ring:
    """A keyring as the systems have them."""

    def __init__(self) -> None:
        self.kept: dict[tuple[str, str], str] = {}

    def get_password(self, service: str, username: str) -> str | None:
        return self.kept.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        self.kept[service, username] = password

    def delete_password(self, service: str, username: str) -> None:
        del self.kept[service, username]


class Forgetful(Ring):
    """One that takes everything and keeps nothing."""

    def set_password(self, service: str, username: str, password: str) -> None:
        pass


class Locked(Ring):
    """A keyring that stays locked."""

    def get_password(self, service: str, username: str) -> str | None:
        raise RuntimeError("locked")


@pytest.fixture(autouse=True)
def _no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in OPENAI.key_variables:
        monkeypatch.delenv(name, raising=False)


def keys(tmp_path: Path, ring: Ring | None = None) -> KeyStore:
    return KeyStore(tmp_path / "config" / KEY_FILE, lambda: ring)


def secret(found: SecretStr | None) -> str | None:
    return found.get_secret_value() if found is not None else None


def test_a_key_goes_into_the_keyring_and_nowhere_else(tmp_path: Path) -> None:
    store = keys(tmp_path, Ring())
    assert store.find(OPENAI) is None
    assert store.save(OPENAI, SecretStr(KEY)) == "keyring"
    assert (secret(store.find(OPENAI)), store.source(OPENAI)) == (KEY, "keyring")
    assert not store.file.exists()
    store.forget(OPENAI)
    assert store.find(OPENAI) is None


@pytest.mark.parametrize("ring", [None, Forgetful(), Locked()], ids=["none", "forgetful", "locked"])
def test_without_a_keyring_that_works_it_goes_into_a_file_for_the_person_alone(
    ring: Ring | None, tmp_path: Path
) -> None:
    store = keys(tmp_path, ring)
    assert store.save(OPENAI, SecretStr(KEY)) == "file"
    assert stat.S_IMODE(store.file.stat().st_mode) == 0o600
    assert (secret(store.find(OPENAI)), store.source(OPENAI)) == (KEY, "file")
    store.save(find_vendor("gemini"), SecretStr("AIza-other"))
    store.forget(OPENAI)
    assert store.find(OPENAI) is None
    assert secret(store.find(find_vendor("gemini"))) == "AIza-other"
    assert [each.name for each in store.file.parent.iterdir()] == [KEY_FILE]


def test_a_key_that_moves_into_the_keyring_leaves_the_file(tmp_path: Path) -> None:
    keys(tmp_path).save(OPENAI, SecretStr(KEY))
    store = keys(tmp_path, Ring())
    assert store.save(OPENAI, SecretStr("sk-newnewnew")) == "keyring"
    assert "sk-" not in store.file.read_text(encoding="utf-8")


def test_the_environment_is_asked_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = keys(tmp_path, Ring())
    store.save(OPENAI, SecretStr(KEY))
    monkeypatch.setenv("OPENAI_API_KEY", " sk-fromtheenvironment ")
    assert (secret(store.find(OPENAI)), store.source(OPENAI)) == (
        "sk-fromtheenvironment",
        "environment",
    )


@pytest.mark.skipif(os.name == "nt", reason="modes")
@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604])
def test_a_file_that_others_can_read_is_not_used(mode: int, tmp_path: Path) -> None:
    store = keys(tmp_path)
    store.save(OPENAI, SecretStr(KEY))
    store.file.chmod(mode)
    with pytest.raises(ConfigError) as caught:
        store.find(OPENAI)
    assert caught.value.code == "KEY_FILE_OPEN"
    assert KEY not in str(caught.value.problem())


def test_a_damaged_file_is_told_without_what_is_in_it(tmp_path: Path) -> None:
    store = keys(tmp_path)
    store.save(OPENAI, SecretStr(KEY))
    store.file.write_text("openai = sk-verysecretkey", encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        store.find(OPENAI)
    assert "verysecret" not in repr(caught.value) + str(caught.value.problem()) + str(
        caught.value.__cause__
    )


@pytest.mark.parametrize("bad", ["", "   ", "two\nlines", "\x1b[31m"])
def test_what_is_no_key_is_not_kept(bad: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError):
        keys(tmp_path).save(OPENAI, SecretStr(bad))


def test_stand_ins_for_keyrings_do_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    keyring: Any = pytest.importorskip("keyring")
    from keyring.backends import fail, null
    from keyring.backends.chainer import ChainerBackend

    before = keyring.get_keyring()
    try:
        for stand_in in (fail.Keyring(), null.Keyring(), ChainerBackend()):
            keyring.set_keyring(stand_in)
            assert system_ring() is None
    finally:
        keyring.set_keyring(before)


def test_a_key_is_never_in_a_repr(tmp_path: Path) -> None:
    store = keys(tmp_path)
    store.save(OPENAI, SecretStr(KEY))
    assert "secretkey" not in repr(store) + repr(store.find(OPENAI))


real_keyring = pytest.mark.skipif(
    not (shutil.which("dbus-run-session") and shutil.which("gnome-keyring-daemon")),
    reason="no gnome-keyring and no dbus-run-session here",
)

_PROGRAM = """
import json, subprocess, sys, time
from pathlib import Path
from pydantic import SecretStr
from obsidian_agent.providers.keys import KeyStore
from obsidian_agent.providers.registry import find_vendor

unlocked, file = sys.argv[1] == "unlocked", Path(sys.argv[2])
if unlocked:
    daemon = ["gnome-keyring-daemon", "--unlock", "--components=secrets"]
    subprocess.run(daemon, input=b"password", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=60)
store, vendor = KeyStore(file), find_vendor("openai")
saved = store.save(vendor, SecretStr("sk-first"))
source, found = store.source(vendor), store.find(vendor)
store.save(vendor, SecretStr("sk-second"))
again = store.find(vendor)
store.forget(vendor)
document = [saved, source, found.get_secret_value(), again.get_secret_value(), store.source(vendor)]
print(json.dumps({"seen": document, "in_file": "sk-" in (file.read_text() if file.exists() else "")}))
"""


def play(tmp_path: Path, state: str) -> dict[str, object]:
    bare = {
        name: value
        for name, value in os.environ.items()
        if not name.endswith("_API_KEY") and name not in ("DISPLAY", "WAYLAND_DISPLAY")
    }
    environment = bare | {
        "HOME": str(tmp_path),
        "XDG_DATA_HOME": str(tmp_path / "data"),
        "XDG_RUNTIME_DIR": str(tmp_path),
    }
    command = [
        "dbus-run-session",
        "--",
        sys.executable,
        "-c",
        _PROGRAM,
        state,
        str(tmp_path / "keys.toml"),
    ]
    done = subprocess.run(command, env=environment, capture_output=True, timeout=60, check=False)
    told: dict[str, object] = (
        json.loads(done.stdout.splitlines()[-1])
        if done.stdout.strip()
        else pytest.skip(f"no bus: {done.stderr[-300:]!r}")
    )
    return told


@real_keyring
def test_keys_lie_in_the_systems_keyring(tmp_path: Path) -> None:
    assert play(tmp_path, "unlocked") == {
        "seen": ["keyring", "keyring", "sk-first", "sk-second", None],
        "in_file": False,
    }


@real_keyring
def test_a_keyring_that_nobody_can_unlock_is_no_place_for_keys(tmp_path: Path) -> None:
    assert play(tmp_path, "locked")["seen"] == ["file", "file", "sk-first", "sk-second", None]
