"""Commands that tell something: each gets its data in the background and shows it."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from obsidian_agent.errors import ObsidianAgentError
from obsidian_agent.tui import sanitize, tellings
from obsidian_agent.tui.screens.report import Report
from obsidian_agent.tui.tellings import Line
from obsidian_agent.tui.themes import SHORT
from obsidian_agent.tui.widgets.top_bar import TopBar

if TYPE_CHECKING:
    from obsidian_agent.agent.insight import Insight
    from obsidian_agent.config.live import LiveSettings
    from obsidian_agent.tui.screens.conversing import Conversing
    from obsidian_agent.tui.screens.desk import Desk
    from obsidian_agent.tui.talk import Talk

DEFAULT = "default"
NOT_HERE = "This is not known here."


class Telling:
    """Over what the program knows of itself; `insight` and `settings` may be missing."""

    def __init__(self, desk: Desk, talk: Talk, conversing: Conversing, insight: Insight | None, settings: LiveSettings | None) -> None:
        self._desk = desk
        self._talk = talk
        self._conversing = conversing
        self._insight = insight
        self._settings = settings

    def sent(self) -> None:
        """What was sent to which model, of which notes."""
        self._report("What was sent", lambda insight: tellings.sent_lines(insight.sent(), self._talk.current))

    def stats(self) -> None:
        """Tokens, cost and times."""
        self._report("Statistics", lambda insight: tellings.usage_lines(*insight.usage(self._talk.current)))

    def cache(self, rest: str) -> None:
        """What is kept ready; `clear` puts away what nobody uses."""

        def kept(insight: Insight) -> Sequence[Line]:
            if rest == "clear":
                insight.forget_kept()
            return tellings.kept_lines(insight.kept())

        self._report("What is kept ready", kept)

    def context(self, draft: str) -> None:
        """What a message would send."""
        self._with_insight(partial(self._context, draft))

    async def _context(self, draft: str, insight: Insight) -> None:
        self._desk.freeze_focus()
        found = await insight.outlook(self._talk.current, draft or self._desk.panes.chat.prompt.text)
        self._desk.app.push_screen(Report("What would be sent", tellings.outlook_lines(found)))

    def plugins(self, query: str) -> None:
        """Community plugins that fit some words."""
        self._with_insight(partial(self._plugins, query))

    async def _plugins(self, query: str, insight: Insight) -> None:
        self._desk.panes.chat.hint("Looking in Obsidian's list of community plugins…")
        try:
            found = await insight.plugins(query)
        finally:
            self._desk.panes.chat.hint("")
        self._desk.app.push_screen(Report(f"Community plugins: {sanitize.shortened(query, 60)}", tellings.plugin_lines(found)))

    def files(self) -> None:
        """The notes of which something went to a model in this conversation; one can be opened."""
        self._with_insight(self._files)

    async def _files(self, insight: Insight) -> None:
        from obsidian_agent.tui.screens.pick import Pick

        found = await self._desk.bridge.call(insight.read_files, self._talk.current)
        rows = [(each.path, f"{tellings.LEVELS[each.shared]} · {each.times}×") for each in found]
        empty = " No model was shown anything in this conversation."
        path = await self._desk.app.push_screen_wait(Pick("Notes read in this conversation", rows, empty=empty))
        if path is not None:
            await self._desk.show_note(path)

    def settings(self) -> None:
        """The settings, to be changed."""
        from obsidian_agent.tui.screens.settings import SettingsScreen

        if self._settings is None:
            self._desk.panes.chat.hint("There are no settings here.")
        else:
            self._desk.app.push_screen(SettingsScreen(self._desk.bridge, self._settings))

    def model(self, name: str) -> None:
        """Another model for this conversation; without a name the person picks one."""
        self._with_insight(partial(self._model, name))

    async def _model(self, name: str, insight: Insight) -> None:
        from obsidian_agent.tui.screens.pick import Pick

        call = self._desk.bridge.call
        wanted = name
        if not wanted:
            rows = [(DEFAULT, "the one of the settings again"), *await call(insight.known_models)]
            hint = "PROVIDER/NAME, such as openai/gpt-5 or ollama/qwen3. It takes effect with the next message of this conversation."
            picked: str | None = await self._desk.app.push_screen_wait(Pick("Choose a model", rows, hint=hint, free=True))
            wanted = picked or ""
        if not wanted:
            return
        chosen = None if wanted == DEFAULT else wanted
        await call(insight.choose_model, self._talk.current, chosen)
        self._talk.model = chosen
        self._desk.say("note", f"The next message goes to {sanitize.shortened(await call(insight.model_of, self._talk.current), 120)}.")
        await self.refresh()

    def apply(self, name: str) -> None:
        """A setting has changed: what of it the screen shows."""
        if self._settings is None:
            return
        current = self._settings.current
        if name == "theme":
            theme = SHORT.get((current.theme or "dark").lower(), current.theme or "")
            if theme in self._desk.app.available_themes:
                self._desk.app.theme = theme
        elif name == "keymap":
            self._desk.app.set_keymap(current.keymap)
        self._desk.run(self.refresh, "usage", exclusive=True)

    async def refresh(self) -> None:
        """Say anew which model is asked, what it used and how full its window is."""
        insight, panes = self._insight, self._desk.panes
        if insight is None:
            return
        call, thread_id = self._desk.bridge.call, self._talk.current
        model = await call(insight.model_of, thread_id)
        self._desk.screen.query_one(TopBar).name_planner(model or "offline planner")
        here, _ = await call(insight.usage, thread_id)
        if not here or not model:
            panes.chat.usage.show("", "")
            return
        try:
            outlook = await insight.outlook(thread_id, "")
        except ObsidianAgentError:
            outlook = None
        if thread_id == self._talk.current:
            gauge = tellings.gauge(outlook.use, 8) if outlook is not None else ""
            panes.chat.usage.show(tellings.usage_in_a_line(here), gauge, full=outlook is not None and outlook.use.full)

    def rename(self, title: str) -> None:
        """Give the conversation a title."""
        self._desk.run(partial(self._conversing.rename, title), "threads")

    def export(self) -> None:
        """The conversation as a note."""
        self._desk.run(self._conversing.export, "threads")

    def _report(self, title: str, lines: Callable[[Insight], Sequence[Line]]) -> None:
        async def report(insight: Insight) -> None:
            self._desk.app.push_screen(Report(title, await self._desk.bridge.call(lines, insight)))

        self._with_insight(report)

    def _with_insight(self, work: Callable[[Insight], Coroutine[Any, Any, None]]) -> None:
        if self._insight is None:
            self._desk.panes.chat.hint(NOT_HERE)
        else:
            self._desk.run(partial(work, self._insight), "telling", exclusive=True)
