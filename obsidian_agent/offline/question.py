"""Questions about a vault, in any language: a set of notes, and what is asked of it.

The set is described by the same conditions as in an instruction. What is asked is a list of the
notes, the value of a property, an extreme or a sum, their tasks, or a day.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date, timedelta
from itertools import pairwise
from re import escape
from typing import Any, Final, Literal

from msgspec import Struct
from msgspec.structs import replace

from obsidian_agent.errors import ObsidianAgentError
from obsidian_agent.expression import expression, unicode_expression
from obsidian_agent.offline.days import FEASTS, NUMBERS, UNITS, Period, feast, shift
from obsidian_agent.offline.filling import Filling
from obsidian_agent.offline.names import Name, NameKind
from obsidian_agent.offline.note_set import COUNTS, Key, NoteSet, Op, Term, note_name, plain
from obsidian_agent.offline.recipe import QuestionKind, Recipe
from obsidian_agent.offline.sentence import (
    MEASURED,
    OPERATORS,
    OPPOSITE,
    NameMatch,
    Sentence,
    comparing,
    is_within,
)
from obsidian_agent.offline.words import (
    JOINED,
    Stretch,
    Word,
    folded,
    meanings,
    senses_of,
    stem,
    words,
)
from obsidian_agent.tools.search.conditions import day_of
from obsidian_agent.vault.paths.path import PathUse, VaultPath, parse

Measure = Literal["values", "sum", "average", "highest", "lowest"]
Order = Literal["newest", "oldest", "longest", "shortest", "words", "most linked"]
Part = Literal["tags", "headings", "properties"]

_ASKING_WORDS: Final = (
    "which what who where why how list find show count note have all when here daily could"
)
_TASK_WORDS: Final = "task open done due overdue date today week month year before since left"
_MEASURE_WORDS: Final = (
    "sum average highest lowest more most fewer least longest oldest newest recently number value "
    "date level property price rating duration page"
)
QUESTION_WORDS: Final = frozenset(
    words(f"{_ASKING_WORDS} {_TASK_WORDS} {_MEASURE_WORDS} next year when lack")
)
"""The stems of the words that say what is asked."""
_WHICH: Final = frozenset({"which", "what", "when", "count"})
_ASKS_FOR: Final = _WHICH | {"find", "list", "show"}
MEASURES: Final[tuple[tuple[frozenset[str], Measure], ...]] = (
    (frozenset({"averag"}), "average"),
    (frozenset({"lowest", "fewer", "least", "oldest"}), "lowest"),
    (frozenset({"highest", "most", "more", "longest", "newest"}), "highest"),
    (frozenset({"sum", "count"}), "sum"),
)
_ORDERS: Final[tuple[tuple[str, Order], ...]] = (
    ("oldest", "oldest"),
    ("newest", "newest"),
    ("recently", "newest"),
    ("longest", "longest"),
    ("shortest", "shortest"),
)
_RECENT: Final = frozenset({"recently", "next"})
_NEVER_MISSING: Final = frozenset({"note", "task", "link", "backlink", "tag"})
"""The senses of words that are no part of a property's name."""
_LINKS: Final = frozenset({"link", "backlink", "mention"})
_PASSIVE: Final = ("ed", "verlinkt", "erwähnt", "é", "ée", "és", "ées", "ado", "ada", "ato", "ata")
"""The endings of the words for links that lead to what they stand behind: “is X linked”."""
_YES_NO: Final = (
    "is are do does did has have were any anything gibt habe hay existe tengo y il c ci есть ho"
)
_UNLINKED: Final = ("unlinked", "unlinking")
_EXISTS: Final = frozenset(_YES_NO.split())
"""The first words of a question that is answered by yes or no."""
_EXIST_TEXTS: Final = ("有没有", "吗", "ありますか", "있나요")
_GROUPS: Final[tuple[NameKind, ...]] = ("folder", "tag", "value")
"""The kinds of names that mean several notes."""
_HIRAGANA: Final = unicode_expression(r"\p{Hiragana}+")
_FILLERS: Final = "got still anything something ones one thing whats muss must gibt"
_EMPTY: Final = frozenset(_FILLERS.split())
"""English words of a question that ask for nothing."""
_SOURCES: Final = 50
"""Notes of a group that may link to those that are asked for."""
_HAVING: Final = frozenset({"with", "without", "have"})
_ABOUT: Final = frozenset({"with", "on", "mention", "contain", "text"})
"""The senses of the words before a text that the notes hold: “with eggs”, “sur Claire”."""
_ABOUT_WORDS: Final = frozenset({"about", "über", "o", "об", "про", "关于", "について"})
_AS: Final = frozenset(
    {"as", "als", "comme", "como", "come", "jako", "как", "作为", "として", "로"}
)
_RELATING: Final = frozenset({"under", "in", "from", "with", "on"})
_CHANGED: Final = frozenset({"chang", "edit"})
_LIMITING: Final = frozenset({"befor", "sinc", "fewer", "least", "week", "month", "year"})
"""The senses of words that limit notes, if they have no place."""
_NO_VALUES: Final = frozenset({"task", "note", "befor", "sinc", "more", "most", "fewer"})
_WHOLLY: Final = frozenset({"done", "all", "sum"})
"""The senses of words before “empty” that exclude notes with properties: “completely”."""
_DATE: Final = unicode_expression(r"\d{4}-\d{2}-\d{2}.*")
_YEARS: Final = range(1000, 2200)
_PARTS: Final = unicode_expression(r"[\s_-]+|(?<=\p{Ll})(?=\p{Lu})")
"""The borders in the name of a property: `warranty_until`, `dateRead`."""
_AFTER: Final = frozenset({"nach", "after"})
_MEASURING: Final = MEASURED.union(*(senses for senses, _ in MEASURES)) - {"count", "more"}
"""The senses of words that measure or compare notes."""
_LENGTHS: Final = frozenset({"duration", "page", "longest"})
_DENIED: Final = unicode_expression("没有?|还没|不")
_TO_DO: Final = ("to do", "zu tun", "zu erledigen", "à faire", "por hacer", "da fare", "a fazer")
_TO_DO_WORDS: Final = "do tun machen erledigen faire hacer fare fazer сделать делать 做 する"
_DOING: Final = frozenset(_TO_DO_WORDS.split())
"""The words behind “must” that ask for tasks."""
_ALIKE: Final = 60
"""The similarity, in percent, of a word to the property that it means: “ausgesät”, aussaat."""
_MIN_BEGINNING: Final = 3
_MIN_VERB: Final = 4
"""Characters of the stem of a verb that can name a folder."""
LIKELY: Final = 0.5
"""Coverage from which a reading is offered while a question is typed."""


