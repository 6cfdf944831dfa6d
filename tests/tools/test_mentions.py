from __future__ import annotations

VAULT = {
    "People/Ann Lee.md": "---\naliases: [Annie]\n---\nAnn Lee\n",
    "a.md": "---\nby: Ann Lee\n---\n# Ann Lee\n\nann lee met Annie, Ann Leeds, [[Ann Lee]] and `Ann Lee`.\n\n```\nAnn Lee\n```\n\n| who |\n|---|\n| annie |\n",
    "b.md": "Ann Lee and Ann Lee (https://x.org/Ann Lee #Ann Lee)\n",
}


def test_mentions_in_texts_become_links(bench):
    vault = bench(VAULT)
    answer = vault.run("vault.linkMentions", to="People/Ann Lee.md", path="a.md")
    assert answer == {"files": [{"path": "a.md", "count": 3}], "total": 3}
    assert vault.text("a.md") == VAULT["a.md"].replace("ann lee met Annie,", "[[Ann Lee|ann lee]] met [[Ann Lee|Annie]],").replace(
        "| annie |", "| [[Ann Lee\\|annie]] |"
    )


def test_only_the_first_one_and_never_in_the_note_itself(bench):
    vault = bench(VAULT)
    answer = vault.run("vault.linkMentions", to="People/Ann Lee.md", occurrences="first", aliases=False)
    assert [file["path"] for file in answer["files"]] == ["a.md", "b.md"]
    assert vault.text("b.md").startswith("[[Ann Lee]] and Ann Lee (")


def test_code_over_several_lines_stays(bench):
    vault = bench({"Ann Lee.md": "", "a.md": "`one\nAnn Lee two` Ann Lee\n"})
    vault.run("vault.linkMentions", to="Ann Lee.md")
    assert vault.text("a.md") == "`one\nAnn Lee two` [[Ann Lee]]\n"


def test_nothing_mentioned_is_a_warning(bench):
    vault = bench({"Ann Lee.md": "", "a.md": "x"})
    vault.run("vault.linkMentions", to="Ann Lee.md")
    assert vault.warnings == ["TEXT_NOT_FOUND"]
