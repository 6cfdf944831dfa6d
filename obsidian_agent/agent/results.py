"""Results of calls as a model gets them: data inside a fence, errors as a small object without anything of this machine in it."""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from obsidian_agent.agent.foreign import fence, neutral
from obsidian_agent.errors import Problem
from obsidian_agent.providers.redact import redact

MOST_CHARACTERS: Final = 200_000
"""Characters of one result; what is longer is cut, visibly."""

_QUOTED_PATH = re.compile(r"""(['"])(?:/|[A-Za-z]:[\\/]|\\\\)[^'"\n]*\1""")


@dataclass(frozen=True, slots=True)
class Scrubber:
    """Takes places on this machine and keys out of messages."""

    roots: tuple[str, ...]

    @classmethod
    def of(cls, *folders: str) -> Scrubber:
        """For the vault's own folder and others; the home folder and the one for temporary files are always among them."""
        known = {*folders, str(Path.home()), tempfile.gettempdir()}
        return cls(tuple(sorted((root for root in known if len(root) > 1), key=len, reverse=True)))

    def clean(self, message: str) -> str:
        """The message with `…` for each absolute path."""
        message = _QUOTED_PATH.sub("'…'", message)
        for root in self.roots:
            message = re.sub(rf"{re.escape(root)}(?=[/\\\s'\".,:;)]|$)[^\s'\"]*", "…", message)
        return neutral(redact(message)).replace("\n", " ")


def error_text(problems: Iterable[Problem], scrubber: Scrubber, usage: Sequence[str] = ()) -> str:
    """`{"error": {code, message}}`, with `problems` when there are several, and `usage`: the right signatures."""
    told = [{name: scrubber.clean(value) for name, value in problem.to_json().items()} for problem in problems]
    document: dict[str, Any] = {"error": told[0] if len(told) == 1 else {"code": told[0]["code"], "message": told[0]["message"]}}
    if len(told) > 1:
        document["problems"] = told
    if usage:
        document["usage"] = list(usage)
    return json.dumps(document, ensure_ascii=False)


def result_text(label: str, document: Mapping[str, Any], mark: str) -> str:
    """An output as data: one JSON object, and the contents of files after it, each in a fence of its own and as it reads."""
    contents: list[tuple[str, str]] = []
    bare = _without_contents(document, contents)
    parts = [fence(label, _cut(json.dumps(bare, ensure_ascii=False, default=str)), mark)]
    parts += [fence(f"content of {name}", _cut(text), mark) for name, text in contents]
    return "\n\n".join(parts)


def _without_contents(value: Any, contents: list[tuple[str, str]]) -> Any:
    match value:
        case {"path": str(path), "content": str(text), **rest}:
            contents.append((neutral(json.dumps(path, ensure_ascii=False)), text))
            return {"path": path, "content": "(below)", **{name: _without_contents(each, contents) for name, each in rest.items()}}
        case dict():
            return {name: _without_contents(each, contents) for name, each in value.items()}
        case list():
            return [_without_contents(each, contents) for each in value]
        case _:
            return value


def _cut(text: str) -> str:
    if len(text) <= MOST_CHARACTERS:
        return text
    return f"{text[:MOST_CHARACTERS]}\n[cut: {len(text) - MOST_CHARACTERS:,} more characters; ask for less at a time]"
