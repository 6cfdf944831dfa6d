"""The agents, skills and instructions of a vault, and their standing.

They are read from `.obsidian-agent/` and `.opencode/`; the first takes precedence for equal names:

- agents in `agent/*.md` or `agents/*.md`;
- skills in `skill/*/SKILL.md` or `skills/*/SKILL.md`, also below `.claude/` and `.agents/`;
- one configuration, the first of `.obsidian-agent/config.json`, `.opencode/config.json`,
  `.opencode/opencode.json` and `opencode.json` (each also as `.jsonc`);
- `AGENTS.md`, `CLAUDE.md` and the files that the configuration names as instructions.

A file has an effect once it is trusted (`trust.py`). The result of a chosen agent with instructions
and skills (`resolve`) is a part of the system prompt and possibly fewer tools, never more.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from itertools import chain, takewhile
from typing import Final, Literal, TypeVar

from msgspec import Struct, field

from obsidian_agent.agent.privacy.untrusted_text import neutral
from obsidian_agent.errors import ConfigError, Problem, VaultError
from obsidian_agent.services.trust import Standing, TrustStore, standing
from obsidian_agent.services.vault_agents.documents import (
    AgentText,
    ConfigDocument,
    Flawed,
    SkillText,
    agent_in,
    config_in,
    skill_in,
    text_of,
)
from obsidian_agent.tools.registry import from_wire
from obsidian_agent.vault.filesystem.store import VaultStore
from obsidian_agent.vault.paths.path import (
    APP_FOLDER,
    OTHER_AGENTS,
    ROOT,
    SKILL_FOLDERS,
    PathUse,
    VaultPath,
    custom_path,
    parse,
)
from obsidian_agent.vault.paths.patterns import PathRules
from obsidian_agent.vault.views.view import VaultView

Parsed = TypeVar("Parsed")

Kind = Literal["config", "agent", "skill", "instructions"]
LIMITS: Final[dict[Kind, int]] = {
    "config": 2**20,
    "agent": 5 * 2**20,
    "skill": 5 * 2**20,
    "instructions": 10 * 2**20,
}
"""Bytes of a file by kind."""
MAX_FILES: Final = 500
"""Files of each kind."""
_ROOTS: Final = (APP_FOLDER, OTHER_AGENTS)
INSTRUCTION_FILES: Final = ("AGENTS.md", "CLAUDE.md")
_TEXT_SUFFIXES: Final = (".md", ".txt", ".mdc")
_HEADING: Final = "# Instructions of the user"
_TOOL_PATTERNS: Final[Mapping[str, str]] = {
    "read": "vault.read*",
    "grep": "vault.searchText",
    "glob": "vault.listFiles",
    "list": "vault.listFiles",
    "search": "vault.search*",
}
"""Tools of this program by the names that other agents have for them."""

FilesBelow = Callable[[str], Iterable[VaultPath]]
"""Returns the files below a folder ("" is the vault), or the file itself. May block."""


def files_below(view: VaultView, start: str) -> Iterator[VaultPath]:
    """Yield the files below a folder ("" is the vault), or the file itself, if it exists."""
    try:
        if not start:
            yield from (entry.path for entry in view.walk(ROOT) if entry.kind == "file")
            return
        path = parse(start, PathUse.READ)
        entry = view.locate(path)
        if entry is None and (twin := view.twin(path)) is not None:
            entry = view.locate(twin)
        if entry is None:
            return
        if entry.kind == "file":
            yield entry.path
            return
        yield from (below.path for below in view.walk(entry.path) if below.kind == "file")
    except VaultError:
        return


class VaultAgentFile(Struct, frozen=True, kw_only=True):
    """A file with an agent, a skill, instructions or configuration.

    `name` is that of the agent or skill. Trust applies to the `sha256` of the content.
    """

    path: str
    kind: Kind
    name: str
    data: bytes
    sha256: str


class AgentFileFinder(Struct):
    """Finds the files in a vault, and collects `problems`. `denied` hides paths from all models."""

    store: VaultStore
    denied: Callable[[VaultPath], bool]
    problems: list[Problem] = field(default_factory=list)

    def config(self) -> VaultAgentFile | None:
        """Return the first configuration that can be read."""
        paths = (
            *(custom_path(APP_FOLDER, f"config.{end}") for end in ("json", "jsonc")),
            *(
                custom_path(OTHER_AGENTS, f"{name}.{end}")
                for name in ("config", "opencode")
                for end in ("json", "jsonc")
            ),
            *(custom_path(f"opencode.{end}") for end in ("json", "jsonc")),
        )
        files = (self._read(path, "config", path.name) for path in paths)
        return next((file for file in files if file is not None), None)

    def agents(self) -> list[VaultAgentFile]:
        return self._files("agent", self._agent_paths())

    def skills(self) -> list[VaultAgentFile]:
        return self._files("skill", self._skill_paths())

    def instruction_files(self) -> list[VaultAgentFile]:
        """Return `AGENTS.md` and `CLAUDE.md`, without the second if both have the same content."""
        paths = [parse(name, PathUse.READ) for name in INSTRUCTION_FILES]
        files: dict[str, VaultAgentFile] = {}
        for path in paths:
            file = None if self.denied(path) else self._read(path, "instructions", path.text)
            if file is not None:
                files.setdefault(file.sha256, file)
        return list(files.values())

    def instructions(
        self, patterns: Sequence[str], files: FilesBelow, source: str
    ) -> list[VaultAgentFile]:
        """Return the files that the patterns of a configuration (`source`) match."""
        usable = tuple(pattern for pattern in patterns if self._usable(pattern, source))
        if not usable:
            return []
        rules, starts = PathRules(usable), dict.fromkeys(map(_start, usable))
        near = chain(*(files(start) for start in starts), self._custom_files())
        candidates = [
            path
            for path in near
            if path.text.lower().endswith(_TEXT_SUFFIXES) and rules.cover(path)
        ]
        matches: list[VaultAgentFile] = []
        for path in sorted(dict.fromkeys(candidates))[:MAX_FILES]:
            if self.denied(path):
                continue
            file = self._read(path, "instructions", path.text)
            if file is not None:
                matches.append(file)
        return matches

    # --- paths ------------------------------------------------------------------------------

    def _agent_paths(self) -> Iterator[tuple[VaultPath, str]]:
        for root in _ROOTS:
            for folder in ("agent", "agents"):
                for name, is_file in self._listed(custom_path(root, folder)):
                    if is_file and name.endswith(".md"):
                        yield custom_path(root, folder, name), name.removesuffix(".md")

    def _skill_paths(self) -> Iterator[tuple[VaultPath, str]]:
        for root, folder in (
            *((root, folder) for root in _ROOTS for folder in ("skill", "skills")),
            *((root, "skills") for root in SKILL_FOLDERS),
        ):
            for name, is_file in self._listed(custom_path(root, folder)):
                if not is_file:
                    yield custom_path(root, folder, name, "SKILL.md"), name

    def _custom_files(self) -> Iterator[VaultPath]:
        """Yield the files in the two folders that patterns can match."""
        for root in _ROOTS:
            for folder in ("instructions", "instruction", "rules", "prompts"):
                for name, is_file in self._listed(custom_path(root, folder)):
                    if is_file:
                        yield custom_path(root, folder, name)
            for name, is_file in self._listed(custom_path(root)):
                if is_file:
                    yield custom_path(root, name)

    def _listed(self, folder: VaultPath) -> list[tuple[str, bool]]:
        """Return the sorted names in a folder, each with whether it is a file. Skip links."""
        try:
            entries = self.store.scan(folder)
        except VaultError:
            return []
        listed = sorted(
            (name, kind == "file")
            for name, kind, link in entries
            if kind in ("file", "folder") and not link and not name.startswith(".")
        )
        return listed[:MAX_FILES]

    # --- reading ----------------------------------------------------------------------------

    def _files(self, kind: Kind, paths: Iterator[tuple[VaultPath, str]]) -> list[VaultAgentFile]:
        """Read the files of a kind. The first one with a name counts."""
        files: dict[str, VaultAgentFile] = {}
        for path, name in paths:
            key = name.lower()
            if key in files:
                continue
            file = self._read(path, kind, key)
            if file is not None:
                files[key] = file
        return list(files.values())

    def _read(self, path: VaultPath, kind: Kind, name: str) -> VaultAgentFile | None:
        try:
            data = self.store.read(path, LIMITS[kind])
        except VaultError as error:
            if error.code != "FILE_NOT_FOUND":
                self.problems.append(
                    Problem(error.code, f"{path.text}: {error.message}", path=path.text)
                )
            return None
        return VaultAgentFile(
            path=path.text, kind=kind, name=name, data=data, sha256=hashlib.sha256(data).hexdigest()
        )

    def _usable(self, pattern: str, source: str) -> bool:
        problem: str | None = None
        if (
            pattern.startswith(("/", "~", "http://", "https://"))
            or ":" in pattern
            or ".." in pattern.replace("\\", "/").split("/")
        ):
            problem = "is outside the vault"
        else:
            try:
                PathRules((pattern,))
            except ConfigError as error:
                problem = error.message
        if problem is not None:
            self.problems.append(
                Problem(
                    "CONFIG_INVALID",
                    f"{source}: instructions: {pattern!r}: {problem}.",
                    path=source,
                )
            )
        return problem is None


def _start(pattern: str) -> str:
    """Return the folder that a pattern starts with, up to the first wildcard."""
    names = pattern.strip().replace("\\", "/").strip("/").removeprefix("./").split("/")
    return "/".join(takewhile(lambda name: not re.search(r"[*?\[]", name), names))


class VaultAgentEntry(Struct, frozen=True, kw_only=True):
    """A file in the list of a vault's agents, skills and instructions. `size` is in bytes."""

    path: str
    kind: Kind
    name: str
    standing: Standing
    sha256: str
    size: int
    description: str = ""


