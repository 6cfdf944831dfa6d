"""What the index knows of one file: the part of a scan that questions about the whole vault need.

Places, headings and tasks are not in it: they are read again from the few files that an answer names.

From the texts of paths that a listing of the vault has shown back to judged paths.

Questions about links that every index answers alike, from the names of files and of links.
"""

from __future__ import annotations

import marshal
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from obsidian_agent.vault.links.graph import CANVAS
from obsidian_agent.vault.links.references import references_in
from obsidian_agent.vault.links.resolve import LinkResolver, link_key
from obsidian_agent.vault.markdown.canvas import canvas_links
from obsidian_agent.vault.markdown.note import Names, names_in
from obsidian_agent.vault.paths.path import ROOT, VaultPath, from_disk

if TYPE_CHECKING:
    from obsidian_agent.vault.index.index import VaultIndex


class KnownPaths:
    """Judges texts again, each folder once. PathRefused for a text that no listing can have shown."""

    def __init__(self) -> None:
        self._folders: dict[str, VaultPath] = {"": ROOT}

    def __call__(self, text: str) -> VaultPath:
        folder, _, name = text.rpartition("/")
        return from_disk(self._folder(folder), name)

    def _folder(self, text: str) -> VaultPath:
        known = self._folders.get(text)
        if known is None:
            above, _, name = text.rpartition("/")
            known = self._folders[text] = from_disk(self._folder(above), name)
        return known


_KEPT: Final = 4096


class LinksByName:
    """What links mean, decided among the files of one name at a time: no other files matter, and a large vault has very many."""

    def __init__(self, named: Callable[[str], Iterable[VaultPath]]) -> None:
        self._named = named
        self._known: dict[str, tuple[LinkResolver, int]] = {}

    def resolve(self, target: str, source: VaultPath) -> VaultPath | None:
        """The file that a target (without `#...`) means in a file, or None."""
        return self._of(asked_name(target, source))[0].resolve(target, source) if target else source

    def is_same_everywhere(self, target: str) -> bool:
        """Whether a target means the same file in whichever file it stands."""
        return not is_relative(target) and self._of(target_name(target))[1] <= 1

    def forget(self, name: str) -> None:
        """Files of this name came or went."""
        self._known.pop(name, None)

    def _of(self, name: str) -> tuple[LinkResolver, int]:
        known = self._known.get(name)
        if known is None:
            if len(self._known) >= _KEPT:
                self._known.clear()
            files = list(self._named(name)) if name else []
            known = self._known[name] = LinkResolver(files), len(files)
        return known


def asked_name(target: str, source: VaultPath) -> str:
    """The key of the name that a target asks for. One that ends in `..` asks for a note beside the folder that it climbs to."""
    if not is_relative(target):
        return target_name(target)
    parts = list(source.parent.parts)
    for part in target.split("/"):
        if part == "..":
            parts = parts[:-1]
        elif part not in (".", ""):
            parts.append(part)
    return target_name(parts[-1]) if parts else ""


def linking(index: VaultIndex, path: VaultPath) -> list[VaultPath]:
    """The files, but `path` itself, with a link that leads to `path`: of those that name it, the ones that mean it."""

    def means(source: VaultPath) -> bool:
        return any(index.resolve(target, source) == path for target in index.facts(source).targets if asked_name(target, source) == name)

    name = file_name(path)
    sources = {source for ending in (name, ".", "..") for source in index.naming(ending)}
    return sorted(source for source in sources if source != path and means(source))


_NOTE: Final = ".md"


@dataclass(frozen=True, slots=True)
class Facts:
    """Tags (without `#`, each once, as first written), aliases, properties, and the target of each link, in order, as written.

    Links that name no file, only a place in their own, are left out.
    `lossy`: the file is not UTF-8; what could be read of it counts. `references` are the targets of what is no link of the graph
    (`references.py`), each once.
    """

    tags: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    properties: Mapping[str, Any] = field(default_factory=dict)
    targets: tuple[str, ...] = ()
    lossy: bool = False
    references: tuple[str, ...] = ()


NOTHING: Final = Facts()
"""The facts of a file that is neither a note nor a canvas, or could not be read."""


def holds_facts(path: VaultPath) -> bool:
    """Whether anything is to be known of a file's content: notes and canvases."""
    return path.is_note or path.suffix == CANVAS


def asks_content(text: str) -> bool:
    """`holds_facts` of a path that is mere text; cheap, for lists of very many."""
    tail = text[-7:].lower()
    if tail[-3:] == _NOTE:
        stem = text[:-3]
    elif tail == CANVAS:
        stem = text[:-7]
    else:
        return False
    return stem.rpartition("/")[2].strip(".") != ""


def facts_of(path: VaultPath, data: bytes) -> Facts:
    """The facts in a file's bytes."""
    if path.is_note:
        return note_facts(names_in(data), data)
    return canvas_facts(data) if path.suffix == CANVAS else NOTHING


def canvas_facts(data: bytes) -> Facts:
    """The facts in a canvas."""
    return Facts(targets=tuple(link.target for link in canvas_links(data) if link.target))


def note_facts(names: Names, data: bytes) -> Facts:
    """The facts in what a note names, and in its bytes."""
    references = tuple(dict.fromkeys(link.target for link in references_in(data).links))
    return Facts(distinct_tags(names.tags), names.aliases, names.properties, names.targets, names.lossy, references)


def pack_facts(facts: Facts) -> bytes:
    """Facts as they are kept. They are plain values, and the file that keeps them is checked before it is read (`index_file.py`)."""
    return marshal.dumps((facts.tags, facts.aliases, dict(facts.properties), facts.targets, facts.lossy, facts.references))


def unpack_facts(data: bytes | memoryview) -> Facts:
    """The facts that `pack_facts` kept; none for nothing."""
    return Facts(*marshal.loads(data)) if data else Facts()


def distinct_tags(names: Iterable[str]) -> tuple[str, ...]:
    """Tags each once, compared without case, in the spelling that came first."""
    found: dict[str, str] = {}
    for name in names:
        found.setdefault(tag_key(name), name)
    if "" in found:
        del found[""]
    return tuple(found.values())


@lru_cache(maxsize=4096)
def tag_key(name: str) -> str:
    """What two spellings of a tag have in common: no `#`, no slash at the end, NFC, no case."""
    bare = name.strip().lstrip("#").rstrip("/")
    return bare.lower() if bare.isascii() else unicodedata.normalize("NFC", bare).lower()


def tag_within(key: str, wanted: str) -> bool:
    """Whether a tag's key is the wanted one or nested below it."""
    return key == wanted or key.startswith(wanted + "/")


def target_name(target: str) -> str:
    """The key of the name that a link's target ends with, without `.md`: files of other names cannot be meant."""
    return _bare(link_key(target).strip("/").rpartition("/")[2])


def file_name(path: VaultPath) -> str:
    """As `target_name`, of a file: links that mean it have this key."""
    return _bare(link_key(path.name))


def name_key(text: str) -> str:
    """As `file_name`, of a path that is mere text."""
    return _bare(link_key(text.rpartition("/")[2]))


def is_relative(target: str) -> bool:
    """Whether a link's target leads from the folder of the note that links, so that its name alone says nothing."""
    return target.startswith(("./", "../")) or target in (".", "..")


def _bare(name: str) -> str:
    while name.endswith(_NOTE):
        name = name[: -len(_NOTE)]
    return name
