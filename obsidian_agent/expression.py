"""Regular expressions that are compiled when they are first used: modules that every start needs define 200, and few commands use half of them."""

from __future__ import annotations

import re
from typing import Any, AnyStr, cast


def expression(pattern: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """What `re.compile` gives, as far as its methods and attributes go. Raises `re.error` on first use."""
    return cast("re.Pattern[AnyStr]", _Expression(pattern, flags))


class _Expression:
    def __init__(self, pattern: Any, flags: int) -> None:
        self._given = pattern, flags

    def __getattr__(self, name: str) -> Any:
        # What is found once is kept: from then on a use costs what it costs with a compiled expression.
        value = getattr(re.compile(*self._given), name)
        setattr(self, name, value)
        return value
