"""Values for the inputs of a recipe from the pieces of a sentence.

A reading gives each piece an input, or none, so that all of them together fit best: by the words
that introduce a piece and those before the input in the recipe's own examples, by kind, and by
the words explained. What is missing, what has no place, and what the vault does not have count
against it. The names and conditions of one input describe notes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from obsidian_agent.errors import ObsidianAgentError
from obsidian_agent.expression import unicode_expression
from obsidian_agent.offline.days import NUMBERS
from obsidian_agent.offline.names import Name, NameKind, display_text
from obsidian_agent.offline.note_set import ACTIVE, InvalidValue, NoteSet, Term, without_templates
from obsidian_agent.offline.pieces import (
    ARTICLES,
    LABELS,
    NOUNS,
    SentencePiece,
    colon_of,
    is_filler,
    pieces_of,
)
from obsidian_agent.offline.recipe import SLOT, Input, Recipe
from obsidian_agent.offline.sentence import (
    AND,
    ORDERS,
    NameMatch,
    NoteCondition,
    Sentence,
    cue_before,
    is_within,
)
from obsidian_agent.offline.values import read
from obsidian_agent.offline.words import (
    END,
    FUNCTION_WORDS,
    NOT,
    Stretch,
    Word,
    is_function_word,
    stem,
    tokens,
    words,
)

_NAMES: Final[Mapping[str, tuple[NameKind, ...]]] = {
    **dict.fromkeys(("note", "template"), ("note", "alias")),
    **dict.fromkeys(("tag", "tags"), ("tag",)),
    **dict.fromkeys(("property", "properties"), ("property",)),
    "entry": ("note", "alias", "folder", "file"),
    "folder": ("folder",),
    "value": ("value",),
}
"""The kinds of names that an input accepts, by its kind."""
_NEW: Final = frozenset({"newNote", "newName", "folder", "tag", "tags"})
"""The kinds of inputs that accept a new name below an existing one."""
_PROSE: Final = frozenset({"text", "list"})
_LISTED: Final = frozenset({"tags", "properties", "list", "names"})
"""The kinds of inputs whose values several pieces name."""
_WORDED: Final = _PROSE | {"folder", "newNote", "newName", "names", "value", "heading"}
"""The kinds of inputs that accept any words."""
_FREE: Final = _WORDED | {"tag", "tags", "property", "properties"}
"""The kinds of inputs that accept words that are no name of the vault."""
_SINGULAR: Final = {"tags": "tag", "properties": "property"}
_KIND_CUES: Final[Mapping[str, frozenset[str]]] = {
    **{noun: frozenset({noun}) for noun in ("tag", "folder", "property")},
    "heading": frozenset({"heading", "section"}),
    **dict.fromkeys(_PROSE, frozenset({"bullet", "text"})),
    "newName": frozenset({"call", "name"}),
}
"""The stems of the words before an input of a kind, in any recipe."""
_TASK_TOOLS: Final = frozenset({"vault.markTasks", "vault.setTaskDue", "vault.takeLines"})
_OF_NOTES: Final = ("is", "words", "links", "backlinks")
"""The keys of conditions whose words never choose an action."""
_ALL: Final = NoteSet()
_LIMITING: Final = frozenset({"that", "which", "befor", "sinc", "without", "thi", NOT})
"""Senses of the words that begin a clause about which notes are meant."""
_ADVERBS: Final = frozenset({"still", "also", "just", "currently"})
"""English words in such a clause that limit nothing."""
_CLAUSES: Final = frozenset({"that", "which", "who", "whose"})
"""The senses of words that end a name."""
_RESULTS: Final = frozenset({"value", "tags", "newName", "newNote", "folder"})
"""The kinds of inputs that a statement names behind its verb."""
_HAVING: Final = frozenset({"with", "without", "have", "property", "to"})
"""Senses of the words by which a property exists, or does not, whatever its value."""
_TO: Final = frozenset({"to", "into", "onto"})
_INSIDE: Final = frozenset({"in", "from", "under"})
_REMOVING: Final = frozenset({"remov", "delet", "renam"})
"""The stems of verbs for what exists: a tag or a property that no note has is none."""
_ASSIGNS: Final = unicode_expression(r"\s*[:=]")
_ASSIGNED: Final = unicode_expression(r"[:=]\s*$")
_OPENING: Final = unicode_expression(r"[(\[¿¡]+$")
_CLOSING: Final = unicode_expression(r"[)\]%+]*")
_STRUCTURE: Final = NOUNS | NUMBERS.keys() | {"end", "start"}
"""The senses of words that no reading need explain."""

# What a reading is worth.
_BEAM: Final = 12
"""The readings that are kept for each piece."""
_READ: Final = 6
"""The readings whose values are read."""
_FITTING: Final = 1.0
"""A name of the right kind."""
_LITERAL: Final = 2.0
"""A word before the piece is one before the input in an example; another one means the same."""
_SAME_SENSE: Final = 1.6
_DISTANT: Final = 0.1
_BEHIND_COLON: Final = 2.5
_ANOTHER: Final = 1.5
"""The cost of words that introduce another input."""
_UNNAMED: Final = 0.8
"""The cost of words that nothing introduces."""
_UNPLACED: Final = 3.0
"""The cost of a piece that no preposition introduces, for an input that always has one."""
_WHERE: Final = 2.8
"""The cost of a destination that is said like a place where notes are."""
_CERTAIN: Final = 1.5
"""The worth from which a value says that a property is set."""
_MISSING: Final = 2.5
_LIMIT: Final = 4.0
"""The cost of a condition that no input takes."""
_NOWHERE: Final = 2.4
"""The cost of a description that no note meets."""


class Assignment(Struct, frozen=True):
    """The inputs of the first pieces: "" for none, "+" for one that continues the piece before."""

    inputs: tuple[str, ...]
    worth: float

    @property
    def last(self) -> str:
        """The input of the last piece."""
        return next((name for name in reversed(self.inputs) if name != "+"), "")


@lru_cache(maxsize=512)
def _cues(examples: Sequence[str], name: str) -> frozenset[str]:
    """Return the stems of the words before an input, or fields of one, in a recipe's examples."""
    cues: set[str] = set()
    for example in examples:
        for slot in SLOT.finditer(example):
            if slot[1] == name:
                before = SLOT.sub("!", example[: slot.start()])
                cue = cue_before(before, tokens(before), len(before))
                cues |= {stem(cue.text)} if cue is not None else set()
    return frozenset(cues)


