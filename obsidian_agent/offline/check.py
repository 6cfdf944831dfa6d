"""Doubts about the actions chosen for a sentence. A doubted plan is never run without a question.

The plan must use every word of the sentence, and the sentence must contain every text of the plan.
Words are compared, so this works in any language. In case of doubt it asks.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from obsidian_agent.errors import ObsidianAgentError
from obsidian_agent.expression import unicode_expression
from obsidian_agent.offline.names import Surroundings, key_of
from obsidian_agent.offline.note_set import ACTIVE, SLOTS, NoteSet, Term, note_name
from obsidian_agent.offline.recipe import SLOT, Input, Kind, Recipe, packaged
from obsidian_agent.offline.words import (
    FUNCTION_WORDS,
    URL,
    WORD,
    Stretch,
    is_pasted,
    stem,
    words,
)
from obsidian_agent.plan.model import ActionPlan
from obsidian_agent.plan.result import Preview
from obsidian_agent.tools.registry import TOOLS

if TYPE_CHECKING:
    from obsidian_agent.offline.sentence import NameMatch, Sentence

_EVERY: Final = "all every everything everywhere each whole vault any"
_EVERYTHING: Final = frozenset(_EVERY.split())
"""English words for every note."""
_PROSE: Final = "sentence summary paragraph description list about what which who how why whether"
_DESCRIBING: Final = frozenset(_PROSE.split())
"""Words of a text that probably describes the text to write."""
PASTED: Final = "The message is too long to compare the plan with it."
_MANY_FILES: Final = 10
"""More changed files than a sentence means that only names notes."""
_PROSE_WORDS: Final = 6
"""Words of a text without quotes that probably describes the text to write."""
_UNUSED_WORDS: Final = unicode_expression("s?l(?:s*l)*")
"""A stretch of unused words ("l"), with function words ("s") before and between them."""
_ARTICLES: Final = frozenset({"the", "a", "an", "and"})
_ARGUMENTS: Final[Mapping[str, Kind]] = {
    **dict.fromkeys(("content", "text", "template", "preview", "replace", "set"), "text"),
    **dict.fromkeys(
        [
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
        ],
        "entry",
    ),
    "vault.rename.to": "newName",
    "vault.createFile.path": "newNote",
}
"""The kinds of the tools' arguments by which notes are chosen, named and written."""

_LETTERS: Final = unicode_expression(r"\p{L}+")
_BEHIND_COLON: Final = unicode_expression(r"(?s)[:：]\s*(?P<text>\S.*)$")


def doubts(
    sentence: str,
    around: Surroundings,
    *parts: tuple[Recipe, Mapping[str, Any]],
    preview: Preview | None = None,
    certain: bool = False,
) -> tuple[str, ...]:
    """Return the reasons against recipes with values for a sentence; () if it is certain.

    `certain`: the sentence is an example of the recipe, so only the effect is checked. May block.
    """
    if is_pasted(sentence):
        return (PASTED,)
    chosen = [
        (recipe.inputs[name], value)
        for recipe, values in parts
        for name, value in values.items()
        if value is not None
    ]
    problems: list[str] = []
    kinds: set[str] = set()
    if not certain:
        parsed = _parsed(sentence, around)
        kinds = {name.kind for match in parsed.names for name in match.names}
        texts = [text for spec, value in chosen for text in (spec.name, *_leaves(value))]
        own = [
            text
            for recipe, values in parts
            for text in (recipe.title, *_spoken(recipe, {**recipe.defaults, **values}))
        ]
        stems = frozenset(words(" ".join((*own, *texts))))
        problems += _uncovered(parsed, texts, stems, frozenset(_folders(chosen)))
        problems += (doubt for _, values in parts for doubt in _misused(parsed, values))
        used = [
            text
            for spec, value in chosen
            if value != spec.default
            for text in _to_say(spec, value, around)
        ]
        problems += (
            f"Your message does not mention “{text}”."
            for text in used
            if not _is_mentioned(text, parsed)
        )
        problems += _value_doubts(parsed, chosen)
    everything = certain or any(
        word[0].casefold() in _EVERYTHING for word in WORD.finditer(sentence)
    )
    for described in (value for _, value in chosen if isinstance(value, NoteSet)):
        problems += _count_doubts(described, around, everything)
    if preview is not None and not preview.errors:
        count = len(preview.change_set.changes)
        if not count and any(_changing(recipe.tools) for recipe, _ in parts):
            problems.append("It would change nothing.")
        is_of_notes = bool(kinds) and kinds <= {"note", "alias"}
        if count > _MANY_FILES and not everything and is_of_notes:
            problems.append(f"It would change {count} files.")
    return tuple(dict.fromkeys(problems))


