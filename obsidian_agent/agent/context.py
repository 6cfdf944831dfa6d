"""The context of a message: notes that it mentions, the open note, and the best matches by words.

Users mention notes, folders and tags like this: `@Garden`, `@[[Projects/Plan]]`, `@"Big plan"`,
`@Projects/`, `@#work`; and resources of their MCP servers: `@docs:notes://plan`. In every format
the text of notes is fenced and labelled as data.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from enum import Enum
from functools import cached_property
from itertools import groupby, islice
from types import MappingProxyType
from typing import Final, Literal

from msgspec import Struct
from msgspec.structs import replace

from obsidian_agent.agent.privacy.consent import Level, ShareItem
from obsidian_agent.agent.privacy.untrusted_text import fence, neutral
from obsidian_agent.agent.token_budget import estimate
from obsidian_agent.errors import ToolError, VaultError
from obsidian_agent.tools.core.lookup import read_text
from obsidian_agent.tools.core.tool import RunContext
from obsidian_agent.vault.index.name_search import NameSearch
from obsidian_agent.vault.index.word_query import query_words
from obsidian_agent.vault.index.word_search import rank_notes
from obsidian_agent.vault.links.resolve import name_key
from obsidian_agent.vault.paths.path import ROOT, PathUse, VaultPath, parse
from obsidian_agent.vault.views.view import VaultView

MentionKind = Literal["note", "folder", "tag"]
_MENTION: Final = re.compile(
    r"(?<![\w@])@(?:\[\[([^\]\n|#]+)(?:[|#][^\]\n]*)?\]\]"
    r'|"([^"\n]+)"|(#[\w/-]+)|([^\s@"\[\](),;]+))'
)
_TYPED: Final = re.compile(r'(?<![\w@])@(\[\[[^\]\n]*|"[^"\n]*|[^\s@"\[\](),;]*)$')
_PLAIN: Final = re.compile(r'[^\s@"\[\](),;]+')
_END: Final = ".:!?…"
_WORD_START: Final = re.compile(r"(?<!\S)\S")
MAX_NAME_WORDS: Final = 6
"""Words at the end of a text that may begin one name."""
MIN_NAME_LETTERS: Final = 2
MAX_NAMES_COMPARED: Final = 200
"""Names with the same beginning from which the shortest are chosen."""
MAX_NOTES: Final = 30
"""Maximum number of notes sent with one message."""
MAX_CHARACTERS: Final = 200_000
"""Maximum number of characters sent of one note."""
SMALLEST_PIECE: Final = 100
"""Tokens. A note is not truncated to fewer, because that is not worth sending."""
_STOP_WORD_LIST: Final = """
a about all an and are as at be but by can do does for from had has have how i in is it make me my
not note notes of on or please show tell
that the there these this to was what when where which who why will with you your
aber alle als am auch auf aus bei bitte das dem den der des die ein eine einen er es für hat habe
ich im in ist kann mein meine mir mit nach
nicht notiz notizen oder sie sind über um und von was welche wer wie wo zu zum zur
"""
_STOP_WORDS: Final = frozenset(_STOP_WORD_LIST.split())
"""Words too common to distinguish notes."""


class Mention(Struct, frozen=True):
    """A mention in a message. `text` is the name without the marks.

    A folder ends with `/`, a tag begins with `#`.
    """

    text: str

    @property
    def kind(self) -> MentionKind:
        """The kind, from the first or last character."""
        if self.text.startswith("#"):
            return "tag"
        return "folder" if self.text.endswith("/") else "note"


class ResourceMention(Struct, frozen=True):
    """A mention of a resource of an MCP server."""

    server: str
    uri: str


class MentionCompletion(Struct, frozen=True):
    """A completion of a mention. `insert` replaces everything from the `@` on."""

    label: str
    kind: str
    insert: str


def mentions_in(message: str) -> list[Mention]:
    """Return the mentions of a message, in order and without duplicates."""
    mentions: dict[str, Mention] = {}
    for match in _MENTION.finditer(message):
        linked, quoted, tag, plain = match.groups()
        text = (linked or quoted or tag or plain.rstrip(_END)).strip()
        if text:
            mentions.setdefault(text, Mention(text))
    return list(mentions.values())


def resources_in(message: str, servers: Collection[str]) -> list[ResourceMention]:
    """Return the resources of these MCP servers that a message mentions."""
    mentions = (mention.text.partition(":") for mention in mentions_in(message))
    return [
        ResourceMention(server, uri) for server, _, uri in mentions if server in servers and uri
    ]


def typed_mention(before_cursor: str) -> str | None:
    """Return the text after the `@` before the cursor; None if no mention is being typed."""
    match = _TYPED.search(before_cursor)
    return None if match is None else match.group(1).lstrip('["')


def mention_of(text: str) -> str:
    """Return the mention of a name, quoted if it has to be."""
    return f"@{text}" if _PLAIN.fullmatch(text) and text[-1] not in _END else f'@"{text}"'


class NameCompletion(Struct, frozen=True):
    """A name that the last `length` characters of a text begin."""

    name: str
    length: int


class Mentionable:
    """A searchable snapshot of everything in a vault that can be mentioned.

    Creating it may block; searching is fast.
    """

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
        self._starts = sorted(_starts(notes, folders, self._tags))

    def complete(self, typed: str, limit: int = 8) -> tuple[MentionCompletion, ...]:
        """Return the best completions of the text after the `@`."""
        if typed.startswith("#"):
            prefix = typed[1:].casefold()
            starting = [tag for tag in self._tags if tag.casefold().startswith(prefix)]
            inside = [tag for tag in self._tags if prefix in tag.casefold() and tag not in starting]
            return tuple(
                MentionCompletion(f"#{tag}", "tag", f"@#{tag}")
                for tag in (*starting, *inside)[:limit]
            )
        if not typed.strip("/ "):
            return tuple(self._completion(path) for path in self._first[:limit])
        hits = self._names.best(typed.rstrip("/"), limit)
        return tuple(self._completion(hit.path) for hit in hits)

    def complete_end(self, text: str, limit: int = 8) -> tuple[NameCompletion, ...]:
        """Return the names of notes, folders and tags that the last words of a text begin.

        The names that most of the words begin are first, then short ones. A complete name is none.
        A small word such as “in” begins none, unless it has a capital: “to In” may become “Inbox”.
        """
        starts = [match.start() for match in _WORD_START.finditer(text)][-MAX_NAME_WORDS:]
        for start in starts:
            typed = text[start:]
            if len(typed) < MIN_NAME_LETTERS or typed in _STOP_WORDS:
                break
            names = sorted(self._names_from(typed.casefold()), key=lambda name: (len(name), name))
            matches = [name for name in names if name.casefold() != typed.casefold()]
            if names:
                return tuple(NameCompletion(name, len(typed)) for name in matches[:limit])
        return ()

    def _names_from(self, prefix: str) -> set[str]:
        first = bisect_left(self._starts, (prefix, ""))
        names: set[str] = set()
        for start, name in islice(self._starts, first, first + MAX_NAMES_COMPARED):
            if not start.startswith(prefix):
                break
            is_path = "/" in start and not start.startswith("#")
            if "/" in prefix or not is_path:
                names.add(name)
        return names

    def nearest(self, name: str) -> str | None:
        """Return the existing name most similar to `name`; None if there is none."""
        hits = self._names.search(name.rstrip("/"), 1).hits
        return hits[0].path if hits else None

    def _completion(self, path: str) -> MentionCompletion:
        if path in self._folders:
            return MentionCompletion(f"{path}/", "folder", mention_of(f"{path}/"))
        return MentionCompletion(path, "note", mention_of(path.removesuffix(".md")))


def _starts(
    notes: Iterable[str], folders: Iterable[str], tags: Iterable[str]
) -> Iterator[tuple[str, str]]:
    """Yield each text, in lower case, by which a name is typed, and the name to insert."""
    paths = [note.removesuffix(".md") for note in notes]
    count = Counter(path.rpartition("/")[2].casefold() for path in paths)
    for path in paths:
        name = path.rpartition("/")[2]
        is_unique = count[name.casefold()] == 1
        yield name.casefold(), name if is_unique else path
        if name != path:
            yield path.casefold(), path
    for folder in folders:
        yield folder.casefold(), folder
        yield folder.rpartition("/")[2].casefold(), folder
    for tag in tags:
        yield f"#{tag}".casefold(), f"#{tag}"


def _tags(view: VaultView) -> list[str]:
    """Return every tag of the vault, the most frequent first."""
    counted: dict[str, int] = {}
    for tag in _note_tags(view):
        counted[tag] = counted.get(tag, 0) + 1
    return sorted(counted, key=lambda tag: (-counted[tag], tag))


def _note_tags(view: VaultView) -> Iterator[str]:
    index = view.index
    for path in index.notes(ROOT):
        yield from index.facts(path).tags


class Why(Enum):
    """The reason why a note is sent, the most important first."""

    MENTIONED = "you mentioned it"
    IN_FOLDER = "in a folder that you mentioned"
    WITH_TAG = "has a tag that you mentioned"
    OPEN = "is open"
    MATCHING = "matches your words"


REQUESTED = frozenset({Why.MENTIONED, Why.IN_FOLDER, Why.WITH_TAG, Why.OPEN})
"""The reasons that count as a request of the user.

