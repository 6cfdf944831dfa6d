"""The answers of the MCP server's reading tools that no tool of plans gives as they are.

Each is a function of the client's view. Nothing in an answer comes from a note outside it.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from itertools import islice
from typing import Any, Final

from msgspec import Struct

from obsidian_agent import budget
from obsidian_agent.agent.privacy.consent import Level, SharedPart
from obsidian_agent.errors import ToolError, VaultError
from obsidian_agent.integrations.mcp_arguments import (
    MAX_QUERY,
    BacklinksInput,
    OverviewInput,
    PeriodicNoteInput,
    ReadNoteInput,
    SearchNotesInput,
    TasksInput,
)
from obsidian_agent.integrations.shared_view import SharedView
from obsidian_agent.tools.core.lookup import find_file, find_folder, read_text
from obsidian_agent.tools.core.tool import RunContext, ToolContext
from obsidian_agent.tools.files.periodic import Periods
from obsidian_agent.tools.links.links import links_from
from obsidian_agent.tools.search.conditions import Condition, Matcher
from obsidian_agent.tools.search.search import preview
from obsidian_agent.tools.text.tasks import ListedTask, ListTasksInput, fits_task, tasks_in
from obsidian_agent.vault.index.index import PathCache, is_note_path, tag_key
from obsidian_agent.vault.index.text_search import folded_needle
from obsidian_agent.vault.index.word_query import Passage
from obsidian_agent.vault.index.word_search import Ranking, rank_notes
from obsidian_agent.vault.links.resolve import link_key, name_key
from obsidian_agent.vault.markdown.edits import section
from obsidian_agent.vault.paths.path import PathUse, VaultPath, parse
from obsidian_agent.vault.views.view import locate_by_name

MAX_PASSAGE: Final = 500
"""Characters of a passage in a search result: at most 2 KB in UTF-8."""
NAME_SCORE: Final = 80.0
"""Score from which a note whose name matches comes before those whose text matches."""
MAX_CONTENT: Final = 16_000
"""Characters of a note's text in one answer."""
MAX_COUNTED: Final = 50
"""Folders, tags and properties in an overview, the most frequent."""
MAX_VALUES: Final = 5
"""Values of a property in an overview."""
MAX_NAMED: Final = 5
"""Notes that an error lists where a name is not unique."""

Document = dict[str, Any]


class ReadAnswer(Struct, frozen=True):
    """A document for the client, and the parts of files in it."""

    document: Document
    parts: tuple[SharedPart, ...] = ()


# --- names ---


def named_file(view: SharedView, name: str) -> str:
    """Return the path of the file that a client names by path, name or alias.

    Return a folder's name, and one that is no path, unchanged. Raise ARGUMENT_INVALID if several
    notes have the name, and FILE_NOT_FOUND, with the most similar note, if none has.
    """
    name = name.strip().removeprefix("[[").removesuffix("]]")
    try:
        entry = locate_by_name(view, name, "file")
    except VaultError:
        return name
    if entry is not None:
        return entry.path.text
    key = link_key(name).removesuffix(".md")
    matches = [
        path
        for path in view.index.files_named(name_key(name))
        if f"/{link_key(path.text)}".removesuffix(".md").endswith(f"/{key}")
    ]
    if not matches:
        aliases = view.index.aliases()
        matches = list({path for alias, path in aliases if link_key(alias) == key})
    matches = sorted(path for path in matches if not view.is_hidden(path))
    if len(matches) > 1:
        names = ", ".join(path.text for path in matches[:MAX_NAMED])
        more = ", …" if len(matches) > MAX_NAMED else ""
        raise ToolError(
            f"{len(matches)} notes are called {name!r}: {names}{more}.", hint="Give the path."
        )
    if matches:
        return matches[0].text
    if view.locate(parse(name, PathUse.READ)) is not None:
        return name
    query = name.rpartition("/")[2].removesuffix(".md")[:MAX_QUERY]
    similar = map(PathCache(), (hit.path for hit in view.index.names().search(query).hits))
    note = next((path for path in similar if path.is_note and not view.is_hidden(path)), None)
    raise VaultError(
        f"{name} does not exist.",
        code="FILE_NOT_FOUND",
        path=name,
        hint=f"Did you mean {note.text!r}?" if note is not None else None,
    )