class Library(Struct, frozen=True, kw_only=True):
    """The agents, skills and instructions of a vault at one moment.

    `agents`, `skills`, `instructions` and `config` contain only what is trusted.
    """

    files: tuple[VaultAgentEntry, ...] = ()
    config: ConfigDocument = field(default_factory=ConfigDocument)
    agents: Mapping[str, AgentText] = field(default_factory=dict)
    skills: Mapping[str, SkillText] = field(default_factory=dict)
    instructions: tuple[tuple[str, str], ...] = ()
    """Pairs of path and text."""
    problems: tuple[Problem, ...] = ()

    @property
    def untrusted(self) -> tuple[VaultAgentEntry, ...]:
        """The files that the user has not trusted as they are."""
        return tuple(file for file in self.files if file.standing != "trusted")


class VaultAgents(Struct, frozen=True):
    """The vault's own agents, skills and instructions. Methods may block."""

    store: VaultStore
    files: FilesBelow
    trusted: TrustStore
    denied: Callable[[VaultPath], bool] = lambda path: False

    def library(self) -> Library:
        """Read all files. Errors are in `problems`, and do not affect other files."""
        return self._reading().library()

    def show(self, path: str) -> tuple[str, str]:
        """Return the text of a listed file and the hash of its content.

        Raise `ConfigError` CUSTOM_NOT_FOUND.
        """
        file = self._file(path)
        return file.data.decode("utf-8", "replace"), file.sha256

    def trust(self, path: str, sha256: str) -> None:
        """Trust a file with the content that was displayed.

        Raise `ConfigError` CUSTOM_CHANGED if it has changed since.
        """
        if self._file(path).sha256 != sha256:
            raise ConfigError(
                f"{path} has changed since it was displayed.",
                code="CUSTOM_CHANGED",
                path=path,
                hint="Review it again.",
            )
        self.trusted.trust(path, sha256)

    def distrust(self, path: str) -> None:
        self.trusted.distrust(path)

    def _file(self, path: str) -> VaultAgentFile:
        reading = self._reading(trust_all=True)
        reading.library()
        for file in reading.seen:
            if file.path == path:
                return file
        raise ConfigError(
            f"{path} is not an agent, skill or instruction file of this vault.",
            code="CUSTOM_NOT_FOUND",
            path=path,
        )

    def _reading(self, *, trust_all: bool = False) -> _Reading:
        return _Reading(
            self.trusted.hashes(), AgentFileFinder(self.store, self.denied), self.files, trust_all
        )


