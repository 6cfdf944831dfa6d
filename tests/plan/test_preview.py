"""The dry run: every step seen through the ones before it, nothing written, everything told."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from obsidian_agent import budget
from obsidian_agent.errors import PlanError
from obsidian_agent.plan import preview
from obsidian_agent.plan.parameters import MissingInput
from obsidian_agent.plan.policy import Policy
from obsidian_agent.plan.preview import FIRST_SCREEN
from obsidian_agent.plan.result import Preview, change_document, diff_of, preview_document
from obsidian_agent.tools.core.tool import EditorPosition, RunContext, Selection
from obsidian_agent.tools.registry import TOOLS
from obsidian_agent.vault.filesystem.store import VaultStore
from obsidian_agent.vault.paths.path import PathUse, parse
from obsidian_agent.vault.views.disk import DiskView
from support import MakeVault

NOW = datetime(2026, 3, 14, 9, 30, tzinfo=UTC)
DryRun = Callable[..., Preview]


def plan(*steps: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"version": "1.0", "goal": "g", "riskLevel": "writes", "steps": list(steps)} | more


def step(step_id: str, tool: str, args: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"id": step_id, "tool": tool, "args": args} | more


def create(step_id: str, path: str, content: str = "x", **more: Any) -> dict[str, Any]:
    return step(step_id, "vault.createFile", {"path": path, "content": content}, **more)


def dry_run(
    store: VaultStore, document: object, *, context: RunContext | None = None, **options: Any
) -> Preview:
    """`preview.dry_run`, with what most tests don't care about filled in."""
    policy = options.pop("policy", Policy())
    return preview.dry_run(
        document, TOOLS, policy, DiskView(store), context or RunContext("vault", NOW), **options
    )


def codes(problems: Any) -> list[str]:
    return [problem.code for problem in problems]


def changed(ready: Preview) -> list[str]:
    return [f"{change.kind} {change.path}" for change in ready.change_set.changes]


BULLETS = plan(
    step("bullets", "util.parseMarkdownBullets", {"text": "${selection}"}),
    step(
        "notes",
        "vault.createFile",
        {
            "path": "Projects/${item.text}.md",
            "content": "# ${item.text}\n\nFrom ${activeFile|link}.\n",
        },
        foreach={"from": "$steps.bullets.items", "itemName": "item"},
    ),
    step("links", "util.formatList", {"items": "$steps.notes", "template": "- {path|link}"}),
    step("back", "editor.replaceSelection", {"text": "${$steps.links.text}"}),
)


PARAMETERS = plan(
    create("made", "${where}.md"),
    parameters={"where": {"type": "path"}, "n": {"type": "number", "default": 1}},
)


def test_values_are_bound_and_shadow_the_context(make_vault: MakeVault) -> None:
    ready = dry_run(make_vault({}), PARAMETERS, values={"where": "A/b"})
    assert changed(ready) == ["mkdir A", "create A/b.md"]
    assert ready.context.params == {"where": "A/b", "n": 1}


@pytest.mark.parametrize(
    ("document", "values", "codes"),
    [
        (PARAMETERS, {}, ["NEEDS_INPUT"]),
        (PARAMETERS, {"where": "a", "n": "many"}, ["ARGUMENT_INVALID"]),
        (PARAMETERS, {"where": "a", "nn": 1}, ["ARGUMENT_INVALID"]),
        (plan(step("a", "vault.none", {})), {}, ["TOOL_NOT_FOUND"]),
    ],
)
def test_a_plan_or_value_that_is_not_valid_has_no_dry_run(
    make_vault: MakeVault, document, values, codes
) -> None:
    with pytest.raises(PlanError) as caught:
        dry_run(make_vault({}), document, values=values)
    assert [problem.code for problem in caught.value.problems] == codes
    assert isinstance(caught.value, MissingInput) == (codes == ["NEEDS_INPUT"])


