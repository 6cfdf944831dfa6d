"""Names and texts that imitate markup, actions or terminal commands, in every place."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable

import pytest
from msgspec.structs import replace
from textual.widgets import Input

from faults import power_cut
from obsidian_agent.agent.events import (
    AgentEvent,
    Answer,
    Candidate,
    Effects,
    ExecutionResult,
    NeedsInput,
    PlanningRetry,
    PlanReady,
    PreviewReady,
    RunFinished,
    RunStarted,
    StepFailed,
    StepFinished,
    StepRetrying,
    StepSkipped,
    StepStarted,
    TextDelta,
    TurnFailed,
)
from obsidian_agent.bootstrap import Wiring, build_session
from obsidian_agent.errors import Problem
from obsidian_agent.journal.undo import UndoConflict
from obsidian_agent.journal.writer import Journal
from obsidian_agent.plan.result import Flag, Preview
from obsidian_agent.services.macro import Macro
from obsidian_agent.services.plans import Plans
from obsidian_agent.services.runs import Runs
from obsidian_agent.tui.screens.conflicts import Conflicts
from obsidian_agent.tui.screens.macros import SaveMacro
from obsidian_agent.vault.views.diff import unified_diff
from previews import create as new_file
from previews import modify, previewed, run
from tui.driving import Driver, driving
from tui.samples import append, change, create, plan_of, preview_of

# Whatever part of it is taken for markup, the whole does not read as it is any more.
MARKUP = "[/x][@click=app.bell]W[/][[A]][bold]u[t=x, v={'a[0]'}]$primary \\[x]"
TERMINAL = "a\x1b[8mb\x1b]52;c;AAAA\x07\x9b2Jx\u202egpj\u200bb\x08\x08line\nbreak\ud800"


def clean(text: str) -> bool:
    """Return True if a terminal would only draw it."""
    return not any(
        unicodedata.category(char) in ("Cc", "Cs", "Cf") and char != "\n" for char in text
    )


async def tour(app: Driver, bad: str, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Visit every place that shows foreign text; return what the screen looked like."""
    seen: list[str] = []
    problem = Problem("X", bad, step_id=bad, instance=bad, path=bad)
    preview = hostile_preview(bad)
    diff = unified_diff(b"a\n", f"{bad}\n".encode("utf-8", "replace"), bad, bad)
    monkeypatch.setattr(Plans, "diff", lambda plans, change: diff)
    monkeypatch.setattr(Runs, "step_outcomes", lambda runs, run_id: [])

    async def look(*keys: str) -> None:
        if keys:
            await app.press(*keys)
        seen.append(app.screen())

    await app.play(
        TextDelta(bad, thinking=True),
        TextDelta(bad),
        PlanningRetry(1, 2, (problem,)),
        TextDelta(bad),
        Answer(bad, (bad,)),
    )
    await look()
    await look("f2", "end")
    await look("tab", "r")
    await look("escape")
    await look("delete")
    await look("escape", "escape", "f3")
    await app.press("escape", "ctrl+p")
    await app.press(*"run mac")
    await app.until(lambda: "Run Macro" in app.screen())
    await look()
    await look("escape", "escape", "ctrl+o")
    await look("enter")
    one = Candidate(title=bad, plan=preview.plan, values={bad: bad}, missing=(), recipe="one")
    await app.play(
        NeedsInput(
            bad, (one, Candidate(title=bad, plan=None, values={}, missing=(bad,), recipe="two"))
        )
    )
    await look()
    await look("escape")
    await app.play(
        TurnFailed(problem, (problem,)), PlanReady(preview.plan, (bad,)), PreviewReady(preview)
    )
    app.panes.go("work")
    await look()
    for _ in range(3):
        await look("p")
    for _ in range(12):
        await look("down")
    await look("enter")
    await look("escape", "e")
    await look("escape")
    app.main.show_run(preview)
    await app.play(*hostile_run(bad))
    await look()
    app.app.push_screen(SaveMacro(preview.plan, bad))
    await app.settle()
    await look()
    await look("escape")
    app.app.push_screen(Conflicts([UndoConflict(bad, bad)], lambda path: diff))
    await app.settle()
    await look()
    await look("enter")
    await look("escape", "escape")
    app.app.notify(bad, markup=False)
    await look()
    return seen


def hostile_preview(bad: str) -> Preview:
    """Return a preview with `bad` wherever a plan or a path has text."""
    steps = [{"id": "s", "tool": bad, "args": {"text": bad, "path": f"{bad}/x"}, "preview": bad}]
    problem = Problem("X", bad, step_id=bad, instance=bad, path=bad)
    preview = preview_of(
        plan_of(steps, goal=bad, assumptions=[bad]),
        [
            change("delete", f"{bad}/old.md"),
            change("rename", f"{bad}.md", f"{bad} 2.md"),
            change("modify", f"{bad}.md", content=f"{bad}\n{bad}\n".encode("utf-8", "replace")),
            change("mkdir", bad, folder=True),
        ],
        warnings=(problem,),
        flags=(Flag("notNamed", bad, bad),),
    )
    instances = tuple(replace(instance, reason=bad) for instance in preview.instances)
    return replace(preview, instances=instances)


