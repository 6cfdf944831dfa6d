from __future__ import annotations

import pytest

from obsidian_agent.errors import ObsidianAgentError

VAULT = {
    "Hub.md": "[[#Top]] [[Hub]]\n# Top\n",
    "a.md": '---\nup: "[[Hub]]"\n---\n[[hub|the hub]] and [[Missing#x]]\n![[Hub#Top]]\n`[[Hub]]`\n',
    "Sub/b.md": "[md](../Hub.md) [web](https://example.org) [gone](nowhere%20here.md)\n[[c]]\n",
    "Sub/c.md": "",
    "X/c.md": "[[../Hub]]\n",
    "board.canvas": '{"nodes": [{"id": "1", "type": "file", "file": "Hub.md"}]}',
}


def items(output):
    return [(item["path"], item["line"], item["kind"], item["text"]) for item in output["items"]]


def test_backlinks_of_every_kind_without_those_of_the_note_itself(bench):
    output = bench(VAULT).run("vault.getBacklinks", path="Hub.md")
    assert items(output) == [
        ("Sub/b.md", 1, "markdown", "md"),
        ("X/c.md", 1, "wikilink", "../Hub"),
        ("a.md", 2, "property", "Hub"),
        ("a.md", 4, "wikilink", "the hub"),
        ("a.md", 5, "embed", "Hub > Top"),
        ("board.canvas", 1, "canvas", "Hub.md"),
    ]
    assert output["count"] == 6


def test_the_file_in_the_own_folder_is_meant(bench):
    assert items(bench(VAULT).run("vault.getBacklinks", path="X/c.md")) == []
    assert items(bench(VAULT).run("vault.getBacklinks", path="Sub/c.md")) == [("Sub/b.md", 2, "wikilink", "c")]


def test_outgoing_and_unresolved(bench):
    vault = bench(VAULT)
    assert items(vault.run("vault.getOutgoingLinks", path="Hub.md")) == [("Hub.md", 1, "wikilink", "Top"), ("Hub.md", 1, "wikilink", "Hub")]
    assert items(vault.run("vault.getOutgoingLinks", path="Sub/b.md")) == [
        ("Hub.md", 1, "markdown", "md"),
        ("Sub/c.md", 2, "wikilink", "c"),
    ]
    assert items(vault.run("vault.getUnresolvedLinks", path="Sub/b.md")) == [("nowhere here", 1, "markdown", "gone")]
    assert items(vault.run("vault.getUnresolvedLinks", path="a.md")) == [("Missing", 4, "wikilink", "Missing > x")]


def test_links_as_earlier_steps_left_them(bench):
    vault = bench(VAULT)
    assert vault.run("vault.getUnresolvedLinks", path="a.md")["count"] == 1
    vault.run("vault.createFile", path="New/Missing.md", content="to [[Hub]]\n")
    assert vault.run("vault.getUnresolvedLinks", path="a.md")["count"] == 0
    assert items(vault.run("vault.getBacklinks", path="New/Missing.md")) == [("a.md", 4, "wikilink", "Missing > x")]
    assert "New/Missing.md" in [item["path"] for item in vault.run("vault.getBacklinks", path="Hub.md")["items"]]
    vault.run("vault.updateFile", path="a.md", mode="replace", content="no more\n")
    vault.run("vault.delete", path="Sub/c.md")
    assert items(vault.run("vault.getBacklinks", path="New/Missing.md")) == []
    assert items(vault.run("vault.getBacklinks", path="X/c.md")) == [("Sub/b.md", 2, "wikilink", "c")]


def test_a_missing_note_is_an_error(bench):
    with pytest.raises(ObsidianAgentError) as caught:
        bench(VAULT).run("vault.getBacklinks", path="Missing.md")
    assert caught.value.code == "FILE_NOT_FOUND"
