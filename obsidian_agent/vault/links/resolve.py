"""Resolution of link targets to files by Obsidian's rules, with dictionaries.

Names are compared without case, in NFC, and with no-break spaces as spaces. Aliases are never
targets. The file name is tried as written, then with ``.md``; if any file has the first, the second
is not tried. A target with folders must be a complete suffix of the file's path. If several files
match, the file at exactly that path of the vault wins, then the one in the folder of the linking
note, then the one with the shortest path in characters. Obsidian's choice on a tie is unknown; here
the alphabet decides. ``./`` and ``../`` are relative to the linking note's folder, ``/`` is the
root. An empty target is the linking note itself.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable
from typing import Final

from obsidian_agent.vault.paths.path import VaultPath

_NOTE: Final = ".md"
_MAX_CACHED: Final = 4096
"""Names whose resolvers `LinksByName` caches."""


def normal_text(text: str) -> str:
    """Return a target as Obsidian lists it: in NFC, with spaces for no-break spaces."""
    return text if text.isascii() else unicodedata.normalize("NFC", text).replace("\xa0", " ")


def link_key(text: str) -> str:
    """Return a key that is equal for all spellings of a path that links treat alike."""
    return normal_text(text).lower()


class LinkResolver:
    """A resolver of link targets among a set of files."""

    def __init__(self, paths: Iterable[VaultPath] = ()) -> None:
        self._by_name: dict[str, list[VaultPath]] = {}
        self._by_path: dict[str, list[VaultPath]] = {}
        self._by_suffix: dict[str, list[VaultPath]] = {}
        self.count = 0
        """Number of files."""
        for path in paths:
            self.count += 1
            key = link_key(path.text)
            self._by_path.setdefault(key, []).append(path)
            self._by_name.setdefault(_last(key), []).append(path)
        for files_by_key in (self._by_name, self._by_path):
            for files in files_by_key.values():
                if len(files) > 1:
                    files.sort(key=_rank)

    def resolve(self, target: str, source: VaultPath) -> VaultPath | None:
        """Return the file that a target, given without `#...`, means in a note, or None."""
        if not target:
            return source
        if is_relative(target):
            return self._resolve_relative(target, source)
        key = link_key(target)
        rooted = key.startswith("/")
        return self._resolve_by_name(key.strip("/"), source, rooted=rooted)

    def candidates(self, target: str) -> tuple[VaultPath, ...]:
        """Return every file that a non-relative target can mean from any note, best match first.

        The preference for the linking note's own folder is not applied.
        """
        key, files = self._named(link_key(target).strip("/"))
        return tuple(self._matching(key, files))

    def _named(self, key: str) -> tuple[str, list[VaultPath]]:
        """Return the key, extended by `.md` where necessary, and the files with its last name."""
        name = _last(key)
        for ending in ("", _NOTE):
            if name and (files := self._by_name.get(name + ending)):
                return key + ending, files
        return key, []

    def _resolve_by_name(self, key: str, source: VaultPath, *, rooted: bool) -> VaultPath | None:
        """Resolve a target that is not relative. A `rooted` one is a path from the vault's root."""
        key, files = self._named(key)
        if not files:
            return None
        if exact := self._by_path.get(key):
            return exact[0]
        if rooted:
            return None
        if len(files) == 1:
            return files[0] if "/" not in key or _ends_with(files[0], key) else None
        matches = self._matching(key, files)
        if not matches:
            return None
        folder = source.parent
        sibling = f"{folder.text}/{_last(key)}" if folder.text else _last(key)
        for file in self._by_path.get(link_key(sibling), ()):
            if file.parent == folder and _ends_with(file, key):
                return file
        return matches[0]

    def _matching(self, key: str, files: list[VaultPath]) -> list[VaultPath]:
        """Return those of the files with the last name of `key` whose paths end with all of it."""
        if "/" not in key:
            return files
        known = self._by_suffix.get(key)
        if known is None:
            known = self._by_suffix[key] = [file for file in files if _ends_with(file, key)]
        return known

    def _resolve_relative(self, target: str, source: VaultPath) -> VaultPath | None:
        parts = list(source.parent.parts)
        for part in target.split("/"):
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


def _ends_with(file: VaultPath, key: str) -> bool:
    path = link_key(file.text)
    return path == key or path.endswith("/" + key)


def _rank(path: VaultPath) -> tuple[int, str]:
    return len(path.text), path.text


def target_name(target: str) -> str:
    """Return the key of the last name of a target, without `.md`. Only files with it can match."""
    return _bare(link_key(target).strip("/").rpartition("/")[2])


def file_name(path: VaultPath) -> str:
    """Return the `target_name` of links that can mean a file."""
    return _bare(link_key(path.name))


def name_key(text: str) -> str:
    """Return the `file_name` of a path given as text."""
    return _bare(link_key(text.rpartition("/")[2]))


def is_relative(target: str) -> bool:
    """Return True if a target is relative to the linking note's folder."""
    return target.startswith(("./", "../")) or target in (".", "..")


def _bare(name: str) -> str:
    while name.endswith(_NOTE):
        name = name[: -len(_NOTE)]
    return name


def resolved_name(target: str, source: VaultPath) -> str:
    """Return the `target_name` of a target in `source`, with relative targets resolved.

    A target that ends in `..` means a note beside the folder that it leads to.
    """
    if not is_relative(target):
        return target_name(target)
    parts = list(source.parent.parts)
    for part in target.split("/"):
        if part == "..":
            parts = parts[:-1]
        elif part not in (".", ""):
            parts.append(part)
    return target_name(parts[-1]) if parts else ""


class LinksByName:
    """A resolver that looks at the files of one name at a time, for large vaults."""

    def __init__(self, files_named: Callable[[str], Iterable[VaultPath]]) -> None:
        """Resolve among the files that `files_named` returns for a key of `file_name`."""
        self._files_named = files_named
        self._resolvers: dict[str, LinkResolver] = {}

    def resolve(self, target: str, source: VaultPath) -> VaultPath | None:
        """Return the file that a target, given without `#...`, means in a file, or None."""
        if not target:
            return source
        return self.among(resolved_name(target, source)).resolve(target, source)

    def is_same_everywhere(self, target: str) -> bool:
        """Return True if a target means the same file in every file of the vault."""
        return not is_relative(target) and self.among(target_name(target)).count <= 1

    def forget(self, name: str) -> None:
        """Drop the cached resolver of a name, whose files have changed."""
        self._resolvers.pop(name, None)

    def among(self, name: str) -> LinkResolver:
        """Return the resolver among the files of a name."""
        resolver = self._resolvers.get(name)
        if resolver is None:
            if len(self._resolvers) >= _MAX_CACHED:
                self._resolvers.clear()
            resolver = LinkResolver(self._files_named(name) if name else ())
            self._resolvers[name] = resolver
        return resolver
