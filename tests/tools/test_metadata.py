from __future__ import annotations

import hashlib
import os

FRONT = "---\naliases: [Nickname]\ntags: [a/b]\nn: 1\n---\n"
NOTE = FRONT + "# One #inline\n\n- [x] done [[Other#^id|shown]]\n- [ ] open\n\n## Two\n![[pic.png]]\n"


def test_everything_of_a_note(bench):
    vault = bench({"N.md": NOTE, "Other.md": ""})
    output = vault.run("vault.getMetadata", path="N.md")
    assert output["frontmatter"] == {"aliases": ["Nickname"], "tags": ["a/b"], "n": 1}
    assert (output["tags"], output["aliases"]) == (["a/b", "inline"], ["Nickname"])
    headings = [(heading["text"], heading["level"], heading["line"]) for heading in output["headings"]]
    assert headings == [("One #inline", 1, 6), ("Two", 2, 11)]
    assert output["links"][0] == {
        "target": "Other", "subpath": "#^id", "text": "shown", "kind": "wikilink", "line": 8, "path": "Other.md",
    }  # fmt: skip
    assert "path" not in output["links"][1]
    assert [(task["status"], task["line"]) for task in output["tasks"]] == [("x", 8), (" ", 9)]
    assert (output["size"], output["hash"]) == (len(NOTE), hashlib.sha256(NOTE.encode()).hexdigest())
    assert output["mtimeMs"] == os.stat(vault.folder / "N.md").st_mtime_ns / 1e6


def test_other_files_and_broken_notes(bench):
    canvas = '{"nodes":[{"id":"1","type":"file","file":"p.png"}]}'
    vault = bench({"p.png": b"\x89", "bad.md": "---\na: [\n---\n#tag\n", "b.md": b"#caf\xe9\n", "c.canvas": canvas})
    assert vault.run("vault.getMetadata", path="p.png")["links"] == []
    assert vault.run("vault.getMetadata", path="c.canvas")["links"][0]["path"] == "p.png"
    assert vault.run("vault.getMetadata", path="bad.md")["tags"] == ["tag"]
    assert vault.warnings == ["FRONTMATTER_INVALID"]
    vault.run("vault.getMetadata", path="b.md")
    assert vault.warnings == ["NOT_TEXT"]
