"""Saved plans: what a person approved once becomes a thing to run again, with other values and without a model.

A macro is data. Reading, importing or saving one never runs anything; a run of it is validated, previewed and approved like any plan. From the
plan of a finished run it is made by turning literals into inputs.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from obsidian_agent.agent.vault_agents.library import Standing, TrustStore, standing
from obsidian_agent.errors import ObsidianAgentError, PlanError, Problem, VaultError
from obsidian_agent.plan.arguments import marks_of
from obsidian_agent.plan.flags import Policy
from obsidian_agent.plan.model import ActionPlan, Parameter, ParameterType
from obsidian_agent.plan.parameters import bind, typed, with_implied_parameters
from obsidian_agent.plan.references import compile_step
from obsidian_agent.plan.scope import CONTEXT_NAMES, RESERVED_NAMES
from obsidian_agent.plan.shape import shape
from obsidian_agent.plan.validate import validate
from obsidian_agent.state_files import replace_file
from obsidian_agent.tools.core.tool import Tool
from obsidian_agent.vault.filesystem.app_folder import Document
from obsidian_agent.vault.paths.path import VaultPath, clean_component

MAX_NAME = 100
_SAID = re.compile(r"(?<!\$)\$\{([A-Za-z][A-Za-z0-9_]*)(?:\|[^}]*)?\}")
_FIELDS = frozenset({"name", "description", "phrases", "plan", "parameters"})
_ANYTHING_GOES = Policy(allow_deletes=True, allow_commands=True)
"""Whether deletes and commands are allowed is asked when a macro runs, not when it is kept."""


class MacroError(ObsidianAgentError):
    """A macro cannot be read, kept or found."""

    default_code = "MACRO_INVALID"


@dataclass(frozen=True, slots=True)
class Macro:
    """A saved plan. Its inputs are `plan.parameters`. `standing` and `sha256` are those of the file that it was read from."""

    name: str
    plan: ActionPlan
    description: str | None = None
    phrases: tuple[str, ...] = ()
    standing: Standing = field(default="new", compare=False)
    sha256: str = field(default="", compare=False)

    @property
    def trusted(self) -> bool:
        """Whether this person saved, imported or accepted exactly this file."""
        return self.standing == "trusted"

    @property
    def parameters(self) -> Mapping[str, Any]:
        """The declared inputs, by name."""
        return self.plan.parameters

    def for_values(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """The plan's document; its goal and the lines of its steps say these values, and defaults, in place of references."""
        return told_with(self.plan, values).to_json()

    def to_json(self) -> dict[str, Any]:
        """The document as it is kept and exported."""
        document: dict[str, Any] = {"name": self.name}
        if self.description:
            document["description"] = self.description
        if self.phrases:
            document["phrases"] = list(self.phrases)
        return document | {"plan": self.plan.to_json()}


def told_with(plan: ActionPlan, values: Mapping[str, Any]) -> ActionPlan:
    """The plan with goal and step lines that say the values of its parameters; what has none stays a reference."""
    bound = bind(plan, {name: value for name, value in values.items() if name in plan.parameters}).values

    def said(text: str | None) -> str | None:
        return None if text is None else _SAID.sub(lambda found: _in_words(bound[found[1]]) if found[1] in bound else found[0], text)

    steps = [step.model_copy(update={"preview": said(step.preview)}) for step in plan.steps]
    return plan.model_copy(update={"goal": said(plan.goal), "steps": steps})


def _in_words(value: Any) -> str:
    return ", ".join(map(_in_words, value)) if isinstance(value, list) else str(value).lower() if isinstance(value, bool) else str(value)


@dataclass(frozen=True, slots=True)
class Imported:
    """A macro that was read and judged, not yet kept. `warnings` name what was left out or changed."""

    macro: Macro
    warnings: tuple[Problem, ...] = ()


class Folder(Protocol):
    """Where macros are kept: JSON documents by name (`vault.appfolder.AppFolder`)."""

    def path(self, name: str) -> VaultPath: ...
    def list(self) -> list[str]: ...
    def read(self, name: str) -> Document: ...
    def write(self, name: str, value: object) -> Document: ...
    def delete(self, name: str) -> bool: ...


