"""Obsidian's own data about notes, read in place from the shared folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from obsidian_agent.vault.filesystem.store import VaultStore
from obsidian_agent.vault.links.graph import link_graph, unresolved_name
from obsidian_agent.vault.links.resolve import LinkResolver
from obsidian_agent.vault.markdown.model import Link, ScannedNote
from obsidian_agent.vault.markdown.note import scan
from obsidian_agent.vault.views.disk import DiskView
from previews import vault_path


def _utf16(data: bytes, offset: int) -> int:
    """Obsidian counts UTF-16 units."""
    return len(data[:offset].decode().encode("utf-16-le")) // 2


def _as_obsidian(data: bytes, link: Link) -> dict[str, Any]:
    return {
        "link": link.target + link.subpath,
        "original": data[link.start : link.end].decode(),
        "text": link.display_text,
        "start": _utf16(data, link.start),
        "end": _utf16(data, link.end),
        "line": link.line - 1,
    }


def _compare(note: dict[str, Any], data: bytes, found: ScannedNote) -> None:
    body = [link for link in found.links if link.kind != "property"]
    embeds = [link for link in body if link.kind in ("embed", "markdown-embed")]
    assert [_as_obsidian(data, link) for link in body if link not in embeds] == note["links"]
    assert [_as_obsidian(data, link) for link in embeds] == note["embeds"]
    properties = [link for link in found.links if link.kind == "property"]
    assert [
        {
            "link": link.target + link.subpath,
            "original": data[link.start + 1 : link.end - 1].decode(),
            "text": link.display_text,
            "key": link.key,
        }
        for link in properties
    ] == note["frontmatterLinks"]
    assert [f"#{tag.name}" for tag in found.tags] == note["tags"]
    assert [f"#{tag.name}" for tag in found.tags if tag.in_properties] == (
        note["frontmatterTags"] or []
    )
    for tag in found.tags:
        assert data[tag.start : tag.end].decode().lstrip("#") == tag.name
    assert [
        {"text": each.text, "level": each.level, "line": each.line - 1} for each in found.headings
    ] == note["headings"]
    assert [(task.line - 1, task.status) for task in found.tasks] == [
        (item["line"], item["task"]) for item in note["listItems"] if item["task"] is not None
    ]
    assert [block.name for block in found.blocks] == note["blocks"]
    assert dict(found.properties) == (note["frontmatter"] or {})


def test_89_notes_are_read_as_obsidian_read_them(shared: Path) -> None:
    notes = json.loads((shared / "data/truth/obsidian-parse-89-notes.json").read_text("utf-8"))
    assert len(notes) == 89
    for note in notes.values():
        data = note["contents"].encode()
        _compare(note, data, scan(data))


def test_a_vault_links_as_obsidian_says(shared: Path) -> None:
    for folder, answers in (
        ("truth/tasks-demo-vault", "truth/tasks-demo.json"),
        ("vaults/kepano", "truth/kepano.json"),
    ):
        with VaultStore.open(shared / "data" / folder) as store:
            view = DiskView(store)
            graph = link_graph(view.index.files(), view.read)
        found = {
            note.text: {
                "outgoing": [path.text for path in links.outgoing],
                "unresolved": list(links.unresolved),
                "backlinks": [path.text for path in links.backlinks],
            }
            for note in graph.sources
            if note.is_note
            for links in [graph.of(note)]
        }
        assert found == json.loads((shared / "data" / answers).read_text("utf-8"))


def test_small_cases_observed_in_the_app(shared: Path) -> None:
    cases = json.loads((shared / "data/truth/observed-1.13.7.json").read_text("utf-8"))["cases"]
    assert len(cases) == 21
    for case in cases:
        resolver = LinkResolver(map(vault_path, case["files"]))
        source = vault_path(case["from"])
        links = scan(case["text"].encode()).links
        if "links" in case:
            assert [link.target for link in links] == case["links"], case
        if "unresolved" in case:
            assert [
                unresolved_name(link.target)
                for link in links
                if not resolver.resolve(link.target, source)
            ] == [case["unresolved"]]
        if "to" in case:
            (link,) = links
            target = resolver.resolve(link.target, source)
            assert (target.text if target else None) == case["to"], case


@pytest.mark.parametrize("vault", ["dashboardpp", "kepano", "tasks-demo", "voidashi"])
def test_a_scan_of_real_notes_quotes_them_exactly(shared: Path, vault: str) -> None:
    for file in sorted((shared / "data/vaults" / vault).rglob("*.md")):
        data = file.read_bytes()
        found = scan(data, str(file))
        for link in found.links:
            raw = data[link.start : link.end].decode()
            assert raw[0] in "[!\"'", raw
            assert raw[-1] in "])\"'", raw
            written = data[link.target_start : link.target_end].decode()
            if not link.is_markdown:
                assert written == link.target
            assert data.count(b"\n", 0, link.start) + 1 == link.line
        for tag in found.tags:
            assert data[tag.start : tag.end].decode().lstrip("#") == tag.name
        for heading in found.headings:
            assert heading.text in data[heading.start : heading.end].decode()
