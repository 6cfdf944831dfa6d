"""One vault, one planner: what front ends conversation to.

A turn is a short script: freeze the context, plan, validate, dry-run; what it yields is data, and approval is the caller's. The
synchronous `dry_run` and `apply` are the core that headless commands call on the main thread; the async iterators are the same for
front ends that must not wait.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

from obsidian_agent.agent.events import (
    AgentEvent,
    Answer,
    Candidate,
    ExecutionResult,
    NeedsInput,
    PlanReady,
    PreviewReady,
    PreviewStarted,
    RunEvent,
    TurnFailed,
    TurnStarted,
)
from obsidian_agent.agent.execution.executor import RunCommand, execute
from obsidian_agent.agent.execution.runs import Runs
from obsidian_agent.agent.index_follower import IndexFollower
from obsidian_agent.agent.macros.store import SavedActions
from obsidian_agent.agent.run_context import Focus, run_context
from obsidian_agent.agent.streaming import events_of
from obsidian_agent.agent.vault_agents.files import files_below
from obsidian_agent.config.live import LiveSettings
from obsidian_agent.errors import ConfigError, ObsidianAgentError, PlanError, Problem
from obsidian_agent.plan.flags import Policy
from obsidian_agent.plan.model import ActionPlan
from obsidian_agent.plan.parameters import MissingInput
from obsidian_agent.plan.preview import dry_run
from obsidian_agent.plan.result import Preview, diff_of
from obsidian_agent.tools.core.tool import Position, RunContext, Selection, Tool
from obsidian_agent.vault.filesystem.store import VaultStore
from obsidian_agent.vault.index.build import no_collection
from obsidian_agent.vault.paths.path import ROOT, PathUse, VaultPath, parse
from obsidian_agent.vault.text import decode
from obsidian_agent.vault.views.changes import NetChange
from obsidian_agent.vault.views.disk import DiskView

if TYPE_CHECKING:
    from obsidian_agent.agent.conversation import Conversation
    from obsidian_agent.agent.form import Form
    from obsidian_agent.agent.offline import OfflinePlanner
    from obsidian_agent.agent.planner import Planner
    from obsidian_agent.agent.privacy.consent import ApproveShare
    from obsidian_agent.agent.turn.answer import Models
    from obsidian_agent.offline.recipe import Recipe
    from obsidian_agent.vault.index.index import VaultIndex
    from obsidian_agent.vault.index.keeper import IndexKeeper, IndexStatus


@dataclass(frozen=True, slots=True)
class _Open:
    """What a turn left open: the candidates and the plan whose values are missing."""

    instruction: str | None
    plan: ActionPlan | None
    values: Mapping[str, Any]


class Session:
    """Everything a front end does with a vault. Not thread-safe but for the calls that say they may block."""

    def __init__(
        self,
        store: VaultStore,
        make_planner: Callable[[], Planner],
        tools: Mapping[str, Tool],
        policy: Policy,
        runs: Runs,
        saved: SavedActions,
        clock: Callable[[], datetime],
        make_keeper: Callable[[], IndexKeeper] | None = None,
        make_models: Callable[[], Models | None] = lambda: None,
    ) -> None:
        self.store = store
        self._make_planner = make_planner
        self._make_keeper = make_keeper
        self._make_models = make_models
        self.tools = tools
        self.policy = policy
        self.runs = runs
        self.saved = saved
        self.focus = Focus()
        self._clock = clock
        self._open = _Open(None, None, {})
        self._following: IndexFollower | None = None
        self._conversation: Conversation | None = None
        self.settings = LiveSettings()
        """The settings in use; call `settings_changed` after a change."""
        self.make_policy: Callable[[], Policy] = lambda: policy
        self.run_command: RunCommand | None = None
        """Runs commands of Obsidian; None: nothing can, and a plan that needs one is not valid."""

    def settings_changed(self) -> None:
        """Take up changed settings: what follows is planned, asked and allowed by them."""
        self.policy = self.make_policy()
        for made in ("models", "planner"):
            self.__dict__.pop(made, None)

    @property
    def vault_name(self) -> str:
        """The name of the vault's folder."""
        return self.store.name

    @cached_property
    def planner(self) -> Planner:
        """Who plans; made when first asked for, since a plan from a file needs none."""
        return self._make_planner()

    @cached_property
    def offline(self) -> OfflinePlanner:
        """Recipes and macros, whoever plans else; made when first asked for."""
        from obsidian_agent.agent.offline import OfflinePlanner

        return OfflinePlanner(self.view, self.tools, self.saved.trusted)

    @property
    def planner_name(self) -> str:
        """Who plans: a model, or the offline planner."""
        return self.planner.name

    @cached_property
    def models(self) -> Models | None:
        """The model that `answering.answer` asks, and the rules for that; made when first asked for, None without one."""
        return self._make_models()

    @property
    def conversation(self) -> Conversation:
        """The conversation with the model that turns go on with."""
        if self._conversation is None:
            from obsidian_agent.agent.conversation import Conversation

            self._conversation = Conversation()
        return self._conversation

    def new_conversation(self) -> None:
        """Forget what was said, and what was allowed along with it."""
        self._conversation = None

    @cached_property
    def keeper(self) -> IndexKeeper | None:
        """The keeper of the vault's index, made when first asked for; None without one."""
        return None if self._make_keeper is None else self._make_keeper()

    def follow(self, tell: Callable[[IndexStatus], None]) -> None:
        """Load or build the index behind the screen and keep it fresh; `tell` is called in threads. Does not block, and may be done once."""
        if self._make_keeper is not None and self._following is None:
            self._following = IndexFollower(self.store.real_path, lambda: cast("IndexKeeper", self.keeper), tell)
            self._following.start()

    def unfollow(self) -> None:
        """End what `follow` began."""
        if self._following is not None:
            self._following.stop()

    def look_again(self) -> None:
        """Somebody else may have changed the vault: compare the index with it. Does not block."""
        if self._following is not None:
            self._following.look_again()

    def warm_up(self) -> None:
        """Prepare for the first question to a model, if there is one, so that it need not wait for imports. Does not block.

        The thread is a daemon's: who quits in the middle of it does not wait for it.
        """
        threading.Thread(target=self._warm_up, name="warming-up", daemon=True).start()

    def _warm_up(self) -> None:
        with contextlib.suppress(ObsidianAgentError):  # the first question will say what is wrong
            if self.models is not None:
                self.models.providers.warm_up(self.models.spec)

    def view(self) -> DiskView:
        """The vault on disk as it is now. What needs an index makes or refreshes it on its first question."""
        return DiskView(self.store, None if self._make_keeper is None else self._fresh_index)

    def _fresh_index(self) -> VaultIndex:
        assert self.keeper is not None
        return self.keeper.refresh()

    def files_below(self, start: str) -> Iterator[VaultPath]:
        """The files below a folder ("": all), or the file itself. All of them as the index has them, if it is there. May block."""
        latest = self.keeper.latest if self._following is not None and self.keeper is not None else None
        return latest.files() if latest is not None and not start else files_below(DiskView(self.store), start)

    def notes(self) -> list[str]:
        """Paths of all notes, sorted. May block."""
        return [entry.path.text for entry in self.view().walk(ROOT) if entry.path.is_note]

    def read_note(self, path: str) -> str:
        """The text of a note, line ends as they are. May block."""
        where = parse(path, PathUse.READ)
        return decode(self.view().read(where), where.text)

    def place_of(self, path: str) -> str:
        """Where a note lies on this machine, as an absolute path. Raises `VaultError` for what is no path in the vault. May block."""
        return os.path.join(self.store.real_path, self.store.resolve(parse(path, PathUse.READ)).text)

    def set_focus(self, active_file: str | None, selection: Selection | None, cursor: Position | None) -> None:
        """What the person looks at; frozen into the next turn."""
        self.focus = Focus(active_file, selection, cursor, has_screen=True)

    def context(self, values: Mapping[str, Any]) -> RunContext:
        """The focus, the clock and bound parameters, frozen."""
        return run_context(self.store, self.view(), self.focus, self._clock(), values, runs_commands=self.run_command is not None)

    def verify(self, approved: Preview) -> tuple[Problem, ...]:
        """What of the vault is not as the preview said that it would be. May block."""
        from obsidian_agent.agent.execution.verify import verify

        return verify(approved, DiskView(self.store))

    def check_call(self, tool: str, args: Mapping[str, Any]) -> tuple[Problem, ...]:
        """What is wrong with other arguments for a read that a model asked for."""
        from obsidian_agent.agent.turn.calls import read_call, with_arguments

        try:
            with_arguments(read_call(tool, self.tools), args)
        except ObsidianAgentError as error:
            return (error.problem(),)
        return ()

    # --- actions that need no model ------------------------------------------------------------------------------------------------

    def recipes(self) -> tuple[Recipe, ...]:
        """Everything that can be done without a model, the macros that this person trusts among it. May block."""
        return self.offline.recipes()

    def form(self, name: str) -> Form:
        """The form of a recipe or trusted macro (`macro:NAME`). Raises `PlanError`. May block."""
        from obsidian_agent.agent.planner import PlanRequest

        return self.offline.form(PlanRequest("", self.context({})), name)

    def suggest(self, message: str, model: str | None = None) -> tuple[Candidate, ...]:
        """The likeliest actions for a message that is still being written; none where a model will plan that picks from no menu.

        `model`: the one that the conversation asks, None for that of the settings. May block.
        """
        from obsidian_agent.agent.planner import PlanRequest

        if self.models is not None:
            from obsidian_agent.agent.menu_planner import picks

            try:
                if not picks(self.models.planning, self.models.providers.get(model or self.models.spec)):
                    return ()
            except ConfigError:
                return ()  # what is wrong is said when the message is sent
        return self.offline.suggest(PlanRequest(message, self.context({})))

    # --- the synchronous core ----------------------------------------------------------------------------------------------------

    def dry_run(
        self,
        document: object,
        values: Mapping[str, Any] | None = None,
        *,
        disabled: frozenset[str] = frozenset(),
        instruction: str | None = None,
        on_first_screen: Callable[[Preview], None] | None = None,
    ) -> Preview:
        """Validate and preview a plan document. Raises PlanError for an invalid one, MissingInput when parameters lack values."""
        return dry_run(
            document,
            self.tools,
            self.policy,
            self.view(),
            self.context({}),
            values,
            disabled=disabled,
            instruction=instruction,
            on_first_screen=on_first_screen,
        )

    def apply(self, approved: Preview, emit: Callable[[RunEvent], None], cancel: threading.Event) -> ExecutionResult:
        """Do exactly what was approved. Blocks; always answers a result."""
        with no_collection(), self.runs.journal() as journal:
            result = execute(approved, self.store, journal, emit=emit, cancel=cancel, run_command=self.run_command)
        if self._following is not None:
            self._following.learn(result.effects)
        return result

    def diff(self, previewed: Preview, change: NetChange) -> str:
        """Unified diff of one change; "" for folders, pure renames and binary content. May block."""
        return diff_of(change, self.view())

    # --- for front ends that must not wait ---------------------------------------------------------------------------------------

    async def turn(self, message: str, approve: ApproveShare | None = None) -> AsyncIterator[AgentEvent]:
        """One message of the person; ends with Answer, NeedsInput, PreviewReady, RoundsUsedUp or TurnFailed.

        With a model and somebody who can be asked about sharing (`approve`), the model looks around first, answers or proposes a plan,
        and the session's conversation goes on. Without, whoever plans makes a plan from the message alone.
        """
        looks_around = approve is not None and await asyncio.to_thread(lambda: self.models) is not None
        events = self._ask(message, approve) if looks_around and approve is not None else self._plan(message)
        async with contextlib.aclosing(events) as turn:
            async for event in turn:
                yield event

    async def _ask(self, message: str, approve: ApproveShare) -> AsyncGenerator[AgentEvent, None]:
        from obsidian_agent.agent.turn.answer import answer

        # Every async generator; the declared type only promises an iterator.
        events = cast("AsyncGenerator[AgentEvent, None]", answer(self, message, approve, conversation=self.conversation))
        async with contextlib.aclosing(events):
            async for event in events:
                yield event

    async def _plan(self, message: str) -> AsyncGenerator[AgentEvent, None]:
        from obsidian_agent.agent.planner import PlanRequest

        yield TurnStarted(message)
        context = await asyncio.to_thread(self.context, {})
        planner = await asyncio.to_thread(lambda: self.planner)
        plan: ActionPlan | None = None
        events = cast("AsyncGenerator[AgentEvent, None]", planner.plan(PlanRequest(message, context)))
        async with contextlib.aclosing(events):
            async for event in events:
                yield event
                match event:
                    case PlanReady():
                        plan = event.plan
                    case NeedsInput():
                        self.ask_back(message)
                        return
                    case Answer() | TurnFailed():
                        return
                    case _:
                        pass
        if plan is not None:
            async for following in self._preview(plan.to_json(), {}, frozenset(), message):
                yield following

    def ask_back(self, instruction: str) -> None:
        """A turn ended in candidates: `fill` goes on with one of them."""
        self._open = _Open(instruction, None, {})

    async def fill(self, candidate: Candidate | None, values: Mapping[str, Any]) -> AsyncIterator[AgentEvent]:
        """Go on after NeedsInput with values for what was missing, for the chosen candidate if there were any."""
        if candidate is not None and candidate.recipe:
            async for event in self.run_recipe(candidate.recipe, {**candidate.values, **values}, self._open.instruction):
                yield event
            return
        plan = candidate.plan if candidate is not None else self._open.plan
        if plan is None:
            return
        known = dict(candidate.values) if candidate is not None else dict(self._open.values)
        async for event in self._preview(plan.to_json(), known | dict(values), frozenset(), self._open.instruction):
            yield event

    async def preview_plan(
        self,
        document: Mapping[str, Any],
        disabled: frozenset[str] = frozenset(),
        values: Mapping[str, Any] | None = None,
        instruction: str | None = None,
    ) -> AsyncIterator[AgentEvent]:
        """Preview a plan: an edited one, one with steps left out, a macro's. `instruction` is the message that it was made from."""
        async for event in self._preview(document, values or {}, disabled, instruction):
            yield event

    async def run_recipe(self, name: str, values: Mapping[str, Any], instruction: str | None = None) -> AsyncIterator[AgentEvent]:
        """Preview a recipe with values, mostly texts, or answer its question; NeedsInput when values are missing or are none."""
        from obsidian_agent.agent.planner import PlanRequest

        context = await asyncio.to_thread(self.context, {})
        recipe = next((each for each in await asyncio.to_thread(self.offline.recipes) if each.name == name), None)
        if recipe is None:
            yield TurnFailed(Problem("RECIPE_NOT_FOUND", f"There is no recipe “{name}”."))
            return
        event = await asyncio.to_thread(self.offline.propose, PlanRequest(instruction or "", context), recipe, values)
        if not isinstance(event, PlanReady):
            yield event
            return
        async for following in self._preview(event.plan.to_json(), {}, frozenset(), instruction):
            yield following

    async def run_macro(self, name: str, values: Mapping[str, Any]) -> AsyncIterator[AgentEvent]:
        """Preview a saved action; NeedsInput when values are missing. Raises MacroError, also for one that is not trusted."""
        macro = await asyncio.to_thread(self.saved.to_run, name)
        async for event in self._preview(macro.for_values(values), values, frozenset(), None):
            yield event

    async def execute(self, approved: Preview, cancel: threading.Event) -> AsyncIterator[AgentEvent]:
        """Apply exactly this preview; ends with RunFinished. `cancel` stops it after the current file."""

        def work(emit: Callable[[RunEvent], None]) -> None:
            self.apply(approved, emit, cancel)

        async for event in events_of(work):
            yield event

    async def _preview(
        self, document: Mapping[str, Any], values: Mapping[str, Any], disabled: frozenset[str], instruction: str | None
    ) -> AsyncIterator[AgentEvent]:
        def work(emit: Callable[[AgentEvent], None]) -> None:
            try:
                ready = self.dry_run(
                    document, values, disabled=disabled, instruction=instruction, on_first_screen=lambda part: emit(PreviewStarted(part))
                )
                emit(PreviewReady(ready))
            except MissingInput as error:
                self._open = _Open(instruction, ActionPlan.model_validate(document), values)
                emit(NeedsInput(error.message, missing=error.missing))
            except PlanError as error:
                emit(TurnFailed(error.problem(), error.problems))
            except ObsidianAgentError as error:
                emit(TurnFailed(error.problem()))

        async for event in events_of(work):
            yield event
