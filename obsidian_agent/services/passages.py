"""The answer to a question by the passages of notes that hold most of its words."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from obsidian_agent.agent.events import Answer
from obsidian_agent.expression import expression
from obsidian_agent.offline.names import Surroundings
from obsidian_agent.offline.words import tokens
from obsidian_agent.services.question_answer import link_to, properties_text
from obsidian_agent.tools.core.lookup import without_properties
from obsidian_agent.tools.search.search import best_passage, preview
from obsidian_agent.vault.index.index import VaultIndex
from obsidian_agent.vault.index.stop_words import STOP_WORDS
from obsidian_agent.vault.index.word_query import Passage
from obsidian_agent.vault.index.word_search import rank_notes
from obsidian_agent.vault.paths.path import ROOT, VaultPath

MAX_PASSAGES: Final = 5
COVERED: Final = 0.2
"""Share of a question's words, by weight, that a note must hold to answer it."""

_ASKING: Final = ("which", "what", "find", "show", "list", "note", "have", "when", "count")
_RELATING: Final = (
    "befor",
    "sinc",
    "from",
    "in",
    "on",
    "to",
    "of",
    "with",
    "under",
    "more",
    "fewer",
)
_LOOKING: Final = frozenset({*_ASKING, *_RELATING, "fewer", "recently", "should"})
"""The senses of words that ask for notes, or relate words, and say nothing about them."""
_BEHIND: Final = 5
"""Lines behind the first passage: the answer is often below the line that names the subject."""
_HEADING: Final = expression(r"(#{1,6})\s")
_ITEM: Final = expression(r"\s*(?:[-*+]|\d+[.)])\s")
_LONGEST: Final = 160
"""Characters of a line behind a passage, and of the properties of a note."""


class PassageAnswer(Struct, frozen=True):
    """The best passages, and the share of the question's words that the first note holds."""

    answer: Answer
    share: float


def find_passages(around: Surroundings, question: str) -> PassageAnswer | None:
    """Return the passages that hold most of a question, or `None` if no note holds enough."""
    view, templates = around.view, around.context.notes.templates
    # “Which notes” and the like name the action; what is left is looked for.
    spoken = tokens(question)
    subject = [
        word.text
        for word in spoken
        if not (word.is_small or word.negates or word.senses & _LOOKING)
        if word.text not in STOP_WORDS
    ]
    if not subject:
        return None
    ranking = rank_notes(view.index, ROOT, " ".join(subject))
    folder = f"{templates or 'Templates'}/"
    meant = (note for note in ranking.notes if not note.path.text.startswith(folder))
    notes = [note for note in meant if note.share >= COVERED][:MAX_PASSAGES]
    if not notes:
        return None
    words = " ".join(word.text for word in ranking.query.words)
    lines = [f"Notes with most of the words “{words}”: {len(notes)}"]
    for number, note in enumerate(notes, 1):
        passage = best_passage(view.index, note.path, ranking)
        first, *behind = _passage_lines(view.index, note.path, passage)
        lines.append(f"{number}. {link_to(note.path, around)}{first}")
        lines += (f"   {line}" for line in (behind if number == 1 else ()))
    if denied := [word.text for word in spoken if word.negates]:
        lines += ["", f"Not used: {' and '.join(f'“{word}”' for word in denied)}."]
    answer = Answer("\n".join(lines), tuple(note.path.text for note in notes))
    return PassageAnswer(answer, notes[0].share)


def _passage_lines(index: VaultIndex, path: VaultPath, passage: Passage) -> Iterator[str]:
    """Yield the place and text of a passage, then the lines behind it in its section.

    The properties of a note are one passage.
    """
    data = index.text(path)
    text = data.decode(errors="replace") if isinstance(data, bytes) else ""
    head = text.removesuffix(without_properties(text)).count("\n")
    properties = properties_text(index.facts(path).properties)[:_LONGEST]
    if passage.line <= head:
        yield f": {properties}"
        return
    heading = f" › {passage.heading}" if passage.heading not in ("", path.stem) else ""
    own = _HEADING.match(passage.text)
    hit = preview(passage.text, (passage.start, passage.end)).strip()
    yield f"{heading}, line {passage.line}{'' if own else f': {hit}'}"
    is_name = passage.start == passage.end or passage.text.lstrip("# ") == path.stem
    if is_name and properties:
        yield properties
    level, count = len(own[1]) if own else 6, 0
    opens = bool(own) or is_name or passage.text.rstrip().endswith((":", "|"))
    is_item = bool(_ITEM.match(passage.text))
    for line in text.splitlines()[passage.line :]:
        below = _HEADING.match(line)
        goes_on = opens or (bool(line.strip()) and (line[:1].isspace() or not is_item))
        if count == _BEHIND or not goes_on or (below and len(below[1]) <= level):
            return
        if line.strip():
            count += 1
            yield line[:_LONGEST].rstrip()
