"""Changing the notes that are open in Obsidian through its editor: what is typed is saved first, then one step of the editor's undo.

Only notes in source view go this way, with plain line ends, without a byte order mark and of at most 200 KB, because what an editor makes of
others is not certain. The rest is written on the disk, and Obsidian loads it again. A change is a few replaced places, in UTF-16 units, as small
as is cheap to find out.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from difflib import SequenceMatcher
from itertools import accumulate, groupby
from os.path import commonprefix
from typing import Final

from obsidian_agent.dataclass import dataclass, field
from obsidian_agent.errors import Conflict, ObsidianError, Problem, VaultError
from obsidian_agent.obsidian.companion_client import (
    CompanionClient,
    CompanionUnavailable,
    SavedFile,
    TextChange,
)
from obsidian_agent.obsidian.live import Obsidian
from obsidian_agent.obsidian.transport import Unreachable

LARGEST: Final = 200_000
"""Bytes of the largest note that is changed through the editor."""

_BOM: Final = "\ufeff".encode()
_CLOSED: Final = frozenset({"NOT_OPEN", "NOT_SOURCE"})
_UNDONE: Final = frozenset(
    {"DIFFERENT", "BAD_REQUEST", "PROTOCOL", "OTHER_VAULT", "UNKNOWN_ACTION", "TOO_LARGE"}
)


@dataclass(slots=True)
class OpenNotes:
    """The files that were open in Obsidian when they were settled (`OpenFiles` in vault/filesystem/store.py)."""

    companion: CompanionClient | None
    files: Mapping[str, SavedFile]
    warnings: list[Problem] = field(default_factory=list)

    def is_open(self, path: str) -> bool:
        """Whether the file is open."""
        return path in self.files

    def write(self, path: str, before: bytes, after: bytes) -> bool:
        """Have an open note changed; False when that has to be done on the disk. Raises as `OpenFiles.write`."""
        if self.companion is None:
            return False
        why = (
            "it is not open for editing"
            if self.files[path].mode != "source"
            else _unfit(before) or _unfit(after)
        )
        if why is None:
            old, new = before.decode(), after.decode()
            try:
                self.companion.edit(path, _hash(before), _hash(after), text_changes(old, new))
            except Unreachable as error:
                if error.sent:
                    raise
                why = "Obsidian was closed meanwhile"
            except CompanionUnavailable as error:
                if error.sent:
                    raise
                why = "the plugin was switched off meanwhile"
            except ObsidianError as error:
                if error.code == "STALE":
                    raise Conflict(
                        f"{path} was changed in Obsidian meanwhile.", path=path
                    ) from error
                if error.code in _UNDONE:
                    raise VaultError(
                        f"{path} could not be changed in Obsidian: {error.message}", path=path
                    ) from error
                if error.code not in _CLOSED:
                    raise
                why = "it is not open for editing any more"
            else:
                return True
        message = f"{path} is open in Obsidian and is changed on the disk, because {why}. Obsidian loads it again."
        self.warnings.append(Problem("OPEN_IN_OBSIDIAN", message, path=path))
        return False


@dataclass(frozen=True, slots=True)
class ObsidianEditor:
    """The notes that are open in Obsidian (`Editor` in vault/filesystem/store.py)."""

    obsidian: Obsidian

    def save(
        self, paths: Iterable[str] | None, *, require_answer: bool = False
    ) -> OpenNotes | None:
        """Have what is typed saved. Raises as `Editor.save`."""
        try:
            companion = self.obsidian.companion()
            concerned = _among(companion.context().open, paths)
            settled = companion.save(concerned) if concerned else ()
        except (Unreachable, CompanionUnavailable) as error:
            if not error.sent:
                return None
            if require_answer:
                raise
            return OpenNotes(None, {}, [error.problem()])
        except ObsidianError as error:
            return OpenNotes(None, {}, [error.problem()])
        files = {file.path: file for file in settled if file.open}
        for file in files.values():
            if not file.saved:
                raise Conflict(
                    f"{file.path} has words in Obsidian that could not be saved.",
                    path=file.path,
                    hint="Save or close it there, and try again.",
                )
        return OpenNotes(companion, files) if files else None


def _among(open_paths: Iterable[str], paths: Iterable[str] | None) -> list[str]:
    """The open files that are one of these paths, or below one."""
    if paths is None:
        return list(open_paths)
    wanted = set(paths)

    def concerned(path: str) -> bool:
        while path:
            if path in wanted:
                return True
            path = path.rpartition("/")[0]
        return False

    return [path for path in open_paths if concerned(path)]


def _unfit(data: bytes) -> str | None:
    """Why a text does not go through the editor."""
    if len(data) > LARGEST:
        return f"it is larger than {LARGEST // 1000} KB"
    if b"\r" in data:
        return "its lines end as on Windows"
    if data.startswith(_BOM):
        return "it begins with a byte order mark"
    try:
        data.decode()
    except UnicodeDecodeError:
        return "it is not UTF-8"
    return None


def _hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


_MOST_PAIRS: Final = 250_000
"""Pairs of lines up to which the lines that differ are compared closely."""

_Hunk = tuple[int, int, int, int]
"""From and to in the old text, from and to in the new one, in characters."""


def text_changes(old: str, new: str) -> list[TextChange]:
    """What leads from `old` to `new`: ascending, not overlapping, offsets in `old`. [] for equal texts."""
    changes: list[TextChange] = []
    at = units = 0
    for start, end, new_start, new_end in _hunks(old, new):
        units += _units(old[at:start])
        length = _units(old[start:end])
        changes.append((units, units + length, new[new_start:new_end]))
        at, units = end, units + length
    return changes


def _hunks(old: str, new: str) -> Iterator[_Hunk]:
    start, end, _, new_end = _cut(old, new, (0, len(old), 0, len(new)))
    lines, new_lines = (
        old[start:end].splitlines(keepends=True),
        new[start:new_end].splitlines(keepends=True),
    )
    places = list(accumulate(map(len, lines), initial=start))
    new_places = list(accumulate(map(len, new_lines), initial=start))
    for first, last, new_first, new_last in _blocks(lines, new_lines):
        yield _cut(
            old, new, (places[first], places[last], new_places[new_first], new_places[new_last])
        )


def _cut(old: str, new: str, hunk: _Hunk) -> _Hunk:
    """The hunk without what is equal at its beginning and its end."""
    start, end, new_start, new_end = hunk
    one, other = old[start:end], new[new_start:new_end]
    ahead = len(commonprefix([one, other]))
    behind = len(commonprefix([one[ahead:][::-1], other[ahead:][::-1]]))
    return start + ahead, end - behind, new_start + ahead, new_end - behind


def _blocks(lines: list[str], new_lines: list[str]) -> Iterator[_Hunk]:
    """The runs of lines that differ. Lines that only changed in their place are found by going along both; else few are compared closely."""
    if len(lines) == len(new_lines):
        differ = [one != other for one, other in zip(lines, new_lines, strict=True)]
        for is_different, run in groupby(range(len(lines)), key=differ.__getitem__):
            if is_different:
                at = list(run)
                yield at[0], at[-1] + 1, at[0], at[-1] + 1
    elif len(lines) * len(new_lines) <= _MOST_PAIRS:
        for what, first, last, new_first, new_last in SequenceMatcher(
            None, lines, new_lines, autojunk=False
        ).get_opcodes():
            if what != "equal":
                yield first, last, new_first, new_last
    else:
        yield 0, len(lines), 0, len(new_lines)


def _units(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-16-le")) // 2