def test_bullets_become_notes_and_links(make_vault: MakeVault) -> None:
    store = make_vault({"Daily/d.md": "# Day\n\n- Alpha\n- Beta b\n\nend\n"})
    selection = Selection("- Alpha\n- Beta b", EditorPosition(2, 0), EditorPosition(3, 8))
    context = RunContext(
        "vault", NOW, active_file=parse("Daily/d.md", PathUse.READ), selection=selection
    )
    ready = dry_run(store, BULLETS, context=context)
    assert ready.errors == ()
    assert changed(ready) == [
        "modify Daily/d.md",
        "mkdir Projects",
        "create Projects/Alpha.md",
        "create Projects/Beta b.md",
    ]
    contents = {change.path.text: change.content for change in ready.change_set.changes}
    assert contents["Projects/Beta b.md"] == b"# Beta b\n\nFrom [[d]].\n"
    assert contents["Daily/d.md"] == b"# Day\n\n- [[Alpha]]\n- [[Beta b]]\n\nend\n"
    assert [item.name for item in ready.instances] == [
        "bullets",
        "notes_0",
        "notes_1",
        "links",
        "back",
    ]
    assert (Path(store.real_path) / "Projects").exists() is False


def test_a_selection_is_needed(make_vault: MakeVault) -> None:
    ready = dry_run(make_vault({}), BULLETS)
    assert codes(ready.errors)[0] == "NO_SELECTION"
    assert ready.plan_hash is None
    assert not ready.valid


ODD = ["What is it?.md", 'a "b".md', "x > y.md", "a|b.md", "lead#hash.md", "br[ack].md", "plain.md"]


@pytest.mark.parametrize("to", ["Archive/${note.file}", "Archive/${note.name}.md"])
def test_a_move_keeps_the_names_of_files(make_vault: MakeVault, to: str) -> None:
    files: dict[str, str | bytes] = {f"Old/{name}": "#done\n" for name in ODD}
    files |= {"Home.md": "[[What is it?]] [[x > y]]\n", "Archive/": ""}
    each = {"from": "$steps.find.files", "itemName": "note"}
    document = plan(
        step("find", "vault.find", {"where": {"tag": "done"}}),
        step("move", "vault.rename", {"from": "${note.path}", "to": to}, foreach=each),
    )
    ready = dry_run(make_vault(files), document)
    assert not ready.errors
    assert not ready.warnings
    moved = {c.path.name: c.new_path.text for c in ready.change_set.changes if c.new_path}
    assert moved == {name: f"Archive/{name}" for name in ODD}


def test_another_name_that_some_systems_forbid_is_told_without_the_plans_own_words(
    make_vault: MakeVault,
) -> None:
    document = plan(step("move", "vault.rename", {"from": "A.md", "to": "Old/${new}.md"}))
    document["parameters"] = {"new": {"type": "text", "default": "Why?"}}
    ready = dry_run(make_vault({"A.md": "x"}), document)
    assert [problem.message for problem in ready.warnings] == [
        "“Why?.md” becomes “Why-.md”: some systems forbid its characters in names."
    ]
    moved = [change.new_path.text for change in ready.change_set.changes if change.new_path]
    assert moved == ["Old/Why-.md"]


def test_steps_see_what_earlier_steps_did(make_vault: MakeVault) -> None:
    ready = dry_run(
        make_vault({"a.md": "one\n"}),
        plan(
            step("add", "vault.updateFile", {"path": "a.md", "mode": "append", "content": "two"}),
            step("read", "vault.readFile", {"path": "a.md"}),
            create("copy", "b.md", "${$steps.read.content}"),
        ),
    )
    assert {c.path.text: c.content for c in ready.change_set.changes} == {
        "a.md": b"one\ntwo\n",
        "b.md": b"one\ntwo\n",
    }


