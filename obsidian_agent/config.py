"""The settings: one model; what one TOML file of the person's says for all vaults, then for this one, then the environment, then options.

`[vaults."PATH"]` of the file holds settings for the vault at that path. No file of a vault is read for any of it. `LiveSettings` are those in use:
it knows where each value comes from, and changes one in the file, which keeps everything else that is in it.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import tomllib
from collections.abc import Mapping, MutableMapping, MutableSequence
from pathlib import Path
from typing import Annotated, Any, Final, Literal, NamedTuple

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
    field_validator,
    model_validator,
)

from obsidian_agent.dataclass import dataclass, field
from obsidian_agent.errors import ConfigError
from obsidian_agent.state_files import replace_file

ENVIRONMENT_PREFIX = "OBSIDIAN_AGENT_"
NO_MODEL: Final = "none"
"""The model of somebody who has decided for none; without a setting nobody has decided yet."""


def _patterns(value: Any) -> Any:
    return (
        tuple(part.strip() for part in value.split(";") if part.strip())
        if isinstance(value, str)
        else value
    )


def _extensions(value: Any) -> Any:
    found = _patterns(value)
    return (
        tuple(each.lstrip(".").lower() if isinstance(each, str) else each for each in found)
        if isinstance(found, (list, tuple))
        else found
    )


Patterns = Annotated[tuple[str, ...], BeforeValidator(_patterns)]
"""A list of patterns; in an environment variable they are separated by `;`."""


Extensions = Annotated[tuple[str, ...], BeforeValidator(_extensions)]
Level = Literal["read-only", "scoped-write", "full-write"]
HookEvent = Literal[
    "before_prompt", "after_prompt", "before_plan", "after_plan", "before_run", "after_run", "error"
]

Group = Literal["Model", "What goes along", "Sharing", "Safety", "App"]


def _field(default: Any, group: Group, title: str, description: str, **limits: Any) -> Any:
    return Field(
        default, title=title, description=description, json_schema_extra={"group": group}, **limits
    )


class McpServer(BaseModel):
    """An MCP server: a `command` with `args`, environment and folder, or an address. `timeout`: seconds that a call may take.

    `$NAME` in `env` and `headers` is that variable of this program's environment.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    command: str = ""
    args: tuple[str, ...] = ()
    env: dict[str, str] = {}
    cwd: str | None = None
    url: str | None = None
    headers: dict[str, str] = {}
    timeout: float = Field(60.0, ge=1.0, le=3600.0)

    @model_validator(mode="after")
    def _one_way(self) -> McpServer:
        if bool(self.command) == bool(self.url):
            raise ValueError("an MCP server has either a command or a url")
        if self.url and not re.match(
            r"https://|http://(localhost|127\.0\.0\.1|\[::1\])[:/]", self.url
        ):
            raise ValueError(
                "the url of an MCP server begins with https://, or on this machine with http://"
            )
        return self


