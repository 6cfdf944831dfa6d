"""A session without a vault: notes in a dictionary, previews made by hand, runs that only pretend. For tests and the demo."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from typing import Any

from obsidian_agent.agent.events import (
    AgentEvent,
    Answer,
    Candidate,
    Effects,
    ExecutionResult,
    NeedsInput,
    PlanReady,
    PreviewReady,
    PreviewStarted,
    RunFinished,
    RunStarted,
    StepFailed,
    StepFinished,
    StepRetrying,
    StepSkipped,
    StepStarted,
    TextDelta,
    TurnFailed,
    TurnStarted,
)
from obsidian_agent.agent.privacy.consent import ApproveShare
from obsidian_agent.errors import JournalError, ObsidianAgentError, Problem, VaultError
from obsidian_agent.journal.changes import RunChange
from obsidian_agent.journal.records import HistoryEntry, StepOutcome, UndoPoint
from obsidian_agent.journal.recovery import InterruptedPath, InterruptedRun, RecoveryResult
from obsidian_agent.journal.undo import UndoResult
from obsidian_agent.offline.names import Surroundings
from obsidian_agent.offline.recipe import Recipe
from obsidian_agent.plan.model import ActionPlan
from obsidian_agent.plan.result import Flag, Instance, Preview
from obsidian_agent.services.focus import Focus
from obsidian_agent.services.form import Form
from obsidian_agent.services.macro import Imported, Macro
from obsidian_agent.services.offline_planner import from_macro
from obsidian_agent.services.runs import ShownRun
from obsidian_agent.services.vault_agents.library import Standing
from obsidian_agent.tools.core.tool import EditorPosition, Risk, RunContext, Selection
from obsidian_agent.vault.index.keeper import IndexStatus
from obsidian_agent.vault.paths.path import VaultPath
from obsidian_agent.vault.views.changes import ChangeSet, NetChange
from obsidian_agent.vault.views.diff import unified_diff

NOW = datetime(2025, 12, 16, 9, 30)


def vault_path(text: str) -> VaultPath:
    """A path without the gate, so that hostile names reach the widgets."""
    path = object.__new__(VaultPath)
    for name, value in (("text", text), ("_nfc", None), ("_key", None), ("_parent", None)):
        object.__setattr__(path, name, value)
    return path


def plan_of(steps: Sequence[Mapping[str, Any]] | None = None, **fields: Any) -> ActionPlan:
    """A plan; three steps unless given."""
    document = {
        "version": "1.0",
        "goal": "Make a project note for each selected bullet",
        "assumptions": ["Projects live in Projects/", "The bullets are top-level items"],
        "riskLevel": "writes",
        "steps": steps
        if steps is not None
        else [
            {
                "id": "bullets",
                "tool": "util.parseMarkdownBullets",
                "args": {"text": "${selection}"},
                "preview": "Read the selected bullets",
            },
            {
                "id": "notes",
                "tool": "vault.createFile",
                "args": {"path": "Projects/${item.text}.md", "content": "# ${item.text}\n"},
                "preview": "Create a note for each bullet",
                "foreach": {"from": "$steps.bullets.items", "itemName": "item"},
            },
            {
                "id": "links",
                "tool": "editor.replaceSelection",
                "args": {"text": "links"},
                "preview": "Replace the bullets by links",
            },
        ],
    } | fields
    return ActionPlan.model_validate(document)


def change(
    kind: str,
    path: str,
    new_path: str | None = None,
    content: bytes | None = None,
    folder: bool = False,
) -> NetChange:
    """A net change of any path."""
    before = None if kind in ("create", "mkdir") else vault_path(path)
    renamed = vault_path(new_path) if new_path else None
    return NetChange(kind, vault_path(path), renamed, before, content, folder)  # type: ignore[arg-type]


def preview_of(plan: ActionPlan, changes: Sequence[NetChange], **fields: Any) -> Preview:
    """A preview with one instance a step."""
    instances = tuple(
        Instance(step.id, step.id, None, step.tool, step.args, "ready") for step in plan.steps
    )
    given: dict[str, Any] = {
        "instances": instances,
        "risk": Risk.WRITES,
        "plan_hash": "0" * 64,
    } | fields
    return Preview(
        plan=plan,
        context=RunContext("Vault", NOW),
        change_set=ChangeSet((), tuple(changes)),
        **given,
    )


Report = partial(UndoResult, run_id="r1")
"""What an undo answers."""


def entry(
    run_id: str,
    time: str,
    goal: str,
    status: Any = "done",
    effects: Effects | None = None,
    *,
    undone: bool = False,
) -> HistoryEntry:
    """A run of the past."""
    return HistoryEntry(
        run_id=run_id,
        time=time,
        goal=goal,
        status=status,
        effects=effects or Effects(),
        undone=undone,
        undoable=True,
    )


def interrupted(
    run_id: str, time: str, goal: str, *paths: str, kind: Any = "run"
) -> InterruptedRun:
    """A run that a crash cut."""
    return InterruptedRun(
        run_id=run_id,
        kind=kind,
        time=time,
        goal=goal,
        paths=tuple(InterruptedPath(path, "before") for path in paths),
        leftovers=0,
    )


def saved(
    name: str,
    plan: ActionPlan | None = None,
    description: str | None = None,
    standing: Standing = "trusted",
) -> Macro:
    """A macro of the person's."""
    return Macro(name, plan or plan_of(), description, standing=standing, sha256="5a" * 32)


