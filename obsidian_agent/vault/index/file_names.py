"""Every path of a file: as given, through symbolic links, and by its hard links."""

from __future__ import annotations

import stat
from collections import defaultdict
from collections.abc import Sequence
from functools import cached_property

from obsidian_agent.errors import VaultError
from obsidian_agent.vault.filesystem.store import VaultStore
from obsidian_agent.vault.index.stamps import stamp_of, walk_stamps
from obsidian_agent.vault.paths.path import PathUse, VaultPath, parse


class FileNames:
    """The paths that lead to the same file.

    The vault is walked once, for the first file with hard links, so this serves one turn or view.
    """

    def __init__(self, store: VaultStore) -> None:
        self._store = store

    def __call__(self, path: VaultPath) -> Sequence[VaultPath]:
        """Return the path, then its target through links and the hard links of that file."""
        try:
            real, info = self._store.resolve_with_status(path)
        except VaultError:
            return (path,)
        if real == path and (info is None or info.st_nlink == 1):
            return (path,)
        names = {path.text: path, real.text: real}
        if info is not None and stat.S_ISREG(info.st_mode) and info.st_nlink > 1:
            for text in self._texts_by_inode.get(stamp_of(info).inode, ()):
                name = parse(text, PathUse.READ)
                other = self._store.lstat(name)
                if other is not None and (other.st_dev, other.st_ino) == (info.st_dev, info.st_ino):
                    names[text] = name
        return tuple(names.values())

    @cached_property
    def _texts_by_inode(self) -> dict[int, list[str]]:
        texts = defaultdict[int, list[str]](list)
        for text, stamp in walk_stamps(self._store):
            texts[stamp.inode].append(text)
        return dict(texts)
