"""The promise as laws: a run does what the preview showed, undo restores it, other writes survive.

Each law is held for some stories in a plain run and for 2,000 under `-m soak`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, event, example, given, settings
from hypothesis import strategies as st

from faults import power_cut
from obsidian_agent.services.checks import verify
from obsidian_agent.vault.filesystem import inventory
from obsidian_agent.vault.views.changes import Move
from stories import (
    CARRY_OFF,
    EDITS,
    SHORTEN,
    Edit,
    Files,
    Found,
    edits,
    extras,
    off,
    places,
    plans,
    promised,
    vaults,
    visible,
    world,
)

Law = Callable[..., None]
NOTE: tuple[str, int] = ("old text", 0o644)


def held(examples: int) -> Callable[[Law], Law]:
    """For that many stories."""
    return settings(max_examples=examples, deadline=None, suppress_health_check=list(HealthCheck))


# --- preview, run, undo ---


def a_run_is_its_preview(
    files: Files,
    more: set[str],
    found: Found,
    switched_off: frozenset[int],
    others: list[Edit],
    deletes: bool,
    big: bool,
) -> None:
    """Other programs act between the preview and the run: it happens as shown, or not at all.

    `big`: no folder is small.
    """
    if not deletes:
        found = [one for one in found if one[0] != "vault.delete"]
    with (
        world(files, more, deletes=deletes) as home,
        patch.object(inventory, "HASHED_BYTES", 0 if big else inventory.HASHED_BYTES),
    ):
        start = home.seen()
        ready = home.preview(found, switched_off)
        assert home.seen() == start
        trashed = any(
            isinstance(one.operation, Move) and one.operation.trash
            for one in ready.change_set.operations
        )
        assert ready.valid == (deletes or not trashed), ready.errors
        home.do(others)
        before = home.seen()
        result = home.run(ready)
        event(result.status)
        if not ready.valid or result.status == "conflict":
            assert result.status == ("conflict" if ready.valid else "refused")
            assert others or not ready.valid, result.errors
            assert home.seen() == before
            return
        assert result.status == "done", result.errors
        after = home.seen()
        assert visible(after) == promised(before, ready)
        # A name that another program took and gave up again is as free as it was.
        theirs = {name for name in home.touched if start.get(name) != before.get(name)}
        assert {name for name in theirs if before.get(name) != after.get(name)} == set(), (
            "what others did since was taken along"
        )
        assert verify(ready, home.session.vault.view()) == ()
        if not ready.change_set.operations:
            assert after == before
            return
        for _ in range(2):
            assert not home.session.runs.undo(None).conflicts
            assert home.seen() == before
            assert not home.session.runs.redo().conflicts
            assert home.seen() == after
        assert not home.session.runs.undo(None).conflicts
        assert home.seen() == before


run_stories = given(
    files=vaults,
    more=extras,
    found=plans,
    switched_off=off,
    others=edits(max_size=2),
    deletes=st.booleans(),
    big=st.booleans(),
)
quiet = {"more": set(), "switched_off": frozenset(), "others": [], "deletes": True, "big": False}
run_examples: list[dict[str, Any]] = [
    {
        "files": {"two.md": NOTE},
        "found": [
            ("vault.rename", {"from": "two.md", "to": "one.md"}),
            ("vault.createFile", {"path": "two.md", "content": "new"}),
        ],
    },
    {
        "files": {"A/B/one.md": NOTE},
        "found": [
            ("vault.delete", {"path": "A/B", "recursive": True}),
            ("vault.rename", {"from": "A", "to": "A moved"}),
        ],
    },
    {
        "files": {},
        "found": [("vault.createFile", {"path": "one.md", "content": ""})],
        "others": [("take a name", 0, 0), ("remove", 0, 0)],
    },
    # A step that fails after it has trashed what is in its way.
    {
        "files": {"one.md": NOTE, "A/two.md": NOTE},
        "found": [("vault.rename", {"from": "one.md", "to": "a/two.md", "overwrite": True})],
    },
    # The file in the way is the one whose name is asked for, not its twin that was touched first.
    {
        "files": {"one.md": NOTE, "One.md": NOTE, "two.md": NOTE},
        "found": [
            ("vault.updateFile", {"path": "One.md", "mode": "append", "content": "x"}),
            ("vault.rename", {"from": "two.md", "to": "one.md", "overwrite": True}),
        ],
    },
    {
        "files": {"A/one.md": NOTE, "A/One.md": NOTE},
        "found": [
            ("vault.rename", {"from": "A", "to": "É moved"}),
            ("vault.delete", {"path": "É moved/One.md"}),
            ("vault.createFile", {"path": "É moved/one.md", "content": "new"}),
        ],
    },
    {
        "files": {"one.md": NOTE, "two.md": NOTE},
        "found": [("vault.rename", {"from": "one.md", "to": "two.md", "overwrite": True})],
        "deletes": False,
    },
    # Two names that differ in their Unicode form alone are two files, and so are two folders.
    *(
        {
            "files": {
                "Zw\u00f6lf.md": ("composed", 0o644),
                "Zwo\u0308lf.md": ("decomposed", 0o644),
                "one.md": NOTE,
            },
            "found": found,
        }
        for spelling, other in (
            ("Zw\u00f6lf.md", "Zwo\u0308lf.md"),
            ("Zwo\u0308lf.md", "Zw\u00f6lf.md"),
        )
        for found in (
            [
                ("vault.updateFile", {"path": spelling, "mode": "append", "content": "x"}),
                ("vault.delete", {"path": other}),
            ],
            [("vault.writeFile", {"path": path, "content": path}) for path in (spelling, other)],
            [
                ("vault.rename", {"from": spelling, "to": "two.md"}),
                ("vault.rename", {"from": other, "to": spelling}),
            ],
            [("vault.rename", {"from": "one.md", "to": spelling, "overwrite": True})],
            [
                ("vault.delete", {"path": spelling}),
                ("vault.createFile", {"path": other, "content": "new"}),
            ],
        )
    ),
    {
        "files": {"\u00c9/one.md": ("composed", 0o644), "E\u0301/one.md": ("decomposed", 0o644)},
        "found": [
            ("vault.rename", {"from": "\u00c9", "to": "A"}),
            ("vault.delete", {"path": "E\u0301/one.md"}),
        ],
    },
    {
        "files": {"A/one.md": NOTE},
        "found": [("vault.delete", {"path": "A", "recursive": True})],
        "others": [("new", 1, 0)],
    },
    {
        "files": {"A/one.md": NOTE},
        "found": [("vault.rename", {"from": "A", "to": "a moved"})],
        "others": [("same size", 0, 0)],
    },
]


def with_examples(stories: list[dict[str, Any]], usual: dict[str, Any]) -> Callable[[Law], Law]:
    def decorated(law: Law) -> Law:
        for story in stories:
            law = example(**{**usual, **story})(law)
        return law

    return decorated


@held(120)
@run_stories
@with_examples(run_examples, quiet)
def test_a_run_is_its_preview_or_nothing_and_undo_is_its_inverse(**story: Any) -> None:
    a_run_is_its_preview(**story)


@pytest.mark.soak
@held(2000)
@run_stories
def test_2000_runs_are_their_previews_or_nothing_and_undo_is_their_inverse(**story: Any) -> None:
    a_run_is_its_preview(**story)


# --- others at work between run, undo and redo ---


def related(one: str, other: str) -> bool:
    """Return True if one of two paths equals or contains the other."""
    return one == other or one.startswith(f"{other}/") or other.startswith(f"{one}/")


def undo_leaves_others_alone(
    files: Files, more: set[str], found: Found, first: list[Edit], second: list[Edit]
) -> None:
    """Undo, and the redo after it, restore untouched files and keep other programs' writes."""
    with world(files, more) as home:
        before = home.seen()
        ready = home.preview(found)
        if not ready.change_set.operations:
            return
        assert home.run(ready).status == "done"
        home.do(first)
        done = home.session.runs.undo(None)
        home.check_theirs()
        carried = any(kind == CARRY_OFF for kind, _, _ in [*first, *second])
        assert carried or done.errors == ()
        left = {
            *(one.path for one in done.conflicts),
            *(one.path for one in done.errors if one.path is not None),
        }
        assert first or not left
        now, after = home.seen(), places(before, ready)
        for name, entry in visible(before).items():
            names = [name, after[name]] if name in after else [name]
            excused = any(related(one, other) for one in names for other in home.touched | left)
            # What is told to be in the way may be on its way: at a place between the two.
            excused = excused or any(
                there == entry and related(one, other)
                for one, there in visible(now).items()
                for other in left
            )
            if not excused and (
                name in after or not any(path.startswith(".trash/") for path in left)
            ):
                assert visible(now).get(name) == entry, (name, done)
        home.do(second)
        if done.restored:
            assert home.session.runs.redo().errors == () or carried
            home.check_theirs()


