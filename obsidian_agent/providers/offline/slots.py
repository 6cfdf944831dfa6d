"""Reading slots: which value a stretch of tokens gives for a parameter, by the parameter's kind."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import regex

from obsidian_agent.providers.offline import dates
from obsidian_agent.providers.offline.lexicon import CALLED, DETERMINERS, FOLDER_NOUNS, NEGATIONS, NOTE_NOUNS, PREPOSITIONS, members
from obsidian_agent.providers.offline.names import Closeness, NameIndex, NameSort
from obsidian_agent.providers.offline.readings import Reading, Surroundings
from obsidian_agent.providers.offline.recipe import RecipeParameter, SlotKind
from obsidian_agent.providers.offline.tokens import Token

_CLOSENESS_COST = {Closeness.EXACT: 0.0, Closeness.STEMS: 0.2, Closeness.LOOSE: 0.3, Closeness.NEAR: 0.5}
_LONGEST: Mapping[SlotKind, int] = {"tag": 4, "number": 3, "property": 5, "value": 10, "date": 7, "before": 10}
_NAME_WORDS = 10
_THIS = regex.compile(r"(?:this|the current|current|the active|active|the open|my current)(?: (?:note|file|page|document|one))?|the (?:open|current) (?:note|file|page)")
_THIS_FOLDER = regex.compile(r"(?:this|the current|current|the active|the same) (?:folder|directory)")
_ROOT = regex.compile(
    r"(?:the )?(?:vault )?root(?: folder| of the vault| of my vault)?|(?:the |my )?(?:whole |entire )?vault|everywhere|(?:all|every) (?:my )?notes?|top level"
)
_SELECTED = regex.compile(
    r"(?:the |my |this )?(?:selection|(?:currently )?(?:selected|highlighted|marked) (?:text|lines?|bullets?|items?|paragraphs?|passages?|part|list)|"
    r"text (?:i|i've|i have) selected)"
)
_DAILY = regex.compile(
    r"(?:the |my )?(?:(?P<before>.+?)(?:'s)? )?(?:daily note|daily page|journal|journal note)(?: page)?(?: (?:of|for|from|on))?(?: (?P<after>.+))?"
)
_TEXT_NOUNS = frozenset("the a an this following text line words word sentence phrase string bullet item occurrences occurrence of every each all".split())
_DESCRIBING = frozenset("a an some more the my few several better another short long this these those its any all every each".split())
"""Words with which people describe a text instead of giving it: "add a conclusion"."""

_TELLING = PREPOSITIONS | NEGATIONS | frozenset("using based template containing that which and or all every each about links tasks so because".split())
"""Words that rarely belong to a name and mostly say something about it."""

_PARTING = frozenset("please now then instead too thanks".split())
_EXPLAINING = frozenset("about that which how why what who explaining describing summarising summarizing".split())
"""Words after which a note's content is described: a bare name does not go on so."""

_JOINING = frozenset(("and", "then", "but", "or"))
_VERBS = frozenset(verb for head in ("create", "rename", "move", "delete", "merge", "split", "replace", "append", "copy", "run") for verb in members(head))

_WORN = frozenset("name tag tags text task note file folder heading link links content word line template copy".split())
"""Nouns that are seldom meant as the name of a property."""

_NAME_NOUNS = CALLED | frozenset("name title new the a an as by under".split())
_HEADING_NOUNS = frozenset("heading header section headline list".split())
_PROPERTY_NOUNS = frozenset("property field key attribute frontmatter metadata".split())
_ORDINALS = {"first": 1, "second": 2, "third": 3, "fourth": 4, "fifth": 5, "sixth": 6, "top": 1}


