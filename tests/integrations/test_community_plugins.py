from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from obsidian_agent.errors import ProviderError
from obsidian_agent.integrations.community_plugins import (
    CommunityPlugin,
    PluginIndex,
    known_plugins,
    plugin_for,
    search,
)

LIST = [
    {
        "id": "dataview",
        "name": "Dataview",
        "author": "Michael B",
        "description": "Complex data views for notes.",
        "repo": "b/dataview",
    },
    {
        "id": "kanban",
        "name": "Kanban",
        "author": "mgmeyers",
        "description": "Markdown-backed boards.",
        "repo": "m/kanban",
    },
    {
        "id": "calendar",
        "name": "Calendar",
        "author": "Liam Cain",
        "description": "A simple month view of your daily notes.",
        "repo": "l/cal",
    },
    {
        "id": "boards",
        "name": "Sketch pad",
        "author": "Ann",
        "description": "Draw; no kanban here.",
        "repo": "a/pad",
        "extra": 1,
    },
    {"id": "broken"},
    "nonsense",
]
PLUGINS = [
    CommunityPlugin(*(each[key] for key in ("id", "name", "author", "description", "repo")))  # type: ignore[index]
    for each in LIST[:4]
]


class ListServer:
    """A web server on loopback that answers with `status` and `body`, and counts."""

    def __init__(self) -> None:
        self.status, self.body, self.asked, self.kind = (
            200,
            json.dumps(LIST).encode(),
            0,
            "text/plain",
        )
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.asked += 1
                self.send_response(outer.status)
                self.send_header("Content-Type", outer.kind)
                self.send_header("Content-Length", str(len(outer.body)))
                if outer.status == 302:
                    self.send_header("Location", "/elsewhere")
                self.end_headers()
                self.wfile.write(outer.body)

            def log_message(self, *args: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/community-plugins.json"
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


class Clock:
    def __init__(self) -> None:
        self.now = datetime(2026, 3, 14, 9, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture
def server() -> Iterator[ListServer]:
    server = ListServer()
    yield server
    server.close()


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_the_list_is_fetched_once_a_day(server: ListServer, clock: Clock, tmp_path: Path) -> None:
    file = tmp_path / "deep" / "plugin-index.json"
    found = asyncio.run(PluginIndex(file, clock, server.url).fetch())
    assert [plugin.id for plugin in found.plugins] == ["dataview", "kanban", "calendar", "boards"]
    assert not found.stale
    clock.now += timedelta(hours=23)
    assert asyncio.run(PluginIndex(file, clock, server.url).fetch()) == found
    assert server.asked == 1
    clock.now += timedelta(hours=2)
    assert asyncio.run(PluginIndex(file, clock, server.url).fetch()).fetched_at == clock.now
    assert server.asked == 2
    asyncio.run(PluginIndex(file, clock, server.url).fetch(refresh=True))
    assert server.asked == 3
    assert [path.name for path in file.parent.iterdir()] == ["plugin-index.json"]


@pytest.mark.parametrize("failure", ["gone", "status", "redirect", "html", "no json", "empty"])
def test_an_old_list_is_better_than_none(
    server: ListServer, clock: Clock, tmp_path: Path, failure: str
) -> None:
    file = tmp_path / "plugin-index.json"
    first = asyncio.run(PluginIndex(file, clock, server.url).fetch())
    _spoil(server, failure)
    clock.now += timedelta(days=3)
    url = "http://127.0.0.1:9/x" if failure == "gone" else server.url
    found = asyncio.run(PluginIndex(file, clock, url).fetch())
    assert found.stale
    assert (found.plugins, found.fetched_at) == (first.plugins, first.fetched_at)


@pytest.mark.parametrize("failure", ["gone", "status", "redirect", "html", "no json", "empty"])
def test_without_any_list_it_is_an_error(
    server: ListServer, clock: Clock, tmp_path: Path, failure: str
) -> None:
    _spoil(server, failure)
    url = "http://127.0.0.1:9/x" if failure == "gone" else server.url
    with pytest.raises(ProviderError, match="list of plugins cannot be"):
        asyncio.run(PluginIndex(tmp_path / "i.json", clock, url).fetch())
    assert not list(tmp_path.iterdir())


def _spoil(server: ListServer, failure: str) -> None:
    match failure:
        case "status":
            server.status = 503
        case "redirect":
            server.status = 302
        case "html":
            server.kind, server.body = "text/html", b"<html>log in</html>"
        case "no json":
            server.body = b"<<<"
        case "empty":
            server.body = b"[]"


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{}",
        '{"fetchedAt": "soon", "plugins": []}',
        '{"fetchedAt": "2026-03-14T09:00:00", "plugins": [{}]}',
    ],
)
def test_a_broken_copy_counts_as_none(
    server: ListServer, clock: Clock, tmp_path: Path, content: str
) -> None:
    file = tmp_path / "i.json"
    file.write_text(content)
    assert PluginIndex(file, clock, server.url).cached() is None
    assert len(asyncio.run(PluginIndex(file, clock, server.url).fetch()).plugins) == 4


