"""The permission policy: one verdict for (tool, path, agent), with the rule behind it.

The user's settings, the vault's own file and the levels of agents each have their `PolicyLimits`,
which can only narrow what is permitted. The rest is allowed by the user's rules, or needs approval.
Validation checks what a tool can do at all. The preview and the executor check the change set of a
plan, whichever call produced it. The model's own calls are checked for what may be read.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, Final, Literal

from msgspec import Struct
from msgspec.structs import replace

from obsidian_agent.errors import ConfigError, Problem, VaultError
from obsidian_agent.plan.result import SETTINGS, Instance, Verdict
from obsidian_agent.tools.core.tool import Risk, Tool
from obsidian_agent.vault.paths.path import VaultPath, from_disk
from obsidian_agent.vault.paths.patterns import PathRules
from obsidian_agent.vault.views.changes import ChangeSet, Move, Operation, WriteFile
from obsidian_agent.vault.views.view import VaultView

NOT_PERMITTED: Final = frozenset(
    {"DELETE_DISABLED", "COMMANDS_DISABLED", "PERMISSION_DENIED", "HOOK_REFUSED"}
)
"""Codes of problems caused by the user's settings, which only the user can change."""

Level = Literal["read-only", "scoped-write", "full-write"]
"""Write nothing; write only what `write_allow` covers; write all but what `write_deny` covers."""

_STRENGTH: Final = ("allow", "ask", "deny")


MODEL: Final = "(model)"
"""The agent of a plan that a model of the user made.

Rules for agents do not name it. Notes that are never shared do not exist for it.
"""

_LEVELS: Final = ("read-only", "scoped-write", "full-write")
_VAULT_SETTINGS: Final = (
    "level",
    "write_largest",
    "allow_deletes",
    "allow_commands",
    "write_allow",
    "write_deny",
    "write_extensions",
    "tools_deny",
    "commands_deny",
    "share_deny",
)
"""The settings that a vault's own file may restrict."""


NamesOf = Callable[[VaultPath], Sequence[VaultPath]]
"""Returns every path of a file: the path itself, its target through links, its hard links."""


class SharingRules(Struct, frozen=True):
    """The user's rules for reading.

    Files and folders under `deny` do not exist for any model; those under `allow` are shared
    without a question. With `local`, models on this machine receive everything else without a
    question.
    """

    allow: PathRules = PathRules()
    deny: PathRules = PathRules(anywhere=True)
    local: bool = False

    @classmethod
    def of(
        cls,
        allow: Collection[str] = (),
        deny: Collection[str] = (),
        *,
        local: bool = False,
        root: str = "",
    ) -> SharingRules:
        """Parse patterns as written in settings, for the vault at `root`. Raise `ConfigError`."""
        return cls(
            PathRules(tuple(allow), root=root),
            PathRules(tuple(deny), anywhere=True, root=root),
            local,
        )

    def verdict(self, path: VaultPath, names: NamesOf, *, local: bool = False) -> Verdict:
        """Return whether a model may read a file.

        It may not if a rule denies one of the file's paths, and may unasked if rules allow them
        all. `local` says that the model runs on this machine.
        """
        if self.deny and (pattern := self.deny.covering(*names(path))) is not None:
            return Verdict("deny", f"share_deny {pattern}")
        if self.local and local:
            return Verdict("allow", "share_local is on")
        if (pattern := self.allow.covering(path)) is not None and all(
            self.allow.cover(name) for name in names(path)
        ):
            return Verdict("allow", f"share_allow {pattern}")
        return Verdict("ask", "no pattern of share_allow covers it")


