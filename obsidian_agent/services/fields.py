"""The parts of a form as data: fields, messages below them, and completions.

Nothing slow is imported here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

NEEDED: Final = "A value is required."


class Field(Struct, frozen=True):
    """A value to ask for. `value` is the initial text, `options` the allowed texts with labels.

    Forms show the `label`, by default the `name`.
    """

    name: str
    description: str = ""
    value: str = ""
    optional: bool = False
    """True if the field may stay blank."""
    empty: bool = False
    """True if an empty text is a value."""
    options: Mapping[str, str] | None = None
    named: bool = False
    """True if the value is a name of the vault, which can be completed."""
    new: bool = False
    """True if names that the vault does not have yet are allowed."""
    hint: str = ""
    label: str = ""


class FieldMessage(Struct, frozen=True):
    """A message below a field: how its text is understood, or what is wrong with it."""

    text: str
    wrong: bool = False


class Completion(Struct, frozen=True):
    """A text that can replace the one in a field, and the kind of thing it names."""

    text: str
    what: str