def own_words(recipe: Recipe) -> frozenset[str]:
    """Return the stems of the words that a recipe is described with."""
    texts = (recipe.title, recipe.description, *recipe.examples)
    own = frozenset(words(SLOT.sub(" ", " ".join(texts)))) - {NOT}
    return own | {"delet"} if "vault.delete" in recipe.tools else own


class Filling:
    """The values of a recipe's inputs that are clear from a sentence.

    What to delete is not clear if an unused word may be a condition.
    """

    def __init__(self, parsed: Sentence, recipe: Recipe) -> None:
        self.parsed = parsed
        self.recipe = recipe
        self.values: dict[str, Any] = {}
        self.used: list[Stretch] = []
        self.guesses: dict[str, Stretch] = {}
        """The phrases without quotes, by input."""
        self.worth = 0.0
        """The worth of the reading, comparable among those of one sentence."""
        self.is_known = False
        """True if the values are those of a line, or of an old value, that the vault has."""
        self._own = own_words(recipe) | {"call", "all", "vault"}
        self._withdrawn: list[Stretch] = []
        """The parts of values that were read and then given up."""
        here = [parsed.here] if parsed.here is not None else []
        if any(spec.default == ACTIVE for spec in recipe.inputs.values()):
            self.used += here
        self._names = self._without_templates(
            [one for one in parsed.names if not is_within(one, here)]
        )
        self.used += (word for word in parsed.tokens if self._is_of_predicate(word))
        self._fill()
        self.values = {name: self.values[name] for name in recipe.inputs if name in self.values}

    @property
    def phrases(self) -> list[Stretch]:
        """The parts of the sentence that are a value or a condition, without names."""
        conditions = [
            part
            for part in self.parsed.conditions
            if part.term.key in _OF_NOTES or self._is_used(part)
        ]
        return [*self.guesses.values(), *conditions]

    @cached_property
    def lost(self) -> list[Stretch]:
        """The names, quoted texts and conditions that no input uses."""
        texts = {part.text for part in self.used}
        parts = (
            *(match for match in self._names if not match.new),
            *self.parsed.texts,
            *self.parsed.conditions,
        )
        lost = [part for part in parts if not (self._is_used(part) or part.text in texts)]
        return [part for number, part in enumerate(lost) if not is_within(part, lost[:number])]

    @property
    def doubts(self) -> list[str]:
        """The parts and phrases of the sentence that are not used, in order."""
        lost = [*self.lost, *self._withdrawn]
        others = [part for part in lost if not _overlaps(part, self.unused)]
        parts = sorted((*self.unused, *others), key=lambda part: part.start)
        return [self._stretch(part.start, part.end).text for part in parts]

    @cached_property
    def unused(self) -> list[Stretch]:
        """The phrases of the sentence that neither choose the recipe nor fill an input."""
        phrases: list[Stretch] = []
        previous: Word | None = None
        texts = {part.text for part in self.used}
        again = [match for match in self.parsed.names if match.text in texts]
        for word in self.parsed.tokens:
            is_own = not word.is_small and word.senses & self._own
            is_used = self._is_used(word) or is_within(word, again)
            if is_used or is_own or any(map(self._is_used, self.parsed.labelled_by(word))):
                previous = None
            elif not word.is_small:
                if previous is None or END.search(self.parsed.bare, previous.end, word.start):
                    phrases.append(word)
                else:
                    phrases[-1] = replace(phrases[-1], end=word.end)
                previous = word
        return [self._stretch(part.start, part.end) for part in phrases]

    def _stretch(self, start: int, end: int) -> Stretch:
        return Stretch(start, end, self.parsed.text[start:end])

    def _is_used(self, part: Stretch) -> bool:
        return is_within(part, (*self.used, *self.guesses.values()))

    def _cue(self, part: Stretch) -> frozenset[str]:
        """Return the senses of the word before a part."""
        cue = self.parsed.cue(part.start)
        return cue.senses if cue is not None else frozenset()

    def _without_templates(self, names: Sequence[NameMatch]) -> list[NameMatch]:
        """Return the names; templates only for inputs that need one, or if their folder is named.

        A property with its value is two names if an input takes the value.
        """
        kinds = {spec.kind for spec in self.recipe.inputs.values()}
        folder = self.parsed.around.context.notes.templates or "Templates"
        is_named = any(
            name.value == folder or match.text.startswith(f"{folder}/")
            for match in names
            for name in match.names
        )
        if not is_named and "template" not in kinds:
            names = [
                replace(
                    match,
                    names=tuple(
                        name for name in match.names if not str(name.value).startswith(f"{folder}/")
                    ),
                )
                for match in names
            ]
        result = [match for match in names if match.names]
        verb = self.parsed.predicate
        return _split_pair(result, verb.end if verb else 0) if "value" in kinds else result

    def _is_of_predicate(self, word: Word) -> bool:
        """Return True for the verb of a statement, and for its other parts: “should be called”."""
        verb = self.parsed.predicate
        is_behind = verb is not None and word.start > verb.start
        return word == verb or (is_behind and bool(word.senses & {"get", "have", "call"}))

    # --- the best reading ---

    def _fill(self) -> None:
        self._take_line()
        self._take_exchange()
        self._take_template()
        inputs = self.recipe.inputs
        self._cue_sets = {
            name: _cues(self.recipe.examples, name) | _KIND_CUES.get(spec.kind, frozenset())
            for name, spec in inputs.items()
        }
        self._verbs = {words(text)[0] for text in self.recipe.examples if words(text)}
        for name, spec in inputs.items():
            if spec.kind == "folder":  # “create X” is no folder
                self._cue_sets[name] -= self._verbs
        self._open = [
            spec
            for spec in inputs.values()
            if spec.name not in self.values
            and spec.kind not in ("choice", "boolean", "number", "field")
        ]
        self._pieces = self._divide()
        self._fits = [
            {spec.name: fit for spec in self._open if (fit := self._fit(piece, spec)) is not None}
            for piece in self._pieces
        ]
        earlier = self.values, self.used
        best = None
        for reading in self._readings()[:_READ]:
            self.values, self.used, self.guesses = dict(earlier[0]), list(earlier[1]), {}
            self._of_notes: list[Stretch] = []
            self._owners: dict[str, set[str | None]] = {}
            worth = reading.worth - self._read(reading)
            if best is None or worth > best[0]:
                best = worth, self.values, self.used, self.guesses, self._of_notes
        if best is not None:
            self.worth, self.values, self.used, self.guesses, self._of_notes = best
        self._withdraw()

    def _divide(self) -> list[SentencePiece]:
        """Return the pieces that no input has yet."""
        parsed, inputs = self.parsed, self.recipe.inputs.values()
        here = [parsed.here] if parsed.here is not None else []
        days = [
            day
            for day in parsed.days
            if not is_function_word(parsed.bare[day.start : day.end])
            and not any(name.start < day.end and day.start < name.end for name in parsed.names)
        ]
        kinds = {spec.kind for spec in inputs}
        colon = colon_of(parsed) if kinds & {*_PROSE, "names"} else len(parsed.bare)
        self._colon = colon
        labels = (word for spec in inputs for text in spec.options.values() for word in words(text))
        cues = frozenset().union(*self._cue_sets.values(), labels)
        conditions = (part for part in parsed.conditions if part.start < colon)
        known = (*self._names, *conditions, *parsed.quotes, *here, *days)
        return pieces_of(parsed, known, self.used, cues, colon)

    def _readings(self) -> list[Assignment]:
        """Return the best readings, best first."""
        beam = [Assignment((), 0.0)]
        for piece in self._pieces:
            longer = [one for reading in beam for one in self._continued(reading, piece)]
            beam = sorted(longer, key=lambda one: -one.worth)[:_BEAM]
        whole = [replace(one, worth=one.worth - self._lacking(one)) for one in beam]
        return sorted(whole, key=lambda one: -one.worth)

    def _continued(self, reading: Assignment, piece: SentencePiece) -> Iterator[Assignment]:
        """Yield the readings with one more piece."""
        inputs, worth, last = reading.inputs, reading.worth, reading.last
        for name, fit in self._fits[len(inputs)].items():
            kind = self.recipe.inputs[name].kind
            if name not in inputs:
                is_aside = kind == "notes" and piece.is_apart and not piece.before and last
                fit -= 1.0 if is_aside else 0.0
            elif kind == "notes":
                fit -= 0.3
            elif kind in _LISTED and last == name and piece.is_listed:
                fit += 1.5
            else:
                continue
            yield Assignment((*inputs, name), worth + fit)
        if last:
            cost = self._joining(self._pieces[len(inputs) - 1], piece, self.recipe.inputs[last])
            if cost is not None:
                yield Assignment((*inputs, "+"), worth - cost + _gain(piece))
        yield Assignment((*inputs, ""), worth - self._waste(piece))

    def _lacking(self, reading: Assignment) -> float:
        """Return the cost of the inputs without a piece; a property may be that of a condition."""
        missing = [one for one in self._open if one.needed and one.name not in reading.inputs]
        parts = (
            piece.known
            for piece, name in zip(self._pieces, reading.inputs, strict=True)
            if name not in ("", "+") and self.recipe.inputs[name].kind == "notes"
        )
        has_value = any(isinstance(one, NameMatch) and one.of_kinds("value") for one in parts)
        says_value = any(
            self.recipe.inputs[name].of and (fits[name] > _CERTAIN or self._is_result(piece))
            for piece, fits, name in zip(self._pieces, self._fits, reading.inputs, strict=True)
            if name not in ("", "+")
        )
        is_implied = has_value and says_value
        implied = sum(spec.kind == "property" for spec in missing) if is_implied else 0
        alone = [
            one
            for one in self._open
            if one.of in reading.inputs and one.name not in reading.inputs and not one.needed
        ]
        return _MISSING * (len(missing) + len(alone)) - 2.0 * implied

    def _waste(self, piece: SentencePiece) -> float:
        """Return the cost of a piece that no input takes."""
        if isinstance(piece.known, NoteCondition) or (piece.match and piece.match.negated):
            return _LIMIT
        if piece.known is not None:
            is_note = piece.match is not None and piece.match.of_kinds("note")
            return piece.weight + (2.2 if is_note else 0.0)
        inside = self.parsed.between(piece.start, piece.end)
        if not piece.weight:
            return 0.5 if len(inside) > 1 else 0.0
        explained = self._own | _STRUCTURE
        wasted = [one for one in inside if not (one.is_small or one.senses & explained)]
        return 0.5 + 0.5 * len(wasted) if wasted else 0.0

    def _is_result(self, piece: SentencePiece) -> bool:
        """Return True for a piece behind the verb of a statement."""
        verb = self.parsed.predicate
        return verb is not None and piece.start > verb.start

    def _fit(self, piece: SentencePiece, spec: Input) -> float | None:
        """Return the worth of a piece as the value of an input, or None if it cannot be that."""
        kind = self._kind_fit(piece, spec)
        if kind is None or self._is_ruled_out(piece, spec):
            return None
        worth, hit = kind + _gain(piece), self._hit(piece, spec)
        if self.parsed.predicate is not None:
            is_result = spec.name == "to" or spec.kind in _RESULTS
            is_behind = self._is_result(piece)
            worth += 1.0 if is_behind and is_result else 0.0
            worth -= 2.0 if is_behind != is_result and spec.kind != "property" else 0.0
        preposition = piece.preposition
        is_cued = preposition is not None and stem(preposition.text) in self._cue_sets[spec.name]
        is_inside = preposition is not None and "in" in preposition.senses and not is_cued
        if is_inside and piece.is_existing and spec.kind in ("folder", "value"):
            # “In the folder X” is where notes are, not where they go.
            worth, hit = worth - _WHERE, min(hit, _SAME_SENSE)
        cost = None if hit else self._uncued(piece, spec)
        if hit:
            return worth + hit
        return None if cost is None else worth - cost

    def _kind_fit(self, piece: SentencePiece, spec: Input) -> float | None:
        """Return the worth of the kind of a piece, or None if an input does not accept it."""
        known, kind = piece.known, spec.kind
        is_quoted = known in self.parsed.quotes
        if kind == "notes" and (known is None or is_quoted):
            is_mention = any("mention" in word.senses for word in piece.introducing)
            return _SAME_SENSE if is_mention else None
        if known is None:
            is_old = not self._verbs.isdisjoint(_REMOVING) and spec.name != "to"
            is_unknown = kind not in _WORDED and (is_old or piece.text.isdecimal())
            return 0.0 if kind in _FREE and not is_unknown else None
        if known is self.parsed.here:
            return _FITTING if kind in ("notes", "note", "entry") else None
        if kind in ("date", "day"):
            is_day = any(known.start <= day.start < known.end for day in self.parsed.days)
            fit = 0.0 if isinstance(known, NoteCondition) else _FITTING
            return fit if is_day else None
        if isinstance(known, NoteCondition) or kind == "notes":
            is_noted = isinstance(known, NameMatch | NoteCondition)
            return _FITTING if kind == "notes" and is_noted else None
        if piece.match is not None:
            return self._name_fit(piece.match, kind)
        if is_quoted:
            return _FITTING if kind in _FREE else None
        # A day without digits, like “tomorrow”, is no name.
        is_name = any(map(str.isdigit, piece.text))
        fits = {"value": 0.5, "text": -1.0, **dict.fromkeys(("newNote", "newName"), 0.0)}
        return fits.get(kind) if is_name or kind in ("value", "text") else None

    def _name_fit(self, match: NameMatch, kind: str) -> float | None:
        if match.bound or (match.negated and self._verbs.isdisjoint(_REMOVING)):
            return None
        if match.of_kinds(*_NAMES.get(kind, ())):
            return _FITTING
        if match.new and kind in _NEW:
            return 0.5
        if kind not in _WORDED:
            return None
        if is_within(match, self.parsed.quotes):
            return 0.5
        if kind == "folder" and match.of_kinds("note", "alias"):
            return None
        return -1.2 if kind in ("text", "folder", "heading") else -0.2

    def _is_ruled_out(self, piece: SentencePiece, spec: Input) -> bool:
        """Return True if the words before a piece say that it belongs to no such input."""
        is_clause = any(word.senses & _CLAUSES for word in piece.before)
        if is_clause and piece.known is None and spec.kind != "notes":
            return True
        if piece.start >= self._colon and spec.kind not in (*_PROSE, "names", "value", "date"):
            return True
        label = piece.introducing[0].senses & LABELS if piece.introducing else frozenset()
        own = _KIND_CUES.get(_SINGULAR.get(spec.kind, spec.kind), frozenset())
        is_labelled = bool(label) and label.isdisjoint(own)
        if is_labelled and spec.kind not in (*_PROSE, "notes", "note", "heading", "entry"):
            return True
        # A destination describes no notes.
        preposition, cues = piece.preposition, self._cue_sets[spec.name]
        if (
            preposition is None
            or spec.kind != "notes"
            or not piece.is_existing
            or piece.match is None
        ):
            return False
        is_own = stem(preposition.text) in cues or (
            preposition.text not in _TO and bool(preposition.senses & (cues | {"in"}))
        )
        is_target = bool(preposition.senses & _TO) and not is_own
        return is_target and not self.parsed.is_link_target(piece.match)

    def _hit(self, piece: SentencePiece, spec: Input) -> float:
        """Return the worth of the words and signs that introduce an input; 0 without any."""
        cues, hit = self._cue_sets[spec.name], 0.0
        telling = [word for word in piece.introducing if not word.senses & LABELS]
        for word in piece.introducing:
            distance = telling.index(word) if word in telling else 0
            if word.text not in ARTICLES and word.senses & cues:
                same = _LITERAL if stem(word.text) in cues else _SAME_SENSE
                hit = max(hit, same - _DISTANT * distance)
        has_value = any(one.of == spec.name for one in self._open)
        assigns = has_value and bool(_ASSIGNS.match(self.parsed.bare, piece.end))
        is_assigned = spec.of and _ASSIGNED.search(self.parsed.bare, 0, piece.start)
        if assigns or is_assigned:
            hit = max(hit, _LITERAL)
        if piece.start == self._colon and spec.kind in (*_PROSE, "names"):
            hit = max(hit, _BEHIND_COLON)
        return hit

    def _uncued(self, piece: SentencePiece, spec: Input) -> float | None:
        """Return the cost of a piece that nothing introduces, or None if an input needs that."""
        is_free = piece.known is None
        if is_free and (piece.weight == 0 or not (spec.needed or spec.kind not in _FREE)):
            return None
        cues, cost = self._cue_sets[spec.name], 0.0
        is_placed = bool(cues) and cues.isdisjoint(self._verbs)
        is_placed = is_placed and spec.kind not in ("notes", "date", "day")
        strong = next((one for one in piece.introducing if not is_filler(one)), None)
        others = (self._cue_sets[one.name] for one in self._open if one is not spec)
        if strong is not None and any(strong.senses & other for other in others):
            cost = _ANOTHER
        elif not spec.needed and spec.kind in _FREE:
            return None
        elif is_free:
            is_first = piece is self._pieces[0] and not piece.before
            senses = frozenset[str]().union(*(word.senses for word in piece.before))
            is_limit = {"all", "note"} <= senses  # “all notes about X”
            if (is_placed and is_first) or spec.kind in ("property", "properties") or is_limit:
                return None
            cost = 0.3 if spec.kind in (*_PROSE, "newNote", "newName") else _UNNAMED
        is_stated = self._is_result(piece) and spec.kind in _RESULTS
        if is_placed and strong is None and not is_stated:
            cost += _UNPLACED if spec.kind == "folder" else 1.0
        return cost

    def _joining(self, before: SentencePiece, piece: SentencePiece, spec: Input) -> float | None:
        """Return the cost of a value that goes on with a piece, or None if it cannot."""
        kind, is_prose, own = spec.kind, spec.kind in _PROSE, _NAMES.get(spec.kind, ())
        if kind not in _FREE - {"tag", "property"} or before.known in self.parsed.quotes:
            return None
        if piece.known in self.parsed.quotes or (before.known and kind in ("folder", *_SINGULAR)):
            return None
        if piece.start > self._colon:
            has_date = any(one.kind == "date" for one in self._open)
            if has_date and piece.known is not None and _overlaps(piece, self.parsed.days):
                return 1.5 if is_prose else None
            return 0.0 if is_prose or kind == "names" else None
        is_day = piece.known is not None and piece.text.isalpha() and piece.match is None
        if not is_prose and (is_day or any(one.senses & _CLAUSES for one in piece.before)):
            return None  # “today” and clauses are no part of a name
        match = before.match
        is_whole = match is not None and not match.near and bool(match.of_kinds(*own))
        cost = 0.4 if piece.before or piece.is_apart else -0.2
        cost = 1.4 if is_whole else cost
        if piece.is_apart:
            apart = 1.0 if kind in _LISTED else 3.5
            cost += 0.3 if is_prose else apart
        if piece.match is not None:
            cost += 1.6 if piece.match.of_kinds(*own) else 0.6
        elif piece.known is not None:
            cost += 0.6 if is_prose or isinstance(piece.known, NoteCondition) else 1.5
        is_next = any(word.text in AND for word in piece.before)
        is_order = any(word.senses & ORDERS for word in piece.before if not word.is_small)
        cost += 2.0 if is_next and is_order else 0.0
        others = [cues for name, cues in self._cue_sets.items() if name != spec.name]
        others += [LABELS] if kind != "text" else []
        crossing = [one for one in piece.before if stem(one.text) not in self._cue_sets[spec.name]]
        crossed = sum(any(word.senses & cues for cues in others) for word in crossing)
        is_target = any(word.text in _TO - {"to"} for word in piece.before)
        cost += 1.0 if is_target else 0.0  # “put X into Y” is no text
        return cost + crossed * (0.4 if is_prose else 1.0)

    # --- the values of a reading ---

    def _read(self, reading: Assignment) -> float:
        """Read the values of a reading, and return the cost of what cannot be read."""
        groups: dict[str, list[list[SentencePiece]]] = {}
        last = ""
        for piece, name in zip(self._pieces, reading.inputs, strict=True):
            if name == "+":
                groups[last][-1].append(piece)
            elif name:
                groups.setdefault(name, []).append([piece])
            last = last if name == "+" else name
        cost = 0.0
        notes = [spec for spec in self._open if spec.kind == "notes"]
        owned = any(spec.of for spec in self._open)
        others = sorted(
            (spec for spec in self._open if spec.kind != "notes"), key=lambda spec: bool(spec.of)
        )
        # A property may be that of a condition.
        is_implied = owned and any(
            one.kind == "property" and one.name not in groups for one in others
        )
        for spec in (*notes, *others) if is_implied else (*others, *notes):
            pieces = groups.get(spec.name, [])
            if spec.kind == "notes":
                self._read_notes(spec, [self._noted(piece) for group in pieces for piece in group])
            elif pieces:
                cost += self._read_value(spec, pieces)
            elif spec.kind == "property" and spec.needed and notes:
                terms = getattr(self.values.get(notes[0].name), "terms", ())
                owners = [term.property for term in terms if term.property and term.op == ":"]
                is_named = any(one.of == spec.name and one.name in groups for one in others)
                self.values |= {spec.name: owners[0]} if owners and is_named else {}
        for spec in self.recipe.inputs.values():
            if spec.kind == "choice" and spec.name not in self.values:
                value = self._choice(spec)
                self.values |= {spec.name: value} if value is not None else {}
        return cost + self._failing()

    def _failing(self) -> float:
        """Return the cost of missing values, and of descriptions that no note meets."""
        cost = 0.0
        for name, owners in self._owners.items():
            owner = self.values.get(self.recipe.inputs[name].of or "")
            cost += 0.0 if owner in owners else 2.0
        for value in self.values.values():
            if isinstance(value, NoteSet) and value.terms and not self._has_notes(value):
                is_named = {"note", "folder"} <= {
                    term.key for term in value.terms if not term.negated
                }
                cost += 2 * _NOWHERE if is_named else _NOWHERE
        return cost

    def _has_notes(self, described: NoteSet) -> bool:
        try:
            return bool(described.paths(self.parsed.around))
        except ObsidianAgentError:
            return False

    def _read_notes(self, spec: Input, parts: Sequence[Stretch | None]) -> None:
        """Read a description of notes from names and conditions."""
        others: list[NoteCondition] = []
        if self.parsed.here in parts and self.parsed.here is not None:
            described = NoteSet((Term("note", ACTIVE),))
        else:
            names = [part for part in parts if isinstance(part, NameMatch)]
            conditions = [part for part in parts if isinstance(part, NoteCondition)]
            starts = {part.start for part in conditions}
            others = [  # the end of a period
                one
                for one in self.parsed.conditions
                if one.start in starts and one not in conditions
            ]
            described = self._described(names, [*conditions, *others])
        used = [*(part for part in parts if part is not None), *others]
        if described.terms:
            described = without_templates(described, self.parsed.around)
        elif (whole := self._all_notes()) is not None and not self._is_used(whole):
            used = [whole]
        elif (here := self.parsed.here) is not None and not self._is_used(here):
            used, described = [here], NoteSet((Term("note", ACTIVE),))
        else:
            return
        for part in used:
            # Words of exclusion belong to the name: “not tagged X”.
            length = len(part.negated) if isinstance(part, NameMatch) else 0
            whole = self._stretch(part.end - length, part.end) if length else part
            self._of_notes.append(whole)
        self.used += self._of_notes
        for part in used:
            if isinstance(part, NameMatch) and part.near:
                self.guesses[spec.name] = self._stretch(part.start, part.end)
        self.values[spec.name] = described

    def _noted(self, piece: SentencePiece) -> Stretch:
        """Return a name or a condition; other text is what the notes mention."""
        known = piece.known
        if known is not None and known not in self.parsed.quotes:
            return known
        text = known.text if known is not None else self.parsed.text[piece.start : piece.end]
        return NoteCondition(piece.start, piece.end, text, Term("text", text))

    def _read_value(self, spec: Input, groups: Sequence[Sequence[SentencePiece]]) -> float:
        """Read one value, or several, and return the cost of what cannot be read."""
        others = self.recipe.defaults | self.values
        if spec.kind == "heading" and spec.of:
            others = {spec.of: ACTIVE} | others
        one = spec.model_copy(update={"kind": _SINGULAR.get(spec.kind, spec.kind)})
        values: list[Any] = []
        for group in groups:
            first, whole = group[0].known, self._whole(spec, group)
            if first is not None and first is self.parsed.here:
                values.append(ACTIVE)
            else:
                text = whole.text
                if len(group) == 1 and first is not None:
                    text = self._text_of(spec, first, whole)
                try:
                    value = read(one, text, self.parsed.around, others)
                except InvalidValue:
                    return 2.0
                values += value if isinstance(value, list) else [value]
            if spec.of and isinstance(first, NameMatch) and len(group) == 1:
                own = {name.property for name in first.of_kinds("value")}
                self._owners |= {spec.name: own} if own else {}
            if len(group) > 1 or first is None or getattr(first, "near", False):
                self.guesses[spec.name] = whole
            self.used.append(whole)
        is_listed = spec.kind in _LISTED
        self.values[spec.name] = list(dict.fromkeys(map(str, values))) if is_listed else values[0]
        return 0.0

    def _whole(self, spec: Input, group: Sequence[SentencePiece]) -> Stretch:
        """Return the text of pieces, with what belongs to it on both sides.

        That are the words behind the one that introduces a text (“the task call the plumber”), a
        capital article (“Les temps”), and signs: “(old)”.
        """
        first, last, bare = group[0], group[-1], self.parsed.bare
        start, end = first.start, last.end
        is_quoted = first.known is not None and is_within(first, self.parsed.quotes)
        if first.known is None or len(group) > 1 or (spec.kind == "text" and not is_quoted):
            position, cues = start, self._cue_sets[spec.name] | NOUNS - {"call"}
            for word in reversed(first.before):
                is_capital = word.is_small and word.start > 0
                is_capital = is_capital and self.parsed.text[word.start].isupper()
                is_own = spec.kind == "text" and not (word.is_small or word.senses & cues)
                is_gap = not bare[word.end : position].isspace()
                if is_gap or not (is_capital or is_own or is_filler(word)):
                    break
                position = word.start
                start = position if is_capital or is_own else start
            if opening := _OPENING.search(bare, 0, start):
                start = opening.start()
        if last.known is None and (closing := _CLOSING.match(bare, end)):
            end = closing.end()
        return self._stretch(start, end)

    def _text_of(self, spec: Input, known: Stretch, whole: Stretch) -> str:
        """Return the text of a name, a quoted text or a day as the value of an input."""
        if not isinstance(known, NameMatch):
            return known.text
        named = known.of_kinds(*_NAMES.get(spec.kind, ()))
        is_quoted = is_within(known, self.parsed.quotes)
        if not (named or is_quoted or known.new):
            return whole.text.strip()
        is_spelled = known.text.startswith("#") or self.parsed.around.names.find(known.text)
        return str(named[0].value) if len(named) == 1 and not is_spelled else known.text

    def _choice(self, spec: Input) -> Any:
        """Return the option whose label the sentence mentions.

        The one with most words is best, then the last. In an action “open tasks” says which tasks,
        not what they become.
        """
        free = [
            word
            for word in self.parsed.tokens
            if not (self._is_used(word) or is_within(word, self.parsed.names))
            and not (self.recipe.answer is None and self._describes_tasks(word))
        ]
        best: list[Word] = []
        chosen = None
        for value, label in spec.options.items():
            if f" {label.casefold()} " in f" {self.parsed.bare.casefold()} " and " " in label:
                start = self.parsed.bare.casefold().index(label.casefold())
                self.used.append(self._stretch(start, start + len(label)))
                return read(spec, value, self.parsed.around)
            needed = [sense for sense in words(label) if sense not in FUNCTION_WORDS]
            last = {sense: word for word in free for sense in word.senses}
            run = [last[sense] for sense in needed if sense in last]
            is_better = len(run) > len(best) or (run and run[-1].start > best[-1].start)
            if needed and len(run) == len(needed) and is_better:
                best, chosen = run, value
        self.used += best
        return None if chosen is None else read(spec, chosen, self.parsed.around)

    def _describes_tasks(self, word: Word) -> bool:
        """Return True for an adjective beside “tasks”: “open tasks”, “tareas abiertas”."""
        before, after = self.parsed.between(0, word.start)[-1:], self.parsed.after(word.end)
        is_behind = any("task" in other.senses and not other.text.isascii() for other in before)
        return is_behind or (after is not None and "task" in after.senses)

    def _withdraw(self) -> None:
        """Give up descriptions of notes that unused words may limit, and values of no property."""
        for spec in self.recipe.inputs.values():
            if spec.kind == "value" and spec.of and spec.of not in self.values:
                self.values.pop(spec.name, None)
                self.guesses.pop(spec.name, None)
        deletes = "vault.delete" in self.recipe.tools
        if deletes:
            self.values = {
                name: value for name, value in self.values.items() if not _is_tag_of_note(value)
            }
        if not self.unused:
            return
        is_inside = any(self._cue(match) & _INSIDE for match in self.parsed.names)
        is_wide = (deletes and is_inside) or self.is_too_wide
        for name, value in list(self.values.items()):
            if (
                value == _ALL
                or (_may_be_narrowed(value) and (is_wide or deletes))
                or (deletes and is_inside)
            ):
                self._withdrawn += self._of_notes if value != _ALL else ()
                del self.values[name]

    @cached_property
    def is_too_wide(self) -> bool:
        """True for a change if words that limit the notes are not used: “that have no rating”.

        So is a negation that is not used, unless another one beside it is.
        """
        unused, limits = self.unused if self.recipe.answer is None else [], False
        if any(_overlaps(one, unused) for one in (*self.parsed.days, *self.parsed.periods)):
            return True
        previous: Word | None = None
        for word in self.parsed.tokens if unused else ():
            if previous is not None and END.search(self.parsed.bare, previous.end, word.start):
                limits = False
            is_second = previous is not None and previous.negates  # “but not”
            previous, begins = word, bool(word.senses & _LIMITING)
            after = self.parsed.after(word.end)
            is_first = after is not None and after.negates
            if word.negates and not (is_first or is_second) and is_within(word, unused):
                return True
            is_idle = word.is_small or word.text in _ADVERBS
            if limits and not begins and not is_idle and is_within(word, unused):
                return True
            limits = begins or (limits and not self._is_used(word))
        return False

    # --- what the vault has ---

    def _take_line(self) -> None:
        """Fill the note and the text of a line that the sentence names by its own words."""
        line, inputs = self.parsed.line, self.recipe.inputs
        kinds = {one: inputs[one].kind for one in ("note", "notes", "source") if one in inputs}
        tools = _TASK_TOOLS if line is not None and line.status else {"vault.takeLines"}
        if line is None or tools.isdisjoint(self.recipe.tools) or "text" not in inputs:
            return
        self.values["text"] = line.text
        for name, kind in kinds.items():
            term = Term("note", line.note)
            self.values[name] = NoteSet((term,)) if kind == "notes" else line.note
        self._use(line.words, line.note)

    def _take_exchange(self) -> None:
        """Fill the note, the old value and the new one of an exchange."""
        exchange, inputs, tools = self.parsed.exchange, self.recipe.inputs, self.recipe.tools
        if exchange is None or "notes" not in inputs:
            return
        if exchange.property is not None and "vault.setFrontmatter" in tools:
            values = {"property": exchange.property, "value": exchange.new}
        elif exchange.property is None and "vault.replaceText" in tools:
            values = {"find": exchange.old, "replace": exchange.new}
        else:
            return
        if not values.keys() <= inputs.keys():
            return
        self.values |= {
            name: read(inputs[name], text, self.parsed.around, values)
            for name, text in values.items()
        }
        self.values["notes"] = NoteSet((Term("note", exchange.note),))
        self._use(exchange.parts, exchange.note)

    def _take_template(self) -> None:
        """Fill the template of one note that the word before “note” names."""
        template, spec = self.parsed.template, self.recipe.inputs.get("template")
        if template is not None and spec is not None and "path" in self.recipe.inputs:
            self.values["template"] = template.text
            self._use([template])

    def _use(self, parts: Sequence[Stretch], note: str = "") -> None:
        """Mark parts as used, and the name of a note."""
        names = (match for match in self._names if _is_note(match, note))
        self.used += (*parts, *names)
        self.is_known = True

    # --- descriptions of notes ---

    def _all_notes(self) -> Stretch | None:
        """Return the words “all notes”."""
        content = [word for word in self.parsed.tokens if not word.is_small or "all" in word.senses]
        for first, last in pairwise(content):
            is_named = is_within(last, self.parsed.names)
            if "all" in first.senses and "note" in last.senses and not is_named:
                return self._stretch(first.start, last.end)
        return None

    def _described(
        self, names: Sequence[NameMatch], conditions: Sequence[NoteCondition]
    ) -> NoteSet:
        """Return the names and conditions as a description of notes.

        If no note fits the most likely meanings, another meaning of one name is tried.
        """
        readings = (_note_set(self._terms(one), conditions) for one in _meanings(names))
        first = next(readings)
        if len(first.terms) < 2 or self._has_notes(first):
            return first
        return next((one for one in readings if self._has_notes(one)), first)

    def _terms(self, names: Sequence[NameMatch]) -> list[Term]:
        """Return the conditions that names mean; an excluded name is excluded in each meaning."""
        notes: list[Term] = []
        terms: list[Term] = []
        for match in names:
            cue = self._cue(match)
            is_place = bool(match.negated or (cue & {*_TO, *_INSIDE} and "of" not in cue))
            senses = _senses(match, is_place=is_place)
            if not senses:
                continue
            if (flag := self._as_flag(match)) is not None:
                terms.append(flag)
            elif match.negated and not match.new:
                specific = [term for term in senses if term.key != "property"]
                values = [term for term in senses if term.op == ":"]
                terms += map(_denied, specific or values or senses)
            elif senses[0].key != "note":
                terms.append(senses[0])
            elif self.parsed.is_link_target(match):
                terms.append(Term("links-to", senses[0].value))
            else:
                notes.append(senses[0])
        return [*notes, *terms]

    def _as_flag(self, match: NameMatch) -> Term | None:
        """Return the condition of a property that is true or false: “not reviewed”."""
        name = next((str(name.value) for name in match.of_kinds("property")), None)
        values = self.parsed.around.names.properties.get(name or "", {}).values()
        words_before = self.parsed.between(match.end - len(match.negated), match.start)
        cue = self.parsed.cue(match.start)
        spoken = [*words_before, *([cue] if cue is not None else [])]
        is_having = any(word.senses & _HAVING for word in spoken)
        if match.bound or not values or is_having or not all(v in (True, False) for v in values):
            return None
        return Term("property", not match.negated, ":", name)


