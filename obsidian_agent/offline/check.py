"""Is it sure? What speaks against a plan for a sentence, whoever made it: a doubted plan is asked about, and never run unasked.

All that is said is used, and all that is used was said: both ways it is compared by words, so that it holds in any language. It errs on the
side of asking.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import regex

from obsidian_agent.errors import ObsidianAgentError
from obsidian_agent.offline import dates
from obsidian_agent.offline.names import in_context, key_of
from obsidian_agent.offline.note_set import ACTIVE, SLOTS, NoteSet
from obsidian_agent.offline.reader import quoted, quotes
from obsidian_agent.offline.recipe import SLOT, Input, Recipe, packaged
from obsidian_agent.offline.surroundings import Surroundings
from obsidian_agent.offline.words import FUNCTION_WORDS, WORD, stem, words
from obsidian_agent.plan.model import ActionPlan
from obsidian_agent.plan.result import Preview
from obsidian_agent.tools.registry import TOOLS

_EVERYTHING: Final = frozenset({"all", "every", "everything", "everywhere", "each", "whole", "vault", "any"})
"""Words that say that every note is meant; English, like the vault itself is only in other languages' sentences by a name."""

_DESCRIBING: Final = frozenset(
    {"sentence", "summary", "paragraph", "description", "list", "about", "what", "which", "who", "how", "why", "whether"}
)
"""Words of a text that rather tell what to write."""

_MANY: Final = 10
"""So many files changed are more than a sentence means that names one note."""

_PROSE: Final = 6
"""A text of so many words that is in no quotes may be meant as an order to write one."""

_LINKED: Final = frozenset({"content", "text", "template", "preview", "replace"})
_WRITTEN: Final = regex.compile(r"[:：]\s*(?P<text>\S.*)$", regex.DOTALL)


def doubts(
    sentence: str,
    around: Surroundings,
    *,
    recipe: Recipe | None = None,
    values: Mapping[str, Any] | None = None,
    plan: ActionPlan | None = None,
    preview: Preview | None = None,
    certain: bool = False,
    live: bool = True,
) -> tuple[str, ...]:
    """What speaks against a plan, each as one sentence; nothing when it is sure.

    `recipe` and `values` (as `values.read` gives them): the plan was chosen from the menu. Else `plan` was written as a whole. `certain`: the
    sentence is an example of the recipe, so that all of it is covered, and only the effect is looked at. Not `live`: the notes that are meant are not counted. May block.
    """
    known = dict(values or {})
    found: list[str] = []
    if not certain:
        said = _Sentence.of(sentence, around)
        used = _of_recipe(recipe, known) if recipe is not None else _of_plan(plan)
        found += _uncovered(said, used, around)
        found += _neighbours(said, known, around) if recipe is not None else ()
        found += _unsaid(said, recipe, known, plan, around)
        found += _renames(said, _new_names(recipe, known, plan))
        found += _described(said, _texts(recipe, known, plan))
    if live:
        found += _sets(sentence, known, around, certain=certain)
    if preview is not None:
        tools = recipe.tools if recipe is not None else tuple(step.tool for step in plan.steps) if plan is not None else ()
        found += _effect(sentence, preview, tools, around, certain=certain)
    return tuple(dict.fromkeys(found))


@dataclass(frozen=True, slots=True)
class _Sentence:
    text: str
    key: str
    quotes: tuple[str, ...]
    written: str

    @classmethod
    def of(cls, text: str, around: Surroundings) -> _Sentence:
        """With its quoted texts, and what stands behind a colon at its end."""
        behind = _WRITTEN.search(text)
        return cls(text, key_of(text), quoted(text), key_of(behind["text"]) if behind else "")

    def literal(self, text: str) -> bool:
        """Whether a text is in the sentence in quotes or behind its colon, so that it is meant as it is."""
        key = key_of(text)
        return any(key in key_of(each) for each in self.quotes) or bool(key and key in self.written)