@dataclass
class FakeRuns:
    """Runs of the past. `reports` are what the next undos answer."""

    calls: list[tuple[Any, ...]]
    entries: list[HistoryEntry] = field(default_factory=list)
    broken: list[InterruptedRun] = field(default_factory=list)
    reports: list[UndoResult] = field(default_factory=list)
    previewed: UndoResult | None = None
    """What the previews of an undo answer, if that is not the next report."""

    def history(self, limit: int = 50) -> list[HistoryEntry]:
        return self.entries[:limit]

    def plan_of(self, run_id: str) -> ActionPlan:
        return plan_of()

    def show(self, run_id: str, is_cancelled: Callable[[], bool] = lambda: False) -> ShownRun:
        run = next((run for run in self.entries if run.run_id == run_id), None)
        if run is None:
            raise JournalError(f"There is no run {run_id}.", code="RUN_NOT_FOUND")
        effects = run.effects
        changes = [
            *(RunChange(kind="create", path=path, after="1") for path in effects.created),
            *(RunChange(kind="delete", path=path, before="1") for path in effects.deleted),
            *(
                RunChange(kind="modify", path=path, before="1", after="2")
                for path in effects.modified
            ),
            *(RunChange(kind="rename", path=old, new_path=new) for old, new in effects.renamed),
        ]
        texts: dict[str | None, bytes | None] = {None: None, "1": b"one\n", "2": b"two\n"}
        return ShownRun(
            entry=run,
            changes=tuple(
                (
                    change,
                    unified_diff(
                        texts[change.before], texts[change.after], change.path, change.path
                    ),
                )
                for change in changes
            ),
            plan_hash=None,
            risk="writes",
            steps=2,
            undone=frozenset(change.path for change in changes if run.undone),
        )

    def undo_points(self, run_id: str) -> list[UndoPoint]:
        return [
            UndoPoint(step=step.id, actions=number, clean=step.id != "links")
            for number, step in enumerate(plan_of().steps, 1)
        ]

    def step_outcomes(self, run_id: str) -> list[StepOutcome]:
        undone = any(call[0] == "undo" for call in self.calls)
        return [
            StepOutcome(
                step=step.id,
                state="undone" if undone else "applied",
                in_effect=0 if undone else 1,
                undone=1 if undone else 0,
                changes=1,
                text=step.id,
            )
            for step in plan_of().steps
        ]

    def undo(
        self,
        run_id: str | None,
        force: Collection[str] = (),
        skip: Collection[str] = (),
        to_step: str | None = None,
        only: Collection[str] = (),
    ) -> UndoResult:
        extras = [extra for extra in (to_step, frozenset(only)) if extra]
        self.calls.append(("undo", run_id, frozenset(force), frozenset(skip), *extras))
        return self.reports.pop(0) if self.reports else Report(restored=("Projects/Garden.md",))

    def undo_preview(
        self,
        run_id: str | None,
        *,
        redoing: bool = False,
        to_step: str | None = None,
        only: Collection[str] = (),
    ) -> UndoResult:
        if self.previewed is not None:
            return self.previewed
        return self.reports[0] if self.reports else Report(restored=("Projects/Garden.md",))

    def redo(self, force: Collection[str] = (), skip: Collection[str] = ()) -> UndoResult:
        self.calls.append(
            ("redo", frozenset(force), frozenset(skip)) if force or skip else ("redo",)
        )
        return self.reports.pop(0) if self.reports else Report(restored=("Projects/Garden.md",))

    def conflict_diff(self, run_id: str | None, path: str, *, redoing: bool = False) -> str:
        return unified_diff(b"mine\n", b"earlier\n", path, path)

    def examine(self) -> list[Problem]:
        return []

    def moved(self) -> None:
        return None

    def adopt(self) -> None:
        raise AssertionError("nothing was moved")

    def interrupted(self) -> list[InterruptedRun]:
        return self.broken

    def recover(self, run_id: str | None, finish: bool) -> list[RecoveryResult]:
        self.calls.append(("recover", run_id, finish))
        return []


