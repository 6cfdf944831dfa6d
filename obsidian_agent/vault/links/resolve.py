"""Which file a link means: Obsidian's rules, from dictionaries.

Lookup ignores case, compares in NFC and takes a no-break space for a space; aliases are never targets. The file name is tried as written,
then with ``.md``; the first of the two that any file has is all that counts. A target with folders must be a whole suffix of the file's
path. Of several files the one at exactly that path of the vault wins, then the one in the folder of the note that links, then the one with
the shortest path (in characters). Obsidian's choice between equals is unknown; here the alphabet decides. ``./`` and ``../`` lead from the
note's folder to exactly one place, ``/`` from the root. A target that is empty is the note itself.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable
from typing import Final

from obsidian_agent.vault.paths.path import VaultPath

_NOTE: Final = ".md"


def normal_text(text: str) -> str:
    """A target as Obsidian lists it: in NFC, with spaces for no-break spaces."""
    return text if text.isascii() else unicodedata.normalize("NFC", text).replace("\xa0", " ")


def link_key(text: str) -> str:
    """What two spellings of a path have in common for links."""
    return normal_text(text).lower()


class LinkResolver:
    """What links mean among some files, found by name."""

    def __init__(self, paths: Iterable[VaultPath] = ()) -> None:
        self._by_name: dict[str, list[VaultPath]] = {}
        self._by_path: dict[str, list[VaultPath]] = {}
        self._by_suffix: dict[str, list[VaultPath]] = {}
        self.count = 0
        """How many files there are."""
        for path in paths:
            self.count += 1
            key = link_key(path.text)
            self._by_path.setdefault(key, []).append(path)
            self._by_name.setdefault(_last(key), []).append(path)
        for shared in (self._by_name, self._by_path):
            for files in shared.values():
                if len(files) > 1:
                    files.sort(key=_rank)

    def resolve(self, target: str, source: VaultPath) -> VaultPath | None:
        """The file that a target (without `#...`) means in a note, or None."""
        if not target:
            return source
        if is_relative(target):
            return self._relative(target, source)
        key = link_key(target)
        rooted = key.startswith("/")
        return self._anywhere(key.strip("/"), source, rooted=rooted)

    def candidates(self, target: str) -> tuple[VaultPath, ...]:
        """Every file that a target which is not relative can mean from some note, best first, the own folder aside."""
        key, files = self._named(link_key(target).strip("/"))
        return tuple(self._ending(key, files))

    def _named(self, key: str) -> tuple[str, list[VaultPath]]:
        """The key under which files have the name that `key` ends with, and these files."""
        name = _last(key)
        for ending in ("", _NOTE):
            if name and (files := self._by_name.get(name + ending)):
                return key + ending, files
        return key, []

    def _anywhere(self, wanted: str, source: VaultPath, *, rooted: bool) -> VaultPath | None:
        key, files = self._named(wanted)
        if not files:
            return None
        if exact := self._by_path.get(key):
            return exact[0]
        if rooted:
            return None
        if len(files) == 1:
            return files[0] if "/" not in key or _ends(files[0], key) else None
        matching = self._ending(key, files)
        if not matching:
            return None
        folder = source.parent
        if beside := self._by_path.get(
            link_key(f"{folder.text}/{_last(key)}" if folder.text else _last(key))
        ):
            for file in beside:
                if file.parent == folder and _ends(file, key):
                    return file
        return matching[0]

    def _ending(self, key: str, files: list[VaultPath]) -> list[VaultPath]:
        if "/" not in key:
            return files
        known = self._by_suffix.get(key)
        if known is None:
            known = self._by_suffix[key] = [file for file in files if _ends(file, key)]
        return known

    def _relative(self, wanted: str, source: VaultPath) -> VaultPath | None:
        parts = list(source.parent.parts)
        for part in wanted.split("/"):
            if part == "..":
                if not parts:
                    return None
                parts.pop()
            elif part not in (".", ""):
                parts.append(part)
        key = link_key("/".join(parts))
        for ending in ("", _NOTE):
            if key and (files := self._by_path.get(key + ending)):
                return files[0]
        return None


def _last(key: str) -> str:
    return key.rpartition("/")[2]


def _ends(file: VaultPath, key: str) -> bool:
    path = link_key(file.text)
    return path == key or path.endswith("/" + key)


def _rank(path: VaultPath) -> tuple[int, str]:
    return len(path.text), path.text


# --- the files of one name ------------------------------------------------------------------------------------------------------------


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


_KEPT: Final = 4096


class LinksByName:
    """What links mean, decided among the files of one name at a time: no other files matter, and a large vault has very many."""

    def __init__(self, named: Callable[[str], Iterable[VaultPath]]) -> None:
        """`named`: the files of a name (a key of `file_name`)."""
        self._named = named
        self._known: dict[str, LinkResolver] = {}

    def resolve(self, target: str, source: VaultPath) -> VaultPath | None:
        """The file that a target (without `#...`) means in a file, or None."""
        return self.among(asked_name(target, source)).resolve(target, source) if target else source

    def is_same_everywhere(self, target: str) -> bool:
        """Whether a target means the same file in whichever file it stands."""
        return not is_relative(target) and self.among(target_name(target)).count <= 1

    def forget(self, name: str) -> None:
        """Files of this name came or went."""
        self._known.pop(name, None)

    def among(self, name: str) -> LinkResolver:
        """What links mean among the files of a name."""
        known = self._known.get(name)
        if known is None:
            if len(self._known) >= _KEPT:
                self._known.clear()
            known = self._known[name] = LinkResolver(self._named(name) if name else ())
        return known
