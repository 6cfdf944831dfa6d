from __future__ import annotations

import dataclasses

import pytest

from obsidian_agent.errors import ObsidianAgentError
from obsidian_agent.vault.links.link_text import LinkStyle

VAULT = {"a.md": "see cell theory now\n| x |\n|---|\n| cell |\n", "Notes/Cells.md": "", "Notes/cell.md": ""}


def test_the_selected_words_stay_what_is_shown(bench):
    vault = bench(VAULT, active="a.md", selected=("cell theory", (0, 4), (0, 15)))
    vault.run("editor.linkSelection", path="Notes/Cells.md")
    assert vault.text("a.md").startswith("see [[Cells|cell theory]] now\n")


def test_a_heading_and_blanks_around_the_words(bench):
    vault = bench(VAULT, active="a.md", selected=(" cell theory ", (0, 3), (0, 16)))
    vault.run("editor.linkSelection", path="Notes/Cells.md", heading="One")
    assert vault.text("a.md").startswith("see [[Cells#One|cell theory]] now\n")


def test_the_pipe_in_a_table_and_words_that_are_the_name(bench):
    vault = bench(VAULT, active="a.md", selected=("cell", (3, 2), (3, 6)))
    vault.run("editor.linkSelection", path="Notes/Cells.md")
    assert "| [[Cells\\|cell]] |" in vault.text("a.md")
    vault = bench(VAULT, active="a.md", selected=("cell", (3, 2), (3, 6)))
    vault.run("editor.linkSelection", path="Notes/cell.md")
    assert "| [[cell]] |" in vault.text("a.md")


def test_markdown_links_where_the_vault_wants_them(bench):
    vault = bench(VAULT, active="a.md", selected=("cell theory", (0, 4), (0, 15)))
    vault.run_context = dataclasses.replace(vault.run_context, link_style=LinkStyle("relative", markdown=True))
    vault.run("editor.linkSelection", path="Notes/Cells.md")
    assert vault.text("a.md").startswith("see [cell theory](Notes/Cells.md) now\n")


@pytest.mark.parametrize("selected", [None, ("see\nmore", (0, 0), (0, 3))])
def test_no_words_no_link(bench, selected):
    with pytest.raises(ObsidianAgentError):
        bench(VAULT, active="a.md", selected=selected).run("editor.linkSelection", path="Notes/Cells.md")


def test_the_mark_of_a_list_item_stays_outside(bench):
    vault = bench(VAULT | {"a.md": "- [ ] one two\n"}, active="a.md", selected=("- [ ] one two", (0, 0), (0, 13)))
    vault.run("editor.linkSelection", path="Notes/Cells.md")
    assert vault.text("a.md") == "- [ ] [[Cells|one two]]\n"
