"""Tools for the tasks of a note: tick them, and take them out to put them elsewhere.

Dates and priorities in the lines of tasks, as the plugin Tasks writes them (📅 2026-03-14) or Dataview ([due:: 2026-03-14]).
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Mapping
from itertools import islice
from typing import Final, Literal

from pydantic import Field

from obsidian_agent.errors import Problem, ToolError, VaultError
from obsidian_agent.tools.core.lookup import TextOrPath, find_file, read_text
from obsidian_agent.tools.core.tool import PathText, Proposal, Risk, ToolContext, ToolModel, Whole, tool
from obsidian_agent.tools.links import anchors
from obsidian_agent.tools.text.blocks import Blocks, dedented
from obsidian_agent.vault.markdown import edits
from obsidian_agent.vault.markdown.edits import Task
from obsidian_agent.vault.markdown.text import encode, split_lines
from obsidian_agent.vault.paths.path import PathUse, VaultPath
from obsidian_agent.vault.views.changes import ModifyFile

Style = Literal["emoji", "field"]
Priority = Literal["highest", "high", "medium", "low", "lowest"]

DUE: Final = re.compile(r"(?:📅|📆|🗓)\ufe0f?\s*(\d{4}-\d{2}-\d{2})|[\[(]due::\s*(\d{4}-\d{2}-\d{2})\s*[\])]|@due\((\d{4}-\d{2}-\d{2})\)")
_DONE: Final = re.compile(r"\s*(?:✅\ufe0f?\s*\d{4}-\d{2}-\d{2}|[\[(]completion::\s*\d{4}-\d{2}-\d{2}\s*[\])])")
_EMOJI: Final = re.compile(r"[📅📆🗓⏳⌛🛫➕✅🔁🔺⏫🔼🔽⏬]")
_FIELD: Final = re.compile(r"[\[(](?:due|completion|scheduled|start|created|priority|repeat)::")
_RECURRING: Final = re.compile(r"🔁|[\[(]repeat::")
_BLOCK_ID: Final = re.compile(r"[ \t]+\^[A-Za-z0-9-]+$")
_PRIORITIES: Final[Mapping[str, str]] = {"highest": "🔺", "high": "⏫", "medium": "🔼", "low": "🔽", "lowest": "⏬"}
_NEIGHBOURS: Final = 50
"""Notes of the same folder that are looked at where a note itself tells nothing."""


def recurs(line: str) -> bool:
    """Whether a task comes again when it is done."""
    return _RECURRING.search(line) is not None


def with_done(line: str, day: str, style: Style) -> str:
    """The line of a task (without line end) with the day on which it was done; one that is there stays."""
    return line if _DONE.search(line) else _added(line, f"✅ {day}" if style == "emoji" else f"[completion:: {day}]")


def without_done(line: str) -> str:
    """The line without the day on which it was done."""
    return _DONE.sub("", line)


def with_due(line: str, day: str, style: Style) -> str:
    """The line of a task with this due date, in the place and form of the one that is there."""
    found = DUE.search(line)
    if found is None:
        return _added(line, f"📅 {day}" if style == "emoji" else f"[due:: {day}]")
    number = next(number for number, group in enumerate(found.groups(), 1) if group)
    return line[: found.start(number)] + day + line[found.end(number) :]


def dressed(text: str, style: Style, *, priority: Priority | None = None, due: str | None = None) -> str:
    """The text of a new task with its priority and due date."""
    if priority is not None:
        text = _added(text, _PRIORITIES[priority] if style == "emoji" else f"[priority:: {priority}]")
    return text if due is None else with_due(text, due, style)


def style_of(text: str, path: VaultPath, ctx: ToolContext) -> Style:
    """How a note's tasks have their dates: most of its own, else those of its folder; as the plugin Tasks has them where nothing tells."""
    for each in _around(text, path, ctx):
        lines = [task.text for task in edits.tasks(each)]
        emoji, field = (sum(pattern.search(line) is not None for line in lines) for pattern in (_EMOJI, _FIELD))
        if emoji != field:
            return "emoji" if emoji > field else "field"
    return "emoji"


