from __future__ import annotations


def test_words_without_properties(bench):
    vault = bench({"a.md": "---\nx: one two\n---\nIt's a well-known 3.5 fact, über [[alles]].\n", "sub/b.md": "日本 ok\n"})
    answer = vault.run("vault.countWords")
    assert [(file["path"], file["words"]) for file in answer["files"]] == [("a.md", 7), ("sub/b.md", 3)]
    assert (answer["words"], answer["count"]) == (10, 2)
    assert vault.run("vault.countWords", path="sub/b.md")["characters"] == 6
