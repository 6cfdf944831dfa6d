"""The settings: one model whose fields are the keys of config.toml."""

from __future__ import annotations

import re
from typing import Annotated, Any, Final, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    field_validator,
    model_validator,
)

NO_MODEL: Final = "none"
"""The value of `model` for working without one. Without a value the user has not decided yet."""

Level = Literal["read-only", "scoped-write", "full-write"]
HookEvent = Literal[
    "before_prompt",
    "after_prompt",
    "before_plan",
    "after_plan",
    "before_run",
    "after_run",
    "plan_waiting",
    "error",
]
Group = Literal["Model", "Context", "Sharing", "Safety", "App"]


def patterns_of(value: Any) -> Any:
    """Split the text of an environment variable at `;`. Other values are returned unchanged."""
    if isinstance(value, str):
        return tuple(part.strip() for part in value.split(";") if part.strip())
    return value


def _extensions(value: Any) -> Any:
    extensions = patterns_of(value)
    if not isinstance(extensions, (list, tuple)):
        return extensions
    return tuple(
        extension.lstrip(".").lower() if isinstance(extension, str) else extension
        for extension in extensions
    )


Patterns = Annotated[tuple[str, ...], BeforeValidator(patterns_of)]
"""A list of patterns, separated by `;` in an environment variable."""

Extensions = Annotated[tuple[str, ...], BeforeValidator(_extensions)]
"""A list of file extensions in lower case and without dots."""


def _field(default: Any, group: Group, title: str, description: str, **limits: Any) -> Any:
    return Field(
        default, title=title, description=description, json_schema_extra={"group": group}, **limits
    )


class McpServer(BaseModel):
    """An MCP server: a `command` with `args`, environment and working folder, or a `url`.

    `timeout` is the number of seconds that a call may take. `$NAME` in `env` and `headers` is
    replaced by that variable of this program's environment.
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
    def _command_or_url(self) -> McpServer:
        if bool(self.command) == bool(self.url):
            raise ValueError("an MCP server has either a command or a url")
        if self.url and not re.match(
            r"https://|http://(localhost|127\.0\.0\.1|\[::1\])[:/]", self.url
        ):
            raise ValueError(
                "the url of an MCP server begins with https://, or on this machine with http://"
            )
        return self


class RuleSetting(BaseModel):
    """A rule: a time `at` (cron fields) or `notes` (a query), and a `recipe` or `macro`.

    `alone` runs what the policy allows without approval; deletes always need it.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    name: str
    at: str = ""
    notes: str = ""
    recipe: str = ""
    macro: str = ""
    params: dict[str, str] = {}
    alone: bool = False


