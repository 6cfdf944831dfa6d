"""The plan pane: the exact changes of a plan and the keys to decide on it.

The pane only posts the decision of the user; the screen acts on it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, assert_never

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.widgets import Static
from textual.worker import Worker

from obsidian_agent import terminal_text
from obsidian_agent.errors import ObsidianAgentError
from obsidian_agent.tui import plan_rows
from obsidian_agent.tui.bindings import bindings, key_label
from obsidian_agent.tui.plan_rows import (
    CHANGE_WORDS,
    ChangeRow,
    MoreRow,
    PlanRow,
    RemarkRow,
    SectionRow,
    StepRow,
)
from obsidian_agent.tui.widgets.diff import Detail, Diff, parse_diff
from obsidian_agent.tui.widgets.note import OutsideRequested
from obsidian_agent.tui.widgets.row_list import VirtualList

if TYPE_CHECKING:
    from obsidian_agent.plan.model import ActionPlan
    from obsidian_agent.plan.result import Preview
    from obsidian_agent.vault.views.changes import NetChange

DIFF_DELAY = 0.04
"""Seconds before the diff of a newly highlighted file is loaded."""

GOAL_LINES = 3
RISK_STYLES = {"read-only": "$success", "writes": "$warning", "commands": "$error"}
RISK_WORDS = {
    "read-only": "read-only",
    "writes": "writes to the vault",
    "commands": "runs commands",
}

KIND_STYLES = {
    "delete": "$error",
    "rename": "$secondary",
    "modify": "$warning",
    "create": "$success",
    "mkdir": "$success",
}
_REMARKS = {
    "error": ("✗", "$error"),
    "warning": ("▲", "$warning"),
    "notice": ("▲", "$warning"),
    "assumption": ("·", "$quiet"),
}


class PlanPane(Vertical):
    """The preview of a plan, complete or still being computed."""

    BINDING_GROUP_TITLE = "Plan"
    BINDINGS = bindings("plan")

    class Decided(Message):
        """The user decided on the plan: approve, reject, edit, undo or cancel."""

        def __init__(self, decision: str, preview: Preview) -> None:
            super().__init__()
            self.decision = decision
            self.preview = preview

    class StepToggled(Message):
        """A step of `plan` is to be turned off or on."""

        def __init__(self, plan: ActionPlan, step_id: str) -> None:
            super().__init__()
            self.plan = plan
            self.step_id = step_id

    class DetailRequested(Message):
        """The details of the highlighted row are requested in full screen."""

        def __init__(self, title: str, content: Diff | str) -> None:
            super().__init__()
            self.title = title
            self.content = content

    def __init__(
        self,
        load_diff: Callable[[Preview, NetChange], Awaitable[str]],
        on_appear: Callable[[], None],
    ) -> None:
        super().__init__(id="plan")
        self.preview: Preview | None = None
        self.complete = False
        self.is_growing = False
        """True while the rest of the displayed preview is still being computed."""
        self._is_drawn = False
        """True once the preview and the detail of the highlighted row are on the screen."""
        self._on_appear = on_appear
        self._plan: ActionPlan | None = None
        self._disabled: frozenset[str] = frozenset()
        self._unfolded: frozenset[str] = frozenset()
        self._load_diff = load_diff
        self._diffs: dict[int, Diff] = {}

    def compose(self) -> ComposeResult:
        yield Static("", id="plan-head", markup=False)
        yield PlanList(id="plan-list")
        yield Detail()
        yield Static("", id="plan-status", markup=False)

    # --- preview ----------------------------------------------------------------------------------

    def show(
        self, preview: Preview, plan: ActionPlan, disabled: frozenset[str], *, complete: bool
    ) -> None:
        """Show a preview, which can be approved only if it is `complete`.

        `plan` has all steps, including the `disabled` ones that the preview leaves out.
        """
        is_same_plan = plan is self._plan
        self.preview, self._plan, self._disabled, self.complete = preview, plan, disabled, complete
        self.is_growing, self._is_drawn = not complete, False
        if not is_same_plan:
            self._unfolded = frozenset()
        self._diffs.clear()
        self.query_one(Detail).clear()
        self._fill(keep_cursor=is_same_plan)
        self._draw_frame()

    def wait(self, disabled: frozenset[str] | None = None) -> None:
        """Lock approving until the next preview, for which the `disabled` steps are off."""
        self.complete = self.is_growing = False
        self._disabled = self._disabled if disabled is None else disabled
        self._fill(keep_cursor=True)
        self._draw_frame()

    def obstacle(self) -> str | None:
        """Return the reason why the plan cannot be approved now, or None."""
        if self.preview is None:
            return "There is no plan."
        if not self.complete or not self._is_drawn:
            return "Computing the preview…"
        if not self.preview.valid:
            count = len(self.preview.errors)
            return f"Cannot be approved: {terminal_text.counted(count, 'error')}."
        if not plan_rows.has_effect(self.preview):
            return "Nothing to run: all steps are off or skipped."
        return None

    def _fill(self, *, keep_cursor: bool) -> None:
        if self.preview is None or self._plan is None:
            return
        plan_list = self.query_one(PlanList)
        before = _identity(plan_list.current) if keep_cursor else None
        rows = plan_rows.build_rows(self.preview, self._plan, self._disabled, self._unfolded)
        plan_list.set_rows(rows, _start(rows, before))

    def refresh_keys(self) -> None:
        """Update the texts after a change of keys."""
        if self.preview is not None:
            self._draw_frame()

    def _draw_frame(self) -> None:
        preview = self.preview
        assert preview is not None
        changes = preview.change_set.changes
        risk = preview.risk.value
        parts: list[tuple[str, str]] = [
            (f"{terminal_text.folded(preview.plan.goal, GOAL_LINES)}\n", "bold"),
            (RISK_WORDS[risk], f"{RISK_STYLES[risk]} bold"),
        ]
        for kind, words in plan_rows.change_counts(changes):
            parts += [(" · ", "$quiet"), (words, KIND_STYLES[kind])]
        notices = len(preview.flags) + len(preview.warnings)
        if notices:
            parts += [
                (" · ", "$quiet"),
                (f"▲ {terminal_text.counted(notices, 'warning')}", "$warning"),
            ]
        deleted = plan_rows.deletions(changes)
        if deleted:
            more = f" and {len(deleted) - 2:,} more" if len(deleted) > 2 else ""
            names = ", ".join(terminal_text.shortened(name, 80) for name in deleted[:2])
            parts.append((f"\nDeletes {names}{more}", "$error"))
        self.query_one("#plan-head", Static).update(Content.assemble(*parts))
        obstacle = self.obstacle()
        if obstacle is None:
            status = Content.assemble(
                ("✓ Ready. ", "$success bold"),
                (key_label(self, "plan.approve"), "$primary bold"),
                " approve   ",
                (key_label(self, "plan.reject"), "$primary bold"),
                " reject",
            )
        elif self.complete and not preview.valid:
            status = Content.styled(f"✗ {obstacle}", "$error")
        else:
            status = Content.styled(f"… {obstacle}", "$warning")
        self.query_one("#plan-status", Static).update(status)
        self.refresh_bindings()

    # --- detail -----------------------------------------------------------------------------------

    def on_virtual_list_highlighted(self, event: PlanList.Highlighted) -> None:
        event.stop()
        if self.preview is None:
            return
        row = event.list.rows[event.index] if 0 <= event.index < len(event.list.rows) else None
        match row:
            case ChangeRow():
                _: Worker[None] = self.run_worker(
                    partial(self._show_diff, self.preview, row.change),
                    group="diff",
                    exclusive=True,
                    exit_on_error=False,
                )
            case StepRow():
                self._show_detail(row.step.id, plan_rows.step_detail(row.step, self.preview))
            case RemarkRow():
                self._show_detail(row.kind, row.detail)
            case MoreRow() | SectionRow() | None:
                self._show_detail("", "")
            case _:
                assert_never(row)

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        self.app.post_message(event)

    async def _show_diff(self, preview: Preview, change: NetChange) -> None:
        title = (change.new_path or change.path).text
        diff = self._diffs.get(id(change))
        if diff is None:
            await asyncio.sleep(DIFF_DELAY)
            try:
                text = await self._load_diff(preview, change)
            except ObsidianAgentError as error:
                if preview is self.preview:
                    self._show_detail(title, terminal_text.block(error.problem().message))
                return
            diff = await asyncio.to_thread(parse_diff, text)
            if preview is not self.preview:
                return
            if len(self._diffs) > 64:
                self._diffs.clear()
            self._diffs[id(change)] = diff
        self._show_detail(title, diff if diff.lines else _without_lines(change))

    def _show_detail(self, title: str, content: Diff | str) -> None:
        """Show the detail of the highlighted row, with which the preview is on the screen."""
        detail = self.query_one(Detail)
        if isinstance(content, Diff):
            detail.show_diff(title, content)
        else:
            detail.show_text(title, content)
        if not self._is_drawn:
            self.call_after_refresh(self._mark_drawn, self.preview)

    def _mark_drawn(self, preview: Preview | None) -> None:
        """Offer to approve the preview that was drawn, unless another one has replaced it."""
        if preview is self.preview and not self._is_drawn:
            self._is_drawn = True
            self._on_appear()
            self._draw_frame()

    def on_virtual_list_chosen(self, event: PlanList.Chosen) -> None:
        event.stop()
        row = event.list.rows[event.index]
        if isinstance(row, MoreRow):
            self._unfolded |= {row.section}
            self._fill(keep_cursor=True)
            return
        detail = self.query_one(Detail)
        if detail.content is not None:
            self.post_message(self.DetailRequested(detail.title, detail.content))

    # --- decision ---------------------------------------------------------------------------------

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action == "approve":
            return True if self.obstacle() is None else None
        return True

    def _decide(self, decision: str) -> None:
        if self.preview is not None:
            self.post_message(self.Decided(decision, self.preview))

    def action_outside(self) -> None:
        row = self.query_one(PlanList).current
        if isinstance(row, ChangeRow):
            self.post_message(OutsideRequested(row.change.path.text))

    def action_approve(self) -> None:
        if self.obstacle() is None:
            self._decide("approve")

    def action_reject(self) -> None:
        self._decide("reject")

    def action_edit(self) -> None:
        self._decide("edit")

    def action_undo(self) -> None:
        self._decide("undo")

    def action_cancel(self) -> None:
        self._decide("cancel")

    def action_toggle_step(self) -> None:
        row = self.query_one(PlanList).current
        if isinstance(row, StepRow) and self._plan is not None:
            self.post_message(self.StepToggled(self._plan, row.step.id))


def _identity(row: PlanRow | None) -> tuple[str, str] | None:
    match row:
        case StepRow():
            return ("step", row.step.id)
        case ChangeRow():
            return ("change", row.change.path.text)
        case _:
            return None


def _start(rows: list[PlanRow], before: tuple[str, str] | None) -> int:
    """Return the first row of the cursor.

    That is its former row `before`, else the first error, file or step.
    """
    if before is not None:
        for index, row in enumerate(rows):
            if _identity(row) == before:
                return index
    for row_type in (RemarkRow, ChangeRow, StepRow):
        for index, row in enumerate(rows):
            is_other_remark = isinstance(row, RemarkRow) and row.kind != "error"
            if isinstance(row, row_type) and not is_other_remark:
                return index
    return 0


def _folder_content(change: NetChange) -> str:
    if not change.folder:
        return ""
    if not change.files:
        return " The folder is empty."
    return f" The folder contains {terminal_text.counted(change.files, 'file')}."


def _without_lines(change: NetChange) -> str:
    match change.kind:
        case "mkdir":
            return "New folder."
        case "rename":
            if change.content is None:
                return "Renamed or moved; the content does not change."
            return "Renamed; the content changes, but not as lines of text."
        case "delete":
            return "Moved to the vault's .trash folder." + _folder_content(change)
        case "create":
            return "New file that is not text." if change.content else "New, empty file."
        case "modify":
            return "The content changes, but not as lines of text."
        case _:
            assert_never(change.kind)


class PlanList(VirtualList[PlanRow]):
    """The sections of remarks, steps and files of a plan."""

    BINDING_GROUP_TITLE = "Plan"

    def can_stop(self, row: PlanRow) -> bool:
        return not isinstance(row, SectionRow)

    def draw_row(self, row: PlanRow, width: int) -> Content:
        match row:
            case SectionRow():
                return Content.styled(row.title, "bold $quiet")
            case RemarkRow():
                sign, style = _REMARKS[row.kind]
                return Content.assemble(
                    (f" {sign} ", style),
                    (row.text, "$foreground" if row.kind != "assumption" else "$quiet"),
                )
            case MoreRow():
                return Content.styled(
                    f" … {row.hidden:,} more, {key_label(self, 'list.choose')} shows them",
                    "$primary",
                )
            case StepRow():
                return _step(row)
            case ChangeRow():
                return _change(row, width)
            case _:
                assert_never(row)


def _step(row: StepRow) -> Content:
    notes = []
    if row.calls > 1 or row.step.foreach is not None:
        notes.append(f"×{row.calls:,}")
    if row.failed:
        notes.append(f"{row.failed:,} not possible")
    if row.skipped:
        notes.append(f"{row.skipped:,} skipped")
    body = "$foreground" if row.is_on else "$quiet strike"
    parts: list[tuple[str, str]] = [
        (" ● on  " if row.is_on else " ○ off ", "$success" if row.is_on else "$quiet"),
        (terminal_text.shortened(row.step.title, 200), body),
    ]
    if row.is_on and notes:
        parts.append((f"  {' · '.join(notes)}", "$warning" if row.failed else "$quiet"))
    if row.step.preview:
        parts.append((f"  {terminal_text.shortened(row.step.tool, 60)}", "$quiet"))
    return Content.assemble(*parts)


def _change(row: ChangeRow, width: int) -> Content:
    change = row.change
    head = (f" {CHANGE_WORDS[change.kind]:<7}", KIND_STYLES[change.kind])
    room = max(width - 10, 12)
    if change.new_path is None:
        content = ""
        if change.folder and change.kind == "delete":
            content = f"  folder, {terminal_text.counted(change.files, 'file')}"
        return Content.assemble(
            head,
            *_path(change.path.text, room - len(content)),
            (content, "$error"),
            *_script_warning(change.path.text),
        )
    half = max((room - 3) // 2, 8)
    old, new = change.path.text, change.new_path.text
    edited = [("  and edited", "$warning")] if change.content is not None else []
    return Content.assemble(
        head,
        *_path(old, half),
        (" → ", "$quiet"),
        *_path(new, half),
        *edited,
        *_script_warning(new),
    )


def _path(path: str, room: int) -> list[tuple[str, str]]:
    """Style a path with a dim folder, which is truncated before its name is."""
    folder, _, name = path.rpartition("/")
    folder = terminal_text.line(f"{folder}/" if folder else "")
    name = terminal_text.line(name)
    if name != name.strip() or "  " in name:
        name = f"“{name}”"
    if len(folder) + len(name) > room and folder:
        folder = f"{folder[: max(room - len(name) - 2, 0)]}…/"
    return [(folder, "$quiet"), (name, "$foreground")]


def _script_warning(path: str) -> list[tuple[str, str]]:
    if not terminal_text.mixes_scripts(path):
        return []
    return [("  ▲ mixed alphabets", "$warning")]