others_stories = {"files": vaults, "more": extras, "found": plans}


@held(80)
@given(**others_stories, first=edits(), second=edits(max_size=2))
@example(
    files={"A/two.md": ("", 0o644)},
    more=set(),
    found=[
        ("vault.rename", {"from": "A", "to": "C d/in"}),
        ("vault.createFile", {"path": "A/one.md", "content": ""}),
        ("vault.rename", {"from": "C d", "to": "A moved"}),
    ],
    first=[("edit", 1, 0)],
    second=[],
)
@example(
    files={"A/one.md": ("", 0o644)},
    more={"way"},
    found=[("vault.rename", {"from": "A/one.md", "to": "way/one.md", "overwrite": True})],
    first=[],
    second=[],
)
def test_undo_and_redo_leave_alone_what_others_did(**story: Any) -> None:
    undo_leaves_others_alone(**story)


@pytest.mark.soak
@held(2000)
@given(**others_stories, first=edits(), second=edits(max_size=2))
def test_2000_undos_and_redos_leave_alone_what_others_did(**story: Any) -> None:
    undo_leaves_others_alone(**story)


# --- kills, and others at work before the recovery ---


def recovery_leaves_others_alone(
    files: Files,
    more: set[str],
    found: Found,
    during: str,
    cut: int,
    others: list[Edit],
    second: int,
    finish: bool,
) -> None:
    """Assert that an interrupted run, undo or redo is finished or rolled back."""
    with world(files, more) as home:
        before = home.seen()
        ready = home.preview(found)
        runs = home.session.runs
        with power_cut(cut if during == "run" else 1_000):
            home.run(ready)
        if during != "run" and ready.change_set.operations:
            with power_cut(cut if during == "undo" else 1_000):
                runs.undo(None)
            if during == "redo":
                with power_cut(cut):
                    runs.redo()
        broken = bool(runs.interrupted())
        event(f"{during} broken: {broken}")
        home.do(others)
        if broken:
            with power_cut(second):
                runs.recover(None, finish)
            if runs.interrupted():
                runs.recover(None, finish)
        assert runs.interrupted() == []
        home.check_theirs()
        if not others:
            now = home.seen()
            forward = (
                (finish or not broken) == (during != "undo")
                if broken or during != "undo"
                else False
            )
            assert visible(now) == (promised(before, ready) if forward else visible(before))
            if not forward:
                assert now == before


