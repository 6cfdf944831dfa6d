"""A conversation with the client of `acp`: messages, questions, plans, commands.

A plan is one tool call whose content is the diff of every file, and one permission covers the
whole. Before that answer no byte of the vault changes. A plan waits in the inbox from the moment
it is displayed until it is applied or dropped, so that none is lost with the client.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import AsyncGenerator, Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final, Literal, cast

from acp import AgentSideConnection, RequestError
from acp.helpers import (
    SessionUpdate as Update,
)
from acp.helpers import (
    start_tool_call,
    update_agent_message_text,
    update_agent_thought_text,
    update_available_commands,
    update_plan,
    update_tool_call,
    update_user_message_text,
)
from acp.schema import (
    AcceptElicitationResponse,
    AllowedOutcome,
    AvailableCommand,
    Cost,
    ElicitationFormSessionMode,
    ElicitationSchema,
    PermissionOption,
    PermissionOptionKind,
    SessionMode,
    SessionModeState,
    ToolCallUpdate,
    ToolKind,
    UsageUpdate,
)
from msgspec import Struct
from msgspec.structs import replace

from obsidian_agent.agent.events import (
    AgentEvent,
    Answer,
    Candidate,
    ExecutionResult,
    NeedsInput,
    Notice,
    PlanningRetry,
    PreviewReady,
    RoundsUsedUp,
    RunFinished,
    TextDelta,
    TokensUsed,
    ToolCallFinished,
    ToolCallStarted,
    TurnFailed,
    unlisted,
)
from obsidian_agent.agent.failures import explain
from obsidian_agent.agent.findings import findings
from obsidian_agent.agent.privacy.consent import REFUSED, UNASKED, ShareDecision, ShareRequest
from obsidian_agent.agent.result_text import describe_result
from obsidian_agent.errors import ObsidianAgentError, Problem
from obsidian_agent.integrations.acp_updates import (
    PlanProgress,
    StreamedText,
    ended,
    locations,
    pending_call,
    preview_content,
    safe_block,
    safe_line,
    started,
    text_content,
    texts_content,
    tool_kind,
)
from obsidian_agent.journal.undo import UndoResult
from obsidian_agent.plan.result import Preview
from obsidian_agent.services.model_turns import preview_request
from obsidian_agent.services.plan_review import PlanReview, put_aside
from obsidian_agent.services.plans import ApprovedBy, PreviewOptions
from obsidian_agent.services.session import Session
from obsidian_agent.services.waiting_plans import WaitingPlan, WaitingPlans
from obsidian_agent.terminal_text import counted
from obsidian_agent.threads.manager import (
    ActiveThread,
    ThreadManager,
    ThreadTurnEnded,
    ThreadTurnEvent,
)

MAX_CANDIDATES: Final = 3
MAX_PATHS: Final = 50
"""Files of an interrupted run that are listed."""

ASK_MODE: Final = "ask"
_MODES: Final = (
    SessionMode(
        id="plan",
        name="Plan",
        description="Answers questions and proposes changes, which need your permission.",
    ),
    SessionMode(id=ASK_MODE, name="Ask", description="Answers questions, proposes no changes."),
)
"""The modes of a session; the first one is the default."""

StopReason = Literal["end_turn", "cancelled"]

_PLAN_OPTIONS: Final[Mapping[str, tuple[str, PermissionOptionKind]]] = {
    "apply": ("Apply all of it", "allow_once"),
    "later": ("Not now: it waits in the inbox", "reject_once"),
    "drop": ("Drop it", "reject_once"),
}
_RECOVERY_OPTIONS: Final[Mapping[str, tuple[str, PermissionOptionKind]]] = {
    "back": ("Roll it back", "allow_once"),
    "finish": ("Finish it", "allow_once"),
    "later": ("Later", "reject_once"),
}
_COMMANDS: Final = {
    "undo": ("Undo the last run, or the run that you name", "run"),
    "redo": ("Redo what was undone last", ""),
    "plans": ("List the plans that wait for approval, or preview one", "id of a plan"),
    "drop": ("Dismiss an open question of the agent", ""),
}


class ConversationParts(Struct, frozen=True):
    """The session, threads and inbox of one conversation."""

    session: Session
    threads: ThreadManager
    waiting: WaitingPlans


class AcpOptions(Struct, frozen=True):
    """The parts of the command line that conversations need.

    `open` returns the parts of a new conversation. `describe` returns a question about sharing as
    lines. `complete` returns an answer with the findings that it asks for. All may block.
    """

    open: Callable[[], ConversationParts]
    describe: Callable[[ShareRequest], list[str]]
    complete: Callable[[Answer, Session], Answer]


class AcpClient(Struct, frozen=True):
    """The program at the other end. With `has_forms` it can ask its user by a form."""

    connection: AgentSideConnection
    name: str
    has_forms: bool = False


class _Question(Struct, frozen=True):
    """A question to the user: which candidate to take, then values of the names in `missing`."""

    candidates: tuple[Candidate, ...]
    missing: tuple[str, ...] = ()
    chosen: Candidate | None = None
    values: Mapping[str, str] = {}


class EditorConversation:
    """One session of a client: its thread, and the turn that is running."""

    def __init__(
        self, client: AcpClient, parts: ConversationParts, thread: ActiveThread, options: AcpOptions
    ) -> None:
        self._client = client
        self._parts = parts
        self._thread = thread
        self._options = options
        self._root = Path(parts.session.vault.store.real_path)
        self._question: _Question | None = None
        self._task: asyncio.Task[None] | None = None
        self._cancelled = threading.Event()
        self._is_applying = False
        self._is_later_stage = False
        self._streamed = StreamedText()
        self._has_plan = False  # the client displays the steps of one that is not applied
        self._waiting: WaitingPlan | None = None
        self._paragraphs: list[str] = []
        self._has_offered_recovery = False
        self._mode = thread.state.mode or _MODES[0].id
        self._has_used_model = False

    @property
    def modes(self) -> SessionModeState:
        """The modes that the user can choose from, and the current one."""
        return SessionModeState(current_mode_id=self._mode, available_modes=list(_MODES))

    async def set_mode(self, mode: str) -> None:
        """Choose a mode from the next message on. Raise `RequestError`."""
        if mode not in (known.id for known in _MODES):
            raise RequestError.invalid_params({"details": f"There is no mode {mode[:40]!r}."})
        await asyncio.to_thread(self._parts.threads.choose_mode, self.id, mode)
        self._mode = mode
        self._question = None

    @property
    def root(self) -> Path:
        """The folder of the vault."""
        return self._root

    @property
    def id(self) -> str:
        """The id of the session, which is that of its thread."""
        return self._thread.id

    # --- turns --------------------------------------------------------------------------------

    async def prompt(self, message: Callable[[], tuple[str, list[str]]]) -> StopReason:
        """Answer a message of the client. Raise `RequestError` while another turn runs.

        `message` returns its text and the names of attachments that are not used. It may block.
        """
        if self._task is not None:
            raise RequestError.invalid_request({"details": "A turn of this session is running."})
        self._cancelled = threading.Event()
        task = self._task = asyncio.ensure_future(self._respond(message))
        try:
            await asyncio.wait((task,))
        except asyncio.CancelledError:  # the client disconnected
            self.cancel()
            await asyncio.wait((task,))
            raise
        finally:
            self._task = None
        is_cancelled = task.cancelled() or self._cancelled.is_set()
        if not is_cancelled and (error := task.exception()) is not None:
            if isinstance(error, ConnectionError):
                raise error
            assert isinstance(error, Exception)
            self._report(explain(error))
        await self._leave_plan()
        await self.flush()
        return "cancelled" if is_cancelled else "end_turn"

    def cancel(self) -> None:
        """Stop the running turn at once; a run is undone first, and its end is reported."""
        self._cancelled.set()
        if self._task is not None and not self._is_applying:
            self._task.cancel()

    async def close(self) -> None:
        """Stop the running turn. A conversation without a message is deleted."""
        self.cancel()
        if self._task is not None:
            await asyncio.wait((self._task,))
        await self._parts.threads.close()
        if not self._thread.state.entries:
            with contextlib.suppress(ObsidianAgentError):
                await asyncio.to_thread(self._parts.threads.delete, self.id)

    async def _respond(self, message: Callable[[], tuple[str, list[str]]]) -> None:
        text, unread = await asyncio.to_thread(message)
        if unread:
            names = ", ".join(safe_line(name, 100) for name in unread)
            self.write(f"Outside the vault, so not read: {names}")
        await self._offer_recovery()
        name, _, argument = text.strip().partition(" ")
        question = self._question
        if name[:1] == "/" and name[1:] in _COMMANDS:
            await self._run_command(name[1:], argument.strip())
        elif question is None and name[:1] == "/" and name[1:].isalpha():
            known = ", ".join(f"/{command}" for command in _COMMANDS)
            self.write(f"There is no command {safe_line(name, 40)}. There are {known}.")
        elif question is None or not await self._answer_question(question, text.strip()):
            self._question = None
            self._has_used_model = False
            last = await self._follow(self._turn(text))
            if self._has_used_model:
                await self._send_usage()
            await self._conclude(last, text)

    async def _turn(self, text: str) -> AsyncGenerator[AgentEvent, None]:
        """Yield the events of a turn of the thread. Closing it cancels the turn."""
        threads = self._parts.threads
        with threads.bus.subscribe(self.id) as events:
            thread = await asyncio.to_thread(threads.open, self.id)
            thread.proposes = self._mode != ASK_MODE
            threads.start(self.id, text, self._approve_share)
            try:
                async for event in events:
                    if isinstance(event, ThreadTurnEvent):
                        yield event.event
                    elif isinstance(event, ThreadTurnEnded):
                        break
            finally:
                task = threads.open(self.id).task
                if self.id in threads.running and task is not None:
                    task.cancel()
                    await asyncio.wait((task,))

    async def _follow(self, events: AsyncGenerator[AgentEvent, None]) -> AgentEvent | None:
        """Display the events of a turn and return the last one."""
        self._streamed = StreamedText()
        last: AgentEvent | None = None
        async with contextlib.aclosing(events) as following:
            async for event in following:
                await self._display(event)
                last = event
        return last

    async def _display(self, event: AgentEvent) -> None:
        """Display an event that needs no decision."""
        match event:
            case TextDelta(text, thinking=True):
                await self._send(update_agent_thought_text(safe_block(text)))
            case TextDelta(text):
                if ready := self._streamed.add(text):
                    await self._send(update_agent_message_text(ready))
            case ToolCallStarted():
                self._streamed = StreamedText()
                await self._send(
                    start_tool_call(
                        event.call_id,
                        safe_line(event.why or event.purpose or event.tool),
                        kind="search" if event.tool.startswith("search") else "read",
                        status="in_progress",
                    )
                )
            case ToolCallFinished():
                state: Literal["failed", "completed"] = "failed" if event.problem else "completed"
                content = None
                if event.problem is not None:
                    content = text_content(event.problem.sentence)
                elif event.paths:
                    content = text_content(*event.paths)
                await self._send(update_tool_call(event.call_id, status=state, content=content))
            case TokensUsed():
                self._has_used_model = True
            case PlanningRetry():
                text = f"Asking again ({event.attempt} of {event.attempts}).\n"
                await self._send(update_agent_thought_text(text))
            case Notice(problem, alarm):
                self.write(f"{'**Attention:** ' if alarm else ''}{safe_block(problem.sentence)}")
            case _:
                pass

    async def _send_usage(self) -> None:
        """Send how full the model's window is, and what the conversation has cost."""
        thread = await asyncio.to_thread(self._parts.threads.open, self.id)
        state = thread.state
        turns = await asyncio.to_thread(self._parts.session.open_model_turns)
        if turns is None:
            return
        ahead = await preview_request(
            turns, thread.conversation, "", model=state.model, assistant=state.assistant
        )
        costs = [used.cost for used in state.usage if used.cost is not None]
        cost = None
        if costs and len(costs) == len(state.usage):
            cost = Cost(amount=sum(costs), currency="USD")
        await self._send(
            UsageUpdate(
                session_update="usage_update",
                used=ahead.use.prompt,
                size=ahead.use.window,
                cost=cost,
            )
        )

    async def _conclude(self, event: AgentEvent | None, message: str | None) -> None:
        """Handle the last event of a turn."""
        match event:
            case NeedsInput() | PreviewReady() if self._mode == ASK_MODE:
                self.write(
                    "That is a change, and the mode is Ask: nothing was proposed. "
                    "Choose the mode Plan to see the change before it is made."
                )
            case Answer():
                if event.health is not None:
                    event = await asyncio.to_thread(
                        self._options.complete, event, self._parts.session
                    )
                rest = self._streamed.rest(event.text)
                if rest.strip():
                    self.write(rest)
                else:
                    await self._send(update_agent_message_text("\n\n"))
                if sources := unlisted(event.text, event.sources):
                    names = ", ".join(safe_line(path, 100) for path in sources)
                    self.write(f"Sources: {names}")
            case NeedsInput():
                await self._ask(event)
            case PreviewReady(preview):
                await self._decide(preview, message)
            case TurnFailed(problem, problems):
                self._report(*(problems or (problem,)))
            case RoundsUsedUp(rounds):
                self.write(
                    f"The model searched and read {rounds} times without an answer. "
                    "Any further message lets it continue."
                )
            case _:
                self.write("Planning stopped without a result. Nothing was changed.")

    # --- questions ----------------------------------------------------------------------------

    async def _ask(self, event: NeedsInput) -> None:
        """Ask which candidate to take, or for missing values."""
        candidates = event.candidates[:MAX_CANDIDATES]
        message = safe_block(event.message)
        if candidates or event.missing:
            question = _Question(candidates, () if candidates else event.missing)
            await self._continue(question, message)
        else:
            self.write(message)

    async def _continue(self, question: _Question, message: str = "") -> None:
        """Ask what is still open, or preview the plan once all values are known."""
        if not question.candidates and not question.missing:
            self._question = None
            events = self._parts.session.fill(question.chosen, question.values)
            await self._conclude(await self._follow(events), None)
        elif self._client.has_forms:
            self.write(message)
            answered = await self._form(question)
            if answered is None:
                self.write("Nothing was changed.")
            else:
                await self._continue(answered)
        else:
            self._question = question
            self.write("\n\n".join(filter(None, (message, _in_text(question)))))

    async def _answer_question(self, question: _Question, text: str) -> bool:
        """Accept a message as the answer to the open question. False for another message."""
        if question.candidates:
            number = text.rstrip(".")
            if not (number.isascii() and number.isdigit()):
                return False
            chosen = _after_choice(question, number)
            await self._continue(question if chosen is None else chosen)
            return True
        values = {**question.values, question.missing[0]: text}
        await self._continue(replace(question, missing=question.missing[1:], values=values))
        return True

    async def _form(self, question: _Question) -> _Question | None:
        """Ask through a form of the client. Return what is open then; None if it was closed."""
        properties: dict[str, Any] = {
            name: {"type": "string", "title": safe_line(name, 60)} for name in question.missing
        }
        if question.candidates:
            options = [
                {"const": str(number), "title": _described(candidate)}
                for number, candidate in enumerate(question.candidates, 1)
            ]
            properties = {"choice": {"type": "string", "title": "Meaning", "oneOf": options}}
        schema = {"type": "object", "properties": properties, "required": list(properties)}
        await self.flush()
        response = await self._client.connection.create_elicitation(
            "Choose the action that you mean." if question.candidates else "Enter what is missing.",
            ElicitationFormSessionMode(
                session_id=self.id, requested_schema=ElicitationSchema.model_validate(schema)
            ),
        )
        if not isinstance(response, AcceptElicitationResponse):
            return None
        values = {key: str(value) for key, value in (response.content or {}).items()}
        if question.candidates:
            return _after_choice(question, values.get("choice", ""))
        known = {name: values[name] for name in question.missing if name in values}
        if not known:
            return None
        missing = tuple(name for name in question.missing if name not in known)
        return replace(question, missing=missing, values={**question.values, **known})

    # --- plans --------------------------------------------------------------------------------

    async def _decide(
        self, preview: Preview, message: str | None, waiting: WaitingPlan | None = None
    ) -> None:
        """Display a plan, ask for permission and run it. `waiting` is the plan of the inbox."""
        plan = preview.plan
        if not plan.steps:
            self.write(safe_block("\n\n".join([plan.goal, *plan.assumptions])))
            return
        if not preview.valid:
            self._report(*preview.errors)
            return
        if not any(instance.state == "ready" for instance in preview.instances):
            self.write("Nothing would change: every step is skipped.")
            return
        progress = PlanProgress(preview)
        self._has_plan = True
        await self._send(progress.update())
        view = self._parts.session.vault.view()
        content = await asyncio.to_thread(preview_content, preview, view, self._root)
        call = pending_call(
            plan.goal, tool_kind(preview), content, locations=locations(preview, self._root)
        )
        is_allowed = waiting is None and preview.approval.decision == "allow"
        if is_allowed and not preview.discloses:
            await self._send(started(call))
            await self._run(preview, message, progress, call, by="settings")
            return
        if waiting is None and not self._is_later_stage:
            waiting = await asyncio.to_thread(self._put_aside, preview)
        self._waiting = waiting
        decision = await self._permission(call, _PLAN_OPTIONS)
        if decision == "apply":
            if waiting is not None and not await asyncio.to_thread(self._is_waiting, waiting):
                self._waiting = None
                await self._send(ended(call, is_done=False))
                self.write(
                    "The plan was already approved or dropped elsewhere. Nothing was changed."
                )
                return
            await self._run(preview, message, progress, call, by="person")
            return
        await asyncio.to_thread(self._parts.session.plans.reject, preview)
        await self._send(ended(call, is_done=False))
        if decision == "drop":
            await self._drop_waiting()
        self.write("Nothing was changed.")

    async def _drop_waiting(self) -> None:
        """Remove the plan that was decided on from the inbox."""
        waiting, self._waiting = self._waiting, None
        if waiting is not None:
            await asyncio.to_thread(self._parts.waiting.drop, waiting.id)

    async def _leave_plan(self) -> None:
        """Remove the steps of a plan that was not applied, and say where it waits."""
        waiting, self._waiting = self._waiting, None
        if self._has_plan:
            self._has_plan = False
            await self._send(update_plan([]))
        if waiting is not None:
            self.write(f"The plan waits: `/plans {waiting.id}`")

    def _put_aside(self, preview: Preview) -> WaitingPlan:
        return put_aside(
            self._parts.waiting,
            preview,
            source=preview.agent or self._client.name,
            now=self._parts.session.vault.clock(),
        )

    def _is_waiting(self, plan: WaitingPlan) -> bool:
        return self._parts.waiting.find(plan.id) is not None

    async def _run(
        self,
        preview: Preview,
        message: str | None,
        progress: PlanProgress,
        call: ToolCallUpdate,
        *,
        by: ApprovedBy,
    ) -> None:
        """Apply an approved preview, with its progress, and report the result."""
        result: ExecutionResult | None = None
        self._is_applying = True
        try:
            await self._send(update_tool_call(call.tool_call_id, status="in_progress"))
            async with contextlib.aclosing(
                self._parts.session.plans.execute(preview, self._cancelled, by)
            ) as events:
                async for event in events:
                    if isinstance(event, RunFinished):
                        result = event.result
                        if result.success:
                            await self._drop_waiting()
                    elif progress.follow(event):
                        await self._send(progress.update())
            assert result is not None
            await self._end_run(preview, result, call)
        finally:
            self._is_applying = False
        if result.success and preview.deferred and not self._cancelled.is_set():
            await self._run_rest(preview, result, message)

    async def _end_run(
        self, preview: Preview, result: ExecutionResult, call: ToolCallUpdate
    ) -> None:
        session = self._parts.session
        differences: tuple[Problem, ...] = ()
        if result.status == "done":
            differences = await asyncio.to_thread(session.plans.verify, preview)
        await asyncio.to_thread(
            self._parts.threads.record_run, self.id, preview.plan.goal, result, differences
        )
        if result.status == "cancelled":
            await self._roll_back(result)
        self._has_plan = result.status == "cancelled"
        await self._send(ended(call, is_done=result.success))
        if result.status == "cancelled":
            return
        if result.success:
            for title, lines in findings(preview, result.outputs):
                self.write(safe_block("\n".join([f"{title}:", "", *lines])))
        undo = f" Undo it with `/undo {result.run_id}`" if result.undo_available else ""
        self.write(f"{describe_result(result)}{undo}")
        self._report(*result.errors, *result.warnings, *differences)

    async def _roll_back(self, result: ExecutionResult) -> None:
        """Undo what a cancelled run has changed, because only the whole was approved."""
        if not result.undo_available:
            self.write(f"Cancelled. {describe_result(result)}")
            return
        try:
            undone = await asyncio.to_thread(self._parts.session.runs.undo, result.run_id)
        except ObsidianAgentError as error:
            self.write(f"Cancelled. {describe_result(result)} Undo it with `/undo {result.run_id}`")
            self._report(error.problem())
            return
        self.write("Cancelled. The files that the run had changed by then are restored.")
        self._report_skipped(undone)

    async def _run_rest(
        self, preview: Preview, result: ExecutionResult, message: str | None
    ) -> None:
        """Preview the steps after a command, whose effects could not be previewed before."""
        done = {
            step: output for step, output in result.outputs.items() if step not in preview.deferred
        }
        options = PreviewOptions(
            instruction=message, done=done, now=preview.context.now, agent=preview.agent
        )
        self.write("A command has run. This is the preview of the remaining steps.")
        events = self._parts.session.preview_plan(
            preview.plan.to_json(), preview.context.params, options
        )
        self._is_later_stage = True
        try:
            await self._conclude(await self._follow(events), message)
        finally:
            self._is_later_stage = False

    # --- permissions --------------------------------------------------------------------------

    async def _permission(
        self, call: ToolCallUpdate, options: Mapping[str, tuple[str, PermissionOptionKind]]
    ) -> str | None:
        """Display a tool call and ask for a permission.

        Return the id of the chosen option, None if there is no answer.
        """
        await self._send(started(call))
        response = await self._client.connection.request_permission(
            self.id,
            call,
            [
                PermissionOption(option_id=name, name=title, kind=kind)
                for name, (title, kind) in options.items()
            ],
        )
        outcome = response.outcome
        if not isinstance(outcome, AllowedOutcome) or outcome.option_id not in options:
            return None
        return outcome.option_id

    async def _approve_share(self, thread: str, request: ShareRequest) -> ShareDecision:
        """Ask whether something may be sent to a model."""
        lines = [line for line in self._options.describe(request) if line.strip()]
        call = pending_call(lines[0], "other", text_content(*lines))
        folder = request.folder or "the vault"
        options: dict[str, tuple[str, PermissionOptionKind]] = {
            "once": ("Send this once", "allow_once"),
            "thread": ("Send it during this conversation", "allow_always"),
        }
        if request.items:
            options["folder"] = (f"Send everything in {safe_line(folder, 60)}", "allow_always")
        options["no"] = ("Do not send it", "reject_once")
        scope = await self._permission(call, options)
        await self._send(ended(call, is_done=scope in ("once", "thread", "folder")))
        match scope:
            case "once" | "thread" | "folder":
                return ShareDecision(scope)
            case None:
                return UNASKED
            case _:
                return REFUSED

    async def _offer_recovery(self) -> None:
        """Ask once in a session about the runs that a crash interrupted."""
        if self._has_offered_recovery:
            return
        runs = self._parts.session.runs
        for run in await asyncio.to_thread(runs.interrupted):
            content = text_content(
                "Rolling back restores every file that the run changed. "
                "Finishing applies the remaining approved changes.",
                *(path.path for path in run.paths[:MAX_PATHS]),
            )
            call = pending_call(f"A run was interrupted: {run.goal}", "edit", content)
            decision = await self._permission(call, _RECOVERY_OPTIONS)
            if decision not in ("back", "finish"):
                await self._send(ended(call, is_done=False))
                continue
            self._is_applying = True
            try:
                recoveries = await asyncio.to_thread(runs.recover, run.run_id, decision == "finish")
                problems = [problem for one in recoveries for problem in one.problems]
                await self._send(ended(call, is_done=not problems))
                outcome = "finished" if decision == "finish" else "rolled back"
                self.write(f"The interrupted run was {outcome}.")
                self._report(
                    *problems, *(warning for one in recoveries for warning in one.warnings)
                )
            finally:
                self._is_applying = False
        self._has_offered_recovery = True

    # --- commands -----------------------------------------------------------------------------

    async def announce(self) -> None:
        """Send the commands of this agent."""
        await self._send(
            update_available_commands(
                AvailableCommand.model_validate(
                    {"name": name, "description": text, "input": {"hint": hint} if hint else None}
                )
                for name, (text, hint) in _COMMANDS.items()
            )
        )

    async def replay(self) -> None:
        """Send the earlier messages of a conversation."""
        for entry in self._thread.state.entries:
            text = safe_block(entry.text)
            match entry.role:
                case "person":
                    await self._send(update_user_message_text(text))
                case "plan":
                    self.write(f"Plan: {text}")
                case "run" if entry.data.get("success"):
                    run = safe_line(str(entry.data.get("runId")), 40)
                    self.write(f"Applied: {text}. Undo it with `/undo {run}`")
                case "run":
                    self.write(f"Run: {text}")
                case "look":
                    pass
                case _:
                    self.write(text)
        await self.flush()

    async def _run_command(self, name: str, argument: str) -> None:
        match name:
            case "undo":
                await self._undo(argument or None, redoing=False)
            case "redo":
                await self._undo(None, redoing=True)
            case "plans" if argument:
                await self._preview_waiting(argument)
            case "plans":
                await self._list_waiting()
            case _:
                self._question = None
                self.write("Nothing was changed.")

    async def _list_waiting(self) -> None:
        plans = await asyncio.to_thread(self._parts.waiting.all)
        lines = [
            f"- `{plan.id}` {safe_line(plan.goal, 100)} ({safe_line(plan.source or 'you', 40)})"
            for plan in plans
        ]
        if lines:
            lines += ["", "`/plans ID` previews one."]
        self.write("\n".join(lines) if lines else "No plans are waiting.")

    async def _preview_waiting(self, plan_id: str) -> None:
        plan = await asyncio.to_thread(self._parts.waiting.get, plan_id)
        events = self._parts.session.preview_plan(
            plan.plan, options=PreviewOptions(agent=plan.source)
        )
        last = await self._follow(events)
        if not isinstance(last, PreviewReady):
            await self._conclude(last, None)
            return
        for difference in PlanReview(plan, last.preview).differences:
            self.write(safe_block(difference))
        await self._decide(last.preview, None, plan)

    async def _undo(self, run: str | None, *, redoing: bool) -> None:
        """Display what an undo or redo restores, ask for permission and do it."""
        runs = self._parts.session.runs
        expected = await asyncio.to_thread(runs.undo_preview, run, redoing=redoing)
        texts = await asyncio.to_thread(
            lambda: {
                path: runs.undo_texts(expected.run_id, path, redoing=redoing)
                for path in expected.restored
                if path not in expected.folders
            }
        )
        verb = "Redo" if redoing else "Undo"
        content = texts_content(texts, self._root)
        conflicts = [f"Skipped: {item.path}: {item.reason}" for item in expected.conflicts]
        content += text_content(*conflicts) if conflicts else []
        kind: ToolKind = "other" if conflicts or None in texts.values() else "edit"
        call = pending_call(f"{verb} run {expected.run_id}", kind, content)
        options: dict[str, tuple[str, PermissionOptionKind]] = {
            "yes": (verb, "allow_once"),
            "no": ("Cancel", "reject_once"),
        }
        if await self._permission(call, options) != "yes":
            await self._send(ended(call, is_done=False))
            self.write("Nothing was changed.")
            return
        self._is_applying = True
        try:
            undo = runs.redo if redoing else partial(runs.undo, expected.run_id)
            result = await asyncio.to_thread(undo)
            await self._send(ended(call, is_done=not (result.conflicts or result.errors)))
            self.write(f"Restored {counted(len(result.restored), 'file')}.")
            self._report_skipped(result)
        finally:
            self._is_applying = False

    def _report_skipped(self, result: UndoResult) -> None:
        """Report what an undo or redo did not restore."""
        for item in result.conflicts:
            self.write(f"Skipped: {safe_line(item.path)}: {item.reason}")
        self._report(*result.errors, *result.warnings)

    # --- output -------------------------------------------------------------------------------

    async def _send(self, update: Update | UsageUpdate) -> None:
        await self.flush()
        await self._notify(update)

    async def _notify(self, update: Update | UsageUpdate) -> None:
        # A client that is gone does not end a run: `close` does.
        with contextlib.suppress(ConnectionError):
            # The type of the method is older than updates of the usage.
            await self._client.connection.session_update(self.id, cast(Update, update))

    def write(self, text: str) -> None:
        """Add a paragraph to the message, which is sent when something else follows or ends it.

        Some clients lose the first of two short messages.
        """
        if text.strip():
            self._paragraphs.append(text)

    async def flush(self) -> None:
        """Send the paragraphs that were added."""
        paragraphs, self._paragraphs = self._paragraphs, []
        if paragraphs:
            await self._notify(update_agent_message_text("\n\n".join([*paragraphs, ""])))

    def _report(self, *problems: Problem) -> None:
        for sentence in dict.fromkeys(problem.sentence for problem in problems):
            self.write(safe_block(sentence))


def _described(candidate: Candidate) -> str:
    text = candidate.title
    if candidate.doubt:
        text += f" {candidate.doubt}" if text.endswith("…") else f". {candidate.doubt}"
    return safe_line(text)


def _in_text(question: _Question) -> str:
    """Return a question as text, with how to answer it."""
    if not question.candidates:
        return f"{safe_line(question.missing[0])}? Answer with the value alone, or /drop."
    lines = [
        f"{number}. {_described(candidate)}"
        for number, candidate in enumerate(question.candidates, 1)
    ]
    count = len(lines)
    how = (
        "Answer with 1 to choose it." if count == 1 else f"Answer with a number from 1 to {count}."
    )
    return "\n".join([*lines, "", how])


def _after_choice(question: _Question, number: str) -> _Question | None:
    """Return what is open once a candidate is chosen; None if the number is not one of them."""
    for index, candidate in enumerate(question.candidates, 1):
        if number == str(index):
            return _Question((), candidate.missing, candidate)
    return None
