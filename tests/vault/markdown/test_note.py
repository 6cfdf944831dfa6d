"""The parts of a note that a scan reports, and those that are hidden."""

from __future__ import annotations

import pytest

from obsidian_agent.errors import VaultError
from obsidian_agent.vault.markdown.model import Link
from obsidian_agent.vault.markdown.note import scan, scan_lossy


def _links(text: str) -> list[Link]:
    return list(scan(text.encode()).links)


def _targets(text: str) -> list[str]:
    return [link.target + link.subpath for link in _links(text)]


def _only(text: str) -> Link:
    (link,) = _links(text)
    return link


class TestWikilinks:
    @pytest.mark.parametrize(
        ("text", "target", "subpath", "display"),
        [
            ("[[a]]", "a", "", None),
            ("[[ a b ]]", "a b", "", None),
            ("[[a#H#I|t]]", "a", "#H#I", "t"),
            ("[[#^id]]", "", "#^id", None),
            ("[[a.md|]]", "a.md", "", ""),
            ("[[|x]]", "|x", "", None),
            ("[[a||b]]", "a", "", "|b"),
            ("[[Sq]uare]]", "Sq]uare", "", None),
            ("[[a [[b]] c]]", "b", "", None),
            ("[[https://example.com]]", "https://example.com", "", None),
            ("[[Über/日本]]", "Über/日本", "", None),
        ],
    )
    def test_their_parts(self, text: str, target: str, subpath: str, display: str | None) -> None:
        link = _only(text)
        assert (link.kind, link.target, link.subpath, link.display) == (
            "wikilink",
            target,
            subpath,
            display,
        )

    @pytest.mark.parametrize(
        "text", ["[[]]", "[[ ]]", "[[a", "[[a\nb]]", "\\[[a]]", "[[[[", "[[a [b [[c d]"]
    )
    def test_what_is_none(self, text: str) -> None:
        assert _targets(text) == []

    def test_an_embed_begins_at_its_mark_unless_that_is_escaped(self) -> None:
        assert [(link.kind, link.start) for link in _links("![[a]] \\![[b]] !\\[[c]]")] == [
            ("embed", 0),
            ("wikilink", 9),
        ]

    def test_offsets_are_bytes_and_lines_count_from_1(self) -> None:
        data = "é\n日 [[ Ü#ß|ö]]\n".encode()
        (link,) = scan(data).links
        assert data[link.start : link.end].decode() == "[[ Ü#ß|ö]]"
        assert data[link.target_start : link.target_end].decode() == "Ü"
        assert link.line == 2

    def test_a_pipe_is_written_with_a_backslash_in_a_table(self) -> None:
        data = b"| [[a b\\|t]] | [[c|d]] |\n|---|---|---|\n| `x | [[e]]` | [[f]] |\n"
        links = scan(data).links
        assert [(link.target, link.display, link.form) for link in links] == [
            ("a b", "t", "table"),
            ("e", None, "plain"),
            ("f", None, "plain"),
        ]
        assert data[links[0].target_start : links[0].target_end] == b"a b"

    def test_without_a_row_of_dashes_it_is_no_table(self) -> None:
        assert _targets("| [[a|b]] |\ntext\n") == ["a"]


