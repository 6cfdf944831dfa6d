"""What the terminal app needs of a session: one protocol and the data it hands over. The app knows nothing else of the core."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol

if TYPE_CHECKING:
    from obsidian_agent.agent.app_services import AppServices
    from obsidian_agent.agent.events import AgentEvent, Candidate, Effects
    from obsidian_agent.agent.fields import Completion, Field, Remark
    from obsidian_agent.agent.privacy.consent import ApproveShare
    from obsidian_agent.agent.threads.manager import ThreadManager
    from obsidian_agent.config.live import LiveSettings
    from obsidian_agent.errors import Problem
    from obsidian_agent.offline.recipe import Recipe
    from obsidian_agent.plan.model import ActionPlan
    from obsidian_agent.plan.result import Preview
    from obsidian_agent.tools.core.tool import Position, Selection
    from obsidian_agent.vault.index.keeper import IndexStatus
    from obsidian_agent.vault.views.changes import NetChange


class HistoryEntry(Protocol):
    """A run of the past. `time` is ISO 8601."""

    @property
    def run_id(self) -> str: ...
    @property
    def time(self) -> str: ...
    @property
    def goal(self) -> str: ...
    @property
    def status(self) -> str: ...
    @property
    def effects(self) -> Effects: ...
    @property
    def undone(self) -> bool: ...
    @property
    def undoable(self) -> bool: ...


class Cut(Protocol):
    """The end of a step of a run. `clean`: the run can be taken back to it."""

    @property
    def step(self) -> str: ...
    @property
    def clean(self) -> bool: ...


class UndoConflict(Protocol):
    """A file that is no longer as the run left it. `forcible`: it can be restored over what is there now."""

    @property
    def path(self) -> str: ...
    @property
    def reason(self) -> str: ...
    @property
    def forcible(self) -> bool: ...


class UndoReport(Protocol):
    """What an undo or redo did. With conflicts, the files named there were left as they are."""

    @property
    def run_id(self) -> str: ...
    @property
    def restored(self) -> Sequence[str]: ...
    @property
    def skipped(self) -> Sequence[str]: ...
    @property
    def conflicts(self) -> Sequence[UndoConflict]: ...
    @property
    def errors(self) -> Sequence[Problem]: ...
    @property
    def warnings(self) -> Sequence[Problem]: ...


class InterruptedRun(Protocol):
    """A run, undo or redo that a crash left half done, and the files it is about."""

    @property
    def run_id(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def time(self) -> str: ...
    @property
    def goal(self) -> str: ...
    @property
    def paths(self) -> Sequence[object]: ...


class Recovered(Protocol):
    """How an interrupted run was ended; `problems` name what was left alone, `warnings` what could not be given back."""

    @property
    def problems(self) -> Sequence[Problem]: ...
    @property
    def warnings(self) -> Sequence[Problem]: ...


class Macro(Protocol):
    """A saved action; its inputs are the parameters of its plan."""

    @property
    def name(self) -> str: ...
    @property
    def description(self) -> str | None: ...
    @property
    def plan(self) -> ActionPlan: ...
    @property
    def standing(self) -> Literal["trusted", "new", "changed"]:
        """Whether this person accepted the file as it is."""
        ...

    @property
    def sha256(self) -> str: ...
    def to_json(self) -> Mapping[str, Any]:
        """The document as it is kept and exported."""
        ...


class Imported(Protocol):
    """A saved action that was read from a file and judged, not yet kept."""

    @property
    def macro(self) -> Macro: ...
    @property
    def warnings(self) -> Sequence[Problem]: ...


class MovedVault(Protocol):
    """A vault that was at another place before."""

    @property
    def path(self) -> str: ...


class Runs(Protocol):
    """What was done and how to take it back. Everything may block."""

    def history(self, limit: int = 50) -> Sequence[HistoryEntry]:
        """Runs, newest first."""
        ...

    def undo(self, run_id: str | None, force: Collection[str] = (), skip: Collection[str] = (), to_step: str | None = None) -> UndoReport:
        """Undo a run (None: the last one with anything in effect), with `to_step` what came after that step.

        Nothing is overwritten that changed since, except the paths in `force`.
        """
        ...

    def plan_of(self, run_id: str) -> ActionPlan:
        """The plan of a run."""
        ...

    def cuts(self, run_id: str) -> Sequence[Cut]:
        """The steps of a run, in order."""
        ...

    def redo(self, force: Collection[str] = (), skip: Collection[str] = ()) -> UndoReport:
        """Redo what was undone last, or what is left of it; as `undo`."""
        ...

    def conflict_diff(self, run_id: str | None, path: str, *, redoing: bool = False) -> str:
        """Unified diff from the file as it is now to what undoing the run (or redoing) would put there."""
        ...

    def examine(self) -> Sequence[Problem]:
        """Runs that are missing from the journal, or damaged in it."""
        ...

    def moved(self) -> MovedVault | None:
        """Where the vault was, if it was moved and its history is kept for that place."""
        ...

    def adopt(self) -> object:
        """Take the history of a vault that was moved along."""
        ...

    def interrupted(self) -> Sequence[InterruptedRun]:
        """Runs that a crash left half done."""
        ...

    def recover(self, run_id: str | None, finish: bool) -> Sequence[Recovered]:
        """Finish or roll back an interrupted run."""
        ...


class Saved(Protocol):
    """Saved actions. Everything may block."""

    def list(self) -> Sequence[Macro]:
        """All, sorted by name."""
        ...

    def accept(self, name: str, sha256: str) -> Macro:
        """Trust an action with the content that was shown."""
        ...

    def save(
        self,
        run_id: str,
        name: str,
        description: str | None = None,
        parameters: Mapping[str, str] | None = None,
        *,
        replacing: bool = False,
    ) -> object:
        """Keep the plan of a run. `parameters`: name of a new parameter -> the literal text of the plan that it replaces."""
        ...

    def count(self, name: str) -> None:
        """Note that it was run to its end."""
        ...

    def judge(self, document: Mapping[str, Any]) -> Sequence[Problem]:
        """What is wrong with a document that shall be an action. Does not block."""
        ...

    def edit(self, name: str, document: Mapping[str, Any]) -> Macro:
        """Keep a changed document in the place of an action."""
        ...

    def rename(self, name: str, new_name: str) -> object: ...

    def delete(self, name: str) -> None: ...

    def export(self, name: str, file: str) -> object:
        """Write it to a new file of the operating system."""
        ...

    def read(self, file: str) -> Imported:
        """Read and judge a file; nothing is kept yet."""
        ...

    def keep(self, imported: Any, *, replacing: bool = False) -> object:
        """Accept what `read` returned."""
        ...


class Form(Protocol):
    """A recipe as a form. Everything but `title` and `unmet` may block."""

    @property
    def title(self) -> str: ...
    @property
    def unmet(self) -> str | None:
        """What must be there before it can be filled in."""
        ...

    def fields(self, values: Mapping[str, str]) -> Sequence[Field]:
        """All fields, with these values or the defaults in them."""
        ...

    def judge(self, texts: Mapping[str, str]) -> Mapping[str, Remark]:
        """What is to be said about the texts, by field."""
        ...

    def complete(self, name: str, text: str, texts: Mapping[str, str]) -> Sequence[Completion]:
        """The names of the vault that the text of a field may become."""
        ...


class Vault(Protocol):
    """The notes as they are now, and what the person looks at."""

    @property
    def name(self) -> str: ...

    def notes(self) -> Sequence[str]:
        """Paths of all notes, sorted."""
        ...

    def read_note(self, path: str) -> str:
        """The text of a note, line ends as they are."""
        ...

    def follow(self, tell: Callable[[IndexStatus], None]) -> None:
        """Load or build the index behind the screen and keep it fresh; `tell` is called in threads. Does not block."""
        ...

    def unfollow(self) -> None:
        """End what `follow` began."""
        ...

    def look_again(self) -> None:
        """Somebody else may have changed the vault. Does not block."""
        ...

    def watch_obsidian(self, tell: Callable[[LiveFocus | None], None]) -> None:
        """Keep up with what the person looks at in Obsidian; `tell` is called in a thread. Does not block."""
        ...

    def looked_at(self, looking: bool) -> None:
        """Whether the person looks at this program. Does not block."""
        ...

    def open_outside(self, path: str, line: int | None = None) -> str:
        """Show a file in Obsidian; by which way. Raises `ObsidianError` when there is none."""
        ...

    def set_focus(self, active_file: str | None, selection: Selection | None, cursor: Position | None) -> None:
        """What the person looks at; frozen into the next turn. Does not block."""
        ...


class LiveFocus(Protocol):
    """What the person looks at in Obsidian."""

    @property
    def active_file(self) -> str | None: ...
    @property
    def selection(self) -> Selection | None: ...
    @property
    def cursor(self) -> Position | None: ...


class Plans(Protocol):
    """What becomes of a plan that was previewed."""

    def verify(self, approved: Preview) -> Sequence[Problem]:
        """What of the vault is not as the preview said that it would be. May block."""
        ...

    def execute(self, approved: Preview, cancel: threading.Event) -> AsyncIterator[AgentEvent]:
        """Apply exactly this preview; ends with RunFinished. `cancel` stops it after the current file."""
        ...

    def diff(self, change: NetChange) -> str:
        """Unified diff of one change, "" for binary content."""
        ...


class Session(Protocol):
    """One vault and one planner. Methods that are no async iterators may block: the bridge calls them in a thread."""

    @property
    def vault(self) -> Vault: ...
    @property
    def plans(self) -> Plans: ...

    @property
    def planner_name(self) -> str: ...
    @property
    def runs(self) -> Runs: ...
    @property
    def saved(self) -> Saved: ...

    def settings_changed(self) -> None:
        """Take up changed settings."""
        ...

    def check_call(self, tool: str, args: Mapping[str, Any]) -> Sequence[Problem]:
        """What is wrong with other arguments for a read that a model asked for. Does not block."""
        ...

    def warm_up(self) -> None:
        """Prepare for the first question to a model, if there is one. Does not block."""
        ...

    def turn(self, message: str, approve: ApproveShare | None = None) -> AsyncIterator[AgentEvent]:
        """Events of one message; ends with Answer, NeedsInput, PreviewReady, RoundsUsedUp or TurnFailed.

        With `approve`, a model may look around: it is asked before anything of the vault is sent.
        """
        ...

    def fill(self, candidate: Candidate | None, values: Mapping[str, Any]) -> AsyncIterator[AgentEvent]:
        """Go on after NeedsInput with values for what was missing, for the chosen candidate if there were any."""
        ...

    def recipes(self) -> Sequence[Recipe]:
        """Everything that can be done without a model. May block."""
        ...

    def form(self, name: str) -> Form:
        """The form of a recipe or trusted macro (`macro:NAME`). May block."""
        ...

    def suggest(self, message: str, model: str | None = None) -> Sequence[Candidate]:
        """The likeliest actions for a message that is being written; none where a model will plan. May block."""
        ...

    def run_recipe(self, name: str, values: Mapping[str, Any], instruction: str | None = None) -> AsyncIterator[AgentEvent]:
        """Preview a recipe with values, or answer its question."""
        ...

    def preview_plan(
        self,
        document: Mapping[str, Any],
        disabled: frozenset[str] = frozenset(),
        values: Mapping[str, Any] | None = None,
        instruction: str | None = None,
        done: Mapping[str, Any] | None = None,
    ) -> AsyncIterator[AgentEvent]:
        """Preview a plan: an edited one, one with steps left out, a candidate, or what is left of one when the steps in `done` have run, with
        these outputs. `values` are those of its parameters.

        `instruction` is the message that the plan was made from: the preview tells what that does not name.
        """
        ...

    def run_macro(self, name: str, values: Mapping[str, Any]) -> AsyncIterator[AgentEvent]:
        """Preview a saved action; NeedsInput when values are missing."""
        ...


@dataclass(frozen=True, slots=True)
class Backend:
    """What the app shows: a vault's session and threads, what the program can tell of itself, and the person's settings."""

    session: Session
    threads: ThreadManager
    services: AppServices
    settings: LiveSettings
