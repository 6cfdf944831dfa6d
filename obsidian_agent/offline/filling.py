"""Values for the inputs of a recipe from a sentence: names, quoted texts, days and phrases.

Names of the vault, quoted texts and days fill the inputs of their kinds first. A phrase without
quotes then fills an input that is still missing: the phrase behind a word that precedes the input
in the recipe's own examples, or the only unused phrase for the only missing input.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from typing import Any, Final

from obsidian_agent.dataclass import dataclass, field, replace
from obsidian_agent.errors import ObsidianAgentError
from obsidian_agent.expression import unicode_expression
from obsidian_agent.offline.names import Name, NameKind, display_text
from obsidian_agent.offline.note_set import (
    ACTIVE,
    STATES,
    InvalidValue,
    Key,
    NoteSet,
    Op,
    Term,
    without_templates,
)
from obsidian_agent.offline.recipe import SLOT, Input, Recipe
from obsidian_agent.offline.sentence import (
    FUNCTION_WORDS,
    JOINED,
    NEGATIONS,
    QUOTED_CHARACTER,
    NameMatch,
    Sentence,
    Stretch,
    is_function_word,
    meanings,
    stem,
    tokens,
    word_before,
    words,
)
from obsidian_agent.offline.values import read

_NAMES: Final[Mapping[str, tuple[str, ...]]] = {
    **dict.fromkeys(("note", "template"), ("note", "alias")),
    "entry": ("note", "alias", "folder", "file"),
    **{kind: (kind,) for kind in ("folder", "tag", "property", "value")},
}
"""The kinds of names that an input accepts, by its kind."""
_NEW_KINDS: Final = frozenset({"newNote", "newName", "folder", "tag"})
"""The kinds of inputs that accept a new name."""
_TEXT_KINDS: Final = frozenset({"folder", "newNote", "newName", "value", "text", "list", "heading"})
"""The kinds of inputs that accept a quoted text."""
_PHRASE_KINDS: Final = _TEXT_KINDS | {"tag", "tags", "property"}
"""The kinds of inputs that accept a phrase without quotes."""
_NOUNS: Final[Mapping[str, tuple[NameKind, ...]]] = {
    "tag": ("tag",),
    "folder": ("folder",),
    "property": ("property",),
    "note": ("note", "alias"),
}
"""The kinds of names beside these words."""
_KIND_CUES: Final[Mapping[str, frozenset[str]]] = {
    **{noun: frozenset({noun}) for noun in ("tag", "folder", "property", "heading")},
    "newName": frozenset({"call", "name"}),
}
"""The stems of the words before an input of a kind, in any recipe."""
_BESIDE: Final[tuple[NameKind, ...]] = ("tag", "folder", "value")
"""The kinds of a name before the word "notes", if it is one of these."""
_STATES: Final = ("untagged", "unlinked", "empty", "bare")
_BEFORE: Final = stem("before")
_WHEN: Final = frozenset({_BEFORE, stem("since")})
_END: Final = unicode_expression(r"[,;:!?.](?=\s|$)|[\n\ue000]|[。，；！？]")
"""The end of a phrase."""
_ASSIGNS: Final = unicode_expression(r"\s*[:=]")
_OPENING: Final = unicode_expression(r"[^\s\ue000]+$")
_CLOSING: Final = unicode_expression(r"[^\s,;:.!?\ue000。，；！？]*")


@dataclass(frozen=True, slots=True)
class FolderRoles:
    """The words before a folder that make it the destination, and those that make it a filter."""

    destination: frozenset[str] = frozenset()
    filter: frozenset[str] = frozenset()


# Lazy: a sentence written like an example does not load the engine of these expressions.
@cache
def _state_words() -> Sequence[tuple[str, tuple[str, ...]]]:
    """Return the states of notes that a sentence may mention, with the words for each."""
    return [
        *(
            (state, tuple(word for word in words(STATES[state][1]) if word not in FUNCTION_WORDS))
            for state in _STATES
        ),
        ("unlinked", ("without", "backlink")),
        ("unlinked", ("without", "link")),
    ]


@cache
def _change_words() -> Mapping[str, Key]:
    """Return the days of a note that a word before "since" or "before" means."""
    return {
        **dict.fromkeys(words("change edit update modify note"), "changed"),
        **dict.fromkeys(words("create write"), "created"),
    }


@lru_cache(maxsize=256)
def _spoken(text: str) -> frozenset[str]:
    """Return what a word may mean: its stem, and the menu's words for it."""
    return meanings(text) | {stem(text)}


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


