from __future__ import annotations

import errno
import os
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from obsidian_agent.agent.events import (
    ExecutionResult,
    RunEvent,
    RunFinished,
    RunStarted,
    StepFailed,
    StepFinished,
    StepRetrying,
    StepSkipped,
    StepStarted,
)
from obsidian_agent.errors import JournalError, Problem
from obsidian_agent.journal.recovery import interrupted
from obsidian_agent.journal.undo import undo
from obsidian_agent.journal.writer import Journal
from obsidian_agent.plan.result import Instance, Preview
from obsidian_agent.services import executor
from obsidian_agent.services.executor import execute
from obsidian_agent.vault.filesystem.store import VaultStore
from obsidian_agent.vault.transaction.actions import Action, MoveEntry
from obsidian_agent.vault.transaction.apply import Applier
from previews import create, make, modify, move, picture, previewed, run, step, trash
from support import MakeVault

FILES = {
    "one.md": b"one\n",
    "two.md": b"two\n",
    "three.md": b"three\n",
    "Folder/inner.md": b"inner\n",
}
EDITS = [
    modify(f"{name}.md", f"{name}\n".encode(), b"changed\n") for name in ("one", "two", "three")
]


@dataclass
class Desk:
    """A vault, its journal, and what was heard during runs."""

    store: VaultStore
    journal: Journal
    events: list[RunEvent]

    @property
    def root(self) -> Path:
        return Path(self.store.real_path)

    def run(self, preview: Preview, **options: Any) -> ExecutionResult:
        return run(preview, self.store, self.journal, self.events, **options)

    def heard(self, kind: type[Any]) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]

    def written(self) -> list[str]:
        """Return the notes that have their new content."""
        return [
            name
            for name in ("one.md", "two.md", "three.md")
            if (self.root / name).read_bytes() == b"changed\n"
        ]


@pytest.fixture
def desk(make_vault: MakeVault, tmp_path: Path) -> Iterator[Desk]:
    store = make_vault(FILES)
    with Journal.open(tmp_path / "state", store) as journal:
        yield Desk(store, journal, [])


def failing(
    monkeypatch: pytest.MonkeyPatch, name: str, times: int, number: int = errno.EIO
) -> list[str]:
    """Let the actions on one path fail so many times; the list of failures grows with them."""
    real = Applier._put_file
    failed: list[str] = []

    def put_file(self: Applier, action: Any, at: int, content: bytes) -> None:
        if action.path.name == name and len(failed) < times:
            failed.append(name)
            raise OSError(number, os.strerror(number))
        real(self, action, at, content)

    monkeypatch.setattr(Applier, "_put_file", put_file)
    return failed


