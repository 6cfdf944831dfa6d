"""What may be changed and read, as the settings have it: told by `policy explain`, and held by every way to a run."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from obsidian_agent.cli.main import main
from support import MakeVault

NOTES = {
    "Open/a.md": "See [[b]] and [[secret]]\n",
    "Open/b.md": "---\ntags: [x]\n---\n",
    "Private/secret.md": "[[a]]\n",
    "Open/Deep/Private/c.md": "",
    "key.key.md": "",
}
SETTINGS = 'write_deny = ["Private", "*.key.md"]\nshare_deny = ["Private"]\nshare_allow = ["Open/**"]\n'


class Desk:
    def __init__(self, vault: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.vault, self.folder, self.capsys = Path(vault), folder, capsys

    def settings(self, text: str) -> None:
        (self.folder / "config.toml").write_text(text)

    def ask(self, *words: str) -> tuple[int, Any]:
        places = ["--vault", str(self.vault), "--state-dir", str(self.folder / "s"), "--config", str(self.folder / "config.toml"), "--json"]
        self.capsys.readouterr()
        code = main([*words, *places])
        return code, json.loads(self.capsys.readouterr().out)

    def run(self, tool: str, **args: Any) -> tuple[int, set[str]]:
        plan = self.folder / "plan.json"
        step = {"id": "s", "tool": tool, "args": args}
        plan.write_text(json.dumps({"version": "1.0", "goal": "g", "riskLevel": "writes", "steps": [step]}))
        code, result = self.ask("run", str(plan), "--yes", "--allow-deletes")
        return code, {error["code"] for error in result["errors"]}


@pytest.fixture
def desk(make_vault: MakeVault, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Desk:
    made = Desk(make_vault(NOTES).real_path, tmp_path, capsys)
    (made.vault / "door.md").symlink_to("Private/secret.md")
    made.settings(SETTINGS)
    return made


@pytest.mark.parametrize(
    ("path", "tool", "decision", "rule"),
    [
        ("Open/a.md", None, "ask", "confirm_writes is on"),
        ("Open/new.md", "vault.createFile", "ask", "confirm_writes is on"),
        ("Private/secret.md", None, "deny", "write_deny Private"),
        ("PRIVATE/new.md", "vault.createFile", "deny", "write_deny Private"),
        ("Open/Deep/Private/c.md", "vault.updateFile", "deny", "write_deny Private"),
        ("key.key.md", "vault.writeFile", "deny", "write_deny *.key.md"),
        ("door.md", "vault.writeFile", "deny", "write_deny Private"),
        ("Open/a.md", "vault.delete", "deny", "allow_deletes is off"),
        ("Open/a.md", "vault.readFile", "allow", "share_allow Open/**"),
        ("key.key.md", "vault.readFile", "ask", "no pattern of share_allow names it"),
        ("Private/secret.md", "vault.readFile", "deny", "share_deny Private"),
        ("door.md", "vault.readFile", "deny", "share_deny Private"),
        ("../x.md", None, "deny", "PATH_OUTSIDE_VAULT"),
        (".obsidian/app.json", None, "deny", "PATH_NOT_ALLOWED"),
        ("Open/a.md", "commands.run", "deny", "allow_commands is off"),
    ],
)
def test_the_decision_and_its_rule_are_told(desk: Desk, path: str, tool: str | None, decision: str, rule: str) -> None:
    code, told = desk.ask("policy", "explain", path, *(["--tool", tool] if tool else []))
    assert (code, told["decision"], told["rule"]) == (0, decision, rule)
    assert told["source"]


@pytest.mark.parametrize(
    ("tool", "args"),
    [
        ("vault.writeFile", {"path": "Private/secret.md", "content": "x"}),
        ("vault.createFile", {"path": "Private/new.md", "content": "x"}),
        ("vault.updateFile", {"path": "door.md", "mode": "append", "content": "x"}),
        ("vault.delete", {"path": "Private/secret.md"}),
        ("vault.rename", {"from": "Open/b.md", "to": "Private/b.md"}),
        ("vault.rename", {"from": "Open", "to": "Closed"}),
        ("vault.delete", {"path": "Open", "recursive": True}),
        ("vault.rename", {"from": "Open/a.md", "to": "Open/z.md"}),
        ("vault.renameTag", {"from": "x", "to": "y"}),
    ],
)
def test_what_is_denied_cannot_be_run_whatever_leads_there(desk: Desk, tool: str, args: Mapping[str, Any]) -> None:
    before = {str(path): path.read_bytes() for path in desk.vault.rglob("*") if path.is_file()}
    code, errors = desk.run(tool, **args)
    if tool == "vault.renameTag":
        assert (code, errors) == (0, set()), "it touches nothing that is denied"
        return
    assert (code, errors) == (3, {"PERMISSION_DENIED"})
    assert {str(path): path.read_bytes() for path in desk.vault.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize(
    ("level", "codes"),
    [("read-only", (3, 3)), ("scoped-write", (0, 3)), ("full-write", (0, 0))],
)
def test_a_level_says_what_may_be_changed_at_all(desk: Desk, level: str, codes: tuple[int, int]) -> None:
    desk.settings(f'level = "{level}"\nwrite_allow = ["Open/**"]\n')
    found = tuple(desk.run("vault.createFile", path=path, content="x")[0] for path in ("Open/new.md", "Other/new.md"))
    assert found == codes
