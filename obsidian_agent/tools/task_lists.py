"""`vault.listTasks`: the tasks of many notes, with their tags and dates."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, Literal

from pydantic import Field

from obsidian_agent.errors import Problem, ToolError
from obsidian_agent.tools.base import Proposal, Risk, Tool, ToolContext, ToolModel
from obsidian_agent.tools.conditions import whole_words
from obsidian_agent.tools.notes import SparseOutput
from obsidian_agent.tools.sources import NotesInput
from obsidian_agent.tools.task_dates import DUE
from obsidian_agent.vault import markdown
from obsidian_agent.vault.index_facts import tag_key, tag_within
from obsidian_agent.vault.paths import VaultPath

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


def _list_tasks(args: ListTasksInput, ctx: ToolContext) -> Proposal:
    problems: list[Problem] = []
    items = [item for path, text in args.texts(ctx, problems) for item in _of_note(args, path, text) if _is_wanted(args, item)]
    return Proposal(ListTasksOutput(items=items, count=len(items)), warnings=tuple(problems))


def _of_note(args: ListTasksInput, path: VaultPath, text: str) -> Iterator[ListedTask]:
    first, last = 1, text.count("\n") + 1
    if args.heading is not None:
        try:
            section = markdown.section(text, args.heading)
        except ToolError:
            if args.path is not None:
                raise
            return
        first, last = text.count("\n", 0, section.start) + 1, text.count("\n", 0, section.text_end) + 1
    for task in markdown.tasks(text):
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


LIST_TASKS = Tool(
    name="vault.listTasks",
    summary="The tasks of a note, of some notes or of a folder, by status, tag, text, heading and due date.",
    risk=Risk.READ_ONLY,
    input=ListTasksInput,
    output=ListTasksOutput,
    propose=_list_tasks,
)
