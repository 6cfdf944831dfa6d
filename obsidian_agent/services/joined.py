"""Several actions for one sentence, as one plan.

Each action is read against the vault as those before it would leave it. A later order without a
note of its own is about the notes of the order before it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct
from msgspec.structs import replace

from obsidian_agent.agent.events import Candidate
from obsidian_agent.offline.clauses import Clause, divisions
from obsidian_agent.offline.note_set import ACTIVE, NoteSet, Term
from obsidian_agent.offline.recipe import Recipe
from obsidian_agent.offline.recipe_plan import join_plans
from obsidian_agent.offline.sentence import Sentence, without_assurances
from obsidian_agent.offline.words import beginning, is_pasted, tokens
from obsidian_agent.plan.model import ActionPlan
from obsidian_agent.plan.result import Preview
from obsidian_agent.services.offline_planner import OfflineTurn
from obsidian_agent.vault.paths.path import PathUse, parse

if TYPE_CHECKING:
    from obsidian_agent.offline.search import RecipeSuggestion
MAX_NOTES: Final = 50
"""Notes of an order that a later one may be about."""

_NOTES: Final = frozenset({"note", "entry", "notes"})
"""The kinds of inputs whose values are existing notes."""
_PROSE: Final = frozenset({"text", "list", "heading"})
"""The kinds of inputs whose values may hold verbs."""


class JoinedPart(Struct, frozen=True, kw_only=True):
    """One of several actions."""

    recipe: Recipe
    values: Mapping[str, Any]
    plan: ActionPlan
    candidate: Candidate | None = None
    deleted: tuple[str, ...] = ()
    created: tuple[str, ...] = ()
    """The notes that it creates."""
    changed: tuple[str, ...] = ()
    """The notes that its values name and that it changes, at their new paths."""
    read: tuple[str, ...] = ()
    """The notes that its values name and that it leaves as they are."""

    def antecedents(self, *, delete: bool) -> tuple[str, ...]:
        """Return the notes that “it” means in a later order."""
        if delete:
            return self.read
        return self.created or self.changed or self.read


Reader = Callable[[OfflineTurn, Sequence[JoinedPart]], JoinedPart | None]


def read_in_turn(turn: OfflineTurn, readers: Iterable[Reader]) -> list[JoinedPart]:
    """Return the actions up to the first that cannot be read or would fail. May block."""
    parts: list[JoinedPart] = []
    view = turn.around.view
    for read in readers:
        now = turn.planner.over(view).turn(turn.request)
        part = read(now, parts)
        preview = now.tried(part.plan) if part is not None else None
        if part is None or preview is None or preview.errors or preview.after is None:
            break
        parts.append(_with_notes(part, now, preview) if part.candidate is not None else part)
        view = preview.after
    return parts


def with_joined(
    turn: OfflineTurn, common: frozenset[str]
) -> Sequence[tuple[Candidate, RecipeSuggestion | None]]:
    """Return the readings of a sentence: first as several orders, then as one action.

    One action that uses the whole sentence is the only reading, unless the name in it holds the
    beginning of another order: “X and move it to Y”. May block.
    """
    if is_pasted(turn.request.message):
        return turn.single
    first = turn.single[0] if turn.single else None
    message = without_assurances(beginning(turn.request.message))
    parsed = Sentence(message, turn.around, common)
    for clauses in divisions(parsed):
        if first is not None and _is_whole(*first) and not _is_in_name(message, first[1], clauses):
            return turn.single
        joined = _joined(turn, clauses)
        if joined is not None:
            return [(joined, None), *turn.single]
    return turn.single


def _is_in_name(
    message: str, suggestion: RecipeSuggestion | None, clauses: Sequence[Clause]
) -> bool:
    """Return whether a phrase that was read as a name holds the beginning of a later order."""
    if suggestion is None:
        return False
    for name, text in suggestion.guesses.items():
        start = message.find(text)
        holds = any(start < clause.start < start + len(text) for clause in clauses[1:])
        if holds and suggestion.recipe.inputs[name].kind not in _PROSE:
            return True
    return False


def _joined(turn: OfflineTurn, clauses: Sequence[Clause]) -> Candidate | None:
    """Return the reading as several orders, if each has every value and uses all its words."""
    parts = read_in_turn(turn, [_reader(clause) for clause in clauses])
    read = [part.candidate for part in parts if part.candidate is not None]
    if len(read) < len(clauses):
        return None
    # Where a note is changed and then deleted, one of the orders is misread.
    written = [path for part in parts[:-1] for path in (*part.created, *part.changed)]
    if not {path for part in parts for path in part.deleted}.isdisjoint(written):
        return None
    plan = join_plans([part.plan for part in parts])
    preview = turn.tried(plan)
    if preview is None or preview.errors or not preview.change_set.changes:
        return None
    return Candidate(
        title="; ".join(one.title for one in read),
        plan=plan,
        values={},
        missing=(),
        doubts=tuple(dict.fromkeys(doubt for one in read for doubt in one.doubts)),
        guesses=tuple(guess for one in read for guess in one.guesses),
        unknown=tuple(name for one in read for name in one.unknown),
        news=tuple(dict.fromkeys(new for one in read for new in one.news)),
        deletes=any(one.deletes for one in read),
    )


def _reader(clause: Clause) -> Reader:
    def read(turn: OfflineTurn, parts: Sequence[JoinedPart]) -> JoinedPart | None:
        if not parts:
            return _complete(turn, _ask(turn, clause.text))
        notes = _meant(clause, parts[-1])
        if clause.references and not notes:
            return None
        if len(notes) > MAX_NOTES:
            return None
        if clause.references and not clause.references[0].owns:
            is_open = notes == (turn.around.active_file,)
            names = ["this note"] if is_open else [_name(turn, path) for path in notes]
            if (part := _complete(turn, _ask(turn, clause.with_notes(names)))) is not None:
                return part
        text = clause.with_notes(())
        parsed = Sentence(text, turn.around)
        if not notes or parsed.here is not None:
            return None if clause.references else _complete(turn, _ask(turn, clause.text))
        return _complete(turn, _ask(turn, text, notes[0]), notes)

    return read


def _meant(clause: Clause, before: JoinedPart) -> tuple[str, ...]:
    """Return the notes that “it” means, or () if their number is another one."""
    deletes = any("delet" in word.senses for word in tokens(clause.text))
    notes = before.antecedents(delete=deletes)
    counts = {one.count for one in clause.references if one.count}
    return notes if counts <= {len(notes)} else ()


def _name(turn: OfflineTurn, path: str) -> str:
    """Return the shortest name that means only this note."""
    name = path.rpartition("/")[2].removesuffix(".md")
    return name if len(turn.around.names.find(name, "note")) < 2 else path.removesuffix(".md")


def _ask(turn: OfflineTurn, message: str, active: str | None = None) -> OfflineTurn:
    """Return the turn of one order, with the open note that it is about."""
    context = turn.request.context
    if active is not None:
        context = replace(context, active_file=parse(active, PathUse.READ), selection=None)
    request = replace(turn.request, message=message, context=context, pick=None, params={})
    return turn.planner.turn(request)


def _complete(
    turn: OfflineTurn, order: OfflineTurn, notes: Sequence[str] = ()
) -> JoinedPart | None:
    """Return the first reading of an order, if it is complete, with notes for the open one."""
    if not order.single:
        return None
    candidate, suggestion = order.single[0]
    recipe = next(one for one in turn.recipes if one.name == candidate.recipe)
    if candidate.plan is None or not _is_whole(candidate, suggestion):
        return None
    if suggestion is not None and not notes and _lacks_place(order, suggestion):
        return None
    values: Mapping[str, Any] = order.values(recipe, candidate.values)
    if notes:
        named = _with_these(recipe.defaults | dict(values), notes)
        if named is None:
            return None
        values = dict(values) | {
            name: value for name, value in named.items() if value != recipe.defaults.get(name)
        }
    candidate = turn.candidate(recipe, values, suggestion)
    is_doubtful = bool(candidate.doubts) and not candidate.deletes
    if candidate.plan is None or is_doubtful or not _is_whole(candidate, suggestion):
        return None
    return JoinedPart(recipe=recipe, values=values, plan=candidate.plan, candidate=candidate)


def _lacks_place(order: OfflineTurn, suggestion: RecipeSuggestion) -> bool:
    """Return whether an order has a text without quotes, and neither a name nor a day for it."""
    kinds = {suggestion.recipe.inputs[name].kind for name in suggestion.guesses}
    parsed = Sentence(order.request.message, order.around)
    is_placed = parsed.names or parsed.days or parsed.here is not None
    return not (is_placed or kinds.isdisjoint(_PROSE))


def _is_whole(candidate: Candidate, suggestion: RecipeSuggestion | None) -> bool:
    # A new name may be like an existing one.
    is_unknown = any(name.input not in candidate.values for name in candidate.unknown)
    is_partial = candidate.missing or candidate.unused or is_unknown or candidate.fails
    return not is_partial and (suggestion is None or (suggestion.complete and suggestion.worded))


def _with_these(values: Mapping[str, Any], notes: Sequence[str]) -> dict[str, Any] | None:
    """Return values with notes for the open one, or None if an input takes only one note."""
    named = dict(values)
    for name, value in values.items():
        if value == ACTIVE:
            if len(notes) > 1:
                return None
            named[name] = notes[0]
        elif isinstance(value, NoteSet) and any(term.value == ACTIVE for term in value.terms):
            others = tuple(term for term in value.terms if term.value != ACTIVE)
            named[name] = NoteSet((*(Term("note", path) for path in notes), *others))
    return named


def _with_notes(part: JoinedPart, turn: OfflineTurn, preview: Preview) -> JoinedPart:
    """Return a part with the notes that it makes, changes and reads."""
    changes = [change for change in preview.change_set.changes if not change.folder]
    moved = {change.path.text: (change.new_path or change.path).text for change in changes}
    after = preview.after
    created = [change.path.text for change in changes if change.kind == "create"]
    changed: list[str] = []
    read: list[str] = []
    for name, value in (part.recipe.defaults | dict(part.values)).items():
        named: Sequence[str] = ()
        if isinstance(value, NoteSet) and value.terms:
            named = value.paths(turn.around)
        elif value == ACTIVE:
            named = [turn.around.active_file or ""]
        elif part.recipe.inputs[name].kind in _NOTES and isinstance(value, str):
            named = [value]
        # “All notes in X” are meant, also those that need no change.
        among = read if moved.keys().isdisjoint(named) else changed
        among += (moved.get(path, path) for path in named)
    if not changed and not read:
        changed = [path for path in moved.values() if path not in created]

    def existing(paths: Iterable[str]) -> tuple[str, ...]:
        return tuple(
            path
            for path in dict.fromkeys(paths)
            if path.endswith(".md")
            and after is not None
            and after.locate(parse(path, PathUse.READ)) is not None
        )

    return replace(
        part,
        deleted=tuple(change.path.text for change in changes if change.kind == "delete"),
        created=existing(created),
        changed=existing(changed),
        read=existing(read),
    )
