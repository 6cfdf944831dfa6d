"""The plan pane: the exact changes of a plan and the keys to decide on it.

The pane only posts the decision of the user; the screen acts on it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, assert_never

from msgspec import Struct
from msgspec.structs import replace
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.widgets import Input, Static
from textual.worker import Worker

from obsidian_agent import terminal_text
from obsidian_agent.errors import ObsidianAgentError
from obsidian_agent.tui import plan_rows
from obsidian_agent.tui.bindings import bindings, key_label
from obsidian_agent.tui.change_groups import (
    LineEdit,
    counted_files,
    edit_of,
)
from obsidian_agent.tui.diff_lines import Diff, parse_diff
from obsidian_agent.tui.plan_rows import (
    ChangeRow,
    GroupRow,
    PartRow,
    PlanRow,
    PlanState,
    PlanView,
    RemarkRow,
    RemarksRow,
    StepRow,
)
from obsidian_agent.tui.widgets.diff import Detail, Page, TurnPage
from obsidian_agent.tui.widgets.note import OutsideRequested
from obsidian_agent.tui.widgets.plan_list import KIND_STYLES, PlanList
from obsidian_agent.tui.widgets.prompt import LineEntry

if TYPE_CHECKING:
    from obsidian_agent.plan.left_out import LeftOut
    from obsidian_agent.plan.model import ActionPlan
    from obsidian_agent.plan.result import Preview
    from obsidian_agent.vault.views.changes import NetChange
    from obsidian_agent.vault.views.diff import TextEdit

DIFF_DELAY = 0.04
"""Seconds before the diff of a newly highlighted file is loaded."""

EDITS_AT_ONCE = 200
"""Files whose edits are read together, while the screen goes on."""
CACHED_DIFFS = 64
NOTICE_LINES = 3
NAMED_PATHS = 3
LISTED_PATHS = 500
"""Paths in the detail of a fold."""

GOAL_LINES = 3
KEY_WORDS = {"comment": "change"}
"""The words for decisions in the last line that differ from their names."""
RISK_STYLES = {
    "read-only": "$success",
    "writes": "$warning",
    "deletes": "$error",
    "commands": "$error",
}
RISK_WORDS = {
    "read-only": "read-only",
    "writes": "writes to the vault",
    "deletes": "writes to the vault and deletes",
    "commands": "runs commands",
}


class ChangeReader(Struct, frozen=True):
    """The functions that read the contents of changes. Both may block."""

    diff: Callable[[NetChange], str]
    """Returns the unified diff of a change."""
    edits: Callable[[NetChange], Sequence[TextEdit]]
    """Returns the edits of a file, each of which can be left out."""


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

    class LeaveOutRequested(Message):
        """Files of `plan`, or one edit of a file, are to be left out, or no longer."""

        def __init__(self, plan: ActionPlan, toggled: Callable[[LeftOut], LeftOut]) -> None:
            super().__init__()
            self.plan = plan
            self.toggled = toggled

    class DetailRequested(Message):
        """The details of the highlighted row are requested in full screen."""

        def __init__(
            self, title: str, content: Diff | str, turn_page: TurnPage | None = None
        ) -> None:
            super().__init__()
            self.title = title
            self.content = content
            self.turn_page = turn_page

    def __init__(
        self,
        reader: ChangeReader,
        on_appear: Callable[[], None],
    ) -> None:
        super().__init__(id="plan")
        self.state: PlanState | None = None
        self.complete = False
        self.is_growing = False
        """True while the rest of the displayed preview is still being computed."""
        self._changed = 0
        """The number of files that changed since the preview."""
        self._is_drawn = False
        """True once the preview and the detail of the highlighted row are on the screen."""
        self._on_appear = on_appear
        self._toggled: frozenset[str] = frozenset()
        self._edits: Mapping[str, LineEdit] | None = None
        self._originals: dict[str, NetChange] = {}
        """The changes of the plan by their paths, as they are with nothing left out."""
        self._parts: dict[str, Sequence[TextEdit]] = {}
        self._reader = reader
        self._diffs: dict[int, Diff] = {}
        self._page: NetChange | None = None
        """The file of the page that is open in full screen."""

    def compose(self) -> ComposeResult:
        yield Static("", id="plan-head", markup=False)
        yield LineEntry(placeholder="Part of a path", id="plan-filter")
        yield PlanList(id="plan-list")
        yield Detail()
        yield Static("", id="plan-notice", markup=False)
        yield Static("", id="plan-status", markup=False)

    def on_mount(self) -> None:
        self._filter.display = False
        self.show_notice("")

    @property
    def preview(self) -> Preview | None:
        """The displayed preview."""
        return None if self.state is None else self.state.preview

    def show_notice(self, text: str) -> None:
        """Show a remark on the plan until its next preview; "" hides it."""
        notice = self.query_one("#plan-notice", Static)
        notice.update(Content(terminal_text.folded(text, NOTICE_LINES)))
        notice.display = bool(text)

    @property
    def _filter(self) -> LineEntry:
        return self.query_one("#plan-filter", LineEntry)

    def show_changed(self, paths: Sequence[str]) -> None:
        """Show the files that changed since the preview, which cannot be approved any more."""
        self._changed = len(paths)
        names = ", ".join(terminal_text.shortened(path, 60) for path in paths[:NAMED_PATHS])
        more = f" and {len(paths) - NAMED_PATHS:,} more" if len(paths) > NAMED_PATHS else ""
        self.show_notice(f"Changed: {names}{more}")
        self._draw_frame()

    # --- preview ----------------------------------------------------------------------------------

    def show(self, state: PlanState) -> None:
        """Show a preview, which can be approved only if it is complete."""
        is_same_plan = self.state is not None and state.plan is self.state.plan
        self.state, self.complete = state, state.complete
        self.is_growing, self._is_drawn, self._changed = not state.complete, False, 0
        if not is_same_plan:
            self._toggled = frozenset()
            self._originals, self._parts, self._edits = {}, {}, None
            self._close_filter()
        elif not state.complete:
            self._edits = None
        if state.complete:
            self._store_originals(state)
        self._diffs.clear()
        self.show_notice("")
        self.query_one(Detail).clear()
        self._fill(keep_cursor=is_same_plan)
        self._draw_frame()
        if state.complete:
            self._start(partial(self._compare, state), group="edits")

    def _store_originals(self, state: PlanState) -> None:
        edited = set() if state.left_out is None else {path for path, _ in state.left_out.edits}
        for change in state.preview.change_set.changes:
            path = change.path.text
            if path not in edited:
                if self._originals.get(path) != change:
                    self._parts.pop(path, None)
                self._originals[path] = change

    @property
    def _excluded(self) -> dict[str, NetChange]:
        """The changes of which all or some is left out, as they are otherwise."""
        left_out = None if self.state is None else self.state.left_out
        if left_out is None:
            return {}
        paths = {*left_out.files, *(path for path, _ in left_out.edits)}
        return {path: self._originals[path] for path in sorted(paths) if path in self._originals}

    def wait(self, disabled: frozenset[str] | None = None, left_out: LeftOut | None = None) -> None:
        """Prevent approval until the next preview, and show what it will be without."""
        self.complete = self.is_growing = False
        if self.state is not None and disabled is not None:
            self.state = replace(self.state, disabled=disabled)
        if self.state is not None and left_out is not None:
            self.state = replace(self.state, left_out=left_out)
        self._fill(keep_cursor=True)
        self._draw_frame()

    def obstacle(self) -> str | None:
        """Return the reason why the plan cannot be approved now, or None."""
        if self.preview is None:
            return "There is no plan."
        if not self.complete or not self._is_drawn:
            return "Computing the preview…"
        if self._changed:
            return f"{terminal_text.counted(self._changed, 'file')} changed since the preview."
        if not self.preview.valid:
            count = len(self.preview.errors)
            return f"Cannot be approved: {terminal_text.counted(count, 'error')}."
        if plan_rows.reason_without_effect(self.preview):
            return "Nothing would change."
        return None

    def _start(self, work: Callable[[], Coroutine[Any, Any, None]], group: str) -> None:
        _: Worker[None] = self.run_worker(work, group=group, exclusive=True, exit_on_error=False)

    async def _compare(self, state: PlanState) -> None:
        """Read the edits of all files of a preview, then group equal ones."""
        edits: dict[str, LineEdit] = {}
        known = {change.path.text: change for change in state.preview.change_set.changes}
        changes = [
            change for change in (self._excluded | known).values() if change.content is not None
        ]
        for start in range(0, len(changes), EDITS_AT_ONCE):
            edits |= await asyncio.to_thread(
                self._read_edits, changes[start : start + EDITS_AT_ONCE]
            )
        if self.state is not None and state.preview is self.preview:
            self._edits = edits
            self._fill(keep_cursor=True)

    def _read_edits(self, changes: Sequence[NetChange]) -> dict[str, LineEdit]:
        edits: dict[str, LineEdit] = {}
        for change in changes:
            # A file that has changed since has no lines to compare.
            with suppress(ObsidianAgentError):
                edits[change.path.text] = edit_of(parse_diff(self._reader.diff(change)))
        return edits

    @property
    def _view(self) -> PlanView | None:
        if self.state is None:
            return None
        return PlanView(
            state=self.state,
            toggled=self._toggled,
            edits=self._edits,
            excluded=self._excluded,
            parts=self._parts,
            query=self._filter.value.strip() if self._filter.display else "",
        )

    def _fill(self, *, keep_cursor: bool) -> None:
        view = self._view
        if view is None:
            return
        plan_list = self.query_one(PlanList)
        before = _identity(plan_list.current) if keep_cursor else None
        rows = plan_rows.build_rows(view)
        plan_list.set_rows(rows, _first_row(rows, before))

    def refresh_keys(self) -> None:
        """Update the texts after a change of keys."""
        if self.preview is not None:
            self._draw_frame()

    def _draw_frame(self) -> None:
        preview = self.preview
        assert preview is not None
        changes = preview.change_set.changes
        deleted = plan_rows.deletions(changes)
        risk = preview.risk.value
        if deleted and risk == "writes":
            risk = "deletes"
        parts: list[tuple[str, str]] = [
            (f"{terminal_text.folded(preview.plan.goal, GOAL_LINES)}\n", "bold"),
            (RISK_WORDS[risk], f"{RISK_STYLES[risk]} bold"),
        ]
        for kind, words in plan_rows.change_counts(preview.change_set):
            parts += [(" · ", "$quiet"), (words, KIND_STYLES[kind])]
        is_usable = self.complete and preview.valid
        without_effect = plan_rows.reason_without_effect(preview) if is_usable else ""
        if without_effect:
            parts.append((f" · changes nothing: {without_effect}", "$warning"))
        notices = len(preview.flags) + len(preview.warnings)
        if notices:
            parts += [
                (" · ", "$quiet"),
                (f"▲ {terminal_text.counted(notices, 'warning')}", "$warning"),
            ]
        if deleted:
            more = f" and {len(deleted) - 2:,} more" if len(deleted) > 2 else ""
            names = ", ".join(terminal_text.shortened(name, 80) for name in deleted[:2])
            parts.append((f"\nDeletes {names}{more}", "$error"))
        self.query_one("#plan-head", Static).update(Content.assemble(*parts))
        obstacle = self.obstacle()
        if obstacle is None:
            keys = self._keys("approve", "reject", "filter", "edit")
            status = Content.styled("✓ Ready. ", "$success bold") + keys
        elif self.complete and self._changed:
            status = Content.assemble(
                (f"! {obstacle} ", "$warning"),
                (key_label(self, "plan.preview"), "$primary bold"),
                " preview again",
            )
        elif self.complete and not preview.valid:
            status = Content.styled(f"✗ {obstacle} ", "$error") + self._keys("repair", "edit")
        elif self._is_drawn and without_effect:
            status = Content.styled(f"! {obstacle} ", "$warning") + self._keys(
                "comment", "edit", "reject"
            )
        else:
            status = Content.styled(f"… {obstacle}", "$warning")
        self.query_one("#plan-status", Static).update(status)
        self.refresh_bindings()

    def _keys(self, *decisions: str) -> Content:
        return Content("   ").join(
            Content.assemble(
                (key_label(self, f"plan.{decision}"), "$primary bold"),
                f" {KEY_WORDS.get(decision, decision)}",
            )
            for decision in decisions
        )

    # --- detail -----------------------------------------------------------------------------------

    def on_virtual_list_highlighted(self, event: PlanList.Highlighted) -> None:
        event.stop()
        preview = self.preview
        if preview is None:
            return
        row = event.row
        match row:
            case ChangeRow() | PartRow():
                title = f"Left out: {_title(row.change)}" if row.is_left_out else ""
                self._start(partial(self._show_diff, row.change, title), group="diff")
            case GroupRow(group) if group.kind in ("create", "modify", "links"):
                example = group.changes[0]
                title = f"{counted_files(group.changes)}, such as {example.path.text}"
                self._start(partial(self._show_diff, example, title), group="diff")
            case GroupRow(group):
                self._show_detail(counted_files(group.changes), _listed(group.changes))
            case StepRow():
                self._show_detail(row.step.title, plan_rows.step_detail(row.step, preview))
            case RemarkRow() | RemarksRow():
                self._show_detail(row.kind.capitalize(), row.detail)
            case str() | None:
                self._show_detail("", "")
            case _:
                assert_never(row)

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        """Forward the event to the app, which reports unexpected errors."""
        self.app.post_message(event)

    async def _show_diff(self, change: NetChange, title: str = "") -> None:
        preview = self.preview
        if id(change) not in self._diffs:
            await asyncio.sleep(DIFF_DELAY)
        content = await self._content_of(change)
        if preview is self.preview:
            self._show_detail(title or _title(change), content)

    async def _content_of(self, change: NetChange) -> Diff | str:
        """Return the diff of a change, or a text in its place."""
        diff = self._diffs.get(id(change))
        if diff is None:
            preview = self.preview
            try:
                diff = await asyncio.to_thread(lambda: parse_diff(self._reader.diff(change)))
            except ObsidianAgentError as error:
                return terminal_text.block(error.problem().message)
            if preview is self.preview:
                if len(self._diffs) > CACHED_DIFFS:
                    self._diffs.clear()
                self._diffs[id(change)] = diff
        return diff if diff.lines else _without_lines(change)

    async def turn_page(self, direction: int) -> Page | None:
        """Go to the next or previous file in the order of the list, also inside folds."""
        view = self._view
        if view is None:
            return None
        files = [
            change
            for group in plan_rows.visible_groups(view)
            for change in group.changes
            if not change.folder
        ]
        at = next((index for index, change in enumerate(files) if change is self._page), -1)
        at = min(max(at + direction, 0), len(files) - 1)
        if at < 0:
            return None
        self._page = files[at]
        plan_list = self.query_one(PlanList)
        for index, row in enumerate(plan_list.rows):
            if (isinstance(row, ChangeRow) and row.change is self._page) or (
                isinstance(row, GroupRow) and not row.is_open and self._page in row.group.changes
            ):
                plan_list.cursor = index
        return Page(_title(self._page), await self._content_of(self._page), at + 1, len(files))

    def _show_detail(self, title: str, content: Diff | str) -> None:
        """Show the detail of the highlighted row. It completes the drawing of a new preview."""
        detail = self.query_one(Detail)
        if isinstance(content, Diff):
            detail.show_diff(title, content)
        else:
            detail.show_text(title, content)
        if not self._is_drawn:
            self.call_after_refresh(self._mark_drawn, self.preview)

    def _mark_drawn(self, preview: Preview | None) -> None:
        """Allow approval of the preview that was drawn, unless another one has replaced it."""
        if preview is self.preview and not self._is_drawn:
            self._is_drawn = True
            self._on_appear()
            self._draw_frame()

    def on_virtual_list_chosen(self, event: PlanList.Chosen) -> None:
        event.stop()
        row = event.row
        detail = self.query_one(Detail)
        if isinstance(row, GroupRow | RemarksRow):
            self._toggle(_fold_key(row) or "")
        elif isinstance(row, ChangeRow | PartRow) and not row.change.folder:
            self._page = row.change
            self._start(self._open_page, group="page")
        elif detail.content is not None:
            self.post_message(self.DetailRequested(detail.title, detail.content))

    async def _open_page(self) -> None:
        page = await self.turn_page(0)
        if page is not None:
            self.post_message(self.DetailRequested(page.title, page.content, self.turn_page))

    def _toggle(self, key: str) -> None:
        self._toggled = self._toggled ^ {key}
        self._fill(keep_cursor=True)

    def action_fold(self, open: bool) -> None:
        """Open or close the fold at the cursor, or around it."""
        plan_list = self.query_one(PlanList)
        for index in range(plan_list.cursor, -1, -1):
            row = plan_list.rows[index]
            key = _fold_key(row)
            is_here = index == plan_list.cursor
            if isinstance(row, str | StepRow):
                return
            if key is None or (not is_here and open):
                continue
            is_open = key in self._toggled
            if is_here and is_open != open:
                self._open_or_close(row, key)
                return
            if not open and is_open:
                plan_list.cursor = index
                self._toggle(key)
                return

    def _open_or_close(self, row: PlanRow, key: str) -> None:
        if isinstance(row, ChangeRow) and key not in self._parts:
            self._start(partial(self._open_file, row.change), group="parts")
        else:
            self._toggle(key)

    async def _open_file(self, change: NetChange) -> None:
        """Open a file to its edits."""
        path = change.path.text
        original = self._originals.get(path, change)
        try:
            self._parts[path] = await asyncio.to_thread(self._reader.edits, original)
        except ObsidianAgentError as error:
            self.show_notice(error.problem().message)
            return
        self._toggle(path)

    # --- filter -----------------------------------------------------------------------------------

    def action_filter(self) -> None:
        self._filter.display = True
        # At once, or the next key of a quick typist would act on the plan.
        self.screen.set_focus(self._filter)

    def _close_filter(self) -> None:
        self._filter.value = ""
        self._filter.display = False

    def on_input_changed(self, event: Input.Changed) -> None:
        event.stop()
        self._fill(keep_cursor=True)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self.query_one(PlanList).focus()

    # --- decision ---------------------------------------------------------------------------------

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action == "approve":
            return True if self.obstacle() is None else None
        if action == "repair":
            return self.complete and self.preview is not None and not self.preview.valid
        return True

    def _decide(self, decision: str) -> None:
        if self.preview is not None:
            self.post_message(self.Decided(decision, self.preview))

    def action_outside(self) -> None:
        row = self.query_one(PlanList).current
        if isinstance(row, ChangeRow | PartRow):
            self.post_message(OutsideRequested(row.change.path.text))

    def action_approve(self) -> None:
        if self.obstacle() is None:
            self._decide("approve")

    def action_reject(self) -> None:
        self._decide("reject")

    def action_edit(self) -> None:
        self._decide("edit")

    def action_comment(self) -> None:
        self._decide("comment")

    def action_repair(self) -> None:
        self._decide("repair")

    def action_preview_again(self) -> None:
        self._decide("preview")

    def action_undo(self) -> None:
        self._decide("undo")

    def action_cancel(self) -> None:
        """Close the filter; without one, stop the preview or reject the plan."""
        if self._filter.display:
            self._close_filter()
            self._fill(keep_cursor=True)
            self.query_one(PlanList).focus()
        else:
            self._decide("cancel")

    def action_leave_out(self) -> None:
        """Turn a step off, or leave a change out; or the opposite."""
        row, state = self.query_one(PlanList).current, self.state
        if state is None:
            return
        match row:
            case StepRow():
                self.post_message(self.StepToggled(state.plan, row.step.id))
            case ChangeRow() | GroupRow() | PartRow():
                self.show_notice("")
                self.post_message(self.LeaveOutRequested(state.plan, partial(_toggled, row)))


def _toggled(row: ChangeRow | GroupRow | PartRow, left_out: LeftOut) -> LeftOut:
    """Return what is left out after the change of a row is left out, or is no longer."""
    if isinstance(row, PartRow):
        return left_out.with_edit_toggled(row.change.path.text, row.part)
    changes = row.group.changes if isinstance(row, GroupRow) else (row.change,)
    return left_out.with_files_toggled(frozenset(change.path.text for change in changes))


def _fold_key(row: PlanRow | str) -> str | None:
    """Return the key of a row that opens to others; None if it does not."""
    match row:
        case RemarksRow():
            return row.key
        case GroupRow():
            return plan_rows.group_key(row.group)
        case ChangeRow() if row.change.before is not None and row.change.content is not None:
            return row.change.path.text
        case _:
            return None


def _title(change: NetChange) -> str:
    return (change.new_path or change.path).text


def _listed(changes: Sequence[NetChange]) -> str:
    """Return the paths of changes, one a line."""
    lines = [
        terminal_text.line(
            change.path.text + (f" → {change.new_path.text}" if change.new_path else "")
        )
        for change in changes[:LISTED_PATHS]
    ]
    if len(changes) > LISTED_PATHS:
        lines.append(f"… {len(changes) - LISTED_PATHS:,} more")
    return "\n".join(lines)


def _identity(row: PlanRow | str | None) -> tuple[str, str] | None:
    match row:
        case StepRow():
            return ("step", row.step.id)
        case ChangeRow():
            return ("change", row.change.path.text)
        case PartRow():
            return ("part", f"{row.change.path.text} {row.part.start}")
        case GroupRow() | RemarksRow():
            return ("fold", _fold_key(row) or "")
        case _:
            return None


def _first_row(rows: Sequence[PlanRow | str], before: tuple[str, str] | None) -> int:
    """Return the first row of the cursor.

    That is the row that the cursor was on (`before`), else the first error, file or step.
    """
    if before is not None:
        for index, row in enumerate(rows):
            if _identity(row) == before:
                return index
    for types in ((RemarkRow, RemarksRow), (ChangeRow, GroupRow), (StepRow,)):
        for index, row in enumerate(rows):
            is_other_remark = isinstance(row, RemarkRow | RemarksRow) and row.kind != "error"
            if isinstance(row, types) and not is_other_remark:
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
            return "Renamed. The content changes too, but it has no lines of text to show."
        case "delete":
            return "Moved to the vault's .trash folder." + _folder_content(change)
        case "create":
            return "New file that is not text." if change.content else "New, empty file."
        case "modify":
            return "The content changes, but it has no lines of text to show."
        case _:
            assert_never(change.kind)
