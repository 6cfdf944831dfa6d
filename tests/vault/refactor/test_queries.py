"""Queries after a rename: every name is rewritten or listed, and no other byte changes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from obsidian_agent.vault.filesystem.store import VaultStore
from obsidian_agent.vault.paths import path as paths
from obsidian_agent.vault.paths.path import ROOT, PathUse
from obsidian_agent.vault.refactor.queries import (
    RewrittenQueries,
    files_with_queries,
    rewrite_queries,
)
from obsidian_agent.vault.refactor.query_renames import (
    MoveInQueries,
    PropertyInQueries,
    Rename,
    TagInQueries,
    ValueInQueries,
)
from obsidian_agent.vault.refactor.rename_links import FileMoves
from obsidian_agent.vault.refactor.tags import TagRename
from obsidian_agent.vault.views.disk import DiskView

NOTE = paths.parse("Note.md", PathUse.READ)
BASE = paths.parse("Note.base", PathUse.READ)


_LABEL = re.compile(r"\s*(?:- )?(?:type|name|displayName|file\.name):")
"""A line of a base that names a view or a column."""


def retagged(text: str, old: str, new: str, *, base: bool = False) -> RewrittenQueries:
    rename = TagInQueries(TagRename.parse(old, new))
    return rewrite_queries(BASE if base else NOTE, text.encode(), rename)


def with_property(text: str, old: str, new: str, *, base: bool = False) -> RewrittenQueries:
    return rewrite_queries(BASE if base else NOTE, text.encode(), PropertyInQueries(old, new))


def block(language: str, *lines: str) -> str:
    return "\n".join(["text", f"```{language}", *lines, "```", "text", ""])


@pytest.mark.parametrize(
    ("language", "before", "after"),
    [
        ("dataview", "LIST FROM #book AND #book/old", "LIST FROM #novel AND #novel/old"),
        ("dataview", "LIST FROM #books", "LIST FROM #books"),
        (
            "dataview",
            'LIST WHERE contains(file.tags, "#book")',
            'LIST WHERE contains(file.tags, "#novel")',
        ),
        (
            "dataview",
            'LIST WHERE econtains(tags, "book")',
            'LIST WHERE econtains(tags, "novel")',
        ),
        (
            "tasks",
            "(tags include #book) OR (tag includes book)",
            "(tags include #novel) OR (tag includes novel)",
        ),
        ("tasks", "description includes #book", "description includes #novel"),
        ("query", "tag:#book -tag:book #book", "tag:#novel -tag:novel #novel"),
        ("query", "[tags:book]", "[tags:novel]"),
        ("base", "filters: file.hasTag('a', \"book\")", "filters: file.hasTag('a', \"novel\")"),
    ],
)
def test_a_tag_is_renamed(language, before, after):
    done = retagged(block(language, before), "book", "novel")
    assert done.content.decode() == block(language, after)
    assert done.doubts == ()


@pytest.mark.parametrize(
    ("language", "line"),
    [
        ("dataviewjs", 'dv.list(dv.pages("#book"))'),
        ("tasks", "filter by function task.tags.includes('#book')"),
        ("tasks", r"description regex matches /#book/"),
        ("tasks", "tags include boo"),
        ("query", r"/book\d/"),
        ("dataview", 'LIST WHERE x = "book"'),
        ("base", "filters: /book/.matches(file.name)"),
        ("base", "filters: &a file.hasTag('book')"),
    ],
)
def test_what_cannot_be_rewritten_is_listed_with_its_line(language, line):
    text = block(language, "", line)
    done = retagged(text, "book", "novel")
    assert done.content.decode() == text
    assert [doubt.line for doubt in done.doubts] == [4]


@pytest.mark.parametrize(
    ("language", "before", "after"),
    [
        (
            "dataview",
            'TABLE rating AS "rating", file.rating FROM #rating WHERE this.rating > rating',
            'TABLE score AS "rating", file.rating FROM #rating WHERE this.score > score',
        ),
        ("dataview", 'LIST WHERE row["rating"]', 'LIST WHERE row["score"]'),
        ("tasks", "filter by function task.file.property('rating')", None),
        ("query", '[rating:5] ["rating"]', '[score:5] ["score"]'),
    ],
)
def test_a_property_is_renamed(language, before, after):
    done = with_property(block(language, before), "rating", "score")
    after = before.replace("rating", "score") if after is None else after
    assert done.content.decode() == block(language, after)
    assert done.doubts == ()


VALUE = ValueInQueries("status", frozenset(("to do",)), "next")


@pytest.mark.parametrize(
    ("language", "line"),
    [
        ("dataview", 'LIST WHERE status = "to do" AND this.status != "to do"'),
        ("dataview", 'LIST WHERE contains(status, "to do") AND row["status"] = "to do"'),
        ("query", '[status:"to do"]'),
        ("base", "filters: status == \"to do\" || note.status.contains('to do')"),
        ("base", 'filters: note["status"] == "to do" && list(status).containsAny("x", "to do")'),
    ],
)
def test_a_value_is_renamed(language, line):
    done = rewrite_queries(NOTE, block(language, line).encode(), VALUE)
    assert done.content.decode() == block(language, line.replace("to do", "next"))
    assert done.doubts == ()


@pytest.mark.parametrize(
    ("language", "line"),
    [
        ("dataview", 'LIST WHERE contains(status, "do")'),
        ("dataview", 'LIST FLATTEN status AS s WHERE s = "to do"'),
        ("dataview", 'LIST WHERE contains(list("to do", "x"), status)'),
        ("dataviewjs", "dv.pages().where(p => p.status == 'to do')"),
        ("query", "[status:to do]"),
        ("base", 'filters: formula.state == "to do" || /to do/.matches(status)'),
    ],
)
def test_a_value_that_cannot_be_renamed_is_listed(language, line):
    done = rewrite_queries(NOTE, block(language, line).encode(), VALUE)
    assert (done.count, [doubt.line for doubt in done.doubts]) == (0, [3])


@pytest.mark.parametrize(
    ("language", "line"),
    [
        ("dataview", 'LIST "to do" WHERE other = "to do"'),
        ("query", '[other:"to do"]'),
        ("base", "filters: other == 'to do'"),
    ],
)
def test_the_same_value_of_another_property_stays(language, line):
    done = rewrite_queries(NOTE, block(language, line).encode(), VALUE)
    assert done.count == 0


def test_a_property_with_blanks_has_its_dataview_name():
    done = with_property(block("dataview", "TABLE due-date"), "Due Date", "Last Day")
    assert done.content.decode() == block("dataview", "TABLE last-day")


def test_a_field_of_tasks_may_be_meant_instead():
    done = with_property(block("dataview", "TASK WHERE due"), "due", "deadline")
    assert (done.count, [doubt.line for doubt in done.doubts]) == (0, [3])


def test_inline_queries():
    text = "a `= this.rating + 1` `$= dv.current().rating` `rating`\n"
    done = with_property(text, "rating", "score")
    assert done.content.decode() == text.replace("this.rating", "this.score")
    assert [doubt.line for doubt in done.doubts] == [1]


def test_blocks_in_callouts_and_lists_with_windows_line_ends():
    text = "> ```dataview\r\n> LIST FROM #a\r\n> WHERE rating\r\n> ```\r\n- x\r\n  ```tasks\r\n  tags include #a\r\n  ```\r\n"
    assert with_property(text, "rating", "b").content.decode() == text.replace("rating", "b")
    assert retagged(text, "a", "b").content.decode() == text.replace("#a", "#b")


def test_a_block_shown_in_another_block_is_no_query():
    text = "````text\n```dataview\nLIST FROM #book\n```\n````\n"
    assert retagged(text, "book", "novel") == RewrittenQueries(text.encode())


A_BASE = """\
filters:
  and:
    - file.hasTag("book")
    - 'note.rating > 3 && tags.contains("book/old")'
    - "note[\\"rating\\"] != \\"book\\""
