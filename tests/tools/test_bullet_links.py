from __future__ import annotations

import pytest

from obsidian_agent.errors import ObsidianAgentError

LIST = "Features:\n\n- [x] Color schemes\n\t* [ ] E-ink mode ^id1\n> 2) a - a\n\nend"


def test_only_the_texts_of_the_items_become_links(bench):
    vault = bench({"F/Color schemes.md": "", "F/E-ink mode.md": "", "F/a - a.md": "", "a - a.md": ""})
    output = vault.run(
        "util.linkBullets", text=LIST, notes=[{"path": "F/Color schemes.md"}, "F/E-ink mode.md", {"path": "F/a - a.md", "created": True}]
    )
    assert output == {
        "text": "Features:\n\n- [x] [[Color schemes]]\n\t* [ ] [[E-ink mode]] ^id1\n> 2) [[F/a - a]]\n\nend",
        "count": 3,
    }


def test_null_leaves_an_item_as_it_is(bench):
    assert bench().run("util.linkBullets", text="- a\r\n- a\r\n", notes=[None, "x.md"]) == {"text": "- a\r\n- [[x.md]]\r\n", "count": 1}


def test_the_number_of_notes_must_fit(bench):
    with pytest.raises(ObsidianAgentError) as caught:
        bench().run("util.linkBullets", text="- a\n- b", notes=["x.md"])
    assert caught.value.code == "COUNT_MISMATCH"


def test_a_text_that_holds_its_own_item_as_part_of_another_line(bench):
    output = bench().run("util.linkBullets", text="x - a\n- a", notes=["y.md"])
    assert output["text"] == "x - a\n- [[y.md]]"
