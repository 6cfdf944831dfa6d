"""A plan on the screen: folded by effect, read file by file, decided in part. On a real vault."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from textual.widgets import Static

from obsidian_agent.bootstrap import Wiring
from obsidian_agent.config.live import LiveSettings
from obsidian_agent.integrations.proposals import ClientProposal, Outcome
from obsidian_agent.tui.screens.dialogs import ChoiceScreen, Comment, DiffScreen
from obsidian_agent.tui.screens.help import Help
from obsidian_agent.tui.screens.waiting import WaitingScreen
from obsidian_agent.tui.turn.controller import PlanSource
from obsidian_agent.tui.turn.proposals import ClientPlan
from obsidian_agent.tui.widgets.diff import DiffView
from obsidian_agent.tui.widgets.plan_list import PlanList
from obsidian_agent.vault.transaction.actions import Action, MoveEntry
from obsidian_agent.vault.transaction.apply import Applier
from support import MakeVault
from tui.driving import Driver, driving_real

NOTES = 40
FILES = {
    **{f"Uni/archive/{n:02}.md": f"---\ntype: Uni\n---\n\nNote {n}\n" for n in range(NOTES)},
    "Home.md": "# Home\n\n" + "".join(f"- [[Uni/archive/{n:02}]]\n" for n in range(3)),
    "Log.md": "# Log\n\nlast line",
}


def step(id: str, tool: str, foreach: str = "", **args: Any) -> dict[str, Any]:
    document = {"id": id, "tool": tool, "args": args}
    if foreach:
        document["foreach"] = {"from": foreach, "itemName": "note"}
    return document


TIDY = {
    "version": "1.0",
    "goal": "Tidy university notes",
    "riskLevel": "writes",
    "steps": [
        step("find", "vault.find", where={"folder": "Uni"}),
        step(
            "set", "vault.setFrontmatter", "$steps.find.files",
            path="${note.path}", set={"reviewed": False},
        ),
        step(
            "move", "vault.rename", "$steps.find.files",
            **{"from": "${note.path}", "to": "Uni/done/${note.file}"},
        ),
        step("log", "vault.addLines", path="Log.md", content="one more"),
        step("index", "vault.createFile", path="Uni/Index.md", content="# Index\n\nAll\n"),
    ],
}  # fmt: skip


@asynccontextmanager
async def planned(
    make_vault: MakeVault,
    folder: Path,
    document: Mapping[str, Any],
    files: Mapping[str, str] = FILES,
    size: tuple[int, int] = (120, 40),
    answers: Sequence[Mapping[str, Any]] = (),
) -> AsyncIterator[Driver]:
    """Run the app with a previewed plan in its focused plan pane; `answers` are of a model."""
    settings = LiveSettings()
    if answers:
        script = folder / "answers.jsonl"
        script.write_text("\n".join(json.dumps(answer) for answer in answers))
        options = {"model": f"scripted/{script}", "share_allow": ("**",)}
        settings = LiveSettings.load(folder / "config.toml", {}, options=options)
    wiring = Wiring(make_vault(dict(files)), folder / "state", settings=settings)
    async with driving_real(wiring, size) as app:
        app.main.preview_plan(document)
        await app.until(lambda: app.main.turn.pending is not None)
        await app.settle()
        app.main.query_one(PlanList).focus()
        app.wait_out_grace()
        yield app


def listed(app: Driver) -> list[str]:
    """Return the rows of the plan's list as text, all of them."""
    plan_list = app.main.query_one(PlanList)
    return [plan_list.draw(row, 100).plain.rstrip() for row in plan_list.rows]


def row_of(app: Driver, text: str) -> int:
    """Return the index of the first row of a change with a text."""
    rows = listed(app)
    start = next(index for index, row in enumerate(rows) if row.startswith("Files"))
    return next(index for index, row in enumerate(rows) if index > start and text in row)


async def go_to(app: Driver, text: str) -> None:
    app.main.query_one(PlanList).cursor = row_of(app, text)
    await app.settle()