def tells_when_done(text: str, path: VaultPath, ctx: ToolContext) -> bool:
    """Whether done tasks have the day on which they were done: most of the note's own, else, where it has dates at all, of its folder."""
    dated = any(_EMOJI.search(task.text) or _FIELD.search(task.text) for task in edits.tasks(text))
    for each in _around(text, path, ctx) if dated else (text,):
        done = [task.text for task in edits.tasks(each) if task.status in "xX"]
        if done:
            return sum(_DONE.search(line) is not None for line in done) * 2 >= len(done)
    return False


def _around(text: str, path: VaultPath, ctx: ToolContext) -> Iterator[str]:
    yield text
    others = (entry.path for entry in ctx.view.children(path.parent) if entry.kind == "file" and entry.path.is_note and entry.path != path)
    for other in islice(others, _NEIGHBOURS):
        try:
            yield read_text(ctx.view, other)
        except VaultError:
            continue


def _added(line: str, mark: str) -> str:
    """The line with a mark at its end, before a block's name."""
    found = _BLOCK_ID.search(line)
    at = found.start() if found is not None else len(line.rstrip())
    return f"{line[:at].rstrip()} {mark}{line[at:]}" if line[:at].strip() else f"{mark}{line[at:]}"


_tasks_DONE = frozenset("xX")
_BOX = re.compile(r"\[[^\]\r\n]\]")


class TasksOfInput(ToolModel):
    path: PathText = Field(min_length=1)
    heading: str | None = Field(default=None, description="Only tasks below this heading (its text, without #).")


class MarkTasksInput(TasksOfInput):
    status: str = Field(default="x", min_length=1, max_length=1, pattern=r"[^\]\r\n]", description="The character for the checkbox.")
    only: str | None = Field(
        default=None, description="The characters of the tasks that are marked: by default the open ones, or to open them the done ones."
    )

    text: str | None = Field(
        default=None, min_length=1, description="Only tasks that hold this text as whole words, in any case, or else all of its words."
    )
    done_date: Literal["asThere", "always", "never"] = Field(
        default="asThere", description="Write the day behind done tasks (✅): where the done tasks around have it, always, or never."
    )
    expect_count: Whole | None = Field(default=None, ge=0, description="The number of tasks that there must be to mark.")


class MarkTasksOutput(ToolModel):
    path: str
    count: int


@tool("vault.markTasks", Risk.WRITES)
def mark_tasks(args: MarkTasksInput, ctx: ToolContext) -> Proposal[MarkTasksOutput]:
    """Tick the open tasks of a note or of one of its sections, or give them another mark."""
    path = find_file(ctx.view, args.path, PathUse.UPDATE)
    text = read_text(ctx.view, path)
    lines = split_lines(text)
    wanted = _wanted(args, text)
    marked = [
        task
        for task in _tasks(text, args.heading)
        if task.status in _markable(args) and task.status != args.status and (wanted is None or task.line in wanted)
    ]
    if args.expect_count is not None and len(marked) != args.expect_count:
        told = f" with “{args.text}”" if args.text is not None else ""
        message = f"{path} has {len(marked)} such tasks{told}, not {args.expect_count}."
        raise ToolError(message, code="COUNT_MISMATCH", path=path.text, hint="Say more of the task's text.")
    dated = bool(marked) and _is_dated(args, text, path, ctx)
    style = style_of(text, path, ctx) if dated else "emoji"
    for task in marked:
        line = _BOX.sub(f"[{args.status}]".replace("\\", r"\\"), lines[task.line - 1], count=1)
        body = line.rstrip("\r\n")
        made = with_done(body, ctx.run.now.date().isoformat(), style) if dated else without_done(body) if args.status == " " else body
        lines[task.line - 1] = made + line[len(body) :]
    changes = (ModifyFile(path, encode("".join(lines))),) if marked else ()
    recurring = args.status in _tasks_DONE and any(recurs(task.text) for task in marked)
    message = f"{path}: recurring tasks are ticked, but their next ones are only made by the plugin Tasks in Obsidian."
    warnings = (Problem("RECURRING_TASK", message, path=path.text),) if recurring else ()
    return Proposal(MarkTasksOutput(path=path.text, count=len(marked)), changes, warnings)


def _markable(args: MarkTasksInput) -> str:
    """The characters of the tasks that can be marked."""
    return args.only if args.only is not None else "xX" if args.status == " " else " "


