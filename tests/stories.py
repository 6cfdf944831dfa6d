"""The alphabet of the laws about runs: random vaults, plans, other programs, and the demands."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import strategies as st

from obsidian_agent.agent.events import ExecutionResult
from obsidian_agent.bootstrap import Wiring, build_session
from obsidian_agent.plan.policy import Policy
from obsidian_agent.plan.result import Preview
from obsidian_agent.services.plans import PreviewOptions
from obsidian_agent.services.session import Session
from obsidian_agent.vault.filesystem.store import VaultStore
from previews import Picture, picture

# --- vaults ---

# Names in two spellings, of case or of Unicode: two entries on Linux, one elsewhere.
FOLDERS = ["", "A", "A/B", "a", "C d", "\u00c9", "E\u0301"]
NAMES = ["one", "two", "One", "Zw\u00f6lf", "Zwo\u0308lf", "n o t e"]
PATHS = [f"{folder}/{name}.md".lstrip("/") for folder in FOLDERS for name in NAMES]
BY_LINK = ["C d/near.md", "way/one.md", "way/B/one.md"]
PICTURE = "A/pic.png"
LINKS = {
    "A/out": "../../outside",
    "A/B/gone.md": "nowhere.md",
    "C d/far.md": "/etc/hostname",
    "C d/near.md": "../A/one.md",
    "way": "A",
}
"""Links that lead out of the vault, or nowhere, and to a note and a folder of it."""

CONTENTS = [
    "",
    "text\n",
    "no end",
    "a\r\nb\r\n",
    "\ufeffbom\n",
    "---\ntags: [x]\nk: 1 # c\n---\n# H\n\nbody\n",
    "# H\n\n- [ ] t\n\n## S\n\nend\n",
    "[[one]] and [two](A/two.md)\n",
]
_PNG = "\x89PNG\r\n\x1a\n"

Files = dict[str, tuple[str, int]]
Found = list[tuple[str, dict[str, Any]]]

paths = st.sampled_from([*PATHS, *BY_LINK])
folders = st.sampled_from(FOLDERS[1:])
texts = st.text(st.characters(codec="utf-8", exclude_characters="$\x00"), max_size=40)
vaults = st.dictionaries(
    st.sampled_from(PATHS),
    st.tuples(st.sampled_from(CONTENTS), st.sampled_from([0o644, 0o600, 0o664])),
    max_size=8,
)
extras = st.sets(st.sampled_from([PICTURE, *LINKS]))


def fill(root: Path, files: Files, more: set[str] | frozenset[str] = frozenset()) -> None:
    """Make a vault of these files, with some of the picture and the links."""
    root.mkdir()
    for name, (content, mode) in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(content.encode())
        (root / name).chmod(mode)
    for name in sorted(more):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        if name == PICTURE:
            (root / name).write_bytes(_PNG.encode("latin-1"))
        else:
            (root / name).symlink_to(LINKS[name])


# --- plans ---

_modes = st.sampled_from(["append", "prepend"])
steps = st.one_of(
    st.builds(lambda p, c: ("vault.createFile", {"path": p, "content": c}), paths, texts),
    st.builds(
        lambda p, c: ("vault.writeFile", {"path": p, "content": c}),
        st.sampled_from([*PATHS, PICTURE]),
        texts,
    ),
    st.builds(
        lambda p, c, m: ("vault.updateFile", {"path": p, "mode": m, "content": c}),
        paths,
        texts,
        _modes,
    ),
    st.builds(
        lambda p, v: ("vault.setFrontmatter", {"path": p, "set": {"k": v}}),
        paths,
        st.sampled_from([1, "yes", None, ["a"]]),
    ),
    st.builds(lambda a, b: ("vault.rename", {"from": a, "to": b}), paths, paths),
    st.builds(lambda a, b: ("vault.rename", {"from": a, "to": b, "overwrite": True}), paths, paths),
    st.builds(lambda a, b: ("vault.rename", {"from": a, "to": f"{b} moved"}), folders, folders),
    st.builds(lambda a, b: ("vault.rename", {"from": a, "to": f"{b}/in"}), folders, folders),
    st.builds(lambda p: ("vault.delete", {"path": p}), st.sampled_from([*PATHS, PICTURE, *LINKS])),
    st.builds(lambda p: ("vault.delete", {"path": p, "recursive": True}), folders),
    st.builds(lambda p: ("vault.ensureFolder", {"path": f"{p}/new"}), folders),
    st.builds(
        lambda f, r: ("vault.replaceText", {"find": f, "replace": r}),
        st.sampled_from(["text", "a", "H"]),
        texts,
    ),
)
plans = st.lists(steps, min_size=1, max_size=6)
off = st.one_of(st.just(frozenset[int]()), st.frozensets(st.integers(0, 5), max_size=3))
"""The steps that are switched off before the run."""


def plan_of(found: Found) -> dict[str, Any]:
    """Return a plan of these steps, each of which is skipped when it fails."""
    listed = [
        {"id": f"s{n}", "tool": tool, "args": args, "onError": "skip"}
        for n, (tool, args) in enumerate(found)
    ]
    return {"version": "1.0", "goal": "law", "riskLevel": "writes", "steps": listed}


# --- what other programs do ---

Edit = tuple[str, int, int]
"""An action, and two numbers that choose its files."""

EDITS = ("edit", "save", "same size", "new", "take a name", "remove", "folder")
SHORTEN = "shorten"
"""A note loses its end: after a kill it looks like a write of ours that was cut off."""
CARRY_OFF = "carry off"
"""A folder goes to another disk, and a link to it is left in its place."""


def edits(*kinds: str, max_size: int = 3) -> st.SearchStrategy[list[Edit]]:
    """Return some actions of other programs."""
    return st.lists(
        st.tuples(st.sampled_from(kinds or EDITS), st.integers(0, 50), st.integers(0, 50)),
        max_size=max_size,
    )


class World:
    """A vault, a session over it, and other programs at work in it."""

    def __init__(self, place: Path, files: Files, more: set[str], *, deletes: bool = True) -> None:
        self.root = place / "vault"
        self._outside = place / "outside"
        self._outside.mkdir()
        self._carried: Picture = {}
        fill(self.root, files, more)
        self.store = VaultStore.open(self.root)
        self._wiring = Wiring(
            self.store,
            place / "state",
            Policy(allow_deletes=deletes),
            now=datetime(2026, 3, 14, tzinfo=UTC),
        )
        self.session = build_session(self._wiring)
        self.theirs: set[bytes] = set()
        """The surviving writes of other programs."""
        self.touched: set[str] = set()
        """The places at which they did something."""
        self._count = 0

    def seen(self) -> Picture:
        """Everything in the vault; the trash counts as long as something is in it."""
        found = picture(self.root)
        return (
            found
            if any(name.startswith(".trash/") for name in found)
            else {n: e for n, e in found.items() if n != ".trash"}
        )

    def again(self) -> Session:
        """Open another session over the same vault."""
        return build_session(self._wiring)

    def preview(self, found: Found, switched_off: frozenset[int] = frozenset()) -> Preview:
        return self.session.plans.dry_run(
            plan_of(found),
            options=PreviewOptions(disabled=frozenset(f"s{n}" for n in switched_off)),
        )

    def run(self, preview: Preview) -> ExecutionResult:
        return self.session.plans.apply(preview, lambda _: None, threading.Event())

    def do(self, found: list[Edit]) -> None:
        """Let other programs do these things."""
        for kind, where, how in found:
            self._do(kind, where, how)
        self._carried = picture(self._outside)

    def check_theirs(self) -> None:
        """Assert that the writes of other programs survive, and nothing outside was touched."""
        assert picture(self._outside) == self._carried
        kept = {
            entry[2]
            for folder in (self.root, self._outside)
            for entry in picture(folder).values()
            if entry[0] == "file"
        }
        assert self.theirs <= kept, self.theirs - kept

    def _do(self, kind: str, where: int, how: int) -> None:
        self._count += 1
        text = f"theirs {self._count}".encode()
        seen = {
            name: entry for name, entry in picture(self.root).items() if not name.startswith(".")
        }
        files = sorted(name for name, entry in seen.items() if entry[0] == "file")
        below = ["", *sorted(name for name, entry in seen.items() if entry[0] == "folder")]
        folder = below[where % len(below)]
        match kind:
            case "new":
                self._write(f"{folder}/theirs {self._count}.md".lstrip("/"), text)
            case "take a name":
                name = PATHS[where % len(PATHS)]
                if name not in seen and (self.root / name).parent.is_dir():
                    self._write(name, text)
            case "folder":
                self._touch(f"{folder}/theirs {self._count}".lstrip("/")).mkdir()
            case "carry off" if folder:
                for name, entry in seen.items():
                    if entry[0] == "file" and name.startswith(folder + "/"):
                        self.theirs.add(entry[2])
                shutil.move(self.root / folder, self._outside / str(self._count))
                self._touch(folder).symlink_to(self._outside / str(self._count))
            case _ if files:
                self._change(kind, files[where % len(files)], text, how)

    def _change(self, kind: str, name: str, text: bytes, how: int) -> None:
        old = (self.root / name).read_bytes()
        match kind:
            case "edit":
                self._write(name, text)
            case "save":
                self._write(f"{name}~", text)
                (self.root / f"{name}~").rename(self._touch(name))
                self.theirs.discard(old)
            case "same size" if len(old) >= len(text):
                info = (self.root / name).stat()
                self._write(name, text.ljust(len(old), b"."))
                os.utime(self.root / name, ns=(info.st_atime_ns, info.st_mtime_ns))
            case "remove":
                self._touch(name).unlink()
                self.theirs.discard(old)
            case "shorten" if len(old) > 1:
                self._write(name, old[: max(1, how % len(old))])

    def _write(self, name: str, content: bytes) -> None:
        path = self._touch(name)
        if path.exists():
            self.theirs.discard(path.read_bytes())
        path.write_bytes(content)
        self.theirs.add(content)

    def _touch(self, name: str) -> Path:
        self.touched.add(name)
        return self.root / name


@contextmanager
def world(files: Files, more: set[str], *, deletes: bool = True) -> Iterator[World]:
    """Create a vault in a folder of its own, in memory if possible, as thousands are made."""
    memory = Path("/dev/shm")
    with TemporaryDirectory(
        prefix="stories-", dir=memory if memory.is_dir() and os.access(memory, os.W_OK) else None
    ) as place:
        made = World(Path(place), files, more, deletes=deletes)
        try:
            yield made
        finally:
            made.store.close()


# --- what must come of it ---


def visible(found: Mapping[str, tuple[str, int, bytes]]) -> dict[str, tuple[str, bytes]]:
    """Files and links outside of the trash, without their modes."""
    return {
        name: (kind, data)
        for name, (kind, _, data) in found.items()
        if kind != "folder" and not name.startswith(".trash/")
    }


def places(before: Mapping[str, tuple[str, int, bytes]], preview: Preview) -> dict[str, str]:
    """Return the places of the earlier files and links after the net changes, without the trash."""
    changes = preview.change_set.changes
    moved = sorted(
        ((c.path.text, c.new_path.text) for c in changes if c.folder and c.new_path),
        key=lambda pair: -len(pair[0]),
    )
    gone = [c.path.text for c in changes if c.kind == "delete" and c.folder]
    renamed = {c.path.text: c.new_path.text for c in changes if not c.folder and c.new_path}
    deleted = {c.path.text for c in changes if c.kind == "delete" and not c.folder}
    found = {}
    for name in visible(before):
        if name in deleted:
            continue
        if name in renamed:
            found[name] = renamed[name]
            continue
        old, new = next(((old, new) for old, new in moved if name.startswith(old + "/")), ("", ""))
        if not any(name.startswith(folder + "/") and len(folder) > len(old) for folder in gone):
            found[name] = new + name[len(old) :]
    return found


def promised(
    before: Mapping[str, tuple[str, int, bytes]], preview: Preview
) -> dict[str, tuple[str, bytes]]:
    """Return the promise of the net changes about the earlier files."""
    there = visible(before)
    after = {new: there[old] for old, new in places(before, preview).items()}
    for change in preview.change_set.changes:
        if change.content is not None:
            after[(change.new_path or change.path).text] = ("file", change.content)
    return after