def read_macro(document: object, tools: Mapping[str, Tool], *, judge: bool = True) -> Imported:
    """The macro in a JSON document. Raises PlanError with everything that is wrong.

    A top-level `parameters` (names, or a map) is merged into those of the plan; heads that nothing declares become parameters where they
    would be an error. With `judge` the plan is validated in full, but for what only the settings of the run can allow.
    """
    if not isinstance(document, Mapping):
        raise PlanError("A macro is a JSON object with name and plan.")
    name = _name(document.get("name"))
    plan_document = document.get("plan")
    if not isinstance(plan_document, Mapping):
        raise PlanError(f"The macro “{name}” has no plan.")
    warnings = [
        Problem("UNKNOWN_FIELD", f"The field “{field}” of the macro “{name}” is left out: a macro has no such field.")
        for field in sorted(map(str, document.keys() - _FIELDS))
    ]
    merged = _with_parameters(dict(plan_document), document.get("parameters"))
    shaped = shape(merged)
    if shaped.plan is None:
        raise PlanError(f"The plan of the macro “{name}” is not valid.", problems=shaped.problems)
    plan = with_implied_parameters(shaped.plan, tools)
    if judge:
        checked = validate(plan, tools, _ANYTHING_GOES)
        if checked.plan is None:
            raise PlanError(f"The plan of the macro “{name}” is not valid.", problems=checked.problems)
        warnings += checked.warnings
    return Imported(Macro(name, plan, _text(document.get("description")), _texts(document.get("phrases"))), tuple(warnings))


