from __future__ import annotations

import pytest

NOTE = "---\ntags: [a, b/c]\n---\n#a\nText #a and #a/b, `#a` stays.\n- [ ] #A do\nend #b/c #a\n"


@pytest.mark.parametrize(
    ("tags", "after", "count"),
    [
        (["a"], "---\ntags: [b/c]\n---\nText and #a/b, `#a` stays.\n- [ ] do\nend #b/c\n", 5),
        (["#b/c"], "---\ntags: [a]\n---\n#a\nText #a and #a/b, `#a` stays.\n- [ ] #A do\nend #a\n", 2),
        (None, "---\ntags: []\n---\nText and, `#a` stays.\n- [ ] do\nend\n", 8),
        (["x"], NOTE, 0),
    ],
)
def test_tags_go_from_properties_and_text(bench, tags, after, count):
    vault = bench({"n.md": NOTE})
    answer = vault.run("vault.removeTags", path="n.md", tags=tags)
    assert vault.text("n.md") == after
    assert (answer["count"], answer["changed"]) == (count, count > 0)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("#a #b text\n", "text\n"),
        ("#a", ""),
        ("#a\r\n\r\nx\r\n", "\r\nx\r\n"),
        ("x\n#a #b\ny\n", "x\ny\n"),
        ("## Head #a\n", "## Head\n"),
        ("- x\n\t#a\ny", "- x\ny"),
        ("a#a is no tag, (#a) is one\n", "a#a is no tag, () is one\n"),
        ("| #a | b |\n", "| | b |\n"),
    ],
)
def test_what_stands_around_a_tag(bench, before, after):
    vault = bench({"n.md": before})
    vault.run("vault.removeTags", path="n.md")
    assert vault.text("n.md") == after
