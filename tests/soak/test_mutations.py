"""Fifteen bugs, one for each demand on a program that writes notes: the tests must notice each.

A copy of the program gets the bug; the tests of the demand must fail on it, and pass without it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

pytestmark = [pytest.mark.soak, pytest.mark.timeout(600)]

REPOSITORY = Path(__file__).resolve().parents[2]
BATCH = 3
"""Maximum number of failures of one run; the unchanged program runs all tests at once."""


class Bug(NamedTuple):
    """A demand: file, unique text, replacement, and the tests that must fail."""

    demand: str
    file: str
    right: str
    wrong: str
    tests: str


BUGS = (
    Bug(
        "one gate",
        "vault/paths/path.py",
        "if rules.leads_up(part):",
        "if False:",
        "tests/vault/paths/test_path.py",
    ),
    Bug(
        "writes keep the mode",
        "vault/transaction/apply.py",
        "os.fchmod(fd, stat.S_IMODE(old.status.st_mode))",
        "os.fchmod(fd, 0o600)",
        "tests/vault/transaction/test_apply.py",
    ),
    Bug(
        "undo leaves later edits alone",
        "journal/undo.py",
        "_mode(finding)) if finding.possible else None",
        "_mode(finding))",
        "tests/journal/test_undo.py",
    ),
    Bug(
        "a stale preview writes nothing",
        "services/executor.py",
        "if preflight.problems:",
        "if False:",
        "tests/services/test_executor.py",
    ),
    Bug(
        "the preview names where notes would load from",
        "plan/preview.py",
        "if active.hosts:",
        "if False:",
        "tests/plan/test_preview.py",
    ),
    Bug(
        "no control characters on the screen",
        "terminal_text.py",
        "return _LINE_ODD.sub(lambda match: _replacement(match.group(), _around(text, match)), text)",
        "return text",
        "tests/tui/test_sanitize.py",
    ),
    Bug(
        "text is never markup",
        "tui/widgets/row_list.py",
        '        return Content.assemble(\n            (" ", ""),\n            (word, row.word_style),',
        '        return Content.from_markup(row.text) or Content.assemble(\n            (" ", ""),\n            (word, row.word_style),',
        "tests/tui/test_hostile.py",
    ),
    Bug(
        "model output is read strictly",
        "plan/json_text.py",
        "if key in container:",
        "if False:",
        "tests/plan/test_json_text.py",
    ),
    Bug(
        "trust is for a content",
        "services/trust.py",
        "if trusted_sha256 == sha256:",
        "if trusted_sha256 is not None:",
        "tests/services/vault_agents/test_library.py",
    ),
    Bug(
        "hidden folders are protected in every spelling",
        "vault/paths/rules.py",
        'folded = unicodedata.normalize("NFKC", component).casefold().translate(_HFS_IGNORED)',
        "folded = component",
        "tests/vault/paths/test_path.py",
    ),
    Bug(
        "an edit of a property is proven",
        "vault/frontmatter/properties.py",
        "    _verify(changed, _expected(parsed, targets, request))\n",
        "",
        "tests/vault/frontmatter/test_properties.py",
    ),
    Bug(
        "everything has a limit",
        "plan/validate.py",
        "if len(steps) > MAX_STEPS:",
        "if False:",
        "tests/plan/test_validate.py",
    ),
    Bug(
        "a server's tools are pinned",
        "agent/mcp_tools.py",
        "if known.get(tool.name) != tool.text]",
        "if tool.name not in known]",
        "tests/agent/test_mcp_tools.py",
    ),
    Bug(
        "another user is not talked to",
        "integrations/proposals.py",
        "return bool(uid == os.geteuid())",
        "return True",
        "tests/tui/test_proposals.py",
    ),
    Bug(
        "one writer",
        "journal/lock.py",
        "        if not wait_for_lock(fd, _LOCK_SECONDS):\n            raise _busy(_holder(fd))\n",
        "",
        "tests/journal/test_lock.py",
    ),
)


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Copy the program and its tests, for changes."""
    place = tmp_path_factory.mktemp("copy")
    for name in ("obsidian_agent", "tests", "bench", "fixtures", "docs"):
        shutil.copytree(
            REPOSITORY / name,
            place / name,
            ignore=shutil.ignore_patterns("node_modules", "__pycache__", ".mypy_cache"),
        )
    for name in ("pyproject.toml", "README.md"):
        shutil.copy(REPOSITORY / name, place / name)
    yield place
    shutil.rmtree(place)


def run(copy: Path, *tests: str) -> subprocess.CompletedProcess[str]:
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        f"--maxfail={BATCH}",
        *tests,
    ]
    environment = {**os.environ, "PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(
        command, cwd=copy, env=environment, capture_output=True, text=True, check=False
    )


def test_there_are_fifteen_and_without_them_the_tests_pass(copy: Path) -> None:
    assert len(BUGS) == 15
    found = run(copy, *dict.fromkeys(bug.tests for bug in BUGS))
    assert found.returncode == 0, found.stdout[-3000:]


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.demand)
def test_the_bug_is_found(copy: Path, bug: Bug) -> None:
    file = copy / "obsidian_agent" / bug.file
    right = file.read_text("utf-8")
    assert right.count(bug.right) == 1, "the text of the mutation has changed: update it"
    file.write_text(right.replace(bug.right, bug.wrong), "utf-8")
    try:
        found = run(copy, bug.tests)
    finally:
        file.write_text(right, "utf-8")
    assert found.returncode == 1, (
        f"no test failed, or the tests could not be run:\n{found.stdout[-2000:]}"
    )
    assert "failed" in found.stdout or "FAILED" in found.stdout
