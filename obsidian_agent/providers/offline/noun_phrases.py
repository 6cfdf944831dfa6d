"""Heads of descriptions of notes: "all my notes", "every meeting", "the movies and shows", "PDFs", "Q1 to Q4", "everything"."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from obsidian_agent.providers.offline import phrases, type_nouns
from obsidian_agent.providers.offline.ground import NO_TEXT
from obsidian_agent.providers.offline.lexicon import DETERMINERS, NEGATIONS, NOTE_NOUNS, stem, word_set
from obsidian_agent.providers.offline.name_lists import NameLists, listed
from obsidian_agent.providers.offline.names import Closeness
from obsidian_agent.providers.offline.set_clauses import FREE, SetClauses
from obsidian_agent.providers.offline.set_holes import SetHoles
from obsidian_agent.providers.offline.set_modifiers import Where, both
from obsidian_agent.providers.offline.stretch import Stretch
from obsidian_agent.providers.offline.strict import Part, Walked, walk
from obsidian_agent.providers.offline.tokens import Token

_QUANTIFIERS = word_set("all every each any both of the my our these those only just two three four five six seven eight nine ten")
_EACH = frozenset(("every", "each", "any", "all"))
_COUNTS = word_set("any two three four five six seven eight nine ten")
_DEFINITE = frozenset(("the", "my", "our", "that"))
_PRONOUNS = word_set("everything anything everyone everybody anyone anybody those all ones things stuff whatever")
_LOOSE = word_set("file files everything anything things stuff whatever")
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
_LONGEST_KIND = 3
_WHOLE = phrases.parse("([all of] (my|the|this) [whole|entire] vault|everywhere|vault-wide)").segments[0]
_PARTS = frozenset(type_nouns.NEVER) | _PRONOUNS | _LOOSE | frozenset(("today", "yesterday", "tomorrow"))
_IRREGULAR = word_set("people children men women series media")
_PLURAL = frozenset(("everything", "anything", "everyone", "everybody", "stuff", "all", "whatever"))
ONE = "note"
"""The kind of a description that means a single note ("the book I am reading")."""


class NounPhrases:
    """Reads heads in one instruction, with the modifiers around them."""

    def __init__(self, holes: SetHoles, clauses: SetClauses, lists: NameLists) -> None:
        self._holes = holes
        self._tokens = holes.tokens
        self._index = holes.index
        self._clauses = clauses
        self._lists = lists

    def described(self, start: int) -> Iterator[Part]:
        """Head with modifiers, a list of names, or words made clear in brackets; the values are `where` and `kind`."""
        at = start
        while True:
            yield from self._headed(at, start)
            if at >= len(self._tokens) or self._tokens[at].lower not in _QUANTIFIERS or self._of_several(at):
                break
            at += 1
        for part in self._lists.at(start):
            where: Where = {"paths": list(part.value)}
            yield from self._clauses.modified(Part(part.end, where, part.cost, part.doubt), "notes")
        yield from self._clauses.bracketed(start)
        for walked in walk(_WHOLE, self._tokens, Walked(start), self._holes.read):
            yield Part(walked.end, {"where": {}, "kind": "notes"})

    def _headed(self, at: int, start: int) -> Iterator[Part]:
        """From a place behind the quantifiers: modifiers, then a head, then modifiers. A bare noun needs some of them."""
        for front in self._clauses.in_front(at):
            head = front.end
            if head >= len(self._tokens):
                continue
            yield from self._typed(front, start)
            yield from self._days(front)
            token = self._tokens[head]
            kind = _kind_of(token)
            if kind is None:
                continue
            endings, name = kind
            if name == "attachments" and head + 1 < len(self._tokens) and self._tokens[head + 1].lower in _LOOSE:
                head += 1
            said = front.end > start or stem(token.lower) in _PLURAL or token.lower != token.stem
            where = both(front.value, {"extension": list(endings)}) if endings else front.value
            for part in self._clauses.modified(Part(head + 1, where, front.cost, front.doubt), name):
                if said or part.end > head + 1:
                    yield part

    def _typed(self, front: Part, start: int) -> Iterator[Part]:
        """A head that is a kind of note in this vault ("movies", "meeting notes"), in the plural, behind "every", or with a noun."""
        quantified = any(token.lower in _EACH for token in self._tokens[start : front.end])
        definite = any(token.lower in _DEFINITE for token in self._tokens[start : front.end])
        for part in listed(self._tokens, front.end, self._plural_kind, frozenset(("and",))):
            if len(part.value[1]) > 1 and (meanings := type_nouns.joint(part.value[1])):
                where = both(front.value, type_nouns.one_of(meanings))
                yield from self._clauses.modified(Part(part.end, where, front.cost + 0.05, front.doubt), "notes")
        for end in range(front.end + 1, min(front.end + _LONGEST_KIND, len(self._tokens)) + 1):
            words = self._holes.words(front.end, end)
            if not words.plain or words.ragged or words.last.lower in NO_TEXT | _QUANTIFIERS | _PRONOUNS:
                break
            noun = end < len(self._tokens) and self._tokens[end].lower in NOTE_NOUNS
            plural = _plural(words.last) or (words.raw.islower() and self._called_so(words.raw))
            meanings = list(type_nouns.kinds(words.raw, self._index))
            doubt = None
            if meanings and not (noun or plural or quantified or type_nouns.inflected(words.raw, self._index)):
                yield from self._bare_kind(front, words, meanings, definite)
                continue
            if plural and not noun and not meanings:
                yield from self._kind_by_names(front, words)
            if not meanings and not noun and plural and len(words) == 1 and words.last.lower not in _PARTS:
                yield from self._unknown_kind(front, end)
            if not meanings and noun and len(words) == 1 and words.last.lower not in FREE | DETERMINERS | NEGATIONS:
                meanings = [{"name": words.raw}]
                doubt = f"“{words.raw}” is taken as a part of the names"
            single = noun and not quantified and self._tokens[end].lower == self._tokens[end].stem
            if meanings:
                where = both(front.value, type_nouns.one_of(meanings))
                head = Part(end + int(noun), where, front.cost + (0.5 if doubt else 0.3 if single else 0.05), front.doubt or doubt)
                named = front.end == start and not noun and words.first.text[:1].isupper()
                yield from (part for part in self._clauses.modified(head, "notes") if not named or part.end > head.end)

    def _days(self, front: Part) -> Iterator[Part]:
        """Daily notes by the days that they are of: "the days on which I ran"."""
        if self._tokens[front.end].lower != "days":
            return
        where = both(front.value, dict(self._index.names.daily_set))
        for part in self._clauses.modified(Part(front.end + 1, where, front.cost + 0.1, front.doubt), "notes"):
            if part.end > front.end + 1 and where and set(part.value["where"]) != set(where):
                yield part

    def _of_several(self, at: int) -> bool:
        """Whether only some of what follows is meant: "two of the projects"."""
        following = self._tokens[at + 1].lower if at + 1 < len(self._tokens) else ""
        return following == "of" and self._tokens[at].lower in _COUNTS

    def _in_one_folder(self, name: str) -> bool:
        """Whether the notes that have this in their names are all in one folder: then it tells of what sort they are."""
        found = self._index.meant({"where": {"name": name}, "kind": "notes"})
        return found is not None and len({path.rpartition("/")[0] for path in found}) == 1

    def _called_so(self, words: str) -> bool:
        """Whether a folder has this very name."""
        found = self._index.find(words, ("folder",))
        return found is not None and found.closeness == Closeness.EXACT

    def _bare_kind(self, front: Part, words: Stretch, meanings: list[Where], definite: bool) -> Iterator[Part]:
        """A kind in the singular: all of it where it is called so ("literature from 2019"), else a single note ("the book I am reading")."""
        collective = type_nouns.collective(words.raw, meanings)
        if not collective and not definite:
            return
        head = Part(words.end, both(front.value, type_nouns.one_of(meanings)), front.cost + 0.1, front.doubt)
        for part in self._clauses.modified(head, "notes" if collective else ONE):
            if part.end > head.end or front.value or (definite and not collective and type_nouns.of_values(meanings)):
                yield part

    def _kind_by_names(self, front: Part, words: Stretch) -> Iterator[Part]:
        """What several notes are called, and kinds with a part of the names: "the Monday rounds", "the supervision meetings"."""
        if any(token.lower in NO_TEXT | _PARTS for token in words):
            return
        found = self._index.held_in_names(words.raw)
        if found is not None and (len(words) > 1 or self._in_one_folder(found)):
            head = Part(words.end, both(front.value, {"name": found}), front.cost + 0.2, front.doubt)
            yield from (part for part in self._clauses.modified(head, "notes") if len(words) > 1 or part.end > words.end)
        for at in range(words.start + 1, words.end):
            meanings = list(type_nouns.kinds(words.part(at, words.end).raw, self._index))
            part_of = self._index.held_in_names(words.part(words.start, at).raw) if meanings else None
            if part_of is not None:
                where = both(front.value, type_nouns.one_of(meanings), {"name": part_of})
                yield from self._clauses.modified(Part(words.end, where, front.cost + 0.3, front.doubt), "notes")

    def _unknown_kind(self, front: Part, end: int) -> Iterator[Part]:
        """A noun that the vault does not know, of notes in a folder: "the vacations in Travel"."""
        for part in self._clauses.modified(Part(end, front.value, front.cost + 0.4, front.doubt), "notes"):
            if part.end > end and "folder" in part.value["where"]:
                doubt = f"“{self._tokens[end - 1].text}” is taken to mean the notes there"
                yield Part(part.end, part.value, part.cost, part.doubt or doubt)

    def _plural_kind(self, at: int) -> list[Part]:
        """What nouns in the plural may mean from a token on, each with all its meanings."""
        return list(self._holes.each(at, _LONGEST_KIND, self._one_kind))

    def _one_kind(self, words: Stretch) -> Part | None:
        if not words.plain or not _plural(words.last) or words.last.lower in NO_TEXT:
            return None
        meanings = list(type_nouns.kinds(words.raw, self._index))
        return Part(words.end, meanings) if meanings else None


def _kind_of(token: Token) -> tuple[tuple[str, ...], str] | None:
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


def _plural(token: Token) -> bool:
    return token.lower != token.stem or token.lower in _IRREGULAR