class _Reading(Struct):
    """One pass over all files.

    The instructions that a configuration names are not listed before the configuration is trusted.
    """

    hashes: Mapping[str, str]
    finder: AgentFileFinder
    files: FilesBelow
    trust_all: bool
    seen: list[VaultAgentFile] = field(default_factory=list)
    listed: list[VaultAgentEntry] = field(default_factory=list)

    def library(self) -> Library:
        finder, config = self.finder, self._config()
        agents: dict[str, AgentText] = {
            name: AgentText(name, head, "") for name, head in config.agent.items()
        }
        skills: dict[str, SkillText] = {}
        texts: list[tuple[str, str]] = []
        for file in finder.agents():
            agent = self._parsed(
                file,
                lambda file: agent_in(file.path, file.name, file.data),
                lambda agent: agent.head.description,
            )
            if agent is not None and not agent.head.disable:
                agents[agent.name] = agent
        for file in finder.skills():
            skill = self._parsed(
                file,
                lambda file: skill_in(file.path, file.name, file.data),
                lambda skill: skill.description,
            )
            if skill is not None:
                skills.setdefault(skill.name, skill)
        files = finder.instruction_files()
        if config.instructions:
            named = finder.instructions(config.instructions, self.files, "the configuration")
            files += [file for file in named if file.path not in INSTRUCTION_FILES]
        for file in files:
            text = self._parsed(file, lambda file: text_of(file.path, file.data), lambda text: "")
            if text is not None and text.strip():
                texts.append((file.path, text.strip()))
        return Library(
            files=tuple(self.listed),
            config=config,
            agents=agents,
            skills=skills,
            instructions=tuple(texts),
            problems=tuple(finder.problems),
        )

    def _config(self) -> ConfigDocument:
        file = self.finder.config()
        if file is None:
            return ConfigDocument()
        parsed = self._parsed(file, lambda file: config_in(file.path, file.data), lambda parsed: "")
        if parsed is None:
            return ConfigDocument()
        document, warnings = parsed
        self.finder.problems += warnings
        return document

    def _parsed(
        self,
        file: VaultAgentFile,
        parse: Callable[[VaultAgentFile], Parsed],
        describe: Callable[[Parsed], str],
    ) -> Parsed | None:
        """Parse and list a file. Return `None` if it is invalid or not trusted."""
        self.seen.append(file)
        file_standing = standing(self.hashes.get(file.path), file.sha256)
        parsed: Parsed | None = None
        description = ""
        try:
            parsed = parse(file)
            description = describe(parsed)
        except Flawed as error:
            self.finder.problems += error.problems
        self.listed.append(
            VaultAgentEntry(
                path=file.path,
                kind=file.kind,
                name=file.name,
                standing=file_standing,
                sha256=file.sha256,
                size=len(file.data),
                description=description,
            )
        )
        return parsed if file_standing == "trusted" or self.trust_all else None