class MacroStore:
    """The macros of one vault: one JSON file each in the vault's own folder.

    Which of them are trusted, and how often they ran (`usage`, a file), is kept outside of the vault.
    """

    def __init__(self, folder: Folder, usage: Path, trust: TrustStore, tools: Mapping[str, Tool]) -> None:
        self._folder = folder
        self._usage = usage
        self._trust = trust
        self._tools = tools

    def all(self) -> list[Macro]:
        """Every macro that can be read, sorted by name; broken files are left out (`problems` tells)."""
        return sorted((macro for macro, _ in self._files() if isinstance(macro, Macro)), key=lambda macro: macro.name.casefold())

    def problems(self) -> list[Problem]:
        """What is wrong with files that cannot be read."""
        return [each for each, _ in self._files() if isinstance(each, Problem)]

    def get(self, name: str) -> Macro:
        """The macro of a name, case ignored; a trusted one before others. MacroError MACRO_NOT_FOUND names those there are."""
        found = self._find(name)
        if found is None:
            known = ", ".join(f"“{macro.name}”" for macro in self.all()) or "none"
            raise MacroError(f"There is no macro “{name}”.", code="MACRO_NOT_FOUND", hint=f"Saved macros: {known}.")
        return found[0]

    def accept(self, name: str, sha256: str) -> Macro:
        """Trust a macro as it was shown. MacroError MACRO_CHANGED when its file has another content by now."""
        for macro, file in self._files():
            if isinstance(macro, Macro) and _same(macro.name, name) and macro.sha256 == sha256:
                self._trust.trust(self._folder.path(file).text, sha256)
                return replace(macro, standing="trusted")
        found = self.get(name)
        raise MacroError(f"The macro “{found.name}” is another one than was shown.", code="MACRO_CHANGED", hint="Look at it again.")

    def save(self, macro: Macro, *, replacing: bool = False) -> Macro:
        """Keep a macro; what this person saves is trusted. MacroError MACRO_EXISTS when the name is taken, unless `replacing`."""
        named = replace(macro, name=_name(macro.name))
        taken = self._find(named.name)
        if taken is not None and not replacing:
            raise MacroError(
                f"There is a macro “{taken[0].name}” already.", code="MACRO_EXISTS", hint="Choose another name, or replace it."
            )
        return self._write(taken[1] if taken is not None else self._free_file(named.name), named, trusted=True)

    def rename(self, name: str, new_name: str) -> Macro:
        """Give a macro another name; its count goes with it. One that is not trusted stays so."""
        found = self._find(name)
        if found is None:
            return self.get(name)
        macro, file = found
        renamed = replace(macro, name=_name(new_name))
        other = self._find(renamed.name)
        if other is not None and other[1] != file:
            raise MacroError(f"There is a macro “{other[0].name}” already.", code="MACRO_EXISTS", hint="Choose another name.")
        target = file if other is not None else self._free_file(renamed.name)
        renamed = self._write(target, renamed, trusted=macro.trusted)
        if target != file:
            self._remove(file)
        counts = self._counts()
        if macro.name in counts:
            counts[renamed.name] = counts.pop(macro.name)
            self._keep(counts)
        return renamed

    def delete(self, name: str) -> None:
        """Remove a macro and its count. MacroError when there is none."""
        found = self._find(name)
        if found is None:
            self.get(name)
            return
        self._remove(found[1])
        counts = self._counts()
        if counts.pop(found[0].name, None) is not None:
            self._keep(counts)

    def used(self, name: str) -> int:
        """How often a macro was run."""
        return self._counts().get(self.get(name).name, 0)

    def count(self, name: str) -> None:
        """A macro was run once more."""
        counts = self._counts()
        key = self.get(name).name
        counts[key] = counts.get(key, 0) + 1
        self._keep(counts)

    # --- files ----------------------------------------------------------------------------------------------------------------

    def _files(self) -> Iterator[tuple[Macro | Problem, str]]:
        trusted = self._trust.hashes()
        for file in self._folder.list():
            try:
                read = self._folder.read(file)
                macro = read_macro(read.value, self._tools, judge=False).macro
                yield replace(macro, standing=standing(trusted.get(read.path.text), read.sha256), sha256=read.sha256), file
            except (VaultError, PlanError) as error:
                yield Problem("MACRO_INVALID", f"The macro file {file}.json is left out: {error.message}", path=f"{file}.json"), file

    def _find(self, name: str) -> tuple[Macro, str] | None:
        named = [(macro, file) for macro, file in self._files() if isinstance(macro, Macro) and _same(macro.name, name)]
        # A file that came with a sync cannot stand in the way of the person's own macro by taking its name.
        return min(named, key=lambda each: not each[0].trusted, default=None)

    def _write(self, file: str, macro: Macro, *, trusted: bool) -> Macro:
        written = self._folder.write(file, macro.to_json())
        if trusted:
            self._trust.trust(written.path.text, written.sha256)
        return replace(macro, standing="trusted" if trusted else "new", sha256=written.sha256)

    def _remove(self, file: str) -> None:
        self._folder.delete(file)
        self._trust.distrust(self._folder.path(file).text)

    def _free_file(self, name: str) -> str:
        """A file name made from the macro's name; the name itself stays inside the document."""
        base = clean_component(name)
        taken = {file.casefold() for file in self._folder.list()}
        candidates = (base if number == 1 else f"{base} {number}" for number in range(1, len(taken) + 2))
        return next(file for file in candidates if file.casefold() not in taken)

    def _counts(self) -> dict[str, int]:
        try:
            document = json.loads(self._usage.read_bytes())
        except (OSError, ValueError):
            return {}
        return {key: value for key, value in document.items() if isinstance(value, int)} if isinstance(document, dict) else {}

    def _keep(self, counts: Mapping[str, int]) -> None:
        """Write the counts, all or nothing. They are worth no error: a folder that cannot be written to only loses them."""
        with contextlib.suppress(OSError):
            replace_file(self._usage, json.dumps(counts, ensure_ascii=False, indent=1).encode())


def _same(name: str, other: str) -> bool:
    return name.strip().casefold() == other.strip().casefold()


def _name(value: object) -> str:
    text = " ".join(value.split()) if isinstance(value, str) else ""
    if not text:
        raise PlanError("A macro needs a name.")
    if len(text) > MAX_NAME or any(not char.isprintable() for char in text):
        raise PlanError(f"The name of a macro is printable text of at most {MAX_NAME} characters.")
    return text


def _with_parameters(plan: dict[str, Any], given: object) -> dict[str, Any]:
    """The plan with parameters that stand beside it; what the plan itself declares wins."""
    if given is None:
        return plan
    if isinstance(given, Mapping):
        beside = {str(name): declared if isinstance(declared, Mapping) else {} for name, declared in given.items()}
    elif isinstance(given, Sequence) and not isinstance(given, str) and all(isinstance(name, str) for name in given):
        beside = {name: {} for name in given}
    else:
        raise PlanError("The parameters of a macro are a list of names, or a map from names to descriptions, types and defaults.")
    own = plan.get("parameters")
    return plan | {"parameters": beside | (dict(own) if isinstance(own, Mapping) else {})}


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value.strip() else None


