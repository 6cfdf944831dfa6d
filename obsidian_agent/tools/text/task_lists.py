"""`vault.addTask` and `vault.setTaskDue`: tasks with dates, written as the note's other tasks have them.

`vault.listTasks`: the tasks of many notes, with their tags and dates.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date
from typing import Final, Literal

from pydantic import Field, field_validator

from obsidian_agent.errors import Problem, ToolError
from obsidian_agent.tools.core.lookup import NotesInput, SparseOutput, find_file, read_text
from obsidian_agent.tools.core.patterns import whole_words
from obsidian_agent.tools.core.tool import LongText, PathText, Proposal, Risk, ToolContext, ToolModel, tool
from obsidian_agent.tools.text.blocks import Blocks
from obsidian_agent.tools.text.lines import AddedLinesOutput, AddLinesInput, add_lines
from obsidian_agent.tools.text.tasks import DUE, Priority, dressed, style_of, with_due
from obsidian_agent.vault.index.facts import tag_key, tag_within
from obsidian_agent.vault.markdown import edits
from obsidian_agent.vault.markdown.text import encode
from obsidian_agent.vault.paths.path import PathUse, VaultPath
from obsidian_agent.vault.views.changes import ModifyFile

_TAG: Final = re.compile(r"(?:^|(?<=[\s(]))#([^\s#!\"$%&'()*+,.:;<=>?@\[\]^`{|}~\\]+)")
_DONE: Final = frozenset("xX")
_CANCELLED: Final = frozenset("-")


class ListTasksInput(NotesInput):
    status: Literal["open", "done", "all"] = Field(default="open", description="open: neither done (x) nor cancelled (-).")
    tag: str | None = Field(default=None, min_length=1, description="Only tasks with this tag in their own line; nested tags are included.")
    text: str | None = Field(default=None, min_length=1, description="Only tasks that hold this text as whole words, in any case.")
    heading: str | None = Field(default=None, description="Only tasks below this heading.")
    due_before: str | None = Field(default=None, description="Only tasks due before this day (YYYY-MM-DD).")
    due_after: str | None = Field(default=None, description="Only tasks due on this day or later.")


class ListedTask(SparseOutput):
    path: str
    name: str = Field(description="The note's name.")
    text: str
    status: str = Field(description="The character in the checkbox.")
    line: int = Field(description="From 1.")
    tags: list[str]
    due: str | None = Field(default=None, description="YYYY-MM-DD, as the Tasks plugin or Dataview has it.")


class ListTasksOutput(ToolModel):
    items: list[ListedTask]
    count: int


@tool("vault.listTasks", Risk.READ_ONLY)
def list_tasks(args: ListTasksInput, ctx: ToolContext) -> Proposal[ListTasksOutput]:
    """The tasks of a note, of some notes or of a folder, by status, tag, text, heading and due date."""
    problems: list[Problem] = []
    items = [item for path, text in args.texts(ctx, problems) for item in _of_note(args, path, text) if _is_wanted(args, item)]
    return Proposal(ListTasksOutput(items=items, count=len(items)), warnings=tuple(problems))


def _of_note(args: ListTasksInput, path: VaultPath, text: str) -> Iterator[ListedTask]:
    first, last = 1, text.count("\n") + 1
    if args.heading is not None:
        try:
            section = edits.section(text, args.heading)
        except ToolError:
            if args.path is not None:
                raise
            return
        first, last = text.count("\n", 0, section.start) + 1, text.count("\n", 0, section.text_end) + 1
    for task in edits.tasks(text):
        if first <= task.line <= last:
            due = DUE.search(task.text)
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
    if args.status != "all" and _state(item.status) != args.status:
        return False
    if args.tag is not None and not any(tag_within(tag_key(tag), tag_key(args.tag)) for tag in item.tags):
        return False
    if args.text is not None and not whole_words(args.text).search(item.text):
        return False
    if args.due_before is not None and not (item.due is not None and item.due < args.due_before):
        return False
    return args.due_after is None or (item.due is not None and item.due >= args.due_after)


def _state(status: str) -> str:
    return "done" if status in _DONE else "cancelled" if status in _CANCELLED else "open"


_DAY = "YYYY-MM-DD."


def _a_day(value: str | None) -> str | None:
    if value is not None:
        date.fromisoformat(value)
    return value


class AddTaskInput(ToolModel):
    path: PathText = Field(min_length=1)
    text: LongText = Field(min_length=1, description="The task, without list marker and checkbox.")
    heading: str | None = Field(
        default=None, description="In the section below this heading (its text, without #); else in the whole note."
    )
    at: Literal["end", "start"] = "end"
    due: str | None = Field(default=None, description=f"{_DAY} Written as the tasks around write it: 📅, or [due:: ].")
    priority: Priority | None = None

    _check = field_validator("due")(_a_day)


@tool("vault.addTask", Risk.WRITES)
def add_task(args: AddTaskInput, ctx: ToolContext) -> Proposal[AddedLinesOutput]:
    """Add an open task at the end or start of a note or section, perhaps with due date and priority, in the form of the tasks there."""
    path = find_file(ctx.view, args.path, PathUse.UPDATE)
    note, text = read_text(ctx.view, path), args.text.strip()
    if args.due is not None or args.priority is not None:
        style = style_of(note, path, ctx)
        first, newline, rest = text.partition("\n")
        text = dressed(first, style, priority=args.priority, due=args.due) + newline + rest
    return add_lines.propose(AddLinesInput(path=path.text, content=f"- [ ] {text}", heading=args.heading or _home(note), at=args.at), ctx)


def _home(note: str) -> str | None:
    """The heading of the section that all tasks of a note are in, and at whose end a list stands; None where they are spread."""
    headings = edits.headings(note)
    places = {next((heading.text for heading in reversed(headings) if heading.line < task.line), None) for task in edits.tasks(note)}
    home = places.pop() if len(places) == 1 else None
    return home if home is not None and sum(heading.text == home for heading in headings) == 1 else None


class SetTaskDueInput(ToolModel):
    path: PathText = Field(min_length=1)
    text: str = Field(min_length=1, description="The one task that holds this text as whole words, or else all of its words.")
    heading: str | None = Field(default=None, description="Only below this heading.")
    due: str = Field(description=_DAY)

    _check = field_validator("due")(_a_day)


class SetTaskDueOutput(ToolModel):
    path: str
    line: int
    text: str = Field(description="The task's line.")


@tool("vault.setTaskDue", Risk.WRITES)
def set_task_due(args: SetTaskDueInput, ctx: ToolContext) -> Proposal[SetTaskDueOutput]:
    """Give the one task of a note that holds a text another due date, or its first one."""
    path = find_file(ctx.view, args.path, PathUse.UPDATE)
    text = read_text(ctx.view, path)
    blocks = Blocks.of(text)
    found = blocks.holding(args.text, blocks.within(text, args.heading), ("task",))
    if not found:
        raise ToolError(f"No task of {path} holds “{args.text}”.", code="MARKER_NOT_FOUND", path=path.text)
    if len(found) > 1:
        message = f"{len(found)} tasks of {path} hold “{args.text}”."
        raise ToolError(message, code="COUNT_MISMATCH", path=path.text, hint="Say more of the task's text.")
    lines = [*blocks.lines]
    old = lines[found[0] - 1]
    body = old.rstrip("\r\n")
    line = with_due(body, args.due, style_of(text, path, ctx))
    lines[found[0] - 1] = line + old[len(body) :]
    output = SetTaskDueOutput(path=path.text, line=found[0], text=line.strip())
    return Proposal(output, (ModifyFile(path, encode("".join(lines))),) if line != body else ())
