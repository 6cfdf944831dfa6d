"""The parts of a form, as data: fields, remarks below them, and completions. Imports nothing slow."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from obsidian_agent.dataclass import dataclass

NEEDED: Final = "A value is needed."


@dataclass(frozen=True, slots=True)
class Field:
    """One value to ask for, with the text that stands in it at first. `options`: the texts to choose from, each with how it is shown."""

    name: str
    description: str = ""
    value: str = ""
    optional: bool = False
    """Whether it may stay blank."""
    empty: bool = False
    """Whether an empty text is a value of its own."""
    options: Mapping[str, str] | None = None
    named: bool = False
    """Whether the vault has names for it."""
    new: bool = False
    """Whether what the vault does not have yet will do."""
    hint: str = ""


@dataclass(frozen=True, slots=True)
class FieldMessage:
    """What is said under a field: what its text means now, or what is wrong with it."""

    text: str
    wrong: bool = False


@dataclass(frozen=True, slots=True)
class Completion:
    """A whole text that the one in a field may become, and what that names."""

    text: str
    what: str
