from __future__ import annotations

from obsidian_agent.tools.text.statistics import COUNT_WORDS


def test_words_without_properties(bench):
    vault = bench({"a.md": "---\nx: one two\n---\nIt's a well-known 3.5 fact, über [[alles]].\n", "sub/b.md": "日本 ok\n"})
    answer = vault.run(COUNT_WORDS)
    assert [(file["path"], file["words"]) for file in answer["files"]] == [("a.md", 7), ("sub/b.md", 3)]
    assert (answer["words"], answer["count"]) == (10, 2)
    assert vault.run(COUNT_WORDS, path="sub/b.md")["characters"] == 6