class Settings(BaseModel):
    """Every field is a key of the file and, in capitals behind OBSIDIAN_AGENT_, an environment variable. Nothing here comes from a vault."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    model: str | None = _field(
        None,
        "Model",
        "Model",
        "PROVIDER/NAME, e.g. openai/gpt-5 or ollama/qwen3. none, or empty: the menu alone.",
    )
    base_url: str | None = _field(
        None,
        "Model",
        "Base URL",
        "Address of the service of the model above, if it is another than usual; http only on this machine.",
    )
    services: dict[Annotated[str, Field(pattern=r"^(custom:)?[a-z0-9][a-z0-9_-]*$")], str] = _field(
        {},
        "Model",
        "Addresses of services",
        'Base URLs by name: openai, …, and custom:NAME for any others, whose models are "custom:NAME/MODEL".',
    )
    temperature: float = _field(
        0.2, "Model", "Temperature", "How freely the model answers.", ge=0.0, le=1.0
    )
    max_tokens: int | None = _field(
        None,
        "Model",
        "Longest answer",
        "Tokens; empty leaves it to the service.",
        ge=1,
        le=1_000_000,
    )
    timeout: float | None = _field(
        None,
        "Model",
        "Timeout",
        "Seconds of silence, retries included, before a model is given up; empty: 120, and 300 for one on this machine or an agent.",
        ge=1.0,
        le=3600.0,
    )
    streaming: bool = _field(
        True, "Model", "Streaming", "Have answers sent while they are made; off: in one piece."
    )
    tool_calling: bool = _field(
        True,
        "Model",
        "Let models look around",
        "Models may search and read in the vault, as far as you share it, before they answer.",
    )
    planning: Literal["auto", "menu", "plan"] = _field(
        "auto",
        "Model",
        "How models plan",
        "menu: pick from the actions of the menu, the rest as a plan; plan: write whole plans; auto: menu on this machine, else plan.",
    )
    requests_per_minute: int = _field(
        10,
        "Model",
        "Requests a minute",
        "To each service that is not on this machine.",
        ge=1,
        le=10_000,
    )
    context_window: int | None = _field(
        None,
        "Model",
        "Context window",
        "Tokens that the model can hold; empty: what is known of it.",
        ge=1_000,
        le=100_000_000,
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
    spending_cap: float | None = _field(
        None, "Model", "Spending cap", "US dollars a month, by list prices; empty: none.", ge=0.0
    )
    system_message: str = _field(
        "",
        "Model",
        "Standing instructions",
        "Told to the model in every conversation.",
        max_length=20_000,
    )
    auto_title: bool = _field(
        False,
        "Model",
        "Titles by the model",
        "Ask the model for a conversation's title; else your first words are it.",
    )
    note_models: Patterns = _field(
        (),
        "Model",
        "Models that notes may choose",
        "PROVIDER/NAME or PROVIDER/*, for ai-model in a note's properties; else those of your provider.",
    )
    context_active_note: bool = _field(
        False,
        "What goes along",
        "Open note",
        "The text of the open note goes along with a message, once you allow it.",
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
        "structured",
        "What goes along",
        "How notes are put together",
        "plain: one after the other; structured: listed and grouped.",
    )
    share_allow: Patterns = _field(
        (),
        "Sharing",
        "Share without asking",
        "Notes and folders that models may read: patterns such as Projects/**.",
    )
    share_deny: Patterns = _field(
        (),
        "Sharing",
        "Never share",
        "Notes and folders that do not exist for models, such as Private or *.key.",
    )
    share_local: bool = _field(
        False,
        "Sharing",
        "Share with local models",
        "Models on this machine may read everything but what is never shared.",
    )
    level: Level = _field(
        "full-write",
        "Safety",
        "What plans may change",
        "read-only: nothing; scoped-write: what write_allow names; full-write: all but write_deny.",
    )
    write_allow: Patterns = _field(
        (),
        "Safety",
        "May be changed",
        "With scoped-write, what plans may change: patterns such as Projects/**.",
    )
    write_deny: Patterns = _field(
        (),
        "Safety",
        "Never change",
        "Notes and folders that no plan may change, such as Private or *.key.",
    )
    write_extensions: Extensions = _field(
        (),
        "Safety",
        "Kinds of files",
        "The only kinds of files that plans may change, such as md; empty: all.",
    )
    write_largest: int | None = _field(
        None,
        "Safety",
        "Largest file",
        "Bytes that a file may have after a change; empty: any size.",
        ge=0,
    )
    agent_levels: dict[str, Level] = _field(
        {},
        "Safety",
        "What agents' plans may change",
        "The name of another agent, or * for all of them, and a level; the lower one counts.",
    )
    tools_allow: Patterns = _field(
        (),
        "Safety",
        "Tools that need no question",
        "What is not asked about, such as vault.createFile or mcp__time__*. acp/NAME whole: that agent's plans count as a model's.",
    )
    tools_deny: Patterns = _field(
        (),
        "Safety",
        "Tools that nobody may use",
        "Neither plans nor models, such as vault.rename or editor.*.",
    )
    confirm_writes: bool = _field(
        True, "Safety", "Confirm changes", "Ask before a plan that changes notes runs."
    )
    allow_commands: bool = _field(
        False,
        "Safety",
        "Allow commands",
        "Plans in the app may run Obsidian commands, and models are told their names. On the command line: --allow-commands.",
    )
    commands_allow: Patterns = _field(
        (),
        "Safety",
        "Commands that need no question",
        "Ids of commands, such as daily-notes or templater-*.",
    )
    commands_deny: Patterns = _field(
        (), "Safety", "Commands that are never run", "Ids of commands, such as app:delete-file."
    )
    allow_deletes: bool = _field(
        False,
        "Safety",
        "Allow deletes",
        "Plans in the app may move notes to the vault's .trash folder. On the command line: --allow-deletes.",
    )
    auto_approve_read_only: bool = _field(
        False,
        "Safety",
        "Run read-only plans at once",
        "A plan that changes nothing runs without being asked about.",
    )
    insert_at_cursor: bool = _field(
        False,
        "App",
        "Insert answers at the cursor",
        "/insert puts an answer at the cursor of the open note, not at its end.",
    )
    tracing: bool = _field(
        False,
        "App",
        "Trace",
        "Write what happens between this program and models to a file on this machine, without keys and note text.",
    )
    theme: str | None = _field(
        None, "App", "Theme", "dark, light, or the name of a theme of the terminal app."
    )
    mcp_servers: dict[
        Annotated[str, StringConstraints(pattern=r"^[a-zA-Z0-9]([a-zA-Z0-9-]{0,30}[a-zA-Z0-9])?$")],
        McpServer,
    ] = _field(
        {},
        "Model",
        "MCP servers",
        "Other programs' tools for the model to look around with: a command or url each. tools_allow: mcp__NAME__TOOL is called unasked.",
    )
    keymap: dict[str, str] = _field(
        {},
        "App",
        "Keys",
        "Other keys: the id of a key as docs/keys.md lists it, and what to press instead.",
    )

    hooks: dict[HookEvent, Annotated[tuple[str, ...], Field(min_length=1)]] = _field(
        {},
        "App",
        "Hooks",
        'Commands of yours at events, such as before_run = ["~/bin/check"], which may stop a run. docs/hooks.md.',
    )

    @field_validator("base_url", "services")
    @classmethod
    def _address(cls, value: Any) -> Any:
        for address in value.values() if isinstance(value, dict) else [value] if value else []:
            if not address.startswith(("https://", "http://")):
                raise ValueError("an address begins with https://, or on this machine with http://")
        return value or ({} if isinstance(value, dict) else None)


VAULTS: Final = "vaults"
"""The table of the file with a table for each vault, by its path."""

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


class Layers(NamedTuple):
    """What is said of settings, each stronger than the one before it. `options` of the command line add to what may be shared."""

    file: Mapping[str, Any] = {}
    vault: Mapping[str, Any] = {}
    environment: Mapping[str, Any] = {}
    options: Mapping[str, Any] = {}

    def merged(self) -> dict[str, Any]:
        """What holds. An address goes with the model beside it: who names a model of another service leaves it behind."""
        found: dict[str, Any] = {}
        for layer in self:
            if "model" in layer and "model" in found and _service(layer) != _service(found):
                found.pop("base_url", None)
            found |= layer
        if allowed := self.options.get("share_allow"):
            before = Layers(self.file, self.vault, self.environment).merged()
            found["share_allow"] = (*_patterns(before.get("share_allow", ())), *allowed)
        return found

    def settings(self) -> Settings:
        """Raises pydantic's `ValidationError`."""
        return Settings.model_validate(self.merged())


