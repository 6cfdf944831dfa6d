"""The candidates of a sentence on the command line, as in the app."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from obsidian_agent.agent.events import NeedsInput
from obsidian_agent.bootstrap import Wiring, build_session
from obsidian_agent.cli.main import main
from support import MakeVault, settings_with


@pytest.mark.parametrize(
    "sentence",
    [
        "please put the fruit away into Archive",
        "please rename Apple",
        "please delete the notes in Fruit",
        "please move Aple to Archive",
        "add 'Buy flour' to Inbox please",
    ],
)
def test_the_app_and_the_command_line_offer_the_same_in_one_order(
    make_vault: MakeVault, tmp_path: Path, capsys: pytest.CaptureFixture[str], sentence: str
) -> None:
    files = {"Fruit/Apple.md": "#fruit\n", "Inbox.md": "", "Archive/Old.md": "old\n"}
    store = make_vault(files)
    options = ("--state-dir", str(tmp_path / "state"), "--config", str(tmp_path / "none.toml"))
    main(["plan", sentence, "--json", "--vault", store.real_path, *options])
    session = build_session(Wiring(store, tmp_path / "app", settings=settings_with()))

    async def in_the_app() -> list[str]:
        return [
            candidate.title
            async for event in session.turn(sentence)
            if isinstance(event, NeedsInput)
            for candidate in event.candidates
        ]

    offered = asyncio.run(in_the_app())
    assert offered
    assert offered == [
        candidate["title"] for candidate in json.loads(capsys.readouterr().out)["candidates"]
    ]
    assert offered == [candidate.title for candidate in session.suggest(sentence)]
