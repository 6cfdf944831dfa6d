"""Carrying out one action on the disk: all of it or none, and never over content that nobody has agreed to lose.

A file's new content is written under a temporary name in the target's own folder. It then takes a free name, or changes places with the old
file; what was displaced is hashed before it is thrown away (`temp_files.py`), and put back if it is somebody else's. Temporary names are
`.<token>.<number>.<attempt>`, so that after a crash they can be found and told apart. Nothing is flushed before `flush`, once for all.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import secrets
import stat
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from types import TracebackType
from typing import Final, Self, assert_never

from obsidian_agent.errors import Conflict, ObsidianError, PathRefused, Problem, VaultError
from obsidian_agent.vault.filesystem import system_calls
from obsidian_agent.vault.filesystem.dirhandles import READ_FLAGS, FolderHandles, content_of
from obsidian_agent.vault.filesystem.store import OpenFiles, io_error
from obsidian_agent.vault.filesystem.system_calls import exchange, rename_to_free, write_all
from obsidian_agent.vault.filesystem.temp_files import TempFiles, is_open_for_writing
from obsidian_agent.vault.filesystem.walk import close_quietly, read_all
from obsidian_agent.vault.paths.path import VaultPath, collision_key, from_disk
from obsidian_agent.vault.transaction.actions import (
    SETS_BIRTH,
    Action,
    FileMetadata,
    MoveEntry,
    PutFile,
    PutFolder,
    Siblings,
)

WRITE_FLAGS: Final = (
    os.O_WRONLY
    | os.O_CREAT
    | os.O_EXCL
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_CLOEXEC", 0)
)
INCOMPLETE_MODE: Final = 0o200
"""Mode of a file that is to replace another while it is written: after a crash it tells what is half written from what was displaced."""

_USUAL_MODE: Final = 0o666
_NOT_A_FILE: Final = frozenset(
    {errno.ENOENT, errno.ELOOP, errno.EMLINK, errno.ENXIO, errno.ENOTDIR}
)
_HAS_ATTRIBUTES: Final = hasattr(os, "listxattr")
_RECOVER: Final = "Run `obsidian-agent recover` when the disk works again."


class HalfDone(VaultError):
    """The disk failed twice: doing an action and taking it back. Nothing is lost, and recovery sorts it out."""


class Applier:
    """Carries out actions in one vault. `token` is unlike that of any other run; numbers are those of the actions in their record.

    Files that `editing` holds open are changed there.

    `report_creation`: warn where creation times of files that were written back are lost.

    A file that is written back is linked to a name of its old inode or, once all of those were replaced, to one of its `siblings`.

    Only in recovery a note that has its new name already, beside the old one, is a move that was cut off; else somebody linked it.
    """

    def __init__(
        self,
        handles: FolderHandles,
        token: str,
        editing: OpenFiles | None = None,
        *,
        recovering: bool = False,
        report_creation: bool = True,
        siblings: Siblings | None = None,
    ) -> None:
        self._handles = handles
        self._editing = editing
        self._recovering = recovering
        self._report_creation = report_creation
        self._token = token
        self._attempts = secrets.randbelow(1 << 24)
        self._owner = (os.geteuid(), os.getegid()) if hasattr(os, "geteuid") else None
        self._touched: dict[str, tuple[VaultPath, set[str]]] = {}
        self._devices: dict[int, int] = {}
        self._temporaries = TempFiles(handles)
        self._others = OtherNames(handles)
        self._siblings = siblings or {}
        self._alone: dict[VaultPath, tuple[int, int]] = {}
        """Files written back without another name so far, and the inode they had."""
        self._reborn = 0

    @property
    def warnings(self) -> list[Problem]:
        """What people should know of what was done: what was put beside a note, and what could not be given back to one."""
        warnings = [
            *self._temporaries.warnings,
            *map(_left_alone, self._alone),
            *(self._editing.warnings if self._editing is not None else ()),
        ]
        if self._reborn and self._report_creation:
            count = (
                "One note that was written back has"
                if self._reborn == 1
                else f"{self._reborn:,} notes that were written back have"
            )
            warnings.append(
                Problem("NOT_RESTORED", f"{count} a new creation time: this system cannot set it.")
            )
        return warnings

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for fd in self._devices.values():
            close_quietly(fd)
        self._devices.clear()

    def carry_out(self, action: Action, number: int, content: bytes = b"") -> bool:
        """Do one action; `content` is what a file gets. False when a folder is there already, or must stay because it isn't empty.

        Conflict when the disk is not as the action expects, VaultError (IO_ERROR) when the system refuses: then the place is as it was.
        HalfDone when it is not.
        """
        self._temporaries.settle()
        try:
            match action:
                case PutFile():
                    self._put_file(action, number, content)
                case PutFolder(path, made):
                    return self._make_folder(path) if made else self._remove_folder(path)
                case MoveEntry():
                    self._move(action, number)
                case _:
                    assert_never(action)
        except OSError as error:
            raise io_error(error, action.path) from error
        except PathRefused as refusal:
            raise Conflict(
                f"{action.path.text} cannot be reached any more: {refusal.message}",
                path=action.path.text,
            ) from refusal
        except VaultError as error:
            if error.code in ("FILE_NOT_FOUND", "NOT_A_FOLDER"):
                raise Conflict(
                    f"{action.path.text} cannot be reached any more: its folder is gone.",
                    path=action.path.text,
                ) from error
            raise
        return True

    def complete(self) -> None:
        """Make everything that was carried out survive a power loss, with no temporary file left. HalfDone when the disk fails at that."""
        if not self._temporaries.settle(wait=True):
            raise HalfDone(
                "The disk fails: temporary files of this run could not be removed.", hint=_RECOVER
            )
        try:
            for fd in self._devices.values():
                if not system_calls.flush_file_system(fd):
                    self._flush_each()
                    system_calls.flush_disk(fd)
        except OSError as error:
            raise HalfDone(
                f"What was written may not have reached the disk ({error.strerror or error}).",
                hint=_RECOVER,
            ) from error

    def _flush_each(self) -> None:
        for folder, names in self._touched.values():
            with contextlib.suppress(VaultError):
                handle = self._handles.get(folder)
                for name in names:
                    with contextlib.suppress(FileNotFoundError):
                        fd = os.open(name, READ_FLAGS, dir_fd=handle)
                        try:
                            os.fsync(fd)
                        finally:
                            close_quietly(fd)
                system_calls.flush_folder(handle)

    def _folder(self, folder: VaultPath) -> int:
        """The handle of a folder in which a name is about to change."""
        fd = self._handles.get(folder)
        if folder.text not in self._touched:
            self._touched[folder.text] = (folder, set())
            device = os.fstat(fd).st_dev
            if device not in self._devices:
                self._devices[device] = os.dup(fd)
        return fd

    def _temporary(self, number: int) -> str:
        self._attempts += 1
        return f".{self._token}.{number}.{self._attempts:x}"

    # --- files -----------------------------------------------------------------------------------------------------------------

    def _put_file(self, action: PutFile, number: int, content: bytes) -> None:
        if action.held and self._editing is not None and self._edit(action, self._editing, content):
            self._folder(action.path.parent)
            self._touched[action.path.parent.text][1].add(action.path.name)
            return
        others = self._names_besides(action)
        folder = self._folder(action.path.parent)
        temp = self._temporary(number)
        if action.after is None:
            self._remove(action, folder, temp)
        else:
            linked = any(self._link(action, other, folder, temp) for other in others)
            if action.before is None:
                self._create(action, folder, temp, None if linked else content)
            else:
                self._replace(action, folder, temp, content, linked=linked)
            self._note_written(action, linked=linked)
        if action.after is not None:
            self._touched[action.path.parent.text][1].add(action.path.name)

    def _edit(self, action: PutFile, editing: OpenFiles, content: bytes) -> bool:
        """Have a file that is open changed where it is open; False when it has to be done on the disk."""
        path = action.path
        found, _ = self._handles.read_through(path)
        if found is None or found.hash != action.before:
            raise _changed(path)
        try:
            done, why = (
                editing.write(path.text, found.data, content),
                "it says so, and the file is as before",
            )
        except ObsidianError as error:
            done, why = None, error.message
        if done is False:
            return False
        # What the person typed since may be in the file too. Otherwise nobody knows whether it was done, but for the disk.
        found, _ = self._handles.read_through(path)
        if found is not None and (
            found.hash == action.after or (done and found.hash != action.before)
        ):
            return True
        raise HalfDone(
            f"{path.text} is open in Obsidian, and may or may not have been changed there: {why}",
            path=path.text,
            hint=_RECOVER,
        )

    def _names_besides(self, action: PutFile) -> list[VaultPath]:
        """Return the other names of a file that is written back: those of its old inode first, then its siblings."""
        inode = action.becomes.inode if action.becomes is not None else None
        if inode is None:
            return []
        same = self._others.of(inode)
        siblings = [path for path in self._siblings.get(inode, ()) if path != action.path]
        return siblings if same is None else [same, *siblings]

    def _note_written(self, action: PutFile, *, linked: bool) -> None:
        """Remember what a file that was written back has lost."""
        if action.becomes is None:
            return
        self._reborn += not linked and not SETS_BIRTH
        inode = action.becomes.inode
        if linked:
            self._alone = {path: old for path, old in self._alone.items() if old != inode}
        elif inode is not None:
            self._alone[action.path] = inode

    def _link(self, action: PutFile, other: VaultPath, folder: int, temp: str) -> bool:
        """Give the temporary name to a file that is known by another name, if it has the content that is wanted."""
        try:
            source = (
                folder if other.parent == action.path.parent else self._handles.get(other.parent)
            )
            os.link(other.name, temp, src_dir_fd=source, dst_dir_fd=folder, follow_symlinks=False)
        except (OSError, VaultError):
            return False
        try:
            found = content_of(folder, temp)
            if found is not None and found.hash == action.after:
                return True
        except OSError:
            pass
        self._temporaries.discard(action.path, folder, temp)
        return False

    def _create(self, action: PutFile, folder: int, temp: str, content: bytes | None) -> None:
        """Make a file; with content None it lies under its temporary name already."""
        path = action.path
        try:
            if content is not None:
                fd = os.open(
                    temp,
                    WRITE_FLAGS,
                    _USUAL_MODE if action.mode is None else action.mode,
                    dir_fd=folder,
                )
                try:
                    if action.mode is not None:
                        os.fchmod(fd, action.mode)
                    write_all(fd, content)
                    if action.becomes is not None:
                        set_times(fd, action.becomes)
                finally:
                    os.close(fd)
            rename_to_free(folder, temp, folder, path.name)
        except BaseException as error:
            self._temporaries.discard(path, folder, temp)
            if isinstance(error, FileExistsError):
                raise Conflict(
                    f"{path.text} exists by now, so it is not created.", path=path.text
                ) from None
            raise

    def _replace(
        self, action: PutFile, folder: int, temp: str, content: bytes, *, linked: bool
    ) -> None:
        path = action.path
        try:
            old = os.open(path.name, READ_FLAGS, dir_fd=folder)
        except OSError as error:
            raise (_changed(path) if error.errno in _NOT_A_FILE else error) from error
        try:
            status = os.fstat(old)
            if not stat.S_ISREG(status.st_mode):
                raise _changed(path)
            if not linked:
                try:
                    self._write_like(old, status, folder, temp, content, action.becomes)
                except BaseException:
                    self._temporaries.discard(path, folder, temp)
                    raise
            written = self._swap(action, folder, temp, old, status, content)
        finally:
            close_quietly(old)
        self._temporaries.let_go(path, folder, temp, action.before or "", written=written)

    def _write_like(
        self,
        old: int,
        status: os.stat_result,
        folder: int,
        temp: str,
        content: bytes,
        stamp: FileMetadata | None,
    ) -> None:
        """New content under the temporary name, with the mode, and where allowed the owner and attributes, of the old file."""
        fd = os.open(temp, WRITE_FLAGS, INCOMPLETE_MODE, dir_fd=folder)
        try:
            write_all(fd, content)
            if self._owner is not None and (status.st_uid, status.st_gid) != self._owner:
                with contextlib.suppress(OSError):
                    os.fchown(fd, status.st_uid, status.st_gid)
            if _HAS_ATTRIBUTES:
                _copy_attributes(old, fd)
            os.fchmod(fd, stat.S_IMODE(status.st_mode))
            if stamp is not None:
                set_times(fd, stamp)
        finally:
            os.close(fd)

    def _swap(
        self,
        action: PutFile,
        folder: int,
        temp: str,
        old: int,
        status: os.stat_result,
        content: bytes,
    ) -> bool | None:
        """Let the new content take the old one's place. Afterwards the old content is under the temporary name, or nothing is.

        Whether somebody has the old one open for writing (None: not known).
        """
        path = action.path
        try:
            exchanged = exchange(folder, temp, path.name)
            if not exchanged:
                if _hash(old, status) != action.before or not _is_at(folder, path.name, status):
                    raise _changed(path)
                os.replace(temp, path.name, src_dir_fd=folder, dst_dir_fd=folder)
                return False
        except BaseException as error:
            self._temporaries.discard(path, folder, temp)
            raise (_changed(path) if isinstance(error, FileNotFoundError) else error) from None
        expected = False
        # Asked first: whoever comes later does not know the temporary name.
        written = is_open_for_writing(old)
        try:
            expected = _is_at(folder, temp, status) and _hash(old, status) == action.before
        finally:
            if not expected:
                with _taking_back(path):
                    exchange(folder, temp, path.name)
                    # While the new content was in its place, somebody may have opened that.
                    written = _check_own(folder, temp, content)
                self._temporaries.let_go(path, folder, temp, action.after or "", written=written)
        if not expected:
            raise _changed(path)
        return written

    def _remove(self, action: PutFile, folder: int, temp: str) -> None:
        path = action.path
        try:
            rename_to_free(folder, path.name, folder, temp)
        except FileNotFoundError:
            raise _changed(path) from None
        expected, written = False, None
        try:
            fd = os.open(temp, READ_FLAGS, dir_fd=folder)
            try:
                status, written = os.fstat(fd), is_open_for_writing(fd)
                expected = stat.S_ISREG(status.st_mode) and _hash(fd, status) == action.before
            finally:
                close_quietly(fd)
        except OSError as error:
            if error.errno not in _NOT_A_FILE:
                raise
        finally:
            if not expected:
                with _taking_back(path):
                    rename_to_free(folder, temp, folder, path.name)
        if not expected:
            raise _changed(path)
        self._temporaries.let_go(path, folder, temp, action.before or "", written=written)

    # --- folders and moves -----------------------------------------------------------------------------------------------------

    def _make_folder(self, path: VaultPath) -> bool:
        folder = self._folder(path.parent)
        try:
            os.mkdir(path.name, dir_fd=folder)
        except FileExistsError:
            if not stat.S_ISDIR(os.stat(path.name, dir_fd=folder, follow_symlinks=False).st_mode):
                raise Conflict(
                    f"{path.text} cannot be made: a file has that name.", path=path.text
                ) from None
            return False
        return True

    def _remove_folder(self, path: VaultPath) -> bool:
        self._temporaries.clear(path)
        folder = self._folder(path.parent)
        self._handles.drop(path)
        try:
            os.rmdir(path.name, dir_fd=folder)
        except FileNotFoundError:
            return False
        except NotADirectoryError:
            raise _changed(path) from None
        except OSError as error:
            if error.errno in (errno.ENOTEMPTY, errno.EEXIST):
                return False
            raise
        self._touched.pop(path.text, None)
        return True

    def _move(self, action: MoveEntry, number: int) -> None:
        path, new_path = action.path, action.new_path
        self._check_moved(action)
        source = self._folder(path.parent)
        # A second look for the same folder might close the first handle, because of its age.
        target = source if new_path.parent == path.parent else self._folder(new_path.parent)
        try:
            rename_to_free(source, path.name, target, new_path.name)
        except FileNotFoundError:
            raise _changed(path) from None
        except FileExistsError:
            self._move_onto_itself(action, source, target, number)
        self._others.forget()
        for siblings in self._siblings.values():
            siblings[:] = [_rebased(known, path, new_path) for known in siblings]
        if action.folder:
            self._handles.forget()
            self._temporaries.moved(path, new_path)
            below = [
                text
                for text, (folder, _) in self._touched.items()
                if folder == path or folder.within(path)
            ]
            for folder, names in [self._touched.pop(text) for text in below]:
                moved = folder.rebased(path, new_path)
                self._touched[moved.text] = (moved, names)

    def _check_moved(self, action: MoveEntry) -> None:
        path = action.path
        if action.hash is not None:
            content, _ = self._handles.read_through(path)
            if content is None or content.hash != action.hash:
                raise _changed(path)
            return
        status = self._handles.status(path)
        if status is None or stat.S_ISDIR(status.st_mode) != action.folder:
            raise _changed(path)

    def _move_onto_itself(self, action: MoveEntry, source: int, target: int, number: int) -> None:
        """The new name is the entry itself: another spelling on a disk that ignores case, or the link of a move that was cut off."""
        path, new_path = action.path, action.new_path
        here = os.stat(path.name, dir_fd=source, follow_symlinks=False)
        if not _is_at(target, new_path.name, here):
            raise Conflict(
                f"{path.text} cannot move: {new_path.text} exists by now.", path=path.text
            )
        if collision_key(path.text) != collision_key(new_path.text):
            if not self._recovering or here.st_nlink < 2 or action.folder:
                raise Conflict(
                    f"{path.text} cannot move: {new_path.text} is the same file.", path=path.text
                )
            os.unlink(path.name, dir_fd=source)
            return
        temp = self._temporary(number)
        rename_to_free(source, path.name, source, temp)
        try:
            rename_to_free(source, temp, target, new_path.name)
        except BaseException as error:
            with _taking_back(path):
                rename_to_free(source, temp, source, path.name)
            if isinstance(error, FileExistsError):
                raise Conflict(
                    f"{path.text} cannot move: {new_path.text} is another name of the same file.",
                    path=path.text,
                ) from None
            raise


@contextlib.contextmanager
def _taking_back(path: VaultPath) -> Iterator[None]:
    """Around the way back of an action: when that fails too, the file is still there under its temporary name."""
    try:
        yield
    except OSError as error:
        raise HalfDone(
            f"{path.text} could neither be changed nor put back ({error.strerror}); its content is safe beside it.",
            path=path.text,
            hint=_RECOVER,
        ) from error


def _hash(fd: int, status: os.stat_result) -> str:
    return hashlib.sha256(read_all(fd, status.st_size)).hexdigest()


def _is_at(folder: int, name: str, status: os.stat_result) -> bool:
    """Whether the entry under this name is the one with this status."""
    try:
        found = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return (found.st_dev, found.st_ino) == (status.st_dev, status.st_ino)


def _check_own(folder: int, temp: str, content: bytes) -> bool | None:
    """OSError unless the temporary file holds what was written to it: somebody may have replaced the file while it was at its place.

    Whether somebody has it open for writing (None: not known).
    """
    fd = os.open(temp, READ_FLAGS, dir_fd=folder)
    try:
        written = is_open_for_writing(fd)
        if read_all(fd, len(content)) != content:
            raise OSError(errno.EBUSY, "another program writes it again and again")
        return written
    finally:
        close_quietly(fd)


def _copy_attributes(source: int, target: int) -> None:
    try:
        names = os.listxattr(source)
    except OSError:
        return
    for name in names:
        with contextlib.suppress(OSError):
            os.setxattr(target, name, os.getxattr(source, name))


def _rebased(path: VaultPath, old: VaultPath, new: VaultPath) -> VaultPath:
    return path.rebased(old, new) if path == old or path.within(old) else path


def _left_alone(path: VaultPath) -> Problem:
    message = (
        f"{path.text} was one file under several names. None of the other names in this vault has "
        "its old content now, so it is a file of its own."
    )
    return Problem("NOT_RESTORED", message, path=path.text)


def _changed(path: VaultPath) -> Conflict:
    return Conflict(
        f"{path.text} is no longer what the preview read; it was left alone.", path=path.text
    )


def set_times(fd: int, stamp: FileMetadata) -> None:
    """Give a file the times of a stamp, as far as the system lets it."""
    now = time.time_ns()
    if stamp.born_ns is not None:
        os.utime(fd, ns=(now, stamp.born_ns))
    os.utime(fd, ns=(now, stamp.modified_ns))


class OtherNames:
    """Where in the vault a file has its other names. The vault is looked through when that is asked, and again after `forget`."""

    def __init__(self, handles: FolderHandles) -> None:
        self._handles = handles
        self._found: Mapping[int, Sequence[VaultPath]] | None = None

    def forget(self) -> None:
        """Names have changed since."""
        self._found = None

    def of(self, inode: tuple[int, int]) -> VaultPath | None:
        """A name of the file with this (device, inode), or None when it has none in the vault. VaultError when the disk fails."""
        if self._found is None:
            found = defaultdict[int, list[VaultPath]](list)
            for folder, entry in self._handles.entries():
                if entry.is_file(follow_symlinks=False) and not entry.name.startswith("."):
                    with contextlib.suppress(PathRefused):
                        found[entry.inode()].append(from_disk(folder, entry.name))
            self._found = found
        for path in self._found.get(inode[1], ()):
            status = self._handles.status(path)
            if status is not None and (status.st_dev, status.st_ino) == inode:
                return path
        return None
