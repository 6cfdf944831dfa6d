from __future__ import annotations

import pytest

from obsidian_agent.errors import ObsidianAgentError

VAULT = {
    "a.md": '---\n# kept\nx: 1\nauthor:  "[[Ann]]" # who\nlist:\n  - b\n---\nauthor: text\n',
    "b.md": "---\r\n'author': Bob\r\n---\r\n",
    "both.md": "---\nauthor: a\nwriter: b\n---\n",
    "sub/c.md": '---\n{"author": "C"}\n---\n',
    "none.md": "author: x\n",
}


def test_value_place_and_comments_stay(bench):
    vault = bench(VAULT)
    assert vault.run("vault.renameProperty", **{"from": "author", "to": "writer"}) == {"files": ["a.md", "b.md", "sub/c.md"], "total": 3}
    assert vault.text("a.md") == VAULT["a.md"].replace("author:  ", "writer:  ")
    assert vault.text("b.md") == "---\r\nwriter: Bob\r\n---\r\n"
    assert vault.text("sub/c.md") == '---\n{"writer": "C"}\n---\n'
    assert vault.warnings == ["PROPERTY_EXISTS"]


def test_a_name_that_needs_quotes_gets_them(bench):
    vault = bench(VAULT)
    vault.run("vault.renameProperty", path="b.md", **{"from": "author", "to": "# who"})
    assert vault.text("b.md") == '---\r\n"# who": Bob\r\n---\r\n'


def test_one_folder_only(bench):
    vault = bench(VAULT)
    assert vault.run("vault.renameProperty", folder="sub", **{"from": "author", "to": "by"})["files"] == ["sub/c.md"]


def test_nothing_to_rename_is_a_warning(bench):
    vault = bench(VAULT)
    assert vault.run("vault.renameProperty", **{"from": "never", "to": "x"})["total"] == 0
    assert vault.warnings == ["TEXT_NOT_FOUND"]


def test_a_name_that_none_can_have_is_an_error(bench):
    with pytest.raises(ObsidianAgentError):
        bench(VAULT).run("vault.renameProperty", **{"from": "author", "to": " "})
