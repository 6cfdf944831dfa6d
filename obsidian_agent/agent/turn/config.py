"""What is set for one turn: the person's instructions, what goes along with messages, limits, and which model is asked.

That is the thread's own, else one that the open note or the vault's agent wishes for, else the one of the settings. Notes and agents come from
anywhere, so what they may choose is the person's to say: models of the service that the settings name, and those that match `note_models`.
They name a service and a model, never an address or a key.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, Final

from obsidian_agent.agent.context.items import CONTEXT_FORMATS, ContextFormat, Gatherer
from obsidian_agent.agent.trace import Trace
from obsidian_agent.agent.turn.model_tools import Detail
from obsidian_agent.errors import ConfigError, Problem, VaultError
from obsidian_agent.providers.prices import ModelFacts, facts_of
from obsidian_agent.providers.registry import SCRIPTED, find_vendor
from obsidian_agent.vault.frontmatter.properties import read_properties
from obsidian_agent.vault.paths.path import VaultPath
from obsidian_agent.vault.text import decode
from obsidian_agent.vault.views.view import VaultView


@dataclass(frozen=True, slots=True)
class TurnConfig:
    """`instructions` stand in the system prompt, so only what the person wrote or trusted may be in them; `sources` are the vault's files
    whose text that is. `notices` are told at the beginning of a turn.

    `window` is the person's own figure for the model's window, in tokens; without it the list's counts. `tools` off: the model may not look
    around. `only`: it may look around with these tools alone (None: with all read tools). `temperature`: another one than the settings'.
    """

    instructions: str = ""
    gatherer: Gatherer | None = Gatherer()
    """Finds what goes along with a message; None: nothing does."""
    format: ContextFormat = CONTEXT_FORMATS["structured"]
    window: int | None = None
    tools: bool = True
    only: frozenset[str] | None = None
    temperature: float | None = None
    model: str | None = None
    """The model that the vault's agent wishes for."""
    sources: tuple[str, ...] = ()
    notices: tuple[Problem, ...] = ()
    trace: Trace | None = None
    facts: Callable[[str], ModelFacts] = facts_of
    detail: Detail | None = None
    """How much the model is told of tools and plans; None: as fits it."""


_SPEC: Final = re.compile(r"[a-z0-9][a-z0-9_-]*/[^\s/][^\s]{0,200}")
_MODEL: Final = re.compile(r"[^\s/][^\s]{0,200}")


@dataclass(frozen=True, slots=True)
class Choice:
    """A model as `VENDOR/MODEL`, and what the person is told about the choice."""

    spec: str
    notices: tuple[Problem, ...] = ()


def choose(settings: str, thread: str | None, note: str | None, assistant: str | None, patterns: Sequence[str]) -> Choice:
    """Choose among the model of the settings, the thread's, and what the open note and the vault's agent wish for."""
    if thread is not None:
        return Choice(thread)
    notices: list[Problem] = []
    for wish, who in ((note, "The open note"), (assistant, "The agent")):
        if wish is None or wish == settings:
            continue
        if may_choose(wish, settings, patterns):
            return Choice(wish, (*notices, Problem("MODEL_CHOSEN", f"{who} has {wish} answer.")))
        message = (
            f"{who} asks for {wish}, which vaults may not choose here; {settings} answers. Allow it under note_models in the settings."
        )
        notices.append(Problem("MODEL_NOT_ALLOWED", message))
    return Choice(settings, tuple(notices))


def may_choose(spec: str, settings: str, patterns: Sequence[str]) -> bool:
    """Whether something in a vault may choose this model."""
    vendor = spec.partition("/")[0]
    try:
        find_vendor(vendor)
    except ConfigError:
        return False
    same = vendor == settings.partition("/")[0].lower() and vendor != SCRIPTED
    return same or any(fnmatchcase(spec.lower(), pattern.lower()) for pattern in patterns)


def wish_of(view: VaultView, path: VaultPath | None) -> str | None:
    """The model that a note's properties name: `ai-model: VENDOR/MODEL`, or `aiService: VENDOR` with `model: MODEL`. May block."""
    if path is None or not path.is_note:
        return None
    try:
        properties = read_properties(decode(view.read(path), path.text))
    except VaultError:
        return None
    return _wish(properties)


def _wish(properties: dict[str, Any]) -> str | None:
    spec = properties.get("ai-model", properties.get("aiModel"))
    if isinstance(spec, str):
        return spec.strip() if _SPEC.fullmatch(spec.strip()) else None
    service, model = properties.get("aiService", properties.get("ai-service")), properties.get("model")
    if not isinstance(service, str) or not isinstance(model, str) or _MODEL.fullmatch(model.strip()) is None:
        return None
    found = f"{service.strip().lower()}/{model.strip()}"
    return found if _SPEC.fullmatch(found) else None
