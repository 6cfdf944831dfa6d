"""The costs of a run, counted and not timed: flushes, openings of a note, bytes written.

Imports are counted in test_import_hygiene.py.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

NOTES = 100
COUNTED = """
import json, os, sys
from collections import Counter
opened, flushes = Counter(), 0
def hook(event, given):
    if event == "open" and str(given[0]).endswith(".md"):
        opened[os.path.basename(os.fsdecode(given[0]))] += 1
sys.addaudithook(hook)
def counted(call):
    def flush(*given):
        global flushes
        flushes += 1
        return call(*given)
    return flush
os.fsync = counted(os.fsync)
from obsidian_agent.vault.filesystem import system_calls
if system_calls._syncfs is not None:
    system_calls._syncfs = counted(system_calls._syncfs)
from obsidian_agent.cli.main import main
before = int(open("/proc/self/io").read().split()[3])
done = main(sys.argv[1:])
written = int(open("/proc/self/io").read().split()[3]) - before
print()
print(json.dumps([done, max(opened.values()), sum(opened.values()), flushes, written]))
"""


@pytest.mark.skipif(not Path("/proc/self/io").exists(), reason="bytes written are counted by Linux")
def test_a_run_over_a_hundred_notes_flushes_opens_and_writes_no_more_than_it_needs(
    tmp_path: Path,
) -> None:
    text = "---\nstatus: draft\n---\n" + "A line that somebody wrote, with a [[link]].\n" * 40
    (tmp_path / "vault").mkdir()
    for number in range(NOTES):
        (tmp_path / "vault" / f"Note {number}.md").write_text(text)
    each = {"from": "$steps.list.files", "itemName": "file"}
    edit = {
        "id": "edit",
        "tool": "vault.setFrontmatter",
        "foreach": each,
        "args": {"path": "${file.path}", "set": {"status": "done"}},
    }
    steps = [
        {"id": "list", "tool": "vault.listFiles", "args": {"folder": "", "extension": "md"}},
        edit,
    ]
    plan = tmp_path / "plan.json"
    plan.write_text(
        json.dumps({"version": "1.0", "goal": "count", "riskLevel": "writes", "steps": steps})
    )
    arguments = [
        "run",
        str(plan),
        "--yes",
        "--vault",
        str(tmp_path / "vault"),
        "--state-dir",
        str(tmp_path / "state"),
    ]
    run = subprocess.run(
        [sys.executable, "-c", COUNTED, *arguments], capture_output=True, text=True, check=True
    )
    done, most, opened, flushes, written = json.loads(run.stdout.splitlines()[-1])
    assert done == 0
    assert flushes <= 13, (
        "of a first run; six of them are of the vault's folder and the state folder, once"
    )
    assert most <= 2, (
        "opened by name for the preview and once more to compare before it is replaced"
    )
    assert opened <= 2 * NOTES
    assert written <= 1.6 * NOTES * len(text), (
        "the notes, and the journal with both of their texts, compressed"
    )
