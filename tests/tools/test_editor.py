from __future__ import annotations

import pytest
from msgspec.structs import replace

from obsidian_agent.errors import Conflict, ObsidianAgentError
from obsidian_agent.vault.links.link_text import LinkStyle

NOTE = "# T\n- one\n- two\nend\n"
SELECTED = ("- one\n- two", (1, 0), (2, 5))


def test_get_selection(bench):
    output = bench({"a.md": NOTE}, active="a.md", selected=SELECTED).run("editor.getSelection")
    place = {"from": {"line": 1, "ch": 0}, "to": {"line": 2, "ch": 5}}
    assert output == {"text": "- one\n- two", "isEmpty": False, "filePath": "a.md", "range": place}


def test_get_selection_without_one(bench):
    assert bench().run("editor.getSelection") == {"text": "", "isEmpty": True}


def test_get_active_file_path(bench):
    assert bench({"a.md": ""}, active="a.md").run("editor.getActiveFilePath") == {"path": "a.md"}
    assert bench().run("editor.getActiveFilePath") == {"path": None}


def test_replace_selection(bench):
    vault = bench({"a.md": NOTE}, active="a.md", selected=SELECTED)
    output = vault.run("editor.replaceSelection", text="- [[1]]\n- [[😀]]")
    place = {"from": {"line": 1, "ch": 0}, "to": {"line": 2, "ch": 8}}
    assert output == {"filePath": "a.md", "range": place, "insertedChars": 16}
    assert vault.text("a.md") == "# T\n- [[1]]\n- [[😀]]\nend\n"


def test_columns_are_utf16(bench):
    vault = bench({"a.md": "😀 old 😀\n"}, active="a.md", selected=("old", (0, 3), (0, 6)))
    vault.run("editor.replaceSelection", text="new")
    assert vault.text("a.md") == "😀 new 😀\n"


def test_line_ends_are_those_of_the_note(bench):
    vault = bench({"a.md": NOTE.replace("\n", "\r\n")}, active="a.md", selected=SELECTED)
    vault.run("editor.replaceSelection", text="x\ny")
    assert vault.text("a.md") == "# T\r\nx\r\ny\r\nend\r\n"


def test_a_backward_selection_is_the_same(bench):
    vault = bench({"a.md": NOTE}, active="a.md", selected=("- one\n- two", (2, 5), (1, 0)))
    vault.run("editor.replaceSelection", text="x")
    assert vault.text("a.md") == "# T\nx\nend\n"


def test_edits_of_earlier_steps_shift_the_selection(bench):
    vault = bench({"a.md": NOTE}, active="a.md", selected=SELECTED)
    vault.run("vault.updateFile", path="a.md", mode="prepend", content="above")
    vault.run("vault.updateFile", path="a.md", mode="append", content="below")
    vault.run("vault.rename", **{"from": "a.md", "to": "moved/b.md"})
    output = vault.run("editor.replaceSelection", text="x")
    assert (output["filePath"], output["range"]["from"]) == ("moved/b.md", {"line": 2, "ch": 0})
    assert vault.text("moved/b.md") == "above\n# T\nx\nend\nbelow\n"


def test_replacing_twice_is_a_conflict(bench):
    for first in ("x", "- one\n- two\n- three", "> - one\n- two"):
        vault = bench({"a.md": NOTE}, active="a.md", selected=SELECTED)
        vault.run("editor.replaceSelection", text=first)
        with pytest.raises(Conflict):
            vault.run("editor.replaceSelection", text="y")


def test_an_edit_inside_the_selection_is_a_conflict(bench):
    vault = bench({"a.md": NOTE}, active="a.md", selected=SELECTED)
    vault.run("vault.updateFile", path="a.md", mode="insert", line=3, content="- between")
    with pytest.raises(Conflict):
        vault.run("editor.replaceSelection", text="y")


def test_a_note_that_was_replaced_or_removed_is_a_conflict(bench):
    vault = bench({"a.md": NOTE}, active="a.md", selected=SELECTED)
    vault.run("vault.writeFile", path="a.md", content="other")
    with pytest.raises(Conflict):
        vault.run("editor.replaceSelection", text="y")
    vault.run("vault.delete", path="a.md")
    with pytest.raises(Conflict):
        vault.run("editor.replaceSelection", text="y")


@pytest.mark.parametrize(
    "selected", [("- ONE\n- two", (1, 0), (2, 5)), ("x", (9, 0), (9, 1)), ("x", (0, 7), (0, 8))]
)
def test_a_selection_that_is_not_there_is_a_conflict(bench, selected):
    with pytest.raises(Conflict):
        bench({"a.md": NOTE}, active="a.md", selected=selected).run(
            "editor.replaceSelection", text="y"
        )


def test_text_without_a_place_cannot_be_replaced(bench):
    with pytest.raises(ObsidianAgentError) as caught:
        bench({"a.md": NOTE}, active="a.md", selected=("- one", None, None)).run(
            "editor.replaceSelection", text="y"
        )
    assert caught.value.code == "NO_SELECTION"
    assert "place" in caught.value.message


def test_without_an_active_note_there_is_no_selection(bench):
    for tool in ("editor.replaceSelection", "editor.insertAtCursor"):
        with pytest.raises(ObsidianAgentError) as caught:
            bench().run(tool, text="y")
        assert caught.value.code == "NO_SELECTION"


