"""Questions on the terminal about sending notes to a model. Without a terminal they are refused."""

from __future__ import annotations

import asyncio
import contextlib
import re
import sys
import threading

from obsidian_agent.agent.privacy.consent import (
    REFUSED,
    UNASKED,
    ApproveShare,
    Level,
    RequestKind,
    ShareDecision,
    ShareItem,
    ShareRequest,
)
from obsidian_agent.cli.output import Output
from obsidian_agent.cli.output import ask as ask_line
from obsidian_agent.terminal_text import line

_LEVELS = {Level.NAME: "its name", Level.PREVIEW: "some lines", Level.TEXT: "its whole text"}
_HEADS = {
    "call": "May this go to a tool of",
    "tools": "May the model see these tools of",
    "resource": "May this text from a server be sent to",
}
_SHORT = "Allow it? o = once, t = for this conversation, n = no: "
_QUESTION = (
    "Send it? o = once, t = for this conversation, f = {folder}, numbers = only these, n = no: "
)
PREVIEWS = 20
"""Lines of a file that are displayed, with a count of the others."""


def share_approval(out: Output) -> ApproveShare:
    """Return the function that decides about sharing for a command."""
    is_interactive = not out.as_json and sys.stdin.isatty() and sys.stdout.isatty()

    async def ask(request: ShareRequest) -> ShareDecision:
        for text in described(request):
            out.note(text)
        return decision(await _line(request), request)

    async def refuse(request: ShareRequest) -> ShareDecision:
        if request.text:
            remedy = "allow them in the app"
            if request.kind != "tools":
                remedy = "name it in tools_allow (mcp__SERVER__NAME)"
            out.note(
                f"Not allowed: {line(request.purpose)} ({request.provider}). "
                f"Run the command in a terminal to be asked, or {remedy}."
            )
            return UNASKED
        names = ", ".join(_name(item, request.kind) for item in request.items[:5])
        more = f" and {len(request.items) - 5} more" if len(request.items) > 5 else ""
        out.note(
            f"Not shared with {request.provider}: {names}{more}. "
            "Allow it with --share PATH, or run the command in a terminal to be asked."
        )
        return UNASKED

    return ask if is_interactive else refuse


def described(request: ShareRequest) -> list[str]:
    """Return the question as lines: the recipient, and for each file what would be sent."""
    address = f" at {request.address}" if request.address else ""
    count = f" ({request.number} of {request.total})" if request.total > 1 else ""
    if request.text:
        return [
            "",
            f"{_HEADS[request.kind]} {line(request.provider)}, {line(address.strip())}",
            line(request.purpose),
            *(f"  {line(text)}" for text in request.text.split("\n")),
        ]
    lines = [
        "",
        f"May this be sent to {request.provider}{address}?{count}",
        f"{request.purpose} ({request.tool})" if request.tool else request.purpose,
    ]
    lines += [
        f"  {name}: {line(str(value))}"
        for name, value in request.args.items()
        if name not in ("limit", "offset")
    ]
    for number, item in enumerate(request.items, start=1):
        lines += _item_lines(number, item, request.kind)
    return [*lines, f"  about {request.tokens:,} tokens in total"]


def _name(item: ShareItem, kind: RequestKind) -> str:
    """Return the file of an item. A selection is named as such, with its note if it has one."""
    name = line(item.path.text)
    if kind != "selection":
        return name
    return f"the selection in {name}" if name else "the selection"


def _item_lines(number: int, item: ShareItem, kind: RequestKind) -> list[str]:
    reason = f" – {line(item.why)}" if item.why else ""
    size = f"{item.size:,} bytes, about {item.tokens:,} tokens"
    lines = [f"{number:>4}. {_name(item, kind)}: {_LEVELS[item.level]}, {size}{reason}"]
    lines += [f"        {line(preview)}" for preview in item.previews[:PREVIEWS]]
    if len(item.previews) > PREVIEWS:
        lines.append(f"        and {len(item.previews) - PREVIEWS:,} more lines")
    return lines


async def _line(request: ShareRequest) -> str:
    """Read a line from the terminal, or "" at its end.

    A daemon thread reads it, so that Ctrl+C ends the command at once.
    """
    folder = (
        f"everything in {line(request.folder)}" if request.folder else "everything in the vault"
    )
    loop = asyncio.get_running_loop()
    future: asyncio.Future[str] = loop.create_future()

    def resolve(answer: str) -> None:
        if not future.done():
            future.set_result(answer)

    def read() -> None:
        try:
            answer = ask_line(_SHORT if request.text else _QUESTION.format(folder=folder))
        except (EOFError, OSError):
            answer = ""
        with contextlib.suppress(RuntimeError):  # the command was interrupted and its loop closed
            loop.call_soon_threadsafe(resolve, answer)

    threading.Thread(target=read, name="question", daemon=True).start()
    return await future


def decision(answer: str, request: ShareRequest) -> ShareDecision:
    """Parse an answer. Anything but a clear yes is a refusal."""
    word = answer.strip().lower()
    match word:
        case "o" | "once" | "y" | "yes":
            return ShareDecision("once")
        case "t" | "thread":
            return ShareDecision("thread")
        case "f" | "folder":
            return ShareDecision("folder")
        case _ if re.fullmatch(r"\d{1,6}(?:[\s,]+\d{1,6})*", word):
            numbers = {int(number) for number in re.findall(r"\d+", word)}
            if not numbers <= set(range(1, len(request.items) + 1)):
                return REFUSED
            return ShareDecision(
                "once", frozenset(request.items[number - 1].path.text for number in numbers)
            )
        case _:
            return REFUSED
