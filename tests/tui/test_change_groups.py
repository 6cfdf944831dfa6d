from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from obsidian_agent.tui.change_groups import (
    MAX_GROUPS,
    LineEdit,
    edit_of,
    grouped,
    kinds_of,
    path_parts,
    shortened_pair,
    shortened_path,
)
from obsidian_agent.tui.diff_lines import parse_diff
from obsidian_agent.vault.views.changes import ChangeSet, NetChange
from obsidian_agent.vault.views.diff import unified_diff
from tui.samples import change

KIND = kinds_of(ChangeSet())
names = st.text(st.sampled_from("ab c日"), min_size=1, max_size=6)
paths = st.lists(names, min_size=1, max_size=8).map("/".join)


def edit(before: str, after: str) -> LineEdit:
    return edit_of(parse_diff(unified_diff(before.encode(), after.encode(), "a", "a")))


def label(parts: tuple[tuple[str, str], ...]) -> str:
    return "".join(text for text, _ in parts).strip()


def edited(count: int, folder: str = "Uni") -> list[NetChange]:
    return [change("modify", f"{folder}/{number}.md", content=b"x") for number in range(count)]


def test_equal_edits_are_one_group_with_the_edit_as_its_label() -> None:
    changes = edited(353)
    edits = {
        item.path.text: edit(
            f"---\na: {number}\n---\n", f"---\na: {number}\nreviewed: false\n---\n"
        )
        for number, item in enumerate(changes)
    }
    other = change("modify", "Uni/other.md", content=b"x")
    groups = grouped([*changes, other], KIND, edits | {other.path.text: edit("a\n", "b\n")})
    assert [(len(group.changes), label(group.label)) for group in groups] == [
        (353, "+ reviewed: false"),
        (1, "in Uni/"),
    ]


def test_edits_that_replace_the_same_word_in_other_lines_are_equal() -> None:
    changes = edited(5)
    edits = {
        item.path.text: edit(f"{number} #clip now\n", f"{number} #web now\n")
        for number, item in enumerate(changes)
    }
    (group,) = grouped(changes, KIND, edits)
    assert label(group.label) == "clip → web"


def test_renamed_files_are_grouped_by_their_folders() -> None:
    changes = [
        change("rename", f"Uni/archive/{number}.md", f"Uni/done/{number}.md")
        for number in range(384)
    ]
    (group,) = grouped(changes, KIND, {})
    assert (group.is_folded, label(group.label)) == (True, "Uni/archive/ → Uni/done/")


def test_many_small_groups_become_one() -> None:
    changes = [change("delete", f"{number}/a.md") for number in range(40)]
    changes += [change("delete", f"Big/{number}.md") for number in range(10)]
    big, rest = grouped(changes, KIND, {})
    assert (len(big.changes), len(rest.changes), label(rest.label)) == (10, 40, "in 40 folders")


@given(st.lists(st.tuples(st.sampled_from(["delete", "create", "modify"]), paths), max_size=60))
def test_every_change_is_in_one_group_and_the_rows_are_few(drawn: list[tuple[str, str]]) -> None:
    changes = [change(kind, path, content=b"x") for kind, path in drawn]
    groups = grouped(changes, KIND, {})
    assert sorted(id(item) for group in groups for item in group.changes) == sorted(
        id(item) for item in changes
    )
    rows = sum(1 if group.is_folded else len(group.changes) for group in groups)
    assert rows <= 3 * MAX_GROUPS


@given(paths, paths, st.integers(10, 60))
def test_shortened_paths_keep_what_differs(old: str, new: str, room: int) -> None:
    short = shortened_pair(old, new, room)
    assert (short[0] == short[1]) == (old == new)
    if old != new and old.count("/") == new.count("/"):
        for mine, theirs in zip(old.split("/"), new.split("/"), strict=True):
            if mine != theirs:
                assert mine in short[0].split("/")
                assert theirs in short[1].split("/")


def test_paths_are_shortened_where_they_are_equal() -> None:
    assert shortened_pair("Areas/Uni/2023/archive/", "Areas/Uni/2023/done/", 30) == (
        "…/2023/archive/",
        "…/2023/done/",
    )
    assert shortened_path("Areas/Uni/2023/archive/Note.md", 24) == ("Areas/…/archive/", "Note.md")
    folder, name = shortened_path("A very long name that goes on, part 1.md", 20)
    assert (folder, len(name), name[-9:]) == ("", 20, "part 1.md")


@pytest.mark.parametrize(
    ("old", "new", "text"),
    [
        ("Uni/archive/Note.md", None, "Uni/archive/Note.md"),
        ("Uni/archive/Note.md", "Uni/done/Note.md", "Note.md  Uni/archive/ → Uni/done/"),
        (
            "Uni/archive/Note.md",
            "Projects/Long/Done in 2025/Note.md",
            "Note.md  → Projects/Long/Done in 2025",
        ),
        ("Note.md", "Uni/Old.md", "Note.md → Uni/Old.md"),
        ("Uni/a  b.md", None, "Uni/“a  b.md”"),
    ],
)
def test_what_moved_is_named_once_with_both_folders(old: str, new: str | None, text: str) -> None:
    assert "".join(part for part, _ in path_parts(old, new, 40)) == text
