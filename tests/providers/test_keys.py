"""Keys: where they come from, where they are kept, and that nobody sees them."""

from __future__ import annotations

import os
import stat
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
    """One that nobody unlocks."""

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
def test_without_a_keyring_that_works_it_goes_into_a_file_for_the_person_alone(ring: Ring | None, tmp_path: Path) -> None:
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
    assert (secret(store.find(OPENAI)), store.source(OPENAI)) == ("sk-fromtheenvironment", "environment")


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
    assert "verysecret" not in repr(caught.value) + str(caught.value.problem()) + str(caught.value.__cause__)


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
