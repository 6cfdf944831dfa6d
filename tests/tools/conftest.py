"""A bench for tools: a real vault in a temporary folder, an overlay, and calls as in a plan."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from obsidian_agent.errors import ObsidianAgentError
from obsidian_agent.tools.core.tool import (
    EditorPosition,
    Proposal,
    RunContext,
    Selection,
    ToolContext,
)
from obsidian_agent.tools.registry import TOOLS
from obsidian_agent.vault.filesystem.store import VaultStore
from obsidian_agent.vault.paths import path as paths
from obsidian_agent.vault.paths.path import PathUse
from obsidian_agent.vault.views.disk import DiskView
from obsidian_agent.vault.views.overlay import OverlayVault

NOW = datetime(2026, 3, 14, 9, 30, tzinfo=UTC)
NOW_MS = NOW.timestamp() * 1000


@dataclass
class Bench:
    """One vault and one run; `run` folds a tool's proposal, so that the next call reads it."""

    folder: Path
    base: DiskView
    overlay: OverlayVault
    run_context: RunContext
    steps: int = 0
    last: Proposal[Any] | None = field(default=None)

    def propose(self, name: str, /, **args: Any) -> Proposal[Any]:
        """Return a tool's proposal for arguments of a plan, without folding it."""
        tool = TOOLS[name]
        return tool.propose(
            tool.input.model_validate(args), ToolContext(self.overlay, self.base, self.run_context)
        )

    def run(self, name: str, /, **args: Any) -> dict[str, Any]:
        """Return the output document of a call whose changes are folded."""
        self.last = self.propose(name, **args)
        self.overlay.apply(self.last.changes, self.steps)
        self.steps += 1
        return self.last.output.model_dump(mode="json", by_alias=True, exclude_none=True)

    def refusal(self, name: str, /, **args: Any) -> str:
        """Return the code of the error that refuses a call."""
        with pytest.raises(ObsidianAgentError) as caught:
            self.run(name, **args)
        return caught.value.problem().code

    @property
    def warnings(self) -> list[str]:
        """The codes of the warnings of the last call."""
        assert self.last is not None
        return [problem.code for problem in self.last.warnings]

    def text(self, path: str) -> str:
        """Return the content of a file after all calls."""
        return self.overlay.read(paths.parse(path, PathUse.READ)).decode()

    def exists(self, path: str) -> bool:
        """Return True if there is an entry of exactly this path after all calls."""
        return self.overlay.locate(paths.parse(path, PathUse.READ)) is not None

    def changes(self) -> list[tuple[str, str]]:
        """Kind and path of every net change."""
        return [(change.kind, change.path.text) for change in self.overlay.change_set().changes]

    def on_disk(self) -> dict[str, bytes]:
        """Every file of the folder with its bytes."""
        return {
            item.relative_to(self.folder).as_posix(): item.read_bytes()
            for item in self.folder.rglob("*")
            if item.is_file()
        }


MakeBench = Callable[..., Bench]


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[MakeBench]:
    """Make benches: `bench({"a.md": "text", "folder/": ""}, active="a.md", cursor=(0, 0))`."""
    stores: list[VaultStore] = []

    def make(
        files: Mapping[str, str | bytes] | None = None,
        *,
        active: str | None = None,
        selected: tuple[str, tuple[int, int] | None, tuple[int, int] | None] | None = None,
        cursor: tuple[int, int] | None = None,
        open_files: tuple[str, ...] = (),
    ) -> Bench:
        folder = tmp_path / f"vault{len(stores)}"
        folder.mkdir()
        for name, content in (files or {}).items():
            target = folder / name
            if name.endswith("/"):
                target.mkdir(parents=True, exist_ok=True)
                continue
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content.encode() if isinstance(content, str) else content)
        store = VaultStore.open(folder)
        stores.append(store)
        base = DiskView(store)
        context = RunContext(
            vault_name=store.name,
            now=NOW,
            active_file=paths.parse(active, PathUse.READ) if active else None,
            selection=Selection(selected[0], _position(selected[1]), _position(selected[2]))
            if selected
            else None,
            cursor=_position(cursor),
            open_files=tuple(paths.parse(path, PathUse.READ) for path in open_files),
        )
        return Bench(folder, base, OverlayVault(base, NOW_MS), context)

    yield make
    for store in stores:
        store.close()


def _position(pair: tuple[int, int] | None) -> EditorPosition | None:
    return None if pair is None else EditorPosition(*pair)
