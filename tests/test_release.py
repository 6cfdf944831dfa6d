"""The built wheel and sdist: contents and metadata, and the wheel in an empty environment."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tarfile
import venv
import zipfile
from collections.abc import Mapping
from email.message import Message
from email.parser import Parser
from pathlib import Path
from typing import Any, NamedTuple

import pydantic
import pytest

from obsidian_agent import __version__
from obsidian_agent.cli.exits import Exit
from obsidian_agent.vault.filesystem.walk import HAS_HANDLES

ROOT = Path(__file__).parents[1]
COMPANION = "obsidian_agent/obsidian/companion/"
NAME = f"obsidian_agent-{__version__}"


class Release(NamedTuple):
    """The built files, and the names in them."""

    wheel: Path
    sdist: Path

    def in_wheel(self) -> set[str]:
        with zipfile.ZipFile(self.wheel) as archive:
            return set(archive.namelist())

    def in_sdist(self) -> set[str]:
        with tarfile.open(self.sdist) as archive:
            return {name.removeprefix(f"{NAME}/") for name in archive.getnames()}

    def metadata(self) -> Message:
        with zipfile.ZipFile(self.wheel) as archive:
            text = archive.read(f"{NAME}.dist-info/METADATA").decode("utf-8")
        return Parser().parsestr(text)


def build(source: Path, into: Path, *options: str) -> None:
    command = [sys.executable, "-m", "hatchling", "build", "--directory", str(into), *options]
    subprocess.run(command, cwd=source, check=True, capture_output=True)


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Release:
    folder = tmp_path_factory.mktemp("dist")
    build(ROOT, folder)
    (wheel,), (sdist,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    return Release(wheel, sdist)


def package() -> set[str]:
    """Return the files of the package that belong in a wheel."""
    files = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "obsidian_agent").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    shipped = {f"{COMPANION}main.js", f"{COMPANION}manifest.json"}
    return {name for name in files if not name.startswith(COMPANION)} | shipped


def test_the_wheel_contains_the_package_and_nothing_else(release: Release) -> None:
    parts = ("METADATA", "RECORD", "WHEEL", "entry_points.txt", "licenses/LICENSE")
    assert release.in_wheel() == package() | {f"{NAME}.dist-info/{part}" for part in parts}


def test_the_sdist_contains_what_the_wheel_is_built_from(release: Release) -> None:
    names = release.in_sdist()
    pages = {f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md")}
    assert names >= package() | pages | {f"{COMPANION}src/main.ts"}
    assert {name.partition("/")[0] for name in names} == {
        ".gitignore",
        "CHANGELOG.md",
        "LICENSE",
        "PKG-INFO",
        "README.md",
        "SECURITY.md",
        "docs",
        "obsidian_agent",
        "pyproject.toml",
    }
    assert not [name for name in names if "node_modules" in name or "__pycache__" in name]


def test_a_wheel_built_from_the_sdist_is_the_same(release: Release, tmp_path: Path) -> None:
    with tarfile.open(release.sdist) as archive:
        archive.extractall(tmp_path, filter="data")
    build(tmp_path / NAME, tmp_path, "--target", "wheel")
    assert Release(tmp_path / release.wheel.name, release.sdist).in_wheel() == release.in_wheel()


def test_the_metadata_is_complete(release: Release) -> None:
    metadata = release.metadata()
    assert metadata["Name"] == "obsidian-agent"
    assert metadata["Version"] == __version__
    assert metadata["License-Expression"] == "MIT"
    assert metadata["Requires-Python"] == ">=3.11"
    assert metadata["Author"] in (ROOT / "LICENSE").read_text("utf-8")
    assert metadata["Keywords"]
    assert "Typing :: Typed" in metadata.get_all("Classifier", [])
    assert metadata["Description-Content-Type"] == "text/markdown"
    assert metadata.get_payload() == (ROOT / "README.md").read_text("utf-8")
    assert f"## {__version__}\n" in (ROOT / "CHANGELOG.md").read_text("utf-8")


def test_a_dependency_whose_private_parts_are_patched_is_bounded(release: Release) -> None:
    required = release.metadata().get_all("Requires-Dist", [])
    assert "openai<3,>=2" in required
    assert [name for name in required if name.startswith(("litellm==", "textual=="))]


class Installed(NamedTuple):
    """The wheel in an empty environment, with a copy of the sample vault."""

    program: Path
    folder: Path

    @property
    def inbox(self) -> Path:
        return self.folder / "vault" / "Inbox.md"

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        here = ("--vault", "vault", "--state-dir", "state", "--config", "config.toml")
        environment = {name: os.environ[name] for name in KEPT if name in os.environ}
        return subprocess.run(
            [self.program, *arguments, *here],
            cwd=self.folder,
            env={**environment, "HOME": str(self.folder), "PYTHONUTF8": "1"},
            capture_output=True,
            text=True,
            encoding="utf-8",
            check=False,
        )

    def document(self, *arguments: str) -> Mapping[str, Any]:
        done = self.run(*arguments, "--json")
        assert done.returncode == Exit.DONE, done.stdout + done.stderr
        document: Mapping[str, Any] = json.loads(done.stdout)
        return document


KEPT = ("PATH", "SYSTEMROOT", "TEMP", "TMPDIR")


@pytest.fixture(scope="module")
def program(release: Release, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install the wheel alone; its dependencies come from the environment of the tests."""
    environment = tmp_path_factory.mktemp("environment")
    venv.create(environment, symlinks=os.name != "nt")
    programs = environment / ("Scripts" if os.name == "nt" else "bin")
    pip = [sys.executable, "-m", "pip", "--python", str(environment), "install", "--quiet"]
    offline = ["--no-index", "--no-deps", "--no-compile", "--disable-pip-version-check"]
    subprocess.run([*pip, *offline, str(release.wheel)], check=True)
    (own,) = environment.rglob("site-packages")
    dependencies = Path(pydantic.__file__).parents[1]
    (own / "dependencies.pth").write_text(f"{dependencies}\n", "utf-8")
    return programs / "obsidian-agent"


