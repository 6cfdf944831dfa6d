"""Descriptions of notes: "all notes tagged #x in Projects", "everything older than a month", "Q1 to Q4 2022", "my books (category Books)".

A description is read from a token on, with every place where it may end; the value of a reading is what `vault.find` takes: a `where`
and a `kind` ("any" where the words leave it open whether files other than notes are meant).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import regex

from obsidian_agent.providers.offline import dates, name_slots, phrases, set_modifiers, type_nouns, word_slots
from obsidian_agent.providers.offline.lexicon import DETERMINERS, NEGATIONS, NOTE_NOUNS, stem, word_set
from obsidian_agent.providers.offline.name_lists import NameLists, listed
from obsidian_agent.providers.offline.names import NameIndex
from obsidian_agent.providers.offline.readings import Reading, Surroundings
from obsidian_agent.providers.offline.set_modifiers import Modifier, Where, both, either
from obsidian_agent.providers.offline.stretch import Stretch
from obsidian_agent.providers.offline.strict import Part, Walked, walk
from obsidian_agent.providers.offline.tokens import Token

_QUANTIFIERS = word_set("all every each any both of the my our these those only just two three four five six seven eight nine ten")
_PRONOUNS = word_set("everything anything everyone everybody anyone anybody those all ones things stuff")
_LOOSE = word_set("file files everything anything things stuff")
"""Heads that may mean files other than notes."""

_KINDS: Mapping[str, tuple[str, ...]] = {
    "attachment": (),
    "image": ("png", "jpg", "jpeg", "gif", "svg", "webp", "avif", "bmp", "heic"),
    "picture": ("png", "jpg", "jpeg", "gif", "svg", "webp", "avif", "bmp", "heic"),
    "photo": ("png", "jpg", "jpeg", "webp", "avif", "heic"),
    "screenshot": ("png", "jpg", "jpeg"),
    "pdf": ("pdf",),
    "png": ("png",),
    "video": ("mp4", "mov", "mkv", "webm"),
    "recording": ("mp3", "wav", "m4a", "ogg", "webm"),
}
_LONGEST_HOLE = 8
_LONGEST_KIND = 3
_EACH = frozenset(("every", "each", "any", "all"))
_LONGEST_TEXT = 6
_MOST_MODIFIERS = 5
_EXCEPT = phrases.parse("[,] [but] (except|excepting|excluding|without|not|other than|apart from) [for|in|from|under]").segments[0]
_WHOLE = phrases.parse("([all of] (my|the|this) [whole|entire] vault|everywhere)").segments[0]
_EXCEPT_WORDS = frozenset(("except", "excepting", "excluding", "other", "apart", "but"))


class NoteSets:
    """Reads descriptions in one instruction. What was read from a token on is kept."""

    def __init__(self, text: str, tokens: tuple[Token, ...], index: NameIndex, around: Surroundings) -> None:
        self._text = text
        self._tokens = tokens
        self._index = index
        self._around = around
        self._lists = NameLists(text, tokens, index)
        self._holes: dict[tuple[str, int, str | None], list[Part]] = {}
        self._behind: dict[int, list[Part]] = {}
        self._front: dict[int, list[Part]] = {}
        self._sets: dict[int, dict[int, Reading]] = {}
        self._exempt: dict[int, dict[int, Reading]] = {}
        week = set_modifiers.week_ago(around.today)
        self._constants = (("weekAgo", Part(0, week)),)

    # --- readings ---------------------------------------------------------------------------------------------------------------

    def notes(self, start: int, end: int) -> Reading | None:
        """A description of notes in tokens `start` to `end` (exclusive)."""
        if start not in self._sets:
            self._sets[start] = self._readings(start, self._described(start))
        return self._sets[start].get(end)

    def place(self, start: int, end: int) -> Reading | None:
        """A description of notes, or folders by their bare names: "in Projects and Meetings"."""
        part = next((part for part in self._hole("folders", start, Walked(start)) if part.end == end), None)
        described = self.notes(start, end)
        if part is None or (described is not None and described.issue is None and described.cost < part.cost):
            return described
        value = {"where": either([{"folder": folder} for folder in part.value]), "kind": "notes"}
        return Reading(part.cost, value, self._words(start, end).raw, issue="near" if part.doubt else None, doubt=part.doubt)

    def folders(self, start: int, end: int) -> Reading | None:
        """Folders alone, as a condition."""
        part = next((part for part in self._hole("folders", start, Walked(start)) if part.end == end), None)
        if part is None or part.doubt is not None:
            return None
        return Reading(
            part.cost + 0.1, {"where": either([{"folder": folder} for folder in part.value]), "kind": "any"}, self._words(start, end).raw
        )

    def exempt(self, start: int, end: int) -> Reading | None:
        """What is to be left out: a description, or the bare name of a folder, a tag, a property's value or a note."""
        if start not in self._exempt:
            found = self._readings(start, (*self._described(start), *self._bare(start)))
            self._exempt[start] = found
        return self._exempt[start].get(end)

    def _readings(self, start: int, parts: Any) -> dict[int, Reading]:
        found: dict[int, Reading] = {}
        for part in parts:
            if part.end not in found or part.cost < found[part.end].cost:
                found[part.end] = self._reading(self._words(start, part.end).raw, part)
        return found

    def _reading(self, raw: str, part: Part) -> Reading:
        """A description as a reading; one that a word of leaves open is a choice."""
        ways = [{**part.value, "where": where} for where in type_nouns.expanded(part.value["where"])]
        if len(ways) > 1:
            return Reading(part.cost, None, raw, issue="ambiguous", choices=tuple(ways), doubt=part.doubt)
        return Reading(part.cost, ways[0], raw, issue="near" if part.doubt else None, doubt=part.doubt)

    # --- descriptions -------------------------------------------------------------------------------------------------------------

    def _described(self, start: int) -> Iterator[Part]:
        """Head with modifiers, a list of names, or words made clear in brackets."""
        at = start
        while True:
            yield from self._headed(at, start)
            if at >= len(self._tokens) or self._tokens[at].lower not in _QUANTIFIERS:
                break
            at += 1
        for part in self._lists.at(start):
            where: Where = {"paths": list(part.value)}
            yield from self._modified(Part(part.end, where, part.cost, part.doubt), "notes")
        yield from self._bracketed(start)
        for walked in walk(_WHOLE, self._tokens, Walked(start), self._hole):
            yield Part(walked.end, {"where": {}, "kind": "notes"})

    def _headed(self, at: int, start: int) -> Iterator[Part]:
        """From a place behind the quantifiers: modifiers, then a head, then modifiers. A bare noun needs some of them."""
        for front in self._in_front(at):
            head = front.end
            if head >= len(self._tokens):
                continue
            yield from self._typed(front, start)
            token = self._tokens[head]
            kind = self._kind_of(token)
            if kind is None:
                continue
            endings, name = kind
            if name == "attachments" and head + 1 < len(self._tokens) and self._tokens[head + 1].lower in _LOOSE:
                head += 1
            said = front.end > start or stem(token.lower) in _PLURAL or token.lower != token.stem
            where = both(front.value, {"extension": list(endings)}) if endings else front.value
            for part in self._modified(Part(head + 1, where, front.cost, front.doubt), name):
                if said or part.end > head + 1:
                    yield part

    def _typed(self, front: Part, start: int) -> Iterator[Part]:
        """A head that is a kind of note in this vault ("movies", "meeting notes"), in the plural, behind "every", or with a noun."""
        quantified = any(token.lower in _EACH for token in self._tokens[start : front.end])
        for part in listed(self._tokens, front.end, self._plural_kind, frozenset(("and",))):
            if len(part.value[1]) > 1 and (meanings := type_nouns.joint(part.value[1])):
                yield from self._modified(
                    Part(part.end, both(front.value, type_nouns.one_of(meanings)), front.cost + 0.05, front.doubt), "notes"
                )
        for end in range(front.end + 1, min(front.end + _LONGEST_KIND, len(self._tokens)) + 1):
            words = self._words(front.end, end)
            if not words.plain or words.ragged or words.last.lower in _NO_TEXT | _QUANTIFIERS | _PRONOUNS:
                break
            noun = end < len(self._tokens) and self._tokens[end].lower in NOTE_NOUNS
            plural = _plural(words.last)
            meanings = list(type_nouns.kinds(words.raw, self._index)) if noun or plural or quantified else []
            doubt = None
            if not meanings and not noun and _plural(words.last) and len(words) == 1 and words.last.lower not in _PARTS:
                yield from self._unknown_kind(front, end)
            if not meanings and noun and len(words) == 1 and words.last.lower not in _FREE | DETERMINERS | NEGATIONS:
                meanings = [{"name": words.raw}]
                doubt = f"“{words.raw}” is taken as a part of the names"
            if meanings:
                where = both(front.value, type_nouns.one_of(meanings))
                head = Part(end + int(noun), where, front.cost + (0.5 if doubt else 0.05), front.doubt or doubt)
                named = front.end == start and not noun and words.first.text[:1].isupper()
                yield from (part for part in self._modified(head, "notes") if not named or part.end > head.end)

    def _unknown_kind(self, front: Part, end: int) -> Iterator[Part]:
        """A noun that the vault does not know, of notes in a folder: "the vacations in Travel"."""
        for part in self._modified(Part(end, front.value, front.cost + 0.4, front.doubt), "notes"):
            if part.end > end and "folder" in part.value["where"]:
                doubt = f"“{self._words(end - 1, end).raw}” is taken to mean the notes there"
                yield Part(part.end, part.value, part.cost, part.doubt or doubt)

    def _plural_kind(self, at: int) -> list[Part]:
        """What nouns in the plural may mean from a token on, each with all its meanings."""
        return list(self._each(at, _LONGEST_KIND, self._one_kind))

    def _one_kind(self, words: Stretch) -> Part | None:
        if not words.plain or not _plural(words.last) or words.last.lower in _NO_TEXT:
            return None
        meanings = list(type_nouns.kinds(words.raw, self._index))
        return Part(words.end, meanings) if meanings else None

    def _in_front(self, at: int) -> Iterator[Part]:
        """What stands before a head: nothing, or up to two modifiers."""
        yield Part(at, {})
        for first in self._before_head(at):
            yield first
            for second in self._before_head(first.end):
                yield Part(second.end, both(first.value, second.value), first.cost + second.cost, first.doubt or second.doubt)

    def _before_head(self, at: int) -> list[Part]:
        if at not in self._front:
            self._front[at] = [part for modifier in set_modifiers.before() for part in self._apply(modifier, at)]
            if at + 1 < len(self._tokens) and self._tokens[at].lower == "daily":
                self._front[at].append(Part(at + 1, dict(self._index.names.daily_set)))
        return self._front[at]

    def _kind_of(self, token: Token) -> tuple[tuple[str, ...], str] | None:
        """The endings and the kind of what a head names; None for a word that is none."""
        if token.kind != "word":
            return None
        if token.lower in _LOOSE:
            return (), "any"
        if token.lower in NOTE_NOUNS or token.lower in _PRONOUNS or token.lower in ("entries", "entry"):
            return (), "notes"
        if token.stem in _KINDS:
            return _KINDS[token.stem], "attachments"
        return None

    def _modified(self, head: Part, kind: str) -> Iterator[Part]:
        """A head with up to some modifiers behind it, exceptions last."""
        seen: set[tuple[int, int]] = set()
        open_parts = [(head, 0)]
        while open_parts:
            part, count = open_parts.pop()
            yield Part(part.end, {"where": part.value, "kind": kind}, part.cost, part.doubt)
            yield from self._excepted(part, kind)
            if count == _MOST_MODIFIERS:
                continue
            for at in self._joints(part.end):
                for more in self._modifiers(at):
                    if (more.end, count) not in seen or more.cost == 0:
                        seen.add((more.end, count))
                        joined = Part(more.end, both(part.value, more.value), part.cost + more.cost, part.doubt or more.doubt)
                        open_parts.append((joined, count + 1))

    def _joints(self, at: int) -> Iterator[int]:
        """Where a further modifier may begin: here, or behind a comma, an "and" or both."""
        yield at
        for text in (",", "and", "but", "that", "which"):
            if at < len(self._tokens) and (self._tokens[at].lower or self._tokens[at].text) == text:
                at += 1
                yield at

    def _modifiers(self, at: int) -> list[Part]:
        if at not in self._behind:
            self._behind[at] = [part for modifier in set_modifiers.behind() for part in self._apply(modifier, at)]
            if at < len(self._tokens) and self._tokens[at].text == "(":
                self._behind[at] += self._in_brackets(at)
        return self._behind[at]

    def _apply(self, modifier: Modifier, at: int) -> Iterator[Part]:
        for walked in walk(modifier.phrase, self._tokens, Walked(at, self._constants), self._hole):
            if walked.end > at:
                cost = walked.cost + modifier.cost
                yield Part(walked.end, modifier.where(walked.values), cost, next(iter(walked.doubts), None))

    def _in_brackets(self, at: int) -> Iterator[Part]:
        """ "(tagged #x)", "(categories Movies and Shows)": a modifier, or a property and its values."""
        closing = next((end for end in range(at + 1, len(self._tokens)) if self._tokens[end].text == ")"), None)
        if closing is None:
            return
        for part in [*self._modifiers(at + 1), *self._apply(_PROPERTY_IN_BRACKETS, at + 1)]:
            if part.end == closing:
                yield Part(closing + 1, part.value, part.cost, part.doubt)

    def _bracketed(self, start: int) -> Iterator[Part]:
        """Words that only brackets make clear: "my movies, shows and video games (categories Movies, Shows and Games)"."""
        opening = next((at for at in range(start, len(self._tokens)) if self._tokens[at].text == "("), None)
        if opening is None or not 0 < opening - start <= 12 or not self._words(start, opening).described:
            return
        for part in self._in_brackets(opening):
            said = {stem(word) for value in _texts(part.value) for word in value.casefold().split()}
            strange = sum(
                token.kind == "word" and token.lower not in _FREE and token.stem not in said for token in self._tokens[start:opening]
            )
            yield from self._modified(Part(part.end, part.value, part.cost + 0.1 * strange, part.doubt), "notes")

    def _excepted(self, part: Part, kind: str) -> Iterator[Part]:
        """What "except …" takes away again."""
        for walked in walk(_EXCEPT, self._tokens, Walked(part.end), self._hole):
            said = {token.lower for token in self._tokens[part.end : walked.end]}
            if walked.end == part.end or not said & _EXCEPT_WORDS or walked.end >= len(self._tokens):
                continue
            for end in range(walked.end + 1, min(walked.end + 12, len(self._tokens)) + 1):
                left_out = self.exempt(walked.end, end)
                if left_out is not None and left_out.value is not None:
                    where = both(part.value, {"not": left_out.value["where"]})
                    yield Part(end, {"where": where, "kind": kind}, part.cost + left_out.cost, part.doubt or left_out.doubt)

    # --- bare names ---------------------------------------------------------------------------------------------------------------

    def _bare(self, start: int) -> Iterator[Part]:
        for end in range(start + 1, min(start + _LONGEST_HOLE, len(self._tokens)) + 1):
            words = self._words(start, end)
            if words.ragged:
                continue
            found = list(self._meanings(words))
            if found:
                yield Part(end, {"where": either(found), "kind": "any"}, 0.05 * (len(found) - 1))

    def _meanings(self, words: Stretch) -> Iterator[Where]:
        """Everything that a bare name may mean; leaving out too much is better than too little."""
        if words.first.kind == "tag" and len(words) == 1:
            yield {"tag": words.first.text}
            return
        inner = words.trimmed(("the", "my", "all", "every", "folder", "any"), ("folder", "notes"))
        name = inner.quoted or inner.raw
        folders = self._index.find(name, ("folder",))
        for path in folders.paths if folders is not None else ():
            yield {"folder": path}
        for key, value in self._index.valued(name):
            yield {"property": {key: value}}
        tag = self._index.tag(name)
        if tag is not None:
            yield {"tag": tag}
        notes = self._index.find(name, ("note",))
        if notes is not None and folders is None:
            yield {"paths": list(notes.paths)}

    # --- holes ----------------------------------------------------------------------------------------------------------------------

    def _hole(self, name: str, start: int, before: Walked) -> list[Part]:
        of = before.values.get("property") if name == "values" else None
        key = (name, start, of)
        if key not in self._holes:
            self._holes[key] = list(self._fresh(name, start, of))
        return self._holes[key]

    def _fresh(self, name: str, start: int, of: str | None) -> Iterator[Part]:
        match name:
            case "folders":
                yield from self._several(start, self._folder)
            case "tags" | "hashtags":
                marked = name == "hashtags"
                yield from listed(self._tokens, start, lambda at: self._tag(at, marked=marked))
            case "values":
                yield from self._several(start, lambda at: self._value(at, of))
            case "property":
                yield from self._each(start, 4, self._property)
            case "note":
                yield from self._each(start, _LONGEST_HOLE, self._note)
            case "targets":
                yield from listed(self._tokens, start, lambda at: list(self._each(at, _LONGEST_HOLE, self._note)))
            case "span":
                yield from self._each(start, 6, self._span)
            case "before":
                yield from self._each(start, 9, self._before)
            case "text":
                yield from self._each(start, _LONGEST_TEXT, self._said)
            case "texts":
                yield from listed(self._tokens, start, self._one_text)
            case "state" | "kind" | "maker":
                yield from self._each(start, 4, lambda words: self._meant(words, name))
            case "valued":
                yield from self._each(start, 4, self._valued)
            case "dueOn" | "number" | "year":
                read = {"dueOn": self._due_on, "number": self._number, "year": self._year}[name]
                yield from self._each(start, 1, read)

    def _several(self, start: int, read: Callable[[int], list[Part]]) -> Iterator[Part]:
        for part in listed(self._tokens, start, read):
            yield Part(part.end, part.value[1], part.cost, part.doubt)

    def _each(self, start: int, longest: int, read: Callable[[Stretch], Part | None]) -> Iterator[Part]:
        for end in range(start + 1, min(start + longest, len(self._tokens)) + 1):
            words = self._words(start, end)
            if not words.ragged and (part := read(words)) is not None:
                yield part

    def _folder(self, start: int) -> list[Part]:
        return list(self._each(start, _LONGEST_HOLE, self._one_folder))

    def _one_folder(self, words: Stretch) -> Part | None:
        reading = name_slots.folder(words, self._index, self._around, existing=True, free=False)
        if reading is None or reading.issue in ("unknown", "inactive") or reading.value == "":
            return None
        if reading.issue == "ambiguous":
            doubt = f"“{reading.text}” may be {' or '.join(reading.choices[:3])}"
            return Part(words.end, reading.choices[0], reading.cost + 0.3, doubt)
        return Part(words.end, reading.value, reading.cost)

    def _tag(self, start: int, *, marked: bool) -> list[Part]:
        found = []
        for end in (start + 1, start + 2):
            if end > len(self._tokens):
                break
            words = self._words(start, end)
            if words.ragged or (marked and words.last.kind != "tag"):
                continue
            reading = word_slots.tag(words, free=True)
            if reading is None:
                continue
            known = self._index.tag(reading.value)
            if known is not None:
                found.append(Part(end, known))
            elif words.last.kind == "tag" or words.quoted is not None or (end == start + 1 and words.last.lower not in _NO_TEXT):
                found.append(Part(end, reading.value, 0.3, f"no note has the tag #{reading.value}"))
        return found

    def _property(self, words: Stretch) -> Part | None:
        said = words.quoted or words.raw
        name = self._index.property(said)
        if name is None and words.quoted is None and len(words) > 1 and words.last.lower == "date":
            name = self._index.property(said[: words.part(words.start, words.end - 1).last.end - words.first.start])
        return Part(words.end, name) if name is not None else None

    def _value(self, start: int, of: str | None) -> list[Part]:
        found = []
        for end in range(start + 1, min(start + 6, len(self._tokens)) + 1):
            words = self._words(start, end)
            if words.ragged or of is None:
                continue
            known = self._index.value(of, words.quoted or words.raw)
            if known is not None:
                found.append(Part(end, known[0]))
            elif words.quoted is not None:
                found.append(Part(end, words.quoted, 0.3, f"no note has “{words.quoted}” as {of}"))
        return found

    def _note(self, words: Stretch) -> Part | None:
        reading = name_slots.note(words, self._index, self._around)
        if reading is None or reading.value is None or reading.issue is not None:
            return None
        return Part(words.end, reading.value, reading.cost)

    def _span(self, words: Stretch) -> Part | None:
        span = dates.parse(words.raw, self._around.today)
        return Part(words.end, span) if span is not None else None

    def _before(self, words: Stretch) -> Part | None:
        said = words.spoken.removeprefix("is ").removeprefix("are ")
        if words.first.lower in ("before", "until") or dates.parse(said.removeprefix("older than "), self._around.today):
            return None
        cutoff = dates.parse_cutoff(words.raw, self._around.today)
        return Part(words.end, cutoff.isoformat()) if cutoff is not None else None

    def _said(self, words: Stretch) -> Part | None:
        if words.quoted is not None:
            return Part(words.end, words.quoted)
        if not all(token.kind in ("word", "tag") or token.text in "-'’&+" for token in words) or words.first.lower in _NO_TEXT:
            return None
        if words.last.lower in _NO_TEXT:
            return None
        return Part(words.end, words.raw, 0.02 * len(words) + 0.15 * sum(token.lower in _NO_TEXT for token in words))

    def _meant(self, words: Stretch, hole: str) -> Part | None:
        """What a word stands for in this vault."""
        if words.quoted is None and (not words.plain or words.last.lower in _NO_TEXT):
            return None
        read = {"state": type_nouns.states, "kind": type_nouns.kinds, "maker": type_nouns.makers}[hole]
        meanings = list(read(words.quoted or words.raw, self._index))
        return Part(words.end, type_nouns.one_of(meanings)) if meanings else None

    def _valued(self, words: Stretch) -> Part | None:
        """A value before the name of its property: "gold tier"."""
        if len(words) < 2 or not words.plain:
            return None
        for at in range(words.start + 1, words.end):
            name = self._index.property(words.part(at, words.end).raw)
            value = self._index.value(name, words.part(words.start, at).raw) if name is not None else None
            if name is not None and value is not None:
                return Part(words.end, {"property": {name: value[0]}})
        return None

    def _due_on(self, words: Stretch) -> Part | None:
        """The one property that holds when something is due."""
        if words.first.lower != "due":
            return None
        names = {name for said in ("due", "due date", "deadline") if (name := self._index.property(said)) is not None}
        return Part(words.end, names.pop()) if len(names) == 1 else None

    def _number(self, words: Stretch) -> Part | None:
        text = words.first.text
        return Part(words.end, float(text) if "." in text else int(text)) if _NUMBER.fullmatch(text) else None

    def _year(self, words: Stretch) -> Part | None:
        span = dates.parse(words.raw, self._around.today) if _YEAR.fullmatch(words.first.text) else None
        return Part(words.end, (words.first.text, span)) if span is not None else None

    def _one_text(self, start: int) -> list[Part]:
        """A text without "and" and "or", which join it to others."""
        return list(self._each(start, _LONGEST_TEXT, lambda words: None if _JOINED & set(words.lowers) else self._said(words)))

    def _words(self, start: int, end: int) -> Stretch:
        return Stretch(self._text, self._tokens, start, end)


_NUMBER = regex.compile(r"-?\d{1,15}(?:\.\d{1,10})?")
_YEAR = regex.compile(r"(?:19|20)\d\d")
_FREE = word_set("my all the and or of our every each notes note files pages from in")
_NO_TEXT = word_set("in from to into and or of with that which the a an all any as is are by on for under tagged")
_PARTS = frozenset(type_nouns.NEVER) | _PRONOUNS | _LOOSE | frozenset(("today", "yesterday", "tomorrow"))
_JOINED = frozenset(("and", "or", "both", "either"))
_IRREGULAR = word_set("people children men women series media")
_PLURAL = frozenset(("everything", "anything", "everyone", "everybody", "stuff", "all"))
_PROPERTY_IN_BRACKETS = Modifier(
    phrases.parse("[with|the] {property} [of|=|:|is] {values}").segments[0], lambda values: set_modifiers.of_property(values)
)


def _plural(token: Token) -> bool:
    return token.lower != token.stem or token.lower in _IRREGULAR


def _texts(value: Any) -> Iterator[str]:
    """All texts in a condition."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from _texts(each)
    elif isinstance(value, list):
        for each in value:
            yield from _texts(each)
