"""Actions without a model: suggested while typing, picked, filled in, and listed on a screen."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from textual.widgets import Static

from llm_server import LlmServer, Reply
from obsidian_agent.bootstrap import Wiring, build_session
from obsidian_agent.config.live import LiveSettings
from obsidian_agent.offline.note_set import ACTIVE
from obsidian_agent.offline.recipe import packaged
from obsidian_agent.services.fields import Field
from obsidian_agent.services.focus import Focus
from obsidian_agent.services.macro import Macro
from obsidian_agent.tui.screens.actions import Actions
from obsidian_agent.tui.screens.candidates import Candidates
from obsidian_agent.tui.screens.dialogs import Pick
from obsidian_agent.tui.screens.models import FirstStart
from obsidian_agent.tui.screens.values_form import ValuesForm
from obsidian_agent.tui.widgets.prompt import TabHint
from obsidian_agent.tui.widgets.transcript import Transcript
from obsidian_agent.vault.filesystem.store import VaultStore
from support import settings_with
from tui.driving import MODEL, Driver, driving, driving_real
from tui.samples import create, plan_of

NOTES = {
    "Recipes/Soup.md": "---\nstatus: tried\n---\n# Soup\n\n## Broth\n\n## Noodles\n\n#winter\n",
    "Recipes/Bread.md": "# Bread\n\n#winter\n",
    "Cellar/Old.md": "Old\n",
    "Ideas.md": "Ideas\n",
}


@asynccontextmanager
async def real(
    tmp_path: Path,
    size: tuple[int, int] = (120, 40),
    settings: LiveSettings | None = None,
    *,
    first_start: bool = False,
    **values: str,
) -> AsyncIterator[Driver]:
    """Open the app over a vault on disk."""
    vault = tmp_path / "Vault"
    for name, text in NOTES.items():
        (vault / name).parent.mkdir(parents=True, exist_ok=True)
        (vault / name).write_text(text)
    settings = settings or settings_with(**values)
    with VaultStore.open(vault) as store:
        parts = Wiring(store, tmp_path / "state", settings=settings)
        async with driving_real(parts, size, first_start=first_start) as driver:
            yield driver


def likely(app: Driver) -> tuple[str, ...]:
    return app.main.query_one(TabHint).titles


# --- while a message is typed ---


@pytest.mark.parametrize("size", [(80, 24), (120, 40)])
async def test_three_actions_stand_under_a_message_and_tab_opens_the_form_of_the_first(
    tmp_path: Path, size: tuple[int, int]
) -> None:
    async with real(tmp_path, size) as app:
        await app.press(*"move Soup")
        assert len(likely(app)) == 3
        assert "Tab Move" in app.screen()
        await app.press("tab")
        await app.on_top(ValuesForm)
        assert "1 note" in app.screen()
        for key in ("c", "down", "enter", "enter"):
            await app.press(key)
        await app.settle()
        assert "Move Soup to Cellar" in app.plan_head()
        assert app.prompt.text == ""
        assert "move Soup" in app.transcript()
        await app.press("a")
        assert (tmp_path / "Vault" / "Cellar" / "Soup.md").exists()


async def test_the_line_is_gone_without_a_message_and_for_commands(tmp_path: Path) -> None:
    async with real(tmp_path) as app:
        await app.press(*"move")
        assert likely(app)
        await app.press(*["backspace"] * 4)
        assert likely(app) == ()
        await app.press(*"/hist")
        assert likely(app) == ()
        assert app.main.query_one(TabHint).display is False


async def test_tab_takes_a_suggestion_and_moves_the_focus_as_ever_where_no_action_stands_there() -> (
    None
):
    async with driving(settings=LiveSettings()) as app:
        await app.press("tab")
        assert app.app.focused is not app.prompt
        app.prompt.focus()
        await app.press(*"/hist", "tab")
        assert app.prompt.text == "/history"


async def test_a_title_of_a_foreign_action_is_text() -> None:
    macro = Macro("[red]Mine[/]", plan_of([create("new", "A.md")]))
    async with driving(
        settings=LiveSettings(), before=lambda wiring: build_session(wiring).saved.put(macro)
    ) as app:
        await app.press(*"mine")
        assert "[red]Mine[/]" in app.screen()


async def test_a_remote_model_that_plans_leaves_the_line_away_and_a_local_one_that_picks_does_not(
    tmp_path: Path,
) -> None:
    with LlmServer([Reply("ok")]) as server:
        async with real(
            tmp_path / "a", model="openai/gpt-5", base_url="https://models.test/v1"
        ) as app:
            await app.press(*"move Soup")
            assert likely(app) == ()
        async with real(tmp_path / "b", model="custom/small", base_url=server.openai_url) as app:
            await app.press(*"move Soup")
            assert len(likely(app)) == 3
        assert not server.requests


async def test_nothing_is_offered_while_a_turn_runs() -> None:
    settings = settings_with(model=MODEL, planning="menu")
    async with driving({"text": "Hello."}, {"text": "Hello."}, settings=settings) as app:
        app.model.gate.clear()
        app.prompt.text = "Hello"
        await app.pilot.press("enter")
        await app.pilot.press(*"move")
        await app.settle("turn")
        assert likely(app) == ()
        app.model.gate.set()
        await app.settle()
        assert len(likely(app)) == 3


# --- from a sentence that is not understood to a run ---


@pytest.mark.parametrize("size", [(80, 24), (120, 40)])
async def test_a_sentence_that_nobody_understands_comes_to_a_run_in_less_than_ten_keys(
    tmp_path: Path, size: tuple[int, int]
) -> None:
    async with real(tmp_path, size) as app:
        keys = 0

        async def press(*names: str) -> None:
            nonlocal keys
            keys += len(names)
            await app.press(*names)

        app.prompt.text = "put Soup away"
        await press("enter")
        await app.on_top(Candidates)
        titles = app.app.screen.titles  # type: ignore[attr-defined]
        assert len(titles) <= 3
        await press(*["down"] * titles.index("Move Soup to …"), *"ce")
        for key in ("down", "enter", "enter"):
            await press(key)
        await app.settle()
        assert app.stage == "plan", app.screen()
        await press("a")
        await app.until((tmp_path / "Vault" / "Cellar" / "Soup.md").exists)
        assert keys < 10


async def test_a_sentence_comes_back_into_the_box_when_no_action_is_chosen(
    tmp_path: Path,
) -> None:
    async with real(tmp_path) as app:
        await app.send("please move Soup somehow to Cellar")
        await app.on_top(Candidates)
        await app.press("escape")
        await app.settle()
        assert app.prompt.text == "please move Soup somehow to Cellar"
        assert "You chose no action" in app.screen()


async def test_a_value_that_cannot_be_read_is_said_under_its_field_by_the_reader_of_values(
    tmp_path: Path,
) -> None:
    async with real(tmp_path) as app:
        await app.press("f2", *"add tags", "enter")
        await app.on_top(ValuesForm)
        await app.press(*"folder:Nowhere", "tab", *"x", "enter")
        assert "There is no folder called “Nowhere”." in app.screen()
        assert app.app.focused is app.app.screen.query_one("#field-0")
        await app.press("ctrl+u", *"folder:Recipes")
        assert "2 notes: notes in Recipes" in app.screen()


async def test_choices_are_switched_and_headings_of_the_chosen_note_are_offered(
    tmp_path: Path,
) -> None:
    async with real(tmp_path) as app:
        await app.press("f2", *"add text to notes", "enter")
        await app.on_top(ValuesForm)
        await app.press(*"salt", "enter", *"Ideas", "tab")
        assert "● end" in app.screen()
        await app.press("right")
        assert "● top" in app.screen()
        await app.press("ctrl+s")
        await app.settle()
        await app.press("a")
        assert (tmp_path / "Vault" / "Ideas.md").read_text() == "salt\nIdeas\n"
        await app.press("escape")
        await app.press("f2", *"remove a section", "enter")
        await app.on_top(ValuesForm)
        note, heading = app.app.screen.query_one("#field-0"), app.app.screen.query_one("#field-1")
        note.value = "Soup"  # type: ignore[attr-defined]
        heading.focus()
        await app.press("down")
        assert "Broth" in app.screen()
        assert "Noodles" in app.screen()


async def test_values_of_a_candidate_that_lacks_nothing_can_still_be_changed(
    tmp_path: Path,
) -> None:
    async with real(tmp_path) as app:
        await app.send("please move Soup somehow to Cellar")
        await app.on_top(Candidates)
        titles = app.app.screen.titles  # type: ignore[attr-defined]
        assert titles[0] == "Move Soup to Cellar"
        await app.press("c")
        await app.on_top(ValuesForm)
        folder = app.app.screen.query_one("#field-1")
        folder.value = "Attic"  # type: ignore[attr-defined]
        await app.settle()
        assert "a new folder" in app.screen()
        await app.press("ctrl+s")
        await app.settle()
        assert "Move Soup to Attic" in app.plan_head()


async def test_a_value_of_the_message_holds_when_only_the_missing_one_is_filled_in(
    tmp_path: Path,
) -> None:
    async with real(tmp_path) as app:
        await app.press("ctrl+o", *"ideas", "enter")
        await app.send("please rename the note Soup")
        await app.on_top(Candidates)
        titles = app.app.screen.titles  # type: ignore[attr-defined]
        assert titles[0] == "Rename Soup to …"
        await app.press(*"Stew", "enter")
        await app.settle()
        assert "Rename Recipes/Soup.md to Recipes/Stew.md" in app.plan_head()


async def test_a_cleared_note_is_asked_for_instead_of_the_open_one(tmp_path: Path) -> None:
    async with real(tmp_path) as app:
        await app.press("ctrl+o", *"soup", "enter")
        await app.press("f2", *"remove a section", "enter")
        await app.on_top(ValuesForm)
        note, heading = app.app.screen.query_one("#field-0"), app.app.screen.query_one("#field-1")
        assert note.value == "this note"  # type: ignore[attr-defined]
        note.value, heading.value = "", "Broth"  # type: ignore[attr-defined]
        await app.press("ctrl+s")
        await app.settle()
        assert isinstance(app.app.screen, ValuesForm)
        assert "A value is required." in app.screen()


async def test_the_open_note_of_a_form_is_the_one_that_it_displayed(tmp_path: Path) -> None:
    async with real(tmp_path) as app:
        await app.press("ctrl+o", *"soup", "enter")
        await app.press("f2", *"remove a section", "enter")
        await app.on_top(ValuesForm)
        app.app.screen.query_one("#field-1").value = "Broth"  # type: ignore[attr-defined]
        await app.settle()
        assert "Recipes/Soup.md" in app.screen()
        app.panes.show_obsidian_focus(Focus("Ideas.md"))
        await app.press("ctrl+s")
        await app.settle()
        assert app.app.screen is app.main
        assert "Remove the section Broth from this note" in app.plan_head()


async def test_every_form_hands_on_exactly_the_texts_that_it_displays(tmp_path: Path) -> None:
    async with real(tmp_path) as app:
        await app.press("ctrl+o", *"soup", "enter")
        app.main.freeze_focus()
        recipes = [each for each in packaged() if ACTIVE in each.defaults.values()]
        assert len(recipes) > 20
        for recipe in recipes:
            values = {
                name: "Ideas.md"
                for name, wanted in recipe.inputs.items()
                if wanted.kind in ("note", "entry", "notes")
            }
            form = app.main.session.form(recipe.name)
            fields = [replace(field, optional=True) for field in form.fields(values)]
            handed_on: list[Mapping[str, str] | None] = []
            app.app.push_screen(ValuesForm(form.title, fields), handed_on.append)
            await app.on_top(ValuesForm)
            entries = [app.app.screen.query_one(f"#field-{at}") for at in range(len(fields))]
            displayed = [entry.value for entry in entries]  # type: ignore[attr-defined]
            await app.press("ctrl+s")
            await app.settle()
            assert handed_on == [dict(zip(recipe.inputs, displayed, strict=True))], recipe.name
            assert values.items() <= dict(handed_on[0] or {}).items()


async def test_an_unedited_text_keeps_the_line_ends_that_it_draws_as_symbols(
    tmp_path: Path,
) -> None:
    async with real(tmp_path) as app:
        handed_on: list[Mapping[str, str] | None] = []
        form = ValuesForm("Lines", [Field("text", value="a\nb"), Field("other")])
        app.app.push_screen(form, handed_on.append)
        await app.on_top(ValuesForm)
        assert "a␊b" in app.screen()
        form.query_one("#field-1").value = "x"  # type: ignore[attr-defined]
        await app.press("ctrl+s")
        await app.until(lambda: bool(handed_on))
        assert handed_on == [{"text": "a\nb", "other": "x"}]


async def test_a_remark_is_about_its_text_also_when_the_next_field_got_the_focus_at_once(
    tmp_path: Path,
) -> None:
    async with real(tmp_path) as app:
        await app.press("f2", *"set a property", "enter")
        await app.on_top(ValuesForm)
        notes = app.app.screen.query_one("#field-2")
        notes.value = "folder:Recipes"  # type: ignore[attr-defined]
        await app.settle()
        assert "2 notes: notes in Recipes" in app.screen()
        notes.focus()
        await app.settle()
        notes.value = "nothing like it"  # type: ignore[attr-defined]
        await app.pilot.pause()
        app.app.screen.query_one("#field-0").focus()
        await app.settle()
        assert "2 notes: notes in Recipes" not in app.screen()
        assert "“nothing like it” is not a search for notes." in app.screen()


# --- all actions ---


async def test_f2_has_every_action_by_subject_and_finds_one_by_letters(tmp_path: Path) -> None:
    async with real(tmp_path) as app:
        await app.press("f2")
        assert isinstance(app.app.screen, Actions)
        rows = app.app.screen.query_one("ChoiceList").rows  # type: ignore[attr-defined]
        headings = [row for row in rows if isinstance(row, str) and row[0] != " "]
        assert headings == [
            "Notes",
            "Text",
            "Lists",
            "Tasks",
            "Links",
            "Tags & properties",
            "Daily notes",
            "Find",
            "Macros",
        ]
        assert len(rows) > 80
        await app.press(*"unused att")
        assert [row.text for row in rows_of(app)] == ["Health of the vault"]
        await app.press("escape")
        await app.press("f2", *"count wo", "enter")
        await app.press("ctrl+s")
        assert (
            "words"
            in "\n".join(
                str(each.render()) for each in app.main.query_one(Transcript).query(Static)
            ).lower()
        )


async def test_enter_starts_the_best_match_and_what_was_chosen_is_offered_first(
    tmp_path: Path,
) -> None:
    async with real(tmp_path) as app:
        await app.press("f2", *"tag notes")
        assert rows_of(app)[0].text == "Add tags"
        await app.press("enter")
        await app.on_top(ValuesForm)
        assert "Add tags" in app.screen()
        await app.press("escape", "f2")
        rows = app.app.screen.query_one("ChoiceList").rows  # type: ignore[attr-defined]
        assert rows[0] == "Recent"
        assert rows[1].text == "Add tags"


def rows_of(app: Driver) -> list[Any]:
    rows = app.app.screen.query_one("ChoiceList").rows  # type: ignore[attr-defined]
    return [row for row in rows if not isinstance(row, str)]


async def test_letters_that_find_an_action_delete_none_and_an_action_of_the_program_cannot_be_deleted() -> (
    None
):
    macro = Macro("Deed", plan_of([create("new", "A.md")]))
    async with driving(before=lambda wiring: build_session(wiring).saved.put(macro)) as app:
        await app.press("f2", *"deed")
        assert isinstance(app.app.screen, Actions)
        assert rows_of(app)[0].text == "Deed"
        await app.press("tab", "slash", *"xqz")
        assert "No matching action" in app.screen()
        assert [macro.name for macro in app.session.saved.list()] == ["Deed"]


async def test_an_action_of_the_program_cannot_be_renamed(tmp_path: Path) -> None:
    async with real(tmp_path) as app:
        await app.press("f2", "tab", "r")
        assert "This action is built in" in app.screen()


async def test_the_command_finds_too(tmp_path: Path) -> None:
    async with real(tmp_path) as app:
        await app.send("/actions backlinks")
        assert isinstance(app.app.screen, Actions)
        assert rows_of(app)


# --- the first start ---


@pytest.fixture
def ollama(monkeypatch: pytest.MonkeyPatch) -> Iterator[LlmServer]:
    with LlmServer([Reply("ok")], ["nomic-embed-text:latest", "qwen3:4b"]) as server:
        monkeypatch.setenv("OLLAMA_HOST", server.url.removeprefix("http://"))
        yield server


async def test_a_first_start_offers_the_model_that_runs_here_once_and_writes_the_answer(
    ollama: LlmServer, tmp_path: Path
) -> None:
    file = tmp_path / "config.toml"
    async with real(tmp_path, settings=LiveSettings.load(file, {}), first_start=True) as app:
        await app.on_top(FirstStart)
        assert "Ollama runs on this computer with qwen3:4b. Use it?" in app.screen()
        assert not file.exists()
        await app.press("1")
        await app.settle()
        assert 'model = "ollama/qwen3:4b"' in file.read_text()
        assert "ollama/qwen3:4b is used from now on." in app.transcript()
        assert app.session.planner.name == "ollama/qwen3:4b"
    async with real(tmp_path, settings=LiveSettings.load(file, {}), first_start=True) as app:
        await app.until(lambda: "recovery" not in {worker.group for worker in app.app.workers})
        assert app.app.screen is app.main


async def test_only_the_menu_is_an_answer_and_escape_is_none(
    ollama: LlmServer, tmp_path: Path
) -> None:
    file = tmp_path / "config.toml"
    async with real(tmp_path, settings=LiveSettings.load(file, {}), first_start=True) as app:
        await app.on_top(FirstStart)
        await app.press("escape")
        assert not file.exists()
    async with real(tmp_path, settings=LiveSettings.load(file, {}), first_start=True) as app:
        await app.on_top(FirstStart)
        await app.press("down", "enter")
        await app.settle()
        assert file.read_text() == 'model = "none"\n'


async def test_a_service_with_a_key_asks_which_and_leaving_that_chooses_nothing(
    ollama: LlmServer, tmp_path: Path
) -> None:
    file = tmp_path / "config.toml"
    async with real(tmp_path, settings=LiveSettings.load(file, {}), first_start=True) as app:
        await app.on_top(FirstStart)
        await app.pilot.press("3")
        await app.on_top(Pick)
        assert "Which service?" in app.screen()
        assert "anthropic" in app.screen().casefold()
        await app.press("escape")
        assert app.app.screen is app.main
        assert not file.exists()


async def test_the_card_answers_nothing_that_was_being_typed(
    ollama: LlmServer, tmp_path: Path
) -> None:
    file = tmp_path / "config.toml"
    async with real(tmp_path, settings=LiveSettings.load(file, {}), first_start=True) as app:
        await app.until(lambda: isinstance(app.app.screen, FirstStart))
        await app.pilot.press("1", "2")
        assert app.prompt.text == "", "nothing is being typed yet"
        await app.pilot.press("x", "1", "2")
        await app.until(lambda: app.prompt.text == "x12")
        assert isinstance(app.app.screen, FirstStart)
        assert not file.exists()


async def test_where_nothing_runs_there_is_no_card_but_a_word(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from obsidian_agent.providers import local_models

    async def nothing(where: object) -> tuple[()]:
        return ()

    monkeypatch.setattr(local_models, "find_services", nothing)
    async with real(
        tmp_path, settings=LiveSettings.load(tmp_path / "config.toml", {}), first_start=True
    ) as app:
        await app.until(lambda: "No model is chosen" in app.screen())
        assert app.app.screen is app.main