def _service(layer: Mapping[str, Any]) -> str:
    return str(layer["model"]).partition("/")[0].lower()


def load_layers(
    file: Path,
    environment: Mapping[str, str] | None = None,
    vault: Path | None = None,
    options: Mapping[str, Any] | None = None,
) -> Layers:
    """All layers, checked. A broken file or value is a `ConfigError` that names it."""
    layers = Layers(*in_file(file, vault), in_environment(environment), options or {})
    try:
        layers.settings()
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"])
        raise ConfigError(
            f"Setting {field!r} is not valid: {first['msg']}.",
            path=str(file),
            hint=f"Correct it in {file}.",
        ) from error
    return layers


def load_settings(file: Path, environment: Mapping[str, str] | None = None) -> Settings:
    """The settings for any vault. Raises `ConfigError`."""
    return load_layers(file, environment).settings()


def in_file(file: Path, vault: Path | None = None) -> tuple[dict[str, Any], dict[str, Any]]:
    """What a settings file says for all vaults, and for this one; nothing when it is not there. Raises `ConfigError`."""
    try:
        return meaning(tomllib.loads(read_text(file)), vault)
    except (tomllib.TOMLDecodeError, TypeError) as error:
        raise _unreadable(file, error) from error


def meaning(
    found: Mapping[str, Any], vault: Path | None = None
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The keys of a settings file under today's names, without those that are gone; ours are stronger than old ones.

    Second what it says for a vault (its real path). Raises TypeError where that is no table.
    """
    kept = {name: value for name, value in found.items() if name not in RETIRED and name != VAULTS}
    own = {
        OLD_NAMES.get(name, name): value
        for name, value in kept.items()
        if name not in OLD_NAMES or OLD_NAMES[name] not in kept
    }
    table = table_of(found, vault)
    return own, meaning(found[VAULTS][table])[0] if table is not None else {}


def table_of(found: Mapping[str, Any], vault: Path | None) -> str | None:
    """The key under `vaults` that is this vault's, if there is one. Raises TypeError for what is no table."""
    tables = found.get(VAULTS, {})
    if not isinstance(tables, Mapping) or not all(
        isinstance(each, Mapping) for each in tables.values()
    ):
        raise TypeError(f'{VAULTS} holds something else than tables [{VAULTS}."PATH"]')
    return next(
        (
            path
            for path in tables
            if vault is not None and Path(path).expanduser().resolve() == vault
        ),
        None,
    )


def read_text(file: Path) -> str:
    """The text of a settings file, line ends as they are; "" when it is not there. Raises `ConfigError`."""
    try:
        return file.read_bytes().decode("utf-8")
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        raise _unreadable(file, error) from error


def _unreadable(file: Path, error: Exception) -> ConfigError:
    return ConfigError(
        f"The settings file {file} cannot be read: {error}.",
        path=str(file),
        hint="Correct or remove it.",
    )


def in_environment(environment: Mapping[str, str] | None = None) -> dict[str, Any]:
    variables = os.environ if environment is None else environment
    return {
        name: value
        for name in Settings.model_fields
        if (value := variables.get(ENVIRONMENT_PREFIX + name.upper())) is not None
    }


Source = Literal["default", "file", "vault", "environment", "option"]


@dataclass(frozen=True, slots=True)
class SettingRow:
    """A setting as a screen shows it. `variable` is the environment variable that is stronger than the file; `kind` how it is edited.

    The source "vault" is what the file says for this vault alone.
    """

    name: str
    group: str
    title: str
    description: str
    value: Any
    default: Any
    source: Source
    kind: Literal["switch", "number", "text", "list", "choice", "table"]
    choices: tuple[str, ...] = ()
    variable: str = ""

    @property
    def stronger(self) -> str:
        """What is stronger than the settings file, as a sentence; "" for nothing."""
        match self.source:
            case "environment":
                return f"{self.variable} is set, and stronger than the settings file."
            case "option":
                return "The command line says so, and is stronger than the settings file."
            case _:
                return ""


@dataclass(slots=True)
class LiveSettings:
    """`file` None: settings that are nowhere on disk. `vault`: the real path of the vault they are for. Methods may block."""

    file: Path | None = None
    current: Settings = field(default_factory=Settings)
    environment: Mapping[str, str] | None = None
    vault: Path | None = None
    options: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def load(
        cls,
        file: Path,
        environment: Mapping[str, str] | None = None,
        *,
        vault: Path | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> LiveSettings:
        """From a settings file, which need not exist, for a vault, with what options say on top. Raises `ConfigError`."""
        layers = load_layers(file, environment, vault, options)
        return cls(file, layers.settings(), environment, vault, layers.options)

    @property
    def chosen(self) -> str | None:
        """The model of the settings; None for the menu alone."""
        return None if self.current.model == NO_MODEL else self.current.model

    def rows(self) -> list[SettingRow]:
        """Every setting, in the order of the model."""
        layers, schema = self._layers(), Settings.model_json_schema()["properties"]
        return [_row(name, schema[name], self.current, layers) for name in Settings.model_fields]

    def set(self, name: str, value: Any) -> Settings:
        """Change a setting (None: back to its default), in the file and in use. Text is understood as `/set` and a form give it.

        Raises `ConfigError` for an unknown name, a bad value, and a file that cannot be written; then everything stays as it was.
        """
        return self.change({name: value})

    def change(self, changes: Mapping[str, Any], *, here: bool = False) -> Settings:
        """Change settings that belong together, such as a model and its address: all of them or none. As `set` otherwise.

        They change for all vaults, or (`here`, or where the file says one of them for this vault) for this vault alone.
        """
        for name in changes:
            if name not in Settings.model_fields:
                raise ConfigError(
                    f"There is no setting {name!r}.",
                    code="ARGUMENT_INVALID",
                    hint="/settings lists all.",
                )
        layers = self._layers()
        here = here or any(name in layers.vault for name in changes)
        stored = layers.vault if here else layers.file
        values = {key: each for key, each in stored.items() if key not in changes}
        values |= {
            name: _understood(name, value) for name, value in changes.items() if value is not None
        }
        try:
            checked = Settings.model_validate(values)
            current = layers._replace(**{"vault" if here else "file": values}).settings()
        except ValidationError as error:
            first = error.errors()[0]
            at = str(first["loc"][0]) if first["loc"] else ", ".join(changes)
            raise ConfigError(
                f"{at} is not valid: {first['msg']}.", code="ARGUMENT_INVALID"
            ) from error
        if self.file is not None:
            # TOML has no null: a setting without a value is one that the file does not name.
            dumped = checked.model_dump(mode="json")
            kept = {
                name: None if value is None else dumped[name] for name, value in changes.items()
            }
            _write(
                self.file,
                _edited(read_text(self.file), kept, checked, self.vault if here else None),
            )
        self.current = current
        return current

    def _layers(self) -> Layers:
        if self.file is None:
            return Layers(
                self.current.model_dump(exclude_unset=True),
                {},
                in_environment(self.environment),
                self.options,
            )
        return Layers(
            *in_file(self.file, self.vault), in_environment(self.environment), self.options
        )


_SOURCES: tuple[Source, ...] = ("file", "vault", "environment", "option")


def _row(name: str, schema: Mapping[str, Any], settings: Settings, layers: Layers) -> SettingRow:
    info = Settings.model_fields[name]
    source: Source = next(
        (
            source
            for source, layer in reversed([*zip(_SOURCES, layers, strict=True)])
            if name in layer
        ),
        "default",
    )
    extra = info.json_schema_extra if isinstance(info.json_schema_extra, dict) else {}
    choices = tuple(str(each) for each in schema.get("enum", ()))
    types = {schema.get("type"), *(each.get("type") for each in schema.get("anyOf", ()))}
    kinds = {
        "boolean": "switch",
        "number": "number",
        "integer": "number",
        "array": "list",
        "object": "table",
    }
    kind: Any = (
        "choice" if choices else next((kinds[each] for each in kinds if each in types), "text")
    )
    return SettingRow(
        name=name,
        group=str(extra.get("group", "App")),
        title=info.title or name,
        description=info.description or "",
        value=getattr(settings, name),
        default=info.get_default(call_default_factory=True),
        source=source,
        kind=kind,
        choices=choices,
        variable=ENVIRONMENT_PREFIX + name.upper(),
    )


def _understood(name: str, value: Any) -> Any:
    """A value that was typed, as the type of its setting."""
    if not isinstance(value, str):
        return value
    text = value.strip()
    types = str(Settings.model_fields[name].annotation)
    if "bool" in types:
        known = {
            "on": True,
            "true": True,
            "yes": True,
            "1": True,
            "off": False,
            "false": False,
            "no": False,
            "0": False,
        }
        return known.get(text.lower(), text)
    if not text and "None" in types:
        return None
    if "dict" in types:
        with contextlib.suppress(ValueError):
            return json.loads(text)
    return value


def _edited(text: str, changes: Mapping[str, Any], intended: Settings, vault: Path | None) -> str:
    """The file's text with some keys changed where they stand, or taken out (None); comments, order and everything else stay.

    They are those of a vault's own table, or for all vaults (None); `intended` is what all keys there are to mean then. Raises `ConfigError`
    when they, or any others, would mean anything else.
    """
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    names = ", ".join(changes)
    try:
        document = tomlkit.parse(text)
        before = tomllib.loads(text)
        place: Any = document
        if vault is not None:
            name = table_of(before, vault) or str(vault)
            tables = document.setdefault(VAULTS, tomlkit.table(is_super_table=True))
            place = tables.setdefault(name, tomlkit.table())
        _put(place, changes)
        fresh = tomlkit.dumps(document)
        after = tomllib.loads(fresh)
        meant = Settings.model_validate(meaning(after, vault)[vault is not None])
        as_intended = meant == intended and _others(after, vault) == _others(before, vault)
    except (TOMLKitError, tomllib.TOMLDecodeError, TypeError) as error:
        raise ConfigError(
            f"{names} cannot be changed in the settings file: {error}.", hint="Change it by hand."
        ) from error
    if not as_intended:
        raise ConfigError(
            f"{names} cannot be changed in the settings file without touching the rest of it.",
            hint="Change it by hand.",
        )
    return fresh


def _others(document: Mapping[str, Any], vault: Path | None) -> Any:
    """What of a file is not of the place that a vault (None: all of them) has in it."""
    if vault is None:
        return document.get(VAULTS)
    own, tables = table_of(document, vault), document.get(VAULTS, {})
    return meaning(document)[0], {name: table for name, table in tables.items() if name != own}


def _put(place: Any, changes: Mapping[str, Any]) -> None:
    """Change the keys of a document or table."""
    from tomlkit.container import OutOfOrderTableProxy

    for name, value in changes.items():
        written = [
            key
            for key in (name, *(old for old, ours in OLD_NAMES.items() if ours == name))
            if key in place
        ]
        kept = None if value is None else written.pop(0) if written else name
        if kept is not None and isinstance(place.get(kept), OutOfOrderTableProxy):
            written.append(
                kept
            )  # a table in pieces: tomlkit changes those for sure only as a whole
        for key in written:
            place.remove(key)
        if kept is not None and not _changed(place.get(kept), value):
            place[kept] = value


def _changed(item: Any, value: Any) -> bool:
    """Change a list or table of the file in its parts, so that comments between them stay; False when that does not do."""
    match item, value:
        case MutableMapping(), dict():
            for key in [key for key in item if key not in value]:
                del item[key]
            for key, each in value.items():
                if item.get(key) != each:
                    item[key] = each
        case MutableSequence(), list():
            for at in reversed(range(len(item))):
                if item[at] not in value:
                    del item[at]
            item.extend(value[len(item) :])
        case _:
            return False
    return bool(item == value)


def _write(file: Path, text: str) -> None:
    """Replace the file: all or nothing, and nobody else's to read. A link stays one: what it leads to is replaced."""
    file = file.resolve()
    try:
        replace_file(file, text.encode())
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise ConfigError(
            f"The settings file {file} cannot be written ({reason}).",
            path=str(file),
            hint="Correct its permissions.",
        ) from error