def test_substituted_text_is_never_read_again(make_vault: MakeVault) -> None:
    hostile = "${selection} ${$steps.read.path} $${x}"
    store = make_vault({"a.md": hostile})
    ready = dry_run(
        store,
        plan(
            step("read", "vault.readFile", {"path": "a.md"}),
            create("copy", "b.md", "${$steps.read.content}"),
        ),
    )
    assert ready.change_set.changes[0].content == hostile.encode()


def test_errors_under_stop_name_step_and_instance_and_go_on_to_the_rest(
    make_vault: MakeVault,
) -> None:
    ready = dry_run(
        make_vault({"a.md": ""}),
        plan(
            step("read", "vault.readFile", {"path": "gone.md"}),
            create("after", "b.md", "${$steps.read.content}"),
            step("other", "vault.readFile", {"path": "missing.md"}),
        ),
    )
    assert [(p.code, p.step_id, p.path) for p in ready.errors] == [
        ("FILE_NOT_FOUND", "read", "gone.md"),
        ("FILE_NOT_FOUND", "other", "missing.md"),
    ]
    assert [(item.name, item.state) for item in ready.instances] == [
        ("read", "failed"),
        ("after", "skipped"),
        ("other", "failed"),
    ]


def test_errors_under_skip_are_warnings_and_leave_a_gap(make_vault: MakeVault) -> None:
    loop = {"from": ["a.md", "gone.md", "b.md"], "itemName": "name"}
    ready = dry_run(
        make_vault({"a.md": "A", "b.md": "B"}),
        plan(
            step("read", "vault.readFile", {"path": "${name}"}, foreach=loop, onError="skip"),
            create("n", "c.md", "${$steps.read.2.content}"),
        ),
    )
    assert ready.valid
    assert codes(ready.warnings) == ["FILE_NOT_FOUND"]
    assert ready.outputs["read"][1] is None
    assert ready.change_set.changes[0].content == b"B"


def test_a_false_condition_leaves_out_a_step_and_not_what_follows(make_vault: MakeVault) -> None:
    ready = dry_run(
        make_vault({}),
        plan(create("no", "a.md", when=False), create("yes", "b.md", dependsOn=["no"])),
    )
    assert changed(ready) == ["create b.md"]


def test_a_step_switched_off_takes_its_dependants_with_it(make_vault: MakeVault) -> None:
    document = plan(
        create("one", "a.md"), create("two", "b.md", dependsOn=["one"]), create("three", "c.md")
    )
    ready = dry_run(make_vault({}), document, disabled=frozenset({"one"}))
    assert changed(ready) == ["create c.md"]
    assert ready.valid


@pytest.mark.parametrize("source", ["$steps.read.content", {"x": 1}, "text"])
def test_a_foreach_runs_over_lists_only(make_vault: MakeVault, source: Any) -> None:
    document = plan(
        step("read", "vault.readFile", {"path": "a.md"}),
        create("n", "${i}.md", foreach={"from": source, "itemName": "i"}),
    )
    try:
        problems: Any = dry_run(make_vault({"a.md": "abc"}), document).errors
    except PlanError as error:
        problems = error.problems
    assert problems
    assert set(codes(problems)) <= {"REFERENCE_ERROR", "SCHEMA_INVALID", "ARGUMENT_INVALID"}


def test_a_list_that_was_cut_short_is_no_source(make_vault: MakeVault) -> None:
    document = plan(
        step("list", "vault.listFiles", {"limit": 1}),
        step(
            "read",
            "vault.readFile",
            {"path": "${f.path}"},
            foreach={"from": "$steps.list.files", "itemName": "f"},
        ),
    )
    assert codes(dry_run(make_vault({"a.md": "", "b.md": ""}), document).errors) == [
        "TRUNCATED_LIST"
    ]


def test_two_instances_may_not_make_one_path(make_vault: MakeVault) -> None:
    document = plan(create("n", "${i}.md", foreach={"from": ["Same", "same"], "itemName": "i"}))
    assert codes(dry_run(make_vault({}), document).errors) == ["DUPLICATE_PATH"]