@dataclass(slots=True, kw_only=True)
class Filling:
    """The parts of a sentence that no input of a recipe uses yet."""

    parsed: Sentence
    recipe: Recipe
    tokens: Sequence[Stretch]
    names: list[NameMatch]
    texts: list[Stretch]
    days: list[Stretch]
    conditions: Sequence[_Condition]
    destinations: Collection[int]
    """Positions of folder names that are destinations."""
    filters: Collection[int]
    """Positions of folder names that are filters."""
    used: list[Stretch] = field(default_factory=list)
    guesses: dict[str, Stretch] = field(default_factory=dict)
    """The phrases without quotes, by input."""

    @classmethod
    def of(cls, parsed: Sentence, recipe: Recipe, roles: FolderRoles) -> Filling:
        """Return the parts for a recipe.

        Templates are included only for inputs that need one, or if their folder is mentioned.
        """
        kinds = {spec.kind for spec in recipe.inputs.values()}
        folder = parsed.around.context.notes.templates or "Templates"
        spoken = tokens(parsed.bare)
        conditions = _conditions(parsed, spoken)
        names = [
            narrowed
            for match in _not_negated_by(conditions, parsed.names)
            if not _within(match, conditions)
            if (narrowed := _beside(match, parsed, spoken)) is not None
        ]
        named = any(
            name.value == folder or match.text.startswith(f"{folder}/")
            for match in parsed.names
            for name in match.names
        )
        if not named and "template" not in kinds:
            names = [
                replace(match, names=others)
                for match in names
                if (
                    others := tuple(
                        name for name in match.names if not str(name.value).startswith(f"{folder}/")
                    )
                )
            ]
        # A quoted text in a condition is no text to write, and a day within a name is no day.
        owned = [match for match in parsed.names if match.bound or match.negated]
        destinations, filters = _folder_positions(parsed, names, spoken, roles)
        return cls(
            parsed=parsed,
            recipe=recipe,
            tokens=spoken,
            names=_split_pair(names) if "value" in kinds else names,
            texts=[quote for quote in parsed.quotes if not _within(quote, owned)],
            days=[day for day in parsed.days if not _within(day, parsed.names)],
            conditions=conditions,
            destinations=destinations,
            filters=filters,
        )

    @property
    def phrases(self) -> list[Stretch]:
        """The parts of the sentence that are a value or a condition, without names."""
        return [
            *self.guesses.values(),
            *(part for part in self.conditions if part.term.key == "is" or self._is_used(part)),
        ]

    def __len__(self) -> int:
        """Return the number of names, quoted texts and conditions that no input uses."""
        free = [match for match in self.names if not match.new and not self._is_used(match)]
        named = {match.text for match in free}
        lost = [part for part in self.conditions if not self._is_used(part)]
        return len(free) + sum(quote.text not in named for quote in self.texts) + len(lost)

    def values(self) -> dict[str, Any]:
        """Return the values of the inputs that are clear.

        An input for a folder is filled before a description of notes. What to delete is not clear
        if an unused word may be a condition.
        """
        values: dict[str, Any] = {}
        inputs = self.recipe.inputs.values()
        self._find_text()
        for spec in sorted(inputs, key=lambda spec: (spec.kind == "notes", bool(spec.of))):
            value = self._value(spec, values)
            if value is not None:
                values[spec.name] = value
        self._guess(values)
        if "vault.delete" in self.recipe.tools and self.unused():
            values = {}
        return {name: values[name] for name in self.recipe.inputs if name in values}

    def unused(self) -> list[Stretch]:
        """Return the phrases of the sentence that neither choose the recipe nor fill an input."""
        own = own_words(self.recipe) | {"all"}
        phrases: list[Stretch] = []
        text = self.parsed.text
        for token in self.tokens:
            if self._is_used(token) or is_function_word(token.text) or _spoken(token.text) & own:
                continue
            start = phrases[-1].end if phrases else 0
            between = [other for other in self.tokens if start <= other.start < token.start]
            if (
                phrases
                and not _END.search(self.parsed.bare, start, token.start)
                and all(is_function_word(other.text) for other in between)
                and not any(self._is_used(other) for other in between)
            ):
                token = replace(phrases.pop(), end=token.end)
            phrases.append(replace(token, text=text[token.start : token.end]))
        return phrases

    def _is_used(self, part: Stretch) -> bool:
        return _within(part, (*self.used, *self.guesses.values()))

    def _value(self, spec: Input, values: Mapping[str, Any]) -> Any:
        match spec.kind:
            case "date":
                return self._day(spec)
            case "notes":
                described = self._described()
                around = self.parsed.around
                return without_templates(described, around) if described.terms else None
            case "tags" | "properties":
                one = spec.model_copy(update={"kind": "tag" if spec.kind == "tags" else "property"})
                return list(dict.fromkeys(iter(lambda: self._read(one, values), None))) or None
            case _:
                return self._read(
                    spec,
                    {spec.of: ACTIVE, **values} if spec.kind == "heading" and spec.of else values,
                )

    def _day(self, spec: Input) -> str | None:
        """Return the first unused day, unless a word before it belongs to another input."""
        cues = _cues(self.recipe.examples, spec.name)
        for day in self.days:
            word = word_before(self.parsed.bare, day.start)
            if cues and word and _spoken(word) & _WHEN and not _spoken(word) & cues:
                continue
            owner = next((part for part in self.conditions if _within(day, [part])), None)
            if owner is not None and not _spoken(word) & cues:
                continue
            self.days.remove(day)
            self.used.append(owner or day)
            return day.text
        return None

    def _read(self, spec: Input, others: Mapping[str, Any]) -> Any:
        """Return the value of the first unused name or quoted text that fits the input."""
        kinds = _NAMES.get(spec.kind, ())
        named = [
            match
            for match in self.names
            if not match.negated
            and not match.bound
            and not (spec.kind == "folder" and match.start in self.filters)
            and (not match.new or spec.kind in _NEW_KINDS)
            and (any(name.kind in kinds for name in match.names) or (match.new and not kinds))
            and not self._belongs_to_another(match, spec, others)
        ]
        texts = [
            quote
            for quote in self.texts
            if spec.kind in _TEXT_KINDS and not self._belongs_to_another(quote, spec, others)
        ]
        if spec.kind == "folder" and any(self._phrases_of(spec, others, literal=True)):
            cues = _cues(self.recipe.examples, spec.name)
            named = [
                match for match in named if stem(word_before(self.parsed.bare, match.start)) in cues
            ]
        for part in [*reversed(named), *texts] if spec.kind == "folder" else [*texts, *named]:
            known = isinstance(part, NameMatch) and not part.new
            try:
                value = read(spec, part.text, self.parsed.around, others, known=known)
            except InvalidValue:
                continue
            self.texts = [other for other in self.texts if other.text != part.text]
            self.names = [match for match in self.names if match.text != part.text]
            self.used.append(part)
            return value
        return None

    def _belongs_to_another(self, part: Stretch, spec: Input, values: Mapping[str, Any]) -> bool:
        """Return True if the word before a part precedes another empty input in the examples."""
        word = stem(word_before(self.parsed.bare, part.start))
        if not word or word in _cues(self.recipe.examples, spec.name, fields=True):
            return False
        kinds = {name.kind for name in part.names} if isinstance(part, NameMatch) else {"text"}
        for other in self.recipe.inputs.values():
            accepted = {
                *_NAMES.get(other.kind, ()),
                *(("text",) if other.kind in _TEXT_KINDS else ()),
            }
            if other.kind == "notes":
                accepted = {"note", "folder", "tag"}
            if (
                other.name not in values
                and kinds & accepted
                and word in _cues(self.recipe.examples, other.name, fields=True)
            ):
                return True
        return False

    # --- phrases without quotes ---

    def _guess(self, values: dict[str, Any]) -> None:
        """Fill the missing inputs with phrases, and remember them in `guesses`."""
        for spec in (*self._missing(values), *self._optional(values)):
            for literal in (True, False) if spec.needed else (True,):
                phrases = self._phrases_of(spec, values, literal=literal)
                if any(self._accept(spec, phrase, values) for phrase in phrases):
                    break
        missing = self._missing(values)
        if len(missing) == 1 and len(self.recipe.missing(values)) == 1:
            unused = self.unused()
            # The first word is usually the verb, and no part of a name.
            if len(unused) == 1 and not self._is_order(unused[0]):
                self._accept(missing[0], unused[0], values)

    def _is_order(self, phrase: Stretch) -> bool:
        first = next((token for token in self.tokens if not is_function_word(token.text)), None)
        return first is not None and first.start == phrase.start and bool(_spoken(first.text))

    def _missing(self, values: Mapping[str, Any]) -> list[Input]:
        return [
            spec
            for spec in self.recipe.inputs.values()
            if spec.needed and spec.name not in values and spec.kind in _PHRASE_KINDS
        ]

    def _optional(self, values: Mapping[str, Any]) -> list[Input]:
        """Return the empty inputs that a noun in an example introduces: "with the text {text}"."""
        return [
            spec
            for spec in self.recipe.inputs.values()
            if not spec.needed
            and spec.name not in values
            and spec.kind in _TEXT_KINDS
            and self._cues_of(spec)
        ]

    def _cues_of(self, spec: Input) -> frozenset[str]:
        """Return the stems of the words before an input; for an optional one only nouns."""
        examples = self.recipe.examples
        cues = _cues(examples, spec.name)
        if spec.needed:
            return cues | _KIND_CUES.get(spec.kind, frozenset())
        verbs = {words(example)[0] for example in examples if words(example)}
        return frozenset(cue for cue in cues if not is_function_word(cue)) - verbs

    def _accept(self, spec: Input, phrase: Stretch, values: dict[str, Any]) -> bool:
        """Use a phrase as the value of an input, if it is a valid one."""
        if all(token.text in NEGATIONS for token in tokens(phrase.text)):
            return False
        others = self.recipe.defaults | values
        try:
            values[spec.name] = read(spec, phrase.text, self.parsed.around, others)
        except InvalidValue:
            return False
        self.guesses[spec.name] = phrase
        return True

    def _phrases_of(
        self, spec: Input, values: Mapping[str, Any], *, literal: bool
    ) -> Iterator[Stretch]:
        """Yield the phrases behind the words that precede an input in the recipe's examples.

        `literal`: behind these very words, otherwise behind words that mean the same.
        """
        cues = self._cues_of(spec)
        open_inputs = (*self._missing(values), *self._optional(values))
        others = [self._cues_of(other) for other in open_inputs if other is not spec]
        ends = frozenset().union(*others) - cues
        covered = (*self.parsed.quotes, *self.parsed.names, *self.used, *self.guesses.values())
        owner = self.guesses.get(spec.of or "")
        for number, token in enumerate(self.tokens):
            is_assigned = owner is not None and token.end == owner.end
            if literal and is_assigned and _ASSIGNS.match(self.parsed.bare, token.end):
                phrase = self._phrase(number, spec, ends)
                if phrase is not None:
                    yield phrase
            senses = {stem(token.text)} if literal else meanings(token.text)
            # English articles are prepositions in other languages: “Renombra X a Y”.
            if not literal and token.text == "a" and not self._is_behind_name(token):
                continue
            if senses & cues and not _within(token, covered):
                phrase = self._phrase(number, spec, ends)
                if phrase is not None:
                    yield phrase

    def _is_behind_name(self, token: Stretch) -> bool:
        gaps = (self.parsed.bare[part.end : token.start] for part in self.used)
        return any(gap.isspace() for gap in gaps)

    def _phrase(self, number: int, spec: Input, ends: Collection[str]) -> Stretch | None:
        """Return the phrase behind the token `number`, up to what another input uses."""
        bare, spoken = self.parsed.bare, self.tokens
        first = number + 1
        if spec.kind in ("text", "list"):
            first += 2 * self._is_described(first)
        else:
            while (
                first < len(spoken)
                and stem(spoken[first].text) not in ends
                and self._introduces(first, spec)
            ):
                first += 1
        end = first
        while (
            end < len(spoken)
            and not self._is_used(spoken[end])
            and not _within(spoken[end], self.parsed.quotes)
            and (
                (end == first and spec.kind == "value")
                or not _END.search(bare, spoken[end - 1].end, spoken[end].start)
            )
            and not (
                stem(spoken[end].text) in ends
                and (end > first or is_function_word(spoken[end].text))
            )
        ):
            end += 1
        is_before_name = end < len(spoken) and self._is_used(spoken[end])
        while end > first and (
            self._trails(spoken[end - 1], spoken[:first])
            or (is_before_name and _spoken(spoken[end - 1].text) & {*_NOUNS, "all"})
        ):
            end -= 1
        if spec.kind not in ("text", "list"):
            end = self._without_own_words(first, end)
        if end == first:
            return None
        opening = _OPENING.search(bare, spoken[first - 1].end, spoken[first].start)
        start = opening.start() if opening else spoken[first].start
        closing = _CLOSING.match(bare, spoken[end - 1].end)
        stop = closing.end() if closing and end == len(spoken) else spoken[end - 1].end
        return Stretch(start, stop, self.parsed.text[start:stop])

    def _without_own_words(self, first: int, end: int) -> int:
        """Return the end of a phrase without words of the recipe after a preposition."""
        own = own_words(self.recipe) | {"all"}
        last = end
        for number in range(end - 1, first, -1):
            token = self.tokens[number]
            if is_function_word(token.text) and not self.parsed.text[token.start].isupper():
                last = number
            elif not _spoken(token.text) & own:
                break
        return last

    def _is_described(self, number: int) -> bool:
        """Return True for an article and a word of the recipe, as in "the line"."""
        noun = self.tokens[min(number + 1, len(self.tokens) - 1)]
        return (
            self.tokens[min(number, len(self.tokens) - 1)].text in ("the", "a", "an")
            and number + 2 < len(self.tokens)
            and not _spoken(noun.text).isdisjoint(own_words(self.recipe))
        )

    def _introduces(self, number: int, spec: Input) -> bool:
        """Return True for a word between a preposition and a name: "a folder called"."""
        token, before = self.tokens[number], self.tokens[number - 1]
        after = self.tokens[number + 1] if number + 1 < len(self.tokens) else None
        is_before_quote = QUOTED_CHARACTER in self.parsed.bare[token.end : token.end + 2]
        if after is None or _END.search(self.parsed.bare, token.end, after.start):
            return is_before_quote
        senses = _spoken(token.text)
        if self.parsed.text[token.start].isupper():
            return spec.kind in meanings(token.text)
        if is_function_word(token.text):
            return True
        if "new" in senses:
            nouns = {*_NOUNS, "name"}
            return is_function_word(before.text) and not _spoken(after.text).isdisjoint(nouns)
        if "call" in senses and token.text not in ("call", "name", "title"):
            return True
        return bool(senses & _NOUNS.keys()) and (
            is_function_word(before.text) or spec.kind in senses or "new" in _spoken(before.text)
        )

    def _trails(self, token: Stretch, before: Sequence[Stretch]) -> bool:
        """Return True for a word after a name: a preposition, or the verb at the end."""
        if is_function_word(token.text):
            return not self.parsed.text[token.start].isupper()
        verb = stem(words(self.recipe.title)[0])
        return verb in meanings(token.text) and not any(
            verb in _spoken(other.text) for other in before
        )

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
        spec = Input(name="text")
        for number, token in enumerate(self.tokens):
            if _spoken(token.text).isdisjoint(cues) or _within(token, self.parsed.names):
                continue
            starts = (*self.texts, *self.parsed.names)
            part = next((part for part in starts if token.end < part.start <= token.end + 2), None)
            if part is None and (part := self._phrase(number, spec, ())) is not None:
                stops = (other.start for other in self.parsed.names if other.start < part.end)
                inside = [other for other in self.tokens if part.start <= other.start]
                before = [other for other in inside if other.start < min(stops, default=part.end)]
                while before and is_function_word(before[-1].text):
                    before.pop()
                end = before[-1].end if before else part.start
                part = Stretch(part.start, end, self.parsed.text[part.start : end])
            if part is not None and part.text:
                span = part.start, part.end, part.text
                self.conditions = [*self.conditions, _Condition(*span, Term("text", part.text))]
                self.names = [match for match in self.names if match.start != part.start]
                self.texts = [quote for quote in self.texts if quote.start != part.start]
                return

    def _described(self) -> NoteSet:
        """Return the remaining names and the conditions as a description of notes.

        If no note fits the most likely meanings, another meaning of one name is tried.
        """
        conditions = [part for part in self.conditions if not self._is_used(part)]
        notes, used, remaining = self._terms(self.names)
        described = _note_set(notes, conditions)
        if len(described.terms) > 1 and not self._fits(described):
            for kind in ("value", "tag"):
                for number, match in enumerate(self.names):
                    names = tuple(name for name in match.names if name.kind == kind)
                    if not names or match.negated or match.bound or names == match.names:
                        continue
                    changed = [*self.names]
                    changed[number] = replace(match, names=names, bound=kind == "value")
                    other, other_used, other_remaining = self._terms(changed)
                    if self._fits(_note_set(other, conditions)):
                        self.used += [*other_used, *conditions]
                        self.names = other_remaining
                        return _note_set(other, conditions)
        self.names = remaining
        self.used += [*used, *conditions]
        days = {day for day in self.days if _within(day, conditions)}
        self.days = [day for day in self.days if day not in days]
        return described

    def _fits(self, described: NoteSet) -> bool:
        try:
            return bool(described.paths(self.parsed.around))
        except ObsidianAgentError:
            return False

    def _terms(
        self, names: Sequence[NameMatch]
    ) -> tuple[list[Term], list[NameMatch], list[NameMatch]]:
        """Return the conditions that names mean, the names used, and the others.

        An excluded name is excluded in each of its meanings.
        """
        notes: list[Term] = []
        terms: list[Term] = []
        remaining: list[NameMatch] = []
        for match in names:
            senses = _senses(match)
            folder = f"{senses[0].value}/" if senses and senses[0].key == "folder" else ""
            if match.new or (
                folder
                and not match.negated
                and (
                    match.start in self.destinations
                    or not all(term.value.startswith(folder) for term in notes)
                )
            ):
                # It is new, or a destination, or a note outside of it is named.
                remaining.append(match)
            elif match.negated:
                specific = [term for term in senses if term.key != "property"]
                terms += (
                    replace(term, negated=True)
                    for term in specific or [term for term in senses if term.op == ":"] or senses
                )
            elif senses and senses[0].key == "note":
                notes.append(senses[0])
            elif senses and (match.bound or senses[0].key != "property" or senses[0].op == "has"):
                terms.append(senses[0])
            elif terms and terms[-1].property:
                terms[-1] = next(
                    (term for term in senses if term.property == terms[-1].property), terms[-1]
                )
        used = [
            replace(match, start=match.end - len(match.negated)) if match.negated else match
            for match in names
            if match not in remaining
        ]
        return [*notes, *terms], used, remaining


