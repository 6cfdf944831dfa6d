"""The shipped plugin: main.js is built from main.ts and harmless, the manifest is valid."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from companion.window import PLUGIN

BUILT = (PLUGIN / "main.js").read_text("utf-8")
SOURCE = (PLUGIN / "src" / "main.ts").read_text("utf-8")


def test_main_js_and_main_ts_are_the_pair_that_was_built_together() -> None:
    recorded = {
        name: told
        for told, name in map(str.split, (PLUGIN / "main.sha256").read_text("ascii").splitlines())
    }
    now = {
        name: hashlib.sha256((PLUGIN / name).read_bytes()).hexdigest()
        for name in ("src/main.ts", "main.js")
    }
    assert now == recorded, "run `npm run build` in obsidian_agent/obsidian/companion"


def test_main_js_is_what_the_compiler_makes_of_main_ts(tmp_path: Path) -> None:
    compiler = PLUGIN / "node_modules" / "typescript" / "lib" / "tsc.js"
    node = shutil.which("node")
    if node is None or not compiler.exists():
        pytest.skip("the TypeScript compiler is not here; `make test-companion` installs it")
    subprocess.run([node, compiler, "--project", PLUGIN, "--outDir", tmp_path], check=True)
    assert (tmp_path / "main.js").read_text("utf-8") == BUILT


def test_the_source_can_be_read_at_one_sitting() -> None:
    assert len(SOURCE.splitlines()) <= 250
    assert max(map(len, SOURCE.splitlines())) <= 140


def test_it_asks_for_the_app_and_its_editor_and_for_nothing_else() -> None:
    asked = set(re.findall(r"require\(([^)]*)\)", BUILT))
    assert asked == {
        '"obsidian"',
        '"@codemirror/commands"',
        '"@codemirror/state"',
        '"@codemirror/view"',
    }
    beyond = r"\b(eval|Function|import|fetch|requestUrl|XMLHttpRequest|WebSocket|EventSource|Worker|Notice|process|electron|globalThis)\b|innerHTML|https?:"
    assert re.search(beyond, re.sub(r"//.*|/\*.*?\*/", "", BUILT)) is None


def test_the_manifest_is_one_that_obsidian_takes() -> None:
    manifest = json.loads((PLUGIN / "manifest.json").read_text("utf-8"))
    assert re.fullmatch(r"[a-z]+(-[a-z]+)*", manifest["id"])
    assert not re.search(
        "obsidian|plugin",
        f"{manifest['id']} {manifest['name']} {manifest['description']}",
        re.IGNORECASE,
    )
    assert re.fullmatch(r"\d+\.\d+\.\d+", manifest["version"])
    assert manifest["isDesktopOnly"] is True
    assert re.fullmatch(r"[A-Z].{9,248}\.", manifest["description"])


def test_the_packages_are_pinned_and_no_registry_is_named() -> None:
    packages = json.loads((PLUGIN / "package.json").read_text("utf-8"))["devDependencies"]
    assert all(re.fullmatch(r"\d+\.\d+\.\d+", version) for version in packages.values())
    lock = json.loads((PLUGIN / "package-lock.json").read_text("utf-8"))["packages"]
    assert all(
        "resolved" not in entry and ("integrity" in entry or not name)
        for name, entry in lock.items()
    )
