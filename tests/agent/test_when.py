from __future__ import annotations

from offline_desk import Desk, grow_old


def test_when_a_note_was_changed_and_made(make_vault):
    store = make_vault({"Old.md": "---\ncreated: 2020-02-29\n---\n", "New.md": ""})
    grow_old(store, "Old.md")
    desk = Desk(store)
    assert desk.ask("when was Old last changed?").text.split("\n")[1].startswith("- Thursday, 1 January 2026")
    made = desk.ask("when did I create Old?")
    assert made.text.split("\n")[1] == "- Saturday, 29 February 2020"
    assert made.sources == ("Old.md",)
