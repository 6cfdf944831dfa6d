"""Text of links: new ones in the form of the vault's settings, and new targets for existing ones.

An existing link keeps its form: a bare name stays one while no other file has it, a path from the
root stays one, and so do relative paths, partial paths, and a present or omitted extension. If that
form cannot name the file, longer forms are tried.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, Literal, assert_never
from urllib.parse import quote

from msgspec import Struct

from obsidian_agent.vault.filesystem.store import VaultStore
from obsidian_agent.vault.links.resolve import LinkResolver, link_key
from obsidian_agent.vault.markdown.inline import is_external
from obsidian_agent.vault.markdown.json_document import json_text
from obsidian_agent.vault.markdown.model import Link
from obsidian_agent.vault.paths.path import VaultPath
from obsidian_agent.vault.text import Edit

LinkFormat = Literal["shortest", "relative", "absolute"]

Form = Literal["name", "absolute", "rooted", "relative", "tail"]
"""`Note`; `Folder/Note`; `/Folder/Note`; `../Folder/Note`; `Sub/Note` for `Folder/Sub/Note`."""

_ENCODED_LETTER: Final = re.compile(rb"%[89A-Fa-f][0-9A-Fa-f]")
_SAFE_IN_URL: Final = "/!$&'()*+,;=:@~"
_NOT_IN_WIKILINK: Final = re.compile(r"[|\n\r]|\[\[|\]\]")
_NOT_IN_ANGLES: Final = re.compile(r"[<>\\\n\r]")
_LABELLED: Final = frozenset(("wikilink", "property", "markdown"))
_PLAIN: Final = re.compile(rb"[\w \-./,+\x80-\xff]*")


class LinkStyle(Struct, frozen=True):
    """Obsidian's settings `newLinkFormat` and `useMarkdownLinks`, with Obsidian's defaults."""

    format: LinkFormat = "shortest"
    markdown: bool = False


DEFAULT_STYLE: Final = LinkStyle()


def link_style(store: VaultStore) -> LinkStyle:
    """Return the settings of a vault. Missing and unknown values have their defaults."""
    settings = store.obsidian_config("app")
    if not isinstance(settings, dict):
        return DEFAULT_STYLE
    format_ = settings.get("newLinkFormat")
    markdown = settings.get("useMarkdownLinks") is True
    return LinkStyle(format_ if format_ in ("relative", "absolute") else "shortest", markdown)


def link_target(
    resolver: LinkResolver, target: VaultPath, source: VaultPath, style: LinkStyle = DEFAULT_STYLE
) -> str:
    """Return the text with which a new link in `source` means `target`.

    It has the form of the style, or the next longer form that means exactly this file. A wikilink
    omits `.md`; a Markdown link has it, and `%20` for blanks. The resolver must know `target`.
    """
    for text in _forms(resolver, target, source, style):
        if resolver.resolve(text, source) == target:
            return markdown_encoded(text) if style.markdown else text
    return markdown_encoded(target.text) if style.markdown else target.text


def markdown_encoded(text: str) -> str:
    """Encode a path as the destination of a Markdown link: blanks, as Obsidian does, and `%`."""
    return text.replace("%", "%25").replace(" ", "%20")


def _forms(
    resolver: LinkResolver, target: VaultPath, source: VaultPath, style: LinkStyle
) -> Iterator[str]:
    short = target.is_note and not style.markdown
    ending = len(target.suffix) if short else 0
    path = target.text[: len(target.text) - ending]
    if style.format == "shortest" and len(resolver.candidates(target.name)) < 2:
        name = target.name[: len(target.name) - ending]
        if not short or len(resolver.candidates(name)) < 2:
            yield name
    elif style.format == "relative":
        relative = relative_path(path, source)
        yield relative
        if not relative.startswith("../"):
            yield f"./{relative}"
    yield path
    yield target.text
    yield f"/{path}"
    yield f"/{target.text}"


class Shape(Struct, frozen=True):
    """The form of an existing target."""

    form: Form
    extension: bool
    """True if the extension is written."""
    dotted: bool = False
    """True if a relative path starts with a dot."""
    depth: int = 1
    """Number of components of a tail; 0 for a relative path that starts with `./`."""


class Spelling(Struct, frozen=True):
    """A possible text of a target."""

    text: str
    unique: bool = False
    """True if the text may only be used while no other file matches it."""


def shape_of(target: str, file: VaultPath, source: VaultPath, style: LinkStyle) -> Shape:
    """Return the form of a target that means `file` in `source`.

    If the text could have two forms, the vault's setting decides.
    """
    key = link_key(target)
    extension = key.rstrip("/").rpartition("/")[2] == link_key(file.name)
    if target.startswith("/"):
        return Shape("rooted", extension)
    if target.startswith(("./", "../")) or target in (".", ".."):
        return Shape(
            "relative",
            extension,
            dotted=target.startswith("."),
            depth=0 if target.startswith("./") else 1,
        )
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


def spellings(
    shape: Shape, file: VaultPath, source: VaultPath, style: LinkStyle
) -> Iterator[Spelling]:
    """Yield possible targets for `file` in `source`, those of the given form first.

    The caller must check that a target resolves to the file.
    """
    endings = (True,) if shape.extension or not file.is_note else (False, True)
    for extension in endings:
        path = file.text if extension else _without_ending(file.text, file)
        yield from _same_form(shape, path, source)
    for extension in endings:
        path = file.text if extension else _without_ending(file.text, file)
        if style.format == "relative":
            yield from _relative(path, source, dotted=False)
        yield Spelling(path)
        yield Spelling(f"/{path}")
        yield from _relative(path, source, dotted=False)
        yield Spelling(path.rpartition("/")[2])


def _same_form(shape: Shape, path: str, source: VaultPath) -> Iterator[Spelling]:
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
    """Return a path relative to the folder of a file, without a leading `./`."""
    base = list(source.parent.parts)
    parts = path.split("/")
    while base and len(parts) > 1 and base[0] == parts[0]:
        del base[0], parts[0]
    return "/".join([*(".." for _ in base), *parts])


def _without_ending(path: str, file: VaultPath) -> str:
    return path[: len(path) - len(file.suffix)] if file.is_note else path


def is_plain(text: bytes) -> bool:
    """Return True if a text has no character with a meaning inside a link.

    Exchanging such texts cannot change the structure of the note.
    """
    return _PLAIN.fullmatch(text) is not None


def target_edit(data: bytes, link: Link, target: str, *, canvas: bool) -> Edit[bytes] | None:
    """Return the edit that changes a link's target, or None if such a link cannot hold it."""
    written = _target(link, target, data[link.target_start : link.target_end])
    if written is None:
        return None
    return Edit(link.target_start, link.target_end, _in_file(written, link, canvas=canvas))