@dataclass
class FakeSaved:
    """Saved actions in a list."""

    calls: list[tuple[Any, ...]]
    macros: list[Macro] = field(default_factory=list)
    to_import: Imported | None = None

    def list(self) -> list[Macro]:
        return sorted(self.macros, key=lambda macro: macro.name)

    def save(
        self,
        run_id: str,
        name: str,
        description: str | None = None,
        parameters: Mapping[str, str] | None = None,
        *,
        replacing: bool = False,
    ) -> None:
        if any(macro.name == name for macro in self.macros):
            raise ObsidianAgentError(f"There is an action “{name}” already.", code="MACRO_EXISTS")
        self.calls.append(("save", run_id, name, description, dict(parameters or {})))
        self.macros.append(saved(name, None, description))

    def accept(self, name: str, sha256: str) -> Macro:
        self.calls.append(("accept", name, sha256))
        self.macros[:] = [
            replace(macro, standing="trusted") if macro.name == name else macro
            for macro in self.macros
        ]
        return next(macro for macro in self.macros if macro.name == name)

    def count(self, name: str) -> None:
        self.calls.append(("count", name))

    def judge(self, document: Mapping[str, Any]) -> Sequence[Problem]:
        return [] if "plan" in document else [Problem("MACRO_INVALID", "An action has a plan.")]

    def edit(self, name: str, document: Mapping[str, Any]) -> Macro:
        self.calls.append(("edit", name, dict(document)))
        self.macros[:] = [
            replace(macro, description=document.get("description")) if macro.name == name else macro
            for macro in self.macros
        ]
        return self.macros[0]

    def rename(self, name: str, new_name: str) -> None:
        self.calls.append(("rename", name, new_name))
        self.macros[:] = [
            replace(macro, name=new_name) if macro.name == name else macro for macro in self.macros
        ]

    def delete(self, name: str) -> None:
        self.calls.append(("delete", name))
        self.macros[:] = [macro for macro in self.macros if macro.name != name]

    def export(self, name: str, file: str) -> None:
        self.calls.append(("export", name, file))

    def read(self, file: str) -> Imported:
        if self.to_import is None:
            raise ObsidianAgentError(f"{file} is no saved action.", code="MACRO_INVALID")
        return self.to_import

    def keep(self, imported: Imported, *, replacing: bool = False) -> None:
        self.calls.append(("keep", imported.macro.name, replacing))
        self.macros[:] = [macro for macro in self.macros if macro.name != imported.macro.name] + [
            imported.macro
        ]


