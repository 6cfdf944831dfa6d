"""Applying one action to the disk: completely or not at all, and never over unexpected content.

A file's new content is written under a temporary name in the target's own folder. It is then
renamed to a free name, or exchanged with the old file. The displaced file is hashed before it is
deleted (`temp_files.py`), and put back if its content is not what the action expects. Temporary
names have the form `.<token>.<number>.<attempt>`, so that they can be identified after a crash.
Nothing is flushed before `complete`, which flushes everything at once.
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
from typing import Final, Self, assert_never

from msgspec import Struct

from obsidian_agent.errors import Conflict, ObsidianError, PathRefused, Problem, VaultError
from obsidian_agent.state_files import write_all
from obsidian_agent.vault.filesystem import system_calls
from obsidian_agent.vault.filesystem.dirhandles import READ_FLAGS, FolderHandles, content_of
from obsidian_agent.vault.filesystem.store import OpenFiles, io_error
from obsidian_agent.vault.filesystem.system_calls import exchange, rename_to_free
from obsidian_agent.vault.filesystem.temp_files import TempFiles, is_open_for_writing
from obsidian_agent.vault.filesystem.walk import close_quietly, read_all
from obsidian_agent.vault.paths.path import VaultPath, collision_key, from_disk
from obsidian_agent.vault.transaction.actions import (
    CAN_SET_BIRTH_TIME,
    Action,
    FileMetadata,
    MoveEntry,
    PutFile,
    PutFolder,
    Siblings,
    is_same_link,
    rebased,
)

WRITE_FLAGS: Final = (
    os.O_WRONLY
    | os.O_CREAT
    | os.O_EXCL
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_CLOEXEC", 0)
)
INCOMPLETE_MODE: Final = 0o200
"""The mode of a file while it is written to replace another one.