def value_doubts(
    sentence: str, around: Surroundings, chosen: Sequence[tuple[Input, Any]]
) -> Iterator[str]:
    """Yield doubts about the values of inputs that are read from a sentence."""
    return _value_doubts(_parsed(sentence, around), chosen)


def _parsed(sentence: str, around: Surroundings) -> Sentence:
    # Lazy: a certain sentence is not divided.
    from obsidian_agent.offline.sentence import Sentence, without_assurances

    return Sentence(without_assurances(sentence), around)


def _value_doubts(parsed: Sentence, chosen: Sequence[tuple[Input, Any]]) -> Iterator[str]:
    """Yield doubts about the values of inputs: names of several folders, prose, and long names."""
    yield from _ambiguous(parsed, frozenset(_folders(chosen)))
    for spec, value in chosen:
        if spec.kind in ("newName", "newNote") and _is_doubtful(note_name(value), parsed):
            yield f"The name “{note_name(value)}” may include too much: quote the exact name."
        is_text = spec.kind in ("text", "value") and isinstance(value, str)
        if is_text and _is_instruction(value, parsed):
            yield f"“{value}” may describe the text to write."


def recipe_of_plan(plan: ActionPlan) -> tuple[Recipe, Mapping[str, str]]:
    """Convert a plan that a model wrote to a recipe with values, for `doubts`.

    Its values are the texts of its steps; its examples those of recipes with the same writing
    tools.
    """
    inputs: dict[str, Input] = {}
    for step in plan.steps:
        for key, text in _fields([step.args, step.foreach and step.foreach.from_]):
            kind: Kind = "choice"
            if "$" not in text:
                kind = _ARGUMENTS.get(f"{step.tool}.{key}") or _ARGUMENTS.get(key, "choice")
            # A text with itself as default need not be in the sentence: models may write texts.
            inputs[str(len(inputs))] = Input(
                name=key, kind=kind, description=text, default=text if kind == "text" else None
            )
    changing = _changing(step.tool for step in plan.steps)
    like = [recipe for recipe in packaged() if (own := _changing(recipe.tools)) and own <= changing]
    examples = tuple(
        SLOT.sub(" ", text) for recipe in like for text in (recipe.title, *recipe.examples)
    )
    recipe = Recipe(
        name="plan",
        title="",
        subject="Macros",
        description="",
        examples=examples,
        inputs=inputs,
        plan=plan.to_json(),
    )
    return recipe, {name: spec.description for name, spec in inputs.items()}


def _changing(tools: Iterable[str]) -> frozenset[str]:
    return frozenset(tool for tool in tools if tool in TOOLS and TOOLS[tool].risk != "read-only")


def _fields(value: Any, key: str = "") -> Iterator[tuple[str, str]]:
    """Yield the texts in a step's arguments, each with its key, and the keys with ""."""
    match value:
        case dict():
            for name, item in value.items():
                yield "", name
                yield from _fields(item, key if key == "set" else name)
        case list():
            for item in value:
                yield from _fields(item, key)
        case str() | int() | float() if not isinstance(value, bool):
            yield key, str(value)


def _spoken(recipe: Recipe, values: Mapping[str, Any]) -> Iterator[str]:
    """Yield the labels of choices, and the words of the examples whose slots all have values.

    A day, for example, covers the word "before".
    """
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


