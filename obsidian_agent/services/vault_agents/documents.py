"""Parsing and validation of agents, skills and configuration files of a vault.

A problem names its file and field. Configuration is JSON with comments and trailing commas, within
limits that no legitimate file reaches.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Final, Literal

from msgspec import Struct
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from obsidian_agent.errors import Problem
from obsidian_agent.plan.json_text import COMMAS, COMMENTS, InvalidJson, decode

MAX_DEPTH: Final = 20
MAX_NODES: Final = 10_000
MAX_TEXT: Final = 100_000
"""Characters of one string."""

NAME: Final = r"^[a-z0-9][a-z0-9_-]*$"
MODEL: Final = r"^(custom:)?[a-z0-9][a-z0-9_-]*/[^\s/][^\s]*$"
COLOUR: Final = r"^#[0-9a-fA-F]{6}$"
MAX_INSTRUCTIONS: Final = 100
"""Patterns of instruction files."""
IGNORED_KEYS: Final = (
    "provider",
    "mcp",
    "permission",
    "plugin",
    "hooks",
    "keybinds",
    "command",
    "env",
    "baseUrl",
    "base_url",
    "apiKey",
    "api_key",
)
"""Keys of other agents' configuration files that a vault cannot set here."""

Switches = Mapping[str, bool]

_END: Final = re.compile(r"(?:\s|//[^\n]*|/\*.*?\*/)*\Z", re.DOTALL)


class BadJson(ValueError):
    """A text that is not such a document; the message says why and where."""


def read_jsonc(data: bytes) -> Any:
    """Return the value in a file's bytes. Raise only `BadJson`."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadJson(f"is not UTF-8 text (byte {error.start})") from error
    try:
        decoded = decode(text)
    except InvalidJson as error:
        raise BadJson(
            f"is not JSON: {error.message} (line {_line(text, error.position)})"
        ) from error
    if not decoded.repairs <= {COMMENTS, COMMAS}:
        raise BadJson(f"is not JSON: {', '.join(sorted(decoded.repairs - {COMMENTS, COMMAS}))}")
    if _END.match(text, decoded.end) is None:
        raise BadJson(f"has text after its end (line {_line(text, decoded.end)})")
    _check(decoded.value)
    return decoded.value


def _check(document: Any) -> None:
    for nodes, (depth, value) in enumerate(_walk(document), start=1):
        if depth > MAX_DEPTH:
            raise BadJson(f"is nested more than {MAX_DEPTH} deep")
        if nodes > MAX_NODES:
            raise BadJson(f"holds more than {MAX_NODES:,} values")
        if isinstance(value, str) and len(value) > MAX_TEXT:
            raise BadJson(f"holds a text of more than {MAX_TEXT:,} characters")


def _walk(document: Any) -> Iterator[tuple[int, Any]]:
    waiting: list[tuple[int, Any]] = [(1, document)]
    while waiting:
        depth, value = waiting.pop()
        yield depth, value
        match value:
            case dict():
                waiting += [(depth + 1, item) for item in value.values()]
            case list():
                waiting += [(depth + 1, item) for item in value]
            case _:
                pass


def _line(text: str, position: int) -> int:
    return text.count("\n", 0, position) + 1


def _words(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    return [part.strip() for part in value.split(",") if part.strip()]


def _lowered(value: Any) -> Any:
    return value.lower() if isinstance(value, str) else value


Words = Annotated[tuple[str, ...], BeforeValidator(_words)]
"""A list, or words separated by commas."""


class _Document(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True, defer_build=True)


class AgentHead(_Document):
    """The properties of an agent's file.

    `tools` can only remove tools. `model` has an effect if the user lets vaults choose models.
    """

    description: Annotated[str, Field(max_length=1_000)] = ""
    mode: Literal["primary", "subagent", "all"] = "all"
    model: Annotated[str | None, Field(pattern=MODEL)] = None
    temperature: Annotated[float | None, Field(ge=0.0, le=1.0)] = None
    tools: Switches | Words | None = None
    skills: Words | None = None
    color: Annotated[str | None, Field(pattern=COLOUR)] = None
    disable: bool = False


class SkillHead(_Document):
    """The properties of a skill's SKILL.md."""

    name: Annotated[str | None, BeforeValidator(_lowered), Field(pattern=NAME, max_length=64)] = (
        None
    )
    description: Annotated[str, Field(min_length=1, max_length=1_024)]


