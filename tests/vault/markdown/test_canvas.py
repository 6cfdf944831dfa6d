"""Canvases: what their cards link to, and where that is written."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from obsidian_agent.vault.markdown.canvas import canvas_links, scan_canvas
from obsidian_agent.vault.markdown.json_document import json_text


def canvas(*nodes: dict[str, Any], **options: Any) -> bytes:
    return json.dumps({"nodes": list(nodes), "edges": []}, **options).encode()


class TestCards:
    def test_a_file_card_with_its_place(self) -> None:
        data = b'{\n "nodes": [\n  {"id":"1", "type" : "file","file":"a/\\u00dc\\/b.md","subpath":"#H"},\n  {"type":"group"}]}'
        (card,) = scan_canvas(data).files
        assert (card.node, card.file, card.subpath, card.line) == ("1", "a/Ü/b.md", "#H", 3)
        assert data[card.start : card.end] == b'"a/\\u00dc\\/b.md"'
        (link,) = canvas_links(data)
        assert (link.kind, link.target, link.subpath, link.form) == (
            "canvas",
            "a/Ü/b.md",
            "#H",
            "json",
        )
        assert data[link.target_start : link.target_end] == b"a/\\u00dc\\/b.md"

    def test_the_links_of_a_text_card_with_their_places(self) -> None:
        text = 'é "q" \\[[no]]\n[[Ü|x]]\t`[[no]]` [t](a%20b.md) 😀[[end]] #tag'
        for ascii_only in (True, False):
            data = canvas({"id": "t", "type": "text", "text": text}, ensure_ascii=ascii_only)
            (card,) = scan_canvas(data).texts
            assert card.text == text
            assert [link.target for link in card.links] == ["Ü", "a b.md", "end"]
            assert [
                json.loads(f'"{data[link.start : link.end].decode()}"') for link in card.links
            ] == [
                "[[Ü|x]]",
                "[t](a%20b.md)",
                "[[end]]",
            ]
            targets = [
                json.loads(f'"{data[link.target_start : link.target_end].decode()}"')
                for link in card.links
            ]
            assert targets == ["Ü", "a%20b.md", "end"]
            assert [tag.name for tag in card.note.tags] == ["tag"]

    def test_properties_mean_nothing_in_a_card(self) -> None:
        assert (
            canvas_links(canvas({"type": "text", "text": "---\na: '[[b]]'\n---\n"}))[0].kind
            == "wikilink"
        )

    def test_links_come_in_the_order_of_the_file(self) -> None:
        nodes = (
            {"type": "text", "text": "[[a]]"},
            {"type": "file", "file": "b.md"},
            {"type": "text", "text": "[[c]]"},
        )
        assert [link.target for link in canvas_links(canvas(*nodes))] == ["a", "b.md", "c"]

    @pytest.mark.parametrize(
        "data",
        [
            b"",
            b" \n",
            b"{}",
            b"[]",
            b'{"nodes": 1}',
            b'{"nodes": [1, {"type": 2}, {"type": "file"}, {"type": "file", "file": ""}]}',
            b'{"nodes":[]}',
        ],
    )
    def test_without_cards_there_are_no_links(self, data: bytes) -> None:
        assert canvas_links(data) == ()
        assert not scan_canvas(data).broken

    @pytest.mark.parametrize(
        "data",
        [b"{", b'{"nodes": [}', b"\xff\xfe", b'{"a": "b}', b"[" * 100_000, b'{"nodes": []} x'],
    )
    def test_what_is_no_json_is_broken(self, data: bytes) -> None:
        assert scan_canvas(data).broken
        assert canvas_links(data) == ()


_TEXTS = st.text(st.sampled_from('ab"\\\n\t/é日😀[]|#`\u2028 '), max_size=12)


@given(st.lists(_TEXTS, max_size=3), _TEXTS, st.booleans(), st.sampled_from([None, 1, "\t"]))
def test_another_file_in_its_place_changes_nothing_else(
    names: list[str], other: str, ascii_only: bool, indent: Any
) -> None:
    nodes = [{"type": "file", "file": name, "x": [1.5, {"y": name}]} for name in names]
    data = canvas(
        *nodes, {"type": "text", "text": other + " [[a]]"}, ensure_ascii=ascii_only, indent=indent
    )
    for card in scan_canvas(data).files:
        changed = data[: card.start] + f'"{json_text(other)}"'.encode() + data[card.end :]
        expected = json.loads(data)
        index = next(
            index for index, node in enumerate(expected["nodes"]) if node.get("file") == card.file
        )
        found = json.loads(changed)
        assert found["nodes"][index]["file"] in (other, card.file)
        assert sum(
            one != two for one, two in zip(found["nodes"], expected["nodes"], strict=True)
        ) == (other != card.file)


@given(_TEXTS, _TEXTS, st.booleans())
def test_places_in_a_text_card_are_those_of_its_text(
    before: str, behind: str, ascii_only: bool
) -> None:
    text = f"{before} [[T\u00e9 \\\\|x]]{behind}"
    data = canvas({"type": "text", "text": text}, ensure_ascii=ascii_only)
    (card,) = scan_canvas(data).texts
    encoded = card.text.encode()
    for inner, link in zip(card.note.links, card.links, strict=True):
        for start, end, first, last in (
            (inner.start, inner.end, link.start, link.end),
            (inner.target_start, inner.target_end, link.target_start, link.target_end),
        ):
            assert json.loads(f'"{data[first:last].decode()}"') == encoded[start:end].decode()
