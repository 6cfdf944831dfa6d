"""The files in a vault that want to tell the agent something, found in whatever case and read within limits. May block.

Looked at are `.obsidian-agent/` and `.opencode/` (the first one wins where both have something of a name): `agent/*.md` or `agents/*.md`,
`skill/*/SKILL.md` or `skills/*/SKILL.md`; one configuration, the first that there is of `.obsidian-agent/config.json`,
`.opencode/config.json`, `.opencode/opencode.json`, `opencode.json` (each also as `.jsonc`); `AGENTS.md` in the vault; and what the
configuration names as instructions.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, takewhile
from typing import Final, Literal

from obsidian_agent.agent.privacy.rules import PathRules
from obsidian_agent.errors import ConfigError, Problem, VaultError
from obsidian_agent.vault.filesystem.store import VaultStore
from obsidian_agent.vault.paths.path import APP_FOLDER, OTHER_AGENTS, ROOT, PathUse, VaultPath, custom_path, parse
from obsidian_agent.vault.views.view import VaultView


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
        yield from (entry.path for entry in view.walk(there.path if there is not None else ROOT) if entry.kind == "file")
    except VaultError:
        return


Kind = Literal["config", "agent", "skill", "instructions"]
LIMITS: Final[dict[Kind, int]] = {"config": 2**20, "agent": 5 * 2**20, "skill": 5 * 2**20, "instructions": 10 * 2**20}
"""Bytes of one file."""
MOST_FILES: Final = 500
"""Of each kind."""
_ROOTS: Final = (APP_FOLDER, OTHER_AGENTS)
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
class Finder:
    """Looks through one vault; `problems` collects what cannot be read. `denied` says what no model may know of."""

    store: VaultStore
    denied: Callable[[VaultPath], bool]
    problems: list[Problem]

    def config(self) -> VaultAgentFile | None:
        """The configuration that counts: the first one that can be read."""
        places = (
            *(custom_path(APP_FOLDER, f"config.{end}") for end in ("json", "jsonc")),
            *(custom_path(OTHER_AGENTS, f"{name}.{end}") for name in ("config", "opencode") for end in ("json", "jsonc")),
            *(custom_path(f"opencode.{end}") for end in ("json", "jsonc")),
        )
        return next((found for path in places if (found := self._read(path, "config", path.name)) is not None), None)

    def agents(self) -> list[VaultAgentFile]:
        """Agents, each name once."""
        return self._each("agent", self._agent_paths())

    def skills(self) -> list[VaultAgentFile]:
        """Skills, each name once."""
        return self._each("skill", self._skill_paths())

    def agents_md(self) -> VaultAgentFile | None:
        """The instructions that many agents read: AGENTS.md in the vault."""
        path = parse("AGENTS.md", PathUse.READ)
        return None if self.denied(path) else self._read(path, "instructions", "AGENTS.md")

    def instructions(self, patterns: Sequence[str], files: FilesBelow, source: str) -> list[VaultAgentFile]:
        """What a configuration (`source`) names as instructions."""
        usable = tuple(pattern for pattern in patterns if self._usable(pattern, source))
        if not usable:
            return []
        rules, starts = PathRules(usable), dict.fromkeys(map(_start, usable))
        near = chain(*(files(start) for start in starts), self._custom_files())
        candidates = [path for path in near if path.text.lower().endswith(_TEXTS) and rules.cover(path)]
        found: list[VaultAgentFile] = []
        for path in sorted(dict.fromkeys(candidates))[:MOST_FILES]:
            if not self.denied(path) and (file := self._read(path, "instructions", path.text)) is not None:
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
        for root in _ROOTS:
            for folder in ("skill", "skills"):
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
        found = sorted((name, kind == "file") for name, kind, link in entries if kind in ("file", "folder") and not link)
        return [(name, is_file) for name, is_file in found if not name.startswith(".")][:MOST_FILES]

    # --- reading -----------------------------------------------------------------------------------------------------------------

    def _each(self, kind: Kind, places: Iterator[tuple[VaultPath, str]]) -> list[VaultAgentFile]:
        found: dict[str, VaultAgentFile] = {}
        for path, name in places:
            if name.lower() not in found and (file := self._read(path, kind, name.lower())) is not None:
                found[name.lower()] = file
        return list(found.values())

    def _read(self, path: VaultPath, kind: Kind, name: str) -> VaultAgentFile | None:
        try:
            data = self.store.read(path, LIMITS[kind])
        except VaultError as error:
            if error.code != "FILE_NOT_FOUND":
                self.problems.append(Problem(error.code, f"{path.text}: {error.message}", path=path.text))
            return None
        return VaultAgentFile(path.text, kind, name, data, hashlib.sha256(data).hexdigest())

    def _usable(self, pattern: str, source: str) -> bool:
        problem: str | None = None
        if pattern.startswith(("/", "~", "http://", "https://")) or ":" in pattern or ".." in pattern.replace("\\", "/").split("/"):
            problem = "leads out of the vault"
        else:
            try:
                PathRules((pattern,))
            except ConfigError as error:
                problem = error.message
        if problem is not None:
            self.problems.append(Problem("CONFIG_INVALID", f"{source}: instructions: {pattern!r}: {problem}.", path=source))
        return problem is None


def _start(pattern: str) -> str:
    """Where to look for what a pattern names: its folders up to the first one that is no plain name."""
    names = pattern.strip().replace("\\", "/").strip("/").removeprefix("./").split("/")
    return "/".join(takewhile(lambda name: not re.search(r"[*?\[]", name), names))