def _to_say(spec: Input, value: Any, around: Surroundings) -> Iterator[str]:
    """Yield the texts of a value that the sentence must mention.

    The exclusion of templates is automatic and need not be mentioned.
    """
    if isinstance(value, NoteSet):
        for term in value.terms:
            if term.key not in ("is", "tasks") and not (
                term.negated and term.value == around.context.notes.templates
            ):
                yield from (str(part) for part in (term.property, term.value) if part is not None)
    elif spec.kind not in ("choice", "boolean"):
        yield from (
            note_name(text) if spec.kind in ("newNote", "newName") else text
            for text in _leaves(value)
        )


def _leaves(value: Any) -> list[str]:
    """Return all texts in a value."""
    if isinstance(value, NoteSet):
        return [
            *_leaves([item for term in value.terms for item in (term.value, term.property)]),
            value.text(),
        ]
    if isinstance(value, list):
        return [text for item in value for text in _leaves(item)]
    return [] if value is None or isinstance(value, bool) else [str(value)]


def _folders(chosen: Iterable[tuple[Input, Any]]) -> Iterator[str]:
    """Yield the keys of the folders in the values."""
    for spec, value in chosen:
        if isinstance(value, NoteSet):
            yield from (
                key_of(str(term.value)) for term in value.terms if term.key in ("folder", "in")
            )
        elif spec.kind == "folder":
            yield key_of(str(value))


def _uncovered(
    parsed: Sentence,
    texts: Sequence[str],
    stems: Collection[str],
    folders: Collection[str],
) -> Iterator[str]:
    """Yield a doubt about the parts of a sentence that the plan does not use.

    The word "folder" counts as used next to the name of one of `folders`.
    """
    keys = {key_of(text) for text in texts}
    covered = [span for span in (*parsed.quotes, *parsed.days) if key_of(span.text) in keys]
    covered += (
        match for match in parsed.names if any(_values(match) & {key, f"{key}.md"} for key in keys)
    )
    matches = list(WORD.finditer(parsed.text))
    named = [
        match
        for match in parsed.names
        if any(name.kind == "folder" and key_of(str(name.value)) in folders for name in match.names)
    ]
    beside = [(word, match) for word in matches if stem(word[0]) == "folder" for match in named]
    gaps = (
        (word, parsed.text[min(word.end(), match.end) : max(word.start(), match.start)])
        for word, match in beside
    )
    covered += [Stretch(word.start(), word.end(), word[0]) for word, gap in gaps if not gap.strip()]
    codes = ""
    for word in matches:
        inside = any(span.start <= word.start() and word.end() <= span.end for span in covered)
        is_small = word[0].casefold() in FUNCTION_WORDS
        is_used = stem(word[0]) in stems or word[0].casefold() in _EVERYTHING
        if inside or (is_used and not is_small):
            codes += "u"
        else:
            codes += "s" if is_small else "l"
    unused: list[str] = []
    for stretch in _UNUSED_WORDS.finditer(codes):
        first, second = (
            matches[stretch.start()],
            matches[min(stretch.start() + 1, stretch.end() - 1)],
        )
        apart = codes[stretch.start()] == "s" and (
            first[0].casefold() in _ARTICLES or parsed.text[first.end() : second.start()].strip()
        )
        begin, end = (second if apart else first).start(), matches[stretch.end() - 1].end()
        end = next(
            (quote.end for quote in parsed.quotes if begin <= quote.start < end < quote.end), end
        )
        unused.append(f"“{parsed.text[begin:end]}”")
    if unused:
        yield f"Not used: {' and '.join(unused)}."


def _values(match: NameMatch) -> set[str]:
    """Return the keys of the values of a name."""
    return {key_of(str(name.value)) for name in match.names}


