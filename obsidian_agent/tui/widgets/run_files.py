"""The files of a run or of its undo, equal changes folded as in a plan."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Hashable, Iterable, Sequence
from typing import TYPE_CHECKING, ClassVar, Final

from msgspec import Struct
from textual.content import Content

from obsidian_agent import terminal_text
from obsidian_agent.tui.bindings import BY_ID, binding
from obsidian_agent.tui.change_groups import FOLD_AT, folder_name, path_parts
from obsidian_agent.tui.report_lines import describe_step
from obsidian_agent.tui.widgets.row_list import VirtualList

if TYPE_CHECKING:
    from obsidian_agent.journal.changes import RunChange
    from obsidian_agent.journal.records import Effects, StepOutcome
    from obsidian_agent.services.runs import ShownRun

_MAX_LINES: Final = 3
"""Lines of equal edits that their row shows."""
WORD_STYLES = {
    "step": "$primary",
    "pending": "$warning",
    "changed": "$warning",
    "restore": "$success",
    "move back": "$secondary",
    "remove": "$error",
    "new": "$success",
    "edit": "$warning",
    "delete": "$error",
    "rename": "$secondary",
    "folder": "$success",
    "command": "$secondary",
    "left out": "$quiet",
    "error": "$error",
    "warning": "$warning",
    "keep mine": "$success",
    "restore anyway": "$error",
    "cannot restore": "$quiet",
}
FOLD_KEYS: Final = [BY_ID["plan.open"].binding(), BY_ID["plan.close"].binding()]
_WORDS = {
    "create": "new",
    "modify": "edit",
    "delete": "delete",
    "rename": "rename",
    "mkdir": "folder",
}


class RunFile(Struct, frozen=True, kw_only=True):
    """A file, folder, command, step or problem of a run, as one row.

    `paths` are those of the file before and after the run; other rows have none and cannot be
    marked. `no_diff` is shown if there is no diff. `state` is "undone", or the conflict that an
    undo would meet.
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
    """The files of a run, with marks for those to undo."""

    DEFAULT_CSS = "RunFiles { height: auto; min-height: 1; }"
    BINDINGS = [binding("list.choose", "Diff"), *FOLD_KEYS]
    WORD_WIDTH: ClassVar = 8

    def __init__(self, *, id: str = "run-files") -> None:
        super().__init__(id=id)
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

    def action_choose(self) -> None:
        """Open or close a group; a file is chosen."""
        if isinstance(self.current, RunGroup):
            self.toggle(self.current)
        else:
            super().action_choose()

    def action_fold(self, open: bool) -> None:
        """Open or close the group at the cursor, or close the one around it."""
        for index in range(self.cursor, -1, -1):
            row = self.rows[index]
            if isinstance(row, RunGroup) and (index == self.cursor or self.current in row.files):
                if row.is_open != open:
                    self.cursor = index
                    self.toggle(row)
                return

    @property
    def path(self) -> str | None:
        """The path of the file at the cursor."""
        return self.current.path if isinstance(self.current, RunFile) else None

    def mark(self) -> None:
        """Mark the files of the row under the cursor, or remove their marks."""
        if self.current is None:
            return
        paths = frozenset(file.path for file in self.current.files if file.path)
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
        reason = f"  {terminal_text.shortened(row.state, 200)}" if row.state else ""
        state = Content.styled(reason, "$warning")
        is_marked = row.path in self.marked
        head = Content.assemble(
            (" ● " if is_marked else "   ", "$primary bold"),
            (f"{row.word:<{self.WORD_WIDTH}} ", WORD_STYLES[row.word]),
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
        noun = "file" if group.files[0].paths else "change"
        head = Content.assemble(
            (f" {'●' if marked == count else sign} ", "$primary bold"),
            (f"{group.word:<{self.WORD_WIDTH}} ", WORD_STYLES[group.word]),
            (f"{terminal_text.counted(count, noun)}  ", "$foreground"),
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
        elif file.word in ("pending", "left out"):
            key = file.word
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
    return " → ".join(folders) if len(folders) > 1 else "".join(f"in {name}" for name in folders)


def run_rows(
    run: ShownRun, steps: Sequence[StepOutcome], conflicts: dict[str, str]
) -> list[RunFile]:
    """Return the rows of a run: its files and commands, and its steps if some are not applied.

    `conflicts` maps the paths that undo would skip to the reasons.
    """
    rows = step_rows_unless_applied(steps)
    rows += [_file_row(change, diff, run.undone, conflicts) for change, diff in run.changes]
    rows += _command_rows(run.entry.effects)
    rows += [
        RunFile(word="left out", text=text, no_diff="You left this out of the plan.")
        for text in run.left_out
    ]
    return rows


def step_rows(steps: Sequence[StepOutcome]) -> list[RunFile]:
    """Return a row for each step, with its outcome."""
    return [RunFile(word="step", text=describe_step(step)) for step in steps]


def step_rows_unless_applied(steps: Sequence[StepOutcome]) -> list[RunFile]:
    """Return the rows of steps if one of them is not applied."""
    applied = all(step.state in ("applied", "no changes") for step in steps)
    return [] if applied else step_rows(steps)


def _file_row(
    change: RunChange, diff: str, undone: frozenset[str], conflicts: dict[str, str]
) -> RunFile:
    paths = tuple(path for path in (change.path, change.new_path) if path is not None)
    state = "undone" if change.path in undone else ""
    for path in paths:
        if path in conflicts:
            state = f"conflict: {conflicts[path]}"
    text = " → ".join(paths)
    if change.kind == "mkdir":
        return _folder_row(text)
    no_diff = "The old text is no longer stored, or this is not a text file."
    if change.before is None and change.after is None:
        no_diff = "The run did not change the text of this file."
    lines = tuple(line for line in diff.split("\n")[2:] if line.startswith(("+", "-")))
    added = sum(line.startswith("+") for line in lines)
    return RunFile(
        word=_WORDS[change.kind],
        text=text,
        paths=paths,
        diff=diff,
        no_diff=no_diff,
        counts=(added, len(lines) - added) if diff else None,
        edit=lines if change.kind == "modify" else (),
        state=state,
    )


def _folder_row(path: str) -> RunFile:
    return RunFile(
        word="folder", text=path, no_diff="A new folder. Undo removes it if it is empty."
    )


def _command_rows(effects: Effects) -> list[RunFile]:
    return [
        RunFile(
            word="command",
            text=name,
            no_diff="A command of Obsidian. It cannot be undone.",
            state="cannot be undone",
        )
        for name in effects.commands
    ]


def rows_of_effects(effects: Effects) -> list[RunFile]:
    """Return the rows of a run whose diffs are not read, or cannot be."""
    missing = "No diff: the history could not be read."
    rows: list[tuple[str, tuple[str, ...]]] = [("delete", (path,)) for path in effects.deleted]
    rows += [("rename", pair) for pair in effects.renamed]
    rows += [("edit", (path,)) for path in effects.modified]
    rows += [("new", (path,)) for path in effects.created]
    files = [
        RunFile(word=word, text=" → ".join(paths), paths=paths, no_diff=missing)
        for word, paths in rows
    ]
    folders = map(_folder_row, effects.folders)
    return [*files, *folders, *_command_rows(effects)]
