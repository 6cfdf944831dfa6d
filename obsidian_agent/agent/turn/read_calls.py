"""Reads requested by a model: read locally, ask the user about what would be sent, send the rest.

`prepare` reads and `ReadFindings.shared` makes the result; both block and belong in a thread.
Between them an `Asker` asks the user, one question at a time.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, assert_never

from msgspec import Struct, field
from msgspec.structs import replace

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
from obsidian_agent.agent.turn.model_tools import TextSource
from obsidian_agent.errors import PathRefused, ToolError, VaultError
from obsidian_agent.plan.arguments import ArgMarks, marks_of, parse_input
from obsidian_agent.tools.core.lookup import find_file
from obsidian_agent.tools.core.tool import RunContext, ToolContext
from obsidian_agent.vault.paths.path import ROOT, PathUse, parse
from obsidian_agent.vault.views.view import VaultView

_NAME_FIELDS = frozenset({"path", "name", "folder", "size", "mtimeMs", "score", "count"})
"""Fields that reveal no more of a file than a listing of its folder."""
_MAX_UTF8_BYTES = 4
"""Bytes of one character."""


class Permission(Struct, frozen=True):
    """The items of a request that may be sent, by path, with the reason for each."""

    allowed: Mapping[str, AllowedBy] = field(default_factory=dict)
    args: Mapping[str, Any] | None = None
    """The user's own arguments for the call, which must first be read again with them."""

    @property
    def paths(self) -> frozenset[str]:
        """The paths of all items that may be sent."""
        return frozenset(self.allowed)


class Asker(Struct, frozen=True):
    """Permission for shares: by a rule, by an earlier answer, or by a question to the user.

    Without a `record`, in previews of a request, answers are not recorded.
    """

    gate: Gate
    approve: ApproveShare
    record: AuditRecord | None
    provider: str

    def granted(self, request: ShareRequest) -> dict[str, AllowedBy]:
        """Return the paths that need no question, with the reason for each."""
        reasons = (
            (item.path.text, self.gate.allowed(item.path, item.level)) for item in request.items
        )
        return {path: reason for path, reason in reasons if reason is not None}

    def must_ask(self, request: ShareRequest) -> bool:
        """Return True if the user must be asked about an item."""
        return len(self.granted(request)) < len({item.path.text for item in request.items})

    async def ask(self, request: ShareRequest, emit: Emit) -> Permission:
        """Return what may be sent, after asking about the open items.

        A question that fails counts as refused.
        """
        allowed = self.granted(request)
        open_items = tuple(
            item
            for item in request.items
            if item.path.text not in allowed and not self.gate.denied(item.path)
        )
        if not open_items:
            return Permission(allowed)
        question = replace(request, items=open_items)
        await emit(ShareRequested(question))
        decision = await self._decide(question)
        self.gate.grants.record(question, decision)
        chosen = decision.chosen(question)
        if chosen:
            await self._note("grant", paths=sorted(chosen), scope=decision.scope)
        if refused := sorted({item.path.text for item in open_items} - chosen):
            if decision.by_user:
                await self._note("refusal", paths=refused)
            else:
                await self._note("denial", denied=_denied(refused, "not asked: no terminal"))
        for path in chosen:
            assert decision.scope != "no", "a refusal chooses no path"
            allowed[path] = decision.scope
        await emit(ShareDecided(question, decision))
        args = decision.args if decision.scope == "no" and question.args else None
        return Permission(allowed, args)

    def note_denied(self, call: ReadCall) -> None:
        """Record the paths in a call that a rule hides from the model. May block."""
        paths = []
        for text in _paths(call.args, marks_of(call.tool.input)):
            with contextlib.suppress(PathRefused):
                path = parse(text, PathUse.READ)
                if self.gate.denied(path):
                    paths.append(path.text)
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


class Shared(Struct, frozen=True):
    """The result of a read for the model: the document, or None if nothing is shared.

    `parts` are the files in it; it is `complete` if nothing was withheld.
    """

    document: Mapping[str, Any] | None
    parts: tuple[SharedPart, ...] = ()
    complete: bool = True