LINKED: Files = {"one.md": ("", 0o644), "A/one.md": ("", 0o644)}
LINKS = {"C d/near.md", "A/out", "A/pic.png"}

kills: dict[str, Any] = {
    **others_stories,
    "during": st.sampled_from(["run", "undo", "redo"]),
    "cut": st.integers(0, 12),
    "second": st.integers(0, 12),
    "finish": st.booleans(),
}


@held(80)
@given(**kills, others=edits())
@example(
    files={"A/one.md": ("", 0o644)},
    more=set(),
    found=[
        ("vault.delete", {"path": "A", "recursive": True}),
        ("vault.createFile", {"path": "A/B/one.md", "content": ""}),
        ("vault.rename", {"from": "A", "to": "A moved"}),
    ],
    during="run",
    cut=5,
    second=0,
    finish=False,
    others=[],
)
@example(  # a link moves after the note that it leads to
    files=LINKED,
    more=LINKS,
    found=[
        ("vault.rename", {"from": "A", "to": "A moved"}),
        ("vault.rename", {"from": "C d/near.md", "to": "C d/one.md"}),
    ],
    during="run",
    cut=1,
    second=0,
    finish=False,
    others=[],
)
@example(  # a link moves after the note that it leads to is written
    files=LINKED,
    more=LINKS,
    found=[
        ("vault.writeFile", {"path": "A/one.md", "content": "0"}),
        ("vault.rename", {"from": "C d/near.md", "to": "C d/one.md"}),
    ],
    during="run",
    cut=2,
    second=0,
    finish=False,
    others=[],
)
def test_recovery_leaves_alone_what_others_did(**story: Any) -> None:
    recovery_leaves_others_alone(**story)