@pytest.fixture
def installed(program: Path, tmp_path: Path) -> Installed:
    shutil.copytree(ROOT / "fixtures" / "vault", tmp_path / "vault")
    return Installed(program, tmp_path)


def test_the_installed_wheel_is_what_runs(installed: Installed) -> None:
    ask = "import obsidian_agent, importlib.util as u; print(u.find_spec('bench'), obsidian_agent)"
    python = installed.program.with_name("python")
    done = subprocess.run([python, "-c", ask], cwd=installed.folder, capture_output=True, text=True)
    assert done.stdout.startswith("None ")
    assert str(installed.program.parents[1]) in done.stdout


def test_the_installed_wheel_previews_and_checks_itself(installed: Installed) -> None:
    before = installed.inbox.read_bytes()
    values = ("--param", "notes=Inbox", "--param", "text=Call Ada")
    done = installed.run("recipe", "run", "add-text", *values, "--dry-run")
    assert done.returncode == Exit.DONE, done.stderr
    assert "+- Call Ada" in done.stdout
    assert installed.inbox.read_bytes() == before
    assert installed.document("doctor")


@pytest.mark.skipif(not HAS_HANDLES, reason="runs need directory handles, which Windows lacks")
def test_the_installed_wheel_runs_and_undoes(installed: Installed) -> None:
    before = installed.inbox.read_bytes()
    done = installed.run("do", "append 'Call Ada' to Inbox", "--offline", "--yes")
    assert done.returncode == Exit.DONE, done.stdout + done.stderr
    assert installed.inbox.read_bytes().endswith(b"Call Ada\n")
    assert len(installed.document("history")["runs"]) == 1
    undone = installed.run("undo", "--yes")
    assert undone.returncode == Exit.DONE, undone.stdout + undone.stderr
    assert installed.inbox.read_bytes() == before


@pytest.mark.skipif(not HAS_HANDLES, reason="the plugin's folder is written by handles")
def test_the_installed_wheel_has_the_plugin_for_obsidian(installed: Installed) -> None:
    (installed.folder / "vault" / ".obsidian").mkdir(exist_ok=True)
    done = installed.run("companion", "install", "--yes")
    assert done.returncode == Exit.DONE, done.stdout + done.stderr
    plugin = installed.folder / "vault" / ".obsidian" / "plugins" / "agent-companion"
    assert (plugin / "main.js").read_bytes() == (ROOT / COMPANION / "main.js").read_bytes()