@dataclass(frozen=True, slots=True)
class _Condition(Stretch):
    """A part of a sentence that is a condition on notes."""

    term: Term


def _folder_positions(
    parsed: Sentence,
    names: Sequence[NameMatch],
    spoken: Sequence[Stretch],
    roles: FolderRoles,
) -> tuple[set[int], set[int]]:
    """Return the positions of names that are destinations, and of names that are filters."""
    destinations: set[int] = set()
    filters: set[int] = set()
    for match in names:
        word = word_before(parsed.bare, match.start)
        known = word in roles.destination or word in roles.filter
        meant = frozenset({word}) if known else meanings(word)
        after = next((token.text for token in spoken if token.start >= match.end), "")
        # In Chinese the preposition follows the name.
        behind = JOINED.match(after) and "in" in meanings(after)
        if meant & roles.destination and not (meant & roles.filter and not known):
            destinations.add(match.start)
        if behind or (meant & roles.filter and not (meant & roles.destination and not known)):
            filters.add(match.start)
    return destinations, filters


def _within(part: Stretch, parts: Sequence[Stretch]) -> bool:
    return any(other.start <= part.start < other.end for other in parts)


def _note_set(terms: Sequence[Term], conditions: Sequence[_Condition]) -> NoteSet:
    """Return the description. A comparison replaces the mere existence of its property."""
    compared = {part.term.property for part in conditions if part.term.property}
    own = [term for term in terms if term.op != "has" or term.property not in compared]
    return NoteSet(tuple(dict.fromkeys((*own, *(part.term for part in conditions)))))