@dataclass(frozen=True, slots=True)
class _Used:
    """The words that a plan is made of, and the texts it holds."""

    stems: frozenset[str]
    texts: tuple[str, ...]


def _of_recipe(recipe: Recipe, values: Mapping[str, Any]) -> _Used:
    """The words of its title, of its values, and of the examples whose slots all have a value: “before” is used where a day is."""
    own = [recipe.title, *(SLOT.sub(" ", example) for example in recipe.examples if _is_filled(example, values))]
    labels = [wanted.options[str(values[name])] for name, wanted in recipe.inputs.items() if str(values.get(name)) in wanted.options]
    texts = tuple(_leaves({name: _plain(value) for name, value in values.items()}))
    return _Used(frozenset(words(" ".join((*own, *labels, *texts)))), texts)


def _is_filled(example: str, values: Mapping[str, Any]) -> bool:
    for name, field in SLOT.findall(example):
        value = values.get(name)
        if value is None or (field and not any(term.key == SLOTS[field][0] for term in value.terms)):
            return False
    return True


def _of_plan(plan: ActionPlan | None) -> _Used:
    """The words of its arguments, and of the recipes that change things with the same tools."""
    if plan is None:
        return _Used(frozenset(), ())
    texts = tuple(_leaves([(step.args, step.foreach.from_ if step.foreach else None) for step in plan.steps]))
    wanted = _changing(step.tool for step in plan.steps)
    own = [
        text for recipe in packaged() if (made := _changing(recipe.tools)) and made <= wanted for text in (recipe.title, *recipe.examples)
    ]
    return _Used(frozenset(words(" ".join((*(SLOT.sub(" ", text) for text in own), *texts)))), texts)


def _changing(tools: Iterable[str]) -> frozenset[str]:
    return frozenset(tool for tool in tools if tool not in TOOLS or TOOLS[tool].risk != "read-only")


def _plain(value: Any) -> Any:
    return (
        [term.value for term in value.terms] + [term.property for term in value.terms] + [value.text()]
        if isinstance(value, NoteSet)
        else value
    )


def _leaves(value: Any) -> Iterator[str]:
    """All texts in a value, keys among them."""
    match value:
        case str():
            yield value
        case bool() | None:
            return
        case int() | float():
            yield str(value)
        case Mapping():
            for key, each in value.items():
                yield str(key)
                yield from _leaves(each)
        case list() | tuple():
            for each in value:
                yield from _leaves(each)


def _uncovered(said: _Sentence, used: _Used, around: Surroundings) -> Iterator[str]:
    """The stretches of a sentence that nothing in the plan stands for."""
    keys = {key_of(text) for text in used.texts}
    covered = [
        (found.start(), found.end()) for found in quotes(said.text) if key_of(next(g for g in found.groups() if g is not None)) in keys
    ]
    for found in around.names.in_sentence(said.text):
        if any(
            key_of(str(name.value)) in keys or (name.kind in ("note", "alias") and key_of(str(name.value).removesuffix(".md")) in keys)
            for name in found.names
        ):
            covered.append((found.start, found.end))
    covered += _days(said.text, keys, around)
    left: list[tuple[int, int, bool]] = []
    for found in WORD.finditer(said.text):
        inside = any(start <= found.start() and found.end() <= end for start, end in covered)
        known = inside or stem(found[0]) in used.stems or found[0].casefold() in _EVERYTHING
        left.append((found.start(), found.end(), known if found[0].casefold() not in FUNCTION_WORDS or inside else True))
    stretches: list[list[int]] = []
    open_ = False
    for start, end, known in left:
        if known:
            open_ = open_ and said.text[start:end].casefold() in FUNCTION_WORDS
            continue
        if open_:
            stretches[-1][1] = end
        else:
            begin = start
            before = regex.search(r"(\b\p{L}+)\s+$", said.text[:start])
            if before and before[1].casefold() in FUNCTION_WORDS and before[1].casefold() not in ("the", "a", "an", "and"):
                begin = before.start(1)
            stretches.append([begin, end])
        open_ = True
    for stretch in stretches:
        while (sign := said.text[stretch[1] : stretch[1] + 1]) in tuple(")]") or _opened(sign, said.text[slice(*stretch)]):
            stretch[1] += 1
    if stretches:
        yield f"Nothing covers {' and '.join(f'“{said.text[start:end]}”' for start, end in stretches)}."


