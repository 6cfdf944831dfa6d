"""The text of a new link, in the form that the vault's settings ask for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal

from obsidian_agent.vault.filesystem.store import VaultStore
from obsidian_agent.vault.links.resolve import LinkResolver
from obsidian_agent.vault.paths.path import VaultPath

LinkFormat = Literal["shortest", "relative", "absolute"]


@dataclass(frozen=True, slots=True)
class LinkStyle:
    """The settings `newLinkFormat` and `useMarkdownLinks`; the defaults are Obsidian's."""

    format: LinkFormat = "shortest"
    markdown: bool = False


DEFAULT_STYLE: Final = LinkStyle()


def link_style(store: VaultStore) -> LinkStyle:
    """The settings of a vault; what is missing or unknown there has its default."""
    settings = store.obsidian_config("app")
    if not isinstance(settings, dict):
        return DEFAULT_STYLE
    format_ = settings.get("newLinkFormat")
    markdown = settings.get("useMarkdownLinks") is True
    return LinkStyle(format_ if format_ in ("relative", "absolute") else "shortest", markdown)


def link_target(resolver: LinkResolver, target: VaultPath, source: VaultPath, style: LinkStyle = DEFAULT_STYLE) -> str:
    """What a link in `source` says to mean `target`: without `.md` in a wikilink, with it and with `%20` for blanks in a Markdown link.

    The form that the style asks for, or the next longer one that means exactly this file. The resolver must know `target`.
    """
    for text in _forms(resolver, target, source, style):
        if resolver.resolve(text, source) == target:
            return markdown_encoded(text) if style.markdown else text
    return markdown_encoded(target.text) if style.markdown else target.text


def markdown_encoded(text: str) -> str:
    """A path as the destination of a Markdown link: Obsidian encodes blanks; a percent sign that would be decoded is encoded too."""
    return text.replace("%", "%25").replace(" ", "%20") if "%" in text else text.replace(" ", "%20")


def _forms(resolver: LinkResolver, target: VaultPath, source: VaultPath, style: LinkStyle) -> Iterator[str]:
    short = target.is_note and not style.markdown
    ending = len(target.suffix) if short else 0
    path = target.text[: len(target.text) - ending]
    if style.format == "shortest" and not resolver.ambiguous(target.name):
        name = target.name[: len(target.name) - ending]
        if not short or not resolver.ambiguous(name):
            yield name
    elif style.format == "relative":
        relative = _relative(path, source)
        yield relative
        if not relative.startswith("../"):
            yield f"./{relative}"
    yield path
    yield target.text
    yield f"/{path}"
    yield f"/{target.text}"


def _relative(path: str, source: VaultPath) -> str:
    here = list(source.parent.parts)
    there = path.split("/")
    while here and len(there) > 1 and here[0] == there[0]:
        del here[0], there[0]
    return "/".join([*(".." for _ in here), *there])
