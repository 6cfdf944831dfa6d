"""What can happen to a vault, as data: the changes that tools propose, and the operations that the executor carries out.

A tool proposes `FileChange`s. `OverlayVault` (overlay.py) folds them and yields a `ChangeSet`: the ordered `Operation`s that lead
from the vault on disk to the vault that was shown, and the net effect per path that people and programs see. Each file's content is
written by exactly one `WriteFile`; structure (folders, moves, trash) is replayed in the order in which the steps did it.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Literal

from obsidian_agent.vault.inventory import Inventory
from obsidian_agent.vault.paths import VaultPath


def content_hash(data: bytes) -> str:
    """SHA-256 of the bytes, as hex: the `hash` of the plan language."""
    return hashlib.sha256(data).hexdigest()


# --- what tools propose -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CreateFile:
    """A new file at a free path. Missing parents are made (and shown) by the overlay."""

    path: VaultPath
    content: bytes


@dataclass(frozen=True, slots=True)
class CursorMark:
    """Where an editor's step leaves the cursor: an index in the text of the new content; whether it used up the run's selection."""

    offset: int
    replaced: bool


@dataclass(frozen=True, slots=True)
class ModifyFile:
    """New content for a file that exists in the view. The tools of the editor also say where the cursor is then."""

    path: VaultPath
    content: bytes
    cursor: CursorMark | None = None


@dataclass(frozen=True, slots=True)
class RenameEntry:
    """A file or folder gets a new path. Missing parents of `new_path` are made. With `overwrite`, a file in the way goes to the trash."""

    path: VaultPath
    new_path: VaultPath
    overwrite: bool = False


@dataclass(frozen=True, slots=True)
class DeleteEntry:
    """A file or folder goes to the vault's own `.trash/` under a free name that the overlay picks."""

    path: VaultPath


@dataclass(frozen=True, slots=True)
class MakeFolder:
    """A folder, with the parents it lacks. No change when it exists."""

    path: VaultPath


FileChange = CreateFile | ModifyFile | RenameEntry | DeleteEntry | MakeFolder


# --- what the executor does ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class MakeDir:
    """mkdir of one folder whose parent exists."""

    path: VaultPath


@dataclass(frozen=True, slots=True)
class Move:
    """Rename of a file or folder to a free path in an existing folder; with `trash`, into `.trash/`.

    `before_hash` is the content hash of a file (None for a folder, or a file too large to be read): the file must still have it.
    `inventory` is what was at the start in a folder that is moved, or the size and times of such a file: it must still be so.
    """

    path: VaultPath
    new_path: VaultPath
    folder: bool
    before_hash: str | None
    trash: bool = False
    inventory: Inventory | None = None


@dataclass(frozen=True, slots=True)
class WriteFile:
    """The one write of a file: created when `before_hash` is None, else replaced while it still has that hash."""

    path: VaultPath
    before_hash: str | None
    after_hash: str
    content: bytes


Operation = MakeDir | Move | WriteFile


@dataclass(frozen=True, slots=True)
class OwnedOperation:
    """An operation and the index (in the preview's list of instances) of the instance that causes it."""

    operation: Operation
    instance: int


ChangeKind = Literal["create", "modify", "delete", "rename", "mkdir"]


@dataclass(frozen=True, slots=True)
class NetChange:
    """The net effect on one path, as shown and approved.

    `before` is where the old content can be read in the vault as it was (None: there was none), `content` the new content
    (None: unchanged). A renamed and edited file is one rename with content. A folder that goes to the trash is one change; `files` counts
    the files that go with it.
    """

    kind: ChangeKind
    path: VaultPath
    new_path: VaultPath | None = None
    before: VaultPath | None = None
    content: bytes | None = None
    folder: bool = False
    files: int = 0


@dataclass(frozen=True, slots=True)
class ChangeSet:
    """Everything a plan does to the vault: `operations` in the order of execution, `changes` as the net effect, sorted by path.

    `joined` are pairs of instances, the second of which changed, moved or took away what the first had written.
    """

    operations: tuple[OwnedOperation, ...] = ()
    changes: tuple[NetChange, ...] = ()
    joined: frozenset[tuple[int, int]] = field(default=frozenset(), compare=False)
