"""Several instructions in one message: where it may be divided, what "it" and "them" are, and one plan of several.

Each part is planned over what the parts before it would make, so that it can speak of that; the joined plan has the steps of all.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from obsidian_agent.errors import ObsidianAgentError
from obsidian_agent.plan.model import ActionPlan
from obsidian_agent.plan.result import Preview
from obsidian_agent.providers.offline.lexicon import word_set
from obsidian_agent.providers.offline.tokens import Token, tokenise
from obsidian_agent.vault.changes import CreateFile, DeleteEntry, FileChange, MakeFolder, ModifyFile, NetChange, RenameEntry
from obsidian_agent.vault.overlay import OverlayVault
from obsidian_agent.vault.view import VaultView

MOST_PARTS = 4
MOST_PAIRS = 12
MOST_NAMED = 30
"""Notes that "them" can stand for."""

_VERBS = word_set(
    "add append archive assign call change check collect complete convert copy create cross delete duplicate extract file fill find fix gather "
    "generate give group index insert label link list make mark merge move open place prefix prepend put remove rename replace reopen roll save "
    "set sort split start strip tag tick transfer turn uncheck untag write"
)
_POLITE = word_set("please also finally afterwards next now")
_THEM = re.compile(
    r"\b(?:it|them|(?:this|that|the|the new|these|those|the moved|the copied) (?:note|notes|file|files|ones|copy))\b(?!['’])", re.IGNORECASE
)
_SEVERAL = re.compile(r"(?:them|these|those)(?: .*)?|.*\b(?:notes|files|ones)", re.IGNORECASE)
_ITS = re.compile(r"\bits ([\w-]+)(?= (?:to|as|=|from)\b)", re.IGNORECASE)
_CHANGING = frozenset(
    (
        "vault.rename",
        "vault.setFrontmatter",
        "vault.updateFile",
        "vault.removeTags",
        "vault.addValues",
        "vault.markTasks",
        "vault.createFile",
    )
)
_MARKED = frozenset(("link", "quoted"))
_THERE = re.compile(r"\b(?:there|into it|(?:in|into|to) (?:that|this|the new) folder)\b", re.IGNORECASE)
_RISKS = ("read-only", "writes", "commands")


def parts(message: str) -> list[str]:
    """The instructions of a message: it is divided before verbs, behind a full stop, a comma, "and" or "then"; one part when nowhere."""
    tokens = tokenise(message)
    pairs = _pairs(message, tokens)
    if pairs:
        return pairs
    cuts = list(_cuts(tokens))
    if not cuts or len(cuts) >= MOST_PARTS:
        return [message]
    starts = [0, *(tokens[begin].start for _, begin in cuts)]
    ends = [*(tokens[end].start for end, _ in cuts), len(message)]
    return [message[start:end].strip() for start, end in zip(starts, ends, strict=True)]


def _pairs(message: str, tokens: Sequence[Token]) -> list[str]:
    """ "Rename [[a]] to 'b', [[c]] to 'd' and [[e]] to 'f'" as an instruction for each pair; only names in marks make pairs."""
    at = 0
    while at < len(tokens) and tokens[at].lower in _POLITE:
        at += 1
    if at >= len(tokens) or tokens[at].lower not in ("rename", "move"):
        return []
    verb, at = tokens[at].text, at + 1
    found = []
    while at + 2 < len(tokens):
        before, joint, after_it = tokens[at : at + 3]
        if before.kind not in _MARKED or joint.lower not in ("to", "into") or after_it.kind not in _MARKED:
            return []
        found.append(f"{verb} {message[before.start : after_it.end]}")
        at += 3
        while at < len(tokens) and (tokens[at].text in (",", ";", ".", "!") or tokens[at].lower == "and"):
            at += 1
    return found if at == len(tokens) and 1 < len(found) <= MOST_PAIRS else []


def _cuts(tokens: Sequence[Token]) -> Iterator[tuple[int, int]]:
    """Where a part ends, and where the next one begins."""
    at = 1
    while at < len(tokens):
        begin = at
        while begin < len(tokens) and (tokens[begin].text in (",", ".", ";") or tokens[begin].lower in ("and", "then")):
            begin += 1
        joined = begin > at
        while joined and begin < len(tokens) and tokens[begin].lower in _POLITE:
            begin += 1
        if joined and begin < len(tokens) - 1 and tokens[begin].lower in _VERBS:
            yield at, begin
        at = max(begin, at + 1)


def pointed(part: str, done: Preview) -> str | None:
    """A part with names in place of "it", "them" and "there"; None when they can stand for nothing that was done before."""
    folders = [change.path.text for change in done.change_set.changes if change.kind == "mkdir"]
    if _THERE.search(part):
        if len(folders) != 1:
            return None
        part = _THERE.sub(lambda found: f"into [[{folders[0]}]]" if found[0].lower() != "there" else f"to [[{folders[0]}]]", part)
    part = _ITS.sub(lambda found: f"{found[1]} of it", part)
    if not _THEM.search(part):
        return part
    named = [path.removesuffix(".md") for path in _made(done)]
    if not named or len(named) > MOST_NAMED:
        return None
    plural = {bool(_SEVERAL.fullmatch(found[0])) for found in _THEM.finditer(part)}
    if plural != {len(named) > 1}:
        return None
    links = [f"[[{path}]]" for path in named]
    said = links[0] if len(links) == 1 else f"{', '.join(links[:-1])} and {links[-1]}"
    return _THEM.sub(lambda _: said, part)


def _made(done: Preview) -> list[str]:
    """The notes that a part was about: those it made, else those that its last changing step dealt with, changed or not."""
    created = [change.path for change in done.change_set.changes if change.kind == "create"]
    if created:
        return [path.text for path in created if path.is_note]
    dealt: dict[str, list[str]] = {}
    for instance in done.instances:
        path = instance.output.get("path") if isinstance(instance.output, Mapping) else None
        if isinstance(path, str) and path.lower().endswith(".md") and instance.tool in _CHANGING:
            dealt.setdefault(instance.step_id, []).append(path)
    return list(dict.fromkeys(next(reversed(dealt.values()), [])))


def after(view: VaultView, done: Sequence[NetChange], now_ms: float) -> VaultView | None:
    """The vault as a part would leave it; None when that cannot be told."""
    overlay = OverlayVault(view, now_ms)
    order = {"mkdir": 0, "rename": 1, "delete": 2, "create": 3, "modify": 4}
    try:
        for change in sorted(done, key=lambda change: order[change.kind]):
            for each in _changes(change):
                overlay.apply(each, 0)
    except ObsidianAgentError:
        return None
    return overlay


def _changes(change: NetChange) -> Iterator[FileChange]:
    match change.kind:
        case "mkdir":
            yield MakeFolder(change.path)
        case "create":
            yield CreateFile(change.path, change.content or b"")
        case "modify":
            yield ModifyFile(change.path, change.content or b"")
        case "delete":
            yield DeleteEntry(change.path)
        case "rename":
            assert change.new_path is not None
            yield RenameEntry(change.path, change.new_path)
            if change.content is not None:
                yield ModifyFile(change.new_path, change.content)


def joined(plans: Sequence[ActionPlan]) -> ActionPlan:
    """One plan with the steps of all, in order; ids, captured names and parameters get the number of their part."""
    documents = [_numbered(plan.to_json(), number) for number, plan in enumerate(plans, 1)]
    return ActionPlan.model_validate(
        {
            "version": documents[0]["version"],
            "goal": "; ".join(document["goal"] for document in documents),
            "assumptions": [text for document in documents for text in document.get("assumptions", [])],
            "riskLevel": max((document["riskLevel"] for document in documents), key=_RISKS.index),
            "parameters": {name: declared for document in documents for name, declared in document.get("parameters", {}).items()},
            "steps": [step for document in documents for step in document["steps"]],
        }
    )


def _numbered(document: dict[str, Any], number: int) -> dict[str, Any]:
    ids = {step["id"] for step in document["steps"]}
    captured = {step["captureAs"] for step in document["steps"] if step.get("captureAs")}
    rename = _renaming(ids, captured, set(document.get("parameters", {})), f"_part{number}")
    steps = []
    for step in document["steps"]:
        made = dict(step) | {"id": f"{step['id']}_part{number}"}
        for key in ("args", "when", "foreach"):
            if made.get(key) is not None:
                made[key] = _rewritten(made[key], rename)
        if made.get("captureAs"):
            made["captureAs"] = f"{made['captureAs']}_part{number}"
        if made.get("dependsOn"):
            made["dependsOn"] = [f"{name}_part{number}" for name in made["dependsOn"]]
        steps.append(made)
    parameters = {f"{name}_part{number}": declared for name, declared in document.get("parameters", {}).items()}
    return document | {"steps": steps, "parameters": parameters}


def _renaming(ids: set[str], captured: set[str], parameters: set[str], ending: str) -> Callable[[str], str]:
    """Puts the new names into the references of a text."""
    patterns = []
    for names, heads in ((ids, r"\$?steps\."), (captured, r"\$?vars\.")):
        if names:
            any_of = "|".join(map(re.escape, sorted(names, key=len, reverse=True)))
            patterns.append(re.compile(rf"((?<!\$)\$\{{{heads})({any_of})(?![A-Za-z0-9_])"))
            patterns.append(re.compile(rf"(\A{heads.replace('?', '')})({any_of})(?![A-Za-z0-9_])"))
    if parameters:
        any_of = "|".join(map(re.escape, sorted(parameters, key=len, reverse=True)))
        patterns.append(re.compile(rf"((?<!\$)\$\{{)({any_of})(?![A-Za-z0-9_])"))

    def rename(text: str) -> str:
        for pattern in patterns:
            text = pattern.sub(lambda found: f"{found[1]}{found[2]}{ending}", text)
        return text

    return rename


def _rewritten(value: Any, change: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, list):
        return [_rewritten(each, change) for each in value]
    if isinstance(value, Mapping):
        return {key: _rewritten(each, change) for key, each in value.items()}
    return value
