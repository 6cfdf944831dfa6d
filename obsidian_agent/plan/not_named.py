"""Changed files that the user's request does not point at.

A model may be misled by a note that it reads into changing other notes. A file is pointed at if the
request names it, its folder or one of its tags, or if the plan finds it with a search for something
that the request mentions. Files whose links follow a rename are never meant.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Final

from msgspec import Struct

from obsidian_agent.expression import expression
from obsidian_agent.plan.model import ActionPlan, Step
from obsidian_agent.plan.result import Flag, Instance, is_named
from obsidian_agent.tools.core.tool import Risk, RunContext, Tool
from obsidian_agent.vault.paths.path import ROOT, VaultPath
from obsidian_agent.vault.views.changes import ChangeSet, link_updates
from obsidian_agent.vault.views.view import VaultView

MAX_LISTED_FILES: Final = 10
"""Up to this many files that the request does not name are listed one by one."""

_TAG: Final = expression(r"#([^\s#,.;:!?()\"'“”]+)")
_REFERENCE: Final = expression(r"\$\{[^}]*\}|^\$[A-Za-z]\S*$")
_OPERATOR: Final = expression(r"\w+:(?=\S)")
"""The name of a search operator, such as `path:`."""
_WORD: Final = expression(r"[^\W_]+")
_NO_CONDITIONS: Final = frozenset(("kind", "not", "sort"))
"""Arguments of searches that don't say which notes are meant."""
_SHORT: Final = 3
_STEM: Final = 4
"""Letters of a word of the request that is enough to name a longer one: “book” and “books”."""


class NamedFiles(Struct, frozen=True, kw_only=True, dict=True):
    """The files that a request points at, for a plan that has been dry-run over `view`.

    `needed` are the steps that a step depends on, with those that these depend on.
    """

    instruction: str
    plan: ActionPlan
    instances: Sequence[Instance]
    needed: Mapping[str, frozenset[str]]
    tools: Mapping[str, Tool]
    context: RunContext
    view: VaultView

    def flags(self, change_set: ChangeSet) -> Iterator[Flag]:
        """Yield flags for existing files, and for moved or deleted folders, not pointed at."""
        steps = self._steps_of(change_set)
        is_link_update = link_updates(change_set)
        unnamed = [
            change.path
            for change in change_set.changes
            if change.kind != "mkdir"
            and (change.before is not None or change.folder)
            and not is_link_update(change)
            and not self._names(change.path)
            and not self._selects(change.path, steps.get(change.path.text, set()))
        ]
        if len(unnamed) > MAX_LISTED_FILES:
            count, first = len(unnamed), unnamed[0]
            detail = f"Your message does not mention {count} of the changed files, such as {first}."
            yield Flag("notNamed", detail)
            return
        for path in unnamed:
            yield Flag("notNamed", "Your message does not mention this file.", path.text)

    def _steps_of(self, change_set: ChangeSet) -> dict[str, set[str]]:
        """Return the steps that change each path of the vault."""
        steps: defaultdict[str, set[str]] = defaultdict(set)
        for owned in change_set.operations:
            steps[owned.operation.path.text].add(self.instances[owned.instance].step_id)
        for change in change_set.changes:
            steps[change.path.text] |= {self.instances[writer].step_id for writer in change.writers}
        return steps

    def _names(self, path: VaultPath) -> bool:
        """Return True if the request names a file or its folder, or the file is the open note."""
        return (
            path == self.context.active_file or is_named(path, self._text) or path in self._tagged
        )

    def _selects(self, path: VaultPath, ids: Iterable[str]) -> bool:
        """Return True if a search found the file by what the request mentions, or took all."""
        is_written = path.text.casefold().removesuffix(".md") in self._written
        return not is_written and any(self._mentions(self._conditions(id)) for id in ids)

    def _conditions(self, step_id: str) -> set[str]:
        """Return the words of the searches that a step needs, or its own ones without any."""
        searches = [
            step
            for step in self.plan.steps
            if step.id in self.needed.get(step_id, ())
            and self.tools[step.tool].risk is Risk.READ_ONLY
        ]
        steps = searches or [step for step in self.plan.steps if step.id == step_id]
        texts = (_OPERATOR.sub("", text) for step in steps for text in _texts(step))
        words = (word for text in texts for word in _WORD.findall(text.casefold()))
        return {word for word in words if len(word) >= _SHORT or not word.isascii()}

    def _mentions(self, words: set[str]) -> bool:
        """Return True if the request has one of the words.

        A search without words takes all notes, which a request that names a note does not mean.
        """
        if not words:
            return not self._has_name
        return any(
            word in self._text or any(word.startswith(stem) for stem in self._stems)
            for word in words
        )

    @cached_property
    def _text(self) -> str:
        """The request and the selected text."""
        selection = self.context.selection.text if self.context.selection else ""
        return f"{self.instruction}\n{selection}".casefold()

    @cached_property
    def _has_name(self) -> bool:
        """True if the request names a note of the vault."""
        spoken = f" {' '.join(_WORD.findall(self._text))} "
        names = (_WORD.findall(path.stem.casefold()) for path in self.view.index.notes(ROOT))
        return any(f" {' '.join(name)} " in spoken for name in names if name)

    @cached_property
    def _stems(self) -> set[str]:
        return {word for word in _WORD.findall(self._text) if len(word) >= _STEM}

    @cached_property
    def _tagged(self) -> set[VaultPath]:
        tags = _TAG.findall(self._text)
        return {path for tag in tags for path in self.view.index.tagged(tag, ROOT)}

    @cached_property
    def _written(self) -> set[str]:
        """The texts in the plan, which may be paths that its author chose."""
        texts = [text for step in self.plan.steps for text in _texts(step)]
        for parameter in self.plan.parameters.values():
            texts += _strings(parameter.default)
        return {text.casefold().removesuffix(".md") for text in texts}


def _texts(step: Step) -> Iterator[str]:
    """Yield the texts in the arguments of a step and in its list, without references."""
    values = [step.args, step.foreach.from_ if step.foreach is not None else None]
    for text in _strings(values):
        yield _REFERENCE.sub("", text)


def _strings(value: object) -> Iterator[str]:
    match value:
        case str():
            yield value
        case Mapping():
            for key, item in value.items():
                if key not in _NO_CONDITIONS:
                    yield from _strings(item)
        case list():
            for item in value:
                yield from _strings(item)


def all_needed(direct: Mapping[str, Iterable[str]]) -> dict[str, frozenset[str]]:
    """Return the steps that each step needs, with those that these need."""
    result: dict[str, frozenset[str]] = {}

    def collect(step: str) -> frozenset[str]:
        if step not in result:
            result[step] = frozenset()
            ids = frozenset(direct.get(step, ()))
            result[step] = ids.union(*(collect(id) for id in ids))
        return result[step]

    for step in direct:
        collect(step)
    return result