class TestMarkdownLinks:
    @pytest.mark.parametrize(
        ("text", "target", "subpath", "written", "form"),
        [
            ("[t](a.md)", "a.md", "", "a.md", "plain"),
            ("[t](Sub/My%20Note.md#H%20I)", "Sub/My Note.md", "#H I", "Sub/My%20Note.md", "plain"),
            ("[t](<My Note.md>)", "My Note.md", "", "My Note.md", "angle"),
            ('[t](a(b).md "title")', "a(b).md", "", "a(b).md", "plain"),
            ("[t](a\\(b.md)", "a(b.md", "", "a\\(b.md", "plain"),
            ("[t](#H)", "", "#H", "", "plain"),
            ("[a [b] `]` c](d.md)", "d.md", "", "d.md", "plain"),
            ("[t](a%E4.md)", "a%E4.md", "", "a%E4.md", "plain"),
            ("[t](a.md%23h)", "a.md", "#h", "a.md", "plain"),
            ("[a\nb](c.md)", "c.md", "", "c.md", "plain"),
        ],
    )
    def test_their_parts(
        self, text: str, target: str, subpath: str, written: str, form: str
    ) -> None:
        link = _only(text)
        data = text.encode()
        assert (link.kind, link.target, link.subpath, link.form) == (
            "markdown",
            target,
            subpath,
            form,
        )
        assert data[link.target_start : link.target_end].decode() == written
        assert data[link.start : link.end] == data

    @pytest.mark.parametrize(
        "text",
        [
            "[t](My Note.md)",
            "[t]()",
            "[t](https://a.b)",
            "[t](mailto:a@b)",
            "[t](//host/x)",
            "[t]",
            "[t] (a.md)",
            "\\[t](a.md)",
            "[t](a.md",
        ],
    )
    def test_what_is_no_link_to_a_file(self, text: str) -> None:
        assert _targets(text) == []

    def test_a_picture_in_the_text_of_a_link(self) -> None:
        found = [(link.kind, link.target, link.display) for link in _links("[![i](j.png) x](k.md)")]
        assert found == [("markdown", "k.md", "![i](j.png) x"), ("markdown-embed", "j.png", "i")]


class TestHidden:
    @pytest.mark.parametrize(
        "text",
        [
            "`[[x]]`",
            "``a ` [[x]] ``",
            "`a\n[[x]]`",
            "[a `b](x)\nc`",
            "$[[x]]$",
            "$$[[x]]$$",
            "<!-- [[x]] -->",
            "a <!-- [[x]] --> b",
            '<a title="[[x]]">',
            "<https://a.b/[[x]]>",
            "```\n[[x]]\n```",
            "~~~~ info\n[[x]]\n~~~\n~~~~",
            "```\n[[x]]",
            "   ```\n[[x]]",
            "- a\n  ```\n  [[x]]\n  ```",
            "- ```\n  [[x]]\n  ```",
            "> ```\n> [[x]]\n> ```",
            "    [[x]]",
            "\t[[x]]",
            "a\n\n    [[x]]",
            "# h\n    [[x]]",
            "-     [[x]]",
            "- a\n\n      [[x]]",
            ">     [[x]]",
            "<div>\n[[x]]\n</div>",
            "- <div>[[x]]",
            "<span>\n[[x]]",
            "<script>\n\n[[x]]\n</script>",
            "<!--\n\n[[x]]\n\n-->",
            "$$\n[[x]]\n$$",
            "$$\n[[x]]",
            "%%\n[[x]]\n%%",
            "- %% a\n[[x]]\n%%",
        ],
    )
    def test_links_in_code_mathematics_and_comments(self, text: str) -> None:
        assert _targets(text) == []
        assert _targets(text.replace("\n", "\r\n")) == []

    @pytest.mark.parametrize(
        "text",
        [
            "` [[x]]",
            "``[[x]]`",
            "`a\n\n[[x]]`",
            "\\`[[x]]`",
            "$5 [[x]] $6",
            "$ [[x]] $",
            "a $$ b\n\n[[x]] $$",
            "<!- [[x]] -->",
            "< a [[x]] >",
            "a\n    [[x]]",
            "- a\n    [[x]]",
            "- a\n\n  [[x]]",
            "1. a\n\n\t- [[x]]",
            "```\n```\n[[x]]",
            "```\na\n```\n[[x]]",
            "> ```\n[[x]]",
            "- ```\n[[x]]",
            "``` a`b\n[[x]]",
            "<div>\n\n[[x]]",
            "a\n<span>\n[[x]]",
            "%% [[x]] %%",
            "%%\n[[x]]",
            "a %%\n[[x]]\n%%",
            "%%\na\n%%\n[[x]]",
            "<br>[[x]]",
            "> a\n>\n> [[x]]",
        ],
    )
    def test_links_that_only_look_hidden(self, text: str) -> None:
        assert _targets(text) == ["x"]
        assert _targets(text.replace("\n", "\r\n")) == ["x"]


