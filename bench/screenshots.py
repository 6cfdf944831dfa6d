"""Pictures of the app for README and docs/guide: `python -m bench.screenshots [NAME ...]`.

Every picture is the app as the command line opens it, on a copy of the sample vault, driven by
keys. The clock is frozen. A script of answers stands in for a model where one is shown.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import shutil
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, chdir
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory

from msgspec.structs import replace
from textual.pilot import Pilot

from obsidian_agent.bootstrap import Wiring
from obsidian_agent.cli.app import opened
from obsidian_agent.config.live import LiveSettings
from obsidian_agent.config.settings import Settings
from obsidian_agent.providers.keys import KeyStore
from obsidian_agent.tui.app import ObsidianAgentApp
from obsidian_agent.tui.backend import Backend, BackendParts
from obsidian_agent.vault.filesystem.store import VaultStore

ROOT = Path(__file__).parents[1]
PICTURES = ROOT / "docs" / "guide" / "pictures"
SAMPLE = ROOT / "fixtures" / "vault"
SIZE = (112, 32)
NOW = datetime(2025, 12, 16, 9, 30).astimezone()
PATIENCE = 60.0
"""Seconds after which a picture is given up."""

CALL = {
    "name": "vault__readFiles",
    "arguments": {
        "filePaths": ["Projects/Newsletter.md", "People/Maria Lindqvist.md"],
        "why": "they may say who writes the newsletter",
    },
}
ANSWERS = [{"calls": [CALL]}, {"text": "Maria writes it, says [[Newsletter]]."}]
"""The script in place of a model."""

BROKEN = "# Ideas\n\nSee [[Evergreen note]], [[Sour dough]] and [[Kitchen Renovations]].\n"
"""A note with links that lead nowhere."""


class Screenshot:
    """A running app to press keys in."""

    def __init__(self, app: ObsidianAgentApp, pilot: Pilot[None]) -> None:
        self.app = app
        self._pilot = pilot

    async def until(self, *texts: str) -> None:
        """Wait until texts are on the screen."""
        end = time.monotonic() + PATIENCE
        while not all(text in self._text() for text in texts):
            if time.monotonic() > end:
                raise SystemExit(f"{texts} did not appear:\n{self._text()}")
            await self._pilot.pause(0.1)
        await self._pilot.pause(1.0)  # keys answer a question only after a moment

    def _text(self) -> str:
        strips = self.app.screen._compositor.render_strips()
        return "\n".join(strip.text for strip in strips)

    async def send(self, message: str) -> None:
        """Send a message."""
        prompt = self.app.main.panes.chat.prompt
        prompt.focus()
        prompt.text = message
        await self._pilot.pause(0.2)
        await self._pilot.press("enter")

    async def press(self, *keys: str) -> None:
        """Press keys."""
        await self._pilot.press(*keys)
        await self._pilot.pause(0.3)

    def save(self, name: str) -> None:
        """Write the picture of the screen."""
        self.app.clear_notifications()
        PICTURES.mkdir(parents=True, exist_ok=True)
        picture = self.app.export_screenshot(title="obsidian-agent")
        (PICTURES / f"{name}.svg").write_text(picture, encoding="utf-8")
        print(f"docs/guide/pictures/{name}.svg")


async def preview(shot: Screenshot) -> None:
    """Show a plan before it runs."""
    await shot.send("Rename Newsletter to Letter from Leipzig")
    await shot.until("none of these")
    await shot.press("1")
    await shot.until("Letter from Leipzig.md", "Ready")


async def history(shot: Screenshot) -> None:
    """Show the history with the diff of a run."""
    await preview(shot)
    await shot.press("a")
    await shot.until("Done")
    await shot.press("escape", "f3")
    await shot.until("History")
    await shot.press("enter")
    await shot.until("Letter from Leipzig")


async def large_plan(shot: Screenshot) -> None:
    """Show a plan whose equal edits are folded."""
    await shot.send("Tag all notes in Projects with #reviewed")
    await shot.until("reviewed", "Ready")


async def health(shot: Screenshot) -> None:
    """Show the findings of the vault."""
    await shot.send("/health")
    await shot.until("Health of", "broken")
    await shot.press("enter")


async def waiting(shot: Screenshot) -> None:
    """Show the plans that wait."""
    await preview(shot)
    await shot.send('Move all notes in Meetings to "Archive"')
    await shot.until("Archive", "Ready")
    await shot.send("/plans")
    await shot.until("Waiting plans")


async def notes(shot: Screenshot) -> None:
    """Show a note that is read beside the conversation."""
    await shot.press("ctrl+o")
    await shot.until("Recent")
    await shot.press(*"home", "enter")
    await shot.until("Where the rest lives".lower(), "Books > Now")
    await shot.press("tab")


async def macros(shot: Screenshot) -> None:
    """Show the actions with a saved one."""
    await large_plan(shot)
    await shot.press("a")
    await shot.until("Done")
    await shot.press("m")
    await shot.until("Save")
    await shot.press(*"Review notes", "ctrl+s")
    await shot.press("escape", "f2")
    await shot.until("Review notes", "Actions")


async def sharing(shot: Screenshot) -> None:
    """Show the question before notes are sent to a model."""
    await shot.send("Who writes for the newsletter?")
    await shot.until("Newsletter.md", "Once")


SHOTS: Mapping[str, Callable[[Screenshot], Awaitable[None]]] = {
    "preview": preview,
    "history": history,
    "large-plan": large_plan,
    "health": health,
    "waiting": waiting,
    "notes": notes,
    "macros": macros,
    "sharing": sharing,
}


@asynccontextmanager
async def opening(folder: Path, *, has_model: bool) -> AsyncIterator[Screenshot]:
    """Open the app on a copy of the sample vault in a folder."""
    shutil.copytree(SAMPLE, folder / "Notes")
    (folder / "Notes" / "Notes" / "Ideas.md").write_text(BROKEN, encoding="utf-8")
    settings = Settings()
    if has_model:
        (folder / "model.json").write_text(json.dumps(ANSWERS), encoding="utf-8")
        settings = Settings(model="scripted/model.json")
    # The name of the model, which is on the picture, is a path below the folder.
    with chdir(folder), VaultStore.open(folder / "Notes") as store:
        live = LiveSettings(current=settings)
        wiring = Wiring(store, folder / "state", policy=None, now=NOW, settings=live)

        def parts() -> BackendParts:
            whole = opened(wiring)
            keys = KeyStore(wiring.state / "keys.toml", lambda: None)
            return replace(whole, services=replace(whole.services, keys=keys))

        app = ObsidianAgentApp(Backend(store.name, parts))
        async with app.run_test(size=SIZE, notifications=True) as pilot:
            shot = Screenshot(app, pilot)
            await shot.until("notes", "F1" if has_model else "offline planner")
            yield shot


async def take(name: str) -> None:
    """Take one picture."""
    with TemporaryDirectory(prefix="oa-") as folder:
        async with opening(Path(folder), has_model=name == "sharing") as shot:
            await SHOTS[name](shot)
            shot.save(name)


def main() -> None:
    """Take the pictures that are named, or all."""
    parser = argparse.ArgumentParser(prog="bench.screenshots", description=__doc__)
    parser.add_argument("names", nargs="*", choices=[*SHOTS, []], default=[])
    for name in parser.parse_args().names or SHOTS:
        asyncio.run(take(name))


if __name__ == "__main__":
    main()