def _conditions(parsed: Sentence, spoken: Sequence[Stretch]) -> list[_Condition]:
    """Return the states and days by which a sentence describes notes."""
    return [*_states(parsed, spoken), *_dated(parsed, spoken)]


def _not_negated_by(
    conditions: Sequence[_Condition], names: Sequence[NameMatch]
) -> Iterator[NameMatch]:
    """Yield the names; those after a condition are not excluded by its "without"."""
    for match in names:
        start = match.end - len(match.negated)
        is_own = any(part.start <= start < part.end for part in conditions)
        yield replace(match, negated="") if match.negated and is_own else match


def _content(spoken: Sequence[Stretch]) -> tuple[list[Stretch], list[frozenset[str]]]:
    """Return the words of a sentence without function words, and the stems that each means.

    "No other note" is one word, which means nothing.
    """
    content: list[Stretch] = []
    stems: list[frozenset[str]] = []
    for token in spoken:
        if is_function_word(token.text):
            continue
        senses = _spoken(token.text)
        if stems and "without" in stems[-1] and (token.text == "other" or "note" in senses):
            if "note" in senses:
                stems[-1] = frozenset({stem("nothing")})
            continue
        content.append(token)
        stems.append(senses | {"without"} if token.text in NEGATIONS else senses)
    return content, stems


