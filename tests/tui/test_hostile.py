"""Names and texts that try to be markup, actions or terminal commands, in every place that shows them."""

from __future__ import annotations

import unicodedata
from dataclasses import replace

from textual.widgets import Input

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
from obsidian_agent.errors import ObsidianAgentError, Problem
from obsidian_agent.journal.undo import UndoConflict
from obsidian_agent.plan.result import Flag
from tui.driving import Driver, driving
from tui.fakes import FakeSession, Report, change, entry, interrupted, plan_of, preview_of, saved

# Whatever part of it is taken for markup, the whole does not read as it is any more.
MARKUP = "[/x][@click=app.bell]W[/][[A]][bold]u[t=x, v={'a[0]'}]$primary \\[x]"
TERMINAL = "a\x1b[8mb\x1b]52;c;AAAA\x07\x9b2Jx\u202egpj\u200bb\x08\x08line\nbreak\ud800"


def clean(text: str) -> bool:
    """Whether a terminal would only draw it."""
    return not any(
        unicodedata.category(char) in ("Cc", "Cs", "Cf") and char != "\n" for char in text
    )


async def tour(app: Driver, bad: str) -> list[str]:
    """Every place that shows foreign text, one after the other; what the screen looked like."""
    seen: list[str] = []

    async def look(*keys: str) -> None:
        if keys:
            await app.press(*keys)
        seen.append(app.screen())

    await look("f2")
    await look("tab", "e")
    await look("escape")
    await look("delete")
    await look("escape", "escape", "f3")
    await app.press("escape", "ctrl+p")
    await app.press(*"run sav")
    await app.until(lambda: "Run Saved Action" in app.screen())
    await look()
    await look("escape", "escape", "ctrl+o")
    await look("enter")
    await app.send("first")
    await look()
    await app.send("second")
    await look()
    await look("escape")
    await app.send("third")
    await look()
    app.wait_out_grace()
    for _ in range(3):
        await look("p")
    for _ in range(12):
        await look("down")
    await look("enter")
    await look("escape", "e")
    await look("escape", "a")
    await look("m")
    await look("escape", "u")
    await look("enter")
    await look("escape", "escape")
    app.app.notify(bad, markup=False)
    await look()
    return seen


def session_with(bad: str) -> FakeSession:
    """A session that says `bad` wherever it can."""
    session = FakeSession(name=bad, planner_name=bad)
    session.texts = {f"{bad}.md": f"# {bad}\n\n{bad}\n"}
    problem = Problem("X", bad, step_id=bad, instance=bad, path=bad)
    steps = [{"id": "s", "tool": bad, "args": {"text": bad, "path": f"{bad}/x"}, "preview": bad}]
    plan = plan_of(steps, goal=bad, assumptions=[bad])
    changes = [
        change("delete", f"{bad}/old.md"),
        change("rename", f"{bad}.md", f"{bad} 2.md"),
        change("modify", f"{bad}.md", content=f"{bad}\n{bad}\n".encode("utf-8", "replace")),
        change("mkdir", bad, folder=True),
    ]
    flags = (Flag("notNamed", bad, bad),)
    preview = preview_of(plan, changes, warnings=(problem,), flags=flags)
    preview = replace(
        preview, instances=tuple(replace(instance, reason=bad) for instance in preview.instances)
    )
    session.script = [
        [
            TextDelta(bad, thinking=True),
            TextDelta(bad),
            PlanningRetry(1, 2, (problem,)),
            TextDelta(bad),
            Answer(bad, (bad,)),
        ],
        [
            NeedsInput(
                bad,
                (
                    Candidate(bad, plan, {bad: bad}, (), "one"),
                    Candidate(bad, None, {}, (bad,), "two"),
                ),
            )
        ],
        [TurnFailed(problem, (problem,)), PlanReady(plan, (bad,)), PreviewReady(preview)],
    ]
    result = ExecutionResult(
        "r1",
        "done",
        True,
        "done",
        1,
        1,
        errors=(problem,),
        warnings=(problem,),
        effects=Effects(
            created=(bad,),
            modified=(bad,),
            deleted=(bad,),
            renamed=((bad, bad),),
            folders=(bad,),
            commands=(bad,),
        ),
        undo_available=True,
    )
    run: list[AgentEvent] = [
        RunStarted("r1", 1),
        StepStarted(bad, bad, bad),
        StepFinished(bad, bad, 1, 1, 1.0, (bad,)),
    ]
    run += [
        StepSkipped(bad, bad, bad, 1, 1),
        StepRetrying(bad, bad, 1, 2, 1.0, problem),
        StepFailed(bad, bad, problem),
        RunFinished(result),
    ]
    session.run_script = run
    session.runs.entries = [entry(bad, bad, bad, bad)]
    session.runs.reports = [Report(conflicts=(UndoConflict(bad, bad),), errors=(problem,))]
    session.saved.macros = [saved(bad, plan_of(parameters={"p": {"description": bad}}), bad)]
    return session


