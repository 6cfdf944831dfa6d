"""The beginning of a turn: what the model may know of what is open and selected, and whether it may see what another one was shown."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass, field, replace

from obsidian_agent.agent.conversation import Conversation
from obsidian_agent.agent.events import Notice, TurnEvent
from obsidian_agent.agent.privacy.consent import (
    AllowedBy,
    ApproveShare,
    Gate,
    Level,
    Part,
    RequestKind,
    ShareItem,
    ShareRequest,
    SharingRules,
    tokens_of,
)
from obsidian_agent.agent.privacy.ledger import Sending
from obsidian_agent.agent.privacy.questions import Asker, Permission
from obsidian_agent.agent.turn.prompts import FILES_SHOWN, SELECTION_SHOWN
from obsidian_agent.agent.turn.read_calls import selection_item
from obsidian_agent.errors import Problem
from obsidian_agent.providers.base import Provider
from obsidian_agent.tools.core.tool import RunContext
from obsidian_agent.vault.paths.path import PathUse, VaultPath, parse


@dataclass(slots=True)
class Opening:
    """Settles what goes out with the first request of a turn; read the result after `run`."""

    provider: Provider
    rules: SharingRules
    real: Callable[[VaultPath], VaultPath]
    approve: ApproveShare
    conversation: Conversation
    show_selection: bool = False
    parts: list[tuple[Part, AllowedBy]] = field(default_factory=list)
    _context: RunContext | None = None
    _asker: Asker | None = None

    @property
    def context(self) -> RunContext:
        """The run's context without what is denied."""
        assert self._context is not None
        return self._context

    @property
    def asker(self) -> Asker:
        """Who asks the person from now on."""
        assert self._asker is not None
        return self._asker

    def sending(self) -> Sending:
        """What the message of the person shares of the vault, for the ledger; its text is the caller's."""
        return Sending("context", "", "", tuple(self.parts))

    async def run(self, context: RunContext) -> AsyncGenerator[TurnEvent, None]:
        """Ask what has to be asked first."""
        async with contextlib.aclosing(self._move()) as events:
            async for event in events:
                yield event
        asker = self._asker = self._new_asker()
        run = self._context = _without_denied(context, asker.gate)
        names = [path for path in (run.active_file, *run.open_files[:FILES_SHOWN], *run.recent_files[:FILES_SHOWN]) if path is not None]
        self.parts += [(Part(path.text, Level.NAME, len(path.text)), "context") for path in dict.fromkeys(names)]
        item = selection_item(run, most=SELECTION_SHOWN)
        if item is None:
            self.show_selection = True  # there is nothing to hide, and the model is told so
            return
        permission = Permission()
        if run.selection is not None and run.selection.start is None:
            permission.allowed = {item.path.text: "context"}  # the person gave the text itself, not a place in a note
        else:
            request = self._request("selection", "Send the selected text along with your message", (item,))
            async with contextlib.aclosing(asker.ask(request, permission)) as events:
                async for event in events:
                    yield event
        if item.path.text in permission.allowed:
            self.show_selection = True
            self.parts.append((Part(item.path.text, item.level, len(item.previews[0])), permission.allowed[item.path.text]))

    def _new_asker(self) -> Asker:
        return Asker(Gate(self.rules, self.conversation.grants, self.provider.local, self.real), self.approve)

    async def _move(self) -> AsyncGenerator[TurnEvent, None]:
        """When the conversation goes on with another provider: ask whether that one may see what it holds of the vault."""
        told = f"{self.provider.name} {self.provider.address}"
        if not self.conversation.told or self.conversation.told == told:
            self.conversation.told = told
            return
        before = dict(self.conversation.shared)
        self.conversation.move(told, keep=True)
        items = tuple(_item(part) for part in before.values() if part.path)
        permission = Permission()
        request = self._request("history", "Send along what was said in this conversation so far", items)
        async with contextlib.aclosing(self._new_asker().ask(request, permission)) as events:
            async for event in events:
                yield event
        if permission.paths >= {item.path.text for item in items}:
            self.parts += [(part, permission.allowed[part.path]) for part in before.values() if part.path]
            return
        self.conversation.move(told, keep=False)
        message = f"{self.provider.name} does not get to see what was said so far; the conversation begins anew."
        yield Notice(Problem(code="HISTORY_NOT_SHARED", message=message))

    def _request(self, kind: RequestKind, purpose: str, items: tuple[ShareItem, ...]) -> ShareRequest:
        return ShareRequest("", kind, "", purpose, {}, items, self.provider.name, self.provider.address)


def _item(part: Part) -> ShareItem:
    size = part.characters
    return ShareItem(parse(part.path, PathUse.READ), part.level, size, tokens_of(size))


def _without_denied(run: RunContext, gate: Gate) -> RunContext:
    active = run.active_file if run.active_file is not None and not gate.denied(run.active_file) else None
    lost = run.active_file is not None and active is None
    return replace(
        run,
        active_file=active,
        selection=None if lost else run.selection,
        cursor=None if lost else run.cursor,
        open_files=tuple(path for path in run.open_files if not gate.denied(path)),
        recent_files=tuple(path for path in run.recent_files if not gate.denied(path)),
    )