def _states(parsed: Sentence, spoken: Sequence[Stretch]) -> Iterator[_Condition]:
    content, stems = _content(spoken)
    for state, needed in _state_words():
        for number, token in enumerate(content):
            last = number + len(needed) - 1
            follows = last < len(content) and all(
                {word, stem(word)} & stems[number + at] for at, word in enumerate(needed)
            )
            if not follows and stem(state) in stems[number]:
                follows, last = True, number
            # “Empty X” is an order, “to Empty” a name, and “without tag X” excludes a name.
            is_name = last == number and _within(token, parsed.names)
            if not follows or token is spoken[0] or is_name:
                continue
            end = content[last].end
            # “Without links” means links in the notes, “no links to them” links to the notes.
            after = next((token.text for token in spoken if token.start >= end), "")
            if needed == ("without", "link") and after != "to":
                continue
            is_name = any(parsed.bare[end : match.start].isspace() for match in parsed.names)
            if is_name and last > number:
                continue
            yield _Condition(token.start, end, parsed.text[token.start : end], Term("is", state))
            break


def _dated(parsed: Sentence, spoken: Sequence[Stretch]) -> Iterator[_Condition]:
    for day in parsed.days:
        before = [token for token in spoken if token.end <= day.start]
        while before and is_function_word(before[-1].text) and before[-1].text != "do":
            before.pop()
        if not before or _within(day, parsed.names):
            continue
        cue = before.pop()
        stems = _spoken(cue.text)
        if not stems & _WHEN or _END.search(parsed.bare, cue.end, day.start):
            continue
        later: Op = ">" if cue.text == "after" else ">="
        owner = next(
            (
                (match, name.value)
                for match in parsed.names
                if parsed.bare[match.end : cue.start].isspace() and not match.negated
                for name in match.names
                if name.kind == "property"
            ),
            None,
        )
        start = before[-1] if before else cue
        key = next(
            (key for word, key in _change_words().items() if word in _spoken(start.text)), None
        )
        if owner is not None:
            start = owner[0]
            term = Term("property", day.text, "<" if _BEFORE in stems else later, owner[1])
        elif key is not None:
            term = Term(key, day.text, "<" if _BEFORE in stems else ">=")
        else:
            continue
        begin = cue.start if "note" in _spoken(start.text) else start.start
        yield _Condition(begin, day.end, parsed.text[begin : day.end], term)