class SlotReader:
    """Reads slots of one instruction. Readings depend only on the kind and the stretch, and are kept."""

    def __init__(self, text: str, tokens: tuple[Token, ...], index: NameIndex, around: Surroundings) -> None:
        self.text = text
        self.tokens = tokens
        self._index = index
        self._around = around
        self._kept: dict[tuple[SlotKind, bool, bool, int, int], Reading | None] = {}
        self._readers: Mapping[SlotKind, Callable[[int, int, RecipeParameter, bool], Reading | None]] = {
            "note": self._note,
            "folder": self._folder,
            "entry": self._entry,
            "path": self._path,
            "newName": self._new_name,
            "destination": self._folder,
            "text": self._text,
            "heading": self._heading,
            "newHeading": self._heading,
            "tag": self._tag,
            "property": self._property,
            "value": self._value,
            "number": self._number,
            "date": self._date,
            "before": self._before,
            "template": self._template,
            "macro": self._macro,
        }

    def longest(self, kind: SlotKind) -> int:
        """The most tokens that a slot of this kind may take."""
        return _LONGEST.get(kind, 40 if kind == "text" else _NAME_WORDS + 6)

    def read(self, parameter: RecipeParameter, free: bool, start: int, end: int) -> Reading | None:
        """The reading of tokens `start` to `end` (exclusive), or None when they cannot be one."""
        key = (parameter.kind, parameter.existing, free, start, end)
        if key not in self._kept:
            first, last = self.tokens[start], self.tokens[end - 1]
            ragged = first.kind == "mark" or (last.kind == "mark" and last.text in ",.;:!?")
            self._kept[key] = None if ragged else self._readers[parameter.kind](start, end, parameter, free)
        return self._kept[key]

    # --- stretches ------------------------------------------------------------------------------------------------------------

    def _raw(self, start: int, end: int) -> str:
        return self.text[self.tokens[start].start : self.tokens[end - 1].end]

    def _trim(self, start: int, end: int, before: Iterable[str], after: Iterable[str] = ()) -> tuple[int, int]:
        """The stretch without leading and trailing words of these sets; at least one token stays."""
        while start < end - 1 and self.tokens[start].lower in before:
            start += 1
        while start < end - 1 and self.tokens[end - 1].lower in after:
            end -= 1
        return start, end

    def _single(self, start: int, end: int) -> Token | None:
        """The quoted name or wikilink that a stretch consists of."""
        token = self.tokens[start]
        return token if end - start == 1 and token.kind in ("quoted", "link") else None

    def _plain(self, start: int, end: int) -> bool:
        """Only words and the marks that names hold."""
        return all(token.kind == "word" or (token.kind == "mark" and token.text in "-–—&+'’()") for token in self.tokens[start:end])

    def _lowers(self, start: int, end: int) -> list[str]:
        return [token.lower for token in self.tokens[start:end]]

    # --- names that exist -----------------------------------------------------------------------------------------------------

    def _note(self, start: int, end: int, parameter: RecipeParameter, free: bool) -> Reading | None:
        return self._this_note(start, end) or self._daily_note(start, end) or self._named(start, end, ("note",))

    def _entry(self, start: int, end: int, parameter: RecipeParameter, free: bool) -> Reading | None:
        found = self._this_note(start, end) or self._daily_note(start, end)
        if found is not None:
            return found
        words = self._lowers(start, end)
        folders = any(word in FOLDER_NOUNS for word in (words[0], words[-1], words[min(1, len(words) - 1)]))
        notes = any(word in NOTE_NOUNS for word in (words[0], words[min(1, len(words) - 1)]))
        sorts: tuple[NameSort, ...] = ("folder",) if folders and not notes else ("note",) if notes and not folders else ("note", "folder", "file")
        return self._named(start, end, sorts)

    def _this_note(self, start: int, end: int) -> Reading | None:
        raw = " ".join(self._lowers(start, end))
        if not _THIS.fullmatch(raw):
            return None
        active = self._around.active_file
        if active is None:
            return Reading(0.3, None, raw, issue="inactive")
        return Reading(0.0, active, raw, reference="activeFile")

    def _daily_note(self, start: int, end: int) -> Reading | None:
        raw = self._raw(start, end)
        match = _DAILY.fullmatch(" ".join(raw.casefold().replace("’", "'").split()))
        if match is None or (match["before"] is not None and match["after"] is not None):
            return None
        span = dates.parse(match["before"] or match["after"] or "today", self._around.today)
        if span is None or span.day is None:
            return None
        path = self._index.names.daily_note(span.day)
        if path in self._index.names.notes:
            return Reading(0.0, path, raw)
        return Reading(0.5, None, raw, issue="unknown")

    def _named(self, start: int, end: int, sorts: tuple[NameSort, ...]) -> Reading | None:
        nouns = (FOLDER_NOUNS if "folder" in sorts else frozenset()) | (NOTE_NOUNS if "note" in sorts else frozenset())
        inner = self._trim(start, end, DETERMINERS | nouns | CALLED, nouns)
        single = self._single(*inner)
        words = inner[1] - inner[0]
        if words > _NAME_WORDS or (single is None and not self._plain(*inner)):
            return None
        names = [single.text] if single else self._trimmings(start, end, *inner)
        for name in names:
            found = self._index.find(name, sorts)
            if found is not None:
                cost = _CLOSENESS_COST[found.closeness]
                if len(found.paths) > 1:
                    return Reading(cost, None, name, issue="ambiguous", choices=found.paths)
                return Reading(cost, found.paths[0], name)
        return self._unknown(names[-1], quoted=single is not None, words=words)

    def _trimmings(self, start: int, end: int, first: int, last: int) -> list[str]:
        """What a name may be, from all the words to those that are left without articles and nouns: "the New project note"."""
        return [self._raw(begin, finish) for begin in range(start, first + 1) for finish in range(end, last - 1, -1)]

    def _unknown(self, raw: str, *, quoted: bool, words: int) -> Reading | None:
        if words > 6:
            return None
        return Reading(0.5 if quoted else 0.9 + 0.1 * words, None, raw, issue="unknown")

    # --- folders, and names that come into being ------------------------------------------------------------------------------

    def _folder(self, start: int, end: int, parameter: RecipeParameter, free: bool) -> Reading | None:
        raw = " ".join(self._lowers(start, end))
        if _ROOT.fullmatch(raw):
            return Reading(0.0, "", raw)
        if _THIS_FOLDER.fullmatch(raw):
            active = self._around.active_file
            return Reading(0.3, None, raw, issue="inactive") if active is None else Reading(0.0, active.rpartition("/")[0], raw, "activeFolder")
        found = self._named(start, end, ("folder",))
        if found is None or found.issue != "unknown" or parameter.existing:
            return found
        inner = self._trim(start, end, DETERMINERS | FOLDER_NOUNS | CALLED, FOLDER_NOUNS)
        said = any(word in FOLDER_NOUNS for word in self._lowers(start, end))
        name = found.text.strip("/")
        return Reading(0.1 if self._single(*inner) else self._newness(inner, said or free), name, name) if name else None

    def _newness(self, stretch: tuple[int, int], named: bool) -> float:
        """The doubt about bare words being a name that does not exist yet."""
        words = self.tokens[stretch[0] : stretch[1]]
        doubt = (0.15 if named else 0.0) + self._adverb(words)
        if any(self._index.find(self._raw(stretch[0], end), ("folder",)) for end in range(stretch[0] + 1, stretch[1])):
            doubt += 0.5
        if any(token.lower in _TELLING for token in words):
            doubt += 0.3 if named else 0.8
        if named:
            return doubt
        if "/" in words[0].text:
            return doubt + 0.1
        capital = words[0].text[:1].isupper() or words[0].text[:1].isdigit()
        return doubt + (0.15 if capital else 0.5) + 0.1 * (len(words) - 1)

    @staticmethod
    def _adverb(words: tuple[Token, ...]) -> float:
        """The doubt that the last word says how ("quickly") and is no part of a name."""
        return 0.6 if len(words) > 1 and regex.fullmatch(r"[a-z]{3,}ly", words[-1].text) else 0.0

    def _tale(self, start: int, end: int) -> float:
        """The doubt about bare words being one name: they may go on to say something else ("… and publish it on the web")."""
        doubt = self._adverb(self.tokens[start:end])
        for position in range(start, end):
            lower = self.tokens[position].lower
            following = self.tokens[position + 1].text[:1] if position + 1 < end else ""
            if lower in _JOINING and following.islower():
                doubt += 0.5
            elif lower in _TELLING:
                doubt += 0.2
        return doubt

    def _path(self, start: int, end: int, parameter: RecipeParameter, free: bool) -> Reading | None:
        inner = self._trim(start, end, DETERMINERS | NOTE_NOUNS | CALLED)
        single = self._single(*inner)
        if single is not None:
            return Reading(0.0, single.text, single.text)
        if not self._plain(*inner) or inner[1] - inner[0] > _NAME_WORDS:
            return None
        raw = self._raw(*inner)
        if raw.endswith(".md"):
            return Reading(0.0, raw, raw)
        if free:
            return Reading(0.01 * (inner[1] - inner[0]) + self._tale(*inner), raw, raw)
        if any(word in _EXPLAINING for word in self._lowers(*inner)):
            return None
        return Reading(0.2 + self._newness(inner, False), raw, raw)

    def _new_name(self, start: int, end: int, parameter: RecipeParameter, free: bool) -> Reading | None:
        inner = self._trim(start, end, _NAME_NOUNS, _PARTING)
        single = self._single(*inner)
        if single is not None:
            return Reading(0.0, single.text, single.text)
        if not self._plain(*inner) or inner[1] - inner[0] > _NAME_WORDS:
            return None
        raw = self._raw(*inner)
        return Reading(0.05 + 0.03 * (inner[1] - inner[0]) + self._tale(*inner), raw, raw)

    def _template(self, start: int, end: int, parameter: RecipeParameter, free: bool) -> Reading | None:
        inner = self._trim(start, end, DETERMINERS | CALLED | {"template"}, {"template"})
        single = self._single(*inner)
        if single is None and not self._plain(*inner):
            return None
        raw = single.text if single else self._raw(*inner)
        for name in (raw, f"{raw} template", self._raw(start, end)):
            found = self._index.find(name, ("note",))
            if found is None:
                continue
            paths = tuple(path for path in found.paths if "template" in path.casefold()) or found.paths
            if len(paths) == 1:
                return Reading(_CLOSENESS_COST[found.closeness], paths[0], raw)
            return Reading(_CLOSENESS_COST[found.closeness], None, raw, issue="ambiguous", choices=paths)
        return self._unknown(raw, quoted=single is not None, words=inner[1] - inner[0])

    def _macro(self, start: int, end: int, parameter: RecipeParameter, free: bool) -> Reading | None:
        inner = self._trim(start, end, DETERMINERS | CALLED | {"macro", "saved", "action"}, {"macro", "action"})
        single = self._single(*inner)
        if single is None and not self._plain(*inner):
            return None
        names = [single.text] if single else self._trimmings(start, end, *inner)
        known = {name.casefold(): name for name in self._around.macros}
        for name in names:
            if name.casefold() in known:
                return Reading(0.0, known[name.casefold()], name)
        return self._unknown(names[-1], quoted=single is not None, words=inner[1] - inner[0])

    # --- words ----------------------------------------------------------------------------------------------------------------

    def _text(self, start: int, end: int, parameter: RecipeParameter, free: bool) -> Reading | None:
        if _SELECTED.fullmatch(" ".join(self._lowers(start, end))):
            return Reading(0.0, "${selection}", self._raw(start, end), reference="selection")
        inner = self._trim(start, end, _TEXT_NOUNS)
        if inner[1] - inner[0] == 1 and self.tokens[inner[0]].kind == "quoted":
            return Reading(0.0, self.tokens[inner[0]].text, self.tokens[inner[0]].text)
        raw = self._raw(start, end)
        words = end - start
        doubt = 0.5 * sum(token.kind in ("quoted", "tag", "link") for token in self.tokens[start:end]) if words > 1 and not free else 0.0
        doubt += 0.5 * sum(token.lower in NEGATIONS for token in self.tokens[start:end])
        if self.tokens[start].lower in _DESCRIBING:
            doubt += 0.5
        if words > 1 and "about" in self._lowers(start, end):
            doubt += 0.5
        if self.tokens[end - 1].lower in DETERMINERS | PREPOSITIONS:
            doubt += 0.3
        doubt += 0.1 * max(0, words - 8)
        doubt += 0.7 * sum(
            token.lower in _JOINING and following.stem in _VERBS
            for token, following in zip(self.tokens[start:end], self.tokens[start + 1 : end], strict=False)
        )
        return Reading((0.05 if free else 0.35) + 0.03 * words + doubt, raw, raw)

    def _heading(self, start: int, end: int, parameter: RecipeParameter, free: bool) -> Reading | None:
        inner = self._trim(start, end, DETERMINERS | _HEADING_NOUNS | CALLED, _HEADING_NOUNS)
        single = self._single(*inner)
        if single is not None:
            return Reading(0.0, single.text, single.text)
        words = inner[1] - inner[0]
        if words > 8 or any(token.kind != "word" for token in self.tokens[inner[0] : inner[1]]):
            return None
        raw = self._raw(*inner)
        return Reading(0.05 + 0.03 * words, raw, raw)

    def _tag(self, start: int, end: int, parameter: RecipeParameter, free: bool) -> Reading | None:
        named = any(word in ("tag", "hashtag") for word in self._lowers(start, end))
        inner = self._trim(start, end, DETERMINERS | CALLED | {"tag", "hashtag"}, {"tag"})
        if inner[1] - inner[0] != 1:
            return None
        token = self.tokens[inner[0]]
        if token.kind == "tag":
            return Reading(0.0, token.text, token.text)
        name = token.text.removeprefix("#")
        if token.kind in ("word", "quoted") and regex.fullmatch(r"[\p{L}\p{N}\p{So}_/\-]*[^\d\s][\p{L}\p{N}\p{So}_/\-]*", name):
            return Reading(0.05 if named or free else 0.7, name, name)
        return None

    def _property(self, start: int, end: int, parameter: RecipeParameter, free: bool) -> Reading | None:
        named = free or any(word in _PROPERTY_NOUNS for word in self._lowers(start, end))
        inner = self._trim(start, end, DETERMINERS | _PROPERTY_NOUNS | CALLED, _PROPERTY_NOUNS)
        token = self.tokens[inner[0]]
        words = inner[1] - inner[0]
        if words == 1 and token.kind in ("quoted", "word") and not token.text.isdigit():
            if token.lower in PREPOSITIONS | DETERMINERS | NOTE_NOUNS:
                return None
            doubt = 0.0 if named else 0.3 if token.kind == "quoted" else 0.05
            return Reading(doubt + (0.7 if not named and token.lower in _WORN else 0.0), token.text, token.text)
        if words == 2 and self._plain(*inner) and not any(word in PREPOSITIONS for word in self._lowers(*inner)):
            return Reading(0.1 if named else 0.5, self._raw(*inner), self._raw(*inner))
        return None

    def _value(self, start: int, end: int, parameter: RecipeParameter, free: bool) -> Reading | None:
        inner = self._trim(start, end, {"the", "value", "a"})
        token = self.tokens[inner[0]]
        raw = self._raw(*inner)
        if inner[1] - inner[0] == 1:
            if token.kind == "quoted":
                return Reading(0.0, token.text, raw)
            return Reading(0.0 if token.kind == "link" else 0.02, raw if token.kind == "link" else self._typed(raw), raw)
        if token.lower in PREPOSITIONS or any(each.kind == "quoted" for each in self.tokens[inner[0] : inner[1]]):
            return None
        doubt = 0.5 * sum(each.lower in NEGATIONS for each in self.tokens[inner[0] : inner[1]])
        return Reading(0.05 + 0.05 * (inner[1] - inner[0]) + doubt, self._typed(raw), raw)

    def _typed(self, raw: str) -> Any:
        """A bare value as Obsidian would type it: a checkbox, a number, a day, else text."""
        folded = raw.casefold()
        if folded in ("true", "false"):
            return folded == "true"
        if regex.fullmatch(r"-?\d{1,15}", raw) and not regex.match(r"-?0\d", raw):
            return int(raw)
        if regex.fullmatch(r"-?\d{1,15}\.\d{1,10}", raw):
            return float(raw)
        if folded in ("today", "yesterday", "tomorrow", "today's date"):
            span = dates.parse(folded.removesuffix("'s date"), self._around.today)
            return span.day.isoformat() if span and span.day else raw
        return raw

    def _number(self, start: int, end: int, parameter: RecipeParameter, free: bool) -> Reading | None:
        raw = " ".join(self._lowers(start, end))
        if match := regex.fullmatch(r"(?:level |h)?(\d{1,6})(?:st|nd|rd|th)?(?:[ -]level)?", raw):
            return Reading(0.0, int(match[1]), raw)
        word = raw.removesuffix(" level").removesuffix("-level")
        return Reading(0.0, _ORDINALS[word], raw) if word in _ORDINALS else None

    def _date(self, start: int, end: int, parameter: RecipeParameter, free: bool) -> Reading | None:
        span = dates.parse(self._raw(start, end), self._around.today)
        return Reading(0.0, span.day.isoformat(), self._raw(start, end)) if span and span.day else None

    def _before(self, start: int, end: int, parameter: RecipeParameter, free: bool) -> Reading | None:
        day = dates.parse_cutoff(self._raw(start, end), self._around.today)
        return Reading(0.0, day.isoformat(), self._raw(start, end)) if day else None