class TestTags:
    @pytest.mark.parametrize(
        ("text", "tags"),
        [
            ("#a #b/c, (#d) >#e", ["a", "b/c", "d", "e"]),
            ("#1984 #y1984 #1/2 #-", ["y1984"]),
            ("x#a &#b; [[a#b]] [t](#c) https://a.b/#d", []),
            ("[[a]]#t \\[#u `#v` $#w$ <b id=#x>", ["t", "u"]),
            ("# h\n## #a\n##b", ["a"]),
            ("#日本 #café #🎉 #a’s #end.", ["日本", "café", "🎉", "a", "end"]),
            ("\u00a0#a\n#b", ["a", "b"]),
            ("#a/ #a//b", ["a", "a//b"]),
            ("```\n#a\n```\n<!-- #b -->\n%% #c %%\n%%\n#d [[x]]\n%%", ["c", "d"]),
            ("[see #a](b.md) - [ ] #c", ["a", "c"]),
            ("[a]: #a\n[b]: x.md\n [c d]: #c 'C'\r\n\n[e]:#e\n# H\n[f]: #f", []),
            ("text\n[a]: #a\n[b]: #b", ["a", "b"]),
            ("- [a]: #a\n\n[b]: #b and more\n\n[^c]: #c", ["a", "b", "c"]),
            ("---\nx: 1\n---\n[a]: #a\n```\n```\n#b", ["b"]),
        ],
    )
    def test_in_text(self, text: str, tags: list[str]) -> None:
        data = text.encode()
        found = scan(data).tags
        assert [tag.name for tag in found] == tags
        assert [data[tag.start : tag.end].decode() for tag in found] == [
            f"#{name}" for name in tags
        ]
        assert [tag.line for tag in found] == [data.count(b"\n", 0, tag.start) + 1 for tag in found]

    @pytest.mark.parametrize(
        ("block", "tags"),
        [
            ("tags: [a, b/c]", ["a", "b/c"]),
            ("tags:\n  - a\n  - '#b'", ["a", "b"]),
            ("tags: a", ["a"]),
            ("tags: a, b", []),
            ("tags: a b", []),
            ("tag: a\nTag: b", []),
            ("tags:", []),
            ("x: 1\ntags: [aa, a]\ny: a", ["aa", "a"]),
            ('{"tags": ["a"]}', ["a"]),
        ],
    )
    def test_in_properties(self, block: str, tags: list[str]) -> None:
        data = f"---\n{block}\n---\n".encode()
        found = scan(data).tags
        assert [tag.name for tag in found] == tags
        assert [data[tag.start : tag.end].decode() for tag in found] == tags
        assert all(tag.in_properties for tag in found)
        assert [tag.line for tag in found] == [data.count(b"\n", 0, tag.start) + 1 for tag in found]


class TestProperties:
    def test_links_are_quoted_strings_that_are_one_wikilink(self) -> None:
        data = (
            b"---\n"
            b'up: "[[a|b]]"\n'
            b"down:\n"
            b"  - '[[c#d]]'\n"
            b"  - x [[e]]\n"
            b"  - [[f]]\n"
            b'flow: ["[[g]]", "y [[h]]"]\n'
            b'nested: {in: "[[i]]"}\n'
            b'text: |\n  "[[j]]"\n'
            b'# "[[k]]"\n'
            b"quote: '[[l''s]]'\n"
            b"---\n[[m]]\n"
        )
        links = scan(data).links
        assert [(link.kind, link.key, link.target, link.form) for link in links] == [
            ("property", "up", "a", "double-quoted"),
            ("property", "down.0", "c", "single-quoted"),
            ("property", "flow.0", "g", "double-quoted"),
            ("property", "nested.in", "i", "double-quoted"),
            ("property", "quote", "l's", "single-quoted"),
            ("wikilink", None, "m", "plain"),
        ]
        assert [data[link.target_start : link.target_end] for link in links] == [
            b"a",
            b"c",
            b"g",
            b"i",
            b"l''s",
            b"m",
        ]
        assert [link.line for link in links] == [2, 4, 7, 8, 12, 14]

    def test_values_and_aliases(self) -> None:
        note = scan(b"---\naliases: [One, 2]\nn: 12:30\n---\n")
        assert note.properties == {"aliases": ["One", 2], "n": "12:30"}
        assert note.aliases == ("One", "2")
        assert scan(b"---\naliases: One, Two\n---\n").aliases == ("One, Two",)

    def test_a_block_that_is_no_yaml_is_empty_and_says_so_and_its_links_count(self) -> None:
        note = scan(b'---\na: [b\nup: "[[c]]"\n---\n#t\n')
        assert (note.properties_broken, dict(note.properties)) == (True, {})
        assert [(link.target, link.key) for link in note.links] == [("c", None)]
        assert [tag.name for tag in note.tags] == ["t"]

    def test_of_a_property_that_is_there_twice_every_link_counts(self) -> None:
        note = scan(b'---\nup: "[[a]]"\nup: "[[b]]"\n---\n')
        assert note.properties == {"up": "[[b]]"}
        assert [link.target for link in note.links] == ["a", "b"]

    def test_where_the_block_is(self) -> None:
        for start in ("", "\ufeff"):
            data = f"{start}---\né: ü\n---\n[[a]]".encode()
            front = scan(data).frontmatter
            assert front is not None
            assert data[front.content_start : front.content_end].decode() == "é: ü\n"
            assert data[front.body_start :] == b"[[a]]"
        assert scan(b"---\na: b\n").frontmatter is None


