"""Columns of the index file: lists of texts and of lists of numbers, read in place from mapped bytes.

Only what a question touches becomes Python objects. That is what keeps a hundred thousand notes small and a start quick.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import accumulate
from typing import Any, Final, Literal

from obsidian_agent.vault.index_file import Buffer, UnusableIndex

Sections = Mapping[str, memoryview]
NumberKind = Literal["B", "I", "Q", "q"]
"""Kinds of numbers as `array` names them: bytes, ids, offsets, signed ones."""

IDS: Final = "I"
LONG: Final = "Q"


def numbers(sections: Sections, name: str, kind: NumberKind) -> memoryview:
    """A column of numbers of one kind of `array`."""
    try:
        return sections[name].cast(kind)
    except (KeyError, TypeError) as error:
        raise UnusableIndex(f"no column {name}") from error


class Texts:
    """A list of UTF-8 texts."""

    def __init__(self, sections: Sections, name: str) -> None:
        self._ends = numbers(sections, f"{name}.ends", LONG)
        self._data = numbers(sections, name, "B")

    def __len__(self) -> int:
        return len(self._ends)

    def raw(self, at: int) -> memoryview:
        """The bytes of a text."""
        return self._data[self._ends[at - 1] if at else 0 : self._ends[at]]

    def __getitem__(self, at: int) -> str:
        return str(self.raw(at), "utf-8", "surrogatepass")

    def range_of(self, key: Any, key_of: Callable[[str], Any]) -> range:
        """Where the texts with a key are; the list must be sorted by `key_of`."""
        low = bisect_left(range(len(self)), key, key=lambda at: key_of(self[at]))
        high = low
        while high < len(self) and key_of(self[high]) == key:
            high += 1
        return range(low, high)


class Rows:
    """A list of lists of ids."""

    def __init__(self, sections: Sections, name: str) -> None:
        self._ends = numbers(sections, f"{name}.ends", LONG)
        self._ids = numbers(sections, name, IDS)

    def __len__(self) -> int:
        return len(self._ends)

    def __getitem__(self, at: int) -> memoryview:
        return self._ids[self._ends[at - 1] if at else 0 : self._ends[at]]


def text_column(name: str, texts: Iterable[str | bytes]) -> dict[str, Iterable[Buffer]]:
    """The sections of a `Texts`."""
    encoded = [text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass") for text in texts]
    ends = array(LONG, accumulate(map(len, encoded)))
    return {name: [b"".join(encoded)], f"{name}.ends": [ends.tobytes()]}


def row_column(name: str, rows: Sequence[bytes]) -> dict[str, Iterable[Buffer]]:
    """The sections of a `Rows`, from the bytes of arrays of ids."""
    width = array(IDS).itemsize
    ends = array(LONG, accumulate([len(row) // width for row in rows]))
    return {name: [b"".join(rows)], f"{name}.ends": [ends.tobytes()]}


def number_column(name: str, kind: NumberKind, values: Iterable[int]) -> dict[str, Iterable[Buffer]]:
    """The section of a column of numbers."""
    return {name: [array(kind, values).tobytes()]}
