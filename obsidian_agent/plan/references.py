"""References in JSON values and steps, compiled once and resolved many times.

Resolution is one pass that never reads substituted text again. A `Scope` holds what references can
reach: outputs of steps, captured values, loop names, parameters and the run's context.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from msgspec import Struct, field
from msgspec.structs import replace

from obsidian_agent import budget
from obsidian_agent.errors import PathRefused, ToolError
from obsidian_agent.plan import grammar
from obsidian_agent.plan.arguments import NO_MARKS, ArgMarks
from obsidian_agent.plan.grammar import Malformed, Reference
from obsidian_agent.plan.model import ActionPlan, Step
from obsidian_agent.tools.core.filters import (
    MISSING,
    NO_SELECTION,
    FilterContext,
    Missing,
    apply_filters,
    text_of,
)
from obsidian_agent.tools.core.tool import RunContext
from obsidian_agent.vault.paths.rules import clean_component, replace_illegal

CONTEXT_NAMES: Final = frozenset(
    {"selection", "activeFile", "activeFolder", "vaultName", "date", "time", "now"}
)
"""The names of the run's context, which no step, loop or captured value may use."""

RESERVED_NAMES: Final = CONTEXT_NAMES | {"steps", "vars"}

BUILTIN_VARS: Final[Mapping[str, Any]] = {"vaultRoot": ""}
"""`$vars` of every plan. Paths are relative to the vault, so its root is the empty text."""

_PATH_CONTEXT: Final = frozenset({"activeFile", "activeFolder"})
_PATH_FIELDS: Final = frozenset({"path", "folder"})


_BARE_STEPS = re.compile(r"steps\.[\w.\[\]|:-]+")


def context_values(run: RunContext) -> dict[str, Any]:
    """Return the run's context by name.

    Without a selection or an active file the value is a `Missing`.
    """
    active = run.active_file
    selected = run.selection.text if run.selection is not None else ""
    return {
        "selection": selected or NO_SELECTION,
        "activeFile": active.text if active is not None else MISSING,
        "activeFolder": active.parent.text if active is not None else MISSING,
        "vaultName": run.vault_name,
        "date": run.now.strftime("%Y-%m-%d"),
        "time": run.now.strftime("%H:%M"),
        "now": run.now.isoformat(timespec="seconds"),
    }


def path_parameters(plan: ActionPlan) -> frozenset[str]:
    """Return the declared parameters whose values may contain a `/` in a path."""
    return frozenset(name for name, declared in plan.parameters.items() if declared.type == "path")


class Scope(Struct, frozen=True, kw_only=True):
    """The names and values visible to one step or instance.

    `steps` and `vars` may be the growing mappings of a dry run.
    """

    context: Mapping[str, Any] = field(default_factory=dict)
    params: Mapping[str, Any] = field(default_factory=dict)
    path_params: frozenset[str] = frozenset()
    steps: Mapping[str, Any] = field(default_factory=dict)
    vars: Mapping[str, Any] = field(default_factory=dict)
    local: Mapping[str, Any] = field(default_factory=dict)
    filters: FilterContext = field(default_factory=FilterContext)

    def child(self, item_name: str, item: Any, index_name: str, index: int) -> Scope:
        """Return the scope of one foreach instance."""
        local = {item_name: item, index_name: index}
        return replace(self, local=local)

    def knows(self, reference: Reference) -> bool:
        """Return whether the head of a reference means anything here.

        Steps and captured names always do: an unknown one is an error, not text.
        """
        name = reference.head
        return (
            reference.kind != "name"
            or name in self.local
            or name in self.params
            or name in self.context
        )

    def value(self, reference: Reference) -> Any:
        """Return the value of a reference before its filters, or a `Missing`."""
        value = self._start(reference)
        for part in reference.parts:
            value = child_of(value, part)
        return value

    def containers(self, reference: Reference) -> Iterable[Any]:
        """Yield the values along the path of a reference, outermost first."""
        value = self._start(reference)
        for part in reference.parts:
            yield value
            value = child_of(value, part)

    def may_hold_slash(self, reference: Reference) -> bool:
        """Return whether a value may be several components of a path.

        It may for paths of the context, path parameters, path fields of outputs and formatted
        dates.
        """
        if any(call.name == "date" for call in reference.filters):
            return True
        name, parts = reference.head, reference.parts
        if reference.kind == "name" and name not in self.local:
            return not parts and (name in _PATH_CONTEXT or name in self.path_params)
        return bool(parts) and parts[-1] in _PATH_FIELDS and "frontmatter" not in parts

    def _start(self, reference: Reference) -> Any:
        name = reference.head
        match reference.kind:
            case "steps":
                return self.steps.get(name, MISSING)
            case "vars":
                return self.vars.get(name, BUILTIN_VARS.get(name, MISSING))
            case "name":
                for names in (self.local, self.params, self.context):
                    if name in names:
                        return names[name]
                return MISSING


