from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from obsidian_agent.errors import Conflict, VaultError
from obsidian_agent.vault.filesystem import system_calls, temp_files
from obsidian_agent.vault.filesystem import system_calls as renames
from obsidian_agent.vault.filesystem.dirhandles import FolderHandles
from obsidian_agent.vault.filesystem.store import VaultStore
from obsidian_agent.vault.transaction import apply
from obsidian_agent.vault.transaction.actions import (
    Action,
    MoveEntry,
    PutFile,
    PutFolder,
    action_of,
    reverse,
)
from obsidian_agent.vault.transaction.apply import Applier, HalfDone
from obsidian_agent.vault.views.changes import content_hash
from previews import create, make, modify, move, picture, trash, vault_path
from support import MakeVault

OLD, NEW, FOREIGN = b"old\n", b"new\n" * 50, b"written by somebody else\n"


class Bench:
    """An applier on a vault with one note."""

    def __init__(self, store: VaultStore) -> None:
        self.root = Path(store.real_path)
        self.handles = FolderHandles(store)
        self.applier = Applier(self.handles, "oatest")

    def do(self, action: Action, content: bytes = b"") -> bool:
        return self.applier.carry_out(action, 7, content)

    def read(self, path: str) -> bytes:
        return (self.root / path).read_bytes()

    def hidden(self) -> list[str]:
        return [name for name in picture(self.root) if "/." in f"/{name}"]


@pytest.fixture
def bench(make_vault: MakeVault) -> Iterator[Bench]:
    made = Bench(make_vault({"note.md": OLD, "Folder/inner.md": OLD, "Empty/": b""}))
    with made.handles, made.applier:
        yield made