def _wanted(args: MarkTasksInput, text: str) -> frozenset[int] | None:
    """The lines of the tasks that hold the text: as whole words, or where none with such a mark does all of its words. None: any task."""
    if args.text is None:
        return None
    blocks = Blocks.of(text)
    markable = [task.line for task in edits.tasks(text) if task.status in _markable(args)]
    return frozenset(blocks.holding(args.text, markable, ("task",)))


def _is_dated(args: MarkTasksInput, text: str, path: VaultPath, ctx: ToolContext) -> bool:
    if args.status not in _tasks_DONE or args.done_date == "never":
        return False
    return args.done_date == "always" or tells_when_done(text, path, ctx)


class TakeTasksInput(TasksOfInput):
    into: PathText | None = Field(default=None, description=anchors.INTO)


class TakenTask(ToolModel):
    text: str
    raw: str = Field(description="Its line and the deeper indented ones below it, without its own indentation.")


class TakenGroup(ToolModel):
    heading: str = Field(description="The heading they stood under, where the note that they go into has it too; else empty.")
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
    path = find_file(ctx.view, args.path, PathUse.UPDATE)
    text = read_text(ctx.view, path)
    blocks = Blocks.of(text)
    lines = blocks.lines
    target = anchors.destination(args.into, ctx)
    entry = ctx.view.locate(target) if target is not None else None
    there = {each.text for each in edits.headings(read_text(ctx.view, entry.path))} if entry is not None and entry.kind == "file" else set()
    taken: list[TakenTask] = []
    places: list[str | None] = []
    gone: set[int] = set()
    for task in _tasks(text, args.heading):
        if task.status == " " and task.line not in gone and not lines[task.line - 1].lstrip().startswith(">"):
            block = blocks.whole(task.line)
            gone.update(block)
            taken.append(TakenTask(text=task.text, raw=dedented([lines[number - 1] for number in block])))
            places.append(_common_heading(text, task.line, there))
    kept = "".join(line for number, line in enumerate(lines, 1) if number not in gone)
    carried = anchors.taken("\n".join(task.raw for task in taken), kept, path, target, ctx)
    changes = (ModifyFile(path, encode(carried.rest)), *carried.changes) if gone else ()
    groups: dict[str | None, list[str]] = {}
    carried_lines = iter(carried.text.split("\n"))
    for each, heading in zip(taken, places, strict=True):
        groups.setdefault(heading, []).extend(islice(carried_lines, each.raw.count("\n") + 1))
    grouped = [TakenGroup(heading=heading or "", text="\n".join(body)) for heading, body in groups.items()]
    output = TakeTasksOutput(path=path.text, items=taken, groups=grouped, text=carried.text, count=len(taken))
    return Proposal(output, changes, carried.problems)


def _common_heading(text: str, line: int, there: Container[str]) -> str | None:
    """The innermost heading over a line that another note has too."""
    over = [each for each in edits.headings(text) if each.line < line <= text.count("\n", 0, each.section_end) + 1 and each.text in there]
    return over[-1].text if over else None


def _tasks(text: str, heading: str | None) -> Iterator[Task]:
    """The tasks of a text, or of the section of its first heading with that text (MARKER_NOT_FOUND when there is none)."""
    if heading is None:
        yield from edits.tasks(text)
        return
    section = edits.section(text, heading)
    first = text.count("\n", 0, section.start) + 1
    last = text.count("\n", 0, section.end) + (not text[: section.end].endswith("\n"))
    yield from (task for task in edits.tasks(text) if first <= task.line <= last)


class TaskItem(ToolModel):
    text: str
    status: str = Field(description="The character in the checkbox: a blank is open, x is done.")
    line: int = Field(description="From 1.")


class ParseTasksOutput(ToolModel):
    items: list[TaskItem]
    count: int


@tool("util.parseTasks", Risk.READ_ONLY)
def parse_tasks(args: TextOrPath, ctx: ToolContext) -> Proposal[ParseTasksOutput]:
    """The list items with a checkbox of a text or a file."""
    items = [TaskItem(text=task.text, status=task.status, line=task.line) for task in edits.tasks(args.read(ctx))]
    return Proposal(ParseTasksOutput(items=items, count=len(items)))
