from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from obsidian_agent.agent.events import TokensUsed
from obsidian_agent.agent.privacy.consent import Level, ShareItem, ShareRequest
from obsidian_agent.agent.token_budget import WindowUse
from obsidian_agent.app_services import CacheInfo
from obsidian_agent.config.live import LiveSettings
from obsidian_agent.errors import Problem
from obsidian_agent.integrations.community_plugins import (
    CommunityPlugin,
    PluginMatch,
    PluginMatches,
)
from obsidian_agent.services.model_turns import RequestPreview
from obsidian_agent.threads.state import ThreadEntry
from obsidian_agent.tui import report_lines
from obsidian_agent.tui.screens.dialogs import wrap_lines
from obsidian_agent.tui.screens.notes import insertion_plan
from obsidian_agent.tui.screens.settings import format_value, group_rows, input_text
from obsidian_agent.tui.screens.threads import format_age
from obsidian_agent.tui.widgets.transcript import Citations, describe_lookup, transcript_entries
from tui.samples import vault_path

BAD = "x\x1b[2J"


def text(lines: Any) -> str:
    return "\n".join(line for line, _ in lines)


def entry(**fields: Any) -> dict[str, Any]:
    file = {"path": "A.md", "shared": "text", "characters": 1200, "allowedBy": "thread"}
    return {
        "time": "2026-01-02T03:04:05.6",
        "provider": "openai/x",
        "address": "https://a",
        "conversation": "t1",
        "files": [file],
    } | fields


def test_the_ledger_newest_first_and_harmless() -> None:
    assert "Nothing" in text(report_lines.sent_lines([], None))
    said = text(
        report_lines.sent_lines(
            [
                entry(tool="context"),
                entry(tool=BAD, provider=BAD, conversation="t2", files=[{"path": BAD}]),
            ],
            "t1",
        )
    )
    assert said.index("␛") < said.index("with your message")
    assert "▸ 2026-01-02 03:04:05  openai/x https://a  with your message" in said
    assert "A.md: its text, 1,200 characters; allowed by you, for the conversation" in said
    assert "\x1b" not in said
    assert f"and {5:,} earlier" in text(
        report_lines.sent_lines([entry()] * (report_lines.MAX_ENTRIES + 5), None)
    )


def test_what_would_be_sent() -> None:
    assert "No model" in text(report_lines.request_lines(None))
    item = ShareItem(path=vault_path("Diary.md"), level=Level.TEXT, size=1, tokens=1)
    question = ShareRequest(
        call_id="",
        kind="files",
        tool="",
        purpose="",
        args={},
        items=(item,),
        provider="p",
        address="a",
    )
    use = WindowUse(1000, system=300, history=200, reply=100, known=False)
    said = text(
        report_lines.request_lines(
            RequestPreview(
                provider="p/m",
                address="https://a",
                text=f"=== system\n{BAD}",
                use=use,
                cost=0.0123,
                questions=(question,),
                notices=(Problem("X", BAD),),
            )
        )
    )
    for words in (
        "To p/m at https://a",
        "60%",
        "1,000 (a guess)",
        "at most $0.0123",
        "asked about Diary.md",
        "x␛[2J",
    ):
        assert words in said
    assert "\x1b" not in said
    assert "unknown" in text(
        report_lines.request_lines(
            RequestPreview(provider="p", address="", text="", use=use, cost=None)
        )
    )
    assert report_lines.gauge(WindowUse(100, system=250), 4) == "████ 250%"


def test_statistics() -> None:
    turns = [
        TokensUsed(
            "a/b", 1000, 50, requests=2, cached=500, cost=0.01, seconds=3.0, first=0.5, tools=1.0
        ),
        TokensUsed("a/b", 3000, 50, cost=None, first=1.5),
        TokensUsed("local", 10, 5),
    ]
    said = text(report_lines.usage_lines(turns, []))
    for words in (
        "2 messages, 3 requests",
        "4,000 tokens in, 12% of them cached",
        "$0.0100 and 1 message without",
        "1.50 s at most",
    ):
        assert words in said
    assert "no model was used" in said
    assert report_lines.usage_summary(turns[:1]) == "1,000 in · 50 out · $0.0100"
    assert "conversation $0.0100" in report_lines.usage_summary(turns[:2])
    assert report_lines.cache_lines([CacheInfo("Index", "3 files", "/state/x")]) == [
        ("Index: 3 files", "$foreground"),
        ("  /state/x", "$quiet"),
    ]


