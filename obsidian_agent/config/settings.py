"""The settings: one model, read from one TOML file of the person's, environment variables on top."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, field_validator

from obsidian_agent.errors import ConfigError

ENVIRONMENT_PREFIX = "OBSIDIAN_AGENT_"
NO_MODEL: Final = "none"
"""The model of somebody who has decided for none; without a setting nobody has decided yet."""


def _patterns(value: Any) -> Any:
    return tuple(part.strip() for part in value.split(";") if part.strip()) if isinstance(value, str) else value


Patterns = Annotated[tuple[str, ...], BeforeValidator(_patterns)]
"""A list of patterns; in an environment variable they are separated by `;`."""


Group = Literal["Model", "What goes along", "Sharing", "Safety", "App"]


def _field(default: Any, group: Group, title: str, description: str, **limits: Any) -> Any:
    return Field(default, title=title, description=description, json_schema_extra={"group": group}, **limits)


class Settings(BaseModel):
    """Every field is a key of the file and, in capitals behind OBSIDIAN_AGENT_, an environment variable. Nothing here comes from a vault."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    model: str | None = _field(None, "Model", "Model", "PROVIDER/NAME, e.g. openai/gpt-5 or ollama/qwen3. none, or empty: the menu alone.")
    base_url: str | None = _field(None, "Model", "Base URL", "Address of an OpenAI-compatible service; http only on this machine.")
    temperature: float = _field(0.2, "Model", "Temperature", "How freely the model answers.", ge=0.0, le=1.0)
    max_tokens: int | None = _field(None, "Model", "Longest answer", "Tokens; empty leaves it to the service.", ge=1, le=1_000_000)
    timeout: float = _field(
        60.0, "Model", "Timeout", "Seconds without a sign of the service, after which it is given up.", ge=1.0, le=3600.0
    )
    streaming: bool = _field(True, "Model", "Streaming", "Show answers while they come, not when they are complete.")
    tool_calling: bool = _field(
        True, "Model", "Let models look around", "Models may search and read in the vault, as far as you share it, before they answer."
    )
    planning: Literal["auto", "menu", "plan"] = _field(
        "auto",
        "Model",
        "How models plan",
        "menu: pick from the actions of the menu, the rest as a plan; plan: write whole plans; auto: menu on this machine, else plan.",
    )
    requests_per_minute: int = _field(10, "Model", "Requests a minute", "To each service that is not on this machine.", ge=1, le=10_000)
    context_window: int | None = _field(
        None, "Model", "Context window", "Tokens that the model can hold; empty: what is known of it.", ge=1_000, le=100_000_000
    )
    prompt: Literal["auto", "full", "short"] = _field(
        "auto",
        "Model",
        "What models are told",
        "short: a third, for slow models and small windows; auto: short for models on this machine.",
    )
    agents: dict[str, str] = _field(
        {},
        "Model",
        "Agents",
        "Commands of other agents that speak ACP, as NAME = COMMAND; acp/NAME is then a model. opencode, claude, gemini are known.",
    )
    spending_cap: float | None = _field(None, "Model", "Spending cap", "US dollars a month, by list prices; empty: none.", ge=0.0)
    system_message: str = _field("", "Model", "Standing instructions", "Told to the model in every conversation.", max_length=20_000)
    auto_title: bool = _field(
        False, "Model", "Titles by the model", "Ask the model for a conversation's title; else your first words are it."
    )
    note_models: Patterns = _field(
        (),
        "Model",
        "Models that notes may choose",
        "PROVIDER/NAME or PROVIDER/*, for ai-model in a note's properties; else those of your provider.",
    )
    context_active_note: bool = _field(
        False, "What goes along", "Open note", "The text of the open note goes along with a message, once you allow it."
    )
    context_notes: int = _field(
        3,
        "What goes along",
        "Notes that fit",
        "So many notes that fit your words go along, if they are shared without asking.",
        ge=0,
        le=20,
    )
    context_fusion: Literal["plain", "structured"] = _field(
        "structured", "What goes along", "How notes are put together", "plain: one after the other; structured: listed and grouped."
    )
    share_allow: Patterns = _field(
        (), "Sharing", "Share without asking", "Notes and folders that models may read: patterns such as Projects/**."
    )
    share_deny: Patterns = _field((), "Sharing", "Never share", "Notes and folders that do not exist for models, such as Private or *.key.")
    share_local: bool = _field(
        False, "Sharing", "Share with local models", "Models on this machine may read everything but what is never shared."
    )
    level: Literal["read-only", "scoped-write", "full-write"] = _field(
        "full-write",
        "Safety",
        "What plans may change",
        "read-only: nothing; scoped-write: what write_allow names; full-write: all but write_deny.",
    )
    write_allow: Patterns = _field(
        (), "Safety", "May be changed", "With scoped-write, what plans may change: patterns such as Projects/**."
    )
    write_deny: Patterns = _field((), "Safety", "Never change", "Notes and folders that no plan may change, such as Private or *.key.")
    confirm_writes: bool = _field(True, "Safety", "Confirm changes", "Ask before a plan that changes notes runs.")
    allow_commands: bool = _field(
        False,
        "Safety",
        "Allow commands",
        "Plans in the app may run Obsidian commands; they are always asked about. On the command line: --allow-commands.",
    )
    allow_deletes: bool = _field(
        False,
        "Safety",
        "Allow deletes",
        "Plans in the app may move notes to the vault's .trash folder. On the command line: --allow-deletes.",
    )
    auto_approve_read_only: bool = _field(
        False, "Safety", "Run read-only plans at once", "A plan that changes nothing runs without being asked about."
    )
    insert_at_cursor: bool = _field(
        False, "App", "Insert answers at the cursor", "/insert puts an answer at the cursor of the open note, not at its end."
    )
    tracing: bool = _field(
        False, "App", "Trace", "Write what happens between this program and models to a file on this machine, without keys and note text."
    )
    theme: str | None = _field(None, "App", "Theme", "dark, light, or the name of a theme of the terminal app.")
    keymap: dict[str, str] = _field({}, "App", "Keys", "Other keys: the id of a key as docs/keys.md lists it, and what to press instead.")

    @field_validator("base_url")
    @classmethod
    def _address(cls, value: str | None) -> str | None:
        if value and not value.startswith(("https://", "http://")):
            raise ValueError("an address begins with https://, or on this machine with http://")
        return value or None


