"""Several instructions in one message: what "it" and "them" are, what a part leaves behind, and one plan of several.

Each part is planned over what the parts before it would make, so that it can speak of that; the joined plan has the steps of all.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from obsidian_agent.errors import ObsidianAgentError
from obsidian_agent.plan.model import ActionPlan
from obsidian_agent.plan.result import Preview
from obsidian_agent.providers.offline.framing import masked
from obsidian_agent.vault.changes import CreateFile, DeleteEntry, FileChange, MakeFolder, ModifyFile, NetChange, RenameEntry
from obsidian_agent.vault.overlay import OverlayVault
from obsidian_agent.vault.view import VaultView

MOST_NAMED = 30
"""Notes that "them" can stand for."""

_NOUN = r"(?:note|notes|file|files|page|pages|ones|one|copy|entry)"
_THEM = re.compile(
    rf"\b(?:it|(?:both|all|each|all two|all three|all four|every one) of them|(?:both|all|these|those)(?= *(?:$|[.,;!]|\b(?:to|into|in|with|from|under|as)\b))"
    rf"|them(?: (?:both|all))?|both notes|(?:this|that|the|the new|the same|these|those|the moved|the copied|the renamed) {_NOUN})\b(?!['’])",
    re.IGNORECASE,
)
_SEVERAL = re.compile(r"(?:them|these|those|both|all)(?: .*)?|(?:both|all|each|every one) .*|.*\b(?:notes|files|pages|ones)", re.IGNORECASE)
_ITS = re.compile(r"\bits ([\w-]+)(?= (?:to|as|=|from)\b)", re.IGNORECASE)
_READING = ("vault.find", "vault.list", "vault.search", "vault.get", "vault.read", "vault.query", "util.", "template.", "workspace.")
"""How the names of tools begin that only look."""

_BESIDE_IT = re.compile(
    r"\b((?:right |directly |just |immediately )?(?:after|before|below|above|under|underneath|behind|beneath)) (?:it|that|that one|that task|that line)\b",
    re.IGNORECASE,
)
_THERE = re.compile(r"\b(?:there|into it|(?:in|into|to) (?:that|this|the new) folder)\b", re.IGNORECASE)
_RISKS = ("read-only", "writes", "commands")


def pointed(part: str, done: Preview) -> str | None:
    """A part with names in place of "it", "them" and "there"; None when they can stand for nothing that was done before."""
    folders = [change.path.text for change in done.change_set.changes if change.kind == "mkdir"]
    if _THERE.search(masked(part)):
        if len(folders) != 1:
            return None
        part = _put(_THERE, part, lambda found: f"into [[{folders[0]}]]" if found[0].lower() != "there" else f"to [[{folders[0]}]]")
    part = _put(_ITS, part, lambda found: f"{found[1]} of it")
    line = _line(done) if _BESIDE_IT.search(masked(part)) else None
    if line is not None:
        place = "" if re.search(r"\b(?:in|to|on) (?:\[\[|it\b|that note)", part) else f" in [[{line[1].removesuffix('.md')}]]"
        part = _put(_BESIDE_IT, part, lambda found: f"{found[1]} the line '{line[0]}'{place}")
    said = list(_THEM.finditer(masked(part)))
    if not said:
        return part
    named = [path.removesuffix(".md") for path in _made(done)]
    if not named or len(named) > MOST_NAMED:
        return None
    if {bool(_SEVERAL.fullmatch(found[0])) for found in said} != {len(named) > 1}:
        return None
    links = [f"[[{path}]]" for path in named]
    whole = links[0] if len(links) == 1 else f"{', '.join(links[:-1])} and {links[-1]}"
    return _put(_THEM, part, lambda _: whole)


def _put(pattern: re.Pattern[str], text: str, said: Callable[[re.Match[str]], str]) -> str:
    """Put other words where a pattern fits outside of quotes and links."""
    for found in reversed(list(pattern.finditer(masked(text)))):
        text = text[: found.start()] + said(found) + text[found.end() :]
    return text


def _line(done: Preview) -> tuple[str, str] | None:
    """The line that a part dealt with, and its note: a task that was ticked, or a text that was added."""
    for instance in reversed(done.instances):
        text, path = instance.args.get("text") or instance.args.get("content"), instance.args.get("path")
        if isinstance(text, str) and isinstance(path, str) and "\n" not in text.strip() and "'" not in text:
            return re.sub(r"^\s*[-*+] (?:\[.\] )?", "", text).strip(), path
    return None


def implied(part: str, done: Preview) -> str | None:
    """A part that leaves out what it is about, with the one note that the part before it was about: "… and add a task 'x' [in it]"."""
    named = [path.removesuffix(".md") for path in _made(done)]
    return f"{part.rstrip(' .!;')} in [[{named[0]}]]" if len(named) == 1 else None


def _made(done: Preview) -> list[str]:
    """The notes that a part was about: those it made, else those that its last changing step dealt with, changed or not."""
    created = [change.path for change in done.change_set.changes if change.kind == "create"]
    if created:
        return [path.text for path in created if path.is_note]
    dealt: dict[str, list[str]] = {}
    for instance in done.instances:
        path = instance.output.get("path") if isinstance(instance.output, Mapping) else None
        if isinstance(path, str) and path.lower().endswith(".md") and not instance.tool.startswith(_READING):
            dealt.setdefault(instance.step_id, []).append(path)
    return list(dict.fromkeys(next(reversed(dealt.values()), [])))


def after(view: VaultView, done: Sequence[NetChange], now_ms: float) -> VaultView | None:
    """The vault as a part would leave it; None when that cannot be told."""
    overlay = OverlayVault(view, now_ms)
    order = {"mkdir": 0, "rename": 1, "delete": 2, "create": 3, "modify": 4}
    try:
        for change in sorted(done, key=lambda change: order[change.kind]):
            overlay.apply(tuple(_changes(change)), 0)
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
