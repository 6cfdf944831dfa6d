"""Edits of notes that are open in Obsidian, through its editor.

Unsaved text is saved first, and the edit is one step of the editor's undo. Only notes in source
view are edited like this, with Unix line ends, without a byte order mark and of at most 200 KB: how
an editor treats other notes is not certain. They are changed on the disk, and Obsidian reloads
them. An edit is a list of replaced ranges in UTF-16 units, as small as can be computed quickly.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from difflib import SequenceMatcher
from itertools import accumulate, groupby
from os.path import commonprefix
from typing import Final

from msgspec import Struct, field

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
"""Size of the largest note that is changed through the editor, in bytes."""

_BOM: Final = "\ufeff".encode()
_CLOSED: Final = frozenset({"NOT_OPEN", "NOT_SOURCE"})
"""Codes of the companion for a note that must be changed on the disk."""
_UNCHANGED: Final = frozenset(
    {"DIFFERENT", "BAD_REQUEST", "PROTOCOL", "OTHER_VAULT", "UNKNOWN_ACTION", "TOO_LARGE"}
)
"""Codes of the companion for a note that it did not change."""
_MAX_PAIRS: Final = 250_000
"""Pairs of lines up to which differing lines are compared in detail."""

_Hunk = tuple[int, int, int, int]
"""Start and end in the old text, start and end in the new one, in characters or lines."""


class OpenNotes(Struct):
    """The notes that Obsidian had open when it saved them (`OpenFiles` of the vault's store)."""

    companion: CompanionClient | None
    files: Mapping[str, SavedFile]
    warnings: list[Problem] = field(default_factory=list)

    def is_open(self, path: str) -> bool:
        """Return True if the file is open."""
        return path in self.files

    def write(self, path: str, before: bytes, after: bytes) -> bool:
        """Change an open note in the editor. Return False if it must be changed on the disk.

        Raises the same errors as `OpenFiles.write`.
        """
        if self.companion is None:
            return False
        if self.files[path].mode != "source":
            reason: str | None = "it is not open for editing"
        else:
            reason = _unsupported(before) or _unsupported(after)
        if reason is None:
            old, new = before.decode(), after.decode()
            try:
                self.companion.edit(path, _hash(before), _hash(after), text_changes(old, new))
            except Unreachable as error:
                if error.sent:
                    raise
                reason = "Obsidian was closed meanwhile"
            except CompanionUnavailable as error:
                if error.sent:
                    raise
                reason = "the plugin was turned off meanwhile"
            except ObsidianError as error:
                if error.code == "STALE":
                    raise Conflict(
                        f"{path} was changed in Obsidian meanwhile.", path=path
                    ) from error
                if error.code in _UNCHANGED:
                    raise VaultError(
                        f"{path} could not be changed in Obsidian: {error.message}", path=path
                    ) from error
                if error.code not in _CLOSED:
                    raise
                reason = "it is no longer open for editing"
            else:
                return True
        message = (
            f"{path} is open in Obsidian and is changed on the disk, because {reason}. "
            "Obsidian reloads it."
        )
        self.warnings.append(Problem("OPEN_IN_OBSIDIAN", message, path=path))
        return False


class ObsidianEditor(Struct, frozen=True):
    """Obsidian as the editor of open notes (`Editor` of the vault's store)."""

    obsidian: Obsidian

    def save(
        self, paths: Iterable[str] | None, *, require_answer: bool = False
    ) -> OpenNotes | None:
        """Save unsaved text. Raises the same errors as `Editor.save`."""
        try:
            companion = self.obsidian.companion()
            open_paths = _filter(companion.context().open, paths)
            files = companion.save(open_paths) if open_paths else ()
        except (Unreachable, CompanionUnavailable) as error:
            if not error.sent:
                return None
            if require_answer:
                raise
            return OpenNotes(None, {}, [error.problem()])
        except ObsidianError as error:
            return OpenNotes(None, {}, [error.problem()])
        open_files = {file.path: file for file in files if file.open}
        for file in open_files.values():
            if not file.saved:
                raise Conflict(
                    f"{file.path} has unsaved text in Obsidian that could not be saved.",
                    path=file.path,
                    hint="Save or close it there, and try again.",
                )
        return OpenNotes(companion, open_files) if open_files else None


def _filter(open_paths: Iterable[str], paths: Iterable[str] | None) -> list[str]:
    """Return the open files that are one of these paths, or below one."""
    if paths is None:
        return list(open_paths)
    selected = set(paths)

    def is_selected(path: str) -> bool:
        while path:
            if path in selected:
                return True
            path = path.rpartition("/")[0]
        return False

    return [path for path in open_paths if is_selected(path)]


def _unsupported(data: bytes) -> str | None:
    """Return why a text cannot be written through the editor, or None."""
    if len(data) > LARGEST:
        return f"it is larger than {LARGEST // 1000} KB"
    if b"\r" in data:
        return "it has Windows line ends"
    if data.startswith(_BOM):
        return "it starts with a byte order mark"
    try:
        data.decode()
    except UnicodeDecodeError:
        return "it is not UTF-8"
    return None


def _hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def text_changes(old: str, new: str) -> list[TextChange]:
    """Return the changes from `old` to `new`, ascending and not overlapping.

    Their offsets are in `old`.
    """
    changes: list[TextChange] = []
    position = units = 0
    for start, end, new_start, new_end in _hunks(old, new):
        units += _units(old[position:start])
        length = _units(old[start:end])
        changes.append((units, units + length, new[new_start:new_end]))
        position, units = end, units + length
    return changes


def _hunks(old: str, new: str) -> Iterator[_Hunk]:
    start, end, _, new_end = _trimmed(old, new, (0, len(old), 0, len(new)))
    lines = old[start:end].splitlines(keepends=True)
    new_lines = new[start:new_end].splitlines(keepends=True)
    offsets = list(accumulate(map(len, lines), initial=start))
    new_offsets = list(accumulate(map(len, new_lines), initial=start))
    for first, last, new_first, new_last in _blocks(lines, new_lines):
        hunk = (offsets[first], offsets[last], new_offsets[new_first], new_offsets[new_last])
        yield _trimmed(old, new, hunk)


def _trimmed(old: str, new: str, hunk: _Hunk) -> _Hunk:
    """Return a hunk without equal text at its start and end."""
    start, end, new_start, new_end = hunk
    old_message_count, new_part = old[start:end], new[new_start:new_end]
    prefix = len(commonprefix([old_message_count, new_part]))
    suffix = len(commonprefix([old_message_count[prefix:][::-1], new_part[prefix:][::-1]]))
    return start + prefix, end - suffix, new_start + prefix, new_end - suffix


def _blocks(lines: list[str], new_lines: list[str]) -> Iterator[_Hunk]:
    """Yield the runs of lines that differ.

    Texts with the same number of lines are compared line by line, other small ones in detail.
    """
    if len(lines) == len(new_lines):
        differ = [old != new for old, new in zip(lines, new_lines, strict=True)]
        for is_different, run in groupby(range(len(lines)), key=differ.__getitem__):
            if is_different:
                numbers = list(run)
                yield numbers[0], numbers[-1] + 1, numbers[0], numbers[-1] + 1
    elif len(lines) * len(new_lines) <= _MAX_PAIRS:
        matcher = SequenceMatcher(None, lines, new_lines, autojunk=False)
        for kind, first, last, new_first, new_last in matcher.get_opcodes():
            if kind != "equal":
                yield first, last, new_first, new_last
    else:
        yield 0, len(lines), 0, len(new_lines)


def _units(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-16-le")) // 2