def test_too_many_instances_are_refused_before_they_are_made(make_vault: MakeVault) -> None:
    listed = plan(
        step("p", "util.parseMarkdownBullets", {"text": "- x\n" * 10_001}),
        create("n", "${index}.md", foreach={"from": "$steps.p.items", "itemName": "i"}),
    )
    assert codes(dry_run(make_vault({}), listed).errors) == ["PLAN_TOO_LARGE"]


def doubling(count: int, step_of: Callable[[int], dict[str, Any]]) -> dict[str, Any]:
    """Return a plan whose first step makes a thousand letters, and whose others multiply them."""
    first = step("s0", "util.formatList", {"items": ["x" * 1_000], "template": "{item}"})
    return plan(first, *(step_of(number) for number in range(1, count)))


GROWING = {
    "references in a text": doubling(
        40,
        lambda n: step(
            f"s{n}",
            "util.formatList",
            {
                "items": [f"${{$steps.s{n - 1}.text}}" * 2],
                "template": "{item}",
            },
        ),
    ),
    "items of a list": doubling(
        12,
        lambda n: step(
            f"s{n}",
            "util.formatList",
            {"items": [f"$steps.s{n - 1}.text"] * 100, "template": "{item}{item}"},
        ),
    ),
    "a joined list": doubling(
        12,
        lambda n: step(
            f"s{n}",
            "util.formatList",
            {"items": [[f"$steps.s{n - 1}.text"] * 100], "template": "{item|join:,}"},
        ),
    ),
    "a list as JSON": doubling(
        12,
        lambda n: step(
            f"s{n}",
            "util.formatList",
            {"items": [[f"$steps.s{n - 1}.text"] * 100], "template": "{item}"},
        ),
    ),
    "replacements": doubling(
        12,
        lambda n: step(
            f"s{n}",
            "vault.replaceText",
            {"find": "x", "replace": "x" * 100, "path": "Many.md"},
        ),
    ),
}


@pytest.mark.parametrize("growing", GROWING)
def test_a_preview_produces_a_bounded_amount_of_text(
    make_vault: MakeVault, monkeypatch: pytest.MonkeyPatch, growing: str
) -> None:
    monkeypatch.setattr("obsidian_agent.budget.MAX_TEXT", 1_000_000)
    with pytest.raises(PlanError, match="produces more than 1,000,000 characters") as ended:
        dry_run(make_vault({"Many.md": "x" * 1_000}), GROWING[growing])
    assert ended.value.code == "PLAN_TOO_LARGE"


LONG_STEPS = {
    "a list that is sorted": step(
        "sort", "util.arrangeList", {"text": "- x\n" * 20_000, "sort": "za", "unique": True}
    ),
    "many filters": step(
        "format",
        "util.formatList",
        {"items": [1], "template": "{item" + "|basename" * 20_000 + "}"},
    ),
    "many lines": step("parse", "util.parseMarkdownBullets", {"text": "- x\n" * 20_000}),
}


@pytest.mark.parametrize("long", LONG_STEPS)
def test_a_long_step_ends_when_it_is_cancelled(make_vault: MakeVault, long: str) -> None:
    checks = 0

    def cancelled() -> bool:
        nonlocal checks
        checks += 1
        return checks > 10

    # Ten checks are those around the step; the eleventh is inside it.
    with budget.limited(3600.0, cancelled), pytest.raises(PlanError, match="cancelled") as ended:
        dry_run(make_vault({}), plan(LONG_STEPS[long]))
    assert ended.value.code == "CANCELLED"


