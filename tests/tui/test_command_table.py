from __future__ import annotations

import pytest

from obsidian_agent.tui.commands import called, starting_with
from obsidian_agent.tui.screens.main import MainScreen

COMMANDS = MainScreen.commands()


def test_names_are_unique_and_can_be_written() -> None:
    names = [command.name for command in COMMANDS]
    assert len(names) == len(set(names))
    assert all(name.isalpha() and name.islower() for name in names)
    assert all(command.hint for command in COMMANDS if command.needs)


@pytest.mark.parametrize(
    ("message", "name", "known", "rest"),
    [
        ("/sent", "sent", True, ""),
        (" /plugins  task  lists ", "plugins", True, "task  lists"),
        ("/rename A\nB", "rename", True, "A\nB"),
        ("/nonsense here", "nonsense", False, "here"),
    ],
)
def test_a_command_is_called(message: str, name: str, known: bool, rest: str) -> None:
    found = called(message, COMMANDS)
    assert found is not None
    assert (found.name, found.command is not None, found.rest) == (name, known, rest)


@pytest.mark.parametrize("message", ["", "/", "hello", "/Projects/Garden.md is old", "a /sent", "/sent/it", "//"])
def test_other_messages_are_messages(message: str) -> None:
    assert called(message, COMMANDS) is None


def test_what_is_typed_is_completed() -> None:
    assert [command.name for command in starting_with("/", COMMANDS)] == [command.name for command in COMMANDS]
    assert [command.name for command in starting_with("/se", COMMANDS)][:4] == ["selection", "sent", "settings", "set"]
    assert "threads" in [command.name for command in starting_with("/ad", COMMANDS)]
    assert starting_with("/sent now", COMMANDS) == []
    assert starting_with("text", COMMANDS) == []