_QUESTION: Final = Recipe(
    name="question",
    title="Question",
    subject="Find",
    description=" ".join(QUESTION_WORDS),
    answer="notes",
    inputs={"notes": {"kind": "notes", "optional": True}},
    plan={"goal": ""},
)
"""The form behind every question: a description of notes."""


class NoteQuery(Struct, frozen=True):
    """The notes themselves, or those that are first in an order."""

    order: Order | None = None
    limit: int | None = None


class PropertyQuery(Struct, frozen=True):
    """The values of a property, or what is measured of them."""

    property: str
    measure: Measure = "values"
    further: tuple[str, ...] = ()
    """Other properties whose values are asked of the same notes."""
    limit: int | None = None
    """The number of the highest or lowest values."""


class TaskQuery(Struct, frozen=True):
    """The tasks in the notes."""

    status: Literal["open", "done", "all"] = "open"
    after: str | None = None
    before: str | None = None
    tag: str | None = None
    is_dated: bool | None = None
    """True if only tasks with a date are asked for, False for those without."""


class DayQuery(Struct, frozen=True):
    """The days of the notes, the last one first, or only those to come."""

    is_next: bool = False


class PartQuery(Struct, frozen=True):
    """The tags, headings or properties of the notes."""

    part: Part


Query = NoteQuery | PropertyQuery | TaskQuery | DayQuery | PartQuery


class Question(Struct, frozen=True, kw_only=True):
    """A question, with the parts of the sentence that have no place in it.

    `coverage` is the share of the words that have one. `is_yes_no`: it asks whether there are
    such notes.
    """

    notes: NoteSet
    query: Query
    unused: tuple[str, ...] = ()
    coverage: float = 1.0
    is_yes_no: bool = False

    @property
    def is_certain(self) -> bool:
        """True if all of the sentence has its place."""
        return not self.unused

    @property
    def is_list(self) -> bool:
        """True if notes or tasks are listed, so that “none” is an answer."""
        return isinstance(self.query, NoteQuery | TaskQuery)


def of_form(kind: QuestionKind | None, values: Mapping[str, Any]) -> Question:
    """Return the question that the form of a recipe asks."""
    notes, note = values.get("notes") or NoteSet(), values.get("note")
    if note is not None:
        keys: Mapping[QuestionKind | None, Key] = {"backlinks": "links-to", "links": "linked-from"}
        notes = NoteSet((Term(keys.get(kind, "note"), note),))
    query: Query = NoteQuery()
    match kind:
        case "newest" | "words":
            query = NoteQuery(kind)
        case "values":
            query = PropertyQuery(values["property"], values["measure"])
        case "tasks":
            after, before, tag = map(values.get, ("after", "before", "tag"))
            query = TaskQuery(status=values["status"], after=after, before=before, tag=tag)
        case "tags" | "headings" | "properties":
            query = PartQuery(kind)
        case _:
            pass
    return Question(notes=notes, query=query)


def form_of(question: Question) -> tuple[str, dict[str, Any]]:
    """Return the recipe whose form asks a question, or one close to it, with its values."""
    notes, name = question.notes, "find-notes"
    values: dict[str, Any] = {}
    match question.query:
        case NoteQuery("newest"):
            name = "recent-notes"
        case NoteQuery("longest" | "words"):
            name = "count-words"
        case PropertyQuery(own, "values"):
            notes = _and(notes, Term("property", None, "has", own))
        case PropertyQuery(own, measure):
            name, values = "numbers-of-notes", {"property": own, "measure": measure}
        case TaskQuery(status, after, before, tag):
            name = "find-tasks"
            values = {"status": status, "after": after, "before": before, "tag": tag}
        case _:
            pass
    known = {key: value for key, value in values.items() if value is not None}
    return name, known | ({"notes": notes} if notes.terms else {})


def read_question(parsed: Sentence) -> Question | None:
    """Return the question that a sentence asks, or None if it names nothing of the vault."""
    return _Reading(parsed).question()


class _Filling(Filling):
    """The description of notes by some of the names in a sentence."""

    def __init__(self, parsed: Sentence, names: Sequence[NameMatch], *, lists: bool) -> None:
        self._all = names
        self._lists = lists
        super().__init__(parsed, _QUESTION)

    def _without_templates(self, names: Sequence[NameMatch]) -> list[NameMatch]:
        """Return the names; “which books” and “books by X” are no note called “books”."""
        return super()._without_templates(
            [
                replace(match, names=match.of_kinds(*_GROUPS) or self._groups(match) or match.names)
                if self._cue(match)[1] & _ASKS_FOR or (self._lists and match == self._all[0])
                else match
                for match in self._all
            ]
        )

    def _groups(self, match: NameMatch) -> tuple[Name, ...]:
        """Return the groups of which a name is another form: “books”, #book."""
        find = self.parsed.around.names
        known = find.inflected(match.text) if stem(match.text) != match.text.casefold() else ()
        known = (*known, *find.find(f"{match.text}s", *_GROUPS))
        return tuple(name for name in known if name.kind in _GROUPS)

    def _is_condition(self, match: NameMatch, first: Term, notes: Sequence[Term]) -> bool:
        """Return True for any value: a question assigns none."""
        is_text = first.op == ":" and isinstance(first.value, str)
        return is_text or super()._is_condition(match, first, notes)

    def _is_elsewhere(self, match: NameMatch, first: Term, notes: Sequence[Term]) -> bool:
        """Return False: a question has no destination."""
        return False