class PolicyLimits(Struct, frozen=True):
    """The restrictions of one source.

    `extensions` have no dot, and none allow all; `largest` is in bytes, and None allows any size.
    """

    source: str = SETTINGS
    level: Level = "full-write"
    write_allow: PathRules = PathRules()
    write_deny: PathRules = PathRules(anywhere=True)
    extensions: tuple[str, ...] = ()
    largest: int | None = None
    tools_deny: tuple[str, ...] = ()
    commands_deny: tuple[str, ...] = ()
    share_deny: PathRules = PathRules(anywhere=True)
    deletes: bool = True
    commands: bool = True

    @classmethod
    def of(
        cls,
        source: str = SETTINGS,
        level: Level = "full-write",
        allow: Iterable[str] = (),
        deny: Iterable[str] = (),
        *,
        root: str = "",
        **more: Any,
    ) -> PolicyLimits:
        """Parse patterns as written in settings, for the vault at `root`. Raise `ConfigError`."""
        return cls(
            source,
            level,
            PathRules(tuple(allow), root=root),
            PathRules(tuple(deny), anywhere=True, root=root),
            **more,
        )

    @property
    def on_changes(self) -> bool:
        """True if some change is forbidden."""
        return bool(
            self.level != "full-write"
            or self.write_deny
            or self.extensions
            or self.largest is not None
        )

    def on_change(
        self, path: VaultPath, size: int | None = None, *, folder: bool = False
    ) -> str | None:
        """Return the rule that forbids changing a file or folder, as in its source, or None.

        `size` is that of the new content in bytes.
        """
        if (pattern := self.write_deny.covering(path)) is not None:
            return f"write_deny {pattern}"
        if self.level == "read-only":
            return "level read-only"
        if self.level == "scoped-write" and not self.write_allow.cover(path):
            return "level scoped-write, and no pattern of write_allow covers it"
        if (
            self.extensions
            and not folder
            and (extension := path.name.rpartition(".")[2].lower()) not in self.extensions
        ):
            return f"write_extensions, without {extension}"
        if self.largest is not None and size is not None and size > self.largest:
            return f"write_largest {self.largest}"
        return None