formulas:
  rating: rating * 2
properties:
  note.rating:
    displayName: rating
  formula.rating:
    displayName: x
views:
  - type: table
    name: rating
    order:
      - file.name
      - rating # as in the notes
      - formula.rating
    sort:
      - property: note.rating
        direction: ASC
    columnSize:
      note.rating: 20
"""


def test_a_base_follows_a_property():
    done = with_property(A_BASE, "rating", "score", base=True)
    expected = A_BASE
    for old in (
        "'note.rating >",
        'note[\\"rating',
        ": rating * 2",
        "  note.rating:\n    d",
        "- rating #",
        "property: note.rating",
        "      note.rating: 20",
    ):
        assert old in expected
        expected = expected.replace(old, old.replace("rating", "score"))
    assert done.content.decode() == expected
    assert done.doubts == ()


def test_the_display_names_of_early_bases_belong_to_properties():
    text = "display:\n  note.rating: rating\n  file.name: x\n"
    done = with_property(text, "rating", "score", base=True)
    assert done.content.decode() == text.replace("note.rating", "note.score")
    assert done.doubts == ()


def test_a_base_follows_a_tag():
    done = retagged(A_BASE, "book", "novel", base=True)
    assert done.content.decode() == A_BASE.replace('hasTag("book', 'hasTag("novel').replace(
        '"book/old', '"novel/old'
    )
    assert [doubt.line for doubt in done.doubts] == [5]


def test_a_property_that_is_no_identifier_in_a_base():
    done = with_property("filters: rating > 3\n", "rating", "my score", base=True)
    assert done.content.decode() == 'filters: note["my score"] > 3\n'
    text = "filters: note.rating > 3\n"
    done = with_property(text, "rating", "my score", base=True)
    assert (done.content.decode(), len(done.doubts)) == (text, 1)


TEMPLATES = (
    ("dataview", "TABLE {p}, file.{p} FROM #{t} AND -#{t}/x"),
    ("dataview", 'LIST WHERE contains(tags, "{t}") SORT {p} DESC'),
    ("dataview", 'TASK FROM "{t}" WHERE contains(file.etags, "#{t}") AND this.{p}'),
    ("tasks", "tags include #{t}"),
    ("tasks", "(tag includes {t}) AND (description includes #{t})"),
    ("tasks", "group by function task.file.property('{p}') + '{t}'"),
    ("query", 'tag:#{t} [{p}:"{t}"] -#{t}'),
    ("base", "filters: file.hasTag('{t}', \"{t}/x\") && {p} > note.{p}"),
    ("base", "views:\n  - name: {p}\n    order:\n      - {p}\n      - note.{p}"),
    ("dataviewjs", "dv.pages('#{t}').where(x => x.{p})"),
)
NAMES = st.from_regex(r"[a-z]{3,8}", fullmatch=True).map(lambda name: f"q{name}")


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.sampled_from(TEMPLATES), min_size=1, max_size=5),
    st.lists(NAMES, min_size=4, max_size=4, unique=True),
    st.sampled_from(["\n", "\r\n"]),
    st.booleans(),
)
def test_a_rename_and_back_gives_the_same_bytes(queries, names, newline, quoted):
    tag, prop, new_tag, new_prop = names
    text = "".join(
        block(language, *template.format(t=tag, p=prop).split("\n"))
        for language, template in queries
    )
    if quoted:
        text = re.sub("^", "> ", text, flags=re.MULTILINE)
    text = text.replace("\n", newline)
    once = with_property(
        retagged(text, tag, new_tag).content.decode(), prop, new_prop
    ).content.decode()
    back = with_property(retagged(once, new_tag, tag).content.decode(), new_prop, prop)
    assert back.content.decode() == text


def test_each_name_in_a_real_query_is_rewritten_or_listed(shared: Path) -> None:
    vaults = shared / "data" / "vaults"
    places = 0
    for file in sorted((*vaults.rglob("*.md"), *vaults.rglob("*.base"))):
        if not re.search(rb"```\s*(dataview|tasks|query)|`\$?=|views:", file.read_bytes()):
            continue
        path = BASE if file.suffix == ".base" else NOTE
        text = file.read_bytes().decode()
        for tag in sorted({*re.findall(r"#([A-Za-z][\w/-]+)", text)}):
            rename = TagInQueries(TagRename.parse(tag, "qqnew"))
            done = rewrite_queries(path, text.encode(), rename)
            places += done.count + len(done.doubts)
            back = TagInQueries(TagRename.parse("qqnew", tag))
            if f"#{tag.lower()}" not in text.replace(f"#{tag}", "").lower():
                assert rewrite_queries(path, done.content, back).content.decode() == text
            listed = {doubt.line for doubt in done.doubts}
            for number, line in enumerate(done.content.decode().split("\n"), start=1):
                call = re.search(
                    rf"(?:includes?|FROM|hasTag\(\"|pages\(')\s*#?{tag}(?![\w/-])", line
                )
                if call and not _is_example(done.content.decode(), number):
                    assert number in listed, (file.name, number, line)
    assert places > 10


@pytest.mark.parametrize("kind", ["property", "value", "folder", "note"])
def test_each_mention_in_a_real_query_is_rewritten_or_listed(shared: Path, kind: str) -> None:
    places = 0
    for vault in sorted((shared / "data" / "vaults").iterdir()):
        with VaultStore.open(vault) as store:
            view = DiskView(store)
            texts = {path: view.read(path).decode() for path in files_with_queries(view.index)}
            for rename, name, mention in renames_of(view, kind):
                for path, text in texts.items():
                    if name not in text:
                        continue
                    if isinstance(rename, MoveInQueries):
                        rename.source = path
                    done = rewrite_queries(path, text.encode(), rename)
                    places += done.count + len(done.doubts)
                    listed = {doubt.line for doubt in done.doubts}
                    lines = done.content.decode().split("\n")
                    for number, line in enumerate(text.split("\n"), start=1):
                        if number in listed or lines[number - 1] != line:
                            continue
                        is_query = path.suffix == ".base" or not _is_example(text, number)
                        if mention.search(line) and is_query and not _LABEL.match(line):
                            pytest.fail(f"{path}:{number} {line}")
    assert places > 30


def renames_of(view: DiskView, kind: str) -> Iterator[tuple[Rename, str, re.Pattern[str]]]:
    """Yield a rename of each name in a vault, the name, and a pattern for lines that mention it."""
    index = view.index
    notes = list(index.notes(ROOT))
    properties = [(n, v) for note in notes for n, v in index.facts(note).properties.items()]
    if kind == "property":
        for name in sorted({name for name, _ in properties} - {"tags", "tag"}):
            mention = rf"(?<![\w.(\"'-])(?:note\.)?{re.escape(name)}(?![\w-])"
            yield PropertyInQueries(name, "qqnew"), name, re.compile(mention)
    elif kind == "value":
        for name, value in properties:
            for text in value if isinstance(value, list) else [value]:
                if isinstance(text, str) and 2 < len(text) < 40 and name not in ("tags", "aliases"):
                    mention = rf"\b{re.escape(name)}\b.*(?<!\w){re.escape(text)}(?!\w)"
                    yield (
                        ValueInQueries(name, frozenset([text]), "qqnew"),
                        text,
                        re.compile(mention),
                    )
    elif kind == "folder":
        new = paths.parse("Qq new", PathUse.READ)
        for folder in sorted({path.parent for path in index.files() if not path.parent.is_root}):
            inside = {
                path: paths.parse(new.text + path.text[len(folder.text) :], PathUse.READ)
                for path in index.files()
                if path.within(folder)
            }
            moves = FileMoves(moved=inside)
            rename = MoveInQueries(index, moves, folder, new, is_folder=True)
            mention = rf"(?:(?<!link\()\"|includes ){re.escape(folder.text)}(?:/|\"|$)"
            yield rename, folder.text, re.compile(mention)
    else:
        for note in notes:
            new = paths.parse(f"{note.parent}/Qq new.md".lstrip("/"), PathUse.READ)
            moves = FileMoves(moved={note: new})
            rename = MoveInQueries(index, moves, note, new, is_folder=False)
            mention = rf"(?:\[\[|\"|includes ){re.escape(note.stem)}(?:\||\]\]|\"|\.md|$)"
            yield rename, note.stem, re.compile(mention)


def _is_example(text: str, number: int) -> bool:
    """Return True if a line is outside every query block."""
    fence = ""
    for line in text.split("\n")[: number - 1]:
        match = re.match(r"[\s>]*(`{3,})\s*(\w*)", line)
        if match and not fence:
            fence = match[1] + match[2]
        elif match and match[1] == re.sub(r"\w", "", fence) and not match[2]:
            fence = ""
    return not re.fullmatch("`+(dataview|dataviewjs|tasks|query)", fence)