def _texts(value: object) -> tuple[str, ...]:
    return tuple(each for each in value if isinstance(each, str)) if isinstance(value, list) else ()


JsonPath = tuple[str | int, ...]
"""Where a value is in the plan's document: `("steps", 0, "args", "path")`."""

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_PLACES = ("args", "when")


@dataclass(frozen=True, slots=True)
class FoundParameter:
    """A name that the plan takes from outside. `context`: it is bound by itself, from the selection, the open note or the clock."""

    name: str
    declared: Parameter
    context: bool


@dataclass(frozen=True, slots=True)
class Literal:
    """A literal of the plan that can become a parameter. Several places may hold the same one."""

    value: str | int | float | bool
    places: tuple[JsonPath, ...]


def find_parameters(plan: ActionPlan, tools: Mapping[str, Tool]) -> list[FoundParameter]:
    """All inputs of a plan in the order of use: declared parameters and names of the run's own context, no loop or captured names."""
    found: dict[str, FoundParameter] = {}
    for step in plan.steps:
        if step.tool not in tools:
            continue
        loop = {step.foreach.item_name, step.foreach.index_name} if step.foreach is not None else set()
        for place, template in compile_step(step, marks_of(tools[step.tool].input)).templates():
            hidden = loop if place != "foreach/from" else set()
            for reference in template.references:
                head = reference.head
                if reference.kind == "name" and head not in hidden and (head in plan.parameters or head in CONTEXT_NAMES):
                    found.setdefault(head, FoundParameter(head, plan.parameters.get(head, Parameter()), head in CONTEXT_NAMES))
    for name, declared in plan.parameters.items():
        found.setdefault(name, FoundParameter(name, declared, name in CONTEXT_NAMES))
    return list(found.values())


def literals(plan: ActionPlan) -> list[Literal]:
    """The literal values of the steps' arguments, each with all its places, in the order of the plan."""
    found: dict[tuple[type, Any], list[JsonPath]] = {}
    for place, value in _leaves(plan.to_json()):
        if isinstance(value, str) and ("$" in value or not value.strip()):
            continue
        found.setdefault((type(value), value), []).append(place)
    return [Literal(value, tuple(places)) for (_, value), places in found.items()]


def promote_literal(plan: ActionPlan, path: Sequence[str | int], name: str, type_: ParameterType | None = None) -> ActionPlan:
    """The plan with the literal at `path` made a parameter whose default it is; every equal literal becomes the same one.

    MacroError when there is no literal, or the name is taken or cannot be one.
    """
    document = plan.to_json()
    value = _at(document, tuple(path))
    if not isinstance(value, str | int | float | bool):
        raise MacroError("Only a text, a number, or true and false can become a parameter.")
    return _promoted(plan, document, value, name, type_)


def promote_text(plan: ActionPlan, text: str, name: str, type_: ParameterType | None = None) -> ActionPlan:
    """As `promote_literal`, for every place where `text` is a whole literal, a folder at the start of a path, or else a part of a text."""
    return _promoted(plan, plan.to_json(), text, name, type_)


def macro_from_run(
    plan_json: Mapping[str, Any],
    name: str,
    tools: Mapping[str, Tool],
    description: str | None = None,
    parameters: Mapping[str, str] | None = None,
) -> Macro:
    """The macro for the plan of a run. `parameters`: name of a new input -> the literal text that it replaces."""
    plan = read_macro({"name": name, "plan": dict(plan_json)}, tools).macro.plan
    for parameter, text in (parameters or {}).items():
        if parameter not in plan.parameters and parameter not in CONTEXT_NAMES:
            plan = _promote_written(plan, text, parameter)
    return read_macro(
        {"name": name, "description": description or plan.goal, "plan": _without_old_values(plan, name).to_json()}, tools
    ).macro


def _promote_written(plan: ActionPlan, text: str, name: str) -> ActionPlan:
    """A literal as a person writes it: a text, or where the plan holds none such, a number, true or false."""
    try:
        return promote_text(plan, text, name)
    except MacroError:
        place = next((literal.places[0] for literal in literals(plan) if json.dumps(literal.value) == text.strip().lower()), None)
        if place is None:
            raise
        return promote_literal(plan, place, name)