def _misused(parsed: Sentence, values: Mapping[str, Any]) -> Iterator[str]:
    """Yield doubts about exclusions, and about pairs of property and value used separately."""
    terms = [
        term for value in values.values() if isinstance(value, NoteSet) for term in value.terms
    ]
    excluded = {str(term.value or term.property) for term in terms if term.negated}
    pairs = {(term.property, str(term.value)) for term in terms if term.op == ":"}
    pairs |= {
        (one, str(other))
        for one in values.values()
        if isinstance(one, str)
        for other in values.values()
    }
    for match in parsed.names:
        if match.negated:
            if any(str(name.value) in excluded for name in match.names):
                yield f"Check that “{match.negated}” excludes what you mean."
            else:
                yield f"“{match.negated}” is not excluded."
        elif match.bound and not any(
            (name.property, str(name.value)) in pairs for name in match.names
        ):
            yield f"“{match.text}” is not used as a property and its value."


def _ambiguous(parsed: Sentence, folders: Collection[str]) -> Iterator[str]:
    """Yield a doubt about each name of several folders, if none of them is used."""
    for match in parsed.names:
        paths = [str(name.value) for name in match.names if name.kind == "folder"]
        if len(paths) > 1 and not {key_of(path) for path in paths} & set(folders):
            yield f"Several folders are called “{match.text}”: {', '.join(paths[:4])}."


def _is_mentioned(text: str, parsed: Sentence) -> bool:
    """Return True if the sentence mentions a text: literally, or as a name, word form or day."""
    bare = key_of(text.removesuffix(".md"))
    if not bare or text in (ACTIVE, parsed.around.active_file):
        return True
    key, forms = (
        key_of(parsed.text),
        {key_of(text), bare, bare.rpartition("/")[2], bare.lstrip("#")} - {""},
    )
    return (
        any(form in key for form in forms)
        or any(
            {bare, key_of(text)} & _values(match) or f"{bare}.md" in _values(match)
            for match in parsed.names
        )
        or stem(bare) in words(parsed.text)
        or any(day.text == bare for day in parsed.days)
    )


def mentioned_terms(described: NoteSet, sentence: str, around: Surroundings) -> NoteSet:
    """Return a description of notes without the conditions that a sentence does not mention."""
    parsed = _parsed(sentence, around)
    conditions = {part.term for part in parsed.conditions}

    def is_mentioned(term: Term) -> bool:
        if term.key == "is":
            return term in conditions
        if term.key == "tasks":
            return any("task" in word.senses for word in parsed.tokens)
        texts = [str(part) for part in (term.property, term.value) if part is not None]
        return all(_is_mentioned(text, parsed) for text in texts)

    return NoteSet(tuple(term for term in described.terms if is_mentioned(term)))


def _is_literal(text: str, parsed: Sentence) -> bool:
    """Return True if the sentence has the text in quotes or after its colon."""
    key, behind = key_of(text), _BEHIND_COLON.search(parsed.text)
    return any(key in key_of(quote.text) for quote in parsed.quotes) or bool(
        key and behind and key in key_of(behind["text"])
    )


def _is_doubtful(name: str, parsed: Sentence) -> bool:
    """Return True if a new name is probably a part of the sentence."""
    small = FUNCTION_WORDS - {"the", "a", "an", "of", "and", "for"}
    own = any(word.casefold() in small for word in _LETTERS.findall(name))
    return not _is_literal(name, parsed) and (
        own or name.count("(") != name.count(")") or name.count("[") != name.count("]")
    )


def _is_instruction(text: str, parsed: Sentence) -> bool:
    """Return True if a text probably describes the text to write."""
    spoken = [word.casefold() for word in _LETTERS.findall(URL.sub("", text))]
    is_copied = key_of(text) in key_of(parsed.text) and not _is_literal(text, parsed)
    return is_copied and (
        len(spoken) >= _PROSE_WORDS or (len(spoken) >= 3 and bool(_DESCRIBING.intersection(spoken)))
    )


def _count_doubts(described: NoteSet, around: Surroundings, everything: bool) -> Iterator[str]:
    """Yield a doubt about a description of no note, or of every note if that is not mentioned."""
    try:
        count = len(described.paths(around))
    except ObsidianAgentError as error:
        yield error.message
        return
    if count == 0:
        yield f"No note matches: {described.text()}."
    elif not described.terms and not everything:
        yield f"It would apply to all {count} notes."
