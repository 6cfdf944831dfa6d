"""Answers to questions without a model.

A question is answered at once: by the best complete reading of it, or, if no query covers it, by
the reading or the passages of notes that hold most of its words. Nothing can break, so nothing is
asked first; the first line states what was looked for and which words are not used, and the other
readings are named below the answer.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from obsidian_agent.agent.events import Answer, Emit, NeedsInput, PlanningResult
from obsidian_agent.offline.recipe import MAX_SUGGESTIONS
from obsidian_agent.offline.words import QUESTION_MARKS, tokens, words
from obsidian_agent.services.offline_planner import OfflinePlanner, OfflineTurn
from obsidian_agent.vault.index.stop_words import STOP_WORDS

if TYPE_CHECKING:
    from obsidian_agent.agent.events import Candidate
    from obsidian_agent.agent.planner import PlanRequest
    from obsidian_agent.offline.question import Question
    from obsidian_agent.offline.search import RecipeSuggestion

LIKELY: Final = 2.0
"""Score from which a recipe is meant, and not only named by a common word."""

_QUESTION_WORDS: Final = frozenset(
    {"which", "what", "when", "who", "whom", "where", "how", "why", "count"}
)
"""The senses of the first word of a question without a question mark."""
_NOTHING: Final = (
    "No note holds most of these words. Name a note, tag, folder or property to ask about it."
)
_HOW_TO_PICK: Final = "Send its number, or add --pick on the command line."


def is_question(message: str) -> bool:
    """Return whether a message ends with a question mark or begins like a question.

    Instructions begin with a verb, questions with a common word such as “which”.
    """
    first = next(iter(message.casefold().split()), "")
    return message.rstrip().endswith(QUESTION_MARKS) or first in STOP_WORDS


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
        number, asked_last = request.message.strip(), self.offline.asked_last
        if number.isdecimal() and asked_last:
            return answer(self.offline, replace(request, message=asked_last[0], pick=int(number)))
        asked_last.clear()
        turn = self.offline.turn(request)
        verdict = self.offline.apply_pick(request, turn.verdict())
        if not isinstance(verdict, NeedsInput) or request.pick is not None:
            return verdict
        if not _is_answered(turn):
            return verdict
        answered = answer(self.offline, request)
        if isinstance(answered, Answer) and answered.text.endswith(_HOW_TO_PICK):
            asked_last.append(request.message)
        # Without a question mark, no note at all hints at an instruction.
        is_answer = isinstance(answered, Answer) and bool(_asks(turn) or answered.sources)
        return answered if is_answer else verdict


def suggestions(planner: OfflinePlanner, request: PlanRequest) -> tuple[Candidate, ...]:
    """Return the likely actions of a message that is being typed, best first.

    If it would be answered, the form of the answered question comes first, then other questions.
    """
    turn = planner.turn(request)
    if not isinstance(turn.verdict(), NeedsInput) or not _is_answered(turn):
        return turn.candidates
    first = turn.of_question
    others = [
        candidate
        for candidate in planner.turn(request, questions=True).candidates
        if first is None or (candidate.recipe, candidate.values) != (first.recipe, first.values)
    ]
    return (*((first,) if first is not None else ()), *others)[:MAX_SUGGESTIONS]


def _is_answered(turn: OfflineTurn) -> bool:
    """Return whether a message is a question rather than an instruction."""
    question = turn.question
    is_query = question is not None and question.is_certain and not _is_order(turn)
    return is_query or (_asks(turn) and not _is_instruction(turn.planner, turn.request))


def _asks(turn: OfflineTurn) -> bool:
    """Return whether a message ends with a question mark or begins with a question word."""
    first = next(iter(tokens(turn.request.message)), None)
    is_marked = turn.request.message.rstrip().endswith(QUESTION_MARKS)
    is_worded = first is not None and bool((first.senses | {first.text}) & _QUESTION_WORDS)
    return is_marked or (is_worded and not _is_wish(turn))


def _is_wish(turn: OfflineTurn) -> bool:
    """Return whether a message states what should become of notes, and asks for no tasks."""
    # Lazy: instructions and exact examples do not need it.
    from obsidian_agent.offline.question import TaskQuery

    is_about_tasks = turn.question is not None and isinstance(turn.question.query, TaskQuery)
    spoken = tokens(turn.request.message)
    return not is_about_tasks and any(word.senses & {"should", "get"} for word in spoken)


def _is_order(turn: OfflineTurn) -> bool:
    """Return whether a message begins like an action, or states what should become of notes."""
    titles = (one.title for one in turn.planner.recipes() if one.answer is None)
    verbs = {words(title)[0] for title in titles if words(title)}
    first = next(iter(tokens(turn.request.message)), None)
    is_verb = first is not None and not verbs.isdisjoint(first.senses)
    return _is_wish(turn) or (is_verb and not _asks(turn))


def answer(planner: OfflinePlanner, request: PlanRequest) -> PlanningResult:
    """Return the answer to a question, or a choice for a message that asks nothing.

    Nothing is changed. An instruction is not answered. May block.
    """
    turn = planner.turn(request, questions=True)
    verdict = turn.verdict()
    if not isinstance(verdict, NeedsInput) or request.pick is not None:
        return planner.apply_pick(request, verdict)
    question = turn.question if not request.params else None
    if question is not None and question.is_certain:
        answered = _answered(turn, question)
        if answered.sources or question.is_list:
            return answered
    if request.params or (not is_question(request.message) and _is_instruction(planner, request)):
        return verdict
    from obsidian_agent.services.table_answer import from_table

    if row := from_table(turn.around, request.message):
        return row
    reading = _from_readings(turn)
    # A form that finds nothing says less than a question of which one word is not used.
    is_best = reading is not None and bool(reading.sources or question is None)
    return (reading if is_best else None) or _covered(turn, question) or reading or verdict


def _covered(turn: OfflineTurn, question: Question | None) -> Answer | None:
    """Return the reading of a question, the best passages, or both, whichever covers more first.

    Return None for a message that asks nothing and has no passages.
    """
    from obsidian_agent.services.passages import find_passages

    passages = find_passages(turn.around, turn.request.message)
    doubtful = _answered(turn, question) if question is not None else None
    if passages is None:
        is_asked = doubtful is None and _asks(turn)
        return Answer(_NOTHING) if is_asked else doubtful
    if doubtful is None or question is None or not doubtful.sources:
        return passages.answer
    if passages.share > question.coverage:
        return passages.answer
    return _answered(turn, question, passages.answer)


def _answered(turn: OfflineTurn, question: Question, passages: Answer | None = None) -> Answer:
    """Return the answer to a question, then passages, and the other readings if it is doubtful."""
    from obsidian_agent.services.question_answer import answer_question

    answered = answer_question(question, turn.around)
    if question.is_certain and answered.sources:
        return answered
    others = [
        f"{position}. {other.title}"
        for position, other in enumerate(turn.candidates, 1)
        if other.values and not other.missing and len(other.unused) <= len(question.unused)
        if question.notes.query() not in other.values.values()
        if not other.title.endswith(f": {question.notes.text()}")
        if answered.sources or _finds(turn, other)
    ]
    texts, sources = [answered.text], answered.sources
    if passages is not None:
        texts.append(passages.text)
        sources = tuple(dict.fromkeys((*sources, *passages.sources)))
    if others:
        texts.append(f"Or did you mean: {'; '.join(others)}? {_HOW_TO_PICK}")
    return replace(answered, text="\n\n".join(texts), sources=sources)


def _finds(turn: OfflineTurn, candidate: Candidate) -> bool:
    """Return whether a reading that answers finds something."""
    recipe = next(recipe for recipe in turn.recipes if recipe.name == candidate.recipe)
    answered = turn.propose(recipe, candidate.values) if recipe.answer is not None else None
    return isinstance(answered, Answer) and bool(answered.sources)


def _is_instruction(planner: OfflinePlanner, request: PlanRequest) -> bool:
    """Return whether the most likely reading changes something, and is complete or asked for."""
    turn = planner.turn(request)
    verdict = turn.verdict()
    if not isinstance(verdict, NeedsInput):
        return not isinstance(verdict, Answer)
    # “Could you move X to Y?” is an order even if there is no folder Y.
    is_order = any("could" in word.senses for word in tokens(request.message)[:1])
    return any(
        (candidate.plan is not None or (is_order and suggestion and not suggestion.recipe.answer))
        and _is_likely(suggestion)
        for candidate, suggestion in turn.ranked[:1]
    )


def _is_likely(suggestion: RecipeSuggestion | None) -> bool:
    return suggestion is None or (suggestion.worded and suggestion.score >= LIKELY)


def _from_readings(turn: OfflineTurn) -> Answer | None:
    """Return the answer of the best complete reading by a recipe."""
    for candidate, suggestion in turn.ranked:
        # A word alone, such as “works”, chooses no question.
        is_complete = suggestion is None or (suggestion.complete and bool(candidate.values))
        if candidate.missing or candidate.doubt or not (is_complete and _is_likely(suggestion)):
            continue
        recipe = next(recipe for recipe in turn.recipes if recipe.name == candidate.recipe)
        answered = turn.propose(recipe, candidate.values)
        if isinstance(answered, Answer):
            return answered
    return None
