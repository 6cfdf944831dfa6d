"""The terminal is informed when something waits and its window does not have the focus."""

from __future__ import annotations

import pytest
from textual import events

from agents import propose
from obsidian_agent.tui.presence import Presence, notification
from tui.driving import driving
from tui.samples import PROJECTS


def test_nothing_is_written_while_the_window_has_the_focus() -> None:
    written: list[str] = []
    presence = Presence("Notes", written.append, lambda: written.append("bell"), {})
    presence.report("A plan waits")
    assert written == []


def test_a_bell_a_title_and_a_notification_until_the_focus_is_back() -> None:
    written: list[str] = []
    presence = Presence(
        "No\x1btes", written.append, lambda: written.append("bell"), {"TERM_PROGRAM": "WezTerm"}
    )
    presence.set_focus(False)
    presence.report("A plan waits")
    presence.report("A plan waits")
    presence.set_focus(True)
    assert written == [
        "bell",
        "\x1b]2;● A plan waits – No␛tes\x07",
        "\x1b]9;No␛tes: A plan waits\x07",
        "\x1b]2;No␛tes – obsidian-agent\x07",
    ]


@pytest.mark.parametrize(
    ("environment", "sequence"),
    [
        ({"TERM": "foot"}, "\x1b]777;notify;V;a, b\x07"),
        ({"TERM": "xterm-kitty", "KITTY_WINDOW_ID": "1"}, "\x1b]9;V: a; b\x07"),
        ({"TERM": "foot", "TMUX": "/tmp/x"}, ""),
        ({"TERM": "xterm-256color"}, ""),
    ],
)
def test_only_known_terminals_get_a_notification(
    environment: dict[str, str], sequence: str
) -> None:
    assert notification("V", "a; b", environment) == sequence


async def test_a_plan_an_answer_and_a_run_are_reported() -> None:
    async with driving(propose(PROJECTS), {"text": "Yes."}) as app:
        reports: list[str] = []
        app.app.presence.report = reports.append  # type: ignore[method-assign, assignment]
        app.app.post_message(events.AppBlur())
        await app.planned()
        await app.press("a")
        await app.press("escape")
        await app.send("Are you there?")
        assert reports == [
            "A plan waits for your approval",
            "The run has ended",
            "The answer is ready",
        ]
