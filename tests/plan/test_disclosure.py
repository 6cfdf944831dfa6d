"""What share_deny names does not reach a shared place by way of a plan, without a flag."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from typing import Any

import pytest

from obsidian_agent.plan import preview
from obsidian_agent.plan.policy import MODEL, Policy, SharingRules
from obsidian_agent.plan.result import Preview
from obsidian_agent.tools.core.tool import EditorPosition, RunContext, Selection
from obsidian_agent.tools.registry import TOOLS
from obsidian_agent.vault.filesystem.store import VaultStore
from obsidian_agent.vault.paths.path import PathUse, parse
from obsidian_agent.vault.views.disk import DiskView
from support import MakeVault

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
        allow_commands=True,
        sharing=rules,
        agent=agent,
        confirm_writes=False,
        auto_approve_read_only=True,
    )
    around = context or RunContext("vault", datetime(2026, 3, 14, tzinfo=UTC))
    return preview.dry_run(plan, TOOLS, policy, DiskView(store), around, **options)


def flagged(ready: Preview) -> list[str | None]:
    """The places that would get such text. The rest of the preview agrees with them."""
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
        [step("tag", "vault.renameTag", {"from": "x", "to": "y"})],
        [step("move", "vault.rename", {"from": "Open/a.md", "to": "Open/c.md"})],
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


def test_a_link_to_a_denied_note_is_denied_too(make_vault: MakeVault) -> None:
    store = make_vault(NOTES)
    link = store.real_path + "/Open/link.md"
    os.symlink("../Private/p.md", link)
    read = step("read", "vault.readFile", {"path": "Open/link.md"})
    assert flagged(dry_run(store, read, write("${steps.read.content}"))) == ["Open/new.md"]