async def test_a_large_plan_fits_on_a_screen_and_its_one_new_note_is_seen(
    make_vault: MakeVault, tmp_path: Path
) -> None:
    async with planned(make_vault, tmp_path, TIDY) as app:
        rows = listed(app)
        assert any(row.startswith("  1 ● Find notes in Uni") and "40 notes" in row for row in rows)
        assert any(row.startswith("  2 ● Set frontmatter …") and "40 edited" in row for row in rows)
        start = rows.index("Files (44)")
        assert [" ".join(row.split()) for row in rows[start + 1 :]] == [
            "new Uni/Index.md +3 −0",
            "folder Uni/done",
            "edit Log.md +1 −0",
            "▸ rename 40 notes Uni/archive/ → Uni/done/",
            "links Home.md +3 −3",
        ]


async def test_the_help_lists_only_the_keys_that_the_pane_has(
    make_vault: MakeVault, tmp_path: Path
) -> None:
    async with planned(make_vault, tmp_path, TIDY) as app:
        await app.press("f1")
        await app.on_top(Help)
        text = str(app.app.screen.query_one("#keys", Static).content)
        here = text.partition("\nEverywhere\n")[0]
        assert "Preview the plan again" in here
        assert "Go to the next section" in here
        assert "Go to the previous section" not in here, "p previews again"


async def test_a_step_counts_the_notes_that_it_leaves_unchanged(
    make_vault: MakeVault, tmp_path: Path
) -> None:
    files = {"Done/a.md": "", "b.md": "", "c.md": ""}
    steps = [
        step("find", "vault.find", where={"folder": ""}),
        step(
            "move",
            "vault.rename",
            "$steps.find.files",
            **{"from": "${note.path}", "to": "Done/${note.file}"},
        ),
    ]
    async with planned(make_vault, tmp_path, TIDY | {"steps": steps}, files) as app:
        assert "2 renamed, 1 unchanged" in app.screen()


async def test_a_fold_opens_and_closes_and_a_filter_finds_a_file(
    make_vault: MakeVault, tmp_path: Path
) -> None:
    async with planned(make_vault, tmp_path, TIDY) as app:
        await go_to(app, "40 notes   Uni/archive/")
        await app.press("right")
        assert sum("and edited" in row for row in listed(app)) == NOTES
        await app.press("down", "left")
        assert "and edited" not in "\n".join(listed(app))
        await app.press("slash", *"07")
        assert [row.split()[:2] for row in listed(app)] == [["Files", "that"], ["rename", "07.md"]]
        await app.press("escape")
        assert "Files (44)" in listed(app)
        assert app.main.turn.pending is not None, "Esc closed the filter, not the plan"


async def test_the_full_diff_turns_to_the_next_file_also_inside_a_fold(
    make_vault: MakeVault, tmp_path: Path
) -> None:
    async with planned(make_vault, tmp_path, TIDY) as app:
        await go_to(app, "Log.md")
        await app.press("enter")
        await app.on_top(DiffScreen)
        assert "Log.md" in app.screen()
        assert "file 2 of 43" in app.screen()
        await app.press("right_square_bracket")
        assert "Uni/done/00.md" in app.screen()
        assert "+ reviewed: false" in app.screen()
        await app.press("right_square_bracket", "left_square_bracket", "left_square_bracket")
        await app.press("left_square_bracket", "left_square_bracket")
        assert "Uni/Index.md" in app.screen()
        assert "file 1 of 43" in app.screen()
        await app.press("escape")
        assert "Uni/Index.md" in listed(app)[app.main.query_one(PlanList).cursor]


