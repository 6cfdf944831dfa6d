"""Expressions hold on every Python that the project runs on."""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Iterator
from typing import Any

import obsidian_agent
from obsidian_agent.expression import _Expression

MODULES = [
    each.name
    for each in pkgutil.walk_packages(obsidian_agent.__path__, "obsidian_agent.")
    if not each.name.endswith("__main__")
]


def repeated_possessively(parsed: Any) -> Iterator[Any]:
    """Yield the expressions under a possessive quantifier, at any depth."""
    for operator, argument in parsed:
        if operator.name == "POSSESSIVE_REPEAT":
            yield argument[2]
        for part in argument if isinstance(argument, tuple) else (argument,):
            for each in part if isinstance(part, list) else (part,):
                if type(each).__name__ == "SubPattern":
                    yield from repeated_possessively(each)


def test_no_group_is_repeated_possessively() -> None:
    """Before Python 3.11.5 `(?:a|b)*+` misses matches (CPython 106052); `(?>(?:a|b)*)` does not."""
    parser: Any = importlib.import_module("re._parser")
    for module in MODULES:
        for name, value in vars(importlib.import_module(module)).items():
            if isinstance(value, re.Pattern) or (
                isinstance(value, _Expression) and value.package == "re"
            ):
                flags = value.flags if isinstance(value.pattern, str) else value.flags & ~re.UNICODE
                for repeated in repeated_possessively(parser.parse(value.pattern, flags)):
                    assert [part[0].name for part in repeated][1:] == [], (module, name, repeated)
                    assert repeated[0][0].name in ("IN", "LITERAL", "NOT_LITERAL", "ANY"), (
                        module,
                        name,
                        repeated,
                    )
