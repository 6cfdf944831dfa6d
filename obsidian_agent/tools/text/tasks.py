"""The tasks of notes: list, mark, move and add them, and change their due dates.

Dates and priorities have the format of the plugin Tasks (📅 2026-03-14) or of Dataview
([due:: 2026-03-14]), depending on the surrounding notes.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Container, Iterator, Mapping, Sequence
from datetime import date
from itertools import islice
from typing import Final, Literal

from pydantic import Field, field_validator

from obsidian_agent.errors import Problem, ToolError, VaultError
from obsidian_agent.tools.core.filters import LinkWriter
from obsidian_agent.tools.core.lookup import find_file, open_note, read_text
from obsidian_agent.tools.core.models import (
    INTO,
    ChangedFile,
    ChangedFiles,
    Items,
    NotesInput,
    SparseOutput,
    TextOrPath,
    ToolModel,
    Whole,
)
from obsidian_agent.tools.core.patterns import whole_words
from obsidian_agent.tools.core.tool import LongText, PathText, Proposal, Risk, ToolContext, tool
from obsidian_agent.tools.links import links
from obsidian_agent.tools.text.lines import (
    AddedLinesOutput,
    AddLinesInput,
    Blocks,
    add_lines,
    dedented,
    section_lines,
)
from obsidian_agent.vault.index.index import tag_key, tag_within
from obsidian_agent.vault.markdown import edits
from obsidian_agent.vault.markdown.lines import tasks
from obsidian_agent.vault.markdown.model import NoteTask
from obsidian_agent.vault.paths.path import PathUse, VaultPath, parse
from obsidian_agent.vault.text import encode, split_lines
from obsidian_agent.vault.views.changes import ModifyFile

DateStyle = Literal["emoji", "field"]
Priority = Literal["highest", "high", "medium", "low", "lowest"]
DUE_MARKS: Final = ("📅", "📆", "🗓", "due::", "@due(")
"""The texts of which one is in every task with a due date."""

_DUE: Final = re.compile(
    r"(?:📅|📆|🗓)\ufe0f?\s*(\d{4}-\d{2}-\d{2})|[\[(]due::\s*(\d{4}-\d{2}-\d{2})\s*[\])]"
    r"|@due\((\d{4}-\d{2}-\d{2})\)"
)

_DONE_DAY: Final = re.compile(
    r"\s*(?:✅\ufe0f?\s*\d{4}-\d{2}-\d{2}|[\[(]completion::\s*\d{4}-\d{2}-\d{2}\s*[\])])"
)

_EMOJI: Final = re.compile(r"[📅📆🗓⏳⌛🛫➕✅🔁🔺⏫🔼🔽⏬]")

_FIELD: Final = re.compile(r"[\[(](?:due|completion|scheduled|start|created|priority|repeat)::")

_RECURRING: Final = re.compile(r"🔁|[\[(]repeat::")

_BLOCK_ID: Final = re.compile(r"[ \t]+\^[A-Za-z0-9-]+$")

_PRIORITIES: Final[Mapping[str, str]] = {
    "highest": "🔺",
    "high": "⏫",
    "medium": "🔼",
    "low": "🔽",
    "lowest": "⏬",
}
_NEIGHBOURS: Final = 50
"""The number of notes of the same folder to examine if the note itself has no example."""

_TICKED: Final = frozenset("xX")

_OPEN: Final = " /"
"""The marks of tasks not begun and in progress, which are both unfinished.

