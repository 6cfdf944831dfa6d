"""Plans, previews and texts as content of the Agent Client Protocol.

The text of notes and models is made safe for clients that render Markdown: control characters
become visible, and nothing in it is an image or HTML. The two sides of a diff are exact.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from acp.helpers import (
    plan_entry,
    start_tool_call,
    text_block,
    tool_content,
    tool_diff_content,
    update_plan,
    update_tool_call,
)
from acp.schema import (
    AgentPlanUpdate,
    ContentToolCallContent,
    FileEditToolCallContent,
    PlanEntryStatus,
    ToolCallLocation,
    ToolCallProgress,
    ToolCallStart,
    ToolCallUpdate,
    ToolKind,
)
from msgspec import Struct, field

from obsidian_agent import terminal_text
from obsidian_agent.agent.events import (
    AgentEvent,
    StepFailed,
    StepFinished,
    StepSkipped,
    StepStarted,
)
from obsidian_agent.errors import VaultError
from obsidian_agent.plan.result import Preview
from obsidian_agent.terminal_text import counted
from obsidian_agent.vault.views.changes import NetChange, content_hash
from obsidian_agent.vault.views.view import VaultView

MAX_DIFF_BYTES: Final = 4 << 20
"""Bytes of all diffs of one message. Further files are listed without their text."""

_ACTIVE: Final = re.compile(r"!(?=\[)|<(?=[A-Za-z!/?])")
"""Beginnings of images and HTML in Markdown."""

_ITEMS: Final = {
    "create": "New file",
    "modify": "Changed file",
    "delete": "To the trash",
    "rename": "Moved",
    "mkdir": "New folder",
}

Content = ContentToolCallContent | FileEditToolCallContent


def safe_line(text: str, limit: int = 200) -> str:
    """Make a title safe to display, truncated to about `limit` characters."""
    return _ACTIVE.sub(r"\\\g<0>", terminal_text.shortened(text, limit))


def safe_block(text: str) -> str:
    """Make a text of several lines safe to display."""
    return _ACTIVE.sub(r"\\\g<0>", terminal_text.block(text))


class StreamedText(Struct):
    """The text of a model as it streams in.

    A plan in JSON is not displayed, because it arrives as a preview.
    """

    text: str = ""
    _pending: str = ""
    """Text that is not displayed yet."""

    def add(self, delta: str) -> str:
        """Add a piece and return what can be displayed."""
        self.text += delta
        self._pending += delta
        if self.text.lstrip().startswith(("{", "[", "```json")):
            return ""
        # An image or HTML may begin at the end of a piece.
        held = len(self._pending) - (self._pending[-1:] in ("!", "<", "\r"))
        ready, self._pending = self._pending[:held], self._pending[held:]
        return safe_block(ready)

    def rest(self, answer: str) -> str:
        """Return what is missing of the complete answer."""
        displayed = self.text[: len(self.text) - len(self._pending)]
        if displayed.strip() and self.text.strip().startswith(answer.strip()):
            return safe_block(self._pending)
        return safe_block(answer)


class PlanProgress(Struct):
    """The steps of a plan as they run."""

    preview: Preview
    _open: dict[str, int] = field(default_factory=dict)
    """The number of instances of each step that have not ended."""
    _states: dict[str, PlanEntryStatus] = field(default_factory=dict)
    _remarks: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for instance in self.preview.instances:
            self._open[instance.step_id] = self._open.get(instance.step_id, 0) + 1

    def update(self) -> AgentPlanUpdate:
        """Return the plan with the state of each step."""
        return update_plan(
            plan_entry(
                safe_line(f"{step.title}{self._remarks.get(step.id, '')}"),
                status=self._states.get(step.id, "pending"),
            )
            for step in self.preview.approved_plan.steps
        )

    def follow(self, event: AgentEvent) -> bool:
        """Apply an event of the run. Return True if a step has another state now."""
        match event:
            case StepStarted():
                return self._set(event.step_id, "in_progress")
            case StepFinished():
                return self._end(event.step_id)
            case StepSkipped():
                self._remarks[event.step_id] = " (skipped)"
                return self._end(event.step_id)
            case StepFailed():
                self._remarks[event.step_id] = f" (failed: {event.problem.message})"
                return self._end(event.step_id)
            case _:
                return False

    def _end(self, step: str) -> bool:
        self._open[step] = self._open.get(step, 1) - 1
        return self._open[step] <= 0 and self._set(step, "completed")

    def _set(self, step: str, state: PlanEntryStatus) -> bool:
        changed = self._states.get(step) != state
        self._states[step] = state
        return changed


def tool_kind(preview: Preview) -> ToolKind:
    """Return the kind of the tool call that applies a plan.

    Of an "edit" some clients display the diffs alone, so a plan with anything else to see is none.
    """
    kinds = {change.kind for change in preview.change_set.changes}
    if any(one.opaque and one.state == "ready" for one in preview.instances):
        return "execute"
    if not kinds:
        return "read"
    if "delete" in kinds:
        return "delete"
    if not kinds <= {"create", "modify"}:
        return "move"
    return "other" if preview.warnings or preview.flags else "edit"


def pending_call(
    title: str,
    kind: ToolKind,
    content: Sequence[Content],
    *,
    locations: Sequence[ToolCallLocation] | None = None,
) -> ToolCallUpdate:
    """Return a new tool call that waits for a permission."""
    return ToolCallUpdate(
        tool_call_id=f"call-{secrets.token_hex(6)}",
        title=safe_line(title),
        kind=kind,
        status="pending",
        content=list(content),
        locations=None if locations is None else list(locations),
    )


def started(call: ToolCallUpdate) -> ToolCallStart:
    """Return the message that displays a tool call."""
    return start_tool_call(
        call.tool_call_id,
        call.title or "",
        kind=call.kind,
        status=call.status,
        content=call.content,
        locations=call.locations,
    )


def ended(call: ToolCallUpdate, *, is_done: bool) -> ToolCallProgress:
    """Return the message that ends a tool call."""
    return update_tool_call(call.tool_call_id, status="completed" if is_done else "failed")


def preview_content(preview: Preview, view: VaultView, root: Path) -> list[Content]:
    """Return the warnings of a preview, and each of its changes, named and as a diff. May block.

    Raise `VaultError` CONFLICT for a file that changed since the preview.
    """
    warnings = [
        *(problem.sentence for problem in preview.warnings),
        *(f"{flag.path}: {flag.detail}" if flag.path else flag.detail for flag in preview.flags),
    ]
    content: list[Content] = [_text(f"Note: {warning}") for warning in warnings]
    limit = Room()
    for change in preview.change_set.changes:
        content += _change_content(change, view, root, limit)
    commands = [
        str(instance.args.get("id", instance.tool))
        for instance in preview.instances
        if instance.opaque and instance.state == "ready"
    ]
    content += [_text(f"Runs the command {command} in Obsidian.") for command in commands]
    return [*content, *limit.remark()]


def texts_content(
    texts: Mapping[str, tuple[bytes | None, bytes | None] | None], root: Path
) -> list[Content]:
    """Return the old and new contents of files by their paths as diffs.

    Each has its path above it, because some clients display a diff without one.
    """
    content: list[Content] = []
    limit = Room()
    for path, pair in texts.items():
        content.append(_text(f"Restores: {path}"))
        if pair is not None:
            content += _diff(root, path, *pair, limit)
    return [*content, *limit.remark()]


class Room(Struct):
    """The room for diffs in one message."""

    left: int = MAX_DIFF_BYTES
    omitted: int = 0

    def fits(self, size: int) -> bool:
        """Return whether a diff of this size fits, and count it."""
        if size > self.left:
            self.omitted += 1
            return False
        self.left -= size
        return True

    def remark(self) -> Iterable[ContentToolCallContent]:
        """Yield a remark about the files that did not fit."""
        if self.omitted:
            yield _text(
                f"{counted(self.omitted, 'file')} above without text, because the message would "
                "be too long. The whole preview: obsidian-agent plans list"
            )


def locations(preview: Preview, root: Path) -> list[ToolCallLocation]:
    """Return the files that a plan changes."""
    return [
        ToolCallLocation(path=str(root / (change.new_path or change.path).text))
        for change in preview.change_set.changes
        if not change.folder and change.kind != "delete"
    ]


def _change_content(change: NetChange, view: VaultView, root: Path, limit: Room) -> list[Content]:
    title = f"{_ITEMS[change.kind]}: {change.path.text}"
    if change.new_path is not None:
        title = f"{title} → {change.new_path.text}"
    if change.folder:
        files = f" ({counted(change.files, 'file')})" if change.files else ""
        return [_text(title + files)]
    if change.content is None and change.kind != "delete":
        return [_text(title)]
    before = view.read(change.before) if change.before is not None else None
    if before is not None and change.before_hash not in (None, content_hash(before)):
        raise VaultError(
            f"{change.path} has changed since the preview.", code="CONFLICT", path=change.path.text
        )
    path = (change.new_path or change.path).text
    return [_text(title), *_diff(root, path, before, change.content, limit)]


def _diff(
    root: Path, path: str, before: bytes | None, after: bytes | None, limit: Room
) -> list[Content]:
    size = len(before or b"") + len(after or b"")
    try:
        # Of a new file the old text is empty, not absent: some clients display no such diff.
        old, new = ((text or b"").decode("utf-8") for text in (before, after))
    except UnicodeDecodeError:
        return [_text(f"{path}: {size:,} bytes that are not text")]
    if not limit.fits(size):
        return [_text(f"{path}: {size:,} bytes")]
    return [tool_diff_content(str(root / path), new, old)]


def _text(text: str) -> ContentToolCallContent:
    return tool_content(text_block(safe_line(text, 2_000)))


def text_content(*lines: str) -> list[ContentToolCallContent]:
    """Return lines of text as content."""
    return [tool_content(text_block("\n".join(safe_line(line, 2_000) for line in lines)))]
