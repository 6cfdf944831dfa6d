"""Files of `share_deny` reach no shared path through a plan without a flag."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from obsidian_agent.errors import PlanError
from obsidian_agent.plan import preview
from obsidian_agent.plan.policy import MODEL, Policy, SharingRules
from obsidian_agent.plan.result import Preview
from obsidian_agent.tools.core.tool import EditorPosition, RunContext, Selection
from obsidian_agent.tools.registry import TOOLS
from obsidian_agent.vault.filesystem.store import VaultStore
from obsidian_agent.vault.paths.path import PathUse, parse
from obsidian_agent.vault.views.disk import DiskView
from support import MakeVault, symbolic_link

NOTES = {
    "Private/p.md": "---\ntags: [x]\nstatus: secretly\n---\n# Secret\n\nThe code is 4711.\n\n- [ ] ask\n\n[[a]] [[Gone]]\n",
    "Private/q.md": "[[p]]\n",
    "Open/a.md": "---\ntags: [x]\n---\nSee [[p]] and [[b]].\n",
    "Open/b.md": "Bee [[a]]\n",
}
DENY = SharingRules.of(deny=["Private"])


def step(step_id: str, tool: str, args: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"id": step_id, "tool": tool, "args": args} | more


def write(content: str, path: str = "Open/new.md", **more: Any) -> dict[str, Any]:
    return step("write", "vault.createFile", {"path": path, "content": content}, **more)


def dry_run(
    store: VaultStore,
    *steps: dict[str, Any],
    agent: str = "",
    context: RunContext | None = None,
    rules: SharingRules = DENY,
    **options: Any,
) -> Preview:
    plan = {"version": "1.0", "goal": "g", "riskLevel": "commands", "steps": list(steps)}
    policy = Policy(
        allow_deletes=True,
        allow_commands=True,
        sharing=rules,
        agent=agent,
        confirm_writes=False,
        auto_approve_read_only=True,
    )
    around = context or RunContext("vault", datetime(2026, 3, 14, tzinfo=UTC))
    return preview.dry_run(plan, TOOLS, policy, DiskView(store), around, **options)


def flagged(ready: Preview) -> list[str | None]:
    """Return the destinations of such text, with which the rest of the preview agrees."""
    places = [flag.path for flag in ready.flags if flag.kind == "deniedText"]
    assert ready.discloses == bool(places)
    assert (ready.approval.decision == "ask") == bool(places)
    return places


READ = step("read", "vault.readFile", {"path": "Private/p.md"})
META = step("meta", "vault.getMetadata", {"path": "Private/p.md"})
FIND = step("find", "vault.searchText", {"query": "The code is"})
CARRYING = {
    "whole": [READ, write("${steps.read.content}")],
    "part": [META, write("${steps.meta.headings[0].text}")],
    "upper": [READ, write("${steps.read.content|upper}")],
    "into a note": [
        READ,
        step("add", "vault.addLines", {"path": "Open/a.md", "content": "${steps.read.content}"}),
    ],
    "as a name": [
        META,
        write("x", "Open/${steps.meta.frontmatter.status}.md"),
    ],
    "as a property": [
        META,
        step(
            "set",
            "vault.setFrontmatter",
            {"path": "Open/a.md", "set": {"s": "${steps.meta.frontmatter.status}"}},
        ),
    ],
    "by a condition": [FIND, write("yes", when="$steps.find.matches")],
    "by a search": [
        FIND,
        write("${steps.find.matches[0].preview}"),
    ],
    "by a section": [
        step("take", "vault.takeSection", {"path": "Private/p.md", "heading": "Secret"}),
        write("${steps.take.text}"),
    ],
    "by its tag": [
        step("find", "vault.searchTag", {"query": "x"}),
        write("${steps.find.items|count}"),
    ],
}


@pytest.mark.parametrize("name", CARRYING)
def test_text_of_a_denied_note_on_its_way_is_flagged(make_vault: MakeVault, name: str) -> None:
    store = make_vault(NOTES)
    ready = dry_run(store, *CARRYING[name])
    assert not ready.errors
    assert flagged(ready)
    assert not dry_run(store, *CARRYING[name], rules=SharingRules()).discloses


@pytest.mark.parametrize("name", CARRYING)
def test_for_a_plan_of_a_model_the_note_does_not_exist(make_vault: MakeVault, name: str) -> None:
    ready = dry_run(make_vault(NOTES), *CARRYING[name], agent=MODEL)
    if ready.errors:
        assert {problem.code for problem in ready.errors} == {"PERMISSION_DENIED"}
        assert "share_deny" in ready.errors[0].message
        assert ready.plan_hash is None
    else:
        assert flagged(ready)


def test_a_plan_of_a_model_does_not_read_it_either(make_vault: MakeVault) -> None:
    store = make_vault(NOTES)
    assert [problem.code for problem in dry_run(store, READ, agent=MODEL).errors] == [
        "PERMISSION_DENIED"
    ]
    assert not dry_run(store, READ).errors


@pytest.mark.parametrize(
    ("old", "new", "places"),
    [
        ("Private/p.md", "Open/p.md", ["Open/p.md"]),
        ("Private", "Public", ["Public/p.md", "Public/q.md"]),
        ("Private/p.md", "Private/r.md", []),
        ("Private", "Open/Private", []),
        ("Open/b.md", "Private/b.md", []),
        ("Open/b.md", "Open/c.md", []),
    ],
)
def test_a_note_that_leaves_a_denied_place_is_flagged(
    make_vault: MakeVault, old: str, new: str, places: list[str]
) -> None:
    ready = dry_run(make_vault(NOTES), step("move", "vault.rename", {"from": old, "to": new}))
    assert not ready.errors
    assert sorted(path or "" for path in flagged(ready)) == places


@pytest.mark.parametrize("agent", ["", MODEL])
@pytest.mark.parametrize(
    "steps",
    [
        [write("hello")],
        [step("tag", "vault.renameTag", {"from": "bee", "to": "y"})],
        [step("move", "vault.rename", {"from": "Open/b.md", "to": "Open/c.md"})],
        [step("edit", "vault.replaceText", {"path": "Open/b.md", "find": "Bee", "replace": "B"})],
        [step("read", "vault.readFile", {"path": "Open/b.md"}), write("${steps.read.content}")],
    ],
)
def test_a_plan_without_such_text_is_not_flagged(
    make_vault: MakeVault, agent: str, steps: list[dict[str, Any]]
) -> None:
    ready = dry_run(make_vault(NOTES), *steps, agent=agent)
    assert not ready.errors
    assert flagged(ready) == []


def test_changes_within_denied_notes_are_not_flagged(make_vault: MakeVault) -> None:
    ready = dry_run(
        make_vault(NOTES),
        READ,
        step(
            "copy", "vault.createFile", {"path": "Private/n.md", "content": "${steps.read.content}"}
        ),
        step(
            "edit", "vault.replaceText", {"path": "Private/p.md", "find": "4711", "replace": "0815"}
        ),
    )
    assert not ready.errors
    assert flagged(ready) == []


def test_the_selection_of_a_denied_note_is_its_text(make_vault: MakeVault) -> None:
    selection = Selection("The code is 4711.", EditorPosition(6, 0), EditorPosition(6, 17))
    store = make_vault(NOTES)
    for active, places in (("Private/p.md", ["Open/new.md"]), ("Open/a.md", [])):
        context = RunContext(
            "vault",
            datetime(2026, 3, 14, tzinfo=UTC),
            active_file=parse(active, PathUse.READ),
            selection=selection,
        )
        assert flagged(dry_run(store, write("${selection}"), context=context)) == places


def test_outputs_of_an_earlier_stage_may_hold_such_text(make_vault: MakeVault) -> None:
    steps = (READ, write("${steps.read.content}"))
    ready = dry_run(make_vault(NOTES), *steps, done={"read": {"content": "The code is 4711."}})
    assert flagged(ready) == ["Open/new.md"]


@pytest.mark.parametrize("link", [symbolic_link, os.link])
def test_a_link_to_a_denied_note_is_denied_too(
    make_vault: MakeVault, link: Callable[[Path, Path], None]
) -> None:
    store = make_vault(NOTES)
    root = Path(store.real_path)
    link(root / "Private/p.md", root / "Open/link.md")
    read = step("read", "vault.readFile", {"path": "Open/link.md"})
    (refusal,) = dry_run(store, read, agent=MODEL).errors
    assert "“Open/link.md”, which share_deny hides" in refusal.message
    assert flagged(dry_run(store, read, write("${steps.read.content}"))) == ["Open/new.md"]


NAMING = {
    "delete": step("e", "vault.delete", {"path": "Private/p.md"}),
    "append": step(
        "e", "vault.updateFile", {"path": "Private/p.md", "mode": "append", "content": "x"}
    ),
    "take": step("e", "vault.takeLines", {"path": "Private/p.md", "text": "code"}),
    "property": step("e", "vault.setFrontmatter", {"path": "Private/p.md", "set": {"a": 1}}),
}


@pytest.mark.parametrize("on_error", ["stop", "skip"])
@pytest.mark.parametrize("name", NAMING)
def test_a_step_of_a_model_that_names_a_denied_note_is_refused(
    make_vault: MakeVault, name: str, on_error: str
) -> None:
    store = make_vault(NOTES)
    naming = NAMING[name] | {"onError": on_error}
    ready = dry_run(store, naming, agent=MODEL)
    assert [problem.sentence for problem in ready.errors] == [
        "The model's plan uses “Private/p.md”, which share_deny hides from models. "
        "Change the rule, or do this step yourself."
    ]
    assert ready.plan_hash is None
    assert not dry_run(store, naming).errors


@pytest.mark.parametrize(
    ("change", "paths"),
    [
        (step("e", "vault.replaceText", {"find": "code", "replace": "CODE"}), ["Private/p.md"]),
        (step("e", "vault.rename", {"from": "Open/a.md", "to": "c.md"}), ["Private/p.md"]),
        (write("x", "Private/new.md"), ["Private/new.md"]),
        (step("e", "vault.rename", {"from": "Open/b.md", "to": "Private/b.md"}), ["Private/b.md"]),
        (step("e", "vault.rename", {"from": "Open", "to": "Public"}), ["Open/s.md"]),
        (step("e", "vault.delete", {"path": "Open", "recursive": True}), ["Open/s.md"]),
    ],
)
def test_a_change_of_a_model_to_a_denied_note_is_flagged(
    make_vault: MakeVault, change: dict[str, Any], paths: list[str]
) -> None:
    store = make_vault(NOTES | {"Open/s.md": "Ess"})
    rules = SharingRules.of(deny=["Private", "s.md"])
    places = flagged(dry_run(store, change, agent=MODEL, rules=rules))
    assert set(paths) <= set(places)


def absent(find: str) -> dict[str, Any]:
    """Return a step that fails if a note of the vault holds a text."""
    args = {"find": find, "replace": "$0", "regex": True, "expectCount": 0}
    return step("absent", "vault.replaceText", args, onError="skip")


@pytest.mark.parametrize(
    ("probe", "effect", "path"),
    [
        (absent("code is 4"), write("x"), "Open/new.md"),
        (absent("code is 4"), step("d", "vault.delete", {"path": "Open/b.md"}), "Open/b.md"),
        (
            absent("code is 4"),
            step("m", "vault.rename", {"from": "Open/b.md", "to": "Private/b.md"}),
            "Open/b.md",
        ),
        (
            step(
                "new",
                "vault.createFile",
                {"path": "Private/p.md", "content": "x", "ifNotExists": False},
                onError="skip",
            ),
            write("y"),
            "Open/new.md",
        ),
    ],
)
def test_a_change_that_denied_notes_prevent_is_flagged_for_a_model(
    make_vault: MakeVault, probe: dict[str, Any], effect: dict[str, Any], path: str
) -> None:
    ready = dry_run(make_vault(NOTES), probe, effect | {"dependsOn": [probe["id"]]}, agent=MODEL)
    assert not ready.errors
    assert not ready.change_set.changes
    assert flagged(ready) == [path]


@pytest.mark.parametrize(
    "steps",
    [
        [write("${activeFile} ${activeFolder}")],
        [step("get", "workspace.getContext", {}), write("${steps.get|json}")],
        [write("${selection}")],
    ],
)
def test_the_name_of_a_denied_open_note_is_not_for_a_model(
    make_vault: MakeVault, steps: list[dict[str, Any]]
) -> None:
    store = make_vault(NOTES)
    selection = Selection("4711", EditorPosition(6, 12), EditorPosition(6, 16))
    for active, is_denied in (("Private/p.md", True), ("Open/a.md", False)):
        path = parse(active, PathUse.READ)
        around = RunContext(
            "vault",
            datetime(2026, 3, 14, tzinfo=UTC),
            active_file=path,
            selection=selection,
            open_files=(path,),
        )
        ready = dry_run(store, *steps, agent=MODEL, context=around)
        assert bool(ready.errors or flagged(ready)) == is_denied


PROBES = [
    READ,
    META,
    FIND,
    absent("code is 4"),
    absent("code is 5"),
    step("all", "vault.listFiles", {}),
    step("back", "vault.getBacklinks", {"path": "Open/a.md"}),
    step("any", "vault.replaceText", {"find": "4711|Bee", "replace": "x", "regex": True}),
]
EFFECTS = [
    write("fixed"),
    write("${steps.read.content}"),
    write("${steps.all.count}"),
    write("${steps.back.files}"),
    write("x", when="$steps.find.total"),
    step("gone", "vault.delete", {"path": "Open/b.md"}),
]


@given(
    st.lists(st.sampled_from(PROBES), max_size=3, unique_by=lambda item: item["id"]),
    st.lists(st.sampled_from(EFFECTS), max_size=2, unique_by=lambda item: item["id"]),
    st.booleans(),
)
def test_law_what_a_model_does_unflagged_is_the_same_without_the_denied_notes(
    probes: list[dict[str, Any]], effects: list[dict[str, Any]], depend: bool
) -> None:
    depends = {"dependsOn": [item["id"] for item in probes]} if depend else {}
    steps = [
        item | {"onError": "skip"} for item in [*probes, *(item | depends for item in effects)]
    ]
    changes = []
    for notes in (NOTES, {name: text for name, text in NOTES.items() if name.startswith("Open")}):
        with tempfile.TemporaryDirectory() as folder:
            for name, text in notes.items():
                file = Path(folder, name)
                file.parent.mkdir(exist_ok=True)
                file.write_text(text)
            with VaultStore.open(Path(folder)) as store:
                try:
                    ready = dry_run(store, *steps, agent=MODEL)
                except PlanError:
                    return  # the plan refers to a step that it does not have
        if notes is NOTES and (ready.errors or ready.discloses):
            return
        changes.append(
            {(change.kind, change.path.text, change.content) for change in ready.change_set.changes}
        )
    assert changes[0] == changes[1]
