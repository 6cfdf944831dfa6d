"""How the rows of a plan look."""

from __future__ import annotations

from typing import assert_never

from textual.content import Content

from obsidian_agent import terminal_text
from obsidian_agent.tui.plan_rows import CHANGE_WORDS, ChangeRow, MoreRow, PlanRow, RemarkRow, SectionRow, StepRow, files_in_words
from obsidian_agent.tui.widgets.virtual_list import VirtualList

KIND_STYLES = {"delete": "$error", "rename": "$secondary", "modify": "$warning", "create": "$success", "mkdir": "$success"}
_REMARKS = {"error": ("✗", "$error"), "warning": ("▲", "$warning"), "notice": ("▲", "$warning"), "assumes": ("·", "$quiet")}


class PlanList(VirtualList[PlanRow]):
    """Sections of remarks, steps and files."""

    BINDING_GROUP_TITLE = "Plan"

    def can_stop(self, row: PlanRow) -> bool:
        return not isinstance(row, SectionRow)

    def draw_row(self, row: PlanRow, width: int) -> Content:
        match row:
            case SectionRow():
                return Content.styled(row.title, "bold $quiet")
            case RemarkRow():
                word, style = _REMARKS[row.kind]
                return Content.assemble((f" {word} ", style), (row.text, "$foreground" if row.kind != "assumes" else "$quiet"))
            case MoreRow():
                return Content.styled(f" … {row.hidden:,} more, Enter shows them", "$primary")
            case StepRow():
                return _step(row)
            case ChangeRow():
                return _change(row, width)
            case _:
                assert_never(row)


def _step(row: StepRow) -> Content:
    text = row.step.preview or row.step.tool
    notes = []
    if row.calls > 1 or row.step.foreach is not None:
        notes.append(f"×{row.calls:,}")
    if row.failed:
        notes.append(f"{row.failed:,} cannot be done")
    if row.skipped:
        notes.append(f"{row.skipped:,} skipped")
    body = "$foreground" if row.on else "$quiet strike"
    parts: list[tuple[str, str]] = [
        (" ● on  " if row.on else " ○ off ", "$success" if row.on else "$quiet"),
        (terminal_text.shortened(text, 200), body),
    ]
    if row.on and notes:
        parts.append((f"  {' · '.join(notes)}", "$warning" if row.failed else "$quiet"))
    if row.step.preview:
        parts.append((f"  {terminal_text.shortened(row.step.tool, 60)}", "$quiet"))
    return Content.assemble(*parts)


def _change(row: ChangeRow, width: int) -> Content:
    change = row.change
    head = (f" {CHANGE_WORDS[change.kind]:<7}", KIND_STYLES[change.kind])
    room = max(width - 10, 12)
    if change.new_path is None:
        whole = f"  folder, {files_in_words(change.files)}" if change.folder and change.kind == "delete" else ""
        return Content.assemble(head, *_path(change.path.text, room - len(whole)), (whole, "$error"), *_doubts(change.path.text))
    half = max((room - 3) // 2, 8)
    old, new = change.path.text, change.new_path.text
    edited = [("  and edited", "$warning")] if change.content is not None else []
    return Content.assemble(head, *_path(old, half), (" → ", "$quiet"), *_path(new, half), *edited, *_doubts(new))


def _path(path: str, room: int) -> list[tuple[str, str]]:
    """Folder dim, name plain. A path that is too long loses its middle folders, never its name."""
    folder, _, name = path.rpartition("/")
    folder, name = terminal_text.line(folder + "/" if folder else ""), terminal_text.line(name)
    if name != name.strip() or "  " in name:
        name = f"“{name}”"
    if len(folder) + len(name) > room and folder:
        keep = max(room - len(name) - 2, 0)
        folder = f"{folder[:keep]}…/" if keep else "…/"
    return [(folder, "$quiet"), (name, "$foreground")]


def _doubts(path: str) -> list[tuple[str, str]]:
    return [("  ▲ mixed alphabets", "$warning")] if terminal_text.looks_mixed(path) else []
