"""Changes that the user leaves out: the preview stays what is executed, and nothing else changes."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from obsidian_agent.agent.events import StepFinished
from obsidian_agent.bootstrap import Wiring, build_session
from obsidian_agent.plan.left_out import LeftOut
from obsidian_agent.services.plans import Plans, PreviewOptions, done_by
from obsidian_agent.vault.filesystem.store import VaultStore
from obsidian_agent.vault.views.diff import text_edits, without_edits
from support import MakeVault

TEXT = "old\n" + "".join(f"{n}\n" for n in range(9)) + "old again\n"
FILES = {
    "A/a.md": TEXT,
    "A/b.md": TEXT,
    "A/c.md": f"[[a]]\n{TEXT}",
    "Home.md": "- [[a]]\n- [[b]]\n",
}


def step(id: str, tool: str, foreach: str = "", **args: Any) -> dict[str, Any]:
    document = {"id": id, "tool": tool, "args": args}
    if foreach:
        document["foreach"] = {"from": foreach, "itemName": "note"}
    return document


FIND = step("find", "vault.find", where={"folder": "A"})
REPLACE = step(
    "replace", "vault.replaceText", find="old", replace="new", paths=["A/a.md", "A/b.md"]
)
MOVE = step(
    "move", "vault.rename", "$steps.find.files", **{"from": "${note.path}", "to": "B/${note.file}"}
)
LIST = step("list", "util.formatList", items="$steps.after.files", template="- {path}")
AFTER = step("after", "vault.find", where={"folder": "B"})
INDEX = step("index", "vault.createFile", path="Index.md", content="${$steps.list.text}\n")


def plan(*steps: Mapping[str, Any]) -> dict[str, Any]:
    return {"version": "1.0", "goal": "Change", "riskLevel": "writes", "steps": list(steps)}


def read(folder: Path) -> dict[str, str]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes().decode()
        for path in folder.rglob("*.md")
        if ".trash" not in path.parts
    }


def plans_of(store: VaultStore, state: Path) -> Plans:
    return build_session(Wiring(store, state)).plans


def applied(plans: Plans, document: Mapping[str, Any], left_out: LeftOut) -> None:
    """Preview and apply a plan without some changes."""
    preview = plans.dry_run(document, options=PreviewOptions(left_out=left_out))
    assert preview.valid, preview.errors
    result = plans.apply(preview, lambda event: None, threading.Event())
    assert result.success, result.errors
    assert not plans.verify(preview)


def test_a_file_that_is_left_out_stays_and_links_do_not_follow_it(
    make_vault: MakeVault, tmp_path: Path
) -> None:
    store = make_vault(FILES)
    plans = plans_of(store, tmp_path / "state")
    applied(plans, plan(FIND, MOVE), LeftOut(frozenset({"A/a.md"})))
    files = read(Path(store.real_path))
    assert set(files) == {"A/a.md", "B/b.md", "B/c.md", "Home.md"}
    assert files["A/a.md"] == TEXT
    assert files["Home.md"] == FILES["Home.md"], "links to [[a]] and [[b]] hold in any folder"


def test_a_later_step_sees_the_vault_without_what_is_left_out(
    make_vault: MakeVault, tmp_path: Path
) -> None:
    store = make_vault(FILES)
    plans = plans_of(store, tmp_path / "state")
    applied(plans, plan(FIND, MOVE, AFTER, LIST, INDEX), LeftOut(frozenset({"A/b.md"})))
    assert read(Path(store.real_path))["Index.md"] == "- B/a.md\n- B/c.md\n"


def test_what_a_later_step_needs_is_an_error(make_vault: MakeVault, tmp_path: Path) -> None:
    plans = plans_of(make_vault(FILES), tmp_path / "state")
    document = plan(
        step("new", "vault.createFile", path="New.md", content="x\n"),
        step("add", "vault.addLines", path="New.md", content="y"),
    )
    preview = plans.dry_run(
        document, options=PreviewOptions(left_out=LeftOut(frozenset({"New.md"})))
    )
    assert [(problem.code, problem.step_id) for problem in preview.errors] == [
        ("FILE_NOT_FOUND", "add")
    ]


def test_one_of_two_edits_of_a_file_is_left_out_and_the_run_says_so(
    make_vault: MakeVault, tmp_path: Path
) -> None:
    store = make_vault(FILES)
    plans = plans_of(store, tmp_path / "state")
    whole = plans.dry_run(plan(REPLACE))
    change = whole.change_set.changes[0]
    first, last = plans.edits(change)
    applied(plans, plan(REPLACE), LeftOut(edits=frozenset({("A/a.md", last)})))
    files = read(Path(store.real_path))
    assert files["A/a.md"] == TEXT.replace("old\n", "new\n", 1)
    assert files["A/b.md"] == TEXT.replace("old", "new")
    assert first != last
    (run,) = plans.runs.history()
    assert plans.runs.show(run.run_id).left_out == ("A/a.md: 1 change",)
    assert plans.runs.plan_of(run.run_id).steps[0].id == "replace"
    plans.runs.undo(None)
    assert read(Path(store.real_path)) == FILES


def test_an_approval_is_bound_to_what_is_left_out(make_vault: MakeVault, tmp_path: Path) -> None:
    plans = plans_of(make_vault(FILES), tmp_path / "state")
    left_out = LeftOut(frozenset({"A/a.md"}))
    hashes = {
        plans.dry_run(plan(REPLACE), options=PreviewOptions(left_out=option)).plan_hash
        for option in (None, left_out)
    }
    assert len(hashes) == 2


lines = st.lists(st.sampled_from(["a\n", "b\n", "c\n", "\n"]), max_size=12).map("".join)


@given(before=lines, after=lines, end=st.booleans(), data=st.data())
def test_a_text_without_some_edits_has_exactly_the_others(
    before: str, after: str, end: bool, data: st.DataObject
) -> None:
    old, new = before.encode(), (after + ("end" if end else "")).encode()
    edits = text_edits(old, new)
    assert without_edits(old, new, edits) == old
    assert without_edits(old, new, ()) == new
    chosen = data.draw(st.sets(st.sampled_from(edits)) if edits else st.just(set()))
    rest = text_edits(old, without_edits(old, new, chosen))
    assert sum(len(edit.new) for edit in rest) <= sum(len(edit.new) for edit in edits)


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_whatever_is_left_out_the_run_is_its_preview_and_the_rest_is_untouched(
    data: st.DataObject,
) -> None:
    with TemporaryDirectory() as folder:
        vault = Path(folder) / "Vault"
        for path, text in FILES.items():
            (vault / path).parent.mkdir(parents=True, exist_ok=True)
            (vault / path).write_bytes(text.encode())
        with VaultStore.open(vault) as store:
            plans = plans_of(store, Path(folder) / "state")
            document = plan(REPLACE, FIND, MOVE)
            whole = plans.dry_run(document)
            paths = [change.path.text for change in whole.change_set.changes if not change.folder]
            files = data.draw(st.sets(st.sampled_from(paths)))
            edits = {
                (change.path.text, edit)
                for change in whole.change_set.changes
                for edit in plans.edits(change)
                if change.path.text not in files
            }
            chosen = data.draw(
                st.sets(st.sampled_from(sorted(edits, key=str))) if edits else st.just(set())
            )
            left_out = LeftOut(frozenset(files), frozenset(chosen))
            preview = plans.dry_run(document, options=PreviewOptions(left_out=left_out))
            if not preview.valid:
                assert "cannot be left out" in preview.errors[0].message
                return
            expected = dict(FILES)
            for change in preview.change_set.changes:
                if not change.folder:
                    text = expected.pop(change.path.text)
                    content = text if change.content is None else change.content.decode()
                    expected[(change.new_path or change.path).text] = content
            assert not files & {change.path.text for change in preview.change_set.changes}
            plans.apply(preview, lambda event: None, threading.Event())
            assert read(vault) == expected


def test_what_a_cancelled_run_has_not_done_is_previewed_and_done(
    make_vault: MakeVault, tmp_path: Path
) -> None:
    store = make_vault(FILES)
    plans = plans_of(store, tmp_path / "state")
    tag = step(
        "tag", "vault.setFrontmatter", "$steps.find.files",
        path="${note.path}", set={"done": True},
    )  # fmt: skip
    document = plan(FIND, tag, MOVE, INDEX | {"args": {"path": "Index.md", "content": "x\n"}})
    whole = plans.dry_run(document)
    cancel = threading.Event()
    moved = 0

    def stop_after_two(event: object) -> None:
        nonlocal moved
        if isinstance(event, StepFinished) and event.instance.startswith("move"):
            moved += 1
            if moved == 2:
                cancel.set()

    result = plans.apply(whole, stop_after_two, cancel)
    assert result.status == "cancelled"
    assert not result.remaining.is_empty
    done, items = done_by(whole, result.outputs)
    rest = plans.dry_run(document, options=PreviewOptions(done=done, done_items=items))
    assert rest.valid, rest.errors
    assert {change.path.text for change in rest.change_set.changes} == {"A/c.md", "Index.md"}
    assert plans.apply(rest, lambda event: None, threading.Event()).success
    files = read(Path(store.real_path))
    assert set(files) == {"B/a.md", "B/b.md", "B/c.md", "Home.md", "Index.md"}
    assert all("done: true" in files[f"B/{name}.md"] for name in "abc")


def test_a_preview_knows_the_files_that_changed_since(
    make_vault: MakeVault, tmp_path: Path
) -> None:
    store = make_vault(FILES)
    folder = Path(store.real_path)
    plans = plans_of(store, tmp_path / "state")
    swap = [
        step("one", "vault.rename", **{"from": "A/a.md", "to": "A/t.md"}),
        step("two", "vault.rename", **{"from": "A/b.md", "to": "A/a.md"}),
        step("three", "vault.rename", **{"from": "A/t.md", "to": "A/b.md"}),
        step("new", "vault.createFile", path="New.md", content="x\n"),
    ]
    preview = plans.dry_run(plan(*swap))
    assert plans.changed_since(preview) == []
    (folder / "New.md").write_text("there")
    (folder / "A/b.md").write_text("other")
    assert plans.changed_since(preview) == ["A/b.md", "New.md"]