def _beside(match: NameMatch, parsed: Sentence, spoken: Sequence[Stretch]) -> NameMatch | None:
    """Return a name with the meanings that the words beside it allow, or None.

    "The folder X" is no note X; if there is no folder X, it is a new name. "The X notes" are those
    with the tag or in the folder X.
    """
    if match.bound or match.new:
        return match
    before = [token for token in spoken if token.end <= match.start]
    after = next((token for token in spoken if token.start >= match.end), None)
    called = False
    while before and "call" in _spoken(before[-1].text) and len(before) > 1:
        called = bool(before.pop())
    kinds: tuple[NameKind, ...] = ()
    if before and not _END.search(parsed.bare, before[-1].end, match.start):
        noun = before[-1]
        stems = _spoken(noun.text)
        # “Tag X” and “please tag X” are orders, “the tag X” is a name.
        article = before[-2].text if len(before) > 1 else "to"
        is_noun = called or noun.text != "tag" or article not in ("you", "please", "to", "i", "me")
        kinds = next((kinds for word, kinds in _NOUNS.items() if word in stems and is_noun), ())
    fitting = tuple(name for name in match.names if name.kind in kinds)
    if not fitting and kinds and kinds != _NOUNS["note"]:
        return None
    if not kinds and after is not None and parsed.bare[match.end : after.start].isspace():
        stems = _spoken(after.text)
        if "note" in stems and after.text != "note":
            kinds = _BESIDE
        elif not after.text.endswith("ed"):
            kinds = next((kinds for word, kinds in _NOUNS.items() if word in stems), ())
        fitting = tuple(name for name in match.names if name.kind in kinds)
    if not fitting and before and before[-1].text in ("is", "are", "by"):
        fitting = tuple(name for name in match.names if name.kind == "value")
    bound = bool(fitting) and all(name.kind == "value" for name in fitting)
    return replace(match, names=fitting, bound=bound) if fitting else match


