from __future__ import annotations

VAULT = {"a.md": "---\nx: 1\n---\nsame\n", "sub/A.md": "\r\nsame", "b.md": "other", "e1.md": "", "e2.md": "---\nx: 1\n---\n"}


def test_same_text_below_other_properties(bench):
    answer = bench(VAULT).run("vault.findDuplicates")
    assert [[item["path"] for item in group["items"]] for group in answer["groups"]] == [["a.md", "sub/A.md"]]
    assert (answer["count"], answer["notes"]) == (1, 2)


def test_same_name_in_any_case(bench):
    answer = bench(VAULT).run("vault.findDuplicates", by="name")
    assert [group["key"] for group in answer["groups"]] == ["a"]


def test_one_folder(bench):
    assert bench(VAULT).run("vault.findDuplicates", folder="sub")["count"] == 0
