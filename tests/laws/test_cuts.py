"""Going back to the end of a step gives the vault of a run of the steps up to there."""

from __future__ import annotations

import pytest
from hypothesis import event, example, given, settings
from hypothesis import strategies as st

from obsidian_agent.errors import JournalError
from previews import Picture
from stories import Files, Found, extras, plan_of, steps, vaults, world


def after_running(files: Files, more: set[str], found: Found) -> Picture:
    """Return the vault after these steps alone."""
    with world(files, more) as home:
        home.run(home.preview(found))
        return home.seen()


@settings(max_examples=25)
@given(files=vaults, more=extras, found=st.lists(steps, min_size=2, max_size=5))
@example(
    {"one.md": ("old", 0o644), "two.md": ("b", 0o600)},
    set(),
    [
        ("vault.rename", {"from": "one.md", "to": "A/one.md"}),
        ("vault.createFile", {"path": "one.md", "content": "new"}),
        ("vault.delete", {"path": "two.md"}),
    ],
)
@example(
    {},
    set(),
    [
        ("vault.createFile", {"path": "one.md", "content": "new"}),
        ("vault.rename", {"from": "one.md", "to": "two.md"}),
    ],
)
@example(
    {},
    set(),
    [("vault.ensureFolder", {"path": "A/new"}), ("vault.delete", {"path": "A", "recursive": True})],
)
@example(
    {},
    set(),
    [
        ("vault.createFile", {"path": "one.md", "content": ""}),
        ("vault.ensureFolder", {"path": "A/new"}),
        ("vault.delete", {"path": "A", "recursive": True}),
    ],
)
def test_back_to_a_step_is_the_vault_after_that_step(
    files: Files, more: set[str], found: Found
) -> None:
    with world(files, more) as home:
        before, runs = home.seen(), home.session.runs
        result = home.run(home.preview(found))
        if result.run_id is None or not result.undo_available:
            return
        after = home.seen()
        for cut in runs.undo_points(result.run_id):
            if not cut.clean:
                event("not separable")
                with pytest.raises(JournalError, match="not stored"):
                    runs.undo(result.run_id, to_step=cut.step)
                assert home.seen() == after
                continue
            event("separable")
            expected = after_running(files, more, found[: int(cut.step[1:]) + 1])
            done = runs.undo(result.run_id, to_step=cut.step)
            assert not done.conflicts
            assert home.seen() == expected
            if home.seen() != after:
                assert not runs.redo().conflicts
                assert home.seen() == after
        cut = runs.undo_points(result.run_id)[0]
        if cut.clean:
            runs.undo(result.run_id, to_step=cut.step)
        if cut.actions or not cut.clean:
            runs.undo(result.run_id)
        assert home.seen() == before


def creating(*names: str) -> Found:
    return [("vault.createFile", {"path": f"{name}.md", "content": name}) for name in names]


def test_what_changed_since_is_left_alone_and_only_where_it_is_in_the_way() -> None:
    with world({}, set()) as home:
        runs, root = home.session.runs, home.root
        run = home.run(home.preview(creating("one", "two", "three"))).run_id
        assert run is not None
        (root / "one.md").write_text("mine")
        (root / "three.md").write_text("mine too")
        planned = runs.undo_preview(run, to_step="s0")
        assert (planned.restored, [each.path for each in planned.conflicts]) == (
            ("two.md",),
            ["three.md"],
        )
        done = runs.undo(run, to_step="s0")
        assert (done.restored, [each.path for each in done.conflicts]) == (
            ("two.md",),
            ["three.md"],
        )
        assert sorted(path.name for path in root.glob("[!.]*")) == ["one.md", "three.md"]
        forced = runs.undo(run, ["three.md"], to_step="s0")
        assert forced.restored == ("three.md",)
        assert (root / "one.md").read_text() == "mine"


def test_a_step_that_there_is_not_and_the_ones_that_there_are() -> None:
    with world({}, set()) as home:
        found = creating("one", "two")
        run = home.run(home.preview(found)).run_id
        assert run is not None
        with pytest.raises(JournalError, match="no step 'nine'") as caught:
            home.session.runs.undo(run, to_step="nine")
        assert caught.value.code == "STEP_NOT_FOUND"
        assert "s0" in str(caught.value.hint)
        assert home.session.runs.plan_of(run).to_json() == plan_of(found)