def test_the_hash_is_bound_to_arguments_and_to_what_was_read(make_vault: MakeVault) -> None:
    store = make_vault({"a.md": "one\n"})
    document = plan(
        step("add", "vault.updateFile", {"path": "a.md", "mode": "append", "content": "two"})
    )
    first = dry_run(store, document).plan_hash
    assert first == dry_run(store, document).plan_hash
    (Path(store.real_path) / "a.md").write_text("changed\n")
    assert first != dry_run(store, document).plan_hash
    assert (
        dry_run(store, plan(create("n", "n.md", "1"))).plan_hash
        != dry_run(store, plan(create("n", "n.md", "2"))).plan_hash
    )


def test_the_first_screen_comes_before_the_whole(make_vault: MakeVault) -> None:
    seen: list[Preview] = []
    document = plan(
        create("n", "${i}.md", foreach={"from": [f"n{i}" for i in range(300)], "itemName": "i"})
    )
    ready = dry_run(make_vault({}), document, on_first_screen=seen.append)
    assert len(seen) == 1
    assert FIRST_SCREEN <= len(seen[0].change_set.changes) < 300
    assert seen[0].plan_hash is None
    assert 0 < ready.timings.first_screen_ms < ready.timings.preview_ms


def test_the_first_screen_comes_before_one_call_has_gone_through_all_notes(
    make_vault: MakeVault,
) -> None:
    seen: list[Preview] = []
    store = make_vault({f"{n:03}.md": "one\n" for n in range(300)})
    document = plan(step("r", "vault.replaceText", {"find": "one", "replace": "two"}))
    ready = dry_run(store, document, on_first_screen=seen.append)
    assert [shown.change_set.changes for shown in seen] == [ready.change_set.changes[:FIRST_SCREEN]]
    assert diff_of(seen[0].change_set.changes[0], DiskView(store)).endswith("-one\n+two\n")
    assert 0 < ready.timings.first_screen_ms < ready.timings.preview_ms


def test_the_document_has_the_contracts_fields(make_vault: MakeVault) -> None:
    store = make_vault({"a.md": "one\n", "old.md": ""})
    ready = dry_run(
        store,
        plan(
            step("add", "vault.updateFile", {"path": "a.md", "mode": "append", "content": "two"}),
            create("n", "N/n.md", "new\n"),
            step("mv", "vault.rename", {"from": "old.md", "to": "new.md"}),
        ),
    )
    document = preview_document(
        ready,
        [
            change_document(change, diff_of(change, DiskView(store)))
            for change in ready.change_set.changes
        ],
    )
    assert set(document) == {
        "valid",
        "errors",
        "warnings",
        "flags",
        "riskLevel",
        "summary",
        "changes",
        "planHash",
    }
    assert document["changes"] == [
        {"kind": "mkdir", "path": "N", "diff": ""},
        {
            "kind": "create",
            "path": "N/n.md",
            "diff": "--- /dev/null\n+++ N/n.md\n@@ -0,0 +1 @@\n+new\n",
        },
        {
            "kind": "modify",
            "path": "a.md",
            "diff": "--- a.md\n+++ a.md\n@@ -1 +1,2 @@\n one\n+two\n",
        },
        {"kind": "rename", "path": "old.md", "newPath": "new.md", "diff": ""},
    ]
    assert document["summary"]["filesRenamed"] == [{"from": "old.md", "to": "new.md"}]


@pytest.mark.parametrize(
    ("before", "after", "kind"),
    [
        ("", "![x](https://evil.test/p.png?d=1)", "remoteUrl"),
        ("", "```dataviewjs\napp\n```", "runsAsCode"),
        ("", "<% tp.file %>", "runsAsCode"),
        ("long text\n" * 100, "short", "shrink"),
    ],
)
def test_flags_are_computed_from_the_contents(
    make_vault: MakeVault, before: str, after: str, kind: str
) -> None:
    ready = dry_run(
        make_vault({"a.md": before}),
        plan(step("w", "vault.writeFile", {"path": "a.md", "content": after})),
    )
    assert [flag.kind for flag in ready.flags] == [kind]


