"""What a form is made of, as data: fields, what is said under them, and what their texts may become. Imports nothing slow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
    empty: bool = False
    """Whether an empty text is a value of its own."""
    options: Mapping[str, str] | None = None
    named: bool = False
    """Whether the vault has names for it."""
    new: bool = False
    """Whether what the vault does not have yet will do."""
    hint: str = ""


@dataclass(frozen=True, slots=True)
class Remark:
    """What is said under a field: what its text means now, or what is wrong with it."""

    text: str
    wrong: bool = False


@dataclass(frozen=True, slots=True)
class Completion:
    """A whole text that the one in a field may become, and what that names."""

    text: str
    what: str


def changed(fields: Sequence[Field], texts: Mapping[str, str]) -> dict[str, str]:
    """The texts that are to be read: what an optional field has from the beginning holds by itself."""
    return {
        field.name: texts[field.name]
        for field in fields
        if (field.empty or texts[field.name].strip())
        and not (field.optional and texts[field.name].strip() == field.value.strip())
    }