def _split_pair(names: list[NameMatch]) -> list[NameMatch]:
    """Split the first property with a value in two, if no property is mentioned alone.

    For an action that sets a property they are the values to set, not a condition.
    """
    index = next(
        (index for index, match in enumerate(names) if match.bound and not match.negated), None
    )
    if index is None or any(
        name.kind == "property" for match in names for name in match.names if not match.negated
    ):
        return names
    match = names[index]
    owners = tuple(Name("property", name.property) for name in match.names)
    texts = str(owners[0].value), display_text(match.names[0].value) or ""
    pair = (
        replace(match, text=texts[0], names=owners, bound=False),
        replace(match, text=texts[1], bound=False),
    )
    return [*names[:index], *pair, *names[index + 1 :]]


def _senses(match: NameMatch) -> list[Term]:
    """Return the meanings of a name in a description, most likely first.

    The order is: tag with `#`, folder, note, property, value, tag without `#`. An ambiguous folder
    name has no meaning.
    """
    tags = [Term("tag", name.value) for name in match.names if name.kind == "tag"]
    folders = [Term("folder", name.value) for name in match.names if name.kind == "folder"]
    if len(folders) > 1:
        return []
    notes = [Term("note", name.value) for name in match.names if name.kind in ("note", "alias")]
    having = [
        Term("property", None, "has", name.value) for name in match.names if name.kind == "property"
    ]
    values = [
        Term("property", name.value, ":", name.property)
        for name in match.names
        if name.kind == "value"
    ]
    first, last = (tags, []) if match.text.startswith("#") else ([], tags)
    return [*first, *folders, *notes, *having, *values, *last]
