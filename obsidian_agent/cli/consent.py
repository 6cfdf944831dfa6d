"""Asking on the terminal whether something may be sent to a model; without a terminal the answer is no."""

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
_HEADS = {"call": "May this go to a tool of", "tools": "May the model be told of these tools of"}
_SHORT = "Allow it? o = once, t = for this conversation, n = no: "
_QUESTION = (
    "Send it? o = once, t = for this conversation, f = {folder}, numbers = only these, n = no: "
)
PREVIEWS = 20
"""Lines of one file that are shown; how many more there are is said."""


def approval(out: Output) -> ApproveShare:
    """Who decides about sharing for a command."""
    asks = not out.as_json and sys.stdin.isatty() and sys.stdout.isatty()

    async def ask(request: ShareRequest) -> ShareDecision:
        for text in described(request):
            out.note(text)
        return decision(await _line(request), request)

    async def refuse(request: ShareRequest) -> ShareDecision:
        if request.text:
            way = (
                "name the tool in tools_allow"
                if request.kind == "call"
                else "accept them in the app"
            )
            out.note(
                f"Not allowed: {line(request.purpose)} ({request.provider}). Ask in a terminal, or {way}."
            )
            return UNASKED
        names = ", ".join(_name(item, request.kind) for item in request.items[:5])
        more = f" and {len(request.items) - 5} more" if len(request.items) > 5 else ""
        out.note(
            f"Not shared with {request.provider}: {names}{more}. Allow it with --share PATH, or ask in a terminal."
        )
        return UNASKED

    return ask if asks else refuse


def described(request: ShareRequest) -> list[str]:
    """The question in lines: who would get what, and of each file exactly what, as far as there is room."""
    where = f" at {request.address}" if request.address else ""
    count = f" ({request.number} of {request.total})" if request.total > 1 else ""
    if request.text:
        shown = [f"  {line(each)}" for each in request.text.split("\n")]
        return [
            "",
            f"{_HEADS[request.kind]} {line(request.provider)}, {line(where.strip())}",
            line(request.purpose),
            *shown,
        ]
    lines = [
        "",
        f"May this be sent to {request.provider}{where}?{count}",
        f"{request.purpose}{f' ({request.tool})' if request.tool else ''}",
    ]
    lines += [
        f"  {name}: {line(str(value))}"
        for name, value in request.args.items()
        if name not in ("limit", "offset")
    ]
    for number, item in enumerate(request.items, start=1):
        lines += _item_lines(number, item, request.kind)
    return [*lines, f"  about {request.tokens:,} tokens in all"]


def _name(item: ShareItem, kind: RequestKind) -> str:
    """Return the file of an item. A selection is named as such, with its note if it has one."""
    name = line(item.path.text)
    if kind != "selection":
        return name
    return f"the selection in {name}" if name else "the selection"


def _item_lines(number: int, item: ShareItem, kind: RequestKind) -> list[str]:
    why = f" – {line(item.why)}" if item.why else ""
    name = _name(item, kind)
    shown = [
        f"{number:>4}. {name}: {_LEVELS[item.level]}, {item.size:,} bytes, about {item.tokens:,} tokens{why}"
    ]
    shown += [f"        {line(preview)}" for preview in item.previews[:PREVIEWS]]
    if len(item.previews) > PREVIEWS:
        shown.append(f"        and {len(item.previews) - PREVIEWS:,} more lines")
    return shown


async def _line(request: ShareRequest) -> str:
    """A line from the terminal; "" at its end. Read in a thread that nobody waits for, so that Ctrl-C ends the command at once."""
    folder = (
        f"everything in {line(request.folder)}" if request.folder else "everything in the vault"
    )
    loop = asyncio.get_running_loop()
    answered: asyncio.Future[str] = loop.create_future()

    def answer(said: str) -> None:
        if not answered.done():
            answered.set_result(said)

    def read() -> None:
        try:
            said = ask_line(_SHORT if request.text else _QUESTION.format(folder=folder))
        except (EOFError, OSError):
            said = ""
        with contextlib.suppress(RuntimeError):  # the loop is gone: the command was interrupted
            loop.call_soon_threadsafe(answer, said)

    threading.Thread(target=read, name="question", daemon=True).start()
    return await answered


def decision(said: str, request: ShareRequest) -> ShareDecision:
    """What an answer means; whatever is not clearly a yes is a no."""
    word = said.strip().lower()
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
