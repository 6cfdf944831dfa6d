"""What a stretch of an instruction may mean in a slot: a value, how sure that is, and what is still open about it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any, Literal

Issue = Literal["unknown", "ambiguous", "near", "inactive"]


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the words "this note", "selected" and "today" mean at the moment. `active_file` is a vault path."""

    now: datetime
    active_file: str | None = None
    has_selection: bool = False
    macros: Sequence[str] = field(default=())
    """Names of the saved macros."""

    @property
    def today(self) -> date:
        """The day of `now`."""
        return self.now.date()


@dataclass(frozen=True, slots=True)
class Reading:
    """A value for a slot. `cost` is the doubt, 0 for none; `text` is what the instruction says.

    `reference` names a value of the run's context that stands for it ("this note" is `activeFile`), so that a saved plan follows along.
    With `issue` the value is open: `choices` are the values to choose from.
    """

    cost: float
    value: Any
    text: str
    reference: str | None = None
    issue: Issue | None = None
    choices: tuple[Any, ...] = ()
    doubt: str | None = None
    """What a person should confirm, where the issue alone does not say it."""
    otherwise: tuple[Any, ...] = ()
    """Values that the words may mean as well; they count where no note fits the others."""