async def test_a_diff_starts_at_its_first_change_with_both_sides_on_a_wide_screen(
    make_vault: MakeVault, tmp_path: Path
) -> None:
    long = "".join(f"{'word ' * 200}{n}\n" for n in range(5))
    document = TIDY | {
        "steps": [step("r", "vault.replaceText", find="old", replace="new", paths=["A.md"])]
    }
    files = {"A.md": f"{long}an old word\n"}
    async with planned(make_vault, tmp_path, document, files, size=(170, 30)) as app:
        await app.press("enter")
        await app.on_top(DiffScreen)
        view = app.app.screen.query_one(DiffView)
        assert view.scroll_offset.y > 0
        assert any(
            "- an old word" in line and "+ an new word" in line for line in app.screen().split("\n")
        )
        await app.resize(120, 30)
        assert "- an old word" in app.screen()
        assert not any(
            "- an old word" in line and "+ an new word" in line for line in app.screen().split("\n")
        )


def on_disk(app: Driver) -> dict[str, str]:
    folder = Path(app.main.session.vault.store.real_path)
    return {
        path.relative_to(folder).as_posix(): path.read_bytes().decode()
        for path in folder.rglob("*.md")
    }


def threads_on_disk(folder: Path) -> str:
    files = [path for path in folder.rglob("*.jsonl") if "state" in path.parts]
    return "".join(path.read_text(errors="replace") for path in files)


async def test_a_file_and_an_edit_are_left_out_and_the_rest_is_applied_to_the_byte(
    make_vault: MakeVault, tmp_path: Path
) -> None:
    text = "old\n" + "\n" * 9 + "old\n"
    files = {"A.md": text, "B.md": text, "C.md": "old\n"}
    document = TIDY | {"steps": [step("r", "vault.replaceText", find="old", replace="new")]}
    async with planned(make_vault, tmp_path, document, files) as app:
        await go_to(app, "A.md")
        await app.press("space")
        await app.until(lambda: "Files (2, 1 left out)" in listed(app))
        assert any(row.startswith("○ edit   A.md") for row in listed(app))
        assert "2 edited" in app.plan_head()
        await go_to(app, "B.md")
        await app.press("right")
        await app.until(lambda: any("● line 11" in row for row in listed(app)))
        await app.press("down", "down")
        assert "● line 11  + new" in listed(app)[app.main.query_one(PlanList).cursor]
        await app.press("space")
        await app.until(lambda: any("○ line 11" in row for row in listed(app)))
        assert any("B.md" in row and "1 left out  +1 −1" in row for row in listed(app))
        app.wait_out_grace()
        await app.press("a")
        await app.finished()
        assert on_disk(app) == {
            "A.md": text,
            "B.md": text.replace("old", "new", 1),
            "C.md": "new\n",
        }
        (run,) = app.main.session.runs.history()
        shown = app.main.session.runs.show(run.run_id)
        assert shown.left_out == ("A.md", "B.md: 1 change")


async def test_what_is_left_out_can_be_taken_in_again(
    make_vault: MakeVault, tmp_path: Path
) -> None:
    async with planned(make_vault, tmp_path, TIDY) as app:
        before = app.plan.preview
        await go_to(app, "40 notes   Uni/archive/")
        await app.press("right")
        await app.pilot.press(*("down", "space") * 3)  # faster than the previews
        await app.until(lambda: any("3 left out" in row for row in listed(app)))
        await app.settle()
        assert sum(row.lstrip().startswith("○") for row in listed(app)) == 3
        assert "37 renamed" in app.plan_head()
        await go_to(app, "40 notes   3 left out  Uni/archive/")
        await app.press("space")
        await app.until(lambda: any("40 left out" in row for row in listed(app)))
        assert "renamed" not in app.plan_head()
        app.wait_out_grace()
        await app.press("space")
        await app.until(lambda: "Files (44)" in listed(app))
        assert before is not None
        assert app.plan.preview is not None
        assert app.plan.preview.plan_hash == before.plan_hash


async def test_what_a_later_step_needs_stays_and_the_pane_says_so(
    make_vault: MakeVault, tmp_path: Path
) -> None:
    document = TIDY | {
        "steps": [
            step("new", "vault.createFile", path="New.md", content="x\n"),
            step("add", "vault.addLines", path="New.md", content="y") | {"preview": "Add a line"},
        ]
    }
    async with planned(make_vault, tmp_path, document) as app:
        await go_to(app, "New.md")
        await app.press("space")
        await app.until(lambda: "the step “Add a line” needs it" in app.screen())
        assert "Files (1)" in listed(app)
        assert app.plan.obstacle() is None