# --- search ---


def search_notes(view: SharedView, context: RunContext, args: SearchNotesInput) -> ReadAnswer:
    """Return the notes that match a query and filters, each with its best passage."""
    folder = find_folder(view, args.folder)
    condition = Condition(folder=folder.text or None, tag=args.tag, property=args.properties)
    matcher = Matcher(ToolContext(view, view, context))
    fits = matcher.check(condition)
    ranking: Ranking | None = None
    end = args.offset + args.limit
    if args.query.strip():
        ranking = rank_notes(view.index, folder, args.query)
        is_best = not _filters(condition) and args.sort in (None, "best")
        matches = _matches(view, args.query, ranking, end if is_best else None)
        paths = [path for path in matches if fits(path)] if _filters(condition) else matches
    elif _filters(condition):
        key = ("notes", condition.model_dump_json())
        paths = view.files.remember(key, lambda: [*filter(fits, view.files.latest)])
    else:
        paths = list(view.files.latest)
    order = args.sort or ("modified" if ranking is None else "best")
    if order == "modified" and ranking is not None:
        times = view.files.modified_ns
        paths = sorted(paths, key=lambda path: (-times.get(path.text, 0), path.text))
    elif order == "path":
        paths = sorted(paths)
    page = [path for path in paths[args.offset : end] if not view.is_hidden(path)]
    rows = [_hit(view, path, ranking) for path in budget.checked(page)]
    document = {"matches": rows, "total": len(paths), "hasMore": end < len(paths)}
    return ReadAnswer(document, _parts(rows, Level.PREVIEW))


def _filters(condition: Condition) -> bool:
    return condition != Condition()


def _matches(view: SharedView, query: str, ranking: Ranking, enough: int | None) -> list[VaultPath]:
    """Return notes whose names match, then those whose texts do, then similar names.

    Similar names are only searched if there are not more than `enough` others.
    """
    vault_path = PathCache()
    for similar in (False, True):
        hits = view.index.names().search(query, similar=similar).hits
        notes = [hit for hit in hits if is_note_path(hit.path)]
        named = [vault_path(hit.path) for hit in notes if hit.score >= NAME_SCORE]
        others = [vault_path(hit.path) for hit in notes if hit.score < NAME_SCORE]
        matches = list(dict.fromkeys((*named, *(note.path for note in ranking.notes), *others)))
        if enough is not None and len(matches) > enough:
            break
    return matches


def _hit(view: SharedView, path: VaultPath, ranking: Ranking | None) -> Document:
    if ranking is None:
        return {
            "path": path.text,
            "modified": _day(view.files.modified_ns.get(path.text, 0)),
            "tags": [*map(shorten, view.index.facts(path).tags[:MAX_COUNTED])],
        }
    data = view.index.text(path)
    text = data.decode(errors="replace") if isinstance(data, bytes) else ""
    passage = ranking.query.passage(text, ranking.weights)
    first, around = passage_text(text, passage)
    hit: Document = {"path": path.text, "line": first}
    if passage.heading:
        hit["heading"] = shorten(passage.heading)
    return hit | {"preview": around}


def shorten(text: str) -> str:
    """Return a line of a note, or as much of it as a passage can have."""
    return text if len(text) <= MAX_PASSAGE else f"{text[:MAX_PASSAGE]}…"


