"""The net effect of actions on a vault, from what the journal knows."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import assert_never

from obsidian_agent.vault.paths.path import is_trash
from obsidian_agent.vault.transaction.actions import Action, MoveEntry, PutFile, PutFolder


@dataclass(frozen=True, slots=True)
class Effects:
    """What a run did to the vault, from the journal. Vault paths as text, sorted; renames as (from, to)."""

    created: tuple[str, ...] = ()
    modified: tuple[str, ...] = ()
    deleted: tuple[str, ...] = ()
    renamed: tuple[tuple[str, str], ...] = ()
    folders: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()

    @property
    def anything(self) -> bool:
        """Whether there was any effect."""
        return self != Effects()


@dataclass(slots=True)
class _Trace:
    """An entry that some action touched. `origin` is where it was at the start, None when it is new."""

    origin: str | None
    folder: bool
    changed: bool = False


def pack_effects(effects: Effects) -> bytes:
    """The stored form."""
    return zlib.compress(json.dumps(asdict(effects), ensure_ascii=False).encode(), 1)


def unpack_effects(blob: bytes) -> Effects:
    """The effects as stored; none for a blob that is damaged."""
    try:
        fields = {name: tuple(value) for name, value in json.loads(zlib.decompress(blob)).items()}
        renamed = tuple((old, new) for old, new in fields.pop("renamed"))
        return Effects(renamed=renamed, **fields)
    except (zlib.error, ValueError, TypeError, KeyError, AttributeError):
        return Effects()


def effects_of(actions: Iterable[Action], commands: tuple[str, ...] = ()) -> Effects:
    """The net effect of actions that were carried out in this order. A renamed and edited file is a rename."""
    now: dict[str, _Trace] = {}
    deleted: set[str] = set()
    for action in actions:
        match action:
            case PutFile(path, before, after):
                trace = now.setdefault(path.text, _Trace(None if before is None else path.text, folder=False))
                trace.changed = True
                if after is None:
                    _forget(now, path.text, deleted)
            case PutFolder(path, made):
                if made and not is_trash(path):
                    now[path.text] = _Trace(None, folder=True)
                elif not made:
                    now.pop(path.text, None)
            case MoveEntry():
                _follow(now, action, deleted)
            case _:
                assert_never(action)
    return _collected(now, deleted, commands)


def _forget(now: dict[str, _Trace], path: str, deleted: set[str]) -> None:
    trace = now.pop(path)
    if trace.origin is not None:
        deleted.add(trace.origin)


def _follow(now: dict[str, _Trace], action: MoveEntry, deleted: set[str]) -> None:
    old, new = action.path.text, action.new_path.text
    trace = now.pop(old, None) or _Trace(old, action.folder)
    below = [text for text in now if text.startswith(old + "/")] if action.folder else []
    if is_trash(action.new_path):
        if trace.origin is not None:
            deleted.add(trace.origin)
        for text in below:
            inner = now.pop(text)
            if inner.origin is not None and inner.origin != text:
                deleted.add(inner.origin)
        return
    now[new] = trace
    for text in below:
        now[new + text[len(old) :]] = now.pop(text)


def _collected(now: dict[str, _Trace], deleted: set[str], commands: tuple[str, ...]) -> Effects:
    created, modified, renamed, folders = set[str](), set[str](), set[tuple[str, str]](), set[str]()
    for path, trace in now.items():
        if trace.origin is None:
            (folders if trace.folder else created).add(path)
        elif trace.origin != path:
            renamed.add((trace.origin, path))
        elif trace.changed:
            modified.add(path)
    replaced = created & deleted
    return Effects(
        created=tuple(sorted(created - replaced)),
        modified=tuple(sorted(modified | replaced)),
        deleted=tuple(sorted(deleted - replaced)),
        renamed=tuple(sorted(renamed)),
        folders=tuple(sorted(folders)),
        commands=commands,
    )
