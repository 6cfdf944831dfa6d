from __future__ import annotations


def test_tags_are_counted_by_note_whatever_their_case(bench):
    vault = bench({"a.md": "#b #B #c/d\n", "sub/x.md": "---\ntags: [B]\n---\n`#code`\n"})
    assert vault.run("vault.listTags")["items"] == [{"tag": "b", "count": 2}, {"tag": "c/d", "count": 1}]
    assert vault.run("vault.listTags", folder="sub")["items"] == [{"tag": "B", "count": 1}]
    assert vault.run("vault.listTags", files=["a.md"])["count"] == 2
