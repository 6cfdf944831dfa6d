"""The promise as laws: a run writes what the preview showed, undo brings every byte, name and mode back, redo does it again."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import HealthCheck, event, example, given, settings
from hypothesis import strategies as st

from obsidian_agent.agent.verifying import verify
from obsidian_agent.bootstrap import Wiring, build_session
from obsidian_agent.errors import PlanError
from obsidian_agent.plan.policy import Policy
from obsidian_agent.plan.result import Preview
from obsidian_agent.vault.store import VaultStore
from previews import without_id

FOLDERS = ["", "A", "A/B", "C d", "É"]
NAMES = ["one", "two", "Zwölf", "n o t e", "Case"]
PATHS = [f"{folder}/{name}.md".lstrip("/") for folder in FOLDERS for name in NAMES]
CONTENTS = [
    "",
    "text\n",
    "no end",
    "a\r\nb\r\n",
    "\ufeffbom\n",
    "---\ntags: [x]\nk: 1 # c\n---\n# H\n\nbody\n",
    "# H\n\n- [ ] t\n\n## S\n\nend\n",
]

paths = st.sampled_from(PATHS)
folders = st.sampled_from(FOLDERS[1:])
texts = st.text(st.characters(codec="utf-8", exclude_characters="$\x00"), max_size=40)
vaults = st.dictionaries(paths, st.tuples(st.sampled_from(CONTENTS), st.sampled_from([0o644, 0o600, 0o664])), max_size=8)

steps = st.one_of(
    st.builds(lambda p, c: ("vault.createFile", {"path": p, "content": c}), paths, texts),
    st.builds(lambda p, c: ("vault.writeFile", {"path": p, "content": c}), paths, texts),
    st.builds(
        lambda p, c, m: ("vault.updateFile", {"path": p, "mode": m, "content": c}), paths, texts, st.sampled_from(["append", "prepend"])
    ),
    st.builds(lambda p, v: ("vault.setFrontmatter", {"path": p, "set": {"k": v}}), paths, st.sampled_from([1, "yes", None, ["a"]])),
    st.builds(lambda a, b: ("vault.rename", {"from": a, "to": b}), paths, paths),
    st.builds(lambda a, b: ("vault.rename", {"from": a, "to": b, "overwrite": True}), paths, paths),
    st.builds(lambda a, b: ("vault.rename", {"from": a, "to": f"{b} moved"}), folders, folders),
    st.builds(lambda p: ("vault.delete", {"path": p}), paths),
    st.builds(lambda p: ("vault.delete", {"path": p, "recursive": True}), folders),
    st.builds(lambda p: ("vault.ensureFolder", {"path": f"{p}/new"}), folders),
    st.builds(lambda f, r: ("vault.replaceText", {"find": f, "replace": r}), st.sampled_from(["text", "a", "H"]), texts),
)


def plan_of(found: list[tuple[str, dict[str, Any]]]) -> dict[str, Any]:
    listed = [{"id": f"s{n}", "tool": tool, "args": args, "onError": "skip"} for n, (tool, args) in enumerate(found)]
    return {"version": "1.0", "goal": "law", "riskLevel": "writes", "steps": listed}


def picture(root: Path) -> dict[str, tuple[str, int, bytes]]:
    """Every entry below a folder: kind, mode, bytes. The trash counts as long as something is in it."""
    return without_id(
        {str(path.relative_to(root)): _entry(path) for path in _entries(root) if path.name != ".trash" or any(path.iterdir())}
    )


def _entries(root: Path) -> Iterator[Path]:
    for folder, names, files in os.walk(root):
        yield from (Path(folder) / name for name in (*names, *files))


def _entry(path: Path) -> tuple[str, int, bytes]:
    mode = path.stat().st_mode & 0o777
    return ("folder", mode, b"") if path.is_dir() else ("file", mode, path.read_bytes())


def shown(before: Mapping[str, tuple[str, int, bytes]], preview: Preview) -> dict[str, bytes]:
    """The notes that the net changes promise, from the notes that there were."""
    files = {name: data for name, (kind, _, data) in before.items() if kind == "file" and not name.startswith(".")}
    after = dict(files)
    changes = preview.change_set.changes
    moved_folders = sorted(
        ((c.path.text, c.new_path.text) for c in changes if c.kind == "rename" and c.folder and c.new_path), key=lambda pair: -len(pair[0])
    )
    gone = [c.path.text for c in changes if c.kind == "delete" and c.folder]
    renamed = {c.path.text: c.new_path.text for c in changes if c.kind == "rename" and not c.folder and c.new_path}
    deleted = {c.path.text for c in changes if c.kind == "delete" and not c.folder}
    after = {}
    for name, data in files.items():
        if name in deleted:
            continue
        if name in renamed:
            after[renamed[name]] = data
            continue
        old, new = next(((old, new) for old, new in moved_folders if name.startswith(old + "/")), ("", ""))
        if not any(name.startswith(folder + "/") and len(folder) > len(old) for folder in gone):
            after[new + name[len(old) :]] = data
    for change in changes:
        if change.content is not None:
            after[(change.new_path or change.path).text] = change.content
    return after


@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(files=vaults, found=st.lists(steps, min_size=1, max_size=6))
@example(
    {"two.md": ("old", 0o644)},
    [("vault.rename", {"from": "two.md", "to": "one.md"}), ("vault.createFile", {"path": "two.md", "content": "new"})],
)
@example(
    {"A/B/one.md": ("", 0o644)},
    [("vault.delete", {"path": "A/B", "recursive": True}), ("vault.rename", {"from": "A", "to": "A moved"})],
)
def test_a_run_is_its_preview_and_undo_is_its_inverse(files: dict[str, tuple[str, int]], found: list[tuple[str, dict[str, Any]]]) -> None:
    with TemporaryDirectory() as place:
        root = Path(place) / "vault"
        root.mkdir()
        for name, (content, mode) in files.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_bytes(content.encode())
            (root / name).chmod(mode)
        before = picture(root)
        with VaultStore.open(root) as store:
            wiring = Wiring(store, Path(place) / "state", Policy(allow_deletes=True), now=datetime(2026, 3, 14, tzinfo=UTC))
            session = build_session(wiring)
            try:
                ready = session.dry_run(plan_of(found))
            except PlanError:
                event("invalid")
                return
            assert picture(root) == before
            result = session.apply(ready, lambda _: None, threading.Event())
            event(f"{len(ready.change_set.changes)} changes")
            assert result.status == "done", result.errors
            after = picture(root)
            notes = {name: data for name, (kind, _, data) in after.items() if kind == "file" and not name.startswith(".trash")}
            assert notes == shown(before, ready)
            assert verify(ready, session.view()) == ()
            if not ready.change_set.operations:
                return
            assert not session.runs.undo(None).conflicts
            assert picture(root) == before
            assert not session.runs.redo().conflicts
            assert picture(root) == after
            assert not session.runs.undo(None).conflicts
            assert picture(root) == before
