"""health: the findings as a document, their repairs as a plan that runs and is undone."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cli.conftest import MakeCommands
from obsidian_agent.cli.main import main
from obsidian_agent.health.finding import RepairChoice, RepairStep
from obsidian_agent.health.repair_plan import repair_plan
from support import MakeVault

Call = Callable[..., tuple[int, Any]]

FILES = {
    "Kick-off notes.md": "See [[Projects]].\n",
    "Projects.md": "[[kick off notes]] and [[Nowhere]]\n",
    "Empty.md": "",
}


@pytest.fixture
def call(commands: MakeCommands) -> Call:
    """Run a command with `--json`; the exit code and the document."""
    return commands(FILES).json


def test_findings_are_printed_with_evidence_and_repairs(call: Call) -> None:
    code, document = call("health")
    assert code == 1
    assert document["counts"] == {"unresolved-link": 2, "empty-note": 1}
    kickoff = document["findings"][1]
    assert kickoff.keys() == {"id", "kind", "path", "line", "text", "evidence", "repair"}
    assert kickoff["repair"]["preselected"] is True
    assert kickoff["repair"]["choices"][0] == {
        "title": "[[kick off notes]] → [[Kick-off notes]]",
        "steps": [
            {
                "tool": "vault.retargetLinks",
                "args": {
                    "path": "Projects.md",
                    "name": "kick off notes",
                    "to": "Kick-off notes.md",
                },
            }
        ],
    }


def test_findings_are_filtered_by_kind_and_an_unknown_kind_is_an_error(call: Call) -> None:
    code, document = call("health", "--only", "empty-note")
    assert (code, document["counts"]) == (1, {"empty-note": 1})
    code, document = call("health", "--only", "dust")
    assert (code, document["errors"][0]["code"]) == (2, "USAGE")


def test_an_ignored_finding_is_hidden_until_it_is_unignored(call: Call) -> None:
    _, document = call("health", "--only", "empty-note")
    finding = document["findings"][0]["id"]
    call("health", "--ignore", finding, "--reason", "filled later")
    assert call("health", "--only", "empty-note") == (
        0,
        {"findings": [], "counts": {}, "ignored": 1},
    )
    assert call("health", "--unignore", finding)[0] == 0
    assert call("health", "--only", "empty-note")[0] == 1


def test_the_plan_holds_the_clear_repairs_and_is_undone(call: Call, tmp_path: Path) -> None:
    plan = tmp_path / "repairs.json"
    call("health", "--plan", str(plan))
    vault = tmp_path / "vault"
    before = {path: path.read_bytes() for path in vault.rglob("*.md")}
    assert call("run", str(plan), "--yes")[0] == 0
    assert (vault / "Projects.md").read_text() == "[[Kick-off notes]] and [[Nowhere]]\n"
    assert call("undo", "--yes")[0] == 0
    assert {path: path.read_bytes() for path in vault.rglob("*.md")} == before


def test_the_rules_for_properties_are_printed_as_in_their_file(call: Call, tmp_path: Path) -> None:
    vault = tmp_path / "vault"
    for number in range(12):
        kind = "ab"[number % 2]
        (vault / f"B{number}.md").write_text(f"---\nkind: {kind}\nrating: {number}\n---\n")
    inferred = [
        {"property": "kind", "type": "text", "values": ["a", "b"]},
        {"property": "rating", "type": "number"},
    ]
    code, document = call("health", "--rules")
    assert (code, sorted(document["rules"], key=str)) == (0, inferred)
    file = vault / ".obsidian-agent" / "properties.json"
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps({"rules": [{"property": "kind", "values": ["a"]}]}))
    assert call("health", "--only", "property-value")[1]["counts"] == {"property-value": 6}
    file.write_text('{"rules": [{"colour": "red"}]}')
    code, document = call("health")
    assert (code, document["errors"][0]["code"]) == (2, "CONFIG_INVALID")


MESSY = {
    "Ada Lovelace.md": "---\naliases: [Ada L]\nstatus: Done\n---\n[[Ideas]] ![[img/cat.png]]\n",
    "Ideas.md": "[[Ada L]] [[Garden]] [[old/cat.png]] #Book\nGraph theory and more. [[Plan]]\n",
    "Graph theory.md": "A sentence that is long enough to mean something.\n",
    "Same.md": "---\nstatus: Done\n---\nThe same sentence, which is long enough.\n",
    "Same 1.md": "---\nstatus: done\nx: 1\n---\nThe same sentence, which is long enough.\n",
    "Tags.md": "---\nstatus: Done\nrating: '5'\n---\n#Book #book [[Same 1]]\n- [ ] a 📅 2020-01-01\n",
    "Again.md": "#Book [[Tags]]\r\n- [ ] a 📅 2020-01-01\r\n- [ ] a 📅 2020-01-01\r\n",
    "X/Plan.md": "[[Tags]]",
    "Long/Plan.md": "[[Tags]]",
    "Note.md": "one\ntwo\n[[Tags]]\n",
    "Note.sync-conflict-20240101-120000-ABCDEF7.md": "one\ntwo\nthree\n[[Tags]]\n",
    "Empty.md": "",
    "img/cat.png": "x",
    "img/dog.png": "x",
    ".obsidian/types.json": '{"types": {"rating": "number"}}',
}


def test_every_repair_is_previewed_run_and_undone(
    make_vault: MakeVault, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = Path(make_vault(MESSY).real_path)
    options = ["--vault", str(root), "--state-dir", str(tmp_path / "state")]
    files = {path for path in root.rglob("*") if path.is_file()}
    before = {path: path.read_bytes() for path in files}

    def call(*arguments: str) -> Any:
        main([*arguments, "--json", *options, "--config", str(tmp_path / "none.toml")])
        return json.loads(capsys.readouterr().out)

    def is_unchanged() -> bool:
        return all(path.is_file() and path.read_bytes() == before[path] for path in files)

    findings = call("health")["findings"]
    assert is_unchanged()
    groups: dict[tuple[str, int], list[RepairChoice]] = {}
    for finding in findings:
        for number, choice in enumerate(finding.get("repair", {}).get("choices", [])):
            steps = tuple(RepairStep(step["tool"], step["args"]) for step in choice["steps"])
            choices = groups.setdefault((finding["kind"], number), [])
            choices.append(RepairChoice(choice["title"], steps))
    assert len({kind for kind, _ in groups}) == 12
    for group, choices in groups.items():
        plan = tmp_path / "plan.json"
        plan.write_text(json.dumps(repair_plan(choices)), encoding="utf-8")
        assert call("preview", str(plan), "--allow-deletes")["valid"], group
        assert is_unchanged()
        assert call("run", str(plan), "--yes", "--allow-deletes")["status"] == "done", group
        assert not is_unchanged(), group
        call("undo", "--yes")
        assert is_unchanged(), group
        extra = {path for path in root.rglob("*") if path.is_file()} - files
        assert {path.relative_to(root).parts[0] for path in extra} <= {".obsidian-agent", ".trash"}
