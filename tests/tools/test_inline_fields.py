from __future__ import annotations

NOTE = """---
status: open
---
# Book
author:: [[Ann Lee]], [[Bob]]
Rating:: 4.5
- pages:: 300
read:: true
genre:: essay
genre:: history
status:: closed
isbn:: 0123
empty::
A sentence with [inline:: value] stays.

```
code:: stays
```
"""


def test_lines_become_properties(bench):
    vault = bench({"n.md": NOTE})
    answer = vault.run("vault.inlineToProperties", path="n.md")
    assert answer["properties"] == {
        "author": ["[[Ann Lee]]", "[[Bob]]"],
        "Rating": 4.5,
        "pages": 300,
        "read": True,
        "genre": ["essay", "history"],
        "isbn": "0123",
    } | {"empty": None}
    assert vault.warnings == ["PROPERTY_EXISTS"]
    text = vault.text("n.md")
    assert text.endswith("---\n# Book\nstatus:: closed\nA sentence with [inline:: value] stays.\n\n```\ncode:: stays\n```\n")
    assert "status: open\n" in text


def test_lines_can_stay(bench):
    vault = bench({"n.md": "a:: 1\r\nb:: 2\r\n"})
    assert vault.run("vault.inlineToProperties", path="n.md", fields=["A"], keep=True)["count"] == 1
    assert vault.text("n.md") == "---\r\na: 1\r\n---\r\na:: 1\r\nb:: 2\r\n"


def test_a_note_without_fields_is_not_touched(bench):
    vault = bench({"n.md": "std::vector is C++\nhttp://x::y\n"})
    assert vault.run("vault.inlineToProperties", path="n.md")["count"] == 0
    assert vault.changes() == []
