"""An agent over a real vault with a scripted model and a user with known answers, for tests."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from obsidian_agent.agent.conversation import Conversation
from obsidian_agent.agent.events import (
    AgentEvent,
    Emit,
    TextDelta,
)
from obsidian_agent.agent.planner import Planner, PlanRequest
from obsidian_agent.agent.privacy.consent import ShareDecision, ShareRequest
from obsidian_agent.agent.privacy.ledger import Ledger
from obsidian_agent.agent.privacy.record import AuditRecord
from obsidian_agent.agent.replies import Sampling
from obsidian_agent.agent.streaming import stream
from obsidian_agent.agent.turn.loop import Agent, Vault
from obsidian_agent.agent.turn.preparation import TurnConfig
from obsidian_agent.agent.turn.tool_round import Scrubber
from obsidian_agent.plan.policy import Policy, SharingRules
from obsidian_agent.plan.result import Preview
from obsidian_agent.plan.validate import Validated
from obsidian_agent.providers.base import ChatMessage, Provider
from obsidian_agent.providers.scripted import ScriptedAnswer, ScriptedProvider
from obsidian_agent.services.focus import Focus
from obsidian_agent.services.hooks import Hooks
from obsidian_agent.services.model_turns import ModelTurns
from obsidian_agent.services.open_vault import OpenVault
from obsidian_agent.services.plans import Plans
from obsidian_agent.services.run_context import run_context
from obsidian_agent.services.runs import Runs
from obsidian_agent.services.session import Session
from obsidian_agent.threads.manager import ThreadManager, ThreadTurnEnded, ThreadTurnEvent
from obsidian_agent.tools.registry import TOOLS
from obsidian_agent.vault.filesystem.store import VaultStore
from obsidian_agent.vault.index.file_names import FileNames
from obsidian_agent.vault.views.disk import DiskView
from obsidian_agent.vault.views.view import VaultView
from previews import without_id

NOW = datetime(2026, 3, 14, 9, 30, tzinfo=UTC)
NOTES: Mapping[str, str] = {
    "Garden.md": "# Garden\n\nTomatoes need water. See [[Plan]].\n",
    "Projects/Plan.md": "---\ntags: [project]\nstatus: open\n---\n# Plan\n\nBuy garden soil.\n- [ ] ask Ada\n",
    "Projects/Log.md": "# Log\n\nNothing about plants.\n",
    "Finance/bank.md": "# Bank\n\nThe secret number is XK4711Q.\n",
    "Private/diary.md": "# Diary\n\nI love my garden, secretly.\n",
}

Decide = Callable[[ShareRequest], ShareDecision]


def yes(request: ShareRequest) -> ShareDecision:
    """Everything, once."""
    return ShareDecision("once")


def no(request: ShareRequest) -> ShareDecision:
    """Nothing."""
    return ShareDecision("no")


def only(*paths: str) -> Decide:
    """Return these paths, without duplicates."""
    return lambda request: ShareDecision("once", frozenset(paths))


def scripted(*answers: Mapping[str, Any]) -> ScriptedProvider:
    """Return a model that gives these answers."""
    return ScriptedProvider(
        "scripted/test", tuple(ScriptedAnswer.model_validate(answer) for answer in answers)
    )


def call(name: str, **arguments: Any) -> dict[str, Any]:
    """One call of a script."""
    return {"name": name, "arguments": arguments}


def calls(*made: dict[str, Any], text: str = "") -> dict[str, Any]:
    """Return a scripted answer that makes calls."""
    return {"calls": list(made)} | ({"text": text} if text else {})


def propose(plan: Mapping[str, Any]) -> dict[str, Any]:
    """Return a scripted answer that proposes a plan."""
    return calls(call("propose_plan", plan=dict(plan)))


def played(planner: Planner, request: PlanRequest) -> AsyncGenerator[AgentEvent, None]:
    """Run a planner's turn. Return its events and its result."""

    async def work(emit: Emit) -> None:
        await emit(await planner.plan(request, emit))

    return stream(work)


async def ask(
    threads: ThreadManager, thread_id: str, text: str, person: Person | None = None
) -> AsyncIterator[AgentEvent]:
    """Return the events of a message in a thread, until all of it is saved."""
    approve = (person or Person()).approve()
    with threads.bus.subscribe(thread_id) as heard:
        threads.start(thread_id, text, lambda _, request: approve(request))
        async for each in heard:
            match each:
                case ThreadTurnEvent(event=event):
                    yield event
                case ThreadTurnEnded():
                    return
                case _:
                    continue


def model_turns(session: Session) -> ModelTurns:
    """Return the models of a session that has some."""
    turns = session.open_model_turns()
    assert turns is not None
    return turns