def test_a_copy_from_the_future_is_not_fresh(
    server: ListServer, clock: Clock, tmp_path: Path
) -> None:
    asyncio.run(PluginIndex(tmp_path / "i.json", clock, server.url).fetch())
    clock.now -= timedelta(days=1)
    kept = PluginIndex(tmp_path / "i.json", clock, server.url).cached()
    assert kept is not None
    assert kept.stale


@pytest.mark.parametrize(
    "url", ["http://example.org/list.json", "ftp://example.org/x", "file:///etc/passwd"]
)
def test_only_https_is_asked(clock: Clock, tmp_path: Path, url: str) -> None:
    with pytest.raises(ProviderError) as caught:
        asyncio.run(PluginIndex(tmp_path / "i.json", clock, url).fetch())
    assert caught.value.code == "BASE_URL_REFUSED"


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("dataviw", "dataview"),
        ("DATAVIEW", "dataview"),
        ("kanban", "kanban"),
        ("kanban board", "kanban"),
        ("month view", "calendar"),
        ("liam cain", "calendar"),
        ("boards", "boards"),
    ],
)
def test_search_takes_slips_and_puts_names_first(query: str, first: str) -> None:
    found = search(PLUGINS, query)
    assert found[0][0].id == first
    assert found == sorted(found, key=lambda match: -match[1])


@pytest.mark.parametrize("query", ["", "  ", "!?", "zzzzqqqq"])
def test_nothing_fits(query: str) -> None:
    assert search(PLUGINS, query) == []


def test_a_limit() -> None:
    assert len(search(PLUGINS, "a view of notes and boards", limit=1)) == 1


@pytest.mark.parametrize(
    ("instruction", "plugin"),
    [
        ("Set up a Kanban board for my thesis", "obsidian-kanban"),
        ("Make flashcards from this note", "obsidian-spaced-repetition"),
        ("export this note as a PDF", "obsidian-pandoc"),
        ("Push my vault to GitHub every evening", "obsidian-git"),
        ("draw a mind map of the project", "obsidian-mind-map"),
        ("remind me tomorrow to call Jonas", "obsidian-reminder-plugin"),
        ("encrypt my diary", "meld-encrypt"),
        ("publish Home on the web", "digitalgarden"),
        ("check the spelling of my notes", "obsidian-languagetool-plugin"),
    ],
)
def test_what_a_plugin_does_is_recognised(instruction, plugin):
    found = plugin_for(instruction)
    assert found is not None
    assert found.id == plugin


@pytest.mark.parametrize(
    "instruction", ["rename a to b", "move my drafts", "what is a board game", ""]
)
def test_most_instructions_need_none(instruction):
    assert plugin_for(instruction) is None


def test_each_is_known_once():
    assert len({plugin.id for plugin in known_plugins()}) == len(known_plugins()) >= 25