async def test_markup_is_shown_as_it_is() -> None:
    async with driving(session_with(MARKUP), size=(200, 50)) as app:
        seen = await tour(app, MARKUP)
        begins = MARKUP[:40]  # a line may be cut
        assert f"Run Saved Action: {begins}" in seen[5]
        assert sum(begins in text for text in seen) >= len(seen) - 2


async def test_nothing_that_a_terminal_obeys_is_drawn() -> None:
    async with driving(session_with(TERMINAL), size=(120, 40)) as app:
        seen = await tour(app, TERMINAL)
        assert [line for text in seen for line in text.split("\n") if not clean(line)] == []


async def test_a_click_on_a_name_runs_nothing() -> None:
    bad = "[@click=app.exit()]x[/]"
    async with driving(session_with(bad), size=(120, 40)) as app:
        app.session.script = app.session.script[2:]
        await app.send("plan")
        for y in range(2, 30, 2):
            await app.pilot.click(offset=(70, y))
        assert app.app.is_running
        assert app.session.called("execute") == []


async def test_texts_of_an_interrupted_run_and_of_errors_are_shown_as_they_are() -> None:
    bad = "[/x]\x1b[2J"
    session = FakeSession()
    session.runs.broken = [interrupted(bad, bad, bad, bad, kind=bad)]
    async with driving(session) as app:
        assert "[/x]␛[2J" in app.screen()
        await app.press("escape")
        session.error = ObsidianAgentError(bad)
        await app.send("x")
        assert "[/x]␛[2J" in app.transcript()


async def test_an_escape_split_over_chunks_is_made_visible() -> None:
    session = FakeSession(
        script=[[TextDelta("a\x1b]52;c;"), TextDelta("AAAA\x07b"), Answer("a\x1b]52;c;AAAA\x07b")]]
    )
    async with driving(session) as app:
        await app.send("x")
        assert "a␛]52;c;AAAA␇b" in app.transcript()
        assert clean(app.screen())


async def test_names_that_look_alike_are_marked() -> None:
    plan = plan_of()
    changes = [
        change("create", "Notes/\u0422odo.md", content=b"x"),
        change("modify", "Notes/Todo .md", content=b"x"),
    ]
    session = FakeSession(script=[[PlanReady(plan), PreviewReady(preview_of(plan, changes))]])
    async with driving(session, size=(200, 50)) as app:
        await app.send("x")
        assert "mixed alphabets" in app.screen()
        assert "new" in app.screen()


async def test_a_long_goal_cannot_push_the_deletions_out_of_sight() -> None:
    plan = plan_of(goal="Create A.md" + "\n" * 300 + "x\n" * 300)
    changes = [change("create", f"{number}.md", content=b"x") for number in range(200)] + [
        change("delete", "Zettel.md")
    ]
    session = FakeSession(script=[[PlanReady(plan), PreviewReady(preview_of(plan, changes))]])
    async with driving(session, size=(80, 24)) as app:
        await app.send("x")
        assert "Deletes “Zettel.md”" in app.screen()
        assert "1 deleted" in app.screen()
        assert "Ready" in app.screen()


async def test_the_hostile_name_can_be_typed_into_a_form() -> None:
    session = FakeSession()
    session.saved.macros = [saved("[/x]")]
    async with driving(session) as app:
        await app.press("f2", "tab", "e")
        app.app.screen.query_one(Input).value = "[@click=app.exit]\x1b"
        await app.press("enter")
        assert session.called("rename") == [("[/x]", "[@click=app.exit]␛")]
