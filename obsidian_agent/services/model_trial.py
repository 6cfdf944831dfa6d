"""Trial of a model: sentences over a sample vault, planned as for a user, with nothing run.

The sample vault lies in a temporary folder and holds nothing of the user's. A plan is right when it
would leave the vault exactly as the expected plan would.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any, Literal

from obsidian_agent.agent.events import (
    AgentEvent,
    Answer,
    Candidate,
    NeedsInput,
    PlanReady,
    Verdict,
)
from obsidian_agent.agent.planner import whole_reply
from obsidian_agent.dataclass import dataclass
from obsidian_agent.offline.recipe import packaged, recipe_named
from obsidian_agent.providers.base import ChatMessage, ChatRequest, Provider
from obsidian_agent.services.session import Session

Mark = Literal["right", "asked", "wrong", "open"]
"""asked: the person picks from what is offered, and gets what was meant. open: the likeliest actions, and what was meant is not among them."""


@dataclass(frozen=True, slots=True)
class TrialTask:
    """A sentence, and the recipe with the values that it means."""

    sentence: str
    recipe: str
    values: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Score:
    """How many sentences came out how, and how long all of them took."""

    marks: Mapping[Mark, int]
    seconds: float


@cache
def _document() -> Mapping[str, Any]:
    found: Mapping[str, Any] = json.loads(
        resources.files("obsidian_agent.services")
        .joinpath("model_trial.json")
        .read_text(encoding="utf-8")
    )
    return found


def tasks() -> tuple[TrialTask, ...]:
    """The sentences, in the order they are played."""
    return tuple(
        TrialTask(each["sentence"], each["recipe"], each["values"]) for each in _document()["tasks"]
    )


@contextmanager
def sample_vault() -> Iterator[Path]:
    """A folder with the vault that the sentences speak of; it is gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="obsidian-agent-sample-") as folder:
        for name, text in _document()["files"].items():
            file = Path(folder) / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8", newline="\n")
        yield Path(folder)


async def answers_at_all(provider: Provider) -> None:
    """One short request, which also has the service load the model. Raises `ProviderError`."""
    asked = ChatRequest((ChatMessage("user", "Say ok."),), temperature=0.0, max_tokens=8)
    await whole_reply(provider, asked)


async def play(session: Session) -> AsyncIterator[tuple[TrialTask, Mark] | Score]:
    """What came of each sentence, as it is known, and the score. `session` is on the sample vault."""
    began, marks = time.monotonic(), Counter[Mark]()
    for task in tasks():
        mark = judge(
            session, task, await session.planner.plan(session.request(task.sentence), _unheard)
        )
        marks[mark] += 1
        yield task, mark
    yield Score(marks, time.monotonic() - began)


async def _unheard(event: AgentEvent) -> None:
    """Nobody wants to hear of what happens on the way."""


def judge(session: Session, task: TrialTask, event: Verdict) -> Mark:
    """What a turn that ended in `event` is worth for a task."""
    wanted = _effect(session, propose(session, task.recipe, task.values))
    match event:
        case PlanReady() | Answer():
            return "right" if _effect(session, event) == wanted else "wrong"
        case NeedsInput(candidates=candidates):
            return (
                "asked"
                if any(_leads_there(session, each, task, wanted) for each in candidates)
                else "open"
            )
        case _:
            return "open"


def propose(session: Session, recipe: str, values: Mapping[str, Any]) -> Verdict:
    """What a recipe with values comes to in the sample vault."""
    found = recipe_named(recipe, packaged())
    assert found is not None, f"there is a recipe {recipe}"
    return session.offline.turn(session.request("")).propose(found, values)


def _leads_there(session: Session, candidate: Candidate, task: TrialTask, wanted: object) -> bool:
    """Whether picking a candidate does what was meant, or at least opens the right form."""
    if not candidate.recipe:
        return candidate.plan is not None and _effect(session, PlanReady(candidate.plan)) == wanted
    if candidate.missing:
        return candidate.recipe == task.recipe
    return _effect(session, propose(session, candidate.recipe, candidate.values)) == wanted


def _effect(session: Session, event: Verdict) -> object:
    """What would be different afterwards, or what is answered."""
    if isinstance(event, Answer):
        return event.text, event.sources
    if not isinstance(event, PlanReady):
        return None
    done = session.offline.turn(session.request("")).tried(event.plan)
    if done is None or done.errors:
        return None
    return tuple(
        (change.kind, change.path.text, str(change.new_path), change.content)
        for change in done.change_set.changes
    )
