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
from obsidian_agent.offline.names import key_of
from obsidian_agent.offline.note_set import ACTIVE, SLOTS, NoteSet
from obsidian_agent.offline.recipe import SLOT, Input, Recipe, packaged
from obsidian_agent.offline.sentence import Found, Sentence
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

_LEFT: Final = regex.compile("s?l(?:s*l)*")
"""A stretch of words that are left over, with small ones before and between them."""

_ARTICLES: Final = frozenset({"the", "a", "an", "and"})
_WRITTEN: Final = frozenset({"content", "text", "template", "preview", "replace"})
_CHOOSING: Final = frozenset({"folder", "tag", "from", "path", "paths", "query", "addTags", "removeTags", "remove", "find"})
"""Arguments of tools that are written as they are, and those by which notes are chosen."""

_BEHIND_COLON: Final = regex.compile(r"[:：]\s*(?P<text>\S.*)$", regex.DOTALL)


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
    sentence is an example of the recipe, so that all of it is covered, and only the effect is looked at. Not `live`: the notes that are meant
    are not counted. May block.
    """
    said = Sentence(sentence, around)
    made = _of_recipe(recipe, values or {}, around) if recipe is not None else _of_plan(plan)
    found: list[str] = []
    if not certain:
        found += _uncovered(said, made)
        found += _misused(said, values or {}) if recipe is not None else ()
        found += (f"You did not say “{text}”." for text in made.said if not _is_said(text, said))
        found += (f"The name “{name}” holds words of the sentence itself." for name in map(_name, made.named) if _is_doubtful(name, said))
        found += (f"“{text}” may say what to write rather than be it." for text in made.written if _is_described(text, said))
    everything = any(found[0].casefold() in _EVERYTHING for found in WORD.finditer(sentence))
    if live:
        for described in (value for value in (values or {}).values() if isinstance(value, NoteSet)):
            found += _meant(described, around, everything or certain)
    if preview is not None and not preview.errors:
        count = len(preview.change_set.changes)
        if not count and made.changing:
            found.append("It would change nothing.")
        kinds = {name.kind for each in said.names for name in each.names} if count > _MANY and not certain and not everything else set()
        if kinds and kinds <= {"note", "alias"}:
            found.append(f"It would change {count} files.")
    return tuple(dict.fromkeys(found))


@dataclass(frozen=True, slots=True)
class _Made:
    """What a plan is made of, as far as a sentence can be held against it: the words of it and of what it does, all its texts, those that the
    sentence must hold, the names of what is new, and what is written as it is. `changing`: it is there to change something."""

    stems: frozenset[str]
    texts: tuple[str, ...]
    said: tuple[str, ...]
    named: tuple[str, ...]
    written: tuple[str, ...]
    changing: bool


def _of_recipe(recipe: Recipe, values: Mapping[str, Any], around: Surroundings) -> _Made:
    """The words of its title, of its values, and of the examples whose slots all have a value: “before” is used where a day is."""
    inputs = {name: wanted for name, wanted in recipe.inputs.items() if values.get(name) is not None}
    own = [recipe.title, *(SLOT.sub(" ", example) for example in recipe.examples if _is_filled(example, values))]
    labels = [wanted.options[str(values[name])] for name, wanted in inputs.items() if str(values[name]) in wanted.options]
    texts = [text for name in inputs for text in (name, *_leaves(values[name]))]
    chosen = [(wanted, values[name]) for name, wanted in inputs.items() if values[name] != wanted.default]
    return _Made(
        frozenset(words(" ".join((*own, *labels, *texts)))),
        tuple(texts),
        tuple(text for wanted, value in chosen for text in _to_say(wanted, value, around)),
        tuple(values[name] for name, wanted in inputs.items() if wanted.kind in ("newName", "newNote")),
        tuple(str(values[name]) for name, wanted in inputs.items() if wanted.kind in ("text", "value") and isinstance(values[name], str)),
        bool(_changing(recipe.tools)),
    )


def _is_filled(example: str, values: Mapping[str, Any]) -> bool:
    for name, field in SLOT.findall(example):
        value = values.get(name)
        if value is None or (field and not any(term.key == SLOTS[field][0] for term in value.terms)):
            return False
    return True


def _to_say(wanted: Input, value: Any, around: Surroundings) -> Iterator[str]:
    """The texts of a value that a sentence must hold; that templates are left out need not be said."""
    if isinstance(value, NoteSet):
        for term in value.terms:
            if term.key not in ("is", "tasks") and not (term.negated and term.value == around.context.notes.templates):
                yield from (str(each) for each in (term.property, term.value) if each is not None)
    elif wanted.kind not in ("choice", "boolean"):
        yield from (_name(text) if wanted.kind in ("newNote", "newName") else text for text in _leaves(value))


def _of_plan(plan: ActionPlan | None) -> _Made:
    """The words of its arguments, and of the recipes that change things with the same tools."""
    steps = plan.steps if plan is not None else []
    texts = tuple(_leaves([(step.args, step.foreach.from_ if step.foreach else None) for step in steps]))
    fields = [(key, value) for step in steps for key, value in _fields(step.args)]
    targets = [step.args.get({"vault.rename": "to", "vault.createFile": "path"}.get(step.tool, "")) for step in steps]
    sets = [step.args["set"] for step in steps if isinstance(step.args.get("set"), dict)]
    changing = _changing(step.tool for step in steps)
    own = [recipe for recipe in packaged() if (made := _changing(recipe.tools)) and made <= changing]
    told = [SLOT.sub(" ", text) for recipe in own for text in (recipe.title, *recipe.examples)]
    return _Made(
        frozenset(words(" ".join((*told, *texts)))),
        texts,
        tuple(value for key, value in fields if key in _CHOOSING and "$" not in value),
        tuple(target for target in targets if isinstance(target, str) and "$" not in target),
        (
            *(value for key, value in fields if key in _WRITTEN and "${" not in value),
            *(value for each in sets for value in each.values() if isinstance(value, str)),
        ),
        bool(changing),
    )


def _changing(tools: Iterable[str]) -> frozenset[str]:
    return frozenset(tool for tool in tools if tool not in TOOLS or TOOLS[tool].risk != "read-only")


def _leaves(value: Any) -> Iterator[str]:
    """All texts in a value, keys among them."""
    match value:
        case str():
            yield value
        case bool() | None:
            return
        case int() | float():
            yield str(value)
        case NoteSet():
            yield from _leaves([[term.value, term.property] for term in value.terms])
            yield value.text()
        case Mapping():
            yield from _leaves([*value, *value.values()])
        case list() | tuple():
            for each in value:
                yield from _leaves(each)


def _fields(value: Any, key: str = "") -> Iterator[tuple[str, str]]:
    """All texts in the arguments of a step, with the name of the field each stands in."""
    match value:
        case str():
            yield key, value
        case dict():
            for name, each in value.items():
                yield from _fields(each, name)
        case list():
            for each in value:
                yield from _fields(each, key)


def _name(path: str) -> str:
    return path.rpartition("/")[2].removesuffix(".md")


def _uncovered(said: Sentence, made: _Made) -> Iterator[str]:
    """The stretches of a sentence that nothing in the plan stands for."""
    keys = {key_of(text) for text in made.texts}
    covered = [(each.start, each.end) for each in (*said.quotes, *said.days) if key_of(each.text) in keys]
    covered += [(each.start, each.end) for each in said.names if any(_values(each) & {key, f"{key}.md"} for key in keys)]
    found = list(WORD.finditer(said.text))
    codes = ""
    for word in found:
        inside = any(start <= word.start() and word.end() <= end for start, end in covered)
        small, used = word[0].casefold() in FUNCTION_WORDS, stem(word[0]) in made.stems or word[0].casefold() in _EVERYTHING
        codes += "u" if inside or (used and not small) else "s" if small else "l"
    left: list[str] = []
    for stretch in _LEFT.finditer(codes):
        first, second = found[stretch.start()], found[min(stretch.start() + 1, stretch.end() - 1)]
        apart = codes[stretch.start()] == "s" and (first[0].casefold() in _ARTICLES or said.text[first.end() : second.start()].strip())
        begin, end = (second if apart else first).start(), found[stretch.end() - 1].end()
        end = next((quote.end for quote in said.quotes if begin <= quote.start < end < quote.end), end)
        left.append(f"“{said.text[begin:end]}”")
    if left:
        yield f"Nothing covers {' and '.join(left)}."


def _values(found: Found) -> set[str]:
    """What a name stands for, as keys."""
    return {key_of(str(name.value)) for name in found.names}


def _misused(said: Sentence, values: Mapping[str, Any]) -> Iterator[str]:
    """Names that are used as something else than what stands beside them says, and all that is to be left out."""
    terms = [term for value in values.values() if isinstance(value, NoteSet) for term in value.terms]
    left_out = {str(term.value or term.property) for term in terms if term.negated}
    pairs = {(term.property, str(term.value)) for term in terms if term.op == ":"}
    pairs |= {(one, str(other)) for one in values.values() if isinstance(one, str) for other in values.values()}
    for found in said.names:
        if found.negated:
            out = any(str(name.value) in left_out for name in found.names)
            yield f"Look whether “{found.negated}” leaves out what you mean." if out else f"“{found.negated}” is not left out."
        elif found.bound and not any((name.property, str(name.value)) in pairs for name in found.names):
            yield f"“{found.text}” is not used as a property and its value."


def _is_said(text: str, said: Sentence) -> bool:
    """Whether a text is in the sentence: as it stands, as the name of what it is the path of, as a form of a word, or as a day."""
    bare = key_of(text.removesuffix(".md"))
    if not bare or text in (ACTIVE, said.around.active_file):
        return True
    key, forms = key_of(said.text), {key_of(text), bare, bare.rpartition("/")[2], bare.lstrip("#")} - {""}
    return (
        any(form in key for form in forms)
        or any({bare, key_of(text)} & _values(found) or f"{bare}.md" in _values(found) for found in said.names)
        or stem(bare) in words(said.text)
        or any(day.text == bare for day in said.days)
    )


def _is_literal(text: str, said: Sentence) -> bool:
    """Whether a text is in the sentence in quotes or behind its colon, so that it is meant as it is."""
    key, behind = key_of(text), _BEHIND_COLON.search(said.text)
    return any(key in key_of(each.text) for each in said.quotes) or bool(key and behind and key in key_of(behind["text"]))


def _is_doubtful(name: str, said: Sentence) -> bool:
    """Whether a new name rather is a piece of the sentence."""
    small = FUNCTION_WORDS - {"the", "a", "an", "of", "and", "for"}
    own = any(word.casefold() in small for word in regex.findall(r"\p{L}+", name))
    return not _is_literal(name, said) and (own or name.count("(") != name.count(")") or name.count("[") != name.count("]"))


def _is_described(text: str, said: Sentence) -> bool:
    """Whether a text that is written rather tells what to write."""
    spoken = [word.casefold() for word in regex.findall(r"\p{L}+", text)]
    taken = key_of(text) in key_of(said.text) and not _is_literal(text, said)
    return taken and (len(spoken) >= _PROSE or (len(spoken) >= 3 and bool(_DESCRIBING.intersection(spoken))))


def _meant(described: NoteSet, around: Surroundings, everything: bool) -> Iterator[str]:
    """A description that means no note, or every note though nobody said so."""
    try:
        count = len(described.paths(around))
    except ObsidianAgentError as error:
        yield error.message
        return
    if count == 0:
        yield f"No note fits: {described.text()}."
    elif not described.terms and not everything:
        yield f"It would be about all {count} notes."
