"""The dispatch of events to panes, checked for completeness by the type checker."""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

from obsidian_agent.agent.events import (
    ActionsOffered,
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
    unlisted,
)
from obsidian_agent.tui.widgets.transcript import Citations, describe_lookup

if TYPE_CHECKING:
    from obsidian_agent.agent.events import AgentEvent, ReadEvent, RunEvent
    from obsidian_agent.tui.turn.controller import TurnController, TurnView
    from obsidian_agent.tui.widgets.panes import Panes

PROPOSE_PLAN = "propose_plan"
_PLAN_STARTS = ("```json\n{", "```\n{", "\n{\n")


class StreamedAnswer:
    """The streamed text of one turn. Prose is displayed, the JSON of a plan is not."""

    def __init__(self) -> None:
        self._text = ""
        self._displayed = 0

    def feed(self, piece: str) -> str:
        """Append a piece of text. Return the part that can be displayed now."""
        self._text += piece
        stripped = self._text.lstrip()
        if stripped.startswith(("{", "```json", "<")) or "```".startswith(stripped[:3]):
            return ""
        plan_starts = [self._text.find(start) for start in _PLAN_STARTS if start in self._text]
        end = min(plan_starts, default=len(self._text))
        new_text = self._text[self._displayed : end]
        self._displayed = max(self._displayed, end)
        return new_text


class Router:
    """Sends each event to its pane, or to the controller if it changes the state of the turn."""

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
                self._stream_text(event)
            case PlanningRetry():
                chat.transcript.end_stream(keep=False)
                self._answer = StreamedAnswer()
                why = event.problems[0].sentence if event.problems else "The answer has no plan."
                chat.transcript.add_entry(
                    "note",
                    f"{why} Asking the model again ({event.attempt} of {event.attempts}).",
                )
            case Answer():
                chat.transcript.end_stream(event.text)
                sources = unlisted(event.text, event.sources)
                chat.transcript.cite(Citations(sources, event.also_sent))
                if event.health is not None:
                    self._view.show_health(event.health)
            case ActionsOffered():
                self._view.ask(event)
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
                chat.transcript.end_stream(mark="interrupted")
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
                self._show_lookup(event)
            case (
                RunStarted()
                | StepStarted()
                | StepFinished()
                | StepSkipped()
                | StepRetrying()
                | StepFailed()
                | RunFinished()
            ):
                self._show_run(event)
            case _:
                assert_never(event)

    def _show_lookup(self, event: ReadEvent) -> None:
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
                activity.start("Using tools")
            case ToolCallFinished():
                if event.problem is not None:
                    transcript.add_entry("note", event.problem.sentence)
                activity.start("Thinking")
            case ShareRequested():
                activity.start("Waiting for your answer")
            case ShareDecided():
                if event.decision.args is not None:
                    transcript.add_entry("note", "You changed the arguments. The tool runs again.")
                    activity.start("Using tools")
                else:
                    transcript.add_entry("note", _decision_text(event))
                    activity.start("Thinking")
            case Notice():
                transcript.add_entry("bad" if event.alarm else "note", event.problem.sentence)
            case TokensUsed():
                activity.tokens(event.prompt + event.completion)
            case RoundsUsedUp():
                transcript.add_entry(
                    "note",
                    f"The model used tools {event.rounds} times without an answer. "
                    "Send any message to let it continue.",
                )
            case _:
                assert_never(event)

    def _show_run(self, event: RunEvent) -> None:
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

    def _stream_text(self, event: TextDelta) -> None:
        chat = self._panes.chat
        chat.activity.count(len(event.text))
        if event.thinking:
            chat.transcript.think(event.text)
            return
        text = self._answer.feed(event.text)
        if text:
            chat.transcript.stream(text)
        else:
            chat.transcript.end_thinking()


def _decision_text(event: ShareDecided) -> str:
    request, decision = event.request, event.decision
    if request.text:
        return "Not allowed." if decision.scope == "no" else "Allowed."
    sent = len(decision.chosen(request))
    if not sent:
        return "Nothing was sent."
    return f"Sent {sent} of {len(request.items)} to {request.provider}."
