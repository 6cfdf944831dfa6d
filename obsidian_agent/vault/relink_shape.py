"""How a link names its file, and how it would name another one in the same way.

A link keeps its own form: a bare name stays one while no other file has it, a path from the root stays one, and so do relative paths, paths
from a folder in the middle, and an extension that is there or not. Where the own form cannot name the file, longer ones follow.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, assert_never

from obsidian_agent.vault.linktext import LinkStyle
from obsidian_agent.vault.paths import VaultPath
from obsidian_agent.vault.resolve import link_key

Form = Literal["name", "absolute", "rooted", "relative", "tail"]
"""`Note`; `Folder/Note`; `/Folder/Note`; `../Folder/Note`; the end of a path, as `Sub/Note` for `Folder/Sub/Note`."""


@dataclass(frozen=True, slots=True)
class Shape:
    """The form of a target. `dotted`: a relative path in the own folder begins with `./`; `depth`: the components of a tail."""

    form: Form
    extension: bool
    dotted: bool = False
    depth: int = 1


@dataclass(frozen=True, slots=True)
class Spelling:
    """A way to write a target. `unique`: it is meant only if no other file could be meant."""

    text: str
    unique: bool = False


def shape_of(target: str, file: VaultPath, source: VaultPath, style: LinkStyle) -> Shape:
    """The form of a target that means `file` in `source`. Where a text could be of two forms, the vault's setting decides."""
    key = link_key(target)
    extension = key.rstrip("/").rpartition("/")[2] == link_key(file.name)
    if target.startswith("/"):
        return Shape("rooted", extension)
    if target.startswith(("./", "../")) or target in (".", ".."):
        return Shape("relative", extension, dotted=target.startswith("."), depth=0 if target.startswith("./") else 1)
    path = file.text if extension else _without_ending(file.text, file)
    if style.format == "relative" and key == link_key(relative_path(path, source)):
        return Shape("relative", extension)
    if style.format == "absolute" and key == link_key(path):
        return Shape("absolute", extension)
    if "/" not in key.strip("/"):
        return Shape("name", extension)
    if key == link_key(path):
        return Shape("absolute", extension)
    return Shape("tail", extension, depth=key.strip("/").count("/") + 1)


def spellings(shape: Shape, file: VaultPath, source: VaultPath, style: LinkStyle) -> Iterator[Spelling]:
    """Ways to name `file` in `source`, the one of the given form first. Whether they mean the file is for the caller to see."""
    endings = (True,) if shape.extension or not file.is_note else (False, True)
    for extension in endings:
        path = file.text if extension else _without_ending(file.text, file)
        yield from _own(shape, path, source)
    for extension in endings:
        path = file.text if extension else _without_ending(file.text, file)
        if style.format == "relative":
            yield from _relative(path, source, dotted=False)
        yield Spelling(path)
        yield Spelling(f"/{path}")
        yield from _relative(path, source, dotted=False)
        yield Spelling(path.rpartition("/")[2])


def _own(shape: Shape, path: str, source: VaultPath) -> Iterator[Spelling]:
    match shape.form:
        case "name":
            yield Spelling(path.rpartition("/")[2], unique=True)
        case "absolute":
            yield Spelling(path)
        case "rooted":
            yield Spelling(f"/{path}")
        case "relative":
            yield from _relative(path, source, dotted=shape.dotted and shape.depth == 0)
        case "tail":
            parts = path.split("/")
            yield Spelling("/".join(parts[-shape.depth :]), unique=True)
        case _:
            assert_never(shape.form)


def _relative(path: str, source: VaultPath, *, dotted: bool) -> Iterator[Spelling]:
    relative = relative_path(path, source)
    climbing = relative.startswith("../")
    if not dotted or climbing:
        yield Spelling(relative, unique=not climbing)
    if not climbing:
        yield Spelling(f"./{relative}")


def relative_path(path: str, source: VaultPath) -> str:
    """A path as seen from the folder of a file, without `./` for what is in that folder or below."""
    here = list(source.parent.parts)
    there = path.split("/")
    while here and len(there) > 1 and here[0] == there[0]:
        del here[0], there[0]
    return "/".join([*(".." for _ in here), *there])


def _without_ending(path: str, file: VaultPath) -> str:
    return path[: len(path) - len(file.suffix)] if file.is_note else path