async def test_a_new_message_puts_a_plan_aside_and_does_not_lose_it(
    make_vault: MakeVault, tmp_path: Path
) -> None:
    async with planned(make_vault, tmp_path, TIDY) as app:
        await app.send("Create a note Pears")
        await app.until(lambda: app.main.turn.phase == "idle")
        await app.settle()
        await app.press("escape")
        if app.main.turn.pending is None or app.main.turn.pending.plan.goal == TIDY["goal"]:
            app.main.preview_plan(TIDY | {"goal": "Another", "steps": TIDY["steps"][-1:]})
            await app.until(
                lambda: app.main.turn.pending and app.main.turn.pending.plan.goal == "Another"
            )
            await app.settle()
        assert "You have not decided on “Tidy university notes”" in app.transcript()
        (waiting,) = app.main.services.waiting.all()
        assert (waiting.source, waiting.goal, waiting.changes) == ("", TIDY["goal"], 44)
        await app.until(lambda: "1 plan waiting" in app.screen())
        await app.send("/plans")
        await app.on_top(WaitingScreen)
        await app.until(lambda: "Tidy university notes" in app.screen())
        await app.press("d")
        await app.until(lambda: "No plans are waiting" in app.screen())
        await app.press("escape")
        await app.until(lambda: "waiting" not in app.screen())


async def test_a_pending_plan_says_that_a_file_changed_and_previews_again(
    make_vault: MakeVault, tmp_path: Path
) -> None:
    async with planned(make_vault, tmp_path, TIDY) as app:
        folder = Path(app.main.session.vault.store.real_path)
        (folder / "Log.md").write_text("# Log\n\nother\n")
        app.main.session.vault.refresh_soon()
        await app.until(lambda: "! 1 file changed since the preview" in app.screen())
        app.wait_out_grace()
        await app.press("p")
        await app.until(lambda: "changed since" not in app.screen() and app.plan.complete)
        app.wait_out_grace()
        await app.press("a")
        await app.finished()
        assert on_disk(app)["Log.md"] == "# Log\n\nother\none more\n"


async def test_an_edited_plan_is_compared_with_the_one_before(
    make_vault: MakeVault, tmp_path: Path
) -> None:
    async with planned(make_vault, tmp_path, TIDY) as app:
        pending = app.main.turn.pending
        app.main.turn.preview(
            TIDY | {"steps": TIDY["steps"][-1:]},
            frozenset(),
            {},
            source=PlanSource(revises=pending),
        )
        await app.until(lambda: "Compared with the previous plan" in app.transcript())
        await app.until(
            lambda: "42 fewer (Home.md, Log.md, Uni/archive/00.md, … 39 more)" in app.transcript()
        )
        assert not app.main.services.waiting.all()


async def test_a_comment_and_the_plan_go_to_the_model_and_the_difference_is_shown(
    make_vault: MakeVault, tmp_path: Path
) -> None:
    smaller = TIDY | {"goal": "Only the index", "steps": TIDY["steps"][-1:]}
    answers = [{"plan": smaller}]
    async with planned(make_vault, tmp_path, TIDY, answers=answers) as app:
        await app.press("c")
        await app.on_top(Comment)
        await app.press(*"only the index", "enter")
        await app.until(lambda: "Compared with the previous plan" in app.transcript())
        await app.until(lambda: "42 fewer" in app.transcript())
        assert app.main.turn.pending is not None
        assert app.main.turn.pending.plan.goal == "Only the index"
        assert not app.main.services.waiting.all(), "the user asked for its replacement"
        stored = threads_on_disk(tmp_path)
        assert "only the index" in stored
        assert "Tidy university notes" in stored, "the plan is part of the message"


