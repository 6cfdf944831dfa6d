"""What agents, skills and configuration files say, checked; a mistake is told with its file and field.

Configuration is JSON with comments and trailing commas, within limits that no honest file reaches.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from obsidian_agent.dataclass import dataclass
from obsidian_agent.errors import Problem
from obsidian_agent.plan.json_text import COMMAS, COMMENTS, InvalidJson, decode

MAX_DEPTH: Final = 20
MAX_NODES: Final = 10_000
MAX_TEXT: Final = 100_000
"""Characters of one string."""

_END: Final = re.compile(r"(?:\s|//[^\n]*|/\*.*?\*/)*\Z", re.DOTALL)


class BadJson(ValueError):
    """Text that is no such document; the message says why and where."""


def read_jsonc(data: bytes) -> Any:
    """The value in a file's bytes. Raises `BadJson`, nothing else."""
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
        raise BadJson(f"goes on after its end (line {_line(text, decoded.end)})")
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
                waiting += [(depth + 1, each) for each in value.values()]
            case list():
                waiting += [(depth + 1, each) for each in value]
            case _:
                pass


def _line(text: str, position: int) -> int:
    return text.count("\n", 0, position) + 1


NAME: Final = r"^[a-z0-9][a-z0-9_-]*$"
MODEL: Final = r"^(custom:)?[a-z0-9][a-z0-9_-]*/[^\s/][^\s]*$"
COLOUR: Final = r"^#[0-9a-fA-F]{6}$"
MOST_INSTRUCTIONS: Final = 100
"""Patterns of instruction files."""


def _words(value: Any) -> Any:
    return (
        [part.strip() for part in value.split(",") if part.strip()]
        if isinstance(value, str)
        else value
    )


def _lowered(value: Any) -> Any:
    return value.lower() if isinstance(value, str) else value


Words = Annotated[tuple[str, ...], BeforeValidator(_words)]
"""A list, or words with commas between them."""
Switches = Mapping[str, bool]


class _Document(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True, defer_build=True)


class AgentHead(_Document):
    """The properties of an agent's file. `tools` can only take away; `model` counts where the person lets vaults choose."""

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
    """A configuration file, as far as we take anything from it. Providers, keys, addresses and programs to start are not taken."""

    model: Annotated[str | None, Field(pattern=MODEL)] = None
    instructions: Annotated[Words, Field(max_length=MOST_INSTRUCTIONS)] = ()
    tools: Switches = {}
    agent: Mapping[Annotated[str, Field(pattern=NAME)], AgentHead] = {}
    default_agent: Annotated[str | None, Field(pattern=NAME)] = None


NOT_TAKEN: Final = (
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
"""Keys of configuration files that mean something elsewhere and nothing here: a vault cannot set them."""


@dataclass(frozen=True, slots=True)
class AgentText:
    """An agent: its properties and what it is told."""

    name: str
    head: AgentHead
    body: str


@dataclass(frozen=True, slots=True)
class SkillText:
    """A skill: its properties and what it teaches."""

    name: str
    description: str
    body: str


class Flawed(Exception):
    """A file that cannot be used; `problems` say what is wrong where."""

    def __init__(self, problems: tuple[Problem, ...]) -> None:
        super().__init__(problems[0].message)
        self.problems = problems


def agent_in(path: str, name: str, data: bytes) -> AgentText:
    """The agent in a Markdown file. Raises `Flawed`."""
    if re.match(NAME, name) is None:
        raise Flawed(
            (flaw(path, "name", "must be made of a-z, 0-9, - and _, as the file's name is"),)
        )
    properties, body = _parts(path, data)
    return AgentText(name, _checked(AgentHead, properties, path), body)


def skill_in(path: str, folder: str, data: bytes) -> SkillText:
    """The skill in a SKILL.md. Raises `Flawed`."""
    properties, body = _parts(path, data)
    head = _checked(SkillHead, properties, path)
    name = head.name or folder.lower()
    if re.match(NAME, name) is None:
        raise Flawed((flaw(path, "name", "must be made of a-z, 0-9, - and _"),))
    return SkillText(name, head.description, body)


def config_in(path: str, data: bytes) -> tuple[ConfigDocument, tuple[Problem, ...]]:
    """A configuration, and what of it is not taken. Raises `Flawed`."""
    try:
        document = read_jsonc(data)
    except BadJson as error:
        raise Flawed((Problem("CONFIG_INVALID", f"{path} {error}.", path=path),)) from error
    if not isinstance(document, dict):
        raise Flawed((Problem("CONFIG_INVALID", f"{path} is no JSON object.", path=path),))
    left = [key for key in NOT_TAKEN if key in document]
    told = tuple(
        Problem(
            "CONFIG_IGNORED", f"{path}: {key}: a vault cannot set this; it is left out.", path=path
        )
        for key in left
    )
    return _checked(ConfigDocument, document, path), told


def text_of(path: str, data: bytes) -> str:
    """A text file. Raises `Flawed`."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Flawed(
            (
                Problem(
                    "CONFIG_INVALID", f"{path} is not UTF-8 text (byte {error.start}).", path=path
                ),
            )
        ) from error


def flaw(path: str, field: str, message: str) -> Problem:
    """A mistake in a field of a file."""
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
        raise Flawed(
            (
                Problem(
                    "CONFIG_INVALID",
                    f"{path}: its properties are no YAML{_at_line(error)}.",
                    path=path,
                ),
            )
        ) from error
    return properties, body


def _at_line(error: Exception) -> str:
    mark = getattr(error, "problem_mark", None)
    return "" if mark is None else f" (line {mark.line + 1})"


def _checked(model: type[Any], document: Mapping[str, Any], path: str) -> Any:
    try:
        return model.model_validate(document)
    except ValidationError as error:
        found: dict[str, Problem] = {}
        for each in error.errors():
            # Where several types are possible, each of them complains, in places of its own.
            parts = (
                each["loc"][: each["loc"].index("tools") + 1]
                if "tools" in each["loc"]
                else each["loc"]
            )
            place = ".".join(str(part) for part in parts) or "(file)"
            found.setdefault(place, flaw(path, place, each["msg"].rstrip(".")))
        raise Flawed(tuple(found.values())) from error