def _without_old_values(plan: ActionPlan, name: str) -> ActionPlan:
    """The plan without texts for people that name a parameter's default: with other values they would be wrong."""
    old = [
        str(each.default) for each in plan.parameters.values() if isinstance(each.default, str | int | float) and str(each.default).strip()
    ]

    def stale(text: str) -> bool:
        return any(value in text for value in old)

    steps = [step.model_copy(update={"preview": None}) if step.preview and stale(step.preview) else step for step in plan.steps]
    assumptions = [text for text in plan.assumptions if not stale(text)]
    goal = name if stale(plan.goal) else plan.goal
    return plan.model_copy(update={"goal": goal, "assumptions": assumptions, "steps": steps})


def _promoted(
    plan: ActionPlan, document: dict[str, Any], value: str | int | float | bool, name: str, type_: ParameterType | None
) -> ActionPlan:
    _check_name(plan, name)
    reference = f"${{{name}}}"
    paths = {place for place, _ in _leaves(document)}
    changed = 0
    for place in paths:
        old = _at(document, place)
        new = _replaced(old, value, reference)
        if new != old or type(new) is not type(old):
            _put(document, place, new)
            changed += 1
    if not changed:
        raise MacroError(f"The plan holds no literal {value!r}.", hint="Choose a text that stands in an argument of a step.")
    wanted = type_ or _type(value, document, name)
    document.setdefault("parameters", {})[name] = {"type": wanted, "default": typed(value, wanted)}
    return ActionPlan.model_validate(document)


def _replaced(old: Any, value: Any, reference: str) -> Any:
    """The value with the literal made a reference: the whole of it, or where it stands as words of its own in a text."""
    if old == value and type(old) is type(value):
        return reference
    if not isinstance(old, str) or not isinstance(value, str) or not value.strip():
        return old
    pieces = re.split(r"(\$\$\{|\$\{[^}]*\})", old)
    whole = re.compile(rf"(?<!\w){re.escape(value)}(?!\w)")
    return "".join(piece if piece.startswith(("${", "$${")) else whole.sub(lambda _: reference, piece) for piece in pieces)


def _type(value: Any, document: dict[str, Any], name: str) -> ParameterType:
    """Boolean and number by themselves; a text that is used as a path, or as the folders of one, is a path."""
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "number"
    reference = f"${{{name}}}"
    path_fields = {"path", "folder", "from", "to", "paths", "filePaths"}
    for place, leaf in _leaves(document):
        field = next((part for part in reversed(place) if isinstance(part, str)), "")
        if field in path_fields and isinstance(leaf, str) and (leaf == reference or leaf.startswith(f"{reference}/")):
            return "path"
    return "text"


def _check_name(plan: ActionPlan, name: str) -> None:
    taken = {step.id for step in plan.steps} | RESERVED_NAMES | plan.parameters.keys()
    for step in plan.steps:
        if step.foreach is not None:
            taken |= {step.foreach.item_name, step.foreach.index_name}
    if not _NAME.fullmatch(name):
        raise MacroError(f"“{name}” cannot be the name of a parameter.", hint="Use letters, digits and _, a letter first.")
    if name in taken:
        raise MacroError(f"The plan uses the name “{name}” for something else.", hint="Choose another name.")


def _leaves(document: Mapping[str, Any]) -> Iterator[tuple[JsonPath, Any]]:
    """Texts, numbers and booleans where references would be resolved: arguments, `when` and literal lists of foreach."""
    for number, step in enumerate(document.get("steps", [])):
        for key in _PLACES:
            if key in step:
                yield from _below(("steps", number, key), step[key])
        if isinstance(step.get("foreach"), Mapping):
            yield from _below(("steps", number, "foreach", "from"), step["foreach"]["from"])


def _below(place: JsonPath, value: Any) -> Iterator[tuple[JsonPath, Any]]:
    if isinstance(value, Mapping):
        for key, each in value.items():
            yield from _below((*place, key), each)
    elif isinstance(value, list):
        for number, each in enumerate(value):
            yield from _below((*place, number), each)
    elif isinstance(value, str | int | float | bool):
        yield place, value


def _at(document: Any, place: JsonPath) -> Any:
    value = document
    try:
        for part in place:
            value = value[part]
    except (KeyError, IndexError, TypeError):
        raise MacroError(f"The plan has nothing at {'/'.join(map(str, place))}.") from None
    return value


def _put(document: Any, place: JsonPath, value: Any) -> None:
    parent = _at(document, place[:-1])
    parent[place[-1]] = value
