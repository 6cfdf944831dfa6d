"""What well-known community plugins do, so that one can be named where a plan cannot help. Needs no network; nothing is installed."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from importlib import resources

import regex

from obsidian_agent.offline.words import stem

_WORD = regex.compile(r"[\p{L}\p{N}]+(?:['’]\p{L}+)?")


@dataclass(frozen=True, slots=True)
class KnownPlugin:
    """A plugin, what it does in a few words, and how people ask for that."""

    id: str
    name: str
    does: str
    asked: tuple[tuple[str, ...], ...]


@cache
def known_plugins() -> tuple[KnownPlugin, ...]:
    """Those that are known here, read at the first call."""
    data = resources.files("obsidian_agent.agent").joinpath("known_plugins.json").read_bytes()
    return tuple(KnownPlugin(each["id"], each["name"], each["does"], tuple(map(_stems, each["asked"]))) for each in json.loads(data))


def helpful(instruction: str) -> KnownPlugin | None:
    """The plugin that does what is asked for: the one of which the most words are said, all of a way to ask for it, in order."""
    said = _stems(instruction)
    found = [(len(asked), plugin) for plugin in known_plugins() for asked in plugin.asked if _holds(said, asked)]
    return max(found, key=lambda each: each[0])[1] if found else None


def _stems(text: str) -> tuple[str, ...]:
    return tuple(stem(word) for word in _WORD.findall(text))


def _holds(said: tuple[str, ...], asked: tuple[str, ...]) -> bool:
    rest = iter(said)
    return all(word in rest for word in asked)
