"""What Obsidian's `workspace.json` says of the open files. It is written a while after something changed, so it may be old.

`active` is the id of a pane, which may show no file; then the tab in front (`currentTab`) of the main group counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any


def active_file(document: object) -> str | None:
    """The vault path of the file that was in front; None when that was no file."""
    if not isinstance(document, Mapping):
        return None
    leaf = next((leaf for leaf in _leaves(document) if leaf.get("id") == document.get("active")), None)
    return _file(leaf) or _file(_front(document.get("main")))


def recent_files(document: object) -> list[str]:
    """Files, folders and what is gone by now, the latest first."""
    files = document.get("lastOpenFiles") if isinstance(document, Mapping) else None
    return [name for name in files if isinstance(name, str)] if isinstance(files, list) else []


def _leaves(node: Any) -> Iterator[Mapping[str, Any]]:
    """Every pane below a part of the layout."""
    waiting = [node]
    while waiting:
        match waiting.pop():
            case {"type": "leaf"} as leaf:
                yield leaf
            case Mapping() as part:
                waiting += part.values()
            case list() as parts:
                waiting += parts


def _front(node: Any) -> Mapping[str, Any] | None:
    """The pane in front of the first group of tabs."""
    while isinstance(node, Mapping):
        if node.get("type") == "leaf":
            return node
        parts, front = node.get("children"), node.get("currentTab")
        if not isinstance(parts, list) or not parts:
            return None
        node = parts[front if isinstance(front, int) and 0 <= front < len(parts) else 0]
    return None


def _file(leaf: Mapping[str, Any] | None) -> str | None:
    match leaf:
        case {"state": {"state": {"file": str(file)}}}:
            return file
    return None
