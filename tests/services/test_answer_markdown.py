"""What `/insert` writes of an answer: links for paths, and no tag that only the question named."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from obsidian_agent.agent.events import Answer
from obsidian_agent.services.answer_markdown import answer_markdown
from obsidian_agent.services.offline_answer import answer
from obsidian_agent.services.open_vault import OpenVault
from obsidian_agent.vault.markdown.note import scan_text
from offline_desk import NOW, Desk
from support import MakeVault

FILES: Mapping[str, str | bytes] = {
    "Home.md": "# Home\n",
    "Projects/Hot soup.md": "---\ntags: [project]\nbudget: 40\n---\nSoup for #winter\n",
    "Projects/Thesis.md": "---\ntags: [project]\ndate: 2026-02-01\n---\n- [ ] call #ada 📅 2026-03-01\n",
    "Old/Thesis.md": "",
}


@pytest.mark.parametrize(
    ("question", "text"),
    [
        (
            "which notes are tagged #project?",
            "2 notes tagged \\#project:\n- [[Hot soup]]\n- [[Projects/Thesis]]",
        ),
        (
            "what is overdue?",
            "1 open task in all notes due before 2026-03-14:\n"
            "- [[Projects/Thesis]]: call \\#ada 📅 2026-03-01",
        ),
        ("which tags does Hot soup have?", "- \\#project (1)\n- \\#winter (1)"),
        ("when was the last #project?", "- 2026-02-01: [[Projects/Thesis]]"),
        ("what is the budget of Hot soup?", "Budget of Hot soup: 40"),
        ("which notes are tagged #gone?", "No notes tagged \\#gone."),
    ],
)
def test_an_inserted_answer_links_its_notes_and_tags_nothing(
    question: str, text: str, make_vault: MakeVault
) -> None:
    desk = Desk(make_vault(FILES))
    answered = answer(desk.planner, desk.request(question))
    assert isinstance(answered, Answer)
    inserted = answer_markdown(answered.text, "Home.md", OpenVault(desk.store, lambda: NOW))
    assert text in inserted
    assert "Or did you mean" not in inserted
    assert not scan_text(inserted).tags


@pytest.mark.parametrize(
    ("settings", "link"),
    [
        ('{"useMarkdownLinks": true}', "[Hot soup](Hot%20soup.md)"),
        ('{"newLinkFormat": "relative"}', "[[Projects/Hot soup]]"),
    ],
)
def test_links_have_the_form_of_the_settings(
    settings: str, link: str, make_vault: MakeVault
) -> None:
    store = make_vault({**FILES, ".obsidian/app.json": settings})
    answered = "1 note tagged #project:\n- [[Hot soup]]"
    inserted = answer_markdown(answered, "Home.md", OpenVault(store, lambda: NOW))
    assert inserted.splitlines()[1] == f"- {link}"


def test_the_text_of_a_model_is_inserted_as_it_is(make_vault: MakeVault) -> None:
    text = "A template:\n\n#daily\n\n- [[Home]] #x\n- Nowhere.md: y"
    assert answer_markdown(text, "Home.md", OpenVault(make_vault(FILES), lambda: NOW)) == text
