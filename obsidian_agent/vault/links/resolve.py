"""Which file a link means: Obsidian's rules, from dictionaries.

Lookup ignores case, compares in NFC and takes a no-break space for a space; aliases are never targets. The file name is tried as written,
then with ``.md``; the first of the two that any file has is all that counts. A target with folders must be a whole suffix of the file's
path. Of several files the one at exactly that path of the vault wins, then the one in the folder of the note that links, then the one with
the shortest path (in characters). Obsidian's choice between equals is unknown; here the alphabet decides. ``./`` and ``../`` lead from the
note's folder to exactly one place, ``/`` from the root. A target that is empty is the note itself.
"""

from __future__ import annotations

import unicodedata
from bisect import insort
from collections.abc import Iterable
from urllib.parse import unquote_to_bytes

from obsidian_agent.vault.paths.path import VaultPath

_NOTE = ".md"


def normal_text(text: str) -> str:
    """A target as Obsidian lists it: in NFC, with spaces for no-break spaces."""
    return text if text.isascii() else unicodedata.normalize("NFC", text).replace("\xa0", " ")


def link_key(text: str) -> str:
    """What two spellings of a path have in common for links."""
    return normal_text(text).lower()


def percent_decoded(text: str) -> str:
    """A Markdown destination as plain text; encoding that is no UTF-8 stays as it is."""
    if "%" not in text:
        return text
    try:
        return unquote_to_bytes(text).decode()
    except UnicodeDecodeError:
        return text


class LinkResolver:
    """The files of a vault by name, kept up to date with `add` and `remove`."""

    def __init__(self, paths: Iterable[VaultPath] = ()) -> None:
        self._by_name: dict[str, list[VaultPath]] = {}
        self._by_path: dict[str, list[VaultPath]] = {}
        self._by_suffix: dict[str, list[VaultPath]] = {}
        for path in paths:
            key = link_key(path.text)
            self._by_path.setdefault(key, []).append(path)
            self._by_name.setdefault(_last(key), []).append(path)
        for shared in (self._by_name, self._by_path):
            for files in shared.values():
                if len(files) > 1:
                    files.sort(key=_rank)

    def add(self, path: VaultPath) -> None:
        """A file is there now. No change when it is known."""
        key = link_key(path.text)
        if path in self._by_path.get(key, ()):
            return
        insort(self._by_path.setdefault(key, []), path, key=_rank)
        insort(self._by_name.setdefault(_last(key), []), path, key=_rank)
        self._by_suffix.clear()

    def remove(self, path: VaultPath) -> None:
        """A file is gone. No change when it is not known."""
        key = link_key(path.text)
        for files, name in ((self._by_path, key), (self._by_name, _last(key))):
            listed = files.get(name)
            if listed is None or path not in listed:
                continue
            listed.remove(path)
            if not listed:
                del files[name]
        self._by_suffix.clear()

    def resolve(self, target: str, source: VaultPath, markdown: bool = False) -> VaultPath | None:
        """The file that a target (without `#...`) means in a note, or None. With `markdown` the target is percent-encoded."""
        wanted = percent_decoded(target) if markdown else target
        if not wanted:
            return source
        if wanted.startswith(("./", "../")) or wanted in (".", ".."):
            return self._relative(wanted, source)
        key = link_key(wanted)
        rooted = key.startswith("/")
        return self._anywhere(key.strip("/"), source, rooted=rooted)

    def ambiguous(self, name: str) -> tuple[VaultPath, ...]:
        """The files that a bare name can mean, best first, when there are several; else ()."""
        files = self._named(link_key(name))[1]
        return tuple(files) if len(files) > 1 else ()

    def candidates(self, target: str) -> tuple[VaultPath, ...]:
        """Every file that a target which is not relative can mean from some note, best first, the own folder aside."""
        key, files = self._named(link_key(target).strip("/"))
        return tuple(self._ending(key, files))

    def __contains__(self, path: VaultPath) -> bool:
        return path in self._by_path.get(link_key(path.text), ())

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
        if beside := self._by_path.get(link_key(f"{folder.text}/{_last(key)}" if folder.text else _last(key))):
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
