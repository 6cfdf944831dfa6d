from __future__ import annotations

from obsidian_agent.tools.properties.tags import LIST_TAGS


def test_tags_are_counted_by_note_whatever_their_case(bench):
    vault = bench({"a.md": "#b #B #c/d\n", "sub/x.md": "---\ntags: [B]\n---\n`#code`\n"})
    assert vault.run(LIST_TAGS)["items"] == [{"tag": "b", "count": 2}, {"tag": "c/d", "count": 1}]
    assert vault.run(LIST_TAGS, folder="sub")["items"] == [{"tag": "B", "count": 1}]
    assert vault.run(LIST_TAGS, files=["a.md"])["count"] == 2
