"""The text of new links."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from obsidian_agent.vault.links.link_text import DEFAULT_STYLE, LinkFormat, LinkStyle, link_style, link_target
from obsidian_agent.vault.links.resolve import LinkResolver
from obsidian_agent.vault.paths import path as paths
from obsidian_agent.vault.paths.path import ROOT, VaultPath
from support import MakeVault

FILES = ["Note.md", "a/Note.md", "a/Only Here.md", "a/b/pic.png", "b/pic.png", "b/x.md", "x", "100%.md", "c/50%20.md"]


def path(text: str) -> VaultPath:
    folder = ROOT
    for name in text.split("/"):
        folder = paths.from_disk(folder, name)
    return folder


@pytest.mark.parametrize(
    ("style", "target", "source", "text"),
    [
        (LinkStyle(), "a/Only Here.md", "src.md", "Only Here"),
        (LinkStyle(), "Note.md", "a/src.md", "Note"),
        (LinkStyle(), "a/Note.md", "a/src.md", "a/Note"),
        (LinkStyle(), "b/pic.png", "src.md", "b/pic.png"),
        (LinkStyle(), "b/x.md", "src.md", "b/x.md"),
        (LinkStyle("absolute"), "a/Only Here.md", "a/src.md", "a/Only Here"),
        (LinkStyle("relative"), "a/Only Here.md", "a/src.md", "Only Here"),
        (LinkStyle("relative"), "a/Only Here.md", "b/c/src.md", "../../a/Only Here"),
        (LinkStyle("relative"), "a/b/pic.png", "a/src.md", "./b/pic.png"),
        (LinkStyle("relative"), "a/Note.md", "a/src.md", "./Note"),
        (LinkStyle("shortest", markdown=True), "a/Only Here.md", "src.md", "Only%20Here.md"),
        (LinkStyle("relative", markdown=True), "a/Only Here.md", "b/src.md", "../a/Only%20Here.md"),
        (LinkStyle("absolute", markdown=True), "100%.md", "src.md", "100%25.md"),
        (LinkStyle(markdown=True), "c/50%20.md", "src.md", "50%2520.md"),
    ],
)
def test_each_form(style: LinkStyle, target: str, source: str, text: str) -> None:
    resolver = LinkResolver(map(path, FILES))
    assert link_target(resolver, path(target), path(source), style) == text


_FOLDERS = st.sampled_from(["", "a/", "b/", "a/b/", "A/"])
_NAMES = st.sampled_from(["n.md", "N.md", "n", "n.md.md", "x y.md", "p.png", "%20.md"])
_FILES = st.lists(st.builds(lambda folder, name: folder + name, _FOLDERS, _NAMES), min_size=1, max_size=10, unique_by=str.lower)


@given(_FILES, _FOLDERS, st.sampled_from(["shortest", "relative", "absolute"]), st.booleans())
def test_it_means_the_file_whatever_the_form(files: list[str], folder: str, form: LinkFormat, markdown: bool) -> None:
    resolver = LinkResolver(map(path, files))
    source = path(folder + "src.md")
    for file in files:
        text = link_target(resolver, path(file), source, LinkStyle(form, markdown))
        assert resolver.resolve(text, source, markdown) == path(file)
        assert " " not in text or not markdown


@pytest.mark.parametrize(
    ("settings", "style"),
    [
        (None, DEFAULT_STYLE),
        ("{}", DEFAULT_STYLE),
        ("no json", DEFAULT_STYLE),
        ("[]", DEFAULT_STYLE),
        (json.dumps({"newLinkFormat": "relative", "useMarkdownLinks": True}), LinkStyle("relative", True)),
        (json.dumps({"newLinkFormat": "absolute", "useMarkdownLinks": "yes"}), LinkStyle("absolute", False)),
        (json.dumps({"newLinkFormat": "other"}), DEFAULT_STYLE),
    ],
)
def test_the_settings_of_a_vault(make_vault: MakeVault, settings: str | None, style: LinkStyle) -> None:
    store = make_vault({"a.md": ""} if settings is None else {".obsidian/app.json": settings})
    assert link_style(store) == style
