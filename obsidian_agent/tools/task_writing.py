"""`vault.addTask` and `vault.setTaskDue`: tasks with dates, written as the note's other tasks have them."""

from __future__ import annotations

from datetime import date
from typing import Literal

from pydantic import Field, field_validator

from obsidian_agent.errors import ToolError
from obsidian_agent.tools.adding import AddedLinesOutput, AddLinesInput, add_lines
from obsidian_agent.tools.base import LongText, PathText, Proposal, Risk, Tool, ToolContext, ToolModel
from obsidian_agent.tools.blocks import Blocks
from obsidian_agent.tools.notes import find_file, read_text
from obsidian_agent.tools.task_dates import Priority, dressed, style_of, with_due
from obsidian_agent.vault import markdown
from obsidian_agent.vault.changes import ModifyFile
from obsidian_agent.vault.paths import PathUse
from obsidian_agent.vault.text import encode

_DAY = "YYYY-MM-DD."


def _a_day(value: str | None) -> str | None:
    if value is not None:
        date.fromisoformat(value)
    return value


# --- vault.addTask ------------------------------------------------------------------------------------------------------------


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


def _add_task(args: AddTaskInput, ctx: ToolContext) -> Proposal:
    path = find_file(ctx.view, args.path, PathUse.UPDATE)
    note, text = read_text(ctx.view, path), args.text.strip()
    if args.due is not None or args.priority is not None:
        style = style_of(note, path, ctx)
        first, newline, rest = text.partition("\n")
        text = dressed(first, style, priority=args.priority, due=args.due) + newline + rest
    return add_lines(AddLinesInput(path=path.text, content=f"- [ ] {text}", heading=args.heading or _home(note), at=args.at), ctx)


def _home(note: str) -> str | None:
    """The heading of the section that all tasks of a note are in, and at whose end a list stands; None where they are spread."""
    headings = markdown.headings(note)
    places = {next((heading.text for heading in reversed(headings) if heading.line < task.line), None) for task in markdown.tasks(note)}
    home = places.pop() if len(places) == 1 else None
    return home if home is not None and sum(heading.text == home for heading in headings) == 1 else None


ADD_TASK = Tool(
    name="vault.addTask",
    summary="Add an open task at the end or start of a note or section, perhaps with due date and priority, in the form of the tasks there.",
    risk=Risk.WRITES,
    input=AddTaskInput,
    output=AddedLinesOutput,
    propose=_add_task,
)

# --- vault.setTaskDue ---------------------------------------------------------------------------------------------------------


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


def _set_task_due(args: SetTaskDueInput, ctx: ToolContext) -> Proposal:
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


SET_TASK_DUE = Tool(
    name="vault.setTaskDue",
    summary="Give the one task of a note that holds a text another due date, or its first one.",
    risk=Risk.WRITES,
    input=SetTaskDueInput,
    output=SetTaskDueOutput,
    propose=_set_task_due,
)