def test_an_empty_range_is_the_cursor(bench):
    vault = bench({"a.md": NOTE}, active="a.md", selected=("", (0, 3), (0, 3)))
    vault.run("editor.replaceSelection", text="itle")
    vault.run("editor.replaceSelection", text="!")
    assert vault.text("a.md").startswith("# Title!\n")


def test_insert_at_cursor(bench):
    vault = bench({"a.md": NOTE}, active="a.md", cursor=(1, 5))
    output = vault.run("editor.insertAtCursor", text="!\n- more")
    assert output == {"filePath": "a.md", "position": {"line": 1, "ch": 5}, "insertedChars": 8}
    assert vault.text("a.md") == "# T\n- one!\n- more\n- two\nend\n"
    assert vault.warnings == []


@pytest.mark.parametrize(
    ("cursor", "text"), [((1, 5), "\n- one"), ((1, 0), "- one\n"), ((0, 1), "#"), ((4, 0), "x\n")]
)
def test_several_insertions_stand_in_order(bench, cursor, text):
    vault = bench({"a.md": NOTE}, active="a.md", cursor=cursor)
    once = bench({"a.md": NOTE}, active="a.md", cursor=cursor)
    for mark in "123":
        vault.run("editor.insertAtCursor", text=f"{mark}{text}")
    once.run("editor.insertAtCursor", text="".join(f"{mark}{text}" for mark in "123"))
    assert vault.text("a.md") == once.text("a.md")


def test_an_insertion_stays_at_its_place_when_others_write_too(bench):
    vault = bench({"a.md": NOTE}, active="a.md", cursor=(1, 5))
    vault.run("editor.insertAtCursor", text="A")
    vault.run("vault.updateFile", path="a.md", mode="prepend", content="top")
    vault.run("vault.updateFile", path="a.md", mode="append", content="bottom")
    vault.run("editor.insertAtCursor", text="B")
    assert vault.text("a.md") == "top\n# T\n- oneAB\n- two\nend\nbottom\n"


def test_the_cursor_is_behind_the_selection_and_behind_what_replaced_it(bench):
    vault = bench({"a.md": NOTE}, active="a.md", selected=("one", (1, 2), (1, 5)))
    vault.run("editor.insertAtCursor", text="?")
    assert vault.text("a.md") == "# T\n- one?\n- two\nend\n"
    vault.run("editor.replaceSelection", text="1")
    vault.run("editor.insertAtCursor", text="!")
    assert vault.text("a.md") == "# T\n- 1!?\n- two\nend\n"


def test_without_a_cursor_text_goes_to_the_end_in_lines_of_its_own(bench):
    vault = bench({"a.md": "end"}, active="a.md")
    for text in ("- a", "- b"):
        vault.run("editor.insertAtCursor", text=text)
        assert vault.warnings == ["NO_SELECTION"]
    assert vault.text("a.md") == "end\n- a\n- b"
    assert bench({"a.md": ""}, active="a.md").run("editor.replaceSelection", text="x")["range"][
        "from"
    ] == {"line": 0, "ch": 0}


def test_a_cursor_beyond_the_note_is_a_conflict(bench):
    with pytest.raises(Conflict):
        bench({"a.md": NOTE}, active="a.md", cursor=(40, 0)).run("editor.insertAtCursor", text="x")


def test_an_active_note_that_is_missing(bench):
    with pytest.raises(ObsidianAgentError):
        bench(active="gone.md").run("editor.insertAtCursor", text="x")


def test_instructions_for_other_agents_are_never_written(bench):
    assert (
        bench({"AGENTS.md": "x"}, active="AGENTS.md", cursor=(0, 0)).refusal(
            "editor.insertAtCursor", text="y"
        )
        == "PATH_NOT_ALLOWED"
    )


def test_nothing_inserted_is_no_change(bench):
    vault = bench({"a.md": NOTE}, active="a.md", cursor=(0, 0))
    assert vault.run("editor.insertAtCursor", text="")["insertedChars"] == 0
    assert vault.changes() == []


VAULT = {
    "a.md": "see cell theory now\n| x |\n|---|\n| cell |\n",
    "Notes/Cells.md": "",
    "Notes/cell.md": "",
}


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
    vault.run_context = replace(vault.run_context, link_style=LinkStyle("relative", markdown=True))
    vault.run("editor.linkSelection", path="Notes/Cells.md")
    assert vault.text("a.md").startswith("see [cell theory](Notes/Cells.md) now\n")


@pytest.mark.parametrize("selected", [None, ("see\nmore", (0, 0), (0, 3))])
def test_no_words_no_link(bench, selected):
    with pytest.raises(ObsidianAgentError):
        bench(VAULT, active="a.md", selected=selected).run(
            "editor.linkSelection", path="Notes/Cells.md"
        )


def test_the_mark_of_a_list_item_stays_outside(bench):
    vault = bench(
        VAULT | {"a.md": "- [ ] one two\n"},
        active="a.md",
        selected=("- [ ] one two", (0, 0), (0, 13)),
    )
    vault.run("editor.linkSelection", path="Notes/Cells.md")
    assert vault.text("a.md") == "- [ ] [[Cells|one two]]\n"
