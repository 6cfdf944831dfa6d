"""Keys in a real Secret Service: GNOME's keyring on a message bus of its own. Skipped where there is none."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(
    not (shutil.which("dbus-run-session") and shutil.which("gnome-keyring-daemon")), reason="no gnome-keyring and no dbus-run-session here"
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
        name: value for name, value in os.environ.items() if not name.endswith("_API_KEY") and name not in ("DISPLAY", "WAYLAND_DISPLAY")
    }
    environment = bare | {"HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path / "data"), "XDG_RUNTIME_DIR": str(tmp_path)}
    command = ["dbus-run-session", "--", sys.executable, "-c", _PROGRAM, state, str(tmp_path / "keys.toml")]
    done = subprocess.run(command, env=environment, capture_output=True, timeout=60, check=False)
    told: dict[str, object] = (
        json.loads(done.stdout.splitlines()[-1]) if done.stdout.strip() else pytest.skip(f"no bus: {done.stderr[-300:]!r}")
    )
    return told


def test_keys_lie_in_the_systems_keyring(tmp_path: Path) -> None:
    assert play(tmp_path, "unlocked") == {"seen": ["keyring", "keyring", "sk-first", "sk-second", None], "in_file": False}


def test_a_keyring_that_nobody_can_unlock_is_no_place_for_keys(tmp_path: Path) -> None:
    assert play(tmp_path, "locked")["seen"] == ["file", "file", "sk-first", "sk-second", None]