def _opened(sign: str, text: str) -> bool:
    """Whether a sign closes a quote that a text only opens."""
    opening = dict(zip("»”’」』\"'", "«“‘「『\"'", strict=True)).get(sign)
    return opening is not None and (text.count(opening) % 2 == 1 if opening == sign else text.count(opening) > text.count(sign))


def _neighbours(said: _Sentence, values: Mapping[str, Any], around: Surroundings) -> Iterator[str]:
    """Names that are used as something else than what stands beside them says, and all that is to be left out."""
    terms = [term for value in values.values() if isinstance(value, NoteSet) for term in value.terms]
    left_out = {str(term.value or term.property) for term in terms if term.negated}
    pairs = {(term.property, str(term.value)) for term in terms if term.op == ":"} | {
        (one, str(other)) for one in values.values() for other in values.values() if isinstance(one, str)
    }
    for found in in_context(said.text, around.names.in_sentence(said.text)):
        if found.negated:
            out = any(str(name.value) in left_out for name in found.names)
            yield f"Look whether “{found.negated}” leaves out what you mean." if out else f"“{found.negated}” is not left out."
        elif found.bound and not any((name.property, str(name.value)) in pairs for name in found.names):
            yield f"“{found.text}” is not used as a property and its value."


def _days(sentence: str, keys: set[str], around: Surroundings) -> Iterator[tuple[int, int]]:
    """Where a sentence says a day that the plan has as a date."""
    found = list(WORD.finditer(sentence))
    for first in range(len(found)):
        for last in range(first, min(first + 4, len(found))):
            text = sentence[found[first].start() : found[last].end()]
            day = dates.parse(text, around.context.now.date())
            if day is not None and day.isoformat() in keys:
                yield found[first].start(), found[last].end()


def _unsaid(
    said: _Sentence, recipe: Recipe | None, values: Mapping[str, Any], plan: ActionPlan | None, around: Surroundings
) -> Iterator[str]:
    """The values that the sentence does not hold."""
    if recipe is not None:
        for name, value in values.items():
            wanted = recipe.inputs[name]
            if value != wanted.default and wanted.kind not in ("choice", "boolean"):
                yield from (f"You did not say “{text}”." for text in _parts(wanted, value, around) if not _is_said(text, said, around))
        return
    for text in _selecting(plan):
        if not _is_said(text, said, around):
            yield f"You did not say “{text}”."


def _parts(wanted: Input, value: Any, around: Surroundings) -> Iterator[str]:
    """The texts of a value that a sentence must hold; that templates are left out need not be said."""
    if isinstance(value, NoteSet):
        for term in value.terms:
            if term.negated and term.value == around.context.notes.templates:
                continue
            yield from (str(each) for each in (term.property, term.value) if each is not None and term.key not in ("is", "tasks"))
        return
    for text in _leaves(value):
        yield text.rpartition("/")[2].removesuffix(".md") if wanted.kind in ("newNote", "newName") else text


def _selecting(plan: ActionPlan | None) -> Iterator[str]:
    """The literal texts by which a whole plan chooses notes: paths, folders, tags, names of properties; not what it writes."""
    for step in plan.steps if plan is not None else ():
        for key, value in _fields(step.args):
            if key in ("folder", "tag", "from", "path", "paths", "query", "addTags", "removeTags", "remove", "find") and "$" not in value:
                yield value


def _fields(value: Any, key: str = "") -> Iterator[tuple[str, str]]:
    match value:
        case str():
            yield key, value
        case dict():
            for name, each in value.items():
                yield from _fields(each, name)
        case list():
            for each in value:
                yield from _fields(each, key)