def failing_moves(monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    """Let the moves of some files fail."""
    real = Applier._move

    def move(self: Applier, action: MoveEntry, number: int) -> None:
        if action.path.name in names:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        real(self, action, number)

    monkeypatch.setattr(Applier, "_move", move)


def edited_during(desk: Desk, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Edit a note in another program when the first action begins."""
    real = Applier.carry_out

    def carry_out(self: Applier, action: Action, number: int, content: bytes = b"") -> bool:
        if number == 0:
            (desk.root / name).write_bytes(b"edited\n")
        return real(self, action, number, content)

    monkeypatch.setattr(Applier, "carry_out", carry_out)


class TestDone:
    def test_the_result(self, desk: Desk) -> None:
        preview = previewed(
            [make("New"), create("New/note.md", b"x")],
            EDITS[0],
            [move("Folder", "Moved"), modify("Moved/inner.md", b"inner\n", b"INNER\n")],
            [move("two.md", "zwei.md", b"two\n"), modify("zwei.md", b"two\n", b"zwei\n")],
            trash("three.md", b"three\n"),
        )
        result = desk.run(preview)
        assert (result.status, result.success, result.outcome, result.errors) == (
            "done",
            True,
            "done",
            (),
        )
        assert (result.completed_steps, result.total_steps) == (5, 5)
        assert result.undo_available
        effects = result.effects
        assert (effects.created, effects.modified, effects.deleted) == (
            ("New/note.md",),
            ("Moved/inner.md", "one.md"),
            ("three.md",),
        )
        assert (effects.renamed, effects.folders) == (
            (("Folder", "Moved"), ("two.md", "zwei.md")),
            ("New",),
        )
        assert result.timings.journal_ms > 0
        assert result.timings.apply_ms > 0
        assert (desk.root / ".trash/three.md").read_bytes() == b"three\n"
        assert (desk.root / "zwei.md").read_bytes() == b"zwei\n"

    def test_the_journal_tells_the_same(self, desk: Desk) -> None:
        preview = previewed(*EDITS, goal="Change three notes")
        result = desk.run(preview)
        (entry,) = desk.journal.history()
        assert (entry.run_id, entry.goal, entry.status, entry.undone) == (
            result.run_id,
            "Change three notes",
            "done",
            False,
        )
        assert entry.effects == result.effects
        assert desk.journal.plan_of(entry.run_id).document == preview.plan.to_json()

    def test_the_events(self, desk: Desk) -> None:
        preview = previewed(EDITS[0], EDITS[1], steps=[step("a", preview="Change one"), step("b")])
        result = desk.run(preview)
        kinds = [type(event) for event in desk.events]
        assert kinds == [
            RunStarted,
            StepStarted,
            StepFinished,
            StepStarted,
            StepFinished,
            RunFinished,
        ]
        assert desk.heard(RunStarted) == [RunStarted(result.run_id or "", 2)]
        assert [event.text for event in desk.heard(StepStarted)] == [
            "Change one",
            "Write file",
        ]
        assert [
            (event.completed, event.total, event.paths) for event in desk.heard(StepFinished)
        ] == [
            (1, 2, ("one.md",)),
            (2, 2, ("two.md",)),
        ]
        assert desk.heard(RunFinished) == [RunFinished(result)]

    def test_a_front_end_that_fails_stops_nothing(self, desk: Desk) -> None:
        def emit(_: RunEvent) -> None:
            raise RuntimeError("a bug in a widget")

        result = execute(
            previewed(*EDITS), desk.store, desk.journal, emit=emit, cancel=threading.Event()
        )
        assert result.success
        assert len(desk.written()) == 3

    def test_instances_that_the_preview_left_out(self, desk: Desk) -> None:
        preview = previewed(EDITS[0], [], EDITS[1])
        skipped = replace(
            preview.instances[1], state="skipped", reason="when is false", output=None
        )
        result = desk.run(
            replace(preview, instances=(preview.instances[0], skipped, preview.instances[2]))
        )
        assert result.success
        assert (result.completed_steps, result.total_steps) == (2, 3)
        assert [(event.instance, event.reason) for event in desk.heard(StepSkipped)] == [
            ("s1", "when is false")
        ]

    def test_a_plan_that_only_reads_is_recorded_and_can_become_a_macro(self, desk: Desk) -> None:
        preview = previewed([], goal="Look")
        result = desk.run(preview)
        assert (result.success, result.undo_available, result.outputs) == (
            True,
            False,
            {"s0": {"of": "s0"}},
        )
        assert result.run_id is not None
        assert desk.journal.plan_of(result.run_id).document["goal"] == "Look"
        assert desk.journal.last_undoable() is None

    def test_a_plan_that_only_reads_needs_no_journal(self, desk: Desk) -> None:
        desk.journal.folder.mkdir(parents=True)
        desk.journal.file.write_bytes(b"garbage" * 1000)
        result = desk.run(previewed([]))
        assert (result.success, result.run_id) == (True, None)

    def test_a_link_is_written_through_and_stays_a_link(self, desk: Desk) -> None:
        (desk.root / "link.md").symlink_to("Folder/inner.md")
        before = picture(desk.root)
        assert desk.run(previewed(modify("link.md", b"inner\n", b"INNER\n"))).success
        assert (desk.root / "link.md").is_symlink()
        assert (desk.root / "Folder/inner.md").read_bytes() == b"INNER\n"
        undo(desk.journal, desk.store)
        assert picture(desk.root) == before


class TestRefused:
    def test_an_invalid_preview(self, desk: Desk) -> None:
        result = desk.run(replace(previewed(*EDITS), errors=(Problem("FILE_EXISTS", "no"),)))
        assert (result.status, result.outcome, result.run_id, result.errors[0].code) == (
            "refused",
            "refused",
            None,
            "FILE_EXISTS",
        )
        assert desk.written() == []

    @pytest.mark.parametrize(
        ("spoil", "operations"),
        [
            (lambda root: (root / "two.md").write_bytes(b"edited\n"), EDITS),
            (lambda root: (root / "two.md").unlink(), EDITS),
            (
                lambda root: (root / "new.md").write_bytes(b"mine"),
                [EDITS[0], create("new.md", b"x")],
            ),
            (
                lambda root: (root / "Folder/inner.md").write_bytes(b"edited\n"),
                [EDITS[0], move("Folder/inner.md", "x.md", b"inner\n")],
            ),
            (
                lambda root: (root / "x.md").write_bytes(b"mine"),
                [EDITS[0], move("two.md", "x.md", b"two\n")],
            ),
            (
                lambda root: (root / "Folder/inner.md").write_bytes(b"edited\n"),
                [[move("Folder", "Moved"), modify("Moved/inner.md", b"inner\n", b"x")]],
            ),
            (lambda root: (root / "New").write_bytes(b"a file"), [EDITS[0], make("New")]),
            (
                lambda root: (root / "Folder/inner.md").rename(root / "Folder/other.md"),
                [EDITS[0], trash("Folder/inner.md", b"inner\n")],
            ),
        ],
    )
    def test_a_stale_preview_writes_nothing(
        self, desk: Desk, spoil: Any, operations: list[Any]
    ) -> None:
        spoil(desk.root)
        before = picture(desk.root)
        result = desk.run(previewed(*operations))
        assert (result.status, result.outcome, result.run_id) == ("conflict", "error", None)
        assert [problem.code for problem in result.errors] == ["CONFLICT"]
        assert result.errors[0].step_id
        assert not result.undo_available
        assert picture(desk.root) == before
        assert desk.journal.history() == []
        assert [type(event) for event in desk.events] == [RunFinished]

    def test_every_stale_file_is_named(self, desk: Desk) -> None:
        for name in ("one.md", "three.md"):
            (desk.root / name).write_bytes(b"edited\n")
        result = desk.run(previewed(*EDITS))
        assert [(problem.path, problem.instance) for problem in result.errors] == [
            ("one.md", "s0"),
            ("three.md", "s2"),
        ]

    def test_a_touched_file_is_not_stale(self, desk: Desk) -> None:
        os.utime(desk.root / "one.md", (0, 0))
        assert desk.run(previewed(*EDITS)).success

    def test_a_folder_that_is_there_by_now_is_not_ours(self, desk: Desk) -> None:
        (desk.root / "New").mkdir()
        assert desk.run(previewed([make("New"), create("New/note.md", b"x")])).effects.folders == ()
        undo(desk.journal, desk.store)
        assert (desk.root / "New").is_dir()

    def test_a_trash_that_is_a_link(self, desk: Desk, tmp_path: Path) -> None:
        (tmp_path / "elsewhere").mkdir()
        (desk.root / ".trash").symlink_to(tmp_path / "elsewhere")
        result = desk.run(previewed(EDITS[0], trash("two.md", b"two\n")))
        assert (result.status, result.errors[0].code) == ("failed", "PATH_NOT_ALLOWED")
        assert desk.written() == []
        assert list((tmp_path / "elsewhere").iterdir()) == []

    def test_a_second_writer(self, desk: Desk, tmp_path: Path) -> None:
        with Journal.open(tmp_path / "another state", desk.store) as other, other.lock():
            result = desk.run(previewed(*EDITS))
        assert (result.status, result.run_id, result.errors[0].code) == (
            "failed",
            None,
            "VAULT_BUSY",
        )
        assert desk.written() == []

    def test_no_journal_no_writes(self, desk: Desk) -> None:
        desk.journal.folder.mkdir(parents=True)
        desk.journal.file.write_bytes(b"garbage" * 1000)
        result = desk.run(previewed(*EDITS))
        assert (result.status, result.errors[0].code) == ("failed", "JOURNAL_DAMAGED")
        assert desk.written() == []

    def test_a_journal_that_cannot_be_flushed(
        self, desk: Desk, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def fail(_: object) -> None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        monkeypatch.setattr("obsidian_agent.journal.writer.flush_all_of", fail)
        result = desk.run(previewed(*EDITS))
        assert (result.status, result.run_id, result.errors[0].code) == (
            "failed",
            None,
            "JOURNAL_ERROR",
        )
        assert desk.written() == []
        assert desk.journal.history() == []


class TestFailing:
    def test_stop_keeps_what_was_done_undoable(
        self, desk: Desk, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        before = picture(desk.root)
        failing(monkeypatch, "two.md", 1)
        result = desk.run(previewed(*EDITS))
        assert (result.status, result.success, result.outcome) == ("stopped", False, "error")
        assert (result.completed_steps, result.total_steps) == (1, 3)
        assert [(problem.code, problem.instance, problem.path) for problem in result.errors] == [
            ("IO_ERROR", "s1", "two.md")
        ]
        assert result.effects.modified == ("one.md",)
        assert desk.written() == ["one.md"]
        assert [event.instance for event in desk.heard(StepFailed)] == ["s1"]
        assert result.outputs["s1"] is None
        undo(desk.journal, desk.store)
        assert picture(desk.root) == before

    def test_skip_goes_on_without_it_and_what_depends_on_it(
        self, desk: Desk, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        failing(monkeypatch, "one.md", 1)
        steps = [step("a", onError="skip"), step("b", dependsOn=["a"]), step("c")]
        result = desk.run(previewed(*EDITS, steps=steps))
        assert (result.status, result.success, result.errors) == ("done", True, ())
        assert [problem.code for problem in result.warnings] == ["IO_ERROR", "SKIPPED"]
        assert desk.written() == ["three.md"]
        assert (result.completed_steps, [event.instance for event in desk.heard(StepSkipped)]) == (
            1,
            ["b"],
        )
        assert (result.outputs["a"], result.outputs["b"]) == (None, None)

    def test_skip_leaves_out_later_operations_on_the_same_paths(
        self, desk: Desk, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        before = picture(desk.root)
        failing(monkeypatch, "inner.md", 1)
        preview = previewed(
            [make("New"), create("New/inner.md", b"x")],
            create("New/other.md", b"y"),
            EDITS[0],
            steps=[step("a", onError="skip"), step("b"), step("c")],
        )
        result = desk.run(preview)
        assert [event.instance for event in desk.heard(StepSkipped)] == ["b"]
        assert desk.written() == ["one.md"]
        assert not (desk.root / "New").exists()
        assert result.effects.folders == ()
        undo(desk.journal, desk.store)
        assert picture(desk.root) == before

    @pytest.mark.parametrize("how", ["the first fails", "the first depends on what failed"])
    def test_a_delete_does_not_need_the_one_that_was_to_make_the_trash(
        self, desk: Desk, monkeypatch: pytest.MonkeyPatch, how: str
    ) -> None:
        before = picture(desk.root)
        deletes = [trash(f"{name}.md", f"{name}\n".encode()) for name in ("one", "two", "three")]
        if how == "the first fails":
            failing_moves(monkeypatch, "one.md")
            result = desk.run(
                previewed(*deletes, steps=[step("a", onError="skip"), step("b"), step("c")])
            )
            assert [problem.code for problem in result.warnings] == ["IO_ERROR"]
        else:
            failing(monkeypatch, "inner.md", 1)
            edit = modify("Folder/inner.md", b"inner\n", b"INNER\n")
            steps = [step("e", onError="skip"), step("a", dependsOn=["e"]), step("b"), step("c")]
            result = desk.run(previewed(edit, *deletes, steps=steps))
            assert [problem.code for problem in result.warnings] == ["IO_ERROR", "SKIPPED"]
        assert result.success
        assert result.effects.deleted == ("three.md", "two.md")
        assert (desk.root / "one.md").exists()
        assert sorted(os.listdir(desk.root / ".trash")) == ["three.md", "two.md"]
        undo(desk.journal, desk.store)
        assert picture(desk.root) == before

    def test_without_a_delete_that_succeeds_there_is_no_trash(
        self, desk: Desk, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        failing_moves(monkeypatch, "one.md", "two.md")
        steps = [step("a", onError="skip"), step("b", onError="skip")]
        desk.run(previewed(trash("one.md", b"one\n"), trash("two.md", b"two\n"), steps=steps))
        assert not (desk.root / ".trash").exists()

    def test_retry_tries_again_and_says_so(
        self, desk: Desk, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        failing(monkeypatch, "one.md", 2)
        waited: list[float] = []
        cancel = threading.Event()
        monkeypatch.setattr(cancel, "wait", lambda seconds: waited.append(seconds) or False)
        result = desk.run(
            previewed(
                EDITS[0],
                steps=[step("a", onError="retry", retry={"maxAttempts": 4, "backoffMs": 1000})],
            ),
            cancel=cancel,
        )
        assert result.success
        assert [
            (event.attempt, event.attempts, event.problem.code)
            for event in desk.heard(StepRetrying)
        ] == [
            (2, 4, "IO_ERROR"),
            (3, 4, "IO_ERROR"),
        ]
        assert 0.8 <= waited[0] <= 1.2
        assert 1.6 <= waited[1] <= 2.4

    def test_retry_gives_up_and_stops(self, desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
        failed = failing(monkeypatch, "one.md", 99)
        monkeypatch.setattr(executor, "MAX_BACKOFF_MS", 0)
        result = desk.run(previewed(*EDITS[:2], steps=[step("a", onError="retry"), step("b")]))
        assert (result.status, len(failed)) == ("stopped", 3)
        assert desk.written() == []

    def test_a_conflict_is_not_tried_again(
        self, desk: Desk, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        edited_during(desk, monkeypatch, "two.md")
        result = desk.run(
            previewed(*EDITS, steps=[step("a"), step("b", onError="retry"), step("c")])
        )
        assert (result.status, result.completed_steps) == ("conflict", 1)
        assert desk.heard(StepRetrying) == []
        assert desk.written() == ["one.md"]
        assert (desk.root / "two.md").read_bytes() == b"edited\n"
        assert result.undo_available

    def test_a_conflict_under_skip_is_still_told(
        self, desk: Desk, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        edited_during(desk, monkeypatch, "two.md")
        result = desk.run(
            previewed(*EDITS, steps=[step("a"), step("b", onError="skip"), step("c")])
        )
        assert (result.status, result.completed_steps) == ("conflict", 2)
        assert desk.written() == ["one.md", "three.md"]

    def test_an_unexpected_error_leaves_a_run_to_recover(
        self, desk: Desk, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def carry_out(*_: object) -> bool:
            raise RuntimeError("a bug")

        monkeypatch.setattr(Applier, "carry_out", carry_out)
        result = desk.run(previewed(*EDITS))
        assert (result.status, result.errors[0].code, result.undo_available) == (
            "failed",
            "INTERNAL_ERROR",
            False,
        )
        assert result.run_id == interrupted(desk.journal, desk.store)[0].run_id
        assert desk.heard(RunFinished) == [RunFinished(result)]

    def test_a_failed_flush_leaves_a_run_to_recover(
        self, desk: Desk, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def fail(_: object) -> None:
            raise OSError(errno.EIO, os.strerror(errno.EIO))

        monkeypatch.setattr(
            "obsidian_agent.vault.filesystem.system_calls.flush_file_system", lambda _: False
        )
        monkeypatch.setattr(Applier, "_flush_each", fail)
        result = desk.run(previewed(*EDITS))
        assert (result.status, result.errors[0].code) == ("failed", "IO_ERROR")
        assert result.effects.modified == ("one.md", "three.md", "two.md")
        assert interrupted(desk.journal, desk.store)

    def test_an_end_that_cannot_be_noted_is_a_warning(
        self, desk: Desk, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def finish(*_: object, **__: object) -> None:
            raise JournalError("The journal cannot be written.")

        monkeypatch.setattr(Journal, "finish", finish)
        result = desk.run(previewed(*EDITS))
        assert (
            result.status,
            result.undo_available,
            [warning.code for warning in result.warnings],
        ) == ("done", False, ["JOURNAL_ERROR"])
        assert len(desk.written()) == 3


class TestCancelling:
    def test_between_instances(self, desk: Desk) -> None:
        cancel = threading.Event()

        def emit(event: RunEvent) -> None:
            desk.events.append(event)
            if isinstance(event, StepFinished) and event.completed == 1:
                cancel.set()

        before = picture(desk.root)
        result = execute(previewed(*EDITS), desk.store, desk.journal, emit=emit, cancel=cancel)
        assert (result.status, result.success, result.completed_steps) == ("cancelled", False, 1)
        assert [problem.code for problem in result.errors] == ["CANCELLED"]
        assert desk.written() == ["one.md"]
        undo(desk.journal, desk.store)
        assert picture(desk.root) == before

    def test_while_waiting_to_try_again(self, desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
        failing(monkeypatch, "one.md", 99)
        cancel = threading.Event()

        def emit(event: RunEvent) -> None:
            if isinstance(event, StepRetrying):
                cancel.set()

        steps = [
            step("a", onError="retry", retry={"maxAttempts": 5, "backoffMs": 30_000}),
            step("b"),
        ]
        result = execute(
            previewed(*EDITS[:2], steps=steps), desk.store, desk.journal, emit=emit, cancel=cancel
        )
        assert result.status == "cancelled"

    def test_inside_a_very_large_instance(
        self, desk: Desk, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        cancel = threading.Event()
        real = Applier.carry_out

        def carry_out(self: Applier, action: Action, number: int, content: bytes = b"") -> bool:
            if number == 10:
                cancel.set()
            return real(self, action, number, content)

        monkeypatch.setattr(Applier, "carry_out", carry_out)
        result = desk.run(
            previewed([create(f"n{number}.md", b"x") for number in range(400)]), cancel=cancel
        )
        assert (result.status, len(result.effects.created)) == ("cancelled", 11)


class TestCommands:
    def preview(self) -> Preview:
        preview = previewed([], EDITS[0], steps=[step("c"), step("w", onError="skip")])
        command = Instance(
            name="c",
            step_id="c",
            index=None,
            tool="commands.run",
            args={"id": "app:reload"},
            state="ready",
            opaque=True,
        )
        return replace(preview, instances=(command, preview.instances[1]))

    def test_a_command_is_run_and_its_output_taken(self, desk: Desk) -> None:
        asked: list[str] = []

        def run_command(command: str) -> dict[str, Any]:
            asked.append(command)
            return {"id": command, "executed": True}

        result = desk.run(self.preview(), run_command=run_command)
        assert result.success
        assert asked == ["app:reload"]
        assert result.outputs["c"] == {"id": "app:reload", "executed": True}
        assert result.effects.commands == ("app:reload",)
        assert desk.journal.history()[0].effects.commands == ("app:reload",)

    @pytest.mark.parametrize(
        "answer",
        [
            {"id": "x", "executed": False, "errorMessage": "no such command"},
            RuntimeError("socket closed"),
            None,
        ],
    )
    def test_a_command_that_does_not_run(self, desk: Desk, answer: Any) -> None:
        def run_command(_: str) -> Any:
            if isinstance(answer, Exception):
                raise answer
            return answer

        result = desk.run(self.preview(), run_command=run_command if answer is not None else None)
        assert (result.status, result.errors[0].code) == ("stopped", "COMMAND_FAILED")
        assert desk.written() == []


def test_outputs_of_a_foreach_keep_their_places(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    failing(monkeypatch, "two.md", 1)
    preview = previewed(
        *EDITS, steps=[step("a", onError="skip")] + [step(f"x{n}") for n in range(2)]
    )
    instances = tuple(
        Instance(
            name=f"a_{n}", step_id="a", index=n, tool="t", args={}, state="ready", output={"n": n}
        )
        for n in range(3)
    )
    result = desk.run(
        replace(preview, instances=instances, outputs={"a": [{"n": n} for n in range(3)]})
    )
    assert result.outputs["a"] == [{"n": 0}, None, {"n": 2}]
    assert preview.outputs != {}


class TestOutcomes:
    """Steps whose changes a later step writes, as when notes are tagged and then renamed."""

    @staticmethod
    def joined() -> Preview:
        """Change one.md and two.md in step 1; steps 2 and 3 write them, step 4 writes three.md."""
        preview = previewed([], *EDITS)
        pairs = frozenset({(0, 1), (0, 2)})
        return replace(preview, change_set=replace(preview.change_set, joined=pairs))

    def test_a_cancelled_run_claims_only_what_is_written(self, desk: Desk) -> None:
        cancel = threading.Event()
        preview = self.joined()

        def heard(event: RunEvent) -> None:
            desk.events.append(event)
            if isinstance(event, StepFinished):
                cancel.set()

        result = execute(preview, desk.store, desk.journal, emit=heard, cancel=cancel)
        assert [event.instance for event in desk.heard(StepFinished)] == ["s1"]
        assert desk.written() == ["one.md"]
        assert (result.status, result.completed_steps, result.total_steps) == ("cancelled", 1, 4)
        states = [(step.step, step.state, step.in_effect, step.changes) for step in result.steps]
        assert states == [
            ("s0", "partly applied", 1, 2),
            ("s1", "applied", 1, 1),
            ("s2", "not applied", 0, 1),
            ("s3", "not applied", 0, 1),
        ]
        assert result.remaining.modified == ("three.md", "two.md")
        assert result.outputs == {"s0": None, "s1": {"of": "s1"}, "s2": None, "s3": None}
        assert result.run_id is not None
        assert desk.journal.step_outcomes(result.run_id) == list(result.steps)

    def test_a_step_is_finished_when_the_last_of_its_changes_is_written(self, desk: Desk) -> None:
        result = desk.run(self.joined())
        finished = [(event.instance, event.completed) for event in desk.heard(StepFinished)]
        assert finished == [("s1", 1), ("s0", 2), ("s2", 3), ("s3", 4)]
        assert result.completed_steps == 4
        assert {step.state for step in result.steps} == {"applied"}
        assert result.remaining.is_empty

    def test_the_outcomes_follow_undo_and_redo(self, desk: Desk) -> None:
        result = desk.run(self.joined())
        assert result.run_id is not None

        def states() -> list[str]:
            return [step.state for step in desk.journal.step_outcomes(result.run_id or "")]

        undo(desk.journal, desk.store, result.run_id, to_step="s2")
        assert states() == ["applied", "applied", "applied", "undone"]
        (desk.root / "one.md").write_bytes(b"edited since\n")
        undo(desk.journal, desk.store, result.run_id)
        assert states() == ["partly applied", "applied", "undone", "undone"]
        undo(desk.journal, desk.store, result.run_id, force=["one.md"])
        assert states() == ["undone"] * 4

    def test_a_cancelled_run_that_is_undone_in_part_is_partly_undone(self, desk: Desk) -> None:
        cancel = threading.Event()

        def cancel_after_s2(event: RunEvent) -> None:
            if isinstance(event, StepFinished) and event.instance == "s2":
                cancel.set()

        preview = previewed([], *EDITS)
        result = execute(preview, desk.store, desk.journal, emit=cancel_after_s2, cancel=cancel)
        assert result.run_id is not None

        def current_status() -> str:
            return desk.journal.history()[0].current_status

        assert (result.status, current_status()) == ("cancelled", "cancelled")
        (desk.root / "one.md").write_bytes(b"edited since\n")
        undo(desk.journal, desk.store, result.run_id)
        assert current_status() == "partly undone"
        outcomes = desk.journal.step_outcomes(result.run_id)
        assert [(step.in_effect, step.undone) for step in outcomes] == [
            (0, 0),
            (1, 0),
            (0, 1),
            (0, 0),
        ]
        undo(desk.journal, desk.store, result.run_id, force=["one.md"])
        assert current_status() == "undone"

    def test_a_step_whose_changes_are_lost_with_another_is_not_applied(
        self, desk: Desk, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        failing(monkeypatch, "two.md", 9)
        steps = [step("s0"), step("s1"), step("s2", onError="skip"), step("s3", dependsOn=["s0"])]
        preview = previewed([], *EDITS, steps=steps)
        pairs = frozenset({(0, 1), (0, 2)})
        result = desk.run(replace(preview, change_set=replace(preview.change_set, joined=pairs)))
        assert desk.written() == ["one.md"]
        assert [event.instance for event in desk.heard(StepSkipped)] == ["s0", "s3"]
        assert result.completed_steps == 1
        assert [step.state for step in result.steps] == [
            "partly applied",
            "applied",
            "not applied",
            "not applied",
        ]

    def test_a_command_that_ran_is_applied(self, desk: Desk) -> None:
        preview = previewed([], [], EDITS[0])
        opaque = [
            replace(instance, opaque=True, args={"id": f"app:{number}"})
            for number, instance in enumerate(preview.instances[:2])
        ]
        preview = replace(preview, instances=(*opaque, preview.instances[2]))

        def command(name: str) -> dict[str, Any]:
            return {"id": name, "executed": name == "app:0"}

        result = desk.run(preview, run_command=command)
        states = [step.state for step in result.steps]
        assert states == ["applied", "not applied", "not applied"]
        assert result.remaining.commands == ("app:1",)
        assert result.run_id is not None
        assert desk.journal.step_outcomes(result.run_id) == list(result.steps)
