"""Tools for the tasks of a note: tick them, and take them out to put them elsewhere."""

from __future__ import annotations

import re
from collections.abc import Container, Iterator
from itertools import islice
from typing import Literal

from pydantic import Field

from obsidian_agent.errors import Problem, ToolError
from obsidian_agent.tools import carrying
from obsidian_agent.tools.base import PathText, Proposal, Risk, Tool, ToolContext, ToolModel, Whole
from obsidian_agent.tools.blocks import Blocks, dedented
from obsidian_agent.tools.notes import find_file, read_text
from obsidian_agent.tools.task_dates import recurs, style_of, tells_when_done, with_done, without_done
from obsidian_agent.vault import markdown
from obsidian_agent.vault.changes import ModifyFile
from obsidian_agent.vault.markdown import Task
from obsidian_agent.vault.paths import PathUse, VaultPath
from obsidian_agent.vault.text import encode, split_lines

_DONE = frozenset("xX")
_BOX = re.compile(r"\[[^\]\r\n]\]")


class TasksOfInput(ToolModel):
    path: PathText = Field(min_length=1)
    heading: str | None = Field(default=None, description="Only tasks below this heading (its text, without #).")


# --- vault.markTasks ----------------------------------------------------------------------------------------------------------


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


def _mark_tasks(args: MarkTasksInput, ctx: ToolContext) -> Proposal:
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
    recurring = args.status in _DONE and any(recurs(task.text) for task in marked)
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
    markable = [task.line for task in markdown.tasks(text) if task.status in _markable(args)]
    return frozenset(blocks.holding(args.text, markable, ("task",)))


def _is_dated(args: MarkTasksInput, text: str, path: VaultPath, ctx: ToolContext) -> bool:
    if args.status not in _DONE or args.done_date == "never":
        return False
    return args.done_date == "always" or tells_when_done(text, path, ctx)


MARK_TASKS = Tool(
    name="vault.markTasks",
    summary="Tick the open tasks of a note or of one of its sections, or give them another mark.",
    risk=Risk.WRITES,
    input=MarkTasksInput,
    output=MarkTasksOutput,
    propose=_mark_tasks,
)

# --- vault.takeTasks ----------------------------------------------------------------------------------------------------------


class TakeTasksInput(TasksOfInput):
    into: PathText | None = Field(default=None, description=carrying.INTO)


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


def _take_tasks(args: TakeTasksInput, ctx: ToolContext) -> Proposal:
    path = find_file(ctx.view, args.path, PathUse.UPDATE)
    text = read_text(ctx.view, path)
    blocks = Blocks.of(text)
    lines = blocks.lines
    target = carrying.destination(args.into, ctx)
    entry = ctx.view.locate(target) if target is not None else None
    there = (
        {each.text for each in markdown.headings(read_text(ctx.view, entry.path))} if entry is not None and entry.kind == "file" else set()
    )
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
    carried = carrying.taken("\n".join(task.raw for task in taken), kept, path, target, ctx)
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
    over = [
        each for each in markdown.headings(text) if each.line < line <= text.count("\n", 0, each.section_end) + 1 and each.text in there
    ]
    return over[-1].text if over else None


TAKE_TASKS = Tool(
    name="vault.takeTasks",
    summary="Take the open tasks out of a note or of one of its sections, with what is nested below them, to put them elsewhere.",
    risk=Risk.WRITES,
    input=TakeTasksInput,
    output=TakeTasksOutput,
    propose=_take_tasks,
)


def _tasks(text: str, heading: str | None) -> Iterator[Task]:
    """The tasks of a text, or of the section of its first heading with that text (MARKER_NOT_FOUND when there is none)."""
    if heading is None:
        yield from markdown.tasks(text)
        return
    section = markdown.section(text, heading)
    first = text.count("\n", 0, section.start) + 1
    last = text.count("\n", 0, section.end) + (not text[: section.end].endswith("\n"))
    yield from (task for task in markdown.tasks(text) if first <= task.line <= last)