class ConfigDocument(_Document):
    """The supported part of a configuration file.

    Providers, keys, addresses and programs to start are ignored.
    """

    model: Annotated[str | None, Field(pattern=MODEL)] = None
    instructions: Annotated[Words, Field(max_length=MAX_INSTRUCTIONS)] = ()
    tools: Switches = {}
    agent: Mapping[Annotated[str, Field(pattern=NAME)], AgentHead] = {}
    default_agent: Annotated[str | None, Field(pattern=NAME)] = None


class AgentText(Struct, frozen=True):
    """An agent: its properties and instructions."""

    name: str
    head: AgentHead
    body: str


class SkillText(Struct, frozen=True):
    """A skill: its properties and instructions."""

    name: str
    description: str
    body: str


class Flawed(Exception):
    """A file that cannot be used because of `problems`."""

    def __init__(self, problems: tuple[Problem, ...]) -> None:
        super().__init__(problems[0].message)
        self.problems = problems


def agent_in(path: str, name: str, data: bytes) -> AgentText:
    """Parse the agent in a Markdown file. Raise `Flawed`."""
    if re.match(NAME, name) is None:
        message = "must consist of a-z, 0-9, - and _; rename the file"
        raise Flawed((flaw(path, "name", message),))
    properties, body = _parts(path, data)
    return AgentText(name, _checked(AgentHead, properties, path), body)


def skill_in(path: str, folder: str, data: bytes) -> SkillText:
    """Parse the skill in a SKILL.md. Raise `Flawed`."""
    properties, body = _parts(path, data)
    head = _checked(SkillHead, properties, path)
    name = head.name or folder.lower()
    if re.match(NAME, name) is None:
        raise Flawed((flaw(path, "name", "must consist of a-z, 0-9, - and _"),))
    return SkillText(name, head.description, body)


def config_in(path: str, data: bytes) -> tuple[ConfigDocument, tuple[Problem, ...]]:
    """Parse a configuration. Return it with warnings about ignored keys. Raise `Flawed`."""
    try:
        document = read_jsonc(data)
    except BadJson as error:
        raise Flawed((Problem("CONFIG_INVALID", f"{path} {error}.", path=path),)) from error
    if not isinstance(document, dict):
        raise Flawed((Problem("CONFIG_INVALID", f"{path} is not a JSON object.", path=path),))
    warnings = tuple(
        Problem("CONFIG_IGNORED", f"{path}: {key} is ignored: a vault cannot set it.", path=path)
        for key in IGNORED_KEYS
        if key in document
    )
    return _checked(ConfigDocument, document, path), warnings


def text_of(path: str, data: bytes) -> str:
    """Decode a text file. Raise `Flawed`."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        message = f"{path} is not UTF-8 text (byte {error.start})."
        raise Flawed((Problem("CONFIG_INVALID", message, path=path),)) from error


def flaw(path: str, field: str, message: str) -> Problem:
    """Return the problem of a field of a file."""
    return Problem("CONFIG_INVALID", f"{path}: {field}: {message}.", path=path)


def _parts(path: str, data: bytes) -> tuple[dict[str, Any], str]:
    import frontmatter
    import yaml
    from frontmatter.default_handlers import YAMLHandler

    text = text_of(path, data)
    handler = YAMLHandler()
    if not handler.detect(text):
        return {}, text.strip()
    try:
        properties, body = frontmatter.parse(text, handler=handler)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        message = f"{path}: its properties are not valid YAML{_at_line(error)}."
        raise Flawed((Problem("CONFIG_INVALID", message, path=path),)) from error
    return properties, body


def _at_line(error: Exception) -> str:
    mark = getattr(error, "problem_mark", None)
    return "" if mark is None else f" (line {mark.line + 1})"


def _checked(model: type[Any], document: Mapping[str, Any], path: str) -> Any:
    try:
        return model.model_validate(document)
    except ValidationError as error:
        problems: dict[str, Problem] = {}
        for detail in error.errors():
            location = detail["loc"]
            if "tools" in location:
                # Each of the possible types reports an error, at a location of its own.
                location = location[: location.index("tools") + 1]
            field = ".".join(str(part) for part in location) or "(file)"
            problems.setdefault(field, flaw(path, field, detail["msg"].rstrip(".")))
        raise Flawed(tuple(problems.values())) from error
