"""What may be sent to a model: rules from the settings, what the person was asked and allowed, and the questions themselves.

Nothing of a note leaves the machine unless a rule or an answer of the person covers it: the very file, or a folder that was named on the
screen, at the level that was shown there. Whoever allowed the lines that a search found has not allowed the note.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from enum import IntEnum
from typing import Any, Literal

from obsidian_agent.dataclass import dataclass, field
from obsidian_agent.plan.policy import SharingRules
from obsidian_agent.vault.paths.path import VaultPath


def common_folder(paths: Iterable[VaultPath]) -> str:
    """The deepest folder that holds all these files; "" for the vault itself."""
    parents = [path.parent.parts for path in paths]
    if not parents:
        return ""
    shared: list[str] = []
    for names in zip(*parents, strict=False):
        if len(set(names)) > 1:
            break
        shared.append(names[0])
    return "/".join(shared)


class Level(IntEnum):
    """How much of a file is shared; more includes less."""

    NAME = 1
    """That it exists: path, size, time."""
    PREVIEW = 2
    """Some lines or properties, those that are shown."""
    TEXT = 3
    """Its whole text."""


@dataclass(frozen=True, slots=True)
class SharedPart:
    """Something of a file that is sent: so many characters of it, so much of the file. `path` is "" for text that is in no file."""

    path: str
    level: Level
    characters: int


AllowedBy = Literal["once", "thread", "folder", "granted", "rule", "local", "context", "trusted"]
"""Why something may be sent: the person's answer just now or earlier in the conversation, a rule, a model on this machine, that every
request says which notes are open and what the person gave along with it, or that the person trusts it as instructions."""


CHARACTERS_A_TOKEN = 4
"""The usual rule of thumb; what a service counts differs by language and model."""


def tokens_of(characters: int) -> int:
    """About how many tokens a text of so many characters takes."""
    return -(-characters // CHARACTERS_A_TOKEN)


@dataclass(frozen=True, slots=True)
class ShareItem:
    """A file or folder of which something would be sent. `size` in bytes and `tokens` (an estimate) are of what would be sent.

    `previews` is exactly what would be sent of it, a line each, when that is not the whole file. `why` is the model's reason.
    """

    path: VaultPath
    level: Level
    size: int
    tokens: int
    why: str = ""
    previews: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return self.path.name


RequestKind = Literal["files", "results", "selection", "history", "call", "tools"]


@dataclass(frozen=True, slots=True)
class ShareRequest:
    """A question to the person: may this go to `provider` at `address`?

    `kind`: "files" are to be read whole; "results" are the lines or names that a tool found; "selection" is the selected text; "history" is
    what another service was shown in this conversation; "call": a tool of an MCP server is to be called with `args`; "tools": such a server's
    tools are to be offered to the model. These two have no items, but a `text` that is all of it. `number` of `total` questions of one round.
    """

    call_id: str
    kind: RequestKind
    tool: str
    purpose: str
    args: Mapping[str, Any]
    items: tuple[ShareItem, ...]
    provider: str
    address: str
    number: int = 1
    total: int = 1
    text: str = ""

    @property
    def folder(self) -> str:
        """What "this folder" means here: the deepest one that holds all items, "" for the whole vault."""
        return common_folder(item.path for item in self.items)

    @property
    def tokens(self) -> int:
        """About how many tokens all items take."""
        return sum(item.tokens for item in self.items)


Scope = Literal["once", "thread", "folder", "no"]


@dataclass(frozen=True, slots=True)
class ShareDecision:
    """The person's answer. `paths` are the chosen items, None for all of them; none at all is a valid answer.

    "once": these now. "thread": these, at this level (where lines were shown, other lines of the same files too), as long as the
    conversation lasts. "folder": these, and everything in the request's folder at this level, as long as the conversation lasts; items that
    were not chosen are asked for again. "no": nothing; with `args`, the tool is to look again with these arguments and ask anew.
    Without `asked` it is no answer of the user, but that of a program that cannot ask.
    """

    scope: Scope
    paths: frozenset[str] | None = None
    args: Mapping[str, Any] | None = None
    asked: bool = True

    def chosen(self, request: ShareRequest) -> frozenset[str]:
        """The paths of the request that may be sent; what was not asked for cannot be chosen."""
        if self.scope == "no":
            return frozenset()
        offered = frozenset(item.path.text for item in request.items)
        return offered if self.paths is None else offered & self.paths


REFUSED = ShareDecision("no")
UNASKED = ShareDecision("no", asked=False)

ApproveShare = Callable[[ShareRequest], Awaitable[ShareDecision]]
"""Asks the person; answers when they have decided."""


async def refuse_all(request: ShareRequest) -> ShareDecision:
    """Refuse without a question, where no front end can ask one."""
    return UNASKED


@dataclass(slots=True)
class Grants:
    """What the person allowed for the rest of one conversation."""

    files: dict[str, Level] = field(default_factory=dict)
    folders: dict[str, Level] = field(default_factory=dict)
    excepted: dict[str, Level] = field(default_factory=dict)
    """Files inside such folders that were left out, with the least level at which they were."""
    tools: set[str] = field(default_factory=set)
    """Tools of MCP servers that are called without a question, by the names that models call."""

    def record(self, request: ShareRequest, decision: ShareDecision) -> None:
        """Keep what an answer allows beyond the request itself."""
        chosen = decision.chosen(request)
        if decision.scope not in ("thread", "folder"):
            return
        for item in request.items:
            if item.path.text in chosen:
                self.files[item.path.text] = max(
                    item.level, self.files.get(item.path.text, Level.NAME)
                )
                self.excepted.pop(item.path.text, None)
        if decision.scope == "folder" and chosen:
            level = min(item.level for item in request.items if item.path.text in chosen)
            self.folders[request.folder] = max(level, self.folders.get(request.folder, Level.NAME))
            for item in request.items:
                if item.path.text not in chosen:
                    self.excepted[item.path.text] = min(
                        item.level, self.excepted.get(item.path.text, Level.TEXT)
                    )

    def named(self, path: VaultPath, level: Level) -> bool:
        """Whether so much of this very file was allowed."""
        return self.files.get(path.text, 0) >= level

    def cover(self, path: VaultPath, level: Level) -> bool:
        """Whether so much of a file or folder was allowed."""
        if self.named(path, level):
            return True
        if path.text in self.excepted and level >= self.excepted[path.text]:
            return False
        return any(
            granted >= level and _inside(path, folder) for folder, granted in self.folders.items()
        )


def _inside(path: VaultPath, folder: str) -> bool:
    return not folder or path.text == folder or path.text.startswith(f"{folder}/")


@dataclass(frozen=True, slots=True)
class Gate:
    """Decides without asking: denied, allowed, or the person's to say. `real` is where a path leads when links are followed."""

    rules: SharingRules
    grants: Grants
    local: bool
    real: Callable[[VaultPath], VaultPath]

    @property
    def open(self) -> bool:
        """Whether everything that is not denied may be sent: the model is on this machine, and the rules let those have it."""
        return self.rules.local and self.local

    @property
    def may_allow(self) -> bool:
        """Whether anything at all may be sent without asking."""
        return (
            self.open
            or bool(self.rules.allow)
            or bool(self.grants.files)
            or bool(self.grants.folders)
        )

    def denied(self, path: VaultPath) -> bool:
        """Whether a rule hides it, or what it leads to."""
        return self.rules.verdict(path, self.real).decision == "deny"

    def allowed(self, path: VaultPath, level: Level) -> AllowedBy | None:
        """Why so much of it may be sent without asking; None when it may not."""
        decision = self.rules.verdict(path, self.real, local=self.local).decision
        if decision == "deny":
            return None
        if decision == "allow":
            return "local" if self.open else "rule"
        granted = self.grants.named(path, level) or (
            self.grants.cover(path, level) and self.grants.cover(self.real(path), level)
        )
        return "granted" if granted else None