def test_web_pages_on_a_canvas_are_flagged(make_vault: MakeVault) -> None:
    card = {"type": "link", "url": "https://evil.test/?d=1"}
    ready = dry_run(
        make_vault({}),
        plan(create("c", "Board.canvas", json.dumps({"nodes": [card], "edges": []}))),
    )
    assert [(flag.kind, flag.path, "evil.test" in flag.detail) for flag in ready.flags] == [
        ("remoteUrl", "Board.canvas", True)
    ]


def test_a_folder_that_goes_away_says_how_much_is_in_it(make_vault: MakeVault) -> None:
    store = make_vault({"Old/a.md": "", "Old/deep/b.md": "", "c.md": ""})
    ready = dry_run(
        store,
        plan(
            step("m", "vault.rename", {"from": "c.md", "to": "Old/c.md"}),
            step("d", "vault.delete", {"path": "Old", "recursive": True}),
        ),
        policy=Policy(allow_deletes=True),
    )
    assert [(flag.kind, flag.path, "3 files" in flag.detail) for flag in ready.flags] == [
        ("manyFiles", "Old", True)
    ]


def test_what_was_there_before_is_not_flagged(make_vault: MakeVault) -> None:
    old = "![x](https://known.test/p.png)\n<% tp %>\n"
    ready = dry_run(
        make_vault({"a.md": old}),
        plan(step("w", "vault.writeFile", {"path": "a.md", "content": old + "more"})),
    )
    assert ready.flags == ()


def test_files_that_the_words_do_not_name_are_flagged(make_vault: MakeVault) -> None:
    store = make_vault({"Clips/a.md": "", "secret.md": ""})
    steps = [
        step(f"w{n}", "vault.writeFile", {"path": path, "content": "x"})
        for n, path in enumerate(["Clips/a.md", "secret.md"])
    ]
    ready = dry_run(store, plan(*steps), instruction="put an x into every note in clips")
    assert [(flag.kind, flag.path) for flag in ready.flags] == [("notNamed", "secret.md")]


def test_files_with_a_tag_that_the_words_name_are_not_flagged(make_vault: MakeVault) -> None:
    store = make_vault(
        {"a.md": "#done/2026\n", "b.md": "---\ntags: [Done]\n---\n", "c.md": "#open"}
    )
    steps = [
        step(f"m{name}", "vault.rename", {"from": f"{name}.md", "to": f"Old/{name}.md"})
        for name in "abc"
    ]
    ready = dry_run(store, plan(*steps), instruction="Move all notes tagged #done, please")
    assert [(flag.kind, flag.path) for flag in ready.flags] == [("notNamed", "c.md")]


PEOPLE = {
    "Ada.md": "---\ntype: person\n---\n",
    "Bob.md": "---\ntype: person\n---\n",
    "Plan.md": "[[Ada]]\n",
}
BY_TYPE = {"where": {"property": {"type": "person"}}}


@pytest.mark.parametrize(
    ("words", "search", "flagged"),
    [
        ("set seen to true on every person", BY_TYPE, []),
        ("set seen to true for all persons", BY_TYPE, []),
        ("set seen to true in all notes", {"kind": "notes", "sort": "-modified"}, []),
        ("set seen to true in Plan", BY_TYPE, ["Ada.md", "Bob.md"]),
        ("set seen to true in Plan", {"kind": "notes"}, ["Ada.md", "Bob.md"]),
        ("set seen to true", {"where": {"paths": ["Plan.md"]}}, ["Plan.md"]),
    ],
)
def test_files_that_a_search_for_the_words_finds_are_not_flagged(
    make_vault: MakeVault, words: str, search: dict[str, object], flagged: list[str]
) -> None:
    steps = [
        step("find", "vault.find", search),
        step(
            "set",
            "vault.setFrontmatter",
            {"path": "${file.path}", "set": {"seen": True}},
            foreach={"from": "$steps.find.files", "itemName": "file"},
        ),
    ]
    ready = dry_run(make_vault(PEOPLE), plan(*steps), instruction=words)
    assert [flag.path for flag in ready.flags if flag.kind == "notNamed"] == flagged