class Settings(BaseModel):
    """The settings. A vault's files never provide any of them.

    Every field is a key of config.toml and, in capitals after OBSIDIAN_AGENT_, an environment
    variable.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    model: str | None = _field(
        None,
        "Model",
        "Model",
        "PROVIDER/NAME, such as openai/gpt-5 or ollama/qwen3. none, or empty: the offline planner.",
    )
    base_url: str | None = _field(
        None,
        "Model",
        "Base URL",
        "Address of the model's service, if it is not the usual one; http only on this machine.",
    )
    services: dict[Annotated[str, Field(pattern=r"^(custom:)?[a-z0-9][a-z0-9_-]*$")], str] = _field(
        {},
        "Model",
        "Service addresses",
        "Base URLs by name: openai, …, and custom:NAME for any other service, "
        'whose models are "custom:NAME/MODEL".',
    )
    temperature: float = _field(
        0.2, "Model", "Temperature", "How much answers may vary, from 0 to 1.", ge=0.0, le=1.0
    )
    max_tokens: int | None = _field(
        None,
        "Model",
        "Maximum answer length",
        "Maximum tokens of an answer; empty: the service decides.",
        ge=1,
        le=1_000_000,
    )
    timeout: float | None = _field(
        None,
        "Model",
        "Timeout",
        "Seconds to wait for a silent model, including retries; "
        "empty: 120, or 300 for agents and models on this machine.",
        ge=1.0,
        le=3600.0,
    )
    streaming: bool = _field(
        True, "Model", "Streaming", "Display answers while they are generated; off: when complete."
    )
    tool_calling: bool = _field(
        True,
        "Model",
        "Let models search and read",
        "Before answering, models may search and read the notes that you share.",
    )
    planning: Literal["auto", "menu", "plan"] = _field(
        "auto",
        "Model",
        "Planning",
        "menu: choose actions from the menu, and write a plan if none fits; "
        "plan: always write a plan; auto: menu on this machine, else plan.",
    )
    requests_per_minute: int = _field(
        10,
        "Model",
        "Requests per minute",
        "Maximum requests to each service that is not on this machine.",
        ge=1,
        le=10_000,
    )
    context_window: int | None = _field(
        None,
        "Model",
        "Context window",
        "Tokens that fit into a request; empty: the model's known limit.",
        ge=1_000,
        le=100_000_000,
    )
    prompt: Literal["auto", "full", "short"] = _field(
        "auto",
        "Model",
        "Length of the prompt",
        "short: a third of full, for slow models and small context windows; "
        "auto: short for models on this machine.",
    )
    agents: dict[str, str] = _field(
        {},
        "Model",
        "Agents",
        "Commands of agents that support ACP, as NAME = COMMAND; use acp/NAME as the model. "
        "opencode, claude and gemini are known.",
    )
    spending_cap: float | None = _field(
        None, "Model", "Spending cap", "US dollars per month, by list prices; empty: none.", ge=0.0
    )
    system_message: str = _field(
        "",
        "Model",
        "Custom instructions",
        "Sent to the model in every conversation.",
        max_length=20_000,
    )
    auto_title: bool = _field(
        False,
        "Model",
        "Generate titles",
        "Ask the model for the title of a conversation; off: your first words.",
    )
    note_models: Patterns = _field(
        (),
        "Model",
        "Models for notes",
        "Models that the property ai-model of a note may choose, as PROVIDER/NAME or "
        "PROVIDER/*; empty: those of your provider.",
    )
    context_active_note: bool = _field(
        False,
        "Context",
        "Open note",
        "Send the text of the open note with a message, once you allow it.",
    )
    context_notes: int = _field(
        3,
        "Context",
        "Related notes",
        "Number of notes matching your words that are sent with a message, "
        "if they are shared without asking.",
        ge=0,
        le=20,
    )
    context_fusion: Literal["plain", "structured"] = _field(
        "structured",
        "Context",
        "Format of notes",
        "plain: one after another; structured: listed and grouped.",
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
        "Notes and folders that models never see, such as Private or *.key.",
    )
    share_local: bool = _field(
        False,
        "Sharing",
        "Share with local models",
        "Models on this machine may read everything except what is never shared.",
    )
    level: Level = _field(
        "full-write",
        "Safety",
        "What plans may change",
        "read-only: nothing; scoped-write: what write_allow covers; "
        "full-write: everything except write_deny.",
    )
    write_allow: Patterns = _field(
        (),
        "Safety",
        "May be changed",
        "What plans may change at scoped-write: patterns such as Projects/**.",
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
        "File types",
        "Extensions of the files that plans may change, such as md; empty: all.",
    )
    write_largest: int | None = _field(
        None,
        "Safety",
        "Maximum file size",
        "Maximum bytes of a file after a change; empty: any size.",
        ge=0,
    )
    agent_levels: dict[str, Level] = _field(
        {},
        "Safety",
        "What agents' plans may change",
        "Level by agent name, or * for all agents; the lower level applies.",
    )
    tools_allow: Patterns = _field(
        (),
        "Safety",
        "Tools allowed without asking",
        "Tools that run without asking, such as vault.createFile or mcp__time__*. The exact name "
        "acp/NAME lets that agent's plans be treated like a model's.",
    )
    tools_deny: Patterns = _field(
        (),
        "Safety",
        "Forbidden tools",
        "Tools that neither plans nor models may use, such as vault.rename or editor.*.",
    )
    confirm_writes: bool = _field(
        True, "Safety", "Confirm changes", "Ask before a plan that changes notes runs."
    )
    allow_commands: bool = _field(
        False,
        "Safety",
        "Allow commands",
        "Plans in the app may run Obsidian commands, and models get their names. "
        "On the command line: --allow-commands.",
    )
    commands_allow: Patterns = _field(
        (),
        "Safety",
        "Commands allowed without asking",
        "Ids of Obsidian commands that run without asking, such as daily-notes or templater-*.",
    )
    commands_deny: Patterns = _field(
        (),
        "Safety",
        "Forbidden commands",
        "Ids of Obsidian commands that never run, such as app:delete-file.",
    )
    allow_deletes: bool = _field(
        False,
        "Safety",
        "Allow deletes",
        "Plans in the app may move notes to the vault's .trash folder. "
        "On the command line: --allow-deletes.",
    )
    auto_approve_read_only: bool = _field(
        False,
        "Safety",
        "Run read-only plans immediately",
        "A plan that changes nothing runs without asking.",
    )
    insert_at_cursor: bool = _field(
        False,
        "App",
        "Insert answers at the cursor",
        "/insert puts an answer at the cursor of the open note; off: at its end.",
    )
    tracing: bool = _field(
        False,
        "App",
        "Trace",
        "Log the exchange with models to a file on this machine, without keys and note text.",
    )
    theme: str | None = _field(
        None,
        "App",
        "Theme",
        "dark, light, high-contrast, ansi (the colors of the terminal), or the name of another "
        "theme of the app.",
    )
    animations: bool = _field(
        True, "App", "Animations", "Animate progress signs and scrolling; off: nothing moves."
    )
    mcp_servers: dict[
        Annotated[str, StringConstraints(pattern=r"^[a-zA-Z0-9]([a-zA-Z0-9-]{0,30}[a-zA-Z0-9])?$")],
        McpServer,
    ] = _field(
        {},
        "Model",
        "MCP servers",
        "Tools of other programs for the model, each with a command or url. "
        "tools_allow = mcp__NAME__TOOL: call without asking.",
    )
    keymap: dict[str, str] = _field(
        {},
        "App",
        "Keys",
        "Custom key bindings: an id listed in docs/keys.md, and the keys to press instead.",
    )
    rules: tuple[RuleSetting, ...] = _field(
        (),
        "App",
        "Rules",
        "Rules that propose plans, as [[rules]] tables with name, at or notes, recipe or macro, "
        "and params. See docs/waiting-plans.md.",
    )
    hooks: dict[HookEvent, Annotated[tuple[str, ...], Field(min_length=1)]] = _field(
        {},
        "App",
        "Hooks",
        'Your commands for events, such as before_run = ["~/bin/check"], which may stop a run. '
        "See docs/hooks.md.",
    )

    @field_validator("base_url")
    @classmethod
    def _base_url(cls, value: str | None) -> str | None:
        if not value:
            return None
        _check_address(value)
        return value

    @field_validator("services")
    @classmethod
    def _service_addresses(cls, value: dict[str, str]) -> dict[str, str]:
        for address in value.values():
            _check_address(address)
        return value


def _check_address(address: str) -> None:
    if not address.startswith(("https://", "http://")):
        raise ValueError("an address begins with https://, or on this machine with http://")