_NOTHING = Shared(None, complete=False)


class ReadFindings(Struct, frozen=True):
    """The result of a read before the user's permission.

    `items` need permission; `shared` makes the result from the permitted paths and may block.
    """

    kind: RequestKind
    items: tuple[ShareItem, ...]
    shared: Callable[[frozenset[str]], Shared]


def prepare(call: ReadCall, view: VaultView, run: RunContext) -> ReadFindings:
    """Read what a call asks for. Raise the tool's own errors."""
    match call.read.source:
        case TextSource.FILES:
            return _files(call, view, run)
        case TextSource.ROWS:
            return _rows(call, view, run)
        case TextSource.SELECTION:
            return _selection(call, view, run)
        case _:
            assert_never(call.read.source)


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


# --- whole files ---


def _files(call: ReadCall, view: VaultView, run: RunContext) -> ReadFindings:
    several = isinstance(call.args.get("filePaths"), list)
    items: dict[str, ShareItem] = {}
    for text in _paths(call.args, marks_of(call.tool.input)):
        try:
            path = find_file(view, text)
        except (ToolError, VaultError):
            if several:
                continue  # the tool reports the error in the entry of the file
            raise
        size = view.stat(path).size
        items.setdefault(
            path.text,
            ShareItem(
                path=path,
                level=Level.TEXT,
                size=size,
                tokens=tokens_of(min(size, call.limits.page)),
                why=call.why,
            ),
        )

    def shared(allowed: frozenset[str]) -> Shared:
        if several:
            return _read_several(call, view, run, allowed)
        return _read_one(call, view, run, tuple(items), allowed)

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
        args["maxBytes"] = min(
            _MAX_UTF8_BYTES * page, args.get("maxBytes") or _MAX_UTF8_BYTES * page
        )
    document = _output(call, args, view, run)
    document = _sliced(call, _one_page(document, page, int(args.get("offset") or 0)))
    return Shared(
        document, tuple(SharedPart(path, Level.TEXT, len(_text(document))) for path in paths)
    )


def _read_several(
    call: ReadCall, view: VaultView, run: RunContext, allowed: frozenset[str]
) -> Shared:
    """Return an entry for each file in order: its content, "not shared", or its error."""
    entries: list[dict[str, Any]] = []
    parts: list[SharedPart] = []
    withheld = 0
    for text in call.args["filePaths"]:
        path = _existing(view, text)
        if path is not None and path not in allowed:
            withheld += 1
            entries.append({"path": text, "error": "NOT_SHARED: The user did not share this file."})
            continue
        (entry,) = _output(call, {"filePaths": [text]}, view, run)["files"]
        entry = _one_page(entry, call.limits.page, 0)
        entries.append(entry)
        if path is not None and "content" in entry:
            parts.append(SharedPart(path, Level.TEXT, len(entry["content"])))
    document: dict[str, Any] = {"files": entries}
    if withheld and not parts:
        document["note"] = "The user shared no files. Continue without them, or ask the user."
    return Shared(document, tuple(parts), complete=not withheld)


def _existing(view: VaultView, text: str) -> str | None:
    try:
        return find_file(view, text).text
    except (ToolError, VaultError):
        return None


def _fields(call: ReadCall) -> set[str]:
    return {info.alias or name for name, info in call.tool.input.model_fields.items()}


def _one_page(document: dict[str, Any], page: int, start: int) -> dict[str, Any]:
    """Truncate a file's content to a page of characters, and add the `nextOffset` in bytes."""
    content = document.get("content")
    if not isinstance(content, str) or len(content) <= page:
        return document
    text = content[:page]
    return document | {
        "content": text,
        "truncated": True,
        "nextOffset": start + len(text.encode("utf-8", "surrogatepass")),
    }


def _sliced(call: ReadCall, document: dict[str, Any]) -> dict[str, Any]:
    """Reduce the list in an output to a page, unless the tool itself has paged it."""
    name = call.read.rows
    if name is None or "limit" in _fields(call) or not isinstance(document.get(name), list):
        return document
    rows = document[name]
    page = rows[call.offset : call.offset + call.rows]
    return document | {name: page, "hasMore": call.offset + len(page) < len(rows)}


