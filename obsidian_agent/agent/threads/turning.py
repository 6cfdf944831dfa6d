"""A message of a thread, worked on by what the session has: the thread's model, or the offline planner where there is none."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from obsidian_agent.agent.answering import answer
from obsidian_agent.agent.compacting import Compacted, compact
from obsidian_agent.agent.events import AgentEvent
from obsidian_agent.agent.sharing import ApproveShare
from obsidian_agent.agent.threads.titles import title_by
from obsidian_agent.errors import ConfigError

if TYPE_CHECKING:
    from obsidian_agent.agent.session import Session
    from obsidian_agent.agent.threads.chats import Chat


@dataclass(frozen=True, slots=True)
class SessionTurns:
    """`Turns` over a session. `titles_by_model`: models make titles, else the person's own words do."""

    session: Session
    titles_by_model: Callable[[], bool] = bool

    def turn(self, chat: Chat, text: str, approve: ApproveShare) -> AsyncIterator[AgentEvent]:
        """The events of one message; ends as `answering.answer` and `Session.turn` do."""
        if self.session.models is None:
            return self.session.turn(text)
        return answer(self.session, text, approve, conversation=chat.talk, model=chat.state.model, assistant=chat.state.assistant)

    async def compact(self, chat: Chat) -> Compacted:
        """Summarise a thread by its model. Raises `ConfigError`, also without a model."""
        models = self.session.models
        if models is None:
            raise ConfigError("There is no model, so there is nothing to make room for.", code="NO_MODEL")
        return await compact(chat.talk, models.providers.get(chat.state.model or models.spec))

    async def title(self, chat: Chat, question: str, answer: str) -> str | None:
        """A title by the thread's model, which knows both sides already."""
        models = self.session.models
        if models is None or not self.titles_by_model():
            return None
        try:
            provider = models.provider if chat.state.model is None else models.providers.get(chat.state.model)
        except ConfigError:
            return None
        return await title_by(provider, question, answer)
