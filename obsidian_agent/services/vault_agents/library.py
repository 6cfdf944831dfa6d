"""Everything in a vault that wants to tell the agent something: what of it is trusted, what is not yet, and what is wrong with some.

Looked at are `.obsidian-agent/` and `.opencode/` (the first one wins where both have something of a name): `agent/*.md` or `agents/*.md`,
`skill/*/SKILL.md` or `skills/*/SKILL.md`, also in `.claude/skills/` and `.agents/skills/`; one configuration, the first that there is of `.obsidian-agent/config.json`,
`.opencode/config.json`, `.opencode/opencode.json`, `opencode.json` (each also as `.jsonc`); `AGENTS.md` and `CLAUDE.md` in the vault; and what the
configuration names as instructions. Each counts once it is trusted (`trust.py`). May block.

What a chosen agent, the vault's instructions and its skills come to (`resolve`) is one part of the system prompt, and fewer tools; never more.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from itertools import chain, takewhile
from typing import TYPE_CHECKING, Final, Literal, TypeVar

from obsidian_agent.agent.privacy.untrusted_text import neutral
from obsidian_agent.dataclass import dataclass, field
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

if TYPE_CHECKING:
    pass


def files_below(view: VaultView, start: str) -> Iterator[VaultPath]:
    """The files below a folder ("": all of the vault), or the file itself; none where there is no such place."""
    try:
        place = parse(start, PathUse.READ) if start else ROOT
        there = view.locate(place) if start else None
        if start and there is None and (twin := view.twin(place)) is not None:
            there = view.locate(twin)
        if start and there is None:
            return
        if there is not None and there.kind == "file":
            yield there.path
            return
        yield from (
            entry.path
            for entry in view.walk(there.path if there is not None else ROOT)
            if entry.kind == "file"
        )
    except VaultError:
        return


Kind = Literal["config", "agent", "skill", "instructions"]
LIMITS: Final[dict[Kind, int]] = {
    "config": 2**20,
    "agent": 5 * 2**20,
    "skill": 5 * 2**20,
    "instructions": 10 * 2**20,
}
"""Bytes of one file."""
MOST_FILES: Final = 500
"""Of each kind."""
_ROOTS: Final = (APP_FOLDER, OTHER_AGENTS)
USUAL: Final = ("AGENTS.md", "CLAUDE.md")
_TEXTS: Final = (".md", ".txt", ".mdc")


FilesBelow = Callable[[str], Iterable[VaultPath]]
"""The files of the vault at a path as a person wrote it: all below a folder (\"\": the vault), or the file itself. May block."""


@dataclass(frozen=True, slots=True)
class VaultAgentFile:
    """A file that wants to be heard. `name` is the agent's or skill's; `sha256` of its content is what is trusted."""

    path: str
    kind: Kind
    name: str
    data: bytes
    sha256: str


@dataclass(slots=True)
class AgentFileFinder:
    """Looks through one vault; `problems` collects what cannot be read. `denied` says what no model may know of."""

    store: VaultStore
    denied: Callable[[VaultPath], bool]
    problems: list[Problem] = field(default_factory=list)

    def config(self) -> VaultAgentFile | None:
        """The configuration that counts: the first one that can be read."""
        places = (
            *(custom_path(APP_FOLDER, f"config.{end}") for end in ("json", "jsonc")),
            *(
                custom_path(OTHER_AGENTS, f"{name}.{end}")
                for name in ("config", "opencode")
                for end in ("json", "jsonc")
            ),
            *(custom_path(f"opencode.{end}") for end in ("json", "jsonc")),
        )
        return next(
            (
                found
                for path in places
                if (found := self._read(path, "config", path.name)) is not None
            ),
            None,
        )

    def agents(self) -> list[VaultAgentFile]:
        return self._each("agent", self._agent_paths())

    def skills(self) -> list[VaultAgentFile]:
        return self._each("skill", self._skill_paths())

    def usual(self) -> list[VaultAgentFile]:
        """The instructions in the vault that many agents read; the second is left out where it says the same as the first."""
        paths = [parse(name, PathUse.READ) for name in USUAL]
        found = [
            self._read(path, "instructions", path.text) for path in paths if not self.denied(path)
        ]
        return list({file.sha256: file for file in reversed(found) if file is not None}.values())[
            ::-1
        ]

    def instructions(
        self, patterns: Sequence[str], files: FilesBelow, source: str
    ) -> list[VaultAgentFile]:
        """What a configuration (`source`) names as instructions."""
        usable = tuple(pattern for pattern in patterns if self._usable(pattern, source))
        if not usable:
            return []
        rules, starts = PathRules(usable), dict.fromkeys(map(_start, usable))
        near = chain(*(files(start) for start in starts), self._custom_files())
        candidates = [
            path for path in near if path.text.lower().endswith(_TEXTS) and rules.cover(path)
        ]
        found: list[VaultAgentFile] = []
        for path in sorted(dict.fromkeys(candidates))[:MOST_FILES]:
            if (
                not self.denied(path)
                and (file := self._read(path, "instructions", path.text)) is not None
            ):
                found.append(file)
        return found

    # --- where things are ------------------------------------------------------------------------------------------------------

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
        """Files in the two folders, for patterns that name them; not the ones for agents and skills, and not deep."""
        for root in _ROOTS:
            for folder in ("instructions", "instruction", "rules", "prompts"):
                for name, is_file in self._listed(custom_path(root, folder)):
                    if is_file:
                        yield custom_path(root, folder, name)
            for name, is_file in self._listed(custom_path(root)):
                if is_file:
                    yield custom_path(root, name)

    def _listed(self, folder: VaultPath) -> list[tuple[str, bool]]:
        """Names in a folder, sorted, and whether each is a file; links are left out."""
        try:
            entries = self.store.scan(folder)
        except VaultError:
            return []
        found = sorted(
            (name, kind == "file")
            for name, kind, link in entries
            if kind in ("file", "folder") and not link
        )
        return [(name, is_file) for name, is_file in found if not name.startswith(".")][:MOST_FILES]

    # --- reading -----------------------------------------------------------------------------------------------------------------

    def _each(self, kind: Kind, places: Iterator[tuple[VaultPath, str]]) -> list[VaultAgentFile]:
        found: dict[str, VaultAgentFile] = {}
        for path, name in places:
            if (
                name.lower() not in found
                and (file := self._read(path, kind, name.lower())) is not None
            ):
                found[name.lower()] = file
        return list(found.values())

    def _read(self, path: VaultPath, kind: Kind, name: str) -> VaultAgentFile | None:
        try:
            data = self.store.read(path, LIMITS[kind])
        except VaultError as error:
            if error.code != "FILE_NOT_FOUND":
                self.problems.append(
                    Problem(error.code, f"{path.text}: {error.message}", path=path.text)
                )
            return None
        return VaultAgentFile(path.text, kind, name, data, hashlib.sha256(data).hexdigest())

    def _usable(self, pattern: str, source: str) -> bool:
        problem: str | None = None
        if (
            pattern.startswith(("/", "~", "http://", "https://"))
            or ":" in pattern
            or ".." in pattern.replace("\\", "/").split("/")
        ):
            problem = "leads out of the vault"
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
    """Where to look for what a pattern names: its folders up to the first one that is no plain name."""
    names = pattern.strip().replace("\\", "/").strip("/").removeprefix("./").split("/")
    return "/".join(takewhile(lambda name: not re.search(r"[*?\[]", name), names))


Parsed = TypeVar("Parsed")


@dataclass(frozen=True, slots=True)
class ListedFile:
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

    files: tuple[ListedFile, ...] = ()
    config: ConfigDocument = field(default_factory=ConfigDocument)
    agents: Mapping[str, AgentText] = field(default_factory=dict)
    skills: Mapping[str, SkillText] = field(default_factory=dict)
    instructions: tuple[tuple[str, str], ...] = ()
    """Path and text."""
    problems: tuple[Problem, ...] = ()

    @property
    def untrusted(self) -> tuple[ListedFile, ...]:
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
        return self._reading().library()

    def show(self, path: str) -> tuple[str, str]:
        """The text of a file that is listed, and the hash to trust it by. Raises `ConfigError` CUSTOM_NOT_FOUND."""
        file = self._file(path)
        return file.data.decode("utf-8", "replace"), file.sha256

    def trust(self, path: str, sha256: str) -> None:
        """Trust a file with the content that was shown. Raises `ConfigError` CUSTOM_CHANGED when it is another one by now."""
        if self._file(path).sha256 != sha256:
            raise ConfigError(
                f"{path} has changed since it was shown.",
                code="CUSTOM_CHANGED",
                path=path,
                hint="Look at it again.",
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
            f"{path} is no agent, skill or instruction of this vault.",
            code="CUSTOM_NOT_FOUND",
            path=path,
        )

    def _reading(self, *, trust_all: bool = False) -> _Reading:
        return _Reading(
            self.trusted.hashes(), AgentFileFinder(self.store, self.denied), self.files, trust_all
        )


@dataclass(slots=True)
class _Reading:
    """One look at everything. What an untrusted configuration names as instructions is not even listed before that is trusted."""

    hashes: Mapping[str, str]
    finder: AgentFileFinder
    files: FilesBelow
    trust_all: bool
    seen: list[VaultAgentFile] = field(default_factory=list)
    listed: list[ListedFile] = field(default_factory=list)

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
        named = (
            finder.instructions(config.instructions, self.files, "the configuration")
            if config.instructions
            else []
        )
        for file in finder.usual() + [each for each in named if each.path not in USUAL]:
            text = self._parsed(file, lambda file: text_of(file.path, file.data), lambda text: "")
            if text is not None and text.strip():
                texts.append((file.path, text.strip()))
        return Library(
            tuple(self.listed), config, agents, skills, tuple(texts), tuple(finder.problems)
        )

    def _config(self) -> ConfigDocument:
        file = self.finder.config()
        found = (
            self._parsed(file, lambda file: config_in(file.path, file.data), lambda found: "")
            if file is not None
            else None
        )
        if found is None:
            return ConfigDocument()
        document, ignored = found
        self.finder.problems += ignored
        return document

    def _parsed(
        self,
        file: VaultAgentFile,
        parse: Callable[[VaultAgentFile], Parsed],
        describe: Callable[[Parsed], str],
    ) -> Parsed | None:
        """What a file says; None when it is wrong, or not trusted."""
        self.seen.append(file)
        stands = standing(self.hashes.get(file.path), file.sha256)
        parsed: Parsed | None = None
        description = ""
        try:
            parsed = parse(file)
            description = describe(parsed)
        except Flawed as error:
            self.finder.problems += error.problems
        self.listed.append(
            ListedFile(
                file.path, file.kind, file.name, stands, file.sha256, len(file.data), description
            )
        )
        return parsed if stands == "trusted" or self.trust_all else None


_HEAD = "# What the person adds"
_FAMILIES: Mapping[str, str] = {
    "read": "vault.read*",
    "grep": "vault.searchText",
    "glob": "vault.listFiles",
    "list": "vault.listFiles",
    "search": "vault.search*",
}
"""What other agents call the tools that these of ours do the work of."""


@dataclass(frozen=True, slots=True)
class Resolved:
    """`instructions` is text for the system prompt, "" for none. `only`: the read tools that are left (None: all of them).

    `agent` is whose instructions they are. `model` and `temperature` are wishes of the agent; whoever asks decides whether a vault may have any. `paths`: whose text is in it.
    """

    instructions: str = ""
    only: frozenset[str] | None = None
    agent: str = ""
    model: str | None = None
    temperature: float | None = None
    paths: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()


def resolve(library: Library, agent: str | None, standing: str, tools: Collection[str]) -> Resolved:
    """Bring together what the person wrote in the settings (`standing`), the vault's instructions, the agent, and its skills."""
    sections: list[tuple[str, str]] = (
        [("Standing instructions", standing)] if standing.strip() else []
    )
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
    left = names
    for each in switches:
        left &= _left(each, names)
    return Resolved(
        instructions=_joined(sections),
        only=None if left == names else left,
        agent=chosen.name if chosen is not None else "",
        model=(chosen.head.model if chosen is not None else None) or library.config.model,
        temperature=chosen.head.temperature if chosen is not None else None,
        paths=tuple(paths) + _files(library, chosen),
        problems=tuple(problems),
    )


def _agent(library: Library, name: str | None, problems: list[Problem]) -> AgentText | None:
    if name is None:
        return None
    found = library.agents.get(name)
    if found is None:
        waiting = any(file.kind == "agent" and file.name == name for file in library.untrusted)
        why = "is not trusted yet: look at it first" if waiting else "does not exist"
        problems.append(
            Problem(
                "AGENT_NOT_FOUND", f"The agent {name} {why}; the conversation goes on without it."
            )
        )
    return found


def _skills(library: Library, agent: AgentText, problems: list[Problem]) -> Iterable[SkillText]:
    for name in agent.head.skills or ():
        skill = library.skills.get(name.lower())
        if skill is None:
            problems.append(
                Problem(
                    "SKILL_NOT_FOUND",
                    f"The skill {name} of the agent {agent.name} does not exist, or is not trusted.",
                )
            )
        else:
            yield skill


def _left(switches: Mapping[str, bool] | tuple[str, ...], names: frozenset[str]) -> frozenset[str]:
    """The tools that are left: those that a list names, or those that no switch is off for. What is unknown changes nothing."""
    if isinstance(switches, tuple):
        wanted = frozenset(name for each in switches for name in _meant(each, names))
        return wanted or (names if not switches else frozenset())
    state = dict.fromkeys(names, True)
    for pattern, on in switches.items():
        for name in _meant(pattern, names):
            state[name] = on
    return frozenset(name for name, on in state.items() if on)


def _meant(pattern: str, names: Iterable[str]) -> list[str]:
    known = from_wire(pattern)
    pattern = _FAMILIES.get(pattern.lower(), known)
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
    return "\n\n".join([_HEAD, *parts]) + "\n" if parts else ""


def _title(text: str) -> str:
    return " ".join(neutral(text).split())