@pytest.fixture(params=["renameat2", "without"])
def any_kernel(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Use the kernel's own renames, and their replacements."""
    if request.param == "without":
        monkeypatch.setattr(renames, "_rename", None)
    return str(request.param)


REPLACE = action_of(modify("note.md", OLD, NEW))
CREATE = action_of(create("Folder/fresh.md", NEW))
REMOVE = PutFile(vault_path("note.md"), content_hash(OLD), None)


@pytest.mark.usefixtures("any_kernel")
class TestFiles:
    def test_a_new_file_gets_the_usual_mode(self, bench: Bench) -> None:
        assert bench.do(CREATE, NEW)
        usual = bench.root / "usual"
        usual.touch()
        assert bench.read("Folder/fresh.md") == NEW
        assert (bench.root / "Folder/fresh.md").stat().st_mode == usual.stat().st_mode
        assert bench.hidden() == []

    def test_a_file_that_comes_back_gets_its_own_mode(self, bench: Bench) -> None:
        assert bench.do(PutFile(vault_path("back.md"), None, content_hash(NEW), 0o606), NEW)
        assert stat.S_IMODE((bench.root / "back.md").stat().st_mode) == 0o606

    def test_a_name_that_is_taken_is_a_conflict(self, bench: Bench) -> None:
        before = picture(bench.root)
        with pytest.raises(Conflict, match=r"note\.md now exists"):
            bench.do(action_of(create("note.md", NEW)), NEW)
        assert picture(bench.root) == before

    def test_replacing_keeps_the_mode(self, bench: Bench) -> None:
        (bench.root / "note.md").chmod(0o640)
        assert bench.do(REPLACE, NEW)
        assert bench.read("note.md") == NEW
        assert stat.S_IMODE((bench.root / "note.md").stat().st_mode) == 0o640
        assert bench.hidden() == []

    def test_replacing_leaves_a_hard_link_elsewhere_alone(self, bench: Bench) -> None:
        (bench.root / "other.md").hardlink_to(bench.root / "note.md")
        bench.do(REPLACE, NEW)
        assert bench.read("other.md") == OLD

    @pytest.mark.parametrize("action", [REPLACE, REMOVE])
    def test_other_content_is_a_conflict_and_stays(self, bench: Bench, action: Action) -> None:
        (bench.root / "note.md").write_bytes(FOREIGN)
        before = picture(bench.root)
        with pytest.raises(Conflict, match=r"note\.md is no longer what the preview read"):
            bench.do(action, NEW)
        assert picture(bench.root) == before

    def test_the_hash_decides_and_not_size_and_time(self, bench: Bench) -> None:
        note = bench.root / "note.md"
        times = note.stat()
        note.write_bytes(b"odl\n")
        os.utime(note, ns=(times.st_atime_ns, times.st_mtime_ns))
        with pytest.raises(Conflict):
            bench.do(REPLACE, NEW)
        note.write_bytes(OLD)
        os.utime(note, (0, 0))
        assert bench.do(REPLACE, NEW)

    @pytest.mark.parametrize("action", [REPLACE, REMOVE])
    @pytest.mark.parametrize("obstacle", ["missing", "folder", "link", "fifo"])
    def test_something_else_in_its_place_is_a_conflict(
        self, bench: Bench, action: Action, obstacle: str
    ) -> None:
        note = bench.root / "note.md"
        note.unlink()
        match obstacle:
            case "folder":
                note.mkdir()
            case "link":
                note.symlink_to("Folder/inner.md")
            case "fifo":
                os.mkfifo(note)
            case _:
                pass
        before = picture(bench.root)
        with pytest.raises(Conflict):
            bench.do(action, NEW)
        assert picture(bench.root) == before

    def test_removing(self, bench: Bench) -> None:
        assert bench.do(REMOVE)
        assert not (bench.root / "note.md").exists()
        assert bench.hidden() == []

    def test_the_longest_name_that_a_disk_takes(self, bench: Bench) -> None:
        name = "n" * 252 + ".md"
        assert bench.do(action_of(create(name, OLD)), OLD)
        assert bench.do(action_of(modify(name, OLD, NEW)), NEW)
        assert bench.do(PutFile(vault_path(name), content_hash(NEW), None))

    def test_a_folder_that_is_gone_is_a_conflict(self, bench: Bench) -> None:
        with pytest.raises(Conflict, match="folder is gone"):
            bench.do(action_of(create("Nowhere/x.md", NEW)), NEW)


class TestRaces:
    def foreign_write(self, bench: Bench, monkeypatch: pytest.MonkeyPatch, times: int = 1) -> None:
        """Another program replaces the note just before each of the first exchanges."""
        real = renames.exchange
        left = [FOREIGN + b"%d" % number for number in range(times)]

        def exchange(folder: int, name: str, new_name: str) -> bool:
            if left:
                draft = bench.root / "draft"
                draft.write_bytes(left.pop(0))
                draft.replace(bench.root / "note.md")
            return real(folder, name, new_name)

        monkeypatch.setattr(apply, "exchange", exchange)

    def test_a_write_just_before_the_exchange_is_given_back(
        self, bench: Bench, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self.foreign_write(bench, monkeypatch)
        with pytest.raises(Conflict):
            bench.do(REPLACE, NEW)
        assert bench.read("note.md") == FOREIGN + b"0"
        assert bench.hidden() == []

    def test_writes_on_both_sides_of_the_exchange_lose_nothing(
        self, bench: Bench, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self.foreign_write(bench, monkeypatch, times=2)
        with pytest.raises(HalfDone):
            bench.do(REPLACE, NEW)
        kept = {entry[2] for entry in picture(bench.root).values()}
        assert {FOREIGN + b"0", FOREIGN + b"1"} <= kept

    def test_an_edit_in_place_during_the_exchange_is_given_back(
        self, bench: Bench, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        real = renames.exchange
        open_elsewhere = (bench.root / "note.md").open("r+b", buffering=0)

        def exchange(folder: int, name: str, new_name: str) -> bool:
            os.pwrite(open_elsewhere.fileno(), b"OLD", 0)
            return real(folder, name, new_name)

        monkeypatch.setattr(apply, "exchange", exchange)
        with open_elsewhere, pytest.raises(Conflict):
            bench.do(REPLACE, NEW)
        assert bench.read("note.md") == b"OLD\n"

    @pytest.mark.parametrize("knows_writers", [True, False])
    @pytest.mark.parametrize("action", [REPLACE, REMOVE])
    @pytest.mark.parametrize("closes", [True, False])
    def test_what_arrives_after_the_last_look_is_put_beside(
        self,
        bench: Bench,
        monkeypatch: pytest.MonkeyPatch,
        action: Action,
        knows_writers: bool,
        closes: bool,
    ) -> None:
        """Simulate a program that opened the note earlier, and writes after the hash."""
        real = apply._hash
        open_elsewhere = (bench.root / "note.md").open("ab", buffering=0)

        def hash(fd: int, status: os.stat_result) -> str:
            found = real(fd, status)
            open_elsewhere.write(b"late\n")
            if closes:
                open_elsewhere.close()
            return found

        monkeypatch.setattr(apply, "_hash", hash)
        if not knows_writers:
            monkeypatch.setattr(temp_files, "is_open_for_writing", lambda _: None)
            monkeypatch.setattr(apply, "is_open_for_writing", lambda _: None)
        with open_elsewhere:
            assert bench.do(action, NEW)
            bench.applier.complete()
        assert bench.read("note (recovered).md") == OLD + b"late\n"
        assert (bench.root / "note.md").exists() == (action is REPLACE)
        assert bench.hidden() == []
        assert [(warning.code, warning.path) for warning in bench.applier.warnings] == [
            ("CONFLICT", "note.md")
        ]
        assert "note (recovered).md" in bench.applier.warnings[0].message

    def test_a_program_that_keeps_the_note_open_loses_nothing_later(self, bench: Bench) -> None:
        with (bench.root / "note.md").open("ab", buffering=0) as log:
            assert bench.do(REPLACE, NEW)
            bench.applier.complete()
            log.write(b"much later\n")
        assert bench.read("note (recovered).md") == OLD + b"much later\n"
        assert bench.read("note.md") == NEW

    def test_who_only_reads_is_nobody(self, bench: Bench) -> None:
        with (bench.root / "note.md").open("rb"):
            assert bench.do(REPLACE, NEW)
            bench.applier.complete()
        assert sorted(path.name for path in bench.root.iterdir()) == ["Empty", "Folder", "note.md"]
        assert bench.applier.warnings == []

    def test_what_waits_moves_with_its_folder_and_is_in_no_folders_way(
        self, bench: Bench, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(apply, "is_open_for_writing", lambda _: None)
        assert bench.do(action_of(modify("Folder/inner.md", OLD, NEW)), NEW)
        assert bench.do(action_of(move("Folder", "Moved")))
        assert bench.do(PutFile(vault_path("Moved/inner.md"), content_hash(NEW), None))
        assert bench.do(PutFolder(vault_path("Moved"), created=False))
        bench.applier.complete()
        assert bench.hidden() == []
        assert bench.applier.warnings == []

    def test_what_the_disk_would_not_let_go_at_once_is_in_no_folders_way(
        self, bench: Bench, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        real, failures = os.unlink, iter([True])

        def unlink(name: str, *, dir_fd: int) -> None:
            if next(failures, False):
                raise OSError(errno.EIO, "the disk failed once")
            real(name, dir_fd=dir_fd)

        monkeypatch.setattr(temp_files.os, "unlink", unlink)
        assert bench.do(PutFile(vault_path("Folder/inner.md"), content_hash(OLD), None))
        assert bench.hidden() != []
        assert bench.do(PutFolder(vault_path("Folder"), created=False))
        assert not (bench.root / "Folder").exists()

    def test_a_name_taken_after_the_check_is_not_overwritten(
        self, bench: Bench, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        real = renames.rename_to_free

        def rename(folder: int, name: str, new_folder: int, new_name: str) -> None:
            (bench.root / "Folder" / new_name).write_bytes(FOREIGN)
            real(folder, name, new_folder, new_name)

        monkeypatch.setattr(apply, "rename_to_free", rename)
        with pytest.raises(Conflict):
            bench.do(CREATE, NEW)
        assert bench.read("Folder/fresh.md") == FOREIGN
        assert bench.hidden() == []


class TestDisk:
    @pytest.mark.parametrize(
        ("action", "call"),
        [
            (CREATE, "write"),
            (REPLACE, "write"),
            (REPLACE, "fchmod"),
            (CREATE, "close"),
            (REPLACE, "close"),
        ],
    )
    @pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO])
    def test_a_call_that_fails_leaves_the_place_as_it_was(
        self, bench: Bench, monkeypatch: pytest.MonkeyPatch, action: Action, call: str, number: int
    ) -> None:
        bench.handles.get(vault_path("Folder"))
        before = picture(bench.root)
        real = getattr(os, call)
        failed: list[object] = []

        def fail(*args: object, **kwargs: object) -> object:
            if failed:
                return real(*args, **kwargs)
            failed.append(call)
            if call == "close":
                real(*args)
            raise OSError(number, os.strerror(number))

        monkeypatch.setattr(os, call, fail)
        with pytest.raises(VaultError) as raised:
            bench.do(action, NEW)
        monkeypatch.undo()
        assert failed
        assert raised.value.code == "IO_ERROR"
        assert raised.value.retryable
        assert ("disk is full" in raised.value.message) == (number == errno.ENOSPC)
        assert picture(bench.root) == before

    @pytest.mark.parametrize("action", [REPLACE, CREATE])
    def test_short_writes_are_gone_on_with(
        self, bench: Bench, monkeypatch: pytest.MonkeyPatch, action: Action
    ) -> None:
        real = os.write
        monkeypatch.setattr(os, "write", lambda fd, data: real(fd, bytes(data)[:7]))
        assert bench.do(action, NEW)
        monkeypatch.undo()
        assert bench.read(action.path.text) == NEW

    def test_what_could_not_be_unlinked_is_thrown_away_at_the_end(
        self, bench: Bench, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def fail(*_: object, **__: object) -> None:
            raise OSError(errno.EIO, "unlink")

        monkeypatch.setattr(os, "unlink", fail)
        assert bench.do(REPLACE, NEW)
        assert len(bench.hidden()) == 1
        with pytest.raises(HalfDone):
            bench.applier.complete()
        monkeypatch.undo()
        bench.applier.complete()
        assert bench.hidden() == []

    def test_one_flush_for_everything(self, bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
        flushed: list[int] = []
        monkeypatch.setattr(
            system_calls, "flush_file_system", lambda fd: flushed.append(fd) or True
        )
        monkeypatch.setattr(os, "fsync", lambda _: pytest.fail("a flush of its own"))
        for number in range(50):
            bench.do(action_of(create(f"Folder/n{number}.md", NEW)), NEW)
        bench.do(REPLACE, NEW)
        assert flushed == []
        bench.applier.complete()
        assert len(flushed) == 1

    def test_without_that_call_every_file_and_folder_is_flushed(
        self, bench: Bench, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        flushed: list[str] = []
        monkeypatch.setattr(system_calls, "_syncfs", None)
        monkeypatch.setattr(
            os,
            "fsync",
            lambda fd: flushed.append(
                os.path.relpath(os.readlink(f"/proc/self/fd/{fd}"), bench.root)
            ),
        )
        bench.do(action_of(create("Folder/n.md", NEW)), NEW)
        bench.do(REPLACE, NEW)
        bench.do(action_of(move("Folder", "Moved")))
        bench.applier.complete()
        assert {"Moved/n.md", "Moved", "note.md", "."} <= set(flushed)

    def test_a_failed_flush_is_told(self, bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
        def fail(_: int) -> bool:
            raise OSError(errno.EIO, os.strerror(errno.EIO))

        bench.do(REPLACE, NEW)
        monkeypatch.setattr(system_calls, "flush_file_system", fail)
        with pytest.raises(HalfDone, match="may not have reached the disk"):
            bench.applier.complete()

    def test_no_handle_is_lost(self, bench: Bench) -> None:
        for number in range(60):
            (bench.root / f"Sub{number}").mkdir()
        before = len(os.listdir("/proc/self/fd"))
        for number in range(600):
            action = action_of(create(f"Sub{number % 60}/n{number}.md", NEW))
            bench.do(action, NEW)
            bench.do(reverse(action))
        assert len(os.listdir("/proc/self/fd")) <= before + 34

    @pytest.mark.skipif(
        not hasattr(os, "setxattr"), reason="no extended attributes on this platform"
    )
    def test_attributes_are_kept(self, bench: Bench) -> None:
        try:
            os.setxattr(bench.root / "note.md", "user.colour", b"blue")
        except OSError:
            pytest.skip("this disk has no extended attributes")
        bench.do(REPLACE, NEW)
        assert os.getxattr(bench.root / "note.md", "user.colour") == b"blue"

    @pytest.mark.skipif(
        not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root may give files away"
    )
    def test_the_owner_is_kept(self, bench: Bench) -> None:
        os.chown(bench.root / "note.md", 1234, 4321)
        (bench.root / "note.md").chmod(0o660)
        bench.do(REPLACE, NEW)
        status = (bench.root / "note.md").stat()
        assert (status.st_uid, status.st_gid, stat.S_IMODE(status.st_mode)) == (1234, 4321, 0o660)


@pytest.mark.usefixtures("any_kernel")
class TestFoldersAndMoves:
    def test_making_a_folder_twice(self, bench: Bench) -> None:
        assert bench.do(action_of(make("New")))
        assert not bench.do(action_of(make("New")))

    def test_a_file_in_the_folders_place(self, bench: Bench) -> None:
        with pytest.raises(Conflict, match="a file has that name"):
            bench.do(action_of(make("note.md")))

    def test_only_empty_folders_are_removed(self, bench: Bench) -> None:
        assert bench.do(PutFolder(vault_path("Empty"), created=False))
        assert not bench.do(PutFolder(vault_path("Folder"), created=False))
        assert not bench.do(PutFolder(vault_path("Empty"), created=False))
        assert bench.read("Folder/inner.md") == OLD

    @pytest.mark.parametrize(
        "action",
        [
            move("note.md", "Empty/note.md", OLD),
            move("Folder", "Empty/Folder"),
            move("note.md", "Note.md", OLD),
        ],
    )
    def test_moves(self, bench: Bench, action: object) -> None:
        done = action_of(action)  # type: ignore[arg-type]
        assert isinstance(done, MoveEntry)
        before = picture(bench.root)
        bench.do(done)
        assert (bench.root / done.new_path.text).exists()
        assert not (bench.root / done.path.text).exists()
        bench.do(reverse(done))
        assert picture(bench.root) == before

    def test_a_folder_is_found_again_after_it_has_moved(self, bench: Bench) -> None:
        bench.do(action_of(create("Folder/a.md", NEW)), NEW)
        bench.do(action_of(move("Folder", "Moved")))
        bench.do(action_of(make("Folder")))
        bench.do(action_of(create("Folder/b.md", NEW)), NEW)
        bench.do(action_of(create("Moved/c.md", NEW)), NEW)
        assert sorted(os.listdir(bench.root / "Folder")) == ["b.md"]
        assert sorted(os.listdir(bench.root / "Moved")) == ["a.md", "c.md", "inner.md"]

    @pytest.mark.parametrize(
        ("source", "target"), [("note.md", "Folder/inner.md"), ("Folder", "Empty")]
    )
    def test_a_taken_place_is_a_conflict(self, bench: Bench, source: str, target: str) -> None:
        before = picture(bench.root)
        with pytest.raises(Conflict, match="now exists"):
            bench.do(action_of(move(source, target, OLD if source == "note.md" else None)))
        assert picture(bench.root) == before

    @pytest.mark.parametrize("new", ["twin.md", "Folder/twin.md", "Note.md"])
    def test_a_name_that_somebody_gave_the_same_file_is_left_to_it(
        self, bench: Bench, new: str
    ) -> None:
        (bench.root / new).hardlink_to(bench.root / "note.md")
        before = picture(bench.root)
        with pytest.raises(Conflict, match="same file"):
            bench.do(action_of(move("note.md", new, OLD)))
        assert picture(bench.root) == before
        with Applier(bench.handles, "oatest", recovering=True) as applier:
            if new != "Note.md":
                applier.carry_out(action_of(move("note.md", new, OLD)), 7)
                assert not (bench.root / "note.md").exists()
        assert bench.read(new) == OLD

    def test_a_changed_file_does_not_move(self, bench: Bench) -> None:
        (bench.root / "note.md").write_bytes(FOREIGN)
        with pytest.raises(Conflict):
            bench.do(action_of(move("note.md", "Empty/note.md", OLD)))
        assert bench.read("note.md") == FOREIGN

    def test_a_file_where_a_folder_should_move(self, bench: Bench) -> None:
        (bench.root / "Empty").rmdir()
        (bench.root / "Empty").write_bytes(FOREIGN)
        with pytest.raises(Conflict):
            bench.do(action_of(move("Empty", "Elsewhere")))

    def test_nothing_goes_through_a_link_to_a_trash_elsewhere(
        self, bench: Bench, tmp_path: Path
    ) -> None:
        outside = tmp_path / "outside"
        outside.mkdir()
        (bench.root / ".trash").symlink_to(outside)
        with pytest.raises(VaultError):
            bench.do(action_of(trash("note.md", OLD)))
        assert list(outside.iterdir()) == []
        assert bench.read("note.md") == OLD

    def test_a_link_moves_as_a_link(self, bench: Bench) -> None:
        (bench.root / "link.md").symlink_to("note.md")
        bench.do(action_of(move("link.md", "Link2.md", OLD)))
        assert (bench.root / "Link2.md").is_symlink()


class TestSpelling:
    """A disk that ignores case, imitated: the new spelling of a name leads to the entry itself."""

    @pytest.fixture(autouse=True)
    def folding(self, bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
        real_rename, real_stat = renames.rename_to_free, os.stat

        def rename(folder: int, name: str, new_folder: int, new_name: str) -> None:
            names = [
                found for found in os.listdir(new_folder) if found.casefold() == new_name.casefold()
            ]
            if names:
                raise FileExistsError(errno.EEXIST, "exists", new_name)
            real_rename(folder, name, new_folder, new_name)

        def status(
            path: str, *, dir_fd: int | None = None, follow_symlinks: bool = True
        ) -> os.stat_result:
            if isinstance(path, str) and dir_fd is not None:
                path = next(
                    (found for found in os.listdir(dir_fd) if found.casefold() == path.casefold()),
                    path,
                )
            return real_stat(path, dir_fd=dir_fd, follow_symlinks=follow_symlinks)

        monkeypatch.setattr(apply, "rename_to_free", rename)
        monkeypatch.setattr(os, "stat", status)

    @pytest.mark.parametrize(
        ("old", "new", "content"), [("note.md", "NOTE.md", OLD), ("Folder", "folder", None)]
    )
    def test_a_new_spelling(self, bench: Bench, old: str, new: str, content: bytes | None) -> None:
        bench.do(action_of(move(old, new, content)))
        assert new in os.listdir(bench.root)
        assert old not in os.listdir(bench.root)
        assert bench.hidden() == []

    def test_a_failure_half_way_is_taken_back(
        self, bench: Bench, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        folding, calls = apply.rename_to_free, []

        def rename(folder: int, name: str, new_folder: int, new_name: str) -> None:
            calls.append(new_name)
            if len(calls) == 3:
                raise OSError(errno.EIO, "rename")
            folding(folder, name, new_folder, new_name)

        monkeypatch.setattr(apply, "rename_to_free", rename)
        with pytest.raises(VaultError, match="disk reports an error"):
            bench.do(action_of(move("note.md", "NOTE.md", OLD)))
        assert bench.read("note.md") == OLD
        assert bench.hidden() == []