def test_notes_whose_links_follow_a_rename_are_not_flagged(make_vault: MakeVault) -> None:
    steps = [step("r", "vault.rename", {"from": "Ada.md", "to": "Ada Lovelace.md"})]
    ready = dry_run(make_vault(PEOPLE), plan(*steps), instruction="Ada is called Ada Lovelace")
    assert (changed(ready), ready.flags) == (["rename Ada.md", "modify Plan.md"], ())


OVERWRITE = step("r", "vault.rename", {"from": "a.md", "to": "b.md", "overwrite": True})
CREATE_A = create("c", "a.md", "new")


@pytest.mark.parametrize(
    "steps", [[OVERWRITE], [{**OVERWRITE, "onError": "skip"}], [CREATE_A, OVERWRITE]]
)
def test_a_note_goes_to_the_trash_only_where_deletes_are_allowed(
    make_vault: MakeVault, steps: list[dict[str, Any]]
) -> None:
    store = make_vault({"b.md": "b"} if len(steps) > 1 else {"a.md": "a", "b.md": "b"})
    ready = dry_run(store, plan(*steps))
    assert [(each.code, each.step_id, each.path) for each in ready.errors] == [
        ("DELETE_DISABLED", "r", "b.md")
    ]
    assert ready.plan_hash is None
    assert dry_run(store, plan(*steps), policy=Policy(allow_deletes=True)).errors == ()


@pytest.mark.parametrize("steps", [[OVERWRITE], [create("b", "b.md"), OVERWRITE]])
def test_where_no_note_of_the_vault_is_in_the_way_overwriting_is_no_delete(
    make_vault: MakeVault, steps: list[dict[str, Any]]
) -> None:
    ready = dry_run(make_vault({"a.md": "a"}), plan(*steps))
    assert (ready.errors, ready.flags) == ((), ())
    assert changed(ready) == ["rename a.md"]


def test_a_note_that_another_takes_the_place_of_is_flagged(make_vault: MakeVault) -> None:
    ready = dry_run(
        make_vault({"a.md": "a", "b.md": "b"}), plan(OVERWRITE), policy=Policy(allow_deletes=True)
    )
    assert [(flag.kind, flag.path, "replaced by a.md" in flag.detail) for flag in ready.flags] == [
        ("shrink", "b.md", True)
    ]


def test_folders_that_the_words_do_not_name_are_flagged(make_vault: MakeVault) -> None:
    move = step("m", "vault.rename", {"from": "Secret", "to": "Old"})
    store = make_vault({"Secret/a.md": ""})
    flags = dry_run(store, plan(move), instruction="tidy up").flags
    assert [(flag.kind, flag.path) for flag in flags] == [("notNamed", "Secret")]
    assert dry_run(store, plan(move), instruction="move my secret notes").flags == ()


def test_a_step_that_fails_half_way_leaves_nothing(make_vault: MakeVault) -> None:
    store = make_vault({"a.md": "a", "F/x.md": "x"})
    onto = step(
        "r", "vault.rename", {"from": "a.md", "to": "f/x.md", "overwrite": True}, onError="skip"
    )
    ready = dry_run(store, plan(onto), policy=Policy(allow_deletes=True))
    assert [
        (each.state, "another spelling" in (each.reason or "")) for each in ready.instances
    ] == [("failed", True)]
    assert ready.change_set.operations == ready.change_set.changes == ()


def test_a_loop_without_any_success_skips_what_depends_on_it(make_vault: MakeVault) -> None:
    loop = {"from": ["gone.md", "missing.md"], "itemName": "name"}
    ready = dry_run(
        make_vault({}),
        plan(
            step("read", "vault.readFile", {"path": "${name}"}, foreach=loop, onError="skip"),
            create("after", "a.md", dependsOn=["read"]),
            create("free", "b.md"),
        ),
    )
    assert changed(ready) == ["create b.md"]