class Policy(Struct, frozen=True, kw_only=True):
    """The permissions of one run. Without `allow_writes` a plan may only read.

    With `by_options`, command line options and not the settings allow deletes and commands.
    `tools_allow` and `commands_allow` list what runs without a question. `problems` are the
    problems of ignored rules, for the user. `agent` is the planning agent, "" for the user;
    `program` is the other program that the agent is or runs in, "" for a model of the user.
    """

    allow_deletes: bool = False
    allow_commands: bool = False
    allow_writes: bool = True
    by_options: bool = False
    limits: tuple[PolicyLimits, ...] = ()
    confirm_writes: bool = True
    auto_approve_read_only: bool = False
    tools_allow: tuple[str, ...] = ()
    commands_allow: tuple[str, ...] = ()
    sharing: SharingRules = SharingRules()
    problems: tuple[Problem, ...] = ()
    agent: str = ""
    program: str = ""

    def within(self, *limits: PolicyLimits) -> Policy:
        """Return this policy with more limits."""
        return replace(self, limits=(*self.limits, *limits))

    def path_rules(self) -> Iterator[tuple[str, PathRules]]:
        """Yield the rules for paths one by one, each with the name of its setting."""
        sets = [("share_allow", self.sharing.allow), ("share_deny", self.sharing.deny)]
        for limits in self.limits:
            sets += [("write_allow", limits.write_allow), ("write_deny", limits.write_deny)]
        for name, rules in sets:
            yield from ((name, replace(rules, patterns=(pattern,))) for pattern in rules.patterns)

    # --- verdicts ---

    def on_call(self, name: str) -> Verdict:
        """Return the verdict of the tool rules, whatever the call does."""
        for limits in self.limits:
            if (pattern := _naming(limits.tools_deny, name)) is not None:
                return Verdict("deny", f"tools_deny {pattern}", limits.source)
        if (pattern := _naming(self.tools_allow, name)) is not None:
            return Verdict("allow", f"tools_allow {pattern}")
        return Verdict("ask", "no pattern of tools_allow names it")

    def on_command(self, id: str) -> Verdict:
        """Return whether an Obsidian command may be run."""
        if (off := self._off("commands")) is not None:
            return off
        for limits in self.limits:
            if limits.level == "read-only":
                return Verdict("deny", "level read-only", limits.source)
            if (pattern := _naming(limits.commands_deny, id)) is not None:
                return Verdict("deny", f"commands_deny {pattern}", limits.source)
        if (pattern := _naming(self.commands_allow, id)) is not None:
            return Verdict("allow", f"commands_allow {pattern}")
        return Verdict("ask", "allow_commands is on, and no pattern of commands_allow names it")

    def on_change(
        self, path: VaultPath, size: int | None = None, *, folder: bool = False
    ) -> Verdict | None:
        """Return the verdict that forbids changing a file or folder, or None."""
        for limits in self.limits:
            if (rule := limits.on_change(path, size, folder=folder)) is not None:
                return Verdict("deny", rule, limits.source)
        return None

    def verdict(self, tool: Tool | None, path: VaultPath, view: VaultView) -> Verdict:
        """Return the verdict on a plan's call that changes a file, or a model's call that reads it.

        Without a `tool`, any tool that changes the file is meant.
        """
        called = self.on_call(tool.name) if tool is not None else None
        if called is not None and called.decision == "deny":
            return called
        if tool is not None and tool.risk is Risk.READ_ONLY:
            for limits in self.limits:
                if (pattern := limits.share_deny.covering(*view.names(path))) is not None:
                    return Verdict("deny", f"share_deny {pattern}", limits.source)
            return self.sharing.verdict(path, view.names)
        if (denied := self.on_change(path) or self.on_change(_real(view, path))) is not None:
            return denied
        if tool is not None and tool.deletes:
            return self._off("deletes") or Verdict("ask", "deletes always need approval")
        return self._writing(called)

    def _writing(self, called: Verdict | None) -> Verdict:
        if (unknown := self._unnamed()) is not None:
            return unknown
        if called is not None and called.decision == "allow":
            return called
        return (
            Verdict("ask", "confirm_writes is on")
            if self.confirm_writes
            else Verdict("allow", "confirm_writes is off")
        )

    # --- plans ---

    def step_problems(self, tool: Tool) -> Iterator[Problem]:
        """Yield what forbids a step, whatever its arguments."""
        called = self.on_call(tool.name)
        if called.decision == "deny":
            yield Problem(
                "PERMISSION_DENIED",
                f"{tool.name} may not be used: {called.rule} ({called.source}).",
            )
        if tool.deletes and (off := self._off("deletes")) is not None:
            yield Problem(
                "DELETE_DISABLED",
                f"Deleting files is off: {self._how_to_allow('deletes', off)}",
            )
        if tool.risk is Risk.COMMANDS and (off := self._off("commands")) is not None:
            yield Problem(
                "COMMANDS_DISABLED",
                f"Running commands is off: {self._how_to_allow('commands', off)}",
            )
        if tool.risk is not Risk.READ_ONLY and not self.allow_writes:
            yield Problem(
                "PERMISSION_DENIED",
                f"{tool.name} changes the vault, and only reading is permitted here.",
            )

    def refusals(
        self, change_set: ChangeSet, instances: Sequence[Instance], view: VaultView
    ) -> Iterator[Problem]:
        """Yield what the vault's rules forbid in a change set, whichever call produced it.

        Moving something of the vault to the trash is a delete, unless the plan itself created the
        file. A protected path is protected also where a link leads to it.
        """
        for item in instances:
            if (
                item.opaque
                and item.state == "ready"
                and (on := self.on_command(_command(item))).decision == "deny"
            ):
                message = f"The command {_command(item)} may not be run: {on.rule} ({on.source})."
                yield Problem("COMMANDS_DISABLED", message).at(item.step_id, item.name)
        off, limited = self._off("deletes"), any(limits.on_changes for limits in self.limits)
        for owned in change_set.operations if limited or off is not None else ():
            operation, instance = owned.operation, instances[owned.instance]
            if limited:
                denied = (
                    (path, self._on_real_change(path, size, folder, view))
                    for path, size, folder in _changed(operation)
                )
                for path, verdict in denied:
                    if verdict is not None:
                        message = f"{path} may not be changed: {verdict.rule} ({verdict.source})."
                        yield Problem("PERMISSION_DENIED", message, path=path.text).at(
                            instance.step_id, instance.name
                        )
                        break
            if off is not None and _trashes(operation):
                path = operation.path
                message = (
                    f"{path} would go to .trash, and deleting is off: "
                    f"{self._how_to_allow('deletes', off)}"
                )
                yield Problem("DELETE_DISABLED", message, path=path.text).at(
                    instance.step_id, instance.name
                )

    def approval(
        self, change_set: ChangeSet, instances: Sequence[Instance], tools: Mapping[str, Tool]
    ) -> Verdict:
        """Return whether a permitted plan runs without a question. Deletes never do."""
        verdicts = [
            self._on_instance(item, tools[item.tool]) for item in instances if item.state == "ready"
        ]
        if (unknown := self._unnamed()) is not None:
            verdicts.append(unknown)
        if any(_trashes(owned.operation) for owned in change_set.operations):
            verdicts.append(Verdict("ask", "deletes always need approval"))
        return max(
            verdicts,
            key=lambda verdict: _STRENGTH.index(verdict.decision),
            default=Verdict("ask", "nothing runs"),
        )

    def _on_instance(self, item: Instance, tool: Tool) -> Verdict:
        if item.opaque:
            return self.on_command(_command(item))
        called = self.on_call(tool.name)
        if tool.risk is not Risk.READ_ONLY:
            return self._writing(called)
        if called.decision == "allow":
            return called
        on = self.auto_approve_read_only
        return Verdict(
            "allow" if on else "ask", f"auto_approve_read_only is {'on' if on else 'off'}"
        )

    def _unnamed(self) -> Verdict | None:
        """Return the verdict that asks about every plan of another program.

        Rules apply to the user's own models, unless one names that program in full.
        """
        agent = f"acp/{self.program}"
        if not self.program or agent in (pattern.casefold() for pattern in self.tools_allow):
            return None
        return Verdict("ask", f"tools_allow does not name {agent}")

    def _on_real_change(
        self,
        path: VaultPath,
        size: int | None,
        folder: bool,
        view: VaultView,
    ) -> Verdict | None:
        return self.on_change(path, size, folder=folder) or self.on_change(
            _real(view, path), size, folder=folder
        )

    def _off(self, what: Literal["deletes", "commands"]) -> Verdict | None:
        """Return the verdict that disables deletes or commands, or None if they are enabled."""
        if not (self.allow_deletes if what == "deletes" else self.allow_commands):
            return Verdict("deny", f"allow_{what} is off")
        source = next(
            (
                limits.source
                for limits in self.limits
                if not (limits.deletes if what == "deletes" else limits.commands)
            ),
            None,
        )
        return None if source is None else Verdict("deny", f"allow_{what} is off", source)

    def _how_to_allow(self, what: Literal["deletes", "commands"], off: Verdict) -> str:
        if off.source != SETTINGS:
            return f"{off.source} says so."
        if self.by_options:
            return f"--allow-{what} allows it."
        return f"the setting “Allow {what}” (F5) allows it."


