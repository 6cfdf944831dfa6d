"""Reads that a model asked for: look (on this machine), say what would be shared, ask the person, and hand over what may be.

`prepare` and `Found.shared` block and belong in a thread; `Asker` puts the questions between the two, one at a time.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, assert_never

from obsidian_agent.agent.events import Emit, ShareDecided, ShareRequested
from obsidian_agent.agent.privacy.consent import (
    REFUSED,
    AllowedBy,
    ApproveShare,
    Gate,
    Level,
    RequestKind,
    ShareDecision,
    SharedPart,
    ShareItem,
    ShareRequest,
    tokens_of,
)
from obsidian_agent.agent.privacy.record import MAX_DENIED, AuditRecord, Kind
from obsidian_agent.agent.turn.calls import ReadCall
from obsidian_agent.agent.turn.model_tools import Reveals
from obsidian_agent.dataclass import dataclass, field, replace
from obsidian_agent.errors import PathRefused, ToolError, VaultError
from obsidian_agent.plan.arguments import ArgMarks, marks_of, parse_input
from obsidian_agent.tools.core.lookup import find_file
from obsidian_agent.tools.core.tool import RunContext, ToolContext
from obsidian_agent.vault.paths.path import ROOT, PathUse, parse
from obsidian_agent.vault.views.view import VaultView


@dataclass(frozen=True, slots=True)
class Permission:
    """What may be sent of the items of one request, and why: by path."""

    allowed: Mapping[str, AllowedBy] = field(default_factory=dict)
    args: Mapping[str, Any] | None = None
    """Other arguments that the person gave the call: nothing is allowed before it looked again."""

    @property
    def paths(self) -> frozenset[str]:
        """The paths of everything that may be sent."""
        return frozenset(self.allowed)


@dataclass(frozen=True, slots=True)
class Asker:
    """Puts questions to the user where no rule and no earlier answer decides.

    Without a `record` it only looks ahead: answers are not written down.
    """

    gate: Gate
    approve: ApproveShare
    record: AuditRecord | None
    provider: str

    def granted(self, request: ShareRequest) -> dict[str, AllowedBy]:
        """What of a request needs no question."""
        found = (
            (item.path.text, self.gate.allowed(item.path, item.level)) for item in request.items
        )
        return {path: reason for path, reason in found if reason is not None}

    def open_question(self, request: ShareRequest) -> bool:
        """Whether the person has to be asked."""
        return len(self.granted(request)) < len({item.path.text for item in request.items})

    async def ask(self, request: ShareRequest, emit: Emit) -> Permission:
        """Ask for what is not settled; everything that may be sent. A question that fails counts as no."""
        allowed = self.granted(request)
        left = tuple(
            item
            for item in request.items
            if item.path.text not in allowed and not self.gate.denied(item.path)
        )
        if not left:
            return Permission(allowed)
        question = replace(request, items=left)
        await emit(ShareRequested(question))
        decision = await self._decide(question)
        self.gate.grants.record(question, decision)
        chosen = decision.chosen(question)
        if chosen:
            await self._note("grant", paths=sorted(chosen), scope=decision.scope)
        if others := sorted({item.path.text for item in left} - chosen):
            if decision.by_user:
                await self._note("refusal", paths=others)
            else:
                await self._note("denial", denied=_denied(others, "not asked: no terminal"))
        for path in chosen:
            assert decision.scope != "no", "then nothing is chosen"
            allowed[path] = decision.scope
        await emit(ShareDecided(question, decision))
        return Permission(
            allowed, decision.args if decision.scope == "no" and question.args else None
        )

    def note_denied(self, call: ReadCall) -> None:
        """Take down what a call names that a rule hides: for the model it does not exist. May block."""
        paths = []
        for text in _paths(call.args, marks_of(call.tool.input)):
            with contextlib.suppress(PathRefused):
                path = parse(text, PathUse.READ)
                paths += [path.text] * self.gate.denied(path)
        if paths:
            self._write("denial", denied=_denied(paths, "share_deny"))

    async def _note(self, kind: Kind, **details: Any) -> None:
        await asyncio.to_thread(self._write, kind, **details)

    def _write(self, kind: Kind, **details: Any) -> None:
        if self.record is not None:
            self.record.note(kind, provider=self.provider, **details)

    async def _decide(self, question: ShareRequest) -> ShareDecision:
        try:
            return await self.approve(question)
        except Exception:
            return REFUSED


def _denied(paths: Sequence[str], rule: str) -> list[dict[str, str]]:
    return [
        {"code": "NOT_SHARED", "path": path or "the selection", "rule": rule}
        for path in paths[:MAX_DENIED]
    ]


_NAME_FIELDS = frozenset({"path", "name", "folder", "size", "mtimeMs", "score", "count"})
"""What is known of a file by listing it."""

_MOST_BYTES = 4
"""Of a character in UTF-8."""


@dataclass(frozen=True, slots=True)
class Shared:
    """What goes to the model: the document (None when nothing is shared), what of which files is in it, and whether all of it is."""

    document: Mapping[str, Any] | None
    parts: tuple[SharedPart, ...] = ()
    complete: bool = True


_NOTHING = Shared(None, complete=False)


@dataclass(frozen=True, slots=True)
class ReadFindings:
    """What a read would share: `items` to be allowed, and `shared` (may block) to make the result of those that were."""

    kind: RequestKind
    items: tuple[ShareItem, ...]
    shared: Callable[[frozenset[str]], Shared]


def prepare(call: ReadCall, view: VaultView, run: RunContext) -> ReadFindings:
    """Find out what a call would share. Raises the tool's own errors."""
    match call.read.reveals:
        case Reveals.FILES:
            return _files(call, view, run)
        case Reveals.ROWS:
            return _rows(call, view, run)
        case Reveals.SELECTION:
            return _selection(call, view, run)
        case _:
            assert_never(call.read.reveals)


