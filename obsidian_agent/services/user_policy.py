"""The policy for plans, from the user's settings and the vault's own policy file."""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from obsidian_agent.errors import VaultError
from obsidian_agent.plan.policy import MODEL, Policy, PolicyLimits, SharingRules, vault_rules
from obsidian_agent.plan.result import SETTINGS
from obsidian_agent.vault.filesystem.app_folder import FILE_LIMIT
from obsidian_agent.vault.filesystem.store import VaultStore
from obsidian_agent.vault.paths.path import app_path

if TYPE_CHECKING:
    from obsidian_agent.config.settings import Settings

VAULT_POLICY: Final = app_path("policy.json")
"""The vault's policy file, which can only narrow the policy."""


def user_policy(
    store: VaultStore, settings: Settings, base: Policy | None, agent: str = ""
) -> Policy:
    """Return the current policy for the plans of an agent, "" for the user. May block.

    `base` overrides the settings' permission for deletions and commands. An agent is a program, an
    agent of the vault, or PROGRAM/AGENT, which is subject to the rules for both.
    """
    if base is None:
        base = Policy(allow_deletes=settings.allow_deletes, allow_commands=settings.allow_commands)
    root = store.real_path
    own = PolicyLimits.of(
        SETTINGS,
        settings.level,
        settings.write_allow,
        settings.write_deny,
        root=root,
        extensions=settings.write_extensions,
        largest=settings.write_largest,
        tools_deny=settings.tools_deny,
        commands_deny=settings.commands_deny,
    )
    vault, problems = vault_rules(_vault_policy(store), VAULT_POLICY.text, settings.level, root)
    program, names = _names_of("" if agent == MODEL else agent.casefold(), settings.agents)
    levels = [
        PolicyLimits("agent_levels", level, write_allow=own.write_allow)
        for pattern, level in settings.agent_levels.items()
        if any(fnmatchcase(name, pattern.casefold()) for name in names)
    ]
    deny = (*settings.share_deny, *vault.share_deny.patterns)
    return replace(
        base,
        limits=(own, vault, *levels),
        confirm_writes=settings.confirm_writes,
        auto_approve_read_only=settings.auto_approve_read_only,
        tools_allow=settings.tools_allow,
        commands_allow=settings.commands_allow,
        sharing=SharingRules.of(settings.share_allow, deny, local=settings.share_local, root=root),
        problems=problems,
        agent=agent,
        program=program,
    )


def _names_of(agent: str, own: Mapping[str, str]) -> tuple[str, list[str]]:
    """Return the program of an agent ("" for none), and the names that rules can have for it.

    All are in lower case.
    """
    if not agent:
        return "", []
    from obsidian_agent.providers.other_agent import COMMANDS

    known = (name.casefold() for name in (*COMMANDS, *own))
    matches = (name for name in known if f"{agent}/".startswith(f"{name}/"))
    program = max(matches, key=len, default="")
    return program, [agent, program, agent.removeprefix(f"{program}/")]


def _vault_policy(store: VaultStore) -> bytes | None:
    try:
        return store.read(VAULT_POLICY, FILE_LIMIT)
    except VaultError as error:
        # An unreadable file forbids all writing and sharing.
        return None if error.code == "FILE_NOT_FOUND" else b""