class TestOutline:
    def test_headings(self) -> None:
        text = "# A #\n\n  ### B [[x]]\n\nC\n===\n\n#no\n####### no\n> # no\n- # no\n```\n# no\n```\n##\n"
        found = scan(text.encode()).headings
        assert [(each.text, each.level, each.line) for each in found] == [
            ("A", 1, 1),
            ("B [[x]]", 3, 3),
            ("C", 1, 5),
            ("", 2, 15),
        ]
        data = text.encode()
        assert [data[each.start : each.end] for each in found] == [
            b"# A #",
            b"  ### B [[x]]",
            b"C\n===",
            b"##",
        ]

    def test_tasks(self) -> None:
        text = "- [ ] a ^id\n\t1. [x] b\n> * [<] c [[d]]\n- [xy] no\n- no\n[ ] no\n```\n- [ ] no\n```\n- [ ]\n"
        note = scan(text.encode())
        assert [(task.status, task.text, task.line) for task in note.tasks] == [
            (" ", "a", 1),
            ("x", "b", 2),
            ("<", "c [[d]]", 3),
            (" ", "", 10),
        ]
        assert [link.target for link in note.links] == ["d"]

    def test_a_number_in_the_middle_of_a_text_begins_no_list(self) -> None:
        assert [task.text for task in scan(b"text\n2. [ ] a\n\n3. [ ] b\n4. [ ] c\n").tasks] == [
            "b",
            "c",
        ]

    def test_block_ids_stand_at_the_end_of_a_block(self) -> None:
        text = "text ^a\n\n- item ^b\n- item ^c-1\n\n> quote\n\n^d\n\nnot ^e here\nnot ^f\nbut ^g\n\nx^h\n\n`^i`\n"
        found = scan(text.encode()).blocks
        assert [(block.name, block.line) for block in found] == [
            ("a", 1),
            ("b", 3),
            ("c-1", 4),
            ("d", 8),
            ("g", 12),
        ]


class TestBytes:
    def test_what_is_not_utf8_is_refused(self) -> None:
        with pytest.raises(VaultError) as refusal:
            scan(b"[[a]] \xff", "Note.md")
        assert (refusal.value.code, refusal.value.path) == ("NOT_TEXT", "Note.md")

    def test_or_read_as_obsidian_does(self) -> None:
        note = scan_lossy(b"[[a]] \xff[[b\xfe]]")
        assert note.lossy
        assert [link.target for link in note.links] == ["a", "b\ufffd"]
        assert not scan_lossy(b"[[a]]").lossy

    def test_a_byte_order_mark_is_no_text(self) -> None:
        note = scan("\ufeff# H\n#t".encode())
        assert [heading.text for heading in note.headings] == ["H"]
        assert [tag.start for tag in note.tags] == [7]

    def test_an_empty_note(self) -> None:
        note = scan(b"")
        assert (note.links, note.tags, note.headings, note.blocks, note.tasks) == (
            (),
            (),
            (),
            (),
            (),
        )
