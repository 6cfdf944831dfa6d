"""Values for the inputs of a recipe from the parts of a sentence.

Each input takes a part of its kind, first of all one behind a word that precedes the input in the
recipe's own examples. A phrase without quotes behind such a word fills an input that is still
missing, and so does the only unused phrase. The other names and conditions describe notes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from obsidian_agent.errors import ObsidianAgentError
from obsidian_agent.expression import unicode_expression
from obsidian_agent.offline.names import Name, display_text
from obsidian_agent.offline.note_set import ACTIVE, InvalidValue, NoteSet, Term, without_templates
from obsidian_agent.offline.parts import END, NOUNS, NoteCondition, Parts, is_within
from obsidian_agent.offline.recipe import SLOT, Input, Recipe
from obsidian_agent.offline.sentence import (
    FUNCTION_WORDS,
    JOINED,
    NEGATIONS,
    QUOTED_CHARACTER,
    NameMatch,
    SentenceWord,
    Stretch,
    is_function_word,
    meanings,
    stem,
    word_before,
    words,
)
from obsidian_agent.offline.values import read

_NAMES: Final[Mapping[str, tuple[str, ...]]] = {
    **dict.fromkeys(("note", "template"), ("note", "alias")),
    "entry": ("note", "alias", "folder", "file"),
    "notes": ("note", "folder", "tag"),
    **{kind: (kind,) for kind in ("folder", "tag", "property", "value")},
}
"""The kinds of names that an input accepts, by its kind."""
_NEW_KINDS: Final = frozenset({"newNote", "newName", "folder", "tag"})
"""The kinds of inputs that accept a new name."""
_TEXT_KINDS: Final = frozenset(
    {"folder", "newNote", "newName", "value", "text", "list", "names", "heading"}
)
"""The kinds of inputs that accept a quoted text."""
_PHRASE_KINDS: Final = _TEXT_KINDS | {"tag", "tags", "property"}
"""The kinds of inputs that accept a phrase without quotes."""
_PROSE: Final = ("text", "list")
_SEVERAL: Final = ("list", "names")
_KIND_CUES: Final[Mapping[str, frozenset[str]]] = {
    **{noun: frozenset({noun}) for noun in ("tag", "folder", "property", "heading")},
    "newName": frozenset({"call", "name"}),
}
"""The stems of the words before an input of a kind, in any recipe."""
_OF_NOTES: Final = ("is", "words", "links", "backlinks")
"""The keys of conditions whose words never choose an action."""
_ALL: Final = NoteSet()
_WHEN: Final = frozenset({"befor", "sinc"})
_ASSIGNS: Final = unicode_expression(r"\s*[:=]")
_OPENING: Final = unicode_expression(r"[^\s\ue000]+$")
_CLOSING: Final = unicode_expression(r"[^\s,;:.!?\ue000。，；！？]*")


class FolderRoles(Struct, frozen=True):
    """The words before a folder that make it the destination, and those that make it a filter."""

    destination: frozenset[str] = frozenset()
    filter: frozenset[str] = frozenset()

    def of(self, match: NameMatch, parts: Parts) -> tuple[bool, bool]:
        """Return if a name is the destination, and if it is a filter, by the word before it."""
        if match.new:
            return True, False  # no note is in it yet
        word = word_before(parts.parsed.bare, match.start)
        is_known = word in self.destination or word in self.filter
        senses = frozenset({word}) if is_known else meanings(word)
        to, within = bool(senses & self.destination), bool(senses & self.filter)
        after = next((token for token in parts.tokens if token.start >= match.end), None)
        # In Chinese, Japanese and Korean the preposition may follow the name.
        behind = after.senses if after is not None and JOINED.match(after.text) else frozenset()
        if behind & {"to", "in"}:
            return "to" in behind, "in" in behind
        return to and (is_known or not within), within and (is_known or not to)


@lru_cache(maxsize=512)
def _cues(examples: Sequence[str], name: str, *, fields: bool = False) -> frozenset[str]:
    """Return the stems of the words before an input in a recipe's examples.

    With `fields`, the words before a field of a description of notes count too.
    """
    return frozenset(
        stem(word)
        for example in examples
        for slot in SLOT.finditer(example)
        if slot[1] == name and (fields or not slot[2])
        if (word := word_before(SLOT.sub("!", example[: slot.start()]), len(example)))
    )


def own_words(recipe: Recipe) -> frozenset[str]:
    """Return the stems of the words that a recipe is described with."""
    texts = (recipe.title, recipe.description, *recipe.examples)
    return frozenset(words(SLOT.sub(" ", " ".join(texts))))


class Filling:
    """The values of a recipe's inputs that are clear from a sentence.

    What to delete is not clear if an unused word may be a condition.
    """

    def __init__(self, parts: Parts, recipe: Recipe, roles: FolderRoles) -> None:
        self.recipe = recipe
        self.parts = parts
        self.used: list[Stretch] = []
        self.guesses: dict[str, Stretch] = {}
        """The phrases without quotes, by input."""
        self._own = own_words(recipe) | {"all"}
        self._conditions = list(parts.conditions)
        self._texts = list(parts.texts)
        self._days = list(parts.days)
        self._names = self._without_templates(parts.names)
        self._roles = {match.start: roles.of(match, parts) for match in self._names}
        self._values: dict[str, Any] = {}
        self._fill()
        is_unclear = "vault.delete" in recipe.tools and self.unused
        self.values = {
            name: self._values[name]
            for name in recipe.inputs
            if name in self._values and not is_unclear
        }

    @property
    def phrases(self) -> list[Stretch]:
        """The parts of the sentence that are a value or a condition, without names."""
        return [
            *self.guesses.values(),
            *(
                part
                for part in self._conditions
                if part.term.key in _OF_NOTES or self._is_used(part)
            ),
        ]

    @property
    def lost(self) -> list[Stretch]:
        """The names, quoted texts and conditions that no input uses."""
        names = [
            match
            for match in self._names
            if not (match.new or self._is_used(match) or self._is_aside(match))
        ]
        named = {match.text for match in names}
        conditions = [part for part in self._conditions if not self._is_used(part)]
        return [*names, *(quote for quote in self._texts if quote.text not in named), *conditions]

    @property
    def doubts(self) -> list[str]:
        """The parts and phrases of the sentence that are not used, in order."""
        phrases = self.unused
        others = [part for part in self.lost if not _overlaps(part, phrases)]
        parts = sorted((*phrases, *others), key=lambda part: part.start)
        return [self._stretch(part.start, part.end).text for part in parts]

    @property
    def unused(self) -> list[Stretch]:
        """The phrases of the sentence that neither choose the recipe nor fill an input."""
        phrases: list[Stretch] = []
        previous: SentenceWord | None = None
        for token in self.parts.tokens:
            is_own = not token.is_small and token.senses & self._own
            is_label = any(map(self._is_used, self.parts.labelled_by(token)))
            if self._is_used(token) or is_own or is_label:
                previous = None
            elif not token.is_small:
                if previous is None or END.search(self._bare, previous.end, token.start):
                    phrases.append(token)
                else:
                    phrases[-1] = replace(phrases[-1], end=token.end)
                previous = token
        return [self._stretch(part.start, part.end) for part in phrases]

    @property
    def _bare(self) -> str:
        return self.parts.parsed.bare

    def _is_aside(self, part: Stretch) -> bool:
        """Return True for a name that begins a later sentence: “Templates stay where they are”."""
        return part.start >= self.parts.end and not self._before(part)

    def _stretch(self, start: int, end: int) -> Stretch:
        return Stretch(start, end, self.parts.parsed.text[start:end])

    def _is_used(self, part: Stretch) -> bool:
        return is_within(part, (*self.used, *self.guesses.values()))

    def _before(self, part: Stretch) -> str:
        return stem(word_before(self._bare, part.start))

    def _without_templates(self, names: Sequence[NameMatch]) -> list[NameMatch]:
        """Return the names; templates only for inputs that need one, or if their folder is named.

        A property with its value is two names if an input takes the value.
        """
        kinds = {spec.kind for spec in self.recipe.inputs.values()}
        around = self.parts.parsed.around
        folder = around.context.notes.templates or "Templates"
        is_named = any(
            name.value == folder or match.text.startswith(f"{folder}/")
            for match in self.parts.parsed.names
            for name in match.names
        )
        result = list(names)
        if not is_named and "template" not in kinds:
            for match in names:
                others = [
                    name for name in match.names if not str(name.value).startswith(f"{folder}/")
                ]
                result[result.index(match)] = replace(match, names=tuple(others))
        result = [match for match in result if match.names]
        return _split_pair(result) if "value" in kinds else result

    def _fill(self) -> None:
        self._find_text()
        inputs = self.recipe.inputs.values()
        # A folder is filled before a description of notes, which takes all that remains.
        for spec in sorted(inputs, key=lambda spec: (spec.kind == "notes", bool(spec.of))):
            value = self._value(spec)
            if value is not None:
                self._values[spec.name] = value
        self._guess()
        if self.unused:  # such a word may be a condition
            self._values = {name: value for name, value in self._values.items() if value != _ALL}

    def _value(self, spec: Input) -> Any:
        match spec.kind:
            case "date":
                return self._day(spec)
            case "choice":
                return self._choice(spec)
            case "notes":
                described = self._described()
                if described.terms:
                    return without_templates(described, self.parts.parsed.around)
                if whole := self._all_notes():
                    self.used.append(whole)
                return described if whole else None
            case "tags" | "properties":
                one = spec.model_copy(update={"kind": "tag" if spec.kind == "tags" else "property"})
                return list(dict.fromkeys(self._read(one))) or None
            case _:
                return next(self._read(spec), None)

    def _day(self, spec: Input) -> str | None:
        """Return the first unused day, unless the word before it belongs to another input."""
        cues = _cues(self.recipe.examples, spec.name)
        for day in self._days:
            word = word_before(self._bare, day.start)
            senses = meanings(word) | {stem(word)}
            owner = next((part for part in self._conditions if is_within(day, [part])), None)
            if senses & cues or (owner is None and not (cues and senses & _WHEN)):
                self._days.remove(day)
                self.used.append(owner or day)
                return day.text
        return None

    def _choice(self, spec: Input) -> str | None:
        """Return the option whose label the sentence mentions.

        The one with most words is best, then the last. In an action “open tasks” says which tasks,
        not what they become.
        """
        free = [
            token
            for token in self.parts.tokens
            if not is_within(token, (*self.used, *self.parts.parsed.names))
            and not (self.recipe.answer is None and self._describes_tasks(token))
        ]
        best: list[SentenceWord] = []
        chosen = None
        for value, label in spec.options.items():
            needed = [word for word in words(label) if word not in FUNCTION_WORDS]
            run = [
                token
                for word in needed
                for token in [next((one for one in reversed(free) if word in one.senses), None)]
                if token is not None
            ]
            is_better = len(run) > len(best) or (run and run[-1].start > best[-1].start)
            if needed and len(run) == len(needed) and is_better:
                best, chosen = run, value
        self.used += best
        return chosen

    def _describes_tasks(self, token: SentenceWord) -> bool:
        after = next((other for other in self.parts.tokens if other.start >= token.end), None)
        return after is not None and "task" in after.senses

    def _accepts(self, spec: Input, part: Stretch) -> bool:
        """Return True if an input may take a name or a quoted text."""
        if not isinstance(part, NameMatch):
            return spec.kind in _TEXT_KINDS
        kinds = _NAMES.get(spec.kind, ())
        return any(name.kind in kinds for name in part.names) or (part.new and not kinds)

    def _read(self, spec: Input) -> Iterator[Any]:
        """Yield the values of the unused names and quoted texts that fit the input, and use them.

        A part is used when its value is asked for.
        """
        names: list[Stretch] = [
            match
            for match in self._names
            if not match.negated
            and not match.bound
            and not (spec.kind == "folder" and self._roles[match.start][1])
            and (not match.new or spec.kind in _NEW_KINDS)
            and self._accepts(spec, match)
            and not self._belongs_to_another(match, spec)
            and not self._is_aside(match)
        ]
        texts = [
            quote
            for quote in self._texts
            if self._accepts(spec, quote) and not self._belongs_to_another(quote, spec)
        ]
        if spec.kind == "folder":
            names.reverse()
            if any(self._phrases_of(spec, literal=True)):
                cues = _cues(self.recipe.examples, spec.name)
                names = [match for match in names if self._before(match) in cues]
        others = self._values | ({spec.of: ACTIVE} if spec.kind == "heading" and spec.of else {})
        others |= self._values
        parts = [*names, *texts] if spec.kind == "folder" else [*texts, *names]
        cues = _cues(self.recipe.examples, spec.name)
        for part in sorted(parts, key=lambda part: self._before(part) not in cues):
            known = isinstance(part, NameMatch) and not part.new
            try:
                value = read(spec, part.text, self.parts.parsed.around, others, known=known)
            except InvalidValue:
                continue
            self._texts = [other for other in self._texts if other.text != part.text]
            self._names = [match for match in self._names if match.text != part.text]
            self.used.append(part)
            yield value

    def _belongs_to_another(self, part: Stretch, spec: Input) -> bool:
        """Return True if the word before a part precedes another empty input in the examples."""
        word, examples = self._before(part), self.recipe.examples
        if not word or word in _cues(examples, spec.name, fields=True):
            return False
        return any(
            name not in self._values
            and not (other.kind == "notes" and isinstance(part, NameMatch) and part.new)
            and self._accepts(other, part)
            and word in _cues(examples, name, fields=True)
            for name, other in self.recipe.inputs.items()
        )

    # --- phrases without quotes ---

    def _guess(self) -> None:
        """Fill the empty inputs with phrases, and remember them in `guesses`."""
        for spec in self._open:
            for literal in (True, False) if spec.needed else (True,):
                if any(
                    self._accept(spec, part) for part in self._phrases_of(spec, literal=literal)
                ):
                    break
        missing, unused = [spec for spec in self._open if spec.needed], self.unused
        is_single = len(missing) == len(unused) == len(self.recipe.missing(self._values)) == 1
        # The first word is usually the verb, and no part of a name.
        first = next((token.start for token in self.parts.tokens if not token.is_small), 0)
        if is_single and unused[0].start != first:
            self._accept(missing[0], unused[0])

    @property
    def _open(self) -> list[Input]:
        """The empty inputs that a phrase may fill, those that are required first.

        An optional one needs a noun that introduces it in an example: “with the text {text}”.
        """
        empty = [spec for spec in self.recipe.inputs.values() if spec.name not in self._values]
        needed = [spec for spec in empty if spec.needed and spec.kind in _PHRASE_KINDS]
        others = (spec for spec in empty if not spec.needed and spec.kind in _TEXT_KINDS)
        return [*needed, *(spec for spec in others if self._cues_of(spec))]

    def _cues_of(self, spec: Input) -> frozenset[str]:
        """Return the stems of the words before an input; for an optional one only nouns."""
        examples = self.recipe.examples
        cues = _cues(examples, spec.name)
        if spec.needed:
            return cues | _KIND_CUES.get(spec.kind, frozenset())
        verbs = {words(example)[0] for example in examples if words(example)}
        return frozenset(cue for cue in cues if not is_function_word(cue)) - verbs

    def _accept(self, spec: Input, phrase: Stretch) -> bool:
        """Use a phrase as the value of an input, if it is a valid one."""
        inside = [token for token in self.parts.tokens if is_within(token, [phrase])]
        content = [token for token in inside if token.text not in NEGATIONS]
        if spec.kind in _PROSE:
            names = self.parts.parsed.names
            content = [
                token for token in content if not (token.is_small or is_within(token, names))
            ]
        if inside and not content:
            return False
        others = self.recipe.defaults | self._values
        try:
            value = read(spec, phrase.text, self.parts.parsed.around, others)
        except InvalidValue:
            return False
        self._values[spec.name] = value
        self.guesses[spec.name] = phrase
        return True

    def _phrases_of(self, spec: Input, *, literal: bool) -> Iterator[Stretch]:
        """Yield the phrases behind the words that precede an input in the recipe's examples.

        `literal`: behind these very words, otherwise behind words that mean the same.
        """
        cues, parsed = self._cues_of(spec), self.parts.parsed
        others = (self._cues_of(other) for other in self._open if other is not spec)
        ends = frozenset().union(*others) - cues
        covered = (*parsed.quotes, *parsed.names, *self.used, *self.guesses.values())
        owner = self.guesses.get(spec.of or "")
        for number, token in enumerate(self.parts.tokens):
            is_assigned = literal and owner is not None and token.end == owner.end
            senses = frozenset({stem(token.text)}) if literal else token.senses
            if spec.kind == "property" and _ASSIGNS.match(self._bare, token.end):
                yield self._stretch(token.start, token.end)
            if (is_assigned and _ASSIGNS.match(self._bare, token.end)) or (
                senses & cues and not is_within(token, covered)
            ):
                phrases = (self._phrase_before(number), self._phrase(number + 1, spec, ends))
                yield from filter(None, phrases)

    def _phrase_before(self, number: int) -> Stretch | None:
        """Return the phrase before a token of a script in which prepositions follow the name."""
        spoken, first = self.parts.tokens, number
        if not JOINED.match(spoken[number].text):
            return None
        while first and len(spoken[first - 1].senses) == 1 and not self._is_used(spoken[first - 1]):
            first -= 1
        return self._stretch(spoken[first].start, spoken[number].start) if first < number else None

    def _phrase(self, first: int, spec: Input, ends: Collection[str] = ()) -> Stretch | None:
        """Return the phrase from the token `first`, up to what another input uses."""
        spoken = self.parts.tokens
        is_prose = spec.kind in _PROSE
        while (
            not is_prose
            and first < len(spoken)
            and stem(spoken[first].text) not in ends
            and self._introduces(first, spec)
        ):
            first += 1
        end = first
        while end < len(spoken) and not self._stops(end, first, spec, ends):
            end += 1
        at_name = end < len(spoken) and self._is_used(spoken[end])
        while end > first and self._trails(spoken[end - 1], spoken[:first], at_name=at_name):
            end -= 1
        if not is_prose and spec.kind not in _SEVERAL:
            end = self._without_own_words(first, end)
        if end == first:
            return None
        opening = _OPENING.search(self._bare, spoken[first - 1].end, spoken[first].start)
        closing = _CLOSING.match(self._bare, spoken[end - 1].end)
        return self._stretch(
            opening.start() if opening else spoken[first].start,
            closing.end() if closing and end == len(spoken) else spoken[end - 1].end,
        )

    def _stops(self, number: int, first: int, spec: Input, ends: Collection[str]) -> bool:
        """Return True if a phrase from the token `first` ends before the token `number`."""
        token, is_first = self.parts.tokens[number], number == first
        if self._is_used(token) or is_within(token, self.parts.parsed.quotes):
            return True
        if stem(token.text) in ends and (not is_first or token.is_small):
            return True
        before = self.parts.tokens[number - 1]
        gap = self._bare[before.end : token.start]
        is_inside = (is_first and spec.kind == "value") or (
            not is_first and spec.kind in _SEVERAL and gap.strip() == ","
        )
        return not is_inside and bool(END.search(gap))

    def _without_own_words(self, first: int, end: int) -> int:
        """Return the end of a phrase without words of the recipe after a preposition."""
        last = end
        for number in range(end - 1, first, -1):
            token = self.parts.tokens[number]
            if self._is_small(token):
                last = number
            elif not token.senses & self._own:
                break
        return last

    def _is_small(self, token: SentenceWord) -> bool:
        return token.is_small and not self.parts.parsed.text[token.start].isupper()

    def _introduces(self, number: int, spec: Input) -> bool:
        """Return True for a word between a preposition and a name: “a folder called”."""
        spoken = self.parts.tokens
        token, before = spoken[number], spoken[number - 1]
        after = spoken[number + 1] if number + 1 < len(spoken) else None
        if after is None or END.search(self._bare, token.end, after.start):
            return QUOTED_CHARACTER in self._bare[token.end : token.end + 2]
        if self.parts.parsed.text[token.start].isupper():
            return spec.kind in meanings(token.text)
        if token.is_small:
            return self._bare[token.end] not in "-/"
        if "new" in token.senses:
            return before.is_small and not after.senses.isdisjoint({*NOUNS, "name"})
        if "call" in token.senses and token.text not in ("call", "name", "title"):
            return True
        is_noun = not token.senses.isdisjoint(NOUNS)
        return is_noun and (before.is_small or spec.kind in token.senses or "new" in before.senses)

    def _trails(
        self, token: SentenceWord, before: Sequence[SentenceWord], *, at_name: bool
    ) -> bool:
        """Return True for a word after a name: a preposition, or the verb at the end."""
        if token.is_small or (at_name and token.senses & {*NOUNS, "all"}):
            return not token.is_small or self._is_small(token)
        verb = stem(words(self.recipe.title)[0])
        is_spoken = any(verb in other.senses for other in before)
        return verb in meanings(token.text) and not is_spoken

    # --- descriptions of notes ---

    def _find_text(self) -> None:
        """Add the text that the notes must mention as a condition, if an example has such a text.

        It is the quoted text, the name or the phrase behind the word before it in the example.
        """
        cues = {
            stem(word_before(example[: slot.start()], slot.start()))
            for example in self.recipe.examples
            for slot in SLOT.finditer(example)
            if slot[2] == "text"
        }
        names = self.parts.parsed.names
        for number, token in enumerate(self.parts.tokens):
            if token.senses.isdisjoint(cues) or is_within(token, names):
                continue
            starts = (*self._texts, *names)
            part = next((part for part in starts if token.end < part.start <= token.end + 2), None)
            if part is None and (part := self._phrase(number + 1, Input(name="", kind="text"))):
                stop = min(
                    (name.start for name in names if name.start < part.end), default=part.end
                )
                inside = [other for other in self.parts.tokens if part.start <= other.start < stop]
                while inside and inside[-1].is_small:
                    inside.pop()
                part = self._stretch(part.start, inside[-1].end) if inside else None
            if part is not None:
                term = Term("text", part.text)
                self._conditions.append(NoteCondition(part.start, part.end, part.text, term))
                self._names = [match for match in self._names if match.start != part.start]
                self._texts = [quote for quote in self._texts if quote.start != part.start]
                return

    def _all_notes(self) -> Stretch | None:
        """Return the words “all notes”."""
        content = [
            token for token in self.parts.tokens if not token.is_small or "all" in token.senses
        ]
        for first, last in pairwise(content):
            is_named = is_within(last, self.parts.parsed.names)
            if "all" in first.senses and "note" in last.senses and not is_named:
                return self._stretch(first.start, last.end)
        return None

    def _described(self) -> NoteSet:
        """Return the remaining names and the conditions as a description of notes.

        If no note fits the most likely meanings, another meaning of one name is tried.
        """
        conditions = [part for part in self._conditions if not self._is_used(part)]
        readings = (self._terms(names) for names in self._meanings())
        first = next(readings)
        terms, remaining = first
        if len(_note_set(terms, conditions).terms) > 1:
            fitting = (
                one for one in (first, *readings) if self._fits(_note_set(one[0], conditions))
            )
            terms, remaining = next(fitting, first)
        for match in self._names:
            if match.start not in {other.start for other in remaining}:
                length = len(match.negated) or match.end - match.start
                self.used.append(self._stretch(match.end - length, match.end))
        self._names = remaining
        self.used += conditions
        self._days = [day for day in self._days if not is_within(day, conditions)]
        return _note_set(terms, conditions)

    def _meanings(self) -> Iterator[Sequence[NameMatch]]:
        """Yield the names, and then those with another meaning of one of them."""
        yield self._names
        for kind in ("value", "tag"):
            for number, match in enumerate(self._names):
                names = tuple(name for name in match.names if name.kind == kind)
                if names and names != match.names and not match.negated and not match.bound:
                    other = replace(match, names=names, bound=kind == "value")
                    yield [*self._names[:number], other, *self._names[number + 1 :]]

    def _fits(self, described: NoteSet) -> bool:
        try:
            return bool(described.paths(self.parts.parsed.around))
        except ObsidianAgentError:
            return False

    def _terms(self, names: Sequence[NameMatch]) -> tuple[list[Term], list[NameMatch]]:
        """Return the conditions that names mean, and the names that mean none.

        An excluded name is excluded in each of its meanings.
        """
        notes: list[Term] = []
        terms: list[Term] = []
        remaining: list[NameMatch] = []
        for match in names:
            senses = _senses(match)
            first = senses[0] if senses else None
            if match.start >= self.parts.end and (notes or terms):
                remaining.append(match)
            elif match.negated and not match.new:
                specific = [term for term in senses if term.key != "property"]
                values = [term for term in senses if term.op == ":"]
                terms += (replace(term, negated=True) for term in specific or values or senses)
            elif match.new or (
                first and first.key == "folder" and self._is_elsewhere(match, notes)
            ):
                remaining.append(match)
            elif first and first.key == "note" and self.parts.is_link_target(match):
                terms.append(Term("links-to", first.value))
            elif first and first.key == "note":
                notes.append(first)
            elif first and self._is_condition(match, first, notes):
                terms.append(first)
            elif terms and terms[-1].property:
                owner = terms[-1].property
                terms[-1] = next((term for term in senses if term.property == owner), terms[-1])
            else:
                remaining.append(match)
        return [*notes, *terms], remaining

    def _is_condition(self, match: NameMatch, first: Term, notes: Sequence[Term]) -> bool:
        """Return True for a name that narrows the notes by its first meaning."""
        if match.bound or first.key != "property" or first.op == "has":
            return True
        lacks_phrase = any(
            spec.needed and spec.kind in _PHRASE_KINDS and spec.name not in self._values
            for spec in self.recipe.inputs.values()
        )
        return not (notes or lacks_phrase) and _is_lone_value(match)

    def _is_elsewhere(self, match: NameMatch, notes: Sequence[Term]) -> bool:
        """Return True for a folder that is a destination, or does not hold a named note."""
        folder = f"{_senses(match)[0].value}/"
        is_destination = self._roles[match.start][0]
        return is_destination or not all(term.value.startswith(folder) for term in notes)


def _is_lone_value(match: NameMatch) -> bool:
    """Return True for a word that is only a value of one property: “the active projects”."""
    is_word = match.text.isalpha() and not meanings(match.text)
    return is_word and len(match.names) == 1 and isinstance(match.names[0].value, str)


def _overlaps(part: Stretch, others: Sequence[Stretch]) -> bool:
    return any(part.start < other.end and other.start < part.end for other in others)


def _note_set(terms: Sequence[Term], conditions: Sequence[NoteCondition]) -> NoteSet:
    """Return the description. A comparison replaces the mere existence of its property."""
    compared = {part.term.property for part in conditions if part.term.property}
    own = [term for term in terms if term.op != "has" or term.property not in compared]
    return NoteSet(tuple(dict.fromkeys((*own, *(part.term for part in conditions)))))


def _split_pair(names: list[NameMatch]) -> list[NameMatch]:
    """Split the first property with a value in two, if no property is mentioned alone.

    For an action that sets a property they are the values to set, not a condition.
    """
    affirmed = [match for match in names if not match.negated]
    match = next((match for match in affirmed if match.bound), None)
    is_alone = any(name.kind == "property" for other in affirmed for name in other.names)
    if match is None or is_alone:
        return names
    owners = tuple(Name("property", name.property) for name in match.names)
    texts = str(owners[0].value), display_text(match.names[0].value) or ""
    index = names.index(match)
    names[index : index + 1] = [
        replace(match, text=texts[0], names=owners, bound=False),
        replace(match, text=texts[1], bound=False),
    ]
    return names


def _senses(match: NameMatch) -> list[Term]:
    """Return the meanings of a name in a description, most likely first.

    The order is: tag with `#`, folder, note, property, value, tag without `#`. An ambiguous folder
    name has no meaning.
    """
    by_kind: dict[str, list[Term]] = {}
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
        by_kind.setdefault(term.key if name.kind != "value" else "value", []).append(term)
    if len(by_kind.get("folder", ())) > 1:
        return []
    order = ["folder", "note", "property", "value"]
    order.insert(0 if match.text.startswith("#") else 4, "tag")
    return [term for kind in order for term in by_kind.get(kind, ())]
