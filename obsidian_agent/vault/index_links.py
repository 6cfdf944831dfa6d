"""Questions about links that every index answers alike, from the names of files and of links."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final

from obsidian_agent.vault.index_facts import file_name, is_relative, target_name
from obsidian_agent.vault.paths import VaultPath
from obsidian_agent.vault.resolve import LinkResolver

if TYPE_CHECKING:
    from obsidian_agent.vault.index import VaultIndex

_KEPT: Final = 4096


class LinksByName:
    """What links mean, decided among the files of one name at a time: no other files matter, and a large vault has very many."""

    def __init__(self, named: Callable[[str], Iterable[VaultPath]]) -> None:
        self._named = named
        self._known: dict[str, tuple[LinkResolver, int]] = {}

    def resolve(self, target: str, source: VaultPath) -> VaultPath | None:
        """The file that a target (without `#...`) means in a file, or None."""
        return self._of(asked_name(target, source))[0].resolve(target, source) if target else source

    def is_same_everywhere(self, target: str) -> bool:
        """Whether a target means the same file in whichever file it stands."""
        return not is_relative(target) and self._of(target_name(target))[1] <= 1

    def forget(self, name: str) -> None:
        """Files of this name came or went."""
        self._known.pop(name, None)

    def _of(self, name: str) -> tuple[LinkResolver, int]:
        known = self._known.get(name)
        if known is None:
            if len(self._known) >= _KEPT:
                self._known.clear()
            files = list(self._named(name)) if name else []
            known = self._known[name] = LinkResolver(files), len(files)
        return known


def asked_name(target: str, source: VaultPath) -> str:
    """The key of the name that a target asks for. One that ends in `..` asks for a note beside the folder that it climbs to."""
    if not is_relative(target):
        return target_name(target)
    parts = list(source.parent.parts)
    for part in target.split("/"):
        if part == "..":
            parts = parts[:-1]
        elif part not in (".", ""):
            parts.append(part)
    return target_name(parts[-1]) if parts else ""


def linking(index: VaultIndex, path: VaultPath) -> list[VaultPath]:
    """The files, but `path` itself, with a link that leads to `path`: of those that name it, the ones that mean it."""

    def means(source: VaultPath) -> bool:
        return any(index.resolve(target, source) == path for target in index.facts(source).targets if asked_name(target, source) == name)

    name = file_name(path)
    sources = {source for ending in (name, ".", "..") for source in index.naming(ending)}
    return sorted(source for source in sources if source != path and means(source))