def child_of(value: Any, part: str) -> Any:
    """Return a field of an object or an item of a list, else `MISSING`."""
    if isinstance(value, dict):
        return value.get(part, MISSING)
    if isinstance(value, list) and part.isascii() and part.isdigit() and len(part) <= 9:
        index = int(part)
        return value[index] if index < len(value) else MISSING
    return MISSING if value is not NO_SELECTION else value


class Template(Struct, frozen=True):
    """A JSON value with its references parsed.

    `references` and `malformed` are in the order in which they are written.
    """

    root: _Node
    references: tuple[Reference, ...]
    malformed: tuple[Malformed, ...]

    @property
    def static(self) -> bool:
        """True if the value has no references."""
        return isinstance(self.root, _Static)

    @property
    def single(self) -> Reference | None:
        """The reference that is the whole value, or None."""
        return self.root.reference if isinstance(self.root, _Single) else None

    def resolve(self, scope: Scope, notes: list[str] | None = None) -> Any:
        """Return the value with every reference resolved.

        A value without references is returned as is. `notes` receives one line for each name in a
        path whose illegal characters were replaced. Raise ToolError REFERENCE_ERROR or NO_SELECTION
        with the reference, or PathRefused PATH_INVALID with a value that cannot be part of a path
        and a hint.
        """
        return self.root.resolve(scope, notes)

    def condition(self, scope: Scope) -> bool:
        """Return the value as a `when` condition.

        False, null, 0, "", [], {}, a missing path and a missing selection are false, all else is
        true.
        """
        try:
            return bool(self.root.resolve(scope, None))
        except MissingValue:
            return False


class MissingValue(ToolError):
    """A reference without a value: REFERENCE_ERROR, or NO_SELECTION.

    `path` is the reference without its filters.
    """

    default_code = "REFERENCE_ERROR"


def compile_value(value: Any, marks: ArgMarks = NO_MARKS) -> Template:
    """Return the template of a JSON value.

    Keys of objects are literal. Never raise: validation reports what is wrong with references.
    """
    root = _node(value, marks)
    nodes = tuple(root.iter_references())
    references = tuple(reference for reference in nodes if isinstance(reference, Reference))
    return Template(
        root,
        references,
        tuple(reference for reference in nodes if isinstance(reference, Malformed)),
    )


def resolve_reference(reference: Reference, scope: Scope) -> Any:
    """Return the value of one reference after its filters."""
    if reference.flaw:
        raise ToolError(f"{reference.source}: {reference.flaw}.", code="REFERENCE_ERROR")
    value = scope.value(reference)
    try:
        value = apply_filters(value, reference.filters, scope.filters)
    except ToolError as error:
        raise ToolError(
            f"{reference.source}: {error.message}",
            code="REFERENCE_ERROR",
            hint=error.hint,
            advice=error.advice,
        ) from error
    if isinstance(value, Missing):
        raise _missing(reference, value)
    return value


def _missing(reference: Reference, value: Missing) -> MissingValue:
    if value is NO_SELECTION:
        message, hint = (
            "Nothing is selected, and the plan needs ${selection}.",
            "Select text and try again.",
        )
        return MissingValue(message, code="NO_SELECTION", path=reference.name, hint=hint)
    if (
        reference.kind == "name"
        and reference.head in ("activeFile", "activeFolder")
        and not reference.parts
    ):
        message, hint = (
            f"{reference.source}: no note is active.",
            "Open a note, or name one with --active-file.",
        )
        return MissingValue(message, path=reference.name, hint=hint)
    message = f"{reference.source} leads to nothing: {reference.name} does not exist."
    return MissingValue(message, path=reference.name, hint="Check the path, or add |default:text.")


