"""What a chosen agent, the vault's instructions and its skills come to: one part of the system prompt, and fewer tools. Never more."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from fnmatch import fnmatchcase

from obsidian_agent.agent.privacy.untrusted_text import neutral
from obsidian_agent.agent.vault_agents.documents import AgentText, SkillText
from obsidian_agent.agent.vault_agents.library import Library
from obsidian_agent.dataclass import dataclass
from obsidian_agent.errors import Problem
from obsidian_agent.tools.registry import from_wire

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
    sections: list[tuple[str, str]] = [("Standing instructions", standing)] if standing.strip() else []
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
        problems.append(Problem("AGENT_NOT_FOUND", f"The agent {name} {why}; the conversation goes on without it."))
    return found


def _skills(library: Library, agent: AgentText, problems: list[Problem]) -> Iterable[SkillText]:
    for name in agent.head.skills or ():
        skill = library.skills.get(name.lower())
        if skill is None:
            problems.append(Problem("SKILL_NOT_FOUND", f"The skill {name} of the agent {agent.name} does not exist, or is not trusted."))
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
        if (file.kind == "agent" and file.name == agent.name) or (file.kind == "skill" and file.name in skills)
    )


def _joined(sections: Iterable[tuple[str, str]]) -> str:
    parts = [f"## {_title(title)}\n\n{neutral(text.strip())}" for title, text in sections if text.strip()]
    return "\n\n".join([_HEAD, *parts]) + "\n" if parts else ""


def _title(text: str) -> str:
    return " ".join(neutral(text).split())
