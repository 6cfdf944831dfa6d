"""The settings: one model, read from one TOML file of the person's, environment variables on top."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from obsidian_agent.errors import ConfigError

ENVIRONMENT_PREFIX = "OBSIDIAN_AGENT_"


def _patterns(value: Any) -> Any:
    return tuple(part.strip() for part in value.split(";") if part.strip()) if isinstance(value, str) else value


Patterns = Annotated[tuple[str, ...], BeforeValidator(_patterns)]
"""A list of patterns; in an environment variable they are separated by `;`."""


class Settings(BaseModel):
    """Every field is a key of the file and, in capitals behind OBSIDIAN_AGENT_, an environment variable. Nothing here comes from a vault."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    model: Annotated[
        str | None,
        Field(title="Model", description="PROVIDER/NAME, e.g. openai/gpt-5 or ollama/qwen3. Empty: the offline planner."),
    ] = None
    base_url: Annotated[
        str | None, Field(title="Base URL", description="Address of an OpenAI-compatible service; http only on this machine.")
    ] = None
    temperature: Annotated[float, Field(ge=0.0, le=1.0, title="Temperature", description="How freely the model answers.")] = 0.2
    max_tokens: Annotated[int | None, Field(ge=1, title="Longest answer", description="Tokens; empty leaves it to the service.")] = None
    allow_deletes: Annotated[bool, Field(title="Allow deletes", description="Plans may move notes to the vault's .trash folder.")] = False
    allow_commands: Annotated[bool, Field(title="Allow commands", description="Plans may run Obsidian commands; each is confirmed.")] = (
        False
    )
    share_allow: Annotated[
        Patterns, Field(title="Share without asking", description="Notes and folders that models may read: patterns such as Projects/**.")
    ] = ()
    share_deny: Annotated[
        Patterns, Field(title="Never share", description="Notes and folders that do not exist for models, such as Private or *.key.")
    ] = ()
    share_local: Annotated[
        bool, Field(title="Share with local models", description="Models on this machine may read everything but what is never shared.")
    ] = False
    theme: Annotated[str | None, Field(title="Theme", description="dark, light, or the name of a theme of the terminal app.")] = None
    keymap: Annotated[
        dict[str, str], Field(title="Keys", description="Other keys: the id of a key as docs/keys.md lists it, and what to press instead.")
    ] = {}


def load_settings(file: Path, environment: dict[str, str] | None = None) -> Settings:
    """Defaults, then the file, then the environment. A broken file or value is a ConfigError that names it."""
    values: dict[str, Any] = _read(file)
    values |= _from_environment(os.environ if environment is None else environment)
    try:
        return Settings.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"])
        raise ConfigError(f"Setting {field!r} is not valid: {first['msg']}.", path=str(file), hint=f"Correct it in {file}.") from error


def _read(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"The settings file {file} cannot be read: {error}.", path=str(file), hint="Correct or remove it.") from error


def _from_environment(environment: Any) -> dict[str, Any]:
    found = {}
    for name in Settings.model_fields:
        value = environment.get(ENVIRONMENT_PREFIX + name.upper())
        if value is not None:
            found[name] = value
    return found
