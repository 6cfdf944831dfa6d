"""Values for the inputs of a recipe from the parts of a sentence.

Each input takes a part of its kind, first of all one behind a word that precedes the input in the
recipe's own examples. A phrase without quotes behind such a word fills an input that is still
missing, and so does the only unused phrase. The other names and conditions describe notes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property, lru_cache
from itertools import dropwhile, pairwise, takewhile
from typing import Any, Final

from msgspec.structs import replace

from obsidian_agent.errors import ObsidianAgentError, VaultError
from obsidian_agent.expression import unicode_expression
from obsidian_agent.offline.days import parse_day
from obsidian_agent.offline.names import Name, NameKind, display_text
from obsidian_agent.offline.note_set import ACTIVE, InvalidValue, NoteSet, Term, without_templates
from obsidian_agent.offline.recipe import ITEMS, SLOT, Input, Recipe
from obsidian_agent.offline.sentence import (
    NO_NOTES,
    NOUNS,
    NameMatch,
    NoteCondition,
    Sentence,
    cue_before,
    is_within,
)
from obsidian_agent.offline.values import headings, names_of, read, without_unit
from obsidian_agent.offline.words import (
    END,
    FUNCTION_WORDS,
    JOINED,
    NEAR,
    NOT,
    QUOTED_CHARACTER,
    Stretch,
    Word,
    is_function_word,
    meanings,
    senses_of,
    stem,
    tokens,
    words,
)
from obsidian_agent.vault.markdown.lines import read_item
from obsidian_agent.vault.paths.path import PathUse, parse
from obsidian_agent.vault.text import decode

_NAMES: Final[Mapping[str, tuple[NameKind, ...]]] = {
    **dict.fromkeys(("note", "template"), ("note", "alias")),
    "entry": ("note", "alias", "folder", "file"),
    "notes": ("note", "folder", "tag"),
    "folder": ("folder",),
    "tag": ("tag",),
    "property": ("property",),
    "value": ("value",),
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
_COMMA: Final = unicode_expression(r"\s*,\s+|[，、]\s*")
_LAST_AND: Final = unicode_expression(
    r"(?i)^(?:and|und|et|e|ed|y|i|и)\s+|\s+(?:and|und|et|e|ed|y|i|и|&)\s+|(?<=\S)(?:[和と]|[와과]\s)"
)
_MAX_ITEM_WORDS: Final = 4
_OF_SECTIONS: Final = frozenset({"list", "section", "heading"})
"""Senses of the nouns behind the name of a heading: “the to-do list”."""
_LISTED_OWN: Final = (
    "own separate eigene eigenen eigenes propre propia propio propria proprio própria próprio "
    "eigen własną vlastní отдельную"
)
_OWN: Final = frozenset(_LISTED_OWN.split())
"""The words before “note” that name none: “into its own note”."""
_MAX_HEADING: Final = 12
"""Words of a heading that a sentence may name."""
_OF_TEXTS: Final = frozenset({"list", "text"})
"""The nouns that introduce an optional text in any language."""
_OF_LISTS: Final = frozenset({"list", "bullet"})
_SEVERAL: Final = ("list", "names")
_KIND_CUES: Final[Mapping[str, frozenset[str]]] = {
    **{noun: frozenset({noun}) for noun in ("tag", "folder", "property", "heading")},
    "tags": frozenset({"tag"}),
    **dict.fromkeys(("newName", "newNote"), frozenset({"call", "name"})),
}
"""The stems of the words before an input of a kind, in any recipe."""
_INTRODUCING: Final = frozenset({"new", "call"})
"""The senses of the words between a preposition and a new name: “a new note called”."""
_TASK_TOOLS: Final = frozenset({"vault.markTasks", "vault.setTaskDue", "vault.takeLines"})
_NEVER_LABELLED: Final = ("property", "value")
"""The kinds of inputs that take no name of another kind."""
_CLAUSES: Final = frozenset({"that", "which", "who", "whose"})
"""The words that end a new name."""
_LABELS: Final = frozenset({"tag", "folder", "property", stem("alias"), "heading"})
"""The nouns before a name of their kind."""
_OF_NOTES: Final = ("is", "words", "links", "backlinks")
"""The keys of conditions whose words never choose an action."""
_ALL: Final = NoteSet()
_PARTS: Final = frozenset(
    {*NOUNS, "text", "templat", "task", "link", "section", "heading", "list", "bullet"}
)
"""Senses of the nouns that begin another part of a sentence than a new name."""
_OPENING_PART: Final = frozenset({"in", "from", "with", "under", "use"})
"""Senses of the words before such a noun."""
_WHEN: Final = frozenset({"befor", "sinc"})
_UNTIL: Final = _WHEN | {"due"}
"""Senses of the words beside the due date of a task."""
_LIMITING: Final = frozenset({"that", "which", "befor", "sinc", "without", "thi", NOT})
"""Senses of the words that begin a clause about which notes are meant."""
_ADVERBS: Final = frozenset({"still", "also", "just", "currently"})
"""English words in such a clause that limit nothing."""
_RESULTS: Final = frozenset({"value", "tags", "newName", "newNote", "folder"})
"""The kinds of inputs that a statement names behind its verb."""
_HAVING: Final = frozenset({"with", "without", "have", "property", "to"})
"""Senses of the words by which a property exists, or does not, whatever its value."""
REMOVALS: Final = frozenset({"delet", "remov"})
"""The verbs of actions that a sentence must name."""
_TO: Final = frozenset({"to", "into", "onto"})
_INSIDE: Final = frozenset({"in", "from", "under"})
_OF_NAMES: Final = _TO | _INSIDE | {"of", "on", "for"}
"""Senses of the words before the name of a note."""
_ASSIGNS: Final = unicode_expression(r"\s*[:=]")
_BEHIND_COLON: Final = unicode_expression(r"(?s)(?:：|:(?=\s|[^\x00-\x7f]))\s*(\S.*?)\s*$")
_HAN: Final = unicode_expression(r"\p{Han}+")
_OPENING: Final = unicode_expression(r"[^\s\ue000]+$")
_CLOSING: Final = unicode_expression(r"[^\s,;:.!?\ue000。，；！？]*")


@lru_cache(maxsize=512)
def _cues(examples: Sequence[str], name: str) -> frozenset[str]:
    """Return the stems of the words before an input, or a field of one, in a recipe's examples.

    The name is that of the input, of a field (“notes.text”), or of any field (“notes.”).
    """
    cues: set[str] = set()
    for example in examples:
        for slot in SLOT.finditer(example):
            field = f"{slot[1]}.{slot[2]}" if slot[2] else slot[1]
            if field == name or (name.endswith(".") and field.startswith(name)):
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
        self.used: list[Stretch] = []
        self.guesses: dict[str, Stretch] = {}
        """The phrases without quotes, by input."""
        self._own = own_words(recipe) | {"call", "all", "vault"}
        self._withdrawn: list[Stretch] = []
        """The parts of values that were read and then given up."""
        self.assumed: str | None = None
        """The input for which notes the open note is taken, because the sentence names none."""
        self.is_known = False
        """True if the values are those of a line, or of an old value, that the vault has."""
        self._conditions = list(parsed.conditions)
        self._texts = list(parsed.texts)
        here = [parsed.here] if parsed.here is not None else []
        if any(spec.default == ACTIVE for spec in recipe.inputs.values()):
            self.used += here
        others = [one for one in parsed.names if not is_within(one, here)]
        self._names = self._without_templates(others)
        self._days = [
            day
            for day in parsed.days
            if not any(name.start < day.end and day.start < name.end for name in parsed.names)
            or any((name.start, name.end) == (day.start, day.end) for name in parsed.names)
        ]
        self.values: dict[str, Any] = {}
        self.used += (word for word in parsed.tokens if self._is_of_predicate(word))
        self._fill()
        self.values = {name: self.values[name] for name in recipe.inputs if name in self.values}

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
        lost = [*self.lost, *self._withdrawn]
        others = [part for part in lost if not _overlaps(part, phrases)]
        parts = sorted((*phrases, *others), key=lambda part: part.start)
        return [self._stretch(part.start, part.end).text for part in parts]

    @property
    def unused(self) -> list[Stretch]:
        """The phrases of the sentence that neither choose the recipe nor fill an input."""
        phrases: list[Stretch] = []
        previous: Word | None = None
        texts = {part.text for part in self.used}
        again = [match for match in self.parsed.names if match.text in texts]
        for word in self.parsed.tokens:
            is_own = not word.is_small and word.senses & self._own
            is_used = self._is_used(word) or is_within(word, again)
            if is_used or is_own or any(map(self._is_used, self._labelled_by(word))):
                previous = None
            elif not word.is_small:
                if previous is None or END.search(self.parsed.bare, previous.end, word.start):
                    phrases.append(word)
                else:
                    phrases[-1] = replace(phrases[-1], end=word.end)
                previous = word
        return [self._stretch(part.start, part.end) for part in phrases]

    def _is_aside(self, part: Stretch) -> bool:
        """Return True for a name that begins a later sentence: “Templates stay where they are”."""
        return part.start >= self.parsed.end and self.parsed.cue(part.start) is None

    def _labelled_by(self, word: Word) -> Iterator[Stretch]:
        return self.parsed.labelled_by(word)

    def _stretch(self, start: int, end: int) -> Stretch:
        return Stretch(start, end, self.parsed.text[start:end])

    def _is_used(self, part: Stretch) -> bool:
        return is_within(part, (*self.used, *self.guesses.values()))

    def _cue(self, part: Stretch) -> tuple[str, frozenset[str]]:
        """Return the stem of the word before a part, and its senses."""
        cue = self.parsed.cue(part.start)
        return (stem(cue.text), cue.senses) if cue is not None else ("", frozenset())

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

    def _fill(self) -> None:
        self._take_assignments()
        self._take_line()
        self._take_exchange()
        self._take_template()
        self._take_new_value()
        self._take_heading()
        self._take_place()
        self._find_texts()
        # A folder is filled before a description of notes, which takes all that remains.
        parts: dict[str, list[Stretch]] = {}
        for spec in sorted(
            self.recipe.inputs.values(), key=lambda spec: (spec.kind == "notes", bool(spec.of))
        ):
            before = len(self.used)
            if spec.name not in self.values and (value := self._value(spec)) is not None:
                self.values[spec.name] = value
                parts[spec.name] = self.used[before:]
                for match in (one for one in self.parsed.names if one.near):
                    if is_within(match, self.used[before:]):
                        self.guesses[spec.name] = self._stretch(match.start, match.end)
        for spec in self._lacks_folder():
            if (value := self._value(spec)) is not None:
                self.values[spec.name] = value
        self._guess()
        self._name_after()
        self._give_up_pair()
        self._itemize()
        self._narrow()
        if "vault.delete" in self.recipe.tools:
            self.values = {
                name: value for name, value in self.values.items() if not _is_tag_of_note(value)
            }
        if self.unused:  # such a word may be a condition
            deletes = "vault.delete" in self.recipe.tools
            cues = (self.parsed.cue(match.start) for match in self.parsed.names)
            is_inside = any(cue.senses & _INSIDE for cue in cues if cue is not None)
            clear = {
                name: value
                for name, value in self.values.items()
                if value != _ALL
                and not (deletes and (is_inside or _may_be_narrowed(value)))
                and not (self.is_too_wide and _may_be_narrowed(value))
            }
            for name, value in self.values.items():
                if name not in clear and value != _ALL:
                    self._withdrawn += parts.get(name, ())
            self.values = clear

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
            is_filler = word.is_small or word.text in _ADVERBS
            if limits and not begins and not is_filler and is_within(word, unused):
                return True
            limits = begins or (limits and not self._is_used(word))
        return False

    def _take_assignments(self) -> None:
        """Fill the properties of the first group that is no condition: “status paid, rating 5”.

        A single property is one that the other inputs read, too, unless there are none.
        """
        inputs, around = self.recipe.inputs, self.parsed.around
        pairs = next((name for name, spec in inputs.items() if spec.kind == "pairs"), None)
        single = "property" in inputs
        if pairs is None:
            return
        for group in self.parsed.assignments:
            cue = self.parsed.cue(group[0].start)
            is_condition = single and cue is not None and bool(cue.senses & _HAVING - _TO)
            if len(group) <= single or is_condition:
                continue
            spec = Input(name="value", kind="value", of="property")
            values = {
                one.property: read(spec, one.text, around, {"property": one.property})
                for one in group
            }
            if single:
                first = group[0].property
                self.values |= {"property": first, "value": values.pop(first)}
            self.values[pairs] = values
            self._use(self._stretch(group[0].start, group[-1].end))
            return

    def _take_line(self) -> None:
        """Fill the note and the text of a line that the sentence names by its own words."""
        line, inputs = self.parsed.line, self.recipe.inputs
        kinds = {one: inputs[one].kind for one in ("note", "notes", "source") if one in inputs}
        tools = _TASK_TOOLS if line is not None and line.status else {"vault.takeLines"}
        if line is None or tools.isdisjoint(self.recipe.tools) or "text" not in inputs:
            return
        for word in line.words:
            self._use(word)
        self.values["text"] = line.text
        for name, kind in kinds.items():
            term = Term("note", line.note)
            self.values[name] = NoteSet((term,)) if kind == "notes" else line.note
        for match in self._names:
            if _is_note(match, line.note):
                self._use(match)
        self.is_known = True

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
        for part in (*exchange.parts, *filter(None, [self.parsed.here])):
            self._use(part)
        for match in self._names:
            if _is_note(match, exchange.note):
                self._use(match)
        self.values |= {
            name: read(inputs[name], text, self.parsed.around, values)
            for name, text in values.items()
        }
        self.values["notes"] = NoteSet((Term("note", exchange.note),))
        self.is_known = True

    def _name_after(self) -> None:
        """Name a new note after the section that it is made of, and put a copy beside its note."""
        for name, spec in self.recipe.inputs.items():
            text = self.values.get(spec.of or "")
            if name in self.values or not isinstance(text, str):
                continue
            if spec.kind == "newNote":
                with suppress(InvalidValue):  # “Why: A/B?”
                    self.values[name] = read(spec, text.replace("/", "-"), self.parsed.around)
            elif spec.kind == "folder" and "/" not in str(self.values.get("path")):
                path = self.parsed.around.active_file if text == ACTIVE else text
                self.values[name] = (path or "").rpartition("/")[0]

    def _give_up_pair(self) -> None:
        """Give up a new property and its value, if no word of a statement says that it is one."""
        phrase = self.guesses.get("property")
        if self.parsed.predicate is None or phrase is None or "value" not in self.guesses:
            return
        label = self._label(phrase)
        is_labelled = label is not None and "property" in label.senses
        if not (is_labelled or _ASSIGNS.match(self.parsed.bare, phrase.end)):
            for name in ("property", "value"):
                del self.guesses[name], self.values[name]

    def _narrow(self) -> None:
        """Add the names that no input uses to the description of notes, if some notes have them."""
        for name, described in self.values.items():
            keys = {term.key for term in described.terms} if isinstance(described, NoteSet) else ()
            if not keys or "note" in keys:
                continue
            for match in [one for one in self._names if self._is_subject(one)]:
                cue = self.parsed.cue(match.start)
                senses = _senses(match, is_place=cue is not None and bool(cue.senses & _INSIDE))
                is_aside = match.new or match.negated or self._is_aside(match)
                is_cued = (cue is not None and cue.is_small) or _is_lone_value(match)
                if is_aside or not is_cued or not senses or senses[0].op != ":":
                    continue
                narrower = NoteSet((*described.terms, senses[0]))
                if senses[0].key != "note" and self._fits(narrower):
                    self._use(match)
                    described = self.values[name] = narrower

    def _lacks_folder(self) -> Iterator[Input]:
        """Yield the input for a destination that no word names as such."""
        for spec in self.recipe.inputs.values():
            if spec.kind == "folder" and spec.needed and spec.name not in self.values:
                yield spec

    def _value(self, spec: Input) -> Any:
        match spec.kind:
            case "date" | "day":
                day = self._day(spec)
                if day is None:
                    return None
                is_due = spec.kind == "date" and self.recipe.answer is None
                text = self._future(day) if is_due else day.text
                return read(spec, text, self.parsed.around)
            case "choice":
                return self._choice(spec)
            case "notes":
                described = self._described()
                if not described.terms and (here := self.parsed.here) is not None:
                    self.used.append(here)
                    return NoteSet((Term("note", ACTIVE),))
                if described.terms:
                    return without_templates(described, self.parsed.around)
                if whole := self._all_notes():
                    self.used.append(whole)
                return described if whole else None
            case "tags" | "properties":
                if spec.kind == "properties" and (empty := self.parsed.empty_properties):
                    self.used += empty
                    return [part.text for part in empty]
                one = spec.model_copy(update={"kind": "tag" if spec.kind == "tags" else "property"})
                return list(dict.fromkeys(self._read(one))) or None
            case _:
                return next(self._read(spec), None)

    def _day(self, spec: Input) -> Stretch | None:
        """Return the first unused day, unless the word before it belongs to another input.

        “From Monday to Friday” is first of all a day that “to” precedes.
        """
        cues = _cues(self.recipe.examples, spec.name)
        for day in sorted(self._days, key=lambda day: self._distance(day, cues) > 1):
            literal, senses = self._cue(day)
            owner = next((part for part in self._conditions if is_within(day, [part])), None)
            is_cued = literal in cues or senses & cues
            if is_cued or (owner is None and not (cues and senses & _WHEN)):
                self._use(owner or day)
                return day
        return None

    def _choice(self, spec: Input) -> Any:
        """Return the option whose label the sentence mentions.

        The one with most words is best, then the last. In an action “open tasks” says which tasks,
        not what they become.
        """
        selects = self.recipe.answer is not None or "all" in spec.options
        free = [
            word
            for word in self.parsed.tokens
            if not is_within(word, self.used)
            and (selects or not self._describes_tasks(word))
            and (not is_within(word, self.parsed.names) or self._describes_tasks(word))
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
            if needed and len(run) == len(needed) and self._weight(run) > self._weight(best):
                best, chosen = run, value
        self.used += best
        return None if chosen is None else read(spec, chosen, self.parsed.around)

    def _weight(self, run: Sequence[Word]) -> tuple[bool, int, int]:
        """Return how well words name an option: “open tasks” better than a word elsewhere."""
        start = run[-1].start if run else -1
        return any(map(self._describes_tasks, run)), len(run), start

    def _describes_tasks(self, word: Word) -> bool:
        """Return True for an adjective beside “tasks”: “open tasks”, “tareas abiertas”."""
        before, after = self.parsed.between(0, word.start)[-1:], self.parsed.after(word.end)
        is_behind = any("task" in other.senses and not other.text.isascii() for other in before)
        return is_behind or (after is not None and "task" in after.senses)

    # --- names, quoted texts and days ---

    def _use(self, part: Stretch) -> None:
        """Mark a part as used, so that it is in no other value."""
        self.used.append(part)
        self._texts = [
            quote
            for quote in self._texts
            if quote.text != part.text and not is_within(quote, [part])
        ]
        self._names = [
            match
            for match in self._names
            if (
                match.text != part.text
                or match.negated
                or self._is_subject(match) != self._is_subject(part)
            )
            and not is_within(match, [part])
        ]
        self._days = [day for day in self._days if not is_within(day, [part])]

    def _is_of_predicate(self, word: Word) -> bool:
        """Return True for the verb of a statement, and for its other parts: “should be called”."""
        verb = self.parsed.predicate
        is_behind = verb is not None and word.start > verb.start
        return word == verb or (is_behind and bool(word.senses & {"get", "have", "call"}))

    def _is_result(self, part: Stretch) -> bool:
        """Return True for a part behind the verb of a statement, or of any other sentence."""
        verb = self.parsed.predicate
        return verb is None or part.start > verb.start

    def _is_subject(self, part: Stretch) -> bool:
        """Return True for a part before the verb of a statement, or of any other sentence."""
        verb = self.parsed.predicate
        return verb is None or part.start < verb.start or self.recipe.answer is not None

    def _accepts(self, spec: Input, part: Stretch) -> bool:
        """Return True if an input may take a name, a day or a quoted text."""
        if spec.name == "to" or spec.kind in _RESULTS:
            if not self._is_result(part):
                return False
        elif spec.kind not in ("property", *_TEXT_KINDS) and not self._is_subject(part):
            return False
        if isinstance(part, NameMatch):
            kinds = _NAMES.get(spec.kind, ())
            fits = bool(part.of_kinds(*kinds)) or (part.new and not kinds)
            return fits and (not part.new or spec.kind in _NEW_KINDS | {"notes"})
        if part in self._days:
            return spec.kind == "value"
        return spec.kind in _TEXT_KINDS or (spec.kind == "tag" and "tag" in self._cue(part)[1])

    def _read(self, spec: Input) -> Iterator[Any]:
        """Yield the values of the unused parts that fit the input, and use them.

        A part is used when its value is asked for.
        """
        cues = _cues(self.recipe.examples, spec.name)
        names = [
            match
            for match in self._names
            if not (match.negated or match.bound or self._is_aside(match))
            and self._accepts(spec, match)
        ]
        texts = [text for text in self._texts if self._accepts(spec, text)]
        parts: list[Stretch] = [*texts, *names]
        if spec.kind == "folder":
            parts = [*reversed(names), *texts]
            if any(self._phrases_of(spec, literal=True)):
                parts = [part for part in parts if self._cue(part)[0] in cues]
        elif spec.kind == "tag" and any(
            self._is_unknown(one) and self._is_labelled(one, "tag")
            for one in self._phrases_of(spec, literal=False)
        ):
            parts = texts  # “the tag new”, not the notes “tagged old”
        elif spec.kind == "value":
            parts += [day for day in self._days if self._cue(day)[1] & _TO]
            parts += self._new_values(names)
        others = self.values
        if spec.kind == "heading" and spec.of:
            others = {spec.of: ACTIVE} | others
        parts = [part for part in parts if not self._belongs_to_another(part, spec)]
        for part in sorted(parts, key=lambda part: self._distance(part, cues)):
            known = isinstance(part, NameMatch) and not part.new
            named = part.of_kinds(*_NAMES.get(spec.kind, ())) if isinstance(part, NameMatch) else ()
            is_spelled = part.text.startswith("#") or self.parsed.around.names.find(part.text)
            is_inflected = known and len(named) == 1 and not is_spelled
            text = str(named[0].value) if is_inflected else part.text
            try:
                value = read(spec, text, self.parsed.around, others, known=known)
            except InvalidValue:
                continue
            self._use(part)
            yield value

    def _new_values(self, names: Collection[NameMatch]) -> Iterator[Stretch]:
        """Yield the names of another kind behind “to”: the tag in “set status to done”."""
        for match in self._names if not names else ():
            senses = self._cue(match)[1]
            is_plain = not (match.negated or match.new or match.text.startswith("#"))
            if is_plain and senses & _TO and "in" not in senses:
                yield self._stretch(match.start, match.end)

    def _is_labelled(self, phrase: Stretch, noun: str) -> bool:
        """Return True for “the tag new”; in “tag Soup” the word is a verb."""
        label = self._label(phrase)
        return label is not None and noun in label.senses and label != self.parsed.tokens[0]

    def _is_unknown(self, phrase: Stretch) -> bool:
        return not is_within(phrase, (*self.parsed.names, *self.parsed.conditions))

    def _distance(self, part: Stretch, cues: Collection[str]) -> int:
        """Return how far the word before a part is from those before an input in examples."""
        cue = self.parsed.cue(part.start)
        if cue is None:
            return 2
        if stem(cue.text) in cues:
            return 0
        if not cue.senses.isdisjoint(cues):
            return 1
        return 2 if cue.is_small else 3

    def _belongs_to_another(self, part: Stretch, spec: Input) -> bool:
        """Return True if the word before a part precedes another empty input in the examples."""
        (literal, senses), examples = self._cue(part), self.recipe.examples
        is_sign = spec.kind == "tag" and part.text.startswith("#")
        if not literal or literal in _cues(examples, spec.name):
            return False
        for name, other in self.recipe.inputs.items():
            cues = _cues(examples, name) | _cues(examples, f"{name}.")
            is_cue = literal in cues or (senses & cues and not senses & _cues(examples, spec.name))
            if name != spec.name and name not in self.values and is_cue:
                is_new = isinstance(part, NameMatch) and part.new
                is_folder = other.kind == "notes" and (is_new or is_sign)
                if self._accepts(other, part) and not is_folder:
                    return True
        return False

    # --- phrases without quotes ---

    def _find_texts(self) -> None:
        """Use the text behind a colon, and the one that the notes must mention."""
        behind = _BEHIND_COLON.search(self.parsed.bare)
        prose = next((one for one in self.recipe.inputs.values() if one.kind in _PROSE), None)
        if behind is not None and prose is not None and not self._texts:
            part = self._without_due(self._stretch(behind.start(1), behind.end(1)))
            is_value = any(match.start < behind.start() < match.end for match in self._names)
            if not is_value and self._accept(prose, part):
                self._use(part)
        for name, spec in self.recipe.inputs.items():
            field = Input(name=f"{name}.text", kind="text")
            if spec.kind != "notes" or not _cues(self.recipe.examples, field.name):
                continue
            starts = (*self._texts, *self._names)
            for number, word in enumerate(self.parsed.tokens):
                if word.senses.isdisjoint(_cues(self.recipe.examples, field.name)):
                    continue
                following = (one for one in starts if word.end < one.start <= word.end + 2)
                text = next(following, None) or self._phrase(number + 1, field)
                if text is not None and not is_within(word, self.parsed.names):
                    self._use(text)
                    self.used.remove(text)  # it is used by the description
                    term = Term("text", text.text)
                    self._conditions.append(NoteCondition(text.start, text.end, text.text, term))
                    return

    def _without_due(self, part: Stretch) -> Stretch:
        """Return a text without the day at its end, and the words before it, that is its date."""
        due = next((one for one in self.recipe.inputs.values() if one.kind == "date"), None)
        ends = (day for day in self._days if part.start < day.start and self._ends(day, part))
        day = next(ends, None) if due is not None else None
        inside = list(self.parsed.between(part.start, day.start)) if day is not None else []
        last = len(inside)
        while last and (inside[last - 1].is_small or inside[last - 1].senses & _UNTIL):
            last -= 1
        if day is None or due is None or not last:
            return part
        self.values[due.name] = read(due, self._future(day), self.parsed.around)
        self._use(self._stretch(inside[last - 1].end, part.end))
        return self._stretch(part.start, inside[last - 1].end)

    def _ends(self, day: Stretch, part: Stretch) -> bool:
        """Return True for a day at the end of a text: “12月20日之前”."""
        behind = self.parsed.between(day.end, part.end)
        return all(word.is_small or word.senses & _UNTIL for word in behind)

    def _future(self, day: Stretch) -> str:
        """Return a day; one without a year, such as “15 January”, is the next one."""
        today = self.parsed.around.context.now.date()
        ahead = parse_day(self.parsed.bare[day.start : day.end], today, ahead=True)
        return ahead.isoformat() if ahead is not None else day.text

    def _take_template(self) -> None:
        """Fill the template of one note that the word before “note” names."""
        template, spec = self.parsed.template, self.recipe.inputs.get("template")
        if template is not None and spec is not None and "path" in self.recipe.inputs:
            self._use(template)
            self.values["template"] = template.text
            self.is_known = True

    def _take_heading(self) -> None:
        """Fill the heading that the only note has: “the questions in Garage”."""
        spec = self.recipe.inputs.get("heading")
        if spec is None or spec.kind != "heading" or not (spec.optional or spec.of):
            return
        is_daily = "util.periodNote" in self.recipe.tools
        note = self.parsed.daily_note if is_daily else self.parsed.only_note
        known = {tuple(words(one)): one for one in headings(note, self.parsed.around) if words(one)}
        quoted = [(quote, tuple(words(quote.text))) for quote in self._texts]
        lengths = sorted({len(one) for one in known if len(one) <= _MAX_HEADING}, reverse=True)
        spoken = self._behind_place(lengths) if lengths else ()
        for part, run in (*(quoted if len(quoted) > 1 else ()), *spoken):
            if run in known and not any(_overlaps(part, [one]) for one in self.parsed.names):
                after = self.parsed.after(part.end)
                is_noun = after is not None and bool(after.senses & _OF_SECTIONS)
                self.values["heading"] = known[run]
                self._use(self._stretch(part.start, after.end) if after and is_noun else part)
                self.is_known = True
                return

    def _behind_place(self, lengths: Sequence[int]) -> Iterator[tuple[Stretch, tuple[str, ...]]]:
        """Yield the runs of words behind “in”, “to” and the like, with their stems."""
        tokens, starts = self.parsed.tokens, list[int]()
        for number, word in enumerate(self.parsed.tokens):
            cue = self.parsed.cue(word.start)
            starts += [number] if cue is not None and cue.senses & (_OF_NAMES | {"at"}) else []
        for size in lengths:
            for start in (one for one in starts if one + size <= len(tokens)):
                run = tokens[start : start + size]
                if not self._is_apart(run[0], run[-1]):
                    part = self._stretch(run[0].start, run[-1].end)
                    yield part, tuple(stem(one.text) for one in run)

    def _take_place(self) -> None:
        """Use the folder right behind the name of a new note, if no input takes it."""
        inputs = self.recipe.inputs
        spec = next((one for one in inputs.values() if one.kind == "newNote"), None)
        if spec is None or "folder" in inputs:
            return
        folders = [one for one in self._names if one.of_kinds("folder") and not one.negated]
        for phrase in self._phrases_of(spec, literal=False):
            cue = self.parsed.after(phrase.end)
            folder = next((one for one in folders if self.parsed.cue(one.start) == cue), None)
            if folder is None or cue is None or "in" not in cue.senses:
                continue
            path = f"{folder.of_kinds('folder')[0].value}/{phrase.text}"
            try:
                self.values[spec.name] = read(spec, path, self.parsed.around)
            except InvalidValue:  # “#idea in Projects”
                return
            self.guesses[spec.name] = self._stretch(phrase.start, folder.end)
            self._use(self.guesses[spec.name])
            return

    def _take_new_value(self) -> None:
        """Fill the property of a value that becomes another: “set paused clients to active”."""
        inputs, names = self.recipe.inputs, self._names
        is_set = inputs.keys() >= {"property", "value", "notes"}
        if not is_set or any(match.of_kinds("property") for match in names):
            return
        values = [match for match in names if _is_value(match) and match.of_kinds("value")]
        for old, new in pairwise(values):
            owner = new.of_kinds("value")[0].property
            is_same = owner == old.of_kinds("value")[0].property
            if not (is_same and self._cue(new)[1] & _TO) or old.negated or new.negated:
                continue
            around, named = self.parsed.around, {"property": owner}
            self.values["property"] = owner
            self.values["value"] = read(inputs["value"], new.text, around, named, known=True)
            self._use(new)
            if old in self._names:  # it may be in the one that is used
                number = self._names.index(old)
                self._names[number] = replace(old, names=old.of_kinds("value"), bound=True)
            return

    def _guess(self) -> None:
        """Fill the empty inputs with phrases, and remember them in `guesses`."""
        for spec in self._open:
            is_plain = spec.needed or spec.kind in ("heading", "tags")
            is_plain = is_plain or bool(self._cues_of(spec) & _OF_TEXTS)
            for literal in (True, False) if is_plain else (True,):
                if any(
                    self._accept(spec, part) for part in self._phrases_of(spec, literal=literal)
                ):
                    break
        self._assume_open()
        missing, unused = [spec for spec in self._open if spec.needed], self.unused
        is_single = len(missing) == len(unused) == len(self.recipe.gaps(self.values)) == 1
        # The first word is usually the verb, and no part of a name.
        first = next((word.start for word in self.parsed.tokens if not word.is_small), 0)
        is_condition = _ALL in self.values.values()  # probably: “all notes about cooking”
        is_place = is_single and missing[0].kind == "folder"  # which a preposition precedes
        is_place = is_place and not self._cue(unused[0])[1] & {*_TO, *_INSIDE}
        if is_single and unused[0].start != first and not is_condition and not is_place:
            self._accept(missing[0], unused[0])

    def _assume_open(self) -> None:
        """Use the open note where no word describes the notes, except for a delete."""
        inputs = (spec for spec in self.recipe.inputs.values() if spec.kind == "notes")
        spec = next((spec for spec in inputs if spec.name not in self.values), None)
        is_change = self.recipe.answer is None and "vault.delete" not in self.recipe.tools
        if spec is None or self.parsed.around.active_file is None or not is_change:
            return
        is_of_vault = spec.optional and words(self.recipe.title)[0] == "renam"
        left = [*self.lost, *self.unused]
        if left and words(self.recipe.title)[0] in REMOVALS:
            return
        is_wide = any("all" in word.senses for word in self.parsed.tokens)
        if is_of_vault or is_wide or any(self._cue(part)[1] & _OF_NAMES for part in left):
            return
        if any(
            part.of_kinds("note", "folder", "tag") for part in left if isinstance(part, NameMatch)
        ):
            return
        self.values[spec.name] = NoteSet((Term("note", ACTIVE),))
        self.assumed = spec.name

    @property
    def _open(self) -> list[Input]:
        """The empty inputs that a phrase may fill, those that are required first.

        An optional one needs a noun that introduces it in an example: “with the text {text}”.
        """
        empty = [spec for spec in self.recipe.inputs.values() if spec.name not in self.values]
        needed = [spec for spec in empty if spec.needed and spec.kind in _PHRASE_KINDS]
        of_new = {"tags"} if "path" in self.recipe.inputs else set[str]()
        others = (spec for spec in empty if not spec.needed and spec.kind in _TEXT_KINDS | of_new)
        return [*needed, *(spec for spec in others if self._cues_of(spec))]

    def _cues_of(self, spec: Input) -> frozenset[str]:
        """Return the stems of the words before an input; for an optional one only nouns."""
        examples = self.recipe.examples
        cues = _cues(examples, spec.name)
        if spec.needed:
            return cues | _KIND_CUES.get(spec.kind, frozenset())
        verbs = {words(example)[0] for example in examples if words(example)}
        nouns = _KIND_CUES["tags"] if spec.kind == "tags" else frozenset[str]()
        return nouns | (frozenset(cue for cue in cues if not is_function_word(cue)) - verbs)

    def _accept(self, spec: Input, phrase: Stretch) -> bool:
        """Use a phrase as the value of an input, if it is a valid one."""
        if spec.kind in ("newNote", "newName", "names", "folder"):
            phrase = self._without_day(phrase)
        inside = [word for word in self.parsed.tokens if is_within(word, [phrase])]
        content = [word for word in inside if not word.negates]
        if spec.kind in _PROSE:
            content = [word for word in content if not word.is_small]
        # A new property is no phrase of known words: “allen Notizen unter”.
        known = [word for word in inside if word.is_small or len(word.senses) > 1]
        if spec.kind == "property" and len(inside) > 1 and len(known) == len(inside):
            return False
        values = [match for match in self._names if _is_value(match) and len(match.names) == 1]
        if spec.kind == "property" and is_within(phrase, values):
            return False
        # “The tag X” is no name of anything else.
        labels = _LABELS - _KIND_CUES.get(spec.kind, frozenset()) - {spec.kind}
        first = self._label(phrase) if spec.kind in _NEVER_LABELLED else None
        label = first or (content[0] if len(inside) > 1 and content else None)
        if label is not None and not label.senses.isdisjoint(labels):
            return False
        is_series = spec.kind in ("newNote", "newName") and isinstance(names_of(phrase.text), list)
        find = self.parsed.around.names.find
        is_known = spec.kind == "newNote" and bool(find(phrase.text, "note"))
        # “Tomorrow” is no name of a note, “2026-05-02” is.
        is_name = spec.kind in ("newNote", "newName", "names")
        has_number = any(letter.isdigit() for letter in phrase.text)
        is_day = is_name and not has_number and is_within(phrase, self.parsed.days)
        # “New task: …” makes no note called “task”.
        is_lower = all(map(self._is_lower, inside))
        is_noun = spec.kind == "newNote" and len(inside) == 1 and is_lower
        is_noun = is_noun and bool(inside[0].senses & NO_NOTES or inside[0].text in _OWN)
        # Nor is one the value: “in the note Dacha”.
        is_label = bool(content) and any(self._labelled_by(content[-1])) and is_lower
        is_label = is_label and all(word.senses & NOUNS.keys() for word in content)
        if (inside and not content) or is_series or is_known or is_day or is_noun or is_label:
            return False
        others = self.recipe.defaults | self.values
        text = phrase.text
        if spec.kind == "value":
            text = without_unit(text, others.get(spec.of or ""), self.parsed.around.names)
        try:
            self.values[spec.name] = read(spec, text, self.parsed.around, others)
        except InvalidValue:
            return False
        self.guesses[spec.name] = phrase
        return True

    def _without_day(self, phrase: Stretch) -> Stretch:
        """Return a new name without “today” behind its other words; “Friday” is part of it."""
        for day in self._days:
            spoken = self.parsed.between(phrase.start, day.start)
            is_near = any(not word.senses.isdisjoint(NEAR) for word in self._inside(day))
            if is_near and day.end == phrase.end and spoken and not spoken[-1].is_small:
                return self._stretch(phrase.start, spoken[-1].end)
        return phrase

    def _inside(self, part: Stretch) -> Sequence[Word]:
        return self.parsed.between(part.start, part.end)

    def _label(self, phrase: Stretch) -> Word | None:
        """Return the word directly before a phrase: “tag” in “the tag new”."""
        before = self.parsed.between(0, phrase.start)[-1:]
        is_beside = before and self.parsed.bare[before[0].end : phrase.start].isspace()
        return before[0] if is_beside else None

    def _phrases_of(self, spec: Input, *, literal: bool) -> Iterator[Stretch]:
        """Yield the phrases behind the words that precede an input in the recipe's examples.

        `literal`: behind these very words, otherwise behind words that mean the same.
        """
        cues, parsed = self._cues_of(spec), self.parsed
        others = (self._cues_of(other) for other in self._open if other is not spec)
        ends = frozenset().union(*others) - cues
        covered = (*parsed.quotes, *parsed.names, *self.used, *self.guesses.values())
        owner = self.guesses.get(spec.of or "")
        has_value = any(other.of == spec.name for other in self.recipe.inputs.values())
        phrases: list[Stretch | None] = []
        called: list[Stretch] = []
        for number, word in enumerate(parsed.tokens):
            assigns = bool(_ASSIGNS.match(parsed.bare, word.end))
            if has_value and assigns:
                phrases.append(self._stretch(word.start, word.end))
            is_owned = literal and owner is not None and word.end == owner.end and assigns
            senses = frozenset({stem(word.text)}) if literal else word.senses
            if is_owned or (senses & cues and not is_within(word, covered)):
                after = self._phrase(number + 1, spec, ends)
                phrases += (self._phrase_before(number), after)
                called += [after] if after is not None and "call" in word.senses else []
        # In “replace the word X” the text is behind “word”.
        inner = [word for word in parsed.tokens if not word.is_small and stem(word.text) in cues]
        is_result = spec.name == "to" or spec.kind in _RESULTS
        changing = (one for one in phrases if one and not is_within(one, parsed.assurances))
        yield from sorted(
            (one for one in changing if self._is_result(one) or not is_result),
            key=lambda phrase: (
                bool(called) and phrase not in called,
                any(is_within(word, [phrase]) for word in inner),
            ),
        )

    def _phrase_before(self, number: int) -> Stretch | None:
        """Return the phrase before a word of a script in which prepositions follow the name."""
        spoken, first = self.parsed.tokens, number
        if not JOINED.match(spoken[number].text):
            return None
        while first and len(spoken[first - 1].senses) == 1 and not self._is_used(spoken[first - 1]):
            first -= 1
        return self._stretch(spoken[first].start, spoken[number].start) if first < number else None

    def _phrase(self, first: int, spec: Input, ends: Collection[str] = ()) -> Stretch | None:
        """Return the phrase from the word `first`, up to what another input uses."""
        spoken, is_prose = self.parsed.tokens, spec.kind in _PROSE
        while first < len(spoken) and (
            "all" in spoken[first].senses if is_prose else self._introduces(first, spec, ends)
        ):
            first += 1
        end = first
        while end < len(spoken) and not self._stops(end, first, spec, ends):
            end += 1
        if not is_prose or end < len(spoken):
            end = self._without_tail(first, end, spec)
        if end == first:
            return None
        opening = _OPENING.search(self.parsed.bare, spoken[first - 1].end, spoken[first].start)
        closing = _CLOSING.match(self.parsed.bare, spoken[end - 1].end)
        return self._stretch(
            opening.start() if opening else spoken[first].start,
            closing.end() if closing and end == len(spoken) else spoken[end - 1].end,
        )

    def _stops(self, number: int, first: int, spec: Input, ends: Collection[str]) -> bool:
        """Return True if a phrase from the word `first` ends before the word `number`."""
        word, is_first = self.parsed.tokens[number], number == first
        if word.is_small and not is_first and spec.kind in ("tag", "tags"):
            return True
        if "all" in word.senses and not is_first and spec.name in ("find", "replace"):
            return True
        if word.text in _CLAUSES and spec.kind in ("newNote", "newName", "folder"):
            return True
        is_particle = word.is_small and word.senses != senses_of(word.text)
        if is_particle or self._is_used(word) or is_within(word, self.parsed.quotes):
            return True
        is_end = stem(word.text) in ends or (word.is_small and not word.senses.isdisjoint(ends))
        if is_end and (not is_first or word.is_small) and not self._goes_on(number, spec):
            return True
        if not is_first and self._begins_part(number, spec):
            return True
        before = self.parsed.tokens[number - 1]
        gap = self.parsed.bare[before.end : word.start]
        is_inside = (is_first and spec.kind == "value") or (
            not is_first and self._is_several(spec) and gap.strip() == ","
        )
        return not is_inside and bool(END.search(gap))

    def _goes_on(self, number: int, spec: Input) -> bool:
        """Return True for a function word within a new name: “Les temps du passé”.

        What is known to the vault, or a noun such as “folder”, begins another part.
        """
        word = self.parsed.tokens[number]
        behind = [one for one in self.parsed.tokens[number + 1 :] if not one.is_small]
        after = [one for one in behind[:2] if not self._is_apart(word, one)]
        is_within_name = word.is_small and not JOINED.match(word.text)
        if spec.kind not in ("newNote", "newName") or not after or not is_within_name:
            return False
        begins = (*self.parsed.names, *self.parsed.quotes, *self.parsed.days)
        return not any(is_within(word, begins) or word.senses & _PARTS for word in after)

    def _begins_part(self, number: int, spec: Input) -> bool:
        """Return True for the end of a new name: “… from the project template”, “… in Work”."""
        word = self.parsed.tokens[number]
        is_name = spec.kind in ("newNote", "newName", "heading")
        if not is_name or not word.senses & _OPENING_PART:
            return False
        folders = [one for one in self.parsed.names if one.of_kinds("folder")]
        spoken = dropwhile(lambda one: one.is_small, self.parsed.tokens[number + 1 :])
        behind = list(takewhile(lambda one: not one.is_small, spoken))
        is_folder = bool(behind) and is_within(behind[0], folders)
        return is_folder or any(one.senses & _PARTS for one in behind[:2])

    def _is_apart(self, first: Word, last: Word) -> bool:
        return bool(END.search(self.parsed.bare, first.end, last.start))

    def _is_several(self, spec: Input) -> bool:
        """Return True for an input that may be a list of things: “milk, eggs and bread”."""
        is_text = spec.kind == "text" and (ITEMS in self.recipe.inputs or self._speaks_of_list)
        return spec.kind in _SEVERAL or is_text

    def _itemize(self) -> None:
        """Make an item of each thing of a list without quotes."""
        phrase = self.guesses.get("text")
        if phrase is None or ITEMS in self.values or "\n" in phrase.text:
            return
        items = [part.strip() for part in _COMMA.split(phrase.text)]
        # The last two things, or the only two, have “and” between them.
        items[-1:] = [part.strip() for part in _LAST_AND.split(items[-1], maxsplit=1)]
        items = [item for item in items if item]
        is_short = all(len(item.split()) <= _MAX_ITEM_WORDS for item in items)
        if len(items) < 2 or not is_short:
            return
        if ITEMS in self.recipe.inputs and self._is_for_list():
            self.values |= {"text": "\n".join(items), ITEMS: "lines"}
        elif ITEMS not in self.recipe.inputs and self._speaks_of_list:
            self.values["text"] = "\n".join(f"- {item}" for item in items)

    @property
    def _speaks_of_list(self) -> bool:
        spoken = (word for word in self.parsed.tokens if not is_within(word, self.parsed.names))
        return any(word.senses & _OF_LISTS for word in spoken)

    def _is_for_list(self) -> bool:
        """Return True if the sentence speaks of a list or items, or its only note has a list."""
        if self._speaks_of_list:
            return True
        described, around = self.values.get("notes"), self.parsed.around
        terms = described.terms if isinstance(described, NoteSet) else ()
        if [term.key for term in terms] != ["note"]:
            return False
        note = around.active_file if terms[0].value == ACTIVE else terms[0].value
        try:
            content = decode(around.view.read(parse(note or "", PathUse.READ)), note or "")
        except VaultError:
            return False
        return any(read_item(line.strip()) for line in content.splitlines())

    def _introduces(self, number: int, spec: Input, ends: Collection[str]) -> bool:
        """Return True for a word between a preposition and a name: “a folder called”."""
        spoken, word = self.parsed.tokens, self.parsed.tokens[number]
        after = spoken[number + 1] if number + 1 < len(spoken) else None
        if stem(word.text) in ends:
            return False
        if after is None or END.search(self.parsed.bare, word.end, after.start):
            return QUOTED_CHARACTER in self.parsed.bare[word.end : word.end + 2]
        if not self._is_lower(word):
            return spec.kind in meanings(word.text)
        if word.is_small:
            return self.parsed.bare[word.end] not in "-/"
        is_noun = not word.senses.isdisjoint({*NOUNS, *_INTRODUCING, spec.kind})
        before = spoken[number - 1]
        return is_noun and (before.is_small or bool(before.senses & {*_INTRODUCING, *NOUNS}))

    def _is_lower(self, word: Word) -> bool:
        return not self.parsed.text[word.start].isupper()

    def _without_tail(self, first: int, end: int, spec: Input) -> int:
        """Return the end of a phrase without a preposition and words of the recipe behind it.

        The verb may be the last word.
        """
        verb, last = words(self.recipe.title)[0], end
        is_name = spec.kind in ("newNote", "newName")
        is_name = is_name and not JOINED.search(self.parsed.bare)
        tail = NOUNS.keys() if is_name or spec.kind in _PROSE else {*self._own, *NOUNS}
        tail = tail | _PARTS if is_name else tail
        for number in range(end - 1, first - 1, -1):
            word = self.parsed.tokens[number]
            is_small = word.is_small and self._is_lower(word) and not self._is_last_han(word)
            is_verb = verb in meanings(word.text) and number > first
            if is_small or (is_verb and number == last - 1):
                last = number
            elif word.senses.isdisjoint(tail):
                break
        return last

    def _is_last_han(self, word: Word) -> bool:
        """Return True for a Chinese word at the end, which is no preposition: “进行中”."""
        return word == self.parsed.tokens[-1] and bool(_HAN.fullmatch(word.text))

    # --- descriptions of notes ---

    def _all_notes(self) -> Stretch | None:
        """Return the words “all notes”."""
        content = [word for word in self.parsed.tokens if not word.is_small or "all" in word.senses]
        for first, last in pairwise(content):
            is_named = is_within(last, self.parsed.names)
            if "all" in first.senses and "note" in last.senses and not is_named:
                return self._stretch(first.start, last.end)
        return None

    def _described(self) -> NoteSet:
        """Return the remaining names and the conditions as a description of notes.

        If no note fits the most likely meanings, another meaning of one name is tried.
        """
        conditions = [
            part for part in self._conditions if self._is_subject(part) and not self._is_used(part)
        ]
        behind = [match for match in self._names if not self._is_subject(match)]
        self._names = [match for match in self._names if self._is_subject(match)]
        readings = ((names, *self._terms(names)) for names in self._meanings())
        first = next(readings)
        names, terms, remaining = first
        if len(_note_set(terms, conditions).terms) > 1:
            fitting = (
                one for one in (first, *readings) if self._fits(_note_set(one[1], conditions))
            )
            names, terms, remaining = next(fitting, first)
        for match in names:
            if match.start not in {other.start for other in remaining}:
                length = len(match.negated) or match.end - match.start
                self.used.append(self._stretch(match.end - length, match.end))
        starts = {match.start for match in names}
        left = (one for one in self._names if one.start not in starts)
        self._names = [*remaining, *left, *behind]
        self.used += conditions
        return _note_set(terms, conditions)

    def _meanings(self) -> Iterator[Sequence[NameMatch]]:
        """Yield the names, then those with another meaning of one, or without the destination."""
        yield self._names
        for kind in ("value", "tag"):
            for number, match in enumerate(self._names):
                names = tuple(name for name in match.names if name.kind == kind)
                if names and names != match.names and not match.negated and not match.bound:
                    other = replace(match, names=names, bound=kind == "value")
                    yield [*self._names[:number], other, *self._names[number + 1 :]]
        if any(self._lacks_folder()):
            for match in self._names:
                if match.of_kinds("folder") and not match.negated:
                    yield [other for other in self._names if other != match]

    def _fits(self, described: NoteSet) -> bool:
        try:
            return bool(described.paths(self.parsed.around))
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
            cue = self._cue(match)[1]
            is_place = bool(match.negated or (cue & {*_TO, *_INSIDE} and "of" not in cue))
            senses = _senses(match, is_place=is_place)
            first = senses[0] if senses else None
            if match.start >= self.parsed.end and (notes or terms):
                remaining.append(match)
            elif (flag := self._as_flag(match)) is not None:
                terms.append(flag)
            elif match.negated and not match.new:
                specific = [term for term in senses if term.key != "property"]
                values = [term for term in senses if term.op == ":"]
                terms += map(_denied, specific or values or senses)
            elif match.new or (
                first and first.key == "folder" and self._is_elsewhere(match, first, notes)
            ):
                remaining.append(match)
            elif first and first.key == "note" and self.parsed.is_link_target(match):
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
        if notes:  # “the deadline of X” is no condition on the note X
            owned = {term.property for term in terms if term.op == "has"}
            terms = [term for term in terms if term.op != "has"]
            remaining += (
                match for match in names if any(one.value in owned for one in match.names)
            )
        return [*notes, *terms], remaining

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

    def _is_condition(self, match: NameMatch, first: Term, notes: Sequence[Term]) -> bool:
        """Return True for a name that narrows the notes by its first meaning."""
        if match.bound or first.key != "property":
            return True
        if first.op == "has":
            cue = self.parsed.cue(match.start)
            is_plain = cue is None or (len(cue.senses) == 1 and not cue.is_small)
            return is_plain or (cue is not None and bool(cue.senses & _HAVING))
        lacks_phrase = any(
            spec.needed and spec.kind in _PHRASE_KINDS and spec.name not in self.values
            for spec in self.recipe.inputs.values()
        )
        is_word = match.text.isalpha() and not meanings(match.text) & self._own
        return is_word and not (notes or lacks_phrase) and _is_lone_value(match)

    def _is_elsewhere(self, match: NameMatch, first: Term, notes: Sequence[Term]) -> bool:
        """Return True for a folder that is a destination, or does not hold a named note."""
        senses = self._cue(match)[1]
        after = self.parsed.after(match.end)
        if after is not None and JOINED.match(after.text) and after.senses & {"to", "in"}:
            senses = after.senses
        is_destination = senses & _TO and "in" not in senses
        return bool(is_destination) or not all(
            term.value.startswith(f"{first.value}/") for term in notes
        )


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


def _is_lone_value(match: NameMatch) -> bool:
    """Return True for a word that is only a value of one property: “the active projects”."""
    return len(match.names) == 1 and isinstance(match.names[0].value, str)


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