class Resolved(Struct, frozen=True, kw_only=True):
    """The result of an agent with the vault's instructions and skills.

    `instructions` is text for the system prompt. `only` holds the read tools that remain, `None`
    for all. `agent` is the agent's name. `model` and `temperature` are requests of the agent, which
    the caller may refuse. `paths` are the sources of the text.
    """

    instructions: str = ""
    only: frozenset[str] | None = None
    agent: str = ""
    model: str | None = None
    temperature: float | None = None
    paths: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()


def resolve(library: Library, agent: str | None, standing: str, tools: Collection[str]) -> Resolved:
    """Combine the instructions of the settings (`standing`) and the vault, an agent and its skills.

    `agent` is a name, by default that of the configuration. `tools` are all read tools.
    """
    sections: list[tuple[str, str]] = []
    if standing.strip():
        sections.append(("Standing instructions", standing))
    sections += [(f"Instructions from {path}", text) for path, text in library.instructions]
    paths = [path for path, _ in library.instructions]
    problems: list[Problem] = []
    chosen = _agent(library, agent or library.config.default_agent, problems)
    switches: list[Mapping[str, bool] | tuple[str, ...]] = [library.config.tools]
    if chosen is not None:
        if chosen.body:
            sections.append((f"Agent {chosen.name}", chosen.body))
        if chosen.head.tools is not None:
            switches.append(chosen.head.tools)
        for skill in _skills(library, chosen, problems):
            sections.append((f"Skill {skill.name}: {skill.description}", skill.body))
    names = frozenset(tools)
    remaining = names
    for switch in switches:
        remaining &= _remaining(switch, names)
    return Resolved(
        instructions=_joined(sections),
        only=None if remaining == names else remaining,
        agent=chosen.name if chosen is not None else "",
        model=(chosen.head.model if chosen is not None else None) or library.config.model,
        temperature=chosen.head.temperature if chosen is not None else None,
        paths=tuple(paths) + _files(library, chosen),
        problems=tuple(problems),
    )


