"""Renames of tags, properties, values and files as queries see them.

A rename decides what becomes of a name in a query: a new text, a doubt, or nothing.
"""

from __future__ import annotations

import re
from typing import Final, Protocol

from msgspec import Struct

from obsidian_agent.expression import expression
from obsidian_agent.vault.index.index import VaultIndex, tag_key
from obsidian_agent.vault.links.link_text import (
    DEFAULT_STYLE,
    LinkStyle,
    shape_of,
    spellings,
)
from obsidian_agent.vault.paths.path import ROOT, VaultPath
from obsidian_agent.vault.refactor.query_names import Language, QueryName
from obsidian_agent.vault.refactor.rename_links import FileMoves, LinksAfter
from obsidian_agent.vault.refactor.tags import TagRename
from obsidian_agent.vault.views.view import VaultEntry

_PLAIN_VALUE: Final = expression(r"[\w-]+")

_MIN_PART: Final = 3
"""The length from which a part of a path counts as a name."""


class Rename(Protocol):
    """A rename as queries see it."""

    @property
    def word(self) -> str:
        """A text that is in every query with the old name, to skip the others; "" for none."""

    def renamed(self, name: QueryName, language: Language) -> str | None:
        """Return the new text of a name, or None if it does not change."""

    def is_doubtful(self, name: QueryName) -> bool:
        """Return True if a name that cannot be rewritten may mean the old one."""


class TagInQueries(Struct, frozen=True):
    """The rename of a tag in queries."""

    rename: TagRename

    @property
    def word(self) -> str:
        return ""  # a query can filter by a part of a tag

    def renamed(self, name: QueryName, language: Language) -> str | None:
        if name.kind in ("tag", "tag-part") or (name.kind == "text" and name.text[:1] == "#"):
            mark = "#" if name.text[:1] == "#" else ""
            new = self.rename.new_name(name.text.removeprefix("#").rstrip("/"))
            return None if new is None else mark + new
        return None

    def is_doubtful(self, name: QueryName) -> bool:
        old, new = f"#{tag_key(self.rename.old)}", f"#{tag_key(self.rename.new)}"
        text = name.text.casefold()
        if name.kind == "tag-part":
            is_part = len(text) > 1 and text in old and text not in new
            return is_part or _has_word(name.text, old)
        if name.kind == "text":
            return text.lstrip("#") == old[1:] or _has_word(name.text, old)
        return name.kind == "code" and _has_word(name.text, self.rename.old.rpartition("/")[2])


class PropertyInQueries(Struct, frozen=True):
    """The rename of a property in queries."""

    old: str
    new: str

    @property
    def word(self) -> str:
        return max(re.findall(r"\w+", self.old), key=len, default="")

    def renamed(self, name: QueryName, language: Language) -> str | None:
        if name.kind != "property":
            return None
        if name.text == self.old:
            return self.new
        if language == "dataview" and name.text == dataview_name(self.old):
            return dataview_name(self.new)
        return None

    def is_doubtful(self, name: QueryName) -> bool:
        if name.kind in ("text", "property"):
            return name.text.casefold() == self.old.casefold()
        if name.kind != "code":
            return False
        return _has_word(name.text, self.old) or _has_word(name.text, dataview_name(self.old))


class ValueInQueries(Struct, frozen=True):
    """The rename of texts that are values of a property, in queries."""

    key: str
    old: frozenset[str]
    new: str

    @property
    def word(self) -> str:
        return ""

    def renamed(self, name: QueryName, language: Language) -> str | None:
        if name.kind != "text" or name.text not in self.old or not self._is_of(name):
            return None
        if name.style == "plain" and not _PLAIN_VALUE.fullmatch(f"{name.text}{self.new}"):
            return None
        return self.new

    def is_doubtful(self, name: QueryName) -> bool:
        if name.kind == "code":
            return any(_has_word(name.text, old) for old in self.old)
        text = f"[[{name.text}]]" if name.kind == "link" else name.text
        if name.kind not in ("text", "link") or (name.of and not self._is_of(name)):
            return False
        folded = text.casefold()
        if folded in {old.casefold() for old in self.old}:
            return True
        is_part = any(folded in old.casefold() for old in self.old)
        return bool(name.of and folded) and (
            (is_part and folded not in self.new.casefold())
            or any(_has_word(text, old) for old in self.old)
        )

    def _is_of(self, name: QueryName) -> bool:
        return bool(name.of) and dataview_name(name.of) == dataview_name(self.key)


