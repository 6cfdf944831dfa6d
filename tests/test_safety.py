"""The promises of the README: every detail has its tests; those of no single package are here."""

from __future__ import annotations

import ast
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import obsidian_agent
from obsidian_agent.cli.main import main
from obsidian_agent.tools.registry import TOOLS
from obsidian_agent.vault.transaction.apply import Applier
from support import MakeVault, options_for

ROOT = Path(obsidian_agent.__file__).parents[1]
PACKAGE = Path(obsidian_agent.__file__).parent


# --- the table ---


def promises() -> list[str]:
    """Return the bold sentences of the README."""
    section = (ROOT / "README.md").read_text("utf-8").split("## Safety\n")[1].split("\n## ")[0]
    return re.findall(r"^- \*\*(.*?)\*\*", section, re.MULTILINE)


def table() -> dict[str, dict[str, list[str]]]:
    """Return the tests of every detail, by the sentence of the README that it belongs to."""
    page = (ROOT / "docs" / "safety.md").read_text("utf-8").split("\n## Known gaps")[0]
    sections = (section.partition("\n") for section in page.split("\n## ")[1:])
    return {
        title: {
            detail: re.findall(r"`([^`]+)`", tests)
            for detail, tests in re.findall(r"^\| (.*?) \| (`.*`) \|$", body, re.MULTILINE)
        }
        for title, _, body in sections
    }


def named_tests() -> list[str]:
    return sorted(
        {name for details in table().values() for tests in details.values() for name in tests}
    )


def test_every_promise_of_the_readme_has_details_and_every_detail_tests() -> None:
    assert len(promises()) == 7
    assert list(table()) == promises()
    assert all(table().values())
    assert all(tests for details in table().values() for tests in details.values())