def _agent(library: Library, name: str | None, problems: list[Problem]) -> AgentText | None:
    if name is None:
        return None
    agent = library.agents.get(name)
    if agent is None:
        exists = any(file.kind == "agent" and file.name == name for file in library.untrusted)
        reason = "is not trusted yet: review it first" if exists else "does not exist"
        message = f"The agent {name} {reason}. The conversation continues without it."
        problems.append(Problem("AGENT_NOT_FOUND", message))
    return agent


def _skills(library: Library, agent: AgentText, problems: list[Problem]) -> Iterable[SkillText]:
    for name in agent.head.skills or ():
        skill = library.skills.get(name.lower())
        if skill is None:
            message = (
                f"The skill {name} of the agent {agent.name} does not exist or is not trusted."
            )
            problems.append(Problem("SKILL_NOT_FOUND", message))
        else:
            yield skill


def _remaining(
    switches: Mapping[str, bool] | tuple[str, ...], names: frozenset[str]
) -> frozenset[str]:
    """Return the tools that a list names, or that no switch turns off. Ignore unknown names."""
    if isinstance(switches, tuple):
        if not switches:
            return names
        return frozenset(name for pattern in switches for name in _matching(pattern, names))
    enabled = dict.fromkeys(names, True)
    for pattern, is_on in switches.items():
        for name in _matching(pattern, names):
            enabled[name] = is_on
    return frozenset(name for name, is_on in enabled.items() if is_on)


def _matching(pattern: str, names: Iterable[str]) -> list[str]:
    known = from_wire(pattern)
    pattern = _TOOL_PATTERNS.get(pattern.lower(), known)
    return [name for name in names if fnmatchcase(name.lower(), pattern.lower())]


def _files(library: Library, agent: AgentText | None) -> tuple[str, ...]:
    if agent is None:
        return ()
    skills = {name.lower() for name in agent.head.skills or ()}
    return tuple(
        file.path
        for file in library.files
        if (file.kind == "agent" and file.name == agent.name)
        or (file.kind == "skill" and file.name in skills)
    )


def _joined(sections: Iterable[tuple[str, str]]) -> str:
    parts = [
        f"## {_title(title)}\n\n{neutral(text.strip())}" for title, text in sections if text.strip()
    ]
    return "\n\n".join([_HEADING, *parts]) + "\n" if parts else ""


def _title(text: str) -> str:
    return " ".join(neutral(text).split())