Other marks have no fixed meaning.
"""

_BOX: Final = re.compile(r"\[[^\]\r\n]\]")

_TAG: Final = re.compile(r"(?:^|(?<=[\s(]))#([^\s#!\"$%&'()*+,.:;<=>?@\[\]^`{|}~\\]+)")

_DAY = "YYYY-MM-DD."

_LINE: Final = "Of several such tasks, only the one nearest to this line (from 1)."


class TaskItem(ToolModel):
    text: str
    status: str = Field(description="The character in the checkbox: a space is open, x is done.")
    line: int = Field(description="From 1.")


@tool("util.parseTasks", Risk.READ_ONLY)
def parse_tasks(args: TextOrPath, ctx: ToolContext) -> Proposal[Items[TaskItem]]:
    """List the items with a checkbox of a text or a file."""
    items = [
        TaskItem(text=task.text, status=task.status, line=task.line)
        for task in tasks(args.read(ctx))
    ]
    return Proposal(Items.of(items))


def checked_day(value: str | None) -> str | None:
    """Return a day of an argument. Raise ValueError for other text."""
    with contextlib.suppress(ValueError):
        if value is None or date.fromisoformat(value).isoformat() == value:
            return value
    raise ValueError(f"{value!r} is not a day (YYYY-MM-DD)")


class ListTasksInput(NotesInput):
    status: Literal["open", "done", "all"] = Field(
        default="open", description="open: neither done (x), cancelled (-) nor forwarded (>)."
    )
    tag: str | None = Field(
        default=None,
        min_length=1,
        description="Only tasks with this tag in their own line; nested tags are included.",
    )
    text: str | None = Field(
        default=None,
        min_length=1,
        description="Only tasks that contain this text as whole words, ignoring case.",
    )
    heading: str | None = Field(default=None, description="Only tasks below this heading.")
    due_before: str | None = Field(
        default=None, description="Only tasks due before this day (YYYY-MM-DD)."
    )
    due_after: str | None = Field(default=None, description="Only tasks due on this day or later.")

    _check = field_validator("due_before", "due_after")(checked_day)


class ListedTask(SparseOutput):
    path: str
    name: str = Field(description="The note's name.")
    text: str
    status: str = Field(description="The character in the checkbox.")
    line: int = Field(description="From 1.")
    tags: list[str]
    due: str | None = Field(
        default=None,
        description="YYYY-MM-DD, read from the format of the Tasks plugin or Dataview.",
    )


@tool("vault.listTasks", Risk.READ_ONLY)
def list_tasks(args: ListTasksInput, ctx: ToolContext) -> Proposal[Items[ListedTask]]:
    """List the tasks of a note, some notes or a folder.

    They can be filtered by status, tag, text, heading and due date.
    """
    problems: list[Problem] = []
    items = [
        item for path, text in args.texts(ctx, problems) for item in tasks_in(args, path, text)
    ]
    return Proposal(Items.of(items), warnings=tuple(problems))


def tasks_in(args: ListTasksInput, path: VaultPath, text: str) -> Iterator[ListedTask]:
    """Yield the tasks of a note that match the arguments."""
    return (item for item in _of_note(args, path, text) if fits_task(args, item))


def _of_note(args: ListTasksInput, path: VaultPath, text: str) -> Iterator[ListedTask]:
    try:
        tasks = _tasks(text, args.heading)
    except ToolError:
        if args.path is not None:
            raise
        return
    for task in tasks:
        if not task.text.strip():
            continue
        due = _DUE.search(task.text)
        yield ListedTask(
            path=path.text,
            name=path.stem,
            text=task.text,
            status=task.status,
            line=task.line,
            tags=_TAG.findall(task.text),
            due=next(filter(None, due.groups()), None) if due else None,
        )


def fits_task(args: ListTasksInput, item: ListedTask) -> bool:
    """Return whether a task has the status, tag, text and due date of the arguments."""
    if args.status != "all" and _state(item.status) != args.status:
        return False
    if args.tag is not None and not any(
        tag_within(tag_key(tag), tag_key(args.tag)) for tag in item.tags
    ):
        return False
    if args.text is not None and not whole_words(args.text).search(item.text):
        return False
    if args.due_before is not None and not (item.due is not None and item.due < args.due_before):
        return False
    return args.due_after is None or (item.due is not None and item.due >= args.due_after)


def _state(status: str) -> str:
    if status in _TICKED:
        return "done"
    return "closed" if status in "->" else "open"


def _tasks(text: str, heading: str | None) -> Iterator[NoteTask]:
    """Return the tasks of a text, or of the section of the first heading with that text.

    Raise MARKER_NOT_FOUND if the heading does not exist.
    """
    lines = section_lines(text, heading)
    return (task for task in tasks(text) if task.line in lines)


class TasksOfInput(ToolModel):
    path: PathText = Field(min_length=1)
    heading: str | None = Field(
        default=None, description="Only tasks below this heading (its text, without #)."
    )


class MarkTasksInput(TasksOfInput):
    status: str = Field(
        default="x",
        min_length=1,
        max_length=1,
        pattern=r"[^\]\r\n]",
        description="The character for the checkbox.",
    )
    only: str | None = Field(
        default=None,
        description="The characters of the tasks to mark: "
        "by default open tasks, or done tasks to open them again.",
    )
    text: str | None = Field(
        default=None,
        min_length=1,
        description="Only the tasks with exactly this text, ignoring case; "
        "or else those with it as whole words; or else with all of its words.",
    )
    line: Whole | None = Field(default=None, ge=1, description=_LINE)
    done_date: Literal["asThere", "always", "never"] = Field(
        default="asThere",
        description="Add the completion date (✅) to done tasks: "
        "if other done tasks have it, always, or never.",
    )
    expect_count: Whole | None = Field(
        default=None, ge=0, description="The required number of tasks to mark."
    )


class MarkTasksOutput(ToolModel):
    path: str
    count: int


@tool("vault.markTasks", Risk.WRITES)
def mark_tasks(args: MarkTasksInput, ctx: ToolContext) -> Proposal[MarkTasksOutput]:
    """Mark the open tasks of a note or section as done, or give them another mark."""
    path, text = open_note(ctx, args.path)
    lines = split_lines(text)
    selected = _selected_lines(args, text)
    marked = [
        task
        for task in _tasks(text, args.heading)
        if task.status in _markable(args)
        and task.status != args.status
        and (selected is None or task.line in selected)
    ]
    if args.expect_count is not None and len(marked) != args.expect_count:
        suffix = f" with “{args.text}”" if args.text is not None else ""
        message = f"{path} has {len(marked)} such tasks{suffix}, not {args.expect_count}."
        raise ToolError(
            message, code="COUNT_MISMATCH", path=path.text, hint="Quote more of the task's text."
        )
    dated = bool(marked) and _gets_done_day(args, text, path, ctx)
    style = _date_style(text, path, ctx) if dated else "emoji"
    for task in marked:
        line = _BOX.sub(f"[{args.status}]".replace("\\", r"\\"), lines[task.line - 1], count=1)
        body = line.rstrip("\r\n")
        marked_body = body
        if dated:
            marked_body = _with_done(body, ctx.run.now.date().isoformat(), style)
        elif args.status == " ":
            marked_body = _DONE_DAY.sub("", body)
        lines[task.line - 1] = marked_body + line[len(body) :]
    changes = (ModifyFile(path, encode("".join(lines))),) if marked else ()
    recurring = args.status in _TICKED and any(_RECURRING.search(task.text) for task in marked)
    message = (
        f"{path}: recurring tasks are done, "
        "but only the plugin Tasks in Obsidian creates their next occurrence."
    )
    warnings = (Problem("RECURRING_TASK", message, path=path.text),) if recurring else ()
    return Proposal(MarkTasksOutput(path=path.text, count=len(marked)), changes, warnings)


def _markable(args: MarkTasksInput) -> str:
    """Return the characters of the tasks that can be marked."""
    if args.only is not None:
        return args.only
    return "xX" if args.status == " " else _OPEN


def _selected_lines(args: MarkTasksInput, text: str) -> frozenset[int] | None:
    """Return the lines of the tasks that the text selects; `None` means any task."""
    if args.text is None and args.line is None:
        return None
    markable = [task for task in _tasks(text, args.heading) if task.status in _markable(args)]
    lines = [task.line for task in markable]
    if args.text is not None:
        lines = _matching_lines(args.text, markable, Blocks.of(text))
    return frozenset(_nearest(lines, args.line))


def _nearest(lines: list[int], line: int | None) -> list[int]:
    """Return the one of some lines that is nearest to a line; all of them if it is `None`."""
    if line is None or not lines:
        return lines
    return [min(lines, key=lambda number: abs(number - line))]


def _matching_lines(query: str, among: Sequence[NoteTask], blocks: Blocks) -> list[int]:
    """Return the lines of the tasks with exactly this text, ignoring case.

    If there are none, return those that contain it (`Blocks.holding`).
    """
    whole = [
        task.line for task in among if task.text.strip().casefold() == query.strip().casefold()
    ]
    return whole or blocks.holding(query, [task.line for task in among], ("task",))


def _gets_done_day(args: MarkTasksInput, text: str, path: VaultPath, ctx: ToolContext) -> bool:
    if args.status not in _TICKED or args.done_date == "never":
        return False
    return args.done_date == "always" or _has_done_days(text, path, ctx)


class TakeTasksInput(TasksOfInput):
    status: Literal["open", "done"] = Field(
        default="open", description="A done task above an open one stays."
    )
    into: PathText | None = Field(default=None, description=INTO)
    leave: Literal["nothing", "mark", "link"] = Field(
        default="nothing",
        description="In the place of each task: nothing, the task marked [>], "
        "or that with a link to the note into.",
    )
    known: LongText = Field(
        default="",
        description="A text such as a rendered template: its tasks that are open in the note into "
        "are not returned a second time.",
    )


class TakenTask(ToolModel):
    text: str
    raw: str = Field(description="Its line and its nested lines, without its own indentation.")


class TakenGroup(ToolModel):
    heading: str = Field(
        description="Their former heading if the destination note has it too, else empty."
    )
    text: str = Field(description="Its tasks as a list, without a line break at the end.")


class TakeTasksOutput(ToolModel):
    path: str
    items: list[TakenTask]
    groups: list[TakenGroup] = Field(description="The same by their heading, in order.")
    text: str = Field(description="All of them as a list, without a line break at the end.")
    count: int


@tool("vault.takeTasks", Risk.WRITES)
def take_tasks(args: TakeTasksInput, ctx: ToolContext) -> Proposal[TakeTasksOutput]:
    """Move the open or the done tasks out of a note or of one of its sections.

    They are returned for later steps, with the lines nested below them.
    """
    path, text = open_note(ctx, args.path)
    blocks = Blocks.of(text)
    lines = blocks.lines
    target = links.find_destination(args.into, ctx)
    entry = ctx.view.locate(target) if target is not None else None
    is_there = entry is not None and entry.kind == "file" and entry.path != path
    target_text = read_text(ctx.view, entry.path) if is_there and entry is not None else ""
    target_headings = {heading.text for heading in edits.headings(target_text)}
    known = _open_blocks(args.known) & _open_blocks(target_text)
    link = f" {LinkWriter(ctx.view)(target.text)}" if target and args.leave == "link" else ""
    items: list[TakenTask] = []
    headings: list[str | None] = []
    removed: dict[int, str] = {}
    """The text in the place of each removed line."""
    marks = frozenset(_OPEN) if args.status == "open" else _TICKED
    others = {task.line for task in tasks(text) if task.status not in marks}
    for task in _tasks(text, args.heading):
        if (
            task.status in marks
            and task.line not in removed
            and not lines[task.line - 1].lstrip().startswith(">")
        ):
            block = blocks.whole(task.line)
            if args.status == "done" and not others.isdisjoint(block):
                continue
            removed.update(dict.fromkeys(block, ""))
            if args.leave != "nothing":
                removed[task.line] = _forwarded(lines[task.line - 1], link)
            raw = dedented([lines[number - 1] for number in block])
            if raw.rstrip() in known:
                continue
            items.append(TakenTask(text=task.text, raw=raw))
            headings.append(_common_heading(text, task.line, target_headings))
    rest = "".join(removed.get(number, line) for number, line in enumerate(lines, 1))
    carried = links.move_text("\n".join(task.raw for task in items), rest, path, target, ctx)
    changes = (ModifyFile(path, encode(carried.rest)), *carried.changes) if removed else ()
    groups: dict[str | None, list[str]] = {}
    carried_lines = iter(carried.text.split("\n"))
    for item, heading in zip(items, headings, strict=True):
        groups.setdefault(heading, []).extend(islice(carried_lines, item.raw.count("\n") + 1))
    grouped = [
        TakenGroup(heading=heading or "", text="\n".join(body)) for heading, body in groups.items()
    ]
    output = TakeTasksOutput(
        path=path.text, items=items, groups=grouped, text=carried.text, count=len(items)
    )
    return Proposal(output, changes, carried.problems)


def _open_blocks(text: str) -> set[str]:
    """Return the open tasks of a text with their nested lines, without indentation."""
    blocks = Blocks.of(text)
    return {
        dedented([blocks.lines[number - 1] for number in blocks.whole(task.line)]).rstrip()
        for task in tasks(text)
        if task.status in _OPEN and not blocks.lines[task.line - 1].lstrip().startswith(">")
    }


def _forwarded(line: str, link: str) -> str:
    """Return the line of a task marked as forwarded, without its block id, which moves with it."""
    body = line.rstrip("\r\n")
    marked = _BLOCK_ID.sub("", _BOX.sub("[>]", body, count=1)).rstrip()
    return marked + link + line[len(body) :]


def _common_heading(text: str, line: int, there: Container[str]) -> str | None:
    """Return the innermost heading over a line that the other note has too."""
    over = [
        heading
        for heading in edits.headings(text)
        if heading.line < line <= text.count("\n", 0, heading.section_end) + 1
        and heading.text in there
    ]
    return over[-1].text if over else None


class AddTaskInput(ToolModel):
    path: PathText = Field(min_length=1)
    text: LongText = Field(min_length=1, description="The task, without list marker and checkbox.")
    heading: str | None = Field(
        default=None,
        description="In the section below this heading (its text, without #); "
        "by default in the whole note.",
    )
    at: Literal["end", "start"] = "end"
    due: str | None = Field(
        default=None, description=f"{_DAY} In the format of the other tasks: 📅 or [due:: ]."
    )
    priority: Priority | None = None

    _check = field_validator("due")(checked_day)


@tool("vault.addTask", Risk.WRITES)
def add_task(args: AddTaskInput, ctx: ToolContext) -> Proposal[AddedLinesOutput]:
    """Add an open task to a note or section, optionally with due date and priority.

    It goes to the end or start, in the format of the tasks there.
    """
    path = find_file(ctx.view, args.path, PathUse.UPDATE)
    note, text = read_text(ctx.view, path), args.text.strip()
    if args.due is not None or args.priority is not None:
        style = _date_style(note, path, ctx)
        first, newline, rest = text.partition("\n")
        text = _with_marks(first, style, priority=args.priority, due=args.due) + newline + rest
    return add_lines.propose(
        AddLinesInput(
            path=path.text, content=f"- [ ] {text}", heading=args.heading or _home(note), at=args.at
        ),
        ctx,
    )


def _home(note: str) -> str | None:
    """Return the only section with all tasks of a note, or `None` if they are spread."""
    headings = edits.headings(note)
    headings_of_tasks = {
        next((heading.text for heading in reversed(headings) if heading.line < task.line), None)
        for task in tasks(note)
    }
    home = headings_of_tasks.pop() if len(headings_of_tasks) == 1 else None
    return (
        home
        if home is not None and sum(heading.text == home for heading in headings) == 1
        else None
    )


class SetTaskDueInput(ToolModel):
    path: PathText = Field(min_length=1)
    text: str = Field(
        min_length=1,
        description="The only task with this text as whole words, or else with all of its words.",
    )
    heading: str | None = Field(default=None, description="Only below this heading.")
    line: Whole | None = Field(default=None, ge=1, description=_LINE)
    due: str = Field(description=_DAY)

    _check = field_validator("due")(checked_day)


class SetTaskDueOutput(ToolModel):
    path: str
    line: int
    text: str = Field(description="The task's line.")


@tool("vault.setTaskDue", Risk.WRITES)
def set_task_due(args: SetTaskDueInput, ctx: ToolContext) -> Proposal[SetTaskDueOutput]:
    """Set or change the due date of the only task of a note that contains a text."""
    path, text = open_note(ctx, args.path)
    blocks = Blocks.of(text)
    candidates = list(_tasks(text, args.heading))
    matches = _matching_lines(args.text, candidates, blocks)
    if args.line is not None:
        unfinished = {task.line for task in candidates if task.status in _OPEN}
        matches = _nearest([line for line in matches if line in unfinished] or matches, args.line)
    if not matches:
        raise ToolError(
            f"No task of {path} contains “{args.text}”.", code="MARKER_NOT_FOUND", path=path.text
        )
    if len(matches) > 1:
        message = f"{len(matches)} tasks of {path} contain “{args.text}”."
        raise ToolError(
            message, code="COUNT_MISMATCH", path=path.text, hint="Quote more of the task's text."
        )
    lines = [*blocks.lines]
    old = lines[matches[0] - 1]
    body = old.rstrip("\r\n")
    line = _with_due(body, args.due, _date_style(text, path, ctx))
    lines[matches[0] - 1] = line + old[len(body) :]
    output = SetTaskDueOutput(path=path.text, line=matches[0], text=line.strip())
    return Proposal(output, (ModifyFile(path, encode("".join(lines))),) if line != body else ())


class PostponeTasksInput(NotesInput):
    due: str | None = Field(default=None, description=f"{_DAY} Today by default.")
    due_before: str | None = Field(
        default=None, description=f"{_DAY} Tasks due before this day; today by default."
    )
    every: bool = Field(default=False, description="true: all open tasks, with a date or not.")

    _check = field_validator("due", "due_before")(checked_day)


@tool("vault.postponeTasks", Risk.WRITES)
def postpone_tasks(args: PostponeTasksInput, ctx: ToolContext) -> Proposal[ChangedFiles]:
    """Give a new due date to the overdue open tasks of notes or a folder, or to all open ones."""
    today = ctx.run.now.date().isoformat()
    due, before = args.due or today, args.due_before or today
    files: list[ChangedFile] = []
    changes: list[ModifyFile] = []
    problems: list[Problem] = []
    for path, text in args.texts(ctx, problems):
        if not args.every and _DUE.search(text) is None:
            continue
        lines = split_lines(text)
        opened = [task for task in tasks(text) if task.status in _OPEN]
        meant = [task for task in opened if args.every or _is_due(task, before)]
        style = _date_style(text, path, ctx) if meant else "emoji"
        for task in meant:
            old = lines[task.line - 1]
            body = old.rstrip("\r\n")
            lines[task.line - 1] = _with_due(body, due, style) + old[len(body) :]
        content = encode("".join(lines))
        if meant and content != encode(text):
            files.append(ChangedFile(path=path.text, count=len(meant)))
            changes.append(ModifyFile(parse(path.text, PathUse.UPDATE), content))
            ctx.show(changes)
    return Proposal(ChangedFiles.of(files), tuple(changes), tuple(problems))


def _is_due(task: NoteTask, before: str) -> bool:
    match = _DUE.search(task.text)
    return match is not None and next(filter(None, match.groups())) < before


def _with_done(line: str, day: str, style: DateStyle) -> str:
    """Return the line of a task with its completion date; an existing date stays.

    The line has no line ending.
    """
    return (
        line
        if _DONE_DAY.search(line)
        else _with_mark(line, f"✅ {day}" if style == "emoji" else f"[completion:: {day}]")
    )


def _with_due(line: str, day: str, style: DateStyle) -> str:
    """Return the line of a task with this due date; it replaces an existing one in its format."""
    match = _DUE.search(line)
    if match is None:
        return _with_mark(line, f"📅 {day}" if style == "emoji" else f"[due:: {day}]")
    number = next(number for number, group in enumerate(match.groups(), 1) if group)
    return line[: match.start(number)] + day + line[match.end(number) :]


def _with_marks(
    text: str, style: DateStyle, *, priority: Priority | None = None, due: str | None = None
) -> str:
    """Return the text of a new task with its priority and due date."""
    if priority is not None:
        text = _with_mark(
            text, _PRIORITIES[priority] if style == "emoji" else f"[priority:: {priority}]"
        )
    return text if due is None else _with_due(text, due, style)


def _with_mark(line: str, mark: str) -> str:
    """Return the line with a mark at its end, but before a block id."""
    match = _BLOCK_ID.search(line)
    at = match.start() if match is not None else len(line.rstrip())
    return f"{line[:at].rstrip()} {mark}{line[at:]}" if line[:at].strip() else f"{mark}{line[at:]}"


def _date_style(text: str, path: VaultPath, ctx: ToolContext) -> DateStyle:
    """Return the date format of most tasks of a note, or else of its folder.

    The default is the format of the plugin Tasks.
    """
    for note in _texts_around(text, path, ctx):
        lines = [task.text for task in tasks(note)]
        emoji, field = (
            sum(pattern.search(line) is not None for line in lines) for pattern in (_EMOJI, _FIELD)
        )
        if emoji != field:
            return "emoji" if emoji > field else "field"
    return "emoji"


def _has_done_days(text: str, path: VaultPath, ctx: ToolContext) -> bool:
    """Return whether done tasks have a completion date.

    The note's own done tasks decide, or else, if its tasks have dates at all, those of its folder.
    """
    dated = any(_EMOJI.search(task.text) or _FIELD.search(task.text) for task in tasks(text))
    for note in _texts_around(text, path, ctx) if dated else (text,):
        done = [task.text for task in tasks(note) if task.status in _TICKED]
        if done:
            return sum(_DONE_DAY.search(line) is not None for line in done) * 2 >= len(done)
    return False


def _texts_around(text: str, path: VaultPath, ctx: ToolContext) -> Iterator[str]:
    yield text
    others = (
        entry.path
        for entry in ctx.view.children(path.parent)
        if entry.kind == "file" and entry.path.is_note and entry.path != path
    )
    for other in islice(others, _NEIGHBOURS):
        try:
            yield read_text(ctx.view, other)
        except VaultError:
            continue