def _output(
    call: ReadCall, args: Mapping[str, Any], view: VaultView, run: RunContext
) -> dict[str, Any]:
    proposal = call.tool.propose(parse_input(call.tool, args), ToolContext(view, view, run))
    document: dict[str, Any] = proposal.output.model_dump(
        mode="json", by_alias=True, exclude_unset=True
    )
    if proposal.warnings:
        document["notRead"] = len(proposal.warnings)
    return document


# --- whole files --------------------------------------------------------------------------------------------------------------


def _files(call: ReadCall, view: VaultView, run: RunContext) -> ReadFindings:
    several = isinstance(call.args.get("filePaths"), list)
    items: dict[str, ShareItem] = {}
    for text in _paths(call.args, marks_of(call.tool.input)):
        try:
            path = find_file(view, text)
        except (ToolError, VaultError):
            if several:
                continue  # the tool says in its place what is wrong with it
            raise
        size = view.stat(path).size
        items.setdefault(
            path.text,
            ShareItem(path, Level.TEXT, size, tokens_of(min(size, call.limits.page)), call.why),
        )

    def shared(allowed: frozenset[str]) -> Shared:
        return (
            _read_some(call, view, run, allowed)
            if several
            else _read_one(call, view, run, tuple(items), allowed)
        )

    return ReadFindings("files", tuple(items.values()), shared)


def _paths(value: Any, marks: ArgMarks) -> Iterator[str]:
    match value:
        case str() if marks.path:
            yield value
        case list():
            for item in value:
                yield from _paths(item, marks.item())
        case dict():
            for name, below in value.items():
                yield from _paths(below, marks.field(name))
        case _:
            return


def _read_one(
    call: ReadCall,
    view: VaultView,
    run: RunContext,
    paths: tuple[str, ...],
    allowed: frozenset[str],
) -> Shared:
    if not set(paths) <= allowed:
        return _NOTHING
    page = call.limits.page
    args = dict(call.args)
    if "maxBytes" in _fields(call):
        args["maxBytes"] = min(_MOST_BYTES * page, args.get("maxBytes") or _MOST_BYTES * page)
    document = _output(call, args, view, run)
    document = _sliced(call, _one_page(document, page, int(args.get("offset") or 0)))
    return Shared(
        document, tuple(SharedPart(path, Level.TEXT, len(_text(document))) for path in paths)
    )


def _read_some(call: ReadCall, view: VaultView, run: RunContext, allowed: frozenset[str]) -> Shared:
    """Every file in its place: read, not shared, or what was wrong with it."""
    entries: list[dict[str, Any]] = []
    parts: list[SharedPart] = []
    held_back = 0
    for text in call.args["filePaths"]:
        path = _existing(view, text)
        if path is not None and path not in allowed:
            held_back += 1
            entries.append(
                {"path": text, "error": "NOT_SHARED: The person did not share this file."}
            )
            continue
        (entry,) = _output(call, {"filePaths": [text]}, view, run)["files"]
        entry = _one_page(entry, call.limits.page, 0)
        entries.append(entry)
        if path is not None and "content" in entry:
            parts.append(SharedPart(path, Level.TEXT, len(entry["content"])))
    document: dict[str, Any] = {"files": entries}
    if held_back and not parts:
        document["note"] = "The person shared no files. Go on without them, or ask the person."
    return Shared(document, tuple(parts), complete=not held_back)


def _existing(view: VaultView, text: str) -> str | None:
    try:
        return find_file(view, text).text
    except (ToolError, VaultError):
        return None


def _fields(call: ReadCall) -> set[str]:
    return {info.alias or name for name, info in call.tool.input.model_fields.items()}


def _one_page(document: dict[str, Any], page: int, start: int) -> dict[str, Any]:
    """A file's content cut to a page of characters; `nextOffset` (bytes) says where the next one starts."""
    content = document.get("content")
    if not isinstance(content, str) or len(content) <= page:
        return document
    kept = content[:page]
    return document | {
        "content": kept,
        "truncated": True,
        "nextOffset": start + len(kept.encode("utf-8", "surrogatepass")),
    }


def _sliced(call: ReadCall, document: dict[str, Any]) -> dict[str, Any]:
    """A page of the list in an output, where the tool does not page by itself."""
    name = call.read.rows
    if name is None or "limit" in _fields(call) or not isinstance(document.get(name), list):
        return document
    rows = document[name]
    shown = rows[call.offset : call.offset + call.rows]
    return document | {name: shown, "hasMore": call.offset + len(shown) < len(rows)}


