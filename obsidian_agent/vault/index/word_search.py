"""Ranking of notes by the words they hold.

Notes are ranked by BM25 over several fields: a word in the name, an alias, a heading or a tag
counts for more than one in the text. A note need not hold all words of the query, but the more of
them it holds, the better. Notes with a phrase of the query come first, then, for a few keywords,
those with all of them. Counted are all notes that may hold every word, and of the others those with
the rarest words. The counts are stored (`words.py`), or a search over the packed texts finds the
notes with a word, and they are read.

Source of the formula: Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and
Beyond" (2009).
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec import Struct

from obsidian_agent.budget import checked
from obsidian_agent.errors import Problem
from obsidian_agent.vault.index.index import PathCache, VaultIndex
from obsidian_agent.vault.index.stop_words import STOP_WORDS
from obsidian_agent.vault.index.text_search import Needle
from obsidian_agent.vault.index.word_query import WordQuery, headings_of
from obsidian_agent.vault.paths.path import VaultPath

if TYPE_CHECKING:
    from obsidian_agent.vault.index.words import WordCount

SATURATION: Final = 1.2
"""The k1 of BM25."""

LENGTH: Final = 0.75
"""The b of BM25."""

IN_NAME: Final = 2.0
"""The weight of a word in the note's name, as a multiple of its maximum weight in the text."""

IN_ALIAS: Final = 1.5
IN_HEADING: Final = 0.5
IN_TAG: Final = 0.7

MAX_PARTIAL: Final = 300
"""Number of notes with some of the words that are read, in addition to those with all of them."""

MAX_FIELDS: Final = 200
"""Number of the best notes whose headings, tags and aliases are compared."""


class RankedNote(NamedTuple):
    """A note and its score (higher is better).

    `share` is the part of the query that it holds, by the weights of the words.
    """

    path: VaultPath
    score: float
    is_complete: bool
    share: float


class Ranking(Struct, frozen=True):
    """The notes that match a query, best first.

    `weights` are those of the query's words: rare words weigh more.
    """

    query: WordQuery
    notes: Sequence[RankedNote] = ()
    weights: Sequence[float] = ()


class _WordCounts(Struct, kw_only=True):
    path: VaultPath
    length: int
    counts: list[float]
    in_name: list[bool]
    rank: int
    """The number of the query's phrases in the note, and one more for all of a few keywords."""


def rank_notes(
    index: VaultIndex,
    folder: VaultPath,
    query: str,
    is_cancelled: Callable[[], bool] = lambda: False,
) -> Ranking:
    """Return the notes below a folder that match a query, best first.

    Notes that cannot be read are skipped.
    """
    words = WordQuery(query)
    if not words:
        return Ranking(words)
    total = index.note_count(folder)
    stored = _stored_counts(index, folder, words)
    if stored is None:
        holders = [_holders(index, folder, word.needles) for word in words.words]
    else:
        changed = {text for text in index.changed_notes() if _is_below(text, folder)}
        holders = [counts.keys() | changed for counts in stored]
    chosen = set(holders[0]).intersection(*holders[1:])
    for needles in words.phrase_needles:
        chosen |= _holders(index, folder, needles)
    chosen |= _promising(holders, chosen, total)
    vault_path = PathCache()
    counted: list[_WordCounts] = []
    for text in checked(sorted(chosen)):
        if is_cancelled():
            return Ranking(words)
        path = vault_path(text)
        note = _known(path, words, stored) if stored is not None else None
        if note is None:
            note = _count(index, path, words)
        if note is not None:
            counted.append(note)
    weights = _weights(holders, chosen, counted, max(total, 1))
    return Ranking(words, _rank(index, counted, words, weights), weights)


def _stored_counts(
    index: VaultIndex, folder: VaultPath, query: WordQuery
) -> list[Mapping[str, WordCount]] | None:
    """Return the notes with each word, or None if the index does not store words.

    Words that are too common are not stored; a query has them only if it has no others.
    """
    if any(word.text in STOP_WORDS for word in query.words):
        return None
    stored = []
    for word in query.words:
        counts = index.word_counts(word)
        if counts is None:
            return None
        if not folder.is_root:
            counts = {text: count for text, count in counts.items() if _is_below(text, folder)}
        stored.append(counts)
    return stored


def _is_below(text: str, folder: VaultPath) -> bool:
    return folder.is_root or text.startswith(f"{folder.text}/")


def _holders(index: VaultIndex, folder: VaultPath, needles: Sequence[Needle]) -> set[str]:
    """Return the notes that may hold one of several needles; without needles all notes may."""
    if not needles:
        return {path.text for path in index.notes(folder)}
    return set().union(*(index.may_hold(folder, needle) for needle in needles))