def passage_text(text: str, passage: Passage) -> tuple[int, str]:
    """Return the number of the first line and the text around a passage, up to `MAX_PASSAGE`.

    It is the paragraph or list, and of a longer one the lines next to the passage.
    """
    line = passage.text
    if len(line) > MAX_PASSAGE:
        return passage.line, preview(line, (passage.start, passage.end))[:MAX_PASSAGE]
    lines = text.split("\n")
    first = last = passage.line - 1
    room = MAX_PASSAGE - len(line)
    while True:
        below = lines[last + 1] if last + 1 < len(lines) else ""
        above = lines[first - 1] if first > 0 else ""
        if below.strip() and not below.startswith("#") and len(below) < room:
            last, room = last + 1, room - len(below) - 1
        elif above.strip() and not above.startswith("#") and len(above) < room:
            first, room = first - 1, room - len(above) - 1
        else:
            break
    return first + 1, "\n".join(piece.rstrip("\r") for piece in lines[first : last + 1])


# --- one note ---


def read_section(view: SharedView, args: ReadNoteInput) -> ReadAnswer:
    """Return the section of a note below a heading."""
    assert args.section is not None
    path = find_file(view, named_file(view, args.path))
    text = read_text(view, path)
    part = section(text, args.section)
    content = text[part.start : part.text_end].strip("\r\n")
    document: Document = {
        "path": path.text,
        "heading": shorten(part.heading.text),
        "line": part.heading.line,
        "content": content[:MAX_CONTENT],
        "truncated": len(content) > MAX_CONTENT,
    }
    return ReadAnswer(document, (SharedPart(path.text, Level.TEXT, len(content[:MAX_CONTENT])),))


def backlinks(view: SharedView, args: BacklinksInput) -> ReadAnswer:
    """Return the links to a file, those of `limit` notes."""
    path = find_file(view, named_file(view, args.path))
    key = ("backlinks", path.text)
    sources = view.files.remember(key, lambda: view.index.backlinks(path))
    end = args.offset + args.limit
    rows: list[Document] = []
    for source in budget.checked(sources[args.offset : end]):
        with suppress(VaultError):
            links = (item.model_dump(by_alias=True) for item in links_from(source, path, view))
            rows += [link | {"text": shorten(link["text"])} for link in links]
    document: Document = {
        "items": rows,
        "count": len(rows),
        "notes": len(sources),
        "hasMore": end < len(sources),
    }
    return ReadAnswer(document, _parts(rows, Level.PREVIEW))


# --- the whole vault ---


def overview(view: SharedView, args: OverviewInput) -> ReadAnswer:
    """Return the folders, tags and properties of the notes below a folder, with counts."""
    folder = find_folder(view, args.folder)
    document = view.files.remember(("overview", folder.text), lambda: _overview(view, folder))
    return ReadAnswer(document, (SharedPart(folder.text, Level.PREVIEW, len(_text(document))),))


def _overview(view: SharedView, folder: VaultPath) -> Document:
    prefix = _prefix(folder)
    folders: Counter[str] = Counter()
    tags: Counter[str] = Counter()
    spellings: dict[str, str] = {}
    properties: Counter[str] = Counter()
    values: dict[str, Counter[str]] = {}
    count = 0
    for path in budget.checked(view.index.notes(folder)):
        count += 1
        below, slash, _ = path.text[len(prefix) :].partition("/")
        if slash:
            folders[prefix + below] += 1
        facts = view.index.facts(path)
        for tag in facts.tags:
            tags[tag_key(tag)] += 1
            spellings.setdefault(tag_key(tag), tag)
        for name, value in facts.properties.items():
            properties[name] += 1
            for item in value if isinstance(value, list) else (value,):
                if isinstance(item, str | int | float) and len(str(item)) <= 40:
                    values.setdefault(name, Counter())[str(item)] += 1
    return {
        "notes": count,
        "folders": [{"path": name, "notes": number} for name, number in _most(folders)],
        "tags": [{"tag": shorten(spellings[key]), "notes": number} for key, number in _most(tags)],
        "properties": [
            {
                "name": shorten(name),
                "notes": number,
                "values": [value for value, _ in _most(values.get(name, Counter()), MAX_VALUES)],
            }
            for name, number in _most(properties)
        ],
    }