@dataclass
class FakeSession:
    """Every call is recorded in `calls`. `script` holds the events of each turn, in order; without one a sample plan is made."""

    name: str = "Test vault"
    planner_name: str = "fake/planner"
    texts: dict[str, str] = field(
        default_factory=lambda: {
            "Daily/2025-12-16.md": "# Tuesday\n\n- Garden\n- Kitchen\n- Roof\n",
            "Ideas.md": "One\n",
        }
    )
    script: list[list[AgentEvent]] = field(default_factory=list)
    run_script: list[AgentEvent] | None = None
    calls: list[tuple[Any, ...]] = field(default_factory=list)
    focus: tuple[str | None, Selection | None, EditorPosition | None] = (None, None, None)
    pace: float = 0.0
    gate: asyncio.Event | None = None
    error: Exception | None = None
    likely: list[Candidate] = field(default_factory=list)
    models: None = None
    keeper: None = None

    def __post_init__(self) -> None:
        self.runs = FakeRuns(self.calls)
        self.saved = FakeSaved(self.calls)

    def called(self, name: str) -> list[tuple[Any, ...]]:
        """The recorded calls of one name, without the name."""
        return [call[1:] for call in self.calls if call[0] == name]

    @property
    def vault(self) -> FakeSession:
        return self

    @property
    def plans(self) -> FakeSession:
        return self

    def notes(self) -> list[str]:
        return sorted(self.texts)

    def read_note(self, path: str) -> str:
        if path not in self.texts:
            raise VaultError(f"There is no note {path}.", code="FILE_NOT_FOUND", path=path)
        return self.texts[path]

    def verify(self, approved: Preview) -> list[Problem]:
        return []

    def files_below(self, start: str) -> list[Any]:
        return []

    def settings_changed(self) -> None:
        self.calls.append(("settings_changed",))

    def open_in_obsidian(self, path: str, line: int | None = None) -> str:
        self.calls.append(("open_in_obsidian", path, line))
        return "uri"

    def watch_obsidian(self, tell: Callable[[Focus | None], None]) -> None:
        self.calls.append(("watch_obsidian", tell))

    def set_app_focused(self, looking: bool) -> None:
        self.calls.append(("set_app_focused", looking))

    def check_call(self, tool: str, args: Mapping[str, Any]) -> list[Problem]:
        return [] if args.get("query") else [Problem("ARGUMENT_INVALID", "'query' is missing.")]

    def follow(self, tell: Callable[[IndexStatus], None]) -> None:
        self.calls.append(("follow", tell))

    def unfollow(self) -> None:
        self.calls.append(("unfollow",))

    def refresh_soon(self) -> None:
        self.calls.append(("refresh_soon",))

    def warm_up(self) -> None:
        self.calls.append(("warm_up",))

    def set_focus(
        self, active_file: str | None, selection: Selection | None, cursor: EditorPosition | None
    ) -> None:
        self.focus = (active_file, selection, cursor)

    async def _wait(self) -> None:
        await asyncio.sleep(self.pace)
        if self.gate is not None:
            await self.gate.wait()

    async def _play(self, events: Sequence[AgentEvent]) -> AsyncIterator[AgentEvent]:
        for event in events:
            await self._wait()
            if self.error is not None:
                raise self.error
            yield event

    async def turn(
        self, message: str, approve: ApproveShare | None = None
    ) -> AsyncIterator[AgentEvent]:
        self.calls.append(("turn", message))
        yield TurnStarted(message)
        async for event in self._play(self.script.pop(0) if self.script else sample_turn()):
            yield event

    async def fill(
        self, candidate: Candidate | None, values: Mapping[str, Any]
    ) -> AsyncIterator[AgentEvent]:
        self.calls.append(("fill", candidate.title if candidate else None, dict(values)))
        async for event in self._play(self.script.pop(0) if self.script else sample_turn()):
            yield event

    async def preview_plan(
        self,
        document: Mapping[str, Any],
        disabled: frozenset[str] = frozenset(),
        values: Mapping[str, Any] | None = None,
        instruction: str | None = None,
        done: Mapping[str, Any] | None = None,
        agent: str = "",
    ) -> AsyncIterator[AgentEvent]:
        self.calls.append(("preview_plan", dict(document), disabled))
        if self.script:
            async for event in self._play(self.script.pop(0)):
                yield event
            return
        try:
            plan = ActionPlan.model_validate(document)
        except ValueError as error:
            yield TurnFailed(Problem("SCHEMA_INVALID", str(error)[:80]))
            return
        await self._wait()
        full = sample_preview(plan)
        kept = tuple(instance for instance in full.instances if instance.step_id not in disabled)
        changes = tuple(
            c for c in full.change_set.changes if c.kind != "create" or "notes" not in disabled
        )
        yield PreviewReady(replace(full, instances=kept, change_set=ChangeSet((), changes)))

    def reject(self, preview: Preview) -> None:
        self.calls.append(("reject", preview))

    async def execute(
        self, preview: Preview, cancel: threading.Event, by: str = "person"
    ) -> AsyncIterator[AgentEvent]:
        self.calls.append(("execute", preview))
        events = self.run_script if self.run_script is not None else sample_run(preview)
        done = 0
        for event in events:
            await self._wait()
            if self.error is not None:
                raise self.error
            if cancel.is_set() and not isinstance(event, RunFinished):
                break
            done += isinstance(event, StepFinished)
            yield event
            if isinstance(event, RunFinished):
                return
        yield RunFinished(
            ExecutionResult(
                "r1",
                "cancelled",
                False,
                "error",
                done,
                len(preview.instances),
                undo_available=done > 0,
            )
        )

    def diff(self, change: NetChange) -> str:
        self.calls.append(("diff", change.path.text))
        before = (
            None
            if change.before is None
            else self.texts.get(change.before.text, "").encode("utf-8", "replace")
        )
        after = (
            None
            if change.kind == "delete"
            else change.content
            if change.content is not None
            else before
        )
        return unified_diff(before, after, change.path.text, (change.new_path or change.path).text)

    def recipes(self) -> list[Recipe]:
        return []

    def form(self, name: str) -> Form:
        macro = next(macro for macro in self.saved.macros if f"macro:{macro.name}" == name)
        return Form(from_macro(macro), Surroundings(None, RunContext("Vault", NOW)))  # type: ignore[arg-type]

    def suggest(self, message: str, model: str | None = None) -> list[Candidate]:
        self.calls.append(("suggest", message))
        return self.likely

    async def run_recipe(
        self, name: str, values: Mapping[str, Any], instruction: str | None = None
    ) -> AsyncIterator[AgentEvent]:
        self.calls.append(("run_recipe", name, dict(values), instruction))
        async for event in self._play(self.script.pop(0) if self.script else sample_turn()):
            yield event

    async def run_macro(self, name: str, values: Mapping[str, Any]) -> AsyncIterator[AgentEvent]:
        self.calls.append(("run_macro", name, dict(values)))
        async for event in self._play(self.script.pop(0) if self.script else sample_turn()):
            yield event


