"""Regular expressions that are compiled on first use.

The modules that every command imports define 250 of them, and few commands use half.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, AnyStr, cast

if TYPE_CHECKING:
    import re

    import regex


def expression(pattern: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """Return a lazily compiled `re.Pattern`. Using an invalid one raises `re.error`."""
    return cast("re.Pattern[AnyStr]", _Expression("re", pattern, flags))


def unicode_expression(pattern: str) -> regex.Pattern[str]:
    r"""Return a lazily compiled `regex.Pattern`, which knows Unicode properties (`\p{L}`)."""
    return cast("regex.Pattern[str]", _Expression("regex", pattern))


class _Expression:
    def __init__(self, package: str, *args: Any) -> None:
        self.package, self._args = package, args

    def __getattr__(self, name: str) -> Any:
        # Cached, so that later uses cost as much as those of a compiled expression.
        value = getattr(import_module(self.package).compile(*self._args), name)
        setattr(self, name, value)
        return value
