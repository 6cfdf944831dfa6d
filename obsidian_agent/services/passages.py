"""The answer to a question by the passages of notes that hold most of its words."""

from __future__ import annotations

from typing import Final

from obsidian_agent.agent.events import Answer
from obsidian_agent.offline.words import meanings, tokens
from obsidian_agent.tools.search.search import best_passage, preview
from obsidian_agent.vault.index.word_search import rank_notes
from obsidian_agent.vault.paths.path import ROOT
from obsidian_agent.vault.views.view import VaultView

MAX_PASSAGES: Final = 5
COVERED: Final = 0.2
"""Share of a question's words, by weight, that a note must hold to answer it."""

_LOOKING: Final = frozenset({"which", "what", "find", "show", "list", "note", "have"})
"""The senses of words that ask for notes, and say nothing about them."""


def from_passages(view: VaultView, question: str) -> Answer | None:
    """Return the passages that hold most of a question, or `None` if no note holds enough."""
    # “Which notes” and the like name the action; what is left is looked for.
    content = [token.text for token in tokens(question) if not token.is_small]
    subject = [word for word in content if not meanings(word) & _LOOKING]
    ranking = rank_notes(view.index, ROOT, " ".join(subject or [question]))
    notes = [note for note in ranking.notes if note.share >= COVERED][:MAX_PASSAGES]
    if not notes:
        return None
    words = " ".join(word.text for word in ranking.query.words)
    lines = [f"Notes with most of the words “{words}”: {len(notes)}"]
    for number, note in enumerate(notes, 1):
        passage = best_passage(view.index, note.path, ranking)
        heading = f" › {passage.heading}" if passage.heading else ""
        text = preview(passage.text, (passage.start, passage.end)).strip()
        lines.append(f"{number}. {note.path.text}{heading}, line {passage.line}: {text}")
    return Answer("\n".join(lines), tuple(note.path.text for note in notes))