def sample_preview(plan: ActionPlan) -> Preview:
    """Ten new notes, one edited, one renamed, one deleted."""
    names = (
        "Garden",
        "Kitchen",
        "Roof",
        "Taxes 2025",
        "Holiday in Norway",
        "Bike repair",
        "Reading list",
        "Choir",
        "Sourdough",
        "Attic",
    )
    daily = (
        "# Tuesday\n\n" + "".join(f"- [[{name}]]\n" for name in names) + "\nSome words that stay.\n"
    )
    changes = [
        change(
            "create",
            f"Projects/{name}.md",
            content=f"# {name}\n\nStatus: open\nCreated: 2025-12-16\n".encode(),
        )
        for name in names
    ]
    changes.append(change("modify", "Daily/2025-12-16.md", content=daily.encode()))
    changes.append(change("mkdir", "Projects", folder=True))
    instances = [Instance("bullets", "bullets", None, "util.parseMarkdownBullets", {}, "ready")]
    instances += [
        Instance(f"notes_{index}", "notes", index, "vault.createFile", {}, "ready")
        for index in range(10)
    ]
    instances.append(Instance("links", "links", None, "editor.replaceSelection", {}, "ready"))
    return preview_of(
        plan,
        sorted(changes, key=lambda c: c.path.text),
        instances=tuple(instances),
        flags=(Flag("notNamed", "The message does not name this note.", "Daily/2025-12-16.md"),),
    )


def sample_turn(plan: ActionPlan | None = None) -> list[AgentEvent]:
    """A model that thinks, writes a plan as JSON, and gets it previewed."""
    plan = plan or plan_of()
    preview = sample_preview(plan)
    pieces = [
        TextDelta("The bullets are projects. ", thinking=True),
        TextDelta("One note each, then links.", thinking=True),
        TextDelta('{"version": "1.0", '),
    ]
    return [
        *pieces,
        TextDelta('"goal": "…"}'),
        PlanReady(plan),
        PreviewStarted(preview),
        PreviewReady(preview),
    ]