def display_edit(
    data: bytes, link: Link, old: VaultPath, new: VaultPath, *, canvas: bool
) -> Edit[bytes] | None:
    """Return the edit that updates a display text equal to the file's old name.

    Returns None for any other display text, and for embeds.
    """
    if link.display is None or link.kind not in _LABELLED:
        return None
    label = link.display.strip()
    name = {old.name: new.name, old.stem: new.stem}.get(label)
    if name is None or name == label:
        return None
    region = _display_region(data, link)
    raw = label.encode()
    start = data.find(raw, *region) if region else -1
    if region is None or start < 0 or data[region[0] : region[1]].strip() != raw:
        return None
    return Edit(start, start + len(raw), _in_file(_quoted(link, name), link, canvas=canvas))


def _display_region(data: bytes, link: Link) -> tuple[int, int] | None:
    if link.is_markdown:
        start = data.find(b"[", link.start, link.target_start) + 1
        return start, data.rfind(b"](", start, link.target_start)
    pipe = data.find(b"|", link.target_end, link.end)
    end = data.rfind(b"]]", link.target_end, link.end)
    return (pipe + 1, end) if 0 <= pipe < end else None


def _in_file(text: str, link: Link, *, canvas: bool) -> bytes:
    return (json_text(text) if canvas or link.form == "json" else text).encode()


def _target(link: Link, target: str, old: bytes) -> str | None:
    """Return the text of a target, or None if it would be truncated or read differently."""
    if link.kind == "canvas":
        return target
    if "#" in target:
        return None
    if link.is_markdown or link.kind == "definition":
        return _destination(target, old, angle=link.form == "angle")
    if link.kind == "html":
        return _attribute(target, old)
    if link.kind == "uri":
        return quote(target, safe="/" if b"/" in old else "")
    if _NOT_IN_WIKILINK.search(target) or target.endswith(("\\", "]")):
        return None
    return _quoted(link, target)


def _quoted(link: Link, text: str) -> str:
    match link.form:
        case "single-quoted":
            return text.replace("'", "''")
        case "double-quoted":
            return text.replace("\\", "\\\\").replace('"', '\\"')
        case _:
            return text


def _destination(target: str, old: bytes, *, angle: bool) -> str | None:
    """Return a path as a Markdown destination, with letters encoded only if the old one had some.

    Otherwise only blanks and characters with a meaning are encoded, as Obsidian does.
    """
    if angle:
        return None if _NOT_IN_ANGLES.search(target) else target.replace("%", "%25")
    if _ENCODED_LETTER.search(old):
        written = quote(target, safe=_SAFE_IN_URL)
    else:
        written = (
            markdown_encoded(target).replace("\\", "%5C").replace("<", "%3C").replace(">", "%3E")
        )
    if not _balanced(written):
        written = written.replace("(", "%28").replace(")", "%29")
    return written.replace(":", "%3A") if is_external(written.encode()) else written


def _attribute(target: str, old: bytes) -> str | None:
    """Return a path as the value of an HTML attribute, safe in any quotes.

    Blanks are encoded unless the old value has unencoded ones.
    """
    written = _destination(target, old, angle=False)
    if written is None:
        return None
    written = re.sub("[\"'`=]", lambda char: f"%{ord(char[0]):02X}", written).replace("&", "&amp;")
    return written.replace("%20", " ") if b" " in old else written


def _balanced(text: str) -> bool:
    depth = 0
    for character in text:
        depth += {"(": 1, ")": -1}.get(character, 0)
        if depth < 0:
            return False
    return depth == 0
