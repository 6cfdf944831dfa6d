"""From events to panes: one `match`, complete by the type checker."""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

from obsidian_agent.agent.events import (
    Answer,
    NeedsInput,
    Notice,
    PlanningRetry,
    PlanReady,
    PreviewReady,
    PreviewStarted,
    RoundsUsedUp,
    RunFinished,
    RunStarted,
    ShareDecided,
    ShareRequested,
    StepFailed,
    StepFinished,
    StepRetrying,
    StepSkipped,
    StepStarted,
    TextDelta,
    TokensUsed,
    ToolCallFinished,
    ToolCallStarted,
    TurnFailed,
    TurnStarted,
)
from obsidian_agent.tui.widgets.transcript import Citations, describe_lookup

if TYPE_CHECKING:
    from obsidian_agent.agent.events import AgentEvent, LookEvent, RunEvent
    from obsidian_agent.tui.turn.controller import TurnController, TurnView
    from obsidian_agent.tui.widgets.panes import Panes

PROPOSE_PLAN = "propose_plan"
_PLAN_STARTS = ("```json\n{", "```\n{", "\n{\n")


class StreamedAnswer:
    """Streamed text of one turn: prose is shown as it comes, the JSON of a plan is only counted."""

    def __init__(self) -> None:
        self._text = ""
        self._shown = 0

    def take(self, piece: str) -> str:
        """Add a piece; returns what of the text may be shown now."""
        self._text += piece
        stripped = self._text.lstrip()
        if stripped.startswith(("{", "```json", "<")) or "```".startswith(stripped[:3]):
            return ""
        end = min(
            (at for start in _PLAN_STARTS if (at := self._text.find(start)) >= 0),
            default=len(self._text),
        )
        fresh = self._text[self._shown : end]
        self._shown = max(self._shown, end)
        return fresh


class Router:
    """Shows each event where it belongs; what changes the state of the turn goes to its controller."""

    def __init__(self, turn: TurnController, panes: Panes, view: TurnView) -> None:
        self._turn = turn
        self._panes = panes
        self._view = view
        self._answer = StreamedAnswer()

    def show(self, event: AgentEvent) -> None:
        """Show one event."""
        turn, chat = self._turn, self._panes.chat
        if isinstance(
            event, Answer | NeedsInput | PreviewReady | TurnFailed | RoundsUsedUp | RunFinished
        ):
            turn.concluded = True
        match event:
            case TurnStarted():
                self._answer = StreamedAnswer()
            case TextDelta():
                self._text(event)
            case PlanningRetry():
                chat.transcript.end_stream(keep=False)
                self._answer = StreamedAnswer()
                why = event.problems[0].sentence if event.problems else "no plan in it"
                chat.transcript.add_entry(
                    "note",
                    f"The answer was no valid plan: {why} Asking again ({event.attempt} of {event.attempts}).",
                )
            case Answer():
                chat.transcript.end_stream(event.text)
                chat.transcript.cite(Citations(event.sources, event.also_sent))
            case NeedsInput():
                chat.transcript.end_stream(keep=False)
                self._view.ask(event)
            case PlanReady():
                chat.transcript.end_stream(keep=False)
                turn.plan_ready(event)
            case PreviewStarted():
                turn.preview_started(event.partial)
            case PreviewReady():
                chat.transcript.end_stream(keep=False)
                turn.preview_ready(event.preview)
            case TurnFailed():
                chat.transcript.end_stream(mark="broke off here")
                turn.failed(event.problem, event.problems)
            case (
                ToolCallStarted()
                | ToolCallFinished()
                | ShareRequested()
                | ShareDecided()
                | Notice()
                | TokensUsed()
                | RoundsUsedUp()
            ):
                self._look(event)
            case (
                RunStarted()
                | StepStarted()
                | StepFinished()
                | StepSkipped()
                | StepRetrying()
                | StepFailed()
                | RunFinished()
            ):
                self._run(event)
            case _:
                assert_never(event)

    def _look(self, event: LookEvent) -> None:
        activity, transcript = self._panes.chat.activity, self._panes.chat.transcript
        match event:
            case ToolCallStarted():
                transcript.end_stream()
                self._answer = StreamedAnswer()
                if event.tool == PROPOSE_PLAN:
                    activity.start("Checking the plan")
                    return
                transcript.add_entry(
                    "note", describe_lookup(event.purpose, dict(event.args), event.why)
                )
                activity.start("Looking around")
            case ToolCallFinished():
                if event.problem is not None:
                    transcript.add_entry("note", event.problem.sentence)
                activity.start("Thinking")
            case ShareRequested():
                activity.start("Waiting for your answer")
            case ShareDecided():
                if event.decision.args is not None:
                    transcript.add_entry("note", "You changed the arguments; looking again.")
                    activity.start("Looking around")
                    return
                if event.request.text:
                    transcript.add_entry(
                        "note", "Allowed." if event.decision.scope != "no" else "Not allowed."
                    )
                    activity.start("Thinking")
                    return
                sent, asked = len(event.decision.chosen(event.request)), len(event.request.items)
                transcript.add_entry(
                    "note",
                    f"Sent {sent} of {asked} to {event.request.provider}."
                    if sent
                    else "Nothing was sent.",
                )
                activity.start("Thinking")
            case Notice():
                transcript.add_entry("bad" if event.alarm else "note", event.problem.sentence)
            case TokensUsed():
                activity.tokens(event.prompt + event.completion)
            case RoundsUsedUp():
                transcript.add_entry(
                    "note",
                    f"{event.rounds} rounds of looking around without an answer. Say anything to let it go on.",
                )
            case _:
                assert_never(event)

    def _run(self, event: RunEvent) -> None:
        progress = self._panes.work.progress
        match event:
            case RunStarted():
                progress.started(event)
            case StepStarted():
                progress.step_started(event)
            case StepFinished():
                progress.step_finished(event)
            case StepSkipped():
                progress.step_skipped(event)
            case StepRetrying():
                progress.step_retrying(event)
            case StepFailed():
                progress.step_failed(event)
            case RunFinished():
                self._turn.run_finished(event.result)
            case _:
                assert_never(event)

    def _text(self, event: TextDelta) -> None:
        chat = self._panes.chat
        chat.activity.count(len(event.text))
        if event.thinking:
            chat.transcript.think(event.text)
            return
        shown = self._answer.take(event.text)
        if shown:
            chat.transcript.stream(shown)
        else:
            chat.transcript.end_thinking()
