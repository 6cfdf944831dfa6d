"""Notes, folders and tags that a person names in a message: `@Garden`, `@[[Projects/Plan]]`, `@"Big plan"`, `@Projects/`, `@#work`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal

from obsidian_agent.vault.index.name_search import NameSearch
from obsidian_agent.vault.paths.path import ROOT
from obsidian_agent.vault.views.view import VaultView

MentionKind = Literal["note", "folder", "tag"]
_MENTION: Final = re.compile(r'(?<![\w@])@(?:\[\[([^\]\n|#]+)(?:[|#][^\]\n]*)?\]\]|"([^"\n]+)"|(#[\w/-]+)|([^\s@"\[\](),;]+))')
_TYPED: Final = re.compile(r'(?<![\w@])@(\[\[[^\]\n]*|"[^"\n]*|[^\s@"\[\](),;]*)$')
_PLAIN: Final = re.compile(r'[^\s@"\[\](),;]+')
_END: Final = ".:!?…"


@dataclass(frozen=True, slots=True)
class Mention:
    """A mention as it was written: `text` is what it names, without the marks. A folder ends with `/`, a tag begins with `#`."""

    text: str

    @property
    def kind(self) -> MentionKind:
        """What it names."""
        if self.text.startswith("#"):
            return "tag"
        return "folder" if self.text.endswith("/") else "note"


@dataclass(frozen=True, slots=True)
class Completion:
    """Something that a mention which is being typed may become. `insert` takes the place of everything from the `@` on."""

    label: str
    kind: MentionKind
    insert: str


def mentions_in(message: str) -> list[Mention]:
    """The mentions of a message, each once, in order."""
    found: dict[str, Mention] = {}
    for match in _MENTION.finditer(message):
        linked, quoted, tag, plain = match.groups()
        text = (linked or quoted or tag or plain.rstrip(_END)).strip()
        if text:
            found.setdefault(text, Mention(text))
    return list(found.values())


def being_typed(before_cursor: str) -> str | None:
    """What stands behind the `@` right before the cursor; None when no mention is being typed."""
    match = _TYPED.search(before_cursor)
    return None if match is None else match.group(1).lstrip('["')


def written(text: str) -> str:
    """A name as a mention."""
    return f"@{text}" if _PLAIN.fullmatch(text) and text[-1] not in _END else f'@"{text}"'


class Mentionable:
    """Everything in a vault that can be mentioned, at one moment, ready to be searched. Making it may block; searching is fast."""

    def __init__(self, view: VaultView) -> None:
        entries = list(view.walk(ROOT))
        notes = [entry.path.text for entry in entries if entry.kind == "file" and entry.path.is_note]
        folders = [entry.path.text for entry in entries if entry.kind == "folder"]
        self._names = NameSearch([*notes, *folders])
        self._folders = frozenset(folders)
        self._first = [*notes[:20], *folders[:5]]
        self._tags = _tags(view)

    def complete(self, typed: str, limit: int = 8) -> tuple[Completion, ...]:
        """The best completions of what stands behind the `@`."""
        if typed.startswith("#"):
            wanted = typed[1:].casefold()
            starting = [tag for tag in self._tags if tag.casefold().startswith(wanted)]
            inside = [tag for tag in self._tags if wanted in tag.casefold() and tag not in starting]
            return tuple(Completion(f"#{tag}", "tag", f"@#{tag}") for tag in (*starting, *inside)[:limit])
        if not typed.strip("/ "):
            return tuple(self._completion(path) for path in self._first[:limit])
        return tuple(self._completion(hit.path) for hit in self._names.search(typed.rstrip("/"), limit).hits)

    def nearest(self, name: str) -> str | None:
        """The name that comes nearest to one that does not exist."""
        hits = self._names.search(name.rstrip("/"), 1).hits
        return hits[0].path if hits else None

    def _completion(self, path: str) -> Completion:
        if path in self._folders:
            return Completion(f"{path}/", "folder", written(f"{path}/"))
        return Completion(path, "note", written(path.removesuffix(".md")))


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