OLD_NAMES: Final[Mapping[str, str]] = {
    "enableLangSmith": "tracing",
    "langsmithEnabled": "tracing",
    "langsmith_enabled": "tracing",
    "customEndpoint": "base_url",
    "pluginSystemMessage": "system_message",
    "enableToolCalling": "tool_calling",
    "autoInferTitle": "auto_title",
    "generateAtCursor": "insert_at_cursor",
    "stream": "streaming",
    "maxTokens": "max_tokens",
    "confirmWrites": "confirm_writes",
    "allowDeletes": "allow_deletes",
    "autoApproveReadOnly": "auto_approve_read_only",
}
"""What settings were called in programs that people may come from; in a file they mean ours."""

RETIRED: Final = frozenset({"confirm_commands", "confirmCommands"})
"""Settings that are gone; in a file they mean nothing. Commands are asked about whatever it says."""


def load_settings(file: Path, environment: dict[str, str] | None = None) -> Settings:
    """Defaults, then the file, then the environment. A broken file or value is a ConfigError that names it."""
    values = in_file(file) | in_environment(environment)
    try:
        return Settings.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"])
        raise ConfigError(f"Setting {field!r} is not valid: {first['msg']}.", path=str(file), hint=f"Correct it in {file}.") from error


def in_file(file: Path) -> dict[str, Any]:
    """What a settings file says, under today's names; nothing when it is not there. Raises `ConfigError`."""
    try:
        return meaning(tomllib.loads(read_text(file)))
    except tomllib.TOMLDecodeError as error:
        raise _unreadable(file, error) from error


def meaning(found: Mapping[str, Any]) -> dict[str, Any]:
    """The keys of a settings file under today's names, without those that are gone; ours are stronger than old ones."""
    kept = {name: value for name, value in found.items() if name not in RETIRED}
    return {OLD_NAMES.get(name, name): value for name, value in kept.items() if name not in OLD_NAMES or OLD_NAMES[name] not in kept}


def read_text(file: Path) -> str:
    """The text of a settings file, line ends as they are; "" when it is not there. Raises `ConfigError`."""
    try:
        return file.read_bytes().decode("utf-8")
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        raise _unreadable(file, error) from error


def _unreadable(file: Path, error: Exception) -> ConfigError:
    return ConfigError(f"The settings file {file} cannot be read: {error}.", path=str(file), hint="Correct or remove it.")


def in_environment(environment: Mapping[str, str] | None = None) -> dict[str, Any]:
    variables = os.environ if environment is None else environment
    return {name: value for name in Settings.model_fields if (value := variables.get(ENVIRONMENT_PREFIX + name.upper())) is not None}