def _is_said(text: str, said: _Sentence, around: Surroundings) -> bool:
    bare = key_of(text.removesuffix(".md"))
    if not bare or text == ACTIVE or text == around.active_file:
        return True
    if any(key_of(each) in said.key for each in (text, bare, bare.rpartition("/")[2], bare.lstrip("#")) if key_of(each)):
        return True
    for found in around.names.in_sentence(said.text):
        if any(str(name.value) == text or str(name.value).removesuffix(".md") == text for name in found.names):
            return True
    for found in WORD.finditer(said.text):
        if stem(found[0]) == stem(bare):
            return True
    return any(True for _ in _days(said.text, {bare}, around))


def _new_names(recipe: Recipe | None, values: Mapping[str, Any], plan: ActionPlan | None) -> Iterator[str]:
    """The names that something new or renamed gets."""
    if recipe is not None:
        for name, wanted in recipe.inputs.items():
            if wanted.kind in ("newName", "newNote") and isinstance(values.get(name), str):
                yield values[name]
        return
    for step in plan.steps if plan is not None else ():
        target = step.args.get({"vault.rename": "to", "vault.createFile": "path"}.get(step.tool, ""))
        if isinstance(target, str) and "$" not in target:
            yield target


def _renames(said: _Sentence, names: Iterable[str]) -> Iterator[str]:
    for path in names:
        name = path.rpartition("/")[2].removesuffix(".md")
        if said.literal(name):
            continue
        own = [
            word for word in regex.findall(r"[\p{L}]+", name) if word.casefold() in FUNCTION_WORDS - {"the", "a", "an", "of", "and", "for"}
        ]
        if own or name.count("(") != name.count(")") or name.count("[") != name.count("]"):
            yield f"The name “{name}” holds words of the sentence itself."


def _texts(recipe: Recipe | None, values: Mapping[str, Any], plan: ActionPlan | None) -> Iterator[str]:
    """The texts that are written as they are."""
    if recipe is not None:
        yield from (
            str(values[name])
            for name, wanted in recipe.inputs.items()
            if wanted.kind in ("text", "value") and isinstance(values.get(name), str)
        )
        return
    for step in plan.steps if plan is not None else ():
        yield from (value for key, value in _fields(step.args) if key in _LINKED and "${" not in value)
        set_ = step.args.get("set")
        if isinstance(set_, dict):
            yield from (value for value in set_.values() if isinstance(value, str))


def _described(said: _Sentence, texts: Iterable[str]) -> Iterator[str]:
    for text in texts:
        spoken = [word.casefold() for word in regex.findall(r"\p{L}+", text)]
        taken = key_of(text) in said.key and not said.literal(text)
        if taken and (len(spoken) >= _PROSE or (len(spoken) >= 3 and _DESCRIBING.intersection(spoken))):
            yield f"“{text}” may say what to write rather than be it."


def _sets(sentence: str, values: Mapping[str, Any], around: Surroundings, *, certain: bool) -> Iterator[str]:
    """Descriptions that mean no note, or every note though nobody said so."""
    for value in values.values():
        if not isinstance(value, NoteSet):
            continue
        try:
            count = len(value.paths(around))
        except ObsidianAgentError as error:
            yield error.message
            continue
        if count == 0:
            yield f"No note fits: {value.text()}."
        elif not value.terms and not certain and not _EVERYTHING.intersection(word.casefold() for word in WORD.findall(sentence)):
            yield f"It would be about all {count} notes."


def _effect(sentence: str, preview: Preview, tools: tuple[str, ...], around: Surroundings, *, certain: bool) -> Iterator[str]:
    if preview.errors:
        return
    changed = len(preview.change_set.changes)
    reads = not _changing(tools)
    if not changed and not reads:
        yield "It would change nothing."
    if certain:
        return
    named = {name.kind for found in around.names.in_sentence(sentence) for name in found.names}
    if changed > _MANY and named <= {"note", "alias"} and named and not _EVERYTHING.intersection(map(str.casefold, WORD.findall(sentence))):
        yield f"It would change {changed} files."
