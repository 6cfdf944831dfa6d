"""Renames that git knows, and what the state folder keeps about the health of a vault."""

from __future__ import annotations

import shutil
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest

from obsidian_agent.health.finding import HealthFinding, HealthReport
from obsidian_agent.health.report import examine
from obsidian_agent.services.health import HealthRecord, git_renames, health_settings, old_versions
from obsidian_agent.vault.views.disk import DiskView
from support import MakeVault

NOW = datetime(2026, 11, 23, tzinfo=UTC)


def git(folder: str, *arguments: str) -> None:
    options = ("-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")
    subprocess.run(["git", *options, *arguments], cwd=folder, check=True, capture_output=True)


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_git_tells_renames_newest_first(make_vault: MakeVault) -> None:
    root = make_vault({"Ünë.md": "some text\nmore text\n"}).real_path
    git(root, "init", "-q")
    for old, new in (("Ünë.md", "Two words.md"), ("Two words.md", "Sub/Three.md")):
        git(root, "add", ".")
        git(root, "commit", "-qm", "x")
        Path(root, new).parent.mkdir(exist_ok=True)
        git(root, "mv", old, new)
    git(root, "commit", "-qm", "x")
    renames = git_renames(root)
    assert renames == [
        ("Two words.md", "Sub/Three.md"),
        ("Ünë.md", "Two words.md"),
    ]


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_git_has_earlier_versions(make_vault: MakeVault, tmp_path: Path) -> None:
    store = make_vault({"Ünë [x].md": "first"})
    git(store.real_path, "init", "-q")
    for text in ("first", "second"):
        Path(store.real_path, "Ünë [x].md").write_text(text, "utf-8")
        git(store.real_path, "add", ".")
        git(store.real_path, "commit", "-qm", "x")
    assert old_versions(tmp_path, store, "Ünë [x].md") == [b"second", b"first"]
    assert old_versions(tmp_path, store, "Other.md") == []


@pytest.mark.parametrize(
    ("app", "folder"),
    [
        ("", ""),
        ('{"newFileLocation": "current"}', None),
        ('{"newFileLocation": "folder", "newFileFolderPath": "Inbox/"}', "Inbox"),
        ('{"newFileLocation": "root", "newFileFolderPath": "Inbox"}', ""),
    ],
)
def test_the_folder_of_new_notes_is_that_of_obsidian(
    make_vault: MakeVault, tmp_path: Path, app: str, folder: str | None
) -> None:
    store = make_vault({".obsidian/app.json": app} if app else {"A.md": ""})
    assert health_settings(store, tmp_path / "state", NOW).new_notes == folder


def test_a_vault_without_git_has_no_renames(make_vault: MakeVault) -> None:
    assert git_renames(make_vault({"A.md": ""}).real_path) == []


def test_files_that_obsidian_excludes_have_no_findings(
    make_vault: MakeVault, tmp_path: Path
) -> None:
    lost = "---\naliases: [Ada L]\n---\n[[nowhere]]"
    files = {
        ".obsidian/app.json": r'{"userIgnoreFilters": ["Archive/", "/^Old\\d/", "/(/", 3, ""]}',
        "Archive/A (conflicted copy 2024-01-01 120000).md": lost,
        "Archive/A.md": lost,
        "Archive/x.png": "x",
        "Old1/B.md": lost,
        "y.png": "x",
        "z.png": "x",
        ".obsidian/snippets/a.css": "body { background: url(../y.png) }",
        ".obsidian/plugins/p/data.json": '{"banner": "w.png"}',
        "w.png": "x",
        "A.md": "[[Ada L]]",
    }
    store = make_vault(files)
    settings = health_settings(store, tmp_path / "state", NOW)
    link, unlinked, unused = examine(DiskView(store), settings).findings
    assert (unused.kind, unused.path) == ("unused-attachment", "z.png")
    assert (link.path, unlinked.path) == ("A.md", "A.md")
    assert link.evidence == "2 notes: an alias of that note"


def test_ignored_findings_and_the_trend_are_kept(make_vault: MakeVault, tmp_path: Path) -> None:
    store = make_vault({"A.md": ""})
    record = HealthRecord(tmp_path, store)
    record.ignore("abc", "wanted later")
    record.add(
        HealthReport((HealthFinding(kind="empty-note", path="A.md", subject="", text="x"),)), NOW
    )
    again = HealthRecord(tmp_path, store)
    assert (again.ignored(), again.trend()) == ({"abc": "wanted later"}, [("2026-11-23", 1)])
    assert again.unignore("abc")
    assert not again.unignore("abc")
    assert again.ignored() == {}
