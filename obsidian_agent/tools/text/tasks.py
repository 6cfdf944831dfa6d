"""The tasks of notes: list them, tick them, take them out to put them elsewhere, add one, give one another due date.

Dates and priorities are written as the plugin Tasks does (📅 2026-03-14) or Dataview ([due:: 2026-03-14]), whichever the notes around have."""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Mapping, Sequence
from datetime import date
from itertools import islice
from typing import Final, Literal

from pydantic import Field, field_validator

from obsidian_agent.errors import Problem, ToolError, VaultError
from obsidian_agent.tools.core.lookup import find_file, open_note, read_text
from obsidian_agent.tools.core.models import (
    INTO,
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
from obsidian_agent.vault.markdown.lines import Task, tasks
from obsidian_agent.vault.paths.path import PathUse, VaultPath
from obsidian_agent.vault.text import encode, split_lines
from obsidian_agent.vault.views.changes import ModifyFile

DateStyle = Literal["emoji", "field"]
Priority = Literal["highest", "high", "medium", "low", "lowest"]
_DUE: Final = re.compile(
    r"(?:📅|📆|🗓)\ufe0f?\s*(\d{4}-\d{2}-\d{2})|[\[(]due::\s*(\d{4}-\d{2}-\d{2})\s*[\])]|@due\((\d{4}-\d{2}-\d{2})\)"
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
"""Notes of the same folder that are looked at where a note itself tells nothing."""

_TICKED: Final = frozenset("xX")

_OPEN: Final = " /"
"""What has not been begun, and what is in progress: neither is finished. Other marks mean what each person has agreed on."""

_BOX: Final = re.compile(r"\[[^\]\r\n]\]")

_TAG: Final = re.compile(r"(?:^|(?<=[\s(]))#([^\s#!\"$%&'()*+,.:;<=>?@\[\]^`{|}~\\]+)")

_DAY = "YYYY-MM-DD."


class TaskItem(ToolModel):
    text: str
    status: str = Field(description="The character in the checkbox: a blank is open, x is done.")
    line: int = Field(description="From 1.")


@tool("util.parseTasks", Risk.READ_ONLY)
def parse_tasks(args: TextOrPath, ctx: ToolContext) -> Proposal[Items[TaskItem]]:
    """The list items with a checkbox of a text or a file."""
    items = [
        TaskItem(text=task.text, status=task.status, line=task.line)
        for task in tasks(args.read(ctx))
    ]
    return Proposal(Items.of(items))


class ListTasksInput(NotesInput):
    status: Literal["open", "done", "all"] = Field(
        default="open", description="open: neither done (x) nor cancelled (-)."
    )
    tag: str | None = Field(
        default=None,
        min_length=1,
        description="Only tasks with this tag in their own line; nested tags are included.",
    )
    text: str | None = Field(
        default=None,
        min_length=1,
        description="Only tasks that hold this text as whole words, in any case.",
    )
    heading: str | None = Field(default=None, description="Only tasks below this heading.")
    due_before: str | None = Field(
        default=None, description="Only tasks due before this day (YYYY-MM-DD)."
    )
    due_after: str | None = Field(default=None, description="Only tasks due on this day or later.")


class ListedTask(SparseOutput):
    path: str
    name: str = Field(description="The note's name.")
    text: str
    status: str = Field(description="The character in the checkbox.")
    line: int = Field(description="From 1.")
    tags: list[str]
    due: str | None = Field(
        default=None, description="YYYY-MM-DD, as the Tasks plugin or Dataview has it."
    )


@tool("vault.listTasks", Risk.READ_ONLY)
def list_tasks(args: ListTasksInput, ctx: ToolContext) -> Proposal[Items[ListedTask]]:
    """The tasks of a note, of some notes or of a folder, by status, tag, text, heading and due date."""
    problems: list[Problem] = []
    items = [
        item
        for path, text in args.texts(ctx, problems)
        for item in _of_note(args, path, text)
        if _is_wanted(args, item)
    ]
    return Proposal(Items.of(items), warnings=tuple(problems))


def _of_note(args: ListTasksInput, path: VaultPath, text: str) -> Iterator[ListedTask]:
    try:
        tasks = _tasks(text, args.heading)
    except ToolError:
        if args.path is not None:
            raise
        return
    for task in tasks:
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


def _is_wanted(args: ListTasksInput, item: ListedTask) -> bool:
    if (
        args.status != "all"
        and ("done" if item.status in _TICKED else "cancelled" if item.status == "-" else "open")
        != args.status
    ):
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


def _tasks(text: str, heading: str | None) -> Iterator[Task]:
    """The tasks of a text, or of the section of its first heading with that text (MARKER_NOT_FOUND when there is none)."""
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
        description="The characters of the tasks that are marked: by default the open ones, or to open them the done ones.",
    )

    text: str | None = Field(
        default=None,
        min_length=1,
        description="Only the tasks whose whole text it is, in any case; or else that hold it as whole words; or else all of its words.",
    )
    done_date: Literal["asThere", "always", "never"] = Field(
        default="asThere",
        description="Write the day behind done tasks (✅): where the done tasks around have it, always, or never.",
    )
    expect_count: Whole | None = Field(
        default=None, ge=0, description="The number of tasks that there must be to mark."
    )


class MarkTasksOutput(ToolModel):
    path: str
    count: int


@tool("vault.markTasks", Risk.WRITES)
def mark_tasks(args: MarkTasksInput, ctx: ToolContext) -> Proposal[MarkTasksOutput]:
    """Tick the open tasks of a note or of one of its sections, or give them another mark."""
    path, text = open_note(ctx, args.path)
    lines = split_lines(text)
    wanted = _wanted(args, text)
    marked = [
        task
        for task in _tasks(text, args.heading)
        if task.status in _markable(args)
        and task.status != args.status
        and (wanted is None or task.line in wanted)
    ]
    if args.expect_count is not None and len(marked) != args.expect_count:
        told = f" with “{args.text}”" if args.text is not None else ""
        message = f"{path} has {len(marked)} such tasks{told}, not {args.expect_count}."
        raise ToolError(
            message, code="COUNT_MISMATCH", path=path.text, hint="Say more of the task's text."
        )
    dated = bool(marked) and _gets_done_day(args, text, path, ctx)
    style = _date_style(text, path, ctx) if dated else "emoji"
    for task in marked:
        line = _BOX.sub(f"[{args.status}]".replace("\\", r"\\"), lines[task.line - 1], count=1)
        body = line.rstrip("\r\n")
        made = (
            _with_done(body, ctx.run.now.date().isoformat(), style)
            if dated
            else _DONE_DAY.sub("", body)
            if args.status == " "
            else body
        )
        lines[task.line - 1] = made + line[len(body) :]
    changes = (ModifyFile(path, encode("".join(lines))),) if marked else ()
    recurring = args.status in _TICKED and any(_RECURRING.search(task.text) for task in marked)
    message = f"{path}: recurring tasks are ticked, but their next ones are only made by the plugin Tasks in Obsidian."
    warnings = (Problem("RECURRING_TASK", message, path=path.text),) if recurring else ()
    return Proposal(MarkTasksOutput(path=path.text, count=len(marked)), changes, warnings)


def _markable(args: MarkTasksInput) -> str:
    """The characters of the tasks that can be marked."""
    return args.only if args.only is not None else "xX" if args.status == " " else _OPEN


def _wanted(args: MarkTasksInput, text: str) -> frozenset[int] | None:
    """The lines of the tasks with such a mark that are meant (`_meant`). None: any task."""
    if args.text is None:
        return None
    return frozenset(
        _meant(
            args.text,
            [task for task in tasks(text) if task.status in _markable(args)],
            Blocks.of(text),
        )
    )


def _meant(wanted: str, among: Sequence[Task], blocks: Blocks) -> list[int]:
    """The lines of the tasks whose text it is, in any case; where there is none, of those that hold it (`Blocks.holding`)."""
    whole = [
        task.line for task in among if task.text.strip().casefold() == wanted.strip().casefold()
    ]
    return whole or blocks.holding(wanted, [task.line for task in among], ("task",))


def _gets_done_day(args: MarkTasksInput, text: str, path: VaultPath, ctx: ToolContext) -> bool:
    if args.status not in _TICKED or args.done_date == "never":
        return False
    return args.done_date == "always" or _has_done_days(text, path, ctx)


class TakeTasksInput(TasksOfInput):
    into: PathText | None = Field(default=None, description=INTO)


class TakenTask(ToolModel):
    text: str
    raw: str = Field(
        description="Its line and the deeper indented ones below it, without its own indentation."
    )


class TakenGroup(ToolModel):
    heading: str = Field(
        description="The heading they stood under, where the note that they go into has it too; else empty."
    )
    text: str = Field(description="Its tasks as a list, without a line end behind the last.")


class TakeTasksOutput(ToolModel):
    path: str
    items: list[TakenTask]
    groups: list[TakenGroup] = Field(description="The same by their heading, in order.")
    text: str = Field(description="All of them as a list, without a line end behind the last.")
    count: int


@tool("vault.takeTasks", Risk.WRITES)
def take_tasks(args: TakeTasksInput, ctx: ToolContext) -> Proposal[TakeTasksOutput]:
    """Take the open tasks out of a note or of one of its sections, with what is nested below them, to put them elsewhere."""
    path, text = open_note(ctx, args.path)
    blocks = Blocks.of(text)
    lines = blocks.lines
    target = links.find_destination(args.into, ctx)
    entry = ctx.view.locate(target) if target is not None else None
    there = (
        {each.text for each in edits.headings(read_text(ctx.view, entry.path))}
        if entry is not None and entry.kind == "file"
        else set()
    )
    taken: list[TakenTask] = []
    places: list[str | None] = []
    gone: set[int] = set()
    for task in _tasks(text, args.heading):
        if (
            task.status in _OPEN
            and task.line not in gone
            and not lines[task.line - 1].lstrip().startswith(">")
        ):
            block = blocks.whole(task.line)
            gone.update(block)
            taken.append(
                TakenTask(text=task.text, raw=dedented([lines[number - 1] for number in block]))
            )
            places.append(_common_heading(text, task.line, there))
    kept = "".join(line for number, line in enumerate(lines, 1) if number not in gone)
    carried = links.move_text("\n".join(task.raw for task in taken), kept, path, target, ctx)
    changes = (ModifyFile(path, encode(carried.rest)), *carried.changes) if gone else ()
    groups: dict[str | None, list[str]] = {}
    carried_lines = iter(carried.text.split("\n"))
    for each, heading in zip(taken, places, strict=True):
        groups.setdefault(heading, []).extend(islice(carried_lines, each.raw.count("\n") + 1))
    grouped = [
        TakenGroup(heading=heading or "", text="\n".join(body)) for heading, body in groups.items()
    ]
    output = TakeTasksOutput(
        path=path.text, items=taken, groups=grouped, text=carried.text, count=len(taken)
    )
    return Proposal(output, changes, carried.problems)


def _common_heading(text: str, line: int, there: Container[str]) -> str | None:
    """The innermost heading over a line that another note has too."""
    over = [
        each
        for each in edits.headings(text)
        if each.line < line <= text.count("\n", 0, each.section_end) + 1 and each.text in there
    ]
    return over[-1].text if over else None


def _checked_day(value: str | None) -> str | None:
    if value is not None:
        date.fromisoformat(value)
    return value


class AddTaskInput(ToolModel):
    path: PathText = Field(min_length=1)
    text: LongText = Field(min_length=1, description="The task, without list marker and checkbox.")
    heading: str | None = Field(
        default=None,
        description="In the section below this heading (its text, without #); else in the whole note.",
    )
    at: Literal["end", "start"] = "end"
    due: str | None = Field(
        default=None, description=f"{_DAY} Written as the tasks around write it: 📅, or [due:: ]."
    )
    priority: Priority | None = None

    _check = field_validator("due")(_checked_day)


@tool("vault.addTask", Risk.WRITES)
def add_task(args: AddTaskInput, ctx: ToolContext) -> Proposal[AddedLinesOutput]:
    """Add an open task at the end or start of a note or section, perhaps with due date and priority, in the form of the tasks there."""
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
    """The heading of the section that all tasks of a note are in, and at whose end a list stands; None where they are spread."""
    headings = edits.headings(note)
    places = {
        next((heading.text for heading in reversed(headings) if heading.line < task.line), None)
        for task in tasks(note)
    }
    home = places.pop() if len(places) == 1 else None
    return (
        home
        if home is not None and sum(heading.text == home for heading in headings) == 1
        else None
    )


class SetTaskDueInput(ToolModel):
    path: PathText = Field(min_length=1)
    text: str = Field(
        min_length=1,
        description="The one task that holds this text as whole words, or else all of its words.",
    )
    heading: str | None = Field(default=None, description="Only below this heading.")
    due: str = Field(description=_DAY)

    _check = field_validator("due")(_checked_day)


class SetTaskDueOutput(ToolModel):
    path: str
    line: int
    text: str = Field(description="The task's line.")


@tool("vault.setTaskDue", Risk.WRITES)
def set_task_due(args: SetTaskDueInput, ctx: ToolContext) -> Proposal[SetTaskDueOutput]:
    """Give the one task of a note that holds a text another due date, or its first one."""
    path, text = open_note(ctx, args.path)
    blocks = Blocks.of(text)
    found = _meant(args.text, [*_tasks(text, args.heading)], blocks)
    if not found:
        raise ToolError(
            f"No task of {path} holds “{args.text}”.", code="MARKER_NOT_FOUND", path=path.text
        )
    if len(found) > 1:
        message = f"{len(found)} tasks of {path} hold “{args.text}”."
        raise ToolError(
            message, code="COUNT_MISMATCH", path=path.text, hint="Say more of the task's text."
        )
    lines = [*blocks.lines]
    old = lines[found[0] - 1]
    body = old.rstrip("\r\n")
    line = _with_due(body, args.due, _date_style(text, path, ctx))
    lines[found[0] - 1] = line + old[len(body) :]
    output = SetTaskDueOutput(path=path.text, line=found[0], text=line.strip())
    return Proposal(output, (ModifyFile(path, encode("".join(lines))),) if line != body else ())


def _with_done(line: str, day: str, style: DateStyle) -> str:
    """The line of a task (without line end) with the day on which it was done; one that is there stays."""
    return (
        line
        if _DONE_DAY.search(line)
        else _with_mark(line, f"✅ {day}" if style == "emoji" else f"[completion:: {day}]")
    )


def _with_due(line: str, day: str, style: DateStyle) -> str:
    """The line of a task with this due date, in the place and form of the one that is there."""
    found = _DUE.search(line)
    if found is None:
        return _with_mark(line, f"📅 {day}" if style == "emoji" else f"[due:: {day}]")
    number = next(number for number, group in enumerate(found.groups(), 1) if group)
    return line[: found.start(number)] + day + line[found.end(number) :]


def _with_marks(
    text: str, style: DateStyle, *, priority: Priority | None = None, due: str | None = None
) -> str:
    """The text of a new task with its priority and due date."""
    if priority is not None:
        text = _with_mark(
            text, _PRIORITIES[priority] if style == "emoji" else f"[priority:: {priority}]"
        )
    return text if due is None else _with_due(text, due, style)


def _with_mark(line: str, mark: str) -> str:
    """The line with a mark at its end, before a block's name."""
    found = _BLOCK_ID.search(line)
    at = found.start() if found is not None else len(line.rstrip())
    return f"{line[:at].rstrip()} {mark}{line[at:]}" if line[:at].strip() else f"{mark}{line[at:]}"


def _date_style(text: str, path: VaultPath, ctx: ToolContext) -> DateStyle:
    """How a note's tasks have their dates: most of its own, else those of its folder; as the plugin Tasks has them where nothing tells."""
    for each in _texts_around(text, path, ctx):
        lines = [task.text for task in tasks(each)]
        emoji, field = (
            sum(pattern.search(line) is not None for line in lines) for pattern in (_EMOJI, _FIELD)
        )
        if emoji != field:
            return "emoji" if emoji > field else "field"
    return "emoji"


def _has_done_days(text: str, path: VaultPath, ctx: ToolContext) -> bool:
    """Whether done tasks have the day on which they were done: most of the note's own, else, where it has dates at all, of its folder."""
    dated = any(_EMOJI.search(task.text) or _FIELD.search(task.text) for task in tasks(text))
    for each in _texts_around(text, path, ctx) if dated else (text,):
        done = [task.text for task in tasks(each) if task.status in _TICKED]
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