class MoveInQueries:
    """The rename of a note, of another file, or of a folder in queries."""

    def __init__(
        self,
        index: VaultIndex,
        moves: FileMoves,
        old: VaultPath,
        new: VaultPath,
        *,
        is_folder: bool,
        style: LinkStyle = DEFAULT_STYLE,
    ) -> None:
        self._index = index
        self._moves = moves
        self._old = old.text
        self._new = new.text
        self._is_folder = is_folder
        self._style = style
        self._after = LinksAfter(index, moves)
        self._others: list[str] | None = None
        self._stem = old.name if is_folder else old.stem
        self._has_new_name = old.name != new.name
        self.source = ROOT
        """The file with the query, before the rename."""

    @property
    def word(self) -> str:
        return ""

    def renamed(self, name: QueryName, language: Language) -> str | None:
        if name.kind == "path":
            return self._new_path(name.text)
        if name.kind == "link":
            return self._new_link(name.text)
        if name.kind == "part":
            new = self._new_path(name.text)
            return None if new is None or self._means_others(name.text, new) else new
        return None

    def is_doubtful(self, name: QueryName) -> bool:
        text = name.text.strip("/").casefold()
        old, new = f"{self._old}/".casefold(), f"{self._new}/".casefold()
        if name.kind == "part":
            if not self._is_folder:
                if text == old[:-1]:
                    return True
                # Filters by folder are meant to lose a note that moves away: only its name counts.
                old, new = (path.split("/")[-2] for path in (old, new))
            return len(text) >= _MIN_PART and text in old and text not in new
        if name.kind in ("link", "path"):
            return False
        if name.kind == "text" and text == self._stem.casefold():
            return self._has_new_name
        if name.kind not in ("text", "code"):
            return False
        whole = self._old if self._is_folder else self._old.removesuffix(".md")
        if _has_word(name.text, whole):
            return True
        return name.kind == "code" and self._has_new_name and _has_word(name.text, self._stem)

    def _new_path(self, text: str) -> str | None:
        path, slash = text.rstrip("/"), "/" if text.endswith("/") else ""
        if path == self._old:
            return self._new + slash
        if self._is_folder and path.startswith(f"{self._old}/"):
            return self._new + path[len(self._old) :] + slash
        if f"{path}.md" == self._old and self._new.endswith(".md"):
            return self._new.removesuffix(".md")
        return None

    def _new_link(self, text: str) -> str | None:
        before = self._index.resolve(text, self.source) if text else None
        if before is None:
            return None
        file, path = self._moves.after(before), self._moves.after(self.source)
        if file is None or path is None or self._after.resolve(text, path) == file:
            return None
        shape = shape_of(text, before, self.source, self._style)
        for spelling in spellings(shape, file, path, self._style):
            if self._after.resolve(spelling.text, path) == file:
                return spelling.text
        return file.text

    def _means_others(self, old: str, new: str) -> bool:
        """Return True if a filter by a part of the path is about other files too."""
        if self._others is None:
            moved = self._moves.moved
            files = (path for path in self._index.files() if path not in moved)
            self._others = [path.text.casefold() for path in files]
        parts = old.casefold(), new.casefold()
        return any(part in path for path in self._others for part in parts)


def dataview_name(name: str) -> str:
    """Return the name by which Dataview queries know a property."""
    return re.sub(r"[^\w-]", "", re.sub(r"\s+", "-", name.strip())).lower()


def _has_word(text: str, word: str) -> bool:
    """Return True if a word is in a text, which may be a regular expression."""
    if not word:
        return False
    before = "" if word[:1] == "#" else r"(?<![\w-])"
    pattern = rf"{before}{re.escape(word)}(?![\w-])"
    # A class such as \d ends a word, another backslash only escapes.
    plain = re.sub(r"\\[A-Za-z]", " ", text).replace("\\", "")
    return re.search(pattern, plain, re.IGNORECASE) is not None


def move_in_queries(
    index: VaultIndex, moves: FileMoves, entry: VaultEntry, target: VaultPath, style: LinkStyle
) -> MoveInQueries:
    """Return the rename of an entry of the vault as queries see it."""
    return MoveInQueries(
        index, moves, entry.path, target, is_folder=entry.kind == "folder", style=style
    )
