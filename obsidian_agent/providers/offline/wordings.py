"""All wordings under which an instruction is looked at besides its own, in the order in which they are tried."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import regex

from obsidian_agent.providers.offline import framing
from obsidian_agent.providers.offline.asking import COURTESY, asked
from obsidian_agent.providers.offline.assurances import without_assurances
from obsidian_agent.providers.offline.names import NameIndex
from obsidian_agent.providers.offline.settings_said import settings
from obsidian_agent.providers.offline.statements import imperative
from obsidian_agent.providers.offline.topics import topics
from obsidian_agent.providers.offline.vault_idioms import idioms

MOST_WORDINGS = 8


def wordings(message: str, index: NameIndex) -> Iterator[str]:
    """Other wordings of a message, from those that change least; the message itself is none of them."""
    yield from islice(_distinct(message, index), MOST_WORDINGS)


def _distinct(message: str, index: NameIndex) -> Iterator[str]:
    seen = {message.strip()}
    for wording in _all(message, index):
        if wording.strip() and wording.strip() not in seen:
            seen.add(wording.strip())
            yield wording


def _all(message: str, index: NameIndex) -> Iterator[str]:
    assured = without_assurances(message)
    message = message if assured == message else regex.sub(r" {2,}", " ", assured).strip()
    question = asked(message)
    framed = (message, *framing.wordings(message))
    about = tuple(topic for said in dict.fromkeys((question or message, framed[-1])) for topic in topics(said, index))
    for base in (*framed, *filter(None, (question,)), *about):
        yield base
        said = imperative(base)
        yield said
        plain = COURTESY.sub("", said)
        yield from filter(None, (settings(plain, index),))
        yield from idioms(plain, index)