# --- rows ---------------------------------------------------------------------------------------------------------------------


def _rows(call: ReadCall, view: VaultView, run: RunContext) -> ReadFindings:
    assert call.read.rows is not None
    name = call.read.rows
    document = _sliced(call, _output(call, call.args, view, run))
    rows = [_short(row, call.limits.preview) for row in document.get(name, [])]
    folders = (
        document["folders"][: call.rows] if isinstance(document.get("folders"), list) else None
    )
    items = _items(rows, folders or (), call.why)

    def shared(allowed: frozenset[str]) -> Shared:
        kept = [row for row in rows if row["path"] in allowed]
        kept_folders = (
            None if folders is None else [folder for folder in folders if folder in allowed]
        )
        complete = len(kept) == len(rows) and len(kept_folders or ()) == len(folders or ())
        if items and not allowed:
            return _NOTHING
        lists: dict[str, Any] = (
            {name: kept} if kept_folders is None else {name: kept, "folders": kept_folders}
        )
        # How much there is elsewhere is told only when all of it was shared: a count can answer a question about a note.
        if folders is not None and len(folders) < len(document["folders"]):
            lists["moreFolders"] = True
        told = (
            document | lists
            if complete
            else {**lists, "note": "The person shared only a part of the result."}
        )
        return Shared(told, _parts(kept, kept_folders or ()), complete)

    return ReadFindings("results", items, shared)


def _short(row: dict[str, Any], preview: int | None) -> dict[str, Any]:
    text = row.get("preview")
    return (
        row | {"preview": f"{text[: preview - 1]}…"}
        if preview is not None and isinstance(text, str) and len(text) > preview
        else row
    )


def _said(row: Mapping[str, Any]) -> dict[str, Any]:
    """What a row tells of a file that listing it would not."""
    return {
        name: value
        for name, value in row.items()
        if name not in _NAME_FIELDS and value not in (None, "", [], {})
    }


def _level(row: Mapping[str, Any]) -> Level:
    return Level.PREVIEW if _said(row) else Level.NAME


def _items(
    rows: list[dict[str, Any]], folders: list[str] | tuple[()], why: str
) -> tuple[ShareItem, ...]:
    """One item a file with everything that would be sent of it, in the order of the result."""
    found: dict[str, ShareItem] = {}
    for row in rows:
        told = _preview(row)
        size = len(_text(row).encode("utf-8", "surrogatepass"))
        item = found.get(row["path"]) or ShareItem(
            parse(row["path"], PathUse.READ), Level.NAME, 0, 0, why
        )
        found[row["path"]] = replace(
            item,
            level=max(item.level, _level(row)),
            size=item.size + size,
            tokens=item.tokens + tokens_of(size),
            previews=(*item.previews, told) if told else item.previews,
        )
    for folder in folders:
        size = len(folder.encode("utf-8", "surrogatepass"))
        found.setdefault(
            folder, ShareItem(parse(folder, PathUse.READ), Level.NAME, size, tokens_of(size), why)
        )
    return tuple(found.values())


def _preview(row: Mapping[str, Any]) -> str:
    """What a row tells of a file besides its name, for people; "" when that is nothing."""
    rest = _said(row)
    if set(rest) == {"line", "preview"}:
        return f"{rest['line']}: {rest['preview']}"
    return ", ".join(
        f"{name}: {value if isinstance(value, str) else _text(value)}"
        for name, value in rest.items()
    )


def _parts(rows: list[dict[str, Any]], folders: list[str] | tuple[()]) -> tuple[SharedPart, ...]:
    found: dict[str, SharedPart] = {}
    for row in rows:
        old = found.get(row["path"]) or SharedPart(row["path"], Level.NAME, 0)
        found[row["path"]] = SharedPart(
            old.path, max(old.level, _level(row)), old.characters + len(_text(row))
        )
    return (*found.values(), *(SharedPart(folder, Level.NAME, len(folder)) for folder in folders))


# --- the selection ------------------------------------------------------------------------------------------------------------


def _selection(call: ReadCall, view: VaultView, run: RunContext) -> ReadFindings:
    document = _output(call, call.args, view, run)
    item = selection_item(run, call.why)

    def shared(allowed: frozenset[str]) -> Shared:
        if item is None:
            return Shared(document)
        if item.path.text not in allowed:
            return _NOTHING
        return Shared(document, (SharedPart(item.path.text, item.level, len(document["text"])),))

    return ReadFindings("selection", () if item is None else (item,), shared)


def selection_item(run: RunContext, why: str = "", most: int | None = None) -> ShareItem | None:
    """What the selection shares of the active file: its text, up to `most` characters; None without a selection."""
    if run.selection is None or not run.selection.text:
        return None
    text = run.selection.text if most is None else run.selection.text[:most]
    size = len(text.encode("utf-8", "surrogatepass"))
    return ShareItem(run.active_file or ROOT, Level.PREVIEW, size, tokens_of(size), why, (text,))


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)
