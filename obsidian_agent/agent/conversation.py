"""The conversation with a model: its messages, its grants, and what it holds of the vault."""

from __future__ import annotations

import secrets
from typing import Protocol

from msgspec import Struct, field

from obsidian_agent.agent.privacy.consent import Grants, SharedPart
from obsidian_agent.agent.privacy.ledger import Sending
from obsidian_agent.providers.base import ChatMessage, ToolCall

CANCELLED = '{"error": {"code": "CANCELLED", "message": "User cancelled tool execution"}}'
CUT_MARK_END = " stopped the answer here.]"
CUT_MARK = f"\n\n[The user{CUT_MARK_END}"
BROKEN_MARK = "\n\n[The answer broke off here.]"


def new_id() -> str:
    return secrets.token_hex(8)


class Keeper(Protocol):
    """A recorder of a conversation, called for each change to it."""

    def message(self, message: ChatMessage) -> None:
        """Record a new message."""
        ...

    def moved(self) -> None:
        """Record that the next model gets none of the messages so far."""
        ...

    def sending(self, conversation: Conversation) -> None:
        """Record the recipient of the next request and the parts of the vault in it."""
        ...

    def compacted(self, count: int, summary: ChatMessage) -> None:
        """Record that a summary replaces the first `count` messages."""
        ...


class Conversation(Struct, kw_only=True):
    """One conversation. Between turns each call in `messages` is followed by exactly one result.

    `shared` are the parts of the vault in the messages, by path, and `unsent` those of them that
    no request has contained yet. `recipient` is the provider that the messages were last sent to.
    `plain` are the providers that refused tools.
    """

    id: str = field(default_factory=new_id)
    messages: list[ChatMessage] = field(default_factory=list)
    grants: Grants = field(default_factory=Grants)
    shared: dict[str, SharedPart] = field(default_factory=dict)
    unsent: list[Sending] = field(default_factory=list)
    recipient: str = ""
    plain: set[str] = field(default_factory=set)
    keeper: Keeper | None = None
    _ids: set[str] = field(default_factory=set)

    def with_unique_id(self, call: ToolCall) -> ToolCall:
        """Return the call with an id that is unique in the conversation.

        Some models repeat their ids; results could not be assigned to them.
        """
        identity = call.id
        while not identity or identity in self._ids:
            identity = f"call_{secrets.token_hex(8)}"
        self._ids.add(identity)
        return ToolCall(identity, call.name, call.arguments)

    def add_request(self, message: ChatMessage) -> None:
        self._add(message)

    def add_reply(self, text: str, calls: tuple[ToolCall, ...] = ()) -> None:
        """Add the model's message, unless it is empty."""
        if text.strip() or calls:
            self._add(ChatMessage("assistant", text, calls))

    def add_result(self, call: ToolCall, text: str) -> None:
        self._add(ChatMessage("tool", text, call_id=call.id))

    def _add(self, message: ChatMessage) -> None:
        self.messages.append(message)
        if self.keeper is not None:
            self.keeper.message(message)

    def cancel(self) -> None:
        """Add a result that says "cancelled" for each call without one."""
        answered = {message.call_id for message in self.messages if message.role == "tool"}
        last = next(
            (message for message in reversed(self.messages) if message.role == "assistant"), None
        )
        for call in last.calls if last is not None else ():
            if call.id not in answered:
                self.add_result(call, CANCELLED)

    def move(self, recipient: str, *, keep: bool) -> None:
        """Continue with another provider, which gets no grants, and messages only with `keep`."""
        self.recipient = recipient
        self.grants = Grants()
        if not keep:
            self.messages.clear()
            self.shared.clear()
            self.unsent.clear()
            if self.keeper is not None:
                self.keeper.moved()

    def compact(self, count: int, summary: ChatMessage) -> None:
        """Replace the first `count` messages, which must be whole turns, by a summary."""
        self.messages[:count] = [summary]
        if self.keeper is not None:
            self.keeper.compacted(count, summary)

    def sending(self) -> None:
        """Record what the next request contains of the vault, before it is sent.

        After a crash this must still be known.
        """
        if self.keeper is not None:
            self.keeper.sending(self)

    def plain_messages(self) -> tuple[ChatMessage, ...]:
        """Return the messages without calls and results, for a model without tools."""
        return tuple(
            ChatMessage(message.role, message.text)
            for message in self.messages
            if message.role in ("user", "assistant") and message.text
        )

    def share(self, sending: Sending) -> None:
        """Add the parts of the vault that a new message contains."""
        self.unsent.append(sending)
        for part, _ in sending.parts:
            level, characters = part.level, part.characters
            if (old := self.shared.get(part.path)) is not None:
                level = max(level, old.level)
                characters += old.characters
            self.shared[part.path] = SharedPart(part.path, level, characters)