After a crash it distinguishes an incomplete file from a displaced one.
"""

_DEFAULT_MODE: Final = 0o666
_NOT_A_FILE: Final = frozenset(
    {errno.ENOENT, errno.ELOOP, errno.EMLINK, errno.ENXIO, errno.ENOTDIR}
)
_HAS_ATTRIBUTES: Final = hasattr(os, "listxattr")
_RECOVER: Final = "Run `obsidian-agent recover` when the disk works again."


class _OldFile(Struct, frozen=True):
    """An open file that is about to be replaced."""

    fd: int
    status: os.stat_result


class HalfDone(VaultError):
    """A failure both to apply an action and to reverse it.

    Nothing is lost, and recovery repairs it.
    """


class Applier:
    """An applier of actions to one vault.

    `token` is unique to the run. Files in `open_files` are changed in the editor. A restored file
    is linked to a name of its old inode or, if all of those were replaced, to one of its
    `siblings`. With `report_creation`, there is a warning if creation times of restored files are
    lost.

    If a moved note has its old and its new name at the same time, then with `recovering` this is an
    interrupted move. Otherwise another program linked the note.
    """

    def __init__(
        self,
        handles: FolderHandles,
        token: str,
        open_files: OpenFiles | None = None,
        *,
        recovering: bool = False,
        report_creation: bool = True,
        siblings: Siblings | None = None,
    ) -> None:
        self._handles = handles
        self._open_files = open_files
        self._recovering = recovering
        self._report_creation = report_creation
        self._token = token
        self._attempts = secrets.randbelow(1 << 24)
        self._owner = (os.geteuid(), os.getegid()) if hasattr(os, "geteuid") else None
        self._touched: dict[str, tuple[VaultPath, set[str]]] = {}
        self._devices: dict[int, int] = {}
        self._temp_files = TempFiles(handles)
        self._other_names = OtherNames(handles)
        self._siblings = siblings or {}
        self._unlinked: dict[VaultPath, tuple[int, int]] = {}
        """Restored files without another name so far, and the inode they had."""
        self._lost_birth_times = 0

    @property
    def warnings(self) -> list[Problem]:
        """Warnings on files put beside a note and on metadata that could not be restored."""
        warnings = [*self._temp_files.warnings, *map(_not_linked, self._unlinked)]
        if self._open_files is not None:
            warnings += self._open_files.warnings
        if self._lost_birth_times and self._report_creation:
            count = self._lost_birth_times
            subject = f"{count:,} restored notes have" if count > 1 else "One restored note has"
            message = f"{subject} a new creation time: this system cannot set it."
            warnings.append(Problem("NOT_RESTORED", message))
        return warnings

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        for fd in self._devices.values():
            close_quietly(fd)
        self._devices.clear()

    def carry_out(self, action: Action, number: int, content: bytes = b"") -> bool:
        """Apply one action. `content` is the new content of a file, `number` that of the action.

        Returns False for a folder that exists already, or that stays because it is not empty.
        Raises `Conflict` if the disk is not as the action expects and `VaultError` (IO_ERROR) if
        the system refuses. The path is then unchanged; `HalfDone` is raised if it is not.
        """
        self._temp_files.finish_due()
        try:
            match action:
                case PutFile():
                    self._put_file(action, number, content)
                case PutFolder(path, created):
                    return self._make_folder(path) if created else self._remove_folder(path)
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
        """Delete all temporary files, and flush all changes so that they survive a power loss.

        Raises `HalfDone` if the disk fails.
        """
        if not self._temp_files.finish_all():
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
                f"The changes may not have reached the disk ({error.strerror or error}).",
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
        """Return the handle of a folder in which a name is about to change."""
        fd = self._handles.get(folder)
        if folder.text not in self._touched:
            self._touched[folder.text] = (folder, set())
            device = os.fstat(fd).st_dev
            if device not in self._devices:
                self._devices[device] = os.dup(fd)
        return fd

    def _temp_name(self, number: int) -> str:
        self._attempts += 1
        return f".{self._token}.{number}.{self._attempts:x}"

    def _put_file(self, action: PutFile, number: int, content: bytes) -> None:
        if (
            action.held
            and self._open_files is not None
            and self._edit(action, self._open_files, content)
        ):
            self._folder(action.path.parent)
            self._touched[action.path.parent.text][1].add(action.path.name)
            return
        other_names = self._names_of_old_file(action)
        folder = self._folder(action.path.parent)
        temp = self._temp_name(number)
        if action.after is None:
            self._remove(action, folder, temp)
        else:
            linked = any(self._link(action, name, folder, temp) for name in other_names)
            if action.before is None:
                self._create(action, folder, temp, None if linked else content)
            else:
                self._replace(action, folder, temp, content, linked=linked)
            self._record_restored(action, linked=linked)
        if action.after is not None:
            self._touched[action.path.parent.text][1].add(action.path.name)

    def _edit(self, action: PutFile, open_files: OpenFiles, content: bytes) -> bool:
        """Change an open file in the editor. Return False if it must be changed on the disk."""
        path = action.path
        current, _ = self._handles.read_through(path)
        if current is None or current.hash != action.before:
            raise _changed(path)
        done: bool | None
        try:
            done = open_files.write(path.text, current.data, content)
            reason = "Obsidian reports success, but the file is unchanged"
        except ObsidianError as error:
            done, reason = None, error.message
        if done is False:
            return False
        # The file may also hold text that the user typed since. If it is unknown whether Obsidian
        # changed it, only the content on the disk can show it.
        current, _ = self._handles.read_through(path)
        if current is not None and (
            current.hash == action.after or (done and current.hash != action.before)
        ):
            return True
        raise HalfDone(
            f"{path.text} is open in Obsidian. It is unknown if it was changed there: {reason}",
            path=path.text,
            hint=_RECOVER,
        )

    def _names_of_old_file(self, action: PutFile) -> list[VaultPath]:
        """Return the other names of a restored file: those of its old inode, then its siblings."""
        inode = action.becomes.inode if action.becomes is not None else None
        if inode is None:
            return []
        name = self._other_names.of(inode)
        siblings = [path for path in self._siblings.get(inode, ()) if path != action.path]
        return siblings if name is None else [name, *siblings]

    def _record_restored(self, action: PutFile, *, linked: bool) -> None:
        """Record the metadata that a restored file has lost."""
        if action.becomes is None:
            return
        self._lost_birth_times += not linked and not CAN_SET_BIRTH_TIME
        inode = action.becomes.inode
        if linked:
            self._unlinked = {path: old for path, old in self._unlinked.items() if old != inode}
        elif inode is not None:
            self._unlinked[action.path] = inode

    def _link(self, action: PutFile, other: VaultPath, folder: int, temp: str) -> bool:
        """Link the temporary name to an existing file, if that has the new content."""
        try:
            source = (
                folder if other.parent == action.path.parent else self._handles.get(other.parent)
            )
            os.link(other.name, temp, src_dir_fd=source, dst_dir_fd=folder, follow_symlinks=False)
        except (OSError, VaultError):
            return False
        try:
            current = content_of(folder, temp)
            if current is not None and current.hash == action.after:
                return True
        except OSError:
            pass
        self._temp_files.discard(action.path, folder, temp)
        return False

    def _create(self, action: PutFile, folder: int, temp: str, content: bytes | None) -> None:
        """Create a file. With `content` None it exists already under its temporary name."""
        path = action.path
        try:
            if content is not None:
                fd = os.open(
                    temp,
                    WRITE_FLAGS,
                    _DEFAULT_MODE if action.mode is None else action.mode,
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
            self._temp_files.discard(path, folder, temp)
            if isinstance(error, FileExistsError):
                raise Conflict(
                    f"{path.text} now exists, so it was not created.", path=path.text
                ) from None
            raise

    def _replace(
        self, action: PutFile, folder: int, temp: str, content: bytes, *, linked: bool
    ) -> None:
        path = action.path
        try:
            fd = os.open(path.name, READ_FLAGS, dir_fd=folder)
        except OSError as error:
            raise (_changed(path) if error.errno in _NOT_A_FILE else error) from error
        try:
            old = _OldFile(fd, os.fstat(fd))
            if not stat.S_ISREG(old.status.st_mode):
                raise _changed(path)
            if not linked:
                try:
                    self._write_temp(old, folder, temp, content, action.becomes)
                except BaseException:
                    self._temp_files.discard(path, folder, temp)
                    raise
            written = self._swap(action, folder, temp, old, content)
        finally:
            close_quietly(fd)
        self._temp_files.discard_displaced(path, folder, temp, action.before or "", written=written)

    def _write_temp(
        self,
        old: _OldFile,
        folder: int,
        temp: str,
        content: bytes,
        metadata: FileMetadata | None,
    ) -> None:
        """Write the new content under the temporary name.

        The file gets the mode and, where allowed, the owner and attributes of the old one.
        """
        fd = os.open(temp, WRITE_FLAGS, INCOMPLETE_MODE, dir_fd=folder)
        try:
            write_all(fd, content)
            owner = (old.status.st_uid, old.status.st_gid)
            if self._owner is not None and owner != self._owner:
                with contextlib.suppress(OSError):
                    os.fchown(fd, *owner)
            if _HAS_ATTRIBUTES:
                _copy_attributes(old.fd, fd)
            os.fchmod(fd, stat.S_IMODE(old.status.st_mode))
            if metadata is not None:
                set_times(fd, metadata)
        finally:
            os.close(fd)

    def _swap(
        self, action: PutFile, folder: int, temp: str, old: _OldFile, content: bytes
    ) -> bool | None:
        """Put the new content in place of the old one.

        Afterwards the temporary name is that of the old file, or free. Return True if a program has
        the old file open for writing, None if that is unknown.
        """
        path = action.path
        try:
            exchanged = exchange(folder, temp, path.name)
            if not exchanged:
                if _hash(old.fd, old.status) != action.before or not _is_at(
                    folder, path.name, old.status
                ):
                    raise _changed(path)
                os.replace(temp, path.name, src_dir_fd=folder, dst_dir_fd=folder)
                return False
        except BaseException as error:
            self._temp_files.discard(path, folder, temp)
            raise (_changed(path) if isinstance(error, FileNotFoundError) else error) from None
        expected = False
        # Check this first: no program can open the old file by its path any more.
        written = is_open_for_writing(old.fd)
        try:
            expected = (
                _is_at(folder, temp, old.status) and _hash(old.fd, old.status) == action.before
            )
        finally:
            if not expected:
                with _restoring(path):
                    exchange(folder, temp, path.name)
                    # Another program may have opened the new content while it was in place.
                    written = _check_temp(folder, temp, content)
                self._temp_files.discard_displaced(
                    path, folder, temp, action.after or "", written=written
                )
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
                with _restoring(path):
                    rename_to_free(folder, temp, folder, path.name)
        if not expected:
            raise _changed(path)
        self._temp_files.discard_displaced(path, folder, temp, action.before or "", written=written)

    def _make_folder(self, path: VaultPath) -> bool:
        folder = self._folder(path.parent)
        try:
            os.mkdir(path.name, dir_fd=folder)
        except FileExistsError:
            if not stat.S_ISDIR(os.stat(path.name, dir_fd=folder, follow_symlinks=False).st_mode):
                raise Conflict(
                    f"{path.text} cannot be created: a file has that name.", path=path.text
                ) from None
            return False
        return True

    def _remove_folder(self, path: VaultPath) -> bool:
        self._temp_files.clear(path)
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
        # Getting the same folder twice could close the first handle, because of its age.
        target = source if new_path.parent == path.parent else self._folder(new_path.parent)
        try:
            rename_to_free(source, path.name, target, new_path.name)
        except FileNotFoundError:
            raise _changed(path) from None
        except FileExistsError:
            self._move_onto_itself(action, source, target, number)
        self._other_names.forget()
        for siblings in self._siblings.values():
            siblings[:] = [rebased(sibling, path, new_path) for sibling in siblings]
        if action.folder:
            self._handles.forget()
            self._temp_files.moved(path, new_path)
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
        status = self._handles.status(path)
        if is_same_link(action, status):
            return
        if action.hash is not None:
            content, _ = self._handles.read_through(path)
            if content is None or content.hash != action.hash:
                raise _changed(path)
            return
        if status is None or stat.S_ISDIR(status.st_mode) != action.folder:
            raise _changed(path)

    def _move_onto_itself(self, action: MoveEntry, source: int, target: int, number: int) -> None:
        """Move an entry to a name that exists already and is the entry itself.

        This is another spelling on a case-insensitive disk, or the hard link of an interrupted
        move.
        """
        path, new_path = action.path, action.new_path
        status = os.stat(path.name, dir_fd=source, follow_symlinks=False)
        if not _is_at(target, new_path.name, status):
            raise Conflict(
                f"{path.text} cannot be moved: {new_path.text} now exists.", path=path.text
            )
        if collision_key(path.text) != collision_key(new_path.text):
            if not self._recovering or status.st_nlink < 2 or action.folder:
                raise Conflict(
                    f"{path.text} cannot be moved: {new_path.text} is the same file.",
                    path=path.text,
                )
            os.unlink(path.name, dir_fd=source)
            return
        temp = self._temp_name(number)
        rename_to_free(source, path.name, source, temp)
        try:
            rename_to_free(source, temp, target, new_path.name)
        except BaseException as error:
            with _restoring(path):
                rename_to_free(source, temp, source, path.name)
            if isinstance(error, FileExistsError):
                raise Conflict(
                    f"{path.text} cannot be moved: "
                    f"{new_path.text} is another name of the same file.",
                    path=path.text,
                ) from None
            raise


@contextlib.contextmanager
def _restoring(path: VaultPath) -> Iterator[None]:
    """Raise `HalfDone` if an action cannot be reversed. The file then keeps its temporary name."""
    try:
        yield
    except OSError as error:
        raise HalfDone(
            f"{path.text} could neither be changed nor restored ({error.strerror}). "
            "Its content is safe in a temporary file beside it.",
            path=path.text,
            hint=_RECOVER,
        ) from error


def _hash(fd: int, status: os.stat_result) -> str:
    return hashlib.sha256(read_all(fd, status.st_size)).hexdigest()


def _is_at(folder: int, name: str, status: os.stat_result) -> bool:
    """Return True if this name is that of the file with this status."""
    try:
        current = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return (current.st_dev, current.st_ino) == (status.st_dev, status.st_ino)


def _check_temp(folder: int, temp: str, content: bytes) -> bool | None:
    """Return True if a program has the temporary file open for writing, None if that is unknown.

    Raises OSError if its content is not `content`: another program may have replaced the file while
    it was in place.
    """
    fd = os.open(temp, READ_FLAGS, dir_fd=folder)
    try:
        written = is_open_for_writing(fd)
        if read_all(fd, len(content)) != content:
            raise OSError(errno.EBUSY, "another program keeps writing it")
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


def _not_linked(path: VaultPath) -> Problem:
    message = (
        f"{path.text} was one file under several names. None of the other names in this vault has "
        "its old content now, so it is a file of its own."
    )
    return Problem("NOT_RESTORED", message, path=path.text)


def _changed(path: VaultPath) -> Conflict:
    return Conflict(
        f"{path.text} is no longer what the preview read, so it was skipped.", path=path.text
    )


def set_times(fd: int, metadata: FileMetadata) -> None:
    """Set the times of a file, as far as the system permits."""
    now = time.time_ns()
    if metadata.born_ns is not None:
        os.utime(fd, ns=(now, metadata.born_ns))
    os.utime(fd, ns=(now, metadata.modified_ns))


class OtherNames:
    """The names of files in the vault, by inode. The vault is searched once until `forget`."""

    def __init__(self, handles: FolderHandles) -> None:
        self._handles = handles
        self._names: Mapping[int, Sequence[VaultPath]] | None = None

    def forget(self) -> None:
        """Discard the names, after one of them has changed."""
        self._names = None

    def of(self, inode: tuple[int, int]) -> VaultPath | None:
        """Return a name of the file with this (device, inode), or None if the vault has none.

        Raises `VaultError` if the disk fails.
        """
        if self._names is None:
            names = defaultdict[int, list[VaultPath]](list)
            for folder, entry in self._handles.entries():
                if entry.is_file(follow_symlinks=False) and not entry.name.startswith("."):
                    with contextlib.suppress(PathRefused):
                        names[entry.inode()].append(from_disk(folder, entry.name))
            self._names = names
        for path in self._names.get(inode[1], ()):
            status = self._handles.status(path)
            if status is not None and (status.st_dev, status.st_ino) == inode:
                return path
        return None