UNRESTRICTED: Final = Policy(allow_deletes=True, allow_commands=True)
"""A policy for plans that are only displayed or saved; permissions are checked when they run."""


def _naming(patterns: Sequence[str], name: str) -> str | None:
    return next(
        (pattern for pattern in patterns if fnmatchcase(name.casefold(), pattern.casefold())), None
    )


def _real(view: VaultView, path: VaultPath) -> VaultPath:
    """Return the target of a path, or the path itself if the view refuses where it leads."""
    try:
        return view.real(path)
    except VaultError:
        return path


def _command(item: Instance) -> str:
    return str(item.args.get("id", ""))


def _trashes(operation: Operation) -> bool:
    return isinstance(operation, Move) and operation.trash


def _changed(operation: Operation) -> Iterator[tuple[VaultPath, int | None, bool]]:
    """Yield every path an operation changes, the size written there, and whether it is a folder.

    A folder that moves includes its contents.
    """
    match operation:
        case WriteFile(path=path, content=content):
            yield path, len(content), False
        case Move():
            paths = [operation.path] if operation.trash else [operation.path, operation.new_path]
            yield from ((path_, None, operation.folder) for path_ in paths)
            for item in (
                operation.inventory.items
                if operation.folder and operation.inventory is not None
                else ()
            ):
                yield from (_inside(path_, item.name, item.kind == "folder") for path_ in paths)
        case _:
            yield operation.path, None, True


