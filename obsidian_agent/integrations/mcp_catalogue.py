"""The tools of the MCP server: their names, what clients read about them, and what answers them.

Names and arguments stay valid from version to version. Each call is a function of the shared vault.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from enum import Enum
from functools import cache
from typing import Any, Final

from mcp_types import Tool as McpTool
from mcp_types import ToolAnnotations
from msgspec import Struct
from pydantic import BaseModel

from obsidian_agent.agent.turn.model_tools import describe
from obsidian_agent.agent.turn.prompts import filled_prompt, in_detail
from obsidian_agent.errors import ToolError, did_you_mean
from obsidian_agent.integrations import mcp_proposals, mcp_reading
from obsidian_agent.integrations.mcp_arguments import (
    AnyPlanInput,
    AppendInput,
    BacklinksInput,
    CreateInput,
    ListDirectoryInput,
    MoveInput,
    NoteInput,
    OverviewInput,
    PeriodicNoteInput,
    PlanInput,
    PlanLanguageInput,
    PropertiesInput,
    ReadNoteInput,
    ReadNotesInput,
    SearchNotesInput,
    TasksInput,
    schema_of,
)
from obsidian_agent.integrations.shared_vault import RUN_PLAN, SharedVault
from obsidian_agent.plan.arguments import check
from obsidian_agent.tools.registry import TOOLS

Document = dict[str, Any]


class Effect(Enum):
    """The effect of a call, in addition to its answer."""

    READS = "reads"
    PREVIEWS = "previews"
    PROPOSES = "proposes"
    RUNS = "runs"


class ServedTool(Struct, frozen=True, kw_only=True):
    """A tool that clients can call.

    `call` returns the document for the client, and blocks. A tool that proposes has a `plan`
    instead, which returns the document of a plan.
    """

    name: str
    title: str
    description: str
    input: type[BaseModel]
    effect: Effect = Effect.READS
    call: Callable[[SharedVault, Any], Document] | None = None
    plan: Callable[[SharedVault, Any], object] | None = None

    def parse(self, arguments: Mapping[str, Any]) -> BaseModel:
        """Return the arguments of a call. Raise `ToolError` with a sentence for each problem."""
        model, problems = check(self.input, dict(arguments))
        if model is None:
            raise ToolError(
                " ".join(problem.message for problem in problems), code="ARGUMENT_INVALID"
            )
        return model

    def to_mcp(self) -> McpTool:
        """Return the tool as the protocol describes it."""
        reads = self.effect in (Effect.READS, Effect.PREVIEWS)
        return McpTool(
            name=self.name,
            title=self.title,
            description=self.description,
            input_schema=schema_of(self.input),
            annotations=ToolAnnotations(
                title=self.title,
                read_only_hint=reads,
                destructive_hint=self.effect is Effect.RUNS,
                idempotent_hint=reads,
                open_world_hint=False,
            ),
        )


def _list_directory(vault: SharedVault, args: ListDirectoryInput) -> Document:
    folder = args.path.removeprefix("./").strip("/") if args.path != "." else ""
    page = {"recursive": False, "limit": args.limit, "offset": args.offset}
    document = vault.read("vault.listFiles", {"folder": folder, **page})
    files = [{"path": file["path"], "size": file["size"]} for file in document.get("files", ())]
    return document | {"files": files}


def _read_note(vault: SharedVault, args: ReadNoteInput) -> Document:
    if args.section is not None:
        return vault.answer(
            "vault.readFile", lambda view, context: mcp_reading.read_section(view, args)
        )
    return vault.read("vault.readFile", {"path": args.path, "offset": args.offset})


def _frontmatter(vault: SharedVault, args: NoteInput) -> Document:
    document = vault.read("vault.getMetadata", {"path": args.path}, only=("path", "frontmatter"))
    size = len(json.dumps(document, ensure_ascii=False, default=str))
    if size > mcp_reading.MAX_CONTENT:
        raise ToolError(
            f"The properties are {size:,} characters long.",
            hint="Read them with read_note, page by page.",
        )
    return document


def _outline(vault: SharedVault, args: NoteInput) -> Document:
    document = vault.read("vault.getMetadata", {"path": args.path})
    links: dict[str, Document] = {}
    for link in document["links"]:
        to = link["path"] or f"{mcp_reading.shorten(link['target'])} (missing)"
        links.setdefault(to, {"to": to, "lines": []})["lines"].append(link["line"])
    headings, tasks = (
        [row | {"text": mcp_reading.shorten(row["text"])} for row in document[kind]]
        for kind in ("headings", "tasks")
    )
    return {
        "path": document["path"],
        "aliases": [mcp_reading.shorten(alias) for alias in document["aliases"]],
        "tags": [mcp_reading.shorten(tag) for tag in document["tags"]],
        "headings": headings,
        "links": list(links.values()),
        "tasks": tasks,
        "size": document["size"],
    }


def _plan_language(vault: SharedVault, args: PlanLanguageInput) -> Document:
    unknown = [name for name in args.tools if name not in TOOLS]
    if unknown:
        raise ToolError(
            f"There is no plan tool {unknown[0][:60]!r}.{did_you_mean(unknown[0], TOOLS)}"
        )
    if args.tools:
        return {"tools": describe(TOOLS[name] for name in args.tools)}
    return {"language": plan_language()}


@cache
def plan_language() -> str:
    """Return the plan language with its tools and examples, as Markdown."""
    return filled_prompt(in_detail(TOOLS.values(), "full"), "proposing", "full")


_TOOLS: Final = (
    ServedTool(
        name="search_notes",
        title="Search notes",
        description="Find notes by words in their names, aliases, headings, tags and text, best "
        "first, each with the passage that holds most of the query. Filter by folder, tag and "
        "property; without a query the filters list notes, the latest first.",
        input=SearchNotesInput,
        call=lambda vault, args: vault.answer(
            "vault.searchText",
            lambda view, context: mcp_reading.search_notes(view, context, args),
        ),
    ),
    ServedTool(
        name="read_note",
        title="Read a note",
        description="Return the text of a note, a page of a long one, or one section of it.",
        input=ReadNoteInput,
        call=_read_note,
    ),
    ServedTool(
        name="read_multiple_notes",
        title="Read several notes",
        description="Return the texts of several notes; one that cannot be read has an error.",
        input=ReadNotesInput,
        call=lambda vault, args: vault.read("vault.readFiles", {"filePaths": args.paths}),
    ),
    ServedTool(
        name="list_directory",
        title="List a folder",
        description="List the files and folders that are directly in a folder.",
        input=ListDirectoryInput,
        call=_list_directory,
    ),
    ServedTool(
        name="get_frontmatter",
        title="Properties of a note",
        description="Return the properties (frontmatter) of a note.",
        input=NoteInput,
        call=_frontmatter,
    ),
    ServedTool(
        name="get_backlinks",
        title="Links to a note",
        description="List the links to a note or other file, with the notes that contain them.",
        input=BacklinksInput,
        call=lambda vault, args: vault.answer(
            "vault.getBacklinks", lambda view, context: mcp_reading.backlinks(view, args)
        ),
    ),
    ServedTool(
        name="get_note_outline",
        title="Outline of a note",
        description="Return the headings, tags, aliases, outgoing links and tasks of a note, "
        "without its text.",
        input=NoteInput,
        call=_outline,
    ),
    ServedTool(
        name="get_vault_overview",
        title="Overview of the vault",
        description="Count the notes and list the folders, tags and properties that they have, "
        "with usual values: what search_notes can filter by.",
        input=OverviewInput,
        call=lambda vault, args: vault.answer(
            "vault.listTags", lambda view, context: mcp_reading.overview(view, args)
        ),
    ),
    ServedTool(
        name="list_tasks",
        title="List tasks",
        description="List tasks with their notes and lines. With dueBefore or dueAfter only those "
        "with a due date, the earliest first.",
        input=TasksInput,
        call=lambda vault, args: vault.answer(
            "vault.listTasks", lambda view, context: mcp_reading.list_tasks(view, args)
        ),
    ),
    ServedTool(
        name="get_periodic_note",
        title="Daily or other periodic note",
        description="Return the path of the daily, weekly, monthly, quarterly or yearly note, "
        "as the vault names them, and its text if it exists.",
        input=PeriodicNoteInput,
        call=lambda vault, args: vault.answer(
            "util.periodNote",
            lambda view, context: mcp_reading.periodic_note(view, context, args),
        ),
    ),
    ServedTool(
        name="propose_note",
        title="Propose a new note",
        description="Propose to create a note. The user sees it and decides.",
        input=CreateInput,
        effect=Effect.PROPOSES,
        plan=lambda vault, args: vault.plan(lambda view: mcp_proposals.create(view, args)),
    ),
    ServedTool(
        name="propose_append",
        title="Propose text to add",
        description="Propose to add text at the end of a note or of one of its sections. "
        "The user sees the change and decides.",
        input=AppendInput,
        effect=Effect.PROPOSES,
        plan=lambda vault, args: vault.plan(lambda view: mcp_proposals.append(view, args)),
    ),
    ServedTool(
        name="propose_properties",
        title="Propose properties and tags",
        description="Propose to set or remove properties, or add or remove tags, of a note. "
        "The user sees the change and decides.",
        input=PropertiesInput,
        effect=Effect.PROPOSES,
        plan=lambda vault, args: vault.plan(lambda view: mcp_proposals.set_properties(view, args)),
    ),
    ServedTool(
        name="propose_move",
        title="Propose to move or rename",
        description="Propose to move or rename a note; links to it are updated. "
        "The user sees every change and decides.",
        input=MoveInput,
        effect=Effect.PROPOSES,
        plan=lambda vault, args: vault.plan(lambda view: mcp_proposals.move(view, args)),
    ),
    ServedTool(
        name="get_plan_language",
        title="The plan language",
        description="Explain ActionPlans, for changes that the other propose_ tools cannot make: "
        "several notes, edits inside a text, tags and names everywhere. Returns the rules, all "
        "plan tools and examples; with `tools`, these tools in full.",
        input=PlanLanguageInput,
        call=_plan_language,
    ),
    ServedTool(
        name="preview_plan",
        title="Preview a plan",
        description="Check an ActionPlan and return the diff of each file. Nothing is changed.",
        input=AnyPlanInput,
        effect=Effect.PREVIEWS,
        call=lambda vault, args: vault.preview(args.plan),
    ),
    ServedTool(
        name="propose_plan",
        title="Propose a plan",
        description="Propose an ActionPlan. The user sees the whole preview and decides; "
        "this waits for the decision if the app is open on the vault.",
        input=PlanInput,
        effect=Effect.PROPOSES,
        plan=lambda vault, args: args.plan,
    ),
)

_RUN: Final = ServedTool(
    name=RUN_PLAN,
    title="Run a plan",
    description="Run an ActionPlan without approval, which a rule of the user allows. It must not "
    "delete, run commands or use notes that are not shared.",
    input=AnyPlanInput,
    effect=Effect.RUNS,
    call=lambda vault, args: vault.run(args.plan),
)

SERVED: Final = {tool.name: tool for tool in (*_TOOLS, _RUN)}
"""All tools by name, with the one that only a rule of the user offers."""


def served_tools(vault: SharedVault) -> dict[str, ServedTool]:
    """Return the tools for the client of a vault by name. May block."""
    return SERVED if vault.may_run else {name: SERVED[name] for name in SERVED if name != RUN_PLAN}
