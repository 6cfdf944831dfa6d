"""Everything in a vault that wants to tell the agent something: what of it is trusted, what is not yet, and what is wrong with some.

A file is trusted by path and content: one that changes by a byte is a stranger again. Agents, skills, instructions and macros are all
asked for here.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeVar

from obsidian_agent.agent.vault_agents.documents import AgentText, ConfigDocument, Flawed, SkillText, agent_in, config_in, skill_in, text_of
from obsidian_agent.agent.vault_agents.files import FilesBelow, Finder, Kind, VaultAgentFile
from obsidian_agent.errors import ConfigError, Problem
from obsidian_agent.state_files import replace_file
from obsidian_agent.vault.filesystem.store import VaultStore
from obsidian_agent.vault.paths.path import VaultPath

Standing = Literal["trusted", "new", "changed"]
"""`changed`: another content of the file was trusted once."""


def standing(known: str | None, sha256: str) -> Standing:
    """How a file stands whose trusted content has the hash `known` (None: none was trusted)."""
    return "trusted" if known == sha256 else "changed" if known is not None else "new"


@dataclass(frozen=True, slots=True)
class TrustStore:
    """The file, outside of the vault, that holds the hashes of trusted files by their paths. Methods may block."""

    file: Path

    def hashes(self) -> dict[str, str]:
        """What is trusted; nothing when the file is missing or damaged."""
        try:
            document = json.loads(self.file.read_bytes())
        except (OSError, ValueError):
            return {}
        return {str(path): value for path, value in document.items() if isinstance(value, str)} if isinstance(document, dict) else {}

    def trust(self, path: str, sha256: str) -> None:
        """Trust a file with exactly this content. Raises `ConfigError`."""
        self._write({**self.hashes(), path: sha256})

    def distrust(self, path: str) -> None:
        """Trust it no longer."""
        self._write({name: value for name, value in self.hashes().items() if name != path})

    def _write(self, hashes: Mapping[str, str]) -> None:
        try:
            replace_file(self.file, json.dumps(hashes, ensure_ascii=False, indent=1).encode())
        except OSError as error:
            reason = error.strerror or type(error).__name__
            raise ConfigError(f"What you trust cannot be written down in {self.file} ({reason}).", code="IO_ERROR") from error


Parsed = TypeVar("Parsed")


@dataclass(frozen=True, slots=True)
class Listed:
    """A file as a list of them shows it. `changed`: another content of it was trusted once. `size` in bytes."""

    path: str
    kind: Kind
    name: str
    standing: Standing
    sha256: str
    size: int
    description: str = ""


@dataclass(frozen=True, slots=True)
class Library:
    """What is in a vault, at one moment. Only what is trusted is in `agents`, `skills`, `instructions` and `config`."""

    files: tuple[Listed, ...] = ()
    config: ConfigDocument = field(default_factory=ConfigDocument)
    agents: Mapping[str, AgentText] = field(default_factory=dict)
    skills: Mapping[str, SkillText] = field(default_factory=dict)
    instructions: tuple[tuple[str, str], ...] = ()
    """Path and text."""
    problems: tuple[Problem, ...] = ()

    @property
    def untrusted(self) -> tuple[Listed, ...]:
        """What waits for the person to look at it."""
        return tuple(file for file in self.files if file.standing != "trusted")


@dataclass(frozen=True, slots=True)
class VaultAgents:
    """The vault's own agents, skills and instructions. Methods may block."""

    store: VaultStore
    files: FilesBelow
    trusted: TrustStore
    denied: Callable[[VaultPath], bool] = lambda path: False

    def library(self) -> Library:
        """Read everything anew. Never raises: what is wrong with a file is in `problems`, and does not stop the others."""
        return _Reading(self.trusted.hashes()).read(Finder(self.store, self.denied, []), self.files)

    def show(self, path: str) -> tuple[str, str]:
        """The text of a file that is listed, and the hash to trust it by. Raises `ConfigError` CUSTOM_NOT_FOUND."""
        file = self._file(path)
        return file.data.decode("utf-8", "replace"), file.sha256

    def trust(self, path: str, sha256: str) -> None:
        """Trust a file with the content that was shown. Raises `ConfigError` CUSTOM_CHANGED when it is another one by now."""
        if self._file(path).sha256 != sha256:
            raise ConfigError(f"{path} has changed since it was shown.", code="CUSTOM_CHANGED", path=path, hint="Look at it again.")
        self.trusted.trust(path, sha256)

    def distrust(self, path: str) -> None:
        """Listen to a file no longer."""
        self.trusted.distrust(path)

    def _file(self, path: str) -> VaultAgentFile:
        reading = _Reading(self.trusted.hashes(), trust_all=True)
        reading.read(Finder(self.store, self.denied, []), self.files)
        for file in reading.seen:
            if file.path == path:
                return file
        raise ConfigError(f"{path} is no agent, skill or instruction of this vault.", code="CUSTOM_NOT_FOUND", path=path)


@dataclass(slots=True)
class _Reading:
    """One look at everything. What an untrusted configuration names as instructions is not even listed before that is trusted."""

    hashes: Mapping[str, str]
    trust_all: bool = False
    seen: list[VaultAgentFile] = field(default_factory=list)
    listed: list[Listed] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)

    def read(self, finder: Finder, files: FilesBelow) -> Library:
        finder.problems = self.problems
        config = self._config(finder)
        agents: dict[str, AgentText] = {name: AgentText(name, head, "") for name, head in config.agent.items()}
        skills: dict[str, SkillText] = {}
        texts: list[tuple[str, str]] = []
        for file in finder.agents():
            agent = self._parsed(file, lambda file: agent_in(file.path, file.name, file.data), lambda agent: agent.head.description)
            if agent is not None and not agent.head.disable:
                agents[agent.name] = agent
        for file in finder.skills():
            skill = self._parsed(file, lambda file: skill_in(file.path, file.name, file.data), lambda skill: skill.description)
            if skill is not None:
                skills.setdefault(skill.name, skill)
        named = finder.instructions(config.instructions, files, "the configuration") if config.instructions else []
        agents_md = finder.agents_md()
        for file in ([agents_md] if agents_md is not None else []) + [each for each in named if each.path != "AGENTS.md"]:
            text = self._parsed(file, lambda file: text_of(file.path, file.data), lambda text: "")
            if text is not None and text.strip():
                texts.append((file.path, text.strip()))
        return Library(tuple(self.listed), config, agents, skills, tuple(texts), tuple(self.problems))

    def _config(self, finder: Finder) -> ConfigDocument:
        file = finder.config()
        if file is None:
            return ConfigDocument()
        found = self._parsed(file, lambda file: config_in(file.path, file.data), lambda found: "")
        if found is None:
            return ConfigDocument()
        document, ignored = found
        self.problems += ignored
        return document

    def _parsed(self, file: VaultAgentFile, parse: Callable[[VaultAgentFile], Parsed], describe: Callable[[Parsed], str]) -> Parsed | None:
        """What a file says; None when it is wrong, or not trusted."""
        self.seen.append(file)
        stands = standing(self.hashes.get(file.path), file.sha256)
        parsed: Parsed | None = None
        description = ""
        try:
            parsed = parse(file)
            description = describe(parsed)
        except Flawed as error:
            self.problems += error.problems
        self.listed.append(Listed(file.path, file.kind, file.name, stands, file.sha256, len(file.data), description))
        return parsed if stands == "trusted" or self.trust_all else None
