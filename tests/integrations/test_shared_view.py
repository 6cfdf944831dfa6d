"""What a client sees of a vault that is followed, and of files that change their meaning."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from obsidian_agent.bootstrap import Wiring, build_shared_vault
from obsidian_agent.errors import VaultError
from obsidian_agent.integrations.mcp_arguments import PeriodicNoteInput
from obsidian_agent.integrations.mcp_reading import periodic_note
from obsidian_agent.integrations.shared_vault import SharedVault
from obsidian_agent.integrations.shared_view import SharedFileSet, SharedView
from obsidian_agent.vault.index import stamps
from obsidian_agent.vault.index.keeper import IndexKeeper
from support import MakeVault, settings_with

NOTES = {
    "Shared/Plan.md": "See [[Team]], the kite\n",
    "Shared/Team.md": "Ada, the kite\n",
    "Shared/Door.md": "A door, the kite\n",
    "Private/Diary.md": "CANARY kite [[Team]]\n",
}


@pytest.fixture
def shared(make_vault: MakeVault, tmp_path: Path) -> SharedVault:
    settings = settings_with(share_allow=("Shared/**",))
    return build_shared_vault(Wiring(make_vault(NOTES), tmp_path / "state", settings=settings))


@pytest.fixture
def followed(shared: SharedVault) -> Iterator[SharedVault]:
    vault = shared.vault
    vault.follow(lambda status: None)
    while not vault.is_followed:
        time.sleep(0.01)
    yield shared
    vault.unfollow()


def hits(shared: SharedVault) -> list[str]:
    document = shared.read("vault.searchText", {"query": "kite"})
    return [match["path"] for match in document["matches"]]


def test_a_followed_vault_is_not_compared_for_a_call_and_shows_what_changes(
    followed: SharedVault, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = Path(followed.vault.store.real_path)
    refresh = IndexKeeper.refresh
    monkeypatch.setattr(IndexKeeper, "refresh", lambda *args: pytest.fail("the vault is compared"))
    before = hits(followed)
    monkeypatch.setattr(IndexKeeper, "refresh", refresh)
    assert before == ["Shared/Door.md", "Shared/Plan.md", "Shared/Team.md"]
    (folder / "Shared/New.md").write_text("Another kite\n")
    (folder / "Shared/Door.md").unlink()
    (folder / "Private/New.md").write_text("CANARY kite\n")
    expected = ["Shared/New.md", "Shared/Plan.md", "Shared/Team.md"]
    deadline = time.monotonic() + 30
    while hits(followed) != expected:
        assert time.monotonic() < deadline, hits(followed)
        time.sleep(0.05)


@pytest.mark.parametrize("link", ["symbolic", "hard"])
def test_a_note_that_becomes_a_link_to_a_private_one_is_gone_at_once(
    followed: SharedVault, link: str
) -> None:
    folder = Path(followed.vault.store.real_path)
    assert "Shared/Door.md" in hits(followed)
    (folder / "Shared/Door.md").unlink()
    if link == "symbolic":
        (folder / "Shared/Door.md").symlink_to("../Private/Diary.md")
    else:
        (folder / "Shared/Door.md").hardlink_to(folder / "Private/Diary.md")
    assert "Shared/Door.md" not in hits(followed)
    for name in ("Shared/Door.md", "Door"):
        with pytest.raises(VaultError, match="does not exist or is not shared"):
            followed.read("vault.readFile", {"path": name})
    links = followed.read("vault.getBacklinks", {"path": "Shared/Team.md"})
    assert [item["path"] for item in links["items"]] == ["Shared/Plan.md"]


def test_files_that_did_not_change_are_not_decided_again(
    shared: SharedVault, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stamps, "STABLE_NS", -(10**12))  # files just written count as stable
    assert len(hits(shared)) == 3
    first = shared._view().files
    assert shared._view().files is first
    (Path(shared.vault.store.real_path) / "Shared/Next.md").write_text("kite\n")
    decided: list[str] = []
    rules = type(shared.rules)
    real = rules.verdict
    monkeypatch.setattr(
        rules,
        "verdict",
        lambda self, path, names, **how: (
            decided.append(path.text) or real(self, path, names, **how)
        ),
    )
    second = shared._view().files
    assert second.paths - first.paths == {"Shared/Next.md"}
    assert set(decided) == {"Shared/Next.md"}


def test_other_rules_decide_about_every_file_again(shared: SharedVault) -> None:
    assert len(hits(shared)) == 3
    policy = Path(shared.vault.store.real_path) / ".obsidian-agent/policy.json"
    policy.parent.mkdir(exist_ok=True)
    policy.write_text('{"share_deny": ["Door.md"]}')
    assert hits(replace(shared)) == ["Shared/Plan.md", "Shared/Team.md"]


def test_what_is_taken_over_from_the_state_before_is_as_from_the_start(
    shared: SharedVault, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stamps, "STABLE_NS", -(10**12))
    folder = Path(shared.vault.store.real_path)
    week = PeriodicNoteInput(period="week")

    def asked(view: SharedView) -> list[object]:
        files = view.files
        note = periodic_note(view, shared._context(view), week).document["path"]
        sets = (files.paths, files.hidden, files.folders, files.unlisted)
        return [*sets, [task.text for task in files.tasks_due], files.latest, note]

    def edit(path: str, text: str | None) -> None:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        if text is None:
            (folder / path).unlink()
        else:
            (folder / path).write_text(text)

    edits = [
        ("Shared/Plan.md", "- [ ] Call 📅 2026-11-25\n"),
        ("Shared/Weeks/2026-W01.md", "- [ ] Later 📅 2026-11-26\n"),
        ("Shared/Weeks/2026-W01.md", "- [ ] Sooner 📅 2026-11-20\n"),
        ("Private/Weekly/2026-W02.md", "- [ ] CANARY 📅 2026-11-20\n"),
        ("Shared/Weeks/2026-W01.md", None),
        ("Private/Diary.md", None),
    ]
    for path, text in edits:
        edit(path, text)
        view = shared._view()
        fresh = SharedFileSet(view.files.index, shared.rules, shared.vault.store)
        assert asked(view) == asked(SharedView(shared.vault.store, fresh)), path
    assert asked(shared._view())[4] == ["Call 📅 2026-11-25"]
