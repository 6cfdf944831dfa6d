"""What may happen: one answer to (tool, path, who), with the rule that gave it.

The person's settings, the vault's own file and the agent that plans each have their `PolicyLimits`, and every one of them can only take away. What
is left, the person's rules allow without a question, or it is asked about. Validation asks for what a tool can do at all, the preview and the
dispatch for what a plan's change set comes to, whichever call leads there; the model's own calls ask for what may be read.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, Final, Literal

from obsidian_agent.dataclass import dataclass, replace
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
"""Codes of problems that the person's settings make: only the person can do something about them."""

Level = Literal["read-only", "scoped-write", "full-write"]
"""Nothing is written; only what `write_allow` names; everything but what `write_deny` names."""

_STRENGTH: Final = ("allow", "ask", "deny")


MODEL: Final = "(model)"
"""The agent of a plan that a model of the user made: rules for agents don't name it, and what is never shared does not exist for it."""

_LEVELS: Final = ("read-only", "scoped-write", "full-write")
_OF_A_VAULT: Final = (
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
"""What a vault's own file may say, under the names of the settings."""


@dataclass(frozen=True, slots=True)
class SharingRules:
    """The person's rules for reading. Files and folders under `deny` do not exist for any model; those under `allow` are shared without asking.

    `local`: models on this machine get everything that is not denied without asking.
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
        """Read patterns as users write them, for the vault at `root`. Raises `ConfigError`."""
        return cls(
            PathRules(tuple(allow), root=root),
            PathRules(tuple(deny), anywhere=True, root=root),
            local,
        )

    def verdict(
        self, path: VaultPath, real: Callable[[VaultPath], VaultPath], *, local: bool = False
    ) -> Verdict:
        """Whether a model may read a file, which may lead elsewhere (`real`); `local`: it is on this machine."""
        if (
            self.deny
            and (pattern := self.deny.covering(path) or self.deny.covering(real(path))) is not None
        ):
            return Verdict("deny", f"share_deny {pattern}")
        if self.local and local:
            return Verdict("allow", "share_local is on")
        if (pattern := self.allow.covering(path)) is not None and self.allow.cover(real(path)):
            return Verdict("allow", f"share_allow {pattern}")
        return Verdict("ask", "no pattern of share_allow names it")


@dataclass(frozen=True, slots=True)
class PolicyLimits:
    """What is not allowed, as one place says it (`source`). `extensions` without a dot, none: all; `largest` in bytes, None: any size."""

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
        """Read patterns as users write them, for the vault at `root`. Raises `ConfigError`."""
        return cls(
            source,
            level,
            PathRules(tuple(allow), root=root),
            PathRules(tuple(deny), anywhere=True, root=root),
            **more,
        )

    @property
    def on_changes(self) -> bool:
        """Whether there is a change that they forbid."""
        return bool(
            self.level != "full-write"
            or self.write_deny
            or self.extensions
            or self.largest is not None
        )

    def on_change(
        self, path: VaultPath, size: int | None = None, *, folder: bool = False
    ) -> str | None:
        """The rule that forbids changing a file or folder, as it stands at the source; None when it may be. `size`: of the new content."""
        if (pattern := self.write_deny.covering(path)) is not None:
            return f"write_deny {pattern}"
        if self.level == "read-only":
            return "level read-only"
        if self.level == "scoped-write" and not self.write_allow.cover(path):
            return "level scoped-write, and no pattern of write_allow names it"
        if (
            self.extensions
            and not folder
            and (extension := path.name.rpartition(".")[2].lower()) not in self.extensions
        ):
            return f"write_extensions, without {extension}"
        if self.largest is not None and size is not None and size > self.largest:
            return f"write_largest {self.largest}"
        return None


@dataclass(frozen=True, slots=True)
class Policy:
    """What may happen. Without `allow_writes` a plan may only read.

    `by_options`: options of the command line allow deletes and commands, not the settings. `tools_allow` and `commands_allow` name what is
    not asked about; `problems` are the problems of rules that were not taken, for the person; `agent` plans, "" for the person; `program` is
    the other program that it is or works in, "" for a model of the person's.
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
        """This policy, narrowed."""
        return replace(self, limits=(*self.limits, *limits))

    def path_rules(self) -> Iterator[tuple[str, PathRules]]:
        """Yield the rules for paths one by one, each with the name of its setting."""
        sets = [("share_allow", self.sharing.allow), ("share_deny", self.sharing.deny)]
        for limits in self.limits:
            sets += [("write_allow", limits.write_allow), ("write_deny", limits.write_deny)]
        for name, rules in sets:
            yield from ((name, replace(rules, patterns=(each,))) for each in rules.patterns)

    # --- what is asked -------------------------------------------------------------------------------------------------------------

    def on_call(self, name: str) -> Verdict:
        """What the rules for tools say of one, whatever it does."""
        for limits in self.limits:
            if (pattern := _naming(limits.tools_deny, name)) is not None:
                return Verdict("deny", f"tools_deny {pattern}", limits.source)
        if (pattern := _naming(self.tools_allow, name)) is not None:
            return Verdict("allow", f"tools_allow {pattern}")
        return Verdict("ask", "no pattern of tools_allow names it")

    def on_command(self, id: str) -> Verdict:
        """Whether a command of Obsidian may be run."""
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
        """What forbids changing a file or folder; None where nothing does."""
        for limits in self.limits:
            if (rule := limits.on_change(path, size, folder=folder)) is not None:
                return Verdict("deny", rule, limits.source)
        return None

    def verdict(
        self, tool: Tool | None, path: VaultPath, real: Callable[[VaultPath], VaultPath]
    ) -> Verdict:
        """What becomes of a plan's call of a tool that changes a file (None: any of them), or of a model's call of one that reads it."""
        called = self.on_call(tool.name) if tool is not None else None
        if called is not None and called.decision == "deny":
            return called
        if tool is not None and tool.risk is Risk.READ_ONLY:
            for limits in self.limits:
                if (
                    pattern := limits.share_deny.covering(path)
                    or limits.share_deny.covering(real(path))
                ) is not None:
                    return Verdict("deny", f"share_deny {pattern}", limits.source)
            return self.sharing.verdict(path, real)
        if (denied := self.on_change(path) or self.on_change(real(path))) is not None:
            return denied
        if tool is not None and tool.deletes:
            return self._off("deletes") or Verdict("ask", "deletes are always asked about")
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

    # --- a plan --------------------------------------------------------------------------------------------------------------------

    def step_problems(self, tool: Tool) -> Iterator[Problem]:
        """What forbids a step, whatever its arguments."""
        called = self.on_call(tool.name)
        if called.decision == "deny":
            yield Problem(
                "PERMISSION_DENIED",
                f"{tool.name} may not be used: {called.rule} ({called.source}).",
            )
        if tool.deletes and (off := self._off("deletes")) is not None:
            yield Problem(
                "DELETE_DISABLED",
                f"{tool.name} deletes, and deletes are off. {self._way_to_allow('deletes', off)}",
            )
        if tool.risk is Risk.COMMANDS and (off := self._off("commands")) is not None:
            yield Problem(
                "COMMANDS_DISABLED",
                f"{tool.name} runs commands, and they are off. {self._way_to_allow('commands', off)}",
            )
        if tool.risk is not Risk.READ_ONLY and not self.allow_writes:
            yield Problem(
                "PERMISSION_DENIED",
                f"{tool.name} changes the vault, and only reading is permitted here.",
            )

    def refusals(
        self, change_set: ChangeSet, instances: Sequence[Instance], view: VaultView
    ) -> Iterator[Problem]:
        """What a plan comes to in a vault that is not allowed, whichever call leads there.

        Something of the vault that goes to the trash is a delete, though not a file that the plan made itself; a path that a rule protects
        is protected also where a link leads to it.
        """

        def real(path: VaultPath) -> VaultPath:
            try:
                return view.real(path)
            except VaultError:
                return (
                    path  # leads to nowhere or out of the vault, which the view refuses by itself
                )

        for item in instances:
            if (
                item.opaque
                and item.state == "ready"
                and (on := self.on_command(_command(item))).decision == "deny"
            ):
                message = f"The command {_command(item)} may not be run: {on.rule} ({on.source})."
                yield Problem("COMMANDS_DISABLED", message).at(item.step_id, item.name)
        off, limited = self._off("deletes"), any(each.on_changes for each in self.limits)
        for owned in change_set.operations if limited or off is not None else ():
            operation, instance = owned.operation, instances[owned.instance]
            if limited:
                denied = (
                    (path, self._on_place(path, size, folder, real))
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
                message = f"{path} would go to .trash, and deletes are off. {self._way_to_allow('deletes', off)}"
                yield Problem("DELETE_DISABLED", message, path=path.text).at(
                    instance.step_id, instance.name
                )

    def approval(
        self, change_set: ChangeSet, instances: Sequence[Instance], tools: Mapping[str, Tool]
    ) -> Verdict:
        """Whether a plan that is not refused runs without a question. Deletes never do."""
        found = [
            self._on_instance(item, tools[item.tool]) for item in instances if item.state == "ready"
        ]
        if (unknown := self._unnamed()) is not None:
            found.append(unknown)
        if any(_trashes(owned.operation) for owned in change_set.operations):
            found.append(Verdict("ask", "deletes are always asked about"))
        return max(
            found,
            key=lambda verdict: _STRENGTH.index(verdict.decision),
            default=Verdict("ask", "there is nothing to run"),
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
        """What has the plans of another program asked about: rules are for the person's own models, unless one names that program whole."""
        named = f"acp/{self.program}"
        if not self.program or named in (each.casefold() for each in self.tools_allow):
            return None
        return Verdict("ask", f"tools_allow does not name {named}")

    def _on_place(
        self,
        path: VaultPath,
        size: int | None,
        folder: bool,
        real: Callable[[VaultPath], VaultPath],
    ) -> Verdict | None:
        return self.on_change(path, size, folder=folder) or self.on_change(
            real(path), size, folder=folder
        )

    def _off(self, what: Literal["deletes", "commands"]) -> Verdict | None:
        """What switches deletes or commands off; None where they are on."""
        if not (self.allow_deletes if what == "deletes" else self.allow_commands):
            return Verdict("deny", f"allow_{what} is off")
        source = next(
            (
                each.source
                for each in self.limits
                if not (each.deletes if what == "deletes" else each.commands)
            ),
            None,
        )
        return None if source is None else Verdict("deny", f"allow_{what} is off", source)

    def _way_to_allow(self, what: Literal["deletes", "commands"], off: Verdict) -> str:
        if off.source != SETTINGS:
            return f"{off.source} says so."
        return (
            f"Allow them with --allow-{what}."
            if self.by_options
            else "Allow them in the settings (F5)."
        )


UNRESTRICTED: Final = Policy(allow_deletes=True, allow_commands=True)
"""For a plan that is only looked at or kept: what it may do is asked when it is to run."""


def _naming(patterns: Sequence[str], name: str) -> str | None:
    return next(
        (pattern for pattern in patterns if fnmatchcase(name.casefold(), pattern.casefold())), None
    )


def _command(item: Instance) -> str:
    return str(item.args.get("id", ""))


def _trashes(operation: Operation) -> bool:
    return isinstance(operation, Move) and operation.trash


def _changed(operation: Operation) -> Iterator[tuple[VaultPath, int | None, bool]]:
    """Every path of the vault at which an operation changes something, the size of what is written there, and whether it is a folder; a
    folder that moves takes along what is in it."""
    match operation:
        case WriteFile(path=path, content=content):
            yield path, len(content), False
        case Move():
            places = [operation.path] if operation.trash else [operation.path, operation.new_path]
            yield from ((place, None, operation.folder) for place in places)
            for item in (
                operation.inventory.items
                if operation.folder and operation.inventory is not None
                else ()
            ):
                yield from (_inside(place, item.name, item.kind == "folder") for place in places)
        case _:
            yield operation.path, None, True


def _inside(folder: VaultPath, name: str, is_folder: bool) -> tuple[VaultPath, int | None, bool]:
    """An entry of a folder that moves; for one that nobody could ask for by its name, the folder that it lies in."""
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
    """Read what the file of the vault at `root` takes away. Return it with problems to report.

    What would allow something is ignored. A file that cannot be read lets nothing be written and nothing be shared. `own`: the level of the
    user's settings.
    """
    if data is None:
        return PolicyLimits(source), ()
    try:
        document = json.loads(data)
        if not isinstance(document, dict):
            raise ValueError("it is no JSON object")
        taken = {name: value for name, value in document.items() if _narrows(name, value, own)}
        lists = {
            name: tuple(map(str, value)) for name, value in taken.items() if isinstance(value, list)
        }
        extensions = tuple(each.lstrip(".").lower() for each in lists.get("write_extensions", ()))
        limits = PolicyLimits.of(
            source,
            taken.get("level", "full-write"),
            lists.get("write_allow", ()),
            lists.get("write_deny", ()),
            root=root,
            extensions=extensions,
            largest=taken.get("write_largest"),
            tools_deny=lists.get("tools_deny", ()),
            commands_deny=lists.get("commands_deny", ()),
            share_deny=PathRules(lists.get("share_deny", ()), anywhere=True, root=root),
            deletes=taken.get("allow_deletes", True),
            commands=taken.get("allow_commands", True),
        )
    except (ValueError, RecursionError, ConfigError) as error:
        message = f"{source} cannot be read ({error}), so nothing of this vault may be changed or shared. Correct or delete it."
        nothing = PolicyLimits(source, "read-only", share_deny=PathRules(("**",), anywhere=True))
        return nothing, (Problem("CONFIG_INVALID", message, path=source),)
    left = sorted(map(str, document.keys() - taken.keys()))
    told = (
        f"{source}: {name} is left out: a vault can take permissions away, and give none."
        for name in left
    )
    return limits, tuple(Problem("CONFIG_IGNORED", each, path=source) for each in told)


def _narrows(name: str, value: object, own: Level) -> bool:
    """Whether a rule of a vault takes something away. ValueError for one that means to and cannot be understood."""
    match name, value:
        case (("allow_deletes" | "allow_commands"), bool()):
            return not value
        case "level", str() if value in _LEVELS:
            return _LEVELS.index(value) <= _LEVELS.index(own)
        case "write_largest", int() if value >= 0:
            return True
        case _, list() if name in _OF_A_VAULT[4:]:
            return True
        case _ if name in _OF_A_VAULT:
            raise ValueError(f"{name} is not valid")
        case _:
            return False