def _gain(piece: SentencePiece) -> float:
    """Return the worth of the words of a piece that an input explains."""
    return 0.3 + 0.4 * piece.weight if piece.weight else 0.0


def _meanings(names: Sequence[NameMatch]) -> Iterator[Sequence[NameMatch]]:
    """Yield the names, then those with another meaning of one."""
    yield names
    for kind in ("value", "tag"):
        for number, match in enumerate(names):
            others = tuple(name for name in match.names if name.kind == kind)
            if others and others != match.names and not match.negated and not match.bound:
                other = replace(match, names=others, bound=kind == "value")
                yield [*names[:number], other, *names[number + 1 :]]


def _denied(term: Term) -> Term:
    """Return the opposite of a condition; a property without a value is none."""
    return replace(term, op="lacks") if term.op == "has" else replace(term, negated=True)


def _is_tag_of_note(value: Any) -> bool:
    """Return True for a named note with a tag: “delete the tag x of the note y”."""
    terms = value.terms if isinstance(value, NoteSet) else ()
    return {"note", "tag"} <= {term.key for term in terms if not term.negated}


def _may_be_narrowed(value: Any) -> bool:
    """Return True for a description to which an unused word may be a further condition."""
    return isinstance(value, NoteSet) and {term.key for term in value.terms} != {"note"}