def json_planner(
    provider: Provider, policy: Policy | None = None, sampling: Sampling | None = None
) -> Agent:
    """Return an agent that plans in JSON, from the message alone: its vault is empty."""
    empty = DiskView(VaultStore.open(Path(tempfile.mkdtemp(prefix="obsidian-agent-vault-"))))

    def no_dry_run(checked: Validated, view: VaultView, instruction: str) -> Preview:
        raise AssertionError("what is written is not tried")

    return Agent(
        provider=provider,
        tools=TOOLS,
        policy=policy or Policy(),
        vault=Vault(lambda: empty, lambda path: (path,), Scrubber(())),
        rules=SharingRules(),
        approve=Person().approve(),
        ledger=Ledger(
            AuditRecord(Path(tempfile.mkdtemp(prefix="obsidian-agent-test-")), lambda: NOW)
        ),
        conversation=Conversation(),
        dry_run=no_dry_run,
        sampling=sampling or Sampling(),
        new_mark=lambda: "m4rk",
        config=TurnConfig(tools=False, gatherer=None, detail="full"),
    )


@dataclass
class Person:
    """Answers questions about sharing as told, and remembers them."""

    decide: Decide = yes
    asked: list[ShareRequest] = field(default_factory=list)

    def approve(self) -> Callable[[ShareRequest], Awaitable[ShareDecision]]:
        async def approve(request: ShareRequest) -> ShareDecision:
            self.asked.append(request)
            return self.decide(request)

        return approve

    def paths(self) -> list[list[str]]:
        """Return the paths of each question."""
        return [[item.path.text for item in request.items] for request in self.asked]


@dataclass
class Desk:
    """A vault, a person and a conversation; models come and go."""

    store: VaultStore
    state: Path
    person: Person = field(default_factory=Person)
    rules: SharingRules = SharingRules()
    policy: Policy = Policy()
    proposing: bool = True
    focus: Focus = Focus()
    conversation: Conversation = field(default_factory=Conversation)

    @property
    def ledger(self) -> Ledger:
        return Ledger(AuditRecord(self.state, lambda: NOW))

    def agent(self, provider: Provider) -> Agent:
        """Return an agent of this fixture over a model."""
        store = self.store

        vault = OpenVault(store, lambda: NOW)
        vault.focus = self.focus
        plans = Plans(
            vault=vault,
            tools=TOOLS,
            make_policy=lambda agent: self.policy,
            runs=Runs(store, self.state),
            hooks=Hooks(store.real_path, dict),
        )
        return Agent(
            provider=provider,
            tools=TOOLS,
            policy=self.policy,
            vault=Vault(vault.view, FileNames(store), Scrubber.of(store.real_path)),
            rules=self.rules,
            approve=self.person.approve(),
            ledger=self.ledger,
            conversation=self.conversation,
            dry_run=plans.proposed if self.proposing else None,
            new_mark=lambda: "m4rk",
        )

    def request(self, message: str = "What about the garden?") -> PlanRequest:
        """Send a message of the user."""
        return PlanRequest(
            message, run_context(self.store, DiskView(self.store), self.focus, NOW, {})
        )

    async def turn(
        self, provider: Provider, message: str = "What about the garden?"
    ) -> list[AgentEvent]:
        """One turn with a model; everything but the streamed text."""
        events = [event async for event in played(self.agent(provider), self.request(message))]
        return [event for event in events if not isinstance(event, TextDelta)]

    def files(self) -> dict[str, bytes]:
        """Return the vault's bytes."""
        root = Path(self.store.real_path)
        return without_id(
            {
                str(path.relative_to(root)): path.read_bytes()
                for path in sorted(root.rglob("*"))
                if path.is_file()
            }
        )


def results(messages: Iterable[ChatMessage]) -> list[str]:
    """Return the results of calls in a request, in order."""
    return [message.text for message in messages if message.role == "tool"]


def everything_sent(provider: ScriptedProvider) -> str:
    """All that a scripted model ever got to see."""
    return "\n".join(message.text for request in provider.requests for message in request.messages)


def check_pairs(messages: Iterable[ChatMessage]) -> None:
    """Assert that every call has one result, directly after it and in the order of the calls."""
    waiting: list[str] = []
    seen: set[str] = set()
    for message in messages:
        if message.role == "tool":
            assert waiting
            assert message.call_id == waiting.pop(0)
            continue
        assert not waiting, f"without a result: {waiting}"
        waiting = [made.id for made in message.calls]
        assert not seen & set(waiting)
        assert len(set(waiting)) == len(waiting)
        seen |= set(waiting)
    assert not waiting, f"without a result: {waiting}"