def list_tasks(view: SharedView, args: TasksInput) -> ReadAnswer:
    """Return a page of tasks, by note, or by due date if one is asked for."""
    if args.path is not None and args.folder is not None:
        raise ToolError("Give only one of path and folder.")
    conditions = ListTasksInput(
        status=args.status,
        text=args.text,
        tag=args.tag,
        due_before=args.due_before,
        due_after=args.due_after,
    )
    end = args.offset + args.limit
    tasks: Iterable[ListedTask]
    if args.path is None and (args.due_before is not None or args.due_after is not None):
        prefix = _prefix(find_folder(view, args.folder))
        due = (task for task in view.files.tasks_due if task.path.startswith(prefix))
        tasks = (task for task in due if fits_task(conditions, task))
    else:
        tasks = _tasks(view, args, conditions)
    vault_path = PathCache()
    visible = (task for task in tasks if not view.is_hidden(vault_path(task.path)))
    rows = [_task_row(task, args.status) for task in islice(visible, end + 1)]
    page = rows[args.offset : end]
    document: Document = {"tasks": page, "hasMore": len(rows) > end}
    return ReadAnswer(document, _parts(page, Level.PREVIEW))


def _tasks(view: SharedView, args: TasksInput, conditions: ListTasksInput) -> Iterator[ListedTask]:
    """Yield the tasks that match, by note."""
    notes: Iterable[str]
    if args.path is not None:
        notes = [find_file(view, named_file(view, args.path)).text]
    else:
        folder = find_folder(view, args.folder)
        candidates = set(view.files.notes_with_tasks)
        for text in (args.text, args.tag and args.tag.lstrip("#")):
            if text and (needle := folded_needle(text)) is not None:
                candidates &= view.index.may_hold(folder, needle)
        prefix = _prefix(folder)
        notes = sorted(text for text in candidates if text.startswith(prefix))
    vault_path = PathCache()
    for path in map(vault_path, budget.checked(notes)):
        data = view.index.text(path)
        if isinstance(data, bytes):
            yield from tasks_in(conditions, path, data.decode(errors="replace"))


def _task_row(task: ListedTask, status: str) -> Document:
    row: Document = {"path": task.path, "line": task.line, "text": shorten(task.text)}
    if status != "open" or task.status != " ":
        row["status"] = task.status
    return row | ({"due": task.due} if task.due else {})


def periodic_note(view: SharedView, context: RunContext, args: PeriodicNoteInput) -> ReadAnswer:
    """Return the path of a periodic note, and its text if it exists."""

    periods = Periods(args.period, ToolContext(view, view, context))
    if args.period != "day":  # for days the settings for daily notes decide
        key = ("periods", args.period)
        periods.usual, periods.template = view.files.remember(
            key, lambda: (periods.usual, periods.template), of_names=True
        )
        periods.habit = view.files.remember(key, lambda: periods.habit)
    note = periods.note(args.offset)
    entry = view.locate(parse(note.path, PathUse.READ))
    document: Document = {"path": note.path, "day": note.day, "exists": entry is not None}
    if entry is None:
        return ReadAnswer(document)
    text = read_text(view, entry.path)
    document |= {"content": text[:MAX_CONTENT], "truncated": len(text) > MAX_CONTENT}
    return ReadAnswer(document, (SharedPart(note.path, Level.TEXT, len(document["content"])),))


def _prefix(folder: VaultPath) -> str:
    return f"{folder.text}/" if folder.text else ""


def _most(counts: Counter[str], limit: int = MAX_COUNTED) -> list[tuple[str, int]]:
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:limit]


def _day(time_ns: int) -> str:
    return datetime.fromtimestamp(time_ns / 1e9).astimezone().isoformat(timespec="minutes")


def _parts(rows: Sequence[Mapping[str, Any]], level: Level) -> tuple[SharedPart, ...]:
    """Return one part for each file in the rows."""
    sizes: Counter[str] = Counter()
    for row in rows:
        sizes[row["path"]] += len(_text(row))
    return tuple(SharedPart(path, level, size) for path, size in sizes.items())


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)