# --- template nodes ---


class _Static(Struct, frozen=True):
    value: Any

    def resolve(self, scope: Scope, notes: list[str] | None) -> Any:
        return self.value

    def iter_references(self) -> Iterator[Reference | Malformed]:
        return iter(())


class _Single(Struct, frozen=True):
    reference: Reference

    def resolve(self, scope: Scope, notes: list[str] | None) -> Any:
        reference = self.reference
        if reference.long_text and not scope.knows(reference):
            return reference.source
        return resolve_reference(reference, scope)

    def iter_references(self) -> Iterator[Reference | Malformed]:
        yield self.reference


class _Text(Struct, frozen=True):
    pieces: tuple[grammar.Piece, ...]

    def resolve(self, scope: Scope, notes: list[str] | None) -> str:
        written: list[str] = []
        for piece in self.pieces:
            match piece:
                case str():
                    written.append(piece)
                case Reference():
                    known = not piece.long_text or scope.knows(piece)
                    text = text_of(resolve_reference(piece, scope)) if known else piece.source
                    budget.spend(len(text))
                    written.append(text)
                case Malformed():
                    _refuse_malformed(piece)
        return "".join(written)

    def iter_references(self) -> Iterator[Reference | Malformed]:
        return (piece for piece in self.pieces if not isinstance(piece, str))


class _Path(_Text, frozen=True):
    """Text that is a path: each value fills one component, and an empty first component vanishes.

    `moved_from` is the argument with the old path of a move.
    """

    moved_from: str = ""

    def resolve(self, scope: Scope, notes: list[str] | None, old_path: object = None) -> str:
        """Return the path with illegal characters of values replaced by dashes.

        The last component stays unchanged if it equals that of `old_path`: a move keeps the name.
        """
        path, written = "", ""
        for index, piece in enumerate(self.pieces):
            match piece:
                case str():
                    vanished = index > 0 and not path and piece.startswith("/")
                    path += piece[1:] if vanished else piece
                    written += piece[1:] if vanished else piece
                case Reference():
                    text, dashed = _path_part(piece, scope)
                    if not text and path.endswith("/") and self._ends_component(index):
                        raise PathRefused(
                            f"{piece.source} is empty and would be a whole part of the path.",
                            code="PATH_INVALID",
                            path=path,
                        )
                    path += text
                    written += dashed
                case Malformed():
                    _refuse_malformed(piece)
        names, written_names = path.split("/"), written.split("/")
        if isinstance(old_path, str) and names[-1] == old_path.rpartition("/")[2]:
            written_names[-1] = names[-1]
        if notes is not None:
            notes.extend(
                f"“{name}” becomes “{dashed}”: some systems forbid its characters in names."
                for name, dashed in zip(names, written_names, strict=True)
                if name != dashed
            )
        return "/".join(written_names)

    def _ends_component(self, index: int) -> bool:
        following = self.pieces[index + 1 : index + 2]
        return not following or (isinstance(following[0], str) and following[0].startswith("/"))


def _refuse_malformed(piece: Malformed) -> None:
    if not piece.long_text:
        raise ToolError(
            f"{piece.source} is not a reference.",
            code="REFERENCE_ERROR",
            hint="Write $${ for a literal ${.",
        )


def _path_part(reference: Reference, scope: Scope) -> tuple[str, str]:
    """Return the text of a value in a path, and the same with dashes for illegal characters."""
    value = resolve_reference(reference, scope)
    if value is None or isinstance(value, list | dict):
        what = "null" if value is None else "a list or object"
        raise PathRefused(
            f"{reference.source} is {what}, which cannot be part of a path.", code="PATH_INVALID"
        )
    text = text_of(value)
    if scope.may_hold_slash(reference):
        dated = any(call.name == "date" for call in reference.filters)
        return text, "/".join(map(replace_illegal, text.split("/"))) if dated else text
    if "/" in text or "\\" in text or text.strip() in (".", ".."):
        cleaned = clean_component(text)
        raise PathRefused(
            f"{reference.source} is {text[:100]!r}: a value that is part of a path "
            "must be one name, without / and \\ and not . or ..",
            code="PATH_INVALID",
            path=text[:200],
            hint=f"Write |filename after it to get {cleaned!r}.",
        )
    return text, replace_illegal(text)