class _Reading:
    """One sentence, and the words of it that are no name and no condition."""

    def __init__(self, parsed: Sentence) -> None:
        self.parsed = parsed
        self.around = parsed.around
        self.today = parsed.around.context.now.date()
        self.names = list(self._joined([one for one in parsed.names if not self._is_word(one)]))
        covered = (*self.names, *parsed.conditions, *parsed.periods, *parsed.days)
        self.free = [word for word in parsed.tokens if not is_within(word, covered)]
        self.senses = frozenset[str]().union(*(word.senses for word in self.free))
        self.further = self._further()
        self.property = self.further.pop(0) if self.further else self._property()
        filling = self._described()
        self.notes: NoteSet = filling.values.get("notes", NoteSet())
        self.lost = filling.lost

    def _joined(self, names: Sequence[NameMatch]) -> Iterator[NameMatch]:
        """Yield the names; a value and its property are one: “X as author”."""
        rest = list(names)
        while rest:
            match = rest.pop(0)
            owner = rest[0] if rest else None
            between = self.parsed.between(match.end, owner.start) if owner else ()
            owners = {name.value for name in owner.of_kinds("property")} if owner else set()
            values = tuple(one for one in match.of_kinds("value") if one.property in owners)
            if owner and values and between and not match.bound and between[0].text in _AS:
                text = self.parsed.text[match.start : owner.end]
                match = replace(match, end=owner.end, text=text, names=values, bound=True)
                rest.pop(0)
            yield match

    def _further(self) -> list[NameMatch]:
        """Return the properties that are asked of the only named note, if they are several."""
        notes = [match for match in self.names if match.of_kinds("note", "alias")]
        paths = {str(name.value) for match in notes for name in match.of_kinds("note", "alias")}
        if len(paths) != 1:
            return []
        own = self.around.view.index.facts(parse(paths.pop(), PathUse.READ)).properties
        properties = [
            replace(match, names=match.of_kinds("property"))
            for match in self.names
            if not (match.bound or match.negated or match in notes)
            if any(own.get(str(name.value)) for name in match.of_kinds("property"))
        ]
        return properties if len(properties) > 1 else []

    def _described(self) -> Filling:
        """Return the description of notes, and remember the words that are left."""
        owner = self.property
        owners = [*self.further, *([owner] if owner is not None else [])]
        others = [one for one in self.names if not is_within(one, owners)]
        filling = _Filling(
            self.parsed,
            others,
            lists=owner is None and (len(others) > 1 or bool(self.parsed.conditions)),
        )
        self.used = [*filling.used, *owners]
        self.used += (
            Stretch(match.start, match.start + len(match.negated), match.negated)
            for match in others
            if match.negated.startswith(match.text)  # the negation follows: “評価のない”
        )
        self.unused = [
            word
            for part in filling.unused
            for word in self.parsed.between(part.start, part.end)
            if word.negates or not (word.is_small or self._is_empty(word))
            if not is_within(word, self.used)
        ]
        first, second = [*self.parsed.tokens[:2], None, None][:2]
        if first is not None and "done" in first.senses and not first.is_small:
            is_adjective = second is not None and "task" in second.senses
            self.unused += [] if is_adjective else [first]  # “finish all tasks”
        return filling

    def question(self) -> Question | None:
        """Return the question, or None if too much of the sentence has no place in it."""
        self._add_owner()
        self._add_names()
        self._add_owner()
        self._add_links()
        self._add_wholly_empty()
        self._add_status()
        self._add_missing()
        query: Query | None = self._tasks() if self.property is None else None
        if query is None:
            self._compare()
            self._compare_value()
            query = self._values(self.property) or self._days() or NoteQuery(self._order())
            ordering = {"sort"} | ({"chang", "edit"} if query == NoteQuery("newest") else set())
            self._use_all(word for word in self.free if word.senses & ordering)
        query = self._limited(query)
        free = (word for word in self.free if word.senses.isdisjoint(_LINKS))
        limiting = (word for word in free if word.senses & _LIMITING)
        self.unused += [word for word in limiting if not is_within(word, self.used)]
        if isinstance(query, NoteQuery) and query.order is None:
            # “The cheapest” limits the notes, if it names no property.
            measuring = (word for word in self.free if word.senses & _MEASURING)
            self.unused += [word for word in measuring if not is_within(word, self.used)]
        self._add_texts(query)
        if isinstance(query, NoteQuery):
            self._add_unknown()
        self._add_home()
        self._use_all([*self._relating(), *self._verbs()])
        unused = tuple(self._phrases())
        if isinstance(query, NoteQuery) and not self._describes(query, unused):
            return None
        first = self.parsed.tokens[0].text if self.parsed.tokens else ""
        is_yes_no = first in _EXISTS or any(text in self.parsed.bare for text in _EXIST_TEXTS)
        return Question(
            notes=NoteSet(tuple(_plain_terms(self.notes.terms))),
            query=query,
            unused=unused,
            coverage=self._coverage(query),
            is_yes_no=is_yes_no,
        )

    def _add_home(self) -> None:
        """Limit notes without a property to the only folder in which notes have it.

        “Which students have no email” asks for no meetings.
        """
        lacking = [t.property for t in _plain_terms(self.notes.terms) if t.op == "lacks"]
        is_limited = any(term.key in ("folder", "note", "in", "tag") for term in self.notes.terms)
        if len(lacking) != 1 or is_limited or "note" in self.senses:
            return
        folders = self._folders(NoteSet((Term("property", None, "has", lacking[0]),)))
        if len(folders) == 1:
            self.notes = _and(self.notes, Term("folder", folders.pop()))

    def _folders(self, notes: NoteSet) -> set[str]:
        """Return the folders of some notes, without that of templates."""
        templates = self.around.context.notes.templates
        paths = [path.text.rpartition("/")[0] for path in self._paths_of(notes)]
        return {path for path in paths if path and path != templates}

    def _relating(self) -> Iterator[Word]:
        """Yield the words that only relate the part behind them: “under Family”."""
        for word in self.unused:
            after = self.parsed.after(word.end)
            is_used = after is not None and is_within(after, self.used)
            if word.senses & _RELATING and is_used:
                yield word

    def _verbs(self) -> Iterator[Word]:
        """Yield the unused words that begin like a property that limits the notes: “own”, owner."""
        names = [folded(term.property or "") for term in self.notes.terms]
        for word in self.unused:
            bare = stem(word.text)
            if len(bare) >= _MIN_BEGINNING and any(name.startswith(bare) for name in names):
                yield word

    def _limited(self, query: Query) -> Query:
        """Return a query with the number of notes in its order: “the three longest”."""
        is_ordered = isinstance(query, NoteQuery) and query.order is not None
        is_extreme = isinstance(query, PropertyQuery) and query.measure in ("highest", "lowest")
        for word in self.free if is_ordered or is_extreme else ():
            count = int(word.text[:4]) if word.text.isdecimal() else NUMBERS.get(word.text, 0)
            if count > 1 and not is_within(word, self.used):
                self._use(word)
                return replace(query, limit=count)
        return query

    def _coverage(self, query: Query) -> float:
        """Return the share of the words that have their place; 0 if a limit has none."""
        limits = any(word.negates or not word.text.isalpha() for word in self.unused)
        if limits or any(not is_within(part, self.used) for part in self.lost):
            return 0.0
        is_of_note = any(term.key in ("note", "links-to") for term in self.notes.terms)
        if isinstance(query, PropertyQuery | DayQuery) and is_of_note:
            return 1.0  # No passage answers better than the value or day of the named note.
        content = [
            word
            for word in self.parsed.tokens
            if not (word.is_small or self._is_empty(word) or word.senses & _ASKS_FOR)
        ]
        unused = len(set(self.unused))
        first = self.unused[0] if self.unused else None
        before = self.parsed.between(0, first.start)[-1:] if first is not None else ()
        # “Which hives” names the kind of notes that are all in one folder.
        is_kind = bool(before) and bool(before[0].senses & _ASKS_FOR)
        if is_kind and self.notes.terms and len(self._folders(self.notes)) == 1:
            unused -= 1
        return 1 - unused / max(len(content), 1)

    @staticmethod
    def _is_empty(word: Word) -> bool:
        is_letter = len(word.text) == 1 and not JOINED.match(word.text)
        return word.text in _EMPTY or is_letter or bool(_HIRAGANA.fullmatch(word.text))

    def _describes(self, query: NoteQuery, unused: Sequence[str]) -> bool:
        """Return True if notes are described; what is asked of one note may be in its text."""
        if query.order is not None and not self.notes.terms:
            return not self.senses.isdisjoint({"note", "chang", "edit"})
        is_asked = bool(self.senses & _ASKS_FOR) and not unused
        keys = {term.key for term in self.notes.terms}
        return bool(keys) and (keys != {"note"} or is_asked)

    def _phrases(self) -> Iterator[str]:
        """Yield the unused words, those in a row as one phrase."""
        rows: list[list[Word]] = []
        for word in sorted(set(self.unused), key=lambda word: word.start):
            gap = self.parsed.bare[rows[-1][-1].end : word.start] if rows else "."
            if gap.strip(" "):
                rows.append([])
            rows[-1].append(word)
        yield from (self.parsed.text[row[0].start : row[-1].end] for row in rows)

    def _add_names(self) -> None:
        """Add the unused words that are a name in another number.

        The value of a property may be asked of a note by a part of its name.
        """
        find = self.around.names
        for word in list(self.unused):
            if len(word.senses - FEASTS.keys()) > 1 or word.negates:
                continue
            bare = stem(word.text)
            other = [f"{word.text}s"] if bare == word.text else [bare]
            known = [name for text in other for name in find.find(text, *_GROUPS)]
            known += [name for name in find.inflected(word.text) if name.kind in _GROUPS]
            known += self._activities(bare)
            is_title = word != self.parsed.tokens[0] and self.parsed.text[word.start].isupper()
            if self.property is not None or "when" in self.senses or is_title:
                known += (*find.partly(word.text.removesuffix("'s")), *find.inflected_notes(bare))
            denied = self._denial_before(word)
            for name in known[:1]:
                keys: Mapping[str, Key] = {"folder": "folder", "tag": "tag", "value": "property"}
                key = keys.get(name.kind, "note")
                term = Term(key, name.value, property=name.property, negated=bool(denied))
                self.notes = _and(self.notes, term)
                self._use_all((*denied, word))

    def _activities(self, bare: str) -> list[Name]:
        """Return the folders of what was done: “clipped” means Clippings."""
        folders = ((path, path.rpartition("/")[2]) for path in self.around.names.folders)
        is_verb = len(bare) >= _MIN_VERB
        return [
            Name("folder", path) for path, name in folders if is_verb and stem(stem(name)) == bare
        ]

    def _add_owner(self) -> None:
        """Let notes have a named note as a value, or link to it: “books by X”, “what is from X”.

        Of several properties with that value, most notes of the set have the first one.
        """
        path = _only_note(self.notes)
        match = next((one for one in self.names if one.of_kinds("note", "alias")), None)
        if path is None or match is None:
            return
        if len(self.notes.terms) < 2:
            cue = self.parsed.cue(match.start)
            is_origin = cue is not None and (cue.text == "by" or "from" in cue.senses)
            is_asked = self.senses & _WHICH and self.senses.isdisjoint({"when", *_LINKS})
            own = self.around.view.index.facts(parse(path, PathUse.READ)).properties
            if not (is_origin and is_asked) or any(map(own.get, self._owners())):
                return
            if self.property is not None:  # “what have I clipped from X”
                self.unused += self.parsed.between(self.property.start, self.property.end)
                self.property = None
        elif self._paths():
            return
        named = next(term for term in self.notes.terms if term.key == "note" and not term.negated)
        values = self.around.names.find(note_name(path), "value")
        others = [Term("property", value.value, ":", value.property) for value in values]
        others.append(Term("links-to", path))
        described = [_replaced(self.notes, named, other) for other in others]
        counts = [len(notes.paths(self.around)) for notes in described]
        first = max(counts[:-1], default=0) or counts[-1]
        if first:
            self.notes = described[counts.index(first)]

    def _add_wholly_empty(self) -> None:
        """Exclude the notes that have properties from those that are “completely empty”."""
        state = next((t for t in self.notes.terms if t == Term("is", "empty")), None)
        part = next((one for one in self.parsed.conditions if one.term == state), None)
        before = self._before(part) if part is not None else None
        if before is not None and before.senses & _WHOLLY:
            self.notes = _and(self.notes, Term("is", "bare"))
            self._use(before)

    def _add_links(self) -> None:
        """Turn a named note into what the notes link to, or are linked from."""
        link = next((word for word in self.free[1:] if word.senses & _LINKS), None)
        path = _only_note(self.notes)
        match = next((one for one in self.names if one.of_kinds("note", "alias")), None)
        excluded = next((t for t in self.notes.terms if t.key == "note" and t.negated), None)
        groups = [t for t in self.notes.terms if t.negated and t.key in ("tag", "folder")]
        state = next((t for t in self.notes.terms if t.key == "is" and t.value in _UNLINKED), None)
        target = next((t.value for t in self.notes.terms if t.key == "links-to"), path)
        if state is not None and target is not None:
            # “That don't link to X” is less than “that don't link”.
            others = [t for t in self.notes.terms if t.key not in ("is", "note", "links-to")]
            self.notes = NoteSet((*others, Term("links-to", target, negated=True)))
        elif link is None:
            return
        elif path is not None and match is not None and len(self.notes.terms) == 1:
            cue = self.parsed.cue(match.start)
            is_passive = link.text.endswith(_PASSIVE)
            is_source = match.end <= link.start and not (is_passive or JOINED.match(link.text))
            # “Mentioned in X”, “linked from X”
            is_source |= cue is not None and bool(cue.senses & {"in", "from"})
            key: Key = "linked-from" if is_source else "links-to"
            self.notes = NoteSet((Term(key, path),))
            self._use(link)
        elif excluded is not None:
            # “That don't link to X” excludes more than the note X.
            self.notes = _replaced(self.notes, excluded, replace(excluded, key="links-to"))
            self._use(link)
        elif groups and len(self.notes.terms) > len(groups):
            # “that no meeting mentions”: none of those notes links to them.
            sources = NoteSet((replace(groups[0], negated=False),)).paths(self.around)[:_SOURCES]
            rest = tuple(term for term in self.notes.terms if term != groups[0])
            unlinked = (Term("linked-from", source, negated=True) for source in sources)
            self.notes = NoteSet((*rest, *unlinked))
            self._use(link)
        elif any(term.key in ("links-to", "linked-from", "is") for term in self.notes.terms):
            self._use(link)
        elif denied := [word for word in self.unused if word.negates]:
            self.notes = _and(self.notes, Term("is", self._unlinked(denied[-1])))
            beside = [word for word in self.unused if word.senses & {"other", "nothing"}]
            self._use_all((link, *denied, *beside))

    def _unlinked(self, denied: Word) -> str:
        """Return the state of notes that no other note links to, or that link to no other one."""
        noun, before = self.parsed.after(denied.end), self._before(denied)
        is_subject = "nothing" in denied.senses
        is_subject |= noun is not None and bool(noun.senses & {"other", "note", "nothing"})
        is_target = before is not None and "to" in before.senses
        return "unlinked" if is_subject and not is_target else "unlinking"

    def _add_missing(self) -> None:
        """Add the property that the notes lack: “which recipes haven't got a rating”.

        It may be a part of its name, or what is asked for: “¿a qué notas les falta precio?”
        """
        for word in self.free if self.notes.terms else ():
            denied = self._denial_before(word) if not word.negates else []
            if not denied or is_within(word, self.used) or word.senses & _NEVER_MISSING:
                continue
            if name := self._similar([word], self._having()):
                self._use_all(denied)
                self.notes = _and(self.notes, Term("property", None, "lacks", name))
        denied = [word for word in self.free if "lack" in word.senses]
        denied += [word for word in self.unused if word.negates]
        having = [term for term in self.notes.terms if term.op == "has" and not term.negated]
        names = self._owners() or [str(term.property) for term in having]
        if denied and names:
            if self.property is None:
                self.notes = NoteSet(tuple(one for one in self.notes.terms if one is not having[0]))
            self.notes = _and(self.notes, Term("property", None, "lacks", names[0]))
            self.property = None
            self._use_all(denied)

    def _compare_value(self) -> None:
        """Turn the number that a property has into a limit: “that exceed a rating of 3”."""
        numbers = [
            term
            for term in self.notes.terms
            if term.key == "property" and term.op == ":" and isinstance(term.value, int | float)
        ]
        comparing_words = [
            word
            for word in self.free
            if not OPERATORS.keys().isdisjoint(word.senses) and not is_within(word, self.used)
        ]
        if len(numbers) != 1 or len(comparing_words) != 1:
            return
        (number,), (word,) = numbers, comparing_words
        if self.property is not None and number.property in self._owners():
            self.property = None
        op = next(op for sense, op in OPERATORS.items() if sense in word.senses)
        if denied := self._denial(word):
            op = OPPOSITE[op]
            self._use(denied)
        self.notes = _replaced(self.notes, number, replace(number, op=op))
        self._use(word)
        self.free.remove(word)

    def _denial(self, word: Word) -> Word | None:
        """Return the word before another one that negates it, with none but small ones between."""
        for other in reversed(self.parsed.between(0, word.start)):
            if other.negates:
                return other if other in self.unused else None
            if not other.is_small and other.senses.isdisjoint(_HAVING):
                return None
        return None

    def _add_status(self) -> None:
        """Add the value that means “finished” or “open” among the notes: “not finished yet”."""
        if not self.notes.terms or any("task" in word.senses for word in self.free):
            return
        joined = [word for word in self.unused if JOINED.match(word.text)]
        text = _DENIED.sub("未", "".join(word.text for word in self.free))
        known = (pair for one in (self._facts() if joined else ()) for pair in one.items())
        for name, value in known:
            # “没读” and “已经读” are the values 未读 and 已读.
            is_state = isinstance(value, str) and len(value) > 1 and JOINED.match(value)
            if is_state and expression(".?".join(map(escape, value))).search(text):
                self.notes = _and(self.notes, Term("property", value, ":", name))
                self._use_all(self.free)
                return
        for sense, senses in (("done", {"done"}), ("open", {"left"})):
            spoken = [word for word in self.free if word.senses & senses or word.text == sense]
            state = self._state(sense) if spoken else None
            if state is not None:
                denied = [word for word in self.free if word.negates]
                self.notes = _and(self.notes, replace(state, negated=bool(denied)))
                self._use_all((*spoken, *denied))
                return

    def _state(self, sense: str) -> Term | None:
        """Return the only value among the notes that means “done” or “open”."""
        meant = {
            Term("property", value, ":", name)
            for properties in self._facts()
            for name, value in properties.items()
            if isinstance(value, str) and sense in senses_of(folded(value))
        }
        return meant.pop() if len(meant) == 1 else None

    # --- tasks ---

    def _is_word(self, match: NameMatch) -> bool:
        """Return True for no name: “open” before “tasks”, “buy” in “have to buy”."""
        before, after = self.parsed.between(0, match.start), self.parsed.after(match.end)
        if before[1:] and "have" in before[-2].senses and before[-1].text == "to":
            return True
        owners = sum(bool(one.of_kinds("property")) for one in self.parsed.names)
        if owners > 1 and meanings(match.text) & {"sum", "averag"}:
            return True  # “cost in total”
        is_status = bool(senses_of(match.text) & {"open", "done"}) and not match.bound
        is_of_task = bool(match.negated) and any("task" in word.senses for word in before)
        return is_status and (is_of_task or (after is not None and "task" in after.senses))

    def _tasks(self) -> TaskQuery | None:
        """Return the tasks that are asked for; notes that have tasks are a condition."""
        free = [word for word in self.free if not is_within(word, self.used)]
        is_late = any("overdu" in word.senses for word in free)
        is_due = any("due" in word.senses and "done" not in word.senses for word in free)
        noun = next((word for word in self.free if "task" in word.senses), None)
        denied = [word for word in self.unused if word.negates]
        undone = any("done" in word.senses for word in free) and bool(denied)
        is_open = any("left" in word.senses or word.text == "open" for word in free[1:])
        is_to_do = any(text in self.parsed.bare.casefold() for text in _TO_DO)
        must = next((word for word in self.parsed.tokens if "should" in word.senses), None)
        is_to_do |= must is not None and any(
            word.text in _DOING and word != must for word in self.parsed.tokens
        )
        if noun is None and not (is_late or is_due or undone or is_open or is_to_do):
            return None
        if noun is None and (is_late or is_due) and self._add_due(is_late=is_late):
            return None
        years = (one for one in self.free if one.text.isdecimal() and int(one.text[:5]) in _YEARS)
        values = [*self._spans(), *self.parsed.days, *self.parsed.periods, *self._feasts(), *years]
        dated = [one for one in values if not is_within(one, self.parsed.conditions)]
        if noun is not None and not (is_late or is_due or dated) and self._owns(noun):
            self.notes = _and(self.notes, Term("tasks", self._status(), negated=bool(denied)))
            self._use_all(denied)
            return None
        if (
            noun is None
            and not (is_late or is_due or is_to_do)
            and ("note" in self.senses or any(not word.negates for word in self.unused))
        ):
            return None  # “which projects are not finished”
        after = before = None
        for value in dated:
            compared = self.parsed.comparison(value)
            period = value if isinstance(value, Period) else _as_period(value)
            for term in comparing("property", compared.op, period, value.text):
                if term.op in ("<", "<="):
                    before = term.value
                else:
                    after = term.value
            self._use(compared)
        if is_late:
            before = self.today.isoformat()
        is_dated = None
        if "date" in self.senses and not dated:
            is_dated = undone or not denied
        if undone or is_dated is False:
            self._use_all(denied)
        status = "open" if undone or is_to_do else self._status()
        return TaskQuery(status=status, after=after, before=before, is_dated=is_dated)

    def _add_due(self, *, is_late: bool) -> bool:
        """Return True if “due” is a property of the notes that are asked for: “projects due …”."""
        match = self.names[0] if self.names else None
        cue = self.parsed.cue(match.start) if match is not None else None
        is_within_them = cue is not None and bool(cue.senses & {"in", "from"})
        if match is None or is_within_them or _only_note(self.notes) or not self.notes.terms:
            return False
        name = self._chosen(self._dates())
        if name is None:
            return False
        term = Term("property", None, "has", name)
        if is_late:
            term = Term("property", self.today.isoformat(), "<", name)
        self._use_all(word for word in self.free if word.senses & {"due", "overdu"})
        done = self._state("done") if is_late else None
        self.notes = _and(self.notes, term, *([replace(done, negated=True)] if done else []))
        return True

    def _status(self) -> Literal["open", "done", "all"]:
        if "done" in self.senses:
            return "done"
        is_all = any("all" in word.senses for word in self.free)
        return "all" if is_all and "open" not in self.senses else "open"

    def _feasts(self) -> Iterator[Stretch]:
        """Yield the known feasts behind a comparison: “before Christmas”."""
        for word in self.free:
            day = feast(word, self.today)
            if day is not None and self.parsed.comparison(day).op is not None:
                yield day

    def _spans(self) -> Iterator[Stretch]:
        """Yield the days a number of units away: “the last 7 days”, “older than two weeks”."""
        for word in self.parsed.tokens:
            count = int(word.text[:4]) if word.text.isdecimal() else NUMBERS.get(word.text, 0)
            noun, before = self.parsed.after(word.end), self._before(word)
            unit = next((one for one in UNITS if noun and one in noun.senses), None)
            if not count or noun is None or unit is None:
                continue
            first, last = shift(self.today, -count, unit), shift(self.today, count, unit)
            senses = before.senses if before is not None else frozenset()
            start = before.start if before is not None else word.start
            if "next" in senses:
                until = _next_day(last.isoformat())
                yield Period(start, noun.end, self.today.isoformat(), until)
            elif "recently" in senses:
                until = _next_day(self.today.isoformat())
                yield Period(start, noun.end, first.isoformat(), until)
            elif self.parsed.comparison(word).op is not None:
                yield Stretch(word.start, noun.end, first.isoformat())

    def _owns(self, noun: Word) -> bool:
        """Return True if notes have the tasks: “which projects have open tasks”."""
        before = self.parsed.between(0, noun.start)
        having = next((word for word in before if word.senses & _HAVING), None)
        is_named = any(match.end < noun.start for match in self.names)
        spoken = [word for word in before if word is not having]
        return having is not None and (is_named or any("note" in w.senses for w in spoken))

    # --- properties ---

    def _property(self) -> NameMatch | None:
        """Return the property that is asked for, if it is no condition."""
        bound = {name.property for match in self.names if match.bound for name in match.names}
        owners = [match for match in self.names if match.of_kinds("property")]
        for match in owners:
            if match.negated or match.bound or match.new:
                continue
            is_group = bool(self.around.names.find(f"{match.text}s", *_GROUPS))
            is_measured = bool(owners[1:] or self.senses & _MEASURING)
            if is_group and is_measured and match is owners[0]:
                continue  # “which boat has the highest berth fee”, “which boat is the oldest”
            if bound & {name.value for name in match.names}:
                continue
            cue = self.parsed.cue(match.start)
            senses = cue.senses if cue is not None else frozenset()
            values = self.around.names.properties.get(str(match.of_kinds("property")[0].value), {})
            is_flag = bool(values) and all(value in (True, False) for value in values.values())
            is_only = len({name.kind for name in match.names}) == 1
            is_had = senses & _HAVING and not senses & _WHICH and "sort" not in self.senses
            is_condition = is_flag or is_had
            if is_only and not is_condition:
                return replace(match, names=match.of_kinds("property"))
        return self._counted()

    def _owners(self) -> list[str]:
        """Return the names that the property asked for may have."""
        names = self.property.of_kinds("property") if self.property is not None else ()
        return [str(name.value) for name in names]

    def _counted(self) -> NameMatch | None:
        """Return the property behind “how many”, also if it is a common word: “words”."""
        for number, word in enumerate(self.free[1:]):
            if "count" in self.free[number].senses:
                known = self.around.names.find(word.text, "property")
                values = self.around.names.properties.get(str(known[0].value), {}) if known else {}
                if values and all(isinstance(value, int | float) for value in values.values()):
                    return NameMatch(word.start, word.end, word.text, known)
        return None

    def _measure(self) -> Measure | None:
        end = self.property.end + 1 if self.property is not None else -1
        words = (
            word
            for word in self.free
            # In “phone number” nothing is counted.
            if not (is_within(word, self.used) or (word.start == end and "count" in word.senses))
            # In “más rápida” the second word says what is measured.
            if not (word.senses & {"more", "most"} and self.parsed.after(word.end) in self.unused)
        )
        spoken = frozenset[str]().union(*(word.senses for word in words))
        measures = (measure for senses, measure in MEASURES if senses & spoken)
        return next(measures, None)

    def _values(self, match: NameMatch | None) -> PropertyQuery | None:
        measure = self._measure()
        if match is not None:
            name = str(match.of_kinds("property")[0].value)
            is_one = _only_note(self.notes) is not None or measure is None
            further = tuple(str(one.names[0].value) for one in self.further)
            return PropertyQuery(name, "values" if is_one or not measure else measure, further)
        is_one = _only_note(self.notes) is not None and len(self.notes.terms) == 1
        if is_one and measure in (None, "sum"):
            own = self._chosen(self._having())
            return PropertyQuery(own) if own is not None else None
        is_amount = bool(self.senses & {"sum", "pric"})  # “how much do they cost”
        if measure is None and self.senses & MEASURED and not self._compares():
            named = [name for name in self._numbers() if self.senses & senses_of(folded(name))]
            return PropertyQuery(self._chosen(named) or named[0]) if len(named) == 1 else None
        if measure is None or (measure == "sum" and not is_amount):
            return None
        is_age = self.senses & {"oldest", "newest"}
        chosen = self._chosen([*self._years(), *self._dates()] if is_age else self._numbers())
        return PropertyQuery(chosen, measure) if chosen is not None else None

    def _compares(self) -> bool:
        return any(term.op in COUNTS for term in self.notes.terms)

    def _facts(self) -> Iterator[Mapping[str, Any]]:
        """Yield the properties of the notes in the set."""
        for path in self._paths():
            yield self.around.view.index.facts(path).properties

    def _having(self, fits: Callable[[Any], bool] = lambda value: True) -> list[str]:
        """Return the properties of the notes whose values all fit, most frequent first."""
        counts: Counter[str] = Counter()
        others: set[str] = set()
        for properties in self._facts():
            for name, value in properties.items():
                if value not in (None, ""):
                    counts[name] += 1
                    others |= {name} if not fits(value) else set()
        return [name for name, _ in counts.most_common() if name not in others]

    def _numbers(self) -> list[str]:
        return self._having(lambda value: isinstance(value, int | float) and value is not True)

    def _years(self) -> list[str]:
        return self._having(lambda value: isinstance(value, int) and value in _YEARS)

    def _dates(self) -> list[str]:
        return self._having(lambda value: isinstance(value, str) and bool(_DATE.fullmatch(value)))

    def _chosen(self, names: Sequence[str]) -> str | None:
        """Return the only property, or the one that is written like an unused word."""
        lengths = _LENGTHS if "longest" in self.senses else frozenset()
        senses = (self.senses & {*MEASURED, "due"}) | lengths
        named = [name for name in names if senses & senses_of(folded(name))]
        if len(named) == 1:
            self._use_all(word for word in self.free if word.senses & senses)
            return named[0]
        if name := self._similar(self.unused, names):
            return name
        is_only = len(names) == 1 and self.notes.terms and _only_note(self.notes) is None
        return names[0] if is_only else None

    def _similar(self, spoken: Iterable[Word], names: Sequence[str]) -> str | None:
        """Return the property that is written like one of the words, or has it as a part."""
        # Lazy: few questions leave a property open.
        from rapidfuzz import fuzz, process

        for word in spoken:
            text = folded(word.text)
            parts = [name for name in names if stem(text) in words(" ".join(_PARTS.split(name)))]
            best = process.extractOne(
                text, names, processor=folded, scorer=fuzz.ratio, score_cutoff=_ALIKE
            )
            if len(parts) == 1 or best is not None:
                self._use(word)
                noun = self.parsed.after(word.end)
                if noun is not None and noun.senses & {"date", "number", "name"}:
                    self._use(noun)  # “warranty date”
                name = parts[0] if len(parts) == 1 or best is None else str(best[0])
                own = senses_of(folded(_PARTS.split(name)[0]))
                # “Their last appointment” is the property `last_appointment`.
                self._use_all(one for one in self.free if one.senses & own & _RECENT)
                return name
        return None

    # --- days ---

    def _compare(self) -> None:
        """Add the comparisons with a day, a period or a number that name no property."""
        numbers = [word for word in self.parsed.tokens if word.text.isdecimal()]
        # “The 2 longest” compares nothing.
        following = {word: self.parsed.after(word.end) for word in numbers}
        numbers = [word for word, noun in following.items() if not noun or not _orders(noun)]
        # “Before 1990” may be meant for a property of these notes.
        dated = [part for part in self.parsed.conditions if part.term.key == "dated"]
        terms = [part.term for part in dated]
        self.notes = NoteSet(tuple(term for term in self.notes.terms if term not in terms))
        covered = (*(one for one in self.parsed.conditions if one not in dated), *self.names)
        self.used = [part for part in self.used if part not in dated]
        days = (*self._spans(), *self.parsed.days, *self.parsed.periods, *self._feasts())
        for value in (*days, *numbers):
            if is_within(value, covered) or is_within(value, self.used):
                continue
            if self.parsed.text[value.start : value.end].casefold() == "now":
                self._use(value)
                continue
            compared = self.parsed.comparison(value)
            cue = self.parsed.cue(value.start)
            op = compared.op or (">" if cue is not None and cue.text in _AFTER else None)
            if new := self._compared(value, op):
                self.notes = _and(self.notes, *new)
                self._use(compared)
                dated = [part for part in dated if not is_within(value, [part])]
        index = self.around.view.index
        is_dated = any(day_of(path, index) for path in self._paths()) if dated else False
        for part in dated:
            if is_dated:
                self.notes = _and(self.notes, part.term)
                self._use(part)
            else:  # “older than 10 years”
                self.unused += self.parsed.between(part.start, part.end)
        if self._order() is None:
            left = (word for word in numbers if not is_within(word, (*covered, *self.used)))
            self.unused += [word for word in left if word not in self.unused]

    def _compared(self, value: Stretch, op: Op | None) -> list[Term]:
        """Return the conditions on the property, or the day, that a value is compared with."""
        is_number = isinstance(value, Word)
        is_year = is_number and int(value.text[:5]) in _YEARS
        name = self._chosen(self._years() if is_year else self._numbers()) if is_number else None
        if name is None and is_number and not is_year:
            name = self._separated(op, int(value.text))
        period = value if isinstance(value, Period) else _as_period(value)
        if name is not None:
            new = list(comparing("property", op or ":", value, int(value.text), name))
            dates = self._dates() if is_year else []
            of_day = list(comparing("property", op, period, period.text, *dates[:1]))
            # “Books read in 2026” is no year of a book.
            is_of_day = dates and not self._paths_of(_and(self.notes, *new))
            return of_day if is_of_day and self._paths_of(_and(self.notes, *of_day)) else new
        if is_number and not is_year:
            return []
        if self.senses & _CHANGED:
            self._use_all(word for word in self.free if word.senses & _CHANGED)
            return list(comparing("changed", op, period, period.text))
        if name := self._chosen(self._dates()):
            return list(comparing("property", op, period, period.text, name))
        index = self.around.view.index
        is_dated = any(day_of(path, index) for path in self._paths())
        return list(comparing("dated", op, period, period.text)) if is_dated else []

    def _separated(self, op: Op | None, number: int) -> str | None:
        """Return the only property by which the comparison divides the notes: “wines under 20”."""
        count = len(self._paths())
        names: list[str] = []
        for name in self._numbers() if op is not None else ():
            narrowed = _and(self.notes, Term("property", number, op or ":", name))
            names += [name] if 0 < len(narrowed.paths(self.around)) < count else []
        return names[0] if len(names) == 1 else None

    def _paths(self) -> list[VaultPath]:
        return self._paths_of(self.notes)

    def _paths_of(self, notes: NoteSet) -> list[VaultPath]:
        try:
            return [parse(path, PathUse.READ) for path in notes.paths(self.around)]
        except ObsidianAgentError:
            return []

    def _days(self) -> DayQuery | None:
        """Return the days of the notes, or of those that mention a note, if “when” is asked."""
        is_next = any("next" in word.senses for word in self.free) and bool(self.notes.terms)
        if "when" not in self.senses and not is_next:
            return None
        path, is_last = _only_note(self.notes), "recently" in self.senses
        if path is None:
            return DayQuery("next" in self.senses)
        linking = NoteSet((Term("links-to", path),))
        paths = [parse(one, PathUse.READ) for one in linking.paths(self.around)]
        is_linked = any(day_of(one, self.around.view.index) for one in paths)
        # “When did I operate X” is no day of the note X, unless a word is written like it.
        is_event = is_linked and bool(self.unused) and self._chosen(self._dates()) is None
        has_own = bool(self._dates())
        if not has_own or (is_linked and (is_last or is_event)):
            self.notes = linking
        return DayQuery()

    def _order(self) -> Order | None:
        if "link" in self.senses and self.senses & {"most", "more", "highest"}:
            return "most linked"
        left = (word.senses for word in self.free if not is_within(word, self.used))
        senses = frozenset[str]().union(*left)
        return next((order for word, order in _ORDERS if word in senses), None)

    # --- texts ---

    def _add_texts(self, query: Query) -> None:
        """Add the unused words behind “about” and “with” as texts that the notes hold."""
        for word in list(self.unused):
            cue = self._before(word)
            is_about = cue is not None and (cue.text in _ABOUT_WORDS or cue.senses & _ABOUT)
            is_subject = isinstance(query, DayQuery) and not self.notes.terms
            # “Which recipes need eggs”
            is_listed = isinstance(query, NoteQuery) and any(
                term.key not in ("note", "text") for term in self.notes.terms
            )
            if not (is_about or is_subject or is_listed) or len(word.senses) > 1 or word.negates:
                continue
            if word.text.isdecimal():
                continue
            narrowed = _and(self.notes, Term("text", self.parsed.text[word.start : word.end]))
            is_named = cue is not None and cue.text in _ABOUT_WORDS and self.notes.terms
            if is_named or narrowed.paths(self.around):
                self.notes = narrowed
                self._use(word)

    def _add_unknown(self) -> None:
        """Add a tag, or a property and value, that no note has: “with status done”."""
        for word in list(self.unused):
            before = self._before(word)
            if before in self.free and "tag" in before.senses and self._is_beside(before, word):
                self.notes = _and(self.notes, Term("tag", word.text))
                self._use_all((before, word))
        owned = [term for term in self.notes.terms if term.op == "has" and not term.negated]
        owner = next((one for one in self.names if one.of_kinds("property")), None)
        for value in list(self.free):
            is_value = not (value.is_small or value.senses & _NO_VALUES)
            if owner is not None and owned and is_value and self._is_beside(owner, value):
                new = Term("property", plain(self._text(value)), ":", owned[0].property)
                self.notes = _replaced(self.notes, owned[0], new)
                self._use(value)
        for name, value in pairwise(list(self.unused) if self.notes.terms else ()):
            before = self._before(name)
            is_had = before is not None and bool(before.senses & _HAVING) and not name.negates
            if is_had and self._is_beside(name, value):
                term = Term("property", plain(self._text(value)), ":", name.text)
                self.notes = _and(self.notes, term)
                self._use_all((name, value))
                return

    def _text(self, word: Word) -> str:
        return self.parsed.text[word.start : word.end]

    def _is_beside(self, first: Stretch, second: Stretch) -> bool:
        return self.parsed.bare[first.end : second.start] == " "

    def _before(self, word: Stretch) -> Word | None:
        """Return the word before another one."""
        return next(iter(self.parsed.between(0, word.start)[-1:]), None)

    def _denial_before(self, word: Stretch) -> list[Word]:
        """Return the word that excludes what is directly behind it, as the only one of a list."""
        before = self._before(word)
        return [before] if before is not None and before.negates else []

    def _use_all(self, parts: Iterable[Stretch]) -> None:
        for part in parts:
            self._use(part)

    def _use(self, part: Stretch) -> None:
        self.used.append(part)
        self.unused = [word for word in self.unused if not is_within(word, [part])]