def _inside(folder: VaultPath, name: str, is_folder: bool) -> tuple[VaultPath, int | None, bool]:
    """Return an entry of a folder that moves.

    For a name that no argument could address, return the folder that contains it.
    """
    path = folder
    for part in name.split("/"):
        try:
            path = from_disk(path, part)
        except VaultError:
            return path, None, True
    return path, None, is_folder


def vault_rules(
    data: bytes | None, source: str, own: Level, root: str = ""
) -> tuple[PolicyLimits, tuple[Problem, ...]]:
    """Read the restrictions in the vault's own file. Return them with problems to report.

    Rules that would allow something are ignored. An unreadable file forbids all writing and
    sharing. `own` is the level of the user's settings.
    """
    if data is None:
        return PolicyLimits(source), ()
    try:
        document = json.loads(data)
        if not isinstance(document, dict):
            raise ValueError("it is not a JSON object")
        rules = {name: value for name, value in document.items() if _narrows(name, value, own)}
        lists = {
            name: tuple(map(str, value)) for name, value in rules.items() if isinstance(value, list)
        }
        extensions = tuple(
            extension.lstrip(".").lower() for extension in lists.get("write_extensions", ())
        )
        limits = PolicyLimits.of(
            source,
            rules.get("level", "full-write"),
            lists.get("write_allow", ()),
            lists.get("write_deny", ()),
            root=root,
            extensions=extensions,
            largest=rules.get("write_largest"),
            tools_deny=lists.get("tools_deny", ()),
            commands_deny=lists.get("commands_deny", ()),
            share_deny=PathRules(lists.get("share_deny", ()), anywhere=True, root=root),
            deletes=rules.get("allow_deletes", True),
            commands=rules.get("allow_commands", True),
        )
    except (ValueError, RecursionError, ConfigError) as error:
        message = (
            f"{source} cannot be read ({error}), so this vault cannot be changed or shared. "
            "Correct or delete the file."
        )
        nothing = PolicyLimits(source, "read-only", share_deny=PathRules(("**",), anywhere=True))
        return nothing, (Problem("CONFIG_INVALID", message, path=source),)
    ignored = sorted(map(str, document.keys() - rules.keys()))
    return limits, tuple(
        Problem(
            "CONFIG_IGNORED",
            f"{source}: {name} is ignored: a vault can only restrict permissions.",
            path=source,
        )
        for name in ignored
    )


def _narrows(name: str, value: object, own: Level) -> bool:
    """Return whether a rule restricts something. Raise ValueError for an invalid restriction."""
    match name, value:
        case (("allow_deletes" | "allow_commands"), bool()):
            return not value
        case "level", str() if value in _LEVELS:
            return _LEVELS.index(value) <= _LEVELS.index(own)
        case "write_largest", int() if value >= 0:
            return True
        case _, list() if name in _VAULT_SETTINGS[4:]:
            return True
        case _ if name in _VAULT_SETTINGS:
            raise ValueError(f"{name} is not valid")
        case _:
            return False
