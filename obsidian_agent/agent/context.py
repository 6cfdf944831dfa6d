"""What goes along with a message: what it mentions, the open note, and the notes that the index ranks highest for its words.

A person mentions notes, folders and tags like this: `@Garden`, `@[[Projects/Plan]]`, `@"Big plan"`, `@Projects/`, `@#work`. However notes are
put into the message, their text is fenced and labelled as data.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import Enum
from functools import cached_property
from itertools import groupby
from types import MappingProxyType
from typing import Final, Literal

from obsidian_agent.agent.conversation import estimate
from obsidian_agent.agent.privacy.consent import Level, ShareItem
from obsidian_agent.agent.privacy.untrusted_text import fence, neutral
from obsidian_agent.dataclass import dataclass
from obsidian_agent.errors import ToolError, VaultError
from obsidian_agent.tools.core.lookup import read_text
from obsidian_agent.tools.core.tool import RunContext
from obsidian_agent.vault.index.name_search import NameSearch
from obsidian_agent.vault.index.word_search import ranked, words_of
from obsidian_agent.vault.links.resolve import name_key
from obsidian_agent.vault.paths.path import ROOT, PathUse, VaultPath, parse
from obsidian_agent.vault.views.view import VaultView

MentionKind = Literal["note", "folder", "tag"]
_MENTION: Final = re.compile(
    r'(?<![\w@])@(?:\[\[([^\]\n|#]+)(?:[|#][^\]\n]*)?\]\]|"([^"\n]+)"|(#[\w/-]+)|([^\s@"\[\](),;]+))'
)
_TYPED: Final = re.compile(r'(?<![\w@])@(\[\[[^\]\n]*|"[^"\n]*|[^\s@"\[\](),;]*)$')
_PLAIN: Final = re.compile(r'[^\s@"\[\](),;]+')
_END: Final = ".:!?…"


@dataclass(frozen=True, slots=True)
class Mention:
    """A mention as it was written: `text` is what it names, without the marks. A folder ends with `/`, a tag begins with `#`."""

    text: str

    @property
    def kind(self) -> MentionKind:
        if self.text.startswith("#"):
            return "tag"
        return "folder" if self.text.endswith("/") else "note"


@dataclass(frozen=True, slots=True)
class MentionCompletion:
    """Something that a mention which is being typed may become. `insert` takes the place of everything from the `@` on."""

    label: str
    kind: MentionKind
    insert: str


def mentions_in(message: str) -> list[Mention]:
    """The mentions of a message, each once, in order."""
    found: dict[str, Mention] = {}
    for match in _MENTION.finditer(message):
        linked, quoted, tag, plain_context = match.groups()
        text = (linked or quoted or tag or plain_context.rstrip(_END)).strip()
        if text:
            found.setdefault(text, Mention(text))
    return list(found.values())


def typed_mention(before_cursor: str) -> str | None:
    """What stands behind the `@` right before the cursor; None when no mention is being typed."""
    match = _TYPED.search(before_cursor)
    return None if match is None else match.group(1).lstrip('["')


def mention_of(text: str) -> str:
    return f"@{text}" if _PLAIN.fullmatch(text) and text[-1] not in _END else f'@"{text}"'


class Mentionable:
    """Everything in a vault that can be mentioned, at one moment, ready to be searched. Making it may block; searching is fast."""

    def __init__(self, view: VaultView) -> None:
        entries = list(view.walk(ROOT))
        notes = [
            entry.path.text for entry in entries if entry.kind == "file" and entry.path.is_note
        ]
        folders = [entry.path.text for entry in entries if entry.kind == "folder"]
        self._names = NameSearch([*notes, *folders])
        self._folders = frozenset(folders)
        self._first = [*notes[:20], *folders[:5]]
        self._tags = _tags(view)

    def complete(self, typed: str, limit: int = 8) -> tuple[MentionCompletion, ...]:
        """The best completions of what stands behind the `@`."""
        if typed.startswith("#"):
            wanted = typed[1:].casefold()
            starting = [tag for tag in self._tags if tag.casefold().startswith(wanted)]
            inside = [tag for tag in self._tags if wanted in tag.casefold() and tag not in starting]
            return tuple(
                MentionCompletion(f"#{tag}", "tag", f"@#{tag}")
                for tag in (*starting, *inside)[:limit]
            )
        if not typed.strip("/ "):
            return tuple(self._completion(path) for path in self._first[:limit])
        return tuple(
            self._completion(hit.path) for hit in self._names.search(typed.rstrip("/"), limit).hits
        )

    def nearest(self, name: str) -> str | None:
        """The name that comes nearest to one that does not exist."""
        hits = self._names.search(name.rstrip("/"), 1).hits
        return hits[0].path if hits else None

    def _completion(self, path: str) -> MentionCompletion:
        if path in self._folders:
            return MentionCompletion(f"{path}/", "folder", mention_of(f"{path}/"))
        return MentionCompletion(path, "note", mention_of(path.removesuffix(".md")))


def _tags(view: VaultView) -> list[str]:
    """Every tag of the vault, the one that most notes have first."""
    counted: dict[str, int] = {}
    for tag in _each_tag(view):
        counted[tag] = counted.get(tag, 0) + 1
    return sorted(counted, key=lambda tag: (-counted[tag], tag))


def _each_tag(view: VaultView) -> Iterator[str]:
    index = view.index
    for path in index.notes(ROOT):
        yield from index.facts(path).tags


class Why(Enum):
    """Why it goes along, what matters most first."""

    MENTIONED = "you mentioned it"
    IN_FOLDER = "in a folder that you mentioned"
    WITH_TAG = "has a tag that you mentioned"
    OPEN = "is open"
    MATCHING = "fits your words"


REQUESTED = frozenset({Why.MENTIONED, Why.IN_FOLDER, Why.WITH_TAG, Why.OPEN})
"""What the person has asked for is asked about where no rule settles it; what was merely found goes along only where one does."""


@dataclass(frozen=True)
class ContextItem:
    """A note that may go along. `text` is of it what would be sent; `cut` says that this is not all. `size` in bytes is the file's."""

    path: VaultPath
    why: Why
    text: str
    size: int
    cut: bool = False
    score: float = 0.0

    @cached_property
    def tokens(self) -> int:
        return estimate(self.text)

    def share_item(self) -> ShareItem:
        """It as a question about sharing shows it."""
        return ShareItem(self.path, Level.TEXT, self.size, self.tokens, self.why.value)

    def shortened(self, tokens: int) -> ContextItem:
        """Its beginning, cut at the end of a line if there is one, in about so many tokens."""
        if self.tokens <= tokens:
            return self
        kept = beginning(self.text, tokens)
        return ContextItem(self.path, self.why, kept, self.size, True, self.score)