def _plain_terms(terms: Sequence[Term]) -> Iterator[Term]:
    """Yield the conditions; a property that is missing has no value, one that is compared has."""
    compared = {term.property for term in terms if term.key == "property" and term.op != "has"}
    for term in terms:
        if term.op == "has" and term.negated:
            yield replace(term, op="lacks", negated=False)
        elif term.op != "has" or term.property not in compared:
            yield term


def _orders(word: Word) -> bool:
    return bool(word.senses & _MEASURING) and word.senses.isdisjoint(MEASURED)


def _replaced(notes: NoteSet, old: Term, new: Term) -> NoteSet:
    return NoteSet(tuple(new if term is old else term for term in notes.terms))


def _and(notes: NoteSet, *terms: Term) -> NoteSet:
    return NoteSet(tuple(dict.fromkeys((*notes.terms, *terms))))


def _only_note(notes: NoteSet) -> str | None:
    """Return the note that a description names, if it is only one."""
    named = [term for term in notes.terms if term.key == "note" and not term.negated]
    return str(named[0].value) if len(named) == 1 else None


def _next_day(day: str) -> str:
    return (date.fromisoformat(day) + timedelta(days=1)).isoformat()


def _as_period(value: Stretch) -> Period:
    """Return a day, or a year, as a period."""
    if value.text.isdecimal():
        year = int(value.text[:4])
        return Period(value.start, value.end, f"{year}-01-01", f"{year + 1}-01-01")
    return Period(value.start, value.end, value.text, _next_day(value.text))
