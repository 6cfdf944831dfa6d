"""The files of a run in the history, equal changes folded as in a plan."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Hashable, Iterable, Sequence
from typing import Final

from msgspec import Struct
from textual.content import Content

from obsidian_agent import terminal_text
from obsidian_agent.tui.bindings import binding
from obsidian_agent.tui.change_groups import FOLD_AT, folder_name, path_parts
from obsidian_agent.tui.widgets.row_list import VirtualList
from obsidian_agent.tui.widgets.run import WORD_STYLES

_MAX_LINES: Final = 3
"""Lines of equal edits that their row shows."""


class RunFile(Struct, frozen=True, kw_only=True):
    """A file, folder, command or step of a run, as one row.

    `paths` are those of the file before and after the run; other rows have none and cannot be
    marked. `state` is "undone", or the conflict that an undo would meet.
    """

    word: str
    text: str
    paths: tuple[str, ...] = ()
    diff: str = ""
    no_diff: str = ""
    counts: tuple[int, int] | None = None
    edit: tuple[str, ...] = ()
    """The changed lines of an edited file, with their signs."""
    state: str = ""

    @property
    def path(self) -> str | None:
        """The path of the file after the run."""
        return self.paths[-1] if self.paths else None

    @property
    def files(self) -> tuple[RunFile, ...]:
        """The file itself, if it can be marked."""
        return (self,) if self.paths else ()


class RunGroup(Struct, frozen=True, kw_only=True):
    """Files with equal changes, or in one folder, as one row that opens to its files."""

    key: Hashable
    word: str
    text: str
    files: tuple[RunFile, ...]
    is_open: bool


class RunFiles(VirtualList[RunFile | RunGroup]):
    """The files of the highlighted run, with marks for those to undo."""

    DEFAULT_CSS = "RunFiles { height: auto; min-height: 1; }"
    BINDINGS = [binding("list.choose", "Diff")]

    def __init__(self) -> None:
        super().__init__(id="run-files")
        self.marked: frozenset[str] = frozenset()
        self._files: Sequence[RunFile] = ()
        self._opened: set[Hashable] = set()
        self._query = ""

    def show(self, files: Sequence[RunFile]) -> None:
        """Show the files of a run. The cursor stays at its index, or goes to the first file."""
        is_first = not self.rows
        self._files = files
        rows = self._rows()
        first = next((index for index, row in enumerate(rows) if row.files), 0)
        self.set_rows(rows, first if is_first else None)

    def clear(self) -> None:
        """Remove the files, their marks and what is opened."""
        self.marked, self._files, self._query = frozenset(), (), ""
        self._opened.clear()
        self.set_rows((), 0)

    def filter(self, query: str) -> None:
        """Show only the files with these words in their paths."""
        self._query = query
        self.set_rows(self._rows(), 0)

    def toggle(self, group: RunGroup) -> None:
        """Open or close the files of a row."""
        self._opened ^= {group.key}
        self.set_rows(self._rows())

    def mark(self) -> None:
        """Mark the files of the row under the cursor, or remove their marks."""
        if self.current is None:
            return
        paths = frozenset(file.paths[-1] for file in self.current.files)
        self.marked = self.marked - paths if paths <= self.marked else self.marked | paths
        self.set_rows(self.rows)

    def _rows(self) -> list[RunFile | RunGroup]:
        words = self._query.casefold().split()
        files = self._files
        if words:
            files = [file for file in files if all(word in file.text.casefold() for word in words)]
        return list(grouped_files(files, self._opened))

    def draw_row(self, row: RunFile | RunGroup, width: int) -> Content:
        if isinstance(row, RunGroup):
            return self._group_content(row, width)
        counts = Content("")
        if row.counts is not None:
            added, removed = row.counts
            counts = Content.assemble((f"  +{added:,}", "$success"), (f" −{removed:,}", "$error"))
        state = Content.styled(f"  {row.state}" if row.state else "", "$warning")
        is_marked = row.path in self.marked
        head = Content.assemble(
            (" ● " if is_marked else "   ", "$primary bold"),
            (f"{row.word:<9}", WORD_STYLES[row.word]),
        )
        space = max(width - counts.cell_length - state.cell_length, 20)
        parts = [(terminal_text.shortened(row.text, 400), "$foreground")]
        if row.paths:
            new = row.paths[1] if len(row.paths) > 1 else None
            parts = path_parts(row.paths[0], new, space - head.cell_length)
        head = Content.assemble(head, *parts)
        return Content.assemble(head.truncate(space, ellipsis=True), counts, state)

    def _group_content(self, group: RunGroup, width: int) -> Content:
        count = len(group.files)
        marked = sum(file.path in self.marked for file in group.files)
        remarks = [f"{marked:,} marked"] if 0 < marked < count else []
        undone = sum(file.state == "undone" for file in group.files)
        conflicts = sum(bool(file.state) for file in group.files) - undone
        if conflicts:
            remarks.append(terminal_text.counted(conflicts, "conflict"))
        if undone:
            remarks.append(f"{undone:,} undone")
        state = Content.styled(f"  {', '.join(remarks)}" if remarks else "", "$warning")
        sign = "▾" if group.is_open else "▸"
        head = Content.assemble(
            (f" {'●' if marked == count else sign} ", "$primary bold"),
            (f"{group.word:<9}", WORD_STYLES[group.word]),
            (f"{terminal_text.counted(count, 'file')}  ", "$foreground"),
            (terminal_text.shortened(group.text, 200), "$quiet"),
        )
        space = max(width - state.cell_length, 20)
        return Content.assemble(head.truncate(space, ellipsis=True), state)


def grouped_files(
    files: Sequence[RunFile], opened: Collection[Hashable]
) -> Iterable[RunFile | RunGroup]:
    """Yield the rows of files: those with equal changes folded, then the others by folder."""
    members: defaultdict[Hashable, list[RunFile]] = defaultdict(list)
    edits = Counter(file.edit for file in files if file.edit)
    for number, file in enumerate(files):
        key: Hashable = number
        if edits[file.edit] >= FOLD_AT:
            key = file.edit
        elif file.paths:
            key = (file.word, tuple(map(_folder, file.paths)))
        members[key].append(file)
    for key, group in members.items():
        if len(group) < FOLD_AT:
            yield from group
            continue
        is_open = key in opened
        label = _lines_label(group[0]) if key == group[0].edit else _folder_label(group[0])
        yield RunGroup(key=key, word=group[0].word, text=label, files=tuple(group), is_open=is_open)
        if is_open:
            yield from group


def _folder(path: str) -> str:
    return path.rpartition("/")[0]


def _lines_label(file: RunFile) -> str:
    lines = [f"{line[0]} {line[1:].strip()}" for line in file.edit[:_MAX_LINES]]
    return "  ".join([*lines, *["…"] * (len(file.edit) > _MAX_LINES)])


def _folder_label(file: RunFile) -> str:
    folders = dict.fromkeys(folder_name(_folder(path)) for path in file.paths)
    return " → ".join(folders) if len(folders) > 1 else f"in {next(iter(folders))}"
