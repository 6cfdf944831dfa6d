"""What a proposal has replaced in an overlay's tables so far, so that one that fails half way leaves nothing behind."""

from __future__ import annotations

from typing import Any, TypeVar

K = TypeVar("K")
V = TypeVar("V")

_ABSENT: Any = object()


class Trail:
    """Every change to a table goes through one of these; `rewind` puts back what there was at the last `clear`."""

    def __init__(self) -> None:
        self._replaced: list[tuple[dict[Any, Any], Any, Any]] = []

    def put(self, table: dict[K, V], key: K, value: V) -> None:
        """Enter a value."""
        self._replaced.append((table, key, table.get(key, _ABSENT)))
        table[key] = value

    def drop(self, table: dict[K, V], key: K) -> None:
        """Take a value out, if it is there."""
        if key in table:
            self._replaced.append((table, key, table.pop(key)))

    def clear(self) -> None:
        """What was done so far stays."""
        self._replaced.clear()

    def rewind(self) -> None:
        """Take back everything since the last `clear`, last first."""
        while self._replaced:
            table, key, value = self._replaced.pop()
            if value is _ABSENT:
                del table[key]
            else:
                table[key] = value
