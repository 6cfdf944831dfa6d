"""`vault.countWords`: words and characters of notes, as Obsidian counts them."""

from __future__ import annotations

import re
from typing import Final

from pydantic import Field

from obsidian_agent.errors import Problem
from obsidian_agent.tools.base import Proposal, Risk, Tool, ToolContext, ToolModel
from obsidian_agent.tools.sources import NotesInput
from obsidian_agent.vault import frontmatter
from obsidian_agent.vault.text import BOM

_WORD: Final = re.compile(
    r"\d+(?:[.,]\d+)*|[^\W\d_぀-ヿ一-鿿가-힯][^\W_぀-ヿ一-鿿]*(?:['’\-][^\W_]+)*"
    r"|[぀-ヿ一-鿿]"
)
"""A number, a word with what apostrophes and hyphens join, or one character of a script without blanks."""


class CountedNote(ToolModel):
    path: str
    words: int
    characters: int = Field(description="Blanks and line ends included.")


class CountWordsOutput(ToolModel):
    files: list[CountedNote]
    words: int
    characters: int
    count: int = Field(description="The number of notes.")


def _count_words(args: NotesInput, ctx: ToolContext) -> Proposal:
    problems: list[Problem] = []
    files = []
    for path, text in args.texts(ctx, problems):
        front = frontmatter.span(text)
        body = text[front.body_start :] if front is not None else text.removeprefix(BOM)
        files.append(CountedNote(path=path.text, words=sum(1 for _ in _WORD.finditer(body)), characters=len(body)))
    output = CountWordsOutput(
        files=files, words=sum(file.words for file in files), characters=sum(file.characters for file in files), count=len(files)
    )
    return Proposal(output, warnings=tuple(problems))


COUNT_WORDS = Tool(
    name="vault.countWords",
    summary="The words and characters of a note, of some notes or of a folder, without properties.",
    risk=Risk.READ_ONLY,
    input=NotesInput,
    output=CountWordsOutput,
    propose=_count_words,
)
