"""Is it sure? What speaks against actions for a sentence, whoever chose them: a doubted plan is asked about, and never run unasked.

All that is said is used, and all that is used was said: both ways it is compared by words, so that it holds in any language. It errs on the
side of asking.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from obsidian_agent.errors import ObsidianAgentError
from obsidian_agent.expression import unicode_expression
from obsidian_agent.offline.names import Surroundings, key_of
from obsidian_agent.offline.note_set import ACTIVE, SLOTS, NoteSet, note_name
from obsidian_agent.offline.recipe import SLOT, Input, Kind, Recipe, packaged
from obsidian_agent.offline.sentence import (
    FUNCTION_WORDS,
    WORD,
    NameMatch,
    Sentence,
    Stretch,
    is_pasted,
    stem,
    words,
)
from obsidian_agent.plan.model import ActionPlan
from obsidian_agent.plan.result import Preview
from obsidian_agent.tools.registry import TOOLS

# English words that say that every note is meant.
_EVERYTHING: Final = frozenset(
    {"all", "every", "everything", "everywhere", "each", "whole", "vault", "any"}
)
# Words of a text that rather tell what to write.
_DESCRIBING: Final = frozenset(
    [
        "sentence",
        "summary",
        "paragraph",
        "description",
        "list",
        "about",
        "what",
        "which",
        "who",
        "how",
        "why",
        "whether",
    ]
)
PASTED: Final = "The message is too long to be compared with this."
_MANY: Final = 10  # so many files changed are more than a sentence means that names one note
_PROSE: Final = (
    6  # a text of so many words that is in no quotes may be meant as an order to write one
)
_LEFT: Final = unicode_expression(
    "s?l(?:s*l)*"
)  # a stretch of words that are left over, with small ones before and between them
_ARTICLES: Final = frozenset({"the", "a", "an", "and"})
_ARGUMENTS: Final[Mapping[str, Kind]] = {
    **dict.fromkeys(("content", "text", "template", "preview", "replace", "set"), "text"),
    **dict.fromkeys(
        (
            "folder",
            "tag",
            "from",
            "path",
            "paths",
            "query",
            "addTags",
            "removeTags",
            "remove",
            "find",
        ),
        "entry",
    ),
    "vault.rename.to": "newName",
    "vault.createFile.path": "newNote",
}
"""What the arguments of tools are by which notes are chosen, named, and written."""

_LETTERS: Final = unicode_expression(r"\p{L}+")
_BEHIND_COLON: Final = unicode_expression(r"(?s)[:：]\s*(?P<text>\S.*)$")


def doubts(
    sentence: str,
    around: Surroundings,
    *parts: tuple[Recipe, Mapping[str, Any]],
    preview: Preview | None = None,
    certain: bool = False,
    live: bool = True,
) -> tuple[str, ...]:
    """What speaks against recipes with values (as `values.read` gives them) for a sentence, each as one sentence; nothing when it is sure.

    `certain`: the sentence is an example of the recipe, so that all of it is covered, and only the effect is looked at. Not `live`: the notes
    that are meant are not counted. May block.
    """
    if is_pasted(sentence):
        return (PASTED,)
    said = Sentence(sentence, around)
    chosen = [
        (recipe.inputs[name], value)
        for recipe, values in parts
        for name, value in values.items()
        if value is not None
    ]
    found = [recipe.doubt for recipe, _ in parts if recipe.doubt]
    if not certain:
        texts = [text for wanted, value in chosen for text in (wanted.name, *_leaves(value))]
        own = [
            text
            for recipe, values in parts
            for text in (recipe.title, *_spoken(recipe, {**recipe.defaults, **values}))
        ]
        found += _uncovered(
            said, texts, frozenset(words(" ".join((*own, *texts)))), frozenset(_folders(chosen))
        )
        found += (doubt for _, values in parts for doubt in _misused(said, values))
        found += _ambiguous(said, frozenset(_folders(chosen)))
        used = [
            text
            for wanted, value in chosen
            if value != wanted.default
            for text in _to_say(wanted, value, around)
        ]
        found += (f"You did not say “{text}”." for text in used if not _is_said(text, said))
        named = [
            note_name(value) for wanted, value in chosen if wanted.kind in ("newName", "newNote")
        ]
        found += (
            f"The name “{name}” holds words of the sentence itself."
            for name in named
            if _is_doubtful(name, said)
        )
        written = [
            value
            for wanted, value in chosen
            if wanted.kind in ("text", "value") and isinstance(value, str)
        ]
        found += (
            f"“{text}” may say what to write rather than be it."
            for text in written
            if _is_described(text, said)
        )
    everything = certain or any(
        word[0].casefold() in _EVERYTHING for word in WORD.finditer(sentence)
    )
    if live:
        for described in (value for _, value in chosen if isinstance(value, NoteSet)):
            found += _meant(described, around, everything)
    if preview is not None and not preview.errors:
        count = len(preview.change_set.changes)
        if not count and any(_changing(recipe.tools) for recipe, _ in parts):
            found.append("It would change nothing.")
        kinds = (
            {name.kind for each in said.names for name in each.names}
            if count > _MANY and not everything
            else set()
        )
        if kinds and kinds <= {"note", "alias"}:
            found.append(f"It would change {count} files.")
    return tuple(dict.fromkeys(found))


def recipe_of_plan(plan: ActionPlan) -> tuple[Recipe, Mapping[str, str]]:
    """A plan that was written as a whole as if it had been picked: its values are the texts of its steps, its words those of the recipes that
    change things with the same tools.
    """
    inputs: dict[str, Input] = {}
    for step in plan.steps:
        for key, text in _fields([step.args, step.foreach and step.foreach.from_]):
            kind = (
                "choice"
                if "$" in text
                else _ARGUMENTS.get(f"{step.tool}.{key}") or _ARGUMENTS.get(key, "choice")
            )
            # A model may write texts that were not said.
            inputs[str(len(inputs))] = Input(
                name=key, kind=kind, description=text, default=text if kind == "text" else None
            )
    changing = _changing(step.tool for step in plan.steps)
    like = [recipe for recipe in packaged() if (own := _changing(recipe.tools)) and own <= changing]
    told = tuple(
        SLOT.sub(" ", text) for recipe in like for text in (recipe.title, *recipe.examples)
    )
    recipe = Recipe(
        name="plan",
        title="",
        subject="Saved",
        description="",
        examples=told,
        inputs=inputs,
        plan=plan.to_json(),
    )
    return recipe, {name: wanted.description for name, wanted in inputs.items()}


def _changing(tools: Iterable[str]) -> frozenset[str]:
    return frozenset(tool for tool in tools if tool in TOOLS and TOOLS[tool].risk != "read-only")


def _fields(value: Any, key: str = "") -> Iterator[tuple[str, str]]:
    """All texts in the arguments of a step, each with the key that it stands behind; keys stand behind none."""
    match value:
        case dict():
            for name, each in value.items():
                yield "", name
                yield from _fields(each, key if key == "set" else name)
        case list():
            for each in value:
                yield from _fields(each, key)
        case str() | int() | float() if not isinstance(value, bool):
            yield key, str(value)


def _spoken(recipe: Recipe, values: Mapping[str, Any]) -> Iterator[str]:
    """The words of a choice and of the examples whose slots all have a value: “before” is used where a day is."""
    yield from (recipe.inputs[name].options.get(str(value), "") for name, value in values.items())
    yield from (
        SLOT.sub(" ", example) for example in recipe.examples if _is_filled(example, values)
    )


def _is_filled(example: str, values: Mapping[str, Any]) -> bool:
    slots = [(values.get(name), field) for name, field in SLOT.findall(example)]
    return all(
        value is not None and (not field or SLOTS[field][0] in {term.key for term in value.terms})
        for value, field in slots
    )


def _to_say(wanted: Input, value: Any, around: Surroundings) -> Iterator[str]:
    """The texts of a value that a sentence must hold; that templates are left out need not be said."""
    if isinstance(value, NoteSet):
        for term in value.terms:
            if term.key not in ("is", "tasks") and not (
                term.negated and term.value == around.context.notes.templates
            ):
                yield from (str(each) for each in (term.property, term.value) if each is not None)
    elif wanted.kind not in ("choice", "boolean"):
        yield from (
            note_name(text) if wanted.kind in ("newNote", "newName") else text
            for text in _leaves(value)
        )


def _leaves(value: Any) -> list[str]:
    """All texts in a value."""
    if isinstance(value, NoteSet):
        return [
            *_leaves([each for term in value.terms for each in (term.value, term.property)]),
            value.text(),
        ]
    if isinstance(value, list):
        return [text for each in value for text in _leaves(each)]
    return [] if value is None or isinstance(value, bool) else [str(value)]


def _folders(chosen: Iterable[tuple[Input, Any]]) -> Iterator[str]:
    """The folders that are used as such, as keys."""
    for wanted, value in chosen:
        if isinstance(value, NoteSet):
            yield from (
                key_of(str(term.value)) for term in value.terms if term.key in ("folder", "in")
            )
        elif wanted.kind == "folder":
            yield key_of(str(value))


def _uncovered(
    said: Sentence, texts: Sequence[str], stems: Collection[str], folders: Collection[str]
) -> Iterator[str]:
    """The stretches of a sentence that neither the texts of a plan nor its words stand for. Beside one of `folders` the word itself is used."""
    keys = {key_of(text) for text in texts}
    covered = [each for each in (*said.quotes, *said.days) if key_of(each.text) in keys]
    covered += (
        each for each in said.names if any(_values(each) & {key, f"{key}.md"} for key in keys)
    )
    found = list(WORD.finditer(said.text))
    named = [
        each
        for each in said.names
        if any(name.kind == "folder" and key_of(str(name.value)) in folders for name in each.names)
    ]
    beside = [(word, each) for word in found if stem(word[0]) == "folder" for each in named]
    gaps = (
        (word, said.text[min(word.end(), each.end) : max(word.start(), each.start)])
        for word, each in beside
    )
    covered += [Stretch(word.start(), word.end(), word[0]) for word, gap in gaps if not gap.strip()]
    codes = ""
    for word in found:
        inside = any(each.start <= word.start() and word.end() <= each.end for each in covered)
        small, used = (
            word[0].casefold() in FUNCTION_WORDS,
            stem(word[0]) in stems or word[0].casefold() in _EVERYTHING,
        )
        codes += "u" if inside or (used and not small) else "s" if small else "l"
    left: list[str] = []
    for stretch in _LEFT.finditer(codes):
        first, second = found[stretch.start()], found[min(stretch.start() + 1, stretch.end() - 1)]
        apart = codes[stretch.start()] == "s" and (
            first[0].casefold() in _ARTICLES or said.text[first.end() : second.start()].strip()
        )
        begin, end = (second if apart else first).start(), found[stretch.end() - 1].end()
        end = next(
            (quote.end for quote in said.quotes if begin <= quote.start < end < quote.end), end
        )
        left.append(f"“{said.text[begin:end]}”")
    if left:
        yield f"Nothing covers {' and '.join(left)}."


def _values(found: NameMatch) -> set[str]:
    """What a name stands for, as keys."""
    return {key_of(str(name.value)) for name in found.names}


def _misused(said: Sentence, values: Mapping[str, Any]) -> Iterator[str]:
    """Names that are used as something else than what stands beside them says, and all that is to be left out."""
    terms = [
        term for value in values.values() if isinstance(value, NoteSet) for term in value.terms
    ]
    left_out = {str(term.value or term.property) for term in terms if term.negated}
    pairs = {(term.property, str(term.value)) for term in terms if term.op == ":"}
    pairs |= {
        (one, str(other))
        for one in values.values()
        if isinstance(one, str)
        for other in values.values()
    }
    for found in said.names:
        if found.negated:
            out = any(str(name.value) in left_out for name in found.names)
            yield (
                f"Look whether “{found.negated}” leaves out what you mean."
                if out
                else f"“{found.negated}” is not left out."
            )
        elif found.bound and not any(
            (name.property, str(name.value)) in pairs for name in found.names
        ):
            yield f"“{found.text}” is not used as a property and its value."


def _ambiguous(said: Sentence, folders: Collection[str]) -> Iterator[str]:
    """Yield a question for the names of several folders none of which is used."""
    for each in said.names:
        paths = [str(name.value) for name in each.names if name.kind == "folder"]
        if len(paths) > 1 and not {key_of(path) for path in paths} & set(folders):
            yield f"Several folders are called “{each.text}”: {', '.join(paths[:4])}."


def _is_said(text: str, said: Sentence) -> bool:
    """Whether a text is in the sentence: as it stands, as the name of what it is the path of, as a form of a word, or as a day."""
    bare = key_of(text.removesuffix(".md"))
    if not bare or text in (ACTIVE, said.around.active_file):
        return True
    key, forms = (
        key_of(said.text),
        {key_of(text), bare, bare.rpartition("/")[2], bare.lstrip("#")} - {""},
    )
    return (
        any(form in key for form in forms)
        or any(
            {bare, key_of(text)} & _values(found) or f"{bare}.md" in _values(found)
            for found in said.names
        )
        or stem(bare) in words(said.text)
        or any(day.text == bare for day in said.days)
    )


def _is_literal(text: str, said: Sentence) -> bool:
    """Whether a text is in the sentence in quotes or behind its colon, so that it is meant as it is."""
    key, behind = key_of(text), _BEHIND_COLON.search(said.text)
    return any(key in key_of(each.text) for each in said.quotes) or bool(
        key and behind and key in key_of(behind["text"])
    )


def _is_doubtful(name: str, said: Sentence) -> bool:
    """Whether a new name rather is a piece of the sentence."""
    small = FUNCTION_WORDS - {"the", "a", "an", "of", "and", "for"}
    own = any(word.casefold() in small for word in _LETTERS.findall(name))
    return not _is_literal(name, said) and (
        own or name.count("(") != name.count(")") or name.count("[") != name.count("]")
    )


def _is_described(text: str, said: Sentence) -> bool:
    """Whether a text that is written rather tells what to write."""
    spoken = [word.casefold() for word in _LETTERS.findall(text)]
    taken = key_of(text) in key_of(said.text) and not _is_literal(text, said)
    return taken and (
        len(spoken) >= _PROSE or (len(spoken) >= 3 and bool(_DESCRIBING.intersection(spoken)))
    )


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