class _List(Struct, frozen=True):
    items: tuple[_Node, ...]

    def resolve(self, scope: Scope, notes: list[str] | None) -> list[Any]:
        return [item.resolve(scope, notes) for item in self.items]

    def iter_references(self) -> Iterator[Reference | Malformed]:
        for item in self.items:
            yield from item.iter_references()


class _Object(Struct, frozen=True):
    fields: Mapping[str, _Node]

    def resolve(self, scope: Scope, notes: list[str] | None) -> dict[str, Any]:
        resolved: dict[str, Any] = {}
        for name, node in self.fields.items():
            if isinstance(node, _Path) and node.moved_from in self.fields:
                old_path = self.fields[node.moved_from].resolve(scope, None)
                resolved[name] = node.resolve(scope, notes, old_path)
            else:
                resolved[name] = node.resolve(scope, notes)
        return resolved

    def iter_references(self) -> Iterator[Reference | Malformed]:
        for node in self.fields.values():
            yield from node.iter_references()


_Node = _Static | _Single | _Text | _Path | _List | _Object


def _node(value: Any, marks: ArgMarks) -> _Node:
    match value:
        case str():
            return _text_node(value, marks)
        case list():
            items = tuple(_node(item, marks.item()) for item in value)
            unchanged = all(
                isinstance(item, _Static) and item.value is old
                for item, old in zip(items, value, strict=True)
            )
            return _Static(value) if unchanged else _List(items)
        case dict():
            fields = {name: _node(child, marks.field(name)) for name, child in value.items()}
            unchanged = all(
                isinstance(node, _Static) and node.value is value[name]
                for name, node in fields.items()
            )
            return _Static(value) if unchanged else _Object(fields)
        case _:
            return _Static(value)


def _text_node(text: str, marks: ArgMarks) -> _Node:
    parts = grammar.pieces(text, marks.long_text)
    if all(isinstance(piece, str) for piece in parts):
        literal = "".join(map(str, parts))
        return _Static(text if literal == text else literal)
    if len(parts) == 1 and isinstance(parts[0], Reference):
        return _Single(parts[0])
    return _Path(tuple(parts), marks.moved_from) if marks.path else _Text(tuple(parts))


class CompiledStep(Struct, frozen=True):
    """The three templates of a step.

    `source` is `foreach.from`, None without a foreach.
    """

    step: Step
    args: Template
    when: Template
    source: Template | None = None

    def templates(self) -> Iterator[tuple[str, Template]]:
        """Yield each template with the path of its field inside the step."""
        if self.source is not None:
            yield "foreach/from", self.source
        yield "when", self.when
        yield "args", self.args

    @property
    def references(self) -> tuple[Reference, ...]:
        """Every reference of the step."""
        return tuple(
            reference for _, template in self.templates() for reference in template.references
        )

    @property
    def malformed(self) -> tuple[Malformed, ...]:
        """Every malformed reference of the step."""
        return tuple(
            reference for _, template in self.templates() for reference in template.malformed
        )

    def items(self, scope: Scope) -> list[Any]:
        """Return the list of the foreach.

        Raise ToolError REFERENCE_ERROR for any other value, TRUNCATED_LIST for an incomplete list.
        """
        assert self.source is not None
        assert self.step.foreach is not None
        items = self.source.resolve(scope)
        written = self.step.foreach.from_
        if not isinstance(items, list):
            raise ToolError(f"foreach.from is not an array: {written}", code="REFERENCE_ERROR")
        reference = self.source.single
        if reference is not None and any(
            isinstance(container, dict) and container.get("hasMore") is True
            for container in scope.containers(reference)
        ):
            raise ToolError(
                f"{written} was cut short (hasMore): the plan would run over a part of the list.",
                code="TRUNCATED_LIST",
                hint="Leave out limit and offset of that step.",
            )
        return items


def compile_step(step: Step, marks: ArgMarks = NO_MARKS) -> CompiledStep:
    """Return the step with its templates; `marks` are those of its tool's input."""
    source = None
    if step.foreach is not None:
        written = step.foreach.from_
        bare = isinstance(written, str) and _BARE_STEPS.fullmatch(written)
        source = compile_value(f"${written}" if bare else written)
    return CompiledStep(step, compile_value(step.args, marks), compile_value(step.when), source)
