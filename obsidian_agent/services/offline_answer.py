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

from obsidian_agent.agent.events import Answer, Candidate, Emit, NeedsInput, PlanningResult
from obsidian_agent.offline.note_set import NoteSet
from obsidian_agent.offline.words import tokens
from obsidian_agent.services.offline_planner import OfflinePlanner, OfflineTurn
from obsidian_agent.vault.index.stop_words import STOP_WORDS

if TYPE_CHECKING:
    from obsidian_agent.agent.planner import PlanRequest
    from obsidian_agent.offline.search import RecipeSuggestion

LIKELY: Final = 2.0
"""Score from which a recipe is meant, and not only named by a common word."""

MAX_UNUSED: Final = 2
"""Words of a question that may have no part in the reading that answers it."""

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

    async def plan(self, request: PlanRequest, emit: Emit) -> PlanningResult:
        """Plan or answer a message in a thread. No events are emitted."""
        return await asyncio.to_thread(self._plan, request)

    def _plan(self, request: PlanRequest) -> PlanningResult:
        verdict = self.offline.decide(request)
        if not isinstance(verdict, NeedsInput) or request.pick is not None:
            return verdict
        if not request.message.rstrip().endswith(_MARKS) or _is_instruction(self.offline, request):
            return verdict
        answered = answer(self.offline, request)
        return answered if isinstance(answered, Answer) else verdict


def answer(planner: OfflinePlanner, request: PlanRequest) -> PlanningResult:
    """Return the answer to a question, or a question with candidates if there is none.

    Only recipes that change nothing are used. An instruction is not answered. May block.
    """
    turn = planner.turn(request, questions=True)
    verdict = turn.verdict()
    if not isinstance(verdict, NeedsInput) or request.pick is not None:
        return planner.apply_pick(request, verdict)
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
    complete = [
        reading for reading in turn.ranked if reading[1] is not None and reading[1].complete
    ]
    return any(
        candidate.plan is not None and _is_likely(suggestion)
        for candidate, suggestion in (complete or turn.ranked)[:1]
    )


def _is_likely(suggestion: RecipeSuggestion | None) -> bool:
    return suggestion is None or (suggestion.worded and suggestion.score >= LIKELY)


def _has_likely_reading(turn: OfflineTurn) -> bool:
    """Return whether some reading has values, and its words name its action."""
    return any(
        candidate.values and not candidate.missing and _is_likely(suggestion)
        for candidate, suggestion in turn.ranked
    )


def _from_readings(turn: OfflineTurn) -> Answer | None:
    """Return the answer of the best reading, and the titles of the others.

    A complete reading is best. Of the others, the first is answered if few words have no part in
    it; the answer lists them.
    """
    complete = [
        reading
        for reading in turn.ranked
        if not (reading[0].missing or reading[0].doubt) and _is_likely(reading[1])
        if reading[1] is None or reading[1].complete
    ]
    partial = [reading for reading in turn.ranked if _is_almost_complete(reading)][:1]
    for candidate, suggestion in (*complete, *partial):
        recipe = next(recipe for recipe in turn.recipes if recipe.name == candidate.recipe)
        verdict = turn.propose(recipe, candidate.values)
        if not isinstance(verdict, Answer):
            continue
        lines = [verdict.text]
        if suggestion is not None and suggestion.unused:
            unused = " and ".join(f"“{text}”" for text in suggestion.unused)
            lines += ["", f"Not used: {unused}."]
        others = [
            f"{position}. {other.title}"
            for position, other in enumerate(turn.candidates, 1)
            if other is not candidate
        ]
        if others:
            lines += ["", f"Or did you mean: {'; '.join(others)}?"]
        return replace(verdict, text="\n".join(lines))
    return None


def _is_almost_complete(reading: tuple[Candidate, RecipeSuggestion | None]) -> bool:
    """Return whether the words without a part in a reading are few, and none limits it."""
    candidate, suggestion = reading
    if suggestion is None or suggestion.guesses or candidate.missing or not candidate.values:
        return False
    inputs = suggestion.recipe.inputs.values()
    assumes = any(spec.kind == "choice" and spec.name not in candidate.values for spec in inputs)
    # A question about one note asks for its text, unless its words name an action.
    names_note = any(
        term.key == "note"
        for value in suggestion.values.values()
        if isinstance(value, NoteSet)
        for term in value.terms
    )
    if suggestion.score < LIKELY or ((assumes or names_note) and not suggestion.worded):
        return False
    unused = [word for text in suggestion.unused for word in text.split()]
    limits = any(
        word.negates or not word.text.isalpha() for text in unused for word in tokens(text)
    )
    return not limits and len(unused) <= MAX_UNUSED
