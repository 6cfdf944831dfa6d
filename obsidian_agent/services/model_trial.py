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

from msgspec import Struct

from obsidian_agent.agent.events import (
    AgentEvent,
    Answer,
    Candidate,
    NeedsInput,
    PlanningResult,
    PlanReady,
)
from obsidian_agent.agent.replies import whole_reply
from obsidian_agent.offline.recipe import packaged, recipe_named
from obsidian_agent.providers.base import ChatMessage, ChatRequest, Provider
from obsidian_agent.services.session import Session

Mark = Literal["right", "asked", "wrong", "open"]
"""The mark of a task: right, wrong, asked or open.

asked: the right action is among the offered candidates. open: it is not.
"""


class TrialTask(Struct, frozen=True):
    """A sentence, with the recipe and the values that it means."""

    sentence: str
    recipe: str
    values: Mapping[str, str]


class Score(Struct, frozen=True):
    """The number of tasks per mark, and the seconds that all tasks took."""

    marks: Mapping[Mark, int]
    seconds: float


@cache
def _document() -> Mapping[str, Any]:
    document: Mapping[str, Any] = json.loads(
        resources.files("obsidian_agent.services")
        .joinpath("model_trial.json")
        .read_text(encoding="utf-8")
    )
    return document


def tasks() -> tuple[TrialTask, ...]:
    """Return the tasks in the order of the trial."""
    return tuple(
        TrialTask(task["sentence"], task["recipe"], task["values"]) for task in _document()["tasks"]
    )


@contextmanager
def sample_vault() -> Iterator[Path]:
    """Create the sample vault in a temporary folder for the block."""
    with tempfile.TemporaryDirectory(prefix="obsidian-agent-sample-") as folder:
        write_sample_vault(Path(folder))
        yield Path(folder)


def write_sample_vault(folder: Path) -> None:
    """Write the notes of the sample vault into a folder."""
    for name, text in _document()["files"].items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8", newline="\n")


async def answers_at_all(provider: Provider) -> None:
    """Send a short request, which also makes the service load the model.

    Raise `ProviderError` if the model does not answer.
    """
    request = ChatRequest((ChatMessage("user", "Say ok."),), temperature=0.0, max_tokens=8)
    await whole_reply(provider, request)


async def play(session: Session) -> AsyncIterator[tuple[TrialTask, Mark] | Score]:
    """Plan each task and yield its mark, then yield the score.

    The vault of `session` is the sample vault.
    """
    started, marks = time.monotonic(), Counter[Mark]()
    for task in tasks():
        verdict = await session.planner.plan(session.request(task.sentence), _ignore)
        mark = judge(session, task, verdict)
        marks[mark] += 1
        yield task, mark
    yield Score(marks, time.monotonic() - started)


async def _ignore(event: AgentEvent) -> None:
    """Ignore the progress of a turn."""


def judge(session: Session, task: TrialTask, event: PlanningResult) -> Mark:
    """Return the mark of a turn that ended in `event`."""
    expected = _effect(session, propose(session, task.recipe, task.values))
    match event:
        case PlanReady() | Answer():
            return "right" if _effect(session, event) == expected else "wrong"
        case NeedsInput(candidates=candidates):
            is_offered = any(
                _is_right(session, candidate, task, expected) for candidate in candidates
            )
            return "asked" if is_offered else "open"
        case _:
            return "open"


def propose(session: Session, recipe: str, values: Mapping[str, Any]) -> PlanningResult:
    """Return the verdict on a recipe with values in the sample vault."""
    packaged_recipe = recipe_named(recipe, packaged())
    assert packaged_recipe is not None, f"there is a recipe {recipe}"
    return session.offline.turn(session.request("")).propose(packaged_recipe, values)


def _is_right(session: Session, candidate: Candidate, task: TrialTask, expected: object) -> bool:
    """Return whether a candidate has the expected effect, or opens the right form."""
    if not candidate.recipe:
        plan = candidate.plan
        return plan is not None and _effect(session, PlanReady(plan)) == expected
    if candidate.missing:
        return candidate.recipe == task.recipe
    return _effect(session, propose(session, candidate.recipe, candidate.values)) == expected


def _effect(session: Session, event: PlanningResult) -> object:
    """Return the changes of a plan, or the text and sources of an answer."""
    if isinstance(event, Answer):
        return event.text, event.sources
    if not isinstance(event, PlanReady):
        return None
    preview = session.offline.turn(session.request("")).tried(event.plan)
    if preview is None or preview.errors:
        return None
    return tuple(
        (change.kind, change.path.text, str(change.new_path), change.content)
        for change in preview.change_set.changes
    )