def sample_run(preview: Preview, run_id: str = "r1") -> list[AgentEvent]:
    """Every instance succeeds."""
    total = len(preview.instances)
    events: list[AgentEvent] = [RunStarted(run_id, total)]
    paths = [c.path.text for c in preview.change_set.changes]
    for number, instance in enumerate(preview.instances, 1):
        events.append(StepStarted(instance.step_id, instance.name, f"Step {instance.name}"))
        events.append(
            StepFinished(
                instance.step_id,
                instance.name,
                number,
                total,
                1.5,
                tuple(paths[number - 1 : number]),
            )
        )
    changes = preview.change_set.changes
    effects = Effects(
        created=tuple(c.path.text for c in changes if c.kind == "create"),
        modified=tuple(c.path.text for c in changes if c.kind == "modify"),
        deleted=tuple(c.path.text for c in changes if c.kind == "delete"),
        folders=tuple(c.path.text for c in changes if c.kind == "mkdir"),
    )
    events.append(
        RunFinished(
            ExecutionResult(
                run_id, "done", True, "done", total, total, effects=effects, undo_available=True
            )
        )
    )
    return events


def mixed_run() -> list[AgentEvent]:
    """One of everything."""
    there_already = Problem("FILE_EXISTS", "It was there already, unchanged.", path="Projects/A.md")
    io_error = Problem("IO_ERROR", "The disk is busy.", path="Projects/B.md")
    conflict = Problem("CONFLICT", "The file changed since the preview.", path="Projects/D.md")
    result = ExecutionResult(
        "r2",
        "conflict",
        False,
        "error",
        2,
        4,
        errors=(conflict,),
        warnings=(there_already,),
        effects=Effects(created=("Projects/B.md",)),
        undo_available=True,
    )
    return [
        RunStarted("r2", 4),
        StepStarted("a", "a", "First"),
        StepFinished("a", "a", 1, 4, 2.0, ("Projects/A.md",)),
        StepRetrying("b", "b", 1, 3, 250, io_error),
        StepFinished("b", "b", 2, 4, 900.0, ("Projects/B.md",)),
        StepSkipped("c", "c", "depends on a failed step", 3, 4),
        StepFailed("d", "d", conflict),
        RunFinished(result),
    ]


def sample_answer() -> list[AgentEvent]:
    """An answer in words, streamed."""
    text = "You have **three** open projects:\n\n1. Garden\n2. Kitchen\n3. Roof\n\n"
    text += "> The roof is the oldest one.\n\nSee `Projects/` for all of them."
    pieces: list[AgentEvent] = [TextDelta(text[at : at + 12]) for at in range(0, len(text), 12)]
    return [*pieces, Answer(text, ("Projects/Garden.md", "Projects/Roof.md"))]


def sample_candidates() -> list[AgentEvent]:
    """Two meanings, one of which lacks a value."""
    one = Candidate("Rename a tag everywhere", plan_of(), {"from": "todo", "to": "task"}, ())
    two = Candidate(
        "Move notes to a folder",
        plan_of(parameters={"folder": {"description": "Where they go", "type": "path"}}),
        {"tag": "todo"},
        ("folder",),
    )
    return [NeedsInput("“todo to task” can mean several things.", (one, two))]


def history_entries() -> list[HistoryEntry]:
    """Three runs."""
    return [
        entry(
            "r3",
            "2025-12-16T09:30:00+01:00",
            "Make a project note for each selected bullet",
            effects=Effects(created=("a", "b"), modified=("c",)),
        ),
        entry(
            "r2",
            "2025-12-16T06:12:00+01:00",
            "Rename #todo to #task",
            "conflict",
            effects=Effects(modified=("a",) * 12),
        ),
        entry(
            "r1",
            "2025-12-14T18:00:00+01:00",
            "Sort the inbox",
            undone=True,
            effects=Effects(renamed=(("a", "b"),)),
        ),
    ]