def test_a_reference_to_null_does_not_leave_an_argument_out(make_vault: MakeVault) -> None:
    document = plan(
        step("active", "editor.getActiveFilePath", {}),
        step(
            "all", "vault.replaceText", {"find": "a", "replace": "b", "path": "$steps.active.path"}
        ),
    )
    ready = dry_run(make_vault({"a.md": "a"}), document)
    assert codes(ready.errors) == ["REFERENCE_ERROR"]
    assert ready.change_set.changes == ()


@pytest.mark.parametrize(
    ("to", "astray"),
    [
        ("B", ["B/self.md"]),
        ("Deep/A", ["Deep/A/S/up.md", "Deep/A/out.md"]),
        ("Deep/er/A", ["Deep/er/A/out.md", "Deep/er/A/S/up.md"]),
    ],
)
def test_links_that_lead_elsewhere_from_a_folders_new_place_are_told(
    make_vault: MakeVault, to: str, astray: list[str]
) -> None:
    store = make_vault({"one.md": "1", "A/one.md": "1", "A/S/two.md": "2"})
    root = Path(store.real_path)
    links = {
        "out.md": "../one.md",
        "in.md": "S/two.md",
        "S/up.md": "../../one.md",
        "S/in.md": "../one.md",
        "self.md": "../A/one.md",
    }
    for name, target in {**links, "gone.md": "nowhere.md", "far.md": "/etc/hostname"}.items():
        (root / "A" / name).symlink_to(target)
    ready = dry_run(store, plan(step("s", "vault.rename", {"from": "A", "to": to})))
    told = [warning for warning in ready.warnings if "symbolic link" in warning.message]
    assert sorted(str(warning.path) for warning in told) == sorted(astray)
    assert {warning.code for warning in told} == {"LINKS_UNRESOLVED"}
    assert ready.valid


class TestAliases:
    """A link to a note, or a path through a linked folder, is another name of one file."""

    @pytest.fixture
    def store(self, make_vault: MakeVault) -> VaultStore:
        store = make_vault({"A/one.md": "#old text\n", "two.md": "#old\n"})
        root = Path(store.real_path)
        (root / "link.md").symlink_to("A/one.md")
        (root / "Way").symlink_to("A")
        return store

    def test_a_change_of_the_whole_vault_changes_it_once(self, store: VaultStore) -> None:
        ready = dry_run(store, plan(step("s", "vault.renameTag", {"from": "old", "to": "new"})))
        assert (ready.valid, changed(ready)) == (True, ["modify A/one.md", "modify two.md"])

    @pytest.mark.parametrize(
        "paths",
        [["link.md", "A/one.md", "Way/one.md"], ["Way/one.md", "link.md"], ["A/one.md", "link.md"]],
    )
    def test_each_name_sees_what_came_by_another(self, store: VaultStore, paths: list[str]) -> None:
        added = [
            step(f"s{n}", "vault.updateFile", {"path": path, "mode": "append", "content": f"{n}"})
            for n, path in enumerate(paths)
        ]
        ready = dry_run(store, plan(*added))
        text = "#old text\n" + "".join(f"{n}\n" for n in range(len(paths)))
        assert [(one.path.text, one.content) for one in ready.change_set.changes] == [
            ("A/one.md", text.encode())
        ]

    def test_what_has_left_its_place_is_not_found_by_a_link(self, store: VaultStore) -> None:
        steps = [
            step("a", "vault.rename", {"from": "A/one.md", "to": "three.md"}),
            step(
                "b",
                "vault.updateFile",
                {"path": "link.md", "mode": "append", "content": "x"},
                onError="skip",
            ),
        ]
        ready = dry_run(store, plan(*steps))
        assert "FILE_NOT_FOUND" in codes(ready.warnings)
        assert changed(ready) == ["rename A/one.md"]