@dataclass(frozen=True, slots=True)
class Missed:
    """A mention that means nothing in the vault, with the nearest thing that there is."""

    text: str
    nearest: str | None = None


@dataclass(frozen=True, slots=True)
class Gathered:
    """What may go along with a message, the most important first, and which mentions mean nothing. `more`: notes that were left out."""

    items: tuple[ContextItem, ...] = ()
    missed: tuple[Missed, ...] = ()
    more: int = 0


def beginning(text: str, tokens: int) -> str:
    """The beginning of a text in about so many tokens, cut at the end of a line where there is one."""
    if tokens <= 0:
        return ""
    length = _largest(len(text), lambda length: estimate(text[:length]) <= tokens)
    kept = text[:length]
    line = kept.rfind("\n")
    return kept[: line + 1] if line > length // 2 else kept


def _largest(most: int, fits: Callable[[int], bool]) -> int:
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(middle) else (low, middle - 1)
    return low


ContextFormat = Callable[[Sequence[ContextItem], str], str]
"""A way of putting notes into a message, as text ("" for none); the second argument is the request's mark for fences."""


def plain_context(items: Sequence[ContextItem], mark: str) -> str:
    """One note after the other."""
    return "\n\n".join(_fenced(item, mark) for item in items)


def structured_context(items: Sequence[ContextItem], mark: str) -> str:
    """A list of what there is, then the notes under headings that say why they are there."""
    if not items:
        return ""
    listed = "\n".join(
        f"{number}. {_name(item)}, {item.why.value}" for number, item in enumerate(items, start=1)
    )
    parts = ["# Notes that go along", fence("list of the notes below", listed, mark)]
    for why, group in groupby(items, key=lambda item: item.why):
        parts.append(
            f"## Because each {why.value}"
            if why.value.startswith(("is", "has", "fits"))
            else f"## Because {why.value}"
        )
        parts += [_fenced(item, mark) for item in group]
    return "\n\n".join(parts)


CONTEXT_FORMATS: Final[Mapping[str, ContextFormat]] = MappingProxyType(
    {"plain": plain_context, "structured": structured_context}
)
"""By the name in the settings."""


def _fenced(item: ContextItem, mark: str) -> str:
    cut = ", CUT: this is its beginning" if item.cut else ""
    return fence(f"content of {_name(item)} ({item.why.value}{cut})", item.text, mark)


def _name(item: ContextItem) -> str:
    return neutral(json.dumps(item.path.text, ensure_ascii=False))


MAX_NOTES: Final = 30
"""Notes that go along with one message, at most."""
MAX_CHARACTERS: Final = 200_000
"""Of one note."""
_COMMON: Final = """
a about all an and are as at be but by can do does for from had has have how i in is it make me my not note notes of on or please show tell
that the there these this to was what when where which who why will with you your
aber alle als am auch auf aus bei bitte das dem den der des die ein eine einen er es für hat habe ich im in ist kann mein meine mir mit nach
nicht notiz notizen oder sie sind über um und von was welche wer wie wo zu zum zur
"""
_STOP_WORDS: Final = frozenset(_COMMON.split())
"""Words that tell no note from another."""


