"""Questions about links that every index answers alike, from names and resolution."""

from __future__ import annotations

from typing import TYPE_CHECKING

from obsidian_agent.vault.index_facts import file_name, target_name
from obsidian_agent.vault.paths import VaultPath

if TYPE_CHECKING:
    from obsidian_agent.vault.index import VaultIndex


def linking(index: VaultIndex, path: VaultPath) -> list[VaultPath]:
    """The files, but `path` itself, with a link that leads to `path`: of those that name it, the ones that mean it."""
    name = file_name(path)

    def means(source: VaultPath) -> bool:
        targets = index.facts(source).targets
        return any(target_name(target) == name and index.resolve(target, source) == path for target in targets)

    return [source for source in index.naming(name) if source != path and means(source)]