If no rule decides, the user is asked about these; notes that match by words alone are sent only if
a rule allows it.
"""


class ContextItem(Struct, frozen=True, dict=True, kw_only=True):
    """A note that may be sent.

    `text` is the part to be sent, `truncated` if that is not all; `size` is the file's, in bytes.
    """

    path: VaultPath
    why: Why
    text: str
    size: int
    truncated: bool = False
    score: float = 0.0

    @cached_property
    def tokens(self) -> int:
        """The estimated number of tokens of `text`."""
        return estimate(self.text)

    def share_item(self) -> ShareItem:
        """Return the item of a question about sharing."""
        return ShareItem(
            path=self.path, level=Level.TEXT, size=self.size, tokens=self.tokens, why=self.why.value
        )

    def shortened(self, tokens: int) -> ContextItem:
        """Return the item truncated to about this many tokens, at the end of a line if possible."""
        if self.tokens <= tokens:
            return self
        return replace(self, text=beginning(self.text, tokens), truncated=True)


class Missed(Struct, frozen=True):
    """A mention without a match in the vault, with the most similar name."""

    text: str
    nearest: str | None = None


class Gathered(Struct, frozen=True):
    """The notes that may be sent with a message, the most important first.

    `missed` are the mentions without a match, `more` is the number of notes over `MAX_NOTES`.
    """

    items: tuple[ContextItem, ...] = ()
    missed: tuple[Missed, ...] = ()
    more: int = 0


def beginning(text: str, tokens: int) -> str:
    """Return the beginning of a text in about this many tokens, up to the end of a line."""
    if tokens <= 0:
        return ""
    length = _largest(len(text), lambda length: estimate(text[:length]) <= tokens)
    start = text[:length]
    line = start.rfind("\n")
    return start[: line + 1] if line > length // 2 else start


def _largest(most: int, fits: Callable[[int], bool]) -> int:
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(middle) else (low, middle - 1)
    return low


ContextFormat = Callable[[Sequence[ContextItem], str], str]
"""Format notes as text ("" for none). The second argument is the mark for the fences."""


def plain_context(items: Sequence[ContextItem], mark: str) -> str:
    """Format the notes one after the other."""
    return "\n\n".join(_fenced(item, mark) for item in items)


def structured_context(items: Sequence[ContextItem], mark: str) -> str:
    """Format a list of the notes, then the notes under headings with the reasons."""
    if not items:
        return ""
    listed = "\n".join(
        f"{number}. {_name(item)}, {item.why.value}" for number, item in enumerate(items, start=1)
    )
    parts = ["# Notes sent with the message", fence("list of the notes below", listed, mark)]
    for why, group in groupby(items, key=lambda item: item.why):
        parts.append(
            f"## Because each {why.value}"
            if why.value.startswith(("is", "has", "matches"))
            else f"## Because {why.value}"
        )
        parts += [_fenced(item, mark) for item in group]
    return "\n\n".join(parts)


CONTEXT_FORMATS: Final[Mapping[str, ContextFormat]] = MappingProxyType(
    {"plain": plain_context, "structured": structured_context}
)
"""The formats by their names in the settings."""


def _fenced(item: ContextItem, mark: str) -> str:
    truncation = ", TRUNCATED: this is its beginning" if item.truncated else ""
    return fence(f"content of {_name(item)} ({item.why.value}{truncation})", item.text, mark)


def _name(item: ContextItem) -> str:
    return neutral(json.dumps(item.path.text, ensure_ascii=False))


class Gatherer(Struct, frozen=True):
    """The search for notes to send with a message.

    `active`: include the open note; `matching`: number of notes that match the words. `servers` are
    the names of MCP servers, whose resources are not notes.
    """

    active: bool = False
    matching: int = 0
    servers: frozenset[str] = frozenset()

    def wants(self, message: str, context: RunContext) -> bool:
        """Return True if there is anything to search for."""
        return (
            bool(self.matching)
            or (self.active and context.active_file is not None)
            or bool(mentions_in(message))
        )

    def gather(self, message: str, context: RunContext, view: VaultView) -> Gathered:
        """Return the notes to send. `view` must hide what the model may not know. May block."""
        paths: dict[VaultPath, tuple[Why, float]] = {}
        missed: list[Missed] = []
        names: Mentionable | None = None
        resources = {f"{item.server}:{item.uri}" for item in resources_in(message, self.servers)}
        for mention in mentions_in(message):
            if mention.text in resources:
                continue
            matches = list(_matches(mention, context, view))
            for path, why in matches:
                paths.setdefault(path, (why, 0.0))
            if not matches:
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


_RANK: Final = {why: index for index, why in enumerate(Why)}


def _item(path: VaultPath, why: Why, score: float, view: VaultView) -> ContextItem | None:
    try:
        text = read_text(view, path)
    except (ToolError, VaultError):
        return None
    size = len(text.encode("utf-8", "surrogatepass"))
    return ContextItem(
        path=path,
        why=why,
        text=text[:MAX_CHARACTERS],
        size=size,
        truncated=len(text) > MAX_CHARACTERS,
        score=score,
    )


def _matches(
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
    """Return the note with that path or link target, or the only note with that name."""
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
        and (target := index.resolve(name, context.active_file)) is not None
    ):
        return target
    named = [path for path in index.files_named(name_key(name)) if path.is_note]
    return named[0] if len(named) == 1 else None


def _ranked(message: str, view: VaultView, most: int) -> Iterator[tuple[VaultPath, float]]:
    words = [word for word in query_words(message) if word not in _STOP_WORDS and len(word) > 2]
    if not words:
        return
    notes = rank_notes(view.index, ROOT, " ".join(words[:12])).notes
    # Fewer notes are sent than a search displays.
    complete = [note for note in notes if note.is_complete]
    for note in (complete or notes)[:most]:
        yield note.path, note.score


def fit_items(items: Sequence[ContextItem], room: int) -> tuple[tuple[ContextItem, ...], int]:
    """Return the items that fit into `room` tokens, in order, and the number of the others.

    The last item may be truncated.
    """
    fitting: list[ContextItem] = []
    for item in items:
        if item.tokens > room and room < SMALLEST_PIECE:
            continue
        piece = item.shortened(room)
        if piece.text or not item.text:
            fitting.append(piece)
            room -= piece.tokens
    return tuple(fitting), len(items) - len(fitting)