# --- rows ---


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
        if items and not allowed:
            return _NOTHING
        shared_rows = [row for row in rows if row["path"] in allowed]
        shared_folders = [folder for folder in folders or () if folder in allowed]
        complete = len(shared_rows) == len(rows) and len(shared_folders) == len(folders or ())
        lists: dict[str, Any] = {name: shared_rows}
        if folders is not None:
            lists["folders"] = shared_folders
            if len(folders) < len(document["folders"]):
                lists["moreFolders"] = True
        if complete:
            result = document | lists
        else:  # without the counts, which could answer a question about a note
            result = {**lists, "note": "The user shared only a part of the result."}
        return Shared(result, _parts(shared_rows, shared_folders), complete)

    return ReadFindings("results", items, shared)


def _short(row: dict[str, Any], preview: int | None) -> dict[str, Any]:
    text = row.get("preview")
    if preview is None or not isinstance(text, str) or len(text) <= preview:
        return row
    return row | {"preview": f"{text[: preview - 1]}…"}


def _content_fields(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a row that reveal more of a file than a listing of its folder."""
    return {
        name: value
        for name, value in row.items()
        if name not in _NAME_FIELDS and value not in (None, "", [], {})
    }


def _level(row: Mapping[str, Any]) -> Level:
    return Level.PREVIEW if _content_fields(row) else Level.NAME


def _items(
    rows: Sequence[dict[str, Any]], folders: Sequence[str], why: str
) -> tuple[ShareItem, ...]:
    """Return one item per file with everything that would be sent of it, in result order."""
    items: dict[str, ShareItem] = {}
    for row in rows:
        preview = _preview(row)
        size = len(_text(row).encode("utf-8", "surrogatepass"))
        item = items.get(row["path"]) or ShareItem(
            path=parse(row["path"], PathUse.READ), level=Level.NAME, size=0, tokens=0, why=why
        )
        items[row["path"]] = replace(
            item,
            level=max(item.level, _level(row)),
            size=item.size + size,
            tokens=item.tokens + tokens_of(size),
            previews=(*item.previews, preview) if preview else item.previews,
        )
    for folder in folders:
        size = len(folder.encode("utf-8", "surrogatepass"))
        items.setdefault(
            folder,
            ShareItem(
                path=parse(folder, PathUse.READ),
                level=Level.NAME,
                size=size,
                tokens=tokens_of(size),
                why=why,
            ),
        )
    return tuple(items.values())


def _preview(row: Mapping[str, Any]) -> str:
    """Format a row's content fields for the user."""
    fields = _content_fields(row)
    if set(fields) == {"line", "preview"}:
        return f"{fields['line']}: {fields['preview']}"
    return ", ".join(
        f"{name}: {value if isinstance(value, str) else _text(value)}"
        for name, value in fields.items()
    )


def _parts(rows: Sequence[dict[str, Any]], folders: Sequence[str]) -> tuple[SharedPart, ...]:
    parts: dict[str, SharedPart] = {}
    for row in rows:
        old = parts.get(row["path"]) or SharedPart(row["path"], Level.NAME, 0)
        parts[row["path"]] = SharedPart(
            old.path, max(old.level, _level(row)), old.characters + len(_text(row))
        )
    return (*parts.values(), *(SharedPart(folder, Level.NAME, len(folder)) for folder in folders))


# --- the selection ---


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


def selection_item(run: RunContext, why: str = "", limit: int | None = None) -> ShareItem | None:
    """Return the selected text as an item of the active file, up to `limit` characters."""
    if run.selection is None or not run.selection.text:
        return None
    text = run.selection.text[:limit]
    size = len(text.encode("utf-8", "surrogatepass"))
    return ShareItem(
        path=run.active_file or ROOT,
        level=Level.PREVIEW,
        size=size,
        tokens=tokens_of(size),
        why=why,
        previews=(text,),
    )


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)
