"""May this be sent to the model? What would leave the machine, item by item, before it does."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from textual.app import ComposeResult
from textual.content import Content
from textual.widgets import Static

from obsidian_agent import terminal_text
from obsidian_agent.tui.bindings import bindings, key_label
from obsidian_agent.tui.report_lines import Line
from obsidian_agent.tui.screens.dialogs import Modal, ReportList, wrapped
from obsidian_agent.tui.widgets.note import OutsideRequested
from obsidian_agent.tui.widgets.row_list import VirtualList

if TYPE_CHECKING:
    from textual.app import App

    from obsidian_agent.agent.privacy.consent import Scope, ShareDecision, ShareItem, ShareRequest
    from obsidian_agent.errors import Problem

CheckCall = Callable[[str, Mapping[str, Any]], "Sequence[Problem]"]
"""What is wrong with other arguments for a tool."""

PREVIEW_LINES = 8
ARGS_SHOWN = 4

_LEVELS = {1: "name", 2: "lines", 3: "whole"}
_TITLES = {
    "files": "Send these notes to the model?",
    "results": "Send what was found to the model?",
    "selection": "Send the selected text to the model?",
    "history": "Send what another model was shown?",
    "call": "Call this tool with these arguments?",
    "tools": "Tell the model of these tools?",
}
_PAGING = ("limit", "offset")


class ShareList(VirtualList["ShareItem"]):
    """One item a line, with its switch."""

    DEFAULT_CSS = "ShareList { height: auto; max-height: 40vh; }"

    def __init__(self, rows: Sequence[ShareItem]) -> None:
        super().__init__(rows)
        self.chosen = {item.path.text for item in rows}

    def draw_row(self, row: ShareItem, width: int) -> Content:
        on = row.path.text in self.chosen
        sign = (" ● send ", "$success") if on else (" ○ keep ", "$quiet")
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
        """Other switches."""
        self.chosen = paths
        self.set_rows(self.rows)


class Share(Modal["ShareDecision"]):
    """Dismisses with the decision; closing it is a no."""

    BINDINGS = bindings("share")

    def __init__(
        self, request: ShareRequest, check: CheckCall | None = None, about: str = ""
    ) -> None:
        super().__init__(_TITLES[request.kind])
        self._request = request
        self._about = about
        self._check = check

    def body(self) -> ComposeResult:
        folder = (
            f"the folder “{terminal_text.shortened(self._request.folder, 120)}”"
            if self._request.folder
            else "the whole vault"
        )
        allows = f"{key_label(self, 'share.folder')} allows {folder}, as much of each file as here."
        self.hint = f"{allows} What holds for the conversation ends with the program."
        if self._about:
            yield _about(self._about)
        yield Static(_head(self._request), markup=False)
        yield ShareList(self._request.items)
        yield Static("", id="share-total", markup=False)
        yield Static("", id="share-preview", markup=False)

    def on_mount(self) -> None:
        if self.query(ShareList):  # none when the turn that asks was cancelled just now
            self.query_one(ShareList).focus()
            self._show(0)

    def on_virtual_list_highlighted(self, event: ShareList.Highlighted) -> None:
        self._show(event.index)

    def _show(self, index: int) -> None:
        """Exactly what would be sent of the highlighted item, as far as there is room, and what all that is switched on comes to."""
        item = self._request.items[index] if 0 <= index < len(self._request.items) else None
        reasons = {each.why for each in self._request.items}
        lines = (
            [terminal_text.shortened(item.why, 160)]
            if item is not None and item.why and len(reasons) > 1
            else []
        )
        lines += (
            [terminal_text.shortened(line, 160) for line in item.previews[:PREVIEW_LINES]]
            if item is not None
            else []
        )
        if item is not None and len(item.previews) > PREVIEW_LINES:
            lines.append(f"… {len(item.previews) - PREVIEW_LINES:,} more lines")
        self.query_one("#share-preview", Static).update(
            Content.styled("\n".join(["", *lines]) if lines else "", "$quiet")
        )
        chosen = [
            each
            for each in self._request.items
            if each.path.text in self.query_one(ShareList).chosen
        ]
        words = f"{len(chosen)} of {len(self._request.items)} chosen · {readable_size(sum(each.size for each in chosen))}"
        words += (
            f" · about {sum(each.tokens for each in chosen):,} tokens"
            if chosen
            else " · the model is told that nothing was shared"
        )
        self.query_one("#share-total", Static).update(Content.styled(f" {words}", "$primary"))

    # --- switches -------------------------------------------------------------------------------------------------------------

    def action_switch(self) -> None:
        """Send the highlighted item, or keep it."""
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

    # --- answers --------------------------------------------------------------------------------------------------------------

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        return self._check is not None and bool(self._request.args) if action == "edit" else True

    def action_send(self, scope: Scope) -> None:
        from obsidian_agent.agent.privacy.consent import ShareDecision

        chosen = frozenset(self.query_one(ShareList).chosen)
        self.dismiss(ShareDecision(scope, chosen))

    def action_edit(self) -> None:
        """Let the tool look again with other arguments."""
        from obsidian_agent.agent.privacy.consent import ShareDecision
        from obsidian_agent.tui.screens.json_editor import JsonEditor

        request, check = self._request, self._check
        if check is None:
            return

        def edited(document: Mapping[str, Any] | None) -> None:
            if document is not None:
                self.dismiss(ShareDecision("no", args=document))

        head = "Edit the arguments. The tool looks again with them, and you are asked again before anything is sent."
        self.app.push_screen(
            JsonEditor(
                head,
                request.args,
                kept="Nothing was sent.",
                check=lambda document: check(request.tool, document),
            ),
            edited,
        )

    def action_close(self) -> None:
        from obsidian_agent.agent.privacy.consent import REFUSED

        self.dismiss(REFUSED)


class AllowTool(Modal["ShareDecision"]):
    """What an MCP server's tool is called with, or what the model is told of such tools: all of it is shown. Closing it is a no."""

    BINDINGS = bindings(
        "share", without=("share.switch", "share.folder", "share.edit", "share.all", "share.none")
    )

    def __init__(self, request: ShareRequest, about: str = "") -> None:
        super().__init__(_TITLES[request.kind])
        self._request, self._about = request, about

    def body(self) -> ComposeResult:
        lasting = (
            f"{key_label(self, 'share.once')} accepts them until they change. "
            if self._request.kind == "tools"
            else ""
        )
        self.hint = (
            f"{lasting}What a server says of its tools is its own word, and so is what they answer."
        )
        if self._about:
            yield _about(self._about)
        yield Static(_head(self._request), markup=False)
        yield ReportList(())

    def on_mount(self) -> None:
        listing = self.query_one(ReportList)
        listing.focus()
        lines: list[Line] = [
            (line, _diff_style(line))
            for line in terminal_text.block(self._request.text).split("\n")
        ]
        listing.set_rows(wrapped(lines, max(30, min(100, self.app.size.width * 94 // 100 - 10))), 0)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        return self._request.kind == "call" or parameters != ("thread",)

    def action_send(self, scope: Scope) -> None:
        from obsidian_agent.agent.privacy.consent import ShareDecision

        self.dismiss(ShareDecision(scope))


def _about(title: str) -> Static:
    return Static(
        Content.styled(f"In the conversation “{terminal_text.shortened(title, 100)}”", "$warning"),
        markup=False,
    )


def _diff_style(line: str) -> str:
    return (
        "$success" if line.startswith("+") else "$error" if line.startswith("-") else "$foreground"
    )


def _head(request: ShareRequest) -> Content:
    count = f"  ({request.number} of {request.total})" if request.total > 1 else ""
    address = f" at {terminal_text.shortened(request.address, 120)}" if request.address else ""
    parts: list[tuple[str, str]] = [
        ("Of " if request.kind == "tools" else "To ", "$quiet"),
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
    for name, value in args[:ARGS_SHOWN]:
        parts += [
            (f"  {terminal_text.shortened(name, 40)}  ", "$quiet"),
            (f"{terminal_text.shortened(_plain(value), 200)}\n", "$foreground"),
        ]
    if len(args) > ARGS_SHOWN:
        parts.append((f"  and {len(args) - ARGS_SHOWN} more\n", "$quiet"))
    reasons = {item.why for item in request.items if item.why}
    if len(reasons) == 1:
        parts += [
            ("Why: ", "$quiet"),
            (f"{terminal_text.shortened(reasons.pop(), 240)}\n", "$foreground"),
        ]
    return Content.assemble(*parts)


def _plain(value: Any) -> str:
    match value:
        case str():
            return value
        case list() if all(isinstance(item, str) for item in value):
            return f"{len(value)} files" if len(value) > 1 else str(value[0]) if value else "none"
        case _:
            return str(value)


def readable_size(count: int) -> str:
    """Bytes for people: `812 B`, `1.2 kB`, `3.4 MB`."""
    if count < 1000:
        return f"{count} B"
    return f"{count / 1000:.1f} kB" if count < 1_000_000 else f"{count / 1_000_000:.1f} MB"


async def ask(
    app: App[None], request: ShareRequest, check: CheckCall | None = None, about: str = ""
) -> ShareDecision:
    """Ask the person and wait. When the turn that asks is cancelled, the question goes away with it."""
    from obsidian_agent.agent.privacy.consent import REFUSED

    answer: asyncio.Future[ShareDecision] = asyncio.get_running_loop().create_future()
    screen = AllowTool(request, about) if request.text else Share(request, check, about)

    def answered(decision: ShareDecision | None) -> None:
        if not answer.done():
            answer.set_result(decision or REFUSED)

    app.push_screen(screen, answered)
    try:
        return await answer
    finally:
        while screen in app.screen_stack and app.screen is not app.screen_stack[0]:
            app.pop_screen()
