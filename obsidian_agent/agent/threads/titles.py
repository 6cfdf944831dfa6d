"""A name for a conversation, after its first exchange: from the person's words, or asked of the model that was just talked to."""

from __future__ import annotations

import re
from typing import Final

from obsidian_agent.agent.privacy.untrusted_text import visible
from obsidian_agent.agent.replies import whole_reply
from obsidian_agent.errors import ProviderError
from obsidian_agent.providers.base import ChatMessage, ChatRequest, Provider

LONGEST: Final = 60
_SHOWN: Final = 1_000
"""Characters of question and answer that a model gets to make a title of."""
_POLITE: Final = re.compile(
    r"^(?:(?:hi|hello|hey|hallo|please|bitte|can you|could you|would you|kannst du|könntest du|i(?:'d| would) like (?:you )?to|"
    r"i want (?:you )?to|ich möchte,? dass du|help me(?: to)?|tell me)\b[\s,!.:]*)+",
    re.IGNORECASE,
)
_COMMAND: Final = re.compile(r"^/\w+\s+")
_SENTENCE: Final = re.compile(r"(?<=[.!?。！？])\s|\n")
_INSTRUCTIONS: Final = (
    "Give the conversation below a title of three to seven words in the language of the question. "
    "Answer with the title alone: no quotes, no full stop."
)


def title_from(question: str, answer: str = "") -> str | None:
    """A title from what was said; None when that says nothing."""
    text = _POLITE.sub("", _COMMAND.sub("", visible(question).strip()))
    first = next((part for part in _SENTENCE.split(text) if part.strip()), "")
    plain = first.strip(" \t#*>-–—\"'`.,!")
    if len(re.findall(r"\w", plain)) < 3:
        plain = next((line.lstrip("# ").strip() for line in visible(answer).splitlines() if line.strip()), "")
    if len(re.findall(r"\w", plain)) < 3:
        return None
    return _shortened(plain[0].upper() + plain[1:])


async def title_by(provider: Provider, question: str, answer: str) -> str | None:
    """A title that a model makes of what it was asked and has answered; None when it fails. Nothing else is sent."""
    conversation = f"Question: {visible(question)[:_SHOWN]}\n\nAnswer: {visible(answer)[:_SHOWN]}"
    request = ChatRequest((ChatMessage("system", _INSTRUCTIONS), ChatMessage("user", conversation)), max_tokens=64, timeout=20.0)
    try:
        reply = await whole_reply(provider, request)
    except ProviderError:
        return None
    line = next((line.strip() for line in visible(reply.text).splitlines() if line.strip()), "")
    plain = re.sub(r"^(?:title|titel)\s*:\s*", "", line, flags=re.IGNORECASE).strip(" \"'`*#.")
    return _shortened(plain) if plain else None


def _shortened(text: str) -> str:
    text = " ".join(text.split())
    if len(text) <= LONGEST:
        return text.rstrip(" .:;,!")
    cut = text[:LONGEST].rsplit(" ", 1)[0] if " " in text[:LONGEST] else text[:LONGEST]
    return f"{cut.rstrip(' .:;,!')}…"
