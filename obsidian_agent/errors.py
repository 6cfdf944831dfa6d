"""The exception tree, and `Problem`, the form of every error and warning.

ObsidianAgentError            carries code, message, path, hint, retryable
├── ConfigError               a file, flag or folder that the user must correct (exit 2)
├── VaultError                FILE_NOT_FOUND, NOT_TEXT, FILE_EXISTS, NOT_A_FOLDER, FOLDER_NOT_EMPTY,
│   │                         IO_ERROR …
│   ├── PathRefused           PATH_OUTSIDE_VAULT, PATH_NOT_ALLOWED, PATH_INVALID
│   └── Conflict              CONFLICT: a file differs from what the preview read
├── ToolError                 a step cannot be executed: ARGUMENT_INVALID, TEXT_NOT_FOUND,
│                             MARKER_NOT_FOUND, COUNT_MISMATCH …
├── PlanError                 SCHEMA_INVALID and the other validation codes, with every problem
├── ProviderError             a model or another service failed (exit 5)
├── ServerError               an MCP server of the settings failed
├── ObsidianError             the running Obsidian is unreachable or refuses: OBSIDIAN_UNAVAILABLE
│                             and the plugin's codes
├── JournalError              the journal cannot be read or written; the vault is unchanged
└── AnswerNotWritten          a command's output could not be written; its effects remain

Cancellation is not in this tree: it is `asyncio.CancelledError` in async code and a result with the
status "cancelled" in runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

MIN_SIMILARITY = 60
"""Similarity, of 100, below which “did you mean” would be a guess."""


_SENTENCES: Final[Mapping[str, str]] = {
    "SCHEMA_INVALID": "The plan is not in the form that this program can run.",
    "UNKNOWN_REFERENCE": "A step uses a value that nothing provides.",
    "REFERENCE_ERROR": "A step uses a value that an earlier step does not provide.",
    "UNKNOWN_DEPENDENCY": "A step waits for a step that does not exist.",
    "DEPENDENCY_CYCLE": "Some steps wait for each other.",
    "DUPLICATE_ID": "Two parts of the plan have the same name.",
    "TOOL_NOT_FOUND": "A step needs something that this program cannot do.",
    "TRUNCATED_LIST": "The plan would run over only a part of what it found.",
    "RETRY_LIMIT": "A step that fails is tried fewer times than the plan says.",
    "ARGUMENT_INVALID": "A step does not say what to do in the form that this program can run.",
    "REORDERED": "The steps run in another order than the plan lists them.",
}
"""Problems whose messages name parts of the plan's document."""

_FIELDS: Final = frozenset(
    {"", "version", "goal", "assumptions", "riskLevel", "parameters", "defaults", "steps"}
)
"""The fields of a plan's document, with which a pointer into it begins."""


class Problem(Struct, frozen=True):
    """An error or a warning. `message` states what was wrong and what to do about it."""

    code: str
    message: str
    step_id: str | None = None
    instance: str | None = None
    path: str | None = None
    plain: str | None = None
    """The message without the words of the plan language, where it has any."""

    @property
    def sentence(self) -> str:
        """The message for users: without references, pointers and names of the plan language."""
        if self.plain is not None:
            return self.plain
        if self.code == "ARGUMENT_INVALID" and not self._is_in_document:
            return self.message  # of a value
        return _SENTENCES.get(self.code, self.message)

    @property
    def file(self) -> str | None:
        """The file that the problem is about; a pointer into the document of a plan is none."""
        return None if self._is_in_document else self.path

    @property
    def _is_in_document(self) -> bool:
        path = self.path
        return path is not None and path.startswith("/") and path.split("/")[1] in _FIELDS

    def to_json(self) -> dict[str, str]:
        """Return the JSON form of the contract: `{code, message, stepId?, instance?, path?}`."""
        location = (("stepId", self.step_id), ("instance", self.instance), ("path", self.path))
        return {"code": self.code, "message": self.message} | {
            key: value for key, value in location if value is not None
        }

    def at(self, step_id: str, instance: str | None = None) -> Problem:
        """Return this problem with a step and instance, keeping those that it already has."""
        return replace(self, step_id=self.step_id or step_id, instance=self.instance or instance)


