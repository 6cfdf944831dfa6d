"""The choice among the readings of a message: its rows, gaps, names and keys."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from textual.content import Content

from llm_server import Failure, LlmServer, Reply, Silence
from obsidian_agent.config.live import LiveSettings
from obsidian_agent.tui.screens.actions import Actions
from obsidian_agent.tui.screens.candidates import Candidates, Gap
from obsidian_agent.tui.screens.dialogs import Comment
from obsidian_agent.tui.screens.history import History
from obsidian_agent.tui.screens.values_form import ValuesForm
from support import settings_with
from tui.driving import Driver
from tui.test_actions import real


async def choosing(app: Driver, sentence: str) -> Candidates:
    """Send a message, and return the choice that it leads to once its readings were tried."""
    await app.send(sentence)
    await app.on_top(Candidates)
    screen = app.app.screen
    assert isinstance(screen, Candidates)
    return screen


@pytest.mark.parametrize("size", [(120, 40), (60, 20)])
async def test_a_gap_is_filled_in_its_sentence(tmp_path: Path, size: tuple[int, int]) -> None:
    async with real(tmp_path, size) as app:
        screen = await choosing(app, "please rename Soup")
        assert screen.titles[0] == "Rename Soup to …"
        assert isinstance(app.app.focused, Gap)
        assert "missing: " in app.screen()
        assert "Preview" not in app.screen()
        await app.press("enter")
        assert "Type the missing value" in app.screen()
        await app.press(*"Stew 2")
        assert "missing: " not in app.screen()
        assert "Rename Soup to Stew 2" in app.screen()
        await app.press("enter")
        await app.settle()
        assert "Rename Recipes/Soup.md to Recipes/Stew 2.md" in app.plan_head()


async def test_a_reading_shows_what_it_would_change_and_what_is_new(tmp_path: Path) -> None:
    async with real(tmp_path) as app:
        await choosing(app, "please move the winter notes to Recipes")
        assert "Move 2 notes tagged #winter to Recipes" in app.screen()
        assert "changes nothing" in app.screen()
        await app.press("escape")
        await choosing(app, "please move the winter notes to Attic")
        assert "folder Attic is new" in app.screen()


async def test_a_name_that_the_vault_does_not_have_is_chosen_from_similar_ones(
    tmp_path: Path,
) -> None:
    async with real(tmp_path) as app:
        await choosing(app, "please move Iddeaas to Cellar")
        assert "no note is called “Iddeaas”" in app.screen()
        await app.press("enter")
        assert isinstance(app.app.screen, Candidates)
        await app.press("backspace", "s")
        await app.press("escape", "escape")
        await choosing(app, "please move Iddeaas to Cellar")
        await app.press("down")
        await app.press("enter")
        await app.press("enter")
        await app.settle()
        assert "Move Ideas to Cellar" in app.plan_head()


async def test_all_actions_keep_the_sentence(tmp_path: Path) -> None:
    async with real(tmp_path) as app:
        await choosing(app, "please move Soup somehow to Cellar")
        await app.press("f2")
        await app.on_top(Actions)
        await app.press("escape")
        await app.on_top(Candidates)
        await app.press("f2")
        await app.on_top(Actions)
        await app.press(*"copy a note", "enter")
        await app.on_top(ValuesForm)
        assert "Recipes/Soup.md" in app.screen()


async def test_the_only_reading_is_previewed_at_once(tmp_path: Path) -> None:
    async with real(tmp_path) as app:
        await app.send("please move the winter notes to Cellar")
        await app.until(lambda: app.stage == "plan")
        assert "Your message has one reading" in app.transcript()
        await app.press("c")
        await app.on_top(Comment)
        await app.press("enter")
        await app.on_top(ValuesForm)
        assert "tag:#winter" in app.screen()


async def test_a_comment_on_the_plan_changes_a_value_of_its_action(tmp_path: Path) -> None:
    async with real(tmp_path) as app:
        for sentence in ("please move Soup somehow to Cellar", "move Soup to Cellar"):
            await app.send(sentence)
            if isinstance(app.app.screen, Candidates):
                app.wait_out_grace()
                await app.press("1")
            await app.until(lambda: app.stage == "plan")
            await app.press("c")
            await app.on_top(Comment)
            await app.press(*"to Attic", "enter")
            await app.on_top(ValuesForm)
            await app.press("enter")
            await app.until(lambda: "Compared with the previous plan" in app.transcript())
            assert "Move Soup to Attic" in app.plan_head()
            await app.press("r")


async def test_letters_and_digits_choose_only_outside_a_gap(tmp_path: Path) -> None:
    async with real(tmp_path) as app:
        screen = await choosing(app, "please move Soup somehow to Cellar")
        await app.press("1")
        await app.settle()
        assert "Move Soup to Cellar" in app.plan_head()
        await app.press("r")
        screen = await choosing(app, "please rename Soup")
        await app.press("1", "c")
        assert [gap.value for gap in screen.row.gaps] == ["1c"]
        assert not screen.row.query_one(".number").visible, "a digit chooses nothing here"
        await app.press("ctrl+e")
        await app.on_top(ValuesForm)


def small(server: LlmServer) -> LiveSettings:
    return settings_with(model="ollama/qwen3:4b", base_url=server.url)


CHOICE = json.dumps(
    {"actions": [{"action": "rename", "from": "Soup", "to": "Stew"}]}, ensure_ascii=False
)


async def test_the_actions_can_be_chosen_while_a_slow_model_thinks(tmp_path: Path) -> None:
    with LlmServer([Silence()], ["qwen3:4b"]) as server:
        async with real(tmp_path, settings=small(server)) as app:
            await app.pilot.press(*"please rename Soup", "enter")
            await app.until(lambda: isinstance(app.app.screen, Candidates) and server.requests)
            assert "is choosing, too" in app.screen()
            app.wait_out_grace()
            await app.pilot.press(*"Stew", "enter")
            await app.until(lambda: app.stage == "plan")
            await app.settle()
            assert "Rename Recipes/Soup.md to Recipes/Stew.md" in app.plan_head()
            await app.until(server.client_gone.is_set)


@pytest.mark.parametrize(
    "answer", [CHOICE, f"Of course:\n```json\n{CHOICE}\n```"], ids=["format", "ignores-format"]
)
@pytest.mark.parametrize("protocol", ["ollama", "openai"])
async def test_the_choice_of_the_model_appears_at_the_top(
    tmp_path: Path, protocol: str, answer: str
) -> None:
    with LlmServer([Reply(answer, delay=0.2)], ["qwen3:4b"], keyless=True) as server:
        settings = small(server)
        if protocol == "openai":
            settings = settings_with(model="custom/qwen3:4b", base_url=server.openai_url)
        async with real(tmp_path, settings=settings) as app:
            await app.send("Soup needs a heartier title, Stew")
            await app.on_top(Candidates)
            screen = app.app.screen
            assert isinstance(screen, Candidates)
            await app.until(lambda: not screen.thinking)
            await app.settle()
            assert screen.titles[0] == "Rename Soup to Stew"
            app.wait_out_grace()
            await app.press("enter")
            await app.until(lambda: app.stage == "plan")
            await app.settle()
            assert "Rename Recipes/Soup.md to Recipes/Stew.md" in app.plan_head()


async def test_a_complete_reading_stays_first_whatever_the_model_chooses(tmp_path: Path) -> None:
    other = json.dumps({"actions": [{"action": "rename", "from": "Bread", "to": "Stew"}]})
    with LlmServer([Reply(other)], ["qwen3:4b"]) as server:
        async with real(tmp_path, settings=small(server)) as app:
            await app.send("please rename Soup to Stew")
            await app.on_top(Candidates)
            screen = app.app.screen
            assert isinstance(screen, Candidates)
            await app.until(lambda: not screen.thinking)
            assert screen.titles[0] == "Rename Soup to Stew"


async def test_actions_stay_when_the_model_fails(tmp_path: Path) -> None:
    with LlmServer([Failure(400, "no such model")], ["qwen3:4b"]) as server:
        async with real(tmp_path, settings=small(server)) as app:
            screen = await choosing(app, "please rename Soup")
            await app.until(lambda: "Without the model" in app.screen())
            assert not screen.thinking
            assert screen.titles[0] == "Rename Soup to …"
            # A check may end while its row is being removed, part by part.
            await screen.rows[0].query(".remark").remove()
            screen.rows[0].show_remark(Content("late"))


async def test_a_message_can_begin_with_a_key_of_the_note(tmp_path: Path) -> None:
    async with real(tmp_path) as app:
        await app.press("ctrl+o", *"soup", "enter")
        assert app.app.focused is not app.prompt
        await app.press(*"open Ideas")
        assert app.prompt.text == "open Ideas"


async def test_all_actions_know_the_commands(tmp_path: Path) -> None:
    async with real(tmp_path) as app:
        await app.press("f2", *"undo")
        assert "Undo the last run" in app.screen()
        await app.press("escape", "f2", *"history", "enter")
        await app.on_top(History)
