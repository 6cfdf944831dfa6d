"""The law of queries after a rename: each mention is rewritten or listed, and finds the same notes.

More than 1,000 generated queries of every language are held against it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st

from obsidian_agent.vault.paths import path as paths
from obsidian_agent.vault.paths.path import PathUse, VaultPath
from obsidian_agent.vault.refactor.queries import rewrite_queries
from obsidian_agent.vault.refactor.query_renames import (
    MoveInQueries,
    PropertyInQueries,
    Rename,
    TagInQueries,
    ValueInQueries,
)
from obsidian_agent.vault.refactor.rename_links import FileMoves
from obsidian_agent.vault.refactor.tags import TagRename, retag
from obsidian_agent.vault.views.disk import DiskView
from support import MakeVault

NOTE = paths.parse("Note.md", PathUse.READ)

Lines = Mapping[str, tuple[str, ...]]

TAG: Lines = {
    "dataview": (
        "LIST FROM #{}",
        'TABLE x FROM #{} AND "Folder"',
        'LIST WHERE contains(file.tags, "#{}")',
        "LIST FROM -#{}/sub OR #other",
    ),
    "tasks": ("tags include #{}", "NOT (tag includes #{})", "description includes #{}"),
    "query": ("tag:#{}", "-tag:{} word", "#{} OR #other"),
    "base": ("filters: file.hasTag('{}')", 'filters: file.tags.contains("{}")'),
    "dataviewjs": ('dv.pages("#{}")',),
}
PROPERTY: Lines = {
    "dataview": ("LIST WHERE {} = 1", 'TABLE {} AS "x"', "LIST SORT {} DESC", "LIST WHERE this.{}"),
    "tasks": ("filter by function task.file.property('{}') === 1",),
    "query": ("[{}]", "[{}:5]", '["{}":word]'),
    "base": ("filters: {} == 1", "filters: note.{} > 2", "groupBy: note.{}"),
    "dataviewjs": ("dv.pages().where(p => p.{})",),
}
VALUE: Lines = {
    "dataview": (
        'LIST WHERE status = "{}"',
        'LIST WHERE contains(status, "{}")',
        'LIST WHERE row["status"] != "{}"',
        'LIST WHERE contains(list("{}"), status)',
    ),
    "tasks": ("filter by function task.file.property('status') === '{}'",),
    "query": ("[status:{}]", '[status:"{}"]'),
    "base": ("filters: status == '{}'", 'filters: note["status"] != "{}"'),
    "dataviewjs": ("dv.pages().where(p => p.status == '{}')",),
}
FOLDER: Lines = {
    "dataview": (
        'LIST FROM "{}"',
        'TABLE x FROM "{}/Sub" AND #other',
        'LIST WHERE file.folder = "{}"',
        'LIST WHERE startswith(file.folder, "{}")',
    ),
    "tasks": (
        "path includes {}/",
        "NOT (folder includes {})",
        "filter by function task.file.folder === '{}/'",
    ),
    "query": ("path:{}", '-path:"{}/Sub" word'),
    "base": ("filters: file.inFolder('{}')", 'filters: file.folder == "{}/Sub"'),
    "dataviewjs": ("dv.pages('\"{}\"')",),
}
TITLE: Lines = {
    "dataview": (
        "LIST FROM [[{}]]",
        'LIST FROM "Folder/{}"',
        "LIST FROM outgoing([[{}]]) AND #other",
        "LIST WHERE contains(file.outlinks, [[{}]])",
    ),
    "tasks": ("path includes {}.md", "filename includes {}", "path includes Folder/{}"),
    "query": ("file:{}", 'path:"Folder/{}"'),
    "base": ("filters: file.hasLink('{}')", 'filters: file.name == "{}"'),
    "dataviewjs": ("dv.page('{}')",),
}
OTHER: Lines = {
    "dataview": ("LIST WHERE rating > 1", 'LIST FROM #unrelated WHERE kind = "new"'),
    "tasks": ("not done", "due before tomorrow"),
    "query": ("word", "path:Journal", "[kind:new]"),
    "base": ("limit: 5", "filters: rating > 1"),
    "dataviewjs": ("dv.list([1, 2])",),
}
NAMES = st.sampled_from(
    [("book", "novel"), ("review", "check-up"), ("Übung", "drill"), ("a1", "b")]
)


class Block(NamedTuple):
    language: str
    line: str
    is_mention: bool


def blocks_of(mentions: Lines) -> st.SearchStrategy[list[Block]]:
    lines = [
        Block(language, line, is_mention)
        for source, is_mention in ((mentions, True), (OTHER, False))
        for language, templates in source.items()
        for line in templates
    ]
    return st.lists(st.sampled_from(lines), min_size=1, max_size=4)


def note_of(blocks: list[Block], name: str, mark: str) -> str:
    parts = [
        f"{mark}```{block.language}\n{mark}{block.line.format(name)}\n{mark}```\n"
        for block in blocks
    ]
    return "Text.\n\n" + "\n".join(parts)


def check(blocks: list[Block], rename: Rename, names: tuple[str, str], mark: str) -> int:
    """Check one note. Return the number of rewritten mentions."""
    old, new = names
    before = note_of(blocks, old, mark)
    after = rewrite_queries(NOTE, before.encode(), rename)
    lines = before.split("\n")
    changed = after.content.decode().split("\n")
    assert len(lines) == len(changed)
    listed = {doubt.line for doubt in after.doubts}
    number = 4
    expected = list(lines)
    for block in blocks:
        if block.is_mention:
            line = changed[number - 1]
            is_rewritten = new in line and old not in line
            assert is_rewritten or number in listed, (block, line)
            if is_rewritten:
                expected[number - 1] = line
        else:
            assert number not in listed, block
        number += 4
    assert changed == expected
    return after.count


marks = st.sampled_from(["", "> "])
Story = Callable[..., None]


def held(mentions: Lines) -> Callable[[Story], Story]:
    def decorate(law: Story) -> Story:
        story: Any = given(blocks_of(mentions), NAMES, marks)(law)
        return settings(max_examples=334, deadline=None)(story)

    return decorate


@held(TAG)
def test_each_mention_of_a_tag_is_rewritten_or_listed(
    blocks: list[Block], names: tuple[str, str], mark: str
) -> None:
    check(blocks, TagInQueries(TagRename.parse(*names)), names, mark)


@held(PROPERTY)
def test_each_mention_of_a_property_is_rewritten_or_listed(
    blocks: list[Block], names: tuple[str, str], mark: str
) -> None:
    check(blocks, PropertyInQueries(*names), names, mark)


@held(VALUE)
def test_each_mention_of_a_value_is_rewritten_or_listed(
    blocks: list[Block], names: tuple[str, str], mark: str
) -> None:
    check(blocks, ValueInQueries("status", frozenset(names[:1]), names[1]), names, mark)


MOVES = st.sampled_from([("Book", "Novel"), ("Old work", "Drill"), ("Übung", "R & D")])


def check_moves(view: DiskView, mentions: Lines, *, is_folder: bool) -> None:
    """Check generated notes after the move of a folder, or of a note in `Folder`."""

    @settings(max_examples=334, deadline=None)
    @given(blocks_of(mentions), MOVES, marks)
    def law(blocks: list[Block], names: tuple[str, str], mark: str) -> None:
        old, new = (parsed(name if is_folder else f"Folder/{name}.md") for name in names)
        inside = {parsed(f"{names[0]}/Sub/a.md"): parsed(f"{names[1]}/Sub/a.md")}
        moves = FileMoves(moved=inside if is_folder else {old: new})
        rename = MoveInQueries(view.index, moves, old, new, is_folder=is_folder)
        rename.source = NOTE
        check(blocks, rename, names, mark)

    law()


def parsed(path: str) -> VaultPath:
    return paths.parse(path, PathUse.READ)


def test_each_mention_of_a_folder_is_rewritten_or_listed(make_vault: MakeVault) -> None:
    files = {f"{name}/Sub/a.md": "x" for name in ("Book", "Old work", "Übung")}
    check_moves(DiskView(make_vault({**files, "Note.md": "x"})), FOLDER, is_folder=True)


def test_each_mention_of_a_note_is_rewritten_or_listed(make_vault: MakeVault) -> None:
    files = {f"Folder/{name}.md": "x" for name in ("Book", "Old work", "Übung")}
    check_moves(DiskView(make_vault({**files, "Note.md": "x"})), TITLE, is_folder=False)


# --- queries that can be evaluated ------------------------------------------------------------------

TAGS = ("book", "book/old", "books", "other")
notes_with_tags = st.lists(st.lists(st.sampled_from(TAGS), max_size=3), min_size=1, max_size=8)
sources = st.recursive(
    st.sampled_from([f"#{tag}" for tag in TAGS]),
    lambda inner: (
        st.builds("({} {} {})".format, inner, st.sampled_from(["and", "or"]), inner)
        | st.builds("-{}".format, inner)
    ),
    max_leaves=5,
)
conditions = st.recursive(
    st.sampled_from([f'file.hasTag("{tag}")' for tag in TAGS]),
    lambda inner: (
        st.builds("({} {} {})".format, inner, st.sampled_from(["&&", "||"]), inner)
        | st.builds("!{}".format, inner)
    ),
    max_leaves=5,
)


def has_tag(tags: list[str], tag: str) -> bool:
    return any(own == tag or own.startswith(f"{tag}/") for own in tags)


def result_of(query: str, notes: list[list[str]]) -> list[bool]:
    """Evaluate the source of a Dataview query or the filter of a base for the tags of notes."""
    python = re.sub(r'file\.hasTag\("([^"]+)"\)|#([\w/]+)', r'has("\1\2")', query)
    for old, new in (("&&", " and "), ("||", " or "), ("!", " not "), ("-", " not ")):
        python = python.replace(old, new)
    return [
        bool(eval(python, {"has": lambda tag, tags=tags: has_tag(tags, tag)})) for tags in notes
    ]


def tags_after(tags: list[str], rename: TagRename) -> list[str]:
    text = "".join(f"#{tag}\n" for tag in tags).encode()
    return retag(text, rename, "Note.md")[0].decode().replace("#", "").split()


@settings(max_examples=300, deadline=None)
@given(sources, notes_with_tags, st.sampled_from(["novel", "shelf/novel"]))
def test_a_dataview_source_finds_the_same_notes_after_a_rename_of_a_tag(
    source: str, notes: list[list[str]], new: str
) -> None:
    rename = TagRename.parse("book", new)
    text = f"```dataview\nLIST FROM {source}\n```\n"
    done = rewrite_queries(NOTE, text.encode(), TagInQueries(rename))
    assert done.doubts == ()
    after = done.content.decode().split("FROM ")[1].split("\n")[0]
    assert result_of(source, notes) == result_of(
        after, [tags_after(tags, rename) for tags in notes]
    )


@settings(max_examples=300, deadline=None)
@given(conditions, notes_with_tags, st.sampled_from(["novel", "shelf/novel"]))
def test_a_base_finds_the_same_notes_after_a_rename_of_a_tag(
    condition: str, notes: list[list[str]], new: str
) -> None:
    rename = TagRename.parse("book", new)
    text = f"filters: '{condition}'\n"
    base = paths.parse("Note.base", PathUse.READ)
    done = rewrite_queries(base, text.encode(), TagInQueries(rename))
    assert done.doubts == ()
    after = done.content.decode().removeprefix("filters: '").removesuffix("'\n")
    assert result_of(condition, notes) == result_of(
        after, [tags_after(tags, rename) for tags in notes]
    )
