"""Commands that tell something: each gets its data in the background and shows it."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping, Sequence
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
    from obsidian_agent.config.settings import Settings
    from obsidian_agent.plan.result import Preview
    from obsidian_agent.tui.screens.conversing import Conversing
    from obsidian_agent.tui.screens.desk import Desk
    from obsidian_agent.tui.talk import Talk

DEFAULT = "default"
NOBODY = "none"
NOT_HERE = "This is not known here."


class Telling:
    """Over what the program knows of itself; `insight` and `settings` may be missing."""

    def __init__(
        self,
        desk: Desk,
        talk: Talk,
        conversing: Conversing,
        preview: Callable[[Mapping[str, Any], frozenset[str], Mapping[str, Any]], None],
        insight: Insight | None,
        settings: LiveSettings | None,
    ) -> None:
        self._desk = desk
        self._talk = talk
        self._conversing = conversing
        self._preview = preview
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
            if wanted.endswith("/"):
                wanted = await self._of_service(wanted, insight)
        if not wanted:
            return
        chosen = None if wanted == DEFAULT else wanted
        await call(insight.choose_model, self._talk.current, chosen)
        self._talk.model = chosen
        self._desk.say("note", f"The next message goes to {sanitize.shortened(await call(insight.model_of, self._talk.current), 120)}.")
        await self.refresh()

    def trust(self) -> None:
        """What in the vault wants to tell the agent something."""
        self._with_insight(self._trust)

    async def _trust(self, insight: Insight) -> None:
        from obsidian_agent.tui.screens.trust import Trust

        self._desk.app.push_screen(Trust(self._desk.bridge, insight.customs))

    def agent(self, name: str) -> None:
        """An agent of the vault for this conversation; without a name the person picks one."""
        self._with_insight(partial(self._agent, name))

    async def _agent(self, name: str, insight: Insight) -> None:
        from obsidian_agent.tui.screens.pick import Pick

        call, current = self._desk.bridge.call, self._talk.current
        agents = (await call(insight.customs.library)).agents
        wanted: str | None = name
        if not wanted:
            rows = [(NOBODY, "nobody in particular"), *((key, agent.head.description) for key, agent in agents.items())]
            hint = "Only agents that you trust are here; /trust shows all."
            wanted = await self._desk.app.push_screen_wait(Pick("Choose an agent", rows, hint=hint))
        if not wanted:
            return
        if wanted != NOBODY and wanted not in agents:
            self._desk.panes.chat.hint(f"There is no agent {wanted} that you trust. /trust shows what the vault has.")
        elif current is None or self._talk.chats is None:
            self._desk.panes.chat.hint("Say something first: an agent is chosen for a conversation.")
        else:
            await call(self._talk.chats.choose_assistant, current, None if wanted == NOBODY else wanted)
            who = "Nobody in particular answers" if wanted == NOBODY else f"{sanitize.shortened(wanted, 80)} answers"
            self._desk.say("note", f"{who} from the next message on.")
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

    async def _of_service(self, vendor: str, insight: Insight) -> str:
        """A model of one service, from its own list where it gives one."""
        from obsidian_agent.tui.screens.pick import Pick

        self._desk.panes.chat.hint(f"Asking {vendor.rstrip('/')} for its models…")
        try:
            rows, hint = [(name, "") for name in await insight.service_models(vendor.rstrip("/"))], "Type another name if it is not listed."
        except ObsidianAgentError as error:
            rows, hint = [], f"{error.problem().message} Type the name."
        finally:
            self._desk.panes.chat.hint("")
        picked: str | None = await self._desk.app.push_screen_wait(
            Pick("Choose a model", rows, hint=sanitize.folded(hint, 3), free=True, typed=vendor)
        )
        return picked if picked and not picked.endswith("/") else ""

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
            gauge = f"ctx {tellings.gauge(outlook.use, 8)}" if outlook is not None else ""
            panes.chat.usage.show(tellings.usage_in_a_line(here), gauge, full=outlook is not None and outlook.use.full)

    def runs_at_once(self, preview: Preview) -> bool:
        """Whether the person's settings let this plan run without a question. Deletes and commands are always asked about."""
        return self._settings is not None and unasked(preview, self._settings.current)

    def insert(self) -> None:
        """The last answer into the open note: a plan like any other."""
        answer, path = self._desk.panes.chat.transcript.last_answer, self._desk.panes.note.path
        if not answer or path is None:
            self._desk.panes.chat.hint("Open the note first (Ctrl+O)." if answer else "There is no answer to insert yet.")
            return
        at_cursor = self._settings is not None and self._settings.current.insert_at_cursor
        self._desk.freeze_focus()
        self._preview(insertion(answer, path, at_cursor=at_cursor), frozenset(), {})

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


def unasked(preview: Preview, settings: Settings) -> bool:
    """Whether a complete preview may be applied without a question."""
    if not preview.valid or not preview.instances or any(flag.kind == "opaque" for flag in preview.flags):
        return False
    if any(change.kind == "delete" for change in preview.change_set.changes):
        return False
    match preview.risk.value:
        case "read-only":
            return settings.auto_approve_read_only and not preview.change_set.changes
        case "writes":
            return not settings.confirm_writes
        case _:
            return False


def insertion(answer: str, path: str, *, at_cursor: bool) -> dict[str, Any]:
    """A plan that puts a text into a note: at the cursor, or at its end."""
    text = answer.replace("${", "$${")
    if at_cursor:
        step = {"id": "insert", "tool": "editor.insertAtCursor", "args": {"text": text}, "preview": "Insert the answer at the cursor"}
    else:
        args = {"path": path.replace("${", "$${"), "mode": "append", "content": f"\n{text}\n"}
        step = {"id": "insert", "tool": "vault.updateFile", "args": args, "preview": "Add the answer at the end of the note"}
    return {"version": "1.0", "goal": "Insert the answer into the open note", "riskLevel": "writes", "steps": [step]}
