"""Estimates of tokens, held against counts of a real tokenizer (cl100k) that were made once."""

from __future__ import annotations

import pytest

from obsidian_agent.agent.budget import MESSAGE, estimate, estimate_messages, estimate_offers
from obsidian_agent.providers.base import ChatMessage, ToolCall, ToolOffer

COUNTED = [
    ("We talked about the garden today, and decided to plant tomatoes along the southern wall next spring. " * 20, 383),
    ("Сегодня мы обсуждали план проекта и решили, что следующая встреча состоится в понедельник. " * 20, 801),
    ("今天我们讨论了项目计划，决定下次会议在星期一举行。请把笔记整理好。" * 20, 740),
    ("今日はプロジェクトの計画について話し合い、次の会議は月曜日に開催することにしました。" * 20, 840),
    ("- [ ] Buy soil 📅 2026-03-14 #garden\n- [x] Call [[Ada Lovelace]]\n" * 20, 600),
    ('{"path": "Projects/Plan.md", "line": 12, "preview": "status: open"}\n' * 20, 461),
]


@pytest.mark.parametrize(("text", "counted"), COUNTED)
def test_estimates_are_near(text: str, counted: int) -> None:
    assert abs(estimate(text) - counted) <= 0.16 * counted


def test_nothing_is_nothing() -> None:
    assert estimate("") == 0


def test_messages_and_offers_cost_more_than_their_words() -> None:
    message = ChatMessage("assistant", "Hello there", (ToolCall("a", "n", '{"path": "x"}'),))
    assert estimate_messages([message, ChatMessage("user", "")]) > estimate("Hello there") + 2 * MESSAGE
    assert estimate_offers([ToolOffer("n", "Reads.", {"type": "object"})]) > 8
