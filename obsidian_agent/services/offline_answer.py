"""Answers to questions without a model.

A question is answered at once: by the best complete reading of it, or, if no recipe covers it, by
the passages of notes that hold most of its words. Nothing can break, so nothing is asked first; the
first line states what was looked for, and the other readings are named below the answer.
"""

from __future__ import annotations

import asyncio
from typing import Final

from obsidian_agent.agent.events import Answer, Candidate, Emit, NeedsInput, Verdict
from obsidian_agent.agent.planner import PlanRequest
from obsidian_agent.dataclass import dataclass, replace
from obsidian_agent.offline.search import RecipeSuggestion
from obsidian_agent.services.offline_planner import OfflinePlanner, OfflineTurn
from obsidian_agent.tools.search.search import best_passage, preview
from obsidian_agent.vault.index.word_query import STOP_WORDS
from obsidian_agent.vault.index.word_search import Ranking, rank_notes
from obsidian_agent.vault.paths.path import ROOT
from obsidian_agent.vault.views.view import VaultView

MAX_PASSAGES: Final = 5
COVERED: Final = 0.2
"""Share of a question's words, by weight, that a note must hold to answer it."""

LIKELY: Final = 2.0
"""Score from which a recipe is meant, and not only named by a common word."""

_MARKS: Final = ("?", "？", "؟")


def is_question(message: str) -> bool:
    """Return whether a message ends with a question mark or begins like a question.

    Instructions begin with a verb, questions with a common word such as “which”.
    """
    first = next(iter(message.casefold().split()), "")
    return message.rstrip().endswith(_MARKS) or first in STOP_WORDS


@dataclass(frozen=True)
class AnsweringPlanner:
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
    view = planner.view()
    ranking = rank_notes(view.index, ROOT, request.message)
    if answered := _from_readings(turn):
        return answered
    if _has_likely_reading(turn):
        return verdict  # a query is meant, but some word of the question has no part in it
    return _from_passages(view, ranking, COVERED) or verdict


def _is_instruction(planner: OfflinePlanner, request: PlanRequest) -> bool:
    """Return whether the most likely reading is complete and changes something."""
    turn = planner.turn(request)
    verdict = turn.verdict()
    if not isinstance(verdict, NeedsInput):
        return not isinstance(verdict, Answer)
    return any(
        candidate.plan is not None and _is_likely(suggestion)
        for candidate, suggestion in zip(turn.candidates[:1], turn.suggestions, strict=False)
    )


def _is_likely(suggestion: RecipeSuggestion | None) -> bool:
    return suggestion is None or (suggestion.worded and suggestion.score >= LIKELY)


def _has_likely_reading(turn: OfflineTurn) -> bool:
    """Return whether some reading has all its values, and its words name its action."""
    return any(
        not candidate.missing and _is_likely(suggestion)
        for candidate, suggestion in zip(turn.candidates, turn.suggestions, strict=True)
    )


def _from_readings(turn: OfflineTurn) -> Answer | None:
    """Return the answer of the best complete reading, and the titles of the others."""
    readings = zip(turn.candidates, turn.suggestions, strict=True)
    for number, (candidate, suggestion) in enumerate(readings, 1):
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


def _from_passages(view: VaultView, ranking: Ranking, share: float) -> Answer | None:
    """Return the passages that hold most of a question, or `None` if no note holds enough."""
    notes = [note for note in ranking.notes if note.share >= share][:MAX_PASSAGES]
    if not notes:
        return None
    words = " ".join(word.text for word in ranking.query.words)
    lines = [f"notes with most of “{words}”: {len(notes)}"]
    for number, note in enumerate(notes, 1):
        passage = best_passage(view.index, note.path, ranking)
        heading = f" › {passage.heading}" if passage.heading else ""
        text = preview(passage.text, (passage.start, passage.end)).strip()
        lines.append(f"{number}. {note.path.text}{heading}, line {passage.line}: {text}")
    return Answer("\n".join(lines), tuple(note.path.text for note in notes))
