"""The answer to a question by the rows of a table in a note.

Every word of the question must be a column, a part of a cell, a measure, or a word of the note's
name or heading; otherwise there is no answer. A question about the open note (“in this table”) may
have other words, which are named as not used.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Final

from msgspec import Struct

from obsidian_agent.agent.events import Answer
from obsidian_agent.offline.names import Surroundings
from obsidian_agent.offline.question import MEASURES, QUESTION_WORDS
from obsidian_agent.offline.sentence import MEASURED
from obsidian_agent.offline.words import FUNCTION_WORDS, Word, folded, senses_of, tokens, words
from obsidian_agent.services.question_answer import (
    MAX_LINES,
    TITLES,
    capitalized,
    measured,
    with_unused,
)
from obsidian_agent.tools.core.tool import ToolContext
from obsidian_agent.tools.items import parse_number
from obsidian_agent.tools.registry import TOOLS
from obsidian_agent.tools.search.search import best_passage
from obsidian_agent.vault.index.word_search import rank_notes
from obsidian_agent.vault.paths.path import ROOT, VaultPath

_NOTES: Final = 5
"""The most likely notes, whose tables are read."""
_NO: Final = frozenset(
    {"no", "n", "false", "-", "✗", "✘", "", "nein", "non", "ne", "нет", "否", "×"}
)
_YES: Final = frozenset(
    {"yes", "y", "true", "x", "✓", "✔", "✅", "ja", "oui", "sí", "si", "да", "是"}
)
_TABLE: Final = frozenset(words("table row much this"))
"""The senses of further words that say what is looked for."""

_Row = Mapping[str, str]


class _Condition(Struct, frozen=True):
    """A word that a cell holds, or without one a column that says yes."""

    column: str
    word: Word | None
    denied: bool

    @property
    def text(self) -> str:
        held = f" {self.word.text}" if self.word is not None else ""
        return f"{'not ' if self.denied else ''}{self.column}{held}"

    def is_met(self, row: _Row) -> bool:
        cell = row[self.column]
        holds = cell.casefold() in _YES if self.word is None else _holds(cell, self.word)
        return holds != self.denied


def from_table(around: Surroundings, question: str) -> Answer | None:
    """Return the answer by the first table that holds all words of a question, or `None`."""
    spoken = [word for word in tokens(question) if word.negates or not word.is_small]
    is_here = any(word.senses & {"thi", "here"} for word in tokens(question))
    active = around.context.active_file
    if is_here and active is not None and (answer := _answer(around, active, "", spoken, None)):
        return answer
    ranking = rank_notes(around.view.index, ROOT, " ".join(word.text for word in spoken))
    for note in ranking.notes[:_NOTES]:
        heading = best_passage(around.view.index, note.path, ranking).heading
        if answer := _answer(around, note.path, heading, spoken, 0):
            return answer
    return None


def _answer(
    around: Surroundings,
    path: VaultPath,
    heading: str,
    spoken: Sequence[Word],
    most_unused: int | None,
) -> Answer | None:
    """Return the answer by the table in a note, if not too many words have no part in it."""
    parse = TOOLS["util.parseTable"]
    context = ToolContext(around.view, around.view, around.context)
    output = parse.propose(parse.input.model_validate({"path": path.text}), context).output
    rows: list[_Row] = [row.cells for row in output.items]
    named = _stems(f"{path.text} {heading}")
    conditions: list[_Condition] = []
    subject: str | None = None
    denied = False
    unused: list[str] = []
    for word in spoken:
        if word.negates:
            denied = True
            continue
        column = next((name for name in output.columns if word.senses & _meant(name)), None)
        cell = next(
            (name for name in output.columns for row in rows if _holds(row[name], word)), None
        )
        if column is not None and _is_flag(rows, column):
            conditions.append(_Condition(column, None, denied))
        elif column is not None and column != output.columns[0]:
            subject = subject or column
        elif column is None and cell is not None:
            conditions.append(_Condition(cell, word, denied))
        elif column is None and not (word.senses & (QUESTION_WORDS | _TABLE | named)):
            unused.append(word.text)
        denied = denied and column is None and cell is None
    senses = frozenset[str]().union(*(word.senses for word in spoken)) - {"count"}
    measure = next((name for own, name in MEASURES if own & senses), None)
    numbers = [name for name in output.columns if _is_number(rows, name)]
    if measure is not None and subject is None and len(numbers) == 1:
        subject = numbers[0]
    is_read = most_unused is None or len(unused) <= most_unused
    if not (is_read and rows and (conditions or (subject and measure))):
        return None
    met = [row for row in rows if all(condition.is_met(row) for condition in conditions)]
    limits = " and ".join(condition.text for condition in conditions)
    title = f"rows of the table in {path.stem}{f' with {limits}' if limits else ''}"
    result = f"{len(met)}"
    if measure is not None and subject is not None and subject in numbers:
        amounts = ((row, parse_number(row[subject])) for row in met)
        known = [(row, _plain(number)) for row, number in amounts if number is not None]
        counted, result = measured(known, measure)
        title = f"{TITLES[measure]}{subject} of {title}"
        met = [row for row, _ in counted]
    elif subject is not None and len(met) == 1:
        result = met[0][subject]
    lines = [f"- {'; '.join(filter(None, row.values()))}" for row in met[:MAX_LINES]]
    head = with_unused(f"{capitalized(title)}: {result}", unused)
    return Answer("\n".join([head, *lines]), (path.text,))


def _plain(number: Decimal) -> int | float:
    return int(number) if number == int(number) else float(number)


def _stems(text: str) -> frozenset[str]:
    return frozenset[str]().union(*(word.senses for word in tokens(text))) - FUNCTION_WORDS


def _meant(column: str) -> frozenset[str]:
    """Return the stems of a column's words, and the measure that they mean."""
    own = frozenset(sense for word in tokens(column) for sense in (word.text, *word.senses))
    return own - (QUESTION_WORDS - MEASURED)


def _holds(cell: str, word: Word) -> bool:
    return any(senses_of(word.text) & senses_of(part.text) for part in tokens(folded(cell)))


def _is_flag(rows: Sequence[_Row], column: str) -> bool:
    return bool(rows) and all(row[column].casefold() in _NO | _YES for row in rows)


def _is_number(rows: Sequence[_Row], column: str) -> bool:
    return all(parse_number(row[column]) is not None for row in rows if row[column])
