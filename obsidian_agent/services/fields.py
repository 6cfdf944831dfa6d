"""The parts of a form as data: fields, messages below them, and completions.

Nothing slow is imported here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from obsidian_agent.dataclass import dataclass

NEEDED: Final = "A value is required."


@dataclass(frozen=True, slots=True)
class Field:
    """A value to ask for. `value` is the initial text, `options` the allowed texts with labels."""

    name: str
    description: str = ""
    value: str = ""
    optional: bool = False
    """Whether the field may stay blank."""
    empty: bool = False
    """Whether an empty text is a value."""
    options: Mapping[str, str] | None = None
    named: bool = False
    """Whether the vault has names for it, which can be completed."""
    new: bool = False
    """Whether names that the vault does not have yet are allowed."""
    hint: str = ""


@dataclass(frozen=True, slots=True)
class FieldMessage:
    """A message below a field: how its text is understood, or what is wrong with it."""

    text: str
    wrong: bool = False


@dataclass(frozen=True, slots=True)
class Completion:
    """A text that can replace the one in a field, and the kind of thing it names."""

    text: str
    what: str