def _promising(holders: Sequence[Set[str]], chosen: set[str], total: int) -> set[str]:
    """Return the notes outside `chosen` that can score highest, from the words they may hold."""
    scores: dict[str, float] = {}
    for notes in holders:
        others = notes - chosen
        weight = _weight(len(others), total)
        for text in others:
            scores[text] = scores.get(text, 0.0) + weight
    if len(scores) <= MAX_PARTIAL:
        return set(scores)
    least = heapq.nlargest(MAX_PARTIAL, scores.values())[-1]
    best = {text for text, score in scores.items() if score > least}
    ties = sorted(text for text, score in scores.items() if score == least)
    return best.union(ties[: MAX_PARTIAL - len(best)])


def _weight(frequency: int, total: int) -> float:
    return math.log(1 + (total - min(frequency, total) + 0.5) / (frequency + 0.5))


def _weights(
    holders: Sequence[Set[str]], read: set[str], counted: Sequence[_WordCounts], total: int
) -> list[float]:
    """Return the weight of each word. Of notes that were not read, those that may hold it count."""
    weights = []
    for position, notes in enumerate(holders):
        unread = len(notes) - len(notes & read)
        frequency = sum(1 for note in counted if note.counts[position]) + unread
        weights.append(_weight(frequency, total))
    return weights


def _text(index: VaultIndex, path: VaultPath) -> str | None:
    data = index.text(path)
    return None if isinstance(data, Problem) else data.decode(errors="replace")


def _known(
    path: VaultPath, query: WordQuery, stored: Sequence[Mapping[str, WordCount]]
) -> _WordCounts | None:
    """Return the stored counts of a note.

    Return None if it must be read: it changed, or may hold a phrase of the query.
    """
    known = [counts.get(path.text) for counts in stored]
    lengths = [count.length for count in known if count is not None]
    if not lengths or (query.phrases and all(known)):
        return None
    name = path.stem.casefold()
    named = [word.count(name) for word in query.words]
    counts = [
        (0.0 if count is None else count.occurrences) + in_name
        for count, in_name in zip(known, named, strict=True)
    ]
    return _WordCounts(
        path=path,
        length=lengths[0],
        counts=counts,
        in_name=[count >= 1 for count in named],
        rank=int(query.is_keywords and min(counts) >= 1),
    )


def _count(index: VaultIndex, path: VaultPath, query: WordQuery) -> _WordCounts | None:
    text = _text(index, path)
    if text is None:
        return None
    folded, name = text.casefold(), path.stem.casefold()
    named = [word.count(name) for word in query.words]
    counts = [
        word.count(folded) + in_name for word, in_name in zip(query.words, named, strict=True)
    ]
    if not any(counts):
        return None
    rank = sum(1 for phrase in query.phrases if phrase in folded or phrase in name)
    if query.is_keywords and min(counts) >= 1:
        rank += 1
    return _WordCounts(
        path=path,
        length=len(text),
        counts=counts,
        in_name=[count >= 1 for count in named],
        rank=rank,
    )


def _rank(
    index: VaultIndex, notes: list[_WordCounts], query: WordQuery, weights: Sequence[float]
) -> list[RankedNote]:
    if not notes:
        return []
    average = sum(note.length for note in notes) / len(notes) or 1.0
    total = sum(weights) or 1.0
    scored = []
    for note in notes:
        norm = SATURATION * (1 - LENGTH + LENGTH * note.length / average)
        score = held = 0.0
        for weight, count, in_name in zip(weights, note.counts, note.in_name, strict=True):
            score += weight * count * (SATURATION + 1) / (count + norm)
            score += weight * IN_NAME if in_name else 0.0
            held += weight if count else 0.0
        scored.append((note.rank, score * (1 + held / total), held / total, note))
    # Sorting by numbers only is fast, so other threads are not blocked for long. The sort is
    # stable: notes with equal scores stay sorted by path.
    scored.sort(key=lambda row: (-row[0], -row[1]))
    best = [
        (rank, score + _in_fields(index, note.path, query, weights), share, note)
        for rank, score, share, note in scored[:MAX_FIELDS]
    ]
    best.sort(key=lambda row: (-row[0], -row[1]))
    return [
        RankedNote(note.path, score, all(note.counts), share)
        for _, score, share, note in (*best, *scored[MAX_FIELDS:])
    ]


def _in_fields(
    index: VaultIndex, path: VaultPath, query: WordQuery, weights: Sequence[float]
) -> float:
    """Return what a note's aliases, headings and tags add to its score."""
    facts = index.facts(path)
    text = _text(index, path) or ""
    fields = (
        (IN_ALIAS, facts.aliases),
        (IN_HEADING, headings_of(text)),
        (IN_TAG, facts.tags),
    )
    return sum(share * _held(texts, query, weights) for share, texts in fields)


def _held(texts: Iterable[str], query: WordQuery, weights: Sequence[float]) -> float:
    joined = "\n".join(texts).casefold()
    if not joined:
        return 0.0
    return sum(
        weight * min(word.count(joined), 1.0)
        for word, weight in zip(query.words, weights, strict=True)
    )
