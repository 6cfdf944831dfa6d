"""Regular expressions that are compiled when they are first used: modules that every start needs define 250, and few commands use half of them."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, AnyStr, cast

if TYPE_CHECKING:
    import re

    import regex


def expression(pattern: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """What `re.compile` gives, as far as its methods and attributes go. Raises `re.error` on first use."""
    return cast("re.Pattern[AnyStr]", _Expression("re", pattern, flags))


def unicode_expression(pattern: str) -> regex.Pattern[str]:
    r"""The same of the package `regex`, which knows scripts and properties of characters (`\p{L}`); it is imported with the first of them."""
    return cast("regex.Pattern[str]", _Expression("regex", pattern))


class _Expression:
    def __init__(self, package: str, *given: Any) -> None:
        self.package, self._given = package, given

    def __getattr__(self, name: str) -> Any:
        # What is found once is kept: from then on a use costs what it costs with a compiled expression.
        value = getattr(import_module(self.package).compile(*self._given), name)
        setattr(self, name, value)
        return value