class ObsidianAgentError(Exception):
    """The root of every error that this program raises on purpose."""

    default_code = "INTERNAL_ERROR"

    def __init__(
        self,
        message: str,
        *,
        code: str | None = None,
        path: str | None = None,
        hint: str | None = None,
        advice: str | None = None,
        retryable: bool = False,
    ) -> None:
        """`advice` is for the author of a plan, in its language: for models and `--json`."""
        super().__init__(message)
        self.code = code or self.default_code
        self.message = message
        self.path = path
        self.hint = hint
        self.advice = advice
        self.retryable = retryable

    def problem(self) -> Problem:
        """Return this error as data, with the hint and the advice appended to the message."""
        plain = f"{self.message} {self.hint}" if self.hint else self.message
        if self.advice is None:
            return Problem(self.code, plain, path=self.path)
        return Problem(self.code, f"{plain} {self.advice}", path=self.path, plain=plain)


class ConfigError(ObsidianAgentError):
    """A file, flag or folder that the user must correct."""

    default_code = "CONFIG_INVALID"


class VaultError(ObsidianAgentError):
    """A request that the vault cannot fulfil. Nothing was changed."""

    default_code = "IO_ERROR"


class PathRefused(VaultError):
    """A path that `vault.paths` or the directory walk refused."""

    default_code = "PATH_INVALID"


class Conflict(VaultError):
    """A file that differs from what the preview read, and is therefore not overwritten."""

    default_code = "CONFLICT"


class ToolError(ObsidianAgentError):
    """A step that cannot be executed with its arguments."""

    default_code = "ARGUMENT_INVALID"


class PlanError(ObsidianAgentError):
    """An invalid plan. `problems` holds everything that is wrong with it."""

    default_code = "SCHEMA_INVALID"

    def __init__(
        self,
        message: str,
        *,
        problems: Sequence[Problem] = (),
        code: str | None = None,
        hint: str | None = None,
    ) -> None:
        if code is None and problems:
            code = problems[0].code
        super().__init__(message, code=code, hint=hint)
        self.problems = tuple(problems) or (Problem(self.code, message),)


class ProviderError(ObsidianAgentError):
    """A failure of a model or another service. Nothing was run."""

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
        """Seconds that the service asked us to wait, or None."""


class ServerError(ObsidianAgentError):
    """An MCP server of the settings that is unreachable or did not answer."""

    default_code = "MCP_SERVER_FAILED"


class ObsidianError(ObsidianAgentError):
    """A running Obsidian that is unreachable, or refuses a request."""

    default_code = "OBSIDIAN_UNAVAILABLE"


class JournalError(ObsidianAgentError):
    """A journal that cannot be read or written. Nothing in the vault was changed."""

    default_code = "JOURNAL_ERROR"


class AnswerNotWritten(ObsidianAgentError):
    """A command's output that could not be written: a full disk, a closed stream.

    The effects of the command remain.
    """

    default_code = "IO_ERROR"


def nearest(name: str, known: Iterable[str], *, parts: bool = False) -> str | None:
    """Return the known name most similar to `name`, or None if none is similar enough.

    With `parts`, a name that contains `name` counts as similar.
    """
    # Only wrong names need this import, which takes a tenth of a command's start-up time.
    from rapidfuzz import fuzz, process

    match = process.extractOne(
        name,
        list(known),
        scorer=fuzz.WRatio if parts else fuzz.ratio,
        score_cutoff=MIN_SIMILARITY,
        processor=str.lower,
    )
    return match[0] if match else None


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return a sentence that offers the most similar known name, or ""."""
    match = nearest(name, known)
    return f" Did you mean '{match}'?" if match else ""
