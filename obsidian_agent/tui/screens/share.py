"""The consent dialogs: what would be sent to a model or a server, item by item, before it is."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from textual.app import ComposeResult
from textual.content import Content
from textual.widgets import Static

from obsidian_agent import terminal_text
from obsidian_agent.tui.bindings import bindings, key_label
from obsidian_agent.tui.screens.dialogs import Modal, ReportList
from obsidian_agent.tui.widgets.note import OutsideRequested
from obsidian_agent.tui.widgets.row_list import VirtualList

if TYPE_CHECKING:
    from textual.app import App

    from obsidian_agent.agent.privacy.consent import Scope, ShareDecision, ShareItem, ShareRequest
    from obsidian_agent.errors import Problem

CheckCall = Callable[[str, Mapping[str, Any]], "Sequence[Problem]"]
"""Returns the problems of edited arguments for a tool."""

PREVIEW_LINES = 8
MAX_ARGS = 4
"""Arguments of a tool call that are listed; the rest is counted."""
MAX_ARGUMENT = 200
"""Characters shown of one argument; the rest is counted."""

_LEVELS = {1: "name", 2: "lines", 3: "whole"}
_TITLES = {
    "files": "Send these notes to the model?",
    "results": "Send these search results to the model?",
    "selection": "Send the selected text to the model?",
    "history": "Send what another model has already seen?",
    "call": "Call this tool with these arguments?",
    "tools": "Offer these tools to the model?",
    "resource": "Send this text of an MCP server to the model?",
}
_PAGING = ("limit", "offset")


class ShareList(VirtualList["ShareItem"]):
    """The items of a request, each with a switch."""

    DEFAULT_CSS = "ShareList { height: auto; max-height: 40vh; }"

    def __init__(self, rows: Sequence[ShareItem]) -> None:
        super().__init__(rows)
        self.chosen = {item.path.text for item in rows}

    def draw_row(self, row: ShareItem, width: int) -> Content:
        on = row.path.text in self.chosen
        sign = (" ● send ", "$success") if on else (" ○ skip ", "$quiet")
        folder, _, name = row.path.text.rpartition("/")
        left = Content.assemble(
            sign,
            (terminal_text.shortened(name, 200) or "(no file)", "$foreground" if on else "$quiet"),
            (f"  {terminal_text.shortened(folder, 200)}" if folder else "", "$quiet"),
        )
        right = (
            f"  {_LEVELS[row.level]:<5} {readable_size(row.size):>7} {f'~{row.tokens:,}':>7} tok"
        )
        room = max(width - len(right), 12)
        left = left.truncate(room, ellipsis=True)
        return Content.assemble(left, " " * max(0, room - left.cell_length), (right, "$quiet"))

    def choose(self, paths: set[str]) -> None:
        """Switch on exactly the items with these paths."""
        self.chosen = paths
        self.set_rows(self.rows)


class Share(Modal["ShareDecision"]):
    """The question whether files may be sent. Closing it refuses."""

    BINDINGS = bindings("share")

    def __init__(
        self, request: ShareRequest, check: CheckCall | None = None, conversation: str = ""
    ) -> None:
        super().__init__(_TITLES[request.kind])
        self._request = request
        self._conversation = conversation
        self._check = check

    def body(self) -> ComposeResult:
        folder = "the whole vault"
        if self._request.folder:
            folder = f"the folder “{terminal_text.shortened(self._request.folder, 120)}”"
        self.hint = (
            f"{key_label(self, 'share.folder')} allows {folder}, at the same level of detail. "
            "What you allow for a conversation is forgotten when the program ends."
        )
        if self._conversation:
            yield _conversation_label(self._conversation)
        yield Static(_head(self._request), markup=False)
        yield ShareList(self._request.items)
        yield Static("", id="share-total", markup=False)
        yield Static("", id="share-preview", markup=False)

    def on_mount(self) -> None:
        if self.query(ShareList):  # absent if the turn was cancelled just now
            self.query_one(ShareList).focus()
            self._show(0)

    def on_virtual_list_highlighted(self, event: ShareList.Highlighted) -> None:
        self._show(event.index)

    def _show(self, index: int) -> None:
        """Show the exact text that would be sent of an item, and the total of all chosen items."""
        items = self._request.items
        lines: list[str] = []
        if 0 <= index < len(items):
            item = items[index]
            if item.why and len({other.why for other in items}) > 1:
                lines.append(terminal_text.shortened(item.why, 160))
            for line in item.previews[:PREVIEW_LINES]:
                lines.append(terminal_text.shortened(line, 160))
            if len(item.previews) > PREVIEW_LINES:
                lines.append(f"… {len(item.previews) - PREVIEW_LINES:,} more lines")
        self.query_one("#share-preview", Static).update(
            Content.styled("\n".join(["", *lines]) if lines else "", "$quiet")
        )
        chosen = [item for item in items if item.path.text in self.query_one(ShareList).chosen]
        size = readable_size(sum(item.size for item in chosen))
        total = f"{len(chosen)} of {len(items)} chosen · {size}"
        if chosen:
            total += f" · about {sum(item.tokens for item in chosen):,} tokens"
        else:
            total += " · the model only learns that you shared nothing"
        self.query_one("#share-total", Static).update(Content.styled(f" {total}", "$primary"))

    # --- switches ---------------------------------------------------------------------------------

    def action_switch(self) -> None:
        """Choose the highlighted item, or drop it from the choice."""
        listing = self.query_one(ShareList)
        if listing.current is not None:
            listing.choose(listing.chosen ^ {listing.current.path.text})

    def on_virtual_list_chosen(self) -> None:
        self.action_switch()

    def action_outside(self) -> None:
        if (item := self.query_one(ShareList).current) is not None and item.path.text:
            self.post_message(OutsideRequested(item.path.text))

    def action_all(self) -> None:
        self.query_one(ShareList).choose({item.path.text for item in self._request.items})

    def action_none(self) -> None:
        self.query_one(ShareList).choose(set())

    # --- answers ----------------------------------------------------------------------------------

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action == "edit":
            return self._check is not None and bool(self._request.args)
        return True

    def action_send(self, scope: Scope) -> None:
        from obsidian_agent.agent.privacy.consent import ShareDecision

        chosen = frozenset(self.query_one(ShareList).chosen)
        self.dismiss(ShareDecision(scope, chosen))

    def action_edit(self) -> None:
        """Edit the arguments, with which the tool then runs again."""
        from obsidian_agent.agent.privacy.consent import ShareDecision
        from obsidian_agent.tui.screens.json_editor import JsonEditor

        request, check = self._request, self._check
        if check is None:
            return

        def edited(document: Mapping[str, Any] | None) -> None:
            if document is not None:
                self.dismiss(ShareDecision("no", args=document))

        editor = JsonEditor(
            "Edit the arguments. The tool runs again with them and asks before anything is sent.",
            request.args,
            unchanged="Nothing was sent.",
            check=lambda document: check(request.tool, document),
        )
        self.app.push_screen(editor, edited)

    def action_close(self) -> None:
        from obsidian_agent.agent.privacy.consent import REFUSED

        self.dismiss(REFUSED)


class AllowTool(Modal["ShareDecision"]):
    """The question about an MCP server: to call a tool, to offer its tools, to send a resource.

    Shows the full text of the arguments, the descriptions, or the resource. Closing it refuses.
    """

    BINDINGS = bindings(
        "share", without=("share.switch", "share.folder", "share.edit", "share.all", "share.none")
    )

    def __init__(self, request: ShareRequest, conversation: str = "") -> None:
        super().__init__(_TITLES[request.kind])
        self._request, self._conversation = request, conversation

    def body(self) -> ComposeResult:
        self.hint = "Texts of a server are data for the model, and may be wrong."
        if self._request.kind == "tools":
            self.hint = (
                f"{key_label(self, 'share.once')} allows them until they change. {self.hint}"
            )
        if self._conversation:
            yield _conversation_label(self._conversation)
        yield Static(_head(self._request), markup=False)
        text = terminal_text.block(self._request.text)
        yield ReportList([(line, _diff_style(line)) for line in text.split("\n")])

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        return self._request.kind != "tools" or parameters != ("thread",)

    def action_send(self, scope: Scope) -> None:
        from obsidian_agent.agent.privacy.consent import ShareDecision

        self.dismiss(ShareDecision(scope))


def _conversation_label(title: str) -> Static:
    return Static(
        Content.styled(f"In the conversation “{terminal_text.shortened(title, 100)}”", "$warning"),
        markup=False,
    )


def _diff_style(line: str) -> str:
    if line.startswith("+"):
        return "$success"
    if line.startswith("-"):
        return "$error"
    return "$foreground"


def _head(request: ShareRequest) -> Content:
    count = f"  ({request.number} of {request.total})" if request.total > 1 else ""
    address = f" at {terminal_text.shortened(request.address, 120)}" if request.address else ""
    parts: list[tuple[str, str]] = [
        ("From " if request.kind == "tools" else "To ", "$quiet"),
        (terminal_text.shortened(request.provider, 80), "bold"),
        (f"{address}{count}\n", "$quiet"),
        (terminal_text.shortened(request.purpose, 200), "$foreground"),
        (f"  {terminal_text.line(request.tool)}\n", "$quiet"),
    ]
    args = [
        (name, value)
        for name, value in request.args.items()
        if name not in _PAGING and not request.text
    ]
    for name, value in args[:MAX_ARGS]:
        text = _argument_text(value)
        excess = len(text) - MAX_ARGUMENT
        more = f" ({excess:,} more characters)" if excess > 0 else ""
        parts += [
            (f"  {terminal_text.shortened(name, 40)}  ", "$quiet"),
            (f"{terminal_text.shortened(text, MAX_ARGUMENT)}{more}\n", "$foreground"),
        ]
    if len(args) > MAX_ARGS:
        parts.append((f"  and {len(args) - MAX_ARGS} more\n", "$quiet"))
    reasons = {item.why for item in request.items if item.why}
    if len(reasons) == 1:
        parts += [
            ("Why: ", "$quiet"),
            (f"{terminal_text.shortened(reasons.pop(), 240)}\n", "$foreground"),
        ]
    return Content.assemble(*parts)


def _argument_text(value: Any) -> str:
    match value:
        case []:
            return "none"
        case [str(only)]:
            return only
        case list() if all(isinstance(item, str) for item in value):
            return f"{len(value)} files"
        case _:
            return str(value)


def readable_size(count: int) -> str:
    """Return a number of bytes in a readable unit: `812 B`, `1.2 kB`, `3.4 MB`."""
    if count < 1000:
        return f"{count} B"
    if count < 1_000_000:
        return f"{count / 1000:.1f} kB"
    return f"{count / 1_000_000:.1f} MB"


async def ask(
    app: App[None], request: ShareRequest, check: CheckCall | None = None, conversation: str = ""
) -> ShareDecision:
    """Ask the user, and wait for the answer. Cancelling the turn that asks closes the question."""
    from obsidian_agent.agent.privacy.consent import REFUSED

    answer: asyncio.Future[ShareDecision] = asyncio.get_running_loop().create_future()
    screen = (
        AllowTool(request, conversation) if request.text else Share(request, check, conversation)
    )

    def answered(decision: ShareDecision | None) -> None:
        if not answer.done():
            answer.set_result(decision or REFUSED)

    app.push_screen(screen, answered)
    try:
        return await answer
    finally:
        while screen in app.screen_stack and app.screen is not app.screen_stack[0]:
            app.pop_screen()