@dataclass(frozen=True, slots=True)
class Gatherer:
    """What is looked for. `active`: the open note goes along; `found`: so many notes that fit the words."""

    active: bool = False
    matching: int = 0

    def wants(self, message: str, context: RunContext) -> bool:
        """Whether there is anything to look for."""
        return (
            bool(self.matching)
            or (self.active and context.active_file is not None)
            or bool(mentions_in(message))
        )

    def gather(self, message: str, context: RunContext, view: VaultView) -> Gathered:
        """What may go along with a message, in a vault as the model may know it. May block."""
        paths: dict[VaultPath, tuple[Why, float]] = {}
        missed: list[Missed] = []
        names: Mentionable | None = None
        for mention in mentions_in(message):
            found = [*_meant(mention, context, view)]
            for path, why in found:
                paths.setdefault(path, (why, 0.0))
            if not found:
                names = names or Mentionable(view)
                missed.append(Missed(mention.text, names.nearest(mention.text.lstrip("#"))))
        if self.active and context.active_file is not None and context.active_file.is_note:
            paths.setdefault(context.active_file, (Why.OPEN, 0.0))
        if self.matching:
            for path, score in _ranked(message, view, self.matching + len(paths)):
                if (
                    path not in paths
                    and sum(1 for why, _ in paths.values() if why is Why.MATCHING) < self.matching
                ):
                    paths[path] = (Why.MATCHING, score)
        order = sorted(paths, key=lambda path: (_RANK[paths[path][0]], -paths[path][1]))
        items = tuple(
            item
            for path in order[:MAX_NOTES]
            if (item := _item(path, *paths[path], view)) is not None
        )
        return Gathered(items, tuple(missed), max(0, len(order) - MAX_NOTES))


_RANK: Final = {why: at for at, why in enumerate(Why)}


def _item(path: VaultPath, why: Why, score: float, view: VaultView) -> ContextItem | None:
    try:
        text = read_text(view, path)
    except (ToolError, VaultError):
        return None
    size = len(text.encode("utf-8", "surrogatepass"))
    return ContextItem(path, why, text[:MAX_CHARACTERS], size, len(text) > MAX_CHARACTERS, score)


def _meant(
    mention: Mention, context: RunContext, view: VaultView
) -> Iterator[tuple[VaultPath, Why]]:
    match mention.kind:
        case "tag":
            for path in view.index.tagged(mention.text, ROOT):
                yield path, Why.WITH_TAG
        case "folder":
            yield from _below(mention.text.rstrip("/"), view)
        case "note":
            note = _note(mention.text, context, view)
            if note is not None:
                yield note, Why.MENTIONED
            else:
                yield from _below(mention.text, view)


def _below(name: str, view: VaultView) -> Iterator[tuple[VaultPath, Why]]:
    try:
        entry = view.locate(parse(name, PathUse.FOLDER))
    except VaultError:
        return
    if entry is not None and entry.kind == "folder":
        for path in view.index.notes(entry.path):
            yield path, Why.IN_FOLDER


def _note(name: str, context: RunContext, view: VaultView) -> VaultPath | None:
    """The note of a path or a name: exactly, as a link means it, or the only one that is called so but for case."""
    for text in (name, f"{name}.md"):
        try:
            entry = view.locate(parse(text, PathUse.READ))
        except VaultError:
            continue
        if entry is not None and entry.kind == "file" and entry.path.is_note:
            return entry.path
    index = view.index
    if (
        context.active_file is not None
        and (meant := index.resolve(name, context.active_file)) is not None
    ):
        return meant
    named = [path for path in index.named(name_key(name)) if path.is_note]
    return named[0] if len(named) == 1 else None


def _ranked(message: str, view: VaultView, most: int) -> Iterator[tuple[VaultPath, float]]:
    words = [word for word in words_of(message) if word not in _STOP_WORDS and len(word) > 2]
    if not words:
        return
    for note in ranked(view.index, ROOT, " ".join(words[:12]))[:most]:
        yield note.path, note.score


SMALLEST_PIECE: Final = 100
"""Tokens. Less of a note says nothing."""


def fit_items(items: Sequence[ContextItem], room: int) -> tuple[tuple[ContextItem, ...], int]:
    """As much of the items as there is room for, in their order, and how many are left out. The last one may be cut."""
    kept: list[ContextItem] = []
    for item in items:
        if item.tokens > room and room < SMALLEST_PIECE:
            continue
        piece = item.shortened(room)
        if piece.text or not item.text:
            kept.append(piece)
            room -= piece.tokens
    return tuple(kept), len(items) - len(kept)