def test_plugins() -> None:
    plugin = CommunityPlugin(id="t", name="Tasks", author=BAD, description=BAD, repo="o/r")
    found = PluginMatches(
        (PluginMatch(plugin, 1.0, True, True),), datetime(2026, 1, 2, tzinfo=UTC), True
    )
    said = text(report_lines.plugin_lines(found))
    assert "Tasks  ✓ on" in said
    assert "could not be updated" in said
    assert "\x1b" not in said
    assert "No plugin" in text(
        report_lines.plugin_lines(PluginMatches((), datetime(2026, 1, 2, tzinfo=UTC), False))
    )


def test_long_lines_go_on_indented() -> None:
    assert wrap_lines([("    one two three four", "x")], 14) == [
        ("    one two", "x"),
        ("    three four", "x"),
    ]
    assert [line for line, _ in wrap_lines([("a" * 25, "")], 10)] == ["a" * 10, "a" * 10, "a" * 5]
    assert wrap_lines([("", "")], 10) == [("", "")]


def test_a_kept_conversation_is_told_again() -> None:
    said = [
        ThreadEntry("person", "Hi", "2026-01-02T03:04:05+00:00"),
        ThreadEntry(
            "look", "Search the notes", data={"args": {"limit": 5, "query": "x"}, "why": "to see"}
        ),
        ThreadEntry(
            "model", "Half", "no time", "cut", {"sources": ["A.md", BAD], "besides": ["B.md", 7]}
        ),
        ThreadEntry("plan", "Do it"),
        ThreadEntry("run", "Do it", data={"success": True}),
        ThreadEntry("failed", "No."),
        ThreadEntry("person", "Lost", state="unsent"),
    ]
    entries = transcript_entries(said)
    assert [(entry.speaker, entry.text) for entry in entries] == [
        ("you", "Hi"),
        ("note", "Search the notes: “x” – to see"),
        ("agent", "Half"),
        ("note", ""),
        ("note", "Plan: Do it"),
        ("good", "Applied: Do it"),
        ("bad", "No."),
        ("you", "Lost"),
        ("note", "This was not sent."),
    ]
    assert entries[3].citations == Citations(("A.md", BAD), ("B.md",))
    assert entries[0].at is not None
    assert entries[2].at is None
    assert (
        describe_lookup("Read files", {"filePaths": ["A/B.md", "C.md", "D.md", "E.md"]}, "")
        == "Read files: B.md, C.md, D.md and 1 more"
    )
    assert describe_lookup("List", {"recursive": True}, "") == "List"


def test_ages() -> None:
    now = datetime(2026, 1, 10, 12, tzinfo=UTC)
    times = (
        "2026-01-10T11:59:30Z",
        "2026-01-10T11:30:00Z",
        "2026-01-10T09:00:00Z",
        "2026-01-08T09:00:00Z",
        "2025-12-01T00:00:00Z",
        "?",
    )
    assert [format_age(time, now) for time in times] == [
        "now",
        "30 min",
        "3 h",
        "2 d",
        "2025-12-01",
        "",
    ]


def test_settings_for_people() -> None:
    assert [format_value(value) for value in (None, True, ("A", "B"), {"a": "b"}, 0.2, "")] == [
        "–",
        "on",
        "A; B",
        "a: b",
        "0.2",
        "–",
    ]
    assert [input_text(value) for value in (None, ("A", "B"), {"a": "b"}, 5)] == [
        "",
        "A; B",
        '{"a": "b"}',
        "5",
    ]
    rows = group_rows(LiveSettings().rows())
    assert rows[0] == "Model"
    assert sum(isinstance(row, str) for row in rows) == len(
        {row.group for row in LiveSettings().rows()}
    )


def test_an_answer_goes_into_the_note_as_it_is() -> None:
    at_end = insertion_plan("Costs ${x}", "A.md", at_cursor=False)["steps"][0]
    assert (at_end["tool"], at_end["args"]) == (
        "vault.updateFile",
        {"path": "A.md", "mode": "append", "content": "\nCosts $${x}\n"},
    )
    assert (
        insertion_plan("x", "A.md", at_cursor=True)["steps"][0]["tool"] == "editor.insertAtCursor"
    )