def _is_note(match: NameMatch, path: str) -> bool:
    return any(name.value == path for name in match.of_kinds("note"))


def _is_value(match: NameMatch) -> bool:
    return len({name.property for name in match.names if name.kind == "value"}) == 1


def _overlaps(part: Stretch, others: Sequence[Stretch]) -> bool:
    return any(part.start < other.end and other.start < part.end for other in others)


def _note_set(terms: Sequence[Term], conditions: Sequence[NoteCondition]) -> NoteSet:
    """Return the description. A comparison replaces the mere existence of its property."""
    compared = {part.term.property for part in conditions if part.term.property}
    own = [term for term in terms if term.op != "has" or term.property not in compared]
    return NoteSet(tuple(dict.fromkeys((*own, *(part.term for part in conditions)))))


def _split_pair(names: list[NameMatch], start: int) -> list[NameMatch]:
    """Split the first property with a value in two, if no property is mentioned alone.

    For an action that sets a property they are the values to set, not a condition.
    """
    affirmed = [match for match in names if not match.negated and match.start >= start]
    match = next((match for match in affirmed if match.bound or (start and _is_value(match))), None)
    is_alone = any(name.kind == "property" for other in affirmed for name in other.names)
    if match is None or is_alone:
        return names
    owners = tuple(Name("property", name.property) for name in match.names)
    texts = str(owners[0].value), display_text(match.names[0].value) or ""
    index, border = names.index(match), max(match.start + 1, match.end - len(texts[1]))
    names[index : index + 1] = [
        replace(match, end=border, text=texts[0], names=owners, bound=False),
        replace(match, start=border, text=texts[1], bound=False),
    ]
    return names


def _senses(match: NameMatch, *, is_place: bool) -> list[Term]:
    """Return the meanings of a name in a description, most likely first.

    The order is: tag with `#`, folder, note, property, value, tag without `#`; note before folder,
    if no word before it `is_place`. An ambiguous folder name has no meaning.
    """
    order = ["folder", "note", "property", "value"] if is_place else ["note", "folder"]
    order += [] if is_place else ["property", "value"]
    order.insert(0 if match.text.startswith("#") else 4, "tag")
    if len(match.of_kinds("folder")) > 1:
        return []
    terms: list[tuple[int, Term]] = []
    for name in match.names:
        match name.kind:
            case "property":
                term = Term("property", None, "has", name.value)
            case "value":
                term = Term("property", name.value, ":", name.property)
            case "tag" | "folder":
                term = Term(name.kind, name.value)
            case _:
                term = Term("note", name.value)
        terms.append((order.index("value" if name.kind == "value" else term.key), term))
    return [term for _, term in sorted(terms, key=lambda pair: pair[0])]