@pytest.mark.soak
@held(2000)
@given(**kills, others=edits())
def test_2000_recoveries_leave_alone_what_others_did(**story: Any) -> None:
    recovery_leaves_others_alone(**story)


# --- undo in parts ---


def undo_goes_on_with_the_same_run(files: Files, more: set[str], found: Found, chosen: int) -> None:
    """After an undo to a step, a plain undo reverses the rest of that run, not an older one."""
    with world(files, more) as home:
        older = home.preview([("vault.createFile", {"path": "older run.md", "content": "x"})])
        assert home.run(older).status == "done"
        before = home.seen()
        ready = home.preview(found)
        result = home.run(ready)
        if not result.undo_available or result.run_id is None:
            return
        runs = home.session.runs
        clean = [cut for cut in runs.undo_points(result.run_id) if cut.clean and cut.actions]
        if not clean:
            return
        runs.undo(None, to_step=clean[chosen % len(clean)].step)
        assert not runs.undo(None).conflicts
        assert home.seen() == before
        assert not runs.undo(None).conflicts
        assert "older run.md" not in home.seen()


parts_stories = {**others_stories, "chosen": st.integers(0, 5)}
one_by_one: Found = [
    ("vault.createFile", {"path": f"{name}.md", "content": name}) for name in ("one", "two")
]


@held(60)
@given(**parts_stories)
@example(files={}, more=set(), found=one_by_one, chosen=0)
def test_a_run_undone_in_parts_is_undone_before_an_older_one(**story: Any) -> None:
    undo_goes_on_with_the_same_run(**story)


@pytest.mark.soak
@held(2000)
@given(**parts_stories)
@example(files={}, more=set(), found=one_by_one, chosen=0)
def test_2000_runs_undone_in_parts_are_undone_before_an_older_one(**story: Any) -> None:
    undo_goes_on_with_the_same_run(**story)


# --- a folder that went to another disk, and notes that were shortened after a kill ---


carrying = edits(*EDITS, CARRY_OFF)
shortening = edits(*EDITS, SHORTEN)
APPEND: Found = [("vault.updateFile", {"path": "A/one.md", "mode": "append", "content": "more"})]
killed: dict[str, Any] = {
    "files": {"A/one.md": NOTE},
    "more": set(),
    "found": APPEND,
    "during": "run",
    "cut": 0,
    "second": 0,
    "finish": True,
}


@held(60)
@given(**others_stories, first=carrying, second=carrying)
@example(files={"A/one.md": NOTE}, more=set(), found=APPEND, first=[(CARRY_OFF, 1, 0)], second=[])
def test_undo_goes_on_where_a_folder_was_carried_off_to_another_disk(**story: Any) -> None:
    undo_leaves_others_alone(**story)


@held(60)
@given(**kills, others=carrying)
@example(**killed, others=[(CARRY_OFF, 1, 0)])
def test_recovery_goes_on_where_a_folder_was_carried_off_to_another_disk(**story: Any) -> None:
    recovery_leaves_others_alone(**story)


@held(60)
@given(**kills, others=shortening)
@example(**killed, others=[(SHORTEN, 0, 2)])
def test_recovery_takes_no_shortened_note_for_a_write_of_ours(**story: Any) -> None:
    recovery_leaves_others_alone(**story)


@pytest.mark.soak
@held(2000)
@given(**kills, others=edits(*EDITS, CARRY_OFF, SHORTEN))
@example(**killed, others=[(CARRY_OFF, 1, 0)])
@example(**killed, others=[(SHORTEN, 0, 2)])
def test_2000_recoveries_bear_all_of_this(**story: Any) -> None:
    recovery_leaves_others_alone(**story)


@pytest.mark.soak
@held(2000)
@given(**others_stories, first=carrying, second=carrying)
@example(files={"A/one.md": NOTE}, more=set(), found=APPEND, first=[(CARRY_OFF, 1, 0)], second=[])
def test_2000_undos_bear_folders_that_were_carried_off(**story: Any) -> None:
    undo_leaves_others_alone(**story)
