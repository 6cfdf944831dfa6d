"""Consent: rules and permissions on what may be sent to a model, and the questions to the user.

No content of a note leaves the machine unless a rule or an answer of the user covers it: this very
file, or a folder named on the screen, at the level displayed there. Permission for the matching
lines of a search is not permission for the note.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from enum import IntEnum
from typing import Any, Literal

from msgspec import Struct, field

from obsidian_agent.plan.policy import NamesOf, SharingRules
from obsidian_agent.vault.paths.path import VaultPath

AllowedBy = Literal["once", "thread", "folder", "granted", "rule", "local", "context", "trusted"]
"""The reason why something may be sent.

"once", "thread", "folder": the user's answer just now. "granted": an earlier one in the
conversation. "rule": a setting. "local": the model is on this machine. "context": every request
names the open notes and holds what the user supplied with it. "trusted": the user trusts it as
instructions.
"""
RequestKind = Literal["files", "results", "selection", "history", "call", "tools", "resource"]
Scope = Literal["once", "thread", "folder", "no"]
CHARACTERS_A_TOKEN = 4
"""The usual rule of thumb; the count of a service differs by language and model."""


def common_folder(paths: Iterable[VaultPath]) -> str:
    """Return the deepest folder that contains all the files; "" for the vault itself."""
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
    """The extent to which a file is shared. A higher level includes the lower ones."""

    NAME = 1
    """Its existence: path, size, time."""
    PREVIEW = 2
    """Some lines or properties, exactly those displayed."""
    TEXT = 3
    """Its whole text."""


class SharedPart(Struct, frozen=True):
    """Content of a file that is sent, with its length and level.

    `path` is "" for text that is in no file.
    """

    path: str
    level: Level
    characters: int


def tokens_of(characters: int) -> int:
    """Return the estimated number of tokens of a text of this length."""
    return -(-characters // CHARACTERS_A_TOKEN)


class ShareItem(Struct, frozen=True, kw_only=True):
    """A file or folder with content to be sent, `size` bytes or about `tokens` tokens of it.

    `previews` are the exact lines to be sent if it is not the whole file. `why` is the model's
    reason.
    """

    path: VaultPath
    level: Level
    size: int
    tokens: int
    why: str = ""
    previews: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The name of the file or folder."""
        return self.path.name


class ShareRequest(Struct, frozen=True, kw_only=True):
    """A question to the user: whether to send this to `provider` at `address`.

    It is question `number` of `total` in one round. The values of `kind` are these.

    "files": whole files. "results": lines or names that match a search. "selection": the selected
    text. "history": content that another service got earlier in this conversation. "call": call a
    tool of an MCP server with `args`. "tools": offer the tools of such a server to the model.
    "resource": a text of such a server. The last three have no items; their `text` is complete.
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
        """The folder that an answer "folder" covers: the deepest one with all items, or ""."""
        return common_folder(item.path for item in self.items)

    @property
    def tokens(self) -> int:
        """The estimated number of tokens of all items."""
        return sum(item.tokens for item in self.items)


class ShareDecision(Struct, frozen=True):
    """The user's answer. `paths` are the chosen items, None for all; an empty set is valid.

    "once": these items now. "thread": these items at this level for the rest of the conversation
    (if lines were displayed, other lines of the same files too). "folder": also everything in the
    request's folder at this level, for the rest of the conversation; items that were not chosen
    need another question. "no": nothing; with `args`, the tool runs again with these arguments and
    its result needs another question. `by_user` is False if no question could be displayed.
    """

    scope: Scope
    paths: frozenset[str] | None = None
    args: Mapping[str, Any] | None = None
    by_user: bool = True

    def chosen(self, request: ShareRequest) -> frozenset[str]:
        """Return the chosen paths of the request. Paths outside the request are ignored."""
        if self.scope == "no":
            return frozenset()
        offered = frozenset(item.path.text for item in request.items)
        return offered if self.paths is None else offered & self.paths


REFUSED = ShareDecision("no")
UNASKED = ShareDecision("no", by_user=False)

ApproveShare = Callable[[ShareRequest], Awaitable[ShareDecision]]
"""Ask the user and return the decision."""


async def refuse_all(request: ShareRequest) -> ShareDecision:
    """Refuse, for front ends that cannot ask."""
    return UNASKED


class Grants(Struct):
    """The user's permissions for the rest of one conversation."""

    files: dict[str, Level] = field(default_factory=dict)
    folders: dict[str, Level] = field(default_factory=dict)
    excepted: dict[str, Level] = field(default_factory=dict)
    """Files inside these folders that were not chosen, with the lowest refused level."""
    tools: set[str] = field(default_factory=set)
    """Tools of MCP servers that need no further question, by the names that models use.

    Resources too, by the names that rules use.
    """

    def record(self, request: ShareRequest, decision: ShareDecision) -> None:
        """Store the permissions of an answer that outlast the request."""
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
        """Return True if this very file was allowed at this level."""
        return self.files.get(path.text, 0) >= level

    def cover(self, path: VaultPath, level: Level) -> bool:
        """Return True if a file, or its folder, was allowed at this level."""
        if self.named(path, level):
            return True
        if path.text in self.excepted and level >= self.excepted[path.text]:
            return False
        return any(
            granted >= level and _inside(path, folder) for folder, granted in self.folders.items()
        )


def _inside(path: VaultPath, folder: str) -> bool:
    return not folder or path.text == folder or path.text.startswith(f"{folder}/")


class Gate(Struct, frozen=True):
    """The decision by rules and permissions. `names` returns all paths of a file."""

    rules: SharingRules
    grants: Grants
    local: bool
    names: NamesOf

    @property
    def open(self) -> bool:
        """True if everything not denied may be sent: local models are allowed, and this is one."""
        return self.rules.local and self.local

    @property
    def may_allow(self) -> bool:
        """True if anything may be sent without a question."""
        return (
            self.open
            or bool(self.rules.allow)
            or bool(self.grants.files)
            or bool(self.grants.folders)
        )

    def denied(self, path: VaultPath) -> bool:
        """Return True if a rule hides the file, by any of its paths."""
        return self.rules.verdict(path, self.names).decision == "deny"

    def allowed(self, path: VaultPath, level: Level) -> AllowedBy | None:
        """Return the reason why this may be sent without a question; None if there is none."""
        decision = self.rules.verdict(path, self.names, local=self.local).decision
        if decision == "deny":
            return None
        if decision == "allow":
            return "local" if self.open else "rule"
        granted = self.grants.named(path, level) or (
            self.grants.cover(path, level)
            and all(self.grants.cover(name, level) for name in self.names(path))
        )
        return "granted" if granted else None
