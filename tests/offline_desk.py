"""The offline planner over a vault on disk, for tests of the planner and of its recipes."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from obsidian_agent.agent.events import Answer, PlanReady, TurnEvent
from obsidian_agent.agent.planner import PlanRequest
from obsidian_agent.plan.model import ActionPlan
from obsidian_agent.plan.policy import Policy
from obsidian_agent.plan.preview import dry_run
from obsidian_agent.plan.result import Preview
from obsidian_agent.services.macro import Macro
from obsidian_agent.services.offline_planner import OfflinePlanner
from obsidian_agent.services.run_context import note_settings
from obsidian_agent.tools.core.tool import EditorPosition, RunContext, Selection
from obsidian_agent.tools.registry import TOOLS
from obsidian_agent.vault.filesystem.store import VaultStore
from obsidian_agent.vault.paths.path import PathUse, parse
from obsidian_agent.vault.views.disk import DiskView

NOW = datetime(2026, 3, 14, 9, 30, tzinfo=UTC)

FILES: dict[str, str | bytes] = {
    "Inbox.md": "# Inbox\n\n- [ ] call the bank\n- [x] done\n- [ ] buy ${milk}\n",
    "Groceries.md": "## Dairy\n\n- milk\n\n## Fruit\n\n- apple\n",
    "Ideas.md": "- Alpha\n- [x] Beta: two\n\t- Gamma\n",
    "Projects/Website.md": "---\nstatus: open\n---\n# Goals\n\nfast\n\n# Risks\n\nslow colour\n",
    "Projects/Garden.md": "colour and colour\n",
    "Meetings/Retro.md": "---\ntags:\n  - x\n---\n# Retro\n\nwell done\n",
    "Archive/": "",
    "Templates/Meeting.md": "# {{title}}\n\n{{date:DD.MM.YYYY}} {{time}} ${literal} {{unknown}}\n",
    "Templates/Day.md": "# {{title}}\n{{date}}\n",
    "Twin/Plan.md": "",
    "Old/dusty.md": "#done\n",
    "Old/fresh.md": "#donelike #topic/done\n",
    "Other/Plan.md": "",
    ".obsidian/daily-notes.json": '{"folder": "Daily", "format": "YYYY/MM-DD", "template": "Templates/Day"}',
}


@dataclass
class Desk:
    """A vault, what is open in Obsidian, and the offline planner over both."""

    store: VaultStore
    macros: list[Macro] = field(default_factory=list)
    now: datetime = NOW
    kept: DiskView | None = None
    """One view for all calls, of a vault that does not change."""

    def request(
        self,
        message: str,
        active: str | None = None,
        selected: Selection | None = None,
        pick: int | None = None,
        **params: Any,
    ) -> PlanRequest:
        self.context = RunContext(
            vault_name="vault",
            now=self.now,
            active_file=parse(active, PathUse.READ) if active else None,
            selection=selected,
            notes=note_settings(self.store.obsidian_config),
        )
        return PlanRequest(message, self.context, params=params, pick=pick)

    @property
    def planner(self) -> OfflinePlanner:
        return OfflinePlanner(lambda: self.kept or DiskView(self.store), TOOLS, lambda: self.macros)

    def decide(self, message: str, **around: Any) -> TurnEvent:
        return self.planner.decide(self.request(message, **around))

    def ask(self, question: str, **around: Any) -> Answer:
        event = self.planner.decide(self.request(question, **around), questions=True)
        assert isinstance(event, Answer), event
        return event

    def plan(self, message: str, **around: Any) -> ActionPlan:
        event = self.decide(message, **around)
        assert isinstance(event, PlanReady), event
        return event.plan

    def preview(self, message: str, **around: Any) -> Preview:
        return self.dry_run(self.plan(message, **around))

    def dry_run(self, plan: ActionPlan, values: Mapping[str, Any] | None = None) -> Preview:
        return dry_run(
            plan.to_json(),
            TOOLS,
            policy=Policy(allow_deletes=True),
            view=self.kept or DiskView(self.store),
            context=self.context,
            values=values,
        )

    def changes(self, message: str, **around: Any) -> dict[str, Any]:
        """Return the net effect: path -> text, new path of a rename, or kind."""
        done = self.preview(message, **around)
        assert not done.errors, [problem.to_json() for problem in done.errors]
        return effect(done)


def effect(done: Preview) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for change in done.change_set.changes:
        match change.kind:
            case "create" | "modify":
                assert change.content is not None
                found[change.path.text] = change.content.decode()
            case "rename":
                assert change.new_path is not None
                found[change.path.text] = f"-> {change.new_path.text}"
            case _:
                found[change.path.text] = change.kind
    return found


def grow_old(store: VaultStore, path: str) -> None:
    """Let a file have been changed last on the first day of 2026."""
    long_ago = datetime(2026, 1, 1, tzinfo=UTC).timestamp()
    os.utime(Path(store.real_path) / path, (long_ago, long_ago))


def lines(text: str, first: int, last: int) -> Selection:
    """Whole lines of a note, selected."""
    chosen = text.split("\n")[first : last + 1]
    return Selection(
        "\n".join(chosen), EditorPosition(first, 0), EditorPosition(last, len(chosen[-1]))
    )


IDEAS = lines(str(FILES["Ideas.md"]), 0, 2)