async def test_a_comment_on_the_plan_of_a_client_is_its_answer(
    make_vault: MakeVault, tmp_path: Path
) -> None:
    async with planned(make_vault, tmp_path, TIDY) as app:
        outcome: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        await app.press("r")
        app.main._show_proposal(ClientPlan(ClientProposal("Claude", TIDY), outcome))
        await app.until(lambda: app.main.turn.pending is not None)
        await app.settle()
        app.main.query_one(PlanList).focus()
        app.wait_out_grace()
        await app.press("c")
        await app.on_top(Comment)
        await app.press(*"not the log", "enter")
        assert outcome.done()
        assert outcome.result().status == "refused"
        assert "asks for a change: not the log" in outcome.result().message


async def test_a_plan_with_errors_is_repaired_by_the_model(
    make_vault: MakeVault, tmp_path: Path
) -> None:
    broken = TIDY | {"steps": [step("add", "vault.addLines", path="None.md", content="x")]}
    answers = [{"plan": TIDY | {"steps": TIDY["steps"][-1:]}}]
    async with planned(make_vault, tmp_path, broken, answers=answers) as app:
        assert "f Repair" in app.screen()
        await app.press("f")
        await app.until(lambda: "✓ Ready" in app.screen())
        await app.until(
            lambda: "Compared with the previous plan: 1 more (Uni/Index.md)" in app.transcript()
        )


async def test_a_wrong_name_in_a_plan_is_chosen_among_the_nearest(
    make_vault: MakeVault, tmp_path: Path
) -> None:
    broken = TIDY | {"steps": [step("add", "vault.addLines", path="Lgo", content="x")]}
    async with planned(make_vault, tmp_path, broken) as app:
        assert "does not exist" in app.screen()
        await app.press("f")
        await app.on_top(ChoiceScreen)
        assert "Lgo does not exist. Which note is meant?" in app.screen()
        await app.press("1")
        await app.until(lambda: "✓ Ready" in app.screen())
        assert app.plan.preview is not None
        paths = [change.path.text for change in app.plan.preview.change_set.changes]
        assert paths == ["Log.md"]


async def test_the_rest_of_a_cancelled_run_is_one_key_away(
    make_vault: MakeVault, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with planned(make_vault, tmp_path, TIDY) as app:
        reached, cancelled = threading.Event(), threading.Event()
        carry_out = Applier.carry_out

        def held(self: Applier, action: Action, number: int, content: bytes = b"") -> bool:
            if isinstance(action, MoveEntry) and action.path.name == "20.md":
                reached.set()
                assert cancelled.wait(30)
            return carry_out(self, action, number, content)

        monkeypatch.setattr(Applier, "carry_out", held)
        await app.pilot.press("a")
        await app.until(reached.is_set)
        app.main.turn.cancel()
        cancelled.set()
        await app.finished()
        await app.until(lambda: "Cancelled" in app.screen())
        assert "g Do the rest" in app.screen()
        app.wait_out_grace()
        app.panes.go("work")
        await app.settle()
        await app.press("g")
        await app.until(lambda: app.main.turn.pending is not None)
        await app.settle()
        assert "1 new" in app.plan_head()
        app.wait_out_grace()
        app.main.query_one(PlanList).focus()
        await app.press("a")
        await app.until(lambda: app.stage == "result" and "✓ Done" in app.screen())
        files = on_disk(app)
        assert sum(path.startswith("Uni/done/") for path in files) == NOTES
        assert all("reviewed: false" in text for path, text in files.items() if "done" in path)
        assert files["Log.md"].count("one more") == 1


async def test_a_conflict_offers_another_preview(make_vault: MakeVault, tmp_path: Path) -> None:
    async with planned(make_vault, tmp_path, TIDY) as app:
        folder = Path(app.main.session.vault.store.real_path)
        app.main.session.vault.unfollow()
        (folder / "Log.md").write_text("# Log\n\nother\n")
        await app.press("a")
        await app.finished()
        await app.until(lambda: "p Preview again" in app.screen())
        app.wait_out_grace()
        await app.press("p")
        await app.until(lambda: app.main.turn.pending is not None)
        await app.settle()
        assert app.plan.obstacle() is None