@pytest.mark.parametrize("name", named_tests())
def test_every_test_that_is_named_exists(name: str) -> None:
    file, *path = name.split("::")
    body: list[ast.stmt] = ast.parse((ROOT / file).read_text("utf-8")).body
    for part in path:
        found = [
            each
            for each in body
            if isinstance(each, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
            and each.name == part
        ]
        assert len(found) == 1, part
        body = found[0].body
    assert path[-1].startswith("test_")


# --- who can reach what ---

REACHING = frozenset(
    [
        "os",
        "io",
        "pathlib",
        "shutil",
        "tempfile",
        "fileinput",
        "mmap",
        "ctypes",
        "subprocess",
        "multiprocessing",
        "pty",
        "socket",
        "ssl",
        "select",
        "asyncio",
        "urllib",
        "http",
        "httpx",
        "requests",
        "ftplib",
        "smtplib",
        "telnetlib",
        "socketserver",
        "webbrowser",
        "pickle",
        "marshal",
        "shelve",
        "runpy",
        "code",
        "codeop",
    ]
)
CALLS = frozenset({"open", "eval", "exec", "compile", "__import__", "breakpoint"})
HARMLESS = frozenset({"urllib.parse", "pathlib.PurePosixPath"})


def reached(file: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        match node:
            case ast.Import(names=names):
                yield from (name.name for name in names if name.name.partition(".")[0] in REACHING)
            case ast.ImportFrom(module=str(module), names=names, level=0) if (
                module.partition(".")[0] in REACHING
            ):
                yield from (f"{module}.{name.name}" for name in names if module not in HARMLESS)
            case ast.Call(func=ast.Name(id=name)) if name in CALLS:
                yield f"{name}()"


@pytest.mark.parametrize("package", ["tools", "plan", "offline"])
def test_who_plans_and_proposes_cannot_reach_a_file_a_program_or_the_network(package: str) -> None:
    files = list((PACKAGE / package).rglob("*.py"))
    assert len(files) > 10
    assert {f"{file.name}: {what}" for file in files for what in reached(file)} <= HARMLESS


def test_the_look_at_imports_sees_what_it_is_for(tmp_path: Path) -> None:
    file = tmp_path / "x.py"
    file.write_text(
        "import os\nfrom pathlib import Path\nimport httpx as h\nfrom urllib.parse import quote\nopen('x')\nimport socket\n"
    )
    assert sorted(reached(file)) == ["httpx", "open()", "os", "pathlib.Path", "socket"]


def test_there_is_no_tool_for_code_shell_or_network() -> None:
    assert {name.partition(".")[0] for name in TOOLS} <= {
        "vault",
        "editor",
        "workspace",
        "commands",
        "template",
        "util",
    }
    assert [
        name
        for name in TOOLS
        if re.search(
            r"shell|exec|\beval|script|http|fetch|\burl|download|web|process|spawn|python",
            name,
            re.I,
        )
    ] == []


# --- what a run reaches, seen from the interpreter ---

WATCHED = """
import sys, json
seen = []
def hook(event, arguments):
    if event in {events!r} or (event == "open" and isinstance(arguments[0], (str, bytes)) and (arguments[2] or 0) & 3):
        seen.append([event, str(arguments[0] if event != "socket.connect" else arguments[1])])
sys.addaudithook(hook)
from obsidian_agent.cli.main import main
code = main({arguments!r})
print(json.dumps({{"code": code, "seen": seen}}), file=sys.stderr)
"""
NETWORK = (
    "socket.connect",
    "socket.getaddrinfo",
    "socket.gethostbyname",
    "socket.sendto",
    "urllib.Request",
)


def watched(arguments: list[str], events: tuple[str, ...]) -> list[list[str]]:
    """Return the audit events of a command in its own process, and files opened for writing."""
    code = WATCHED.format(events=events, arguments=arguments)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    told = json.loads(done.stderr.splitlines()[-1])
    assert told["code"] == 0, done.stderr
    seen: list[list[str]] = told["seen"]
    return seen


@pytest.mark.parametrize(
    "command",
    [
        ["do", "append 'Call Ada' to Inbox", "--yes"],
        ["ask", "Which notes are tagged #done?"],
        ["macro", "list"],
        ["doctor"],
    ],
)
def test_without_a_model_nothing_is_connected_to(
    make_vault: MakeVault, tmp_path: Path, command: list[str]
) -> None:
    vault = make_vault({"Inbox.md": "one\n"}).real_path
    offline = ["--offline"] if command[0] in ("do", "ask") else []
    state = [
        *options_for(vault, tmp_path),
    ]
    assert [
        event for event, _ in watched([*command, *offline, *state], NETWORK) if event in NETWORK
    ] == []


def test_the_journal_is_on_the_disk_before_the_first_change_of_the_vault(
    make_vault: MakeVault, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The journal's folder before the first change suffices to finish the run, and to undo it."""
    before = {"a.md": b"one\n", "b.md": b"two\n"}
    vault, state, copy = Path(make_vault(before).real_path), tmp_path / "state", tmp_path / "copy"
    carry_out = Applier.carry_out

    def copying(self: Applier, *arguments: Any) -> bool:
        if not copy.exists():
            assert files(vault) == before
            shutil.copytree(state, copy)
        return carry_out(self, *arguments)

    def call(*arguments: str, state: Path) -> int:
        return main(
            [
                *arguments,
                "--vault",
                str(vault),
                "--state-dir",
                str(state),
                "--config",
                str(tmp_path / "none.toml"),
            ]
        )

    steps = [
        {
            "id": name,
            "tool": "vault.updateFile",
            "args": {"path": f"{name}.md", "mode": "append", "content": "more\n"},
        }
        for name in ("a", "b")
    ]
    plan = tmp_path / "plan.json"
    plan.write_text(
        json.dumps({"version": "1.0", "goal": "More", "riskLevel": "writes", "steps": steps})
    )
    with monkeypatch.context() as patched:
        patched.setattr(Applier, "carry_out", copying)
        assert call("run", str(plan), "--yes", state=state) == 0
    after = files(vault)
    assert after != before
    for name, content in before.items():
        (vault / name).write_bytes(content)
    assert call("recover", "--finish", state=copy) == 0
    assert files(vault) == after
    assert call("undo", "--yes", state=copy) == 0
    assert files(vault) == before


def files(vault: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in vault.glob("*.md")}