def hostile_run(bad: str) -> list[AgentEvent]:
    """Return one of every event of a run."""
    problem = Problem("X", bad, step_id=bad, instance=bad, path=bad)
    effects = Effects(
        created=(bad,),
        modified=(bad,),
        deleted=(bad,),
        renamed=((bad, bad),),
        folders=(bad,),
        commands=(bad,),
    )
    result = ExecutionResult(
        run_id="r1",
        status="done",
        success=True,
        outcome="done",
        completed_steps=1,
        total_steps=1,
        errors=(problem,),
        warnings=(problem,),
        effects=effects,
        undo_available=True,
    )
    return [
        RunStarted("r1", 1),
        StepStarted(bad, bad, bad),
        StepFinished(step_id=bad, instance=bad, completed=1, total=1, elapsed_ms=1.0, paths=(bad,)),
        StepSkipped(step_id=bad, instance=bad, reason=bad, completed=1, total=1),
        StepRetrying(
            step_id=bad, instance=bad, attempt=1, attempts=2, delay_ms=1.0, problem=problem
        ),
        StepFailed(bad, bad, problem),
        RunFinished(result),
    ]


def stored(bad: str) -> Callable[[Wiring], None]:
    """Store `bad` in the history and, where its rules allow, in the name of a macro."""

    def store(wiring: Wiring) -> None:
        goal = bad.replace("\ud800", "")
        name = bad if bad.isprintable() else "Deed"
        parameters = {"p": {"description": goal}}
        plan = plan_of([create("new", "A.md")], parameters=parameters)
        build_session(wiring).saved.put(Macro(name, plan, goal))
        with Journal.open(wiring.state, wiring.store) as journal:
            run(previewed(new_file("New.md", b"x"), goal=goal), wiring.store, journal)

    return store


def files_of(bad: str) -> dict[str, str]:
    """Return a note with `bad` in its text and, if the vault lists such files, its name."""
    text = bad.encode("utf-8", "replace").decode()
    return {f"{bad if bad.isprintable() else 'Note'}.md": f"# {text}\n\n{text}\n"}


async def test_markup_is_shown_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    async with driving(files=files_of(MARKUP), before=stored(MARKUP), size=(200, 50)) as app:
        seen = await tour(app, MARKUP, monkeypatch)
        begins = MARKUP[:40]  # a line may be truncated
        assert f"Run Macro: {begins}" in seen[6]
        assert sum(begins in text for text in seen) >= len(seen) - 2


async def test_nothing_that_a_terminal_obeys_is_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    async with driving(files=files_of(TERMINAL), before=stored(TERMINAL)) as app:
        seen = await tour(app, TERMINAL, monkeypatch)
        assert [line for text in seen for line in text.split("\n") if not clean(line)] == []


async def test_a_click_on_a_name_runs_nothing() -> None:
    preview = hostile_preview("[@click=app.exit()]x[/]")
    async with driving() as app:
        await app.play(PlanReady(preview.plan), PreviewReady(preview))
        for y in range(2, 30, 2):
            await app.pilot.click(offset=(70, y))
        assert app.app.is_running
        assert app.runs == []


async def test_texts_of_an_interrupted_run_and_of_errors_are_shown_as_they_are() -> None:
    bad = "[/x]\x1b[2J"

    def interrupt(wiring: Wiring) -> None:
        before = b"One\n", b"Two\n"
        operations = modify("Ideas.md", *before), new_file("New.md", b"x")
        with Journal.open(wiring.state, wiring.store) as journal, power_cut(1):
            run(previewed(*operations, goal=bad), wiring.store, journal)

    async with driving({"error": {"message": bad}}, before=interrupt) as app:
        assert "[/x]␛[2J" in app.screen()
        await app.press("escape")
        await app.send("x")
        assert "[/x]␛[2J" in app.transcript()


async def test_an_escape_split_over_chunks_is_made_visible() -> None:
    async with driving({"chunks": ["a\x1b]52;c;", "AAAA\x07b"]}) as app:
        await app.send("x")
        assert "a␛]52;c;AAAA␇b" in app.transcript()
        assert clean(app.screen())


async def test_names_that_look_alike_are_marked() -> None:
    steps = create("a", "Notes/\u0422odo.md"), append("b", "Notes/Todo.md", "x")
    async with driving(files={"Notes/Todo.md": "x\n"}, size=(200, 50)) as app:
        await app.preview(*steps)
        assert "mixed alphabets" in app.screen()
        assert "new" in app.screen()


async def test_a_long_goal_cannot_push_the_deletions_out_of_sight() -> None:
    plan = plan_of(goal="Create A.md" + "\n" * 300 + "x\n" * 300)
    changes = [change("create", f"{number}.md", content=b"x") for number in range(200)] + [
        change("delete", "Ideas.md")
    ]
    async with driving(size=(80, 24)) as app:
        await app.play(PlanReady(plan), PreviewReady(preview_of(plan, changes)))
        assert "Deletes “Ideas.md”" in app.screen()
        assert "1 deleted" in app.screen()
        assert "Ready" in app.screen()


async def test_the_hostile_name_can_be_typed_into_a_form() -> None:
    macro = Macro("[/x]", plan_of([create("new", "A.md")]))
    async with driving(before=lambda wiring: build_session(wiring).saved.put(macro)) as app:
        await app.press("f2", "tab", "r")
        app.app.screen.query_one(Input).value = "[@click=app.exit]\x1b"
        await app.press("enter")
        assert [macro.name for macro in app.session.saved.list()] == ["[@click=app.exit]␛"]
