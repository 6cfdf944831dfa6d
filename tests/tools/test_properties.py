from __future__ import annotations

import pytest
from pydantic import ValidationError

from obsidian_agent.errors import ObsidianAgentError

NOTE = "---\ntitle: A # t\ntags: [x]\nold: 1\n---\nBody\n"


def test_sets_removes_and_tags_in_one_step(bench):
    vault = bench({"n.md": NOTE})
    output = vault.run(
        "vault.setFrontmatter", path="n.md", set={"title": "B", "due": "2026-01-02"}, remove=["old"], addTags=["#z"], removeTags=["X"]
    )
    assert output == {"path": "n.md", "changed": True}
    assert vault.text("n.md") == "---\ntitle: B # t\ntags: [z]\ndue: 2026-01-02\n---\nBody\n"
    assert vault.changes() == [("modify", "n.md")]
    assert vault.on_disk() == {"n.md": NOTE.encode()}


@pytest.mark.parametrize(
    "args",
    [{}, {"set": {"title": "A", "tags": ["x"]}}, {"remove": ["none"]}, {"addTags": ["X"]}, {"removeTags": ["y"]}, {"set": {"old": 1.0}}],
)
def test_an_unchanged_note_is_not_written(bench, args):
    vault = bench({"n.md": NOTE})
    assert vault.run("vault.setFrontmatter", path="n.md", **args) == {"path": "n.md", "changed": False}
    assert vault.changes() == []


def test_bytes_outside_the_properties_stay(bench):
    note = b"\xef\xbb\xbf---\r\na: 1\r\n---\r\nx\x00y\r\r\n  \xe2\x80\xa8\n"
    vault = bench({"n.md": note})
    vault.run("vault.setFrontmatter", path="n.md", set={"a": 2, "b": None})
    assert vault.text("n.md").encode() == note.replace(b"a: 1\r\n", b"a: 2\r\nb:\r\n")


def test_a_later_step_sees_what_an_earlier_one_set(bench):
    vault = bench({"n.md": "Body"})
    vault.run("vault.setFrontmatter", path="n.md", set={"a": [1]})
    vault.run("vault.setFrontmatter", path="n.md", set={"a": [1, "no"]})
    assert vault.text("n.md") == '---\na:\n  - 1\n  - "no"\n---\nBody'


@pytest.mark.parametrize(
    ("path", "args", "code"),
    [
        ("n.md", {"set": {"a": 1}, "remove": ["a"]}, "ARGUMENT_INVALID"),
        ("n.md", {"addTags": ["a b"]}, "ARGUMENT_INVALID"),
        ("broken.md", {"set": {"a": 1}}, "FRONTMATTER_INVALID"),
        ("latin.md", {"set": {"a": 1}}, "NOT_TEXT"),
        ("none.md", {"set": {"a": 1}}, "FILE_NOT_FOUND"),
        ("data.json", {"set": {"a": 1}}, "ARGUMENT_INVALID"),
        ("folder", {"set": {"a": 1}}, "NOT_TEXT"),
        ("../n.md", {"set": {"a": 1}}, "PATH_OUTSIDE_VAULT"),
        (".obsidian/n.md", {"set": {"a": 1}}, "PATH_NOT_ALLOWED"),
    ],
)
def test_refusals_name_the_file_and_change_nothing(bench, path, args, code):
    vault = bench({"n.md": NOTE, "broken.md": "---\na: [\n---\n", "latin.md": b"caf\xe9", "data.json": "{}", "folder/": ""})
    with pytest.raises(ObsidianAgentError) as caught:
        vault.run("vault.setFrontmatter", path=path, **args)
    assert caught.value.code == code
    assert caught.value.path == path or code.startswith("PATH_")
    assert vault.changes() == []


@pytest.mark.parametrize("args", [{"set": [1]}, {"remove": "a"}, {"tags": ["x"]}, {"addTags": [1]}])
def test_arguments_of_the_wrong_type(bench, args):
    with pytest.raises(ValidationError):
        bench({"n.md": NOTE}).run("vault.setFrontmatter", path="n.md", **args)
