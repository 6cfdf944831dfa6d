"""Answers to questions without a model.

A question is answered at once: by the best complete reading of it, or, if no recipe covers it, by
the passages of notes that hold most of its words. Nothing can break, so nothing is asked first; the
first line states what was looked for, and the other readings are named below the answer.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from obsidian_agent.agent.events import Answer, Candidate, Emit, NeedsInput, Verdict
from obsidian_agent.services.offline_planner import OfflinePlanner, OfflineTurn
from obsidian_agent.vault.index.stop_words import STOP_WORDS

if TYPE_CHECKING:
    from obsidian_agent.agent.planner import PlanRequest
    from obsidian_agent.offline.search import RecipeSuggestion

LIKELY: Final = 2.0
"""Score from which a recipe is meant, and not only named by a common word."""

_MARKS: Final = ("?", "？", "؟")


def is_question(message: str) -> bool:
    """Return whether a message ends with a question mark or begins like a question.

    Instructions begin with a verb, questions with a common word such as “which”.
    """
    first = next(iter(message.casefold().split()), "")
    return message.rstrip().endswith(_MARKS) or first in STOP_WORDS


class AnsweringPlanner(Struct, frozen=True):
    """The offline planner, for a conversation in which questions are answered at once.

    Whatever could be an instruction stays a choice.
    """

    offline: OfflinePlanner

    @property
    def name(self) -> str:
        """The displayed name."""
        return self.offline.name

    async def plan(self, request: PlanRequest, emit: Emit) -> Verdict:
        """Plan or answer a message in a thread. No events are emitted."""
        return await asyncio.to_thread(self._plan, request)

    def _plan(self, request: PlanRequest) -> Verdict:
        verdict = self.offline.decide(request)
        if not isinstance(verdict, NeedsInput) or request.pick is not None:
            return verdict
        if not request.message.rstrip().endswith(_MARKS) or _is_instruction(self.offline, request):
            return verdict
        answered = answer(self.offline, request)
        return answered if isinstance(answered, Answer) else verdict


def answer(planner: OfflinePlanner, request: PlanRequest) -> Verdict:
    """Return the answer to a question, or a question with candidates if there is none.

    Only recipes that change nothing are used. An instruction is not answered. May block.
    """
    turn = planner.turn(request, questions=True)
    verdict = turn.verdict()
    if not isinstance(verdict, NeedsInput) or request.pick is not None:
        return planner.picked(request, verdict)
    if request.params or (not is_question(request.message) and _is_instruction(planner, request)):
        return verdict
    if answered := _from_readings(turn):
        return answered
    if _has_likely_reading(turn):
        return verdict  # a query is meant, but some word of the question has no part in it
    from obsidian_agent.services.passages import from_passages

    return from_passages(planner.view(), request.message) or verdict


def _is_instruction(planner: OfflinePlanner, request: PlanRequest) -> bool:
    """Return whether the most likely reading is complete and changes something."""
    turn = planner.turn(request)
    verdict = turn.verdict()
    if not isinstance(verdict, NeedsInput):
        return not isinstance(verdict, Answer)
    return any(
        candidate.plan is not None and _is_likely(suggestion)
        for candidate, suggestion in turn.ranked[:1]
    )


def _is_likely(suggestion: RecipeSuggestion | None) -> bool:
    return suggestion is None or (suggestion.worded and suggestion.score >= LIKELY)


def _has_likely_reading(turn: OfflineTurn) -> bool:
    """Return whether some reading has all its values, and its words name its action."""
    return any(
        not candidate.missing and _is_likely(suggestion) for candidate, suggestion in turn.ranked
    )


def _from_readings(turn: OfflineTurn) -> Answer | None:
    """Return the answer of the best complete reading, and the titles of the others."""
    for number, (candidate, suggestion) in enumerate(turn.ranked, 1):
        if candidate.missing or candidate.doubt or not _is_likely(suggestion):
            continue
        if suggestion is not None and not suggestion.complete:
            continue
        recipe = next(recipe for recipe in turn.recipes if recipe.name == candidate.recipe)
        verdict = turn.propose(recipe, candidate.values)
        if not isinstance(verdict, Answer):
            continue
        lines = [verdict.text]
        others = [
            f"{position}. {_described(other)}"
            for position, other in enumerate(turn.candidates, 1)
            if position != number
        ]
        if others:
            lines += ["", f"Or did you mean: {'; '.join(others)}?"]
        return replace(verdict, text="\n".join(lines))
    return None


def _described(candidate: Candidate) -> str:
    values = ", ".join(candidate.values.values())
    return f"{candidate.title} ({values})" if values else candidate.title
