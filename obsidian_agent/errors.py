"""The exception tree, and `Problem`, the one shape of every error and warning that a person or a program gets to see.

ObsidianAgentError            carries code, message, path, hint, retryable
├── ConfigError               a file, flag or folder that the person must put right (exit 2)
├── VaultError                the vault said no: FILE_NOT_FOUND, NOT_TEXT, FILE_EXISTS, NOT_A_FOLDER, FOLDER_NOT_EMPTY, IO_ERROR …
│   ├── PathRefused           the one gate said no: PATH_OUTSIDE_VAULT, PATH_NOT_ALLOWED, PATH_INVALID
│   └── Conflict              CONFLICT: a file is no longer what the preview read
├── ToolError                 a step cannot be done as asked: ARGUMENT_INVALID, TEXT_NOT_FOUND, MARKER_NOT_FOUND, COUNT_MISMATCH …
├── PlanError                 SCHEMA_INVALID and the other validation codes; holds every problem found
├── ProviderError             a model or another service failed (exit 5)
├── ObsidianError             the Obsidian beside this program cannot be asked, or says no: OBSIDIAN_UNAVAILABLE and the plugin's codes
├── JournalError              the record of runs cannot be read or written; nothing in the vault was changed
└── AnswerNotWritten          standard output cannot take a command's answer; what was done stays done

Cancellation is never one of these: it stays `asyncio.CancelledError` in async code and a result with status "cancelled" in runs.
A wrong name is told with the known one that somebody probably meant (`did_you_mean`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from obsidian_agent.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Problem:
    """An error or a warning: what was wrong, where, and in `message` also what to do about it."""

    code: str
    message: str
    step_id: str | None = None
    instance: str | None = None
    path: str | None = None

    def to_json(self) -> dict[str, str]:
        """The wire form of the contract: `{code, message, stepId?, instance?, path?}`."""
        place = (("stepId", self.step_id), ("instance", self.instance), ("path", self.path))
        return {"code": self.code, "message": self.message} | {
            key: value for key, value in place if value is not None
        }

    def at(self, step_id: str, instance: str | None = None) -> Problem:
        """The same problem, placed at a step (and instance) unless it already says where it belongs."""
        return Problem(
            self.code, self.message, self.step_id or step_id, self.instance or instance, self.path
        )


class ObsidianAgentError(Exception):
    """Root of every error this program raises on purpose."""

    default_code = "INTERNAL_ERROR"

    def __init__(
        self,
        message: str,
        *,
        code: str | None = None,
        path: str | None = None,
        hint: str | None = None,
        retryable: bool = False,
    ) -> None:
        super().__init__(message)
        self.code = code or self.default_code
        self.message = message
        self.path = path
        self.hint = hint
        self.retryable = retryable

    def problem(self) -> Problem:
        """This error as data, the hint joined to the message."""
        text = f"{self.message} {self.hint}" if self.hint else self.message
        return Problem(self.code, text, path=self.path)


class ConfigError(ObsidianAgentError):
    """A file, flag or folder that the person must put right."""

    default_code = "CONFIG_INVALID"


class VaultError(ObsidianAgentError):
    """The vault cannot do what was asked; nothing was changed."""

    default_code = "IO_ERROR"


class PathRefused(VaultError):
    """The gate in `vault.paths` (or the walk in `vault.store`) refused a path."""

    default_code = "PATH_INVALID"


class Conflict(VaultError):
    """A file is no longer what the preview read, so nothing is written over it."""

    default_code = "CONFLICT"


class ToolError(ObsidianAgentError):
    """A step cannot be done as asked."""

    default_code = "ARGUMENT_INVALID"


class PlanError(ObsidianAgentError):
    """A plan is invalid; `problems` holds everything that is wrong with it."""

    default_code = "SCHEMA_INVALID"

    def __init__(
        self,
        message: str,
        *,
        problems: Sequence[Problem] = (),
        code: str | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(message, code=code or (problems[0].code if problems else None), hint=hint)
        self.problems = tuple(problems) or (Problem(self.code, message),)


class ProviderError(ObsidianAgentError):
    """A model or another service failed; nothing was run."""

    default_code = "API_ERROR"

    def __init__(
        self,
        message: str,
        *,
        code: str | None = None,
        hint: str | None = None,
        retryable: bool = False,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message, code=code, hint=hint, retryable=retryable)
        self.retry_after = retry_after
        """Seconds the service asked us to wait, or None."""


class ServerError(ObsidianAgentError):
    """An MCP server of the person's configuration cannot be reached, or did not answer."""

    default_code = "MCP_SERVER_FAILED"


class ObsidianError(ObsidianAgentError):
    """The Obsidian that runs beside this program cannot be asked, or refuses what was asked."""

    default_code = "OBSIDIAN_UNAVAILABLE"


class JournalError(ObsidianAgentError):
    """The record of runs cannot be read or written; nothing in the vault was changed."""

    default_code = "JOURNAL_ERROR"


class AnswerNotWritten(ObsidianAgentError):
    """Standard output cannot take a command's answer: a full disk, a closed stream. What was done stays done."""

    default_code = "IO_ERROR"


LEAST_LIKENESS = 60
"""Of 100: with less, “did you mean” would be a guess."""


def nearest(name: str, known: Iterable[str], *, parts: bool = False) -> str | None:
    """The known name most like `name`, or None when none is near. With `parts`, a part of a name counts for much."""
    # Imported here: only wrong names need it, and it is a tenth of the time that a headless run takes to start.
    from rapidfuzz import fuzz, process

    found = process.extractOne(
        name,
        list(known),
        scorer=fuzz.WRatio if parts else fuzz.ratio,
        score_cutoff=LEAST_LIKENESS,
        processor=str.lower,
    )
    return found[0] if found else None


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A sentence that offers the nearest known name, or ""."""
    found = nearest(name, known)
    return f" Did you mean '{found}'?" if found else ""
