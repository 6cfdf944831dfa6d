"""The list of a plan: its remarks, steps and changes, one a line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import assert_never

from textual.content import Content

from obsidian_agent import terminal_text
from obsidian_agent.tui.bindings import bindings
from obsidian_agent.tui.change_groups import (
    Kind,
    counted_files,
    path_parts,
)
from obsidian_agent.tui.plan_rows import (
    ChangeRow,
    GroupRow,
    PartRow,
    PlanRow,
    RemarkRow,
    RemarksRow,
    StepRow,
)
from obsidian_agent.tui.widgets.row_list import VirtualList

KIND_STYLES: Mapping[Kind, str] = {
    "delete": "$error",
    "create": "$success",
    "mkdir": "$success",
    "modify": "$warning",
    "rename": "$secondary",
    "links": "$secondary",
}
ROW_WORDS: Mapping[Kind, str] = {
    "delete": "delete",
    "create": "new",
    "mkdir": "folder",
    "modify": "edit",
    "rename": "rename",
    "links": "links",
}
_REMARKS = {
    "error": ("✗", "$error"),
    "warning": ("▲", "$warning"),
    "notice": ("▲", "$warning"),
    "assumption": ("·", "$quiet"),
}
_FOLDS = {True: "▾", False: "▸"}


class PlanList(VirtualList[PlanRow], inherit_bindings=False):
    """The sections of remarks, steps and changes of a plan."""

    BINDING_GROUP_TITLE = "Plan"
    BINDINGS = bindings("list", without=("list.previous",))

    def draw_row(self, row: PlanRow, width: int) -> Content:
        match row:
            case RemarkRow() | RemarksRow():
                return _draw_remark(row)
            case StepRow():
                return _draw_step(row, width)
            case GroupRow():
                return _draw_group(row)
            case ChangeRow():
                return _draw_change(row, width)
            case PartRow():
                return _draw_part(row)
            case _:
                assert_never(row)


def _draw_remark(row: RemarkRow | RemarksRow) -> Content:
    sign, style = _REMARKS[row.kind]
    mark = _FOLDS[row.is_open] if isinstance(row, RemarksRow) else " "
    indent = "  " if isinstance(row, RemarkRow) and row.is_inside else ""
    return Content.assemble(
        (f"{indent}{mark} ", "$quiet"),
        (f"{sign} ", style),
        (row.text, "$foreground" if row.kind != "assumption" else "$quiet"),
    )


def _draw_step(row: StepRow, width: int) -> Content:
    body = "$foreground" if row.is_on else "$quiet strike"
    title = terminal_text.shortened(row.step.title, 200)
    effect = row.effect if row.is_on else ""
    parts: list[tuple[str, str]] = [
        (f"{row.number:>3} ", "$quiet"),
        ("● " if row.is_on else "○ off  ", "$success" if row.is_on else "$quiet"),
        (title, body),
        (" " * max(width // 2 - 6 - len(title), 2), ""),
        (effect, "$quiet"),
    ]
    if row.is_on and row.problems:
        separator = " · " if effect else ""
        parts.append((f"{separator}{row.problems}", "$warning" if row.has_failed else "$quiet"))
    return Content.assemble(*parts)


def _draw_group(row: GroupRow) -> Content:
    group = row.group
    return Content.assemble(
        (f"{_FOLDS[row.is_open]} ", "$quiet"),
        (f"{ROW_WORDS[group.kind]:<7}", KIND_STYLES[group.kind]),
        (f"{counted_files(group.changes):<11}", "bold $foreground"),
        (f"{row.left_out:,} left out  " if row.left_out else "", "$warning"),
        *group.label,
    )


def _draw_part(row: PartRow) -> Content:
    """Draw an edit of a file: its line, and its first added or removed text."""
    part = row.part
    sign, style, lines = ("+", "$success", part.new) if part.new else ("−", "$error", part.old)
    first = next((line for line in lines if line.strip()), "")
    counts = f"  +{len(part.new):,} −{len(part.old):,}"
    left_out = row.is_left_out
    return Content.assemble(
        ("           ", ""),
        ("○ " if left_out else "● ", "$quiet" if left_out else "$success"),
        (f"line {part.start + 1:,}  ", "$quiet"),
        (f"{sign} ", "$quiet" if left_out else style),
        (
            terminal_text.shortened(first.strip(), 200),
            "$quiet strike" if left_out else "$foreground",
        ),
        (counts, "$quiet"),
        ("  left out" if left_out else "", "$warning"),
    )


def _draw_change(row: ChangeRow, width: int) -> Content:
    change = row.change
    counts = Content("")
    if row.edit is not None and change.content is not None:
        counts = Content.assemble(
            (f"  +{row.edit.added:,}", "$success"), (f" −{row.edit.removed:,}", "$error")
        )
    word = "" if row.is_inside else ROW_WORDS[row.kind]
    if row.is_left_out:
        counts = Content.styled("  left out", "$warning")
    elif row.parts_left_out:
        counts = Content.assemble((f"  {row.parts_left_out:,} left out", "$warning"), counts)
    mark = "○ " if row.is_left_out else "  "
    head = Content.assemble((mark, "$quiet"), (f"{word:<7}", KIND_STYLES[row.kind]))
    room = max(width - head.cell_length - counts.cell_length, 12)
    new_path = None if change.new_path is None else change.new_path.text
    parts = path_parts(change.path.text, new_path, room, in_folder=row.is_inside)
    if change.folder and change.kind == "delete":
        parts.append((f"  folder, {terminal_text.counted(change.files, 'file')}", "$error"))
    if change.kind == "rename" and change.content is not None:
        parts.append(("  and edited", "$warning"))
    parts += _script_warning((change.new_path or change.path).text)
    body = Content.assemble(*parts)
    if row.is_left_out:
        body = body.stylize("$quiet strike")
    return Content.assemble(head, body.truncate(room, ellipsis=True, pad=bool(counts)), counts)


def _script_warning(path: str) -> list[tuple[str, str]]:
    if not terminal_text.mixes_scripts(path):
        return []
    return [("  ▲ mixed alphabets", "$warning")]
