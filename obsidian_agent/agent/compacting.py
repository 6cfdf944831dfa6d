"""Making room in a conversation because the person asks for it: what a full window does by itself (`preparing`), done now."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from obsidian_agent.agent.foreign import new_mark
from obsidian_agent.agent.materials.compaction import old_part, summarise
from obsidian_agent.agent.materials.tokens import estimate_messages
from obsidian_agent.errors import ConfigError

if TYPE_CHECKING:
    from obsidian_agent.agent.conversation import Conversation
    from obsidian_agent.providers.base import Provider


@dataclass(frozen=True, slots=True)
class Compacted:
    """`messages` became one; `before` and `after` are about the tokens of the whole conversation. `by_model`: else by a list of what was said."""

    messages: int
    before: int
    after: int
    by_model: bool

    @property
    def words(self) -> str:
        """What was done, for people."""
        how = "summarised" if self.by_model else "put into a list without the model, which did not answer"
        return (
            f"The first {self.messages} messages were {how}: about {self.before:,} tokens became {self.after:,}. "
            "All of it is kept here; only the model gets the short form."
        )


async def compact(talk: Conversation, provider: Provider) -> Compacted:
    """Summarise all turns but the last. Nothing goes to a model that it has not been sent before.

    Raises `ConfigError`: NOTHING_TO_DO, and MODEL_CHANGED when it was another model that the conversation was told to.
    """
    count = old_part(talk.messages, keep=1)
    if count < 2:  # one message is the summary that was made before
        message = "There is nothing to summarise yet: the last turn always stays whole."
        raise ConfigError(message, code="NOTHING_TO_DO")
    if talk.told and talk.told != f"{provider.name} {provider.address}":
        hint = "Say something first: you are asked then whether it may see what was said so far."
        raise ConfigError(f"{provider.name} was not told this conversation.", code="MODEL_CHANGED", hint=hint)
    before = estimate_messages(talk.messages)
    summary = await summarise(provider, talk.messages, count, new_mark())
    talk.compact(summary.count, summary.message)
    return Compacted(count, before, estimate_messages(talk.messages), summary.by_model)
